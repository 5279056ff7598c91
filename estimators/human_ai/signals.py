r"""From reported evidence to calibrated log-odds, and from these to capabilities and overlap.

beta and tau are weights on CALIBRATED log-odds: a column that is off by a factor c biases them by
c. With the truth known, each column is put through a logistic regression of the truth on it, and
the prior log-odds are taken off. A column of mere sides (one absolute value) becomes
+-logit(p), p the accuracy of the side. Capabilities are Phi^{-1} of the accuracy of the signs,
averaged over both classes, so that an uneven prior doesn't count; the overlap is the correlation of
the two columns within classes, or with mere sides the tetrachoric correlation of being right.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri

from ...games.human_ai import bvn_cdf

__all__ = ["Capabilities", "Column", "capability_sums", "fit_column", "solve_capabilities"]

Array = NDArray[np.float64]

#: Rows that are worked on at a time.
ROWS = 2**14


@dataclass(frozen=True)
class Column:
    """How a reported column becomes log-odds: sign * odds, or offset + slope * value, clipped."""

    sides_only: bool
    odds: float  # of the side, where only sides are reported
    offset: float
    slope: float
    limit: float
    clipped_share: float

    def transform(self, values: Array) -> Array:
        """Log-odds toward the second class, without the prior."""
        if self.sides_only:
            return np.sign(values) * self.odds
        return np.clip(self.offset + self.slope * values, -self.limit, self.limit)


@dataclass(frozen=True)
class Capabilities:
    """h, and a and rho of each AI system; leading axes are draws."""

    human: Array
    ai: Array
    overlap: Array


def one_variable_logit(x: Array, truth: Array, w: Array) -> tuple[float, float]:
    """Intercept and slope of a logistic regression of truth > 0 on x, in blocks of rows."""
    coef = np.zeros(2)
    for _ in range(50):
        hessian, gradient = np.zeros((2, 2)), np.zeros(2)
        for start in range(0, len(x), ROWS):
            rows = slice(start, start + ROWS)
            X = np.column_stack([np.ones_like(x[rows]), x[rows]])
            p = expit(X @ coef)
            hessian += (X * (w[rows] * p * (1 - p))[:, None]).T @ X
            gradient += X.T @ (w[rows] * ((truth[rows] > 0) - p))
        step = np.linalg.solve(hessian + 1e-9 * np.trace(hessian) * np.eye(2), gradient)
        coef += step * min(1.0, 5.0 / max(float(np.abs(step).max()), 1e-12))
        if np.abs(step).max() < 1e-10 or np.abs(coef).max() > 60:
            break
    return float(coef[0]), float(coef[1])


def balanced_accuracy(values: Array, truth: Array, w: Array) -> float:
    """Accuracy of the sign, averaged over both classes; a zero is half right."""
    right, weight = np.zeros(2), np.zeros(2)
    for start in range(0, len(values), ROWS):
        rows = slice(start, start + ROWS)
        side = (truth[rows] > 0).astype(np.intp)
        value = w[rows] * (np.sign(values[rows]) * truth[rows] + 1) / 2
        right += np.bincount(side, value, minlength=2)
        weight += np.bincount(side, w[rows], minlength=2)
    return float((right[weight > 0] / weight[weight > 0]).mean())


def fit_column(
    values: Array, truth: Array | None, w: Array, name: str, calibrate: bool, sides: bool
) -> Column:
    """Learn how a column becomes log-odds; `truth` is +1 or -1, None where it isn't known.

    `sides` says that the column holds binary advice, whatever its values.
    """
    limit = float(np.log(2 * w.sum() - 1)) if w.sum() > 1 else 1.0  # logit(1 - 1 / 2N)
    sides_only = sides or np.ptp(np.abs(values)) == 0
    if sides_only:
        odds = 1.0
        if truth is not None:
            accuracy = balanced_accuracy(values, truth, w)
            odds = float(np.clip(logit(np.clip(accuracy, 1e-300, 1 - 1e-16)), -limit, limit))
            if odds < 0:
                warn_flipped(name, accuracy)
        return Column(True, odds, 0.0, 1.0, np.inf, 0.0)
    if truth is None or not calibrate:
        return Column(False, 1.0, 0.0, 1.0, np.inf, 0.0)
    prior = logit(np.average(truth > 0, weights=w))
    offset, slope = one_variable_logit(values, truth, w)
    if slope < 0:
        warn_flipped(name, balanced_accuracy(values, truth, w))
    offset -= float(prior)
    reported = offset + slope * values
    share = float(w[np.abs(reported, out=reported) > limit].sum() / w.sum())
    return Column(False, 1.0, offset, slope, limit, share)


def warn_flipped(name: str, accuracy: float) -> None:
    """A side below chance is more often a coding error than a fact."""
    warnings.warn(
        f"{name}: right in only {accuracy:.3f} of the trials, averaged over classes; are its "
        "log-odds coded toward the second class?",
        UserWarning,
        stacklevel=4,
    )


def capability_sums(
    human: Array,
    ai: Array,
    columns: tuple[Column, Column],
    truth: Array,
    w: Array,
    systems: NDArray[np.intp] | None = None,
    clusters: NDArray[np.intp] | None = None,
) -> Array:
    """Weighted sums by cluster, AI system and class that capabilities and overlap follow from.

    Parameters
    ----------
    human, ai : ndarray of shape (n,)
        Reported evidence.
    columns : tuple of Column
        How both become log-odds.
    truth, w : ndarray of shape (n,)
        The truth, +1 or -1, and weights.
    systems, clusters : ndarray of shape (n,), optional
        Codes; None is one for all.

    Returns
    -------
    ndarray of shape (n_clusters, n_systems, 2, 9)
        Weight; human right; AI right; both right; l_H; l_A; l_H^2; l_A^2; l_H l_A.
    """
    n_systems, n_clusters = (1 if c is None else int(c.max()) + 1 for c in (systems, clusters))
    sums = np.zeros((n_clusters * n_systems * 2, 9))
    for start in range(0, len(w), ROWS):
        rows = slice(start, start + ROWS)
        H, A = columns[0].transform(human[rows]), columns[1].transform(ai[rows])
        Y, W, one = truth[rows], w[rows], np.ones(len(H))
        cell = (Y > 0).astype(np.intp)
        if systems is not None:
            cell += 2 * systems[rows]
        if clusters is not None:
            cell += 2 * n_systems * clusters[rows]
        right, ai_right = (np.sign(H) * Y + 1) / 2, (np.sign(A) * Y + 1) / 2
        values = (one, right, ai_right, right * ai_right, H, A, H * H, A * A, H * A)
        for j, value in enumerate(values):
            sums[:, j] += np.bincount(cell, W * value, minlength=len(sums))
    return sums.reshape(n_clusters, n_systems, 2, 9)


def tetrachoric(h: Array, a: Array, both: Array) -> Array:
    """The correlation at which P(both right) = Phi2(h, a; rho)."""
    h, a, both = np.broadcast_arrays(h, a, both)
    low, high = np.full(both.shape, -0.999), np.full(both.shape, 0.999)
    for _ in range(45):
        middle = (low + high) / 2
        less = np.asarray(bvn_cdf(h, a, middle)) < both
        low, high = np.where(less, middle, low), np.where(less, high, middle)
    return (low + high) / 2


def solve_capabilities(sums: Array, continuous: bool) -> Capabilities:
    """Capabilities and overlap from sums of shape (..., n_systems, 2, 9); NaN below chance."""
    n = np.maximum(sums[..., 0].sum(axis=(-1, -2)), 1.0)[..., None]

    def capability(right: Array, weight: Array, count: Array) -> Array:
        share = np.mean(right / np.maximum(weight, 1e-300), axis=-1)
        z = ndtri(np.clip(share, 1 / (2 * count), 1 - 1 / (2 * count)))
        return np.where(z >= 0, z, np.nan)

    total = sums.sum(axis=-3)  # over systems
    h = capability(total[..., 1], total[..., 0], n[..., 0])[..., None]
    a = capability(sums[..., 2], sums[..., 0], np.maximum(sums[..., 0].sum(axis=-1), 1.0))
    W = np.maximum(sums[..., 0], 1e-300)
    if continuous:
        mean_h, mean_a = sums[..., 4] / W, sums[..., 5] / W
        cov = (sums[..., 8] - W * mean_h * mean_a).sum(axis=-1)
        var_h = (sums[..., 6] - W * mean_h**2).sum(axis=-1)
        var_a = (sums[..., 7] - W * mean_a**2).sum(axis=-1)
        with np.errstate(invalid="ignore", divide="ignore"):
            rho = np.clip(cov / np.sqrt(var_h * var_a), -0.999, 0.999)
    else:
        both = np.mean(sums[..., 3] / W, axis=-1)
        usable = np.isfinite(h + a)
        rho = tetrachoric(np.where(usable, h, 0.5), np.where(usable, a, 0.5), both)
        rho = np.where(usable, rho, np.nan)
    return Capabilities(h[..., 0], a, rho)
