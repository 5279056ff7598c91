"""Soft labels for scikit-learn classifiers, by replicating rows.

An estimator that minimises sum_j w_j l(y_j, f(x_j)) with the log-loss is fitted to soft labels
exactly when row i becomes the rows (x_i, k) with weight w_i p_ik, one for each p_ik > 0. The
weights of a row's copies sum to w_i, so C and alpha keep their meaning.
"""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from equipoise.blocks import iter_blocks

__all__ = [
    "Copies",
    "expand",
    "fit_copies",
    "last_step",
    "own_copy",
    "partial_fit_copies",
    "prune_tail",
    "sampled_epoch",
    "spread_columns",
    "takes_weights",
]


def prune_tail(P: np.ndarray, mass: float) -> np.ndarray:
    """Drop each row's smallest entries while at most `mass` is dropped, and renormalise."""
    if mass == 0:
        return P
    order = np.argsort(P, axis=1, kind="stable")
    dropped = np.cumsum(np.take_along_axis(P, order, axis=1), axis=1) <= mass
    kept = P.copy()
    np.put_along_axis(kept, order, np.where(dropped, 0.0, np.take_along_axis(P, order, axis=1)), 1)
    return kept / kept.sum(axis=1, keepdims=True)


class Copies(NamedTuple):
    """Training rows: which item, which class, and with which weight."""

    rows: np.ndarray  # (m,)
    columns: np.ndarray  # (m,)
    weight: np.ndarray | None  # (m,)

    def fit_parameters(self) -> dict[str, np.ndarray]:
        return {} if self.weight is None else {"sample_weight": self.weight}


def replicate_rows(P: np.ndarray, weight: np.ndarray | None) -> Copies:
    """A copy for each possible class; no weights where every row is one copy of weight one."""
    rows, columns = np.nonzero(P)
    if weight is None and len(rows) == len(P):
        return Copies(rows, columns, None)
    return Copies(rows, columns, P[rows, columns] * (1.0 if weight is None else weight[rows]))


def draw_labels(P: np.ndarray, n_draws: int, rng: np.random.RandomState) -> np.ndarray:
    """Classes drawn from each row's distribution, (n, n_draws)."""
    cumulative = np.cumsum(P, axis=1)
    cumulative /= cumulative[:, -1:]
    u = rng.uniform(size=(len(P), n_draws))
    return (u[:, :, None] >= cumulative[:, None, :-1]).sum(axis=2)


def last_step(estimator: Any) -> Any:
    """The classifier itself, at the end of a pipeline."""
    while isinstance(estimator, Pipeline):
        estimator = estimator[-1]
    return estimator


def takes_weights(estimator: Any) -> bool:
    """Whether the classifier's fit has a `sample_weight`."""
    return has_fit_parameter(last_step(estimator), "sample_weight")


def balance_by_mass(
    estimator: Any, P: np.ndarray, weight: np.ndarray | None, labels: np.ndarray
) -> None:
    """Replace class_weight="balanced" by weights from the labels' mass, not from rows."""
    if estimator.get_params(deep=False).get("class_weight") != "balanced":
        return
    mass = P.sum(axis=0) if weight is None else weight @ P
    seen = mass > 0
    balanced = mass.sum() / (seen.sum() * mass[seen])
    estimator.set_params(
        class_weight=dict(zip(labels[seen].tolist(), balanced.tolist(), strict=True))
    )


def guard_against_copies(estimator: Any) -> None:
    """Switch off, or warn of, what copies of a row would mislead: splits inside the fit."""
    params = estimator.get_params(deep=False)
    name = type(estimator).__name__
    if params.get("early_stopping") not in (None, False):
        if params["early_stopping"] is True:
            warnings.warn(
                f"{name} would split copies of the same row between training and validation: "
                "early_stopping is switched off",
                UserWarning,
                stacklevel=4,
            )
        estimator.set_params(early_stopping=False)
    if "early_stopping" not in params and "validation_fraction" in params:
        splits = params["n_iter_no_change"] is not None  # gradient boosting
        if splits:
            warnings.warn(
                f"{name} would split copies of the same row between training and validation: "
                "n_iter_no_change is set to None",
                UserWarning,
                stacklevel=4,
            )
            estimator.set_params(n_iter_no_change=None)
    if params.get("bootstrap"):
        warnings.warn(
            f"{name} draws rows with replacement: copies of a row with different labels are drawn "
            "apart, so each tree sees noisier labels and out-of-bag scores leak; "
            'method="resample" or bootstrap=False avoids the unequal weights',
            UserWarning,
            stacklevel=4,
        )
    if "cv" in params:
        warnings.warn(
            f"{name} cross-validates inside its fit, where copies of the same row fall on both "
            "sides of a split; search over SoftLabelClassifier instead",
            UserWarning,
            stacklevel=4,
        )


def expand(
    P: np.ndarray,
    weight: np.ndarray | None,
    use_weights: bool,
    n_resamples: int,
    rng: np.random.RandomState,
) -> Copies:
    """The training rows, by replication or by resampling."""
    if use_weights:
        return replicate_rows(P, weight)
    if (P.max(axis=1) == 1).all():
        return Copies(np.arange(len(P)), P.argmax(axis=1), weight)
    rows = np.repeat(np.arange(len(P)), n_resamples)
    columns = draw_labels(P, n_resamples, rng).ravel()
    return Copies(rows, columns, None if weight is None else weight[rows] / n_resamples)


def fit_copies(
    estimator: Any,
    X: Any,
    P: np.ndarray,
    weight: np.ndarray | None,
    copies: Copies,
    labels: np.ndarray,
) -> Any:
    """Fit a classifier, or the last step of a pipeline, to copies of the items' rows.

    A pipeline's transformers are fitted on the items themselves (with the modes as labels), so that
    means, scales and selections count every item once; only the classifier sees copies.
    """
    if isinstance(estimator, Pipeline):
        steps, (name, final) = list(estimator.steps[:-1]), estimator.steps[-1]
        if steps:
            head = Pipeline(steps, memory=estimator.memory)
            X = head.fit_transform(X, labels[P.argmax(axis=1)])
            steps = head.steps
        final = fit_copies(final, X, P, weight, copies, labels)
        estimator.steps = [*steps, (name, final)]
        return estimator
    balance_by_mass(estimator, P, weight, labels)
    if len(copies.rows) > len(P):
        guard_against_copies(estimator)
        X = _safe_indexing(X, copies.rows)
    return estimator.fit(X, labels[copies.columns], **copies.fit_parameters())


def bytes_of_row(X: Any) -> float:
    """Mean memory of a row of inputs: arrays, sparse matrices and data frames."""
    if issparse(X):
        size = X.data.nbytes + 4 * X.nnz  # values and column numbers
    elif hasattr(X, "memory_usage"):
        size = int(X.memory_usage(deep=False).sum())
    else:
        size = np.asarray(X).nbytes
    return size / max(len(X) if not issparse(X) else X.shape[0], 1)


def partial_fit_copies(
    estimator: Any, X: Any, copies: Copies, labels: np.ndarray, rng: np.random.RandomState
) -> Any:
    """One pass of `partial_fit` over copies of a batch's rows.

    Copies that don't fit into scikit-learn's working memory come in parts. Each part is drawn from
    all over the batch, because the estimator can shuffle inside a part only.
    """
    m = len(copies.rows)
    parts = list(iter_blocks(m, bytes_of_row(X)))
    order = np.arange(m) if len(parts) == 1 else rng.permutation(m)
    for part in parts:
        chosen = order[part]
        weights = {} if copies.weight is None else {"sample_weight": copies.weight[chosen]}
        estimator.partial_fit(
            _safe_indexing(X, copies.rows[chosen]),
            labels[copies.columns[chosen]],
            classes=np.sort(labels),
            **weights,
        )
    return estimator


def sampled_epoch(
    estimator: Any,
    X: Any,
    P: np.ndarray,
    weight: np.ndarray | None,
    labels: np.ndarray,
    rng: np.random.RandomState,
) -> Any:
    """One epoch of `partial_fit` on one new vote a row, in a new order."""
    order = rng.permutation(len(P))
    columns = draw_labels(P, 1, rng)[order, 0]
    weights = {} if weight is None else {"sample_weight": weight[order]}
    return estimator.partial_fit(
        _safe_indexing(X, order), labels[columns], classes=np.sort(labels), **weights
    )


def spread_columns(proba: np.ndarray, seen: Sequence[Any], labels: np.ndarray) -> np.ndarray:
    """Probabilities in the order of all classes; a class that was never seen has none."""
    position = {label: k for k, label in enumerate(labels.tolist())}
    full = np.zeros((len(proba), len(labels)))
    full[:, [position[label] for label in np.asarray(seen).tolist()]] = proba
    return full


def own_copy(estimator: Any, random_state: int) -> Any:
    """A clone whose own unset random states are drawn from ours."""
    from sklearn.utils import check_random_state

    copied = clone(estimator)
    rng = check_random_state(random_state)
    params = copied.get_params(deep=True)
    unset = {
        name: int(rng.randint(2**31 - 1))
        for name in sorted(params)
        if name.rsplit("__")[-1] == "random_state" and params[name] is None
    }
    return copied.set_params(**unset)
