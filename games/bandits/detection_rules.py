"""A base learner with a change detector, compiled: forced exploration, a test, a restart.

For an arm's n losses since the latest restart, with means mu before a split s, nu behind it, and m
of all, the Bernoulli likelihood ratio test sees a change where

    max_s  s kl(mu, m) + (n - s) kl(nu, m)  >  ln(n^(3/2) / delta).

Splits are tested at a geometric choice: level j keeps the sums at the newest `N_SPLITS` multiples
of 2^j, so that a split s is tested to n - s within an eighth. Fewer splits never raise more alarms.

The memory, behind the counts and sums of all rounds: each arm's samples and sum since the restart,
its kept sums, the base's memory, and that memory as it was at the start.
"""

import numpy as np
from numba import njit

from .dispatch import simple_learn, simple_probabilities
from .memory import CHANGES, GUESSED_HORIZON, HEAD, ROUND, SCALARS, arm_vector, record_round

__all__ = [
    "EXPLORATION",
    "LATEST",
    "SUMS_PER_ARM",
    "detection_learn",
    "detection_probabilities",
    "detection_scales",
    "shows_change",
]

Array = np.ndarray

#: Places in the head: exploration, log of 1 / delta, round of the latest restart.
EXPLORATION, LOG_ERROR, LATEST = range(SCALARS, SCALARS + 3)
#: Places in the params, after horizon and segments; behind them, the base's own params.
DELTA, SHARE, BASE_KIND, BASE_SIZE, BASE_PARAMS = range(2, 7)
#: 40 levels keep splits of 2^43 samples.
N_LEVELS, N_SPLITS = 40, 16
SUMS_PER_ARM = N_LEVELS * N_SPLITS


@njit(cache=True, nogil=True, error_model="numpy")
def bernoulli_divergence(p: float, q: float) -> float:
    """kl(p, q), for q in (0, 1)."""
    total = 0.0
    if p > 0.0:
        total += p * np.log(p / q)
    if p < 1.0:
        total += (1 - p) * np.log((1 - p) / (1 - q))
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def shows_change(kept: Array, n: int, total: float, threshold: float) -> bool:
    """Whether the likelihood ratio of some kept split passes the threshold."""
    mean = total / n
    spread = mean * (1 - mean)
    if spread <= 0.0:
        return False
    for level in range(N_LEVELS):
        newest = n >> level
        if newest == 0:
            return False
        # Even multiples of 2^level are odd ones of a level above, which keeps them too.
        for q in range(max(1, newest - N_SPLITS + 1) | 1, newest + 1, 2):
            s = q << level
            if s == n:
                continue
            before = kept[level * N_SPLITS + q % N_SPLITS]
            mu = min(max(before / s, 0.0), 1.0)
            nu = min(max((total - before) / (n - s), 0.0), 1.0)
            gap = mu - nu
            # kl(p, q) <= (p - q)^2 / (q (1 - q)) spares the logarithms where nothing happened.
            if s * (n - s) * gap * gap > threshold * spread * n:
                ratio = s * bernoulli_divergence(mu, mean)
                ratio += (n - s) * bernoulli_divergence(nu, mean)
                if ratio > threshold:
                    return True
    return False


@njit(cache=True, nogil=True, error_model="numpy")
def test_arm(memory: Array, n_arms: int, arm: int, loss: float) -> bool:
    """Add a loss to the arm's samples; True where they show a change."""
    counts, sums = arm_vector(memory, 2, n_arms), arm_vector(memory, 3, n_arms)
    start = HEAD + 4 * n_arms + arm * SUMS_PER_ARM
    kept = memory[start : start + SUMS_PER_ARM]
    counts[arm] += 1
    sums[arm] += loss
    n = int(counts[arm])
    for level in range(N_LEVELS):
        kept[level * N_SPLITS + (n >> level) % N_SPLITS] = sums[arm]
        if (n >> level) % 2:
            break
    return shows_change(kept, n, sums[arm], 1.5 * np.log(n) + memory[LOG_ERROR])


@njit(cache=True, nogil=True, error_model="numpy")
def base_parts(params: Array, memory: Array, n_arms: int) -> tuple[Array, Array, Array]:
    """The base's params, its memory, and its memory at the start."""
    size = int(params[BASE_SIZE])
    start = HEAD + (4 + SUMS_PER_ARM) * n_arms
    middle, end = start + size, start + 2 * size
    return params[BASE_PARAMS:], memory[start:middle], memory[middle:end]


@njit(cache=True, nogil=True, error_model="numpy")
def detection_scales(params: Array, memory: Array, n_arms: int) -> None:
    """The rates of the k-th stretch between restarts, k = 1 + restarts."""
    T = max(memory[GUESSED_HORIZON], 2.0)
    rate = np.sqrt(memory[CHANGES] * n_arms * np.log(T) / T)
    memory[EXPLORATION] = min(0.5, rate) if np.isnan(params[SHARE]) else params[SHARE]
    memory[LOG_ERROR] = 0.5 * np.log(T) if np.isnan(params[DELTA]) else -np.log(params[DELTA])


@njit(cache=True, nogil=True, error_model="numpy")
def detection_probabilities(params: Array, memory: Array, p: Array) -> None:
    base_params, base, _ = base_parts(params, memory, p.size)
    simple_probabilities(int(params[BASE_KIND]), base_params, base, p)
    eps = memory[EXPLORATION]
    for a in range(p.size):
        p[a] = (1 - eps) * p[a] + eps / p.size


@njit(cache=True, nogil=True, error_model="numpy")
def detection_learn(
    params: Array, memory: Array, p: Array, arm: int, loss: float, weight: float
) -> None:
    """The base learns by the law that drew, exploration included: its estimates stay unbiased."""
    base_params, base, fresh = base_parts(params, memory, p.size)
    simple_learn(int(params[BASE_KIND]), base_params, base, p, arm, loss, weight)
    doubled = record_round(params, memory, p.size, arm, loss)
    changed = test_arm(memory, p.size, arm, loss)
    if changed:
        memory[CHANGES] += 1
        memory[LATEST] = memory[ROUND]
        arm_vector(memory, 2, p.size)[:] = 0.0
        arm_vector(memory, 3, p.size)[:] = 0.0
        base[:] = fresh
    if doubled or changed:
        detection_scales(params, memory, p.size)
