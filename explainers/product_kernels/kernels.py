"""Product kernels: k(x, y) = scale * prod_j k_j(x_j, y_j), one factor a feature.

Most factors are exponentials, k_j = exp(l_j). They are kept as logarithms until the end, so that
k_j - 1 = expm1(l_j) is accurate where two values nearly agree, and groups of features add up. A
factor that is exactly 0 has the logarithm -inf, which is fine everywhere below.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from numba import njit
from sklearn.gaussian_process import kernels as gp

__all__ = [
    "CallableFactor",
    "Chi2Factor",
    "Factor",
    "HammingFactor",
    "LaplacianFactor",
    "Matern1DFactor",
    "PeriodicFactor",
    "ProductKernel",
    "RBFFactor",
]


def require_positive(name: str, value: float, *, zero: bool = False) -> None:
    """Raise unless a parameter is a finite positive number."""
    if not (isinstance(value, Real) and np.isfinite(value) and (value > 0 or zero and value == 0)):
        allowed = "a finite number of at least 0" if zero else "a positive finite number"
        raise ValueError(f"{name}={value!r} must be {allowed}")


class Factor:
    """One feature's kernel. Subclasses define `log_values`, unless they can be negative."""

    #: Whether all values lie in [0, 1], for which the number of nodes can be bounded.
    unit: bool = True
    #: Number of the formula in `fill_log_factors`, -1 if it has none.
    code: int = -1

    @property
    def parameter(self) -> float:
        """The number that the formula `code` takes."""
        return 0.0

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
        raise NotImplementedError

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

    def log_values(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return -self.parameter * np.subtract.outer(x, y) ** 2


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

    def log_values(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return -self.gamma * np.abs(np.subtract.outer(x, y))


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

    def log_values(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.where(np.equal.outer(x, y), 0.0, self.parameter)


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

    def log_values(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        if min(x.min(initial=0.0), y.min(initial=0.0)) < 0:
            raise ValueError("The chi2 kernel takes values of at least 0; X holds negative ones")
        total = np.add.outer(x, y)
        squared = np.subtract.outer(x, y) ** 2
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

    def log_values(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        sine = np.sin(np.pi / self.period * np.abs(np.subtract.outer(x, y)))
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

    def log_values(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        distance = np.abs(np.subtract.outer(x, y)) / self.length_scale
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

    def log_values(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        squared = np.subtract.outer(x, y) ** 2
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

    def log_values(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        logs = [p * f.log_values(x, y) for f, p in zip(self.parts, self.powers, strict=True)]
        return np.sum(logs, axis=0)


@njit(cache=True, nogil=True)
def fill_log_factors(  # type: ignore[no-untyped-def]
    X, support, codes, parameters, player, out
):
    """Add up the log factors of each player's columns.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Points.
    support : ndarray of shape (n_blocks, d, lanes)
        Support points, side by side.
    codes, parameters : ndarray of shape (d,)
        Formula and parameter of each column's factor.
    player : ndarray of shape (d,)
        Which player a column belongs to.
    out : ndarray of shape (n, n_blocks, n_players, lanes)
        Zeros on entry, log factors on return.
    """
    n_blocks, d, lanes = support.shape
    for i in range(X.shape[0]):
        for k in range(n_blocks):
            for j in range(d):
                x = X[i, j]
                p = parameters[j]
                g = player[j]
                if codes[j] == 0:
                    for lane in range(lanes):
                        difference = x - support[k, j, lane]
                        out[i, k, g, lane] -= p * difference * difference
                elif codes[j] == 1:
                    for lane in range(lanes):
                        out[i, k, g, lane] -= p * abs(x - support[k, j, lane])
                elif codes[j] == 2:
                    for lane in range(lanes):
                        if x != support[k, j, lane]:
                            out[i, k, g, lane] += p
                else:
                    for lane in range(lanes):
                        total = x + support[k, j, lane]
                        difference = x - support[k, j, lane]
                        if total > 0:
                            out[i, k, g, lane] -= p * difference * difference / total


@dataclass(frozen=True)
class ProductKernel:
    """A kernel that is a product of one factor a feature, and a constant.

    It can be handed to scikit-learn as ``SVR(kernel=...)`` or ``KernelRidge(kernel=...)``.

    Parameters
    ----------
    factors : sequence of Factor
        One factor a feature. Any function of two columns becomes one through `CallableFactor`.
    scale : float, default=1.0
        Constant in front. It counts as part of the coefficients of a kernel machine, never as part
        of a feature.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.explainers import HammingFactor, ProductKernel, RBFFactor
    >>> kernel = ProductKernel([RBFFactor(gamma=1.0), HammingFactor(lam=0.5)])
    >>> kernel(np.array([[0.0, 1.0]]), np.array([[0.0, 1.0], [0.0, 2.0]]))
    array([[1. , 0.5]])
    """

    factors: Sequence[Factor]
    scale: float = 1.0

    def __post_init__(self) -> None:
        factors = tuple(self.factors)
        for j, factor in enumerate(factors):
            if not isinstance(factor, Factor):
                raise TypeError(
                    f"factors[{j}]={factor!r} is not a factor; wrap a function of two columns in "
                    "CallableFactor"
                )
        if not factors:
            raise ValueError("factors must hold at least one factor")
        if not np.isfinite(self.scale):
            raise ValueError(f"scale={self.scale!r} must be finite")
        object.__setattr__(self, "factors", factors)

    @classmethod
    def from_name(
        cls, name: str, n_features: int, *, gamma: float | None = None
    ) -> "ProductKernel":
        """Build the product form of a kernel that scikit-learn knows by name.

        Parameters
        ----------
        name : {"rbf", "laplacian", "chi2"}
            Name in `sklearn.metrics.pairwise.pairwise_kernels`.
        n_features : int
            Number of features.
        gamma : float, optional
            Width parameter; None is 1 / n_features, as in scikit-learn (1.0 for "chi2").

        Returns
        -------
        ProductKernel
            One factor a feature.

        Raises
        ------
        ValueError
            If the kernel isn't a product over features.

        Examples
        --------
        >>> from equipoise.explainers import ProductKernel
        >>> ProductKernel.from_name("rbf", 1, gamma=2.0).factors
        (RBFFactor(gamma=2.0, length_scale=None),)
        """
        kinds: dict[str, Callable[..., Factor]] = {
            "rbf": RBFFactor,
            "laplacian": LaplacianFactor,
            "chi2": Chi2Factor,
        }
        if name not in kinds:
            raise ValueError(
                f"kernel {name!r} is not a product of one factor a feature, so it has no exact "
                f"product-kernel attribution; allowed: {sorted(kinds)}, or a ProductKernel"
            )
        if gamma is None:
            gamma = 1.0 if name == "chi2" else 1.0 / n_features
        return cls([kinds[name](gamma=gamma)] * n_features)

    @classmethod
    def from_sklearn(cls, kernel: gp.Kernel, n_features: int) -> "ProductKernel":
        """Build the product form of a kernel of `sklearn.gaussian_process.kernels`.

        Parameters
        ----------
        kernel : Kernel
            RBF, ConstantKernel, and products and powers of these; Matern, RationalQuadratic and
            ExpSineSquared with one feature.
        n_features : int
            Number of features.

        Returns
        -------
        ProductKernel
            One factor a feature, the constants in `scale`.

        Raises
        ------
        ValueError
            If a part of the kernel is no product over features (the message names it), or if the
            kernel is a sum of several.

        Examples
        --------
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> from equipoise.explainers import ProductKernel
        >>> ProductKernel.from_sklearn(4.0 * RBF([1.0, 2.0]), 2).scale
        4.0
        """
        terms, _ = product_terms(kernel, n_features)
        if len(terms) != 1:
            raise ValueError(
                f"{kernel} is a sum of {len(terms)} product kernels; ProductKernel holds one"
            )
        return terms[0]

    @property
    def unit(self) -> bool:
        """Whether all factors lie in [0, 1]."""
        return all(factor.unit for factor in self.factors)

    def factors_matrix(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Compute all factors of all pairs.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Points.
        Y : array-like of shape (m, d)
            Other points.

        Returns
        -------
        ndarray of shape (n, m, d)
            ``k_j(X[a, j], Y[b, j])``, without `scale`.
        """
        X, Y = self.columns(X), self.columns(Y)
        return np.stack(
            [k(X[:, j], Y[:, j]) for j, k in enumerate(self.factors)], axis=-1, dtype=np.float64
        )

    def columns(self, X: np.ndarray) -> np.ndarray:
        """Check the number of columns."""
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != len(self.factors):
            raise ValueError(
                f"The kernel has {len(self.factors)} factors, got an array of shape {X.shape}"
            )
        return X

    def __call__(self, X: np.ndarray, Y: np.ndarray | None = None) -> np.ndarray | float:
        """Compute the kernel.

        Parameters
        ----------
        X : array-like of shape (n, d) or (d,)
            Points, or one point.
        Y : array-like of shape (m, d) or (d,), optional
            Other points; None is X.

        Returns
        -------
        ndarray of shape (n, m), or float
            Kernel matrix; a float for two points.
        """
        X = np.asarray(X, dtype=np.float64)
        Y = X if Y is None else np.asarray(Y, dtype=np.float64)
        if X.ndim == 1 and Y.ndim == 1:
            return float(np.asarray(self(X[None], Y[None]))[0, 0])
        X, Y = self.columns(X), self.columns(Y)
        K = np.full((len(X), len(Y)), float(self.scale))
        for j, factor in enumerate(self.factors):
            K *= factor(X[:, j], Y[:, j])
        return K


def player_logs(
    kernel: ProductKernel, X: np.ndarray, support: np.ndarray, player: np.ndarray, n_players: int
) -> np.ndarray | None:
    """Add up log factors over each player's columns, for support points side by side.

    Parameters
    ----------
    kernel : ProductKernel
        Kernel with d factors.
    X : ndarray of shape (n, d)
        Points.
    support : ndarray of shape (n_blocks, d, lanes)
        Support points as `lane_blocks` lays them out.
    player : ndarray of shape (d,)
        Which player a column belongs to.
    n_players : int
        Number of players; one without columns has factor 1.

    Returns
    -------
    ndarray of shape (n, n_blocks, n_players, lanes), or None
        Log factors; None if some factor has no logarithm.
    """
    n_blocks, _, lanes = support.shape
    factors = kernel.factors
    if any(isinstance(factor, CallableFactor) and not factor.log for factor in factors):
        return None
    logs = np.zeros((len(X), n_blocks, n_players, lanes))
    if all(factor.code >= 0 for factor in factors):
        if X.min(initial=0.0) < 0 and any(isinstance(factor, Chi2Factor) for factor in factors):
            raise ValueError("The chi2 kernel takes values of at least 0; X holds negative ones")
        codes = np.array([factor.code for factor in factors])
        parameters = np.array([factor.parameter for factor in factors])
        fill_log_factors(X, support, codes, parameters, player, logs)
        return logs
    for j, factor in enumerate(factors):
        column = factor.log_values(X[:, j], support[:, j].ravel())
        logs[:, :, player[j]] += column.reshape(len(X), n_blocks, lanes)
    return logs


def player_factors(
    kernel: ProductKernel,
    X: np.ndarray,
    support: np.ndarray,
    player: np.ndarray,
    n_players: int,
    *,
    minus_one: bool = False,
) -> np.ndarray:
    """Multiply factors over each player's columns, for support points side by side.

    Parameters
    ----------
    kernel, X, support, player, n_players
        As in `player_logs`.
    minus_one : bool, default=False
        Return the factors minus 1, which is then accurate where they are nearly 1.

    Returns
    -------
    ndarray of shape (n, n_blocks, n_players, lanes)
        Factors.
    """
    logs = player_logs(kernel, X, support, player, n_players)
    if logs is not None:
        return np.expm1(logs, out=logs) if minus_one else np.exp(logs, out=logs)
    n_blocks, _, lanes = support.shape
    product = np.ones((len(X), n_blocks, n_players, lanes))
    for j, factor in enumerate(kernel.factors):
        column = factor(X[:, j], support[:, j].ravel())
        product[:, :, player[j]] *= column.reshape(len(X), n_blocks, lanes)
    return product - 1.0 if minus_one else product


_MAX_TERMS = 64


def combine(first: Factor, second: Factor) -> Factor:
    """Multiply two factors of one feature."""
    if isinstance(first, RBFFactor) and first.parameter == 0:
        return second
    if isinstance(second, RBFFactor) and second.parameter == 0:
        return first
    for kind in (RBFFactor, LaplacianFactor):
        if isinstance(first, kind) and isinstance(second, kind):
            return kind(gamma=first.parameter + second.parameter)
    if not (first.unit and second.unit):
        return CallableFactor(partial(multiply, first, second))
    return FactorProduct((first, second), (1.0, 1.0))


def multiply(first: Factor, second: Factor, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Multiply the values of two factors."""
    return first(x, y) * second(x, y)


def power(factor: Factor, exponent: float) -> Factor:
    """Raise a factor of one feature to a power."""
    if isinstance(factor, RBFFactor):
        return RBFFactor(gamma=exponent * factor.parameter)
    if isinstance(factor, LaplacianFactor):
        return LaplacianFactor(gamma=exponent * factor.parameter)
    return FactorProduct((factor,), (exponent,))


def product_terms(kernel: gp.Kernel, n_features: int) -> tuple[list[ProductKernel], float]:
    """Write a Gaussian-process kernel as a sum of product kernels plus white noise.

    Parameters
    ----------
    kernel : Kernel
        A kernel of `sklearn.gaussian_process.kernels`.
    n_features : int
        Number of features.

    Returns
    -------
    terms : list of ProductKernel
        Summands; products are distributed over sums.
    noise : float
        Noise level of the white kernel, which is 0 between different points.

    Raises
    ------
    ValueError
        If a part isn't a product over features, or there are more than 64 summands.
    """
    ones = [RBFFactor(gamma=0.0)] * n_features
    if isinstance(kernel, gp.ConstantKernel):
        return [ProductKernel(ones, float(kernel.constant_value))], 0.0
    if isinstance(kernel, gp.WhiteKernel):
        return [], float(kernel.noise_level)
    if isinstance(kernel, gp.Sum):
        first, noise_1 = product_terms(kernel.k1, n_features)
        second, noise_2 = product_terms(kernel.k2, n_features)
        return capped(first + second, kernel), noise_1 + noise_2
    if isinstance(kernel, gp.Product):
        first, noise_1 = product_terms(kernel.k1, n_features)
        second, noise_2 = product_terms(kernel.k2, n_features)
        if noise_1 or noise_2:
            return with_scaled_noise(first, noise_1, second, noise_2, kernel)
        products = [
            ProductKernel(
                [combine(f, g) for f, g in zip(p.factors, q.factors, strict=True)],
                p.scale * q.scale,
            )
            for p in first
            for q in second
        ]
        return capped(products, kernel), 0.0
    if isinstance(kernel, gp.Exponentiation):
        base, noise = product_terms(kernel.kernel, n_features)
        if noise or len(base) != 1:
            raise ValueError(f"{kernel}: only a power of a single product kernel is a product")
        powers = [power(factor, kernel.exponent) for factor in base[0].factors]
        return [ProductKernel(powers, base[0].scale ** kernel.exponent)], 0.0
    return [ProductKernel(leaf_factors(kernel, n_features))], 0.0


def capped(terms: list[ProductKernel], kernel: gp.Kernel) -> list[ProductKernel]:
    """Refuse sums of too many product kernels."""
    if len(terms) > _MAX_TERMS:
        raise ValueError(
            f"{kernel} expands into {len(terms)} product kernels; at most {_MAX_TERMS} are allowed"
        )
    return terms


def with_scaled_noise(
    first: list[ProductKernel],
    noise_1: float,
    second: list[ProductKernel],
    noise_2: float,
    kernel: gp.Kernel,
) -> tuple[list[ProductKernel], float]:
    """Multiply white noise by a constant; any other product with it is refused."""

    def constant(terms: list[ProductKernel]) -> float | None:
        factors = [factor for term in terms for factor in term.factors]
        flat = all(isinstance(f, RBFFactor) and f.parameter == 0.0 for f in factors)
        return sum(t.scale for t in terms) if flat else None

    for terms, noise, other, other_noise in (
        (first, noise_1, second, noise_2),
        (second, noise_2, first, noise_1),
    ):
        scale = constant(other)
        if noise and not other_noise and scale is not None:
            scaled = [ProductKernel(t.factors, t.scale * scale) for t in terms]
            return scaled, noise * scale
    raise ValueError(f"{kernel}: a WhiteKernel may be multiplied by a constant only")


def leaf_factors(kernel: gp.Kernel, n_features: int) -> list[Factor]:
    """Split a kernel without parts into one factor a feature."""
    if isinstance(kernel, gp.Matern) and kernel.nu != np.inf:
        if n_features == 1 and kernel.nu in (0.5, 1.5, 2.5):
            return [Matern1DFactor(kernel.nu, float(np.ravel(kernel.length_scale)[0]))]
    elif isinstance(kernel, gp.RBF):  # Matern is a subclass; nu = inf is the RBF itself
        scales = np.broadcast_to(kernel.length_scale, (n_features,))
        return [RBFFactor(length_scale=float(scale)) for scale in scales]
    elif isinstance(kernel, gp.PairwiseKernel) and kernel.metric in ("rbf", "laplacian", "chi2"):
        named = ProductKernel.from_name(kernel.metric, n_features, gamma=kernel.gamma)
        return list(named.factors)
    elif isinstance(kernel, gp.ExpSineSquared) and n_features == 1:
        return [PeriodicFactor(kernel.periodicity, kernel.length_scale)]
    elif isinstance(kernel, gp.RationalQuadratic) and n_features == 1:
        return [RationalQuadraticFactor(kernel.alpha, kernel.length_scale)]
    raise ValueError(
        f"{kernel} is not a product of one factor a feature with {n_features} features "
        f"({reason(kernel)}), so it has no exact product-kernel attribution; allowed: RBF, "
        "ConstantKernel, WhiteKernel, and sums, products and powers of these"
    )


def reason(kernel: Any) -> str:
    """Say why a kernel isn't a product."""
    if isinstance(kernel, gp.Matern | gp.RationalQuadratic | gp.ExpSineSquared):
        return "it depends on the Euclidean distance as a whole, not feature by feature"
    if isinstance(kernel, gp.DotProduct):
        return "it is a sum over features"
    return "its form is not known to factorise"
