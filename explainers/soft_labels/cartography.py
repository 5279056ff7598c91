"""Data maps from training dynamics: which items are easy, hard or ambiguous for a model.

Swayamdipta et al. (2020) place each item by confidence (mean probability of its label over the
epochs) and variability (standard deviation): easy-to-learn items have high confidence and low
variability, hard-to-learn ones low both, ambiguous ones high variability. Here the regions are
thirds by quantile, and the axes are compared with the annotators' entropy.
"""

from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import betaincc
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, clone
from sklearn.neural_network import MLPClassifier
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from equipoise.explanation import Explanation

from .alignment import correlation
from .data_map import REGIONS, draw_alignment, draw_data_map, regions
from .dynamics import DynamicsRecorder
from .epoch_file import EpochFile, check_store
from .epochs import epochs_of, number_of_epochs
from .targets import (
    entropy,
    human_modes,
    is_matrix,
    read_hard,
    soft_targets,
)

__all__ = ["DatasetCartography"]

N_SUSPECTS = 5


def label_doubt(P: np.ndarray, counts: np.ndarray | None, labels: np.ndarray) -> np.ndarray:
    """Probability that more people would choose the most voted other class than the label.

    Under a uniform Dirichlet prior the rival's share of the two is Beta(1 + rival's votes, 1 +
    label's votes): few votes leave doubt also where they all agree. Without votes, 0 or 1.
    """
    rows = np.arange(len(P))
    if counts is None:
        return (P[rows, labels] < P.max(axis=1)).astype(float)
    others = counts.copy()
    others[rows, labels] = -1
    return betaincc(1.0 + others.max(axis=1), 1.0 + counts[rows, labels], 0.5)


def partial_spearman(a: np.ndarray, b: np.ndarray, groups: np.ndarray) -> float:
    """Spearman correlation of a and b after the groups' means are taken off their ranks."""
    residuals = []
    for values in (a, b):
        ranks = rankdata(values.round(12))
        means = np.bincount(groups, ranks) / np.maximum(np.bincount(groups), 1)
        residuals.append(ranks - means[groups])
    return correlation(residuals[0], residuals[1], ranks=False)


class DatasetCartography(BaseEstimator):
    """Map a data set by how a model learns each of its items.

    Parameters
    ----------
    estimator : object, default=None
        A classifier whose epochs can be followed: by `staged_predict_proba` (boosting), by
        `partial_fit` (in an order shuffled anew, with a fixed seed), or by `warm_start` in steps of
        `n_estimators` or of single iterations `max_iter`. None is a scikit-learn `MLPClassifier`
        with ``random_state=0``. For networks trained through skorch, use `CartographyCallback`.
    reference : {"label", "mode", "soft"}, default="label"
        Follow the probability of the label, of the annotators' mode, or the expected agreement
        sum_k p_k f_k with the annotators; the last two need soft labels.
    epochs : int, default=None
        Number of epochs. None takes 20, and all stages of a boosting model.
    store : "stream" or path, default="stream"
        "stream" keeps sums only, of O(n_samples n_classes) memory whatever the number of epochs. A
        path writes the probabilities of all epochs, (n_epochs, n_samples, n_classes), to this NumPy
        file, one epoch at a time.
    store_dtype : {"float16", "float32", "float64"}, default="float32"
        Precision of the file. Half precision takes half the room, and keeps three digits.

    Attributes
    ----------
    dynamics_ : TrainingDynamics
        Confidence, variability, correctness, forgetting events and more of each item.
    regions_ : ndarray of shape (n_samples,)
        "easy-to-learn", "hard-to-learn", "ambiguous" or "mixed".
    alignment_ : pandas.DataFrame or None
        Spearman correlation with the annotators' entropy of 1 - confidence, variability, mean and
        last entropy, also within the classes of reference, where soft labels were given.
    human_entropy_ : ndarray of shape (n_samples,) or None
        Entropy of the soft labels, in nats, where given.
    suspicion_ : ndarray of shape (n_samples,) or None
        Candidates for label errors, where soft labels were given: 1 - confidence, times the
        probability under the votes that another class is more common than the label. With
        probabilities instead of votes that is 1 where the label isn't the mode, else 0.
    classes_ : ndarray of shape (n_classes,)
        Label of each column.
    estimator_ : object or None
        The trained classifier; None after `from_probabilities`.

    References
    ----------
    .. [1] S. Swayamdipta et al., "Dataset cartography: mapping and diagnosing datasets with
           training dynamics", EMNLP 2020, arXiv 2009.10795.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import GradientBoostingClassifier
    >>> from equipoise.explainers import DatasetCartography
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GradientBoostingClassifier(n_estimators=10, random_state=0)
    >>> cartography = DatasetCartography(model).fit(X, y)
    >>> cartography.explain().to_frame().shape
    (150, 8)
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        reference: str = "label",
        epochs: int | None = None,
        store: str | Path = "stream",
        store_dtype: str = "float32",
    ) -> None:
        self.estimator = estimator
        self.reference = reference
        self.epochs = epochs
        self.store = store
        self.store_dtype = store_dtype

    def fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, soft_labels: npt.ArrayLike | None = None
    ) -> Self:
        """Train the estimator and record every epoch.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            Hard labels.
        soft_labels : array-like of shape (n_samples, n_classes), optional
            Soft labels or votes, in the order of the sorted labels. An estimator whose
            `partial_fit` takes `soft_labels` is trained on them; others learn `y`.

        Returns
        -------
        self : DatasetCartography
            Fitted.

        Raises
        ------
        TypeError
            If the estimator shows no epochs.
        """
        if self.reference not in ("label", "mode", "soft"):
            raise ValueError(
                f"reference={self.reference!r} is not allowed; allowed: 'label', 'mode', 'soft'"
            )
        if self.epochs is not None and (int(self.epochs) != self.epochs or self.epochs < 1):
            raise ValueError(f"epochs={self.epochs!r} must be a whole number >= 1")
        check_store(self.store, self.store_dtype)
        X = X if hasattr(X, "shape") else np.asarray(X)
        columns, classes = read_hard(y, None)
        check_consistent_length(X, columns)
        P, counts = None, None
        if soft_labels is not None:
            P, counts, _ = soft_targets(soft_labels, classes, name="soft_labels")
            check_consistent_length(X, P)
        estimator = (
            MLPClassifier(random_state=0) if self.estimator is None else clone(self.estimator)
        )
        recorder = self._recorder(columns, P)
        n_epochs = number_of_epochs(estimator, self.epochs)
        file = None if self.store == "stream" else EpochFile(self.store, self.store_dtype)
        for F in epochs_of(estimator, X, classes[columns], classes, n_epochs, P):
            recorder.update(F)
            if file is not None:
                file.write(F)
        self.classes_, self.estimator_ = classes, estimator
        return self._finish(recorder, P, counts)

    def _recorder(self, columns: np.ndarray, P: np.ndarray | None) -> DynamicsRecorder:
        if self.reference == "label":
            return DynamicsRecorder(columns, P)
        if P is None:
            raise ValueError(f"reference={self.reference!r} needs soft_labels")
        if self.reference == "soft":
            return DynamicsRecorder.soft(P)
        return DynamicsRecorder(human_modes(P, columns), P)

    def _finish(
        self, recorder: DynamicsRecorder, P: np.ndarray | None, counts: np.ndarray | None
    ) -> Self:
        dynamics = recorder.result()
        self.dynamics_ = dynamics
        self.regions_ = regions(dynamics.confidence, dynamics.variability)
        self.human_entropy_, self.suspicion_, self.alignment_ = None, None, None
        if P is not None:
            self.human_entropy_ = entropy(P)
            doubt = label_doubt(P, counts, dynamics.reference)
            self.suspicion_ = (1 - dynamics.confidence) * doubt
            axes = {
                "1 - confidence": 1 - dynamics.confidence,
                "variability": dynamics.variability,
                "mean entropy": dynamics.mean_entropy,
                "last entropy": entropy(dynamics.last_proba),
            }
            H = self.human_entropy_
            self.alignment_ = pd.DataFrame(
                {
                    "axis": list(axes),
                    "spearman": [correlation(v, H, ranks=True) for v in axes.values()],
                    "within_class": [
                        partial_spearman(v, H, dynamics.reference) for v in axes.values()
                    ],
                }
            )
        return self

    @classmethod
    def from_probabilities(
        cls,
        F: npt.ArrayLike,
        reference: npt.ArrayLike,
        soft_labels: npt.ArrayLike | None = None,
    ) -> Self:
        """Map a data set from recorded probabilities, of any framework.

        Parameters
        ----------
        F : array-like of shape (n_epochs, n_samples, n_classes)
            Probabilities of the items after each epoch; a memory map is read epoch by epoch.
        reference : array-like of shape (n_samples,) or (n_samples, n_classes)
            Column of the class to follow for each item; or soft labels or votes, to follow the
            expected agreement with the annotators.
        soft_labels : array-like of shape (n_samples, n_classes), optional
            Soft labels or votes to compare with, beside a reference class.

        Returns
        -------
        DatasetCartography
            Fitted.

        Examples
        --------
        >>> from equipoise.explainers import DatasetCartography
        >>> F = [[[0.6, 0.4], [0.5, 0.5]], [[0.8, 0.2], [0.9, 0.1]]]
        >>> cartography = DatasetCartography.from_probabilities(F, [0, 1])
        >>> cartography.dynamics_.confidence.round(2)
        array([0.7, 0.3])
        """
        shape = np.shape(F)
        if len(shape) != 3 or shape[0] < 1:
            raise ValueError(f"F has shape {shape}; expected (n_epochs, n_samples, n_classes)")
        soft = is_matrix(reference)
        P, counts = None, None
        if soft:
            P, counts, _ = soft_targets(reference, name="reference")
        elif soft_labels is not None:
            P, counts, _ = soft_targets(soft_labels, name="soft_labels")
        if P is not None and P.shape != shape[1:]:
            raise ValueError(f"soft labels have shape {P.shape}; expected {shape[1:]}")
        if soft and P is not None:
            recorder = DynamicsRecorder.soft(P)
        else:
            columns = np.asarray(reference)
            if columns.shape != shape[1:2] or columns.dtype.kind not in "iu":
                raise ValueError(f"reference must be {shape[1]} whole numbers, columns of F")
            recorder = DynamicsRecorder(columns, P)
        epochs = F if isinstance(F, np.ndarray) else np.asarray(F)  # a memory map stays one
        for e, epoch in enumerate(epochs):
            values = np.asarray(epoch, dtype=np.float64)
            if not ((values >= 0).all() and np.abs(values.sum(axis=1) - 1).max() <= 1e-3):
                raise ValueError(f"F[{e}] must have non-negative rows that sum to 1")
            recorder.update(values)
        made = cls(reference="soft" if soft else "label", epochs=shape[0])
        made.classes_, made.estimator_ = np.arange(shape[2]), None
        return made._finish(recorder, P, counts)

    def explain(self) -> Explanation:
        """Say which items are easy, hard and ambiguous.

        Returns
        -------
        equipoise.explanation.Explanation
            One row an item: ``index``, ``reference`` (label), ``confidence``, ``variability``,
            ``correctness``, ``forgetting``, ``entropy``, ``region``; with soft labels also
            ``human_entropy``, ``soft_confidence`` and ``suspicion`` (see `suspicion_`). Plots
            "data_map", and "alignment" with soft labels.
        """
        check_is_fitted(self, "dynamics_")
        dynamics = self.dynamics_
        frame = dynamics.to_frame().drop(columns=["last_entropy", "last_kl"], errors="ignore")
        frame["reference"] = self.classes_[dynamics.reference]
        frame["region"] = self.regions_
        plots = {"data_map": partial(draw_data_map, frame=frame)}
        share = frame["region"].value_counts(normalize=True)
        summary = [
            f"over {dynamics.n_epochs} epochs "
            + ", ".join(f"{share.get(name, 0):.0%} {name}" for name in REGIONS),
            f"{(dynamics.forgetting > 0).mean():.0%} of the items were forgotten at least once; "
            f"{(dynamics.correctness == 0).mean():.1%} were never predicted",
        ]
        if self.alignment_ is not None:
            frame["human_entropy"] = self.human_entropy_
            frame["suspicion"] = self.suspicion_
            table = self.alignment_.set_index("axis")
            summary.append(
                "Spearman with human entropy: "
                + ", ".join(f"{axis} {rho:.2f}" for axis, rho in table["spearman"].items())
            )
            plots["alignment"] = partial(draw_alignment, frame=frame)
        if self.suspicion_ is not None and self.suspicion_.any():
            suspects = frame[frame["suspicion"] > 0].nlargest(N_SUSPECTS, "suspicion")["index"]
            summary.append(f"labels to look at first: items {suspects.tolist()}")
        else:
            lowest = frame.nsmallest(N_SUSPECTS, "confidence")["index"]
            summary.append(f"least confidence in the reference: items {lowest.tolist()}")
        return Explanation("How does the model learn each item?", summary, frame, plots)
