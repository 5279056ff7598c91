"""Identity removal for sparse rows: features whose values agree are null players, and are skipped.

With absence factors 1 a feature with equal values in x and in the support point has the factor 1
present or absent. The game of one support point is then played by the features in which the two
rows differ, found by merging their lists of nonzeros: work grows with the nonzeros, not with the
number of features.
"""

import math
from typing import Any

import numpy as np
from numba import njit
from scipy import sparse

from .engines import _FASTMATH
from .kernels import ProductKernel
from .nodes import QuadratureRules

__all__ = ["has_sparse_form", "sparse_identity_values", "sparse_kernel"]


@njit(cache=True, nogil=True)
def log_factor(code, p, x, y):  # type: ignore[no-untyped-def]
    """Compute one log factor; the codes are those of `Factor`."""
    if code == 0:
        return -p * (x - y) * (x - y)
    if code == 1:
        return -p * abs(x - y)
    if code == 2:
        return p if x != y else 0.0
    return -p * (x - y) * (x - y) / (x + y) if x + y > 0 else 0.0


@njit(cache=True, nogil=True)
def merge(  # type: ignore[no-untyped-def]
    x_columns, x_values, y_columns, y_values, codes, parameters, columns, logs
):
    """Write the columns in which two sparse rows differ, and their log factors; return how many."""
    n = i = k = 0
    while i < x_columns.size or k < y_columns.size:
        if k == y_columns.size or (i < x_columns.size and x_columns[i] < y_columns[k]):
            j, x, y = x_columns[i], x_values[i], 0.0
            i += 1
        elif i == x_columns.size or y_columns[k] < x_columns[i]:
            j, x, y = y_columns[k], 0.0, y_values[k]
            k += 1
        else:
            j, x, y = x_columns[i], x_values[i], y_values[k]
            i += 1
            k += 1
        if x != y:
            columns[n] = j
            logs[n] = log_factor(codes[j], parameters[j], x, y)
            n += 1
    return n


@njit(cache=True, nogil=True)
def kernel_rows(  # type: ignore[no-untyped-def]
    x_starts, x_columns, x_values, y_starts, y_columns, y_values, codes, parameters, K
):
    """Fill the kernel matrix of two sets of sparse rows."""
    columns = np.empty(codes.size, dtype=np.int64)
    logs = np.empty(codes.size)
    for a in range(K.shape[0]):
        in_a = slice(x_starts[a], x_starts[a + 1])
        for b in range(K.shape[1]):
            in_b = slice(y_starts[b], y_starts[b + 1])
            n = merge(
                x_columns[in_a], x_values[in_a], y_columns[in_b], y_values[in_b],
                codes, parameters, columns, logs,
            )  # fmt: skip
            K[a, b] = math.exp(logs[:n].sum())


@njit(nogil=True, fastmath=_FASTMATH)
def short_passes(D, t, w, pre, acc):  # type: ignore[no-untyped-def]
    """Set acc[j] to the integral of prod_{l != j} (1 + t D_l), for one term of few players."""
    n, m = D.size, t.size
    for q in range(m):
        pre[0, q] = 1.0
    for j in range(n - 1):
        for q in range(m):
            pre[j + 1, q] = pre[j, q] + pre[j, q] * (t[q] * D[j])
    for q in range(m):
        pre[n, q] = w[q]
    for j in range(n - 1, -1, -1):
        total = 0.0
        for q in range(m):
            total += pre[j, q] * pre[n, q]
            pre[n, q] += pre[n, q] * (t[q] * D[j])
        acc[j] = total


@njit(cache=True, nogil=True)
def value_rows(  # type: ignore[no-untyped-def]
    x_starts, x_columns, x_values, y_starts, y_columns, y_values, codes, parameters, coef,
    limits, starts, nodes, weights, tol, last_exact, phi, error,
):  # fmt: skip
    """Add the players' values of sparse rows; return most nodes and the largest Z."""
    d = codes.size
    columns = np.empty(d, dtype=np.int64)
    D = np.empty(d)
    acc = np.empty(d)
    longest = (x_starts[1:] - x_starts[:-1]).max() + (y_starts[1:] - y_starts[:-1]).max()
    pre = np.empty((min(d, longest) + 1, (starts[1:] - starts[:-1]).max()))
    most_nodes = 0
    largest = 0.0
    for a in range(phi.shape[0]):
        in_a = slice(x_starts[a], x_starts[a + 1])
        for b in range(coef.shape[0]):
            in_b = slice(y_starts[b], y_starts[b + 1])
            n = merge(
                x_columns[in_a], x_values[in_a], y_columns[in_b], y_values[in_b],
                codes, parameters, columns, D,
            )  # fmt: skip
            z = 0.0
            for j in range(n):
                D[j] = math.expm1(D[j])
                z -= D[j]
            rule = min(np.searchsorted(limits, z), limits.size - 1)
            t = nodes[starts[rule] : starts[rule + 1]]
            w = weights[starts[rule] : starts[rule + 1]]
            bound = 0.0 if last_exact and rule == limits.size - 1 else tol / max(1.0, z)
            if n > 0:
                short_passes(D[:n], t, w, pre, acc)
            for j in range(n):
                for o in range(coef.shape[1]):
                    phi[a, columns[j], o] += D[j] * acc[j] * coef[b, o]
                    error[a, columns[j], o] += bound * abs(D[j] * coef[b, o])
            most_nodes = max(most_nodes, t.size)
            largest = max(largest, z)
    return most_nodes, largest


def has_sparse_form(kernel: ProductKernel) -> bool:
    """Say whether equal values, in particular two zeros, make all factors 1 in compiled code."""
    return bool((kernel.formulas[0] >= 0).all())


def merged_lists(X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a sparse matrix's row starts, sorted columns and values, without duplicates."""
    X = sparse.csr_array(X, dtype=np.float64, copy=True)
    X.sum_duplicates()
    return X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data


def sparse_kernel(kernel: ProductKernel, X: Any, Y: Any) -> np.ndarray:
    """Compute a product kernel, without its scale, between sparse rows.

    Parameters
    ----------
    kernel : ProductKernel
        A kernel for which `has_sparse_form`.
    X : sparse matrix of shape (n, d)
        Rows.
    Y : sparse matrix of shape (m, d)
        Other rows.

    Returns
    -------
    ndarray of shape (n, m)
        Kernel matrix.
    """
    K = np.empty((X.shape[0], Y.shape[0]))
    kernel_rows(*merged_lists(X), *merged_lists(Y), *kernel.formulas, K)
    return K


def sparse_identity_values(
    kernel: ProductKernel, X: Any, support: Any, coef: np.ndarray, rules: QuadratureRules
) -> tuple[np.ndarray, np.ndarray, int, float]:
    """Compute the players' values of sparse rows, each column a player.

    Parameters
    ----------
    kernel : ProductKernel
        A kernel for which `has_sparse_form`.
    X : sparse matrix of shape (n, d)
        Rows explained.
    support : sparse matrix of shape (n_support, d)
        Support points.
    coef : ndarray of shape (n_support, n_outputs)
        Coefficients.
    rules : QuadratureRules
        Nodes; chosen for each pair of rows.

    Returns
    -------
    phi, error : ndarray of shape (n, d, n_outputs)
        Values, and a bound on their absolute error.
    most_nodes : int
        The largest rule used.
    largest : float
        The largest Z met.
    """
    n, d = X.shape
    phi, error = np.zeros((n, d, coef.shape[1])), np.zeros((n, d, coef.shape[1]))
    most_nodes, largest = value_rows(
        *merged_lists(X), *merged_lists(support), *kernel.formulas, coef, *rules, phi, error
    )
    return phi, error, most_nodes, largest
