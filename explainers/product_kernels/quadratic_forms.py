"""Attributions of a model's quadratic quantities: predictive variance, squared loss, norm.

Each is a sum over pairs of support points of products over features, so a product game:

    variance at x   c prod k_j(x, x) - sum_ab V_ab prod k_j(x, x_a) k_j(x, x_b)
    squared loss    mean_x (y - f(x))^2: constant, linear and quadratic in the kernels
    norm            alpha' K alpha

Absence is the identity removal: the factors of an absent player are 1.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_solve

from .attribution import attribute
from .expansion import dense_rows
from .kernels import ProductKernel
from .nodes import quadrature_rules
from .pair_engine import compiled_integrals, kernel_integrals, pair_values
from .pair_factors import point_factors, product_tile
from .player_game import PlayerGame

__all__ = ["QuadraticAttribution", "loss_values", "norm_values", "variance_values"]


class QuadraticAttribution(NamedTuple):
    """Values of a quadratic quantity."""

    values: np.ndarray  # (..., n_players)
    base: np.ndarray | float
    total: np.ndarray | float
    n_nodes: int
    error_bound: float


def weight_tile(W: np.ndarray, rows: slice, columns: slice) -> np.ndarray:
    """Return a tile of a matrix."""
    return W[rows, columns]


def single_term(game: PlayerGame, what: str) -> tuple[ProductKernel, np.ndarray]:
    """Return kernel and support of an expansion that must have one kernel and one output."""
    expansion = game.expansion
    if len(expansion.terms) != 1 or expansion.n_outputs != 1:
        raise ValueError(
            f"{what} is available for one output and a single product kernel, got "
            f"{expansion.n_outputs} outputs and a sum of {len(expansion.terms)} kernels"
        )
    return expansion.terms[0], dense_rows(expansion.support)


def outer_tile(weights: np.ndarray, rows: slice, columns: slice) -> np.ndarray:
    """Return a tile of the outer product of a vector with itself."""
    return np.outer(weights[rows], weights[columns])


def variance_values(
    game: PlayerGame,
    model: Any,
    X: np.ndarray,
    *,
    include_noise: bool,
    tol: float,
    n_jobs: int | None,
) -> QuadraticAttribution:
    """Split the predictive variance of a Gaussian process among the players.

    Parameters
    ----------
    game : PlayerGame
        Game of the mean.
    model : GaussianProcessRegressor
        The fitted process.
    X : ndarray of shape (n, n_columns)
        Rows explained.
    include_noise : bool
        Whether the base value holds the white kernel's noise.
    tol : float
        Tolerance, relative to the weights' total.
    n_jobs : int or None
        Threads.

    Returns
    -------
    QuadraticAttribution
        ``values`` of shape (n, n_players); ``base`` of shape (n,), the same for all rows.
    """
    kernel, support = single_term(game, "The variance")
    if any(not factor.unit for factor in kernel.factors):
        raise ValueError("The variance needs factors with k_j(x, x) = 1")
    c = kernel.scale
    spread = float(np.ravel(model._y_train_std)[0]) ** 2
    V = cho_solve((model.L_, True), np.eye(len(support)))
    W = -(c**2) * spread * (V + V.T) / 2
    base = c * spread + W.sum() + (game.expansion.noise if include_noise else 0.0)
    values = np.zeros((len(X), game.n_players))
    most_nodes, error_bound = 0, 0.0
    ones = np.ones(game.n_players)
    rules = quadrature_rules(game.n_players, "SV", "auto", tol, kernel.unit)
    for i, x in enumerate(X):
        logs, plain = point_factors(kernel, x, support, game.player, game.n_players)
        values[i], nodes, bound = pair_values(
            len(support),
            game.n_players,
            partial(compiled_integrals, partial(product_tile, logs, plain), ones, rules),
            partial(weight_tile, W),
            n_jobs,
        )
        most_nodes, error_bound = max(most_nodes, nodes), max(error_bound, bound)
    k = kernel.unscaled(X, support)
    total = base + np.einsum("ia,ab,ib->i", k, W, k) - W.sum()
    return QuadraticAttribution(values, np.full(len(X), base), total, most_nodes, error_bound)


def norm_values(game: PlayerGame, *, tol: float, n_jobs: int | None) -> QuadraticAttribution:
    """Split the squared norm of a function in its kernel's space among the players.

    Parameters
    ----------
    game : PlayerGame
        Game of the function.
    tol : float
        Tolerance, relative to the weights' total.
    n_jobs : int or None
        Threads.

    Returns
    -------
    QuadraticAttribution
        ``values`` of shape (n_players,).
    """
    kernel, support = single_term(game, "The norm")
    alpha = game.expansion.coef[:, 0] * np.sqrt(kernel.scale)
    if not len(alpha):
        return QuadraticAttribution(np.zeros(game.n_players), 0.0, 0.0, 0, 0.0)
    values, nodes, bound = pair_values(
        len(alpha),
        game.n_players,
        kernel_integrals(
            kernel, support, game.player, game.n_players, np.ones(game.n_players), tol=tol
        ),
        partial(outer_tile, alpha),
        n_jobs,
    )
    K = kernel.unscaled(support, support)
    return QuadraticAttribution(
        values, float(alpha.sum() ** 2), float(alpha @ K @ alpha), nodes, bound
    )


def loss_values(
    game: PlayerGame, X: np.ndarray, y: np.ndarray, *, tol: float, n_jobs: int | None
) -> QuadraticAttribution:
    """Split the mean squared error on some rows among the players.

    Parameters
    ----------
    game : PlayerGame
        Game of the predictions.
    X : ndarray of shape (n, n_columns)
        Rows.
    y : ndarray of shape (n,)
        Targets.
    tol : float
        Tolerance, relative to the weights' total.
    n_jobs : int or None
        Threads.

    Returns
    -------
    QuadraticAttribution
        ``values`` of shape (n_players,); a negative value lowers the error.
    """
    kernel, support = single_term(game, "The loss")
    expansion = game.expansion
    residual = y - expansion.intercept[0]
    alpha = expansion.coef[:, 0] * kernel.scale
    linear = attribute(game, X, tol=tol, n_jobs=n_jobs)
    values = -2 * residual @ linear.values[:, :, 0] / len(X)
    most_nodes = linear.n_nodes
    error_bound = 2 * np.abs(residual).mean() * linear.error_bound
    if len(alpha):
        ones = np.ones(game.n_players)
        rules = quadrature_rules(game.n_players, "SV", "auto", tol, kernel.unit)
        for x in X:
            logs, plain = point_factors(kernel, x, support, game.player, game.n_players)
            quadratic, nodes, bound = pair_values(
                len(alpha),
                game.n_players,
                partial(compiled_integrals, partial(product_tile, logs, plain), ones, rules),
                partial(outer_tile, alpha),
                n_jobs,
            )
            values += quadratic / len(X)
            most_nodes = max(most_nodes, nodes)
            error_bound += bound / len(X)
    base = float(np.mean((residual - alpha.sum()) ** 2))
    total = float(np.mean((y - expansion(X)[:, 0]) ** 2))
    return QuadraticAttribution(values, base, total, most_nodes, float(error_bound))
