"""What a fitted team model says: policies with their odds of being best, pictures of reliance."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equipoise.explanation import Explanation
from equipoise.plotting import COLORS

from ...games.human_ai import (
    REGIME_NAMES,
    Regime,
    ai_accuracy,
    decompose_effect,
    human_accuracy,
    optimal_accuracy,
    optimal_trust,
    phase_diagram,
    policy_accuracy,
    population_effect,
    team_accuracy,
)
from ...games.human_ai.policies import (
    POLICIES,
    WITH_THRESHOLD,
    best_threshold,
    policy_cost,
)

__all__ = [
    "PolicyReport",
    "draw_accuracy",
    "draw_phase",
    "draw_reliance",
    "draw_worker_trust",
    "effect_rows",
    "policy_report",
    "reliance_table",
]

Array = NDArray[np.float64]

#: Rows that are worked on at a time.
ROWS = 2**14


class PolicyReport(Explanation):
    """Ways to deploy an AI, with what each is worth and the probability that it is the best.

    Parameters
    ----------
    frame : pandas.DataFrame
        One row a policy, best first: policy, description, threshold (on the AI's log-odds; NaN
        without one), accuracy, cost, utility, low and high (95 % interval of the utility), and
        probability_best; the last three are NaN where the uncertainty isn't known.
    place : str
        What the report is about, for the title.

    Examples
    --------
    >>> from equipoise.datasets import make_human_ai_trials
    >>> from equipoise.estimators import HumanAITeamModel
    >>> data = make_human_ai_trials(50, 40, h=0.6, ai_capabilities=0.4, overlap=0.5, random_state=0)
    >>> model = HumanAITeamModel().fit(data.X, data.y, y_true=data.y_true, groups=data.groups)
    >>> report = model.recommend_policy(policies=["human", "ai", "assist"])
    >>> report.best
    'human'
    """

    def __init__(self, frame: pd.DataFrame, place: str) -> None:
        best = frame.iloc[0]
        lines = [f"best: {best['policy']} ({best['description']}), utility {best['utility']:.4f}"]
        if np.isfinite(best["probability_best"]):
            lines.append(
                f"probability that it is the best: {best['probability_best']:.2f}; 95 % interval "
                f"of its utility {best['low']:.4f} to {best['high']:.4f}"
            )
        for _, row in frame.iloc[1:].iterrows():
            lines.append(f"{row['policy']}: {row['utility'] - best['utility']:+.4f}")
        super().__init__(
            f"How should the AI be deployed? ({place})",
            lines,
            frame,
            {"policies": partial(draw_policies, frame)},
        )

    @property
    def best(self) -> str:
        """Name of the policy with the largest utility."""
        return str(self._frame["policy"].iloc[0])


def policy_report(
    point: Mapping[str, float],
    draws: Mapping[str, Array] | None,
    recommendation: str,
    costs: Mapping[str, float] | None,
    policies: Sequence[str] | None,
    place: str,
) -> PolicyReport:
    """Evaluate policies at a point, thresholds optimised, and over draws of the parameters."""
    costs = dict(costs or {})
    if unknown := set(costs) - {"human", "ai"}:
        raise ValueError(f"costs: got {sorted(unknown)}; allowed keys: 'human' and 'ai'")
    if not all(np.isfinite(v) for v in costs.values()):
        raise ValueError(f"costs: got {costs}; allowed: finite numbers, in units of accuracy")
    chosen = list(POLICIES if policies is None else policies)
    if not chosen or (unknown := set(chosen) - set(POLICIES)):
        raise ValueError(f"policies: got {chosen}; allowed: some of {', '.join(POLICIES)}")

    def worth(policy: str, at: Mapping[str, Any], threshold: Any) -> tuple[Any, Any]:
        accuracy = policy_accuracy(
            policy,
            at["h"],
            at["a"],
            at["overlap"],
            threshold=threshold,
            trust=at["trust"],
            overlap_belief=at["belief"],
            recommendation=recommendation,
        )
        return accuracy, policy_cost(policy, np.asarray(at["a"]), np.asarray(threshold), costs)

    def utility_at(policy: str, threshold: Array) -> Array:
        accuracy, cost = worth(policy, point, threshold)
        return accuracy - cost

    rows, drawn = [], []
    for policy in chosen:
        threshold = 0.0
        if policy in WITH_THRESHOLD:
            threshold = best_threshold(partial(utility_at, policy), point["a"])
        accuracy, cost = (float(v) for v in worth(policy, point, threshold))
        low = high = np.nan
        if draws is not None:
            utility = np.subtract(*worth(policy, draws, threshold))
            drawn.append(utility)
            low, high = np.quantile(utility, [0.025, 0.975])
        rows.append(
            {
                "policy": policy,
                "description": POLICIES[policy],
                "threshold": threshold if policy in WITH_THRESHOLD else np.nan,
                "accuracy": accuracy,
                "cost": cost,
                "utility": accuracy - cost,
                "low": low,
                "high": high,
                "probability_best": np.nan,
            }
        )
    frame = pd.DataFrame(rows)
    if draws is not None:
        # A tie (a threshold of zero repeats another policy) counts for the first of the two.
        winner = (np.array(drawn) + 1e-12 * np.arange(len(chosen), 0, -1)[:, None]).argmax(axis=0)
        frame["probability_best"] = np.bincount(winner, minlength=len(chosen)) / len(winner)
    frame = frame.sort_values("utility", ascending=False, kind="stable").reset_index(drop=True)
    return PolicyReport(frame, place)


def reliance_table(
    la: Array, y: Array, w: Array, codes: NDArray[np.intp] | None, n_bins: int = 8
) -> pd.DataFrame:
    """P(follow) in bins of |l_A| with errors clustered by worker; trials without advice are out.

    The bins are quantiles of at most some hundred thousand trials, taken evenly.
    """
    sample = np.abs(la[:: max(1, len(la) // 100_000)])
    sample = sample[sample > 0] if sample.any() else np.abs(la[la != 0])
    if not len(sample):
        return pd.DataFrame()
    edges = np.unique(np.quantile(sample, np.linspace(0, 1, n_bins + 1)))
    n_bins = max(len(edges) - 1, 1)

    def block(rows: slice) -> tuple[NDArray[np.intp], Array, Array, Array]:
        """Bin (n_bins where there is no advice), confidence, weight and whether it was followed."""
        confidence = np.abs(la[rows])
        index = np.clip(np.searchsorted(edges, confidence, side="right") - 1, 0, n_bins - 1)
        follow = (la[rows] > 0) == (y[rows] > 0.5)
        return np.where(confidence > 0, index, n_bins), confidence, w[rows], follow.astype(float)

    blocks = [slice(start, start + ROWS) for start in range(0, len(la), ROWS)]
    sums = np.zeros((4, n_bins + 1))  # trials, weight, weight times confidence, times followed
    for rows in blocks:
        index, confidence, weight, follow = block(rows)
        for j, value in enumerate((np.ones(len(index)), weight, weight * confidence)):
            sums[j] += np.bincount(index, value, minlength=n_bins + 1)
        sums[3] += np.bincount(index, weight * follow, minlength=n_bins + 1)
    count, total = sums[0], np.maximum(sums[1], 1e-300)
    rate = sums[3] / total
    n_workers = 1 if codes is None else int(codes.max()) + 1
    squares, residuals = np.zeros(n_bins + 1), np.zeros((n_bins + 1, n_workers))
    for rows in blocks:
        index, _, weight, follow = block(rows)
        residual = weight * (follow - rate[index])
        if codes is None:
            squares += np.bincount(index, residual**2, minlength=n_bins + 1)
        else:
            cell = index * n_workers + codes[rows]
            residuals += np.bincount(cell, residual, minlength=residuals.size).reshape(
                residuals.shape
            )
    error = np.sqrt(squares if codes is None else (residuals**2).sum(axis=1)) / total
    frame = pd.DataFrame(
        {
            "ai_confidence": sums[2] / total,
            "n_trials": count.astype(int),
            "follow": rate,
            "low": np.maximum(rate - 1.96 * error, 0.0),
            "high": np.minimum(rate + 1.96 * error, 1.0),
        }
    )[:n_bins]
    return frame[count[:n_bins] > 0].reset_index(drop=True)


def effect_rows(
    point: Mapping[str, Any], place: Regime
) -> tuple[list[tuple[str, float, float, float]], list[str]]:
    """Region, decomposition and levers, as rows of the table and as sentences."""
    options = {
        "trust": point["trust"],
        "overlap_belief": place.overlap_belief,
        "recommendation": point["recommendation"],
    }
    h, a, rho = point["h"], point["a"], point["overlap"]
    effect = decompose_effect(h, a, rho, **options)
    best_trust = min(float(optimal_trust(h, a, rho)), 1e6)
    levers = {
        "trust at its optimum under neglect": team_accuracy(
            h, a, rho, trust=best_trust, recommendation=point["recommendation"]
        ),
        "a correct belief about the overlap": team_accuracy(
            h, a, rho, **{**options, "overlap_belief": rho}
        ),
        "no overlap": team_accuracy(h, a, min(rho, 0.0), **options),
        "an AI with a tenth more capability": team_accuracy(h, 1.1 * a, rho, **options),
    }
    gains = {name: float(value) - place.team for name, value in levers.items()}
    lever = max(gains, key=lambda name: gains[name])
    values = {
        "human_accuracy": place.human,
        "ai_accuracy": place.ai,
        "team_accuracy": place.team,
        "optimal_accuracy": effect.optimal,
        "information_value": effect.information_value,
        "penalty": effect.penalty,
        "penalty_trust": effect.penalty_trust,
        "penalty_overlap": effect.penalty_overlap,
        "relative_capability": place.relative_capability,
        "overlap": rho,
        "above_impairment": place.above_impairment,
        "below_automation": place.below_automation,
        **{f"gain: {name}": gain for name, gain in gains.items()},
    }
    lines = [
        f"region: {place.name} (human {place.human:.3f}, AI {place.ai:.3f}, team {place.team:.3f})",
        f"r = {place.relative_capability:.2f} is {place.above_impairment:+.2f} above impairment "
        f"and {place.below_automation:+.2f} below automation",
        f"effect {place.team - place.human:+.3f} = information {effect.information_value:.3f} - "
        f"penalty {effect.penalty:.3f} (trust {effect.penalty_trust:.3f}, overlap belief "
        f"{effect.penalty_overlap:.3f})",
        f"largest gain: {lever} ({gains[lever]:+.3f})",
        "these accuracies are of decisions without choice noise, for an even prior",
    ]
    if (spread := point.get("trust_sd", 0.0)) > 0:
        everyone = population_effect(h, a, rho, trust_sd=spread, **options)
        values["team_accuracy_of_all"] = everyone.team
        values |= {f"share: {name}": everyone[name] for name in REGIME_NAMES.values()}
        lines.insert(
            1,
            f"over workers: team {everyone.team:.3f}; {everyone.impairment:.0%} are impaired, "
            f"{everyone.automation:.0%} do worse than the AI",
        )
    return [(name, float(value), np.nan, np.nan) for name, value in values.items()], lines


def draw_policies(frame: pd.DataFrame, ax: Any) -> Any:
    """Utility with intervals, best on top."""
    shown = frame.iloc[::-1]
    position = np.arange(len(shown))
    if shown["low"].notna().all():
        ax.hlines(position, shown["low"], shown["high"], color=COLORS[5], lw=5, alpha=0.7)
    ax.plot(shown["utility"], position, "o", color=COLORS[0], ms=6)
    ax.set_yticks(position, [name.replace("_", " ") for name in shown["policy"]])
    ax.set_ylim(-0.6, len(shown) - 0.4)
    ax.grid(axis="x", color="#dfe3ea", lw=0.8)
    ax.set_axisbelow(True)
    ax.set_xlabel("accuracy less costs (95 % interval)")
    return ax


def draw_phase(point: Mapping[str, Any], ax: Any) -> Any:
    """The phase diagram at the fitted trust and belief with the deployment in it."""
    low = min(0.0, point["overlap"] - 0.1)
    binary = point["recommendation"] == "binary"
    diagram = phase_diagram(
        point["h"],
        ai_grid=np.linspace(0.005, max(3 * point["h"], 1.5 * point["a"], 1.0), 181),
        overlap_grid=np.linspace(low, 0.98, 61 if binary else 141),
        trust=point["trust"],
        overlap_belief=point["belief"],
        recommendation=point["recommendation"],
        overlap_kind="correlation",
    )
    ax = diagram.plot(ax, point=(point["a"], point["overlap"]), covariance=point.get("covariance"))
    ax.set_title(f"trust {point['trust']:.2f}, $h$ = {point['h']:.2f}", fontsize=10)
    return ax


def draw_accuracy(point: Mapping[str, Any], ax: Any) -> Any:
    """Human, AI, team and optimum against the AI's capability, at the fitted behaviour."""
    a = np.linspace(0.01, max(3 * point["h"], 1.5 * point["a"], 1.0), 201)
    team = team_accuracy(
        point["h"],
        a,
        point["overlap"],
        trust=point["trust"],
        overlap_belief=point["belief"],
        recommendation=point["recommendation"],
    )
    curves = {
        "human alone": np.full(a.shape, human_accuracy(point["h"])),
        "AI alone": ai_accuracy(a),
        "team": team,
        "optimal fusion": optimal_accuracy(point["h"], a, point["overlap"]),
    }
    for (name, values), style in zip(curves.items(), (":", "--", "-", "-."), strict=True):
        ax.plot(a, values, style, label=name, lw=2 if name == "team" else 1.3)
    ax.axvline(point["a"], color="#5b6475", lw=0.8)
    ax.set_xlabel("AI capability $a$ (line: this AI)")
    ax.set_ylabel("accuracy")
    ax.legend(frameon=False, fontsize=9)
    return ax


def draw_reliance(frame: pd.DataFrame, ax: Any) -> Any:
    """P(the decision is the AI's side) against the AI's confidence."""
    ax.fill_between(frame["ai_confidence"], frame["low"], frame["high"], color=COLORS[5], alpha=0.3)
    ax.plot(frame["ai_confidence"], frame["follow"], "o-", color=COLORS[0], ms=4)
    ax.axhline(0.5, color="#5b6475", lw=0.8, ls=":")
    ax.set_xlabel("AI confidence, |log-odds|")
    ax.set_ylabel("decision agrees with the AI")
    ax.set_ylim(0, 1)
    return ax


def draw_worker_trust(frame: pd.DataFrame, population: float, ax: Any) -> Any:
    """Each worker's trust with its 95 % interval, in order, on a log scale."""
    shown = frame.sort_values("trust", kind="stable")
    position = np.arange(len(shown))
    ax.hlines(position, shown["low"], shown["high"], color=COLORS[5], lw=1)
    ax.plot(shown["trust"], position, ".", color=COLORS[0], ms=4)
    ax.axvline(population, color=COLORS[1], lw=1.2, label=f"median {population:.2f}")
    ax.axvline(1.0, color="#5b6475", lw=0.8, ls=":", label="calibrated")
    ax.set_xscale("log")
    ax.set_yticks([])
    ax.set_xlabel("trust of each worker (95 % interval)")
    ax.legend(frameon=False, fontsize=9)
    return ax
