"""When does the code of a Dirichlet beta-VAE collapse, and what is knowing it worth? Each experiment has its own table.

    python -P examples/studies/dirichlet_vae.py            all of them, minutes
    python -P examples/studies/dirichlet_vae.py --quick    small versions
    python -P examples/studies/dirichlet_vae.py --only E2  one of them

A table that is in the output folder already isn't computed again; delete the file to repeat it.
Pixels of a published scene are read from samson.mat in the folder that the environment variable
EQUIPOISE_STUDY_DATA names, else in ../shared/data, and are left out where the file is missing.
The study dirichlet_unmixing holds E3, E5 and E6.

E1 onset of collapse over beta / beta_c            E7 noise of the gradient, analytic against sampled
E2 hysteresis and the global transition            E8 time by rows, features and components
E4 the search for beta
"""

import argparse
import os
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from equipoise.datasets import load_samson_unmixing, make_convex_mixture, make_hyperspectral
from equipoise.estimators import DirichletBetaVAE, abundance_rmse, collapse_path
from equipoise.plotting import COLORS, new_axes

DATA = Path(os.environ.get("EQUIPOISE_STUDY_DATA", Path(__file__).parents[3] / "shared" / "data"))
RATIOS = (0.25, 0.5, 0.75, 0.9, 0.95, 1.0, 1.05, 1.1, 1.15, 1.25, 1.4, 1.5, 1.6, 1.8)


def samson(n_pixels: int) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Pixels, abundances and endmembers of a random part of the scene."""
    path = DATA / "samson.mat"
    if not path.exists():
        print(f"(no {path.name}: left out)")
        return None
    scene = load_samson_unmixing(path)
    rows = np.random.RandomState(0).choice(len(scene.data), n_pixels, replace=False)
    return scene.data[rows], scene.abundances[rows], scene.endmembers


def synthetic(K: int, seed: int = 0, noise: float = 0.05) -> np.ndarray:
    return make_convex_mixture(400, 10, K, noise=noise, random_state=seed).data


def onset(frame: pd.DataFrame) -> float:
    """Smallest ratio with less than 1 % of the divergence at 0.25."""
    first = frame.loc[frame["ratio"] == 0.25, "kl"].iloc[0]
    return float(frame.loc[frame["kl"] < 0.01 * first, "ratio"].min())


def e1(quick: bool) -> pd.DataFrame:
    """Onset over the ratio: several K, alpha, sigma^2, scales and data sets."""
    data = {f"synthetic K={K}": (synthetic(K), K) for K in ((3,) if quick else (3, 5))}
    image = make_hyperspectral((30, 30), n_bands=60, random_state=0)
    data["hyperspectral K=3"] = (image.data, 3)
    pixels = None if quick else samson(1500)
    if pixels is not None:
        data["Samson K=3"] = (pixels[0], 3)
    data["wine K=3"] = (StandardScaler().fit_transform(load_wine().data), 3)
    rows = []
    for name, (X, K) in data.items():
        for alpha in (0.3, 1.0) if quick else (0.3, 1.0, 3.0):
            for scale, factor in ((1.0, 1.0), (100.0, 1.0), (1.0, 10.0), (1.0, 0.1)):
                if (scale, factor) != (1.0, 1.0) and (alpha != 1.0 or quick):
                    continue
                model = DirichletBetaVAE(
                    K,
                    concentration=alpha,
                    noise_variance=0.01 * scale**2 * factor,
                    tol=1e-6,
                    max_iter=3000,
                    random_state=0,
                )
                frame = collapse_path(model, scale * X, RATIOS)
                beta_c = model.collapse_threshold(scale * X)
                kl = frame["kl"].to_numpy()
                # Where a state of 1 % of the first divergence is left, the fall was no jump.
                fall = max((kl[:-1] - kl[1:]) / np.maximum(kl[:-1], 1e-2 * kl[0]))
                rows.append({
                    "data": name, "alpha": alpha, "scale": scale, "sigma2 factor": factor,
                    "beta_c": beta_c, "onset / beta_c": onset(frame),
                    "onset in beta": onset(frame) * beta_c, "largest fall": fall,
                    **{f"KL at {r}": k for r, k in zip(frame["ratio"], kl, strict=True)
                       if r in (0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5)},
                })  # fmt: skip
    return pd.DataFrame(rows)


def e2(quick: bool) -> pd.DataFrame:
    """Both branches of the path where the prior is sparse, and where it is flat."""
    X = make_convex_mixture(150, 10, 5, random_state=0).data
    parts = []
    for alpha in (0.3, 1.0):
        model = DirichletBetaVAE(5, concentration=alpha, tol=1e-6, max_iter=3000, random_state=0)
        frame = collapse_path(model, X, RATIOS[::2] if quick else RATIOS, direction="both")
        parts.append(frame.assign(alpha=alpha, r_global=frame.attrs["r_global"]))
    return pd.concat(parts, ignore_index=True)


def e4(quick: bool) -> pd.DataFrame:
    """A short grid of ratios against a long one of beta, by the error of the abundances."""
    sets = {}
    for K, alpha in ((3, 1.0),) if quick else ((3, 1.0), (5, 1.0), (3, 0.3)):
        mixture = make_convex_mixture(400, 10, K, concentration=alpha, random_state=K)
        sets[f"synthetic K={K}, alpha={alpha}"] = (mixture.data, mixture.weights, K, alpha)
    image = make_hyperspectral((25, 25), n_bands=60, random_state=0)
    sets["hyperspectral"] = (image.data, image.abundances, 3, 0.3)
    pixels = None if quick else samson(500)
    if pixels is not None:
        sets["Samson"] = (pixels[0], pixels[1], 3, 0.3)
    rows = []
    for name, (X, Z, K, alpha) in sets.items():
        model = DirichletBetaVAE(
            K, concentration=alpha, noise_variance=0.01, n_init=3, random_state=0, max_iter=300
        )
        beta_c = model.collapse_threshold(X)

        def error(model: DirichletBetaVAE, X: np.ndarray, Z: np.ndarray) -> float:
            return abundance_rmse(model.fit(X).transform(X), Z)

        grid = np.geomspace(1e-4, 1e4, 10 if quick else 30)
        long = [error(clone(model).set_params(beta=b), X, Z) for b in grid]
        ratios = (0.001, 0.005, 0.025, 0.1, 0.3, 0.75)
        short = [error(clone(model).set_params(beta_ratio=r), X, Z) for r in ratios]
        untrained = 1 + int(np.argmax(grid[::-1] < beta_c))
        rows.append({
            "data": name, "best of long grid": min(long), "at r": grid[np.argmin(long)] / beta_c,
            "best of six ratios": min(short), "at its r": ratios[int(np.argmin(short))],
            "short / long": min(short) / min(long),
            "trained in vain from above": untrained - 1,
        })  # fmt: skip
    return pd.DataFrame(rows)


def gradient_variance(module: Any, Y: Any, batches: list[Any]) -> float:
    """Sum of the variances of all gradients' entries over batches of rows."""
    import torch

    gradients = []
    for rows in batches:
        module.zero_grad()
        part = Y[rows]
        error, kl = module(part)
        module.loss(error, kl, torch.ones(len(part)), part.shape[1]).backward()
        found = [p.grad.ravel() for p in module.parameters() if p.grad is not None]
        gradients.append(torch.cat(found).numpy())
    return float(np.var(gradients, axis=0).sum())


def e7(quick: bool) -> pd.DataFrame:
    """Variance of the gradient, one sample a row against the closed form, along training."""
    import torch

    n, K = (1000, 5) if quick else (4000, 5)
    X = make_convex_mixture(n, 10, K, random_state=0).data
    rows = []
    for ratio in (0.1,) if quick else (0.02, 0.1, 0.25):
        for epochs in (1, 20) if quick else (1, 20, 60):
            model = DirichletBetaVAE(
                K, solver="adam", beta_ratio=ratio, max_iter=epochs, random_state=0
            ).fit(X)
            module = model.net_.module_
            scale = np.sqrt(model.total_variance_ / X.shape[1])
            Y = torch.as_tensor((X - model.mean_) / scale)
            torch.manual_seed(0)
            batches = [torch.randint(n, (256,)) for _ in range(40 if quick else 200)]
            whole = [torch.arange(n)] * 10
            found = {}
            for name, parts in (("batches", batches), ("same rows", whole)):
                for analytic in (True, False):
                    module.analytic = analytic
                    found[name, analytic] = gradient_variance(module, Y, parts)
            rows.append({
                "ratio": ratio, "epochs": epochs,
                "batches, closed form": found["batches", True],
                "batches, sampled": found["batches", False],
                "sampled / closed form": found["batches", False] / found["batches", True],
                "same rows, closed form": found["same rows", True],
                "same rows, sampled": found["same rows", False],
            })  # fmt: skip
    return pd.DataFrame(rows)


def e8(quick: bool) -> pd.DataFrame:
    """CPU seconds of 15 variational iterations, and the exponents of growth."""
    base = {"N": 10_000, "D": 100, "K": 4}
    grids = {"N": (5_000, 10_000, 20_000, 40_000), "D": (100, 200, 400), "K": (3, 6, 12)}
    if quick:
        grids = {"N": (2_000, 4_000)}
    rows = []
    for varied, values in grids.items():
        seconds = []
        for value in values:
            size = {**base, varied: value}
            X = make_convex_mixture(size["N"], size["D"], size["K"], random_state=0).data
            model = DirichletBetaVAE(
                size["K"], beta_ratio=0.05, solver="vem", max_iter=15, tol=0, random_state=0
            )
            model.fit(X[:500])  # compiles
            best = np.inf
            for _ in range(3):
                start = time.process_time()
                model.fit(X)
                best = min(best, time.process_time() - start)
            seconds.append(best)
            rows.append({"varied": varied, "value": value, "seconds": best})
        exponent = np.polyfit(np.log(values), np.log(seconds), 1)[0]
        rows.append({"varied": f"exponent in {varied}", "value": exponent})
    return pd.DataFrame(rows)


EXPERIMENTS: dict[str, Callable[[bool], pd.DataFrame]] = {
    "E1": e1, "E2": e2, "E4": e4, "E7": e7, "E8": e8,
}  # fmt: skip


def figure(output: Path) -> None:
    """Divergence over the ratio for every data set, and the loop of E2."""
    import matplotlib.pyplot as plt

    if not (output / "E1.csv").exists():
        return
    frame = pd.read_csv(output / "E1.csv")
    ax = new_axes(7.2, 4.4)
    columns = [c for c in frame.columns if c.startswith("KL at ")]
    ratios = [float(c.removeprefix("KL at ")) for c in columns]
    for alpha, color in zip((0.3, 1.0, 3.0), COLORS, strict=False):
        for i, (_, row) in enumerate(frame[frame["alpha"] == alpha].iterrows()):
            label = f"alpha = {alpha:g}" if i == 0 else None
            ax.plot(ratios, row[columns] / row[columns[0]], color=color, alpha=0.6, label=label)
    ax.axvline(1, color="0.4", ls="--", lw=1)
    ax.set(xlabel="beta / beta_c", ylabel="divergence over that at 0.25")
    ax.legend(frameon=False)
    ax.figure.savefig(output / "onset.png", dpi=150)
    plt.close("all")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=sorted(EXPERIMENTS))
    parser.add_argument("--output", type=Path, default=Path("studies_output/dirichlet_vae"))
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    for name, experiment in EXPERIMENTS.items():
        if arguments.only not in (None, name):
            continue
        path = arguments.output / f"{name}.csv"
        if path.exists():
            print(f"{name}: {path} is there already")
            continue
        start = time.perf_counter()
        frame = partial(experiment, arguments.quick)()
        print(
            f"\n{name}: {(experiment.__doc__ or '').strip()} ({time.perf_counter() - start:.0f} s)"
        )
        if len(frame):
            print(frame.round(4).to_string(index=False))
            frame.to_csv(path, index=False)
            table = "\n".join("| " + " | ".join(map(str, row)) + " |" for row in [
                frame.columns, ["---"] * frame.shape[1], *frame.round(4).to_numpy().tolist()
            ])  # fmt: skip
            path.with_suffix(".md").write_text(table + "\n")
    figure(arguments.output)


if __name__ == "__main__":
    main()
