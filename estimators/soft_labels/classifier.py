"""A classifier that trains on the distribution of human labels.

Minimises mean_i w_i L(p_i, f_i) with p_i an item's soft label; L is the cross-entropy
-sum_k p_ik log f_ik unless another loss is chosen. A torch network is trained on it directly
(skorch); a scikit-learn classifier by replicating rows (see `replication`).
References: Peterson et al. 2019; Uma et al. 2021; Pavlovic, Paun, Poesio, arXiv 2605.18648.
"""

import copy
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length

from ...explainers.soft_labels.targets import entropy
from .fitting import check_combination, fit_base, fit_network, kind_of, read_targets
from .inputs import check_inputs, check_weight
from .prediction import SoftPredictions

__all__ = ["SoftLabelClassifier"]


def can_continue(classifier: Any) -> bool:
    """Whether there is a `partial_fit`: always for torch, else as the estimator has it."""
    estimator = classifier.estimator
    return kind_of(estimator) != "sklearn" or hasattr(estimator, "partial_fit")


class SoftLabelClassifier(SoftPredictions, BaseEstimator):
    """Classifier trained on human soft labels: vote shares instead of one label an item.

    Parameters
    ----------
    estimator : object, default=None
        What is trained. None is a multilayer perceptron. A `torch.nn.Module` emits logits
        (n, K): an instance is copied and trained from the weights it holds; a class is built under
        `random_state`, called with ``n_features`` and ``n_classes`` where its signature names them.
        A `skorch.NeuralNet` keeps its own optimiser, epochs, batches and callbacks; its criterion,
        train split and nonlinearity are set. Any scikit-learn classifier or pipeline with
        `predict_proba` is fitted to replicated rows.
    loss : {"cross_entropy", "reverse_kl", "js", "brier"}, default="cross_entropy"
        Loss between soft label and prediction; scikit-learn classifiers take "cross_entropy" only.
    hidden_layer_sizes : tuple of int, default=(128,)
        Hidden layers of the built-in network.
    activation : {"relu", "tanh", "logistic", "gelu", "identity"}, default="relu"
        Activation of the built-in network.
    dropout : float, default=0.0
        Dropout of the built-in network; not with solver "lbfgs".
    lr : float, default=1e-3
        Learning rate of "adamw" and "sgd".
    weight_decay : float, default=1e-4
        Decoupled weight decay of "adamw", L2 penalty of "sgd" and (on weight matrices) "lbfgs".
    batch_size : int or "auto", default="auto"
        Rows a step; "auto" is n_samples // 20 within [8, 128].
    max_epochs : int, default=50
        Passes over the data; iterations of "lbfgs"; passes of `partial_fit` for "sampled".
    solver : {"adamw", "sgd", "lbfgs"}, default="adamw"
        Optimiser of the built-in network and of torch modules. "sgd" has momentum 0.9. "lbfgs"
        takes the full batch in float64, for the built-in network only.
    standardize : bool, default=True
        Centre and scale each feature before the built-in network or a torch module.
    early_stopping : bool, default=False
        For torch: keep `validation_fraction` of the items apart (stratified by hard `y` where
        given) and stop after `n_iter_no_change` epochs without a better loss on them,
        keeping the best.
    validation_fraction : float, default=0.1
        Share of items kept apart by `early_stopping`.
    n_iter_no_change : int, default=10
        Patience of `early_stopping`.
    label_smoothing : float, default=0.0
        Share of the uniform distribution mixed into the targets.
    temperature : float, default=1.0
        Logits are divided by it in `predict_proba`; `calibrate` replaces it.
    vote_smoothing : float, default=0.0
        Dirichlet strength a of (c + a / K) / (n + a), for targets that are votes.
    method : {"auto", "replicate", "resample", "sampled"}, default="auto"
        "sampled" trains on one new vote a row and epoch; a scikit-learn classifier needs
        `partial_fit` for it. For scikit-learn classifiers also: a row for each possible label,
        weighted by its share, or `n_resamples` drawn labels a row. "auto" trains a network on the
        targets themselves; it replicates rows where a scikit-learn classifier's fit takes
        `sample_weight`, else resamples.
    n_resamples : int, default=10
        Labels drawn a row by "resample".
    prune_mass : float, default=0.0
        For scikit-learn classifiers: largest share of a row's distribution that may be dropped,
        smallest classes first, to have fewer copies.
    classes : sequence of shape (n_classes,), default=None
        The classes in the order of the columns; needed where a label may be absent from `y`.
    track_dynamics : bool, default=False
        Record each training item's probabilities over the epochs in `dynamics_`; for torch, for
        "sampled", and for classifiers with `staged_predict_proba`.
    callbacks : list, default=None
        skorch callbacks, for torch.
    device : str, default="cpu"
        "cpu", "cuda", "mps" or "auto", for the built-in network and torch modules.
    warm_start : bool, default=False
        Continue `fit` from the fitted weights. A scikit-learn classifier needs its own too.
    random_state : int, RandomState or None, default=None
        Seeds initial weights, dropout, batch order, splits and drawn labels, never depending on
        the targets: fits with the same seed and other targets are paired.
    verbose : int, default=0
        1 shows a progress bar over the epochs, for torch.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of all columns.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where `X` has them.
    net_ : skorch.NeuralNet
        The trained net, where a torch network is trained; it takes inputs raw, the standardisation
        being a part of it.
    estimator_ : object
        The fitted classifier, where it is scikit-learn's.
    mean_, scale_ : ndarray of shape (n_features_in_,)
        What standardisation subtracts and divides by, where a torch network is trained.
    target_entropy_ : ndarray of shape (n_samples,)
        Entropy of each training target, in nats.
    vote_counts_ : ndarray of shape (n_samples,) or None
        Number of votes for each training item; None for targets other than votes.
    history_ : pandas.DataFrame
        One row an epoch with its losses; empty for a scikit-learn classifier.
    n_iter_ : int
        Epochs run, or the scikit-learn classifier's own iterations.
    dynamics_ : TrainingDynamics
        What training did to each item; only with `track_dynamics`.
    temperature_ : float
        What logits are divided by in `predict_proba`.
    calibration_map_ : tuple or None
        Method, matrix and intercept that `calibrate` learned by "vector" or "dirichlet".

    See Also
    --------
    equipoise.explainers.human_alignment_report : All measures of agreement with annotators.

    References
    ----------
    .. [1] J. C. Peterson et al., "Human uncertainty makes classification more robust", ICCV 2019.
    .. [2] A. N. Uma et al., "Learning from disagreement: a survey", JAIR 2021.
    .. [3] M. Pavlovic, S. Paun, M. Poesio, "An assessment of human vs. model uncertainty in
           soft-label learning and calibration", arXiv 2605.18648, 2026.

    Examples
    --------
    >>> from equipoise.estimators import SoftLabelClassifier
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> votes = [[9, 1], [7, 3], [3, 7], [1, 9]]
    >>> model = SoftLabelClassifier(LogisticRegression()).fit(X, votes)
    >>> model.predict([[0.5], [2.5]])
    array([0, 1])
    >>> model.predict_proba([[1.5]]).round(2)
    array([[0.5, 0.5]])
    """

    _random: np.random.RandomState

    _parameter_constraints: dict = {
        "estimator": "no_validation",
        "loss": [StrOptions({"cross_entropy", "reverse_kl", "js", "brier"})],
        "hidden_layer_sizes": ["array-like"],
        "activation": [StrOptions({"relu", "tanh", "logistic", "gelu", "identity"})],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "lr": [Interval(Real, 0, None, closed="neither")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "batch_size": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_epochs": [Interval(Integral, 1, None, closed="left")],
        "solver": [StrOptions({"adamw", "sgd", "lbfgs"})],
        "standardize": ["boolean"],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "label_smoothing": [Interval(Real, 0, 1, closed="both")],
        "temperature": [Interval(Real, 0, None, closed="neither")],
        "vote_smoothing": [Interval(Real, 0, None, closed="left")],
        "method": [StrOptions({"auto", "replicate", "resample", "sampled"})],
        "n_resamples": [Interval(Integral, 1, None, closed="left")],
        "prune_mass": [Interval(Real, 0, 1, closed="left")],
        "classes": ["array-like", None],
        "track_dynamics": ["boolean"],
        "callbacks": [list, tuple, None],
        "device": [str],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        loss: str = "cross_entropy",
        hidden_layer_sizes: Sequence[int] = (128,),
        activation: str = "relu",
        dropout: float = 0.0,
        lr: float = 1e-3,
        weight_decay: float = 1e-4,
        batch_size: int | str = "auto",
        max_epochs: int = 50,
        solver: str = "adamw",
        standardize: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        label_smoothing: float = 0.0,
        temperature: float = 1.0,
        vote_smoothing: float = 0.0,
        method: str = "auto",
        n_resamples: int = 10,
        prune_mass: float = 0.0,
        classes: Sequence[Any] | None = None,
        track_dynamics: bool = False,
        callbacks: Sequence[Any] | None = None,
        device: str = "cpu",
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.loss = loss
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.dropout = dropout
        self.lr = lr
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.solver = solver
        self.standardize = standardize
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.label_smoothing = label_smoothing
        self.temperature = temperature
        self.vote_smoothing = vote_smoothing
        self.method = method
        self.n_resamples = n_resamples
        self.prune_mass = prune_mass
        self.classes = classes
        self.track_dynamics = track_dynamics
        self.callbacks = callbacks
        self.device = device
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        soft_labels: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Fit to labels, probabilities or votes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs; more dimensions for a torch module, data frames and sparse matrices as far as
            the scikit-learn classifier takes them.
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Hard labels, or probabilities, or votes (whole numbers; rows that all sum to 1 are
            one-hot). A data frame's columns are the class names. A sparse matrix of few classes an
            item isn't made dense for a network, except with smoothing or `track_dynamics`.
        soft_labels : array-like of shape (n_samples, n_classes), optional
            Probabilities or votes, the targets; `y` then only gives the classes. The route to take
            in cross-validation, which slices it and can stratify by `y`. May be sparse as `y`.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the items. For the multinomial likelihood give the number of votes.

        Returns
        -------
        self : SoftLabelClassifier
            Fitted.
        """
        # All work is done on a copy, so that a failure leaves this object as it was.
        fresh = copy.copy(self)
        fresh._fit(X, y, soft_labels, sample_weight, classes=self.classes, epochs=None)
        self.__dict__ = fresh.__dict__
        return self

    @available_if(can_continue)
    @_fit_context(prefer_skip_nested_validation=False)
    def partial_fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        classes: npt.ArrayLike | None = None,
        soft_labels: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Train one epoch on a batch, starting or continuing.

        Parameters
        ----------
        X, y, soft_labels, sample_weight
            As for `fit`. Standardisation keeps the first batch's means and scales.
        classes : array-like of shape (n_classes,), optional
            All classes; needed in the first call where `y` doesn't show them all.

        Returns
        -------
        self : SoftLabelClassifier
            Trained one epoch further.
        """
        fresh = copy.copy(self)
        if hasattr(self, "classes_"):
            if classes is not None and not np.array_equal(np.asarray(classes), self.classes_):
                raise ValueError(
                    f"classes={np.asarray(classes).tolist()} differ from those of earlier calls: "
                    f"{self.classes_.tolist()}"
                )
            known: Any = self.classes_
        else:
            known = self.classes if classes is None else classes
        fresh._fit(X, y, soft_labels, sample_weight, classes=known, epochs=1)
        self.__dict__ = fresh.__dict__
        return self

    def _fit(
        self, X: Any, y: Any, soft_labels: Any, sample_weight: Any, classes: Any, epochs: int | None
    ) -> None:
        """Fit this (copied) object; `epochs` is 1 in `partial_fit`, None in `fit`."""
        kind = kind_of(self.estimator)
        check_combination(self, kind, partial=epochs is not None)
        goes_on = hasattr(self, "classes_") and (epochs is not None or self.warm_start)
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None."
            )
        X = check_inputs(self, X, kind, reset=not goes_on)
        targets, hard = read_targets(self, kind, y, soft_labels, classes)
        check_consistent_length(X, targets.P)
        weight = check_weight(sample_weight, len(targets.P))
        if goes_on and not np.array_equal(targets.classes, self.classes_):
            raise ValueError(
                f"classes {targets.classes.tolist()} differ from those of the fit that is "
                f"continued: {self.classes_.tolist()}"
            )
        if not goes_on:
            for name in ("net_", "estimator_", "dynamics_", "mean_", "scale_"):
                self.__dict__.pop(name, None)
        if not (goes_on and epochs is not None):
            self._random = check_random_state(self.random_state)
        else:  # the draws of partial_fit go on where they were
            self._random = copy.deepcopy(self._random)
        self.classes_ = targets.classes
        self.target_entropy_ = entropy(targets.P)
        self.vote_counts_ = None if targets.counts is None else targets.counts.sum(axis=1)
        self.temperature_ = float(self.temperature)
        self.calibration_map_ = None
        if kind == "sklearn":
            fit_base(self, X, targets.P, weight, hard, epochs, goes_on)
        else:
            fit_network(self, kind, X, targets, weight, hard, epochs, goes_on)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if self.estimator is not None and kind_of(self.estimator) == "sklearn":
            base = get_tags(self.estimator).input_tags
            tags.input_tags.sparse, tags.input_tags.allow_nan = base.sparse, base.allow_nan
        return tags
