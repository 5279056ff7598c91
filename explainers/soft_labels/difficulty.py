"""How hard an item is for people, and strata of items by it.

    entropy H(p) / log K,   top 1 - max_k p_k,   margin 1 - (largest share - second largest share).

All are 0 where everybody agrees. Strata lie between quantiles of the difficulty, or between fixed
thresholds, which mean the same on every data set; a group of ties goes into the lower stratum.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from .targets import entropy, soft_targets

__all__ = ["MEASURES", "Levels", "check_levels", "item_difficulty", "strata_of_difficulty"]

MEASURES = ("entropy", "top", "margin")

#: Quantile levels that rise from 0 to 1, or from a name to the thresholds (low, high].
Levels = list[float] | dict[str, tuple[float, float]]


def difficulty_of(P: np.ndarray, measure: str) -> np.ndarray:
    """Difficulty of each distribution by one of `MEASURES`."""
    if measure == "entropy":
        return entropy(P) / np.log(P.shape[1])
    second, first = np.partition(P, P.shape[1] - 2, axis=1)[:, -2:].T
    return 1 - first if measure == "top" else 1 - (first - second)


def item_difficulty(P: npt.ArrayLike, measure: str = "entropy") -> np.ndarray:
    """Compute how much people disagree on each item.

    Parameters
    ----------
    P : array-like of shape (n_samples, n_classes)
        Soft labels or votes.
    measure : {"entropy", "top", "margin"}, default="entropy"
        Entropy over its largest value log K; 1 minus the largest share; or 1 minus the lead of the
        largest share over the second.

    Returns
    -------
    ndarray of shape (n_samples,)
        In [0, 1]: 0 where all agree. 1 is reached by equal shares of all classes ("entropy") or of
        the two largest ("margin"); "top" reaches 1 - 1 / K.

    Examples
    --------
    >>> from equipoise.explainers import item_difficulty
    >>> votes = [[10, 0, 0], [6, 4, 0], [4, 4, 2]]
    >>> item_difficulty(votes, "top")
    array([0. , 0.4, 0.6])
    >>> item_difficulty(votes, "margin")
    array([0. , 0.8, 1. ])
    """
    if measure not in MEASURES:
        raise ValueError(f"measure={measure!r} is not allowed; allowed: {list(MEASURES)}")
    return difficulty_of(soft_targets(P, name="P").P, measure)


def check_levels(strata: Sequence[float] | Mapping[str, tuple[float, float]]) -> Levels:
    """Quantile levels that rise from 0 to 1, or named thresholds low < high."""
    if isinstance(strata, Mapping):
        named = {str(name): (float(ends[0]), float(ends[1])) for name, ends in strata.items()}
        if not named or any(not 0 <= low < high for low, high in named.values()):
            raise ValueError(f"strata={strata!r} must map names to (low, high), 0 <= low < high")
        taken = [n for n in named if n in ("all", "mode-shifted") or n.startswith("group ")]
        if taken:
            raise ValueError(f"strata={strata!r}: the names {taken} mean other strata")
        # The lowest stratum takes in the items on which all agree.
        return {name: (low if low > 0 else -np.inf, high) for name, (low, high) in named.items()}
    levels = [float(level) for level in strata]
    if len(levels) < 2 or levels[0] != 0 or levels[-1] != 1 or (np.diff(levels) <= 0).any():
        raise ValueError(f"strata={strata!r} must rise from 0 to 1, or map names to (low, high)")
    return levels


def strata_of_difficulty(d: np.ndarray, levels: Levels) -> dict[str, np.ndarray]:
    """Items of each stratum: difficulties in (low, high]."""
    if isinstance(levels, dict):
        ends = levels
    else:
        limits = np.quantile(d, levels)
        names = [f"difficulty {low:.0%}-{high:.0%}" for low, high in pairwise(levels)]
        ends = dict(zip(names, pairwise(limits.tolist()), strict=True))
        first = names[0]
        ends[first] = (-np.inf, ends[first][1])
    return {name: (low < d) & (d <= high) for name, (low, high) in ends.items()}
