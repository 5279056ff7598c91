"""Fully constrained least squares: min ||x - W a|| over a >= 0 with sum a = 1, exactly.

With one coordinate p of the support eliminated by a_p = 1 - sum of the others, the reduced problem
on a support is an unconstrained least-squares problem in the differences W_k - W_p. An active-set
method in the manner of Lawson and Hanson moves the support: it ends after finitely many steps at
the point where the multipliers are nowhere negative (Heinz and Chang 2001 state the problem for
mixed pixels).
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from equipoise.blocks import iter_blocks, map_blocks

__all__ = ["FCLSUnmixer", "fcls"]


#: Most components for which the search begins with all of them present.
FULL_SUPPORT = 32


@njit(cache=True, nogil=True)
def solve_on_support(
    G: np.ndarray,
    h: np.ndarray,
    support: np.ndarray,
    size: int,
    ridge: float,
    L: np.ndarray,
    s: np.ndarray,
) -> None:
    """Fill s[:size] with the sum-to-one least-squares solution on support[:size]."""
    n = size - 1
    p = support[n]
    jitter = 0.0
    done = False
    while not done:
        done = True
        for j in range(n):
            for i in range(j, n):
                a, b = support[i], support[j]
                entry = G[a, b] - G[a, p] - G[p, b] + G[p, p]
                if i == j:
                    diagonal = entry
                    entry += jitter
                for k in range(j):
                    entry -= L[i, k] * L[j, k]
                if i == j:
                    if entry <= 1e-13 * diagonal + 1e-300 and jitter <= ridge * 1e6:
                        jitter = max(10.0 * jitter, ridge)
                        done = False
                        break
                    L[j, j] = np.sqrt(max(entry, 1e-300))
                else:
                    L[i, j] = entry / L[j, j]
            if not done:
                break
    for j in range(n):
        entry = (h[support[j]] - h[p]) - (G[support[j], p] - G[p, p])
        for k in range(j):
            entry -= L[j, k] * s[k]
        s[j] = entry / L[j, j]
    total = 0.0
    for j in range(n - 1, -1, -1):
        for k in range(j + 1, n):
            s[j] -= L[k, j] * s[k]
        s[j] /= L[j, j]
        total += s[j]
    s[n] = 1.0 - total


@njit(cache=True, nogil=True)
def fcls_rows(H: np.ndarray, G: np.ndarray, ridge: float) -> np.ndarray:
    """Abundances (n, K) from the products H = X W^T (n, K) and G = W W^T (K, K)."""
    n, K = H.shape
    A = np.zeros((n, K))
    support = np.empty(K, dtype=np.int64)
    inside = np.empty(K, dtype=np.bool_)
    L, s = np.zeros((K, K)), np.empty(K)
    scale = ridge
    for k in range(K):
        scale = max(scale, abs(G[k, k]))
    for i in range(n):
        h, a = H[i], A[i]
        if K <= FULL_SUPPORT:  # mostly all components are present, and this is the answer
            for k in range(K):
                support[k] = k
            solve_on_support(G, h, support, K, ridge, L, s)
            if s.min() >= 0.0:
                a[:] = s
                continue
        best = 0
        for k in range(K):
            inside[k] = False
            if 0.5 * G[k, k] - h[k] < 0.5 * G[best, best] - h[best]:
                best = k
        inside[best] = True
        a[best] = 1.0
        support[0], size = best, 1
        size_of_data = scale
        for k in range(K):
            size_of_data = max(size_of_data, abs(h[k]))
        for _ in range(10 * K * K):
            level = 0.0  # the common slope on the support
            for position in range(size):
                k = support[position]
                slope = h[k]
                for j in range(size):
                    slope -= G[k, support[j]] * a[support[j]]
                level += a[k] * slope
            enter, gain = -1, 1e-13 * size_of_data
            for k in range(K):
                if not inside[k]:
                    slope = h[k] - level
                    for j in range(size):
                        slope -= G[support[j], k] * a[support[j]]
                    if slope > gain:
                        enter, gain = k, slope
            if enter < 0:
                break
            inside[enter] = True
            while True:
                size = 0
                for k in range(K):
                    if inside[k]:
                        support[size] = k
                        size += 1
                solve_on_support(G, h, support, size, ridge, L, s)
                step, leave = 1.0, -1
                for j in range(size):
                    if s[j] <= 0.0:
                        k = support[j]
                        move = a[k] / (a[k] - s[j]) if a[k] > s[j] else 0.0
                        if move < step or leave < 0:
                            step, leave = min(move, step), k
                for j in range(size):
                    k = support[j]
                    a[k] += step * (s[j] - a[k])
                if leave < 0:
                    break
                a[leave] = 0.0
                inside[leave] = False
        total = 0.0
        for k in range(K):
            total += a[k]
        for k in range(K):
            a[k] /= total
    return A


def abundances_of(X: np.ndarray, W: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """Abundances of rows X (n, D) for endmembers W (K, D), centred at the endmembers' mean."""
    centre = W.mean(axis=0)
    V = W - centre
    G = V @ V.T
    ridge = 1e-12 * max(float(np.trace(G)) / len(V), np.finfo(float).tiny)

    def block(rows: slice) -> np.ndarray:
        return fcls_rows((X[rows] - centre) @ V.T, G, ridge)

    blocks = iter_blocks(len(X), 8 * (X.shape[1] + 2 * len(W)), working_memory=32)
    return np.vstack(map_blocks(block, blocks, n_jobs))


def check_endmembers(endmembers: npt.ArrayLike) -> np.ndarray:
    """At least two finite endmembers, as rows."""
    W = check_array(endmembers, dtype=np.float64, input_name="endmembers")
    if len(W) < 2:
        raise ValueError(f"endmembers has {len(W)} row; allowed: at least 2")
    return W


def fcls(X: npt.ArrayLike, endmembers: npt.ArrayLike, *, n_jobs: int | None = None) -> np.ndarray:
    """Abundances by fully constrained least squares.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows to unmix.
    endmembers : array-like of shape (n_components, n_features)
        Pure rows, at least 2.
    n_jobs : int, optional
        Threads over blocks of rows.

    Returns
    -------
    ndarray of shape (n_samples, n_components)
        For each row the point of the simplex whose mixture is nearest.

    Raises
    ------
    ValueError
        If an input has NaN or infinity, or the numbers of features differ.

    References
    ----------
    Heinz and Chang (2001), Fully constrained least squares linear spectral mixture analysis, IEEE
    TGRS 39.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.estimators import fcls
    >>> fcls([[0.9, 0.4, -0.1], [2.0, 0.0, 0.0]], np.eye(3)).round(12)
    array([[0.75, 0.25, 0.  ],
           [1.  , 0.  , 0.  ]])
    """
    W = check_endmembers(endmembers)
    rows = check_array(X, dtype=np.float64)
    if rows.shape[1] != W.shape[1]:
        raise ValueError(
            f"X has {rows.shape[1]} features, but endmembers has {W.shape[1]} features"
        )
    return abundances_of(rows, W, n_jobs)


class FCLSUnmixer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Fully constrained least squares as a transformer.

    Parameters
    ----------
    endmembers : array-like of shape (n_components, n_features)
        Pure rows, at least 2.
    n_jobs : int, optional
        Threads over blocks of rows.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The endmembers.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features; only where X has string names.

    References
    ----------
    .. [1] D. C. Heinz, C.-I. Chang, "Fully constrained least squares linear spectral mixture
           analysis", IEEE TGRS 39, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.estimators import FCLSUnmixer
    >>> unmixer = FCLSUnmixer(np.eye(3)).fit(np.eye(3))
    >>> unmixer.transform([[0.5, 0.5, 0.0]]).round(12)
    array([[0.5, 0.5, 0. ]])
    """

    def __init__(self, endmembers: npt.ArrayLike, *, n_jobs: int | None = None) -> None:
        self.endmembers = endmembers
        self.n_jobs = n_jobs

    def fit(self, X: npt.ArrayLike, y: Any = None) -> "FCLSUnmixer":
        """Check the endmembers against the data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; only their number of features matters.
        y : object
            Not used.

        Returns
        -------
        self : FCLSUnmixer
            The fitted transformer.
        """
        W = check_endmembers(self.endmembers)
        checked = check_array(X, dtype=np.float64, estimator=self, input_name="X")
        if checked.shape[1] != W.shape[1]:
            raise ValueError(
                f"X has {checked.shape[1]} features, but endmembers has {W.shape[1]} features"
            )
        validate_data(self, X, skip_check_array=True)
        self.components_ = W
        return self

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def transform(self, X: npt.ArrayLike) -> np.ndarray:
        """Abundances of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to unmix.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            On the simplex.
        """
        check_is_fitted(self)
        rows = validate_data(self, X, reset=False, dtype=np.float64)
        return abundances_of(rows, self.components_, self.n_jobs)

    def inverse_transform(self, Z: npt.ArrayLike) -> np.ndarray:
        """Mixtures of the endmembers.

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_components)
            Abundances, rows on the simplex.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            The mixed rows.
        """
        check_is_fitted(self)
        return check_simplex(Z, len(self.components_)) @ self.components_


def check_simplex(Z: npt.ArrayLike, K: int) -> np.ndarray:
    """Rows with K non-negative entries that sum to one, to 1e-6."""
    codes = check_array(Z, dtype=np.float64, input_name="Z")
    if codes.shape[1] != K:
        raise ValueError(f"Z has {codes.shape[1]} columns; allowed: n_components={K}")
    worst = float(np.abs(codes.sum(axis=1) - 1).max())
    if codes.min() < -1e-6 or worst > 1e-6:
        raise ValueError(
            f"Z isn't on the simplex: smallest entry {codes.min():.3g}, sums off by up to "
            f"{worst:.3g}; allowed: entries of at least 0 in rows that sum to 1, both to 1e-6"
        )
    return codes
