"""Rounds of bandit learners against other packages, and switching regret against NumPy.

A round is a draw and an update. Where the peer runs the same algorithm the mean losses must agree: UCB1 to the last
digit, on the same table; randomised learners over independent runs, to four standard errors (the column then shows the
difference in standard errors). Exp3 of SMPyBandits and river learns from rewards and mixes in uniform draws, coba's
Corral teaches all bases in every round: other algorithms, whose difference is printed, not judged.
"""

from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from equipoise.datasets import make_bandit_losses
from equipoise.games import (
    UCB1,
    Corral,
    EpsilonGreedy,
    Exp3,
    StaticDynamicBandit,
    ThompsonBeta,
    TsallisINF,
    best_switching_sequence,
    simulate,
)

T = 10_000
NOISE = make_bandit_losses("bernoulli", 4, T, 1, random_state=0).losses
Play = Callable[[np.ndarray, int], float]


def total_losses(learner: Any, losses: np.ndarray, n_runs: int, n_jobs: int = 1) -> np.ndarray:
    """Total loss of each run."""
    result = simulate([learner], losses, n_runs, checkpoints=1, n_jobs=n_jobs, random_state=0)
    return result.cum_loss[0, :, -1]


def mabwiser_ucb(losses: np.ndarray, seed: int) -> float:
    from mabwiser.mab import MAB, LearningPolicy

    mab = MAB([0, 1, 2, 3], LearningPolicy.UCB1(alpha=1.0))
    first = [float(1 - losses[a, a]) for a in range(4)]
    mab.fit([0, 1, 2, 3], first)
    total = 4 - sum(first)
    for t in range(4, len(losses)):
        arm = mab.predict()
        mab.partial_fit([arm], [1 - losses[t, arm]])
        total += losses[t, arm]
    return float(total)


def smpybandits(name: str, **parameters: Any) -> Play:
    import importlib

    import scipy.special

    if not hasattr(scipy.special, "btdtri"):  # it imports a name that SciPy has dropped
        scipy.special.btdtri = scipy.special.betaincinv
    policy_class = getattr(importlib.import_module(f"SMPyBandits.Policies.{name}"), name)

    def play(losses: np.ndarray, seed: int) -> float:
        import random

        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002  it draws from the global generators
        policy = policy_class(4, **parameters)
        policy.startGame()
        total = 0.0
        for row in losses:
            arm = policy.choice()
            policy.getReward(arm, 1 - row[arm])
            total += row[arm]
        return total

    return play


def river(name: str, **parameters: Any) -> Play:
    from river import bandit

    def play(losses: np.ndarray, seed: int) -> float:
        policy = getattr(bandit, name)(seed=seed, **parameters)
        arms, total = [0, 1, 2, 3], 0.0
        for row in losses:
            arm = policy.pull(arms)
            policy.update(arm, 1 - row[arm])
            total += row[arm]
        return total

    return play


def coba_corral(losses: np.ndarray, seed: int) -> float:
    from coba.learners import BanditEpsilonLearner, CorralLearner

    bases = [BanditEpsilonLearner(0.1, seed), BanditEpsilonLearner(0.5, seed + 1)]
    master = CorralLearner(bases, eta=0.05, T=len(losses), seed=seed)
    arms, total = ["a", "b", "c", "d"], 0.0
    for row in losses:
        arm, share, more = master.predict(None, arms)
        loss = row[arms.index(arm)]
        master.learn(None, arm, 1 - loss, share, **more)
        total += loss
    return total


def peer_losses(play: Play, n_rounds: int, n_runs: int) -> np.ndarray:
    """Total loss of each of the peer's runs."""
    return np.array([play(NOISE[:n_rounds], seed) for seed in range(n_runs)])


def numpy_programme(losses: np.ndarray, S: int) -> float:
    """The recursion, a row of losses at a time."""
    cost = np.tile(losses[0], (S, 1))
    for row in losses[1:]:
        enter = np.r_[np.inf, cost[:-1].min(axis=1)]
        cost = np.minimum(cost, enter[:, None]) + row
    return float(cost[-1].min())


def relative_difference(ours: np.ndarray, peer: np.ndarray) -> float:
    """Of mean losses."""
    return float(abs(ours.mean() - peer.mean()) / peer.mean())


def standard_errors(ours: np.ndarray, peer: np.ndarray) -> float:
    """Difference of mean losses, in its standard errors."""
    variance = ours.var(ddof=1) / len(ours) + peer.var(ddof=1) / len(peer)
    return float(abs(ours.mean() - peer.mean()) / np.sqrt(variance))


def peer_cases() -> Iterator[dict[str, Any]]:
    corral = Corral(4, T, bases=[EpsilonGreedy(4, 0.1), EpsilonGreedy(4, 0.5)], learning_rate=0.05)
    greedy = EpsilonGreedy(4, epsilon=0.1)
    # Package, learner, rounds, runs, ours, the peer's, and whether the algorithms are the same.
    peers: list[tuple[str, str, int, int, Any, Callable[[], Play], bool]] = [
        ("mabwiser", "UCB1", T, 1, UCB1(4), lambda: mabwiser_ucb, True),
        (
            "river",
            "epsilon-greedy",
            T,
            10,
            greedy,
            lambda: river("EpsilonGreedy", epsilon=0.1, burn_in=1),
            True,
        ),
        (
            "SMPyBandits",
            "Thompson",
            T,
            10,
            ThompsonBeta(4),
            lambda: smpybandits("Thompson"),
            True,
        ),
        (
            "SMPyBandits",
            "Tsallis-INF",
            1000,
            10,
            TsallisINF(4, estimator="iw"),
            lambda: smpybandits("TsallisInf"),
            True,
        ),
        (
            "SMPyBandits",
            "Exp3",
            T,
            10,
            Exp3(4, horizon=T),
            lambda: smpybandits("Exp3", gamma=0.05),
            False,
        ),
        ("river", "Exp3", T, 10, Exp3(4, horizon=T), lambda: river("Exp3", gamma=0.05), False),
        ("coba", "Corral", T, 3, corral, lambda: coba_corral, False),
    ]
    for package, name, n_rounds, n_runs, learner, make_peer, same in peers:
        case = {
            "name": f"{n_runs} x {n_rounds:,} rounds of 4 arms, {name} ({package})",
            "ours": lambda learner=learner, n=n_rounds, r=n_runs: total_losses(
                learner, NOISE[:n], r
            ),
            "repeats": 1,
            "distance": standard_errors if same and n_runs > 1 else relative_difference,
            "tolerance": 4.0 if n_runs > 1 else 1e-10,
            "exact": same,
        }
        if not find_spec(package):
            yield {**case, "name": f"{case['name']}: not installed"}
            continue
        yield {**case, "peer": partial(peer_losses, make_peer(), n_rounds, n_runs)}


def cases() -> Iterator[dict[str, Any]]:
    for n_arms, n_rounds in ((4, 1_000_000), (64, 200_000)):
        losses = make_bandit_losses("random", n_arms, n_rounds, 16, random_state=0).losses
        for learner in (
            StaticDynamicBandit(n_arms, horizon=n_rounds),
            TsallisINF(n_arms),
            Exp3(n_arms, horizon=n_rounds),
        ):
            yield {
                "name": f"4 x {n_rounds:,} rounds of {n_arms} arms, {type(learner).__name__}",
                "ours": lambda learner=learner, losses=losses: total_losses(learner, losses, 4),
                "repeats": 3,
            }
    yield from peer_cases()
    jumps = make_bandit_losses("random", 4, 400_000, 16, random_state=0).losses
    ours = StaticDynamicBandit(4, horizon=400_000)
    yield {
        "name": "32 x 400,000 rounds of 4 arms, 2 threads (one thread)",
        "ours": lambda: total_losses(ours, jumps, 32, 2),
        "peer": lambda: total_losses(ours, jumps, 32, 1),
        "repeats": 3,
    }
    table = np.random.RandomState(0).uniform(size=(100_000, 16))
    yield {
        "name": "switching regret, T = 100,000, A = 16, S = 64 (NumPy, a row at a time)",
        "ours": lambda: best_switching_sequence(table, 64),
        "peer": lambda: numpy_programme(table, 64),
        "repeats": 1,
    }
    one = StaticDynamicBandit(4, horizon=T, random_state=0)

    def by_hand() -> int:
        one.reset()
        for t in range(T):
            arm = one.select_arm()
            one.update(arm, NOISE[t, arm])
        return one.t_

    yield {"name": f"{T:,} rounds by hand, select_arm and update", "ours": by_hand, "repeats": 3}
