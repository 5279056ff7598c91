"""What learners over learners ask of the learners below them."""

from typing import Any

from .dispatch import BLOCKS, CORRAL, DETECTION, THOMPSON
from .units import units_of

__all__ = ["check_base"]


def check_base(base: Any, n_arms: int, name: str) -> None:
    """Refuse what can't be a base: it needs a law of its draws, and takes losses in [0, 1]."""
    kind = getattr(base, "_kind", None)
    if kind is None or kind in (THOMPSON, CORRAL, BLOCKS, DETECTION):
        raise ValueError(
            f"{name}: got a {type(base).__name__}; allowed: learners of this package but "
            "ThompsonBeta and those that hold learners themselves"
        )
    if base.n_arms != n_arms:
        raise ValueError(f"{name}: {base!r} has another number of arms than {n_arms}")
    if units_of(base)[:3] != (False, 0.0, 1.0):
        raise ValueError(
            f"{name}: {base!r} must keep mode='loss' and loss_range=(0, 1): give both to the "
            "learner above it, which hands on losses in [0, 1]"
        )
