"""Unmixing side by side: ours, the classical way, archetypes and scikit-learn's decompositions.

    python -P examples/studies/dirichlet_peers.py            all of it, minutes
    python -P examples/studies/dirichlet_peers.py --quick    a small version

Each method runs in a process of its own, so that its peak memory is known: the growth of the
process beyond what it held before the fit, which a fit to a few rows has preceded. Rows that no
method has seen are coded and rebuilt by each method's own means. A table that is in the output
folder already isn't computed again; delete the file to repeat it. Pixels of a published scene are
read from samson.mat in the folder that the environment variable EQUIPOISE_STUDY_DATA names, else in
../shared/data, and are left out where the file is missing.
"""

import argparse
import multiprocessing
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.decomposition import (
    NMF,
    DictionaryLearning,
    FactorAnalysis,
    LatentDirichletAllocation,
)

from equipoise.datasets import load_samson_unmixing, make_hyperspectral
from equipoise.estimators import DirichletBetaVAE, abundance_rmse, fcls, match_endmembers, vca
from equipoise.plotting import COLORS, new_axes

DATA = Path(os.environ.get("EQUIPOISE_STUDY_DATA", Path(__file__).parents[3] / "shared" / "data"))
K = 3

#: (training rows, rows to code, seed) -> (codes, components, rebuilt rows); None where a method has none.
Method = Callable[[np.ndarray, np.ndarray, int], tuple[Any, Any, np.ndarray]]


def shares(H: np.ndarray) -> np.ndarray:
    """Rows that sum to one."""
    return H / np.maximum(H.sum(axis=1, keepdims=True), 1e-12)


def ours(decoder: str) -> Method:
    def run(X: np.ndarray, held: np.ndarray, seed: int) -> tuple[Any, Any, np.ndarray]:
        model = DirichletBetaVAE(
            K, concentration=0.3, beta_ratio=0.05, decoder=decoder, random_state=seed
        ).fit(X)
        Z = model.transform(held)
        return Z, model.components_, model.inverse_transform(Z)

    return run


def classical(X: np.ndarray, held: np.ndarray, seed: int) -> tuple[Any, Any, np.ndarray]:
    W = vca(X, K, random_state=seed)[0]
    Z = fcls(held, W)
    return Z, W, Z @ W


def archetypal(X: np.ndarray, held: np.ndarray, seed: int) -> tuple[Any, Any, np.ndarray]:
    from archetypes import AA

    model = AA(n_archetypes=K, init="furthest_sum", random_state=seed).fit(X)
    Z = model.transform(held)
    return Z, model.archetypes_, Z @ model.archetypes_


def matrix_factors(X: np.ndarray, held: np.ndarray, seed: int) -> tuple[Any, Any, np.ndarray]:
    model = NMF(K, init="nndsvda", random_state=seed, max_iter=1000).fit(np.maximum(X, 0))
    H = model.transform(np.maximum(held, 0))
    return shares(H), model.components_, H @ model.components_


def topics(X: np.ndarray, held: np.ndarray, seed: int) -> tuple[Any, Any, np.ndarray]:
    model = LatentDirichletAllocation(K, random_state=seed).fit(np.maximum(X, 0))
    Z = model.transform(np.maximum(held, 0))
    W = shares(model.components_)
    return Z, W, held.sum(axis=1, keepdims=True) * (Z @ W)  # topics know no brightness


def dictionary(X: np.ndarray, held: np.ndarray, seed: int) -> tuple[Any, Any, np.ndarray]:
    model = DictionaryLearning(
        K, alpha=1e-3, fit_algorithm="cd", transform_algorithm="lasso_cd", positive_code=True,
        positive_dict=True, max_iter=100, random_state=seed,
    ).fit(X)  # fmt: skip
    H = model.transform(held)
    return shares(H), model.components_, H @ model.components_


def factors(X: np.ndarray, held: np.ndarray, seed: int) -> tuple[Any, Any, np.ndarray]:
    model = FactorAnalysis(K - 1, random_state=seed).fit(X)
    return None, None, model.transform(held) @ model.components_ + model.mean_


METHODS: dict[str, Method] = {
    "ours, linear": ours("linear"),
    "ours, box": ours("box"),
    "VCA + FCLS": classical,
    "archetypes.AA": archetypal,
    "NMF, rows normalised": matrix_factors,
    "LatentDirichletAllocation": topics,
    "DictionaryLearning, positive": dictionary,
    "FactorAnalysis": factors,
}


def peak_mib() -> float:
    """Largest memory of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def measure(
    name: str, X: np.ndarray, held: np.ndarray, true_Z: np.ndarray, true_W: np.ndarray, seed: int
) -> dict[str, Any]:
    """Fit and judge one method; run in a process of its own."""
    warnings.simplefilter("ignore")
    METHODS[name](X[:60], held[:20], seed)  # imports and compiles
    before, start = peak_mib(), time.perf_counter()
    Z, W, rebuilt = METHODS[name](X, held, seed)
    row = {"seconds": time.perf_counter() - start, "peak MiB": peak_mib() - before}
    row["R2"] = 1 - ((held - rebuilt) ** 2).sum() / ((held - X.mean(axis=0)) ** 2).sum()
    row["RMSE"] = np.nan if Z is None else abundance_rmse(Z, true_Z)
    row["mean angle"] = np.nan if W is None else match_endmembers(W, true_W).distance.mean()
    return row


def scenes(quick: bool) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Rows, abundances and endmembers."""
    size = 25 if quick else 60
    image = make_hyperspectral((size, size), n_bands=40 if quick else 156, random_state=0)
    found = {"generated image": (image.data, image.abundances, image.endmembers)}
    path = DATA / "samson.mat"
    if quick or not path.exists():
        print("(Samson: left out)")
        return found
    scene = load_samson_unmixing(path)
    found["Samson"] = (scene.data, scene.abundances, scene.endmembers)
    return found


def compare(quick: bool) -> pd.DataFrame:
    """Mean over seeds, each with its own rows, and the standard deviation of the abundance error."""
    rows = []
    names = [n for n in METHODS if n != "archetypes.AA" or find_spec("archetypes")]
    context = multiprocessing.get_context("spawn")
    for scene, (data, true_Z, true_W) in scenes(quick).items():
        for name in names:
            runs = []
            for seed in range(1 if quick else 3):
                order = np.random.RandomState(seed).permutation(len(data))
                train, test = order[: len(data) // 3], order[len(data) // 3 :][:1000]
                given = (name, data[train], data[test], true_Z[test], true_W, seed)
                with ProcessPoolExecutor(1, mp_context=context) as pool:
                    runs.append(pool.submit(measure, *given).result())
            frame = pd.DataFrame(runs)
            row = {"data": scene, "method": name, **frame.mean().to_dict()}
            row["sd of RMSE"] = frame["RMSE"].std() if len(frame) > 1 else np.nan
            rows.append(row)
            print(f"{scene}, {name}: {row['seconds']:.2f} s", flush=True)
    return pd.DataFrame(rows)


def figure(frame: pd.DataFrame, path: Path) -> None:
    """Abundance error against time."""
    import matplotlib.pyplot as plt

    ax = new_axes(7.2, 4.6)
    for (scene, part), color in zip(frame.groupby("data", sort=False), COLORS, strict=False):
        part = part.dropna(subset="RMSE")
        ax.plot(part["seconds"], part["RMSE"], "o", color=color, label=scene)
        for _, row in part.iterrows():
            place = (row["seconds"], row["RMSE"])
            ax.annotate(row["method"], place, (4, 4), textcoords="offset points", fontsize=8)
    ax.set(xscale="log", xlabel="seconds", ylabel="abundance RMSE of unseen rows")
    ax.legend(frameon=False)
    ax.figure.savefig(path, dpi=150)
    plt.close("all")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("studies_output/dirichlet_peers"))
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    path = arguments.output / "peers.csv"
    if path.exists():
        print(f"{path} is there already")
        frame = pd.read_csv(path)
    else:
        frame = compare(arguments.quick)
        frame.to_csv(path, index=False)
    print(frame.round(4).to_string(index=False))
    figure(frame, path.with_suffix(".png"))


if __name__ == "__main__":
    main()
