"""Stop 2: train on people's votes instead of their majority."""

import os
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from equipoise.datasets import fetch_fashion_mnist_h, make_ambiguous_digits, simulate_annotators
from equipoise.estimators import SoftLabelClassifier, SoftStratifiedKFold, get_soft_scorer
from equipoise.explainers import human_alignment_report, reliability_curve
from equipoise.plotting import COLORS

PROJECT = Path(__file__).resolve().parents[2]


def load() -> tuple[np.ndarray, np.ndarray, str]:
    """Published votes on garments where they are on this machine, else simulated ones on digits."""
    folder = Path(os.environ.get("EQUIPOISE_STUDY_DATA", PROJECT.parent / "shared" / "data"))
    try:
        garments = fetch_fashion_mnist_h(path=folder / "fashion_mnist_h_counts.csv")
    except FileNotFoundError:
        digits = make_ambiguous_digits(2500, ambiguity=0.5, random_state=0)
        votes = simulate_annotators(digits.posterior, skill=(1, 1), random_state=1)
        return digits.data, votes.counts, "2,500 ambiguous digits with 10 simulated votes each"
    rows = np.random.RandomState(0).permutation(len(garments.data))[:2500]
    name = "2,500 Fashion-MNIST images with 53-79 human votes each"
    return garments.data[rows] / 255.0, garments.counts[rows], name


def relative_gradient(pipeline: Pipeline, X: np.ndarray, votes: np.ndarray) -> float:
    """Gradient of C sum_i CE(p_i, f_i) + ||W||^2 / 2 at the fitted W, over that at W = 0."""
    model = pipeline[-1].estimator_
    Z = pipeline[:-1].transform(X)
    P = votes / votes.sum(axis=1, keepdims=True)
    at_fit = model.C * (model.predict_proba(Z) - P).T @ Z + model.coef_
    at_zero = model.C * (P.mean(axis=0) - P).T @ Z
    return float(np.abs(at_fit).max() / np.abs(at_zero).max())


def visit() -> dict[str, Any]:
    """Search a pipeline on votes, and compare it with the same pipeline on majorities."""
    X, votes, name = load()
    train, test = slice(0, 1000), slice(1000, None)
    pipeline = make_pipeline(
        StandardScaler(),
        PCA(30, random_state=0),
        SoftLabelClassifier(LogisticRegression(max_iter=1000, tol=1e-4)),
    )
    search = GridSearchCV(
        pipeline,
        {"softlabelclassifier__estimator__C": [0.001, 0.01, 0.1]},
        cv=SoftStratifiedKFold(3, random_state=0),
        scoring=get_soft_scorer("neg_soft_cross_entropy"),
    )
    best = search.fit(X[train], votes[train]).best_estimator_
    gradient = relative_gradient(best, X[train], votes[train])
    models = {
        "votes": best,
        "majorities": clone(best).fit(X[train], votes[train].argmax(axis=1)),
    }
    reports, curves = {}, {}
    for kind, model in models.items():
        proba = model.predict_proba(X[test])
        reports[kind] = human_alignment_report(votes[test], proba)
        curves[kind] = reliability_curve(votes[test], proba, n_bins=10)
    soft, hard = reports["votes"], reports["majorities"]

    figure, ax = plt.subplots(figsize=(4.8, 4.2), layout="constrained")
    ax.plot([0, 1], [0, 1], color="0.6", linewidth=1, linestyle="--")
    for (kind, curve), color in zip(curves.items(), COLORS, strict=False):
        label = f"trained on {kind}: error {reports[kind]['soft_ece']:.3f}"
        ax.plot(curve["confidence"], curve["accuracy"], "o-", color=color, label=label)
    ax.set(
        xlabel="confidence",
        ylabel="share of annotators who agree",
        title="Is it as sure as people?",
    )
    ax.legend(frameon=False, loc="upper left")
    ax.spines[["top", "right"]].set_visible(False)

    return {
        "system": "SoftLabelClassifier",
        "question": f"On {name}: does training on votes beat training on majorities?",
        "answer": (
            f"cross-entropy to the votes {soft['cross_entropy']:.3f} against "
            f"{hard['cross_entropy']:.3f} nats, calibration error {soft['soft_ece']:.3f} against "
            f"{hard['soft_ece']:.3f}, accuracy to the mode {soft['mode_accuracy']:.3f} against "
            f"{hard['mode_accuracy']:.3f}"
        ),
        "check": (
            "copies of rows solve the problem on votes exactly: its own gradient at the fitted "
            f"coefficients is {gradient:.0e} of its size at zero"
        ),
        "passed": gradient < 2e-3 and bool(soft["cross_entropy"] < hard["cross_entropy"]),
        "figure": figure,
    }
