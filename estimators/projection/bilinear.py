"""Projection onto {(h, w, z): w.h = z}: one unit of a linear layer, one sample.

    minimise |h' - h|^2 + alpha |w' - w|^2 + gamma^2 (z' - z)^2  subject to  w'.h' = z'

With the multiplier t = sqrt(alpha) u, |u| < 1, p = w.h, d = p - z, kappa = sqrt(alpha) / gamma^2,
Q = (|h|^2 + alpha |w|^2) / sqrt(alpha), A = (Q + 2 p) / 4, D = (Q - 2 p) / 4 the solution is

    h' = (h + sqrt(alpha) u w) / (1 - u^2),  w' = (w + u h / sqrt(alpha)) / (1 - u^2),
    z' = z - kappa u,  A u (2 - u) / (1 - u)^2 + D u (2 + u) / (1 + u)^2 + kappa u + d = 0.

Mirrored so that the root is positive and with u = y / (1 + y) the equation becomes

    A y (2 + y) + D y (2 + 3 y) / (1 + 2 y)^2 + kappa y / (1 + y) = r = |d|,  0 <= y < inf,

in which nothing cancels: neither tiny displacements nor u near 1 lose digits. Where A = 0 and
r >= 3 D / 4 + kappa there is no root, and the solutions form a set (see `Multiplier`).
"""

from typing import Any, NamedTuple

import torch

from .arrays import as_tensors, require_option, require_positive
from .maximum_norm import project_bilinear_linf

__all__ = ["BilinearProjection", "Multiplier", "multiplier", "project_bilinear", "roots"]

#: Largest number of Newton steps.
MAX_ITER = 60


class BilinearProjection(NamedTuple):
    """The projected point.

    Attributes
    ----------
    h, w : array or tensor of shape (..., n)
        Inputs and weights.
    z : array or tensor of shape (...)
        Outputs, ``(w * h).sum(-1)``.

    Examples
    --------
    >>> from equipoise.estimators import project_bilinear
    >>> point = project_bilinear([1.0], [1.0], 1.0)
    >>> float(point.h[0]), float(point.w[0]), float(point.z)
    (1.0, 1.0, 1.0)
    """

    h: Any
    w: Any
    z: Any


class Multiplier(NamedTuple):
    """What the multiplier u does to h and w: all of one shape.

    ``h' - h = grow_h h + sqrt(alpha) mix w + spread e``,
    ``w' - w = grow_w w + mix / sqrt(alpha) h + sign spread / sqrt(alpha) e``, with e = (1, ..., 1)
    / sqrt(n). Usually grow_h = grow_w = u^2 / (1 - u^2), mix = u / (1 - u^2), spread = 0. Without a
    root (h = -sign sqrt(alpha) w): u = sign, mix = 0, grow_h = rho - 1/2, grow_w = -rho - 1/2 with
    rho = |v| / |h|, |v|^2 = |h|^2 / 4 + sign sqrt(alpha) z - alpha / gamma^2; spread = |v| where
    h = w = 0.
    """

    grow_h: torch.Tensor
    grow_w: torch.Tensor
    mix: torch.Tensor
    spread: torch.Tensor
    sign: torch.Tensor
    u: torch.Tensor


def roots(
    A: torch.Tensor, D: torch.Tensor, kappa: float, r: torch.Tensor, max_iter: int = MAX_ITER
) -> torch.Tensor:
    """The y >= 0 with A y (2 + y) + D y (2 + 3 y) / (1 + 2 y)^2 + kappa y / (1 + y) = r.

    Newton's method inside a bracket, from the smallest of the upper bounds that each term alone
    gives and of ``(3 D / 4 + kappa) / (3 D / 4 + kappa - r) - 1``.
    """
    infinity = torch.full_like(r, torch.inf)
    x = r / A
    upper = torch.where(A > 0, x / (1 + torch.sqrt(1 + x)), infinity)
    q = torch.sqrt((1 - r / D).clamp(min=0))
    alone = r / D / (1 + q) / (2 * q - 1)
    upper = torch.minimum(upper, torch.where((D > 0) & (q > 0.5), alone, infinity))
    upper = torch.minimum(upper, torch.where(r < kappa, r / (kappa - r), infinity))
    limit = 0.75 * D + kappa
    upper = torch.minimum(upper, torch.where(r < limit, r / (limit - r), infinity))
    y = torch.where(r > 0, upper, 0.0)
    low, high = torch.zeros_like(y), y
    # Newton's method squares the error: after a relative step of sqrt(eps) it is rounding.
    tolerance = torch.finfo(r.dtype).eps ** 0.5
    for _ in range(max_iter):
        v, w = 1 + y, 1 + 2 * y
        f = A * y * (1 + v) + D * y * (2 + 3 * y) / w**2 + kappa * y / v - r
        slope = 2 * A * v + 2 * D * v / w**3 + kappa / v**2
        low, high = torch.where(f < 0, y, low), torch.where(f > 0, y, high)
        step = f / slope
        new = y - step
        new = torch.where((new < low) | (new > high), (low + high) / 2, new)
        if bool(((new - y).abs() <= tolerance * y).all()):
            return new
        y = new
    return y


def multiplier(
    p: torch.Tensor,
    d: torch.Tensor,
    h2: torch.Tensor,
    w2: torch.Tensor,
    alpha: float,
    gamma: float,
    solver: str = "exact",
) -> Multiplier:
    """The multiplier of each pair of a sample and a unit.

    Parameters
    ----------
    p : tensor
        Products w.h.
    d : tensor
        Displacements p - z from above, of p's shape.
    h2, w2 : tensor
        Squared norms of h and w, broadcast against p.
    alpha, gamma : float
        Weights of w and z.
    solver : {"exact", "one_step"}, default="exact"
        The root, or one Newton step from u = 0, kept within 1/2.
    """
    root = alpha**0.5
    kappa = root / gamma**2
    Q = ((h2 + alpha * w2) / root).broadcast_to(p.shape)
    zero = torch.zeros_like(p)
    if solver == "one_step":
        u = torch.where(Q + kappa > 0, -d / (Q + kappa), 0.0).clamp(-0.5, 0.5)
        grow = u**2 / (1 - u**2)
        return Multiplier(grow, grow, u / (1 - u**2), zero, torch.sign(u), u)
    sign = torch.where(d > 0, -1.0, 1.0).to(p.dtype)
    A, D, r = (Q + 2 * sign * p) / 4, (Q - 2 * sign * p) / 4, d.abs()
    small = 8 * torch.finfo(p.dtype).eps * Q
    A, D = torch.where(A <= small, 0.0, A), torch.where(D <= small, 0.0, D)
    lost = (A == 0) & (r > 0) & (r >= 0.75 * D + kappa)
    y = roots(A, D, kappa, torch.where(lost, 0.0, r))
    grow = y**2 / (1 + 2 * y)
    mix = sign * y * (1 + y) / (1 + 2 * y)
    u = sign * y / (1 + y)
    if not bool(lost.any()):
        return Multiplier(grow, grow, mix, zero, sign, u)
    h2 = h2.broadcast_to(p.shape)
    length = (h2 / 4 + root * (sign * (p - d) - kappa)).clamp(min=0).sqrt()
    rho = torch.where(h2 > 0, length / h2.sqrt(), 0.5)
    return Multiplier(
        torch.where(lost, rho - 0.5, grow),
        torch.where(lost, torch.where(h2 > 0, -rho - 0.5, 0.0), grow),
        mix,
        torch.where(lost & (h2 == 0), length, 0.0),
        sign,
        torch.where(lost, sign, u),
    )


def project_bilinear(
    h: Any,
    w: Any,
    z: Any,
    alpha: float = 1.0,
    gamma: float = 1.0,
    norm: str = "l2",
    solver: str = "exact",
) -> BilinearProjection:
    """Project (h, w, z) onto the points with w.h = z.

    Parameters
    ----------
    h, w : array-like or tensor of shape (..., n)
        Inputs and weights; broadcast against each other.
    z : array-like or tensor of shape (...)
        Outputs wanted.
    alpha, gamma : float, default=1.0
        Weights of w and z in the distance, > 0: |dh|^2 + alpha |dw|^2 + gamma^2 dz^2 for
        norm="l2"; max(|dh|, |dw|, gamma^2 |dz|) for norm="linf", which takes alpha=1 only.
    norm : {"l2", "linf"}, default="l2"
        The distance.
    solver : {"exact", "one_step"}, default="exact"
        "one_step" is the first Newton step of norm="l2", kept within |u| <= 1/2: cheap, and close
        to the projection for small displacements only.

    Returns
    -------
    BilinearProjection
        ``h``, ``w``, ``z``: tensors if a tensor was given, else arrays. Where the nearest point
        isn't unique, the one along h; if h = w = 0, the one along (1, ..., 1).

    Raises
    ------
    ValueError
        If alpha or gamma isn't positive, an option is unknown, or alpha != 1 with norm="linf".

    References
    ----------
    .. [1] V. Elser, "Learning without loss", arXiv 1911.00493, section 3.
    .. [2] A. Bergmeister et al., "A projection-based framework for gradient-free and parallel
           learning", arXiv 2506.05878.

    Examples
    --------
    >>> from equipoise.estimators import project_bilinear
    >>> h, w, z = project_bilinear([1.0, 2.0], [3.0, -1.0], 4.0)
    >>> h.round(4), w.round(4), round(float(z), 4)
    (array([1.5613, 1.8838]), array([ 3.2682, -0.6765]), 3.8283)
    """
    alpha, gamma = require_positive("alpha", alpha), require_positive("gamma", gamma)
    require_option("norm", norm, ("l2", "linf"))
    require_option("solver", solver, ("exact", "one_step"))
    (h, w, z), back = as_tensors(h=h, w=w, z=z)
    h, w = torch.broadcast_tensors(h, w)
    z = torch.broadcast_to(z, h.shape[:-1])
    if norm == "linf":
        if alpha != 1:
            raise ValueError(f"alpha={alpha} is not available with norm='linf'; allowed: 1")
        return BilinearProjection(*map(back, project_bilinear_linf(h, w, z, gamma)))
    p = (h * w).sum(-1)
    m = multiplier(p, p - z, (h**2).sum(-1), (w**2).sum(-1), alpha, gamma, solver)
    root = alpha**0.5
    n = h.shape[-1]
    grow_h, grow_w, mix, spread = (part[..., None] for part in m[:4])
    direction = spread / n**0.5
    new_h = h + grow_h * h + root * mix * w + direction
    new_w = w + grow_w * w + mix / root * h + m.sign[..., None] * direction / root
    return BilinearProjection(back(new_h), back(new_w), back(z - root / gamma**2 * m.u))
