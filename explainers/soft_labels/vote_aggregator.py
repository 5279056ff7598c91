"""What the ways from votes to distributions share: reading, results by task, explanation."""

from abc import abstractmethod
from functools import partial
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils.validation import check_is_fitted

from equipoise.explanation import Explanation
from equipoise.plotting import COLORS

from .targets import entropy
from .votes import Votes, read_annotations

__all__ = ["VoteAggregator", "shares_of"]


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
