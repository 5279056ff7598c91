"""Choice among fitted scikit-learn models on a stream: one is asked, and only its loss is seen."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from equipoise.explanation import Explanation

from .static_dynamic import StaticDynamicBandit

__all__ = ["SwitchingMeta"]

Array = np.ndarray


class SwitchingMeta(BaseEstimator):
    """Ask one of several fitted models for each row of a stream, and learn which to ask.

    For streams in which the right model changes, and asking all of them costs too much. It holds a
    bandit learner whose arms are the models.

    Parameters
    ----------
    estimators : list of (str, estimator)
        Fitted classifiers or regressors, with names; they aren't changed.
    learner : learner, optional
        Any bandit learner with as many arms, of losses in [0, 1]; None takes
        ``StaticDynamicBandit(static_part="exp", change_tol=inf)``, made for noisy losses.
    loss : callable, optional
        ``loss(y_true, y_pred)`` gives the losses of rows, in [0, 1]; None takes 0 or 1 for
        classifiers. Regressors need one.
    random_state : int, RandomState or None, default=None
        Seed of the default learner.

    Attributes
    ----------
    learner_ : learner
        What it has learnt.
    names_ : list of str
        Names of the models.
    counts_ : ndarray of int of shape (n_estimators,)
        Rows for which each was asked.
    mean_loss_ : float
        Mean loss of all rows so far.

    References
    ----------
    .. [1] A. Agarwal, H. Luo, B. Neyshabur, R. Schapire, "Corralling a band of bandit algorithms",
       2017.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyClassifier
    >>> from equipoise.games import SwitchingMeta
    >>> X, y = np.zeros((1000, 1)), np.repeat([0, 1], 500)
    >>> always = [(str(k), DummyClassifier(strategy="constant", constant=k)) for k in (0, 1)]
    >>> for _, model in always:
    ...     _ = model.fit(X, y)
    >>> meta = SwitchingMeta(always, random_state=0).partial_fit(X, y)
    >>> meta.predict(X[:1]).tolist(), bool(meta.mean_loss_ < 0.4)
    ([1], True)
    """

    learner_: Any
    counts_: Array
    mean_loss_: float

    def __init__(
        self,
        estimators: list[tuple[str, Any]],
        learner: Any = None,
        loss: Callable[[Array, Array], ArrayLike] | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimators = estimators
        self.learner = learner
        self.loss = loss
        self.random_state = random_state

    def _checked(self) -> tuple[list[str], list[Any]]:
        """Names and models, fitted and of one sort."""
        if not isinstance(self.estimators, list) or not self.estimators:
            raise ValueError("estimators must be a list of (name, fitted estimator), not empty")
        names, models = zip(*self.estimators, strict=True)
        if len(set(names)) < len(names):
            raise ValueError(f"estimators: names must differ, got {list(names)}")
        for model in models:
            check_is_fitted(model)
        if self.loss is None and not all(is_classifier(model) for model in models):
            raise ValueError("loss=None is for classifiers; give a loss(y_true, y_pred) in [0, 1]")
        return list(names), list(models)

    def _check_started(self) -> None:
        if not hasattr(self, "learner_"):
            raise NotFittedError("SwitchingMeta has seen no rows: call partial_fit first")

    def _fresh_learner(self, n_arms: int) -> Any:
        if self.learner is None:
            return StaticDynamicBandit(
                n_arms, static_part="exp", change_tol=np.inf, random_state=self.random_state
            )
        if self.learner.n_arms != n_arms:
            raise ValueError(f"learner has {self.learner.n_arms} arms, and estimators {n_arms}")
        return clone(self.learner)

    def _losses(self, y: Array, predicted: Array) -> Array:
        if self.loss is None:
            return (np.asarray(predicted) != y).astype(float)
        losses = np.asarray(self.loss(y, predicted), dtype=float)
        if losses.shape != (len(y),) or not ((losses >= 0) & (losses <= 1)).all():
            raise ValueError(f"loss must give {len(y)} numbers in [0, 1]")
        return losses

    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Go through the rows in order: ask a model, see its loss, learn.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Rows, as the models take them.
        y : array-like of shape (n_samples,)
            What is true of them.

        Returns
        -------
        self
            After these rows.

        Notes
        -----
        A model predicts all rows of a call when it is asked for the first time in it, and none
        where it isn't asked; the learner sees only the losses of the rows for which it was asked.
        """
        names, models = self._checked()
        truth = np.asarray(y)
        check_consistent_length(X, truth)
        first = not hasattr(self, "learner_")
        learner = self._fresh_learner(len(models)) if first else deepcopy(self.learner_)
        counts = np.zeros(len(models), dtype=np.int64) if first else self.counts_.copy()
        total = 0.0 if first else self.mean_loss_ * self.counts_.sum()
        known: dict[int, Array] = {}
        for i in range(len(truth)):
            arm = learner.select_arm()
            if arm not in known:
                known[arm] = self._losses(truth, models[arm].predict(X))
            learner.update(arm, float(known[arm][i]))
            counts[arm] += 1
            total += known[arm][i]
        self.learner_, self.names_, self.counts_ = learner, names, counts
        self.mean_loss_ = float(total / max(counts.sum(), 1))
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Predict with the model that is most likely asked next.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Its predictions.
        """
        self._check_started()
        return self.estimators[self.learner_.predict()][1].predict(X)

    def explain(self) -> Explanation:
        """Say which models were asked, and how they did.

        Returns
        -------
        Explanation
            The learner's account, with the models' names.
        """
        self._check_started()
        account = self.learner_.explain()
        frame = account.to_frame()
        frame.insert(0, "model", self.names_)
        often = int(self.counts_.argmax())
        summary = [f"asked most: {self.names_[often]}", f"mean loss {self.mean_loss_:.4g}"]
        return Explanation(
            "Which model was asked?", [*summary, *account.summary], frame, account._plots
        )
