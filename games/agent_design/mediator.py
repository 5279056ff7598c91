"""What all mediators share: results, certificate, audit, score on another log of matches.

A mediator turns a game into a policy with a guarantee. Payments between stakeholders or from the
mediator are transfers: welfare is always that of the payoffs before them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from equipoise.blocks import map_blocks
from equipoise.explanation import Explanation

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
        From payoffs to the `Certificate` of this policy: picklable, and independent of solvers.
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
    certify: Callable[[Array], Certificate]
    cost: float = 0.0
    liability: float = 0.0
    exact: bool = True
    reason: str = ""
    duals: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)


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
        certificate = outcome.certify(u)
        if policy is None:
            certificate = replace(certificate, ok=False)
        for name, value in outcome.extra.items():
            setattr(self, name, value)
        self.game_ = game
        self.policy_, self.payoffs_ = policy, payoffs
        self.welfare_ = float(game.weights_ @ payoffs)
        self.status_quo_, self.status_quo_welfare_ = before, without
        self.gain_ = self.welfare_ - without
        self.cost_, self.liability_ = float(outcome.cost), float(outcome.liability)
        self.feasible_ = policy is not None
        self.exact_ = bool(outcome.exact and exact)
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
        self, n_bootstrap: int = 500, n_jobs: int | None = None, *, slack: float = 0.0
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

        Returns
        -------
        pandas.DataFrame
            One row a quantity (welfare, status quo, gain, violation, certificate holds) with
            estimate, lower and upper end of the percentile interval at the game's confidence. The
            status quo of a replicate is its worst pure equilibrium; where it has none, it isn't
            counted, and `share` says how many were.

        Raises
        ------
        ValueError
            If there is no policy, or no matches to draw from.
        """
        check_is_fitted(self, "certificate_")
        policy = self.predict()
        game, w = self.game_, self.game_.weights_
        tensors = np.concatenate(list(game.bootstrap(n_bootstrap)))

        def replicate(block: Array) -> Array:
            rows = np.empty((len(block), 4))
            for row, u in zip(rows, block, strict=True):
                W = np.tensordot(w, u, axes=1)
                mask = pure_equilibria(u)
                row[0] = w @ expected_payoffs(u, policy)
                row[1] = W[mask].min() if mask.any() else np.nan
                certificate = self._certify(u)
                row[2] = certificate.max_violation
                row[3] = certificate.max_violation <= max(slack, certificate.tolerance)
            return rows

        blocks = np.array_split(tensors, max(1, n_bootstrap // 50))
        table = np.concatenate(map_blocks(replicate, blocks, n_jobs))
        tail = 50 * (1 - game.confidence)
        rows = []
        gain = table[:, 0] - table[:, 1]
        holds = self.certificate_.ok or self.certificate_.max_violation <= slack
        for name, estimate, values in [
            ("welfare", self.welfare_, table[:, 0]),
            ("status quo", self.status_quo_welfare_, table[:, 1]),
            ("gain", self.gain_, gain),
            ("violation", self.certificate_.max_violation, table[:, 2]),
        ]:
            known = values[~np.isnan(values)]
            ends = np.percentile(known, [tail, 100 - tail]) if known.size else [np.nan, np.nan]
            rows.append((name, estimate, *ends, known.size / len(values)))
        share = float(table[:, 3].mean())
        rows.append(("certificate holds", float(holds), share, share, 1.0))
        return pd.DataFrame(rows, columns=["quantity", "estimate", "lower", "upper", "share"])

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
