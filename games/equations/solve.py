"""One function for people in a hurry: classify, choose a method, solve, certify."""

from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult
from sklearn.utils import check_random_state

from .classes import LEMMClass, classify_lemm, classify_quickly
from .decomposition import solve_by_components, solve_halting
from .errors import LEMMNotUniqueError
from .exact import limit_denominators, polish_exactly
from .graph import sweep_order
from .kernels import gauss_seidel
from .lemke import LemkeSolver
from .linear_program import LinearProgramLEMM
from .policy_iteration import PolicyIteration
from .problem import LEMM
from .simple_policy_iteration import SimplePolicyIteration
from .solver import BoundedGap, LEMMSolver, Run, check_problem
from .value_iteration import ValueIteration

__all__ = ["check_uniqueness", "solve_lemm"]

METHODS = {
    "value_iteration": ValueIteration,
    "policy_iteration": PolicyIteration,
    "parametric": SimplePolicyIteration,
    "least_index": SimplePolicyIteration,
    "lemke": LemkeSolver,
    "linear_program": LinearProgramLEMM,
}
#: Up to this many nodes policies are evaluated by direct elimination, which is exact to rounding.
SMALL = 600
#: Sweeps after which a large system that isn't solved yet is handed to policy iteration.
SWEEPS = 2000
#: Policies of a component whose determinants "auto" compares.
ENUMERATED = 2**12


def substitute(problem: LEMM) -> Run:
    """Back-substitution in an acyclic system: one sweep, sinks first."""
    label, order, bounds = problem.components
    x = np.zeros(problem.n)
    ranks = sweep_order(label, order, bounds, *problem.edges)
    gauss_seidel(*problem.arrays, ranks, 1.0, 1, x)
    return Run(x, problem.greedy(x), "optimal", 1)


def sweeping_solver(problem: LEMM, found: LEMMClass, tol: float) -> ValueIteration:
    """The fastest sweeps for a large absolutely halting system."""
    v = found.weights
    assert v is not None
    if found.one_player and found.nonnegative and v.min() == v.max():
        scheme = "modified_policy"
    elif BoundedGap(problem, v, found.nonnegative).uniform:
        scheme = "jacobi"
    else:
        scheme = "gauss_seidel"
    return ValueIteration(scheme, tol=tol, check_every="auto", max_iter=SWEEPS)


def check_uniqueness(problem: LEMM, rng: np.random.RandomState) -> LEMMClass:
    """The class of a system, unless it is refuted that solutions are unique.

    Raises
    ------
    LEMMNotUniqueError
        With the policies that refute it.
    """
    found = classify_quickly(problem)
    if found.weights is not None:
        return found
    found = classify_lemm(problem, ENUMERATED, rng)
    if found.w_property is False:
        policies = found.refuting_policy or ()
        shown = " and ".join(np.array2string(policy, threshold=20) for policy in policies)
        what = "is singular" if len(policies) == 1 else "have determinants of opposite signs"
        raise LEMMNotUniqueError(
            f"the solution isn't unique for all offsets: {shown} {what}; for a process that may "
            "never end, give terminal= states, a discount, or use halting_transform",
            policies,
        )
    return found


def solve_automatically(
    problem: LEMM, tol: float, rng: np.random.RandomState, n_jobs: int | None
) -> tuple[str, LEMMClass, Run]:
    """Choose by class and size; returns the method's name, the class, and the run."""
    found = classify_quickly(problem)
    if found.weights is not None:
        if found.acyclic:
            return "substitution", found, substitute(problem)
        if problem.n > SMALL:
            solver = sweeping_solver(problem, found, tol)
            run = solver.compute(problem, found)
            if run.status == "optimal":
                return f"value_iteration ({solver.scheme})", found, run
            return "policy_iteration", found, solve_halting(problem, found, x=run.value)
        return "policy_iteration", found, solve_halting(problem, found)
    found = check_uniqueness(problem, rng)
    return "components", found, solve_by_components(problem, rng, n_jobs)


def solve_lemm(
    p: LEMM,
    method: str = "auto",
    *,
    tol: float = 1e-8,
    exact: bool = False,
    limit_denominator: int | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    **kw: Any,
) -> OptimizeResult:
    """Solve a system of min and max equations, whatever its class, and say how sure it is.

    Parameters
    ----------
    p : LEMM
        The system.
    method : str, default="auto"
        "auto" chooses by class and size; or "value_iteration", "policy_iteration",
        "parametric", "least_index", "lemke", "linear_program".
    tol : float, default=1e-8
        Largest error, where it can be bounded and method is "auto" or "value_iteration".
    exact : bool, default=False
        Finish in rational arithmetic (at most 2000 nodes).
    limit_denominator : int, optional
        Read every float as the nearest fraction with at most this denominator, so that 0.8 is
        4/5; needs ``exact=True``.
    random_state : int, RandomState or None, default=None
        Seeds random directions and searches.
    n_jobs : int, optional
        Threads for independent components, with method "auto".
    **kw
        Parameters of the method's solver.

    Returns
    -------
    OptimizeResult
        x (n,), policy (n,), success, status, message, nit, nfev (evaluations, or sweeps),
        error_bound (NaN if none is proved), lower, upper, unique (True if proved, else None),
        certificate ('exact', 'bound' or 'residual'), method, problem_class (label) and x_exact
        (list of Fraction, or None).

    Raises
    ------
    LEMMNotUniqueError
        If "auto" proves that solutions aren't unique; it holds the policies that prove it.
    TypeError
        If `p` isn't a `LEMM`.
    ValueError
        If a parameter or the problem's class is wrong for the method.

    Examples
    --------
    >>> from equipoise.games import LEMM, solve_lemm
    >>> problem = LEMM.from_equations(
    ...     ["x = max(0, 3 - 0.8*z)", "y = max(-2 - 0.8*z, 3)", "z = max(1 - 0.8*y, -0.8*x)"]
    ... )
    >>> answer = solve_lemm(problem, exact=True)
    >>> answer.x.tolist(), answer.policy.tolist(), answer.certificate, answer.unique
    ([4.12, 3.0, -1.4], [1, 1, 0], 'exact', True)
    """
    check_problem(p)
    if not tol > 0:
        raise ValueError(f"tol={tol!r} must be positive")
    if limit_denominator is not None:
        if not exact:
            raise ValueError("limit_denominator reads numbers as fractions: it needs exact=True")
        p = limit_denominators(p, limit_denominator)
    rng = check_random_state(random_state)
    if method == "auto":
        if kw:
            raise ValueError(f"method='auto' takes no further parameters, got {sorted(kw)}")
        name, found, run = solve_automatically(p, tol, rng, n_jobs)
    elif method in METHODS:
        if n_jobs is not None:
            raise ValueError(f"n_jobs={n_jobs} needs method='auto', got {method!r}")
        if method == "value_iteration":
            kw["tol"] = tol
        if method in ("parametric", "least_index"):
            kw.update(rule=method, random_state=rng)
        solver: LEMMSolver = METHODS[method](**kw).fit(p)
        name, found = method, solver.class_
        run = Run(
            solver.value_,
            solver.policy_,
            solver.status_,
            solver.n_iter_,
            solver.n_evaluations_,
            solver.n_switches_,
            solver.lower_,
            solver.upper_,
        )
    else:
        raise ValueError(f"method={method!r} is not known; allowed: 'auto', {sorted(METHODS)}")
    if exact and run.status == "optimal":
        run = polish_exactly(p, run)
        run.lower = run.upper = run.residual = None  # they belong to the float values
    return result_of(p, name, found, run, tol)


def result_of(p: LEMM, name: str, found: LEMMClass, run: Run, tol: float) -> OptimizeResult:
    """The run with its certificate, as SciPy's optimisers return it."""
    lower, upper, residual = run.lower, run.upper, run.residual
    if residual is None and np.isfinite(run.value).all():
        low, high, residual = BoundedGap(p, found.weights, found.nonnegative)(run.value)
        if found.weights is not None and (lower is None or upper is None):
            lower = run.value + low * found.weights
            upper = run.value + high * found.weights
    error_bound = float("nan")
    if lower is not None and upper is not None:
        error_bound = float(np.maximum(run.value - lower, upper - run.value).max())
    residual = float("inf") if residual is None else residual
    exact = run.exact_value is not None
    kind = "exact" if exact else "residual" if found.weights is None else "bound"
    success = run.status == "optimal"
    message = run.message or (
        f"solved by {name}: residual {residual:.2g}"
        if success
        else f"{name} ended with status {run.status!r}, residual {residual:.2g} left"
    )
    if success and error_bound > tol and not exact:
        message += f"; rounding keeps the proved bound, {error_bound:.2g}, above tol={tol:.2g}"
    if success and not found.w_property:
        message += "; uniqueness of the solution is unproved"
    return OptimizeResult(
        x=run.value,
        policy=run.policy,
        success=success,
        status=run.status,
        message=message,
        nit=run.n_iter,
        nfev=run.n_evaluations or run.n_iter,
        error_bound=error_bound,
        lower=lower,
        upper=upper,
        unique=True if found.w_property else None,
        certificate=kind,
        method=name,
        problem_class=found.label,
        x_exact=run.exact_value,
    )
