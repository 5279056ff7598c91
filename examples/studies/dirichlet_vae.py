"""When does the code of a Dirichlet beta-VAE collapse, and what is knowing it worth? Each experiment has its own table.

    python -P examples/studies/dirichlet_vae.py            all of them, minutes
    python -P examples/studies/dirichlet_vae.py --quick    small versions
    python -P examples/studies/dirichlet_vae.py --only E3  one of them

A table that is in the output folder already isn't computed again; delete the file to repeat it.
Experiments on published scenes read samson.mat and carbs.RData from the folder that the environment variable
EQUIPOISE_STUDY_DATA names, else from ../shared/data, and are left out where the file is missing.

E1 onset of collapse over beta / beta_c            E5 archetypal analysis against the package archetypes
E2 hysteresis and the global transition            E6 Raman spectra of sugar mixtures
E3 unmixing Samson against VCA + FCLS              E7 noise of the gradient, analytic against sampled
E4 the search for beta                             E8 time by rows, features and components
"""

import argparse
import os
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import t as student_t
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.decomposition import NMF
from sklearn.preprocessing import StandardScaler

from equipoise.datasets import (
    load_samson_unmixing,
    load_sugar_raman,
    make_convex_mixture,
    make_hyperspectral,
)
from equipoise.estimators import (
    DirichletBetaVAE,
    abundance_rmse,
    collapse_path,
    fcls,
    match_endmembers,
    nfindr,
    vca,
)
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


def mean_interval(values: np.ndarray) -> tuple[float, float, float]:
    """Mean and 95 % interval, by Student's t."""
    values = np.asarray(values, dtype=float)
    half = student_t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return values.mean(), values.mean() - half, values.mean() + half


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


def unmixing_scores(
    W: np.ndarray, Z: np.ndarray, X: np.ndarray, true_W: np.ndarray, true_Z: np.ndarray
) -> dict[str, float]:
    angles = match_endmembers(W, true_W).distance
    residual = ((X - Z @ W) ** 2).sum() / ((X - X.mean(axis=0)) ** 2).sum()
    return {"mean angle": angles.mean(), "RMSE": abundance_rmse(Z, true_Z), "R2": 1 - residual}


def e3(quick: bool) -> pd.DataFrame:
    """Angles and abundance errors on Samson."""
    pixels = samson(500 if quick else 1500)
    if pixels is None:
        return pd.DataFrame()
    X, true_Z, true_W = pixels
    rows = []
    for seed in range(2 if quick else 5):
        for name, method in (("VCA + FCLS", vca), ("N-FINDR + FCLS", nfindr)):
            start = time.perf_counter()
            W = method(X, 3, random_state=seed)[0]
            Z = fcls(X, W)
            seconds = time.perf_counter() - start
            rows.append({"method": name, "seed": seed, "seconds": seconds,
                         **unmixing_scores(W, Z, X, true_W, true_Z)})  # fmt: skip
        for alpha in (0.3, 1.0):
            for ratio in (0.0005, 0.002, 0.01, 0.05, 0.1, 0.3):
                model = DirichletBetaVAE(
                    3, concentration=alpha, beta_ratio=ratio, decoder="box", random_state=seed
                )
                start = time.perf_counter()
                Z = model.fit(X).transform(X)
                seconds = time.perf_counter() - start
                rows.append({"method": f"ours, alpha={alpha}, r={ratio}", "seed": seed,
                             "seconds": seconds,
                             **unmixing_scores(model.components_, Z, X, true_W, true_Z)})  # fmt: skip
        model = NMF(3, init="nndsvda", random_state=seed, max_iter=1000)
        start = time.perf_counter()
        H = model.fit_transform(np.maximum(X, 0))
        Z = H / np.maximum(H.sum(axis=1, keepdims=True), 1e-12)
        seconds = time.perf_counter() - start
        scores = unmixing_scores(model.components_, Z, X, true_W, true_Z)
        # Without normalisation, as NMF means it: normalised rows don't rebuild the data.
        residual = ((X - H @ model.components_) ** 2).sum()
        scores["R2"] = 1 - residual / ((X - X.mean(axis=0)) ** 2).sum()
        rows.append({"method": "NMF, rows normalised", "seed": seed, "seconds": seconds, **scores})
    frame = pd.DataFrame(rows)
    summary = []
    for method, group in frame.groupby("method", sort=False):
        row: dict[str, object] = {"method": method}
        for column in ("mean angle", "RMSE", "R2", "seconds"):
            mean, low, high = mean_interval(group[column].to_numpy())
            row |= {column: mean, f"{column} low": low, f"{column} high": high}
        summary.append(row)
    return pd.DataFrame(summary)


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


def e5(quick: bool) -> pd.DataFrame:
    """Archetypes of real tables, and time by rows, against archetypes.AA."""
    try:
        from archetypes import AA
    except ImportError:
        print("(archetypes is not installed: left out)")
        return pd.DataFrame()
    sets = {
        "iris": (StandardScaler().fit_transform(load_iris().data), 3),
        "wine": (StandardScaler().fit_transform(load_wine().data), 4),
    }
    if not quick:
        sets["digits"] = (load_digits().data / 16, 10)
    for n in (1000,) if quick else (1000, 2000, 4000, 8000):
        sets[f"mixture N={n}, D=50"] = (make_convex_mixture(n, 50, 5, random_state=0).data, 5)
    rows = []
    for name, (X, K) in sets.items():
        for decoder in ("archetypal", "linear"):
            model = DirichletBetaVAE(
                K, decoder=decoder, beta_ratio=0.003, init="furthest", solver="vem", random_state=0
            )
            model.fit(X[: K + 50])  # compiles
            start = time.perf_counter()
            model.fit(X)
            seconds = time.perf_counter() - start
            rows.append({"data": name, "method": f"ours, {decoder}", "seconds": seconds,
                         "R2": model.report_.r2, "iterations": model.n_iter_})  # fmt: skip
        peer = AA(n_archetypes=K, init="furthest_sum", random_state=0)
        start = time.perf_counter()
        Z = peer.fit_transform(X)
        seconds = time.perf_counter() - start
        residual = ((X - Z @ peer.archetypes_) ** 2).sum() / ((X - X.mean(axis=0)) ** 2).sum()
        rows.append({"data": name, "method": "archetypes.AA", "seconds": seconds,
                     "R2": 1 - residual, "iterations": peer.n_iter_})  # fmt: skip
    return pd.DataFrame(rows)


def e6(quick: bool) -> pd.DataFrame:
    """Sugars: concentrations of 21 mixtures from their spectra alone."""
    path = DATA / "carbs.RData"
    if not path.exists():
        print(f"(no {path.name}: left out)")
        return pd.DataFrame()
    sugars = load_sugar_raman(path)
    X, Z, W = sugars.data, sugars.abundances, sugars.endmembers
    rows = [{"method": "FCLS with the known spectra", "mean angle": 0.0,
             "RMSE": abundance_rmse(fcls(X, W), Z)}]  # fmt: skip
    for name, method in (("VCA + FCLS", vca), ("N-FINDR + FCLS", nfindr)):
        found = method(X, 3, n_init=10, random_state=0)[0]
        rows.append({"method": name, "mean angle": match_endmembers(found, W).distance.mean(),
                     "RMSE": abundance_rmse(fcls(X, found), Z)})  # fmt: skip
    for decoder in ("nonnegative", "archetypal"):
        for alpha in (0.3, 1.0):
            for ratio in (
                (0.001, 0.01, 0.1) if quick else (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
            ):
                model = DirichletBetaVAE(
                    3, concentration=alpha, beta_ratio=ratio, decoder=decoder, init="vca",
                    n_init=5, random_state=0,
                )  # fmt: skip
                model.fit(X)
                rows.append({
                    "method": f"ours, {decoder}, alpha={alpha}, r={ratio}",
                    "mean angle": match_endmembers(model.components_, W).distance.mean(),
                    "RMSE": abundance_rmse(model.transform(X), Z),
                })  # fmt: skip
    return pd.DataFrame(rows)


def e7(quick: bool) -> pd.DataFrame:
    """Variance of the endmembers' and encoder's gradient over samples and batches."""
    import torch

    from equipoise.estimators.dirichlet_vae.networks import (
        ConcentrationEncoder,
        DirichletVAE,
        LinearEndmembers,
    )

    rows = []
    for K in (3, 5):
        X = synthetic(K)
        Y = torch.as_tensor((X - X.mean(axis=0)) / X.std())
        torch.manual_seed(0)
        encoder = ConcentrationEncoder(10, K).double()
        V = torch.as_tensor(np.random.default_rng(0).standard_normal((10, K)))
        batches = [torch.randperm(400)[:256] for _ in range(40 if quick else 200)]
        for fraction, name in ((None, "same rows"), (1, "batches")):
            spread = {}
            for analytic in (True, False):
                module = DirichletVAE(
                    encoder, LinearEndmembers(V), np.ones(K), beta=1.0, noise_variance=0.1,
                    analytic=analytic,
                )  # fmt: skip
                gradients = []
                for rows_of_batch in batches:
                    module.zero_grad()
                    part = Y if fraction is None else Y[rows_of_batch]
                    error, kl = module(part)
                    module.loss(error, kl, torch.ones(len(part)), 10).backward()
                    gradients.append(torch.cat([p.grad.ravel() for p in module.parameters()
                                                if p.grad is not None]).numpy())  # fmt: skip
                spread[analytic] = float(np.var(gradients, axis=0).sum())
            rows.append({"K": K, "varied": name, "variance, analytic": spread[True],
                         "variance, sampled": spread[False],
                         "ratio": spread[False] / max(spread[True], 1e-300)})  # fmt: skip
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
    "E1": e1, "E2": e2, "E3": e3, "E4": e4, "E5": e5, "E6": e6, "E7": e7, "E8": e8,
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
