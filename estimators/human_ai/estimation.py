"""From checked columns to estimates: calibrate, maximise, and say what the data identify."""

import warnings
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from .firth import fit_firth
from .fitting import Fit, Trials, fit_pooled, fit_workers
from .signals import Capabilities, Column, capability_sums, fit_column, solve_capabilities

__all__ = ["Estimates", "Options", "Raw", "estimate", "maximise", "system_codes"]

Array = NDArray[np.float64]

#: More distinct relative capabilities than this are strata of difficulty, not AI systems.
MOST_SYSTEMS = 20


@dataclass(frozen=True)
class Options:
    """The constructor's parameters that estimation reads."""

    recommendation: str
    overlap_belief: str | float
    calibrate: bool
    lapse: str | float
    fit_bias: bool
    random_effects: str | None
    n_quad: int
    penalty: str
    alpha: float
    cov: str
    n_boot: int
    max_iter: int
    tol: float
    n_jobs: int | None


@dataclass(frozen=True)
class Raw:
    """The columns as they came, without zero weights; truth and r are None where not given."""

    human: Array
    ai: Array
    Z: Array  # moderators, (n, n_moderators)
    y: Array  # 0 or 1
    w: Array
    truth: Array | None  # +1 or -1
    r: Array | None
    codes: NDArray[np.intp] | None  # worker of each row
    items: NDArray[np.intp] | None = None  # case of each row

    def part(self, rows: slice | NDArray[np.intp]) -> "Raw":
        """Some of the rows."""
        values: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        for name, value in values.items():
            values[name] = None if value is None else value[rows]
        return Raw(**values)


@dataclass(frozen=True)
class Estimates:
    """Everything one fit of the two-stage model learns."""

    fit: Fit
    names: tuple[str, ...]  # of the free parameters
    covariance: Array
    columns: tuple[Column, Column]
    moderator_mean: Array
    systems: Array  # distinct relative capabilities, or one
    capabilities: Capabilities | None
    trials: Trials
    order: slice | NDArray[np.intp]  # rows of `trials` in terms of the raw ones
    identified: dict[str, bool]
    lapse_free: bool
    lapse: float

    def value(self, name: str) -> float:
        """A parameter on its own scale."""
        theta, q = self.fit.theta, self.trials.V.shape[1]
        return float(
            {
                "bias": theta[0],
                "noise_scale": np.exp(theta[1]),
                "trust": np.exp(theta[2]),
                "overlap_belief": np.tanh(theta[2 + q]),
                "lapse": expit(theta[3 + q]) if self.lapse_free else self.lapse,
                "trust_sd": np.exp(theta[4 + q]),
                "bias_sd": np.exp(theta[5 + q]),
            }[name]
        )

    def error(self, name: str) -> float:
        """Standard error of a free parameter on the internal scale; NaN for a fixed one."""
        if name not in self.names:
            return np.nan
        k = self.names.index(name)
        return float(np.sqrt(max(self.covariance[k, k], 0.0)))


def system_codes(r: Array | None) -> tuple[Array, NDArray[np.intp] | None]:
    """Distinct relative capabilities and the code of each row; one system where there are many."""
    if r is None:
        return np.array([np.nan]), None
    distinct, codes = np.unique(r, return_inverse=True)
    if len(distinct) > MOST_SYSTEMS:
        return np.array([float(np.mean(r))]), None
    return distinct, codes.astype(np.intp)


def relative_capability_of(raw: Raw, options: Options, capabilities: Capabilities | None) -> Array:
    """r of each row: given, estimated, or 1 where nothing reads it."""
    if raw.r is not None:
        return raw.r
    if options.overlap_belief in ("neglect", 0):
        return np.broadcast_to(1.0, len(raw.y))  # read by nothing
    assert capabilities is not None  # checked before
    r = float(capabilities.ai[0] / capabilities.human)
    if not (np.isfinite(r) and r > 0):
        raise ValueError(
            f"relative_capability: estimated as {r} from y_true, because a side isn't above "
            "chance; allowed: positive numbers. Give relative_capability, or overlap_belief="
            "'neglect'"
        )
    return np.full(len(raw.y), r)


def check_identifiable(r: Array, options: Options) -> None:
    """Refuse to fit trust and belief apart from one relative capability."""
    if options.overlap_belief == "fit" and len(np.unique(r)) < 2:
        raise ValueError(
            "overlap_belief='fit' needs at least two distinct relative capabilities: at one value "
            "of r the likelihood only knows tau (1 - rho_hat / r) / (1 - rho_hat r), so trust and "
            "belief can't be told apart. Give relative_capability per trial, or use 'neglect' or "
            "a number"
        )


def free_parameters(q: int, options: Options) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """Mask of the free parameters and their names; random effects come on top later."""
    free = np.zeros(q + 6, dtype=bool)
    free[0] = options.fit_bias
    free[1 : 2 + q] = True
    free[2 + q] = options.overlap_belief == "fit"
    free[3 + q] = options.lapse == "fit"
    moderators = [f"moderator_{j}" for j in range(q - 1)]
    names = ["bias", "noise_scale", "trust", *moderators, "overlap_belief", "lapse"]
    return free, tuple(name for name, is_free in zip(names, free, strict=False) if is_free)


def maximise(
    trials: Trials,
    codes: NDArray[np.intp] | None,
    options: Options,
    free: NDArray[np.bool_],
    fixed: Array,
    start: Array | None = None,
) -> Fit:
    """The maximum with or without random effects; trials are sorted by worker in the first case."""
    lapse_free = options.lapse == "fit"
    lapse = 0.0 if lapse_free else float(options.lapse)
    settings = (lapse_free, lapse, options.max_iter, options.tol)
    if options.penalty == "firth":
        return fit_firth(trials, free, fixed, options.max_iter, options.tol)
    pooled = fit_pooled(trials, free, fixed, *settings, start=start)
    if options.random_effects is None:
        return pooled
    assert codes is not None  # checked before
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes))]).astype(np.int64)
    n_effects = 1 if options.random_effects == "trust" else 2
    return fit_workers(trials, starts, pooled, n_effects, options.n_quad, *settings, start)


def believed_capability(
    raw: Raw, options: Options, human: Column, capabilities: Capabilities | None, r: Array
) -> tuple[Array | None, float]:
    """a of each row, and h, where binary advice is read through them; else None.

    It is where workers believe in an overlap, and where several AI systems differ in accuracy.
    """
    several = raw.r is not None and len(np.unique(raw.r)) > 1
    belief = options.overlap_belief not in ("neglect", 0)
    if options.recommendation != "binary" or capabilities is None or not (several or belief):
        return None, np.nan
    h = float(capabilities.human)
    for refused, why in (
        (not (np.isfinite(h) and h > 0), "the human's capability, who isn't above chance here"),
        (human.sides_only, "the human's log-odds, and human_col only holds sides"),
    ):
        if belief and refused:
            raise ValueError(
                f"overlap_belief: got {options.overlap_belief!r}; with recommendation='binary' it "
                f"reads {why}; allowed: 'neglect'"
            )
    return (r * h, h) if np.isfinite(h) and h > 0 else (None, np.nan)


def ridge(q: int, alpha: float) -> tuple[Array, Array] | None:
    """The ridge on log trust and the moderators' coefficients, as a normal prior around 0."""
    if alpha == 0:
        return None
    precision = np.zeros(q + 6)
    precision[2 : 2 + q] = alpha
    return np.zeros(q + 6), precision


def estimate(raw: Raw, options: Options, start: Array | None = None) -> Estimates:
    """Point estimates with the information's covariance."""
    lapse_free = options.lapse == "fit"
    binary = options.recommendation == "binary"
    human = fit_column(raw.human, raw.truth, raw.w, "human_col", options.calibrate, False)
    ai = fit_column(raw.ai, raw.truth, raw.w, "ai_col", options.calibrate, binary)
    lh, la = human.transform(raw.human), ai.transform(raw.ai)
    systems, codes = system_codes(raw.r)
    capabilities = None
    if raw.truth is not None:
        sums = capability_sums(raw.human, raw.ai, (human, ai), raw.truth, raw.w, codes)[0]
        continuous = not (human.sides_only or ai.sides_only)
        capabilities = solve_capabilities(sums, continuous)
    r = relative_capability_of(raw, options, capabilities)
    check_identifiable(r, options)
    a, h = believed_capability(raw, options, human, capabilities, r)

    mean = np.average(raw.Z, axis=0, weights=raw.w) if raw.Z.shape[1] else np.zeros(0)
    q = 1 + raw.Z.shape[1]
    V = np.ones((len(raw.y), q))
    V[:, 1:] = raw.Z - mean
    order: slice | NDArray[np.intp] = slice(None)
    if options.random_effects is not None:
        order = np.argsort(raw.codes, kind="stable")  # type: ignore[arg-type]
    prior = ridge(q, options.alpha)
    trials = Trials(lh, la, r, V, raw.y, raw.w, options.n_jobs, prior, a, h).part(order)
    free, names = free_parameters(q, options)
    fixed = np.zeros(q + 6)
    if isinstance(options.overlap_belief, int | float):
        fixed[2 + q] = np.arctanh(options.overlap_belief)
    workers = None if raw.codes is None else raw.codes[order]
    fit = maximise(trials, workers, options, free, fixed, start)
    if options.random_effects is not None:
        names += ("trust_sd",) if options.random_effects == "trust" else ("trust_sd", "bias_sd")
    warn_about(fit, q, options)
    lapse = 0.0 if lapse_free else float(options.lapse)
    identified = what_is_identified(fit, names, q, raw, options, human, ai, r)
    return Estimates(
        fit=fit,
        names=names,
        covariance=np.asarray(np.linalg.pinv(fit.information, hermitian=True), dtype=float),
        columns=(human, ai),
        moderator_mean=mean,
        systems=systems,
        capabilities=capabilities,
        trials=trials,
        order=order,
        identified=identified,
        lapse_free=lapse_free,
        lapse=lapse,
    )


def warn_about(fit: Fit, q: int, options: Options) -> None:
    """Say when there is no finite maximum, or none with positive weights."""
    if not fit.converged:
        warnings.warn(
            f"the likelihood still rose after {fit.n_iter} iterations; raise max_iter "
            f"({options.max_iter}) or loosen tol ({options.tol})",
            ConvergenceWarning,
            stacklevel=5,
        )
    beta, tau = np.exp(fit.theta[1]), np.exp(fit.theta[2])
    if max(abs(fit.theta[0]), beta, beta * tau) > 50 or fit.loglik > -1e-4:
        warnings.warn(
            "the decisions are separated by the evidence (a weight above 50): the maximum lies at "
            "infinity; use penalty='firth', random_effects='trust', alpha > 0, or more trials",
            ConvergenceWarning,
            stacklevel=5,
        )
    elif tau < 2e-3:
        warnings.warn(
            "advice is followed in reverse or not at all: trust is at its lower end "
            f"({tau:.1e}); is ai_col coded toward the second class?",
            UserWarning,
            stacklevel=5,
        )


def what_is_identified(
    fit: Fit,
    names: tuple[str, ...],
    q: int,
    raw: Raw,
    options: Options,
    human: Column,
    ai: Column,
    r: Array,
) -> dict[str, bool]:
    """For each parameter whether the data determine it."""
    scale = np.sqrt(np.maximum(np.diag(fit.information), 1e-300))
    values, vectors = np.linalg.eigh(fit.information / np.outer(scale, scale))
    flat = vectors[:, values < 1e-8]
    weak = (np.abs(flat) > 0.1).any(axis=1)
    identified = {name: not bool(weak[k]) for k, name in enumerate(names)}
    if raw.truth is None and ai.sides_only:
        identified["trust"] = False  # in units of an unknown logit(p_A)
    if not 1e-5 < np.exp(fit.theta[2]) < 1e5:
        identified["trust"] = False
    identified["noise_scale"] &= not human.sides_only
    identified["beta_confounded"] = human.sides_only
    identified.setdefault("overlap_belief", False)
    identified["overlap"] = raw.truth is not None
    return identified
