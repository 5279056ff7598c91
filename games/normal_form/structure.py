"""What one asks of a game's structure: is it harmonic, potential, zero-sum, equivalent to another?

All tests compare with the size of the payoff differences, plus what rounding of the payoffs leaves.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from .hoeffding import Measure, check_measure, divergence, subtract_average
from .value import GameValue

if TYPE_CHECKING:
    from .game import NormalFormGame

__all__ = ["GameStructure"]

EPS = float(np.finfo(float).eps)


class GameStructure(GameValue):
    """The questions about structure that `NormalFormGame` answers."""

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
