"""Studies of harmonic games: parity of the dimension, regret in self-play and against adversaries.

    python -P examples/studies/harmonic_games.py [--quick] [--output DIR] [--games N]

Tables are written as CSV and Markdown, with two figures. A table that is there already is kept,
so an interrupted study goes on where it stopped; delete the folder to start anew.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from scipy.special import softmax

from equipoise.datasets import make_harmonic_game, make_mixture_game
from equipoise.games import (
    EquilibriumVariety,
    FTRLFlow,
    FTRLPlus,
    FTRLPlusLearner,
    HarmonicGame,
    NormalFormGame,
    harmonic_dimension,
)
from equipoise.games.normal_form.contraction import contract_payoffs
from equipoise.games.normal_form.ftrl_setup import make_rule
from equipoise.games.normal_form.rule import PlayerState, regret_bound

SHAPES = [(2, 2), (3, 3), (2, 2, 2), (2, 3, 2), (3, 3, 3)]


def draw_games(shape: tuple[int, ...], count: int) -> list[HarmonicGame]:
    """Random games, each harmonic for a random measure with weights in [0.5, 2]."""
    games = []
    for seed in range(count):
        rng = np.random.RandomState(seed)
        measure = [rng.uniform(0.5, 2.0, d) for d in shape]
        games.append(make_harmonic_game(shape, measure=measure, random_state=rng))
    return games


def quantiles(values: np.ndarray, name: str) -> dict[str, float]:
    return {f"{name} {q:.0%}": float(np.quantile(values, q)) for q in (0.5, 0.9, 1.0)}


def self_play_table(n_games: int, last: int) -> pd.DataFrame:
    """Largest regret at last / 10 and last rounds, and the gap; plain FTRL is the control."""
    rows = []
    for shape in SHAPES:
        games = draw_games(shape, n_games)
        for regularizer in ("entropic", "euclidean", "tsallis", "log_barrier"):
            for extrapolation in ("optimistic", "mirror-prox", "none"):
                solver = FTRLPlus(
                    regularizer,
                    extrapolation=extrapolation,
                    init="random",
                    random_state=0,
                    tol=0,
                    max_iter=last // 10,
                    record=None,
                ).fit(games)
                early = solver.regret_[-1].max(axis=1)
                solver.partial_fit(games, last - last // 10)
                late = solver.regret_[-1].max(axis=1)
                rows.append(
                    {
                        "shape": "x".join(map(str, shape)),
                        "regularizer": regularizer,
                        "extrapolation": extrapolation,
                        "games": n_games,
                        **quantiles(late, "regret"),
                        **quantiles(late - early, "increment"),
                        "ratio 50%": float(np.median(late / early)),
                        **quantiles(solver.nash_gap_[-1], "gap"),
                    }
                )
    return pd.DataFrame(rows)


def adversary_table(last: int) -> pd.DataFrame:
    """Slope of log regret over log T between last / 100 and last, against three adversaries."""
    signs = np.random.RandomState(0).choice([-1.0, 1.0], size=(last, 3))
    base = np.array([1.0, -1.0, 0.0])
    adversaries: dict[str, Callable[[int, np.ndarray], np.ndarray]] = {
        "alternating": lambda t, x: base if t % 2 == 0 else -base,
        "random signs": lambda t, x: signs[t],
        "against the likeliest": lambda t, x: np.where(np.arange(3) == x.argmax(), -1.0, 1.0),
    }
    marks = np.unique(np.geomspace(last // 100, last, 13).astype(int))
    rows = []
    for regularizer in ("entropic", "euclidean", "tsallis"):
        for name, payoffs in adversaries.items():
            learner, seen, below = FTRLPlusLearner(3, regularizer), [], True
            for t in range(last):
                learner.observe(payoffs(t, learner.act()))
                if t + 1 in marks:
                    seen.append(learner.regret)
                    below &= learner.regret <= learner.regret_bound
            slope = np.polyfit(np.log(marks), np.log(np.maximum(seen, 1e-3)), 1)[0]
            rows.append(
                {
                    "regularizer": regularizer,
                    "adversary": name,
                    "rounds": last,
                    "regret": seen[-1],
                    "bound": learner.regret_bound,
                    "slope": slope,
                    "below the bound": below,
                }
            )
    return pd.DataFrame(rows)


def long_table(n_games: int, last: int) -> pd.DataFrame:
    """Entropic, optimistic: the largest regret at last / 10 and last rounds of long play."""
    rows = []
    for shape in SHAPES:
        games = draw_games(shape, n_games)
        options = {"init": "random", "random_state": 0, "tol": 0, "record": None}
        solver = FTRLPlus(max_iter=last // 10, **options).fit(games)
        early = solver.regret_[-1].max(axis=1)
        late = solver.partial_fit(games, last - last // 10).regret_[-1].max(axis=1)
        rows.append(
            {
                "shape": "x".join(map(str, shape)),
                "games": n_games,
                "rounds": last,
                **quantiles(late, "regret"),
                **quantiles(late - early, "increment"),
                "increment at most 0.5": float(np.mean(late <= early + 0.5)),
                **quantiles(solver.nash_gap_[-1], "gap"),
            }
        )
    return pd.DataFrame(rows)


def baseline_regret(
    rule: str, payoffs: np.ndarray, shape: tuple[int, ...], marks: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Self-play of a baseline in all games (B, n, M) at once, from the uniform strategies.

    "Hedge" has steps 1 / sqrt(t); "RM+" is regret matching with regrets cut at zero, and
    "predictive RM+" adds the last payoffs as a prediction. Returns the largest regret of each game
    at both marks, shape (2, B), and the last NashConv.
    """
    B = len(payoffs)
    x = [np.full((B, d), 1.0 / d) for d in shape]
    Y = [np.zeros((B, d)) for d in shape]  # regret of each action
    plus = [np.zeros((B, d)) for d in shape]  # the same, cut at zero in each round
    seen = []
    for t in range(1, marks[1] + 1):
        g = contract_payoffs(payoffs, x, shape)
        own = [v - (v * x_i).sum(axis=1, keepdims=True) for v, x_i in zip(g, x, strict=True)]
        Y = [Y_i + r for Y_i, r in zip(Y, own, strict=True)]
        if t in marks:
            seen.append(np.max([Y_i.max(axis=1) for Y_i in Y], axis=0))
        gap = sum(r.max(axis=1) for r in own)
        if rule == "Hedge":
            x = [softmax(Y_i / np.sqrt(t + 1), axis=1) for Y_i in Y]
            continue
        plus = [np.maximum(R + r, 0.0) for R, r in zip(plus, own, strict=True)]
        guess = own if rule == "predictive RM+" else [0.0 * r for r in own]
        weight = [np.maximum(R + r, 0.0) for R, r in zip(plus, guess, strict=True)]
        total = [w.sum(axis=1, keepdims=True) for w in weight]
        x = [
            np.where(sum_ > 0, w / np.where(sum_ > 0, sum_, 1.0), 1.0 / w.shape[1])
            for w, sum_ in zip(weight, total, strict=True)
        ]
    return np.array(seen), gap


def baseline_table(n_games: int, last: int) -> pd.DataFrame:
    """FTRL+ beside Hedge, regret matching and optimistic Hedge, from the uniform strategies."""
    rows = []
    for shape in SHAPES:
        games = draw_games(shape, n_games)
        payoffs = np.stack([g.payoffs.reshape(g.n_players, -1) for g in games])
        found = {}
        for name, step in (
            ("FTRL+, adaptive", "adaptive"),
            ("optimistic Hedge, step of theory", "theory"),
            ("optimistic Hedge, step 0.1", 0.1),
        ):
            solver = FTRLPlus(step_size=step, tol=0, max_iter=last // 10, record=None).fit(games)
            early = solver.regret_[-1].max(axis=1)
            solver.partial_fit(games, last - last // 10)
            found[name] = early, solver.regret_[-1].max(axis=1), solver.nash_gap_[-1]
        for name in ("Hedge", "RM+", "predictive RM+"):
            (early, late), gap = baseline_regret(name, payoffs, shape, (last // 10, last))
            found[name] = early, late, gap
        for name, (early, late, gap) in found.items():
            rows.append(
                {
                    "shape": "x".join(map(str, shape)),
                    "learner": name,
                    "games": n_games,
                    **quantiles(late, "regret"),
                    **quantiles(late - early, "increment"),
                    **quantiles(gap, "gap"),
                }
            )
    return pd.DataFrame(rows)


def adversarial_games_table(n_games: int, last: int) -> pd.DataFrame:
    """One player in many random games against opponents who aren't bound to learn.

    The games have payoffs of root mean square 1 and d actions against d. The opponent answers what
    the learner just plays by the worst reply ("knows the strategy"), repeats what was worst so far
    ("worst of the past"), or draws at random. All games of a row are played at once.
    """
    rows = []
    marks = np.unique(np.geomspace(last // 100, last, 13).astype(int))
    for d in (2, 3, 5):
        A = np.random.RandomState(0).normal(size=(n_games, d, d))
        A /= np.sqrt(np.square(A).mean(axis=(1, 2), keepdims=True))
        for regularizer in ("entropic", "euclidean", "tsallis"):
            for name in ("knows the strategy", "worst of the past", "random"):
                rng = np.random.RandomState(1)
                rule = make_rule(regularizer, "adaptive", "optimistic", 1.0, 0.5)
                y0 = rule.regularizer.scores(np.full((n_games, d), 1.0 / d))
                state, past = PlayerState.start(y0), np.zeros((n_games, d))
                seen = []
                for t in range(last):
                    eta, prediction = state.step_size(rule), state.prediction(rule)
                    x = state.play(rule, eta, prediction)
                    earned = np.einsum("ka,kab->kb", x, A)
                    past += earned
                    reply = {
                        "knows the strategy": earned.argmin(axis=1),
                        "worst of the past": past.argmin(axis=1),
                        "random": rng.randint(d, size=n_games),
                    }[name]
                    g = np.take_along_axis(A, reply[:, None, None], axis=2)[:, :, 0]
                    state.absorb(rule, x, g, prediction)
                    if t + 1 in marks:
                        seen.append(state.Y.max(axis=1))
                fixed = (state.S, state.largest, state.spread, state.constant_step)
                bound = regret_bound(rule, y0, *fixed, last)
                regret = np.array(seen)  # (n_marks, n_games)
                slope = np.polyfit(np.log(marks), np.log(np.maximum(regret, 0.1)), 1)[0]
                rows.append(
                    {
                        "actions": d,
                        "regularizer": regularizer,
                        "opponent": name,
                        "games": n_games,
                        **quantiles(regret[-1] / np.sqrt(last), "regret / sqrt(T)"),
                        **quantiles(slope, "slope"),
                        **quantiles(regret[-1] / bound, "regret / bound"),
                    }
                )
    return pd.DataFrame(rows)


def curve_table(n_games: int, n_starts: int) -> pd.DataFrame:
    """Do 2x2x2 runs end on the traced curve, and does the end depend on how one learns?"""
    rows = []
    for seed in range(n_games):
        game = make_harmonic_game((2, 2, 2), random_state=seed)
        variety = EquilibriumVariety(step=0.002).fit(game)
        curve = np.stack([x[:, 0] for x in variety.branches_[0]], axis=1)
        ends = {}
        for regularizer in ("entropic", "euclidean"):
            for extrapolation in ("optimistic", "mirror-prox"):
                solver = FTRLPlus(
                    regularizer,
                    extrapolation=extrapolation,
                    init="random",
                    random_state=0,  # the same starts for all four
                    tol=0,
                    max_iter=20_000,
                    record=None,
                ).fit([game] * n_starts)
                points = np.stack([x[:, 0] for x in solver.strategies_], axis=1)
                ends[regularizer, extrapolation] = points
        found = np.array([distance_to(curve, z) for z in np.concatenate(list(ends.values()))])
        base = ends["entropic", "optimistic"]
        rows.append(
            {
                "seed": seed,
                "runs": len(found),
                "distance 50%": float(np.median(found)),
                "distance 100%": float(found.max()),
                "spread over starts": float(np.linalg.norm(np.ptp(base, axis=0))),
                "changed by the regulariser": moved(base, ends["euclidean", "optimistic"]),
                "changed by the extrapolation": moved(base, ends["entropic", "mirror-prox"]),
            }
        )
    return pd.DataFrame(rows)


def moved(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.median(np.linalg.norm(a - b, axis=1)))


def distance_to(curve: np.ndarray, point: np.ndarray) -> float:
    """Distance from a point to the polygon through a curve's points."""
    along = np.diff(curve, axis=0)
    share = ((point - curve[:-1]) * along).sum(axis=1) / np.square(along).sum(axis=1)
    nearest = curve[:-1] + np.clip(share, 0, 1)[:, None] * along
    return float(np.linalg.norm(nearest - point, axis=1).min())


def size_table(n_games: int) -> pd.DataFrame:
    """Potentialness of games with independent uniform payoffs, by shape."""
    rows = []
    for shape in [
        (2, 2),
        (3, 3),
        (5, 5),
        (10, 10),
        (20, 20),
        (2,) * 3,
        (2,) * 5,
        (2,) * 8,
        (4,) * 4,
    ]:
        rng = np.random.RandomState(0)
        found, shares = [], []
        for _ in range(n_games):
            parts = NormalFormGame(rng.uniform(size=(len(shape), *shape))).decompose()
            found.append(parts.potentialness)
            shares.append(parts.potential_share)
        dimensions = harmonic_dimension(shape)
        rows.append(
            {
                "shape": "x".join(map(str, shape)),
                "games": n_games,
                "potentialness 5%": float(np.quantile(found, 0.05)),
                "potentialness 50%": float(np.median(found)),
                "potentialness 95%": float(np.quantile(found, 0.95)),
                "share 50%": float(np.median(shares)),
                "share of dimensions": dimensions["potential"]
                / (dimensions["potential"] + dimensions["harmonic"]),
            }
        )
    return pd.DataFrame(rows)


def variety_table(n_games: int) -> pd.DataFrame:
    """Odd dimension: how often a curve reaches the boundary on both sides. Even: isolated?"""
    rows = []
    for shape in [
        (2, 2, 2),
        (2, 3),
        (3, 3, 2),
        (3, 4),
        (4, 3, 3),
        (2, 2),
        (3, 3),
        (2, 3, 2),
        (3, 3, 3),
    ]:
        games = draw_games(shape, n_games)
        found = [EquilibriumVariety().fit(game) for game in games]
        bent = []
        for variety in found:
            if variety.branches_:
                points = np.concatenate(variety.branches_[0], axis=1)
                singular = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
                bent.append(singular[1] / singular[0])
        rows.append(
            {
                "shape": "x".join(map(str, shape)),
                "D": games[0].dimension,
                "games": n_games,
                "dimension 1": np.mean([v.dimension_ == 1 for v in found]),
                "isolated": np.mean([v.dimension_ == 0 for v in found]),
                "both ends on the boundary": np.mean(
                    [bool(v.ends_) and set(sum(v.ends_, ())) == {"boundary"} for v in found]
                ),
                "bend 50%": np.median(bent) if bent else np.nan,
                "largest gap": max(v.nash_gap_ for v in found),
            }
        )
    return pd.DataFrame(rows)


def step_table(n_games: int) -> pd.DataFrame:
    """Steps and scales, 4000 rounds in 2x2x2 games: which need tuning?"""
    rows = []
    for scale in (1.0, 0.01):
        games = [NormalFormGame(scale * g.payoffs) for g in draw_games((2, 2, 2), n_games)]
        for step in ("adaptive", "scale_free", 0.1, 5.0):
            solver = FTRLPlus(
                step_size=step, init="random", random_state=0, tol=0, max_iter=4000, record=None
            ).fit(games)
            regret = solver.regret_[-1].max(axis=1) / scale
            rows.append(
                {
                    "payoffs times": scale,
                    "step size": str(step),
                    **quantiles(regret, "regret / scale"),
                    **quantiles(solver.nash_gap_[-1] / scale, "gap / scale"),
                }
            )
    return pd.DataFrame(rows)


def flow_table(n_games: int) -> pd.DataFrame:
    """Continuous time, entropic, t = 200: energy drift and returns."""
    rows = []
    for shape in [(2, 2), (2, 2, 2), (3, 3)]:
        flows = [
            FTRLFlow(t_max=200.0, random_state=k, n_points=8000).fit(game)
            for k, game in enumerate(draw_games(shape, n_games))
        ]
        drifts = np.array([flow.energy_drift_ for flow in flows])
        back = [len(flow.return_times(0.05)) > 0 for flow in flows]
        rows.append(
            {
                "shape": "x".join(map(str, shape)),
                "games": n_games,
                **quantiles(drifts, "drift"),
                "returned within 0.05": np.mean(back),
            }
        )
    return pd.DataFrame(rows)


def mixture_table(n_games: int) -> pd.DataFrame:
    """Games between conflict and common interest: does FTRL+ converge in each?"""
    rows = []
    for potentialness in (0.0, 0.25, 0.5, 0.75, 1.0):
        games = [make_mixture_game((3, 3), potentialness, random_state=k) for k in range(n_games)]
        solver = FTRLPlus(init="random", random_state=0, tol=0, max_iter=10_000, record=None)
        gaps = solver.fit(games).nash_gap_[-1]
        rows.append(
            {
                "potentialness": potentialness,
                "games": n_games,
                "gap below 1e-3": np.mean(gaps < 1e-3),
                **quantiles(gaps, "gap"),
            }
        )
    return pd.DataFrame(rows)


def figure(output: Path) -> None:
    """Regret over rounds, FTRL+ and plain FTRL, median and 90% over 100 games 3x3x3."""
    import matplotlib.pyplot as plt

    from equipoise.plotting import COLORS, new_axes

    ax = new_axes()
    games = draw_games((3, 3, 3), 100)
    names = {"optimistic": "FTRL+", "none": "plain FTRL"}
    for (extrapolation, name), color in zip(names.items(), COLORS, strict=False):
        solver = FTRLPlus(
            extrapolation=extrapolation, init="random", random_state=0, tol=0, record=40
        ).fit(games)
        regret = solver.regret_.max(axis=2)
        ax.plot(solver.rounds_, np.median(regret, axis=1), color=color, label=name)
        low, high = np.quantile(regret, [0.1, 0.9], axis=1)
        ax.fill_between(solver.rounds_, low, high, color=color, alpha=0.2)
    ax.set(xscale="log", yscale="log", xlabel="round", ylabel="largest regret of a player")
    ax.legend(frameon=False)
    ax.figure.savefig(output / "regret.png", dpi=120)
    plt.close(ax.figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few games, few rounds")
    parser.add_argument("--games", type=int, default=None, help="games a row; default 100, quick 6")
    default = Path("studies_output") / "harmonic_games"
    parser.add_argument("--output", type=Path, default=default)
    arguments = parser.parse_args()
    mpl.use("Agg")
    arguments.output.mkdir(parents=True, exist_ok=True)
    n = arguments.games or (6 if arguments.quick else 100)
    last = 1000 if arguments.quick else 10_000
    tables: dict[str, Callable[[], Any]] = {
        "variety": lambda: variety_table(n),
        "baselines": lambda: baseline_table(n, last),
        "adversaries": lambda: adversary_table(last),
        "adversarial_games": lambda: adversarial_games_table(3 * n, last),
        "curves": lambda: curve_table(max(2, n // 20), 2 * n),
        "sizes": lambda: size_table(n),
        "steps": lambda: step_table(n),
        "flow": lambda: flow_table(max(2, n // 5)),
        "mixture": lambda: mixture_table(n),
        "long_play": lambda: long_table(n, 10 * last),
        "self_play": lambda: self_play_table(n, last),
    }
    for name, make in tables.items():
        path = arguments.output / f"{name}.csv"
        if not path.exists():
            table = make()
            table.to_csv(path, index=False)
            (arguments.output / f"{name}.md").write_text(markdown(table))
        print(f"{name}\n{pd.read_csv(path).to_string(index=False)}\n", flush=True)
    if not (arguments.output / "regret.png").exists():
        figure(arguments.output)


def markdown(table: pd.DataFrame) -> str:
    """The table in Markdown, numbers to three digits."""
    cells = [
        [f"{v:.3g}" if isinstance(v, float) else str(v) for v in row]
        for row in table.to_numpy(object)
    ]
    lines = [list(table.columns), ["---"] * len(table.columns), *cells]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


if __name__ == "__main__":
    main()
