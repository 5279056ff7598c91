"""What a fitted `HumanAITeamModel` answers: its place, policies, profiles, explanation."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from equipoise.explanation import Explanation

from .estimation import Estimates, Options, maximise
from .report import (
    PolicyReport,
    draw_accuracy,
    draw_phase,
    draw_reliance,
    draw_worker_trust,
    effect_rows,
    policy_report,
)

__all__ = ["deployment_of", "explanation_of", "policies_of", "profile_of"]


def deployment_of(model: Any, system: int = 0) -> dict[str, Any]:
    """The deployment's coordinates; an error where they aren't known."""
    ai, overlap = np.atleast_1d(model.ai_capability_), np.atleast_1d(model.overlap_)
    if not 0 <= system < len(ai):
        raise ValueError(f"system: got {system}; allowed: 0 to {len(ai) - 1}")
    rho = float(overlap[min(system, len(overlap) - 1)])
    point = {
        "h": float(model.human_capability_),
        "a": float(ai[system]),
        "overlap": rho,
        "trust": float(model.trust_),
        "belief": float(model.overlap_belief_),
        "recommendation": model.recommendation,
    }
    if not np.isfinite(model.human_capability_ + float(ai[system]) + rho):
        raise ValueError(
            "the deployment's place isn't known: fit with y_true (and both sides above chance)"
        )
    if model._draws is not None:
        n = len(ai)
        a_column, rho_column = 3 + system, 3 + n + min(system, len(overlap) - 1)
        pair = model._draws[:, [a_column, rho_column]]
        pair = pair[np.isfinite(pair).all(axis=1)]
        if len(pair) > 2:
            point["covariance"] = np.cov(pair, rowvar=False)
    return point


def policies_of(
    model: Any,
    costs: Mapping[str, float] | None,
    policies: Sequence[str] | None,
    system: int,
) -> PolicyReport:
    """Policies at the estimates, and over the draws of parameters and capabilities."""
    point = deployment_of(model, system)
    if model.n_choices > 2:
        raise ValueError("recommend_policy: two alternatives only")
    draws = None
    if model._draws is not None and model.identified_["trust"]:
        n = len(np.atleast_1d(model.ai_capability_))
        d = model._draws
        n_overlaps = d.shape[1] - 3 - n
        draws = {
            "trust": np.exp(np.clip(d[:, 0], -30, 30)),
            "belief": np.clip(d[:, 1], -0.999, 0.999),
            "h": np.nan_to_num(d[:, 2]),
            "a": np.nan_to_num(d[:, 3 + system]),
            "overlap": np.nan_to_num(d[:, 3 + n + min(system, n_overlaps - 1)]),
        }
    place = model.phase_point(system).name
    return policy_report(point, draws, model.recommendation, costs, policies, place)


def profile_of(model: Any, param: str, n_points: int) -> pd.DataFrame:
    """The likelihood with one parameter held, the others maximised again."""
    known = ("bias", "noise_scale", "trust", "overlap_belief")
    if param not in known or model._found is None:
        raise ValueError(f"param: got {param!r}; allowed (two-stage data): {', '.join(known)}")
    found: Estimates = model._found
    options = Options(**{f.name: getattr(model, f.name) for f in fields(Options)})
    q = found.trials.V.shape[1]
    index = {"bias": 0, "noise_scale": 1, "trust": 2, "overlap_belief": 2 + q}[param]
    center, error = found.fit.theta[index], found.error(param)
    reach = 3 * error if np.isfinite(error) and 0 < error < 5 else np.arctanh(0.6)
    free = found.fit.free.copy()
    free[index] = False
    free[4 + q :] = False  # random effects are added by the fit itself
    rows = []
    for value in center + np.linspace(-reach, reach, n_points):
        fixed = np.where(free, 0.0, found.fit.theta)
        fixed[index] = value
        start = found.fit.theta.copy()
        start[index] = value
        fit = maximise(found.trials, model._codes, options, free, fixed, start)
        rows.append((value, fit.loglik))
    frame = pd.DataFrame(rows, columns=["value", "loglik"])
    value = frame["value"].to_numpy()
    if param != "bias":
        frame["value"] = np.tanh(value) if param == "overlap_belief" else np.exp(value)
    best = max(model.loglik_, frame["loglik"].max())
    frame["deviance"] = 2 * (best - frame["loglik"])
    frame["inside"] = frame["deviance"] < 3.841458820694124
    return frame


def explanation_of(model: Any) -> Explanation:
    """Trust, region, effect, levers and identifiability in words, with the pictures there are."""
    low, high = model.trust_ci_
    rows: list[tuple[str, float, float, float]] = [("trust", model.trust_, low, high)]
    lines = [f"trust {model.trust_:.3f} ({low:.3f} to {high:.3f}); 1 is calibrated"]
    if model.trust_sd_ > 0:
        rows.append(("trust_sd", model.trust_sd_, np.nan, np.nan))
        lines.append(f"log trust varies between workers with s.d. {model.trust_sd_:.2f}")
    for name in ("overlap_belief", "noise_scale", "bias", "lapse"):
        rows.append((name, float(getattr(model, f"{name}_")), np.nan, np.nan))
    plots: dict[str, Any] = {}
    try:
        point = deployment_of(model)
    except ValueError:
        point = None
        lines.append("region: not known without y_true")
    if point is not None and model.n_choices == 2:
        more, words = effect_rows(point, model.phase_point())
        rows += more
        lines += words
        plots = {"phase": partial(draw_phase, point), "accuracy": partial(draw_accuracy, point)}
    unknown = [k for k, v in model.identified_.items() if not v and k != "beta_confounded"]
    if unknown:
        lines.append(f"not identified by these data: {', '.join(unknown)}")
    if model.identified_.get("beta_confounded"):
        lines.append("only the human's side was recorded: beta also carries their accuracy")
    if hasattr(model, "goodness_of_fit_"):
        fit = model.goodness_of_fit_
        lines.append(f"G2 = {fit['G2']:.2f} on {fit['df']} df, p = {fit['pvalue']:.3f}")
    if len(model._reliance):
        plots["reliance"] = partial(draw_reliance, model._reliance)
    if len(model.worker_trust_):
        plots["worker_trust"] = partial(draw_worker_trust, model.worker_trust_, model.trust_)
    frame = pd.DataFrame(rows, columns=["quantity", "value", "low", "high"])
    return Explanation("Does the AI's advice help these decisions?", lines, frame, plots)
