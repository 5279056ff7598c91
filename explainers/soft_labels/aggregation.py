"""From annotators' votes to one distribution a task.

Vote shares with a Dirichlet prior, (c + a g) / (n_i + a); majorities; the weighted majority WAWA;
and Dawid and Skene's model, whose EM repeats

    pi = mean_i T_i,   conf_jkl = (sum_i T_ik 1[a_ij = l] + eta) / row sum,
    log T_ik = log pi_k + sum_j log conf_{j, k, a_ij} - normaliser.

Shares describe the population of opinions. Dawid and Skene's posterior is belief about one true
class, and sharpens with more votes: `soft_kind_` says which of the two a result is.
"""

import warnings
from abc import abstractmethod
from functools import partial
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import pandas as pd
from numba import njit
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from equipoise.explanation import Explanation
from equipoise.plotting import COLORS

from .targets import entropy
from .votes import Votes, read_annotations

__all__ = ["WAWA", "DawidSkene", "MajorityVote", "VoteShare"]

#: Probabilities are raised to this before logarithms.
FLOOR = 1e-300


@njit(cache=True, nogil=True)
def subtract_row_max(Z: np.ndarray) -> np.ndarray:  # pragma: no cover
    """Take each row's largest entry off the row, in place, and return it."""
    n, K = Z.shape
    top = np.empty(n)
    for i in range(n):
        largest = Z[i, 0]
        for k in range(1, K):
            largest = max(largest, Z[i, k])
        for k in range(K):
            Z[i, k] -= largest
        top[i] = largest
    return top


def posterior(log_T: np.ndarray) -> tuple[np.ndarray, float]:
    """Rows normalised to distributions (in place), and the log-likelihood of the votes."""
    top = subtract_row_max(log_T)
    T = np.exp(log_T, out=log_T)
    mass = T @ np.ones(T.shape[1])  # BLAS: NumPy's sum over short rows takes as long as the exp
    T /= mass[:, None]
    return T, float(top.sum() + np.log(mass).sum())


def shares_of(counts: np.ndarray, missing: str) -> tuple[np.ndarray, np.ndarray]:
    """Vote shares and which tasks are kept; tasks without votes by `missing`."""
    n = counts.sum(axis=1)
    empty = n == 0
    if empty.any() and missing == "raise":
        raise ValueError(
            f"task {int(np.argmax(empty))} has no vote; on_missing='uniform' or 'drop' allow it"
        )
    kept = ~empty if missing == "drop" else np.ones(len(n), dtype=bool)
    if not (kept & ~empty).any():
        raise ValueError("annotations hold no vote")
    shares = np.where(empty[:, None], 1 / counts.shape[1], counts / np.maximum(n, 1)[:, None])
    return shares[kept], kept


def draw_certainty(ax: Any, frame: pd.DataFrame) -> Any:
    """How sure the aggregate is of each task, by number of votes."""
    ax.hist(frame["probability"], bins=20, color=COLORS[0])
    ax.set(xlabel="probability of the label", ylabel="tasks", title="certainty of the labels")
    return ax


def draw_workers(ax: Any, skill: np.ndarray) -> Any:
    """Each worker's estimated accuracy, sorted."""
    ax.plot(np.sort(skill)[::-1], ".", color=COLORS[0])
    ax.set(
        xlabel="worker, best first", ylabel="estimated accuracy", title="workers", ylim=(0, 1.02)
    )
    return ax


class VoteAggregator(BaseEstimator):
    """What the aggregators share: reading votes, results by task, explanation."""

    @abstractmethod
    def _aggregate(self, votes: Votes) -> None:
        """Set probas_, soft_kind_ and the method's own results from the votes."""

    def _read(self, annotations: Any, form: str) -> Votes:
        return read_annotations(annotations, form, workers_needed=False)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, annotations: Any, form: str = "auto") -> Self:
        """Aggregate the votes.

        Parameters
        ----------
        annotations : DataFrame or array-like
            A data frame with the columns ``task``, ``worker``, ``label``; a matrix of shape
            (n_tasks, n_workers) with -1 or NaN for no vote; or vote counts of shape (n_tasks,
            n_classes), of which a data frame's columns are the classes.
        form : {"auto", "long", "dense", "counts"}, default="auto"
            How to read the annotations. "auto" asks where a matrix could be both.

        Returns
        -------
        self : object
            Fitted.
        """
        fresh = type(self)(**self.get_params(deep=False))
        votes = fresh._read(annotations, form)
        fresh._aggregate(votes)
        fresh.classes_ = votes.classes
        fresh.labels_ = votes.classes[fresh._columns]
        self.__dict__.update(fresh.__dict__)
        return self

    def fit_predict(self, annotations: Any, form: str = "auto") -> np.ndarray:
        """Aggregate the votes into one label a task.

        Parameters
        ----------
        annotations, form
            As for `fit`.

        Returns
        -------
        ndarray of shape (n_tasks,)
            Labels, in the order of the sorted tasks.
        """
        return self.fit(annotations, form).labels_

    def fit_predict_proba(self, annotations: Any, form: str = "auto") -> np.ndarray:
        """Aggregate the votes into one distribution a task.

        Parameters
        ----------
        annotations, form
            As for `fit`.

        Returns
        -------
        ndarray of shape (n_tasks, n_classes)
            Probabilities, in the order of the sorted tasks and of `classes_`.
        """
        return self.fit(annotations, form).probas_

    def _keep(self, votes: Votes, probas: np.ndarray, kept: np.ndarray) -> None:
        """Results by task."""
        self.probas_ = probas
        self._columns = probas.argmax(axis=1)
        self.tasks_ = votes.tasks[kept]
        self._n_votes = votes.counts.sum(axis=1)[kept]

    def explain(self) -> Explanation:
        """Say what the votes agree on, and where they don't.

        Returns
        -------
        equipoise.explanation.Explanation
            One row a task: ``task``, ``label``, ``probability``, ``entropy`` (nats), ``n_votes``.
            Plot "certainty", and "workers" where workers are modelled.
        """
        check_is_fitted(self, "probas_")
        probability = self.probas_[np.arange(len(self.probas_)), self._columns]
        frame = pd.DataFrame(
            {
                "task": self.tasks_,
                "label": self.labels_,
                "probability": probability,
                "entropy": entropy(self.probas_),
                "n_votes": self._n_votes,
            }
        )
        hardest = frame.nlargest(5, "entropy")["task"].tolist()
        meaning = {
            "opinion": "shares of opinions",
            "posterior": "belief about one true class, sharper with more votes",
        }
        summary = [
            f"{len(frame)} tasks, {self._n_votes.sum()} votes, {len(self.classes_)} classes; "
            f"probabilities are {meaning[self.soft_kind_]}",
            f"mean probability of the label {probability.mean():.3f}; "
            f"mean entropy {frame['entropy'].mean():.3f} nats",
            f"least certain tasks: {hardest}",
        ]
        plots = {"certainty": partial(draw_certainty, frame=frame)}
        skill = getattr(self, "worker_accuracy_", None)
        if skill is not None:
            worst = [str(self.workers_[j]) for j in np.argsort(skill, kind="stable")[:3]]
            summary.append(
                f"estimated accuracy of the workers {skill.min():.2f} to {skill.max():.2f}; "
                f"lowest: {', '.join(worst)}"
            )
            plots["workers"] = partial(draw_workers, skill=skill)
        return Explanation("What do the votes say of each task?", summary, frame, plots)


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
        T = votes.counts[voted] / votes.counts[voted].sum(axis=1)[:, None]
        K, J = T.shape[1], len(votes.workers)
        task = (np.cumsum(voted) - 1)[votes.task]
        cell = votes.worker * K + votes.label
        # Votes as a sparse matrix, tasks by (worker, label): both steps are products with it.
        A = csr_array((np.ones(len(task)), (task, cell)), shape=(len(T), J * K))
        A_T = A.T  # column-compressed: its product scatters into the small table, in cache
        history = []
        for _ in range(self.max_iter):
            confusion = self._confusion((A_T @ T).reshape(J, K, K).transpose(0, 2, 1))
            priors = np.full(len(T), 1 / len(T)) @ T
            log_table = np.log(np.maximum(confusion.transpose(0, 2, 1).reshape(J * K, K), FLOOR))
            log_T = A @ log_table
            log_T += np.log(np.maximum(priors, FLOOR))
            T, log_likelihood = posterior(log_T)
            history.append(log_likelihood)
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
