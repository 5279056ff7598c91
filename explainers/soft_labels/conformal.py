"""Prediction sets that hold the opinions of annotators, with a guarantee for finite samples.

A set C(f) = {k : s_k(f) <= t} is made of the classes of small nonconformity s. Calibration items
with votes p_i choose t; the test item is exchangeable with them.

Votes covered: E[sum_k p_k 1(k in C)] >= 1 - alpha. Let t be the (1 - alpha) quantile of the scores
s_ik, item i spreading a mass of 1 / (n + 1) over its classes by p_ik and the test item's mass lying
at infinity. With the test item's own scores in place of infinity the quantile t' <= t, and by
exchangeability the test item is expected to have as much mass at most t' as the mean of all n + 1
items, which is at least 1 - alpha by the choice of t'.

Items covered: P(sum_k p_k 1(k in C) >= share) >= 1 - alpha. Now the score of an item is the least t
at which its set holds the share, and t is the usual conformal quantile of these n scores.

Hard labels are the special case of unit rows: both are split conformal prediction then. After Stutz
et al. (2023), who draw labels from p_i, where here the votes are weights.
"""

from functools import partial
from numbers import Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from equipoise.explanation import Explanation
from equipoise.plotting import COLORS

from .calibration import read_proba
from .difficulty import difficulty_of
from .pairs import read_pair

__all__ = ["VoteConformalSets"]

#: Votes that lack of a share by rounding alone count as the share.
ROUNDING = 1e-9

N_TENTHS = 10


def nonconformity(F: np.ndarray, score: str) -> np.ndarray:
    """Score of each class: 1 - f_k, or the mass of all classes at least as probable (n, K)."""
    if score == "probability":
        return 1 - F
    order = np.argsort(-F, axis=1, kind="stable")
    ranked = np.cumsum(np.take_along_axis(F, order, axis=1), axis=1)
    scores = np.empty_like(F)
    np.put_along_axis(scores, order, ranked, axis=1)
    return scores


def weighted_threshold(S: np.ndarray, P: np.ndarray, alpha: float) -> float:
    """Least score with a mass of at least 1 - alpha up to it, the test item's being at infinity."""
    order = np.argsort(S, axis=None, kind="stable")
    mass = np.cumsum(P.ravel()[order]) / (len(P) + 1)
    at = int(np.searchsorted(mass, 1 - alpha - ROUNDING))
    return float(S.ravel()[order[at]]) if at < len(order) else float("inf")


def item_threshold(S: np.ndarray, P: np.ndarray, share: float, alpha: float) -> float:
    """Conformal quantile of the least thresholds at which each item's set holds the share."""
    order = np.argsort(S, axis=1, kind="stable")
    held = np.cumsum(np.take_along_axis(P, order, axis=1), axis=1) >= share - ROUNDING
    least = np.take_along_axis(S, order, axis=1)[np.arange(len(S)), held.argmax(axis=1)]
    rank = int(np.ceil((len(S) + 1) * (1 - alpha) - ROUNDING))
    return float(np.sort(least)[rank - 1]) if rank <= len(S) else float("inf")


def draw_sizes(ax: Any, frame: pd.DataFrame) -> Any:
    """Mean size of the sets in tenths of the items, from clear to contested."""
    tenths = frame.groupby("tenth")[["size", "difficulty"]].mean()
    ax.plot(tenths["difficulty"], tenths["size"], marker="o", color=COLORS[0])
    ax.set(
        xlabel="difficulty for people, tenths of the items",
        ylabel="classes in the set",
        title="do the sets grow where people disagree?",
        ylim=(0, None),
    )
    return ax


def draw_coverage(ax: Any, frame: pd.DataFrame, goal: float) -> Any:
    """Share of votes inside the sets in tenths of the items, from clear to contested."""
    tenths = frame.groupby("tenth")[["votes_covered", "difficulty"]].mean()
    ax.axhline(goal, color="0.6", linewidth=1, linestyle="--")
    ax.plot(tenths["difficulty"], tenths["votes_covered"], marker="o", color=COLORS[0])
    ax.set(
        xlabel="difficulty for people, tenths of the items",
        ylabel="share of votes in the set",
        title="coverage by difficulty",
        ylim=(None, 1.01),
    )
    return ax


class VoteConformalSets(BaseEstimator):
    """Sets of classes that hold the annotators' votes with a chosen probability.

    Parameters
    ----------
    alpha : float, default=0.1
        Level of error.
    share : float, default=None
        None covers votes: a new vote on a new item falls into the set with probability at least
        1 - alpha. A number in (0, 1] covers items: with probability at least 1 - alpha, the set of
        a new item holds at least this share of its votes.
    score : {"probability", "cumulative"}, default="probability"
        Nonconformity of a class: 1 - f_k, which gives the smallest sets; or the mass of all classes
        at least as probable, whose sets follow the item's difficulty more closely.

    Attributes
    ----------
    threshold_ : float
        Largest nonconformity of a class in the set; infinite where there are too few calibration
        items for `alpha`, and then all classes are in every set.
    n_items_ : int
        Calibration items.
    n_classes_ : int
        Classes.

    Notes
    -----
    The guarantee is on average over items, calibration included, and needs calibration and test
    items to be exchangeable: drawn alike, and voted on alike. It doesn't need the model to be
    right or calibrated; a poor model only has large sets.

    References
    ----------
    .. [1] D. Stutz, A. G. Roy, T. Matejovicova, P. Strachan, A. T. Cemgil, A. Doucet, "Conformal
           prediction under ambiguous ground truth", TMLR 2023, arXiv 2307.09302.
    .. [2] Y. Romano, M. Sesia, E. Candes, "Classification with valid and adaptive coverage",
           NeurIPS 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.explainers import VoteConformalSets
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet(np.ones(4), size=2000)
    >>> votes = rng.multinomial(10, proba)
    >>> sets = VoteConformalSets(alpha=0.2).fit(proba[:1000], votes[:1000])
    >>> inside = sets.predict(proba[1000:])
    >>> inside.shape
    (1000, 4)
    >>> round(float((inside * votes[1000:]).sum() / votes[1000:].sum()), 1)
    0.8
    """

    _parameter_constraints: dict = {
        "alpha": [Interval(Real, 0, 1, closed="neither")],
        "share": [Interval(Real, 0, 1, closed="right"), None],
        "score": [StrOptions({"probability", "cumulative"})],
    }

    def __init__(
        self, alpha: float = 0.1, *, share: float | None = None, score: str = "probability"
    ) -> None:
        self.alpha = alpha
        self.share = share
        self.score = score

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, proba: npt.ArrayLike, P: npt.ArrayLike) -> Self:
        """Choose the threshold on items apart from the model's training data.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes)
            Model probabilities.
        P : array-like of shape (n_samples, n_classes) or (n_samples,)
            Votes, soft labels or columns of hard labels.

        Returns
        -------
        self : VoteConformalSets
            Fitted.
        """
        humans, F = read_pair(P, proba)
        S = nonconformity(F, self.score)
        if self.share is None:
            threshold = weighted_threshold(S, humans.P, self.alpha)
        else:
            threshold = item_threshold(S, humans.P, self.share, self.alpha)
        self.threshold_ = threshold
        self.n_items_, self.n_classes_ = F.shape
        return self

    def predict(self, proba: npt.ArrayLike) -> np.ndarray:
        """Say which classes are in each item's set.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes)
            Model probabilities.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), bool
            Rows may be empty, where no class is probable enough.
        """
        check_is_fitted(self, "threshold_")
        F = read_proba(proba)[0]
        if F.shape[1] != self.n_classes_:
            raise ValueError(f"proba has {F.shape[1]} columns; expected {self.n_classes_}")
        return nonconformity(F, self.score) <= self.threshold_

    def explain(self, proba: npt.ArrayLike, P: npt.ArrayLike) -> Explanation:
        """Say how many votes the sets hold, and whether they grow where people disagree.

        Parameters
        ----------
        proba, P
            As for `fit`, of test items.

        Returns
        -------
        equipoise.explanation.Explanation
            One row an item: ``index``, ``size`` of the set, ``votes_covered`` (share),
            ``difficulty`` (entropy over log K) and its ``tenth``; plots "size" and "coverage".
        """
        humans, F = read_pair(P, proba)
        inside = self.predict(F)
        d = difficulty_of(humans.P, "entropy")
        place = np.argsort(np.argsort(d, kind="stable"), kind="stable")
        frame = pd.DataFrame(
            {
                "index": np.arange(len(F)),
                "size": inside.sum(axis=1),
                "votes_covered": (humans.P * inside).sum(axis=1),
                "difficulty": d,
                "tenth": place * N_TENTHS // len(F),
            }
        )
        covered = frame["votes_covered"]
        goal = 1 - self.alpha if self.share is None else self.share
        ends = frame.groupby("tenth")["votes_covered"].mean()
        summary = [
            f"sets of {frame['size'].mean():.2f} of {self.n_classes_} classes on average hold "
            f"{covered.mean():.1%} of the votes"
        ]
        if self.share is not None:
            held = float((covered >= self.share - ROUNDING).mean())
            summary.append(
                f"{held:.1%} of the sets hold at least {self.share:.0%} of their item's votes; "
                f"{1 - self.alpha:.0%} was asked for"
            )
        else:
            summary.append(f"{1 - self.alpha:.0%} of the votes was asked for, on average")
        summary.append(
            f"from the clearest to the most contested tenth of the items the sets hold "
            f"{ends.iloc[0]:.1%} and {ends.iloc[-1]:.1%} of the votes: the guarantee is for all "
            "items together"
        )
        plots = {
            "size": partial(draw_sizes, frame=frame),
            "coverage": partial(draw_coverage, frame=frame, goal=goal),
        }
        return Explanation("Which classes do people's votes fall on?", summary, frame, plots)
