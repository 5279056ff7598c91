"""Kernels of scikit-learn's Gaussian processes as sums of scaled products of factors."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.gaussian_process import kernels as gp

from .factors import (
    CallableFactor,
    Chi2Factor,
    Factor,
    FactorProduct,
    LaplacianFactor,
    Matern1DFactor,
    PeriodicFactor,
    RationalQuadraticFactor,
    RBFFactor,
)

__all__ = ["Scaled", "named_factors", "scaled_products"]


class Scaled(NamedTuple):
    """A constant times one factor a feature."""

    factors: list[Factor]
    scale: float = 1.0


_MAX_TERMS = 64

_NAMED: dict[str, Callable[..., Factor]] = {
    "chi2": Chi2Factor,
    "laplacian": LaplacianFactor,
    "rbf": RBFFactor,
}


def named_factors(name: str, n_features: int, gamma: float | None = None) -> list[Factor]:
    """Split a kernel that scikit-learn knows by name into one factor a feature.

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
    list of Factor
        One factor a feature.

    Raises
    ------
    ValueError
        If the kernel isn't a product over features.
    """
    if name not in _NAMED:
        raise ValueError(
            f"kernel {name!r} is not a product of one factor a feature, so it has no exact "
            f"product-kernel attribution; allowed: {sorted(_NAMED)}, or a ProductKernel"
        )
    if gamma is None:
        gamma = 1.0 if name == "chi2" else 1.0 / n_features
    return [_NAMED[name](gamma=gamma)] * n_features


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


def scaled_products(kernel: gp.Kernel, n_features: int) -> tuple[list[Scaled], float]:
    """Write a Gaussian-process kernel as a sum of product kernels plus white noise.

    Parameters
    ----------
    kernel : Kernel
        A kernel of `sklearn.gaussian_process.kernels`.
    n_features : int
        Number of features.

    Returns
    -------
    terms : list of Scaled
        Summands; products are distributed over sums.
    noise : float
        Noise level of the white kernel, which is 0 between different points.

    Raises
    ------
    ValueError
        If a part isn't a product over features, or there are more than 64 summands.
    """
    ones: list[Factor] = [RBFFactor(gamma=0.0)] * n_features
    if isinstance(kernel, gp.ConstantKernel):
        return [Scaled(ones, float(kernel.constant_value))], 0.0
    if isinstance(kernel, gp.WhiteKernel):
        return [], float(kernel.noise_level)
    if isinstance(kernel, gp.Sum):
        first, noise_1 = scaled_products(kernel.k1, n_features)
        second, noise_2 = scaled_products(kernel.k2, n_features)
        return capped(first + second, kernel), noise_1 + noise_2
    if isinstance(kernel, gp.Product):
        first, noise_1 = scaled_products(kernel.k1, n_features)
        second, noise_2 = scaled_products(kernel.k2, n_features)
        if noise_1 or noise_2:
            return with_scaled_noise(first, noise_1, second, noise_2, kernel)
        products = [
            Scaled(
                [combine(f, g) for f, g in zip(p.factors, q.factors, strict=True)],
                p.scale * q.scale,
            )
            for p in first
            for q in second
        ]
        return capped(products, kernel), 0.0
    if isinstance(kernel, gp.Exponentiation):
        if not kernel.exponent > 0:
            raise ValueError(f"{kernel}: only positive exponents keep a kernel a product kernel")
        base, noise = scaled_products(kernel.kernel, n_features)
        if noise or len(base) != 1:
            raise ValueError(f"{kernel}: only a power of a single product kernel is a product")
        powers = [power(factor, kernel.exponent) for factor in base[0].factors]
        return [Scaled(powers, base[0].scale ** kernel.exponent)], 0.0
    return [Scaled(leaf_factors(kernel, n_features))], 0.0


def capped(terms: list[Scaled], kernel: gp.Kernel) -> list[Scaled]:
    """Refuse sums of too many product kernels."""
    if len(terms) > _MAX_TERMS:
        raise ValueError(
            f"{kernel} expands into {len(terms)} product kernels; at most {_MAX_TERMS} are allowed"
        )
    return terms


def with_scaled_noise(
    first: list[Scaled],
    noise_1: float,
    second: list[Scaled],
    noise_2: float,
    kernel: gp.Kernel,
) -> tuple[list[Scaled], float]:
    """Multiply white noise by a constant; any other product with it is refused."""

    def constant(terms: list[Scaled]) -> float | None:
        factors = [factor for term in terms for factor in term.factors]
        flat = all(isinstance(f, RBFFactor) and f.parameter == 0.0 for f in factors)
        return sum(t.scale for t in terms) if flat else None

    for terms, noise, other, other_noise in (
        (first, noise_1, second, noise_2),
        (second, noise_2, first, noise_1),
    ):
        scale = constant(other)
        if noise and not other_noise and scale is not None:
            scaled = [Scaled(t.factors, t.scale * scale) for t in terms]
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
        return named_factors(kernel.metric, n_features, kernel.gamma)
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
