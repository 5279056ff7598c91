"""Linear complementarity: ``z >= 0, w = M z + q >= 0, z.w = 0`` and systems of equations.

With two actions a node, slacks ``z = A_1 x - r_1`` and ``w = A_0 x - r_0`` of the rows
``s_i (e_i - q_a)`` are complementary at the solution, and M = A_0 A_1^{-1} is a P-matrix exactly if
all determinants have one sign.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .errors import LEMMSingularError
from .evaluation import dense_solve
from .nodes import CompressedSystem
from .problem import LEMM

__all__ = [
    "BinaryForm",
    "ComplementarityForm",
    "binary_form",
    "complementarity_form",
    "compress_lcp",
]

Array = np.ndarray


def compress_lcp(M: Any, q: Any) -> CompressedSystem:
    """``z_i = max(0, z_i - d_i (M z + q)_i)``; see `LEMM.from_lcp`."""
    M = sp.csr_array(M, dtype=float)
    q = np.asarray(q, dtype=float)
    n = len(q)
    if M.shape != (n, n):
        raise ValueError(f"M must have shape ({n}, {n}) as q asks, got {M.shape}")
    if n == 0:
        raise ValueError("M and q are empty; allowed: at least one variable")
    sums = np.abs(M) @ np.ones(n)
    if not (np.isfinite(sums).all() and np.isfinite(q).all()):
        raise ValueError("M and q must be finite, got NaN or infinity")
    d = 1 / np.maximum(1.0, sums)
    step = sp.csr_array(sp.eye_array(n, format="csr") - sp.diags_array(d) @ M)
    A = sp.csr_array(sp.vstack([sp.csr_array((n, n)), step], format="csr"))
    mixed = np.arange(2 * n).reshape(2, n).T.ravel()  # rows in the order of their nodes
    b = np.concatenate([np.zeros(n), -d * q])
    return CompressedSystem(A[mixed], b[mixed], np.arange(0, 2 * n + 1, 2), np.ones(n, dtype=int))


@dataclass(frozen=True)
class BinaryForm:
    """A system with at most two actions a node, equivalent to one with more.

    Attributes
    ----------
    problem : LEMM
        The first n nodes are the old ones; further nodes hold the remaining actions.
    following : ndarray of shape (n',)
        The node that holds the rest of a node's actions, -1 if there is none.
    n : int
        Number of old nodes.
    """

    problem: LEMM
    following: Array
    n: int

    def back(self, policy: Array) -> Array:
        """The old system's policy, shape (n,), from one of the binary system."""
        actions = np.zeros(self.n, dtype=np.int64)
        for i in range(self.n):
            node, skipped = i, 0
            while policy[node] == 1 and self.following[node] >= 0:
                node, skipped = self.following[node], skipped + 1
            actions[i] = skipped + policy[node]
        return actions


def binary_form(problem: LEMM) -> BinaryForm:
    """Replace ``max(a, b, c)`` by ``max(a, y), y = max(b, c)``.

    Every determinant of the new system is one of the old, so W is kept.

    Parameters
    ----------
    problem : LEMM
        Any system.

    Returns
    -------
    BinaryForm
        The system and the way back.
    """
    n = problem.n
    sizes = np.diff(problem.indptr)
    if (sizes <= 2).all():
        return BinaryForm(problem, np.full(n, -1, dtype=np.int64), n)
    total = n + int(np.maximum(sizes - 2, 0).sum())
    rows: list[tuple[int, int]] = []  # (node, old row or -1 - next node)
    following = np.full(total, -1, dtype=np.int64)
    op = np.zeros(total, dtype=np.int8)
    fresh = n
    for i in range(n):
        node = i
        first, last = int(problem.indptr[i]), int(problem.indptr[i + 1])
        op[node] = problem.op[i]
        for row in range(first, last - 2):
            rows += [(node, row), (node, -1 - fresh)]
            following[node] = fresh
            node, fresh = fresh, fresh + 1
            op[node] = problem.op[i]
        rows += [(node, row) for row in range(max(first, last - 2), last)]
    rows.sort(key=lambda pair: pair[0])
    nodes = np.array([node for node, _ in rows])
    source = np.array([row for _, row in rows])
    old = source >= 0
    pick = sp.csr_array(
        (np.ones(old.sum()), (np.flatnonzero(old), source[old])), shape=(len(rows), problem.m)
    )
    link = sp.csr_array(
        (np.ones((~old).sum()), (np.flatnonzero(~old), -1 - source[~old])),
        shape=(len(rows), total),
    )
    widened = sp.hstack([problem.A, sp.csr_array((problem.m, total - n))], format="csr")
    A = sp.csr_array(pick @ widened + link)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(nodes, minlength=total))])
    return BinaryForm(LEMM(A, pick @ problem.b, indptr, op), following, n)


@dataclass(frozen=True)
class ComplementarityForm:
    """The linear complementarity problem of a system with at most two actions a node.

    Attributes
    ----------
    M : ndarray of shape (n, n)
        Matrix; a P-matrix exactly if the system has property W.
    q : ndarray of shape (n,)
        Right-hand side.
    first, offsets : ndarray of shape (n, n) and (n,)
        A_1 and r_1: the slacks are ``z = A_1 x - r_1``.
    """

    M: Array
    q: Array
    first: Array
    offsets: Array

    def back(self, z: Array) -> Array:
        """Values x of the system from a solution z, shape (n,)."""
        return np.linalg.solve(self.first, np.asarray(z, dtype=float) + self.offsets)


def complementarity_form(problem: LEMM) -> ComplementarityForm:
    """Write a system as ``z >= 0, w = M z + q >= 0, z.w = 0``.

    Parameters
    ----------
    problem : LEMM
        With at most two actions a node; an affine node becomes ``z_i = w_i = 0``.

    Returns
    -------
    ComplementarityForm
        M, q and the way back.

    Raises
    ------
    ValueError
        If a node has more than two actions: take `binary_form` first.
    LEMMSingularError
        If the policy of all second actions has a singular matrix.

    Examples
    --------
    >>> from equipoise.games import LEMM
    >>> form = LEMM.from_equations("x = max(1 + 0.5*x, 3 - x)").to_lcp()
    >>> form.M.tolist(), form.q.tolist(), form.back([1.0]).tolist()
    ([[0.25]], [-0.25], [2.0])
    """
    sizes = np.diff(problem.indptr)
    if (sizes > 2).any():
        i = int(np.argmax(sizes > 2))
        raise ValueError(f"node {i} has {sizes[i]} actions; a complementarity problem takes 2")
    sign = problem.sign.astype(float)

    def slack(policy: Array) -> tuple[Array, Array]:
        Q, b = problem.policy_matrix(policy)
        M = -sign[:, None] * Q.toarray()
        M[np.diag_indices(problem.n)] += sign
        return M, sign * b

    zeroth, r0 = slack(np.zeros(problem.n, dtype=np.int64))
    first, r1 = slack(sizes - 1)
    M = dense_solve(first.T, zeroth.T)
    if M is None:
        raise LEMMSingularError("I - Q is singular for the policy of all last actions")
    M = M.T
    return ComplementarityForm(M, M @ r1 - r0, first, r1)
