"""Data maps: regions by thirds of confidence and variability, and their pictures."""

from typing import Any

import numpy as np
import pandas as pd

from equipoise.plotting import COLORS

from .alignment import correlation

__all__ = ["REGIONS", "draw_alignment", "draw_data_map", "regions"]

REGIONS = ("easy-to-learn", "ambiguous", "hard-to-learn", "mixed")


def regions(confidence: np.ndarray, variability: np.ndarray) -> np.ndarray:
    """Region of each item, by thirds of both axes; ties at a limit go to the lower third."""
    conf_low, conf_high = np.quantile(confidence, [1 / 3, 2 / 3])
    var_low, var_high = np.quantile(variability, [1 / 3, 2 / 3])
    steady = variability <= var_low
    found = np.full(len(confidence), "mixed", dtype=object)
    found[steady & (confidence > conf_high)] = "easy-to-learn"
    found[steady & (confidence <= conf_low)] = "hard-to-learn"
    found[variability > var_high] = "ambiguous"
    return found


def draw_data_map(ax: Any, frame: pd.DataFrame) -> Any:
    """Confidence against variability; colour and shape show the region."""
    for region, color, marker in zip(REGIONS, (*COLORS[2::-1], "0.75"), "osD.", strict=True):
        rows = frame[frame["region"] == region]
        ax.scatter(
            rows["variability"],
            rows["confidence"],
            s=12,
            color=color,
            marker=marker,
            alpha=0.6,
            linewidths=0,
            label=f"{region} ({len(rows)})",
        )
    ax.set(
        xlabel="variability over the epochs",
        ylabel="confidence over the epochs",
        title="data map",
        ylim=(-0.02, 1.02),
    )
    ax.legend(frameon=False, loc="lower right", fontsize="small")
    return ax


def draw_alignment(ax: Any, frame: pd.DataFrame) -> Any:
    """One minus confidence against the annotators' entropy."""
    rho = correlation(
        1 - frame["confidence"].to_numpy(), frame["human_entropy"].to_numpy(), ranks=True
    )
    ax.scatter(frame["human_entropy"], 1 - frame["confidence"], s=9, alpha=0.4, linewidths=0)
    ax.set(
        xlabel="human entropy (nats)",
        ylabel="1 - confidence over the epochs",
        title=f"Spearman correlation {rho:.2f}",
    )
    return ax
