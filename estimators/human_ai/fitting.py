r"""Maximising the likelihood of decisions: Fisher scoring, or quasi-Newton with random effects.

The start is the plain logistic regression on (1, l_H, l_A), which is the model itself for
rho_hat = 0 and eps = 0. Pooled fits go on by Fisher scoring with Levenberg's damping, and with
several starts where the likelihood isn't concave (belief or lapse free). With random effects,
L-BFGS-B on the quadrature's likelihood is followed by Newton steps with a differenced Hessian.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit

from equipoise.blocks import map_blocks

from .evidence import binary_evidence, log_odds_evidence
from .likelihood import pooled_sums, worker_integrals

__all__ = ["Fit", "Trials", "cluster_scores", "fit_pooled", "fit_workers", "hessian_of"]

Array = NDArray[np.float64]

#: Bounds of (bias, log beta, gamma, atanh rho_hat, logit eps, log omega, log omega_b).
BOUND = {"bias": 60.0, "log": 14.0, "atanh": 4.0, "lapse": 16.0}
OMEGA = (-7.0, 2.5)
ROWS = 2**16
START_ROWS = 20_000
# The kernels' types are numba's own.
sums_of: Callable[..., Any] = pooled_sums
integrals_of: Callable[..., Any] = worker_integrals


@dataclass(frozen=True)
class Trials:
    """What the likelihood reads: one row a trial."""

    lh: Array
    la: Array
    r: Array
    V: Array  # (n, 1 + n_moderators), first column 1
    y: Array  # 0 or 1
    w: Array
    n_jobs: int | None = None
    #: Normal prior on the parameters: centre and precision, each (n_moderators + 7,).
    prior: tuple[Array, Array] | None = None
    #: Binary advice that is read in the light of x_H needs both capabilities.
    a: Array | None = None
    h: float = np.nan

    def part(self, rows: slice | NDArray[np.intp]) -> "Trials":
        """Some of the rows."""
        columns = ("lh", "la", "r", "V", "y", "w")
        a = None if self.a is None else self.a[rows]
        return replace(self, a=a, **{name: getattr(self, name)[rows] for name in columns})

    def arrays(self, belief: float, slopes: bool) -> tuple[Array, ...]:
        """The evidence under a belief, its slopes if asked for, V, y, w: the kernels' order."""
        if self.a is None:
            evidence = log_odds_evidence(self.lh, self.la, self.r, belief, slopes)
        else:
            side = np.sign(self.la)
            evidence = binary_evidence(self.lh, side, self.h, self.a, belief, slopes)
        return *evidence, self.V, self.y, self.w


@dataclass(frozen=True)
class Fit:
    """A maximum of the likelihood."""

    theta: Array
    free: NDArray[np.bool_]
    loglik: float
    information: Array  # (n_free, n_free), of the penalised likelihood
    n_iter: int
    converged: bool
    posterior: tuple[Array, Array] | None = None  # mean and variance of (u, v) by worker
    scores: Array | None = None  # (n_workers, n_free)


def unpack(
    theta: Array, q: int, lapse_free: bool, lapse: float
) -> tuple[float, float, Array, float, float]:
    """bias, beta, gamma, rho_hat and eps from the vector."""
    eps = float(expit(theta[3 + q])) if lapse_free else lapse
    gamma, belief = theta[2 : 2 + q].copy(), float(np.tanh(theta[2 + q]))
    return float(theta[0]), float(np.exp(theta[1])), gamma, belief, eps


def penalty(theta: Array, trials: Trials) -> tuple[float, Array, Array]:
    """Minus the log of the normal prior, its gradient and its (diagonal) curvature."""
    if trials.prior is None:
        return 0.0, np.zeros(theta.shape), np.zeros(theta.shape)
    center, precision = trials.prior
    away = theta - center
    return 0.5 * float(precision @ away**2), precision * away, precision


def bounds_of(q: int) -> tuple[Array, Array]:
    """Lower and upper bounds of the whole vector."""
    low_omega, high_omega = OMEGA
    high = [BOUND["bias"], BOUND["log"], *[BOUND["log"]] * q, BOUND["atanh"], BOUND["lapse"]]
    upper = np.array([*high, high_omega, high_omega], dtype=float)
    lower = np.array([*(-value for value in high), low_omega, low_omega])
    return lower, upper


def pooled_objective(
    trials: Trials, theta: Array, lapse_free: bool, lapse: float, slopes: bool = True
) -> tuple[float, Array, Array, float]:
    """Penalised log-likelihood, score, information, and the likelihood alone; blocks of rows.

    Without `slopes` the believed overlap is taken as fixed.
    """
    q = trials.V.shape[1]
    bias, beta, gamma, belief, eps = unpack(theta, q, lapse_free, lapse)
    n = len(trials.y)
    blocks = [slice(start, start + ROWS) for start in range(0, n, ROWS)]
    parts = map_blocks(
        lambda rows: sums_of(*trials.part(rows).arrays(belief, slopes), bias, beta, gamma, eps),
        blocks,
        trials.n_jobs,
    )
    loglik = sum(part[0] for part in parts)
    score = np.zeros(theta.shape)
    information = np.zeros((len(theta), len(theta)))
    score[: q + 4] = np.sum([part[1] for part in parts], axis=0)
    information[: q + 4, : q + 4] = np.sum([part[2] for part in parts], axis=0)
    cost, gradient, curvature = penalty(theta, trials)
    information[np.diag_indices(len(theta))] += curvature
    return loglik - cost, score - gradient, information, loglik


def logistic_start(trials: Trials, fit_bias: bool) -> Array:
    """(bias, beta_H, beta_A) of the logistic regression on the two columns, by Newton.

    A start needs no more than some ten thousand rows, taken evenly.
    """
    trials = trials.part(slice(None, None, -(-len(trials.y) // START_ROWS)))
    X = np.column_stack([np.ones_like(trials.lh), trials.lh, trials.la])
    use = np.array([fit_bias, True, True])
    coef = np.zeros(3)
    for _ in range(25):
        p = expit(X @ coef)
        gradient = (X.T @ (trials.w * (trials.y - p)))[use]
        hessian = ((X * (trials.w * p * (1 - p))[:, None]).T @ X)[np.ix_(use, use)]
        ridge = 1e-9 * max(float(np.trace(hessian)), 1e-9)
        step = np.linalg.solve(hessian + ridge * np.eye(use.sum()), gradient)
        step *= min(1.0, 5.0 / max(float(np.abs(step).max()), 1e-12))
        coef[use] += step
        if np.abs(step).max() < 1e-6 or np.abs(coef).max() > 60:
            break
    return coef


def start_vector(coef: Array, q: int, belief: float, lapse: float) -> Array:
    """The parameter vector that a logistic regression suggests; both weights positive."""
    theta = np.zeros(q + 6)
    theta[0] = np.clip(coef[0], -20, 20)
    theta[1] = np.log(np.clip(coef[1], 1e-3, 50.0))
    theta[2] = np.log(np.clip(coef[2] / max(coef[1], 1e-3), 1e-3, 1e3))
    theta[2 + q] = np.arctanh(belief)
    theta[3 + q] = logit(lapse if lapse > 0 else 0.02)
    theta[4 + q : 6 + q] = np.log(0.5)
    return theta


def scoring(
    trials: Trials,
    theta: Array,
    free: NDArray[np.bool_],
    lapse_free: bool,
    lapse: float,
    max_iter: int,
    tol: float,
) -> Fit:
    """Fisher scoring with damping, inside the bounds."""
    q = trials.V.shape[1]
    lower, upper = bounds_of(q)
    slopes = bool(free[2 + q])
    value, score, information, loglik = pooled_objective(trials, theta, lapse_free, lapse, slopes)
    total, damping, converged, n_iter = max(float(trials.w.sum()), 1.0), 0.0, False, 0
    for _ in range(max_iter):
        n_iter += 1
        # At a bound (a lapse of zero) a parameter that wants to go further stays.
        stays = ((theta <= lower) & (score < 0)) | ((theta >= upper) & (score > 0))
        moves = free & ~stays
        gradient, hessian = score[moves], information[np.ix_(moves, moves)]
        diagonal = np.maximum(np.diag(hessian), 1e-10 * total)
        step = np.linalg.solve(hessian + np.diag((damping + 1e-10) * diagonal), gradient)
        step *= min(1.0, 4.0 / max(float(np.abs(step).max(initial=0.0)), 1e-300))
        proposal = theta.copy()
        proposal[moves] = np.clip(theta[moves] + step, lower[moves], upper[moves])
        moved = float(np.abs(proposal - theta).max())
        fresh = pooled_objective(trials, proposal, lapse_free, lapse, slopes)
        if fresh[0] >= value - 1e-13 * abs(value):
            theta, (value, score, information, loglik) = proposal, fresh
            damping = damping / 10 if damping > 1e-6 else 0.0
            if moved < tol or float(np.abs(gradient @ step)) < 1e-11 * max(abs(value), 1.0):
                converged = True
                break
        else:
            damping = max(10 * damping, 1e-3)
            if damping > 1e12:
                converged = float(np.abs(gradient * step).max()) < 1e-10 * total
                break
    return Fit(theta, free, loglik, information[np.ix_(free, free)], n_iter, converged)


def hessian_of(gradient: Callable[[Array], Array], x: Array, step: float = 1e-5) -> Array:
    """Central differences of a gradient, made symmetric."""
    rows = []
    for j in range(len(x)):
        shift = np.zeros(len(x))
        shift[j] = step
        rows.append((gradient(x + shift) - gradient(x - shift)) / (2 * step))
    H = np.array(rows)
    return (H + H.T) / 2


def fit_pooled(
    trials: Trials,
    free: NDArray[np.bool_],
    fixed: Array,
    lapse_free: bool,
    lapse: float,
    max_iter: int,
    tol: float,
    start: Array | None = None,
) -> Fit:
    """The best maximum from the start and, where the likelihood isn't concave, two more.

    `fixed` holds the values of parameters that aren't free. The information returned is the
    observed one.
    """
    q = trials.V.shape[1]
    coef = logistic_start(trials, bool(free[0]))
    beliefs = (0.0, 0.4, -0.4) if free[2 + q] else (float(np.tanh(fixed[2 + q])),)
    lapses = (0.02, 0.2) if lapse_free else (lapse,)
    starts = [start_vector(coef, q, b, e) for b in beliefs for e in lapses]
    if start is not None:
        starts = [start]
    fits = []
    for theta in starts:
        theta = np.where(free, theta, fixed)
        fits.append(scoring(trials, theta, free, lapse_free, lapse, max_iter, tol))
    best = max(fits, key=lambda fit: fit.loglik - penalty(fit.theta, trials)[0])

    # A logistic regression in other coordinates: at its maximum both informations are the same.
    logistic = q == 1 and not free[2 + q] and not lapse_free and lapse == 0 and trials.prior is None
    inside = (np.abs(best.theta) < np.minimum(*np.abs(bounds_of(q))))[free].all()
    if logistic and inside and best.converged:
        return best

    def gradient(x: Array) -> Array:
        theta = best.theta.copy()
        theta[free] = x
        return pooled_objective(trials, theta, lapse_free, lapse, bool(free[2 + q]))[1][free]

    return replace(best, information=-hessian_of(gradient, best.theta[free]))


def cluster_scores(
    trials: Trials, fit: Fit, codes: NDArray[np.intp], lapse_free: bool, lapse: float
) -> Array:
    """Score of each cluster at the maximum, shape (n_clusters, n_free)."""
    q = trials.V.shape[1]
    bias, beta, gamma, belief, eps = unpack(fit.theta, q, lapse_free, lapse)
    slopes = bool(fit.free[2 + q])
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes))
    scores = np.zeros((len(ends), len(fit.theta)))
    for k, rows in enumerate(np.split(order, ends[:-1])):
        arrays = trials.part(rows).arrays(belief, slopes)
        scores[k, : q + 4] = sums_of(*arrays, bias, beta, gamma, eps)[1]
    return scores[:, fit.free]


def quadrature(n_quad: int, n_effects: int) -> tuple[Array, Array]:
    """Standard nodes (n_nodes, 2) and log w + |x|^2 of the (product) Gauss-Hermite rule."""
    x, weight = np.polynomial.hermite.hermgauss(n_quad)
    log_weight = np.log(weight) + x * x
    if n_effects == 1:
        return np.column_stack([x, np.zeros_like(x)]), log_weight
    grid = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1).reshape(-1, 2)
    return grid, np.add.outer(log_weight, log_weight).ravel()


def fit_workers(
    trials: Trials,
    starts: NDArray[np.int64],
    pooled: Fit,
    n_effects: int,
    n_quad: int,
    lapse_free: bool,
    lapse: float,
    max_iter: int,
    tol: float,
    start: Array | None = None,
) -> Fit:
    """Maximum with random effects; rows sorted by worker, worker k from starts[k] on."""
    q = trials.V.shape[1]
    free = pooled.free.copy()
    free[4 + q] = True
    free[5 + q] = n_effects == 2
    lower, upper = bounds_of(q)
    nodes, log_weights = quadrature(n_quad, n_effects)
    n_workers = len(starts) - 1
    modes = np.zeros((n_workers, 2))
    # Blocks of workers with about equally many rows; their results are put together in order.
    cuts = np.unique(np.searchsorted(starts, np.arange(0, starts[-1] + ROWS, ROWS)))
    cuts = np.unique(np.append(np.minimum(cuts, n_workers), n_workers))
    blocks = list(pairwise(cuts))

    def integrals(theta: Array) -> list[Array]:
        bias, beta, gamma, belief, eps = unpack(theta, q, lapse_free, lapse)
        omega = float(np.exp(theta[4 + q]))
        omega_b = float(np.exp(theta[5 + q])) if n_effects == 2 else 0.0

        def block(ends: tuple[int, int]) -> tuple[Array, ...]:
            first, last = ends
            rows = slice(starts[first], starts[last])
            return integrals_of(
                starts[first : last + 1] - starts[first],
                *trials.part(rows).arrays(belief, bool(free[2 + q])),
                bias,
                beta,
                gamma,
                eps,
                omega,
                omega_b,
                nodes,
                log_weights,
                n_effects,
                modes[first:last],
            )

        parts = map_blocks(block, blocks, trials.n_jobs)
        return [np.concatenate(column) for column in zip(*parts, strict=True)]

    def objective(x: Array) -> tuple[float, Array]:
        theta = pooled.theta.copy()
        theta[free] = x
        loglik, score, _, _ = integrals(theta)
        cost, gradient, _ = penalty(theta, trials)
        return cost - loglik.sum(), (gradient - score.sum(axis=0))[free]

    scale = max(float(trials.w.sum()), 1.0)
    limits = list(zip(lower[free], upper[free], strict=True))
    found = minimize(
        lambda x: tuple(part / scale for part in objective(x)),
        (pooled.theta if start is None else start)[free],
        jac=True,
        method="L-BFGS-B",
        bounds=limits,
        options={"maxiter": max_iter, "ftol": 1e-13, "gtol": 1e-7},
    )
    x = found.x
    value, gradient = objective(x)
    information = hessian_of(lambda x: objective(x)[1], x, 1e-4)
    for _ in range(4):
        inside = (x > lower[free] + 1e-9) & (x < upper[free] - 1e-9)
        try:
            step = np.zeros(len(x))
            step[inside] = np.linalg.solve(information[np.ix_(inside, inside)], gradient[inside])
        except np.linalg.LinAlgError:
            break
        proposal = np.clip(x - step, lower[free], upper[free])
        fresh, slope = objective(proposal)
        if not fresh <= value:
            break
        x, value, gradient = proposal, fresh, slope
        if np.abs(step).max() < tol:
            break
    information = hessian_of(lambda x: objective(x)[1], x, 1e-4)
    theta = pooled.theta.copy()
    theta[free] = x
    loglik, score, mean, variance = integrals(theta)
    converged = bool(found.success) or float(np.abs(gradient).max()) < 1e-4 * scale
    return Fit(
        theta,
        free,
        float(loglik.sum()),
        information,
        int(found.nit),
        converged,
        (mean, variance),
        score[:, free],
    )
