"""Which compiled steps belong to which kind of learner.

The tables serve loops that are compiled for one kind; the chains of comparisons serve the learners
over learners, whose bases are of any kind, known only when they run.
"""

import numpy as np
from numba import njit

from .barrier_rules import (
    barrier_learn,
    barrier_probabilities,
    barrier_scales,
    tsallis_learn,
    tsallis_probabilities,
)
from .exponential_rules import (
    exp3_learn,
    exp3_probabilities,
    exp3_scales,
    exp3ix_learn,
    exp3ix_scales,
    exp3p_learn,
    exp3p_probabilities,
    exp3p_scales,
    exp3s_learn,
    exp3s_probabilities,
    exp3s_scales,
    exp3xx_learn,
    exp3xx_probabilities,
)
from .index_rules import (
    discounted_learn,
    discounted_probabilities,
    discounted_scales,
    greedy_probabilities,
    thompson_learn,
    ucb_learn,
    ucb_probabilities,
    window_learn,
    window_probabilities,
)
from .static_dynamic_rules import blackwell_learn, blackwell_probabilities, blackwell_scales
from .tracking_rules import (
    restart_learn,
    restart_probabilities,
    restart_scales,
    track_learn,
    track_probabilities,
    track_scales,
)

__all__ = [
    "BARRIER",
    "BLACKWELL",
    "BLOCKS",
    "CORRAL",
    "DETECTION",
    "DISCOUNTED",
    "EXP3",
    "EXP3IX",
    "EXP3P",
    "EXP3S",
    "EXP3XX",
    "GREEDY",
    "LEARN",
    "PROBABILITIES",
    "RESTART",
    "SCALES",
    "THOMPSON",
    "TRACK",
    "TSALLIS",
    "UCB",
    "WINDOW",
    "simple_learn",
    "simple_probabilities",
]

Array = np.ndarray


#: The number of a kind of learner; from CORRAL on they are learners over learners.
BLACKWELL, TRACK, EXP3, EXP3IX, EXP3P, EXP3S, EXP3XX, TSALLIS, BARRIER = range(1, 10)
RESTART, UCB, WINDOW, DISCOUNTED, GREEDY, THOMPSON, CORRAL, BLOCKS, DETECTION = range(10, 19)

#: Rates that depend on the guessed horizon; kinds that aren't listed have none.
SCALES = {
    BLACKWELL: blackwell_scales,
    TRACK: track_scales,
    EXP3: exp3_scales,
    EXP3IX: exp3ix_scales,
    EXP3P: exp3p_scales,
    EXP3S: exp3s_scales,
    BARRIER: barrier_scales,
    RESTART: restart_scales,
    DISCOUNTED: discounted_scales,
}
#: The law of the next draw.
PROBABILITIES = {
    BLACKWELL: blackwell_probabilities,
    TRACK: track_probabilities,
    EXP3: exp3_probabilities,
    EXP3IX: exp3_probabilities,
    EXP3P: exp3p_probabilities,
    EXP3S: exp3s_probabilities,
    EXP3XX: exp3xx_probabilities,
    TSALLIS: tsallis_probabilities,
    BARRIER: barrier_probabilities,
    RESTART: restart_probabilities,
    UCB: ucb_probabilities,
    WINDOW: window_probabilities,
    DISCOUNTED: discounted_probabilities,
    GREEDY: greedy_probabilities,
}
#: What a loss teaches.
LEARN = {
    BLACKWELL: blackwell_learn,
    TRACK: track_learn,
    EXP3: exp3_learn,
    EXP3IX: exp3ix_learn,
    EXP3P: exp3p_learn,
    EXP3S: exp3s_learn,
    EXP3XX: exp3xx_learn,
    TSALLIS: tsallis_learn,
    BARRIER: barrier_learn,
    RESTART: restart_learn,
    UCB: ucb_learn,
    WINDOW: window_learn,
    DISCOUNTED: discounted_learn,
    GREEDY: ucb_learn,
    THOMPSON: thompson_learn,
}


@njit(cache=True, nogil=True)
def simple_probabilities(kind: int, params: Array, memory: Array, p: Array) -> None:
    """Write the law of the next draw."""
    if kind == BLACKWELL:
        blackwell_probabilities(params, memory, p)
    elif kind == TRACK:
        track_probabilities(params, memory, p)
    elif kind in (EXP3, EXP3IX):
        exp3_probabilities(params, memory, p)
    elif kind == EXP3P:
        exp3p_probabilities(params, memory, p)
    elif kind == EXP3S:
        exp3s_probabilities(params, memory, p)
    elif kind == EXP3XX:
        exp3xx_probabilities(params, memory, p)
    elif kind == TSALLIS:
        tsallis_probabilities(params, memory, p)
    elif kind == BARRIER:
        barrier_probabilities(params, memory, p)
    elif kind == RESTART:
        restart_probabilities(params, memory, p)
    elif kind == UCB:
        ucb_probabilities(params, memory, p)
    elif kind == WINDOW:
        window_probabilities(params, memory, p)
    elif kind == DISCOUNTED:
        discounted_probabilities(params, memory, p)
    elif kind == GREEDY:
        greedy_probabilities(params, memory, p)


@njit(cache=True, nogil=True)
def simple_learn(
    kind: int, params: Array, memory: Array, p: Array, arm: int, loss: float, weight: float
) -> None:
    """Take the loss of an arm that was drawn with probabilities p."""
    if kind == BLACKWELL:
        blackwell_learn(params, memory, p, arm, loss, weight)
    elif kind == TRACK:
        track_learn(params, memory, p, arm, loss, weight)
    elif kind == EXP3:
        exp3_learn(params, memory, p, arm, loss, weight)
    elif kind == EXP3IX:
        exp3ix_learn(params, memory, p, arm, loss, weight)
    elif kind == EXP3P:
        exp3p_learn(params, memory, p, arm, loss, weight)
    elif kind == EXP3S:
        exp3s_learn(params, memory, p, arm, loss, weight)
    elif kind == EXP3XX:
        exp3xx_learn(params, memory, p, arm, loss, weight)
    elif kind == TSALLIS:
        tsallis_learn(params, memory, p, arm, loss, weight)
    elif kind == BARRIER:
        barrier_learn(params, memory, p, arm, loss, weight)
    elif kind == RESTART:
        restart_learn(params, memory, p, arm, loss, weight)
    elif kind in (UCB, GREEDY):
        ucb_learn(params, memory, p, arm, loss, weight)
    elif kind == WINDOW:
        window_learn(params, memory, p, arm, loss, weight)
    elif kind == DISCOUNTED:
        discounted_learn(params, memory, p, arm, loss, weight)
    elif kind == THOMPSON:
        thompson_learn(params, memory, p, arm, loss, weight)
