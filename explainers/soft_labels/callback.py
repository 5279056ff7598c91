"""skorch callbacks that watch items while a network trains. Importing this module imports torch."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from skorch import NeuralNet
from skorch.callbacks import Callback

from .alignment import CLIP
from .dynamics import DynamicsRecorder, TrainingDynamics
from .epoch_file import EpochFile, check_store
from .targets import is_matrix, soft_targets

__all__ = ["CartographyCallback"]


def net_probabilities(net: NeuralNet, X: Any) -> np.ndarray:
    """Probabilities in evaluation mode, in the precision of the network."""
    if isinstance(X, np.ndarray):
        dtypes = (p.dtype for p in net.module_.parameters() if p.is_floating_point())
        X = X.astype(str(next(dtypes)).removeprefix("torch."), copy=False)
    return np.asarray(net.predict_proba(X), dtype=np.float64)


class CartographyCallback(Callback):
    """Record the training dynamics of items after each epoch of a skorch net.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Inputs of the items to watch, as the net takes them: the training items, or held-out ones.
    reference : array-like of shape (n_samples,) or (n_samples, n_classes)
        Column of the class to follow for each item, or soft labels or votes: then the probability
        followed is sum_k p_k f_k, and the mode is the reference of correctness.
    soft_labels : array-like of shape (n_samples, n_classes), optional
        Soft labels or votes, for soft confidence and KL beside a reference class.
    store : "stream" or path, default="stream"
        "stream" keeps sums only. A path also writes the probabilities of all epochs, (n_epochs,
        n_samples, n_classes), to this NumPy file, one epoch at a time; training that goes on with
        the same callback starts the file anew.
    store_dtype : {"float16", "float32", "float64"}, default="float32"
        Precision of the file. Half precision takes half the room, and keeps three digits.

    Attributes
    ----------
    dynamics_ : TrainingDynamics
        What the epochs amount to; set at the end of training.

    Notes
    -----
    The net's ``predict_proba`` must give probabilities: skorch sees to it for the criteria
    CrossEntropyLoss and NLLLoss. The cost is one forward pass over `X` an epoch. With
    `SoftLabelClassifier`, pass it in `callbacks`.

    References
    ----------
    .. [1] S. Swayamdipta et al., "Dataset cartography", EMNLP 2020, arXiv 2009.10795.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.estimators import SoftLabelClassifier
    >>> from equipoise.explainers import CartographyCallback
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    >>> held_out = CartographyCallback(X[30:], y[30:])
    >>> model = SoftLabelClassifier(callbacks=[held_out], max_epochs=3, random_state=0)
    >>> _ = model.fit(X[:30], y[:30])
    >>> held_out.dynamics_.n_epochs
    3
    """

    def __init__(
        self,
        X: npt.ArrayLike,
        reference: npt.ArrayLike,
        soft_labels: npt.ArrayLike | None = None,
        store: str | Path = "stream",
        store_dtype: str = "float32",
    ) -> None:
        self.X = X
        self.reference = reference
        self.soft_labels = soft_labels
        self.store = store
        self.store_dtype = store_dtype

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        """Start anew.

        Parameters
        ----------
        net : skorch.NeuralNet
            The net that trains.
        **kwargs : dict
            Unused.
        """
        check_store(self.store, self.store_dtype)
        self.file_ = None if self.store == "stream" else EpochFile(self.store, self.store_dtype)
        P = self.soft_labels
        if is_matrix(self.reference):
            self.recorder_ = DynamicsRecorder.soft(soft_targets(self.reference, name="reference").P)
        else:
            soft = None if P is None else soft_targets(P, name="soft_labels").P
            self.recorder_ = DynamicsRecorder(np.asarray(self.reference), soft)

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        """Take in the probabilities after an epoch.

        Parameters
        ----------
        net : skorch.NeuralNet
            The net that trains.
        **kwargs : dict
            Unused.
        """
        F = net_probabilities(net, self.X)
        self.recorder_.update(F)
        if self.file_ is not None:
            self.file_.write(F)

    def on_train_end(self, net: NeuralNet, **kwargs: Any) -> None:
        """Sum up.

        Parameters
        ----------
        net : skorch.NeuralNet
            The net that trains.
        **kwargs : dict
            Unused.
        """
        self.dynamics_: TrainingDynamics = self.recorder_.result()


class HeldOutCallback(Callback):
    """Dynamics of held-out items, and their cross-entropies to several targets after each epoch."""

    def __init__(
        self, X: Any, reference: np.ndarray, P: np.ndarray, targets: dict[str, np.ndarray]
    ) -> None:
        self.X = X
        self.reference = reference
        self.P = P
        self.targets = targets

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        self.recorder_ = DynamicsRecorder(self.reference, self.P)
        self.curves_: list[list[float]] = []

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        F = net_probabilities(net, self.X)
        self.recorder_.update(F)
        log_f = np.log(np.maximum(F, CLIP))
        self.curves_.append([-float((T * log_f).sum(axis=1).mean()) for T in self.targets.values()])
