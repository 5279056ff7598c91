"""From fitted scikit-learn models to expansions: the table of machines, and machines of machines.

`EXTRACTORS` says which function rewrites which class. An expansion is compared with the model's own
output before it is used.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

from .expansion import ProductKernelExpansion, dense_rows, stack
from .fourier import FourierExpansion
from .kernels import ProductKernel
from .machines import (
    check_output,
    class_names,
    from_approximation,
    from_classification_svm,
    from_gaussian_process,
    from_gaussian_process_classifier,
    from_kernel_ridge,
    from_regression_svm,
    pairs_to_margins,
)
from .opening import AffineTarget, ApproximationMachine

__all__ = ["EXTRACTORS", "extract"]


def from_affine_target(
    model: AffineTarget, output: str, kernel: ProductKernel | None, X_train: np.ndarray | None
) -> ProductKernelExpansion | FourierExpansion:
    """Rewrite a machine whose target was scaled."""
    inner = extract(model.machine, output=output, kernel=kernel, X_train=X_train)
    scaled = replace(
        inner,
        coef=inner.coef * model.slope,
        intercept=inner.intercept * model.slope + model.offset,
    )
    if isinstance(scaled, ProductKernelExpansion):
        return replace(scaled, noise=scaled.noise * float(model.slope[0]) ** 2)
    return scaled


def from_one_vs_rest(
    model: OneVsRestClassifier,
    output: str,
    kernel: ProductKernel | None,
    X_train: np.ndarray | None,
) -> ProductKernelExpansion:
    """Rewrite the decisions of one machine a class; two classes have one decision."""
    check_output(output, (), model)
    parts = [extract(part, kernel=kernel, X_train=X_train) for part in model.estimators_]
    return stack(parts, class_names(model) if len(parts) > 1 else ())


def from_one_vs_one(
    model: OneVsOneClassifier,
    output: str,
    kernel: ProductKernel | None,
    X_train: np.ndarray | None,
) -> ProductKernelExpansion:
    """Rewrite the decisions between all pairs of classes; positive favours the first."""
    check_output(output, ("ovo",), model)
    names = tuple(f"{a} vs {b}" for a, b in combinations(class_names(model), 2))
    joined = stack([extract(part, kernel=kernel) for part in model.estimators_], names)
    return replace(joined, coef=-joined.coef, intercept=-joined.intercept)


def from_multi_output(
    model: MultiOutputRegressor,
    output: str,
    kernel: ProductKernel | None,
    X_train: np.ndarray | None,
) -> ProductKernelExpansion:
    """Rewrite one machine a target."""
    parts = [
        extract(part, output=output, kernel=kernel, X_train=X_train) for part in model.estimators_
    ]
    return stack(parts, ())


Extractor = Callable[[Any, str, ProductKernel | None, np.ndarray | None], Any]

EXTRACTORS: dict[type, Extractor] = {
    SVR: from_regression_svm,
    NuSVR: from_regression_svm,
    OneClassSVM: from_regression_svm,
    SVC: from_classification_svm,
    NuSVC: from_classification_svm,
    KernelRidge: from_kernel_ridge,
    GaussianProcessRegressor: from_gaussian_process,
    GaussianProcessClassifier: from_gaussian_process_classifier,
    ApproximationMachine: from_approximation,
    AffineTarget: from_affine_target,
    OneVsRestClassifier: from_one_vs_rest,
    OneVsOneClassifier: from_one_vs_one,
    MultiOutputRegressor: from_multi_output,
}


SUPPORTED = (
    "SVR, NuSVR, SVC, NuSVC, OneClassSVM, KernelRidge, GaussianProcessRegressor, "
    "GaussianProcessClassifier, a linear model after Nystroem or RBFSampler, and "
    "OneVsRestClassifier, OneVsOneClassifier, MultiOutputRegressor, TransformedTargetRegressor of "
    "these"
)


def extract(
    model: Any,
    *,
    output: str = "auto",
    kernel: ProductKernel | None = None,
    X_train: np.ndarray | None = None,
) -> Any:
    """Rewrite a fitted model without preprocessing as a kernel expansion.

    Parameters
    ----------
    model : estimator
        A fitted kernel machine of scikit-learn.
    output : str, default="auto"
        Which output: "auto", "ovo", "margin", "score_samples" or "latent".
    kernel : ProductKernel, optional
        The model's kernel in product form, where it can't be read off the model.
    X_train : ndarray of shape (n_train, n_features), optional
        The training rows, needed for support vector machines with a callable kernel.

    Returns
    -------
    ProductKernelExpansion or FourierExpansion
        With the same output as the model; the second for a linear model after RBFSampler.

    Raises
    ------
    TypeError
        If the model is no kernel machine that is supported.
    ValueError
        If its kernel is no product over features, or the output isn't available.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.svm import SVR
    >>> from equipoise.explainers.product_kernels.extraction import extract
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 4.0])
    >>> model = SVR().fit(X, y)
    >>> bool(abs(extract(model)(X).ravel() - model.predict(X)).max() < 1e-12)
    True
    """
    for kind in type(model).__mro__:
        if kind in EXTRACTORS:
            return EXTRACTORS[kind](model, output, kernel, X_train)
    raise TypeError(
        f"{type(model).__name__} is not a kernel machine whose expansion is known; supported: "
        f"{SUPPORTED}, alone or as the last step of a Pipeline"
    )


def native_output(model: Any, output: str, X: np.ndarray) -> np.ndarray:
    """Compute the explained output by the model's own methods.

    Parameters
    ----------
    model : estimator
        A fitted kernel machine.
    output : str
        The explained output.
    X : ndarray of shape (n, n_features)
        Rows.

    Returns
    -------
    ndarray of shape (n, n_outputs)
        Values.
    """
    if isinstance(model, AffineTarget):
        return native_output(model.machine, output, X) * model.slope + model.offset
    if isinstance(model, OneVsRestClassifier | OneVsOneClassifier | MultiOutputRegressor):
        inner = output if isinstance(model, MultiOutputRegressor) else "auto"
        columns = np.hstack([native_output(part, inner, X) for part in model.estimators_])
        # scikit-learn's machine of a pair of classes decides for the second one.
        return -columns if isinstance(model, OneVsOneClassifier) else columns
    if isinstance(model, GaussianProcessClassifier):
        base = model.base_estimator_
        members = base.estimators_ if len(model.classes_) > 2 else [base]
        return np.column_stack([member.latent_mean_and_variance(X)[0] for member in members])
    if isinstance(model, ApproximationMachine):
        values = model.native(X)
    elif isinstance(model, SVC | NuSVC) and len(model.classes_) > 2:
        values = model._decision_function(dense_or_frame(model, X))
        if output == "margin":
            values = values @ pairs_to_margins(len(model.classes_))
    elif output == "score_samples":
        values = model.score_samples(dense_or_frame(model, X))
    elif is_classifier(model) or isinstance(model, OneClassSVM):
        values = model.decision_function(dense_or_frame(model, X))
    else:
        values = model.predict(dense_or_frame(model, X))
    return np.asarray(values, dtype=np.float64).reshape(X.shape[0], -1)


def dense_or_frame(model: Any, X: Any) -> Any:
    """Name the columns for a model that was fitted on names."""
    if hasattr(model, "feature_names_in_"):
        return pd.DataFrame(dense_rows(X), columns=model.feature_names_in_)
    return X


def check_reproduction(
    model: Any,
    expansion: ProductKernelExpansion | FourierExpansion,
    output: str,
    X: np.ndarray,
) -> None:
    """Raise if an expansion doesn't reproduce the model's own output.

    Parameters
    ----------
    model : estimator
        A fitted kernel machine.
    expansion : ProductKernelExpansion or FourierExpansion
        What was extracted from it.
    output : str
        The explained output.
    X : ndarray of shape (n, n_features)
        Rows to compare on.

    Raises
    ------
    ValueError
        If they differ by more than 1e-6 of the coefficients' total.
    """
    if not X.shape[0]:
        return
    native = native_output(model, output, X)
    scale = 1.0 + np.abs(native).max(initial=0.0) + np.abs(expansion.coef).sum(axis=0)
    distance = float(np.max(np.abs(native - expansion(X)) / scale, initial=0.0))
    if distance > 1e-6:
        raise ValueError(
            f"The product kernel doesn't reproduce {type(model).__name__}: outputs differ by "
            f"{distance:.1e} of the coefficients' total. Are kernel= and the training rows right?"
        )
