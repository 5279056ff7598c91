"""Rounds of bandit learners against other packages, and switching regret against NumPy.

UCB1 is the same algorithm in mabwiser: the same arms on the same table, compared by total loss.
SMPyBandits' and river's Exp3 learn from rewards with uniform mixing, so only the size of their
regret is comparable; it is printed, not judged. A round is a draw and an update.
"""

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

from equipoise.datasets import make_bandit_losses
from equipoise.games import (
    UCB1,
    Exp3,
    StaticDynamicBandit,
    TsallisINF,
    best_switching_sequence,
    simulate,
)

T = 10_000
NOISE = make_bandit_losses("bernoulli", 4, T, 1, random_state=0).losses


def rounds(learner: Any, losses: np.ndarray, n_runs: int = 1, n_jobs: int = 1) -> float:
    """Mean total loss."""
    result = simulate([learner], losses, n_runs, checkpoints=1, n_jobs=n_jobs, random_state=0)
    return float(result.cum_loss.mean())


def mabwiser_ucb() -> float:
    from mabwiser.mab import MAB, LearningPolicy

    mab = MAB([0, 1, 2, 3], LearningPolicy.UCB1(alpha=1.0))
    first = [float(1 - NOISE[a, a]) for a in range(4)]
    mab.fit([0, 1, 2, 3], first)
    total = 4 - sum(first)
    for t in range(4, T):
        arm = mab.predict()
        mab.partial_fit([arm], [1 - NOISE[t, arm]])
        total += NOISE[t, arm]
    return float(total)


def smpybandits(name: str, **parameters: Any) -> Callable[[], float]:
    import scipy.special

    if not hasattr(scipy.special, "btdtri"):  # it imports a name that SciPy has dropped
        scipy.special.btdtri = scipy.special.betaincinv
    import importlib

    policy_class = getattr(importlib.import_module(f"SMPyBandits.Policies.{name}"), name)

    def play() -> float:
        policy = policy_class(4, **parameters)
        policy.startGame()
        total = 0.0
        for t in range(T):
            arm = policy.choice()
            policy.getReward(arm, 1 - NOISE[t, arm])
            total += NOISE[t, arm]
        return total

    return play


def river_exp3() -> float:
    from river import bandit

    policy = bandit.Exp3(gamma=0.05, seed=0)
    arms, total = [0, 1, 2, 3], 0.0
    for t in range(T):
        arm = policy.pull(arms)
        policy.update(arm, 1 - NOISE[t, arm])
        total += NOISE[t, arm]
    return total


def numpy_programme(losses: np.ndarray, S: int) -> float:
    """The recursion, a row of losses at a time."""
    cost = np.tile(losses[0], (S, 1))
    for row in losses[1:]:
        enter = np.r_[np.inf, cost[:-1].min(axis=1)]
        cost = np.minimum(cost, enter[:, None]) + row
    return float(cost[-1].min())


def regret_distance(ours: float, peer: float) -> float:
    """Difference of total losses a round."""
    return abs(ours - peer) / T


def peer_cases() -> Iterator[dict[str, Any]]:
    peers: list[tuple[str, str, Any, Callable[[], Callable[[], float]], bool]] = [
        ("mabwiser", "UCB1 (mabwiser)", UCB1(4), lambda: mabwiser_ucb, True),
        (
            "SMPyBandits",
            "Exp3 (SMPyBandits)",
            Exp3(4, horizon=T),
            lambda: smpybandits("Exp3", gamma=0.05),
            False,
        ),
        (
            "SMPyBandits",
            "Tsallis-INF (SMPyBandits)",
            TsallisINF(4),
            lambda: smpybandits("TsallisInf"),
            False,
        ),
        ("river", "Exp3 (river)", Exp3(4, horizon=T), lambda: river_exp3, False),
    ]
    for package, name, learner, peer, exact in peers:
        case = {
            "name": f"{T:,} rounds of 4 arms, {name}",
            "ours": lambda learner=learner: rounds(learner, NOISE),
            "repeats": 2,
            "distance": regret_distance,
            "exact": exact,
        }
        if find_spec(package):
            yield {**case, "peer": peer()}
        else:
            yield {**case, "name": f"{case['name']}: not installed"}


def cases() -> Iterator[dict[str, Any]]:
    for n_arms, n_rounds in ((4, 1_000_000), (64, 200_000)):
        losses = make_bandit_losses("random", n_arms, n_rounds, 16, random_state=0).losses
        for learner in (
            StaticDynamicBandit(n_arms, horizon=n_rounds),
            TsallisINF(n_arms),
            Exp3(n_arms, horizon=n_rounds),
        ):
            yield {
                "name": f"{n_rounds:,} rounds of {n_arms} arms, {type(learner).__name__}",
                "ours": lambda learner=learner, losses=losses: rounds(learner, losses),
                "repeats": 3,
            }
    yield from peer_cases()
    jumps = make_bandit_losses("random", 4, 200_000, 16, random_state=0).losses
    ours = StaticDynamicBandit(4, horizon=200_000)
    yield {
        "name": "16 runs of 200,000 rounds, 2 threads (one thread)",
        "ours": lambda: rounds(ours, jumps, 16, 2),
        "peer": lambda: rounds(ours, jumps, 16, 1),
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
