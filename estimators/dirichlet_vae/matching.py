"""Comparing endmembers and abundances with the truth, up to the order of the components."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

__all__ = ["EndmemberMatch", "abundance_rmse", "match_endmembers", "spectral_angle"]


def finite_array(value: npt.ArrayLike, name: str) -> np.ndarray:
    """A finite float64 array."""
    array = np.asarray(value, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinity; allowed: finite numbers")
    return array


def finite_matrix(value: npt.ArrayLike, name: str) -> np.ndarray:
    """A finite float64 matrix."""
    array = finite_array(value, name)
    if array.ndim != 2:
        raise ValueError(f"{name} has shape {array.shape}; allowed: a matrix")
    return array


def spectral_angle(A: npt.ArrayLike, B: npt.ArrayLike) -> np.ndarray | float:
    """Angle between spectra, in radians.

    Parameters
    ----------
    A, B : array-like of shape (..., n_bands)
        Spectra, nowhere all zero; broadcast against each other.

    Returns
    -------
    float or ndarray of shape (...,)
        Angles in [0, pi], accurate for nearly parallel spectra too.

    Raises
    ------
    ValueError
        If a spectrum is zero, or holds NaN or infinity.

    Examples
    --------
    >>> from equipoise.estimators import spectral_angle
    >>> round(float(spectral_angle([1, 2, 3], [2, 2, 1])), 6)
    0.640522
    """
    units = []
    for value, name in ((A, "A"), (B, "B")):
        array = finite_array(value, name)
        norm = np.linalg.norm(array, axis=-1, keepdims=True)
        if (norm == 0).any():
            raise ValueError(f"{name} holds a spectrum of zeros, which has no angle")
        units.append(array / norm)
    a, b = units
    # atan2 of the half-angle's sine and cosine: arccos loses half the digits near 0 (Kahan).
    opposite, adjacent = np.linalg.norm(a - b, axis=-1), np.linalg.norm(a + b, axis=-1)
    return (2 * np.arctan2(opposite, adjacent))[()]


class EndmemberMatch(NamedTuple):
    """A matching of estimated to true components.

    Attributes
    ----------
    order : ndarray of shape (n_components,)
        ``estimated[order]`` stands in the order of the truth.
    distance : ndarray of shape (n_components,)
        Angle or root mean squared error of each true component; NaN where all estimated
        components are equal, as after collapse, because any matching is then as good.

    Examples
    --------
    >>> from equipoise.estimators import match_endmembers
    >>> match_endmembers([[0, 1.0], [1.0, 0]], [[1.0, 0], [0, 1.0]]).order
    array([1, 0])
    """

    order: np.ndarray
    distance: np.ndarray


def match_endmembers(
    estimated: npt.ArrayLike, true: npt.ArrayLike, *, metric: str = "angle"
) -> EndmemberMatch:
    """Match estimated components to true ones at the least total distance.

    Parameters
    ----------
    estimated : array-like of shape (n_components, n_features)
        Components as rows, such as `DirichletBetaVAE.components_`; for abundances, their transpose.
    true : array-like of shape (n_components, n_features)
        The truth.
    metric : {"angle", "rmse"}, default="angle"
        Spectral angle, or root mean squared error.

    Returns
    -------
    EndmemberMatch
        ``order`` and ``distance``. Equal estimated components (collapse) give NaN distances.

    Raises
    ------
    ValueError
        If the shapes differ or the metric isn't known.

    Examples
    --------
    >>> from equipoise.estimators import match_endmembers
    >>> order, angle = match_endmembers([[0, 2.0], [3.0, 0]], [[1.0, 0], [0, 1.0]])
    >>> order, angle
    (array([1, 0]), array([0., 0.]))
    """
    E, T = finite_matrix(estimated, "estimated"), finite_matrix(true, "true")
    if E.shape != T.shape:
        raise ValueError(f"estimated has shape {E.shape} and true {T.shape}; allowed: the same")
    if metric == "angle":
        cost = np.asarray(spectral_angle(T[:, None], E[None]))
    elif metric == "rmse":
        cost = np.sqrt(((T[:, None] - E[None]) ** 2).mean(axis=2))
    else:
        raise ValueError(f"metric={metric!r} is not allowed; allowed: ['angle', 'rmse']")
    order = linear_sum_assignment(cost)[1]
    distance = cost[np.arange(len(T)), order]
    if np.ptp(E, axis=0).max() <= 1e-8 * np.abs(E).max():
        distance = np.full(len(T), np.nan)
    return EndmemberMatch(order, distance)


def abundance_rmse(estimated: npt.ArrayLike, true: npt.ArrayLike) -> float:
    """Root mean squared error of abundances after the best matching of components.

    Parameters
    ----------
    estimated, true : array-like of shape (n_samples, n_components)
        Abundances.

    Returns
    -------
    float
        sqrt(mean((estimated - true)^2)) over all entries, at the order of the components that makes
        it least.

    Raises
    ------
    ValueError
        If the shapes differ, or an entry is NaN or infinite.

    Examples
    --------
    >>> from equipoise.estimators import abundance_rmse
    >>> abundance_rmse([[0.0, 1.0], [0.5, 0.5]], [[1.0, 0.0], [0.5, 0.5]])
    0.0
    """
    E, T = finite_matrix(estimated, "estimated"), finite_matrix(true, "true")
    if E.shape != T.shape:
        raise ValueError(f"estimated has shape {E.shape} and true {T.shape}; allowed: the same")
    cost = ((T[:, :, None] - E[:, None, :]) ** 2).mean(axis=0)
    rows, columns = linear_sum_assignment(cost)
    return float(np.sqrt(cost[rows, columns].mean()))
