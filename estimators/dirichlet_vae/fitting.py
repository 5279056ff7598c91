"""From parameters and data to a fitted model: the problem, its starts, and variational EM."""

import copy
import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from equipoise.blocks import map_blocks

from . import choices
from .decoders import HullDecoder, Update, bounded_update, hull_candidates, least_squares_update
from .efficiency import check_concentration
from .families import FamilyFacts, family_facts
from .inference import report_on, spectrum_of
from .initialization import initial_endmembers
from .report import COLLAPSED_KL
from .spectrum import DataSpectrum, data_spectrum, squared_diameter
from .threshold import check_weights
from .vem import VariationalFit, variational_em

if TYPE_CHECKING:
    from .dirichlet_vae import DirichletBetaVAE

__all__ = ["Problem", "fit_model", "fit_vem", "starting_endmembers"]


class Problem(NamedTuple):
    """Everything that a solver needs to know."""

    Y: np.ndarray  #: centred rows of positive weight
    weight: np.ndarray  #: sums to one
    a: np.ndarray
    spectrum: DataSpectrum
    beta: float
    noise_variance: float
    learn_noise: bool
    rng: np.random.RandomState

    @property
    def scale(self) -> float:
        """Standard deviation of a feature; 1 for constant data."""
        total = self.spectrum.total_variance
        return float(np.sqrt(total / self.spectrum.n_features)) if total > 0 else 1.0


def cut_to(lower: np.ndarray, upper: np.ndarray, V: np.ndarray) -> np.ndarray:
    """V (D, K) with each band between its bounds."""
    return np.clip(V, lower[:, None], upper[:, None])


def starting_endmembers(model: "DirichletBetaVAE", problem: Problem, warm: bool) -> np.ndarray:
    """Centred endmembers (D, K): those of the last fit, or new ones."""
    K = len(problem.a)
    mean = problem.spectrum.mean
    if warm and hasattr(model, "components_"):
        return (model.components_ - mean).T
    init = choices.resolve_init(model, mean, K)
    return initial_endmembers(problem.Y, problem.weight, K, init, problem.scale, problem.rng)


def fit_vem(model: "DirichletBetaVAE", problem: Problem, warm: bool) -> dict[str, Any]:
    """Run variational EM from `n_init` starts; return the learned attributes of the best."""
    spectrum = problem.spectrum
    mean = spectrum.mean
    bounds = choices.endmember_bounds(model.decoder, mean)
    archetypal = model.decoder == "archetypal"
    candidates = hull_candidates(problem.Y, len(problem.a)) if archetypal else np.empty(0, int)
    n_starts = 1 if warm or not isinstance(model.init, str) else model.n_init
    starts = [starting_endmembers(model, problem, warm) for _ in range(n_starts)]

    update: Update = least_squares_update
    restrict: Callable[[np.ndarray], np.ndarray] | None = None
    if archetypal:
        hull = HullDecoder(problem.Y[candidates].astype(np.float64))
        update, restrict = hull.update, hull.project
    elif bounds is not None:
        update, restrict = bounded_update(*bounds), partial(cut_to, *bounds)

    def run(V: np.ndarray) -> VariationalFit:
        return variational_em(
            problem.Y,
            problem.weight,
            problem.a,
            V if restrict is None else restrict(V),
            update,
            beta=problem.beta,
            noise_variance=problem.noise_variance,
            noise_floor=choices.noise_floor(spectrum) if problem.learn_noise else None,
            total_variance=spectrum.total_variance,
            max_iter=model.max_iter,
            tol=model.tol,
            restrict=restrict,
            n_jobs=model.n_jobs if n_starts == 1 else None,
            progress=bool(model.verbose),
        )

    fits = map_blocks(run, starts, model.n_jobs if n_starts > 1 else None)
    fit = min(fits, key=lambda fit: fit.loss_curve[-1])
    if not fit.converged:
        warnings.warn(
            f"variational EM stopped after max_iter={model.max_iter} iterations before the "
            f"endmembers settled to tol={model.tol}; the last step lowered the objective by "
            f"{fit.loss_curve[-2] - fit.loss_curve[-1]:.3g} nats a row",
            ConvergenceWarning,
            stacklevel=5,
        )
    learned = {
        "components_": fit.V.T + mean,
        "noise_variance_": fit.noise_variance,
        "loss_curve_": fit.loss_curve,
        "n_iter_": fit.n_iter,
        "converged_": fit.converged,
    }
    if bounds is not None:
        # Adding the mean back rounds: the bound itself is exact.
        upper = 1.0 if model.decoder == "box" else np.inf
        learned["components_"] = np.clip(learned["components_"], 0.0, upper)
    if archetypal:
        learned["archetype_weights_"] = hull.weights(fit.V)
        learned["candidates_"] = candidates
    return learned


def expand_weights(weights: np.ndarray, rows: np.ndarray, n_samples: int) -> Any:
    """Archetypes' weights as a sparse (K, n_samples) matrix over all rows of X."""
    K = len(weights)
    index = (np.repeat(np.arange(K), len(rows)), np.tile(rows, K))
    matrix = scipy.sparse.csr_array((weights.ravel(), index), shape=(K, n_samples))
    matrix.eliminate_zeros()
    return matrix


def fit_model(model: "DirichletBetaVAE", X: Any, sample_weight: Any, epochs: int | None) -> None:
    """Fit this (copied) model; `epochs` is 1 in `partial_fit`, None in `fit`."""
    K = int(model.n_components)
    a = check_concentration(model.concentration, K)
    streaming = epochs is not None
    goes_on = hasattr(model, "net_") and streaming
    X = model._check_X(X, reset=not goes_on, min_samples=1 if goes_on else 2)
    weight = check_weights(sample_weight, X)
    choices.check_modules(model)
    if streaming and model.decoder == "archetypal":
        raise ValueError(
            "decoder='archetypal' takes archetypes from all rows: partial_fit has only some; "
            "allowed in partial_fit: the other decoders"
        )
    solver = "adam" if streaming else choices.resolve_solver(model, len(X))
    warm = goes_on or (model.warm_start and getattr(model, "solver_", None) == solver)
    if warm and len(model.concentration_) != K:
        raise ValueError(
            f"n_components={K} differs from the {len(model.concentration_)} of the fit that is "
            "continued"
        )
    if goes_on:  # with the prior that the net has
        a = model.concentration_
    # A row of weight zero is no row: it must not be drawn as a start or span the hull.
    positive = np.arange(len(X)) if weight is None else np.flatnonzero(weight)
    used = X if len(positive) == len(X) else X[positive]
    share = np.ones(len(used)) if weight is None else weight[positive]
    share = share / share.sum()
    if model.decoder == "archetypal" and len(used) < K:
        raise ValueError(
            f"decoder='archetypal' needs n_components={K} rows of positive weight, got {len(used)}"
        )
    spectrum = spectrum_of(model) if goes_on else data_spectrum(used, K, share)
    threshold_noise: float | str
    if goes_on:
        noise = threshold_noise = model.noise_variance_
    else:
        noise = choices.resolve_noise(model.noise_variance, K, spectrum)
        threshold_noise = "learned" if model.noise_variance == "learned" else noise
    family: FamilyFacts = model._family if goes_on else family_facts(model.posterior, a)
    beta_c, ceiling = (
        (model.beta_c_, model._ceiling)
        if goes_on
        else choices.thresholds_of(model.decoder, spectrum, family, threshold_noise)
    )
    beta = model.beta_ if goes_on else choices.resolve_beta(model, beta_c, ceiling)
    if not goes_on:
        model._random = check_random_state(model.random_state)
    else:  # the draws of partial_fit go on where they were
        model._random = copy.deepcopy(model._random)
    problem = Problem(
        (used - spectrum.mean).astype(model.dtype, copy=False),
        share,
        a,
        spectrum,
        beta,
        noise,
        model.noise_variance == "learned",
        model._random,
    )
    if solver == "vem":
        learned = fit_vem(model, problem, warm)
    else:
        from .amortised import fit_adam

        n_starts = 1 if warm or streaming else model.n_init
        runs = (fit_adam(model, problem, warm, epochs) for _ in range(n_starts))
        learned = min(runs, key=lambda run: run["loss_curve_"][-1])
    for name in ("net_", "components_", "archetype_weights_"):
        model.__dict__.pop(name, None)
    candidates = learned.pop("candidates_", None)
    if candidates is not None:
        learned["archetype_weights_"] = expand_weights(
            learned["archetype_weights_"], positive[candidates], len(X)
        )
    model.__dict__.update(learned)
    model.solver_ = solver
    model.concentration_ = a
    model.mean_, model.eigenvalues_ = spectrum.mean, spectrum.eigenvalues
    model.total_variance_ = spectrum.total_variance
    model.beta_, model.beta_c_, model._ceiling = beta, beta_c, ceiling
    model._family = family
    model.rho_ = float(family.efficiencies[0])
    if not goes_on:
        seen = np.asarray(used, dtype=np.float64)
        model._diameter2 = squared_diameter(seen, spectrum.mean)
        model._collapsed_noise = noise
    model.report_ = report_on(model, used, share)
    model.beta_ratio_ = model.report_.beta_ratio
    model.kl_ = model.report_.kl_mean
    model.collapsed_ = model.kl_ - family.floor < COLLAPSED_KL
    model.n_active_directions_ = model.report_.n_active
