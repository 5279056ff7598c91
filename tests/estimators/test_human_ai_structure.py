"""Cases with difficulty, beliefs about binary advice, and the bootstrap of a population."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from equipoise.datasets import make_human_ai_trials
from equipoise.estimators import HumanAITeamModel
from equipoise.estimators.human_ai.estimation import Raw
from equipoise.estimators.human_ai.uncertainty import resampled
from equipoise.games import bvn_cdf, team_accuracy

# --- cases that differ in difficulty --------------------------------------------------------------


def cases(n_items, n_each, h, a, rho, tau, spread_h, spread_a, seed=0, fixed_ai=False):
    """Latent trials, half of them decided alone: X, y, truth and case."""
    rng = np.random.default_rng(seed)
    item = np.repeat(np.arange(n_items), 2 * n_each)
    d = rng.standard_normal(n_items)[item]
    n = len(item)
    y = rng.choice([-1.0, 1.0], n)
    e_a = rng.standard_normal(n_items)[item] if fixed_ai else rng.standard_normal(n)
    e_h = rho * e_a + np.sqrt(1 - rho**2) * rng.standard_normal(n)
    right_ai = a + spread_a * d + e_a > 0
    x = h + spread_h * d + e_h  # evidence for the right side
    p = norm.cdf(a / np.sqrt(1 + spread_a**2))
    k = tau * np.log(p / (1 - p)) / (2 * h)
    alone = np.tile([True, False], n // 2)
    right = np.where(alone, x > 0, x + k * np.where(right_ai, 1, -1) > 0)
    advice = np.where(alone, 0, y * np.where(right_ai, 1, -1))
    X = np.column_stack([np.zeros(n), advice])
    return X, np.where(right, y, -y).astype(int), y.astype(int), item


def test_difficulty_isn_t_overlap():
    X, y, truth, item = cases(300, 40, 0.7, 0.9, 0.2, 0.5, 0.6, 0.6)
    plain = HumanAITeamModel(mode="latent").fit(X, y, y_true=truth)
    model = HumanAITeamModel(mode="latent", random_effects="item")
    model.fit(X, y, y_true=truth, items=item)
    assert plain.overlap_ > 0.35  # difficulty that both share looks like overlap
    assert model.overlap_ == pytest.approx(0.2, abs=0.06)
    assert model.human_capability_ == pytest.approx(0.7, abs=0.12)
    assert model.ai_capability_ == pytest.approx(0.9, abs=0.12)
    assert model.item_sd_ == pytest.approx((0.6, 0.6), abs=0.1)
    low, high = model.trust_ci_
    assert low < 0.5 < high and high / low < 1.5
    assert model.loglik_ > plain.loglik_ + 100
    assert "cases move the human's capability" in str(model.explain())
    assert model.phase_point().human > model.phase_point().ai - 1
    model.fit(X, y, y_true=truth, items=np.array([f"case {k}" for k in item]))
    refit = HumanAITeamModel(mode="latent").fit(X, y, y_true=truth)
    model.set_params(random_effects=None).fit(X, y, y_true=truth)
    assert not hasattr(model, "item_sd_") and model.trust_ == refit.trust_


def test_likelihood_of_cases_by_quadrature():
    X, y, truth, item = cases(6, 10, 0.7, 0.9, 0.2, 0.5, 0.5, 0.4, seed=1)
    model = HumanAITeamModel(mode="latent", random_effects="item")
    model.fit(X, y, y_true=truth, items=item)
    h, tau, a = model.human_capability_, model.trust_, model.ai_capability_
    rho, (s_h, s_a) = model.overlap_, model.item_sd_
    p = norm.cdf(a / np.sqrt(1 + s_a**2))
    k = tau * np.log(p / (1 - p)) / (2 * h)
    right, ai_right, alone = y == truth, X[:, 1] == truth, X[:, 1] == 0

    def given(d, rows):
        H, A = h + s_h * d, a + s_a * d
        both, wrong_ai = bvn_cdf(H + k, A, rho), bvn_cdf(H - k, -A, -rho)
        value = norm.pdf(d)
        for row in rows:
            if alone[row]:
                value *= norm.cdf(H if right[row] else -H)
            elif ai_right[row]:
                value *= both if right[row] else norm.cdf(A) - both
            else:
                value *= wrong_ai if right[row] else norm.cdf(-A) - wrong_ai
        return value

    total = sum(
        np.log(quad(given, -8, 8, args=(np.flatnonzero(item == j),), epsabs=0)[0]) for j in range(6)
    )
    assert model.loglik_ == pytest.approx(total, abs=1e-4)


def test_cases_that_cannot_tell_are_refused():
    X, y, truth, item = cases(30, 10, 0.7, 0.9, 0.2, 0.5, 0.5, 0.0, fixed_ai=True)
    model = HumanAITeamModel(mode="latent", random_effects="item")
    with pytest.raises(ValueError, match="answers each case always alike"):
        model.fit(X, y, y_true=truth, items=item)
    with pytest.raises(ValueError, match="each case occurs once"):
        model.fit(X, y, y_true=truth, items=np.arange(len(y)))
    with pytest.raises(ValueError, match="items: got None"):
        model.fit(X, y, y_true=truth)
    with pytest.raises(ValueError, match="items: missing"):
        model.fit(X, y, y_true=truth, items=np.where(item == 0, np.nan, item))


# --- beliefs about binary advice ------------------------------------------------------------------


def believing(seed=0, belief=0.4, systems=(0.6, 1.6), n_workers=200):
    return make_human_ai_trials(
        n_workers,
        60,
        0.8,
        list(systems),
        0.3,
        trust=0.6,
        overlap_belief=belief,
        recommendation="binary",
        noise_scale=1.5,
        random_state=seed,
    )


def test_belief_about_binary_advice_is_recovered():
    found = []
    for seed in range(3):
        data = believing(seed)
        r = data.relative_capability
        model = HumanAITeamModel(recommendation="binary", overlap_belief="fit", calibrate=False)
        model.fit(data.X, data.y, y_true=data.y_true, relative_capability=r)
        assert model.identified_["overlap_belief"] and model.identified_["trust"]
        found.append((model.trust_, model.overlap_belief_, model.noise_scale_))
        k = model.parameter_names_.index("overlap_belief")
        assert (
            abs(np.arctanh(model.overlap_belief_) - np.arctanh(0.4)) < 4 * model.cov_[k, k] ** 0.5
        )
    trust, belief, beta = np.mean(found, axis=0)
    assert trust == pytest.approx(0.6, abs=0.08)
    assert belief == pytest.approx(0.4, abs=0.12)
    assert beta == pytest.approx(1.5, abs=0.1)
    place = model.phase_point(1)
    expected = team_accuracy(
        model.human_capability_,
        model.ai_capability_[1],
        model.overlap_[1],
        trust=model.trust_,
        overlap_belief=model.overlap_belief_,
        recommendation="binary",
    )
    assert place.team == pytest.approx(expected, abs=1e-12)
    report = model.recommend_policy(policies=["human", "ai", "assist"], system=1)
    frame = report.to_frame().set_index("policy")
    assert frame.loc["assist", "accuracy"] == pytest.approx(expected, abs=1e-10)


def test_belief_that_is_held():
    """At zero it is neglect; at the truth it explains more; predictions are those of the rule."""
    data = believing(systems=[1.2], n_workers=60)
    options = {"y_true": data.y_true}
    neglect = HumanAITeamModel(recommendation="binary").fit(data.X, data.y, **options)
    nearly, right = (
        HumanAITeamModel(recommendation="binary", overlap_belief=b).fit(data.X, data.y, **options)
        for b in (1e-9, 0.4)
    )
    assert nearly.trust_ == pytest.approx(neglect.trust_, rel=1e-2)
    assert right.loglik_ > neglect.loglik_
    X = data.X[:5]
    a, h = right.ai_capability_, right.human_capability_
    slope, shift = right._found.columns[0].slope, right._found.columns[0].offset
    l_h = shift + slope * X[:, 0]
    x, s, c = l_h / (2 * h), X[:, 1], np.sqrt(1 - 0.16)
    given = [norm.cdf(s * (y * a + 0.4 * (x - y * h)) / c) for y in (1, -1)]
    odds = right.bias_ + right.noise_scale_ * (l_h + right.trust_ * np.log(given[0] / given[1]))
    np.testing.assert_allclose(right.decision_function(X), odds, rtol=1e-9)
    sides = np.column_stack([np.sign(data.X[:, 0]), data.X[:, 1]])
    with pytest.raises(ValueError, match="human_col only holds sides"):
        HumanAITeamModel(recommendation="binary", overlap_belief=0.3).fit(sides, data.y, **options)
    with pytest.raises(ValueError, match="at least two distinct"):
        HumanAITeamModel(recommendation="binary", overlap_belief="fit").fit(
            data.X, data.y, **options
        )
    with pytest.raises(ValueError, match="isn't above chance"):
        HumanAITeamModel(
            recommendation="binary", overlap_belief=0.3, calibrate=False, relative_capability=1.0
        ).fit(data.X * [-1, 1], data.y, **options)


def test_binary_advice_of_several_systems_weighs_by_their_accuracy():
    data = believing(belief=0.0)
    r = data.relative_capability
    model = HumanAITeamModel(recommendation="binary", calibrate=False)
    model.fit(data.X, data.y, y_true=data.y_true, relative_capability=r)
    assert model.trust_ == pytest.approx(0.6, abs=0.06)
    odds = model.decision_function([[0.0, 1.0], [0.0, 1.0]], relative_capability=[0.75, 2.0])
    assert odds[1] > odds[0] + 0.5
    with pytest.raises(ValueError, match="relative_capability: got None"):
        model.predict(data.X)


# --- bootstrap of a population --------------------------------------------------------------------


def test_a_worker_drawn_twice_counts_as_two():
    codes = np.array([0, 0, 1, 1, 2])
    column = np.arange(5.0)
    raw = Raw(column, column, column[:, None], column, column, None, None, codes)
    rows = np.array([0, 0, 0, 1, 1, 1, 4])  # worker 0 three times, worker 2 once
    part = resampled(raw, rows)
    assert len(np.unique(part.codes)) == 4
    for code in np.unique(part.codes):
        assert part.human[part.codes == code].tolist() in ([0.0, 1.0], [4.0])


def test_bootstrap_of_a_population_resembles_the_information():
    data = make_human_ai_trials(40, 40, trust=0.4, trust_sd=0.7, random_state=0)
    options = {"groups": data.groups, "y_true": data.y_true}
    model = HumanAITeamModel(random_effects="trust").fit(data.X, data.y, **options)
    boot = HumanAITeamModel(random_effects="trust", cov="bootstrap", n_boot=40, random_state=0)
    boot.fit(data.X, data.y, **options)
    assert boot.trust_ == model.trust_
    for name in ("trust", "trust_sd"):
        k = model.parameter_names_.index(name)
        assert boot.cov_[k, k] ** 0.5 == pytest.approx(model.cov_[k, k] ** 0.5, rel=0.5)
    low, high = boot.trust_ci_
    assert low < 0.4 < high
    assert len(boot.worker_trust_) == 40
