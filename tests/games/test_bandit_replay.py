"""Replay of logs, and choice among fitted models."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import NotFittedError

from equipoise.datasets import load_digits_bandit
from equipoise.games import (
    UCB1,
    Exp3,
    ReplayEnv,
    StaticDynamicBandit,
    SwitchingMeta,
    simulate,
)

MEANS = np.array([0.2, 0.5, 0.7])


def make_log(n, law, seed=0):
    """A logger who draws by a fixed law, and Bernoulli losses."""
    rng = np.random.RandomState(seed)
    arms = rng.choice(3, size=n, p=law)
    losses = (rng.uniform(size=n) < MEANS[arms]).astype(float)
    return arms, losses, np.asarray(law)[arms]


def test_value_of_a_law():
    log = make_log(20_000, [0.2, 0.3, 0.5])
    env = ReplayEnv(log)
    p = np.array([0.6, 0.3, 0.1])
    plain, normalized = env.value(p, normalize=False), env.value(p)
    weights = p[log[0]] / log[2]
    assert plain.mean == pytest.approx((weights * log[1]).mean())
    assert normalized.mean == pytest.approx((weights * log[1]).sum() / weights.sum())
    for found in (plain, normalized):
        assert found.low < p @ MEANS < found.high
        assert found.effective_n < 20_000
    assert env.value(np.array([0.2, 0.3, 0.5])).effective_n == pytest.approx(20_000)


def test_value_intervals_cover():
    """200 logs: 95 % intervals miss about 10 times; more than 22 misses have chance 0.02 %."""
    p = np.array([0.6, 0.3, 0.1])
    misses = 0
    for seed in range(200):
        found = ReplayEnv(make_log(500, [0.2, 0.3, 0.5], seed), n_arms=3).value(p)
        misses += not found.low <= p @ MEANS <= found.high
    assert misses <= 22


def test_a_learners_own_run_is_a_log():
    """Importance weights of 300 runs: their mean is the law's loss, within four standard errors."""
    table, law = np.random.RandomState(0).uniform(size=(200, 3)) * [0.5, 0.8, 1.0], [0.2, 0.7, 0.1]
    found = []
    for seed in range(300):
        run = Exp3(3, horizon=200, random_state=seed).fit(table)
        log = ReplayEnv((run.arms_, run.losses_, run.propensities_), n_arms=3)
        found.append(log.value(law, normalize=False).mean)
    error = np.std(found) / np.sqrt(300)
    assert error < 0.01
    assert np.mean(found) == pytest.approx(table.mean(axis=0) @ law, abs=4 * error)


def test_replay_is_a_true_run():
    """Accepted events of an uneven logger have the arms' true means; the learner finds arm 0."""
    env = ReplayEnv(make_log(30_000, [0.2, 0.3, 0.5]))
    found = env.replay(UCB1(3))
    assert found.learner.predict() == 0
    assert found.n_events == len(found.arms) == found.learner.t_
    played = np.bincount(found.arms, minlength=3)
    assert played.argmax() == 0
    for arm in range(3):
        if played[arm] > 200:
            mean = found.losses[found.arms == arm].mean()
            assert mean == pytest.approx(MEANS[arm], abs=4 * 0.5 / np.sqrt(played[arm]))
    assert found.low < found.mean < found.high
    # A learner that goes on drawing uniformly keeps a fraction q_min of the events.
    uniform = env.replay(Exp3(3, learning_rate=1e-12, random_state=0))
    assert uniform.n_events == pytest.approx(30_000 * 0.2, rel=0.05)
    assert uniform.mean == pytest.approx(MEANS.mean(), abs=0.03)


def test_replay_of_a_table_is_oblivious():
    table = np.random.RandomState(0).uniform(size=(50, 3))
    env = ReplayEnv(table)
    learner = Exp3(3, horizon=50, random_state=0)
    assert_array_equal(clone(learner).fit(env).arms_, clone(learner).fit(table).arms_)
    assert simulate([learner], env, n_runs=2, random_state=0).n_runs == 2
    with pytest.raises(ValueError, match=r"learner\.fit"):
        env.replay(learner)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: ReplayEnv(([0], [0.5], [0.0])), ValueError, "propensities"),
        (lambda: ReplayEnv(([0], [0.5, 0.5], [0.5])), ValueError, "one length"),
        (lambda: ReplayEnv(([0], [np.nan], [0.5])), ValueError, "finite"),
        (lambda: ReplayEnv(([3], [0.5], [0.5]), n_arms=2), IndexError, "arms holds 3"),
        (lambda: ReplayEnv([[0.5]], n_arms=2), ValueError, "triple"),
        (lambda: ReplayEnv(([0], [0.5], [0.5])).value([0.5]), ValueError, "sum to 1"),
        (lambda: ReplayEnv(([0], [0.5], [0.5]), 2).value([0.0, 1.0]), ValueError, "never chose"),
        (lambda: ReplayEnv(([0], [0.5], [0.5])).replay(UCB1(2)), ValueError, "2 arms"),
        (lambda: UCB1(1).fit(ReplayEnv(([0], [0.5], [0.5]))), ValueError, "env.replay"),
    ],
)
def test_bad_logs(call, error, match):
    with pytest.raises(error, match=match):
        call()


# Choice among models --------------------------------------------------------------------------


def constant_models():
    X, y = np.zeros((1200, 2)), np.repeat([0, 1, 0], 400)
    models = []
    for k in (0, 1):
        model = DummyClassifier(strategy="constant", constant=k).fit(X, y)
        models.append((f"always {k}", model))
    return models, X, y


def test_meta_follows_the_switches():
    models, X, y = constant_models()
    learner = StaticDynamicBandit(2, horizon=1200, random_state=0)
    meta = SwitchingMeta(models, learner).partial_fit(X, y)
    assert meta.mean_loss_ < 0.15  # the better fixed model errs in a third
    assert meta.predict(X[:2]).tolist() == [0, 0]
    assert meta.counts_.sum() == meta.learner_.t_ == 1200
    table = np.array([y != 0, y != 1], dtype=float).T
    fitted = clone(learner).fit(table)
    assert_array_equal(np.bincount(fitted.arms_), meta.counts_)
    assert meta.mean_loss_ == pytest.approx(fitted.losses_.mean())
    assert list(meta.explain().to_frame()["model"]) == ["always 0", "always 1"]
    assert "asked most: always 0" in str(meta.explain())


def test_meta_in_parts_is_meta_at_once():
    models, X, y = constant_models()
    at_once = SwitchingMeta(models, random_state=0).partial_fit(X, y)
    parts = SwitchingMeta(models, random_state=0)
    for start in range(0, 1200, 100):
        parts.partial_fit(X[start : start + 100], y[start : start + 100])
    assert_array_equal(parts.counts_, at_once.counts_)
    assert_allclose(parts.mean_loss_, at_once.mean_loss_)


def test_meta_of_regressors():
    X, y = np.zeros((300, 1)), np.full(300, 0.8)
    models = [
        (str(c), DummyRegressor(strategy="constant", constant=c).fit(X, y)) for c in (0.0, 0.75)
    ]
    meta = SwitchingMeta(models, loss=lambda a, b: np.abs(a - b), random_state=0).partial_fit(X, y)
    assert meta.predict(X[:1]).tolist() == [0.75]
    with pytest.raises(ValueError, match="loss=None is for classifiers"):
        SwitchingMeta(models).partial_fit(X, y)


def test_meta_refuses():
    models, X, y = constant_models()
    meta = SwitchingMeta(models, random_state=0).partial_fit(X[:50], y[:50])
    before = (meta.counts_.copy(), meta.learner_._memory.copy())
    with pytest.raises(ValueError, match="inconsistent"):
        meta.partial_fit(X[:5], y[:4])
    meta.loss = lambda a, b: np.full(len(a), 2.0)
    with pytest.raises(ValueError, match=r"in \[0, 1\]"):
        meta.partial_fit(X, y)
    assert_array_equal(meta.counts_, before[0])
    assert_array_equal(meta.learner_._memory, before[1])
    for wrong, error, match in [
        (SwitchingMeta([]), ValueError, "not empty"),
        (SwitchingMeta([models[0], models[0]]), ValueError, "names must differ"),
        (SwitchingMeta([("new", DummyClassifier())]), NotFittedError, "not fitted"),
        (SwitchingMeta(models, StaticDynamicBandit(3)), ValueError, "3 arms"),
    ]:
        with pytest.raises(error, match=match):
            wrong.partial_fit(X, y)
    with pytest.raises(NotFittedError):
        SwitchingMeta(models).predict(X)


# Digits ---------------------------------------------------------------------------------------


def test_digits_stream():
    stream = load_digits_bandit(horizon=2000, n_switches=5, random_state=1)
    assert stream.losses.shape == (2000, 5)
    assert_array_equal(stream.error_rates.argmin(axis=1), np.arange(5))
    names = ("nothing", "top", "bottom", "left", "right")
    rows = np.repeat([names.index(part) for part in stream.hidden], np.diff(stream.cuts))
    assert_array_equal(stream.losses, stream.error_rates[rows])
    assert all(a != b for a, b in zip(stream.hidden, stream.hidden[1:], strict=False))
    noisy = load_digits_bandit(horizon=4000, n_switches=1, kind="zero_one", random_state=1)
    assert set(np.unique(noisy.losses)) == {0.0, 1.0}
    rates = noisy.error_rates[names.index(noisy.hidden[0])]
    # The standard error of a rate is at most 0.008.
    assert_allclose(noisy.losses.mean(axis=0), rates, atol=0.032)
    with pytest.raises(ValueError, match="don't fit"):
        load_digits_bandit(horizon=3, n_switches=4)
