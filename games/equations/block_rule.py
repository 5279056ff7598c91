"""Block least index: the least-index rule, with its first nodes solved all at once.

The least-index rule solves the first nodes anew after each switch of a later one. Where the
policy of the later nodes is held and they are eliminated, what is left for the first ones is
often absolutely halting; safeguarded policy iteration then solves it in a few steps, and arrives
where the single switches would have ended.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from .classes import classify_quickly
from .errors import LEMMSingularError
from .evaluation import dense_solve
from .problem import LEMM
from .solver import Run
from .switch_all import safeguarded
from .switch_one import Callback, least_index_row, owners, violated_rows

__all__ = ["Block", "block_least_index", "eliminate", "largest_block"]

Array = np.ndarray
MAX_STEPS = 1000


class Block(NamedTuple):
    """Nodes that can be solved at once.

    Attributes
    ----------
    nodes : ndarray of shape (k,)
        The nodes.
    problem : LEMM
        Their equations, the other nodes eliminated.
    weights : ndarray of shape (k,)
        Its weights: it is absolutely halting.
    """

    nodes: Array
    problem: LEMM
    weights: Array


def eliminate(problem: LEMM, policy: Array, kept: Array, held: Array) -> LEMM | None:
    """The equations of some nodes when the others hold their policy.

    Parameters
    ----------
    problem : LEMM
        The whole system.
    policy : ndarray of shape (n,), int64
        Only the actions of `held` matter.
    kept, held : ndarray of int
        A partition of the nodes.

    Returns
    -------
    LEMM or None
        A system of the kept nodes, all their actions included; None if the held nodes' own
        equations are singular. Every determinant is the whole's over that of the held nodes.
    """
    k = len(kept)
    Q, b = problem.policy_matrix(policy)
    own = np.eye(len(held)) - Q[held][:, held].toarray()
    G = np.zeros((0, k + 1))
    if len(held):
        solved = dense_solve(own, np.column_stack([Q[held][:, kept].toarray(), b[held]]))
        if solved is None:
            return None
        G = solved  # x_held = G (x_kept, 1)
    sizes = np.diff(problem.indptr)[kept]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    rows = np.arange(starts[-1]) + np.repeat(problem.indptr[kept] - starts[:-1], sizes)
    A = problem.A[rows]
    through = A[:, held] @ G
    reduced = A[:, kept].toarray() + through[:, :k]
    return LEMM(sp.csr_array(reduced), problem.b[rows] + through[:, k], starts, problem.op[kept])


def largest_block(problem: LEMM, policy: Array, order: Array, size: int) -> Block | None:
    """The first of an order's nodes, at most `size`, halved until they are absolutely halting."""
    while size:
        part = eliminate(problem, policy, order[:size], order[size:])
        if part is not None:
            weights = classify_quickly(part).weights
            if weights is not None:
                return Block(order[:size], part, weights)
        size //= 2
    return None


def block_least_index(
    problem: LEMM,
    policy: Array,
    order: Array,
    pick: str = "largest",
    tie_tol: float = 1e-10,
    max_switches: int | None = None,
    random_state: Any = None,
    callback: Callback = None,
) -> Run:
    """The least-index rule with blocks; dense, O(n^3) a switch.

    Parameters
    ----------
    problem, policy, order, pick, tie_tol, max_switches, random_state, callback
        As in `switching_rule`; switches inside a block aren't limited or reported one by one.

    Returns
    -------
    Run
        Status 'optimal', 'max_iter', 'singular', or 'cycle' where a policy comes back (rounding
        has made a block disagree with the whole); `n_iter` counts the switches outside blocks,
        `n_switches` those inside too.
    """
    owner, rng = owners(problem), check_random_state(random_state)
    rank = np.empty(problem.n, dtype=np.int64)
    rank[order] = np.arange(problem.n)
    policy = policy.copy()
    run = Run(np.zeros(problem.n), policy, "max_iter")
    size = problem.n
    seen: set[bytes] = set()
    while True:
        try:
            block = largest_block(problem, policy, order, size)
            size = 0 if block is None else len(block.nodes)
            if block is not None:
                before = policy[block.nodes]
                inner = safeguarded(block.problem, before, block.weights, 0.5, tie_tol, MAX_STEPS)
                run.n_evaluations += inner.n_evaluations
                run.n_switches += int(np.count_nonzero(inner.policy != before))
                policy[block.nodes] = inner.policy
                if inner.status != "optimal":
                    run.message = f"a block of {size} nodes isn't solved: {inner.message}"
                    run.value = problem.evaluate(policy)
                    return run
            run.value = problem.evaluate(policy)
        except LEMMSingularError as error:
            run.status, run.message = "singular", str(error)
            return run
        run.n_evaluations += 1
        rows, violation = violated_rows(problem, owner, policy, run.value, tie_tol)
        if rows.size == 0:
            run.status = "optimal"
            return run
        row = least_index_row(rows, violation, owner, rank, pick, rng)
        gap = float(violation[row])
        if run.n_iter and callback is not None and callback(run.n_iter, run.value.copy(), gap):
            run.message = f"stopped by the callback after {run.n_iter} switches"
            return run
        if max_switches is not None and run.n_iter >= max_switches:
            run.message = f"stopped after {run.n_iter} switches"
            return run
        if (key := policy.tobytes()) in seen:
            run.status, run.message = "cycle", f"a policy came back after {run.n_iter} switches"
            return run
        seen.add(key)
        i = int(owner[row])
        policy[i] = row - problem.indptr[i]
        run.n_iter += 1
        run.n_switches += 1
