"""Coordinates of mixed profiles round the centre of a harmonic game.

x_i = q_i + B_i z_i, with B_i the Helmert basis of the directions of player i's simplex.
"""

import numpy as np
from scipy.linalg import block_diag

from .continuation import field_and_jacobian
from .game import NormalFormGame
from .profiles import simplex_basis

__all__ = ["Coordinates", "distinct_points"]


class Coordinates:
    """The map between strategies and coordinates z round the centre."""

    def __init__(self, game: NormalFormGame, measure: list[np.ndarray]) -> None:
        self.shape = game.shape
        self.center = np.concatenate([mu / mu.sum() for mu in measure])
        self.bases = np.ascontiguousarray(block_diag(*[simplex_basis(d) for d in game.shape]))
        masses = np.array([mu.sum() for mu in measure])
        # Payoffs without their nonstrategic part have the same F and lose no digits to it.
        payoffs = game.normalize(measure).payoffs.reshape(game.n_players, -1)
        n_actions = np.array(game.shape, dtype=np.int64)
        self.arrays = (payoffs, n_actions, self.bases, self.center, masses)
        self.dimension = self.bases.shape[1]
        self.size = float(masses.max() * np.sqrt(np.square(payoffs).mean()))
        self.scale = self.rank(np.zeros(self.dimension))[2]

    def flat(self, z: np.ndarray) -> np.ndarray:
        """Return concatenated strategies (..., s)."""
        return self.center + z @ self.bases.T

    def strategies(self, z: np.ndarray) -> list[np.ndarray]:
        """Return each player's strategies (..., d_i), cleared of rounding below zero."""
        parts = np.split(self.flat(z), np.cumsum(self.shape)[:-1], axis=-1)
        clipped = [np.where(x < 1e-13, 0.0, x) for x in parts]
        return [x / x.sum(axis=-1, keepdims=True) for x in clipped]

    def jacobian(self, z: np.ndarray) -> np.ndarray:
        """Return J(z)."""
        D = self.dimension
        J = np.empty((D, D))
        field_and_jacobian(*self.arrays, z, np.empty(len(self.center)), np.empty(D), J)
        return J

    def rank(self, z: np.ndarray, relative: float = 1e-9) -> tuple[int, np.ndarray, float]:
        """Return the numerical rank of J(z), its right singular vectors (rows), and its scale."""
        _, singular, Vt = np.linalg.svd(self.jacobian(z))
        scale = max(float(singular[0]) if len(singular) else 0.0, self.size)
        return int((singular > relative * scale).sum()), Vt, scale

    def tangent(self, z: np.ndarray) -> np.ndarray:
        """Return the unit vector (D,) along the curve through a smooth point of it."""
        return self.rank(z, 1e-7)[1][-1].copy()

    def gauge(self, z: np.ndarray) -> np.ndarray:
        """Return the least s with x in q + s (X - q), for each point (..., D)."""
        return -((z @ self.bases.T) / self.center).min(axis=-1)


def distinct_points(points: np.ndarray, apart: float = 1e-7) -> np.ndarray:
    """Return the points (k, D) without those that come close to an earlier one."""
    kept: list[np.ndarray] = []
    for z in points:
        if all(np.abs(z - other).max() > apart for other in kept):
            kept.append(z)
    return np.array(kept).reshape(len(kept), points.shape[1])
