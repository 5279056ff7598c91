"""The projections take NumPy arrays or torch tensors, and give back what they were given."""

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
import torch

__all__ = ["as_tensors", "labels_of", "require_option", "require_positive"]


def as_tensor(name: str, value: Any) -> torch.Tensor:
    """A real, finite tensor, or an error that names the parameter."""
    try:
        tensor = value if isinstance(value, torch.Tensor) else torch.as_tensor(np.asarray(value))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be an array of numbers; got {value!r:.60}") from error
    if tensor.is_complex():
        raise TypeError(f"{name} must hold real numbers; got {tensor.dtype}")
    if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
        raise ValueError(f"{name} holds NaN or infinity; allowed: finite numbers")
    return tensor


def as_tensors(**arrays: Any) -> tuple[list[torch.Tensor], Callable[[torch.Tensor], Any]]:
    """Floating tensors of one dtype, and what turns a result into the kind of the inputs.

    Half precision is computed in float32; whole numbers become float64. Arrays without dimensions
    don't raise the precision of tensors beside them.
    """
    given_tensor = any(isinstance(value, torch.Tensor) for value in arrays.values())
    tensors = [as_tensor(name, value) for name, value in arrays.items()]
    floating = [t.dtype for t in tensors if t.is_floating_point() and (t.ndim or not given_tensor)]
    dtype = torch.float64 if not floating else floating[0]
    for other in floating[1:]:
        dtype = torch.promote_types(dtype, other)
    work = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
    device = next((v.device for v in arrays.values() if isinstance(v, torch.Tensor)), None)

    def back(result: torch.Tensor) -> Any:
        result = result.to(dtype)
        return result if given_tensor else result.numpy()

    return [t.to(device=device, dtype=work) for t in tensors], back


def require_positive(name: str, value: Any) -> float:
    """The value as a float, or a ValueError that names it."""
    if (
        not isinstance(value, Real)
        or isinstance(value, bool)
        or not 0 < float(value) < float("inf")
    ):
        raise ValueError(f"{name}={value!r} is not allowed; allowed: finite numbers above 0")
    return float(value)


def require_option(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """The value if it is one of those allowed, or a ValueError that names it."""
    if value not in allowed:
        raise ValueError(f"{name}={value!r} is not available; allowed: {list(allowed)}")
    return str(value)


def labels_of(y: Any, logits: torch.Tensor) -> torch.Tensor:
    """Labels as a tensor of whole numbers, each a column of the logits (..., K)."""
    y = y if isinstance(y, torch.Tensor) else torch.as_tensor(np.asarray(y))
    if y.is_floating_point() or y.is_complex() or y.dtype == torch.bool:
        raise TypeError(f"y has dtype {y.dtype}; allowed: whole numbers, the columns of the labels")
    if y.shape != logits.shape[:-1]:
        raise ValueError(f"y has shape {tuple(y.shape)}; expected {tuple(logits.shape[:-1])}")
    if y.numel() and not (0 <= int(y.min()) and int(y.max()) < logits.shape[-1]):
        raise ValueError(
            f"y holds labels from {int(y.min())} to {int(y.max())}; "
            f"allowed: from 0 to {logits.shape[-1] - 1}"
        )
    return y.to(device=logits.device, dtype=torch.long)
