"""Checks of the parts of a system before it is built."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from .nodes import sign_of

__all__ = [
    "check_actions",
    "check_exact",
    "check_names",
    "check_offsets",
    "check_operators",
    "check_starts",
    "check_vector",
    "compact_rows",
]

Array = np.ndarray


def compact_rows(A: Any, n: int) -> sp.csr_array:
    """A private float64 copy: sorted, duplicates summed, zeros dropped, small indices."""
    try:
        matrix = sp.csr_array(A, dtype=np.float64, copy=True)
    except (TypeError, ValueError) as error:
        raise ValueError(f"A must be a matrix of real numbers: {error}") from error
    if matrix.ndim != 2 or matrix.shape[1] != n:
        raise ValueError(f"A must have one column for each of {n} nodes, got shape {matrix.shape}")
    if matrix.nnz and (matrix.indices.max() >= n or matrix.indices.min() < 0):
        wrong = matrix.indices[(matrix.indices >= n) | (matrix.indices < 0)][0]
        raise ValueError(f"A has column index {wrong}; allowed: 0 to {n - 1}")
    if not np.isfinite(matrix.data).all():
        raise ValueError("A must be finite, got NaN or infinity")
    matrix.sum_duplicates()
    if (matrix.data == 0).any():
        matrix.eliminate_zeros()
    size = np.int64 if max(matrix.nnz, *matrix.shape) >= 2**31 else np.int32
    matrix.indices = matrix.indices.astype(size, copy=False)
    matrix.indptr = matrix.indptr.astype(size, copy=False)
    return matrix


def check_names(names: Any, n: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    names = tuple(names)
    if len(names) != n:
        raise ValueError(f"names must hold one name for each of {n} nodes, got {len(names)}")
    for name in names:
        if not isinstance(name, str) or not name.isidentifier() or name in ("max", "min"):
            raise ValueError(f"names: {name!r} is not an identifier (letters, digits, _)")
    if len(set(names)) < n:
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"names: {twice!r} occurs more than once")
    return names


def check_offsets(b: Any, m: int) -> Array:
    """A private float64 copy of the offsets, one a row."""
    offsets = np.array(b, dtype=np.float64)
    if offsets.shape != (m,):
        raise ValueError(f"b must have one offset for each of A's {m} rows, got {offsets.shape}")
    if not np.isfinite(offsets).all():
        raise ValueError("b must be finite, got NaN or infinity")
    return offsets


def check_starts(starts: Array, m: int) -> Array:
    """The number of actions of each node, at least one everywhere and m in total."""
    sizes = np.diff(starts)
    if (sizes == 0).any():
        raise ValueError(f"node {int(np.argmin(sizes))} has no action; each needs at least one")
    if starts[0] != 0 or starts[-1] != m or (sizes < 0).any():
        raise ValueError(f"indptr must rise from 0 to A's number of rows, {m}")
    return sizes


def check_operators(op: Sequence[Any] | Array, sizes: Array) -> Array:
    """+1, -1 or 0 for each node, int8; a node with one action is affine."""
    if len(op) != len(sizes):
        raise ValueError(f"op must have one entry for each of {len(sizes)} nodes, got {len(op)}")
    given = np.asarray(op)
    if given.dtype.kind in "iu":
        if not np.isin(given, (-1, 0, 1)).all():
            raise ValueError("op holds a number other than 1 (max), -1 (min), 0 (affine)")
        ops = given.astype(np.int8)
    else:
        ops = np.array([sign_of(word) for word in op], dtype=np.int8)
    wrong = np.flatnonzero((ops == 0) & (sizes > 1))
    if wrong.size:
        raise ValueError(f"node {wrong[0]} is affine but has {sizes[wrong[0]]} actions; allowed: 1")
    ops[sizes == 1] = 0
    return ops


def check_exact(
    A_exact: Sequence[Fraction] | None,
    b_exact: Sequence[Fraction] | None,
    data: Array,
    offsets: Array,
) -> tuple[tuple[Fraction, ...] | None, tuple[Fraction, ...] | None]:
    """The exact values as tuples, if they are given and round to the floats."""
    if A_exact is None and b_exact is None:
        return None, None
    if A_exact is None or b_exact is None:
        raise ValueError("A_exact and b_exact must be given together")
    for exact, rounded in ((A_exact, data), (b_exact, offsets)):
        if not np.array_equal([float(value) for value in exact], rounded):
            raise ValueError("A_exact and b_exact must be the exact values of A.data and b")
    return tuple(A_exact), tuple(b_exact)


def check_vector(x: Any, n: int, name: str) -> Array:
    """A private finite float64 vector of length n."""
    values = np.array(x, dtype=np.float64)
    if values.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), got {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    return values


def check_actions(pi: Any, sizes: Array, name: str) -> Array:
    """A policy as int64: one action a node, each below the node's number of actions."""
    policy = np.array(pi)
    if policy.shape != sizes.shape or policy.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must hold one action (int) for each of {len(sizes)} nodes, got shape "
            f"{policy.shape} of {policy.dtype}"
        )
    wrong = np.flatnonzero((policy < 0) | (policy >= sizes))
    if wrong.size:
        i = int(wrong[0])
        raise ValueError(f"{name}[{i}]={policy[i]} is out of range; allowed: 0 to {sizes[i] - 1}")
    return policy.astype(np.int64)
