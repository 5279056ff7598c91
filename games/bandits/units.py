"""From a user's losses or rewards to losses in [0, 1], and back to his units."""

import warnings
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Units", "units_of"]

Array = np.ndarray


class Units(NamedTuple):
    """What numbers mean: losses or rewards, between `low` and `high`."""

    rewards: bool
    low: float
    high: float
    clip: bool

    @property
    def span(self) -> float:
        """What a loss of 1 is worth in the user's units."""
        return self.high - self.low

    def to_unit(self, values: Array, name: str = "losses") -> Array:
        """Losses in [0, 1]; numbers out of the range are refused, or clipped with a warning."""
        if not np.isfinite(values).all():
            bad = values[~np.isfinite(values)].ravel()[0]
            raise ValueError(f"{name} must be finite, got {bad}")
        if values.size and (values.min() < self.low or values.max() > self.high):
            outside = values[(values < self.low) | (values > self.high)].ravel()[0]
            allowed = f"loss_range={(self.low, self.high)}"
            if not self.clip:
                raise ValueError(
                    f"{name} holds {outside}; allowed: numbers in {allowed} (clip=True clips)"
                )
            warnings.warn(f"{name} holds {outside}, clipped to {allowed}", stacklevel=3)
            values = np.clip(values, self.low, self.high)
        if self.rewards:
            return (self.high - values) / self.span
        if (self.low, self.high) == (0.0, 1.0):
            return values
        return (values - self.low) / self.span

    def one_to_unit(self, value: Any) -> float:
        """The same for one number, without arrays: learners call it every round."""
        value = float(value)
        if not self.low <= value <= self.high:
            return float(self.to_unit(np.array([value]), "loss")[0])
        return (self.high - value if self.rewards else value - self.low) / self.span

    def from_unit(self, losses: Array) -> Array:
        """What the user handed in: losses, or rewards."""
        return self.high - self.span * losses if self.rewards else self.low + self.span * losses


def units_of(learner: Any) -> Units:
    """The units of a learner; one without `mode` and `loss_range` takes losses in [0, 1]."""
    pair = np.asarray(getattr(learner, "loss_range", (0.0, 1.0)), dtype=float)
    if pair.shape != (2,) or not np.isfinite(pair).all() or not pair[0] < pair[1]:
        raise ValueError(
            f"loss_range={getattr(learner, 'loss_range', None)!r}; allowed: (low, high), finite, "
            "low < high"
        )
    rewards = getattr(learner, "mode", "loss") == "reward"
    clip = bool(getattr(learner, "clip", False))
    return Units(rewards, float(pair[0]), float(pair[1]), clip)
