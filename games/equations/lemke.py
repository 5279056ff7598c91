"""Lemke's complementary pivoting, an independent check of the other solvers.

The path starts at ``w = q + t d`` for large t and pivots from one basis to the next while t falls
to 0; the lexicographic ratio test keeps it from cycling on ties. Only those columns of the basis'
inverse are kept that differ from the identity's, one for each w that has left the basis.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numba import njit
from sklearn.base import _fit_context

from .classes import classify_quickly
from .complementarity import binary_form, complementarity_form
from .errors import LEMMSingularError
from .problem import LEMM
from .solver import LEMMSolver, Run, check_problem, constraints

__all__ = ["LemkeSolver", "lemke"]

Array = np.ndarray


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def entering_column(
    matrix: Array, inverse: Array, slots: Array, where: Array, place: Array, active: int, out: Array
) -> None:
    """``out = - B^-1 m`` for a column m of the matrix, B the basis."""
    n = out.shape[0]
    short = np.empty(active)
    for s in range(active):
        short[s] = matrix[slots[s]]
    for i in range(n):
        line = inverse[i]
        total = 0.0
        for s in range(active):
            total += line[s] * short[s]
        out[i] = -total
    for k in range(n):
        if where[k] < 0:
            out[place[k]] -= matrix[k]


@njit(cache=True, nogil=True)
def leaving_row(
    inverse: Array,
    rhs: Array,
    column: Array,
    where: Array,
    place: Array,
    tied: Array,
    tol: float,
) -> int:
    """The row of the ratio test: t leaves as soon as it can, other ties break lexicographically.

    Returns -1 if no entry of the column is positive. `tied` is scratch of shape (n,).
    """
    n = rhs.shape[0]
    size = 1.0
    for i in range(n):
        size = max(size, abs(column[i]))
    count = 0
    for i in range(n):
        if column[i] > tol * size:
            tied[count] = i
            count += 1
    if count == 0:
        return -1
    for key in range(-1, n):
        least = np.inf
        for sifting in range(2):
            limit = least + tol * (1.0 + abs(least))
            kept = 0
            for k in range(count):
                i = tied[k]
                if key < 0:
                    value = rhs[i]
                elif where[key] >= 0:
                    value = inverse[i, where[key]]
                else:
                    value = 1.0 if place[key] == i else 0.0
                ratio = value / column[i]
                if sifting == 0:
                    least = min(least, ratio)
                elif ratio <= limit:
                    tied[kept] = i
                    kept += 1
        count = kept
        if key < 0:
            for k in range(count):
                if tied[k] == place[2 * n]:
                    return tied[k]
        if count == 1:
            break
    return tied[0]


@njit(cache=True, nogil=True)
def pivot_on(
    columns: Array,
    inverse: Array,
    rhs: Array,
    basis: Array,
    slots: Array,
    where: Array,
    place: Array,
    state: Array,
    pivots: int,
    tol: float,
) -> int:
    """Make at most so many pivots; return 0 if more are needed, 1 at the solution, 2 in a ray.

    Variables are numbered w (0 to n - 1), z (n to 2 n - 1) and t (2 n).

    Parameters
    ----------
    columns : ndarray of shape (n, n)
        Row j is column j of M.
    inverse : ndarray of shape (n, n)
        The columns of the basis' inverse that aren't unit vectors: those of the w that have left
        the basis. Changed, as all that follow.
    rhs, basis : ndarray of shape (n,)
        Values and numbers of the basic variables.
    slots, where : ndarray of shape (n,)
        The w of each column of `inverse`, and the column of each w, -1 if there is none.
    place : ndarray of shape (2 n + 1,)
        Row of each basic variable.
    state : ndarray of shape (4,), int64
        Entering variable, leaving row (-1: not chosen yet), pivots made, columns of `inverse`.
    pivots : int
        Largest number of pivots of this call.
    tol : float
        As in `lemke`.
    """
    n = rhs.shape[0]
    column = np.empty(n)
    tied = np.empty(n, np.int64)
    top = np.empty(n)
    for _ in range(pivots):
        entering, row, active = state[0], state[1], state[3]
        if entering == 2 * n:
            column[:] = -1.0
        elif entering < n:
            column[:] = inverse[:, where[entering]]
        else:
            m = columns[entering - n]
            entering_column(m, inverse, slots, where, place, active, column)
        if row < 0:
            row = leaving_row(inverse, rhs, column, where, place, tied, tol)
            if row < 0:
                return 2
        leaving = basis[row]
        if leaving < n:
            inverse[:, active] = 0.0
            inverse[row, active] = 1.0
            slots[active] = leaving
            where[leaving] = active
            active += 1
        scale = 1.0 / column[row]
        for s in range(active):
            inverse[row, s] *= scale
            top[s] = inverse[row, s]
        rhs[row] *= scale
        for i in range(n):
            factor = column[i]
            if i != row and factor != 0.0:
                line = inverse[i]
                for s in range(active):
                    line[s] -= factor * top[s]
                rhs[i] -= factor * rhs[row]
        if entering < n:
            # Its column is a unit vector again; the last column takes the place.
            active -= 1
            free = where[entering]
            inverse[:, free] = inverse[:, active]
            slots[free] = slots[active]
            where[slots[free]] = free
            where[entering] = -1
        basis[row] = entering
        place[entering] = row
        state[2] += 1
        state[3] = active
        if leaving == 2 * n:
            return 1
        state[0] = leaving + n if leaving < n else leaving - n
        state[1] = -1
    return 0


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
    rhs = np.array(q, dtype=float)
    if (rhs >= 0).all():
        return np.zeros(n), 0, "optimal"
    columns = np.ascontiguousarray(np.transpose(M), dtype=float)
    basis, slots, where = np.arange(n), np.zeros(n, dtype=np.int64), np.full(n, -1)
    place = np.arange(2 * n + 1)
    # The first pivot takes the most negative q; ties by the largest index.
    state = np.array([2 * n, n - 1 - np.argmin(rhs[::-1]), 0, 0])
    tableau = (columns, np.empty((n, n)), rhs, basis, slots, where, place, state)

    def point() -> Array:
        values = np.zeros(2 * n + 1)
        values[basis] = rhs
        return values[n:]

    while True:
        steps = max_pivots if callback is None else 1
        outcome = pivot_on(*tableau, steps, tol)
        pivots, z = int(state[2]), point()
        if outcome == 1:
            return np.maximum(z[:n], 0.0), pivots, "optimal"
        if outcome == 2:
            return z[:n], pivots, "ray"
        stop = callback is not None and callback(pivots, z[:n].copy(), float(z[n]))
        if stop or pivots >= max_pivots:
            return z[:n], pivots, "max_iter"


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
        # The action with zero slack is the one taken.
        actions = np.where((z <= w) & (np.diff(binary.problem.indptr) == 2), 1, 0)
        policy = binary.back(actions)
        run = Run(np.zeros(problem.n), policy, status, pivots, 1)
        try:
            solved = status == "optimal"
            run.value = problem.evaluate(policy) if solved else form.back(z)[: problem.n]
        except LEMMSingularError as error:
            run.status, run.message = "singular", str(error)
        if status == "ray":
            run.status = "not_W"
            run.message = (
                "Lemke's path ended in a ray, so the matrix isn't a P-matrix: the solution isn't "
                "unique for all offsets"
            )
        found = classify_quickly(problem)
        self.z_, self.w_ = z, w
        return self._finish(problem, found, run)
