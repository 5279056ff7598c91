"""What one asks of an estimated meta-game: welfare, equilibria, structure, tables and pictures."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from equipoise.explanation import Explanation

from ..normal_form import GameDecomposition, NormalFormGame
from .deviations import across, own_line
from .objectives import expected_payoffs, profile_welfare

__all__ = ["MetaGameQueries"]

Array = np.ndarray


class MetaGameQueries(BaseEstimator):
    """The part of `AgentDesignGame` that reads the estimated payoffs."""

    payoffs_: Array
    stderr_: Array
    counts_: Array
    designs_: tuple[tuple[Any, ...], ...]
    stakeholders_: tuple[Any, ...]
    game_: NormalFormGame
    weights_: Array

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
            value = self.payoffs_[across(self.profile_index(a))]
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
                line = u[own_line(a, i)]
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
        from .pictures import draw_heatmap

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
