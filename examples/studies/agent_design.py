"""Studies of agent design: mediators on stylised games, agents written by LLMs, tournaments, coverage.

    python -P examples/studies/agent_design.py [--quick] [--output DIR]

Tables are written as CSV and Markdown, with one figure. A table that is there already is kept, so an
interrupted study goes on where it stopped; delete the folder to start anew. The twelve tables of LLM
attitudes are read from $EQUIPOISE_STUDY_DATA/llm_attitudes (else ../shared/data/llm_attitudes), and
tournaments need the package axelrod; without them a part is left out, and says so.
"""

import argparse
import os
import re
from collections.abc import Callable
from importlib.util import find_spec
from itertools import combinations, product
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd

from equipoise.datasets import make_agent_design_matches
from equipoise.games import (
    AgentDesignGame,
    CertificationMediator,
    CorrelatedMediator,
    DelegationMediator,
    MetaGameSolver,
    ParetoMediator,
    SubsidyMediator,
    TransferMediator,
    compare_mediators,
    subsidy_frontier,
    technology_audit,
)

ATTITUDES = ("Aggressive", "Cooperative", "Neutral")


def symmetric(M: np.ndarray, designs: tuple[str, ...] | None = None) -> AgentDesignGame:
    M = np.asarray(M, dtype=float)
    names = None if designs is None else [designs] * 2
    return AgentDesignGame.from_payoffs(np.array([M, M.T]), designs=names)


def stylised_table() -> pd.DataFrame:
    """Every mediator on four games whose answers are known."""
    goods = np.empty((3, 2, 2, 2))
    for a in product(range(2), repeat=3):
        for i in range(3):
            goods[(i, *a)] = 1 + 2 * (3 - sum(a)) / 3 - (a[i] == 0)
    games = {
        "prisoners": symmetric(np.array([[3, 0], [5, 1]])),
        "chicken": symmetric(np.array([[6, 2], [7, 0]])),
        "stag hunt": symmetric(np.array([[4, 0], [3, 3]])),
        "public goods": AgentDesignGame.from_payoffs(goods),
    }
    tables = []
    for name, game in games.items():
        best = tuple(int(k) for k in np.argwhere(game.welfare() == game.welfare().max())[0])
        mediators = {
            "recommend": CorrelatedMediator(),
            "delegate, no threat": DelegationMediator("none"),
            "delegate": DelegationMediator(),
            "delegate, strong": DelegationMediator(stability="strong"),
            "Pareto": ParetoMediator(),
            "pay": SubsidyMediator(),
            "paid advice, half the price": SubsidyMediator(
                "correlated", budget=float(SubsidyMediator().fit(game).cost_) / 2
            ),
            "contract": TransferMediator(best),
            "ban": CertificationMediator(),
        }
        table = compare_mediators(game, mediators)
        tables.append(table.assign(game=name))
    columns = ["game", "mediator", "feasible", "welfare", "status_quo", "gain", "cost", "certified"]
    return pd.concat(tables)[columns]


def attitude_table(folder: Path) -> pd.DataFrame:
    """The twelve published tables: trap, dilemma or efficient, and what repairs them."""
    rows = []
    for file in sorted(folder.glob("*_matrices.txt")):
        block = re.search(r"Payoffs:?\s*\n.*\nindex.*\n((?:.*\n){3})", file.read_text())
        if block is None:
            raise ValueError(f"{file} holds no payoffs")
        M = np.array([line.split()[1:] for line in block.group(1).splitlines()], dtype=float)
        game = symmetric(M, ATTITUDES)
        found = MetaGameSolver("pure").fit(game)
        frontier = subsidy_frontier(game)
        anarchy, gap = found.price_of_anarchy_, found.welfare_gap_[1]
        verdict = "efficient" if found.welfare_gap_[0] <= 1e-9 else "mild trap"
        verdict = "trap" if anarchy > 1.2 else "dilemma" if gap > 1e-9 else verdict
        rows.append(
            {
                "table": file.name.removesuffix("_matrices.txt"),
                "equilibria": ", ".join(next(iter(s))[0] for s in found.solutions_),
                "PoA": anarchy,
                "PoS": found.price_of_stability_,
                "kind": verdict,
                "best CE": CorrelatedMediator().fit(game).welfare_,
                "delegated": DelegationMediator().fit(game).welfare_,
                "one ban": CertificationMediator(max_bans=1).fit(game).welfare_,
                "subsidy for the best": frontier["cost"].iloc[-1],
                "best": game.welfare().max(),
            }
        )
    return pd.DataFrame(rows)


def pool(n_strategies: int) -> list[str]:
    """The five classics, then others of axelrod that play fast, in its own order."""
    import axelrod as axl

    names = ["Cooperator", "Defector", "TitForTat", "Grudger", "WinStayLoseShift"]
    for strategy in axl.strategies:
        kind = strategy.classifier
        slow = kind["long_run_time"] or kind["manipulates_source"] or kind["inspects_source"]
        if not slow and strategy.__name__ not in names:
            names.append(strategy.__name__)
    return names[:n_strategies]


def tournament_table(sizes: dict[int, int]) -> pd.DataFrame:
    """Tournaments with noise: price of anarchy, price of repair, and how sure the equilibrium is.

    `sizes` maps numbers of strategies to matches of each ordered pair.
    """
    from equipoise.datasets import load_axelrod_metagame

    rows = []
    for size, noise in product(sizes, (0.0, 0.01, 0.05, 0.1)):
        game = load_axelrod_metagame(pool(size), 50, sizes[size], noise)
        game.random_state = 0
        found = MetaGameSolver("pure").fit(game)
        mask = np.array([pi > 0 for pi in found.distributions_]).any(axis=0)
        W = game.welfare()
        frontier = subsidy_frontier(game)
        near = frontier[frontier["welfare"] >= 0.9 * W.max()].iloc[0]
        same = []
        for block in game.bootstrap(200):
            for u in block:
                stable = np.ones(W.shape, dtype=bool)
                for i in range(2):
                    stable &= u[i] >= u[i].max(axis=i, keepdims=True)
                same.append((stable == mask).all())
        rows.append(
            {
                "strategies": size,
                "matches a pair": sizes[size],
                "noise": noise,
                "pure equilibria": int(mask.sum()),
                "worst": found.welfare_.min() if len(found.welfare_) else np.nan,
                "best equilibrium": found.welfare_.max() if len(found.welfare_) else np.nan,
                "best": W.max(),
                "subsidy for 90%": near["cost"],
                "subsidy for the best": frontier["cost"].iloc[-1],
                "same equilibria in replicates": np.mean(same),
            }
        )
    return pd.DataFrame(rows)


def audit_table(n_pools: int) -> pd.DataFrame:
    """Pools of four strategies: does a strategy nobody deploys decide which noise is chosen?"""
    from equipoise.datasets import load_axelrod_metagame

    names = pool(10)
    games = {noise: load_axelrod_metagame(names, 50, 10, noise) for noise in (0.01, 0.05, 0.1)}
    rows = []
    for chosen in list(combinations(range(len(names)), 4))[:n_pools]:
        place = np.ix_(range(2), chosen, chosen)
        markets = {
            noise: AgentDesignGame.from_payoffs(
                game.payoffs_[place], designs=[[game.designs_[0][k] for k in chosen]] * 2
            )
            for noise, game in games.items()
        }
        table = technology_audit(markets)
        for _, row in table[table["poisoned"]].iterrows():
            rows.append({"pool": ", ".join(map(str, markets[0.01].designs_[0])), **row})
    found = pd.DataFrame(rows)
    found.attrs["pools"] = n_pools
    return found


def coverage_table(n_runs: int) -> pd.DataFrame:
    """How often certificates and intervals hold when the truth is known (30 matches a profile)."""
    held, covered, counted = 0, 0, 0
    for seed in range(n_runs):
        matches = make_agent_design_matches("random", n_designs=3, random_state=seed)
        truth = AgentDesignGame.from_payoffs(matches.attrs["payoffs"], weights=[1, 1])
        game = AgentDesignGame(symmetric=False, weights=[1, 1], random_state=seed).fit(matches)
        z = (0, 0)
        gain = max(truth.payoffs_[0, :, 0].max() - truth.payoffs_[0, 0, 0],
                   truth.payoffs_[1, 0].max() - truth.payoffs_[1, 0, 0])  # fmt: skip
        held += bool(gain <= game.certify_nash(z).max_violation + 1e-12)
    for seed in range(n_runs):
        matches = make_agent_design_matches("prisoners", n_designs=2, random_state=seed)
        game = AgentDesignGame(random_state=seed).fit(matches)
        price = []
        for block in game.bootstrap(300):
            for u in block:
                stable = (u[0] >= u[0].max(axis=0)) & (u[1] >= u[1].max(axis=1, keepdims=True))
                W = u.sum(axis=0)
                if stable.any() and W[stable].min() > 0:
                    price.append(W.max() / W[stable].min())
        low, high = np.percentile(price, [2.5, 97.5])
        counted += 1
        covered += bool(low <= 3.0 <= high)
    return pd.DataFrame(
        [
            ("95% Nash certificate", n_runs, held / n_runs),
            ("95% bootstrap interval of the price of anarchy", counted, covered / counted),
        ],
        columns=["statement", "runs", "held"],
    )


def markdown(frame: pd.DataFrame) -> str:
    rows = [
        [f"{x:.4g}" if isinstance(x, float) else str(x) for x in row] for row in frame.to_numpy()
    ]
    lines = [list(map(str, frame.columns)), ["---"] * frame.shape[1], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def keep(output: Path, name: str, make: Callable[[], pd.DataFrame]) -> pd.DataFrame:
    """Read a table, or make and write it."""
    file = output / f"{name}.csv"
    if file.exists() and file.stat().st_size > 1:
        return pd.read_csv(file)
    table = make()
    table.to_csv(file, index=False)
    file.with_suffix(".md").write_text(markdown(table))
    print(f"\n{name}\n{table.round(4).to_string(index=False)}", flush=True)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, a minute")
    parser.add_argument("--output", type=Path, default=Path("studies_output/agent_design"))
    arguments = parser.parse_args()
    output, quick = arguments.output, arguments.quick
    output.mkdir(parents=True, exist_ok=True)
    mpl.use("Agg")
    keep(output, "stylised", stylised_table)
    root = Path(__file__).parents[2]
    data = Path(os.environ.get("EQUIPOISE_STUDY_DATA", root.parent / "shared" / "data"))
    folder = data / "llm_attitudes"
    if folder.is_dir():
        table = keep(output, "attitudes", lambda: attitude_table(folder))
        draw(table, output / "agent_design.png")
    else:
        print(f"attitudes are left out: no folder {folder}")
    keep(output, "coverage", lambda: coverage_table(60 if quick else 500))
    if find_spec("axelrod") is None:
        print("tournaments are left out: axelrod isn't installed")
        return
    # Dilemmas between a hundred strategies take 10,000 pairs: fewer matches each.
    sizes = {5: 5} if quick else {5: 10, 8: 10, 20: 10, 30: 10, 100: 3}
    keep(output, "tournaments", lambda: tournament_table(sizes))
    keep(output, "audit", lambda: audit_table(20 if quick else 210))


def draw(table: pd.DataFrame, file: Path) -> None:
    """Welfare of the worst equilibrium and of each mediator, by table."""
    import matplotlib.pyplot as plt

    from equipoise.plotting import COLORS, new_axes

    ax = new_axes(8.0, 4.2)
    place = np.arange(len(table))
    ax.plot(place, table["best"] / table["PoA"], "s", color=COLORS[1], label="worst equilibrium")
    ax.plot(place, table["one ban"], "^", color=COLORS[2], label="one ban")
    ax.plot(place, table["delegated"], "o", mfc="none", color=COLORS[0], label="delegation")
    ax.set_xticks(place, table["table"], rotation=35, ha="right")
    ax.set_ylabel("welfare per turn")
    ax.legend(frameon=False)
    ax.figure.savefig(file, dpi=120)
    plt.close(ax.figure)


if __name__ == "__main__":
    main()
