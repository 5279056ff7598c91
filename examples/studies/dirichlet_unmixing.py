"""Which sources and proportions does a Dirichlet beta-VAE find in real mixtures? Each experiment has its own table.

    python -P examples/studies/dirichlet_unmixing.py            all of them, minutes
    python -P examples/studies/dirichlet_unmixing.py --quick    small versions
    python -P examples/studies/dirichlet_unmixing.py --only E3  one of them

A table that is in the output folder already isn't computed again; delete the file to repeat it.
Published scenes are read from samson.mat and carbs.RData in the folder that the environment variable
EQUIPOISE_STUDY_DATA names, else in ../shared/data, and are left out where the file is missing.

E3 unmixing Samson against VCA + FCLS, N-FINDR + FCLS and NMF
E5 archetypal analysis against the package archetypes
E6 Raman spectra of sugar mixtures
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
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.decomposition import NMF
from sklearn.preprocessing import StandardScaler

from equipoise.datasets import load_samson_unmixing, load_sugar_raman, make_convex_mixture
from equipoise.estimators import (
    DirichletBetaVAE,
    abundance_rmse,
    fcls,
    match_endmembers,
    nfindr,
    vca,
)
from equipoise.plotting import COLORS, new_axes

DATA = Path(os.environ.get("EQUIPOISE_STUDY_DATA", Path(__file__).parents[3] / "shared" / "data"))


def samson(n_pixels: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Pixels, abundances and endmembers of a random part of the scene."""
    path = DATA / "samson.mat"
    if not path.exists():
        print(f"(no {path.name}: left out)")
        return None
    scene = load_samson_unmixing(path)
    rows = np.random.RandomState(seed).choice(len(scene.data), n_pixels, replace=False)
    return scene.data[rows], scene.abundances[rows], scene.endmembers


def mean_interval(values: np.ndarray) -> tuple[float, float, float]:
    """Mean and 95 % interval, by Student's t."""
    values = np.asarray(values, dtype=float)
    half = student_t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return values.mean(), values.mean() - half, values.mean() + half


def unmixing_scores(
    W: np.ndarray, Z: np.ndarray, X: np.ndarray, true_W: np.ndarray, true_Z: np.ndarray
) -> dict[str, float]:
    angles = match_endmembers(W, true_W).distance
    residual = ((X - Z @ W) ** 2).sum() / ((X - X.mean(axis=0)) ** 2).sum()
    return {"mean angle": angles.mean(), "RMSE": abundance_rmse(Z, true_Z), "R2": 1 - residual}


def e3(quick: bool) -> pd.DataFrame:
    """Angles and abundance errors on Samson; each seed has its own pixels."""
    rows: list[dict[str, object]] = []
    for seed in range(2 if quick else 10):
        pixels = samson(500 if quick else 1500, seed)
        if pixels is None:
            return pd.DataFrame()
        X, true_Z, true_W = pixels
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
    rival = frame[frame["method"] == "VCA + FCLS"].set_index("seed")[["mean angle", "RMSE"]]
    for method, group in frame.groupby("method", sort=False):
        row: dict[str, object] = {"method": method}
        for column in ("mean angle", "RMSE", "R2", "seconds"):
            mean, low, high = mean_interval(group[column].to_numpy())
            row |= {column: mean, f"{column} low": low, f"{column} high": high}
        for column in ("mean angle", "RMSE"):
            row |= {
                f"least {column}": group[column].min(),
                f"largest {column}": group[column].max(),
            }
        # On the same pixels: on how many of the parts both measures are below VCA + FCLS.
        both = group.set_index("seed")[["mean angle", "RMSE"]] < rival
        row["parts better than VCA + FCLS"] = f"{int(both.all(axis=1).sum())} of {len(group)}"
        summary.append(row)
    return pd.DataFrame(summary)


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


EXPERIMENTS: dict[str, Callable[[bool], pd.DataFrame]] = {"E3": e3, "E5": e5, "E6": e6}


def figure(output: Path) -> None:
    """Angle against abundance error of each method on Samson."""
    import matplotlib.pyplot as plt

    if not (output / "E3.csv").exists():
        return
    frame = pd.read_csv(output / "E3.csv")
    ax = new_axes(7.2, 4.6)
    ours = frame["method"].str.startswith("ours")
    for alpha, color in ((0.3, COLORS[0]), (1.0, COLORS[1])):
        part = frame[ours & frame["method"].str.contains(f"alpha={alpha},")]
        label = f"ours, alpha = {alpha:g}, by ratio"
        ax.plot(part["mean angle"], part["RMSE"], marker="o", ms=4, color=color, label=label)
        for _, row in part.iterrows():
            place = (row["mean angle"], row["RMSE"])
            text = row["method"].split("r=")[1]
            ax.annotate(text, place, xytext=(4, 4), textcoords="offset points", fontsize=8)
    for (_, row), marker in zip(frame[~ours].iterrows(), "s^D", strict=False):
        ax.plot(row["mean angle"], row["RMSE"], marker, color="0.3", label=row["method"])
    ax.set(xlabel="mean spectral angle (rad)", ylabel="abundance RMSE")
    ax.legend(frameon=False, fontsize=8)
    ax.figure.savefig(output / "samson.png", dpi=150)
    plt.close("all")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=sorted(EXPERIMENTS))
    parser.add_argument("--output", type=Path, default=Path("studies_output/dirichlet_unmixing"))
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
