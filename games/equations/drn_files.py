"""Storm's DRN files: one text file with a header of ``@`` entries and the model state by state.

A state is "state 3 [reward,...] label ...", a choice below it "action name [reward,...]", a
transition "target : probability". Chains (DTMC) and decision processes (MDP) are read.
"""

import re
from collections.abc import Iterator
from os import PathLike

import numpy as np

from .model_files import ExplicitModel, Field, FileLine, assemble, read_lines

__all__ = ["read_drn"]

TYPES = ("DTMC", "MDP")
REWARDS = re.compile(r"\[([^\]]*)\]")
QUOTED = re.compile(r'"[^"]*"|\S+')


class ModelParser:
    """Collects states, choices and transitions of the part after ``@model``."""

    def __init__(self, n: int, reward_names: list[str]) -> None:
        self.n, self.reward_names = n, reward_names
        self.rows: dict[tuple[int, int], dict[int, float]] = {}
        self.gains: dict[tuple[int, int], list[float]] = {}
        self.labels: dict[str, list[int]] = {}
        self.state = self.choice = -1
        self.state_gain: list[float] = []

    def rewards(self, line: FileLine) -> list[float]:
        """The numbers in brackets, one a reward model; 0 where there are none."""
        match = REWARDS.search(line.text)
        if match is None or not self.reward_names:
            return [0.0] * len(self.reward_names)
        pieces = [Field(m.group(), m.start()) for m in re.finditer(r"[^,\s]+", match[1])]
        if len(pieces) != len(self.reward_names):
            raise line.error(
                match.start() + 1,
                f"{len(pieces)} rewards for {len(self.reward_names)} reward models",
            )
        return [line.number_of(p.text, match.start(1) + p.column + 1, "reward") for p in pieces]

    def read_state(self, line: FileLine) -> None:
        if len(line.fields) < 2:
            raise line.error(len(line.text) + 1, "expected a state's number")
        number = line.index(1, self.n, "state")
        if number != self.state + 1:
            raise line.error(
                line.fields[1].column, f"expected state {self.state + 1}, got {number}"
            )
        self.state, self.choice = number, -1
        self.state_gain = self.rewards(line)
        tail = REWARDS.sub("", line.text).split(None, 2)[2:]
        for name in QUOTED.findall(tail[0]) if tail else []:
            self.labels.setdefault(name.strip('"'), []).append(number)

    def read_choice(self, line: FileLine) -> None:
        if self.state < 0:
            raise line.error(line.fields[0].column, "an action before the first state")
        self.open_choice(self.rewards(line))

    def open_choice(self, gains: list[float]) -> None:
        self.choice += 1
        key = (self.state, self.choice)
        self.rows[key] = {}
        self.gains[key] = [a + b for a, b in zip(self.state_gain, gains, strict=True)]

    def read_transition(self, line: FileLine) -> None:
        target, colon, chance = line.text.partition(":")
        if not colon:
            raise line.error(line.fields[0].column, "expected 'state', 'action' or 'target : p'")
        if self.state < 0:
            raise line.error(line.fields[0].column, "a transition before the first state")
        if self.choice < 0:
            # Chains may leave out the only action.
            self.open_choice([0.0] * len(self.reward_names))
        left = FileLine(line.name, line.number, target)
        right = FileLine(line.name, line.number, " " * (len(target) + 1) + chance)
        left.expect((1,), "one state before ':'")
        right.expect((1,), "one probability after ':'")
        row = self.rows[self.state, self.choice]
        j = left.index(0, self.n, "state")
        row[j] = row.get(j, 0.0) + right.probability(0)


def read_header(lines: Iterator[FileLine], path: str | PathLike[str]) -> dict[str, list[FileLine]]:
    """Entries of the header up to ``@model``: name -> the lines that belong to it."""
    entries: dict[str, list[FileLine]] = {}
    current: list[FileLine] = []
    for line in lines:
        text = line.text.strip()
        if text == "@model":
            return entries
        if text.startswith("@"):
            name, colon, value = text[1:].partition(":")
            current = entries.setdefault(name.strip(), [])
            if colon and value.strip():
                column = line.text.index(":") + 1
                current.append(FileLine(line.name, line.number, " " * column + value))
        else:
            current.append(line)
    raise ValueError(f"{path}: there is no line '@model'")


def count_of(entries: dict[str, list[FileLine]], name: str, path: str | PathLike[str]) -> int:
    if not entries.get(name):
        raise ValueError(f"{path}: the header has no entry '@{name}'")
    line = entries[name][0]
    line.expect((1,), "one count")
    return line.index(0, None, "count")


def read_drn(path: str | PathLike[str], reward: str | None = None) -> ExplicitModel:
    """Read a model.

    Parameters
    ----------
    path : path
        The file.
    reward : str, optional
        Name of the reward model; None reads no rewards.

    Returns
    -------
    ExplicitModel
        The model.

    Raises
    ------
    ValueError
        With line and column, where the file can't be read; if the model is of another type or
        has parameters, or there is no such reward model.
    """
    lines = read_lines(path, "//")
    entries = read_header(lines, path)
    kind = entries.get("type", [])
    if not kind or kind[0].fields[0].text.upper() not in TYPES:
        found = repr(kind[0].fields[0].text) if kind else "none"
        raise ValueError(f"{path}: @type is {found}; allowed: {TYPES}")
    if entries.get("parameters"):
        line = entries["parameters"][0]
        raise line.error(line.fields[0].column, "models with parameters can't be read")
    reward_names = [
        field.text for line in entries.get("reward_models", []) for field in line.fields
    ]
    if reward is not None and reward not in reward_names:
        raise ValueError(f"{path}: there is no reward model {reward!r}; allowed: {reward_names}")
    n = count_of(entries, "nr_states", path)
    parser = ModelParser(n, reward_names)
    for line in lines:
        word = line.fields[0].text
        if word == "state":
            parser.read_state(line)
        elif word == "action":
            parser.read_choice(line)
        else:
            parser.read_transition(line)
    P, states = assemble(n, parser.rows, str(path))
    if "nr_choices" in entries and count_of(entries, "nr_choices", path) != len(states):
        raise entries["nr_choices"][0].error(
            entries["nr_choices"][0].fields[0].column, f"the file has {len(states)} choices"
        )
    rewards = None
    if reward is not None:
        k = reward_names.index(reward)
        rewards = np.array([parser.gains[key][k] for key in sorted(parser.gains)])
    return ExplicitModel(P, states, rewards, parser.labels)
