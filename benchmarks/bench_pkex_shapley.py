"""Exact attributions of kernel machines against shap's explainers, and the machine's limits.

Peers answer the same question on the same game: the interventional one, with the same background
rows. Other packages' explainers and tests are in bench_pkex_peers.py.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVR

from equipoise.explainers import MMDShapleyExplainer, PKeXShapleyExplainer
from equipoise.explainers.product_kernels.engines import (
    identity_values,
    lane_blocks,
    lane_coefficients,
)
from equipoise.explainers.product_kernels.nodes import quadrature_rules


def machine(n_features: int, n_support: int = 300, gamma: str | float = "scale") -> tuple[Any, Any]:
    """An SVR whose every row is a support vector, and its rows."""
    generator = np.random.RandomState(0)
    X = generator.normal(size=(n_support, n_features))
    y = X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + generator.normal(size=n_support)
    return SVR(gamma=gamma, epsilon=0.0, C=1.0).fit(X, y), X


def best_of(function: Callable[[], Any], repeats: int = 5) -> float:
    """Shortest of some runs, in seconds; the first compiles and doesn't count."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def shap_cases() -> Iterator[dict[str, Any]]:
    import shap

    setting = "300 support vectors, 50 background rows"
    for d in (10, 30, 100, 300, 1000):
        model, X = machine(d, gamma=1 / d)
        background = X[:50]
        ours = PKeXShapleyExplainer(model, removal="interventional", reference=background).fit()
        masker = shap.maskers.Independent(background, max_samples=50)
        row = X[60:61]
        run = {"ours": lambda ours=ours, row=row: ours.shap_values(row)}
        kernel = shap.KernelExplainer(model.predict, background)
        yield run | {
            "name": f"interventional, d={d}, {setting}: KernelExplainer, 2000 samples",
            "peer": lambda kernel=kernel, row=row: kernel.shap_values(
                row, nsamples=2000, l1_reg=0, silent=True
            ),
            "exact": False,
            "repeats": 1 if d > 100 else 3,
        }
        permutation = shap.PermutationExplainer(model.predict, masker, seed=0)
        rounds = 10 if d <= 100 else 1  # ten take minutes
        yield run | {
            "name": f"interventional, d={d}, {setting}: PermutationExplainer, {rounds} round{'s' if rounds > 1 else ''}",
            "peer": lambda permutation=permutation, row=row, evaluations=rounds * (2 * d + 1): (
                permutation(row, max_evals=evaluations, silent=True).values
            ),
            "exact": False,
            "repeats": 1 if d >= 100 else 3,
        }
        if d == 10:  # it asks for all 2^d coalitions
            exact = shap.ExactExplainer(model.predict, masker)
            yield run | {
                "name": f"interventional, d=10, {setting}: ExactExplainer",
                "peer": lambda exact=exact, row=row: exact(row, silent=True).values,
                "tolerance": 1e-9,
                "repeats": 3,
            }


def one_percent_case() -> Iterator[dict[str, Any]]:
    """KernelExplainer with as many samples as it needs for an error of 1 % of the largest value."""
    import shap

    model, X = machine(30, n_support=100)
    background, row = X[:50], X[60:61]
    ours = PKeXShapleyExplainer(model, removal="interventional", reference=background).fit()
    truth = ours.shap_values(row)
    kernel = shap.KernelExplainer(model.predict, background)
    for n_samples in (1000, 2000, 4000, 8000, 16000, 32000):
        np.random.seed(0)  # noqa: NPY002 - KernelExplainer draws from the global generator
        values = kernel.shap_values(row, nsamples=n_samples, l1_reg=0, silent=True)
        if np.abs(values - truth).max() <= 0.01 * np.abs(truth).max():
            break
    yield {
        "name": f"d=30, 100 support vectors: KernelExplainer at 1 % error ({n_samples} samples)",
        "ours": lambda: ours.shap_values(row),
        "peer": lambda: kernel.shap_values(row, nsamples=n_samples, l1_reg=0, silent=True),
        "exact": False,
        "repeats": 1,
    }


def scaling_cases() -> Iterator[dict[str, Any]]:
    for gamma, label in (("scale", "gamma=scale"), (1.0, "gamma=1")):
        sizes, times, nodes = np.array([30, 100, 300, 1000]), [], []
        for d in sizes:
            model, X = machine(int(d), gamma=gamma)
            explainer = PKeXShapleyExplainer(model).fit()
            nodes.append(explainer.explain(X[:1] + 0.1).n_nodes)
            times.append(
                best_of(lambda explainer=explainer, X=X: explainer.explain(X[:64] + 0.1), 3)
            )
        slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
        milliseconds = ", ".join(f"{1e3 * t / 64:.3g}" for t in times)
        yield {
            "name": (
                f"identity, {label}, 300 support vectors: d=30, 100, 300, 1000 take "
                f"{milliseconds} ms a row with {nodes} nodes; time grows as d^{slope:.2f} (d=1000 timed)"
            ),
            "ours": lambda explainer=explainer, X=X: explainer.explain(X[:64] + 0.1).values,
            "repeats": 1,
        }


def size_cases() -> Iterator[dict[str, Any]]:
    """How time grows with support vectors and rows; KernelRidge, whose fit is quick."""
    for d in (10, 100, 1000):
        sizes = np.array([100, 1000, 5000])
        times: dict[int, list[float]] = {1: [], 64: []}
        generator = np.random.RandomState(0)
        for n in sizes:
            X = generator.normal(size=(n, d))
            model = KernelRidge(kernel="rbf", gamma=1 / d).fit(X, X[:, 0])
            explainer = PKeXShapleyExplainer(model).fit()
            for batch, record in times.items():
                rows = generator.normal(size=(batch, d))
                record.append(
                    best_of(lambda explainer=explainer, rows=rows: explainer.shap_values(rows), 3)
                )
        figures = "; ".join(
            f"{batch} row{'s' if batch > 1 else ''}: "
            + ", ".join(f"{1e3 * t / batch:.3g}" for t in record)
            + " ms a row"
            for batch, record in times.items()
        )
        slope = np.polyfit(np.log(sizes), np.log(times[64]), 1)[0]
        yield {
            "name": (
                f"identity, d={d}, 100, 1000, 5000 support vectors: {figures}; with 64 rows time "
                f"grows as n^{slope:.2f} (5000 timed)"
            ),
            "ours": lambda explainer=explainer, rows=rows: explainer.shap_values(rows),
            "repeats": 1,
        }


def limit_case() -> Iterator[dict[str, Any]]:
    """The two passes alone: time a pair, feature and node, and how that compares with dgemm."""
    generator = np.random.RandomState(0)
    d, n, rows, m = 200, 320, 8, 8
    D = lane_blocks(np.expm1(-generator.exponential(size=(rows, n, d)) * 2.5 / d))
    coef = lane_coefficients(generator.normal(size=(n, 1)))
    rules = quadrature_rules(d, "SV", m, 1e-12)
    seconds = best_of(lambda: identity_values(D, coef, *rules))
    A = generator.normal(size=(600, 600))
    peak = 2 * 600**3 / best_of(lambda: A @ A)
    big = generator.normal(size=(2, 4_000_000))
    bandwidth = 2 * big[0].nbytes / best_of(lambda: np.copyto(big[0], big[1]))
    step = seconds / (rows * n * d * m)
    # Going up, a factor and a product are read and a product is stored; going down, factor, product
    # and sum are read, and the sum is stored. They stay in the cache.
    yield {
        "name": (
            f"the two passes: {1e9 * step:.2f} ns a pair, feature and node (target 1.5); at 8 "
            f"operations that is {8e-9 / step:.1f} Gflop/s, {100 * 8 / step / peak:.0f} % of the "
            f"{peak / 1e9:.1f} that dgemm reaches on one thread; at 56 bytes it is "
            f"{56e-9 / step:.0f} GB/s, where copying in main memory reaches {bandwidth / 1e9:.0f}"
        ),
        "ours": lambda: identity_values(D, coef, *rules)[0],
    }


def own_cases() -> Iterator[dict[str, Any]]:
    model, X = machine(300)
    fast = PKeXShapleyExplainer(model).fit()
    recursion = PKeXShapleyExplainer(model, method="esp").fit()
    yield {
        "name": "identity, d=300, 300 support vectors, 8 rows: the paper's recursion (method='esp')",
        "ours": lambda: fast.shap_values(X[:8]),
        "peer": lambda: recursion.shap_values(X[:8]),
        "repeats": 3,
    }
    generator = np.random.RandomState(0)
    rows = sparse.random_array(
        (2000, 5000), density=20 / 5000, rng=np.random.default_rng(0), format="csr"
    )
    words = SVR(gamma=0.05, epsilon=0.0).fit(rows, generator.normal(size=2000))
    thin = PKeXShapleyExplainer(words).fit()
    yield {
        "name": "sparse rows, d=5000, 20 nonzeros, 2000 support vectors, 20 rows: the same made dense",
        "ours": lambda: thin.shap_values(rows[:20]),
        "peer": lambda: thin.shap_values(rows[:20].toarray()),
        "repeats": 1,
    }
    yield {
        "name": "sparse rows, the same, one row alone (target 10 ms)",
        "ours": lambda: thin.shap_values(rows[:1]),
    }
    sample = generator.normal(size=(1000, 20))
    yield {
        "name": "MMD, 500 + 500 rows, d=20 (target 1 s)",
        "ours": lambda: MMDShapleyExplainer(gamma=0.025).fit(sample[:500], sample[500:]).values_,
    }
    yield {
        "name": "MMD, 250 + 250 rows, d=20, 999 permutations with max-T",
        "ours": lambda: (
            MMDShapleyExplainer(gamma=0.025, n_permutations=999, random_state=0)
            .fit(sample[:250], sample[250:500])
            .pvalues_
        ),
        "repeats": 3,
    }


def cases() -> Iterator[dict[str, Any]]:
    yield from limit_case()
    yield from scaling_cases()
    yield from size_cases()
    yield from own_cases()
    yield from one_percent_case()
    yield from shap_cases()
