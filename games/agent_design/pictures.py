"""Pictures of a meta-game and of what mediators make of it."""

from typing import Any

import numpy as np
import pandas as pd

from equipoise.plotting import COLORS, new_axes

from .comparison import subsidy_frontier
from .deviations import implementation_costs, pure_equilibria
from .meta_game import AgentDesignGame

__all__ = ["draw_frontier", "draw_heatmap", "draw_payoffs", "draw_policy"]

Array = np.ndarray


def label_axes(game: AgentDesignGame, ax: Any) -> None:
    rows, columns = ([str(a) for a in own] for own in game.designs_)
    ax.set_xticks(range(len(columns)), columns, rotation=35, ha="right")
    ax.set_yticks(range(len(rows)), rows)
    ax.set_xlabel(str(game.stakeholders_[1]))
    ax.set_ylabel(str(game.stakeholders_[0]))
    ax.spines[:].set_visible(False)


def draw_heatmap(game: AgentDesignGame, stakeholder: Any, ax: Any) -> Any:
    """Welfare, or one's payoff, of each pair of designs; equilibria are framed."""
    from matplotlib.patches import Rectangle

    if len(game.stakeholders_) != 2:
        raise ValueError(f"a heat map needs two stakeholders, got {len(game.stakeholders_)}")
    ax = new_axes() if ax is None else ax
    if stakeholder is None:
        values, title = game.welfare(), "welfare"
    else:
        values = game.payoffs_[game.stakeholders_.index(stakeholder)]
        title = f"payoff of {stakeholder}"
    image = ax.imshow(values, cmap="cividis", aspect="auto")
    ax.figure.colorbar(image, ax=ax, label=title)
    if values.size <= 64:
        middle = (values.max() + values.min()) / 2
        for (r, c), value in np.ndenumerate(values):
            color = "black" if value > middle else "white"
            ax.text(c, r, f"{value:.3g}", ha="center", va="center", color=color, fontsize=8)
    for r, c in np.argwhere(pure_equilibria(game.payoffs_)):
        frame = Rectangle((c - 0.47, r - 0.47), 0.94, 0.94, fill=False, lw=2.5, ec=COLORS[1])
        ax.add_patch(frame)
    label_axes(game, ax)
    ax.set_title(f"{title}; framed: equilibria")
    return ax


def draw_policy(game: AgentDesignGame, policy: Array, ax: Any) -> Any:
    image = ax.imshow(policy, cmap="Blues", vmin=0, aspect="auto")
    ax.figure.colorbar(image, ax=ax, label="probability")
    label_axes(game, ax)
    ax.set_title("what is deployed")
    return ax


def draw_payoffs(frame: pd.DataFrame, ax: Any) -> Any:
    place = np.arange(len(frame))
    ax.bar(place - 0.2, frame["status_quo"], 0.38, label="status quo", color=COLORS[1])
    ax.bar(place + 0.2, frame["mediated"], 0.38, label="mediated", color=COLORS[0])
    ax.axhline(0.0, color="0.6", lw=0.8)
    ax.set_xticks(place, frame["stakeholder"])
    ax.set_ylabel("expected payoff")
    ax.legend(frameon=False)
    return ax


def draw_frontier(game: AgentDesignGame, ax: Any) -> Any:
    """All profiles by subsidy and welfare, and what paid recommendations reach."""
    cost, W = implementation_costs(game.payoffs_).ravel(), game.welfare().ravel()
    ax.plot(cost, W, "o", ms=5, color="0.7", label="a profile")
    frontier = subsidy_frontier(game, "pure")
    ax.plot(frontier["cost"], frontier["welfare"], "o", ms=7, color=COLORS[1], label="efficient")
    if cost.size <= 400:
        smooth = subsidy_frontier(game, "correlated")
        ax.plot(smooth["cost"], smooth["welfare"], color=COLORS[0], label="paid recommendations")
    ax.set_xlabel("expected payment")
    ax.set_ylabel("welfare")
    ax.legend(frameon=False)
    return ax
