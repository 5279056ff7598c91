"""Learners of the bandits wing: reference values, laws, unbiased estimates, bad input."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import brentq
from scipy.special import softmax
from sklearn.base import clone

from equipoise import games
from equipoise.games import (
    BanditOverBandit,
    Corral,
    DetectionAugmented,
    EpsilonGreedy,
    Exp3,
    Exp3PlusPlus,
    Exp3S,
    LogBarrierFTRL,
    RestartOnDetect,
    SlidingWindowUCB,
    StaticDynamicBandit,
    ThompsonBeta,
    TrackAndExplore,
    TsallisINF,
)
from equipoise.games.bandits import detection_rules
from equipoise.games.bandits.barrier_rules import log_barrier_weights, tsallis_weights
from equipoise.games.bandits.master_rules import log_barrier_step
from equipoise.testing import check_bandit_learner

T = 400
RANDOM = {
    "BanditOverBandit": {"horizon": T},
    "Corral": {"horizon": T},
    "DetectionAugmented": {"horizon": T},
    "EpsilonGreedy": {},
    "Exp3": {"horizon": T},
    "Exp3IX": {"horizon": T},
    "Exp3P": {"horizon": T},
    "Exp3PlusPlus": {},
    "Exp3S": {"horizon": T, "n_switches": 4},
    "LogBarrierFTRL": {"horizon": T},
    "RestartOnDetect": {"horizon": T},
    "StaticDynamicBandit": {"horizon": T},
    "ThompsonBeta": {},
    "TrackAndExplore": {"horizon": T},
    "TsallisINF": {},
}
FIXED = {"DiscountedUCB": {"horizon": T}, "SlidingWindowUCB": {"horizon": T}, "UCB1": {}}
UNKNOWN_HORIZON = [
    "BanditOverBandit",
    "Corral",
    "DetectionAugmented",
    "DiscountedUCB",
    "Exp3",
    "Exp3IX",
    "Exp3P",
    "Exp3S",
    "LogBarrierFTRL",
    "RestartOnDetect",
    "StaticDynamicBandit",
    "TrackAndExplore",
]
each = pytest.mark.parametrize("name", [*RANDOM, *FIXED])


def make(name, n_arms=3, **more):
    if name in FIXED:
        return getattr(games, name)(n_arms, **{**FIXED[name], **more})
    return getattr(games, name)(n_arms, **{**RANDOM[name], "random_state": 7, **more})


def jumps(n_arms=3, n_rounds=T, length=50, seed=0):
    rng = np.random.RandomState(seed)
    return np.repeat(rng.uniform(size=(-(-n_rounds // length), n_arms)), length, axis=0)[:n_rounds]


def play(learner, losses):
    arms = []
    for row in losses:
        arms.append(learner.select_arm())
        learner.update(arms[-1], row[arms[-1]])
    return arms


# The static-dynamic learner ------------------------------------------------------------------

HISTORY = [
    (0, 0.5),
    (1, 0.75),
    (2, 0.25),
    (2, 0.25),
    (1, 0.75),
    (2, 0.5),
    (0, 0.25),
    (0, 0.25),
    (2, 0.25),
    (0, 0.75),
    (1, 0.5),
]


def test_forced_history_reference():
    learner = StaticDynamicBandit(3, horizon=1200, cap=2, c0=1, c1=1)
    before = {}
    for k, (arm, loss) in enumerate(HISTORY, 1):
        if k > 1:
            before[k] = (learner.probabilities_, learner.dynamic_weight_)
        learner.update(arm, loss)
    expected = {
        4: (0.016667, 0.016667, 0.966667),
        7: (0.495797, 0.016667, 0.487536),
        8: (0.656741, 0.018981, 0.324277),
        9: (0.959821, 0.020089, 0.020089),
        10: (0.054535, 0.016803, 0.928662),
        11: (0.016829, 0.016829, 0.966341),
    }
    for k, p in expected.items():
        assert_allclose(before[k][0], p, atol=5e-7, err_msg=f"round {k}")
    assert before[4][1] == 1
    assert before[7][1] == pytest.approx(0.504348, abs=5e-7)
    R = learner.static_regret_estimate_
    assert_allclose(R, [-8.664203, 12.355053, 12.935734], atol=5e-7)
    assert learner.dynamic_regret_estimate_ == pytest.approx(0.75)
    assert (learner.switch_guess_, learner.n_changes_, learner.t_) == (4, 6, 11)
    assert_allclose(learner.probabilities_, [0.01678932, 0.47728944, 0.50592124], atol=5e-9)
    assert learner.dynamic_weight_ == pytest.approx(0.00735921, abs=5e-9)


def textbook(losses, arms, T, cap=2.0, c0=1.0, c1=1.0, S=None, exponential=False):
    """The learner in a few lines of NumPy; returns the law before each round, R, R_D and S."""
    A = losses.shape[1]
    v, R, RD, guess, changes, laws = np.full(A, np.nan), np.zeros(A), 0.0, S or 1, 1, []
    for t, i in enumerate(arms):
        sS, sD = np.sqrt(A * T), np.sqrt(guess * A * T)
        e0, e1 = min(0.5, c0 * np.sqrt(A / T)), min(0.5, c1 * np.sqrt(guess * A / T))
        loss = losses[t, i]
        if np.isnan(v).any():
            laws.append(np.eye(A)[np.isnan(v).argmax()])
            v[i] = loss
            continue
        m = v.argmin()
        lam = np.maximum(R, 0) / sS
        lS = lam.sum() / sS
        if exponential:
            lam = np.exp(-np.sqrt(np.log(A + 1) / (A * T)) * (R.max() - R))
            lS = max(R.max(), 0) / sS**2
        lD = min(max(RD / sD, 0), cap) / sD
        f = 1.0 if lS + lD == 0 else lD / (lS + lD)
        g = e0 + (e1 - e0) * f
        p = np.full(A, g / A)
        if lam.sum() > 0:
            p += (1 - g) * (1 - f) * lam / lam.sum()
        p[m] += (1 - g) * f
        laws.append(p)
        if i != m:
            RD += loss - v[m] + max(v[m] - loss, 0) / p[i]
        if loss != v[i]:
            changes += 1
            if S is None and changes > 2 * guess and guess * A < T:
                guess *= 2
        R += loss - v
        R[i] -= (loss - v[i]) / p[i]
        v[i] = loss
    return np.array(laws), R, RD, guess


@pytest.mark.parametrize("part", ["regret_matching", "exp"])
@pytest.mark.parametrize("S", [None, 5])
def test_kernel_is_the_textbook(part, S):
    losses = jumps(4, 300, 25)
    learner = StaticDynamicBandit(4, 300, n_switches=S, static_part=part, random_state=0)
    arms, laws = [], []
    for row in losses:
        arms.append(learner.select_arm())
        laws.append(learner.probabilities_)
        learner.update(arms[-1], row[arms[-1]])
    expected, R, RD, guess = textbook(losses, arms, 300, S=S, exponential=part == "exp")
    assert_allclose(laws, expected, atol=1e-9)
    assert_allclose(learner.static_regret_estimate_, R, atol=1e-8)
    assert learner.dynamic_regret_estimate_ == pytest.approx(RD)
    assert learner.switch_guess_ == guess


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.integers(0, 10), min_size=12, max_size=12),
    st.sampled_from(["regret_matching", "exp"]),
)
def test_static_estimate_is_unbiased(levels, part):
    """All arm paths with their probabilities: the mean of R is the expected regret, exactly."""
    losses = np.array(levels).reshape(6, 2) / 10
    fresh = StaticDynamicBandit(2, horizon=20, static_part=part)
    mean_estimate, expected = np.zeros(2), np.zeros(2)
    stack = [(fresh, 0, 1.0, np.zeros(2))]
    while stack:
        learner, t, chance, regret = stack.pop()
        if t == 6:
            mean_estimate += chance * learner.static_regret_estimate_
            expected += chance * regret
            continue
        p = learner.probabilities_ if t else np.array([1.0, 0.0])
        for arm in range(2):
            if p[arm] > 0:
                twin = copy.deepcopy(learner)
                twin.update(arm, losses[t, arm])
                gained = losses[t, arm] - losses[t] if t >= 2 else 0.0
                stack.append((twin, t + 1, chance * p[arm], regret + gained))
    assert_allclose(mean_estimate, expected, atol=1e-10)


def test_relabelling_permutes_the_law():
    losses, order = jumps(4, 200, 20), np.array([2, 0, 3, 1])
    arms = np.r_[0:4, np.random.RandomState(1).randint(4, size=196)]
    first = StaticDynamicBandit(4, horizon=200)
    second = StaticDynamicBandit(4, horizon=200)
    place = np.argsort(order)  # arm a is called place[a] by the second
    for t, arm in enumerate(arms):
        first.update(arm, losses[t, arm])
        second.update(place[arm], losses[t, arm])
        if t >= 4:
            assert_allclose(second.probabilities_, first.probabilities_[order], atol=1e-12)


def test_shift_changes_no_law():
    losses = 0.5 * jumps(3, 200, 20)
    arms = np.random.RandomState(1).randint(3, size=200)
    first, second = StaticDynamicBandit(3, 200), StaticDynamicBandit(3, 200)
    for t, arm in enumerate(arms):
        first.update(arm, losses[t, arm])
        second.update(arm, losses[t, arm] + 0.25)
    assert_allclose(second.probabilities_, first.probabilities_, atol=1e-9)
    assert_allclose(second.static_regret_estimate_, first.static_regret_estimate_, atol=1e-9)
    assert_allclose(second.last_losses_, first.last_losses_ + 0.25)


def test_every_arm_keeps_its_share():
    learner = StaticDynamicBandit(3, horizon=T, random_state=0)
    least = np.sqrt(3 / T) / 3
    for t, row in enumerate(jumps(3, T, 10)):
        arm = learner.select_arm()
        p = learner.probabilities_
        assert abs(p.sum() - 1) < 1e-12
        assert t < 3 or p.min() >= least - 1e-15
        learner.update(arm, row[arm])


def test_constant_losses():
    """Without changes the dynamic estimate is the cost of exploration, and nothing is doubled."""
    losses = np.tile([0.5, 0.25, 0.75], (500, 1))
    learner = StaticDynamicBandit(3, horizon=500, random_state=0).fit(losses)
    cost = (losses[np.arange(500), learner.arms_] - 0.25)[3:].sum()
    assert learner.dynamic_regret_estimate_ == pytest.approx(cost)
    assert (learner.switch_guess_, learner.n_changes_) == (1, 1)


def test_equal_losses_are_tracked():
    learner = StaticDynamicBandit(3, horizon=100, random_state=0).fit(np.full((100, 3), 0.5))
    assert learner.dynamic_weight_ == 1
    assert learner.predict() == 0


def test_scales():
    learner = StaticDynamicBandit(3, horizon=5).partial_fit([0, 1, 2], [0.1, 0.2, 0.3])
    assert learner.exploration_rate_ == 0.5  # T < 4 A
    short = StaticDynamicBandit(4, horizon=2, random_state=0).fit(np.full((2, 4), 0.5))
    assert short.arms_.tolist() == [0, 1]
    crowded = StaticDynamicBandit(4, horizon=50, random_state=0)
    crowded.fit(np.random.RandomState(0).uniform(size=(50, 4)))
    assert crowded.switch_guess_ * 4 <= 2 * 50
    infinite = StaticDynamicBandit(2, horizon=100, change_tol=np.inf, random_state=0)
    assert infinite.fit(np.random.RandomState(0).uniform(size=(100, 2))).n_changes_ == 1


def test_unknown_horizon_keeps_estimates():
    losses = jumps(3, 100, 10)
    learner = StaticDynamicBandit(3)
    for t in range(12):
        learner.update(t % 3, losses[t, t % 3])
        if t == 10:
            before = learner.exploration_rate_
    # 4 A = 12 rounds: the guess doubles when round 12 (from 0) begins.
    assert learner.exploration_rate_ < before
    assert np.any(learner.static_regret_estimate_ != 0)


@pytest.mark.parametrize("delay", [1, 2])
def test_delayed_losses_keep_the_estimate_unbiased(delay):
    """Each loss comes `delay` rounds late with the law of its draw; all arm paths, exactly."""
    losses = np.array([[0.5, 0.2], [0.5, 0.2], [0.9, 0.2], [0.9, 0.6], [0.1, 0.6]])
    fresh = StaticDynamicBandit(2, horizon=20).partial_fit([0, 1], [0.5, 0.2])
    mean_estimate, expected = np.zeros(2), np.zeros(2)
    stack = [(fresh, (), 1.0)]
    while stack:
        learner, drawn, chance = stack.pop()
        t = len(drawn)
        if t == 5:
            for late in range(5 - delay, 5):
                learner.update(drawn[late][0], losses[late, drawn[late][0]], law=drawn[late][1])
            mean_estimate += chance * learner.static_regret_estimate_
            played = losses[np.arange(5), [arm for arm, _ in drawn]]
            expected += chance * (played.sum() - losses.sum(axis=0))
            continue
        law = learner.probabilities_
        for arm in range(2):
            twin = copy.deepcopy(learner)
            now = (*drawn, (arm, law))
            if t >= delay:
                late, late_law = now[t - delay]
                twin.update(late, losses[t - delay, late], law=late_law)
            stack.append((twin, now, chance * law[arm]))
    assert_allclose(mean_estimate, expected, atol=1e-10)


@each
def test_law_of_the_draw_is_the_default(name):
    losses = jumps()[:60]
    first, second = make(name), make(name)
    for row in losses:
        arm = first.select_arm()
        assert second.select_arm() == arm
        first.update(arm, row[arm])
        second.update(arm, row[arm], law=second.probabilities_)
    assert_allclose(second._memory, first._memory, rtol=1e-12)


@pytest.mark.parametrize("law", [[0.5, 0.6, 0.0], [0.5, 0.5], [0.0, 0.5, 0.5], [np.nan, 0.5, 0.5]])
def test_bad_laws(law):
    learner = make("Exp3")
    before = pickle.dumps(learner.reset())
    with pytest.raises(ValueError, match="law"):
        learner.update(0, 0.5, law=law)
    assert pickle.dumps(learner) == before


def test_observed_losses_are_known_for_free():
    """Whoever sees all arms after each round knows the best one at once, and estimates exactly."""
    losses = jumps(3, 200, 20)
    learner = StaticDynamicBandit(3, horizon=200, random_state=0).partial_fit([0, 1, 2], losses[0])
    for arm in range(3):
        learner.observe(arm, losses[3, arm])
    assert learner.t_ == 3
    before = learner.n_changes_
    regret = np.zeros(3)
    for row in losses[3:]:
        arm = learner.select_arm()
        for other in range(3):  # what is revealed doesn't depend on the arm: before `update`
            learner.observe(other, row[other])
        learner.update(arm, row[arm])
        regret += row[arm] - row
        assert learner.best_arm_ == row.argmin()
    assert_allclose(learner.static_regret_estimate_, regret, atol=1e-9)
    assert learner.n_changes_ - before == np.count_nonzero(np.diff(losses[3:], axis=0))
    assert learner.t_ == 200


def test_observing_after_the_update_keeps_the_estimate_unbiased():
    """The neighbour of the played arm is revealed: which one depends on the draw."""
    losses = np.array([[0.5, 0.2, 0.4], [0.9, 0.2, 0.3], [0.1, 0.6, 0.3], [0.1, 0.5, 0.0]])
    fresh = StaticDynamicBandit(3, horizon=20).partial_fit([0, 1, 2], losses[0])
    mean_estimate, expected = np.zeros(3), np.zeros(3)
    stack = [(fresh, 0, 1.0, np.zeros(3))]
    while stack:
        learner, t, chance, regret = stack.pop()
        if t == 4:
            mean_estimate += chance * learner.static_regret_estimate_
            expected += chance * regret
            continue
        for arm, share in enumerate(learner.probabilities_):
            twin, seen = copy.deepcopy(learner), (arm + 1) % 3
            twin.update(arm, losses[t, arm])
            twin.observe(seen, losses[t, seen])
            stack.append((twin, t + 1, chance * share, regret + losses[t, arm] - losses[t]))
    assert_allclose(mean_estimate, expected, atol=1e-10)


@pytest.mark.parametrize("name", ["StaticDynamicBandit", "TrackAndExplore", "RestartOnDetect"])
def test_observing_names_the_best_arm(name):
    learner = make(name)
    for arm, loss in enumerate([0.5, 0.3, 0.7]):
        learner.observe(arm, loss)
    assert learner.predict() == 1
    assert learner.t_ == 0
    assert learner.n_changes_ == 1
    learner.observe(1, 0.3)
    assert learner.n_changes_ == 1
    learner.observe(1, 0.9)
    assert learner.n_changes_ == 2
    assert learner.predict() == 0
    with pytest.raises(IndexError):
        learner.observe(3, 0.5)
    with pytest.raises(ValueError, match="loss_range"):
        learner.observe(0, 1.5)


def test_best_arm_says_since_when():
    learner = StaticDynamicBandit(3, horizon=100, random_state=0)
    learner.reset()
    assert (learner.best_arm_, learner.best_arm_since_) == (-1, 0)
    losses = jumps(3, 400, 40)
    v, best, since = np.full(3, np.nan), None, 0
    for t, row in enumerate(losses, 1):
        arm = learner.select_arm()
        learner.update(arm, row[arm])
        v[arm] = row[arm]
        if not np.isnan(v).any() and best != v.argmin():
            best, since = v.argmin(), t
        assert learner.best_arm_since_ == since
        assert best is None or learner.best_arm_ == best
    assert since > 40


def test_forced_arms_without_probability_leave_no_nan():
    learner = StaticDynamicBandit(2, horizon=100, c0=0.0, c1=0.0).partial_fit([0, 1], [0.2, 0.8])
    assert learner.probabilities_.tolist() == [1, 0]
    learner.update(1, 0.8)
    assert np.isfinite(learner.static_regret_estimate_).all()
    assert np.isfinite(learner.probabilities_).all()


@each
def test_propensities_are_those_of_the_draws(name):
    losses = jumps()
    learner = make(name).fit(losses)
    if name == "ThompsonBeta":
        assert not hasattr(learner, "propensities_")
        return
    twin, shares = make(name), []
    for row in losses:
        arm = twin.select_arm()
        shares.append(twin.probabilities_[arm])
        twin.update(arm, row[arm])
    assert_array_equal(learner.propensities_, shares)
    env = games.CallableAdversary(lambda t, history: losses[t], 3, T)
    assert_array_equal(make(name).fit(env).propensities_, shares)
    hiding = games.AdaptiveHideEnv(3, T, 10)
    against = make(name).fit(hiding).propensities_
    assert ((against > 0) & (against <= 1 + 1e-12)).all()


def test_more_rounds_after_fit():
    """The account of a fit stays that of the fit."""
    learner = Exp3(3, horizon=T, random_state=0).fit(jumps())
    line = next(line for line in learner.explain().summary if line.startswith("static"))
    learner.partial_fit([0] * 50, [0.5] * 50)
    assert line in learner.explain().summary


# Change detection -----------------------------------------------------------------------------


def likelihood_ratio(x, s):
    """Twice-fitted against once-fitted Bernoulli log likelihood, from the definition."""

    def fitted(part):
        mean = part.mean()
        logs = np.log([mean, 1 - mean], where=[mean > 0, mean < 1], out=np.zeros(2))
        return part.sum() * logs[0] + (len(part) - part.sum()) * logs[1]

    return fitted(x[:s]) + fitted(x[s:]) - fitted(x)


def kept_splits(n):
    """Multiples of 2^j among the newest 16 of their level."""
    return {
        q << j
        for j in range(n.bit_length())
        for q in range(max(1, (n >> j) - 15), (n >> j) + 1)
        if q << j < n
    }


def kept_sums(x):
    """What the detector would have kept of these samples."""
    kept, sums = np.zeros(detection_rules.SUMS_PER_ARM), np.cumsum(x)
    for n in range(1, len(x) + 1):
        for j in range(40):
            if n % 2**j == 0:
                kept[16 * j + (n >> j) % 16] = sums[n - 1]
    return kept


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 300),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0, 1),
    st.booleans(),
    st.integers(0, 10**6),
)
def test_detector_is_the_likelihood_ratio(n, before, after, place, binary, seed):
    rng = np.random.RandomState(seed)
    mean = np.where(np.arange(n) < place * n, before, after)
    x = (rng.uniform(size=n) < mean).astype(float) if binary else rng.uniform(size=n) * mean
    largest = max(likelihood_ratio(x, s) for s in kept_splits(n))
    kept = kept_sums(x)
    for threshold in (0.9 * largest, 1.1 * largest):
        if threshold > 1e-9:
            assert detection_rules.shows_change(kept, n, x.sum(), threshold) == (
                largest > threshold
            )


def test_splits_are_dense():
    """Every split has a kept one near: n - s is met within an eighth."""
    for n in (5, 17, 100, 1000, 54_321):
        kept = np.array(sorted(n - s for s in kept_splits(n)))
        lags = np.arange(1, n)
        nearest = kept[np.clip(np.searchsorted(kept, lags), 0, len(kept) - 1)]
        below = kept[np.clip(np.searchsorted(kept, lags, side="right") - 1, 0, None)]
        miss = np.minimum(np.abs(nearest - lags), np.abs(below - lags))
        assert (miss <= lags / 8).all()


def test_detection_is_a_restarted_base():
    """Against the loop in Python: law, alarms, restarts, and the base's own learning."""
    A, T = 2, 800
    losses = np.repeat([[0.1, 0.6], [0.9, 0.4]], 400, axis=0)
    losses = (np.random.RandomState(0).uniform(size=losses.shape) < losses).astype(float)
    learner = DetectionAugmented(A, horizon=T, base=TsallisINF(A), random_state=0)
    base, samples, restarts = TsallisINF(A).reset(), [[], []], 0
    for t, row in enumerate(losses):
        arm = learner.select_arm()
        eps = min(0.5, np.sqrt((restarts + 1) * A * np.log(T) / T))
        law = (1 - eps) * base.probabilities_ + eps / A
        assert_allclose(learner.probabilities_, law, atol=1e-12)
        learner.update(arm, row[arm])
        base.update(arm, row[arm], law=law)
        samples[arm].append(row[arm])
        n, x = len(samples[arm]), np.array(samples[arm])
        ratio = max((likelihood_ratio(x, s) for s in kept_splits(n)), default=0.0)
        if ratio > np.log(n**1.5 * np.sqrt(T)):
            restarts, samples = restarts + 1, [[], []]
            base.reset()
            assert learner.latest_change_ == t + 1
        assert learner.n_changes_ == restarts + 1
    assert restarts >= 1


def test_detection_follows_noise_that_jumps():
    rng = np.random.RandomState(0)
    env = games.StochasticSwitchingEnv(rng.uniform(0.1, 0.9, size=(6, 3)), [3000] * 6)
    learners = [DetectionAugmented(3, horizon=18_000), games.UCB1(3, confidence=0.5)]
    result = games.simulate(learners, env, n_runs=4, random_state=0)
    ours, base = result.cum_loss[:, :, -1].mean(axis=1)
    best = (env.means.min(axis=1) * 3000).sum()
    assert ours - best < 0.4 * (base - best)
    assert "restarts" in str(clone(learners[0]).fit(env).explain())


def test_detection_stays_calm_without_changes():
    """The tolerated chance is 1 / sqrt(T) an arm; twenty runs without an alarm."""
    env = games.StochasticSwitchingEnv([[0.4, 0.5, 0.6]], [4000])
    for seed in range(20):
        table = env.realise(seed)
        learner = DetectionAugmented(3, horizon=4000, random_state=seed).fit(table)
        assert learner.n_changes_ == 1
    sure = DetectionAugmented(2, delta=0.9, exploration=0.3, random_state=0).reset()
    assert_allclose(sure.probabilities_, [0.85, 0.15])


# Baselines ------------------------------------------------------------------------------------


def test_exp3_reference():
    learner = Exp3(3, learning_rate=0.1)
    learner.update(0, 1.0)
    assert_allclose(learner.probabilities_, [0.2702909, 0.36485455, 0.36485455], atol=5e-9)
    learner.update(2, 0.5)
    assert_allclose(learner.probabilities_, [0.28353935, 0.38273809, 0.33372256], atol=5e-9)


def law_oracle(name, A, history, T, S):
    """The law after a forced history, from the definition."""
    L, p = np.zeros(A), np.full(A, 1 / A)
    w = np.full(A, 1 / A)
    for t, (a, loss) in enumerate(history, 1):
        hit = np.eye(A)[a]
        if name == "Exp3":
            L += hit * loss / p
            p = softmax(-np.sqrt(2 * np.log(A) / (T * A)) * L)
        elif name == "Exp3IX":
            eta = np.sqrt(2 * np.log(A) / (A * T))
            L += hit * loss / (p + eta / 2)
            p = softmax(-eta * L)
        elif name == "Exp3P":
            beta, eta = np.sqrt(np.log(A / 0.05) / (A * T)), 0.95 * np.sqrt(np.log(A) / (A * T))
            gamma = min(1, 1.05 * np.sqrt(A * np.log(A) / T))
            if t == 1:
                p = np.full(A, 1 / A)
            L += ((1 - loss) * hit + beta) / p
            p = (1 - gamma) * softmax(eta * L) + gamma / A
        elif name == "Exp3S":
            gamma, eta = min(1, np.sqrt(S * A / T)), np.sqrt(S * np.log(A * T) / (T * A))
            p = (1 - gamma) * w + gamma / A
            w = w * np.exp(-eta * hit * loss / p)
            w = (1 - 1 / T) * w / w.sum() + 1 / (T * A)
            p = (1 - gamma) * w + gamma / A
    return p


@pytest.mark.parametrize("name", ["Exp3", "Exp3IX", "Exp3P", "Exp3S"])
def test_exponential_laws(name):
    rng = np.random.RandomState(0)
    history = [(int(rng.randint(3)), float(rng.uniform())) for _ in range(30)]
    learner = make(name)
    learner.partial_fit(*zip(*history, strict=True))
    assert_allclose(learner.probabilities_, law_oracle(name, 3, history, T, 4), atol=1e-12)


def test_exp3_plus_plus_law():
    rng = np.random.RandomState(0)
    learner = Exp3PlusPlus(2, alpha=0.1, beta=0.5)
    L, N, sums = np.zeros(2), np.zeros(2), np.zeros(2)
    for t in range(1, 400):
        eta = 0.5 * np.sqrt(np.log(2) / (t * 2))
        radius = np.sqrt(0.1 * np.log(t * 2**10) / (2 * np.maximum(N, 1)))
        mean = sums / np.maximum(N, 1)
        low, high = np.maximum(mean - radius, 0), np.minimum(mean + radius, 1)
        low[N == 0], high[N == 0] = 0, 1
        gap = np.maximum(0, low - high.min())
        xi = np.full(2, np.inf)
        wide = gap > 0
        xi[wide] = 0.5 * np.maximum(np.log(t * gap[wide] ** 2), 0) / (t * gap[wide] ** 2)
        eps = np.minimum(np.minimum(1 / 4, eta), xi)
        p = (1 - eps.sum()) * softmax(-eta * L) + eps
        law = learner.probabilities_ if t > 1 else np.full(2, 0.5)
        assert_allclose(law, p, atol=1e-12, err_msg=f"round {t}")
        a = int(rng.randint(2))
        loss = float(rng.uniform() < (0.1, 0.9)[a])
        learner.update(a, loss)
        L[a] += loss / p[a]
        N[a] += 1
        sums[a] += loss
    assert wide.any(), "the gap was never seen: this run tests nothing"


def test_tsallis_and_barrier_reference():
    p = np.empty(3)
    x = tsallis_weights(np.array([0.0, 1.0, 3.0]), 0.5, 0.0, p)
    assert x == pytest.approx(-5.892299855503373, abs=1e-12)
    assert_allclose(p, [0.4608401435, 0.3368151792, 0.2023446773], atol=5e-11)
    q = np.empty(4)
    assert tsallis_weights(np.zeros(4), 1.0, 0.0, q) == -4
    assert_array_equal(q, 0.25)
    x = log_barrier_weights(np.array([0.0, 1.0, 3.0]), 0.5, 0.0, p)
    assert x == pytest.approx(-4.9017996161, abs=5e-11)
    assert_allclose(p, [0.4080134148, 0.3388796859, 0.2531068993], atol=5e-11)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0, 1e8), min_size=1, max_size=8),
    st.floats(1e-6, 2.0),
    st.floats(-1e9, 1e9),
)
def test_normalisation_for_large_estimates(levels, eta, start):
    """Whatever the start, both searches end at the root that bracketing finds."""
    L = np.array(levels)
    d = L - L.min()
    p = np.empty(len(L))
    for weights, law, right, left in (
        (tsallis_weights, lambda x: 4 / (eta * (d - x)) ** 2, -2 / eta, -2 * len(L) ** 0.5 / eta),
        (log_barrier_weights, lambda x: 1 / (eta * (d - x)), -1 / eta, -len(L) / eta),
    ):
        x = weights(L, eta, start, p)
        assert abs(law(x).sum() - 1) < 1e-10
        assert abs(p.sum() - 1) < 1e-12
        if law(right).sum() > 1 > law(left * (1 + 1e-9)).sum():
            low = left * (1 + 1e-9)
            root = brentq(lambda x, law=law: law(x).sum() - 1, low, right, xtol=1e-300)
            assert_allclose(p, law(root), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("estimator", ["rv", "iw"])
def test_tsallis_estimates(estimator):
    rng = np.random.RandomState(0)
    learner, L = TsallisINF(3, estimator=estimator), np.zeros(3)
    for t in range(1, 60):  # arms are drawn: those forced against p -> 0 overflow soon
        eta = (4 if estimator == "rv" else 2) / np.sqrt(t)
        root = brentq(
            lambda x, eta=eta, L=L: (4 / (eta * (L - x)) ** 2).sum() - 1,
            L.min() - 4 / eta,
            L.min() - 1e-9 - 1.9 / eta,
        )
        p = 4 / (eta * (L - root)) ** 2
        if t > 1:
            assert_allclose(learner.probabilities_, p, atol=1e-9)
        a, loss = int(rng.choice(3, p=p / p.sum())), float(rng.uniform())
        learner.update(a, loss)
        B = 0.5 * (p >= eta**2) if estimator == "rv" else np.zeros(3)
        L += B
        L[a] += (loss - B[a]) / p[a]


def test_tsallis_static_regret_stays_small():
    """A root search from the wrong side would give linear regret here."""
    world = [[0.5, 0.6 + 0.4 * u] for u in np.random.RandomState(0).uniform(size=16)]
    losses = np.repeat(world, 1250, axis=0)
    learner = TsallisINF(2, random_state=0).fit(losses)
    assert learner.static_regret_ < 0.6 * np.sqrt(2 * 20_000)


@pytest.mark.parametrize("optimistic", [True, False])
def test_log_barrier_law(optimistic):
    rng = np.random.RandomState(0)
    learner = LogBarrierFTRL(3, learning_rate=0.2, optimistic=optimistic)
    L, v = np.zeros(3), np.full(3, 0.5)
    for t in range(40):
        M = L + v if optimistic else L
        root = brentq(lambda x, M=M: (1 / (0.2 * (M - x))).sum() - 1, M.min() - 20, M.min() - 4.99)
        p = 1 / (0.2 * (M - root))
        if t:
            assert_allclose(learner.probabilities_, p, atol=1e-9)
        a, loss = int(rng.randint(3)), float(rng.uniform())
        learner.update(a, loss)
        if optimistic:
            L += v
            L[a] += (loss - v[a]) / p[a]
            v[a] = loss
        else:
            L[a] += loss / p[a]


def test_track_and_explore_without_exploration():
    losses = np.tile([0.5, 0.2, 0.8], (50, 1))
    learner = TrackAndExplore(3, exploration=0.0, random_state=0).fit(losses)
    assert learner.arms_.tolist() == [0, 1, 2] + [1] * 47


def test_track_and_explore_bound():
    """The proved bound holds in the mean over 40 runs, with room to spare."""
    world = jumps(3, 2000, 250, seed=3)
    learner = TrackAndExplore(3, horizon=2000, n_switches=8)
    result = games.simulate([learner], world, n_runs=40, random_state=0)
    eps = np.sqrt(8 * 3 / 2000)
    assert result.final("dynamic").mean() < eps * 2000 + 8 * 3 / eps + 8 * 3
    assert "by proof" in str(clone(learner).fit(world).explain())


def test_restart_probes_all_arms_again():
    learner = RestartOnDetect(3, horizon=1000).partial_fit([0, 1, 2], [0.2, 0.5, 0.6])
    assert learner.predict() == 0
    learner.update(0, 0.9)
    assert learner.probabilities_.tolist() == [0, 1, 0]
    learner.update(1, 0.5)
    assert learner.probabilities_.tolist() == [0, 0, 1]
    learner.update(2, 0.6)
    assert learner.predict() == 1
    eps = np.sqrt(2 * 3 / 1000)
    assert_allclose(learner.probabilities_, [eps / 3, 1 - 2 * eps / 3, eps / 3])
    assert learner.n_changes_ == 2


def test_restart_on_means():
    rng = np.random.RandomState(0)
    first = (rng.uniform(size=(1000, 2)) < [0.1, 0.5]).astype(float)
    second = (rng.uniform(size=(1000, 2)) < [0.9, 0.5]).astype(float)
    still = RestartOnDetect(2, horizon=2000, detection="means", window=100, random_state=0)
    assert clone(still).fit(np.r_[first, first]).n_changes_ == 1
    moved = still.fit(np.r_[first, second])
    assert moved.n_changes_ >= 2
    assert (moved.arms_[-200:] == 1).mean() > 0.8


def test_index_policies():
    ucb = games.UCB1(2, confidence=2.0).partial_fit([0, 1, 1, 1], [0.5, 0.4, 0.4, 0.4])
    index = np.array([0.5, 0.4]) - np.sqrt(2 * np.log(4) / np.array([1, 3]))
    assert ucb.predict() == index.argmin()
    window = SlidingWindowUCB(2, window=3).partial_fit([0, 0, 1, 1, 1], [0.0, 0.0, 1, 1, 1])
    assert window.predict() == 0  # arm 0 left the window: it is played anew
    discounted = games.DiscountedUCB(2, discount=0.9, xi=0.6)
    discounted.partial_fit([0, 1, 1, 0], [0.3, 0.2, 0.9, 0.3])
    n = np.array([0.9**3 + 1, 0.9**2 + 0.9])
    s = np.array([0.3 * 0.9**3 + 0.3, 0.2 * 0.9**2 + 0.9 * 0.9])
    assert discounted.predict() == (s / n - 2 * np.sqrt(0.6 * np.log(n.sum()) / n)).argmin()
    greedy = EpsilonGreedy(2, epsilon=0.2).partial_fit([0, 1], [0.4, 0.3])
    assert_allclose(greedy.probabilities_, [0.1, 0.9])


def test_thompson_law_is_what_it_draws():
    learner = ThompsonBeta(3, random_state=0)
    learner.partial_fit([0, 1, 2, 0, 1], [0.2, 0.4, 0.9, 0.1, 0.0])
    a, b = np.array([1.3, 1.4, 1.9]), np.array([2.7, 2.6, 1.1])
    rng = np.random.RandomState(0)
    least = rng.beta(a, b, size=(200_000, 3)).argmin(axis=1)
    # 200,000 draws: a standard error of 0.0011; four of them.
    assert_allclose(learner.probabilities_, np.bincount(least) / 200_000, atol=0.0045)
    drawn = np.bincount([learner.select_arm() for _ in range(40_000)], minlength=3) / 40_000
    assert_allclose(drawn, learner.probabilities_, atol=0.01)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0.01, 1), st.floats(0, 50), st.floats(0.001, 1)), min_size=2, max_size=6
    )
)
def test_log_barrier_step(rows):
    p, costs, rates = (np.array(column) for column in zip(*rows, strict=True))
    p = p / p.sum()

    def law(x):
        return 1 / (1 / p + rates * (costs - x))

    after = p.copy()
    log_barrier_step(after, costs, rates)
    assert abs(after.sum() - 1) < 1e-12
    pole = (costs + 1 / (p * rates)).min()
    low, high = costs.min(), min(costs.max(), pole - 1e-9 * abs(pole))
    # Exactly, the sum is at most 1 at the low end and at least 1 at the high one. Where costs
    # differ by less than rounding, an end is the root itself.
    if law(low).sum() >= 1:
        root = low
    elif law(high).sum() <= 1:
        root = high
    else:
        root = brentq(lambda x: law(x).sum() - 1, low, high, xtol=1e-14)
    assert_allclose(after, law(root), atol=1e-6)


def mirror_step(q, costs, rates):
    def law(x):
        return 1 / (1 / q + rates * (costs - x))

    pole = (costs + 1 / (q * rates)).min()  # beyond it the law isn't one
    high = min(costs.max(), pole * (1 - 1e-9))
    return law(brentq(lambda x: law(x).sum() - 1, 0, high, xtol=1e-15))


def test_corral_is_the_textbook():
    """One base over two arms and one tracker, against the definition with known draws."""
    T, losses = 50, jumps(2, 50, 10)
    bases = [Exp3(2, horizon=T), TrackAndExplore(2, exploration=0.3)]
    learner = Corral(2, horizon=T, bases=bases, learning_rate=2.0, random_state=3)
    learner.reset()
    twins = [clone(base).reset() for base in bases]
    q, rho, rates = np.full(2, 0.5), np.full(2, 4.0), np.full(2, 2.0)
    beta, grown = np.exp(1 / np.log(T)), False
    for t in range(T):
        share = (1 - 1 / T) * q + 1 / (2 * T)
        laws = np.array([twin.probabilities_ for twin in twins])
        assert_allclose(
            learner.reset().probabilities_ if t == 0 else learner.probabilities_,
            share @ laws,
            atol=1e-9,
        )
        arm = learner.select_arm()
        chosen = int(learner._memory[5])
        loss = losses[t, arm]
        learner.update(arm, loss)
        twins[chosen].update(arm, loss, weight=1 / share[chosen])
        costs = np.eye(2)[chosen] * loss / share[chosen]
        if loss > 0:
            q = mirror_step(q, costs, rates)
        rare = 1 / ((1 - 1 / T) * q + 1 / (2 * T)) > rho
        rho[rare] = 2 / ((1 - 1 / T) * q + 1 / (2 * T))[rare]
        rates[rare] *= beta
        grown |= rare.any()
    assert_allclose(learner.base_probabilities_, q, atol=1e-8)
    assert grown, "no rate grew: this run tests half of it"


def test_bandit_over_bandit_blocks():
    """Inside a block it is Exp3.S with the drawn guess; a block's end starts anew."""
    T, losses = 60, jumps(2, 60, 7)
    H = int(np.ceil(np.sqrt(2 * T)))
    learner = BanditOverBandit(2, horizon=T, random_state=1).reset()
    inner = None
    for t in range(T):
        if t % H == 0:
            assert_allclose(learner.probabilities_, 0.5)
        arm = learner.select_arm()
        if t % H == 0:
            guess = 2 ** int(learner._memory[5])
            S = max(1.0, guess * H / T)
            rate = np.sqrt(S * np.log(2 * H) / (H * 2))
            inner = Exp3S(2, horizon=H, learning_rate=rate, gamma=min(1.0, np.sqrt(S * 2 / H)))
            inner.reset()
        assert_allclose(learner.probabilities_, inner.probabilities_, atol=1e-12)
        learner.update(arm, losses[t, arm])
        inner.update(arm, losses[t, arm])


# All learners ---------------------------------------------------------------------------------


@each
def test_keeps_its_word(name):
    if name == "ThompsonBeta":
        check_bandit_learner(lambda: make(name), n_rounds=40)
    else:
        check_bandit_learner(lambda: make(name))


@each
def test_fit_is_the_loop(name):
    losses = jumps()
    fitted = make(name).fit(losses)
    by_hand = make(name)
    assert play(by_hand, losses) == fitted.arms_.tolist()
    assert_array_equal(by_hand._memory, fitted._memory)
    assert fitted.static_regret_ == pytest.approx(games.static_regret(losses, fitted.arms_))
    assert fitted.dynamic_regret_ == pytest.approx(games.dynamic_regret(losses, fitted.arms_))
    assert_array_equal(fitted.losses_, losses[np.arange(T), fitted.arms_])


@each
def test_partial_fit_at_once_is_one_by_one(name):
    rng = np.random.RandomState(0)
    arms, losses = rng.randint(3, size=80), rng.uniform(size=80)
    at_once = make(name).partial_fit(arms, losses)
    one_by_one, updated = make(name), make(name)
    for arm, loss in zip(arms, losses, strict=True):
        one_by_one.partial_fit(arm, loss)
        updated.update(arm, loss)
    for other in (one_by_one, updated):
        assert_array_equal(at_once._memory, other._memory)
    assert at_once.t_ == 80


@each
def test_reward_mode_is_loss_mode(name):
    losses = np.round(jumps() * 8) / 8  # so that 1 - (1 - l) is l to the bit
    as_loss = make(name).fit(losses)
    as_reward = make(name, mode="reward").fit(1 - losses)
    assert_array_equal(as_loss.arms_, as_reward.arms_)
    assert as_reward.static_regret_ == pytest.approx(as_loss.static_regret_)
    assert make(name, mode="reward").score(1 - losses) == pytest.approx(
        1 + make(name).score(losses)
    )


@each
def test_range_scales_regret(name):
    losses = np.round(jumps() * 8) / 8
    plain = make(name).fit(losses)
    wide = make(name, loss_range=(-2, 6)).fit(8 * losses - 2)
    assert_array_equal(plain.arms_, wide.arms_)
    assert wide.dynamic_regret_ == pytest.approx(8 * plain.dynamic_regret_)
    assert_allclose(wide.losses_, 8 * plain.losses_ - 2)


@each
def test_one_arm(name):
    learner = make(name, n_arms=1).fit(np.linspace(0, 1, 50)[:, None])
    assert not learner.arms_.any()
    assert (learner.static_regret_, learner.dynamic_regret_) == (0, 0)
    assert learner.probabilities_ == pytest.approx([1])


@pytest.mark.parametrize("name", UNKNOWN_HORIZON)
def test_unknown_horizon(name):
    """Guesses double; a learner that doesn't know the horizon still learns."""
    more = {} if name == "DiscountedUCB" else {"random_state": 0}
    losses = np.tile([0.9, 0.1, 0.9], (3000, 1))
    learner = getattr(games, name)(3, **more).fit(losses)
    assert learner._memory[1] >= 3000
    # Uniform play has regret 0.53 T; the slowest has a rate of T^(3/4).
    assert learner.static_regret_ < 0.45 * 3000


@pytest.mark.parametrize("name", RANDOM)
def test_draws_follow_the_law(name):
    learner = make(name).partial_fit([0, 1, 2, 1], [0.9, 0.2, 0.4, 0.3])
    p, draws = learner.probabilities_, 4000
    shares = np.bincount([learner.select_arm() for _ in range(draws)], minlength=3) / draws
    # Five standard errors of a share.
    assert_allclose(shares, p, atol=5 * 0.5 / np.sqrt(draws))


@each
def test_bad_input_changes_nothing(name):
    learner = make(name).partial_fit([0, 1, 2], [0.1, 0.2, 0.3])
    before = pickle.dumps(learner)
    for arms, losses, error in [
        ([0, 3], [0.1, 0.2], IndexError),
        ([-1], [0.1], IndexError),
        ([0.5], [0.1], TypeError),
        ([0, 1], [0.1], ValueError),
        ([0], [np.nan], ValueError),
        ([0], [1.5], ValueError),
    ]:
        with pytest.raises(error):
            learner.partial_fit(arms, losses)
    with pytest.raises(IndexError, match="allowed: 0 to 2"):
        learner.update(3, 0.5)
    with pytest.raises(TypeError, match="arm must be an integer"):
        learner.update(1.5, 0.5)
    with pytest.raises(ValueError, match="loss_range="):
        learner.update(0, 1.5)
    with pytest.raises(ValueError, match="weight"):
        learner.update(0, 0.5, weight=0)
    assert pickle.dumps(learner) == before


def test_clip_warns():
    learner = Exp3(2, horizon=10, clip=True)
    with pytest.warns(UserWarning, match="clipped"):
        learner.update(0, 1.5)
    twin = Exp3(2, horizon=10)
    twin.update(0, 1.0)
    assert_array_equal(learner.probabilities_, twin.probabilities_)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        (lambda: StaticDynamicBandit(0).reset(), "n_arms"),
        (lambda: StaticDynamicBandit(2, horizon=0).reset(), "horizon"),
        (lambda: StaticDynamicBandit(2, horizon=5, n_switches=6).reset(), "n_switches=6"),
        (lambda: StaticDynamicBandit(2, change_tol=np.nan).reset(), "change_tol"),
        (lambda: StaticDynamicBandit(2, static_part="none").reset(), "static_part"),
        (lambda: Exp3(2, loss_range=(1, 0)).reset(), "low < high"),
        (lambda: Exp3(2, learning_rate=0).reset(), "learning_rate"),
        (lambda: SlidingWindowUCB(2).reset(), "window or horizon"),
        (lambda: RestartOnDetect(2, window=5).reset(), "detection='means'"),
        (lambda: Corral(2, bases=[ThompsonBeta(2)]).reset(), "ThompsonBeta"),
        (lambda: Corral(2, bases=[Exp3(3)]).reset(), "number of arms"),
        (lambda: Corral(2, bases=[Exp3(2, mode="reward")]).reset(), "mode='loss'"),
        (lambda: DetectionAugmented(2, base=Exp3(3)).reset(), "number of arms"),
        (lambda: DetectionAugmented(2, base=Corral(2)).reset(), "hold learners"),
        (lambda: DetectionAugmented(2, base=Exp3(2, loss_range=(0, 2))).reset(), "loss_range"),
        (lambda: DetectionAugmented(2, base="ucb").reset(), "base"),
        (lambda: DetectionAugmented(2, delta=1.0).reset(), "delta"),
        (lambda: Corral(2, bases=[]).reset(), "empty"),
        (lambda: Exp3(2).fit(np.zeros((5, 3))), "env has 3 arms"),
        (lambda: Exp3(2).fit([[0.5, np.inf]]), "finite"),
        (lambda: Exp3(2).fit(np.zeros((0, 2))), "both at least 1"),
    ],
)
def test_bad_parameters(wrong, match):
    with pytest.raises(ValueError, match=match):
        wrong()


def test_proved_bounds_are_told():
    losses, span = jumps(), 3.0
    for learner, bound, words in [
        (Exp3(3, T), np.sqrt(2 * T * 3 * np.log(3)), "its expectation is at most"),
        (games.Exp3P(3, T), 5.15 * np.sqrt(T * 3 * np.log(60)), "with probability 0.95 it is"),
        (TsallisINF(3, estimator="iw"), 4 * np.sqrt(3 * T) + 1, "its expectation is at most"),
    ]:
        learner.set_params(loss_range=(0, span))
        text = str(learner.fit(span * losses).explain())
        assert words in text
        assert f"{span * bound:.4g}, by proof" in text
        assert learner.static_regret_ < span * bound
    for learner in (Exp3(3), Exp3(3, T, learning_rate=0.1), games.Exp3P(3, 2 * T)):
        assert "by proof" not in str(learner.fit(losses).explain())


def test_explanation_adds_up():
    learner = StaticDynamicBandit(3, horizon=T, random_state=0).fit(jumps())
    frame = learner.explain().to_frame()
    assert frame["static regret"].sum() == pytest.approx(learner.static_regret_)
    assert frame["dynamic regret"].sum() == pytest.approx(learner.dynamic_regret_)
    assert frame["rounds"].sum() == T
    assert "estimated without counterfactuals" in str(learner.explain())
    online = Exp3(3).partial_fit([0, 1], [0.5, 0.25]).explain()
    assert "static regret" not in online.to_frame()


def test_weight_multiplies_the_estimate():
    heavy, light = Exp3(2, learning_rate=0.1), Exp3(2, learning_rate=0.2)
    heavy.update(0, 0.5, weight=2.0)
    light.update(0, 0.5)
    assert_allclose(heavy.probabilities_, light.probabilities_)


def test_seeds():
    runs = [Exp3(3, horizon=T, random_state=seed).fit(jumps()).arms_ for seed in (0, 0, 1)]
    assert_array_equal(runs[0], runs[1])
    assert (runs[0] != runs[2]).any()
    first, second = np.random.RandomState(0), np.random.RandomState(0)
    a = Exp3(3, random_state=first).fit(jumps())
    assert_array_equal(a.arms_, Exp3(3, random_state=second).fit(jumps()).arms_)
    pairs = itertools.pairwise([Exp3(3).fit(jumps()).arms_ for _ in range(3)])
    assert any((x != y).any() for x, y in pairs)
