"""Kernels of samples: named ones with a width chosen from the data, delta kernels for classes."""

from typing import Any

import numpy as np
from sklearn.metrics import pairwise_distances
from sklearn.utils import check_random_state

from .factors import HammingFactor
from .kernels import ProductKernel

__all__ = ["delta_kernel", "median_gamma", "sample_kernel"]

_MOST_ROWS = 2000


def median_gamma(X: np.ndarray, kernel: str = "rbf", random_state: Any = None) -> float:
    """Choose a kernel's width by the median heuristic.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Pooled sample. Above 2000 rows, 2000 of them are drawn.
    kernel : {"rbf", "laplacian"}, default="rbf"
        For "rbf" gamma is 1 / (2 median squared distance), for "laplacian" 1 / median city-block
        distance, over all pairs of different rows.
    random_state : int, RandomState or None
        Draws the rows.

    Returns
    -------
    float
        The width parameter gamma.

    Raises
    ------
    ValueError
        If the median distance is 0.
    """
    if len(X) > _MOST_ROWS:
        X = X[check_random_state(random_state).choice(len(X), _MOST_ROWS, replace=False)]
    metric = "sqeuclidean" if kernel == "rbf" else "manhattan"
    distances = pairwise_distances(X, metric=metric)[np.triu_indices(len(X), 1)]
    median = float(np.median(distances)) if len(distances) else 0.0
    if not median > 0:
        raise ValueError(
            "gamma='median' fails: half of all rows are equal, so the median distance is 0; give "
            "gamma as a number"
        )
    return 1 / (2 * median) if kernel == "rbf" else 1 / median


def sample_kernel(
    kernel: str | ProductKernel,
    gamma: str | float,
    X: np.ndarray,
    random_state: Any = None,
    name: str = "gamma",
) -> tuple[ProductKernel, float | None]:
    """Build the kernel of a sample.

    Parameters
    ----------
    kernel : {"rbf", "laplacian"} or ProductKernel
        Kernel, or its name.
    gamma : "median", "scale" or float
        Width: by the median heuristic, 1 / (n_features * X.var()), or a number.
    X : ndarray of shape (n, d)
        Pooled sample.
    random_state : int, RandomState or None
        For the median of large samples.
    name : str, default="gamma"
        Name of the parameter, for errors.

    Returns
    -------
    kernel : ProductKernel
        One factor a feature.
    gamma : float or None
        The number used; None for a given ProductKernel.

    Raises
    ------
    ValueError
        If the width can't be chosen from the data, or the kernel doesn't fit them.
    """
    d = X.shape[1]
    if isinstance(kernel, ProductKernel):
        if len(kernel.factors) != d:
            raise ValueError(f"kernel has {len(kernel.factors)} factors, but X has {d} features")
        return kernel, None
    if gamma == "median":
        width = median_gamma(X, kernel, random_state)
    elif gamma == "scale":
        spread = float(X.var())
        if not spread > 0:
            raise ValueError(f"{name}='scale' fails: all values are equal; give it as a number")
        width = 1 / (d * spread)
    else:
        width = float(gamma)
    return ProductKernel.from_name(kernel, d, gamma=width), width


def delta_kernel(n_features: int) -> ProductKernel:
    """Build the kernel that is 1 for equal rows and 0 otherwise."""
    return ProductKernel([HammingFactor(1.0)] * n_features)
