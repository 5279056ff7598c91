"""Metrics of the audit as sums over items, so that a bootstrap is a matrix product.

A metric has statistics s_i in R^d of each item and a function of their weighted sums: a mean has
d = 1, the binned calibration error has d = bins with s_ib = (conf_i - a_i) 1[i in bin b], a
correlation has the five moments of two variables. B resamples with weights W (B, n) then cost one
product W S. Targets are distributions; hard labels are unit rows.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy
from scipy.stats import rankdata

from .alignment import CLIP
from .bins import uniform_bins
from .rankings import same_ranking
from .targets import entropy

__all__ = ["AuditMetric", "choose_metrics"]

N_BINS = 15


class Predictions(NamedTuple):
    """A model's probabilities beside the targets that they are held against."""

    F: np.ndarray  # (n, K)
    target: np.ndarray  # (n, K) rows sum to one
    counts: np.ndarray | None  # (n, K) votes, for the soft reference


class AuditMetric(NamedTuple):
    """Statistics of each item, and what their sums mean."""

    statistics: Callable[[Predictions], np.ndarray]  # (n, d)
    finish: Callable[[np.ndarray, np.ndarray], np.ndarray]  # sums (..., d), weights (...) -> (...)


def mean_of(sums: np.ndarray, total: np.ndarray) -> np.ndarray:
    return sums[..., 0] / total


def mean_metric(values: Callable[[Predictions], np.ndarray]) -> AuditMetric:
    return AuditMetric(lambda p: values(p)[:, None], mean_of)


def accuracy(p: Predictions) -> np.ndarray:
    return p.target[np.arange(len(p.F)), p.F.argmax(axis=1)]


def cross_entropy(p: Predictions) -> np.ndarray:
    return -xlogy(p.target, np.maximum(p.F, CLIP)).sum(axis=1)


def kl(p: Predictions) -> np.ndarray:
    return cross_entropy(p) - entropy(p.target)


def brier(p: Predictions) -> np.ndarray:
    return ((p.F - p.target) ** 2).sum(axis=1)


def brier_debiased(p: Predictions) -> np.ndarray:
    if p.counts is None:
        return np.full(len(p.F), np.nan)
    n = p.counts.sum(axis=1).astype(float)
    n[n < 2] = np.nan
    return brier(p) - (1 - (p.target**2).sum(axis=1)) / (n - 1)


def total_variation(p: Predictions) -> np.ndarray:
    return np.abs(p.F - p.target).sum(axis=1) / 2


def entropy_error(p: Predictions) -> np.ndarray:
    return entropy(p.F) - entropy(p.target)


def entropy_error_absolute(p: Predictions) -> np.ndarray:
    return np.abs(entropy_error(p))


def ranking(p: Predictions) -> np.ndarray:
    return same_ranking(p.target, p.F).astype(float)


def by_bin(scores: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Values placed in the column of their score's bin, (n, N_BINS)."""
    placed = np.zeros((len(scores), N_BINS))
    placed[np.arange(len(scores)), uniform_bins(scores, N_BINS, "left")] = values
    return placed


def ece_statistics(p: Predictions) -> np.ndarray:
    conf = p.F.max(axis=1)
    return by_bin(conf, conf - accuracy(p))


def absolute_sum(sums: np.ndarray, total: np.ndarray) -> np.ndarray:
    return np.abs(sums).sum(axis=-1) / total


def classwise_statistics(p: Predictions) -> np.ndarray:
    K = p.F.shape[1]
    return np.hstack([by_bin(p.F[:, k], p.F[:, k] - p.target[:, k]) for k in range(K)]) / K


def rmsce_statistics(p: Predictions) -> np.ndarray:
    conf, a = p.F.max(axis=1), accuracy(p)
    parts = (np.ones_like(conf), conf - a, a, a**2)
    return np.hstack([by_bin(conf, part) for part in parts])


def debiased_root(sums: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Kumar et al.'s debiased root mean squared calibration error; bins of one item left out."""
    n, gap, a, squares = np.split(sums, 4, axis=-1)
    many = n >= 2
    size = np.where(many, n, 2.0)
    variance = np.maximum(squares - a**2 / size, 0) / (size - 1)
    terms = np.where(many, size * ((gap / size) ** 2 - variance / size), 0)
    return np.sqrt(np.maximum(terms.sum(axis=-1) / total, 0))


def spearman_statistics(p: Predictions) -> np.ndarray:
    """Moments of the centred ranks of both entropies; ranks stay those of the whole set."""
    u, v = (rankdata(entropy(Q).round(12)) for Q in (p.F, p.target))
    u, v = (2 * ranks / len(ranks) - 1 for ranks in (u, v))
    return np.column_stack([u, v, u**2, v**2, u * v])


def pearson_of(sums: np.ndarray, total: np.ndarray) -> np.ndarray:
    u, v, uu, vv, uv = np.moveaxis(sums / total[..., None], -1, 0)
    spread = (uu - u**2) * (vv - v**2)
    # A constant entropy has no correlation; single precision leaves about 1e-7 of it.
    defined = spread > 1e-10
    return np.where(defined, (uv - u * v) / np.sqrt(np.where(defined, spread, 1)), np.nan)


COMMON: dict[str, AuditMetric] = {
    "accuracy": mean_metric(accuracy),
    "cross_entropy": mean_metric(cross_entropy),
    "ece": AuditMetric(ece_statistics, absolute_sum),
    "brier": mean_metric(brier),
}
SOFT_ONLY: dict[str, AuditMetric] = {
    "kl": mean_metric(kl),
    "brier_debiased": mean_metric(brier_debiased),
    "total_variation": mean_metric(total_variation),
    "entropy_error": mean_metric(entropy_error),
    "entropy_error_absolute": mean_metric(entropy_error_absolute),
    "entropy_spearman": AuditMetric(spearman_statistics, pearson_of),
    "ranking": mean_metric(ranking),
    "rmsce_debiased": AuditMetric(rmsce_statistics, debiased_root),
    "classwise_ece": AuditMetric(classwise_statistics, absolute_sum),
}
DEFAULT_METRICS = tuple(name for name in (*COMMON, *SOFT_ONLY) if name != "classwise_ece")

#: A user's metric: from (target, probabilities) to a number.
UserMetric = Callable[[np.ndarray, np.ndarray], float]


def choose_metrics(
    metrics: str | Sequence[str] | Mapping[str, Any],
) -> dict[str, AuditMetric | UserMetric]:
    """The metrics by name; built-in ones for names, and a user's functions."""
    if isinstance(metrics, str):
        if metrics != "default":
            raise ValueError(
                f"metrics={metrics!r} is not allowed; allowed: 'default', names, a mapping"
            )
        metrics = DEFAULT_METRICS
    wanted = dict(metrics) if isinstance(metrics, Mapping) else dict.fromkeys(metrics)
    built_in = {**COMMON, **SOFT_ONLY}
    chosen: dict[str, AuditMetric | UserMetric] = {}
    for name, given in wanted.items():
        if given is None and name not in built_in:
            raise ValueError(f"metric {name!r} is not known; allowed: {sorted(built_in)}")
        if given is not None and not callable(given):
            raise ValueError(f"metric {name!r} must be a function of (target, probabilities)")
        chosen[name] = built_in[name] if given is None else given
    return chosen
