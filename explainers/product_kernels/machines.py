"""From one fitted kernel machine of scikit-learn to its expansion.

Each function takes a fitted model, the output asked for, the kernel in product form where it is
given, and the training rows where they are known. Coefficients carry all signs and scales that the
model applies, so that the expansion reproduces the model's own output.
"""

from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC, NuSVC, OneClassSVM

from .expansion import ProductKernelExpansion, dense_rows, stack
from .fourier import FourierExpansion
from .kernels import ProductKernel, product_terms
from .opening import ApproximationMachine

__all__ = [
    "check_output",
    "class_names",
    "from_approximation",
    "from_classification_svm",
    "from_gaussian_process",
    "from_gaussian_process_classifier",
    "from_kernel_ridge",
    "from_regression_svm",
    "pairs_to_margins",
]


def float_rows(X: Any) -> Any:
    """Turn rows into float64, dense or in sorted CSR as they are."""
    if sparse.issparse(X):
        return sparse.csr_array(X, dtype=np.float64)
    return np.asarray(X, dtype=np.float64)


def named_kernel(model: Any, gamma: float | None, given: ProductKernel | None) -> ProductKernel:
    """Return the product form of the `kernel` parameter of an SVM or a kernel ridge."""
    if given is not None:
        return given
    kernel = model.kernel
    if isinstance(kernel, ProductKernel):
        return kernel
    if isinstance(kernel, str):
        try:
            return ProductKernel.from_name(kernel, model.n_features_in_, gamma=gamma)
        except ValueError as error:
            raise ValueError(f"{type(model).__name__}: {error}") from None
    factors = getattr(kernel, "factors", None)
    if factors is not None:
        return ProductKernel(factors, float(getattr(kernel, "scale", 1.0)))
    raise ValueError(
        f"{type(model).__name__} has the kernel {kernel!r}, whose factors are unknown; use a "
        "ProductKernel as the model's kernel, or pass the explainer kernel=ProductKernel(...)"
    )


def support_points(model: Any, X_train: np.ndarray | None) -> Any:
    """Return an SVM's support vectors, from the training rows where the model keeps none."""
    if not callable(model.kernel):
        return float_rows(model.support_vectors_)
    # With a callable kernel scikit-learn keeps only the rows' numbers.
    if X_train is None or X_train.shape[0] != model.shape_fit_[0]:
        raise ValueError(
            f"{type(model).__name__} with a callable kernel keeps no support vectors; pass its "
            f"training rows to fit (of shape {tuple(model.shape_fit_)})"
        )
    return float_rows(X_train)[model.support_]


def check_output(output: str, allowed: tuple[str, ...], model: Any) -> None:
    """Raise unless the model has that output."""
    if output != "auto" and output not in allowed:
        hint = ""
        if isinstance(model, SVC | NuSVC):
            hint = "; the 'ovr' decision is a vote over pairs, not an expansion"
        raise ValueError(
            f"output={output!r} is not available for {type(model).__name__}; "
            f"allowed: {['auto', *allowed]}{hint}"
        )


def from_regression_svm(
    model: Any, output: str, kernel: ProductKernel | None, X_train: np.ndarray | None
) -> ProductKernelExpansion:
    """Rewrite SVR, NuSVR or OneClassSVM."""
    one_class = isinstance(model, OneClassSVM)
    check_output(output, ("score_samples",) if one_class else (), model)
    product = named_kernel(model, model._gamma, kernel)
    intercept = np.zeros(1) if output == "score_samples" else np.ravel(model.intercept_)
    return ProductKernelExpansion(
        support_points(model, X_train),
        dense_rows(model.dual_coef_).T,
        intercept.astype(np.float64),
        (product,),
    )


def pairs_to_margins(n_classes: int) -> np.ndarray:
    """Average the decisions between pairs of classes for each class, of shape (pairs, classes)."""
    pairs = list(combinations(range(n_classes), 2))
    mixing = np.zeros((len(pairs), n_classes))
    for p, (i, j) in enumerate(pairs):
        mixing[p, i], mixing[p, j] = 1.0, -1.0  # a positive decision favours the first class
    return mixing / (n_classes - 1)


def from_classification_svm(
    model: Any, output: str, kernel: ProductKernel | None, X_train: np.ndarray | None
) -> ProductKernelExpansion:
    """Rewrite SVC or NuSVC: the decision for classes_[1], or all pairs of classes."""
    product = named_kernel(model, model._gamma, kernel)
    classes = model.classes_
    dual = dense_rows(model.dual_coef_)
    support = support_points(model, X_train)
    if len(classes) == 2:
        check_output(output, (), model)
        intercept = np.ravel(model.intercept_).astype(np.float64)
        return ProductKernelExpansion(support, dual.T, intercept, (product,))
    check_output(output, ("ovo", "margin"), model)
    pairs = list(combinations(range(len(classes)), 2))
    ends = np.cumsum(model.n_support_)
    rows = [slice(end - count, end) for end, count in zip(ends, model.n_support_, strict=True)]
    coef = np.zeros((support.shape[0], len(pairs)))
    for p, (i, j) in enumerate(pairs):
        coef[rows[i], p] = dual[j - 1, rows[i]]
        coef[rows[j], p] = dual[i, rows[j]]
    intercept = np.ravel(model.intercept_).astype(np.float64)
    names = tuple(f"{classes[i]} vs {classes[j]}" for i, j in pairs)
    if output == "margin":
        mixing = pairs_to_margins(len(classes))
        coef, intercept = coef @ mixing, intercept @ mixing
        names = tuple(str(label) for label in classes)
    return ProductKernelExpansion(support, coef, intercept, (product,), names)


def from_kernel_ridge(
    model: KernelRidge, output: str, kernel: ProductKernel | None, X_train: np.ndarray | None
) -> ProductKernelExpansion:
    """Rewrite KernelRidge."""
    check_output(output, (), model)
    product = named_kernel(model, model.gamma, kernel)
    coef = np.asarray(model.dual_coef_, dtype=np.float64)
    coef = coef.reshape(len(coef), -1)
    return ProductKernelExpansion(
        float_rows(model.X_fit_), coef, np.zeros(coef.shape[1]), (product,)
    )


def gp_terms(
    model: Any, kernel: Any, X_train: Any, given: ProductKernel | None
) -> tuple[tuple[ProductKernel, ...], float]:
    """Return the summands of a Gaussian process's kernel, and its noise."""
    if given is not None:
        return (given,), 0.0
    try:
        terms, noise = product_terms(kernel, np.shape(X_train)[1])
    except ValueError as error:
        raise ValueError(f"{type(model).__name__}: {error}") from None
    if not terms:
        raise ValueError(f"{type(model).__name__}: {kernel} is white noise alone")
    return tuple(terms), noise


def from_gaussian_process(
    model: GaussianProcessRegressor,
    output: str,
    kernel: ProductKernel | None,
    X_train: np.ndarray | None,
) -> ProductKernelExpansion:
    """Rewrite the mean of a Gaussian-process regression."""
    check_output(output, (), model)
    if not hasattr(model, "alpha_"):
        raise ValueError("GaussianProcessRegressor must be fitted: it has no alpha_")
    terms, noise = gp_terms(model, model.kernel_, model.X_train_, kernel)
    alpha = np.asarray(model.alpha_, dtype=np.float64)
    alpha = alpha.reshape(len(alpha), -1)
    spread = np.broadcast_to(model._y_train_std, (alpha.shape[1],)).astype(np.float64)
    centre = np.broadcast_to(model._y_train_mean, (alpha.shape[1],)).astype(np.float64)
    return ProductKernelExpansion(
        dense_rows(model.X_train_),
        alpha * spread,
        centre,
        terms,
        noise=noise * float(spread[0]) ** 2,
    )


def from_gaussian_process_classifier(
    model: GaussianProcessClassifier,
    output: str,
    kernel: ProductKernel | None,
    X_train: np.ndarray | None,
) -> ProductKernelExpansion:
    """Rewrite the latent mean of a Gaussian-process classifier (Laplace approximation)."""
    check_output(output, ("latent",), model)
    base = model.base_estimator_
    if len(model.classes_) == 2:
        return latent_mean(model, base, kernel)
    if not hasattr(base, "estimators_") or model.multi_class != "one_vs_rest":
        raise ValueError(
            "GaussianProcessClassifier is explained for two classes or multi_class='one_vs_rest'; "
            f"got multi_class={model.multi_class!r} with {len(model.classes_)} classes"
        )
    parts = [latent_mean(model, member, kernel) for member in base.estimators_]
    return stack(parts, tuple(str(label) for label in model.classes_))


def latent_mean(model: Any, binary: Any, kernel: ProductKernel | None) -> ProductKernelExpansion:
    """Rewrite the latent mean of one binary Laplace approximation."""
    terms, noise = gp_terms(model, binary.kernel_, binary.X_train_, kernel)
    coef = (binary.y_train_ - binary.pi_).astype(np.float64)[:, None]
    return ProductKernelExpansion(
        dense_rows(binary.X_train_), coef, np.zeros(1), terms, noise=noise
    )


def class_names(model: Any) -> tuple[str, ...]:
    """Return the names of a classifier's classes, () for a regressor."""
    return tuple(str(label) for label in getattr(model, "classes_", ()))


def from_approximation(
    model: ApproximationMachine,
    output: str,
    kernel: ProductKernel | None,
    X_train: np.ndarray | None,
) -> ProductKernelExpansion | FourierExpansion:
    """Rewrite a linear model on the features of Nystroem, or of RBFSampler."""
    check_output(output, (), model.linear)
    features = model.features
    coef, intercept = (getattr(model.linear, name, None) for name in ("coef_", "intercept_"))
    if coef is None or intercept is None:
        raise TypeError(
            f"{type(model.linear).__name__} after {type(features).__name__} has no coef_ and "
            "intercept_; a linear model makes an expansion of it"
        )
    weights = np.atleast_2d(dense_rows(coef)).T  # (n_components, n_outputs)
    constant = np.broadcast_to(np.ravel(intercept), (weights.shape[1],)).astype(np.float64)
    names = class_names(model.linear) if weights.shape[1] > 1 else ()
    if isinstance(features, Nystroem):
        product = named_kernel(features, features.gamma, kernel)
        alpha = features.normalization_.T @ weights
        return ProductKernelExpansion(
            float_rows(features.components_), alpha, constant, (product,), names
        )
    if kernel is not None:
        raise ValueError("kernel is given, but a model on RBFSampler's features has none")
    omega, phases = features.random_weights_, features.random_offset_
    size = np.sqrt(2.0 / len(phases))
    return FourierExpansion(
        dense_rows(omega).T, dense_rows(phases), size * weights, constant, names
    )
