"""FTRL in continuous time: its energy is conserved in harmonic games, and play comes back to where
it was.

dy_i/dt = v_i(Q(y)). In a harmonic game sum_i m_i <v_i(x), x_i - q_i> = 0 makes the energy
E(y) = sum_i m_i [h(q_i) + h*(y_i) - <y_i, q_i>] constant; since the flow keeps volumes too, almost
every orbit is recurrent (Poincare), and play doesn't converge.
"""

from functools import partial
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy.integrate import solve_ivp
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from equipoise.explanation import Explanation

from .contraction import contract_payoffs
from .ftrl_setup import start_strategies
from .game import as_game
from .harmonic import HarmonicGame
from .plots import plot_column
from .regularizers import REGULARIZERS, Regularizer

__all__ = ["FTRLFlow"]


class FTRLFlow(BaseEstimator):
    """The orbit of follow-the-regularised-leader in continuous time.

    Parameters
    ----------
    regularizer : {"entropic", "euclidean", "tsallis", "log_barrier"}, default="entropic"
        The regulariser of every player; "entropic" gives the replicator dynamics.
    t_max : float, default=100.0
        Length of the orbit.
    rtol, atol : float, default=1e-9, 1e-11
        Tolerances of the integrator (an explicit Runge-Kutta method of order 8).
    init : {"uniform", "center", "random"} or list of array-like, default="random"
        Start, as for `FTRLPlus`.
    n_points : int, default=2000
        Number of equally spaced points of time at which the orbit is kept.
    tsallis_power : float, default=0.5
        Power of the Tsallis entropy.
    random_state : int, RandomState or None, default=None
        For the random start.

    Attributes
    ----------
    times_ : ndarray of shape (n_points,)
        Points of time from 0 to `t_max`.
    trajectory_ : list of ndarray of shape (n_points, d_i)
        Strategies.
    energy_ : ndarray of shape (n_points,) or None
        E along the orbit; None unless the game is a `HarmonicGame`.
    energy_drift_ : float or None
        Largest change of the energy: how far the integration is from the true orbit.
    time_average_ : list of ndarray of shape (d_i,)
        Mean strategies over the orbit.

    References
    ----------
    .. [1] D. Legacci et al., "No-regret learning in harmonic games", 2024, section 4.
    .. [2] P. Mertikopoulos, C. Papadimitriou, G. Piliouras, "Cycles in adversarial regularized
       learning", 2018.

    Examples
    --------
    >>> from equipoise.games import FTRLFlow, HarmonicGame
    >>> pennies = HarmonicGame([[[1, -1], [-1, 1]], [[-1, 1], [1, -1]]])
    >>> flow = FTRLFlow(t_max=20, init=[[0.7, 0.3], [0.4, 0.6]]).fit(pennies)
    >>> bool(flow.energy_drift_ < 1e-8)
    True
    >>> flow.return_times(0.02).round(1).tolist()
    [6.5, 13.2, 19.8]
    """

    _parameter_constraints: dict = {
        "regularizer": [StrOptions(set(REGULARIZERS))],
        "t_max": [Interval(Real, 0, None, closed="neither")],
        "rtol": [Interval(Real, 0, None, closed="neither")],
        "atol": [Interval(Real, 0, None, closed="neither")],
        "init": [StrOptions({"uniform", "center", "random"}), list, tuple],
        "n_points": [Interval(Integral, 2, None, closed="left")],
        "tsallis_power": [Interval(Real, 0, 1, closed="neither")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        regularizer: str = "entropic",
        *,
        t_max: float = 100.0,
        rtol: float = 1e-9,
        atol: float = 1e-11,
        init: Any = "random",
        n_points: int = 2000,
        tsallis_power: float = 0.5,
        random_state: Any = None,
    ) -> None:
        self.regularizer = regularizer
        self.t_max = t_max
        self.rtol = rtol
        self.atol = atol
        self.init = init
        self.n_points = n_points
        self.tsallis_power = tsallis_power
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, game: Any, y: Any = None) -> Self:
        """Integrate the orbit.

        Parameters
        ----------
        game : NormalFormGame or ndarray of shape (n, d_0, ..., d_{n-1})
            The game; energies are known for a `HarmonicGame`.
        y : None
            Ignored.

        Returns
        -------
        FTRLFlow
            The fitted solver.

        Raises
        ------
        RuntimeError
            If the integrator can't keep its tolerances.
        """
        game = as_game(game)
        h = Regularizer(self.regularizer, float(self.tsallis_power))
        rng = check_random_state(self.random_state)
        start = [h.scores(x) for x in start_strategies(self.init, game, h, rng)]
        stops = np.cumsum(game.shape)[:-1]
        payoffs = game.payoffs.reshape(game.n_players, -1)

        def velocity(_: float, scores: np.ndarray) -> np.ndarray:
            x = [h.choose(part) for part in np.split(scores, stops)]
            # Centred: a constant added to a player's scores changes nothing but would make them
            # grow without end.
            return np.concatenate([v - v.mean() for v in contract_payoffs(payoffs, x, game.shape)])

        orbit = solve_ivp(
            velocity,
            (0.0, self.t_max),
            np.concatenate(start),
            method="DOP853",
            t_eval=np.linspace(0.0, self.t_max, self.n_points),
            rtol=self.rtol,
            atol=self.atol,
        )
        if not orbit.success:
            raise RuntimeError(
                f"the orbit couldn't be integrated up to t_max={self.t_max}: {orbit.message}"
            )
        scores = np.split(orbit.y.T, stops, axis=1)
        energy = None
        if isinstance(game, HarmonicGame):
            energy = np.zeros(len(orbit.t))
            for m, q, y_i in zip(game.masses, game.center, scores, strict=True):
                energy += m * h.coupling(q, y_i)
        self.times_ = orbit.t
        self.trajectory_ = [h.choose(y_i) for y_i in scores]
        self.energy_ = energy
        self.energy_drift_ = None if energy is None else float(np.abs(energy - energy[0]).max())
        self.time_average_ = [
            np.trapezoid(x, orbit.t, axis=0) / self.t_max for x in self.trajectory_
        ]
        return self

    def predict(self, X: Any = None) -> list[np.ndarray]:
        """Return the strategies at `t_max`.

        Parameters
        ----------
        X : None
            Ignored.

        Returns
        -------
        list of ndarray of shape (d_i,)
            The end of the orbit.
        """
        check_is_fitted(self)
        return [x[-1] for x in self.trajectory_]

    def distance_from_start(self) -> np.ndarray:
        """Return the largest change of a probability against the start, at each point of time.

        Returns
        -------
        ndarray of shape (n_points,)
            Between 0 and 1.
        """
        check_is_fitted(self)
        return np.max([np.abs(x - x[0]).max(axis=1) for x in self.trajectory_], axis=0)

    def return_times(self, eps: float) -> np.ndarray:
        """Return when the orbit comes back to within `eps` of its start after having left it.

        Parameters
        ----------
        eps : float
            Largest distance of a probability that counts as back.

        Returns
        -------
        ndarray of shape (n_returns,)
            Points of time at which it comes back, to the spacing of `times_`.
        """
        if not eps > 0:
            raise ValueError(f"eps must be positive, got {eps!r}")
        near = self.distance_from_start() <= eps
        return self.times_[1:][near[1:] & ~near[:-1]]

    def explain(self) -> Explanation:
        """Say how well the energy is conserved, and how close the orbit comes back.

        Returns
        -------
        Explanation
            A row for each point of time; plots "distance" and, for a harmonic game, "energy".
        """
        distance = self.distance_from_start()
        frame = pd.DataFrame({"time": self.times_, "distance_from_start": distance})
        left = distance > 0.5 * distance.max()
        after = distance[int(left.argmax()) :]
        summary = [
            f"The orbit goes {distance.max():.3g} away from its start and comes back to within "
            f"{after.min():.3g}"
        ]
        plots = {"distance": partial(plot_column, frame, "time", "distance_from_start")}
        if self.energy_ is not None:
            frame["energy"] = self.energy_
            summary.append(
                f"the energy {self.energy_[0]:.4g} is kept to {self.energy_drift_:.2g}: the "
                "orbit stays on its level"
            )
            plots["energy"] = partial(plot_column, frame, "time", "energy")
        return Explanation("Does learning in continuous time settle?", summary, frame, plots)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.no_validation = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = False
        return tags
