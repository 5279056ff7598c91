"""Study: learning by projections against gradients, and how the target signal fades with depth.

    python -P examples/studies/projection_learning.py [--quick] [--parts digits depth]

Fashion-MNIST needs Debian's package dataset-fashion-mnist; the part is left out where it is missing. Each run's
curve is kept under the output folder: an interrupted study goes on where it was.
"""

import argparse
import json
import time
from collections.abc import Callable
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from equipoise.datasets import fetch_fashion_mnist
from equipoise.estimators import (
    ProjectionOptimizer,
    ProjLinear,
    ProjReLU,
    ProjSign,
    ProxCrossEntropyLoss,
    ProxMSELoss,
    TargetSignalMonitor,
    gradient_mode,
    project,
)
from equipoise.plotting import COLORS

torch.set_num_threads(1)

Split = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


class StraightThroughSign(nn.Module):
    """Sign whose gradient is taken to be that of hardtanh: what gradients need in its place."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        soft = x.clamp(-1, 1)
        return soft + (torch.where(x >= 0, 1.0, -1.0) - soft).detach()


def network(widths: list[int], activation: Callable[[], nn.Module], **options: Any) -> nn.Module:
    """Linear layers with He's normal weights and zero biases."""
    layers: list[nn.Module] = []
    for n, N in pairwise(widths):
        layer = ProjLinear(n, N, **options)
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        nn.init.zeros_(layer.bias)
        layers += [layer, activation()]
    return nn.Sequential(*layers[:-1])


def run(
    split: Split, widths: list[int], method: dict[str, Any], seed: int, epochs: int, batch: int
) -> dict[str, Any]:
    """Train; accuracy and seconds after each epoch, and the signal of the last."""
    X, y, X_test, y_test = split
    torch.manual_seed(seed)
    by_gradients = method.get("gradients", False)
    model = network(widths, method.get("activation", ProjReLU), **method.get("options", {}))
    optimizer = ProjectionOptimizer(model.parameters(), base=method["base"], lr=method.get("lr"))
    loss, accuracy, seconds, spent = ProxCrossEntropyLoss(), [], [], 0.0
    for epoch in range(epochs):
        start = time.perf_counter()
        watch = TargetSignalMonitor(model) if epoch == epochs - 1 else nullcontext()
        with watch as monitor, gradient_mode() if by_gradients else nullcontext():
            for rows in torch.randperm(len(X)).split(batch):
                optimizer.zero_grad()
                loss(model(X[rows]), y[rows]).backward()
                optimizer.step()
        spent += time.perf_counter() - start
        seconds.append(spent)
        with torch.no_grad():
            accuracy.append(float((model(X_test).argmax(1) == y_test).float().mean()))
    signal = monitor.to_frame().groupby("layer", sort=False)["signal"].mean().tolist()
    return {"accuracy": accuracy, "seconds": seconds, "signal": signal}


def kept(output: Path, name: str, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The result of a run, from disk where it was computed before."""
    path = output / "runs" / f"{name}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(compute()))
    return json.loads(path.read_text())


def digits_split(seed: int) -> Split:
    X, y = load_digits(return_X_y=True)
    a, b, c, d = train_test_split(X / 16, y, test_size=0.3, stratify=y, random_state=seed)
    return tuple(
        torch.as_tensor(v, dtype=torch.float32) if v.ndim == 2 else torch.as_tensor(v)
        for v in (a, c, b, d)
    )


METHODS: dict[str, dict[str, Any]] = {
    "gradients, Adam": {"base": "adam", "gradients": True},
    "gradients, SGD 0.1": {"base": "sgd", "lr": 0.1, "gradients": True},
    "gradients, Muon": {"base": "muon", "gradients": True},
    "projections, Adam": {"base": "adam"},
    "projections, SGD 1": {"base": "sgd"},
    "projections, Muon": {"base": "muon"},
    "projections one_step, Muon": {"base": "muon", "options": {"solver": "one_step"}},
    "projections sum, Muon": {"base": "muon", "options": {"reduction": "sum"}},
    "projections linf, Muon": {"base": "muon", "options": {"norm": "linf"}},
}
SIGNS: dict[str, dict[str, Any]] = {
    "sign, straight-through Adam": {
        "base": "adam",
        "gradients": True,
        "activation": StraightThroughSign,
    },
    "sign, straight-through Muon": {
        "base": "muon",
        "gradients": True,
        "activation": StraightThroughSign,
    },
    "sign, projections Muon": {"base": "muon", "activation": ProjSign},
    "sign, projections sum Muon": {
        "base": "muon",
        "activation": ProjSign,
        "options": {"reduction": "sum"},
    },
}


def comparison(
    output: Path, name: str, methods: dict[str, dict[str, Any]], splits: list[Split], widths: list[int],
    epochs: int, batch: int, shown: tuple[int, ...],
) -> None:  # fmt: skip
    """Table and picture of accuracy by epoch, mean and deviation over the seeds."""
    rows, figure = [], plt.figure(figsize=(6.4, 4), layout="constrained")
    ax = figure.add_subplot()
    for k, (label, method) in enumerate(methods.items()):
        runs = [
            kept(output, f"{name}_{epochs}_{label}_{seed}".replace(" ", "_"),
                 lambda method=method, seed=seed, split=split: run(split, widths, method, seed, epochs, batch))
            for seed, split in enumerate(splits)
        ]  # fmt: skip
        curves = np.array([r["accuracy"] for r in runs])
        row = {"method": label}
        for epoch in shown:
            row[f"epoch {epoch}"] = (
                f"{curves[:, epoch - 1].mean():.3f}±{curves[:, epoch - 1].std(ddof=1):.3f}"
            )
        row["seconds"] = f"{np.mean([r['seconds'][-1] for r in runs]):.1f}"
        row["signal at the first layer"] = f"{np.mean([r['signal'][0] for r in runs]):.1e}"
        rows.append(row)
        ax.plot(
            np.arange(1, epochs + 1),
            curves.mean(0),
            color=COLORS[k % 7],
            ls="-" if k < 7 else "--",
            label=label,
        )
    ax.set(xlabel="epoch", ylabel="test accuracy")
    ax.legend(frameon=False, fontsize=7)
    figure.savefig(output / f"{name}.png", dpi=110)
    plt.close(figure)
    table = pd.DataFrame(rows)
    table.to_csv(output / f"{name}.csv", index=False)
    print(
        f"\n== {name}, {'-'.join(map(str, widths))}, {len(splits)} seeds\n{table.to_string(index=False)}",
        flush=True,
    )


def digits(output: Path, quick: bool) -> None:
    """Digits, one hidden layer: all methods, and sign networks."""
    splits = [digits_split(seed) for seed in range(2 if quick else 5)]
    epochs, shown = (2, (1, 2)) if quick else (20, (1, 5, 20))
    comparison(output, "digits", METHODS, splits, [64, 128, 10], epochs, 32, shown)
    comparison(output, "signs", SIGNS, splits, [64, 256, 10], epochs, 32, shown)


def depth(output: Path, quick: bool) -> None:
    """One to eight hidden layers of 64."""
    splits = [digits_split(seed) for seed in range(2 if quick else 5)]
    methods = {
        "gradients, Adam": METHODS["gradients, Adam"],
        "gradients, Muon": METHODS["gradients, Muon"],
        "projections, Adam": METHODS["projections, Adam"],
        "projections, Muon": METHODS["projections, Muon"],
        "projections sum, Muon": METHODS["projections sum, Muon"],
    }
    for layers in (1, 3) if quick else (1, 2, 4, 8):
        epochs = 2 if quick else 10
        comparison(
            output, f"depth{layers}", methods, splits, [64, *[64] * layers, 10], epochs, 32, (1, epochs)
        )  # fmt: skip


def vanishing(output: Path, quick: bool) -> None:
    """Linear networks without biases, width 32, batch 16, target = input; |D|_F / 16 of each layer."""
    rows = []
    for L in (4, 8):
        for reduction in ("mean", "sum"):
            logs = []
            for seed in range(2 if quick else 10):
                torch.manual_seed(seed)
                model = project(
                    nn.Sequential(*[nn.Linear(32, 32, bias=False) for _ in range(L)]),
                    reduction=reduction,
                )
                for layer in model:
                    nn.init.normal_(layer.weight, std=32**-0.5)
                x = torch.randn(16, 32).requires_grad_()
                with TargetSignalMonitor(model) as monitor:
                    ProxMSELoss()(model(x), x.detach()).backward()
                logs.append(np.log(monitor.to_frame()["signal"].to_numpy()[::-1] / 4))
            signal = np.exp(np.mean(logs, 0))
            rows.append(
                {
                    "layers": L,
                    "reduction": reduction,
                    "output to input": " ".join(f"{s:.1e}" for s in signal),
                }
            )
    table = pd.DataFrame(rows)
    table.to_csv(output / "vanishing.csv", index=False)
    print(f"\n== vanishing targets\n{table.to_string(index=False)}")


def fashion(output: Path, quick: bool) -> None:
    """Fashion-MNIST, 784-256-10, 10,000 images to train on."""
    try:
        data = fetch_fashion_mnist()
    except FileNotFoundError as error:
        print(f"Fashion-MNIST: left out, {error}")
        return
    rows = slice(0, 1000 if quick else 10_000)
    X, X_test = (
        (torch.as_tensor(v).float() / 255 - 0.2860) / 0.3530
        for v in (data.data[rows], data.data_test)
    )
    split = X, torch.as_tensor(data.target[rows]), X_test, torch.as_tensor(data.target_test)
    epochs = 2 if quick else 3
    chosen = {
        k: METHODS[k]
        for k in ("gradients, Adam", "gradients, Muon", "projections, Adam", "projections, Muon")
    }
    splits = [split] * (2 if quick else 5)
    comparison(
        output, "fashion", chosen, splits, [784, 256, 10], epochs, 64, tuple(range(1, epochs + 1))
    )


PARTS = {"digits": digits, "vanishing": vanishing, "depth": depth, "fashion": fashion}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see it work")
    parser.add_argument("--parts", nargs="*", choices=sorted(PARTS), default=list(PARTS))
    parser.add_argument("--output", type=Path, default=Path("studies_output/projection_learning"))
    arguments = parser.parse_args()
    output = arguments.output / "quick" if arguments.quick else arguments.output
    output.mkdir(parents=True, exist_ok=True)
    for name in arguments.parts:
        PARTS[name](output, arguments.quick)


if __name__ == "__main__":
    main()
