"""Harmonic games: conflict without a common interest, for a known measure.

R(a) = sum_i sum_b mu_i(b) [u_i(a) - u_i(b, a_{-i})] = 0 for every pure profile a. Averaging over a
~ x gives the identity sum_i m_i <v_i(x), x_i - q_i> = 0 for every mixed profile x, so the centre
q_i = mu_i / m_i is a totally mixed Nash equilibrium, and the weighted regrets against q add up to
zero in any play.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .game import NormalFormGame
from .hoeffding import Measure, check_measure

__all__ = ["HarmonicGame"]


class HarmonicGame(NormalFormGame):
    """A game that is harmonic for a measure, checked when it is made.

    Parameters
    ----------
    payoffs : array-like of shape (n, d_0, ..., d_{n-1})
        As for `NormalFormGame`.
    measure : list of array-like of shape (d_i,), optional
        Positive weights mu_i of each player's actions; None is all ones. A common factor of all
        weights changes nothing, a factor for one player does.
    tol : float, default=1e-9
        Largest residual allowed, relative to the weighted payoff differences.
    player_names, action_names : optional
        As for `NormalFormGame`.

    Attributes
    ----------
    measure : list of ndarray
        The mu_i (read-only).
    masses : ndarray of shape (n,)
        m_i = sum(mu_i).
    center : list of ndarray
        q_i = mu_i / m_i, a totally mixed Nash equilibrium.
    dimension : int
        D = sum_i (d_i - 1), the dimension of the space of mixed profiles.
    is_odd_dimensional : bool
        Whether D is odd. Then equilibria form a variety of dimension at least 1 that reaches the
        boundary.

    Raises
    ------
    ValueError
        If the game isn't harmonic for the measure; the message names the worst profile and its
        residual.

    References
    ----------
    .. [1] D. Legacci, P. Mertikopoulos, C. Papadimitriou, G. Piliouras, B. Pradelski, "No-regret
       learning in harmonic games", 2024, definition 1.

    Examples
    --------
    >>> from equipoise.games import HarmonicGame
    >>> game = HarmonicGame([[[2, -1], [-1, 1]], [[-2, 1], [1, -1]]], measure=[[2, 3], [2, 3]])
    >>> game.center
    [array([0.4, 0.6]), array([0.4, 0.6])]
    >>> game.is_nash(game.center)
    True
    """

    def __init__(
        self,
        payoffs: ArrayLike,
        measure: Measure = None,
        *,
        tol: float = 1e-9,
        player_names: Sequence[str] | None = None,
        action_names: Sequence[Sequence[str]] | None = None,
    ) -> None:
        super().__init__(payoffs, player_names=player_names, action_names=action_names)
        self._measure = check_measure(measure, self.shape)
        residual = self.harmonic_residual(self._measure)
        allowed = self._residual_scale(self._measure, tol)
        worst = np.unravel_index(np.abs(residual).argmax(), self.shape)
        if not abs(residual[worst]) <= allowed:
            profile = tuple(int(a) for a in worst)
            raise ValueError(
                f"the game is not harmonic for this measure: the residual at profile {profile} is "
                f"{residual[worst]:.6g}, allowed is {allowed:.2g}; find_harmonic_measure "
                "searches for a measure, "
                "HarmonicGame.from_game projects"
            )
        for mu in self._measure:
            mu.flags.writeable = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for mu in self._measure:
            mu.flags.writeable = False

    @property
    def measure(self) -> list[np.ndarray]:
        return list(self._measure)

    @property
    def masses(self) -> np.ndarray:
        return np.array([mu.sum() for mu in self._measure])

    @property
    def center(self) -> list[np.ndarray]:
        return [mu / mu.sum() for mu in self._measure]

    @property
    def dimension(self) -> int:
        return sum(d - 1 for d in self.shape)

    @property
    def is_odd_dimensional(self) -> bool:
        return self.dimension % 2 == 1

    def to_weighted_zero_sum(self) -> NormalFormGame:
        """Return the strategically equivalent game Pi_i u_i, for which sum_i m_i u_i(a) = 0.

        Returns
        -------
        NormalFormGame
            Zero-sum with the weights `masses`.
        """
        return self.normalize(self._measure)

    @classmethod
    def from_game(cls, game: NormalFormGame, measure: Measure = None) -> Self:
        """Project a game to the nearest harmonic one: drop its potential part.

        Parameters
        ----------
        game : NormalFormGame
            Any game.
        measure : list of array-like, optional
            The measure to be harmonic for; None is all ones.

        Returns
        -------
        HarmonicGame
            u^N + u^H.
        """
        parts = game.decompose(measure, components=("potential",))
        return cls(
            game.payoffs - parts.potential.payoffs,
            measure,
            # The projection is exact up to rounding, relative to what was there before it.
            tol=1e-9
            + 1e-12
            * float(np.abs(game.payoffs).max())
            / max(
                float(np.abs(game.payoffs - parts.potential.payoffs).max()), np.finfo(float).tiny
            ),
            player_names=game.player_names,
            action_names=game.action_names,
        )

    def __eq__(self, other: object) -> bool:
        same = super().__eq__(other)
        if same is True and isinstance(other, HarmonicGame):
            return all(
                np.array_equal(a, b) for a, b in zip(self._measure, other._measure, strict=True)
            )
        return same

    __hash__ = NormalFormGame.__hash__
