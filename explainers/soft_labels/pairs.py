"""Annotators' targets beside model probabilities: reading both, and the mean over items."""

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_consistent_length

from .calibration import read_proba, read_weight
from .targets import SoftTargets, soft_targets

__all__ = ["finish", "read_pair"]


def read_pair(P: npt.ArrayLike, proba: npt.ArrayLike) -> tuple[SoftTargets, np.ndarray]:
    """Human targets and model probabilities of the same shape."""
    F = read_proba(proba)[0]
    classes = np.arange(F.shape[1]) if np.ndim(P) == 1 else None
    humans = soft_targets(P, classes, name="P")
    check_consistent_length(humans.P, F)
    if humans.P.shape[1] != F.shape[1]:
        raise ValueError(f"P has {humans.P.shape[1]} columns, but proba has {F.shape[1]}")
    return humans, F


def finish(
    values: np.ndarray, sample_weight: npt.ArrayLike | None, per_item: bool
) -> float | np.ndarray:
    """The values themselves, or their weighted mean."""
    if per_item:
        return values
    return float(np.average(values, weights=read_weight(sample_weight, len(values))))
