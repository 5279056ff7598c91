"""Calibration errors against hard labels or against the annotators' vote shares.

The score of item i is conf_i = max_k f_ik with prediction argmax. Its correctness a_i is
1[prediction = label] for hard labels and p_{i, prediction}, the expected correctness under the
annotators, for soft ones. With bins b of n_b items,

    ECE = sum_b (n_b / n) |mean conf - mean a|,   RMSCE = sqrt(sum_b (n_b / n) gap_b^2),

MCE is the largest gap. Kumar et al. (2019) debias the squared error by the sampling variance of
each bin's mean a. Stephenson et al. (2008) split the Brier score of a score f and an outcome a
exactly: BS = reliability - resolution + uncertainty + within-bin variance - covariance.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from numba import njit
from sklearn.utils.validation import check_array, check_consistent_length

from .targets import check_classes, columns_of, is_matrix, one_hot, soft_targets

__all__ = ["brier_decomposition", "calibration_error", "reliability_curve"]

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


def uniform_bins(scores: np.ndarray, n_bins: int, closed: str) -> np.ndarray:
    """Bin of each score: [lo, hi) with 1 in the last, or (lo, hi] with 0 in the first."""
    if closed == "left":
        return np.minimum((scores * n_bins).astype(np.int64), n_bins - 1)
    return np.maximum(np.ceil(scores * n_bins).astype(np.int64) - 1, 0)


def split_sizes(n: int, n_bins: int) -> np.ndarray:
    """Where numpy.array_split ends each of n_bins parts of n items."""
    small, larger = divmod(n, n_bins)
    return np.cumsum(np.where(np.arange(n_bins) < larger, small + 1, small))


def quantile_bins(scores: np.ndarray, n_bins: int, merge_ties: bool) -> np.ndarray:
    """Bin of each score, of equal numbers of items in a stable order of the scores."""
    order = np.argsort(scores, kind="stable")
    ends = split_sizes(len(scores), n_bins)
    if merge_ties:
        # A boundary inside a run of equal scores moves to the end of the run.
        ranked = scores[order]
        inside = (ends > 0) & (ends < len(ranked))
        ends[inside] = np.searchsorted(ranked, ranked[ends[inside] - 1], side="right")
    bins = np.empty(len(scores), dtype=np.int64)
    bins[order] = np.searchsorted(ends, np.arange(len(scores)), side="right")
    return bins


def sweep_bins(scores: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Equal-mass bins, as many as keep the bins' mean a non-decreasing (Roelofs et al. 2022)."""
    order = np.argsort(scores, kind="stable")
    ranked = a[order]
    n = len(ranked)
    if (np.diff(ranked) >= 0).all():
        return quantile_bins(scores, n, merge_ties=False)
    total = np.concatenate([[0.0], np.cumsum(ranked)])
    best = 1
    for n_bins in range(2, n + 1):
        ends = split_sizes(n, n_bins)
        starts = np.concatenate([[0], ends[:-1]])
        means = (total[ends] - total[starts]) / (ends - starts)
        if (np.diff(means) < -1e-12).any():
            break
        best = n_bins
    return quantile_bins(scores, best, merge_ties=False)


def assign_bins(
    scores: np.ndarray, a: np.ndarray, n_bins: int, strategy: str, closed: str, merge_ties: bool
) -> np.ndarray:
    if strategy == "uniform":
        return uniform_bins(scores, n_bins, closed)
    if strategy == "quantile":
        return quantile_bins(scores, n_bins, merge_ties)
    return sweep_bins(scores, a)


def bin_sums(bins: np.ndarray, *columns: np.ndarray) -> tuple[np.ndarray, ...]:
    """Sum of each column over each bin."""
    n_bins = int(bins.max()) + 1
    return tuple(np.bincount(bins, column, n_bins) for column in columns)


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
