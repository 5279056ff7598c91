"""Estimates of MMD and HSIC attributions for large samples, with standard errors.

"block" averages exact values over blocks of rows. "incomplete" draws pairs. "spectral" draws from
the kernel's spectral law: with frequencies omega and a random order of the players, the squared
difference of the characteristic functions grows player by player, and each player is credited
with its increment. The mean over draws is unbiased for the Shapley value, in time linear in the
sample size, and every draw's credits sum to its own statistic.
"""

from functools import partial

import numpy as np

from .engines import LANES
from .factors import HammingFactor, LaplacianFactor, RBFFactor
from .hsic_engine import Side
from .kernels import ProductKernel, paired_factors
from .nodes import quadrature_rules
from .pair_engine import integrate_pairs

__all__ = [
    "block_estimate",
    "draw_frequencies",
    "incomplete_mmd",
    "spectral_credits",
    "spectral_hsic",
    "spectral_mmd",
]


def block_estimate(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Average over blocks, of shape (n_blocks, n_players); return means and standard errors."""
    return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))


def incomplete_mmd(
    kernel: ProductKernel,
    X: np.ndarray,
    Y: np.ndarray,
    player: np.ndarray,
    n_players: int,
    n_pairs: int,
    tol: float,
    generator: np.random.RandomState,
) -> tuple[np.ndarray, np.ndarray, float]:
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
    generator : RandomState
        Draws the pairs.

    Returns
    -------
    values, standard_errors : ndarray of shape (n_players,)
        Estimates.
    error_bound : float
        Bound on the quadrature's error.
    """
    total, variance, worst = np.zeros(n_players), np.zeros(n_players), 0.0
    for first, second, times in ((X, X, 1.0), (Y, Y, 1.0), (X, Y, -2.0)):
        a = generator.randint(len(first), size=n_pairs)
        if first is second:  # a different row
            b = (a + generator.randint(1, len(first), size=n_pairs)) % len(first)
        else:
            b = generator.randint(len(second), size=n_pairs)
        A, bound = paired_values(kernel, first[a], second[b], player, n_players, tol)
        total += times * A.mean(axis=0)
        variance += times**2 * A.var(axis=0, ddof=1) / n_pairs
        worst += abs(times) * bound
    c = kernel.scale
    return c * total, c * np.sqrt(variance), c * worst


def paired_values(
    kernel: ProductKernel,
    X: np.ndarray,
    Y: np.ndarray,
    player: np.ndarray,
    n_players: int,
    tol: float,
) -> tuple[np.ndarray, float]:
    """Compute A_j for the pairs (X_r, Y_r), of shape (n_pairs, n_players), and an error bound."""
    n = len(X)
    F = paired_factors(kernel, X, Y, player, n_players, minus_one=True)
    padded = np.zeros((-(-n // LANES) * LANES, n_players))
    padded[:n] = F
    D = np.ascontiguousarray(np.swapaxes(padded.reshape(-1, LANES, n_players), 1, 2))[None]
    rules = quadrature_rules(n_players, "SV", "auto", tol, kernel.unit)
    worst, _ = integrate_pairs(D, np.ones(n_players), *rules)
    return np.swapaxes(D[0], 1, 2).reshape(-1, n_players)[:n], worst


def draw_frequencies(
    kernel: ProductKernel, generator: np.random.RandomState, n_draws: int
) -> np.ndarray:
    """Draw from the factors' spectral laws, of shape (n_draws, d).

    RBF factors exp(-g x^2) have normal frequencies of variance 2 g, Laplacian factors exp(-g |x|)
    Cauchy frequencies of scale g.
    """
    columns = []
    for factor in kernel.factors:
        if isinstance(factor, RBFFactor):
            columns.append(np.sqrt(2 * factor.parameter) * generator.standard_normal(n_draws))
        elif isinstance(factor, LaplacianFactor):
            columns.append(factor.parameter * generator.standard_cauchy(n_draws))
        else:
            raise ValueError(
                f"estimator='spectral' is for RBFFactor and LaplacianFactor, got {factor!r}"
            )
    return np.stack(columns, axis=1)


def spectral_credits(
    statistic: partial,
    kernel: ProductKernel,
    U: np.ndarray,
    player: np.ndarray,
    n_players: int,
    n_draws: int,
    generator: np.random.RandomState,
) -> np.ndarray:
    """Credit the increments of a statistic of phases to the players.

    Parameters
    ----------
    statistic : callable
        From complex exponentials e of shape (N,) to a number.
    kernel : ProductKernel
        RBF and Laplacian factors.
    U : ndarray of shape (N, d)
        Pooled sample.
    player : ndarray of shape (d,)
        Which player a column belongs to.
    n_players : int
        Number of players.
    n_draws : int
        Number of draws; each is walked through in a random order and back.
    generator : RandomState
        Draws frequencies and orders.

    Returns
    -------
    ndarray of shape (n_draws, n_players)
        Credits; each row sums to the draw's statistic with all players minus that with none.
    """
    omega = draw_frequencies(kernel, generator, n_draws)
    members = [np.flatnonzero(player == g) for g in range(n_players)]
    credits = np.zeros((n_draws, n_players))
    empty = statistic(np.ones(len(U), dtype=complex))
    for r in range(n_draws):
        order = generator.permutation(n_players)
        steps = [np.exp(1j * (U[:, inside] @ omega[r, inside])) for inside in members]
        for walk in (order, order[::-1]):
            e = np.ones(len(U), dtype=complex)
            before = empty
            for g in walk:
                e = e * steps[g]
                after = statistic(e)
                credits[r, g] += (after - before) / 2
                before = after
    return credits


def phase_mmd(n: int, m: int, statistic: str, e: np.ndarray) -> float:
    """Compute the two-sample statistic of one frequency from its phases."""
    x, y = e[:n].sum(), e[n:].sum()
    within = (n * (n - 1), m * (m - 1)) if statistic == "u" else (n * n, m * m)
    return abs(x) ** 2 / within[0] + abs(y) ** 2 / within[1] - 2 * (x * y.conj()).real / (n * m)


def spectral_mmd(
    kernel: ProductKernel,
    X: np.ndarray,
    Y: np.ndarray,
    player: np.ndarray,
    n_players: int,
    statistic: str,
    n_draws: int,
    generator: np.random.RandomState,
) -> tuple[np.ndarray, np.ndarray]:
    """Estimate the values of MMD^2 from drawn frequencies.

    Parameters
    ----------
    kernel : ProductKernel
        RBF and Laplacian factors.
    X, Y : ndarray of shape (n, d), (m, d)
        Samples.
    player : ndarray of shape (d,)
        Which player a column belongs to.
    n_players : int
        Number of players.
    statistic : {"u", "v"}
        Unbiased or biased.
    n_draws : int
        Number of draws.
    generator : RandomState
        Draws frequencies and orders.

    Returns
    -------
    values, standard_errors : ndarray of shape (n_players,)
        Estimates.
    """
    credits = kernel.scale * spectral_credits(
        partial(phase_mmd, len(X), len(Y), statistic),
        kernel, np.vstack([X, Y]), player, n_players, n_draws, generator,
    )  # fmt: skip
    return block_estimate(credits)


def phase_hsic(features: np.ndarray, e: np.ndarray) -> float:
    """Compute sum_c |sum_a e_a psi_ac|^2 / n^2 for centred features psi of the target."""
    return float((np.abs(e @ features) ** 2).sum() / len(e) ** 2)


def spectral_hsic(
    x: Side, y: Side, scaling: str, n_draws: int, generator: np.random.RandomState
) -> np.ndarray:
    """Estimate the values of biased HSIC from drawn frequencies.

    Parameters
    ----------
    x : Side
        RBF and Laplacian factors; its players are credited.
    y : Side
        The target: one delta factor, or RBF and Laplacian factors, whose frequencies are drawn too.
    scaling : {"n", "n-1"}
        Denominator.
    n_draws : int
        Number of draws.
    generator : RandomState
        Draws frequencies and orders.

    Returns
    -------
    ndarray of shape (n_draws, n_players)
        Credits of each draw.
    """
    n = len(x.sample)
    first = y.kernel.factors[0]
    if len(y.kernel.factors) == 1 and isinstance(first, HammingFactor) and first.lam == 1:
        classes = np.unique(y.sample, return_inverse=True)[1].ravel()
        one_hot = np.eye(classes.max() + 1)[classes]
        psi: list[np.ndarray] = [one_hot - one_hot.mean(axis=0)] * n_draws
    else:
        phases = np.exp(1j * y.sample @ draw_frequencies(y.kernel, generator, n_draws).T)
        psi = [column[:, None] - column.mean() for column in phases.T]
    credits = np.concatenate(
        [
            spectral_credits(
                partial(phase_hsic, features.conj()), x.kernel, x.sample, x.player, x.n_players, 1,
                generator,
            )
            for features in psi
        ]
    )  # fmt: skip
    square = 1.0 if scaling == "n" else (n / (n - 1)) ** 2
    return credits * (square * x.kernel.scale * y.kernel.scale)
