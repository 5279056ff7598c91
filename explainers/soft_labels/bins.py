"""Bins of scores: of equal width, of equal mass, and as many as stay monotone."""

import numpy as np

__all__ = ["assign_bins", "bin_sums", "uniform_bins"]


def uniform_bins(scores: np.ndarray, n_bins: int, closed: str) -> np.ndarray:
    """Bin of each score: [lo, hi) with 1 in the last, or (lo, hi] with 0 in the first."""
    if closed == "left":
        return np.minimum((scores * n_bins).astype(np.int64), n_bins - 1)
    return np.maximum(np.ceil(scores * n_bins).astype(np.int64) - 1, 0)


def split_sizes(n: int, n_bins: int) -> np.ndarray:
    """Where numpy.array_split ends each of n_bins parts of n items."""
    small, larger = divmod(n, n_bins)
    return np.cumsum(np.where(np.arange(n_bins) < larger, small + 1, small))


def quantile_bins(scores: np.ndarray, n_bins: int, merge_ties: bool) -> np.ndarray:
    """Bin of each score, of equal numbers of items in a stable order of the scores."""
    order = np.argsort(scores, kind="stable")
    ends = split_sizes(len(scores), n_bins)
    if merge_ties:
        # A boundary inside a run of equal scores moves to the end of the run.
        ranked = scores[order]
        inside = (ends > 0) & (ends < len(ranked))
        ends[inside] = np.searchsorted(ranked, ranked[ends[inside] - 1], side="right")
    bins = np.empty(len(scores), dtype=np.int64)
    bins[order] = np.searchsorted(ends, np.arange(len(scores)), side="right")
    return bins


def sweep_bins(scores: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Equal-mass bins, as many as keep the bins' mean a non-decreasing (Roelofs et al. 2022)."""
    order = np.argsort(scores, kind="stable")
    ranked = a[order]
    n = len(ranked)
    if (np.diff(ranked) >= 0).all():
        return quantile_bins(scores, n, merge_ties=False)
    total = np.concatenate([[0.0], np.cumsum(ranked)])
    best = 1
    for n_bins in range(2, n + 1):
        ends = split_sizes(n, n_bins)
        starts = np.concatenate([[0], ends[:-1]])
        means = (total[ends] - total[starts]) / (ends - starts)
        if (np.diff(means) < -1e-12).any():
            break
        best = n_bins
    return quantile_bins(scores, best, merge_ties=False)


def assign_bins(
    scores: np.ndarray, a: np.ndarray, n_bins: int, strategy: str, closed: str, merge_ties: bool
) -> np.ndarray:
    if strategy == "uniform":
        return uniform_bins(scores, n_bins, closed)
    if strategy == "quantile":
        return quantile_bins(scores, n_bins, merge_ties)
    return sweep_bins(scores, a)


def bin_sums(bins: np.ndarray, *columns: np.ndarray) -> tuple[np.ndarray, ...]:
    """Sum of each column over each bin."""
    n_bins = int(bins.max()) + 1
    return tuple(np.bincount(bins, column, n_bins) for column in columns)
