"""Scores of probabilities against human soft labels, as functions and as scikit-learn scorers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED

from ...explainers.soft_labels import (
    calibration_error,
    kl_to_humans,
    soft_brier,
    soft_cross_entropy,
)
from ...explainers.soft_labels.alignment import correlation
from ...explainers.soft_labels.calibration import read_weight
from ...explainers.soft_labels.targets import entropy, soft_targets

__all__ = ["get_soft_scorer", "soft_score"]

Metric = Callable[[np.ndarray, np.ndarray, np.ndarray | None], float]


def neg_cross_entropy(P: np.ndarray, F: np.ndarray, weight: np.ndarray | None) -> float:
    return -float(soft_cross_entropy(P, F, sample_weight=weight))


def neg_kl(P: np.ndarray, F: np.ndarray, weight: np.ndarray | None) -> float:
    return -float(kl_to_humans(P, F, sample_weight=weight))


def accuracy(P: np.ndarray, F: np.ndarray, weight: np.ndarray | None) -> float:
    """Share of annotators who agree with the prediction."""
    share = P[np.arange(len(P)), F.argmax(axis=1)]
    return float(np.average(share, weights=read_weight(weight, len(P))))


def mode_accuracy(P: np.ndarray, F: np.ndarray, weight: np.ndarray | None) -> float:
    """Share of items whose prediction is a mode of the votes."""
    is_mode = P[np.arange(len(P)), F.argmax(axis=1)] == P.max(axis=1)
    return float(np.average(is_mode, weights=read_weight(weight, len(P))))


def neg_brier(P: np.ndarray, F: np.ndarray, weight: np.ndarray | None) -> float:
    return -float(soft_brier(P, F, sample_weight=weight))


def neg_ece(P: np.ndarray, F: np.ndarray, weight: np.ndarray | None) -> float:
    return -calibration_error(P, F, sample_weight=weight)


def entropy_correlation(P: np.ndarray, F: np.ndarray, weight: np.ndarray | None) -> float:
    """Spearman correlation of the entropies."""
    if weight is not None:
        raise ValueError("entropy_correlation is a rank correlation: it takes no sample_weight")
    return correlation(entropy(F), entropy(P), ranks=True)


#: Score of probabilities (n, K) against soft labels (n, K); larger is better.
METRICS: dict[str, Metric] = {
    "neg_cross_entropy": neg_cross_entropy,
    "neg_kl": neg_kl,
    "accuracy": accuracy,
    "mode_accuracy": mode_accuracy,
    "neg_brier": neg_brier,
    "neg_ece": neg_ece,
    "entropy_correlation": entropy_correlation,
}

#: Name of each scorer and the metric it computes.
SCORERS = {
    "neg_soft_cross_entropy": "neg_cross_entropy",
    "neg_kl": "neg_kl",
    "soft_accuracy": "accuracy",
    "mode_accuracy": "mode_accuracy",
    "neg_soft_brier": "neg_brier",
    "neg_soft_ece": "neg_ece",
    "entropy_correlation": "entropy_correlation",
}


def soft_score(
    P: npt.ArrayLike,
    proba: np.ndarray,
    metric: str,
    classes: np.ndarray,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """One of `METRICS`, for labels, probabilities or votes."""
    if metric not in METRICS:
        raise ValueError(f"metric={metric!r} is not allowed; allowed: {sorted(METRICS)}")
    targets = soft_targets(P, classes, name="P").P
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
    return METRICS[metric](targets, proba, weight)


class SoftScorer(BaseEstimator):
    """A scorer ``scorer(estimator, X, P)``; larger is better.

    With scikit-learn's metadata routing, ``set_score_request(soft_labels=True)`` scores against the
    soft labels that a search passes beside hard `y`.
    """

    __metadata_request__score = {"estimator": UNUSED}

    def __init__(self, name: str) -> None:
        self.name = name

    def score(
        self,
        estimator: Any,
        X: Any,
        y: npt.ArrayLike,
        soft_labels: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> float:
        P = y if soft_labels is None else soft_labels
        proba = estimator.predict_proba(X)
        return soft_score(P, proba, SCORERS[self.name], estimator.classes_, sample_weight)

    def __call__(self, estimator: Any, X: Any, y: npt.ArrayLike, **metadata: Any) -> float:
        return self.score(estimator, X, y, **metadata)


def get_soft_scorer(name: str) -> SoftScorer:
    """Get a scikit-learn scorer against human soft labels.

    Parameters
    ----------
    name : str
        "neg_soft_cross_entropy", "neg_kl", "soft_accuracy" (share of annotators who agree with the
        prediction), "mode_accuracy", "neg_soft_brier", "neg_soft_ece" or "entropy_correlation"
        (Spearman).

    Returns
    -------
    callable
        ``scorer(estimator, X, P)`` with `P` soft labels, votes or hard labels; larger is better.
        It goes into the `scoring` of `GridSearchCV` and `cross_val_score`. With metadata routing,
        ``scorer.set_score_request(soft_labels=True)`` lets `y` stay hard and takes the soft
        labels that are passed to the search's ``fit``.

    Raises
    ------
    ValueError
        If there is no scorer of that name.

    Examples
    --------
    >>> from equipoise.estimators import SoftLabelClassifier, get_soft_scorer
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, P = [[0.0], [1.0], [2.0]], [[9, 1], [5, 5], [1, 9]]
    >>> model = SoftLabelClassifier(LogisticRegression()).fit(X, P)
    >>> round(get_soft_scorer("neg_kl")(model, X, P), 3)
    -0.126
    """
    if name not in SCORERS:
        raise ValueError(f"name={name!r} is not a soft scorer; allowed: {sorted(SCORERS)}")
    return SoftScorer(name)
