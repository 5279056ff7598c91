"""Families of posteriors: what their collapsed state is, and the threshold that follows.

"dirichlet": q = Dir(g), and the prior is one of the family. "softmax_normal": z = softmax(h) with
independent normal h; the prior is the Laplace approximation of Dir(a) in that basis (Srivastava and
Sutton 2017), h ~ N(mu, diag s^2), and the divergence is that of h. "weibull": z = w / sum w with
independent Weibull w, against w ~ Gamma(a, 1) (Zhang et al. 2018), whose z is Dir(a); no Weibull
law is a Gamma law unless a = 1, so that the divergence has a floor.

The last two are location and scale in log w = loc + scale e, with e normal or the logarithm of an
exponential variable. Each has two parameters a component: o = 0 is the collapsed state, where the
divergence is least, with a diagonal Hessian H there. With J = d E[z] / d o and C = Cov z at o = 0,
the collapsed state turns stable at beta_c = lambda_1 kappa_1 / sigma^2, kappa the generalised
eigenvalues of (J H^-1 J^T, C). J = Cov(z, score), by scrambled Sobol points.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq
from scipy.special import gammaln, ndtri, polygamma, psi
from scipy.stats import qmc

from .efficiency import prior_efficiencies

__all__ = ["FAMILIES", "FamilyFacts", "family_facts", "softmax_normal_prior", "weibull_prior"]

FAMILIES = ("dirichlet", "softmax_normal", "weibull")
#: 2^POINTS Sobol points for the efficiencies; fewer where that is more than 2^NUMBERS numbers.
POINTS, NUMBERS = 17, 21
#: How many of them must carry a component's variance (its squared mean square over its mean fourth
#: power), so that its estimate holds.
LEAST_POINTS = 20


class FamilyFacts(NamedTuple):
    """What the thresholds and the report need to know of a family at its collapsed state."""

    efficiencies: np.ndarray  #: kappa (K - 1,), descending
    logratio_efficiency: float  #: kappa_1 for a decoder linear in log-ratios
    flexible_efficiency: float  #: bound of kappa_1 for any decoder
    code_variance: float  #: mean variance of the code along a direction of the simplex
    floor: float  #: divergence that is left at the collapsed state
    has_certificate: bool  #: whether the divergence bounds the information from above


def softmax_normal_prior(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation (K,) of h: the Laplace approximation of Dir(a)."""
    K = len(a)
    log_a = np.log(a)
    return log_a - log_a.mean(), np.sqrt((1 - 2 / K) / a + np.mean(1 / a) / K)


def weibull_prior(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """log t (K,) of the Weibull laws (shape 1 / t, mean a) nearest to Gamma(a, 1), and the floor.

    The derivative in t vanishes where a t (psi(1) distance) = 1: a t (gamma + psi(1 + t)) = 1.
    """

    def excess(log_t: float, log_a: float) -> float:
        t = np.exp(log_t)
        # gamma + psi(1 + t) by its series where the two nearly cancel.
        rise = psi(1 + t) + np.euler_gamma if t > 1e-4 else np.pi**2 / 6 * t - 1.2020569 * t * t
        return log_a + log_t + float(np.log(rise))

    log_t = np.array([brentq(excess, -400.0, 700.0, args=(x,), xtol=1e-13) for x in np.log(a)])
    t = np.exp(log_t)
    # E log w = ln a - lnGamma(1 + t) - gamma t.
    spread = gammaln(1 + t) + np.euler_gamma * t
    constant = gammaln(a + 1) - np.log(a) - a * np.log(a) + a
    return log_t, a * spread - log_t - np.euler_gamma - 1 + constant


def sobol_uniforms(K: int) -> np.ndarray:
    """Points (n, K) in the open unit cube, always the same."""
    exponent = min(POINTS, NUMBERS - int(np.ceil(np.log2(K))))
    points = qmc.Sobol(K, rng=0).random_base2(exponent)
    return np.clip(points, 2.0**-33, 1 - 2.0**-33)


def generalised_efficiencies(
    code: np.ndarray, scores: np.ndarray, inverse_hessian: np.ndarray
) -> np.ndarray:
    """kappa (K - 1,) of a code (n, K) with sums that are constant, from scores (n, 2 K)."""
    n = len(code)
    # The sums are constant: all coordinates but the largest one are a basis. Their scales don't
    # matter, so each is taken in its own.
    kept = np.delete(code, int(np.abs(code.mean(axis=0)).argmax()), axis=1)
    size = np.abs(kept).max(axis=0)
    centred = kept / np.where(size > 0, size, 1.0)
    centred -= centred.mean(axis=0)
    variance = (centred**2).mean(axis=0)
    seen = n * variance**2 / np.maximum((centred**4).mean(axis=0), np.finfo(float).tiny)
    centred /= np.sqrt(np.maximum(variance, np.finfo(float).tiny))
    J = centred.T @ scores / n
    C = centred.T @ centred / n
    if seen.min() < LEAST_POINTS or np.linalg.eigvalsh(C)[0] < 1e-12:
        raise ValueError(
            "concentration is too unequal or too large for the thresholds of this posterior, which "
            f"are means over {n} points: some component varies at fewer than {LEAST_POINTS} of "
            "them; allowed: concentrations nearer to each other, or posterior='dirichlet'"
        )
    return eigh((J * inverse_hessian) @ J.T, C, eigvals_only=True)[::-1]


def softmax_rows(log_w: np.ndarray) -> np.ndarray:
    """Rows on the simplex from logarithms of weights (n, K)."""
    w = np.exp(log_w - log_w.max(axis=1, keepdims=True))
    return w / w.sum(axis=1, keepdims=True)


def family_facts(posterior: str, a: np.ndarray) -> FamilyFacts:
    """The facts of "dirichlet", "softmax_normal" or "weibull" under the prior Dir(a).

    Parameters
    ----------
    posterior : {"dirichlet", "softmax_normal", "weibull"}
        The family.
    a : ndarray of shape (K,)
        Concentrations.

    Returns
    -------
    FamilyFacts
        The first exact; the others to about 1e-4, and to 5e-3 beyond 16 components.
    """
    K, a0 = len(a), a.sum()
    m = a / a0
    # 1 - m.m without cancellation.
    dirichlet_variance = float(m @ (1.0 - np.eye(K)) @ m / (a0 + 1) / (K - 1))
    if posterior == "dirichlet":
        kappa = prior_efficiencies(a)
        return FamilyFacts(kappa, 1.0, 1.0, dirichlet_variance, 0.0, True)
    u = sobol_uniforms(K)
    if posterior == "softmax_normal":
        mean, s = softmax_normal_prior(a)
        e = ndtri(u)
        log_w = mean + s * e
        scores = np.hstack([e, e**2 - 1])
        inverse = np.repeat([1.0, 0.5], K)
        floor, logratio, flexible = 0.0, 1.0, 1.0
    else:
        log_t, floors = weibull_prior(a)
        t = np.exp(log_t)
        v = -np.log(u)
        e = np.log(v)
        log_w = np.log(a) - gammaln(1 + t) + t * e
        rise = psi(1 + t)
        # Offsets of the mean's logarithm, and of log t with the mean kept.
        shift = (v - 1) / t
        stretch = (1 - v) * (rise - e) - 1
        scores = np.hstack([shift, stretch])
        curvature = 1 + a * t * (t * polygamma(1, 1 + t))
        inverse = np.concatenate([1 / a, 1 / curvature])
        floor = float(floors.sum())
        ratio = log_w - log_w.mean(axis=1, keepdims=True)
        logratio = float(generalised_efficiencies(ratio, scores, inverse)[0])
        # The top eigenvalue of H^-1 F over functions of w: F is Fisher's information.
        flexible = max(
            float(eigh(np.cov(x, y, bias=True), np.diag(1 / np.array(h)), eigvals_only=True)[-1])
            for x, y, *h in zip(shift.T, stretch.T, inverse[:K], inverse[K:], strict=True)
        )
    code = softmax_rows(log_w)
    kappa = generalised_efficiencies(code, scores, inverse)
    if np.all(a == a[0]):  # all directions are alike
        kappa = np.full(K - 1, kappa.mean())
    variance = float(code.var(axis=0).sum()) / (K - 1)
    exact = posterior == "softmax_normal" or bool(np.all(a == 1))
    return FamilyFacts(kappa, logratio, flexible, variance, floor, exact)
