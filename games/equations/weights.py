"""Absolute halting: weights v > 0 with ``max_a |q_a|.v < v``, which make T a contraction.

With g = v - max_a |q_a|.v > 0 the operator contracts in the norm max_i |z_i| / v_i, and
``|x - x*| <= max_j (|T(x) - x|_j / g_j) v`` for every x. Weights are built component by component,
sinks first: a few sweeps of w <- 1 + max_a |q_a|.w prove membership as soon as every increment is
below 1; where they are slow, policy iteration on v = 1 + max_a |q_a|.v settles it, since a
policy has spectral radius below 1 exactly if its solution is positive.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import njit

from .errors import LEMMSingularError
from .evaluation import solve_fixed_point
from .graph import sweep_order
from .kernels import absolute_image, bellman, improve, smallest_image
from .problem import LEMM

__all__ = [
    "WeightSearch",
    "contraction_gap",
    "find_weights",
    "longest_row",
    "minimal_weights",
    "row_sums",
    "wide_gap",
]

Array = np.ndarray
EPS = np.finfo(np.float64).eps
SWEEPS = 60
THETA = 0.5
HOWARD_STEPS = 100
#: Row sums above this count as 1: probabilities like ten times 0.1 don't add up in floats.
FULL = 1 - 1e-12


class WeightSearch(NamedTuple):
    """What a search for weights found.

    `weights` (n,) if the system is proved absolutely halting; else None, and `refuting_policy`
    has spectral radius >= 1 in absolute values, or is None too if floats don't decide. `gap` is
    the weights' `contraction_gap`.
    """

    weights: Array | None
    refuting_policy: Array | None
    gap: Array | None = None


def row_sums(problem: LEMM) -> Array:
    """Sum of the absolute coefficients of every row, shape (m,)."""
    absolute = sp.csr_array(
        (np.abs(problem.A.data), problem.A.indices, problem.A.indptr), shape=problem.A.shape
    )
    return absolute @ np.ones(problem.n)


def longest_row(problem: LEMM) -> int:
    """Largest number of coefficients in a row: what rounding of a sum grows with."""
    return int(np.diff(problem.A.indptr).max())


def contraction_gap(problem: LEMM, v: Array) -> Array:
    """``g = v - max_a |q_a|.v`` less its own rounding, shape (n,); positive everywhere: a proof."""
    nodes, ptr, cols, coef, _, _ = problem.arrays
    image = np.empty(problem.n)
    absolute_image(nodes, ptr, cols, coef, v, image)
    return v - image - 4 * EPS * (longest_row(problem) + 2) * (image + v)


def wide_gap(problem: LEMM, v: Array) -> Array:
    """``v - min_a q_a.v`` for non-negative systems, shape (n,)."""
    nodes, ptr, cols, coef, _, _ = problem.arrays
    image = np.empty(problem.n)
    smallest_image(nodes, ptr, cols, coef, v, image)
    return v - image + 4 * EPS * (longest_row(problem) + 2) * (image + v)


@njit(cache=True, nogil=True)
def component_weights(
    nodes: Array,
    ptr: Array,
    cols: Array,
    coef: Array,
    order: Array,
    bounds: Array,
    label: Array,
    first: int,
    sweeps: int,
    theta: float,
    w: Array,
) -> int:
    """Raise w by sweeps, component after component; return the first that isn't settled."""
    for c in range(first, bounds.shape[0] - 1):
        if bounds[c + 1] - bounds[c] == 1:
            # One node: w = max_a (1 + what other nodes bring) / (1 - |q_ii|).
            i = order[bounds[c]]
            w[i] = 0.0
            for row in range(nodes[i], nodes[i + 1]):
                own = 0.0
                total = 1.0
                for k in range(ptr[row], ptr[row + 1]):
                    if cols[k] == i:
                        own = abs(coef[k])
                    else:
                        total += abs(coef[k]) * w[cols[k]]
                if own >= FULL:
                    return c
                w[i] = max(w[i], total / (1.0 - own))
            continue
        settled = False
        for sweep in range(sweeps + 1):
            # Every other pass only measures: in-place changes prove nothing.
            measuring = sweep % 4 == 3
            worst = 0.0
            for position in range(bounds[c], bounds[c + 1]):
                i = order[position]
                best = 0.0
                for row in range(nodes[i], nodes[i + 1]):
                    total = 0.0
                    for k in range(ptr[row], ptr[row + 1]):
                        total += abs(coef[k]) * w[cols[k]]
                    best = max(best, total)
                # Overflow gives NaN, which must not pass for a small increment.
                if not 1.0 + best - w[i] <= worst:
                    worst = 1.0 + best - w[i]
                if not measuring:
                    w[i] = 1.0 + best
            if measuring and worst < theta:
                settled = True
                break
        if not settled:
            return c
    return bounds.shape[0] - 1


def absolute_system(problem: LEMM) -> LEMM:
    """``v = 1 + max_a |q_a|.v``: the same rows in absolute values, all nodes max."""
    A = sp.csr_array(
        (np.abs(problem.A.data), problem.A.indices, problem.A.indptr), shape=problem.A.shape
    )
    return LEMM(A, np.ones(problem.m), problem.indptr, np.where(np.diff(problem.indptr) > 1, 1, 0))


def settle_by_policies(system: LEMM, w: Array) -> tuple[Array | None, Array | None]:
    """Policy iteration on a non-negative all-max system with positive offsets.

    Returns (solution, None), or (None, policy) with a policy of spectral radius >= 1, or
    (None, None) if rounding hides the answer.
    """
    policy = np.zeros(system.n, dtype=np.int64)
    bellman(*system.arrays, w, 0, system.n, np.empty(system.n), policy)
    movable = np.ones(system.n, dtype=bool)
    for _ in range(HOWARD_STEPS):
        Q, b = system.policy_matrix(policy)
        try:
            v = solve_fixed_point(Q, b)
        except LEMMSingularError:
            return None, policy
        # b > 0, so spectral radius < 1 exactly if v > 0.
        if not (v > 0).all():
            return None, policy
        if improve(*system.arrays, v, 1e-12, movable, policy) == 0:
            return v, None
    return None, None


@njit(cache=True, nogil=True)
def remove_leaking(
    nodes: Array, ptr: Array, cols: Array, leaks: Array, order: Array, inside: Array
) -> None:
    """Take out nodes all of whose actions leak or may reach a node already out."""
    changed = True
    while changed:
        changed = False
        for position in range(order.shape[0]):
            i = order[position]
            if not inside[i]:
                continue
            stays = False
            for row in range(nodes[i], nodes[i + 1]):
                closed = not leaks[row]
                for k in range(ptr[row], ptr[row + 1]):
                    closed = closed and inside[cols[k]]
                stays = stays or closed
            if not stays:
                inside[i] = False
                changed = True


def trap(problem: LEMM, sums: Array) -> Array | None:
    """A policy that keeps some states among themselves for ever; None if there is none.

    For non-negative rows with sums <= 1 this decides halting exactly, by the graph alone.
    """
    nodes, ptr, cols, _, _, _ = problem.arrays
    label, order, bounds = problem.components
    leaks = sums < FULL
    inside = np.ones(problem.n, dtype=bool)
    remove_leaking(
        nodes, ptr, cols, leaks, sweep_order(label, order, bounds, *problem.edges), inside
    )
    if not inside.any():
        return None
    pattern = sp.csr_array(
        (np.ones(problem.nnz), problem.A.indices, problem.A.indptr), shape=problem.A.shape
    )
    closed = ~leaks & (pattern @ (~inside).astype(float) == 0)
    policy = np.zeros(problem.n, dtype=np.int64)
    for i in np.flatnonzero(inside):
        policy[i] = np.argmax(closed[problem.indptr[i] : problem.indptr[i + 1]])
    return policy


def find_weights(problem: LEMM) -> WeightSearch:
    """Prove or refute absolute halting.

    Parameters
    ----------
    problem : LEMM
        Any system.

    Returns
    -------
    WeightSearch
        Weights with positive `contraction_gap`, or a policy with spectral radius >= 1 (of its
        absolute coefficients), or neither where rounding hides the answer.
    """
    ones = np.ones(problem.n)
    gap = contraction_gap(problem, ones)
    if (gap > 0).all():
        return WeightSearch(ones, None, gap)
    sums = row_sums(problem)
    if (problem.A.data >= 0).all() and (sums <= 1 + 1e-12).all():
        policy = trap(problem, sums)
        if policy is not None:
            return WeightSearch(None, policy)
    nodes, ptr, cols, coef, _, _ = problem.arrays
    label, order, bounds = problem.components
    w = ones
    c, count = 0, len(bounds) - 1
    whole = None
    while True:
        args = (nodes, ptr, cols, coef, order, bounds, label)
        c = component_weights(*args, c, SWEEPS, THETA, w)
        if c == count:
            break
        whole = absolute_system(problem) if whole is None else whole
        members = np.sort(order[bounds[c] : bounds[c + 1]])
        v, policy = settle_by_policies(whole.restrict(members, w), w[members])
        if v is None:
            if policy is None:
                return WeightSearch(None, None)
            full = np.zeros(problem.n, dtype=np.int64)
            full[members] = policy
            return WeightSearch(None, full)
        w[members] = v
        c += 1
    gap = contraction_gap(problem, w)
    if not (np.isfinite(w).all() and (gap > 0).all()):
        return WeightSearch(None, None)
    return WeightSearch(w, None, gap)


def minimal_weights(problem: LEMM) -> Array:
    """The smallest v with ``v = 1 + max_a |q_a|.v``; see `LEMM.weights`."""
    search = find_weights(problem)
    if search.weights is None:
        reason = "rounding hides whether it is"
        if search.refuting_policy is not None:
            shown = np.array2string(search.refuting_policy, threshold=20)
            reason = f"policy {shown} has spectral radius >= 1 in absolute values"
        raise ValueError(f"the system is not absolutely halting, so it has no weights: {reason}")
    v, _ = settle_by_policies(absolute_system(problem), search.weights)
    if v is None:
        raise ValueError("the weights are too large to be computed in floats")
    return v
