r"""The best use of what human and AI know: optimal fusion, and the trust that reaches it.

The Bayes weights of x_H and x_A are proportional to h - rho a and a - rho h, and their sum is as
good as one signal of capability g = sqrt((h^2 + a^2 - 2 rho h a) / (1 - rho^2)). A worker who
neglects the overlap weighs them by h and tau a, which is the same ratio at
tau* = (1 - rho / r) / (1 - rho r).
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .accuracy import checked, single_accuracy

__all__ = ["optimal_accuracy", "optimal_trust"]

Array = NDArray[np.float64]


def fused_capability(h: Array, a: Array, rho: Array) -> Array:
    """sqrt((h^2 + a^2 - 2 rho h a) / (1 - rho^2)): the capability of the optimal fusion."""
    alone = (h == 0) | (a == 0) | (rho == 1)  # rho = 1 is h = a: both are one signal
    R = np.where(alone, 0.0, rho)
    # (h - a)^2 + 2 (1 - rho) h a doesn't cancel where rho is near one and h near a.
    fused = np.sqrt(((h - a) ** 2 + 2 * (1 - R) * h * a) / ((1 - R) * (1 + R)))
    return np.where(alone, np.maximum(h, a), fused)


def optimal_accuracy(
    h: ArrayLike,
    a: ArrayLike,
    overlap: ArrayLike,
    *,
    overlap_kind: str = "correlation",
    prior: ArrayLike = 0.5,
) -> float | Array:
    r"""Accuracy of the optimal fusion of the human's and the AI's log-odds.

    Parameters
    ----------
    h, a : array-like
        Capabilities of human and AI, at least 0.
    overlap : array-like
        As in `team_accuracy`.
    overlap_kind : {"correlation", "cue"}, default="correlation"
        What `overlap` means.
    prior : array-like, default=0.5
        P(y = +1), in (0, 1).

    Returns
    -------
    float or ndarray
        The accuracy of one side with capability
        :math:`g = \sqrt{(h^2 + a^2 - 2 \rho h a) / (1 - \rho^2)}`.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    Examples
    --------
    >>> from equipoise.games import optimal_accuracy
    >>> print(round(optimal_accuracy(0.5, 0.8, 0.3), 8))
    0.80098764
    """
    H, A, rho, _, _, l0 = checked(h, a, overlap, 1.0, 0.0, overlap_kind, prior)
    return single_accuracy(fused_capability(H, A, rho), l0)[()]


def optimal_trust(
    h: ArrayLike, a: ArrayLike, overlap: ArrayLike, overlap_kind: str = "correlation"
) -> float | Array:
    r"""The trust at which a worker who neglects the overlap decides best.

    Parameters
    ----------
    h, a : array-like
        Capabilities of human and AI, at least 0.
    overlap : array-like
        As in `team_accuracy`.
    overlap_kind : {"correlation", "cue"}, default="correlation"
        What `overlap` means.

    Returns
    -------
    float or ndarray
        :math:`\tau^* = (1 - \rho / r) / (1 - \rho r)` where :math:`\rho < \min(r, 1/r)`; there the
        team reaches the optimal fusion. Otherwise the best that trust can do: 0 (ignore the AI)
        for :math:`\rho \ge r`, infinity (follow it) for :math:`\rho \ge 1/r`.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    Examples
    --------
    >>> from equipoise.games import optimal_trust
    >>> optimal_trust([0.5, 0.9], [0.9, 0.5], 0.2).round(6)
    array([1.388889, 0.72    ])
    >>> optimal_trust(0.5, [0.1, 2.0], 0.4)
    array([ 0., inf])
    """
    H, A, rho, *_ = checked(h, a, overlap, 1.0, 0.0, overlap_kind, 0.5)
    # Weights of the fusion over those of neglect; both vanish for one and the same signal.
    numerator, denominator = (A - rho * H) * H, (H - rho * A) * A
    usual = np.maximum(numerator, 0.0) / np.where(denominator <= 0, 1.0, denominator)
    trust = np.where(denominator <= 0, np.inf, usual)
    return np.where((H == 0) | (A == 0) | (rho == 1), 1.0, trust)[()]
