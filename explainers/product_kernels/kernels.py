"""Product kernels: k(x, y) = scale * prod_j k_j(x_j, y_j), one factor a feature."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from .conversion import named_factors, scaled_products
from .engines import lane_blocks
from .factors import CallableFactor, Chi2Factor, Factor, require_positive
from .log_factors import expm1_nonpositive, fill_log_factors

__all__ = ["ProductKernel", "paired_factors", "player_factors", "player_logs", "product_terms"]


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
        require_positive("scale", self.scale)
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
        return cls(named_factors(name, n_features, gamma))

    @classmethod
    def from_sklearn(cls, kernel: Kernel, n_features: int) -> "ProductKernel":
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

    @cached_property
    def unit(self) -> bool:
        """Whether all factors lie in [0, 1]."""
        return all(factor.unit for factor in self.factors)

    @cached_property
    def has_logs(self) -> bool:
        """Whether the factors are known by their logarithms."""
        return all(not isinstance(k, CallableFactor) or k.log for k in self.factors)

    @cached_property
    def formulas(self) -> tuple[np.ndarray, np.ndarray]:
        """Codes and parameters of the factors, each of shape (d,); code -1 has no formula."""
        # Thousands of features usually share one factor object.
        unique = {id(factor): factor for factor in self.factors}
        known = {key: (factor.code, factor.parameter) for key, factor in unique.items()}
        codes, parameters = zip(*(known[id(factor)] for factor in self.factors), strict=True)
        return np.array(codes), np.array(parameters, dtype=np.float64)

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
            x, y = self.columns(X[None]), self.columns(Y[None])
            values = [k(x[:, j], y[:, j])[0, 0] for j, k in enumerate(self.factors)]
            return float(self.scale * np.prod(values))
        X, Y = self.columns(X), self.columns(Y)
        if not (len(X) and len(Y)):
            return np.zeros((len(X), len(Y)))
        return self.scale * self.unscaled(X, Y)

    def unscaled(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Compute the product of the factors, without `scale`.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Points.
        Y : ndarray of shape (m, d)
            Other points, at least one.

        Returns
        -------
        ndarray of shape (n, m)
            Products.
        """
        whole = np.zeros(len(self.factors), dtype=np.intp)
        K = player_factors(self, X, lane_blocks(Y), whole, 1)
        return K.reshape(len(X), -1)[:, : len(Y)]


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
    if not kernel.has_logs:
        return None
    logs = np.zeros((len(X), n_blocks, n_players, lanes))
    codes, parameters = kernel.formulas
    if (codes >= 0).all():
        if X.min(initial=0.0) < 0 and (codes == Chi2Factor.code).any():
            raise ValueError("The chi2 kernel takes values of at least 0; X holds negative ones")
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
    if logs is not None and minus_one and kernel.unit:
        expm1_nonpositive(logs.reshape(-1, logs.shape[-1]))
        return logs
    if logs is not None:
        return np.expm1(logs, out=logs) if minus_one else np.exp(logs, out=logs)
    n_blocks, _, lanes = support.shape
    product = np.ones((len(X), n_blocks, n_players, lanes))
    for j, factor in enumerate(kernel.factors):
        column = factor(X[:, j], support[:, j].ravel())
        product[:, :, player[j]] *= column.reshape(len(X), n_blocks, lanes)
    return product - 1.0 if minus_one else product


def paired_factors(
    kernel: ProductKernel,
    X: np.ndarray,
    Y: np.ndarray,
    player: np.ndarray,
    n_players: int,
    *,
    minus_one: bool = False,
) -> np.ndarray:
    """Multiply factors over each player's columns, for pairs of rows (X_r, Y_r).

    Parameters
    ----------
    kernel : ProductKernel
        Kernel with d factors.
    X, Y : ndarray of shape (n_pairs, d)
        Rows.
    player : ndarray of shape (d,)
        Which player a column belongs to.
    n_players : int
        Number of players.
    minus_one : bool, default=False
        Return the factors minus 1.

    Returns
    -------
    ndarray of shape (n_pairs, n_players)
        Factors.
    """
    logs, plain = np.zeros((len(X), n_players)), np.ones((len(X), n_players))
    for j, factor in enumerate(kernel.factors):
        if isinstance(factor, CallableFactor):
            # It takes matrices of all pairs only: call it on one pair at a time.
            pairs = zip(X[:, j : j + 1], Y[:, j : j + 1], strict=True)
            plain[:, player[j]] *= [factor(x, y)[0, 0] for x, y in pairs]
        else:
            logs[:, player[j]] += factor.log_of(X[:, j], Y[:, j])
    if minus_one:
        return np.where(plain == 1, np.expm1(logs), plain * np.exp(logs) - 1)
    return plain * np.exp(logs)


def product_terms(kernel: Kernel, n_features: int) -> tuple[list[ProductKernel], float]:
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
        Summands.
    noise : float
        Noise level of the white kernel.

    Raises
    ------
    ValueError
        See `scaled_products`.
    """
    products, noise = scaled_products(kernel, n_features)
    return [ProductKernel(factors, scale) for factors, scale in products], noise
