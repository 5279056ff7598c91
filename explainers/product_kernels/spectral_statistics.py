"""Estimates of MMD and HSIC attributions for large samples from drawn frequencies.

With frequencies omega from the kernel's spectral law and a random order of the players, the squared
difference of the characteristic functions grows player by player, and each player is credited
with its increment. The mean over draws is unbiased for the Shapley value, in time linear in the
sample size, and every draw's credits sum to its own statistic.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from equipoise.blocks import map_blocks

from .estimates import Estimate, over_draws
from .factors import HammingFactor, LaplacianFactor, RBFFactor
from .hsic_engine import Side
from .kernels import ProductKernel

__all__ = [
    "draw_frequencies",
    "spectral_credits",
    "spectral_hsic",
    "spectral_mmd",
]


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


#: From the phases e = exp(i omega' U) of all rows, of shape (N,), to a statistic.
PhaseStatistic = Callable[[np.ndarray], float]


def walk_credits(
    statistic: PhaseStatistic, steps: list[np.ndarray], order: np.ndarray
) -> np.ndarray:
    """Walk through the players in an order and back; credit each with its mean increment."""
    credits = np.zeros(len(order))
    nobody = np.ones(len(steps[0]), dtype=complex)
    empty = statistic(nobody)
    for walk in (order, order[::-1]):
        e, before = nobody, empty
        for g in walk:
            e = e * steps[g]
            after = statistic(e)
            credits[g] += (after - before) / 2
            before = after
    return credits


def spectral_credits(
    statistic_of: Callable[[int], PhaseStatistic],
    kernel: ProductKernel,
    U: np.ndarray,
    player: np.ndarray,
    n_players: int,
    n_draws: int,
    generator: np.random.RandomState,
    n_jobs: int | None = None,
) -> np.ndarray:
    """Credit the increments of a statistic of phases to the players.

    Parameters
    ----------
    statistic_of : callable
        From the number of a draw to its statistic.
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
    n_jobs : int, optional
        Threads over draws.

    Returns
    -------
    ndarray of shape (n_draws, n_players)
        Credits; each row sums to the draw's statistic with all players minus that with none.
    """
    omega = draw_frequencies(kernel, generator, n_draws)
    members = [np.flatnonzero(player == g) for g in range(n_players)]
    orders = [generator.permutation(n_players) for _ in range(n_draws)]

    def one(r: int) -> np.ndarray:
        steps = [np.exp(1j * (U[:, inside] @ omega[r, inside])) for inside in members]
        return walk_credits(statistic_of(r), steps, orders[r])

    return np.stack(map_blocks(one, range(n_draws), n_jobs))


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
    n_jobs: int | None = None,
) -> Estimate:
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
    n_jobs : int, optional
        Threads over draws.

    Returns
    -------
    Estimate
        With standard errors.
    """
    of_all_draws = partial(phase_mmd, len(X), len(Y), statistic)
    credits = spectral_credits(
        lambda r: of_all_draws, kernel, np.vstack([X, Y]), player, n_players, n_draws, generator,
        n_jobs,
    )  # fmt: skip
    return over_draws(kernel.scale * credits)


def phase_hsic(features: np.ndarray, e: np.ndarray) -> float:
    """Compute sum_c |sum_a e_a psi_ac|^2 / n^2 for centred features psi of the target."""
    return float((np.abs(e @ features) ** 2).sum() / len(e) ** 2)


def spectral_hsic(
    x: Side,
    y: Side,
    scaling: str,
    n_draws: int,
    generator: np.random.RandomState,
    n_jobs: int | None = None,
) -> Estimate:
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
    n_jobs : int, optional
        Threads over draws.

    Returns
    -------
    Estimate
        With standard errors.
    """
    n = len(x.sample)
    first = y.kernel.factors[0]
    if len(y.kernel.factors) == 1 and isinstance(first, HammingFactor) and first.lam == 1:
        classes = np.unique(y.sample, return_inverse=True)[1].ravel()
        one_hot = np.eye(classes.max() + 1)[classes]
        of_classes = partial(phase_hsic, one_hot - one_hot.mean(axis=0))

        def statistic_of(r: int) -> PhaseStatistic:
            return of_classes

    else:
        omega = draw_frequencies(y.kernel, generator, n_draws)

        def statistic_of(r: int) -> PhaseStatistic:
            psi = np.exp(-1j * (y.sample @ omega[r]))[:, None]
            return partial(phase_hsic, psi - psi.mean(axis=0))

    credits = spectral_credits(
        statistic_of, x.kernel, x.sample, x.player, x.n_players, n_draws, generator, n_jobs
    )
    square = 1.0 if scaling == "n" else (n / (n - 1)) ** 2
    return over_draws(credits * (square * x.kernel.scale * y.kernel.scale))
