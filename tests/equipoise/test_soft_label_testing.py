"""The public strategies and checks for soft labels hold, and their checks can fail."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from equipoise.estimators import SoftLabelClassifier
from equipoise.testing import check_soft_label_classifier, probability_rows, vote_counts


@settings(deadline=None, max_examples=50)
@given(vote_counts(max_items=4, max_classes=3, min_votes=2, max_votes=5))
def test_votes_are_in_range(counts: np.ndarray) -> None:
    assert counts.shape[0] <= 4
    assert 2 <= counts.shape[1] <= 3
    assert ((counts.sum(axis=1) >= 2) & (counts.sum(axis=1) <= 5)).all()
    assert (counts >= 0).all()


@settings(deadline=None, max_examples=50)
@given(st.booleans().flatmap(lambda p: st.tuples(st.just(p), probability_rows(3, 4, positive=p))))
def test_rows_are_distributions(case: tuple[bool, np.ndarray]) -> None:
    positive, P = case
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-15)
    assert (P > 0).all() if positive else (P >= 0).all()


def test_convex_classifier_passes() -> None:
    check_soft_label_classifier(SoftLabelClassifier(LogisticRegression(tol=1e-10)))


class CountsVotes(SoftLabelClassifier):
    def fit(self, X, y, soft_labels=None, sample_weight=None):
        y = np.asarray(y)
        return super().fit(X, y, sample_weight=y.sum(axis=1) if y.ndim == 2 else None)


def test_check_finds_weighting_by_votes() -> None:
    with pytest.raises(AssertionError, match="scaled votes change the fit"):
        check_soft_label_classifier(CountsVotes(LogisticRegression(tol=1e-10)))


def test_check_finds_asymmetry_between_classes() -> None:
    with pytest.raises(AssertionError, match="permuted classes"):
        check_soft_label_classifier(SoftLabelClassifier(max_epochs=2, random_state=0), tol=1e-6)
