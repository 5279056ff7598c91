"""Steps of the learners over learners, compiled: Corral and bandit-over-bandit.

Corral's memory, behind the vectors: M probabilities q, M thresholds rho, M rates, M rows with the
bases' laws, then the bases' memories. Its params: horizon, segments, rate, M, then for each base
its kind, where its params and its memory begin, and their lengths; then the bases' params.

In bandit-over-bandit blocks of H rounds are played by Exp3.S with one of M guesses of the number of
segments; Exp3 picks the guess. Its memory, behind the vectors: M sums of estimates, then the memory
of the block's Exp3.S; its params: horizon, 0, M.
"""

import numpy as np
from numba import njit

from .dispatch import simple_learn, simple_probabilities
from .exponential_rules import (
    exp3s_learn,
    exp3s_probabilities,
    exp3s_scales,
    soft_minimum,
)
from .memory import (
    GUESSED_HORIZON,
    GUESSED_SEGMENTS,
    HEAD,
    SCALARS,
    arm_vector,
    record_round,
)
from .streams import draw_arm

__all__ = [
    "blocks_arm",
    "blocks_learn",
    "blocks_probabilities",
    "blocks_start",
    "corral_arm",
    "corral_learn",
    "corral_probabilities",
    "corral_start",
    "log_barrier_step",
]

Array = np.ndarray

#: Places in the head of both: the base that drew (-1: none did), and the arm it drew.
CHOSEN, DRAWN = SCALARS, SCALARS + 1
#: Places in the head of bandit-over-bandit: round in the block, its losses' sum, its length, the
#: probability with which its guess was drawn.
BLOCK_ROUND, BLOCK_LOSS, BLOCK_LENGTH, GUESS_SHARE = range(SCALARS + 2, SCALARS + 6)
#: Where the rows about the bases begin in Corral's params, and the length of a row.
ROWS, ROW = 4, 5


@njit(cache=True, nogil=True, error_model="numpy")
def log_barrier_step(p: Array, costs: Array, rates: Array) -> None:
    """Online mirror descent with the log barrier, in place.

    p_i becomes 1 / (1 / p_i + rate_i (c_i - x)), with x between the least cost and the largest, or
    the first pole where that is nearer, such that they sum to 1: Newton's method in that bracket.
    """
    low, high = costs.min(), costs.max()
    for i in range(p.size):
        high = min(high, costs[i] + 1.0 / (p[i] * rates[i]))
    x = low
    for _ in range(60):
        total, slope = 0.0, 0.0
        for i in range(p.size):
            q = 1.0 / (1.0 / p[i] + rates[i] * (costs[i] - x))
            total += q
            slope += q * q * rates[i]
        if total > 1.0:
            high = x
        else:
            low = x
        if abs(total - 1.0) <= 1e-14 * p.size:
            break
        following = x - (total - 1.0) / slope
        if not low < following < high:
            following = 0.5 * (low + high)
        if following == x:
            break
        x = following
    total = 0.0
    for i in range(p.size):
        p[i] = 1.0 / (1.0 / p[i] + rates[i] * (costs[i] - x))
        total += p[i]
    for i in range(p.size):
        p[i] /= total


@njit(cache=True, nogil=True)
def corral_parts(memory: Array, n_arms: int, n_bases: int) -> tuple[Array, Array, Array, Array]:
    """Views of probabilities, thresholds, rates and the bases' laws."""
    start = HEAD + 2 * n_arms
    q = memory[start : start + n_bases]
    rho = memory[start + n_bases : start + 2 * n_bases]
    rates = memory[start + 2 * n_bases : start + 3 * n_bases]
    laws = memory[start + 3 * n_bases : start + (3 + n_arms) * n_bases]
    return q, rho, rates, laws.reshape((n_bases, n_arms))


@njit(cache=True, nogil=True)
def corral_base(params: Array, memory: Array, i: int) -> tuple[int, Array, Array]:
    """Kind, params and memory of base i."""
    row = ROWS + ROW * i
    start, length = int(params[row + 1]), int(params[row + 2])
    place, size = int(params[row + 3]), int(params[row + 4])
    return int(params[row]), params[start : start + length], memory[place : place + size]


@njit(cache=True, nogil=True, error_model="numpy")
def corral_start(params: Array, memory: Array, n_arms: int) -> None:
    """Set the master to its start; the bases' memories are fresh already."""
    n_bases = int(params[3])
    q, rho, rates, laws = corral_parts(memory, n_arms, n_bases)
    q[:] = 1.0 / n_bases
    rho[:] = 2.0 * n_bases
    rate = 1.0 / np.sqrt(memory[GUESSED_SEGMENTS] * n_arms * memory[GUESSED_HORIZON])
    rates[:] = rate if np.isnan(params[2]) else params[2]
    for i in range(n_bases):
        kind, base_params, base_memory = corral_base(params, memory, i)
        simple_probabilities(kind, base_params, base_memory, laws[i])
    memory[CHOSEN] = -1


@njit(cache=True, nogil=True, error_model="numpy")
def smoothed(q: float, T: float, n_bases: int) -> float:
    """The probability of playing a base."""
    return (1 - 1 / T) * q + 1 / (T * n_bases)


@njit(cache=True, nogil=True, error_model="numpy")
def corral_probabilities(params: Array, memory: Array, p: Array) -> None:
    n_bases = int(params[3])
    q, _, _, laws = corral_parts(memory, p.size, n_bases)
    p[:] = 0.0
    for i in range(n_bases):
        share = smoothed(q[i], memory[GUESSED_HORIZON], n_bases)
        for a in range(p.size):
            p[a] += share * laws[i, a]


@njit(cache=True, nogil=True, error_model="numpy")
def corral_arm(params: Array, memory: Array, p: Array, uniform: float) -> int:
    """Draw a base, then its arm, from one uniform number."""
    n_bases = int(params[3])
    q, _, _, laws = corral_parts(memory, p.size, n_bases)
    total = 0.0
    for i in range(n_bases):
        share = smoothed(q[i], memory[GUESSED_HORIZON], n_bases)
        if uniform < total + share or i == n_bases - 1:
            arm = draw_arm(laws[i], (uniform - total) / share)
            memory[CHOSEN], memory[DRAWN] = i, arm
            return arm
        total += share
    return 0


@njit(cache=True, nogil=True, error_model="numpy")
def corral_learn(
    params: Array, memory: Array, p: Array, arm: int, loss: float, weight: float
) -> None:
    n_arms, n_bases, T = p.size, int(params[3]), memory[GUESSED_HORIZON]
    q, rho, rates, laws = corral_parts(memory, n_arms, n_bases)
    if memory[CHOSEN] >= 0 and memory[DRAWN] == arm:
        chosen = int(memory[CHOSEN])
    else:  # a forced arm counts for the base that would have drawn it most likely
        chosen = 0
        for i in range(1, n_bases):
            if q[i] * laws[i, arm] > q[chosen] * laws[chosen, arm]:
                chosen = i
    memory[CHOSEN] = -1
    importance = weight / smoothed(q[chosen], T, n_bases)
    kind, base_params, base_memory = corral_base(params, memory, chosen)
    simple_learn(kind, base_params, base_memory, laws[chosen], arm, loss, importance)
    simple_probabilities(kind, base_params, base_memory, laws[chosen])
    costs = np.zeros(n_bases)
    costs[chosen] = loss * importance
    log_barrier_step(q, costs, rates)
    growth = np.exp(1 / np.log(max(T, 3.0)))
    for i in range(n_bases):
        rarity = 1 / smoothed(q[i], T, n_bases)
        if rarity > rho[i]:
            rho[i] = 2 * rarity
            rates[i] *= growth
    if record_round(params, memory, n_arms, arm, loss) and np.isnan(params[2]):
        rates /= np.sqrt(2.0)  # as the default rate; the bases keep what they know


@njit(cache=True, nogil=True, error_model="numpy")
def block_length(n_arms: int, T: float) -> int:
    """H = ceil(sqrt(A T)), at most T."""
    return int(min(np.ceil(np.sqrt(n_arms * T)), T))


@njit(cache=True, nogil=True, error_model="numpy")
def blocks_parts(params: Array, memory: Array, n_arms: int) -> tuple[Array, Array]:
    """Views of the estimates of the guesses, and of the block's Exp3.S."""
    start, n_guesses = HEAD + 2 * n_arms, int(params[2])
    return memory[start : start + n_guesses], memory[start + n_guesses :]


@njit(cache=True, nogil=True, error_model="numpy")
def blocks_start(params: Array, memory: Array, n_arms: int) -> None:
    """Begin a block: the next draw decides which guess it is played with."""
    _, inner = blocks_parts(params, memory, n_arms)
    memory[BLOCK_ROUND], memory[BLOCK_LOSS] = 0, 0.0
    memory[BLOCK_LENGTH] = block_length(n_arms, memory[GUESSED_HORIZON])
    memory[CHOSEN] = -1
    inner[:] = 0.0
    arm_vector(inner, 2, n_arms)[:] = 1.0 / n_arms


@njit(cache=True, nogil=True, error_model="numpy")
def guess_probabilities(params: Array, memory: Array, n_arms: int, q: Array) -> None:
    """The law of the next block's guess."""
    outer, _ = blocks_parts(params, memory, n_arms)
    n_blocks = np.ceil(memory[GUESSED_HORIZON] / memory[BLOCK_LENGTH])
    eta = np.sqrt(2 * np.log(q.size) / (n_blocks * q.size))
    soft_minimum(outer, eta, q)


@njit(cache=True, nogil=True, error_model="numpy")
def choose_guess(params: Array, memory: Array, n_arms: int, guess: int) -> None:
    """Set the rates of the block's Exp3.S."""
    _, inner = blocks_parts(params, memory, n_arms)
    H, T = memory[BLOCK_LENGTH], memory[GUESSED_HORIZON]
    segments = max(1.0, 2.0**guess * H / T)
    inner_params = np.array([H, segments, np.nan, np.nan, np.nan])
    inner[GUESSED_HORIZON], inner[GUESSED_SEGMENTS] = H, segments
    exp3s_scales(inner_params, inner, n_arms)
    memory[CHOSEN] = guess


@njit(cache=True, nogil=True, error_model="numpy")
def blocks_probabilities(params: Array, memory: Array, p: Array) -> None:
    _, inner = blocks_parts(params, memory, p.size)
    if memory[BLOCK_ROUND] == 0:
        p[:] = 1.0 / p.size  # a fresh Exp3.S is uniform, whatever the guess
    else:
        exp3s_probabilities(params, inner, p)


@njit(cache=True, nogil=True, error_model="numpy")
def blocks_arm(params: Array, memory: Array, p: Array, uniform: float) -> int:
    """Draw an arm; in a block's first round the guess is drawn from the same uniform number."""
    if memory[BLOCK_ROUND] > 0:
        return draw_arm(p, uniform)
    q = np.empty(int(params[2]))
    guess_probabilities(params, memory, p.size, q)
    total = 0.0
    for i in range(q.size):
        if uniform < total + q[i] or i == q.size - 1:
            memory[CHOSEN] = i
            return draw_arm(p, (uniform - total) / q[i])
        total += q[i]
    return 0


@njit(cache=True, nogil=True, error_model="numpy")
def blocks_learn(
    params: Array, memory: Array, p: Array, arm: int, loss: float, weight: float
) -> None:
    n_arms = p.size
    outer, inner = blocks_parts(params, memory, n_arms)
    q = np.empty(int(params[2]))
    if memory[BLOCK_ROUND] == 0:
        guess_probabilities(params, memory, n_arms, q)
        guess = int(memory[CHOSEN]) if memory[CHOSEN] >= 0 else int(np.argmax(q))
        choose_guess(params, memory, n_arms, guess)
        memory[GUESS_SHARE] = q[guess]
    inner_params = np.array([inner[GUESSED_HORIZON], 1.0, np.nan, np.nan, np.nan])
    exp3s_learn(inner_params, inner, p, arm, loss, weight)
    memory[BLOCK_ROUND] += 1
    memory[BLOCK_LOSS] += loss
    doubled = record_round(params, memory, n_arms, arm, loss)
    if memory[BLOCK_ROUND] >= memory[BLOCK_LENGTH] or doubled:
        mean = memory[BLOCK_LOSS] / memory[BLOCK_ROUND]
        outer[int(memory[CHOSEN])] += weight * mean / memory[GUESS_SHARE]
        blocks_start(params, memory, n_arms)
