"""The best and the worst mixed Nash equilibrium of two stakeholders, exactly, by one MILP each.

With b_i = 1 where design i isn't played, v the row's value and U the range of his payoffs
[1, program 1]: 0 <= v - (A y)_i <= U b_i and x_i <= 1 - b_i, and the same for the column.
The objective, a weighted sum of the two values, is linear.
"""

from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from .programs import as_distribution, payoff_range

__all__ = ["extreme_equilibrium", "polish"]

Array = np.ndarray


def one_side(A: Array) -> tuple[Array, Array]:
    """Rows on (own x, own binaries, own value, other's y) that must be <= their right side."""
    d, e = A.shape
    U = payoff_range(A)
    zero, eye, one = np.zeros((d, d)), np.eye(d), np.ones((d, 1))
    rows = np.vstack(
        [
            np.hstack([zero, zero, -one, A]),  # A y - v <= 0
            np.hstack([zero, -U * eye, one, -A]),  # v - A y <= U b
            np.hstack([eye, eye, 0 * one, np.zeros((d, e))]),  # x + b <= 1
        ]
    )
    return rows, np.r_[np.zeros(2 * d), np.ones(d)]


def polish(A: Array, B: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """Solve the indifference equations on the supports; keep what was given where that is worse."""

    def gap(x: Array, y: Array) -> float:
        return float((A @ y).max() - x @ A @ y + (x @ B).max() - x @ B @ y)

    def indifferent(C: Array, own: Array, other: Array) -> Array | None:
        S, T = np.flatnonzero(own > 1e-7), np.flatnonzero(other > 1e-7)
        system = np.block(
            [[C[np.ix_(S, T)], -np.ones((len(S), 1))], [np.ones((1, len(T))), np.zeros((1, 1))]]
        )
        found = np.linalg.lstsq(system, np.r_[np.zeros(len(S)), 1.0], rcond=None)[0][:-1]
        if (found < -1e-9).any():
            return None
        whole = np.zeros(len(other))
        whole[T] = np.maximum(found, 0.0)
        return whole / whole.sum()

    better_y, better_x = indifferent(A, x, y), indifferent(B.T, y, x)
    if better_x is None or better_y is None:
        return x, y
    moved = max(np.abs(better_x - x).max(), np.abs(better_y - y).max())
    return (better_x, better_y) if moved < 1e-5 and gap(better_x, better_y) <= gap(x, y) else (x, y)


def extreme_equilibrium(payoffs: Array, weights: Array, best: bool = True) -> list[Array]:
    """The mixed Nash equilibrium of extreme welfare.

    Parameters
    ----------
    payoffs : ndarray of shape (2, d_0, d_1)
        Payoffs.
    weights : ndarray of shape (2,)
        Weights of the two values in the welfare.
    best : bool, default=True
        Whether to maximise.

    Returns
    -------
    list of ndarray
        x of shape (d_0,) and y of shape (d_1,).

    Raises
    ------
    RuntimeError
        If HiGHS finds no equilibrium (there always is one).

    References
    ----------
    .. [1] T. Sandholm, A. Gilpin, V. Conitzer, "Mixed-integer programming methods for finding Nash
       equilibria", AAAI 2005.
    """
    scales = [payoff_range(u) for u in payoffs]
    # Shifting a player's payoffs changes no incentive, and keeps the values small.
    A, B = ((u - u.min()) / scale for u, scale in zip(payoffs, scales, strict=True))
    d, e = A.shape
    ours, right = one_side(A)
    theirs, left = one_side(B.T)
    # Variables: x, b, v, y, b', v'.
    top = np.hstack([ours[:, : 2 * d + 1], ours[:, 2 * d + 1 :], np.zeros((len(ours), e + 1))])
    bottom = np.hstack(
        [theirs[:, 2 * e + 1 :], np.zeros((len(theirs), d + 1)), theirs[:, : 2 * e + 1]]
    )
    n = 2 * d + 2 * e + 2
    sums = np.zeros((2, n))
    sums[0, :d] = sums[1, 2 * d + 1 : 2 * d + 1 + e] = 1.0
    value = np.zeros(n)
    value[2 * d], value[-1] = np.array(weights) * scales
    value /= np.abs(value).max() or 1.0
    integer = np.r_[np.zeros(d), np.ones(d), np.zeros(1 + e), np.ones(e), 0.0]
    answer: Any = milp(
        -value if best else value,
        constraints=[
            LinearConstraint(np.vstack([top, bottom]), -np.inf, np.r_[right, left]),
            LinearConstraint(sums, 1.0, 1.0),
        ],
        integrality=integer,
        bounds=Bounds(0.0, 1.0),
        options={"mip_rel_gap": 1e-9},
    )
    if answer.x is None:
        raise RuntimeError(f"HiGHS found no equilibrium: {answer.message}")
    x = as_distribution(answer.x[:d], (d,))
    y = as_distribution(answer.x[2 * d + 1 : 2 * d + 1 + e], (e,))
    return list(polish(A, B, x, y))
