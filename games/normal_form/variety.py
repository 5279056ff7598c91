"""The totally mixed equilibria of a harmonic game: a point, a polytope, or a curved variety.

With x_i = q_i + B_i z_i and F(z) = (m_i B_i^T v_i(x))_i, an interior x is Nash iff F(z) = 0, and
<F(z), z> = 0 for every z. The Jacobian at the centre is skew-symmetric, so its rank is even: for
odd D = sum_i (d_i - 1) it is singular, and F, tangent to every even-dimensional sphere round q, has
zeros at every distance from the centre out to the boundary. With two players F is linear and the
equilibria form a polytope; with more they are curved in general.
"""

import warnings
from functools import partial
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy.linalg import block_diag
from scipy.optimize import minimize_scalar
from scipy.spatial import HalfspaceIntersection
from sklearn.base import BaseEstimator, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from equipoise.explanation import Explanation

from .continuation import field_and_jacobian, follow_branch, project_to_zero
from .ftrl_setup import known_measure
from .game import NormalFormGame, as_game
from .hoeffding import Measure, check_measure
from .plots import plot_equilibria
from .profiles import simplex_basis

__all__ = ["EquilibriumVariety"]

ENDS = ("boundary", "loop", "max_steps", "stuck")


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


def crossing_points(coordinates: Coordinates, curve: np.ndarray, scale: float) -> list[np.ndarray]:
    """Return the points of a curve at which J has rank below D - 1: others may cross there."""
    if coordinates.dimension < 2:
        return []

    def second(z: np.ndarray) -> float:
        return float(np.linalg.svd(coordinates.jacobian(z), compute_uv=False)[-2]) / scale

    jacobians = np.stack([coordinates.jacobian(z) for z in curve])
    sizes = np.linalg.svd(jacobians, compute_uv=False)[:, -2] / scale
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


def point_table(name: str, strategies: list[np.ndarray]) -> pd.DataFrame:
    """Return a tidy table of points: set, point, player, action, probability."""
    tables = []
    for i, x in enumerate(strategies):
        point, action = np.indices(x.shape).reshape(2, -1)
        columns = {"point": point, "player": i, "action": action, "probability": x.ravel()}
        tables.append(pd.DataFrame({"set": name, **columns}))
    return pd.concat(tables, ignore_index=True)


def on_curve(z: np.ndarray, curve: np.ndarray, step: float) -> bool:
    """Say whether a point lies on a curve's polygon, to the error of chords of length `step`."""
    start, along = curve[:-1], np.diff(curve, axis=0)
    length = np.maximum(np.square(along).sum(axis=1), 1e-300)
    share = np.clip(((z - start) * along).sum(axis=1) / length, 0.0, 1.0)
    return bool(np.abs(start + share[:, None] * along - z).max(axis=1).min() < 0.05 * step)


class EquilibriumVariety(BaseEstimator):
    """All totally mixed equilibria that hang together with the centre of a harmonic game.

    Parameters
    ----------
    step : float, default=0.02
        Largest step of arclength along a curve (probabilities change by less).
    max_steps : int, default=5000
        Largest number of steps in one direction.
    tol : float, default=1e-12
        Largest last Newton correction of a point on a curve.
    n_starts : int, default=64
        Number of starts of the searches that aren't along a curve.
    random_state : int, RandomState or None, default=None
        For those searches, and for `sample`.

    Attributes
    ----------
    center_ : list of ndarray of shape (d_i,)
        The equilibrium q.
    dimension_ : int
        Dimension of the variety: 0 if the centre is isolated.
    jacobian_rank_ : int
        Rank of the Jacobian at the centre (even, since it is skew-symmetric).
    is_convex_ : bool
        Whether the variety is convex as far as it was traced: always with two players.
    branches_ : list of list of ndarray of shape (n_points, d_i)
        For each curve (or, for a segment, line) a strategy for each player and point, in order.
    ends_ : list of tuple of str
        How each branch ends on both sides: "boundary", "loop", "max_steps" or "stuck".
    boundary_points_ : list of ndarray of shape (n_points, d_i)
        Ends of the branches on the boundary, or vertices of the polytope.
    branch_points_ : list of ndarray of shape (n_points, d_i)
        Points where curves cross.
    nash_gap_ : float
        Largest NashConv of any point above: the certificate.

    References
    ----------
    .. [1] D. Legacci et al., "No-regret learning in harmonic games", 2024.
    .. [2] E. Allgower, K. Georg, "Introduction to numerical continuation methods", SIAM, 2003.

    Examples
    --------
    >>> from equipoise.datasets import make_harmonic_game
    >>> from equipoise.games import EquilibriumVariety
    >>> variety = EquilibriumVariety().fit(make_harmonic_game((2, 2, 2), random_state=0))
    >>> variety.dimension_, variety.is_convex_, variety.ends_
    (1, False, [('boundary', 'boundary')])
    >>> bool(variety.nash_gap_ < 1e-9)
    True
    """

    _parameter_constraints: dict = {
        "step": [Interval(Real, 0, 0.5, closed="right")],
        "max_steps": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 1e-15, 1e-6, closed="both")],
        "n_starts": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        step: float = 0.02,
        max_steps: int = 5000,
        tol: float = 1e-12,
        n_starts: int = 64,
        random_state: Any = None,
    ) -> None:
        self.step = step
        self.max_steps = max_steps
        self.tol = tol
        self.n_starts = n_starts
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, game: Any, measure: Measure = None) -> Self:
        """Find the dimension at the centre, and trace the variety to the boundary.

        Parameters
        ----------
        game : NormalFormGame or ndarray of shape (n, d_0, ..., d_{n-1})
            A harmonic game.
        measure : list of array-like, optional
            For which it is harmonic; None takes that of a `HarmonicGame`, else searches.

        Returns
        -------
        EquilibriumVariety
            The fitted solver.

        Raises
        ------
        ValueError
            If the game isn't harmonic (for the measure).
        """
        game = as_game(game)
        if measure is None:
            mu = known_measure(game, "EquilibriumVariety")
        else:
            mu = check_measure(measure, game.shape)
            if not game.is_harmonic(mu):
                worst = np.abs(game.harmonic_residual(mu)).max()
                raise ValueError(
                    f"the game is not harmonic for the measure: largest residual {worst:.3g}"
                )
        coordinates = Coordinates(game, mu)
        D = coordinates.dimension
        origin = np.zeros(D)
        rank, Vt, scale = coordinates.rank(origin)
        kernel = Vt[rank:].T  # (D, D - rank)
        movers = sum(d > 1 for d in game.shape)
        curves: list[np.ndarray] = []
        ends: list[tuple[str, str]] = []
        vertices = crossings = np.empty((0, D))
        if scale == 0.0 or rank == D:
            dimension, convex = (D if scale == 0.0 else 0), True
        elif movers <= 2:
            dimension, convex = D - rank, True
            if dimension == 1:
                curves = [segment(coordinates, kernel[:, 0], self.step)]
                ends = [("boundary", "boundary")]
            else:
                vertices = polytope_vertices(coordinates, kernel)
        else:
            starts = [origin] if kernel.shape[1] == 1 else self._zeros_near(coordinates, scale)
            dimension = max((D - coordinates.rank(z, 1e-7)[0] for z in starts), default=0)
            if dimension == 1:
                curves, ends, crossings = self._trace(coordinates, starts, scale)
            convex = self._is_convex(coordinates, curves, np.array(starts), dimension)

        if curves:
            tips = [
                curve[side]
                for curve, end in zip(curves, ends, strict=True)
                for side in (0, -1)
                if end[side] == "boundary"
            ]
            vertices = distinct_points(np.array(tips).reshape(len(tips), D))
        branches = [coordinates.strategies(curve) for curve in curves]
        boundary = coordinates.strategies(vertices)
        gaps = [game.nash_gap(x).max() for x in [*branches, boundary] if len(x[0])]
        self.center_ = coordinates.strategies(origin)
        self.dimension_ = int(dimension)
        self.jacobian_rank_ = rank
        self.is_convex_ = bool(convex)
        self.branches_, self.ends_ = branches, ends
        self.boundary_points_ = boundary
        self.branch_points_ = coordinates.strategies(crossings)
        self.nash_gap_ = float(max([game.nash_gap(self.center_), *gaps]))
        self._coordinates, self._curves, self._kernel, self._scale = (
            coordinates,
            curves,
            kernel,
            scale,
        )
        self._linear = movers <= 2
        short = [end for pair in ends for end in pair if end in ("max_steps", "stuck")]
        if short:
            warnings.warn(
                f"{len(short)} end(s) of the curve were not reached "
                f"({', '.join(sorted(set(short)))}); more or "
                "smaller steps may go on, the largest gap on what was traced is "
                f"{self.nash_gap_:.2g}",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _follow(
        self, coordinates: Coordinates, z: np.ndarray, direction: np.ndarray, scale: float
    ) -> tuple[np.ndarray, str]:
        points, end = follow_branch(
            *coordinates.arrays, z, direction, self.step, self.max_steps, scale, self.tol
        )
        return points, ENDS[end]

    def _trace(
        self, coordinates: Coordinates, starts: list[np.ndarray], scale: float
    ) -> tuple[list[np.ndarray], list[tuple[str, str]], np.ndarray]:
        """Follow the curves through the starts, and those that cross them, both ways."""
        curves: list[np.ndarray] = []
        ends: list[tuple[str, str]] = []
        crossings: list[np.ndarray] = []
        waiting = [(z, coordinates.rank(z, 1e-7)[1][-1].copy()) for z in starts]
        while waiting and len(curves) < self.n_starts:
            z, tangent = waiting.pop(0)
            forward, end_forward = self._follow(coordinates, z, tangent, scale)
            third = forward[min(2, len(forward) - 1)]
            if any(on_curve(third, curve, self.step) for curve in curves):
                continue
            if end_forward == "loop":
                curve, pair = np.vstack([forward, forward[:1]]), ("loop", "loop")
            else:
                backward, end_backward = self._follow(coordinates, z, -tangent, scale)
                curve, pair = np.vstack([backward[:0:-1], forward]), (end_backward, end_forward)
            curves.append(curve)
            ends.append(pair)
            for crossing in crossing_points(coordinates, curve, scale):
                if any(np.abs(crossing - other).max() < self.step for other in crossings):
                    continue
                crossings.append(crossing)
                kernel = coordinates.rank(crossing, 1e-5)[1][-2:]
                angles = np.pi * np.arange(4) / 4  # lines in the plane of the two tangents
                for direction in np.c_[np.cos(angles), np.sin(angles)] @ kernel:
                    z = crossing + 0.5 * self.step * direction
                    beside, found = project_to_zero(
                        *coordinates.arrays, z, direction, float(direction @ z), scale
                    )
                    if found and np.abs(beside - z).max() < self.step:
                        waiting.append((beside, coordinates.rank(beside, 1e-7)[1][-1].copy()))
        return curves, ends, np.array(crossings).reshape(len(crossings), coordinates.dimension)

    def _zeros_near(self, coordinates: Coordinates, scale: float) -> list[np.ndarray]:
        """Return interior zeros found by Gauss-Newton in planes beside the centre."""
        rng = check_random_state(self.random_state)
        D = coordinates.dimension
        found = []
        for radius in np.geomspace(0.02, 0.5, self.n_starts) * coordinates.center.min():
            normal = rng.standard_normal(D)
            normal /= np.linalg.norm(normal)
            # In a plane beside the centre, so that the search doesn't fall back on it.
            z, ok = project_to_zero(*coordinates.arrays, radius * normal, normal, radius, scale)
            if ok and coordinates.flat(z).min() > 0:
                found.append(z)
        return list(distinct_points(np.array(found))) if found else []

    def _is_convex(
        self, coordinates: Coordinates, curves: list[np.ndarray], points: np.ndarray, dimension: int
    ) -> bool:
        """Say whether there is one straight curve, or midpoints of points are zeros too."""
        if dimension == 0:
            return True
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

    def predict(self, X: Any = None) -> list[np.ndarray]:
        """Return the centre.

        Parameters
        ----------
        X : None
            Ignored.

        Returns
        -------
        list of ndarray of shape (d_i,)
            `center_`.
        """
        check_is_fitted(self)
        return self.center_

    def sample(self, n: int) -> list[np.ndarray]:
        """Draw equilibria from the variety.

        Curves are sampled uniformly by length, polytopes by hit-and-run; other varieties by
        projecting random points of the strategy space, which isn't uniform.

        Parameters
        ----------
        n : int
            Number of points.

        Returns
        -------
        list of ndarray of shape (n, d_i)
            Strategies.

        Raises
        ------
        RuntimeError
            If projection finds too few points.
        """
        check_is_fitted(self)
        if not isinstance(n, Integral) or n < 1:
            raise ValueError(f"n must be a positive integer, got {n!r}")
        rng = check_random_state(self.random_state)
        c = self._coordinates
        if self.dimension_ == 0:
            z = np.zeros((n, c.dimension))
        elif self._curves:
            z = self._sample_curves(n, rng)
        elif self._linear or self._scale == 0.0:
            z = self._hit_and_run(n, rng)
        else:
            z = self._sample_by_projection(n, rng)
        return c.strategies(z)

    def _sample_curves(self, n: int, rng: np.random.RandomState) -> np.ndarray:
        pieces = [np.linalg.norm(np.diff(curve, axis=0), axis=1) for curve in self._curves]
        lengths = np.concatenate(pieces)
        starts = np.concatenate([curve[:-1] for curve in self._curves])
        stops = np.concatenate([curve[1:] for curve in self._curves])
        piece = rng.choice(len(lengths), size=n, p=lengths / lengths.sum())
        share = rng.uniform(size=(n, 1))
        z = (1.0 - share) * starts[piece] + share * stops[piece]
        if self._linear:
            return z
        D = self._coordinates.dimension
        return np.array(
            [
                project_to_zero(*self._coordinates.arrays, z_k, np.zeros(D), 0.0, self._scale)[0]
                for z_k in z
            ]
        )

    def _hit_and_run(self, n: int, rng: np.random.RandomState) -> np.ndarray:
        c, kernel = self._coordinates, self._kernel
        rows = c.bases @ kernel
        position = np.zeros(kernel.shape[1])
        drawn = []
        for k in range(100 + 10 * n):
            direction = rng.standard_normal(len(position))
            slope, here = rows @ direction, c.center + rows @ position
            with np.errstate(divide="ignore", invalid="ignore"):
                limits = -here / slope
            low = np.max(limits[slope > 0], initial=-np.inf)
            high = np.min(limits[slope < 0], initial=np.inf)
            position = position + rng.uniform(low, high) * direction
            if k >= 100 and k % 10 == 0:
                drawn.append(kernel @ position)
        return np.array(drawn)

    def _sample_by_projection(self, n: int, rng: np.random.RandomState) -> np.ndarray:
        c = self._coordinates
        drawn: list[np.ndarray] = []
        for _ in range(200 * n + 1000):
            x = np.concatenate([rng.dirichlet(np.ones(d)) for d in c.shape])
            start = (x - c.center) @ c.bases
            z, found = project_to_zero(*c.arrays, start, np.zeros(c.dimension), 0.0, self._scale)
            if found and c.flat(z).min() >= 0:
                drawn.append(z)
                if len(drawn) == n:
                    return np.array(drawn)
        raise RuntimeError(f"only {len(drawn)} of {n} points were found by projection")

    def at_radius(self, s: float) -> list[np.ndarray]:
        """Return equilibria on the boundary of q + s (X - q), with X the space of mixed profiles.

        For odd D there is one for each s in (0, 1].

        Parameters
        ----------
        s : float
            Gauge distance from the centre, in (0, 1]; 1 is the boundary of X.

        Returns
        -------
        list of ndarray of shape (n_points, d_i)
            Distinct equilibria found along the branches and from `n_starts` random starts; none may
            be found for even D.
        """
        check_is_fitted(self)
        if not (isinstance(s, Real) and 0 < s <= 1):
            raise ValueError(f"s must be in (0, 1], got {s!r}")
        c = self._coordinates
        rng = check_random_state(self.random_state)
        starts: list[np.ndarray] = []
        for curve in self._curves:
            distance = c.gauge(curve) - s
            crossing = np.flatnonzero((distance[1:] > -1e-9) != (distance[:-1] > -1e-9))
            for k in crossing:
                share = -distance[k] / (distance[k + 1] - distance[k])
                starts.append(curve[k] + share * (curve[k + 1] - curve[k]))
        for _ in range(self.n_starts):
            x = np.concatenate([rng.dirichlet(np.ones(d)) for d in c.shape])
            z = (x - c.center) @ c.bases
            starts.append(z * (s / c.gauge(z)))
        found = []
        for start in starts:
            face = int(((start @ c.bases.T) / c.center).argmin())
            z, ok = project_to_zero(
                *c.arrays, start, c.bases[face].copy(), -s * c.center[face], self._scale or 1.0
            )
            if ok and abs(c.gauge(z) - s) < 1e-9:
                found.append(z)
        points = np.array(found).reshape(len(found), c.dimension)
        return c.strategies(distinct_points(points))

    def explain(self) -> Explanation:
        """Say whether the equilibrium is unique, and if not, what the set looks like.

        Returns
        -------
        Explanation
            A row for each point and probability; plot "equilibria" (the first two players).
        """
        check_is_fitted(self)
        D = self._coordinates.dimension
        sets = {"centre": [x[None] for x in self.center_], "boundary": self.boundary_points_}
        sets |= {f"branch {b}": branch for b, branch in enumerate(self.branches_)}
        frame = pd.concat(
            [point_table(name, strategies) for name, strategies in sets.items()], ignore_index=True
        )
        if self.dimension_ == 0:
            verdict = "the centre is isolated: no equilibrium is near it"
        else:
            form = "convex" if self.is_convex_ else "not convex"
            verdict = f"equilibria form a set of dimension {self.dimension_}, {form}"
        summary = [
            verdict,
            f"the strategy space has dimension {D}; the Jacobian at the centre has rank "
            f"{self.jacobian_rank_}",
            f"{len(self.boundary_points_[0])} point(s) on the boundary were reached",
            f"the largest Nash gap of all points given is {self.nash_gap_:.2g}",
        ]
        return Explanation(
            "Is the equilibrium unique?",
            summary,
            frame,
            {"equilibria": partial(plot_equilibria, self, (0, 1))} if len(self.center_) > 1 else {},
        )

    def plot(self, players: Any = None, ax: Any = None) -> Any:
        """Draw the branches, the centre and the boundary points.

        Parameters
        ----------
        players : sequence of int, optional
            One player with three actions: his simplex. Two or three: the probabilities of their
            first actions. None takes the first three players, or two.
        ax : matplotlib.axes.Axes, optional
            Where to draw (3-D for three players); None makes a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        check_is_fitted(self)
        return plot_equilibria(self, players, ax)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.no_validation = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = False
        return tags
