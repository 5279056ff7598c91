"""The beta at which a Dirichlet beta-VAE ignores its code, known before training.

Around the collapsed state (posterior = prior, every endmember = the mean mu) the objective's second
variation in W = mu 1^T + V and g = a + delta is negative in some direction iff beta < beta_c =
lambda_1 kappa_1 / sigma^2, with lambda_1 the covariance's largest eigenvalue and kappa_1 the
prior's efficiency (`efficiency`; `families` for posteriors that aren't Dirichlet laws).
"""

import warnings
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array
from sklearn.utils.validation import _check_sample_weight

from .efficiency import check_concentration, check_n_components
from .families import FAMILIES, FamilyFacts, family_facts
from .spectrum import DataSpectrum, data_spectrum, squared_diameter

__all__ = [
    "KINDS",
    "check_rows",
    "check_weights",
    "collapse_threshold",
    "densify",
    "threshold_of",
]

KINDS = ("local", "flexible", "certificate", "spectrum")


def threshold_of(
    spectrum: DataSpectrum,
    family: FamilyFacts,
    noise: float | str,
    kind: str,
    diameter2: float | None,
) -> float | np.ndarray:
    """The threshold of `kind` from the data's summary; noise "learned" takes tr(S) / D (3.11)."""
    if noise == "learned":
        sigma2 = spectrum.total_variance / spectrum.n_features
    else:
        sigma2 = float(noise)
    kappa = family.efficiencies
    width = min(len(kappa), spectrum.n_features)
    top = float(spectrum.eigenvalues[0])
    if kind == "certificate":
        if not family.has_certificate:
            raise ValueError(
                "kind='certificate' doesn't exist for posterior='weibull' with a concentration "
                "other than 1: what their divergence has above its least value doesn't bound the "
                "information"
            )
        assert diameter2 is not None
        return diameter2 / 4 / sigma2 if diameter2 else 0.0
    if spectrum.total_variance == 0:
        return np.zeros(width) if kind == "spectrum" else 0.0
    if kind == "flexible":
        return top * family.flexible_efficiency / sigma2
    if kind == "local":
        return top * float(kappa[0]) / sigma2
    thresholds = np.zeros(width)
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
    posterior: str = "dirichlet",
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
        - "flexible": lambda_1 / sigma^2, for a decoder that may be any function of the code; a
          bound from above for Weibull posteriors.
        - "certificate": (diameter / 2)^2 / sigma^2; from there on the collapsed state is a
          global optimum whatever prior, encoder or decoder. Rows too many to compare are bounded
          from above.
        - "spectrum": the local thresholds of the first min(n_components - 1, n_features)
          directions.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows.
    posterior : {"dirichlet", "softmax_normal", "weibull"}, default="dirichlet"
        Family of q(z|x), as for `DirichletBetaVAE`; for the last two to about 1e-4.

    Returns
    -------
    float or ndarray of shape (min(n_components - 1, n_features),)
        The threshold; 0 for data without variance. An array where ``kind="spectrum"``.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or X has NaN, infinity or fewer than two rows; if
        kind="certificate" doesn't exist for the posterior: Weibull laws with a concentration other
        than 1.

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
    if posterior not in FAMILIES:
        raise ValueError(f"posterior={posterior!r} is not allowed; allowed: {list(FAMILIES)}")
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
    return threshold_of(spectrum, family_facts(posterior, a), noise_variance, kind, diameter2)
