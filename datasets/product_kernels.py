"""Generators with known relevant features, for attributions of kernel machines and statistics.

The settings are those of the studies on product kernels: regression targets that depend on the
first third of the features, and pairs of samples whose last features have heavier tails in one.
"""

from numbers import Integral, Real

import numpy as np
from sklearn.utils import Bunch, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions, validate_params

__all__ = ["make_heavy_tail_shift", "make_polynomial_regression", "make_squared_exponential"]


@validate_params(
    {
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "n_features": [Interval(Integral, 3, None, closed="left")],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "noise": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def make_polynomial_regression(
    n_samples: int = 1000,
    n_features: int = 25,
    *,
    degree: int = 5,
    noise: float = 0.0,
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:
    """Make a regression target that is a sum of powers of the first third of the features.

    y = sum_{i=1..degree} sum_{j < d // 3} x_j^i, with independent standard normal features.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows.
    n_features : int, default=25
        Number of features d, at least 3.
    degree : int, default=5
        Highest power.
    noise : float, default=0.0
        Standard deviation of normal noise on the target.
    random_state : int, RandomState or None, default=None
        Draws the data.

    Returns
    -------
    Bunch
        ``data`` of shape (n_samples, n_features), ``target`` of shape (n_samples,), and
        ``relevant`` of bool of shape (n_features,).

    Raises
    ------
    ValueError
        If a parameter is out of range.

    References
    ----------
    .. [1] Mohammadi, Chau, Muandet, arXiv:2505.16516 (settings of the experiments).

    Examples
    --------
    >>> from equipoise.datasets import make_polynomial_regression
    >>> bunch = make_polynomial_regression(10, 6, degree=3, random_state=0)
    >>> bunch.relevant.tolist()
    [True, True, False, False, False, False]
    """
    generator = check_random_state(random_state)
    X = generator.normal(size=(n_samples, n_features))
    powers = X[:, : n_features // 3, None] ** np.arange(1, degree + 1)
    y = powers.sum(axis=(1, 2)) + noise * generator.normal(size=n_samples)
    return Bunch(data=X, target=y, relevant=np.arange(n_features) < n_features // 3)


@validate_params(
    {
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "n_features": [Interval(Integral, 3, None, closed="left")],
        "noise": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def make_squared_exponential(
    n_samples: int = 1000,
    n_features: int = 25,
    *,
    noise: float = 0.0,
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:
    """Make a heavy-tailed regression target from the squares of the first third of the features.

    y = exp(sum_{j < d // 3} x_j^2 - 4), with independent standard normal features.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows.
    n_features : int, default=25
        Number of features d, at least 3.
    noise : float, default=0.0
        Standard deviation of normal noise on the target.
    random_state : int, RandomState or None, default=None
        Draws the data.

    Returns
    -------
    Bunch
        ``data`` of shape (n_samples, n_features), ``target`` of shape (n_samples,), and
        ``relevant`` of bool of shape (n_features,).

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Examples
    --------
    >>> from equipoise.datasets import make_squared_exponential
    >>> bunch = make_squared_exponential(10, 6, random_state=0)
    >>> bool((bunch.target > 0).all())
    True
    """
    generator = check_random_state(random_state)
    X = generator.normal(size=(n_samples, n_features))
    y = np.exp((X[:, : n_features // 3] ** 2).sum(axis=1) - 4)
    y += noise * generator.normal(size=n_samples)
    return Bunch(data=X, target=y, relevant=np.arange(n_features) < n_features // 3)


@validate_params(
    {
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "n_features": [Interval(Integral, 1, None, closed="left")],
        "n_shifted": [Interval(Integral, 0, None, closed="left")],
        "df": [Interval(Real, 0, None, closed="neither")],
        "covariance": [StrOptions({"identity", "wishart"})],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def make_heavy_tail_shift(
    n_samples: int = 500,
    n_features: int = 20,
    n_shifted: int = 10,
    *,
    df: float = 3.0,
    covariance: str = "identity",
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:
    """Make two samples whose last features have the same centre but different tails.

    The first sample is normal. In the second the last `n_shifted` features follow Student's t, not
    rescaled: their variance is larger too.

    Parameters
    ----------
    n_samples : int, default=500
        Number of rows of each sample.
    n_features : int, default=20
        Number of features.
    n_shifted : int, default=10
        How many of them, the last ones, differ.
    df : float, default=3.0
        Degrees of freedom of Student's t.
    covariance : {"identity", "wishart"}, default="identity"
        Covariance of the normal variables, which are mixed before the tails change: independent,
        or a Wishart draw scaled to correlations, one within the unchanged and one within the
        shifted features.
    random_state : int, RandomState or None, default=None
        Draws the data.

    Returns
    -------
    Bunch
        ``first`` and ``second`` of shape (n_samples, n_features), and ``shifted`` of bool of shape
        (n_features,).

    Raises
    ------
    ValueError
        If a parameter is out of range, or `n_shifted` exceeds `n_features`.

    Notes
    -----
    A multivariate t with correlations is made from a normal vector divided by one common chi
    variable; with ``covariance="identity"`` each feature has its own.

    Examples
    --------
    >>> from equipoise.datasets import make_heavy_tail_shift
    >>> bunch = make_heavy_tail_shift(50, 4, 1, random_state=0)
    >>> bunch.first.shape, bunch.shifted.tolist()
    ((50, 4), [False, False, False, True])
    """
    if n_shifted > n_features:
        raise ValueError(f"n_shifted={n_shifted} must not exceed n_features={n_features}")
    generator = check_random_state(random_state)
    shifted = np.arange(n_features) >= n_features - n_shifted
    first, second = generator.normal(size=(2, n_samples, n_features))
    independent = covariance == "identity"
    width = n_shifted if independent else 1
    chi = np.sqrt(generator.chisquare(df, size=(n_samples, width)) / df)
    if not independent:
        for block in (~shifted, shifted):
            factor = correlation_factor(int(block.sum()), generator)
            first[:, block] = first[:, block] @ factor.T
            second[:, block] = second[:, block] @ factor.T
    second[:, shifted] /= chi
    return Bunch(first=first, second=second, shifted=shifted)


def correlation_factor(d: int, generator: np.random.RandomState) -> np.ndarray:
    """Draw a Wishart matrix of 2 d degrees of freedom; return a square root of its correlations."""
    if d == 0:
        return np.empty((0, 0))
    G = generator.normal(size=(d, 2 * d))
    G /= np.linalg.norm(G, axis=1, keepdims=True)
    return np.linalg.cholesky(G @ G.T)
