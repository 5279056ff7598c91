"""The projections take NumPy arrays or torch tensors, and give back what they were given."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

__all__ = ["as_tensors", "require_option", "require_positive"]


def as_tensors(*values: Any) -> tuple[list[torch.Tensor], Callable[[torch.Tensor], Any]]:
    """Floating tensors of one dtype, and what turns a result into the kind of the inputs.

    Half precision is computed in float32; whole numbers become float64.
    """
    given_tensor = any(isinstance(value, torch.Tensor) for value in values)
    tensors = [torch.as_tensor(np.asarray(v) if not isinstance(v, torch.Tensor) else v)
               for v in values]  # fmt: skip
    floating = [t.dtype for t in tensors if t.is_floating_point() and (t.ndim or not given_tensor)]
    dtype = torch.float64 if not floating else floating[0]
    for other in floating[1:]:
        dtype = torch.promote_types(dtype, other)
    work = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
    device = next((v.device for v in values if isinstance(v, torch.Tensor)), None)

    def back(result: torch.Tensor) -> Any:
        result = result.to(dtype)
        return result if given_tensor else result.numpy()

    return [t.to(device=device, dtype=work) for t in tensors], back


def require_positive(name: str, value: float) -> float:
    """The value as a float, or a ValueError that names it."""
    if not 0 < float(value) < float("inf"):
        raise ValueError(f"{name}={value!r} is not allowed; allowed: finite numbers above 0")
    return float(value)


def require_option(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """The value if it is one of those allowed, or a ValueError that names it."""
    if value not in allowed:
        raise ValueError(f"{name}={value!r} is not available; allowed: {list(allowed)}")
    return str(value)
