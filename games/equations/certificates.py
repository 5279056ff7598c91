"""Checking an answer independently of how it was found."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from .errors import LEMMSingularError
from .exact import check_size, exact_value, exact_violations
from .problem import LEMM
from .solver import BoundedGap
from .weights import find_weights

__all__ = ["Certificate", "certify"]

#: Problems with exact coefficients up to this size are certified exactly by default.
EXACT_BY_DEFAULT = 300


@dataclass(frozen=True)
class Certificate:
    """What `certify` found.

    Attributes
    ----------
    kind : {"exact", "bound", "residual"}
        Exact arithmetic, a proved error bound, or only the residual.
    ok : bool
        "exact": the policy's exact value satisfies every equation, and x is within rounding of
        it; "bound": the error bound is below ``1e-6 (1 + |x|)``; "residual": the same for the
        residual, which proves nothing about the error.
    max_violation : float
        Largest ``s_i (q_a.x + b_a - x_i)``, at the exact value for kind "exact".
    error_bound : float
        Largest possible ``|x - x*|``; NaN for kind "residual".
    x_exact : list of Fraction or None
        The exact value of the policy for kind "exact".
    """

    kind: str
    ok: bool
    max_violation: float
    error_bound: float
    x_exact: list[Fraction] | None


def certify(problem: LEMM, x: Any, policy: Any, *, exact: bool | None = None) -> Certificate:
    """Certify values and a policy as the solution of a system.

    Parameters
    ----------
    problem : LEMM
        The system.
    x : array-like of shape (n,)
        Values.
    policy : array-like of int of shape (n,)
        Action of each node.
    exact : bool, optional
        Use rational arithmetic. None does where the problem holds exact coefficients and has at
        most 300 nodes.

    Returns
    -------
    Certificate
        What is proved. Kind "exact" takes the policy's value; its `error_bound` is the distance
        of x from it.

    Raises
    ------
    TypeError
        If `problem` isn't a `LEMM`.
    ValueError
        If x or policy doesn't fit the problem, or exact arithmetic is asked for more than 2000
        nodes.

    Examples
    --------
    >>> from equipoise.games import LEMM, certify
    >>> problem = LEMM.from_equations("x = max(1 + 1/2*x, 2 - x)")
    >>> certificate = certify(problem, [2.0], [0])
    >>> certificate.kind, certificate.ok, certificate.x_exact
    ('exact', True, [Fraction(2, 1)])
    """
    if not isinstance(problem, LEMM):
        raise TypeError(f"problem must be a LEMM, got {type(problem).__name__}")
    x = problem.check_values(x)
    policy = problem.check_policy(policy, "policy")
    if exact is None:
        exact = problem.A_exact is not None and problem.n <= EXACT_BY_DEFAULT
    scale = 1 + float(np.abs(x).max())
    if exact:
        check_size(problem)
        try:
            value = exact_value(problem, policy)
        except LEMMSingularError:
            return Certificate("exact", False, float("inf"), float("inf"), None)
        worst = max(exact_violations(problem, value))
        error = max(abs(Fraction(ours) - theirs) for ours, theirs in zip(x, value, strict=True))
        ok = worst <= 0 and float(error) <= 1e-6 * scale
        bound = float(error) if worst <= 0 else float("nan")
        return Certificate("exact", ok, float(worst), bound, value)
    worst_float = float(problem.violations(x).max())
    v = find_weights(problem).weights
    low, high, residual = BoundedGap(problem, v, bool((problem.A.data >= 0).all()))(x)
    if v is None:
        ok = residual <= 1e-6 * scale
        return Certificate("residual", ok, worst_float, float("nan"), None)
    error_bound = float(max(abs(low), abs(high)) * v.max())
    return Certificate("bound", error_bound <= 1e-6 * scale, worst_float, error_bound, None)
