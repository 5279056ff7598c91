"""From fitted scikit-learn models to kernel expansions.

Each function below takes a fitted model and returns its `ProductKernelExpansion`; `EXTRACTORS` says
which class it is for. Coefficients carry all signs and scales that the model applies, so that the
expansion reproduces the model's own output.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.linalg import block_diag
from sklearn.base import is_classifier
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

from .expansion import ProductKernelExpansion, dense_rows
from .kernels import ProductKernel, product_terms
from .opening import AffineTarget, NystroemMachine

__all__ = ["EXTRACTORS", "extract"]


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
        # A positive decision of the pair (i, j) favours class i.
        mixing = np.zeros((len(pairs), len(classes)))
        for p, (i, j) in enumerate(pairs):
            mixing[p, i], mixing[p, j] = 1.0, -1.0
        mixing /= len(classes) - 1
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


def same_rows(first: Any, second: Any) -> bool:
    """Say whether two sets of support points are the same."""
    if first.shape != second.shape:
        return False
    if sparse.issparse(first) and sparse.issparse(second):
        return (first != second).nnz == 0
    return np.array_equal(dense_rows(first), dense_rows(second))


def stack(
    parts: list[ProductKernelExpansion], output_names: tuple[str, ...]
) -> ProductKernelExpansion:
    """Join expansions of the same columns as the outputs of one."""
    first = parts[0]
    widths = [part.n_outputs for part in parts]
    if all(same_rows(part.support, first.support) for part in parts):
        support, coef = first.support, np.hstack([part.coef for part in parts])
    else:
        rows = [part.support for part in parts]
        support = sparse.vstack(rows, "csr") if sparse.issparse(rows[0]) else np.vstack(rows)
        coef = block_diag(*(part.coef for part in parts))
    terms, term_weights = first.terms, None
    if any(part.terms != first.terms for part in parts):
        terms = tuple(kernel for part in parts for kernel in part.terms)
        term_weights = block_diag(
            *(np.ones((len(part.terms), width)) for part, width in zip(parts, widths, strict=True))
        )
    intercept = np.concatenate([part.intercept for part in parts])
    return ProductKernelExpansion(
        support, coef, intercept, terms, output_names, term_weights=term_weights
    )


def from_nystroem(
    model: NystroemMachine,
    output: str,
    kernel: ProductKernel | None,
    X_train: np.ndarray | None,
) -> ProductKernelExpansion:
    """Rewrite a linear model on Nystroem features."""
    check_output(output, (), model.linear)
    coef, intercept = (getattr(model.linear, name, None) for name in ("coef_", "intercept_"))
    if coef is None or intercept is None:
        raise TypeError(
            f"{type(model.linear).__name__} after Nystroem has no coef_ and intercept_; a linear "
            "model makes a kernel expansion of it"
        )
    product = named_kernel(model.features, model.features.gamma, kernel)
    alpha = model.features.normalization_.T @ np.atleast_2d(dense_rows(coef)).T
    constant = np.broadcast_to(np.ravel(intercept), (alpha.shape[1],)).astype(np.float64)
    names = class_names(model.linear) if alpha.shape[1] > 1 else ()
    return ProductKernelExpansion(
        float_rows(model.features.components_), alpha, constant, (product,), names
    )


def class_names(model: Any) -> tuple[str, ...]:
    """Return the names of a classifier's classes, () for a regressor."""
    return tuple(str(label) for label in getattr(model, "classes_", ()))


def from_affine_target(
    model: AffineTarget, output: str, kernel: ProductKernel | None, X_train: np.ndarray | None
) -> ProductKernelExpansion:
    """Rewrite a machine whose target was scaled."""
    inner = extract(model.machine, output=output, kernel=kernel, X_train=X_train)
    return replace(
        inner,
        coef=inner.coef * model.slope,
        intercept=inner.intercept * model.slope + model.offset,
        noise=inner.noise * float(model.slope[0]) ** 2,
    )


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


Extractor = Callable[[Any, str, ProductKernel | None, np.ndarray | None], ProductKernelExpansion]

EXTRACTORS: dict[type, Extractor] = {
    SVR: from_regression_svm,
    NuSVR: from_regression_svm,
    OneClassSVM: from_regression_svm,
    SVC: from_classification_svm,
    NuSVC: from_classification_svm,
    KernelRidge: from_kernel_ridge,
    GaussianProcessRegressor: from_gaussian_process,
    GaussianProcessClassifier: from_gaussian_process_classifier,
    NystroemMachine: from_nystroem,
    AffineTarget: from_affine_target,
    OneVsRestClassifier: from_one_vs_rest,
    OneVsOneClassifier: from_one_vs_one,
    MultiOutputRegressor: from_multi_output,
}


SUPPORTED = (
    "SVR, NuSVR, SVC, NuSVC, OneClassSVM, KernelRidge, GaussianProcessRegressor, "
    "GaussianProcessClassifier, a linear model after Nystroem, and OneVsRestClassifier, "
    "OneVsOneClassifier, MultiOutputRegressor, TransformedTargetRegressor of these"
)


def extract(
    model: Any,
    *,
    output: str = "auto",
    kernel: ProductKernel | None = None,
    X_train: np.ndarray | None = None,
) -> ProductKernelExpansion:
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
    ProductKernelExpansion
        With the same output as the model.

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


def native_output(model: Any, output: str, X: np.ndarray) -> np.ndarray | None:
    """Compute the explained output by the model's own methods, where it has one.

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
    ndarray of shape (n, n_outputs), or None
        None where scikit-learn has no method for this output.
    """
    if output in ("margin", "latent") or isinstance(
        model, GaussianProcessClassifier | OneVsOneClassifier
    ):
        return None
    if isinstance(model, AffineTarget):
        inner = native_output(model.machine, output, X)
        return None if inner is None else inner * model.slope + model.offset
    if isinstance(model, NystroemMachine):
        return np.asarray(model.native(X), dtype=np.float64).reshape(X.shape[0], -1)
    if isinstance(model, OneVsRestClassifier) and not hasattr(model, "decision_function"):
        return None
    if hasattr(model, "feature_names_in_"):
        frame: Any = pd.DataFrame(dense_rows(X), columns=model.feature_names_in_)
        X = frame
    if output == "score_samples":
        values = model.score_samples(X)
    elif isinstance(model, SVC | NuSVC) and len(model.classes_) > 2:
        values = model._decision_function(X)
    elif is_classifier(model) or isinstance(model, OneClassSVM):
        values = model.decision_function(X)
    else:
        values = model.predict(X)
    values = np.asarray(values, dtype=np.float64)
    return values.reshape(X.shape[0], -1)


def check_reproduction(
    model: Any, expansion: ProductKernelExpansion, output: str, X: np.ndarray
) -> None:
    """Raise if an expansion doesn't reproduce the model's own output.

    Parameters
    ----------
    model : estimator
        A fitted kernel machine.
    expansion : ProductKernelExpansion
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
    if native is None or native.shape != (X.shape[0], expansion.n_outputs):
        return
    scale = 1.0 + np.abs(native).max(initial=0.0) + np.abs(expansion.coef).sum(axis=0)
    distance = float(np.max(np.abs(native - expansion(X)) / scale, initial=0.0))
    if distance > 1e-6:
        raise ValueError(
            f"The product kernel doesn't reproduce {type(model).__name__}: outputs differ by "
            f"{distance:.1e} of the coefficients' total. Are kernel= and the training rows right?"
        )
