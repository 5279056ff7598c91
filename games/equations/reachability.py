"""Equations of a model with a target: the chance of reaching it, or the reward until then.

``x = 1`` on the target (``x = 0`` for rewards), elsewhere the best choice's expectation. For
chances the solution wanted is the least one: states that can't be made to reach the target get 0,
and sets in which a maximiser can stay for ever (end components) are given one set of choices, those
that leave. That makes one-player models halting, so that the least solution is the only one.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit

from .graph import strong_components
from .markov import compress_mdp, state_signs
from .model_files import ExplicitModel
from .nodes import CompressedSystem

__all__ = ["collapse_end_components", "compress_model", "end_components", "hopeless_states"]

Array = np.ndarray


def target_states(model: ExplicitModel, target: Any) -> Array:
    """The target as a mask, from a label, a mask or indices of states."""
    n = model.P.shape[1]
    mask = np.zeros(n, dtype=bool)
    if isinstance(target, str):
        if target not in model.labels:
            raise ValueError(f"target={target!r} is not a label; allowed: {sorted(model.labels)}")
        mask[model.labels[target]] = True
    else:
        states = np.atleast_1d(np.asarray(target))
        if states.dtype == bool and states.shape == (n,):
            mask = states.copy()
        elif states.dtype.kind in "iu" and ((states >= 0) & (states < n)).all():
            mask[states] = True
        else:
            raise ValueError(f"target must be a label, states from 0 to {n - 1}, or a mask of them")
    if not mask.any():
        raise ValueError(f"target={target!r} holds no state")
    return mask


@njit(cache=True, nogil=True)
def grow_hope(nodes: Array, ptr: Array, cols: Array, minimising: Array, hopeful: Array) -> None:
    """Add states whose owner can't avoid (or can take) a choice that may lead to a hopeful one."""
    changed = True
    while changed:
        changed = False
        for i in range(hopeful.shape[0] - 1, -1, -1):
            if hopeful[i]:
                continue
            some, every = False, True
            for row in range(nodes[i], nodes[i + 1]):
                leads = False
                for k in range(ptr[row], ptr[row + 1]):
                    leads = leads or hopeful[cols[k]]
                some = some or leads
                every = every and leads
            if every if minimising[i] else some:
                hopeful[i] = True
                changed = True


def hopeless_states(P: sp.csr_array, indptr: Array, sign: Array, target: Array) -> Array:
    """States whose chance of reaching the target is 0, as a mask, by the graph alone.

    Parameters
    ----------
    P : csr_array of shape (m, n)
        Probabilities of the choices.
    indptr : ndarray of shape (n + 1,)
        Choices of each state.
    sign : ndarray of shape (n,)
        Owner of each state, -1 for the minimiser.
    target : ndarray of bool of shape (n,)
        The target.

    Returns
    -------
    ndarray of bool of shape (n,)
        True where the minimiser makes sure, or the maximiser can't help it.
    """
    hopeful = target.copy()
    grow_hope(indptr, P.indptr, P.indices, sign < 0, hopeful)
    return ~hopeful


def end_components(P: sp.csr_array, indptr: Array, allowed: Array) -> tuple[Array, Array]:
    """Maximal sets of states in which one can stay for ever, by the given choices only.

    Parameters
    ----------
    P, indptr
        As in `hopeless_states`.
    allowed : ndarray of bool of shape (m,)
        Choices that may be used.

    Returns
    -------
    component : ndarray of shape (n,), int64
        Number of each state's component, -1 outside.
    staying : ndarray of bool of shape (m,)
        Choices that stay inside their component.
    """
    n = P.shape[1]
    owner = np.repeat(np.arange(n), np.diff(indptr))
    lengths = np.diff(P.indptr)
    entry_row = np.repeat(np.arange(P.shape[0]), lengths)
    staying = allowed.copy()
    while True:
        alive = np.zeros(n, dtype=bool)
        alive[owner[staying]] = True
        kept = staying[entry_row] & (P.data > 0)
        sources, targets = owner[entry_row[kept]], P.indices[kept]
        graph = sp.csr_array((np.ones(len(sources)), (sources, targets)), shape=(n, n))
        label = strong_components(graph.indptr, graph.indices)[0]
        leaves = kept & ((label[owner[entry_row]] != label[P.indices]) | ~alive[P.indices])
        lost = np.unique(entry_row[leaves])
        if lost.size == 0:
            component = np.where(alive, label, -1)
            return component, staying
        staying[lost] = False


def collapse_end_components(
    P: sp.csr_array, b: Array, indptr: Array, sign: Array
) -> tuple[sp.csr_array, Array, Array, Array]:
    """Give each end component of the maximiser one set of choices: those that leave it.

    All its states are worth the same, so the first holds the choices and the others equal it.

    Parameters
    ----------
    P : csr_array of shape (m, n)
        Rows with sum 1 and offset 0 may be stayed in for ever; others end with positive chance.
    b : ndarray of shape (m,)
        Offsets.
    indptr, sign : ndarray
        As in `hopeless_states`.

    Returns
    -------
    P, b, indptr : csr_array, ndarray, ndarray
        Rows of the new system, which has as many nodes.
    source : ndarray of shape (m',), int64
        The old row of each new one, -1 where a state just equals the first of its component.
    """
    n = P.shape[1]
    sizes = np.diff(indptr)
    owner = np.repeat(np.arange(n), sizes)
    full = np.asarray(P.sum(axis=1)).ravel() >= 1 - 1e-12
    free = (sign > 0) | (sizes == 1)
    component, staying = end_components(P, indptr, full & (b == 0) & free[owner])
    first = np.arange(n)
    inside = np.flatnonzero(component >= 0)
    _, leader, group = np.unique(component[inside], return_index=True, return_inverse=True)
    first[inside] = inside[leader][group]
    moved = np.flatnonzero(~staying)
    followers = np.flatnonzero(first != np.arange(n))
    node = np.concatenate([first[owner[moved]], followers])
    source = np.concatenate([moved, np.full(len(followers), -1)])
    order = np.argsort(node, kind="stable")
    equal = sp.csr_array(
        (np.ones(len(followers)), (np.arange(len(followers)), first[followers])),
        shape=(len(followers), n),
    )
    stacked = sp.csr_array(sp.vstack([P[moved], equal], format="csr"))[order]
    offsets = np.concatenate([b[moved], np.zeros(len(followers))])[order]
    counts = np.bincount(node, minlength=n)
    return stacked, offsets, np.concatenate([[0], np.cumsum(counts)]), source[order]


def compress_model(
    model: ExplicitModel, target: Any, sense: Any, players: Sequence[Any] | None
) -> CompressedSystem:
    """The equations of a model and a target; see `LEMM.from_prism_explicit`."""
    goal = target_states(model, target)
    n = model.P.shape[1]
    sense = sense if players is None else list(players)
    end = float(model.rewards is None)
    ends = dict.fromkeys(np.flatnonzero(goal).tolist(), end)
    rewards = np.zeros(len(model.states)) if model.rewards is None else model.rewards
    system = compress_mdp(model.P, rewards, 1.0, sense, ends, None, model.states)
    if model.rewards is not None:
        return system
    sign = np.where(np.diff(system.indptr) > 1, state_signs(sense, n), 1)
    hopeless = hopeless_states(system.A, system.indptr, sign, goal)
    owner = np.repeat(np.arange(n), np.diff(system.indptr))
    # One empty row is left of a state that is worth 0.
    keep = ~hopeless[owner]
    keep[system.indptr[:-1][hopeless]] = True
    A = sp.csr_array(sp.diags_array((~hopeless[owner]).astype(float)) @ system.A)[keep]
    A.eliminate_zeros()
    indptr = np.concatenate([[0], np.cumsum(np.bincount(owner[keep], minlength=n))])
    A, b, indptr, _ = collapse_end_components(A, system.b[keep], indptr, sign)
    return CompressedSystem(A, b, indptr, np.where(np.diff(indptr) > 1, sign, 0))
