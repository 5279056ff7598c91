"""Simple policy iteration: one node switches at a time, along a unique sink orientation.

Where all determinants det(I - Q) have one sign, an edge between two policies is improving in
exactly one direction, and every sub-grid of policies has one sink. Two rules then always end
at the solution: the least-index rule (Murty), and the parametric rule (Lemke), which follows the
solution for offsets ``b - s t d`` from large t down to t = 0.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .errors import LEMMSingularError
from .inverse import PolicyInverse, SignChangeError
from .problem import LEMM
from .solver import Run

__all__ = [
    "Callback",
    "generic_direction",
    "least_index_row",
    "owners",
    "parametric_rule",
    "switching_rule",
    "violated_rows",
]

Array = np.ndarray
#: t may rise by this much (relatively) through rounding before it counts as turning back.
SLIP = 1e-7
Callback = Callable[[int, Array, float], Any] | None


def generic_direction(problem: LEMM, policy: Array, random_state: Any) -> Array:
    """Random d in [1, 2] for every action but the policy's, where it is 0; shape (m,)."""
    d = check_random_state(random_state).uniform(1, 2, size=problem.m)
    d[problem.indptr[:-1] + policy] = 0.0
    return d


def owners(problem: LEMM) -> Array:
    return np.repeat(np.arange(problem.n), np.diff(problem.indptr))


def violated_rows(
    problem: LEMM, owner: Array, policy: Array, x: Array, tie_tol: float
) -> tuple[Array, Array]:
    """Rows that are better than a policy's by more than ties allow, and every row's violation."""
    violation = problem.sign[owner] * (problem.A @ x + problem.b - x[owner])
    violation[problem.indptr[:-1] + policy] = 0.0
    return np.flatnonzero(violation > tie_tol * (1 + np.abs(x[owner]))), violation


def least_index_row(
    rows: Array,
    violation: Array,
    owner: Array,
    rank: Array,
    pick: str,
    rng: np.random.RandomState,
) -> int:
    """The violated row to switch to: one of the first node that has any."""
    first = owner[rows[np.argmin(rank[owner[rows]])]]
    rows = rows[owner[rows] == first]
    if pick == "largest":
        return int(rows[np.argmax(violation[rows])])
    return int(rows[0] if pick == "first" else rng.choice(rows))


def not_w(run: Run, error: SignChangeError) -> Run:
    run.status, run.message, run.witness = "not_W", str(error), error.policies
    return run


def parametric_rule(
    problem: LEMM,
    policy: Array,
    direction: Array,
    tie_tol: float = 1e-10,
    max_switches: int | None = None,
    refactor_every: int = 50,
    callback: Callback = None,
) -> Run:
    """Follow the solution of the offsets ``b_a - s_i t d_a`` from t = infinity to t = 0.

    Parameters
    ----------
    problem : LEMM
        The system.
    policy : ndarray of shape (n,), int64
        Optimal for large t.
    direction : ndarray of shape (m,)
        d, positive for all actions but the policy's, where it is 0. Generic (random) values make
        one action tight at a time.
    tie_tol : float, default=1e-10
        Relative tolerance below which a slack counts as 0.
    max_switches : int, optional
        Stop after so many switches.
    refactor_every : int, default=50
        Rank-one updates of the inverse before it is computed afresh.
    callback : callable, optional
        Called as ``callback(n_switches, x, t)``.

    Returns
    -------
    Run
        Status 'optimal', 'max_iter', 'singular', or 'not_W' if t turned back or a determinant
        changed its sign; `witness` then holds the two policies where there are two.
    """
    owner = owners(problem)
    s = problem.sign[owner].astype(float)
    try:
        inverse = PolicyInverse(problem, policy, refactor_every)
    except LEMMSingularError as error:
        return Run(np.zeros(problem.n), policy.copy(), "singular", message=str(error))
    t, switches = np.inf, 0
    slope_rhs = -s * direction
    x0, x1 = inverse.solve(problem.b), np.zeros(problem.n)
    while True:
        run = Run(x0, inverse.policy.copy(), "optimal", switches, switches + 1, switches)
        c0 = s * (x0[owner] - problem.A @ x0 - problem.b)  # slack at t = 0
        c1 = s * (x1[owner] - problem.A @ x1) + direction  # its slope in t
        c0[inverse.rows] = c1[inverse.rows] = 0.0
        size = 1 + np.abs(x0[owner])
        # A slack that is zero up to rounding at t = 0 isn't worth a switch.
        falling = (c1 > 1e-13 * (1 + np.abs(x1[owner]))) & (c0 < -tie_tol * size)
        if not falling.any():
            return run
        rows = np.flatnonzero(falling)
        crossing = -c0[rows] / c1[rows]
        k = int(np.argmax(crossing))
        if crossing[k] > t * (1 + SLIP) + SLIP:
            run.status = "not_W"
            run.message = (
                "the parametric path turned back, which cannot happen where solutions are unique "
                "for all offsets (or rounding hides it)"
            )
            return run
        if max_switches is not None and switches >= max_switches:
            run.status = "max_iter"
            run.message = f"stopped after {switches} switches at t = {min(t, crossing[k]):.3g}"
            return run
        t = float(min(t, crossing[k]))
        try:
            inverse.switch(int(owner[rows[k]]), int(rows[k]))
        except SignChangeError as error:
            return not_w(run, error)
        switches += 1
        x0, x1 = inverse.solve(problem.b), inverse.solve(slope_rhs)
        if callback is not None and callback(switches, x0.copy(), t):
            message = f"stopped by the callback after {switches} switches"
            return Run(
                x0,
                inverse.policy.copy(),
                "max_iter",
                switches,
                switches + 1,
                switches,
                message=message,
            )


def switching_rule(
    problem: LEMM,
    policy: Array,
    rule: str = "least_index",
    order: Array | None = None,
    pick: str = "largest",
    tie_tol: float = 1e-10,
    max_switches: int | None = None,
    refactor_every: int = 50,
    random_state: Any = None,
    callback: Callback = None,
) -> Run:
    """Switch one violated action at a time until none is left.

    Parameters
    ----------
    problem, policy, tie_tol, max_switches, refactor_every
        As in `parametric_rule`.
    rule : {"least_index", "largest_violation"}, default="least_index"
        Switch the first node in `order` with a violated action, or the largest violation of
        all, which may cycle.
    order : ndarray of shape (n,), optional
        Order of the least-index rule; default 0, 1, ...
    pick : {"largest", "first", "random"}, default="largest"
        Which of the node's violated actions is taken.
    random_state : int, RandomState or None, default=None
        For pick "random".
    callback : callable, optional
        Called as ``callback(n_switches, x, violation)``.

    Returns
    -------
    Run
        Status 'optimal', 'max_iter', 'cycle', 'singular' or 'not_W'.
    """
    owner = owners(problem)
    rng = check_random_state(random_state)
    rank = np.empty(problem.n, dtype=np.int64)
    rank[np.arange(problem.n) if order is None else order] = np.arange(problem.n)
    try:
        inverse = PolicyInverse(problem, policy, refactor_every)
    except LEMMSingularError as error:
        return Run(np.zeros(problem.n), policy.copy(), "singular", message=str(error))
    seen: dict[bytes, int] = {}
    policies: list[Array] = []
    switches = 0
    while True:
        x = inverse.solve(problem.b)
        run = Run(x, inverse.policy.copy(), "optimal", switches, switches + 1, switches)
        rows, violation = violated_rows(problem, owner, inverse.policy, x, tie_tol)
        if rows.size == 0:
            return run
        if rule == "largest_violation":
            key = inverse.policy.tobytes()
            if key in seen:
                run.status, run.cycle = "cycle", policies[seen[key] :]
                run.message = (
                    f"the largest-violation rule repeated a policy after {switches} switches; it "
                    "has no guarantee: use rule='parametric' or 'least_index'"
                )
                return run
            seen[key] = switches
            policies.append(inverse.policy.copy())
            row = int(rows[np.argmax(violation[rows])])
        else:
            row = least_index_row(rows, violation, owner, rank, pick, rng)
        if max_switches is not None and switches >= max_switches:
            run.status = "max_iter"
            run.message = f"stopped after {switches} switches"
            return run
        worst = float(violation[row])
        try:
            inverse.switch(int(owner[row]), row)
        except SignChangeError as error:
            return not_w(run, error)
        switches += 1
        if callback is not None and callback(switches, x.copy(), worst):
            run.status, run.message = "max_iter", f"stopped by the callback: {switches} switches"
            return run
