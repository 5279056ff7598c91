"""Strategies and checks for normal-form games and no-regret learners.

The strategies make games with payoffs up to 10 in size, for one to four players with one to four
actions, small enough for brute force.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["check_no_regret", "measures", "mixed_profiles", "payoff_tensors"]


def numbers(shape: tuple[int, ...], low: float, high: float) -> Any:
    """A strategy for arrays of numbers between two bounds."""
    from hypothesis import strategies as st
    from hypothesis.extra.numpy import arrays

    elements = st.floats(low, high, allow_nan=False, allow_subnormal=False)
    return arrays(np.float64, shape, elements=elements)


def payoff_tensors(max_players: int = 4, max_actions: int = 4, max_payoff: float = 10.0) -> Any:
    """A hypothesis strategy for payoff tensors of normal-form games.

    Parameters
    ----------
    max_players, max_actions : int, default=4, 4
        Largest numbers of players and of actions of a player.
    max_payoff : float, default=10.0
        Largest absolute payoff.

    Returns
    -------
    SearchStrategy
        Draws arrays of shape (n, d_0, ..., d_{n-1}), which `NormalFormGame` takes.

    Examples
    --------
    >>> from hypothesis import given, settings
    >>> from equipoise.testing import payoff_tensors
    >>> @settings(max_examples=5, deadline=None)
    ... @given(payoff_tensors())
    ... def test(payoffs):
    ...     assert payoffs.shape[0] == payoffs.ndim - 1
    >>> test()
    """
    from hypothesis import strategies as st

    def tensors(shape: list[int]) -> Any:
        return numbers((len(shape), *shape), -max_payoff, max_payoff)

    shapes = st.lists(st.integers(1, max_actions), min_size=1, max_size=max_players)
    return shapes.flatmap(tensors)


def measures(n_actions: Sequence[int]) -> Any:
    """A hypothesis strategy for measures: positive weights of each player's actions.

    Parameters
    ----------
    n_actions : sequence of int
        Number of actions of each player.

    Returns
    -------
    SearchStrategy
        Draws lists of arrays with entries between 0.2 and 5.

    Examples
    --------
    >>> from hypothesis import given, settings
    >>> from equipoise.testing import measures
    >>> @settings(max_examples=5, deadline=None)
    ... @given(measures((2, 3)))
    ... def test(measure):
    ...     assert all((mu > 0).all() for mu in measure)
    >>> test()
    """
    from hypothesis import strategies as st

    return st.tuples(*[numbers((d,), 0.2, 5.0) for d in n_actions]).map(list)


def mixed_profiles(n_actions: Sequence[int]) -> Any:
    """A hypothesis strategy for mixed profiles, some of them with zeros.

    Parameters
    ----------
    n_actions : sequence of int
        Number of actions of each player.

    Returns
    -------
    SearchStrategy
        Draws lists of probability vectors.

    Examples
    --------
    >>> from hypothesis import given, settings
    >>> from equipoise.testing import mixed_profiles
    >>> @settings(max_examples=5, deadline=None)
    ... @given(mixed_profiles((2, 3)))
    ... def test(x):
    ...     assert all(abs(x_i.sum() - 1) < 1e-12 for x_i in x)
    >>> test()
    """
    from hypothesis import strategies as st

    def normalised(weights: np.ndarray) -> np.ndarray:
        total = weights.sum()
        return weights / total if total > 0 else np.full(len(weights), 1.0 / len(weights))

    return st.tuples(*[numbers((d,), 0.0, 1.0).map(normalised) for d in n_actions]).map(list)


def adversaries(n_actions: int, rng: np.random.RandomState) -> dict[str, Callable[..., np.ndarray]]:
    """Payoff sequences that are hard to learn against: functions of the round and the strategy."""
    signs = rng.choice([-1.0, 1.0], size=(4096, n_actions))

    def alternating(t: int, _: np.ndarray) -> np.ndarray:
        payoffs = np.zeros(n_actions)
        payoffs[:2] = (1.0, -1.0) if t % 2 == 0 else (-1.0, 1.0)
        return payoffs

    def worst(_: int, strategy: np.ndarray) -> np.ndarray:
        return np.where(np.arange(n_actions) == strategy.argmax(), -1.0, 1.0)

    return {
        "constant": lambda t, x: np.eye(n_actions)[0],
        "alternating": alternating,
        "random signs": lambda t, x: signs[t % len(signs)],
        "against the likeliest action": worst,
    }


def check_no_regret(
    make_learner: Callable[[], Any],
    n_actions: int = 3,
    n_rounds: int = 2000,
    factor: float = 6.0,
    random_state: Any = 0,
) -> None:
    """Check that an online learner has no regret, whatever the payoffs are.

    A learner has `act()`, which returns a strategy, and `observe(payoff_vector)`; if it has
    `needs_query`, `query()` and `observe_query(payoff_vector)` come first where that is true.
    Against constant, alternating, random and adversarial payoffs in [-1, 1] its regret, computed
    here, must stay below factor * sqrt(n_rounds * log(n_actions)) (for one action 1e-9); where it
    reports `regret` and `regret_bound`, the report must be true and the bound hold.

    Parameters
    ----------
    make_learner : callable
        Returns a fresh learner with `n_actions` actions.
    n_actions : int, default=3
        Number of actions.
    n_rounds : int, default=2000
        Rounds to play against each sequence.
    factor : float, default=6.0
        How much regret is allowed.
    random_state : int, RandomState or None, default=0
        For the random sequence.

    Returns
    -------
    None
        Nothing; a failed check raises AssertionError.

    Examples
    --------
    >>> from equipoise.games import FTRLPlusLearner
    >>> from equipoise.testing import check_no_regret
    >>> check_no_regret(lambda: FTRLPlusLearner(3), n_rounds=500)
    """
    from sklearn.utils import check_random_state

    if n_actions < 1:
        raise ValueError(f"n_actions must be a positive integer, got {n_actions!r}")
    if n_actions == 1:
        sequences: dict[str, Callable[..., np.ndarray]] = {"constant": lambda t, x: np.ones(1)}
    else:
        sequences = adversaries(n_actions, check_random_state(random_state))
    for name, payoffs_of in sequences.items():
        learner = make_learner()
        sums, earned = np.zeros(n_actions), 0.0
        for t in range(n_rounds):
            if getattr(learner, "needs_query", False):
                learner.observe_query(payoffs_of(t, np.asarray(learner.query())))
            x = np.asarray(learner.act(), dtype=float)
            assert x.shape == (n_actions,), f"{name}: act() gives shape {x.shape}"
            assert (x >= -1e-12).all(), f"{name}: a strategy has a negative entry in round {t}"
            assert abs(x.sum() - 1.0) < 1e-9, f"{name}: a strategy doesn't sum to 1 in round {t}"
            g = payoffs_of(t, x)
            learner.observe(g)
            sums += g
            earned += float(g @ x)
        regret = float(sums.max() - earned)
        allowed = factor * np.sqrt(n_rounds * np.log(n_actions)) + 1e-9
        assert regret <= allowed, f"{name}: regret {regret:.4g} above {allowed:.4g}"
        if hasattr(learner, "regret"):
            said = float(learner.regret)
            assert abs(said - regret) < 1e-6 * n_rounds, f"{name}: regret {said}, truly {regret}"
        if hasattr(learner, "regret_bound"):
            bound = float(learner.regret_bound)
            assert regret <= bound + 1e-9, (
                f"{name}: regret {regret:.4g} above its bound {bound:.4g}"
            )
