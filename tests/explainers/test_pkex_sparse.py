"""Sparse rows: the same values as dense ones, without making them dense."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.kernel_ridge import KernelRidge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import SVC, SVR

from equipoise.explainers import (
    HammingFactor,
    LaplacianFactor,
    PKeXShapleyExplainer,
    ProductKernel,
    RBFFactor,
)
from equipoise.explainers.product_kernels import sparse_engine

pytestmark = pytest.mark.filterwarnings("ignore:The base value of removal='identity':UserWarning")


@pytest.fixture
def counts():
    X = sparse.random_array((60, 200), density=0.05, rng=np.random.default_rng(0), format="csr")
    y = np.asarray(X[:, :100].sum(axis=1) - X[:, 100:].sum(axis=1)).ravel()
    return X, y


@pytest.mark.parametrize(
    "model",
    [SVR(gamma=0.3), SVR(kernel="rbf", gamma="scale"), KernelRidge(kernel="laplacian", gamma=0.3)],
    ids=str,
)
def test_sparse_rows_equal_dense_rows(counts, model):
    X, y = counts
    model.fit(X, y)
    explainer = PKeXShapleyExplainer(model).fit(X)
    assert sparse.issparse(explainer.expansion_.support)
    assert sparse.issparse(explainer.explain(X[:3]).data)
    values = explainer.explain(X[:9]).values
    scale = np.abs(model.dual_coef_).sum()
    dense = PKeXShapleyExplainer(model).fit(X.toarray())
    assert_allclose(values, dense.shap_values(X[:9].toarray()), rtol=0, atol=1e-13 * scale)
    assert_allclose(dense.shap_values(X[:9]), values, rtol=0, atol=1e-13 * scale)
    total = explainer.expected_value + values.sum(axis=1)
    assert_allclose(total, model.predict(X[:9]), atol=1e-12)
    assert_array_equal(explainer.shap_values(X[:9].tocsc()), values)
    assert_allclose(explainer.shap_values(X[4:5])[0], values[4], rtol=1e-13, atol=1e-300)
    threads = PKeXShapleyExplainer(model, n_jobs=2).fit().shap_values(X[:40])
    assert_array_equal(threads[:9], values)


def test_stored_zeros_and_disorder_do_not_matter(counts):
    X, y = counts
    explainer = PKeXShapleyExplainer(SVR(gamma=0.3).fit(X, y)).fit()
    row = X[:1].toarray()
    columns = np.r_[np.flatnonzero(row[0])[::-1], np.flatnonzero(row[0] == 0)[:5]]
    shuffled = sparse.csr_array((row[0, columns], columns, [0, len(columns)]), shape=(1, 200))
    assert_array_equal(explainer.shap_values(shuffled), explainer.shap_values(X[:1]))


def test_columns_without_any_value_get_exactly_zero(counts):
    X, y = counts
    X = sparse.hstack([X, sparse.csr_array((60, 3))], format="csr")
    explainer = PKeXShapleyExplainer(SVR(gamma=0.3).fit(X, y)).fit()
    assert np.all(explainer.shap_values(X[:5])[:, 200:] == 0.0)
    nothing = sparse.csr_array((1, 203))
    total = explainer.expected_value + explainer.shap_values(nothing).sum()
    assert total == pytest.approx(explainer.estimator_.predict(nothing)[0])


@given(st.integers(1, 12), st.integers(0, 2**32 - 1), st.sampled_from(["auto", "exact", 2]))
@settings(max_examples=30, deadline=None)
def test_sparse_engine_agrees_with_the_dense_one(d, seed, n_nodes):
    generator = np.random.default_rng(seed)
    X = generator.integers(-1, 3, size=(9, d)) * (generator.uniform(size=(9, d)) < 0.5)
    factors = generator.choice(
        [RBFFactor(gamma=0.4), LaplacianFactor(gamma=0.7), HammingFactor(0.3), HammingFactor(1.0)],
        size=d,
    )
    kernel = ProductKernel(list(factors))
    model = KernelRidge(kernel=kernel, alpha=1.0).fit(X, generator.normal(size=(9, 2)))
    explainer = PKeXShapleyExplainer(model, n_nodes=n_nodes, check_additivity=False).fit()
    dense = explainer.explain(X)
    thin = explainer.explain(sparse.csr_array(X))
    tolerance = 2e-12 if n_nodes == "auto" else 1e-13
    if n_nodes == 2:
        # Null players are not played: two nodes are exact for more of the short games.
        exact = PKeXShapleyExplainer(model, n_nodes="exact").fit().shap_values(X)
        assert np.abs(thin.values - exact).max() <= thin.error_bound + 1e-13
    else:
        scale = np.abs(model.dual_coef_).sum()
        assert_allclose(thin.values, dense.values, rtol=0, atol=tolerance * (1 + scale))
    K = sparse_engine.sparse_kernel(kernel, sparse.csr_array(X), sparse.csr_array(X[:4]))
    assert_allclose(K, kernel(X, X[:4]), rtol=1e-13)


def test_text_pipeline():
    texts = ["the cat sat", "a dog barked", "the cat purred", "a loud dog", "cat cat", "dog"] * 3
    labels = ["cat", "dog", "cat", "dog", "cat", "dog"] * 3
    vectorizer = TfidfVectorizer().fit(texts)
    X = vectorizer.transform(texts)
    model = make_pipeline(MaxAbsScaler(), SVC()).fit(X, labels)
    explainer = PKeXShapleyExplainer(model).fit(X)
    explanation = explainer.explain(X[:2])
    total = explanation.base_values + explanation.values.sum(axis=1)
    assert_allclose(total, model.decision_function(X[:2]), atol=1e-12)
    word = vectorizer.get_feature_names_out()[np.abs(explanation.values[0]).argmax()]
    assert word in ("cat", "dog")
    several = OneVsRestClassifier(SVC()).fit(X, ["a", "b", "c"] * 6)
    explanation = PKeXShapleyExplainer(several).fit().explain(X[:2])
    total = explanation.base_values + explanation.values.sum(axis=1)
    assert_allclose(total, several.decision_function(X[:2]), atol=1e-12)


def test_dense_forms_need_memory(counts):
    X, y = counts
    model = SVR(gamma=0.3).fit(X, y)
    dense = PKeXShapleyExplainer(model, removal="interventional", reference=X[:5].toarray())
    expected = dense.fit().shap_values(X[:3].toarray())
    for reference in (X[:5], 5, None):
        explainer = PKeXShapleyExplainer(
            model, removal="interventional", reference=reference, random_state=0
        ).fit(X)
        values = explainer.shap_values(X[:3])
        if reference is not None and not isinstance(reference, int):
            assert_allclose(values, expected, atol=1e-12)
        total = explainer.expected_value + values.sum(axis=1)
        assert_allclose(total, model.predict(X[:3]), atol=1e-12)
    tight = PKeXShapleyExplainer(model, groups=[range(200)], working_memory=0.001).fit()
    with pytest.raises(ValueError, match=r"working_memory.*removal='identity'"):
        tight.explain(X[:3])


def test_values_of_a_sparse_column_match_the_formula():
    """One support point, one differing column: the whole difference belongs to it."""
    X = sparse.csr_array(np.array([[0.0, 1.0, 0.0], [0.0, 1.0, 2.0]]))
    model = KernelRidge(kernel="rbf", gamma=0.5).fit(X[:1], [1.0])
    values = PKeXShapleyExplainer(model).fit().shap_values(X[1:])
    expected = model.dual_coef_[0] * np.expm1(-0.5 * 4)
    assert_allclose(values, [[0.0, 0.0, expected]], rtol=1e-14)
