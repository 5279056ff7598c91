"""Projections onto the graphs of a network's other operations, and onto consensus.

Each minimises |x' - x|^2 + weight (z' - z)^2 over the points of {(x, z): z = f(x)}; `weight` is
gamma^2 in the layers. All are computed from the displacement d = f(x) - z that arrives from above,
as x - x': where d is tiny, so is the answer, and it keeps its digits.
"""

from collections.abc import Sequence
from typing import Any

import torch

from .arrays import as_tensors, require_positive

__all__ = [
    "max_displacement",
    "piecewise_displacement",
    "piecewise_value",
    "project_consensus",
    "project_max",
    "project_piecewise_linear",
    "project_relu",
    "project_sum",
    "relu_displacement",
]


def relu_displacement(x: torch.Tensor, d: torch.Tensor, weight: float) -> torch.Tensor:
    """x - x' for the target max(x, 0) - d.

    On the diagonal the displacement is c (d + min(x, 0)) with c = weight / (1 + weight), not beyond
    the corner. A closed unit opens where d <= x / (sqrt(1 + weight) - 1): there the diagonal is
    nearer than z = 0.
    """
    along = (d + x.clamp(max=0)) * (weight / (1 + weight))
    opens = (x > 0) | (x >= ((1 + weight) ** 0.5 - 1) * d)
    return torch.where(opens, torch.minimum(along, x), 0.0)


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

    Raises
    ------
    ValueError
        If the weight isn't positive, or a value isn't finite.

    References
    ----------
    .. [1] V. Elser, "Learning without loss", arXiv 1911.00493.

    Examples
    --------
    >>> from equipoise.estimators import project_relu
    >>> project_relu([-1.0, -1.0, 2.0], [0.5, 3.0, 1.0])
    (array([-1. ,  1. ,  1.5]), array([0. , 1. , 1.5]))
    """
    weight = require_positive("weight", weight)
    (x, z), back = as_tensors(x=x, z=z)
    x, z = torch.broadcast_tensors(x, z)
    new = x - relu_displacement(x, x.clamp(min=0) - z, weight)
    return back(new), back(new.clamp(min=0))


def piecewise_value(
    x: torch.Tensor, knots: torch.Tensor, slopes: torch.Tensor, intercepts: torch.Tensor
) -> torch.Tensor:
    """The function's value; at a knot that of the piece on its right."""
    piece = torch.bucketize(x, knots, right=True)
    return slopes[piece] * x + intercepts[piece]


def piecewise_displacement(
    x: torch.Tensor,
    d: torch.Tensor,
    knots: torch.Tensor,
    slopes: torch.Tensor,
    intercepts: torch.Tensor,
    weight: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """x - x' for the target f(x) - d, and the piece on which x' lies.

    With e = (m x + c) - f(x), the height of another piece over the one x is on, the nearest point
    of the line is at x - weight m (e + d) / (1 + weight m^2). Ties go to the piece on the right.
    """
    own = torch.bucketize(x, knots, right=True)
    value = slopes[own] * x + intercepts[own]
    ends = torch.cat([knots.new_tensor([-torch.inf]), knots, knots.new_tensor([torch.inf])])
    best, cost = torch.zeros_like(x), torch.full_like(x, torch.inf)
    piece = torch.zeros_like(own)
    for k in range(len(slopes)):
        m = slopes[k]
        gap = torch.where(own == k, 0.0, m * x + intercepts[k] - value) + d
        move = weight * m * gap / (1 + weight * m**2)
        move = torch.clamp(move, min=x - ends[k + 1], max=x - ends[k])
        price = move**2 + weight * (gap - m * move) ** 2
        better = price <= cost
        best, cost = torch.where(better, move, best), torch.where(better, price, cost)
        piece = torch.where(better, k, piece)
    return best, piece


def check_pieces(
    knots: Sequence[float] | torch.Tensor, slopes: Any, intercepts: Any, like: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Rising knots, and a slope and an intercept for each piece between them."""
    knots, slopes, intercepts = (
        torch.as_tensor(v, dtype=like.dtype, device=like.device)
        for v in (knots, slopes, intercepts)
    )
    if knots.ndim != 1 or not bool((knots.diff() > 0).all() & torch.isfinite(knots).all()):
        raise ValueError(f"knots={knots.tolist()} is not allowed; allowed: rising finite numbers")
    if slopes.shape != (len(knots) + 1,) or intercepts.shape != slopes.shape:
        raise ValueError(
            f"slopes and intercepts have shapes {tuple(slopes.shape)} and "
            f"{tuple(intercepts.shape)}; expected ({len(knots) + 1},): one for each piece"
        )
    if not bool((torch.isfinite(slopes) & torch.isfinite(intercepts)).all()):
        raise ValueError("slopes and intercepts must be finite")
    return knots, slopes, intercepts


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
    (x, z), back = as_tensors(x=x, z=z)
    x, z = torch.broadcast_tensors(x, z)
    x = x.contiguous()
    pieces = check_pieces(knots, slopes, intercepts, x)
    move, piece = piecewise_displacement(x, piecewise_value(x, *pieces) - z, *pieces, weight)
    new = x - move
    return back(new), back(pieces[1][piece] * new + pieces[2][piece])


def max_displacement(a: torch.Tensor, d: torch.Tensor, weight: float) -> torch.Tensor:
    """a - a' (..., n) for the target max(a) - d, with d of shape (...).

    Down (d > 0): the largest entries meet at max(a) - t, with t the root of weight (t - d) + sum_k
    max(t - (max(a) - a_k), 0) = 0. Up: the first largest entry alone moves.
    """
    top, leader = a.max(dim=-1, keepdim=True)
    below = (top - a).sort(dim=-1).values
    counts = torch.arange(1, a.shape[-1] + 1, dtype=a.dtype, device=a.device)
    levels = (weight * d[..., None] + below.cumsum(-1)) / (weight + counts)
    after = torch.cat([below[..., 1:], torch.full_like(below[..., :1], torch.inf)], dim=-1)
    first = (levels <= after).to(torch.uint8).argmax(dim=-1, keepdim=True)
    lowered = (levels.gather(-1, first) - (top - a)).clamp(min=0)
    raised = torch.zeros_like(a).scatter(-1, leader, d[..., None] * weight / (1 + weight))
    return torch.where(d[..., None] > 0, lowered, raised)


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

    Raises
    ------
    ValueError
        If the shapes don't fit or the weight isn't positive.

    References
    ----------
    .. [1] A. Bergmeister et al., "A projection-based framework for gradient-free and parallel
           learning", arXiv 2506.05878.

    Examples
    --------
    >>> from equipoise.estimators import project_max
    >>> a, z = project_max([1.0, 3.0, 2.0], 5.0)
    >>> a, float(z)
    (array([1., 4., 2.]), 4.0)
    """
    weight = require_positive("weight", weight)
    (a, z), back = as_tensors(a=a, z=z)
    a = a.movedim(dim, -1)
    check_targets(z, a)
    new = a - max_displacement(a, a.amax(-1) - z, weight)
    return back(new.movedim(-1, dim)), back(new.amax(-1))


def check_targets(z: torch.Tensor, x: torch.Tensor) -> None:
    """One target for each vector along the last dimension."""
    if z.shape != x.shape[:-1]:
        raise ValueError(f"z has shape {tuple(z.shape)}; expected {tuple(x.shape[:-1])}")


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

    Raises
    ------
    ValueError
        If the shapes don't fit or the weight isn't positive.

    Examples
    --------
    >>> from equipoise.estimators import project_sum
    >>> x, z = project_sum([1.0, 2.0], 6.0)
    >>> x, float(z)
    (array([2., 3.]), 5.0)
    """
    weight = require_positive("weight", weight)
    (x, z), back = as_tensors(x=x, z=z)
    x = x.movedim(dim, -1)
    check_targets(z, x)
    n = x.shape[-1]
    if mean:
        d = x.mean(-1) - z
        new = x - (weight * d / (n + weight))[..., None]
        return back(new.movedim(-1, dim)), back(new.mean(-1))
    d = x.sum(-1) - z
    new = x - (weight * d / (1 + weight * n))[..., None]
    return back(new.movedim(-1, dim)), back(new.sum(-1))


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
    (x,), back = as_tensors(x=x)
    if weights is None:
        return back(x.mean(dim, keepdim=True).expand_as(x).clone())
    w = torch.as_tensor(weights, dtype=x.dtype, device=x.device)
    if w.shape != (x.shape[dim],) or not bool((w >= 0).all()) or not 0 < float(w.sum()) < torch.inf:
        raise ValueError(
            f"weights={weights!r:.60} is not allowed; allowed: {x.shape[dim]} numbers of at least "
            "0, not all 0"
        )
    moved = x.movedim(dim, -1)
    mean = (moved @ w / w.sum())[..., None]
    return back(mean.expand_as(moved).movedim(-1, dim).clone())
