"""The epochs of a classifier: boosting stages, passes of `partial_fit`, steps of a warm start."""

import warnings
from collections.abc import Iterator
from inspect import signature
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing

from .targets import columns_of

__all__ = ["epochs_of", "number_of_epochs"]

#: Passes over the data where neither the caller nor the estimator says how many.
DEFAULT_EPOCHS = 20


def kind_of_epochs(estimator: Any) -> str:
    """How the estimator's epochs can be followed."""
    if hasattr(estimator, "staged_predict_proba"):
        return "staged"
    if hasattr(estimator, "partial_fit"):
        return "partial_fit"
    parameters = estimator.get_params() if hasattr(estimator, "get_params") else {}
    if "warm_start" in parameters and ("n_estimators" in parameters or "max_iter" in parameters):
        return "warm_start"
    raise TypeError(
        f"{type(estimator).__name__} shows no epochs: supported are classifiers with "
        "staged_predict_proba (boosting), with partial_fit, and with warm_start and n_estimators "
        "or max_iter (forests, linear models)"
    )


def spread(proba: np.ndarray, seen: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Probabilities in the columns of all classes."""
    full = np.zeros((len(proba), len(classes)))
    full[:, columns_of(seen, classes)] = proba
    return full


def iterations_name(estimator: Any) -> str:
    """The parameter that counts trees or iterations."""
    return "n_estimators" if "n_estimators" in estimator.get_params() else "max_iter"


def number_of_epochs(estimator: Any, epochs: int | None) -> int:
    """How many epochs to follow."""
    if epochs is not None:
        return int(epochs)
    if kind_of_epochs(estimator) == "staged":
        return int(estimator.get_params()[iterations_name(estimator)])
    return DEFAULT_EPOCHS


def epochs_of(
    estimator: Any,
    X: Any,
    y: np.ndarray,
    classes: np.ndarray,
    n_epochs: int,
    soft_labels: np.ndarray | None,
) -> Iterator[np.ndarray]:
    """Train the estimator, and yield its probabilities of the training items after each epoch.

    Soft labels go to a `partial_fit` that takes them; another estimator learns the hard labels, and
    the soft ones are only compared with.
    """
    kind = kind_of_epochs(estimator)
    name = iterations_name(estimator)
    if kind == "staged":
        estimator.set_params(**{name: n_epochs}).fit(X, y)
        for proba in estimator.staged_predict_proba(X):
            yield spread(proba, estimator.classes_, classes)
        return
    if kind == "partial_fit":
        takes_soft = "soft_labels" in signature(estimator.partial_fit).parameters
        rng = np.random.RandomState(0)
        for _ in range(n_epochs):
            order = rng.permutation(len(y))
            soft = (
                {"soft_labels": soft_labels[order]}
                if takes_soft and soft_labels is not None
                else {}
            )
            estimator.partial_fit(_safe_indexing(X, order), y[order], classes=classes, **soft)
            yield spread(estimator.predict_proba(X), estimator.classes_, classes)
        return
    step = max(1, estimator.get_params()[name] // n_epochs) if name == "n_estimators" else 1
    estimator.set_params(warm_start=True)
    for e in range(1, n_epochs + 1):
        estimator.set_params(**{name: step * e if name == "n_estimators" else step})
        with warnings.catch_warnings():
            # Each epoch stops short of convergence on purpose.
            warnings.simplefilter("ignore", ConvergenceWarning)
            estimator.fit(X, y)
        yield spread(estimator.predict_proba(X), estimator.classes_, classes)
