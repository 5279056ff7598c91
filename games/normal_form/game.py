"""Normal-form games: an immutable value that holds every player's payoff for every pure profile.

Player i has d_i actions; `payoffs[i, a_0, ..., a_{n-1}]` is u_i(a). A mixed profile is a list x of
probability vectors; v_i(x)[a] = u_i(a; x_{-i}) is player i's payoff vector, and his Nash gap is max
v_i(x) - <v_i(x), x_i>. The sum of the gaps is NashConv, its mean over the players exploitability.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .contraction import contract_payoffs, pair_payoffs
from .conversions import GameConversions
from .hoeffding import Measure, check_measure
from .profiles import check_strategies, simplex_basis
from .structure import EPS, GameStructure

if TYPE_CHECKING:
    from .decomposition import GameDecomposition
    from .measure import HarmonicMeasure

__all__ = ["NormalFormGame", "as_game"]


class NormalFormGame(GameConversions, GameStructure):
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

    def exact_nash_gap(self, x: Sequence[Sequence[Any]]) -> Fraction:
        """Return NashConv in rational arithmetic, free of rounding; for small games.

        Parameters
        ----------
        x : list of sequence of float or Fraction, of length d_i
            A mixed profile. Floats stand for the exact binary fractions they are, and each strategy
            is divided by its exact sum.

        Returns
        -------
        Fraction
            Zero exactly at an equilibrium.

        Examples
        --------
        >>> from fractions import Fraction
        >>> from equipoise.games import NormalFormGame
        >>> game = NormalFormGame.from_bimatrix([[2, -1], [-1, 1]])
        >>> game.exact_nash_gap([[Fraction(2, 5), Fraction(3, 5)]] * 2)
        Fraction(0, 1)
        """
        check_strategies([[float(p) for p in x_i] for x_i in x], self.shape)
        exact = np.frompyfunc(Fraction, 1, 1)
        u = exact(self._payoffs.reshape(self.n_players, -1))
        strategies = [exact(np.array(list(x_i), dtype=object)) for x_i in x]
        strategies = [x_i / x_i.sum() for x_i in strategies]
        gaps = [
            max(v) - v @ x_i
            for v, x_i in zip(contract_payoffs(u, strategies, self.shape), strategies, strict=True)
        ]
        return sum(gaps, Fraction(0))

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

    # What it is made of

    def decompose(
        self, measure: Measure = None, components: str | Sequence[str] = "all"
    ) -> "GameDecomposition":
        """Split the game into a nonstrategic, a potential and a harmonic game; see `decompose`."""
        from .decomposition import decompose

        return decompose(self, measure, components=components)

    def find_harmonic_measure(self, tol: float = 1e-9) -> "HarmonicMeasure":
        """Search for a measure for which the game is harmonic; see `find_harmonic_measure`."""
        from .measure import find_harmonic_measure

        return find_harmonic_measure(self, tol)

    def is_potential(self, tol: float = 1e-9) -> bool:
        """Say whether the harmonic part is at most `tol` times the strategic part."""
        harmonic = np.abs(self.decompose(components=("harmonic",)).harmonic.payoffs).max()
        strategic = np.abs(self.normalize().payoffs).max()
        return bool(harmonic <= tol * strategic + 64 * EPS * np.abs(self._payoffs).max())


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
