"""The torch engine agrees with the compiled one, in both precisions and for all removals."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC

from equipoise.explainers import (
    CallableFactor,
    Chi2Factor,
    HammingFactor,
    LaplacianFactor,
    PeriodicFactor,
    PKeXShapleyExplainer,
    ProductKernel,
    RBFFactor,
)
from equipoise.explainers.product_kernels.torch_engine import products_without_one

pytestmark = pytest.mark.filterwarnings("ignore:The base value of removal='identity':UserWarning")

REMOVALS = ["identity", "baseline", "marginal", "interventional"]


def options(removal, X):
    return {
        "removal": removal,
        "reference": {"identity": None, "baseline": X[3]}.get(removal, X[:4]),
    }


@pytest.mark.parametrize("removal", REMOVALS)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 5e-6)])
@pytest.mark.parametrize("generic", [False, True])
def test_engines_agree(removal, dtype, tolerance, generic):
    generator = np.random.default_rng(0)
    X = np.abs(generator.normal(size=(40, 5)))
    X[:, 2] = generator.integers(0, 3, size=40)
    factors = [
        RBFFactor(gamma=0.7),
        LaplacianFactor(gamma=0.5),
        HammingFactor(1.0),
        Chi2Factor(0.5),
    ]
    factors.append(PeriodicFactor(2.0) if generic else RBFFactor(gamma=0.1))
    kernel = ProductKernel(factors, scale=1.5)
    model = KernelRidge(kernel=kernel, alpha=0.5).fit(X, generator.normal(size=(40, 2)))
    expected = PKeXShapleyExplainer(model, **options(removal, X)).fit().explain(X[:9])
    explainer = PKeXShapleyExplainer(
        model, **options(removal, X), backend="torch", dtype=dtype, working_memory=0.05
    ).fit()
    explanation = explainer.explain(X[:9])
    scale = 1.5 * np.abs(model.dual_coef_).sum()
    assert_allclose(explanation.values, expected.values, rtol=0, atol=tolerance * scale)
    assert explanation.values.dtype == np.float64
    assert explanation.n_nodes <= expected.n_nodes


def test_single_precision_needs_fewer_nodes():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(50, 100))
    model = SVC(gamma=0.01).fit(X, X[:, 0] > 0)
    double = PKeXShapleyExplainer(model).fit().explain(X[:3] + 0.1)
    single = PKeXShapleyExplainer(model, dtype="float32").fit().explain(X[:3] + 0.1)
    assert single.n_nodes < double.n_nodes
    error = np.abs(single.values - double.values).max()
    scale = np.abs(model.dual_coef_).sum()
    assert error < 5e-6 * scale
    assert 0 < single.error_bound < 2e-6 * scale


def test_groups_other_indices_and_callables():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(30, 4))
    kernel = ProductKernel([CallableFactor(lambda x, y: np.cos(np.subtract.outer(x, y)))] * 4)
    model = KernelRidge(kernel=kernel, alpha=1.0).fit(X, X[:, 0])
    for extra in ({"groups": [[0, 2], [1], [3]]}, {"index": "BV"}, {"index": "Beta:2,3"}):
        expected = PKeXShapleyExplainer(model, **extra).fit().shap_values(X[:5])
        values = PKeXShapleyExplainer(model, backend="torch", **extra).fit().shap_values(X[:5])
        assert_allclose(values, expected, atol=1e-12)


def test_zero_factors_need_no_division():
    F = torch.tensor([[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [1.0, 2.0, 4.0]], dtype=torch.float64)
    expected = [[6.0, 0.0, 0.0], [0.0, 0.0, 0.0], [8.0, 4.0, 2.0]]
    assert_allclose(products_without_one(F), expected)
    assert_allclose(products_without_one(F[2:]), expected[2:])


def test_device_and_precision_are_for_torch():
    X = np.random.default_rng(0).normal(size=(20, 3))
    for extra in ({"dtype": "float32", "backend": "numba"}, {"device": "auto", "backend": "numpy"},
                  {"dtype": "float32", "method": "esp"}):  # fmt: skip
        with pytest.raises(ValueError, match="backend='torch'"):
            PKeXShapleyExplainer(**extra).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="device"):
        PKeXShapleyExplainer(device="abacus").fit(X, X[:, 0])
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="CUDA"):
            PKeXShapleyExplainer(device="cuda").fit(X, X[:, 0])
    auto = PKeXShapleyExplainer(device="auto").fit(X, X[:, 0])
    plain = PKeXShapleyExplainer().fit(X, X[:, 0])
    assert_allclose(auto.shap_values(X), plain.shap_values(X), atol=1e-11)
