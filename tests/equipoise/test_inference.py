"""Bootstrap, Holm and max-T against enumeration, hand-written formulas and repeated experiments."""

import pickle
import warnings
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from equipoise.inference import BootstrapEstimate, cluster_bootstrap, holm, max_t_pvalues


def clustered_errors(rng, n_clusters=30, within=5):
    """Rows that share most of their noise with their cluster; the true mean is 0."""
    shared = np.repeat(rng.normal(size=n_clusters), within)
    return shared + 0.3 * rng.normal(size=n_clusters * within), np.repeat(
        np.arange(n_clusters), within
    )


def test_bootstrap_matches_the_enumerated_distribution():
    # Three clusters have 27 equally likely resamples; unequal sizes make the mean a ratio.
    x = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
    groups = np.array(["c", "a", "b", "a", "c", "c"])
    members = {g: x[groups == g] for g in "abc"}
    exact = [
        np.mean(np.concatenate([members[g] for g in pick])) for pick in product("abc", repeat=3)
    ]
    found = cluster_bootstrap(np.mean, x, groups=groups, n_resamples=20_000, random_state=3)
    values, counts = np.unique(np.round(exact, 9), return_counts=True)
    drawn, frequency = np.unique(np.round(found.resamples, 9), return_counts=True)
    np.testing.assert_array_equal(drawn, values)
    # Four standard errors of a share, largest over the values.
    np.testing.assert_allclose(frequency / 20_000, counts / 27, atol=4 * np.sqrt(0.25 / 20_000))
    assert found.estimate == x.mean()
    assert found.standard_error == pytest.approx(np.std(exact), rel=0.03)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 6), st.integers(1, 4))
def test_clusters_stay_whole_and_arrays_stay_together(seed, n_clusters, longest):
    rng = np.random.default_rng(seed)
    groups = rng.permutation(
        np.repeat(np.arange(n_clusters), rng.integers(1, longest + 1, n_clusters))
    )
    sizes = np.bincount(groups)
    row = np.arange(len(groups))

    def whole(g, r):
        np.testing.assert_array_equal(groups[r], g)
        times = np.bincount(g, minlength=n_clusters) / sizes
        assert times.sum() == n_clusters
        np.testing.assert_array_equal(np.bincount(r, minlength=len(row)), times[groups])
        return 0.0

    cluster_bootstrap(whole, groups, row, groups=groups, n_resamples=20, random_state=seed)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["percentile", "bca"]))
def test_order_of_rows_and_names_of_groups_do_not_matter(seed, method):
    rng = np.random.default_rng(seed)
    x, groups = clustered_errors(rng, n_clusters=8, within=3)
    shuffle = rng.permutation(len(x))
    names = np.array(list("abcdefgh"))[groups]
    common = {"n_resamples": 200, "method": method, "random_state": seed}
    first = cluster_bootstrap(np.mean, x, groups=groups, **common)
    again = cluster_bootstrap(np.mean, x[shuffle], groups=names[shuffle], **common)
    for name in ("estimate", "low", "high", "standard_error", "resamples"):
        np.testing.assert_allclose(getattr(first, name), getattr(again, name), atol=1e-12)


def bca_by_hand(x, statistic, resamples, level):
    """Efron and Tibshirani (1993), equations 14.10, 14.14 and 14.15, for rows as clusters."""
    estimate = statistic(x)
    below = ((resamples < estimate).mean() + (resamples <= estimate).mean()) / 2
    z0 = stats.norm.ppf(below)
    jackknife = np.array([statistic(np.delete(x, i)) for i in range(len(x))])
    d = jackknife.mean() - jackknife
    a = (d**3).sum() / (6 * (d**2).sum() ** 1.5)
    z = z0 + stats.norm.ppf([(1 - level) / 2, (1 + level) / 2])
    return np.quantile(resamples, stats.norm.cdf(z0 + z / (1 - a * z)))


def test_intervals_are_the_textbook_ones():
    x = np.random.default_rng(0).exponential(size=40)
    common = {"n_resamples": 999, "confidence_level": 0.9, "random_state": 1}
    percentile = cluster_bootstrap(np.std, x, **common)
    bca = cluster_bootstrap(np.std, x, method="bca", **common)
    np.testing.assert_array_equal(percentile.resamples, bca.resamples)
    np.testing.assert_allclose(
        [percentile.low, percentile.high], np.quantile(percentile.resamples, [0.05, 0.95])
    )
    np.testing.assert_allclose([bca.low, bca.high], bca_by_hand(x, np.std, bca.resamples, 0.9))
    assert percentile.standard_error == pytest.approx(np.std(percentile.resamples, ddof=1))
    assert bca.low > percentile.low  # a skewed statistic is moved to the right


def test_row_bootstrap_agrees_with_scipy():
    x = np.random.default_rng(5).normal(size=50)
    ours = cluster_bootstrap(np.median, x, n_resamples=4000, random_state=0)
    scipys = stats.bootstrap(
        (x,), np.median, n_resamples=4000, method="percentile", rng=np.random.default_rng(7)
    )
    # Two Monte Carlo runs of 4000: standard errors agree to a few per cent.
    assert ours.standard_error == pytest.approx(scipys.standard_error, rel=0.08)
    np.testing.assert_allclose(
        [ours.low, ours.high], scipys.confidence_interval, atol=0.3 * scipys.standard_error
    )


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_coverage_needs_the_clusters(method):
    rng = np.random.default_rng(20)
    n_trials, by_cluster, by_row = 200, 0, 0
    for trial in range(n_trials):
        x, groups = clustered_errors(rng)
        common = {"n_resamples": 300, "method": method, "random_state": trial}
        clusters = cluster_bootstrap(np.mean, x, groups=groups, **common)
        by_cluster += clusters.low <= 0 <= clusters.high
        if method == "percentile":
            rows = cluster_bootstrap(np.mean, x, **common)
            by_row += rows.low <= 0 <= rows.high
    # The share of 200 has standard error .015 at .95; 30 clusters cost a point or two.
    assert 0.90 <= by_cluster / n_trials <= 0.98
    assert by_row / n_trials < 0.75


def test_array_statistic_gives_an_interval_each():
    table = np.random.default_rng(1).normal([0.0, 5.0, -2.0], size=(60, 3))
    groups = np.repeat(np.arange(20), 3)
    common = {"groups": groups, "n_resamples": 200, "random_state": 0}
    for method in ("percentile", "bca"):
        found = cluster_bootstrap(lambda t: t.mean(axis=0), table, method=method, **common)
        assert found.resamples.shape == (200, 3)
        for j in range(3):
            alone = cluster_bootstrap(lambda t, j=j: t[:, j].mean(), table, method=method, **common)
            assert found.low[j] == pytest.approx(alone.low)
            assert found.high[j] == pytest.approx(alone.high)
            assert found.standard_error[j] == pytest.approx(alone.standard_error)


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_constant_statistic_has_zero_width(method):
    x = np.column_stack([np.zeros(12), np.arange(12.0)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = cluster_bootstrap(
            lambda t: t.mean(axis=0), x, n_resamples=100, method=method, random_state=0
        )
    assert found.low[0] == found.high[0] == found.standard_error[0] == 0.0
    assert found.low[1] < found.estimate[1] < found.high[1]


def test_seed_repeats_to_the_bit_whatever_the_memory():
    x = np.random.default_rng(1).normal(size=30)
    first = cluster_bootstrap(np.mean, x, n_resamples=500, random_state=4)
    again = cluster_bootstrap(np.mean, x, n_resamples=500, random_state=4)
    with sklearn.config_context(working_memory=0.01):  # about 20 resamples a batch
        small = cluster_bootstrap(np.mean, x, n_resamples=500, random_state=4)
    other = cluster_bootstrap(np.mean, x, n_resamples=500, random_state=5)
    np.testing.assert_array_equal(first.resamples, again.resamples)
    np.testing.assert_array_equal(first.resamples, small.resamples)
    assert (first.resamples != other.resamples).any()


def test_frames_and_lists_are_taken():
    frame = pd.DataFrame({"error": [0.1, 0.3, 0.2, 0.8], "who": ["a", "a", "b", "b"]})
    ours = cluster_bootstrap(
        np.mean, frame["error"], groups=frame["who"], n_resamples=50, random_state=0
    )
    lists = cluster_bootstrap(
        np.mean, [0.1, 0.3, 0.2, 0.8], groups=["a", "a", "b", "b"], n_resamples=50, random_state=0
    )
    np.testing.assert_array_equal(ours.resamples, lists.resamples)


def test_bootstrap_estimate_is_a_frozen_value():
    found = cluster_bootstrap(np.mean, np.arange(5.0), n_resamples=10, random_state=0)
    assert isinstance(found, BootstrapEstimate)
    with pytest.raises(AttributeError):
        found.low = 0.0
    assert pickle.loads(pickle.dumps(found)).low == found.low


def mean_of_first(x, y):
    return x[y == 1].mean() if (y == 1).any() else np.nan


@pytest.mark.parametrize(
    ("arrays", "options", "message"),
    [
        ((), {}, "arrays"),
        (([1.0],), {}, "n_samples"),
        (([1.0, 2.0],), {"groups": ["a", "a"]}, "groups"),
        (([1.0, 2.0],), {"groups": ["a", None]}, "groups: missing in row 1"),
        (([1.0, 2.0], [1.0]), {}, "inconsistent"),
        (([1.0, 2.0],), {"groups": ["a"]}, "inconsistent"),
        (([1.0, np.nan],), {}, "statistic: got nan"),
        (([1.0, 2.0],), {"n_resamples": 1}, "n_resamples"),
        (([1.0, 2.0],), {"confidence_level": 1.0}, "confidence_level"),
        (([1.0, 2.0],), {"method": "basic"}, "method"),
        (([1.0, 2.0],), {"random_state": "x"}, "random_state"),
    ],
)
def test_bootstrap_says_what_is_wrong(arrays, options, message):
    with pytest.raises(ValueError, match=message):
        cluster_bootstrap(np.mean, *arrays, **options)


def test_resamples_without_a_value_are_an_error():
    x, y = np.arange(6.0), np.array([1, 0, 0, 0, 0, 0])
    with pytest.raises(ValueError, match=r"statistic: not finite for \d+ of 200 resamples"):
        cluster_bootstrap(mean_of_first, x, y, n_resamples=200, random_state=0)


def test_bca_that_does_not_exist_is_an_error():
    with pytest.raises(ValueError, match="method='bca'"):
        # Leaving any one out changes nothing, so the acceleration is 0 / 0.
        cluster_bootstrap(np.max, [0.0, 0.0, 1.0, 1.0], method="bca", random_state=0)


def closed_testing(p):
    """Holm is the closure of Bonferroni: the largest Bonferroni p over the families with i."""
    p = np.asarray(p)
    adjusted = np.zeros(len(p))
    for size in range(1, len(p) + 1):
        for family in map(list, combinations(range(len(p)), size)):
            adjusted[family] = np.maximum(adjusted[family], min(1.0, size * p[family].min()))
    return adjusted


@settings(max_examples=60, deadline=None)
@given(hnp.arrays(float, st.integers(0, 6), elements=st.floats(0, 1)))
def test_holm_is_the_closure_of_bonferroni(p):
    np.testing.assert_allclose(holm(p), closed_testing(p), rtol=1e-14)


def test_holm_reference_value():
    np.testing.assert_allclose(
        holm([0.001, 0.012, 0.03, 0.04, 0.2]), [0.005, 0.048, 0.09, 0.09, 0.2], rtol=1e-14
    )


def test_holm_leaves_out_nan_and_keeps_the_shape():
    p = np.array([[0.2, np.nan], [0.01, 0.04]])
    adjusted = holm(p)
    assert np.isnan(adjusted[0, 1])
    np.testing.assert_allclose(adjusted[[0, 1, 1], [0, 0, 1]], holm([0.2, 0.01, 0.04]))
    assert np.isnan(p[0, 1])  # the input is left alone
    assert p[0, 0] == 0.2


@pytest.mark.parametrize("wrong", [-0.1, 1.1, np.inf])
def test_holm_refuses_what_is_no_probability(wrong):
    with pytest.raises(ValueError, match="pvalues"):
        holm([0.5, wrong])


def max_t_by_loops(observed, null):
    n, k = null.shape
    z = [[0.0] * k for _ in range(n + 1)]
    for j in range(k):
        column = [observed[j], *null[:, j]]
        mean = sum(column) / (n + 1)
        sd = (sum((value - mean) ** 2 for value in column) / (n + 1)) ** 0.5
        for i, value in enumerate(column):
            z[i][j] = (value - mean) / sd
    raw = [(1 + sum(null[i, j] >= observed[j] for i in range(n))) / (n + 1) for j in range(k)]
    adjusted = [
        (1 + sum(max(z[i]) >= z[0][j] for i in range(1, n + 1))) / (n + 1) for j in range(k)
    ]
    return raw, adjusted


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 30), st.integers(1, 4))
def test_max_t_agrees_with_loops(seed, n, k):
    rng = np.random.default_rng(seed)
    observed, null = rng.normal(size=k), rng.normal(size=(n, k)) * rng.uniform(0.1, 10, k)
    raw, adjusted = max_t_pvalues(observed, null)
    np.testing.assert_allclose((raw, adjusted), max_t_by_loops(observed, null), rtol=1e-14)


@settings(max_examples=40, deadline=None)
@given(
    hnp.arrays(float, (8, 3), elements=st.sampled_from([0.0, 0.1, 0.3, 1.0, 1e-300, 1e12])),
)
def test_max_t_holds_with_ties_and_constants(values):
    observed, null = values[0], values[1:]
    raw, adjusted = max_t_pvalues(observed, null)
    assert (raw >= 1 / 8).all()
    assert (adjusted <= 1).all()
    assert (adjusted >= raw).all()
    constant = (null == observed).all(axis=0)
    assert (raw[constant] == 1).all()
    assert (adjusted[constant] == 1).all()


def test_max_t_counts_values_that_differ_by_rounding_as_ties():
    observed = np.array([0.1 + 0.2, 1.0])
    null = np.array([[0.3, 0.0], [0.0, 1.0 - 1e-16], [-1.0, -2.0]])
    raw, adjusted = max_t_pvalues(observed, null)
    np.testing.assert_array_equal(raw, [0.5, 0.5])
    assert (adjusted >= raw).all()


def test_max_t_holds_the_family_wise_error():
    rng = np.random.default_rng(11)
    n_trials, n_permutations, k = 400, 99, 5
    errors = sum(
        max_t_pvalues(z[0], z[1:])[1].min() <= 0.05
        for z in (
            rng.normal(size=(n_permutations + 1, k)) + rng.normal(size=(n_permutations + 1, 1))
            for _ in range(n_trials)
        )
    )
    # Exact level .05 under exchangeability; three standard errors of a share of 400.
    assert errors / n_trials <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_trials)
    assert errors / n_trials >= 0.05 - 3 * np.sqrt(0.05 * 0.95 / n_trials)


@pytest.mark.parametrize(
    ("observed", "null", "message"),
    [
        ([1.0, 2.0], [[1.0], [2.0]], "null: got shape"),
        (1.0, [[1.0]], "null: got shape"),
        ([1.0], np.empty((0, 1)), "null: got shape"),
        ([np.nan], [[1.0]], "observed: got NaN"),
        ([1.0], [[np.inf]], "null: got NaN"),
    ],
)
def test_max_t_says_what_is_wrong(observed, null, message):
    with pytest.raises(ValueError, match=message):
        max_t_pvalues(observed, null)
