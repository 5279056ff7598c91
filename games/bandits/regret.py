"""Regret of a played sequence against fixed arms, moving targets, and everything between.

For losses l of shape (T, A) and played arms a, with D the least loss of an arm sequence of at most
S segments,

    R_sw(S) = sum_t l_t(a_t) - D(S),    R_stat = R_sw(1),    R_dyn = R_sw(T),

and D follows from a recursion over rounds: D_t[k, a] = l_t(a) + min(D_{t-1}[k, a],
min_c D_{t-1}[k-1, c]), in O(T A S) time and O(A S) memory.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

__all__ = [
    "best_switching_sequence",
    "count_switches",
    "dynamic_regret",
    "regret_profile",
    "static_regret",
    "switching_regret",
]

Array = np.ndarray


def check_table(losses: ArrayLike, name: str = "losses") -> Array:
    """The table as float64 of shape (T, A), finite, read-only; without a copy where it is one."""
    table = np.ascontiguousarray(losses, dtype=np.float64).view()
    table.setflags(write=False)  # always, since numba compiles anew for writable arrays
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(
            f"{name} has shape {table.shape}; allowed: (n_rounds, n_arms), both at least 1"
        )
    if not np.isfinite(table).all():
        t, a = np.argwhere(~np.isfinite(table))[0]
        raise ValueError(f"{name} must be finite, got {table[t, a]} in round {t} for arm {a}")
    return table


def check_arms(arms: ArrayLike, n_rounds: int, n_arms: int) -> Array:
    """The arms as int64 of shape (T,)."""
    played = np.asarray(arms)
    if played.shape != (n_rounds,):
        raise ValueError(f"arms has shape {played.shape}; allowed: ({n_rounds},), an arm a round")
    if not np.issubdtype(played.dtype, np.integer):
        raise TypeError(f"arms must hold integers, got dtype {played.dtype}")
    if played.min() < 0 or played.max() >= n_arms:
        t = int(np.argmax((played < 0) | (played >= n_arms)))
        raise IndexError(f"arms holds {played[t]} in round {t}; allowed: 0 to {n_arms - 1}")
    return played.astype(np.int64)


def check_segments(S: Any, n_rounds: int, name: str = "S") -> int:
    """The number of segments, at most one a round."""
    if isinstance(S, bool) or not isinstance(S, int | np.integer) or S < 1:
        raise ValueError(f"{name} must be a positive integer, got {S!r}")
    return min(int(S), n_rounds)


@njit(cache=True, nogil=True)
def segment_costs(losses: Array, n_segments: int, marks: Array, out: Array) -> None:
    """Least loss with at most k + 1 segments after ``marks[c]`` rounds: ``out[c, k]``."""
    n_rounds, n_arms = losses.shape
    cost = np.empty((n_segments, n_arms))
    least = np.zeros(n_segments)
    cost[:] = 0.0
    mark = 0
    for t in range(n_rounds):
        row = losses[t]
        for k in range(n_segments - 1, -1, -1):
            enter = least[k - 1] if k > 0 else np.inf
            best = np.inf
            here = cost[k]
            for a in range(n_arms):
                stay = min(here[a], enter) + row[a]
                here[a] = stay
                best = min(best, stay)
            least[k] = best
        while mark < marks.size and marks[mark] == t + 1:
            out[mark] = least
            mark += 1


@njit(cache=True, nogil=True)
def trace_segments(losses: Array, n_segments: int, path: Array) -> float:
    """Least loss with at most `n_segments` segments; its arms are written to `path`."""
    n_rounds, n_arms = losses.shape
    cost = np.zeros((n_segments, n_arms))
    start = np.zeros((n_segments, n_arms), dtype=np.int32)
    least = np.zeros(n_segments)
    last_arm = np.empty((n_rounds, n_segments), dtype=np.int32)
    last_start = np.empty((n_rounds, n_segments), dtype=np.int32)
    for t in range(n_rounds):
        for k in range(n_segments - 1, -1, -1):
            enter = least[k - 1] if k > 0 and t > 0 else np.inf
            best = 0
            for a in range(n_arms):
                if enter < cost[k, a]:
                    cost[k, a] = enter
                    start[k, a] = t
                cost[k, a] += losses[t, a]
                if cost[k, a] < cost[k, best]:
                    best = a
            last_arm[t, k] = best
            last_start[t, k] = start[k, best]
            least[k] = cost[k, best]
    total = least[n_segments - 1]
    stop, k = n_rounds, n_segments - 1
    while stop > 0:
        begin = last_start[stop - 1, k]
        path[begin:stop] = last_arm[stop - 1, k]
        stop, k = begin, k - 1
    return total


def played_loss(losses: Array, arms: Array) -> float:
    """What the played arms lost in all."""
    return float(losses[np.arange(len(losses)), arms].sum())


def static_regret(losses: ArrayLike, arms: ArrayLike) -> float:
    """Loss of the played arms beyond that of the best fixed arm.

    Parameters
    ----------
    losses : array-like of shape (n_rounds, n_arms)
        Loss of each arm in each round.
    arms : array-like of int of shape (n_rounds,)
        The played arms.

    Returns
    -------
    float
        Negative where the played arms beat every fixed one.

    Raises
    ------
    ValueError, IndexError
        If shapes differ, a loss isn't finite, or an arm doesn't exist.

    Examples
    --------
    >>> from equipoise.games import static_regret
    >>> static_regret([[0.0, 1.0], [1.0, 0.0], [0.5, 0.0]], [0, 0, 1])
    0.0
    """
    table = check_table(losses)
    played = check_arms(arms, *table.shape)
    return played_loss(table, played) - float(table.sum(axis=0).min())


def dynamic_regret(losses: ArrayLike, arms: ArrayLike) -> float:
    """Loss of the played arms beyond that of the best arm of each round.

    Parameters
    ----------
    losses : array-like of shape (n_rounds, n_arms)
        Loss of each arm in each round.
    arms : array-like of int of shape (n_rounds,)
        The played arms.

    Returns
    -------
    float
        At least 0.

    Examples
    --------
    >>> from equipoise.games import dynamic_regret
    >>> dynamic_regret([[0.0, 1.0], [1.0, 0.0], [0.5, 0.0]], [0, 0, 1])
    1.0
    """
    table = check_table(losses)
    played = check_arms(arms, *table.shape)
    return played_loss(table, played) - float(table.min(axis=1).sum())


def switching_regret(losses: ArrayLike, arms: ArrayLike, S: int) -> float:
    """Loss of the played arms beyond that of the best sequence with at most S segments.

    Parameters
    ----------
    losses : array-like of shape (n_rounds, n_arms)
        Loss of each arm in each round.
    arms : array-like of int of shape (n_rounds,)
        The played arms.
    S : int
        Number of segments: 1 gives the static regret, `n_rounds` the dynamic one.

    Returns
    -------
    float
        Grows with S.

    Examples
    --------
    >>> from equipoise.games import switching_regret
    >>> switching_regret([[0.0, 1.0], [1.0, 0.0], [0.5, 0.0]], [0, 0, 1], S=2)
    1.0
    """
    return float(regret_profile(losses, arms, S)[-1])


def best_switching_sequence(losses: ArrayLike, S: int, return_path: bool = False) -> Any:
    """Least loss of an arm sequence with at most S segments, by dynamic programming.

    Parameters
    ----------
    losses : array-like of shape (n_rounds, n_arms)
        Loss of each arm in each round.
    S : int
        Largest number of segments.
    return_path : bool, default=False
        Whether to return the sequence too, which takes 8 S bytes a round.

    Returns
    -------
    total : float
        The least loss.
    path : ndarray of int64 of shape (n_rounds,)
        A sequence that attains it; only with `return_path`.

    Examples
    --------
    >>> from equipoise.games import best_switching_sequence
    >>> total, path = best_switching_sequence([[0, 1], [1, 0], [0.5, 0]], 2, return_path=True)
    >>> total, path.tolist()
    (0.0, [0, 1, 1])
    """
    table = check_table(losses)
    n_segments = check_segments(S, len(table))
    if return_path:
        path = np.empty(len(table), dtype=np.int64)
        return float(trace_segments(table, n_segments, path)), path
    costs = np.empty((1, n_segments))
    segment_costs(table, n_segments, np.array([len(table)]), costs)
    return float(costs[0, -1])


def regret_profile(losses: ArrayLike, arms: ArrayLike, S_max: int) -> Array:
    """Switching regret for each number of segments up to `S_max`.

    Parameters
    ----------
    losses : array-like of shape (n_rounds, n_arms)
        Loss of each arm in each round.
    arms : array-like of int of shape (n_rounds,)
        The played arms.
    S_max : int
        Largest number of segments; more than one a round is the same as one a round.

    Returns
    -------
    ndarray of shape (min(S_max, n_rounds),)
        Entry k is the regret against sequences of at most k + 1 segments; it doesn't decrease.

    Examples
    --------
    >>> from equipoise.games import regret_profile
    >>> regret_profile([[0.0, 1.0], [1.0, 0.0], [0.5, 0.0]], [0, 0, 1], 3).tolist()
    [0.0, 1.0, 1.0]
    """
    table = check_table(losses)
    played = check_arms(arms, *table.shape)
    costs = np.empty((1, check_segments(S_max, len(table), "S_max")))
    segment_costs(table, costs.shape[1], np.array([len(table)]), costs)
    return played_loss(table, played) - costs[0]


def count_switches(losses: ArrayLike, tol: float = 0.0) -> int:
    """Number S of segments in which no loss changes.

    Parameters
    ----------
    losses : array-like of shape (n_rounds, n_arms)
        Loss of each arm in each round.
    tol : float, default=0
        Changes up to this size don't count.

    Returns
    -------
    int
        1 + the number of rounds whose losses differ from the round's before.

    Examples
    --------
    >>> from equipoise.games import count_switches
    >>> count_switches([[0.0, 1.0], [0.0, 1.0], [0.5, 1.0]])
    2
    """
    table = check_table(losses)
    return 1 + int((np.abs(np.diff(table, axis=0)) > tol).any(axis=1).sum())
