"""Attributions of a linear model on random Fourier features, which has no kernel any more.

    f(x) = c + sum_m w_m cos(omega_m . x + phi_m)
         = c + Re sum_m w_m e^(i phi_m) prod_j e^(i omega_mj x_j)

is the real part of a weighted sum of product games with complex factors of modulus 1. Absence
factors are those of a reference point, or of background rows. The identity removal isn't available:
it removes factors of the kernel, and those can't be recovered from a drawn set of frequencies.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.blocks import iter_blocks, map_blocks

from .engines import numpy_values
from .nodes import QuadratureRules

__all__ = ["FourierExpansion", "FourierGame", "fourier_values"]


@dataclass(frozen=True)
class FourierExpansion:
    """A function that is a weighted sum of cosines.

    f_o(x) = intercept_o + sum_m coef_mo cos(frequencies_m . x + phases_m)

    Parameters
    ----------
    frequencies : ndarray of shape (n_components, n_features)
        Frequencies omega.
    phases : ndarray of shape (n_components,)
        Phases phi.
    coef : ndarray of shape (n_components, n_outputs)
        Weights w.
    intercept : ndarray of shape (n_outputs,)
        Constants.
    output_names : tuple of str
        One name an output; () for a single output without a name.
    """

    frequencies: np.ndarray
    phases: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    output_names: tuple[str, ...] = ()

    @property
    def support(self) -> np.ndarray:
        """Support points: there are none."""
        return np.empty((0, self.frequencies.shape[1]))

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return self.coef.shape[1]

    @property
    def scale(self) -> np.ndarray:
        """Total of the coefficients' sizes in each output, of shape (n_outputs,)."""
        return np.abs(self.coef).sum(axis=0)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Evaluate f.

        Parameters
        ----------
        X : ndarray of shape (n, n_features)
            Points.

        Returns
        -------
        ndarray of shape (n, n_outputs)
            Values.
        """
        return self.intercept + np.cos(X @ self.frequencies.T + self.phases) @ self.coef


@dataclass(frozen=True)
class FourierGame:
    """A sum of cosines, the players its columns belong to, and what their removal means.

    Parameters
    ----------
    expansion : FourierExpansion
        The function f.
    player : ndarray of shape (n_columns,)
        Which player a column belongs to.
    n_players : int
        Number of players.
    removal : {"baseline", "marginal", "interventional"}
        What absence means.
    background : ndarray of shape (n_background, n_columns)
        Rows for absent players; one row for "baseline".
    row_weights : ndarray of shape (n_background,)
        Weights of the background rows, with sum 1.
    """

    expansion: FourierExpansion
    player: np.ndarray
    n_players: int
    removal: str
    background: np.ndarray
    row_weights: np.ndarray

    @property
    def weights(self) -> np.ndarray:
        """Complex weights of the terms, of shape (n_components, n_outputs)."""
        return np.exp(1j * self.expansion.phases)[:, None] * self.expansion.coef

    @property
    def row_bytes(self) -> float:
        """Memory that one row's temporaries take in the engine, in bytes."""
        return 8.0 * 16 * len(self.expansion.frequencies) * self.n_players

    def factors(self, X: np.ndarray) -> np.ndarray:
        """Compute the players' factors, of shape (n, n_components, n_players)."""
        member = np.eye(self.n_players)[self.player]  # (n_columns, n_players)
        return np.exp(1j * ((X[:, None, :] * self.expansion.frequencies) @ member))

    def absence_rows(self, working_memory: float | None) -> Iterator[tuple[np.ndarray, float]]:
        """Compute absence factors of shape (n_components, n_players), each with its weight."""
        mean: np.ndarray | float = 0.0
        for rows in iter_blocks(len(self.background), self.row_bytes, working_memory):
            B = self.factors(self.background[rows])
            if self.removal == "marginal":
                mean = mean + np.tensordot(self.row_weights[rows], B, axes=1)
            else:
                yield from zip(B, self.row_weights[rows].tolist(), strict=True)
        if self.removal == "marginal":
            yield np.asarray(mean), 1.0

    def empty_value(self, working_memory: float | None = None) -> np.ndarray:
        """Compute v(empty), of shape (n_outputs,)."""
        shares = [w * B.prod(axis=1) for B, w in self.absence_rows(working_memory)]
        return self.expansion.intercept + (np.sum(shares, axis=0) @ self.weights).real

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
        for B, w in self.absence_rows(working_memory):
            for i in range(len(X)):
                A = self.factors(X[i : i + 1])[0]
                products = [np.where(present, A, B).prod(axis=1) for present in coalitions]
                values[i] += w * (np.array(products) @ self.weights).real
        return values


def fourier_values(
    game: FourierGame,
    X: np.ndarray,
    rules: QuadratureRules,
    *,
    working_memory: float | None,
    n_jobs: int | None,
) -> tuple[np.ndarray, np.ndarray, int, float]:
    """Compute the players' values of each row.

    Parameters
    ----------
    game : FourierGame
        What is attributed.
    X : ndarray of shape (n, n_columns)
        Rows explained.
    rules : QuadratureRules
        Nodes.
    working_memory : float or None
        Budget in MiB for temporaries.
    n_jobs : int or None
        Threads over blocks of rows.

    Returns
    -------
    values, error : ndarray of shape (n, n_players, n_outputs)
        Values, and a bound on the quadrature's absolute error.
    most_nodes : int
        Most nodes used.
    largest : float
        The largest sum_j |a_j - b_j| met.
    """
    blocks = list(iter_blocks(len(X), game.row_bytes, working_memory))

    def block_values(rows: slice) -> tuple[Any, Any, int, float]:
        A = game.factors(X[rows])
        parts = [
            numpy_values(A - B, B, w * game.weights, rules)
            for B, w in game.absence_rows(working_memory)
        ]
        phi, error, nodes, largest = zip(*parts, strict=True)
        return sum(phi).real, sum(error), max(nodes), max(largest)

    parts = map_blocks(block_values, blocks, n_jobs)
    phi, error, nodes, largest = zip(*parts, strict=True)
    return np.concatenate(phi), np.concatenate(error), max(nodes), max(largest)
