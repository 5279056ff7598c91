"""Human soft labels from hard labels, probabilities or vote counts.

c_i in N^K are the votes for item i, n_i = sum_k c_ik, p_i = c_i / n_i the human soft label,
m_i = argmax_k p_ik the human mode and y_i the original hard label. Dirichlet smoothing with
strength a and the uniform prior gives (c_i + a / K) / (n_i + a). Entropies are in nats.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy.sparse import issparse
from scipy.special import xlogy
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d

__all__ = ["as_soft_labels"]

#: How far a row of probabilities may be from summing to one; within, it is renormalised.
SUM_TOLERANCE = 1e-3


class SoftTargets(NamedTuple):
    """Validated targets: one distribution an item."""

    P: np.ndarray  # (n, K) rows sum to one
    counts: np.ndarray | None  # (n, K) votes, where the input was votes
    classes: np.ndarray  # (K,) the label of each column


def entropy(P: np.ndarray) -> np.ndarray:
    """Entropy of each row in nats, with 0 log 0 = 0."""
    return -xlogy(P, P).sum(axis=1) + 0.0


def miller_madow_entropy(counts: np.ndarray) -> np.ndarray:
    """Entropy of the vote shares plus (observed classes - 1) / (2 n_i)."""
    n = counts.sum(axis=1)
    return entropy(counts / n[:, None]) + ((counts > 0).sum(axis=1) - 1) / (2 * n)


def human_modes(P: np.ndarray, y: np.ndarray | None = None) -> np.ndarray:
    """Column of the largest entry of each row; a tie goes to `y` if it is among the tied, else to
    the smallest column."""
    modes = P.argmax(axis=1)
    if y is not None:
        rows = np.arange(len(P))
        modes = np.where(P[rows, y] == P[rows, modes], y, modes)
    return modes


def tied_modes(P: np.ndarray) -> np.ndarray:
    """Which rows have more than one largest entry."""
    return (P == P.max(axis=1, keepdims=True)).sum(axis=1) > 1


def one_hot(columns: np.ndarray, n_classes: int) -> np.ndarray:
    """Unit rows e_k."""
    return np.eye(n_classes)[columns]


def check_classes(classes: Sequence[Any] | np.ndarray | None, n_classes: int | None) -> np.ndarray:
    """The labels of the columns, distinct and at least two."""
    labels = np.arange(n_classes or 0) if classes is None else np.asarray(classes)
    if labels.ndim != 1 or len(np.unique(labels)) != len(labels):
        raise ValueError(f"classes={classes!r} must be a 1-D sequence of distinct labels")
    if n_classes is not None and len(labels) != n_classes:
        raise ValueError(
            f"soft labels have {n_classes} columns, but there are {len(labels)} classes: "
            f"{labels.tolist()}; name every class, also one that no label shows, with `classes`"
        )
    if len(labels) < 2:
        raise ValueError(f"at least two classes are needed; got one class: {labels.tolist()}")
    return labels


def columns_of(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Position of each label among the classes, which need not be sorted."""
    y = np.asarray(y)
    if len(y) == 0:
        raise ValueError("y has 0 samples")
    order = np.argsort(classes, kind="stable")
    found = np.clip(np.searchsorted(classes, y, sorter=order), 0, len(classes) - 1)
    columns = order[found]
    unknown = classes[columns] != y
    if unknown.any():
        raise ValueError(
            f"label {y[unknown].tolist()[0]!r} is not among the classes {classes.tolist()}"
        )
    return columns


@njit(cache=True, nogil=True)
def scan_matrix(
    M: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int, int]:  # pragma: no cover
    """In one pass: each row's sum, whether it holds whole numbers only, whether it is missing (NaN
    or all zeros), and the first row with a negative and with an infinite entry (-1: none)."""
    n, K = M.shape
    sums = np.empty(n)
    whole = np.empty(n, np.bool_)
    missing = np.empty(n, np.bool_)
    negative, infinite = -1, -1
    for i in range(n):
        total = 0.0
        integral, empty, absent = True, True, False
        for k in range(K):
            m = M[i, k]
            total += m
            absent = absent or np.isnan(m)
            integral = integral and m == np.rint(m)
            empty = empty and m == 0.0
            if m < 0.0 and negative < 0:
                negative = i
            if np.isinf(m) and infinite < 0:
                infinite = i
        sums[i], whole[i], missing[i] = total, integral, absent or empty
    return sums, whole, missing, negative, infinite


class Matrix(NamedTuple):
    """A matrix of targets, and what one pass says of its rows."""

    values: np.ndarray  # (n, K)
    sums: np.ndarray  # (n,)
    whole: np.ndarray  # (n,) bool
    missing: np.ndarray  # (n,) bool

    def take(self, rows: np.ndarray) -> "Matrix":
        return Matrix(self.values[rows], self.sums[rows], self.whole[rows], self.missing[rows])


def read_matrix(values: Any, name: str) -> Matrix:
    """A float matrix of targets; NaN is let through and means that a row is missing."""
    matrix = values.toarray() if issparse(values) else values
    matrix = check_array(matrix, dtype=np.float64, ensure_all_finite=False, input_name=name)
    if matrix.shape[1] < 2:
        raise ValueError(
            f"{name} has {matrix.shape[1]} column; soft labels need at least 2 classes"
        )
    sums, whole, missing, negative, infinite = scan_matrix(np.ascontiguousarray(matrix))
    if negative >= 0:
        raise ValueError(
            f"{name} has a negative entry in row {negative}: {matrix[negative].tolist()}"
        )
    if infinite >= 0:
        raise ValueError(f"{name} contains infinity in row {infinite}: {matrix[infinite].tolist()}")
    return Matrix(matrix, sums, whole, missing)


def is_counts(matrix: Matrix, name: str) -> bool:
    """Votes (integer rows, not all of sum one) or probabilities (rows of sum one)?"""
    unit = np.abs(matrix.sums - 1) <= SUM_TOLERANCE
    if unit.all():
        return False
    if matrix.whole.all():
        return True
    odd = ~unit & ~matrix.whole
    row = int(np.argmax(odd) if odd.any() else np.argmax(~matrix.whole))
    if unit[row]:
        other = int(np.argmax(~unit))
        raise ValueError(
            f"{name} mixes probabilities (row {row}: {matrix.values[row].tolist()}) and vote "
            f"counts (row {other}: {matrix.values[other].tolist()}); give one kind"
        )
    raise ValueError(
        f"{name} row {row} sums to {matrix.sums[row]:.6g}; allowed: probabilities summing to 1 "
        f"within {SUM_TOLERANCE:g}, or whole numbers of votes"
    )


def normalise(matrix: Matrix, smoothing: float, name: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Distributions, and the votes where the matrix holds votes."""
    n = matrix.sums[:, None]
    if is_counts(matrix, name):
        smoothed = (
            matrix.values + smoothing / matrix.values.shape[1] if smoothing else matrix.values
        )
        return smoothed / (n + smoothing), matrix.values.astype(np.int64)
    return (matrix.values if (n == 1).all() else matrix.values / n), None


def column_names(values: Any) -> np.ndarray | None:
    """The class names that a data frame's columns carry."""
    names = getattr(values, "columns", None)
    return None if names is None else np.asarray(names)


def arrange_columns(
    values: Any, classes: Sequence[Any] | np.ndarray | None, name: str
) -> tuple[Any, np.ndarray | None]:
    """A data frame's columns in the order of the classes; without names positions count."""
    names = column_names(values)
    if names is None or classes is None:
        return values, names if classes is None else np.asarray(classes)
    labels = np.asarray(classes)
    if len(names) == len(labels) and set(names.tolist()) == set(labels.tolist()):
        return values[list(names[columns_of(labels, names)])], labels
    if names.tolist() == list(range(len(names))):
        return values, labels
    raise ValueError(
        f"columns of {name} are {names.tolist()}, but the classes are {labels.tolist()}; "
        "name the columns as the classes, or give an array in the order of the classes"
    )


def read_hard(y: Any, classes: Sequence[Any] | np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Column of each hard label, and the labels of the columns."""
    y = column_or_1d(y, warn=True)
    assert_all_finite(y, input_name="y")
    try:
        check_classification_targets(y)
    except ValueError as error:
        raise ValueError(
            f"{error} For the probability of one of two classes, give two columns: [1 - p, p]."
        ) from error
    labels = check_classes(np.unique(y) if classes is None else classes, None)
    return columns_of(y, labels), labels


def is_matrix(values: Any) -> bool:
    """Whether targets are one row an item (n, K), rather than one label an item."""
    if issparse(values):
        return True
    shape = values.shape if hasattr(values, "shape") else np.asarray(values).shape
    return len(shape) == 2 and shape[1] != 1


def soft_targets(
    values: Any,
    classes: Sequence[Any] | np.ndarray | None = None,
    smoothing: float = 0.0,
    name: str = "y",
) -> SoftTargets:
    """Targets from labels (n,), probabilities (n, K) or votes (n, K); a missing row is an error."""
    if not is_matrix(values):
        columns, labels = read_hard(values, classes)
        return SoftTargets(one_hot(columns, len(labels)), None, labels)
    values, labels_found = arrange_columns(values, classes, name)
    matrix = read_matrix(values, name)
    labels = check_classes(labels_found, matrix.values.shape[1])
    if matrix.missing.any():
        row = int(np.argmax(matrix.missing))
        raise ValueError(f"{name} has no label in row {row}: {matrix.values[row].tolist()}")
    P, counts = normalise(matrix, smoothing, name)
    return SoftTargets(P, counts, labels)


def as_soft_labels(
    y_or_counts: npt.ArrayLike,
    classes: Sequence[Any] | np.ndarray | None = None,
    smoothing: float = 0.0,
    *,
    on_missing: str = "raise",
) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
    """Turn labels, probabilities or vote counts into one distribution an item.

    Parameters
    ----------
    y_or_counts : array-like of shape (n_samples,) or (n_samples, n_classes)
        Hard labels, or rows of probabilities (summing to 1 within 1e-3, renormalised), or rows of
        whole numbers of votes. Rows of whole numbers that all sum to 1 are one-hot. A data frame's
        columns are the class names. Sparse matrices are made dense.
    classes : sequence of shape (n_classes,), optional
        The label of each column, in order. None takes the data frame's columns, the sorted
        distinct labels, or 0 .. n_classes - 1.
    smoothing : float, default=0.0
        Dirichlet strength a of (c + a / K) / (n + a); used for votes only.
    on_missing : {"raise", "drop"}, default="raise"
        What to do with a row of zeros or with NaN.

    Returns
    -------
    P : ndarray of shape (n_samples, n_classes), float64
        Rows sum to one.
    kept : ndarray of shape (n_samples,), bool
        Only with ``on_missing="drop"``: which rows are in `P`.

    Raises
    ------
    ValueError
        If entries are negative, a row sums neither to 1 nor consists of whole numbers, a row is
        missing, the columns don't match `classes`, or there are fewer than two classes.

    References
    ----------
    .. [1] J. C. Peterson et al., "Human uncertainty makes classification more robust", ICCV 2019.

    Examples
    --------
    >>> from equipoise.explainers import as_soft_labels
    >>> as_soft_labels([[8, 1, 1], [4, 6, 0]])
    array([[0.8, 0.1, 0.1],
           [0.4, 0.6, 0. ]])
    >>> as_soft_labels(["cat", "dog"])
    array([[1., 0.],
           [0., 1.]])
    """
    if on_missing not in ("raise", "drop"):
        raise ValueError(f"on_missing={on_missing!r} is not allowed; allowed: 'raise', 'drop'")
    if not (np.isfinite(smoothing) and smoothing >= 0):
        raise ValueError(f"smoothing={smoothing!r} must be a finite number >= 0")
    if on_missing == "raise":
        return soft_targets(y_or_counts, classes, smoothing, "y_or_counts").P.copy()
    if not is_matrix(y_or_counts):
        P = soft_targets(y_or_counts, classes).P
        return P, np.ones(len(P), dtype=bool)
    values, labels = arrange_columns(y_or_counts, classes, "y_or_counts")
    matrix = read_matrix(values, "y_or_counts")
    check_classes(labels, matrix.values.shape[1])
    kept = ~matrix.missing
    if not kept.any():
        raise ValueError("y_or_counts has no row with a label")
    return normalise(matrix.take(kept), smoothing, "y_or_counts")[0], kept
