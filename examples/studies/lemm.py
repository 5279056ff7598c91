"""Study: which algorithm converges on which class of min and max equations, and how fast.

    python -P examples/studies/lemm.py            minutes
    python -P examples/studies/lemm.py --quick    a small version

Five tables: success of each method on each class and on the named counterexamples (a), sweeps
against diagonal rescaling (b), switches against size (c), the way through the stochastic game (d),
and the time that a game on a grid takes (e). Each part that is on disk already is not run again.
"""

import argparse
import itertools
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.stats import binomtest
from sklearn.exceptions import ConvergenceWarning
from tqdm.auto import tqdm

from equipoise.datasets import (
    make_gridworld_game,
    make_lemm,
    make_murty_lemm,
    make_pi_cycle_lemm,
    make_ssg_newton_cycle,
    make_vi_divergent_lemm,
)
from equipoise.games import (
    LEMM,
    PolicyIteration,
    SimplePolicyIteration,
    ValueIteration,
    solve_lemm,
)
from equipoise.plotting import COLORS

KINDS = ["mdp", "ssg", "branching", "absolutely_halting", "halting", "w"]


def methods(made: dict, kind: str) -> dict[str, Callable[[], object]]:
    """The compared methods; those that need weights only where there are some."""
    two_players = kind in ("ssg", "branching", "game")
    switching = PolicyIteration(
        "hoffman_karp" if two_players else "simultaneous", on_cycle="return"
    )
    found = {
        "value iteration": ValueIteration("jacobi", relative=True, tol=1e-9, max_iter=3000),
        "policy iteration": switching,
        "least-index rule": SimplePolicyIteration("least_index"),
        "parametric rule": SimplePolicyIteration(random_state=0),
    }
    if made.get("weights") is not None:
        found["safeguarded"] = PolicyIteration("safeguarded")
    return found


def solved(solver: object, made: dict) -> bool:
    solver.fit(made["problem"])
    scale = 1 + np.abs(made["value"]).max()
    return bool(solver.converged_ and np.abs(solver.value_ - made["value"]).max() < 1e-6 * scale)


def dense_signed(seed: int) -> dict:
    """Tight systems near the boundary of absolute halting, where policy iteration may cycle."""
    rng = np.random.RandomState(seed)
    A = rng.uniform(-1, 1, size=(16, 8))
    A *= 0.98 / np.abs(A).sum(axis=1, keepdims=True)
    problem = LEMM(A, rng.normal(size=16), np.arange(0, 17, 2), [1] * 8)
    return {
        "problem": problem,
        "value": solve_lemm(problem).x,
        "weights": np.ones(8),
    }


def convergence_map(n_instances: int) -> pd.DataFrame:
    """(a) Success rates with Clopper-Pearson intervals."""
    cycling, diverging = make_pi_cycle_lemm(), make_vi_divergent_lemm()
    named = {
        "named: policy iteration cycles": ({**cycling, "weights": np.ones(3)}, "signed"),
        "named: value iteration diverges": (diverging, "signed"),
        "named: game": ({**make_ssg_newton_cycle(), "weights": np.ones(3)}, "game"),
    }
    rows = []

    def note(label: str, name: str, wins: int, total: int) -> None:
        interval = binomtest(wins, total).proportion_ci()
        rows.append(
            {
                "class": label,
                "method": name,
                "solved": wins,
                "of": total,
                "low": interval.low,
                "high": interval.high,
            }
        )

    for label, (made, kind) in named.items():
        for name, solver in methods(made, kind).items():
            # All starts: success may depend on where one begins.
            starts = list(itertools.product((0, 1), repeat=int((made["problem"].op != 0).sum())))
            wins = 0
            for start in starts:
                policy = np.zeros(made["problem"].n, dtype=int)
                policy[made["problem"].op != 0] = start
                if name == "value iteration":
                    # A policy's value may be the solution already: start at another point.
                    solver.fit(made["problem"], x_init=policy.astype(float))
                else:
                    solver.fit(made["problem"], policy_init=policy)
                near = np.abs(solver.value_ - made["value"]).max() < 1e-6
                wins += bool(solver.converged_ and near)
            note(label, name, wins, len(starts))
    for kind in [*KINDS, "dense signed, row sums 0.98"]:
        counts: dict[str, int] = {}
        for seed in tqdm(range(n_instances), desc=f"a: {kind}"):
            if kind.startswith("dense"):
                made = dense_signed(seed)
            else:
                made = make_lemm(8, 2, kind=kind, random_state=seed)
            for name, solver in methods(made, kind).items():
                counts[name] = counts.get(name, 0) + solved(solver, made)
        for name, wins in counts.items():
            note(kind, name, wins, n_instances)
    return pd.DataFrame(rows)


def rescaling(n_instances: int) -> pd.DataFrame:
    """(b) The same systems in other units: sweeps, and what each stopping rule leaves."""
    rows = []
    for sigma in (0.0, 1.0, 2.0, 3.0):
        for seed in range(n_instances):
            made = make_lemm(60, kind="absolutely_halting", rescale_sigma=sigma, random_state=seed)
            bound = ValueIteration(weights=made.weights, relative=True, check_every=1, tol=1e-6)
            bound.fit(made.problem)
            plain = ValueIteration(weights=None, check_every=1, tol=1e-6).fit(made.problem)
            error = np.abs(plain.value_ - made.value).max()
            true = (np.abs(bound.value_ - made.value) / made.weights).max()
            scale = max(1.0, (np.abs(made.value) / made.weights).max())
            rows.append(
                {
                    "sigma": sigma,
                    "sweeps": bound.n_iter_,
                    "bound holds": bool(true <= 1e-6 * scale * 1.01),
                    "error over tol, residual rule": error / 1e-6,
                }
            )
    return pd.DataFrame(rows)


def switches(sizes: list[int], n_instances: int, murty: int) -> pd.DataFrame:
    """(c) Switches of the two rules."""
    rows = []
    for n in tqdm(sizes, desc="c"):
        for seed in range(n_instances):
            made = make_lemm(n, 2, kind="absolutely_halting", random_state=seed)
            for rule in ("parametric", "least_index"):
                chosen = {"random_state": seed} if rule == "parametric" else {}
                solver = SimplePolicyIteration(rule, max_switches=20000, **chosen)
                count = solver.fit(made.problem).n_switches_
                rows.append({"family": "random", "rule": rule, "n": n, "switches": count})
    for n in range(2, murty + 1):
        for rule in ("parametric", "least_index"):
            chosen = {"random_state": 0} if rule == "parametric" else {}
            solver = SimplePolicyIteration(rule, **chosen).fit(make_murty_lemm(n).problem)
            rows.append({"family": "murty", "rule": rule, "n": n, "switches": solver.n_switches_})
    return pd.DataFrame(rows)


def game_route(n_instances: int) -> pd.DataFrame:
    """(d) Branching process -> stochastic game -> values -> back."""
    rows = []
    for seed in range(n_instances):
        made = make_lemm(20, 3, kind="branching", random_state=seed)
        form = made.problem.to_stochastic_game()
        u = solve_lemm(form.game).x
        scale = 1 + np.abs(made.value).max()
        error = np.abs(form.back(u) - made.value).max() / scale
        rows.append({"seed": seed, "error": error, "lowest": u.min(), "highest": u.max()})
    return pd.DataFrame(rows)


def grid_games(sides: list[int]) -> pd.DataFrame:
    """(e) Seconds for two-player games on square grids, to an error of 1e-6."""
    solvers: dict[str, Callable[[LEMM], np.ndarray]] = {
        "solve_lemm": lambda p: solve_lemm(p, tol=1e-6).x,
        "Gauss-Seidel": lambda p: ValueIteration(tol=1e-6).fit(p).value_,
        "Jacobi": lambda p: ValueIteration("jacobi", tol=1e-6).fit(p).value_,
        "interval": lambda p: ValueIteration("interval", tol=1e-6).fit(p).value_,
        "Hoffman-Karp": lambda p: PolicyIteration("hoffman_karp").fit(p).value_,
        "safeguarded": lambda p: PolicyIteration("safeguarded").fit(p).value_,
    }
    for solve in solvers.values():  # compilation
        solve(make_gridworld_game((5, 5), random_state=0).problem)
    rows = []
    for side in tqdm(sides, desc="e"):
        problem = make_gridworld_game((side, side), random_state=0).problem
        exact = solvers["Hoffman-Karp"](problem)
        for name, solve in solvers.items():
            start = time.perf_counter()
            x = solve(problem)
            seconds = time.perf_counter() - start
            error = np.abs(x - exact).max()
            rows.append({"side": side, "method": name, "seconds": seconds, "error": error})
    return pd.DataFrame(rows)


def slope(frame: pd.DataFrame, rule: str) -> float:
    """Of log mean switches against log n, on random systems."""
    means = frame.query("family == 'random' and rule == @rule").groupby("n")["switches"].mean()
    return float(np.polyfit(np.log(means.index), np.log(means), 1)[0])


def draw(success: pd.DataFrame, counts: pd.DataFrame) -> plt.Figure:
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 5), layout="constrained")
    table = success.assign(rate=success["solved"] / success["of"])
    table = table.pivot(index="class", columns="method", values="rate")
    table = table.loc[list(dict.fromkeys(success["class"]))]
    image = left.imshow(table, cmap="cividis", vmin=0, vmax=1, aspect="auto")
    for (i, j), rate in np.ndenumerate(table.to_numpy()):
        text = "n/a" if np.isnan(rate) else f"{rate:.0%}"
        left.text(j, i, text, ha="center", va="center", color="black" if rate > 0.5 else "white")
        if np.isnan(rate):
            left.texts[-1].set_color("0.5")
    left.set_xticks(range(table.shape[1]), table.columns, rotation=20, ha="right")
    left.set_yticks(range(table.shape[0]), table.index)
    left.set_title("Share of instances solved")
    figure.colorbar(image, ax=left)
    styles = itertools.product(("random", "murty"), ("parametric", "least_index"))
    for color, (family, rule) in zip(COLORS, styles, strict=False):
        part = counts.query("family == @family and rule == @rule").groupby("n")["switches"].mean()
        right.loglog(part.index, part, "o-", ms=4, color=color, label=f"{family}, {rule}")
    right.set(xlabel="nodes", ylabel="switches", title="Switches of the simple rules")
    right.spines[["top", "right"]].set_visible(False)
    right.legend(frameon=False)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few instances")
    parser.add_argument("--output", type=Path, default=Path("studies_output/lemm"))
    arguments = parser.parse_args()
    folder = arguments.output / ("quick" if arguments.quick else "full")
    folder.mkdir(parents=True, exist_ok=True)
    quick = arguments.quick
    sizes = [10, 20, 40] if quick else [10, 20, 50, 100, 200]
    parts: dict[str, Callable[[], pd.DataFrame]] = {
        "convergence": lambda: convergence_map(10 if quick else 200),
        "rescaling": lambda: rescaling(3 if quick else 30),
        "switches": lambda: switches(sizes, 3 if quick else 20, 8 if quick else 12),
        "game_route": lambda: game_route(5 if quick else 100),
        "grid_games": lambda: grid_games([10, 20] if quick else [25, 50, 100]),
    }
    found = {}
    warnings.simplefilter("ignore", ConvergenceWarning)
    for name, compute in parts.items():
        path = folder / f"{name}.csv"
        if not path.exists():
            compute().to_csv(path, index=False)
        found[name] = pd.read_csv(path)
    draw(found["convergence"], found["switches"]).savefig(folder / "lemm.png", dpi=120)
    by_sigma = found["rescaling"].groupby("sigma").mean(numeric_only=False)
    lines = [
        "## Share of instances solved",
        found["convergence"].to_string(index=False),
        "## Rescaling",
        by_sigma.to_string(),
        "## Slope of log switches against log n (random systems)",
        *(
            f"{rule}: {slope(found['switches'], rule):.2f}"
            for rule in ("parametric", "least_index")
        ),
        "## Murty's family, least-index rule",
        found["switches"].query("family == 'murty'").to_string(index=False),
        "## Through the stochastic game",
        f"largest relative error {found['game_route']['error'].max():.1e}",
        "## Games on a grid (seconds, largest distance from Hoffman-Karp's values)",
        found["grid_games"].to_string(index=False),
    ]
    (folder / "lemm.md").write_text("\n\n".join(lines) + "\n")
    print("\n\n".join(lines))


if __name__ == "__main__":
    main()
