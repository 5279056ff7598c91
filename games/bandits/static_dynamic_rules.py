"""The Blackwell static-dynamic learner's step, compiled.

Vectors of the memory: v (last seen losses) and R (estimated static regret against each arm); R_D is
the estimated dynamic regret. With m = argmin v and the scales s_S = sqrt(A T), s_D = sqrt(S A T),

    lambda_a = [R_a]+ / s_S^2,    lambda_D = min([R_D]+ / s_D, cap) / s_D,
    f_D = lambda_D / (sum_a lambda_a + lambda_D),    gamma = e0 + (e1 - e0) f_D,
    p = gamma / A + (1 - gamma) ((1 - f_D) lambda / sum(lambda) + f_D e_m).

The estimates use l_hat(a) = v(a) + 1[a = a_t] (l(a) - v(a)) / p(a): unbiased, and without variance
for an arm that hasn't changed since it was last seen.
"""

import numpy as np
from numba import njit

from .memory import (
    CHANGES,
    GUESSED_HORIZON,
    GUESSED_SEGMENTS,
    HEAD,
    ROUND,
    SCALARS,
    SEEN,
    TINY,
    arm_vector,
    first_unseen,
    lowest,
    record_round,
)

__all__ = [
    "BEST",
    "BEST_SINCE",
    "DYNAMIC_REGRET",
    "DYNAMIC_WEIGHT",
    "EXPLORATION",
    "blackwell_learn",
    "blackwell_observe",
    "blackwell_probabilities",
    "blackwell_scales",
]

Array = np.ndarray

#: Places in the head: s_S, s_D, e0, e1, R_D, f_D and gamma; then m and the round it became so.
STATIC_SCALE, DYNAMIC_SCALE, LEAST, MOST, DYNAMIC_REGRET, DYNAMIC_WEIGHT, EXPLORATION = range(
    SCALARS, SCALARS + 7
)
BEST, BEST_SINCE = SCALARS + 7, SCALARS + 8
#: Places in `params`, after horizon and segments.
CAP, C0, C1, EXPONENTIAL, TOLERANCE = range(2, 7)


@njit(cache=True, nogil=True, error_model="numpy")
def blackwell_scales(params: Array, memory: Array, n_arms: int) -> None:
    """Recompute what depends on the guesses of horizon and segments."""
    T, S = memory[GUESSED_HORIZON], memory[GUESSED_SEGMENTS]
    memory[STATIC_SCALE] = np.sqrt(n_arms * T)
    memory[DYNAMIC_SCALE] = np.sqrt(S * n_arms * T)
    memory[LEAST] = min(0.5, params[C0] * np.sqrt(n_arms / T))
    memory[MOST] = min(0.5, params[C1] * np.sqrt(S * n_arms / T))


@njit(cache=True, nogil=True, error_model="numpy")
def blackwell_probabilities(params: Array, memory: Array, p: Array) -> None:
    """The law of the next draw; f_D and gamma are kept in the memory."""
    n_arms = p.size
    R = HEAD + 3 * n_arms  # where the vector begins: a view costs more
    if memory[SEEN] < n_arms:
        p[:] = 0.0
        p[first_unseen(arm_vector(memory, 2, n_arms))] = 1.0
        memory[DYNAMIC_WEIGHT], memory[EXPLORATION] = 1.0, 0.0
        return
    s_S, s_D = memory[STATIC_SCALE], memory[DYNAMIC_SCALE]
    total = 0.0
    if params[EXPONENTIAL] == 0:
        for a in range(n_arms):
            p[a] = max(memory[R + a], 0.0)
            total += p[a]
        lambda_S = total / (s_S * s_S)
    else:
        # The sum of l_hat(a) is that of the losses minus R_a: weights need only max R - R_a.
        eta = np.sqrt(np.log(n_arms + 1.0)) / s_S
        largest = memory[R : R + n_arms].max()
        for a in range(n_arms):
            p[a] = np.exp(-eta * (largest - memory[R + a]))
            total += p[a]
        lambda_S = max(largest, 0.0) / (s_S * s_S)
    lambda_D = min(max(memory[DYNAMIC_REGRET] / s_D, 0.0), params[CAP]) / s_D
    f_D = 1.0 if lambda_S + lambda_D == 0 else lambda_D / (lambda_S + lambda_D)
    gamma = memory[LEAST] + (memory[MOST] - memory[LEAST]) * f_D
    memory[DYNAMIC_WEIGHT], memory[EXPLORATION] = f_D, gamma
    share = (1 - gamma) * (1 - f_D) / total if total > 0 else 0.0
    for a in range(n_arms):
        p[a] = gamma / n_arms + share * p[a]
    p[int(memory[BEST])] += (1 - gamma) * f_D


@njit(cache=True, nogil=True, error_model="numpy")
def blackwell_see(params: Array, memory: Array, n_arms: int, arm: int, loss: float) -> bool:
    """Know an arm's loss from now on; True where the guess of the segments was doubled."""
    v = HEAD + 2 * n_arms
    before, doubled = memory[v + arm], False
    memory[v + arm] = loss
    if np.isnan(before):
        memory[SEEN] += 1
    elif abs(loss - before) > params[TOLERANCE]:
        memory[CHANGES] += 1
        S = memory[GUESSED_SEGMENTS]
        if params[1] == 0 and memory[CHANGES] > 2 * S and S * n_arms < memory[GUESSED_HORIZON]:
            memory[GUESSED_SEGMENTS] = 2 * S
            doubled = True
    if memory[SEEN] < n_arms or loss == before:
        return doubled
    m = int(memory[BEST])
    best = m
    if arm == m or np.isnan(before):
        best = lowest(memory[v : v + n_arms])
    elif loss < memory[v + m] or (loss == memory[v + m] and arm < m):
        best = arm
    if best != m or np.isnan(before):
        memory[BEST], memory[BEST_SINCE] = best, memory[ROUND]
    return doubled


@njit(cache=True, nogil=True, error_model="numpy")
def blackwell_observe(params: Array, memory: Array, n_arms: int, arm: int, loss: float) -> None:
    """Take the loss of an arm that wasn't played: no round, no regret."""
    if blackwell_see(params, memory, n_arms, arm, loss):
        blackwell_scales(params, memory, n_arms)


@njit(cache=True, nogil=True, error_model="numpy")
def blackwell_learn(
    params: Array, memory: Array, p: Array, arm: int, loss: float, weight: float
) -> None:
    """Take a loss that was drawn with probabilities p; scales change only for later rounds."""
    n_arms = p.size
    v, R = HEAD + 2 * n_arms, HEAD + 3 * n_arms
    doubled = record_round(params, memory, n_arms, arm, loss)
    if memory[SEEN] == n_arms:
        m, share = int(memory[BEST]), max(p[arm], TINY)
        if arm != m:
            memory[DYNAMIC_REGRET] += weight * (loss - memory[v + m])
            if loss < memory[v + m]:
                memory[DYNAMIC_REGRET] += weight * (memory[v + m] - loss) / share
        surprise = loss - memory[v + arm]
        for a in range(n_arms):
            memory[R + a] += weight * (loss - memory[v + a])
        memory[R + arm] -= weight * surprise / share
    doubled |= blackwell_see(params, memory, n_arms, arm, loss)
    if doubled:
        blackwell_scales(params, memory, n_arms)
