"""The beta at which a Dirichlet beta-VAE ignores its code, known before training.

Around the collapsed state (posterior = prior, every endmember = the mean mu) the objective's second
variation in W = mu 1^T + V and g = a + delta is negative in some direction iff beta < beta_c =
lambda_1 kappa_1 / sigma^2. lambda_1 is the covariance's largest eigenvalue; kappa_1 >= kappa_2 ...
are the generalised eigenvalues of (J F^-1 J^T, C_0) with C_0 = Cov z at the prior, J = d E[z] / d
g, F the Fisher information. For a symmetric prior all equal rho = (K alpha + 1) / (K alpha^2
psi'(alpha)), the squared correlation of z and its score: the Cramer-Rao efficiency of the simplex
mean.
"""

import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh, null_space
from scipy.special import polygamma
from sklearn.utils import check_array
from sklearn.utils.validation import _check_sample_weight

from .spectrum import DataSpectrum, data_spectrum, squared_diameter

__all__ = ["KINDS", "collapse_threshold", "dirichlet_efficiency", "prior_efficiencies"]

KINDS = ("local", "flexible", "certificate", "spectrum")


def scaled_trigamma(alpha: npt.ArrayLike) -> np.ndarray:
    """alpha^2 psi'(alpha) = 1 + alpha^2 psi'(alpha + 1), finite for every alpha > 0."""
    alpha = np.asarray(alpha, dtype=np.float64)
    return 1.0 + alpha**2 * polygamma(1, alpha + 1.0)


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
    # With L = diag(a) (F in log g): L J^T and L F L stay finite for tiny concentrations.
    slopes = np.diag(m) - np.outer(m, m)
    fisher = np.diag(scaled_trigamma(a)) - np.outer(m, m) * scaled_trigamma(a0)
    C0 = slopes / (a0 + 1)
    T = null_space(np.ones((1, K)))
    explained = T.T @ slopes @ np.linalg.solve(fisher, slopes) @ T
    return eigh(explained, T.T @ C0 @ T, eigvals_only=True)[::-1]


def threshold_of(
    spectrum: DataSpectrum, a: np.ndarray, noise: float | str, kind: str, diameter2: float | None
) -> float | np.ndarray:
    """The threshold of `kind` from the data's summary; noise "learned" takes tr(S) / D (3.11)."""
    if noise == "learned":
        sigma2 = spectrum.total_variance / spectrum.n_features
    else:
        sigma2 = float(noise)
    K = len(a)
    top = float(spectrum.eigenvalues[0])
    if kind == "certificate":
        assert diameter2 is not None
        return diameter2 / 4 / sigma2 if diameter2 else 0.0
    if spectrum.total_variance == 0:
        return np.zeros(min(K - 1, spectrum.n_features)) if kind == "spectrum" else 0.0
    if kind == "flexible":
        return top / sigma2
    kappa = prior_efficiencies(a)
    if kind == "local":
        return top * float(kappa[0]) / sigma2
    thresholds = np.zeros(min(K - 1, spectrum.n_features))
    found = spectrum.eigenvalues[: len(thresholds)]
    thresholds[: len(found)] = found * kappa[: len(found)] / sigma2
    return thresholds


def check_weights(sample_weight: npt.ArrayLike | None, X: np.ndarray) -> np.ndarray | None:
    """Weights that are finite, nowhere negative and somewhere positive."""
    if sample_weight is None:
        return None
    if not np.asarray(sample_weight).any():
        raise ValueError("sample_weight is zero everywhere; allowed: at least one positive weight")
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if (weight < 0).any():
        raise ValueError(
            f"sample_weight holds the negative number {weight.min()!r}; allowed: at least 0"
        )
    return weight


def check_rows(X: npt.ArrayLike) -> np.ndarray:
    """Dense finite rows, at least two."""
    dtypes = [np.float64, np.float32]
    return densify(check_array(X, accept_sparse=True, dtype=dtypes, ensure_min_samples=2))


def densify(X: Any) -> np.ndarray:
    """A dense array; a warning where a sparse one becomes large."""
    if hasattr(X, "toarray"):
        if X.shape[0] * X.shape[1] > 1e8:
            warnings.warn(
                f"the sparse X of shape {X.shape} is made dense: "
                f"{8e-9 * X.shape[0] * X.shape[1]:.1f} GB",
                UserWarning,
                stacklevel=4,
            )
        return X.toarray()
    return np.asarray(X)


def collapse_threshold(
    X: npt.ArrayLike,
    n_components: int,
    *,
    concentration: npt.ArrayLike = 1.0,
    noise_variance: float | str = 1.0,
    kind: str = "local",
    sample_weight: npt.ArrayLike | None = None,
) -> float | np.ndarray:
    """Beta above which a Dirichlet beta-VAE's collapsed state is stable, before any fit.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The data that the loss will see, at least two rows.
    n_components : int
        Number of components, at least 2.
    concentration : float or array-like of shape (n_components,), default=1.0
        The prior's concentrations.
    noise_variance : float or "learned", default=1.0
        sigma^2 of the decoder; "learned": the value that training finds at collapse, tr(S) / D.
    kind : {"local", "flexible", "certificate", "spectrum"}, default="local"
        - "local": beta_c = lambda_1 kappa_1 / sigma^2, for decoders linear in the code.
        - "flexible": lambda_1 / sigma^2, for a decoder that may be any function of the code.
        - "certificate": (diameter / 2)^2 / sigma^2; from there on the collapsed state is a
          global optimum whatever prior, encoder or decoder. Rows too many to compare are bounded
          from above.
        - "spectrum": the local thresholds of the first min(n_components - 1, n_features)
          directions.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows.

    Returns
    -------
    float or ndarray of shape (min(n_components - 1, n_features),)
        The threshold; 0 for data without variance. An array where ``kind="spectrum"``.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or X has NaN, infinity or fewer than two rows.

    Examples
    --------
    >>> from equipoise.estimators import collapse_threshold
    >>> X = [[0, 0], [2, 0], [0, 1], [2, 1], [4, 3], [1, 5]]
    >>> round(float(collapse_threshold(X, 3, noise_variance=0.5)), 6)
    5.678014
    >>> collapse_threshold(X, 3, noise_variance=0.5, kind="spectrum").round(4)
    array([5.678 , 2.6528])
    """
    K = check_n_components(n_components)
    a = check_concentration(concentration, K)
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r} is not allowed; allowed: {list(KINDS)}")
    if noise_variance != "learned" and not (
        isinstance(noise_variance, Real) and 0 < noise_variance < np.inf
    ):
        raise ValueError(
            f"noise_variance={noise_variance!r} is not allowed; "
            "allowed: a positive number or 'learned'"
        )
    rows = check_rows(X)
    weight = check_weights(sample_weight, rows)
    spectrum = data_spectrum(rows, K, weight)
    diameter2 = None
    if kind == "certificate":
        seen = rows if weight is None else rows[weight > 0]
        diameter2 = squared_diameter(np.asarray(seen, dtype=np.float64), spectrum.mean)
    return threshold_of(spectrum, a, noise_variance, kind, diameter2)
