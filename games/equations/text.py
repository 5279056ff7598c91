"""Equations written as text, one ``name = ...`` a line, read exactly and printed back.

The right-hand side is a linear expression, or ``max(...)`` or ``min(...)`` of linear expressions:
``x1 = max(0, 3 - 0.8*x3)``. Numbers are integers, decimals or quotients (``3/4``) and are kept as
exact fractions. ``#`` starts a comment.
"""

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

__all__ = ["Equation", "format_equation", "parse_equations"]

OPS = ("max", "min")
TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[^\W\d]\w*)|(?P<mark>[-+*/(),=]))"
)


class Equation(NamedTuple):
    """One parsed equation; each expression is (coefficients by name, offset)."""

    name: str
    op: str
    expressions: list[tuple[dict[str, Fraction], Fraction]]


class Token(NamedTuple):
    """A piece of text with its column (from 1); kind is 'number', 'name', a mark or 'end'."""

    kind: str
    text: str
    column: int


def error(line: int, column: int, message: str) -> ValueError:
    return ValueError(f"equations: line {line}, column {column}: {message}")


def tokenize(text: str, line: int) -> list[Token]:
    """Split one line; the last token has kind 'end'."""
    text = text.split("#", 1)[0].rstrip()
    tokens, position = [], 0
    while position < len(text):
        match = TOKEN.match(text, position)
        if match is None:
            column = position + len(text[position:]) - len(text[position:].lstrip()) + 1
            raise error(line, column, f"{text[column - 1]!r} is not allowed in an equation")
        kind = match.lastgroup or ""
        piece = match[kind]
        tokens.append(Token(piece if kind == "mark" else kind, piece, match.start(kind) + 1))
        position = match.end()
    return [*tokens, Token("end", "the end of the line", len(text) + 1)]


class LineParser:
    """Recursive descent over the tokens of one line."""

    def __init__(self, tokens: Sequence[Token], line: int) -> None:
        self.tokens, self.line, self.position = tokens, line, 0
        self.columns: dict[str, int] = {}

    @property
    def now(self) -> Token:
        return self.tokens[self.position]

    def take(self, *kinds: str) -> Token:
        token = self.now
        if token.kind not in kinds:
            wanted = " or ".join(repr(kind) for kind in kinds)
            raise error(self.line, token.column, f"expected {wanted}, got {token.text!r}")
        self.position += 1
        return token

    def equation(self) -> Equation:
        name = self.take("name")
        if name.text in OPS:
            raise error(self.line, name.column, f"{name.text!r} cannot name a variable")
        self.take("=")
        op = "affine"
        if self.now.kind == "name" and self.now.text in OPS:
            op = self.take("name").text
            self.take("(")
            expressions = [self.expression()]
            while self.take(",", ")").kind == ",":
                expressions.append(self.expression())
        else:
            expressions = [self.expression()]
        self.take("end")
        return Equation(name.text, op if len(expressions) > 1 else "affine", expressions)

    def expression(self) -> tuple[dict[str, Fraction], Fraction]:
        coefficients: dict[str, Fraction] = {}
        offset = Fraction(0)
        sign = 1
        if self.now.kind in "+-":
            sign = -1 if self.take("+", "-").kind == "-" else 1
        while True:
            factor, name = self.term()
            if name is None:
                offset += sign * factor
            else:
                coefficients[name] = coefficients.get(name, Fraction(0)) + sign * factor
            if self.now.kind not in ("+", "-"):
                return coefficients, offset
            sign = -1 if self.take("+", "-").kind == "-" else 1

    def term(self) -> tuple[Fraction, str | None]:
        """``3``, ``3/4``, ``x``, ``3*x``, ``x*3``, ``x/4`` and products with one name."""
        factor, name = self.factor()
        while self.now.kind in ("*", "/"):
            mark = self.take("*", "/")
            other, other_name = self.factor()
            if mark.kind == "/":
                if other_name is not None or other == 0:
                    raise error(self.line, mark.column, "only a non-zero number may divide")
                factor /= other
            elif name is not None and other_name is not None:
                raise error(
                    self.line, mark.column, f"{name}*{other_name} is not linear in the variables"
                )
            else:
                factor, name = factor * other, name or other_name
        return factor, name

    def factor(self) -> tuple[Fraction, str | None]:
        token = self.now
        if token.kind == "name" and token.text in OPS:
            raise error(
                self.line,
                token.column,
                f"{token.text!r} may only be the whole right-hand side; give the inner one an "
                "equation of its own",
            )
        token = self.take("number", "name")
        if token.kind == "number":
            return Fraction(token.text), None
        self.columns.setdefault(token.text, token.column)
        return Fraction(1), token.text


def parse_equations(equations: str | Sequence[str]) -> list[Equation]:
    """Read equations.

    Parameters
    ----------
    equations : str or sequence of str
        Lines; empty ones and comments are skipped.

    Returns
    -------
    list of Equation
        In the order of the lines.

    Raises
    ------
    ValueError
        With line and column, if a line can't be read, a variable is defined twice or never.
    """
    if isinstance(equations, str):
        lines = equations.splitlines()
    else:
        lines = list(equations)
    parsed: dict[str, Equation] = {}
    used: list[tuple[str, int, int]] = []
    for number, text in enumerate(lines, start=1):
        if not isinstance(text, str):
            raise TypeError(f"equations: line {number} must be a str, got {type(text).__name__}")
        tokens = tokenize(text, number)
        if len(tokens) == 1:
            continue
        parser = LineParser(tokens, number)
        equation = parser.equation()
        if equation.name in parsed:
            raise error(number, tokens[0].column, f"{equation.name!r} is defined a second time")
        parsed[equation.name] = equation
        used += [(name, number, column) for name, column in parser.columns.items()]
    for name, number, column in used:
        if name not in parsed:
            raise error(number, column, f"{name!r} is never defined")
    if not parsed:
        raise ValueError("equations: there is no equation in the text")
    return list(parsed.values())


def format_number(value: float | Fraction) -> str:
    """Digits that read back as the same number."""
    if isinstance(value, Fraction):
        return str(value)
    return repr(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def format_expression(
    coefficients: Mapping[str, float | Fraction], offset: float | Fraction
) -> str:
    """Print a linear expression so that `parse_equations` reads the same one."""
    terms: list[str] = [] if offset == 0 and coefficients else [format_number(offset)]
    for name, value in coefficients.items():
        size = format_number(-value if value < 0 else value)
        product = name if size == "1" else f"{size}*{name}"
        if terms:
            terms.append(f"- {product}" if value < 0 else f"+ {product}")
        else:
            terms.append(f"-{product}" if value < 0 else product)
    return " ".join(terms)


def format_equation(
    name: str, op: str, rows: Sequence[tuple[Mapping[str, float | Fraction], float | Fraction]]
) -> str:
    """Print an equation so that `parse_equations` reads the same one."""
    expressions = [format_expression(coefficients, offset) for coefficients, offset in rows]
    side = expressions[0] if len(expressions) == 1 else f"{op}({', '.join(expressions)})"
    return f"{name} = {side}"
