"""Steps of the learners that follow the arm with the least known loss, compiled.

Track-and-explore plays the arm of least last seen loss with probability 1 - eps, any arm with eps.
Restart-on-detect does so too, and forgets everything when it sees a change.
"""

import numpy as np
from numba import njit

from .memory import (
    CHANGES,
    GUESSED_HORIZON,
    GUESSED_SEGMENTS,
    HEAD,
    SCALARS,
    SEEN,
    arm_vector,
    first_unseen,
    lowest,
    record_round,
)

__all__ = [
    "EXPLORATION",
    "restart_learn",
    "restart_probabilities",
    "restart_scales",
    "restart_see",
    "track_learn",
    "track_probabilities",
    "track_scales",
    "track_see",
]

Array = np.ndarray

#: Places in the head: exploration, number of restarts.
EXPLORATION, RESTARTS = SCALARS, SCALARS + 1
#: Places in the params of restart-on-detect: whether to compare means, tolerance, window.
MEANS, TOLERANCE, WINDOW = 2, 3, 4


@njit(cache=True, nogil=True, error_model="numpy")
def mix(eps: float, favourite: int, p: Array) -> None:
    """The favourite with probability 1 - eps, else any arm."""
    p[:] = eps / p.size
    p[favourite] += 1 - eps


@njit(cache=True, nogil=True, error_model="numpy")
def track_scales(params: Array, memory: Array, n_arms: int) -> None:
    rate = np.sqrt(memory[GUESSED_SEGMENTS] * n_arms / memory[GUESSED_HORIZON])
    memory[EXPLORATION] = min(1.0, rate) if np.isnan(params[2]) else params[2]


@njit(cache=True, nogil=True, error_model="numpy")
def track_probabilities(params: Array, memory: Array, p: Array) -> None:
    v = arm_vector(memory, 2, p.size)
    if memory[SEEN] < p.size:
        mix(0.0, first_unseen(v), p)
    else:
        mix(memory[EXPLORATION], lowest(v), p)


@njit(cache=True, nogil=True, error_model="numpy")
def track_see(params: Array, memory: Array, n_arms: int, arm: int, loss: float) -> None:
    """Know an arm's loss from now on."""
    v = arm_vector(memory, 2, n_arms)
    if np.isnan(v[arm]):
        memory[SEEN] += 1
    elif v[arm] != loss:
        memory[CHANGES] += 1
    v[arm] = loss


@njit(cache=True, nogil=True, error_model="numpy")
def track_learn(
    params: Array, memory: Array, p: Array, arm: int, loss: float, weight: float
) -> None:
    track_see(params, memory, p.size, arm, loss)
    if record_round(params, memory, p.size, arm, loss):
        track_scales(params, memory, p.size)


@njit(cache=True, nogil=True, error_model="numpy")
def restart_scales(params: Array, memory: Array, n_arms: int) -> None:
    rate = np.sqrt((memory[RESTARTS] + 1) * n_arms / memory[GUESSED_HORIZON])
    memory[EXPLORATION] = min(0.5, rate)


@njit(cache=True, nogil=True, error_model="numpy")
def restart_probabilities(params: Array, memory: Array, p: Array) -> None:
    """Vector 2 holds what is known of each arm: its last loss, or its mean since the restart."""
    known = arm_vector(memory, 2, p.size)
    if memory[SEEN] < p.size:
        mix(0.0, first_unseen(known), p)
    else:
        mix(memory[EXPLORATION], lowest(known), p)


@njit(cache=True, nogil=True, error_model="numpy")
def means_differ(params: Array, memory: Array, n_arms: int, arm: int, loss: float) -> bool:
    """Add a loss to the arm's samples; True if the newest differ from those before.

    Vectors 3 to 5: number and sum of the samples since the restart, sum of the newest ones; these
    stand in a ring for each arm behind the vectors.
    """
    counts, sums = arm_vector(memory, 3, n_arms), arm_vector(memory, 4, n_arms)
    newest = arm_vector(memory, 5, n_arms)
    window = int(params[WINDOW])
    place = HEAD + 6 * n_arms + arm * window + int(counts[arm]) % window
    if counts[arm] >= window:
        newest[arm] -= memory[place]
    memory[place] = loss
    newest[arm] += loss
    counts[arm] += 1
    sums[arm] += loss
    arm_vector(memory, 2, n_arms)[arm] = sums[arm] / counts[arm]
    older = counts[arm] - window
    if older < 1:
        return False
    gap = abs(newest[arm] / window - (sums[arm] - newest[arm]) / older)
    log_term = 2 * np.log(memory[GUESSED_HORIZON])
    return gap > np.sqrt(log_term / window) + np.sqrt(log_term / older)


@njit(cache=True, nogil=True, error_model="numpy")
def restart_see(params: Array, memory: Array, n_arms: int, arm: int, loss: float) -> None:
    """Know an arm's loss from now on; forget everything else where it shows a change."""
    known = arm_vector(memory, 2, n_arms)
    fresh = np.isnan(known[arm])
    if fresh:
        memory[SEEN] += 1
    if params[MEANS]:
        changed = means_differ(params, memory, n_arms, arm, loss)
    else:
        changed = not fresh and abs(loss - known[arm]) > params[TOLERANCE]
        known[arm] = loss
    if changed:
        memory[CHANGES] += 1
        memory[RESTARTS] += 1
        memory[SEEN] = 0
        known[:] = np.nan
        if params[MEANS]:
            for k in range(3, 6):
                arm_vector(memory, k, n_arms)[:] = 0.0
        else:
            known[arm] = loss
            memory[SEEN] = 1
        restart_scales(params, memory, n_arms)


@njit(cache=True, nogil=True, error_model="numpy")
def restart_learn(
    params: Array, memory: Array, p: Array, arm: int, loss: float, weight: float
) -> None:
    restart_see(params, memory, p.size, arm, loss)
    if record_round(params, memory, p.size, arm, loss):
        restart_scales(params, memory, p.size)
