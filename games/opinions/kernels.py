"""Compiled passes over a sparse network: one step of an affine process, checks of the pattern."""

import numpy as np
from numba import njit

__all__ = ["affine_step", "edge_sums", "first_asymmetric_row"]

Array = np.ndarray


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def affine_step(
    indptr: Array,
    indices: Array,
    data: Array,
    u: Array,
    scale: Array,
    offset: Array,
    x: Array,
    out: Array,
    start: int,
    stop: int,
) -> float:
    """Write ``out = offset + scale * (W u)`` for the rows in [start, stop).

    Returns the largest |out - x| of these rows: the residual of the fixed point comes with the
    step, at no further pass over the network.
    """
    largest = 0.0
    for i in range(start, stop):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += data[k] * u[indices[k]]
        value = offset[i] + scale[i] * total
        largest = max(largest, abs(value - x[i]))
        out[i] = value
    return largest


@njit(cache=True, nogil=True)
def edge_sums(indptr: Array, values: Array) -> Array:
    """Return the sum of the values on each row's edges, shape (n,)."""
    n = indptr.shape[0] - 1
    sums = np.zeros(n)
    for i in range(n):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += values[k]
        sums[i] = total
    return sums


@njit(cache=True, nogil=True)
def first_asymmetric_row(indptr: Array, indices: Array, data: Array) -> int:
    """Return the first row i with an entry (i, j) unlike (j, i), or -1 for a symmetric matrix.

    Columns must be sorted within rows; no memory is needed.
    """
    n = indptr.shape[0] - 1
    for i in range(n):
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            low, high = indptr[j], indptr[j + 1]
            while low < high:
                middle = (low + high) // 2
                if indices[middle] < i:
                    low = middle + 1
                else:
                    high = middle
            if low == indptr[j + 1] or indices[low] != i or data[low] != data[k]:
                return i
    return -1
