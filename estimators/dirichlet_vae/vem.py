"""Variational EM: per-row Dirichlet posteriors by Newton's method, endmembers in closed form.

The objective per row, averaged with weights that sum to one, is

    L_beta = E_q ||y - V z||^2 / (2 sigma^2) + (D / 2) ln(2 pi sigma^2) + beta KL(Dir(g) || Dir(a)).

For fixed sigma^2 only tau = beta sigma^2 matters to V and q. Alternating the row step and an update
of V never increases it. EM is slow near the threshold, where it multiplies a small V by about
beta_c / beta; so V is extrapolated from its last iterates (Anderson) and the plain step is taken
wherever that doesn't decrease the objective.
"""

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from equipoise.blocks import iter_blocks, map_blocks

from .decoders import Update
from .kernels import newton_rows, posterior_moments

__all__ = ["Penalty", "VariationalFit", "infer_rows", "variational_em"]

#: Iterates that an extrapolation combines.
MEMORY = 6
#: Newton steps of each row between two updates of the endmembers, and at most in inference.
INNER_STEPS, INFERENCE_STEPS = 2, 50


class Penalty(NamedTuple):
    """Weights of the two terms in the row problem, scaled so that its numbers are of order one."""

    rate: float
    kl_weight: float

    @classmethod
    def of(cls, tau: float, scale: float) -> "Penalty":
        """1 / (2 tau) and 1; without penalty 1 / (2 scale) and 0."""
        return cls(0.5 / tau, 1.0) if tau > 0 else cls(0.5 / scale, 0.0)


def log_concentration_bounds(a: np.ndarray) -> tuple[float, float]:
    """Range of log g: [-14, 14], widened where the prior lies outside."""
    return min(-14.0, float(np.log(a.min())) - 1), max(14.0, float(np.log(a.max())) + 1)


def infer_rows(
    Y: np.ndarray,
    V: np.ndarray,
    a: np.ndarray,
    penalty: Penalty,
    log_g: np.ndarray,
    max_steps: int = INFERENCE_STEPS,
    tol: float = 1e-8,
    n_jobs: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Improve each row's log g (n, K) in place; return E||y - Vz||^2 and the divergence, (n,)."""
    G = V.T @ V
    V = V.astype(Y.dtype, copy=False)
    lower, upper = log_concentration_bounds(a)

    def block(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        H = (Y[rows] @ V).astype(np.float64, copy=False)
        x2 = np.einsum("ij,ij->i", Y[rows], Y[rows], dtype=np.float64)
        args = (H, x2, G, a, log_g[rows], *penalty, lower, upper, max_steps, tol)
        return newton_rows(*args)[:2]

    blocks = iter_blocks(len(Y), 8 * (Y.shape[1] + 4 * len(a)), working_memory=32)
    parts = map_blocks(block, blocks, n_jobs)
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


class VariationalFit(NamedTuple):
    """What variational EM ends with."""

    V: np.ndarray  #: centred endmembers (D, K)
    log_g: np.ndarray  #: (n, K)
    noise_variance: float
    loss_curve: list[float]
    n_iter: int
    converged: bool


class Extrapolation:
    """Anderson's mixing of the last iterates of V -> update(V)."""

    def __init__(self) -> None:
        self.images: list[np.ndarray] = []
        self.residuals: list[np.ndarray] = []

    def forget(self) -> None:
        self.images.clear()
        self.residuals.clear()

    def next(self, V: np.ndarray, image: np.ndarray) -> np.ndarray:
        """The combination of stored images whose residuals nearly cancel."""
        self.images.append(image)
        self.residuals.append((image - V).ravel())
        del self.images[:-MEMORY], self.residuals[:-MEMORY]
        if len(self.images) == 1:
            return image
        last = self.residuals[-1]
        differences = np.column_stack([last - r for r in self.residuals[:-1]])
        theta = np.linalg.lstsq(differences, last, rcond=1e-10)[0]
        return image - sum(
            t * (image - old) for t, old in zip(theta, self.images[:-1], strict=True)
        )


def variational_em(
    Y: np.ndarray,
    weight: np.ndarray,
    a: np.ndarray,
    V: np.ndarray,
    update: Update,
    *,
    beta: float,
    noise_variance: float,
    noise_floor: float | None = None,
    total_variance: float,
    max_iter: int,
    tol: float,
    restrict: Callable[[np.ndarray], np.ndarray] | None = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> VariationalFit:
    """Minimise L_beta over the endmembers and every row's posterior.

    Parameters
    ----------
    Y : ndarray of shape (n_samples, n_features)
        Centred rows.
    weight : ndarray of shape (n_samples,)
        Weights with sum one.
    a : ndarray of shape (K,)
        Prior concentrations.
    V : ndarray of shape (n_features, K)
        Where the endmembers start.
    update : callable
        The decoder's update (V, B, C) -> V.
    beta, noise_variance : float
        Weight of the divergence, and sigma^2 (its start where it is learned).
    noise_floor : float, optional
        Learn sigma^2, not below this; None keeps it.
    total_variance : float
        tr(S), the scale of the data.
    max_iter, tol : int, float
        Ends when the update changes V by less than ``tol`` relative to its size, or V is zero.
    restrict : callable, optional
        V -> the nearest V of the decoder's set; applied to extrapolations.
    n_jobs : int, optional
        Threads over blocks of rows.
    progress : bool
        Whether to show a progress bar.

    Returns
    -------
    VariationalFit
        ``loss_curve`` holds L_beta after each row step; it never increases.
    """
    D = Y.shape[1]
    scale = max(total_variance, np.finfo(float).tiny)
    sigma2 = noise_variance

    def evaluate(reconstruction: np.ndarray, kl: np.ndarray) -> float:
        fidelity = float(weight @ reconstruction) / (2 * sigma2)
        return fidelity + D / 2 * np.log(2 * np.pi * sigma2) + beta * float(weight @ kl)

    def row_step(V: np.ndarray, log_g: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
        penalty = Penalty.of(beta * sigma2, scale)
        return infer_rows(Y, V, a, penalty, log_g, steps, n_jobs=n_jobs)

    log_g = np.tile(np.log(a), (len(Y), 1))
    reconstruction, kl = row_step(V, log_g, INFERENCE_STEPS)
    loss = evaluate(reconstruction, kl)
    curve = [loss]
    mixing = Extrapolation()
    converged = False
    n_iter = 0
    with progress_bar(max_iter, progress) as bar:
        try:
            while n_iter < max_iter and not converged:
                n_iter += 1
                if noise_floor is not None:
                    sigma2 = max(float(weight @ reconstruction) / D, noise_floor)
                M, C = posterior_moments(log_g, weight)
                B = (Y.T @ (weight[:, None] * M).astype(Y.dtype, copy=False)).astype(np.float64)
                image = update(V, B, C)
                change, size = np.linalg.norm(image - V), np.linalg.norm(image)
                converged = bool(change <= tol * size or size <= 1e-7 * np.sqrt(scale))
                proposal = image
                if not converged:
                    proposal = mixing.next(V, image)
                    if restrict is not None:
                        proposal = restrict(proposal)
                trial = log_g.copy()
                reconstruction, kl = row_step(proposal, trial, INNER_STEPS)
                new = evaluate(reconstruction, kl)
                if new > loss and proposal is not image:
                    mixing.forget()
                    proposal, trial = image, log_g.copy()
                    reconstruction, kl = row_step(proposal, trial, INNER_STEPS)
                    new = evaluate(reconstruction, kl)
                V, log_g, loss = proposal, trial, new
                curve.append(loss)
                bar.update()
        except KeyboardInterrupt:
            warnings.warn(
                f"interrupted after {n_iter} iterations; what has been found is kept",
                ConvergenceWarning,
                stacklevel=2,
            )
    if noise_floor is not None:
        sigma2 = max(float(weight @ reconstruction) / D, noise_floor)
    return VariationalFit(V, log_g, sigma2, curve, n_iter, converged)


def progress_bar(total: int, shown: bool) -> "tqdm":  # type: ignore[name-defined]  # noqa: F821
    """A tqdm bar over iterations, silent unless `shown`."""
    from tqdm.auto import tqdm

    return tqdm(total=total, disable=not shown, unit="iteration")
