"""What a fitted `DirichletBetaVAE` says of rows: posteriors, decoded codes, the report."""

from typing import Any, NamedTuple

import numpy as np

from .divergence import marginal_kl, stick_breaking_kl
from .information import information_between
from .report import CollapseReport, RowFacts, collapse_report
from .spectrum import DataSpectrum
from .threshold import threshold_of
from .vem import Penalty, infer_rows

__all__ = [
    "RowPosteriors",
    "decode",
    "infer",
    "information_of",
    "report_on",
    "scale_of",
    "spectrum_of",
]


class RowPosteriors(NamedTuple):
    """The posterior of each row."""

    theta: np.ndarray  #: parameters (n, p): log g for a Dirichlet law
    mean: np.ndarray  #: E z (n, K)
    kl: np.ndarray  #: divergence (n,)
    error: np.ndarray  #: E||y - f(z)||^2 (n,)


def spectrum_of(model: Any) -> DataSpectrum:
    """The training data's summary."""
    return DataSpectrum(model.mean_, model.eigenvalues_, model.total_variance_, len(model.mean_))


def scale_of(model: Any) -> float:
    """Standard deviation of a feature in training; 1 for constant data."""
    return float(np.sqrt(model.total_variance_ / len(model.mean_))) or 1.0


def infer(model: Any, X: np.ndarray) -> RowPosteriors:
    """Posteriors of rows."""
    Y = (X - model.mean_).astype(model.dtype, copy=False)
    a = model.concentration_
    if model.solver_ == "vem":
        log_g = np.tile(np.log(a), (len(Y), 1))
        V = (model.components_ - model.mean_).T
        scale = max(model.total_variance_, np.finfo(float).tiny)
        penalty = Penalty.of(model.beta_ * model.noise_variance_, scale)
        error, kl = infer_rows(Y, V, a, penalty, log_g, n_jobs=model.n_jobs)
        g = np.exp(log_g)
        return RowPosteriors(log_g, g / g.sum(axis=1, keepdims=True), kl, error)
    from equipoise.devices import forked_seed, resolve_device

    from .training import forward_rows

    device, scale = resolve_device(model.device), scale_of(model)
    with forked_seed(0, device):
        theta, mean, kl, error = forward_rows(model.net_.module_, Y / scale, device)
    # Means of the network's codes round like its precision: rows sum to one exactly.
    return RowPosteriors(theta, mean / mean.sum(axis=1, keepdims=True), kl, error * scale**2)


def decode(model: Any, Z: np.ndarray) -> np.ndarray:
    """Rows (n, D) of codes (n, K)."""
    if hasattr(model, "components_"):
        return Z @ model.components_
    from equipoise.devices import resolve_device

    from .training import decode_rows

    rows = decode_rows(model.net_.module_, Z, resolve_device(model.device))
    return rows * scale_of(model) + model.mean_


def information_of(
    model: Any,
    theta: np.ndarray,
    n_samples: int,
    max_rows: int,
    rng: np.random.RandomState,
) -> float:
    """Estimate of the information that the code carries, in nats, from rows' parameters."""
    if len(theta) > max_rows:
        theta = theta[rng.choice(len(theta), max_rows, replace=False)]
    if model.posterior == "dirichlet":
        return information_between(theta, n_samples, rng)
    import torch

    from equipoise.devices import forked_seed

    law = model.net_.module_.posterior
    device = law.points.device
    with forked_seed(rng, device), torch.no_grad():
        return law.information(torch.as_tensor(theta, device=device), n_samples)


def divergence_parts(model: Any, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Divergence of each component (n, K), and parts (n, .) that sum to the whole."""
    if model.posterior == "dirichlet":
        g, a = np.exp(theta), model.concentration_
        return marginal_kl(g, a), stick_breaking_kl(g, a)
    import torch

    law = model.net_.module_.posterior
    with torch.no_grad():
        parts = law.divergence_parts(torch.as_tensor(theta, device=law.points.device))
    components = parts.cpu().numpy()
    return components, components


def report_on(model: Any, X: np.ndarray, weight: np.ndarray) -> CollapseReport:
    """The report on rows with weights that sum to one."""
    rows = infer(model, X)
    residual = X - decode(model, rows.mean)
    Y = X - model.mean_
    components, chain = divergence_parts(model, rows.theta)
    used = rows.theta[weight > 0]
    facts = RowFacts(
        mean=rows.mean,
        kl=rows.kl,
        component_kl=components,
        chain_kl=chain,
        squared_error=rows.error,
        residual=(residual**2).sum(axis=1),
        squared_norm=(Y**2).sum(axis=1),
        weight=weight,
        information=information_of(model, used, 4, 200, np.random.RandomState(0)),
    )
    family, spectrum = model._family, spectrum_of(model)
    noise = model._collapsed_noise  # to which the thresholds refer
    certificate = float("nan")
    if family.has_certificate:
        certificate = float(threshold_of(spectrum, family, noise, "certificate", model._diameter2))
    return collapse_report(
        facts,
        family,
        beta=model.beta_,
        beta_c=model.beta_c_,
        ceiling=model._ceiling,
        thresholds=np.asarray(threshold_of(spectrum, family, noise, "spectrum", None)),
        certificate=certificate,
        noise_variance=model.noise_variance_,
        collapsed_noise=noise,
        n_features=len(model.mean_),
    )
