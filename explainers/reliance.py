r"""How people rely on advice: switching, agreement, and whether they rely on it where they should.

Rates are ratios of counts: P(follow | AI right) and P(override | AI wrong) for everyone, and
where the judgement before the advice is known, P(switch | disagreement), P(corrected | first
wrong, AI right) and P(misled | first right, AI wrong). Trials of one person aren't independent, so
intervals come from a bootstrap over people.
"""

from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from equipoise.explanation import Explanation
from equipoise.inference import cluster_bootstrap

__all__ = ["RelianceReport"]

#: Name of each rate to what it says.
RATES = {
    "accuracy_initial": "right before the advice",
    "accuracy_advice": "the AI is right",
    "accuracy_final": "right after the advice",
    "agreement": "the final decision is the AI's",
    "switch_rate": "takes the AI's side where the first judgement differed",
    "follow_when_right": "the final decision is the AI's, where the AI is right",
    "override_when_wrong": "the final decision isn't the AI's, where the AI is wrong",
    "corrected": "ends up right, first wrong and the AI right",
    "misled": "ends up with the AI's error, first right and the AI wrong",
}


def reliance_counts(
    initial: NDArray | None, advice: NDArray, final: NDArray, truth: NDArray
) -> NDArray[np.float64]:
    """For each trial, numerator and denominator of each rate, shape (n, n_rates, 2)."""
    ones = np.ones(len(advice), dtype=bool)
    ai_right, follows, right = advice == truth, final == advice, final == truth
    never = np.zeros(len(advice), dtype=bool)
    differs = first_right = never
    known = never
    if initial is not None:
        differs, first_right, known = initial != advice, initial == truth, ones
    pairs = (
        (first_right, known),
        (ai_right, ones),
        (right, ones),
        (follows, ones),
        (follows, differs),
        (follows, ai_right),
        (~follows, ~ai_right),
        (right, known & ~first_right & ai_right),
        (follows, first_right & ~ai_right),
    )
    return np.array([(event & given, given) for event, given in pairs], dtype=float).transpose(
        2, 0, 1
    )


def ratios(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rates from counts of trials; a rate without trials isn't defined."""
    numerator, denominator = counts.sum(axis=0).T
    with np.errstate(invalid="ignore", divide="ignore"):
        return numerator / denominator


class RelianceReport(BaseEstimator):
    """Rates of reliance on advice, with intervals clustered by person.

    Parameters
    ----------
    confidence_level : float, default=0.95
        Coverage of the intervals.
    n_resamples : int, default=1000
        Resamples of the bootstrap over people (over trials without `groups`).
    random_state : int, RandomState or None, default=None
        Seed of the bootstrap.

    Attributes
    ----------
    rates_ : DataFrame
        One row a rate: rate, meaning, value, low, high, n_trials (its denominator). A rate whose
        condition never occurs, or that needs the initial judgement and has none, is NaN.
    relative_ai_reliance_ : float
        Corrected: P(right at last | first wrong, AI right); NaN where unknown.
    relative_self_reliance_ : float
        One minus misled: P(not the AI's error | first right, AI wrong); NaN where unknown.
    n_trials_ : int
        Number of trials.
    n_groups_ : int
        Number of people; trials without `groups`.

    References
    ----------
    .. [1] M. Schemmer, N. Kuehl, C. Benz, A. Bartos, G. Satzger (2023). "Appropriate Reliance on AI
       Advice: Conceptualization and the Effect of Explanations". IUI 2023.

    Examples
    --------
    >>> from equipoise.datasets import make_human_ai_trials
    >>> from equipoise.explainers import RelianceReport
    >>> data = make_human_ai_trials(60, 40, trust=0.25, random_state=0)
    >>> report = RelianceReport(random_state=0)
    >>> report = report.fit(data.initial, data.advice, data.y, data.y_true, groups=data.groups)
    >>> rates = report.rates_.set_index("rate")["value"]
    >>> bool(rates["follow_when_right"] > 1 - rates["override_when_wrong"])
    True
    """

    _parameter_constraints: dict = {
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "n_resamples": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        confidence_level: float = 0.95,
        n_resamples: int = 1000,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.confidence_level = confidence_level
        self.n_resamples = n_resamples
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        initial: ArrayLike | None,
        advice: ArrayLike,
        final: ArrayLike,
        y_true: ArrayLike,
        groups: ArrayLike | None = None,
    ) -> "RelianceReport":
        """Count.

        Parameters
        ----------
        initial : array-like of shape (n_trials,) or None
            Judgement before the advice, as a class label; None where it wasn't asked.
        advice, final, y_true : array-like of shape (n_trials,)
            Advice, decision after it, and truth, as class labels.
        groups : array-like of shape (n_trials,), optional
            The person of each trial.

        Returns
        -------
        RelianceReport
            The fitted report.

        Raises
        ------
        ValueError
            If lengths differ, labels are missing, or there are fewer than two people.
        """
        labels = {"initial": initial, "advice": advice, "final": final, "y_true": y_true}
        columns: dict[str, NDArray] = {}
        for name, values in labels.items():
            if values is None and name == "initial":
                continue
            columns[name] = column_or_1d(values)
            if pd.isna(columns[name]).any():
                raise ValueError(f"{name}: missing labels; allowed: class labels")
        check_consistent_length(*columns.values(), groups)
        counts = reliance_counts(
            columns.get("initial"), columns["advice"], columns["final"], columns["y_true"]
        )
        value = ratios(counts)
        low, high = np.full((2, len(value)), np.nan)
        people = np.arange(len(counts)) if groups is None else column_or_1d(groups)
        # Sums by person: the bootstrap then adds up people, not trials.
        _, codes = np.unique(people, return_inverse=True)
        by_person = np.zeros((codes.max() + 1, *counts.shape[1:]))
        np.add.at(by_person, codes, counts)
        if len(by_person) < 2:
            raise ValueError("groups: got one person; at least two are needed for intervals")
        # A rate that only few people have may be undefined in a resample: it keeps its value.
        boot = cluster_bootstrap(
            lambda sums: np.where(np.isnan(r := ratios(sums)), np.nan_to_num(value), r),
            by_person,
            n_resamples=self.n_resamples,
            confidence_level=self.confidence_level,
            random_state=self.random_state,
        )
        known = np.isfinite(value)
        low[known], high[known] = boot.low[known], boot.high[known]
        self.rates_ = pd.DataFrame(
            {
                "rate": list(RATES),
                "meaning": list(RATES.values()),
                "value": value,
                "low": low,
                "high": high,
                "n_trials": counts[:, :, 1].sum(axis=0).astype(int),
            }
        )
        named = self.rates_.set_index("rate")["value"]
        self.relative_ai_reliance_ = float(named["corrected"])
        self.relative_self_reliance_ = float(1 - named["misled"])
        self.n_trials_ = len(counts)
        self.n_groups_ = len(by_person)
        return self

    def explain(self) -> Explanation:
        """Say how advice is relied on, and whether where it should be.

        Returns
        -------
        Explanation
            The table of rates; plot "rates".
        """
        check_is_fitted(self)
        named = self.rates_.set_index("rate")
        value = named["value"]

        def shown(rate: str) -> str:
            row = named.loc[rate]
            return f"{row['value']:.3f} ({row['low']:.3f} to {row['high']:.3f})"

        lines = [
            f"{self.n_trials_} trials of {self.n_groups_} people; AI right in "
            f"{value['accuracy_advice']:.3f}, final decision in {value['accuracy_final']:.3f}",
            f"follows the AI where it is right: {shown('follow_when_right')}",
            f"overrides it where it is wrong: {shown('override_when_wrong')}",
        ]
        if np.isfinite(value["switch_rate"]):
            lines += [
                f"switches to the AI's side when they differ: {shown('switch_rate')}",
                f"corrected {shown('corrected')}, misled {shown('misled')}",
            ]
        return Explanation(
            "Do people rely on the advice where they should?",
            lines,
            self.rates_,
            {"rates": partial(draw_rates, self.rates_)},
        )


def draw_rates(frame: pd.DataFrame, ax: Any) -> Any:
    """Each rate with its interval."""
    from equipoise.plotting import COLORS

    shown = frame[frame["value"].notna()].iloc[::-1]
    position = np.arange(len(shown))
    ax.hlines(position, shown["low"], shown["high"], color=COLORS[5], lw=4, alpha=0.7)
    ax.plot(shown["value"], position, "o", color=COLORS[0], ms=6)
    ax.set_yticks(position, [name.replace("_", " ") for name in shown["rate"]])
    ax.set_xlim(0, 1)
    ax.set_xlabel("share of trials")
    ax.grid(axis="x", color="#dfe3ea", lw=0.8)
    ax.set_axisbelow(True)
    return ax
