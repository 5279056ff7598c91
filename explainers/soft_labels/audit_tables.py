"""The audit's tables of results and dynamics, and its answer in words."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .alignment import correlation
from .dynamics import TrainingDynamics

if TYPE_CHECKING:
    from .audit import SoftLabelAudit

__all__ = ["alignment_frame", "describe", "dynamics_frame", "results_frame", "same_length"]


def same_length(curves: list[list[list[float]] | None]) -> bool:
    """Whether all seeds have curves of the same number of epochs."""
    return all(curve is not None for curve in curves) and len({len(c or []) for c in curves}) == 1


def results_frame(
    arms: list[str], seeds: list[int], values: Mapping[tuple[str, str, str], np.ndarray]
) -> pd.DataFrame:
    rows = [
        (arm, seed, *key, float(value[a, s]))
        for key, value in values.items()
        for a, arm in enumerate(arms)
        for s, seed in enumerate(seeds)
    ]
    return pd.DataFrame(rows, columns=["arm", "seed", "stratum", "reference", "metric", "value"])


def dynamics_frame(
    tracked: Mapping[str, list[dict[str, TrainingDynamics]]], entropies: Mapping[str, np.ndarray]
) -> pd.DataFrame:
    """Dynamics of each training and test item in each arm, mean over the seeds."""
    frames = []
    for arm, runs in tracked.items():
        for items, H in entropies.items():
            tables = [run[items].to_frame() for run in runs if items in run]
            if tables:
                fixed = tables[0][["index", "reference"]]
                rest = [table.drop(columns=fixed.columns) for table in tables]
                mean = pd.DataFrame(
                    np.mean([r.to_numpy() for r in rest], axis=0), columns=rest[0].columns
                )
                frames.append(
                    pd.concat([fixed, mean], axis=1).assign(arm=arm, items=items, human_entropy=H)
                )
    if not frames:
        return pd.DataFrame(columns=["arm", "items"])
    frame = pd.concat(frames, ignore_index=True)
    return frame[["arm", "items", *frame.columns.drop(["arm", "items"])]]


def alignment_frame(dynamics: pd.DataFrame) -> pd.DataFrame:
    """Spearman correlations with human entropy, and mean variability, of each arm."""
    axes = {
        "1 - confidence": lambda table: 1 - table["confidence"],
        "variability": lambda table: table["variability"],
        "mean entropy": lambda table: table["entropy"],
        "last entropy": lambda table: table["last_entropy"],
    }
    rows = []
    for (arm, items), table in dynamics.groupby(["arm", "items"], sort=False):
        H = table["human_entropy"].to_numpy()
        found = {
            axis: correlation(values(table).to_numpy(), H, ranks=True)
            for axis, values in axes.items()
        }
        mean = float(table["variability"].mean())
        rows.append({"arm": arm, "items": items, **found, "mean variability": mean})
    return pd.DataFrame(rows, columns=["arm", "items", *axes, "mean variability"])


def describe(audit: "SoftLabelAudit") -> list[str]:
    """The answer in a few lines."""
    lines = [
        f"{audit.mode_shift_.rate:.1%} of the items have a human mode that isn't their original "
        "label"
    ]
    found: dict[Any, Any] = {
        (row.reference, row.metric, row.effect): row
        for row in audit.effects_[audit.effects_["stratum"] == "all"].itertuples()
    }
    asked = [
        ("soft", "kl", "KL from annotators to model"),
        ("soft", "ece", "soft calibration error"),
        ("mode", "accuracy", "accuracy to the human mode"),
    ]
    for reference, metric, name in asked:
        parts = []
        for effect in ("soft main", "mode main", "item information"):
            row = found.get((reference, metric, effect))
            if row is not None:
                ends = (row.t_low, row.t_high) if np.isnan(row.low) else (row.low, row.high)
                interval = "" if np.isnan(ends[0]) else " [{:+.3f}, {:+.3f}]".format(*ends)
                parts.append(f"{effect} {row.estimate:+.3f}{interval}")
        if parts:
            lines.append(f"{name}: " + ", ".join(parts))
    gaps = audit.group_gaps_
    if len(gaps):
        gaps = gaps[(gaps["reference"] == "soft") & (gaps["metric"] == "kl")]
        gaps = gaps[(gaps["effect"] == "soft main") & gaps["estimate"].notna()]
        for group, *figures in gaps[["group", "estimate", "low", "high"]].to_numpy().tolist():
            gap, low, high = (float(figure) for figure in figures)
            between = "" if np.isnan(low) else f" [{low:+.3f}, {high:+.3f}]"
            lines.append(
                f"group {group}: soft main effect on KL {gap:+.3f}{between} beside that on all "
                "items"
            )
    held_out = audit.alignment_[audit.alignment_["items"] == "test"]
    if len(held_out):
        best = held_out.sort_values("1 - confidence", ascending=False).iloc[0]
        lines.append(
            "confidence in held-out items over the epochs follows human entropy best in "
            f"{best['arm']} (Spearman {best['1 - confidence']:.2f})"
        )
    return lines
