"""Simple policy iteration: one node switches at a time, along a unique sink orientation.

Where all determinants det(I - Q) have one sign, an edge between two policies is improving in
exactly one direction, and every sub-grid of policies has one sink. Two rules then always end
at the solution: the least-index rule (Murty), and the parametric rule (Lemke), which follows the
solution for offsets ``b - s t d`` from large t down to t = 0.
"""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from .classes import classify_quickly
from .errors import LEMMSingularError
from .exact import polish_exactly
from .inverse import PolicyInverse, SignChangeError
from .problem import LEMM
from .solver import LEMMSolver, Run, check_problem

__all__ = [
    "SimplePolicyIteration",
    "generic_direction",
    "parametric_rule",
    "switching_rule",
]

Array = np.ndarray
#: t may rise by this much (relatively) through rounding before it counts as turning back.
SLIP = 1e-7
Callback = Callable[[int, Array, float], Any] | None


def generic_direction(problem: LEMM, policy: Array, random_state: Any) -> Array:
    """Random d in [1, 2] for every action but the policy's, where it is 0; shape (m,)."""
    d = check_random_state(random_state).uniform(1, 2, size=problem.m)
    d[problem.indptr[:-1] + policy] = 0.0
    return d


def owners(problem: LEMM) -> Array:
    return np.repeat(np.arange(problem.n), np.diff(problem.indptr))


def not_w(run: Run, error: SignChangeError) -> Run:
    run.status, run.message, run.witness = "not_W", str(error), error.policies
    return run


def parametric_rule(
    problem: LEMM,
    policy: Array,
    direction: Array,
    tie_tol: float = 1e-10,
    max_switches: int | None = None,
    refactor_every: int = 50,
    callback: Callback = None,
) -> Run:
    """Follow the solution of the offsets ``b_a - s_i t d_a`` from t = infinity to t = 0.

    Parameters
    ----------
    problem : LEMM
        The system.
    policy : ndarray of shape (n,), int64
        Optimal for large t.
    direction : ndarray of shape (m,)
        d, positive for all actions but the policy's, where it is 0. Generic (random) values make
        one action tight at a time.
    tie_tol : float, default=1e-10
        Relative tolerance below which a slack counts as 0.
    max_switches : int, optional
        Stop after so many switches.
    refactor_every : int, default=50
        Rank-one updates of the inverse before it is computed afresh.
    callback : callable, optional
        Called as ``callback(n_switches, x, t)``.

    Returns
    -------
    Run
        Status 'optimal', 'max_iter', 'singular', or 'not_W' if t turned back or a determinant
        changed its sign; `witness` then holds the two policies where there are two.
    """
    owner = owners(problem)
    s = problem.sign[owner].astype(float)
    try:
        inverse = PolicyInverse(problem, policy, refactor_every)
    except LEMMSingularError as error:
        return Run(np.zeros(problem.n), policy.copy(), "singular", message=str(error))
    t, switches = np.inf, 0
    slope_rhs = -s * direction
    x0, x1 = inverse.solve(problem.b), np.zeros(problem.n)
    while True:
        run = Run(x0, inverse.policy.copy(), "optimal", switches, switches + 1, switches)
        c0 = s * (x0[owner] - problem.A @ x0 - problem.b)  # slack at t = 0
        c1 = s * (x1[owner] - problem.A @ x1) + direction  # its slope in t
        c0[inverse.rows] = c1[inverse.rows] = 0.0
        size = 1 + np.abs(x0[owner])
        # A slack that is zero up to rounding at t = 0 isn't worth a switch.
        falling = (c1 > 1e-13 * (1 + np.abs(x1[owner]))) & (c0 < -tie_tol * size)
        if not falling.any():
            return run
        rows = np.flatnonzero(falling)
        crossing = -c0[rows] / c1[rows]
        k = int(np.argmax(crossing))
        if crossing[k] > t * (1 + SLIP) + SLIP:
            run.status = "not_W"
            run.message = (
                "the parametric path turned back, which cannot happen where solutions are unique "
                "for all offsets (or rounding hides it)"
            )
            return run
        if max_switches is not None and switches >= max_switches:
            run.status = "max_iter"
            run.message = f"stopped after {switches} switches at t = {min(t, crossing[k]):.3g}"
            return run
        t = float(min(t, crossing[k]))
        try:
            inverse.switch(int(owner[rows[k]]), int(rows[k]))
        except SignChangeError as error:
            return not_w(run, error)
        switches += 1
        x0, x1 = inverse.solve(problem.b), inverse.solve(slope_rhs)
        if callback is not None and callback(switches, x0.copy(), t):
            message = f"stopped by the callback after {switches} switches"
            return Run(
                x0,
                inverse.policy.copy(),
                "max_iter",
                switches,
                switches + 1,
                switches,
                message=message,
            )


def switching_rule(
    problem: LEMM,
    policy: Array,
    rule: str = "least_index",
    order: Array | None = None,
    pick: str = "largest",
    tie_tol: float = 1e-10,
    max_switches: int | None = None,
    refactor_every: int = 50,
    random_state: Any = None,
    callback: Callback = None,
) -> Run:
    """Switch one violated action at a time until none is left.

    Parameters
    ----------
    problem, policy, tie_tol, max_switches, refactor_every
        As in `parametric_rule`.
    rule : {"least_index", "largest_violation"}, default="least_index"
        Switch the first node in `order` with a violated action, or the largest violation of
        all, which may cycle.
    order : ndarray of shape (n,), optional
        Order of the least-index rule; default 0, 1, ...
    pick : {"largest", "first", "random"}, default="largest"
        Which of the node's violated actions is taken.
    random_state : int, RandomState or None, default=None
        For pick "random".
    callback : callable, optional
        Called as ``callback(n_switches, x, violation)``.

    Returns
    -------
    Run
        Status 'optimal', 'max_iter', 'cycle', 'singular' or 'not_W'.
    """
    owner = owners(problem)
    s = problem.sign[owner].astype(float)
    rng = check_random_state(random_state)
    rank = np.empty(problem.n, dtype=np.int64)
    rank[np.arange(problem.n) if order is None else order] = np.arange(problem.n)
    try:
        inverse = PolicyInverse(problem, policy, refactor_every)
    except LEMMSingularError as error:
        return Run(np.zeros(problem.n), policy.copy(), "singular", message=str(error))
    seen: dict[bytes, int] = {}
    policies: list[Array] = []
    switches = 0
    while True:
        x = inverse.solve(problem.b)
        run = Run(x, inverse.policy.copy(), "optimal", switches, switches + 1, switches)
        violation = s * (problem.A @ x + problem.b - x[owner])
        violation[inverse.rows] = 0.0
        rows = np.flatnonzero(violation > tie_tol * (1 + np.abs(x[owner])))
        if rows.size == 0:
            return run
        if rule == "largest_violation":
            key = inverse.policy.tobytes()
            if key in seen:
                run.status, run.cycle = "cycle", policies[seen[key] :]
                run.message = (
                    f"the largest-violation rule repeated a policy after {switches} switches; it "
                    "has no guarantee: use rule='parametric' or 'least_index'"
                )
                return run
            seen[key] = switches
            policies.append(inverse.policy.copy())
            row = int(rows[np.argmax(violation[rows])])
        else:
            first = owner[rows[np.argmin(rank[owner[rows]])]]
            rows = rows[owner[rows] == first]
            if pick == "largest":
                row = int(rows[np.argmax(violation[rows])])
            else:
                row = int(rows[0] if pick == "first" else rng.choice(rows))
        if max_switches is not None and switches >= max_switches:
            run.status = "max_iter"
            run.message = f"stopped after {switches} switches"
            return run
        worst = float(violation[row])
        try:
            inverse.switch(int(owner[row]), row)
        except SignChangeError as error:
            return not_w(run, error)
        switches += 1
        if callback is not None and callback(switches, x.copy(), worst):
            run.status, run.message = "max_iter", f"stopped by the callback: {switches} switches"
            return run


class SimplePolicyIteration(LEMMSolver):
    """Solve a system by switching one node at a time; converges on every class, W included.

    Parameters
    ----------
    rule : {"parametric", "least_index", "largest_violation"}, default="parametric"
        Follow the solution along a random path of offsets (fast in practice); switch the first
        node with a violated action; or the largest violation, which may cycle.
    order : {"natural", "reverse", "random"} or array-like of shape (n,), default="natural"
        Order of the nodes for "least_index".
    pick : {"largest", "first", "random"}, default="largest"
        Which violated action of that node "least_index" takes.
    tol : float, default=1e-10
        A violation counts if it exceeds ``tol * (1 + |x_i|)``.
    max_switches : int, default=None
        Stop after so many switches.
    exact : bool, default=False
        Finish in rational arithmetic: `exact_value_` solves the equations exactly.
    refactor_every : int, default=50
        Rank-one updates between two fresh factorisations.
    random_state : int, RandomState or None, default=None
        For the path's direction, a random order and random picks.
    callback : callable, default=None
        Called as ``callback(n_switches, x, gap)`` after each switch, where gap is t or the
        violation; a true answer stops.

    Attributes
    ----------
    value_ : ndarray of shape (n,)
        Value of `policy_`; the solution if `status_` is 'optimal'.
    policy_ : ndarray of shape (n,), int64
        The policy.
    exact_value_ : list of Fraction or None
        With ``exact=True``: the exact solution.
    lower_, upper_ : ndarray of shape (n,) or None
        Proved bounds; None where the system isn't proved absolutely halting.
    error_bound_ : float
        Largest possible error of `value_`; NaN where there are no bounds.
    residual_ : float
        Largest ``|T(x) - x|``.
    n_iter_, n_evaluations_, n_switches_ : int
        Switches, policies evaluated, switches.
    converged_ : bool
        Whether `status_` is 'optimal'.
    status_ : str
        'optimal', 'max_iter', 'cycle', 'singular' or 'not_W'.
    cycle_ : list of ndarray
        The policies that repeat with "largest_violation"; else empty.
    witness_ : tuple of ndarray
        Two policies with determinants of opposite signs, if met.
    history_ : list
        Empty; here for a common interface.
    class_ : LEMMClass
        What could be proved about the system in polynomial time.
    problem_ : LEMM
        What was fitted.

    Notes
    -----
    Both rules stop at the first policy without a violation, so they cannot see a second solution:
    uniqueness is proved only where `class_` or `classify_lemm` proves it.

    References
    ----------
    .. [1] K. G. Murty, "Note on a Bard-type scheme for solving the complementarity problem", 1974.
    .. [2] B. Gärtner, L. Rüst, "Simple stochastic games and P-matrix generalized linear
       complementarity problems", 2005.

    Examples
    --------
    >>> from equipoise.games import LEMM, SimplePolicyIteration
    >>> problem = LEMM.from_equations(
    ...     ["x = max(0, 3 - 0.8*z)", "y = max(-2 - 0.8*z, 3)", "z = max(1 - 0.8*y, -0.8*x)"]
    ... )
    >>> solver = SimplePolicyIteration(rule="least_index", exact=True).fit(problem)
    >>> [str(value) for value in solver.exact_value_], solver.n_switches_
    (['103/25', '3', '-7/5'], 2)
    """

    _parameter_constraints: ClassVar[dict] = {
        "rule": [StrOptions({"parametric", "least_index", "largest_violation"})],
        "order": [StrOptions({"natural", "reverse", "random"}), "array-like"],
        "pick": [StrOptions({"largest", "first", "random"})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_switches": [Interval(Integral, 0, None, closed="left"), None],
        "exact": ["boolean"],
        "refactor_every": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "callback": [callable, None],
    }

    cycle_: list[Array]
    witness_: tuple[Array, ...]
    exact_value_: list[Any] | None

    def __init__(
        self,
        rule: str = "parametric",
        order: Any = "natural",
        pick: str = "largest",
        tol: float = 1e-10,
        max_switches: int | None = None,
        exact: bool = False,
        refactor_every: int = 50,
        random_state: Any = None,
        callback: Callback = None,
    ) -> None:
        self.rule = rule
        self.order = order
        self.pick = pick
        self.tol = tol
        self.max_switches = max_switches
        self.exact = exact
        self.refactor_every = refactor_every
        self.random_state = random_state
        self.callback = callback

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, problem: LEMM, policy_init: Any = None, x_init: Any = None) -> Self:
        """Switch until no action is violated.

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
        self : SimplePolicyIteration
            Fitted.

        Raises
        ------
        ValueError
            If `order` isn't a permutation, or order or pick are set for another rule.
        """
        check_problem(problem)
        if policy_init is not None and x_init is not None:
            raise ValueError("policy_init and x_init are both given; one start is enough")
        policy = np.zeros(problem.n, dtype=np.int64)
        if policy_init is not None:
            policy = problem.check_policy(policy_init, "policy_init")
        elif x_init is not None:
            policy = problem.greedy(problem.check_values(x_init, "x_init"))
        rng = check_random_state(self.random_state)
        order = self._order(problem, rng)
        if self.rule == "parametric":
            run = parametric_rule(
                problem,
                policy,
                generic_direction(problem, policy, rng),
                self.tol,
                self.max_switches,
                self.refactor_every,
                self.callback,
            )
        else:
            run = switching_rule(
                problem,
                policy,
                self.rule,
                order,
                self.pick,
                self.tol,
                self.max_switches,
                self.refactor_every,
                rng,
                self.callback,
            )
        if self.exact and run.status == "optimal":
            run = polish_exactly(problem, run)
        found = classify_quickly(problem)
        self.cycle_, self.witness_ = run.cycle, run.witness
        self.exact_value_ = run.exact_value
        return self._finish(problem, found, run)

    def _order(self, problem: LEMM, rng: np.random.RandomState) -> Array:
        named = isinstance(self.order, str)
        if self.rule != "least_index" and not (named and self.order == "natural"):
            raise ValueError(f"order={self.order!r} needs rule='least_index', got {self.rule!r}")
        if self.rule != "least_index" and self.pick != "largest":
            raise ValueError(f"pick={self.pick!r} needs rule='least_index', got {self.rule!r}")
        natural = np.arange(problem.n)
        if named:
            if self.order == "random":
                return rng.permutation(problem.n)
            return natural if self.order == "natural" else natural[::-1]
        order = np.asarray(self.order)
        if order.shape != natural.shape or not np.array_equal(np.sort(order), natural):
            raise ValueError(f"order must be a permutation of 0 to {problem.n - 1}")
        return order.astype(np.int64)
