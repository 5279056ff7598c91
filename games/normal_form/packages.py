"""Games of tables, pygambit, nashpy, quantecon and OpenSpiel, each imported when it is needed."""

from collections.abc import Sequence
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from equipoise.imports import optional_import

if TYPE_CHECKING:
    from .value import GameValue

__all__ = [
    "read_dataframe",
    "read_openspiel",
    "read_pygambit",
    "read_quantecon",
    "write_nashpy",
    "write_openspiel",
    "write_pygambit",
    "write_quantecon",
]


def read_dataframe(
    df: Any, action_columns: Sequence[str], payoff_columns: Sequence[str]
) -> tuple[np.ndarray, list[list[str]]]:
    """Return payoffs and action names of a table with one row for each pure profile."""
    if len(action_columns) != len(payoff_columns):
        raise ValueError(
            "action_columns and payoff_columns must have one entry a player, got "
            f"{len(action_columns)} and {len(payoff_columns)}"
        )
    coded = [pd.factorize(np.asarray(df[column], dtype=object)) for column in action_columns]
    shape = tuple(len(names) for _, names in coded)
    if any((codes < 0).any() for codes, _ in coded):
        raise ValueError("an action is missing (None or NaN) in action_columns")
    rows = np.ravel_multi_index(tuple(codes for codes, _ in coded), shape)
    counts = np.bincount(rows, minlength=prod(shape))
    if (counts != 1).any():
        profile = np.unravel_index(int(np.flatnonzero(counts != 1)[0]), shape)
        named = [names[a] for (_, names), a in zip(coded, profile, strict=True)]
        raise ValueError(
            f"the profile {named} stands in {counts[counts != 1][0]} rows; each must stand in one"
        )
    payoffs = np.empty((len(shape), prod(shape)))
    for i, column in enumerate(payoff_columns):
        payoffs[i, rows] = np.asarray(df[column], dtype=float)
    return payoffs.reshape(len(shape), *shape), [
        [str(name) for name in names] for _, names in coded
    ]


def read_pygambit(g: Any) -> tuple[np.ndarray, list[str] | None, list[list[str]]]:
    """Return payoffs, player names and action names of a `pygambit.Game`."""
    optional_import("pygambit", "games")
    payoffs = np.stack([np.asarray(tensor, dtype=float) for tensor in g.to_arrays(dtype=float)])
    players = [player.label for player in g.players]
    actions = [[strategy.label for strategy in player.strategies] for player in g.players]
    return payoffs, players if len(set(players)) == len(players) else None, actions


def write_pygambit(game: "GameValue", max_denominator: int | None) -> Any:
    """Return a `pygambit.Game`, with exact or rounded fractions."""
    gambit = optional_import("pygambit", "games")

    def fraction(value: float) -> Fraction:
        exact = Fraction(float(value))
        return exact if max_denominator is None else exact.limit_denominator(max_denominator)

    rational = np.frompyfunc(fraction, 1, 1)
    g = gambit.Game.from_arrays(*(np.asarray(rational(u), dtype=object) for u in game.payoffs))
    for player, name, actions in zip(g.players, game.player_names, game.action_names, strict=True):
        player.label = name
        # In two steps: pygambit refuses a label that another strategy still has.
        for prefix in ("new ", ""):
            for strategy, action in zip(player.strategies, actions, strict=True):
                strategy.label = prefix + action
    return g


def write_nashpy(game: "GameValue") -> Any:
    """Return a `nashpy.Game`."""
    nashpy = optional_import("nashpy", "games")
    if game.n_players != 2:
        raise ValueError(f"nashpy knows only games of two players, this one has {game.n_players}")
    return nashpy.Game(game.payoffs[0].copy(), game.payoffs[1].copy())


def read_quantecon(g: Any) -> np.ndarray:
    """Return the payoffs of a quantecon game, whose tensors begin with the player's own axis."""
    n = g.N
    tensors = []
    for i, player in enumerate(g.players):
        own_first = np.asarray(player.payoff_array, dtype=float)
        order = [i, *range(i + 1, n), *range(i)]  # whose axis stands where
        tensors.append(own_first.transpose(np.argsort(order)))
    return np.stack(tensors)


def write_quantecon(game: "GameValue") -> Any:
    """Return a `quantecon.game_theory.NormalFormGame`."""
    theory = optional_import("quantecon.game_theory", "games")
    n = game.n_players
    players = [
        # copies: quantecon's compiled solvers refuse read-only arrays
        theory.Player(np.array(u.transpose([i, *range(i + 1, n), *range(i)]), order="C"))
        for i, u in enumerate(game.payoffs)
    ]
    return theory.NormalFormGame(players)


def read_openspiel(game_or_name: Any) -> tuple[np.ndarray, list[list[str]]]:
    """Return payoffs and action names of an OpenSpiel normal-form game."""
    pyspiel = optional_import("pyspiel", "games")
    game = pyspiel.load_game(game_or_name) if isinstance(game_or_name, str) else game_or_name
    if not isinstance(game, pyspiel.MatrixGame | pyspiel.TensorGame):
        kind = game.get_type()
        if kind.dynamics != pyspiel.GameType.Dynamics.SIMULTANEOUS or game.max_game_length() != 1:
            raise ValueError(
                f"{kind.short_name!r} is not a one-shot OpenSpiel game; allowed: matrix and "
                "tensor games, and "
                "simultaneous games of one move"
            )
        game = pyspiel.extensive_to_tensor_game(game)
    n = game.num_players()
    if isinstance(game, pyspiel.MatrixGame):
        payoffs = np.stack([game.row_utilities(), game.col_utilities()]).astype(float)
        names = [
            [game.row_action_name(a) for a in range(game.num_rows())],
            [game.col_action_name(a) for a in range(game.num_cols())],
        ]
    else:
        shape = tuple(game.shape())
        payoffs = np.stack(
            [np.asarray(game.player_utilities(i), dtype=float).reshape(shape) for i in range(n)]
        )
        names = [[game.action_name(i, a) for a in range(shape[i])] for i in range(n)]
    return payoffs, [
        own if len(set(own)) == len(own) else [str(a) for a in range(len(own))] for own in names
    ]


def write_openspiel(game: "GameValue") -> Any:
    """Return a `pyspiel.MatrixGame` (two players) or `pyspiel.TensorGame`."""
    pyspiel = optional_import("pyspiel", "games")
    names = [list(actions) for actions in game.action_names]
    if game.n_players == 2:
        return pyspiel.create_matrix_game(
            "equipoise",
            "equipoise game",
            *names,
            game.payoffs[0].tolist(),
            game.payoffs[1].tolist(),
        )
    utilities = [u.ravel().tolist() for u in game.payoffs]
    return pyspiel.create_tensor_game("equipoise", "equipoise game", names, utilities)
