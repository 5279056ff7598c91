"""Unmixing against archetypes, pysptools and SciPy; the threshold against one covariance.

One thread everywhere. Variational EM and archetypal analysis don't solve the same problem: the case compares the
reconstruction errors, and the last column says by which share ours is larger (0: it is at most the peer's).
"""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.optimize import nnls

from equipoise.datasets import make_convex_mixture, make_hyperspectral
from equipoise.estimators import (
    DirichletBetaVAE,
    collapse_threshold,
    dirichlet_efficiency,
    fcls,
)


def covariance_route(X: np.ndarray, K: int) -> float:
    """The threshold by NumPy's covariance and all its eigenvalues."""
    return np.linalg.eigvalsh(np.cov(X.T, bias=True))[-1] * dirichlet_efficiency(K, 1.0)


def unmixing_error(X: np.ndarray, K: int, **parameters: object) -> float:
    """Mean squared reconstruction error of a fit by variational EM."""
    model = DirichletBetaVAE(
        K, solver="vem", beta_ratio=0.003, init="furthest", random_state=0, **parameters
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    return float(((X - model.reconstruct(X)) ** 2).mean())


def archetypes_error(X: np.ndarray, K: int) -> float:
    """The same of archetypal analysis."""
    from archetypes import AA

    model = AA(n_archetypes=K, init="furthest_sum", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weights = model.fit_transform(X)
    return float(((X - weights @ model.archetypes_) ** 2).mean())


def penalised_nnls(X: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Abundances by SciPy's NNLS with the sum as one more, heavy band, row by row."""
    weight = 1e4 * np.abs(W).max()
    stacked = np.vstack([W.T, np.full(len(W), weight)])
    return np.array([nnls(stacked, np.append(x, weight))[0] for x in X])


def pysptools_fcls(X: np.ndarray, W: np.ndarray) -> np.ndarray:
    from pysptools.abundance_maps import amaps

    return amaps.FCLS(X, W)


def train(X: np.ndarray, objective: str) -> float:
    """Ten epochs of the amortised model."""
    model = DirichletBetaVAE(
        5, solver="adam", objective=objective, max_iter=10, noise_variance=0.01, random_state=0
    )
    return float(model.fit(X).loss_curve_[-1])


def excess(ours: float, peer: float) -> float:
    """By which share our error is larger; 0 where it isn't."""
    return max(0.0, ours / peer - 1)


def installed(module: str) -> bool:
    from importlib.util import find_spec

    return find_spec(module) is not None


def cases() -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100_000, 200)) * np.linspace(2, 0.1, 200)
    yield {
        "name": "collapse_threshold, 100000 x 200, against np.cov + eigvalsh",
        "ours": lambda: collapse_threshold(X, 5),
        "peer": lambda: covariance_route(X, 5),
        "tolerance": 1e-8,
        "repeats": 3,
    }
    image = make_hyperspectral((100, 100), n_bands=156, n_endmembers=3, snr_db=30, random_state=0)
    small = image.data[:2000]
    yield {
        "name": "fcls, 10000 x 156, K = 3, against a loop of scipy nnls",
        "ours": lambda: fcls(image.data, image.endmembers),
        "peer": lambda: penalised_nnls(image.data, image.endmembers),
        "tolerance": 1e-4,
        "repeats": 3,
    }
    if installed("pysptools"):
        yield {
            "name": "fcls, 2000 x 156, K = 3, against pysptools FCLS",
            "ours": lambda: fcls(small, image.endmembers),
            "peer": lambda: pysptools_fcls(small, image.endmembers),
            "tolerance": 5e-3,
            "repeats": 1,
        }
    if installed("archetypes"):
        for n in (1000, 4000):
            mixture = make_convex_mixture(n, 50, 5, noise=0.05, random_state=0).data
            for decoder in ("linear", "archetypal"):
                yield {
                    "name": f"vem {decoder}, {n} x 50, K = 5, against archetypes.AA (excess error)",
                    "ours": lambda X=mixture, d=decoder: unmixing_error(X, 5, decoder=d),
                    "peer": lambda X=mixture: archetypes_error(X, 5),
                    "distance": excess,
                    "tolerance": 0.05,
                    "repeats": 1,
                }
        yield {
            "name": "vem linear, 10000 x 156, K = 3, against archetypes.AA (excess error)",
            "ours": lambda: unmixing_error(image.data, 3),
            "peer": lambda: archetypes_error(image.data, 3),
            "distance": excess,
            "tolerance": 0.05,
            "repeats": 1,
        }
    yield {
        "name": "vem linear, 20000 x 156, K = 3, ours alone",
        "ours": lambda: unmixing_error(np.vstack([image.data, image.data]), 3),
        "repeats": 1,
    }
    mixture = make_convex_mixture(4000, 50, 5, random_state=0).data
    yield {
        "name": "10 epochs, analytic against sampled objective, 4000 x 50, K = 5 (loss)",
        "ours": lambda: train(mixture, "analytic"),
        "peer": lambda: train(mixture, "sampled"),
        "exact": False,
        "repeats": 3,
    }
