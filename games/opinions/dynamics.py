"""Friedkin and Johnsen's opinion dynamics with an AI in the channel, and its equilibrium."""

import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.utils import Bunch, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from equipoise.explanation import Explanation

from .certificates import spectral_radius
from .channel import (
    AffineChannel,
    CurvedChannel,
    Side,
    build_channel,
    column,
    edge_channel,
    first_topic,
)
from .control import ControlMixin
from .equilibrium import Equilibrium, affine_equilibrium, curved_equilibrium
from .indices import edge_immediate, opinion_metrics, ratio_of_means
from .influence import gain_bounds, leverage, sensitivities
from .inputs import (
    check_bounds,
    check_innate,
    check_network,
    check_side,
    check_stubbornness,
    check_vector,
    draw_users,
    edge_values,
)
from .network import DANGLING, ORIENTATIONS, OpinionNetwork
from .reporting import explain_dynamics
from .simulation import SimulationMixin
from .solvers import SOLVERS, solve_adjoint

__all__ = ["MediatedOpinionDynamics"]

Array = np.ndarray


class MediatedOpinionDynamics(ControlMixin, SimulationMixin, BaseEstimator):
    """Equilibrium of opinions when an AI edits what people say or hear.

    ``x_i(t+1) = lambda_i s_i + (1 - lambda_i) sum_j W_ij P_i(E_j(x_j(t)))``: user i keeps a share
    lambda_i of the innate opinion s_i and listens for the rest; author j's messages pass the
    mediator E if j uses the AI, and reader i's news pass P if i does.

    Parameters
    ----------
    stubbornness : float, default=0.3
        lambda in [0, 1]; `fit` takes one a user.
    expression, perception : mediator or None, default=None
        What the AI does to messages where they are written, and where they are read:
        `AffineMediator`, `AnchoredMediator`, `CurveMediator`, `ClippedMediator`,
        `ComposeMediator` or any object of their protocol.
    adoption, perception_adoption : float, default=1.0
        Share of the users who use `expression` and `perception`; each user is drawn once,
        independently, in `fit`.
    bounds : tuple of two floats, default=(0.0, 1.0)
        Range of opinions.
    clip : bool, default=False
        Keep what mediators put out within `bounds`; otherwise a bias may carry opinions out of
        them, which is warned of.
    dangling : str, default="self"
        Users who listen to nobody: "self" (they keep their innate opinion), "zero", "uniform" or
        "error"; see `OpinionNetwork`.
    orientation : str, default="listener"
        "listener" or "speaker"; see `OpinionNetwork`.
    solver : str, default="auto"
        "auto", "direct", "richardson", "cg", "bicgstab", "gmres" or "amg" (needs pyamg). Used for
        affine mediators; others are iterated.
    tol : float, default=1e-10
        Largest error of an opinion where the contraction is below 1; else largest residual.
    max_iter : int, default=10000
        Largest number of iterations.
    n_jobs : int or None, default=None
        Threads of the iteration on networks of a million edges and more.
    random_state : int, RandomState or None, default=None
        Draws the adopters.

    Attributes
    ----------
    equilibrium_, baseline_equilibrium_ : ndarray of shape (n,) or (n, k)
        Opinions in the long run, with and without the AI.
    shift_ : ndarray of shape (n,) or (n, k)
        Their difference.
    amplification_ : float or ndarray of shape (k,)
        Long-run change of the mean over the change that the edits make to what is said at the
        start; NaN where nothing is changed there.
    total_gain_ : float
        Long-run change of the mean for each unit of bias in everybody's messages; for curved
        mediators to first order at the equilibrium (of the first topic).
    gain_bounds_ : tuple of two floats
        Lower and upper bound of each user's response to a unit of bias in all messages, from the
        extremes of stubbornness and shrink.
    contraction_ : float
        Largest absolute row sum of M: below 1, the equilibrium is unique.
    certified_unique_ : bool
        Whether it was proved that there is one equilibrium and that it attracts every start.
    certificate_ : str
        By which argument: "contraction", "leaks", "collatz", "bracket", or "none".
    equilibrium_bounds_ : tuple of two ndarrays, or None
        Least and greatest equilibrium within `bounds`, for monotone curved mediators.
    n_equilibria_found_ : int
        Distinct limits from the innate opinions and from both ends of `bounds`.
    spectral_radius_ : float
        Estimate of rho(M), the rate at which opinions settle; computed when asked for.
    converged_ : bool
        Whether the tolerance was reached.
    n_iter_ : int
        Iterations of the solver.
    residual_ : float
        Largest ``|x - F(x)|``.
    error_bound_ : float
        Largest possible error of an opinion; NaN where the contraction isn't below 1.
    solver_ : str
        The solver used; "iteration" for curved mediators.
    adopters_, perceivers_ : ndarray of shape (n,), bool
        Who uses the AI in writing, and in reading.
    stubbornness_ : ndarray of shape (n,)
        lambda; 1 for dangling users with ``dangling="self"``.
    innate_ : ndarray of shape (n,) or (n, k)
        s.
    network_ : OpinionNetwork
        The network.
    nodes_ : list
        Names of the users.
    n_nodes_in_ : int
        Number of users.

    References
    ----------
    .. [1] S. Tsirtsis, K. Rawal, C. Russell, B. Mittelstadt, S. Wachter, "AI-Mediated
       Communication Can Steer Collective Opinion", arXiv:2605.16245, 2026.
    .. [2] N. Friedkin, E. Johnsen, "Social influence and opinions", J. Math. Sociology 15, 1990.

    Examples
    --------
    >>> import networkx as nx
    >>> from equipoise.games import AffineMediator, MediatedOpinionDynamics
    >>> club = nx.karate_club_graph()
    >>> nudge = AffineMediator(bias=0.02)
    >>> dynamics = MediatedOpinionDynamics(stubbornness=0.3, expression=nudge)
    >>> dynamics.fit(club, [0.5] * 34).shift_[:3].round(6).tolist()  # 0.02 * 0.7 / 0.3
    [0.046667, 0.046667, 0.046667]
    """

    _parameter_constraints: ClassVar[dict] = {
        "stubbornness": [Interval(Real, 0, 1, closed="both")],
        "adoption": [Interval(Real, 0, 1, closed="both")],
        "perception_adoption": [Interval(Real, 0, 1, closed="both")],
        "bounds": [tuple, list],
        "clip": ["boolean"],
        "dangling": [StrOptions(set(DANGLING))],
        "orientation": [StrOptions(set(ORIENTATIONS))],
        "solver": [StrOptions(set(SOLVERS))],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        stubbornness: float = 0.3,
        expression: Any = None,
        perception: Any = None,
        adoption: float = 1.0,
        perception_adoption: float = 1.0,
        bounds: Sequence[float] = (0.0, 1.0),
        clip: bool = False,
        dangling: str = "self",
        orientation: str = "listener",
        solver: str = "auto",
        tol: float = 1e-10,
        max_iter: int = 10_000,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.stubbornness = stubbornness
        self.expression = expression
        self.perception = perception
        self.adoption = adoption
        self.perception_adoption = perception_adoption
        self.bounds = bounds
        self.clip = clip
        self.dangling = dangling
        self.orientation = orientation
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        stubbornness: ArrayLike | None = None,
        adopters: ArrayLike | None = None,
        perceivers: ArrayLike | None = None,
        edge_shrink: Any = None,
        edge_bias: Any = None,
    ) -> Self:
        """Find the equilibrium with and without the AI.

        Parameters
        ----------
        X : OpinionNetwork, array-like, sparse matrix, graph or list of edges
            The network, n users; see `OpinionNetwork.from_graph`. An `OpinionNetwork` keeps its
            own orientation and treatment of dangling users.
        y : array-like of shape (n,) or (n, k)
            Innate opinions on one topic or on k.
        stubbornness : array-like of shape (n,), optional
            lambda of each user.
        adopters, perceivers : array-like of bool of shape (n,), optional
            Who uses the AI in writing, and in reading; instead of drawing them.
        edge_shrink, edge_bias : float or sparse matrix of shape (n, n), optional
            Shrink and bias of the messages on each edge, on the pattern and in the orientation of
            X; entries that aren't there are 1 and 0. Instead of mediators.

        Returns
        -------
        self : MediatedOpinionDynamics
            Fitted.

        Raises
        ------
        ValueError
            For bad input, the first bad index named; or where no unique equilibrium exists.
        """
        lo, hi = bounds = check_bounds(self.bounds)
        network = check_network(X, self.orientation, self.dangling)
        n = network.n_nodes
        innate = check_innate(y, n, bounds)
        own = self.stubbornness if stubbornness is None else stubbornness
        lam = check_stubbornness(own, network)
        rng = check_random_state(self.random_state)
        masks = (
            draw_users(rng, adopters, self.adoption, n, "adopters"),
            draw_users(rng, perceivers, self.perception_adoption, n, "perceivers"),
        )
        expression = check_side(self.expression, masks[0], self.clip, bounds, "expression")
        perception = check_side(self.perception, masks[1], self.clip, bounds, "perception")
        jobs = max(1, self.n_jobs or 1)
        edges = edge_shrink is not None or edge_bias is not None
        channel: AffineChannel | CurvedChannel
        if edges:
            if self.expression is not None or self.perception is not None:
                raise ValueError(
                    "edge_shrink and edge_bias take the place of mediators; expression and "
                    "perception must be None"
                )
            shrink = edge_values(edge_shrink, network, 1.0, "edge_shrink")
            bias = edge_values(edge_bias, network, 0.0, "edge_bias")
            channel = edge_channel(network, shrink, bias, lam, jobs)
            immediate = edge_immediate(network, shrink, bias, innate)
        else:
            immediate = (expression(innate) - innate).mean(axis=0)
            channel = build_channel(network, expression, perception, lam, jobs)
        nobody = Side(None, masks[0])
        plain = build_channel(network, nobody, nobody, lam, jobs)
        free = self._solve(network, plain, lam, innate, bounds, False)
        found = self._solve(network, channel, lam, innate, bounds, edges)
        if not found.converged:
            warnings.warn(
                f"stopped after {found.n_iter} iterations (max_iter={self.max_iter}) with a "
                f"residual of {found.residual:.3g}; tol={self.tol:g} asks for {found.target:.3g}",
                ConvergenceWarning,
                stacklevel=3,
            )
        outside = (found.x < lo - 1e-9) | (found.x > hi + 1e-9)
        if outside.any():
            i = int(np.argwhere(outside)[0][0])
            warnings.warn(
                f"{int(outside.sum())} opinions leave bounds=({lo:g}, {hi:g}), the first at user "
                f"{network.nodes[i]!r}: {found.x[i]}; clip=True keeps messages within them",
                UserWarning,
                stacklevel=3,
            )
        self._channel, self._on_edges = channel, edges
        self._expression, self._perception = expression, perception
        self._drawn = adopters is None, perceivers is None
        self.network_, self.nodes_, self.n_nodes_in_ = network, network.nodes, network.n_nodes
        self.n_features_in_ = network.n_nodes
        self.innate_, self.stubbornness_ = innate, lam
        self.adopters_, self.perceivers_ = masks
        self.baseline_equilibrium_, self.equilibrium_ = free.x, found.x
        self.shift_ = found.x - free.x
        self.contraction_, self.certificate_ = found.contraction, found.certificate
        self.certified_unique_ = found.certificate != "none"
        self.equilibrium_bounds_, self.n_equilibria_found_ = found.bounds, found.n_found
        self.converged_, self.n_iter_, self.solver_ = found.converged, found.n_iter, found.solver
        self.residual_, self.error_bound_ = found.residual, found.error_bound
        self._linear = channel.linearised(first_topic(found.x))
        self.amplification_ = ratio_of_means(self.shift_.mean(axis=0), immediate)
        self.total_gain_ = float(self._leverage().sum())
        self.gain_bounds_ = gain_bounds(network, self._linear, lam, edges)
        return self

    def predict(self, y: ArrayLike) -> Array:
        """Return the equilibrium for other innate opinions of the same users.

        Parameters
        ----------
        y : array-like of shape (n,) or (n, k)
            Innate opinions.

        Returns
        -------
        ndarray of shape (n,) or (n, k)
            Opinions in the long run, with the AI.
        """
        check_is_fitted(self)
        bounds = check_bounds(self.bounds)
        innate = check_innate(y, self.n_nodes_in_, bounds)
        network, lam = self.network_, self.stubbornness_
        return self._solve(network, self._channel, lam, innate, bounds, self._on_edges).x

    def score(self, y: ArrayLike, x_observed: ArrayLike) -> float:
        """Return R^2 of the predicted equilibrium.

        Parameters
        ----------
        y : array-like of shape (n,) or (n, k)
            Innate opinions.
        x_observed : array-like of shape (n,) or (n, k)
            Opinions observed in the long run.

        Returns
        -------
        float
            1 for a perfect prediction.
        """
        return float(r2_score(x_observed, self.predict(y)))

    def influence(self, target: ArrayLike | None = None) -> Bunch:
        """Return who and what moves a linear target of the equilibrium, by one adjoint solve.

        Parameters
        ----------
        target : array-like of shape (n,), optional
            Weights g of the target g.x*; default: the mean.

        Returns
        -------
        Bunch
            Derivatives of the target: ``innate`` (n,) by innate opinions, ``author`` (n,) by the
            bias of each author's messages, ``reader`` (n,) by the bias of each reader's news,
            ``stubbornness`` (n,) by lambda, ``edges`` (sparse, n x n) by the bias of each edge,
            and ``adjoint`` (n,), pi. For curved mediators, of the linear response at the
            equilibrium; for several topics, of the first one.
        """
        check_is_fitted(self)
        n = self.n_nodes_in_
        g = np.full(n, 1 / n) if target is None else check_vector(target, n, "target")
        if isinstance(self._channel, CurvedChannel) and not self._perception.is_affine:
            raise ValueError(
                "influence by author and reader needs an affine perception; this one is curved"
            )
        return sensitivities(
            self.network_,
            self._linear,
            self.stubbornness_,
            self._reader_shrink(),
            first_topic(self.innate_),
            first_topic(self.equilibrium_),
            self._adjoint(g),
        )

    def metrics(self, z: ArrayLike | None = None) -> dict[str, float]:
        """Return figures of opinions on this network; see `opinion_metrics`.

        Parameters
        ----------
        z : array-like of shape (n,), optional
            Opinions; default: the equilibrium (of the first topic).

        Returns
        -------
        dict of str to float
            As `opinion_metrics`.
        """
        check_is_fitted(self)
        z = first_topic(self.equilibrium_) if z is None else z
        return opinion_metrics(z, self.network_, first_topic(self.innate_))

    @property
    def spectral_radius_(self) -> float:
        """Estimate of rho(M), the rate at which opinions settle; computed when asked."""
        check_is_fitted(self)
        return spectral_radius(self._linear)

    def explain(self) -> Explanation:
        """Say how far the AI moves opinions, who carries it, and why the answer holds.

        Returns
        -------
        Explanation
            One row a user: baseline, equilibrium, shift, whether they use the AI, leverage (the
            response of the mean to a bias in their messages). Plots: "shift", "leverage".
        """
        check_is_fitted(self)
        base, x = first_topic(self.baseline_equilibrium_), first_topic(self.equilibrium_)
        frame = pd.DataFrame(
            {
                "node": self.nodes_,
                "innate": first_topic(self.innate_),
                "baseline": base,
                "equilibrium": x,
                "shift": x - base,
                "adopts": self.adopters_,
                "leverage": self._leverage(),
            }
        )
        return explain_dynamics(frame, self)

    def _solve(
        self,
        network: OpinionNetwork,
        channel: AffineChannel | CurvedChannel,
        lam: Array,
        innate: Array,
        bounds: tuple[float, float],
        on_edges: bool,
    ) -> Equilibrium:
        stubborn = column(lam, innate) * innate
        if isinstance(channel, CurvedChannel):
            return curved_equilibrium(
                channel, stubborn, innate, bounds, tol=self.tol, max_iter=self.max_iter
            )
        return affine_equilibrium(
            network,
            channel,
            stubborn,
            innate,
            solver=self.solver,
            tol=self.tol,
            max_iter=self.max_iter,
            on_edges=on_edges,
        )

    def _adjoint(self, g: Array) -> Array:
        """Return ``(I - M)^-T g``, a thousand times as exact as opinions are asked to be."""
        target = 1e-3 * self.tol * float(np.abs(g).max(initial=0.0))
        return solve_adjoint(self._linear, g, target, self.max_iter)[0]

    def _reader_shrink(self) -> Array:
        if self._on_edges or not self._perception.is_affine:
            return np.ones(self.n_nodes_in_)
        return self._perception.coefficients()[0]

    def _leverage(self) -> Array:
        """Return the response of the mean to a unit of bias in each author's messages."""
        n, linear = self.n_nodes_in_, self._linear
        pi = self._adjoint(np.full(n, 1 / n))
        if isinstance(self._channel, CurvedChannel) and not self._perception.is_affine:
            return linear.weights.T @ (linear.scale * pi)
        reader = self._reader_shrink()
        return leverage(self.network_, 1 - self.stubbornness_, reader, pi, linear.uniform)
