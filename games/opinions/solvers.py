"""Linear solvers for the equilibrium of an affine channel, ``(I - M) x = r``.

Each stops by the same rule: the largest ``|x - F(x)|`` is at most ``max(target, 4 eps max|x|)``.
Krylov methods of SciPy stop by other norms; they are called again on what is left.
"""

from collections.abc import Callable

import numpy as np
from scipy.linalg import lu_factor, lu_solve
from scipy.sparse import diags_array
from scipy.sparse.linalg import LinearOperator, bicgstab, cg, gmres, splu

from equipoise.imports import optional_import

from .channel import AffineChannel
from .network import OpinionNetwork

__all__ = ["SOLVERS", "Solved", "choose_solver", "solve", "solve_adjoint", "symmetric_form"]

Array = np.ndarray
Product = Callable[[Array], Array]
Solved = tuple[Array, float, int]  # x, residual, iterations
SOLVERS = ("auto", "direct", "richardson", "cg", "bicgstab", "gmres", "amg")
DENSE_NODES = 400
#: Above this contraction Richardson needs more products than a Krylov method.
SLOW = 0.9
#: Above this one, multigrid pays where it is installed.
VERY_SLOW = 0.999


def floor_of(x: Array, target: float) -> float:
    """What the residual can be asked to reach: rounding bounds it from below."""
    return max(target, 4 * np.finfo(float).eps * float(np.max(np.abs(x), initial=0.0)))


def has_symmetric_form(network: OpinionNetwork, channel: AffineChannel, edges: bool) -> bool:
    """Whether ``I - M`` is a positive diagonal times a symmetric matrix, up to pinned rows."""
    return (
        not edges
        and not len(channel.uniform)
        and bool(np.all(channel.scale >= 0))
        and (channel.author is None or bool(np.all(channel.author > 0)))
        and network.is_symmetric
    )


def choose_solver(
    name: str, network: OpinionNetwork, channel: AffineChannel, contraction: float, edges: bool
) -> str:
    """Return the solver that "auto" stands for, or refuse one that can't be used."""
    symmetric = name in ("cg", "amg", "auto") and (
        name != "auto" or (channel.n > DENSE_NODES and contraction > SLOW)
    )
    fits = symmetric and has_symmetric_form(network, channel, edges)
    if name in ("cg", "amg") and not fits:
        raise ValueError(
            f"solver={name!r} needs symmetric weights, mediators on users and not on edges, shrink "
            "above 0 and no uniform dangling users; allowed here: 'auto', 'direct', 'richardson', "
            "'bicgstab', 'gmres'"
        )
    if name != "auto":
        return name
    if channel.n <= DENSE_NODES:
        return "direct"
    if contraction <= SLOW:
        return "richardson"
    return "cg" if fits else "bicgstab"


def solve(
    channel: AffineChannel,
    rhs: Array,
    start: Array,
    solver: str,
    target: float,
    max_iter: int,
    strengths: Array,
) -> Solved:
    """Solve ``(I - M) x = rhs`` for rhs of shape (n,) or (n, k).

    Parameters
    ----------
    channel : AffineChannel
        M.
    rhs, start : ndarray of shape (n,) or (n, k)
        Right-hand side; where to start.
    solver : str
        One of `SOLVERS` without "auto".
    target : float
        Largest residual.
    max_iter : int
        Largest number of iterations.
    strengths : ndarray of shape (n,)
        Row sums of the symmetric weights; used by "cg" and "amg".
    """
    if solver == "direct":
        return _direct(channel, rhs)
    if rhs.ndim == 2:
        parts = [
            solve(channel, rhs[:, k], start[:, k], solver, target, max_iter, strengths)
            for k in range(rhs.shape[1])
        ]
        x = np.stack([part[0] for part in parts], axis=1)
        return x, max(part[1] for part in parts), max(part[2] for part in parts)
    if solver == "richardson":
        return richardson(channel, rhs, start, target, max_iter)
    if solver in ("cg", "amg"):
        correct = symmetric_form(channel, strengths, amg=solver == "amg")
        return _refine(channel.product, correct, rhs, start, target, max_iter)
    diagonal = 1 - _diagonal(channel)
    correct = _krylov(channel.product, diagonal, solver)
    x, residual, n_iter = _refine(channel.product, correct, rhs, start, target, max_iter)
    if residual > floor_of(x, target) and solver == "bicgstab" and n_iter < max_iter:
        correct = _krylov(channel.product, diagonal, "gmres")
        x, residual, more = _refine(channel.product, correct, rhs, x, target, max_iter - n_iter)
        n_iter += more
    return x, residual, n_iter


def solve_adjoint(channel: AffineChannel, rhs: Array, target: float, max_iter: int) -> Solved:
    """Solve ``(I - M^T) p = rhs`` for rhs of shape (n,) or (n, k)."""
    if rhs.ndim == 2:
        parts = [solve_adjoint(channel, rhs[:, k], target, max_iter) for k in range(rhs.shape[1])]
        x = np.stack([part[0] for part in parts], axis=1)
        return x, max(part[1] for part in parts), max(part[2] for part in parts)
    if channel.n <= DENSE_NODES:
        p = np.linalg.solve(np.eye(channel.n) - channel.matrix().toarray().T, rhs)
        return p, float(np.abs(rhs + channel.adjoint(p) - p).max()), 1
    correct = _krylov(channel.adjoint, 1 - _diagonal(channel), "bicgstab")
    p, residual, n_iter = _refine(channel.adjoint, correct, rhs, rhs.copy(), target, max_iter)
    if residual > floor_of(p, target) and n_iter < max_iter:
        correct = _krylov(channel.adjoint, 1 - _diagonal(channel), "gmres")
        p, residual, more = _refine(channel.adjoint, correct, rhs, p, target, max_iter - n_iter)
        n_iter += more
    return p, residual, n_iter


def richardson(
    channel: AffineChannel, rhs: Array, start: Array, target: float, max_iter: int
) -> Solved:
    """Iterate x <- rhs + M x: the dynamics themselves."""
    x, out = start.copy(), np.empty_like(start)
    residual = np.inf
    for n_iter in range(1, max_iter + 1):
        residual = channel.step(x, rhs, out)
        if residual <= floor_of(out, target):
            # x is kept, not out: the residual measured is that of x.
            return x, residual, n_iter
        if not np.isfinite(residual):
            return x, residual, n_iter
        x, out = out, x
    return x, residual, max_iter


def _direct(channel: AffineChannel, rhs: Array) -> Solved:
    if channel.n <= 4 * DENSE_NODES:
        factor = lu_factor(np.eye(channel.n) - channel.matrix().toarray())
        x = lu_solve(factor, rhs)
        x = x + lu_solve(factor, rhs + channel.product(x) - x)
    else:
        factors = splu((diags_array(np.ones(channel.n)) - channel.matrix()).tocsc())
        x = factors.solve(rhs)
        x = x + factors.solve(rhs + channel.product(x) - x)
    return x, float(np.abs(rhs + channel.product(x) - x).max()), 1


def _diagonal(channel: AffineChannel) -> Array:
    """Return the diagonal of M; uniform rows give 1/n, which is left out of a preconditioner."""
    diagonal = channel.scale * channel.weights.diagonal()
    return diagonal if channel.author is None else diagonal * channel.author


Correct = Callable[[Array, float, int], tuple[Array, int]]


def _krylov(product: Product, diagonal: Array, name: str) -> Correct:
    """Return a function that solves for a correction by BiCGSTAB or GMRES(30) with Jacobi."""
    n = len(diagonal)
    A = LinearOperator((n, n), matvec=lambda v: v - product(v), dtype=float)
    inverse = 1 / np.where(diagonal == 0, 1.0, diagonal)
    M = LinearOperator((n, n), matvec=lambda v: inverse * v, dtype=float)

    def correct(residual: Array, target: float, max_iter: int) -> tuple[Array, int]:
        count = [0]

        def counted(_: object) -> None:
            count[0] += 1

        atol = 0.5 * target * np.sqrt(n)
        if name == "bicgstab":
            dx, _ = bicgstab(
                A, residual, rtol=0.0, atol=atol, maxiter=max_iter, M=M, callback=counted
            )
        else:
            dx, _ = gmres(
                A,
                residual,
                rtol=0.0,
                atol=atol,
                restart=30,
                maxiter=max(1, max_iter // 30),
                M=M,
                callback=counted,
                callback_type="pr_norm",
            )
        return dx, max(count[0], 1)

    return correct


def symmetric_form(channel: AffineChannel, strengths: Array, amg: bool = False) -> Correct:
    """Return a function that solves for a correction by conjugate gradients.

    With ``t = author * strengths / scale``, ``diag(t) (I - M)`` is symmetric; scaled to a unit
    diagonal from both sides it is ``I - K`` with ``K = sqrt(t) M / sqrt(t)``. Rows with scale 0
    (their value is known) and rows without weights are left out.
    """
    free = (channel.scale > 0) & (strengths > 0)
    t = np.ones(channel.n)
    author = np.ones(channel.n) if channel.author is None else channel.author
    t[free] = author[free] * strengths[free] / channel.scale[free]
    root = np.sqrt(t)
    n = channel.n

    def symmetric(v: Array) -> Array:
        v = np.where(free, v, 0.0)
        return v - np.where(free, root * channel.product(v / root), 0.0)

    A = LinearOperator((n, n), matvec=symmetric, dtype=float)
    M = None
    if amg:
        pyamg = optional_import("pyamg", "graphs")
        inside = diags_array(free.astype(float))
        matrix = inside @ channel.matrix() @ inside
        S = diags_array(np.ones(n)) - diags_array(root) @ matrix @ diags_array(1 / root)
        M = pyamg.smoothed_aggregation_solver(
            S.tocsr(), B=(root * free + ~free)[:, None]
        ).aspreconditioner()

    def correct(residual: Array, target: float, max_iter: int) -> tuple[Array, int]:
        count = [0]

        def counted(_: object) -> None:
            count[0] += 1

        known = np.where(free, 0.0, residual)
        rest = np.where(free, residual + channel.product(known), 0.0)
        atol = 0.5 * target * np.sqrt(t[free].sum()) if free.any() else 1.0
        y, _ = cg(A, root * rest, rtol=0.0, atol=atol, maxiter=max_iter, M=M, callback=counted)
        return known + np.where(free, y / root, 0.0), max(count[0], 1)

    return correct


def _refine(
    product: Product, correct: Correct, rhs: Array, start: Array, target: float, max_iter: int
) -> Solved:
    """Correct x until its largest residual is small enough, or nothing is gained."""
    x, n_iter, last, share = start.copy(), 0, np.inf, 1.0
    while True:
        r = rhs + product(x) - x
        residual = float(np.abs(r).max())
        limit = floor_of(x, target)
        if residual <= limit or n_iter >= max_iter or residual > 0.5 * last:
            return x, residual, n_iter
        dx, used = correct(r, share * limit, max_iter - n_iter)
        x, n_iter, last = x + dx, n_iter + used, residual
        share = max(share / 8, 1 / 64)
