"""Unmixing against archetypes, pysptools and SciPy; training against pyro and pythae; the threshold against one covariance.

One thread everywhere. Variational EM and archetypal analysis don't solve the same problem, nor do a Dirichlet code and
pythae's Gaussian one: those cases compare the reconstruction errors, and the last column says by which share ours is
larger (0: it is at most the peer's).
"""

import contextlib
import io
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
    distill_encoder,
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


def error_gradient(model: DirichletBetaVAE, X: np.ndarray, sampled: bool) -> float:
    """The expected error of all rows by itself, and its gradient: 20 times."""
    import torch

    module = model.net_.module_
    scale = np.sqrt(model.total_variance_ / X.shape[1])
    Y = torch.as_tensor((X - model.mean_) / scale)
    theta = module.posterior_parameters(Y).detach().requires_grad_()
    for _ in range(20):
        error = module.sampled_error(Y, theta, 1) if sampled else module.exact_error(Y, theta)
        error.mean().backward()
    return float(error.mean().detach())


def our_bound(model: DirichletBetaVAE, X: np.ndarray) -> float:
    """The objective of all rows and its gradient, in closed form."""
    import torch

    module = model.net_.module_
    module.zero_grad()
    scale = np.sqrt(model.total_variance_ / X.shape[1])
    Y = torch.as_tensor((X - model.mean_) / scale)
    error, kl = module(Y)
    loss = module.loss(error, kl, torch.ones(len(Y)), Y.shape[1])
    loss.backward()
    return float(loss.detach())


def pyro_bound(model: DirichletBetaVAE, X: np.ndarray) -> float:
    """The same by pyro: divergence in closed form, reconstruction by one sample a row."""
    import pyro
    import pyro.distributions as dist
    import torch

    module = model.net_.module_
    module.zero_grad()
    scale = np.sqrt(model.total_variance_ / X.shape[1])
    Y = torch.as_tensor((X - model.mean_) / scale)
    prior = torch.as_tensor(model.concentration_)
    sigma = module.log_noise.exp().sqrt()

    def generate(Y: Any) -> None:
        with pyro.plate("rows", len(Y)):
            z = pyro.sample("z", dist.Dirichlet(prior))
            pyro.sample("x", dist.Normal(module.decoder(z), sigma).to_event(1), obs=Y)

    def guide(Y: Any) -> None:
        with pyro.plate("rows", len(Y)):
            pyro.sample("z", dist.Dirichlet(module.posterior_parameters(Y).exp()))

    pyro.clear_param_store()
    loss = pyro.infer.TraceMeanField_ELBO().differentiable_loss(generate, guide, Y) / len(Y)
    loss.backward()
    return float(loss.detach())


def our_training_error(X: np.ndarray, K: int) -> float:
    """Mean squared reconstruction error after ten epochs of the amortised model."""
    model = DirichletBetaVAE(
        K, solver="adam", beta_ratio=0.01, max_iter=10, lr=1e-2, dtype="float32", random_state=0
    ).fit(X)
    return float(((X - model.reconstruct(X)) ** 2).mean())


def pythae_training_error(X: np.ndarray, K: int) -> float:
    """The same of pythae's beta-VAE: K - 1 Gaussian codes, the same encoder, a linear decoder."""
    import logging
    import tempfile

    import torch
    from pythae.data.datasets import BaseDataset
    from pythae.models import BetaVAE, BetaVAEConfig
    from pythae.models.base.base_utils import ModelOutput
    from pythae.models.nn import BaseDecoder, BaseEncoder
    from pythae.trainers import BaseTrainer, BaseTrainerConfig
    from torch import nn

    class Encoder(BaseEncoder):
        def __init__(self) -> None:
            super().__init__()
            self.hidden = nn.Sequential(nn.Linear(X.shape[1], 64), nn.ReLU())
            self.mean, self.log_var = nn.Linear(64, K - 1), nn.Linear(64, K - 1)

        def forward(self, x: Any) -> Any:
            h = self.hidden(x)
            return ModelOutput(embedding=self.mean(h), log_covariance=self.log_var(h))

    class Decoder(BaseDecoder):
        def __init__(self) -> None:
            super().__init__()
            self.map = nn.Linear(K - 1, X.shape[1])

        def forward(self, z: Any) -> Any:
            return ModelOutput(reconstruction=self.map(z))

    logging.disable(logging.INFO)
    torch.manual_seed(0)
    scale = np.sqrt(X.var(axis=0).mean())
    Y = torch.as_tensor((X - X.mean(axis=0)) / scale, dtype=torch.float32)
    config = BetaVAEConfig(input_dim=(X.shape[1],), latent_dim=K - 1, beta=0.01)
    model = BetaVAE(config, encoder=Encoder(), decoder=Decoder())
    with tempfile.TemporaryDirectory() as folder:
        plan = BaseTrainerConfig(
            output_dir=folder,
            per_device_train_batch_size=256,
            num_epochs=10,
            learning_rate=1e-2,
            no_cuda=True,
        )
        trainer = BaseTrainer(
            model=model,
            train_dataset=BaseDataset(Y, torch.ones(len(Y))),
            training_config=plan,
        )
        # Writing the model to disk is no part of the work, and needs an importable module.
        trainer.save_model = lambda *args, **kwargs: None
        with contextlib.redirect_stderr(io.StringIO()):  # its progress bars can't be turned off
            trainer.train()
    with torch.no_grad():
        rows = model.decoder(model.encoder(Y).embedding).reconstruction.numpy()
    return float(((Y.numpy() - rows) ** 2).mean() * scale**2)


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
        "repeats": 9,
    }
    trained = DirichletBetaVAE(
        5, solver="adam", beta=1.0, max_iter=20, noise_variance=0.01, random_state=0
    )
    trained.fit(mixture)
    yield {
        "name": "expected error and its gradient alone, 256 x 50, K = 5, closed form against one sample",
        "ours": lambda: error_gradient(trained, mixture[:256], False),
        "peer": lambda: error_gradient(trained, mixture[:256], True),
        "exact": False,
        "repeats": 9,
    }
    if installed("pyro"):
        yield {
            "name": "one gradient of the bound, 4000 x 50, K = 5, against pyro's TraceMeanField_ELBO (loss)",
            "ours": lambda: our_bound(trained, mixture),
            "peer": lambda: pyro_bound(trained, mixture),
            # One sample a row: the peer's mean over 4000 rows scatters by about 1 %.
            "tolerance": 0.03,
            "repeats": 5,
        }
    if installed("pythae"):
        yield {
            "name": "10 epochs, 4000 x 50, K = 5, against pythae BetaVAE (excess error)",
            "ours": lambda: our_training_error(mixture, 5),
            "peer": lambda: pythae_training_error(mixture, 5),
            "distance": excess,
            "exact": False,
            "repeats": 3,
        }
    newton = DirichletBetaVAE(3, solver="vem", beta_ratio=0.05, lr=1e-2, random_state=0).fit(small)
    network = distill_encoder(newton, small, max_iter=100)
    yield {
        "name": "transform, 10000 x 156, K = 3, distilled encoder against Newton's method (codes)",
        "ours": lambda: network.transform(image.data),
        "peer": lambda: newton.transform(image.data),
        "exact": False,
        "repeats": 5,
    }
