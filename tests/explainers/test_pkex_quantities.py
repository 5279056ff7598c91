"""Interactions, components, games, variance, loss and norm of explained models."""

from itertools import combinations
from math import comb, factorial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as gp
from sklearn.kernel_ridge import KernelRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from equipoise.explainers import (
    CallableFactor,
    HammingFactor,
    PKeXShapleyExplainer,
    ProductKernel,
    product_game_interactions,
    product_game_values,
)
from equipoise.explainers.product_kernels.interactions import interaction_rule
from equipoise.testing import product_game_arrays, shapley_values

pytestmark = pytest.mark.filterwarnings("ignore:The base value of removal='identity':UserWarning")

GAMES = settings(max_examples=40, deadline=None)
WEIGHTS = [2, -3]
PRESENCE = [[1 / 2, 1 / 4, 1, 0], [9 / 10, 3 / 5, 1 / 3, 1 / 8]]
X_TRAIN = np.array([[0, 0], [1, 2], [2, 1], [3, 3.0]])
Y_TRAIN = np.array([1, -1, 2, 0.5])
REMOVALS = ["identity", "baseline", "marginal", "interventional"]


@pytest.fixture(scope="module")
def small():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(30, 5))
    return X, X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2])


def all_masks(d):
    return (np.arange(2**d)[:, None] >> np.arange(d) & 1).astype(bool)


def coalition_values(weights, presence, absence):
    factors = np.where(all_masks(presence.shape[1])[:, None, :], presence, absence)
    return factors.prod(axis=2) @ weights


def enumerated(v, T, index):
    """An interaction index by its definition, from discrete derivatives of all coalitions."""
    d, k = len(v).bit_length() - 1, len(T)
    bits = sum(1 << j for j in T)
    total = 0.0
    for S in range(2**d):
        if S & bits:
            continue
        s = bin(S).count("1")
        delta = sum(
            (-1) ** (k - bin(L).count("1")) * v[S | L] for L in range(2**d) if L & bits == L
        )
        weight = {
            "SII": factorial(s) * factorial(d - s - k) / factorial(d - k + 1),
            "STI": k / d / comb(d - 1, s),
            "FSII": factorial(2 * k - 1) / factorial(k - 1) ** 2
            * factorial(d - s - 1) * factorial(s + k - 1) / factorial(d + k - 1),
            "CHII": k * factorial(s + k - 1) * factorial(d - s - k) / factorial(d),
            "BII": 0.5 ** (d - k),
            "Moebius": float(s == 0),
        }[index]  # fmt: skip
        total += weight * delta
    return total


# Interactions of product games


@pytest.mark.parametrize(
    ("subset", "expected"),
    [
        ((0, 1), {"SII": 0.324166666666667, "STI": 0.43, "FSII": 0.3265,
                  "CHII": 0.218333333333333, "BII": 0.33, "Moebius": 0.63}),
        ((1, 3), {"SII": 0.454166666666667, "STI": 0.456666666666667, "FSII": 0.4565,
                  "CHII": 0.451666666666667, "BII": 0.46, "Moebius": 0.45}),
        ((0, 1, 3), {"SII": -0.68, "STI": -0.6625, "FSII": -0.68, "CHII": -0.6975,
                     "BII": -0.68, "Moebius": -0.645}),
    ],
)  # fmt: skip
def test_interaction_reference_values(subset, expected):
    for index, value in expected.items():
        found = product_game_interactions(
            WEIGHTS, PRESENCE, index=index, order=len(subset), subsets=[subset]
        )
        assert found[subset] == pytest.approx(value, rel=1e-13)
        if len(subset) == 2:
            matrix = product_game_interactions(WEIGHTS, PRESENCE, index=index)
            assert matrix[subset] == pytest.approx(value, rel=1e-13)


@given(
    product_game_arrays(max_players=6, max_terms=4, largest_factor=1.5),
    st.sampled_from(["SII", "STI", "FSII", "CHII", "BII", "Moebius"]),
)
@GAMES
def test_interactions_agree_with_enumeration(game, index):
    weights, presence, absence = game
    d = presence.shape[1]
    v = coalition_values(weights, presence, absence)
    scale = np.abs(weights).sum() * 2.0**d
    for order in range(1, min(d, 3) + 1):
        subsets = list(combinations(range(d), order))
        found = product_game_interactions(
            weights, presence, absence, index=index, order=order, subsets=subsets
        )
        for subset in subsets:
            assert abs(found[subset] - enumerated(v, subset, index)) <= 1e-12 * scale + 1e-300
    matrix = product_game_interactions(weights, presence, absence, index=index)
    assert_array_equal(matrix, matrix.T)
    assert np.all(np.diag(matrix) == 0)
    for j, k in combinations(range(d), 2):
        assert abs(matrix[j, k] - enumerated(v, (j, k), index)) <= 1e-12 * scale + 1e-300


def test_order_one_of_the_shapley_family_is_the_shapley_value():
    phi = product_game_values(WEIGHTS, PRESENCE)
    for index in ("SII", "STI", "FSII", "CHII"):
        singles = product_game_interactions(
            WEIGHTS, PRESENCE, index=index, order=1, subsets=[(j,) for j in range(4)]
        )
        assert_allclose(list(singles.values()), phi, rtol=1e-13)


def test_interactions_of_several_outputs_and_none():
    columns = np.column_stack([WEIGHTS, [1.0, 0.5]])
    matrix = product_game_interactions(columns, PRESENCE)
    assert matrix.shape == (4, 4, 2)
    assert_allclose(matrix[..., 0], product_game_interactions(WEIGHTS, PRESENCE), rtol=1e-13)
    pair = product_game_interactions(columns, PRESENCE, subsets=[(0, 1)])[(0, 1)]
    assert_allclose(pair, matrix[0, 1], rtol=1e-13)
    assert_array_equal(product_game_interactions(np.empty(0), np.empty((0, 3))), np.zeros((3, 3)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"index": "SHII"}, "index="),
        ({"order": 3}, "order=3"),
        ({"order": 0, "subsets": []}, "order=0"),
        ({"subsets": [(0, 0)]}, "distinct"),
        ({"subsets": [(0, 4)]}, "distinct"),
        ({"subsets": [(0, 1, 2)]}, "order=2"),
    ],
)
def test_bad_interactions_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        product_game_interactions(WEIGHTS, PRESENCE, **options)


@pytest.mark.parametrize("index", ["SII", "STI", "FSII", "CHII"])
@pytest.mark.parametrize("z", [0.3, 3.0, 40.0])
def test_fewer_nodes_meet_the_tolerance(index, z):
    d, tol = 120, 1e-9
    generator = np.random.default_rng(0)
    D = -generator.dirichlet(np.ones(d)) * z
    D = np.maximum(D, -1)[None]
    t, w = interaction_rule(index, 2, d)
    few = interaction_rule(index, 2, d, float(-D.sum()), tol)
    assert len(few[0]) < len(t)
    for j, k in ((0, 1), (5, 77)):
        rest = np.delete(D[0], [j, k])
        exact, rough = (
            weights @ np.prod(1 + np.outer(nodes, rest), axis=1) for nodes, weights in ((t, w), few)
        )
        assert abs(exact - rough) <= tol


# Interactions of models


@pytest.mark.parametrize("removal", REMOVALS)
def test_pairs_of_a_model_agree_with_enumeration(small, removal):
    X, y = small
    reference = {"identity": None, "baseline": X[3]}.get(removal, X[:4])
    model = KernelRidge(kernel="rbf", gamma=0.3).fit(X, np.column_stack([y, y**2]))
    explainer = PKeXShapleyExplainer(model, removal=removal, reference=reference).fit()
    v = explainer.value_function(X[:2], all_masks(5))
    for index in ("SII", "STI", "BII", "FSII", "CHII", "Moebius"):
        found = explainer.interactions(X[:2], index=index)
        assert found.values.shape == (2, 5, 5, 2)
        for j, k in ((0, 1), (2, 4)):
            for o in range(2):
                expected = enumerated(v[1, :, o], (j, k), index)
                assert found.values[1, j, k, o] == pytest.approx(expected, abs=1e-10)
    triples = explainer.interactions(X[:2], order=3, pairs=[(0, 1, 2), ("x4", "x0", "x3")])
    assert list(triples.values) == [(0, 1, 2), (4, 0, 3)]
    expected = enumerated(v[0, :, 1], (0, 3, 4), "SII")
    assert triples.values[4, 0, 3][0, 1] == pytest.approx(expected, abs=1e-10)


def test_matrices_sum_to_what_they_explain(small):
    X, y = small
    model = SVR().fit(X, y)
    explainer = PKeXShapleyExplainer(model).fit()
    phi = explainer.shap_values(X[:4])
    gain = model.predict(X[:4]) - explainer.expected_value
    pairs = explainer.interactions(X[:4])
    matrix = pairs.to_shap_matrix()
    assert_allclose(matrix.sum(axis=2), phi, atol=1e-13)
    assert_allclose(matrix, np.swapaxes(matrix, 1, 2))
    for index in ("k-SII", "STI"):
        values = explainer.interactions(X[:4], index=index).values
        once = np.triu(np.ones((5, 5)))
        assert_allclose((values * once).sum(axis=(1, 2)), gain, atol=1e-12)
    k_sii = explainer.interactions(X[:4], index="k-SII")
    own = k_sii.values[:, np.arange(5), np.arange(5)]
    assert_allclose(own, phi - pairs.values.sum(axis=2) / 2, atol=1e-13)
    with pytest.raises(ValueError, match="to_shap_matrix"):
        k_sii.to_shap_matrix()
    with pytest.raises(ValueError, match="to_shap_matrix"):
        explainer.interactions(X[:4], pairs=[(0, 1)]).to_shap_matrix()


def test_two_players_share_the_moebius_coefficient():
    model = KernelRidge(kernel="rbf").fit(X_TRAIN, Y_TRAIN)
    explainer = PKeXShapleyExplainer(model).fit()
    sii = explainer.interactions(X_TRAIN).values[:, 0, 1]
    assert_allclose(sii, explainer.component([0, 1], X_TRAIN), atol=1e-13)


def test_strongest_players_are_chosen(small):
    X, y = small
    explainer = PKeXShapleyExplainer(SVR(C=10).fit(X, y)).fit()
    size = np.abs(explainer.shap_values(X)).mean(axis=0)
    top = sorted(np.argsort(-size)[:3].tolist())
    found = explainer.interactions(X, order=3, top_k=3)
    assert list(found.values) == [tuple(top)]
    found = explainer.interactions(X, order=2, top_k=3)
    assert list(found.values) == list(combinations(top, 2))
    everything = explainer.interactions(X).values
    for j, k in found.values:
        assert_allclose(found.values[j, k], everything[:, j, k], atol=1e-12)


def test_interactions_are_an_explanation(small):
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    X, y = small
    explainer = PKeXShapleyExplainer(SVR(C=10).fit(X, y)).fit()
    found = explainer.interactions(X)
    frame = found.to_frame()
    assert len(frame) == 10
    assert frame["mean_abs"].is_monotonic_decreasing
    size = np.abs(found.values).mean(axis=0)
    first, second = np.unravel_index(size.argmax(), size.shape)
    assert frame["players"][0] == f"x{first} & x{second}"
    assert frame["mean_abs"][0] == pytest.approx(size.max())
    assert f"x{first} & x{second}" in str(found)
    for kind in ("heatmap", "bar"):
        assert found.plot(kind) is not None
        plt.close("all")
    classes = SVC().fit(X, np.digitize(y, [-1, 1]))
    several = PKeXShapleyExplainer(classes).fit().interactions(X[:3], pairs=[(0, 1), (1, 2)])
    assert several.to_frame().columns.tolist() == ["players", "output", "mean", "mean_abs"]
    several.plot("bar")
    plt.close("all")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"index": "XII"}, "index="),
        ({"order": 3}, "order=3"),
        ({"order": 1}, "order=1"),
        ({"index": "k-SII", "order": 3, "top_k": 3}, "k-SII"),
        ({"pairs": [(0, 1)], "top_k": 2}, "both"),
        ({"pairs": [(0, 7)]}, "0 to 4"),
        ({"pairs": [("x0", "z")]}, "none of the players"),
        ({"top_k": 1}, "top_k"),
        ({"top_k": 9}, "top_k"),
    ],
)
def test_bad_requests_for_interactions_are_refused(small, options, message):
    X, y = small
    explainer = PKeXShapleyExplainer(SVR().fit(X, y)).fit()
    with pytest.raises(ValueError, match=message):
        explainer.interactions(X[:1], **options)
    with pytest.raises(NotFittedError):
        PKeXShapleyExplainer(SVR()).interactions(X)


# Components, main effects, games


@pytest.mark.parametrize("removal", REMOVALS)
def test_components_sum_to_the_output(removal):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(20, 3))
    model = KernelRidge(kernel="laplacian").fit(X, X[:, 0])
    reference = {"identity": None, "baseline": X[3]}.get(removal, X[:4])
    explainer = PKeXShapleyExplainer(model, removal=removal, reference=reference).fit()
    subsets = [s for k in range(4) for s in combinations(range(3), k)]
    total = sum(explainer.component(s, X[:5]) for s in subsets)
    assert_allclose(total, model.predict(X[:5]), atol=1e-12)
    changed = X[:5].copy()
    changed[:, 1] += 1.0
    assert_array_equal(explainer.component([0, 2], changed), explainer.component([0, 2], X[:5]))
    grid, curve = explainer.main_effect("x1", grid=X[:5, 1])
    assert_allclose(curve, explainer.component(["x1"], X[:5]), atol=1e-13)
    assert_array_equal(grid, X[:5, 1])


def test_main_effects_are_curves(small):
    X, y = small
    explainer = PKeXShapleyExplainer(SVR().fit(X, y)).fit()
    grid, curve = explainer.main_effect(2)
    support = explainer.expansion_.support[:, 2]
    assert (len(grid), grid[0], grid[-1]) == (50, support.min(), support.max())
    model = explainer.estimator_
    z = np.expm1(-model._gamma * (grid[:, None] - support) ** 2)
    assert_allclose(curve, z @ model.dual_coef_[0], atol=1e-12)
    two = KernelRidge(kernel="rbf").fit(X, np.column_stack([y, y]))
    assert PKeXShapleyExplainer(two).fit().main_effect(0)[1].shape == (50, 2)
    grouped = PKeXShapleyExplainer(model, groups=[[0, 1], [2], [3], [4]]).fit()
    with pytest.raises(ValueError, match="2 features"):
        grouped.main_effect(0)
    with pytest.raises(ValueError, match="0 to 4"):
        explainer.main_effect(5)


@pytest.mark.parametrize("frame", [np.asarray, pd.DataFrame, pl.DataFrame])
def test_main_effects_go_through_preprocessing(small, frame):
    X, y = small
    names = list("abcde")
    table = X if frame is np.asarray else frame(dict(zip(names, X.T, strict=True)))
    model = make_pipeline(StandardScaler(), SVR()).fit(table, y)
    explainer = PKeXShapleyExplainer(model).fit(table)
    _, curve = explainer.main_effect(1, grid=X[:7, 1])
    assert_allclose(curve, explainer.component([1], table[:7]), atol=1e-12)
    with pytest.raises(ValueError, match="grid=None"):
        explainer.main_effect(1)


def test_main_effects_are_drawn(small):
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    X, y = small
    ax = PKeXShapleyExplainer(SVR().fit(X, y)).fit().plot_main_effects(["x0", "x2"])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["x0", "x2"]
    assert len(ax.lines[0].get_xdata()) == 50
    plt.close("all")


@pytest.mark.parametrize("removal", REMOVALS)
def test_game_is_the_one_explained(small, removal):
    X, y = small
    reference = {"identity": None, "baseline": X[3]}.get(removal, X[:4])
    model = KernelRidge(kernel="rbf").fit(X, np.column_stack([y, -y]))
    explainer = PKeXShapleyExplainer(model, removal=removal, reference=reference).fit()
    game = explainer.game(X[0], output=1)
    v = np.array([game.value(mask) for mask in all_masks(5)])
    assert_allclose(v, explainer.value_function(X[:1], all_masks(5))[0, :, 1], atol=1e-12)
    phi = product_game_values(game.weights, game.presence, game.absence)
    assert_allclose(phi, explainer.shap_values(X[:1])[0, :, 1], atol=1e-11)
    with pytest.raises(ValueError, match="output=2"):
        explainer.game(X[0], output=2)
    with pytest.raises(ValueError, match="one row"):
        explainer.game(X[:2])
    nothing = PKeXShapleyExplainer(SVR(epsilon=9.0).fit(X, 0 * y + 3)).fit().game(X[0])
    assert nothing.value([0]) == pytest.approx(3.0)


# Variance, loss, norm


def reference_process(**options):
    kernel = 1.5 * gp.RBF([1, 2])
    model = GaussianProcessRegressor(kernel, alpha=0.1, optimizer=None, **options)
    return model.fit(X_TRAIN, Y_TRAIN)


def test_variance_reference_values():
    explainer = PKeXShapleyExplainer(reference_process()).fit()
    explanation = explainer.explain_variance([[1.0, 1.0]])
    assert_allclose(explanation.values, [[1.550641540710771, 0.646564287927699]], rtol=1e-11)
    assert_allclose(explanation.base_values, [-1.947958795509772], rtol=1e-11)
    total = explanation.base_values + explanation.values.sum(axis=1)
    assert_allclose(total, [0.249247033128699], rtol=1e-10)


@pytest.mark.parametrize("normalize_y", [False, True])
def test_variance_sums_to_the_predicted_variance(normalize_y):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(300, 7))
    y = 20 + 5 * X[:, 0] * X[:, 1] + generator.normal(size=300)
    kernel = 2.0 * gp.RBF(np.linspace(1, 3, 7)) + gp.WhiteKernel(0.2)
    model = GaussianProcessRegressor(kernel, optimizer=None, normalize_y=normalize_y).fit(X, y)
    explainer = PKeXShapleyExplainer(model, n_jobs=2).fit()
    rows = X[:3] + 0.1
    explanation = explainer.explain_variance(rows, include_noise=True)
    total = explanation.base_values + explanation.values.sum(axis=1)
    assert_allclose(total, model.predict(rows, return_std=True)[1] ** 2, rtol=1e-8)
    without = explainer.explain_variance(rows)
    noise = 0.2 * (y.std() ** 2 if normalize_y else 1.0)
    assert_allclose(explanation.base_values - without.base_values, noise)
    assert_array_equal(explanation.values, without.values)


def test_variance_agrees_with_enumeration():
    model = GaussianProcessRegressor(
        1.3 * gp.RBF([1, 2, 0.7, 3]), alpha=0.2, optimizer=None, normalize_y=True
    )
    generator = np.random.default_rng(1)
    X = generator.normal(size=(12, 4))
    model.fit(X, X[:, 0])
    x = X[:1] + 0.5
    factors = ProductKernel.from_sklearn(model.kernel_, 4).factors_matrix(x, X)[0]
    V = np.linalg.inv(model.kernel_(X) + 0.2 * np.eye(12))
    v = []
    for mask in all_masks(4):
        k = 1.3 * np.where(mask, factors, 1).prod(axis=1)
        v.append(model._y_train_std**2 * (1.3 - k @ V @ k))
    explainer = PKeXShapleyExplainer(model).fit()
    explanation = explainer.explain_variance(x)
    assert_allclose(explanation.values[0], shapley_values(np.array(v)), atol=1e-11)
    grouped = PKeXShapleyExplainer(model, groups=[[0, 1], [2, 3]]).fit().explain_variance(x)
    corners = np.array(v)[[0, 3, 12, 15]]
    assert_allclose(grouped.values[0], shapley_values(corners), atol=1e-11)


def test_variance_needs_a_single_gaussian_process(small):
    X, y = small
    with pytest.raises(TypeError, match="SVR"):
        PKeXShapleyExplainer(SVR().fit(X, y)).fit().explain_variance(X)
    summed = GaussianProcessRegressor(gp.RBF() + gp.RBF(3.0), alpha=1.0, optimizer=None)
    with pytest.raises(ValueError, match="sum of 2 kernels"):
        PKeXShapleyExplainer(summed.fit(X, y)).fit().explain_variance(X)
    two = GaussianProcessRegressor(alpha=1.0, optimizer=None).fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="2 outputs"):
        PKeXShapleyExplainer(two).fit().explain_variance(X)
    baseline = PKeXShapleyExplainer(reference_process(), removal="baseline").fit()
    with pytest.raises(ValueError, match="identity"):
        baseline.explain_variance(X_TRAIN)


def test_loss_reference_values():
    model = KernelRidge(kernel="rbf", gamma=0.5, alpha=0.5).fit(X_TRAIN, Y_TRAIN)
    explanation = PKeXShapleyExplainer(model).fit().explain_loss(X_TRAIN, Y_TRAIN)
    assert_allclose(explanation.values, [-0.629237659504987, -0.889312228717107], rtol=1e-12)
    assert explanation.base_values == pytest.approx(1.776069062914400, rel=1e-12)
    total = explanation.base_values + explanation.values.sum()
    assert total == pytest.approx(0.257519174692307, rel=1e-11)


def test_loss_agrees_with_enumeration(small):
    X, y = small
    model = SVR(C=2).fit(X, y)
    explainer = PKeXShapleyExplainer(model).fit()
    v = explainer.value_function(X[:9], all_masks(5))
    losses = ((y[:9, None] - v) ** 2).mean(axis=0)
    explanation = explainer.explain_loss(X[:9], y[:9])
    assert_allclose(explanation.values, shapley_values(losses), atol=1e-12)
    assert explanation.base_values == pytest.approx(losses[0])
    with pytest.raises(ValueError, match="inconsistent"):
        explainer.explain_loss(X[:9], y[:8])
    with pytest.raises(ValueError, match="NaN"):
        explainer.explain_loss(X[:2], [np.nan, 1.0])
    nothing = PKeXShapleyExplainer(SVR(epsilon=9.0).fit(X, 0 * y + 3)).fit()
    assert_array_equal(nothing.explain_loss(X, y).values, np.zeros(5))


def test_norm_agrees_with_enumeration(small):
    X, y = small
    kernel = 1.7 * gp.RBF(1.5)
    model = GaussianProcessRegressor(kernel, alpha=0.3, optimizer=None).fit(X, y)
    factors = ProductKernel.from_sklearn(kernel, 5).factors_matrix(X, X)
    v = np.array(
        [
            1.7 * model.alpha_ @ np.where(mask, factors, 1).prod(axis=2) @ model.alpha_
            for mask in all_masks(5)
        ]
    )
    explanation = PKeXShapleyExplainer(model).fit().explain_norm()
    assert_allclose(explanation.values, shapley_values(v), atol=1e-10)
    assert explanation.base_values == pytest.approx(v[0])


def test_norm_of_factors_with_no_logarithm():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(20, 3))
    kernel = ProductKernel(
        [CallableFactor(lambda x, y: np.cos(np.subtract.outer(x, y)))] * 2 + [HammingFactor(0.5)]
    )
    model = KernelRidge(kernel=kernel, alpha=1.0).fit(X, X[:, 0])
    explainer = PKeXShapleyExplainer(model).fit()
    factors = kernel.factors_matrix(X, X)
    alpha = model.dual_coef_
    v = [alpha @ np.where(mask, factors, 1).prod(axis=2) @ alpha for mask in all_masks(3)]
    assert_allclose(explainer.explain_norm().values, shapley_values(np.array(v)), atol=1e-12)
    f = explainer.value_function(X[:4], all_masks(3))
    losses = ((X[:4, :1] - f) ** 2).mean(axis=0)
    values = explainer.explain_loss(X[:4], X[:4, 0]).values
    assert_allclose(values, shapley_values(losses), atol=1e-12)


def test_shap_sees_an_explainer_of_its_own(small):
    import shap

    X, y = small
    explainer = PKeXShapleyExplainer(SVR().fit(X, y)).fit()
    wrapped = explainer.as_shap_explainer()
    assert isinstance(wrapped, shap.Explainer)
    assert_array_equal(wrapped(X[:3]).values, explainer.shap_values(X[:3]))
    assert_array_equal(wrapped.shap_values(X[:3]), explainer.shap_values(X[:3]))
    with pytest.raises(NotFittedError):
        PKeXShapleyExplainer(SVR()).as_shap_explainer()


# Uncertainty of attributions


def test_attribution_covariance_reference_values():
    explainer = PKeXShapleyExplainer(
        reference_process(), removal="baseline", reference=[0, 0]
    ).fit()
    explanation = explainer.explain([[1.0, 1.0]], with_std=True)
    assert_allclose(explanation.values, [[-0.0525052511647, -0.7192499046296]], rtol=1e-11)
    expected = [[0.4895658296796, -0.1772130011193], [-0.1772130011193, 0.1549107685117]]
    assert_allclose(explainer.attribution_covariance([[1.0, 1.0]])[0], expected, rtol=1e-10)
    assert_allclose(explanation.error_std[0], np.sqrt(np.diag(expected)), rtol=1e-10)


@pytest.mark.parametrize("removal", ["baseline", "interventional"])
@pytest.mark.parametrize("groups", [None, [[0, 2], [1], [3]]])
def test_attribution_covariance_agrees_with_enumeration(removal, groups):
    """Attributions are a matrix times f at all mixed points, whose posterior is known."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(14, 4))
    kernel = 1.4 * gp.RBF([1, 2, 0.8, 3])
    model = GaussianProcessRegressor(kernel, alpha=0.3, optimizer=None, normalize_y=True)
    model.fit(X, 5 + X[:, 0] * X[:, 1])
    reference = X[2] if removal == "baseline" else X[:3]
    explainer = PKeXShapleyExplainer(
        model, removal=removal, reference=reference, groups=groups
    ).fit()
    x = X[5] + 0.4
    players = explainer._game.player
    d = players.max() + 1
    rows = np.atleast_2d(reference)
    points = np.concatenate([np.where(all_masks(d)[:, players], x, row) for row in rows])
    mean, covariance = model.predict(points, return_cov=True)
    to_values = shapley_values(np.eye(2**d))  # (d, 2^d)
    A = np.hstack([to_values] * len(rows)) / len(rows)
    assert_allclose(explainer.shap_values(x[None])[0], A @ mean, atol=1e-11)
    found = explainer.attribution_covariance(x[None])[0]
    assert_allclose(found, A @ covariance @ A.T, atol=1e-9)
    assert np.linalg.eigvalsh(found).min() >= -1e-10 * covariance.max()
    assert_array_equal(found, found.T)


def test_attribution_covariance_of_many_features_is_cheap_and_sane():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(40, 60))
    model = GaussianProcessRegressor(gp.RBF(8.0), alpha=0.1, optimizer=None).fit(X, X[:, 0])
    explainer = PKeXShapleyExplainer(model, removal="baseline", reference=np.zeros(60)).fit()
    C = explainer.attribution_covariance(X[:2] + 0.5)
    assert np.linalg.eigvalsh(C[0]).min() >= -1e-10
    # The sum of all attributions is f(x) - f(reference), whose variance is known.
    points = np.vstack([X[:1] + 0.5, np.zeros((1, 60))])
    _, covariance = model.predict(points, return_cov=True)
    contrast = np.array([1.0, -1.0])
    assert C[0].sum() == pytest.approx(contrast @ covariance @ contrast, abs=1e-10)


def test_attribution_covariance_is_refused_where_it_has_no_meaning(small):
    X, y = small
    for removal in ("identity", "marginal"):
        explainer = PKeXShapleyExplainer(reference_process(), removal=removal).fit()
        with pytest.raises(ValueError, match="baseline"):
            explainer.attribution_covariance(X_TRAIN)
    with pytest.raises(TypeError, match="SVR"):
        PKeXShapleyExplainer(SVR().fit(X, y), removal="baseline").fit().explain(X, with_std=True)
    banzhaf = PKeXShapleyExplainer(reference_process(), removal="baseline", index="BV").fit()
    with pytest.raises(ValueError, match="index"):
        banzhaf.attribution_covariance(X_TRAIN)


def test_what_another_game_would_answer_is_refused(small):
    X, y = small
    model = KernelRidge(kernel="rbf").fit(X, y)
    shifted = PKeXShapleyExplainer(model, empty_value=0.0).fit()
    for ask in (
        lambda: shifted.interactions(X[:1]),
        lambda: shifted.component([0], X[:1]),
        lambda: shifted.game(X[0]),
        lambda: shifted.explain_norm(),
        lambda: shifted.explain_loss(X, y),
    ):
        with pytest.raises(ValueError, match="empty_value=None"):
            ask()
    banzhaf = PKeXShapleyExplainer(model, index="BV").fit()
    for ask in (banzhaf.explain_norm, lambda: banzhaf.explain_loss(X, y)):
        with pytest.raises(ValueError, match="index='SV', got 'BV'"):
            ask()


def test_plain_values_are_those_of_the_explanation(small):
    X, y = small
    for target in (y, np.column_stack([y, -y])):
        explainer = PKeXShapleyExplainer(KernelRidge(kernel="rbf"), empty_value=1.0).fit(X, target)
        assert_array_equal(explainer.shap_values(X[:3]), explainer.explain(X[:3]).values)
    coarse = PKeXShapleyExplainer(KernelRidge(kernel="rbf", gamma=3.0), n_nodes=1).fit(X, y)
    with pytest.raises(RuntimeError, match="miss the model's output"):
        coarse.shap_values(X)
