"""Systems of min and max equations for tests, and the checks every solver of them must pass."""

from typing import Any

import numpy as np

__all__ = ["check_equation_solver", "equation_systems"]


def equation_systems(
    *,
    nonnegative: bool | None = None,
    two_players: bool = True,
    max_nodes: int = 5,
    max_actions: int = 3,
    contraction: float = 0.95,
) -> Any:
    """Strategy for absolutely halting systems, as the arguments of `equipoise.games.LEMM`.

    Parameters
    ----------
    nonnegative : bool, optional
        Draw coefficients of one sign, of both, or (None) either.
    two_players : bool, default=True
        Whether min nodes may occur.
    max_nodes, max_actions : int
        Largest number of nodes, and of actions of a node.
    contraction : float, default=0.95
        Largest absolute row sum.

    Returns
    -------
    hypothesis.strategies.SearchStrategy
        Of dictionaries with A (m, n), b (m,), indptr (n + 1,) and op (n,).

    Examples
    --------
    >>> from equipoise.games import LEMM
    >>> from equipoise.testing import equation_systems
    >>> from hypothesis import find
    >>> LEMM(**find(equation_systems(), lambda system: len(system["op"]) == 2)).n
    2
    """
    from hypothesis import strategies as st

    @st.composite
    def systems(draw: Any) -> dict[str, Any]:
        n = draw(st.integers(1, max_nodes))
        sizes = draw(st.lists(st.integers(1, max_actions), min_size=n, max_size=n))
        m = sum(sizes)
        signed = draw(st.booleans()) if nonnegative is None else not nonnegative
        entry = st.integers(-8 if signed else 0, 8)
        A = np.array(draw(st.lists(entry, min_size=m * n, max_size=m * n)), dtype=float)
        A = A.reshape(m, n)
        size = np.abs(A).sum(axis=1, keepdims=True)
        share = draw(st.lists(st.integers(0, 16), min_size=m, max_size=m))
        A *= contraction * np.array(share)[:, None] / 16 / np.maximum(size, 1)
        b = np.array(draw(st.lists(st.integers(-20, 20), min_size=m, max_size=m))) / 4
        ops = st.sampled_from(["max", "min"] if two_players else ["max"])
        op = draw(st.lists(ops, min_size=n, max_size=n))
        return {"A": A, "b": b, "indptr": np.concatenate([[0], np.cumsum(sizes)]), "op": op}

    return systems()


def check_equation_solver(solver: Any, problem: Any, *, tol: float = 1e-6) -> None:
    """Hold a fitted or unfitted solver to what its attributes promise on one problem.

    Checks that a solver that reports 'optimal' has solved the equations, that its policy is
    worth its value, that its bounds hold around the policy's value, and that refitting gives
    the same answer.

    Parameters
    ----------
    solver : solver
        With `fit`, `value_`, `policy_`, `status_`, `error_bound_`, `lower_`, `upper_`.
    problem : LEMM
        A system it can solve.
    tol : float, default=1e-6
        Relative to 1 + the largest value.

    Raises
    ------
    AssertionError
        If a promise is broken.

    Examples
    --------
    >>> from equipoise.games import LEMM, PolicyIteration
    >>> from equipoise.testing import check_equation_solver
    >>> check_equation_solver(PolicyIteration(), LEMM.from_equations("x = max(1 + 0.5*x, 0)"))
    """
    solver.fit(problem)
    x = solver.value_
    scale = 1 + np.abs(x).max()
    assert solver.converged_ == (solver.status_ == "optimal"), "converged_ contradicts status_"
    assert solver.converged_, f"status {solver.status_!r}"
    assert np.abs(problem.T(x) - x).max() <= tol * scale, "value_ doesn't solve the equations"
    worth = problem.evaluate(solver.policy_)
    assert np.abs(worth - x).max() <= 100 * tol * scale, "policy_ isn't worth value_"
    if solver.lower_ is not None:
        assert (solver.lower_ <= solver.upper_).all(), "lower_ exceeds upper_"
        assert np.isfinite(solver.error_bound_), "bounds without an error bound"
        slack = 1e-12 * scale
        assert (x >= solver.lower_ - slack).all(), "value_ is below lower_"
        assert (x <= solver.upper_ + slack).all(), "value_ is above upper_"
    first = x.copy()
    solver.fit(problem)
    assert np.array_equal(first, solver.value_), "refitting changes the answer"
