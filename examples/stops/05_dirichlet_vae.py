"""Stop 5: unmix a photograph's colours, and know beforehand when the code collapses."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

from equipoise.estimators import (
    DirichletBetaVAE,
    collapse_path,
    plot_abundance_maps,
    plot_collapse_path,
)

RATIOS = (0.25, 0.5, 0.7, 0.85, 0.95, 1.02, 1.05, 1.1)


def visit() -> dict:
    """Predict the collapse from the pixels' covariance, then train on both sides of it."""
    photograph = load_sample_image("flower.jpg")[::12, ::12] / 255.0
    shape = photograph.shape[:2]
    X = photograph.reshape(-1, 3)
    model = DirichletBetaVAE(3, decoder="box", random_state=0)
    beta_c = model.collapse_threshold(X)  # no fit so far
    path = collapse_path(model, X, RATIOS, direction="both")
    down = path[path["direction"] == "down"]
    left = down[down["kl"] > 1e-3]["ratio"].max()
    kept = down[down["kl"] <= 1e-3]["ratio"].min()
    up = path[path["direction"] == "up"]
    lives = up[up["kl"] > 1e-3]["ratio"].max()
    model.set_params(concentration=0.3, beta_ratio=0.02).fit(X)
    report = model.explain()

    figure = plt.figure(figsize=(10, 6), layout="constrained")
    axes = figure.subplot_mosaic([["photograph", "path", "path"], ["a", "b", "c"]])
    axes["photograph"].imshow(photograph)
    axes["photograph"].set_axis_off()
    names = [f"RGB {tuple(np.round(255 * w).astype(int).tolist())}" for w in model.components_]
    plot_abundance_maps(
        model.transform(X), shape, names=names, ax=[axes["a"], axes["b"], axes["c"]]
    )
    plot_collapse_path(path, ax=axes["path"])
    return {
        "system": "DirichletBetaVAE",
        "question": "Which pure colours mix this photograph, and at which beta does the code collapse?",
        "answer": (
            f"three colours explain {report.r2:.1%} of {len(X)} pixels' variance; collapse predicted "
            f"at beta = {beta_c:.1f}; a trained code outlives it up to {lives:g} times that"
        ),
        "check": (
            f"of eight trained models the collapsed state is left up to {left:g} and kept from {kept:g} "
            "times the threshold, which was computed before training"
        ),
        "passed": bool(left < 1 < kept and len(down) == len(RATIOS) and report.r2 > 0.9),
        "figure": figure,
    }
