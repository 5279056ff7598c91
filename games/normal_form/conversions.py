"""Where games come from and what they become: matrices, functions, tables, files, packages."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from .value import GameValue

__all__ = ["GameConversions"]


class GameConversions(GameValue):
    """The constructors ``from_*`` and the conversions ``to_*`` of `NormalFormGame`."""

    @classmethod
    def from_bimatrix(cls, A: ArrayLike, B: ArrayLike | None = None) -> Self:
        """Make a two-player game from the row player's and the column player's matrices.

        Parameters
        ----------
        A : array-like of shape (d_0, d_1)
            Payoffs of player 0.
        B : array-like of shape (d_0, d_1), optional
            Payoffs of player 1; None makes the game zero-sum, ``B = -A``.

        Returns
        -------
        NormalFormGame
            The game.
        """
        rows = np.asarray(A, dtype=float)
        columns = -rows if B is None else np.asarray(B, dtype=float)
        if rows.ndim != 2 or rows.shape != columns.shape:
            raise ValueError(
                f"A and B must be matrices of one shape, got {rows.shape} and {columns.shape}"
            )
        return cls(np.stack([rows, columns]))

    @classmethod
    def from_function(
        cls, f: Callable[[tuple[int, ...]], ArrayLike], n_actions: Sequence[int]
    ) -> Self:
        """Make a game by calling a function for each pure profile.

        Parameters
        ----------
        f : callable
            Takes a tuple of action indices, returns the n payoffs.
        n_actions : sequence of int
            Number of actions of each player.

        Returns
        -------
        NormalFormGame
            The game.

        Examples
        --------
        >>> from equipoise.games import NormalFormGame
        >>> NormalFormGame.from_function(lambda a: [a[0] == a[1], a[0] != a[1]], (2, 2)).payoffs[1]
        array([[0., 1.],
               [1., 0.]])
        """
        shape = tuple(int(d) for d in n_actions)
        payoffs = np.empty((len(shape), *shape))
        for profile in product(*map(range, shape)):
            values = np.asarray(f(profile), dtype=float)
            if values.shape != (len(shape),):
                raise ValueError(
                    f"f{profile} must return {len(shape)} payoffs, got shape {values.shape}"
                )
            payoffs[(slice(None), *profile)] = values  # type: ignore[index]
        return cls(payoffs)

    @classmethod
    def from_dataframe(
        cls, df: Any, action_columns: Sequence[str], payoff_columns: Sequence[str]
    ) -> Self:
        """Make a game from a table with one row for each pure profile.

        Parameters
        ----------
        df : pandas.DataFrame or polars.DataFrame
            The table.
        action_columns, payoff_columns : sequence of str
            For each player, the column of his action and that of his payoff. The names of the
            action columns become the players' names; actions are numbered in their order of
            appearance.

        Returns
        -------
        NormalFormGame
            The game.

        Raises
        ------
        ValueError
            If a profile is missing or stands there twice.
        """
        from .packages import read_dataframe

        payoffs, action_names = read_dataframe(df, action_columns, payoff_columns)
        return cls(payoffs, player_names=action_columns, action_names=action_names)

    def to_dataframe(self) -> pd.DataFrame:
        """Return the game as a table with one row for each pure profile.

        Returns
        -------
        pandas.DataFrame
            A column of action names for each player, then ``"payoff of <player>"`` for each player.
        """
        grid = np.indices(self.shape).reshape(self.n_players, -1)
        columns: dict[str, Any] = {
            name: np.array(actions, dtype=object)[codes]
            for name, actions, codes in zip(self.player_names, self.action_names, grid, strict=True)
        }
        for name, u in zip(self.player_names, self._payoffs, strict=True):
            columns[f"payoff of {name}"] = u.ravel()
        return pd.DataFrame(columns)

    @classmethod
    def from_nfg(cls, path_or_text: Any) -> Self:
        """Read Gambit's .nfg format; see `read_nfg` for the two forms it has.

        Parameters
        ----------
        path_or_text : str or path-like
            A file, or the text itself (it starts with ``NFG``).

        Returns
        -------
        NormalFormGame
            The game, with the file's names.

        Raises
        ------
        ValueError
            If the text can't be read; the message gives the line.
        """
        from .nfg import read_nfg

        payoffs, player_names, action_names = read_nfg(path_or_text)
        return cls(payoffs, player_names=player_names, action_names=action_names)

    def to_nfg(self, path: Any = None, title: str = "") -> str:
        """Write Gambit's .nfg format (payoff form).

        Parameters
        ----------
        path : str or path-like, optional
            File to write.
        title : str, default=""
            Title in the file's first line.

        Returns
        -------
        str
            The text; `from_nfg` gives back exactly this game.
        """
        from .nfg import write_nfg

        return write_nfg(self, path, title)

    @classmethod
    def from_pygambit(cls, g: Any) -> Self:
        """Make a game from a `pygambit.Game` (its reduced normal form if it is a tree)."""
        from .packages import read_pygambit

        payoffs, player_names, action_names = read_pygambit(g)
        return cls(payoffs, player_names=player_names, action_names=action_names)

    def to_pygambit(self, max_denominator: int | None = None) -> Any:
        """Return a `pygambit.Game`.

        Parameters
        ----------
        max_denominator : int, optional
            Round payoffs to the nearest fraction of at most this denominator; None keeps each
            float's exact value.

        Returns
        -------
        pygambit.Game
            With rational payoffs.
        """
        from .packages import write_pygambit

        return write_pygambit(self, max_denominator)

    @classmethod
    def from_nashpy(cls, g: Any) -> Self:
        """Make a game from a `nashpy.Game`."""
        return cls(np.stack([np.asarray(matrix, dtype=float) for matrix in g.payoff_matrices]))

    def to_nashpy(self) -> Any:
        """Return a `nashpy.Game`; only two-player games have one."""
        from .packages import write_nashpy

        return write_nashpy(self)

    @classmethod
    def from_quantecon(cls, g: Any) -> Self:
        """Make a game from a `quantecon.game_theory.NormalFormGame`."""
        from .packages import read_quantecon

        return cls(read_quantecon(g))

    def to_quantecon(self) -> Any:
        """Return a `quantecon.game_theory.NormalFormGame`."""
        from .packages import write_quantecon

        return write_quantecon(self)

    @classmethod
    def from_openspiel(cls, game_or_name: Any) -> Self:
        """Make a game from an OpenSpiel normal-form game, or the name of one."""
        from .packages import read_openspiel

        payoffs, action_names = read_openspiel(game_or_name)
        return cls(payoffs, action_names=action_names)

    def to_openspiel(self) -> Any:
        """Return an OpenSpiel matrix game (two players) or tensor game."""
        from .packages import write_openspiel

        return write_openspiel(self)
