"""Gambit's text format for games in strategic form (.nfg), read and written.

A header ``NFG 1 R "title" { "player" ... }`` with the numbers of strategies ``{ 2 3 }`` or their
names ``{ { "a" "b" } { ... } }``, then one of two bodies: the payoffs of all profiles, or a table
of outcomes ``{ { "name" 1, 2 } ... }`` with the outcome's number for each profile (0 has payoff 0).
In both, profiles are listed with the FIRST player's strategy varying fastest.
"""

import os
import re
from collections.abc import Iterator
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = ["read_nfg", "write_nfg"]

TOKEN = re.compile(
    r'\s+|,|(?P<string>"(?:[^"\\]|\\.)*")|(?P<brace>[{}])|(?P<word>[^\s{},"]+)', re.DOTALL
)


class Token(NamedTuple):
    """A piece of the text: "string", "brace" or "word", or "end" after the last."""

    kind: str
    text: str
    line: int


def tokens_of(text: str) -> Iterator[Token]:
    """Yield the tokens; white space and commas only separate."""
    position, line = 0, 1
    while position < len(text):
        match = TOKEN.match(text, position)
        if match is None:
            raise ValueError(f".nfg line {line}: a quotation mark isn't closed")
        if match.lastgroup is not None:
            yield Token(match.lastgroup, match.group(), line)
        line += match.group().count("\n")
        position = match.end()
    yield Token("end", "end of text", line)


class Reader:
    """Takes tokens one by one and says which line is wrong."""

    def __init__(self, text: str) -> None:
        self.tokens = tokens_of(text)
        self.next = next(self.tokens)

    def take(self) -> Token:
        token = self.next
        if token.kind != "end":
            self.next = next(self.tokens)
        return token

    def fail(self, token: Token, wanted: str) -> ValueError:
        return ValueError(f".nfg line {token.line}: expected {wanted}, got {token.text}")

    def expect(self, text: str) -> None:
        token = self.take()
        if token.text != text:
            raise self.fail(token, repr(text))

    def string(self) -> str:
        token = self.take()
        if token.kind != "string":
            raise self.fail(token, "a name in quotation marks")
        return re.sub(r"\\(.)", r"\1", token.text[1:-1], flags=re.DOTALL)

    def strings(self) -> list[str]:
        """Read names up to the closing brace."""
        found = []
        while self.next.text != "}" or self.next.kind != "brace":
            found.append(self.string())
        self.take()
        return found

    def number(self) -> float:
        token = self.take()
        try:
            return float(Fraction(token.text))
        except (ValueError, ZeroDivisionError, OverflowError):
            raise self.fail(token, "a number") from None

    def count(self, largest: int | None = None) -> int:
        token = self.take()
        if not re.fullmatch(r"\d+", token.text) or (
            largest is not None and int(token.text) > largest
        ):
            raise self.fail(
                token, f"a whole number{'' if largest is None else f' up to {largest}'}"
            )
        return int(token.text)


def read_header(read: Reader) -> tuple[list[str], list[list[str] | None], list[int]]:
    """Return the players' names, their strategies' names (None if counted), and numbers."""
    read.expect("NFG")
    version = read.take()
    if version.text != "1":
        raise read.fail(version, "version 1")
    kind = read.take()
    if kind.text not in ("R", "D"):
        raise read.fail(kind, "R or D")
    read.string()  # title
    read.expect("{")
    players = read.strings()
    read.expect("{")
    names: list[list[str] | None] = []
    counts = []
    while read.next.text != "}":
        if read.next.text == "{":
            read.take()
            strategies = read.strings()
            names.append(strategies)
            counts.append(len(strategies))
        else:
            names.append(None)
            counts.append(read.count())
    closing = read.take()
    if len(counts) != len(players) or 0 in counts:
        raise read.fail(closing, f"at least one strategy for each of {len(players)} players")
    if read.next.kind == "string":
        read.string()  # comment
    return players, names, counts


def read_outcomes(read: Reader, n_players: int) -> np.ndarray:
    """Return the outcomes' payoffs (n_outcomes + 1, n); the first is the null outcome."""
    read.expect("{")
    outcomes = [[0.0] * n_players]
    while read.next.text != "}":
        read.expect("{")
        read.string()
        outcomes.append([read.number() for _ in range(n_players)])
        read.expect("}")
    read.take()
    return np.array(outcomes)


def distinct(names: list[str] | None) -> list[str] | None:
    """Return names if they can tell actions apart; Gambit also allows empty and repeated ones."""
    return names if names is not None and len(set(names)) == len(names) else None


def read_nfg(path_or_text: Any) -> tuple[np.ndarray, list[str] | None, list[list[str]]]:
    """Read a game in .nfg format.

    Parameters
    ----------
    path_or_text : str or path-like
        A file in UTF-8, or the text itself (it starts with ``NFG``).

    Returns
    -------
    payoffs : ndarray of shape (n, d_0, ..., d_{n-1})
    player_names : list of str or None
    action_names : list of list of str

    Raises
    ------
    ValueError
        If the text isn't a game; the message gives the line.

    Examples
    --------
    >>> from equipoise.games.normal_form.nfg import read_nfg
    >>> payoffs, players, actions = read_nfg(
    ...     'NFG 1 R "" { "Ann" "Bob" } { 2 2 } 1 -1 -1 1 0 0 1/2 0.25'
    ... )
    >>> payoffs[0].tolist(), players
    ([[1.0, 0.0], [-1.0, 0.5]], ['Ann', 'Bob'])
    """
    if isinstance(path_or_text, str) and re.match(r"\s*NFG|.*[\n{]", path_or_text, re.DOTALL):
        text = path_or_text  # a text that isn't .nfg is refused below with its line
    else:
        text = Path(os.fspath(path_or_text)).read_text(encoding="utf-8")
    read = Reader(text)
    players, names, counts = read_header(read)
    n, M = len(counts), prod(counts)
    if read.next.text == "{":
        outcomes = read_outcomes(read, n)
        listed = outcomes[[read.count(largest=len(outcomes) - 1) for _ in range(M)]]
    else:
        listed = np.array([[read.number() for _ in range(n)] for _ in range(M)])
    if read.next.kind != "end":
        raise read.fail(read.next, f"nothing after the {M} profiles")
    payoffs = listed.reshape(*reversed(counts), n).transpose()
    action_names = [
        distinct(own) or [str(a + 1) for a in range(d)]
        for own, d in zip(names, counts, strict=True)
    ]
    return payoffs, distinct(players), action_names


def quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def write_nfg(game: Any, path: Any = None, title: str = "") -> str:
    """Write a game in .nfg format, payoff form, with decimals that give back the very same floats.

    Parameters
    ----------
    game : NormalFormGame
        The game.
    path : str or path-like, optional
        File to write.
    title : str, default=""
        Title of the game.

    Returns
    -------
    str
        The text.

    Examples
    --------
    >>> from equipoise.games import NormalFormGame
    >>> from equipoise.games.normal_form.nfg import write_nfg
    >>> print(
    ...     write_nfg(
    ...         NormalFormGame.from_bimatrix(
    ...             [[1, 2.5]],
    ...             [[0, 1]],
    ...         )
    ...     )
    ... )
    NFG 1 R "" { "player 0" "player 1" }
    { { "0" }
      { "0" "1" } }
    <BLANKLINE>
    1 0
    2.5 1
    <BLANKLINE>
    """
    players = " ".join(map(quoted, game.player_names))
    strategies = "\n  ".join(
        "{ " + " ".join(map(quoted, actions)) + " }" for actions in game.action_names
    )
    listed = game.payoffs.transpose().reshape(-1, game.n_players)
    rows = (
        " ".join(np.format_float_positional(value, trim="-") for value in profile)
        for profile in listed
    )
    text = (
        f"NFG 1 R {quoted(title)} {{ {players} }}\n{{ {strategies} }}\n\n" + "\n".join(rows) + "\n"
    )
    if path is not None:
        Path(os.fspath(path)).write_text(text, encoding="utf-8")
    return text
