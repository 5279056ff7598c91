"""Binary advice: the AI shows only which side its posterior takes, and every accuracy is Phi2.

Given the advice the worker's log-odds rise with x_H, so the decision is a threshold: -(l0 + tau
LLR) / 2h. A worker who believes in overlap reads the advice in the light of x_H,
LLR(+ | x) = log P(x_A > c | x, y=+) - log P(x_A > c | x, y=-), and may have several thresholds.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from .bivariate import orthant

__all__ = ["believing_team", "binary_cells", "binary_team"]

Array = NDArray[np.float64]


def advice_odds(a: Array, l0: Array) -> tuple[Array, Array, Array]:
    """The AI's threshold c = -l0 / 2a on x_A, and the log-likelihood ratios of advice + and -."""
    finite = np.where(a == 0, 1.0, 2 * a)
    c = np.where(l0 == 0, 0.0, np.where(a == 0, np.where(l0 > 0, -np.inf, np.inf), -l0 / finite))
    with np.errstate(invalid="ignore"):  # advice that is never given has no likelihood ratio
        plus = log_ndtr(a - c) - log_ndtr(-a - c)
        minus = log_ndtr(c - a) - log_ndtr(a + c)
    return c, np.nan_to_num(plus), np.nan_to_num(minus)


def thresholds(h: Array, a: Array, trust: Array, l0: Array) -> tuple[Array, Array, Array]:
    """c, and the worker's thresholds t+ and t- on x_H after either advice, overlap neglected."""
    c, plus, minus = advice_odds(a, l0)

    def threshold(odds: Array) -> Array:
        """-(l0 + tau odds) / 2h; where h = 0 the sign alone decides."""
        total = l0 + trust * odds
        sure = np.where(total == 0, 0.0, np.where(total > 0, -np.inf, np.inf))
        return np.where(h == 0, sure, -total / np.where(h == 0, 1.0, 2 * h))

    return c, threshold(plus), threshold(minus)


def binary_team(h: Array, a: Array, rho: Array, trust: Array, l0: Array) -> Array:
    """P(right): above t+ or t- given y = +1, below them given y = -1; whatever broadcasts."""
    c, t_plus, t_minus = thresholds(h, a, trust, l0)
    pi = 1 / (1 + np.exp(-l0))
    given_plus = orthant(h - t_plus, a - c, rho) + orthant(h - t_minus, c - a, -rho)
    if not np.any(l0):
        return given_plus
    given_minus = orthant(t_minus + h, a + c, rho) + orthant(t_plus + h, -a - c, -rho)
    return pi * given_plus + (1 - pi) * given_minus


def binary_cells(h: Array, a: Array, rho: Array, trust: Array) -> tuple[Array, Array, Array, Array]:
    """P(team, AI) = right/right, right/wrong, wrong/right, wrong/wrong; even prior, neglect.

    Each cell is one orthant, so a small one isn't lost in a difference.
    """
    _, t_plus, t_minus = thresholds(h, a, trust, np.zeros(()))
    return (
        orthant(h - t_plus, a, rho),
        orthant(h - t_minus, -a, -rho),
        orthant(t_plus - h, a, -rho),
        orthant(t_minus - h, -a, rho),
    )


def decision_odds(
    x: Array, side: int, h: Array, a: Array, trust: Array, belief: Array, l0: Array
) -> Array:
    """L after advice `side` (+1 or -1) as a function of x_H, with the believed correlation."""
    c, _, _ = advice_odds(a, l0)
    s = np.sqrt((1 - belief) * (1 + belief))
    given_plus = log_ndtr(side * (a + belief * (x - h) - c) / s)
    given_minus = log_ndtr(side * (-a + belief * (x + h) - c) / s)
    return l0 + 2 * h * x + trust * (given_plus - given_minus)


def turning_points(
    side: int, h: Array, a: Array, trust: Array, belief: Array, l0: Array
) -> tuple[Array, NDArray[np.intp], Array, Array]:
    """Where x_H turns the decision after advice `side`; flat arrays.

    The sign changes of L within nine standard deviations of x_H are bracketed on a grid and
    bisected. Returns the decision for large x_H (1 for +, 0 for -, 1/2 for a tie), and of each sign
    change the cell, the place, and the decision before it less the one after it.
    """
    grid = np.linspace(-1.0, 1.0, 401)[:, None] * (9.0 + h)  # (points, cells)
    decided = (np.sign(decision_odds(grid, side, h, a, trust, belief, l0)) + 1) / 2
    point, cell = np.nonzero(decided[1:] != decided[:-1])
    before = decided[point, cell]
    left, right = grid[point, cell], grid[point + 1, cell]
    there = [v[cell] for v in (h, a, trust, belief, l0)]
    for _ in range(55):
        middle = (left + right) / 2
        stays = (np.sign(decision_odds(middle, side, *there)) + 1) / 2 == before
        left, right = np.where(stays, middle, left), np.where(stays, right, middle)
    return decided[-1], cell, (left + right) / 2, before - decided[point + 1, cell]


def believing_team(h: Array, a: Array, rho: Array, trust: Array, belief: Array, l0: Array) -> Array:
    """P(right) with a believed correlation; flat arrays, h and a positive, |belief| < 1.

    With mass(x) = pi P(x_H <= x, advice | +) - (1 - pi) P(x_H <= x, advice | -), the accuracy is
    P(advice | -) (1 - pi) plus the mass of the stretches decided +.
    """
    c, _, _ = advice_odds(a, l0)
    pi = 1 / (1 + np.exp(-l0))
    team = np.zeros(h.shape)
    for side in (1, -1):
        last, cell, root, fall = turning_points(side, h, a, trust, belief, l0)
        R, H, A, C, P = (v[cell] for v in np.broadcast_arrays(rho, h, a, c, pi))
        mass = P * orthant(root - H, side * (A - C), -side * R)
        mass = mass - (1 - P) * orthant(root + H, -side * (A + C), -side * R)
        np.add.at(team, cell, fall * mass)

        given_plus, given_minus = ndtr(side * (a - c)), ndtr(-side * (a + c))
        team += (1 - pi) * given_minus + last * (pi * given_plus - (1 - pi) * given_minus)
    return team


def believing_part(
    h: Array, a: Array, rho: Array, trust: Array, belief: Array, low: Array, high: Array
) -> Array:
    """P(right, low < x_A <= high | y = +1) with a believed correlation and an even prior.

    Flat arrays, h and a positive, |belief| < 1.
    """
    part = np.zeros(h.shape)
    for side, bottom, top in (
        (1, np.maximum(low, 0.0), np.maximum(high, 0.0)),
        (-1, np.minimum(low, 0.0), np.minimum(high, 0.0)),
    ):
        last, cell, root, fall = turning_points(side, h, a, trust, belief, np.zeros(h.shape))
        R, H, A, B, T = (v[cell] for v in (rho, h, a, bottom, top))
        stretch = orthant(root - H, T - A, R) - orthant(root - H, B - A, R)
        np.add.at(part, cell, fall * stretch)
        part += last * (ndtr(top - a) - ndtr(bottom - a))
    return part
