"""Experiments on exact attributions for product kernels, each with its own table.

    python -P examples/studies/pkex_shapley.py            all of them, minutes
    python -P examples/studies/pkex_shapley.py --quick    small versions, about a minute
    python -P examples/studies/pkex_shapley.py --only E4  one of them

A study whose table is in the output folder already isn't run again; delete the file to repeat it.

E1 exactness and time by number of features      E5 diabetes by sex
E2 convergence of sampled values                 E6 feature selection by HSIC
E3 does the attribution find relevant features   E7 numerical stability of the formulas
E4 separation of features with heavier tails
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import t as student_t
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.feature_selection import SelectKBest, mutual_info_classif
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from equipoise.datasets import (
    make_heavy_tail_shift,
    make_polynomial_regression,
    make_squared_exponential,
)
from equipoise.explainers import (
    HSICShapleySelector,
    MMDShapleyExplainer,
    PKeXShapleyExplainer,
    product_game_values,
)
from equipoise.explainers.product_kernels.esp import esp_values
from equipoise.plotting import COLORS, new_axes
from equipoise.testing import shapley_values


def masks(n_players: int) -> np.ndarray:
    return (np.arange(2**n_players)[:, None] >> np.arange(n_players) & 1).astype(bool)


def regression(n_features: int, n_samples: int = 300, seed: int = 0) -> tuple[SVR, np.ndarray]:
    generator = np.random.RandomState(seed)
    X = generator.normal(size=(n_samples, n_features))
    y = X @ generator.uniform(size=n_features) + X[:, 0] * X[:, 1]
    return SVR(C=10.0, epsilon=0.0).fit(X, y), X


def mean_interval(values: list[float] | np.ndarray) -> tuple[float, float, float]:
    """Mean and 95 % interval, by Student's t."""
    values = np.asarray(values, dtype=float)
    half = student_t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return values.mean(), values.mean() - half, values.mean() + half


def e1(quick: bool) -> pd.DataFrame:
    """Error against all coalitions, and time by number of features."""
    rows = []
    for d in (5, 10) if quick else (5, 10, 15):
        model, X = regression(d, 60)
        explainer = PKeXShapleyExplainer(model).fit()
        start = time.perf_counter()
        v = explainer.value_function(X[:1] + 0.1, masks(d))[0]
        brute = time.perf_counter() - start
        error = np.abs(explainer.shap_values(X[:1] + 0.1)[0] - shapley_values(v)).max()
        rows.append({"d": d, "relative error": error / np.abs(model.dual_coef_).sum(),
                     "brute force (s)": brute})  # fmt: skip
    for d in (10, 30, 100) if quick else (10, 15, 30, 50, 100, 200, 500, 1000, 2000):
        model, X = regression(d)
        explainer = PKeXShapleyExplainer(model).fit()
        explainer.explain(X[:1])
        start = time.perf_counter()
        explanation = explainer.explain(X[:16] + 0.1)
        seconds = (time.perf_counter() - start) / 16
        rows.append({"d": d, "ms a row": 1e3 * seconds, "nodes": explanation.n_nodes,
                     "error bound": explanation.error_bound})  # fmt: skip
    return pd.DataFrame(rows)


def e2(quick: bool) -> pd.DataFrame:
    """Kernel SHAP on the same value function, by number of sampled coalitions."""
    import shap

    rows = []
    for d in (10, 30) if quick else (10, 20, 30, 50):
        model, X = regression(d, 50 * d if not quick else 200)
        points = X[: 3 if quick else 20] + 0.1
        explainer = PKeXShapleyExplainer(model).fit()
        truth = explainer.shap_values(points)
        budgets = [200, 1000] if quick else [200, 1000, 5000, 20000]
        for budget in [b for b in budgets if b <= 2**d] + ([2**d - 2] if d == 10 else []):
            errors = []
            for x, phi in zip(points, truth, strict=True):
                game = explainer.game(x)
                peer = shap.KernelExplainer(
                    lambda Z, game=game: (
                        game.constant
                        + np.exp(Z @ np.log(np.maximum(game.presence, 1e-300)).T) @ game.weights
                    ),
                    np.zeros((1, d)),
                )
                np.random.seed(0)  # noqa: NPY002 - the peer draws from the global generator
                found = peer.shap_values(np.ones(d), nsamples=budget, l1_reg=0, silent=True)
                errors.append(np.linalg.norm(found - phi) / np.linalg.norm(phi))
            mean, low, high = mean_interval(errors)
            rows.append({"d": d, "coalitions": budget, "error": mean, "low": low, "high": high})
    return pd.DataFrame(rows)


def e3(quick: bool) -> pd.DataFrame:
    """Share of relevant features among the d // 3 largest attributions, ours and Kernel SHAP's."""
    import shap

    rows = []
    n, d, n_explained = (100, 9, 10) if quick else (200, 12, 50)
    problems = {
        "polynomial, degree 5": lambda seed: make_polynomial_regression(n, d, degree=5, random_state=seed),
        "polynomial, degree 10": lambda seed: make_polynomial_regression(n, d, degree=10, random_state=seed),
        "squared exponential": lambda seed: make_squared_exponential(n, d, random_state=seed),
    }  # fmt: skip
    for name, make in problems.items():
        for seed in (0,) if quick else (0, 1, 2, 3, 4):
            bunch = make(seed)
            kernel = RBF(np.full(d, 3.0), (0.1, 100.0)) + WhiteKernel(0.1, (1e-6, 1e2))
            model = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)
            model.fit(bunch.data, bunch.target)
            points = bunch.data[:n_explained]
            found = {}
            for removal in ("identity", "interventional"):
                explainer = PKeXShapleyExplainer(
                    model, removal=removal, reference=20 if removal == "interventional" else None,
                    random_state=0,
                ).fit(bunch.data)  # fmt: skip
                found[f"exact, {removal}"] = explainer.shap_values(points)
            np.random.seed(0)  # noqa: NPY002 - the peer draws from the global generator
            peer = shap.KernelExplainer(model.predict, bunch.data[:20])
            found["Kernel SHAP, 200 samples"] = peer.shap_values(
                points, nsamples=200, l1_reg=0, silent=True
            )
            for method, phi in found.items():
                top = np.argsort(-np.abs(phi), axis=1)[:, : d // 3]
                hit = bunch.relevant[top].mean()
                rows.append({"problem": name, "method": method, "seed": seed, "hit rate": hit})
    return pd.DataFrame(rows)


def e4(quick: bool) -> pd.DataFrame:
    """Attribution of MMD^2 to features with heavier tails, with and without a difference."""
    rows = []
    for covariance in ("identity", "wishart"):
        for n in (200,) if quick else (200, 500):
            for statistic in ("u", "v"):
                for n_shifted in (10, 0):
                    for seed in range(3 if quick else 20):
                        bunch = make_heavy_tail_shift(
                            n, 20, n_shifted, covariance=covariance, random_state=seed
                        )
                        values = (
                            n
                            * MMDShapleyExplainer(statistic=statistic)
                            .fit(bunch.first, bunch.second)
                            .values_
                        )
                        last = np.arange(20) >= 10
                        rows.append(
                            {
                                "covariance": covariance, "n": n, "statistic": statistic,
                                "shifted": n_shifted, "seed": seed,
                                "last ten": values[last].mean(), "first ten": values[~last].mean(),
                                "recall": last[np.argsort(-values)[:10]].mean(),
                            }
                        )  # fmt: skip
    return pd.DataFrame(rows)


def e5(quick: bool) -> pd.DataFrame:
    """Which measurements differ between the sexes in the diabetes data, with p-values."""
    X, _ = load_diabetes(return_X_y=True, as_frame=True)
    male = X["sex"] > 0
    explainer = MMDShapleyExplainer(n_permutations=99 if quick else 1999, random_state=0)
    rest = X.drop(columns="sex")
    explainer.fit(rest[male], rest[~male])
    return pd.DataFrame(
        {
            "feature": [*rest.columns, "total"],
            "207 * value": 207 * np.append(explainer.values_, explainer.statistic_),
            "p": np.append(explainer.pvalues_, explainer.pvalue_),
            "adjusted p": np.append(explainer.pvalues_adjusted_, np.nan),
        }
    )


def e6(quick: bool) -> pd.DataFrame:
    """Accuracy of an SVM on selected features: HSIC against mutual information."""
    rows = []
    data = {"breast cancer": load_breast_cancer(), "wine": load_wine(), "digits": load_digits()}
    for name, bunch in data.items():
        generator = np.random.RandomState(0)
        X, y = bunch.data[:600], bunch.target[:600]
        X = np.column_stack([X, generator.normal(size=(len(X), X.shape[1] // 2))])
        for k in (5,) if quick else (3, 5, 10, 15):
            folds = StratifiedKFold(5, shuffle=True, random_state=0)
            for method, selector in (
                ("HSIC Shapley", HSICShapleySelector(k)),
                ("mutual information", SelectKBest(seeded_information, k=k)),
            ):
                pipeline = make_pipeline(StandardScaler(), selector, SVC())
                scores = cross_val_score(pipeline, X, y, cv=folds)
                for fold, score in enumerate(scores):
                    rows.append({"data": name, "k": k, "method": method, "fold": fold,
                                 "accuracy": score})  # fmt: skip
    return pd.DataFrame(rows)


def seeded_information(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    return mutual_info_classif(X, y, random_state=0)


def e7(quick: bool) -> pd.DataFrame:
    """Relative errors of six ways to evaluate one game, against many digits."""
    import mpmath

    rows = []
    for d in (20, 50) if quick else (20, 100, 200, 500):
        K = np.random.RandomState(0).uniform(size=d)
        with mpmath.workdps(60 + d):
            exact = exact_values(K)
        found = {
            "quadrature, accurate nodes": product_game_values([1.0], [K], n_nodes="exact"),
            "quadrature, numpy's nodes": library_quadrature(K),
            "symmetric polynomials, two tables": esp_values(K[None, None] - 1, np.ones((1, 1)))[0, :, 0],
            "symmetric polynomials, one divided out": deconvolved(K),
            "Newton's identities": newton(K),
            "Moebius form": moebius(K),
        }  # fmt: skip
        for method, phi in found.items():
            error = float(np.max(np.abs(phi - exact)) / np.max(np.abs(exact)))
            rows.append({"d": d, "method": method, "relative error": error})
    return pd.DataFrame(rows)


def exact_values(K: np.ndarray) -> np.ndarray:
    """The symmetric-polynomial form in many digits."""
    import mpmath

    d, k = len(K), [mpmath.mpf(float(value)) for value in K]
    full = [mpmath.mpf(1)]
    for value in k:
        full = [a + value * b for a, b in zip([*full, 0], [0, *full], strict=True)]
    mu = [mpmath.mpf(1) / (d * mpmath.binomial(d - 1, q)) for q in range(d)]
    phi = []
    for value in k:
        rest = [mpmath.mpf(1)]  # divide out 1 + value x
        for q in range(1, d):
            rest.append(full[q] - value * rest[-1])
        phi.append(float((value - 1) * mpmath.fdot(mu, rest)))
    return np.array(phi)


def library_quadrature(K: np.ndarray) -> np.ndarray:
    x, w = np.polynomial.legendre.leggauss((len(K) + 1) // 2)
    F = 1 + np.outer((1 + x) / 2, K - 1)
    return (K - 1) * ((w / 2 * F.prod(axis=1)) @ (1 / F))


def weights(d: int) -> np.ndarray:
    mu = np.empty(d)
    mu[0] = 1 / d
    for q in range(1, d):
        mu[q] = mu[q - 1] * q / (d - q)
    return mu


def deconvolved(K: np.ndarray) -> np.ndarray:
    d, full = len(K), np.ones(1)
    for value in K:
        full = np.convolve(full, [1, value])
    phi = []
    for value in K:
        rest = np.ones(d)
        for q in range(1, d):
            rest[q] = full[q] - value * rest[q - 1]
        phi.append((value - 1) * weights(d) @ rest)
    return np.array(phi)


def newton(K: np.ndarray) -> np.ndarray:
    d, phi = len(K), []
    for j in range(d):
        others = np.delete(K, j)
        powers = np.array([np.sum(others**p) for p in range(d)])
        e = np.ones(d)
        for q in range(1, d):
            signs = (-1.0) ** np.arange(q)
            e[q] = np.sum(signs * e[q - 1 :: -1] * powers[1 : q + 1]) / q
        phi.append((K[j] - 1) * weights(d) @ e)
    return np.array(phi)


def moebius(K: np.ndarray) -> np.ndarray:
    d, phi = len(K), []
    for j in range(d):
        e = np.ones(1)
        for z in np.delete(K, j) - 1:
            e = np.convolve(e, [1, z])
        phi.append((K[j] - 1) * np.sum(e / np.arange(1, d + 1)))
    return np.array(phi)


STUDIES: dict[str, Callable[[bool], pd.DataFrame]] = {
    "E1": e1, "E2": e2, "E3": e3, "E4": e4, "E5": e5, "E6": e6, "E7": e7,
}  # fmt: skip


def draw(tables: dict[str, pd.DataFrame], path: Path) -> None:
    """Draw convergence (E2) and separation (E4), where they were run."""
    import matplotlib.pyplot as plt

    if "E2" in tables:
        ax = new_axes()
        for color, (d, table) in zip(COLORS, tables["E2"].groupby("d"), strict=False):
            ax.fill_between(
                table["coalitions"], table["low"], table["high"], color=color, alpha=0.2
            )
            ax.plot(table["coalitions"], table["error"], "o-", color=color, label=f"d = {d}")
        ax.set(xscale="log", yscale="log", xlabel="sampled coalitions",
               ylabel="relative error of Kernel SHAP")  # fmt: skip
        ax.legend()
        ax.figure.savefig(path / "convergence.png", dpi=120)
    if "E4" in tables:
        ax = new_axes()
        chosen = tables["E4"].query(
            "statistic == 'u' and covariance == 'identity' and shifted == 10"
        )
        for place, (n, table) in enumerate(chosen.groupby("n")):
            for offset, column, color in (
                (-0.15, "first ten", COLORS[0]),
                (0.15, "last ten", COLORS[1]),
            ):
                x = place + offset + np.linspace(-0.08, 0.08, len(table))
                ax.plot(x, table[column], "o", color=color, label=column if place == 0 else None)
            ax.annotate(f"n = {n}", (place, ax.get_ylim()[0]), ha="center")
        ax.set(
            xticks=[],
            ylabel="n * mean attribution of MMD^2",
            title="last ten features: heavier tails",
        )
        ax.legend()
        ax.figure.savefig(path / "separation.png", dpi=120)
    plt.close("all")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small versions")
    parser.add_argument("--only", nargs="*", choices=list(STUDIES), default=list(STUDIES))
    parser.add_argument("--output", type=Path, default=Path("studies_output/pkex_shapley"))
    arguments = parser.parse_args()
    folder = arguments.output / ("quick" if arguments.quick else "full")
    folder.mkdir(parents=True, exist_ok=True)
    tables = {}
    for name in arguments.only:
        path = folder / f"{name}.csv"
        if path.exists():
            tables[name] = pd.read_csv(path)
            print(f"{name}: taken from {path}")
            continue
        start = time.perf_counter()
        tables[name] = STUDIES[name](arguments.quick)
        unfinished = path.with_suffix(".part")
        tables[name].to_csv(unfinished, index=False)
        unfinished.rename(path)
        print(f"{name}: {time.perf_counter() - start:.0f} s\n{summary(name, tables[name])}\n")
    draw(tables, folder)


def summary(name: str, table: pd.DataFrame) -> str:
    """The table, averaged over seeds and folds where it has them."""
    keys = {
        "E3": ["problem", "method"],
        "E4": ["covariance", "n", "statistic", "shifted"],
        "E6": ["data", "k", "method"],
    }.get(name)
    if keys is None:
        return table.to_string(index=False)
    measured = [c for c in table if c not in (*keys, "seed", "fold")]
    grouped = table.groupby(keys)[measured]
    return grouped.agg(["mean", "sem"]).reset_index().to_string(index=False)


if __name__ == "__main__":
    main()
