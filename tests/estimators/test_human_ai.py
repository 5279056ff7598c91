"""The team model against scikit-learn, statsmodels, brute-force likelihoods, known parameters."""

import math
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given, settings
from matplotlib.figure import Figure
from scipy.integrate import quad
from scipy.special import expit, ndtr
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from equipoise.datasets import make_human_ai_trials
from equipoise.estimators import HumanAITeamModel, fit_from_counts
from equipoise.estimators.human_ai.evidence import log_odds_evidence
from equipoise.estimators.human_ai.fitting import (
    Trials,
    fit_pooled,
    fit_workers,
    pooled_objective,
    quadrature,
)
from equipoise.estimators.human_ai.likelihood import choice_probability, worker_integrals
from equipoise.estimators.human_ai.signals import fit_column
from equipoise.games import human_accuracy, policy_accuracy, population_effect, team_accuracy
from equipoise.games.human_ai.binary import binary_cells
from equipoise.testing import decision_trials

few = settings(max_examples=15, deadline=None)


def trials_of(X, y, V=None, r=1.0, w=None):
    n = len(y)
    V = np.ones((n, 1)) if V is None else V
    return Trials(
        X[:, 0].copy(),
        X[:, 1].copy(),
        np.broadcast_to(np.asarray(r, dtype=float), n).copy(),
        V,
        np.asarray(y, dtype=float),
        np.ones(n) if w is None else w,
    )


def small(**options):
    settings = {"n_workers": 40, "n_trials": 40, "trust": 0.5, "random_state": 0, **options}
    return make_human_ai_trials(**settings)


# --- the likelihood -----------------------------------------------------------------------------


def test_reference_probabilities():
    l_h, l_a = np.array([-1, 0.5, 2]), np.array([2, -1.5, 0.3])
    human, ai, *_ = log_odds_evidence(l_h, l_a, np.full(3, 1.5), 0.2, False)
    p = choice_probability(
        human, ai, log_trust=np.log(0.25), noise_scale=1.2, bias=-0.1, lapse=0.05
    )
    assert p == pytest.approx([0.39866411, 0.48367830, 0.83209363], abs=1e-8)


def test_reference_fit():
    X = np.array(
        [
            [-2, -1, -0.5, 0.2, 0.8, 1.5, -1.2, 0.4, 2.2, -0.3],
            [1, 2, -1, 1.5, -2, 0.5, -0.7, -1.1, 1.2, 2.5],
        ]
    ).T
    y = [0, 1, 0, 1, 0, 1, 0, 1, 1, 1]
    model = HumanAITeamModel(fit_bias=False).fit(X, y)
    assert model.noise_scale_ == pytest.approx(3.20649, abs=1e-5)
    assert model.noise_scale_ * model.trust_ == pytest.approx(2.18381, abs=1e-5)
    assert model.trust_ == pytest.approx(0.681058787, abs=1e-8)
    error = math.sqrt(model.cov_[1, 1]) * model.trust_
    assert error == pytest.approx(0.36616893, abs=1e-6)
    assert model.loglik_ == pytest.approx(-1.902177014955, abs=1e-10)
    assert model.bias_ == 0


@pytest.mark.parametrize("binary", [False, True])
def test_kernel_agrees_with_numpy(binary):
    """Log-likelihood by `choice_probability`; score and information by differences of it.

    For log-odds advice and for a side that is read in the light of x_H.
    """
    rng = np.random.default_rng(0)
    n, q = 60, 2
    trials = trials_of(
        rng.normal(size=(n, 2)),
        rng.integers(2, size=n),
        np.column_stack([np.ones(n), rng.normal(size=n)]),
        rng.uniform(0.5, 2, n),
        rng.uniform(0.5, 2, n),
    )
    if binary:
        trials = replace(trials, a=0.6 * trials.r, h=0.6)
    theta = np.array([0.2, 0.3, -0.4, 0.25, 0.3, -1.5, 0.0, 0.0])

    def probabilities(t):
        b, r = np.tanh(t[4]), trials.r
        human, ai = (1 - b * r) * trials.lh / (1 - b**2), (1 - b / r) * trials.la / (1 - b**2)
        if binary:  # the log-likelihood ratio of the side, from the conditional normal x_A | x_H, y
            x, side, c = trials.lh / 1.2, np.sign(trials.la), np.sqrt(1 - b**2)
            given = [ndtr(side * (y * 0.6 * r + b * (x - y * 0.6)) / c) for y in (1, -1)]
            human, ai = trials.lh, np.log(given[0] / given[1])
        return choice_probability(
            human,
            ai,
            log_trust=trials.V @ t[2:4],
            noise_scale=np.exp(t[1]),
            bias=t[0],
            lapse=expit(t[5]),
        )

    def loglik(t):
        p = probabilities(t)
        return np.sum(trials.w * np.log(np.where(trials.y == 1, p, 1 - p)))

    steps = 1e-6 * np.eye(8)[:6]
    value, score, information, plain = pooled_objective(trials, theta, True, 0.0)
    assert value == plain == pytest.approx(loglik(theta), abs=1e-11)
    numeric = [(loglik(theta + s) - loglik(theta - s)) / 2e-6 for s in steps]
    np.testing.assert_allclose(score[:6], numeric, atol=1e-6)
    p = probabilities(theta)
    slopes = np.array([(probabilities(theta + s) - probabilities(theta - s)) / 2e-6 for s in steps])
    fisher = (slopes * trials.w / (p * (1 - p))) @ slopes.T
    np.testing.assert_allclose(information[:6, :6], fisher, atol=1e-6)
    assert q == 2


@pytest.mark.parametrize("n_effects", [1, 2])
def test_marginal_likelihood_by_quadrature(n_effects):
    """Each worker's integral by scipy's adaptive quadrature, at the optimum."""
    data = small(n_workers=6, n_trials=12, trust_sd=0.8)
    trials = trials_of(data.X, data.y)
    starts = np.arange(0, 73, 12)
    free = np.array([1, 1, 1, 0, 0, 0, 0], dtype=bool)
    pooled = fit_pooled(trials, free, np.zeros(7), False, 0.0, 100, 1e-10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = fit_workers(trials, starts, pooled, n_effects, 25, False, 0.0, 3, 1e-6)
    bias, beta, tau = fit.theta[0], *np.exp(fit.theta[1:3])
    omega, omega_b = np.exp(fit.theta[5:7])

    def conditional(u, v, rows):
        shift = omega_b * v if n_effects == 2 else 0.0
        z = bias + shift + beta * (trials.lh + tau * np.exp(omega * u) * trials.la)[rows]
        p = np.where(trials.y[rows] == 1, expit(z), expit(-z))
        return np.exp(np.log(p).sum() - u * u / 2 - v * v / 2)

    total = 0.0
    for k in range(6):
        rows = slice(starts[k], starts[k + 1])
        if n_effects == 1:
            value = quad(lambda u, rows=rows: conditional(u, 0, rows), -9, 9)[0]
            total += math.log(value / math.sqrt(2 * math.pi))
        else:
            grid = np.linspace(-8, 8, 161)  # the trapezoidal rule converges exponentially
            values = [[conditional(u, v, rows) for u in grid] for v in grid]
            total += math.log(np.sum(values) * 0.1**2 / (2 * math.pi))
    assert fit.loglik == pytest.approx(total, abs=2e-4)


# --- the same model elsewhere -------------------------------------------------------------------


@few
@given(decision_trials())
def test_pooled_fit_is_logistic_regression(trials):
    X, y = trials
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(X, y)
        model = HumanAITeamModel().fit(X, y)
    human, ai = peer.coef_[0]
    if min(human, ai) > 0.01:  # both weights are positive by construction
        assert model.noise_scale_ == pytest.approx(human, abs=1e-5)
        assert model.trust_ == pytest.approx(ai / human, rel=1e-4)
        assert model.bias_ == pytest.approx(peer.intercept_[0], abs=1e-5)
        np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-5)


def test_cluster_errors_agree_with_statsmodels():
    sm = pytest.importorskip("statsmodels.api", reason="statsmodels isn't installed")
    data = small(trust_sd=0.8)
    model = HumanAITeamModel(cov="cluster").fit(data.X, data.y, groups=data.groups)
    fit = sm.Logit(data.y, sm.add_constant(data.X)).fit(
        disp=0,
        cov_type="cluster",
        cov_kwds={"groups": data.groups, "use_correction": False},
        tol=1e-12,
    )
    beta, ai = fit.params[1:]
    gradient = np.array([0, -1 / beta, 1 / ai])  # of log tau = log(beta_A / beta_H)
    workers = len(np.unique(data.groups))
    variance = gradient @ fit.cov_params() @ gradient * workers / (workers - 1)
    index = model.parameter_names_.index("trust")
    assert model.cov_[index, index] == pytest.approx(variance, rel=1e-5)


def test_random_trust_agrees_with_another_rule():
    """Doubling the quadrature nodes and starting from weights elsewhere changes nothing."""
    data = small(trust_sd=0.8)
    few_nodes, many = (
        HumanAITeamModel(random_effects="trust", n_quad=n).fit(data.X, data.y, groups=data.groups)
        for n in (15, 41)
    )
    assert few_nodes.loglik_ == pytest.approx(many.loglik_, abs=5e-3)
    assert few_nodes.trust_ == pytest.approx(many.trust_, rel=1e-3)
    assert few_nodes.trust_sd_ == pytest.approx(many.trust_sd_, rel=1e-3)


# --- symmetries ---------------------------------------------------------------------------------


@few
@given(decision_trials())
def test_weights_permutation_classes_and_scale(trials):
    X, y = trials
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = HumanAITeamModel().fit(X, y)
        weighted = HumanAITeamModel().fit(X, y, sample_weight=np.full(len(y), 2.0))
        doubled = HumanAITeamModel().fit(np.vstack([X, X]), np.tile(y, 2))
        order = np.random.RandomState(0).permutation(len(y))
        shuffled = HumanAITeamModel().fit(X[order], y[order])
        swapped = HumanAITeamModel().fit(-X, 1 - y)
        scaled = HumanAITeamModel().fit(X * [1, 4], y)
    assert weighted.trust_ == pytest.approx(doubled.trust_, rel=1e-8)
    assert weighted.loglik_ == pytest.approx(2 * model.loglik_, rel=1e-10)
    if model.trust_ > 0.01:  # else the likelihood is flat in log trust
        np.testing.assert_allclose(weighted.cov_, doubled.cov_, rtol=1e-4, atol=1e-7)
    assert shuffled.trust_ == pytest.approx(model.trust_, rel=1e-6)
    assert swapped.trust_ == pytest.approx(model.trust_, rel=1e-6)
    assert swapped.bias_ == pytest.approx(-model.bias_, abs=1e-6)
    if model.trust_ > 0.01:
        assert scaled.trust_ == pytest.approx(model.trust_ / 4, rel=1e-5)


def test_workers_are_only_names():
    data = small(trust_sd=0.8, n_workers=15)
    names = np.array([f"w{(7 * k) % 15:02d}" for k in range(15)])
    first = HumanAITeamModel(random_effects="trust").fit(data.X, data.y, groups=data.groups)
    second = HumanAITeamModel(random_effects="trust").fit(data.X, data.y, groups=names[data.groups])
    relabelled = second.worker_trust_.set_index("worker").loc[names]
    np.testing.assert_allclose(relabelled["trust"], first.worker_trust_["trust"], rtol=1e-5)
    assert first.loglik_ == pytest.approx(second.loglik_, abs=1e-7)


def test_no_spread_is_the_pooled_fit():
    data = small(trust_sd=0.0, random_state=3)
    pooled = HumanAITeamModel().fit(data.X, data.y)
    mixed = HumanAITeamModel(random_effects="trust").fit(data.X, data.y, groups=data.groups)
    assert mixed.trust_sd_ < 0.3
    if mixed.trust_sd_ < 0.01:
        assert mixed.trust_ == pytest.approx(pooled.trust_, rel=1e-3)
    assert mixed.loglik_ >= pooled.loglik_ - 1e-4  # the smallest spread is exp(-7)


# --- recovery -----------------------------------------------------------------------------------


def test_recovery_of_trust():
    """20 fits, 4 standard errors, uncalibrated because the signals are exact."""
    for seed in range(20):
        data = small(trust=0.25, random_state=seed)
        model = HumanAITeamModel(calibrate=False).fit(data.X, data.y, y_true=data.y_true)
        error = math.log(model.trust_ci_[1] / model.trust_) / 1.96
        assert abs(math.log(model.trust_ / 0.25)) < 4 * error
        assert model.human_capability_ == pytest.approx(0.5, abs=0.15)
        assert model.ai_capability_ == pytest.approx(0.8, abs=0.2)
        assert model.overlap_ == pytest.approx(0.3, abs=0.12)


def test_recovery_of_a_population():
    medians, spreads, pooled = [], [], []
    for seed in range(4):
        data = make_human_ai_trials(100, 40, trust=0.25, trust_sd=0.8, random_state=seed)
        model = HumanAITeamModel(random_effects="trust").fit(data.X, data.y, groups=data.groups)
        medians.append(model.trust_)
        spreads.append(model.trust_sd_)
        pooled.append(HumanAITeamModel().fit(data.X, data.y).trust_)
        shown = np.corrcoef(np.log(data.worker_trust), model.worker_trust_["log_trust"])[0, 1]
        assert shown > 0.4
        frame = model.worker_trust_
        assert (frame["log_trust_sd"] < model.trust_sd_).all()  # shrunk
        width = np.log(frame["high"] / frame["low"])
        np.testing.assert_allclose(width, 2 * 1.959964 * frame["log_trust_sd"], rtol=1e-6)
        inside = (frame["low"] < data.worker_trust) & (data.worker_trust < frame["high"])
        assert inside.mean() > 0.85
    assert 0.2 < np.mean(medians) < 0.32
    assert np.mean(spreads) == pytest.approx(0.8, abs=0.2)
    assert np.mean(pooled) > np.mean(medians)  # a ratio of averages isn't the median


def test_recovery_of_belief():
    found = []
    for seed in range(4):
        data = make_human_ai_trials(
            100, 40, 1.0, [0.6, 1.8], 0.3, trust=0.25, overlap_belief=0.3, random_state=seed
        )
        model = HumanAITeamModel(overlap_belief="fit").fit(
            data.X, data.y, relative_capability=data.relative_capability
        )
        assert model.identified_["overlap_belief"] and model.identified_["trust"]
        found.append((model.trust_, model.overlap_belief_))
    trust, belief = np.mean(found, axis=0)
    assert trust == pytest.approx(0.25, abs=0.03)
    assert belief == pytest.approx(0.3, abs=0.06)


def test_recovery_of_lapse_bias_and_moderator():
    rng = np.random.RandomState(0)
    data = make_human_ai_trials(200, 100, 1.0, 1.5, 0.2, noise_scale=3.0, random_state=1)
    z = rng.normal(size=len(data.y))
    p = 0.1 + 0.8 * expit(0.4 + 2 * (data.X[:, 0] + 0.5 * np.exp(0.6 * z) * data.X[:, 1]))
    y = (rng.random_sample(len(p)) < p).astype(int)
    X = np.column_stack([data.X, 5 + z])
    model = HumanAITeamModel(lapse="fit").fit(X, y)
    assert model.lapse_ == pytest.approx(0.2, abs=0.03)
    assert model.bias_ == pytest.approx(0.4, abs=0.15)
    assert model.moderator_coef_[0] == pytest.approx(0.6, abs=0.08)
    assert model.moderator_mean_[0] == pytest.approx(5 + z.mean())
    assert model.trust_ == pytest.approx(0.5 * np.exp(0.6 * z.mean()), rel=0.1)
    proba = model.predict_proba(X)
    assert proba.min() >= model.lapse_ / 2 - 1e-9
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-12)


def test_ridge_pulls_trust_towards_calibration():
    data = small(trust=0.2)
    free, tied = (HumanAITeamModel(alpha=a).fit(data.X, data.y).trust_ for a in (0.0, 200.0))
    assert free < tied < 1


def test_calibration_undoes_a_scale():
    """Log-odds reported three times too large bias trust by three, until calibrated."""
    data = make_human_ai_trials(100, 100, 0.7, 1.0, 0.2, trust=0.6, random_state=0)
    X = data.X * [1, 3]
    raw = HumanAITeamModel(calibrate=False).fit(X, data.y, y_true=data.y_true)
    clean = HumanAITeamModel().fit(X, data.y, y_true=data.y_true)
    assert clean.trust_ == pytest.approx(3 * raw.trust_, rel=0.15)
    assert clean.trust_ == pytest.approx(0.6, rel=0.25)


def test_calibration_takes_the_prior_off():
    """Exact log-likelihood ratios stay as they are where one class is four times as common."""
    data = make_human_ai_trials(200, 200, 0.7, 1.0, 0.2, random_state=0)
    truth = np.where(data.y_true == 1, 1.0, -1.0)
    keep = (truth > 0) | (np.arange(len(truth)) % 4 == 0)
    column = fit_column(data.X[keep, 0], truth[keep], np.ones(keep.sum()), "human_col", True, False)
    assert column.offset == pytest.approx(0, abs=0.06)
    assert column.slope == pytest.approx(1, abs=0.06)


def test_sides_only():
    data = make_human_ai_trials(
        80, 50, 0.6, 1.0, 0.2, trust=0.5, recommendation="binary", random_state=0
    )
    X = np.column_stack([np.where(data.initial == 1, 1.0, -1.0), data.X[:, 1]])
    model = HumanAITeamModel(recommendation="binary").fit(X, data.y, y_true=data.y_true)
    assert model.identified_["beta_confounded"] and not model.identified_["noise_scale"]
    assert model.human_capability_ == pytest.approx(0.6, abs=0.1)
    assert model.overlap_ == pytest.approx(0.2, abs=0.12)  # tetrachoric
    assert "only the human's side" in str(model.explain())
    unknown = HumanAITeamModel(recommendation="binary").fit(X, data.y)
    assert not unknown.identified_["trust"] and np.isnan(unknown.trust_ci_[0])
    full = HumanAITeamModel(recommendation="binary").fit(data.X, data.y, y_true=data.y_true)
    assert full.trust_ == pytest.approx(0.5, rel=0.25)


# --- identifiability ----------------------------------------------------------------------------


def test_one_capability_cannot_tell_trust_from_belief():
    data = small(overlap_belief=0.3)
    with pytest.raises(ValueError, match="at least two distinct relative capabilities"):
        HumanAITeamModel(overlap_belief="fit", relative_capability=1.6).fit(data.X, data.y)
    model = HumanAITeamModel(relative_capability=1.6).fit(data.X, data.y)
    flat = model.profile("overlap_belief", 7)
    assert flat["deviance"].max() < 1e-6  # the likelihood knows nothing of it
    r = 1.6
    for b in (-0.2, 0.4):
        held = HumanAITeamModel(overlap_belief=b, relative_capability=r).fit(data.X, data.y)
        assert held.loglik_ == pytest.approx(model.loglik_, abs=1e-7)
        q = held.trust_ * (1 - b / r) / (1 - b * r)
        assert q == pytest.approx(model.trust_, rel=1e-5)


def test_profile_interval_resembles_the_standard_error():
    data = small()
    model = HumanAITeamModel().fit(data.X, data.y)
    frame = model.profile("trust", 41)
    inside = frame.loc[frame["inside"], "value"]
    assert inside.min() == pytest.approx(model.trust_ci_[0], rel=0.1)
    assert inside.max() == pytest.approx(model.trust_ci_[1], rel=0.1)
    assert frame["deviance"].min() == pytest.approx(0, abs=1e-6)
    for name in ("bias", "noise_scale"):
        assert model.profile(name, 5)["deviance"].iloc[2] == pytest.approx(0, abs=1e-6)
    with pytest.raises(ValueError, match="param: got 'tau'"):
        model.profile("tau")


def test_separation_warns():
    X = np.array([[2.0, 1], [1, 2], [-1, -2], [-2, -1]] * 5)
    y = (X.sum(axis=1) > 0).astype(int)
    with pytest.warns(ConvergenceWarning):
        HumanAITeamModel().fit(X, y)


def test_reversed_advice_warns():
    data = small(trust=1.0)
    with pytest.warns(UserWarning, match="in reverse"):
        model = HumanAITeamModel().fit(data.X * [1, -1], data.y)
    assert model.trust_ < 2e-3
    with pytest.warns(UserWarning, match="coded toward the second class"):
        HumanAITeamModel(overlap_belief="neglect").fit(data.X * [-1, 1], data.y, y_true=data.y_true)


# --- latent data ----------------------------------------------------------------------------------


def test_reference_cells():
    cells = np.array(binary_cells(*map(np.array, (0.4, 0.9, 0.35, 0.25))))
    assert cells[:2] == pytest.approx([0.68736220, 0.05044673], abs=1e-8)
    assert cells[:2].sum() == pytest.approx(0.73780892, abs=1e-8)
    assert cells.sum() == pytest.approx(1, abs=1e-14)
    assert cells[0] + cells[2] == pytest.approx(ndtr(0.9), abs=1e-14)
    model = fit_from_counts((1e4 * ndtr(0.4), 1e4), [1e4 * cells])
    assert model.trust_ == pytest.approx(0.25, abs=1e-7)
    assert model.overlap_ == pytest.approx(0.35, abs=1e-7)
    assert model.human_capability_ == pytest.approx(0.4, abs=1e-7)
    assert model.goodness_of_fit_["df"] == 0
    assert not model.identified_["overlap_belief"]


def test_latent_recovery_and_goodness_of_fit():
    rng = np.random.default_rng(0)
    cells = [np.array(binary_cells(*map(np.array, (0.4, a, 0.3, 0.25)))) for a in (0.6, 1.2)]
    found = []
    for _ in range(20):
        counts = [rng.multinomial(3668, p / p.sum()) for p in cells]
        model = fit_from_counts((rng.binomial(7148, ndtr(0.4)), 7148), counts)
        found.append((model.trust_, model.overlap_, model.goodness_of_fit_["pvalue"]))
    trust, overlap, pvalue = np.mean(found, axis=0)
    assert trust == pytest.approx(0.25, abs=0.013)  # four standard errors of the mean
    assert overlap == pytest.approx(0.3, abs=0.035)
    assert 0.25 < pvalue < 0.75
    other = [cells[0] * 3668, np.array(binary_cells(*map(np.array, (0.4, 1.2, 0.3, 1.5)))) * 3668]
    wrong = fit_from_counts((7148 * ndtr(0.4), 7148), other)  # trust differs between the two
    assert wrong.goodness_of_fit_["pvalue"] < 1e-6


def test_latent_mode_counts_trials():
    data = make_human_ai_trials(
        100,
        100,
        0.5,
        0.9,
        0.3,
        trust=0.4,
        recommendation="binary",
        noise_scale=np.inf,
        random_state=0,
    )
    alone = np.arange(len(data.y)) % 2 == 0
    X = np.column_stack([np.zeros(len(data.y)), np.where(alone, 0, data.X[:, 1])])
    y = np.where(alone, data.initial, data.y)
    model = HumanAITeamModel(mode="latent", recommendation="binary")
    model.fit(X, y, y_true=data.y_true)
    right, ai_right = y == data.y_true, data.advice == data.y_true
    cells = [
        int(np.sum(~alone & (right == t) & (ai_right == a)))
        for t, a in ((1, 1), (1, 0), (0, 1), (0, 0))
    ]
    counted = fit_from_counts((int(right[alone].sum()), int(alone.sum())), [cells])
    assert model.trust_ == pytest.approx(counted.trust_, rel=1e-10)
    assert model.trust_ == pytest.approx(0.4, rel=0.2)
    assert model.overlap_ == pytest.approx(0.3, abs=0.1)
    follow = np.mean(y[~alone] == data.advice[~alone])
    proba = model.predict_proba(np.array([[0, 1.0], [0, -1.0], [0, 0]]))
    assert proba[:, 1] == pytest.approx([follow, 1 - follow, 0.5], abs=1e-6)
    assert model.phase_point().name in ("complementarity", "automation")


def test_four_options_from_counts():
    """Published rates with four options: under-trust by three to four."""
    from equipoise.games.human_ai.choices import capability_of, option_cells

    d, d_ai = (capability_of(np.array(p), 4) for p in (0.52, 0.85))
    p11, p10 = option_cells(d, d_ai, np.zeros(()), np.array(0.3039), 4)
    cells = 1e4 * np.array([p11, p10, 0.85 - p11, 0.15 - p10])
    model = fit_from_counts((5200, 10000), [cells], n_choices=4)
    assert model.undertrust_factor_ == pytest.approx(1 / 0.3039, rel=1e-5)
    assert model.goodness_of_fit_["df"] == 1
    assert np.isnan(model.overlap_) and not model.identified_["overlap"]
    assert "trust" in str(model.explain())
    with pytest.raises(ValueError, match="place isn't known"):
        model.phase_point()


def test_four_options_with_overlap():
    """Exact cells give back trust and overlap; a known overlap leaves a degree of freedom."""
    from equipoise.games.human_ai.choices import option_accuracy, option_cells

    h, a, rho, tau = map(np.array, (0.9, 1.6, 0.3, 0.4))
    p11, p10 = option_cells(h, a, rho, tau, 4)
    p_ai, p_human = option_accuracy(a, 4), float(option_accuracy(h, 4))
    cells = 1e4 * np.array([p11, p10, p_ai - p11, 1 - p_ai - p10])
    alone = (1e4 * p_human, 1e4)
    fitted = fit_from_counts(alone, [cells], n_choices=4, overlap="fit")
    assert fitted.trust_ == pytest.approx(0.4, abs=1e-4)
    assert fitted.overlap_ == pytest.approx(0.3, abs=1e-4)
    assert fitted.identified_["overlap"]
    assert fitted.goodness_of_fit_["df"] == 0
    known = fit_from_counts(alone, [cells], n_choices=4, overlap=0.3)
    assert known.trust_ == pytest.approx(0.4, abs=1e-4)
    assert known.overlap_ == 0.3 and not known.identified_["overlap"]
    assert known.goodness_of_fit_["df"] == 1
    assert known.goodness_of_fit_["G2"] < 1e-4
    assert fit_from_counts(alone, [cells], n_choices=4).trust_ != pytest.approx(0.4, abs=0.01)
    two = np.array(binary_cells(*map(np.array, (0.4, 0.9, 0.35, 0.25))))
    fixed = fit_from_counts((1e4 * ndtr(0.4), 1e4), [1e4 * two], overlap=0.35)
    assert fixed.trust_ == pytest.approx(0.25, abs=1e-6)
    assert fixed.goodness_of_fit_["df"] == 1
    for wrong in ("free", 1.0):
        with pytest.raises(ValueError, match="overlap: got"):
            fit_from_counts(alone, [cells], overlap=wrong)


def latent_trials(n_workers, n_trials, spread, seed):
    """Trials of workers whose capability differs, half of them decided alone."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_workers), n_trials)
    h = np.maximum(0.6 + spread * rng.standard_normal(n_workers), 0.0)[groups]
    truth = rng.choice([-1.0, 1.0], len(groups))
    e_a = rng.standard_normal(len(groups))
    e_h = 0.3 * e_a + math.sqrt(1 - 0.09) * rng.standard_normal(len(groups))
    advice = np.sign(truth * 0.9 + e_a)
    alone = rng.random(len(groups)) < 0.5
    k = 0.5 * math.log(ndtr(0.9) / ndtr(-0.9)) / (2 * 0.6)
    decision = np.where(truth * h + e_h + np.where(alone, 0.0, k * advice) > 0, 1, -1)
    X = np.column_stack([np.zeros(len(groups)), np.where(alone, 0.0, advice)])
    return X, decision, truth.astype(int), groups


def test_latent_errors_by_cluster_and_bootstrap():
    X, y, truth, groups = latent_trials(150, 40, 0.6, 0)
    options = {"mode": "latent", "recommendation": "binary", "random_state": 0}
    fit = {"y_true": truth, "groups": groups}
    plain, cluster, boot = (
        HumanAITeamModel(cov=cov, n_boot=150, **options).fit(X, y, **fit)
        for cov in ("information", "cluster", "bootstrap")
    )
    assert plain.trust_ == cluster.trust_ == boot.trust_
    errors = [np.sqrt(np.diag(model.cov_)) for model in (plain, cluster, boot)]
    # 150 resamples: the standard error of an error is 6 %
    np.testing.assert_allclose(errors[2], errors[1], rtol=0.3)
    # workers of one capability move together: of log h the information claims too much
    assert errors[1][0] > 1.5 * errors[0][0]
    assert boot.trust_ci_ != plain.trust_ci_
    ranked = boot.recommend_policy()
    assert ranked.to_frame()["probability_best"].sum() == pytest.approx(1, abs=1e-9)
    rows = HumanAITeamModel(cov="bootstrap", n_boot=60, **options).fit(X, y, y_true=truth)
    np.testing.assert_allclose(np.sqrt(np.diag(rows.cov_)), errors[0], rtol=0.45)
    # each trial a worker of its own: the sandwich is White's, and near the information
    alone = HumanAITeamModel(cov="cluster", **options).fit(
        X, y, y_true=truth, groups=np.arange(len(y))
    )
    np.testing.assert_allclose(np.sqrt(np.diag(alone.cov_)), errors[0], rtol=0.1)
    with pytest.raises(ValueError, match="cov: got 'cluster'; allowed with random_effects='item'"):
        HumanAITeamModel(cov="cluster", random_effects="item", **options).fit(
            X, y, items=groups, **fit
        )
    with pytest.raises(ValueError, match="groups: got None; cov='cluster'"):
        HumanAITeamModel(cov="cluster", **options).fit(X, y, y_true=truth)


@pytest.mark.parametrize(
    ("human", "cells", "message"),
    [
        ((5, 4), [[1, 1, 1, 1]], "human_alone"),
        ((40, 100), [[1, 1, 1, 1]], "not above chance"),
        ((80, 100), [[1, 1, 1]], "team_by_ai"),
        ((80, 100), [[1, 1, -1, 1]], "team_by_ai"),
        ((80, 100), [[0, 0, 0, 0]], "without a single trial"),
    ],
)
def test_bad_counts(human, cells, message):
    with pytest.raises(ValueError, match=message):
        fit_from_counts(human, cells)


# --- covariance, reports, plots -------------------------------------------------------------------


def test_bootstrap_resembles_the_sandwich():
    data = small(trust_sd=0.8)
    options = {"groups": data.groups, "y_true": data.y_true}
    cluster = HumanAITeamModel(cov="cluster").fit(data.X, data.y, **options)
    boot = HumanAITeamModel(cov="bootstrap", n_boot=100, random_state=0).fit(
        data.X, data.y, **options
    )
    k = cluster.parameter_names_.index("trust")
    assert math.sqrt(boot.cov_[k, k]) == pytest.approx(math.sqrt(cluster.cov_[k, k]), rel=0.4)
    again = clone(boot).fit(data.X, data.y, **options)
    np.testing.assert_array_equal(boot.cov_, again.cov_)
    rows = HumanAITeamModel(cov="bootstrap", n_boot=20, random_state=0).fit(data.X, data.y)
    assert np.isfinite(rows.trust_ci_).all()


def test_policies():
    data = make_human_ai_trials(80, 50, 0.6, 0.4, 0.5, trust=1.0, random_state=1)
    model = HumanAITeamModel(random_state=0, n_boot=200).fit(
        data.X, data.y, y_true=data.y_true, groups=data.groups
    )
    report = model.recommend_policy()
    frame = report.to_frame().set_index("policy")
    assert report.best == frame.index[0]
    assert frame["utility"].is_monotonic_decreasing
    assert frame["probability_best"].sum() == pytest.approx(1)
    for policy, row in frame.iterrows():
        expected = policy_accuracy(
            policy,
            model.human_capability_,
            model.ai_capability_,
            model.overlap_,
            trust=model.trust_,
            threshold=0.0 if np.isnan(row["threshold"]) else row["threshold"],
        )
        assert row["accuracy"] == pytest.approx(expected, abs=1e-12)
        assert row["low"] <= row["utility"] <= row["high"]
    dear = model.recommend_policy({"human": 0.5}).to_frame().set_index("policy")
    assert dear.index[0] == "ai" and dear.loc["human", "cost"] == 0.5
    assert dear.loc["defer", "cost"] < 0.5
    with pytest.raises(ValueError, match="costs: got"):
        model.recommend_policy({"robot": 1})
    with pytest.raises(ValueError, match="policies: got"):
        model.recommend_policy(policies=["pray"])
    with pytest.raises(ValueError, match="system: got 3"):
        model.phase_point(3)


def test_policy_beats_always_assisting_out_of_sample():
    """The recommended policy, valued at the truth, where assistance hurts or is dominated."""
    for h, a, rho, tau in ((0.6, 0.3, 0.7, 1.0), (0.5, 1.4, 0.5, 0.25)):
        data = make_human_ai_trials(100, 40, h, a, rho, trust=tau, random_state=0)
        model = HumanAITeamModel(n_boot=50, random_state=0).fit(data.X, data.y, y_true=data.y_true)
        deployable = ["human", "ai", "assist", "assist_confident", "defer", "defer_assist"]
        report = model.recommend_policy(policies=deployable)
        row = report.to_frame().iloc[0]
        value = policy_accuracy(
            report.best, h, a, rho, trust=tau, threshold=np.nan_to_num(row["threshold"])
        )
        assert value > team_accuracy(h, a, rho, trust=tau) + 0.005


def test_explanation_and_plots():
    data = small(trust_sd=0.8, n_workers=20)
    model = HumanAITeamModel(random_effects="trust", random_state=0, n_boot=50).fit(
        data.X, data.y, y_true=data.y_true, groups=data.groups
    )
    explanation = model.explain()
    table = explanation.to_frame().set_index("quantity")["value"]
    effect = table["team_accuracy"] - table["human_accuracy"]
    assert table["information_value"] - table["penalty"] == pytest.approx(effect, abs=1e-12)
    assert table["human_accuracy"] == pytest.approx(human_accuracy(model.human_capability_))
    assert f"region: {model.phase_point().name}" in str(explanation)
    assert "over workers: team" in str(explanation)
    everyone = population_effect(
        model.human_capability_,
        model.ai_capability_,
        model.overlap_,
        trust=model.trust_,
        trust_sd=model.trust_sd_,
    )
    assert table["team_accuracy_of_all"] == pytest.approx(everyone.team, abs=1e-12)
    for kind in ("phase", "accuracy", "reliance", "worker_trust"):
        ax = Figure().add_subplot()
        assert explanation.plot(kind, ax) is ax
    ax = Figure().add_subplot()
    assert model.recommend_policy().plot(ax=ax) is ax
    twin = pickle.loads(pickle.dumps(model))
    assert str(twin.explain()) == str(explanation)
    bare = HumanAITeamModel().fit(data.X, data.y).explain()
    assert "not known without y_true" in str(bare)
    with pytest.raises(ValueError, match="allowed: \\['reliance'\\]"):
        bare.plot("phase")


# --- scikit-learn's contract ----------------------------------------------------------------------


def test_frames_names_and_classes():
    data = small()
    names = ["note", "me", "machine"]
    X = np.column_stack([data.X[:, 0] * 0 + np.arange(len(data.y)) % 3, data.X])
    frame = pd.DataFrame(X, columns=names)
    y, truth = (np.where(v == 1, "yes", "no") for v in (data.y, data.y_true))
    model = HumanAITeamModel(human_col="me", ai_col="machine").fit(frame, y, y_true=truth)
    assert model.feature_names_in_.tolist() == names
    assert set(model.predict(frame)) <= {"yes", "no"}
    by_position = HumanAITeamModel(human_col=1, ai_col=2).fit(X, y, y_true=truth)
    assert by_position.trust_ == model.trust_
    polars = pytest.importorskip("polars")
    again = clone(model).fit(polars.DataFrame(X, schema=names), y, y_true=truth)
    assert again.trust_ == model.trust_
    refit = HumanAITeamModel().fit(frame[["me", "machine"]], y)
    refit.fit(X[:, 1:], y)
    assert not hasattr(refit, "feature_names_in_")


def test_grid_search_with_routed_metadata():
    data = small()
    with sklearn.config_context(enable_metadata_routing=True):
        model = HumanAITeamModel().set_fit_request(y_true=True, groups=True)
        search = GridSearchCV(model, {"fit_bias": [True, False]}, cv=2)
        search.fit(data.X, data.y, y_true=data.y_true, groups=data.groups)
    assert np.isfinite(search.best_estimator_.human_capability_)
    pipeline = make_pipeline(FunctionTransformer(), HumanAITeamModel())
    assert pipeline.fit(data.X, data.y).score(data.X, data.y) > 0.6


def test_prediction_with_several_systems():
    data = make_human_ai_trials(
        60, 40, 1.0, [0.6, 1.8], 0.3, trust=0.5, overlap_belief=0.3, random_state=0
    )
    r = data.relative_capability
    model = HumanAITeamModel(overlap_belief=0.3).fit(
        data.X, data.y, y_true=data.y_true, relative_capability=r
    )
    assert model.ai_capability_.shape == model.overlap_.shape == (2,)
    assert model.phase_point(1).ai > model.phase_point(0).ai
    with pytest.raises(ValueError, match="relative_capability: got None"):
        model.predict(data.X)
    assert model.score(data.X, data.y, relative_capability=r) > 0.7
    p = model.predict_proba(data.X, r)[:, 1]
    structural = -np.mean(np.log(np.where(data.y == 1, p, 1 - p)))
    peer = LogisticRegression(C=np.inf).fit(data.X, data.y).predict_proba(data.X)[:, 1]
    plain = -np.mean(np.log(np.where(data.y == 1, peer, 1 - peer)))
    assert structural < plain  # it knows how the weights depend on r


@pytest.mark.parametrize(
    ("options", "fit", "message"),
    [
        ({"random_effects": "trust"}, {}, "groups: got None; random_effects"),
        ({"cov": "cluster"}, {}, "groups: got None; cov='cluster'"),
        ({"cov": "cluster"}, {"groups": np.zeros(1600)}, "groups: got one worker"),
        ({"overlap_belief": 0.3}, {}, "reads the relative capability"),
        ({"overlap_belief": 0.3, "recommendation": "binary"}, {}, "reads both capabilities"),
        ({"penalty": "firth", "alpha": 1.0}, {}, "alpha: got 1.0; allowed with penalty='firth'"),
        ({"penalty": "firth", "lapse": "fit"}, {}, "lapse: got 'fit'; allowed with penalty="),
        ({"random_effects": "item"}, {}, "random_effects: got 'item'; allowed with mode="),
        ({"n_choices": 4}, {}, "fit_from_counts"),
        ({"mode": "latent"}, {}, "y_true: got None"),
        ({}, {"y_true": np.zeros(1600, dtype=int)}, "y_true: got one class"),
        ({}, {"y_true": np.full(1600, 2)}, "y_true: got"),
        ({}, {"relative_capability": -1.0}, "relative_capability: allowed: positive"),
        ({}, {"relative_capability": [1.0, 2.0]}, "inconsistent length"),
        ({}, {"sample_weight": np.zeros(1600)}, "Sample weights"),
        ({"human_col": 5}, {}, "human_col: got 5"),
        ({"human_col": "me"}, {}, "human_col: got 'me'"),
        ({"ai_col": 0}, {}, "the same column"),
        ({"lapse": 1.0}, {}, "lapse"),
        ({"relative_capability": 0.0}, {}, "relative_capability"),
    ],
)
def test_errors(options, fit, message):
    data = small()
    with pytest.raises(ValueError, match=message):
        HumanAITeamModel(**options).fit(data.X, data.y, **fit)


def test_more_errors():
    data = small()
    model = HumanAITeamModel().fit(data.X, data.y)
    X = data.X.copy()
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN in column 1 \(ai_col\)"):
        model.fit(X, data.y)
    with pytest.raises(ValueError, match="infinity in column 'me'"):
        HumanAITeamModel().fit(
            pd.DataFrame({"me": [np.inf, 1, -1, 0], "machine": [1.0, 2, 3, 4]}), [0, 1, 0, 1]
        )
    with pytest.raises(ValueError, match="one class"):
        model.fit(data.X, np.ones(len(data.y)))
    with pytest.raises(ValueError, match="1 feature"):
        model.fit(data.X[:, :1], data.y)
    with pytest.raises(ValueError, match="Only binary"):
        model.fit(data.X, np.arange(len(data.y)) % 3)
    assert np.isfinite(model.trust_)
    with pytest.raises(ValueError, match="isn't known"):
        model.phase_point()
    with pytest.raises(ValueError, match="decided alone"):
        HumanAITeamModel(mode="latent").fit(data.X, data.y, y_true=data.y_true)


def test_score_of_a_population_is_the_slope_of_its_likelihood():
    """Every component, with both random effects, belief and lapse free; 41 x 41 nodes."""
    data = small(n_workers=8, n_trials=25, trust_sd=0.8)
    rng = np.random.default_rng(0)
    V = np.column_stack([np.ones(200), rng.normal(size=200)])
    trials = trials_of(data.X, data.y, V, rng.uniform(0.6, 1.8, 200), rng.uniform(0.5, 2, 200))
    starts = np.arange(0, 201, 25)
    nodes, log_weights = quadrature(41, 2)
    theta = np.array([0.1, 0.2, -0.5, 0.3, 0.2, -2.0, -0.4, -0.7])

    def integrals(t):
        return worker_integrals(
            starts,
            *trials.arrays(np.tanh(t[4]), True),
            t[0],
            np.exp(t[1]),
            t[2:4].copy(),
            expit(t[5]),
            np.exp(t[6]),
            np.exp(t[7]),
            nodes,
            log_weights,
            2,
            np.zeros((8, 2)),
        )

    loglik, score, mean, variance = integrals(theta)
    steps = 1e-4 * np.eye(8)
    numeric = [(integrals(theta + s)[0] - integrals(theta - s)[0]) / 2e-4 for s in steps]
    np.testing.assert_allclose(score.T, numeric, atol=1e-5)
    assert loglik.shape == (8,) and mean.shape == variance.shape == (8, 2)
    assert (variance > 0).all() and (variance < 1.5).all()
