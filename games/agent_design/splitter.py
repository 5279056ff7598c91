"""Splitting a log by matches, so that every fold of every cell has some."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state

from .matches import as_frame, read_matches

__all__ = ["MatchSplitter"]


class MatchSplitter(BaseCrossValidator):
    """Cross-validation over matches: all rows of a match stay together, cells are stratified.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    random_state : int, RandomState or None, default=None
        For the order of the matches within a cell.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from equipoise.datasets import make_agent_design_matches
    >>> from equipoise.games import MatchSplitter, SubsidyMediator
    >>> matches = make_agent_design_matches("prisoners", n_designs=2, random_state=0)
    >>> search = GridSearchCV(
    ...     SubsidyMediator(), {"budget": [0.0, 10.0]}, cv=MatchSplitter(3, random_state=0)
    ... )
    >>> search.fit(matches).best_params_
    {'budget': 10.0}
    """

    def __init__(self, n_splits: int = 5, random_state: Any = None) -> None:
        self.n_splits = n_splits
        self.random_state = random_state

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[Any]:
        """Row indices of training and test matches.

        Parameters
        ----------
        X : DataFrame
            A log of matches, long or wide.
        y, groups : None
            Not used.

        Yields
        ------
        train, test : ndarray of int
            Row numbers.

        Raises
        ------
        ValueError
            If a cell has fewer matches than there are folds.
        """
        if not isinstance(self.n_splits, int | np.integer) or self.n_splits < 2:
            raise ValueError(f"n_splits={self.n_splits!r} must be an integer of at least 2")
        frame, log = as_frame(X), read_matches(X)
        shape = [len(own) for own in log.designs]
        cell = np.ravel_multi_index((log.states, *log.choices.T), (len(log.state_names), *shape))
        used, code, sizes = np.unique(cell, return_inverse=True, return_counts=True)
        if sizes.min() < self.n_splits:
            k = used[sizes.argmin()] % int(np.prod(shape))
            place = np.unravel_index(int(k), shape)
            names = tuple(own[int(a)] for own, a in zip(log.designs, place, strict=True))
            raise ValueError(
                f"the profile {names} has {sizes.min()} matches, fewer than n_splits="
                f"{self.n_splits}"
            )
        rng = check_random_state(self.random_state)
        order = np.lexsort((rng.permutation(len(code)), code))
        place_in_cell = np.arange(len(code)) - np.repeat(np.r_[0, np.cumsum(sizes)[:-1]], sizes)
        fold = np.empty(len(code), dtype=np.int64)
        fold[order] = place_in_cell % self.n_splits
        if "match_id" in frame:
            import pandas as pd

            fold = fold[pd.factorize(frame["match_id"])[0]]
        for k in range(self.n_splits):
            yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of folds.

        Parameters
        ----------
        X, y, groups : None
            Not used.

        Returns
        -------
        int
            `n_splits`.
        """
        return int(self.n_splits)
