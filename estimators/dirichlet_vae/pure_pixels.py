"""Endmembers as pure rows: vertex component analysis and N-FINDR.

VCA (Nascimento and Bioucas-Dias 2005) repeatedly takes the row with the largest projection on a
random direction orthogonal to the rows already chosen. N-FINDR (Winter 1999) exchanges rows while
the volume of their simplex, |det [1; scores]|, grows.
"""

from functools import partial

import numpy as np
import numpy.typing as npt
from numba import njit
from sklearn.utils import check_array, check_random_state

from .efficiency import check_n_components

__all__ = ["nfindr", "vca", "vertex_components"]


def principal_axes(X: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Mean (D,), axes as rows, largest variance first, and the numerical rank around the mean."""
    share = weight / weight.sum()
    mean = share @ X
    Y = np.sqrt(share)[:, None] * (X - mean)
    if X.shape[1] <= len(X):
        values, columns = np.linalg.eigh(Y.T @ Y)
        values, axes = values[::-1], columns.T[::-1]
    else:
        _, roots, axes = np.linalg.svd(Y, full_matrices=False)
        values = roots**2
    # The sign of an axis is arbitrary: fixed, so that the same data give the same answer.
    largest = np.abs(axes).argmax(axis=1)
    axes = axes * np.sign(axes[np.arange(len(axes)), largest])[:, None]
    size = np.finfo(float).eps * float(mean @ mean)  # what rounding leaves of constant data
    return mean, axes, int((values > max(1e-12 * float(values[0]), size)).sum())


def principal_scores(
    X: np.ndarray, weight: np.ndarray, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """Scores (n, width) on the leading axes, and the mean; ValueError where the rank is smaller."""
    mean, axes, rank = principal_axes(X, weight)
    if rank < width:
        raise ValueError(
            f"X has numerical rank {rank} around its mean; n_components={width + 1} needs {width}"
        )
    return (X - mean) @ axes[:width].T, mean


def signal_to_noise(
    X: np.ndarray, weight: np.ndarray, scores: np.ndarray, mean: np.ndarray
) -> float:
    """Nascimento and Bioucas-Dias' estimate in dB from the power inside and outside the scores."""
    share = weight / weight.sum()
    D, K = X.shape[1], scores.shape[1] + 1
    power = float(share @ (X**2).sum(axis=1))
    inside = float(share @ (scores**2).sum(axis=1) + mean @ mean)
    outside = power - inside
    signal = inside - K / D * power
    if outside <= 1e-12 * power:
        return np.inf
    return 10 * np.log10(signal / outside) if signal > 0 else -np.inf


def projected(X: np.ndarray, weight: np.ndarray, K: int) -> np.ndarray:
    """Rows in K coordinates in which the simplex of the endmembers is cut by a plane."""
    scores, mean = principal_scores(X, weight, K - 1)
    if signal_to_noise(X, weight, scores, mean) < 15 + 10 * np.log10(K):
        height = np.linalg.norm(scores, axis=1).max()
        return np.column_stack([scores, np.full(len(X), height)])
    share = weight / weight.sum()
    second = X.T @ (share[:, None] * X) if X.shape[1] <= len(X) else None
    if second is not None:
        axes = np.linalg.eigh(second)[1].T[::-1][:K]
    else:
        axes = np.linalg.svd(np.sqrt(share)[:, None] * X, full_matrices=False)[2][:K]
    Z = X @ axes.T
    depth = Z @ (share @ Z)
    # A projection needs every row on the same side of the origin.
    if len(axes) < K or depth.min() <= 1e-9 * np.abs(depth).max():
        height = np.linalg.norm(scores, axis=1).max()
        return np.column_stack([scores, np.full(len(X), height)])
    return Z / depth[:, None]


def vertex_indices(Z: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Indices of K rows of Z (n, K), each extreme in a direction orthogonal to those before."""
    K = Z.shape[1]
    chosen: list[int] = []
    for j in range(K):
        basis = Z[chosen].T if j else np.eye(K)[:, -1:]
        for _ in range(100):
            direction = rng.standard_normal(K)
            direction -= basis @ np.linalg.lstsq(basis, direction, rcond=None)[0]
            norm = np.linalg.norm(direction)
            if norm == 0:
                continue
            row = int(np.argmax(np.abs(Z @ (direction / norm))))
            if row not in chosen:
                break
        else:
            raise ValueError(
                f"X has fewer than n_components={K} rows that span a simplex; "
                f"found {len(chosen)}: {chosen}"
            )
        chosen.append(row)
    return np.array(chosen)


def simplex_volume(T: np.ndarray, rows: np.ndarray) -> float:
    """|det [1; scores]| of the chosen rows of scores T (n, K - 1)."""
    return float(abs(np.linalg.det(np.column_stack([np.ones(len(rows)), T[rows]]))))


def vertex_components(
    Y: np.ndarray, weight: np.ndarray, K: int, rng: np.random.RandomState
) -> np.ndarray:
    """Rows found by VCA among weighted ones; as many as the rank allows where it is below K - 1."""
    mean, axes, rank = principal_axes(Y, weight)
    if rank == 0:
        return Y[:1]
    K = min(K, rank + 1)
    scores = (Y - mean) @ axes[: K - 1].T
    height = np.linalg.norm(scores, axis=1).max()
    return Y[vertex_indices(np.column_stack([scores, np.full(len(Y), height)]), rng)]


def vca(
    X: npt.ArrayLike,
    n_components: int,
    *,
    n_init: int = 1,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Endmembers by vertex component analysis.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows that are mixtures; some should be nearly pure.
    n_components : int
        Number of endmembers, at least 2.
    n_init : int, default=1
        Runs with different directions; the simplex of largest volume is kept.
    random_state : int, RandomState or None, default=None
        Seed of the directions.

    Returns
    -------
    endmembers : ndarray of shape (n_components, n_features)
        The rows found.
    indices : ndarray of shape (n_components,)
        Where they stand in X.

    Raises
    ------
    ValueError
        If X has NaN or infinity, fewer than n_components rows, or a rank that is too small.

    References
    ----------
    Nascimento and Bioucas-Dias (2005), Vertex component analysis: a fast algorithm to unmix
    hyperspectral data, IEEE TGRS 43.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.estimators import vca
    >>> X = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [0.2, 0.3, 0.5], [0.4, 0.3, 0.3]])
    >>> sorted(vca(X, 3, random_state=0)[1].tolist())
    [0, 1, 2]
    """
    K = check_n_components(n_components)
    rows = check_array(X, dtype=np.float64, ensure_min_samples=K)
    check_n_init(n_init)
    rng = check_random_state(random_state)
    weight = np.ones(len(rows))
    Z = projected(rows, weight, K)
    T = principal_scores(rows, weight, K - 1)[0]
    runs = [vertex_indices(Z, rng) for _ in range(n_init)]
    best = max(runs, key=partial(simplex_volume, T))
    return rows[best], best


def check_n_init(n_init: int) -> None:
    """At least one run."""
    if isinstance(n_init, bool) or not isinstance(n_init, int | np.integer) or n_init < 1:
        raise ValueError(f"n_init={n_init!r} is not allowed; allowed: an integer of at least 1")


@njit(cache=True, nogil=True)
def exchange_rows(T: np.ndarray, rows: np.ndarray, max_sweeps: int) -> int:
    """Exchange rows in place while the volume grows; return the number of sweeps.

    The determinant is linear in the row that is exchanged: its coefficients are the cofactors,
    det(E) E^{-T}.
    """
    n, K = T.shape
    for sweep in range(max_sweeps):
        changed = False
        for j in range(K):
            E = T[rows]
            # Cofactors of row j by solving against a unit vector; E is invertible by construction.
            unit = np.zeros(K)
            unit[j] = 1.0
            ratio = np.linalg.solve(E, unit)
            best, best_ratio = -1, 1.0 + 1e-10
            for i in range(n):
                value = 0.0
                for k in range(K):
                    value += T[i, k] * ratio[k]
                if abs(value) > best_ratio:
                    best, best_ratio = i, abs(value)
            if best >= 0:
                rows[j] = best
                changed = True
        if not changed:
            return sweep + 1
    return max_sweeps


def nfindr(
    X: npt.ArrayLike,
    n_components: int,
    *,
    n_init: int = 1,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Endmembers by N-FINDR: the rows whose simplex has a volume that no exchange enlarges.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows that are mixtures; some should be nearly pure.
    n_components : int
        Number of endmembers, at least 2.
    n_init : int, default=1
        Starts, each from a run of `vca`; the largest volume is kept.
    random_state : int, RandomState or None, default=None
        Seed of the starts.

    Returns
    -------
    endmembers : ndarray of shape (n_components, n_features)
        The rows found.
    indices : ndarray of shape (n_components,)
        Where they stand in X.

    Raises
    ------
    ValueError
        If X has NaN or infinity, fewer than n_components rows, or a rank that is too small.

    References
    ----------
    Winter (1999), N-FINDR: an algorithm for fast autonomous spectral end-member determination in
    hyperspectral data, SPIE 3753.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.estimators import nfindr
    >>> X = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [0.2, 0.3, 0.5], [0.4, 0.3, 0.3]])
    >>> sorted(nfindr(X, 3, random_state=0)[1].tolist())
    [0, 1, 2]
    """
    K = check_n_components(n_components)
    rows = check_array(X, dtype=np.float64, ensure_min_samples=K)
    check_n_init(n_init)
    rng = check_random_state(random_state)
    weight = np.ones(len(rows))
    scores = principal_scores(rows, weight, K - 1)[0]
    # Scaled axes: the largest volume is the same, and the determinants stay well conditioned.
    T = np.column_stack([scores / scores.std(axis=0), np.ones(len(rows))])
    Z = projected(rows, weight, K)
    runs = []
    for _ in range(n_init):
        indices = vertex_indices(Z, rng)
        exchange_rows(T, indices, 3 * K)
        runs.append(indices)
    best = max(runs, key=partial(simplex_volume, scores))
    return rows[best], best
