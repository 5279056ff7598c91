r"""How many decisions it takes to tell the region of a deployment, before they are collected.

At given r and rho (log-odds advice, even prior, neglect) a region ends at one value of trust:

    r < 1: impairment for tau > 2 (1 - rho / r) / (1 - r^2), where rho < r (else for all tau > 0),
    r > 1: automation for tau < (r^2 - 1) / (2 r^2 (1 - rho r)), where rho r < 1 (else for all).

Trust is estimated from P(decide +) = sigmoid(bias + beta (l_H + tau l_A)); its information for one
decision is an integral over the two normal signals. A two-sided test of level alpha tells tau from
the boundary tau_b with power 1 - b after ((z_{1-alpha/2} + z_{1-b}) / log(tau / tau_b))^2 v
decisions, v being the asymptotic variance of log tau for one decision.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, ndtri
from sklearn.utils import Bunch

from .accuracy import checked
from .checks import within
from .regimes import REGIME_NAMES, regime

__all__ = ["boundary_trust", "trials_needed"]

Array = NDArray[np.float64]

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(80)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def boundary_trust(r: ArrayLike, overlap: ArrayLike) -> float | Array:
    r"""Trust at which the region changes, for log-odds advice, an even prior and neglect.

    Parameters
    ----------
    r : array-like
        Relative capability a / h of the AI, positive.
    overlap : array-like
        Correlation of the errors, in (-1, 1).

    Returns
    -------
    float or ndarray
        For r < 1 the trust above which assistance impairs,
        :math:`2 (1 - \rho / r) / (1 - r^2)`, and 0 where it always does. For r > 1 the trust below
        which the AI alone is better, :math:`(r^2 - 1) / (2 r^2 (1 - \rho r))`, and infinity where
        it always is. NaN for r = 1, where no trust changes the region.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    Examples
    --------
    >>> from equipoise.games import boundary_trust
    >>> boundary_trust([0.5, 1.6], 0.3).round(4)
    array([1.0667, 0.5859])
    """
    R = within(r, "r", 0.0, open_ends=True)
    R, rho = np.broadcast_arrays(R, within(overlap, "overlap", -1.0, 1.0, open_ends=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        impairment = np.maximum(2 * (1 - rho / R) / (1 - R**2), 0.0)
        below = 2 * R**2 * (1 - rho * R)
        automation = np.where(below > 0, (R**2 - 1) / np.where(below > 0, below, 1.0), np.inf)
    return np.where(R < 1, impairment, np.where(R > 1, automation, np.nan))[()]


def log_trust_variance(h: float, a: float, rho: float, tau: float, beta: float) -> float:
    """Asymptotic variance of log tau from one decision, bias and beta being estimated too."""
    x, other = np.meshgrid(NODES, NODES, indexing="ij")
    weight = np.outer(WEIGHTS, WEIGHTS).ravel()
    e_h, e_a = x.ravel(), (rho * x + np.sqrt((1 - rho) * (1 + rho)) * other).ravel()
    information = np.zeros((3, 3))
    for y in (1.0, -1.0):
        l_h, l_a = 2 * h * (y * h + e_h), 2 * a * (y * a + e_a)
        z = beta * (l_h + tau * l_a)
        J = np.stack([np.ones_like(z), z, beta * tau * l_a])  # d / d (bias, log beta, log tau)
        information += 0.5 * (J * (weight * expit(z) * expit(-z))) @ J.T
    return float(np.linalg.inv(information)[2, 2])


def trials_needed(
    h: float,
    a: float,
    overlap: float,
    *,
    trust: float = 1.0,
    noise_scale: float = 1.0,
    power: float = 0.8,
    level: float = 0.05,
) -> Bunch:
    """Number of decisions that tell a deployment's region from the next one.

    Parameters
    ----------
    h, a, overlap : float
        Capabilities, positive, and the correlation of the errors, as in `team_accuracy`.
    trust : float, default=1.0
        The trust that is expected.
    noise_scale : float, default=1.0
        beta: how closely decisions follow the log-odds.
    power : float, default=0.8
        Probability of telling them apart.
    level : float, default=0.05
        Level of the two-sided test, one less the coverage of the interval for trust.

    Returns
    -------
    Bunch
        ``n_trials`` (decisions, capabilities and overlap taken as known), ``region`` and
        ``boundary`` (the trust at which it ends), ``other`` (the region beyond), and ``error``
        (standard error of log trust after one decision; divide by the root of n). Where no trust
        changes the region, `n_trials` is infinite and ``boundary`` NaN.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    Notes
    -----
    Log-odds advice, an even prior, neglect, and a known overlap. Workers who differ need more: one
    decision of each of n workers says more than n decisions of one.

    Examples
    --------
    >>> from equipoise.games import trials_needed
    >>> plan = trials_needed(0.5, 0.8, 0.3, trust=0.25)
    >>> print(plan.n_trials, plan.region, plan.other, round(plan.boundary, 3))
    494 automation complementarity 0.586
    """
    for value, name in ((h, "h"), (a, "a"), (trust, "trust"), (noise_scale, "noise_scale")):
        within(value, name, 0.0, open_ends=True)
    for value, name in ((power, "power"), (level, "level")):
        within(value, name, 0.0, 1.0, open_ends=True)
    _, _, rho, tau, _, _ = checked(h, a, overlap, trust, 0.0, "correlation", 0.5)
    error = float(np.sqrt(log_trust_variance(h, a, float(rho), float(tau), noise_scale)))
    here = REGIME_NAMES[int(regime(h, a, overlap, trust=trust))]
    edge = float(boundary_trust(a / h, overlap))
    if not (np.isfinite(edge) and edge > 0):
        return Bunch(n_trials=np.inf, region=here, boundary=np.nan, other=here, error=error)
    if edge == trust:
        return Bunch(n_trials=np.inf, region=here, boundary=edge, other=here, error=error)
    beyond = edge * (edge / trust)  # as far on the other side
    other = REGIME_NAMES[int(regime(h, a, overlap, trust=beyond))]
    z = ndtri(1 - level / 2) + ndtri(power)
    n = (z * error / np.log(trust / edge)) ** 2
    return Bunch(n_trials=int(np.ceil(n)), region=here, boundary=edge, other=other, error=error)
