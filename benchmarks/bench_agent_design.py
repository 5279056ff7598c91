"""Meta-games and mediators: match logs, equilibrium programs, alpha-rank, the bootstrap.

Peers: OpenSpiel's alpha-rank, the correlated equilibrium's program in cvxpy, pygambit's enumeration
of equilibria, pandas' groupby for a log of matches.
"""

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

from equipoise.games import AgentDesignGame, CorrelatedMediator, MetaGameSolver, NormalFormGame
from equipoise.games.agent_design.deviations import (
    implementation_costs,
    obedience_rows,
    pure_equilibria,
)
from equipoise.games.agent_design.solver import extreme_correlated


def random_game(d: int, n: int = 2) -> np.ndarray:
    return np.random.RandomState(0).normal(size=(n, *(d,) * n))


def match_log(n_matches: int, d: int = 30) -> pd.DataFrame:
    rng = np.random.RandomState(0)
    names = np.array([f"agent {k}" for k in range(d)], dtype=object)
    return pd.DataFrame(
        {
            "match_id": np.repeat(np.arange(n_matches), 2),
            "stakeholder": np.tile(["row", "column"], n_matches),
            "design": names[rng.randint(d, size=2 * n_matches)],
            "payoff": rng.normal(size=2 * n_matches),
        }
    )


def grouped_means(frame: pd.DataFrame) -> np.ndarray:
    """Means by pivot and groupby, designs sorted by name."""
    designs = frame.pivot(index="match_id", columns="stakeholder", values="design")
    payoffs = frame.pivot(index="match_id", columns="stakeholder", values="payoff")
    table = payoffs.groupby([designs["row"], designs["column"]]).mean()
    return np.stack([table[name].unstack().to_numpy() for name in ("row", "column")])


def sorted_means(frame: pd.DataFrame) -> np.ndarray:
    game = AgentDesignGame(symmetric=False).fit(frame)
    order = [np.argsort(np.array(own, dtype=str)) for own in game.designs_]
    return game.payoffs_[:, order[0]][:, :, order[1]]


def report(frame: pd.DataFrame) -> str:
    answer = AgentDesignGame(symmetric=False).fit(frame).explain()
    return str(answer) + answer._repr_html_()


def correlated_program(u: np.ndarray) -> float:
    policy = extreme_correlated(AgentDesignGame.from_payoffs(u), "ce", "utilitarian", True)
    return float((u.sum(axis=0) * policy).sum())


def correlated_in_cvxpy(u: np.ndarray) -> Callable[[], float]:
    import cvxpy as cp

    def solve() -> float:
        d = u.shape[1]
        pi = cp.Variable((d, d), nonneg=True)
        conditions = [cp.sum(pi) == 1]
        for r in range(d):
            conditions.append((u[0] - u[0][r]) @ pi[r] <= 0)
            conditions.append((u[1].T - u[1][:, r]) @ pi[:, r] <= 0)
        problem = cp.Problem(cp.Maximize(cp.sum(cp.multiply(u.sum(axis=0), pi))), conditions)
        return float(problem.solve(solver=cp.HIGHS))

    return solve


def open_spiel_alpha_rank(u: np.ndarray, alpha: float, m: int) -> Callable[[], np.ndarray]:
    from open_spiel.python.egt import alpharank

    def solve() -> np.ndarray:
        found = alpharank.compute([u[0], u[1]], m=m, alpha=alpha)
        return np.asarray(found[2])

    return solve


def gambit_extremes(u: np.ndarray) -> Callable[[], np.ndarray]:
    import pygambit

    game = NormalFormGame(u).to_pygambit()

    def solve() -> np.ndarray:
        welfare = []
        for profile in pygambit.nash.enummixed_solve(game, rational=False).equilibria:
            x, y = (np.array([float(profile[s]) for s in p.strategies]) for p in game.players)
            welfare.append(float(x @ (u[0] + u[1]) @ y))
        return np.array([max(welfare), min(welfare)])

    return solve


def bootstrap(game: AgentDesignGame, n: int) -> float:
    stable = 0
    for block in game.bootstrap(n):
        for u in block:
            stable += int(pure_equilibria(u).sum())
            implementation_costs(u)
    return stable / n


def cases() -> Iterator[dict[str, Any]]:
    frame = match_log(500_000)
    yield {
        "name": "1e6 rows of matches to means and errors, 30x30 (pandas: means)",
        "ours": lambda: sorted_means(frame),
        "peer": lambda: grouped_means(frame),
        "repeats": 3,
    }
    yield {
        "name": "the same matches to the report, text and HTML",
        "ours": lambda: len(report(frame)),
        "repeats": 1,
    }
    for d, repeats in ((30, 3), (60, 1)):
        u = random_game(d)
        case = {
            "name": f"best correlated equilibrium {d}x{d} (cvxpy with HiGHS)",
            "ours": lambda u=u: correlated_program(u),
            "tolerance": 1e-6,
            "repeats": repeats,
        }
        if find_spec("cvxpy"):
            case["peer"] = correlated_in_cvxpy(u)
        yield case
    sixty = random_game(60)
    yield {
        "name": "the same 60x60 as a mediator: with status quo and certificate",
        "ours": lambda: CorrelatedMediator().fit(sixty).welfare_,
        "repeats": 1,
    }
    large = random_game(100)
    yield {
        "name": "rows of the correlated equilibrium's program 100x100",
        "ours": lambda: obedience_rows(large, "ce").nnz,
        "repeats": 3,
    }
    profiles = random_game(1000)
    yield {
        "name": "pure equilibria and subsidies of 1e6 profiles",
        "ours": lambda: (pure_equilibria(profiles), implementation_costs(profiles)),
    }
    u = random_game(30)
    case = {
        "name": "alpha-rank 30x30, alpha=1, m=50 (OpenSpiel)",
        "ours": lambda: MetaGameSolver("alpharank", alpha=1.0).fit(u).distributions_[0].ravel(),
        "repeats": 1,
        "tolerance": 1e-6,
    }
    if find_spec("pyspiel"):
        case["peer"] = open_spiel_alpha_rank(u, 1.0, 50)
    yield case
    many = random_game(100)
    yield {
        "name": "alpha-rank 100x100, alpha=1, m=50: sparse",
        "ours": lambda: MetaGameSolver("alpharank", alpha=1.0).fit(many).distributions_[0].sum(),
        "repeats": 1,
    }
    small = random_game(8)
    case = {
        "name": "best and worst mixed equilibrium 8x8 (pygambit enummixed)",
        "ours": lambda: MetaGameSolver("mixed").fit(small).welfare_,
        "repeats": 1,
        "tolerance": 1e-6,
    }
    if find_spec("pygambit"):
        case["peer"] = gambit_extremes(small)
    yield case
    ten = random_game(10)
    yield {
        "name": "best and worst mixed equilibrium 10x10",
        "ours": lambda: MetaGameSolver("mixed").fit(ten).welfare_,
        "repeats": 1,
    }
    pooled = AgentDesignGame(symmetric=True, random_state=0).fit(match_log(27_000))
    yield {
        "name": "1000 bootstrap replicates, 30x30 symmetric: equilibria and subsidies",
        "ours": lambda: bootstrap(pooled, 1000),
        "repeats": 1,
    }
