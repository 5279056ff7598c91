"""Human-AI teams: closed forms against scipy's integration, fits against scikit-learn, bambi and statsmodels.

bambi runs four chains of a thousand draws on 4000 trials; set EQUIPOISE_BAMBI_PYTHON to a Python that has it
(its own pins) or leave it out. The peer's time then is what that process reports for sampling alone.
"""

import importlib.util
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import multivariate_normal
from sklearn.linear_model import LogisticRegression

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
print(json.dumps({"seconds": seconds, "human": float(post["human"].mean()), "ai": float(post["ai"].mean())}))
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
        start = time.perf_counter()
        model = hierarchical()
        seconds = time.perf_counter() - start
        peer = bambi_fit(small, python)
        human, ai = (
            model.noise_scale_,
            model.noise_scale_ * model.trust_ * np.exp(model.trust_sd_**2 / 2),
        )  # bambi's slope is normal: compare means
        yield {
            "name": (
                f"hierarchical fit, 4000 trials; bambi NUTS sampled for {peer['seconds']:.1f} s against "
                f"{seconds:.2f} s: ratio {peer['seconds'] / seconds:.0f}; mean weights "
                f"{human:.3f}, {ai:.3f} against {peer['human']:.3f}, {peer['ai']:.3f}"
            ),
            "ours": hierarchical,
            "repeats": 1,
        }
    if importlib.util.find_spec("statsmodels"):
        yield {
            "name": "hierarchical fit, 4000 trials; statsmodels BinomialBayesMixedGLM (variational)",
            "ours": lambda: mean_weights(hierarchical()),
            "peer": lambda: statsmodels_fit(small),
            "exact": False,  # normal slopes and a variational approximation
            "repeats": 1,
        }


def mean_weights(model: HumanAITeamModel) -> np.ndarray:
    """beta, and the workers' average weight on the AI."""
    ai = model.noise_scale_ * model.trust_ * np.exp(model.trust_sd_**2 / 2)
    return np.array([model.noise_scale_, ai])


def statsmodels_fit(data: Any) -> np.ndarray:
    import scipy.sparse as sp
    from statsmodels.genmod.bayes_mixed_glm import BinomialBayesMixedGLM

    n, workers = len(data.y), data.groups.max() + 1
    X = np.column_stack([np.ones(n), data.X])
    slopes = sp.csr_matrix((data.X[:, 1], (np.arange(n), data.groups)), shape=(n, workers))
    model = BinomialBayesMixedGLM(data.y, X, slopes, np.zeros(workers, dtype=int), vcp_p=1.0)
    return model.fit_vb().fe_mean[1:]
