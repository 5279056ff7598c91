"""Accuracies, trust, decomposition and policies against brute force and reference values."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import multivariate_normal, norm

from equipoise.games import (
    ai_accuracy,
    bvn_cdf,
    decompose_effect,
    human_accuracy,
    optimal_accuracy,
    optimal_trust,
    policy_accuracy,
    team_accuracy,
)
from equipoise.games.human_ai.bivariate import lower_tail, owen_arguments
from equipoise.games.human_ai.choices import capability_of, option_cells
from equipoise.games.human_ai.policies import best_threshold
from equipoise.testing import deployments

few = settings(max_examples=60, deadline=None)
ABS = 1e-8  # the tolerance of the reference values
real = st.floats(-6, 6)
inner = st.floats(-0.999, 0.999)


def bvn_by_quadrature(x, y, rho):
    """P(X <= x, Y <= y) as a one-dimensional integral."""
    s = math.sqrt((1 - rho) * (1 + rho))
    value, _ = quad(
        lambda t: math.exp(-t * t / 2) * ndtr((x - rho * t) / s) / math.sqrt(2 * math.pi),
        -np.inf if y < 9 else -12,
        min(y, 12),
        epsabs=1e-14,
        epsrel=1e-12,
        limit=400,
    )
    return value


def simulated(h, a, rho, tau, n=200_000, recommendation="probabilistic", belief=0.0, prior=0.5):
    """Accuracy of a simulated worker, decided trial by trial."""
    rng = np.random.default_rng(7)
    y = np.where(rng.random(n) < prior, 1.0, -1.0)
    e_h, other = rng.standard_normal((2, n))
    x_h = y * h + e_h
    x_a = y * a + rho * e_h + math.sqrt(1 - rho**2) * other
    l0, b = math.log(prior / (1 - prior)), belief
    if recommendation == "probabilistic":
        r = a / h
        evidence = ((1 - b * r) * 2 * h * x_h + tau * (1 - b / r) * 2 * a * x_a) / (1 - b * b)
    else:
        c, s = -l0 / (2 * a), math.sqrt(1 - b * b)
        side = np.where(x_a > c, 1.0, -1.0)
        given_plus = norm.logcdf(side * (a + b * (x_h - h) - c) / s)
        given_minus = norm.logcdf(side * (-a + b * (x_h + h) - c) / s)
        evidence = 2 * h * x_h + tau * (given_plus - given_minus)
    return float(np.mean(np.sign(l0 + evidence) == y)), 0.5 / math.sqrt(n)


# --- the bivariate normal ---------------------------------------------------------------------


@few
@given(real, real, inner)
def test_bvn_agrees_with_quadrature(x, y, rho):
    assert bvn_cdf(x, y, rho) == pytest.approx(bvn_by_quadrature(x, y, rho), abs=1e-13)


def test_bvn_agrees_with_scipy():
    rng = np.random.default_rng(0)
    for x, y, rho in zip(*rng.uniform(-3, 3, (2, 20)), rng.uniform(-0.98, 0.98, 20), strict=True):
        theirs = multivariate_normal([0, 0], [[1, rho], [rho, 1]]).cdf([x, y])
        assert bvn_cdf(x, y, rho) == pytest.approx(theirs, abs=1e-9)


@few
@given(real, real, inner)
def test_bvn_identities(x, y, rho):
    assert bvn_cdf(x, y, rho) == pytest.approx(bvn_cdf(y, x, rho), abs=1e-15)
    assert bvn_cdf(x, y, 0.0) == pytest.approx(norm.cdf(x) * norm.cdf(y), abs=1e-14)
    assert bvn_cdf(x, np.inf, rho) == pytest.approx(norm.cdf(x), abs=1e-15)
    assert bvn_cdf(x, -np.inf, rho) == 0
    assert bvn_cdf(x, y, rho) + bvn_cdf(x, -y, -rho) == pytest.approx(norm.cdf(x), abs=1e-14)


def test_bvn_edges():
    assert bvn_cdf(0, 0, 0.5) == pytest.approx(1 / 3, abs=1e-15)
    assert bvn_cdf(0, 0.7, -0.4) == pytest.approx(bvn_by_quadrature(0, 0.7, -0.4), abs=1e-13)
    assert bvn_cdf(0, -0.7, 0.4) == pytest.approx(bvn_by_quadrature(0, -0.7, 0.4), abs=1e-13)
    assert bvn_cdf(0.3, 1.2, 1.0) == pytest.approx(norm.cdf(0.3), abs=1e-15)
    assert bvn_cdf(0.3, 1.2, -1.0) == pytest.approx(norm.cdf(0.3) + norm.cdf(1.2) - 1, abs=1e-15)
    assert bvn_cdf(-2, 1, -1.0) == 0
    assert bvn_cdf(1e-298, -1e-298, 0.0) == pytest.approx(0.25, abs=1e-15)  # products underflow
    near = bvn_cdf(0.5, 0.5 + 1e-9, 1 - 1e-14)  # the slopes cancel unless formed with care
    assert near == pytest.approx(norm.cdf(0.5), abs=1e-7)


def test_owen_kernel_agrees_with_numpy():
    """A few lines of NumPy for the parts of Owen's identity that the kernel computes."""
    x, y, rho = np.random.default_rng(1).normal(size=(3, 50))
    rho = np.tanh(rho)
    part, first, second = owen_arguments(x, y, rho)
    s = np.sqrt(1 - rho**2)
    expected = (norm.cdf(x) + norm.cdf(y)) / 2 - np.where(x * y > 0, 0, 0.5)
    np.testing.assert_allclose(part, expected, atol=1e-15)
    np.testing.assert_allclose(first, (y - rho * x) / (x * s), rtol=1e-10)
    np.testing.assert_allclose(second, (x - rho * y) / (y * s), rtol=1e-10)


def test_lower_tail_keeps_relative_accuracy():
    mp = pytest.importorskip("mpmath")
    with mp.workdps(30):
        for x, y, rho in [(-3, -8, 0.5), (2, -7, -0.9), (-9, -1, 0.3), (-6.6, -4.4, -0.93)]:
            guess = float(lower_tail(np.array(x), np.array(y), np.array(rho)))
            s = mp.sqrt(1 - mp.mpf(rho) ** 2)
            # Scaled by the guess: mpmath's quadrature stops at an absolute error.
            ratio = mp.quad(
                lambda t, x=x, rho=rho, s=s, guess=guess: (
                    mp.npdf(t) * mp.erfc(-(x - rho * t) / s / mp.sqrt(2)) / 2 / guess
                ),
                [y - k for k in range(45, -1, -1)],
            )
            assert float(ratio) == pytest.approx(1, abs=1e-11)


# --- reference values ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("point", "probabilistic", "optimal", "binary"),
    [
        ((0.5, 0.8, 0.3, 1), 0.79877160, 0.80098764, 0.79036535),
        ((0.5, 0.3, 0.8, 1), 0.67236095, 0.70091927, 0.65793141),
        ((0.5, 1.5, 0.3, 0.25), 0.87399367, 0.93331129, 0.84302321),
        ((1, 0.6, 0.5, 2), 0.81634537, 0.84294720, 0.79092664),
    ],
)
def test_reference_accuracies(point, probabilistic, optimal, binary):
    h, a, rho, tau = point
    assert team_accuracy(h, a, rho, trust=tau) == pytest.approx(probabilistic, abs=ABS)
    assert optimal_accuracy(h, a, rho) == pytest.approx(optimal, abs=ABS)
    team = team_accuracy(h, a, rho, trust=tau, recommendation="binary")
    assert team == pytest.approx(binary, abs=ABS)


def test_reference_accuracies_alone():
    assert human_accuracy(0.5) == pytest.approx(0.691462461, abs=1e-9)
    assert ai_accuracy([0.8, 0.3]) == pytest.approx([0.788144601, 0.617911422], abs=1e-9)


def test_reference_prior():
    team = lambda **options: team_accuracy(0.5, 0.8, 0.3, prior=0.7, **options)  # noqa: E731
    assert team() == pytest.approx(0.825079314882, abs=1e-11)
    assert team(overlap_belief=0.3) == pytest.approx(0.828001993392, abs=1e-11)
    assert team(recommendation="binary") == pytest.approx(0.819424862128, abs=1e-11)
    late = team(recommendation="binary", trust=0.25)
    assert late == pytest.approx(0.780555513067, abs=1e-11)


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        ((0.5, 0.8, 0.3, 1, 0.3), 0.791174637765),
        ((0.5, 0.8, 0.3, 0.25, 0.3), 0.736367270166),
        ((1, 0.6, 0.5, 1, 0.5), 0.842398359999),
    ],
)
def test_reference_binary_with_belief(point, expected):
    h, a, rho, tau, belief = point
    team = team_accuracy(h, a, rho, trust=tau, overlap_belief=belief, recommendation="binary")
    assert team == pytest.approx(expected, abs=1e-11)


def test_reference_optimal_trust():
    assert optimal_trust(0.5, 0.9, 0.2) == pytest.approx(1.388888889, abs=1e-9)
    assert optimal_trust(0.9, 0.5, 0.2) == pytest.approx(0.72, abs=1e-12)
    assert optimal_accuracy(0.5, 0.9, 0.2) == pytest.approx(0.830824139219, abs=1e-11)
    assert team_accuracy(0.5, 0.9, 0.2) == pytest.approx(0.829428204567, abs=1e-11)


def test_reference_decomposition():
    effect = decompose_effect(0.5, 0.8, 0.3, trust=0.25)
    assert effect.team - effect.human == pytest.approx(0.064391074578, abs=1e-11)
    assert effect.information_value == pytest.approx(0.109525178973, abs=1e-11)
    assert effect.penalty == pytest.approx(0.045134104395, abs=1e-11)


def test_reference_cues():
    h, a, shared = 0.6, math.sqrt(0.69), 0.2
    effect = decompose_effect(h, a, shared / h**2, overlap_kind="cue")
    assert effect.team == pytest.approx(0.808389684357, abs=1e-11)
    assert effect.optimal == pytest.approx(0.810625749606, abs=1e-11)
    assert effect.pooled_cues == pytest.approx(0.821723831116, abs=1e-11)
    by_correlation = team_accuracy(h, a, 0.401286176953)
    assert by_correlation == pytest.approx(effect.team, abs=1e-11)


def test_reference_options():
    d = float(capability_of(np.array(0.52), 4))
    assert d == pytest.approx(0.8993245015530, abs=1e-9)
    for p_ai, tau in ((0.80, 0.4013), (0.85, 0.3039), (0.90, 0.2322)):
        d_ai = float(capability_of(np.array(p_ai), 4))
        team = team_accuracy(d, d_ai, 0, trust=tau, recommendation="binary", n_choices=4)
        assert team == pytest.approx(0.73, abs=5e-5)
    d_ai = float(capability_of(np.array(0.85), 4))
    team = team_accuracy(d, d_ai, 0, trust=0.25, recommendation="binary", n_choices=4)
    assert team == pytest.approx(0.699928740331, abs=1e-10)
    d_ai = float(capability_of(np.array(0.7), 3))
    team = team_accuracy(0.8, d_ai, 0, trust=0.5, recommendation="binary", n_choices=3)
    assert team == pytest.approx(0.693647356465, abs=1e-10)


def test_reference_policies():
    show = policy_accuracy("assist_confident", 0.6, 0.4, 0.5, threshold=[0.0, 1.0, 2.0])
    assert show == pytest.approx([0.7245729978, 0.7262049981, 0.7258424140], abs=1e-9)
    assert show[0] < policy_accuracy("human", 0.6, 0.4, 0.5) < show[1]
    first, second = policy_accuracy(
        "assist_confident", 0.5, 1.2, 0.3, trust=0.25, threshold=[0.0, 0.2]
    )
    assert first == pytest.approx(0.8238769132, abs=1e-9) and second < first

    def defer(c):
        return policy_accuracy("defer", 0.5, 0.8, 0.3, threshold=c)

    assert defer(0.47) == pytest.approx(0.796936029184, abs=1e-11)
    best = best_threshold(defer, 0.8)
    grid = np.arange(0, 4, 0.01)
    assert best == pytest.approx(grid[np.argmax(defer(grid))], abs=0.01)
    assert defer(best) >= defer(grid).max()


# --- invariants ---------------------------------------------------------------------------------


@few
@given(deployments(), st.sampled_from(["probabilistic", "binary"]))
def test_no_trust_is_the_human_and_full_trust_the_ai(point, recommendation):
    h, a, rho, _ = point
    nothing = team_accuracy(h, a, rho, trust=0, recommendation=recommendation)
    assert nothing == pytest.approx(human_accuracy(h), abs=1e-12)
    everything = team_accuracy(h, a, rho, trust=1e8, recommendation=recommendation)
    assert everything == pytest.approx(ai_accuracy(a), abs=1e-6)


@few
@given(deployments(), st.floats(-0.9, 0.9), st.floats(0.05, 0.95))
def test_nothing_beats_the_optimal_fusion(point, belief, prior):
    h, a, rho, tau = point
    best = optimal_accuracy(h, a, rho, prior=prior)
    team = team_accuracy(h, a, rho, trust=tau, overlap_belief=belief, prior=prior)
    assert team <= best + 1e-12
    assert best >= max(human_accuracy(h, prior), ai_accuracy(a, prior)) - 1e-12
    correct = team_accuracy(h, a, rho, overlap_belief=rho, prior=prior)
    assert correct == pytest.approx(best, abs=1e-12)


@few
@given(deployments(overlap_kind="cue"))
def test_optimal_trust_reaches_the_fusion(point):
    h, a, overlap, _ = point
    assume(overlap < 0.999)
    tau = optimal_trust(h, a, overlap, "cue")
    team = team_accuracy(h, a, overlap, trust=tau, overlap_kind="cue")
    assert team == pytest.approx(optimal_accuracy(h, a, overlap, overlap_kind="cue"), abs=1e-10)
    r, o = a / h, overlap
    closed = (1 - o / r**2) / (1 - o) if r >= 1 else (1 - o) / (1 - o * r**2)
    assert tau == pytest.approx(closed, rel=1e-9)


def test_optimal_trust_outside_the_usual_range():
    """Where a weight of the fusion would be negative, no trust beats ignoring, or following."""
    for h, a, rho, expected in ((1.0, 0.3, 0.5, 0.0), (0.5, 2.0, 0.4, np.inf)):
        assert optimal_trust(h, a, rho) == expected
        best = human_accuracy(h) if expected == 0 else ai_accuracy(a)
        grid = team_accuracy(h, a, rho, trust=np.linspace(0, 50, 2001))
        assert grid.max() <= best + 1e-12 < optimal_accuracy(h, a, rho)


@few
@given(deployments(), st.sampled_from(["probabilistic", "binary"]), st.floats(0.05, 0.95))
def test_sides_can_be_exchanged(point, recommendation, prior):
    h, a, rho, tau = point
    options = {"trust": tau, "recommendation": recommendation}
    first = team_accuracy(h, a, rho, prior=prior, **options)
    second = team_accuracy(h, a, rho, prior=1 - prior, **options)
    assert first == pytest.approx(second, abs=1e-12)


@few
@given(deployments(), inner)
def test_overlap_never_helps_a_neglecting_worker(point, other):
    h, a, rho, tau = point
    low, high = sorted((rho, other))
    assert team_accuracy(h, a, low, trust=tau) >= team_accuracy(h, a, high, trust=tau) - 1e-12


@few
@given(deployments())
def test_binary_advice_without_overlap_never_hurts(point):
    h, a, _, _ = point
    team = team_accuracy(h, a, 0.0, recommendation="binary")
    assert team >= max(human_accuracy(h), ai_accuracy(a)) - 1e-12


@settings(max_examples=25, deadline=None)
@given(
    deployments(),
    st.sampled_from(["probabilistic", "binary"]),
    st.floats(-0.8, 0.8),
    st.floats(0.2, 0.8),
)
def test_simulation_agrees(point, recommendation, belief, prior):
    """5 standard errors: one false alarm in two million examples."""
    h, a, rho, tau = point
    closed = team_accuracy(
        h, a, rho, trust=tau, overlap_belief=belief, recommendation=recommendation, prior=prior
    )
    value, error = simulated(h, a, rho, tau, 100_000, recommendation, belief, prior)
    assert closed == pytest.approx(value, abs=5 * error)


@few
@given(deployments(), st.floats(-0.9, 0.9), st.sampled_from(["probabilistic", "binary"]))
def test_decomposition_adds_up(point, belief, recommendation):
    h, a, rho, tau = point
    effect = decompose_effect(
        h, a, rho, trust=tau, overlap_belief=belief, recommendation=recommendation
    )
    whole = effect.information_value - effect.penalty
    assert whole == pytest.approx(effect.team - effect.human, abs=1e-12)
    shares = effect.penalty_trust + effect.penalty_overlap
    assert shares == pytest.approx(effect.penalty, abs=1e-12)
    assert min(effect.information_value, effect.penalty) >= -1e-9
    assert (
        np.isnan(effect.pooled_cues)
        or effect.pooled_cues >= effect.optimal - 1e-9
        or (recommendation == "probabilistic")
    )


@few
@given(deployments(overlap_kind="cue"))
def test_pooled_cues_are_the_ceiling(point):
    h, a, overlap, tau = point
    effect = decompose_effect(h, a, overlap, trust=tau, overlap_kind="cue")
    assert effect.pooled_cues >= effect.optimal - 1e-12
    if overlap in (0.0, 1.0):
        assert effect.pooled_cues == pytest.approx(effect.optimal, abs=1e-12)


@few
@given(st.floats(0.1, 3), st.floats(0.1, 3), st.floats(0, 3))
def test_two_options_are_the_binary_case(h, a, tau):
    d, d_ai = (np.array(math.sqrt(2) * value) for value in (h, a))
    team = np.add(*option_cells(d, d_ai, np.zeros(()), np.array(tau), 2))
    expected = team_accuracy(h, a, 0, trust=tau, recommendation="binary")
    assert team == pytest.approx(expected, abs=1e-10)


def test_correlated_options():
    """Quasi-Monte Carlo: two options have a closed form, and zero overlap an integral."""
    d, d_ai, tau = (np.array(v) for v in (0.9, 1.6, 0.6))
    cells = option_cells(d, d_ai, np.array(0.4), tau, 2)
    h, a = d / math.sqrt(2), d_ai / math.sqrt(2)
    expected = team_accuracy(h, a, 0.4, trust=tau, recommendation="binary")
    assert np.add(*cells) == pytest.approx(expected, abs=2e-5)
    near, exact = (option_cells(d, d_ai, np.array(rho), tau, 4) for rho in (1e-9, 0.0))
    np.testing.assert_allclose(near, exact, atol=1e-4)
    one, four = (
        team_accuracy(0.9, 1.2, rho, recommendation="binary", n_choices=4) for rho in (0.1, 0.6)
    )
    assert four < one


@settings(max_examples=30, deadline=None)
@given(
    deployments(),
    st.floats(0, 3),
    st.sampled_from(["assist_confident", "defer", "defer_assist", "assist"]),
    st.sampled_from(["probabilistic", "binary"]),
)
def test_policies_agree_with_quadrature(point, c, policy, recommendation):
    h, a, rho, tau = point
    s, k = math.sqrt(1 - rho**2), tau * math.log(norm.cdf(a) / norm.cdf(-a)) / (2 * h)

    def human_right(x, cut):
        """P(x_H > cut | x_A = x, y = +1)."""
        return ndtr((h + rho * (x - a) - cut) / s)

    def right(x):
        confident = 2 * a * abs(x) > c
        advised = (
            human_right(x, -tau * a * x / h)
            if recommendation == "probabilistic"
            else human_right(x, -k if x > 0 else k)
        )
        alone = human_right(x, 0.0)
        return {
            "assist": advised,
            "assist_confident": advised if confident else alone,
            "defer": float(x > 0) if confident else alone,
            "defer_assist": float(x > 0) if confident else advised,
        }[policy]

    cut = c / (2 * a)
    ends = sorted({a - 10, a + 10, *(p for p in (-cut, 0.0, cut) if abs(p - a) < 10)})
    expected = sum(
        quad(
            lambda x: math.exp(-((x - a) ** 2) / 2) / math.sqrt(2 * math.pi) * right(x),
            low,
            high,
            epsabs=1e-12,
            limit=200,
        )[0]
        for low, high in pairwise(ends)
    )
    value = policy_accuracy(
        policy, h, a, rho, threshold=c, trust=tau, recommendation=recommendation
    )
    assert value == pytest.approx(expected, abs=1e-8)


# --- limits and errors --------------------------------------------------------------------------


@pytest.mark.parametrize("recommendation", ["probabilistic", "binary"])
@pytest.mark.parametrize("belief", [0.0, 0.4])
def test_sides_without_capability(recommendation, belief):
    options = {"recommendation": recommendation, "overlap_belief": belief}
    assert team_accuracy(0, 0.8, 0.3, **options) == pytest.approx(ai_accuracy(0.8), abs=1e-12)
    assert team_accuracy(0, 0.8, 0.3, trust=0, **options) == 0.5
    for tau in (0.0, 0.3, 5.0):
        team = team_accuracy(0.7, 0, 0.3, trust=tau, **options)
        assert team == pytest.approx(human_accuracy(0.7), abs=1e-12)
        both = team_accuracy(0, 0, 0.3, trust=tau, prior=0.7, **options)
        assert both == pytest.approx(0.7, abs=1e-12)
    assert human_accuracy(0.0, prior=0.7) == pytest.approx(0.7)
    assert optimal_accuracy(0, 0.8, 0.3) == pytest.approx(ai_accuracy(0.8), abs=1e-14)


@pytest.mark.parametrize("recommendation", ["probabilistic", "binary"])
def test_one_and_the_same_signal(recommendation):
    """Cue overlap of one at equal capabilities: correlation one, no NaN, nothing to gain."""
    options = {"overlap_kind": "cue", "recommendation": recommendation}
    for belief in (0.0, 1.0):
        team = team_accuracy(0.6, 0.6, 1.0, overlap_belief=belief, **options)
        assert team == pytest.approx(human_accuracy(0.6), abs=1e-9)
    assert optimal_accuracy(0.6, 0.6, 1.0, overlap_kind="cue") == pytest.approx(human_accuracy(0.6))


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((-0.1, 1, 0), {}, "h: got -0.1"),
        ((1, -1, 0), {}, "a: got -1"),
        ((1, 1, 1.0), {}, r"overlap: got 1.0; allowed: \(-1, 1\)"),
        ((1, 1, -0.1), {"overlap_kind": "cue"}, r"overlap: got -0.1; allowed: \[0, 1\]"),
        ((1, 1, 0), {"trust": -1}, "trust: got -1"),
        ((1, 1, 0), {"trust": np.nan}, "trust: got nan"),
        ((1, 1, 0), {"overlap_belief": 1}, "overlap_belief"),
        ((1, 1, 0), {"prior": 0}, "prior: got 0.0"),
        ((np.inf, 1, 0), {}, "h: got inf"),
        ((1, 1, 0), {"recommendation": "spoken"}, "recommendation: got 'spoken'"),
        ((1, 1, 0), {"overlap_kind": "share"}, "overlap_kind: got 'share'"),
        ((1, 1, 0), {"n_choices": 1}, "n_choices: got 1"),
        ((1, 1, 0), {"n_choices": 4}, "recommendation: got 'probabilistic'"),
        ((1, 1, 0), {"n_choices": 4, "recommendation": "binary", "prior": 0.6}, "prior"),
        (
            (1, 1, 0),
            {"n_choices": 4, "recommendation": "binary", "overlap_belief": 0.1},
            "overlap_belief",
        ),
    ],
)
def test_errors(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        team_accuracy(*arguments, **options)


def test_other_errors():
    with pytest.raises(ValueError, match=r"rho: got 1.5; allowed: \[-1, 1\]"):
        bvn_cdf(0, 0, 1.5)
    with pytest.raises(ValueError, match=r"x: got nan"):
        bvn_cdf(np.nan, 0, 0)
    with pytest.raises(ValueError, match="policy: got 'guess'"):
        policy_accuracy("guess", 1, 1, 0)
    with pytest.raises(ValueError, match="overlap_belief"):
        policy_accuracy("assist", 1, 1, 0, overlap_belief=1.2, recommendation="binary")
    with pytest.raises(ValueError, match=r"prior: got 0\.6"):
        human_accuracy(1, prior=0.6, n_choices=3)


def test_large_arrays_are_split():
    """Blocks change nothing."""
    import sklearn

    h, a = np.linspace(0.1, 2, 60)[:, None], np.linspace(0.1, 2, 40)
    for options in ({}, {"recommendation": "binary"}, {"recommendation": "binary", "prior": 0.4}):
        whole = team_accuracy(h, a, 0.3, **options)
        with sklearn.config_context(working_memory=0.01):
            np.testing.assert_array_equal(team_accuracy(h, a, 0.3, **options), whole)


@pytest.mark.parametrize("policy", ["assist", "assist_confident", "defer_assist"])
def test_policies_of_believing_workers_with_binary_advice(policy):
    """Always assisting is the team; all by 400,000 simulated trials, five standard errors."""
    h, a, rho, tau, belief, c = 0.6, 0.9, 0.3, 1.4, 0.45, 1.0
    options = {"trust": tau, "overlap_belief": belief, "recommendation": "binary"}
    value = policy_accuracy(policy, h, a, rho, threshold=c, **options)
    if policy == "assist":
        assert value == pytest.approx(team_accuracy(h, a, rho, **options), abs=1e-12)
    rng = np.random.default_rng(0)
    n = 400_000
    y = rng.choice([-1.0, 1.0], n)
    e, other = rng.standard_normal((2, n))
    x_h, x_a = y * h + e, y * a + rho * e + np.sqrt(1 - rho**2) * other
    s, side = np.sqrt(1 - belief**2), np.sign(x_a)
    given = [ndtr(side * (t * a + belief * (x_h - t * h)) / s) for t in (1, -1)]
    with_advice = np.sign(2 * h * x_h + tau * np.log(given[0] / given[1]))
    confident = np.abs(2 * a * x_a) > c
    decision = {
        "assist": with_advice,
        "assist_confident": np.where(confident, with_advice, np.sign(x_h)),
        "defer_assist": np.where(confident, side, with_advice),
    }[policy]
    assert np.mean(decision == y) == pytest.approx(value, abs=5 * 0.5 / n**0.5)
