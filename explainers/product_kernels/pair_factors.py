"""Factors of pairs of rows, tile by tile: of a kernel, or of products of one point's factors."""

from collections.abc import Iterator

import numpy as np

from .engines import LANES, lane_blocks, term_rows
from .kernels import ProductKernel, player_factors, player_logs

__all__ = ["kernel_tile", "mean_factors", "point_factors", "product_tile", "tiles"]

_LARGEST_SIDE = 256
_TILE_BYTES = 2**24  # of one array of all players' factors


def tiles(n: int, n_players: int = 1) -> Iterator[tuple[slice, slice]]:
    """Cut the upper triangle of an (n, n) matrix into square tiles, smaller with many players."""
    wanted = int((_TILE_BYTES / (8 * max(1, n_players))) ** 0.5) // LANES * LANES
    side = min(_LARGEST_SIDE, max(LANES, wanted))
    cuts = [slice(start, min(start + side, n)) for start in range(0, n, side)]
    for k, rows in enumerate(cuts):
        for columns in cuts[k:]:
            yield rows, columns


def kernel_tile(
    kernel: ProductKernel,
    U: np.ndarray,
    player: np.ndarray,
    n_players: int,
    absence: np.ndarray,
    rows: slice,
    columns: slice,
) -> np.ndarray:
    """Compute k_j(U_a, U_b) - b_j, side by side in lanes.

    Parameters
    ----------
    kernel : ProductKernel
        Kernel of the form.
    U : ndarray of shape (N, d)
        Pool of rows.
    player : ndarray of shape (d,)
        Which player a column belongs to.
    n_players : int
        Number of players.
    absence : ndarray of shape (n_players,)
        Absence factors b.
    rows, columns : slice
        The pairs.

    Returns
    -------
    ndarray of shape (n_rows, n_blocks, n_players, LANES)
        Factors minus absence factors.
    """
    blocks = lane_blocks(U[columns])
    if (absence == 1).all():
        return player_factors(kernel, U[rows], blocks, player, n_players, minus_one=True)
    return player_factors(kernel, U[rows], blocks, player, n_players) - absence[:, None]


def mean_factors(
    kernel: ProductKernel, U: np.ndarray, player: np.ndarray, n_players: int
) -> np.ndarray:
    """Average each player's factor over all pairs of rows, of shape (n_players,)."""
    total = np.zeros(n_players)
    for rows, columns in tiles(len(U), n_players):
        F = player_factors(kernel, U[rows], lane_blocks(U[columns]), player, n_players)
        n_columns = columns.stop - columns.start
        sums = np.moveaxis(F, 2, 0).reshape(n_players, len(F), -1)[..., :n_columns].sum(axis=(1, 2))
        total += sums if rows == columns else 2 * sums
    return total / len(U) ** 2


def product_tile(logs: np.ndarray, factors: np.ndarray, rows: slice, columns: slice) -> np.ndarray:
    """Compute k_j(x, x_a) k_j(x, x_b) - 1 for one point x, side by side in lanes.

    Parameters
    ----------
    logs : ndarray of shape (n_support, n_players)
        Log factors of x with the support points; empty if some factor has no logarithm.
    factors : ndarray of shape (n_support, n_players)
        The factors themselves; used where there are no logarithms.
    rows, columns : slice
        The pairs of support points.

    Returns
    -------
    ndarray of shape (n_rows, n_blocks, n_players, LANES)
        Products minus 1.
    """
    if logs.size:
        both = lane_blocks(logs[columns])[None] + logs[rows][:, None, :, None]
        return np.expm1(both, out=both)
    return lane_blocks(factors[columns])[None] * factors[rows][:, None, :, None] - 1.0


def point_factors(
    kernel: ProductKernel, x: np.ndarray, support: np.ndarray, player: np.ndarray, n_players: int
) -> tuple[np.ndarray, np.ndarray]:
    """Compute what `product_tile` takes: log factors and factors of one point."""
    blocks = lane_blocks(support)
    logs = player_logs(kernel, x[None], blocks, player, n_players)
    if logs is not None:
        return term_rows(logs)[0, : len(support)], np.empty((0, n_players))
    factors = player_factors(kernel, x[None], blocks, player, n_players)
    return np.empty((0, n_players)), term_rows(factors)[0, : len(support)]
