"""Where the endmembers start: data rows, k-means centres, furthest rows, VCA, or an array.

Rows are drawn by cumulative weight in an order that depends on their values alone, so that an
integer weight is the same as repeating the row, and the order of the rows doesn't matter.
"""

import numpy as np
from sklearn.cluster import KMeans

from .decoders import furthest_rows
from .pure_pixels import vertex_components

__all__ = ["initial_endmembers"]


def fixed_direction(D: int) -> np.ndarray:
    """A direction without symmetries, the same for every fit: it orders rows by their values."""
    return np.random.RandomState(0).standard_normal(D)


def draw_distinct_rows(
    Y: np.ndarray, weight: np.ndarray, K: int, rng: np.random.RandomState
) -> np.ndarray:
    """K rows with different values, drawn by weight; all different ones where there are fewer."""
    key = Y @ fixed_direction(Y.shape[1])
    order = np.argsort(key, kind="stable")
    cumulative = np.cumsum(weight[order])
    spread = np.abs(key).max()
    gaps = np.diff(key[order], prepend=-np.inf) > 1e-12 * spread
    value = np.cumsum(gaps)  # equal rows share a value
    chosen: dict[int, int] = {}
    n_distinct = int(value[-1])
    # Weights may make some rows nearly impossible: after many draws the rest is taken in order.
    for u in rng.uniform(size=50 * K):
        place = min(int(np.searchsorted(cumulative, u * cumulative[-1], side="right")), len(Y) - 1)
        chosen.setdefault(int(value[place]), int(order[place]))
        if len(chosen) == min(K, n_distinct):
            break
    for place in range(len(Y)):
        if len(chosen) == min(K, n_distinct):
            break
        chosen.setdefault(int(value[place]), int(order[place]))
    return np.array(list(chosen.values()))


def pad_rows(rows: np.ndarray, K: int, scale: float, rng: np.random.RandomState) -> np.ndarray:
    """K rows: those given, then copies; copies are moved apart, else they would stay equal."""
    if len(rows) >= K:
        return rows[:K]
    extra = rows[np.arange(K - len(rows)) % len(rows)]
    return np.vstack([rows, extra + 0.1 * scale * rng.standard_normal(extra.shape)])


def initial_endmembers(
    Y: np.ndarray,
    weight: np.ndarray,
    K: int,
    init: str | np.ndarray,
    scale: float,
    rng: np.random.RandomState,
) -> np.ndarray:
    """Centred endmembers (D, K) to start from.

    Parameters
    ----------
    Y : ndarray of shape (n_samples, n_features)
        Centred rows, each of positive weight.
    weight : ndarray of shape (n_samples,)
        Their weights.
    K : int
        Number of endmembers.
    init : {"vca", "data", "kmeans", "furthest"} or ndarray of shape (K, n_features)
        The way, or centred endmembers.
    scale : float
        Standard deviation of a feature; the size of what tells copies apart.
    rng : RandomState
        Source of randomness.

    Returns
    -------
    ndarray of shape (n_features, K)
        In float64.
    """
    if isinstance(init, np.ndarray):
        return init.T.copy()
    if init == "kmeans":
        seed = rng.randint(2**31 - 1)
        n_clusters = min(K, len(np.unique(Y, axis=0)))
        means = KMeans(n_clusters, n_init=1, random_state=seed).fit(Y, sample_weight=weight)
        rows = means.cluster_centers_
    elif init == "furthest":
        start = draw_distinct_rows(Y, weight, 1, rng)[0]
        # The first row is replaced once others are known: it was drawn, not chosen.
        chosen = furthest_rows(Y, K + 1, int(start))
        rows = Y[chosen[1:]] if len(chosen) > K else Y[chosen]
    elif init == "vca":
        rows = vertex_components(Y, weight, K, rng)
    else:
        rows = Y[draw_distinct_rows(Y, weight, K, rng)]
    return pad_rows(np.asarray(rows, dtype=np.float64), K, scale, rng).T.copy()
