"""The bilinear projection in the maximum norm.

min eps subject to |dh_k| <= eps, |dw_k| <= eps, |dz| <= eps / gamma^2 and (w + dw).(h + dh) = z +
dz. With s = sign(z - w.h), w~ = s w, a = |h + w~|, c = |h - w~| the largest gain of coordinate k is
M_k(eps) = max(a eps + eps^2, c eps - eps^2): h and w~ move together, or apart. eps is the root of
sum_k M_k(eps) + eps / gamma^2 = |z - w.h|.
"""

import numpy as np
import torch
from numba import njit

__all__ = ["layer_displacements_linf", "project_bilinear_linf"]

#: Newton steps at most; two or three are usual.
MAX_ITER = 100


def project_bilinear_linf(
    h: torch.Tensor, w: torch.Tensor, z: torch.Tensor, gamma: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Project tensors h, w (..., n) and z (...)."""
    gap = z - (h * w).sum(-1)
    s = torch.where(gap < 0, -1.0, 1.0).to(h.dtype)[..., None]
    v = s * w
    a, c = (h + v).abs(), (h - v).abs()
    r, rate = gap.abs(), 1 / gamma**2
    eps, low, high = torch.zeros_like(r), torch.zeros_like(r), r / rate
    # Newton's method squares the error: after a relative step of sqrt(machine eps) it is rounding.
    tolerance = 0.1 * torch.finfo(h.dtype).eps ** 0.5
    for _ in range(MAX_ITER):
        e = eps[..., None]
        together = a * e + e**2 >= c * e - e**2
        f = torch.where(together, a * e + e**2, c * e - e**2).sum(-1) + eps * rate - r
        slope = torch.where(together, a + 2 * e, c - 2 * e).sum(-1) + rate
        low, high = torch.where(f < 0, eps, low), torch.where(f > 0, eps, high)
        new = eps - f / slope
        new = torch.where((new < low) | (new > high), (low + high) / 2, new)
        done = bool(((new - eps).abs() <= tolerance * eps).all())
        eps = new
        if done:
            break
    e = eps[..., None]
    together = 2 * e >= c - a
    up = torch.where(h + v >= 0, e, -e)
    down = torch.where(h - v >= 0, e, -e)
    dh = torch.where(together, up, -down)
    dw = torch.where(together, up, down)
    return h + dh, w + s * dw, z - s[..., 0] * eps * rate


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def radius_of(
    h: np.ndarray, w: np.ndarray, s: float, r: float, rate: float, tolerance: float
) -> float:
    """The radius eps of one sample and unit: safeguarded Newton from 0, in their precision."""
    two, half = h.dtype.type(2), h.dtype.type(0.5)
    eps = low = h.dtype.type(0)
    high = r / rate
    for _ in range(MAX_ITER):
        f, slope = eps * rate - r, rate
        square, twice = eps * eps, two * eps
        for k in range(len(h)):
            v = s * w[k]
            a, c = abs(h[k] + v), abs(h[k] - v)
            together, apart = a * eps + square, c * eps - square
            first = together >= apart
            f += together if first else apart
            slope += a + twice if first else c - twice
        if f < 0:
            low = eps
        elif f > 0:
            high = eps
        new = eps - f / slope
        if new < low or new > high:
            new = half * (low + high)
        if abs(new - eps) <= tolerance * eps:
            return new
        eps = new
    return eps


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def layer_displacements_linf(
    H: np.ndarray,
    W: np.ndarray,
    d: np.ndarray,
    weight: np.ndarray,
    gamma: float,
    dH: np.ndarray,
    dW: np.ndarray,
    radius: np.ndarray,
) -> None:
    """Sum over units of h' - h into dH (B, n), weighted sum over samples of w' - w into dW (N, n).

    d (B, N) are the displacements w.h - z; nothing of size B N n is stored.
    """
    kind = H.dtype.type
    rate, one, two = kind(1.0 / gamma**2), kind(1), kind(2)
    tolerance = kind(0.1 * np.sqrt(np.finfo(H.dtype).eps))
    for b in range(H.shape[0]):
        h = H[b]
        for j in range(W.shape[0]):
            if d[b, j] == 0:
                continue
            w = W[j]
            s = -one if d[b, j] > 0 else one
            eps = radius_of(h, w, s, abs(d[b, j]), rate, tolerance)
            radius[b, j] = s * eps
            share, twice = s * eps * weight[b], two * eps
            for k in range(len(h)):
                v = s * w[k]
                up, down = h[k] + v, h[k] - v
                first = twice >= abs(down) - abs(up)
                sign_up = one if up >= 0 else -one
                sign_down = one if down >= 0 else -one
                dH[b, k] += eps * (sign_up if first else -sign_down)
                dW[j, k] += share * (sign_up if first else sign_down)
