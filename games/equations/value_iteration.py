"""Value iteration: repeat x <- T(x) until the error, not the residual, is proved small.

On absolutely halting systems T contracts in a weighted maximum norm, for Jacobi, Gauss-Seidel and
relaxed sweeps alike. The bound |x - x*| <= max_j(r_j / g_j) v is two-sided on non-negative
systems, so x is moved to the middle of its bracket: that removes the slowest error component.
"""

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from .classes import LEMMClass, classify_quickly
from .graph import sweep_order
from .kernels import (
    bellman,
    interval_sweep,
)
from .problem import LEMM
from .progress import Monitor
from .solver import BoundedGap, LEMMSolver, Run, check_problem, constraints
from .sweeps import Blocks, Pace, extrapolate
from .weights import contraction_gap

__all__ = ["ValueIteration"]

Array = np.ndarray
#: A held policy is solved to this share of the present error: more would be lost when it changes.
FORCING = 0.1
Block = tuple[Array, Array, tuple[float, float, float]]


class ValueIteration(LEMMSolver):
    """Solve a system of min and max equations by sweeps, with a proved error bound.

    Parameters
    ----------
    scheme : str, default="gauss_seidel"
        "gauss_seidel", "jacobi", "modified_policy", "sor" or "interval".
        Sweep in place; all nodes at once; at once and, between two computations of the bound,
        with the greedy policy held (modified policy iteration, for one player and no negative
        coefficient; with ``check_every="auto"``, BiCGSTAB solves for the held policy where sweeps
        are slow); in place with relaxation `omega`; or on lower and upper bounds together.
    tol : float, default=1e-8
        Stop when the error bound (without weights: the residual) is at most this.
    relative : bool, default=False
        Measure the error and x in the weighted norm, and ask for ``tol * max(1, |x|_v)``.
    max_iter : int, default=100000
        Largest number of sweeps.
    omega : float, default=1.0
        Relaxation of scheme "sor", in (0, 2 / (1 + contraction)); 1 for the others.
    weights : "auto", None or array-like of shape (n,), default="auto"
        Weights of the norm: found, not used, or given.
    anderson : int, default=0
        Number of past points that Anderson's extrapolation combines ("jacobi",
        "gauss_seidel" and "sor"); 0 switches it off. A candidate whose bound isn't smaller is
        dropped for the plain sweep.
    check_every : int or "auto", default=10
        Sweeps between two computations of the bound; "auto" foresees from the rate so far how
        many are needed (5 to 40).
    n_jobs : int, default=None
        Threads of scheme "jacobi"; the others sweep in sequence and take None or 1.
    store_history : bool, default=False
        Keep residual and bound of every check in `history_`.
    random_state : int, RandomState or None, default=None
        If given, "gauss_seidel" and "sor" sweep in a random order drawn from it; None takes the
        stored order, or that of the dependency graph where the plain maximum norm isn't enough.
    callback : callable, default=None
        Called as ``callback(n_iter, x, gap)`` at every check; a true answer stops.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    value_ : ndarray of shape (n,)
        The solution.
    policy_ : ndarray of shape (n,), int64
        Greedy actions at `value_`.
    lower_, upper_ : ndarray of shape (n,) or None
        Proved bounds of the exact solution; None without weights.
    error_bound_ : float
        Largest possible error of `value_`; NaN without weights.
    residual_ : float
        Largest ``|T(x) - x|``.
    n_iter_ : int
        Sweeps.
    n_evaluations_, n_switches_ : int
        0 here; policy solvers count them.
    converged_ : bool
        Whether `status_` is 'optimal'.
    status_ : str
        'optimal', 'max_iter' or 'diverged'.
    history_ : list of dict
        With `store_history`: n_iter, residual, error_bound.
    class_ : LEMMClass
        What could be proved about the system in polynomial time.
    problem_ : LEMM
        What was fitted.

    References
    ----------
    .. [1] K. Chatterjee, R. Luo, R. Saona, J. Svoboda, "Linear Equations with Min and Max
       Operators: Computational Complexity", AAAI 2025.
    .. [2] J. MacQueen, "A modified dynamic programming method for Markovian decision problems",
       1966 (two-sided bounds).

    Examples
    --------
    >>> from equipoise.games import LEMM, ValueIteration
    >>> problem = LEMM.from_equations(["x = max(1 + 0.5*y, 2)", "y = min(x, 3 - 0.5*y)"])
    >>> solver = ValueIteration().fit(problem)
    >>> solver.value_.round(6).tolist(), solver.predict().tolist()
    ([2.0, 2.0], [0, 0])
    """

    _parameter_constraints: ClassVar[dict] = {
        "scheme": [StrOptions({"gauss_seidel", "jacobi", "modified_policy", "sor", "interval"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "relative": ["boolean"],
        "omega": [Interval(Real, 0, 2, closed="neither")],
        "weights": [StrOptions({"auto"}), None, "array-like"],
        "anderson": [Interval(Integral, 0, 50, closed="both")],
        "check_every": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "n_jobs": [Integral, None],
        **constraints("max_iter", "store_history", "random_state", "callback", "verbose"),
    }

    def __init__(
        self,
        scheme: str = "gauss_seidel",
        tol: float = 1e-8,
        relative: bool = False,
        max_iter: int = 100000,
        omega: float = 1.0,
        weights: Any = "auto",
        anderson: int = 0,
        check_every: int | str = 10,
        n_jobs: int | None = None,
        store_history: bool = False,
        random_state: Any = None,
        callback: Callable[[int, Array, float], Any] | None = None,
        verbose: bool = False,
    ) -> None:
        self.scheme = scheme
        self.tol = tol
        self.relative = relative
        self.max_iter = max_iter
        self.omega = omega
        self.weights = weights
        self.anderson = anderson
        self.check_every = check_every
        self.n_jobs = n_jobs
        self.store_history = store_history
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, problem: LEMM, policy_init: Any = None, x_init: Any = None) -> Self:
        """Sweep until the error bound is small.

        Parameters
        ----------
        problem : LEMM
            The system.
        policy_init : array-like of int of shape (n,), optional
            Start from this policy's value; not together with `x_init`.
        x_init : array-like of shape (n,), optional
            Start here; default 0.

        Returns
        -------
        self : ValueIteration
            Fitted.

        Raises
        ------
        ValueError
            If options contradict each other or the problem's class doesn't allow them.
        """
        check_problem(problem)
        if policy_init is not None and x_init is not None:
            raise ValueError("policy_init and x_init are both given; one start is enough")
        x = np.zeros(problem.n) if x_init is None else problem.check_values(x_init, "x_init")
        if policy_init is not None:
            x = problem.evaluate(problem.check_policy(policy_init, "policy_init"))
        found = self._choose_weights(problem, classify_quickly(problem))
        self._check_options(found)
        return self._finish(problem, found, self.compute(problem, found, x))

    def compute(self, problem: LEMM, found: LEMMClass, x: Array | None = None) -> Run:
        """Sweep on a problem already classified; nothing is stored.

        Parameters
        ----------
        problem : LEMM
            The system.
        found : LEMMClass
            Its class; its weights are used.
        x : ndarray of shape (n,), optional
            Where to start; default 0.

        Returns
        -------
        Run
            The outcome.
        """
        bound = BoundedGap(problem, found.weights, found.nonnegative)
        if self.scheme == "interval":
            return self._interval(problem, bound)
        return self._sweep(problem, bound, np.zeros(problem.n) if x is None else x)

    def _choose_weights(self, problem: LEMM, found: LEMMClass) -> LEMMClass:
        if self.weights is None:
            return replace(found, weights=None)
        if isinstance(self.weights, str):
            return found
        v = problem.check_values(self.weights, "weights")
        if not (v > 0).all():
            raise ValueError("weights must be positive in every node")
        gap = contraction_gap(problem, v)
        if not (gap > 0).all():
            i = int(np.argmin(gap))
            raise ValueError(
                f"weights don't prove a contraction: v - max_a |q_a|.v is {gap[i]:.3g} in node {i}"
            )
        return replace(found, weights=v, contraction=1 - float(np.min(gap / v)))

    def _check_options(self, found: LEMMClass) -> None:
        if self.scheme != "sor" and self.omega != 1:
            raise ValueError(f"omega={self.omega} needs scheme='sor', got scheme={self.scheme!r}")
        if self.scheme != "jacobi" and self.n_jobs not in (None, 1):
            raise ValueError(
                f"n_jobs={self.n_jobs} needs scheme='jacobi': {self.scheme!r} sweeps in sequence"
            )
        if self.random_state is not None and self.scheme not in ("gauss_seidel", "sor"):
            raise ValueError(
                f"random_state orders the sweeps of 'gauss_seidel' and 'sor', got {self.scheme!r}"
            )
        if self.scheme in ("interval", "modified_policy") and self.anderson:
            raise ValueError(
                f"anderson={self.anderson} needs scheme 'jacobi', 'gauss_seidel' or 'sor', got "
                f"{self.scheme!r}"
            )
        if self.scheme == "modified_policy" and not (
            found.one_player and found.nonnegative and found.weights is not None
        ):
            raise ValueError(
                "scheme='modified_policy' needs one player, no negative coefficient, and weights"
            )
        if self.scheme == "interval" and found.weights is None:
            raise ValueError(
                "scheme='interval' needs weights, and the problem isn't proved absolutely halting"
            )
        if self.scheme == "sor":
            if found.weights is None or found.contraction is None:
                raise ValueError(
                    "scheme='sor' needs weights, and the problem isn't proved absolutely halting"
                )
            largest = 2 / (1 + found.contraction)
            if not self.omega < largest:
                raise ValueError(
                    f"omega={self.omega} is too large: allowed 0 < omega < {largest:.6g} "
                    f"= 2 / (1 + contraction)"
                )

    def _order(self, problem: LEMM, v: Array | None) -> Array:
        if self.random_state is not None:
            return check_random_state(self.random_state).permutation(problem.n)
        if self.scheme in ("jacobi", "modified_policy") or (v is not None and v.min() == v.max()):
            return np.arange(problem.n)
        label, order, bounds = problem.components
        return sweep_order(label, order, bounds, *problem.edges)

    def _monitor(self, bounded: bool) -> Monitor:
        return Monitor(self.tol, self.callback, bounded, self.store_history, self.verbose)

    def _scale(self, x: Array, v: Array | None) -> float:
        """What the gap is divided by before it is compared with `tol`."""
        if self.relative:
            return max(1.0, float(np.max(np.abs(x) if v is None else np.abs(x) / v)))
        return 1.0

    def _sweep(self, problem: LEMM, bound: BoundedGap, x: Array) -> Run:
        v = bound.v
        top = 1.0 if v is None else float(v.max())
        blocks = Blocks(problem, bound, self._order(problem, v), float(self.omega), self.n_jobs)
        if self.scheme == "jacobi":
            block = blocks.jacobi
        elif self.scheme == "modified_policy":
            block = blocks.held_policy
            x = x.copy()
            blocks.image(x, np.empty_like(x))
        else:
            block = blocks.in_place
        xs: list[Array] = []
        images: list[Array] = []
        n_iter, gap = 0, np.inf
        pace = Pace(self.check_every, self.tol)
        with self._monitor(v is not None) as monitor:
            while n_iter < self.max_iter:
                k = 1 if self.anderson else pace.next(self.max_iter - n_iter)
                start = x.copy() if self.anderson else x
                if self.scheme == "modified_policy" and pace.slow and blocks.krylov:
                    error = max(0.3 * self.tol / top, FORCING * gap)
                    point, image, (low, high, residual) = blocks.solved_policy(x, error)
                    k = blocks.spent
                else:
                    point, image, (low, high, residual) = block(x, k)
                n_iter += k
                gap = residual if v is None else max(abs(low), abs(high))
                value, onwards = point, image
                if v is not None and bound.monotone:
                    middle, gap = 0.5 * (low + high), 0.5 * (high - low)
                    value = point + middle * v
                    if bound.uniform:
                        # T(x + c v) = T(x) + c (v - gap): going on from the middle of the bracket
                        # removes the slowest error component. With unequal gaps the middle may be
                        # farther from the solution than x, so the plain sweeps go on.
                        onwards = image + middle * (v - bound.gap) if image is not point else value
                scaled = (gap if self.relative else gap * top) / self._scale(value, v)
                pace.record(scaled, k, blocks.changed)
                if not monitor.goes_on(n_iter, value, residual, gap * top, scaled):
                    break
                x = onwards
                if self.anderson:
                    xs, images = [*xs, start], [*images, x.copy()]
                    xs, images = xs[-self.anderson - 1 :], images[-self.anderson - 1 :]
                    x = extrapolate(x, xs, images, bound)
        if v is None:
            # Nothing is proved of any point; the last sweep's result is the newest.
            return self._run(bound, onwards, n_iter, monitor)
        run = self._run(bound, value, n_iter, monitor)
        run.lower, run.upper, run.residual = value - gap * v, value + gap * v, residual
        return run

    def _interval(self, problem: LEMM, bound: BoundedGap) -> Run:
        v = bound.v
        assert v is not None
        size = np.maximum.reduceat(np.abs(problem.b), problem.indptr[:-1])
        radius = float(np.max(size / bound.gap))
        low, high = -radius * v, radius * v
        x = np.zeros(problem.n)
        order = self._order(problem, v)
        n_iter = 0
        pace = Pace(self.check_every, self.tol)
        with self._monitor(True) as monitor:
            while n_iter < self.max_iter:
                k = pace.next(self.max_iter - n_iter)
                for _ in range(k):
                    interval_sweep(*problem.arrays, order, low, high)
                n_iter += k
                x = 0.5 * (low + high)
                down, up, residual = bound(x)
                np.maximum(low, x + down * v, out=low)
                np.minimum(high, x + up * v, out=high)
                x = 0.5 * (low + high)
                gap = float(np.max(high - low)) / 2
                weighted = float(np.max((high - low) / v)) / 2
                scaled = (weighted if self.relative else gap) / self._scale(x, v)
                pace.record(scaled, k)
                if not monitor.goes_on(n_iter, x, residual, gap, scaled):
                    break
        run = self._run(bound, x, n_iter, monitor)
        run.lower, run.upper = low, high
        return run

    def _run(self, bound: BoundedGap, x: Array, n_iter: int, monitor: Monitor) -> Run:
        problem = bound.problem
        policy = np.zeros(problem.n, dtype=np.int64)
        bellman(*problem.arrays, x, 0, problem.n, np.empty(problem.n), policy)
        message = monitor.message
        if monitor.status == "max_iter" and not message and bound.v is not None:
            share = float(np.min(bound.gap / bound.v))
            message = (
                f"stopped after {n_iter} sweeps; sweeps shrink the error by a factor of at most "
                f"{1 - share:.9g}, so about {monitor.sweeps_left(share)} more may be needed"
            )
        return Run(
            x,
            policy,
            monitor.status,
            n_iter,
            history=monitor.history,
            message=message,
        )
