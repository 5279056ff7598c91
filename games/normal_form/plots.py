"""Pictures of games and of learning: decompositions, regret, trajectories on simplices."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from equipoise.plotting import COLORS, new_axes

__all__ = [
    "plot_column",
    "plot_cube",
    "plot_decomposition",
    "plot_equilibria",
    "plot_gap",
    "plot_regret",
    "plot_simplex",
    "plot_step_sizes",
]


def plot_decomposition(parts: Any, ax: Any = None) -> Any:
    """Draw how much potential and harmonic energy each coalition size carries.

    Parameters
    ----------
    parts : GameDecomposition
        A decomposition with all components.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        One stacked bar for each number of players involved.

    Examples
    --------
    >>> from equipoise.datasets import load_classic_game
    >>> from equipoise.games import plot_decomposition
    >>> ax = plot_decomposition(load_classic_game("jordan").decompose())
    >>> len(ax.patches)
    6
    """
    ax = new_axes() if ax is None else ax
    table = parts.subset_energy().groupby("size")[["potential", "harmonic"]].sum()
    shares = table / max(float(table.to_numpy().sum()), np.finfo(float).tiny)
    floor = np.zeros(len(shares))
    for name, color in zip(("potential", "harmonic"), COLORS, strict=False):
        ax.bar(shares.index, shares[name], bottom=floor, color=color, label=name, width=0.6)
        floor += shares[name].to_numpy()
    ax.set_xticks(shares.index)
    ax.set_xlabel("players whose actions are involved")
    ax.set_ylabel("share of strategic energy")
    ax.legend(frameon=False)
    return ax


def plot_column(frame: pd.DataFrame, x: str, y: str, ax: Any = None) -> Any:
    """Draw one column of a table over another."""
    ax = new_axes() if ax is None else ax
    ax.plot(frame[x], frame[y], color=COLORS[0])
    ax.set_xlabel(x)
    ax.set_ylabel(y.replace("_", " "))
    return ax


def plot_history(frame: pd.DataFrame, column: str, ax: Any) -> Any:
    """Draw a column of an FTRL+ table over rounds, a line a player (median over a batch)."""
    for (player, rows), color in zip(frame.groupby("player"), COLORS * 20, strict=False):
        curve = rows.groupby("round")[column].median()
        ax.plot(curve.index, curve, color=color, label=f"player {player}")
    ax.set_xscale("log")
    ax.set_xlabel("round")
    return ax


def plot_regret(frame: pd.DataFrame, ax: Any = None) -> Any:
    """Draw each player's regret, and its bound as a broken line.

    Parameters
    ----------
    frame : pandas.DataFrame
        Table of ``FTRLPlus.explain()``.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> from equipoise.datasets import make_harmonic_game
    >>> from equipoise.games import FTRLPlus, plot_regret
    >>> solver = FTRLPlus(init="random", random_state=0)
    >>> ax = plot_regret(
    ...     solver.fit(make_harmonic_game((2, 2), random_state=0)).explain().to_frame()
    ... )
    >>> len(ax.lines)
    4
    """
    ax = plot_history(frame, "regret", new_axes() if ax is None else ax)
    for (player, rows), color in zip(frame.groupby("player"), COLORS * 20, strict=False):
        curve = rows.groupby("round")["regret_bound"].median()
        label = "bound" if player == 0 else None
        ax.plot(curve.index, curve, color=color, linestyle="--", alpha=0.6, label=label)
    ax.set_ylabel("regret")
    ax.legend(frameon=False)
    return ax


def plot_gap(frame: pd.DataFrame, ax: Any = None) -> Any:
    """Draw NashConv over rounds; arguments as for `plot_regret`."""
    ax = new_axes() if ax is None else ax
    curve = frame.groupby("round")["nash_gap"].median()
    ax.loglog(curve.index, np.maximum(curve, 1e-17), color=COLORS[0])
    ax.set_xlabel("round")
    ax.set_ylabel("NashConv")
    return ax


def plot_step_sizes(frame: pd.DataFrame, ax: Any = None) -> Any:
    """Draw each player's step size over rounds; arguments as for `plot_regret`."""
    ax = plot_history(frame, "step_size", new_axes() if ax is None else ax)
    ax.set_ylabel("step size")
    ax.legend(frameon=False)
    return ax


def plot_simplex(
    strategies: Any, ax: Any = None, *, labels: Sequence[str] | None = None, **style: Any
) -> Any:
    """Draw a player's strategies over three actions in a triangle.

    Parameters
    ----------
    strategies : array-like of shape (n_points, 3)
        For instance an entry of ``trajectory_``.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None makes a new figure. The triangle is drawn once on each axes.
    labels : sequence of three str, optional
        Names of the actions.
    **style
        For ``Axes.plot``.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> from equipoise.games import plot_simplex
    >>> ax = plot_simplex([[1, 0, 0], [0.2, 0.3, 0.5]], labels=("rock", "paper", "scissors"))
    >>> len(ax.lines)
    2
    """
    points = np.asarray(strategies, dtype=float)
    if points.ndim != 2 or points.shape[1] != 3:
        raise ValueError(f"strategies must have shape (n_points, 3), got {points.shape}")
    if ax is None:
        ax = new_axes(4.6, 4.2)
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
    if not ax.lines:
        ax.plot(*corners[[0, 1, 2, 0]].T, color="0.6", linewidth=1)
        ax.set_aspect("equal")
        ax.set_axis_off()
        for corner, name in zip(corners, labels or ("0", "1", "2"), strict=True):
            ax.annotate(
                name, corner + 0.06 * (corner - corners.mean(axis=0)), ha="center", va="center"
            )
    ax.plot(*(points @ corners).T, **{"color": COLORS[0], "linewidth": 1.2, **style})
    return ax


def plot_cube(strategies: Sequence[Any], ax: Any = None, **style: Any) -> Any:
    """Draw three players' probabilities of their first actions in the cube.

    Parameters
    ----------
    strategies : list of three array-like of shape (n_points, d_i)
        For instance ``trajectory_``, or a branch of `EquilibriumVariety`.
    ax : mpl_toolkits.mplot3d.Axes3D, optional
        Where to draw; None makes a new figure.
    **style
        For ``Axes3D.plot``.

    Returns
    -------
    mpl_toolkits.mplot3d.Axes3D
        The axes.

    Examples
    --------
    >>> from equipoise.games import plot_cube
    >>> ax = plot_cube([[[0.5, 0.5], [1, 0]]] * 3)
    >>> ax.name
    '3d'
    """
    if len(strategies) != 3:
        raise ValueError(f"strategies must hold three players' strategies, got {len(strategies)}")
    if ax is None:
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=(5.6, 5.2), layout="constrained")
        ax = figure.add_subplot(projection="3d")
        ax.set_box_aspect(None, zoom=0.85)  # leaves room for the labels
    if not ax.lines:
        ax.set(xlim=(0, 1), ylim=(0, 1), zlim=(0, 1))
        for axis, name in zip((ax.xaxis, ax.yaxis, ax.zaxis), "012", strict=True):
            axis.set_pane_color((0.97, 0.97, 0.97))
            axis.set_ticks([0, 0.5, 1])
            axis.set_label_text(f"player {name}: first action")
    first = [np.atleast_2d(x)[:, 0] for x in strategies]
    ax.plot(*first, **{"color": COLORS[0], **style})
    return ax


def plot_equilibria(variety: Any, players: Sequence[int] | None = None, ax: Any = None) -> Any:
    """Draw the branches of a fitted `EquilibriumVariety`, its centre and boundary points.

    Parameters
    ----------
    variety : EquilibriumVariety
        Fitted.
    players : sequence of int, optional
        One player with three actions, or two or three players; None takes the first three, or two.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.
    """
    n = len(variety.center_)
    chosen = tuple(range(min(n, 3))) if players is None else tuple(players)
    if not 1 <= len(chosen) <= 3 or any(not 0 <= i < n for i in chosen):
        raise ValueError(f"players must hold one to three of the {n} players, got {list(chosen)}")

    def draw(points: Sequence[np.ndarray], axes: Any, **style: Any) -> Any:
        picked = [np.atleast_2d(points[i]) for i in chosen]
        if len(chosen) == 1:
            return plot_simplex(picked[0], axes, **style)
        if len(chosen) == 3:
            return plot_cube(picked, axes, **style)
        axes = new_axes(4.6, 4.2) if axes is None else axes
        axes.plot(picked[0][:, 0], picked[1][:, 0], **style)
        axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        axes.set_xlabel(f"player {chosen[0]}: first action")
        axes.set_ylabel(f"player {chosen[1]}: first action")
        return axes

    for branch in variety.branches_:
        ax = draw(branch, ax, color=COLORS[0], linewidth=2)
    ax = draw(variety.center_, ax, color=COLORS[1], marker="o", linestyle="none", label="centre")
    if len(variety.boundary_points_[0]):
        ax = draw(
            variety.boundary_points_,
            ax,
            color=COLORS[2],
            marker="s",
            linestyle="none",
            label="boundary",
        )
    ax.legend(frameon=False)
    return ax
