"""What readers of explicit Markov models share: fields with columns, errors, and the model read."""

import re
from collections.abc import Iterator
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

__all__ = ["ExplicitModel", "Field", "FileLine", "assemble", "read_lines"]

Array = np.ndarray
FIELD = re.compile(r"\S+")


class ExplicitModel(NamedTuple):
    """A Markov chain or decision process as a file lists it.

    Attributes
    ----------
    P : csr_array of shape (m, n)
        Probabilities, one row a choice, ordered by state.
    states : ndarray of shape (m,), int64
        State of each choice.
    rewards : ndarray of shape (m,) or None
        Expected reward of each choice.
    labels : dict of str to list of int
        States that carry each label.
    names : list of str or None
        Identifiers of the states.
    """

    P: sp.csr_array
    states: Array
    rewards: Array | None
    labels: dict[str, list[int]]
    names: list[str] | None = None


class Field(NamedTuple):
    """A piece of text without spaces, with its column (from 1)."""

    text: str
    column: int


class FileLine:
    """One line of a file: its number (from 1), its fields, and the errors that name them."""

    def __init__(self, name: str, number: int, text: str) -> None:
        self.name, self.number, self.text = name, number, text
        self.fields = [Field(m.group(), m.start() + 1) for m in FIELD.finditer(text)]

    def error(self, column: int, message: str) -> ValueError:
        return ValueError(f"{self.name}: line {self.number}, column {column}: {message}")

    def expect(self, lengths: tuple[int, ...], what: str) -> None:
        """Refuse a line with another number of fields."""
        if len(self.fields) not in lengths:
            column = self.fields[max(lengths)].column if len(self.fields) > max(lengths) else None
            raise self.error(
                len(self.text.rstrip()) + 1 if column is None else column,
                f"expected {what}, got {len(self.fields)} fields",
            )

    def index(self, k: int, limit: int | None, what: str) -> int:
        """Field k as an integer from 0 to limit - 1 (no limit: any that isn't negative)."""
        text, column = self.fields[k]
        if not text.isdecimal() or (limit is not None and int(text) >= limit):
            allowed = "0 and above" if limit is None else f"0 to {limit - 1}"
            raise self.error(column, f"{what} {text!r} is not allowed; allowed: {allowed}")
        return int(text)

    def real(self, k: int, what: str) -> float:
        """Field k as a finite number: a decimal or a fraction."""
        return self.number_of(*self.fields[k], what)

    def probability(self, k: int) -> float:
        """Field k as a number from 0 to 1."""
        value = self.real(k, "probability")
        if not 0 <= value <= 1 + 1e-9:
            text, column = self.fields[k]
            raise self.error(column, f"probability {text!r} is not allowed; allowed: 0 to 1")
        return value

    def number_of(self, text: str, column: int, what: str) -> float:
        """A piece of the line as a finite number."""
        try:
            value = float(Fraction(text)) if "/" in text else float(text)
        except (ValueError, ZeroDivisionError):
            raise self.error(column, f"{what} {text!r} is not a number") from None
        if not np.isfinite(value):
            raise self.error(column, f"{what} {text!r} must be finite")
        return value


def read_lines(path: str | PathLike[str], comment: str) -> Iterator[FileLine]:
    """The lines of a text file that are neither empty nor start with the comment mark."""
    place = Path(path)
    with place.open(encoding="utf-8") as file:
        for number, text in enumerate(file, start=1):
            if text.strip() and not text.lstrip().startswith(comment):
                yield FileLine(place.name, number, text.rstrip("\n"))


def assemble(
    n: int, rows: dict[tuple[int, int], dict[int, float]], where: str
) -> tuple[sp.csr_array, Array]:
    """Matrix and states of the choices ``(state, choice) -> {successor: probability}``.

    Raises
    ------
    ValueError
        If a state has no choice.
    """
    keys = sorted(rows)
    states = np.array([state for state, _ in keys], dtype=np.int64)
    missing = np.setdiff1d(np.arange(n), states)
    if missing.size:
        raise ValueError(f"{where}: state {missing[0]} has no choice; each of {n} needs one")
    ptr = np.concatenate([[0], np.cumsum([len(rows[key]) for key in keys])])
    cols = np.array([j for key in keys for j in rows[key]], dtype=np.int64)
    data = np.array([p for key in keys for p in rows[key].values()])
    return sp.csr_array((data, cols, ptr), shape=(len(keys), n)), states
