"""Attributions of a kernel expansion: removal modes, blocks of work, and the engines behind them.

Removing a player replaces its factor a = k_j(x_j, x_ij) by an absence factor b:

    identity         b = 1
    baseline         b = k_j(ref_j, x_ij)
    marginal         b = mean over background rows of k_j(B_j, x_ij)
    interventional   b = k_j(B_j, x_ij), averaged over background rows B outside the product

Each is a weighted sum of product games (one term a support point, or a pair of support point and
background row), so each is exact at the same cost a term.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn import get_config

from equipoise.blocks import iter_blocks, map_blocks

from .engines import (
    LANES,
    identity_values,
    lane_blocks,
    lane_coefficients,
    numpy_values,
    two_sided_values,
)
from .esp import esp_values
from .expansion import ProductKernelExpansion, dense_rows
from .kernels import ProductKernel, player_factors
from .nodes import quadrature_error_bound, quadrature_rules
from .sparse_engine import has_sparse_form, sparse_identity_values

__all__ = ["Attribution", "PlayerGame", "attribute"]

# Factors are made in pieces that stay in the cache between being written and being read.
_PIECE_MIB = 2.0


@dataclass(frozen=True)
class PlayerGame:
    """An expansion, the players its columns belong to, and what their removal means.

    Parameters
    ----------
    expansion : ProductKernelExpansion
        The function f.
    player : ndarray of shape (n_columns,)
        Which player a column belongs to.
    n_players : int
        Number of players.
    removal : {"identity", "baseline", "marginal", "interventional"}
        What absence means.
    background : ndarray of shape (n_background, n_columns), optional
        Rows for the two-sided removals; one row for "baseline".
    row_weights : ndarray of shape (n_background,), optional
        Weights of the background rows, with sum 1.
    """

    expansion: ProductKernelExpansion
    player: np.ndarray
    n_players: int
    removal: str = "identity"
    background: np.ndarray | None = None
    row_weights: np.ndarray | None = None

    def absence_rows(
        self, kernel: ProductKernel, support: np.ndarray, working_memory: float | None
    ) -> Iterator[tuple[np.ndarray | None, np.ndarray]]:
        """Compute absence factors in groups of rows that fit into the memory budget.

        Parameters
        ----------
        kernel : ProductKernel
            One of the expansion's kernels.
        support : ndarray of shape (n_blocks, n_columns, LANES)
            Support points side by side.
        working_memory : float or None
            Budget in MiB.

        Yields
        ------
        absence : ndarray of shape (n_rows, n_blocks, n_players, LANES), or None
            Absence factors; None stands for ones.
        weights : ndarray of shape (n_rows,)
            Weights of the rows.
        """
        one = np.ones(1)
        if self.removal == "identity":
            yield None, one
            return
        assert self.background is not None and self.row_weights is not None
        row_bytes = 16.0 * support.shape[0] * self.n_players * LANES
        mean: np.ndarray | float = 0.0
        for rows in iter_blocks(len(self.background), row_bytes, working_memory):
            B = player_factors(kernel, self.background[rows], support, self.player, self.n_players)
            if self.removal == "marginal":
                mean = mean + np.tensordot(self.row_weights[rows], B, axes=1)[None]
            else:
                yield B, self.row_weights[rows]
        if self.removal == "marginal":
            yield np.asarray(mean), one

    @property
    def skips_nulls(self) -> bool:
        """Whether sparse rows can be explained without making them dense."""
        return (
            self.removal == "identity"
            and np.array_equal(self.player, np.arange(self.n_players))
            and all(has_sparse_form(kernel) for kernel in self.expansion.terms)
        )

    def pieces(self, working_memory: float | None) -> Iterator[tuple[ProductKernel, Any, Any]]:
        """Cut kernels and support points into pieces of work.

        Parameters
        ----------
        working_memory : float or None
            Budget in MiB for one piece of a single row.

        Yields
        ------
        kernel : ProductKernel
            One of the expansion's kernels.
        support : ndarray of shape (n_blocks, n_columns, LANES)
            Some of the support points, side by side.
        coef : ndarray of shape (n_blocks, LANES, n_outputs)
            Their coefficients, with the kernel's constant.
        """
        for kernel, points, weights in self.expansion.weighted_terms():
            support = lane_blocks(dense_rows(points))
            coef = lane_coefficients(weights)
            for some in iter_blocks(len(support), 8.0 * self.n_players * LANES, working_memory):
                yield kernel, support[some], coef[some]

    def empty_value(self, working_memory: float | None = None) -> np.ndarray:
        """Compute v(empty), the value when all players are absent.

        Parameters
        ----------
        working_memory : float or None
            Budget in MiB for absence factors.

        Returns
        -------
        ndarray of shape (n_outputs,)
            Values.
        """
        total = self.expansion.intercept.astype(np.float64)
        for kernel, support, coef in self.pieces(_PIECE_MIB):
            for B, w in self.absence_rows(kernel, support, working_memory):
                products = np.ones((1, *coef.shape[:2])) if B is None else B.prod(axis=2)
                total = total + np.einsum("r,rkl,klo->o", w, products, coef)
        return total

    def coalition_values(
        self, X: np.ndarray, coalitions: np.ndarray, working_memory: float | None = None
    ) -> np.ndarray:
        """Compute v(S) for some coalitions.

        Parameters
        ----------
        X : ndarray of shape (n, n_columns)
            Points explained.
        coalitions : ndarray of bool of shape (n_coalitions, n_players)
            Who is present.
        working_memory : float or None
            Budget in MiB for absence factors.

        Returns
        -------
        ndarray of shape (n, n_coalitions, n_outputs)
            Values.
        """
        f = self.expansion
        values = np.tile(f.intercept.astype(np.float64), (len(X), len(coalitions), 1))
        for kernel, support, coef in self.pieces(_PIECE_MIB):
            for B, w in self.absence_rows(kernel, support, working_memory):
                for i in range(len(X)):
                    A = player_factors(kernel, X[i : i + 1], support, self.player, self.n_players)
                    for c, present in enumerate(coalitions):
                        F = A[:, :, present].prod(axis=2)
                        if B is not None:
                            F = F * B[:, :, ~present].prod(axis=2)
                        values[i, c] += np.einsum("r,rkl,klo->o", w, F, coef)
        return values


class Attribution(NamedTuple):
    """Values of all players for all rows, and how exact they are."""

    values: np.ndarray  # (n, n_players, n_outputs)
    n_nodes: int
    error_bound: float


def attribute(
    game: PlayerGame,
    X: Any,
    *,
    index: str = "SV",
    n_nodes: str | int = "auto",
    tol: float = 1e-12,
    method: str = "quadrature",
    backend: str = "numba",
    device: str = "cpu",
    dtype: str = "float64",
    working_memory: float | None = None,
    n_jobs: int | None = None,
) -> Attribution:
    """Compute the players' values for each row.

    Parameters
    ----------
    game : PlayerGame
        What is attributed.
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
    backend : {"numba", "numpy", "torch"}, default="numba"
        Engine of the quadrature.
    device, dtype : str
        Where and in which precision "torch" works; below double precision `tol` is at least 1e-6.
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
    if sparse.issparse(X):
        if game.skips_nulls and method == "quadrature" and backend == "numba":
            return attribute_sparse(game, X, index, n_nodes, tol, n_jobs)
        X = densified(X, working_memory)
    shape = (len(X), d, game.expansion.n_outputs)
    unit = all(kernel.unit for kernel in game.expansion.terms)
    rules = quadrature_rules(d, index, n_nodes, max(tol, 1e-6) if dtype == "float32" else tol, unit)
    if backend == "torch" and method == "quadrature":
        from .torch_engine import torch_values

        values, error, most_nodes, largest = torch_values(
            game, X, rules, device=device, dtype=dtype, working_memory=working_memory
        )
        bound = total_bound(error, index, n_nodes, largest, d, unit)
        return Attribution(values, most_nodes, bound)
    values, error = np.zeros(shape), np.zeros(shape)
    most_nodes, largest = 0, 0.0
    piece_mib = _PIECE_MIB if working_memory is None else min(_PIECE_MIB, working_memory)
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
                if backend == "numpy":
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


def densified(X: Any, working_memory: float | None) -> np.ndarray:
    """Turn sparse rows into dense ones if they fit into the memory budget."""
    if not sparse.issparse(X):
        return X
    budget = get_config()["working_memory"] if working_memory is None else working_memory
    needed = 8.0 * X.shape[0] * X.shape[1] / 2**20
    if needed > budget:
        raise ValueError(
            f"X is sparse, and this explanation needs it dense: {needed:.0f} MiB, but "
            f"working_memory is {budget:.0f} MiB. Sparse rows are explained as they are with "
            "removal='identity', no groups, method='quadrature' and backend 'auto' or 'numba'"
        )
    return dense_rows(X)


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


def term_rows(A: np.ndarray) -> np.ndarray:
    """Undo the layout in lanes: (n, n_terms, n_players)."""
    n, n_blocks, d, lanes = A.shape
    return np.ascontiguousarray(np.swapaxes(A, 2, 3)).reshape(n, n_blocks * lanes, d)


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
