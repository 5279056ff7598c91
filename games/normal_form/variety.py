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
from sklearn.base import BaseEstimator, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from equipoise.explanation import Explanation

from .coordinates import Coordinates, distinct_points
from .ftrl_setup import known_measure
from .game import as_game
from .hoeffding import Measure, check_measure
from .plots import plot_equilibria
from .variety_sampling import hit_and_run, points_at_gauge, sample_by_projection, sample_curves
from .variety_search import (
    is_convex,
    polytope_vertices,
    segment,
    trace_curves,
    zeros_near_center,
)

__all__ = ["EquilibriumVariety"]


def point_table(name: str, strategies: list[np.ndarray]) -> pd.DataFrame:
    """Return a tidy table of points: set, point, player, action, probability."""
    tables = []
    for i, x in enumerate(strategies):
        point, action = np.indices(x.shape).reshape(2, -1)
        columns = {"point": point, "player": i, "action": action, "probability": x.ravel()}
        tables.append(pd.DataFrame({"set": name, **columns}))
    return pd.concat(tables, ignore_index=True)


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
            rng = check_random_state(self.random_state)
            several = kernel.shape[1] > 1
            starts = zeros_near_center(coordinates, self.n_starts, rng) if several else [origin]
            dimension = max((D - coordinates.rank(z, 1e-7)[0] for z in starts), default=0)
            if dimension == 1:
                curves, ends, crossings = trace_curves(
                    coordinates,
                    starts,
                    step=self.step,
                    max_steps=self.max_steps,
                    tol=self.tol,
                    max_curves=self.n_starts,
                )
            convex = dimension == 0 or is_convex(coordinates, curves, np.array(starts))

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
        self._coordinates, self._curves, self._kernel = coordinates, curves, kernel
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
        coordinates = self._coordinates
        if self.dimension_ == 0:
            z = np.zeros((n, coordinates.dimension))
        elif self._linear or coordinates.scale == 0.0:
            z = hit_and_run(coordinates, self._kernel, n, rng)
        elif self._curves:
            z = sample_curves(coordinates, self._curves, n, rng)
        else:
            z = sample_by_projection(coordinates, n, rng)
        return coordinates.strategies(z)

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
        rng = check_random_state(self.random_state)
        z = points_at_gauge(self._coordinates, self._curves, s, self.n_starts, rng)
        return self._coordinates.strategies(z)

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
