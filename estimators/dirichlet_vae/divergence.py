"""Divergence between Dirichlet laws, its parts, and expected reconstruction in closed form.

KL(Dir(g) || Dir(a)) = lnGamma(g_0) - sum lnGamma(g_k) - lnGamma(a_0) + sum lnGamma(a_k) + sum (g_k
- a_k) (psi(g_k) - psi(g_0)). With m = g / g_0, Cov z = (diag(m) - m m^T) / (g_0 + 1), so that E||x
- W z||^2 = ||x - W m||^2 + (sum_k m_k ||W_k||^2 - m^T W^T W m) / (g_0 + 1): no sampling is needed.
"""

import numpy as np
import numpy.typing as npt

from .kernels import kl_rows

__all__ = ["dirichlet_kl", "expected_squared_error", "marginal_kl", "stick_breaking_kl"]


def concentrations(value: npt.ArrayLike, name: str) -> np.ndarray:
    """A positive, finite array with at least two entries in its last axis."""
    array = np.asarray(value, dtype=np.float64)
    if array.ndim == 0 or array.shape[-1] < 2:
        raise ValueError(f"{name} has shape {array.shape}; allowed: (..., K) with K >= 2")
    if not np.isfinite(array).all() or (array <= 0).any():
        raise ValueError(f"{name} holds {array.min()!r}; allowed: finite concentrations above 0")
    return array


def dirichlet_kl(g: npt.ArrayLike, a: npt.ArrayLike) -> np.ndarray | float:
    """Kullback-Leibler divergence of Dir(g) from Dir(a), in nats.

    Parameters
    ----------
    g : array-like of shape (..., K)
        Concentrations of the first law, > 0.
    a : array-like of shape (..., K)
        Concentrations of the second law, > 0; broadcast against `g`.

    Returns
    -------
    float or ndarray of shape (...,)
        The divergence, >= 0; 0 where both are equal. Finite also for concentrations such as 1e-160.

    Raises
    ------
    ValueError
        If a concentration isn't positive and finite, or the shapes don't fit.

    Examples
    --------
    >>> from equipoise.estimators import dirichlet_kl
    >>> round(float(dirichlet_kl([2, 1, 0.5], [1, 1, 1])), 6)
    0.788423
    """
    g, a = concentrations(g, "g"), concentrations(a, "a")
    try:
        g, a = np.broadcast_arrays(g, a)
    except ValueError as error:
        raise ValueError(
            f"g of shape {g.shape} and a of shape {a.shape} don't broadcast"
        ) from error
    K = g.shape[-1]
    rows = (np.ascontiguousarray(array).reshape(-1, K) for array in (g, a))
    return kl_rows(*rows).reshape(g.shape[:-1])[()]


def marginal_kl(g: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Divergence of each component's marginal Beta law, (n, K); it doesn't depend on the order."""
    # Sums of the others, not the total less one's own: that would lose the tiny ones.
    others = 1.0 - np.eye(g.shape[-1])
    pairs = [np.stack([part, part @ others], axis=-1) for part in (g, np.broadcast_to(a, g.shape))]
    return np.asarray(dirichlet_kl(*pairs))


def stick_breaking_kl(g: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Chain-rule parts (n, K - 1) of the divergence: they sum to it, and depend on the order.

    z_k / (1 - z_1 - ... - z_{k-1}) are independent Beta(g_k, g_{k+1} + ... + g_K) variables.
    """
    pairs = []
    for part in (g, np.broadcast_to(a, g.shape)):
        rest = np.cumsum(part[..., ::-1], axis=-1)[..., ::-1]
        pairs.append(np.stack([part[..., :-1], rest[..., 1:]], axis=-1))
    return np.asarray(dirichlet_kl(*pairs))


def expected_squared_error(X: np.ndarray, W: np.ndarray, g: np.ndarray) -> np.ndarray:
    """E||x_i - W z||^2 under Dir(g_i), (n,), for rows X (n, D), endmembers W (D, K), g (n, K)."""
    g0 = g.sum(axis=1, keepdims=True)
    M = g / g0
    mean = M @ W.T
    second = M @ (W**2).sum(axis=0)
    return ((X - mean) ** 2).sum(axis=1) + (second - (mean**2).sum(axis=1)) / (g0[:, 0] + 1)
