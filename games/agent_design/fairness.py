"""Other aims than a sum under linear conditions: Nash's product, leximin, the largest entropy.

All find a joint distribution pi with A @ pi <= b. The product prod_i (E u_i - d_i)^w_i of gains
over a disagreement point d is maximised through its logarithm by Kelley's cutting planes, which end
with a proof; leximin by a sequence of linear programs; the entropy as a cone program.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from equipoise.imports import optional_import

from .meta_game import AgentDesignGame
from .objectives import OBJECTIVES, extreme_distribution
from .programs import as_distribution, ones_row, payoff_range, solve_program
from .punishments import minimax_response

__all__ = [
    "POLICY_OBJECTIVES",
    "best_policy",
    "entropy_distribution",
    "leximin_distribution",
    "nash_distribution",
]

Array = np.ndarray

#: What mediators that choose a joint distribution can maximise, besides a callable.
POLICY_OBJECTIVES = (*OBJECTIVES, "nash", "lexicographic", "entropy")
ONE = np.ones(1)
CUTS = 200


def with_columns(A: Any, n_more: int) -> sp.csr_array:
    """The same rows with further columns of zeros."""
    return sp.csr_array(sp.hstack([A, sp.csr_array((A.shape[0], n_more))]))


def largest_floor(U: Array, A: Any, b: Array, active: Array, floors: Array) -> Any:
    """max t with U_i.pi >= t for active i and U_j.pi >= floors_j for the others."""
    M = U.shape[1]
    bottom = sp.csr_array(np.hstack([-U, active[:, None].astype(float)]))
    return solve_program(
        np.r_[np.zeros(M), -1.0],
        sp.csr_array(sp.vstack([with_columns(A, 1), bottom])),
        np.r_[b, np.where(active, 0.0, -floors)],
        ones_row(M, 1),
        ONE,
        bounds=[(0, None)] * M + [(None, None)],
    )


def leximin_distribution(payoffs: Array, A: Any, b: Array) -> Array | None:
    """Maximise the least expected payoff, then the second least, and so on.

    Parameters
    ----------
    payoffs : ndarray of shape (n, d_0, ..., d_{n-1})
        Payoffs.
    A : sparse array of shape (n_rows, M)
        Conditions A @ pi <= b.
    b : ndarray of shape (n_rows,)
        Right-hand sides.

    Returns
    -------
    ndarray of shape (d_0, ..., d_{n-1}) or None
        The distribution; None if none fulfils the conditions.
    """
    n, *shape = payoffs.shape
    scale = payoff_range(payoffs)
    U = payoffs.reshape(n, -1) / scale
    active, floors = np.ones(n, dtype=bool), np.zeros(n)
    while True:
        answer = largest_floor(U, A, b, active, floors)
        if answer is None:
            return None
        t = -answer.fun
        x = answer.x[:-1]
        # Whoever can't get more while the others keep theirs is settled.
        least = np.where(active, t, floors) - 1e-9
        top = np.full(n, np.inf)
        for i in np.flatnonzero(active):
            found = solve_program(
                -U[i],
                sp.csr_array(sp.vstack([A, sp.csr_array(-U)])),
                np.r_[b, -least],
                ones_row(U.shape[1]),
                ONE,
            )
            top[i] = t if found is None else -found.fun
        settled = active & (top <= max(t + 1e-7, top.min()))
        floors[settled] = t - 1e-9
        active &= ~settled
        if not active.any():
            return as_distribution(x, tuple(shape))


def nash_distribution(
    payoffs: Array, weights: Array, disagreement: Array, A: Any, b: Array
) -> Array | None:
    """Maximise prod_i (E u_i - disagreement_i)^w_i.

    Parameters
    ----------
    payoffs : ndarray of shape (n, d_0, ..., d_{n-1})
        Payoffs.
    weights : ndarray of shape (n,)
        Positive exponents.
    disagreement : ndarray of shape (n,)
        What each gets without an agreement.
    A : sparse array of shape (n_rows, M)
        Conditions A @ pi <= b.
    b : ndarray of shape (n_rows,)
        Right-hand sides.

    Returns
    -------
    ndarray of shape (d_0, ..., d_{n-1}) or None
        The distribution, whose logarithm of the product is within 1e-8 of the largest; None if no
        distribution gives everyone more than his disagreement payoff.

    Raises
    ------
    ValueError
        If a weight isn't positive.
    RuntimeError
        If 200 cuts don't reach the optimum.
    """
    if not (weights > 0).all():
        raise ValueError(f"objective='nash' needs positive weights, got {weights.tolist()}")
    n, *shape = payoffs.shape
    scale = payoff_range(payoffs)
    gain = (payoffs.reshape(n, -1) - disagreement[:, None]) / scale  # g_i = gain_i.pi
    M, w = gain.shape[1], weights / weights.sum()
    start = largest_floor(gain, A, b, np.ones(n, dtype=bool), np.zeros(n))
    if start is None or -start.fun <= 1e-9:
        return None
    # The optimum is at least `start`: no gain can be below this.
    least = np.exp((np.log(-start.fun) - (1 - w) * np.log(max(gain.max(), 1.0))) / w)
    least = np.minimum(np.maximum(least, 1e-12), -start.fun)
    # Variables: pi, s with s_i <= log(p) + (g_i - p) / p at each point p.
    rows = [with_columns(A, n), sp.csr_array(np.hstack([-gain, np.zeros((n, n))]))]
    right = [b, -least]
    points = [gain @ start.x[:-1], np.maximum(gain.max(axis=1), least), least]
    eye = np.eye(n)
    for _ in range(CUTS):
        for p in points:
            rows.append(sp.csr_array(np.hstack([-gain / p[:, None], eye])))
            right.append(np.log(p) - 1.0)
        answer = solve_program(
            np.r_[np.zeros(M), -w],
            sp.csr_array(sp.vstack(rows)),
            np.concatenate(right),
            ones_row(M, n),
            ONE,
            bounds=[(0, None)] * M + [(None, None)] * n,
        )
        if answer is None:
            raise RuntimeError("HiGHS lost a feasible program on the way to Nash's product")
        g = np.maximum(gain @ answer.x[:M], least)
        if w @ (answer.x[M:] - np.log(g)) <= 1e-8:
            return as_distribution(answer.x[:M], tuple(shape))
        points = [g]
    raise RuntimeError(f"{CUTS} cuts didn't reach the maximum of Nash's product")


def entropy_distribution(shape: tuple[int, ...], A: Any, b: Array) -> Array | None:
    """The distribution of the largest entropy with A @ pi <= b; needs the package cvxpy."""
    cp = optional_import("cvxpy", "games")
    pi = cp.Variable(int(np.prod(shape)), nonneg=True)
    conditions = [cp.sum(pi) == 1]
    if A.shape[0]:
        conditions.append(sp.csr_matrix(A) @ pi <= b)
    problem = cp.Problem(cp.Maximize(cp.sum(cp.entr(pi))), conditions)
    problem.solve(solver=cp.CLARABEL, tol_feas=1e-9, tol_gap_abs=1e-9, tol_gap_rel=1e-9)
    if problem.status == cp.INFEASIBLE:
        return None
    if pi.value is None:
        raise RuntimeError(f"the entropy program ended with status {problem.status!r}")
    return as_distribution(np.where(pi.value > 1e-9, pi.value, 0.0), shape)


def best_policy(
    game: AgentDesignGame, objective: Any, A: Any, b: Array
) -> tuple[tuple[Array, dict[str, Any]] | None, str]:
    """The best joint distribution with A @ pi <= b, shadow prices, and why there is none.

    Parameters
    ----------
    game : AgentDesignGame
        With "nash", the disagreement point is what each can secure whatever the others do.
    objective : {"utilitarian", "egalitarian", "nash", "lexicographic", "entropy"} or callable
        What is maximised.
    A : sparse array of shape (n_rows, M)
        Conditions.
    b : ndarray of shape (n_rows,)
        Right-hand sides.

    Returns
    -------
    (policy, duals) or None
        Shadow prices come with linear objectives and "egalitarian" only.
    reason : str
        Empty unless the objective, rather than the conditions, leaves no policy.
    """
    u = game.payoffs_
    if objective == "lexicographic":
        found = leximin_distribution(u, A, b)
    elif objective == "entropy":
        found = entropy_distribution(game.counts_.shape, A, b)
    elif objective == "nash":
        secure = np.array([minimax_response(u, i)[0] for i in range(len(u))])
        found = nash_distribution(u, game.weights_, secure, A, b)
        if found is None:
            return None, "no policy that is obeyed gives everyone more than he can secure alone"
    else:
        return extreme_distribution(u, game.weights_, objective, A, b), ""
    return (None if found is None else (found, {})), ""
