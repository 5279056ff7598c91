"""Opening a fitted model: its preprocessing steps in front, a kernel machine at the end.

Pipelines are unrolled, a search stands for the best model it found, a kernel approximation with the
linear model behind it becomes one machine, and a target that was scaled becomes an affine map of
the machine's output.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils import check_array
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    has_fit_parameter,
    validate_data,
)

__all__ = [
    "AffineTarget",
    "ApproximationMachine",
    "column_count",
    "fitted_model",
    "is_fitted",
    "open_model",
]


@dataclass(frozen=True)
class ApproximationMachine:
    """A linear model on the features of a kernel approximation.

    Parameters
    ----------
    features : Nystroem or RBFSampler
        The fitted approximation.
    linear : estimator
        A linear model with ``coef_`` and ``intercept_``.
    """

    features: Nystroem | RBFSampler
    linear: Any

    @property
    def n_features_in_(self) -> int:
        """Number of columns that the approximation sees."""
        return self.features.n_features_in_

    def native(self, X: np.ndarray) -> np.ndarray:
        """Compute the linear model's own output."""
        Z = self.features.transform(X)
        if is_classifier(self.linear):
            return self.linear.decision_function(Z)
        return self.linear.predict(Z)


@dataclass(frozen=True)
class AffineTarget:
    """A machine whose target was scaled: slope * output + offset.

    Parameters
    ----------
    machine : estimator
        The regressor behind the scaled target.
    slope, offset : ndarray of shape (n_outputs,)
        The inverse of the scaling.
    """

    machine: Any
    slope: np.ndarray
    offset: np.ndarray

    @property
    def n_features_in_(self) -> int:
        """Number of columns that the machine sees."""
        return column_count(self.machine)


def affine_inverse(transformer: Any, n_outputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return slope and offset of the inverse of a scaling of the target.

    Parameters
    ----------
    transformer : transformer
        The fitted transformer of a TransformedTargetRegressor.
    n_outputs : int
        Number of targets.

    Returns
    -------
    slope, offset : ndarray of shape (n_outputs,)
        The target is slope * transformed + offset.

    Raises
    ------
    ValueError
        If the transformer isn't affine.
    """
    identity = isinstance(transformer, FunctionTransformer) and transformer.inverse_func is None
    scaler = isinstance(transformer, StandardScaler | MinMaxScaler | MaxAbsScaler | RobustScaler)
    if not (scaler or identity):
        raise ValueError(
            f"TransformedTargetRegressor with {type(transformer).__name__}: only an affine target "
            "(StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler) keeps the model a kernel "
            "expansion"
        )
    offset, one = (
        np.ravel(transformer.inverse_transform(np.full((1, n_outputs), value)))
        for value in (0.0, 1.0)
    )
    return one - offset, offset


def open_model(estimator: Any) -> tuple[list[Any], Any]:
    """Split a fitted model into preprocessing steps and a kernel machine.

    Parameters
    ----------
    estimator : estimator
        A model, possibly a Pipeline, a TransformedTargetRegressor, a FrozenEstimator, a search for
        hyperparameters, or these inside each other.

    Returns
    -------
    steps : list of transformers
        In the order in which they are applied.
    machine : estimator, ApproximationMachine or AffineTarget
        What comes last.

    Raises
    ------
    ValueError
        If a search was told not to refit, so that it has no model.
    """
    if isinstance(estimator, FrozenEstimator):
        return open_model(estimator.estimator)
    if isinstance(estimator, BaseSearchCV):
        if not hasattr(estimator, "best_estimator_"):
            raise ValueError(
                f"{type(estimator).__name__} has no best_estimator_ to explain: fit it with a "
                f"refit other than False, got refit={estimator.refit!r}"
            )
        return open_model(estimator.best_estimator_)
    if isinstance(estimator, TransformedTargetRegressor):
        if not hasattr(estimator, "regressor_"):
            return [], estimator
        steps, machine = open_model(estimator.regressor_)
        n_outputs = getattr(estimator.transformer_, "n_features_in_", 1)
        slope, offset = affine_inverse(estimator.transformer_, n_outputs)
        return steps, AffineTarget(machine, slope, offset)
    if isinstance(estimator, Pipeline):
        tail, machine = open_model(estimator.steps[-1][1])
        steps = [step for _, step in estimator.steps[:-1]] + tail
        if steps and isinstance(steps[-1], Nystroem | RBFSampler):
            return steps[:-1], ApproximationMachine(steps[-1], machine)
        return steps, machine
    return [], estimator


def is_fitted(estimator: Any) -> bool:
    """Say whether an estimator has been fitted."""
    if isinstance(estimator, FrozenEstimator):
        return is_fitted(estimator.estimator)
    if isinstance(estimator, BaseSearchCV):
        return hasattr(estimator, "cv_results_")
    if isinstance(estimator, Pipeline):
        return is_fitted(estimator.steps[-1][1])
    if isinstance(estimator, GaussianProcessRegressor):
        # It predicts from its prior before it is fitted, so scikit-learn calls it fitted always.
        return hasattr(estimator, "alpha_")
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def holds_pipeline(estimator: Any) -> bool:
    """Say whether rows reach a Pipeline first, which takes frames and strings as they are."""
    if isinstance(estimator, BaseSearchCV):
        return holds_pipeline(estimator.estimator)
    if isinstance(estimator, TransformedTargetRegressor):
        return holds_pipeline(estimator.regressor)
    return isinstance(estimator, Pipeline)


def column_count(machine: Any) -> int:
    """Count the columns that a fitted kernel machine sees."""
    if hasattr(machine, "n_features_in_"):
        return int(machine.n_features_in_)
    # A Gaussian process with a constant kernel and an SVM with a callable one don't count them.
    seen = getattr(machine, "shape_fit_", None) or np.shape(getattr(machine, "X_train_", ()))
    if len(seen) != 2:
        raise TypeError(f"{type(machine).__name__} doesn't say how many features it was fitted on")
    return int(seen[1])


def fitted_model(
    estimator: Any, prefit: str | bool, X: Any, y: Any, sample_weight: Any, owner: Any
) -> Any:
    """Return the estimator itself if it is fitted and may be used so, a fitted clone otherwise.

    Parameters
    ----------
    estimator : estimator
        The model.
    prefit : "auto" or bool
        Whether it must be fitted (True), is always fitted anew (False), or used if fitted.
    X, y : array-like or None
        What to fit on, or background rows of a fitted model.
    sample_weight : array-like or None
        Weights handed to `fit`.
    owner : estimator
        Named in errors about X.

    Returns
    -------
    estimator
        Fitted.

    Raises
    ------
    NotFittedError
        If `prefit` is True and it isn't fitted.
    ValueError
        If it must be fitted without X, doesn't take weights, or X doesn't match what it has seen.
    """
    fitted = prefit is not False and is_fitted(estimator)
    if prefit is True and not fitted:
        raise NotFittedError(f"prefit=True needs a fitted estimator, and {estimator!r} is not")
    if fitted:
        if sample_weight is not None:
            raise ValueError("sample_weight is given, but the estimator is fitted already")
        if X is not None:
            seen = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
            validate_data(seen, X, reset=False, skip_check_array=True)
        return estimator
    if X is None:
        raise ValueError("X=None is for a fitted estimator; this one must be fitted: pass X")
    estimator = clone(estimator)
    if not holds_pipeline(estimator):
        X = check_array(
            X, accept_sparse="csr", accept_large_sparse=False, dtype="numeric", estimator=owner
        )
    if sample_weight is None:
        return estimator.fit(X, y)
    if not has_fit_parameter(estimator, "sample_weight"):
        raise ValueError(f"{type(estimator).__name__} doesn't take sample_weight")
    weights = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
    return estimator.fit(X, y, sample_weight=weights)
