"""Policy iteration as a solver: a variant for each class, and a way out of cycles."""

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from .classes import LEMMClass, classify_quickly
from .evaluation import Evaluation
from .problem import LEMM
from .progress import Monitor
from .solver import LEMMSolver, Run, check_problem, constraints, starting_policy
from .switch_all import all_switch, hoffman_karp, safeguarded
from .switch_one import generic_direction, parametric_rule

__all__ = ["PolicyIteration"]

Array = np.ndarray


class PolicyIteration(LEMMSolver):
    """Solve a system by policy iteration.

    Parameters
    ----------
    variant : str, default="auto"
        "howard" (one player), "hoffman_karp", "simultaneous" (both players switch at once; may
        cycle), "safeguarded" (absolutely halting systems), or "auto": Howard for one player and
        Hoffman-Karp for two if no coefficient is negative, safeguarded otherwise. Where "auto"
        can't prove the system absolutely halting, it takes Howard or Hoffman-Karp and relies on
        `on_cycle`.
    evaluation : {"auto", "dense", "sparse", "krylov"}, default="auto"
        How large components of a policy's linear system are solved.
    beta : float, default=0.5
        The safeguarded variant accepts a policy's value that shrinks the residual this much.
    tol : float, default=1e-10
        A node switches if an action is better by more than ``tol * (1 + |x_i|)``.
    max_iter : int, default=1000
        Largest number of steps.
    on_cycle : {"fallback", "raise", "return"}, default="fallback"
        When a policy repeats: go on with the parametric rule from there, raise RuntimeError, or
        return with status 'cycle'.
    store_history : bool, default=False
        Keep the residual of every step in `history_`.
    callback : callable, default=None
        Called as ``callback(n_iter, x, residual)`` after each step; a true answer stops.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    value_ : ndarray of shape (n,)
        Value of `policy_`; the solution if `status_` is 'optimal'.
    policy_ : ndarray of shape (n,), int64
        The policy.
    lower_, upper_ : ndarray of shape (n,) or None
        Proved bounds; None where the system isn't proved absolutely halting.
    error_bound_ : float
        Largest possible error of `value_`; NaN where there are no bounds.
    residual_ : float
        Largest ``|T(x) - x|``.
    n_iter_, n_evaluations_, n_switches_ : int
        Steps, linear systems solved, and switches of single nodes.
    converged_ : bool
        Whether `status_` is 'optimal'.
    status_ : str
        'optimal', 'max_iter', 'cycle', 'singular' or (from the fallback) 'not_W'.
    cycle_ : list of ndarray
        The policies that repeat, if a cycle was met (also before a fallback); else empty.
    history_ : list of dict
        With `store_history`: n_iter and residual.
    class_ : LEMMClass
        What could be proved about the system in polynomial time.
    problem_ : LEMM
        What was fitted.

    References
    ----------
    .. [1] A. J. Hoffman, R. M. Karp, "On nonterminating stochastic games", 1966.
    .. [2] I. Ben Gharbia, J. C. Gilbert, "Nonconvergence of the plain Newton-min algorithm for
       linear complementarity problems with a P-matrix", 2012.

    Examples
    --------
    >>> from equipoise.games import LEMM, PolicyIteration
    >>> problem = LEMM.from_equations(["x = max(1 + 0.5*y, 2)", "y = min(x, 1 + 0.1*y)"])
    >>> solver = PolicyIteration().fit(problem)
    >>> solver.value_.round(6).tolist(), solver.policy_.tolist(), solver.status_
    ([2.0, 1.111111], [1, 1], 'optimal')
    """

    _parameter_constraints: ClassVar[dict] = {
        "variant": [StrOptions({"auto", "howard", "hoffman_karp", "simultaneous", "safeguarded"})],
        "evaluation": [StrOptions({"auto", "dense", "sparse", "krylov"})],
        "beta": [Interval(Real, 0, 1, closed="neither")],
        "on_cycle": [StrOptions({"fallback", "raise", "return"})],
        **constraints("tol", "max_iter", "store_history", "callback", "verbose"),
    }

    cycle_: list[Array]

    def __init__(
        self,
        variant: str = "auto",
        evaluation: Evaluation = "auto",
        beta: float = 0.5,
        tol: float = 1e-10,
        max_iter: int = 1000,
        on_cycle: str = "fallback",
        store_history: bool = False,
        callback: Callable[[int, Array, float], Any] | None = None,
        verbose: bool = False,
    ) -> None:
        self.variant = variant
        self.evaluation = evaluation
        self.beta = beta
        self.tol = tol
        self.max_iter = max_iter
        self.on_cycle = on_cycle
        self.store_history = store_history
        self.callback = callback
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, problem: LEMM, policy_init: Any = None, x_init: Any = None) -> Self:
        """Iterate policies until none can be improved.

        Parameters
        ----------
        problem : LEMM
            The system.
        policy_init : array-like of int of shape (n,), optional
            Where to start; default action 0 everywhere.
        x_init : array-like of shape (n,), optional
            Start from the greedy policy here; not together with `policy_init`.

        Returns
        -------
        self : PolicyIteration
            Fitted.

        Raises
        ------
        ValueError
            If the variant doesn't fit the problem.
        RuntimeError
            If a policy repeats and `on_cycle` is "raise".
        """
        check_problem(problem)
        policy = starting_policy(problem, policy_init, x_init)
        found = classify_quickly(problem)
        variant = self._variant(found)
        with Monitor(
            0.0, self.callback, False, self.store_history, self.verbose, sweeping=False
        ) as monitor:
            run = self._run(problem, policy, variant, found, monitor)
        run.history = monitor.history
        cycle = run.cycle
        if run.status == "cycle" and self.on_cycle == "raise":
            raise RuntimeError(
                f"policy iteration repeated a policy after {run.n_iter} steps (a cycle of "
                f"{len(cycle)}); use on_cycle='fallback', solve_lemm or SimplePolicyIteration"
            )
        if run.status == "cycle" and self.on_cycle == "fallback":
            direction = generic_direction(problem, run.policy, 0)
            rest = parametric_rule(problem, run.policy, direction, self.tol)
            rest.history = run.history
            rest.n_iter += run.n_iter
            rest.n_evaluations += run.n_evaluations
            rest.n_switches += run.n_switches
            run = rest
        self.cycle_ = cycle
        return self._finish(problem, found, run)

    def _variant(self, found: LEMMClass) -> str:
        if self.variant == "howard" and not found.one_player:
            raise ValueError(
                "variant='howard' is for one player, and the problem has max and min nodes; "
                "allowed: 'hoffman_karp', 'simultaneous', 'safeguarded', 'auto'"
            )
        if self.variant == "safeguarded" and found.weights is None:
            raise ValueError(
                "variant='safeguarded' needs weights: the problem isn't proved absolutely halting"
            )
        if self.variant != "auto":
            return self.variant
        if not found.nonnegative and found.weights is not None:
            return "safeguarded"
        return "howard" if found.one_player else "hoffman_karp"

    def _run(
        self, problem: LEMM, policy: Array, variant: str, found: LEMMClass, monitor: Monitor
    ) -> Run:
        if variant == "hoffman_karp":
            return hoffman_karp(problem, policy, self.tol, self.max_iter, self.evaluation, monitor)
        if variant == "safeguarded":
            assert found.weights is not None
            return safeguarded(
                problem,
                policy,
                found.weights,
                self.beta,
                self.tol,
                self.max_iter,
                self.evaluation,
                monitor,
            )
        return all_switch(
            problem, policy, self.tol, self.max_iter, self.evaluation, monitor=monitor
        )
