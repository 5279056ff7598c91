"""Splits of data with soft labels that keep the share of every mode.

scikit-learn's StratifiedKFold refuses targets with two dimensions and falls back to KFold inside a
search; here the strata are the human modes, or the modes crossed with halves of difficulty.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedKFold, train_test_split

from ...explainers.soft_labels.targets import entropy, human_modes, soft_targets

__all__ = ["SoftStratifiedKFold", "soft_train_test_split"]

STRATA = ("mode", "mode+difficulty")


def strata_of(P: np.ndarray, strata: str) -> np.ndarray:
    """Stratum of each item: its mode, or its mode and whether its entropy is above the median of
    the items of that mode."""
    modes = human_modes(P)
    if strata == "mode":
        return modes
    H = entropy(P)
    median = np.array(
        [np.median(H[modes == k]) if (modes == k).any() else 0 for k in range(P.shape[1])]
    )
    return 2 * modes + (median[modes] < H)


class SoftStratifiedKFold(StratifiedKFold):
    """K folds with the same share of every human mode, for targets with two dimensions.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    shuffle : bool, default=True
        Whether to shuffle the items of each stratum first.
    random_state : int, RandomState or None, default=None
        Seed of the shuffle.
    strata : {"mode", "mode+difficulty"}, default="mode"
        Keep the share of each mode, or also of its easy and its hard half (by entropy).

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.estimators import SoftStratifiedKFold
    >>> votes = np.array([[9, 1], [8, 2], [6, 4], [2, 8], [1, 9], [3, 7]])
    >>> folds = SoftStratifiedKFold(3, random_state=0).split(votes, votes)
    >>> [votes[test].argmax(axis=1).tolist() for _, test in folds]
    [[0, 1], [0, 1], [0, 1]]
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        shuffle: bool = True,
        random_state: int | np.random.RandomState | None = None,
        strata: str = "mode",
    ) -> None:
        if strata not in STRATA:
            raise ValueError(f"strata={strata!r} is not allowed; allowed: {list(STRATA)}")
        super().__init__(n_splits, shuffle=shuffle, random_state=random_state if shuffle else None)
        self.strata = strata

    def split(
        self, X: Any, y: npt.ArrayLike, groups: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Generate the folds.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs; only their number matters.
        y : array-like of shape (n_samples, n_classes) or (n_samples,)
            Soft labels, votes or hard labels.
        groups : object
            Not allowed; here for scikit-learn's interface.

        Yields
        ------
        train, test : ndarray of int
            Rows of each part.
        """
        if groups is not None:
            raise ValueError("groups is not supported by SoftStratifiedKFold; allowed: None")
        yield from super().split(X, strata_of(soft_targets(y).P, self.strata))


def soft_train_test_split(
    X: Any,
    P: npt.ArrayLike,
    y: npt.ArrayLike | None = None,
    *,
    test_size: float | int = 0.25,
    strata: str = "mode",
    random_state: int | np.random.RandomState | None = None,
) -> list[Any]:
    """Split inputs and soft labels into train and test, keeping the share of every mode.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Inputs.
    P : array-like of shape (n_samples, n_classes)
        Soft labels or votes.
    y : array-like of shape (n_samples,), optional
        Original hard labels, split alike.
    test_size : float or int, default=0.25
        Share or number of the test items.
    strata : {"mode", "mode+difficulty"}, default="mode"
        As for `SoftStratifiedKFold`.
    random_state : int, RandomState or None, default=None
        Seed of the split.

    Returns
    -------
    list
        ``X_train, X_test, P_train, P_test``, and ``y_train, y_test`` if `y` is given.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.estimators import soft_train_test_split
    >>> votes = np.array([[9, 1], [8, 2], [6, 4], [2, 8], [1, 9], [3, 7]])
    >>> X_train, X_test, P_train, P_test = soft_train_test_split(
    ...     np.arange(6)[:, None], votes, test_size=2, random_state=0
    ... )
    >>> sorted(P_test.argmax(axis=1).tolist())
    [0, 1]
    """
    if strata not in STRATA:
        raise ValueError(f"strata={strata!r} is not allowed; allowed: {list(STRATA)}")
    arrays = [X, P] if y is None else [X, P, y]
    return train_test_split(
        *arrays,
        test_size=test_size,
        stratify=strata_of(soft_targets(P, name="P").P, strata),
        random_state=random_state,
    )
