"""Pieces of an equilibrium variety: segments, polytopes, curves that may cross, single zeros."""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.spatial import HalfspaceIntersection

from .continuation import field_and_jacobian, follow_branch, project_to_zero
from .coordinates import Coordinates, distinct_points

__all__ = ["is_convex", "polytope_vertices", "segment", "trace_curves", "zeros_near_center"]

ENDS = ("boundary", "loop", "max_steps", "stuck")


def segment(coordinates: Coordinates, direction: np.ndarray, step: float) -> np.ndarray:
    """Return points (k, D) along a straight line through the centre, from boundary to boundary."""
    slope = coordinates.bases @ direction
    with np.errstate(divide="ignore"):
        limits = -coordinates.center / np.where(slope == 0, np.nan, slope)
    low, high = np.nanmax(limits[slope > 0]), np.nanmin(limits[slope < 0])
    count = max(2, int(np.ceil((high - low) / step)) + 1)
    return np.linspace(low, high, count)[:, None] * direction


def polytope_vertices(coordinates: Coordinates, kernel: np.ndarray) -> np.ndarray:
    """Return the vertices (k, D) of the strategies in the centre plus the kernel's span."""
    rows = coordinates.bases @ kernel
    moving = np.abs(rows).max(axis=1) > 1e-12
    halfspaces = np.c_[-rows[moving], -coordinates.center[moving]]
    faces = HalfspaceIntersection(halfspaces, np.zeros(kernel.shape[1]))
    return distinct_points(faces.intersections @ kernel.T)


def crossing_points(coordinates: Coordinates, curve: np.ndarray) -> list[np.ndarray]:
    """Return the points of a curve at which J has rank below D - 1: others may cross there."""
    if coordinates.dimension < 2:
        return []

    def second(z: np.ndarray) -> float:
        return (
            float(np.linalg.svd(coordinates.jacobian(z), compute_uv=False)[-2]) / coordinates.scale
        )

    jacobians = np.stack([coordinates.jacobian(z) for z in curve])
    sizes = np.linalg.svd(jacobians, compute_uv=False)[:, -2] / coordinates.scale
    found = []
    for k in range(1, len(curve) - 1):
        if sizes[k] > min(sizes[k - 1], sizes[k + 1]) or sizes[k] > 0.05:
            continue

        def along(share: float, k: int = k) -> np.ndarray:
            ahead = curve[k + 1] - curve[k] if share > 0 else curve[k] - curve[k - 1]
            return curve[k] + share * ahead

        least = minimize_scalar(
            lambda share: second(along(share)), bounds=(-1, 1), method="bounded"
        )
        # A chord is off its curve by the square of its length, so the minimum isn't quite zero.
        if least.fun < 1e-3:
            found.append(along(least.x))
    return found


def on_curve(z: np.ndarray, curve: np.ndarray, step: float) -> bool:
    """Say whether a point lies on a curve's polygon, to the error of chords of length `step`."""
    start, along = curve[:-1], np.diff(curve, axis=0)
    length = np.maximum(np.square(along).sum(axis=1), 1e-300)
    share = np.clip(((z - start) * along).sum(axis=1) / length, 0.0, 1.0)
    return bool(np.abs(start + share[:, None] * along - z).max(axis=1).min() < 0.05 * step)


def trace_curves(
    coordinates: Coordinates,
    starts: list[np.ndarray],
    *,
    step: float,
    max_steps: int,
    tol: float,
    max_curves: int,
) -> tuple[list[np.ndarray], list[tuple[str, str]], np.ndarray]:
    """Follow the curves through the starts, and those that cross them, both ways.

    Parameters
    ----------
    coordinates : Coordinates
        Of the game.
    starts : list of ndarray of shape (D,)
        Zeros with positive strategies.
    step, max_steps, tol : float, int, float
        As for `follow_branch`.
    max_curves : int
        Number of curves at which the search ends.

    Returns
    -------
    curves : list of ndarray of shape (n_points, D)
        Points in order.
    ends : list of tuple of str
        How each curve ends on both sides.
    crossings : ndarray of shape (n_crossings, D)
        Where curves cross.
    """
    curves: list[np.ndarray] = []
    ends: list[tuple[str, str]] = []
    crossings: list[np.ndarray] = []

    def follow(z: np.ndarray, direction: np.ndarray) -> tuple[np.ndarray, str]:
        points, end = follow_branch(
            *coordinates.arrays, z, direction, step, max_steps, coordinates.scale, tol
        )
        return points, ENDS[end]

    waiting = [(z, coordinates.tangent(z)) for z in starts]
    while waiting and len(curves) < max_curves:
        z, tangent = waiting.pop(0)
        forward, end_forward = follow(z, tangent)
        third = forward[min(2, len(forward) - 1)]
        if any(on_curve(third, curve, step) for curve in curves):
            continue
        if end_forward == "loop":
            curve, pair = np.vstack([forward, forward[:1]]), ("loop", "loop")
        else:
            backward, end_backward = follow(z, -tangent)
            curve, pair = np.vstack([backward[:0:-1], forward]), (end_backward, end_forward)
        curves.append(curve)
        ends.append(pair)
        for crossing in crossing_points(coordinates, curve):
            if any(np.abs(crossing - other).max() < step for other in crossings):
                continue
            crossings.append(crossing)
            beside = zeros_beside(coordinates, crossing, step)
            waiting += [(z, coordinates.tangent(z)) for z in beside]
    return curves, ends, np.array(crossings).reshape(len(crossings), coordinates.dimension)


def zeros_beside(coordinates: Coordinates, crossing: np.ndarray, step: float) -> list[np.ndarray]:
    """Return zeros near a point where two curves cross, on either."""
    kernel = coordinates.rank(crossing, 1e-5)[1][-2:]
    angles = np.pi * np.arange(4) / 4  # lines in the plane of the two tangents
    found = []
    for direction in np.c_[np.cos(angles), np.sin(angles)] @ kernel:
        z = crossing + 0.5 * step * direction
        beside, ok = project_to_zero(
            *coordinates.arrays, z, direction, float(direction @ z), coordinates.scale
        )
        if ok and np.abs(beside - z).max() < step:
            found.append(beside)
    return found


def zeros_near_center(
    coordinates: Coordinates, n_starts: int, rng: np.random.RandomState
) -> list[np.ndarray]:
    """Return interior zeros found by Gauss-Newton in planes beside the centre."""
    D = coordinates.dimension
    found = []
    for radius in np.geomspace(0.02, 0.5, n_starts) * coordinates.center.min():
        normal = np.asarray(rng.standard_normal(D))
        normal = normal / np.linalg.norm(normal)
        # In a plane beside the centre, so that the search doesn't fall back on it.
        z, ok = project_to_zero(
            *coordinates.arrays, radius * normal, normal, radius, coordinates.scale
        )
        if ok and coordinates.flat(z).min() > 0:
            found.append(z)
    return list(distinct_points(np.array(found))) if found else []


def is_convex(coordinates: Coordinates, curves: list[np.ndarray], points: np.ndarray) -> bool:
    """Say whether there is one straight curve, or midpoints of points are zeros too."""
    if curves:
        singular = np.linalg.svd(curves[0] - curves[0].mean(axis=0), compute_uv=False)
        return len(curves) == 1 and bool(singular[1:].max(initial=0.0) < 1e-6 * singular[0])
    F, J = np.empty(coordinates.dimension), np.empty((coordinates.dimension,) * 2)
    for z in points[1:]:
        field_and_jacobian(
            *coordinates.arrays, 0.5 * (z + points[0]), np.empty(len(coordinates.center)), F, J
        )
        if np.abs(F).max() > 1e-8 * coordinates.size:
            return False
    return True
