"""Several advisors, many workers, and how many decisions tell two regions apart."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import norm

from equipoise.datasets import make_human_ai_trials
from equipoise.estimators import HumanAITeamModel
from equipoise.games import (
    REGIME_NAMES,
    advisors_accuracy,
    boundary_trust,
    optimal_accuracy,
    population_effect,
    regime,
    team_accuracy,
    trials_needed,
)
from equipoise.games.human_ai.planning import log_trust_variance

few = settings(max_examples=40, deadline=None)


@few
@given(st.floats(0.05, 2), st.floats(0.05, 2), st.floats(-0.9, 0.9), st.floats(0, 3))
def test_two_sources_are_a_human_and_an_ai(h, a, rho, tau):
    R = [[1, rho], [rho, 1]]
    assert advisors_accuracy([h, a], R) == pytest.approx(optimal_accuracy(h, a, rho), abs=1e-13)
    team = advisors_accuracy([h, a], R, trust=[1, tau])
    assert team == pytest.approx(team_accuracy(h, a, rho, trust=tau), abs=1e-13)


def test_optimal_weights_are_the_best_trust():
    c, R = np.array([0.5, 0.8, 0.6]), np.array([[1, 0.2, 0.1], [0.2, 1, 0.4], [0.1, 0.4, 1]])
    best = minimize(
        lambda t: -advisors_accuracy(c, R, trust=np.exp(t)), np.zeros(3), options={"gtol": 1e-10}
    )
    assert -best.fun == pytest.approx(advisors_accuracy(c, R), abs=1e-9)
    assert advisors_accuracy(c, np.eye(3)) > advisors_accuracy(c, R)
    several = advisors_accuracy([c, 0 * c, c], R, trust=[[1, 1, 1], [1, 1, 1], [1, 0, 0]])
    assert several[1] == 0.5
    assert several[2] == pytest.approx(team_accuracy(0.5, 0.8, 0.2, trust=0), abs=1e-14)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5, -1], np.eye(2)), "capabilities: got -1"),
        (([0.5, 1], np.eye(3)), r"correlation: got shape \(3, 3\)"),
        (([0.5, 1], [[1, 0.2], [0.3, 1]]), "symmetric"),
        (([0.5, 1], np.ones((2, 2))), "positive definite"),
        ((0.5, np.eye(1)), r"capabilities: got shape \(\)"),
        (([0.5, 1], np.eye(2), [1.0]), r"trust: got shape \(1,\)"),
    ],
)
def test_advisors_errors(arguments, message):
    c, R, *trust = arguments
    with pytest.raises(ValueError, match=message):
        advisors_accuracy(c, R, trust=trust[0] if trust else None)


@few
@given(st.floats(0.1, 4), st.floats(-0.6, 0.9))
def test_the_region_changes_at_the_boundary(r, rho):
    assume(abs(r - 1) > 0.02)
    edge, h = boundary_trust(r, rho), 0.3
    if r < 1:
        assert (edge == 0) == (rho >= r)
    if 1e-3 < edge < 1e3:
        below, above = (regime(h, r * h, rho, trust=edge * f, tol=0) for f in (0.99, 1.01))
        assert (below, above) == ((1, -1) if r < 1 else (2, 1))
    else:
        ends = [regime(h, r * h, rho, trust=t, tol=0) for t in (0.1, 3.0)]
        assert edge < 1e-3 or edge > 1e3 or ends[0] == ends[1]
    assert np.isnan(boundary_trust(1.0, rho))


def test_variance_of_log_trust_by_simulation():
    """The information of 400,000 simulated trials, relative error 2 %."""
    rng = np.random.default_rng(0)
    h, a, rho, tau, beta, n = 0.6, 1.1, 0.4, 0.5, 1.3, 400_000
    y = rng.choice([-1.0, 1.0], n)
    e, other = rng.standard_normal((2, n))
    l_h = 2 * h * (y * h + e)
    l_a = 2 * a * (y * a + rho * e + math.sqrt(1 - rho**2) * other)
    z = beta * (l_h + tau * l_a)
    J = np.stack([np.ones(n), z, beta * tau * l_a])
    information = (J * (expit(z) * expit(-z))) @ J.T / n
    variance = np.linalg.inv(information)[2, 2]
    assert log_trust_variance(h, a, rho, tau, beta) == pytest.approx(variance, rel=0.02)


def test_planned_number_of_trials_has_the_power_it_promises():
    """300 simulated studies of the planned size; four standard errors of a share of .8."""
    plan = trials_needed(0.5, 0.8, 0.3, trust=0.25)
    assert (plan.region, plan.other) == ("automation", "complementarity")
    told = 0
    for seed in range(300):
        data = make_human_ai_trials(plan.n_trials, 1, 0.5, 0.8, 0.3, trust=0.25, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = HumanAITeamModel(n_boot=2).fit(data.X, data.y)
        told += model.trust_ci_[1] < plan.boundary
    assert told / 300 == pytest.approx(0.8, abs=4 * math.sqrt(0.16 / 300))
    more = trials_needed(0.5, 0.8, 0.3, trust=0.25, power=0.95, level=0.01)
    assert more.n_trials > 1.5 * plan.n_trials


def test_plans_without_a_boundary_and_errors():
    nothing = trials_needed(0.5, 0.2, 0.7)  # impaired at every trust
    assert nothing.n_trials == np.inf and np.isnan(nothing.boundary)
    assert nothing.region == nothing.other == "impairment"
    even = trials_needed(0.5, 0.5, 0.3)
    assert even.n_trials == np.inf and even.region == "complementarity"
    for options, message in (
        ({"trust": 0.0}, "trust: got 0.0"),
        ({"power": 1.0}, "power: got 1.0"),
        ({"overlap": 1.0}, "overlap: got 1.0"),
        ({"h": 0.0}, "h: got 0.0"),
    ):
        with pytest.raises(ValueError, match=message):
            trials_needed(**{"h": 0.5, "a": 0.8, "overlap": 0.3, **options})
    with pytest.raises(ValueError, match="r: got 0"):
        boundary_trust(0.0, 0.3)


@pytest.mark.parametrize("recommendation", ["probabilistic", "binary"])
def test_population_by_integration(recommendation):
    h, a, rho, tau, sd = 0.5, 0.8, 0.3, 0.4, 0.7
    effect = population_effect(h, a, rho, trust=tau, trust_sd=sd, recommendation=recommendation)
    value, _ = quad(
        lambda z: (
            norm.pdf(z)
            * team_accuracy(h, a, rho, trust=tau * np.exp(sd * z), recommendation=recommendation)
        ),
        -8,
        8,
    )
    assert effect.team == pytest.approx(value, abs=1e-4)
    assert effect.human == pytest.approx(norm.cdf(h)) and effect.ai == pytest.approx(norm.cdf(a))
    shares = [effect[name] for name in REGIME_NAMES.values()]
    assert sum(shares) == pytest.approx(1)
    if recommendation == "probabilistic":  # automation below the boundary
        z = (math.log(boundary_trust(a / h, rho)) - math.log(tau)) / sd
        assert effect.automation == pytest.approx(norm.cdf(z), abs=2e-3)
    same = population_effect(h, [a, 0.3], rho, trust=tau, recommendation=recommendation)
    team = team_accuracy(h, [a, 0.3], rho, trust=tau, recommendation=recommendation)
    np.testing.assert_allclose(same.team, team, atol=1e-14)
    assert same.impairment.shape == (2,)
    with pytest.raises(ValueError, match="trust_sd: got -1"):
        population_effect(h, a, rho, trust_sd=-1)


def test_unequal_costs_are_a_prior():
    """Expected cost of both errors, simulated, against one less accuracy at the effective prior."""
    h, a, rho, tau, prior, miss, alarm = 0.6, 0.9, 0.3, 0.7, 0.4, 3.0, 1.0
    scale = prior * miss + (1 - prior) * alarm
    effective = prior * miss / scale
    rng = np.random.default_rng(0)
    n = 400_000
    y = np.where(rng.random(n) < prior, 1.0, -1.0)
    e, other = rng.standard_normal((2, n))
    x_h, x_a = y * h + e, y * a + rho * e + math.sqrt(1 - rho**2) * other
    odds = math.log(prior * miss / ((1 - prior) * alarm)) + 2 * h * x_h + 2 * tau * a * x_a
    cost = np.where(odds * y > 0, 0.0, np.where(y > 0, miss, alarm))
    expected = scale * (1 - team_accuracy(h, a, rho, trust=tau, prior=effective))
    assert cost.mean() == pytest.approx(expected, abs=5 * cost.std() / n**0.5)
