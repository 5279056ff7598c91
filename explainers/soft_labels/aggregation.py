"""From annotators' votes to one distribution a task: shares, majorities, the weighted majority.

Vote shares have a Dirichlet prior, (c + a g) / (n_i + a) with c the votes of a task. WAWA weighs
each worker by agreement with the majority. All three describe the population of opinions; Dawid and
Skene's model (`dawid_skene`) describes belief about one true class instead.
"""

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .vote_aggregator import VoteAggregator, shares_of
from .votes import Votes, read_annotations

__all__ = ["WAWA", "MajorityVote", "VoteShare"]


class VoteShare(VoteAggregator):
    """Shares of the votes, with a Dirichlet prior.

    Parameters
    ----------
    smoothing : float, default=0.0
        Strength a of the prior: (c + a g) / (n + a).
    prior : {"uniform", "class"}, default="uniform"
        g: uniform, or the classes' shares among all votes.
    on_missing : {"raise", "uniform", "drop"}, default="raise"
        What to do with a task without votes.

    Attributes
    ----------
    probas_ : ndarray of shape (n_tasks, n_classes)
        Soft labels.
    labels_ : ndarray of shape (n_tasks,)
        The most voted class, ties to the first.
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    tasks_ : ndarray of shape (n_tasks,)
        Sorted tasks.
    soft_kind_ : str
        "opinion".

    References
    ----------
    .. [1] J. C. Peterson et al., "Human uncertainty makes classification more robust", ICCV 2019.

    Examples
    --------
    >>> from equipoise.explainers import VoteShare
    >>> VoteShare().fit_predict_proba([[8, 2], [1, 4]])
    array([[0.8, 0.2],
           [0.2, 0.8]])
    """

    _parameter_constraints: dict = {
        "smoothing": [Interval(Real, 0, None, closed="left")],
        "prior": [StrOptions({"uniform", "class"})],
        "on_missing": [StrOptions({"raise", "uniform", "drop"})],
    }

    def __init__(
        self, smoothing: float = 0.0, *, prior: str = "uniform", on_missing: str = "raise"
    ) -> None:
        self.smoothing = smoothing
        self.prior = prior
        self.on_missing = on_missing

    def _aggregate(self, votes: Votes) -> None:
        counts = votes.counts
        shares, kept = shares_of(counts, self.on_missing)
        K = counts.shape[1]
        prior = np.full(K, 1 / K) if self.prior == "uniform" else counts.sum(axis=0) / counts.sum()
        self._concentration = counts[kept] + self.smoothing * prior
        if self.smoothing > 0:
            shares = self._concentration / self._concentration.sum(axis=1, keepdims=True)
        self.soft_kind_ = "opinion"
        self._keep(votes, shares, kept)

    def sample(
        self, n_draws: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> np.ndarray:
        """Draw opinion distributions from the posterior Dir(c + a g).

        Parameters
        ----------
        n_draws : int, default=1
            Draws a task.
        random_state : int, RandomState or None, default=None
            Seed.

        Returns
        -------
        ndarray of shape (n_draws, n_tasks, n_classes)
            Distributions. Needs ``smoothing > 0``.
        """
        check_is_fitted(self, "probas_")
        if not self._concentration.min() > 0:
            raise ValueError("sample needs a proper posterior: fit with smoothing > 0")
        rng = check_random_state(random_state)
        gamma = rng.standard_gamma(self._concentration, size=(n_draws, *self._concentration.shape))
        return gamma / gamma.sum(axis=2, keepdims=True)


class MajorityVote(VoteAggregator):
    """The most voted class of each task.

    Parameters
    ----------
    ties : {"first", "random", "keep"}, default="first"
        A tie goes to the first class, to a drawn one, or its mass is split in `probas_` (the label
        is then the first).
    on_missing : {"raise", "uniform", "drop"}, default="raise"
        What to do with a task without votes.
    random_state : int, RandomState or None, default=None
        Seed of the drawn ties.

    Attributes
    ----------
    probas_ : ndarray of shape (n_tasks, n_classes)
        Unit rows, or split mass.
    labels_ : ndarray of shape (n_tasks,)
        Labels.
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    tasks_ : ndarray of shape (n_tasks,)
        Sorted tasks.
    n_ties_ : int
        Number of tied tasks.
    soft_kind_ : str
        "opinion".

    References
    ----------
    .. [1] V. S. Sheng, F. Provost, P. G. Ipeirotis, "Get another label?", KDD 2008.

    Examples
    --------
    >>> from equipoise.explainers import MajorityVote
    >>> MajorityVote().fit_predict([[0, 0, 1], [1, 1, -1], [0, 1, -1]])
    array([0, 1, 0])
    """

    _parameter_constraints: dict = {
        "ties": [StrOptions({"first", "random", "keep"})],
        "on_missing": [StrOptions({"raise", "uniform", "drop"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        ties: str = "first",
        *,
        on_missing: str = "raise",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.ties = ties
        self.on_missing = on_missing
        self.random_state = random_state

    def _aggregate(self, votes: Votes) -> None:
        shares, kept = shares_of(votes.counts, self.on_missing)
        counts = votes.counts[kept]
        tied = counts == counts.max(axis=1, keepdims=True)
        self.n_ties_ = int((tied.sum(axis=1) > 1).sum())
        split = tied / tied.sum(axis=1, keepdims=True)
        if self.ties == "random":
            u = check_random_state(self.random_state).uniform(size=tied.shape)
            columns = np.where(tied, u, -1).argmax(axis=1)
        else:
            columns = tied.argmax(axis=1)
        probas = split if self.ties == "keep" else np.eye(counts.shape[1])[columns]
        # A task without votes that is kept has no majority.
        probas = np.where(counts.sum(axis=1, keepdims=True) == 0, shares, probas)
        self.soft_kind_ = "opinion"
        self._keep(votes, probas, kept)
        self._columns = columns


class WAWA(VoteAggregator):
    """Weighted majority: each worker weighs by agreement with the majority.

    Parameters
    ----------
    on_missing : {"raise", "uniform", "drop"}, default="raise"
        What to do with a task without votes.

    Attributes
    ----------
    probas_ : ndarray of shape (n_tasks, n_classes)
        Weighted vote shares.
    labels_ : ndarray of shape (n_tasks,)
        The class of most weight, ties to the first.
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    tasks_, workers_ : ndarray
        Sorted tasks and workers.
    worker_accuracy_ : ndarray of shape (n_workers,)
        Share of each worker's votes that agree with the majority.
    soft_kind_ : str
        "opinion".

    References
    ----------
    .. [1] D. Ustalov, N. Pavlichenko, B. Tseitlin, "Learning from crowds with Crowd-Kit", Journal
           of Open Source Software, 2024.

    Examples
    --------
    >>> from equipoise.explainers import WAWA
    >>> WAWA().fit_predict([[0, 0, 1], [1, 1, 0], [0, 1, -1], [1, 1, -1]])
    array([0, 1, 0, 1])
    """

    _parameter_constraints: dict = {"on_missing": [StrOptions({"raise", "uniform", "drop"})]}

    def __init__(self, *, on_missing: str = "raise") -> None:
        self.on_missing = on_missing

    def _read(self, annotations: Any, form: str) -> Votes:
        return read_annotations(annotations, form, workers_needed=True)

    def _aggregate(self, votes: Votes) -> None:
        shares, kept = shares_of(votes.counts, self.on_missing)
        n, K = votes.counts.shape
        majority = votes.counts.argmax(axis=1)
        agree = (votes.label == majority[votes.task]).astype(float)
        J = len(votes.workers)
        n_votes = np.bincount(votes.worker, minlength=J)
        weight = np.bincount(votes.worker, agree, J) / np.maximum(n_votes, 1)
        mass = np.bincount(votes.task * K + votes.label, weight[votes.worker], n * K).reshape(n, K)
        total = mass.sum(axis=1, keepdims=True)
        # Where all voters weigh nothing, their plain shares are left.
        weighted = np.divide(mass[kept], total[kept], out=shares.copy(), where=total[kept] > 0)
        self._keep(votes, weighted, kept)
        self.workers_, self.worker_accuracy_ = votes.workers, weight
        self.soft_kind_ = "opinion"
