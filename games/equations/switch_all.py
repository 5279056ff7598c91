"""Policy iteration: evaluate the policy, switch to better actions, repeat.

Switching every improvable node at once (Howard) is right for one player without negative
coefficients; two players alternate (Hoffman and Karp): one is answered optimally before the other
switches. With signed coefficients policy iteration may cycle; the safeguarded variant takes a
policy's value only where it shrinks the weighted residual, and sweeps otherwise.
"""

import numpy as np

from .errors import LEMMSingularError
from .evaluation import Evaluation, solve_fixed_point
from .kernels import bellman, gauss_seidel, improve
from .problem import LEMM
from .progress import Monitor
from .solver import Run

__all__ = ["all_switch", "hoffman_karp", "safeguarded"]

Array = np.ndarray
#: Sweeps of the safeguarded variant where a policy's value is refused.
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
