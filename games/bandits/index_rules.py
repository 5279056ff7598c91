"""Steps of learners for noisy losses, compiled: the UCB family, epsilon-greedy, Thompson sampling.

With losses instead of gains an index is a lower bound, mean - radius; the least one is played, and
each arm is played once before.
"""

import numpy as np
from numba import njit

from .memory import (
    GUESSED_HORIZON,
    GUESSED_SEGMENTS,
    HEAD,
    ROUND,
    SCALARS,
    arm_vector,
    record_round,
)
from .streams import next_uniform

__all__ = [
    "discounted_learn",
    "discounted_probabilities",
    "discounted_scales",
    "greedy_probabilities",
    "thompson_arm",
    "thompson_learn",
    "ucb_learn",
    "ucb_probabilities",
    "window_learn",
    "window_probabilities",
]

Array = np.ndarray

#: Place in the head: the discount.
DISCOUNT = SCALARS


@njit(cache=True, nogil=True, error_model="numpy")
def play_lowest_index(sums: Array, counts: Array, scale: float, p: Array) -> None:
    """All probability on the least ``mean - scale / sqrt(count)``; arms without samples first."""
    best, lowest_index = 0, np.inf
    for a in range(p.size):
        index = sums[a] / counts[a] - scale / np.sqrt(counts[a]) if counts[a] > 0 else -np.inf
        if index < lowest_index:
            best, lowest_index = a, index
    p[:] = 0.0
    p[best] = 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def ucb_probabilities(params: Array, memory: Array, p: Array) -> None:
    counts, sums = arm_vector(memory, 0, p.size), arm_vector(memory, 1, p.size)
    scale = np.sqrt(params[2] * np.log(max(memory[ROUND], 1.0)))
    play_lowest_index(sums, counts, scale, p)


@njit(cache=True, nogil=True, error_model="numpy")
def ucb_learn(params: Array, memory: Array, p: Array, arm: int, loss: float, weight: float) -> None:
    record_round(params, memory, p.size, arm, loss)


@njit(cache=True, nogil=True, error_model="numpy")
def window_probabilities(params: Array, memory: Array, p: Array) -> None:
    """Vectors 2 and 3: counts and sums inside the window, whose rounds stand in a ring behind."""
    counts, sums = arm_vector(memory, 2, p.size), arm_vector(memory, 3, p.size)
    scale = np.sqrt(params[3] * np.log(max(min(memory[ROUND], params[2]), 1.0)))
    play_lowest_index(sums, counts, scale, p)


@njit(cache=True, nogil=True, error_model="numpy")
def window_learn(
    params: Array, memory: Array, p: Array, arm: int, loss: float, weight: float
) -> None:
    counts, sums = arm_vector(memory, 2, p.size), arm_vector(memory, 3, p.size)
    window = int(params[2])
    place = HEAD + 4 * p.size + 2 * (int(memory[ROUND]) % window)
    if memory[ROUND] >= window:
        oldest = int(memory[place])
        counts[oldest] -= 1
        sums[oldest] = sums[oldest] - memory[place + 1] if counts[oldest] > 0 else 0.0
    memory[place], memory[place + 1] = arm, loss
    counts[arm] += 1
    sums[arm] += loss
    record_round(params, memory, p.size, arm, loss)


@njit(cache=True, nogil=True, error_model="numpy")
def discounted_scales(params: Array, memory: Array, n_arms: int) -> None:
    T, S = memory[GUESSED_HORIZON], memory[GUESSED_SEGMENTS]
    rate = max(0.5, 1 - 0.25 * np.sqrt(S / T))
    memory[DISCOUNT] = rate if np.isnan(params[2]) else params[2]


@njit(cache=True, nogil=True, error_model="numpy")
def discounted_probabilities(params: Array, memory: Array, p: Array) -> None:
    """Vectors 2 and 3: discounted counts and sums."""
    counts, sums = arm_vector(memory, 2, p.size), arm_vector(memory, 3, p.size)
    scale = 2 * np.sqrt(params[3] * np.log(max(counts.sum(), 1.0)))
    play_lowest_index(sums, counts, scale, p)


@njit(cache=True, nogil=True, error_model="numpy")
def discounted_learn(
    params: Array, memory: Array, p: Array, arm: int, loss: float, weight: float
) -> None:
    counts, sums = arm_vector(memory, 2, p.size), arm_vector(memory, 3, p.size)
    for a in range(p.size):
        counts[a] *= memory[DISCOUNT]
        sums[a] *= memory[DISCOUNT]
    counts[arm] += 1
    sums[arm] += loss
    if record_round(params, memory, p.size, arm, loss):
        discounted_scales(params, memory, p.size)


@njit(cache=True, nogil=True, error_model="numpy")
def greedy_probabilities(params: Array, memory: Array, p: Array) -> None:
    """params[2]: probability of an arm at random."""
    counts, sums = arm_vector(memory, 0, p.size), arm_vector(memory, 1, p.size)
    play_lowest_index(sums, counts, 0.0, p)
    if memory[ROUND] >= p.size and counts.min() > 0:
        for a in range(p.size):
            p[a] = (1 - params[2]) * p[a] + params[2] / p.size


@njit(cache=True, nogil=True, error_model="numpy")
def draw_gamma(shape: float, stream: Array) -> float:
    """A Gamma(shape, 1) number, shape >= 1: Marsaglia and Tsang's method with polar normals."""
    d = shape - 1.0 / 3.0
    c = 1.0 / np.sqrt(9.0 * d)
    while True:
        x, y, square = 0.0, 0.0, 2.0
        while square >= 1.0 or square == 0.0:
            x = 2 * next_uniform(stream) - 1
            y = 2 * next_uniform(stream) - 1
            square = x * x + y * y
        normal = x * np.sqrt(-2 * np.log(square) / square)
        root = 1.0 + c * normal
        if root > 0.0:
            cube = root * root * root
            u = next_uniform(stream)
            if u == 0.0 or np.log(u) < 0.5 * normal * normal + d - d * cube + d * np.log(cube):
                return d * cube


@njit(cache=True, nogil=True, error_model="numpy")
def thompson_arm(params: Array, memory: Array, stream: Array, n_arms: int) -> int:
    """The arm whose drawn mean loss is least; vectors 2 and 3 hold the Beta parameters."""
    losses, gains = arm_vector(memory, 2, n_arms), arm_vector(memory, 3, n_arms)
    best, least = 0, np.inf
    for a in range(n_arms):
        x, y = draw_gamma(losses[a], stream), draw_gamma(gains[a], stream)
        mean = x / (x + y)
        if mean < least:
            best, least = a, mean
    return best


@njit(cache=True, nogil=True, error_model="numpy")
def thompson_learn(
    params: Array, memory: Array, p: Array, arm: int, loss: float, weight: float
) -> None:
    arm_vector(memory, 2, p.size)[arm] += loss
    arm_vector(memory, 3, p.size)[arm] += 1 - loss
    record_round(params, memory, p.size, arm, loss)
