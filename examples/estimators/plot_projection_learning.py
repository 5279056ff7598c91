"""
Learning without a derivative
=============================

Back-propagation sends derivatives down a network. Here each layer gets a *target* instead, and moves its inputs, weights
and outputs to the nearest point where they fit each other. We train the same network both ways on handwritten digits, and look at how much
of the target is left when it reaches the first layer.
"""

# %%
# One unit, one sample
# --------------------
# Inputs (1, 2), weights (3, -1): the output is 1. We ask for 4. The nearest inputs, weights and output that fit:

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from equipoise.estimators import (
    ProjectionMLPClassifier,
    ProxMSELoss,
    TargetSignalMonitor,
    project,
    project_bilinear,
)
from equipoise.plotting import COLORS

h, w, z = project_bilinear([1.0, 2.0], [3.0, -1.0], 4.0)
print(f"inputs {h.round(3)}, weights {w.round(3)}, output {z:.3f}; check {w @ h:.3f}")

# %%
# Digits
# ------
# The optimiser is Muon, which takes displacements as well as gradients; Adam is the usual one.

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X / 16, y, test_size=0.3, stratify=y, random_state=0
)
scores = {}
for name, options in {
    "relu, Muon": {},
    "relu, Adam": {"optimizer": "adam"},
    "relu, maximum norm": {"norm": "linf"},
    "sign, Muon": {"activation": "sign"},
}.items():
    model = ProjectionMLPClassifier(
        (128,), max_epochs=1, standardize=False, warm_start=True, random_state=0, **options
    )
    scores[name] = [model.fit(X_train, y_train).score(X_test, y_test) for _ in range(12)]
    print(f"{name}: {scores[name][-1]:.3f}, signal of the layers {model.signal_curve_[-1]}")

# %%
# The sign network's first layer gets exactly nothing: no target lies beyond the middle between -1 and 1. Its last layer alone
# learns, on random features.
#
# How far down do targets reach?
# ------------------------------
# Eight linear layers of 32 units. A layer averages what its units ask of the inputs, and most of a step goes into weights.

figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.8), layout="constrained")
for color, (name, curve) in zip(COLORS, scores.items(), strict=False):
    axes[0].plot(np.arange(1, 13), curve, "o-", color=color, markersize=3, label=name)
axes[0].set(xlabel="epoch", ylabel="accuracy on unseen digits", ylim=(0.3, 1))
for color, options in zip(
    COLORS,
    ({}, {"alpha": "auto"}, {"reduction": "sum"}, {"reduction": "sum", "alpha": "auto"}),
    strict=False,
):
    torch.manual_seed(0)
    net = project(nn.Sequential(*[nn.Linear(32, 32, bias=False) for _ in range(8)]), **options)
    for layer in net:
        nn.init.normal_(layer.weight, std=32**-0.5)
    inputs = torch.randn(16, 32)
    with TargetSignalMonitor(net) as monitor:
        ProxMSELoss()(net(inputs), inputs).backward()
    signal = monitor.to_frame()["signal"]
    label = ", ".join(f"{k}={v}" for k, v in options.items()) or "defaults"
    axes[1].plot(np.arange(1, 9), signal, "o-", color=color, label=label)
axes[1].set(xlabel="layer, from the input on", ylabel="displacement of a sample", yscale="log")
for ax in axes:
    ax.legend(frameon=False, fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
