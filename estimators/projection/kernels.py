"""Hot loops of the layers and of the cross-entropy, fused.

The same mathematics as `bilinear.multiplier`, which is its reference. Each row of the batch stays
in the first-level cache while Newton's method runs over all its units at once.
"""

import math

import numpy as np
from numba import njit

__all__ = ["cross_entropy_rows", "layer_multipliers"]

#: Newton steps at most: 8 suffice in float32, 10 in float64.
MAX_ITER = 40


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "arcp"})
def layer_multipliers(
    P: np.ndarray,
    d: np.ndarray,
    h2: np.ndarray,
    w2: np.ndarray,
    weight: np.ndarray,
    alpha: float,
    gamma: float,
    one_step: bool,
    mix: np.ndarray,
    grow_h: np.ndarray,
    grow_w: np.ndarray,
    spread_h: np.ndarray,
    spread_w: np.ndarray,
) -> None:
    """Multipliers of a linear layer for a batch, reduced as its displacements need them.

    Parameters
    ----------
    P, d : ndarray of shape (B, N)
        Products w.h and displacements p - z from above.
    h2, w2 : ndarray of shape (B,) and (N,)
        Squared norms.
    weight : ndarray of shape (B,)
        Weights of the samples in the consensus.
    alpha, gamma : float
        Weights of w and z in the distance.
    one_step : bool
        The first Newton step from 0 instead of the root.
    mix : ndarray of shape (B, N)
        Filled with u / (1 - u^2).
    grow_h, spread_h : ndarray of shape (B,)
        Added to: sums over the units of the factor of h, and of the length along (1, ..., 1).
    grow_w, spread_w : ndarray of shape (N,)
        Added to: weighted sums over the samples of the same for w.
    """
    B, N = P.shape
    kind = P.dtype.type
    root = kind(math.sqrt(alpha))
    kappa = kind(root / (gamma * gamma))
    tiny = kind(8 * np.finfo(P.dtype).eps)
    # Newton's method squares the error: after a relative step of sqrt(eps) it is rounding.
    tolerance = kind(math.sqrt(np.finfo(P.dtype).eps))
    one, two, quarter, most = kind(1), kind(2), kind(0.25), kind(0.75)
    far = kind(np.finfo(P.dtype).max)
    A, D, r, y = (
        np.empty(N, P.dtype),
        np.empty(N, P.dtype),
        np.empty(N, P.dtype),
        np.empty(N, P.dtype),
    )
    low, high = np.empty(N, P.dtype), np.empty(N, P.dtype)
    for b in range(B):
        omega, rows = weight[b], kind(0)
        if one_step:
            half = kind(0.5)
            for j in range(N):
                Q = (h2[b] + kind(alpha) * w2[j]) / root
                u = -d[b, j] / (Q + kappa)
                u = min(max(u, -half), half)
                scale = one / (one - u * u)
                mix[b, j] = u * scale
                rows += u * u * scale
                grow_w[j] += omega * u * u * scale
            grow_h[b] += rows
            continue
        lost = 0
        for j in range(N):
            Q = (h2[b] + kind(alpha) * w2[j]) / root
            p = P[b, j] if d[b, j] <= 0 else -P[b, j]
            a, c, size = quarter * (Q + two * p), quarter * (Q - two * p), abs(d[b, j])
            a = a if a > tiny * Q else kind(0)
            c = c if c > tiny * Q else kind(0)
            limit = most * c + kappa
            gone = a == 0 and size > 0 and size >= limit
            lost += 1 if gone else 0
            size = kind(0) if gone else size
            # Upper bounds of the root: one from each term alone, one from the limit without A.
            x = size / a if a > 0 else far
            top = x / (one + math.sqrt(one + x)) if a > 0 else far
            x = size / limit
            other = x / (one - x) if x < one else far
            top = min(top, other)
            x = size / kappa
            other = x / (one - x) if x < one else far
            top = min(top, other)
            A[j], D[j], r[j], y[j], low[j], high[j] = a, c, size, top, kind(0), top
        for _ in range(MAX_ITER):
            moving = kind(0)
            for j in range(N):
                v = one + y[j]
                w = one / (one + two * y[j])
                v1 = one / v
                f = (
                    A[j] * y[j] * (one + v)
                    + y[j] * (D[j] * (v + v + y[j]) * w * w + kappa * v1)
                    - r[j]
                )
                slope = two * v * (A[j] + D[j] * w * w * w) + kappa * v1 * v1
                lo = y[j] if f < 0 else low[j]
                hi = y[j] if f > 0 else high[j]
                new = y[j] - f / slope
                middle = (lo + hi) * kind(0.5)
                inside = (new >= lo) & (new <= hi)
                new = new if inside else middle
                step = abs(new - y[j]) - tolerance * y[j]
                moving += step if step > 0 else kind(0)
                low[j], high[j], y[j] = lo, hi, new
            if moving <= 0:
                break
        for j in range(N):
            v = one / (one + two * y[j])
            m = y[j] * (one + y[j]) * v
            mix[b, j] = m if d[b, j] <= 0 else -m
            rows += y[j] * y[j] * v
            grow_w[j] += omega * (y[j] * y[j] * v)
        if lost > 0:
            rows += degenerate(
                b, P, d, h2, w2, omega, alpha, root, kappa, tiny, mix, grow_w, spread_h, spread_w
            )
        grow_h[b] += rows


@njit(cache=True, nogil=True, error_model="numpy")
def degenerate(
    b: int,
    P: np.ndarray,
    d: np.ndarray,
    h2: np.ndarray,
    w2: np.ndarray,
    omega: float,
    alpha: float,
    root: float,
    kappa: float,
    tiny: float,
    mix: np.ndarray,
    grow_w: np.ndarray,
    spread_h: np.ndarray,
    spread_w: np.ndarray,
) -> float:
    """Add the units of row b without a root; return their share of the factor of h."""
    rows = 0.0
    for j in range(P.shape[1]):
        Q = (h2[b] + alpha * w2[j]) / root
        sign = 1.0 if d[b, j] <= 0 else -1.0
        a, c = 0.25 * (Q + 2 * sign * P[b, j]), 0.25 * (Q - 2 * sign * P[b, j])
        c = c if c > tiny * Q else 0.0
        if a > tiny * Q or d[b, j] == 0 or abs(d[b, j]) < 0.75 * c + kappa:
            continue
        squared = 0.25 * h2[b] + root * (sign * (P[b, j] - d[b, j]) - kappa)
        length = math.sqrt(max(squared, 0.0))
        mix[b, j] = 0
        if h2[b] > 0:
            rho = length / math.sqrt(h2[b])
            rows += rho - 0.5
            grow_w[j] -= omega * (rho + 0.5)
        else:
            spread_h[b] += length
            spread_w[j] += omega * sign * length / root
    return rows


@njit(cache=True, nogil=True, error_model="numpy")
def wright_omega(x: float) -> float:
    """The w > 0 with w + log w = x, by two steps of Fritsch, Shafer and Crowley."""
    if x < -1:
        w = math.exp(x)
        if w == 0:
            return 0.0
    elif x > 1:
        w = x - math.log(x)
    else:
        w = 0.56714329040978 + x * (0.36189625 + x * 0.0737)
    for _ in range(2):
        r = x - w - math.log(w)
        q = 2 * (1 + w) * (1 + w + 2 / 3 * r)
        w *= 1 + r / (1 + w) * (q - r) / (q - 2 * r)
    return w


@njit(cache=True, nogil=True, error_model="numpy")
def cross_entropy_rows(u: np.ndarray, y: np.ndarray, lam: float, moved: np.ndarray) -> None:
    """Fill `moved` (B, K) with u - prox(u) of the cross-entropy to labels (B,), in float64 inside.

    The same mathematics as `proximal.cross_entropy_displacement`, which is its reference.
    """
    B, K = u.shape
    shift = math.log(lam)
    for b in range(B):
        top = -np.inf
        for k in range(K):
            top = max(top, u[b, k] + (1 / lam if k == y[b] else 0.0))
        c = top - 1 / lam
        for _ in range(MAX_ITER):
            total, slope = 0.0, 0.0
            for k in range(K):
                w = wright_omega(u[b, k] + (1 / lam if k == y[b] else 0.0) - shift - c)
                total += w
                slope += w / (1 + w)
            step = (lam * total - 1) / (lam * slope)
            c += step
            if not abs(step) > 1e-14 * (1 + abs(c)):
                break
        others = 0.0
        for k in range(K):
            if k != y[b]:
                p = wright_omega(u[b, k] - shift - c)
                moved[b, k] = p
                others += p
        moved[b, y[b]] = -others
