"""Projections onto the graphs of a network's other operations, and onto consensus.

Each minimises |x' - x|^2 + weight (z' - z)^2 over the points of {(x, z): z = f(x)}; `weight` is
gamma^2 in the layers.
"""

from typing import Any

import torch

from .arrays import as_tensors, require_positive

__all__ = [
    "project_consensus",
    "project_max",
    "project_piecewise_linear",
    "project_relu",
    "project_sum",
]


def project_relu(x: Any, z: Any, weight: float = 1.0) -> tuple[Any, Any]:
    """Project (x, z) onto z = max(x, 0), element by element.

    Parameters
    ----------
    x, z : array-like or tensor
        Inputs and outputs wanted; broadcast against each other.
    weight : float, default=1.0
        Weight of (z' - z)^2, > 0.

    Returns
    -------
    x, z : array or tensor
        The nearest points; ties go to the positive branch.

    Examples
    --------
    >>> from equipoise.estimators import project_relu
    >>> project_relu([-1.0, -1.0, 2.0], [0.5, 3.0, 1.0])
    (array([-1. ,  1. ,  1.5]), array([0. , 1. , 1.5]))
    """
    weight = require_positive("weight", weight)
    (x, z), back = as_tensors(x, z)
    x, z = torch.broadcast_tensors(x, z)
    off = x.clamp(max=0)
    on = ((x + weight * z) / (1 + weight)).clamp(min=0)
    closed = (x - off) ** 2 + weight * z**2
    opened = (x - on) ** 2 + weight * (z - on) ** 2
    active = opened <= closed
    return back(torch.where(active, on, off)), back(torch.where(active, on, 0.0))


def project_piecewise_linear(
    x: Any, z: Any, knots: Any, slopes: Any, intercepts: Any, weight: float = 1.0
) -> tuple[Any, Any]:
    """Project (x, z) onto the graph of a piecewise linear function, element by element.

    Parameters
    ----------
    x, z : array-like or tensor
        Inputs and outputs wanted; broadcast against each other.
    knots : array-like of shape (k,)
        Where the pieces meet, rising.
    slopes, intercepts : array-like of shape (k + 1,)
        Of each piece; the function may jump at a knot, and both ends then belong to the graph.
    weight : float, default=1.0
        Weight of (z' - z)^2, > 0.

    Returns
    -------
    x, z : array or tensor
        The nearest points; ties go to the piece on the right.

    Raises
    ------
    ValueError
        If the knots don't rise, or there isn't one slope and intercept a piece.

    Examples
    --------
    The sign function:

    >>> from equipoise.estimators import project_piecewise_linear
    >>> project_piecewise_linear([-0.5, -3.0], [1.0, 1.0], [0.0], [0.0, 0.0], [-1.0, 1.0])
    (array([ 0., -3.]), array([ 1., -1.]))
    """
    weight = require_positive("weight", weight)
    (x, z), back = as_tensors(x, z)
    x, z = torch.broadcast_tensors(x, z)
    knots, slopes, intercepts = (
        torch.as_tensor(v, dtype=x.dtype, device=x.device) for v in (knots, slopes, intercepts)
    )
    if knots.ndim != 1 or bool((knots.diff() <= 0).any()):
        raise ValueError(f"knots={knots.tolist()} must rise")
    if slopes.shape != (len(knots) + 1,) or intercepts.shape != slopes.shape:
        raise ValueError(
            f"slopes and intercepts have {slopes.numel()} and {intercepts.numel()} entries; "
            f"expected one for each of the {len(knots) + 1} pieces"
        )
    ends = torch.cat([knots.new_tensor([-torch.inf]), knots, knots.new_tensor([torch.inf])])
    best_x = best_z = cost = torch.full_like(x, torch.inf)
    for k in range(len(slopes)):
        m, c = slopes[k], intercepts[k]
        at = (x + weight * m * (z - c)) / (1 + weight * m**2)
        at = at.clamp(min=ends[k], max=ends[k + 1])
        value = m * at + c
        price = (at - x) ** 2 + weight * (value - z) ** 2
        better = price <= cost
        best_x, best_z = torch.where(better, at, best_x), torch.where(better, value, best_z)
        cost = torch.where(better, price, cost)
    return back(best_x), back(best_z)


def project_max(a: Any, z: Any, dim: int = -1, weight: float = 1.0) -> tuple[Any, Any]:
    """Project (a, z) onto z = max(a) along a dimension.

    Parameters
    ----------
    a : array-like or tensor of shape (..., n, ...)
        Inputs.
    z : array-like or tensor
        Outputs wanted, of a's shape without `dim`.
    dim : int, default=-1
        The dimension of the maximum.
    weight : float, default=1.0
        Weight of (z' - z)^2, > 0.

    Returns
    -------
    a, z : array or tensor
        The nearest points. A target above the maximum raises the first largest entry, one below it
        lowers the largest entries to a common value.

    Examples
    --------
    >>> from equipoise.estimators import project_max
    >>> a, z = project_max([1.0, 3.0, 2.0], 5.0)
    >>> a, float(z)
    (array([1., 4., 2.]), 4.0)
    """
    weight = require_positive("weight", weight)
    (a, z), back = as_tensors(a, z)
    a = a.movedim(dim, -1)
    ordered = a.sort(dim=-1, descending=True).values
    counts = torch.arange(1, a.shape[-1] + 1, dtype=a.dtype, device=a.device)
    levels = (weight * z[..., None] + ordered.cumsum(-1)) / (weight + counts)
    below = torch.cat([ordered[..., 1:], torch.full_like(ordered[..., :1], -torch.inf)], dim=-1)
    first = (levels >= below).to(torch.uint8).argmax(dim=-1, keepdim=True)
    level = levels.gather(-1, first)
    top = ordered[..., :1]
    raised = (top + weight * z[..., None]) / (1 + weight)
    rises = z[..., None] >= top
    value = torch.where(rises, raised, level)
    index = torch.arange(a.shape[-1], device=a.device)
    leader = index == a.argmax(dim=-1, keepdim=True)
    new = torch.where(rises, torch.where(leader, raised, a), torch.minimum(a, level))
    return back(new.movedim(-1, dim)), back(value[..., 0])


def project_sum(
    x: Any, z: Any, dim: int = -1, weight: float = 1.0, mean: bool = False
) -> tuple[Any, Any]:
    """Project (x, z) onto z = sum(x), or mean(x), along a dimension.

    Parameters
    ----------
    x : array-like or tensor of shape (..., n, ...)
        Terms.
    z : array-like or tensor
        Outputs wanted, of x's shape without `dim`.
    dim : int, default=-1
        The dimension of the sum.
    weight : float, default=1.0
        Weight of (z' - z)^2, > 0.
    mean : bool, default=False
        The mean instead of the sum.

    Returns
    -------
    x, z : array or tensor
        The nearest points: all terms are shifted alike.

    Examples
    --------
    >>> from equipoise.estimators import project_sum
    >>> x, z = project_sum([1.0, 2.0], 6.0)
    >>> x, float(z)
    (array([2., 3.]), 5.0)
    """
    weight = require_positive("weight", weight)
    (x, z), back = as_tensors(x, z)
    n = x.shape[dim]
    if mean:
        shift = weight * (z - x.mean(dim)) / (n + weight)
        new = x + shift.unsqueeze(dim)
        return back(new), back(new.mean(dim))
    shift = weight * (z - x.sum(dim)) / (1 + weight * n)
    new = x + shift.unsqueeze(dim)
    return back(new), back(new.sum(dim))


def project_consensus(x: Any, dim: int = 0, weights: Any = None) -> Any:
    """Project copies onto those that are all equal: their (weighted) mean, repeated.

    Parameters
    ----------
    x : array-like or tensor of shape (..., n, ...)
        Copies along a dimension.
    dim : int, default=0
        The dimension.
    weights : array-like of shape (n,), optional
        Weights of the copies, >= 0 and not all 0.

    Returns
    -------
    array or tensor
        Of x's shape.

    Raises
    ------
    ValueError
        If the weights don't fit.

    Examples
    --------
    >>> from equipoise.estimators import project_consensus
    >>> project_consensus([1.0, 2.0, 6.0])
    array([3., 3., 3.])
    """
    (x,), back = as_tensors(x)
    if weights is None:
        return back(x.mean(dim, keepdim=True).expand_as(x).clone())
    w = torch.as_tensor(weights, dtype=x.dtype, device=x.device)
    if w.shape != (x.shape[dim],) or bool((w < 0).any()) or not float(w.sum()) > 0:
        raise ValueError(f"weights must hold {x.shape[dim]} numbers of at least 0, not all 0")
    moved = x.movedim(dim, -1)
    mean = (moved @ w / w.sum())[..., None]
    return back(mean.expand_as(moved).movedim(-1, dim).clone())
