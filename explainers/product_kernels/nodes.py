"""Gauss-Legendre rules on [0, 1] for product games: accurate nodes, and how many are needed.

The Shapley value of a product game is the integral over [0, 1] of a polynomial of degree d - 1, so
that ceil(d / 2) nodes are exact. Far fewer suffice in practice: on the Bernstein ellipse with foci
0 and 1 and parameter e^s the integrand is at most exp(delta Z), where delta = (cosh s - 1) / 2 and
Z = sum_j |a_j - b_j|, hence for factors a, b in [0, 1]

    |I - I_m| <= min_{s > 0} 4 exp(delta Z - 2 m s) / (1 - exp(-s)).
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numba import njit
from scipy.special import roots_jacobi

__all__ = [
    "QuadratureRules",
    "gauss_legendre_01",
    "n_quadrature_nodes",
    "quadrature_error_bound",
    "quadrature_rules",
]

_S = np.geomspace(1e-3, 8.0, 800)
_DELTA = np.sinh(_S / 2) ** 2
_LOG_TAIL = np.log(4.0) - np.log(-np.expm1(-_S))


@njit(cache=True, nogil=True)
def newton_gauss_legendre(m: int) -> tuple[np.ndarray, np.ndarray]:
    """Find the roots of P_m by Newton's method in theta, where x = cos(theta)."""
    t = np.empty(m)
    w = np.empty(m)
    for k in range(m):
        theta = np.pi * (4 * k + 3) / (4 * m + 2)
        theta += 1 / (8 * m * m * np.tan(theta))
        derivative = 1.0
        for _ in range(8):
            x = np.cos(theta)
            previous, current = 1.0, x
            for n in range(2, m + 1):
                previous, current = current, ((2 * n - 1) * x * current - (n - 1) * previous) / n
            derivative = m * (x * current - previous) / np.sin(theta)
            step = current / derivative
            theta -= step
            if abs(step) < 1e-16:
                break
        t[k] = np.sin(theta / 2) ** 2
        w[k] = 1 / derivative**2
    return t, w


@lru_cache(maxsize=1024)
def gauss_legendre_01(m: int) -> tuple[np.ndarray, np.ndarray]:
    """Compute the Gauss-Legendre rule on [0, 1] to the last bits of double precision.

    Parameters
    ----------
    m : int
        Number of nodes, at least 1.

    Returns
    -------
    t : ndarray of shape (m,)
        Nodes in increasing order, read-only.
    w : ndarray of shape (m,)
        Weights, read-only; they sum to 1.

    Raises
    ------
    ValueError
        If `m` is less than 1.

    Notes
    -----
    The nodes of `numpy.polynomial.legendre.leggauss` and `scipy.special.roots_legendre` carry
    relative errors of 1e-12 to 1e-10 at a few hundred nodes, which the Shapley values inherit.
    Newton's method in the angle, where the roots are nearly equidistant, does not lose them.

    Examples
    --------
    >>> from equipoise.explainers.product_kernels import gauss_legendre_01
    >>> t, w = gauss_legendre_01(3)
    >>> float(w @ t**5)
    0.1666666666666...
    """
    if m < 1:
        raise ValueError(f"m={m!r} must be an integer of at least 1")
    t, w = newton_gauss_legendre(int(m))
    for array in (t, w):
        array.flags.writeable = False
    return t, w


def quadrature_error_bound(n_nodes: int, z_sum: float, n_players: int) -> float:
    """Bound the error of the integral of prod_l [b_l + t (a_l - b_l)] over l != j.

    Parameters
    ----------
    n_nodes : int
        Nodes of the Gauss-Legendre rule.
    z_sum : float
        Z = sum_l |a_l - b_l| for factors a, b in [0, 1].
    n_players : int
        Number of players d.

    Returns
    -------
    float
        Bound on the absolute error; 0.0 where the rule is exact.

    Examples
    --------
    >>> from equipoise.explainers.product_kernels.nodes import quadrature_error_bound
    >>> quadrature_error_bound(7, 2.0, n_players=1000) < 1e-12
    True
    """
    if n_nodes >= exact_node_count(n_players):
        return 0.0
    return float(np.exp(np.min(_LOG_TAIL + _DELTA * z_sum - 2 * n_nodes * _S)))


def exact_node_count(n_players: int) -> int:
    """Count the nodes that integrate a polynomial of degree n_players - 1 exactly."""
    return max(1, (n_players + 1) // 2)


def largest_z(m: np.ndarray, tol: float | np.ndarray) -> np.ndarray:
    """Solve the bound for Z: the largest Z for which m nodes meet the tolerance."""
    m = np.atleast_1d(m)[:, None]
    log_tol = np.log(np.broadcast_to(tol, (len(m),)))[:, None]
    return np.max((log_tol - _LOG_TAIL + 2 * m * _S) / _DELTA, axis=1)


def n_quadrature_nodes(z_sum: float, n_players: int, tol: float) -> int:
    """Count the nodes that a product game needs for a given accuracy.

    Parameters
    ----------
    z_sum : float
        Z = sum_j |a_j - b_j| over the players, for factors in [0, 1]; with the identity removal
        sum_j (1 - k_j).
    n_players : int
        Number of players d; never more than ceil(d / 2) nodes are asked for.
    tol : float
        Absolute error allowed for the integral.

    Returns
    -------
    int
        Number of nodes.

    Raises
    ------
    ValueError
        If `z_sum` is negative or not finite, `n_players` less than 1, or `tol` not positive.

    Examples
    --------
    With bandwidths scaled to the dimension Z stays about 2, and 7 nodes do for any d:

    >>> from equipoise.explainers import n_quadrature_nodes
    >>> n_quadrature_nodes(2.0, 10**6, tol=1e-12)
    7
    """
    if not 0 <= z_sum < np.inf:
        raise ValueError(f"z_sum={z_sum!r} must be finite and at least 0")
    if n_players < 1:
        raise ValueError(f"n_players={n_players!r} must be at least 1")
    if not tol > 0:
        raise ValueError(f"tol={tol!r} must be positive")
    low, high = 1, exact_node_count(n_players)
    while low < high:
        middle = (low + high) // 2
        if largest_z(np.array([middle]), tol)[0] >= z_sum:
            high = middle
        else:
            low = middle + 1
    return low


class QuadratureRules(NamedTuple):
    """A family of rules, from which each block of terms takes the first that suffices.

    Rule k applies to terms with Z <= limits[k]; it has the nodes
    ``nodes[starts[k]:starts[k + 1]]`` and the error bound ``tol / max(1, Z)``, or 0 if it is the
    last one and `last_exact`. A given number of nodes is a family of one, with tol = 1: the
    bound is then multiplied in afterwards.
    """

    limits: np.ndarray  # (n_rules,)
    starts: np.ndarray  # (n_rules + 1,)
    nodes: np.ndarray
    weights: np.ndarray
    tol: float
    last_exact: bool


def joined(rules: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    starts = np.cumsum([0, *(len(t) for t, _ in rules)])
    return starts, np.concatenate([t for t, _ in rules]), np.concatenate([w for _, w in rules])


@lru_cache(maxsize=256)
def quadrature_rules(
    n_players: int, index: str, n_nodes: str | int, tol: float, unit_factors: bool = True
) -> QuadratureRules:
    """Lay out the rules for a semivalue of product games.

    Parameters
    ----------
    n_players : int
        Number of players d.
    index : str
        "SV" (Shapley), "BV" (Banzhaf), "WB:p" (weighted Banzhaf), "Beta:alpha,beta".
    n_nodes : "auto", "exact" or int
        How many nodes; only the Shapley value uses it, the others are exact.
    tol : float
        Tolerance of "auto".
    unit_factors : bool, default=True
        Whether all factors lie in [0, 1]; otherwise "auto" means "exact".

    Returns
    -------
    QuadratureRules
        The rules, in increasing order of nodes.
    """
    exact = exact_node_count(n_players)
    name, parameters = parse_index(index)
    if name == "WB":
        return QuadratureRules(
            np.array([np.inf]), np.array([0, 1]), np.array(parameters), np.ones(1), 0.0, True
        )
    if name == "Beta":
        alpha, beta = parameters
        # t ~ Beta(beta, alpha): density t^(beta-1) (1-t)^(alpha-1) on [0, 1]
        x, w = roots_jacobi(exact, alpha - 1, beta - 1)
        return QuadratureRules(
            np.array([np.inf]), np.array([0, exact]), (1 + x) / 2, w / w.sum(), 0.0, True
        )
    if isinstance(n_nodes, str) and (n_nodes == "exact" or not unit_factors):
        n_nodes = exact
    if not isinstance(n_nodes, str):
        m = min(n_nodes, exact)
        starts, t, w = joined([gauss_legendre_01(m)])
        return QuadratureRules(np.array([np.inf]), starts, t, w, 1.0, m == exact)
    last = n_quadrature_nodes(n_players, n_players, tol / n_players)
    counts = np.arange(1, last + 1)
    # Solving bound(m, Z) <= tol / max(1, Z): one step from above lands just inside.
    limits = largest_z(counts, tol / np.maximum(1.0, largest_z(counts, tol)))
    limits[-1] = np.inf
    starts, t, w = joined([gauss_legendre_01(int(m)) for m in counts])
    return QuadratureRules(limits, starts, t, w, tol, last == exact)


def parse_index(index: str) -> tuple[str, tuple[float, ...]]:
    """Split the name of a semivalue into its family and parameters.

    Parameters
    ----------
    index : str
        "SV", "BV", "WB:p" with p in [0, 1], or "Beta:alpha,beta" with both positive.

    Returns
    -------
    name : str
        "SV", "WB" or "Beta"; the Banzhaf value is "WB" with p = 1/2.
    parameters : tuple of float
        (), (p,) or (alpha, beta).

    Raises
    ------
    ValueError
        If the name or its parameters aren't one of these.
    """
    name, _, rest = index.partition(":")
    try:
        parameters = tuple(float(part) for part in rest.split(",")) if rest else ()
    except ValueError:
        parameters = (np.nan,)
    if name == "SV" and not rest:
        return "SV", ()
    if name == "BV" and not rest:
        return "WB", (0.5,)
    if name == "WB" and len(parameters) == 1 and 0 <= parameters[0] <= 1:
        return "WB", parameters
    if name == "Beta" and len(parameters) == 2 and all(0 < p < np.inf for p in parameters):
        return "Beta", parameters
    raise ValueError(
        f"index={index!r} is not available; allowed: 'SV', 'BV', 'WB:p' with p in [0, 1], "
        "'Beta:alpha,beta' with both positive"
    )
