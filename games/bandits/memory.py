"""The memory of a learner: one flat array of float64, the same for compiled loops and for pickles.

A head of `HEAD` numbers, then vectors with one number an arm: how often each arm was played, the
sum of its losses, and what the learner's kind needs. `params` holds what never changes in a run;
its first two numbers are the horizon and the number of segments, 0 where unknown.
"""

import numpy as np
from numba import njit

__all__ = [
    "CHANGES",
    "GUESSED_HORIZON",
    "GUESSED_SEGMENTS",
    "HEAD",
    "ROUND",
    "SCALARS",
    "SEEN",
    "TINY",
    "arm_vector",
    "constants",
    "first_unseen",
    "lowest",
    "new_memory",
    "record_round",
]

Array = np.ndarray

#: Places in the head: rounds played, guesses of horizon and segments, changes and arms seen.
ROUND, GUESSED_HORIZON, GUESSED_SEGMENTS, CHANGES, SEEN = range(5)
#: Where a kind's own numbers begin.
SCALARS = 5
HEAD = 14
#: The least probability by which an estimate is divided: only forced arms come near it.
TINY = 1e-300


def constants(horizon: int | None, n_segments: int | None, *more: float | None) -> Array:
    """The params: horizon and segments, 0 where None; the kind's own numbers, NaN where None."""
    own = (np.nan if number is None else number for number in more)
    return np.array([horizon or 0, n_segments or 0, *own], dtype=np.float64)


def new_memory(
    params: Array, n_arms: int, n_vectors: int, n_more: int = 0, unseen: bool = False
) -> Array:
    """The memory before the first round: counts, sums and `n_vectors` vectors, all 0.

    With `unseen`, the first of the vectors holds the last losses: NaN, as none was seen.
    """
    memory = np.zeros(HEAD + (2 + n_vectors) * n_arms + n_more)
    memory[GUESSED_HORIZON] = params[0] or 4 * n_arms
    memory[GUESSED_SEGMENTS] = params[1] or 1
    memory[CHANGES] = 1
    if unseen:
        memory[HEAD + 2 * n_arms : HEAD + 3 * n_arms] = np.nan
    return memory


@njit(cache=True, nogil=True)
def arm_vector(memory: Array, k: int, n_arms: int) -> Array:
    """Vector k of the arms: 0 counts, 1 sums of losses, from 2 on the kind's own."""
    return memory[HEAD + k * n_arms : HEAD + (k + 1) * n_arms]


@njit(cache=True, nogil=True)
def record_round(params: Array, memory: Array, n_arms: int, arm: int, loss: float) -> bool:
    """Count a round; True where an unknown horizon was reached, and its guess is doubled."""
    memory[ROUND] += 1
    memory[HEAD + arm] += 1
    memory[HEAD + n_arms + arm] += loss
    if params[0] == 0 and memory[ROUND] >= memory[GUESSED_HORIZON]:
        memory[GUESSED_HORIZON] *= 2
        return True
    return False


@njit(cache=True, nogil=True)
def first_unseen(v: Array) -> int:
    """The first arm whose last loss is NaN; -1 where all are known."""
    for a in range(v.size):
        if np.isnan(v[a]):
            return a
    return -1


@njit(cache=True, nogil=True)
def lowest(v: Array) -> int:
    """The first arm with the least entry: argmin without NaN."""
    best = 0
    for a in range(1, v.size):
        if v[a] < v[best]:
            best = a
    return best
