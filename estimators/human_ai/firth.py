r"""Firth's penalty: a finite answer where the evidence predicts every decision.

The likelihood of separated decisions rises for ever. Jeffreys' prior on the weights
c = (bias, beta, beta tau, ...) adds half the log-determinant of their Fisher information, which
takes off the first-order bias of a logistic regression and falls where the weights grow. In the
parameters theta = (bias, log beta, log tau, ...) that is

    log det I(theta) / 2 - 2 log beta - log tau,

because |dc / dtheta| = beta^2 tau. Moderators' coefficients stay on their own scale.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from .fitting import Fit, Trials, bounds_of, logistic_start, start_vector

__all__ = ["fit_firth"]

Array = NDArray[np.float64]


def firth_objective(
    theta: Array, trials: Trials, evidence: tuple[Array, ...], free: NDArray[np.bool_]
) -> tuple[float, Array, Array, float]:
    """Penalised log-likelihood, its gradient, Fisher information, and the likelihood alone.

    All over the free parameters among (bias, log beta, gamma).
    """
    q = trials.V.shape[1]
    human, ai = evidence
    bias, beta, gamma = theta[0], np.exp(theta[1]), theta[2 : 2 + q]
    A = beta * np.exp(np.clip(trials.V @ gamma, -30, 30)) * ai
    z = bias + beta * human + A
    # dz / d theta, and its own derivatives: of column log beta the columns (log beta, gamma),
    # of column gamma_k the columns (A V_k, A V_j V_k).
    J = np.column_stack([np.ones_like(z), z - bias, A[:, None] * trials.V])  # (n, q + 2)
    p = expit(z)
    W = trials.w * p * (1 - p)
    information = (J * W[:, None]).T @ J
    part = information[np.ix_(free, free)]
    sign, logdet = np.linalg.slogdet(part)
    side = np.where(trials.y > 0.5, 1.0, -1.0)
    loglik = float(trials.w @ log_expit(side * z))
    if sign <= 0:
        return -np.inf, np.zeros(len(part)), part, loglik
    G = np.zeros_like(J)
    G[:, free] = J[:, free] @ np.linalg.inv(part)
    hat = W * (G * J).sum(axis=1)
    gradient = J.T @ (trials.w * (trials.y - p) + hat * (0.5 - p))
    WG = W[:, None] * G
    gradient[1] += (WG[:, 1:] * J[:, 1:]).sum() - 2.0
    along = WG[:, 1] + (WG[:, 2:] * trials.V).sum(axis=1)
    gradient[2:] += J[:, 2:].T @ along
    gradient[2] -= 1.0
    value = loglik + 0.5 * logdet - 2 * theta[1] - theta[2]
    return value, gradient[free], part, loglik


def fit_firth(
    trials: Trials, free: NDArray[np.bool_], fixed: Array, max_iter: int, tol: float
) -> Fit:
    """Scoring with step halving on the penalised likelihood; the information is Fisher's."""
    q = trials.V.shape[1]
    belief = float(np.tanh(fixed[2 + q]))
    evidence = trials.arrays(belief, False)[:2]
    coef = np.clip(logistic_start(trials, bool(free[0])), -3.0, 3.0)
    theta = np.where(free, start_vector(coef, q, belief, 0.0), fixed)
    mask = free[: q + 2]
    index = np.flatnonzero(mask)
    lower, upper = (bound[index] for bound in bounds_of(q))
    value, gradient, information, loglik = firth_objective(theta, trials, evidence, mask)
    converged, n_iter = False, 0
    while n_iter < max_iter and not converged:
        n_iter += 1
        ridge = 1e-10 * np.diag(np.maximum(np.diag(information), 1e-10))
        step = np.linalg.solve(information + ridge, gradient)
        step *= min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-300))
        for _ in range(40):
            proposal = theta.copy()
            proposal[index] = np.clip(theta[index] + step, lower, upper)
            fresh = firth_objective(proposal, trials, evidence, mask)
            if fresh[0] >= value - 1e-13 * abs(value):
                break
            step /= 2
        moved = float(np.abs(proposal - theta).max())
        theta, (value, gradient, information, loglik) = proposal, fresh
        converged = moved < tol
    return Fit(theta, free, loglik, information, n_iter, converged)
