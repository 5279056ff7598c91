"""Worlds, regret and simulation of the bandits wing."""

import itertools
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, clone

from equipoise.datasets import make_bandit_losses
from equipoise.games import (
    UCB1,
    AdaptiveHideEnv,
    CallableAdversary,
    Corral,
    Exp3,
    ObliviousEnv,
    PiecewiseEnv,
    StaticDynamicBandit,
    StochasticSwitchingEnv,
    ThompsonBeta,
    TrackAndExplore,
    TsallisINF,
    best_switching_sequence,
    count_switches,
    dynamic_regret,
    regret_profile,
    scaling_exponent,
    simulate,
    static_regret,
    switching_regret,
)
from equipoise.games.bandits.streams import next_uniform, stream_of
from equipoise.testing import loss_tables

TABLE = np.array(
    [
        [0.2, 0.9, 0.5],
        [0.8, 0.1, 0.5],
        [0.7, 0.2, 0.5],
        [0.1, 0.9, 0.5],
        [0.9, 0.8, 0.0],
        [0.3, 0.4, 0.9],
    ]
)


def brute_force(losses, S):
    """Least loss over all sequences with at most S segments."""
    T, A = losses.shape
    best = np.inf
    for path in itertools.product(range(A), repeat=T):
        if 1 + sum(a != b for a, b in itertools.pairwise(path)) <= S:
            best = min(best, losses[np.arange(T), path].sum())
    return best


# Regret ---------------------------------------------------------------------------------------


def test_switching_reference():
    totals = [best_switching_sequence(TABLE, S) for S in range(1, 6)]
    assert_allclose(totals, [2.9, 2.3, 1.8, 1.3, 0.9], atol=1e-12)
    assert TABLE.min(axis=1).sum() == pytest.approx(0.9)


@settings(max_examples=20, deadline=None)
@given(loss_tables(max_rounds=5, max_arms=3))
def test_dynamic_programme_is_brute_force(losses):
    for S in range(1, len(losses) + 1):
        total, path = best_switching_sequence(losses, S, return_path=True)
        assert total == pytest.approx(brute_force(losses, S))
        assert best_switching_sequence(losses, S) == pytest.approx(total)
        assert losses[np.arange(len(losses)), path].sum() == pytest.approx(total)
        assert 1 + np.count_nonzero(np.diff(path)) <= S


@settings(max_examples=30, deadline=None)
@given(loss_tables(max_rounds=7, max_arms=3), st.randoms(use_true_random=False))
def test_regrets_are_ordered(losses, random):
    T, A = losses.shape
    arms = np.array([random.randrange(A) for _ in range(T)])
    profile = regret_profile(losses, arms, T)
    assert (np.diff(profile) >= -1e-12).all()
    assert profile[0] == pytest.approx(static_regret(losses, arms))
    assert profile[-1] == pytest.approx(dynamic_regret(losses, arms))
    assert switching_regret(losses, arms, 2) == pytest.approx(profile[min(1, T - 1)])


def test_count_switches():
    assert count_switches(TABLE) == 6
    assert count_switches([[0.5, 0.5]] * 4) == 1
    assert count_switches([[0.0, 0.5], [0.1, 0.5], [0.4, 0.5]], tol=0.2) == 2


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: static_regret(TABLE, [0] * 5), ValueError, "an arm a round"),
        (lambda: static_regret(TABLE, [0] * 5 + [3]), IndexError, "holds 3 in round 5"),
        (lambda: dynamic_regret(TABLE, [0.0] * 6), TypeError, "integers"),
        (lambda: best_switching_sequence(TABLE, 0), ValueError, "positive integer"),
        (lambda: best_switching_sequence(TABLE, True), ValueError, "positive integer"),
        (lambda: count_switches([[np.nan]]), ValueError, "in round 0 for arm 0"),
        (lambda: count_switches([1.0, 2.0]), ValueError, "n_rounds, n_arms"),
    ],
)
def test_bad_regret_input(call, error, match):
    with pytest.raises(error, match=match):
        call()


# Worlds ---------------------------------------------------------------------------------------


def test_streams_are_xoshiro():
    """Against the generator in Python integers."""
    words = [int(w) for w in stream_of(5)]
    stream, mask = stream_of(5), 2**64 - 1

    def rotl(x, k):
        return ((x << k) | (x >> (64 - k))) & mask

    for _ in range(20):
        result = (rotl((words[0] + words[3]) & mask, 23) + words[0]) & mask
        t = (words[1] << 17) & mask
        words[2] ^= words[0]
        words[3] ^= words[1]
        words[1] ^= words[2]
        words[0] ^= words[3]
        words[2] ^= t
        words[3] = rotl(words[3], 45)
        assert next_uniform(stream) == (result >> 11) / 2**53


def test_piecewise():
    env = PiecewiseEnv([[0.2, 0.8], [0.9, 0.1], [0.9, 0.1]], [3, 2, 2])
    assert (env.horizon, env.n_arms, env.n_switches_) == (7, 2, 2)
    assert_array_equal(env.losses_[:, 0], [0.2] * 3 + [0.9] * 4)
    with pytest.raises(ValueError, match="read-only"):
        env.losses_[0, 0] = 1
    table = np.zeros((2, 2))
    frozen = ObliviousEnv(table)
    table[0, 0] = 1
    assert frozen.losses_[0, 0] == 0


@pytest.mark.parametrize("dist", ["bernoulli", "beta", "gaussian"])
def test_stochastic_means(dist):
    means = np.array([[0.3, 0.6], [0.7, 0.4]])
    env = StochasticSwitchingEnv(means, [20_000, 20_000], dist=dist)
    table = env.losses_
    assert table.min() >= 0
    assert table.max() <= 1
    # The largest standard error is 0.0035; clipping at 3 sd moves the normal mean by 4e-5.
    assert_allclose(table.reshape(2, 20_000, 2).mean(axis=1), means, atol=0.015)
    assert_array_equal(table, env.losses_)
    assert (env.realise(1) != env.realise(2)).any()
    assert env.n_switches_ == 2


def test_hiding_adversary():
    env = AdaptiveHideEnv(4, 4000, 16, random_state=3)
    learner = StaticDynamicBandit(4, horizon=4000, random_state=0).fit(env)
    losses, arms = env.losses_, learner.arms_
    assert_array_equal(losses[:, 0], 0.5)
    found = np.flatnonzero(losses[np.arange(4000), arms] == 0.25)
    assert len(found) > 3
    starts = set(env.starts.tolist())
    for t in found:
        if t + 1 < 4000 and t + 1 not in starts:
            assert losses[t + 1, arms[t]] == 0.75, "it goes back the round after it is found"
    assert ((losses == 0.25).sum(axis=1) <= 1).all()
    assert env.n_switches_ <= 16
    assert learner.dynamic_regret_ == pytest.approx(dynamic_regret(losses, arms))


def test_hiding_in_python_is_the_compiled_one():
    env = AdaptiveHideEnv(3, 500, 10, random_state=3)
    compiled = Exp3(3, horizon=500, random_state=0).fit(env)
    table = env.losses_
    session, by_hand = env.session(3), Exp3(3, horizon=500, random_state=0)
    arms = []
    for t in range(500):
        row = session.losses(t, np.array(arms))
        assert_array_equal(row, table[t])
        arms.append(by_hand.select_arm())
        by_hand.update(arms[-1], row[arms[-1]])
    assert_array_equal(arms, compiled.arms_)


def test_callable_adversary_sees_the_past_only():
    seen = []

    def fn(t, history):
        seen.append((t, len(history)))
        return np.full(2, 0.5)

    env = CallableAdversary(fn, 2, 30)
    with pytest.raises(AttributeError, match="before a learner's fit"):
        _ = env.losses_
    learner = TsallisINF(2, random_state=0).fit(env)
    assert seen == [(t, t) for t in range(30)]
    assert learner.dynamic_regret_ == 0
    assert env.losses_.shape == (30, 2)
    wrong = CallableAdversary(lambda t, history: [0.5], 2, 3)
    with pytest.raises(ValueError, match=r"allowed: \(2,\)"):
        TsallisINF(2).fit(wrong)
    loud = CallableAdversary(lambda t, history: [0.5, 7.0], 2, 3)
    with pytest.raises(ValueError, match="loss_range"):
        TsallisINF(2).fit(loud)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: PiecewiseEnv([[0.5]], [0]), "lengths"),
        (lambda: PiecewiseEnv([[0.5]], [1.5]), "lengths"),
        (lambda: StochasticSwitchingEnv([[1.5]], [3]), r"\[0, 1\]"),
        (lambda: StochasticSwitchingEnv([[0.5]], [3], dist="poisson"), "dist"),
        (lambda: StochasticSwitchingEnv([[0.5]], [3], scale=-1), "scale"),
        (lambda: AdaptiveHideEnv(1, 10, 2), "n_arms"),
        (lambda: AdaptiveHideEnv(3, 10, 1), "n_switches"),
        (lambda: AdaptiveHideEnv(3, 10, 20), "n_switches"),
        (lambda: AdaptiveHideEnv(3, 10, 2, fixed=0.9), "low < fixed < high"),
    ],
)
def test_bad_worlds(call, match):
    with pytest.raises(ValueError, match=match):
        call()


def test_rewards_dont_meet_the_hiding_adversary():
    with pytest.raises(ValueError, match="hands out losses"):
        Exp3(3, mode="reward").fit(AdaptiveHideEnv(3, 10, 2))


# Tables ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["random", "rotate", "hidden", "decoy"])
def test_tables_have_their_segments(kind):
    world = make_bandit_losses(kind, 4, 1003, 10, random_state=0)
    assert world.losses.shape == (1003, 4)
    assert_array_equal(world.cuts, np.floor(np.linspace(0, 1003, 11)))
    changes = 1 + np.flatnonzero((np.diff(world.losses, axis=0) != 0).any(axis=1))
    assert set(changes) <= set(world.cuts)
    assert world.n_switches == 1 + len(changes)
    assert_array_equal(world.best_arms, world.losses.argmin(axis=1))


def test_hidden_kinds():
    hidden = make_bandit_losses("hidden", 4, 1000, 10, random_state=0).losses
    low = (hidden == 0.25).any(axis=1).reshape(10, 100)
    assert_array_equal(low, (np.arange(10) % 2 == 1)[:, None] * np.ones(100, bool))
    scale = np.sqrt(4 * 1000 / 10)
    short = make_bandit_losses("shorthid", 4, 1000, 10, random_state=0).losses
    assert (
        (short == 0.25).any(axis=1).reshape(10, 100)[1::2].sum(axis=1) == int(0.25 * scale)
    ).all()
    phase = make_bandit_losses("phase", 4, 1000, 10, random_state=0).losses
    lasts = (phase == 0.25).any(axis=1).reshape(10, 100)[1::2].sum(axis=1)
    assert lasts.tolist() == [int(0.1 * scale)] * 3 + [100] * 2
    turns = make_bandit_losses("alternating", 3, 4, 1).losses
    assert turns.tolist() == [[0.9, 0, 0.8], [0, 1, 0.8], [0.9, 0, 0.8], [0, 1, 0.8]]
    noise = make_bandit_losses("bernoulli", 3, 20_000, 1, random_state=0).losses
    assert_allclose(noise.mean(axis=0), [0.4, 0.5, 0.5], atol=0.015)
    decoy = make_bandit_losses("decoy", 3, 100, 5, random_state=0).losses
    assert (decoy[:, 0] == 0.5).all()
    assert decoy[:, 1:].min() >= 0.6


def test_bad_tables():
    with pytest.raises(ValueError, match="don't fit"):
        make_bandit_losses("random", 2, 5, 6)
    with pytest.raises(ValueError, match="no segments"):
        make_bandit_losses("alternating", 2, 50, 6)
    with pytest.raises(ValueError, match="kind"):
        make_bandit_losses("nothing", 2, 50, 6)


# Simulation -----------------------------------------------------------------------------------

WORLD = make_bandit_losses("random", 3, 600, 6, random_state=1).losses


def field():
    return {
        "ours": StaticDynamicBandit(3, horizon=600),
        "exp3": Exp3(3, horizon=600),
        "corral": Corral(3, horizon=600),
        "thompson": ThompsonBeta(3),
        "ucb": UCB1(3),
    }


def test_simulation_is_the_python_loop():
    result = simulate(
        field(), WORLD, n_runs=3, random_state=5, store_arms=True, checkpoints=[7, 50]
    )
    assert result.rounds.tolist() == [7, 50, 600]
    for j, learner in enumerate(field().values()):
        for r in range(3):
            player = clone(learner)
            if "random_state" in player.get_params():
                player.set_params(random_state=int(result.seeds[j, r]))
            arms = []
            for row in WORLD:
                arms.append(player.select_arm())
                player.update(arms[-1], row[arms[-1]])
            assert_array_equal(arms, result.arms[j, r])
            played = WORLD[np.arange(600), arms].cumsum()
            assert_allclose(result.cum_loss[j, r], played[[6, 49, 599]])
            assert result.final("static")[j, r] == pytest.approx(static_regret(WORLD, arms))
            assert result.final("dynamic")[j, r] == pytest.approx(dynamic_regret(WORLD, arms))
            for S in (1, 3, 600):
                assert result.final("switching", S)[j, r] == pytest.approx(
                    switching_regret(WORLD, arms, S)
                )
            assert result.regret("switching", 2)[j, r, 1] == pytest.approx(
                switching_regret(WORLD[:50], np.array(arms[:50]), 2)
            )


@pytest.mark.parametrize(
    "env",
    [
        ObliviousEnv(WORLD),
        StochasticSwitchingEnv([[0.3, 0.6, 0.5], [0.8, 0.4, 0.5]], [200, 200]),
        AdaptiveHideEnv(3, 400, 8),
    ],
    ids=lambda env: type(env).__name__,
)
def test_results_dont_depend_on_threads(env):
    learners = [StaticDynamicBandit(3, horizon=400), Exp3(3, horizon=400)]
    one = simulate(learners, env, n_runs=5, random_state=2, store_arms=True)
    two = simulate(learners, env, n_runs=5, random_state=2, store_arms=True, n_jobs=2)
    assert_array_equal(one.cum_loss, two.cum_loss)
    assert_array_equal(one.arms, two.arms)
    for kind, S in (("static", None), ("dynamic", None), ("switching", 3)):
        assert_array_equal(one.regret(kind, S), two.regret(kind, S))
    other = simulate(learners, env, n_runs=5, random_state=3)
    assert (one.cum_loss != other.cum_loss).any()


def test_noisy_worlds_are_common_to_learners():
    """Equal learners with equal seeds would play alike; the tables of a run are the same."""
    env = StochasticSwitchingEnv([[0.4, 0.5]], [300])
    result = simulate([UCB1(2), UCB1(2)], env, n_runs=4, random_state=0)
    assert result.names == ["UCB1", "UCB1 2"]
    assert_array_equal(result.cum_loss[0], result.cum_loss[1])
    assert len(np.unique(result.cum_loss[0, :, -1])) > 1


def test_adversary_makes_each_run_a_table():
    env = AdaptiveHideEnv(4, 2000, 16)
    result = simulate(
        [StaticDynamicBandit(4, horizon=2000), Exp3(4, horizon=2000)],
        env,
        n_runs=3,
        random_state=0,
        store_arms=True,
    )
    tables = np.array(result._tables).reshape(2, 3, 2000, 4)
    for j, r in itertools.product(range(2), range(3)):
        arms = result.arms[j, r]
        assert result.final("dynamic")[j, r] == pytest.approx(dynamic_regret(tables[j, r], arms))
        assert result.final("static")[j, r] == pytest.approx(static_regret(tables[j, r], arms))
    assert result.n_switches == np.mean([count_switches(t) for t in tables.reshape(6, 2000, 4)])
    bare = simulate([Exp3(4, horizon=2000)], env, n_runs=2, random_state=0)
    for ask in (lambda: bare.n_switches, lambda: bare.regret("switching", 2)):
        with pytest.raises(ValueError, match="store_arms=True"):
            ask()


class RoundRobin(BaseEstimator):
    """A stranger: plays the arms in turn."""

    def __init__(self, n_arms=3):
        self.n_arms = n_arms

    def select_arm(self):
        self.t_ = getattr(self, "t_", -1) + 1
        return self.t_ % self.n_arms

    def update(self, arm, loss):
        self.total_ = getattr(self, "total_", 0.0) + loss


def test_strangers_can_play():
    result = simulate({"theirs": RoundRobin(), **field()}, WORLD, n_runs=2, random_state=0)
    arms = np.arange(600) % 3
    assert_allclose(result.final("static")[0], static_regret(WORLD, arms))
    against = simulate([RoundRobin()], AdaptiveHideEnv(3, 200, 4), n_runs=2, random_state=0)
    assert against.cum_loss.shape[1] == 2
    assert (against.final("dynamic") > 0).all()


def test_units_carry_over():
    losses = np.round(WORLD * 8) / 8
    plain = simulate([Exp3(3, horizon=600)], losses, n_runs=2, random_state=0)
    money = simulate(
        [Exp3(3, horizon=600, loss_range=(0, 80))], 80 * losses, n_runs=2, random_state=0
    )
    assert_allclose(money.final("static"), 80 * plain.final("static"))
    reward = Exp3(3, horizon=600, mode="reward")
    earned = simulate([reward], 1 - losses, n_runs=2, random_state=0)
    assert_allclose(earned.final("dynamic"), plain.final("dynamic"))
    with pytest.raises(ValueError, match="one mode"):
        simulate([reward, Exp3(3)], losses)


def test_summary_and_compare():
    result = simulate(field(), WORLD, n_runs=6, random_state=0)
    frame = result.summary()
    assert len(frame) == 10
    assert (frame["low"] <= frame["mean"] + 1e-9).all()
    assert (frame["mean"] <= frame["high"] + 1e-9).all()
    assert frame["mean"].iloc[0] == pytest.approx(result.final("static")[0].mean())
    gap = result.compare("ours", "exp3")
    assert gap["low"] <= gap["mean"] <= gap["high"]
    assert gap["mean"] == pytest.approx(
        (result.final("dynamic")[0] - result.final("dynamic")[1]).mean()
    )
    with pytest.raises(ValueError, match="isn't a learner"):
        result.compare("ours", "nobody")
    single = simulate([UCB1(3)], WORLD, n_runs=1).summary()
    assert (single["low"] == single["high"]).all()


def test_plots():
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    result = simulate(field(), WORLD, n_runs=2, random_state=0)
    for kind, S in (("static", None), ("dynamic", None), ("switching", 4)):
        ax = result.plot(kind, S=S)
        assert len(ax.get_lines()) == 5
        assert ax.get_xscale() == "log"
    ax = result.plot_pareto()
    assert ax.get_xlabel().startswith("dynamic regret")
    plt.close("all")


def test_scaling_exponents():
    def results(axis):
        for k, (T, S) in enumerate([(2000, 4), (8000, 16)]):
            T, S = (T, 4) if axis == "T" else (8000, S)
            world = make_bandit_losses("hidden", 3, T, S, random_state=k).losses
            learners = [TrackAndExplore(3, horizon=T, n_switches=S)]
            yield simulate(learners, world, n_runs=30, checkpoints=1, random_state=k)

    for axis in ("T", "S"):
        slope = scaling_exponent(list(results(axis)), axis=axis)["TrackAndExplore"]
        # Two points a factor 4 apart: the means' 5 % errors move the slope by 0.05.
        assert slope == pytest.approx(0.5, abs=0.15)
    one = simulate([UCB1(3)], WORLD, n_runs=1)
    with pytest.raises(ValueError, match="same in all"):
        scaling_exponent([one, one])
    with pytest.raises(ValueError, match="two or more"):
        scaling_exponent([one])
    negative = simulate([StaticDynamicBandit(3, horizon=600)], WORLD, n_runs=2, random_state=0)
    longer = simulate(
        [StaticDynamicBandit(3, horizon=600)], np.r_[WORLD, WORLD], n_runs=2, random_state=0
    )
    with pytest.raises(ValueError, match="isn't positive"):
        scaling_exponent([negative, longer], kind="static")


def test_interrupt_keeps_what_is_done():
    calls = []

    def fn(t, history):
        calls.append(t)
        if len(calls) > 250:
            raise KeyboardInterrupt
        return [0.5, 0.6]

    env = CallableAdversary(fn, 2, 100)
    with pytest.warns(UserWarning, match="2 of 10 runs"):
        result = simulate([TsallisINF(2)], env, n_runs=10, random_state=0)
    assert result.n_runs == 2
    calls[:] = range(200)
    with pytest.raises(KeyboardInterrupt):
        simulate([TsallisINF(2)], env, n_runs=10, random_state=0)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: simulate([], WORLD), ValueError, "empty"),
        (lambda: simulate([Exp3(4)], WORLD), ValueError, "4 arms"),
        (lambda: simulate([object()], WORLD), TypeError, "select_arm"),
        (lambda: simulate([Exp3(3)], WORLD, n_runs=0), ValueError, "n_runs"),
        (lambda: simulate([Exp3(3)], WORLD, checkpoints=0), ValueError, "checkpoints"),
        (lambda: simulate([Exp3(3)], WORLD, checkpoints=[0, 5]), ValueError, "checkpoints"),
        (lambda: simulate([Exp3(3)], WORLD + 1), ValueError, "loss_range"),
        (lambda: simulate([Exp3(3, horizon=0)], WORLD), ValueError, "horizon"),
        (lambda: simulate([Exp3(3)], None), TypeError, "env=None"),
        (lambda: simulate([Exp3(3)], WORLD, n_runs=1).regret("x"), ValueError, "kind"),
        (lambda: simulate([Exp3(3)], WORLD, n_runs=1).regret("static", 2), ValueError, "S=2"),
        (lambda: simulate([Exp3(3)], WORLD, n_runs=1).regret("switching"), ValueError, "needs S"),
    ],
)
def test_bad_simulations(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_result_pickles():
    result = simulate([Exp3(3)], WORLD, n_runs=2, random_state=0)
    assert_array_equal(pickle.loads(pickle.dumps(result)).cum_loss, result.cum_loss)


def test_clipping_warns_once_and_plays():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        simulate([Exp3(3, clip=True)], WORLD + 0.5, n_runs=3, random_state=0)
    assert len([w for w in caught if "clipped" in str(w.message)]) == 1


# Scaling, as measured -------------------------------------------------------------------------


def mean_ratios(learner, kind, T, S, tables, seeds=3):
    """(R_stat / sqrt(A T), R_dyn / sqrt(S A T)), means over tables and seeds, A = 4."""
    static, dynamic = [], []
    for k in range(tables):
        losses = make_bandit_losses(kind, 4, T, S, random_state=k).losses
        result = simulate([learner], losses, n_runs=seeds, checkpoints=1, random_state=k)
        static.append(result.final("static").mean())
        dynamic.append(result.final("dynamic").mean())
    return np.mean(static) / np.sqrt(4 * T), np.mean(dynamic) / np.sqrt(S * 4 * T)


def near(value, expected):
    """The reference's own tolerance: other tables and seeds."""
    return abs(value - expected) <= max(0.15 * abs(expected), 0.06)


@pytest.mark.parametrize(
    ("T", "dynamic", "static"), [(5000, 0.39, -2.9), (20_000, 0.41, -7.2), (80_000, 0.38, -16.2)]
)
def test_scaling_with_the_horizon(T, dynamic, static):
    found = mean_ratios(StaticDynamicBandit(4, horizon=T), "hidden", T, 16, 4)
    assert near(found[1], dynamic)
    assert near(found[0], static)
    assert near(mean_ratios(StaticDynamicBandit(4, horizon=T), "decoy", T, 16, 4)[0], 0.26)
    assert near(mean_ratios(StaticDynamicBandit(4, horizon=T), "shorthid", T, 16, 4)[0], 0.19)


def test_scaling_of_random_tables():
    found = mean_ratios(StaticDynamicBandit(4, horizon=20_000), "random", 20_000, 16, 40)
    assert near(found[1], 0.43)


@pytest.mark.parametrize(
    ("S", "ours", "theirs"), [(4, 0.24, 0.45), (64, 0.25, 1.82), (256, 0.24, 3.61)]
)
def test_tracking_costs_static_regret(S, ours, theirs):
    T = 80_000
    learner = StaticDynamicBandit(4, horizon=T)
    assert near(mean_ratios(learner, "decoy", T, S, 4)[0], ours)
    tracker = TrackAndExplore(4, horizon=T, n_switches=S)
    assert near(mean_ratios(tracker, "decoy", T, S, 4)[0], theirs)


@pytest.mark.parametrize(
    ("part", "alternating", "bernoulli"), [("regret_matching", 3.6, 2.9), ("exp", 2.0, 1.3)]
)
def test_out_of_the_model(part, alternating, bernoulli):
    for T in (5000, 80_000):
        learner = StaticDynamicBandit(4, horizon=T, static_part=part)
        assert mean_ratios(learner, "alternating", T, 1, 1, 8)[0] < alternating * 1.15
        assert mean_ratios(learner, "bernoulli", T, 1, 4)[0] < bernoulli * 1.15


def test_adversary_is_harder_than_its_replay():
    """The same tables, played obliviously by fresh learners, cost at most 1/1.8 of the regret."""
    T, S = 80_000, 512
    learner = StaticDynamicBandit(4, horizon=T)
    ratios = []
    for seed in range(3):
        env = AdaptiveHideEnv(4, T, S, random_state=seed)
        against = clone(learner).set_params(random_state=seed).fit(env).dynamic_regret_
        replayed = clone(learner).set_params(random_state=100 + seed).fit(env.losses_)
        ratios.append(against / replayed.dynamic_regret_)
    assert np.mean(ratios) >= 1.8
