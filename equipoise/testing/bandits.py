"""Strategies and checks for bandit learners: small loss tables, and what any learner must keep."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["check_bandit_learner", "loss_tables"]


def loss_tables(max_rounds: int = 7, max_arms: int = 3) -> Any:
    """A hypothesis strategy for tables of losses in [0, 1], some of which stand still for a while.

    Parameters
    ----------
    max_rounds : int, default=7
        Largest number of rounds.
    max_arms : int, default=3
        Largest number of arms.

    Returns
    -------
    SearchStrategy
        Draws arrays of shape (n_rounds, n_arms).

    Examples
    --------
    >>> from hypothesis import given, settings
    >>> from equipoise.testing import loss_tables
    >>> @settings(max_examples=5, deadline=None)
    ... @given(loss_tables())
    ... def test(losses):
    ...     assert losses.ndim == 2 and losses.min() >= 0 and losses.max() <= 1
    >>> test()
    """
    from hypothesis import strategies as st

    levels = st.integers(0, 20).map(lambda k: k / 20)

    def segments(n_arms: int) -> Any:
        row = st.lists(levels, min_size=n_arms, max_size=n_arms)
        segment = st.tuples(row, st.integers(1, 3))
        return st.lists(segment, min_size=1, max_size=max_rounds)

    def table(parts: list) -> np.ndarray:
        return np.repeat([row for row, _ in parts], [n for _, n in parts], axis=0)[:max_rounds]

    return st.integers(1, max_arms).flatmap(segments).map(table)


def play(learner: Any, losses: np.ndarray) -> list[int]:
    """Play a table by hand; checks the law of every draw on the way."""
    arms = []
    for t, row in enumerate(losses):
        arm = learner.select_arm()
        assert 0 <= arm < len(row), f"round {t}: arm {arm} doesn't exist"
        p = learner.probabilities_
        assert p.shape == row.shape, f"round {t}: probabilities_ has shape {p.shape}"
        assert (p >= 0).all(), f"round {t}: a probability is negative"
        assert abs(p.sum() - 1) < 1e-9, f"round {t}: the probabilities sum to {p.sum()}"
        assert p[arm] > 0, f"round {t}: arm {arm} was drawn with probability 0"
        learner.update(arm, row[arm])
        arms.append(arm)
    return arms


def check_bandit_learner(
    make_learner: Callable[[], Any], n_arms: int = 3, n_rounds: int = 200, random_state: Any = 0
) -> None:
    """Check that a bandit learner keeps its word.

    Its probabilities are probabilities, and the drawn arm has a positive one; two fresh learners
    play the same arms; one that is pickled in the middle plays on as if it hadn't been; wrong arms
    and losses are refused and change nothing.

    Parameters
    ----------
    make_learner : callable
        Returns a fresh learner with `n_arms` arms, losses in [0, 1] and a fixed seed. It has
        `select_arm()`, `update(arm, loss)` and `probabilities_`.
    n_arms : int, default=3
        Number of arms.
    n_rounds : int, default=200
        Rounds to play.
    random_state : int, RandomState or None, default=0
        For the losses.

    Returns
    -------
    None
        Nothing; a failed check raises AssertionError.

    Examples
    --------
    >>> from equipoise.games import StaticDynamicBandit
    >>> from equipoise.testing import check_bandit_learner
    >>> check_bandit_learner(lambda: StaticDynamicBandit(3, random_state=0))
    """
    from sklearn.utils import check_random_state

    rng = check_random_state(random_state)
    losses = np.repeat(rng.uniform(size=(-(-n_rounds // 20), n_arms)), 20, axis=0)[:n_rounds]
    first, second = make_learner(), make_learner()
    arms = play(first, losses)
    half = n_rounds // 2
    again = play(second, losses[:half])
    second = pickle.loads(pickle.dumps(second))
    again += play(second, losses[half:])
    assert arms == again, "a fresh learner, pickled in the middle, played other arms"
    before = pickle.dumps(first)
    wrong = [(n_arms, 0.5, IndexError), (-1, 0.5, IndexError), (0, float("nan"), ValueError)]
    for arm, loss, error in [*wrong, (0, 2.0, ValueError), (0, -1.0, ValueError)]:
        try:
            first.update(arm, loss)
        except error:
            pass
        else:
            raise AssertionError(f"update({arm}, {loss}) must raise {error.__name__}")
        assert pickle.dumps(first) == before, f"update({arm}, {loss}) changed the learner"
