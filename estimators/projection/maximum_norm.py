"""The bilinear projection in the maximum norm.

min eps subject to |dh_k| <= eps, |dw_k| <= eps, |dz| <= eps / gamma^2 and (w + dw).(h + dh) = z + dz.
With s = sign(z - w.h), w~ = s w, a = |h + w~|, c = |h - w~| the largest gain of coordinate k is
M_k(eps) = a eps + eps^2 where 2 eps >= c - a (h and w~ move apart in step), else c eps - eps^2, and
eps is the root of sum_k M_k(eps) + eps / gamma^2 = |z - w.h|.
"""

import numpy as np
import torch
from numba import njit

__all__ = ["layer_displacements_inf", "project_bilinear_inf"]

MAX_ITER = 100


def project_bilinear_inf(
    h: torch.Tensor, w: torch.Tensor, z: torch.Tensor, gamma: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Project tensors h, w (..., n) and z (...)."""
    gap = z - (h * w).sum(-1)
    s = torch.where(gap < 0, -1.0, 1.0).to(h.dtype)[..., None]
    v = s * w
    a, c = (h + v).abs(), (h - v).abs()
    r, rate = gap.abs(), 1 / gamma**2
    eps, low, high = torch.zeros_like(r), torch.zeros_like(r), r / rate
    tolerance = 4 * torch.finfo(h.dtype).eps
    for _ in range(MAX_ITER):
        e = eps[..., None]
        first = 2 * e >= c - a
        f = torch.where(first, a * e + e**2, c * e - e**2).sum(-1) + eps * rate - r
        slope = torch.where(first, a + 2 * e, c - 2 * e).sum(-1) + rate
        low, high = torch.where(f < 0, eps, low), torch.where(f > 0, eps, high)
        new = eps - f / slope
        new = torch.where((new < low) | (new > high), (low + high) / 2, new)
        done = bool(((new - eps).abs() <= tolerance * eps).all())
        eps = new
        if done:
            break
    e = eps[..., None]
    first = 2 * e >= c - a
    together = torch.where(h + v >= 0, e, -e)
    apart = torch.where(h - v >= 0, e, -e)
    dh = torch.where(first, together, -apart)
    dw = torch.where(first, together, apart)
    return h + dh, w + s * dw, z - s[..., 0] * eps * rate


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def step_inf(h: np.ndarray, v: np.ndarray, r: float, rate: float, max_iter: int) -> float:
    """The radius eps of one sample and unit: safeguarded Newton from 0."""
    n = len(h)
    eps, low, high = 0.0, 0.0, r / rate
    for _ in range(max_iter):
        f, slope = eps * rate - r, rate
        for k in range(n):
            a, c = abs(h[k] + v[k]), abs(h[k] - v[k])
            # Both branches at once: the larger gain is the right one.
            first = 2 * eps >= c - a
            f += a * eps + eps * eps if first else c * eps - eps * eps
            slope += a + 2 * eps if first else c - 2 * eps
        if f < 0:
            low = eps
        elif f > 0:
            high = eps
        new = eps - f / slope
        if new < low or new > high:
            new = 0.5 * (low + high)
        if abs(new - eps) <= 1e-6 * eps:
            return new
        eps = new
    return eps


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def layer_displacements_inf(
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
    n = H.shape[1]
    rate = 1.0 / gamma**2
    v = np.empty(n, H.dtype)
    for b in range(H.shape[0]):
        h = H[b]
        for j in range(W.shape[0]):
            if d[b, j] == 0:
                continue
            s = -1.0 if d[b, j] > 0 else 1.0
            for k in range(n):
                v[k] = s * W[j, k]
            eps = step_inf(h, v, abs(d[b, j]), rate, 60)
            radius[b, j] = s * eps
            share = s * eps * weight[b]
            for k in range(n):
                up, down = h[k] + v[k], h[k] - v[k]
                first = 2 * eps >= abs(down) - abs(up)
                sign_up = 1.0 if up >= 0 else -1.0
                sign_down = 1.0 if down >= 0 else -1.0
                dH[b, k] += eps * (sign_up if first else -sign_down)
                dW[j, k] += share * (sign_up if first else sign_down)
