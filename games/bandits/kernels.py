"""Rounds of any kind of learner, compiled: one step, a forced history, whole runs.

Each kind gets loops of its own, compiled when first used and kept in numba's cache. Numba compiles
by types, so the kind's number is told as one: `tag` is a tuple of that many Nones. Params and
memories are those of `memory`; p is scratch and holds the law of the last draw. A run keeps the
cumulative loss at the marked rounds, and the arms where asked.
"""

from typing import Any

import numpy as np
from numba import njit
from numba.extending import overload

from .detection_rules import detection_learn, detection_probabilities
from .dispatch import BLOCKS, CORRAL, DETECTION, LEARN, PROBABILITIES, THOMPSON
from .index_rules import thompson_arm
from .master_rules import (
    blocks_arm,
    blocks_learn,
    blocks_probabilities,
    corral_arm,
    corral_learn,
    corral_probabilities,
)
from .streams import draw_arm, next_uniform

__all__ = [
    "choose",
    "hide_levels",
    "learn",
    "play_hiding",
    "play_table",
    "probabilities",
    "replay",
    "tag_of",
]

Array = np.ndarray
Tag = tuple[None, ...]

LAWS = {
    **PROBABILITIES,
    CORRAL: corral_probabilities,
    BLOCKS: blocks_probabilities,
    DETECTION: detection_probabilities,
}
LESSONS = {**LEARN, CORRAL: corral_learn, BLOCKS: blocks_learn, DETECTION: detection_learn}


def tag_of(kind: int) -> Tag:
    """The kind's number as a type."""
    return (None,) * kind


def write_law(tag: Tag, params: Array, memory: Array, p: Array) -> None:
    """In compiled code: write the law of the next draw."""


def take_loss(
    tag: Tag, params: Array, memory: Array, p: Array, arm: int, loss: Any, weight: float
) -> None:
    """In compiled code: learn from a loss."""


def draw(tag: Tag, params: Array, memory: Array, stream: Array, p: Array) -> int:
    """In compiled code: draw the next arm, and leave its law in p."""
    raise NotImplementedError("only compiled loops draw so")


@overload(write_law, strict=False)  # annotated otherwise than what they return
def compile_law(tag: Any, params: Any, memory: Any, p: Any) -> Any:
    if len(tag) == THOMPSON:  # it draws without a law: p stays as it is
        return lambda tag, params, memory, p: None
    rule = LAWS[len(tag)]
    return lambda tag, params, memory, p: rule(params, memory, p)


@overload(take_loss, strict=False)  # annotated otherwise than what they return
def compile_lesson(
    tag: Any, params: Any, memory: Any, p: Any, arm: Any, loss: Any, weight: Any
) -> Any:
    rule = LESSONS[len(tag)]

    def lesson(
        tag: Tag, params: Array, memory: Array, p: Array, arm: int, loss: float, weight: float
    ) -> None:
        rule(params, memory, p, arm, loss, weight)

    return lesson


@overload(draw, strict=False)  # annotated otherwise than what they return
def compile_draw(tag: Any, params: Any, memory: Any, stream: Any, p: Any) -> Any:
    kind = len(tag)
    if kind == THOMPSON:
        return lambda tag, params, memory, stream, p: thompson_arm(params, memory, stream, p.size)
    rule = LAWS[kind]
    if kind not in (CORRAL, BLOCKS):

        def draw_by_law(tag: Tag, params: Array, memory: Array, stream: Array, p: Array) -> int:
            rule(params, memory, p)
            return draw_arm(p, next_uniform(stream))

        return draw_by_law
    arm_rule = corral_arm if kind == CORRAL else blocks_arm

    def draw_in_two_steps(tag: Tag, params: Array, memory: Array, stream: Array, p: Array) -> int:
        rule(params, memory, p)
        return arm_rule(params, memory, p, next_uniform(stream))

    return draw_in_two_steps


@njit(cache=True, nogil=True)
def probabilities(tag: Tag, params: Array, memory: Array, p: Array) -> None:
    """Write the law of the next draw (Thompson sampling draws without one: p stays)."""
    write_law(tag, params, memory, p)


@njit(cache=True, nogil=True)
def choose(tag: Tag, params: Array, memory: Array, stream: Array, p: Array) -> int:
    """Draw the next arm, and leave the law it was drawn from in p."""
    return draw(tag, params, memory, stream, p)


@njit(cache=True, nogil=True)
def learn(
    tag: Tag, params: Array, memory: Array, p: Array, arm: int, loss: float, weight: float
) -> None:
    """Take the loss of an arm that was drawn with probabilities p."""
    take_loss(tag, params, memory, p, arm, loss, weight)


@njit(cache=True, nogil=True)
def replay(tag: Tag, params: Array, memory: Array, p: Array, arms: Array, losses: Array) -> None:
    """Learn from a forced history."""
    for t in range(arms.size):
        write_law(tag, params, memory, p)
        take_loss(tag, params, memory, p, arms[t], losses[t], 1.0)


@njit(cache=True, nogil=True)
def play_table(
    tag: Tag,
    params: Array,
    memory: Array,
    stream: Array,
    p: Array,
    losses: Array,
    marks: Array,
    cumulative: Array,
    arms: Array,
    shares: Array,
) -> None:
    """Play all rounds of a table.

    `arms` and `shares`, the probabilities with which these were drawn, may be empty.
    """
    # Copies of this thread's own: two runs' arrays may share a cache line.
    own, numbers, law = memory.copy(), stream.copy(), p.copy()
    total: Any = 0.0
    mark = 0
    for t in range(losses.shape[0]):
        arm = draw(tag, params, own, numbers, law)
        loss = losses[t, arm]
        take_loss(tag, params, own, law, arm, loss, 1.0)
        total += loss
        if arms.size > 0:
            arms[t] = arm
        if shares.size > 0:
            shares[t] = law[arm]
        if t + 1 == marks[mark]:
            cumulative[mark] = total
            mark += 1
    memory[:], stream[:], p[:] = own, numbers, law


@njit(cache=True, nogil=True)
def hide_levels(levels: Array, row: Array, t: int, starts: Array, block: int, stream: Array) -> int:
    """Set the losses of round t of the hiding adversary; returns the block of the round.

    `levels` holds the fixed arm's loss, the others', and the dropped one's.
    """
    if block < starts.size and t == starts[block]:
        row[0] = levels[0]
        row[1:] = levels[1]
        hidden = 1 + int(next_uniform(stream) * (row.size - 1))
        row[hidden] = levels[2]
        return block + 1
    return block


@njit(cache=True, nogil=True)
def play_hiding(
    tag: Tag,
    params: Array,
    memory: Array,
    stream: Array,
    p: Array,
    levels: Array,
    starts: Array,
    env_stream: Array,
    n_rounds: int,
    marks: Array,
    cumulative: Array,
    arm_sums: Array,
    least_sums: Array,
    arms: Array,
    table: Array,
    shares: Array,
) -> None:
    """Play against the adversary who raises a dropped loss the round after it is found.

    `arm_sums` (n_marks, n_arms) and `least_sums` (n_marks,) take the losses of the fixed arms and
    of the best sequence; `arms`, `table` and `shares` may be empty.
    """
    own, numbers, law = memory.copy(), stream.copy(), p.copy()
    row = np.empty(p.size)
    sums = np.zeros(p.size)
    total: Any = 0.0
    least: Any = 0.0
    mark, block = 0, 0
    for t in range(n_rounds):
        block = hide_levels(levels, row, t, starts, block, env_stream)
        arm = draw(tag, params, own, numbers, law)
        loss = row[arm]
        take_loss(tag, params, own, law, arm, loss, 1.0)
        total += loss
        least += row.min()
        sums += row
        if arms.size > 0:
            arms[t] = arm
        if shares.size > 0:
            shares[t] = law[arm]
        if table.size > 0:
            table[t] = row
        if loss == levels[2]:
            row[arm] = levels[1]
        if t + 1 == marks[mark]:
            cumulative[mark], least_sums[mark] = total, least
            arm_sums[mark] = sums
            mark += 1
    memory[:], stream[:], p[:] = own, numbers, law
