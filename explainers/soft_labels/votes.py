"""Annotations as flat arrays: from a long table, a dense matrix, or counts.

A long table has one row a vote (task, worker, label). A dense matrix has one row a task and one
column a worker; -1, NaN and None mean that the worker didn't vote. Counts have one row a task and
one column a class, without workers.
"""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from .targets import check_classes, column_names, is_counts, read_matrix

__all__ = ["Votes", "read_annotations"]

LONG_COLUMNS = ("task", "worker", "label")
FORMS = ("auto", "long", "dense", "counts")


class Votes(NamedTuple):
    """Who voted what on which task; with counts, the votes and the workers are empty."""

    task: np.ndarray  # (V,) position among the tasks, sorted
    worker: np.ndarray  # (V,) position among the workers
    label: np.ndarray  # (V,) position among the classes
    counts: np.ndarray  # (n_tasks, K)
    tasks: np.ndarray
    workers: np.ndarray
    classes: np.ndarray


def is_missing(values: np.ndarray) -> np.ndarray:
    """Where a dense entry means that there is no vote."""
    missing = pd.isna(values)
    if values.dtype.kind in "iuf":
        return missing | (values == -1)
    return missing | (values == -1) if values.dtype == object else missing


def why_counts(matrix: np.ndarray) -> str:
    """Why an array looks like counts rather than like one label a worker; empty if it doesn't."""
    if matrix.dtype.kind not in "iuf" or is_missing(matrix).any() or (matrix < 0).any():
        return ""
    if (matrix != np.rint(matrix)).any():
        return ""
    sums, entries = matrix.sum(axis=1), np.unique(matrix)
    if (
        len(matrix) > 1
        and sums[0] > 1
        and (sums == sums[0]).all()
        and len(np.unique(matrix, axis=0)) > 1
    ):
        return f"every row sums to {int(sums[0])}"
    if len(entries) != int(entries[-1]) + 1:
        return f"the entries {entries[:8].astype(int).tolist()}... aren't consecutive labels"
    return ""


def form_of(annotations: Any, counts_allowed: bool) -> str:
    """The form of annotations that don't name it."""
    names = column_names(annotations)
    if names is not None:
        return "long" if set(LONG_COLUMNS) <= set(names.tolist()) else "counts"
    matrix = np.asarray(annotations)
    if matrix.ndim != 2:
        raise ValueError(
            f"annotations have shape {matrix.shape}; allowed: a data frame with the columns "
            f"{list(LONG_COLUMNS)}, a matrix of one column a worker, or vote counts"
        )
    if why_counts(matrix):
        return "counts"
    if matrix.dtype.kind in "iuf" and counts_allowed and not is_missing(matrix).any():
        raise ValueError(
            "annotations may be one label a worker or vote counts: say form='dense' or "
            "form='counts'"
        )
    return "dense"


def count_votes(task: np.ndarray, label: np.ndarray, n_tasks: int, K: int) -> np.ndarray:
    return np.bincount(task * K + label, minlength=n_tasks * K).reshape(n_tasks, K)


def by_task(
    task: np.ndarray, worker: np.ndarray, label: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The votes in the order of the tasks, so that one pass goes through memory in order."""
    if (np.diff(task) >= 0).all():
        return task, worker, label
    order = np.argsort(task, kind="stable")
    return task[order], worker[order], label[order]


def read_long(annotations: Any) -> Votes:
    columns = [pd.Series(np.asarray(annotations[name])) for name in LONG_COLUMNS]
    if len(columns[0]) == 0:
        raise ValueError("annotations hold no vote")
    for name, column in zip(LONG_COLUMNS, columns, strict=True):
        if column.isna().any():
            row = int(np.argmax(column.isna()))
            raise ValueError(f"annotations have no {name} in row {row}")
    (task, tasks), (worker, workers), (label, classes) = (
        pd.factorize(column, sort=True) for column in columns
    )
    if len(classes) < 2:
        raise ValueError(f"annotations hold one class only: {list(classes)}")
    votes = by_task(task.astype(np.int64), worker.astype(np.int64), label.astype(np.int64))
    counts = count_votes(votes[0], votes[2], len(tasks), len(classes))
    return Votes(*votes, counts, np.asarray(tasks), np.asarray(workers), np.asarray(classes))


def read_dense(annotations: Any) -> Votes:
    matrix = np.asarray(annotations)
    if matrix.ndim != 2:
        raise ValueError(f"dense annotations have shape {matrix.shape}; expected (tasks, workers)")
    voted = ~is_missing(matrix)
    if not voted.any():
        raise ValueError("annotations hold no vote")
    places = np.flatnonzero(voted)
    task, worker = np.divmod(places, matrix.shape[1])
    label, found = pd.factorize(pd.Series(matrix.ravel()[places]), sort=True)
    classes = np.asarray(found)
    if classes.dtype.kind == "f" and (classes == np.rint(classes)).all():
        classes = classes.astype(np.int64)  # they were whole numbers beside NaN
    if len(classes) < 2:
        raise ValueError(f"annotations hold one class only: {classes.tolist()}")
    label = label.astype(np.int64)
    counts = count_votes(task, label, len(matrix), len(classes))
    tasks, workers = np.arange(len(matrix)), np.arange(matrix.shape[1])
    return Votes(task, worker, label, counts, tasks, workers, classes)


def read_counts(annotations: Any) -> Votes:
    matrix = read_matrix(annotations, "annotations")
    present = matrix.take(~matrix.missing)
    if not present.whole.all() and not is_counts(present, "annotations"):
        raise ValueError("annotations are probabilities; vote counts are whole numbers")
    absent = matrix.missing[:, None]
    counts = np.where(absent, 0, np.nan_to_num(matrix.values)).astype(np.int64)
    classes = check_classes(column_names(annotations), counts.shape[1])
    none = np.zeros(0, dtype=np.int64)
    return Votes(none, none, none, counts, np.arange(len(counts)), none, classes)


def read_annotations(annotations: Any, form: str, workers_needed: bool) -> Votes:
    """Votes in any of the three forms; counts are refused where workers are needed."""
    if form not in FORMS:
        raise ValueError(f"form={form!r} is not allowed; allowed: {list(FORMS)}")
    found = form_of(annotations, not workers_needed) if form == "auto" else form
    if found == "counts" and workers_needed:
        why = "" if form == "counts" else why_counts(np.asarray(annotations))
        hint = f" ({why}; if it has one column a worker, say form='dense')" if why else ""
        raise ValueError(
            f"annotations are vote counts{hint}: who voted what is needed, to tell reliable "
            f"workers from others; give a data frame with the columns {list(LONG_COLUMNS)}, or a "
            "matrix of one column a worker"
        )
    return {"long": read_long, "dense": read_dense, "counts": read_counts}[found](annotations)
