"""Two samples pooled, and the estimators of their MMD attributions over all pairs of rows."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_array

from .engine_choice import Engine
from .estimates import Estimate, averaged, tested
from .expansion import ProductKernelExpansion
from .kernels import ProductKernel
from .pair_engine import Integrals, kernel_integrals, pair_values, sum_over_tiles
from .pair_factors import mean_factors
from .permutation import label_forms, permuted_labels, two_sample_values
from .player_game import PlayerGame

__all__ = ["PooledSample", "block_mmd", "full_mmd", "permuted_mmd", "two_samples"]


def two_samples(X: Any, Y: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    """Check the samples, given as two arrays or as one with labels."""
    if (Y is None) == (labels is None):
        raise ValueError(
            "fit takes two samples X and Y, or X with labels; give one of Y and labels"
        )
    first = check_array(X, dtype=np.float64, input_name="X")
    if labels is None:
        second = check_array(Y, dtype=np.float64, input_name="Y")
        if first.shape[1] != second.shape[1]:
            raise ValueError(f"X has {first.shape[1]} features, but Y has {second.shape[1]}")
        names, others = getattr(X, "columns", None), getattr(Y, "columns", None)
        if names is not None and others is not None and list(names) != list(others):
            raise ValueError("The feature names of X and Y must agree, in the same order")
        return first, second
    labels = check_array(labels, ensure_2d=False, dtype=None, input_name="labels")
    found = np.unique(labels)
    if labels.ndim != 1 or len(labels) != len(first) or len(found) != 2:
        raise ValueError(
            f"labels must have shape ({len(first)},) and hold two different values, got shape "
            f"{labels.shape} with {len(found)} values"
        )
    return first[labels == found[0]], first[labels == found[1]]


@dataclass(frozen=True)
class PooledSample:
    """Two samples, one below the other, with their kernel and players.

    Parameters
    ----------
    kernel : ProductKernel
        Kernel of the features.
    rows : ndarray of shape (n + m, d)
        The first sample's rows before the second's.
    labels : ndarray of shape (n + m,)
        1.0 in the first sample, 0.0 in the second.
    player : ndarray of shape (d,)
        Which player a feature belongs to.
    n_players : int
        Number of players.
    removal : {"identity", "mean"}
        What an absent player's factor becomes: 1, or its mean over all pairs.
    """

    kernel: ProductKernel
    rows: np.ndarray
    labels: np.ndarray
    player: np.ndarray
    n_players: int
    removal: str = "identity"

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of rows of each sample."""
        n = int(self.labels.sum())
        return n, len(self.labels) - n

    @property
    def samples(self) -> tuple[np.ndarray, np.ndarray]:
        """The two samples."""
        return self.rows[self.labels == 1], self.rows[self.labels == 0]

    def integrals(self, tol: float, engine: Engine) -> Integrals:
        """Return the function that computes tiles of the matrices A_j."""
        absence = np.ones(self.n_players)
        if self.removal == "mean":
            absence = mean_factors(self.kernel, self.rows, self.player, self.n_players)
        return kernel_integrals(
            self.kernel, self.rows, self.player, self.n_players, absence, tol=tol, engine=engine
        )

    def witness_game(self) -> PlayerGame:
        """Write the witness function as a kernel expansion at the pooled rows."""
        n, m = self.sizes
        coef = self.labels / n - (1 - self.labels) / m
        expansion = ProductKernelExpansion(self.rows, coef[:, None], np.zeros(1), (self.kernel,))
        return PlayerGame(expansion, self.player, self.n_players)


def mmd_weights(h: np.ndarray, statistic: str, rows: slice, columns: slice) -> np.ndarray:
    """Compute a tile of the weights of MMD^2, from labels 1 (first sample) and 0."""
    n, m = h.sum(), (1 - h).sum()
    if statistic == "v":
        u = h / n - (1 - h) / m
        return np.outer(u[rows], u[columns])
    first = np.outer(h[rows], h[columns]) / (n * (n - 1))
    second = np.outer(1 - h[rows], 1 - h[columns]) / (m * (m - 1))
    across = (np.outer(h[rows], 1 - h[columns]) + np.outer(1 - h[rows], h[columns])) / (n * m)
    W = first + second - across
    if rows == columns:
        np.fill_diagonal(W, 0.0)
    return W


def full_mmd(
    pool: PooledSample, statistic: str, *, tol: float, engine: Engine, n_jobs: int | None
) -> Estimate:
    """Compute the values over all pairs.

    Parameters
    ----------
    pool : PooledSample
        Both samples.
    statistic : {"u", "v"}
        Unbiased or biased.
    tol : float
        Tolerance of the quadrature.
    engine : Engine
        Who computes the integrals.
    n_jobs : int or None
        Threads.

    Returns
    -------
    Estimate
        Exact values.
    """
    values, _, bound = pair_values(
        len(pool.rows),
        pool.n_players,
        pool.integrals(tol, engine),
        partial(mmd_weights, pool.labels, statistic),
        n_jobs,
    )
    return Estimate(pool.kernel.scale * values, pool.kernel.scale * bound)


def block_mmd(
    pool: PooledSample,
    statistic: str,
    n_blocks: int | None,
    generator: np.random.RandomState,
    **options: Any,
) -> Estimate:
    """Average exact values over blocks of both samples.

    Parameters
    ----------
    pool : PooledSample
        Both samples.
    statistic : {"u", "v"}
        Unbiased or biased.
    n_blocks : int or None
        Number of blocks; None is the square root of the smaller sample.
    generator : RandomState
        Shuffles the rows.
    **options
        ``tol``, ``engine`` and ``n_jobs`` of `full_mmd`.

    Returns
    -------
    Estimate
        With standard errors.
    """
    n, m = pool.sizes
    count = max(2, int(np.sqrt(min(n, m)))) if n_blocks is None else n_blocks
    if min(n, m) // count < 2:
        raise ValueError(f"n_blocks={count} leaves fewer than 2 rows a block and sample ({n}, {m})")
    first, second = generator.permutation(n), n + generator.permutation(m)
    blocks = []
    for one, two in zip(np.array_split(first, count), np.array_split(second, count), strict=True):
        chosen = np.concatenate([one, two])
        part = replace(pool, rows=pool.rows[chosen], labels=pool.labels[chosen])
        blocks.append(full_mmd(part, statistic, **options))
    return averaged(blocks)


def permuted_mmd(
    pool: PooledSample,
    statistic: str,
    n_permutations: int,
    max_t: bool,
    generator: np.random.RandomState,
    *,
    tol: float,
    engine: Engine,
    n_jobs: int | None,
) -> Estimate:
    """Compute the values over all pairs, and those of permuted labels in the same pass.

    Parameters
    ----------
    pool : PooledSample
        Both samples.
    statistic : {"u", "v"}
        Unbiased or biased.
    n_permutations : int
        Number of permutations.
    max_t : bool
        Whether to adjust the p-values for all players.
    generator : RandomState
        Permutes the labels.
    tol, engine, n_jobs
        As in `full_mmd`.

    Returns
    -------
    Estimate
        With p-values.
    """
    H = permuted_labels(pool.labels, n_permutations, generator)
    found = sum_over_tiles(
        len(pool.rows),
        pool.n_players,
        pool.integrals(tol, engine),
        partial(label_forms, H, statistic == "u"),
        n_jobs,
    )
    scale = pool.kernel.scale
    values = scale * two_sample_values(found.total, *pool.sizes, statistic)
    return tested(values, 4 * scale * found.worst, max_t)
