"""Linear systems over the rationals: ``x = Q x + b`` solved exactly.

Components of the dependency graph are solved one after the other; large ones by Dixon's p-adic
lifting: the inverse modulo one prime gives the solution digit by digit in base p, from which
fractions are reconstructed and then checked by multiplication.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from numba import njit

from .errors import LEMMSingularError
from .graph import strong_components

__all__ = ["solve_rational"]

Row = Mapping[int, Fraction]
PRIMES = (2147483647, 2147483629, 2147483587, 2147483579)
#: Components up to this size are eliminated directly.
DIRECT = 10


@njit(cache=True, nogil=True)
def inverse_modulo(M: np.ndarray, p: int) -> tuple[np.ndarray, bool]:
    """Inverse of an integer matrix modulo a prime below 2^31; False if it is singular there."""
    n = M.shape[0]
    work = np.zeros((n, 2 * n), np.int64)
    work[:, :n] = M % p
    for i in range(n):
        work[i, n + i] = 1
    for c in range(n):
        pivot = -1
        for r in range(c, n):
            if work[r, c] != 0:
                pivot = r
                break
        if pivot < 0:
            return work[:, n:].copy(), False
        if pivot != c:
            for k in range(2 * n):
                work[c, k], work[pivot, k] = work[pivot, k], work[c, k]
        # Fermat: a^(p - 2) is the inverse of a.
        scale = 1
        base = work[c, c]
        exponent = p - 2
        while exponent > 0:
            if exponent & 1:
                scale = scale * base % p
            base = base * base % p
            exponent >>= 1
        for k in range(2 * n):
            work[c, k] = work[c, k] * scale % p
        for r in range(n):
            factor = work[r, c]
            if r != c and factor != 0:
                for k in range(2 * n):
                    work[r, k] = (work[r, k] - factor * work[c, k]) % p
    return work[:, n:].copy(), True


@njit(cache=True, nogil=True)
def product_modulo(M: np.ndarray, x: np.ndarray, p: int) -> np.ndarray:
    n = M.shape[0]
    out = np.zeros(n, np.int64)
    for i in range(n):
        total = 0
        for j in range(n):
            total = (total + M[i, j] * x[j]) % p
        out[i] = total
    return out


def reconstruct(residue: int, modulus: int) -> Fraction | None:
    """The fraction with small numerator and denominator that is congruent to a residue."""
    limit = math.isqrt(modulus // 2)
    r0, r1, t0, t1 = modulus, residue % modulus, 0, 1
    while r1 > limit:
        quotient = r0 // r1
        r0, r1, t0, t1 = r1, r0 - quotient * r1, t1, t0 - quotient * t1
    if t1 == 0 or abs(t1) > limit or math.gcd(r1, t1) != 1:
        return None
    return Fraction(r1, t1)


def reconstruct_all(residues: Sequence[int], modulus: int) -> list[Fraction] | None:
    """All entries, using that solutions of one system share most of their denominator."""
    common, found = 1, []
    for residue in residues:
        value = reconstruct(residue * common % modulus, modulus)
        if value is None:
            return None
        value /= common
        common = math.lcm(common, value.denominator)
        found.append(value)
    return found


def lift(rows: Sequence[dict[int, int]], rhs: Sequence[int]) -> list[Fraction] | None:
    """Dixon's lifting for an integer system; None if it is singular."""
    n = len(rows)
    for p in PRIMES:
        dense = np.zeros((n, n), dtype=np.int64)
        for i, row in enumerate(rows):
            for j, value in row.items():
                dense[i, j] = value % p
        inverse, regular = inverse_modulo(dense, p)
        if regular:
            break
    else:
        return None
    # Cramer and Hadamard bound numerators and denominators, hence the digits needed.
    bits = sum(math.log2(max(1, sum(v * v for v in row.values()))) / 2 for row in rows)
    last = math.ceil((2 * bits + math.log2(1 + max(map(abs, rhs), default=1)) + 64) / 30)
    residual, digits, power, modulus = list(rhs), [0] * n, 1, 1
    attempt = 8
    for step in range(1, last + 1):
        digit = product_modulo(inverse, np.array([r % p for r in residual], dtype=np.int64), p)
        digit_list = digit.tolist()
        residual = [
            (r - sum(v * digit_list[j] for j, v in row.items())) // p
            for r, row in zip(residual, rows, strict=True)
        ]
        digits = [d + power * e for d, e in zip(digits, digit_list, strict=True)]
        power *= p
        modulus = power
        if step in (attempt, last):
            attempt *= 2
            x = reconstruct_all(digits, modulus)
            if x is not None and all(
                sum(v * x[j] for j, v in row.items()) == r for row, r in zip(rows, rhs, strict=True)
            ):
                return x
    raise ArithmeticError("p-adic lifting did not end within Hadamard's bound")


def eliminate(rows: Sequence[dict[int, Fraction]], rhs: list[Fraction]) -> list[Fraction] | None:
    """Gaussian elimination on a small system; None if it is singular."""
    n = len(rows)
    M = [
        [row.get(j, Fraction(0)) for j in range(n)] + [r] for row, r in zip(rows, rhs, strict=True)
    ]
    for c in range(n):
        pivot = next((r for r in range(c, n) if M[r][c] != 0), None)
        if pivot is None:
            return None
        M[c], M[pivot] = M[pivot], M[c]
        M[c] = [value / M[c][c] for value in M[c]]
        for r in range(n):
            if r != c and M[r][c] != 0:
                factor = M[r][c]
                M[r] = [value - factor * top for value, top in zip(M[r], M[c], strict=True)]
    return [row[n] for row in M]


def solve_rational(rows: Sequence[Row], b: Sequence[Fraction]) -> list[Fraction]:
    """Solve ``x = Q x + b`` exactly.

    Parameters
    ----------
    rows : sequence of mapping
        Coefficients of Q, column -> Fraction, one mapping a node.
    b : sequence of Fraction
        Offsets.

    Returns
    -------
    list of Fraction
        The solution.

    Raises
    ------
    LEMMSingularError
        If I - Q is singular.

    References
    ----------
    .. [1] J. D. Dixon, "Exact solution of linear equations using p-adic expansions", 1982.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from equipoise.games.equations.rational import solve_rational
    >>> solve_rational([{0: Fraction(1, 3)}], [Fraction(1)])
    [Fraction(3, 2)]
    """
    n = len(rows)
    start = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    cols = np.array([j for row in rows for j in row], dtype=np.int64)
    _, order, bounds = strong_components(start, cols)
    x: list[Fraction] = [Fraction(0)] * n
    for c in range(len(bounds) - 1):
        members = order[bounds[c] : bounds[c + 1]].tolist()
        place = {i: k for k, i in enumerate(members)}
        matrix: list[dict[int, Fraction]] = []
        rhs: list[Fraction] = []
        for i in members:
            row = {place[i]: Fraction(1)}
            total = b[i]
            for j, value in rows[i].items():
                if j in place:
                    row[place[j]] = row.get(place[j], Fraction(0)) - value
                else:
                    total += value * x[j]
            matrix.append({j: value for j, value in row.items() if value != 0})
            rhs.append(total)
        solved = solve_component(matrix, rhs)
        if solved is None:
            raise LEMMSingularError(f"I - Q is singular on the nodes {sorted(members)[:5]}")
        for i, value in zip(members, solved, strict=True):
            x[i] = value
    return x


def solve_component(
    matrix: Sequence[dict[int, Fraction]], rhs: list[Fraction]
) -> list[Fraction] | None:
    if len(matrix) <= DIRECT:
        return eliminate(matrix, rhs)
    scales = [math.lcm(*(v.denominator for v in row.values())) for row in matrix]
    integers = [
        {j: int(value * scale) for j, value in row.items()}
        for row, scale in zip(matrix, scales, strict=True)
    ]
    scaled = [value * scale for value, scale in zip(rhs, scales, strict=True)]
    common = math.lcm(*(value.denominator for value in scaled))
    solved = lift(integers, [int(value * common) for value in scaled])
    return None if solved is None else [value / common for value in solved]
