"""What a learner says about its rounds."""

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from equipoise.explanation import Explanation

from .regret import count_switches

if TYPE_CHECKING:
    from .learner import BanditLearner

__all__ = ["Curves", "curves_of", "explain_learner"]

Array = np.ndarray
#: Points of a stored curve.
N_POINTS = 200


class Curves(NamedTuple):
    """A run in a few numbers: regrets at some rounds, and each arm's part of the final ones."""

    rounds: Array
    static: Array
    dynamic: Array
    static_parts: Array
    dynamic_parts: Array
    n_segments: int


def curves_of(table: Array, arms: Array, span: float) -> Curves:
    """Regrets over time against the best fixed arm of the whole run, and their parts by arm."""
    n_rounds, n_arms = table.shape
    played = table[np.arange(n_rounds), arms]
    static = span * (played - table[:, table.sum(axis=0).argmin()])
    dynamic = span * (played - table.min(axis=1))
    rounds = np.unique(np.linspace(1, n_rounds, min(N_POINTS, n_rounds)).astype(np.int64))
    return Curves(
        rounds,
        np.cumsum(static)[rounds - 1],
        np.cumsum(dynamic)[rounds - 1],
        np.bincount(arms, weights=static, minlength=n_arms),
        np.bincount(arms, weights=dynamic, minlength=n_arms),
        count_switches(table),
    )


def explain_learner(learner: "BanditLearner") -> Explanation:
    """The answer of `explain`."""
    units, n_rounds = learner._units, learner.t_
    counts = learner._vector(0)
    sums = learner._vector(1)
    means = np.full(learner.n_arms, np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    seen = "mean reward" if units.rewards else "mean loss"
    frame = pd.DataFrame(
        {
            "arm": np.arange(learner.n_arms),
            "rounds": counts.astype(np.int64),
            "share": counts / max(n_rounds, 1),
            seen: units.from_unit(means),
            "next draw": learner.probabilities_,
        }
    )
    often = int(counts.argmax())
    next_arm = learner.predict()
    summary = [
        f"{n_rounds} rounds; arm {often} in {counts[often] / max(n_rounds, 1):.1%} of them",
        f"next: arm {next_arm} with probability {learner.probabilities_[next_arm]:.3f}",
        *learner._remarks(),
    ]
    plots: dict[str, Any] = {"arms": partial(plot_arms, frame)}
    curves: Curves | None = getattr(learner, "_curves", None)
    if curves is not None:
        frame["static regret"] = curves.static_parts
        frame["dynamic regret"] = curves.dynamic_parts
        summary += regret_lines(learner, curves)
        plots = {"regret": partial(plot_regret_curves, curves), **plots}
    return Explanation(f"What did {type(learner).__name__} play?", summary, frame, plots)


def regret_lines(learner: "BanditLearner", curves: Curves) -> list[str]:
    """The regrets beside their scales, their bounds, and the arm that cost most."""
    span, n_arms, S = learner._units.span, learner.n_arms, curves.n_segments
    T = int(curves.rounds[-1])  # more rounds may have followed the fit
    lines = []
    bounds = learner._bounds(T, S)
    for kind, value, root in (
        ("static", learner.static_regret_, np.sqrt(n_arms * T)),
        ("dynamic", learner.dynamic_regret_, np.sqrt(S * n_arms * T)),
    ):
        scale = "sqrt(A T)" if kind == "static" else f"sqrt(S A T), S = {S}"
        line = f"{kind} regret {value:.4g}: {value / (span * root):.2f} {scale}"
        if kind in bounds:
            line += f"; {learner._what_is_bounded()} {span * bounds[kind]:.4g}, by proof"
        lines.append(line)
    if learner.dynamic_regret_ > 0:
        worst = int(curves.dynamic_parts.argmax())
        part = curves.dynamic_parts[worst] / learner.dynamic_regret_
        lines.append(f"{part:.0%} of the dynamic regret came while arm {worst} was played")
    return lines


def plot_arms(frame: pd.DataFrame, ax: Any) -> Any:
    """Share of the rounds each arm was played."""
    ax.bar(frame["arm"].astype(str), frame["share"])
    ax.set(xlabel="arm", ylabel="share of the rounds")
    return ax


def plot_regret_curves(curves: Curves, ax: Any) -> Any:
    """Both regrets over the rounds."""
    ax.plot(curves.rounds, curves.static, label="static: best fixed arm of the whole run")
    ax.plot(curves.rounds, curves.dynamic, label="dynamic: best arm of each round")
    ax.axhline(0.0, color="0.7", linewidth=0.8)
    ax.set(xlabel="round", ylabel="cumulative regret")
    ax.legend(frameon=False)
    return ax
