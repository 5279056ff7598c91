"""Weighted mean, leading eigenvalues of the covariance, and the data's diameter.

S = sum_i w_i (x_i - mu)(x_i - mu)^T with sum w = 1. The smaller of the two Gram matrices gives the
eigenvalues where min(n, D) <= 2000; a randomised range finder of the centred operator, with power
iterations, where both sides are longer.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from equipoise.blocks import iter_blocks

__all__ = ["DataSpectrum", "data_spectrum", "squared_diameter"]

#: Longest side of a matrix that is decomposed exactly.
EXACT_SIDE = 2000


class DataSpectrum(NamedTuple):
    """What the thresholds need to know of the data."""

    mean: np.ndarray  #: (D,)
    eigenvalues: np.ndarray  #: the largest ones, descending
    total_variance: float  #: trace of S
    n_features: int


def weighted_covariance(X: np.ndarray, mean: np.ndarray, share: np.ndarray | None) -> np.ndarray:
    """S (D, D), summed over blocks of rows so that no centred copy of X is needed."""
    n, D = X.shape
    S = np.zeros((D, D))
    for rows in iter_blocks(n, 16 * D, working_memory=16):
        Y = X[rows] - mean
        S += Y.T @ Y if share is None else Y.T @ (share[rows, None] * Y)
    return S / n if share is None else S


def gram(X: np.ndarray, mean: np.ndarray, share: np.ndarray | None) -> np.ndarray:
    """The (n, n) matrix with S's eigenvalues."""
    Y = X - mean
    root = np.full(len(X), len(X) ** -0.5) if share is None else np.sqrt(share)
    Y *= root[:, None]
    return Y @ Y.T


def randomised_eigenvalues(
    X: np.ndarray, mean: np.ndarray, share: np.ndarray | None, n_values: int
) -> np.ndarray:
    """Leading eigenvalues of S by a range finder with 10 oversamples and 4 power iterations."""
    n, D = X.shape
    weight = np.full(n, 1 / n) if share is None else share

    def times_S(V: np.ndarray) -> np.ndarray:
        projected = weight[:, None] * (X @ V - mean @ V)
        return X.T @ projected - np.outer(mean, projected.sum(axis=0))

    Q = np.random.RandomState(0).standard_normal((D, min(n_values + 10, D)))
    for _ in range(5):
        Q, _ = np.linalg.qr(times_S(Q))
    return np.linalg.eigvalsh(Q.T @ times_S(Q))[::-1][:n_values]


def data_spectrum(
    X: np.ndarray, n_values: int, sample_weight: np.ndarray | None = None
) -> DataSpectrum:
    """Mean, the `n_values` largest eigenvalues of the covariance, and its trace.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Finite rows.
    n_values : int
        How many eigenvalues; cut to min(n_samples, n_features).
    sample_weight : ndarray of shape (n_samples,), optional
        Weights, >= 0, not all zero.

    Returns
    -------
    DataSpectrum
        In float64.
    """
    X = np.asarray(X, dtype=np.float64)
    n, D = X.shape
    share = None if sample_weight is None else sample_weight / sample_weight.sum()
    mean = X.mean(axis=0) if share is None else share @ X
    n_values = min(n_values, n, D)
    exact = min(n, D) <= EXACT_SIDE
    if exact:
        S = weighted_covariance(X, mean, share) if D <= n else gram(X, mean, share)
        total = float(np.trace(S))
    else:
        weight = np.full(n, 1 / n) if share is None else share
        total = sum(
            float(weight[rows] @ ((X[rows] - mean) ** 2).sum(axis=1))
            for rows in iter_blocks(n, 16 * D, working_memory=16)
        )
    if not np.isfinite(total):
        raise ValueError(
            f"X has entries up to {np.abs(X).max():.3g}, whose squares overflow; scale X down"
        )
    if exact:
        side = len(S)
        values = eigh(S, eigvals_only=True, subset_by_index=[side - n_values, side - 1])[::-1]
    else:
        values = randomised_eigenvalues(X, mean, share, n_values)
    # Rounding leaves constant data a variance of this size; it is none.
    noise = np.finfo(float).eps ** 2 * 16 * n * max(float((mean**2).sum()), np.finfo(float).tiny)
    if total <= noise:
        spread = float(np.ptp(X, axis=0).max())
        if 0 < spread < 1e-150 and np.abs(mean).max() < 1e-140:
            raise ValueError(
                f"X's entries differ by at most {spread:.3g}, whose squares underflow; scale X up"
            )
        return DataSpectrum(mean, np.zeros(n_values), 0.0, D)
    return DataSpectrum(mean, np.maximum(values, 0.0), total, D)


def squared_diameter(X: np.ndarray, mean: np.ndarray) -> float:
    """Square of the largest distance between two rows, or an upper bound of it.

    A pair farther apart than a known distance d has radii r_i + r_1 >= d around the mean, which
    leaves few rows; where more than 2000 are left, (r_1 + r_2)^2 bounds the square from above.
    """
    r = np.linalg.norm(X - mean, axis=1)
    order = np.argsort(-r)
    farthest = X[order[0]]
    for _ in range(3):
        distance = np.linalg.norm(X - farthest, axis=1)
        farthest = X[np.argmax(distance)]
    known = float(distance.max())
    Y = X[r + r[order[0]] >= known * (1 - 1e-12)] - mean
    if len(Y) > EXACT_SIDE:
        return float(r[order[0]] + r[order[1]]) ** 2
    norms = (Y**2).sum(axis=1)
    return max(float((norms[:, None] + norms - 2 * Y @ Y.T).max()), known**2)
