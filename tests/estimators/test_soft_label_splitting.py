"""Splits that keep the share of every human mode."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedKFold

from equipoise.estimators import SoftStratifiedKFold, soft_train_test_split


def votes(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.multinomial(9, rng.dirichlet([0.5, 1, 2], size=n))


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(2, 5), st.booleans())
def test_folds_partition_and_keep_the_modes(seed: int, n_splits: int, shuffle: bool) -> None:
    P = np.vstack([votes(40, seed), np.repeat(np.eye(3, dtype=int) * 9, 5, axis=0)])
    modes = P.argmax(axis=1)
    folds = list(SoftStratifiedKFold(n_splits, shuffle=shuffle, random_state=seed).split(P, P))
    np.testing.assert_array_equal(
        np.sort(np.concatenate([test for _, test in folds])), np.arange(55)
    )
    for train, test in folds:
        assert not set(train) & set(test)
        for k in range(3):
            assert abs((modes[test] == k).sum() - (modes == k).sum() / n_splits) < 1
    expected = StratifiedKFold(
        n_splits, shuffle=shuffle, random_state=seed if shuffle else None
    ).split(P, modes)
    for (_, ours), (_, theirs) in zip(folds, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_difficulty_is_balanced_too() -> None:
    P = votes(400, 0)
    H = -(P / 9 * np.log(np.maximum(P / 9, 1e-300))).sum(axis=1)
    modes = P.argmax(axis=1)
    for _, test in SoftStratifiedKFold(4, strata="mode+difficulty", random_state=0).split(P, P):
        for k in range(3):
            hard = H > np.median(H[modes == k])
            inside = hard & (modes == k)
            assert abs(inside[test].sum() - inside.sum() / 4) < 1


def test_hard_labels_and_seeds() -> None:
    P = votes(60, 1)
    folds = SoftStratifiedKFold(3, random_state=0)
    by_votes, by_modes = folds.split(P, P), folds.split(P, P.argmax(axis=1))
    for (_, a), (_, b) in zip(by_votes, by_modes, strict=True):
        np.testing.assert_array_equal(a, b)
    assert folds.get_n_splits() == 3
    assert "SoftStratifiedKFold" in repr(folds)


def test_train_test_split() -> None:
    P = votes(90, 2)
    X, y = np.arange(90)[:, None], np.arange(90)
    parts = soft_train_test_split(X, P, y, test_size=0.3, random_state=0)
    _, X_test, P_train, P_test, y_train, y_test = parts
    np.testing.assert_array_equal(X_test[:, 0], y_test)
    np.testing.assert_array_equal(P_train, P[y_train])
    np.testing.assert_array_equal(P_test, P[X_test[:, 0]])
    share = np.bincount(P.argmax(axis=1), minlength=3) * 0.3
    assert (np.abs(np.bincount(P_test.argmax(axis=1), minlength=3) - share) < 1).all()
    assert len(soft_train_test_split(X, P, random_state=0)) == 4


def test_errors_say_what_is_wrong() -> None:
    P = votes(20, 0)
    with pytest.raises(ValueError, match="strata='entropy'"):
        SoftStratifiedKFold(strata="entropy")
    with pytest.raises(ValueError, match="strata='entropy'"):
        soft_train_test_split(P, P, strata="entropy")
    with pytest.raises(ValueError, match="groups is not supported"):
        next(SoftStratifiedKFold().split(P, P, groups=np.arange(20)))
