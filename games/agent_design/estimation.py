"""The steps of estimating a meta-game: costs, one list of designs for all, checked tables."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .matches import MatchLog

__all__ = ["checked_bounds", "finite_array", "shared_designs", "with_costs"]

Array = np.ndarray


def with_costs(log: MatchLog, utility: Any, costs: Any) -> Array:
    """Payoffs after the utility function and the cost of each design."""
    payoffs = log.payoffs
    if utility is not None:
        payoffs = np.asarray(utility(payoffs), dtype=float)
        if payoffs.shape != log.payoffs.shape or not np.isfinite(payoffs).all():
            raise ValueError(
                f"utility must return finite numbers of shape {log.payoffs.shape}, "
                f"got shape {payoffs.shape}"
            )
    if costs is None:
        return payoffs
    table = np.zeros_like(payoffs)
    for i, (name, designs) in enumerate(zip(log.stakeholders, log.designs, strict=True)):
        own = costs.get(name, {}) if name in costs else costs
        if not isinstance(own, Mapping):
            raise ValueError(f"costs[{name!r}]={own!r} must be a mapping from design to cost")
        prices = np.array([float(own.get(design, 0.0)) for design in designs])
        if not np.isfinite(prices).all():
            raise ValueError(f"costs={costs!r} must hold finite numbers")
        table[:, i] = prices[log.choices[:, i]]
    return payoffs - table


def shared_designs(log: MatchLog) -> MatchLog:
    """The same log with one design list for all stakeholders."""
    names = list(dict.fromkeys(design for own in log.designs for design in own))
    place = {design: k for k, design in enumerate(names)}
    lookup = [np.array([place[design] for design in own]) for own in log.designs]
    choices = np.stack([t[log.choices[:, i]] for i, t in enumerate(lookup)], axis=1)
    return MatchLog(
        choices,
        log.payoffs,
        log.weights,
        log.states,
        (tuple(names),) * len(log.designs),
        log.stakeholders,
        log.state_names,
    )


def finite_array(values: ArrayLike, name: str, shape: tuple[int, ...]) -> Array:
    array = np.asarray(values, dtype=float)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    if np.isinf(array).any() or (array < 0).any() or (name == "counts" and np.isnan(array).any()):
        raise ValueError(f"{name} must be finite and not negative")
    return array


def checked_bounds(missing: str, bounds: Any) -> tuple[float, float] | None:
    """The least and the largest possible payoff, for missing="bounds" and for nothing else."""
    if missing != "bounds":
        if bounds is not None:
            raise ValueError(f"payoff_bounds={bounds!r} is for missing='bounds' only")
        return None
    ends = np.asarray(() if bounds is None else bounds, dtype=float)
    if ends.shape != (2,) or not np.isfinite(ends).all() or ends[0] > ends[1]:
        raise ValueError(
            f"missing='bounds' needs payoff_bounds, two finite numbers (least, largest), "
            f"got {bounds!r}"
        )
    return float(ends[0]), float(ends[1])
