"""Soft labels on many classes of which each item has few: only the shares that aren't 0 are kept.

A row of m shares and the m columns they belong to replaces a row of K shares. The loss spreads a
batch at a time over the K classes, so that training takes O(n m + batch K) memory, not O(n K).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from ...explainers.soft_labels.targets import SUM_TOLERANCE, check_classes

__all__ = ["SparseTargets", "few_a_row", "sparse_targets"]


class SparseTargets(NamedTuple):
    """Validated targets of which at most m a row aren't 0; shorter rows end in shares of 0."""

    P: np.ndarray  # (n, m) rows sum to one
    counts: np.ndarray | None  # (n, m) votes, where the input was votes
    classes: np.ndarray  # (K,) the label of each column
    columns: np.ndarray  # (n, m) column of each share


def few_a_row(values: Any) -> bool:
    """Whether shares and columns together take less room than the dense matrix."""
    rows = csr_array(values)
    return rows.shape[0] > 0 and 2 * int(np.diff(rows.indptr).max()) < rows.shape[1]


def check_rows(rows: csr_array, name: str) -> bool:
    """Refuse what soft labels can't be; whether the rows are votes."""
    where = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    for bad, what in (
        (np.isnan(rows.data), "no label (NaN)"),
        (np.isinf(rows.data), "an infinite entry"),
        (rows.data < 0, "a negative entry"),
    ):
        if bad.any():
            raise ValueError(f"{name} has {what} in row {int(where[np.argmax(bad)])}")
    sums = rows.sum(axis=1)
    if (sums == 0).any():
        raise ValueError(f"{name} has no label in row {int(np.argmax(sums == 0))}")
    unit = np.abs(sums - 1) <= SUM_TOLERANCE
    if unit.all():
        return False
    broken = np.bincount(where, rows.data != np.rint(rows.data), rows.shape[0]) > 0
    if broken.any():
        row = int(np.argmax(broken & ~unit) if (broken & ~unit).any() else np.argmax(~unit))
        raise ValueError(
            f"{name} row {row} sums to {sums[row]:.6g}; allowed: probabilities summing to 1 "
            f"within {SUM_TOLERANCE:g} in all rows, or whole numbers of votes in all rows"
        )
    return True


def sparse_targets(
    values: Any, classes: Sequence[Any] | np.ndarray | None, name: str
) -> SparseTargets:
    """Targets from a sparse matrix (n, K) of probabilities or votes."""
    rows = csr_array(values, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    labels = check_classes(classes, rows.shape[1])
    is_votes = check_rows(rows, name)
    n, m = rows.shape[0], int(np.diff(rows.indptr).max())
    stored = np.arange(m) < np.diff(rows.indptr)[:, None]  # (n, m)
    entries, columns = np.zeros((n, m)), np.zeros((n, m), dtype=np.int64)
    entries[stored], columns[stored] = rows.data, rows.indices
    P = entries / entries.sum(axis=1, keepdims=True)
    return SparseTargets(P, entries.astype(np.int64) if is_votes else None, labels, columns)
