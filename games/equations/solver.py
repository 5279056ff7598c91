"""What all solvers share: results, certificates, and the warning when one stops short."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from equipoise.explanation import Explanation

from .classes import LEMMClass
from .kernels import bracket
from .problem import LEMM
from .weights import contraction_gap, find_weights, longest_row, wide_gap

__all__ = [
    "BoundedGap",
    "LEMMSolver",
    "Run",
    "check_problem",
    "constraints",
    "starting_policy",
]

Array = np.ndarray
EPS = np.finfo(np.float64).eps

#: What the parameters that several solvers share may be.
CONSTRAINTS: dict[str, list[Any]] = {
    "tol": [Interval(Real, 0, None, closed="left")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "store_history": ["boolean"],
    "random_state": ["random_state"],
    "callback": [callable, None],
    "verbose": ["verbose"],
}

HINTS = {
    "cycle": (
        "policy iteration repeated a policy after {n_iter} steps; {reason}, for which all-switch "
        "policy iteration has no convergence guarantee; use solve_lemm or SimplePolicyIteration"
    ),
    "diverged": (
        "value iteration diverged after {n_iter} sweeps; this problem isn't proved absolutely "
        "halting, and outside that class value iteration has no convergence guarantee; use "
        "solve_lemm or SimplePolicyIteration"
    ),
    "not_W": (
        "two policies have determinants of opposite signs, or a singular one was met: the "
        "solution isn't unique for all offsets"
    ),
    "singular": "a policy without a unique value was met after {n_iter} steps",
    "max_iter": "stopped after {n_iter} iterations",
}


@dataclass
class Run:
    """What an algorithm hands back."""

    value: Array
    policy: Array
    status: str
    n_iter: int = 0
    n_evaluations: int = 0
    n_switches: int = 0
    lower: Array | None = None
    upper: Array | None = None
    residual: float | None = None
    history: list[dict[str, Any]] = field(default_factory=list)
    message: str = ""
    cycle: list[Array] = field(default_factory=list)
    exact_value: list[Any] | None = None
    witness: tuple[Array, ...] = ()


class BoundedGap:
    """Turns a residual into a proved error bound: ``x + low v <= x* <= x + high v``.

    Without weights only the residual is known, and low, high are minus and plus it.
    """

    def __init__(self, problem: LEMM, v: Array | None, nonnegative: bool) -> None:
        self.problem, self.v = problem, v
        self.monotone = nonnegative and v is not None
        if v is None:
            self.gap = self.wide = np.ones(problem.n)
            self.slope = self.level = np.zeros(problem.n)
            self.uniform = False
            return
        self.gap = contraction_gap(problem, v)
        self.wide = wide_gap(problem, v) if nonnegative else self.gap
        # One gap for all rows of all nodes: T(x + c v) = T(x) + c (v - gap) for every number c, and
        # the bracket moves by c.
        slack = 1e-12 * float(np.max(self.gap / v))
        same = float(np.max(self.wide / v) - np.min(self.gap / v)) <= max(slack, 1e-12)
        self.uniform = nonnegative and same
        # |q_a|.|x| <= |x|_v |q_a|.v < |x|_v v_i bounds the rounding of every row's sum.
        first = problem.indptr[:-1]
        unit = EPS * (longest_row(problem) + 3)
        self.slope = unit * v
        self.level = unit * np.maximum.reduceat(np.abs(problem.b), first)

    def measure(self, x: Array, image: Array) -> tuple[float, float, float]:
        """(low, high, largest residual) at x, given T(x)."""
        size = 0.0 if self.v is None else float(np.max(np.abs(x) / self.v))
        rounding = self.slope * size + self.level
        return bracket(x, image, self.gap, self.wide, rounding, self.monotone)

    def __call__(self, x: Array) -> tuple[float, float, float]:
        """(low, high, largest residual) at x."""
        return self.measure(x, self.problem.T(x) if np.isfinite(x).all() else x * np.nan)


def check_problem(problem: Any) -> LEMM:
    if not isinstance(problem, LEMM):
        raise TypeError(f"problem must be a LEMM, got {type(problem).__name__}")
    return problem


def constraints(*names: str) -> dict[str, list[Any]]:
    """The entries of `_parameter_constraints` for shared parameters."""
    return {name: CONSTRAINTS[name] for name in names}


def starting_policy(problem: LEMM, policy_init: Any, x_init: Any) -> Array:
    """The policy to start from: as given, greedy at given values, or action 0 everywhere."""
    if policy_init is not None and x_init is not None:
        raise ValueError("policy_init and x_init are both given; one start is enough")
    if policy_init is not None:
        return problem.check_policy(policy_init, "policy_init")
    if x_init is not None:
        return problem.greedy(problem.check_values(x_init, "x_init"))
    return np.zeros(problem.n, dtype=np.int64)


class LEMMSolver(BaseEstimator):
    """Base of the solvers: subclasses compute a `Run` in `fit` and hand it to `_finish`."""

    value_: Array
    policy_: Array
    lower_: Array | None
    upper_: Array | None
    error_bound_: float
    residual_: float
    n_iter_: int
    n_evaluations_: int
    n_switches_: int
    converged_: bool
    status_: str
    class_: LEMMClass
    problem_: LEMM
    history_: list[dict[str, Any]]
    fit: Callable[..., Any]

    def _finish(self, problem: LEMM, found: LEMMClass, run: Run) -> Self:
        """Measure what is left at the run's value, store everything, warn if it fell short."""
        finite = bool(np.isfinite(run.value).all())
        error_bound, residual = float("nan"), float("inf")
        lower, upper = run.lower, run.upper
        if finite:
            low, high, residual = BoundedGap(problem, found.weights, found.nonnegative)(run.value)
            if found.weights is not None:
                if lower is None or upper is None:
                    lower = run.value + low * found.weights
                    upper = run.value + high * found.weights
                gaps = np.maximum(run.value - lower, upper - run.value)
                error_bound = float(max(gaps.max(), 0.0))
        self.problem_ = problem
        self.class_ = found
        self.value_, self.policy_ = run.value, run.policy
        self.lower_, self.upper_ = lower, upper
        self.error_bound_, self.residual_ = error_bound, float(residual)
        self.n_iter_, self.n_evaluations_ = run.n_iter, run.n_evaluations
        self.n_switches_ = run.n_switches
        self.status_, self.converged_ = run.status, run.status == "optimal"
        self.history_ = run.history
        if not self.converged_:
            reason = "this problem has negative coefficients"
            if found.nonnegative:
                reason = "both players, or a player without a halting guarantee, switch at once"
            hint = run.message or HINTS[run.status].format(n_iter=run.n_iter, reason=reason)
            left = f"residual {self.residual_:.3g}"
            if np.isfinite(error_bound):
                left += f", error bound {error_bound:.3g}"
            warnings.warn(
                f"{type(self).__name__}: {hint}. Left: {left} (status {run.status!r}).",
                ConvergenceWarning,
                stacklevel=4,
            )
        return self

    def fit_predict(self, problem: LEMM) -> Array:
        """Fit and return the solution.

        Parameters
        ----------
        problem : LEMM
            The system.

        Returns
        -------
        ndarray of shape (n,)
            `value_`.
        """
        return self.fit(problem).value_

    def predict(self, x: Any = None) -> Array:
        """The policy found, or the greedy policy at given values.

        Parameters
        ----------
        x : array-like of shape (n,), optional
            Values; None gives `policy_`.

        Returns
        -------
        ndarray of shape (n,), int64
            Index of each node's action.
        """
        check_is_fitted(self, "value_")
        return self.policy_.copy() if x is None else self.problem_.greedy(x)

    def score(self, problem: LEMM) -> float:
        """How good the fitted values are as a solution of a problem; larger is better.

        Parameters
        ----------
        problem : LEMM
            With as many nodes as the fitted one.

        Returns
        -------
        float
            Minus the proved error bound, or minus the residual where there is no bound.
        """
        check_is_fitted(self, "value_")
        check_problem(problem)
        if problem is self.problem_:
            bound, residual = self.error_bound_, self.residual_
        else:
            x = problem.check_values(self.value_, "value_")
            v = find_weights(problem).weights
            low, high, residual = BoundedGap(problem, v, False)(x)
            bound = float("nan") if v is None else max(abs(low), abs(high)) * float(v.max())
        return -bound if np.isfinite(bound) else -residual

    def explain(self) -> Explanation:
        """Say why the answer can be trusted.

        Returns
        -------
        Explanation
            Residual, error bound, class of the problem and why the method converges on it. The
            frame has one row a node; plots: 'values', 'policy' and, if stored, 'convergence'.
        """
        from .reporting import explain_solver

        check_is_fitted(self, "value_")
        return explain_solver(self)
