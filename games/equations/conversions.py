"""The same equations in other clothes: normal form, stochastic game, halting transform, graph."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from equipoise.imports import optional_import

from .problem import LEMM
from .weights import contraction_gap, find_weights

__all__ = ["GameForm", "dependency_graph", "game_form", "halting_transform", "normal_form"]

Array = np.ndarray


def normal_form(problem: LEMM) -> LEMM:
    """Split every node into a selection of affine nodes, one for each action.

    Nodes 0..n-1 only select; node n + a is row a. Affine nodes are split too: the matrices of a
    policy are then ``[[0, S], [Q, 0]]`` with eigenvalues ±sqrt of the old ones, so the halting
    property is kept, which splitting only some nodes would not ensure.

    Parameters
    ----------
    problem : LEMM
        Any system.

    Returns
    -------
    LEMM
        With n + m nodes; its first n values are the solution.

    Examples
    --------
    >>> from equipoise.games import LEMM
    >>> print(LEMM.from_equations("x1 = max(1 + 0.5*x1, 2)").to_normal_form())
    x1 = max(x2, x3)
    x2 = 1 + 0.5*x1
    x3 = 2
    """
    n, m = problem.n, problem.m
    select = sp.hstack([sp.csr_array((m, n)), sp.eye_array(m, format="csr")])
    rows = sp.hstack([problem.A, sp.csr_array((m, m))])
    A = sp.csr_array(sp.vstack([select, rows], format="csr"))
    indptr = np.concatenate([problem.indptr, m + np.arange(1, m + 1)])
    b = np.concatenate([np.zeros(m), problem.b])
    return LEMM(A, b, indptr, np.concatenate([problem.op, np.zeros(m, dtype=np.int8)]))


@dataclass(frozen=True)
class GameForm:
    """A simple stochastic game equivalent to a halting branching process.

    Attributes
    ----------
    game : LEMM
        n + 2 nodes: the old ones, a sink of value 0 and a sink of value 1. Its values are
        probabilities, and policies of the first n nodes carry over unchanged.
    weights : ndarray of shape (n,)
        v with ``x_i = v_i (lowest + (highest - lowest) u_i)``.
    lowest, highest : float
        Range of the payoffs.
    """

    game: LEMM
    weights: Array
    lowest: float
    highest: float

    def __iter__(self) -> Iterator[Any]:
        """Unpack as ``game, back = problem.to_stochastic_game()``."""
        return iter((self.game, self.back))

    def back(self, u: Array) -> Array:
        """Values of the original system, shape (n,), from the game's, shape (n + 2,)."""
        scaled = self.lowest + (self.highest - self.lowest) * np.asarray(u)[:-2]
        return self.weights * scaled


def game_form(problem: LEMM) -> GameForm:
    """Turn a halting branching process into a simple stochastic game.

    With weights v, ``q_ij v_j / v_i`` sums to less than 1; what is missing stops the game, and
    stopping pays: it leads to the 1-sink with the payoff's relative size as its probability.

    Parameters
    ----------
    problem : LEMM
        Non-negative and halting.

    Returns
    -------
    GameForm
        The game and the way back.

    Raises
    ------
    ValueError
        If a coefficient is negative or the system isn't proved halting.

    Examples
    --------
    >>> from equipoise.games import LEMM, solve_lemm
    >>> problem = LEMM.from_equations(["x = max(1 + 4*y, 2 + 0.5*x)", "y = 0.5 + 0.1*x"])
    >>> form = problem.to_stochastic_game()
    >>> x = form.back(solve_lemm(form.game).x)
    >>> bool(abs(x - solve_lemm(problem).x).max() < 1e-7)
    True
    """
    if (problem.A.data < 0).any():
        raise ValueError("a stochastic game needs coefficients >= 0, and one is negative")
    v = find_weights(problem).weights
    if v is None:
        raise ValueError("a stochastic game needs a halting system, and this isn't proved halting")
    n, m = problem.n, problem.m
    owner = np.repeat(np.arange(n), np.diff(problem.indptr))
    Q = sp.csr_array(sp.diags_array(1 / v[owner]) @ problem.A @ sp.diags_array(v))
    leak = 1 - Q @ np.ones(n)
    leak = np.maximum(leak, (contraction_gap(problem, v) / v)[owner])
    payoff = problem.b / v[owner] / leak
    lowest, highest = float(payoff.min()), float(payoff.max())
    if lowest == highest:
        highest = lowest + 1
    win = leak * (payoff - lowest) / (highest - lowest)
    sinks = sp.csr_array(np.stack([leak - win, win], axis=1))
    A = sp.vstack([sp.hstack([Q, sinks]), sp.csr_array((2, n + 2))], format="csr")
    b = np.concatenate([np.zeros(m), [0.0, 1.0]])
    indptr = np.concatenate([problem.indptr, [m + 1, m + 2]])
    game = LEMM(sp.csr_array(A), b, indptr, np.concatenate([problem.op, [0, 0]]))
    return GameForm(game, v, lowest, highest)


def halting_transform(problem: LEMM, eps: float) -> LEMM:
    """Shrink all coefficients by ``1 - eps``, which makes substochastic systems halting.

    A heuristic: for games whose plays may go on for ever no bound of the error is known. Solve
    for two values of eps and compare.

    Parameters
    ----------
    problem : LEMM
        Any system.
    eps : float
        In (0, 1).

    Returns
    -------
    LEMM
        The discounted system.

    Examples
    --------
    >>> from equipoise.games import LEMM, halting_transform
    >>> trap = LEMM.from_equations(["x = max(y, 0.5)", "y = x"])
    >>> trap.classify().halting, halting_transform(trap, 1e-3).classify().halting
    (False, True)
    """
    if not 0 < eps < 1:
        raise ValueError(f"eps={eps!r} must lie strictly between 0 and 1")
    A = (1 - eps) * problem.A
    return LEMM(A, problem.b, problem.indptr, problem.op, names=problem.names)


def dependency_graph(problem: LEMM) -> Any:
    """The graph of a system, with an edge i -> j where node i depends on node j.

    Parameters
    ----------
    problem : LEMM
        Any system.

    Returns
    -------
    networkx.DiGraph
        Nodes by name, with attribute `op` 'max', 'min' or 'affine'.
    """
    nx = optional_import("networkx", "graphs")
    names = [problem.name(i) for i in range(problem.n)]
    words = {1: "max", -1: "min", 0: "affine"}
    start, cols = problem.edges
    graph = nx.DiGraph()
    graph.add_nodes_from((names[i], {"op": words[int(problem.op[i])]}) for i in range(problem.n))
    owner = np.repeat(np.arange(problem.n), np.diff(start))
    graph.add_edges_from((names[i], names[j]) for i, j in zip(owner, cols, strict=True))
    return graph
