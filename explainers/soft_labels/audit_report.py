"""What an audit found: tables, a few lines in words, pictures, Markdown and HTML."""

from base64 import b64encode
from collections.abc import Mapping
from functools import partial
from html import escape
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd

from equipoise.explanation import Explanation
from equipoise.plotting import COLORS

from .calibration import reliability_curve
from .data_map import draw_data_map, regions
from .targets import entropy

__all__ = ["AuditReport"]

#: The metric that effect and stratum pictures show, with its reference.
SHOWN = ("soft", "kl")


def style_of(arm: str, arms: list[str]) -> dict[str, Any]:
    """Colour and dash of an arm, the same in all pictures."""
    place = arms.index(arm)
    return {
        "color": COLORS[place % len(COLORS)],
        "linestyle": "-" if place < len(COLORS) else "--",
        "markerfacecolor": COLORS[place] if place < len(COLORS) else "white",
        "label": arm,
    }


def legend_beside(ax: Any) -> None:
    """Eight arms need room: the legend stands right of the axes."""
    ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))


def draw_effects(ax: Any, effects: pd.DataFrame) -> Any:
    """Contrasts of the KL divergence to the annotators, with their intervals."""
    reference, metric = SHOWN
    rows = effects[
        (effects["stratum"] == "all")
        & (effects["reference"] == reference)
        & (effects["metric"] == metric)
    ]
    places = np.arange(len(rows))[::-1]
    spread = np.abs(rows[["low", "high"]].to_numpy().T - rows["estimate"].to_numpy())
    ax.axvline(0, color="0.6", linewidth=1, linestyle="--")
    ax.errorbar(rows["estimate"], places, xerr=spread, fmt="o", color=COLORS[0], capsize=3)
    ax.set_yticks(places, rows["effect"])
    ax.set(xlabel="change of KL from annotators to model (nats)", title="effects of the label type")
    return ax


def draw_reliability(
    ax: Any, F: np.ndarray, P: np.ndarray, arms: list[str], only: str | None
) -> Any:
    """Confidence against the share of annotators who agree, all seeds together."""
    ax.plot([0, 1], [0, 1], color="0.6", linewidth=1, linestyle="--")
    for a, arm in enumerate(arms):
        if only in (None, arm):
            pooled = F[a].reshape(-1, F.shape[-1])
            curve = reliability_curve(np.tile(P, (F.shape[1], 1)), pooled, n_bins=10)
            curve = curve[curve["count"] >= 30]
            ax.plot(curve["confidence"], curve["accuracy"], marker="o", **style_of(arm, arms))
    ax.set(
        xlabel="confidence",
        ylabel="share of annotators who agree",
        title="reliability",
        xlim=(0, 1.02),
        ylim=(0, 1.02),
    )
    legend_beside(ax)
    return ax


def draw_strata(ax: Any, summary: pd.DataFrame, arms: list[str], only: str | None) -> Any:
    """KL to the annotators of all items, by stratum of difficulty, and of the shifted items."""
    reference, metric = SHOWN
    rows = summary[(summary["reference"] == reference) & (summary["metric"] == metric)]
    names = list(dict.fromkeys(rows["stratum"]))
    places = np.arange(len(names))
    graded = np.array(
        [name not in ("all", "mode-shifted") and not name.startswith("group ") for name in names]
    )
    for a, arm in enumerate(arms):
        if only in (None, arm):
            at = places + 0.06 * (a - (len(arms) - 1) / 2)  # side by side, to be told apart
            means = rows[rows["arm"] == arm].set_index("stratum").loc[names]
            value = means["mean"].to_numpy()
            spread = np.abs(means[["low", "high"]].to_numpy().T - value)
            style = style_of(arm, arms)
            ax.errorbar(at, value, spread, capsize=2, marker="o", **{**style, "linestyle": ""})
            line = {"color": style["color"], "linestyle": style["linestyle"]}
            ax.plot(at[graded], value[graded], **line)
    ax.set_xticks(
        places, [name.removeprefix("difficulty ").removeprefix("mode-") for name in names]
    )
    ax.set(
        xlabel="items, from easy to hard for people",
        ylabel="KL from annotators to model (nats)",
        title="by difficulty for people",
    )
    legend_beside(ax)
    return ax


def draw_arm_map(ax: Any, dynamics: pd.DataFrame, arms: list[str], only: str | None) -> Any:
    """Data map of one arm."""
    tracked = [arm for arm in arms if arm in set(dynamics["arm"])]
    arm = only or ("soft_human" if "soft_human" in tracked else tracked[0])
    rows = dynamics[(dynamics["arm"] == arm) & (dynamics["items"] == "train")]
    region = regions(rows["confidence"].to_numpy(), rows["variability"].to_numpy())
    draw_data_map(ax, rows.assign(region=region)).set_title(
        f"data map of the training items, {arm}"
    )
    return ax


def draw_convergence(
    ax: Any,
    curves: Mapping[str, np.ndarray],
    references: list[str],
    arms: list[str],
    only: str | None,
) -> Any:
    """Cross-entropy to the votes after each epoch, mean and range over the seeds."""
    column = references.index("soft") if "soft" in references else 0
    for arm in arms:
        if arm in curves and only in (None, arm):
            Q = curves[arm][:, :, column]
            epochs = np.arange(1, Q.shape[1] + 1)
            style = style_of(arm, arms)
            ax.plot(epochs, Q.mean(axis=0), **style)
            ax.fill_between(
                epochs, Q.min(axis=0), Q.max(axis=0), color=style["color"], alpha=0.15, linewidth=0
            )
    ax.set(
        xlabel="epoch",
        ylabel=f"test cross-entropy to the {references[column]} labels (nats)",
        title="convergence",
    )
    legend_beside(ax)
    return ax


def draw_entropy_alignment(
    ax: Any, F: np.ndarray, P: np.ndarray, arms: list[str], only: str | None
) -> Any:
    """Mean model entropy of tenths of the items by human entropy."""
    H = entropy(P)
    place = np.minimum((np.argsort(np.argsort(H, kind="stable")) * 10) // len(H), 9)
    mean = [H[place == b].mean() for b in range(10)]
    ax.plot([0, max(mean)], [0, max(mean)], color="0.6", linewidth=1, linestyle="--")
    for a, arm in enumerate(arms):
        if only in (None, arm):
            model = np.mean([entropy(Q) for Q in F[a]], axis=0)
            ax.plot(
                mean,
                [model[place == b].mean() for b in range(10)],
                marker="o",
                **style_of(arm, arms),
            )
    ax.set(
        xlabel="human entropy (nats), tenths of the items",
        ylabel="mean model entropy (nats)",
        title="does the model doubt where people do?",
    )
    legend_beside(ax)
    return ax


def markdown_table(frame: pd.DataFrame) -> str:
    """A frame as a Markdown table, numbers to four digits."""

    def cell(value: Any) -> str:
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    lines = [
        "| " + " | ".join(frame.columns) + " |",
        "|" + "---|" * len(frame.columns),
    ]
    for row in frame.itertuples(index=False, name=None):
        lines.append("| " + " | ".join(cell(value) for value in row) + " |")
    return "\n".join(lines)


class AuditReport(Explanation):
    """The answer of `SoftLabelAudit`: effects with intervals, and everything behind them.

    Parameters
    ----------
    title : str
        What was asked.
    summary : sequence of str
        The answer in words.
    effects, results, summary_frame, stability, dynamics : pandas.DataFrame
        The fitted tables of the audit.
    group_gaps : pandas.DataFrame
        How much more the contrasts are in a group than over all items; empty without groups.
    alignment : pandas.DataFrame
        For each arm, Spearman correlations of the training dynamics with human entropy.
    mode_shift : mapping
        Rate and matrix of the shifts from original labels to modes.
    arms : list of str
        Names of the arms.
    F : ndarray of shape (n_arms, n_seeds, n_test, n_classes)
        Test probabilities.
    P : ndarray of shape (n_test, n_classes)
        Soft labels of the test items.
    curves : mapping of str to ndarray of shape (n_seeds, n_epochs, n_references)
        Test cross-entropies after each epoch.
    references : list of str
        What the last axis of the curves means.

    Attributes
    ----------
    results, summary_frame, stability, group_gaps, dynamics, alignment, mode_shift
        As given.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from equipoise.datasets import make_ambiguous_digits, simulate_annotators
    >>> from equipoise.estimators import SoftLabelClassifier
    >>> from equipoise.explainers import SoftLabelAudit
    >>> digits = make_ambiguous_digits(300, ambiguity=0.5, random_state=0)
    >>> votes = simulate_annotators(digits.posterior, skill=(1, 1), random_state=0).counts
    >>> model = SoftLabelClassifier(LogisticRegression(C=0.01))
    >>> audit = SoftLabelAudit(
    ...     model,
    ...     arms=["hard_orig", "hard_mode", "soft_human", "soft_orig_mode"],
    ...     seeds=1,
    ...     strata=(0, 1),
    ...     n_bootstrap=50,
    ...     random_state=0,
    ... )
    >>> report = audit.fit(digits.data / 16, digits.target, votes).explain()
    >>> sorted(set(report.results["arm"]))
    ['hard_mode', 'hard_orig', 'soft_human', 'soft_orig_mode']
    """

    def __init__(
        self,
        title: str,
        summary: list[str],
        effects: pd.DataFrame,
        *,
        results: pd.DataFrame,
        summary_frame: pd.DataFrame,
        stability: pd.DataFrame,
        group_gaps: pd.DataFrame,
        dynamics: pd.DataFrame,
        alignment: pd.DataFrame,
        mode_shift: Mapping[str, Any],
        arms: list[str],
        F: np.ndarray,
        P: np.ndarray,
        curves: Mapping[str, np.ndarray],
        references: list[str],
    ) -> None:
        self.arms = list(arms)
        self.results = results
        self.summary_frame = summary_frame
        self.stability = stability
        self.group_gaps = group_gaps
        self.dynamics = dynamics
        self.alignment = alignment
        self.mode_shift = mode_shift
        by_arm = {
            "reliability": partial(draw_reliability, F=F, P=P, arms=self.arms),
            "strata": partial(draw_strata, summary=summary_frame, arms=self.arms),
            "entropy_alignment": partial(draw_entropy_alignment, F=F, P=P, arms=self.arms),
        }
        if len(dynamics):
            by_arm["data_map"] = partial(draw_arm_map, dynamics=dynamics, arms=self.arms)
        if curves:
            by_arm["convergence"] = partial(
                draw_convergence, curves=curves, references=references, arms=self.arms
            )
        plots = {"effects": partial(draw_effects, effects=effects)}
        plots |= {kind: partial(draw, only=None) for kind, draw in by_arm.items()}
        self._by_arm = by_arm
        super().__init__(title, summary, effects, plots)

    def plot(self, kind: str | None = None, ax: Any = None, *, arm: str | None = None) -> Any:
        """Draw the answer.

        Parameters
        ----------
        kind : str, optional
            "effects" (default), "reliability", "strata", "data_map", "convergence" or
            "entropy_alignment".
        ax : matplotlib.axes.Axes, optional
            Where to draw; None makes a new figure.
        arm : str, optional
            Show one arm only; not for "effects".

        Returns
        -------
        matplotlib.axes.Axes
            The axes drawn on.
        """
        if arm is None:
            return super().plot(kind, ax)
        if kind not in self._by_arm:
            raise ValueError(
                f"arm={arm!r} is for the kinds {sorted(self._by_arm)}; got kind={kind!r}"
            )
        if arm not in self.arms:
            raise ValueError(f"arm={arm!r} is not in the audit; allowed: {self.arms}")
        from equipoise.plotting import new_axes

        return self._by_arm[kind](ax if ax is not None else new_axes(), only=arm)

    def to_markdown(self) -> str:
        """Return the words and the main tables as Markdown.

        Returns
        -------
        str
            Title, summary, effects over all items, and the arms' means.
        """
        effects = self.to_frame()
        effects = effects[effects["stratum"] == "all"].drop(columns=["stratum", "t_p", "sd"])
        means = self.summary_frame[self.summary_frame["stratum"] == "all"]
        return "\n\n".join(
            [
                f"# {self.title}",
                "\n".join(f"- {line}" for line in self.summary),
                "## Effects",
                markdown_table(effects),
                "## Arms",
                markdown_table(means.drop(columns="stratum")),
                "## Stability",
                markdown_table(self.stability),
            ]
        )

    def to_html(self) -> str:
        """Return a self-contained page with words, tables and all pictures.

        Returns
        -------
        str
            HTML; the pictures are embedded.
        """
        import matplotlib.pyplot as plt

        parts = [f"<h1>{escape(self.title)}</h1>"]
        parts.append("<ul>" + "".join(f"<li>{escape(s)}</li>" for s in self.summary) + "</ul>")
        for kind in self._plots:
            ax = self.plot(kind)
            picture = BytesIO()
            ax.figure.savefig(picture, format="png", dpi=110)
            plt.close(ax.figure)
            parts.append(
                f'<img alt="{kind}" src="data:image/png;base64,'
                f'{b64encode(picture.getvalue()).decode()}">'
            )
        effects = self.to_frame()
        tables = {
            "Effects": effects[effects["stratum"] == "all"],
            "Arms": self.summary_frame[self.summary_frame["stratum"] == "all"],
            "Stability": self.stability,
            "Groups against all items": self.group_gaps,
            "Dynamics against human entropy": self.alignment,
        }
        for name, table in tables.items():
            if table.empty:
                continue
            shown = table.to_html(index=False, border=0, float_format="{:.4g}".format)
            parts.append(f"<h2>{name}</h2>{shown}")
        body = "\n".join(parts)
        return (
            f"<!doctype html><html><head><meta charset='utf-8'><title>{escape(self.title)}</title>"
            "<style>body{font-family:sans-serif;max-width:70em;margin:auto}td,th{padding:0 .6em}"
            f"</style></head><body>{body}</body></html>"
        )
