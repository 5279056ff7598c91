"""Markov decision processes, stochastic games and branching processes as systems of equations.

A discounted process has the optimality equations ``x_s = max_a (R[s, a] + discount P[a, s].x)``;
in a turn-based game the states of the other player take min.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from .nodes import CompressedSystem, compress_nodes, sign_of

__all__ = ["compress_branching", "compress_mdp", "compress_ssg", "state_signs", "terminal_values"]


def terminal_values(terminal: Any, n: int) -> dict[int, float]:
    """Terminal states and their values, from a mask, indices, or a mapping state -> value."""
    if terminal is None:
        return {}
    if isinstance(terminal, Mapping):
        values = {int(state): float(value) for state, value in terminal.items()}
    else:
        states = np.asarray(terminal)
        if states.dtype == bool:
            if states.shape != (n,):
                raise ValueError(f"terminal must have one flag a state ({n}), got {states.shape}")
            states = np.flatnonzero(states)
        values = {int(state): 0.0 for state in np.atleast_1d(states)}
    for state in values:
        if not 0 <= state < n:
            raise ValueError(f"terminal names state {state}; allowed: 0 to {n - 1}")
    return values


def stack_transitions(P: Any, s_indices: Any) -> tuple[sp.csr_array, np.ndarray, int, int]:
    """Rows ordered by state: (transitions, state of each row, n_states, n_actions or 0)."""
    if s_indices is not None:
        matrix = sp.csr_array(P, dtype=float)
        states = np.asarray(s_indices)
        if states.shape != (matrix.shape[0],) or states.dtype.kind not in "iu":
            raise ValueError(
                f"s_indices must hold one state (an integer) for each of P's {matrix.shape[0]} "
                f"rows, got shape {states.shape} of {states.dtype}"
            )
        return matrix, states.astype(np.int64), matrix.shape[1], 0
    if sp.issparse(P):
        raise ValueError("P is one sparse matrix (rows are state-action pairs): give s_indices too")
    matrices = [sp.csr_array(matrix, dtype=float) for matrix in P]
    if not matrices:
        raise ValueError("P holds no action")
    n = matrices[0].shape[0]
    for a, matrix in enumerate(matrices):
        if matrix.shape != (n, n):
            raise ValueError(f"P[{a}] must have shape ({n}, {n}), got {matrix.shape}")
    k = len(matrices)
    stacked = sp.csr_array(sp.vstack(matrices, format="csr"))
    rows = (np.arange(k)[None, :] * n + np.arange(n)[:, None]).ravel()
    return stacked[rows], np.repeat(np.arange(n), k), n, k


def rewards_of_rows(R: Any, P: sp.csr_array, states: np.ndarray, n: int, k: int) -> np.ndarray:
    """The expected reward of every row, from R of shape (S,), (S, A), (A, S, S) or one a row."""
    R = np.asarray(R, dtype=float)
    if k == 0:
        if R.shape == (len(states),):
            return R.copy()
        if R.shape == (n,):
            return R[states]
        raise ValueError(f"R must have shape ({len(states)},) or ({n},), got {R.shape}")
    if R.shape == (n,):
        return R[states]
    if R.shape == (n, k):
        return R.ravel().copy()
    if R.shape == (n, k, n):
        return np.asarray(P.multiply(R.reshape(n * k, n)).sum(axis=1)).ravel()
    raise ValueError(f"R must have shape ({n},), ({n}, {k}) or ({n}, {k}, {n}), got {R.shape}")


def state_signs(sense: Any, n: int) -> np.ndarray:
    if isinstance(sense, str):
        sense = [sense] * n
    if len(sense) != n:
        raise ValueError(f"sense must be one word or one for each of {n} states, got {len(sense)}")
    signs = np.array([sign_of(word) for word in sense]) if n else np.empty(0, dtype=int)
    if (signs == 0).any():
        raise ValueError("sense must be 'max' or 'min' in every state")
    return signs


def compress_mdp(
    P: Any,
    R: Any,
    discount: float,
    sense: Any,
    terminal: Any,
    mask: Any,
    s_indices: Any,
) -> CompressedSystem:
    """Compress a decision process; see `LEMM.from_mdp`."""
    if not 0 <= discount <= 1:
        raise ValueError(f"discount={discount!r} must lie between 0 and 1")
    P, states, n, k = stack_transitions(P, s_indices)
    rewards = rewards_of_rows(R, P, states, n, k)
    if P.nnz and not (P.data.min() >= 0 and P.data.max() < np.inf):
        raise ValueError("P must hold finite, non-negative probabilities")
    sums = np.asarray(P.sum(axis=1)).ravel()
    keep = np.ones(len(states), dtype=bool)
    if mask is not None:
        mask = np.asarray(mask, dtype=bool)
        if k == 0 or mask.shape != (n, k):
            raise ValueError(f"mask must have shape (n_states, n_actions), got {mask.shape}")
        keep &= mask.ravel()
    ends = terminal_values(terminal, n)
    for state in ends:
        keep[states == state] = False
    wrong = np.flatnonzero(keep & (np.abs(sums - 1) > 1e-8))
    if wrong.size:
        raise ValueError(
            f"P: the probabilities of row {wrong[0]} (state {states[wrong[0]]}) sum to "
            f"{sums[wrong[0]]:.12g}; they must sum to 1, except in terminal states"
        )
    order = np.argsort(states, kind="stable") if (np.diff(states) < 0).any() else None
    if order is not None:
        P, states, rewards, keep = P[order], states[order], rewards[order], keep[order]
    if not keep.all():
        P, states, rewards = P[keep], states[keep], rewards[keep]
    else:
        P = P.copy()
    if discount != 1:
        P.data *= discount
    if ends:
        stops = np.array(sorted(ends))
        place = np.argsort(np.concatenate([states, stops]), kind="stable")
        P = sp.csr_array(sp.vstack([P, sp.csr_array((len(stops), n))], format="csr"))[place]
        rewards = np.concatenate([rewards, [ends[state] for state in stops]])[place]
        states = np.concatenate([states, stops])[place]
    counts = np.bincount(states, minlength=n) if len(states) else np.zeros(n, dtype=int)
    if len(counts) != n:
        raise ValueError(f"s_indices names state {len(counts) - 1}; allowed: 0 to {n - 1}")
    signs = np.where(counts == 1, 0, state_signs(sense, n))
    return CompressedSystem(P, rewards, np.concatenate([[0], np.cumsum(counts)]), signs)


def compress_ssg(
    kind: Sequence[str], succ: Sequence[Sequence[int]], prob: Sequence[Any]
) -> CompressedSystem:
    """Compress a simple stochastic game; see `LEMM.from_ssg`."""
    n = len(kind)
    if len(succ) != n or len(prob) != n:
        raise ValueError(f"kind, succ and prob must be as long, got {n}, {len(succ)}, {len(prob)}")
    nodes: list[tuple[str, list[tuple[dict[int, Any], Any]]]] = []
    for i, word in enumerate(kind):
        if word in ("sink0", "sink1"):
            nodes.append(("affine", [({}, int(word == "sink1"))]))
        elif word in ("max", "min"):
            choices = [({int(j): 1}, 0) for j in succ[i]]
            nodes.append((word if len(choices) != 1 else "affine", choices))
        elif word == "avg":
            weights = [1 / len(succ[i])] * len(succ[i]) if prob[i] is None else list(prob[i])
            if len(weights) != len(succ[i]):
                raise ValueError(f"prob[{i}] must be as long as succ[{i}]")
            if not all(float(w) >= 0 for w in weights) or abs(float(sum(weights)) - 1) > 1e-12:
                raise ValueError(f"prob[{i}]={weights} must be non-negative and sum to 1")
            row: dict[int, Any] = {}
            for j, weight in zip(succ[i], weights, strict=True):
                row[int(j)] = row.get(int(j), 0) + weight
            nodes.append(("affine", [(row, 0)]))
        else:
            raise ValueError(
                f"kind[{i}]={word!r} is not allowed; allowed: 'max', 'min', 'avg', 'sink0', 'sink1'"
            )
    return compress_nodes(nodes)


def compress_branching(
    offspring: Sequence[Sequence[Any]], reward: Sequence[Any], player: Sequence[str]
) -> CompressedSystem:
    """Compress a controlled branching process; see `LEMM.from_branching`."""
    n = len(player)
    if len(offspring) != n or len(reward) != n:
        raise ValueError(
            f"offspring, reward and player must be as long: {len(offspring)}, {len(reward)}, {n}"
        )
    nodes = []
    for i in range(n):
        gains = list(np.atleast_1d(np.asarray(reward[i], dtype=object)))
        if len(gains) != len(offspring[i]):
            raise ValueError(f"reward[{i}] must hold one number for each row of offspring[{i}]")
        rows = list(zip(offspring[i], gains, strict=True))
        nodes.append((player[i] if len(rows) > 1 else "affine", rows))
    system = compress_nodes(nodes)
    if system.A.nnz and system.A.data.min() < 0:
        raise ValueError("offspring must hold non-negative expected numbers")
    return system
