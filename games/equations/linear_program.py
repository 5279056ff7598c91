"""One-player systems without negative coefficients as a linear program, by HiGHS.

The solution of a max system is the smallest x with ``x >= q_a.x + b_a`` for every action.
"""

from numbers import Integral, Real
from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval

from .classes import classify_quickly
from .problem import LEMM
from .solver import LEMMSolver, Run, check_problem

__all__ = ["LinearProgramLEMM"]


class LinearProgramLEMM(LEMMSolver):
    """Solve a one-player halting branching process (an MDP, say) by linear programming.

    Parameters
    ----------
    tol : float, default=1e-9
        Feasibility tolerance of HiGHS, between 1e-10 and 1e-2.
    max_iter : int, default=None
        Largest number of HiGHS iterations.

    Attributes
    ----------
    value_ : ndarray of shape (n,)
        Value of `policy_`.
    policy_ : ndarray of shape (n,), int64
        The actions whose constraints are tight.
    lower_, upper_ : ndarray of shape (n,)
        Proved bounds.
    error_bound_ : float
        Largest possible error of `value_`.
    residual_ : float
        Largest ``|T(x) - x|``.
    n_iter_, n_evaluations_, n_switches_ : int
        HiGHS iterations (and 1 evaluation, 0 switches).
    converged_ : bool
        Whether `status_` is 'optimal'.
    status_ : str
        'optimal' or 'max_iter'.
    history_ : list
        Empty; here for a common interface.
    class_ : LEMMClass
        What could be proved about the system in polynomial time.
    problem_ : LEMM
        What was fitted.

    References
    ----------
    .. [1] F. d'Epenoux, "A probabilistic production and inventory problem", 1963.

    Examples
    --------
    >>> from equipoise.games import LEMM, LinearProgramLEMM
    >>> problem = LEMM.from_equations(["x = max(1 + 0.5*y, 2)", "y = max(0.9*x, 1 + 0.1*y)"])
    >>> LinearProgramLEMM().fit(problem).value_.round(6).tolist()
    [2.0, 1.8]
    """

    _parameter_constraints: ClassVar[dict] = {
        "tol": [Interval(Real, 1e-10, 1e-2, closed="both")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(self, tol: float = 1e-9, max_iter: int | None = None) -> None:
        self.tol = tol
        self.max_iter = max_iter

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, problem: LEMM) -> Self:
        """Solve the linear program.

        Parameters
        ----------
        problem : LEMM
            One player, no negative coefficient, halting.

        Returns
        -------
        self : LinearProgramLEMM
            Fitted.

        Raises
        ------
        ValueError
            If the problem isn't of that class.
        """
        check_problem(problem)
        found = classify_quickly(problem)
        if not (found.one_player and found.nonnegative and found.halting):
            raise ValueError(
                "the linear program needs one player, coefficients >= 0 and a halting system; got "
                f"one_player={found.one_player}, nonnegative={found.nonnegative}, "
                f"halting={found.halting}"
            )
        # For min nodes, -x is the smallest solution of the mirrored system.
        sign = -1.0 if (problem.op < 0).any() else 1.0
        owner = np.repeat(np.arange(problem.n), np.diff(problem.indptr))
        select = sp.csr_array((np.ones(problem.m), (np.arange(problem.m), owner)))
        options = {"primal_feasibility_tolerance": self.tol, "dual_feasibility_tolerance": self.tol}
        if self.max_iter is not None:
            options["maxiter"] = self.max_iter
        answer = linprog(
            np.ones(problem.n),
            A_ub=sp.csr_array(problem.A - select),
            b_ub=-sign * problem.b,
            bounds=(None, None),
            method="highs",
            options=options,
        )
        if answer.x is None:
            x = np.zeros(problem.n)
            status, message = "max_iter", f"HiGHS found no solution: {answer.message}"
            policy = problem.greedy(x)
        else:
            policy = problem.greedy(sign * answer.x)
            x = problem.evaluate(policy)
            status = "optimal" if answer.status == 0 else "max_iter"
            message = "" if status == "optimal" else f"HiGHS stopped: {answer.message}"
        return self._finish(
            problem, found, Run(x, policy, status, int(answer.nit), 1, message=message)
        )
