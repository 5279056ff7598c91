"""What a fitted `HumanAITeamModel` answers: place, policies, profiles, posterior, words."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from equipoise.explanation import Explanation

from ...games.human_ai import Regime, locate
from .estimation import Estimates, Options, maximise
from .posterior import posterior_report
from .report import (
    PolicyReport,
    draw_accuracy,
    draw_phase,
    draw_reliance,
    draw_worker_trust,
    effect_rows,
    policy_report,
)

__all__ = ["TeamAnswers"]


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
        "trust_sd": float(model.trust_sd_),
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


class TeamAnswers:
    """The questions that a fitted team model answers; a part of `HumanAITeamModel`."""

    # What the answers read; the model sets them.
    _found: Estimates | None
    _codes: NDArray[np.intp] | None
    _draws: NDArray[np.float64] | None
    _reliance: pd.DataFrame
    n_choices: int
    recommendation: str
    identified_: dict[str, bool]
    trust_: float
    trust_ci_: tuple[float, float]
    trust_sd_: float
    worker_trust_: pd.DataFrame
    ai_capability_: Any
    loglik_: float

    def phase_point(self, system: int = 0) -> Regime:
        """Place the deployment in the phase diagram.

        Parameters
        ----------
        system : int, default=0
            Which AI system, in the order of `relative_capability_`.

        Returns
        -------
        Regime
            Region, accuracies, and distances to both boundaries, for an even prior.

        Raises
        ------
        ValueError
            If capabilities aren't known, or there are more than two alternatives.
        """
        check_is_fitted(self)
        point = deployment_of(self, system)
        if self.n_choices > 2:
            raise ValueError("phase_point: two alternatives only; use equipoise.games.regime")
        return locate(
            point["h"],
            point["a"],
            point["overlap"],
            trust=point["trust"],
            overlap_belief=point["belief"],
            recommendation=self.recommendation,
        )

    def recommend_policy(
        self,
        costs: Mapping[str, float] | None = None,
        policies: Sequence[str] | None = None,
        system: int = 0,
    ) -> PolicyReport:
        """Compare ways to deploy the AI, thresholds optimised.

        Parameters
        ----------
        costs : mapping, optional
            Cost of a decision in units of accuracy: "human" for the human's time, "ai" for a
            call of the AI; each counts where a policy uses that side.
        policies : sequence of str, optional
            Some of the policies of `equipoise.games.policy_accuracy`; None takes all.
        system : int, default=0
            Which AI system.

        Returns
        -------
        PolicyReport
            Policies by utility, with the probability that each is the best.

        Raises
        ------
        ValueError
            If capabilities aren't known, or a cost or policy isn't, or there are more than two
            alternatives.
        """
        check_is_fitted(self)
        point = deployment_of(self, system)
        if self.n_choices > 2:
            raise ValueError("recommend_policy: two alternatives only")
        draws = None
        if self._draws is not None and self.identified_["trust"]:
            n = len(np.atleast_1d(self.ai_capability_))
            d = self._draws
            n_overlaps = d.shape[1] - 3 - n
            draws = {
                "trust": np.exp(np.clip(d[:, 0], -30, 30)),
                "belief": np.clip(d[:, 1], -0.999, 0.999),
                "h": np.nan_to_num(d[:, 2]),
                "a": np.nan_to_num(d[:, 3 + system]),
                "overlap": np.nan_to_num(d[:, 3 + n + min(system, n_overlaps - 1)]),
            }
        place = self.phase_point(system).name
        return policy_report(point, draws, self.recommendation, costs, policies, place)

    def profile(self, param: str, n_points: int = 21) -> pd.DataFrame:
        """Profile the likelihood over one parameter.

        Parameters
        ----------
        param : {"trust", "noise_scale", "bias", "overlap_belief"}
            The parameter to hold, on its own scale; the others are maximised again.
        n_points : int, default=21
            Number of values, over three standard errors to both sides of the estimate (belief:
            -0.6 to 0.6 where it wasn't fitted).

        Returns
        -------
        DataFrame
            value, loglik, deviance (twice the fall from the maximum), inside (deviance below the
            95 % point of chi-squared with one degree of freedom). A flat profile is a parameter
            that the data don't identify.

        Raises
        ------
        ValueError
            If the parameter has no profile here.
        """
        check_is_fitted(self)
        known = ("bias", "noise_scale", "trust", "overlap_belief")
        if param not in known or self._found is None:
            raise ValueError(f"param: got {param!r}; allowed (two-stage data): {', '.join(known)}")
        found: Estimates = self._found
        options = Options(**{f.name: getattr(self, f.name) for f in fields(Options)})
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
            fit = maximise(found.trials, self._codes, options, free, fixed, start)
            rows.append((value, fit.loglik))
        frame = pd.DataFrame(rows, columns=["value", "loglik"])
        value = frame["value"].to_numpy()
        if param != "bias":
            frame["value"] = np.tanh(value) if param == "overlap_belief" else np.exp(value)
        best = max(self.loglik_, frame["loglik"].max())
        frame["deviance"] = 2 * (best - frame["loglik"])
        frame["inside"] = frame["deviance"] < 3.841458820694124
        return frame

    def posterior(
        self,
        method: str = "laplace",
        priors: Mapping[str, tuple[float, float]] | None = None,
        n_points: int = 15,
    ) -> Explanation:
        """Say what priors and data together know of the parameters.

        Parameters
        ----------
        method : {"laplace", "grid"}, default="laplace"
            "laplace" is a normal around the mode, on the internal scale. "grid" sums over
            log trust, log noise scale and, where it was fitted, atanh of the belief; the other
            parameters are maximised and integrated by Laplace's rule at each point. Not with
            random effects.
        priors : mapping of str to (mean, sd), optional
            Normal priors on the internal scale: of log "trust", log "noise_scale", "bias",
            atanh "overlap_belief", logit "lapse", log "trust_sd", log "bias_sd", and "moderator"
            for each coefficient. Those left out keep weak defaults. They take the place of `alpha`
            and `penalty`.
        n_points : int, default=15
            Points of the grid along each axis, over four standard deviations to both sides.

        Returns
        -------
        Explanation
            Table of parameter, median, low, high (95 %), prior_low, prior_high, and learned: one
            less the ratio of posterior to prior variance on the internal scale. Near zero the
            answer is the prior's, not the data's. Plot: "posterior".

        Raises
        ------
        ValueError
            If the model wasn't fitted to two-stage data, or an argument isn't known.
        """
        check_is_fitted(self)
        if self._found is None:
            raise ValueError("posterior: two-stage data only")
        options = Options(**{f.name: getattr(self, f.name) for f in fields(Options)})
        return posterior_report(self._found, self._codes, options, method, priors, n_points)

    def explain(self) -> Explanation:
        """Say in which region the deployment lies, why, and what the data identify.

        Returns
        -------
        Explanation
            Table of quantity, value, low and high. Plots: "phase", "accuracy" (both only where
            `y_true` was given), "reliance", and "worker_trust" with random effects.
        """
        check_is_fitted(self)
        low, high = self.trust_ci_
        rows: list[tuple[str, float, float, float]] = [("trust", self.trust_, low, high)]
        lines = [f"trust {self.trust_:.3f} ({low:.3f} to {high:.3f}); 1 is calibrated"]
        if self.trust_sd_ > 0:
            rows.append(("trust_sd", self.trust_sd_, np.nan, np.nan))
            lines.append(f"log trust varies between workers with s.d. {self.trust_sd_:.2f}")
        for name in ("overlap_belief", "noise_scale", "bias", "lapse"):
            rows.append((name, float(getattr(self, f"{name}_")), np.nan, np.nan))
        if hasattr(self, "item_sd_"):
            human, ai = self.item_sd_
            rows += [("item_sd_human", human, np.nan, np.nan), ("item_sd_ai", ai, np.nan, np.nan)]
            lines.append(f"cases move the human's capability by {human:.2f}, the AI's by {ai:.2f}")
        plots: dict[str, Any] = {}
        try:
            point = deployment_of(self)
        except ValueError:
            point = None
            lines.append("region: not known without y_true")
        if point is not None and self.n_choices == 2:
            more, words = effect_rows(point, self.phase_point())
            rows += more
            lines += words
            plots = {"phase": partial(draw_phase, point), "accuracy": partial(draw_accuracy, point)}
        unknown = [k for k, v in self.identified_.items() if not v and k != "beta_confounded"]
        if unknown:
            lines.append(f"not identified by these data: {', '.join(unknown)}")
        if self.identified_.get("beta_confounded"):
            lines.append("only the human's side was recorded: beta also carries their accuracy")
        if hasattr(self, "goodness_of_fit_"):
            fit = self.goodness_of_fit_
            if fit["df"] > 0:
                lines.append(f"G2 = {fit['G2']:.2f} on {fit['df']} df, p = {fit['pvalue']:.3f}")
        if len(self._reliance):
            plots["reliance"] = partial(draw_reliance, self._reliance)
        if len(self.worker_trust_):
            plots["worker_trust"] = partial(draw_worker_trust, self.worker_trust_, self.trust_)
        frame = pd.DataFrame(rows, columns=["quantity", "value", "low", "high"])
        return Explanation("Does the AI's advice help these decisions?", lines, frame, plots)
