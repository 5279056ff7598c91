"""Answers of a trained soft-label classifier: probabilities, scores, recalibration, explanation."""

import copy
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from equipoise.explanation import Explanation

from ...explainers.soft_labels.targets import is_matrix, soft_targets
from .agreement import explain_agreement
from .fitting import kind_of
from .inputs import check_inputs, check_weight
from .recalibration import dirichlet_map, temperature_of, vector_map
from .replication import spread_columns
from .scorers import soft_score

__all__ = ["SoftPredictions"]

#: Probabilities of a scikit-learn base below this are raised to it before taking logits.
TINY = 1e-300


class SoftPredictions(ClassifierMixin):
    """The answers of a classifier that holds ``net_`` or ``estimator_``, and ``classes_``."""

    estimator: Any
    classes_: np.ndarray
    net_: Any
    estimator_: Any
    temperature_: float
    calibration_map_: tuple[str, np.ndarray, np.ndarray] | None

    def _proba_of_base(self, X: Any) -> np.ndarray:
        proba = np.asarray(self.estimator_.predict_proba(X), dtype=np.float64)
        return spread_columns(proba, self.estimator_.classes_, self.classes_)

    def _logits(self, X: Any) -> np.ndarray:
        """Logits (n, K), mapped where `calibrate` learned a map."""
        check_is_fitted(self, "classes_")
        kind = kind_of(self.estimator)
        X = check_inputs(self, X, kind, reset=False)
        if kind == "sklearn":
            Z = np.log(np.maximum(self._proba_of_base(X), TINY))
        else:
            from . import training

            Z = training.logits_of(self.net_, X)
        return self._mapped(Z)

    def _mapped(self, Z: np.ndarray) -> np.ndarray:
        if self.calibration_map_ is None:
            return Z
        method, W, b = self.calibration_map_
        return (log_softmax(Z, axis=1) if method == "dirichlet" else Z) @ W.T + b

    def decision_function(self, X: npt.ArrayLike) -> np.ndarray:
        """Logits of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_samples,)
            Logits, before the temperature; with two classes the second's minus the first's. For a
            scikit-learn classifier: log-probabilities.
        """
        Z = self._logits(X)
        return Z[:, 1] - Z[:, 0] if Z.shape[1] == 2 else Z

    def predict_proba(self, X: npt.ArrayLike) -> np.ndarray:
        """Probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), float64
            Rows sum to one; columns as `classes_`.
        """
        check_is_fitted(self, "classes_")
        if hasattr(self, "estimator_") and self.calibration_map_ is None and self.temperature_ == 1:
            return self._proba_of_base(check_inputs(self, X, "sklearn", reset=False))
        return softmax(self._logits(X) / self.temperature_, axis=1)

    def predict_log_proba(self, X: npt.ArrayLike) -> np.ndarray:
        """Log-probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Finite: logits are normalised directly, and a scikit-learn classifier's zero
            probabilities count as 1e-300.
        """
        Z = self._logits(X)
        return log_softmax(Z / self.temperature_, axis=1)

    def predict(self, X: npt.ArrayLike) -> np.ndarray:
        """Most probable class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples,)
            Of `classes_`.
        """
        proba = self.predict_proba(X)
        return self.classes_[proba.argmax(axis=1)]

    def score(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> float:
        """Accuracy.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Hard labels; or soft labels or votes, where each of tied modes counts as correct.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the items.

        Returns
        -------
        float
            Share of correct predictions.
        """
        if not is_matrix(y):
            return super().score(X, y, sample_weight)
        return self._soft_score(X, y, "mode_accuracy", sample_weight)

    def soft_score(
        self,
        X: npt.ArrayLike,
        P: npt.ArrayLike,
        metric: str = "neg_cross_entropy",
        sample_weight: npt.ArrayLike | None = None,
    ) -> float:
        """Score the probabilities against soft labels; larger is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        P : array-like of shape (n_samples, n_classes) or (n_samples,)
            Soft labels, votes or hard labels.
        metric : str, default="neg_cross_entropy"
            Or "neg_kl", "accuracy" (share of annotators who agree with the prediction),
            "mode_accuracy", "neg_brier", "neg_ece", "entropy_correlation" (Spearman).
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the items.

        Returns
        -------
        float
            The score.
        """
        return self._soft_score(X, P, metric, sample_weight)

    def _soft_score(self, X: Any, P: Any, metric: str, sample_weight: Any) -> float:
        proba = self.predict_proba(X)
        return soft_score(P, proba, metric, self.classes_, sample_weight)

    def calibrate(
        self,
        X: npt.ArrayLike,
        P: npt.ArrayLike,
        method: str = "temperature",
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Recalibrate the probabilities to soft labels on data apart from the training data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        P : array-like of shape (n_samples, n_classes) or (n_samples,)
            Soft labels, votes or hard labels.
        method : {"temperature", "vector", "dirichlet"}, default="temperature"
            Divide the logits by the `temperature_` of least soft cross-entropy, which changes no
            prediction; or scale and shift each logit; or map the log-probabilities linearly, with
            a penalty of 1e-3 on intercepts and off-diagonal coefficients.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the items.

        Returns
        -------
        self : SoftLabelClassifier
            With new `temperature_` or map; `fit` resets both.

        References
        ----------
        .. [1] C. Guo et al., "On calibration of modern neural networks", ICML 2017.
        .. [2] M. Kull et al., "Beyond temperature scaling", NeurIPS 2019.
        """
        if method not in ("temperature", "vector", "dirichlet"):
            raise ValueError(
                f"method={method!r} is not allowed; allowed: 'temperature', 'vector', 'dirichlet'"
            )
        check_is_fitted(self, "classes_")
        fresh = copy.copy(self)
        fresh.calibration_map_, fresh.temperature_ = None, 1.0
        Z = fresh._logits(X)
        targets = soft_targets(P, self.classes_, name="P").P
        check_consistent_length(Z, targets)
        given = check_weight(sample_weight, len(Z))
        weight = np.ones(len(Z)) if given is None else given
        if method == "temperature":
            self.calibration_map_, self.temperature_ = None, temperature_of(Z, targets, weight)
        else:
            learn = vector_map if method == "vector" else dirichlet_map
            self.calibration_map_, self.temperature_ = (method, *learn(Z, targets, weight)), 1.0
        return self

    def explain(self, X: npt.ArrayLike, P: npt.ArrayLike) -> Explanation:
        """Say how the predictions agree with human uncertainty.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs, best apart from the training data.
        P : array-like of shape (n_samples, n_classes)
            Soft labels or votes; with votes the KL divergence is given beside its floor.

        Returns
        -------
        equipoise.explanation.Explanation
            Reliability, entropy agreement, KL and the hardest items; one row an item; plots
            "reliability" and "entropy".
        """
        proba = self.predict_proba(X)
        humans = soft_targets(P, self.classes_, name="P")
        check_consistent_length(proba, humans.P)
        return explain_agreement(humans, proba)
