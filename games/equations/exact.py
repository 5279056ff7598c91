"""Exact answers: the policy's system over the rationals, and every other action compared.

Floats stand for themselves, the dyadic numbers they are (0.8 is not 4/5); problems built from
ints, Fractions or decimal strings keep their exact values.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from .errors import LEMMSingularError
from .problem import LEMM
from .rational import solve_rational
from .solver import Run

__all__ = [
    "exact_system",
    "exact_value",
    "exact_violations",
    "limit_denominators",
    "polish_exactly",
]

#: Exact arithmetic on more nodes would run for hours; it is refused.
LARGEST = 2000


def check_size(problem: LEMM) -> None:
    if problem.n > LARGEST:
        raise ValueError(
            f"exact arithmetic takes at most {LARGEST} nodes, got {problem.n}: use exact=False"
        )


def exact_system(problem: LEMM) -> tuple[list[dict[int, Fraction]], list[Fraction]]:
    """Every row as column -> Fraction, and every offset."""
    values: Sequence[Fraction]
    if problem.A_exact is not None and problem.b_exact is not None:
        values, offsets = problem.A_exact, list(problem.b_exact)
    else:
        values = [Fraction(value) for value in problem.A.data.tolist()]
        offsets = [Fraction(value) for value in problem.b.tolist()]
    ptr, cols = problem.A.indptr.tolist(), problem.A.indices.tolist()
    rows = [{cols[k]: values[k] for k in range(ptr[row], ptr[row + 1])} for row in range(problem.m)]
    return rows, offsets


def exact_value(problem: LEMM, policy: np.ndarray) -> list[Fraction]:
    """Value of a policy, exactly."""
    rows, offsets = exact_system(problem)
    chosen = (problem.indptr[:-1] + policy).tolist()
    return solve_rational([rows[a] for a in chosen], [offsets[a] for a in chosen])


def exact_violations(problem: LEMM, x: Sequence[Fraction]) -> list[Fraction]:
    """``s_i (q_a.x + b_a - x_i)`` of every row, exactly."""
    rows, offsets = exact_system(problem)
    found = []
    for i in range(problem.n):
        s = int(problem.sign[i])
        for a in range(problem.indptr[i], problem.indptr[i + 1]):
            image = sum((value * x[j] for j, value in rows[a].items()), offsets[a])
            found.append(s * (image - x[i]))
    return found


def limit_denominators(problem: LEMM, largest: int) -> LEMM:
    """Replace every number by the nearest fraction whose denominator is at most `largest`."""
    rows, offsets = exact_system(problem)
    A_exact = [value.limit_denominator(largest) for row in rows for value in row.values()]
    b_exact = [value.limit_denominator(largest) for value in offsets]
    kept = [value for value in A_exact if value != 0]
    data = np.array([float(value) for value in A_exact])
    A = sp.csr_array((data, problem.A.indices, problem.A.indptr), shape=problem.A.shape)
    return LEMM(
        A,
        [float(value) for value in b_exact],
        problem.indptr,
        problem.op,
        names=problem.names,
        A_exact=kept,
        b_exact=b_exact,
    )


def polish_exactly(problem: LEMM, run: Run) -> Run:
    """From a policy found in floats to the exact solution.

    Where exact arithmetic still finds a violation, the least-index rule goes on exactly.

    Parameters
    ----------
    problem : LEMM
        At most 2000 nodes.
    run : Run
        What a solver found.

    Returns
    -------
    Run
        With `exact_value` and the policy it belongs to; status 'singular' if a policy has no
        unique value.
    """
    check_size(problem)
    policy = run.policy.copy()
    owner = np.repeat(np.arange(problem.n), np.diff(problem.indptr))
    run.value, run.status = run.value.copy(), "optimal"
    while True:
        try:
            x = exact_value(problem, policy)
        except LEMMSingularError as error:
            run.status, run.message = "singular", str(error)
            return run
        run.n_evaluations += 1
        violations = exact_violations(problem, x)
        first = next((a for a, value in enumerate(violations) if value > 0), None)
        if first is None:
            run.policy, run.exact_value = policy, x
            run.value = np.array([float(value) for value in x])
            return run
        i = int(owner[first])
        rows = range(problem.indptr[i], problem.indptr[i + 1])
        policy[i] = max(rows, key=lambda a: violations[a]) - problem.indptr[i]
        run.n_switches += 1
