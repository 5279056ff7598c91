"""Quadratic forms in product kernels: games whose terms are pairs of rows.

    v(S) = sum_ab W_ab prod_{j in S} k_j(U_a, U_b) prod_{j not in S} b_j

has the values phi_j = <W, A_j> with A_j = z_j int prod_{l != j} (b_l + t z_l) dt and z = k - b;
absence factors b are 1 (identity removal) or the factors' means. The matrices A_j don't depend on
W. They are made tile by tile, never as a whole, and handed to whatever is summed over them: one
weight matrix, or thousands of permuted ones.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numba import njit

from equipoise.blocks import map_blocks

from .engines import LANES, choose_rule, lane_blocks, one_sided_passes, term_rows, two_sided_passes
from .kernels import ProductKernel, player_factors, player_logs
from .nodes import QuadratureRules, quadrature_rules

__all__ = [
    "PairValues",
    "Tile",
    "kernel_tile",
    "mean_factors",
    "pair_values",
    "product_tile",
    "sum_over_tiles",
]

_TILE = 256


@njit(cache=True, nogil=True)
def integrate_pairs(  # type: ignore[no-untyped-def]
    D, absence, limits, starts, nodes, weights, tol, last_exact
):
    """Replace z by A_j = z_j int prod_{l != j} (b_l + t z_l) dt, for every pair and player.

    Parameters
    ----------
    D : ndarray of shape (n_rows, n_blocks, n_players, LANES)
        z = k - b on entry, A on return.
    absence : ndarray of shape (n_players,)
        Absence factors b, the same for all pairs.
    limits, starts, nodes, weights, tol, last_exact
        The fields of `QuadratureRules`.

    Returns
    -------
    worst : float
        Largest bound on the quadrature's error relative to |z_j|.
    most_nodes : int
        The largest rule used.
    """
    n_rows, n_blocks, n_players, _ = D.shape
    pre = np.empty((n_players, LANES))
    acc = np.empty((n_players, LANES))
    run = np.empty(LANES)
    b = np.empty((n_players, LANES))
    for j in range(n_players):
        b[j] = absence[j]
    one_sided = (absence == 1.0).all()
    worst = 0.0
    most_nodes = 0
    for i in range(n_rows):
        for k in range(n_blocks):
            rule, z = choose_rule(D[i, k], limits, run)
            t = nodes[starts[rule] : starts[rule + 1]]
            w = weights[starts[rule] : starts[rule + 1]]
            if not (last_exact and rule == limits.size - 1):
                worst = max(worst, tol / max(1.0, z))
            acc[:] = 0.0
            if one_sided:
                one_sided_passes(D[i, k], t, w, pre, run, acc)
            else:
                two_sided_passes(D[i, k], b, t, w, pre, run, acc)
            for j in range(n_players):
                for lane in range(LANES):
                    D[i, k, j, lane] *= acc[j, lane]
            most_nodes = max(most_nodes, t.size)
    return worst, most_nodes


@dataclass(frozen=True)
class Tile:
    """The matrices A_j between some rows and some others.

    Parameters
    ----------
    rows, columns : slice
        Which rows of the pool; `columns` never starts before `rows`.
    A : ndarray of shape (n_players, n_rows, n_columns)
        Values of the pairs.
    """

    rows: slice
    columns: slice
    A: np.ndarray

    @property
    def on_diagonal(self) -> bool:
        """Whether rows and columns are the same; all other tiles stand for their mirror too."""
        return self.rows == self.columns


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
    for rows, columns in tiles(len(U)):
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


def tiles(n: int) -> Iterator[tuple[slice, slice]]:
    """Cut the upper triangle of an (n, n) matrix into square tiles."""
    cuts = [slice(start, min(start + _TILE, n)) for start in range(0, n, _TILE)]
    for k, rows in enumerate(cuts):
        for columns in cuts[k:]:
            yield rows, columns


@dataclass(frozen=True)
class PairValues:
    """What `sum_over_tiles` found.

    Parameters
    ----------
    total : ndarray
        Sum of what `consume` returned.
    n_nodes : int
        Most nodes used.
    worst : float
        Largest error bound of an integral.
    """

    total: Any
    n_nodes: int
    worst: float


def sum_over_tiles(
    n: int,
    factors: Callable[[slice, slice], np.ndarray],
    consume: Callable[[Tile], np.ndarray],
    rules: QuadratureRules,
    absence: np.ndarray,
    n_jobs: int | None = None,
) -> PairValues:
    """Add up a function of the tiles of A over the upper triangle.

    Parameters
    ----------
    n : int
        Number of rows in the pool.
    factors : callable
        From two slices to factors minus absence factors, as `kernel_tile` returns them.
    consume : callable
        From a `Tile` to an array. It must count tiles off the diagonal twice.
    rules : QuadratureRules
        Nodes.
    absence : ndarray of shape (n_players,)
        Absence factors.
    n_jobs : int or None
        Threads over tiles.

    Returns
    -------
    PairValues
        The sum.
    """

    def one(pair: tuple[slice, slice]) -> tuple[np.ndarray, float, int]:
        D = factors(*pair)
        worst, most = integrate_pairs(D, absence, *rules)
        n_columns = pair[1].stop - pair[1].start
        n_rows, n_blocks, n_players, lanes = D.shape
        A = np.moveaxis(D, 2, 0).reshape(n_players, n_rows, n_blocks * lanes)[..., :n_columns]
        return consume(Tile(*pair, A)), worst, most

    totals, worst, most = zip(*map_blocks(one, tiles(n), n_jobs), strict=True)
    return PairValues(sum(totals), max(most), max(worst))


def weighted_sum(weight: Callable[[slice, slice], np.ndarray], tile: Tile) -> np.ndarray:
    """Sum A_j and |A_j| against weights: rows 0 and 1 of the returned (2, n_players)."""
    W = weight(tile.rows, tile.columns)
    times = 1.0 if tile.on_diagonal else 2.0
    return times * np.stack(
        [np.einsum("jab,ab->j", tile.A, W), np.full(len(tile.A), np.abs(W).sum())]
    )


def pair_values(
    n: int,
    n_players: int,
    factors: Callable[[slice, slice], np.ndarray],
    weight: Callable[[slice, slice], np.ndarray],
    *,
    unit: bool,
    absence: np.ndarray | None = None,
    tol: float = 1e-12,
    n_nodes: str | int = "auto",
    n_jobs: int | None = None,
) -> tuple[np.ndarray, int, float]:
    """Compute the Shapley values of a quadratic form.

    Parameters
    ----------
    n : int
        Number of rows in the pool.
    n_players : int
        Number of players.
    factors : callable
        From two slices to factors minus absence factors, as `kernel_tile` returns them.
    weight : callable
        From two slices to a tile of the symmetric matrix W.
    unit : bool
        Whether all factors lie in [0, 1].
    absence : ndarray of shape (n_players,), default=None
        Absence factors; None is ones.
    tol : float, default=1e-12
        Tolerance, relative to sum |W|.
    n_nodes : "auto", "exact" or int, default="auto"
        Quadrature nodes.
    n_jobs : int or None
        Threads over tiles.

    Returns
    -------
    phi : ndarray of shape (n_players,)
        Values.
    most_nodes : int
        Most nodes used.
    error_bound : float
        Bound on the quadrature's absolute error of any value.
    """
    rules = quadrature_rules(n_players, "SV", n_nodes, tol, unit)
    absence = np.ones(n_players) if absence is None else absence
    found = sum_over_tiles(n, factors, partial(weighted_sum, weight), rules, absence, n_jobs)
    return found.total[0], found.n_nodes, float(found.worst * found.total[1, 0])
