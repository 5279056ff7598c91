"""Intervals and p-values that several systems share: cluster bootstrap, Holm, single-step max-T.

The bootstrap resamples whole clusters, because rows of one cluster (one seed, one prompt, one
person) aren't independent. Holm holds the family-wise error under any dependence; max-T does so
with the dependence that a permutation null shows, and rejects more where statistics move together.
"""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import DegenerateDataWarning, bootstrap
from sklearn import get_config
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions, validate_params

__all__ = ["BootstrapEstimate", "cluster_bootstrap", "holm", "max_t_pvalues"]


@dataclass(frozen=True, eq=False)
class BootstrapEstimate:
    """A statistic with its bootstrap interval: what `cluster_bootstrap` returns.

    Parameters
    ----------
    estimate : float or ndarray of shape S
        The statistic of the data as they are.
    low, high : float or ndarray of shape S
        Ends of the confidence interval.
    standard_error : float or ndarray of shape S
        Standard deviation of the resamples (``ddof=1``).
    resamples : ndarray of shape (n_resamples, ...)
        The statistic of each resample, of shape S.

    Examples
    --------
    >>> from equipoise.inference import cluster_bootstrap
    >>> answer = cluster_bootstrap(lambda x: x.mean(), [1.0, 2.0, 3.0, 4.0], random_state=0)
    >>> print(answer.estimate)
    2.5
    >>> bool(answer.low < answer.estimate < answer.high)
    True
    """

    estimate: Any
    low: Any
    high: Any
    standard_error: Any
    resamples: NDArray[np.float64]


def group_rows(groups: ArrayLike) -> tuple[NDArray, NDArray, NDArray]:
    """Sort rows by group: the row numbers, and where each group starts and how long it is."""
    labels = np.asarray(groups)
    if (missing := pd.isna(labels)).any():
        raise ValueError(f"groups: missing in row {missing.argmax()}; each row needs a group")
    _, codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    return np.argsort(codes, kind="stable"), np.cumsum(sizes) - sizes, sizes


def rows_of(chosen: NDArray, order: NDArray, starts: NDArray, sizes: NDArray) -> NDArray:
    """Row numbers of the chosen groups, ascending.

    Ascending, so that choosing each group once gives the data as they are: BCa counts resamples
    that equal the estimate, and another order of summation would break such ties at random.
    """
    lengths = sizes[chosen]
    ends = np.cumsum(lengths)
    return np.sort(order[np.arange(ends[-1]) + np.repeat(starts[chosen] - ends + lengths, lengths)])


@validate_params(
    {
        "statistic": [callable],
        "n_resamples": [Interval(Integral, 2, None, closed="left")],
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "method": [StrOptions({"percentile", "bca"})],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def cluster_bootstrap(
    statistic: Callable[..., Any],
    *arrays: ArrayLike,
    groups: ArrayLike | None = None,
    n_resamples: int = 2000,
    confidence_level: float = 0.95,
    method: str = "percentile",
    random_state: int | np.random.RandomState | None = None,
) -> BootstrapEstimate:
    """Bootstrap a statistic by resampling whole clusters with replacement.

    Resampling, interval and jackknife are `scipy.stats.bootstrap`'s, run over clusters.

    Parameters
    ----------
    statistic : callable
        ``statistic(*arrays)`` returns a number or an array of fixed shape S.
    *arrays : array-like of shape (n_samples, ...)
        Resampled together along the first axis.
    groups : array-like of shape (n_samples,), optional
        The cluster of each row; None makes each row its own cluster.
    n_resamples : int, default=2000
        Number of resamples.
    confidence_level : float, default=0.95
        Coverage of the interval, two-sided.
    method : {"percentile", "bca"}, default="percentile"
        "bca" corrects for bias and skewness, with a jackknife that leaves one cluster out.
    random_state : int, RandomState or None, default=None
        Seed of the resampling.

    Returns
    -------
    BootstrapEstimate
        Estimate, ends of the interval, standard error and resamples.

    Raises
    ------
    ValueError
        If there are fewer than two clusters, the statistic isn't finite for the data or for some
        resample, or the BCa interval doesn't exist (leaving out any one cluster changes nothing).

    Notes
    -----
    A statistic that is the same in every resample gets an interval of zero width.

    References
    ----------
    .. [1] B. Efron and R. J. Tibshirani (1993). An Introduction to the Bootstrap, chapter 14.
    .. [2] C. A. Field and A. H. Welsh (2007). "Bootstrapping clustered data". Journal of the Royal
       Statistical Society B 69(3), 369-390.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.inference import cluster_bootstrap
    >>> errors = np.array([0.1, 0.2, 0.9, 1.0, 0.4, 0.5])
    >>> person = ["ann", "ann", "bo", "bo", "cy", "cy"]
    >>> by_row = cluster_bootstrap(np.mean, errors, random_state=0)
    >>> by_person = cluster_bootstrap(np.mean, errors, groups=person, random_state=0)
    >>> bool(by_person.standard_error > by_row.standard_error)
    True
    """
    data = [np.asarray(array) for array in arrays]
    if not data:
        raise ValueError("arrays: got none; give at least one array to resample")
    check_consistent_length(*data, groups)
    n_rows = len(data[0])
    order, starts, sizes = group_rows(np.arange(n_rows) if groups is None else groups)
    n_clusters = len(sizes)
    if n_clusters < 2:
        name = "n_samples" if groups is None else "groups"
        raise ValueError(f"{name}: got {n_clusters} cluster(s); at least 2 are needed to resample")

    estimate = np.asarray(statistic(*data), dtype=float)
    if not np.isfinite(estimate).all():
        raise ValueError(f"statistic: got {estimate} for the data; it must be finite")

    def over_clusters(chosen: NDArray, axis: int) -> NDArray:
        """The statistic for each row of chosen clusters, along a new last axis."""
        if chosen.ndim == 1:
            rows = rows_of(chosen, order, starts, sizes)
            return np.asarray(statistic(*(array[rows] for array in data)), dtype=float)
        return np.stack([over_clusters(row, axis) for row in chosen], axis=-1)

    memory = get_config()["working_memory"] * 2**20
    # DegenerateDataWarning: the cases it is about are told apart below.
    with catch_warnings(), np.errstate(invalid="ignore", divide="ignore"):
        simplefilter("ignore", DegenerateDataWarning)
        found = bootstrap(
            (np.arange(n_clusters),),
            over_clusters,
            vectorized=True,
            n_resamples=n_resamples,
            batch=max(1, int(memory // (16 * n_clusters))),
            confidence_level=confidence_level,
            method=method,
            rng=np.random.default_rng(check_random_state(random_state).randint(2**31 - 1)),
        )
    resamples = np.moveaxis(found.bootstrap_distribution, -1, 0)
    bad = ~np.isfinite(resamples.reshape(n_resamples, -1)).all(axis=1)
    if bad.any():
        raise ValueError(
            f"statistic: not finite for {bad.sum()} of {n_resamples} resamples; "
            "it must be finite for every sample of clusters"
        )
    constant = (resamples == estimate).all(axis=0)
    low, high = (np.where(constant, estimate, end) for end in found.confidence_interval)
    if not (np.isfinite(low) & np.isfinite(high)).all():
        raise ValueError(
            "method='bca': the interval doesn't exist for this statistic and these data "
            "(leaving out any one cluster changes nothing, or no resample lies on one side of "
            "the estimate); "
            "allowed here: 'percentile'"
        )
    error = np.where(constant, 0.0, found.standard_error)
    return BootstrapEstimate(estimate[()], low[()], high[()], error[()], resamples)


def holm(pvalues: ArrayLike) -> NDArray[np.float64]:
    """Adjust p-values for the family-wise error by Holm's step-down method.

    Parameters
    ----------
    pvalues : array-like
        P-values of one family of tests, of any shape. NaN (a test that wasn't possible) stays NaN
        and doesn't count.

    Returns
    -------
    ndarray
        Adjusted p-values in the shape of `pvalues`: reject where they are at most the level.

    Raises
    ------
    ValueError
        If a value lies outside [0, 1].

    References
    ----------
    .. [1] S. Holm (1979). "A simple sequentially rejective multiple test procedure". Scandinavian
       Journal of Statistics 6(2), 65-70.

    Examples
    --------
    >>> from equipoise.inference import holm
    >>> holm([0.01, 0.04, 0.03, float("nan")])
    array([0.03, 0.06, 0.06,  nan])
    """
    p = np.asarray(pvalues, dtype=float)
    if (outside := p[(p < 0) | (p > 1)]).size:
        raise ValueError(f"pvalues: got {outside[0]}; allowed: [0, 1], and NaN for no test")
    adjusted = np.full(p.shape, np.nan)
    tested = ~np.isnan(p)
    family = p[tested]
    order = np.argsort(family)
    stepped = np.maximum.accumulate(family[order] * np.arange(family.size, 0, -1))
    family[order] = np.minimum(stepped, 1.0)
    adjusted[tested] = family
    return adjusted


def max_t_pvalues(
    observed: ArrayLike, null: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute one-sided permutation p-values, raw and adjusted by single-step max-T.

    With n permutations, the raw p-value of statistic j is (1 + #{null_j >= observed_j}) / (1 + n).
    The adjusted one compares with the largest standardised statistic of each permutation; mean and
    standard deviation are those of the n + 1 values, the observed one included, so that all of
    them are exchangeable under the null.

    Parameters
    ----------
    observed : array-like of shape (k,)
        The statistics; large values speak against the null. For two-sided tests hand in absolute
        values, here and in `null`.
    null : array-like of shape (n_permutations, k)
        The same statistics under permutations of the data, each row from one permutation.

    Returns
    -------
    raw : ndarray of shape (k,)
        P-value of each statistic alone.
    adjusted : ndarray of shape (k,)
        P-values adjusted for all k; never smaller than `raw`.

    Raises
    ------
    ValueError
        If shapes disagree or a value isn't finite.

    Notes
    -----
    Values that differ by rounding only (relative 100 machine epsilons of the column's largest
    value) count as equal, as in `scipy.stats.permutation_test`.

    References
    ----------
    .. [1] P. H. Westfall and S. S. Young (1993). Resampling-Based Multiple Testing. Wiley.
    .. [2] B. Phipson and G. K. Smyth (2010). "Permutation p-values should never be zero".
       Statistical Applications in Genetics and Molecular Biology 9(1), article 39.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.inference import max_t_pvalues
    >>> null = np.random.default_rng(0).normal(size=(99, 2))
    >>> raw, adjusted = max_t_pvalues([4.0, 0.0], null)
    >>> print(raw[0], adjusted[0])
    0.01 0.01
    >>> bool((adjusted >= raw).all())
    True
    """
    t = np.asarray(observed, dtype=float)  # (k,)
    T = np.asarray(null, dtype=float)  # (n_permutations, k)
    if t.ndim != 1 or T.ndim != 2 or T.shape[1] != len(t) or 0 in T.shape:
        raise ValueError(
            f"null: got shape {T.shape} with observed of shape {t.shape}; "
            "allowed: (n_permutations, k) with (k,), neither of them empty"
        )
    for name, values in (("observed", t), ("null", T)):
        if not np.isfinite(values).all():
            raise ValueError(f"{name}: got NaN or infinity; allowed: finite values")
    everything = np.vstack([t, T])
    rounding = 100 * np.finfo(float).eps * np.abs(everything).max(axis=0)
    center, spread = everything.mean(axis=0), everything.std(axis=0)
    spread[spread <= rounding] = 1.0  # no spread: every value ties with the observed one
    threshold = t - rounding
    largest = ((T - center) / spread).max(axis=1)  # (n_permutations,)
    exceeds = largest[:, None] >= (threshold - center) / spread
    count = 1 + len(T)
    return (1 + (threshold <= T).sum(axis=0)) / count, (1 + exceeds.sum(axis=0)) / count
