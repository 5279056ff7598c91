"""Brier scores: to the votes, expected under them, and split into what they are made of.

To the population, debiased for n_i votes: ||f - p||^2 - (1 - ||p||^2) / (n_i - 1). Stephenson et
al. (2008) split the Brier score of a score f and an outcome a in bins exactly:
BS = reliability - resolution + uncertainty + within-bin variance - within-bin covariance.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_consistent_length

from .bins import assign_bins, bin_sums
from .calibration import check_options, each_class, top_label
from .pairs import finish, read_pair

__all__ = ["brier_decomposition", "expected_brier", "soft_brier"]


def soft_brier(
    P: npt.ArrayLike,
    proba: npt.ArrayLike,
    *,
    debias: bool = False,
    sample_weight: npt.ArrayLike | None = None,
    per_item: bool = False,
) -> float | np.ndarray:
    """Squared distance ||f - p||^2 of the model to the annotators.

    Parameters
    ----------
    P, proba, sample_weight, per_item
        As for `soft_cross_entropy`.
    debias : bool, default=False
        Subtract (1 - ||p||^2) / (n_i - 1): unbiased for the distance to the population from which
        the n_i votes were drawn, and so possibly negative. `P` must then be votes; with an
        item of one vote the result is NaN, with a warning.

    Returns
    -------
    float or ndarray of shape (n_samples,)
        In [0, 2] where not debiased.

    Raises
    ------
    ValueError
        If `debias` is asked for and `P` isn't votes.

    Examples
    --------
    >>> from equipoise.explainers import soft_brier
    >>> round(soft_brier([[8, 1, 1]], [[0.7, 0.2, 0.1]]), 6)
    0.02
    >>> round(soft_brier([[8, 1, 1]], [[0.7, 0.2, 0.1]], debias=True), 6)
    -0.017778
    """
    humans, F = read_pair(P, proba)
    values = ((F - humans.P) ** 2).sum(axis=1)
    if debias:
        if humans.counts is None:
            raise ValueError("debias=True needs vote counts in P; got probabilities or labels")
        n = humans.counts.sum(axis=1).astype(float)
        if (n < 2).any():
            warnings.warn(
                f"{int((n < 2).sum())} items have one vote: the debiased Brier score is NaN there",
                UserWarning,
                stacklevel=2,
            )
        n[n < 2] = np.nan
        values = values - (1 - (humans.P**2).sum(axis=1)) / (n - 1)
    return finish(values, sample_weight, per_item)


def expected_brier(
    P: npt.ArrayLike,
    proba: npt.ArrayLike,
    *,
    sample_weight: npt.ArrayLike | None = None,
    per_item: bool = False,
) -> float | np.ndarray:
    """Multi-class Brier score expected when the label is drawn from the votes.

    ``||f - p||^2 + 1 - ||p||^2``: the soft Brier score plus the votes' own variance.

    Parameters
    ----------
    P, proba, sample_weight, per_item
        As for `soft_cross_entropy`.

    Returns
    -------
    float or ndarray of shape (n_samples,)
        In [0, 2].

    Examples
    --------
    >>> from equipoise.explainers import expected_brier
    >>> round(expected_brier([[8, 1, 1]], [[0.7, 0.2, 0.1]]), 6)
    0.36
    """
    humans, F = read_pair(P, proba)
    values = ((F - humans.P) ** 2).sum(axis=1) + 1 - (humans.P**2).sum(axis=1)
    return finish(values, sample_weight, per_item)


def decompose(f: np.ndarray, a: np.ndarray, bins: np.ndarray) -> np.ndarray:
    """Brier score, reliability, resolution, uncertainty, within-bin variance and covariance."""
    n, f_sum, a_sum = bin_sums(bins, np.ones_like(f), f, a)
    full = n > 0
    f_bar = np.divide(f_sum, n, out=np.zeros_like(n), where=full)
    a_bar = np.divide(a_sum, n, out=np.zeros_like(n), where=full)
    df, da = f - f_bar[bins], a - a_bar[bins]
    share = n / len(f)
    return np.array(
        [
            np.mean((f - a) ** 2),
            share @ (f_bar - a_bar) ** 2,
            share @ (a_bar - a.mean()) ** 2,
            np.mean(a**2) - a.mean() ** 2,
            np.mean(df**2),
            2 * np.mean(df * da),
        ]
    )


def brier_decomposition(
    target: npt.ArrayLike,
    proba: npt.ArrayLike,
    *,
    n_bins: int = 15,
    strategy: str = "uniform",
    classwise: bool = False,
    closed: str = "left",
    merge_ties: bool = False,
    labels: Sequence[Any] | np.ndarray | None = None,
) -> dict[str, float]:
    """Split the Brier score exactly into reliability, resolution, uncertainty and bin terms.

    ``brier = reliability - resolution + uncertainty + within_bin_variance -
    within_bin_covariance`` holds to rounding for any outcomes in [0, 1], hard or soft.

    Parameters
    ----------
    target : array-like of shape (n_samples,) or (n_samples, n_classes)
        As for `calibration_error`; for 1-D `proba`: outcomes in [0, 1].
    proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Model probabilities, or the scores of one event.
    n_bins, strategy, closed, merge_ties, labels
        As for `calibration_error`.
    classwise : bool, default=False
        Sum over the K columns instead of the top label; ``brier`` is then the multi-class score.

    Returns
    -------
    dict of str to float
        ``brier``, ``reliability``, ``resolution``, ``uncertainty``, ``within_bin_variance`` and
        ``within_bin_covariance``.

    References
    ----------
    .. [1] A. H. Murphy, "A new vector partition of the probability score", 1973.
    .. [2] D. B. Stephenson, C. A. S. Coelho, I. T. Jolliffe, "Two extra components in the Brier
           score decomposition", Weather and Forecasting, 2008.

    Examples
    --------
    >>> from equipoise.explainers import brier_decomposition
    >>> parts = brier_decomposition([1, 1, 0, 1], [0.9, 0.7, 0.6, 0.8], n_bins=2)
    >>> round(parts["brier"], 4), round(parts["uncertainty"], 4)
    (0.125, 0.1875)
    """
    check_options(n_bins, strategy, closed)
    if np.ndim(proba) == 1:
        f, a = np.asarray(proba, dtype=float), np.asarray(target, dtype=float)
        check_consistent_length(f, a)
        for name, values in (("proba", f), ("target", a)):
            if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
                raise ValueError(f"{name} must be one number in [0, 1] an item")
        pairs = [(f, a)]
    elif classwise:
        pairs = each_class(target, proba, labels)
    else:
        pairs = [top_label(target, proba, labels)]
    parts = sum(
        decompose(f, a, assign_bins(f, a, n_bins, strategy, closed, merge_ties)) for f, a in pairs
    )
    names = (
        "brier",
        "reliability",
        "resolution",
        "uncertainty",
        "within_bin_variance",
        "within_bin_covariance",
    )
    return {name: float(part) for name, part in zip(names, np.asarray(parts), strict=True)}
