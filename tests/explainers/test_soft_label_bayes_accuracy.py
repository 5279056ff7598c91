"""The best accuracy on votes: bounds from both sides, exact for few votes by enumeration."""

from itertools import combinations

import numpy as np
import pytest

from equipoise.explainers import bayes_accuracy


def mean_over_halves(votes: list[int]) -> float:
    """Agreement of halves of one item, over all ways to halve its votes."""
    labels = np.repeat(np.arange(len(votes)), votes)
    K, values = len(votes), []
    for half in combinations(range(len(labels)), len(labels) // 2):
        inside = np.isin(np.arange(len(labels)), half)
        first, second = (np.bincount(labels[rows], minlength=K) for rows in (inside, ~inside))
        both = []
        for chosen, judged in ((first, second), (second, first)):
            tied = np.flatnonzero(chosen == chosen.max())
            both.append(np.mean(judged[tied] / judged.sum()))
        values.append(np.mean(both))
    return float(np.mean(values))


@pytest.mark.parametrize("votes", [[3, 2], [4, 1, 1], [2, 2, 1], [1, 1]])
def test_halves_agree_with_all_ways_to_halve(votes: list[int]) -> None:
    found = bayes_accuracy([votes, votes], n_splits=4000, random_state=0)
    # 8000 halvings with a deviation of at most 0.5: three standard errors are 0.017.
    assert found.split_half == pytest.approx(mean_over_halves(votes), abs=0.017)
    assert found.plug_in == pytest.approx(max(votes) / sum(votes), abs=1e-12)


def test_truth_lies_between_the_bounds_and_both_close_in() -> None:
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.full(5, 0.7), 4000)
    truth = q.max(axis=1).mean()
    gaps = []
    for n in (4, 16, 64):
        bound = bayes_accuracy(rng.multinomial(n, q), random_state=0)
        assert bound.split_half < truth < bound.plug_in
        gaps.append((bound.plug_in - truth, truth - bound.split_half))
    assert (np.diff(gaps, axis=0) < 0).all()


def test_unanimous_votes_leave_nothing_open() -> None:
    assert bayes_accuracy([[3, 0], [0, 5]], random_state=0)[:2] == (1.0, 1.0)


def test_errors_say_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="must be vote counts"):
        bayes_accuracy([[0.5, 0.5], [1, 0]])
    with pytest.raises(ValueError, match="item 1 has one vote"):
        bayes_accuracy([[2, 1], [1, 0]])
    with pytest.raises(ValueError, match="n_splits"):
        bayes_accuracy([[2, 1], [1, 1]], n_splits=0)
