"""Preprocessing in front of a kernel machine, and which input feature each of its columns is from.

A Pipeline can be explained in its input features as long as every step maps features one by one,
drops some, or expands one feature into several columns: the columns of one feature then form one
player. A step that mixes features makes the columns themselves the players, on request.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils import check_array

__all__ = ["FeatureMap", "feature_map"]


class MixingStepError(ValueError):
    """Raised where a step's columns don't belong to one input feature each."""


@dataclass(frozen=True)
class FeatureMap:
    """Fitted preprocessing steps, and the input feature of each column they put out.

    Parameters
    ----------
    steps : tuple of transformers
        Applied in order.
    source : ndarray of shape (n_columns,)
        Feature of each column.
    n_features : int
        Number of features explained; one without columns has no influence.
    """

    steps: tuple[Any, ...]
    source: np.ndarray
    n_features: int

    def __call__(self, X: Any) -> Any:
        """Apply the steps.

        Parameters
        ----------
        X : array-like of shape (n, n_features_in)
            Rows in the features' own units.

        Returns
        -------
        array-like of shape (n, n_columns)
            What the kernel machine sees.
        """
        for step in self.steps:
            X = step.transform(X)
        return X

    def checked_columns(self, X: Any, n_features_in: int, owner: Any) -> Any:
        """Apply the steps, and check rows and number of columns.

        Parameters
        ----------
        X : array-like of shape (n, n_features_in)
            Rows in the features' own units.
        n_features_in : int
            How many features the model takes.
        owner : estimator
            Named in errors.

        Returns
        -------
        ndarray or CSR array of shape (n, n_columns)
            float64 columns.
        """
        if self.steps:
            return check_array(
                self(X), accept_sparse="csr", dtype=np.float64, estimator=owner, input_name="X"
            )
        X = check_array(X, accept_sparse="csr", dtype=np.float64, estimator=owner)
        if X.shape[1] != n_features_in:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(owner).__name__} is expecting "
                f"{n_features_in} features as input"
            )
        return X

    def names_out(self) -> list[str]:
        """Return the names of the columns that the steps put out, x0, x1, ... without any."""
        try:
            names: Any = None
            for step in self.steps:
                names = step.get_feature_names_out(names)
            return [str(name) for name in names]
        except (AttributeError, ValueError):
            return [f"x{j}" for j in range(self.n_features)]


_ONE_TO_ONE = (
    MaxAbsScaler,
    MinMaxScaler,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)


def kept_columns(step: SelectorMixin, n_in: int) -> np.ndarray:
    """Return the columns that a selector keeps."""
    return step.get_support(indices=True)


def imputed_columns(step: SimpleImputer, n_in: int) -> np.ndarray:
    """Return the columns of an imputer; features without any value are dropped."""
    if step.add_indicator:
        raise MixingStepError("SimpleImputer(add_indicator=True) appends columns")
    if step.keep_empty_features:
        return np.arange(n_in)
    empty = np.array([value is None or value != value for value in step.statistics_])
    return np.flatnonzero(~empty)


def binned_columns(step: KBinsDiscretizer, n_in: int) -> np.ndarray:
    """Return the feature of each bin."""
    if step.encode == "ordinal":
        return np.arange(n_in)
    return np.repeat(np.arange(n_in), step.n_bins_)


def encoded_columns(step: OneHotEncoder, n_in: int) -> np.ndarray:
    """Return the feature of each indicator."""
    return np.repeat(np.arange(n_in), step._n_features_outs)


def composed_columns(step: ColumnTransformer, n_in: int) -> np.ndarray:
    """Return the feature of each column that the parts put side by side."""
    sources = np.full(max((part.stop for part in step.output_indices_.values()), default=0), -1)
    for name, part, _ in step.transformers_:
        place = step.output_indices_[name]
        if place.stop == place.start:
            continue
        inputs = np.asarray(step._transformer_to_input_indices[name])
        if isinstance(part, str):  # "passthrough"
            sources[place] = inputs
        else:
            sources[place] = inputs[column_sources(part, len(inputs))]
    return sources


def piped_columns(step: Pipeline, n_in: int) -> np.ndarray:
    """Follow the columns through an inner Pipeline."""
    source = np.arange(n_in)
    for _, inner in step.steps:
        if not (inner is None or inner == "passthrough"):
            source = source[column_sources(inner, len(source))]
    return source


def function_columns(step: FunctionTransformer, n_in: int) -> np.ndarray:
    """Accept a function only where it is declared to work feature by feature."""
    if step.func is not None and step.feature_names_out != "one-to-one":
        raise MixingStepError("FunctionTransformer must be declared feature_names_out='one-to-one'")
    return np.arange(n_in)


_SOURCES: list[tuple[type | tuple[type, ...], Callable[[Any, int], np.ndarray]]] = [
    (_ONE_TO_ONE, lambda step, n_in: np.arange(n_in)),
    (SelectorMixin, kept_columns),
    (SimpleImputer, imputed_columns),
    (KBinsDiscretizer, binned_columns),
    (FunctionTransformer, function_columns),
    (OneHotEncoder, encoded_columns),
    (ColumnTransformer, composed_columns),
    (Pipeline, piped_columns),
]


def column_sources(step: Any, n_in: int) -> np.ndarray:
    """Find which of its input columns each output column of a fitted step is from.

    Parameters
    ----------
    step : transformer
        A fitted step.
    n_in : int
        Number of columns it gets.

    Returns
    -------
    ndarray of int
        One entry an output column.

    Raises
    ------
    MixingStepError
        If an output column may depend on several input columns.
    """
    for kinds, sources in _SOURCES:
        if isinstance(step, kinds):
            return sources(step, n_in)
    raise MixingStepError(f"{type(step).__name__} may mix features")


def feature_map(
    steps: list[Any], n_features_in: int, n_columns: int, *, explain_transformed: bool
) -> FeatureMap:
    """Compose fitted steps.

    Parameters
    ----------
    steps : list of transformers
        Fitted steps; "passthrough" and None are left out.
    n_features_in : int
        Number of input features.
    n_columns : int
        Number of columns that the last step puts out.
    explain_transformed : bool
        Whether those columns are the features to explain, so that steps may mix.

    Returns
    -------
    FeatureMap
        The steps, and the feature of each column.

    Raises
    ------
    ValueError
        If a step mixes features and `explain_transformed` is False.
    """
    used = tuple(step for step in steps if not (step is None or step == "passthrough"))
    if explain_transformed:
        return FeatureMap(used, np.arange(n_columns), n_columns)
    source = np.arange(n_features_in)
    for step in used:
        try:
            source = source[column_sources(step, len(source))]
        except MixingStepError as error:
            raise ValueError(
                f"{error}: attributions can't be given back to the input features. Use "
                "explain_transformed=True to explain the transformed columns instead"
            ) from None
    return FeatureMap(used, source, n_features_in)
