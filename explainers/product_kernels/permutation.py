"""Permutation tests of attributions; the values of pairs do not depend on labels, so one pass does.

With A_j as in the pair engine and h the 0/1 labels of a pooled sample, every two-sample statistic
needs only h' A_j h, h' A_j 1 and 1' A_j 1. One stream of tiles against the matrix of all permuted
labels gives them for all permutations by matrix products. For HSIC the weights of a permutation are
the weights with rows and columns permuted.
"""

from functools import partial

import numpy as np

from .pair_engine import Tile

__all__ = [
    "label_forms",
    "permuted_labels",
    "permuted_weights",
    "two_sample_values",
]


def permuted_labels(
    labels: np.ndarray, n_permutations: int, generator: np.random.RandomState
) -> np.ndarray:
    """Return labels and their permutations side by side, of shape (N, 1 + n_permutations)."""
    columns = [labels, *(generator.permutation(labels) for _ in range(n_permutations))]
    return np.stack(columns, axis=1).astype(np.float64)


def label_forms(H: np.ndarray, off_diagonal: bool, tile: Tile) -> np.ndarray:
    """Compute a tile's share of h' A h, h' A 1 and 1' A 1 for all labels.

    Parameters
    ----------
    H : ndarray of shape (N, P)
        Labels, a column each.
    off_diagonal : bool
        Whether pairs of a row with itself are left out.
    tile : Tile
        The pairs.

    Returns
    -------
    ndarray of shape (3, n_players, P)
        The three forms.
    """
    left, right = H[tile.rows], H[tile.columns]
    forms = np.empty((3, len(tile.A), H.shape[1]))
    for j, A in enumerate(tile.A):
        if tile.on_diagonal and off_diagonal:
            A = A - np.diag(np.diag(A))
        times = 1.0 if tile.on_diagonal else 2.0
        forms[0, j] = times * np.einsum("ap,ap->p", left, A @ right)
        forms[1, j] = A.sum(axis=1) @ left
        if not tile.on_diagonal:
            forms[1, j] += A.sum(axis=0) @ right
        forms[2, j] = times * A.sum()
    return forms


def two_sample_values(forms: np.ndarray, n: int, m: int, statistic: str) -> np.ndarray:
    """Combine the forms of n rows with label 1 and m with label 0 into MMD attributions.

    Parameters
    ----------
    forms : ndarray of shape (3, n_players, P)
        h' A h, h' A 1 and 1' A 1; for "u" without the diagonal.
    n, m : int
        Sizes of the samples.
    statistic : {"u", "v"}
        Unbiased or biased.

    Returns
    -------
    ndarray of shape (n_players, P)
        Values.
    """
    one, mixed, everything = forms
    zero = everything - 2 * mixed + one
    across = mixed - one
    within = (n * (n - 1), m * (m - 1)) if statistic == "u" else (n * n, m * m)
    return one / within[0] + zero / within[1] - 2 * across / (n * m)


def weighted_permutations(W: np.ndarray, orders: np.ndarray, tile: Tile) -> np.ndarray:
    """Compute a tile's share of <W permuted, A_j>, of shape (n_players, n_orders)."""
    rows, columns = orders[:, tile.rows], orders[:, tile.columns]
    times = 1.0 if tile.on_diagonal else 2.0
    A = tile.A.reshape(len(tile.A), -1)
    values = np.empty((len(A), len(orders)))
    # A few permutations at a time: their weights fill a tile each.
    for start in range(0, len(orders), 32):
        some = slice(start, start + 32)
        weights = W[rows[some, :, None], columns[some, None, :]]
        values[:, some] = times * A @ weights.reshape(len(weights), -1).T
    return values


def permuted_weights(W: np.ndarray, orders: np.ndarray) -> partial:
    """Return the function of tiles that sums them against permuted weights.

    Parameters
    ----------
    W : ndarray of shape (N, N)
        Weights.
    orders : ndarray of int of shape (P, N)
        Permutations; the first is usually the identity.

    Returns
    -------
    callable
        For `sum_over_tiles`; its sum has shape (n_players, P).
    """
    return partial(weighted_permutations, W, orders)
