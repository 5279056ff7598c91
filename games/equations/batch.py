"""One system for many offset vectors at once.

Vectors whose present policy is the same share its factorisation and are solved together; each then
switches all its improvable nodes, and the groups form anew. A policy that no action improves is
the solution. Vectors that take long are solved one by one, by a method with a guarantee.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from sklearn.utils import check_random_state

from .decomposition import TIE
from .errors import LEMMSingularError
from .problem import LEMM
from .solve import check_uniqueness, solve_lemm
from .solver import check_problem

__all__ = ["BatchSolution", "factorise", "solve_lemm_batch"]

Array = np.ndarray
#: Nodes up to which policies are factorised densely.
DENSE = 600
ROUNDS = 30


class BatchSolution(NamedTuple):
    """Solutions ``x`` (k, n) and policies ``policies`` (k, n), int64, one row an offset vector."""

    x: Array
    policies: Array


class Factors:
    """``I - Q`` of a policy, ready to solve with several right-hand sides, shape (n, k)."""

    def __init__(self, Q: sp.csr_array) -> None:
        self.M = sp.csc_array(sp.eye_array(Q.shape[0], format="csr") - Q)
        if Q.shape[0] > DENSE:
            try:
                self.sparse = spla.splu(self.M)
            except RuntimeError as error:
                raise LEMMSingularError("I - Q is singular for a policy") from error
            smallest, largest = np.abs(self.sparse.U.diagonal()).min(), 1.0
        else:
            self.sparse = None
            self.dense = scipy.linalg.lu_factor(self.M.toarray(), check_finite=False)
            smallest, largest = np.abs(np.diagonal(self.dense[0])).min(), np.abs(self.M).max()
        if not smallest > 1e-14 * max(1.0, largest):
            raise LEMMSingularError("I - Q is singular for a policy")

    def solve(self, rhs: Array, transposed: bool = False) -> Array:
        if self.sparse is None:
            return scipy.linalg.lu_solve(self.dense, rhs, int(transposed), check_finite=False)
        return self.sparse.solve(rhs, trans="T" if transposed else "N")


def factorise(problem: LEMM, policy: Array) -> Factors:
    """Factorise the matrix of a policy.

    Raises
    ------
    LEMMSingularError
        If it is singular.
    """
    return Factors(sp.csr_array(problem.A[problem.indptr[:-1] + policy]))


def improved(problem: LEMM, x: Array, B: Array, policy: Array) -> Array:
    """Policies after switching every node whose action is worse than the best one, shape (k, n)."""
    first = problem.indptr[:-1]
    sizes = np.diff(problem.indptr)
    sign = np.repeat(problem.sign, sizes).astype(float)[:, None]
    gains = sign * (problem.A @ x.T + B.T)  # (m, k)
    best = np.maximum.reduceat(gains, first, axis=0)
    lead = best - gains[first + policy]
    # The smallest action that attains the best.
    attains = gains == np.repeat(best, sizes, axis=0)
    place = np.where(attains, np.arange(problem.m)[:, None], problem.m)
    chosen = np.minimum.reduceat(place, first, axis=0) - first[:, None]
    return np.where(lead > TIE * (1 + np.abs(x.T)), chosen, policy[:, None]).T


def solve_lemm_batch(
    p: LEMM, B: Any, *, policy_init: Any = None, random_state: Any = None
) -> BatchSolution:
    """Solve a system for many offset vectors.

    Parameters
    ----------
    p : LEMM
        The system; its own offsets aren't used.
    B : array-like of shape (k, m)
        Offset vectors, one a row.
    policy_init : array-like of int of shape (n,), optional
        Where all start; default action 0 everywhere.
    random_state : int, RandomState or None, default=None
        Seeds random directions and searches.

    Returns
    -------
    BatchSolution
        Solutions and policies.

    Raises
    ------
    LEMMNotUniqueError
        If solutions are proved not to be unique for all offsets.
    RuntimeError
        If the equations of a vector couldn't be solved.
    ValueError
        If B has another shape or isn't finite.

    Examples
    --------
    >>> from equipoise.games import LEMM, solve_lemm_batch
    >>> problem = LEMM.from_equations("x = max(0.5*x, 1)")
    >>> solve_lemm_batch(problem, [[0, 1], [3, 1], [-1, -5]]).x.ravel().tolist()
    [1.0, 6.0, -2.0]
    """
    check_problem(p)
    offsets = np.array(B, dtype=float)
    if offsets.ndim != 2 or offsets.shape[1] != p.m:
        raise ValueError(f"B must have shape (k, {p.m}), got {offsets.shape}")
    if not np.isfinite(offsets).all():
        raise ValueError("B must be finite, got NaN or infinity")
    rng = check_random_state(random_state)
    check_uniqueness(p, rng)
    start = np.zeros(p.n, dtype=np.int64)
    if policy_init is not None:
        start = p.check_policy(policy_init, "policy_init")
    policies = np.tile(start, (len(offsets), 1))
    x = np.zeros((len(offsets), p.n))
    pending = np.arange(len(offsets))
    singular: list[int] = []
    for _ in range(ROUNDS):
        if pending.size == 0:
            break
        distinct, group = np.unique(policies[pending], axis=0, return_inverse=True)
        left = []
        for k, policy in enumerate(distinct):
            members = pending[group.ravel() == k]
            try:
                factors = factorise(p, policy)
            except LEMMSingularError:
                singular += members.tolist()
                continue
            rows = p.indptr[:-1] + policy
            x[members] = factors.solve(offsets[members][:, rows].T).T
            policies[members] = improved(p, x[members], offsets[members], policy)
            left.append(members[(policies[members] != policy).any(axis=1)])
        pending = np.sort(np.concatenate(left)) if left else pending[:0]
    for k in [*pending.tolist(), *singular]:
        answer = solve_lemm(LEMM(p.A, offsets[k], p.indptr, p.op), random_state=rng)
        if not answer.success:
            raise RuntimeError(f"the equations of row {k} weren't solved: {answer.message}")
        x[k], policies[k] = answer.x, answer.policy
    return BatchSolution(x, policies)
