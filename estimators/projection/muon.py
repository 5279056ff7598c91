"""Muon: momentum whose matrices are replaced by their nearest orthogonal ones (Jordan 2024).

`torch.optim.Muon` orthogonalises in bfloat16 and takes norms below 1e-7 for zero; displacements far
from the output are smaller than that. Here each matrix is scaled by its largest entry first, and
computed in its own precision.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.optim import Optimizer

from .arrays import require_positive

__all__ = ["Muon", "orthogonalize"]

#: Quintic Newton-Schulz iteration: singular values go to about 1 from anywhere in (0, 1].
COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def orthogonalize(G: torch.Tensor, steps: int = 5) -> torch.Tensor:
    """A matrix (N, n) with its singular values moved to about 1; a zero matrix stays zero."""
    a, b, c = COEFFICIENTS
    largest = G.abs().max()
    X = G / torch.where(largest > 0, largest, 1.0)
    X = X / torch.linalg.matrix_norm(X).clamp(min=1.0)
    tall = X.shape[0] > X.shape[1]
    X = X.T if tall else X
    for _ in range(steps):
        S = X @ X.T
        S = torch.addmm(S, S, S, beta=b, alpha=c)
        X = torch.addmm(X, S, X, beta=a)
    return X.T if tall else X


class Muon(Optimizer):
    """Muon for parameters with at least two dimensions; the first is kept, the others are one.

    Parameters
    ----------
    params : iterable of tensor or dict
        Parameters or groups.
    lr : float, default=1e-2
        Size of a step; matrices with N > n rows take sqrt(N / n) times it.
    momentum : float, default=0.95
        Share of the past in Nesterov's momentum, in [0, 1).
    weight_decay : float, default=0.0
        Decoupled: a step shrinks weights by lr times it.
    """

    def __init__(
        self, params: Any, lr: float = 1e-2, momentum: float = 0.95, weight_decay: float = 0.0
    ) -> None:
        require_positive("lr", lr)
        if not 0 <= momentum < 1:
            raise ValueError(f"momentum={momentum!r} is not allowed; allowed: numbers in [0, 1)")
        if not 0 <= weight_decay < float("inf"):
            raise ValueError(
                f"weight_decay={weight_decay!r} is not allowed; allowed: finite numbers from 0 on"
            )
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})
        for group in self.param_groups:
            if any(p.ndim < 2 for p in group["params"]):
                raise ValueError("params holds a vector; Muon takes at least two dimensions")

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take a step; return the closure's loss."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "momentum_buffer" not in state:
                    state["momentum_buffer"] = torch.zeros_like(p.grad)
                past = state["momentum_buffer"]
                past.lerp_(p.grad, 1 - group["momentum"])
                update = p.grad.lerp(past, group["momentum"]).flatten(1)
                scale = max(1.0, update.shape[0] / update.shape[1]) ** 0.5
                if group["weight_decay"]:
                    p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(orthogonalize(update).view_as(p), alpha=-group["lr"] * scale)
        return loss
