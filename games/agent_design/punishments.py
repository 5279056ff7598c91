"""What the others deploy when one stakeholder doesn't delegate.

Correlated responses that hurt him most come from a linear program. Responses in which everyone
draws for himself take a program that isn't convex from three stakeholders on: sequential quadratic
programming goes down from several starts, then each opponent's strategy in turn is made optimal
against the others' (a linear program). The correlated value bounds it from below, which proves some
answers best.
"""

from typing import Any

import numpy as np
from scipy.optimize import minimize

from .deviations import player_rows
from .programs import as_distribution, ones_row, payoff_range, solve_program

__all__ = ["given_response", "independent_response", "minimax_response"]

Array = np.ndarray
STARTS = 20


def hardest_mixture(A: Array) -> tuple[float, Array]:
    """min over distributions c of columns of max_b (A c)_b, and the c that attains it."""
    scale, low = payoff_range(A), A.min()
    d, rest = A.shape
    answer = solve_program(
        np.r_[np.zeros(rest), 1.0],
        np.hstack([(A - low) / scale, -np.ones((d, 1))]),
        np.zeros(d),
        ones_row(rest, 1),
        np.ones(1),
        bounds=[(0, None)] * (rest + 1),
    )
    chance = as_distribution(answer.x[:rest], (rest,))
    return float((A @ chance).max()), chance


def minimax_response(payoffs: Array, i: int) -> tuple[float, Array]:
    """v_i, and the others' joint distribution (prod of their designs,) that attains it."""
    return hardest_mixture(player_rows(payoffs[i], i))


def against(T: Array, mixtures: list[Array], skip: int) -> Array:
    """Average a tensor (own, others...) over all opponents' mixtures but one: (own, d_skip)."""
    for k in reversed(range(len(mixtures))):
        if k != skip:
            T = np.tensordot(T, mixtures[k], axes=(k + 1, 0))
    return T


def lowered(T: Array, mixtures: list[Array]) -> list[Array]:
    """Mixtures with a lower max_b T(b, mixtures), by min v with T(b, .) <= v for all b."""
    ends = np.cumsum([len(m) for m in mixtures])
    scale = payoff_range(T)
    T = (T - T.min()) / scale

    def split(x: Array) -> list[Array]:
        return np.split(x[:-1], ends[:-1])

    def slack(x: Array) -> Array:
        return x[-1] - against(T, split(x), 0) @ split(x)[0]

    def slope(x: Array) -> Array:
        own = split(x)
        parts = [against(T, own, k) for k in range(len(own))]
        return np.hstack([-np.hstack(parts), np.ones((len(T), 1))])

    sums = np.zeros((len(mixtures), ends[-1] + 1))
    for k, (stop, m) in enumerate(zip(ends, mixtures, strict=True)):
        sums[k, stop - len(m) : stop] = 1.0
    first = np.r_[np.concatenate(mixtures), 1.0]
    answer: Any = minimize(
        lambda x: x[-1],
        first,
        jac=lambda x: np.r_[np.zeros(len(x) - 1), 1.0],
        bounds=[(0.0, 1.0)] * len(first),
        constraints=[
            {"type": "ineq", "fun": slack, "jac": slope},
            {"type": "eq", "fun": lambda x: sums @ x - 1.0, "jac": lambda x: sums},
        ],
        method="SLSQP",
        options={"maxiter": 200, "ftol": 1e-12},
    )
    if not np.isfinite(answer.x).all():
        return mixtures
    return [as_distribution(m, m.shape) for m in split(answer.x)]


def independent_response(
    payoffs: Array, i: int, random_state: int = 0
) -> tuple[float, Array, bool]:
    """The hardest independent strategies of the others that a search finds.

    Parameters
    ----------
    payoffs : ndarray of shape (n, d_0, ..., d_{n-1})
        Payoffs.
    i : int
        Who stays out.
    random_state : int, default=0
        For the starts.

    Returns
    -------
    value : float
        max_b E u_i(b, .) against them.
    response : ndarray of shape (prod of their designs,)
        Their product distribution.
    exact : bool
        Whether no independent strategies are harder: always with up to two stakeholders, else
        where the value equals that of correlated responses.
    """
    T = np.moveaxis(payoffs[i], i, 0)
    bound, joint = minimax_response(payoffs, i)
    if T.ndim <= 2:
        return bound, joint, True
    rng = np.random.default_rng(random_state)
    shape = T.shape[1:]
    slack = 1e-9 * payoff_range(T)
    worst = np.unravel_index(int(T.max(axis=0).argmin()), shape)
    starts = [
        [player_rows(joint.reshape(shape), k).sum(axis=1) for k in range(len(shape))],
        [np.eye(d)[a] for d, a in zip(shape, worst, strict=True)],
        *([rng.dirichlet(np.ones(d)) for d in shape] for _ in range(STARTS)),
    ]
    best: tuple[float, list[Array]] = (np.inf, starts[0])
    for start in starts:
        mixtures = lowered(T, start)
        value, before = np.inf, np.inf
        while True:
            for k in range(len(shape)):
                value, mixtures[k] = hardest_mixture(against(T, mixtures, k))
            if value >= before - slack:
                break
            before = value
        if value < best[0]:
            best = (value, list(mixtures))
        if best[0] <= bound + slack:
            break
    response = np.ones(1)
    for mixture in best[1]:
        response = np.multiply.outer(response, mixture).ravel()
    return best[0], response, bool(best[0] <= bound + slack)


def given_response(value: Any, i: int, shape: tuple[int, ...]) -> Array:
    """A response given by hand, checked."""
    others = tuple(d for j, d in enumerate(shape) if j != i)
    array = np.asarray(value, dtype=float)
    if array.shape != others or not (array >= 0).all() or abs(array.sum() - 1) > 1e-9:
        raise ValueError(
            f"punishment[{i}] must be a distribution of shape {others} over the others' designs, "
            f"got shape {array.shape} with sum {array.sum():.6g}"
        )
    return array.ravel()
