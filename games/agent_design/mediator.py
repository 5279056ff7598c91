"""What all mediators share: results, certificate, audit, score on another log of matches.

A mediator turns a game into a policy with a guarantee. Payments between stakeholders or from the
mediator are transfers: welfare is always that of the payoffs before them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, _fit_context, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from equipoise.explanation import Explanation

from .audits import audit_mediator
from .certificates import Certificate
from .deviations import across, pure_equilibria
from .meta_game import AgentDesignGame, as_design_game
from .objectives import expected_payoffs
from .solver import status_quo

__all__ = ["BaseMediator", "Outcome", "aligned_game"]

Array = np.ndarray


@dataclass
class Outcome:
    """What a mediator computed, before anything is stored.

    Attributes
    ----------
    policy : ndarray of shape (d_0, ..., d_{n-1}) or None
        Joint distribution; None where the mediator can't reach its aim.
    certify : callable
        From payoffs, and `tempting` ones where payoffs are bounded only, to the `Certificate` of
        this policy: picklable, and independent of solvers.
    tables : ndarray or None
        What `certify` takes instead of the game's payoffs.
    cost, liability : float
        Expected payment, and the largest that is promised.
    exact : bool
        Whether the policy is proved to be the best of its kind.
    reason : str
        Why there is no policy.
    duals : dict
        Shadow prices.
    extra : dict
        Further attributes by name.
    """

    policy: Array | None
    certify: Callable[..., Certificate]
    tables: Array | None = None
    cost: float = 0.0
    liability: float = 0.0
    exact: bool = True
    reason: str = ""
    duals: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)


def certified(game: AgentDesignGame, certify: Callable[..., Certificate], u: Array) -> Certificate:
    """The certificate for payoffs u; where the game knows bounds only, in their worst case."""
    if game.payoff_ends_ is None:
        return certify(u)
    low, high = game.payoff_ends_
    unknown = high > low
    return certify(np.where(unknown, low, u), tempting=np.where(unknown, high, u))


def drawn_game(game: AgentDesignGame, u: Array) -> AgentDesignGame:
    """The game with other payoffs."""
    drawn = AgentDesignGame.from_payoffs(
        u,
        counts=game.counts_,
        stderr=game.stderr_,
        designs=game.designs_,
        stakeholders=game.stakeholders_,
        weights=game.weights_,
    )
    drawn.confidence, drawn.payoff_ends_ = game.confidence, game.payoff_ends_
    return drawn


def aligned_game(game: Any, reference: AgentDesignGame) -> AgentDesignGame:
    """Another game with stakeholders and designs in the order of a reference.

    Raises
    ------
    ValueError
        If a stakeholder or a design of the reference is missing.
    """
    if isinstance(game, AgentDesignGame | np.ndarray) or not hasattr(game, "columns"):
        other = as_design_game(game)
    else:
        other = AgentDesignGame(**reference.get_params(deep=False)).fit(game)
    if other.stakeholders_ == reference.stakeholders_ and other.designs_ == reference.designs_:
        return other
    if isinstance(game, np.ndarray) and other.counts_.shape == reference.counts_.shape:
        return other
    if set(other.stakeholders_) != set(reference.stakeholders_):
        raise ValueError(
            f"the game has stakeholders {list(other.stakeholders_)}; "
            f"expected {list(reference.stakeholders_)}"
        )
    order = [other.stakeholders_.index(name) for name in reference.stakeholders_]
    picked = []
    for i, own in zip(order, reference.designs_, strict=True):
        if absent := [design for design in own if design not in other.designs_[i]]:
            raise ValueError(
                f"the game lacks the designs {absent[:10]} of {other.stakeholders_[i]}"
            )
        picked.append([other.designs_[i].index(design) for design in own])
    payoffs = other.payoffs_[order].transpose(0, *[1 + i for i in order])
    aligned = AgentDesignGame.from_payoffs(
        payoffs[across(np.ix_(*picked))],
        designs=reference.designs_,
        stakeholders=reference.stakeholders_,
        weights=reference.weights_,
    )
    return aligned


class BaseMediator(BaseEstimator):
    """Base of the mediators: subclasses turn a game into an `Outcome`."""

    policy_: Any
    welfare_: float
    certificate_: Certificate
    game_: Any

    def _mediate(self, game: AgentDesignGame) -> Outcome:
        raise NotImplementedError

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, game: Any, y: Any = None) -> Self:
        """Compute the policy and check it.

        Parameters
        ----------
        game : AgentDesignGame, NormalFormGame, ndarray of shape (n, d_0, ...) or match table
            A match table is fitted by `AgentDesignGame` with default parameters first.
        y : None
            Not used.

        Returns
        -------
        self : BaseMediator
            Fitted.

        Raises
        ------
        TypeError
            If `game` is nothing of that.
        ValueError
            If a parameter doesn't fit the game.
        """
        found = as_design_game(game)
        return self._store(found, self._mediate(found))

    def _store(self, game: AgentDesignGame, outcome: Outcome) -> Self:
        """Measure welfare, check the certificate, and store everything."""
        u = game.payoffs_
        before, exact = status_quo(game)
        without = float(game.welfare(before))
        policy = outcome.policy
        payoffs = expected_payoffs(u, before if policy is None else policy)
        if outcome.tables is None:
            certificate = certified(game, outcome.certify, u)
        else:
            certificate = outcome.certify(outcome.tables)
        if policy is None:
            certificate = replace(certificate, ok=False)
        for name in getattr(self, "_own_results", ()):  # of an earlier fit
            delattr(self, name)
        for name, value in outcome.extra.items():
            setattr(self, name, value)
        self._own_results = tuple(outcome.extra)
        self.game_ = game
        self.policy_, self.payoffs_ = policy, payoffs
        self.welfare_ = float(game.weights_ @ payoffs)
        self.status_quo_, self.status_quo_welfare_ = before, without
        self.gain_ = self.welfare_ - without
        self.cost_, self.liability_ = float(outcome.cost), float(outcome.liability)
        self.feasible_ = policy is not None
        self.exact_, self.status_quo_exact_ = bool(outcome.exact), exact
        self.certificate_ = certificate
        self.duals_ = outcome.duals
        self.reason_ = outcome.reason
        self._certify = outcome.certify
        return self

    def predict(self, X: Any = None) -> Array:
        """The joint distribution of designs that the mediator brings about.

        Parameters
        ----------
        X : None
            Not used.

        Returns
        -------
        ndarray of shape (d_0, ..., d_{n-1})
            `policy_`.

        Raises
        ------
        ValueError
            If the mediator found no policy; the message says which condition binds.
        """
        check_is_fitted(self, "certificate_")
        if not self.feasible_:
            raise ValueError(f"{type(self).__name__} found no policy: {self.reason_}")
        return self.policy_.copy()

    def recommend(self, random_state: Any = None) -> tuple[Any, ...]:
        """Draw one profile of designs from the policy.

        Parameters
        ----------
        random_state : int, RandomState or None, default=None
            Where the draw comes from.

        Returns
        -------
        tuple
            One design a stakeholder.
        """
        policy = self.predict()
        k = check_random_state(random_state).choice(policy.size, p=policy.ravel())
        return self.game_.profile_names(np.unravel_index(k, policy.shape))

    def score(self, game: Any, y: Any = None) -> float:
        """Welfare of the policy in another game, such as one of other matches.

        Parameters
        ----------
        game : AgentDesignGame, NormalFormGame, ndarray or match table
            With the fitted designs, in any order.
        y : None
            Not used.

        Returns
        -------
        float
            Weighted sum of the expected payoffs; that of the status quo where there is no policy.
        """
        check_is_fitted(self, "certificate_")
        other = aligned_game(game, self.game_)
        policy = self.policy_ if self.feasible_ else self.status_quo_
        return float(self.game_.weights_ @ expected_payoffs(other.payoffs_, policy))

    def audit(
        self,
        n_bootstrap: int = 500,
        n_jobs: int | None = None,
        *,
        slack: float = 0.0,
        n_refit: int = 200,
        single: str = "keep",
    ) -> pd.DataFrame:
        """How welfare, gain and certificate vary when the matches are drawn anew.

        Parameters
        ----------
        n_bootstrap : int, default=500
            Number of replicates.
        n_jobs : int, optional
            Blocks of replicates at a time; the answer doesn't depend on it.
        slack : float, default=0.0
            Gain from disobeying that still counts as none. A policy that makes somebody just
            indifferent holds in about half of the replicates without slack.
        n_refit : int, default=200
            Replicates (of the first `n_bootstrap`) to which the mediator is fitted anew.
        single : {"keep", "pooled"}, default="keep"
            What happens to cells with one match; see `AgentDesignGame.bootstrap`.

        Returns
        -------
        pandas.DataFrame
            One row a quantity with estimate, lower and upper end of the percentile interval at the
            game's confidence. Of the fitted policy: welfare, status quo, gain, violation,
            certificate holds. Of the mediator fitted anew: welfare, gain, cost, and how often it
            makes the same choice. Where something isn't defined it isn't counted, and `share` says
            how much was: the status quo of a replicate is its worst pure equilibrium (fitted anew:
            as in the fit), and a mediator fitted anew may find no policy.

        Raises
        ------
        ValueError
            If there is no policy, or no matches to draw from.
        """
        check_is_fitted(self, "certificate_")
        self.predict()  # refuses where there is no policy
        return audit_mediator(self, n_bootstrap, n_jobs, slack, n_refit, single)

    def _confidence(self) -> float:
        return float(self.game_.confidence)

    def _draw(self, n: int, single: str) -> list[Any]:
        """What `_measure` and `_refitted` take, for each replicate."""
        return [u for block in self.game_.bootstrap(n, single=single) for u in block]

    def _measure(self, u: Array) -> tuple[float, float, Certificate]:
        """Welfare of the policy, of the worst pure equilibrium (or NaN), and the certificate."""
        w = self.game_.weights_
        W = np.tensordot(w, u, axes=1)
        mask = pure_equilibria(u)
        before = float(W[mask].min()) if mask.any() else float("nan")
        welfare = float(w @ expected_payoffs(u, self.policy_))
        return welfare, before, certified(self.game_, self._certify, u)

    def _refitted(self, u: Array) -> Any:
        """The same mediator fitted to a replicate, with the errors and counts of the log."""
        return clone(self).fit(drawn_game(self.game_, u))

    def _same_choice(self, other: Any) -> bool:
        return bool(other.feasible_ and np.abs(other.policy_ - self.policy_).max() <= 1e-6)

    def explain(self) -> Explanation:
        """Say what the mediator does, what it brings and costs, and why it is obeyed.

        Returns
        -------
        Explanation
            Welfare against the status quo, cost, certificate, what each stakeholder gets; one row a
            stakeholder; plots 'payoffs' and 'policy' (two stakeholders).
        """
        from .reporting import explain_mediator

        check_is_fitted(self, "certificate_")
        return explain_mediator(self)
