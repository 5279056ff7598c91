"""Annotation budget: curves over the number of votes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from equipoise.datasets import make_ambiguous_digits, simulate_annotators
from equipoise.estimators import SoftLabelClassifier
from equipoise.explainers import annotation_budget_curve, make_label_arms
from equipoise.explainers.soft_labels.budget import fit_power


@settings(deadline=None, max_examples=25)
@given(st.floats(-1, 1), st.floats(0.1, 2), st.floats(0.2, 3))
def test_a_power_law_is_found(a: float, b: float, c: float) -> None:
    r = np.array([1.0, 2, 3, 5, 8, 13, 21])
    found = fit_power(r, a - b * r**-c)
    np.testing.assert_allclose(found, [a, -b, c], atol=1e-4)


def test_curve_follows_models_trained_on_drawn_votes() -> None:
    made = make_ambiguous_digits(300, ambiguity=0.5, random_state=0)
    votes = simulate_annotators(made.posterior, skill=(1, 1), random_state=1).counts
    X, y = made.data / 16, votes.argmax(axis=1)
    model = SoftLabelClassifier(LogisticRegression(max_iter=500))
    parts = (X[:200], y[:200], votes[:200], X[200:], y[200:], votes[200:])
    curve = annotation_budget_curve(model, *parts, budgets=[1, 2, 4, 9], seeds=1, random_state=0)
    frame = curve.to_frame()
    kl = frame[frame["metric"] == "kl"]
    assert kl["votes"].tolist() == [1, 2, 4, 9]
    arm_seed = int(np.random.RandomState(0).randint(2**31 - 1, size=3)[1])
    arms = make_label_arms(votes[:200], y[:200], ["crowd_4"], random_state=arm_seed)
    by_hand = model.set_params(classes=np.arange(10)).fit(
        X[:200], y[:200], soft_labels=arms["crowd_4"]
    )
    expected = -by_hand.soft_score(X[200:], votes[200:], "neg_kl")
    assert kl["mean"].iloc[2] == pytest.approx(expected, abs=1e-9)
    assert kl["mean"].iloc[-1] < kl["mean"].iloc[0]
    a, b, c, reach = kl[["a", "b", "c", "votes_90"]].iloc[0]
    np.testing.assert_allclose(kl["fitted"], a + b * kl["votes"] ** -c)
    assert reach**-c == pytest.approx(0.1)
    assert curve.plot("entropy_spearman").get_xlabel() == "votes an item"
    assert "without limit" in str(curve)


def test_errors_say_what_is_wrong() -> None:
    X, votes = np.zeros((40, 2)), np.tile([3, 2], (40, 1))
    model = SoftLabelClassifier(LogisticRegression())
    with pytest.raises(ValueError, match="must be vote counts"):
        annotation_budget_curve(model, X, np.zeros(40, int), votes / 5)
    with pytest.raises(ValueError, match="at least four numbers of votes; an item has 5 votes"):
        annotation_budget_curve(model, X, np.zeros(40, int), votes, budgets=[1, 2])
