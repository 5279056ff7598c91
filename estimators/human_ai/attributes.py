"""From estimates to the attributes of a fitted `HumanAITeamModel`, and to its predictions."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from equipoise.inference import cluster_bootstrap

from .estimation import Estimates, Options, Raw, estimate
from .items import ItemFit, fit_items
from .latent import LatentFit, cluster_covariance, fit_cells
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
    codes = None if raw.codes is None else raw.codes[order]
    reliance = reliance_table(found.trials.la, found.trials.y, found.trials.w, codes)
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
        "_codes": codes,
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
    team = right[~alone]
    wrong_ai = (advice[~alone] != raw.truth[~alone]).astype(int)  # type: ignore[index]
    cell = system * 4 + (1 - team.astype(int)) * 2 + wrong_ai
    column = np.empty(len(right), dtype=np.intp)
    column[alone], column[~alone] = 1 - right[alone], 2 + cell
    width = 2 + 4 * len(systems)

    def counts_by(codes: NDArray[np.intp]) -> Array:
        """Counts of (right, wrong) alone and of the cells, a row for each code."""
        size = (int(codes.max()) + 1) * width
        counts = np.bincount(codes * width + column, raw.w, minlength=size)
        return counts.reshape(-1, width).astype(float)

    resamples = None
    if options.random_effects == "item":
        assert raw.items is not None  # checked before
        latent: LatentFit = fit_items(counts_by(raw.items), options.max_iter, options.tol)
    else:
        total = counts_by(np.zeros(len(right), dtype=np.intp))[0]
        latent = fit_table(total, options)
        if options.cov == "cluster":
            assert raw.codes is not None  # checked before
            covariance = cluster_covariance(latent, counts_by(raw.codes))
            latent = replace(latent, covariance=covariance)
        elif options.cov == "bootstrap":
            rows = np.arange(len(right)) if raw.codes is None else raw.codes
            latent, resamples = bootstrapped(latent, counts_by(rows), options, random_state)
    given = systems if raw.r is not None else np.array([np.nan])
    n = float(raw.w.sum())
    return counted_attributes(latent, given, n, random_state, options.n_boot, resamples)


def fit_table(total: Array, options: Options) -> LatentFit:
    """The latent fit to counts (2 + 4 n_systems,)."""
    human = (float(total[0]), float(total[:2].sum()))
    return fit_cells(human, total[2:].reshape(-1, 4), 2, options.max_iter, options.tol)


def bootstrapped(
    latent: LatentFit, counts: Array, options: Options, random_state: Any
) -> tuple[LatentFit, Array]:
    """The fit with the covariance of refits to resampled rows of counts, and their parameters."""

    def parameters(drawn: Array) -> Array:
        try:
            return fit_table(drawn.sum(axis=0), options).theta
        except ValueError as error:
            raise ValueError(f"cov: got 'bootstrap'; a resample can't be fitted: {error}") from None

    boot = cluster_bootstrap(
        parameters, counts, n_resamples=options.n_boot, random_state=random_state
    )
    return replace(latent, covariance=np.cov(boot.resamples, rowvar=False)), boot.resamples


def counted_attributes(
    latent: LatentFit,
    systems: Array,
    n: float,
    random_state: Any,
    n_draws: int,
    resamples: Array | None = None,
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
    theta = resamples
    if theta is None:
        theta = latent.theta + normal_draws(latent.covariance, n_draws, rng)
    G, d = len(latent.ai), len(latent.theta)
    fitted = "atanh_overlap" in latent.names
    overlaps = np.tanh(theta[:, 2 + G]) if fitted else np.full(len(theta), latent.overlap)
    capability = np.exp(np.column_stack([theta[:, 0], theta[:, 2 : 2 + G]]))
    draws = np.column_stack([theta[:, 1], np.zeros(len(theta)), capability, overlaps])
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
            "overlap": fitted,
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
