"""Kernel expansions f(x) = c + sum_i alpha_i k(x, x_i), the form every model is rewritten to."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import block_diag
from sklearn import get_config

from .kernels import ProductKernel
from .sparse_engine import has_sparse_form, sparse_kernel

__all__ = ["ProductKernelExpansion", "dense_rows", "densified", "stack"]


def dense_rows(X: Any) -> np.ndarray:
    """Turn a possibly sparse array into a float64 ndarray."""
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)


def densified(X: Any, working_memory: float | None) -> np.ndarray:
    """Turn sparse rows into dense ones if they fit into the memory budget."""
    if not sparse.issparse(X):
        return X
    budget = get_config()["working_memory"] if working_memory is None else working_memory
    needed = 8.0 * X.shape[0] * X.shape[1] / 2**20
    if needed > budget:
        raise ValueError(
            f"X is sparse, and this explanation needs it dense: {needed:.0f} MiB, but "
            f"working_memory is {budget:.0f} MiB. Sparse rows are explained as they are with "
            "removal='identity', no groups, method='quadrature' and backend 'auto' or 'numba'"
        )
    return dense_rows(X)


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

    @property
    def scale(self) -> np.ndarray:
        """Total of the coefficients' sizes in each output, of shape (n_outputs,)."""
        totals = [np.abs(coef).sum(axis=0) for _, _, coef in self.weighted_terms()]
        return np.sum(totals, axis=0) + np.zeros(self.n_outputs)

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
            if has_sparse_form(kernel) and (sparse.issparse(X) or sparse.issparse(support)):
                K = sparse_kernel(kernel, X, support)
            else:
                K = kernel.unscaled(dense_rows(X), dense_rows(support))
            values += K @ coef
        return values


def same_rows(first: Any, second: Any) -> bool:
    """Say whether two sets of support points are the same."""
    if first.shape != second.shape:
        return False
    if sparse.issparse(first) and sparse.issparse(second):
        return (first != second).nnz == 0
    return np.array_equal(dense_rows(first), dense_rows(second))


def stack(
    parts: list[ProductKernelExpansion], output_names: tuple[str, ...]
) -> ProductKernelExpansion:
    """Join expansions of the same columns as the outputs of one."""
    first = parts[0]
    widths = [part.n_outputs for part in parts]
    if all(same_rows(part.support, first.support) for part in parts):
        support, coef = first.support, np.hstack([part.coef for part in parts])
    else:
        rows = [part.support for part in parts]
        support = sparse.vstack(rows, "csr") if sparse.issparse(rows[0]) else np.vstack(rows)
        coef = block_diag(*(part.coef for part in parts))
    terms, term_weights = first.terms, None
    if any(part.terms != first.terms for part in parts):
        terms = tuple(kernel for part in parts for kernel in part.terms)
        term_weights = block_diag(
            *(np.ones((len(part.terms), width)) for part, width in zip(parts, widths, strict=True))
        )
    intercept = np.concatenate([part.intercept for part in parts])
    return ProductKernelExpansion(
        support, coef, intercept, terms, output_names, term_weights=term_weights
    )
