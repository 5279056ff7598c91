"""Disclosure: the mediator sees the state of the world and tells of it through recommendations.

A Bayes correlated equilibrium maximises welfare over pi(a | state) subject to obedience on average
over the states: sum_th mu(th) sum_{a: a_i = r} pi(a|th) [u_i^th(a) - u_i^th(b, a_{-i})] >= 0.
"""

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import _fit_context, clone
from sklearn.utils import check_random_state

from .certificates import Certificate, judge
from .deviations import obedience_rows, player_rows, pure_equilibria
from .mediator import BaseMediator, Outcome, drawn_game
from .meta_game import AgentDesignGame
from .objectives import extreme_distribution
from .programs import as_distribution, payoff_range, solve_program
from .states import draw_tables, read_states

__all__ = ["DisclosureMediator"]

Array = np.ndarray


def expected_over_states(tables: Array, policy: Array, prior: Array) -> Array:
    """E u_i when the state comes from the prior and designs from its policy: shape (n,)."""
    S, n = tables.shape[:2]
    return np.einsum("s,sk,snk->n", prior, policy.reshape(S, -1), tables.reshape(S, n, -1))


def certify_disclosure(tables: Array, policy: Array, prior: Array) -> Certificate:
    """Check obedience on average over the states."""
    found = []
    for i in range(tables.shape[1]):
        earned = sum(
            mu * player_rows(pi, i) @ player_rows(u[i], i).T
            for mu, pi, u in zip(prior, policy, tables, strict=True)
        )
        gain = earned - np.diag(earned)[:, None]
        np.fill_diagonal(gain, -np.inf)
        if len(gain) > 1:
            told, played = np.unravel_index(gain.argmax(), gain.shape)
            found.append((float(gain.max()), (i, int(told), int(played))))
    return judge(found, tables)


class DisclosureMediator(BaseMediator):
    """Tell stakeholders of the state of the world through recommendations, as is best for all.

    Parameters
    ----------
    prior : array-like of shape (n_states,), default=None
        Probabilities of the states; None takes the shares of the matches, or equal ones.

    Attributes
    ----------
    policy_ : ndarray of shape (n_states, d_0, ..., d_{n-1})
        Joint distribution in each state.
    states_ : tuple
        Names of the states.
    prior_ : ndarray of shape (n_states,)
        Probabilities of the states.
    no_information_, full_information_ : float
        Best welfare (correlated equilibrium) if nobody learns the state, and if all do.
    payoffs_ : ndarray of shape (n,)
        Expected payoffs.
    welfare_, status_quo_welfare_, gain_ : float
        Welfare of the policy, of the worst equilibrium of the mean game, and their difference.
    cost_, liability_ : float
        Zero: nothing is paid.
    feasible_, exact_ : bool
        Whether there is a policy, and whether it is proved best.
    certificate_ : Certificate
        The largest gain from disobeying.
    duals_ : dict
        "conditions": shadow prices of the obedience conditions.
    game_ : AgentDesignGame
        The mean game.

    References
    ----------
    .. [1] D. Bergemann, S. Morris, "Bayes correlated equilibrium and the comparison of information
       structures in games", Theoretical Economics 11, 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games import DisclosureMediator
    >>> easy, hard = np.array([[4.0, 1.0], [3.0, 0.0]]), np.array([[3.0, 0.0], [5.0, 1.0]])
    >>> states = {name: np.array([m, m.T]) for name, m in [("hard", hard), ("easy", easy)]}
    >>> mediator = DisclosureMediator().fit(states)
    >>> mediator.no_information_, mediator.full_information_, round(mediator.welfare_, 6)
    (4.5, 5.0, 6.666667)
    """

    _parameter_constraints: ClassVar[dict] = {"prior": ["array-like", None]}

    def __init__(self, prior: ArrayLike | None = None) -> None:
        self.prior = prior

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, game: Any, y: Any = None) -> Self:
        """Compute the policy and check it.

        Parameters
        ----------
        game : AgentDesignGame or match table with states, or dict
            A dict maps names of states to games with the same designs.
        y : None
            Not used.

        Returns
        -------
        self : DisclosureMediator
            Fitted.

        Raises
        ------
        ValueError
            If there is one state only, or the prior isn't positive.
        """
        found, names, tables, sources = read_states(game, "state")
        prior = found.prior_ if self.prior is None else np.asarray(self.prior, dtype=float)
        if prior.shape != (len(names),) or not (prior > 0).all() or not np.isfinite(prior).all():
            raise ValueError(f"prior={self.prior!r} must hold {len(names)} positive numbers")
        prior = prior / prior.sum()
        mean = AgentDesignGame.from_payoffs(
            np.tensordot(prior, tables, axes=1),
            designs=found.designs_,
            stakeholders=found.stakeholders_,
            weights=found.weights_,
        )
        self._store(mean, self._disclose(mean, names, tables, prior))
        self._sources = sources
        return self

    def _store(self, game: AgentDesignGame, outcome: Outcome) -> Self:
        """The policy has a leading axis of states, which the base doesn't know."""
        policy, tables, prior = outcome.policy, outcome.extra["tables_"], outcome.extra["prior_"]
        assert policy is not None
        mean = np.tensordot(prior, policy, axes=1)
        payoffs = expected_over_states(tables, policy, prior)
        super()._store(game, replace(outcome, policy=mean))
        self.policy_, self.payoffs_ = policy, payoffs
        self.welfare_ = float(game.weights_ @ payoffs)
        self.gain_ = self.welfare_ - self.status_quo_welfare_
        return self

    def _disclose(
        self, game: AgentDesignGame, names: tuple[Any, ...], tables: Array, prior: Array
    ) -> Outcome:
        S, _, *shape = tables.shape
        w, M = game.weights_, int(np.prod(shape))
        scale = payoff_range(tables)
        rows = sp.hstack(
            [mu * obedience_rows(u / scale, "ce") for mu, u in zip(prior, tables, strict=True)],
            format="csr",
        )
        W = np.tensordot(w, tables, axes=(0, 1)).reshape(S, M) * prior[:, None]
        simplex = sp.kron(sp.eye_array(S), np.ones((1, M)), format="csr")
        answer = solve_program(
            -W.ravel() / scale, rows, np.zeros(rows.shape[0]), simplex, np.ones(S)
        )
        policy = np.stack([as_distribution(x, tuple(shape)) for x in answer.x.reshape(S, M)])

        def best(u: Array) -> float:
            conditions = obedience_rows(u / payoff_range(u), "ce")
            found = extreme_distribution(
                u, w, "utilitarian", conditions, np.zeros(conditions.shape[0])
            )
            assert found is not None
            return float((np.tensordot(w, u, axes=1) * found[0]).sum())

        return Outcome(
            policy,
            partial(certify_disclosure, policy=policy, prior=prior),
            tables=tables,
            duals={
                "conditions": -scale * answer.ineqlin.marginals if rows.shape[0] else np.zeros(0)
            },
            extra={
                "states_": names,
                "prior_": prior,
                "tables_": tables,
                "no_information_": best(game.payoffs_),
                "full_information_": float(prior @ [best(u) for u in tables]),
            },
        )

    def recommend(self, random_state: Any = None, state: Any = None) -> tuple[Any, ...]:
        """Draw one profile of designs from the policy of a state.

        Parameters
        ----------
        random_state : int, RandomState or None, default=None
            Where the draw comes from.
        state : object, default=None
            One of `states_`; None draws it from the prior.

        Returns
        -------
        tuple
            One design a stakeholder.
        """
        policy, rng = self.predict(), check_random_state(random_state)
        if state is None:
            k = int(rng.choice(len(policy), p=self.prior_))
        elif state in self.states_:
            k = self.states_.index(state)
        else:
            raise ValueError(f"state={state!r} is not known; allowed: {list(self.states_)}")
        a = rng.choice(policy[k].size, p=policy[k].ravel())
        return self.game_.profile_names(np.unravel_index(a, policy.shape[1:]))

    def score(self, game: Any, y: Any = None) -> float:
        """Welfare of the policy in another game with the same states.

        Parameters
        ----------
        game : AgentDesignGame or match table with states, or dict
            With the fitted designs and states, in the same order.
        y : None
            Not used.

        Returns
        -------
        float
            Weighted sum of the expected payoffs.
        """
        policy = self.predict()
        _, names, tables, _ = read_states(game, "state")
        if set(names) != set(self.states_) or tables.shape[1:] != self.tables_.shape[1:]:
            raise ValueError(
                f"the game has states {list(names)} and payoffs of shape {tables.shape}; expected "
                f"{list(self.states_)} and {self.tables_.shape}"
            )
        tables = tables[[names.index(name) for name in self.states_]]
        value = expected_over_states(tables, policy, self.prior_)
        return float(self.game_.weights_ @ value)

    def _confidence(self) -> float:
        return float(self._sources[0].confidence)

    def _draw(self, n: int, single: str) -> list[Any]:
        return draw_tables(self._sources, n, single)

    def _measure(self, tables: Any) -> tuple[float, float, Certificate]:
        """The status quo is the worst pure equilibrium of the mean game."""
        tables, w = np.stack(tables), self.game_.weights_
        mean = np.tensordot(self.prior_, tables, axes=1)
        mask = pure_equilibria(mean)
        W = np.tensordot(w, mean, axes=1)
        before = float(W[mask].min()) if mask.any() else float("nan")
        welfare = float(w @ expected_over_states(tables, self.policy_, self.prior_))
        return welfare, before, self._certify(tables)

    def _refitted(self, tables: Any) -> Any:
        named = zip(self.states_, tables, strict=True)
        games = {name: drawn_game(self.game_, u) for name, u in named}
        return clone(self).set_params(prior=self.prior_).fit(games)
