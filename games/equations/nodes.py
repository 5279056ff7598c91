"""From nodes with rows, or from padded dense arrays, to the compressed form of a system."""

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

__all__ = ["CompressedSystem", "compress_dense", "compress_nodes", "sign_of"]

SIGNS = {"max": 1, "min": -1, "affine": 0, 1: 1, -1: -1, 0: 0}


class CompressedSystem(NamedTuple):
    """What the constructor of a system takes."""

    A: sp.csr_array
    b: np.ndarray
    indptr: np.ndarray
    op: np.ndarray
    A_exact: list[Fraction] | None = None
    b_exact: list[Fraction] | None = None


def sign_of(op: Any) -> int:
    """+1 for max, -1 for min, 0 for affine."""
    try:
        return SIGNS[op]
    except (KeyError, TypeError):
        raise ValueError(
            f"op={op!r} is not allowed; allowed: 'max', 'min', 'affine' or 1, -1, 0"
        ) from None


def exact(value: Any, where: str) -> Fraction | None:
    """The number as a fraction, or None for a float, whose meaning is its nearest value."""
    if isinstance(value, str):
        try:
            return Fraction(value)
        except (ValueError, ZeroDivisionError):
            raise ValueError(f"{where}={value!r} is not a decimal or a fraction") from None
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, Real):
        if not math.isfinite(value):
            raise ValueError(f"{where}={value!r} must be finite")
        return None
    raise TypeError(f"{where} must be a real number or a decimal string, got {value!r}")


def row_entries(row: Any, n: int, where: str) -> list[tuple[int, Any]]:
    """The (column, value) pairs of a row given as a mapping or as an array of length n."""
    if isinstance(row, Mapping):
        items: Iterable[tuple[Any, Any]] = row.items()
    else:
        values = list(row)
        if len(values) != n:
            raise ValueError(f"{where} has {len(values)} coefficients, but there are {n} nodes")
        items = enumerate(values)
    entries = []
    for column, value in items:
        if not isinstance(column, Integral) or not 0 <= int(column) < n:
            raise ValueError(f"{where}: column {column!r} is out of range; allowed: 0 to {n - 1}")
        entries.append((int(column), value))
    return sorted(entries)


def compress_nodes(nodes: Sequence[tuple[Any, Sequence[tuple[Any, Any]]]]) -> CompressedSystem:
    """Compress ``[(op, [(row, offset), ...]), ...]``; see `LEMM.from_nodes`."""
    nodes = list(nodes)
    n = len(nodes)
    op, indptr = [], [0]
    cols: list[int] = []
    ptr = [0]
    values: list[Any] = []
    fractions: list[Fraction | None] = []
    offsets: list[Any] = []
    offset_fractions: list[Fraction | None] = []
    for i, node in enumerate(nodes):
        try:
            kind, rows = node
            pairs = [(row, offset) for row, offset in rows]
        except (TypeError, ValueError):
            raise ValueError(
                f"nodes[{i}] must be (op, [(row, offset), ...]), got {node!r}"
            ) from None
        op.append(sign_of(kind))
        for a, (row, offset) in enumerate(pairs):
            for column, value in row_entries(row, n, f"nodes[{i}] action {a}"):
                fraction = exact(value, f"nodes[{i}] action {a} coefficient")
                if (value if fraction is None else fraction) != 0:
                    cols.append(column)
                    values.append(value if fraction is None else fraction)
                    fractions.append(fraction)
            ptr.append(len(cols))
            fraction = exact(offset, f"nodes[{i}] action {a} offset")
            offsets.append(offset if fraction is None else fraction)
            offset_fractions.append(fraction)
        indptr.append(len(offsets))
    A = sp.csr_array(
        (np.array([float(v) for v in values]), np.array(cols, dtype=np.int64), np.array(ptr)),
        shape=(len(offsets), n),
    )
    b = np.array([float(v) for v in offsets])
    A_exact = [f for f in fractions if f is not None]
    b_exact = [f for f in offset_fractions if f is not None]
    if len(A_exact) < len(fractions) or len(b_exact) < len(offset_fractions):
        return CompressedSystem(A, b, np.array(indptr), np.array(op))
    return CompressedSystem(A, b, np.array(indptr), np.array(op), A_exact, b_exact)


def compress_dense(Q: Any, b: Any, op: Any) -> CompressedSystem:
    """Compress ``Q (n, k, n)`` and ``b (n, k)``, where a NaN offset marks an absent action."""
    holder = np.asarray(Q)
    offsets = np.asarray(b)
    if holder.ndim != 3 or holder.shape[0] != holder.shape[2]:
        raise ValueError(f"Q must have shape (n, k, n), got {holder.shape}")
    if offsets.shape != holder.shape[:2]:
        raise ValueError(f"b must have shape {holder.shape[:2]} as Q asks, got {offsets.shape}")
    if len(op) != len(holder):
        raise ValueError(f"op must have one entry for each of {len(holder)} nodes, got {len(op)}")
    if holder.dtype == object or offsets.dtype == object or holder.dtype.kind in "iuU":
        present = [[not is_nan(value) for value in row] for row in offsets]
        return compress_nodes(
            [
                (op[i], [(list(holder[i, a]), offsets[i, a]) for a in np.flatnonzero(present[i])])
                for i in range(len(holder))
            ]
        )
    holder, offsets = holder.astype(float), offsets.astype(float)
    present = ~np.isnan(offsets)
    if np.isnan(holder[present]).any():
        raise ValueError("Q has NaN in a row whose offset in b is a number")
    A = sp.csr_array(holder[present])
    indptr = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
    return CompressedSystem(A, offsets[present], indptr, np.array([sign_of(o) for o in op]))


def is_nan(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
