"""A game as an immutable value: payoffs, names, arithmetic, equality, and how it is shown."""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .profiles import check_names, check_payoffs

if TYPE_CHECKING:
    from .game import NormalFormGame

__all__ = ["GameValue"]


class GameValue:
    """The value that `NormalFormGame` is: `conversions` and `structure` add what one asks of it.

    Parameters
    ----------
    payoffs, player_names, action_names
        As for `NormalFormGame`.
    """

    def __init__(
        self,
        payoffs: ArrayLike,
        *,
        player_names: Sequence[str] | None = None,
        action_names: Sequence[Sequence[str]] | None = None,
    ) -> None:
        self._payoffs = check_payoffs(payoffs)
        n, *n_actions = self._payoffs.shape
        self._player_names = check_names(player_names, n, "player_names", "player ")
        if action_names is None:
            action_names = [[str(a) for a in range(d)] for d in n_actions]
        if len(action_names) != n:
            raise ValueError(
                f"action_names must hold one list for each of {n} players, got {len(action_names)}"
            )
        self._action_names = tuple(
            check_names(names, d, f"action_names[{i}]", "")
            for i, (names, d) in enumerate(zip(action_names, n_actions, strict=True))
        )

    def _like(self, payoffs: np.ndarray) -> "NormalFormGame":
        """Return a game with the same names around a fresh tensor, without copying it."""
        from .game import NormalFormGame

        payoffs.flags.writeable = False
        game = NormalFormGame.__new__(NormalFormGame)
        game._payoffs = payoffs
        game._player_names = self._player_names
        game._action_names = self._action_names
        return game

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._payoffs.flags.writeable = False  # pickling forgets it

    @property
    def payoffs(self) -> np.ndarray:
        return self._payoffs

    @property
    def player_names(self) -> tuple[str, ...]:
        return self._player_names

    @property
    def action_names(self) -> tuple[tuple[str, ...], ...]:
        return self._action_names

    @property
    def n_players(self) -> int:
        return int(self._payoffs.shape[0])

    @property
    def n_actions(self) -> tuple[int, ...]:
        return self._payoffs.shape[1:]

    @property
    def shape(self) -> tuple[int, ...]:
        return self._payoffs.shape[1:]

    @property
    def n_profiles(self) -> int:
        return prod(self.shape)

    def _matching(self, other: "GameValue") -> np.ndarray:
        if self.shape != other.shape:
            raise ValueError(f"the games must have one shape, got {self.shape} and {other.shape}")
        return other.payoffs

    def __add__(self, other: "GameValue") -> "NormalFormGame":
        if not isinstance(other, GameValue):
            return NotImplemented
        return self._like(check_payoffs(self._payoffs + self._matching(other)))

    def __sub__(self, other: "GameValue") -> "NormalFormGame":
        if not isinstance(other, GameValue):
            return NotImplemented
        return self._like(check_payoffs(self._payoffs - self._matching(other)))

    def __mul__(self, factor: ArrayLike) -> "NormalFormGame":
        c = np.asarray(factor, dtype=float)
        if c.shape not in ((), (self.n_players,)):
            raise ValueError(f"the factor must be a number or one a player, got shape {c.shape}")
        c = c.reshape(c.shape + (1,) * self.n_players) if c.ndim else c
        return self._like(check_payoffs(self._payoffs * c))

    __rmul__ = __mul__
    __array_ufunc__ = None  # an array on the left leaves the product to __rmul__

    def __neg__(self) -> "NormalFormGame":
        return self._like(-self._payoffs)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GameValue):
            return NotImplemented
        return (
            np.array_equal(self._payoffs, other._payoffs)
            and self.player_names == other.player_names
            and self.action_names == other.action_names
        )

    def __hash__(self) -> int:
        return hash((self.shape, (self._payoffs + 0.0).tobytes()))  # + 0.0: -0.0 equals 0.0

    def __repr__(self) -> str:
        actions = "x".join(str(d) for d in self.shape)
        players = "player" if self.n_players == 1 else "players"
        return f"{type(self).__name__}({self.n_players} {players}, {actions} actions)"

    def _rows(self, limit: int) -> Iterator[list[str]]:
        """Yield the HTML table's cells: player 0's actions down, the others' profiles across."""
        others = list(product(*map(range, self.shape[1:])))[:limit]
        yield [""] + [
            " / ".join(self.action_names[j + 1][a] for j, a in enumerate(rest)) for rest in others
        ]
        for a in range(min(self.shape[0], limit)):
            cells = [", ".join(f"{u[(a, *rest)]:.4g}" for u in self._payoffs) for rest in others]
            yield [self.action_names[0][a], *cells]

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self._rows(limit=12)
        )
        return f"<div><strong>{escape(repr(self))}</strong><table>{rows}</table></div>"
