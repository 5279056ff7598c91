"""Linear programs over joint distributions of designs, solved by HiGHS.

Payoffs are divided by their range before they enter a program, so that the solver's absolute
tolerances mean the same for every game.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

__all__ = ["as_distribution", "payoff_range", "solve_program"]

Array = np.ndarray

OPTIONS = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}


def payoff_range(payoffs: Array) -> float:
    """Largest minus smallest payoff, or 1 where all are equal."""
    return float(np.ptp(payoffs)) or 1.0


def as_distribution(x: Array, shape: tuple[int, ...]) -> Array:
    """Clip what rounding left below zero (-0.0 too) and let the entries sum to 1."""
    clipped = np.where(x > 1e-12, x, 0.0)
    return (clipped / clipped.sum()).reshape(shape)


def solve_program(
    c: Array,
    A_ub: Any = None,
    b_ub: Array | None = None,
    A_eq: Any = None,
    b_eq: Array | None = None,
    bounds: Any = (0, None),
) -> Any:
    """Minimise c.x; None where no point is feasible.

    Parameters
    ----------
    c : ndarray of shape (k,)
        Objective.
    A_ub, b_ub, A_eq, b_eq, bounds
        As for `scipy.optimize.linprog`; matrices may be sparse and have no rows.

    Returns
    -------
    scipy.optimize.OptimizeResult or None
        The optimum; None if the program is infeasible.

    Raises
    ------
    RuntimeError
        If HiGHS stops for another reason.
    """
    if A_ub is not None and A_ub.shape[0] == 0:
        A_ub = b_ub = None
    answer = linprog(c, A_ub, b_ub, A_eq, b_eq, bounds, method="highs", options=OPTIONS)
    if answer.status == 4:  # numerical trouble at tight tolerances: the default ones decide
        answer = linprog(c, A_ub, b_ub, A_eq, b_eq, bounds, method="highs")
    if answer.status == 2:
        return None
    if answer.status != 0:
        raise RuntimeError(f"HiGHS stopped: {answer.message}")
    return answer


def ones_row(n_columns: int, n_more: int = 0) -> sp.csr_array:
    """The row that sums the first `n_columns` variables."""
    row = np.r_[np.ones(n_columns), np.zeros(n_more)]
    return sp.csr_array(row[None, :])
