"""Calibration errors against hard labels or against the annotators' vote shares.

The score of item i is conf_i = max_k f_ik with prediction argmax. Its correctness a_i is
1[prediction = label] for hard labels and p_{i, prediction}, the expected correctness under the
annotators, for soft ones. With bins b of n_b items,

    ECE = sum_b (n_b / n) |mean conf - mean a|,   RMSCE = sqrt(sum_b (n_b / n) gap_b^2),

MCE is the largest gap. Kumar et al. (2019) debias the squared error by the sampling variance of
each bin's mean a.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from numba import njit
from sklearn.utils.validation import check_array, check_consistent_length

from .bins import assign_bins, bin_sums
from .targets import check_classes, columns_of, is_matrix, one_hot, soft_targets

__all__ = ["calibration_error", "reliability_curve"]

STRATEGIES = ("uniform", "quantile", "sweep")


@njit(cache=True, nogil=True)
def scan_rows(F: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:  # pragma: no cover
    """Largest entry and its column in each row, and the first row that is no distribution (-1)."""
    n, K = F.shape
    top = np.empty(n)
    column = np.empty(n, np.int64)
    bad = -1
    for i in range(n):
        best, at, total = -1.0, 0, 0.0
        fine = True
        for k in range(K):
            f = F[i, k]
            fine = fine and f >= 0.0
            total += f
            if f > best:
                best, at = f, k
        if bad < 0 and not (fine and abs(total - 1.0) <= 1e-3):
            bad = i
        top[i], column[i] = best, at
    return top, column, bad


def read_proba(proba: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Model probabilities (n, K), the largest of each row and its column."""
    F = np.asarray(proba, dtype=np.float64)
    if F.ndim != 2 or F.shape[1] < 2 or len(F) == 0:
        raise ValueError(f"proba has shape {F.shape}; allowed: (n_samples, n_classes >= 2)")
    top, column, bad = scan_rows(F)
    if bad >= 0:
        raise ValueError(
            f"proba row {bad} is {F[bad].tolist()}; each row must be non-negative and sum to 1"
        )
    return F, top, column


def read_outcomes(
    target: Any, n_classes: int, labels: Sequence[Any] | np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Column of each item's (most voted) label, and the soft labels (n, K) or None."""
    if is_matrix(target):
        P = soft_targets(target, labels, name="target").P
        if P.shape[1] != n_classes:
            raise ValueError(f"target has {P.shape[1]} columns, but proba has {n_classes}")
        return P.argmax(axis=1), P
    y = np.ravel(np.asarray(target))
    if labels is not None:
        return columns_of(y, check_classes(labels, n_classes)), None
    if y.dtype.kind not in "iub" or (len(y) and (y.min() < 0 or y.max() >= n_classes)):
        raise ValueError(
            f"hard targets must be columns of proba (whole numbers from 0 to {n_classes - 1}); "
            "for other labels name the columns with `labels`"
        )
    return y.astype(np.int64), None


def binned_error(
    scores: np.ndarray, a: np.ndarray, weight: np.ndarray, bins: np.ndarray, norm: str, debias: bool
) -> float:
    """Distance between the bins' mean score and mean outcome."""
    mass, conf, hit = bin_sums(bins, weight, weight * scores, weight * a)
    full = mass > 0
    share = mass[full] / mass.sum()
    gap = (conf[full] - hit[full]) / mass[full]
    if norm == "l1":
        return float(share @ np.abs(gap))
    if norm == "max":
        return float(np.abs(gap).max())
    if not debias:
        return float(np.sqrt(share @ gap**2))
    n, hits = mass[full], hit[full]  # equal weights: the mass is the number of items
    squares = bin_sums(bins, a**2)[0][full]
    many = n >= 2
    if not many.any():
        return float("nan")
    variance = np.maximum(squares - hits**2 / n, 0)[many] / (n[many] - 1)
    squared = share[many] @ (gap[many] ** 2 - variance / n[many])
    return float(np.sqrt(max(squared, 0.0)))


def check_options(
    n_bins: int, strategy: str, closed: str, norm: str = "l1", debias: bool = False
) -> None:
    for name, value, allowed in (
        ("strategy", strategy, STRATEGIES),
        ("closed", closed, ("left", "right")),
        ("norm", norm, ("l1", "l2", "max")),
    ):
        if value not in allowed:
            raise ValueError(f"{name}={value!r} is not allowed; allowed: {list(allowed)}")
    if isinstance(n_bins, bool) or int(n_bins) != n_bins or n_bins < 1:
        raise ValueError(f"n_bins={n_bins!r} must be a whole number >= 1")
    if debias and norm != "l2":
        raise ValueError(f"debias=True is for norm='l2' only; got norm={norm!r}")


def read_weight(sample_weight: npt.ArrayLike | None, n: int) -> np.ndarray:
    if sample_weight is None:
        return np.ones(n)
    weight = np.asarray(check_array(sample_weight, ensure_2d=False, dtype=np.float64))
    if weight.shape != (n,) or (weight < 0).any() or weight.sum() == 0:
        raise ValueError(f"sample_weight must be {n} non-negative numbers, not all zero")
    return weight


def top_label(
    target: Any, proba: npt.ArrayLike, labels: Sequence[Any] | np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Confidence and correctness of the predicted class."""
    F, conf, pred = read_proba(proba)
    columns, P = read_outcomes(target, F.shape[1], labels)
    if P is not None:
        check_consistent_length(F, P)
        return conf, P[np.arange(len(P)), pred]
    check_consistent_length(F, columns)
    return conf, np.equal(pred, columns).astype(float)


def each_class(
    target: Any, proba: npt.ArrayLike, labels: Sequence[Any] | np.ndarray | None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Score and outcome of each class in turn."""
    F = read_proba(proba)[0]
    columns, P = read_outcomes(target, F.shape[1], labels)
    if P is None:
        P = one_hot(columns, F.shape[1])
    check_consistent_length(F, P)
    return [(F[:, k], P[:, k]) for k in range(F.shape[1])]


def calibration_error(
    target: npt.ArrayLike,
    proba: npt.ArrayLike,
    *,
    n_bins: int = 15,
    strategy: str = "uniform",
    norm: str = "l1",
    classwise: bool = False,
    debias: bool = False,
    closed: str = "left",
    sample_weight: npt.ArrayLike | None = None,
    merge_ties: bool = False,
    labels: Sequence[Any] | np.ndarray | None = None,
) -> float:
    """Binned calibration error against hard labels or against vote shares.

    Parameters
    ----------
    target : array-like of shape (n_samples,) or (n_samples, n_classes)
        Hard labels, or soft labels or votes; with soft ones the correctness of a prediction is the
        share of annotators who agree with it.
    proba : array-like of shape (n_samples, n_classes)
        Model probabilities.
    n_bins : int, default=15
        Number of bins; "sweep" chooses its own.
    strategy : {"uniform", "quantile", "sweep"}, default="uniform"
        Bins of equal width, of equal numbers of items (with `classwise`: the adaptive calibration
        error), or as many equal-mass bins as keep the bins' accuracy non-decreasing.
    norm : {"l1", "l2", "max"}, default="l1"
        ECE, root mean squared calibration error, or the largest gap.
    classwise : bool, default=False
        Mean of the errors of the K columns, instead of the error of the top label.
    debias : bool, default=False
        Take the sampling variance off each squared gap; bins of one item are left out; a negative
        sum becomes 0. For ``norm="l2"``, without `sample_weight`.
    closed : {"left", "right"}, default="left"
        Which end belongs to a bin of equal width. 1 is in the last bin, 0 in the first.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the items in the means; bins of equal mass count items.
    merge_ties : bool, default=False
        For "quantile": move a boundary to the end of a run of equal scores.
    labels : sequence of shape (n_classes,), optional
        The label of each column of `proba`, for hard targets that aren't 0 .. n_classes - 1.

    Returns
    -------
    float
        In [0, 1]; NaN where `debias` finds no bin with two items.

    References
    ----------
    .. [1] M. P. Naeini, G. F. Cooper, M. Hauskrecht, "Obtaining well calibrated probabilities using
           Bayesian binning", AAAI 2015.
    .. [2] J. Nixon et al., "Measuring calibration in deep learning", CVPR workshops 2019.
    .. [3] A. Kumar, P. Liang, T. Ma, "Verified uncertainty calibration", NeurIPS 2019.
    .. [4] J. Baan et al., "Stop measuring calibration when humans disagree", EMNLP 2022.

    Examples
    --------
    >>> from equipoise.explainers import calibration_error
    >>> proba = [[0.8, 0.2], [0.6, 0.4], [0.3, 0.7]]
    >>> round(calibration_error([0, 1, 1], proba, n_bins=5), 6)
    0.166667
    >>> round(calibration_error([[9, 1], [6, 4], [4, 6]], proba, n_bins=5), 6)
    0.066667
    """
    check_options(n_bins, strategy, closed, norm, debias)
    if debias and sample_weight is not None:
        raise ValueError("debias=True needs items of equal weight; got sample_weight")
    pairs = each_class(target, proba, labels) if classwise else [top_label(target, proba, labels)]
    weight = read_weight(sample_weight, len(pairs[0][0]))
    errors = [
        binned_error(
            scores,
            a,
            weight,
            assign_bins(scores, a, n_bins, strategy, closed, merge_ties),
            norm,
            debias,
        )
        for scores, a in pairs
    ]
    return float(np.mean(errors))


def reliability_curve(
    target: npt.ArrayLike,
    proba: npt.ArrayLike,
    *,
    n_bins: int = 15,
    strategy: str = "uniform",
    closed: str = "left",
    sample_weight: npt.ArrayLike | None = None,
    merge_ties: bool = False,
    labels: Sequence[Any] | np.ndarray | None = None,
) -> pd.DataFrame:
    """Mean confidence against mean correctness of the predicted class, bin by bin.

    Parameters
    ----------
    target, proba, n_bins, strategy, closed, sample_weight, merge_ties, labels
        As for `calibration_error`.

    Returns
    -------
    pandas.DataFrame
        One row a non-empty bin: ``bin``, ``count`` (items), ``weight`` (their share of the total
        weight), ``confidence``, ``accuracy`` and ``gap`` (confidence minus accuracy).

    Examples
    --------
    >>> from equipoise.explainers import reliability_curve
    >>> curve = reliability_curve([0, 1, 1], [[0.8, 0.2], [0.6, 0.4], [0.3, 0.7]], n_bins=5)
    >>> curve[["bin", "count"]].values.tolist()
    [[3, 2], [4, 1]]
    """
    check_options(n_bins, strategy, closed)
    conf, a = top_label(target, proba, labels)
    weight = read_weight(sample_weight, len(conf))
    bins = assign_bins(conf, a, n_bins, strategy, closed, merge_ties)
    mass, conf_sum, hit = bin_sums(bins, weight, weight * conf, weight * a)
    count = np.bincount(bins)
    full = np.flatnonzero(mass > 0)
    confidence, accuracy = conf_sum[full] / mass[full], hit[full] / mass[full]
    return pd.DataFrame(
        {
            "bin": full,
            "count": count[full],
            "weight": mass[full] / mass.sum(),
            "confidence": confidence,
            "accuracy": accuracy,
            "gap": confidence - accuracy,
        }
    )
