"""Efficiency of a Dirichlet prior: how well a code's mean follows its concentrations.

J = d E[z] / d g, F the Fisher information of Dir(g) and C_0 = Cov z, all at the prior g = a: the
generalised eigenvalues kappa of (J F^-1 J^T, C_0) on the simplex's tangent space are squared
correlations of z with its score. For a symmetric prior all equal rho = (K alpha + 1) / (K alpha^2
psi'(alpha)), the Cramer-Rao efficiency of the simplex mean.
"""

from numbers import Integral

import numpy as np
import numpy.typing as npt
from scipy.special import polygamma

__all__ = [
    "check_concentration",
    "check_n_components",
    "dirichlet_efficiency",
    "prior_efficiencies",
]


def scaled_trigamma(alpha: npt.ArrayLike) -> np.ndarray:
    """alpha^2 psi'(alpha) = 1 + alpha^2 psi'(alpha + 1), finite for every alpha > 0."""
    alpha = np.asarray(alpha, dtype=np.float64)
    # Multiplied one by one: the square of a large concentration overflows.
    return 1.0 + alpha * (alpha * polygamma(1, alpha + 1.0))


def check_n_components(K: object, name: str = "n_components") -> int:
    """At least two components."""
    if isinstance(K, bool) or not isinstance(K, Integral) or K < 2:
        raise ValueError(f"{name}={K!r} is not allowed; allowed: an integer of at least 2")
    return int(K)


def dirichlet_efficiency(K: int, alpha: npt.ArrayLike) -> np.ndarray | float:
    """Cramer-Rao efficiency of the simplex mean under Dir(alpha, ..., alpha).

    rho(K, alpha) = (K alpha + 1) / (K alpha^2 psi'(alpha)), between 1/K (alpha to 0) and 1 (alpha
    to infinity).

    Parameters
    ----------
    K : int
        Number of components, at least 2.
    alpha : float or array-like
        Concentration, > 0.

    Returns
    -------
    float or ndarray
        rho, of the shape of `alpha`.

    Raises
    ------
    ValueError
        If K < 2 or a concentration isn't positive and finite.

    Examples
    --------
    >>> from equipoise.estimators import dirichlet_efficiency
    >>> round(float(dirichlet_efficiency(3, 1.0)), 6)
    0.810569
    """
    K = check_n_components(K, "K")
    alpha = np.asarray(alpha, dtype=np.float64)
    if not np.isfinite(alpha).all() or (alpha <= 0).any():
        raise ValueError(f"alpha={alpha!r} is not allowed; allowed: finite concentrations above 0")
    return ((K * alpha + 1) / (K * scaled_trigamma(alpha)))[()]


def check_concentration(concentration: npt.ArrayLike, K: int) -> np.ndarray:
    """The prior's K concentrations, positive and finite."""
    a = np.asarray(concentration, dtype=np.float64)
    if a.ndim > 1 or (a.ndim == 1 and len(a) != K):
        raise ValueError(
            f"concentration has shape {a.shape}; allowed: a number, or n_components={K} numbers"
        )
    if not np.isfinite(a).all() or (a <= 0).any():
        raise ValueError(
            f"concentration={concentration!r} is not allowed; allowed: above 0, finite"
        )
    return np.full(K, float(a)) if a.ndim == 0 else a.copy()


def inverse_trigamma_gap(a: np.ndarray, largest: int) -> float:
    """(f(a_0) - sum_k f(a_k)) / a_0^2 for f = 1 / psi': what F's rank-one part leaves, > 0.

    f(a_0) - f(a_p) of the largest a_p is the integral of f' over the sum of the others, so that
    concentrations far smaller than a_p aren't lost in a_0.
    """
    a0 = a.sum()
    rest = np.delete(a, largest)
    share = rest / a0
    nodes, weights = np.polynomial.legendre.leggauss(40)
    x = a[largest] + rest.sum() * (nodes + 1) / 2
    t = scaled_trigamma(x)
    slope = (2.0 - x * (x * (x * polygamma(2, x + 1.0)))) / t / t * (x / a0)
    gap = share.sum() * (weights @ slope) / 2 - (share**2 / scaled_trigamma(rest)).sum()
    # Beyond 1e15 rounding swallows it; its share of the answer is then below rounding too.
    return max(float(gap), np.finfo(float).eps / a0 * (a[largest] > 1))


def prior_efficiencies(a: np.ndarray) -> np.ndarray:
    """kappa_1 >= ... >= kappa_{K-1} of the prior Dir(a); all equal rho where `a` is symmetric.

    Parameters
    ----------
    a : ndarray of shape (K,)
        Concentrations.

    Returns
    -------
    ndarray of shape (K - 1,)
        Generalised eigenvalues of (J F^-1 J^T, C_0) on the tangent space of the simplex.
    """
    K = len(a)
    if np.all(a == a[0]):
        return np.full(K - 1, dirichlet_efficiency(K, float(a[0])))
    a0 = a.sum()
    m = a / a0
    # In log g, F = diag(t) - t_0 m m^T and J = D^1/2 B B^T D^1/2 = (a_0 + 1) C_0, with D = diag(m)
    # and B an orthonormal basis of the complement of sqrt(m): kappa are the eigenvalues of
    # (a_0 + 1) B^T D^1/2 F^-1 D^1/2 B, whose entries are small where m is, and never overflow.
    t = scaled_trigamma(a)
    s = np.sqrt(m)
    largest = int(m.argmax())
    w = s + (np.arange(K) == largest)
    B = np.delete(np.eye(K) - np.outer(w, w) / (1 + s[largest]), largest, axis=1)
    B[largest] = -np.delete(s, largest)  # Householder's reflection, exact in its tiny entries
    along = np.sqrt(a0 + 1) * (B.T @ (m * s / t)) / np.sqrt(inverse_trigamma_gap(a, largest))
    explained = (B.T * ((a0 + 1) * (m / t))) @ B + np.outer(along, along)
    return np.maximum(np.linalg.eigvalsh(explained)[::-1], 0.0)
