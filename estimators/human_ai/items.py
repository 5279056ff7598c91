r"""Latent trials of cases that differ in difficulty, which both sides share.

Case j moves both capabilities, h + sigma_H d_j and a + sigma_A d_j with d_j ~ N(0, 1). Given d_j
its trials are independent, with the cells of `latent` at the case's capabilities; the worker's
threshold k = tau logit(P(AI right)) / 2h doesn't move, because the worker knows the AI's accuracy
over all cases. The integral over d_j is a Gauss-Hermite sum, the same nodes for all cases:
log L = sum_j log sum_q w_q exp(C_j . log P_q), C_j being the case's counts.

Without it, difficulty counts as overlap. Within a case, difficulty and overlap can only be told
apart where the AI answers the same case now right, now wrong.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_ndtr, logsumexp, ndtr

from ...games.human_ai.bivariate import orthant
from .fitting import hessian_of
from .latent import LatentFit, fit_cells

__all__ = ["ItemFit", "fit_items"]

Array = NDArray[np.float64]

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(31)
LOG_WEIGHTS = np.log(WEIGHTS) - 0.5 * np.log(2 * np.pi)
#: Smallest and largest spread of difficulty, on the log scale.
SPREAD = (-5.0, 1.5)


class ItemFit(LatentFit):
    """A latent fit at a case of middling difficulty, whose `theta` ends with both log spreads."""

    @property
    def item_sd(self) -> tuple[float, float]:
        """sigma_H and sigma_A."""
        return float(np.exp(self.theta[-2])), float(np.exp(self.theta[-1]))


def cells_at_nodes(theta: Array, n_systems: int) -> tuple[Array, Array]:
    """Probabilities of (right, wrong) alone and of each system's cells, and the thresholds k.

    The first has shape (n_nodes, 2 + 4 n_systems).
    """
    h, tau = np.exp(theta[:2])
    a = np.exp(theta[2 : 2 + n_systems])
    rho = np.tanh(theta[2 + n_systems])
    spread_h, spread_a = np.exp(theta[3 + n_systems :])
    marginal = a / np.sqrt(1 + spread_a**2)
    k = tau * (log_ndtr(marginal) - log_ndtr(-marginal)) / (2 * h)
    H = (h + spread_h * NODES)[:, None]  # (n_nodes, 1)
    A = a + spread_a * NODES[:, None]  # (n_nodes, n_systems)
    R = np.full(A.shape, rho)
    cells = np.stack(
        [
            orthant(H + k, A, R),
            orthant(H - k, -A, -R),
            orthant(-H - k, A, -R),
            orthant(k - H, -A, R),
        ],
        axis=2,
    )
    return np.column_stack([ndtr(H), ndtr(-H), cells.reshape(len(NODES), -1)]), k


def check_items(counts: Array) -> None:
    """Refuse cases from which difficulty and overlap can't be told apart; counts (J, 2 + 4 G)."""
    cells = counts[:, 2:].reshape(len(counts), -1, 4)
    ai_right, ai_wrong = cells[..., [0, 2]].sum(axis=-1), cells[..., [1, 3]].sum(axis=-1)
    if not (counts.sum(axis=1) > 1).any():
        raise ValueError("items: each case occurs once; random_effects='item' needs repeated cases")
    if not ((ai_right > 0) & (ai_wrong > 0)).any():
        raise ValueError(
            "items: the AI answers each case always alike, so that its difficulty and the overlap "
            "of errors can't be told apart; allowed: random_effects=None, or advice drawn anew"
        )


def fit_items(counts: Array, max_iter: int, tol: float) -> ItemFit:
    """Maximum likelihood from the counts of each case, shape (n_items, 2 + 4 n_systems)."""
    check_items(counts)
    n_systems = (counts.shape[1] - 2) // 4
    total = counts.sum(axis=0)
    plain = fit_cells((total[0], total[:2].sum()), total[2:].reshape(-1, 4), 2, max_iter, tol)

    def objective(theta: Array) -> float:
        p, _ = cells_at_nodes(theta, n_systems)
        joint = counts @ np.log(np.maximum(p, 1e-300)).T + LOG_WEIGHTS  # (n_items, n_nodes)
        return -float(logsumexp(joint, axis=1).sum())

    def gradient(theta: Array) -> Array:
        steps = 1e-5 * np.eye(len(theta))
        return np.array([(objective(theta + s) - objective(theta - s)) / 2e-5 for s in steps])

    scale = counts.sum()
    bounds = [(-4, 4), (-14, 14), *[(-3, 3)] * n_systems, (-4, 4), SPREAD, SPREAD]
    found = min(
        (
            minimize(
                lambda theta: objective(theta) / scale,
                np.append(plain.theta, np.log([spread, spread])),
                jac=lambda theta: gradient(theta) / scale,
                method="L-BFGS-B",
                bounds=bounds,
                options={"maxiter": max_iter, "ftol": 1e-14, "gtol": 1e-9},
            )
            for spread in (0.1, 0.5)
        ),
        key=lambda result: result.fun,
    )
    theta = found.x
    information = hessian_of(gradient, theta, 1e-3)
    p, k = cells_at_nodes(theta, n_systems)
    mean = np.exp(LOG_WEIGHTS) @ p[:, 2:]
    cells = mean.reshape(n_systems, 4)
    ai_names = tuple(f"log_ai_{g}" for g in range(n_systems))
    return ItemFit(
        human=float(np.exp(theta[0])),
        ai=np.exp(theta[2 : 2 + n_systems]),
        overlap=float(np.tanh(theta[2 + n_systems])),
        trust=float(np.exp(theta[1])),
        thresholds=k,
        follow=cells[:, 0] + cells[:, 3],
        names=("log_human", "log_trust", *ai_names, "atanh_overlap", "log_sd_human", "log_sd_ai"),
        theta=theta,
        covariance=np.asarray(np.linalg.pinv(information, hermitian=True), dtype=float),
        loglik=-float(objective(theta)),
        deviance=np.nan,
        pearson=np.nan,
        df=0,
        n_iter=int(found.nit),
        converged=bool(np.abs(gradient(theta)).max() < 1e-3 * np.sqrt(scale)),
    )
