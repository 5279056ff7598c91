"""PKeXShapleyExplainer on fitted models: reference values, axioms, removals, models, errors."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest, VarianceThreshold, f_regression
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as gp
from sklearn.impute import SimpleImputer
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, SVR
from sklearn.utils.estimator_checks import parametrize_with_checks

from equipoise.explainers import (
    HammingFactor,
    LaplacianFactor,
    PKeXShapleyExplainer,
    ProductKernel,
    RBFFactor,
)
from equipoise.testing import check_shapley_axioms, product_form_kernels, shapley_values

pytestmark = pytest.mark.filterwarnings("ignore:The base value of removal='identity':UserWarning")

X_TRAIN = np.array([[0, 0], [1, 2], [2, 1], [3, 3.0]])
Y_TRAIN = np.array([1, -1, 2, 0.5])
POINT = np.array([[1.0, 1.0]])
REMOVALS = ["identity", "baseline", "marginal", "interventional"]


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def small():
    """A small regression problem, for enumeration."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(30, 5))
    return X, X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2])


def ridge():
    return KernelRidge(kernel="rbf", gamma=0.5, alpha=0.5).fit(X_TRAIN, Y_TRAIN)


# Reference values


@pytest.mark.parametrize("backend", ["numba", "numpy"])
@pytest.mark.parametrize(
    ("removal", "reference", "phi", "base"),
    [
        ("identity", None, (-0.964552300265298, 0.078099925822272), 1.402299210673985),
        ("marginal", X_TRAIN, (-0.217288597329541, 0.394851639045933), 0.338283794514566),
        ("interventional", X_TRAIN, (-0.273002999405133, 0.339137236970340), 0.449712598665752),
        ("baseline", [0, 3], (0.096301705610628, 0.784892968538069), -0.365347837917739),
    ],
)
def test_kernel_ridge_reference_values(removal, reference, phi, base, backend):
    explainer = PKeXShapleyExplainer(ridge(), removal=removal, reference=reference, backend=backend)
    explanation = explainer.fit().explain(POINT)
    assert_allclose(explanation.values, [phi], rtol=1e-12)
    assert_allclose(explanation.base_values, [base], rtol=1e-12)
    assert explainer.expected_value == pytest.approx(base)
    assert_allclose(explainer.predict_output(POINT), [[0.515846836230959]], rtol=1e-12)


def test_gaussian_process_reference_values():
    kernel = 1.5 * gp.RBF([1, 2])
    model = GaussianProcessRegressor(kernel, alpha=0.1, optimizer=None).fit(X_TRAIN, Y_TRAIN)
    explanation = PKeXShapleyExplainer(model).fit().explain(POINT)
    assert_allclose(explanation.values, [[-1.705494669537653, 0.296896699329304]], rtol=1e-11)
    assert_allclose(explanation.base_values, [1.526636805656044], rtol=1e-11)


def test_hamming_reference_values():
    """A machine with the coefficients (1, -2, 1/2), made from a kernel ridge without penalty."""
    support = np.array([[0, 1, 2], [1, 1, 0], [0, 0, 2.0]])
    kernel = ProductKernel([HammingFactor(0.3), HammingFactor(0.6), HammingFactor(0.9)])
    model = KernelRidge(kernel=kernel, alpha=0).fit(support, kernel(support) @ [1, -2, 0.5])
    assert_allclose(model.dual_coef_, [1, -2, 0.5], rtol=1e-12)
    explanation = PKeXShapleyExplainer(model).fit().explain(np.zeros((1, 3)))
    assert_allclose(explanation.values, [[0.42, 0.69, -1.08]], rtol=1e-12)
    assert_allclose(explanation.base_values, [-0.5], rtol=1e-12)
    assert explanation.values.sum() + explanation.base_values[0] == pytest.approx(-0.47)


# Axioms


@pytest.mark.parametrize("removal", REMOVALS)
@pytest.mark.parametrize("method", ["quadrature", "esp"])
def test_axioms_on_kernel_ridge(small, removal, method):
    X, y = small
    X = np.column_stack([X, np.ones(len(X))])
    if method == "esp" and removal != "identity":
        pytest.skip("the recursion is for the identity removal")
    reference = {"identity": None, "baseline": X[3]}.get(removal, X[:7])
    explainer = PKeXShapleyExplainer(
        KernelRidge(kernel="rbf", gamma=0.4, alpha=0.3),
        removal=removal, reference=reference, method=method,
    )  # fmt: skip
    explainer.fit(X, y)
    check_shapley_axioms(explainer, X[:4] + 0.1 * (np.arange(6) < 5), atol=1e-11)
    explanation = explainer.explain(X[:4])
    assert np.all(explanation.values[:, 5] == 0.0)


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_axioms_on_random_gaussian_processes(data):
    n_features = data.draw(st.integers(1, 4))
    kernel = data.draw(product_form_kernels(n_features))
    generator = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    X = generator.normal(size=(8, n_features))
    model = GaussianProcessRegressor(kernel, alpha=0.5, optimizer=None, normalize_y=True)
    model.fit(X, 3 + generator.normal(size=8))
    removal = data.draw(st.sampled_from(REMOVALS))
    reference = None if removal in ("identity", "baseline") else X[:3]
    explainer = PKeXShapleyExplainer(model, removal=removal, reference=reference).fit(X)
    check_shapley_axioms(explainer, X[:2] + 0.3, atol=1e-10)
    assert_allclose(explainer.predict_output(X)[:, 0], model.predict(X), atol=1e-9)


def test_axiom_check_sees_wrong_values(small):
    X, y = small
    explainer = PKeXShapleyExplainer(KernelRidge(kernel="rbf"), check_additivity=False).fit(X, y)
    check_shapley_axioms(explainer, X[:1])
    with pytest.raises(AssertionError, match="efficiency"):
        check_shapley_axioms(clone(explainer).set_params(empty_value=5.0).fit(X, y), X[:1],
                             value_function=explainer.value_function)  # fmt: skip
    banzhaf = clone(explainer).set_params(index="BV").fit(X, y)
    with pytest.raises(AssertionError, match="efficiency"):
        check_shapley_axioms(banzhaf, X[:1])

    class Swapped:
        def explain(self, X):
            explanation = explainer.explain(X)
            explanation.values = explanation.values[:, ::-1]
            return explanation

    with pytest.raises(AssertionError, match="definition"):
        check_shapley_axioms(Swapped(), X[:1], value_function=explainer.value_function)
    with pytest.raises(ValueError, match="at most 14"):
        check_shapley_axioms(lambda X: _Values(np.zeros((1, 15))), X[:1], lambda X, S: None)


class _Values:
    def __init__(self, values):
        self.values = values


def test_value_function_is_the_removal_it_says(small):
    """Each removal's v(S) against its definition in terms of the model's predictions."""
    X, y = small
    model = KernelRidge(kernel="laplacian", gamma=0.3).fit(X, y)
    masks = np.array([[0, 0, 0, 0, 0], [1, 0, 1, 0, 0], [0, 1, 1, 1, 1], [1, 1, 1, 1, 1]], bool)
    background, rows = X[:6], X[20:23] + 0.2
    K = ProductKernel.from_name("laplacian", 5, gamma=0.3)

    def value(removal, reference):
        explainer = PKeXShapleyExplainer(model, removal=removal, reference=reference).fit()
        return explainer.value_function(rows, masks)

    for c, mask in enumerate(masks):
        mixed = np.where(mask, rows, background[0])
        assert_allclose(value("baseline", background[0])[:, c], model.predict(mixed), atol=1e-11)
        mixed = np.where(mask, rows[:, None], background)
        expected = model.predict(mixed.reshape(-1, 5)).reshape(3, 6).mean(axis=1)
        assert_allclose(value("interventional", background)[:, c], expected, atol=1e-11)
        factors = K.factors_matrix(rows, X)
        expected = np.where(mask, factors, 1).prod(axis=2) @ model.dual_coef_
        assert_allclose(value("identity", None)[:, c], expected, atol=1e-11)
        absent = K.factors_matrix(background, X).mean(axis=0)
        expected = np.where(mask, factors, absent).prod(axis=2) @ model.dual_coef_
        assert_allclose(value("marginal", background)[:, c], expected, atol=1e-11)


def test_one_background_row_is_a_baseline(diabetes):
    X, y = diabetes
    model = SVR(C=10).fit(X, y)
    values = [
        PKeXShapleyExplainer(model, removal=removal, reference=reference).fit(X).shap_values(X[:5])
        for removal, reference in [
            ("baseline", X[7]), ("marginal", X[7:8]), ("interventional", X[7:8])
        ]
    ]  # fmt: skip
    assert_allclose(values[1], values[0], atol=1e-11)
    assert_allclose(values[2], values[0], atol=1e-11)


def test_point_at_the_only_support_point_has_no_attribution():
    model = KernelRidge(kernel="rbf").fit([[1.0, 2.0]], [3.0])
    explainer = PKeXShapleyExplainer(model).fit()
    assert_array_equal(explainer.shap_values([[1.0, 2.0]]), [[0.0, 0.0]])
    far = explainer.explain([[1e3, -1e3]])
    assert far.values.sum() == pytest.approx(-model.dual_coef_[0], rel=1e-12)


def test_kernel_explainer_with_all_coalitions_agrees_on_interventional(diabetes):
    import shap

    X, y = diabetes[0][:, :5], diabetes[1]
    model = KernelRidge(kernel="laplacian").fit(X, y)
    background = X[:10]
    ours = PKeXShapleyExplainer(model, removal="interventional", reference=background).fit()
    theirs = shap.KernelExplainer(model.predict, background)
    expected = theirs.shap_values(X[:3], nsamples=30, l1_reg=0, silent=True)  # all 2^5 - 2
    assert_allclose(ours.shap_values(X[:3]), expected, atol=1e-10 * np.abs(expected).max())
    assert ours.expected_value == pytest.approx(theirs.expected_value)


@pytest.mark.slow  # shap compiles for ten seconds
def test_shap_exact_explainer_agrees_on_interventional(small):
    import shap

    X, y = small
    model = KernelRidge(kernel="laplacian").fit(X, y)
    background = X[:10]
    ours = PKeXShapleyExplainer(model, removal="interventional", reference=background).fit()
    masker = shap.maskers.Independent(background, max_samples=10)
    theirs = shap.explainers.ExactExplainer(model.predict, masker)(X[:3])
    assert_allclose(ours.shap_values(X[:3]), theirs.values, atol=1e-12)
    assert ours.expected_value == pytest.approx(theirs.base_values[0])


def test_shapiq_agrees_on_identity(diabetes):
    peer = pytest.importorskip("shapiq.explainer.product_kernel")
    X, y = diabetes
    model = SVR(C=10, gamma=10.0).fit(X[:100], y[:100])
    theirs = peer.ProductKernelExplainer(model=model, max_order=1, index="SV").explain(X[0])
    ours = PKeXShapleyExplainer(model).fit().explain(X[:1])
    expected = np.array([theirs[(j,)] for j in range(10)])
    assert_allclose(ours.values[0], expected, rtol=1e-8, atol=1e-10)


# Models


@pytest.mark.parametrize(
    "model",
    [
        SVR(C=100),
        SVR(C=100, gamma="auto"),
        SVR(C=100, gamma=3.0),
        KernelRidge(kernel="rbf"),
        KernelRidge(kernel="laplacian", gamma=2.0),
        GaussianProcessRegressor(gp.RBF(0.3) + gp.WhiteKernel(), optimizer=None, normalize_y=True),
        GaussianProcessRegressor(
            2.0 * gp.RBF(np.linspace(0.1, 1, 10)) * gp.RBF(2.0) + gp.Matern(nu=np.inf),
            alpha=1.0, optimizer=None,
        ),
        GaussianProcessRegressor(
            gp.PairwiseKernel(1.0, metric="laplacian"), alpha=1.0, optimizer=None
        ),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("removal", REMOVALS)
def test_regressors_are_reproduced(diabetes, model, removal):
    X, y = diabetes
    model = clone(model).fit(X, y)
    reference = 15 if removal in ("marginal", "interventional") else None
    explainer = PKeXShapleyExplainer(model, removal=removal, reference=reference, random_state=0)
    explanation = explainer.fit(X).explain(X[:8])
    prediction = model.predict(X[:8])
    assert_allclose(
        explanation.base_values + explanation.values.sum(axis=1), prediction, rtol=1e-10
    )
    assert explanation.values.shape == (8, 10)
    exact = clone(explainer).set_params(estimator=FrozenEstimator(model), n_nodes="exact").fit(X)
    difference = np.abs(exact.shap_values(X[:8]) - explanation.values).max()
    scale = np.abs(explainer.expansion_.coef).sum() * 10
    assert difference <= explanation.error_bound + 1e-13 * scale


def test_chi2_kernel_ridge():
    X, y = load_wine(return_X_y=True)
    X = MinMaxScaler().fit_transform(X)
    model = KernelRidge(kernel="chi2", gamma=0.7).fit(X, y)
    explanation = PKeXShapleyExplainer(model).fit().explain(X[:5])
    assert_allclose(
        explanation.base_values + explanation.values.sum(axis=1), model.predict(X[:5]), atol=1e-11
    )
    numpy_values = PKeXShapleyExplainer(model, backend="numpy").fit().shap_values(X[:5])
    assert_allclose(explanation.values, numpy_values, atol=1e-10)
    with pytest.raises(ValueError, match="chi2"):
        PKeXShapleyExplainer(model).fit().explain(X[:5] - 1)


def test_several_targets():
    generator = np.random.default_rng(0)
    X, Y = generator.normal(size=(25, 3)), generator.normal(size=(25, 2))
    for model in (
        KernelRidge(kernel="rbf"),
        GaussianProcessRegressor(gp.RBF(), alpha=0.1, optimizer=None, normalize_y=True),
    ):
        model.fit(X, Y)
        explainer = PKeXShapleyExplainer(model).fit()
        explanation = explainer.explain(X[:4])
        assert explanation.values.shape == (4, 3, 2)
        assert explainer.expected_value.shape == (2,)
        total = explanation.base_values + explanation.values.sum(axis=1)
        assert_allclose(total, model.predict(X[:4]), atol=1e-10)
        assert explainer.transform(X[:4]).shape == (4, 6)
        assert list(explainer.get_feature_names_out()[:3]) == ["x0_y0", "x0_y1", "x1_y0"]
        assert explanation[..., 1].values.shape == (4, 3)


def test_binary_svc_explains_the_decision_for_the_second_class():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = SVC().fit(X, np.array(["bad", "good"])[y])
    explanation = PKeXShapleyExplainer(model).fit().explain(X[:20])
    total = explanation.base_values + explanation.values.sum(axis=1)
    assert_allclose(total, model.decision_function(X[:20]), atol=1e-11)


def test_multiclass_svc_one_against_one(wine):
    X, y = wine
    model = SVC(decision_function_shape="ovo").fit(X, y)
    explanation = PKeXShapleyExplainer(model).fit().explain(X[::20])
    assert explanation.output_names == ["0 vs 1", "0 vs 2", "1 vs 2"]
    total = explanation.base_values + explanation.values.sum(axis=1)
    assert_allclose(total, model.decision_function(X[::20]), atol=1e-11)
    ovr = SVC(decision_function_shape="ovr").fit(X, y)
    assert_array_equal(PKeXShapleyExplainer(ovr).fit().shap_values(X[::20]), explanation.values)


def test_no_support_vectors_mean_no_attributions():
    model = SVR(epsilon=10.0).fit(X_TRAIN, Y_TRAIN)
    assert len(model.support_) == 0
    explanation = PKeXShapleyExplainer(model).fit(X_TRAIN).explain(X_TRAIN)
    assert_array_equal(explanation.values, np.zeros((4, 2)))
    assert_allclose(explanation.base_values, model.predict(X_TRAIN))


def test_single_feature_is_the_whole_difference():
    model = GaussianProcessRegressor(gp.Matern(nu=1.5), alpha=0.1, optimizer=None)
    model.fit(X_TRAIN[:, :1], Y_TRAIN)
    explanation = PKeXShapleyExplainer(model).fit().explain([[0.3]])
    assert explanation.n_nodes == 1
    assert_allclose(
        explanation.values[:, 0], model.predict([[0.3]]) - explanation.base_values, atol=1e-13
    )
    for kernel in (gp.ExpSineSquared(0.7, 2.0), gp.RationalQuadratic(0.5, 1.5)):
        model = GaussianProcessRegressor(kernel, alpha=0.1, optimizer=None)
        model.fit(X_TRAIN[:, :1], Y_TRAIN)
        explanation = PKeXShapleyExplainer(model).fit().explain([[0.3]])
        assert_allclose(
            explanation.values[:, 0] + explanation.base_values, model.predict([[0.3]]), atol=1e-12
        )


# Pipelines


@pytest.mark.parametrize(
    "scaler",
    [StandardScaler(), MinMaxScaler(), MaxAbsScaler(), RobustScaler(), PowerTransformer(),
     QuantileTransformer(n_quantiles=20), FunctionTransformer(), "passthrough",
     FunctionTransformer(np.tanh, feature_names_out="one-to-one"), SimpleImputer()],
    ids=str,
)  # fmt: skip
def test_scaler_in_the_pipeline_equals_scaled_data(diabetes, scaler):
    X, y = diabetes
    X, y = X[:150], y[:150]
    model = make_pipeline(scaler, SVR(C=10)).fit(X, y)
    scaled = model[:-1].transform(X)
    for removal in ("identity", "interventional"):
        reference = None if removal == "identity" else X[:5]
        scaled_reference = None if removal == "identity" else scaled[:5]
        inside = PKeXShapleyExplainer(model, removal=removal, reference=reference).fit()
        outside = PKeXShapleyExplainer(model[-1], removal=removal, reference=scaled_reference).fit()
        explanation = inside.explain(X[:5])
        assert_allclose(explanation.values, outside.shap_values(scaled[:5]), rtol=1e-12, atol=1e-12)
        assert_array_equal(explanation.data, X[:5])


def test_dropped_features_get_exactly_zero(diabetes):
    X, y = diabetes
    X = np.insert(X, 2, 7.0, axis=1)
    model = make_pipeline(
        VarianceThreshold(), StandardScaler(), SelectKBest(f_regression, k=4), SVR()
    ).fit(X, y)
    explanation = PKeXShapleyExplainer(model).fit().explain(X[:6])
    kept = np.delete(np.arange(11), 2)[model[2].get_support()]
    dropped = np.setdiff1d(np.arange(11), kept)
    assert explanation.values.shape == (6, 11)
    assert np.all(explanation.values[:, dropped] == 0.0)
    assert np.all(explanation.values[:, kept] != 0.0)
    total = explanation.base_values + explanation.values.sum(axis=1)
    assert_allclose(total, model.predict(X[:6]), atol=1e-11)


def test_imputed_values_are_explained():
    X, y = load_diabetes(return_X_y=True)
    X = X.copy()
    X[::3, 1] = np.nan
    model = make_pipeline(SimpleImputer(), SVR()).fit(X, y)
    explanation = PKeXShapleyExplainer(model).fit(X).explain(X[:4])
    total = explanation.base_values + explanation.values.sum(axis=1)
    assert_allclose(total, model.predict(X[:4]), atol=1e-11)
    assert np.isnan(explanation.data[0, 1])


def test_mixing_steps_are_refused_or_explained_as_columns(diabetes):
    X, y = diabetes
    model = make_pipeline(PCA(3), SVR()).fit(X, y)
    with pytest.raises(ValueError, match=r"PCA may mix features.*explain_transformed=True"):
        PKeXShapleyExplainer(model).fit()
    explainer = PKeXShapleyExplainer(model, explain_transformed=True).fit()
    explanation = explainer.explain(X[:3])
    assert explanation.feature_names == ["pca0", "pca1", "pca2"]
    assert_allclose(explanation.data, model[0].transform(X[:3]))
    total = explanation.base_values + explanation.values.sum(axis=1)
    assert_allclose(total, model.predict(X[:3]), atol=1e-11)
    undeclared = make_pipeline(FunctionTransformer(np.tanh), SVR()).fit(X, y)
    with pytest.raises(ValueError, match="one-to-one"):
        PKeXShapleyExplainer(undeclared).fit()
    indicator = make_pipeline(SimpleImputer(add_indicator=True), SVR()).fit(X, y)
    with pytest.raises(ValueError, match="add_indicator"):
        PKeXShapleyExplainer(indicator).fit()


# Groups, indices, precision


def test_groups(small):
    X, y = small
    model = KernelRidge(kernel="rbf").fit(X, y)
    frame = pd.DataFrame(X, columns=list("abcde"))
    plain = PKeXShapleyExplainer(model).fit(X).explain(X[:3])
    singles = PKeXShapleyExplainer(model, groups=[[j] for j in range(5)]).fit(X).explain(X[:3])
    assert_allclose(singles.values, plain.values, rtol=1e-13)
    whole = PKeXShapleyExplainer(model, groups={"all": range(5)}).fit(X)
    explanation = whole.explain(X[:3])
    assert_allclose(
        explanation.values[:, 0], model.predict(X[:3]) - whole.expected_value, atol=1e-12
    )
    assert explanation.feature_names == ["all"]
    for removal in REMOVALS:
        named = PKeXShapleyExplainer(
            KernelRidge(kernel="rbf"), removal=removal, groups=[["a", "c"], ["b"], ["d", "e"]]
        ).fit(frame, y)
        assert named.groups_ == {"a+c": [0, 2], "b": [1], "d+e": [3, 4]}
        check_shapley_axioms(named, frame[:2], atol=1e-10)


@pytest.mark.parametrize(
    ("groups", "message"),
    [([[0, 1]], "missing"), ([[0, 1, 2, 3, 4], [0]], "twice"), ([[0, 1, 2, 3, 9]], "none of"),
     ([["x9"], [0, 1, 2, 3, 4]], "x9"), ([[0, 1, 2, 3, 4, -1]], "none of"),
     ([[0, 1, 2, 3, 4], []], "empty group"), ([[0, 1, 2, 3, 4.5]], "4.5"),
     ([[True, 0, 2, 3, 4]], "True")],
)  # fmt: skip
def test_groups_must_be_a_partition(small, groups, message):
    X, y = small
    with pytest.raises(ValueError, match=message):
        PKeXShapleyExplainer(groups=groups).fit(X, y)


def test_other_semivalues(small):
    X, y = small
    model = KernelRidge(kernel="rbf").fit(X, y)
    masks = (np.arange(32)[:, None] >> np.arange(5) & 1).astype(bool)
    explainer = PKeXShapleyExplainer(model, index="BV").fit()
    v = explainer.value_function(X[:1], masks)[0]
    phi = explainer.shap_values(X[:1])[0]
    for j in range(5):
        assert phi[j] == pytest.approx(v[masks[:, j]].mean() - v[~masks[:, j]].mean(), abs=1e-12)
    shapley = PKeXShapleyExplainer(model).fit().shap_values(X[:2])
    beta = PKeXShapleyExplainer(model, index="Beta:1,1").fit().shap_values(X[:2])
    assert_allclose(beta, shapley, atol=1e-12)


def test_empty_value_is_shared_equally(small):
    X, y = small
    model = KernelRidge(kernel="rbf").fit(X, y)
    plain = PKeXShapleyExplainer(model).fit()
    moved = PKeXShapleyExplainer(model, empty_value=0.0).fit()
    shift = plain.expected_value / 5
    assert_allclose(moved.shap_values(X[:3]), plain.shap_values(X[:3]) + shift, atol=1e-12)
    assert moved.expected_value == 0.0
    check_shapley_axioms(moved, X[:2])


@given(st.sampled_from([1e-12, 1e-6, 1e-3]), st.floats(0.01, 3.0), st.sampled_from(REMOVALS))
@settings(max_examples=20, deadline=None)
def test_tolerance_and_bound_hold(tol, gamma, removal):
    generator = np.random.default_rng(3)
    X = generator.normal(size=(20, 40))
    model = KernelRidge(kernel="rbf", gamma=gamma).fit(X, X[:, 0])
    options = {"removal": removal, "reference": None if removal in ("identity", "baseline") else 4}
    auto = PKeXShapleyExplainer(model, tol=tol, **options, random_state=0).fit(X)
    exact = PKeXShapleyExplainer(model, n_nodes="exact", **options, random_state=0).fit(X)
    explanation, truth = auto.explain(X[:3] + 1), exact.explain(X[:3] + 1)
    error = np.abs(explanation.values - truth.values).max()
    scale = np.abs(model.dual_coef_).sum()
    assert error <= explanation.error_bound + 1e-13 * scale
    assert explanation.error_bound <= tol * scale
    assert explanation.n_nodes <= truth.n_nodes == 20
    assert truth.error_bound == 0.0


def test_given_number_of_nodes_reports_its_bound():
    generator = np.random.default_rng(3)
    X = generator.normal(size=(20, 40))
    model = KernelRidge(kernel="rbf", gamma=0.1).fit(X, X[:, 0])
    truth = PKeXShapleyExplainer(model, n_nodes="exact").fit().shap_values(X[:3])
    for n_nodes in (4, 8, 12):
        explainer = PKeXShapleyExplainer(model, n_nodes=n_nodes, check_additivity=False).fit()
        explanation = explainer.explain(X[:3])
        assert explanation.n_nodes == n_nodes
        error = np.abs(explanation.values - truth).max()
        assert 0 < error <= explanation.error_bound
    with pytest.raises(RuntimeError, match="n_nodes=1"):
        PKeXShapleyExplainer(model, n_nodes=1).fit().explain(X[:3])


def test_rows_do_not_influence_each_other(diabetes):
    X, y = diabetes
    model = SVR(C=10).fit(X, y)
    for removal, reference in (("identity", None), ("interventional", X[:5])):
        explainer = PKeXShapleyExplainer(model, removal=removal, reference=reference).fit()
        batch = explainer.shap_values(np.vstack([X[:9], X[:1]]))
        assert_array_equal(batch[0], batch[9])
        for i in range(3):
            assert_allclose(
                explainer.shap_values(X[i : i + 1])[0], batch[i], rtol=1e-13, atol=1e-13
            )


@pytest.mark.parametrize("removal", REMOVALS)
def test_blocks_threads_and_backends_agree(diabetes, removal):
    X, y = diabetes
    model = SVR(C=10).fit(X, y)
    reference = 9 if removal in ("marginal", "interventional") else None
    common = {"removal": removal, "reference": reference, "random_state": 0}
    expected = PKeXShapleyExplainer(model, **common).fit(X).shap_values(X[:30])
    scale = np.abs(model.dual_coef_).sum()
    for options in ({"n_jobs": 2}, {"working_memory": 0.02}, {"backend": "numpy"}):
        values = PKeXShapleyExplainer(model, **common, **options).fit(X).shap_values(X[:30])
        assert_allclose(values, expected, rtol=0, atol=1e-12 * scale)


def test_recursion_agrees_with_quadrature(wine):
    X, y = wine
    model = SVC().fit(X, y)
    quadrature = PKeXShapleyExplainer(model).fit().shap_values(X[:10])
    recursion = PKeXShapleyExplainer(model, method="esp").fit().shap_values(X[:10])
    assert_allclose(recursion, quadrature, atol=1e-12)


# scikit-learn's contract


@parametrize_with_checks(
    [
        PKeXShapleyExplainer(),
        PKeXShapleyExplainer(KernelRidge(kernel="laplacian"), removal="marginal"),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_fitted_model_is_used_and_unfitted_is_cloned(small):
    X, y = small
    model = KernelRidge(kernel="rbf")
    explainer = PKeXShapleyExplainer(model).fit(X, y)
    assert not hasattr(model, "dual_coef_")
    assert explainer.estimator_ is not model
    model.fit(X, -y)
    assert PKeXShapleyExplainer(model).fit().estimator_ is model
    again = PKeXShapleyExplainer(model, prefit=False).fit(X, y)
    assert again.estimator_ is not model
    assert_allclose(again.shap_values(X), explainer.shap_values(X))
    with pytest.raises(NotFittedError, match="prefit=True"):
        PKeXShapleyExplainer(KernelRidge(kernel="rbf"), prefit=True).fit(X, y)
    frozen = clone(PKeXShapleyExplainer(FrozenEstimator(model)))
    assert_allclose(frozen.fit().shap_values(X), -explainer.shap_values(X))


def test_sample_weight(small):
    X, y = small
    weights = np.arange(len(X)) % 3
    weighted = PKeXShapleyExplainer(KernelRidge(kernel="rbf")).fit(X, y, weights)
    repeated = PKeXShapleyExplainer(KernelRidge(kernel="rbf")).fit(
        np.repeat(X, weights, axis=0), np.repeat(y, weights)
    )
    assert_allclose(weighted.shap_values(X), repeated.shap_values(X), atol=1e-9)
    with pytest.raises(ValueError, match="non-zero"):
        PKeXShapleyExplainer().fit(X, y, np.zeros(len(X)))
    with pytest.raises(ValueError, match="sample_weight"):
        PKeXShapleyExplainer(GaussianProcessRegressor()).fit(X, y, np.ones(len(X)))
    with pytest.raises(ValueError, match="fitted already"):
        PKeXShapleyExplainer(ridge()).fit(X_TRAIN, Y_TRAIN, np.ones(4))


def test_pickle_and_clone(small):
    X, y = small
    explainer = PKeXShapleyExplainer(removal="interventional", reference=5, random_state=1).fit(
        X, y
    )
    copied = pickle.loads(pickle.dumps(explainer))
    assert_array_equal(copied.shap_values(X), explainer.shap_values(X))
    assert_array_equal(clone(explainer).fit(X, y).shap_values(X), explainer.shap_values(X))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_keep_their_names(diabetes, frame):
    X, y = diabetes
    names = [f"feature {j}" for j in range(10)]
    table = frame(dict(zip(names, X.T, strict=True)))
    for model in (SVR(C=10), make_pipeline(StandardScaler(), SVR(C=10))):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", "The base value")
            explainer = PKeXShapleyExplainer(model).fit(table, y)
            explanation = explainer.explain(table[:3])
        assert explanation.feature_names == names
        assert list(explainer.feature_names_in_) == names
        assert list(explainer.get_feature_names_out()) == names
        expected = PKeXShapleyExplainer(model).fit(X, y).shap_values(X[:3])
        assert_allclose(explanation.values, expected, rtol=1e-12)
        with pytest.raises(ValueError, match="feature names"):
            explainer.explain(frame(dict(zip(names[::-1], X.T, strict=True)))[:3])


def test_in_a_pipeline_with_grid_search(diabetes):
    X, y = diabetes
    pipeline = make_pipeline(
        PKeXShapleyExplainer(KernelRidge(kernel="rbf"), prefit=False), Ridge(alpha=1e-3)
    )
    grid = {"pkexshapleyexplainer__estimator__gamma": [0.1, 10.0]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.3
    assert len(set(search.cv_results_["mean_test_score"])) == 2


def test_explanation_goes_through_the_plots_of_shap(diabetes):
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    import shap

    X, y = diabetes
    explanation = PKeXShapleyExplainer(SVR(C=100).fit(X, y)).fit().explain(X[:30])
    for draw in (shap.plots.bar, shap.plots.beeswarm, shap.plots.heatmap):
        draw(explanation, show=False)
        plt.close("all")
    shap.plots.waterfall(explanation[0], show=False)
    plt.close("all")


# Errors


def test_failed_fit_leaves_the_explainer_as_it_was(small):
    X, y = small
    explainer = PKeXShapleyExplainer(KernelRidge(kernel="rbf")).fit(X, y)
    before = explainer.shap_values(X)
    with pytest.raises(ValueError, match="missing"):
        explainer.set_params(groups=[[0]]).fit(X[:, :3], y)
    with pytest.raises(ValueError, match="poly"):
        explainer.set_params(groups=None, estimator__kernel="poly").fit(X[:, :2], y)
    assert explainer.n_features_in_ == 5
    assert_array_equal(explainer.shap_values(X), before)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SVR(kernel="poly"), r"SVR: kernel 'poly'"),
        (SVC(kernel="sigmoid"), r"SVC: kernel 'sigmoid'"),
        (KernelRidge(kernel="linear"), r"KernelRidge: kernel 'linear'"),
        (KernelRidge(kernel="cosine"), r"kernel 'cosine'"),
        (GaussianProcessRegressor(gp.Matern(nu=1.5)), r"Matern.*Euclidean distance"),
        (GaussianProcessRegressor(gp.RBF() + gp.RationalQuadratic()), r"RationalQuadratic"),
        (GaussianProcessRegressor(gp.RBF() * gp.DotProduct()), r"DotProduct.*sum over features"),
        (GaussianProcessRegressor(gp.WhiteKernel()), r"white noise alone"),
        (GaussianProcessRegressor(gp.RBF() * gp.WhiteKernel()), r"multiplied by a constant"),
        (GaussianProcessRegressor((gp.RBF() + gp.RBF(2.0)) ** 2), r"power"),
    ],
    ids=str,
)
def test_kernels_that_are_no_products_are_named(small, model, message):
    X, y = small
    target = (y > 0).astype(int) if isinstance(model, SVC) else y
    model = clone(model)
    if isinstance(model, GaussianProcessRegressor):
        model.set_params(optimizer=None, alpha=1.0)
    with pytest.raises(ValueError, match=message):
        PKeXShapleyExplainer(model).fit(X, target)


def test_too_many_summands_are_refused(small):
    X, y = small
    kernel = gp.RBF(1.0) + gp.RBF(2.0)
    for _ in range(3):
        kernel = kernel * kernel
    model = GaussianProcessRegressor(kernel, alpha=1.0, optimizer=None).fit(X, y)
    with pytest.raises(ValueError, match="at most 64"):
        PKeXShapleyExplainer(model).fit()


def test_other_models_are_refused(small):
    X, y = small
    with pytest.raises(TypeError, match="Ridge is not a kernel machine"):
        PKeXShapleyExplainer(Ridge()).fit(X, y)


def test_bad_rows_are_refused(small):
    X, y = small
    explainer = PKeXShapleyExplainer().fit(X, y)
    bad = X[:2].copy()
    bad[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        explainer.explain(bad)
    bad[0, 0] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        explainer.explain(bad)
    with pytest.raises(ValueError, match=r"4 features.*expecting 5"):
        explainer.explain(X[:, :4])
    with pytest.raises(ValueError, match=r"4 features"):
        PKeXShapleyExplainer(explainer.estimator_).fit(X[:, :4])
    for method in ("explain", "__call__", "shap_values", "transform"):
        with pytest.raises(NotFittedError):
            getattr(PKeXShapleyExplainer(), method)(X)
    with pytest.raises(NotFittedError):
        PKeXShapleyExplainer().predict_output(X)
    with pytest.raises(NotFittedError):
        _ = PKeXShapleyExplainer().expected_value
    with pytest.raises(ValueError, match="X=None"):
        PKeXShapleyExplainer().fit()
    with pytest.raises(ValueError, match="coalitions"):
        explainer.value_function(X, np.ones((1, 4), bool))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tol": 0.0}, "tol"),
        ({"tol": 0.5}, "tol"),
        ({"n_nodes": 0}, "n_nodes"),
        ({"removal": "observational"}, "removal"),
        ({"index": "shapley"}, "index"),
        ({"method": "esp", "removal": "marginal"}, "esp"),
        ({"method": "esp", "index": "BV"}, "esp"),
        ({"reference": [0.0] * 5}, "identity"),
        ({"removal": "baseline", "reference": 3}, "needs a point"),
        ({"removal": "baseline", "reference": np.zeros((2, 5))}, "one point"),
        ({"removal": "baseline", "reference": np.zeros(4)}, "features"),
        ({"removal": "interventional", "reference": np.full((2, 5), np.nan)}, "NaN"),
        ({"output": "ovo"}, "output"),
        ({"working_memory": 0}, "working_memory"),
        ({"empty_value": np.inf}, "empty_value"),
    ],
)
def test_bad_parameters_are_refused(small, options, message):
    with pytest.raises(ValueError, match=message):
        PKeXShapleyExplainer(**options).fit(*small)


def test_ovr_output_points_to_ovo(wine):
    model = SVC().fit(*wine)
    with pytest.raises(ValueError, match=r"ovo.*margin.*vote"):
        PKeXShapleyExplainer(model, output="latent").fit()


def test_callable_kernel_needs_its_product_form(small):
    X, y = small
    kernel = ProductKernel([LaplacianFactor(gamma=0.2)] * 5)
    model = KernelRidge(kernel=lambda a, b: kernel(a, b)).fit(X, y)
    with pytest.raises(ValueError, match="factors are unknown"):
        PKeXShapleyExplainer(model).fit()
    explainer = PKeXShapleyExplainer(model, kernel=kernel).fit()
    assert_allclose(explainer.predict_output(X)[:, 0], model.predict(X), atol=1e-10)
    wrong = ProductKernel([RBFFactor(gamma=0.2)] * 5)
    with pytest.raises(ValueError, match="doesn't reproduce"):
        PKeXShapleyExplainer(model, kernel=wrong).fit()


def test_far_base_value_is_pointed_out(diabetes):
    X, y = diabetes
    model = KernelRidge(kernel="laplacian", gamma=10.0).fit(X, y)
    with pytest.warns(UserWarning, match="interventional"):
        PKeXShapleyExplainer(model).fit()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PKeXShapleyExplainer(model, removal="interventional").fit(X)


def test_values_equal_enumeration_written_out(small):
    """Independent of the testing module's own check."""
    X, y = small
    model = SVR().fit(X, y)
    K = np.exp(-model._gamma * (X[0] - model.support_vectors_) ** 2)
    masks = (np.arange(32)[:, None] >> np.arange(5) & 1).astype(bool)
    v = np.where(masks[:, None], K, 1).prod(axis=2) @ model.dual_coef_[0]
    assert_allclose(
        PKeXShapleyExplainer(model).fit().shap_values(X[:1])[0], shapley_values(v), atol=1e-13
    )


@pytest.mark.slow
def test_two_workers_of_a_cluster_give_the_same_values(diabetes):
    distributed = pytest.importorskip("distributed")
    import joblib

    X, y = diabetes
    model = SVR(C=10).fit(X, y)
    explainer = PKeXShapleyExplainer(
        model, removal="interventional", reference=3, n_jobs=2, random_state=0, working_memory=0.5
    ).fit(X)
    expected = explainer.shap_values(X[:40])
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True
    )
    with cluster, distributed.Client(cluster), joblib.parallel_config("dask"):
        found = explainer.shap_values(X[:40])
    # Workers get arrays of another layout, for which the compiled code adds up in another order.
    assert_allclose(found, expected, rtol=0, atol=1e-13 * np.abs(model.dual_coef_).sum())
