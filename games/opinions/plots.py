"""Pictures of opinions with and without an AI in the channel."""

from typing import Any

import numpy as np
import pandas as pd

from equipoise.plotting import COLORS, new_axes

__all__ = ["plot_leverage", "plot_shift"]


def plot_shift(frame: pd.DataFrame, ax: Any = None) -> Any:
    """Draw each user's opinion without and with the AI; returns the axes."""
    ax = new_axes(4.8, 4.4) if ax is None else ax
    for adopts, color, label in ((False, COLORS[6], "others"), (True, COLORS[1], "use the AI")):
        part = frame[frame["adopts"] == adopts]
        ax.scatter(part["baseline"], part["equilibrium"], s=18, color=color, label=label, alpha=0.7)
    ends = [
        frame[["baseline", "equilibrium"]].min().min(),
        frame[["baseline", "equilibrium"]].max().max(),
    ]
    ax.plot(ends, ends, color="0.6", lw=1, zorder=0)
    ax.set_xlabel("opinion in the long run without the AI")
    ax.set_ylabel("opinion in the long run with the AI")
    ax.legend(frameon=False)
    return ax


def plot_leverage(frame: pd.DataFrame, ax: Any = None) -> Any:
    """Draw the authors whose messages move the mean most; returns the axes."""
    ax = new_axes() if ax is None else ax
    order = np.argsort(-np.abs(frame["leverage"].to_numpy()), kind="stable")[:15][::-1]
    top = frame.iloc[order]
    ax.barh([str(name) for name in top["node"]], top["leverage"], color=COLORS[0])
    ax.set_xlabel("change of the mean for a unit of bias in the author's messages")
    ax.set_ylabel("author")
    return ax
