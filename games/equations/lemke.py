"""Lemke's complementary pivoting, an independent check of the other solvers.

The path starts at ``w = q + t d`` for large t and pivots from one basis to the next while t falls
to 0; the lexicographic ratio test keeps it from cycling on ties.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context

from .classes import classify_quickly
from .complementarity import binary_form, complementarity_form
from .errors import LEMMSingularError
from .problem import LEMM
from .solver import LEMMSolver, Run, check_problem, constraints

__all__ = ["LemkeSolver", "lemke"]

Array = np.ndarray


def lexicographic_minimum(table: Array, rows: Array, column: Array, n: int, tol: float) -> Array:
    """Rows that minimise (right-hand side, first columns) / column, in lexicographic order."""
    keys = [-1, *range(n)]
    for key in keys:
        ratios = table[rows, key] / column[rows]
        rows = rows[ratios <= ratios.min() + tol * (1 + abs(ratios.min()))]
        if rows.size == 1:
            break
    return rows


def lemke(
    M: Array,
    q: Array,
    max_pivots: int = 100000,
    tol: float = 1e-11,
    callback: Callable[[int, Array, float], Any] | None = None,
) -> tuple[Array, int, str]:
    """Solve ``z >= 0, w = M z + q >= 0, z.w = 0`` by Lemke's method.

    Parameters
    ----------
    M : ndarray of shape (n, n)
        A P-matrix for a guarantee.
    q : ndarray of shape (n,)
        Right-hand side.
    max_pivots : int, default=100000
        Largest number of pivots.
    tol : float, default=1e-11
        Entries below this (relatively) count as 0.
    callback : callable, optional
        Called as ``callback(pivots, z, t)``; a true answer stops.

    Returns
    -------
    z : ndarray of shape (n,)
        The solution, or the last point.
    pivots : int
        How many were made.
    status : {"optimal", "max_iter", "ray"}
        A ray means that M isn't a P-matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games.equations.lemke import lemke
    >>> z, pivots, status = lemke(np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([-5.0, -6.0]))
    >>> z.round(6).tolist(), status
    ([1.333333, 2.333333], 'optimal')
    """
    n = len(q)
    if (q >= 0).all():
        return np.zeros(n), 0, "optimal"
    # Columns: w (n), z (n), t, right-hand side.
    table = np.hstack([np.eye(n), -M, -np.ones((n, 1)), np.asarray(q, dtype=float)[:, None]])
    basis = np.arange(n)
    entering = 2 * n

    def point() -> Array:
        z = np.zeros(2 * n + 1)
        z[basis] = table[:, -1]
        return z[n : 2 * n]

    # The first pivot takes the most negative q; ties by the largest index.
    row = int(n - 1 - np.argmin(table[::-1, -1]))
    pivots = 0
    while True:
        leaving = basis[row]
        table[row] /= table[row, entering]
        column = table[:, entering].copy()
        column[row] = 0.0
        table -= np.outer(column, table[row])
        basis[row] = entering
        pivots += 1
        if leaving == 2 * n:
            return np.maximum(point(), 0.0), pivots, "optimal"
        height = float(table[np.flatnonzero(basis == 2 * n)[0], -1])
        stop = callback is not None and callback(pivots, point(), height)
        if stop or pivots >= max_pivots:
            return point(), pivots, "max_iter"
        entering = leaving + n if leaving < n else leaving - n
        column = table[:, entering]
        rows = np.flatnonzero(column > tol * max(1.0, np.abs(column).max()))
        if rows.size == 0:
            return point(), pivots, "ray"
        ratios = table[rows, -1] / column[rows]
        tied = rows[ratios <= ratios.min() + tol * (1 + abs(ratios.min()))]
        artificial = tied[basis[tied] == 2 * n]
        if artificial.size:
            row = int(artificial[0])
        else:
            row = int(lexicographic_minimum(table, rows, column, n, tol)[0])


class LemkeSolver(LEMMSolver):
    """Solve a system through its linear complementarity problem, by Lemke's method.

    Dense: O(n^2) a pivot. Nodes with more than two actions are split into binary ones, which
    keeps property W.

    Parameters
    ----------
    tol : float, default=1e-11
        Entries of the tableau below this (relatively) count as 0.
    max_iter : int, default=100000
        Largest number of pivots.
    callback : callable, default=None
        Called as ``callback(pivots, z, t)`` after each pivot; a true answer stops.

    Attributes
    ----------
    value_ : ndarray of shape (n,)
        The solution.
    policy_ : ndarray of shape (n,), int64
        Its policy.
    z_, w_ : ndarray of shape (n',)
        Complementary slacks of the binary form's second and first actions.
    lower_, upper_ : ndarray of shape (n,) or None
        Proved bounds; None where the system isn't proved absolutely halting.
    error_bound_ : float
        Largest possible error of `value_`; NaN where there are no bounds.
    residual_ : float
        Largest ``|T(x) - x|``.
    n_iter_, n_evaluations_, n_switches_ : int
        Pivots (and 1 evaluation, 0 switches).
    converged_ : bool
        Whether `status_` is 'optimal'.
    status_ : str
        'optimal', 'max_iter', 'not_W' (the path ended in a ray) or 'singular'.
    history_ : list
        Empty; here for a common interface.
    class_ : LEMMClass
        What could be proved about the system in polynomial time.
    problem_ : LEMM
        What was fitted.

    References
    ----------
    .. [1] C. E. Lemke, "Bimatrix equilibrium points and mathematical programming", 1965.
    .. [2] R. W. Cottle, G. B. Dantzig, "A generalization of the linear complementarity problem",
       1970.

    Examples
    --------
    >>> from equipoise.games import LEMM, LemkeSolver
    >>> problem = LEMM.from_equations(["x = max(1 - 2*y, 0)", "y = min(0.25 + 1.5*x, 0.5*y - 1)"])
    >>> LemkeSolver().fit(problem).value_.round(6).tolist()
    [5.0, -2.0]
    """

    _parameter_constraints: ClassVar[dict] = {
        **constraints("tol", "max_iter", "callback"),
    }

    z_: Array
    w_: Array

    def __init__(
        self,
        tol: float = 1e-11,
        max_iter: int = 100000,
        callback: Callable[[int, Array, float], Any] | None = None,
    ) -> None:
        self.tol = tol
        self.max_iter = max_iter
        self.callback = callback

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, problem: LEMM) -> Self:
        """Pivot to the solution.

        Parameters
        ----------
        problem : LEMM
            The system.

        Returns
        -------
        self : LemkeSolver
            Fitted.

        Raises
        ------
        LEMMSingularError
            If the policy of all last actions has a singular matrix.
        """
        check_problem(problem)
        binary = binary_form(problem)
        form = complementarity_form(binary.problem)
        z, pivots, status = lemke(form.M, form.q, self.max_iter, self.tol, self.callback)
        w = form.M @ z + form.q
        x = form.back(z)[: problem.n]
        # The action with zero slack is the one taken.
        actions = np.where((z <= w) & (np.diff(binary.problem.indptr) == 2), 1, 0)
        policy = binary.back(actions)
        run = Run(x, policy, status, pivots, 1)
        if status == "optimal":
            try:
                run.value = problem.evaluate(policy)
            except LEMMSingularError as error:
                run.status, run.message = "singular", str(error)
        elif status == "ray":
            run.status = "not_W"
            run.message = (
                "Lemke's path ended in a ray, so the matrix isn't a P-matrix: the solution isn't "
                "unique for all offsets"
            )
        found = classify_quickly(problem)
        self.z_, self.w_ = z, w
        return self._finish(problem, found, run)
