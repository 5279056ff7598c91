"""Payoff vectors of mixed profiles: each player's tensor contracted with the others' strategies.

v_i(x)[a] = u_i(a; x_{-i}). Strategies of neighbouring players make a product distribution, L in
front of axis i or R behind it, and one matrix-vector product contracts all their axes: u is read
once, and what is left is small.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numba import njit

__all__ = ["contract_payoffs", "contract_payoffs_flat", "pair_payoffs"]

#: Axes are contracted together up to this many joint actions: enough to shrink the tensor, cheap to
# form.
LARGEST_GROUP = 1024


def product_distribution(x: Sequence[Any], like: Any) -> Any:
    """Return the joint distribution (..., prod d_j) of independent strategies (..., d_j)."""
    joint = like[..., :1] * 0 + 1
    for x_j in x:
        joint = (joint[..., :, None] * x_j[..., None, :]).reshape((*joint.shape[:-1], -1))
    return joint


def contract_for(block: Any, x: Sequence[Any], i: int, n_actions: Sequence[int]) -> Any:
    """Contract one player's tensor (..., M) with the others' strategies, axes by groups."""
    first, last = 0, len(n_actions)  # axes that are still there
    while first < i or last > i + 1:
        batch = tuple(block.shape[:-1])
        if prod(n_actions[first:i]) >= prod(n_actions[i + 1 : last]) and first < i:
            stop = first + 1
            while stop < i and prod(n_actions[first : stop + 1]) <= LARGEST_GROUP:
                stop += 1
            L = product_distribution(x[first:stop], x[i])
            block = (L[..., None, :] @ block.reshape((*batch, L.shape[-1], -1)))[..., 0, :]
            first = stop
        else:
            start = last - 1
            while start > i + 1 and prod(n_actions[start - 1 : last]) <= LARGEST_GROUP:
                start -= 1
            R = product_distribution(x[start:last], x[i])
            block = (block.reshape((*batch, -1, R.shape[-1])) @ R[..., :, None])[..., 0]
            last = start
    return block


def contract_payoffs(payoffs: Any, x: Sequence[Any], n_actions: Sequence[int]) -> list[Any]:
    """Return every player's payoff vector, for NumPy arrays or torch tensors, with leading batch
    axes.

    Parameters
    ----------
    payoffs : array of shape (..., n, M)
        Payoff tensors with their profiles flattened in C order.
    x : list of arrays of shape (..., d_i)
        Strategies; their leading axes broadcast with those of `payoffs`.
    n_actions : sequence of int
        The d_i.

    Returns
    -------
    list of arrays of shape (..., d_i)
        v_i(x).

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games.normal_form.contraction import contract_payoffs
    >>> pennies = np.array([[1.0, -1.0, -1.0, 1.0], [-1.0, 1.0, 1.0, -1.0]])
    >>> contract_payoffs(pennies, [np.array([0.75, 0.25]), np.array([1.0, 0.0])], (2, 2))
    [array([ 1., -1.]), array([-0.5,  0.5])]
    """
    return [contract_for(payoffs[..., i, :], x, i, n_actions) for i in range(len(n_actions))]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def contract_payoffs_flat(
    payoffs: np.ndarray,
    x: np.ndarray,
    n_actions: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    sums: np.ndarray,
    v: np.ndarray,
) -> None:
    """Write all payoff vectors to `v`; strategies and vectors are concatenated over players.

    Parameters
    ----------
    payoffs : ndarray of shape (n, M)
        Payoff tensors with their profiles flattened in C order.
    x, v : ndarray of shape (sum d_i,)
        Strategies in, payoff vectors out.
    n_actions : ndarray of shape (n,), int64
        The d_i.
    left, right, sums : ndarray of shape (M,)
        Work space.

    Returns
    -------
    None
        The answer is in `v`.
    """
    n, M = payoffs.shape
    before = M
    stop = x.shape[0]
    after = 1
    right[0] = 1.0
    for i in range(n - 1, -1, -1):
        d = n_actions[i]
        start = stop - d
        before //= d
        # L: the joint distribution of players 0..i-1, the last of them fastest
        left[0] = 1.0
        size = 1
        offset = 0
        for j in range(i):
            d_j = n_actions[j]
            for p in range(size - 1, -1, -1):
                weight = left[p]
                for b in range(d_j - 1, -1, -1):
                    left[p * d_j + b] = weight * x[offset + b]
            size *= d_j
            offset += d_j
        for a in range(d):
            v[start + a] = 0.0
        row = 0
        for p in range(before):
            for a in range(d):
                total = 0.0
                for q in range(after):
                    total += payoffs[i, row + q] * right[q]
                v[start + a] += left[p] * total
                row += after
        # R for player i - 1: player i's strategy in front of the old one
        for a in range(d):
            for q in range(after):
                sums[a * after + q] = x[start + a] * right[q]
        after *= d
        for q in range(after):
            right[q] = sums[q]
        stop = start


def pair_payoffs(payoffs: np.ndarray, x: Sequence[np.ndarray], i: int, j: int) -> np.ndarray:
    """Return u_i with all strategies put in except those of players i and j.

    Parameters
    ----------
    payoffs : ndarray of shape (n, d_0, ..., d_{n-1})
        Payoff tensors.
    x : list of ndarray of shape (d_k,)
        Strategies.
    i, j : int
        Two different players.

    Returns
    -------
    ndarray of shape (d_i, d_j)
        The derivative of v_i with respect to x_j.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games.normal_form.contraction import pair_payoffs
    >>> u = np.arange(16.0).reshape(2, 2, 2, 2)[:, 0]
    >>> pair_payoffs(u, [np.ones(2) / 2] * 2, 1, 0)
    array([[ 8., 10.],
           [ 9., 11.]])
    """
    block = payoffs[i]
    for k in range(len(x) - 1, -1, -1):
        if k not in (i, j):
            block = np.tensordot(block, x[k], axes=(k, 0))
    return block if i < j else block.T
