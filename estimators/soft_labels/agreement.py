"""How a classifier's probabilities agree with the annotators: the answer of `explain`."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from equipoise.explanation import Explanation
from equipoise.plotting import COLORS

from ...explainers.soft_labels import calibration_error, kl_to_humans, reliability_curve
from ...explainers.soft_labels.alignment import correlation, kl_floor
from ...explainers.soft_labels.targets import SoftTargets, entropy, human_modes

__all__ = ["explain_agreement"]

N_HARDEST = 5


def draw_reliability(ax: Any, P: np.ndarray, F: np.ndarray) -> Any:
    """Confidence against the share of annotators who agree; area in proportion to the items."""
    curve = reliability_curve(P, F)
    ax.plot([0, 1], [0, 1], color="0.6", linewidth=1, linestyle="--")
    ax.plot(curve["confidence"], curve["accuracy"], color=COLORS[0], linewidth=1, alpha=0.6)
    ax.scatter(
        curve["confidence"], curve["accuracy"], s=20 + 400 * curve["weight"], color=COLORS[0]
    )
    ax.set(
        xlim=(0, 1.02),
        ylim=(0, 1.02),
        xlabel="confidence of the prediction",
        ylabel="share of annotators who agree",
        title=f"soft calibration error {calibration_error(P, F):.3f}",
    )
    return ax


def draw_entropy(ax: Any, P: np.ndarray, F: np.ndarray) -> Any:
    """Human against model entropy, item by item."""
    H_p, H_f = entropy(P), entropy(F)
    top = np.log(P.shape[1])
    ax.plot([0, top], [0, top], color="0.6", linewidth=1, linestyle="--")
    ax.scatter(H_p, H_f, s=9, color=COLORS[0], alpha=min(1.0, 20 / np.sqrt(len(P))), linewidths=0)
    ax.set(
        xlabel="human entropy (nats)",
        ylabel="model entropy (nats)",
        title=f"Spearman correlation {correlation(H_f, H_p, ranks=True):.2f}",
    )
    return ax


def explain_agreement(humans: SoftTargets, F: np.ndarray, n_bins: int = 15) -> Explanation:
    """Reliability, entropy agreement, KL beside its floor, and the hardest items."""
    P, labels = humans.P, humans.classes
    rows = np.arange(len(P))
    pred = F.argmax(axis=1)
    H_p, H_f = entropy(P), entropy(F)
    kl = np.asarray(kl_to_humans(P, F, per_item=True))
    frame = pd.DataFrame(
        {
            "index": rows,
            "predicted": labels[pred],
            "human_mode": labels[human_modes(P)],
            "confidence": F[rows, pred],
            "agreement": P[rows, pred],
            "human_entropy": H_p,
            "model_entropy": H_f,
            "kl": kl,
        }
    )
    hardest = frame.nlargest(min(N_HARDEST, len(frame)), "human_entropy", keep="first")
    floor = (
        "" if humans.counts is None else f"; finite votes alone give {kl_floor(humans.counts):.3f}"
    )
    spearman = correlation(H_f, H_p, ranks=True)
    agreement = (
        "undefined: one of them is constant" if np.isnan(spearman) else f"Spearman {spearman:.2f}"
    )
    mean_gap = float((frame["confidence"] - frame["agreement"]).mean())
    sure = "more" if mean_gap > 0 else "less"
    items = ", ".join(
        f"{row.index} ({row.human_mode}, model says {row.predicted})"
        for row in hardest.itertuples(index=False, name="Item")
    )
    summary = [
        f"{np.mean(frame['agreement']):.1%} of the annotators agree with the predictions; "
        f"mean confidence is {np.mean(frame['confidence']):.1%}",
        f"soft calibration error {calibration_error(P, F, n_bins=n_bins):.3f}: on average the "
        f"model is {abs(mean_gap):.3f} {sure} confident than its annotators agree",
        f"entropy agreement: {agreement}; model minus human {np.mean(H_f - H_p):+.3f} nats",
        f"KL from annotators to model {kl.mean():.3f} nats{floor}",
        f"hardest items for people: {items}",
    ]
    plots = {
        "reliability": partial(draw_reliability, P=P, F=F),
        "entropy": partial(draw_entropy, P=P, F=F),
    }
    return Explanation(
        "How do the predictions agree with human uncertainty?", summary, frame, plots
    )
