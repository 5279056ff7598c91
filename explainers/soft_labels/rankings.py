"""Whether annotators and model rank the classes alike (Baan et al. 2022)."""

import numpy as np
import numpy.typing as npt

from .calibration import read_weight
from .pairs import finish, read_pair

__all__ = ["ranking_agreement", "same_ranking"]


def same_ranking(P: np.ndarray, F: np.ndarray) -> np.ndarray:
    """Whether f orders the classes as p does; classes tied in p may come in any order."""
    order = np.lexsort((-F, -P), axis=1)
    p, f = np.take_along_axis(P, order, axis=1), np.take_along_axis(F, order, axis=1)
    # Where p falls, the smallest f of the group before must be above the largest of the next.
    return ((p[:, :-1] == p[:, 1:]) | (f[:, :-1] > f[:, 1:])).all(axis=1)


def kendall_tau_b(P: np.ndarray, F: np.ndarray) -> np.ndarray:
    """Kendall's tau-b of each row; NaN where either row is constant."""
    first, second = np.triu_indices(P.shape[1], k=1)
    concordance, strict_p, strict_f = np.zeros((3, len(P)))
    for a, b in zip(first, second, strict=True):
        dp, df = np.sign(P[:, a] - P[:, b]), np.sign(F[:, a] - F[:, b])
        concordance += dp * df
        strict_p += dp != 0
        strict_f += df != 0
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(strict_p * strict_f > 0, concordance / np.sqrt(strict_p * strict_f), np.nan)


def ranking_agreement(
    P: npt.ArrayLike,
    proba: npt.ArrayLike,
    *,
    measure: str = "exact",
    sample_weight: npt.ArrayLike | None = None,
    per_item: bool = False,
) -> float | np.ndarray:
    """Agreement of the order in which annotators and model rank the classes.

    Parameters
    ----------
    P, proba, sample_weight, per_item
        As for `soft_cross_entropy`.
    measure : {"exact", "kendall"}, default="exact"
        Whether the whole ranking is the same (classes tied in `P` may come in any order), or
        Kendall's tau-b; items with a constant row have none and are left out of the mean.

    Returns
    -------
    float or ndarray of shape (n_samples,)
        Fraction of items with the same ranking, or mean tau; NaN if no item has a tau.

    References
    ----------
    .. [1] J. Baan et al., "Stop measuring calibration when humans disagree", EMNLP 2022.

    Examples
    --------
    >>> from equipoise.explainers import ranking_agreement
    >>> ranking_agreement([[8, 1, 1], [3, 5, 2]], [[0.7, 0.2, 0.1], [0.5, 0.4, 0.1]])
    0.5
    """
    if measure not in ("exact", "kendall"):
        raise ValueError(f"measure={measure!r} is not allowed; allowed: 'exact', 'kendall'")
    humans, F = read_pair(P, proba)
    if measure == "exact":
        same = same_ranking(humans.P, F)
        return finish(same.astype(float), sample_weight, per_item)
    tau = kendall_tau_b(humans.P, F)
    if per_item:
        return tau
    defined = ~np.isnan(tau)
    weight = read_weight(sample_weight, len(tau)) * defined
    return float(weight[defined] @ tau[defined] / weight.sum()) if weight.sum() else float("nan")
