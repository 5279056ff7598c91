"""Solve a system component by component, sinks first, each by what its class allows.

Components of one level of the condensed graph are independent. Those proved absolutely halting
are solved together as one system; every other one by the parametric rule, in threads.
"""

from typing import Any

import numpy as np

from equipoise.blocks import map_blocks

from .classes import LEMMClass, classify_quickly
from .errors import LEMMSingularError
from .graph import component_levels
from .kernels import gauss_seidel
from .problem import LEMM
from .solver import Run
from .switch_all import all_switch, hoffman_karp, safeguarded
from .switch_one import generic_direction, parametric_rule, switching_rule

__all__ = ["solve_by_components", "solve_halting", "solve_twisted"]

Array = np.ndarray
MAX_STEPS = 1000
TIE = 1e-11
WARM_UP = 30


def solve_halting(
    problem: LEMM, found: LEMMClass, tie_tol: float = TIE, x: Array | None = None
) -> Run:
    """Policy iteration with a guarantee for an absolutely halting system.

    Parameters
    ----------
    problem : LEMM
        Absolutely halting.
    found : LEMMClass
        Its class, with weights.
    tie_tol : float
        As in `all_switch`.
    x : ndarray of shape (n,), optional
        Start from the greedy policy here; default: after 30 sweeps from 0.

    Returns
    -------
    Run
        The solution.
    """
    assert found.weights is not None
    if x is None:
        x = np.zeros(problem.n)
        gauss_seidel(*problem.arrays, np.arange(problem.n), 1.0, WARM_UP, x)
    policy = problem.greedy(x)
    if not found.nonnegative:
        return safeguarded(problem, policy, found.weights, 0.5, tie_tol, MAX_STEPS)
    if found.one_player:
        return all_switch(problem, policy, tie_tol, MAX_STEPS)
    return hoffman_karp(problem, policy, tie_tol, MAX_STEPS)


def solve_twisted(problem: LEMM, seed: int, tie_tol: float = TIE) -> Run:
    """The parametric rule, and the least-index rule where rounding stops the path.

    Parameters
    ----------
    problem : LEMM
        Any system.
    seed : int
        For the path's direction.
    tie_tol : float
        As in `parametric_rule`.

    Returns
    -------
    Run
        The solution, or status 'not_W' or 'singular'.
    """
    policy = problem.greedy(np.zeros(problem.n))
    run = parametric_rule(problem, policy, generic_direction(problem, policy, seed), tie_tol)
    if run.status == "not_W" and not run.witness:
        again = switching_rule(problem, run.policy, tie_tol=tie_tol, max_switches=100 * problem.m)
        again.n_iter += run.n_iter
        again.n_evaluations += run.n_evaluations
        again.n_switches += run.n_switches
        return again
    return run


def solve_by_components(
    problem: LEMM, random_state: np.random.RandomState, n_jobs: int | None = None
) -> Run:
    """Solve the strongly connected components in the order of their dependence.

    Parameters
    ----------
    problem : LEMM
        Any system.
    random_state : RandomState
        Seeds the parametric paths.
    n_jobs : int, optional
        Threads for independent components.

    Returns
    -------
    Run
        The solution, or the status of the first component that failed.
    """
    label, order, bounds = problem.components
    n_components = len(bounds) - 1
    level = component_levels(label, *problem.edges, n_components)
    x = np.zeros(problem.n)
    policy = np.zeros(problem.n, dtype=np.int64)
    total = Run(x, policy, "optimal")

    def members(components: Array) -> Array:
        return np.sort(np.concatenate([order[bounds[c] : bounds[c + 1]] for c in components]))

    def one(task: tuple[Array, int]) -> tuple[Array, Run]:
        nodes, seed = task
        part = problem.restrict(nodes, x)
        found = classify_quickly(part)
        try:
            if found.weights is not None:
                return nodes, solve_halting(part, found)
            return nodes, solve_twisted(part, seed)
        except LEMMSingularError as error:
            values, actions = np.zeros(part.n), np.zeros(part.n, dtype=np.int64)
            return nodes, Run(values, actions, "singular", message=str(error))

    for depth in range(int(level.max()) + 1):
        components = np.flatnonzero(level == depth)
        together = members(components)
        if classify_quickly(problem.restrict(together, x)).weights is not None:
            groups = [together]
        else:
            groups = [members(components[k : k + 1]) for k in range(len(components))]
        seeds = random_state.randint(2**31 - 1, size=len(groups))
        tasks = list(zip(groups, seeds.tolist(), strict=True))
        answers: list[Any] = map_blocks(one, tasks, n_jobs) if len(tasks) > 1 else [one(tasks[0])]
        for nodes, run in answers:
            x[nodes], policy[nodes] = run.value, run.policy
            total.n_iter += run.n_iter
            total.n_evaluations += run.n_evaluations
            total.n_switches += run.n_switches
            if run.status != "optimal":
                total.status, total.message = run.status, run.message
                total.witness = tuple(in_place(policy, nodes, w) for w in run.witness)
                return total
    return total


def in_place(policy: Array, nodes: Array, part: Array) -> Array:
    full = policy.copy()
    full[nodes] = part
    return full
