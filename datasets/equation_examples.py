"""Named systems of min and max equations, with their solutions.

Small ones on which well-known algorithms fail or take exponentially long, and two applications: a
game on a grid and an American option.
"""

from math import log
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch, check_random_state

from ..games.equations import LEMM

__all__ = [
    "make_american_option_lemm",
    "make_gridworld_game",
    "make_murty_lemm",
    "make_pi_cycle_lemm",
    "make_ssg_newton_cycle",
    "make_vi_divergent_lemm",
]


def make_murty_lemm(n: int) -> Bunch:
    """The family on which the least-index rule takes 2^n - 1 switches.

    ``z_i = max(0, 1 - 2 (z_{i+1} + ... + z_n))``, from the policy of all zeros in natural order.

    Parameters
    ----------
    n : int
        Number of nodes.

    Returns
    -------
    Bunch
        problem (LEMM with exact coefficients), value (n,), policy (n,).

    References
    ----------
    .. [1] K. G. Murty, "Computational complexity of complementary pivot methods", 1978.

    Examples
    --------
    >>> from equipoise.datasets import make_murty_lemm
    >>> from equipoise.games import SimplePolicyIteration
    >>> SimplePolicyIteration("least_index").fit(make_murty_lemm(5).problem).n_switches_
    31
    """
    if n < 1:
        raise ValueError(f"n={n} must be at least 1")
    nodes = [("max", [({}, 0), (dict.fromkeys(range(i + 1, n), -2), 1)]) for i in range(n)]
    value = np.zeros(n)
    value[-1] = 1.0
    policy = np.zeros(n, dtype=np.int64)
    policy[-1] = 1
    names = [f"z{i + 1}" for i in range(n)]
    return Bunch(problem=LEMM.from_nodes(nodes, names=names), value=value, policy=policy)


def make_pi_cycle_lemm() -> Bunch:
    """An absolutely halting system on which policy iteration cycles with period 3.

    Returns
    -------
    Bunch
        problem (LEMM), value (3,), policy (3,), and cycle, the policies that repeat.

    Examples
    --------
    >>> from equipoise.datasets import make_pi_cycle_lemm
    >>> print(make_pi_cycle_lemm().problem)
    x1 = max(0, 3 - 4/5*x3)
    x2 = max(-2 - 4/5*x3, 3)
    x3 = max(1 - 4/5*x2, -4/5*x1)
    """
    problem = LEMM.from_equations(
        ["x1 = max(0, 3 - 0.8*x3)", "x2 = max(-2 - 0.8*x3, 3)", "x3 = max(1 - 0.8*x2, -0.8*x1)"]
    )
    return Bunch(
        problem=problem,
        value=np.array([4.12, 3.0, -1.4]),
        policy=np.array([1, 1, 0]),
        cycle=np.array([[0, 1, 0], [1, 1, 1], [1, 0, 0]]),
    )


def make_vi_divergent_lemm() -> Bunch:
    """A halting system on which value iteration diverges: ``x^(3k) = (1 - 1.125^k, 0)``.

    Returns
    -------
    Bunch
        problem (LEMM), value (2,), policy (2,); both actions of node 0 tie at the solution.

    Examples
    --------
    >>> from equipoise.datasets import make_vi_divergent_lemm
    >>> make_vi_divergent_lemm().problem.classify().label
    'halting'
    """
    problem = LEMM.from_equations(
        ["x1 = max(2.5 - 1.5*x1 + 1.5*x2, 1.5 - 0.5*x1 + 1.5*x2)", "x2 = 0.5 - 0.5*x1"]
    )
    return Bunch(problem=problem, value=np.array([1.0, 0.0]), policy=np.array([0, 0]))


def make_ssg_newton_cycle() -> Bunch:
    """A two-player game on which switching both players at once cycles with period 3.

    Returns
    -------
    Bunch
        problem (LEMM), value (3,), policy (3,), and cycle, the policies that repeat.

    Examples
    --------
    >>> from equipoise.datasets import make_ssg_newton_cycle
    >>> make_ssg_newton_cycle().problem.weights().round(6).tolist()
    [10.0, 9.0, 10.0]
    """
    problem = LEMM.from_equations(
        [
            "x1 = max(-2 + 0.5*x1, -1 + 0.9*x3)",
            "x2 = max(0, 0.8*x1)",
            "x3 = min(-1 + 0.9*x2, 2 + 0.9*x1)",
        ]
    )
    return Bunch(
        problem=problem,
        value=np.array([-1.9, 0.0, -1.0]),
        policy=np.array([1, 0, 0]),
        cycle=np.array([[0, 0, 0], [1, 0, 1], [1, 1, 0]]),
    )


def make_gridworld_game(
    shape: tuple[int, int] = (10, 10),
    slip: float = 0.1,
    *,
    discount: float = 0.99,
    min_fraction: float = 0.3,
    pit_fraction: float = 0.05,
    random_state: Any = None,
) -> Bunch:
    """A token on a grid: the owner of its cell chooses a direction, which may slip sideways.

    The goal, in the last corner, is worth 1 to the maximiser, pits -1, and play ends there.

    Parameters
    ----------
    shape : (int, int), default=(10, 10)
        Rows and columns.
    slip : float, default=0.1
        Probability of each of the two sideways moves, at most 0.5.
    discount : float, default=0.99
        In (0, 1).
    min_fraction : float, default=0.3
        Probability that a cell belongs to the minimiser.
    pit_fraction : float, default=0.05
        Probability that a cell is a pit.
    random_state : int, RandomState or None, default=None
        Seed.

    Returns
    -------
    Bunch
        problem (LEMM, node ``r * columns + c`` for cell (r, c); actions right, down, left, up),
        owner (+1 or -1, of the grid's shape), pits (bool) and goal (node).

    Examples
    --------
    >>> from equipoise.datasets import make_gridworld_game
    >>> from equipoise.games import solve_lemm
    >>> made = make_gridworld_game((4, 5), random_state=0)
    >>> answer = solve_lemm(made.problem)
    >>> answer.success, round(float(answer.x[made.goal]), 6)
    (True, 1.0)
    """
    rows, columns = shape
    if rows < 1 or columns < 1 or rows * columns < 2:
        raise ValueError(f"shape={shape} must have at least two cells")
    if not 0 <= slip <= 0.5:
        raise ValueError(f"slip={slip!r} must lie between 0 and 0.5")
    if not 0 < discount < 1:
        raise ValueError(f"discount={discount!r} must lie strictly between 0 and 1")
    rng = check_random_state(random_state)
    n = rows * columns
    r, c = np.divmod(np.arange(n), columns)
    step_r, step_c = np.array([0, 1, 0, -1]), np.array([1, 0, -1, 0])
    reached = np.stack(
        [
            np.clip(r + dr, 0, rows - 1) * columns + np.clip(c + dc, 0, columns - 1)
            for dr, dc in zip(step_r, step_c, strict=True)
        ]
    )
    P = []
    for a in range(4):
        moves = [(a, 1 - 2 * slip), ((a + 1) % 4, slip), ((a + 3) % 4, slip)]
        P.append(
            sum(
                sp.csr_array((np.full(n, weight), (np.arange(n), reached[d])), shape=(n, n))
                for d, weight in moves
            )
        )
    owner = np.where(rng.uniform(size=n) < min_fraction, -1, 1)
    pits = rng.uniform(size=n) < pit_fraction
    pits[[0, n - 1]] = False
    ends: dict[int, float] = dict.fromkeys(np.flatnonzero(pits).tolist(), -1.0)
    ends[n - 1] = 1.0
    problem = LEMM.from_stochastic_game(P, np.zeros(n), owner, discount, ends)
    return Bunch(problem=problem, owner=owner.reshape(shape), pits=pits.reshape(shape), goal=n - 1)


def make_american_option_lemm(
    n: int = 400,
    *,
    strike: float = 100.0,
    rate: float = 0.05,
    volatility: float = 0.2,
    range_factor: float = 30.0,
) -> Bunch:
    """A perpetual American put on a logarithmic price grid: exercise, or wait.

    Waiting is worth the discounted mean of the two neighbours under the finite-difference
    Black-Scholes operator; the put of the continuous model has a closed form.

    Parameters
    ----------
    n : int, default=400
        Grid points.
    strike, rate, volatility : float
        The option and its market, all positive.
    range_factor : float, default=30.0
        Prices reach from strike / range_factor to strike * range_factor.

    Returns
    -------
    Bunch
        problem (LEMM; action 0 exercises, 1 waits), price (n,), payoff (n,), closed_form (n,)
        and boundary, the price below which exercise is optimal.

    References
    ----------
    .. [1] R. C. Merton, "Theory of rational option pricing", 1973.

    Examples
    --------
    >>> from equipoise.datasets import make_american_option_lemm
    >>> from equipoise.games import solve_lemm
    >>> made = make_american_option_lemm()
    >>> bool(abs(solve_lemm(made.problem).x - made.closed_form).max() < 0.1)
    True
    """
    for name, number in {"strike": strike, "rate": rate, "volatility": volatility}.items():
        if not number > 0:
            raise ValueError(f"{name}={number!r} must be positive")
    if n < 3:
        raise ValueError(f"n={n} must be at least 3")
    if not range_factor > 1:
        raise ValueError(f"range_factor={range_factor!r} must be above 1")
    grid = np.linspace(-log(range_factor), log(range_factor), n)
    price = strike * np.exp(grid)
    step = grid[1] - grid[0]
    diffusion, drift = volatility**2 / (2 * step**2), (rate - volatility**2 / 2) / (2 * step)
    if abs(drift) > diffusion:
        raise ValueError(f"n={n} is too coarse for volatility={volatility} and rate={rate}")
    up, down = diffusion + drift, diffusion - drift
    total = rate + up + down
    payoff = np.maximum(strike - price, 0)
    inner = np.arange(1, n - 1)
    wait = 1 + 2 * (inner - 1) + 1  # rows: 0 the left end, then (exercise, wait), the right end
    m = 2 * n - 2
    data = np.concatenate([np.full(n - 2, up / total), np.full(n - 2, down / total)])
    A = sp.csr_array(
        (data, (np.concatenate([wait, wait]), np.concatenate([inner + 1, inner - 1]))), shape=(m, n)
    )
    b = np.zeros(m)
    b[wait - 1] = payoff[inner]
    b[0] = payoff[0]
    sizes = np.full(n, 2)
    sizes[[0, -1]] = 1
    op = np.where(sizes > 1, 1, 0)
    problem = LEMM(A, b, np.concatenate([[0], np.cumsum(sizes)]), op)
    power = 2 * rate / volatility**2
    boundary = strike * power / (1 + power)
    waiting = (strike - boundary) * (np.maximum(price, boundary) / boundary) ** -power
    closed_form = np.where(price <= boundary, strike - price, waiting)
    return Bunch(
        problem=problem, price=price, payoff=payoff, closed_form=closed_form, boundary=boundary
    )
