"""Constant step sizes that theory allows, and the Lipschitz moduli they need.

G_i is the modulus of v_i as a function of one other player's strategy, in quotient norms. With m_i
the masses of a harmonic measure and K the strong convexity, eta_i = c m_i K / max_j(m_j G_j) makes
FTRL+ converge in a harmonic game for c < 1 / (n - 1) with the mirror-prox step and c <= 1 / (2
sqrt(2) (n - 1)) with the optimistic one.
"""

from itertools import combinations

import numpy as np

from .game import NormalFormGame
from .regularizers import Regularizer

__all__ = ["lipschitz_moduli", "theory_steps"]


def lipschitz_moduli(game: NormalFormGame, euclidean: bool = False) -> np.ndarray:
    """Return how fast each player's payoff vector changes with another's strategy.

    Parameters
    ----------
    game : NormalFormGame
        The game.
    euclidean : bool, default=False
        For L2 norms the largest spectral norm of the doubly centred slices of u_i over (a_i, a_j);
        for L1 norms a quarter of the largest second difference ``|u(a, b) - u(a', b) - u(a, b') +
        u(a', b')|``.

    Returns
    -------
    ndarray of shape (n,)
        G_i; zero for a player whose incentives don't depend on the others.

    Examples
    --------
    >>> from equipoise.games import NormalFormGame
    >>> from equipoise.games.normal_form.step_sizes import lipschitz_moduli
    >>> lipschitz_moduli(NormalFormGame.from_bimatrix([[1, -1], [-1, 1]]))
    array([1., 1.])
    """
    G = np.zeros(game.n_players)
    for i, u in enumerate(game.payoffs):
        own_first = np.moveaxis(u, i, 0)
        for j in range(game.n_players - 1):  # axis j of what is left after the own axis
            if euclidean:
                slices = np.moveaxis(own_first, (0, j + 1), (-2, -1))
                slices = slices - slices.mean(axis=-1, keepdims=True)
                slices = slices - slices.mean(axis=-2, keepdims=True)
                G[i] = max(G[i], np.linalg.norm(slices, ord=2, axis=(-2, -1)).max())
                continue
            for a, b in combinations(range(len(own_first)), 2):
                difference = own_first[a] - own_first[b]
                G[i] = max(G[i], 0.25 * np.ptp(difference, axis=j).max())
    return G


def theory_steps(game: NormalFormGame, masses: np.ndarray, regularizer: Regularizer) -> np.ndarray:
    """Return the constant step sizes eta_i = c m_i K / max_j(m_j G_j).

    Parameters
    ----------
    game : NormalFormGame
        A harmonic game of n players.
    masses : ndarray of shape (n,)
        The m_i.
    regularizer : Regularizer
        Gives K and the norm.

    Returns
    -------
    ndarray of shape (n,)
        With c = min(1 / (2 (n + 2)), 1 / (2 sqrt(2) (n - 1))); ones where no player's incentives
        depend on others.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games import NormalFormGame
    >>> from equipoise.games.normal_form.regularizers import Regularizer
    >>> from equipoise.games.normal_form.step_sizes import theory_steps
    >>> game = NormalFormGame.from_bimatrix([[1, -1], [-1, 1]])
    >>> theory_steps(game, np.array([2.0, 2.0]), Regularizer("entropic"))
    array([0.125, 0.125])
    """
    n = game.n_players
    largest = float((masses * lipschitz_moduli(game, regularizer.is_euclidean)).max())
    if n == 1 or largest == 0.0:
        return np.ones(n)
    c = min(1.0 / (2 * (n + 2)), 1.0 / (2 * np.sqrt(2.0) * (n - 1)))
    return c * masses * regularizer.strong_convexity / largest
