"""Attributions of a game of removals: blocks of work, and the engines behind them."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from equipoise.blocks import iter_blocks, map_blocks

from .engine_choice import COMPILED, Engine
from .engines import LANES, identity_values, numpy_values, term_rows, two_sided_values
from .esp import esp_values
from .expansion import densified
from .fourier import FourierGame, fourier_values
from .kernels import ProductKernel, player_factors
from .nodes import quadrature_error_bound, quadrature_rules
from .player_game import PIECE_MIB, PlayerGame
from .sparse_engine import sparse_identity_values

__all__ = ["Attribution", "attribute"]


class Attribution(NamedTuple):
    """Values of all players for all rows, and how exact they are."""

    values: np.ndarray  # (n, n_players, n_outputs)
    n_nodes: int
    error_bound: float


def attribute(
    game: PlayerGame | FourierGame,
    X: Any,
    *,
    index: str = "SV",
    n_nodes: str | int = "auto",
    tol: float = 1e-12,
    method: str = "quadrature",
    engine: Engine = COMPILED,
    working_memory: float | None = None,
    n_jobs: int | None = None,
) -> Attribution:
    """Compute the players' values for each row.

    Parameters
    ----------
    game : PlayerGame or FourierGame
        What is attributed. A FourierGame has an engine of its own, and exact nodes with "auto".
    X : ndarray or sparse array of shape (n, n_columns)
        Rows explained.
    index : str, default="SV"
        Semivalue, see `quadrature_rules`.
    n_nodes : "auto", "exact" or int, default="auto"
        Quadrature nodes.
    tol : float, default=1e-12
        Tolerance of "auto", relative to the coefficients' total.
    method : {"quadrature", "esp"}, default="quadrature"
        Algorithm.
    engine : Engine
        Engine of the quadrature, the compiled one by default.
    working_memory : float or None
        Budget in MiB for temporaries.
    n_jobs : int or None
        Threads over blocks of rows.

    Returns
    -------
    Attribution
        Values, most nodes used, and a bound on the absolute error of any value.
    """
    d = game.n_players
    if isinstance(game, FourierGame):
        rules = quadrature_rules(d, index, n_nodes, tol, unit_factors=False)
        values, error, most_nodes, largest = fourier_values(
            game, densified(X, working_memory), rules, working_memory=working_memory, n_jobs=n_jobs
        )
        bound = total_bound(error, index, n_nodes, largest, d, unit=False)
        return Attribution(values, most_nodes, bound)
    if sparse.issparse(X):
        if game.skips_nulls and method == "quadrature" and engine.name == "numba":
            return attribute_sparse(game, X, index, n_nodes, tol, n_jobs)
        X = densified(X, working_memory)
    shape = (len(X), d, game.expansion.n_outputs)
    unit = all(kernel.unit for kernel in game.expansion.terms)
    rules = quadrature_rules(d, index, n_nodes, engine.tolerance(tol), unit)
    if engine.name == "torch" and method == "quadrature":
        from .torch_engine import torch_values

        values, error, most_nodes, largest = torch_values(
            game, X, rules, device=engine.device, dtype=engine.dtype, working_memory=working_memory
        )
        bound = total_bound(error, index, n_nodes, largest, d, unit)
        return Attribution(values, most_nodes, bound)
    values, error = np.zeros(shape), np.zeros(shape)
    most_nodes, largest = 0, 0.0
    piece_mib = PIECE_MIB if working_memory is None else min(PIECE_MIB, working_memory)
    for kernel, support, coef in game.pieces(piece_mib):
        for B, row_weights in game.absence_rows(kernel, support, working_memory):

            def block_values(
                rows: slice,
                kernel: ProductKernel = kernel,
                support: np.ndarray = support,
                coef: np.ndarray = coef,
                B: np.ndarray | None = B,
                row_weights: np.ndarray = row_weights,
            ) -> tuple[np.ndarray, np.ndarray, int, float]:
                A = player_factors(kernel, X[rows], support, game.player, d, minus_one=B is None)
                if method == "esp":
                    D = term_rows(A)
                    phi = esp_values(D, coef.reshape(D.shape[1], -1))
                    return phi, np.zeros(1), 0, 0.0
                if engine.name == "numpy":
                    return numpy_block(A, B, row_weights, coef, rules)
                if B is None:
                    return identity_values(A, coef, *rules)
                return two_sided_values(A, B, row_weights, coef, *rules)

            blocks = list(iter_blocks(len(X), 8.0 * len(support) * d * LANES, piece_mib))
            for rows, part in zip(blocks, map_blocks(block_values, blocks, n_jobs), strict=True):
                values[rows] += part[0]
                error[rows] += part[1]
                most_nodes, largest = max(most_nodes, part[2]), max(largest, part[3])
    bound = total_bound(error, index, n_nodes, largest, d, unit)
    return Attribution(values, most_nodes, bound)


def total_bound(
    error: np.ndarray, index: str, n_nodes: str | int, largest: float, d: int, unit: bool
) -> float:
    """Turn the engines' error terms into a bound on the absolute error of any value."""
    error_bound = float(error.max(initial=0.0))
    if index == "SV" and not isinstance(n_nodes, str):
        # Without a bound for factors beyond [0, 1] the error is unknown, not small.
        bound = quadrature_error_bound(n_nodes, largest, d)
        return error_bound * max(1.0, largest) * bound if unit or bound == 0 else np.inf
    return error_bound


def attribute_sparse(
    game: PlayerGame, X: Any, index: str, n_nodes: str | int, tol: float, n_jobs: int | None
) -> Attribution:
    """Compute the values of sparse rows, skipping features that agree with a support point."""
    n, d = X.shape
    rules = quadrature_rules(d, index, n_nodes, tol)
    X = sparse.csr_array(X)
    values, error = np.zeros((2, n, d, game.expansion.n_outputs))
    most_nodes, largest = 0, 0.0
    blocks = list(iter_blocks(n, 1.0, 16 / 2**20))
    for kernel, support, coef in game.expansion.weighted_terms():
        parts = map_blocks(
            partial(sparse_block, X, kernel, sparse.csr_array(support), coef, rules), blocks, n_jobs
        )
        for rows, part in zip(blocks, parts, strict=True):
            values[rows] += part[0]
            error[rows] += part[1]
            most_nodes, largest = max(most_nodes, part[2]), max(largest, part[3])
    return Attribution(values, most_nodes, total_bound(error, index, n_nodes, largest, d, True))


def sparse_block(
    X: Any, kernel: ProductKernel, support: Any, coef: np.ndarray, rules: Any, rows: slice
) -> tuple[np.ndarray, np.ndarray, int, float]:
    """Compute the values of some rows."""
    return sparse_identity_values(kernel, X[rows], support, coef, rules)


def numpy_block(
    A: np.ndarray, B: np.ndarray | None, row_weights: np.ndarray, coef: np.ndarray, rules: Any
) -> tuple[np.ndarray, np.ndarray, int, float]:
    """Run the NumPy engine on factors laid out in lanes."""
    A = term_rows(A)
    weights = coef.reshape(A.shape[1], -1)
    if B is None:
        return numpy_values(A, 1.0, weights, rules)
    B = term_rows(B)
    parts = [
        numpy_values(A - row, row, w * weights, rules)
        for row, w in zip(B, row_weights, strict=True)
    ]
    phi, error, nodes, largest = zip(*parts, strict=True)
    return sum(phi), sum(error), max(nodes), max(largest)  # type: ignore[return-value]
