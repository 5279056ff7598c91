"""What a stakeholder gains by deploying another design: arrays for all profiles at once.

k(z) = sum_i max_b [u_i(b, z_{-i}) - u_i(z)] is zero exactly at pure Nash equilibria, and the least
payment that makes z one. Obedience of a joint distribution pi is linear in pi:
sum_{a: a_i = r} pi(a) [u_i(b, a_{-i}) - u_i(r, a_{-i})] <= 0 for all i, r, b (CE), or
sum_a pi(a) [u_i(b, a_{-i}) - u_i(a)] <= 0 for all i, b (CCE).
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = [
    "across",
    "best_replies",
    "implementation_costs",
    "obedience_rows",
    "own_line",
    "player_rows",
    "pure_equilibria",
    "regrets",
]

Array = np.ndarray


def across(place: Iterable[Any]) -> Any:
    """The index that picks profiles of all stakeholders' payoffs at once."""
    return (slice(None), *place)


def own_line(z: Sequence[int], i: int) -> Any:
    """The index of the profiles that differ from z in stakeholder i's design alone."""
    return (*z[:i], slice(None), *z[i + 1 :])


def player_rows(tensor: Array, i: int) -> Array:
    """Player i's designs as rows, the others' joint designs as columns: shape (d_i, M / d_i)."""
    return np.moveaxis(tensor, i, 0).reshape(tensor.shape[i], -1)


def best_replies(payoffs: Array) -> list[Array]:
    """max_b u_i(b, a_{-i}) for each player, with axis i kept at length 1."""
    return [u.max(axis=i, keepdims=True) for i, u in enumerate(payoffs)]


def regrets(payoffs: Array) -> Array:
    """max_b u_i(b, a_{-i}) - u_i(a), of the shape of the payoffs (n, d_0, ..., d_{n-1})."""
    return np.stack([best - u for best, u in zip(best_replies(payoffs), payoffs, strict=True)])


def implementation_costs(payoffs: Array) -> Array:
    """k(a) of each profile: shape (d_0, ..., d_{n-1})."""
    cost = np.zeros(payoffs.shape[1:])
    for best, u in zip(best_replies(payoffs), payoffs, strict=True):
        cost += best
        cost -= u
    return cost


def pure_equilibria(payoffs: Array, tol: float = 0.0) -> Array:
    """Mask of the profiles where nobody gains more than `tol`: shape (d_0, ..., d_{n-1})."""
    stable = np.ones(payoffs.shape[1:], dtype=bool)
    for best, u in zip(best_replies(payoffs), payoffs, strict=True):
        stable &= u >= best - tol
    return stable


def correlated_block(u: Array, i: int, columns: Array, margin: float | Array) -> sp.csr_array:
    """Rows (r, b), r != b, of player i's obedience; margins of shape (told, played, rest)."""
    A, place = player_rows(u, i), player_rows(columns, i)  # (d, R)
    d, rest = A.shape
    told, played = np.nonzero(~np.eye(d, dtype=bool))
    more = margin[told, played] if isinstance(margin, np.ndarray) else margin
    values = A[played] - A[told] + more  # (d (d - 1), R)
    starts = np.arange(0, len(told) * rest + 1, rest)
    return sp.csr_array(
        (values.ravel(), place[told].ravel(), starts), shape=(len(told), columns.size)
    )


def coarse_block(u: Array, i: int, margin: float | Array) -> sp.csr_array:
    """Rows b of player i's obedience before he is told anything; margins as above."""
    rows = []
    moved = [d for j, d in enumerate(u.shape) if j != i]
    for b in range(u.shape[i]):
        gain = np.take(u, [b], axis=i) - u
        first = np.moveaxis(gain, i, 0)
        if isinstance(margin, np.ndarray):
            first += margin[:, b].reshape(-1, *moved)
        else:
            first += margin
        first[b] = 0.0
        rows.append(gain.ravel())
    return sp.csr_array(np.array(rows))


def obedience_rows(payoffs: Array, kind: str, margin: float | list[Array] = 0.0) -> sp.csr_array:
    """The matrix A with A @ pi <= 0 exactly where pi is a (coarse) correlated equilibrium.

    Parameters
    ----------
    payoffs : ndarray of shape (n, d_0, ..., d_{n-1})
        Payoffs.
    kind : {"ce", "cce"}
        Correlated, or coarse correlated.
    margin : float or list of ndarray of shape (d_i, d_i, M / d_i), default=0.0
        By how much obeying must be better, for each unit of probability that would be moved; also
        for each player by design told, design played and the others' designs.

    Returns
    -------
    scipy.sparse.csr_array of shape (n_rows, M)
        Players one after another; a game in which nobody has a choice has no rows.
    """
    n, *shape = payoffs.shape
    columns = np.arange(int(np.prod(shape))).reshape(shape)
    own: list[float | Array] = list(margin) if isinstance(margin, list) else [margin] * n
    blocks = [
        correlated_block(payoffs[i], i, columns, own[i])
        if kind == "ce"
        else coarse_block(payoffs[i], i, own[i])
        for i in range(n)
        if shape[i] > 1
    ]
    if not blocks:
        return sp.csr_array((0, columns.size))
    return sp.csr_array(sp.vstack(blocks, format="csr"))
