"""Difficulty of items for people, by three measures, and the strata that it makes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import entropy

from equipoise.explainers import item_difficulty
from equipoise.explainers.soft_labels.difficulty import check_levels, strata_of_difficulty

VOTES = st.integers(2, 6).flatmap(
    lambda K: arrays(np.int64, st.tuples(st.integers(1, 8), st.just(K)), elements=st.integers(0, 9))
)


@settings(deadline=None)  # the first call compiles
@given(VOTES)
def test_measures_agree_with_sorting(votes: np.ndarray) -> None:
    votes = votes + np.eye(votes.shape[1], dtype=np.int64)[0] * 2  # no empty row, not one-hot
    P = votes / votes.sum(axis=1, keepdims=True)
    ranked = np.array([sorted(row, reverse=True) for row in P])
    expected = {
        "entropy": entropy(P, axis=1, base=P.shape[1]),
        "top": 1 - ranked[:, 0],
        "margin": 1 - (ranked[:, 0] - ranked[:, 1]),
    }
    for measure, values in expected.items():
        np.testing.assert_allclose(item_difficulty(votes, measure), values, atol=1e-12)
        assert ((item_difficulty(votes, measure) == 0) == (ranked[:, 0] == 1)).all()


def test_thresholds_are_closed_above_and_take_in_zero() -> None:
    d = np.array([0.0, 0.2, 0.200001, 0.5, 1.0])
    levels = check_levels({"clear": (0, 0.2), "open": (0.2, 0.5), "split": (0.5, 1)})
    found = strata_of_difficulty(d, levels)
    assert found["clear"].tolist() == [True, True, False, False, False]
    assert found["open"].tolist() == [False, False, True, True, False]
    assert found["split"].tolist() == [False, False, False, False, True]


@given(arrays(float, st.integers(1, 30), elements=st.sampled_from([0.0, 0.1, 0.3, 1.0])))
def test_quantiles_partition_and_keep_ties_together(d: np.ndarray) -> None:
    found = strata_of_difficulty(d, [0, 0.5, 0.8, 1])
    place = np.array(list(found.values()))
    assert (place.sum(axis=0) == 1).all()
    for value in np.unique(d):
        assert len(np.unique(place[:, d == value], axis=1).T) == 1


@pytest.mark.parametrize(
    "strata",
    [
        [0, 1, 0.5],
        [0.1, 1],
        {},
        {"a": (0.5, 0.5)},
        {"a": (-1, 1)},
        {"all": (0, 1)},
        {"group b": (0, 1)},
    ],
)
def test_bad_strata(strata: object) -> None:
    with pytest.raises(ValueError, match="strata="):
        check_levels(strata)  # type: ignore[arg-type]


def test_bad_measure() -> None:
    with pytest.raises(ValueError, match=r"measure='kurtosis'.*entropy"):
        item_difficulty([[1, 2]], "kurtosis")
