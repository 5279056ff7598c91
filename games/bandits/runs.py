"""A learner's run in an environment: compiled where both are ours, in Python for anyone else's."""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from .adversaries import AdaptiveHideEnv
from .environments import BanditEnvironment, ObliviousEnv
from .kernels import play_hiding, play_table
from .regret import check_table
from .streams import stream_of
from .units import Units

__all__ = [
    "NO_SHARES",
    "Run",
    "as_environment",
    "benchmarks",
    "is_compiled",
    "run_adaptive",
    "run_table",
    "unit_table",
]

Array = np.ndarray
NO_ARMS = np.empty(0, dtype=np.int16)
NO_SHARES = np.empty(0)


class Run(NamedTuple):
    """What a run leaves, in losses between 0 and 1.

    `cumulative` (n_marks,), the fixed arms' sums `arm_sums` (n_marks, n_arms) and the best
    sequence's `least_sums` (n_marks,); `arms` (n_rounds,) and `table` are empty if not asked for.
    """

    cumulative: Array
    arm_sums: Array
    least_sums: Array
    arms: Array
    table: Array


def is_compiled(learner: Any) -> bool:
    """Whether the compiled loops know this kind of learner."""
    return getattr(learner, "_kind", None) is not None


def unit_table(env: BanditEnvironment, units: Units, random_state: Any) -> Array:
    """The losses of an oblivious environment's run, between 0 and 1; read-only."""
    table = np.ascontiguousarray(units.to_unit(env.realise(random_state))).view()
    table.setflags(write=False)  # always, since numba compiles anew for writable arrays
    return table


@njit(cache=True, nogil=True)
def benchmarks(table: Array, marks: Array) -> tuple[Array, Array]:
    """Sums of each arm's losses and of the least losses, up to each mark."""
    n_arms = table.shape[1]
    arm_sums, least_sums = np.empty((marks.size, n_arms)), np.empty(marks.size)
    sums, least, start = np.zeros(n_arms), 0.0, 0
    for k in range(marks.size):
        for t in range(start, marks[k]):
            lowest = table[t, 0]
            for a in range(n_arms):
                sums[a] += table[t, a]
                lowest = min(lowest, table[t, a])
            least += lowest
        arm_sums[k], least_sums[k], start = sums, least, marks[k]
    return arm_sums, least_sums


def run_table(
    learner: Any,
    table: Array,
    units: Units,
    marks: Array,
    store_arms: bool,
    shares: Array = NO_SHARES,
) -> tuple[Array, Array]:
    """Play a table of losses in [0, 1]: cumulative loss at the marks, and the arms.

    `shares`, where it isn't empty, takes the probabilities with which a learner of ours drew.
    """
    cumulative = np.zeros(len(marks))
    arms = np.empty(len(table), dtype=np.int16) if store_arms else NO_ARMS
    if is_compiled(learner):
        learner.reset()
        tag, params, memory, stream, law = learner._machine()
        play_table(tag, params, memory, stream, law, table, marks, cumulative, arms, shares)
        learner._forget_law()
        return cumulative, arms
    played = np.empty(len(table))
    given = units.from_unit(table)
    for t in range(len(table)):
        arm = learner.select_arm()
        learner.update(arm, given[t, arm])
        played[t] = table[t, arm]
        if store_arms:
            arms[t] = arm
    return np.cumsum(played)[marks - 1], arms


def run_adaptive(
    learner: Any,
    env: Any,
    units: Units,
    marks: Array,
    store: bool,
    random_state: Any,
    shares: Array = NO_SHARES,
) -> Run:
    """Play against an adversary who sees the arms; `shares` as in `run_table`."""
    shape = (env.horizon, env.n_arms)
    if units.rewards and isinstance(env, AdaptiveHideEnv):
        raise ValueError("AdaptiveHideEnv hands out losses, and mode='reward' was given")
    if isinstance(env, AdaptiveHideEnv) and is_compiled(learner):
        n_marks = len(marks)
        run = Run(
            np.zeros(n_marks),
            np.zeros((n_marks, env.n_arms)),
            np.zeros(n_marks),
            np.empty(env.horizon, dtype=np.int16) if store else NO_ARMS,
            np.empty(shape if store else (0, env.n_arms)),
        )
        learner.reset()
        levels = units.to_unit(np.array([env.fixed, env.high, env.low]))
        tag, params, memory, stream, law = learner._machine()
        play_hiding(
            tag,
            params,
            memory,
            stream,
            law,
            levels,
            env.starts,
            stream_of(random_state),
            env.horizon,
            marks,
            run.cumulative,
            run.arm_sums,
            run.least_sums,
            run.arms,
            run.table,
            shares,
        )
        learner._forget_law()
        return run
    if is_compiled(learner):
        learner.reset()
    table = np.empty(shape)
    arms = np.empty(env.horizon, dtype=np.int16)
    session = env.session(random_state)
    for t in range(env.horizon):
        row = session.losses(t, arms[:t])
        table[t] = units.to_unit(row)
        arms[t] = learner.select_arm()
        if shares.size > 0:
            shares[t] = learner._law[arms[t]]
        learner.update(int(arms[t]), row[arms[t]])
    arm_sums, least_sums = benchmarks(table, marks)
    cumulative = np.cumsum(table[np.arange(env.horizon), arms])[marks - 1]
    if not store:
        return Run(cumulative, arm_sums, least_sums, NO_ARMS, table[:0])
    return Run(cumulative, arm_sums, least_sums, arms, table)


def as_environment(env: Any) -> BanditEnvironment:
    """An environment as it is, a table of losses as an oblivious one."""
    if isinstance(env, BanditEnvironment):
        return env
    if env is None or isinstance(env, str):
        raise TypeError(
            f"env={env!r}; allowed: an environment, or a table of shape (n_rounds, n_arms)"
        )
    return ObliviousEnv(check_table(env, "env"))
