"""Stop 15: read digits with a network that never differentiates."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from equipoise.estimators import ProjectionMLPClassifier, project_bilinear
from equipoise.plotting import COLORS


def by_gradients(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, epochs: int) -> np.ndarray:
    """Predictions of the same network, trained by Adam on gradients."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
        optimizer = torch.optim.Adam(net.parameters(), 1e-3)
        inputs, labels = torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(y)
        for _ in range(epochs):
            for rows in torch.randperm(len(X)).split(32):
                optimizer.zero_grad()
                nn.functional.cross_entropy(net(inputs[rows]), labels[rows]).backward()
                optimizer.step()
        with torch.no_grad():
            return net(torch.as_tensor(X_test, dtype=torch.float32)).argmax(1).numpy()


def visit() -> dict[str, Any]:
    """Train by projections, compare with gradients, and check a projection of the trained layer."""
    X, y = load_digits(return_X_y=True)
    parts = train_test_split(X / 16, y, test_size=0.3, stratify=y, random_state=0)
    X_train, X_test, y_train, y_test = parts
    model = ProjectionMLPClassifier((128,), standardize=False, random_state=0)
    model.fit(X_train, y_train)
    ours = model.score(X_test, y_test)
    theirs = float((by_gradients(X_train, y_train, X_test, model.max_epochs) == y_test).mean())

    # Every unit of the trained first layer and 100 digits, each target one off; a bias is the weight
    # of a constant input.
    layer = model.module_[0]
    W = np.column_stack([layer.weight.detach().numpy(), layer.bias.detach().numpy()]).astype(float)
    H = np.column_stack([X_test[:100], np.ones(100)])
    new = project_bilinear(H[:, None], W[None], H @ W.T - 1)
    worst = float(np.abs((new.h * new.w).sum(-1) - new.z).max())

    figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.8), layout="constrained")
    model.explain().plot("epochs", ax=axes[0])
    axes[0].set_title("targets that reach the layers")
    axes[1].plot(np.arange(1, model.n_iter_ + 1), model.loss_curve_, color=COLORS[0])
    axes[1].set(xlabel="epoch", ylabel="cross-entropy in training", yscale="log")
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
    return {
        "system": "ProjectionMLPClassifier",
        "question": "Can a network read digits without a derivative of itself?",
        "answer": (
            f"{ours:.1%} of {len(y_test)} unseen digits right by projections, {theirs:.1%} by "
            "Adam on gradients, same layers and epochs"
        ),
        "check": (
            f"{new.z.size} projected pairs of a unit and a digit fit exactly, to {worst:.0e}, "
            "and the accuracy is within a point of Adam's"
        ),
        "passed": bool(worst < 1e-10 and ours > theirs - 0.01),
        "figure": figure,
    }
