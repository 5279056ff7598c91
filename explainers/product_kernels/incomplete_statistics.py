"""Attributions of MMD and HSIC estimated from drawn pairs of rows, with standard errors.

A U-statistic is a mean over pairs (MMD), or over quadruples of different rows (HSIC),

    MMD^2   E k(x, x') + E k(y, y') - 2 E k(x, y)
    HSIC    E k(x_a, x_b) [l(y_a, y_b) + l(y_c, y_d) - l(y_a, y_c) - l(y_b, y_d)],

and so are its Shapley values, with A_j in the place of k. Means over pairs drawn at random are
unbiased for them, at a cost that doesn't depend on the number of rows.
"""

import numpy as np

from .engine_choice import Engine
from .engines import LANES, numpy_integrals
from .estimates import Estimate, over_draws
from .hsic_engine import Side
from .kernels import ProductKernel, paired_factors
from .nodes import quadrature_rules
from .pair_engine import integrate_pairs

__all__ = ["incomplete_hsic", "incomplete_mmd"]


def incomplete_mmd(
    kernel: ProductKernel,
    X: np.ndarray,
    Y: np.ndarray,
    player: np.ndarray,
    n_players: int,
    n_pairs: int,
    *,
    tol: float,
    engine: Engine,
    generator: np.random.RandomState,
) -> Estimate:
    """Estimate the values of the U-statistic from pairs drawn with replacement.

    Parameters
    ----------
    kernel : ProductKernel
        Kernel.
    X, Y : ndarray of shape (n, d), (m, d)
        Samples.
    player : ndarray of shape (d,)
        Which player a column belongs to.
    n_players : int
        Number of players.
    n_pairs : int
        Pairs within X, within Y, and across.
    tol : float
        Tolerance of the quadrature.
    engine : Engine
        Who computes the integrals.
    generator : RandomState
        Draws the pairs.

    Returns
    -------
    Estimate
        With standard errors.
    """
    total, variance, worst = np.zeros(n_players), np.zeros(n_players), 0.0
    for first, second, times in ((X, X, 1.0), (Y, Y, 1.0), (X, Y, -2.0)):
        a = generator.randint(len(first), size=n_pairs)
        if first is second:  # a different row
            b = (a + generator.randint(1, len(first), size=n_pairs)) % len(first)
        else:
            b = generator.randint(len(second), size=n_pairs)
        A, bound = paired_values(kernel, first[a], second[b], player, n_players, tol, engine)
        total += times * A.mean(axis=0)
        variance += times**2 * A.var(axis=0, ddof=1) / n_pairs
        worst += abs(times) * bound
    c = kernel.scale
    return Estimate(c * total, c * worst, c * np.sqrt(variance))


def incomplete_hsic(
    players: Side,
    other: Side,
    n_pairs: int,
    *,
    tol: float,
    engine: Engine,
    generator: np.random.RandomState,
) -> Estimate:
    """Estimate the values of unbiased HSIC from quadruples of different rows.

    Parameters
    ----------
    players : Side
        The side whose players get the values.
    other : Side
        The other side, taken whole.
    n_pairs : int
        Quadruples drawn, each a pair of rows of `players` and two more rows of `other`.
    tol : float
        Tolerance of the quadrature.
    engine : Engine
        Who computes the integrals.
    generator : RandomState
        Draws the quadruples.

    Returns
    -------
    Estimate
        With standard errors.
    """
    a, b, c, d = different_rows(len(players.sample), n_pairs, generator)
    whole = np.zeros(len(other.kernel.factors), dtype=np.intp)

    def kernel_of(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        rows = other.sample[first], other.sample[second]
        return paired_factors(other.kernel, *rows, whole, 1)[:, 0]

    weights = kernel_of(a, b) + kernel_of(c, d) - kernel_of(a, c) - kernel_of(b, d)
    A, bound = paired_values(
        players.kernel, players.sample[a], players.sample[b], players.player, players.n_players,
        tol, engine,
    )  # fmt: skip
    shares = (players.kernel.scale * other.kernel.scale * weights)[:, None] * A
    error = np.abs(weights).mean() * bound * players.kernel.scale * other.kernel.scale
    return over_draws(shares, float(error))


def different_rows(n: int, size: int, generator: np.random.RandomState) -> np.ndarray:
    """Draw quadruples of different rows, uniformly, of shape (4, size)."""
    drawn = generator.randint(n, size=(size, 4))
    while True:
        ordered = np.sort(drawn, axis=1)
        again = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
        if not again.any():
            return drawn.T
        drawn[again] = generator.randint(n, size=(int(again.sum()), 4))


def paired_values(
    kernel: ProductKernel,
    X: np.ndarray,
    Y: np.ndarray,
    player: np.ndarray,
    n_players: int,
    tol: float,
    engine: Engine,
) -> tuple[np.ndarray, float]:
    """Compute A_j for the pairs (X_r, Y_r), of shape (n_pairs, n_players), and an error bound."""
    F = paired_factors(kernel, X, Y, player, n_players, minus_one=True)
    rules = quadrature_rules(n_players, "SV", "auto", engine.tolerance(tol), kernel.unit)
    if engine.name == "torch":
        from .torch_engine import torch_integrals

        return torch_integrals(F, rules, engine.device, engine.dtype)
    if engine.name == "numpy":
        return numpy_integrals(F, 1.0, rules)[:2]
    n = len(X)
    padded = np.zeros((-(-n // LANES) * LANES, n_players))
    padded[:n] = F
    D = np.ascontiguousarray(np.swapaxes(padded.reshape(-1, LANES, n_players), 1, 2))[None]
    worst, _ = integrate_pairs(D, np.ones(n_players), *rules)
    return np.swapaxes(D[0], 1, 2).reshape(-1, n_players)[:n], worst
