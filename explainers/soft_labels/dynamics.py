"""Training dynamics of each item, summed up while the epochs pass (Swayamdipta et al. 2020).

With f_i^(e) the probabilities after epoch e = 1..E and r_i the reference class:
confidence mu_i = mean_e f_{i r_i}, variability s_i = population standard deviation over e,
correctness = share of epochs with argmax = r_i, forgetting = epochs e that are correct while e + 1
is wrong. With soft labels p_i: soft confidence mean_e sum_k p_ik f_ik and the last KL(p || f).
Memory is O(n K), independent of E.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd
from scipy.special import xlogy

from .targets import entropy, human_modes

__all__ = ["DynamicsRecorder", "TrainingDynamics"]


@dataclass(frozen=True, eq=False)
class TrainingDynamics:
    """What training did to each item.

    Attributes
    ----------
    n_epochs : int
        Number of epochs recorded.
    reference : ndarray of shape (n_samples,), int
        Column of the reference class.
    confidence, variability, correctness : ndarray of shape (n_samples,)
        Mean and population standard deviation over the epochs of what is followed (the reference's
        probability, or sum_k p_k f_k), and the share of epochs that predict the reference.
    forgetting : ndarray of shape (n_samples,), int
        How often a correct item became wrong in the next epoch.
    mean_entropy : ndarray of shape (n_samples,)
        Mean entropy of the model's probabilities over the epochs, in nats.
    mean_proba, sd_proba, last_proba : ndarray of shape (n_samples, n_classes)
        Mean and population standard deviation of all probabilities over the epochs, and the last.
    soft_confidence, last_kl : ndarray of shape (n_samples,) or None
        Mean of sum_k p_k f_k, and KL(p || f) in the last epoch, where soft labels were given.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from equipoise.estimators import SoftLabelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SoftLabelClassifier(max_epochs=5, track_dynamics=True, random_state=0).fit(X, y)
    >>> dynamics = model.dynamics_
    >>> dynamics.n_epochs, dynamics.confidence.shape
    (5, (150,))
    """

    n_epochs: int
    reference: np.ndarray
    confidence: np.ndarray
    variability: np.ndarray
    correctness: np.ndarray
    forgetting: np.ndarray
    mean_entropy: np.ndarray
    mean_proba: np.ndarray
    sd_proba: np.ndarray
    last_proba: np.ndarray
    soft_confidence: np.ndarray | None
    last_kl: np.ndarray | None

    def to_frame(self) -> pd.DataFrame:
        """Return the dynamics as a table, one row an item.

        Returns
        -------
        pandas.DataFrame
            Columns ``index``, ``reference``, ``confidence``, ``variability``, ``correctness``,
            ``forgetting``, ``entropy`` (mean over the epochs), ``last_entropy``, and with soft
            labels ``soft_confidence`` and ``last_kl``.
        """
        table: dict[str, np.ndarray | None] = {
            "index": np.arange(len(self.reference)),
            "reference": self.reference,
            "confidence": self.confidence,
            "variability": self.variability,
            "correctness": self.correctness,
            "forgetting": self.forgetting,
            "entropy": self.mean_entropy,
            "last_entropy": entropy(self.last_proba),
        }
        if self.soft_confidence is not None:
            table |= {"soft_confidence": self.soft_confidence, "last_kl": self.last_kl}
        return pd.DataFrame(table)


class Moments:
    """Welford's running mean and population standard deviation of arrays."""

    def __init__(self) -> None:
        self.n = 0

    def update(self, values: np.ndarray) -> None:
        if self.n == 0:
            self.mean, self.squares = np.zeros_like(values), np.zeros_like(values)
        self.n += 1
        shift = values - self.mean
        self.mean += shift / self.n
        self.squares += shift * (values - self.mean)

    def deviation(self) -> np.ndarray:
        return np.sqrt(np.maximum(self.squares, 0) / self.n)


class DynamicsRecorder:
    """Sums over epochs: `update` with each epoch's probabilities, then `result`."""

    def __init__(self, reference: np.ndarray, P: np.ndarray | None = None) -> None:
        self.reference = reference
        self.P = P
        self.followed: Moments | None = None  # only where it isn't a column of the probabilities
        self.n_epochs = 0

    @classmethod
    def soft(cls, P: np.ndarray) -> Self:
        """Follow sum_k p_k f_k, with the mode as reference."""
        recorder = cls(human_modes(P), P)
        recorder.followed = Moments()
        return recorder

    def update(self, F: np.ndarray) -> None:
        """Take in the probabilities (n, K) after one more epoch."""
        F = np.asarray(F, dtype=np.float64)
        n = len(self.reference)
        if F.ndim != 2 or len(F) != n:
            raise ValueError(f"probabilities have shape {F.shape}; expected ({n}, n_classes)")
        if not (0 <= self.reference.min() and self.reference.max() < F.shape[1]):
            raise ValueError(
                f"reference must be columns of the probabilities, 0 to {F.shape[1] - 1}"
            )
        if self.n_epochs == 0:
            self.probabilities = Moments()
            self.hits, self.forgetting = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
            self.entropy_sum, self.soft_sum = np.zeros(n), np.zeros(n)
            self.was_right = np.zeros(n, dtype=bool)
        self.n_epochs += 1
        right = F.argmax(axis=1) == self.reference
        self.hits += right
        self.forgetting += self.was_right & ~right
        self.was_right = right
        self.entropy_sum += entropy(F)
        self.probabilities.update(F)
        self.last = F
        if self.P is not None:
            agreement = (self.P * F).sum(axis=1)
            self.soft_sum += agreement
            if self.followed is not None:
                self.followed.update(agreement)

    def result(self) -> TrainingDynamics:
        """What the epochs so far amount to."""
        if self.n_epochs == 0:
            raise ValueError("no epoch was recorded")
        E, rows = self.n_epochs, np.arange(len(self.reference))
        mean, sd = self.probabilities.mean.copy(), self.probabilities.deviation()
        if self.followed is None:
            confidence, variability = mean[rows, self.reference], sd[rows, self.reference]
        else:
            confidence, variability = self.followed.mean.copy(), self.followed.deviation()
        soft, kl = None, None
        if self.P is not None:
            soft = self.soft_sum / E
            kl = (xlogy(self.P, self.P) - xlogy(self.P, np.maximum(self.last, 1e-12))).sum(axis=1)
        return TrainingDynamics(
            n_epochs=E,
            reference=self.reference,
            confidence=confidence,
            variability=variability,
            correctness=self.hits / E,
            forgetting=self.forgetting.copy(),
            mean_entropy=self.entropy_sum / E,
            mean_proba=mean,
            sd_proba=sd,
            last_proba=self.last,
            soft_confidence=soft,
            last_kl=kl,
        )
