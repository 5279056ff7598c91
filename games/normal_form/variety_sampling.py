"""Equilibria drawn from a variety: along curves, in polytopes, by projection, at a distance."""

import numpy as np

from .continuation import project_to_zero
from .coordinates import Coordinates, distinct_points

__all__ = ["hit_and_run", "points_at_gauge", "sample_by_projection", "sample_curves"]


def sample_curves(
    coordinates: Coordinates, curves: list[np.ndarray], n: int, rng: np.random.RandomState
) -> np.ndarray:
    """Draw points (n, D) uniformly by length."""
    lengths = np.concatenate([np.linalg.norm(np.diff(curve, axis=0), axis=1) for curve in curves])
    starts = np.concatenate([curve[:-1] for curve in curves])
    stops = np.concatenate([curve[1:] for curve in curves])
    piece = rng.choice(len(lengths), size=n, p=lengths / lengths.sum())
    share = rng.uniform(size=(n, 1))
    chords = (1.0 - share) * starts[piece] + share * stops[piece]
    nowhere = np.zeros(coordinates.dimension)
    return np.array(
        [
            project_to_zero(*coordinates.arrays, z, nowhere, 0.0, coordinates.scale)[0]
            for z in chords
        ]
    )


def hit_and_run(
    coordinates: Coordinates, kernel: np.ndarray, n: int, rng: np.random.RandomState
) -> np.ndarray:
    """Draw points (n, D) uniformly from the polytope of the strategies in the kernel's span."""
    rows = coordinates.bases @ kernel
    position = np.zeros(kernel.shape[1])
    drawn = []
    for k in range(100 + 10 * n):
        direction = rng.standard_normal(len(position))
        slope, here = rows @ direction, coordinates.center + rows @ position
        with np.errstate(divide="ignore", invalid="ignore"):
            limits = -here / slope
        low = np.max(limits[slope > 0], initial=-np.inf)
        high = np.min(limits[slope < 0], initial=np.inf)
        position = position + rng.uniform(low, high) * direction
        if k >= 100 and k % 10 == 0:
            drawn.append(kernel @ position)
    return np.array(drawn)


def random_profile(coordinates: Coordinates, rng: np.random.RandomState) -> np.ndarray:
    """Return the coordinates (D,) of Dirichlet(1) strategies."""
    x = np.concatenate([rng.dirichlet(np.ones(d)) for d in coordinates.shape])
    return (x - coordinates.center) @ coordinates.bases


def sample_by_projection(
    coordinates: Coordinates, n: int, rng: np.random.RandomState
) -> np.ndarray:
    """Draw points (n, D) by moving random profiles to the next zero."""
    nowhere = np.zeros(coordinates.dimension)
    drawn: list[np.ndarray] = []
    for _ in range(200 * n + 1000):
        start = random_profile(coordinates, rng)
        z, found = project_to_zero(*coordinates.arrays, start, nowhere, 0.0, coordinates.scale)
        if found and coordinates.flat(z).min() >= 0:
            drawn.append(z)
            if len(drawn) == n:
                return np.array(drawn)
    raise RuntimeError(f"only {len(drawn)} of {n} points were found by projection")


def points_at_gauge(
    coordinates: Coordinates,
    curves: list[np.ndarray],
    s: float,
    n_starts: int,
    rng: np.random.RandomState,
) -> np.ndarray:
    """Return distinct zeros (k, D) on the boundary of q + s (X - q).

    The searches start where the curves cross it, and from random points on it; each stays on the
    face it starts on.
    """
    starts: list[np.ndarray] = []
    for curve in curves:
        distance = coordinates.gauge(curve) - s
        crossing = np.flatnonzero((distance[1:] > -1e-9) != (distance[:-1] > -1e-9))
        for k in crossing:
            share = -distance[k] / (distance[k + 1] - distance[k])
            starts.append(curve[k] + share * (curve[k + 1] - curve[k]))
    for _ in range(n_starts):
        z = random_profile(coordinates, rng)
        starts.append(z * (s / coordinates.gauge(z)))
    found = []
    for start in starts:
        face = int(((start @ coordinates.bases.T) / coordinates.center).argmin())
        normal, level = coordinates.bases[face].copy(), -s * coordinates.center[face]
        z, ok = project_to_zero(*coordinates.arrays, start, normal, level, coordinates.scale or 1.0)
        if ok and abs(coordinates.gauge(z) - s) < 1e-9:
            found.append(z)
    return distinct_points(np.array(found).reshape(len(found), coordinates.dimension))
