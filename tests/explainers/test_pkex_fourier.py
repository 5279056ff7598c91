"""Linear models on random Fourier features: exact against a reference, refused elsewhere."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_wine
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from equipoise.explainers import PKeXShapleyExplainer, ProductKernel
from equipoise.testing import shapley_values


@pytest.fixture(scope="module")
def rows():
    X, y = load_diabetes(return_X_y=True)
    return X[:120, :5], y[:120]


@pytest.fixture(scope="module")
def model(rows):
    features = RBFSampler(gamma=0.1, n_components=40, random_state=0)
    return make_pipeline(StandardScaler(), features, Ridge()).fit(*rows)


def enumerated(predict, x, background, mixed):
    """Values of all coalitions by calling the model: absent features come from the background."""
    d = len(x)
    masks = (np.arange(2**d)[:, None] >> np.arange(d) & 1).astype(bool)
    if mixed:  # every absent feature is drawn by itself: all combinations of background rows
        grid = np.stack(np.meshgrid(*background.T, indexing="ij"), axis=-1).reshape(-1, d)
        background = grid
    return np.array([predict(np.where(mask, x, background)).mean() for mask in masks])


@pytest.mark.parametrize("removal", ["baseline", "marginal", "interventional"])
def test_values_are_those_of_the_model_itself(rows, model, removal):
    X, _ = rows
    background = X[:1] if removal == "baseline" else X[:3]
    reference = X[0] if removal == "baseline" else background
    explainer = PKeXShapleyExplainer(model, removal=removal, reference=reference).fit()
    explanation = explainer.explain(X[50:52])
    for x, phi, base in zip(X[50:52], explanation.values, explanation.base_values, strict=True):
        v = enumerated(model.predict, x, background, mixed=removal == "marginal")
        assert_allclose(phi, shapley_values(v), rtol=0, atol=1e-11 * np.abs(v).max())
        assert_allclose(base, v[0], rtol=1e-12)
    assert explanation.error_bound == 0


def test_identity_removal_names_the_way_out(model):
    with pytest.raises(ValueError, match=r"removal='identity'.*RBFSampler.*Nystroem"):
        PKeXShapleyExplainer(model).fit()


def test_nothing_else_is_answered_in_silence(rows, model):
    X, y = rows
    baseline = {"removal": "baseline", "reference": X[0]}
    explainer = PKeXShapleyExplainer(model, **baseline).fit()
    for call in (
        lambda: explainer.interactions(X[:1]),
        lambda: explainer.component([0], X[:1]),
        lambda: explainer.game(X[0]),
        lambda: explainer.explain_loss(X, y),
        explainer.explain_norm,
    ):
        with pytest.raises(TypeError, match="RBFSampler"):
            call()
    for engine in ({"backend": "numba"}, {"backend": "torch"}, {"dtype": "float32"}):
        with pytest.raises(ValueError, match="random Fourier features"):
            PKeXShapleyExplainer(model, **baseline, **engine).fit()
    kernel = ProductKernel.from_name("rbf", 5)
    with pytest.raises(ValueError, match="kernel is given"):
        PKeXShapleyExplainer(model, kernel=kernel, **baseline).fit()
    with pytest.raises(ValueError, match="needs background rows"):
        PKeXShapleyExplainer(model, removal="interventional").fit()
    nonlinear = make_pipeline(RBFSampler(random_state=0), SVR()).fit(X, y)
    with pytest.raises(TypeError, match="SVR after RBFSampler"):
        PKeXShapleyExplainer(nonlinear, **baseline).fit()


def test_coalitions_groups_and_other_indices(rows, model):
    X, _ = rows
    groups = {"a": [0, 1], "b": [2], "c": [3, 4]}
    explainer = PKeXShapleyExplainer(
        model, removal="interventional", reference=X[:7], groups=groups, index="BV"
    ).fit()
    masks = (np.arange(8)[:, None] >> np.arange(3) & 1).astype(bool)
    v = explainer.value_function(X[9:10], masks)[0]
    columns = masks[:, [0, 0, 1, 2, 2]]
    expected = [model.predict(np.where(mask, X[9], X[:7])).mean() for mask in columns]
    assert_allclose(v, expected, rtol=1e-11)
    banzhaf = [(v[masks[:, j]] - v[~masks[:, j]]).mean() for j in range(3)]
    assert_allclose(explainer.shap_values(X[9:10])[0], banzhaf, atol=1e-11 * np.abs(v).max())


def test_blocks_threads_and_scaled_targets_change_nothing(rows):
    X, y = rows
    features = RBFSampler(gamma=0.1, n_components=30, random_state=0)
    inner = make_pipeline(StandardScaler(), features, Ridge())
    model = TransformedTargetRegressor(inner, transformer=StandardScaler()).fit(X, y)
    options = {"removal": "marginal", "reference": 20, "random_state": 0}
    whole = PKeXShapleyExplainer(model, **options).fit(X)
    explanation = whole.explain(X[:9])
    total = explanation.base_values + explanation.values.sum(axis=1)
    assert_allclose(total, model.predict(X[:9]), rtol=1e-11)
    small = PKeXShapleyExplainer(
        model, **options, working_memory=0.05, n_jobs=2, backend="numpy"
    ).fit(X)
    assert_allclose(small.shap_values(X[:9]), explanation.values, rtol=1e-11, atol=1e-11)


def test_classes_are_outputs():
    X, y = load_wine(return_X_y=True)
    model = make_pipeline(
        StandardScaler(), RBFSampler(gamma=0.05, random_state=0), LogisticRegression()
    ).fit(X, y)
    explainer = PKeXShapleyExplainer(model, removal="interventional", reference=10, random_state=0)
    explanation = explainer.fit(X).explain(X[:4])
    assert explanation.output_names == ["0", "1", "2"]
    total = explanation.base_values + explanation.values.sum(axis=1)
    assert_allclose(total, model.decision_function(X[:4]), atol=1e-12)
