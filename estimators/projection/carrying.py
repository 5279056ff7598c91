"""How autograd carries displacements: a backward pass receives y - z and returns x - x'.

A displacement is the gradient of half the squared distance to the set {(x, y): y = f(x)}, so that
`.grad` of a parameter is what an optimiser takes for a gradient, and all that autograd does with
gradients (adding, reshaping, padding, accumulating, clipping) stays right. The target is z = y - d.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from .modes import is_projecting

__all__ = ["Displacement", "projected"]

#: (d, output, *inputs, needs) -> for each input what it gives up, or None.
Displacement = Callable[..., tuple[torch.Tensor | None, ...]]


class Projected(torch.autograd.Function):
    """An operation whose backward pass projects onto its graph."""

    @staticmethod
    def forward(ctx: Any, value: Callable[..., torch.Tensor], displacement: Displacement,
                *inputs: torch.Tensor | None) -> torch.Tensor:  # fmt: skip
        output = value(*inputs)
        ctx.displacement = displacement
        ctx.save_for_backward(output, *inputs)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d: torch.Tensor) -> Any:
        output, *inputs = ctx.saved_tensors
        needs = ctx.needs_input_grad[2:]
        kinds = [None if v is None else v.dtype for v in inputs]
        if any(v is not None and v.dtype in (torch.float16, torch.bfloat16) for v in (d, *inputs)):
            # Half precision is too coarse for the equations of a projection.
            d, output = d.float(), output.float()
            inputs = [None if v is None else v.float() for v in inputs]
        moved = ctx.displacement(d, output, *inputs, needs=needs)
        given = (
            None if m is None or not need else m.to(kind)
            for m, need, kind in zip(moved, needs, kinds, strict=True)
        )
        return (None, None, *given)


def projected(
    value: Callable[..., torch.Tensor], displacement: Displacement, *inputs: torch.Tensor | None
) -> torch.Tensor:
    """The value of an operation, which carries displacements back unless in gradient mode."""
    if not is_projecting():
        return value(*inputs)
    return Projected.apply(value, displacement, *inputs)
