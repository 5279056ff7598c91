"""Hypothesis strategies for Dirichlet laws and mixtures, and the invariants of a simplex code."""

from typing import Any

import numpy as np

__all__ = ["check_simplex_code", "concentration_arrays", "mixture_arrays"]


def concentration_arrays(
    min_components: int = 2, max_components: int = 6, low: float = 1e-3, high: float = 1e3
) -> Any:
    """Strategy of Dirichlet concentrations.

    Parameters
    ----------
    min_components, max_components : int, default=2 and 6
        Range of the number of components.
    low, high : float, default=1e-3 and 1e3
        Range of each concentration; drawn on a logarithmic scale.

    Returns
    -------
    hypothesis.strategies.SearchStrategy
        Of ndarrays (K,).

    Examples
    --------
    >>> from equipoise.testing import concentration_arrays
    >>> strategy = concentration_arrays(3, 3)
    """
    from hypothesis import strategies as st

    logs = st.floats(float(np.log(low)), float(np.log(high)))
    return st.lists(logs, min_size=min_components, max_size=max_components).map(np.exp)


def mixture_arrays(max_samples: int = 30, max_features: int = 5, max_components: int = 4) -> Any:
    """Strategy of noisy convex mixtures with their number of components.

    Parameters
    ----------
    max_samples, max_features, max_components : int, default=30, 5 and 4
        Largest sizes.

    Returns
    -------
    hypothesis.strategies.SearchStrategy
        Of pairs (X, K): X an ndarray (n, D) with variance, n >= 4 and K >= 2.

    Examples
    --------
    >>> from equipoise.testing import mixture_arrays
    >>> strategy = mixture_arrays()
    """
    from hypothesis import strategies as st

    def build(numbers: tuple[int, int, int, int, float, float]) -> tuple[np.ndarray, int]:
        n, D, K, seed, spread, offset = numbers
        rng = np.random.default_rng(seed)
        W = rng.uniform(size=(K, D))
        X = rng.dirichlet(np.ones(K), size=n) @ W + 0.05 * rng.standard_normal((n, D))
        return spread * (X + offset), K

    return st.tuples(
        st.integers(4, max_samples),
        st.integers(1, max_features),
        st.integers(2, max_components),
        st.integers(0, 2**31 - 1),
        st.sampled_from([1e-3, 1.0, 1e3]),
        st.floats(-5, 5),
    ).map(build)


def check_simplex_code(transformer: Any, X: np.ndarray, tolerance: float = 1e-12) -> None:
    """Check that a fitted transformer's codes are proportions, row by row.

    Parameters
    ----------
    transformer : object
        Fitted, with `transform`.
    X : ndarray of shape (n_samples, n_features)
        Rows, at least two.
    tolerance : float, default=1e-12
        Allowed distance of the sums from one.

    Returns
    -------
    None
        Nothing, where all holds: entries in [0, 1], sums of one, and the same code for a row
        whatever stands beside it, to 1e-9.

    Raises
    ------
    AssertionError
        If one of these doesn't hold.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.estimators import FCLSUnmixer
    >>> from equipoise.testing import check_simplex_code
    >>> check_simplex_code(FCLSUnmixer(np.eye(3)).fit(np.eye(3)), np.eye(3))
    """
    Z = np.asarray(transformer.transform(X))
    assert Z.shape[0] == len(X), f"{len(X)} rows gave {Z.shape[0]} codes"
    assert Z.min() >= 0 and Z.max() <= 1 + tolerance, f"entries from {Z.min()} to {Z.max()}"
    worst = np.abs(Z.sum(axis=1) - 1).max()
    assert worst <= tolerance, f"sums off by {worst}"
    alone = np.vstack([np.asarray(transformer.transform(X[i : i + 1])) for i in range(len(X))])
    assert np.abs(alone - Z).max() <= 1e-9, "a row's code depends on the rows beside it"
