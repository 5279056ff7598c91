"""Estimators of HSIC attributions over all pairs of rows: exact, in blocks, and with p-values."""

from typing import Any

import numpy as np

from .engine_choice import Engine
from .estimates import Estimate, averaged, tested
from .hsic_engine import Side, centred_weights, joint_values
from .pair_engine import Integrals, kernel_integrals, pair_values, sum_over_tiles
from .permutation import permuted_weights

__all__ = ["block_hsic", "full_hsic", "joint_hsic", "permuted_hsic"]


def side_integrals(side: Side, tol: float, engine: Engine) -> Integrals:
    """Return the function that computes tiles of the matrices A_j of one side's players."""
    return kernel_integrals(
        side.kernel, side.sample, side.player, side.n_players, side.absence, tol=tol, engine=engine
    )


def full_hsic(
    players: Side,
    other: Side,
    statistic: str,
    scaling: str,
    *,
    tol: float,
    engine: Engine,
    n_jobs: int | None,
) -> Estimate:
    """Compute the values over all pairs.

    Parameters
    ----------
    players : Side
        The side whose players get the values.
    other : Side
        The other side, taken whole.
    statistic : {"biased", "unbiased"}
        Which estimate of HSIC.
    scaling : {"n", "n-1"}
        Denominator of "biased".
    tol : float
        Tolerance of the quadrature.
    engine : Engine
        Who computes the integrals.
    n_jobs : int or None
        Threads.

    Returns
    -------
    Estimate
        Exact values.
    """
    n = len(players.sample)
    scale = players.kernel.scale * other.kernel.scale
    values, _, bound = pair_values(
        n,
        players.n_players,
        side_integrals(players, tol, engine),
        centred_weights(other.matrix, n, statistic, scaling),
        n_jobs,
    )
    return Estimate(scale * values, scale * bound)


def joint_hsic(
    x: Side, y: Side, statistic: str, scaling: str, *, tol: float, n_jobs: int | None
) -> Estimate:
    """Compute the values of the joint game of both sides' players, X's before Y's.

    Parameters
    ----------
    x, y : Side
        The two variables.
    statistic, scaling, tol, n_jobs
        As in `full_hsic`.

    Returns
    -------
    Estimate
        Exact values.
    """
    phi_x, phi_y, bound = joint_values(x, y, statistic, scaling, tol, n_jobs)
    return Estimate(np.concatenate([phi_x, phi_y]), bound)


def block_hsic(
    x: Side,
    y: Side,
    full: Any,
    n_blocks: int | None,
    least: int,
    generator: np.random.RandomState,
) -> Estimate:
    """Average exact values over blocks of rows.

    Parameters
    ----------
    x, y : Side
        The two variables.
    full : callable
        From the two sides of a block to its `Estimate`.
    n_blocks : int or None
        Number of blocks; None is the square root of the number of rows.
    least : int
        Rows that a block needs.
    generator : RandomState
        Shuffles the rows.

    Returns
    -------
    Estimate
        With standard errors.
    """
    n = len(x.sample)
    count = max(2, int(np.sqrt(n))) if n_blocks is None else n_blocks
    if n // count < least:
        raise ValueError(f"n_blocks={count} leaves fewer than {least} of {n} rows a block")
    return averaged(
        [
            full(x._replace(sample=x.sample[rows]), y._replace(sample=y.sample[rows]))
            for rows in np.array_split(generator.permutation(n), count)
        ]
    )


def permuted_hsic(
    players: Side,
    other: Side,
    statistic: str,
    scaling: str,
    n_permutations: int,
    max_t: bool,
    generator: np.random.RandomState,
    *,
    tol: float,
    engine: Engine,
    n_jobs: int | None,
) -> Estimate:
    """Compute the values over all pairs, and those of permuted rows of the other side.

    Parameters
    ----------
    players, other, statistic, scaling, tol, engine, n_jobs
        As in `full_hsic`.
    n_permutations : int
        Number of permutations.
    max_t : bool
        Whether to adjust the p-values for all players.
    generator : RandomState
        Permutes the rows.

    Returns
    -------
    Estimate
        With p-values.
    """
    n = len(players.sample)
    everything = slice(0, n)
    W = centred_weights(other.matrix, n, statistic, scaling)(everything, everything)
    orders = [np.arange(n), *(generator.permutation(n) for _ in range(n_permutations))]
    found = sum_over_tiles(
        n,
        players.n_players,
        side_integrals(players, tol, engine),
        permuted_weights(W, np.array(orders)),
        n_jobs,
    )
    scale = players.kernel.scale * other.kernel.scale
    return tested(scale * found.total, scale * found.worst * float(np.abs(W).sum()), max_t)
