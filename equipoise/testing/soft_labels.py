"""Votes and probability rows for hypothesis, and what training on soft labels must keep."""

from typing import Any

import numpy as np

__all__ = ["check_soft_label_classifier", "probability_rows", "vote_counts"]


def vote_counts(
    max_items: int = 10, max_classes: int = 5, min_votes: int = 2, max_votes: int = 12
) -> Any:
    """Make a hypothesis strategy for matrices of vote counts.

    Parameters
    ----------
    max_items, max_classes : int
        Largest number of rows and of columns; there are at least one row and two columns.
    min_votes, max_votes : int
        Range of the votes of each item. With `min_votes` of at least 2 no matrix is one-hot.

    Returns
    -------
    SearchStrategy
        Of int64 arrays of shape (n_items, n_classes); unanimous and tied rows are common.

    Examples
    --------
    >>> from hypothesis import find
    >>> from equipoise.testing import vote_counts
    >>> find(vote_counts(), lambda counts: True)
    array([[2, 0]])
    """
    from hypothesis import strategies as st

    @st.composite
    def matrices(draw: Any) -> np.ndarray:
        n_items = draw(st.integers(1, max_items))
        n_classes = draw(st.integers(2, max_classes))
        counts = np.zeros((n_items, n_classes), dtype=np.int64)
        for row in counts:
            left = draw(st.integers(min_votes, max_votes))
            for k in range(n_classes - 1):
                row[-1 - k] = draw(st.integers(0, left))
                left -= row[-1 - k]
            row[0] = left
        return counts

    return matrices()


def probability_rows(n_items: int, n_classes: int, positive: bool = False) -> Any:
    """Make a hypothesis strategy for matrices whose rows are distributions.

    Parameters
    ----------
    n_items, n_classes : int
        Shape of the matrix.
    positive : bool, default=False
        Whether zeros are left out.

    Returns
    -------
    SearchStrategy
        Of float64 arrays of shape (n_items, n_classes); one-hot and tied rows are common unless
        `positive`.

    Examples
    --------
    >>> from hypothesis import find
    >>> from equipoise.testing import probability_rows
    >>> find(probability_rows(1, 2), lambda P: True)
    array([[1., 0.]])
    """
    from hypothesis import strategies as st
    from hypothesis.extra import numpy as hnp

    weight = st.integers(1 if positive else 0, 20)

    def normalise(weights: np.ndarray) -> np.ndarray:
        # A row without weight is the first class.
        weights[:, 0] += weights.sum(axis=1) == 0
        return weights / weights.sum(axis=1, keepdims=True)

    return hnp.arrays(np.float64, (n_items, n_classes), elements=weight).map(normalise)


def check_soft_label_classifier(classifier: Any, tol: float = 1e-6) -> None:
    """Check what a classifier trained on soft labels must keep.

    Its probabilities are distributions in the order of `classes_` and agree with `predict`; one-hot
    targets give the hard fit; scaling an item's votes changes nothing; a permutation of the classes
    permutes the probabilities.

    Parameters
    ----------
    classifier : estimator
        Its ``fit(X, y)`` takes hard labels (n,) and matrices (n, n_classes) of votes and of
        probabilities. Of a convex model, or one with a fixed `random_state` whose classes start
        alike; otherwise the last property can't hold.
    tol : float, default=1e-6
        Largest allowed difference between probabilities.

    Raises
    ------
    AssertionError
        If one of the properties doesn't hold.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from equipoise.estimators import SoftLabelClassifier
    >>> from equipoise.testing import check_soft_label_classifier
    >>> check_soft_label_classifier(SoftLabelClassifier(LogisticRegression(tol=1e-10)))
    """
    from sklearn.base import clone

    rng = np.random.RandomState(0)
    X = rng.normal(size=(40, 3))
    votes = rng.multinomial(6, [0.5, 0.3, 0.2], size=40) + (
        np.argmax(X, axis=1)[:, None] == range(3)
    )

    def probabilities(target: np.ndarray) -> np.ndarray:
        return clone(classifier).fit(X, target).predict_proba(X)

    fitted = clone(classifier).fit(X, votes)
    P = fitted.predict_proba(X)
    assert P.shape == votes.shape, f"predict_proba has shape {P.shape}, expected {votes.shape}"
    assert (P >= 0).all() and np.allclose(P.sum(axis=1), 1, atol=tol), "rows are no distributions"
    assert (fitted.predict(X) == fitted.classes_[P.argmax(axis=1)]).all(), (
        "predict isn't the argmax"
    )
    hard = votes.argmax(axis=1)
    expected = {
        "one-hot targets differ from hard labels": (
            probabilities(np.eye(3)[hard]),
            probabilities(hard),
        ),
        "scaled votes change the fit": (probabilities(votes * rng.randint(1, 4, size=(40, 1))), P),
        "vote shares differ from votes": (
            probabilities(votes / votes.sum(axis=1, keepdims=True)),
            P,
        ),
        "permuted classes change the fit": (probabilities(votes[:, [2, 0, 1]]), P[:, [2, 0, 1]]),
    }
    for broken, (found, wanted) in expected.items():
        assert np.abs(found - wanted).max() <= tol, broken
