"""Mediators side by side, and what welfare costs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from .deviations import implementation_costs
from .meta_game import as_design_game
from .programs import payoff_range
from .punishments import minimax_response
from .subsidy import budgeted_policy

__all__ = ["compare_mediators", "subsidy_frontier"]


def corners(payoffs: np.ndarray, weights: np.ndarray, top: float) -> list[tuple[float, float]]:
    """(cost, welfare) at the corners of the frontier of paid recommendations, by ascending cost.

    Between two known points the largest distance above their chord is again a corner, or the chord
    is the frontier.
    """
    W = np.tensordot(weights, payoffs, axes=1)

    def point(budget: float, tradeoff: float) -> tuple[float, float]:
        policy, bonuses, _, _ = budgeted_policy(payoffs, weights, budget, tradeoff)
        return float(sum(w.sum() for w in bonuses)), float((policy * W).sum())

    def between(a: tuple[float, float], b: tuple[float, float]) -> list[tuple[float, float]]:
        if b[0] - a[0] <= 1e-7 * payoff_range(payoffs):
            return []
        slope = max((b[1] - a[1]) / (b[0] - a[0]), 0.0)
        c = point(b[0], slope)
        above = c[1] - a[1] - slope * (c[0] - a[0])
        if above <= 1e-7 * payoff_range(payoffs) or not a[0] < c[0] < b[0]:
            return []
        return [*between(a, c), c, *between(c, b)]

    first, last = point(0.0, 0.0), point(top, 0.0)
    return [first, *between(first, last), *([last] if last[0] > first[0] else [])]


def compare_mediators(game: Any, mediators: Any, n_bootstrap: int = 0) -> pd.DataFrame:
    """Fit mediators to one game and put what they bring and cost in a table.

    Parameters
    ----------
    game : AgentDesignGame, NormalFormGame, ndarray of shape (n, d_0, ...) or match table
        The game.
    mediators : sequence of mediators, or dict of name to mediator
        Clones are fitted; a sequence is named by their representations.
    n_bootstrap : int, default=0
        Replicates of an audit of each; needs matches.

    Returns
    -------
    pandas.DataFrame
        One row a mediator: feasible, welfare, status_quo, gain, cost, liability, least_slack (least
        expected payoff above what a stakeholder gets in the status quo), participation (the same
        above what he can secure by himself, whatever the others do), violation, certified, exact;
        with a bootstrap also ends of the gain's interval and the share of replicates in which the
        certificate holds.

    Raises
    ------
    TypeError
        If `mediators` is no sequence or dict.
    ValueError
        If a mediator doesn't fit the game.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games import CorrelatedMediator, SubsidyMediator, compare_mediators
    >>> prisoners = np.array([[[3.0, 0.0], [5.0, 1.0]], [[3.0, 5.0], [0.0, 1.0]]])
    >>> table = compare_mediators(prisoners, [CorrelatedMediator(), SubsidyMediator()])
    >>> table[["mediator", "welfare", "cost", "certified"]].round(6).values.tolist()
    [['CorrelatedMediator()', 2.0, 0.0, True], ['SubsidyMediator()', 6.0, 4.0, True]]
    """
    found = as_design_game(game)
    if isinstance(mediators, Mapping):
        named = dict(mediators)
    elif isinstance(mediators, Sequence):
        named = {str(mediator): mediator for mediator in mediators}
    else:
        raise TypeError(
            f"mediators must be a sequence or a dict of mediators, got {type(mediators).__name__}"
        )
    rows = []
    secure = np.array([minimax_response(found.payoffs_, i)[0] for i in range(len(found.payoffs_))])
    for name, mediator in named.items():
        fitted = clone(mediator).fit(found)
        before = np.tensordot(found.payoffs_, fitted.status_quo_, axes=found.counts_.ndim)
        row = {
            "mediator": name,
            "feasible": fitted.feasible_,
            "welfare": fitted.welfare_,
            "status_quo": fitted.status_quo_welfare_,
            "gain": fitted.gain_,
            "cost": fitted.cost_,
            "liability": fitted.liability_,
            "least_slack": float((fitted.payoffs_ - before).min()),
            "participation": float((fitted.payoffs_ - secure).min()),
            "violation": fitted.certificate_.max_violation,
            "certified": fitted.certificate_.ok,
            "exact": fitted.exact_,
        }
        if n_bootstrap and fitted.feasible_:
            audit = fitted.audit(n_bootstrap, n_refit=0).set_index("quantity")
            row["gain_lower"], row["gain_upper"] = audit.loc["gain", ["lower", "upper"]]
            row["holds"] = audit.loc["certificate holds", "lower"]
        rows.append(row)
    return pd.DataFrame(rows)


def subsidy_frontier(game: Any, kind: str = "pure") -> pd.DataFrame:
    """Welfare against what the mediator pays for it.

    Parameters
    ----------
    game : AgentDesignGame, NormalFormGame, ndarray of shape (n, d_0, ...) or match table
        The game.
    kind : {"pure", "correlated"}, default="pure"
        Cheapest payments that make a pure profile an equilibrium: the profiles that no cheaper one
        equals in welfare. Or paid recommendations: the corners of a concave, piecewise linear
        function, from nothing paid to what the best profile costs.

    Returns
    -------
    pandas.DataFrame
        Columns cost, welfare, by ascending cost; with "pure" a design a stakeholder too.

    Raises
    ------
    ValueError
        If the kind isn't known.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games import subsidy_frontier
    >>> prisoners = np.array([[[3.0, 0.0], [5.0, 1.0]], [[3.0, 5.0], [0.0, 1.0]]])
    >>> subsidy_frontier(prisoners)[["cost", "welfare"]].values.tolist()
    [[0.0, 2.0], [1.0, 5.0], [4.0, 6.0]]
    """
    if kind not in ("pure", "correlated"):
        raise ValueError(f"kind={kind!r} is not known; allowed: 'pure', 'correlated'")
    found = as_design_game(game)
    cost, welfare = implementation_costs(found.payoffs_), found.welfare()
    if kind == "correlated":
        top = cost[welfare >= welfare.max() - 1e-12 * (abs(welfare).max() or 1.0)].min()
        return pd.DataFrame(
            corners(found.payoffs_, found.weights_, float(top)), columns=["cost", "welfare"]
        )
    order = np.lexsort((-welfare.ravel(), cost.ravel()))
    rising = np.maximum.accumulate(welfare.ravel()[order])
    kept = order[np.r_[True, rising[1:] > rising[:-1]]]
    places = np.stack(np.unravel_index(kept, cost.shape), axis=1)
    frame = pd.DataFrame({"cost": cost.ravel()[kept], "welfare": welfare.ravel()[kept]})
    for i, who in enumerate(found.stakeholders_):
        frame[str(who)] = [found.designs_[i][int(p[i])] for p in places]
    return frame
