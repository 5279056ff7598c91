"""Games with several tables, one a state of the world or an environment: reading, drawing anew."""

from collections.abc import Mapping
from copy import copy
from numbers import Integral
from typing import Any

import numpy as np

from .meta_game import AgentDesignGame, as_design_game

__all__ = ["draw_tables", "read_states"]

Array = np.ndarray


def refuse_bounds(games: list[AgentDesignGame]) -> None:
    if any(game.payoff_ends_ is not None for game in games):
        raise ValueError("missing='bounds' isn't offered for games with states")


def read_states(
    game: Any, what: str
) -> tuple[AgentDesignGame, tuple[Any, ...], Array, list[AgentDesignGame]]:
    """A game whose payoffs are the mean over states, the names of the states, and their tables.

    Parameters
    ----------
    game : mapping of name to game, AgentDesignGame or match table
        A mapping's games must have the same stakeholders and designs.
    what : str
        "state" or "environment", for messages.

    Returns
    -------
    game : AgentDesignGame
        The mean game.
    names : tuple
        Names.
    tables : ndarray of shape (S, n, d_0, ..., d_{n-1})
        Payoffs in each state.
    sources : list of AgentDesignGame
        Where the matches are: one game a state, or one with all of them.

    Raises
    ------
    ValueError
        If there is one state only, states have different designs, or payoffs are known within
        bounds only.
    """
    if isinstance(game, Mapping) and not any(isinstance(key, tuple) for key in game):
        if not game:
            raise ValueError(f"the dict holds no {what}")
        games = [as_design_game(value) for value in game.values()]
        first = games[0]
        for name, other in zip(game, games, strict=True):
            if other.payoffs_.shape != first.payoffs_.shape or other.designs_ != first.designs_:
                raise ValueError(
                    f"{what} {name!r} has other designs than {what} {next(iter(game))!r}"
                )
        tables = np.stack([other.payoffs_ for other in games])
        mean = AgentDesignGame.from_payoffs(
            tables.mean(axis=0),
            designs=first.designs_,
            stakeholders=first.stakeholders_,
            weights=first.weights_,
        )
        mean.payoffs_by_state_, mean.states_ = tables, tuple(game)
        mean.prior_ = np.full(len(tables), 1.0 / len(tables))
        refuse_bounds(games)
        return mean, tuple(game), tables, games
    found = as_design_game(game)
    refuse_bounds([found])
    if len(found.states_) < 2:
        raise ValueError(
            f"the game has one {what}; allowed: a match table with a column 'state', or a dict "
            f"from {what} to game"
        )
    return found, found.states_, found.payoffs_by_state_, [found]


def draw_tables(sources: list[AgentDesignGame], n: int, single: str) -> list[list[Array]]:
    """Replicates of all states' payoffs, (n, d_0, ..., d_{n-1}) each.

    The states' games are drawn from independently, even if they share a `random_state`.
    """
    if len(sources) == 1:
        blocks = sources[0].bootstrap(n, single=single, by_state=True)
        return [list(tables) for block in blocks for tables in block]
    drawn = []
    for k, game in enumerate(sources):
        own = copy(game)
        if isinstance(game.random_state, Integral):
            own.random_state = np.random.RandomState([int(game.random_state), k])
        drawn.append([u for block in own.bootstrap(n, single=single) for u in block])
    return [list(tables) for tables in zip(*drawn, strict=True)]
