"""Policy iteration: evaluate the policy, switch to better actions, repeat.

Switching every improvable node at once (Howard) is right for one player without negative
coefficients; two players alternate (Hoffman and Karp): one is answered optimally before the other
switches. With signed coefficients policy iteration may cycle; the safeguarded variant takes a
policy's value only where it shrinks the weighted residual, and sweeps otherwise.
"""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from .classes import LEMMClass, classify_quickly
from .errors import LEMMSingularError
from .evaluation import Evaluation, solve_fixed_point
from .kernels import bellman, gauss_seidel, improve
from .problem import LEMM
from .progress import Monitor
from .solver import LEMMSolver, Run, check_problem

__all__ = ["PolicyIteration", "all_switch", "hoffman_karp", "safeguarded"]

Array = np.ndarray
SWEEPS = 5


def value_of(problem: LEMM, policy: Array, evaluation: Evaluation, guess: Array | None) -> Array:
    return solve_fixed_point(*problem.policy_matrix(policy), evaluation, guess)


def all_switch(
    problem: LEMM,
    policy: Array,
    tie_tol: float,
    max_iter: int,
    evaluation: Evaluation = "auto",
    movable: Array | None = None,
    guess: Array | None = None,
    monitor: Monitor | None = None,
) -> Run:
    """Switch all improvable (and movable) nodes at once until none is left.

    Parameters
    ----------
    problem : LEMM
        The system.
    policy : ndarray of shape (n,), int64
        Where to start.
    tie_tol : float
        A node switches if its violation exceeds ``tie_tol * (1 + |x_i|)``.
    max_iter : int
        Largest number of evaluations.
    evaluation : {"auto", "dense", "sparse", "krylov"}, default="auto"
        How policies are evaluated.
    movable : ndarray of bool of shape (n,), optional
        Nodes that may switch; default all.
    guess : ndarray of shape (n,), optional
        Where an iterative evaluation starts.
    monitor : Monitor, optional
        Told about every evaluation.

    Returns
    -------
    Run
        Status 'optimal', 'cycle' (the policies are in `cycle`), 'max_iter' or 'singular'.
    """
    policy = policy.copy()
    movable = np.ones(problem.n, dtype=bool) if movable is None else movable
    small = np.min_scalar_type(int(np.diff(problem.indptr).max()))
    seen: dict[bytes, int] = {}
    n_switches = evaluations = 0
    x = np.zeros(problem.n) if guess is None else guess
    for step in range(max_iter):
        key = policy.astype(small).tobytes()
        if key in seen:
            cycle = [np.frombuffer(k, dtype=small).astype(np.int64) for k in seen][seen[key] :]
            return Run(x, policy, "cycle", step, evaluations, n_switches, cycle=cycle)
        seen[key] = step
        try:
            x = value_of(problem, policy, evaluation, x)
        except LEMMSingularError as error:
            return Run(x, policy, "singular", step, evaluations, n_switches, message=str(error))
        evaluations += 1
        before = policy.copy()
        switched = improve(*problem.arrays, x, tie_tol, movable, policy)
        if monitor is not None:
            residual = problem.residual(x)
            scaled = 0.0 if switched == 0 else np.inf
            if not monitor.goes_on(step + 1, x, residual, residual, scaled) and switched:
                return Run(
                    x,
                    before,
                    "max_iter",
                    step + 1,
                    evaluations,
                    n_switches,
                    message=monitor.message,
                )
        if switched == 0:
            return Run(x, policy, "optimal", step + 1, evaluations, n_switches)
        n_switches += switched
    return Run(x, before, "max_iter", max_iter, evaluations, n_switches)


def hoffman_karp(
    problem: LEMM,
    policy: Array,
    tie_tol: float,
    max_iter: int,
    evaluation: Evaluation = "auto",
    monitor: Monitor | None = None,
) -> Run:
    """The player with more choices answers optimally, then the other switches everywhere.

    Parameters
    ----------
    problem, policy, tie_tol, max_iter, evaluation, monitor
        As in `all_switch`; `max_iter` counts the outer player's steps.

    Returns
    -------
    Run
        Status as in `all_switch`; a cycle is one of the outer player's policies.
    """
    policy = policy.copy()
    maximisers = problem.op > 0
    inner = maximisers if maximisers.sum() >= (problem.op < 0).sum() else problem.op < 0
    outer = (problem.op != 0) & ~inner
    seen: dict[bytes, int] = {}
    policies: list[Array] = []
    n_switches = evaluations = 0
    x: Array | None = None
    for step in range(max_iter):
        key = policy[outer].tobytes()
        if key in seen:
            x = np.zeros(problem.n) if x is None else x
            cycle = policies[seen[key] :]
            return Run(x, policy, "cycle", step, evaluations, n_switches, cycle=cycle)
        seen[key] = step
        answer = all_switch(problem, policy, tie_tol, max_iter, evaluation, inner, x)
        evaluations += answer.n_evaluations
        n_switches += answer.n_switches
        x, policy = answer.value, answer.policy
        if answer.status != "optimal":
            answer.n_iter, answer.n_evaluations = step + 1, evaluations
            answer.n_switches = n_switches
            return answer
        policies.append(policy.copy())
        switched = improve(*problem.arrays, x, tie_tol, outer, policy)
        if monitor is not None:
            residual = problem.residual(x)
            scaled = 0.0 if switched == 0 else np.inf
            if not monitor.goes_on(step + 1, x, residual, residual, scaled) and switched:
                message = monitor.message
                return Run(
                    x, policies[-1], "max_iter", step + 1, evaluations, n_switches, message=message
                )
        if switched == 0:
            return Run(x, policy, "optimal", step + 1, evaluations, n_switches)
        n_switches += switched
    assert x is not None
    return Run(x, policies[-1], "max_iter", max_iter, evaluations, n_switches)


def safeguarded(
    problem: LEMM,
    policy: Array,
    v: Array,
    beta: float,
    tie_tol: float,
    max_iter: int,
    evaluation: Evaluation = "auto",
    monitor: Monitor | None = None,
    x: Array | None = None,
) -> Run:
    """Policy iteration that cannot cycle on absolutely halting systems.

    The greedy policy's value y is accepted if ``|T(y) - y|_v <= beta |T(x) - x|_v``; otherwise
    a few sweeps shrink the error of x by the contraction factor. So the residual tends to 0, and
    once x is close the greedy policy is optimal.

    Parameters
    ----------
    problem, policy, tie_tol, max_iter, evaluation, monitor
        As in `all_switch`.
    v : ndarray of shape (n,)
        Weights that prove the contraction.
    beta : float
        In (0, 1).
    x : ndarray of shape (n,), optional
        Where to start; default the value of `policy`.

    Returns
    -------
    Run
        Status 'optimal' or 'max_iter' ('singular' cannot occur in this class).
    """
    order = np.arange(problem.n)
    movable = np.ones(problem.n, dtype=bool)
    x = value_of(problem, policy, evaluation, None) if x is None else x.copy()
    evaluations, n_switches = 1, 0
    policy = policy.copy()
    size = float(np.max(np.abs(problem.T(x) - x) / v))
    message = ""
    for step in range(max_iter):
        greedy = np.empty(problem.n, dtype=np.int64)
        bellman(*problem.arrays, x, 0, problem.n, np.empty(problem.n), greedy)
        y = value_of(problem, greedy, evaluation, x)
        evaluations += 1
        n_switches += int((greedy != policy).sum())
        policy = greedy
        if improve(*problem.arrays, y, tie_tol, movable, policy.copy()) == 0:
            return Run(y, policy, "optimal", step + 1, evaluations, n_switches)
        residual = float(np.max(np.abs(problem.T(y) - y) / v))
        if residual <= beta * size:
            x, size = y, residual
        else:
            gauss_seidel(*problem.arrays, order, 1.0, SWEEPS, x)
            size = min(size, float(np.max(np.abs(problem.T(x) - x) / v)))
        if monitor is not None and not monitor.goes_on(step + 1, x, size, size, np.inf):
            message = monitor.message
            break
    return Run(x, policy, "max_iter", step + 1, evaluations, n_switches, message=message)


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
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "on_cycle": [StrOptions({"fallback", "raise", "return"})],
        "store_history": ["boolean"],
        "callback": [callable, None],
        "verbose": ["verbose"],
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
        if policy_init is not None and x_init is not None:
            raise ValueError("policy_init and x_init are both given; one start is enough")
        policy = np.zeros(problem.n, dtype=np.int64)
        if policy_init is not None:
            policy = problem.check_policy(policy_init, "policy_init")
        elif x_init is not None:
            policy = problem.greedy(problem.check_values(x_init, "x_init"))
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
            from .simple_policy_iteration import generic_direction, parametric_rule

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
