"""Dawid and Skene's model of workers with confusion matrices.

With T_ik the belief that task i is of class k and a_ij the label that worker j gave it, EM repeats

    pi = mean_i T_i,   conf_jkl = (sum_i T_ik 1[a_ij = l] + eta) / row sum,
    T_ik = pi_k prod_j conf_{j, k, a_ij} / normaliser.

One pass over the votes, sorted by task, does both steps: a task's posterior is formed from the
table of confusions and added to the expected counts of the next table, while both are in cache.
Products of probabilities need no logarithm or exponential; a row that comes near the smallest float
is formed again from logarithms.
"""

import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
from numba import njit
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from .vote_aggregator import VoteAggregator, shares_of
from .votes import Votes, read_annotations

__all__ = ["DawidSkene"]

#: Probabilities are raised to this, so that no class is ever quite impossible.
FLOOR = 1e-300

#: Above this, what underflowed in a row of products is below 1e-27 of the row.
SAFE_MASS = 1e-280


@njit(cache=True, nogil=True)
def log_product(
    cells: np.ndarray, table: np.ndarray, priors: np.ndarray, row: np.ndarray
) -> tuple[float, float]:  # pragma: no cover
    """Fill the row with exp(log prior + sum of log table - largest); the largest and the sum."""
    K = len(row)
    largest = -np.inf
    for k in range(K):
        total = np.log(priors[k])
        for cell in cells:
            total += np.log(table[cell, k])
        row[k] = total
        largest = max(largest, total)
    mass = 0.0
    for k in range(K):
        row[k] = np.exp(row[k] - largest)
        mass += row[k]
    return largest, mass


@njit(cache=True, nogil=True)
def em_pass(
    starts: np.ndarray,
    cells: np.ndarray,
    table: np.ndarray,
    priors: np.ndarray,
    T: np.ndarray,
    expected: np.ndarray,
    total: np.ndarray,
) -> float:  # pragma: no cover
    """One E-step and the counts of the next M-step; returns the log-likelihood of the votes.

    Parameters
    ----------
    starts : ndarray of shape (n + 1,), int64
        Where each task's votes begin.
    cells : ndarray of shape (V,), int64
        worker * K + label of each vote, sorted by task.
    table : ndarray of shape (J * K, K)
        Probability of the cell's label for each true class, positive.
    priors : ndarray of shape (K,)
        Shares of the true classes, positive.
    T : ndarray of shape (n, K)
        Filled with the posterior.
    expected : ndarray of shape (J * K, K)
        Filled with the posterior's sum over the votes of each cell.
    total : ndarray of shape (K,)
        Filled with the posterior's sum over the tasks.
    """
    n, K = T.shape
    expected[:] = 0.0
    total[:] = 0.0
    log_likelihood = 0.0
    for i in range(n):
        row = T[i]
        row[:] = priors
        for v in range(starts[i], starts[i + 1]):
            likely = table[cells[v]]
            for k in range(K):
                row[k] *= likely[k]
        mass = 0.0
        for k in range(K):
            mass += row[k]
        if mass < SAFE_MASS:
            largest, mass = log_product(cells[starts[i] : starts[i + 1]], table, priors, row)
            log_likelihood += largest
        log_likelihood += np.log(mass)
        scale = 1.0 / mass
        for k in range(K):
            row[k] *= scale
            total[k] += row[k]
        for v in range(starts[i], starts[i + 1]):
            count = expected[cells[v]]
            for k in range(K):
                count[k] += row[k]
    return log_likelihood


@njit(cache=True, nogil=True)
def count_expected(
    starts: np.ndarray, cells: np.ndarray, T: np.ndarray, expected: np.ndarray
) -> None:  # pragma: no cover
    """Add each task's row of T to the cells of its votes."""
    for i in range(len(T)):
        for v in range(starts[i], starts[i + 1]):
            for k in range(T.shape[1]):
                expected[cells[v], k] += T[i, k]


class DawidSkene(VoteAggregator):
    """Dawid and Skene's model of workers with confusion matrices, by EM from the vote shares.

    Parameters
    ----------
    max_iter : int, default=100
        Largest number of iterations.
    tol : float, default=1e-6
        Stop when the log-likelihood rises by less than this share of its size.
    smoothing : float, default=0.01
        Added to each cell of the expected confusion counts. With 0 the log-likelihood never falls.
    one_coin : bool, default=False
        One accuracy a worker, with all wrong labels alike, instead of a confusion matrix.
    on_missing : {"raise", "uniform", "drop"}, default="raise"
        What to do with a task without votes. "uniform" leaves it out of the model.

    Attributes
    ----------
    probas_ : ndarray of shape (n_tasks, n_classes)
        Posterior probability that a class is the task's true one.
    labels_ : ndarray of shape (n_tasks,)
        The most probable class.
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    tasks_, workers_ : ndarray
        Sorted tasks and workers.
    worker_confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        Probability of each label (column) for each true class (row); uniform where the votes say
        nothing.
    worker_accuracy_ : ndarray of shape (n_workers,)
        Mean of the diagonal, weighted by `priors_`.
    priors_ : ndarray of shape (n_classes,)
        Shares of the true classes.
    log_likelihood_ : float
        Of the votes at the last iteration.
    log_likelihoods_ : ndarray of shape (n_iter_,)
        At each iteration.
    n_iter_ : int
        Iterations run.
    soft_kind_ : str
        "posterior".

    References
    ----------
    .. [1] A. P. Dawid, A. M. Skene, "Maximum likelihood estimation of observer error-rates using
           the EM algorithm", Applied Statistics, 1979.

    Examples
    --------
    >>> from equipoise.explainers import DawidSkene
    >>> votes = [[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1], [0, -1, 1]]
    >>> model = DawidSkene(smoothing=0).fit(votes)
    >>> model.labels_
    array([0, 1, 0, 1, 0])
    """

    _parameter_constraints: dict = {
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "smoothing": [Interval(Real, 0, None, closed="left")],
        "one_coin": ["boolean"],
        "on_missing": [StrOptions({"raise", "uniform", "drop"})],
    }

    def __init__(
        self,
        max_iter: int = 100,
        tol: float = 1e-6,
        smoothing: float = 0.01,
        one_coin: bool = False,
        *,
        on_missing: str = "raise",
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.smoothing = smoothing
        self.one_coin = one_coin
        self.on_missing = on_missing

    def _read(self, annotations: Any, form: str) -> Votes:
        return read_annotations(annotations, form, workers_needed=True)

    def _aggregate(self, votes: Votes) -> None:
        _, kept = shares_of(votes.counts, self.on_missing)
        voted = votes.counts.sum(axis=1) > 0
        n_votes = votes.counts[voted].sum(axis=1)
        T = votes.counts[voted] / n_votes[:, None]
        K, J = T.shape[1], len(votes.workers)
        starts = np.concatenate([[0], np.cumsum(n_votes)])  # the votes are sorted by task
        cells = votes.worker * K + votes.label
        expected, total = np.zeros((J * K, K)), T.sum(axis=0)
        count_expected(starts, cells, T, expected)
        history: list[float] = []
        for _ in range(self.max_iter):
            confusion = self._confusion(expected.reshape(J, K, K).transpose(0, 2, 1))
            priors = total / len(T)
            table = np.maximum(confusion.transpose(0, 2, 1), FLOOR, order="C").reshape(J * K, K)
            likely = np.maximum(priors, FLOOR)
            history.append(em_pass(starts, cells, table, likely, T, expected, total))
            if len(history) > 1:
                rise = history[-1] - history[-2]
                if abs(rise) <= self.tol * max(abs(history[-1]), 1.0):
                    break
        else:
            if self.max_iter > 1:
                warnings.warn(
                    f"DawidSkene stopped after {self.max_iter} iterations with the log-likelihood "
                    f"still rising by {history[-1] - history[-2]:.2g}; raise max_iter",
                    ConvergenceWarning,
                    stacklevel=4,
                )
        probas = np.full((len(voted), K), 1 / K)
        probas[voted] = T
        self._keep(votes, probas[kept], kept)
        self.workers_ = votes.workers
        self.worker_confusion_, self.priors_ = confusion, priors
        self.worker_accuracy_ = np.einsum("jkk,k->j", confusion, priors)
        self.log_likelihoods_ = np.array(history)
        self.log_likelihood_ = float(history[-1])
        self.n_iter_ = len(history)
        self.soft_kind_ = "posterior"

    def _confusion(self, expected: np.ndarray) -> np.ndarray:
        """Confusion matrices (J, K, K) from expected counts; rows without counts are uniform."""
        K = expected.shape[1]
        eta = self.smoothing
        if self.one_coin:
            hits = np.einsum("jkk->j", expected) + eta
            total = expected.sum(axis=(1, 2)) + K * eta
            right = np.divide(hits, total, out=np.full(len(hits), 1 / K), where=total > 0)
            wrong = (1 - right) / (K - 1)
            return np.where(np.eye(K, dtype=bool), right[:, None, None], wrong[:, None, None])
        counts = expected + eta
        total = counts.sum(axis=2, keepdims=True)
        return np.divide(counts, total, out=np.full_like(counts, 1 / K), where=total > 0)
