"""Soft labels from labels, probabilities and votes."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.stats import entropy as scipy_entropy

from equipoise.explainers import as_soft_labels
from equipoise.explainers.soft_labels.targets import (
    entropy,
    human_modes,
    miller_madow_entropy,
    soft_targets,
    tied_modes,
)
from equipoise.testing import vote_counts

COUNTS = np.array([[8, 1, 1], [4, 5, 1], [3, 3, 4], [0, 10, 0], [2, 2, 6]])

votes = vote_counts()


def test_reference_modes_and_entropies() -> None:
    P = as_soft_labels(COUNTS)
    np.testing.assert_array_equal(human_modes(P), [0, 1, 2, 1, 2])
    assert np.mean(human_modes(P, np.array([0, 0, 1, 1, 2])) != [0, 0, 1, 1, 2]) == 0.4
    expected = [0.6390318597, 0.9433483923, 1.0888999753, 0, 0.9502705392]
    np.testing.assert_allclose(entropy(P), expected, atol=1e-10)
    corrected = [0.7390318597, 1.0433483923, 1.1888999753, 0, 1.0502705392]
    np.testing.assert_allclose(miller_madow_entropy(COUNTS), corrected, atol=1e-10)


@settings(deadline=None, max_examples=50)
@given(votes)
def test_shares_are_votes_over_their_sum(counts: np.ndarray) -> None:
    P = as_soft_labels(counts)
    for c, p in zip(counts, P, strict=True):
        np.testing.assert_allclose(p, [k / sum(c.tolist()) for k in c.tolist()], rtol=1e-14)
    np.testing.assert_allclose(entropy(P), [scipy_entropy(c) for c in counts], atol=1e-12)


@settings(deadline=None, max_examples=50)
@given(votes, st.floats(0, 10))
def test_smoothing_adds_a_prior_vote_mass(counts: np.ndarray, a: float) -> None:
    K = counts.shape[1]
    expected = (counts + a / K) / (counts.sum(axis=1, keepdims=True) + a)
    np.testing.assert_allclose(as_soft_labels(counts, smoothing=a), expected, rtol=1e-12)


def test_smoothing_leaves_probabilities_alone() -> None:
    P = [[0.25, 0.75], [1.0, 0.0]]
    np.testing.assert_array_equal(as_soft_labels(P, smoothing=3), P)


def test_one_hot_integers_are_not_votes() -> None:
    found = soft_targets([[1, 0], [0, 1]])
    assert found.counts is None
    assert soft_targets([[1, 0], [0, 2]]).counts is not None


def test_probabilities_within_tolerance_are_renormalised() -> None:
    P = as_soft_labels([[0.5, 0.5005], [0.2, 0.8]])
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-15)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_carry_the_class_names(frame: type) -> None:
    table = frame({"dog": [8, 1], "cat": [2, 9]})
    np.testing.assert_array_equal(soft_targets(table).classes, ["dog", "cat"])
    np.testing.assert_allclose(as_soft_labels(table, ["cat", "dog"]), [[0.2, 0.8], [0.9, 0.1]])
    with pytest.raises(ValueError, match=r"columns of y_or_counts are \['dog', 'cat'\]"):
        as_soft_labels(table, ["cat", "bird"])


def test_sparse_votes() -> None:
    np.testing.assert_array_equal(as_soft_labels(csr_array(COUNTS)), as_soft_labels(COUNTS))


@pytest.mark.parametrize("labels", [["b", "a", "b"], [3, 1, 3], [True, False, True]])
def test_hard_labels_become_unit_rows_in_sorted_order(labels: list) -> None:
    np.testing.assert_array_equal(as_soft_labels(labels), [[0, 1], [1, 0], [0, 1]])
    np.testing.assert_array_equal(
        as_soft_labels(labels, classes=labels[:2]), [[1, 0], [0, 1], [1, 0]]
    )


def test_ties_go_to_the_original_label_else_to_the_smallest() -> None:
    P = np.array([[0.4, 0.4, 0.2], [0.4, 0.4, 0.2], [0.4, 0.4, 0.2]])
    np.testing.assert_array_equal(human_modes(P, np.array([1, 2, 0])), [1, 0, 0])
    np.testing.assert_array_equal(human_modes(P), [0, 0, 0])
    assert tied_modes(P).all()
    assert not tied_modes(as_soft_labels(COUNTS)).any()


def test_missing_rows_are_dropped_on_request() -> None:
    table = np.array([[1.0, 3], [0, 0], [np.nan, 2], [2, 2]])
    P, kept = as_soft_labels(table, on_missing="drop")
    np.testing.assert_array_equal(kept, [True, False, False, True])
    np.testing.assert_allclose(P, [[0.25, 0.75], [0.5, 0.5]])


@pytest.mark.parametrize(
    ("values", "arguments", "message"),
    [
        ([[1, -1], [1, 1]], {}, "negative entry in row 0"),
        ([[0.5, 0.5], [0.5, 0.7]], {}, "row 1 sums to 1.2"),
        ([[0.5, 0.5], [3, 1]], {}, "mixes probabilities"),
        ([[1, 1], [0, 0]], {}, "no label in row 1"),
        ([[1, 1], [np.nan, 1]], {}, "no label in row 1"),
        ([[1, 1], [np.inf, 1]], {}, "infinity"),
        ([[0, 0]], {"on_missing": "drop"}, "no row with a label"),
        ([[1, 2]], {"classes": [0, 1, 2]}, "2 columns, but there are 3 classes"),
        ([[1, 2]], {"classes": [0, 0]}, "distinct labels"),
        ([0, 0, 0], {}, "at least two classes"),
        ([0.1, 0.7], {}, "Unknown label type.*two columns"),
        (["a", "b"], {"classes": ["a", "c"]}, "'b' is not among the classes"),
        ([[1, 2]], {"smoothing": -1}, "smoothing=-1"),
        ([[1, 2]], {"on_missing": "guess"}, "on_missing='guess'"),
    ],
)
def test_errors_say_what_is_wrong(values: list, arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        as_soft_labels(values, **arguments)
