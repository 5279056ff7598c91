"""Simple policy iteration as a solver: one switch at a time, on every class of systems."""

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from .block_rule import block_least_index
from .classes import classify_quickly
from .exact import polish_exactly
from .problem import LEMM
from .seesaw import fibonacci_seesaw
from .solver import LEMMSolver, check_problem, constraints, starting_policy
from .switch_one import Callback, generic_direction, parametric_rule, switching_rule

__all__ = ["SimplePolicyIteration"]

Array = np.ndarray
#: Rules that take `order` and `pick`.
ORDERED = ("least_index", "block_least_index")


class SimplePolicyIteration(LEMMSolver):
    """Solve a system by switching one node at a time; converges on every class, W included.

    Parameters
    ----------
    rule : str, default="parametric"
        "parametric" follows the solution along a random path of offsets (fast in practice);
        "least_index" switches the first node with a violated action; "block_least_index" does so
        too, but solves at once the first nodes, as many as are absolutely halting while the
        others hold their policy (dense, O(n^3) a switch); "fibonacci_seesaw" evaluates fewest
        policies in the worst case, about 1.62^d for d nodes with two actions each and no more
        than 25 of them (experimental); "largest_violation" may cycle.
    order : {"natural", "reverse", "random"} or array-like of shape (n,), default="natural"
        Order of the nodes for the least-index rules.
    pick : {"largest", "first", "random"}, default="largest"
        Which violated action of that node the least-index rules take.
    tol : float, default=1e-10
        A violation counts if it exceeds ``tol * (1 + |x_i|)``.
    max_switches : int, default=None
        Stop after so many switches (for "block_least_index" those outside the block; for
        "fibonacci_seesaw", which jumps, after so many further policies).
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
        Switches (outside the block), policies evaluated, all switches.
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
    All rules stop at the first policy without a violation, so they cannot see a second solution:
    uniqueness is proved only where `class_` or `classify_lemm` proves it.

    References
    ----------
    .. [1] K. G. Murty, "Note on a Bard-type scheme for solving the complementarity problem", 1974.
    .. [2] B. Gärtner, L. Rüst, "Simple stochastic games and P-matrix generalized linear
       complementarity problems", 2005.
    .. [3] T. Szabó, E. Welzl, "Unique sink orientations of cubes", 2001.

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
        "rule": [StrOptions({"parametric", *ORDERED, "fibonacci_seesaw", "largest_violation"})],
        "order": [StrOptions({"natural", "reverse", "random"}), "array-like"],
        "pick": [StrOptions({"largest", "first", "random"})],
        "max_switches": [Interval(Integral, 0, None, closed="left"), None],
        "exact": ["boolean"],
        "refactor_every": [Interval(Integral, 1, None, closed="left")],
        **constraints("tol", "random_state", "callback"),
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
            If `order` isn't a permutation, order or pick are set for another rule, or the system
            is too large or has too many actions a node for "fibonacci_seesaw".
        """
        check_problem(problem)
        policy = starting_policy(problem, policy_init, x_init)
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
        elif self.rule == "fibonacci_seesaw":
            run = fibonacci_seesaw(problem, policy, self.tol, self.max_switches, self.callback)
        elif self.rule == "block_least_index":
            run = block_least_index(
                problem, policy, order, self.pick, self.tol, self.max_switches, rng, self.callback
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
        if self.rule not in ORDERED:
            allowed = " or ".join(f"rule={rule!r}" for rule in ORDERED)
            if not (named and self.order == "natural"):
                raise ValueError(f"order={self.order!r} needs {allowed}, got {self.rule!r}")
            if self.pick != "largest":
                raise ValueError(f"pick={self.pick!r} needs {allowed}, got {self.rule!r}")
        natural = np.arange(problem.n)
        if named:
            if self.order == "random":
                return rng.permutation(problem.n)
            return natural if self.order == "natural" else natural[::-1]
        order = np.asarray(self.order)
        if order.shape != natural.shape or not np.array_equal(np.sort(order), natural):
            raise ValueError(f"order must be a permutation of 0 to {problem.n - 1}")
        return order.astype(np.int64)
