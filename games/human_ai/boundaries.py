r"""Where impairment ends and automation begins, for an even prior.

With log-odds advice and neglect, squaring the argument of Phi against h or a and cancelling the
common positive factor leaves one cubic for each boundary:

    impairment   tau r^3 + (2 - tau) r < 2 rho,
    automation   s^3 + (2 tau - 1) s < 2 rho tau,   s = 1 / r,

so both ends of a region are roots of alpha t^3 + beta t = 2 gamma in (0, 1), by Cardano. With cues
(rho = o min(r, 1/r)) they are square roots. Binary advice isn't scale-free: its boundaries are the
sign changes of T - H and T - A in a, at given h.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from .accuracy import NOISE, correlation, team_and_margins
from .binary import binary_cells, thresholds
from .bivariate import lower_tail
from .checks import choice, within

__all__ = ["complementarity_threshold", "regime_boundaries"]

Array = NDArray[np.float64]

#: At a = 8 the AI errs once in 1e15: beyond, binary boundaries mean nothing.
LARGEST_A = 8.0


@njit(cache=True, nogil=True)
def cubic_roots(
    alpha: Array, beta: Array, gamma: Array
) -> tuple[Array, Array]:  # pragma: no cover - compiled
    """Smallest and largest t in (0, 1) where alpha t^3 + beta t - 2 gamma changes sign; 1-D arrays.

    alpha >= 0 and the polynomial isn't negative at t = 1, so it is negative just between the two:
    for gamma > 0 from 0 on; for gamma <= 0 only where beta < 0. Both are 0 where it never is.
    Closed form (hyperbolic or trigonometric, by the signs of beta and of the discriminant), then
    two Newton steps.
    """
    smallest, largest = np.zeros(alpha.size), np.zeros(alpha.size)
    for i in range(alpha.size):
        if alpha[i] == 0:
            if beta[i] != 0:
                largest[i] = min(max(2 * gamma[i] / beta[i], 0.0), 1.0)
            continue
        p, q = beta[i] / alpha[i], -2 * gamma[i] / alpha[i]  # t^3 + p t + q
        if q > 0 and p >= 0:
            continue
        low, high = 0.0, 0.0
        if abs(p) <= 1e-6 * np.cbrt(q) ** 2:
            # The ratio below would overflow; Newton's steps add what p changes.
            high = np.cbrt(-q)
        else:
            size = 2 * np.sqrt(abs(p) / 3)
            ratio = 1.5 * q / abs(p) * np.sqrt(3 / abs(p))
            if p > 0:
                high = size * np.sinh(np.arcsinh(-ratio) / 3)
            elif ratio <= -1:
                high = size * np.cosh(np.arccosh(-ratio) / 3)
            elif ratio < 1:
                angle = np.arccos(-ratio) / 3
                high = size * np.cos(angle)
                if q > 0:
                    low = size * np.cos(angle - 2 * np.pi / 3)
        if high <= 0:
            continue
        for _ in range(2):
            if 3 * high * high + p > 0:
                high -= (high * (high * high + p) + q) / (3 * high * high + p)
            if low > 0 and 3 * low * low + p < 0:
                low -= (low * (low * low + p) + q) / (3 * low * low + p)
        largest[i], smallest[i] = min(high, 1.0), low
    return smallest, largest


def correlation_boundaries(rho: Array, trust: Array) -> tuple[Array, Array, Array, Array]:
    """Ends of impairment and of automation in r, log-odds advice, correlation form."""
    tau = np.ascontiguousarray(trust.ravel())
    R = np.ascontiguousarray(rho.ravel())
    low, high = cubic_roots(tau, 2 - tau, np.where(tau == 0, 0.0, R))  # tau = 0: the team is H
    inner, outer = cubic_roots(np.ones_like(tau), 2 * tau - 1, R * tau)
    with np.errstate(divide="ignore", over="ignore"):
        # s = 1 / r turns the order round; s from 0 on is r up to infinity.
        ends = low, high, 1 / outer, np.where(outer > 0, 1 / inner, np.inf)
    return tuple(end.reshape(rho.shape) for end in ends)  # type: ignore[return-value]


def cue_boundaries(share: Array, trust: Array) -> tuple[Array, Array, Array, Array]:
    """The same for shared cues: both regions reach to the end of the r axis."""
    with np.errstate(divide="ignore"):
        inside = 1 - 2 * (1 - share) / trust
        outside = 1 - 2 * trust * (1 - share)
        r_i = np.sqrt(np.where((trust > 0) & (inside > 0), inside, 0.0))
        r_a = 1 / np.sqrt(np.where(outside > 0, outside, 0.0))
    zero, infinite = np.zeros_like(r_i), np.full_like(r_i, np.inf)
    return zero, r_i, r_a, infinite


#: 60-point Gauss-Legendre rule on [0, 1].
NODES, WEIGHTS = np.polynomial.legendre.leggauss(60)
NODES, WEIGHTS = (NODES + 1) / 2, WEIGHTS / 2


def binary_over_human(h: Array, a: Array, rho: Array, trust: Array) -> Array:
    """A number with the sign of T - H, also where that is tiny; one shape, h and a positive.

    T - H is the integral over x in [0, k] of
    phi(x + h) Phi((a - rho (x + h)) / s) - phi(x - h) Phi(-(a + rho (x - h)) / s):
    wrong first judgements that right advice turns, less right ones that wrong advice turns.
    """
    _, t_plus, _ = thresholds(h, a, trust, np.zeros(()))
    s = np.sqrt((1 - rho) * (1 + rho))
    x = np.minimum(-t_plus, h + 12.0)[..., None] * NODES
    H, A, R, S = (v[..., None] for v in (h, a, rho, s))
    gain = np.exp(-0.5 * (x + H) ** 2) * ndtr((A - R * (x + H)) / S)
    loss = np.exp(-0.5 * (x - H) ** 2) * ndtr(-(A + R * (x - H)) / S)
    return (gain - loss) @ WEIGHTS  # the mean over [0, k], so that k = 0 has the sign of its limit


def binary_over_ai(h: Array, a: Array, rho: Array, trust: Array) -> Array:
    """T - A with the right sign also where it is tiny; one shape, h and a positive.

    The chance of overriding wrong advice less that of overriding right advice.
    """
    _, wrong, right, _ = binary_cells(h, a, rho, trust)
    tiny = np.maximum(wrong, right) < 1e-9
    if tiny.any():
        _, t_plus, _ = thresholds(h, a, trust, np.zeros(()))
        H, A, R, K = (v[tiny] for v in (h, a, rho, -t_plus))
        wrong[tiny] = lower_tail(np.maximum(H - K, -30.0), -A, -R)
        right[tiny] = lower_tail(np.maximum(-H - K, -30.0), A, -R)
    return wrong - right


def negative_ends(
    margin: Callable[[Array], Array], grid: Array
) -> tuple[NDArray[np.bool_], Array, Array]:
    """Whether a margin is negative anywhere on a grid (points, cells), and the ends of where it is.

    The first and the last sign change are refined. A region that is open at an end of the grid
    gets 0 or infinity there.
    """
    negative = margin(grid) < 0
    last_row = len(grid) - 1
    first = negative.argmax(axis=0)
    last = last_row - negative[::-1].argmax(axis=0)
    rows = np.clip(np.array([first - 1, last]), 0, last_row - 1)
    low, high = (np.take_along_axis(grid, rows + k, axis=0) for k in (0, 1))  # (2, cells)
    f, g = margin(low), margin(high)
    nearest = np.where(np.abs(f) < np.abs(g), low, high)
    smallest = np.minimum(np.abs(f), np.abs(g))
    kept_low = np.full(f.shape, -1)
    for _ in range(16):  # Illinois: false position; an end kept twice gets half its weight
        with np.errstate(invalid="ignore", divide="ignore"):
            middle = high - g * (high - low) / (g - f)
        middle = np.where((middle > low) & (middle < high), middle, (low + high) / 2)
        value = margin(middle)
        nearest = np.where(np.abs(value) < smallest, middle, nearest)
        smallest = np.minimum(np.abs(value), smallest)
        same = (value < 0) == (f < 0)
        f = np.where(same, value, np.where(kept_low == 1, f / 2, f))
        g = np.where(same, np.where(kept_low == 0, g / 2, g), value)
        kept_low = np.where(same, 0, 1)
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    start = np.where(first == 0, 0.0, nearest[0])
    end = np.where(last == last_row, np.inf, nearest[1])
    return np.asarray(negative.any(axis=0)), start, end


def scanned_boundaries(
    h: Array, overlap: Array, trust: Array, belief: Array, recommendation: str, kind: str
) -> tuple[Array, Array, Array, Array]:
    """Ends of impairment and automation in a, where no closed form exists; flat arrays, h > 0."""
    if recommendation == "binary":
        steps = np.concatenate([np.geomspace(1e-3, 0.1, 10), np.linspace(0.1, LARGEST_A, 80)[1:]])
        grid, scale = np.repeat(steps[:, None], len(h), axis=1), np.ones(h.shape)
    else:
        # Scale-free: a small h keeps all accuracies away from one, where differences drown.
        unit = np.full(h.shape, 0.02)
        grid, scale, h = np.geomspace(1e-3, 100.0, 300)[:, None] * unit, h / unit, unit

    def margin(a: Array, side: int) -> Array:
        """T - H (side 0) or T - A (side 1) at capabilities a of shape (points, cells)."""
        H, share, T, B = (np.broadcast_to(v, a.shape) for v in (h, overlap, trust, belief))
        rho = correlation(H, a, share, kind)
        believed = correlation(H, a, B, kind, "overlap_belief")
        if recommendation == "binary" and not believed.any():
            over = binary_over_ai if side else binary_over_human
            return over(H, a, np.minimum(rho, 1 - 1e-12), T)
        found = team_and_margins(H, a, rho, T, believed, np.zeros(()), recommendation)[1 + side]
        return np.where(np.abs(found) < NOISE, 0.0, found)

    ends = []
    for side, nowhere in ((0, 0.0), (1, np.inf)):
        some, start, end = negative_ends(partial(margin, side=side), grid)
        if side == 0:
            some = some & (trust > 0)  # without trust the team is the human
        ends += [np.where(some, end, nowhere) * scale for end in (start, end)]
    return ends[0], ends[1], ends[2], ends[3]


def regime_boundaries(
    overlap: ArrayLike,
    trust: ArrayLike = 1.0,
    h: ArrayLike | None = None,
    *,
    recommendation: str = "probabilistic",
    overlap_kind: str = "correlation",
    overlap_belief: ArrayLike = 0.0,
    full: bool = False,
) -> tuple[Any, Any]:
    r"""Find where impairment ends and where automation begins, for an even prior.

    Parameters
    ----------
    overlap : array-like
        As in `team_accuracy`. Numeric arguments broadcast.
    trust : array-like, default=1.0
        Factor on the AI's log-odds, at least 0.
    h : array-like, optional
        Capability of the human, positive. Binary advice needs it; log-odds advice is scale-free.
    recommendation : {"probabilistic", "binary"}, default="probabilistic"
        What the AI shows.
    overlap_kind : {"correlation", "cue"}, default="correlation"
        What `overlap` and `overlap_belief` mean.
    overlap_belief : array-like, default=0.0
        The overlap the worker believes in.
    full : bool, default=False
        Return both ends of both regions.

    Returns
    -------
    impairment, automation : float, ndarray or pair of these
        The upper end of impairment (0 if there is none) and the lower end of automation (infinity
        if there is none), in r = a / h for log-odds advice and in a for binary advice. With
        `full`, each is a pair (lower end, upper end); an empty region has equal ends.

    Raises
    ------
    ValueError
        If an argument lies outside its range, or binary advice comes without `h`.

    Notes
    -----
    Log-odds advice with neglect has closed forms: the cubics of the module, and with cues
    :math:`r_I^2 = 1 - 2 (1 - o) / \tau`, :math:`r_A^{-2} = 1 - 2 \tau (1 - o)`. Otherwise the sign
    changes are bracketed on a grid and bisected: outer ends, up to r = 100 for log-odds
    advice and a = 8 for binary advice (where the AI errs once in :math:`10^{15}`); a region that
    begins beyond isn't found.

    Examples
    --------
    >>> from equipoise.games import regime_boundaries
    >>> impairment, automation = regime_boundaries(0.5)
    >>> print(round(impairment, 6), round(automation, 6))
    0.682328 1.465571
    >>> impairment, automation = regime_boundaries([0.3, 0.5], h=0.5, recommendation="binary")
    >>> print(impairment.round(6), automation.round(6))
    [0.267332 0.385273] [0.869283 0.708966]
    """
    choice(recommendation, "recommendation", ("probabilistic", "binary"))
    tau = within(trust, "trust", 0.0)
    one = np.ones(())
    shares = [
        correlation(one, one, value, overlap_kind, name)  # h = a: the correlation is the share
        for value, name in ((overlap, "overlap"), (overlap_belief, "overlap_belief"))
    ]
    if h is None and recommendation == "binary":
        raise ValueError("h: got None; allowed with recommendation='binary': positive numbers")
    scale = np.ones(()) if h is None else within(h, "h", 0.0, open_ends=True)
    o, belief, tau, scale = np.broadcast_arrays(*shares, tau, scale)
    if recommendation == "probabilistic" and not belief.any():
        closed = correlation_boundaries if overlap_kind == "correlation" else cue_boundaries
        found = closed(o, tau)
    else:
        flat = (scale.ravel(), o.ravel(), tau.ravel(), belief.ravel())
        found = scanned_boundaries(*flat, recommendation, overlap_kind)
        unit = 1.0 if recommendation == "binary" else scale.ravel()
        found = tuple((end / unit).reshape(o.shape) for end in found)  # type: ignore[assignment]
    i_low, i_high, a_low, a_high = (end[()] for end in found)
    return ((i_low, i_high), (a_low, a_high)) if full else (i_high, a_low)


def complementarity_threshold(r: ArrayLike, trust: ArrayLike = 1.0) -> float | Array:
    r"""The correlation below which a team beats both of its members.

    Parameters
    ----------
    r : array-like
        Relative capability a / h of the AI, at least 0.
    trust : array-like, default=1.0
        Factor on the AI's log-odds, at least 0.

    Returns
    -------
    float or ndarray
    :math:`\rho^* = \min\{r (2 - \tau + \tau r^2) / 2,\ (1 + (2 \tau - 1) r^2) / (2 \tau r^3)\}`
    for log-odds advice, an even prior and neglect. Values beyond 1 or -1 mean always and never;
    without trust the team is the human, and the value is minus infinity.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    Examples
    --------
    >>> from equipoise.games import complementarity_threshold
    >>> complementarity_threshold([0.5, 1.0, 2.5], [1.0, 7.0, 1.5])
    array([0.3125, 1.    , 0.288 ])
    """
    R, tau = np.broadcast_arrays(within(r, "r", 0.0), within(trust, "trust", 0.0))
    against_human = R * (2 - tau + tau * R**2) / 2
    size = 2 * tau * R**3
    against_ai = (1 + (2 * tau - 1) * R**2) / np.where(size > 0, size, 1.0)
    best = np.minimum(against_human, np.where(size > 0, against_ai, np.inf))
    return np.where(tau == 0, -np.inf, best)[()]
