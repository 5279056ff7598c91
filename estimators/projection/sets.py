"""Projections onto sets: of weights (boxes, balls, sparse vectors), of outputs (margins)."""

from typing import Any

import torch

from .arrays import as_tensors, labels_of, require_option, require_positive

__all__ = [
    "margin_displacement",
    "project_ball",
    "project_box",
    "project_margin",
    "project_simplex",
    "project_sparse",
]


def project_box(x: Any, low: float = -1.0, high: float = 1.0) -> Any:
    """Project onto low <= x <= high, element by element.

    Parameters
    ----------
    x : array-like or tensor
        Any shape.
    low, high : float, default=-1.0, 1.0
        Bounds; infinite ones are allowed.

    Returns
    -------
    array or tensor
        Of x's shape.

    Raises
    ------
    ValueError
        If low > high.

    Examples
    --------
    >>> from equipoise.estimators import project_box
    >>> project_box([-2.0, 0.5], low=0.0)
    array([0. , 0.5])
    """
    if not low <= high:
        raise ValueError(f"low={low!r} must not be above high={high!r}")
    (x,), back = as_tensors(x=x)
    return back(x.clamp(low, high))


def simplex_threshold(x: torch.Tensor, total: float) -> torch.Tensor:
    """The tau with sum max(x - tau, 0) = total along the last dimension."""
    ordered = x.sort(dim=-1, descending=True).values
    counts = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype, device=x.device)
    levels = (ordered.cumsum(-1) - total) / counts
    last = (ordered > levels).sum(dim=-1, keepdim=True).clamp(min=1)
    return levels.gather(-1, last - 1)


def project_simplex(x: Any, total: float = 1.0, dim: int = -1) -> Any:
    """Project onto x >= 0, sum(x) = total, along a dimension.

    Parameters
    ----------
    x : array-like or tensor
        Any shape.
    total : float, default=1.0
        The sum, > 0.
    dim : int, default=-1
        The dimension.

    Returns
    -------
    array or tensor
        Of x's shape.

    Examples
    --------
    >>> from equipoise.estimators import project_simplex
    >>> project_simplex([0.5, 1.5, -1.0])
    array([0., 1., 0.])
    """
    total = require_positive("total", total)
    (x,), back = as_tensors(x=x)
    moved = x.movedim(dim, -1)
    return back((moved - simplex_threshold(moved, total)).clamp(min=0).movedim(-1, dim))


def project_ball(x: Any, radius: float = 1.0, norm: float = 2, dim: int | None = -1) -> Any:
    """Project onto a ball around 0.

    Parameters
    ----------
    x : array-like or tensor
        Any shape.
    radius : float, default=1.0
        The radius, > 0.
    norm : {1, 2, inf}, default=2
        The ball's norm; distances stay Euclidean.
    dim : int or None, default=-1
        The dimension along which vectors lie; None: all of x is one vector.

    Returns
    -------
    array or tensor
        Of x's shape.

    Raises
    ------
    ValueError
        If the norm is another one, or the radius isn't positive.

    Examples
    --------
    >>> from equipoise.estimators import project_ball
    >>> project_ball([3.0, 4.0]), project_ball([3.0, 4.0], norm=1)
    (array([0.6, 0.8]), array([0., 1.]))
    """
    radius = require_positive("radius", radius)
    if norm not in (1, 2, float("inf")):
        raise ValueError(f"norm={norm!r} is not available; allowed: [1, 2, inf]")
    (x,), back = as_tensors(x=x)
    v = x.reshape(-1) if dim is None else x.movedim(dim, -1)
    if norm == 1:
        size = v.abs()
        inside = size.sum(-1, keepdim=True) <= radius
        cut = (size - simplex_threshold(size, radius)).clamp(min=0) * v.sign()
        new = torch.where(inside, v, cut)
    elif norm == 2:
        length = torch.linalg.vector_norm(v, dim=-1, keepdim=True)
        new = torch.where(length > radius, v * (radius / length), v)
    else:
        new = v.clamp(-radius, radius)
    return back(new.reshape(x.shape) if dim is None else new.movedim(-1, dim))


def project_sparse(x: Any, k: int, dim: int | None = -1) -> Any:
    """Keep the k largest entries by size, and set the others to 0.

    Parameters
    ----------
    x : array-like or tensor
        Any shape.
    k : int
        Entries kept, >= 0.
    dim : int or None, default=-1
        The dimension along which vectors lie; None: all of x is one vector.

    Returns
    -------
    array or tensor
        Of x's shape.

    Raises
    ------
    ValueError
        If k is negative or not a whole number.

    Examples
    --------
    >>> from equipoise.estimators import project_sparse
    >>> project_sparse([3.0, -4.0, 1.0], k=2)
    array([ 3., -4.,  0.])
    """
    if isinstance(k, bool) or int(k) != k or k < 0:
        raise ValueError(f"k={k!r} is not allowed; allowed: whole numbers of at least 0")
    (x,), back = as_tensors(x=x)
    v = x.reshape(-1) if dim is None else x.movedim(dim, -1)
    kept = v.abs().topk(min(int(k), v.shape[-1]), dim=-1).indices
    new = torch.zeros_like(v).scatter(-1, kept, v.gather(-1, kept))
    return back(new.reshape(x.shape) if dim is None else new.movedim(-1, dim))


def margin_displacement(u: torch.Tensor, y: torch.Tensor, delta: float, kind: str) -> torch.Tensor:
    """What logits (B, K) give up on the way to the margin.

    Among several classes the label's logit rises and the m largest others fall until they meet:
    they lose t_k = (u_k - tau)+, it gains their sum, with tau = (u_y - delta + o_1 + .. + o_m) /
    (m + 1).
    """
    own = torch.nn.functional.one_hot(y, u.shape[1]).bool()
    if kind == "one_vs_rest":
        return torch.where(own, (u - delta).clamp(max=0), u.clamp(min=0))
    # Excesses of the others over the level that the label's logit allows.
    excess = u - u.gather(1, y[:, None]) + delta
    ordered = excess.masked_fill(own, -torch.inf).sort(dim=1, descending=True).values[:, :-1]
    if ordered.shape[1] == 0:
        return torch.zeros_like(u)
    counts = torch.arange(1, ordered.shape[1] + 1, dtype=u.dtype, device=u.device)
    levels = ordered.cumsum(1) / (counts + 1)
    below = torch.cat([ordered[:, 1:], torch.full_like(ordered[:, :1], -torch.inf)], dim=1)
    first = (levels >= below).to(torch.uint8).argmax(dim=1, keepdim=True)
    level = levels.gather(1, first).clamp(min=0)
    fall = (excess - level).clamp(min=0).masked_fill(own, 0.0)
    return torch.where(own, -level, fall)


def project_margin(u: Any, y: Any, delta: float = 1.0, kind: str = "multiclass") -> Any:
    """Project logits onto those that decide for the label with a margin.

    Parameters
    ----------
    u : array-like or tensor of shape (B, K)
        Logits.
    y : array-like or tensor of shape (B,)
        Labels, 0 to K - 1.
    delta : float, default=1.0
        The margin, > 0.
    kind : {"multiclass", "one_vs_rest"}, default="multiclass"
        "multiclass": u_y - u_k >= delta for all k != y. "one_vs_rest": u_y >= delta, u_k <= 0.

    Returns
    -------
    array or tensor of shape (B, K)
        The nearest logits.

    Raises
    ------
    ValueError
        If shapes or labels don't fit, delta isn't positive, or the kind is unknown.

    Examples
    --------
    >>> from equipoise.estimators import project_margin
    >>> project_margin([[1.0, 0.5, 0.0, 2.0, -1.0]], [2]).round(3)
    array([[ 0.667,  0.5  ,  1.667,  0.667, -1.   ]])
    """
    delta = require_positive("delta", delta)
    require_option("kind", kind, ("multiclass", "one_vs_rest"))
    (u,), back = as_tensors(u=u)
    if u.ndim != 2:
        raise ValueError(f"u has shape {tuple(u.shape)}; expected (B, K)")
    return back(u - margin_displacement(u, labels_of(y, u), delta, kind))
