"""One training of an audit, and the items, splits and strata around it."""

import warnings
from collections.abc import Sequence
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_consistent_length, column_or_1d

from .difficulty import Levels, difficulty_of, strata_of_difficulty
from .dynamics import TrainingDynamics
from .targets import SoftTargets, column_names, columns_of, soft_targets

__all__ = [
    "REFERENCES",
    "Fit",
    "Split",
    "check_references",
    "check_takes_soft_labels",
    "draws_votes",
    "final_step",
    "fit_one",
    "out_of_fold",
    "read_groups",
    "strata_of_items",
]

REFERENCES = ("original", "mode", "soft")

TEACHER_FOLDS = 5


class Fit(NamedTuple):
    """What is kept of one trained model."""

    F: np.ndarray  # (n_test, K) probabilities
    dynamics: dict[str, TrainingDynamics]  # of the "train" and the "test" items, where tracked
    curves: list[list[float]] | None
    model: Any


class Split(NamedTuple):
    """Training and test items, and what they are held against."""

    X: Any
    y: np.ndarray  # (n_train,) labels
    modes: np.ndarray  # (n_train,) columns
    P: np.ndarray  # (n_train, K)
    X_test: Any
    modes_test: np.ndarray  # (n_test,) columns
    P_test: np.ndarray  # (n_test, K)
    targets: dict[str, np.ndarray]  # reference to (n_test, K)
    classes: np.ndarray  # (K,)


def check_references(reference: Sequence[str]) -> list[str]:
    """The labels to evaluate against: some of `REFERENCES`, at least one."""
    references = list(reference)
    if not references or not set(references) <= set(REFERENCES):
        raise ValueError(
            f"reference={reference!r} must name some of {list(REFERENCES)}, at least one"
        )
    return references


def final_step(estimator: Any) -> tuple[str, Any]:
    """Prefix of the classifier's parameters in the estimator, and the classifier."""
    if isinstance(estimator, Pipeline):
        name, final = estimator.steps[-1]
        return f"{name}__", final
    return "", estimator


def check_takes_soft_labels(estimator: Any) -> None:
    _, final = final_step(estimator)
    if not hasattr(final, "fit") or "soft_labels" not in signature(final.fit).parameters:
        raise TypeError(
            f"estimator {type(final).__name__} takes no soft_labels in fit; wrap it: "
            "SoftLabelClassifier(estimator)"
        )


def is_network(classifier: Any) -> bool:
    """Whether skorch callbacks can watch the classifier train."""
    parameters = classifier.get_params(deep=False)
    inner = parameters.get("estimator")
    return "callbacks" in parameters and (inner is None or hasattr(inner, "forward"))


def draws_votes(classifier: Any) -> bool:
    """Whether the classifier can draw a new vote from each target in every epoch."""
    own = classifier.get_params(deep=False)
    return "method" in own and (is_network(classifier) or hasattr(own["estimator"], "partial_fit"))


def fit_one(
    estimator: Any,
    split: Split,
    T: np.ndarray,
    seed: int,
    track: bool,
    keep: bool,
    more: dict[str, Any] | None = None,
) -> Fit:
    """Train one arm with one seed, and keep its test probabilities and its dynamics."""
    model = clone(estimator)
    prefix, final = final_step(model)
    settings: dict[str, Any] = {"random_state": seed, "classes": split.classes, **(more or {})}
    own = final.get_params(deep=False)
    model.set_params(**{prefix + k: v for k, v in settings.items() if k in own})
    watched = track and is_network(final) and not prefix
    if watched:
        from .callback import CartographyCallback, HeldOutCallback

        train = CartographyCallback(split.X, split.modes, soft_labels=split.P)
        test = HeldOutCallback(split.X_test, split.modes_test, split.P_test, split.targets)
        model.set_params(callbacks=[*(own["callbacks"] or []), train, test])
    model.fit(split.X, split.y, **{f"{prefix}soft_labels": T})
    F = np.asarray(model.predict_proba(split.X_test), dtype=np.float64)
    dynamics, curves = {}, None
    if watched:
        dynamics = {"train": train.dynamics_, "test": test.recorder_.result()}
        curves = test.curves_
        model.set_params(callbacks=own["callbacks"])
    return Fit(F, dynamics, curves, model if keep else None)


def out_of_fold(
    estimator: Any, X: Any, modes: np.ndarray, classes: np.ndarray, seed: int
) -> np.ndarray:
    """Probabilities of models trained on the hard modes of the other folds: the teacher."""
    F = np.zeros((len(modes), len(classes)))
    prefix, final = final_step(estimator)
    own = final.get_params(deep=False)
    folds = StratifiedKFold(TEACHER_FOLDS, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        # A class with fewer items than folds is only missing from some of them.
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        splits = list(folds.split(modes, modes))
    for train, test in splits:
        model = clone(estimator)
        settings: dict[str, Any] = {"random_state": seed, "classes": classes}
        model.set_params(**{prefix + k: v for k, v in settings.items() if k in own})
        model.fit(_safe_indexing(X, train), classes[modes[train]])
        proba = model.predict_proba(_safe_indexing(X, test))
        F[test[:, None], columns_of(np.asarray(model.classes_), classes)] = proba
    return F


def strata_of_items(
    P: np.ndarray,
    measure: str,
    levels: Levels,
    shifted: np.ndarray,
    groups: np.ndarray | None,
) -> dict[str, np.ndarray]:
    """All items, strata of difficulty, items with a shifted mode, and each group."""
    strata = {"all": np.ones(len(P), dtype=bool)}
    strata |= strata_of_difficulty(difficulty_of(P, measure), levels)
    strata["mode-shifted"] = shifted
    if groups is not None:
        strata |= {f"group {group}": groups == group for group in np.unique(groups)}
    return strata


def read_groups(groups: Any, n: int, name: str) -> np.ndarray | None:
    """The group of each item, or None."""
    if groups is None:
        return None
    found = column_or_1d(groups)
    if len(found) != n:
        raise ValueError(f"{name} has {len(found)} entries, but there are {n} items")
    if pd.isna(found).any():
        raise ValueError(f"{name} has no group in row {int(np.argmax(pd.isna(found)))}")
    return found


def read_items(
    X: Any, y: Any, counts: Any, classes: np.ndarray | None
) -> tuple[Any, np.ndarray, SoftTargets]:
    """Inputs, columns of the original labels, and the annotators' distributions."""
    X = X if hasattr(X, "shape") else np.asarray(X)
    y = column_or_1d(y)
    if classes is None and column_names(counts) is None:
        width = np.shape(counts)[1] if np.ndim(counts) == 2 else 0
        labels = np.unique(y)
        classes = labels if len(labels) == width else np.arange(width)
    humans = soft_targets(counts, classes, name="counts")
    original = columns_of(y, humans.classes)
    check_consistent_length(X, original, humans.P)
    return X, original, humans


def take(humans: SoftTargets, rows: np.ndarray) -> SoftTargets:
    votes = None if humans.counts is None else humans.counts[rows]
    return humans._replace(P=humans.P[rows], counts=votes)


def split_by_mode(modes: np.ndarray, test_size: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Train and test rows with the same share of every mode; a mode with one item is let go."""
    counted = np.bincount(modes)
    groups = np.where(counted[modes] > 1, modes, modes.max() + 1 if len(counted) else 0)
    if (np.bincount(groups)[groups] < 2).any():
        groups = np.where(np.bincount(groups)[groups] < 2, counted.argmax(), groups)
    train, test = train_test_split(
        np.arange(len(modes)), test_size=test_size, stratify=groups, random_state=seed
    )
    return np.sort(train), np.sort(test)
