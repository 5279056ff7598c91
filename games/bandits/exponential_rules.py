"""Steps of the learners with exponential weights, compiled: Exp3, Exp3-IX, Exp3.P, Exp3.S, Exp3++.

Vector 2 of the memory holds each arm's sum of estimated losses (Exp3.P: gains; Exp3.S: weights).
Weights are computed in logarithms, the largest subtracted, so that none underflows.
"""

import numpy as np
from numba import njit

from .memory import (
    GUESSED_HORIZON,
    GUESSED_SEGMENTS,
    HEAD,
    ROUND,
    SCALARS,
    TINY,
    arm_vector,
    record_round,
)

__all__ = [
    "exp3_learn",
    "exp3_probabilities",
    "exp3_scales",
    "exp3ix_learn",
    "exp3ix_scales",
    "exp3p_learn",
    "exp3p_probabilities",
    "exp3p_scales",
    "exp3s_learn",
    "exp3s_probabilities",
    "exp3s_scales",
    "exp3xx_learn",
    "exp3xx_probabilities",
]

Array = np.ndarray

#: Places in the head: learning rate, exploration, and a third rate (beta of .P, alpha of .S).
ETA, GAMMA, THIRD = range(SCALARS, SCALARS + 3)


@njit(cache=True, nogil=True, error_model="numpy")
def soft_minimum(estimates: Array, eta: float, p: Array) -> None:
    """p = softmax(-eta estimates)."""
    least = estimates.min()
    total = 0.0
    for a in range(p.size):
        p[a] = np.exp(-eta * (estimates[a] - least))
        total += p[a]
    for a in range(p.size):
        p[a] /= total


@njit(cache=True, nogil=True, error_model="numpy")
def exp3_scales(params: Array, memory: Array, n_arms: int) -> None:
    T = memory[GUESSED_HORIZON]
    eta = params[2]
    memory[ETA] = np.sqrt(2 * np.log(n_arms) / (T * n_arms)) if np.isnan(eta) else eta


@njit(cache=True, nogil=True, error_model="numpy")
def exp3ix_scales(params: Array, memory: Array, n_arms: int) -> None:
    exp3_scales(params, memory, n_arms)
    memory[GAMMA] = memory[ETA] / 2 if np.isnan(params[3]) else params[3]


@njit(cache=True, nogil=True, error_model="numpy")
def exp3_probabilities(params: Array, memory: Array, p: Array) -> None:
    soft_minimum(arm_vector(memory, 2, p.size), memory[ETA], p)


@njit(cache=True, nogil=True, error_model="numpy")
def exp3_learn(
    params: Array, memory: Array, p: Array, arm: int, loss: float, weight: float
) -> None:
    memory[HEAD + 2 * p.size + arm] += weight * loss / max(p[arm], TINY)
    if record_round(params, memory, p.size, arm, loss):
        exp3_scales(params, memory, p.size)


@njit(cache=True, nogil=True, error_model="numpy")
def exp3ix_learn(
    params: Array, memory: Array, p: Array, arm: int, loss: float, weight: float
) -> None:
    memory[HEAD + 2 * p.size + arm] += weight * loss / max(p[arm] + memory[GAMMA], TINY)
    if record_round(params, memory, p.size, arm, loss):
        exp3ix_scales(params, memory, p.size)


@njit(cache=True, nogil=True, error_model="numpy")
def exp3p_scales(params: Array, memory: Array, n_arms: int) -> None:
    T, delta = memory[GUESSED_HORIZON], params[2]
    memory[ETA] = 0.95 * np.sqrt(np.log(n_arms) / (n_arms * T))
    memory[GAMMA] = min(1.0, 1.05 * np.sqrt(n_arms * np.log(n_arms) / T))
    memory[THIRD] = np.sqrt(np.log(n_arms / delta) / (n_arms * T))


@njit(cache=True, nogil=True, error_model="numpy")
def exp3p_probabilities(params: Array, memory: Array, p: Array) -> None:
    soft_minimum(arm_vector(memory, 2, p.size), -memory[ETA], p)
    gamma = memory[GAMMA]
    for a in range(p.size):
        p[a] = (1 - gamma) * p[a] + gamma / p.size


@njit(cache=True, nogil=True, error_model="numpy")
def exp3p_learn(
    params: Array, memory: Array, p: Array, arm: int, loss: float, weight: float
) -> None:
    gains = arm_vector(memory, 2, p.size)
    for a in range(p.size):
        gains[a] += memory[THIRD] / max(p[a], TINY)
    gains[arm] += weight * (1 - loss) / max(p[arm], TINY)
    if record_round(params, memory, p.size, arm, loss):
        exp3p_scales(params, memory, p.size)


@njit(cache=True, nogil=True, error_model="numpy")
def exp3s_scales(params: Array, memory: Array, n_arms: int) -> None:
    T, S = memory[GUESSED_HORIZON], memory[GUESSED_SEGMENTS]
    eta, gamma, alpha = params[2], params[3], params[4]
    rate = np.sqrt(S * np.log(n_arms * T) / (T * n_arms))
    memory[ETA] = rate if np.isnan(eta) else eta
    memory[GAMMA] = min(1.0, np.sqrt(S * n_arms / T)) if np.isnan(gamma) else gamma
    memory[THIRD] = 1 / T if np.isnan(alpha) else alpha


@njit(cache=True, nogil=True, error_model="numpy")
def exp3s_probabilities(params: Array, memory: Array, p: Array) -> None:
    w = arm_vector(memory, 2, p.size)
    gamma = memory[GAMMA]
    for a in range(p.size):
        p[a] = (1 - gamma) * w[a] + gamma / p.size


@njit(cache=True, nogil=True, error_model="numpy")
def exp3s_learn(
    params: Array, memory: Array, p: Array, arm: int, loss: float, weight: float
) -> None:
    w, alpha = arm_vector(memory, 2, p.size), memory[THIRD]
    w[arm] *= np.exp(-memory[ETA] * weight * loss / max(p[arm], TINY))
    total = w.sum()
    if total > 0.0:
        for a in range(p.size):
            w[a] = (1 - alpha) * w[a] / total + alpha / p.size
    else:  # one arm held all the weight and lost it: alpha is 0, or there is one arm
        w[:] = 1.0 / p.size
    if record_round(params, memory, p.size, arm, loss):
        exp3s_scales(params, memory, p.size)


@njit(cache=True, nogil=True, error_model="numpy")
def exp3xx_probabilities(params: Array, memory: Array, p: Array) -> None:
    """Exp3++: exploration follows the lower bounds of the gaps."""
    n_arms = p.size
    counts, sums = arm_vector(memory, 0, n_arms), arm_vector(memory, 1, n_arms)
    alpha, beta = params[2], params[3]
    t = memory[ROUND] + 1
    eta = 0.5 * np.sqrt(np.log(n_arms) / (t * n_arms))
    soft_minimum(arm_vector(memory, 2, n_arms), eta, p)
    log_term = alpha * np.log(t) + np.log(n_arms)
    best_upper = 1.0
    for a in range(n_arms):
        if counts[a] > 0:
            radius = np.sqrt(log_term / (2 * counts[a]))
            best_upper = min(best_upper, sums[a] / counts[a] + radius)
    total = 0.0
    explore = arm_vector(memory, 3, n_arms)
    for a in range(n_arms):
        explore[a] = min(0.5 / n_arms, eta)
        if counts[a] > 0:
            lower = max(0.0, sums[a] / counts[a] - np.sqrt(log_term / (2 * counts[a])))
            gap = max(0.0, lower - best_upper)
            if gap > 0.0:
                # A gap so small that t gap^2 < 1 would make the logarithm negative.
                square = t * gap * gap
                explore[a] = min(explore[a], beta * max(np.log(square), 0.0) / square)
        total += explore[a]
    for a in range(n_arms):
        p[a] = (1 - total) * p[a] + explore[a]


@njit(cache=True, nogil=True, error_model="numpy")
def exp3xx_learn(
    params: Array, memory: Array, p: Array, arm: int, loss: float, weight: float
) -> None:
    memory[HEAD + 2 * p.size + arm] += weight * loss / max(p[arm], TINY)
    record_round(params, memory, p.size, arm, loss)
