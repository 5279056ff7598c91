"""Firth's penalty and the posterior, against closed forms, optimisers and sums over fine grids."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logit
from sklearn.exceptions import ConvergenceWarning

from equipoise.datasets import make_human_ai_trials
from equipoise.estimators import HumanAITeamModel, fit_from_counts
from equipoise.estimators.human_ai.firth import firth_objective
from equipoise.estimators.human_ai.fitting import Trials


def separated():
    X = np.array([[2.0, 1], [1, 2], [-1, -2], [-2, -1]] * 5) * np.linspace(0.5, 1.5, 20)[:, None]
    return X, (X.sum(axis=1) > 0).astype(int)


# --- Firth ----------------------------------------------------------------------------------------


def test_firth_adds_half_a_trial_to_each_cell_of_a_saturated_model():
    """Two kinds of trials, two weights: logit((k + 1/2) / (n + 1)) of each, also for k = n."""
    X = np.repeat([[1.0, 1.0], [1.0, -1.0]], [8, 12], axis=0)
    y = np.array([1] * 8 + [1] * 7 + [0] * 5)
    model = HumanAITeamModel(penalty="firth", fit_bias=False).fit(X, y)
    agreed, apart = logit(8.5 / 9), logit(7.5 / 13)
    assert model.noise_scale_ == pytest.approx((agreed + apart) / 2, abs=1e-7)
    assert model.noise_scale_ * model.trust_ == pytest.approx((agreed - apart) / 2, abs=1e-7)
    counts = np.array([8, 7]) @ log_expit([agreed, apart]) + 5 * log_expit(-apart)
    assert model.loglik_ == pytest.approx(counts, abs=1e-10)  # the likelihood alone


def test_firth_is_finite_under_separation_and_is_the_penalised_maximum():
    X, y = separated()
    with pytest.warns(ConvergenceWarning, match="penalty='firth'"):
        HumanAITeamModel().fit(X, y)
    model = HumanAITeamModel(penalty="firth").fit(X, y)
    assert np.isfinite(model.trust_ci_).all() and model.noise_scale_ < 20
    design = np.column_stack([np.ones(20), X])

    def loss(c):
        p = expit(design @ c)
        information = (design * (p * (1 - p))[:, None]).T @ design
        return -log_expit((2 * y - 1) * (design @ c)).sum() - np.linalg.slogdet(information)[1] / 2

    peer = minimize(loss, np.zeros(3), tol=1e-12).x
    found = [model.bias_, model.noise_scale_, model.noise_scale_ * model.trust_]
    assert found == pytest.approx(peer, abs=1e-5)
    p = expit(design @ peer)
    covariance = np.linalg.inv((design * (p * (1 - p))[:, None]).T @ design)
    slope = np.array([0, -1 / peer[1], 1 / peer[2]])  # of log trust
    k = model.parameter_names_.index("trust")
    assert model.cov_[k, k] == pytest.approx(slope @ covariance @ slope, rel=1e-4)


@pytest.mark.parametrize("bias", [False, True])
def test_firth_gradient_with_moderators(bias):
    rng = np.random.default_rng(0)
    n = 30
    V = np.column_stack([np.ones(n), rng.normal(size=(n, 2))])
    trials = Trials(
        *rng.normal(size=(2, n)), np.ones(n), V, rng.integers(2, size=n) * 1.0, rng.uniform(1, 2, n)
    )
    free = np.array([bias, True, True, True, True])
    theta = np.array([0.3, 0.2, -0.4, 0.5, -0.2])
    evidence = trials.lh, trials.la

    def value(x):
        return firth_objective(x, trials, evidence, free)[0]

    steps = 1e-6 * np.eye(5)[free]
    numeric = [(value(theta + s) - value(theta - s)) / 2e-6 for s in steps]
    gradient = firth_objective(theta, trials, evidence, free)[1]
    np.testing.assert_allclose(gradient, numeric, atol=1e-6)


def test_firth_and_maximum_likelihood_agree_in_large_samples():
    data = make_human_ai_trials(100, 100, trust=0.5, random_state=0)
    plain, firth = (
        HumanAITeamModel(penalty=name).fit(data.X, data.y) for name in ("ridge", "firth")
    )
    assert firth.trust_ == pytest.approx(plain.trust_, rel=5e-3)
    np.testing.assert_allclose(firth.cov_, plain.cov_, rtol=0.02, atol=1e-6)


# --- posterior ------------------------------------------------------------------------------------


def test_grid_posterior_is_bayes_rule():
    """A finer and wider sum over (log beta, log tau), with scipy's likelihood."""
    data = make_human_ai_trials(5, 12, trust=0.5, random_state=1)
    model = HumanAITeamModel(fit_bias=False, calibrate=False).fit(data.X, data.y)
    priors = {"trust": (-0.5, 0.7), "noise_scale": (0.1, 0.6)}
    table = model.posterior("grid", priors, n_points=31).to_frame().set_index("parameter")
    x = np.linspace(-4, 3, 351)
    B, T = np.meshgrid(x, x, indexing="ij")
    z = np.exp(B)[..., None] * (data.X[:, 0] + np.exp(T)[..., None] * data.X[:, 1])
    logs = log_expit((2 * data.y - 1) * z).sum(axis=-1)
    logs += -0.5 * ((T + 0.5) / 0.7) ** 2 - 0.5 * ((B - 0.1) / 0.6) ** 2
    density = np.exp(logs - logs.max())
    for name, axis in (("trust", 0), ("noise_scale", 1)):
        marginal = density.sum(axis=axis)
        cumulative = np.cumsum(marginal) - marginal / 2
        ends = np.exp(np.interp([0.025, 0.5, 0.975], cumulative / marginal.sum(), x))
        got = table.loc[name, ["low", "median", "high"]].to_numpy(dtype=float)
        np.testing.assert_allclose(got, ends, rtol=5e-3)
        mean = marginal @ x / marginal.sum()
        variance = marginal @ (x - mean) ** 2 / marginal.sum()
        learned = 1 - variance / priors[name][1] ** 2
        assert table.loc[name, "learned"] == pytest.approx(learned, abs=5e-3)


def test_grid_integrates_the_bias():
    """A sum over (bias, log beta, log tau), 48 trials; Laplace's rule is good to some percent."""
    data = make_human_ai_trials(4, 12, trust=0.5, bias=1.0, random_state=3)
    model = HumanAITeamModel(calibrate=False, alpha=1.0).fit(data.X, data.y)
    table = model.posterior("grid", n_points=25).to_frame().set_index("parameter")
    x, bias = np.linspace(-6, 4, 81), np.linspace(-5, 5, 51)
    C, B, T = np.meshgrid(bias, x, x, indexing="ij")
    logs = -0.5 * ((C / 2) ** 2 + (B / 1.5) ** 2 + (T / 1.5) ** 2)
    for (l_h, l_a), y in zip(data.X, data.y, strict=True):
        logs += log_expit((2 * y - 1) * (C + np.exp(B) * (l_h + np.exp(T) * l_a)))
    density = np.exp(logs - logs.max())
    for name, axes in (("trust", (0, 1)), ("noise_scale", (0, 2))):
        marginal = density.sum(axis=axes)
        cumulative = (np.cumsum(marginal) - marginal / 2) / marginal.sum()
        ends = np.interp([0.025, 0.5, 0.975], cumulative, x)
        got = np.log(table.loc[name, ["low", "median", "high"]].to_numpy(dtype=float))
        np.testing.assert_allclose(got, ends, atol=0.08)


def test_posterior_between_prior_and_data():
    data = make_human_ai_trials(60, 40, trust=0.5, random_state=0)
    model = HumanAITeamModel().fit(data.X, data.y)
    vague = dict.fromkeys(("trust", "noise_scale", "bias"), (0.0, 100.0))
    for method in ("laplace", "grid"):
        table = model.posterior(method, vague).to_frame().set_index("parameter")
        row = table.loc["trust"]
        assert row["median"] == pytest.approx(model.trust_, rel=0.02)
        assert (row["low"], row["high"]) == pytest.approx(model.trust_ci_, rel=0.05)
        assert row["learned"] > 0.999
    tight = model.posterior(priors={"trust": (np.log(2.0), 1e-3)})
    row = tight.to_frame().set_index("parameter").loc["trust"]
    assert row["median"] == pytest.approx(2.0, rel=1e-2) and row["learned"] < 0.1
    assert "almost nothing" in str(tight)
    ax = Figure().add_subplot()
    assert tight.plot(ax=ax) is ax


def test_posterior_of_belief_and_of_a_population():
    data = make_human_ai_trials(
        60, 40, 1.0, [0.6, 1.8], 0.3, trust=0.5, overlap_belief=0.3, random_state=0
    )
    model = HumanAITeamModel(overlap_belief="fit").fit(
        data.X, data.y, relative_capability=data.relative_capability
    )
    laplace, grid = (
        model.posterior(method, n_points=9).to_frame().set_index("parameter")
        for method in ("laplace", "grid")
    )
    for name in ("trust", "overlap_belief"):
        assert grid.loc[name, "median"] == pytest.approx(laplace.loc[name, "median"], rel=0.1)
        assert grid.loc[name, "low"] < model.__dict__[f"{name}_"] < grid.loc[name, "high"]
    people = make_human_ai_trials(40, 40, trust=0.4, trust_sd=0.6, random_state=0)
    mixed = HumanAITeamModel(random_effects="trust").fit(people.X, people.y, groups=people.groups)
    table = mixed.posterior().to_frame().set_index("parameter")
    assert table.loc["trust_sd", "low"] < 0.6 < table.loc["trust_sd", "high"]
    assert table.loc["trust", "median"] == pytest.approx(mixed.trust_, rel=0.05)
    assert (table["learned"] > 0.5).all()
    with pytest.raises(ValueError, match="method: got 'grid'; allowed with random_effects"):
        mixed.posterior("grid")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "mcmc"}, "method: got 'mcmc'"),
        ({"priors": {"tau": (0, 1)}}, "priors: got 'tau'"),
        ({"priors": {"trust": (0, 0)}}, "sd > 0"),
        ({"n_points": 3}, "n_points: got 3"),
    ],
)
def test_posterior_errors(arguments, message):
    data = make_human_ai_trials(10, 20, trust=0.5, random_state=0)
    model = HumanAITeamModel().fit(data.X, data.y)
    with pytest.raises(ValueError, match=message):
        model.posterior(**arguments)
    counted = fit_from_counts((6554, 10000), [[6874, 504, 1286, 1336]])
    with pytest.raises(ValueError, match="two-stage data only"):
        counted.posterior()
