"""MMD and HSIC attributions: reference values, enumeration, permutations, estimates, selection."""

import os
import pickle
import subprocess
import sys
from functools import partial
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from equipoise.explainers import (
    CallableFactor,
    HammingFactor,
    HSICShapleyExplainer,
    HSICShapleySelector,
    LaplacianFactor,
    MMDShapleyExplainer,
    ProductKernel,
    RBFFactor,
)
from equipoise.explainers.product_kernels import permutation, spectral_statistics
from equipoise.testing import shapley_values

FIRST = [[0, 0, 1], [1, 0, 2], [0, 1, 0], [2, 1, 1]]
SECOND = [[1, 1, 1], [0, 2, 0], [2, 2, 2]]
FEATURES = [[0, 1], [1, 0], [2, 2], [3, 1], [4, 0]]
TARGETS = [[0, 1], [1, 1], [1, 0], [3, 2], [5, 1]]


def all_masks(d):
    return (np.arange(2**d)[:, None] >> np.arange(d) & 1).astype(bool)


def mmd_of(K, n, statistic):
    """MMD^2 from the kernel matrix of the pooled sample, by its definition."""
    m = len(K) - n
    xx, zz, xz = K[:n, :n], K[n:, n:], K[:n, n:]
    if statistic == "v":
        return xx.mean() + zz.mean() - 2 * xz.mean()
    within = (xx.sum() - np.trace(xx)) / (n * (n - 1)) + (zz.sum() - np.trace(zz)) / (m * (m - 1))
    return within - 2 * xz.mean()


def hsic_of(K, L, statistic):
    """HSIC from two kernel matrices, by its definition."""
    n = len(K)
    if statistic == "biased":
        H = np.eye(n) - 1 / n
        return np.trace(K @ H @ L @ H) / n**2
    K, L = K - np.diag(np.diag(K)), L - np.diag(np.diag(L))
    one = np.ones(n)
    return (
        np.trace(K @ L)
        + (one @ K @ one) * (one @ L @ one) / ((n - 1) * (n - 2))
        - 2 / (n - 2) * one @ K @ L @ one
    ) / (n * (n - 3))


def restricted(factors, mask, absence=1.0):
    return np.where(mask, factors, absence).prod(axis=-1)


# Reference values


@pytest.mark.parametrize(
    ("statistic", "phi", "total"),
    [
        ("v", (-0.025687311560159, 0.412993538456005, -0.042771884564802), 0.344534342331043),
        ("u", (-0.227550410042908, 0.314241400260080, -0.225001842361049), -0.138310852143877),
    ],
)
def test_mmd_reference_values(statistic, phi, total):
    explainer = MMDShapleyExplainer(gamma=0.5, statistic=statistic).fit(FIRST, SECOND)
    assert_allclose(explainer.values_, phi, rtol=1e-11)
    assert explainer.statistic_ == pytest.approx(total, rel=1e-11)
    labelled = MMDShapleyExplainer(gamma=0.5, statistic=statistic).fit(
        np.array(FIRST + SECOND)[[0, 4, 1, 5, 2, 6, 3]], labels=[0, 1, 0, 1, 0, 1, 0]
    )
    assert_allclose(labelled.values_, phi, rtol=1e-11)


@pytest.mark.parametrize(
    ("options", "phi", "total"),
    [
        ({}, (0.096338983235165, 0.013541105516196), 0.109880088751361),
        ({"statistic": "unbiased"}, (0.067244088957534, -0.033758997903063), 0.033485091054471),
        (
            {"sides": "joint"},
            (0.047206524227547, 0.004949267632465, 0.050192432091992, 0.007531864799358),
            0.109880088751361,
        ),
    ],
)
def test_hsic_reference_values(options, phi, total):
    explainer = HSICShapleyExplainer(kernel_y="rbf", gamma_x=0.5, gamma_y=0.25, **options)
    explainer.fit(FEATURES, TARGETS)
    assert_allclose(explainer.values_, phi, rtol=1e-11)
    assert explainer.statistic_ == pytest.approx(total, rel=1e-11)
    scaled = explainer.set_params(scaling="n-1").fit(FEATURES, TARGETS)
    factor = 1.0 if "statistic" in options else 25 / 16
    assert scaled.statistic_ == pytest.approx(total * factor, rel=1e-11)


def test_diabetes_by_sex():
    X, _ = load_diabetes(return_X_y=True)
    male = X[:, 1] > 0
    D = np.delete(X, 1, axis=1)
    explainer = MMDShapleyExplainer().fit(D[male], D[~male])
    assert (male.sum(), (~male).sum()) == (207, 235)
    assert explainer.gamma_ == pytest.approx(14.6746, abs=1e-4)
    expected = [0.7402, -0.3388, 1.6778, -0.4859, 0.0635, 4.7932, 3.3557, 0.3741, 0.9492]
    assert_allclose(207 * explainer.values_, expected, atol=1e-3)
    assert 207 * explainer.statistic_ == pytest.approx(11.1290, abs=1e-3)


# Enumeration and invariants


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_mmd_agrees_with_enumeration(data):
    n, m = data.draw(st.integers(2, 6)), data.draw(st.integers(2, 6))
    d = data.draw(st.integers(1, 4))
    generator = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    X, Y = generator.normal(size=(n, d)), generator.normal(size=(m, d)) + 0.5
    factors = [RBFFactor(gamma=0.4), LaplacianFactor(gamma=0.8), HammingFactor(0.5)]
    if data.draw(st.booleans()):  # k(x, x) isn't 1: pairs of a row with itself count
        factors.append(CallableFactor(lambda x, y: 1.2 + np.multiply.outer(x, y) / 20))
    kernel = ProductKernel([factors[k] for k in generator.integers(len(factors), size=d)], scale=2)
    statistic = data.draw(st.sampled_from(["u", "v"]))
    removal = data.draw(st.sampled_from(["identity", "mean"]))
    U = np.vstack([X, Y])
    F = kernel.factors_matrix(U, U)
    absence = F.mean(axis=(0, 1)) if removal == "mean" else 1.0
    v = [2 * mmd_of(restricted(F, mask, absence), n, statistic) for mask in all_masks(d)]
    explainer = MMDShapleyExplainer(kernel, statistic=statistic, removal=removal).fit(X, Y)
    assert_allclose(explainer.values_, shapley_values(np.array(v)), atol=1e-11)
    assert abs(explainer.statistic_ - v[-1]) <= 1e-11
    assert abs(v[0]) < 1e-12
    swapped = MMDShapleyExplainer(kernel, statistic=statistic, removal=removal).fit(Y, X)
    assert_allclose(swapped.values_, explainer.values_, atol=1e-12)


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_hsic_agrees_with_enumeration(data):
    n = data.draw(st.integers(4, 8))
    dx, dy = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    generator = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    X, Y = generator.normal(size=(n, dx)), generator.normal(size=(n, dy))
    statistic = data.draw(st.sampled_from(["biased", "unbiased"]))
    removal = data.draw(st.sampled_from(["identity", "mean"]))
    kernels = [
        ProductKernel([RBFFactor(gamma=0.4), LaplacianFactor(gamma=0.8), HammingFactor(0.5)][:d], s)
        for d, s in ((dx, 1.5), (dy, 1.0))
    ]
    F, G = kernels[0].factors_matrix(X, X), kernels[1].factors_matrix(Y, Y)
    b, c = (f.mean(axis=(0, 1)) if removal == "mean" else 1.0 for f in (F, G))
    options = {"statistic": statistic, "removal": removal}
    whole = restricted(F, True), restricted(G, True)
    for sides, players in (("x", dx), ("y", dy), ("joint", dx + dy)):
        v = []
        for mask in all_masks(players):
            K = whole[0] if sides == "y" else restricted(F, mask[:dx], b)
            L = whole[1] if sides == "x" else restricted(G, mask[-dy:], c)
            v.append(1.5 * hsic_of(K, L, statistic))
        explainer = HSICShapleyExplainer(*kernels, sides=sides, **options).fit(X, Y)
        assert_allclose(explainer.values_, shapley_values(np.array(v)), atol=1e-12)
        assert abs(explainer.statistic_ - v[-1]) <= 1e-12


def test_several_tiles_agree_with_the_definition():
    generator = np.random.default_rng(0)
    X, Y = generator.normal(size=(300, 3)), generator.normal(size=(330, 3)) + 0.2
    explainer = MMDShapleyExplainer(gamma=0.3, n_jobs=2).fit(X, Y)
    U = np.vstack([X, Y])
    F = ProductKernel.from_name("rbf", 3, gamma=0.3).factors_matrix(U, U)
    v = np.array([mmd_of(restricted(F, mask), 300, "u") for mask in all_masks(3)])
    assert_allclose(explainer.values_, shapley_values(v), atol=1e-12)
    target = X[:, 0] + generator.normal(size=300)
    for statistic in ("biased", "unbiased"):
        explainer = HSICShapleyExplainer(
            gamma_x=0.3, gamma_y=0.2, statistic=statistic, sides="joint"
        ).fit(np.vstack([X, Y])[:300], target)
        K = restricted(F[:300, :300], True)
        L = np.exp(-0.2 * np.subtract.outer(target, target) ** 2)
        assert explainer.statistic_ == pytest.approx(hsic_of(K, L, statistic), abs=1e-12)


def test_constant_feature_and_target():
    generator = np.random.default_rng(0)
    X, Y = generator.normal(size=(20, 3)), generator.normal(size=(25, 3))
    X[:, 1] = Y[:, 1] = 4.0
    assert MMDShapleyExplainer().fit(X, Y).values_[1] == 0.0
    assert MMDShapleyExplainer(statistic="v").fit(X, Y).statistic_ >= -1e-14
    constant = HSICShapleyExplainer(kernel_y="delta").fit(X, np.ones(20))
    assert_allclose(constant.values_, 0, atol=1e-14)
    order = generator.permutation(20)
    first = HSICShapleyExplainer().fit(X, X[:, 0])
    second = HSICShapleyExplainer().fit(X[order], X[order, 0])
    assert_allclose(first.values_, second.values_, atol=1e-14)
    assert first.values_[1] == 0.0


def test_groups_and_names():
    generator = np.random.default_rng(0)
    X = pd.DataFrame(generator.normal(size=(30, 3)), columns=list("abc"))
    Y = X + np.array([0.5, 0.0, 0.0])
    whole = MMDShapleyExplainer(groups={"all": ["a", "b", "c"]}).fit(X, Y)
    assert_allclose(whole.values_, [whole.statistic_])
    pairs = MMDShapleyExplainer(groups=[["a", "b"], ["c"]]).fit(X, Y)
    explanation = pairs.explain()
    assert explanation.feature_names == ["a+b", "c"]
    assert explanation.base_values == 0.0
    assert_array_equal(explanation.values, pairs.values_)
    F = pairs.kernel_.factors_matrix(pd.concat([X, Y]), pd.concat([X, Y]))
    masks = [[0, 0, 0], [1, 1, 0], [0, 0, 1], [1, 1, 1]]
    v = np.array([mmd_of(restricted(F, np.array(mask, bool)), 30, "u") for mask in masks])
    assert_allclose(pairs.values_, shapley_values(v), atol=1e-13)
    with pytest.raises(ValueError, match="feature names"):
        MMDShapleyExplainer().fit(X, Y[["b", "a", "c"]])
    joint = HSICShapleyExplainer(sides="joint", groups=[["a", "b"], ["c"]]).fit(X, Y[["a", "b"]])
    assert joint.explain().feature_names == ["X: a+b", "X: c", "Y: a", "Y: b"]


def test_witness_attributions():
    generator = np.random.default_rng(0)
    X, Y = generator.normal(size=(30, 3)), generator.normal(size=(40, 3)) + np.array([1, 0, 0])
    explainer = MMDShapleyExplainer().fit(X, Y)
    explanation = explainer.explain_witness(Y[:5])
    K = explainer.kernel_
    witness = K(Y[:5], X).mean(axis=1) - K(Y[:5], Y).mean(axis=1)
    assert_allclose(explanation.values.sum(axis=1), witness, atol=1e-12)
    masks = all_masks(3)
    to_x, to_y = K.factors_matrix(Y[:1], X)[0], K.factors_matrix(Y[:1], Y)[0]
    v = [restricted(to_x, m).mean() - restricted(to_y, m).mean() for m in masks]
    assert_allclose(explanation.values[0], shapley_values(np.array(v)), atol=1e-12)
    with pytest.raises(ValueError, match="features"):
        explainer.explain_witness(Y[:, :2])


# Widths and kernels


def test_widths():
    generator = np.random.default_rng(0)
    X, Y = generator.normal(size=(20, 2)), generator.normal(size=(20, 2))
    U = np.vstack([X, Y])
    differences = U[:, None] - U[None]
    pairs = np.triu_indices(40, 1)
    squared = (differences**2).sum(axis=2)[pairs]
    explainer = MMDShapleyExplainer().fit(X, Y)
    assert explainer.gamma_ == pytest.approx(1 / (2 * np.median(squared)))
    explainer = MMDShapleyExplainer("laplacian").fit(X, Y)
    assert explainer.gamma_ == pytest.approx(1 / np.median(np.abs(differences).sum(axis=2)[pairs]))
    explainer = MMDShapleyExplainer(gamma="scale").fit(X, Y)
    assert explainer.gamma_ == pytest.approx(1 / (2 * U.var()))
    with pytest.raises(ValueError, match="median"):
        MMDShapleyExplainer().fit(np.ones((5, 2)), np.ones((5, 2)))
    with pytest.raises(ValueError, match="scale"):
        MMDShapleyExplainer(gamma="scale").fit(np.ones((5, 2)), np.ones((5, 2)))
    many = generator.normal(size=(2500, 2))
    first = MMDShapleyExplainer(estimator="block", random_state=0).fit(many, many + 1)
    again = MMDShapleyExplainer(estimator="block", random_state=0).fit(many, many + 1)
    assert first.gamma_ == again.gamma_


@pytest.mark.parametrize(
    ("target", "classes"),
    [
        (np.array(["a", "b", "c"] * 4), True),
        (np.arange(12) % 3, True),
        (np.arange(12) % 2 == 0, True),
        (np.arange(12.0) % 2, True),
        (np.arange(12.0), False),
        (np.arange(60), False),
        (np.arange(12).reshape(6, 2), False),
    ],
)
def test_kernel_of_the_target(target, classes):
    X = np.random.default_rng(0).normal(size=(len(target), 2))
    explainer = HSICShapleyExplainer().fit(X, target)
    kind = type(explainer.kernel_y_.factors[0])
    assert kind is (HammingFactor if classes else RBFFactor)
    assert (explainer.gamma_y_ is None) == classes
    if classes:
        codes = np.unique(target, return_inverse=True)[1]
        K = explainer.kernel_x_(X)
        expected = hsic_of(K, np.equal.outer(codes, codes).astype(float), "biased")
        assert explainer.statistic_ == pytest.approx(expected, abs=1e-14)


# Permutation tests


@pytest.mark.parametrize("statistic", ["u", "v"])
def test_label_permutations_agree_with_refits(statistic):
    generator = np.random.default_rng(0)
    U = generator.normal(size=(300, 2))
    X, Y = U[:120], U[120:] + np.array([0.3, 0])
    pooled = np.vstack([X, Y])
    explainer = MMDShapleyExplainer(
        gamma=0.5, statistic=statistic, n_permutations=5, random_state=3
    ).fit(X, Y)
    labels = np.repeat([1.0, 0.0], [120, 180])
    H = permutation.permuted_labels(labels, 5, np.random.RandomState(3))
    null = [
        MMDShapleyExplainer(gamma=0.5, statistic=statistic).fit(pooled, labels=-h).values_
        for h in H[:, 1:].T
    ]
    assert_allclose(
        MMDShapleyExplainer(gamma=0.5, statistic=statistic).fit(X, Y).values_, explainer.values_,
        atol=1e-13,
    )  # fmt: skip
    expected = (1 + (np.array(null) >= explainer.values_).sum(axis=0)) / 6
    assert_allclose(explainer.pvalues_, expected)
    total = (1 + (np.sum(null, axis=1) >= explainer.statistic_).sum()) / 6
    assert explainer.pvalue_ == pytest.approx(total)


@pytest.mark.parametrize("sides", ["x", "y"])
@pytest.mark.parametrize("statistic", ["biased", "unbiased"])
def test_target_permutations_agree_with_refits(sides, statistic):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(290, 2))
    Y = X[:, :1] * 0.2 + generator.normal(size=(290, 2))
    options = {
        "gamma_x": 0.5, "kernel_y": "rbf", "gamma_y": 0.5, "sides": sides, "statistic": statistic
    }  # fmt: skip
    explainer = HSICShapleyExplainer(**options, n_permutations=40, random_state=3).fit(X, Y)
    state = np.random.RandomState(3)
    orders = [state.permutation(290) for _ in range(40)]
    null = [HSICShapleyExplainer(**options).fit(X, Y[np.argsort(order)]).values_
            if sides == "y" else HSICShapleyExplainer(**options).fit(X, Y[order]).values_
            for order in orders]  # fmt: skip
    expected = (1 + (np.array(null) >= explainer.values_).sum(axis=0)) / 41
    assert_allclose(explainer.pvalues_, expected)
    assert_allclose(
        explainer.values_, HSICShapleyExplainer(**options).fit(X, Y).values_, atol=1e-14
    )


def test_power_and_adjustment():
    generator = np.random.default_rng(0)
    X, Y = generator.normal(size=(60, 6)), generator.normal(size=(60, 6))
    Y[:, 2] += 1.0
    explainer = MMDShapleyExplainer(n_permutations=99, random_state=0).fit(X, Y)
    assert explainer.pvalues_adjusted_[2] == 0.01
    assert np.all(np.delete(explainer.pvalues_adjusted_, 2) > 0.05)
    assert np.all(explainer.pvalues_adjusted_ >= explainer.pvalues_)
    again = MMDShapleyExplainer(n_permutations=99, random_state=0).fit(X, Y)
    assert_array_equal(again.pvalues_, explainer.pvalues_)
    plain = MMDShapleyExplainer(n_permutations=99, max_t=False, random_state=0).fit(X, Y)
    assert plain.pvalues_adjusted_ is None
    assert_array_equal(plain.pvalues_, explainer.pvalues_)
    dependent = HSICShapleyExplainer(n_permutations=99, random_state=0).fit(
        X, X[:, 4] + 0.3 * generator.normal(size=60)
    )
    assert dependent.pvalues_adjusted_[4] == 0.01
    assert dependent.pvalue_ == 0.01
    assert np.sum(dependent.pvalues_adjusted_ <= 0.05) == 1


@pytest.mark.slow
def test_level_under_the_null():
    """500 null sets at level .05: the rate of any rejection has standard error .01."""
    generator = np.random.default_rng(0)
    rejections = 0
    for seed in range(500):
        X, Y = generator.normal(size=(2, 60, 6))
        explainer = MMDShapleyExplainer(n_permutations=99, random_state=seed).fit(X, Y)
        rejections += explainer.pvalues_adjusted_.min() <= 0.05
    assert 0.05 - 0.03 <= rejections / 500 <= 0.05 + 0.03


# Estimates


@pytest.mark.parametrize("estimator", ["spectral", "incomplete", "block"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_mmd_estimates_are_within_their_errors(estimator, kernel):
    generator = np.random.default_rng(0)
    X, Y = generator.normal(size=(40, 4)), generator.normal(size=(30, 4))
    Y[:, 0] += 0.8
    exact = MMDShapleyExplainer(kernel, gamma=0.2).fit(X, Y)
    estimate = MMDShapleyExplainer(
        kernel, gamma=0.2, estimator=estimator, n_draws=3000, n_pairs=20000, n_blocks=5,
        random_state=1,
    ).fit(X, Y)  # fmt: skip
    deviations = (estimate.values_ - exact.values_) / estimate.standard_errors_
    # Five standard errors hold for all four features together; blocks have t tails.
    assert np.abs(deviations).max() < 5
    assert estimate.standard_errors_.max() < (0.2 if estimator == "block" else 0.03)
    assert estimate.pvalues_ is None


def test_v_statistic_has_a_spectral_estimate():
    generator = np.random.default_rng(0)
    X, Y = generator.normal(size=(40, 3)), generator.normal(size=(30, 3))
    options = {"gamma": 0.2, "statistic": "v", "groups": [[0, 1], [2]]}
    exact = MMDShapleyExplainer(**options).fit(X, Y)
    estimate = MMDShapleyExplainer(
        **options, estimator="spectral", n_draws=3000, random_state=1
    ).fit(X, Y)
    assert np.all(np.abs(estimate.values_ - exact.values_) < 5 * estimate.standard_errors_)


@pytest.mark.parametrize("target", ["classes", "numbers"])
def test_hsic_estimates_are_within_their_errors(target):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(60, 3))
    y = X[:, 1] + 0.2 * generator.normal(size=60)
    if target == "classes":
        y = np.digitize(y, [-0.5, 0.5])
    exact = HSICShapleyExplainer(scaling="n-1").fit(X, y)
    estimate = HSICShapleyExplainer(
        scaling="n-1", estimator="spectral", n_draws=2000, random_state=0
    ).fit(X, y)
    assert np.all(np.abs(estimate.values_ - exact.values_) < 5 * estimate.standard_errors_)
    assert estimate.values_.argmax() == 1
    assert np.all(estimate.standard_errors_ < 0.3 * exact.statistic_)
    block = HSICShapleyExplainer(
        statistic="unbiased", estimator="block", n_blocks=10, random_state=0
    ).fit(X, y)
    exact = HSICShapleyExplainer(statistic="unbiased").fit(X, y)
    assert np.all(np.abs(block.values_ - exact.values_) < 5 * block.standard_errors_)


def test_every_spectral_draw_is_efficient():
    generator = np.random.default_rng(0)
    X, Y = generator.normal(size=(12, 4)), generator.normal(size=(9, 4))
    kernel = ProductKernel([RBFFactor(gamma=0.3)] * 4)
    for statistic in ("u", "v"):
        credits = spectral_statistics.spectral_credits(
            lambda r, s=statistic: partial(spectral_statistics.phase_mmd, 12, 9, s),
            kernel, np.vstack([X, Y]), np.arange(4), 4, 20, np.random.RandomState(0),
        )  # fmt: skip
        omega = spectral_statistics.draw_frequencies(kernel, np.random.RandomState(0), 20)
        phases = np.exp(1j * np.vstack([X, Y]) @ omega.T)
        everyone = [spectral_statistics.phase_mmd(12, 9, statistic, e) for e in phases.T]
        nobody = spectral_statistics.phase_mmd(12, 9, statistic, np.ones(21, complex))
        assert_allclose(credits.sum(axis=1), np.array(everyone) - nobody, atol=1e-12)


def test_incomplete_estimate_takes_any_factor():
    generator = np.random.default_rng(0)
    X, Y = generator.normal(size=(15, 2)), generator.normal(size=(12, 2)) + 1
    kernel = ProductKernel([CallableFactor(np.minimum.outer), RBFFactor(gamma=0.5)])
    exact = MMDShapleyExplainer(kernel).fit(np.abs(X), np.abs(Y))
    estimate = MMDShapleyExplainer(kernel, estimator="incomplete", n_pairs=3000, random_state=0)
    estimate.fit(np.abs(X), np.abs(Y))
    assert np.all(np.abs(estimate.values_ - exact.values_) < 5 * estimate.standard_errors_)


# Selection


def test_selector_finds_what_only_acts_together():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(150, 6))
    y = np.sign(X[:, 1] * X[:, 4])
    selector = HSICShapleySelector(n_features_to_select=2).fit(X, y)
    assert selector.get_support(indices=True).tolist() == [1, 4]
    assert selector.transform(X).shape == (150, 2)
    assert selector.statistic_ == pytest.approx(selector.scores_.sum())
    assert HSICShapleySelector().fit(X, y).get_support().sum() == 3
    assert HSICShapleySelector(0.34).fit(X, y).get_support(indices=True).tolist() == [1, 4]
    cut = np.sort(selector.scores_)[-2]
    above = HSICShapleySelector(threshold=cut).fit(X, y)
    assert above.get_support().sum() == 1
    numbers = HSICShapleySelector(1).fit(X, X[:, 3] ** 2)
    assert numbers.get_support(indices=True).tolist() == [3]


def test_selector_in_a_pipeline_with_grid_search():
    X, y = load_wine(return_X_y=True)
    noise = np.random.default_rng(0).normal(size=(len(X), 8))
    X = np.column_stack([X, noise])
    pipeline = make_pipeline(StandardScaler(), HSICShapleySelector(), SVC())
    search = GridSearchCV(pipeline, {"hsicshapleyselector__n_features_to_select": [2, 10]}, cv=3)
    search.fit(X, y)
    assert search.best_params_ == {"hsicshapleyselector__n_features_to_select": 10}
    assert search.best_score_ > 0.93
    kept = search.best_estimator_[1].get_support(indices=True)
    assert np.mean(kept < 13) >= 0.9
    names = search.best_estimator_[1].get_feature_names_out()
    assert len(names) == 10


@parametrize_with_checks([HSICShapleySelector(), HSICShapleyExplainer()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_clone_and_pickle():
    X, y = load_breast_cancer(return_X_y=True)
    X, y = StandardScaler().fit_transform(X[:80, :5]), y[:80]
    for explainer, arguments in (
        (MMDShapleyExplainer(n_permutations=9, random_state=1), (X[y == 0], X[y == 1])),
        (HSICShapleyExplainer(n_permutations=9, random_state=1), (X, y)),
        (HSICShapleySelector(), (X, y)),
    ):
        explainer.fit(*arguments)
        copied = pickle.loads(pickle.dumps(explainer))
        again = clone(explainer).fit(*arguments)
        name = "scores_" if hasattr(explainer, "scores_") else "values_"
        assert_array_equal(getattr(copied, name), getattr(explainer, name))
        assert_array_equal(getattr(again, name), getattr(explainer, name))


# Peers


HYPPO = """
import sys
import numpy as np
from hyppo.independence import Hsic
X, y = np.array(eval(sys.argv[1])), np.array(eval(sys.argv[2]))
print(repr(float(Hsic(compute_kernel="rbf", bias=True, gamma=0.3).statistic(X, y))))
"""


@pytest.mark.skipif(find_spec("hyppo") is None, reason="hyppo is not installed")
def test_hyppo_agrees_on_hsic():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(40, 2))
    y = X[:, :1] + 0.5 * generator.normal(size=(40, 1))
    ours = HSICShapleyExplainer(kernel_y="rbf", gamma_x=0.3, gamma_y=0.3).fit(X, y)
    # In a process of its own its functions run uncompiled: compiling them takes half a minute.
    run = subprocess.run(
        [sys.executable, "-P", "-W", "ignore", "-c", HYPPO, str(X.tolist()), str(y.tolist())],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    theirs = float(run.stdout)
    K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(-1))
    L = np.exp(-0.3 * ((y[:, None] - y) ** 2).sum(-1))
    norm = np.sqrt(hsic_of(K, K, "biased") * hsic_of(L, L, "biased"))
    # hyppo hands out the correlation, the root of the normalised statistic.
    assert ours.statistic_ / norm == pytest.approx(theirs**2, rel=1e-6)


# Errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"statistic": "w"}, "statistic"),
        ({"kernel": "poly"}, "kernel"),
        ({"gamma": 0}, "gamma"),
        ({"estimator": "spectral", "n_permutations": 9}, "n_permutations"),
        ({"estimator": "incomplete", "statistic": "v"}, "incomplete"),
        ({"estimator": "spectral", "removal": "mean"}, "removal='mean'"),
        ({"estimator": "block", "n_blocks": 4}, "n_blocks=4"),
        ({"estimator": "spectral", "kernel": ProductKernel([HammingFactor()] * 3)}, "spectral"),
        ({"kernel": ProductKernel([HammingFactor()] * 2)}, "2 factors"),
        ({"groups": [[0, 1]]}, "missing"),
    ],
)
def test_bad_mmd_parameters_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        MMDShapleyExplainer(**options).fit(FIRST, SECOND)


def test_bad_samples_are_refused():
    with pytest.raises(ValueError, match="needs 2 rows"):
        MMDShapleyExplainer().fit(FIRST[:1], SECOND)
    assert MMDShapleyExplainer(statistic="v").fit(FIRST[:1], SECOND).values_.shape == (3,)
    with pytest.raises(ValueError, match="one of Y and labels"):
        MMDShapleyExplainer().fit(FIRST)
    with pytest.raises(ValueError, match="one of Y and labels"):
        MMDShapleyExplainer().fit(FIRST, SECOND, labels=[0, 1, 0, 1])
    with pytest.raises(ValueError, match="two different values"):
        MMDShapleyExplainer().fit(FIRST, labels=[0, 1, 2, 0])
    with pytest.raises(ValueError, match="3 features, but Y has 2"):
        MMDShapleyExplainer().fit(FIRST, FEATURES)
    with pytest.raises(ValueError, match="Y contains NaN"):
        MMDShapleyExplainer().fit(FIRST, np.full((3, 3), np.nan))
    with pytest.raises(NotFittedError):
        MMDShapleyExplainer().explain()
    with pytest.raises(NotFittedError):
        MMDShapleyExplainer().explain_witness(FIRST)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sides": "z"}, "sides"),
        ({"kernel_y": "linear"}, "kernel_y"),
        ({"sides": "joint", "n_permutations": 9}, "one side"),
        ({"estimator": "spectral", "statistic": "unbiased"}, "spectral"),
        ({"estimator": "spectral", "sides": "y"}, "spectral"),
        ({"estimator": "block", "n_blocks": 3}, "n_blocks=3"),
        ({"tol": 1.0}, "tol"),
    ],
)
def test_bad_hsic_parameters_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        HSICShapleyExplainer(**options).fit(FEATURES, TARGETS)


def test_bad_targets_are_refused():
    with pytest.raises(ValueError, match="needs 4 rows"):
        HSICShapleyExplainer(statistic="unbiased").fit(FEATURES[:3], [0, 1, 2])
    with pytest.raises(ValueError, match="inconsistent"):
        HSICShapleyExplainer().fit(FEATURES, [0, 1])
    with pytest.raises(ValueError, match="NaN"):
        HSICShapleyExplainer().fit(FEATURES, [0, 1, np.nan, 1, 2])
    with pytest.raises(ValueError, match="numeric"):
        HSICShapleyExplainer().fit(FEATURES, np.array([["a", "b"]] * 5))
    with pytest.raises(NotFittedError):
        HSICShapleyExplainer().explain()
    with pytest.raises(ValueError, match="both given"):
        HSICShapleySelector(2, threshold=0.1).fit(FEATURES, [0, 1, 2, 3, 4])
    with pytest.raises(ValueError, match="exceeds"):
        HSICShapleySelector(3).fit(FEATURES, [0, 1, 2, 3, 4])
    fitted = HSICShapleySelector(1).fit(FEATURES, [0, 1, 2, 3, 4])
    before = fitted.scores_
    with pytest.raises(ValueError, match="exceeds"):
        fitted.set_params(n_features_to_select=9).fit(FIRST, [0, 1, 2, 3])
    assert fitted.scores_ is before
    assert fitted.n_features_in_ == 2
