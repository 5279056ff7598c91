"""Proximal maps of losses: argmin_u L(u, y) + (lam / 2) |u - u0|^2.

By Moreau, lam (u0 - u) is the gradient of the loss' Moreau envelope at u0, for convex L.
"""

from typing import Any

import torch

from .arrays import as_tensors, labels_of, require_positive
from .kernels import cross_entropy_rows

__all__ = [
    "cross_entropy_displacement",
    "prox_absolute",
    "prox_cross_entropy",
    "prox_hinge",
    "prox_huber",
    "prox_squared",
]

#: Newton steps at most; a handful is enough.
MAX_ITER = 50


def omega_of(x: torch.Tensor) -> torch.Tensor:
    """Wright's function: the w > 0 with w + log w = x.

    Two steps of Fritsch, Shafer and Crowley, each of which raises the error to the fourth power.
    """
    near = 0.56714329040978 + x * (0.36189625 + x * 0.0737)
    w = torch.where(x < -1, torch.exp(x.clamp(max=0)), near)
    w = torch.where(x > 1, x - torch.log(x.clamp(min=1)), w)
    for _ in range(2):
        r = x - w - torch.log(w)
        a = 1 + w
        q = 2 * a * (a + 2 / 3 * r)
        new = w * (1 + r / a * (q - r) / (q - 2 * r))
        w = torch.where(w > 0, new, 0.0)
    return w


def prox_cross_entropy(u0: Any, y: Any, lam: float = 1.0) -> Any:
    """Proximal map of the cross-entropy of softmax(u) to a label.

    With a = u0 + e_y / lam and c = logsumexp(u), softmax(u)_k = lam omega(a_k - log lam - c); c is
    the root of a convex decreasing function, found by Newton's method from below.

    Parameters
    ----------
    u0 : array-like or tensor of shape (..., K)
        Logits.
    y : array-like or tensor of shape (...)
        Labels, 0 to K - 1.
    lam : float, default=1.0
        Weight of the distance, > 0.

    Returns
    -------
    array or tensor of shape (..., K)
        Their sum is that of u0, and |u - u0| <= sqrt(2) / lam.

    Raises
    ------
    ValueError
        If lam isn't positive or a label isn't a column of u0.

    Examples
    --------
    >>> from equipoise.estimators import prox_cross_entropy
    >>> prox_cross_entropy([0.0, 0.0, 0.0], 0).round(6)
    array([ 0.489664, -0.244832, -0.244832])
    """
    (u0,), back = as_tensors(u0=u0)
    return back(u0 - cross_entropy_displacement(u0, labels_of(y, u0), lam))


def cross_entropy_displacement(u0: torch.Tensor, y: torch.Tensor, lam: float) -> torch.Tensor:
    """u0 - prox(u0) = (softmax(prox) - e_y) / lam, with no digits lost where it is small."""
    lam = require_positive("lam", lam)
    if u0.device.type != "cpu" or u0.dtype not in (torch.float32, torch.float64):
        return cross_entropy_steps(u0, y, lam)
    rows = u0.detach().reshape(-1, u0.shape[-1]).contiguous()
    moved = torch.empty_like(rows)
    cross_entropy_rows(rows.numpy(), y.reshape(-1).contiguous().numpy(), lam, moved.numpy())
    return moved.reshape(u0.shape)


def cross_entropy_steps(u0: torch.Tensor, y: torch.Tensor, lam: float) -> torch.Tensor:
    """The same for all rows at once, on any device."""
    own = torch.nn.functional.one_hot(y, u0.shape[-1]).bool()
    a = u0 + own.to(u0) / lam
    shift = torch.log(torch.as_tensor(lam, dtype=u0.dtype))
    c = a.amax(-1, keepdim=True) - 1 / lam
    tolerance = 8 * torch.finfo(u0.dtype).eps
    for _ in range(MAX_ITER):
        w = omega_of(a - shift - c)
        step = (lam * w.sum(-1, keepdim=True) - 1) / (lam * (w / (1 + w)).sum(-1, keepdim=True))
        c = c + step
        if bool((step.abs() <= tolerance * (1 + c.abs())).all()):
            break
    p = lam * omega_of(a - shift - c)
    others = p.masked_fill(own, 0.0)
    return torch.where(own, -others.sum(-1, keepdim=True), others) / lam


def prox_squared(u0: Any, y: Any, lam: float = 1.0) -> Any:
    """Proximal map of 1/2 (u - y)^2: the mean of y and u0 with weights 1 and lam.

    Parameters
    ----------
    u0, y : array-like or tensor
        Outputs and targets; broadcast against each other.
    lam : float, default=1.0
        Weight of the distance, > 0.

    Returns
    -------
    array or tensor
        The proximal point.

    Examples
    --------
    >>> from equipoise.estimators import prox_squared
    >>> prox_squared([0.0, 4.0], [1.0, 2.0])
    array([0.5, 3. ])
    """
    lam = require_positive("lam", lam)
    (u0, y), back = as_tensors(u0=u0, y=y)
    return back(u0 - (u0 - y) / (1 + lam))


def prox_absolute(u0: Any, y: Any, lam: float = 1.0) -> Any:
    """Proximal map of |u - y|: a step of at most 1 / lam towards y.

    Parameters
    ----------
    u0, y : array-like or tensor
        Outputs and targets; broadcast against each other.
    lam : float, default=1.0
        Weight of the distance, > 0.

    Returns
    -------
    array or tensor
        The proximal point.

    Examples
    --------
    >>> from equipoise.estimators import prox_absolute
    >>> prox_absolute([0.0, 0.0], [0.5, 3.0])
    array([0.5, 1. ])
    """
    lam = require_positive("lam", lam)
    (u0, y), back = as_tensors(u0=u0, y=y)
    return back(u0 - (u0 - y).clamp(-1 / lam, 1 / lam))


def prox_huber(u0: Any, y: Any, lam: float = 1.0, delta: float = 1.0) -> Any:
    """Proximal map of Huber's loss: r^2 / 2 up to |r| = delta, then delta (|r| - delta / 2).

    Parameters
    ----------
    u0, y : array-like or tensor
        Outputs and targets; broadcast against each other.
    lam : float, default=1.0
        Weight of the distance, > 0.
    delta : float, default=1.0
        Where the loss becomes linear, > 0.

    Returns
    -------
    array or tensor
        The proximal point.

    Examples
    --------
    >>> from equipoise.estimators import prox_huber
    >>> prox_huber([0.0, 0.0], [1.0, 10.0])
    array([0.5, 1. ])
    """
    lam, delta = require_positive("lam", lam), require_positive("delta", delta)
    (u0, y), back = as_tensors(u0=u0, y=y)
    return back(u0 - ((u0 - y) / (1 + lam)).clamp(-delta / lam, delta / lam))


def prox_hinge(u0: Any, y: Any, lam: float = 1.0) -> Any:
    """Proximal map of the sum over the classes of the hinge loss max(0, 1 - s_k u_k).

    s_k is 1 for the label and -1 for the other classes.

    Parameters
    ----------
    u0 : array-like or tensor of shape (..., K)
        Scores.
    y : array-like or tensor of shape (...)
        Labels, 0 to K - 1.
    lam : float, default=1.0
        Weight of the distance, > 0.

    Returns
    -------
    array or tensor of shape (..., K)
        The proximal point.

    Examples
    --------
    >>> from equipoise.estimators import prox_hinge
    >>> prox_hinge([[0.5, 2.0, -3.0]], [0])
    array([[ 1.,  1., -3.]])
    """
    lam = require_positive("lam", lam)
    (u0,), back = as_tensors(u0=u0)
    own = torch.nn.functional.one_hot(labels_of(y, u0), u0.shape[-1])
    s = 2.0 * own.to(u0) - 1
    return back(u0 + s * (1 - s * u0).clamp(0, 1 / lam))
