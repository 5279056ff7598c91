"""Kernel expansions f(x) = c + sum_i alpha_i k(x, x_i), the form every model is rewritten to."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .kernels import ProductKernel
from .sparse_engine import has_sparse_form, sparse_kernel

__all__ = ["ProductKernelExpansion", "dense_rows"]


def dense_rows(X: Any) -> np.ndarray:
    """Turn a possibly sparse array into a float64 ndarray."""
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)


@dataclass(frozen=True)
class ProductKernelExpansion:
    """A function that is a weighted sum of product kernels at support points.

    f_o(x) = intercept_o + sum_k weight_ko sum_i coef_io terms_k(x, support_i)

    Parameters
    ----------
    support : ndarray or sparse array of shape (n_support, n_features)
        Support points; sparse where the model keeps them so.
    coef : ndarray of shape (n_support, n_outputs)
        Coefficients.
    intercept : ndarray of shape (n_outputs,)
        Constants.
    terms : tuple of ProductKernel
        Kernels that are summed; most models have one.
    output_names : tuple of str
        One name an output; () for a single output without a name.
    noise : float
        White-noise variance of a Gaussian process; 0 elsewhere.
    term_weights : ndarray of shape (n_terms, n_outputs), optional
        Weight of each kernel in each output; None is ones. Models stacked as outputs of one have
        zeros here where their kernels differ.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.explainers import ProductKernel, RBFFactor
    >>> from equipoise.explainers.product_kernels import ProductKernelExpansion
    >>> kernel = ProductKernel([RBFFactor(gamma=1.0)])
    >>> f = ProductKernelExpansion(np.zeros((1, 1)), np.ones((1, 1)), np.array([2.0]), (kernel,))
    >>> f(np.array([[0.0]]))
    array([[3.]])
    """

    support: Any
    coef: np.ndarray
    intercept: np.ndarray
    terms: tuple[ProductKernel, ...]
    output_names: tuple[str, ...] = ()
    noise: float = 0.0
    term_weights: np.ndarray | None = None

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return self.coef.shape[1]

    def weighted_terms(self) -> Iterator[tuple[ProductKernel, np.ndarray, np.ndarray]]:
        """Go through the kernels with the support points and coefficients that matter for each.

        Yields
        ------
        kernel : ProductKernel
            One of `terms`.
        support : ndarray or sparse array of shape (n_used, n_features)
            Support points with a coefficient other than 0.
        coef : ndarray of shape (n_used, n_outputs)
            Their coefficients, times the kernel's scale and weight.
        """
        for k, kernel in enumerate(self.terms):
            coef = self.coef * kernel.scale
            if self.term_weights is not None:
                coef = coef * self.term_weights[k]
            used = coef.any(axis=1)
            if used.any():
                yield kernel, self.support[used], coef[used]

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Evaluate f.

        Parameters
        ----------
        X : ndarray or sparse array of shape (n, n_features)
            Points.

        Returns
        -------
        ndarray of shape (n, n_outputs)
            Values.
        """
        values = np.tile(self.intercept, (X.shape[0], 1)).astype(np.float64)
        for kernel, support, coef in self.weighted_terms():
            plain = ProductKernel(kernel.factors)
            if has_sparse_form(kernel) and (sparse.issparse(X) or sparse.issparse(support)):
                K = sparse_kernel(plain, X, support)
            else:
                K = np.asarray(plain(dense_rows(X), dense_rows(support)))
            values += K @ coef
        return values
