"""Distances and agreement between annotators and model."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import rel_entr
from scipy.stats import entropy as scipy_entropy
from scipy.stats import kendalltau, spearmanr

from equipoise.explainers import (
    entropy_error,
    expected_brier,
    human_alignment_report,
    kl_to_humans,
    ranking_agreement,
    soft_brier,
    soft_cross_entropy,
    total_variation,
)

F = np.array(
    [[0.7, 0.2, 0.1], [0.5, 0.4, 0.1], [0.2, 0.5, 0.3], [0.1, 0.85, 0.05], [0.3, 0.3, 0.4]]
)
COUNTS = np.array([[8, 1, 1], [4, 5, 1], [3, 3, 4], [0, 10, 0], [2, 2, 6]])
Y, MODE = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 2, 1, 2])


@st.composite
def pairs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Votes, and model probabilities of the same shape, on a coarse grid so that ties occur."""
    n, K, seed = draw(st.integers(1, 12)), draw(st.integers(2, 5)), draw(st.integers(0, 2**31))
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(draw(st.integers(2, 12)), rng.dirichlet(np.ones(K)), size=n)
    coarse = rng.integers(1, 6, size=(n, K)).astype(float)
    return counts, coarse / coarse.sum(axis=1, keepdims=True)


def test_reference_values() -> None:
    per_row = [0.03751039604, 0.02231435513, 0.08346467428, 0.16251892950, 0.08109302162]
    np.testing.assert_allclose(kl_to_humans(COUNTS, F, per_item=True), per_row, atol=1e-11)
    assert kl_to_humans(COUNTS, F) == pytest.approx(0.07738027531556338, abs=1e-14)
    assert soft_cross_entropy(COUNTS, F) == pytest.approx(0.8016904286270983, abs=1e-14)
    assert total_variation(COUNTS, F) == pytest.approx(0.15, abs=1e-14)
    assert soft_brier(COUNTS, F) == pytest.approx(0.039, abs=1e-14)
    assert expected_brier(COUNTS, F) == pytest.approx(0.467, abs=1e-14)
    assert soft_brier(COUNTS, F, debias=True) == pytest.approx(-0.008555555555555552, abs=1e-14)
    assert soft_cross_entropy(Y, F) == pytest.approx(0.5643557932861106, abs=1e-14)
    assert soft_cross_entropy(MODE, F) == pytest.approx(0.7111496283021508, abs=1e-14)
    assert soft_brier(Y, F) == pytest.approx(0.303, abs=1e-14)
    assert entropy_error(COUNTS, F) == pytest.approx(0.15207107615494242, abs=1e-14)
    assert entropy_error(COUNTS, F, absolute=True) == pytest.approx(0.17576986066720246, abs=1e-14)
    report = human_alignment_report(COUNTS, F)
    assert report["entropy_spearman"] == pytest.approx(0.9, abs=1e-12)
    assert report["mode_accuracy"] == pytest.approx(0.6)
    assert report["soft_accuracy"] == pytest.approx(0.62)


@settings(deadline=None, max_examples=60)
@given(pairs())
def test_distances_agree_with_scipy(pair: tuple[np.ndarray, np.ndarray]) -> None:
    counts, proba = pair
    P = counts / counts.sum(axis=1, keepdims=True)
    kl = rel_entr(P, proba).sum(axis=1)
    np.testing.assert_allclose(kl_to_humans(counts, proba, per_item=True), kl, atol=1e-12)
    H = scipy_entropy(P, axis=1)
    ce = soft_cross_entropy(counts, proba, per_item=True)
    np.testing.assert_allclose(ce - kl, H, atol=1e-12)
    # The cross-entropy is smallest where the model repeats the votes.
    assert (soft_cross_entropy(P, P, per_item=True) <= ce + 1e-12).all()
    errors = entropy_error(counts, proba, per_item=True)
    np.testing.assert_allclose(errors, scipy_entropy(proba, axis=1) - H, atol=1e-12)
    tv = np.maximum(P - proba, 0).sum(axis=1)
    np.testing.assert_allclose(total_variation(counts, proba, per_item=True), tv, atol=1e-12)


def same_ranking_by_search(p: np.ndarray, f: np.ndarray) -> bool:
    """Whether some strict order of the classes sorts both, f strictly where p is strict."""
    for order in itertools.permutations(range(len(p))):
        if all(p[a] >= p[b] for a, b in itertools.pairwise(order)) and all(
            f[a] > f[b] or (p[a] == p[b] and f[a] == f[b]) for a, b in itertools.pairwise(order)
        ):
            return True
    return False


@settings(deadline=None, max_examples=60)
@given(pairs())
def test_rankings_agree_with_a_search_over_orders(pair: tuple[np.ndarray, np.ndarray]) -> None:
    counts, proba = pair
    P = counts / counts.sum(axis=1, keepdims=True)
    expected = [same_ranking_by_search(p, f) for p, f in zip(P, proba, strict=True)]
    np.testing.assert_array_equal(ranking_agreement(counts, proba, per_item=True), expected)
    tau = ranking_agreement(counts, proba, measure="kendall", per_item=True)
    for p, f, found in zip(P, proba, tau, strict=True):
        np.testing.assert_allclose(found, kendalltau(p, f).statistic, atol=1e-12)


def test_ranking_means() -> None:
    P = np.array([[8, 1, 1], [5, 5, 0], [2, 2, 2]])
    proba = np.array([[0.6, 0.3, 0.1], [0.3, 0.6, 0.1], [0.2, 0.3, 0.5]])
    assert ranking_agreement(P, proba) == 1.0
    # The third item has no ranking and no tau.
    taus = [kendalltau(p, f).statistic for p, f in zip(P[:2], proba[:2], strict=True)]
    assert ranking_agreement(P, proba, measure="kendall") == pytest.approx(np.mean(taus))
    assert np.isnan(ranking_agreement(P[2:], proba[2:], measure="kendall"))


@settings(deadline=None, max_examples=40)
@given(pairs())
def test_report_agrees_with_the_functions(pair: tuple[np.ndarray, np.ndarray]) -> None:
    counts, proba = pair
    report = human_alignment_report(counts, proba)
    assert report["kl"] == pytest.approx(kl_to_humans(counts, proba), abs=1e-12)
    assert report["soft_brier_debiased"] == pytest.approx(soft_brier(counts, proba, debias=True))
    observed = (counts > 0).sum(axis=1)
    floor = np.mean((observed - 1) / (2 * counts.sum(axis=1)))
    assert report["kl_floor"] == pytest.approx(floor, abs=1e-12)
    P = counts / counts.sum(axis=1, keepdims=True)
    H_p, H_f = scipy_entropy(P, axis=1), scipy_entropy(proba, axis=1)
    if np.ptp(H_p) > 1e-9 and np.ptp(H_f) > 1e-9:
        expected = spearmanr(H_p.round(12), H_f.round(12)).statistic
        assert report["entropy_spearman"] == pytest.approx(expected, abs=1e-12)
    else:
        assert np.isnan(report["entropy_spearman"])


@pytest.mark.parametrize("n_votes", [3, 10])
def test_debiased_brier_is_unbiased(n_votes: int) -> None:
    # 4000 vote sets of 20 items; the tolerance is four standard errors of their mean.
    rng = np.random.default_rng(n_votes)
    population, proba = rng.dirichlet(np.ones(4), 20), rng.dirichlet(np.ones(4), 20)
    truth = np.mean(((proba - population) ** 2).sum(axis=1))
    draws = rng.multinomial(n_votes, population, size=(4000, 20))
    values = np.array([soft_brier(c, proba, debias=True) for c in draws])
    assert abs(values.mean() - truth) < 4 * values.std(ddof=1) / np.sqrt(len(values))
    plain = np.array([soft_brier(c, proba) for c in draws[:500]])
    assert plain.mean() - truth > 4 * plain.std(ddof=1) / np.sqrt(len(plain))


def test_expected_brier_is_the_mean_over_drawn_labels() -> None:
    rng = np.random.default_rng(0)
    P, proba = rng.dirichlet(np.ones(3), 5), rng.dirichlet(np.ones(3), 5)
    by_label = np.array([((proba - np.eye(3)[k]) ** 2).sum(axis=1) for k in range(3)]).T
    assert expected_brier(P, proba) == pytest.approx(np.mean((P * by_label).sum(axis=1)), abs=1e-12)


def test_one_vote_leaves_the_debiased_score_undefined() -> None:
    with pytest.warns(UserWarning, match="1 items have one vote"):
        values = soft_brier([[1, 0], [1, 2]], [[0.5, 0.5], [0.5, 0.5]], debias=True, per_item=True)
    assert np.isnan(values[0])
    assert np.isfinite(values[1])
    assert np.isnan(
        human_alignment_report([[1, 0], [1, 2]], [[0.5, 0.5], [0.5, 0.5]])["soft_brier_debiased"]
    )


def test_zero_probabilities_are_clipped_and_counted() -> None:
    report = human_alignment_report([[1, 1], [2, 0]], [[1.0, 0.0], [1.0, 0.0]])
    assert report["n_clipped"] == 1
    assert np.isfinite(report["kl"])


def test_constant_entropies_have_no_correlation() -> None:
    P = np.array([[0.9, 0.1], [0.1, 0.9]])
    report = human_alignment_report(P, [[0.6, 0.4], [0.7, 0.3]])
    assert np.isnan(report["entropy_spearman"])
    assert np.isnan(report["entropy_pearson"])


def test_weights_are_repetitions() -> None:
    w = np.array([1, 0, 2, 3, 1])
    repeated = np.repeat(COUNTS, w, axis=0), np.repeat(F, w, axis=0)
    for metric in (soft_cross_entropy, kl_to_humans, total_variation, soft_brier, expected_brier):
        assert metric(COUNTS, F, sample_weight=w) == pytest.approx(metric(*repeated), abs=1e-12)
    for measure in ("exact", "kendall"):
        weighted = ranking_agreement(COUNTS[:3], F[:3], measure=measure, sample_weight=w[:3])
        again = np.repeat(COUNTS[:3], w[:3], axis=0), np.repeat(F[:3], w[:3], axis=0)
        assert weighted == pytest.approx(ranking_agreement(*again, measure=measure))


def test_errors_say_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="P has 3 columns, but proba has 2"):
        kl_to_humans([[1, 2, 3]], [[0.5, 0.5]])
    with pytest.raises(ValueError, match="inconsistent"):
        kl_to_humans([[1, 2]], [[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(ValueError, match="vote counts"):
        soft_brier([[0.5, 0.5]], [[0.5, 0.5]], debias=True)
    with pytest.raises(ValueError, match="measure='spearman'"):
        ranking_agreement([[1, 2]], [[0.5, 0.5]], measure="spearman")
