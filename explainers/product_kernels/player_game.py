"""The game of an expansion: what the removal of a player means, and what coalitions are worth.

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
from typing import Any

import numpy as np

from equipoise.blocks import iter_blocks

from .engines import LANES, lane_blocks, lane_coefficients
from .expansion import ProductKernelExpansion, dense_rows
from .fourier import FourierExpansion, FourierGame
from .kernels import ProductKernel, player_factors
from .sparse_engine import has_sparse_form

__all__ = ["PIECE_MIB", "PlayerGame", "game_of"]

# Factors are made in pieces that stay in the cache between being written and being read.
PIECE_MIB = 2.0


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
            columns = max(points.shape[1], self.n_players)
            n_blocks = -(-points.shape[0] // LANES)
            for some in iter_blocks(n_blocks, 8.0 * columns * LANES, working_memory):
                rows = slice(some.start * LANES, some.stop * LANES)
                yield (
                    kernel,
                    lane_blocks(dense_rows(points[rows])),
                    lane_coefficients(weights[rows]),
                )

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
        for kernel, support, coef in self.pieces(PIECE_MIB):
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
        for kernel, support, coef in self.pieces(PIECE_MIB):
            for B, w in self.absence_rows(kernel, support, working_memory):
                for i in range(len(X)):
                    A = player_factors(kernel, X[i : i + 1], support, self.player, self.n_players)
                    for c, present in enumerate(coalitions):
                        F = A[:, :, present].prod(axis=2)
                        if B is not None:
                            F = F * B[:, :, ~present].prod(axis=2)
                        values[i, c] += np.einsum("r,rkl,klo->o", w, F, coef)
        return values


def game_of(
    expansion: ProductKernelExpansion | FourierExpansion,
    player: np.ndarray,
    n_players: int,
    removal: str,
    background: np.ndarray | None,
    row_weights: np.ndarray | None,
) -> PlayerGame | FourierGame:
    """Build the game of an expansion.

    Parameters
    ----------
    expansion : ProductKernelExpansion or FourierExpansion
        The function.
    player, n_players, removal, background, row_weights
        As in `PlayerGame`.

    Returns
    -------
    PlayerGame or FourierGame
        The game.

    Raises
    ------
    ValueError
        If the identity removal is asked for a FourierExpansion.
    """
    if isinstance(expansion, ProductKernelExpansion):
        return PlayerGame(expansion, player, n_players, removal, background, row_weights)
    if background is None or row_weights is None:
        raise ValueError(
            f"removal={removal!r} isn't available for a model on RBFSampler's features: the "
            "kernel's factors can't be recovered from them; allowed: 'baseline', 'marginal', "
            "'interventional' (or Nystroem in RBFSampler's place)"
        )
    return FourierGame(expansion, player, n_players, removal, background, row_weights)
