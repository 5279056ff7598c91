"""Projection layers against torch's gradient step, projtorch and loops over pairs.

A ratio below 1 is how many times a gradient step a projection step takes, since the gradient step is the "peer". The
answers of the two differ by design: only those of loops and references are compared. projtorch is left out where it
isn't installed. All run on one thread.
"""

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch import nn

from equipoise.estimators import (
    ProjectionOptimizer,
    ProxCrossEntropyLoss,
    gradient_mode,
    project,
    project_bilinear,
    project_linear_batch,
)

torch.set_num_threads(1)


def network(n: int, N: int) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(n, N), nn.ReLU(), nn.Linear(N, 10))


def stepper(
    n: int, N: int, B: int, base: str, gradients: bool, **options: Any
) -> Callable[[], float]:
    """One training step of n-N-10, by projections or by gradients."""
    model = project(network(n, N), **options)
    optimizer = ProjectionOptimizer(model.parameters(), base=base, lr=1e-4)
    x, y = torch.randn(B, n), torch.randint(10, (B,))
    loss = ProxCrossEntropyLoss()

    def forward() -> torch.Tensor:
        if gradients:
            with gradient_mode():
                return loss(model(x), y)
        return loss(model(x), y)

    def step() -> float:
        optimizer.zero_grad()
        value = forward()
        value.backward()
        optimizer.step()
        return value.item()

    return step


def gradient_cases() -> Iterator[dict[str, Any]]:
    for n, N, B in ((1024, 1024, 128), (2048, 1024, 128), (1024, 2048, 128), (784, 256, 64)):
        for solver, target in (("one_step", 1.6), ("exact", 2.2)):
            wide = n >= 1024
            yield {
                "name": f"{n}-{N}-10, batch {B}, {solver}, Adam, vs gradients"
                + (f" (target: ratio at least {1 / target:.2f})" if wide else ""),
                "ours": stepper(n, N, B, "adam", False, solver=solver),
                "peer": stepper(n, N, B, "adam", True),
                "exact": False,
                "repeats": 15,
            }
    yield {
        "name": "784-256-10, batch 64, exact, Muon, vs gradients with Muon",
        "ours": stepper(784, 256, 64, "muon", False),
        "peer": stepper(784, 256, 64, "muon", True),
        "exact": False,
        "repeats": 15,
    }


def projtorch_cases() -> Iterator[dict[str, Any]]:
    if not find_spec("ptorch"):
        return
    import torch._dynamo
    from ptorch.core.overrides import apply_overrides, remove_overrides
    from ptorch.nn import modules
    from ptorch.optim_static import ProjectionSGD

    torch._dynamo.config.disable = True  # compiling its solvers takes minutes, or a compiler lacks
    remove_overrides()  # it replaces functions of torch: only while it runs itself

    def peer(norm: str) -> Callable[[], float]:
        torch.manual_seed(0)
        model = nn.Sequential(
            modules.Linear(784, 256, norm=norm),
            modules.ReLU(norm=norm),
            modules.Linear(256, 10, norm=norm),
        )
        loss, x, y = modules.CrossEntropy(), torch.randn(64, 784), torch.randint(10, (64,))
        optimizer = ProjectionSGD(model.parameters(), lr=1e-4)

        def step() -> float:
            apply_overrides()
            optimizer.zero_grad()
            value = loss(model(x), y)
            value.backward()
            optimizer.step()
            remove_overrides()
            return value.item()

        return step

    for norm, theirs, solver, target in (
        ("l2", "l2", "one_step", 1),
        ("linf", "linf", "exact", 20),
    ):
        yield {
            "name": f"784-256-10, batch 64, {norm} {solver}, SGD, vs projtorch eager (target {target})",
            "ours": stepper(784, 256, 64, "sgd", False, norm=norm, solver=solver),
            "peer": peer(theirs),
            "exact": False,
            "repeats": 5,
        }


def reference_cases() -> Iterator[dict[str, Any]]:
    """The fused layer against projections pair by pair, with a copy of the weights for each sample."""
    rng = np.random.default_rng(0)
    for norm in ("l2", "linf"):
        H, W, Z = (rng.normal(size=s) for s in ((32, 128), (64, 128), (32, 64)))

        def fused(norm: str = norm, H: Any = H, W: Any = W, Z: Any = Z) -> np.ndarray:
            return project_linear_batch(H, W, Z, norm=norm).W

        def pairs(norm: str = norm, H: Any = H, W: Any = W, Z: Any = Z) -> np.ndarray:
            return project_bilinear(H[:, None], W[None], Z, norm=norm).w.mean(0)

        yield {
            "name": f"layer 32 x 128 x 64, {norm}, vs all pairs at once",
            "ours": fused,
            "peer": pairs,
            "tolerance": 1e-10,
        }


def scaling() -> None:
    """Exponents of the step's time in inputs, units and samples."""
    import time

    def seconds(n: int, N: int, B: int) -> float:
        step = stepper(n, N, B, "sgd", False)
        step()
        times = []
        for _ in range(7):
            start = time.perf_counter()
            step()
            times.append(time.perf_counter() - start)
        return float(np.median(times))

    base = (1024, 1024, 256)
    first = seconds(*base)
    for k, name in enumerate(("inputs", "units", "samples")):
        sizes = list(base)
        sizes[k] *= 4
        exponent = np.log(seconds(*sizes) / first) / np.log(4)
        print(f"  time of an exact step grows with {name} to the power {exponent:.2f} (target 1)")


def cases() -> Iterator[dict[str, Any]]:
    yield from gradient_cases()
    yield from projtorch_cases()
    yield from reference_cases()
    scaling()
