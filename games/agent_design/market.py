"""Market choice: a regulator picks the environment in which stakeholders then deploy designs.

A design that nobody deploys can still decide which environment is picked (the Poisoned Apple [1]):
`technology_audit` finds such designs.
"""

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.base import _fit_context, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import StrOptions

from .certificates import Certificate, certify_delegation, certify_profile
from .deviations import across, player_rows, pure_equilibria
from .mediator import BaseMediator, Outcome, certified, drawn_game
from .meta_game import AgentDesignGame, as_design_game
from .objectives import OBJECTIVES, expected_payoffs
from .solver import status_quo
from .states import draw_tables, read_states

__all__ = ["MarketChoiceMediator", "technology_audit"]

Array = np.ndarray


def environment_games(games: Any) -> tuple[dict[Any, AgentDesignGame], list[AgentDesignGame]]:
    """One game an environment, and the games with matches to draw from.

    The environments may have different designs if they come as a dict.
    """
    if isinstance(games, Mapping) and not any(isinstance(key, tuple) for key in games):
        if not games:
            raise ValueError("the dict holds no environment")
        made = {name: as_design_game(game) for name, game in games.items()}
        return made, list(made.values())
    mean, names, tables, sources = read_states(games, "environment")
    made = {}
    for name, u in zip(names, tables, strict=True):
        made[name] = AgentDesignGame.from_payoffs(
            u, designs=mean.designs_, stakeholders=mean.stakeholders_, weights=mean.weights_
        )
    return made, sources


def market_choice(
    games: Mapping[Any, AgentDesignGame], objective: Any, equilibrium: str
) -> tuple[Any, dict[Any, Array], dict[Any, float]]:
    """The chosen environment, and each one's equilibrium and value; ties go to the first."""
    policies = {name: status_quo(game, equilibrium)[0] for name, game in games.items()}
    values = {name: float(game.welfare(policies[name], objective)) for name, game in games.items()}
    return max(values, key=lambda name: values[name]), policies, values


def certify_play(payoffs: Array, policy: Array, tempting: Array | None = None) -> Certificate:
    """Check that independent (or one profile's) strategies are a Nash equilibrium."""
    if (policy > 0).sum() == 1:
        z = tuple(int(a) for a in np.argwhere(policy > 0)[0])
        return certify_profile(payoffs, z, tempting=tempting)
    rest = [player_rows(policy, i).sum(axis=0) for i in range(len(payoffs))]
    return certify_delegation(payoffs, policy, rest, tempting)


class MarketChoiceMediator(BaseMediator):
    """Choose the environment whose equilibrium is best.

    Parameters
    ----------
    objective : {"utilitarian", "egalitarian"} or callable, default="utilitarian"
        What the regulator maximises.
    equilibrium : {"best", "worst"}, default="best"
        Which equilibrium of an environment counts: the pure one of extreme welfare; where there is
        none the mixed one (two stakeholders) or the coarse correlated one.

    Attributes
    ----------
    environment_ : object
        The chosen environment.
    environment_games_ : dict of AgentDesignGame
        The game of each.
    values_ : dict
        Objective at each environment's equilibrium.
    policy_ : ndarray of shape (d_0, ..., d_{n-1})
        Equilibrium in the chosen environment.
    payoffs_ : ndarray of shape (n,)
        Expected payoffs there.
    welfare_, status_quo_welfare_, gain_ : float
        Welfare of that equilibrium, of the worst environment's, and their difference.
    cost_, liability_ : float
        Zero: nothing is paid.
    feasible_, exact_ : bool
        Whether there is a policy, and whether all equilibria are Nash equilibria.
    certificate_ : Certificate
        The largest gain from another design in the chosen environment.
    duals_ : dict
        Empty.
    game_ : AgentDesignGame
        The chosen environment's game.

    References
    ----------
    .. [1] E. Shapira, M. Tennenholtz, R. Reichart, "The Poisoned Apple effect", 2026.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games import MarketChoiceMediator
    >>> hard, easy = np.array([[3.0, 0.0], [5.0, 1.0]]), np.array([[4.0, 1.0], [3.0, 0.0]])
    >>> markets = {name: np.array([m, m.T]) for name, m in [("hard", hard), ("easy", easy)]}
    >>> mediator = MarketChoiceMediator().fit(markets)
    >>> mediator.environment_, mediator.welfare_, mediator.gain_
    ('easy', 8.0, 6.0)
    """

    _parameter_constraints: ClassVar[dict] = {
        "objective": [StrOptions(set(OBJECTIVES)), callable],
        "equilibrium": [StrOptions({"best", "worst"})],
    }

    def __init__(self, objective: Any = "utilitarian", equilibrium: str = "best") -> None:
        self.objective = objective
        self.equilibrium = equilibrium

    def _confidence(self) -> float:
        return float(self._sources[0].confidence)

    def _draw(self, n: int, single: str) -> list[Any]:
        return draw_tables(self._sources, n, single)

    def _measure(self, tables: Any) -> tuple[float, float, Certificate]:
        """The fitted equilibrium in its environment; the status quo is the worst environment's."""
        games = self.environment_games_
        chosen = list(games).index(self.environment_)
        worst = np.inf
        for u, game in zip(tables, games.values(), strict=True):
            mask = pure_equilibria(u)
            W = np.tensordot(game.weights_, u, axes=1)[mask]
            extreme = W.max if self.equilibrium == "best" else W.min
            worst = np.minimum(worst, extreme() if W.size else np.nan)
        welfare = self.game_.weights_ @ expected_payoffs(tables[chosen], self.policy_)
        return float(welfare), float(worst), certified(self.game_, self._certify, tables[chosen])

    def _refitted(self, tables: Any) -> Any:
        named = zip(self.environment_games_.items(), tables, strict=True)
        return clone(self).fit({name: drawn_game(game, u) for (name, game), u in named})

    def _same_choice(self, other: Any) -> bool:
        return bool(other.environment_ == self.environment_)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, game: Any, y: Any = None) -> Self:
        """Choose the environment.

        Parameters
        ----------
        game : dict, or AgentDesignGame or match table with states
            A dict maps environments to games; states are environments.
        y : None
            Not used.

        Returns
        -------
        self : MarketChoiceMediator
            Fitted.

        Raises
        ------
        ValueError
            If there is one environment only and no dict.
        """
        games, sources = environment_games(game)
        chosen, policies, values = market_choice(games, self.objective, self.equilibrium)
        welfare = {name: float(g.welfare(policies[name])) for name, g in games.items()}
        nash = [status_quo(g, self.equilibrium)[1] for g in games.values()]
        if not all(nash):
            warnings.warn(
                "some environments have no equilibrium that is found for certain: their coarse "
                "correlated equilibria stand for them",
                ConvergenceWarning,
                stacklevel=3,
            )
        outcome = Outcome(
            policies[chosen],
            partial(certify_play, policy=policies[chosen]),
            exact=all(nash),
            extra={"environment_": chosen, "values_": values},
        )
        self._store(games[chosen], outcome)
        self._sources = sources
        self.environment_games_ = games
        self.status_quo_exact_ = all(nash)
        self.status_quo_welfare_ = min(welfare.values())
        self.gain_ = self.welfare_ - self.status_quo_welfare_
        return self


def without_design(game: AgentDesignGame, design: Any) -> AgentDesignGame | None:
    """The game without a design; None if a stakeholder has no other."""
    kept = [[k for k, a in enumerate(own) if a != design] for own in game.designs_]
    if not all(kept):
        return None
    smaller = AgentDesignGame.from_payoffs(
        game.payoffs_[across(np.ix_(*kept))],
        designs=[[own[k] for k in keep] for own, keep in zip(game.designs_, kept, strict=True)],
        stakeholders=game.stakeholders_,
        weights=game.weights_,
    )
    return smaller


def technology_audit(
    games_by_environment: Any,
    designs: Sequence[Any] | None = None,
    objective: Any = "utilitarian",
) -> pd.DataFrame:
    """Which designs decide on the regulator's choice, though nobody deploys them?

    Parameters
    ----------
    games_by_environment : dict, or AgentDesignGame or match table with states
        The environments; their best equilibria count.
    designs : sequence, optional
        Designs to take away, one at a time; None is all.
    objective : {"utilitarian", "egalitarian"} or callable, default="utilitarian"
        What the regulator maximises.

    Returns
    -------
    pandas.DataFrame
        One row a design that somebody can do without: the environment chosen with and without it,
        whether the choice changes, the design's probability in the equilibrium with it, `poisoned`
        (the choice changes and the probability is 0), and for each stakeholder what the design's
        release brings him.

    Raises
    ------
    ValueError
        If a design is in no environment.

    References
    ----------
    .. [1] E. Shapira, M. Tennenholtz, R. Reichart, "The Poisoned Apple effect", 2026.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games import technology_audit
    >>> hard, easy = np.array([[3.0, 0.0], [5.0, 1.0]]), np.array([[4.0, 1.0], [3.0, 0.0]])
    >>> markets = {name: np.array([m, m.T]) for name, m in [("hard", hard), ("easy", easy)]}
    >>> technology_audit(markets)[["design", "with", "without", "poisoned"]].values.tolist()
    [['0', 'easy', 'hard', False], ['1', 'easy', 'easy', False]]
    """
    games = environment_games(games_by_environment)[0]
    known = list(dict.fromkeys(a for g in games.values() for own in g.designs_ for a in own))
    asked = known if designs is None else list(designs)
    if absent := [a for a in asked if a not in known]:
        raise ValueError(f"the designs {absent[:10]} are in no environment; allowed: {known}")
    chosen, policies, _ = market_choice(games, objective, "best")
    game, policy = games[chosen], policies[chosen]
    before = np.tensordot(game.payoffs_, policy, axes=policy.ndim)
    rows = []
    for design in asked:
        chance = max(
            float(player_rows(policy, i).sum(axis=1)[own.index(design)]) if design in own else 0.0
            for i, own in enumerate(game.designs_)
        )
        smaller = {name: without_design(g, design) for name, g in games.items()}
        left = {name: g for name, g in smaller.items() if g is not None}
        if not left:
            continue
        other, others, _ = market_choice(left, objective, "best")
        after = np.tensordot(left[other].payoffs_, others[other], axes=others[other].ndim)
        rows.append(
            {
                "design": design,
                "with": chosen,
                "without": other,
                "changes": other != chosen,
                "probability": chance,
                "poisoned": other != chosen and chance == 0.0,
                **{
                    f"release brings {who}": float(b - a)
                    for who, a, b in zip(game.stakeholders_, after, before, strict=True)
                },
            }
        )
    return pd.DataFrame(rows)
