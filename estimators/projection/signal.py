"""What `explain` says of a network trained by projections: the signal that reached each layer."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from equipoise.explanation import Explanation
from equipoise.plotting import COLORS

__all__ = ["SignalReport"]

#: A layer whose signal is below this share of the output's hardly learns.
FADED = 1e-6


def plot_layers(ax: Any, frame: pd.DataFrame) -> Any:
    """Signal of the first and the last epoch, and the bound, over the layers."""
    at = np.arange(1, len(frame) + 1)
    ax.plot(at, frame["first_epoch"], "o--", color=COLORS[5], label="first epoch")
    ax.plot(at, frame["last_epoch"], "o-", color=COLORS[0], label="last epoch")
    ceiling = frame["bound"] * frame["last_epoch"].iloc[-1]
    ax.plot(at, ceiling, ":", color=COLORS[6], label="bound of the last epoch")
    ax.set(
        xlabel="layer, from the input on",
        ylabel="displacement of a sample",
        yscale="log",
        xticks=at,
    )
    ax.legend(frameon=False)
    return ax


def plot_epochs(ax: Any, signals: np.ndarray) -> Any:
    """Signal of each layer over the epochs."""
    for k, signal in enumerate(signals.T):
        label = f"layer {k + 1}"
        ax.plot(np.arange(1, len(signal) + 1), signal, color=COLORS[k % len(COLORS)], label=label)
    ax.set(xlabel="epoch", ylabel="displacement of a sample", yscale="log")
    ax.legend(frameon=False)
    return ax


class SignalReport(Explanation):
    """The target signal that reached each layer in training.

    Parameters
    ----------
    shapes : list of (int, int)
        Inputs and units of each layer, from the input on.
    signals : ndarray of shape (n_epochs, n_layers)
        Root mean square over the samples of the displacement at each layer's output.
    bounds : list of float
        The most of the output's displacement that can reach each layer.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.estimators.projection.signal import SignalReport
    >>> report = SignalReport([(4, 8), (8, 2)], np.array([[1e-3, 1.0], [1e-4, 0.5]]), [0.7, 1.0])
    >>> report.to_frame()["share"].tolist()
    [0.0002, 1.0]
    """

    def __init__(
        self, shapes: list[tuple[int, int]], signals: np.ndarray, bounds: list[float]
    ) -> None:
        rows = signals if len(signals) else np.full((1, len(shapes)), np.nan)
        first, last = rows[0], rows[-1]
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(last[-1] > 0, last / last[-1], np.nan)
        frame = pd.DataFrame(
            {
                "layer": np.arange(1, len(shapes) + 1),
                "inputs": [n for n, _ in shapes],
                "units": [N for _, N in shapes],
                "first_epoch": first,
                "last_epoch": last,
                "share": share,
                "bound": bounds,
            }
        )
        if len(signals):
            lines = [
                f"layer {k + 1} of {len(shapes)} ({n} to {N}): {s:.1e} of the output's "
                f"displacement, at most {b:.1e}"
                for k, ((n, N), s, b) in enumerate(zip(shapes, share, bounds, strict=True))
            ]
            lines.append(
                f"{len(signals)} epochs; the output's displacement is {last[-1]:.2e} a sample"
            )
            faded = int((share < FADED).sum())
            lines.append(
                f"{faded} layers got less than {FADED:g} of it and hardly learned"
                if faded
                else f"every layer got at least {np.nanmin(share):.1e} of it"
                if np.isfinite(share).any()
                else "nothing was left to learn"
            )
        else:
            lines = ["no epoch was finished: training diverged in the first"]
        plots = {
            "layers": partial(plot_layers, frame=frame),
            "epochs": partial(plot_epochs, signals=rows),
        }
        super().__init__("Which part of the targets reached each layer?", lines, frame, plots)
