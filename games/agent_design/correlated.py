"""Recommendation: a correlation device tells each stakeholder, in private, what to deploy."""

from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from .certificates import certify_obedience
from .deviations import obedience_rows
from .fairness import POLICY_OBJECTIVES, best_policy
from .mediator import BaseMediator, Outcome
from .meta_game import AgentDesignGame
from .programs import payoff_range
from .uncertainty import welch_margins

__all__ = ["CorrelatedMediator"]

Array = np.ndarray


class CorrelatedMediator(BaseMediator):
    """Recommend designs so that everyone obeys: the best (coarse) correlated equilibrium.

    Parameters
    ----------
    kind : {"ce", "cce"}, default="ce"
        Whether a stakeholder may deviate after he sees his recommendation ("ce"), or must choose
        before whether to follow at all ("cce").
    objective : str or callable, default="utilitarian"
        What is maximised: the weighted sum of expected payoffs ("utilitarian"), the least expected
        payoff ("egalitarian"), that, then the second least and so on ("lexicographic"), the product
        of the gains over what each can secure alone, weights as exponents ("nash"), the entropy of
        the policy ("entropy"; needs cvxpy), or the expectation of a function from payoffs (n, ...)
        to numbers (...).
    margin : float or "robust", default=0.0
        By how much obeying must be better than each deviation, per unit of probability moved: a
        guard against estimated payoffs. "robust" takes the upper Welch bound of each difference of
        payoffs (at the game's confidence, Bonferroni over all): with that confidence the policy is
        obeyed in the true game.

    Attributes
    ----------
    policy_ : ndarray of shape (d_0, ..., d_{n-1}) or None
        Joint distribution of the recommendations; None if the margin can't be kept.
    payoffs_ : ndarray of shape (n,)
        Expected payoffs.
    welfare_, status_quo_welfare_, gain_ : float
        Welfare of the policy, of the worst equilibrium without a mediator, and their difference.
    cost_, liability_ : float
        Zero: nothing is paid.
    feasible_, exact_ : bool
        Whether there is a policy, and whether it is proved best.
    certificate_ : Certificate
        The largest gain from disobeying.
    duals_ : dict
        "conditions": welfare gained when one row of the obedience conditions is loosened by one
        unit of payoff over the range of payoffs.
    game_ : AgentDesignGame
        What was fitted.

    References
    ----------
    .. [1] R. Aumann, "Subjectivity and correlation in randomized strategies", Journal of
       Mathematical Economics 1, 1974.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games import CorrelatedMediator
    >>> chicken = np.array([[[6.0, 2.0], [7.0, 0.0]], [[6.0, 7.0], [2.0, 0.0]]])
    >>> mediator = CorrelatedMediator().fit(chicken)
    >>> round(mediator.welfare_, 6), mediator.policy_.round(6).tolist()
    (10.5, [[0.5, 0.25], [0.25, 0.0]])
    """

    _parameter_constraints: ClassVar[dict] = {
        "kind": [StrOptions({"ce", "cce"})],
        "objective": [StrOptions(set(POLICY_OBJECTIVES)), callable],
        "margin": [Interval(Real, 0, None, closed="left"), StrOptions({"robust"})],
    }

    def __init__(
        self, kind: str = "ce", objective: Any = "utilitarian", margin: float | str = 0.0
    ) -> None:
        self.kind = kind
        self.objective = objective
        self.margin = margin

    def _mediate(self, game: AgentDesignGame) -> Outcome:
        u = game.payoffs_
        scale = payoff_range(u)
        margins: float | list[Array]
        if isinstance(self.margin, str):
            found_margins = welch_margins(game.stderr_, game.counts_, 1 - game.confidence)
            margins = [margin / scale for margin in found_margins]
        else:
            margins = self.margin / scale
        rows = obedience_rows(u / scale, self.kind, margins)
        found, reason = best_policy(game, self.objective, rows, np.zeros(rows.shape[0]))
        if found is None:
            even = np.full(u.shape[1:], 1.0 / game.counts_.size)
            return Outcome(
                None,
                partial(certify_obedience, policy=even, kind=self.kind),
                reason=reason or f"no distribution is obeyed with margin={self.margin!r}",
            )
        policy, duals = found
        return Outcome(
            policy, partial(certify_obedience, policy=policy, kind=self.kind), duals=duals
        )
