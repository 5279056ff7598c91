"""Equilibria of a meta-game under several concepts, with welfare and the prices of anarchy."""

import warnings
from itertools import combinations
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from equipoise.explanation import Explanation

from .certificates import certify_obedience
from .deviations import obedience_rows, pure_equilibria
from .evolution import replicate, stable_strategies, symmetric_matrix
from .extremes import extreme_equilibrium
from .meta_game import AgentDesignGame, as_design_game
from .mixtures import product_policy, searched_equilibria
from .objectives import OBJECTIVES, expected_payoffs, extreme_distribution, profile_welfare
from .programs import payoff_range
from .stationary import alpha_rank

__all__ = ["MetaGameSolver", "point_mass", "status_quo"]

Array = np.ndarray
CONCEPTS = ("pure", "mixed", "ce", "cce", "strong", "ess", "alpharank", "replicator")
#: Above this many designs the MILP of a mixed equilibrium may take minutes.
LARGEST_MIXED = 12


def point_mass(profile: Any, shape: tuple[int, ...]) -> Array:
    """The joint distribution that plays one profile."""
    policy = np.zeros(shape)
    policy[tuple(profile)] = 1.0
    return policy


def extreme_correlated(game: AgentDesignGame, kind: str, objective: Any, best: bool) -> Array:
    """The (coarse) correlated equilibrium of extreme welfare."""
    u = game.payoffs_
    rows = obedience_rows(u / payoff_range(u), kind)
    found = extreme_distribution(u, game.weights_, objective, rows, np.zeros(rows.shape[0]), best)
    if found is None:
        raise RuntimeError("HiGHS found no correlated equilibrium, though there always is one")
    return found[0]


def strong_equilibria(payoffs: Array, tol: float) -> Array:
    """Mask of the profiles from which no coalition moves to where all its members gain."""
    n = len(payoffs)
    stable = pure_equilibria(payoffs, tol)
    for size in range(2, n + 1):
        for T in combinations(range(n), size):
            for z in map(tuple, np.argwhere(stable)):
                line = tuple(slice(None) if i in T else z[i] for i in range(n))
                gains = [payoffs[i][line] - payoffs[i][z] > tol for i in T]
                if np.logical_and.reduce(gains).any():
                    stable[z] = False
    return stable


def status_quo(game: AgentDesignGame, select: str = "worst") -> tuple[Array, bool]:
    """The equilibrium that stakeholders are taken to play by themselves.

    The pure equilibrium of extreme welfare; where there is none, the mixed one for two stakeholders
    with up to 12 designs (a MILP), and otherwise the coarse correlated one, whose welfare bounds
    every equilibrium's.

    Returns
    -------
    policy : ndarray of shape (d_0, ..., d_{n-1})
        Joint distribution.
    exact : bool
        Whether it is a Nash equilibrium.
    """
    u = game.payoffs_
    best = select == "best"
    mask = pure_equilibria(u)
    if mask.any():
        W = np.where(mask, game.welfare(), -np.inf if best else np.inf)
        z = np.unravel_index(int(W.argmax() if best else W.argmin()), W.shape)
        return point_mass(z, W.shape), True
    if len(u) == 2 and max(u.shape[1:]) <= LARGEST_MIXED:
        return product_policy(extreme_equilibrium(u, game.weights_, best)), True
    return extreme_correlated(game, "cce", "utilitarian", best), False


def price(best: float, *others: float) -> float:
    """A ratio of welfares, defined where all are positive."""
    return best / others[0] if min(best, *others) > 0 else float("nan")


class MetaGameSolver(BaseEstimator):
    """Find equilibria of a meta-game, and what they cost everybody.

    Parameters
    ----------
    concept : str, default="pure"
        "pure" and "strong": all of them. "mixed", "ce", "cce": the best and the worst, exactly
        (mixed: for two stakeholders; for more, what a search finds, which finds more of a small
        game if pygambit is installed). "ess": evolutionarily stable strategies, all of them up to
        12 designs, else mixtures of at most 3, and "replicator": where random starts end, both for
        symmetric games. "alpharank": the long-run distribution of copying populations.
    objective : {"utilitarian", "egalitarian"} or callable, default="utilitarian"
        Welfare, by which equilibria are compared; "mixed" with two stakeholders knows only the
        first.
    select : {"all", "best", "worst"}, default="all"
        Which solutions are kept; the prices always look at all.
    alpha : float, default=10.0
        Strength of selection of "alpharank".
    population : int, default=50
        Population size of "alpharank".
    tol : float, default=1e-9
        What counts as a tie, in units of the range of payoffs.

    Attributes
    ----------
    solutions_ : list of dict
        Each maps profiles (tuples of designs) to their probability.
    distributions_ : list of ndarray of shape (d_0, ..., d_{n-1})
        The same as arrays.
    payoffs_ : ndarray of shape (n_solutions, n)
        Expected payoffs.
    welfare_ : ndarray of shape (n_solutions,)
        Welfare of each.
    price_of_anarchy_ : float
        Largest welfare of a profile over the worst equilibrium's; NaN unless all are positive.
    price_of_stability_ : float
        The same over the best equilibrium's.
    welfare_gap_ : tuple of float
        Largest welfare minus the worst, and minus the best equilibrium's; NaN without equilibria.
    exact_ : bool
        Whether all equilibria (or the extreme ones) were found for certain.
    regrets_ : ndarray of shape (n_solutions,)
        The certificate of each, recomputed from payoffs and distribution: the most anyone gains by
        disobeying after he was told his design ("ce"), or by one design throughout (all others).
        For equilibria about zero; for "alpharank" and "replicator" it says how far from one it is.
    reducible_ : bool
        Only for "alpharank": whether rare jumps decide between closed classes.
    shares_ : ndarray
        Only for "replicator": share of the starts that end at each solution.
    game_ : AgentDesignGame
        What was fitted.

    References
    ----------
    .. [1] T. Sandholm, A. Gilpin, V. Conitzer, "Mixed-integer programming methods for finding Nash
       equilibria", AAAI 2005.
    .. [2] S. Omidshafiei et al., "alpha-Rank: multi-agent evaluation by evolution", Scientific
       Reports 9, 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games import MetaGameSolver
    >>> chicken = np.array([[[6.0, 2.0], [7.0, 0.0]], [[6.0, 7.0], [2.0, 0.0]]])
    >>> MetaGameSolver("pure").fit(chicken).solutions_
    [{('0', '1'): 1.0}, {('1', '0'): 1.0}]
    >>> MetaGameSolver("ce", select="best").fit(chicken).welfare_.round(6).tolist()
    [10.5]
    """

    _parameter_constraints: ClassVar[dict] = {
        "concept": [StrOptions(set(CONCEPTS))],
        "objective": [StrOptions(set(OBJECTIVES)), callable],
        "select": [StrOptions({"all", "best", "worst"})],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "population": [Interval(Integral, 2, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        concept: str = "pure",
        objective: Any = "utilitarian",
        select: str = "all",
        alpha: float = 10.0,
        population: int = 50,
        tol: float = 1e-9,
    ) -> None:
        self.concept = concept
        self.objective = objective
        self.select = select
        self.alpha = alpha
        self.population = population
        self.tol = tol

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, game: Any, y: Any = None) -> Self:
        """Solve a game.

        Parameters
        ----------
        game : AgentDesignGame, NormalFormGame, ndarray of shape (n, d_0, ...) or match table
            The game.
        y : None
            Not used.

        Returns
        -------
        self : MetaGameSolver
            Fitted.

        Raises
        ------
        ValueError
            If the concept needs a symmetric game of two, or another objective.
        """
        found = as_design_game(game)
        policies, exact, extra = self._solve(found)
        u, weights = found.payoffs_, found.weights_
        W = profile_welfare(u, weights, self.objective)
        welfare = np.array([float(found.welfare(pi, self.objective)) for pi in policies])
        top = float(W.max())
        if len(welfare):
            anarchy = price(top, float(welfare.min()), float(welfare.max()))
            stability = price(top, float(welfare.max()), float(welfare.min()))
            gap = (top - float(welfare.min()), top - float(welfare.max()))
        else:
            anarchy, stability, gap = float("nan"), float("nan"), (float("nan"), float("nan"))
        kept = np.arange(len(policies))
        if self.select != "all" and len(policies):
            k = int(welfare.argmax() if self.select == "best" else welfare.argmin())
            kept = np.array([k])
        self.game_ = found
        self.distributions_ = [policies[k] for k in kept]
        self.solutions_ = [as_profiles(found, policies[k]) for k in kept]
        self.payoffs_ = np.array(
            [expected_payoffs(u, policies[k]) for k in kept], dtype=float
        ).reshape(len(kept), len(u))
        kind = "ce" if self.concept == "ce" else "cce"
        self.regrets_ = np.array(
            [certify_obedience(u, policies[k], kind).max_violation for k in kept], dtype=float
        )
        self.welfare_ = welfare[kept] if len(welfare) else welfare
        self.price_of_anarchy_, self.price_of_stability_ = anarchy, stability
        self.welfare_gap_ = gap
        self.exact_ = exact
        for name in ("reducible_", "shares_"):
            if name in extra:
                setattr(self, name, extra[name])
            elif hasattr(self, name):
                delattr(self, name)
        if not exact:
            warnings.warn(
                f"concept={self.concept!r}: the solutions are what a search found "
                f"({extra.get('left', 'not all starts came to rest')}); there may be others",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _solve(self, game: AgentDesignGame) -> tuple[list[Array], bool, dict[str, Any]]:
        """Joint distributions, whether they are exact, and what else is reported."""
        u = game.payoffs_
        shape = u.shape[1:]
        tol = self.tol * payoff_range(u)
        if self.concept in ("pure", "strong"):
            mask = (pure_equilibria if self.concept == "pure" else strong_equilibria)(u, tol)
            return [point_mass(z, shape) for z in np.argwhere(mask)], True, {}
        if self.concept in ("ce", "cce"):
            both = [
                extreme_correlated(game, self.concept, self.objective, b) for b in (True, False)
            ]
            return both, True, {}
        if self.concept == "alpharank":
            pi, reducible, settled = alpha_rank(u, self.alpha, self.population)
            left = "the iteration didn't settle, or sets of profiles are nearly closed"
            return [pi], settled, {"reducible_": reducible, "left": left}
        if self.concept == "ess":
            slack = max(tol, 1e-9 * payoff_range(u))
            stable, all_supports = stable_strategies(symmetric_matrix(u), slack)
            left = "of many designs, mixtures of at most 3"
            return [np.multiply.outer(x, x) for x in stable], all_supports, {"left": left}
        if self.concept == "replicator":
            ends, shares, rest = replicate(symmetric_matrix(u), 200, 0, 1e-9)
            return [np.multiply.outer(x, x) for x in ends], rest, {"shares_": shares}
        if len(u) == 2:
            if self.objective != "utilitarian":
                raise ValueError(
                    f"objective={self.objective!r}: mixed equilibria of two stakeholders are "
                    "compared by 'utilitarian' welfare only"
                )
            sides = [extreme_equilibrium(u, game.weights_, best) for best in (True, False)]
            return [product_policy(x) for x in sides], True, {}
        policies, gap = searched_equilibria(u, tol)
        return policies, False, {"left": f"largest gain left {gap:.1e}"}

    def predict(self, X: Any = None) -> list[Array]:
        """The joint distributions of the solutions.

        Parameters
        ----------
        X : None
            Not used.

        Returns
        -------
        list of ndarray of shape (d_0, ..., d_{n-1})
            `distributions_`.
        """
        check_is_fitted(self, "distributions_")
        return [pi.copy() for pi in self.distributions_]

    def score(self, game: Any, y: Any = None) -> float:
        """Welfare, in a game, of the first selected solution.

        Parameters
        ----------
        game : AgentDesignGame, NormalFormGame, ndarray or match table
            With the fitted designs.
        y : None
            Not used.

        Returns
        -------
        float
            The welfare.
        """
        from .mediator import aligned_game

        check_is_fitted(self, "distributions_")
        if not self.distributions_:
            raise ValueError(f"concept={self.concept!r}: the fitted game has no such equilibrium")
        other = aligned_game(game, self.game_)
        return float(other.welfare(self.distributions_[0], self.objective))

    def explain(self) -> Explanation:
        """Say which equilibria there are and how far they are from the best.

        Returns
        -------
        Explanation
            Solutions, welfare, prices, and what each could gain by deviating; one row a profile
            with positive probability; plot 'welfare'.
        """
        from .reporting import explain_equilibria

        check_is_fitted(self, "distributions_")
        return explain_equilibria(self)


def as_profiles(game: AgentDesignGame, policy: Array) -> dict[tuple[Any, ...], float]:
    """A joint distribution as a dict of its profiles with positive probability."""
    return {game.profile_names(tuple(a)): float(policy[tuple(a)]) for a in np.argwhere(policy > 0)}


def solution_frame(solver: MetaGameSolver) -> pd.DataFrame:
    """One row a solution and profile."""
    rows = [
        {
            "solution": k,
            **{str(s): d for s, d in zip(solver.game_.stakeholders_, profile, strict=True)},
            "probability": p,
            "welfare": float(solver.welfare_[k]),
            "regret": float(solver.regrets_[k]),
        }
        for k, solution in enumerate(solver.solutions_)
        for profile, p in solution.items()
    ]
    columns = [
        "solution",
        *map(str, solver.game_.stakeholders_),
        "probability",
        "welfare",
        "regret",
    ]
    return pd.DataFrame(rows, columns=columns)
