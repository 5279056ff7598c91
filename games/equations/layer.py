"""Equations with min and max as a layer of a network: implicit differentiation in torch.

The layer's output is the solution x of ``x_i = max or min over a of (q_a.x + b_a)``. With the
optimal policy's matrix Q and ``lambda = (I - Q)^{-T} g`` for the incoming gradient g, the
derivative is ``lambda_i`` for the offset of node i's chosen row and ``lambda_i x_j`` for its
coefficient in column j, and 0 for other rows. Where actions tie, the one found gives an element of
the generalised gradient.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.utils import check_random_state
from torch import nn
from torch.autograd.function import once_differentiable

from .batch import factorise, solve_lemm_batch
from .problem import LEMM

__all__ = ["LEMMLayer"]

Array = np.ndarray


def row_entries(problem: LEMM, rows: Array) -> tuple[Array, Array]:
    """Owner (0, 1, ...) and place in ``A.data`` of each coefficient of the given rows."""
    sizes = np.diff(problem.A.indptr)[rows]
    before = np.cumsum(sizes) - sizes
    entries = np.arange(sizes.sum()) + np.repeat(problem.A.indptr[rows] - before, sizes)
    return np.repeat(np.arange(len(rows)), sizes), entries


class Solution(torch.autograd.Function):
    """From coefficients (nnz,) and offsets (k, m) to solutions (k, n)."""

    @staticmethod
    def forward(ctx: Any, coefficients: Any, b: Any, problem: LEMM, seed: int) -> Any:
        values = coefficients.detach().cpu().double().numpy()
        A = sp.csr_array((values, problem.A.indices, problem.A.indptr), shape=problem.A.shape)
        ctx.problem = LEMM(A, problem.b, problem.indptr, problem.op)
        offsets = b.detach().cpu().double().numpy()
        ctx.x, ctx.policies = solve_lemm_batch(ctx.problem, offsets, random_state=seed)
        return torch.as_tensor(ctx.x, dtype=b.dtype, device=b.device)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Any) -> tuple[Any, Any, None, None]:
        problem: LEMM = ctx.problem
        g = gradient.detach().cpu().double().numpy()
        to_b = np.zeros((len(g), problem.m))
        to_coefficients = np.zeros(problem.nnz)
        policies, group = np.unique(ctx.policies, axis=0, return_inverse=True)
        for k, policy in enumerate(policies):
            members = np.flatnonzero(group.ravel() == k)
            multiplier = factorise(problem, policy).solve(g[members].T, transposed=True).T
            rows = problem.indptr[:-1] + policy
            to_b[members[:, None], rows] = multiplier
            node, entries = row_entries(problem, rows)
            products = multiplier[:, node] * ctx.x[members][:, problem.A.indices[entries]]
            to_coefficients[entries] += products.sum(axis=0)

        def tensor(array: Array) -> Any:
            return torch.as_tensor(array, dtype=gradient.dtype, device=gradient.device)

        return tensor(to_coefficients), tensor(to_b), None, None


class LEMMLayer(nn.Module):
    """A layer whose output solves a system of min and max equations.

    Parameters
    ----------
    problem : LEMM
        Pattern, operators, and first values of coefficients and offsets. The coefficients must
        keep the solution unique while they are trained: `contract` sees to it.
    learn_coefficients, learn_offsets : bool, default=True
        Whether they are trained.
    random_state : int, RandomState or None, default=None
        Seeds the parametric rule on systems that aren't absolutely halting.

    Attributes
    ----------
    coefficients : Parameter of shape (nnz,), float64
        In the order of ``problem.A.data``.
    offsets : Parameter of shape (m,), float64
        One a row.
    problem : LEMM
        As given.

    Raises
    ------
    TypeError
        If `problem` isn't a `LEMM`.

    Notes
    -----
    Equations are solved on the CPU in double precision; inputs may live on any device. The output
    is differentiated once, not twice.

    References
    ----------
    .. [1] S. Bai, J. Z. Kolter, V. Koltun, "Deep equilibrium models", 2019.

    Examples
    --------
    >>> import torch
    >>> from equipoise.games import LEMM, LEMMLayer
    >>> layer = LEMMLayer(LEMM.from_equations(["x = max(1 + 0.5*y, 2)", "y = min(x, 1 - 0.5*x)"]))
    >>> x = layer(torch.tensor([[1.0, 2.0, 0.0, 1.0], [3.0, 0.0, 0.0, 1.0]], dtype=torch.float64))
    >>> x.tolist()
    [[2.0, 0.0], [2.8, -0.4]]
    >>> x.sum().backward()
    >>> [round(value, 6) for value in layer.coefficients.grad.tolist()]
    [-0.16, 0.0, 5.36]
    """

    def __init__(
        self,
        problem: LEMM,
        learn_coefficients: bool = True,
        learn_offsets: bool = True,
        random_state: Any = None,
    ) -> None:
        super().__init__()
        if not isinstance(problem, LEMM):
            raise TypeError(f"problem must be a LEMM, got {type(problem).__name__}")
        self.problem = problem
        self.seed = int(check_random_state(random_state).randint(2**31 - 1))
        self.coefficients = nn.Parameter(
            torch.tensor(problem.A.data.copy()), requires_grad=learn_coefficients
        )
        self.offsets = nn.Parameter(torch.tensor(problem.b.copy()), requires_grad=learn_offsets)

    def forward(self, b: torch.Tensor | None = None) -> torch.Tensor:
        """Solve the equations.

        Parameters
        ----------
        b : Tensor of shape (m,) or (n_samples, m), optional
            Offsets, in place of the layer's own; None takes those.

        Returns
        -------
        Tensor of shape (n,) or (n_samples, n)
            Solutions.

        Raises
        ------
        ValueError
            If `b` has another shape, or a number isn't finite.
        LEMMNotUniqueError
            If the coefficients are proved not to give unique solutions.
        RuntimeError
            If the equations couldn't be solved.
        """
        offsets: torch.Tensor = self.offsets
        if b is not None:
            if b.ndim not in (1, 2) or b.shape[-1] != self.problem.m:
                raise ValueError(
                    f"b must have shape (n_samples, {self.problem.m}), got {tuple(b.shape)}"
                )
            offsets = b
        flat = offsets.reshape(-1, self.problem.m)
        x = Solution.apply(self.coefficients, flat, self.problem, self.seed)
        return x.reshape(*offsets.shape[:-1], self.problem.n)

    @torch.no_grad()
    def contract(self, factor: float = 0.95) -> None:
        """Shrink rows whose absolute sum exceeds a factor below 1, so that the system contracts.

        Parameters
        ----------
        factor : float, default=0.95
            Largest absolute row sum left; call after each step of the optimiser.
        """
        if not 0 < factor < 1:
            raise ValueError(f"factor={factor!r} must lie strictly between 0 and 1")
        owner = torch.as_tensor(
            np.repeat(np.arange(self.problem.m), np.diff(self.problem.A.indptr)),
            device=self.coefficients.device,
        )
        sums = torch.zeros(self.problem.m, dtype=self.coefficients.dtype, device=owner.device)
        sums.index_add_(0, owner, self.coefficients.abs())
        self.coefficients.mul_((factor / sums.clamp(min=factor))[owner])
