"""How sure the estimates are: sandwich, bootstrap of the whole estimation, draws around them."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.inference import cluster_bootstrap

from .estimation import Estimates, Options, Raw, estimate, system_codes
from .fitting import cluster_scores
from .signals import capability_sums, solve_capabilities

__all__ = ["capability_draws", "normal_draws", "with_covariance"]

Array = NDArray[np.float64]


def resampled(raw: Raw, rows: NDArray[np.intp]) -> Raw:
    """Some rows, ascending, in which a worker who was drawn twice counts as two."""
    part = raw.part(rows)
    if part.codes is None:
        return part
    copy = np.arange(len(rows)) - np.searchsorted(rows, rows)
    pairs = part.codes * (copy.max() + 1) + copy
    return replace(part, codes=np.unique(pairs, return_inverse=True)[1].astype(np.intp))


def with_covariance(
    raw: Raw, options: Options, found: Estimates, random_state: Any
) -> tuple[Estimates, Array | None]:
    """The estimates with the covariance asked for; with the bootstrap also its draws.

    Draws are rows of (log trust, belief, h, a of each system, rho of each system), the last ones
    only with the truth.
    """
    if options.cov == "information":
        return found, None
    codes = raw.codes
    if options.cov == "cluster":
        assert codes is not None  # checked before
        if found.fit.scores is None:
            scores = cluster_scores(
                found.trials, found.fit, codes[found.order], found.lapse_free, found.lapse
            )
        else:
            scores = found.fit.scores
        n = len(scores)
        bread = np.linalg.pinv(found.fit.information, hermitian=True)
        meat = scores.T @ scores * (n / (n - 1))
        return replace(found, covariance=bread @ meat @ bread), None

    # Random effects start from the estimates: a resample's maximum lies near.
    start = None if options.random_effects is None else found.fit.theta

    def statistic(rows: NDArray[np.intp]) -> Array:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fresh = estimate(resampled(raw, rows), options, start)
        theta = fresh.fit.theta[fresh.fit.free]
        extra: list[Array] = [np.array([fresh.fit.theta[2], fresh.value("overlap_belief")])]
        if fresh.capabilities is not None:
            c = fresh.capabilities
            extra += [np.nan_to_num(v) for v in (np.atleast_1d(c.human), c.ai, c.overlap)]
        return np.concatenate([theta, *extra])

    boot = cluster_bootstrap(
        statistic,
        np.arange(len(raw.y)),
        groups=codes,
        n_resamples=options.n_boot,
        random_state=random_state,
    )
    n_free = int(found.fit.free.sum())
    covariance = np.cov(boot.resamples[:, :n_free], rowvar=False).reshape(n_free, n_free)
    return replace(found, covariance=covariance), boot.resamples[:, n_free:]


def normal_draws(covariance: Array, n_draws: int, rng: np.random.RandomState) -> Array:
    """Draws around zero; a direction that isn't a maximum (negative variance) stays put."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return rng.standard_normal((n_draws, len(root))) @ root.T


def capability_draws(
    raw: Raw, found: Estimates, n_draws: int, rng: np.random.RandomState
) -> Array | None:
    """Draws of (log trust, belief, h, a, rho): parameters normal, capabilities by bootstrap.

    Whole workers are resampled, or rows where there are none; more than 1000 clusters are merged
    at random into 1000, which leaves the variance of a mean as it is.
    """
    if raw.truth is None:
        return None
    n = len(raw.y)
    n_clusters = n if raw.codes is None else int(raw.codes.max()) + 1
    clusters = rng.permutation(n_clusters)
    clusters %= 1000
    clusters = clusters if raw.codes is None else clusters[raw.codes]
    _, systems = system_codes(raw.r)
    sums = capability_sums(raw.human, raw.ai, found.columns, raw.truth, raw.w, systems, clusters)
    k = len(sums)
    counts = rng.multinomial(k, np.full(k, 1 / k), size=n_draws)
    drawn = np.tensordot(counts.astype(float), sums, axes=1)
    continuous = not any(column.sides_only for column in found.columns)
    c = solve_capabilities(drawn, continuous)
    q = found.trials.V.shape[1]
    draws = np.empty((n_draws, 2))
    draws[:, 0] = found.fit.theta[2]
    belief = np.full(n_draws, found.fit.theta[2 + q])
    noise = normal_draws(found.covariance, n_draws, rng)
    draws[:, 0] += noise[:, found.names.index("trust")]
    if "overlap_belief" in found.names:
        belief += noise[:, found.names.index("overlap_belief")]
    draws[:, 1] = np.tanh(belief)
    return np.column_stack([draws, c.human, c.ai, c.overlap])
