"""The Hilbert-Schmidt independence criterion as a game of features.

    HSIC(S) = sum_ab W_ab prod_{j in S} k_j(x_a, x_b),    W = W[L], L the kernel matrix of Y,

is a sum of product games over pairs of rows; the weights are L, centred:

    biased     W = H L H / n^2
    unbiased   W_ab = [L_ab + s / ((n-1)(n-2)) - (r_a + r_b) / (n-2)] / (n(n-3)) off the diagonal,
               0 on it, with L's diagonal set to 0, r = L 1, s = 1' L 1.

In the joint game the features of Y are players too. It is no short sum of products, but W is linear
in L, so the derivative along the diagonal, whose integral the Shapley values are, has products of
all factors at t on both sides.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from equipoise.blocks import map_blocks

from .engines import exclusive_products, lane_blocks
from .kernels import ProductKernel, player_factors
from .nodes import exact_node_count, gauss_legendre_01, n_quadrature_nodes
from .pair_factors import tiles

__all__ = ["Centring", "Side", "centred_weights", "joint_values", "row_sums"]


class Side(NamedTuple):
    """One variable: kernel, sample, players, and the players' absence factors."""

    kernel: ProductKernel
    sample: np.ndarray
    player: np.ndarray
    n_players: int
    absence: np.ndarray

    def factors(self, rows: slice, columns: slice) -> np.ndarray:
        """Compute the players' factors of pairs, of shape (n_rows, n_columns, n_players)."""
        blocks = lane_blocks(self.sample[columns])
        F = player_factors(self.kernel, self.sample[rows], blocks, self.player, self.n_players)
        n_rows, n_blocks, d, lanes = F.shape
        n_columns = columns.stop - columns.start
        return np.swapaxes(F, 2, 3).reshape(n_rows, n_blocks * lanes, d)[:, :n_columns]

    def matrix(self, rows: slice, columns: slice) -> np.ndarray:
        """Compute a tile of the kernel matrix without its scale."""
        return self.kernel.unscaled(self.sample[rows], self.sample[columns])


class Centring(NamedTuple):
    """How a kernel matrix becomes weights: statistic, scaling, and its row sums."""

    statistic: str
    scaling: str
    sums: np.ndarray

    def weights(self, L: np.ndarray, rows: slice, columns: slice) -> np.ndarray:
        """Turn a tile of the kernel matrix into a tile of weights.

        Parameters
        ----------
        L : ndarray of shape (n_rows, n_columns)
            Tile of the kernel matrix.
        rows, columns : slice
            Where the tile lies.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            Tile of W.
        """
        n = len(self.sums)
        r_a, r_b, s = self.sums[rows, None], self.sums[None, columns], self.sums.sum()
        if self.statistic == "biased":
            square = n**2 if self.scaling == "n" else (n - 1) ** 2
            return (L - r_a / n - r_b / n + s / n**2) / square
        W = (L + s / ((n - 1) * (n - 2)) - (r_a + r_b) / (n - 2)) / (n * (n - 3))
        if rows == columns:
            np.fill_diagonal(W, 0.0)
        return W


def row_sums(
    matrix: Callable[[slice, slice], np.ndarray], n: int, off_diagonal: bool, n_players: int = 1
) -> np.ndarray:
    """Sum the rows of a symmetric matrix given by tiles, with or without its diagonal.

    `n_players` is the number of factors that a tile is made of, which bounds the tile's size.
    """
    sums = np.zeros(n)
    for rows, columns in tiles(n, n_players):
        K = matrix(rows, columns)
        if rows == columns:
            sums[rows] += K.sum(axis=1) - (np.diag(K) if off_diagonal else 0.0)
        else:
            sums[rows] += K.sum(axis=1)
            sums[columns] += K.sum(axis=0)
    return sums


def centred_weights(
    matrix: Callable[[slice, slice], np.ndarray], n: int, statistic: str, scaling: str
) -> Callable[[slice, slice], np.ndarray]:
    """Return the weights of a kernel matrix, both given by tiles.

    Parameters
    ----------
    matrix : callable
        From two slices to a tile of the kernel matrix.
    n : int
        Number of rows.
    statistic : {"biased", "unbiased"}
        Which estimate of HSIC.
    scaling : {"n", "n-1"}
        Denominator of "biased".

    Returns
    -------
    callable
        From two slices to a tile of W.
    """
    centring = Centring(statistic, scaling, row_sums(matrix, n, statistic == "unbiased"))
    return partial(centred_tile, matrix, centring)


def centred_tile(
    matrix: Callable[[slice, slice], np.ndarray], centring: Centring, rows: slice, columns: slice
) -> np.ndarray:
    """Compute a tile of the matrix and centre it."""
    return centring.weights(matrix(rows, columns), rows, columns)


def diagonal_matrix(side: Side, t: float, rows: slice, columns: slice) -> np.ndarray:
    """Compute a tile of prod_j (b_j + t (k_j - b_j))."""
    F = side.factors(rows, columns)
    return (side.absence + t * (F - side.absence)).prod(axis=-1)


def joint_tile(
    x: Side, y: Side, centrings: list[Centring], t: float, tile: tuple[slice, slice]
) -> list[np.ndarray]:
    """Add up the joint game's derivatives at t over a tile's pairs, for both sides' players."""
    rows, columns = tile
    times = 1.0 if rows == columns else 2.0
    D = [side.factors(rows, columns) - side.absence for side in (x, y)]
    F = [side.absence + t * z for side, z in zip((x, y), D, strict=True)]
    return [
        times
        * np.einsum(
            "ab,abj->j",
            centrings[1 - k].weights(F[1 - k].prod(axis=-1), rows, columns),
            D[k] * exclusive_products(F[k]),
        )
        for k in (0, 1)
    ]


def joint_values(
    x: Side, y: Side, statistic: str, scaling: str, tol: float, n_jobs: int | None = None
) -> tuple[np.ndarray, np.ndarray, float]:
    """Compute the values of the joint game of both sides' players.

    Parameters
    ----------
    x, y : Side
        The two variables.
    statistic : {"biased", "unbiased"}
        Which estimate of HSIC.
    scaling : {"n", "n-1"}
        Denominator of "biased".
    tol : float
        Tolerance of the quadrature, relative to the weights' total.
    n_jobs : int, optional
        Threads over tiles of pairs.

    Returns
    -------
    phi_x : ndarray of shape (n_players of x,)
        Values of the first side's players.
    phi_y : ndarray of shape (n_players of y,)
        Values of the second side's players.
    error_bound : float
        Bound on the quadrature's absolute error of any value.
    """
    n, d = len(x.sample), x.n_players + y.n_players
    m = exact_node_count(d)
    # Centring makes of each product of the other side at most this total of weights.
    total = 4.0 if scaling == "n" else 4.0 * (n / (n - 1)) ** 2
    if statistic == "unbiased":
        total = (n - 1) / (n - 3) * (1 + (3 * n - 2) / (n - 2))
    if x.kernel.unit and y.kernel.unit:
        m = min(m, n_quadrature_nodes(largest_z(x) + largest_z(y), d, tol))
    off_diagonal = statistic == "unbiased"
    phi = [np.zeros(x.n_players), np.zeros(y.n_players)]
    for t, w in zip(*gauss_legendre_01(m), strict=True):
        centrings = [
            Centring(
                statistic,
                scaling,
                row_sums(partial(diagonal_matrix, side, t), n, off_diagonal, d),
            )
            for side in (x, y)
        ]
        parts = map_blocks(partial(joint_tile, x, y, centrings, t), tiles(n, 4 * d), n_jobs)
        for part in parts:
            phi[0] += w * part[0]
            phi[1] += w * part[1]
    scale = x.kernel.scale * y.kernel.scale
    bound = 0.0 if m == exact_node_count(d) else scale * total * tol
    return scale * phi[0], scale * phi[1], bound


def largest_z(side: Side) -> float:
    """Compute the largest sum_j |k_j - b_j| of all pairs."""
    return max(
        float(np.abs(side.factors(rows, columns) - side.absence).sum(axis=-1).max())
        for rows, columns in tiles(len(side.sample), side.n_players)
    )
