"""Multilayer perceptrons trained by projections instead of derivatives.

Each batch: a forward pass; the proximal point of the loss as the output's target; then from the
top each layer's inputs, weights and outputs move to the nearest point where they fit each other.
The copies of the weights are averaged over the batch, what is left is an optimiser's step, and
what the inputs moved is the target of the layer below.
"""

import copy
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, _fit_context
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data
from torch import nn

from .fitting import check_weight, fit_network
from .losses import (
    MarginLoss,
    ProxAbsoluteLoss,
    ProxCrossEntropyLoss,
    ProxHingeLoss,
    ProxHuberLoss,
    ProxMSELoss,
)
from .networks import ACTIVATIONS, linear_layers
from .signal import SignalReport
from .training import outputs_of

__all__ = ["ProjectionMLPClassifier", "ProjectionMLPRegressor"]

#: Loss of the classifier to whether its targets are labels.
TAKES_LABELS = {"cross_entropy": True, "hinge": True, "margin": True, "squared": False}


class ProjectionMLP(BaseEstimator):
    """What the classifier and the regressor share: parameters, state, and explanation."""

    _random: np.random.RandomState
    _settings: str
    net_: Any
    loss_curve_: list[float]
    validation_scores_: list[float]
    signal_curve_: np.ndarray
    signal_bound_: np.ndarray
    n_iter_: int
    t_: int

    _parameter_constraints: dict = {
        "hidden_layer_sizes": ["array-like", Interval(Integral, 1, None, closed="left")],
        "norm": [StrOptions({"l2", "linf"})],
        "alpha": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "gamma": [Interval(Real, 0, None, closed="neither")],
        "reduction": [StrOptions({"mean", "sum"})],
        "lam": [Interval(Real, 0, None, closed="neither")],
        "optimizer": [StrOptions({"muon", "adam", "sgd"}), callable],
        "lr": [Interval(Real, 0, None, closed="neither"), None],
        "max_epochs": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "activation": [StrOptions(set(ACTIVATIONS)), nn.Module],
        "activation_weight": [Interval(Real, 0, None, closed="neither")],
        "standardize": ["boolean"],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "solver": [StrOptions({"exact", "one_step"})],
        "device": [str],
        "dtype": [StrOptions({"float32", "float64"})],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "warm_start": ["boolean"],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
    }

    @property
    def module_(self) -> nn.Module:
        """The trained network: takes inputs raw where it standardises them."""
        return self.net_.module_

    @property
    def optimizer_(self) -> torch.optim.Optimizer:
        """The optimiser in the state that training left it in."""
        return self.net_.optimizer_

    def _start(self, epochs: int | None) -> bool:
        """Prepare this (copied) object; whether it continues an earlier fit."""
        if epochs is not None and self.early_stopping:
            raise ValueError("early_stopping=True is not available in partial_fit; allowed: False")
        goes_on = hasattr(self, "net_") and (epochs is not None or self.warm_start)
        if goes_on and epochs is not None:  # the draws go on where they were
            self._random = copy.deepcopy(self._random)
        else:
            self._random = check_random_state(self.random_state)
        return goes_on

    def _outputs(self, X: Any) -> np.ndarray:
        """The network's outputs (n, K)."""
        check_is_fitted(self, "net_")
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return outputs_of(self.net_, X)

    def explain(self) -> SignalReport:
        """Say which part of the output's displacement reached each layer in training.

        Returns
        -------
        SignalReport
            A row a layer: the displacement in the first and the last epoch, its share of the
            output's, and the bound on that share. Plots "layers" and "epochs".
        """
        check_is_fitted(self, "net_")
        shapes = [(m.in_features, m.out_features) for m in linear_layers(self.module_)]
        return SignalReport(shapes, self.signal_curve_, self.signal_bound_.tolist())


class ProjectionMLPClassifier(ClassifierMixin, ProjectionMLP):
    """Multilayer perceptron classifier that learns by projections, without derivatives.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int or int, default=(256,)
        Widths of the hidden layers; empty for a linear model.
    norm : {"l2", "linf"}, default="l2"
        The distance of the layers' projections; "linf" takes alpha=1, solver="exact" and the CPU
        only.
    alpha : float or "auto", default=1.0
        Weight of the weights in the distance, > 0. "auto" balances inputs and weights in each
        layer and batch.
    gamma : float, default=1.0
        gamma^2 is the weight of the outputs in the distance, > 0.
    reduction : {"mean", "sum"}, default="mean"
        Whether displacements of a layer's inputs are averaged over its units or added; added they
        fade less with depth.
    loss : {"cross_entropy", "squared", "hinge", "margin"}, default="cross_entropy"
        What the output's target comes from: the proximal map of a loss, or the nearest logits with
        a margin of 1. "squared" is to one-hot labels.
    lam : float, default=1.0
        Weight of the distance in the proximal map, > 0; "margin" has none.
    optimizer : {"muon", "adam", "sgd"} or callable, default="muon"
        What takes the displacements of the weights for gradients; a callable ``(params, lr)``
        returns a torch optimiser.
    lr : float, default=None
        Learning rate. None: 1e-2 for "muon" (5e-3 from 50,000 samples on), 1e-3 for "adam", 1.0,
        the projection itself, for "sgd".
    max_epochs : int, default=20
        Passes over the data.
    batch_size : int, default=32
        Rows a step.
    activation : str or torch.nn.Module, default="relu"
        After each hidden layer: "relu", "leaky_relu", "hardtanh", "sign", "step", "quantize" (five
        levels), or an instance such as ``ProjQuantize(9)``, which is copied.
    activation_weight : float, default=1.0
        Weight of an activation's output in its distance, > 0, for those given by name. Large ones
        pass on more.
    standardize : bool, default=True
        Centre and scale each feature, as a part of the network.
    early_stopping : bool, default=False
        Keep `validation_fraction` of the rows apart, stop after `n_iter_no_change` epochs without
        a better accuracy on them, and take the best epoch's weights.
    validation_fraction : float, default=0.1
        Share of the rows kept apart by `early_stopping`.
    solver : {"exact", "one_step"}, default="exact"
        The projection, or its first Newton step.
    device : str, default="cpu"
        "cpu", "cuda", "mps" or "auto".
    dtype : {"float32", "float64"}, default="float32"
        Precision of the network.
    random_state : int, RandomState or None, default=None
        Seeds initial weights, batch order and the split of `early_stopping`.
    verbose : int, default=0
        1 shows a progress bar over the epochs.
    warm_start : bool, default=False
        Continue `fit` from the fitted weights; standardisation keeps the first fit's figures.
    n_iter_no_change : int, default=10
        Patience of `early_stopping`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where `X` has them.
    module_ : torch.nn.Module
        The network; emits one logit a class.
    optimizer_ : ProjectionOptimizer
        The optimiser, as training left it.
    net_ : skorch.NeuralNet
        The net that holds both.
    loss_curve_ : list of float
        Mean loss of each epoch.
    validation_scores_ : list of float
        Accuracy on the rows kept apart after each epoch; empty without `early_stopping`.
    signal_curve_ : ndarray of shape (n_iter_, n_layers)
        Size of the displacement that reached each layer's output: root mean square over the
        samples, averaged over the epoch's steps.
    signal_bound_ : ndarray of shape (n_layers,)
        The most of the output's displacement that can reach each layer, whatever the weights.
    n_iter_ : int
        Finished epochs, over all calls that continued each other.
    t_ : int
        Samples seen in them.

    See Also
    --------
    project : Turn any network of supported layers into one that carries displacements.

    Notes
    -----
    Where loss or weights leave the finite range, training stops with a `ConvergenceWarning`, and
    the weights are those of the last finite epoch.

    References
    ----------
    .. [1] C. Jambe, "PTorch: narrowing the gap between projection and gradient-based learning",
           2026.
    .. [2] A. Bergmeister et al., "A projection-based framework for gradient-free and parallel
           learning", arXiv 2506.05878.
    .. [3] V. Elser, "Learning without loss", arXiv 1911.00493.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from equipoise.estimators import ProjectionMLPClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ProjectionMLPClassifier((16,), max_epochs=200, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    >>> model.explain().to_frame()["layer"].tolist()
    [1, 2]
    """

    classes_: np.ndarray

    _parameter_constraints: dict = {
        **ProjectionMLP._parameter_constraints,
        "loss": [StrOptions(set(TAKES_LABELS))],
    }

    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] | int = (256,),
        *,
        norm: str = "l2",
        alpha: float | str = 1.0,
        gamma: float = 1.0,
        reduction: str = "mean",
        loss: str = "cross_entropy",
        lam: float = 1.0,
        optimizer: str | Callable[..., Any] = "muon",
        lr: float | None = None,
        max_epochs: int = 20,
        batch_size: int = 32,
        activation: str | nn.Module = "relu",
        activation_weight: float = 1.0,
        standardize: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        solver: str = "exact",
        device: str = "cpu",
        dtype: str = "float32",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        n_iter_no_change: int = 10,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.norm = norm
        self.alpha = alpha
        self.gamma = gamma
        self.reduction = reduction
        self.loss = loss
        self.lam = lam
        self.optimizer = optimizer
        self.lr = lr
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.activation = activation
        self.activation_weight = activation_weight
        self.standardize = standardize
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.solver = solver
        self.device = device
        self.dtype = dtype
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.n_iter_no_change = n_iter_no_change

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: Any = None) -> Self:
        """Fit to labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            Labels, of at least two classes.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples in each layer's mean over the batch.

        Returns
        -------
        self : ProjectionMLPClassifier
            Fitted.
        """
        # All work is done on a copy, so that a failure leaves this object as it was.
        fresh = copy.copy(self)
        fresh._fit(X, y, sample_weight, None, None)
        self.__dict__ = fresh.__dict__
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        classes: npt.ArrayLike | None = None,
        sample_weight: Any = None,
    ) -> Self:
        """Train one epoch on some rows, starting or continuing.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`. Standardisation keeps the first call's figures.
        classes : array-like of shape (n_classes,), optional
            All classes; needed in the first call where `y` doesn't show them all.

        Returns
        -------
        self : ProjectionMLPClassifier
            Trained one epoch further.
        """
        fresh = copy.copy(self)
        fresh._fit(X, y, sample_weight, classes, 1)
        self.__dict__ = fresh.__dict__
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any, classes: Any, epochs: int | None) -> None:
        """Fit this (copied) object; `epochs` is 1 in `partial_fit`, None in `fit`."""
        goes_on = self._start(epochs)
        X, y = validate_data(self, X, y, reset=not goes_on, dtype=[np.float64, np.float32])
        check_classification_targets(y)
        weight = check_weight(sample_weight, len(X))
        found = np.unique(y)
        if classes is not None:
            known = np.unique(np.asarray(classes))
            if goes_on and not np.array_equal(known, self.classes_):
                raise ValueError(
                    f"classes={known.tolist()} differ from those of earlier calls: "
                    f"{self.classes_.tolist()}"
                )
        else:
            known = self.classes_ if goes_on else found
        if unknown := sorted(set(found.tolist()) - set(known.tolist())):
            raise ValueError(f"y holds {unknown}, which aren't among the classes {known.tolist()}")
        if len(known) < 2:
            raise ValueError(
                f"y holds one class, {known.tolist()}; at least two classes are needed"
            )
        self.classes_ = known
        labels = np.searchsorted(known, y)
        targets = labels if TAKES_LABELS[self.loss] else np.eye(len(known))[labels]

        def accuracy(outputs: np.ndarray, targets: np.ndarray, weight: np.ndarray) -> float:
            truth = targets if targets.ndim == 1 else targets.argmax(axis=1)
            return accuracy_score(truth, outputs.argmax(axis=1), sample_weight=weight)

        losses: dict[str, Callable[[], nn.Module]] = {
            "cross_entropy": lambda: ProxCrossEntropyLoss(self.lam),
            "squared": lambda: ProxMSELoss(self.lam),
            "hinge": lambda: ProxHingeLoss(self.lam),
            "margin": MarginLoss,
        }
        fit_network(
            self, X, targets, weight, losses[self.loss](), accuracy, len(known), labels, epochs,
            goes_on,
        )  # fmt: skip

    def decision_function(self, X: npt.ArrayLike) -> np.ndarray:
        """Logits of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_samples,)
            With two classes the second's minus the first's.
        """
        Z = self._outputs(X)
        return Z[:, 1] - Z[:, 0] if len(self.classes_) == 2 else Z

    def predict_proba(self, X: npt.ArrayLike) -> np.ndarray:
        """Softmax of the logits.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), float64
            Probabilities for loss="cross_entropy"; for the other losses, which don't fit any,
            numbers that rank the classes and aren't calibrated.
        """
        return softmax(self._outputs(X), axis=1)

    def predict(self, X: npt.ArrayLike) -> np.ndarray:
        """Class with the largest logit.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples,)
            Classes.
        """
        columns = self._outputs(X).argmax(axis=1)
        return self.classes_[columns]


class ProjectionMLPRegressor(RegressorMixin, ProjectionMLP):
    """Multilayer perceptron regressor that learns by projections, without derivatives.

    Targets are standardised inside; predictions come back in their units.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int or int, default=(256,)
        Widths of the hidden layers; empty for a linear model.
    norm : {"l2", "linf"}, default="l2"
        The distance of the layers' projections; "linf" takes alpha=1, solver="exact" and the CPU
        only.
    alpha : float or "auto", default=1.0
        Weight of the weights in the distance, > 0. "auto" balances inputs and weights in each
        layer and batch.
    gamma : float, default=1.0
        gamma^2 is the weight of the outputs in the distance, > 0.
    reduction : {"mean", "sum"}, default="mean"
        Whether displacements of a layer's inputs are averaged over its units or added.
    loss : {"squared", "absolute", "huber"}, default="squared"
        What the output's target comes from, by its proximal map; "huber" turns linear at one
        standard deviation of the targets.
    lam : float, default=1.0
        Weight of the distance in the proximal map, > 0.
    optimizer : {"muon", "adam", "sgd"} or callable, default="muon"
        What takes the displacements of the weights for gradients; a callable ``(params, lr)``
        returns a torch optimiser.
    lr : float, default=None
        Learning rate. None: 1e-2 for "muon" (5e-3 from 50,000 samples on), 1e-3 for "adam", 1.0,
        the projection itself, for "sgd".
    max_epochs : int, default=20
        Passes over the data.
    batch_size : int, default=32
        Rows a step.
    activation : str or torch.nn.Module, default="relu"
        After each hidden layer: "relu", "leaky_relu", "hardtanh", "sign", "step", "quantize" (five
        levels), or an instance such as ``ProjQuantize(9)``, which is copied.
    activation_weight : float, default=1.0
        Weight of an activation's output in its distance, > 0, for those given by name.
    standardize : bool, default=True
        Centre and scale each feature, as a part of the network.
    early_stopping : bool, default=False
        Keep `validation_fraction` of the rows apart, stop after `n_iter_no_change` epochs without
        a better R^2 on them, and take the best epoch's weights.
    validation_fraction : float, default=0.1
        Share of the rows kept apart by `early_stopping`.
    solver : {"exact", "one_step"}, default="exact"
        The projection, or its first Newton step.
    device : str, default="cpu"
        "cpu", "cuda", "mps" or "auto".
    dtype : {"float32", "float64"}, default="float32"
        Precision of the network.
    random_state : int, RandomState or None, default=None
        Seeds initial weights, batch order and the split of `early_stopping`.
    verbose : int, default=0
        1 shows a progress bar over the epochs.
    warm_start : bool, default=False
        Continue `fit` from the fitted weights; standardisation keeps the first fit's figures.
    n_iter_no_change : int, default=10
        Patience of `early_stopping`.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where `X` has them.
    y_mean_, y_scale_ : ndarray of shape (n_outputs,)
        What targets are centred and scaled by.
    module_ : torch.nn.Module
        The network; emits standardised targets.
    optimizer_ : ProjectionOptimizer
        The optimiser, as training left it.
    net_ : skorch.NeuralNet
        The net that holds both.
    loss_curve_ : list of float
        Mean loss of each epoch, of standardised targets.
    validation_scores_ : list of float
        R^2 on the rows kept apart after each epoch; empty without `early_stopping`.
    signal_curve_ : ndarray of shape (n_iter_, n_layers)
        Size of the displacement that reached each layer's output: root mean square over the
        samples, averaged over the epoch's steps.
    signal_bound_ : ndarray of shape (n_layers,)
        The most of the output's displacement that can reach each layer, whatever the weights.
    n_iter_ : int
        Finished epochs, over all calls that continued each other.
    t_ : int
        Samples seen in them.

    Notes
    -----
    Where loss or weights leave the finite range, training stops with a `ConvergenceWarning`, and
    the weights are those of the last finite epoch.

    References
    ----------
    .. [1] C. Jambe, "PTorch: narrowing the gap between projection and gradient-based learning",
           2026.
    .. [2] V. Elser, "Learning without loss", arXiv 1911.00493.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from equipoise.estimators import ProjectionMLPRegressor
    >>> X, y = make_friedman1(300, random_state=0)
    >>> model = ProjectionMLPRegressor((32,), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.8)
    True
    """

    _parameter_constraints: dict = {
        **ProjectionMLP._parameter_constraints,
        "loss": [StrOptions({"squared", "absolute", "huber"})],
    }

    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] | int = (256,),
        *,
        norm: str = "l2",
        alpha: float | str = 1.0,
        gamma: float = 1.0,
        reduction: str = "mean",
        loss: str = "squared",
        lam: float = 1.0,
        optimizer: str | Callable[..., Any] = "muon",
        lr: float | None = None,
        max_epochs: int = 20,
        batch_size: int = 32,
        activation: str | nn.Module = "relu",
        activation_weight: float = 1.0,
        standardize: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        solver: str = "exact",
        device: str = "cpu",
        dtype: str = "float32",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        n_iter_no_change: int = 10,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.norm = norm
        self.alpha = alpha
        self.gamma = gamma
        self.reduction = reduction
        self.loss = loss
        self.lam = lam
        self.optimizer = optimizer
        self.lr = lr
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.activation = activation
        self.activation_weight = activation_weight
        self.standardize = standardize
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.solver = solver
        self.device = device
        self.dtype = dtype
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.n_iter_no_change = n_iter_no_change

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: Any = None) -> Self:
        """Fit to numbers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples in each layer's mean over the batch.

        Returns
        -------
        self : ProjectionMLPRegressor
            Fitted.
        """
        # All work is done on a copy, so that a failure leaves this object as it was.
        fresh = copy.copy(self)
        fresh._fit(X, y, sample_weight, None)
        self.__dict__ = fresh.__dict__
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: Any = None) -> Self:
        """Train one epoch on some rows, starting or continuing.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`. Standardisation keeps the first call's figures.

        Returns
        -------
        self : ProjectionMLPRegressor
            Trained one epoch further.
        """
        fresh = copy.copy(self)
        fresh._fit(X, y, sample_weight, 1)
        self.__dict__ = fresh.__dict__
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any, epochs: int | None) -> None:
        """Fit this (copied) object; `epochs` is 1 in `partial_fit`, None in `fit`."""
        goes_on = self._start(epochs)
        X, y = validate_data(
            self, X, y, reset=not goes_on, dtype=[np.float64, np.float32], multi_output=True,
            y_numeric=True,
        )  # fmt: skip
        check_consistent_length(X, y)
        weight = check_weight(sample_weight, len(X))
        columns = np.asarray(y, dtype=np.float64).reshape(len(X), -1)
        if not goes_on:
            self.y_mean_ = np.average(columns, axis=0, weights=weight)
            spread = np.sqrt(np.average((columns - self.y_mean_) ** 2, axis=0, weights=weight))
            constant = spread <= 10 * np.finfo(float).eps * np.abs(self.y_mean_)
            self.y_scale_ = np.where(constant, 1.0, spread)
            self._one_column = y.ndim == 1
        elif columns.shape[1] != len(self.y_mean_):
            raise ValueError(
                f"y has {columns.shape[1]} outputs, but the fit that is continued had "
                f"{len(self.y_mean_)}"
            )
        targets = (columns - self.y_mean_) / self.y_scale_

        def r2(outputs: np.ndarray, targets: np.ndarray, weight: np.ndarray) -> float:
            return r2_score(targets, outputs, sample_weight=weight)

        losses: dict[str, type[nn.Module]] = {
            "squared": ProxMSELoss,
            "absolute": ProxAbsoluteLoss,
            "huber": ProxHuberLoss,
        }
        fit_network(
            self, X, targets, weight, losses[self.loss](self.lam), r2, targets.shape[1], None,
            epochs, goes_on,
        )  # fmt: skip

    def predict(self, X: npt.ArrayLike) -> np.ndarray:
        """Predicted targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            In the targets' units.
        """
        predicted = self._outputs(X) * self.y_scale_ + self.y_mean_
        return predicted[:, 0] if self._one_column else predicted

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
