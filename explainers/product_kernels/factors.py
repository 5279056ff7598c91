"""Factors of product kernels: one-dimensional kernels, one for each feature.

Most factors are exponentials, k_j = exp(l_j). They are kept as logarithms until the end, so that
k_j - 1 = expm1(l_j) is accurate where two values nearly agree, and groups of features add up. A
factor that is exactly 0 has the logarithm -inf, which is fine everywhere below.
"""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

import numpy as np

__all__ = [
    "CallableFactor",
    "Chi2Factor",
    "Factor",
    "FactorProduct",
    "HammingFactor",
    "LaplacianFactor",
    "Matern1DFactor",
    "PeriodicFactor",
    "RBFFactor",
    "RationalQuadraticFactor",
]


def require_positive(name: str, value: float, *, zero: bool = False) -> None:
    """Raise unless a parameter is a finite positive number."""
    if not (
        isinstance(value, Real) and np.isfinite(value) and (value > 0 or (zero and value == 0))
    ):
        allowed = "a finite number of at least 0" if zero else "a positive finite number"
        raise ValueError(f"{name}={value!r} must be {allowed}")


class Factor:
    """One feature's kernel. Subclasses define `log_of`, elementwise."""

    #: Whether all values lie in [0, 1], for which the number of nodes can be bounded.
    unit: bool = True
    #: Number of the formula in `fill_log_factors` of log_factors.py, -1 if it has none.
    code: int = -1

    @property
    def parameter(self) -> float:
        """The number that the formula `code` takes."""
        return 0.0

    def log_of(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Compute log k_j elementwise, with broadcasting.

        Parameters
        ----------
        x, y : ndarray
            Values of the feature, of shapes that broadcast.

        Returns
        -------
        ndarray
            Log factors, -inf where the factor is 0.
        """
        raise NotImplementedError

    def log_values(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Compute log k_j(x, y) for all pairs.

        Parameters
        ----------
        x : ndarray of shape (n,)
            One feature's values.
        y : ndarray of shape (m,)
            The same feature's values in the other sample.

        Returns
        -------
        ndarray of shape (n, m)
            Log factors, -inf where the factor is 0.
        """
        return self.log_of(x[:, None], y[None, :])

    def __call__(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Compute k_j(x, y) for all pairs.

        Parameters
        ----------
        x : ndarray of shape (n,)
            One feature's values.
        y : ndarray of shape (m,)
            The same feature's values in the other sample.

        Returns
        -------
        ndarray of shape (n, m)
            Factors.
        """
        return np.exp(self.log_values(x, y))


@dataclass(frozen=True)
class RBFFactor(Factor):
    """Gaussian factor exp(-gamma (x - y)^2).

    Parameters
    ----------
    gamma : float, optional
        Inverse squared width; give either this or `length_scale`.
    length_scale : float, optional
        Width l, for gamma = 1 / (2 l^2).

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.explainers import RBFFactor
    >>> RBFFactor(gamma=0.5)(np.array([0.0]), np.array([0.0, 2.0])).round(4)
    array([[1.    , 0.1353]])
    """

    gamma: float | None = None
    length_scale: float | None = None
    code = 0

    def __post_init__(self) -> None:
        if (self.gamma is None) == (self.length_scale is None):
            raise ValueError(
                f"RBFFactor takes either gamma or length_scale, got gamma={self.gamma!r} and "
                f"length_scale={self.length_scale!r}"
            )
        if self.gamma is not None:
            require_positive("gamma", self.gamma, zero=True)
        else:
            require_positive("length_scale", self.length_scale)  # type: ignore[arg-type]

    @property
    def parameter(self) -> float:
        if self.gamma is not None:
            return float(self.gamma)
        assert self.length_scale is not None
        return 0.5 / float(self.length_scale) ** 2

    def log_of(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return -self.parameter * (x - y) ** 2


@dataclass(frozen=True)
class LaplacianFactor(Factor):
    """Laplacian factor exp(-gamma |x - y|).

    Parameters
    ----------
    gamma : float
        Inverse width.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.explainers import LaplacianFactor
    >>> LaplacianFactor(gamma=0.5)(np.array([0.0]), np.array([0.0, 2.0])).round(4)
    array([[1.    , 0.3679]])
    """

    gamma: float
    code = 1

    def __post_init__(self) -> None:
        require_positive("gamma", self.gamma, zero=True)

    @property
    def parameter(self) -> float:
        return float(self.gamma)

    def log_of(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return -self.gamma * np.abs(x - y)


@dataclass(frozen=True)
class HammingFactor(Factor):
    """Categorical factor: 1 where two values are equal, 1 - lam where they differ.

    Parameters
    ----------
    lam : float, default=1.0
        How much a mismatch takes away, in [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.explainers import HammingFactor
    >>> HammingFactor(lam=0.25)(np.array([1.0]), np.array([1.0, 2.0]))
    array([[1.  , 0.75]])
    """

    lam: float = 1.0
    code = 2

    def __post_init__(self) -> None:
        if not 0 <= self.lam <= 1:
            raise ValueError(f"lam={self.lam!r} must lie in [0, 1]")

    @property
    def parameter(self) -> float:
        return float(np.log1p(-self.lam)) if self.lam < 1 else -np.inf

    def log_of(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.where(x == y, 0.0, self.parameter)


@dataclass(frozen=True)
class Chi2Factor(Factor):
    """Exponential chi-squared factor exp(-gamma (x - y)^2 / (x + y)) for values of at least 0.

    Parameters
    ----------
    gamma : float, default=1.0
        Inverse width.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.explainers import Chi2Factor
    >>> Chi2Factor(gamma=0.5)(np.array([0.0]), np.array([0.0, 2.0])).round(4)
    array([[1.    , 0.3679]])
    """

    gamma: float = 1.0
    code = 3

    def __post_init__(self) -> None:
        require_positive("gamma", self.gamma, zero=True)

    @property
    def parameter(self) -> float:
        return float(self.gamma)

    def log_of(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        if min(x.min(initial=0.0), y.min(initial=0.0)) < 0:
            raise ValueError("The chi2 kernel takes values of at least 0; X holds negative ones")
        total = x + y
        squared = (x - y) ** 2
        return -self.gamma * np.divide(squared, total, out=np.zeros_like(total), where=total > 0)


@dataclass(frozen=True)
class PeriodicFactor(Factor):
    """Periodic factor exp(-2 sin^2(pi |x - y| / period) / length_scale^2).

    Parameters
    ----------
    period : float, default=1.0
        Distance after which values count as equal again.
    length_scale : float, default=1.0
        Width.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.explainers import PeriodicFactor
    >>> PeriodicFactor(period=2.0)(np.array([0.0]), np.array([1.0, 2.0])).round(4)
    array([[0.1353, 1.    ]])
    """

    period: float = 1.0
    length_scale: float = 1.0

    def __post_init__(self) -> None:
        require_positive("period", self.period)
        require_positive("length_scale", self.length_scale)

    def log_of(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        sine = np.sin(np.pi / self.period * np.abs(x - y))
        return -2.0 * (sine / self.length_scale) ** 2


@dataclass(frozen=True)
class Matern1DFactor(Factor):
    """Matern factor of one feature, for nu of 0.5, 1.5, 2.5 or infinity.

    Parameters
    ----------
    nu : float, default=1.5
        Smoothness.
    length_scale : float, default=1.0
        Width.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.explainers import Matern1DFactor
    >>> Matern1DFactor(nu=0.5)(np.array([0.0]), np.array([0.0, 1.0])).round(4)
    array([[1.    , 0.3679]])
    """

    nu: float = 1.5
    length_scale: float = 1.0

    def __post_init__(self) -> None:
        if self.nu not in (0.5, 1.5, 2.5, np.inf):
            raise ValueError(f"nu={self.nu!r} is not available; allowed: 0.5, 1.5, 2.5, inf")
        require_positive("length_scale", self.length_scale)

    def log_of(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        distance = np.abs(x - y) / self.length_scale
        if self.nu == np.inf:
            return -0.5 * distance**2
        r = np.sqrt(2 * self.nu) * distance
        polynomial = {0.5: 0.0, 1.5: r, 2.5: r + r**2 / 3}[self.nu]
        return np.log1p(polynomial) - r


@dataclass(frozen=True)
class RationalQuadraticFactor(Factor):
    """Rational quadratic factor (1 + (x - y)^2 / (2 alpha l^2))^-alpha of one feature.

    Parameters
    ----------
    alpha : float, default=1.0
        Mixture of scales.
    length_scale : float, default=1.0
        Width l.
    """

    alpha: float = 1.0
    length_scale: float = 1.0

    def log_of(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        squared = (x - y) ** 2
        return -self.alpha * np.log1p(squared / (2 * self.alpha * self.length_scale**2))


@dataclass(frozen=True)
class CallableFactor(Factor):
    """A factor computed by any function of two columns.

    Parameters
    ----------
    function : callable
        ``function(x, y)`` with arrays of shape (n,) and (m,) returns the (n, m) matrix of factors.
        They may be negative or above 1; the exact number of nodes is used then.
    log : bool, default=False
        Whether the function returns the factors' logarithms.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.explainers import CallableFactor
    >>> CallableFactor(np.minimum.outer)(np.array([2.0]), np.array([1.0, 3.0]))
    array([[1., 2.]])
    """

    function: Callable[[np.ndarray, np.ndarray], np.ndarray]
    log: bool = False
    unit = False

    def checked(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Call the function and check shape and values of what it returns."""
        values = np.asarray(self.function(x, y), dtype=np.float64)
        if values.shape != (len(x), len(y)):
            raise ValueError(
                f"The function of a CallableFactor returned shape {values.shape} for columns of "
                f"length {len(x)} and {len(y)}; it must return the matrix of all pairs"
            )
        if np.isnan(values).any() or np.isposinf(values).any():
            raise ValueError("The function of a CallableFactor returned NaN or infinity")
        return values

    def log_values(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        if not self.log:
            raise TypeError("This CallableFactor has log=False: it has values, not logarithms")
        return self.checked(x, y)

    def __call__(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        values = self.checked(x, y)
        return np.exp(values) if self.log else values


@dataclass(frozen=True)
class FactorProduct(Factor):
    """The product of powers of several factors of one feature.

    Parameters
    ----------
    parts : tuple of Factor
        Factors multiplied.
    powers : tuple of float
        Their exponents.
    """

    parts: tuple[Factor, ...]
    powers: tuple[float, ...]

    def log_of(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        logs = [p * f.log_of(x, y) for f, p in zip(self.parts, self.powers, strict=True)]
        return np.sum(logs, axis=0)
