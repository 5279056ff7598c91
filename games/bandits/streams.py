"""One stream of uniform numbers a learner: xoshiro256++, seeded by NumPy's SeedSequence.

A round takes one number, also where the outcome is certain, so that learners with equal
probabilities and equal seeds draw equal arms. The state is four 64-bit words in an array: compiled
loops carry it, pickles hold it, and results don't depend on the number of threads.

References: D. Blackman, S. Vigna, "Scrambled linear pseudorandom number generators", 2021.
"""

from typing import Any

import numpy as np
from numba import njit
from sklearn.utils import check_random_state

__all__ = ["draw_arm", "next_uniform", "run_seed", "stream_of"]

Array = np.ndarray


def stream_of(random_state: Any) -> Array:
    """The start of the stream of a seed; None and generators draw the seed."""
    if random_state is not None and not isinstance(random_state, int | np.integer):
        random_state = check_random_state(random_state).randint(2**32, dtype=np.uint64)
    entropy = None if random_state is None else int(random_state)
    return np.random.SeedSequence(entropy).generate_state(4, np.uint64)


def run_seed(entropy: int, *key: int) -> int:
    """The seed that a simulation gives to the child with this key."""
    return int(np.random.SeedSequence(entropy, spawn_key=key).generate_state(1)[0])


@njit(cache=True, nogil=True)
def rotate(word: np.uint64, by: np.uint64) -> np.uint64:
    return (word << by) | (word >> (np.uint64(64) - by))


@njit(cache=True, nogil=True)
def next_uniform(stream: Array) -> float:
    """The next number in [0, 1), with 53 random bits."""
    word = rotate(stream[0] + stream[3], np.uint64(23)) + stream[0]
    shifted = stream[1] << np.uint64(17)
    stream[2] ^= stream[0]
    stream[3] ^= stream[1]
    stream[1] ^= stream[2]
    stream[0] ^= stream[3]
    stream[2] ^= shifted
    stream[3] = rotate(stream[3], np.uint64(45))
    return (word >> np.uint64(11)) * 2.0**-53


@njit(cache=True, nogil=True)
def draw_arm(p: Array, uniform: float) -> int:
    """The arm at which the cumulative probabilities pass `uniform`."""
    total = 0.0
    last = 0
    for a in range(p.size):
        if p[a] > 0.0:
            total += p[a]
            last = a
            if uniform < total:
                return a
    return last  # the probabilities sum to a little less than uniform, by rounding
