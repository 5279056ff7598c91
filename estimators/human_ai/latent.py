r"""Trust and overlap from final decisions alone: no evidence of the human before the advice.

Human-alone trials give h; each AI system gives the four cells (team, AI) right or wrong, with
P11 = Phi2(h + k, a; rho), P10 = Phi2(h - k, -a; -rho) and k = tau logit(Phi(a)) / 2h. One system
is just identified, more are over-identified and tested. With K > 2 alternatives the cells are
those of the K-choice model: one-dimensional integrals for independent noises, and a sum over fixed
Sobol points, smooth in the parameters, where the noises for an option are correlated.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri, xlogy
from scipy.stats import chi2

from ...games.human_ai.binary import binary_cells
from ...games.human_ai.choices import capability_of, option_accuracy, option_cells

__all__ = ["LatentFit", "cluster_covariance", "fit_cells"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LatentFit:
    """What the counts say; capabilities are d for more than two alternatives."""

    human: float
    ai: Array
    overlap: float
    trust: float
    thresholds: Array  # k of each system
    follow: Array  # share of decisions that take the AI's side, for each system
    names: tuple[str, ...]
    theta: Array  # log h, log tau, log a_g, and atanh rho if it was estimated
    covariance: Array
    loglik: float
    deviance: float  # G^2 against the saturated model
    pearson: float
    df: int
    n_iter: int
    converged: bool

    @property
    def pvalue(self) -> float:
        """P-value of G^2; NaN where nothing is left to test."""
        return float(chi2.sf(self.deviance, self.df)) if self.df > 0 else np.nan


def checked_counts(
    human_alone: Sequence[float], team_by_ai: ArrayLike, n_choices: int
) -> tuple[Array, Array]:
    """(right, wrong) alone, and cells (n_systems, 4)."""
    right, total = (float(v) for v in human_alone)
    cells = np.atleast_2d(np.asarray(team_by_ai, dtype=float))
    if not (np.isfinite([right, total]).all() and 0 <= right <= total and total > 0):
        raise ValueError(
            f"human_alone: got {tuple(human_alone)}; allowed: (right, n), 0 <= right <= n, n > 0"
        )
    if cells.ndim != 2 or cells.shape[1] != 4 or not np.isfinite(cells).all() or (cells < 0).any():
        raise ValueError(
            f"team_by_ai: got shape {cells.shape}; allowed: rows [n11, n10, n01, n00] of counts "
            "(team, AI right or wrong), one row an AI system"
        )
    if (cells.sum(axis=1) == 0).any():
        raise ValueError("team_by_ai: a row without a single trial")
    if right / total <= 1 / n_choices:
        raise ValueError(
            f"human_alone: right in {right / total:.3f} of the trials, not above chance "
            f"(1 / {n_choices}): a capability, and so trust, can't be inferred"
        )
    return np.array([right, total - right]), cells


def probabilities(
    theta: Array, n_systems: int, n_choices: int, overlap: float | None = None
) -> tuple[Array, Array, Array]:
    """P of (right, wrong) alone, of the cells of each system, and the thresholds k.

    Where the overlap isn't given, theta ends with its atanh.
    """
    h, tau = np.exp(theta[0]), np.exp(theta[1])
    a = np.exp(theta[2 : 2 + n_systems])
    H, T = np.full(a.shape, h), np.full(a.shape, tau)
    rho = np.full(a.shape, np.tanh(theta[-1]) if overlap is None else overlap)
    if n_choices == 2:
        cells = np.stack(binary_cells(H, a, rho, T), axis=1)
        alone = np.array([ndtr(h), ndtr(-h)])
        k = T * (np.log(ndtr(a)) - np.log(ndtr(-a))) / (2 * h)
        return alone, cells, k
    p11, p10 = option_cells(H, a, rho, T, n_choices)
    p_ai, p_human = option_accuracy(a, n_choices), option_accuracy(np.array(h), n_choices)
    cells = np.stack([p11, p10, p_ai - p11, 1 - p_ai - p10], axis=1)
    k = T * np.log(p_ai * (n_choices - 1) / (1 - p_ai)) / h
    return np.array([float(p_human), 1 - float(p_human)]), cells, k


def stacked_cells(
    theta: Array, n_systems: int, n_choices: int, overlap: float | None = None
) -> Array:
    """Probabilities of right and wrong alone and of all cells, shape (2 + 4 n_systems,)."""
    p_alone, p_cells, _ = probabilities(theta, n_systems, n_choices, overlap)
    return np.maximum(np.concatenate([p_alone, p_cells.ravel()]), 1e-300)


def cells_jacobian(
    theta: Array, n_systems: int, n_choices: int, overlap: float | None, step: float = 1e-5
) -> Array:
    """Differenced derivatives of `stacked_cells`, shape (2 + 4 n_systems, n_parameters)."""
    columns = [
        stacked_cells(theta + shift, n_systems, n_choices, overlap)
        - stacked_cells(theta - shift, n_systems, n_choices, overlap)
        for shift in step * np.eye(len(theta))
    ]
    return np.column_stack(columns) / (2 * step)


def cluster_covariance(latent: LatentFit, counts: Array) -> Array:
    """Sandwich from each worker's counts (n_workers, 2 + 4 n_systems), for two alternatives."""
    G, n = len(latent.ai), len(counts)
    p = stacked_cells(latent.theta, G, 2)
    scores = (counts / p) @ cells_jacobian(latent.theta, G, 2, None)
    meat = scores.T @ scores * (n / (n - 1))
    return np.asarray(latent.covariance @ meat @ latent.covariance, dtype=float)


def start_of(alone: Array, cells: Array, n_choices: int, overlap: float | None) -> Array:
    """Capabilities by inversion, trust from a coarse search, where free with rho = 0.2."""
    p_ai = (cells[:, 0] + cells[:, 2]) / cells.sum(axis=1)
    p_ai = np.clip(p_ai, 1 / n_choices + 1e-3, 1 - 0.5 / cells.sum(axis=1))
    p_human = np.clip(alone[0] / alone.sum(), 1 / n_choices + 1e-4, 1 - 0.5 / alone.sum())
    if n_choices == 2:
        h, a = ndtri(p_human), ndtri(p_ai)
    else:
        h, a = capability_of(np.array(p_human), n_choices), capability_of(p_ai, n_choices)
    tail = [np.arctanh(0.2)] if overlap is None else []
    candidates = [
        np.array([np.log(h), log_tau, *np.log(a), *tail]) for log_tau in np.linspace(-4, 2, 25)
    ]
    return max(candidates, key=lambda theta: loglik_of(theta, alone, cells, n_choices, overlap))


def loglik_of(
    theta: Array, alone: Array, cells: Array, n_choices: int, overlap: float | None
) -> float:
    """Multinomial log-likelihood, without the coefficients."""
    p_alone, p_cells, _ = probabilities(theta, len(cells), n_choices, overlap)
    return float(xlogy(alone, p_alone).sum() + xlogy(cells, np.maximum(p_cells, 1e-300)).sum())


def fit_cells(
    human_alone: Sequence[float],
    team_by_ai: ArrayLike,
    n_choices: int = 2,
    max_iter: int = 200,
    tol: float = 1e-8,
    overlap: float | None = None,
) -> LatentFit:
    """Maximum likelihood by Fisher scoring, with differenced derivatives of the cells.

    The overlap is estimated unless it is given.
    """
    alone, cells = checked_counts(human_alone, team_by_ai, n_choices)
    n_systems = len(cells)
    weight = np.concatenate([[alone.sum()] * 2, np.repeat(cells.sum(axis=1), 4)])
    counts = np.concatenate([alone, cells.ravel()])
    theta = start_of(alone, cells, n_choices, overlap)
    bound = np.array([4.0, 14.0, *[3.0] * n_systems, *[4.0] * (overlap is None)])

    settings = (n_systems, n_choices, overlap)
    value = loglik_of(theta, alone, cells, n_choices, overlap)
    damping, converged, n_iter = 0.0, False, 0
    for _ in range(max_iter):
        n_iter += 1
        p, J = stacked_cells(theta, *settings), cells_jacobian(theta, *settings)
        information = (J * (weight / p)[:, None]).T @ J
        gradient = J.T @ (counts / p)
        diagonal = np.maximum(np.diag(information), 1e-8 * weight.sum())
        step = np.linalg.solve(information + np.diag((damping + 1e-12) * diagonal), gradient)
        step *= min(1.0, 1.0 / max(float(np.abs(step).max()), 1e-300))
        proposal = np.clip(theta + step, -bound, bound)
        fresh = loglik_of(proposal, alone, cells, n_choices, overlap)
        moved = float(np.abs(proposal - theta).max())
        if fresh >= value - 1e-12 * abs(value):
            theta, value, damping = proposal, fresh, damping / 10
            if moved < tol:
                converged = True
                break
        else:
            damping = max(10 * damping, 1e-4)
            if damping > 1e10:
                converged = moved < 1e-6
                break
    p, J = stacked_cells(theta, *settings), cells_jacobian(theta, *settings)
    information = (J * (weight / p)[:, None]).T @ J
    expected = weight * p
    positive = counts > 0
    deviance = 2 * float((counts[positive] * np.log(counts[positive] / expected[positive])).sum())
    names = ("log_human", "log_trust", *(f"log_ai_{g}" for g in range(n_systems)))
    _, fitted, k = probabilities(theta, *settings)
    share = fitted[:, 0] + fitted[:, 3]  # with more alternatives, both wrong need not agree
    return LatentFit(
        human=float(np.exp(theta[0])),
        ai=np.exp(theta[2 : 2 + n_systems]),
        overlap=float(np.tanh(theta[-1])) if overlap is None else overlap,
        trust=float(np.exp(theta[1])),
        thresholds=k,
        follow=share,
        names=(*names, "atanh_overlap") if overlap is None else names,
        theta=theta,
        covariance=np.asarray(np.linalg.pinv(information), dtype=float),
        loglik=value,
        deviance=max(deviance, 0.0),
        pearson=float(((counts - expected) ** 2 / np.maximum(expected, 1e-300)).sum()),
        df=1 + 3 * n_systems - len(theta),
        n_iter=n_iter,
        converged=converged,
    )
