"""Human-AI teams: closed forms against scipy's integration, fits against scikit-learn, bambi and statsmodels.

bambi runs four chains of a thousand draws on 4000 trials; set EQUIPOISE_BAMBI_PYTHON to a Python that has it
(its own pins) or leave it out. The peer's time then is what that process reports for sampling alone, after
building and compiling its model. A case's name carries figures where a ratio of times isn't what is compared.
"""

import importlib.util
import json
import os
import subprocess
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import multivariate_normal
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from equipoise.datasets import make_human_ai_trials
from equipoise.estimators import HumanAITeamModel
from equipoise.games import bvn_cdf, phase_diagram, regime_boundaries

BAMBI = """
import json, sys, time
import bambi, numpy as np, pandas as pd
frame = pd.read_csv(sys.argv[1])
model = bambi.Model("y ~ human + ai + (0 + ai | worker)", frame, family="bernoulli")
model.build()
start = time.perf_counter()
trace = model.fit(draws=1000, tune=1000, chains=4, cores=1, random_seed=0, progressbar=False)
seconds = time.perf_counter() - start
post = trace.posterior
names = {"human": "human", "ai": "ai", "spread": "ai|worker_sigma"}
means = {key: float(post[name].mean()) for key, name in names.items()}
print(json.dumps({"seconds": seconds, **means}))
"""


def scipy_cdf(x: np.ndarray, y: np.ndarray, rho: np.ndarray) -> np.ndarray:
    return np.array(
        [
            multivariate_normal([0, 0], [[1, r], [r, 1]]).cdf([a, b])
            for a, b, r in zip(x, y, rho, strict=True)
        ]
    )


def numpy_roots(rho: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """Upper end of impairment, one companion matrix each."""
    found = []
    for p, t in zip(rho, tau, strict=True):
        roots = np.roots([t, 0, 2 - t, -2 * p])
        real = roots[np.abs(roots.imag) < 1e-9].real
        found.append(real[(real > 0) & (real < 1)].max())
    return np.array(found)


def time_of(function: Any) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def mean_weights(model: HumanAITeamModel) -> np.ndarray:
    """beta, and the workers' average weight on the AI."""
    ai = model.noise_scale_ * model.trust_ * np.exp(model.trust_sd_**2 / 2)
    return np.array([model.noise_scale_, ai])


def scaling(large: Any) -> str:
    """How time and memory of a pooled fit grow with the number of trials."""
    sizes, seconds, peaks = (10**4, 10**5, 10**6), [], []
    for n in sizes:

        def fit(n: int = n) -> HumanAITeamModel:
            return HumanAITeamModel(n_boot=2).fit(large.X[:n], large.y[:n])

        fit()
        seconds.append(min(time_of(fit) for _ in range(3)))
        tracemalloc.start()
        fit()
        peaks.append(tracemalloc.get_traced_memory()[1] / large.X[:n].nbytes)
        tracemalloc.stop()
    slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    return (
        "pooled fit of 10^4, 10^5, 10^6 trials: "
        + ", ".join(f"{s:.3g} s" for s in seconds)
        + f", exponent {slope:.2f}; peak memory in copies of X {', '.join(f'{p:.1f}' for p in peaks)}"
    )


def prediction() -> str:
    """Held-out log-loss and calibration where the relative capability varies."""
    options = {"h": 1.0, "ai_capabilities": [0.6, 1.8], "trust": 0.5, "overlap_belief": 0.3}
    train, test = (make_human_ai_trials(200, 50, random_state=k, **options) for k in (0, 1))
    model = HumanAITeamModel(overlap_belief="fit", n_boot=2).fit(
        train.X, train.y, relative_capability=train.relative_capability
    )
    p = {
        "ours": model.predict_proba(test.X, test.relative_capability)[:, 1],
        "LogisticRegression": LogisticRegression(C=np.inf)
        .fit(train.X, train.y)
        .predict_proba(test.X)[:, 1],
    }
    words = []
    for name, q in p.items():
        true, predicted = calibration_curve(test.y, q, n_bins=10, strategy="quantile")
        gap = np.abs(true - predicted).mean()
        words.append(f"{name} {log_loss(test.y, q):.4f} (calibration gap {gap:.4f})")
    return "log-loss of 10^4 held-out decisions with two AI systems: " + ", ".join(words)


def clustered(data: Any) -> np.ndarray:
    """Weights of human and AI, and the clustered standard error of their log ratio, G / (G - 1) taken off."""
    model = HumanAITeamModel(cov="cluster", n_boot=2).fit(data.X, data.y, groups=data.groups)
    k, workers = model.parameter_names_.index("trust"), len(np.unique(data.groups))
    error = np.sqrt(model.cov_[k, k] * (workers - 1) / workers)
    return np.array([model.noise_scale_, model.noise_scale_ * model.trust_, error])


def gee_fit(data: Any) -> np.ndarray:
    import statsmodels.api as sm

    family, independent = sm.families.Binomial(), sm.cov_struct.Independence()
    X = sm.add_constant(data.X)
    fit = sm.GEE(data.y, X, groups=data.groups, family=family, cov_struct=independent).fit()
    human, ai = fit.params[1:]
    slope = np.array([0, -1 / human, 1 / ai])
    return np.array([human, ai, np.sqrt(slope @ fit.cov_robust @ slope)])


def bambi_fit(data: Any, python: str) -> dict[str, float]:
    import pandas as pd

    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "trials.csv"
        frame = {"human": data.X[:, 0], "ai": data.X[:, 1], "y": data.y, "worker": data.groups}
        pd.DataFrame(frame).to_csv(table, index=False)
        script = Path(folder) / "peer.py"
        script.write_text(BAMBI)
        run = subprocess.run([python, script, table], capture_output=True, text=True, check=True)
        return json.loads(run.stdout.strip().splitlines()[-1])


def cases() -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 2000))
    rho = rng.uniform(-0.95, 0.95, 2000)
    yield {
        "name": "bivariate normal CDF, 2000 points; scipy multivariate_normal.cdf",
        "ours": lambda: bvn_cdf(x, y, rho),
        "peer": lambda: scipy_cdf(x, y, rho),
        "tolerance": 1e-9,
        "repeats": 3,
    }
    few_rho, few_tau = rng.uniform(0.05, 0.95, 2000), rng.uniform(0.1, 2.0, 2000)
    yield {
        "name": "impairment boundary, 2000 cubics; numpy.roots",
        "ours": lambda: regime_boundaries(few_rho, few_tau)[0],
        "peer": lambda: numpy_roots(few_rho, few_tau),
        "repeats": 3,
    }
    grids = {"ai_grid": np.linspace(0, 3, 1000), "overlap_grid": np.linspace(0, 1, 1000)}
    yield {
        "name": "phase diagram 1000 x 1000, log-odds advice",
        "ours": lambda: phase_diagram(0.5, **grids).codes,
    }
    yield {
        "name": "phase diagram 1000 x 1000, binary advice",
        "ours": lambda: phase_diagram(0.5, recommendation="binary", **grids).codes,
    }
    many_rho, many_tau = rng.uniform(-0.9, 0.95, 10**6), rng.uniform(0, 3, 10**6)
    yield {
        "name": "boundaries of 10^6 (overlap, trust) pairs",
        "ours": lambda: regime_boundaries(many_rho, many_tau),
    }
    large = make_human_ai_trials(10_000, 100, trust=0.4, random_state=0)

    def ours(data: Any) -> np.ndarray:
        model = HumanAITeamModel(n_boot=2).fit(data.X, data.y)
        return np.array([model.noise_scale_, model.noise_scale_ * model.trust_])

    yield {
        "name": "pooled fit, 10^6 trials; LogisticRegression(lbfgs, no penalty)",
        "ours": lambda: ours(large),
        "peer": lambda: LogisticRegression(C=np.inf, tol=1e-8).fit(large.X, large.y).coef_[0],
        "tolerance": 1e-4,
        "repeats": 3,
    }
    yield {"name": scaling(large), "ours": lambda: ours(large), "repeats": 1}
    yield {"name": prediction(), "ours": prediction, "repeats": 1}
    middle = make_human_ai_trials(1000, 100, trust=0.25, trust_sd=0.8, random_state=0)
    for n_workers in (100, 1000):
        data = make_human_ai_trials(n_workers, 100, trust=0.25, trust_sd=0.8, random_state=0)
        yield {
            "name": f"hierarchical fit, {100 * n_workers} trials of {n_workers} workers, 15 nodes",
            "ours": lambda data=data: HumanAITeamModel(random_effects="trust").fit(
                data.X, data.y, groups=data.groups
            ),
            "repeats": 1,
        }
    small = make_human_ai_trials(100, 40, trust=0.25, trust_sd=0.8, random_state=0)

    def hierarchical() -> HumanAITeamModel:
        return HumanAITeamModel(random_effects="trust").fit(small.X, small.y, groups=small.groups)

    python = os.environ.get("EQUIPOISE_BAMBI_PYTHON")
    if python:
        hierarchical()  # compiled
        seconds = time_of(hierarchical)
        model, peer = hierarchical(), bambi_fit(small, python)
        human, ai = mean_weights(model)  # bambi's slope is normal: compare mean and spread
        spread = ai * np.sqrt(np.expm1(model.trust_sd_**2))
        yield {
            "name": (
                f"hierarchical fit, 4000 trials; bambi NUTS sampled for {peer['seconds']:.1f} s against "
                f"{seconds:.2f} s: ratio {peer['seconds'] / seconds:.0f}; weight of human, of AI, its spread "
                f"{human:.3f}, {ai:.3f}, {spread:.3f} against {peer['human']:.3f}, {peer['ai']:.3f}, "
                f"{peer['spread']:.3f}"
            ),
            "ours": hierarchical,
            "repeats": 1,
        }
    if importlib.util.find_spec("statsmodels"):
        yield {
            "name": "pooled fit with clustered errors, 10^5 trials of 1000 workers; statsmodels GEE",
            "ours": lambda: clustered(middle),
            "peer": lambda: gee_fit(middle),
            "tolerance": 1e-6,
            "repeats": 3,
        }
        yield {
            "name": "hierarchical fit, 4000 trials; statsmodels BinomialBayesMixedGLM (variational)",
            "ours": lambda: mean_weights(hierarchical()),
            "peer": lambda: statsmodels_fit(small),
            "exact": False,  # normal slopes and a variational approximation
            "repeats": 1,
        }


def statsmodels_fit(data: Any) -> np.ndarray:
    import scipy.sparse as sp
    from statsmodels.genmod.bayes_mixed_glm import BinomialBayesMixedGLM

    n, workers = len(data.y), data.groups.max() + 1
    X = np.column_stack([np.ones(n), data.X])
    slopes = sp.csr_matrix((data.X[:, 1], (np.arange(n), data.groups)), shape=(n, workers))
    model = BinomialBayesMixedGLM(data.y, X, slopes, np.zeros(workers, dtype=int), vcp_p=1.0)
    return model.fit_vb().fe_mean[1:]
