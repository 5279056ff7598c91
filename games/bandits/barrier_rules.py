"""Follow the regularised leader with Tsallis entropy or a log barrier, compiled.

Tsallis (power 1/2): p_a = 4 / (eta (L_a - x))^2; log barrier: p_a = 1 / (eta (L_a - x)); x makes
them sum to 1. The sum is convex and increasing in x below min L, so Newton's method from the right
of the root falls monotonically to it; from the left it may jump past the pole. The least L is
subtracted first: x is then found to all digits, however large L is.
"""

import numpy as np
from numba import njit

from .memory import GUESSED_HORIZON, ROUND, SCALARS, TINY, arm_vector, record_round

__all__ = [
    "barrier_learn",
    "barrier_probabilities",
    "barrier_scales",
    "log_barrier_weights",
    "tsallis_learn",
    "tsallis_probabilities",
    "tsallis_weights",
]

Array = np.ndarray

#: Places in the head: learning rate, where Newton's method starts, and where it ended. The start
#: moves only when a loss comes in, so that asking for the law twice gives the same bits.
ETA, START, ROOT = range(SCALARS, SCALARS + 3)
#: Steps after which Newton's method is over in any case; four to eight are usual.
MOST_STEPS = 100
CLOSE = 1e-14


@njit(cache=True, nogil=True, error_model="numpy")
def tsallis_weights(estimates: Array, eta: float, start: float, p: Array) -> float:
    """Write p, and return x minus the least estimate; `start` is where the search begins."""
    least = estimates.min()
    right = -2.0 / eta  # here the largest weight alone is 1
    x = min(start, right)
    for _ in range(MOST_STEPS):
        total, slope = 0.0, 0.0
        for a in range(p.size):
            inverse = 1.0 / (eta * (estimates[a] - least - x))
            p[a] = 4 * inverse * inverse
            total += p[a]
            slope += p[a] * inverse
        step = (total - 1.0) / (2 * eta * slope)
        if abs(total - 1.0) <= CLOSE * p.size:
            break
        following = min(x - step, right)
        if following == x:
            break
        x = following
    for a in range(p.size):
        p[a] /= total
    return x


@njit(cache=True, nogil=True, error_model="numpy")
def log_barrier_weights(estimates: Array, eta: float, start: float, p: Array) -> float:
    """Write p, and return x minus the least estimate; `start` is where the search begins."""
    least = estimates.min()
    right = -1.0 / eta
    x = min(start, right)
    for _ in range(MOST_STEPS):
        total, slope = 0.0, 0.0
        for a in range(p.size):
            p[a] = 1.0 / (eta * (estimates[a] - least - x))
            total += p[a]
            slope += p[a] * p[a]
        if abs(total - 1.0) <= CLOSE * p.size:
            break
        following = min(x - (total - 1.0) / (eta * slope), right)
        if following == x:
            break
        x = following
    for a in range(p.size):
        p[a] /= total
    return x


@njit(cache=True, nogil=True, error_model="numpy")
def tsallis_probabilities(params: Array, memory: Array, p: Array) -> None:
    """params[2] says whether estimates have reduced variance (RV) or are plain weights (IW)."""
    eta = (4.0 if params[2] else 2.0) / np.sqrt(memory[ROUND] + 1)
    memory[ETA] = eta
    memory[ROOT] = tsallis_weights(arm_vector(memory, 2, p.size), eta, memory[START], p)


@njit(cache=True, nogil=True, error_model="numpy")
def tsallis_learn(
    params: Array, memory: Array, p: Array, arm: int, loss: float, weight: float
) -> None:
    estimates = arm_vector(memory, 2, p.size)
    if params[2]:
        square = memory[ETA] * memory[ETA]
        for a in range(p.size):
            if p[a] >= square:
                estimates[a] += 0.5 * weight
        base = 0.5 if p[arm] >= square else 0.0
        estimates[arm] += weight * (loss - base) / max(p[arm], TINY)
    else:
        estimates[arm] += weight * loss / max(p[arm], TINY)
    memory[START] = memory[ROOT]
    record_round(params, memory, p.size, arm, loss)


@njit(cache=True, nogil=True, error_model="numpy")
def barrier_scales(params: Array, memory: Array, n_arms: int) -> None:
    T, eta = memory[GUESSED_HORIZON], params[2]
    memory[ETA] = np.sqrt(n_arms * np.log(max(T, 2.0)) / T) if np.isnan(eta) else eta


@njit(cache=True, nogil=True, error_model="numpy")
def barrier_probabilities(params: Array, memory: Array, p: Array) -> None:
    """params[3] says whether last seen losses predict the next ones."""
    estimates = arm_vector(memory, 2, p.size)
    if params[3]:
        estimates = estimates + arm_vector(memory, 3, p.size)
    memory[ROOT] = log_barrier_weights(estimates, memory[ETA], memory[START], p)


@njit(cache=True, nogil=True, error_model="numpy")
def barrier_learn(
    params: Array, memory: Array, p: Array, arm: int, loss: float, weight: float
) -> None:
    estimates, v = arm_vector(memory, 2, p.size), arm_vector(memory, 3, p.size)
    if params[3]:
        for a in range(p.size):
            estimates[a] += weight * v[a]
        estimates[arm] += weight * (loss - v[arm]) / max(p[arm], TINY)
        v[arm] = loss
    else:
        estimates[arm] += weight * loss / max(p[arm], TINY)
    memory[START] = memory[ROOT]
    if record_round(params, memory, p.size, arm, loss):
        barrier_scales(params, memory, p.size)
