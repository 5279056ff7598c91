"""How uncertain a Gaussian process's attributions are.

For baseline and interventional removal the attributions are a linear functional of the function, so
under the process they are jointly Gaussian. With kappa the correlation factors, one reference row
r, rho_j = kappa_j(x_j, r_j), and both multilinear arguments at times t and t',

    M_i = (1-t)(1-t') + t t' + ((1-t) t' + t (1-t')) rho_i,
    L_j(t') = (1-t') (rho_j - 1) + t' (1 - rho_j),
    C_jj = c (2 - 2 rho_j) int int prod_{i != j} M_i,
    C_jl = c int int L_j(t') L_l(t) prod_{i != j, l} M_i,

the prior covariance is C, and the posterior one C - Phi' V Phi, where Phi holds the attributions
of c k(., x_i) for every training row, and V is the inverse of the training covariance. Several
reference rows are averaged over in pairs.
"""

from typing import Any

import numpy as np
from scipy.linalg import cho_solve

from .attribution import attribute
from .expansion import ProductKernelExpansion, dense_rows
from .kernels import paired_factors
from .nodes import exact_node_count, gauss_legendre_01, n_quadrature_nodes
from .player_game import PlayerGame
from .quadratic_forms import single_term

__all__ = ["attribution_covariance", "prior_covariance"]


def prior_covariance(
    to_r: np.ndarray, to_s: np.ndarray, between: np.ndarray, tol: float = 1e-12
) -> np.ndarray:
    """Compute the prior covariance of the attributions against two reference rows, for c = 1.

    Parameters
    ----------
    to_r : ndarray of shape (n_players,)
        Correlation factors kappa_j(x_j, r_j) with the first reference row.
    to_s : ndarray of shape (n_players,)
        With the second.
    between : ndarray of shape (n_players,)
        Between the two rows; ones where they are the same.
    tol : float, default=1e-12
        Tolerance of the quadrature along each axis.

    Returns
    -------
    ndarray of shape (n_players, n_players)
        Entry (j, l): covariance of player j's attribution against r with l's against s.
    """
    d = len(to_r)
    # Along one axis at a fixed point of the other the product is a product game with factors in
    # [0, 1]; the largest sum of differences along an axis bounds the nodes it needs.
    z = max(
        np.maximum(np.abs(1 - to_r), np.abs(to_s - between)).sum(),
        np.maximum(np.abs(1 - to_s), np.abs(to_r - between)).sum(),
    )
    m = min(exact_node_count(d + 1), n_quadrature_nodes(float(z), 2 * d + 2, tol))
    t, w = gauss_legendre_01(m)
    C = np.zeros((d, d))
    for t_x, w_x in zip(t, w, strict=True):
        for t_y, w_y in zip(t, w, strict=True):
            # Both arguments mixed, each of the point (weight t) or its reference row (1 - t).
            M = (
                (1 - t_x) * (1 - t_y) * between
                + t_x * t_y
                + (1 - t_x) * t_y * to_r
                + t_x * (1 - t_y) * to_s
            )
            left = (1 - t_y) * (to_s - between) + t_y * (1 - to_r)  # first argument differenced
            right = (1 - t_x) * (to_r - between) + t_x * (1 - to_s)  # second
            both = 1 - to_r - to_s + between
            weight = w_x * w_y * M.prod()
            C += weight * np.outer(left / M, right / M)
            diagonal = np.arange(d)
            C[diagonal, diagonal] += weight * (both / M - left * right / M**2)
    return C


def attribution_covariance(
    game: PlayerGame, model: Any, X: np.ndarray, *, tol: float, n_jobs: int | None
) -> np.ndarray:
    """Compute the posterior covariance of each row's attributions.

    Parameters
    ----------
    game : PlayerGame
        Game of the mean; baseline or interventional removal, one kernel, one output.
    model : GaussianProcessRegressor
        The fitted process.
    X : ndarray of shape (n, n_columns)
        Rows explained.
    tol : float
        Tolerance of the quadrature.
    n_jobs : int or None
        Threads.

    Returns
    -------
    ndarray of shape (n, n_players, n_players)
        Covariances, in squared units of the target.
    """
    kernel, _ = single_term(game, "The covariance of attributions")
    background, shares = game.background, game.row_weights
    assert background is not None and shares is not None
    support, c = dense_rows(game.expansion.support), kernel.scale
    d = game.n_players
    # The attributions of c k(., x_i), for all training rows at once: one output each.
    every = ProductKernelExpansion(support, np.eye(len(support)), np.zeros(len(support)), (kernel,))
    each = PlayerGame(every, game.player, d, game.removal, background, shares)
    Phi = attribute(each, X, tol=tol, n_jobs=n_jobs).values  # (n, d, n_support)

    def factors(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        return paired_factors(kernel, first, second, game.player, d)

    n_rows = len(background)
    index = np.arange(n_rows)
    r, s = np.repeat(index, n_rows), np.tile(index, n_rows)
    between = factors(background[r], background[s])
    covariance = np.empty((len(X), d, d))
    for i, x in enumerate(X):
        to = factors(np.tile(x, (n_rows, 1)), background)
        prior = sum(
            shares[a] * shares[b] * prior_covariance(to[a], to[b], between[k], tol)
            for k, (a, b) in enumerate(zip(r, s, strict=True))
        )
        reduced = Phi[i] @ cho_solve((model.L_, True), Phi[i].T)
        C = c * prior - reduced
        covariance[i] = (C + C.T) / 2
    return covariance * float(np.ravel(model._y_train_std)[0]) ** 2
