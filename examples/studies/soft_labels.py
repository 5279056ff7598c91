"""Study: what human soft labels change, on Fashion-MNIST-H and where the truth is known.

    python -P examples/studies/soft_labels.py [--quick] [--parts fashion budget]

Fashion-MNIST-H needs the votes (``fashion_mnist_h_counts.csv`` in the folder EQUIPOISE_STUDY_DATA, or
in ../shared/data beside the project) and Debian's package dataset-fashion-mnist; the part is left
out where they are missing. Every trained network is kept under the output folder: an interrupted
study goes on where it was.
"""

import argparse
import json
import os
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from equipoise.datasets import (
    fetch_fashion_mnist_h,
    inject_mode_shift,
    make_ambiguous_digits,
    simulate_annotators,
)
from equipoise.estimators import SoftLabelClassifier
from equipoise.explainers import (
    SoftLabelAudit,
    VoteConformalSets,
    annotation_budget_curve,
    bayes_accuracy,
    opinion_concentration,
)

PROJECT = Path(__file__).resolve().parents[2]
ARMS = (
    "hard_orig",
    "hard_mode",
    "soft_human",
    "soft_orig_mode",
    "entropy_matched",
    "label_smooth",
    "shuffled",
    "class_mean",
)
#: Column of the table, and the stratum, reference and metric it shows.
COLUMNS = {
    "acc(y)": ("all", "original", "accuracy"),
    "acc(mode)": ("all", "mode", "accuracy"),
    "ECE(mode)": ("all", "mode", "ece"),
    "soft ECE": ("all", "soft", "ece"),
    "KL": ("all", "soft", "kl"),
    "KL hardest 20%": ("difficulty 80%-100%", "soft", "kl"),
    "Spearman": ("all", "soft", "entropy_spearman"),
}


def table_of(audit: SoftLabelAudit) -> pd.DataFrame:
    """Mean and deviation over the seeds, one row an arm."""
    summary = audit.summary_.set_index(["arm", "stratum", "reference", "metric"])
    rows = {}
    for arm in audit.summary_["arm"].unique():
        cells = {}
        for name, key in COLUMNS.items():
            row = summary.loc[(arm, *key)]
            cells[name] = f"{row['mean']:.3f}±{row['sd']:.3f}"
        rows[arm] = cells
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("arm").reset_index()


def mean(audit: SoftLabelAudit, arm: str, column: str) -> tuple[float, float, int]:
    """Mean, deviation and number of seeds of a figure of the table."""
    stratum, reference, metric = COLUMNS[column]
    r = audit.results_
    values = r[
        (r["arm"] == arm)
        & (r["stratum"] == stratum)
        & (r["reference"] == reference)
        & (r["metric"] == metric)
    ]["value"]
    return float(values.mean()), float(values.std()), len(values)


def effect(audit: SoftLabelAudit, name: str, reference: str, metric: str) -> pd.Series:
    """A contrast over all test items."""
    e = audit.effects_
    rows = e[
        (e["effect"] == name)
        & (e["stratum"] == "all")
        & (e["reference"] == reference)
        & (e["metric"] == metric)
    ]
    return rows.iloc[0]


def save(audit: SoftLabelAudit, name: str, criteria: dict[str, Any], output: Path) -> None:
    """Tables, pictures and criteria of one part."""
    report = audit.explain()
    table = table_of(audit)
    table.to_csv(output / f"{name}_table.csv", index=False)
    audit.effects_.to_csv(output / f"{name}_effects.csv", index=False)
    audit.stability_.to_csv(output / f"{name}_stability.csv", index=False)
    audit.alignment_.to_csv(output / f"{name}_alignment.csv", index=False)
    (output / f"{name}_report.md").write_text(report.to_markdown())
    (output / f"{name}_report.html").write_text(report.to_html())
    (output / f"{name}_criteria.json").write_text(json.dumps(criteria, indent=1))
    figure, axes = plt.subplots(2, 2, figsize=(11, 8.5), layout="constrained")
    for kind, ax in zip(
        ("effects", "strata", "entropy_alignment", "reliability"), axes.flat, strict=True
    ):
        report.plot(kind, ax)
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(output / f"{name}.png", dpi=110)
    plt.close(figure)
    print(f"\n== {name}\n{report}\n{table.to_string(index=False)}")
    print(audit.alignment_.round(3).to_string(index=False))
    print(json.dumps(criteria, indent=1))


def load_fashion(quick: bool) -> tuple[np.ndarray, ...] | None:
    """Pixels, labels and votes: 5000 garments to train on, 5000 to test."""
    folder = Path(os.environ.get("EQUIPOISE_STUDY_DATA", PROJECT.parent / "shared" / "data"))
    try:
        data = fetch_fashion_mnist_h(path=folder / "fashion_mnist_h_counts.csv")
    except FileNotFoundError as error:
        print(f"Fashion-MNIST-H: left out, {error}")
        return None
    rows = np.random.RandomState(2026).permutation(10_000)
    size = 1000 if quick else 5000
    X = (data.data / 255).astype(np.float32)
    parts = rows[:size], rows[5000 : 5000 + size]
    return tuple(array[part] for part in parts for array in (X, data.target, data.counts))


def fashion_network(max_epochs: int) -> SoftLabelClassifier:
    """784-256-10."""
    return SoftLabelClassifier(
        hidden_layer_sizes=(256,),
        max_epochs=max_epochs,
        batch_size=128,
        lr=1e-3,
        weight_decay=0,
        standardize=False,
    )


def fashion(output: Path, quick: bool) -> None:
    """All arms on Fashion-MNIST-H, 25 epochs."""
    items = load_fashion(quick)
    if items is None:
        return
    audit = SoftLabelAudit(
        fashion_network(5 if quick else 25),
        arms=ARMS,
        seeds=[101, 102] if quick else [101, 102, 103, 104, 105],
        n_bootstrap=200 if quick else 2000,
        memory=output / "cache",
        random_state=7,
        verbose=1,
    ).fit(*items)
    soft, mode = (effect(audit, f"{kind} main", "soft", "kl") for kind in ("soft", "mode"))
    hard_sd = min(mean(audit, arm, "KL")[1] for arm in ("hard_orig", "hard_mode"))
    hard_ece = min(mean(audit, arm, "soft ECE")[0] for arm in ("hard_orig", "hard_mode"))
    by_arm = audit.alignment_.set_index(["items", "arm"])
    criteria: dict[str, Any] = {
        "KL soft main": [soft["estimate"], soft["low"], soft["high"]],
        "KL soft main < -.5, CI below 0": bool(soft["estimate"] < -0.5 and soft["high"] < 0),
        "KL mode main": [mode["estimate"], mode["low"], mode["high"]],
        "|mode effect| < 10% of soft": bool(abs(mode["estimate"]) < 0.1 * abs(soft["estimate"])),
        "sd ratio hard/soft of KL": hard_sd / mean(audit, "soft_human", "KL")[1],
        "Spearman soft_human - label_smooth": mean(audit, "soft_human", "Spearman")[0]
        - mean(audit, "label_smooth", "Spearman")[0],
        "soft ECE soft_human": mean(audit, "soft_human", "soft ECE")[0],
        "soft ECE ratio to hard": mean(audit, "soft_human", "soft ECE")[0] / hard_ece,
    }
    for items in ("train", "test"):
        confidence = by_arm.loc[items]["1 - confidence"]
        variability = by_arm.loc[items]["mean variability"]
        others = ["entropy_matched", "label_smooth", "shuffled", "class_mean"]
        criteria[f"1 - confidence, {items}: soft_human - best synthetic"] = (
            confidence["soft_human"] - confidence[others].max()
        )
        criteria[f"1 - confidence, {items}: soft_human - hard_mode"] = (
            confidence["soft_human"] - confidence["hard_mode"]
        )
        criteria[f"1 - confidence, {items}: soft_human - label_smooth"] = (
            confidence["soft_human"] - confidence["label_smooth"]
        )
        criteria[f"mean variability, {items}: soft_human / hard_mode"] = (
            variability["soft_human"] / variability["hard_mode"]
        )
    save(audit, "fashion", criteria, output)


def known_truth(
    ambiguity: float, n_train: int, n_test: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Digits with ten votes each and original labels of which a tenth are shifted."""
    digits = make_ambiguous_digits(n_train + n_test, ambiguity=ambiguity, random_state=seed)
    P = digits.posterior
    votes = simulate_annotators(P, votes_per_item=10, skill=(1, 1), random_state=seed + 1).counts
    y = inject_mode_shift(votes.argmax(axis=1), P, 0.1, random_state=seed + 2)
    X = (digits.data / 16).astype(np.float32)
    tr, te = slice(None, n_train), slice(n_train, None)
    return X[tr], y[tr], votes[tr], X[te], y[te], P[te], P[tr]


def digits_network(max_epochs: int) -> SoftLabelClassifier:
    return SoftLabelClassifier(
        hidden_layer_sizes=(128,),
        max_epochs=max_epochs,
        batch_size=64,
        lr=2e-3,
        weight_decay=0,
        standardize=False,
    )


def synthetic(output: Path, quick: bool) -> None:
    """The same arms against the true posterior, at two ambiguities."""
    for ambiguity in (0.3, 0.5):
        sizes = (500, 1000) if quick else (1000, 4000)
        X, y, votes, X_test, y_test, P_test, P_train = known_truth(ambiguity, *sizes, seed=40)
        arms: dict[str, Any] = dict.fromkeys(ARMS)
        arms["true_posterior"] = P_train
        audit = SoftLabelAudit(
            digits_network(10 if quick else 40),
            arms=arms,
            seeds=[201, 202] if quick else [201, 202, 203, 204, 205],
            n_bootstrap=200 if quick else 2000,
            memory=output / "cache",
            random_state=8,
            verbose=1,
        ).fit(X, y, votes, X_test, y_test, P_test)
        criteria: dict[str, Any] = {}
        others = [arm for arm in ARMS if arm != "soft_human"]
        for column, sign in (("KL", -1), ("acc(mode)", 1)):
            m, sd, n = mean(audit, "soft_human", column)
            gaps = {}
            for arm in others:
                m2, sd2, _ = mean(audit, arm, column)
                clear = sign * (m - m2) > 2 * (sd + sd2) / np.sqrt(n)
                gaps[arm] = [round(m - m2, 4), bool(clear)]
            criteria[f"{column}: soft_human minus others, clear by 2 s.e. each"] = gaps
        criteria["sd(KL) soft / hard_mode"] = (
            mean(audit, "soft_human", "KL")[1] / mean(audit, "hard_mode", "KL")[1]
        )
        save(audit, f"synthetic_{ambiguity:g}", criteria, output)


def convergence(output: Path, quick: bool) -> None:
    """Ten seeds, 50 epochs: overfitting and stability of hard and soft arms."""
    X, y, votes, X_test, y_test, P_test, _ = known_truth(
        0.5, 1000, 1000 if quick else 4000, seed=50
    )
    audit = SoftLabelAudit(
        digits_network(10 if quick else 50),
        arms=["hard_orig", "hard_mode", "soft_human", "soft_orig_mode", "label_smooth"],
        seeds=[301, 302] if quick else list(range(301, 311)),
        n_bootstrap=0,
        memory=output / "cache",
        random_state=9,
        verbose=1,
    ).fit(X, y, votes, X_test, y_test, P_test)
    stability = audit.stability_.pivot(index="measure", columns="arm", values="value")
    wanted = [
        "churn",
        "Jensen-Shannon",
        "sd of kl (soft)",
        "sd of accuracy (mode)",
        "overfit gap (mode)",
        "overfit gap (soft)",
        "volatility (soft)",
        "epochs to within 1% (soft)",
    ]
    stability = stability.loc[wanted]
    stability.to_csv(output / "convergence_stability_table.csv")
    print(stability.round(4).to_string())
    save(audit, "convergence", {"stability": stability.round(5).to_dict()}, output)
    ax = audit.explain().plot("convergence")
    ax.figure.savefig(output / "convergence_curves.png", dpi=110)
    plt.close(ax.figure)


def budget(output: Path, quick: bool) -> None:
    """Votes an item on Fashion-MNIST-H, from one to 34."""
    items = load_fashion(quick)
    if items is None:
        return
    curve = annotation_budget_curve(
        fashion_network(5 if quick else 25),
        *items,
        budgets=(1, 2, 3, 5, 8, 13, 21, 34),
        seeds=[401] if quick else [401, 402, 403],
        memory=output / "cache",
        random_state=10,
        verbose=1,
    )
    curve.to_frame().to_csv(output / "budget.csv", index=False)
    print(f"\n== budget\n{curve}\n{curve.to_frame().round(4).to_string(index=False)}")
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for metric, ax in zip(("kl", "entropy_spearman"), axes, strict=True):
        curve.plot(metric, ax)
    figure.savefig(output / "budget.png", dpi=110)
    plt.close(figure)


def sets(output: Path, quick: bool) -> None:
    """Conformal sets and scatter of opinions on Fashion-MNIST-H, by what the model learned from.

    Half of the test items calibrates, the other half tests.
    """
    items = load_fashion(quick)
    if items is None:
        return
    X, y, counts, X_test, _, counts_test = items
    half = len(X_test) // 2
    network = fashion_network(5 if quick else 25)
    targets = {
        "hard_orig": np.eye(10)[y],
        "hard_mode": np.eye(10)[counts.argmax(axis=1)],
        "soft_human": counts,
    }
    rows = []
    for arm, T in targets.items():
        for seed in [501] if quick else [501, 502, 503]:
            F = network.set_params(random_state=seed).fit(X, T).predict_proba(X_test)
            scatter = opinion_concentration(counts_test, F)
            for share in (None, 0.8):
                for score in ("probability", "cumulative"):
                    model = VoteConformalSets(0.1, share=share, score=score)
                    model.fit(F[:half], counts_test[:half])
                    found = model.explain(F[half:], counts_test[half:]).to_frame()
                    votes = found["votes_covered"]
                    rows.append(
                        {
                            "arm": arm,
                            "seed": seed,
                            "goal": "90% of votes" if share is None else "80% in 90% of sets",
                            "score": score,
                            "covered": votes.mean() if share is None else (votes >= share).mean(),
                            "size": found["size"].mean(),
                            "hardest tenth": votes[found["tenth"] == 9].mean(),
                            "correlation": scatter.correlation,
                        }
                    )
    frame = pd.DataFrame(rows)
    frame.to_csv(output / "sets.csv", index=False)
    mean = frame.drop(columns="seed").groupby(["goal", "score", "arm"], sort=False).mean()
    bound = bayes_accuracy(np.vstack([counts, counts_test]), random_state=0)
    print(f"\n== sets\n{mean.round(3).to_string()}\nbest accuracy on one vote: {bound}")


PARTS = {
    "fashion": fashion,
    "synthetic": synthetic,
    "convergence": convergence,
    "budget": budget,
    "sets": sets,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see it work")
    parser.add_argument("--parts", nargs="*", choices=sorted(PARTS), default=list(PARTS))
    parser.add_argument("--output", type=Path, default=Path("studies_output/soft_labels"))
    arguments = parser.parse_args()
    output = arguments.output / "quick" if arguments.quick else arguments.output
    output.mkdir(parents=True, exist_ok=True)
    for name in arguments.parts:
        PARTS[name](output, arguments.quick)


if __name__ == "__main__":
    main()
