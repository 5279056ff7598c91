"""The game of choosing agents, estimated from matches.

Stakeholder i deploys a design a_i; u_i(a) is estimated by the mean over the matches of profile a,
with standard error sd / sqrt(count). An equilibrium of the estimate is a statement about designs;
how sure it is, Welch bounds and the bootstrap say.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from equipoise.explanation import Explanation

from ..normal_form import GameDecomposition, NormalFormGame
from .cells import Cells, collect_cells, is_symmetric
from .certificates import Certificate
from .deviations import pure_equilibria
from .matches import MatchLog, read_matches
from .missing import additive_payoffs, complete_designs
from .objectives import expected_payoffs, profile_welfare
from .sources import axelrod_matches, simulated_matches
from .uncertainty import bootstrap_tables, difference_bounds, match_values

__all__ = ["AgentDesignGame", "as_design_game"]

Array = np.ndarray


def with_costs(log: MatchLog, utility: Any, costs: Any) -> Array:
    """Payoffs after the utility function and the cost of each design."""
    payoffs = log.payoffs
    if utility is not None:
        payoffs = np.asarray(utility(payoffs), dtype=float)
        if payoffs.shape != log.payoffs.shape or not np.isfinite(payoffs).all():
            raise ValueError(
                f"utility must return finite numbers of shape {log.payoffs.shape}, "
                f"got shape {payoffs.shape}"
            )
    if costs is None:
        return payoffs
    table = np.zeros_like(payoffs)
    for i, (name, designs) in enumerate(zip(log.stakeholders, log.designs, strict=True)):
        own = costs.get(name, {}) if name in costs else costs
        if not isinstance(own, Mapping):
            raise ValueError(f"costs[{name!r}]={own!r} must be a mapping from design to cost")
        prices = np.array([float(own.get(design, 0.0)) for design in designs])
        if not np.isfinite(prices).all():
            raise ValueError(f"costs={costs!r} must hold finite numbers")
        table[:, i] = prices[log.choices[:, i]]
    return payoffs - table


def shared_designs(log: MatchLog) -> MatchLog:
    """The same log with one design list for all stakeholders."""
    names = list(dict.fromkeys(design for own in log.designs for design in own))
    place = {design: k for k, design in enumerate(names)}
    lookup = [np.array([place[design] for design in own]) for own in log.designs]
    choices = np.stack([t[log.choices[:, i]] for i, t in enumerate(lookup)], axis=1)
    return MatchLog(
        choices,
        log.payoffs,
        log.weights,
        log.states,
        (tuple(names),) * len(log.designs),
        log.stakeholders,
        log.state_names,
    )


class AgentDesignGame(BaseEstimator):
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
    missing : {"raise", "restrict", "additive"}, default="raise"
        Profiles without a match: an error, the largest complete sub-game a greedy search finds, or
        payoffs of an additive model of own and others' designs.
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
        Profiles filled by the additive model.
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
        "missing": [StrOptions({"raise", "restrict", "additive"})],
        "confidence": [Interval(Real, 0, 1, closed="neither")],
        "random_state": ["random_state"],
    }

    payoffs_: Array
    stderr_: Array
    counts_: Array
    designs_: tuple[tuple[Any, ...], ...]
    stakeholders_: tuple[Any, ...]
    game_: NormalFormGame
    weights_: Array

    def __init__(
        self,
        *,
        symmetric: bool | str = "auto",
        utility: Callable[[Array], Array] | None = None,
        costs: dict[Any, Any] | None = None,
        weights: ArrayLike | None = None,
        missing: str = "raise",
        confidence: float = 0.95,
        random_state: Any = None,
    ) -> None:
        self.symmetric = symmetric
        self.utility = utility
        self.costs = costs
        self.weights = weights
        self.missing = missing
        self.confidence = confidence
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, matches: Any, y: Any = None, *, format: str = "auto") -> Self:
        """Estimate payoffs from a log of matches.

        Parameters
        ----------
        matches : DataFrame or dict
            Long, one row a stakeholder and match: match_id, stakeholder (or role), design, payoff,
            optionally state and weight. Wide, one row a match: design_<name>, payoff_<name>. Or a
            dict from profiles (tuples of designs) to arrays (c, n). pandas and polars.
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
        by_state, errors, counts, designs, imputed, cells = self._complete(
            by_state, errors, counts, log.designs, cells
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
            cells=cells,
            symmetric=bool(pooled),
            n_matches=len(log.payoffs),
        )
        return self

    def _complete(
        self,
        by_state: Array,
        errors: Array,
        counts: Array,
        designs: tuple[tuple[Any, ...], ...],
        cells: Cells,
    ) -> tuple[Array, Array, Array, tuple[tuple[Any, ...], ...], Array, Cells]:
        """Deal with profiles that were never played, as `missing` says."""
        absent = (counts == 0).any(axis=0)
        if not absent.any():
            return by_state, errors, counts, designs, absent, cells
        if self.missing == "raise":
            places = np.argwhere(absent)[:10]
            names = [tuple(own[k] for own, k in zip(designs, p, strict=True)) for p in places]
            raise ValueError(
                f"{int(absent.sum())} profiles have no match, such as {names}; "
                "missing='restrict' or 'additive' goes on without them"
            )
        if self.missing == "additive":
            filled = np.stack([additive_payoffs(u) for u in by_state])
            return filled, errors, counts, designs, absent, cells
        kept = complete_designs(absent)
        place = np.ix_(*kept)
        profile = np.ravel_multi_index(np.meshgrid(*kept, indexing="ij"), absent.shape).ravel()
        cells = Cells(
            cells.values, cells.weights, cells.starts, cells.sizes, cells.mean, cells.stderr,
            cells.counts, cells.cell[..., profile], cells.slot[..., profile],
        )  # fmt: skip
        names = tuple(tuple(own[k] for k in k_i) for own, k_i in zip(designs, kept, strict=True))
        take = (slice(None), slice(None), *place)
        return (
            by_state[take],
            errors[take],
            counts[(slice(None), *place)],
            names,
            absent[place],
            cells,
        )

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
        self.weights_, self.game_, self._cells = weights, game, cells

    @classmethod
    def from_payoffs(
        cls,
        tensor: ArrayLike,
        counts: ArrayLike | None = None,
        stderr: ArrayLike | None = None,
        designs: Sequence[Sequence[Any]] | None = None,
        stakeholders: Sequence[Any] | None = None,
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

        Returns
        -------
        AgentDesignGame
            Fitted, with default parameters.
        """
        game = NormalFormGame(
            tensor,
            player_names=None if stakeholders is None else [str(name) for name in stakeholders],
            action_names=None if designs is None else [[str(a) for a in own] for own in designs],
        )
        u = game.payoffs
        c = np.zeros(game.shape) if counts is None else finite_array(counts, "counts", game.shape)
        s = np.full(u.shape, np.nan) if stderr is None else finite_array(stderr, "stderr", u.shape)
        self = cls()
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

    def welfare(self, a: Any = None, objective: Any = "utilitarian") -> Any:
        """Welfare of a profile, of a joint distribution, or of all profiles.

        Parameters
        ----------
        a : tuple or ndarray of shape (d_0, ..., d_{n-1}), optional
            A profile of designs (or their indices), or a joint distribution; None: all profiles.
        objective : {"utilitarian", "egalitarian"} or callable
            Weighted sum, least payoff, or a function from payoffs (n, ...) to numbers (...).

        Returns
        -------
        float or ndarray of shape (d_0, ..., d_{n-1})
            The welfare.
        """
        check_is_fitted(self, "payoffs_")
        if a is None:
            return profile_welfare(self.payoffs_, self.weights_, objective)
        if isinstance(a, np.ndarray) and a.shape == self.counts_.shape:
            if callable(objective):
                return float((a * profile_welfare(self.payoffs_, self.weights_, objective)).sum())
            value = expected_payoffs(self.payoffs_, a)
        else:
            value = self.payoffs_[(slice(None), *self.profile_index(a))]
        return float(profile_welfare(value, self.weights_, objective))

    def profile_index(self, profile: Any) -> tuple[int, ...]:
        """The indices of a profile.

        Parameters
        ----------
        profile : sequence of length n
            For each stakeholder a design of his, or its index.

        Returns
        -------
        tuple of int
            Indices.

        Raises
        ------
        ValueError
            If it isn't a profile of this game.
        """
        check_is_fitted(self, "payoffs_")
        if isinstance(profile, str) or not isinstance(profile, Sequence | np.ndarray):
            raise ValueError(f"profile={profile!r} must hold one design for each stakeholder")
        if len(profile) != len(self.designs_):
            raise ValueError(
                f"profile={profile!r} must hold {len(self.designs_)} designs, got {len(profile)}"
            )
        found = []
        for own, design in zip(self.designs_, profile, strict=True):
            if design in own:
                found.append(own.index(design))
            elif isinstance(design, int | np.integer) and 0 <= design < len(own):
                found.append(int(design))
            else:
                raise ValueError(f"{design!r} is not in the game; allowed: {list(own)}")
        return tuple(found)

    def profile_names(self, index: Sequence[int]) -> tuple[Any, ...]:
        """The designs of a profile given by indices.

        Parameters
        ----------
        index : sequence of int
            One index a stakeholder.

        Returns
        -------
        tuple
            Designs.
        """
        return tuple(own[int(k)] for own, k in zip(self.designs_, index, strict=True))

    def equilibria(self, concept: str = "pure", **kw: Any) -> Any:
        """Solve the game; see `MetaGameSolver`.

        Parameters
        ----------
        concept : str, default="pure"
            Solution concept.
        **kw
            Parameters of `MetaGameSolver`.

        Returns
        -------
        MetaGameSolver
            Fitted to this game.
        """
        from .solver import MetaGameSolver

        return MetaGameSolver(concept, **kw).fit(self)

    def best_response_graph(self) -> Any:
        """Who would switch where.

        Returns
        -------
        networkx.DiGraph
            An edge from each profile to each that a single stakeholder's best reply leads to, with
            his name as `stakeholder` and what he gains as `gain`. Sinks are the pure equilibria.
        """
        from equipoise.imports import optional_import

        check_is_fitted(self, "payoffs_")
        graph = optional_import("networkx", "graphs").DiGraph()
        shape = self.counts_.shape
        names = {tuple(a): self.profile_names(a) for a in np.ndindex(shape)}
        graph.add_nodes_from(names.values())
        for i, u in enumerate(self.payoffs_):
            best = u.max(axis=i, keepdims=True)
            for a in map(tuple, np.argwhere(u < best)):
                line = u[(*a[:i], slice(None), *a[i + 1 :])]
                for b in np.flatnonzero(line == line.max()):
                    graph.add_edge(
                        names[a],
                        names[(*a[:i], int(b), *a[i + 1 :])],
                        stakeholder=self.stakeholders_[i],
                        gain=float(line[b] - line[a[i]]),
                    )
        return graph

    def decompose(self) -> GameDecomposition:
        """Split the estimated game into nonstrategic, potential and harmonic parts.

        Returns
        -------
        GameDecomposition
            See `equipoise.games.decompose`.
        """
        check_is_fitted(self, "payoffs_")
        return self.game_.decompose()

    def certify_nash(
        self, profile: Any, eps: float = 0.0, alpha: float | None = None
    ) -> Certificate:
        """Whether a profile is an eps-equilibrium of the true game, at a confidence level.

        Parameters
        ----------
        profile : sequence of length n
            Designs or their indices.
        eps : float, default=0.0
            How much a stakeholder may gain by deviating.
        alpha : float, optional
            Probability of a wrong certificate; None is 1 - `confidence`.

        Returns
        -------
        Certificate
            `max_violation` is the upper bound of the largest gain, by Welch's bounds with
            Bonferroni over all deviations; `ok` if it is at most eps.
        """
        z = self.profile_index(profile)
        level = 1 - self.confidence if alpha is None else alpha
        if not 0 < level < 1:
            raise ValueError(f"alpha={alpha!r} must lie between 0 and 1")
        bounds = difference_bounds(self.payoffs_, self.stderr_, self.counts_, z, level)
        found = [
            (float(bound[b]), (i, b))
            for i, bound in enumerate(bounds)
            for b in range(len(bound))
            if b != z[i]
        ]
        worst, deviation = max(found, key=lambda pair: pair[0], default=(0.0, ()))
        return Certificate(bool(worst <= eps), worst, deviation, eps)

    def bootstrap(self, n: int = 500) -> Iterator[Array]:
        """Payoffs estimated from matches drawn anew within each cell.

        Parameters
        ----------
        n : int, default=500
            Number of replicates.

        Yields
        ------
        ndarray of shape (n_replicates, n, d_0, ..., d_{n-1})
            Replicates, as many at a time as fit in memory. Cells with one match stay as they are,
            which a warning says; with states, the mean over them.

        Raises
        ------
        ValueError
            If the game was made of payoffs: there are no matches to draw from.
        """
        check_is_fitted(self, "payoffs_")
        if self._cells is None:
            raise ValueError("this game was made of payoffs; the bootstrap needs matches")
        if (self._cells.sizes == 1).any():
            warnings.warn(
                f"{int((self._cells.sizes == 1).sum())} cells have one match: the bootstrap can't "
                "vary them, and its intervals are too narrow",
                UserWarning,
                stacklevel=2,
            )
        shape = self.counts_.shape
        for table in bootstrap_tables(self._cells, n, self.random_state):
            tensors = self._cells.tensor(table, shape)  # (k, S, n, ...)
            tensors = np.einsum("ks...,s->k...", tensors, self.prior_)
            if self.imputed_.any():
                tensors = np.stack([additive_payoffs(u) for u in tensors])
            yield tensors

    def suggest_matches(self, k: int = 5) -> pd.DataFrame:
        """Which profiles to play next, so that the reported equilibria become surer.

        Parameters
        ----------
        k : int, default=5
            How many.

        Returns
        -------
        pandas.DataFrame
            Designs, matches so far and value (its order is what counts), best first. Without a pure
            equilibrium the profile of least regret is taken for one.
        """
        from .deviations import regrets

        check_is_fitted(self, "payoffs_")
        if (self.counts_ == 0).all():
            raise ValueError("this game was made of payoffs without counts")
        mask = pure_equilibria(self.payoffs_)
        if not mask.any():
            worst = regrets(self.payoffs_).max(axis=0)
            mask = worst == worst.min()
        value = match_values(
            self.payoffs_, self.stderr_, np.maximum(self.counts_, 0.5), np.argwhere(mask)
        )
        order = np.argsort(-value, axis=None, kind="stable")[:k]
        places = np.stack(np.unravel_index(order, value.shape), axis=1)
        frame = pd.DataFrame(
            [self.profile_names(p) for p in places], columns=[str(s) for s in self.stakeholders_]
        )
        frame["matches"] = self.counts_.ravel()[order]
        frame["value"] = value.ravel()[order]
        return frame

    def to_frame(self) -> pd.DataFrame:
        """One row a profile and stakeholder: payoff, standard error, matches.

        Returns
        -------
        pandas.DataFrame
            Columns: a design a stakeholder, stakeholder, payoff, stderr, matches.
        """
        check_is_fitted(self, "payoffs_")
        places = np.stack(np.unravel_index(np.arange(self.counts_.size), self.counts_.shape), 1)
        frame = pd.DataFrame(
            [self.profile_names(p) for p in places],
            columns=[f"design of {name}" for name in self.stakeholders_],
        )
        parts = [
            frame.assign(
                stakeholder=name,
                payoff=self.payoffs_[i].ravel(),
                stderr=self.stderr_[i].ravel(),
                matches=self.counts_.ravel(),
            )
            for i, name in enumerate(self.stakeholders_)
        ]
        return pd.concat(parts, ignore_index=True)

    def plot_heatmap(self, stakeholder: Any = None, ax: Any = None) -> Any:
        """Draw the welfare, or a stakeholder's payoff, of each pair of designs.

        Parameters
        ----------
        stakeholder : object, optional
            One of `stakeholders_`; None draws the welfare. Pure equilibria are framed.
        ax : matplotlib.axes.Axes, optional
            Where to draw; None makes a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes drawn on.

        Raises
        ------
        ValueError
            If there aren't two stakeholders, or the name isn't known.
        """
        from .reporting import draw_heatmap

        check_is_fitted(self, "payoffs_")
        if stakeholder is not None and stakeholder not in self.stakeholders_:
            raise ValueError(
                f"stakeholder={stakeholder!r} is not in the game; "
                f"allowed: {list(self.stakeholders_)}"
            )
        return draw_heatmap(self, stakeholder, ax)

    def explain(self) -> Explanation:
        """Say what stakeholders will deploy, how bad that is, and how sure it is.

        Returns
        -------
        Explanation
            Status quo, price of anarchy, what the optimum would bring each, certificates of the
            equilibria; the frame has a row a profile; plots 'heatmap' (two stakeholders) and
            'welfare'.
        """
        from .reporting import explain_game

        check_is_fitted(self, "payoffs_")
        return explain_game(self)


def finite_array(values: ArrayLike, name: str, shape: tuple[int, ...]) -> Array:
    array = np.asarray(values, dtype=float)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    if np.isinf(array).any() or (array < 0).any() or (name == "counts" and np.isnan(array).any()):
        raise ValueError(f"{name} must be finite and not negative")
    return array


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
