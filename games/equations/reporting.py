"""What a solver's answer means, in words, as a table and as pictures."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from equipoise.explanation import Explanation
from equipoise.plotting import COLORS, new_axes

from .solver import LEMMSolver

__all__ = ["explain_solver", "plot_convergence", "plot_policy"]

Array = np.ndarray
SHOWN = 60

REASONS = {
    "ValueIteration": (
        "each sweep shrinks the weighted error by the contraction factor",
        "value iteration has no guarantee here: only the residual is known",
    ),
    "PolicyIteration": (
        "the policy can't be improved, and in this class such a policy is the solution",
        "the policy can't be improved; policy iteration has no guarantee of getting there here",
    ),
    "SimplePolicyIteration": (
        "one-node switches follow a unique sink orientation, whose sink is the solution",
        "no action is violated; the rules end at a solution where determinants keep one sign",
    ),
    "LemkeSolver": (
        "the matrix is a P-matrix, for which Lemke's path ends at the only solution",
        "Lemke's path ended at complementary slacks; for P-matrices it always does",
    ),
    "LinearProgramLEMM": (
        "the solution is the least feasible point of the linear program",
        "the solution is the least feasible point of the linear program",
    ),
}

CLASS_WORDS = {
    "mdp": "a halting Markov decision process",
    "ssg": "a halting simple stochastic game",
    "halting_branching": "a halting branching process (rows may sum to more than 1)",
    "absolutely_halting": "an absolutely halting system (signed coefficients)",
    "halting": "a halting system, not absolutely",
    "w": "a system whose determinants have one sign",
    "not_w": "a system without unique solutions for all offsets",
    "unknown": "a system whose class is undecided",
}


def node_frame(solver: LEMMSolver) -> pd.DataFrame:
    """One row a node: value, bounds, action, and by how much it beats the next best action."""
    problem = solver.problem_
    rows = problem.row_values(solver.value_)
    owner = np.repeat(np.arange(problem.n), np.diff(problem.indptr))
    gains = problem.sign[owner] * rows
    chosen = problem.indptr[:-1] + solver.policy_
    best = gains[chosen]
    others = gains.copy()
    others[chosen] = -np.inf
    runner_up = np.maximum.reduceat(others, problem.indptr[:-1])
    words = {1: "max", -1: "min", 0: "affine"}
    unknown = np.full(problem.n, np.nan)
    return pd.DataFrame(
        {
            "node": [problem.name(i) for i in range(problem.n)],
            "operator": [words[int(op)] for op in problem.op],
            "value": solver.value_,
            "lower": unknown if solver.lower_ is None else solver.lower_,
            "upper": unknown if solver.upper_ is None else solver.upper_,
            "action": solver.policy_,
            "margin": np.where(np.isfinite(runner_up), best - runner_up, np.nan),
        }
    )


def explain_solver(solver: LEMMSolver) -> Explanation:
    """The explanation that every solver's `explain` returns."""
    found, problem = solver.class_, solver.problem_
    proved = found.weights is not None
    summary = [
        f"status {solver.status_!r} after {solver.n_iter_} iterations, "
        f"{solver.n_evaluations_} evaluations, {solver.n_switches_} switches",
        f"the problem is {CLASS_WORDS[found.label]}: {problem.n} nodes, {problem.m} actions",
        f"residual {solver.residual_:.3g}",
    ]
    if proved and found.contraction is not None:
        summary.append(
            f"every value is within {solver.error_bound_:.3g} of the exact one, proved by weights "
            f"with contraction factor {found.contraction:.6g}"
        )
    else:
        summary.append("no error bound: the system isn't proved absolutely halting")
    if solver.converged_:
        summary.append(REASONS[type(solver).__name__][0 if proved else 1])
    unique = found.w_property
    summary.append("the solution is unique" if unique else "uniqueness is unproved")
    frame = node_frame(solver)
    plots: dict[str, Any] = {
        "values": partial(draw_values, frame.head(SHOWN)),
        "policy": partial(draw_margins, frame.head(SHOWN)),
    }
    if solver.history_:
        plots["convergence"] = partial(
            draw_histories, [(type(solver).__name__, pd.DataFrame(solver.history_))]
        )
    title = f"{type(solver).__name__}: can the solution be trusted?"
    return Explanation(title, summary, frame, plots)


def draw_values(frame: pd.DataFrame, ax: Any) -> Any:
    place = np.arange(len(frame))
    if frame["lower"].notna().all():
        ax.vlines(place, frame["lower"], frame["upper"], color=COLORS[5], lw=3, label="proved")
        ax.legend(frameon=False)
    ax.plot(place, frame["value"], "o", ms=5, color=COLORS[0])
    if len(frame) <= 25:
        ax.set_xticks(place, frame["node"])
    ax.set(xlabel="node", ylabel="value", title="Values")
    return ax


def draw_margins(frame: pd.DataFrame, ax: Any) -> Any:
    place = np.arange(len(frame))
    margins = frame["margin"].fillna(0)
    colors = [COLORS[int(action) % len(COLORS)] for action in frame["action"]]
    ax.bar(place, margins, color=colors)
    for i in np.flatnonzero(margins > 0) if len(frame) <= 25 else []:
        ax.annotate(str(frame["action"][i]), (i, margins[i]), ha="center", va="bottom", fontsize=8)
    if len(frame) <= 25:
        ax.set_xticks(place, frame["node"])
    title = "Chosen actions and their lead over the next best"
    ax.set(xlabel="node", ylabel="lead of the chosen action", title=title)
    return ax


def draw_histories(histories: Sequence[tuple[str, pd.DataFrame]], ax: Any) -> Any:
    for k, (name, history) in enumerate(histories):
        color = COLORS[k % len(COLORS)]
        tiny = 1e-17  # where exact zeros are drawn
        ax.semilogy(
            history["n_iter"],
            history["residual"].clip(lower=tiny),
            color=color,
            marker="o",
            ms=3,
            label=f"{name}, residual",
        )
        if history["error_bound"].notna().any():
            ax.semilogy(
                history["n_iter"],
                history["error_bound"].clip(lower=tiny),
                color=color,
                ls="--",
                label=f"{name}, proved error",
            )
    ax.set(xlabel="sweeps or steps", ylabel="size", title="Convergence")
    ax.legend(frameon=False, fontsize=8)
    return ax


def plot_convergence(solvers: Any, ax: Any = None) -> Any:
    """Draw residual and proved error against sweeps.

    Parameters
    ----------
    solvers : solver, list of solvers, or dict of name to solver
        Fitted with ``store_history=True``.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Raises
    ------
    ValueError
        If a solver stored no history.

    Examples
    --------
    >>> from equipoise.games import LEMM, ValueIteration, plot_convergence
    >>> problem = LEMM.from_equations("x = max(1 + 0.9*x, 2)")
    >>> solver = ValueIteration("jacobi", check_every=5, store_history=True).fit(problem)
    >>> plot_convergence(solver).get_yscale()
    'log'
    """
    if isinstance(solvers, LEMMSolver):
        solvers = [solvers]
    named = solvers if isinstance(solvers, dict) else None
    pairs = list(named.items()) if named else [(type(s).__name__, s) for s in solvers]
    for name, solver in pairs:
        if not getattr(solver, "history_", None):
            raise ValueError(f"{name} has no history_: fit it with store_history=True")
    histories = [(name, pd.DataFrame(solver.history_)) for name, solver in pairs]
    return draw_histories(histories, ax if ax is not None else new_axes())


def plot_policy(solver: LEMMSolver, shape: tuple[int, int] | None = None, ax: Any = None) -> Any:
    """Draw a policy: the chosen action of each node, on a grid if the nodes lie on one.

    Parameters
    ----------
    solver : fitted solver
        Its first ``shape[0] * shape[1]`` nodes are drawn.
    shape : (int, int), optional
        Rows and columns of the grid; None draws the first nodes in a row, with each action's lead
        over the next best.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn on.

    Raises
    ------
    ValueError
        If the grid has more cells than there are nodes.

    Examples
    --------
    >>> from equipoise.games import LEMM, PolicyIteration, plot_policy
    >>> problem = LEMM.from_equations(["x = max(1 + 0.5*y, 2)", "y = min(x, 1)"])
    >>> plot_policy(PolicyIteration().fit(problem)).get_xlabel()
    'node'
    """
    ax = ax if ax is not None else new_axes()
    if shape is None:
        return draw_margins(node_frame(solver).head(SHOWN), ax)
    size = shape[0] * shape[1]
    if size > len(solver.policy_):
        raise ValueError(f"shape={shape} has {size} cells; there are {len(solver.policy_)} nodes")
    from matplotlib.colors import ListedColormap

    colors = ListedColormap(list(COLORS[: int(solver.policy_[:size].max()) + 1]))
    image = ax.imshow(solver.policy_[:size].reshape(shape), cmap=colors, interpolation="nearest")
    ax.figure.colorbar(image, ax=ax, label="action", ticks=range(colors.N))
    ax.set(title="Policy", xticks=[], yticks=[])
    return ax
