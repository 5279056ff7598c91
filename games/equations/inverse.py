"""Solving with the matrix of a policy while it changes one row at a time.

Small systems keep the inverse of I - Q and update it by Sherman and Morrison's formula; large
ones keep a sparse LU of an earlier policy and correct for the rows switched since (Woodbury).
The update's scalar is the ratio of the two determinants, whose sign tells if W fails.
"""

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from .errors import LEMMSingularError
from .problem import LEMM

__all__ = ["PolicyInverse", "SignChangeError"]

Array = np.ndarray
#: Nodes up to which the inverse is held as a dense matrix.
DENSE = 1500
#: A determinant ratio at most this refutes W.
SMALLEST_RATIO = 1e-12


class SignChangeError(ArithmeticError):
    """Switching one node changed the sign of the determinant, or made it vanish."""

    def __init__(self, policies: tuple[Array, Array], ratio: float) -> None:
        node = int(np.flatnonzero(policies[0] != policies[1])[0])
        super().__init__(
            f"two policies that differ in node {node} have determinants of ratio {ratio:.3g}: "
            "the solution isn't unique for all offsets"
        )
        self.policies = policies


class PolicyInverse:
    """``(I - Q) x = rhs`` for a policy that is switched one node at a time.

    Parameters
    ----------
    problem : LEMM
        The system.
    policy : ndarray of shape (n,), int64
        The first policy.
    refactor_every : int
        Switches between two fresh factorisations.

    Attributes
    ----------
    policy : ndarray of shape (n,), int64
        The present policy.
    rows : ndarray of shape (n,), int64
        Its rows.
    """

    def __init__(self, problem: LEMM, policy: Array, refactor_every: int) -> None:
        self.problem, self.refactor_every = problem, refactor_every
        self.policy = policy.copy()
        self.rows = problem.indptr[:-1] + policy
        self.dense = problem.n <= DENSE
        self.refactor()

    def refactor(self) -> None:
        """Factorise the present policy afresh."""
        n = self.problem.n
        M = sp.csc_array(sp.eye_array(n, format="csr") - self.problem.A[self.rows])
        self.since = 0
        if self.dense:
            full = M.toarray()
            try:
                self.inverse = np.linalg.inv(full)
            except np.linalg.LinAlgError as error:
                raise LEMMSingularError("I - Q is singular for a policy") from error
            size = np.abs(self.inverse).max() * np.abs(full).max()
            if not size < 1e15:
                raise LEMMSingularError("I - Q is singular to working precision for a policy")
            return
        try:
            self.factors = spla.splu(M)
        except RuntimeError as error:
            raise LEMMSingularError("I - Q is singular for a policy") from error
        self.base_rows = self.rows.copy()
        self.changed: list[int] = []
        self.columns = np.empty((n, 0))

    def row_change(self, old: int, new: int) -> Array:
        """The change of the matrix row, ``-(q_new - q_old)``, dense."""
        A = self.problem.A
        change = np.zeros(self.problem.n)
        for row, sign in ((old, 1.0), (new, -1.0)):
            part = slice(A.indptr[row], A.indptr[row + 1])
            change[A.indices[part]] += sign * A.data[part]
        return change

    def column(self, i: int) -> Array:
        """Column i of the inverse."""
        if self.dense:
            return self.inverse[:, i].copy()
        unit = np.zeros(self.problem.n)
        unit[i] = 1.0
        return self.apply(unit)

    def apply(self, rhs: Array) -> Array:
        """The inverse times a vector."""
        if self.dense:
            return self.inverse @ rhs
        y = self.factors.solve(rhs)
        if not self.changed:
            return y
        D = np.stack([self.row_change(self.base_rows[i], self.rows[i]) for i in self.changed])
        small = np.eye(len(self.changed)) + D @ self.columns
        return y - self.columns @ np.linalg.solve(small, D @ y)

    def solve(self, row_rhs: Array) -> Array:
        """Solve with the policy's entries of a vector given for all rows, shape (m,)."""
        rhs = row_rhs[self.rows]
        x = self.apply(rhs)
        # One step of refinement takes out what the updates lost.
        return x + self.apply(rhs - x + self.problem.A[self.rows] @ x)

    def switch(self, i: int, row: int) -> None:
        """Give node i the action of another row.

        Raises
        ------
        SignChangeError
            If the determinant doesn't keep its sign.
        """
        change = self.row_change(self.rows[i], row)
        column = self.column(i)
        ratio = 1.0 + float(change @ column)
        if ratio <= SMALLEST_RATIO:
            other = self.policy.copy()
            other[i] = row - self.problem.indptr[i]
            raise SignChangeError((self.policy.copy(), other), ratio)
        if self.dense:
            self.inverse -= np.outer(column / ratio, change @ self.inverse)
        elif i not in self.changed:
            unit = np.zeros(self.problem.n)
            unit[i] = 1.0
            self.columns = np.column_stack([self.columns, self.factors.solve(unit)])
            self.changed.append(i)
        self.rows[i] = row
        self.policy[i] = row - self.problem.indptr[i]
        self.since += 1
        if self.since >= self.refactor_every:
            self.refactor()
