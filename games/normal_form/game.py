"""Normal-form games: an immutable value that holds every player's payoff for every pure profile.

Player i has d_i actions; `payoffs[i, a_0, ..., a_{n-1}]` is u_i(a). A mixed profile is a list x of
probability vectors; v_i(x)[a] = u_i(a; x_{-i}) is player i's payoff vector, and his Nash gap is max
v_i(x) - <v_i(x), x_i>. The sum of the gaps is NashConv, its mean over the players exploitability.
"""

from collections.abc import Callable, Iterator, Sequence
from html import escape
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from .contraction import contract_payoffs, pair_payoffs
from .hoeffding import Measure, check_measure, divergence, subtract_average
from .profiles import check_names, check_payoffs, check_strategies, simplex_basis

if TYPE_CHECKING:
    from .decomposition import GameDecomposition
    from .measure import HarmonicMeasure

__all__ = ["NormalFormGame", "as_game"]

EPS = float(np.finfo(float).eps)


class NormalFormGame:
    """A finite game in normal form.

    The value can't be changed after it is made: the payoff tensor is read-only, and arithmetic
    makes new games.

    Parameters
    ----------
    payoffs : array-like of shape (n, d_0, ..., d_{n-1})
        ``payoffs[i, a_0, ..., a_{n-1}]`` is what player i gets; copied to float64.
    player_names : sequence of str, optional
        Distinct names; the default is "player 0", "player 1", ...
    action_names : sequence of sequence of str, optional
        For each player, distinct names of his actions; the default is "0", "1", ...

    Attributes
    ----------
    payoffs : ndarray of shape (n, d_0, ..., d_{n-1})
        Read-only float64 tensor.
    n_players : int
        Number of players n.
    n_actions : tuple of int
        Number of actions d_i of each player.
    n_profiles : int
        Number M of pure profiles.
    shape : tuple of int
        The same as `n_actions`: the shape of one player's payoff tensor.
    player_names : tuple of str
    action_names : tuple of tuple of str

    Raises
    ------
    ValueError
        If the shape isn't that of a game, a player has no action, a payoff isn't finite (the
        message gives its index), or names don't fit.

    See Also
    --------
    HarmonicGame : A game that is harmonic for a known measure.
    FTRLPlus : Learning in a game.

    References
    ----------
    .. [1] Y. Shoham, K. Leyton-Brown, "Multiagent Systems", Cambridge University Press, 2009,
       chapter 3.

    Examples
    --------
    >>> from equipoise.games import NormalFormGame
    >>> pennies = NormalFormGame.from_bimatrix([[1, -1], [-1, 1]])
    >>> pennies
    NormalFormGame(2 players, 2x2 actions)
    >>> pennies.nash_gap([[0.5, 0.5], [0.5, 0.5]])
    0.0
    >>> pennies.nash_gap([[1.0, 0.0], [0.5, 0.5]])
    1.0
    """

    def __init__(
        self,
        payoffs: ArrayLike,
        *,
        player_names: Sequence[str] | None = None,
        action_names: Sequence[Sequence[str]] | None = None,
    ) -> None:
        self._hold(check_payoffs(payoffs), player_names, action_names)

    def _hold(
        self,
        payoffs: np.ndarray,
        player_names: Sequence[str] | None,
        action_names: Sequence[Sequence[str]] | None,
    ) -> None:
        n = payoffs.shape[0]
        self._payoffs = payoffs
        self._player_names = check_names(player_names, n, "player_names", "player ")
        if action_names is None:
            action_names = [[str(a) for a in range(d)] for d in payoffs.shape[1:]]
        if len(action_names) != n:
            raise ValueError(
                f"action_names must hold one list for each of {n} players, got {len(action_names)}"
            )
        self._action_names = tuple(
            check_names(names, d, f"action_names[{i}]", "")
            for i, (names, d) in enumerate(zip(action_names, payoffs.shape[1:], strict=True))
        )

    def _like(self, payoffs: np.ndarray) -> "NormalFormGame":
        """Return a game with the same names around a fresh tensor, without copying it."""
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

    # Other representations

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
        from .conversions import read_dataframe

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
        from .conversions import read_pygambit

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
        from .conversions import write_pygambit

        return write_pygambit(self, max_denominator)

    @classmethod
    def from_nashpy(cls, g: Any) -> Self:
        """Make a game from a `nashpy.Game`."""
        return cls(np.stack([np.asarray(matrix, dtype=float) for matrix in g.payoff_matrices]))

    def to_nashpy(self) -> Any:
        """Return a `nashpy.Game`; only two-player games have one."""
        from .conversions import write_nashpy

        return write_nashpy(self)

    @classmethod
    def from_quantecon(cls, g: Any) -> Self:
        """Make a game from a `quantecon.game_theory.NormalFormGame`."""
        from .conversions import read_quantecon

        return cls(read_quantecon(g))

    def to_quantecon(self) -> Any:
        """Return a `quantecon.game_theory.NormalFormGame`."""
        from .conversions import write_quantecon

        return write_quantecon(self)

    @classmethod
    def from_openspiel(cls, game_or_name: Any) -> Self:
        """Make a game from an OpenSpiel normal-form game, or the name of one."""
        from .conversions import read_openspiel

        payoffs, action_names = read_openspiel(game_or_name)
        return cls(payoffs, action_names=action_names)

    def to_openspiel(self) -> Any:
        """Return an OpenSpiel matrix game (two players) or tensor game."""
        from .conversions import write_openspiel

        return write_openspiel(self)

    # Playing

    def payoff_vectors(self, x: Sequence[ArrayLike]) -> list[np.ndarray]:
        """Return v_i(x), what each of a player's actions earns against the others' strategies.

        Parameters
        ----------
        x : list of array-like of shape (d_i,) or (n_points, d_i)
            A mixed profile, or many.

        Returns
        -------
        list of ndarray
            For each player, of the shape of ``x[i]``.
        """
        checked = check_strategies(x, self.shape)
        return contract_payoffs(self._payoffs.reshape(self.n_players, -1), checked, self.shape)

    def expected_payoffs(self, x: Sequence[ArrayLike]) -> np.ndarray:
        """Return u_i(x).

        Parameters
        ----------
        x : list of array-like of shape (d_i,) or (n_points, d_i)
            A mixed profile, or many.

        Returns
        -------
        ndarray of shape (n,) or (n_points, n)
            Expected payoff of each player.
        """
        pairs = zip(self.payoff_vectors(x), x, strict=True)
        return np.stack([(v * np.asarray(x_i)).sum(axis=-1) for v, x_i in pairs], axis=-1)

    def nash_gap(self, x: Sequence[ArrayLike], aggregate: str | None = "sum") -> Any:
        """Return what the players could gain by deviating from a mixed profile.

        Parameters
        ----------
        x : list of array-like of shape (d_i,) or (n_points, d_i)
            A mixed profile, or many.
        aggregate : {"sum", "max", "mean"} or None, default="sum"
            "sum" is NashConv and "mean" exploitability, as OpenSpiel calls them;
            None keeps the players apart.

        Returns
        -------
        float or ndarray
            A number for one profile, an array of shape (n_points,) for many; with None a last axis
            of length n.
            Never negative.
        """
        reduce: dict[str, Any] = {"sum": np.sum, "max": np.max, "mean": np.mean}
        if aggregate is not None and aggregate not in reduce:
            raise ValueError(
                f"aggregate={aggregate!r} is not known; allowed: 'sum', 'max', 'mean', None"
            )
        checked = check_strategies(x, self.shape)
        pairs = zip(self.payoff_vectors(checked), checked, strict=True)
        gaps = np.stack([v.max(axis=-1) - (v * x_i).sum(axis=-1) for v, x_i in pairs], axis=-1)
        gaps = np.maximum(gaps, 0.0)
        if aggregate is None:
            return gaps
        total = reduce[aggregate](gaps, axis=-1)
        return float(total) if np.ndim(total) == 0 else total

    def is_nash(self, x: Sequence[ArrayLike], tol: float = 1e-8) -> bool:
        """Say whether no player can gain more than `tol` by deviating from x."""
        return bool(self.nash_gap(x, aggregate="max") <= tol)

    def best_responses(self, x: Sequence[ArrayLike], tol: float = 1e-8) -> list[np.ndarray]:
        """Return the actions that earn within `tol` of the best against x.

        Parameters
        ----------
        x : list of array-like of shape (d_i,)
            A mixed profile.
        tol : float, default=1e-8
            How much less than the best still counts.

        Returns
        -------
        list of ndarray of int
            For each player, ascending action indices.
        """
        return [np.flatnonzero(v >= v.max() - tol) for v in self.payoff_vectors(x)]

    def pure_nash(self) -> np.ndarray:
        """Return all pure Nash equilibria.

        Returns
        -------
        ndarray of shape (n_equilibria, n)
            Action indices, in lexicographic order.
        """
        stable = np.ones(self.shape, dtype=bool)
        for i, u in enumerate(self._payoffs):
            stable &= u >= u.max(axis=i, keepdims=True)
        return np.argwhere(stable)

    def jacobian(self, x: Sequence[ArrayLike], measure: Measure = None) -> np.ndarray:
        """Return the Jacobian of F(z) = (m_i B_i^T v_i(q + B z))_i at a mixed profile.

        B_i is the Helmert basis of the directions of player i's simplex. At the centre of a
        harmonic game the matrix is skew-symmetric.

        Parameters
        ----------
        x : list of array-like of shape (d_i,)
            A mixed profile.
        measure : list of array-like, optional
            Gives the masses m_i; None is all ones, so m_i = d_i.

        Returns
        -------
        ndarray of shape (D, D)
            D = sum_i (d_i - 1).
        """
        checked = check_strategies(x, self.shape)
        masses = [mu.sum() for mu in check_measure(measure, self.shape)]
        bases = [simplex_basis(d) for d in self.shape]
        blocks = [
            [
                np.zeros((self.shape[i] - 1, self.shape[j] - 1))
                if i == j
                else masses[i] * bases[i].T @ pair_payoffs(self._payoffs, checked, i, j) @ bases[j]
                for j in range(self.n_players)
            ]
            for i in range(self.n_players)
        ]
        return np.block(blocks)

    # Structure

    def normalize(self, measure: Measure = None) -> "NormalFormGame":
        """Return the equivalent game Pi_i u_i, whose payoffs average to zero over own actions.

        Parameters
        ----------
        measure : list of array-like, optional
            Weights of the average; None is all ones.

        Returns
        -------
        NormalFormGame
            With the same payoff differences.
        """
        strategic = np.empty(self._payoffs.shape)
        for i, mu in enumerate(check_measure(measure, self.shape)):
            subtract_average(self._payoffs[i], mu, i, out=strategic[i])
        return self._like(strategic)

    def decompose(
        self, measure: Measure = None, components: str | Sequence[str] = "all"
    ) -> "GameDecomposition":
        """Split the game into a nonstrategic, a potential and a harmonic game; see `decompose`."""
        from .decomposition import decompose

        return decompose(self, measure, components=components)

    def harmonic_residual(self, measure: Measure = None) -> np.ndarray:
        """Return R(a) = sum_i sum_b mu_i(b) [u_i(a) - u_i(b, a_{-i})], zero if harmonic.

        Parameters
        ----------
        measure : list of array-like, optional
            The mu_i; None is all ones.

        Returns
        -------
        ndarray of shape (d_0, ..., d_{n-1})
            The residual of each pure profile.
        """
        return divergence(self._payoffs, check_measure(measure, self.shape))

    def is_harmonic(self, measure: Measure = None, tol: float = 1e-9) -> bool:
        """Say whether the game is harmonic for a measure.

        Parameters
        ----------
        measure : list of array-like, optional
            The mu_i; None is all ones. `find_harmonic_measure` searches for one.
        tol : float, default=1e-9
            Largest residual that counts as zero, relative to the weighted payoff differences.

        Returns
        -------
        bool
            Whether every profile's residual is within it.
        """
        residual = np.abs(self.harmonic_residual(measure)).max()
        return bool(residual <= self._residual_scale(measure, tol))

    def _residual_scale(self, measure: Measure, tol: float) -> float:
        """Return tol times the size of sum_i m_i |Pi_i u_i|, plus what rounding leaves."""
        checked = check_measure(measure, self.shape)
        strategic = self.normalize(checked).payoffs
        scale = sum(mu.sum() * np.abs(w).max() for mu, w in zip(checked, strategic, strict=True))
        rounding = sum(
            mu.sum() * np.abs(u).max() for mu, u in zip(checked, self._payoffs, strict=True)
        )
        return float(tol * scale + 64 * EPS * rounding)

    def find_harmonic_measure(self, tol: float = 1e-9) -> "HarmonicMeasure":
        """Search for a measure for which the game is harmonic; see `find_harmonic_measure`."""
        from .measure import find_harmonic_measure

        return find_harmonic_measure(self, tol)

    def is_potential(self, tol: float = 1e-9) -> bool:
        """Say whether the harmonic part is at most `tol` times the strategic part."""
        harmonic = np.abs(self.decompose(components=("harmonic",)).harmonic.payoffs).max()
        strategic = np.abs(self.normalize().payoffs).max()
        return bool(harmonic <= tol * strategic + 64 * EPS * np.abs(self._payoffs).max())

    def is_zero_sum(self, weights: ArrayLike | None = None, tol: float = 1e-9) -> bool:
        """Say whether sum_i weights[i] u_i(a) is zero for every a.

        Parameters
        ----------
        weights : array-like of shape (n,), optional
            None is all ones.
        tol : float, default=1e-9
            Relative to the largest weighted payoff.

        Returns
        -------
        bool
            Whether it is.
        """
        w = np.ones(self.n_players) if weights is None else np.asarray(weights, dtype=float)
        if w.shape != (self.n_players,):
            raise ValueError(f"weights must have shape ({self.n_players},), got {w.shape}")
        largest = max(abs(w_i) * np.abs(u).max() for w_i, u in zip(w, self._payoffs, strict=True))
        return bool(np.abs(np.tensordot(w, self._payoffs, axes=1)).max() <= tol * largest)

    def is_strategically_equivalent(
        self, other: "NormalFormGame", tol: float = 1e-9, rescaling: bool = False
    ) -> bool:
        """Say whether another game has the same payoff differences.

        Parameters
        ----------
        other : NormalFormGame
            The game to compare with.
        tol : float, default=1e-9
            Relative to the largest payoff difference of each player.
        rescaling : bool, default=False
            Whether a player's payoffs may also be multiplied by a positive number.

        Returns
        -------
        bool
            False too if the games have different shapes.
        """
        if self.shape != other.shape:
            return False
        noise = 64 * EPS
        pairs = zip(self.normalize().payoffs, other.normalize().payoffs, strict=True)
        for i, (u, w) in enumerate(pairs):
            rounding = noise * np.abs(self._payoffs[i]).max()
            if rescaling:
                size_u, size_w = np.abs(u).max(), np.abs(w).max()
                if size_w > noise * np.abs(other.payoffs[i]).max() and size_u > 0:
                    w = w * (size_u / size_w)
            if np.abs(u - w).max() > tol * max(np.abs(u).max(), np.abs(w).max()) + rounding:
                return False
        return True

    # Arithmetic

    def _matching(self, other: "NormalFormGame") -> np.ndarray:
        if self.shape != other.shape:
            raise ValueError(f"the games must have one shape, got {self.shape} and {other.shape}")
        return other.payoffs

    def __add__(self, other: "NormalFormGame") -> "NormalFormGame":
        if not isinstance(other, NormalFormGame):
            return NotImplemented
        return self._like(check_payoffs(self._payoffs + self._matching(other)))

    def __sub__(self, other: "NormalFormGame") -> "NormalFormGame":
        if not isinstance(other, NormalFormGame):
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
        if not isinstance(other, NormalFormGame):
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


def as_game(game: Any) -> NormalFormGame:
    """Return a game as it is, or make one of a payoff tensor.

    Parameters
    ----------
    game : NormalFormGame or array-like of shape (n, d_0, ..., d_{n-1})
        What a solver was given.

    Returns
    -------
    NormalFormGame
        The game.

    Raises
    ------
    TypeError
        If it is neither.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games.normal_form.game import as_game
    >>> as_game(np.zeros((2, 2, 3)))
    NormalFormGame(2 players, 2x3 actions)
    """
    if isinstance(game, NormalFormGame):
        return game
    if isinstance(game, np.ndarray):
        return NormalFormGame(game)
    raise TypeError(
        f"game must be a NormalFormGame or a payoff tensor (ndarray), got {type(game).__name__}"
    )
