"""What a fitted `MediatedOpinionDynamics` says of itself."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from equipoise.explanation import Explanation

from .plots import plot_leverage, plot_shift

__all__ = ["explain_dynamics"]

PROOFS = {
    "contraction": "each step shrinks errors to {:.3g} of what they were, or less",
    "leaks": "everybody's influence reaches somebody stubborn",
    "collatz": "a positive vector bounds the spectral radius of |M| below 1",
    "bracket": "iterations from below and from above meet",
    "none": "not proved",
}


def explain_dynamics(frame: pd.DataFrame, fitted: Any) -> Explanation:
    """Return the explanation from the table of users and the fitted object."""
    base, x = frame["baseline"].mean(), frame["equilibrium"].mean()
    amplification = float(np.ravel(fitted.amplification_)[0])
    low, high = fitted.gain_bounds_
    top = frame["node"].iloc[int(np.argmax(np.abs(frame["leverage"])))]
    summary = [
        f"the mean goes from {base:.4f} to {x:.4f} ({x - base:+.4f})",
        f"amplification {amplification:.3g}: long-run change of the mean over the change of what "
        "is said at the start",
        f"a unit of bias in all messages moves the mean by {fitted.total_gain_:.3g}; each user by "
        f"{low:.3g} to {high:.3g}",
        f"most influential author: {top}",
        "one equilibrium that attracts every start: "
        + PROOFS[fitted.certificate_].format(fitted.contraction_),
        f"error at most {fitted.error_bound_:.2g}, residual {fitted.residual_:.2g} "
        f"({fitted.solver_})",
    ]
    return Explanation(
        "How far does the AI in the channel move opinions?",
        summary,
        frame,
        {"shift": partial(plot_shift, frame), "leverage": partial(plot_leverage, frame)},
    )
