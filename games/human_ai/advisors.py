r"""Several advisors at once: m sources of evidence x_j = y c_j + e_j.

The errors have correlation matrix R; as log-odds the sources are l_j = 2 c_j x_j. Someone who
neglects the overlap and trusts source j by tau_j decides by the sign of sum_j tau_j l_j, so with
v_j = tau_j c_j the accuracy is Phi(v . c / sqrt(v' R v)). The optimal fusion weighs x by R^{-1} c:
Phi(sqrt(c' R^{-1} c)).
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from .checks import finite, within

__all__ = ["advisors_accuracy"]

Array = NDArray[np.float64]


def checked_correlation(correlation: ArrayLike, m: int) -> Array:
    """A symmetric, positive definite matrix with a unit diagonal."""
    R = finite(correlation, "correlation")
    if R.shape != (m, m):
        raise ValueError(f"correlation: got shape {R.shape}; allowed: {(m, m)}, one row a source")
    if not (np.allclose(R, R.T, atol=1e-10) and np.allclose(np.diag(R), 1.0, atol=1e-10)):
        raise ValueError("correlation: allowed: a symmetric matrix with ones on the diagonal")
    if (least := float(np.linalg.eigvalsh(R)[0])) <= 1e-12:
        raise ValueError(
            f"correlation: smallest eigenvalue {least:.2e}; allowed: positive definite"
        )
    return R


def advisors_accuracy(
    capabilities: ArrayLike, correlation: ArrayLike, *, trust: ArrayLike | None = None
) -> float | Array:
    r"""Accuracy of a decision from several sources of evidence, for an even prior.

    Parameters
    ----------
    capabilities : array-like of shape (..., m)
        Capability of each source, at least 0; the human is one of them.
    correlation : array-like of shape (m, m)
        Correlation of their errors, positive definite.
    trust : array-like of shape (..., m), optional
        Factor of at least 0 on the log-odds of each source, overlap neglected; None takes the
        optimal weights.

    Returns
    -------
    float or ndarray
        :math:`\Phi(v \cdot c / \sqrt{v^T R v})` with :math:`v_j = \tau_j c_j`, or
        :math:`\Phi(\sqrt{c^T R^{-1} c})` with optimal weights. Without evidence it is 1/2.

    Raises
    ------
    ValueError
        If an argument lies outside its range or shapes don't match.

    Examples
    --------
    >>> from equipoise.games import advisors_accuracy
    >>> R = [[1.0, 0.3, 0.3], [0.3, 1.0, 0.9], [0.3, 0.9, 1.0]]
    >>> print(round(advisors_accuracy([0.5, 0.8, 0.8], R), 4))  # a twin AI adds next to nothing
    0.8054
    >>> print(round(advisors_accuracy([0.5, 0.8, 0.8], R, trust=[1, 1, 1]), 4))
    0.8052
    """
    c = within(capabilities, "capabilities", 0.0)
    if c.ndim == 0 or c.shape[-1] == 0:
        raise ValueError(f"capabilities: got shape {c.shape}; allowed: (..., m), m at least 1")
    R = checked_correlation(correlation, c.shape[-1])
    if trust is None:
        quadratic = np.einsum("...i,...i->...", c, np.linalg.solve(R, c[..., None])[..., 0])
        return ndtr(np.sqrt(quadratic))[()]
    tau = within(trust, "trust", 0.0)
    if tau.shape[-1:] != c.shape[-1:]:
        raise ValueError(f"trust: got shape {tau.shape}; allowed: (..., {c.shape[-1]})")
    v = tau * c
    mean, variance = (v * c).sum(axis=-1), np.einsum("...i,ij,...j->...", v, R, v)
    z = np.where(variance > 0, mean / np.sqrt(np.where(variance > 0, variance, 1.0)), 0.0)
    return ndtr(z)[()]
