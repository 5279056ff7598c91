"""Welfare of profiles, and the best or worst joint distribution under linear conditions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from .programs import as_distribution, ones_row, payoff_range, solve_program

__all__ = ["OBJECTIVES", "expected_payoffs", "extreme_distribution", "profile_welfare"]

Array = np.ndarray
Objective = str | Callable[[Array], Array]

OBJECTIVES = ("utilitarian", "egalitarian")


def profile_welfare(payoffs: Array, weights: Array, objective: Objective) -> Array:
    """Welfare of each profile.

    Parameters
    ----------
    payoffs : ndarray of shape (n, ...)
        Payoffs of the stakeholders.
    weights : ndarray of shape (n,)
        Weights of the utilitarian sum.
    objective : {"utilitarian", "egalitarian"} or callable
        Weighted sum, least payoff, or a function from payoffs (n, ...) to numbers (...).

    Returns
    -------
    ndarray of shape (...)
        One number a profile.

    Raises
    ------
    ValueError
        If the callable's answer has another shape or isn't finite.
    """
    if callable(objective):
        value = np.asarray(objective(payoffs), dtype=float)
        if value.shape != payoffs.shape[1:] or not np.isfinite(value).all():
            raise ValueError(
                f"objective must give finite numbers of shape {payoffs.shape[1:]}, "
                f"got shape {value.shape}"
            )
        return value
    if objective == "egalitarian":
        return payoffs.min(axis=0)
    return np.tensordot(weights, payoffs, axes=1)


def expected_payoffs(payoffs: Array, policy: Array) -> Array:
    """E u_i under a joint distribution: shape (n,)."""
    return payoffs.reshape(len(payoffs), -1) @ policy.ravel()


def extreme_distribution(
    payoffs: Array,
    weights: Array,
    objective: Objective,
    A_ub: Any,
    b_ub: Array,
    best: bool = True,
) -> tuple[Array, dict[str, Any]] | None:
    """The joint distribution of extreme welfare with A_ub @ pi <= b_ub.

    The egalitarian welfare of a distribution is the least expected payoff, which takes one more
    variable to maximise and one program a stakeholder to minimise.

    Parameters
    ----------
    payoffs : ndarray of shape (n, d_0, ..., d_{n-1})
        Payoffs.
    weights : ndarray of shape (n,)
        Weights of the utilitarian sum.
    objective : {"utilitarian", "egalitarian"} or callable
        See `profile_welfare`; a callable's expectation is taken over the profiles.
    A_ub : sparse array of shape (n_rows, M)
        Conditions.
    b_ub : ndarray of shape (n_rows,)
        Their right-hand sides.
    best : bool, default=True
        Whether to maximise.

    Returns
    -------
    (policy, duals) or None
        The distribution (d_0, ..., d_{n-1}) and the shadow prices of the conditions, in welfare a
        unit of `b_ub`; None if no distribution fulfils them.
    """
    n, *shape = payoffs.shape
    M = int(np.prod(shape))
    scale = payoff_range(payoffs)
    U = payoffs.reshape(n, M) / scale
    one = np.ones(1)
    if objective == "egalitarian" and best:
        # max t with t <= U_i.pi; t is free.
        top = sp.hstack([A_ub, sp.csr_array((A_ub.shape[0], 1))])
        bottom = sp.csr_array(np.hstack([-U, np.ones((n, 1))]))
        answer = solve_program(
            np.r_[np.zeros(M), -1.0],
            sp.csr_array(sp.vstack([top, bottom])),
            np.r_[b_ub, np.zeros(n)],
            ones_row(M, 1),
            one,
            bounds=[(0, None)] * M + [(None, None)],
        )
    elif objective == "egalitarian":
        answers = [solve_program(row, A_ub, b_ub, ones_row(M), one) for row in U]
        feasible = [found for found in answers if found is not None]
        answer = min(feasible, key=lambda found: found.fun, default=None)
    else:
        W = profile_welfare(payoffs, weights, objective).ravel()
        size = payoff_range(W)
        answer = solve_program((-W if best else W) / size, A_ub, b_ub, ones_row(M), one)
        scale = size
    if answer is None:
        return None
    prices = -scale * answer.ineqlin.marginals[: A_ub.shape[0]]
    return as_distribution(answer.x[:M], tuple(shape)), {"conditions": prices}
