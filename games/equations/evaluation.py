"""The value of one policy: ``(I - Q) x = b``, solved component by component.

Small components are eliminated in one compiled pass, medium ones by dense LU, large ones by a
Krylov method whose residual is checked, with sparse LU behind it.
"""

import warnings
from typing import Literal

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from numba import njit

from .errors import LEMMSingularError
from .graph import strong_components

__all__ = ["Evaluation", "dense_solve", "solve_fixed_point"]

Array = np.ndarray
Evaluation = Literal["auto", "dense", "sparse", "krylov"]

SMALL = 48  # eliminated in the compiled pass
DENSE = 600
LOCAL = 0.03
SINGULAR = 1e-14
#: A solve is accepted when its residual is below this times the size of its terms.
ACCEPT = 1e-12


@njit(cache=True, nogil=True)
def small_components(
    first: int,
    order: Array,
    bounds: Array,
    ptr: Array,
    cols: Array,
    coef: Array,
    b: Array,
    place: Array,
    size_limit: int,
    x: Array,
) -> int:
    """Solve components from `first` on until one is larger than the limit.

    Returns that component's number (the number of components at the end), or ``-1 - c`` if
    component c is singular. ``place`` is scratch, -1 everywhere.
    """
    M = np.empty((size_limit, size_limit))
    rhs = np.empty(size_limit)
    for c in range(first, bounds.shape[0] - 1):
        size = bounds[c + 1] - bounds[c]
        if size > size_limit:
            return c
        for p in range(size):
            place[order[bounds[c] + p]] = p
        for p in range(size):
            i = order[bounds[c] + p]
            for q in range(size):
                M[p, q] = 0.0
            M[p, p] = 1.0
            rhs[p] = b[i]
            for k in range(ptr[i], ptr[i + 1]):
                q = place[cols[k]]
                if q >= 0:
                    M[p, q] -= coef[k]
                else:
                    rhs[p] += coef[k] * x[cols[k]]
        scale = 0.0
        for p in range(size):
            for q in range(size):
                scale = max(scale, abs(M[p, q]))
        # The identity is part of the matrix: what cancels against 1 is rounding.
        scale = max(scale, 1.0)
        for p in range(size):
            pivot = p
            for q in range(p + 1, size):
                if abs(M[q, p]) > abs(M[pivot, p]):
                    pivot = q
            if not abs(M[pivot, p]) > SINGULAR * scale:
                return -1 - c
            if pivot != p:
                for q in range(size):
                    M[p, q], M[pivot, q] = M[pivot, q], M[p, q]
                rhs[p], rhs[pivot] = rhs[pivot], rhs[p]
            for q in range(p + 1, size):
                factor = M[q, p] / M[p, p]
                if factor != 0.0:
                    for r in range(p + 1, size):
                        M[q, r] -= factor * M[p, r]
                    rhs[q] -= factor * rhs[p]
        for p in range(size - 1, -1, -1):
            total = rhs[p]
            for q in range(p + 1, size):
                total -= M[p, q] * rhs[q]
            rhs[p] = total / M[p, p]
        for p in range(size):
            x[order[bounds[c] + p]] = rhs[p]
            place[order[bounds[c] + p]] = -1
    return bounds.shape[0] - 1


def dense_solve(M: Array, rhs: Array) -> Array | None:
    """Solve by LU for one or several right-hand sides; None if M is singular to rounding."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.linalg.LinAlgWarning)
        factors, pivots = scipy.linalg.lu_factor(M, check_finite=False)
    diagonal = np.abs(np.diagonal(factors))
    if not diagonal.min() > SINGULAR * max(1.0, diagonal.max()):
        return None
    return scipy.linalg.lu_solve((factors, pivots), rhs, check_finite=False)


def accepted(M: sp.csr_array, absolute: sp.csr_array, rhs: Array, x: Array) -> bool:
    """Whether the residual is at the level of rounding, relative to its largest terms."""
    if not np.isfinite(x).all():
        return False
    size = np.max(absolute @ np.abs(x) + np.abs(rhs))
    return bool(np.max(np.abs(rhs - M @ x)) <= ACCEPT * size)


def krylov_solve(M: sp.csr_array, rhs: Array, guess: Array | None) -> Array | None:
    """BiCGSTAB on the diagonally scaled system, restarted from its own residual; None if it
    doesn't reach rounding level."""
    diagonal = M.diagonal()
    if (np.abs(diagonal) < 1e-8).any():
        return None
    scale = 1 / diagonal
    scaled = sp.csr_array(sp.diags_array(scale) @ M)
    absolute = sp.csr_array((np.abs(M.data), M.indices, M.indptr), shape=M.shape)
    x = np.zeros(len(rhs)) if guess is None else guess.copy()
    for restart in range(6):
        residual = rhs - M @ x
        solver = spla.gmres if restart == 5 else spla.bicgstab
        with np.errstate(all="ignore"):
            step, _ = solver(scaled, scale * residual, rtol=1e-10, atol=0.0, maxiter=200)
        if not np.isfinite(step).all():
            return None
        candidate = x + step
        if np.max(np.abs(rhs - M @ candidate)) >= np.max(np.abs(residual)):
            return None
        x = candidate
        if accepted(M, absolute, rhs, x):
            return x
    return None


def is_local(M: sp.csr_array) -> bool:
    """Whether coefficients lie near the diagonal, as on grids: elimination then fills in little."""
    rows = np.repeat(np.arange(M.shape[0]), np.diff(M.indptr))
    return bool(np.mean(np.abs(rows - M.indices)) <= LOCAL * M.shape[0])


def sparse_solve(M: sp.csr_array, rhs: Array) -> Array | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", spla.MatrixRankWarning)
            factors = spla.splu(sp.csc_array(M))
    except (RuntimeError, spla.MatrixRankWarning):
        return None
    diagonal = np.abs(factors.U.diagonal())
    if not diagonal.min() > SINGULAR * max(1.0, diagonal.max()):
        return None
    x = factors.solve(rhs)
    return x + factors.solve(rhs - M @ x)


def solve_fixed_point(
    Q: sp.csr_array, b: Array, evaluation: Evaluation = "auto", guess: Array | None = None
) -> Array:
    """Solve ``x = Q x + b``.

    Parameters
    ----------
    Q : csr_array of shape (n, n)
        Coefficients of the chosen rows.
    b : ndarray of shape (n,)
        Their offsets.
    evaluation : {"auto", "dense", "sparse", "krylov"}, default="auto"
        How components with more than 48 nodes are solved: dense LU, sparse LU, or BiCGSTAB
        with sparse LU behind it. "auto" takes dense up to 600 nodes, and above sparse LU where
        coefficients lie near the diagonal, else Krylov.
    guess : ndarray of shape (n,), optional
        Where the Krylov method starts.

    Returns
    -------
    ndarray of shape (n,)
        The solution.

    Raises
    ------
    LEMMSingularError
        If I - Q is singular to working precision.
    """
    n = len(b)
    _, order, bounds = strong_components(Q.indptr, Q.indices)
    x = np.zeros(n)
    place = np.full(n, -1, dtype=np.int64)
    c, count = 0, len(bounds) - 1
    while True:
        args = (order, bounds, Q.indptr, Q.indices, Q.data, b, place, SMALL, x)
        c = small_components(c, *args)
        if c < 0:
            raise singular(order[bounds[-1 - c] : bounds[-c]])
        if c == count:
            return x
        nodes = np.sort(order[bounds[c] : bounds[c + 1]])
        rows = Q if len(nodes) == n else Q[nodes]
        block = rows if len(nodes) == n else sp.csr_array(rows[:, nodes])
        rhs = b[nodes] + rows @ x
        M = sp.csr_array(sp.eye_array(len(nodes), format="csr") - block)
        solved = None
        if evaluation == "dense" or (evaluation == "auto" and len(nodes) <= DENSE):
            solved = dense_solve(M.toarray(), rhs)
        else:
            if evaluation == "krylov" or (evaluation == "auto" and not is_local(M)):
                solved = krylov_solve(M, rhs, None if guess is None else guess[nodes])
            if solved is None:
                solved = sparse_solve(M, rhs)
        if solved is None or not np.isfinite(solved).all():
            raise singular(nodes)
        x[nodes] = solved
        c += 1


def singular(nodes: Array) -> LEMMSingularError:
    shown = ", ".join(map(str, nodes[:5])) + (", ..." if len(nodes) > 5 else "")
    return LEMMSingularError(
        f"I - Q is singular on the nodes {shown}: this policy has no unique value"
    )
