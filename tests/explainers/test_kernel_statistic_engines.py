"""MMD and HSIC: engines agree, drawn quadruples are unbiased, and nothing is accepted in vain."""

from itertools import permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from equipoise.explainers import (
    CallableFactor,
    Chi2Factor,
    HSICShapleyExplainer,
    HSICShapleySelector,
    MMDShapleyExplainer,
    ProductKernel,
    RBFFactor,
)
from equipoise.explainers.product_kernels import incomplete_statistics, pair_factors
from equipoise.explainers.product_kernels.engines import LANES, lane_blocks, term_rows
from equipoise.explainers.product_kernels.pair_factors import tiles


@pytest.fixture(scope="module")
def samples():
    generator = np.random.default_rng(0)
    return generator.normal(size=(140, 4)), generator.normal(size=(120, 4)) * [1, 2, 1, 1]


@pytest.fixture(scope="module")
def pairs():
    generator = np.random.default_rng(1)
    X = generator.normal(size=(40, 3))
    return X, np.column_stack([X[:, 1] ** 2, X[:, 2]]) + 0.3 * generator.normal(size=(40, 2))


ENGINES = [
    ({"backend": "numba"}, 1e-12),
    ({"backend": "numpy"}, 1e-12),
    ({"backend": "torch"}, 1e-12),
    ({"dtype": "float32"}, 5e-6),
]


@pytest.mark.parametrize(("engine", "tolerance"), ENGINES)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"removal": "mean", "groups": [[0, 2], [1], [3]]},
        {"n_permutations": 9},
        {"estimator": "block", "n_blocks": 3},
        {"estimator": "incomplete", "n_pairs": 500},
    ],
    ids=["full", "mean", "permuted", "block", "incomplete"],
)
def test_engines_agree_on_mmd(samples, options, engine, tolerance):
    reference = MMDShapleyExplainer(**options, random_state=0).fit(*samples)
    found = MMDShapleyExplainer(**options, **engine, random_state=0).fit(*samples)
    assert_allclose(found.values_, reference.values_, rtol=0, atol=tolerance)
    if options.get("n_permutations"):
        assert_allclose(found.pvalues_, reference.pvalues_)
    witness = found.explain_witness(samples[0][:3]).values
    assert_allclose(witness, reference.explain_witness(samples[0][:3]).values, atol=tolerance)


@pytest.mark.parametrize(("engine", "tolerance"), ENGINES)
@pytest.mark.parametrize("sides", ["x", "y"])
@pytest.mark.parametrize(
    "options",
    [{}, {"removal": "mean"}, {"n_permutations": 9}, {"estimator": "incomplete", "n_pairs": 500}],
    ids=["full", "mean", "permuted", "incomplete"],
)
def test_engines_agree_on_hsic(pairs, options, sides, engine, tolerance):
    options = {"statistic": "unbiased", "sides": sides, "random_state": 0} | options
    reference = HSICShapleyExplainer(**options).fit(*pairs)
    found = HSICShapleyExplainer(**options, **engine).fit(*pairs)
    assert_allclose(found.values_, reference.values_, rtol=0, atol=tolerance)
    assert found.explain().error_bound == found.error_bound_ < 1e-4


def test_factors_beyond_one_in_torch_and_numpy(samples):
    X, Y = np.abs(samples[0][:20, :2]), np.abs(samples[1][:15, :2])
    kernel = ProductKernel([CallableFactor(np.minimum.outer), RBFFactor(gamma=0.5)])
    reference = MMDShapleyExplainer(kernel).fit(X, Y).values_
    for backend in ("numpy", "torch"):
        found = MMDShapleyExplainer(kernel, backend=backend).fit(X, Y).values_
        assert_allclose(found, reference, atol=1e-12)
    chi2 = ProductKernel([Chi2Factor()] * 2)
    with pytest.raises(ValueError, match="at least 0"):
        MMDShapleyExplainer(chi2, backend="torch").fit(X - 1, Y)


@pytest.mark.parametrize("sides", ["x", "y"])
def test_quadruples_average_to_unbiased_hsic(pairs, sides, monkeypatch):
    """With every ordered quadruple drawn once the mean is the U-statistic itself."""
    X, Y = pairs[0][:6], pairs[1][:6]
    everyone = np.array(list(permutations(range(6), 4))).T
    monkeypatch.setattr(incomplete_statistics, "different_rows", lambda n, size, rng: everyone)
    options = {"statistic": "unbiased", "sides": sides}
    exact = HSICShapleyExplainer(**options).fit(X, Y)
    found = HSICShapleyExplainer(**options, estimator="incomplete", n_pairs=360).fit(X, Y)
    assert_allclose(found.values_, exact.values_, rtol=0, atol=1e-14)


@pytest.mark.parametrize("n", [4, 50])
def test_quadruples_are_of_different_rows_and_uniform(n):
    drawn = incomplete_statistics.different_rows(n, 12000, np.random.RandomState(0))
    ordered = np.sort(drawn, axis=0)
    assert (np.diff(ordered, axis=0) > 0).all()
    counts = np.stack([np.bincount(row, minlength=n) for row in drawn])
    expected = 12000 / n
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)  # five standard deviations


def test_drawn_quadruples_are_within_their_errors(pairs):
    exact = HSICShapleyExplainer(statistic="unbiased").fit(*pairs)
    found = HSICShapleyExplainer(
        statistic="unbiased", estimator="incomplete", n_pairs=20000, random_state=0
    ).fit(*pairs)
    deviations = (found.values_ - exact.values_) / found.standard_errors_
    assert np.abs(deviations).max() < 5
    assert found.standard_errors_.max() < 0.1 * exact.statistic_


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimator": "spectral", "backend": "numba"}, "spectral.*NumPy alone"),
        ({"estimator": "spectral", "dtype": "float32"}, "spectral.*NumPy alone"),
        ({"backend": "numba", "dtype": "float32"}, "backend='torch'"),
        ({"device": "nowhere"}, "device='nowhere'"),
        ({"backend": "cupy"}, "backend"),
    ],
)
@pytest.mark.parametrize("explainer", [MMDShapleyExplainer, HSICShapleyExplainer])
def test_engines_that_do_not_fit_are_refused(pairs, explainer, options, message):
    X, _ = pairs
    with pytest.raises(ValueError, match=message):
        explainer(**options).fit(X, X + 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sides": "joint", "backend": "torch"}, "joint.*NumPy alone"),
        ({"estimator": "incomplete"}, "statistic='unbiased'"),
        ({"estimator": "incomplete", "statistic": "unbiased", "sides": "joint"}, "one side"),
        ({"estimator": "incomplete", "statistic": "unbiased", "removal": "mean"}, "identity"),
        ({"n_pairs": 1}, "n_pairs"),
    ],
)
def test_hsic_combinations_that_do_not_fit_are_refused(pairs, options, message):
    with pytest.raises(ValueError, match=message):
        HSICShapleyExplainer(**options).fit(*pairs)


def test_joint_error_bound_holds(pairs):
    generator = np.random.default_rng(0)
    X, Y = generator.normal(size=(12, 9)), generator.normal(size=(12, 5))
    for statistic in ("biased", "unbiased"):
        options = {"sides": "joint", "statistic": statistic, "gamma_x": 1.0, "gamma_y": 1.0}
        exact = HSICShapleyExplainer(**options, tol=1e-15).fit(X, Y)
        coarse = HSICShapleyExplainer(**options, tol=1e-2).fit(X, Y)
        assert exact.error_bound_ <= 1e-13
        gap = np.abs(coarse.values_ - exact.values_).max()
        assert 1e-15 < gap <= coarse.error_bound_ < 0.1


@pytest.mark.parametrize("n_players", [1, 40, 1000, 10**6])
@pytest.mark.parametrize("n", [1, 256, 700])
def test_tiles_cover_the_upper_triangle_once_within_memory(n, n_players):
    covered = np.zeros((n, n), dtype=int)
    for rows, columns in tiles(n, n_players):
        covered[rows, columns] += 1
        covered[columns, rows] += rows != columns
        size = 8 * n_players * (rows.stop - rows.start) * (columns.stop - columns.start)
        assert size <= max(2**24, 8 * n_players * LANES**2)
    assert (covered == 1).all()


@pytest.mark.parametrize("n", [1, LANES - 1, LANES, 2 * LANES + 5])
def test_lanes_are_terms_side_by_side_padded_with_the_last(n):
    array = np.random.default_rng(0).normal(size=(2, n, 3))
    blocks = lane_blocks(array)
    assert blocks.flags.c_contiguous
    for one, row in zip(blocks, array, strict=True):
        terms = term_rows(one[None])[0]
        assert_array_equal(terms[:n], row)
        assert_array_equal(terms[n:], np.repeat(row[-1:], len(terms) - n, axis=0))


def test_many_features_in_small_tiles():
    generator = np.random.default_rng(0)
    X, Y = generator.normal(size=(2, 20, 600))
    kernel = ProductKernel([RBFFactor(gamma=0.01)] * 600)
    ours = MMDShapleyExplainer(kernel, removal="mean").fit(X, Y)
    assert len(list(tiles(40, 600))) > 1
    pool, sample = np.vstack([X, Y]), np.repeat([0, 1], 20)
    W = np.where(np.equal.outer(sample, sample), 1 / (20 * 19), -1 / 400) * (1 - np.eye(40))
    F = kernel.factors_matrix(pool, pool)
    b = F.mean(axis=(0, 1))
    whole = (W * F.prod(axis=-1)).sum() - b.prod() * W.sum()
    assert ours.statistic_ == pytest.approx(whole, abs=1e-13)
    nodes, weights = np.polynomial.legendre.leggauss(12)
    for j in (0, 300, 599):
        expected = 0.0
        for t, w in zip((1 + nodes) / 2, weights / 2, strict=True):
            others = np.delete(b + t * (F - b), j, axis=-1).prod(axis=-1)
            expected += w * (W * (F[..., j] - b[j]) * others).sum()
        assert ours.values_[j] == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize(
    "options", [{"sides": "joint"}, {"estimator": "spectral", "n_draws": 30}, {"sides": "y"}]
)
def test_threads_change_nothing(pairs, options, monkeypatch):
    monkeypatch.setattr(pair_factors, "_LARGEST_SIDE", LANES)  # three tiles
    one, two = (
        HSICShapleyExplainer(**options, n_jobs=n_jobs, random_state=0).fit(*pairs)
        for n_jobs in (None, 2)
    )
    assert_allclose(two.values_, one.values_, rtol=1e-13)


@pytest.mark.parametrize(
    "options",
    [
        {"backend": "numpy"},
        {"backend": "torch"},
        {"removal": "mean", "statistic": "unbiased"},
        {"estimator": "spectral", "n_draws": 50},
        {"estimator": "incomplete", "statistic": "unbiased", "n_pairs": 200},
        {"estimator": "block", "n_blocks": 3},
    ],
)
def test_selector_scores_as_its_explainer(pairs, options):
    X, y = pairs[0], pairs[1][:, 0]
    selector = HSICShapleySelector(1, **options, random_state=0).fit(X, y)
    explainer = HSICShapleyExplainer(**options, random_state=0).fit(X, y)
    assert_array_equal(selector.scores_, explainer.values_)
    assert (selector.standard_errors_ is None) == ("estimator" not in options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backend": "fortran"}, "'backend' parameter of HSICShapleySelector"),
        ({"estimator": "spectral", "backend": "numba"}, "computed in NumPy alone"),
        ({"estimator": "incomplete"}, "incomplete"),
    ],
)
def test_selector_refuses_what_its_explainer_does(pairs, options, message):
    with pytest.raises(ValueError, match=message):
        HSICShapleySelector(**options).fit(pairs[0], pairs[1][:, 0])
