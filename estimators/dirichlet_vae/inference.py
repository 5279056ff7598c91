"""What a fitted model says of rows and codes: posteriors, decoded rows, the report."""

from typing import TYPE_CHECKING

import numpy as np

from .report import CollapseReport, RowFacts, collapse_report
from .spectrum import DataSpectrum
from .threshold import threshold_of
from .vem import Penalty, infer_rows

if TYPE_CHECKING:
    from .dirichlet_vae import DirichletBetaVAE

__all__ = ["decode", "infer", "report_on", "spectrum_of"]

#: Samples a row with which decoders that need samples are evaluated.
EVALUATION_SAMPLES = 32


def spectrum_of(model: "DirichletBetaVAE") -> DataSpectrum:
    """The training data's summary."""
    return DataSpectrum(model.mean_, model.eigenvalues_, model.total_variance_, len(model.mean_))


def scale_of(model: "DirichletBetaVAE") -> float:
    """Standard deviation of a feature in training; 1 for constant data."""
    return float(np.sqrt(model.total_variance_ / len(model.mean_))) or 1.0


def infer(model: "DirichletBetaVAE", X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """log g (n, K) and expected squared error (n,) of rows."""
    Y = (X - model.mean_).astype(model.dtype, copy=False)
    a = model.concentration_
    if model.solver_ == "vem":
        log_g = np.tile(np.log(a), (len(Y), 1))
        V = (model.components_ - model.mean_).T
        scale = max(model.total_variance_, np.finfo(float).tiny)
        penalty = Penalty.of(model.beta_ * model.noise_variance_, scale)
        error, _ = infer_rows(Y, V, a, penalty, log_g, n_jobs=model.n_jobs)
        return log_g, error
    from equipoise.devices import forked_seed, resolve_device

    from .training import forward_rows

    device, scale = resolve_device(model.device), scale_of(model)
    with forked_seed(0, device):
        log_g, error = forward_rows(model.net_.module_, Y / scale, device, EVALUATION_SAMPLES)
    return log_g, error * scale**2


def decode(model: "DirichletBetaVAE", Z: np.ndarray) -> np.ndarray:
    """Rows (n, D) of codes (n, K)."""
    if hasattr(model, "components_"):
        return Z @ model.components_
    from equipoise.devices import resolve_device

    from .training import decode_rows

    rows = decode_rows(model.net_.module_, Z, resolve_device(model.device))
    return rows * scale_of(model) + model.mean_


def report_on(model: "DirichletBetaVAE", X: np.ndarray, weight: np.ndarray) -> CollapseReport:
    """The report on rows with weights that sum to one."""
    log_g, error = infer(model, X)
    g = np.exp(log_g)
    residual = X - decode(model, g / g.sum(axis=1, keepdims=True))
    Y = X - model.mean_
    facts = RowFacts(log_g, error, (residual**2).sum(axis=1), (Y**2).sum(axis=1), weight)
    noise = model._collapsed_noise  # to which the thresholds refer
    spectrum = spectrum_of(model)
    certificate = threshold_of(
        spectrum, model.concentration_, noise, "certificate", model._diameter2
    )
    return collapse_report(
        facts,
        model.concentration_,
        beta=model.beta_,
        beta_c=model.beta_c_,
        ceiling=model._ceiling,
        rho=model.rho_,
        thresholds=np.asarray(
            threshold_of(spectrum, model.concentration_, noise, "spectrum", None)
        ),
        certificate=float(certificate),
        noise_variance=model.noise_variance_,
        collapsed_noise=model._collapsed_noise,
        n_features=len(model.mean_),
    )
