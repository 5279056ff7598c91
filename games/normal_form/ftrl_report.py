"""What a run of FTRL+ shows: the regret against its bound, the gap, the step sizes."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from equipoise.explanation import Explanation

from .ftrl_state import SelfPlay
from .plots import plot_gap, plot_regret, plot_step_sizes

__all__ = ["learning_report"]


def learning_report(solver: Any, play: SelfPlay) -> Explanation:
    """Return what `FTRLPlus.explain` answers.

    Parameters
    ----------
    solver : FTRLPlus
        Fitted: its records are the table.
    play : SelfPlay
        Its last state.

    Returns
    -------
    Explanation
        A row for each recorded round, game of the batch and player.
    """
    B, n = play.S.shape
    R = len(solver.rounds_)
    game, player = np.divmod(np.tile(np.arange(B * n), R), n)
    columns: dict[str, Any] = {
        "round": np.repeat(solver.rounds_, B * n),
        "player": player,
        "regret": solver.regret_.ravel(),
        "regret_bound": solver.regret_bound_.ravel(),
        "step_size": solver.step_sizes_.ravel(),
        "nash_gap": np.repeat(solver.nash_gap_.ravel(), n),
    }
    if solver.nash_gap_.ndim > 1:
        columns["game"] = game
    frame = pd.DataFrame(columns)
    plots = {"regret": plot_regret, "gap": plot_gap, "step_size": plot_step_sizes}
    return Explanation(
        "Has learning settled, and at what price?",
        summary_of(play),
        frame,
        {kind: partial(plot, frame) for kind, plot in plots.items()},
    )


def summary_of(play: SelfPlay) -> list[str]:
    """Say in four lines how play stands."""
    B = len(play.rounds)
    regret, bound = play.regret(), play.bound()
    who = "Each of the players" if B == 1 else f"Each player of {B} games"
    within = (regret <= bound + 1e-9).all()
    return [
        f"NashConv {float(play.gap.max()):.3g} after {int(play.rounds.max())} rounds"
        + (" (largest of the batch)" if B > 1 else ""),
        f"largest regret {float(regret.max()):.4g}; the bound that holds against any opponents is "
        f"{float(bound.flat[regret.argmax()]):.4g} for that player",
        f"{who} has kept within his bound" if within else "a regret is above its bound",
        f"step sizes between {float(play.eta.min()):.3g} and {float(play.eta.max()):.3g}; the "
        f"strategies moved by {float(play.movement.max()):.3g} in the last round",
    ]
