"""Study: when an AI assistant helps a decision, and whether trust can be recovered from decisions.

    python -P examples/studies/human_ai.py --quick
    python -P examples/studies/human_ai.py --output studies_output/human_ai

Nine parts, each written to its own CSV file when it is done; a part whose file exists is read, not run again.
The five claims are checked on phase diagrams; ChatBench's published rates are turned into trust with four
alternatives (its file isn't needed: the rates are, and what is assumed is written beside them), and a synthetic
twin of its sizes and rates is fitted; known parameters are recovered from simulated trials, with coverage;
recommended policies are valued at the truth.
If the environment variable EQUIPOISE_STUDY_DATA names a folder with chatbench.csv, its rates are used too.
"""

import argparse
import os
import warnings
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import binomtest
from tqdm.auto import tqdm

from equipoise.datasets import fetch_chatbench, make_human_ai_trials
from equipoise.estimators import HumanAITeamModel, fit_from_counts
from equipoise.games import (
    human_accuracy,
    phase_diagram,
    policy_accuracy,
    regime_boundaries,
    team_accuracy,
)


def claims(quick: bool) -> pd.DataFrame:
    """The five claims on grids, and by derivatives of the closed boundaries."""
    size = 61 if quick else 201
    rows = []
    for recommendation in ("probabilistic", "binary"):
        grids = {"ai_grid": np.linspace(0, 3, size), "overlap_grid": np.linspace(0, 1, size)}
        by_trust = {
            t: phase_diagram(0.5, trust=t, recommendation=recommendation, **grids)
            for t in (0.25, 1.0, 1.5)
        }
        area = {t: diagram.area() for t, diagram in by_trust.items()}
        width = (by_trust[1.0].codes == 1).sum(axis=1)[1:-1]
        last = by_trust[1.0].codes[grids["overlap_grid"] >= 0.6, -1]
        checks = {
            "C1 neglect can hurt": (area[1.0]["impairment"], area[1.0]["impairment"] > 0),
            "C2 a strong AI alone wins (a = 3, overlap >= 0.6)": (
                float(np.mean((last == 2) | (last == 0))),
                bool(np.isin(last, (0, 2)).all()),
            ),
            "C3 complementarity narrows with overlap": (
                float(width[0] - width[-1]) / size,
                bool((np.diff(width) <= 0).all()),
            ),
            "C4 under-trust: less impairment, more automation": (
                area[0.25]["automation"] - area[1.0]["automation"],
                area[0.25]["impairment"] < area[1.0]["impairment"]
                and area[0.25]["automation"] > area[1.0]["automation"],
            ),
            "C5 over-trust: the mirror image": (
                area[1.5]["impairment"] - area[1.0]["impairment"],
                area[1.5]["impairment"] > area[1.0]["impairment"]
                and area[1.5]["automation"] < area[1.0]["automation"],
            ),
        }
        for claim, (value, holds) in checks.items():
            rows.append({"advice": recommendation, "claim": claim, "value": value, "holds": holds})
    rho, tau = np.meshgrid(np.linspace(0.01, 0.99, 99), np.linspace(0.02, 2, 100))
    i, a = regime_boundaries(rho, tau)
    exact = {
        "C1 impairment exists for every overlap > 0, trust <= 2": (i > 0).all(),
        "C2 automation begins at a finite r for every overlap > 0": np.isfinite(a).all(),
        "C3 r_I rises and r_A falls with overlap": (np.diff(i, axis=1) > 0).all()
        and (np.diff(a, axis=1) < 0).all(),
        "C4, C5 both boundaries rise with trust": (np.diff(i, axis=0) >= 0).all()
        and (np.diff(a, axis=0) > 0).all(),
    }
    for claim, holds in exact.items():
        rows.append(
            {"advice": "closed form", "claim": claim, "value": np.nan, "holds": bool(holds)}
        )
    return pd.DataFrame(rows)


def chatbench_trust(quick: bool) -> pd.DataFrame:
    """Trust that turns .52 alone into .73 with the AI, by number of alternatives and the AI's accuracy."""
    rows = []
    rates = [("published summaries: .52 -> .73", 0.52, 0.73)]
    folder = os.environ.get("EQUIPOISE_STUDY_DATA")
    path = Path(folder) / "chatbench.csv" if folder else None
    if path is not None and path.is_file():
        data = fetch_chatbench(path)
        right, n = data.human_alone
        assisted = data.assisted
        rates.append(("file", right / n, assisted["right"].sum() / assisted["n"].sum()))
    for source, alone, together in rates:
        for K in (2, 4):

            def ability(p: float, K: int = K) -> float:
                return brentq(lambda d: human_accuracy(d, n_choices=K) - p, 1e-9, 10)

            for p_ai in (0.80, 0.85, 0.90):

                def gap(
                    log_tau: float,
                    K: int = K,
                    alone: float = alone,
                    p_ai: float = p_ai,
                    together: float = together,
                ) -> float:
                    team = team_accuracy(
                        ability(alone),
                        ability(p_ai),
                        0.0,
                        trust=np.exp(log_tau),
                        recommendation="binary",
                        n_choices=K,
                    )
                    return team - together

                trust = float(np.exp(brentq(gap, -9, 3)))
                rows.append(
                    {
                        "source": source,
                        "n_choices": K,
                        "p_ai": p_ai,
                        "trust": trust,
                        "undertrust_factor": 1 / trust,
                    }
                )
    return pd.DataFrame(rows)


def capability(p: float, K: int = 4) -> float:
    """The d at which one side alone is right with probability p."""
    return brentq(lambda d: human_accuracy(d, n_choices=K) - p, 1e-9, 10)


def chatbench_twin(quick: bool) -> pd.DataFrame:
    """SYNTHETIC: ChatBench's sizes and published rates, two models 25 points apart, one trust for both.

    The trust that turns .52 into .73 on average is simulated and fitted again, without and with a
    spread of trust over workers; what the same workers imply for other published rates is counted.
    """
    d, systems = capability(0.52), [capability(0.725), capability(0.975)]

    def gap(log_trust: float) -> float:
        options = {"trust": np.exp(log_trust), "recommendation": "binary", "n_choices": 4}
        return np.mean([team_accuracy(d, a, 0.0, **options) for a in systems]) - 0.73

    trust = float(np.exp(brentq(gap, -9, 3)))
    rows = []
    for spread in (0.0, 0.8):
        for seed in tqdm(range(5 if quick else 100), desc="twin", leave=False):
            options = {"recommendation": "binary", "n_choices": 4, "trust": trust}
            data = make_human_ai_trials(
                524, 14, d, systems, 0.0, trust_sd=spread, random_state=seed, **options
            )
            right, ai_right = data.y == data.y_true, data.advice == data.y_true
            first = data.initial == data.y_true
            cells = [
                [np.sum((data.system == g) & (right == t) & (ai_right == a)) for t, a in CELLS]
                for g in (0, 1)
            ]
            rng = np.random.default_rng(seed)
            model = fit_from_counts((rng.binomial(7148, 0.52), 7148), cells, n_choices=4)
            low, high = model.trust_ci_
            rows.append(
                {
                    "spread": spread,
                    "seed": seed,
                    "true_trust": trust,
                    "trust": model.trust_,
                    "factor": model.undertrust_factor_,
                    "pvalue": model.goodness_of_fit_["pvalue"],
                    "covered": low < trust < high,
                    "together": right.mean(),
                    "difference_with_users": right[data.system == 1].mean()
                    - right[data.system == 0].mean(),
                    "corrected": right[~first].mean(),
                    "misled": 1 - right[first].mean(),
                }
            )
    return pd.DataFrame(rows)


def two_stage(quick: bool) -> pd.DataFrame:
    """A population with median trust .25 and spread .8; coverage of the median's interval."""
    rows = []
    for seed in tqdm(range(5 if quick else 100), desc="two-stage", leave=False):
        data = make_human_ai_trials(100, 40, trust=0.25, trust_sd=0.8, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mixed = HumanAITeamModel(random_effects="trust").fit(data.X, data.y, groups=data.groups)
            pooled = HumanAITeamModel().fit(data.X, data.y)
        low, high = mixed.trust_ci_
        rows.append(
            {
                "seed": seed,
                "trust": mixed.trust_,
                "omega": mixed.trust_sd_,
                "pooled": pooled.trust_,
                "covered": low < 0.25 < high,
            }
        )
    return pd.DataFrame(rows)


def belief(quick: bool) -> pd.DataFrame:
    """Trust and believed overlap together, from two AI systems."""
    rows = []
    for trust in (0.25, 1.0):
        for seed in tqdm(range(5 if quick else 100), desc="belief", leave=False):
            data = make_human_ai_trials(
                100, 40, 1.0, [0.6, 1.8], 0.3, trust=trust, overlap_belief=0.3, random_state=seed
            )
            model = HumanAITeamModel(overlap_belief="fit").fit(
                data.X, data.y, relative_capability=data.relative_capability
            )
            low, high = model.trust_ci_
            rows.append(
                {
                    "true_trust": trust,
                    "seed": seed,
                    "trust": model.trust_,
                    "belief": model.overlap_belief_,
                    "covered": low < trust < high,
                }
            )
    return pd.DataFrame(rows)


def latent(quick: bool) -> pd.DataFrame:
    """ChatBench's sizes: 7148 answers alone, 3668 with each of two systems; synthetic twin."""
    rows = []
    for seed in tqdm(range(10 if quick else 200), desc="latent", leave=False):
        rng = np.random.default_rng(seed)
        h, rho, tau = 0.4, 0.3, 0.25
        cells = []
        for a in (0.6, 1.2):
            y = rng.choice([-1.0, 1.0], 3668)
            e, other = rng.standard_normal((2, 3668))
            x_h, x_a = y * h + e, y * a + rho * e + np.sqrt(1 - rho**2) * other
            k = tau * np.log(ndtr(a) / ndtr(-a)) / (2 * h)
            team = np.sign(x_h + k * np.sign(x_a)) == y
            ai = np.sign(x_a) == y
            cells.append(
                [np.sum(team & ai), np.sum(team & ~ai), np.sum(~team & ai), np.sum(~team & ~ai)]
            )
        model = fit_from_counts((rng.binomial(7148, ndtr(h)), 7148), cells)
        low, high = model.trust_ci_
        rows.append(
            {
                "seed": seed,
                "trust": model.trust_,
                "overlap": model.overlap_,
                "pvalue": model.goodness_of_fit_["pvalue"],
                "covered": low < tau < high,
            }
        )
    return pd.DataFrame(rows)


def binary_belief(quick: bool) -> pd.DataFrame:
    """Trust and believed overlap from two AI systems that only show a side."""
    rows = []
    for seed in tqdm(range(3 if quick else 60), desc="binary belief", leave=False):
        data = make_human_ai_trials(
            200,
            60,
            0.8,
            [0.6, 1.6],
            0.3,
            trust=0.6,
            overlap_belief=0.4,
            recommendation="binary",
            random_state=seed,
        )
        model = HumanAITeamModel(recommendation="binary", overlap_belief="fit", n_boot=2).fit(
            data.X, data.y, y_true=data.y_true, relative_capability=data.relative_capability
        )
        low, high = model.trust_ci_
        k = model.parameter_names_.index("overlap_belief")
        away = np.arctanh(model.overlap_belief_) - np.arctanh(0.4)
        rows.append(
            {
                "seed": seed,
                "trust": model.trust_,
                "belief": model.overlap_belief_,
                "covered": low < 0.6 < high,
                "belief_covered": abs(away) < 1.96 * model.cov_[k, k] ** 0.5,
            }
        )
    return pd.DataFrame(rows)


def difficulty(quick: bool) -> pd.DataFrame:
    """Latent trials of 200 cases that differ in difficulty, fitted with and without it."""
    h, a, rho, tau, spread, n_items, n_each = 0.7, 0.9, 0.2, 0.5, 0.6, 200, 60
    p = ndtr(a / np.sqrt(1 + spread**2))
    k = tau * np.log(p / (1 - p)) / (2 * h)
    rows = []
    for seed in tqdm(range(3 if quick else 60), desc="difficulty", leave=False):
        rng = np.random.default_rng(seed)
        item = np.repeat(np.arange(n_items), n_each)
        d, n = rng.standard_normal(n_items)[item], len(item)
        y = rng.choice([-1, 1], n)
        e_a, other = rng.standard_normal((2, n))
        ai = np.sign(a + spread * d + e_a)
        alone = np.arange(n) % 2 == 0
        x = h + spread * d + rho * e_a + np.sqrt(1 - rho**2) * other
        team = np.where(alone, np.sign(x), np.sign(x + k * ai))
        X = np.column_stack([np.zeros(n), np.where(alone, 0, y * ai)])
        row: dict[str, float] = {"seed": seed}
        for name, effects in (("plain", None), ("item", "item")):
            model = HumanAITeamModel(mode="latent", random_effects=effects, n_boot=2)
            model.fit(X, (y * team).astype(int), y_true=y, items=item)
            low, high = model.trust_ci_
            row |= {
                f"{name}_trust": model.trust_,
                f"{name}_overlap": model.overlap_,
                f"{name}_covered": low < tau < high,
            }
        rows.append(row)
    return pd.DataFrame(rows)


def policies(quick: bool) -> pd.DataFrame:
    """The recommended policy, valued at the truth, against always assisting."""
    settings = {"impairment": (0.6, 0.3, 0.7, 1.0), "automation": (0.5, 1.4, 0.5, 0.25)}
    deployable = ["human", "ai", "assist", "assist_confident", "defer", "defer_assist"]
    rows = []
    for name, (h, a, rho, tau) in settings.items():
        always = team_accuracy(h, a, rho, trust=tau)
        for seed in range(3 if quick else 30):
            data = make_human_ai_trials(100, 40, h, a, rho, trust=tau, random_state=seed)
            model = HumanAITeamModel(n_boot=50, random_state=0).fit(
                data.X, data.y, y_true=data.y_true
            )
            report = model.recommend_policy(policies=deployable)
            threshold = np.nan_to_num(report.to_frame()["threshold"].iloc[0])
            value = policy_accuracy(report.best, h, a, rho, trust=tau, threshold=threshold)
            rows.append(
                {
                    "setting": name,
                    "seed": seed,
                    "policy": report.best,
                    "value": value,
                    "gain": value - always,
                }
            )
    return pd.DataFrame(rows)


#: (team, AI) right or wrong, in the order of `fit_from_counts`.
CELLS = ((1, 1), (1, 0), (0, 1), (0, 0))

PARTS: dict[str, Callable[[bool], pd.DataFrame]] = {
    "claims": claims,
    "chatbench": chatbench_trust,
    "chatbench_twin": chatbench_twin,
    "two_stage": two_stage,
    "belief": belief,
    "latent": latent,
    "binary_belief": binary_belief,
    "difficulty": difficulty,
    "policies": policies,
}


#: What summaries of ChatBench publish, by column of the twin; the difference is given as 5 to 9 points.
PUBLISHED = {
    "together": 0.73,
    "difference_with_users": 0.07,
    "corrected": 0.54,
    "misled": 0.10,
}


def summary(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Mean, standard deviation and a 95 % interval of what was recovered; Wilson's for shares."""
    rows = []

    def add(part: str, quantity: str, true: float, values: pd.Series) -> None:
        error = values.std() / np.sqrt(len(values))
        low, high = values.mean() - 1.96 * error, values.mean() + 1.96 * error
        if values.dtype == bool:
            low, high = binomtest(int(values.sum()), len(values)).proportion_ci(method="wilson")
        rows.append(
            {
                "part": part,
                "quantity": quantity,
                "truth": true,
                "mean": values.mean(),
                "sd": values.std(),
                "low": low,
                "high": high,
                "n": len(values),
            }
        )

    for spread, t in tables["chatbench_twin"].groupby("spread"):
        part, true = f"synthetic twin, spread {spread}", float(t["true_trust"].iloc[0])
        add(part, "trust", true, t["trust"])
        add(part, "undertrust factor", 1 / true, t["factor"])
        add(part, "coverage", 0.95, t["covered"])
        add(part, "share of fits with p < .05", 0.05, t["pvalue"] < 0.05)
        for name, published in PUBLISHED.items():
            add(f"{part}, beside what is published", name, published, t[name])
    t = tables["two_stage"]
    add("two_stage", "median trust", 0.25, t["trust"])
    add("two_stage", "spread of log trust", 0.8, t["omega"])
    add("two_stage", "trust, pooled fit", 0.25, t["pooled"])
    add("two_stage", "coverage", 0.95, t["covered"])
    for trust, t in tables["belief"].groupby("true_trust"):
        add(f"belief, trust {trust}", "trust", trust, t["trust"])
        add(f"belief, trust {trust}", "believed overlap", 0.3, t["belief"])
        add(f"belief, trust {trust}", "coverage", 0.95, t["covered"])
    t = tables["latent"]
    add("latent", "trust", 0.25, t["trust"])
    add("latent", "overlap", 0.3, t["overlap"])
    add("latent", "coverage", 0.95, t["covered"])
    t = tables["binary_belief"]
    add("belief, binary advice", "trust", 0.6, t["trust"])
    add("belief, binary advice", "believed overlap", 0.4, t["belief"])
    add("belief, binary advice", "coverage, trust", 0.95, t["covered"])
    add("belief, binary advice", "coverage, belief", 0.95, t["belief_covered"])
    t = tables["difficulty"]
    for name in ("plain", "item"):
        part = f"difficulty, {name} fit"
        add(part, "trust", 0.5, t[f"{name}_trust"])
        add(part, "overlap", 0.2, t[f"{name}_overlap"])
        add(part, "coverage", 0.95, t[f"{name}_covered"])
    for name, t in tables["policies"].groupby("setting"):
        add(f"policies, {name}", "gain over always assisting", np.nan, t["gain"])
    return pd.DataFrame(rows)


def markdown(frame: pd.DataFrame) -> str:
    """A frame as a Markdown table."""

    def cell(value: object) -> str:
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    lines = ["| " + " | ".join(frame.columns) + " |", "|" + "---|" * frame.shape[1]]
    lines += [
        "| " + " | ".join(cell(v) for v in row) + " |" for row in frame.itertuples(index=False)
    ]
    return "\n".join(lines)


def figure(tables: dict[str, pd.DataFrame]) -> plt.Figure:
    """Phase diagrams above, recovery below."""
    fig, axes = plt.subplots(2, 3, figsize=(13, 8), layout="constrained")
    for ax, trust in zip(axes[0], (0.25, 1.0, 1.5), strict=True):
        phase_diagram(
            0.5,
            trust=trust,
            recommendation="binary",
            ai_grid=np.linspace(0.01, 3, 201),
            overlap_grid=np.linspace(0, 0.99, 60),
        ).plot(ax)
        ax.set_title(f"binary advice, trust {trust:g}", fontsize=10)
    t = tables["two_stage"]
    axes[1, 0].hist([t["trust"], t["pooled"]], bins=15, label=["hierarchical", "pooled"])
    axes[1, 0].axvline(0.25, color="k", lw=1)
    axes[1, 0].set_xlabel("median trust (line: truth)")
    axes[1, 0].legend(frameon=False)
    for trust, t in tables["belief"].groupby("true_trust"):
        axes[1, 1].plot(t["trust"] / trust, t["belief"], ".", label=f"trust {trust:g}")
    axes[1, 1].plot(1, 0.3, "k+", ms=14)
    axes[1, 1].set_xlabel("trust / truth")
    axes[1, 1].set_ylabel("believed overlap (cross: truth)")
    axes[1, 1].legend(frameon=False)
    t = tables["chatbench"]
    for K, part in t[t["source"].str.startswith("published")].groupby("n_choices"):
        axes[1, 2].plot(part["p_ai"], part["undertrust_factor"], "o-", label=f"{K} alternatives")
    axes[1, 2].set_yscale("log")
    axes[1, 2].axhline(4, color="k", lw=1, ls=":")
    axes[1, 2].set_xlabel("assumed accuracy of the AI")
    axes[1, 2].set_ylabel("under-trust factor (dotted: the paper's 4)")
    axes[1, 2].legend(frameon=False)
    return fig


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer repetitions and smaller grids")
    parser.add_argument("--output", type=Path, default=Path("studies_output/human_ai"))
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    suffix = "_quick" if arguments.quick else ""
    tables = {}
    for name, part in PARTS.items():
        path = arguments.output / f"{name}{suffix}.csv"
        if not path.is_file():
            table = part(arguments.quick)
            table.to_csv(path, index=False)
        tables[name] = pd.read_csv(path)
    whole = summary(tables)
    text = "\n\n".join(markdown(f) for f in (tables["claims"], tables["chatbench"], whole))
    (arguments.output / f"summary{suffix}.md").write_text(text + "\n")
    whole.to_csv(arguments.output / f"summary{suffix}.csv", index=False)
    figure(tables).savefig(arguments.output / f"human_ai{suffix}.png", dpi=120)
    print(text)


if __name__ == "__main__":
    main()
