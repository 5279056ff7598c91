"""The paper's recursion: Shapley values from elementary symmetric polynomials, in O(d^2) a term.

With mu_q = q! (d - 1 - q)! / d! and factors k of one term (absence factors 1),

    phi_j = (k_j - 1) sum_q mu_q e_q(k without k_j) = (k_j - 1) sum_s L_j[s] G_{j+1}[s],

where L_j are the symmetric polynomials of the factors before j, and G_{j+1}[s] weighs those of the
factors after j by mu: G_d = mu, G_j[s] = G_{j+1}[s] + k_j G_{j+1}[s + 1]. For k >= 0 all summands
are nonnegative, so nothing cancels. No factor is divided out of the full polynomial: that loses
every digit within a few hundred features.
"""

import numpy as np
from numba import njit

__all__ = ["esp_values"]


@njit(cache=True, nogil=True)
def esp_values(D, coef):  # type: ignore[no-untyped-def]
    """Sum the Shapley values of one-sided product games over their terms.

    Parameters
    ----------
    D : ndarray of shape (n_games, n_terms, n_players)
        k - 1.
    coef : ndarray of shape (n_terms, n_outputs)
        Weights of the terms.

    Returns
    -------
    ndarray of shape (n_games, n_players, n_outputs)
        Values.
    """
    n_games, n_terms, d = D.shape
    phi = np.zeros((n_games, d, coef.shape[1]))
    mu = np.empty(d)
    mu[0] = 1.0 / d
    for q in range(1, d):
        mu[q] = mu[q - 1] * q / (d - q)
    prefix = np.zeros((d, d))
    suffix = np.empty(d)
    for i in range(n_games):
        for r in range(n_terms):
            prefix[0, 0] = 1.0
            for j in range(d - 1):
                k = 1.0 + D[i, r, j]
                prefix[j + 1, 0] = 1.0
                for s in range(1, j + 1):
                    prefix[j + 1, s] = prefix[j, s] + k * prefix[j, s - 1]
                prefix[j + 1, j + 1] = k * prefix[j, j]
            suffix[:] = mu
            for j in range(d - 1, -1, -1):
                omega = 0.0
                for s in range(j + 1):
                    omega += prefix[j, s] * suffix[s]
                for o in range(coef.shape[1]):
                    phi[i, j, o] += coef[r, o] * D[i, r, j] * omega
                k = 1.0 + D[i, r, j]
                for s in range(j):
                    suffix[s] += k * suffix[s + 1]
    return phi
