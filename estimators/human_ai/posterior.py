r"""Normal priors on the parameters' internal scale, and what is known after the data.

Laplace's rule takes the mode of likelihood times prior and the curvature there. The grid sums over
(log beta, log tau, atanh rho_hat); the other parameters nu are maximised at each point and
integrated by Laplace's rule, p(theta) ~ L(theta, nu) prior(theta, nu) |H_nu|^{-1/2}.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.special import expit, ndtri

from equipoise.explanation import Explanation
from equipoise.plotting import COLORS

from .estimation import Estimates, Options, maximise
from .fitting import penalty, pooled_objective, scoring

__all__ = ["posterior_report"]

Array = NDArray[np.float64]

#: Mean and standard deviation on the internal scale, where the caller gives none.
PRIORS = {
    "bias": (0.0, 2.0),
    "noise_scale": (0.0, 1.5),
    "trust": (0.0, 1.5),
    "moderator": (0.0, 1.0),
    "overlap_belief": (0.0, 0.5),
    "lapse": (-3.0, 1.5),
    "trust_sd": (-0.7, 1.0),
    "bias_sd": (-0.7, 1.0),
}
#: Parameters with axes of their own on the grid, which reaches this many standard deviations.
AXES = ("noise_scale", "trust", "overlap_belief")
REACH = 4.5


def natural(name: str, value: Array) -> Array:
    """From the internal scale to the parameter's own."""
    if name in ("noise_scale", "trust", "trust_sd", "bias_sd"):
        return np.exp(value)
    if name == "overlap_belief":
        return np.tanh(value)
    return expit(value) if name == "lapse" else value


def prior_of(
    names: tuple[str, ...], priors: Mapping[str, tuple[float, float]] | None
) -> tuple[Array, Array]:
    """Means and standard deviations of the named parameters."""
    chosen = dict(PRIORS)
    for name, value in dict(priors or {}).items():
        if name not in PRIORS:
            raise ValueError(f"priors: got {name!r}; allowed: {', '.join(PRIORS)}")
        mean, sd = (float(v) for v in value)
        if not (np.isfinite([mean, sd]).all() and sd > 0):
            raise ValueError(f"priors: got {name}={value}; allowed: (mean, sd), finite, sd > 0")
        chosen[name] = (mean, sd)
    pairs = [chosen["moderator" if name.startswith("moderator") else name] for name in names]
    center, spread = np.array(pairs).T
    return center, spread


def grid_marginals(
    found: Estimates,
    mode: Array,
    sd: Array,
    with_prior: Any,
    settings: tuple[bool, float, int, float],
    n_points: int,
) -> dict[str, tuple[Array, Array]]:
    """Points and normalised density of each parameter that has an axis."""
    lapse_free, lapse, max_iter, tol = settings
    free, names = found.fit.free, found.names
    places = np.flatnonzero(free)
    chosen = [k for k, name in enumerate(names) if name in AXES]
    others = free.copy()
    others[places[chosen]] = False
    axes = [mode[k] + sd[k] * np.linspace(-REACH, REACH, n_points) for k in chosen]
    theta = found.fit.theta.copy()
    theta[free] = mode
    log_density = np.empty([n_points] * len(chosen))
    for index in product(range(n_points), repeat=len(chosen)):
        at = theta.copy()
        at[places[chosen]] = [axis[i] for axis, i in zip(axes, index, strict=True)]
        if not others.any():
            log_density[index] = pooled_objective(with_prior, at, lapse_free, lapse, False)[0]
            continue
        fit = scoring(with_prior, at, others, lapse_free, lapse, max_iter, tol)
        value = fit.loglik - penalty(fit.theta, with_prior)[0]
        log_density[index] = value - 0.5 * np.linalg.slogdet(fit.information)[1]
    density = np.exp(log_density - log_density.max())
    marginals = {}
    for axis, k in enumerate(chosen):
        rest = tuple(j for j in range(len(chosen)) if j != axis)
        height = density.sum(axis=rest)
        marginals[names[k]] = axes[axis], height / np.trapezoid(height, axes[axis])
    return marginals


def quantiles(x: Array, density: Array, levels: tuple[float, ...]) -> tuple[Array, float]:
    """Quantiles and variance of a density on equally spaced points."""
    curve = CubicSpline(x, density)
    fine = np.linspace(x[0], x[-1], 4001)
    height = np.maximum(curve(fine), 0.0)
    total = np.concatenate([[0.0], np.cumsum((height[1:] + height[:-1]) / 2)])
    mean = float(height @ fine / height.sum())
    variance = float(height @ (fine - mean) ** 2 / height.sum())
    return np.interp(levels, total / total[-1], fine), variance


def posterior_report(
    found: Estimates,
    codes: NDArray[np.intp] | None,
    options: Options,
    method: str,
    priors: Mapping[str, tuple[float, float]] | None,
    n_points: int,
) -> Explanation:
    """Posterior of the free parameters, as a table and as a picture of trust."""
    if method not in ("laplace", "grid"):
        raise ValueError(f"method: got {method!r}; allowed: 'laplace', 'grid'")
    if method == "grid" and options.random_effects is not None:
        raise ValueError("method: got 'grid'; allowed with random_effects: 'laplace'")
    if n_points < 5:
        raise ValueError(f"n_points: got {n_points}; allowed: integers of at least 5")
    free, q = found.fit.free, found.trials.V.shape[1]
    center, spread = prior_of(found.names, priors)
    means, precision = np.zeros(len(free)), np.zeros(len(free))
    means[free], precision[free] = center, 1 / spread**2
    with_prior = replace(found.trials, prior=(means, precision))
    pooled = free.copy()
    pooled[4 + q :] = False  # random effects are added by the fit itself
    fit = maximise(
        with_prior,
        codes,
        replace(options, penalty="ridge"),
        pooled,
        np.where(free, 0.0, found.fit.theta),
        found.fit.theta,
    )
    mode, covariance = fit.theta[free], np.linalg.inv(fit.information)
    sd = np.sqrt(np.diag(covariance))
    levels = (0.025, 0.5, 0.975)
    marginals: dict[str, tuple[Array, Array]] = {}
    if method == "grid":
        settings = (found.lapse_free, found.lapse, options.max_iter, options.tol)
        marginals = grid_marginals(found, mode, sd, with_prior, settings, n_points)
    rows = []
    for k, name in enumerate(found.names):
        ends, variance = mode[k] + sd[k] * ndtri(levels), sd[k] ** 2
        if name in marginals:
            ends, variance = quantiles(*marginals[name], levels)
        low, median, high = natural(name, ends)
        prior_low, prior_high = natural(name, center[k] + spread[k] * ndtri([0.025, 0.975]))
        rows.append((name, median, low, high, prior_low, prior_high, 1 - variance / spread[k] ** 2))
    columns = ["parameter", "median", "low", "high", "prior_low", "prior_high", "learned"]
    frame = pd.DataFrame(rows, columns=columns)
    lines = [
        f"{name}: {median:.3f} ({low:.3f} to {high:.3f})"
        + ("; the data say almost nothing of it" if learned < 0.1 else "")
        for name, median, low, high, _, _, learned in rows
    ]
    k = found.names.index("trust")
    x = np.linspace(mode[k] - REACH * sd[k], mode[k] + REACH * sd[k], 201)
    curve = x, np.exp(-0.5 * ((x - mode[k]) / sd[k]) ** 2) / (sd[k] * np.sqrt(2 * np.pi))
    curve = marginals.get("trust", curve)
    prior = float(center[k]), float(spread[k])
    return Explanation(
        "What do priors and decisions together say of the workers?",
        lines,
        frame,
        {"posterior": partial(draw_posterior, curve, prior)},
    )


def draw_posterior(curve: tuple[Array, Array], prior: tuple[float, float], ax: Any) -> Any:
    """Density of log trust before and after, over trust on a log scale."""
    x, density = curve
    smooth = np.linspace(x[0], x[-1], 401)
    height = np.maximum(CubicSpline(x, density)(smooth), 0.0)
    mean, sd = prior
    wide = np.linspace(mean - 3 * sd, mean + 3 * sd, 401)
    before = np.exp(-0.5 * ((wide - mean) / sd) ** 2) / (sd * np.sqrt(2 * np.pi))
    ax.fill_between(np.exp(smooth), height, color=COLORS[5], alpha=0.4)
    ax.plot(np.exp(smooth), height, color=COLORS[0], label="posterior")
    ax.plot(np.exp(wide), before, color="#5b6475", ls="--", lw=1, label="prior")
    ax.axvline(1.0, color="#5b6475", lw=0.8, ls=":")
    ax.set_xscale("log")
    ax.set_ylim(0, None)
    ax.set_xlabel("trust (dotted: calibrated)")
    ax.set_ylabel("density of log trust")
    ax.legend(frameon=False, fontsize=9)
    return ax
