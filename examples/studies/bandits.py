"""Studies of bandits: scaling of both regrets, the price of an adversary who sees, noise, many arms.

    python -P examples/studies/bandits.py [--quick] [--output DIR] [--jobs N]

A table for each question is written as CSV and Markdown, with one figure. A table that is there already is kept,
so an interrupted study goes on where it stopped; delete the folder to start anew.
"""

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd

from equipoise.datasets import make_bandit_losses
from equipoise.games import (
    AdaptiveHideEnv,
    BanditOverBandit,
    Corral,
    DetectionAugmented,
    DiscountedUCB,
    Exp3,
    Exp3S,
    RestartOnDetect,
    SlidingWindowUCB,
    StaticDynamicBandit,
    StochasticSwitchingEnv,
    TrackAndExplore,
    TsallisINF,
    simulate,
)

A = 4
#: Worlds of the scaling tables; learners are judged by all of them.
KINDS = ("hidden", "decoy", "shorthid", "phase", "rotate", "random")


def field(T: int, S: int, n_arms: int = A) -> dict[str, Any]:
    """The learners; those in brackets are told S."""
    return {
        "static-dynamic": StaticDynamicBandit(n_arms, horizon=T),
        "track (S)": TrackAndExplore(n_arms, horizon=T, n_switches=S),
        "track (1)": TrackAndExplore(n_arms, horizon=T),
        "Exp3": Exp3(n_arms, horizon=T),
        "Exp3.S (S)": Exp3S(n_arms, horizon=T, n_switches=S),
        "Tsallis-INF": TsallisINF(n_arms),
        "Corral": Corral(n_arms, horizon=T),
        "bandit-over-bandit": BanditOverBandit(n_arms, horizon=T),
    }


def runs(
    learners: dict[str, Any], kind: str, T: int, S: int, n_tables: int, jobs: int, n_arms: int = A
) -> Iterator[dict[str, Any]]:
    """A row a learner: both regrets over their scales, means over tables and three seeds each."""
    static, dynamic = [], []
    for k in range(n_tables):
        losses = make_bandit_losses(kind, n_arms, T, S, random_state=k).losses
        result = simulate(learners, losses, 3, checkpoints=1, n_jobs=jobs, random_state=k)
        static.append(result.final("static").mean(axis=1) / np.sqrt(n_arms * T))
        dynamic.append(result.final("dynamic").mean(axis=1) / np.sqrt(S * n_arms * T))
    for j, name in enumerate(learners):
        row: dict[str, Any] = {"learner": name, "kind": kind, "A": n_arms, "T": T, "S": S}
        for regret, tables in (("static", static), ("dynamic", dynamic)):
            values = np.array(tables)[:, j]
            error = values.std(ddof=1) / np.sqrt(n_tables) if n_tables > 1 else 0.0
            row |= {regret: values.mean(), f"{regret} +-": 1.96 * error}
        yield row


def scaling_table(kind: str, quick: bool, jobs: int) -> pd.DataFrame:
    """Both regrets over T at S = 16, and over S at T = 80,000 (quick: smaller)."""
    horizons = (2000, 8000) if quick else (5000, 20_000, 80_000, 320_000)
    segments = (4, 16) if quick else (4, 16, 64, 256)
    middle = 8000 if quick else 80_000
    settings = [(T, 16) for T in horizons] + [(middle, S) for S in segments if S != 16]
    rows: list[dict[str, Any]] = []
    n_tables = (12 if kind == "random" else 4) // (4 if quick else 1)
    for T, S in settings:
        rows += runs(field(T, S), kind, T, S, n_tables, jobs)
    return pd.DataFrame(rows)


def slope(table: pd.DataFrame, axis: str) -> float:
    """Slope of log dynamic regret over log T or log S."""
    x = np.log(table[axis])
    return float(np.polyfit(x, np.log(table["dynamic"] * np.sqrt(table["S"] * table["T"])), 1)[0])


def verdict_table(scaling: pd.DataFrame) -> pd.DataFrame:
    """A row a learner: slopes of dynamic regret, and the worst static ratio."""
    middle = 80_000 if 80_000 in set(scaling["T"]) else 8000
    rows = []
    for name, own in scaling.groupby("learner", sort=False):
        row: dict[str, Any] = {"learner": name}
        for kind in ("hidden", "random"):
            of_kind = own[own["kind"] == kind]
            row[f"T-slope {kind}"] = slope(of_kind[of_kind["S"] == 16], "T")
            row[f"S-slope {kind}"] = slope(of_kind[of_kind["T"] == middle], "S")
        row["worst static"] = own["static"].max()
        slopes = [value for key, value in row.items() if "slope" in key]
        row["both optimal"] = bool(
            all(0.44 <= s <= 0.6 for s in slopes)
            and max(row["T-slope hidden"], row["T-slope random"]) <= 0.56
            and row["worst static"] <= 0.6
        )
        rows.append(row)
    return pd.DataFrame(rows)


def adversary_table(quick: bool) -> pd.DataFrame:
    """The hiding adversary against a replay of the tables that he made."""
    T = 8000 if quick else 80_000
    rows = []
    for S in (8, 32) if quick else (8, 32, 128, 512):
        found = []
        for seed in range(4 if quick else 12):
            env = AdaptiveHideEnv(A, T, S, random_state=seed)
            against = StaticDynamicBandit(A, horizon=T, random_state=seed).fit(env)
            replay = StaticDynamicBandit(A, horizon=T, random_state=1000 + seed).fit(env.losses_)
            n, still, moving = env.n_switches_, np.sqrt(A * T), np.sqrt(env.n_switches_ * A * T)
            found.append(
                [
                    n,
                    against.dynamic_regret_ / moving,
                    against.static_regret_ / still,
                    replay.dynamic_regret_ / moving,
                    replay.static_regret_ / still,
                ]
            )
        mean = np.mean(found, axis=0)
        names = ("segments", "dynamic", "static", "replay dynamic", "replay static")
        row = {"S": S, **dict(zip(names, mean, strict=True))}
        rows.append({**row, "adaptive / replay": row["dynamic"] / row["replay dynamic"]})
    return pd.DataFrame(rows)


def noise_table(quick: bool, jobs: int) -> pd.DataFrame:
    """Worlds outside the model: losses that alternate, and Bernoulli noise."""
    rows: list[dict[str, Any]] = []
    for T in (2000, 8000) if quick else (5000, 20_000, 80_000, 320_000):
        learners = {
            "regret matching": StaticDynamicBandit(A, horizon=T),
            "exp": StaticDynamicBandit(A, horizon=T, static_part="exp"),
            "Exp3": Exp3(A, horizon=T),
            "Tsallis-INF": TsallisINF(A),
        }
        for kind in ("alternating", "bernoulli"):
            rows += runs(learners, kind, T, 1, 4, jobs)
    return pd.DataFrame(rows).drop(columns=["dynamic", "dynamic +-"])


def jumping_noise_table(quick: bool, jobs: int) -> pd.DataFrame:
    """Bernoulli losses whose means jump: loss beyond the best mean of each round."""
    rows: list[dict[str, Any]] = []
    for T, S in ((8000, 1), (8000, 8)) if quick else ((80_000, 1), (20_000, 8), (80_000, 8)):
        learners = {
            "detection over UCB": DetectionAugmented(A, horizon=T),
            "detection over Tsallis-INF": DetectionAugmented(A, horizon=T, base=TsallisINF(A)),
            "Exp3.S (S)": Exp3S(A, horizon=T, n_switches=S),
            "sliding-window UCB (S)": SlidingWindowUCB(A, horizon=T, n_switches=S),
            "discounted UCB (S)": DiscountedUCB(A, horizon=T, n_switches=S),
            "restart on means": RestartOnDetect(A, horizon=T, detection="means"),
            "Tsallis-INF": TsallisINF(A),
            "static-dynamic exp": StaticDynamicBandit(
                A, horizon=T, static_part="exp", change_tol=np.inf
            ),
        }
        worlds = []
        for k in range(2 if quick else 6):
            means = np.random.default_rng(k).uniform(0.1, 0.9, size=(S, A))
            env = StochasticSwitchingEnv(means, [T // S] * S)
            result = simulate(learners, env, 4, 1, n_jobs=jobs, random_state=k, store_arms=True)
            gaps = np.repeat(means - means.min(axis=1, keepdims=True), T // S, axis=0)
            worlds.append(gaps[np.arange(T), result.arms].sum(axis=2).mean(axis=1))
        regrets = np.array(worlds) / np.sqrt(S * A * T)
        errors = 1.96 * regrets.std(axis=0, ddof=1) / np.sqrt(len(regrets))
        for name, value, error in zip(learners, regrets.mean(axis=0), errors, strict=True):
            rows.append({"learner": name, "T": T, "S": S, "dynamic": value, "dynamic +-": error})
    return pd.DataFrame(rows)


def arms_table(quick: bool, jobs: int) -> pd.DataFrame:
    """Sixteen arms."""
    T = 8000 if quick else 80_000
    rows: list[dict[str, Any]] = []
    for kind, S in (("hidden", 16), ("hidden", 256), ("decoy", 16), ("random", 256)):
        learners = {"static-dynamic": StaticDynamicBandit(16, horizon=T)}
        rows += runs(learners, kind, T, S, 4, jobs, n_arms=16)
    return pd.DataFrame(rows)


def figure(scaling: pd.DataFrame, output: Path) -> None:
    """Worst static and dynamic ratio of each learner over all settings."""
    import matplotlib.pyplot as plt

    from equipoise.plotting import COLORS, new_axes

    ax = new_axes()
    for name, own in scaling.groupby("learner", sort=False):
        x, y = own["dynamic"].max(), own["static"].max()
        ax.plot(x, y, "o", color=COLORS[name == "static-dynamic"])
        ax.annotate(name, (x, y), xytext=(5, 4), textcoords="offset points", fontsize=8)
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="largest dynamic regret / sqrt(S A T)",
        ylabel="largest static regret / sqrt(A T)",
        title="lower left: good at both, in every world",
    )
    ax.margins(x=0.15)
    ax.figure.savefig(output / "pareto.png", dpi=120)
    plt.close(ax.figure)


def markdown(table: pd.DataFrame) -> str:
    """The table in Markdown, numbers to three digits."""
    cells = [
        [f"{v:.3g}" if isinstance(v, float) else str(v) for v in row]
        for row in table.to_numpy(object)
    ]
    lines = [list(table.columns), ["---"] * len(table.columns), *cells]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="short horizons, few tables")
    parser.add_argument("--jobs", type=int, default=2, help="threads")
    default = Path("studies_output") / "bandits"
    parser.add_argument("--output", type=Path, default=default)
    arguments = parser.parse_args()
    mpl.use("Agg")
    output = arguments.output
    output.mkdir(parents=True, exist_ok=True)

    def scaling() -> pd.DataFrame:
        return pd.concat([pd.read_csv(output / f"scaling_{kind}.csv") for kind in KINDS])

    tables: dict[str, Callable[[], pd.DataFrame]] = {
        "adversary": lambda: adversary_table(arguments.quick),
        "noise": lambda: noise_table(arguments.quick, arguments.jobs),
        "jumping_noise": lambda: jumping_noise_table(arguments.quick, arguments.jobs),
        "arms": lambda: arms_table(arguments.quick, arguments.jobs),
        **{
            f"scaling_{kind}": partial(scaling_table, kind, arguments.quick, arguments.jobs)
            for kind in KINDS
        },
        "verdict": lambda: verdict_table(scaling()),
    }
    for name, make in tables.items():
        path = output / f"{name}.csv"
        if not path.exists():
            table = make()
            table.to_csv(path, index=False)
            (output / f"{name}.md").write_text(markdown(table))
        print(f"{name}\n{pd.read_csv(path).to_string(index=False)}\n", flush=True)
    if not (output / "pareto.png").exists():
        figure(scaling(), output)


if __name__ == "__main__":
    main()
