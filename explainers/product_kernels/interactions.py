"""Interactions of product games: one integral a subset, all pairs at once by matrix products.

For a subset T of k players, with D = a - b and F_l(t) = b_l + t D_l,

    g_T(t) = sum_r w_r prod_{j in T} D_rj prod_{l not in T} F_rl(t),

and every index is an integral of g_T against a weight in t:

    SII_T  = int g_T dt                       CHII_T = int k t^(k-1) g_T dt
    STI_T  = int k (1-t)^(k-1) g_T dt         FSII_T = (2k-1)!/((k-1)!)^2 int (t(1-t))^(k-1) g_T dt
    BII_T  = g_T(1/2)                         Moebius_T = g_T(0)

STI and FSII are the values at their top order k = `order`.
"""

from math import factorial
from typing import Any

import numpy as np

from .nodes import gauss_legendre_01, n_quadrature_nodes
from .product_games import checked_game

__all__ = [
    "INTERACTION_INDICES",
    "interaction_rule",
    "pair_interactions",
    "product_game_interactions",
    "subset_interactions",
]

INTERACTION_INDICES = ("SII", "STI", "FSII", "CHII", "BII", "Moebius")


def interaction_rule(
    index: str, order: int, n_players: int, z_sum: float | None = None, tol: float = 1e-12
) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes and weights of an index.

    Parameters
    ----------
    index : {"SII", "STI", "FSII", "CHII", "BII", "Moebius"}
        Interaction index.
    order : int
        Size k of the subsets.
    n_players : int
        Number of players.
    z_sum : float, optional
        Largest sum_j |a_j - b_j| of a term with factors in [0, 1]; with it only as many nodes are
        used as `tol` needs. None asks for the exact number.
    tol : float, default=1e-12
        Tolerance, relative to the total of the terms' weights.

    Returns
    -------
    t, w : ndarray of shape (n_nodes,)
        Nodes in [0, 1], and weights.

    Raises
    ------
    ValueError
        If there is no such index.

    Examples
    --------
    >>> from equipoise.explainers.product_kernels.interactions import interaction_rule
    >>> interaction_rule("BII", 2, 5)
    (array([0.5]), array([1.]))
    """
    if index == "BII":
        return np.array([0.5]), np.ones(1)
    if index == "Moebius":
        return np.zeros(1), np.ones(1)
    k = order
    constant = {"SII": 1, "STI": k, "CHII": k, "FSII": factorial(2 * k - 1) / factorial(k - 1) ** 2}
    extra = {"SII": 0, "STI": k - 1, "CHII": k - 1, "FSII": 2 * k - 2}
    if index not in extra:
        raise ValueError(f"index={index!r} is not available; allowed: {list(INTERACTION_INDICES)}")
    degree = max(0, n_players - k) + extra[index]
    m = (degree + 2) // 2
    if z_sum is not None:
        # On the ellipse |t| and |1 - t| are at most 1 + delta <= exp(delta): each adds 1 to Z.
        m = min(m, n_quadrature_nodes(z_sum + extra[index], 2 * m, tol / constant[index]))
    t, w = gauss_legendre_01(m)
    if index == "STI":
        return t, w * k * (1 - t) ** (k - 1)
    if index == "CHII":
        return t, w * k * t ** (k - 1)
    if index == "FSII":
        return t, w * constant[index] * (t * (1 - t)) ** (k - 1)
    return t, w


def pair_interactions(
    D: np.ndarray, B: np.ndarray | float, weights: np.ndarray, t: np.ndarray, w: np.ndarray
) -> np.ndarray:
    """Compute an interaction index for all pairs of players.

    Parameters
    ----------
    D : ndarray of shape (n_terms, n_players)
        a - b.
    B : ndarray of shape (n_terms, n_players), or 1.0
        Absence factors b.
    weights : ndarray of shape (n_terms, n_outputs)
        Weights of the terms.
    t, w : ndarray of shape (n_nodes,)
        The rule of the index.

    Returns
    -------
    ndarray of shape (n_players, n_players, n_outputs)
        Symmetric; the diagonal is 0.

    Notes
    -----
    For each node, with P = prod_l F_l and R = D / F, all pairs are R' diag(w P) R. A term with a
    factor of (nearly) 0 has no such quotient; it is added by itself, from products that leave two
    factors out.
    """
    d, n_outputs = D.shape[1], weights.shape[1]
    total = np.zeros((n_outputs, d, d))
    for node, weight in zip(t, w, strict=True):
        F = B + node * D
        small = np.abs(F).min(axis=1, initial=1.0) < 1e-100
        P = F[~small].prod(axis=1)
        R = D[~small] / F[~small]
        for o in range(n_outputs):
            total[o] += ((weight * weights[~small, o] * P)[:, None] * R).T @ R
        for r in np.flatnonzero(small):
            pairs = np.outer(D[r], D[r]) * products_leaving_two_out(F[r])
            total += weight * weights[r][:, None, None] * pairs
    total[:, np.arange(d), np.arange(d)] = 0.0
    return np.moveaxis((total + np.swapaxes(total, 1, 2)) / 2, 0, -1)


def products_leaving_two_out(F: np.ndarray) -> np.ndarray:
    """Multiply all factors but two, for every pair; O(d^2) without division."""
    d = len(F)
    between = np.ones((d, d))  # between[j, l] = prod F[j + 1 : l]
    for j in range(d - 2):
        between[j, j + 2 :] = np.cumprod(F[j + 1 : -1])
    before = np.concatenate([[1.0], np.cumprod(F)[:-1]])
    after = np.concatenate([np.cumprod(F[::-1])[::-1][1:], [1.0]])
    upper = np.triu(before[:, None] * between * after, 1)
    return upper + upper.T


def subset_interactions(
    D: np.ndarray,
    B: np.ndarray | float,
    weights: np.ndarray,
    subsets: list[tuple[int, ...]],
    t: np.ndarray,
    w: np.ndarray,
) -> np.ndarray:
    """Compute an interaction index for some subsets of players.

    Parameters
    ----------
    D, B, weights, t, w
        As in `pair_interactions`.
    subsets : list of tuple of int
        Players of each subset, without repetition.

    Returns
    -------
    ndarray of shape (n_subsets, n_outputs)
        Values.
    """
    values = np.zeros((len(subsets), weights.shape[1]))
    for node, weight in zip(t, w, strict=True):
        F = B + node * D
        for s, subset in enumerate(subsets):
            inside = list(subset)
            others = np.delete(F, inside, axis=1).prod(axis=1)
            values[s] += weight * (D[:, inside].prod(axis=1) * others) @ weights
    return values


def checked_subsets(
    subsets: Any, n_players: int, order: int | None = None
) -> list[tuple[int, ...]]:
    """Check that subsets hold distinct players in range, and `order` of them where it is given."""
    checked = []
    for subset in subsets:
        players = tuple(int(j) for j in subset)
        if order is not None and len(players) != order:
            raise ValueError(f"pairs holds {players}, which doesn't have order={order} players")
        if len(set(players)) != len(players) or not all(0 <= j < n_players for j in players):
            raise ValueError(
                f"pairs holds {players}; players must be distinct numbers from 0 to {n_players - 1}"
            )
        checked.append(players)
    return checked


def product_game_interactions(
    weights: Any,
    presence: Any,
    absence: Any = 1.0,
    *,
    index: str = "SII",
    order: int = 2,
    subsets: Any = None,
) -> Any:
    """Compute interactions of a weighted sum of product games.

    Parameters
    ----------
    weights : array-like of shape (n_terms,) or (n_terms, n_outputs)
        Weights of the terms.
    presence : array-like of shape (n_terms, n_players)
        Factors of players who are present.
    absence : array-like broadcastable to (n_terms, n_players), default=1.0
        Factors of players who are absent.
    index : {"SII", "STI", "FSII", "CHII", "BII", "Moebius"}, default="SII"
        Interaction index.
    order : int, default=2
        Size of the subsets, and top order of "STI" and "FSII".
    subsets : list of tuple of int, default=None
        Subsets of `order` players; None takes all pairs, for order 2.

    Returns
    -------
    ndarray of shape (n_players, n_players) or (n_players, n_players, n_outputs)
        All pairs, if `subsets` is None; the diagonal is 0.
    dict of tuple to float or ndarray of shape (n_outputs,)
        The subsets' values, if they are given.

    Raises
    ------
    ValueError
        If shapes don't match, an entry isn't finite, or a parameter is out of range.

    Examples
    --------
    >>> from equipoise.explainers import product_game_interactions
    >>> product_game_interactions([2.0], [[0.5, 0.25]])
    array([[0.  , 0.75],
           [0.75, 0.  ]])
    """
    weights, presence, absence = checked_game(weights, presence, absence)
    if order < 1 or (subsets is None and order != 2):
        raise ValueError(f"order={order!r}: all subsets are computed for order 2; give subsets")
    d = presence.shape[1]
    t, w = interaction_rule(index, order, d)
    columns = weights.reshape(len(weights), -1) if weights.size else weights[:, None]
    D = presence - absence
    if subsets is None:
        return pair_interactions(D, absence, columns, t, w).reshape(d, d, *weights.shape[1:])
    chosen = checked_subsets(subsets, d, order)
    values = subset_interactions(D, absence, columns, chosen, t, w)
    values = values.reshape(len(chosen), *weights.shape[1:])
    return dict(zip(chosen, values if weights.ndim == 2 else values.tolist(), strict=True))
