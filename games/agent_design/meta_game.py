"""The game of choosing agents, estimated from matches.

Stakeholder i deploys a design a_i; u_i(a) is estimated by the mean over the matches of profile a,
with standard error sd / sqrt(count). An equilibrium of the estimate is a statement about designs;
how sure it is, Welch bounds and the bootstrap say.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..normal_form import NormalFormGame
from .cells import Cells, collect_cells, is_symmetric
from .certainty import MetaGameCertainty
from .estimation import checked_bounds, finite_array, shared_designs, with_costs
from .matches import read_matches
from .missing import complete_tables
from .sources import axelrod_matches, simulated_matches

__all__ = ["AgentDesignGame", "as_design_game"]

Array = np.ndarray


class AgentDesignGame(MetaGameCertainty):
    """Estimate which design earns what against which, from a log of matches.

    Parameters
    ----------
    symmetric : bool or "auto", default="auto"
        Whether all roles are exchangeable, so that their observations are pooled. "auto" pools two
        roles with one set of designs unless a test at 1% tells them apart.
    utility : callable, default=None
        From payoffs (n_matches, n) to utilities of the same shape.
    costs : dict, default=None
        From design to its cost, or from stakeholder to such a dict; subtracted.
    weights : array-like of shape (n,), default=None
        Weights of the stakeholders in the welfare; None is all ones.
    missing : {"raise", "restrict", "additive", "bounds"}, default="raise"
        Profiles without a match: an error, the largest complete sub-game a greedy search finds,
        payoffs of an additive model of own and others' designs, or all between `payoff_bounds`:
        their middle is the estimate, and certificates take whichever end is worse.
    payoff_bounds : tuple of two float, default=None
        Least and largest possible payoff of a profile (after utility and costs), for
        missing="bounds".
    confidence : float, default=0.95
        Level of intervals and certificates.
    random_state : int, RandomState or None, default=None
        For the bootstrap.

    Attributes
    ----------
    payoffs_ : ndarray of shape (n, d_0, ..., d_{n-1})
        Estimated payoffs; with states, their mean over the states.
    stderr_ : ndarray of shape (n, d_0, ..., d_{n-1})
        Standard errors; NaN where one match can't tell.
    counts_ : ndarray of shape (d_0, ..., d_{n-1})
        Matches behind each profile (over all states), weights counted.
    designs_ : tuple of tuple
        Each stakeholder's designs, in order of first appearance.
    stakeholders_ : tuple
        Names.
    n_matches_ : int
        Matches in the log.
    symmetric_ : bool
        Whether roles were pooled.
    game_ : NormalFormGame
        The estimated game.
    states_ : tuple
        Names of the states.
    payoffs_by_state_ : ndarray of shape (n_states, n, d_0, ..., d_{n-1})
        Payoffs in each state.
    prior_ : ndarray of shape (n_states,)
        Share of the matches in each state.
    imputed_ : ndarray of bool of shape (d_0, ..., d_{n-1})
        Profiles without a match, filled as `missing` says.
    payoff_ends_ : ndarray of shape (2, n, d_0, ..., d_{n-1}) or None
        Least and largest payoffs with missing="bounds", equal where there are matches; else None.
    weights_ : ndarray of shape (n,)
        Weights of the stakeholders.

    References
    ----------
    .. [1] M. Wellman, "Methods for empirical game-theoretic analysis", AAAI 2006.
    .. [2] E. Shapira, M. Tennenholtz, R. Reichart, "The Poisoned Apple effect", 2026.

    Examples
    --------
    >>> from equipoise.datasets import make_agent_design_matches
    >>> from equipoise.games import AgentDesignGame
    >>> matches = make_agent_design_matches("prisoners", n_designs=2, random_state=0)
    >>> game = AgentDesignGame().fit(matches)
    >>> solution = game.equilibria("pure").solutions_[0]
    >>> [list(game.designs_[i]) for i in range(2)], list(solution)
    ([['cooperate', 'defect'], ['cooperate', 'defect']], [('defect', 'defect')])
    """

    _parameter_constraints: ClassVar[dict] = {
        "symmetric": ["boolean", StrOptions({"auto"})],
        "utility": [callable, None],
        "costs": [dict, None],
        "weights": ["array-like", None],
        "missing": [StrOptions({"raise", "restrict", "additive", "bounds"})],
        "payoff_bounds": [tuple, list, None],
        "confidence": [Interval(Real, 0, 1, closed="neither")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        symmetric: bool | str = "auto",
        utility: Callable[[Array], Array] | None = None,
        costs: dict[Any, Any] | None = None,
        weights: ArrayLike | None = None,
        missing: str = "raise",
        payoff_bounds: tuple[float, float] | None = None,
        confidence: float = 0.95,
        random_state: Any = None,
    ) -> None:
        self.symmetric = symmetric
        self.utility = utility
        self.costs = costs
        self.weights = weights
        self.missing = missing
        self.payoff_bounds = payoff_bounds
        self.confidence = confidence
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, matches: Any, y: Any = None, *, format: str = "auto") -> Self:
        """Estimate payoffs from a log of matches.

        Parameters
        ----------
        matches : DataFrame or dict
            Long, one row a stakeholder and match: match_id, stakeholder (or role), design, payoff,
            optionally state, weight and time (rounds within a match, which are averaged: they
            aren't independent). Wide, one row a match: design_<name>, payoff_<name>. Or a dict from
            profiles (tuples of designs) to arrays (c, n). pandas and polars.
        y : None
            Not used.
        format : {"auto", "long", "wide"}, default="auto"
            Layout of the frame; "auto" looks for a column match_id.

        Returns
        -------
        self : AgentDesignGame
            Fitted.

        Raises
        ------
        TypeError
            If `matches` is neither a frame nor a dict.
        ValueError
            If a match lacks a stakeholder or holds one twice, a payoff isn't finite, or profiles
            are missing.
        """
        if format not in ("auto", "long", "wide"):
            raise ValueError(f"format={format!r} is not known; allowed: 'auto', 'long', 'wide'")
        bounds = checked_bounds(self.missing, self.payoff_bounds)
        log = read_matches(matches, format)
        payoffs = with_costs(log, self.utility, self.costs)
        n = len(log.stakeholders)
        pooled = self.symmetric is True
        if pooled:
            log = shared_designs(log)
        elif self.symmetric == "auto" and n == 2 and set(log.designs[0]) == set(log.designs[1]):
            common = shared_designs(log)
            if pooled := is_symmetric(common.choices, payoffs, log.weights):
                log = common
        shape = tuple(len(own) for own in log.designs)
        S, M = len(log.state_names), int(np.prod(shape))
        if S * M > 50_000_000:
            raise ValueError(f"the game has {S * M} cells; allowed: at most 50,000,000")
        cells = collect_cells(log.choices, payoffs, log.weights, log.states, shape, S, pooled)
        by_state = cells.tensor(cells.mean, shape)
        errors = cells.tensor(cells.stderr, shape)
        own = cells.cell[:, 0]
        counts = np.where(own < 0, 0.0, cells.counts[np.maximum(own, 0)]).reshape(S, *shape)
        if bounds is not None and not (bounds[0] <= payoffs.min() <= payoffs.max() <= bounds[1]):
            raise ValueError(
                f"payoff_bounds={self.payoff_bounds!r} must hold all payoffs, which lie between "
                f"{payoffs.min():.6g} and {payoffs.max():.6g}"
            )
        by_state, errors, counts, designs, imputed, cells, ends = complete_tables(
            self.missing, bounds, by_state, errors, counts, log.designs, cells
        )
        prior = np.bincount(log.states, log.weights, S)
        prior = prior / prior.sum()
        mean = np.tensordot(prior, by_state, axes=1)
        self._set(
            mean,
            np.sqrt(np.tensordot(prior**2, errors**2, axes=1)),
            counts.sum(axis=0),
            designs,
            log.stakeholders,
            by_state=by_state,
            prior=prior,
            states=log.state_names,
            imputed=imputed,
            ends=None if ends is None else np.einsum("esn...,s->en...", ends, prior),
            cells=cells,
            symmetric=bool(pooled),
            n_matches=len(log.payoffs),
        )
        return self

    def _set(
        self,
        payoffs: Array,
        stderr: Array,
        counts: Array,
        designs: tuple[tuple[Any, ...], ...],
        stakeholders: tuple[Any, ...],
        *,
        by_state: Array,
        prior: Array,
        states: tuple[Any, ...],
        imputed: Array,
        ends: Array | None,
        cells: Cells | None,
        symmetric: bool,
        n_matches: int,
    ) -> None:
        """Store what was learned; everything that can fail comes first."""
        n = len(payoffs)
        weights = np.ones(n) if self.weights is None else np.asarray(self.weights, dtype=float)
        if weights.shape != (n,) or not np.isfinite(weights).all():
            raise ValueError(f"weights must be {n} finite numbers, got {self.weights!r}")
        game = NormalFormGame(
            payoffs,
            player_names=[str(name) for name in stakeholders],
            action_names=[[str(design) for design in own] for own in designs],
        )
        spans = np.ptp(payoffs.reshape(n, -1), axis=1)
        if self.weights is None and spans.min() > 0 and spans.max() > 10 * spans.min():
            warnings.warn(
                "the stakeholders' payoffs have ranges that differ more than tenfold; "
                "their sum is a choice: give weights",
                UserWarning,
                stacklevel=4,
            )
        self.payoffs_, self.stderr_, self.counts_ = game.payoffs, stderr, counts
        self.designs_, self.stakeholders_ = designs, stakeholders
        self.payoffs_by_state_, self.prior_, self.states_ = by_state, prior, states
        self.imputed_, self.symmetric_, self.n_matches_ = imputed, symmetric, n_matches
        self.payoff_ends_ = ends
        self.weights_, self.game_, self._cells = weights, game, cells

    @classmethod
    def from_payoffs(
        cls,
        tensor: ArrayLike,
        counts: ArrayLike | None = None,
        stderr: ArrayLike | None = None,
        designs: Sequence[Sequence[Any]] | None = None,
        stakeholders: Sequence[Any] | None = None,
        weights: ArrayLike | None = None,
    ) -> Self:
        """Make a meta-game of known payoffs.

        Parameters
        ----------
        tensor : array-like of shape (n, d_0, ..., d_{n-1})
            Payoffs.
        counts : array-like of shape (d_0, ..., d_{n-1}), optional
            Matches behind each; None is zero everywhere.
        stderr : array-like of shape (n, d_0, ..., d_{n-1}), optional
            Standard errors; None is unknown (NaN).
        designs : sequence of sequence, optional
            Names of each stakeholder's designs.
        stakeholders : sequence, optional
            Names of the stakeholders.
        weights : array-like of shape (n,), optional
            Weights of the stakeholders; None is all ones.

        Returns
        -------
        AgentDesignGame
            Fitted, with default parameters but for `weights`.
        """
        game = NormalFormGame(
            tensor,
            player_names=None if stakeholders is None else [str(name) for name in stakeholders],
            action_names=None if designs is None else [[str(a) for a in own] for own in designs],
        )
        u = game.payoffs
        c = np.zeros(game.shape) if counts is None else finite_array(counts, "counts", game.shape)
        s = np.full(u.shape, np.nan) if stderr is None else finite_array(stderr, "stderr", u.shape)
        self = cls(weights=weights)
        self._set(
            u,
            s,
            c,
            game.action_names if designs is None else tuple(tuple(own) for own in designs),
            game.player_names if stakeholders is None else tuple(stakeholders),
            by_state=u[None],
            prior=np.ones(1),
            states=("all",),
            imputed=np.zeros(game.shape, dtype=bool),
            ends=None,
            cells=None,
            symmetric=False,
            n_matches=int(c.sum()),
        )
        return self

    @classmethod
    def from_axelrod(
        cls,
        players: Sequence[Any],
        turns: int = 200,
        repetitions: int = 20,
        noise: float = 0.0,
        game: Any = None,
        seed: int = 0,
    ) -> Self:
        """Let strategies of the `axelrod` package play each other; payoffs per turn, roles pooled.

        Parameters
        ----------
        players : sequence of axelrod.Player
            The designs.
        turns, repetitions : int, default=200, 20
            Length of a match, and matches of each ordered pair.
        noise : float, default=0.0
            Probability that a move is flipped.
        game : axelrod.Game, optional
            Payoffs of one turn; None is 3, 5, 0, 1.
        seed : int, default=0
            Every match has its own, derived from this one.

        Returns
        -------
        AgentDesignGame
            Fitted, with symmetric=True.
        """
        log = axelrod_matches(players, turns, repetitions, noise, game, seed)
        return cls(symmetric=True).fit(log)

    @classmethod
    def from_simulator(
        cls,
        f: Callable[..., Any],
        designs: Sequence[Sequence[Any]],
        repetitions: int,
        n_jobs: int | None = None,
        seed: int = 0,
    ) -> Self:
        """Play every profile in a simulator.

        Parameters
        ----------
        f : callable
            ``f(profile, rng)`` with a tuple of designs and a `numpy.random.Generator`; returns the
            n payoffs.
        designs : sequence of sequence
            Each stakeholder's designs.
        repetitions : int
            Matches of each profile.
        n_jobs : int, optional
            Profiles at a time; the answer doesn't depend on it.
        seed : int, default=0
            Every profile has a stream of its own, derived from it.

        Returns
        -------
        AgentDesignGame
            Fitted, with symmetric=False.
        """
        return cls(symmetric=False).fit(simulated_matches(f, designs, repetitions, n_jobs, seed))


def as_design_game(game: Any) -> AgentDesignGame:
    """A fitted meta-game of whatever a mediator or solver was given.

    Parameters
    ----------
    game : AgentDesignGame, NormalFormGame, ndarray of shape (n, d_0, ...), DataFrame or dict
        A match table is fitted with default parameters.

    Returns
    -------
    AgentDesignGame
        Fitted.

    Raises
    ------
    TypeError
        If it is nothing of that.
    """
    if isinstance(game, AgentDesignGame):
        check_is_fitted(game, "payoffs_")
        return game
    if isinstance(game, NormalFormGame):
        return AgentDesignGame.from_payoffs(
            game.payoffs, designs=game.action_names, stakeholders=game.player_names
        )
    if isinstance(game, np.ndarray):
        return AgentDesignGame.from_payoffs(game)
    if isinstance(game, Mapping) or hasattr(game, "columns"):
        return AgentDesignGame().fit(game)
    raise TypeError(
        "game must be an AgentDesignGame, a NormalFormGame, a payoff tensor (ndarray) or a match "
        f"table, got {type(game).__name__}"
    )
