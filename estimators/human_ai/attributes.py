"""From estimates to the attributes of a fitted `HumanAITeamModel`, and to its predictions."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from .estimation import Estimates, Options, Raw, estimate
from .items import ItemFit, fit_items
from .latent import LatentFit, fit_cells
from .report import reliance_table
from .uncertainty import capability_draws, normal_draws, with_covariance

__all__ = ["counted_attributes", "latent_attributes", "two_stage_attributes"]

Array = NDArray[np.float64]

#: Half the width of a 95 % interval in standard errors.
Z95 = 1.959963984540054


def one_or_all(values: Array) -> float | Array:
    """A number for one AI system, an array for several."""
    return float(values[0]) if len(values) == 1 else values


def two_stage_attributes(
    raw: Raw, workers: NDArray, options: Options, random_state: Any
) -> dict[str, Any]:
    """Fit the two-stage model."""
    rng = check_random_state(random_state)
    found = estimate(raw, options)
    found, draws = with_covariance(raw, options, found, rng)
    if draws is not None and raw.truth is None:
        draws = None
    elif draws is None:
        draws = capability_draws(raw, found, options.n_boot, rng)
    trust, n = found.value("trust"), float(raw.w.sum())
    reach = Z95 * found.error("trust")
    with np.errstate(over="ignore"):  # separated decisions: the interval is the half-line
        interval = (float(trust * np.exp(-reach)), float(trust * np.exp(reach)))
    if not found.identified["trust"]:
        interval = (np.nan, np.nan)
    c, d = found.capabilities, len(found.names)
    nothing = np.full(len(found.systems), np.nan)
    q = found.trials.V.shape[1]
    order = found.order
    follow = np.sign(found.trials.la) * (2 * found.trials.y - 1)
    advised = follow != 0
    codes = None if raw.codes is None else raw.codes[order][advised]
    reliance = pd.DataFrame()
    if advised.any():
        reliance = reliance_table(
            (follow[advised] > 0).astype(float),
            np.abs(found.trials.la[advised]),
            found.trials.w[advised],
            codes,
        )
    return {
        "trust_": trust,
        "trust_ci_": interval,
        "undertrust_factor_": 1 / trust,
        "overlap_belief_": found.value("overlap_belief"),
        "noise_scale_": found.value("noise_scale"),
        "bias_": found.value("bias"),
        "lapse_": found.value("lapse"),
        "moderator_coef_": found.fit.theta[3 : 2 + q].copy(),
        "moderator_mean_": found.moderator_mean,
        "trust_sd_": found.value("trust_sd") if "trust_sd" in found.names else 0.0,
        "bias_sd_": found.value("bias_sd") if "bias_sd" in found.names else 0.0,
        "worker_trust_": worker_frame(found, raw, workers),
        "human_capability_": np.nan if c is None else float(c.human),
        "ai_capability_": one_or_all(nothing if c is None else c.ai),
        "overlap_": one_or_all(nothing if c is None else c.overlap),
        "relative_capability_": found.systems,
        "clipped_share_": float(np.mean([column.clipped_share for column in found.columns])),
        "loglik_": found.fit.loglik,
        "aic_": 2 * d - 2 * found.fit.loglik,
        "bic_": float(np.log(n)) * d - 2 * found.fit.loglik,
        "cov_": found.covariance,
        "parameter_names_": found.names,
        "identified_": found.identified,
        "n_iter_": max(found.fit.n_iter, 1),
        "_found": found,
        "_codes": None if raw.codes is None else raw.codes[order],
        "_draws": draws,
        "_reliance": reliance,
        "_follow": np.nan,
    }


def worker_frame(found: Estimates, raw: Raw, workers: NDArray) -> pd.DataFrame:
    """Empirical-Bayes trust of each worker."""
    columns = ["worker", "n_trials", "trust", "low", "high", "log_trust", "log_trust_sd"]
    if found.fit.posterior is None:
        return pd.DataFrame({name: [] for name in columns})
    mean, variance = (part[:, 0] for part in found.fit.posterior)
    omega = found.value("trust_sd")
    log_trust = found.fit.theta[2] + omega * mean
    sd = omega * np.sqrt(np.maximum(variance, 0.0))
    return pd.DataFrame(
        {
            "worker": workers,
            "n_trials": np.bincount(raw.codes),  # type: ignore[arg-type]
            "trust": np.exp(log_trust),
            "low": np.exp(log_trust - Z95 * sd),
            "high": np.exp(log_trust + Z95 * sd),
            "log_trust": log_trust,
            "log_trust_sd": sd,
        }
    )


def latent_attributes(raw: Raw, options: Options, random_state: Any) -> dict[str, Any]:
    """Fit the latent model to trials: count their cells."""
    advice, decision = np.sign(raw.ai), 2 * raw.y - 1
    right = (decision == raw.truth).astype(float)
    alone = advice == 0
    if not alone.any() or alone.all():
        raise ValueError(
            "X: mode='latent' needs trials decided alone (0 in ai_col) and trials with advice"
        )
    r = np.ones(len(right)) if raw.r is None else raw.r
    systems, system = np.unique(r[~alone], return_inverse=True)
    w, team = raw.w[~alone], right[~alone]
    wrong_ai = (advice[~alone] != raw.truth[~alone]).astype(int)  # type: ignore[index]
    cell = system * 4 + (1 - team.astype(int)) * 2 + wrong_ai
    n_cells = 4 * len(systems)
    if options.random_effects == "item":
        assert raw.items is not None  # checked before
        column = np.empty(len(right), dtype=np.intp)
        column[alone], column[~alone] = 1 - right[alone], 2 + cell
        n_items, width = int(raw.items.max()) + 1, 2 + n_cells
        counts = np.bincount(raw.items * width + column, raw.w, minlength=n_items * width)
        latent: LatentFit = fit_items(
            counts.reshape(-1, width).astype(float), options.max_iter, options.tol
        )
    else:
        cells = np.bincount(cell, w, minlength=n_cells).reshape(-1, 4)
        human = (float(raw.w[alone] @ right[alone]), float(raw.w[alone].sum()))
        latent = fit_cells(human, cells, 2, options.max_iter, options.tol)
    given = systems if raw.r is not None else np.array([np.nan])
    return counted_attributes(latent, given, float(raw.w.sum()), random_state, options.n_boot)


def counted_attributes(
    latent: LatentFit, systems: Array, n: float, random_state: Any, n_draws: int
) -> dict[str, Any]:
    """What a fit to counts learns, under the names of the two-stage model."""
    if not latent.converged:
        warnings.warn(
            f"the likelihood of the cells still rose after {latent.n_iter} iterations; raise "
            "max_iter",
            ConvergenceWarning,
            stacklevel=4,
        )
    error = float(np.sqrt(latent.covariance[1, 1]))
    rng = check_random_state(random_state)
    theta = latent.theta + normal_draws(latent.covariance, n_draws, rng)
    G, d = len(latent.ai), len(latent.theta)
    two = np.isfinite(latent.overlap)
    draws = None
    if two:
        capability = np.exp(np.column_stack([theta[:, 0], theta[:, 2 : 2 + G]]))
        draws = np.column_stack(
            [theta[:, 1], np.zeros(n_draws), capability, np.tanh(theta[:, 2 + G])]
        )
    inside = 1e-5 < latent.trust < 1e5
    reach = Z95 * error
    ends = (float(latent.trust * np.exp(-reach)), float(latent.trust * np.exp(reach)))
    interval = ends if inside else (np.nan, np.nan)
    return {
        "trust_": latent.trust,
        "trust_ci_": interval,
        "undertrust_factor_": 1 / latent.trust,
        "overlap_belief_": 0.0,
        "noise_scale_": np.nan,
        "bias_": np.nan,
        "lapse_": 0.0,
        "moderator_coef_": np.zeros(0),
        "moderator_mean_": np.zeros(0),
        "trust_sd_": 0.0,
        "bias_sd_": 0.0,
        "worker_trust_": pd.DataFrame(),
        "human_capability_": latent.human,
        "ai_capability_": one_or_all(latent.ai),
        "overlap_": latent.overlap,
        "relative_capability_": systems,
        "clipped_share_": 0.0,
        "loglik_": latent.loglik,
        "aic_": 2 * d - 2 * latent.loglik,
        "bic_": float(np.log(n)) * d - 2 * latent.loglik,
        "cov_": latent.covariance,
        "parameter_names_": latent.names,
        "identified_": {
            "trust": inside,
            "overlap": bool(two),
            "overlap_belief": False,
            "noise_scale": False,
            "bias": False,
        },
        "goodness_of_fit_": {
            "G2": latent.deviance,
            "pearson": latent.pearson,
            "df": latent.df,
            "pvalue": latent.pvalue,
        },
        **({"item_sd_": latent.item_sd} if isinstance(latent, ItemFit) else {}),
        "n_iter_": max(latent.n_iter, 1),
        "_draws": draws,
        "_found": None,
        "_codes": None,
        "_reliance": pd.DataFrame(),
        "_follow": float(latent.follow[0]),
    }
