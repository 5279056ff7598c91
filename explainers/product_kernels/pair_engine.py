"""Quadratic forms in product kernels: games whose terms are pairs of rows.

    v(S) = sum_ab W_ab prod_{j in S} k_j(U_a, U_b) prod_{j not in S} b_j

has the values phi_j = <W, A_j> with A_j = z_j int prod_{l != j} (b_l + t z_l) dt and z = k - b;
absence factors b are 1 (identity removal) or the factors' means. The matrices A_j don't depend on
W. They are made tile by tile, never as a whole, and handed to whatever is summed over them: one
weight matrix, or thousands of permuted ones.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from equipoise.blocks import map_blocks

from .engine_choice import COMPILED, Engine
from .engines import (
    LANES,
    choose_rule,
    numpy_integrals,
    one_sided_passes,
    term_rows,
    two_sided_passes,
)
from .kernels import ProductKernel
from .nodes import QuadratureRules, quadrature_rules
from .pair_factors import kernel_tile, tiles

__all__ = [
    "Integrals",
    "PairValues",
    "Tile",
    "compiled_integrals",
    "kernel_integrals",
    "pair_values",
    "sum_over_tiles",
]


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


class PairValues(NamedTuple):
    """What `sum_over_tiles` found: the sum, most nodes used, the largest bound of an integral."""

    total: Any
    n_nodes: int
    worst: float


#: From two slices to A of shape (n_players, n_rows, n_columns), its error bound, and nodes used.
Integrals = Callable[[slice, slice], tuple[np.ndarray, float, int]]


def compiled_integrals(
    factors: Callable[[slice, slice], np.ndarray],
    absence: np.ndarray,
    rules: QuadratureRules,
    rows: slice,
    columns: slice,
) -> tuple[np.ndarray, float, int]:
    """Compute a tile of A by the compiled engine.

    Parameters
    ----------
    factors : callable
        From two slices to factors minus absence factors, as `kernel_tile` returns them.
    absence : ndarray of shape (n_players,)
        Absence factors.
    rules : QuadratureRules
        Nodes.
    rows, columns : slice
        The pairs.

    Returns
    -------
    A : ndarray of shape (n_players, n_rows, n_columns)
        Values of the pairs.
    worst : float
        Largest error bound of an integral.
    n_nodes : int
        Most nodes used.
    """
    D = factors(rows, columns)
    worst, most = integrate_pairs(D, absence, *rules)
    n_rows, n_blocks, n_players, lanes = D.shape
    A = np.moveaxis(D, 2, 0).reshape(n_players, n_rows, n_blocks * lanes)
    return A[..., : columns.stop - columns.start], worst, most


def numpy_pair_integrals(
    factors: Callable[[slice, slice], np.ndarray],
    absence: np.ndarray,
    rules: QuadratureRules,
    rows: slice,
    columns: slice,
) -> tuple[np.ndarray, float, int]:
    """Compute the same in NumPy."""
    D = term_rows(factors(rows, columns))[:, : columns.stop - columns.start]
    A, worst, most, _ = numpy_integrals(D, absence, rules)
    return np.moveaxis(A, 2, 0), worst, most


def kernel_integrals(
    kernel: ProductKernel,
    U: np.ndarray,
    player: np.ndarray,
    n_players: int,
    absence: np.ndarray,
    *,
    tol: float,
    engine: Engine = COMPILED,
) -> Integrals:
    """Return the function that computes tiles of A for a kernel.

    Parameters
    ----------
    kernel : ProductKernel
        Kernel of the form, without its scale.
    U : ndarray of shape (N, d)
        Pool of rows.
    player : ndarray of shape (d,)
        Which player a column belongs to.
    n_players : int
        Number of players.
    absence : ndarray of shape (n_players,)
        Absence factors.
    tol : float
        Tolerance, relative to sum |W|.
    engine : Engine
        Who computes.

    Returns
    -------
    callable
        See `Integrals`.
    """
    rules = quadrature_rules(n_players, "SV", "auto", engine.tolerance(tol), kernel.unit)
    if engine.name == "torch":
        from .torch_engine import torch_pair_integrals

        return partial(
            torch_pair_integrals, kernel, U, player, n_players, absence, rules,
            engine.device, engine.dtype,
        )  # fmt: skip
    factors = partial(kernel_tile, kernel, U, player, n_players, absence)
    compute = numpy_pair_integrals if engine.name == "numpy" else compiled_integrals
    return partial(compute, factors, absence, rules)


def sum_over_tiles(
    n: int,
    n_players: int,
    integrals: Integrals,
    consume: Callable[[Tile], np.ndarray],
    n_jobs: int | None = None,
) -> PairValues:
    """Add up a function of the tiles of A over the upper triangle.

    Parameters
    ----------
    n, n_players : int
        Number of rows in the pool, and of players.
    integrals : callable
        Computes tiles of A.
    consume : callable
        From a `Tile` to an array. It must count tiles off the diagonal twice.
    n_jobs : int or None
        Threads over tiles.

    Returns
    -------
    PairValues
        The sum.
    """

    def one(pair: tuple[slice, slice]) -> tuple[np.ndarray, float, int]:
        A, worst, most = integrals(*pair)
        return consume(Tile(*pair, A)), worst, most

    totals, worst, most = zip(*map_blocks(one, tiles(n, n_players), n_jobs), strict=True)
    return PairValues(sum(totals), max(most), max(worst))


def weighted_sum(weight: Callable[[slice, slice], np.ndarray], tile: Tile) -> np.ndarray:
    """Sum A_j and |W| against weights: rows 0 and 1 of the returned (2, n_players)."""
    W = weight(tile.rows, tile.columns)
    times = 1.0 if tile.on_diagonal else 2.0
    return times * np.stack(
        [np.einsum("jab,ab->j", tile.A, W), np.full(len(tile.A), np.abs(W).sum())]
    )


def pair_values(
    n: int,
    n_players: int,
    integrals: Integrals,
    weight: Callable[[slice, slice], np.ndarray],
    n_jobs: int | None = None,
) -> tuple[np.ndarray, int, float]:
    """Compute the Shapley values of a quadratic form.

    Parameters
    ----------
    n, n_players : int
        Number of rows in the pool, and of players.
    integrals : callable
        Computes tiles of A.
    weight : callable
        From two slices to a tile of the symmetric matrix W.
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
    found = sum_over_tiles(n, n_players, integrals, partial(weighted_sum, weight), n_jobs)
    return found.total[0], found.n_nodes, float(found.worst * found.total[1, 0])
