"""PRISM's explicit model files: transitions (.tra), states (.sta), labels (.lab), rewards.

``.tra`` starts with "states transitions" (a chain) or "states choices transitions" (a decision
process) and goes on with "source [choice] target probability [action]". ``.lab`` names labels as
``0="init" 1="goal"`` and lists "state: label label". State rewards are "state reward" under a
header of two counts; transition rewards have the form of transitions.
"""

import re
from collections.abc import Iterator
from os import PathLike

import numpy as np

from .model_files import ExplicitModel, FileLine, assemble, read_lines

__all__ = ["read_prism"]

Path = str | PathLike[str]
LABEL = re.compile(r'(\d+)="([^"]*)"')
STATE = re.compile(r"(\d+):\((.*)\)$")


def header(lines: Iterator[FileLine], path: Path, lengths: tuple[int, ...]) -> list[int]:
    """The counts in a file's first line."""
    line = next(lines, None)
    if line is None:
        raise ValueError(f"{path}: the file is empty")
    line.expect(lengths, f"a header of {' or '.join(map(str, lengths))} counts")
    return [line.index(k, None, "count") for k in range(len(line.fields))]


def check_count(path: Path, what: str, found: int, announced: int) -> None:
    if found != announced:
        raise ValueError(f"{path}: the header announces {announced} {what}, the file has {found}")


def read_transitions(path: Path) -> tuple[int, bool, dict[tuple[int, int], dict[int, float]]]:
    """Number of states, whether there are choices, and the successors of each choice."""
    lines = read_lines(path, "#")
    counts = header(lines, path, (2, 3))
    n, choices = counts[0], len(counts) == 3
    rows: dict[tuple[int, int], dict[int, float]] = {}
    count = 0
    for line in lines:
        if choices:
            line.expect((4, 5), "'source choice target probability [action]'")
        else:
            line.expect((3, 4), "'source target probability [action]'")
        choice = line.index(1, None, "choice") if choices else 0
        row = rows.setdefault((line.index(0, n, "state"), choice), {})
        target = line.index(1 + choices, n, "state")
        row[target] = row.get(target, 0.0) + line.probability(2 + choices)
        count += 1
    if choices:
        check_count(path, "choices", len(rows), counts[1])
    check_count(path, "transitions", count, counts[-1])
    return n, choices, rows


def read_labels(path: Path, n: int) -> dict[str, list[int]]:
    """The states that carry each label."""
    lines = read_lines(path, "#")
    first = next(lines, None)
    if first is None:
        raise ValueError(f"{path}: the file is empty")
    names = {}
    rest = first.text
    for match in LABEL.finditer(first.text):
        names[match[1]] = match[2]
        rest = rest.replace(match[0], " " * len(match[0]), 1)
    if rest.strip() or not names:
        column = len(rest) - len(rest.lstrip()) + 1 if rest.strip() else 1
        raise first.error(column, 'expected labels as 0="name"')
    labels: dict[str, list[int]] = {name: [] for name in names.values()}
    for line in lines:
        state, colon, _ = line.text.partition(":")
        if not colon:
            raise line.error(len(line.text) + 1, "expected 'state: label ...'")
        number = FileLine(line.name, line.number, state)
        number.expect((1,), "one state before ':'")
        for text, column in FileLine(line.name, line.number, line.text.replace(":", " ")).fields[
            1:
        ]:
            if text not in names:
                raise line.error(column, f"label {text!r} is not in the first line")
            labels[names[text]].append(number.index(0, n, "state"))
    return labels


def read_names(path: Path, n: int) -> list[str]:
    """Identifiers of the states from their variables, ``(x,y)`` and ``0:(1,true)`` -> x1_ytrue."""
    lines = read_lines(path, "#")
    first = next(lines, None)
    if first is None or not re.fullmatch(r"\(.*\)", first.text.strip()):
        raise ValueError(f"{path}: line 1, column 1: expected the variables as (x,y)")
    variables = first.text.strip()[1:-1].split(",")
    names: list[str | None] = [None] * n
    for line in lines:
        match = STATE.match(line.text.strip())
        if match is None:
            raise line.error(1, "expected 'state:(value,...)'")
        state = FileLine(line.name, line.number, match[1]).index(0, n, "state")
        values = match[2].split(",")
        if len(values) != len(variables):
            raise line.error(1, f"{len(values)} values for {len(variables)} variables")
        pairs = [variable + value for variable, value in zip(variables, values, strict=True)]
        names[state] = re.sub(r"\W", "_", "_".join(pairs).replace("-", "m"))
    if None in names:
        raise ValueError(f"{path}: state {names.index(None)} is missing")
    return [name for name in names if name is not None]


def read_state_rewards(path: Path, n: int) -> np.ndarray:
    """Reward of each state, shape (n,)."""
    lines = read_lines(path, "#")
    counts = header(lines, path, (2,))
    check_count(path, "states, as the transitions", n, counts[0])
    rewards = np.zeros(n)
    count = 0
    for line in lines:
        line.expect((2,), "'state reward'")
        rewards[line.index(0, n, "state")] += line.real(1, "reward")
        count += 1
    check_count(path, "rewards", count, counts[1])
    return rewards


def read_transition_rewards(
    path: Path, n: int, choices: bool, rows: dict[tuple[int, int], dict[int, float]]
) -> np.ndarray:
    """Expected reward of each choice, in the order of (state, choice)."""
    lines = read_lines(path, "#")
    counts = header(lines, path, (3,) if choices else (2,))
    check_count(path, "states, as the transitions", n, counts[0])
    gains = dict.fromkeys(sorted(rows), 0.0)
    count = 0
    for line in lines:
        line.expect((3 + choices,), "a transition and its reward")
        key = (line.index(0, n, "state"), line.index(1, None, "choice") if choices else 0)
        target = line.index(1 + choices, n, "state")
        if target not in rows.get(key, {}):
            raise line.error(line.fields[0].column, "the transitions hold no such transition")
        gains[key] += rows[key][target] * line.real(2 + choices, "reward")
        count += 1
    check_count(path, "rewards", count, counts[-1])
    return np.array(list(gains.values()))


def read_prism(
    tra: Path,
    lab: Path | None = None,
    srew: Path | None = None,
    trew: Path | None = None,
    sta: Path | None = None,
) -> ExplicitModel:
    """Read the files of one model.

    Parameters
    ----------
    tra : path
        Transitions.
    lab, srew, trew, sta : path, optional
        Labels, state rewards, transition rewards, variables of the states.

    Returns
    -------
    ExplicitModel
        The model; rewards None if there is no file of them.

    Raises
    ------
    ValueError
        With file, line and column, where a file can't be read.
    """
    n, choices, rows = read_transitions(tra)
    P, states = assemble(n, rows, str(tra))
    rewards = None
    if srew is not None or trew is not None:
        rewards = np.zeros(len(states))
        if srew is not None:
            rewards += read_state_rewards(srew, n)[states]
        if trew is not None:
            rewards += read_transition_rewards(trew, n, choices, rows)
    labels = {} if lab is None else read_labels(lab, n)
    return ExplicitModel(P, states, rewards, labels, None if sta is None else read_names(sta, n))
