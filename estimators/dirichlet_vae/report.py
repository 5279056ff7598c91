"""What a fitted model says about itself: how far it is from collapse, and what its code carries."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from equipoise.explanation import Explanation
from equipoise.plotting import COLORS

from .families import FamilyFacts

__all__ = ["CollapseReport", "RowFacts", "collapse_report"]

#: Levels of `kl_quantiles`.
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
#: A mean divergence below this, in nats, is a collapsed code.
COLLAPSED_KL = 1e-3
#: A direction is active where its variance is above this share of the prior's.
ACTIVE_SHARE = 0.01


def plot_thresholds(thresholds: np.ndarray, beta: float, ax: Any) -> Any:
    index = np.arange(1, len(thresholds) + 1)
    ax.bar(index, thresholds, width=0.6, color=COLORS[0], label="threshold of the direction")
    ax.axhline(beta, color=COLORS[1], label="beta of this model")
    if beta > 0 and (thresholds > 0).all():
        ax.set_yscale("log")
    ax.set_xticks(index)
    ax.set_xlabel("direction")
    ax.set_ylabel("beta")
    ax.legend(frameon=False)
    return ax


def plot_components(values: np.ndarray, label: str, ax: Any) -> Any:
    index = np.arange(1, len(values) + 1)
    ax.bar(index, values, width=0.6, color=COLORS[0])
    ax.set_xticks(index)
    ax.set_xlabel("component")
    ax.set_ylabel(label)
    return ax


@dataclass(repr=False, eq=False)
class CollapseReport(Explanation):
    """Distance from collapse, activity of the code, and a verdict.

    `to_frame` gives the numbers with an index (quantity, index, value); `plot` draws "thresholds",
    "kl" or "usage".

    Attributes
    ----------
    beta, beta_c, beta_ratio : float
        Beta of the model, its local threshold, and their ratio.
    rho : float
        Efficiency of the prior in the first direction.
    thresholds : ndarray of shape (min(K - 1, n_features),)
        Local threshold of each direction; exact for the first, a guide for the others.
    predicted_active : int
        Number of thresholds above beta.
    kl_mean : float
        Mean divergence from the prior, in nats; for Weibull posteriors with a concentration other
        than 1 also the collapsed state has some.
    kl_quantiles : ndarray of shape (5,)
        At 5, 25, 50, 75 and 95 percent.
    kl_per_component : ndarray of shape (K,)
        Mean divergence of each component's marginal Beta law: free of the order, doesn't sum to the
        whole.
    kl_stick : ndarray of shape (K - 1,)
        Chain-rule parts: they sum to the whole, and depend on the order. For softmax-normal and
        Weibull posteriors, whose components are independent, `kl_per_component` itself.
    active_directions : ndarray of shape (K - 1,)
        Variance of the posterior means along their principal directions over the prior's variance.
    n_active : int
        How many of these are above 0.01.
    component_usage : ndarray of shape (K,)
        Largest posterior mean of each component.
    mutual_information : float
        Estimate of I(x; z) in nats, biased downward; `kl_mean` bounds it above.
    objective_gap : float
        Objective less that of the collapsed state, nats a row; negative: the active state is
        better.
    r2 : float
        Share of the variance that the mean code explains; 0 for data without variance.
    certificate_ratio : float
        Beta over the beta from which on collapse is a global optimum; NaN for Weibull posteriors
        with a concentration other than 1, which have no such certificate.
    verdict : {"active", "partially collapsed", "collapsed", "metastable"}
        "metastable": active although beta is above the threshold.

    Examples
    --------
    >>> from equipoise.datasets import make_convex_mixture
    >>> from equipoise.estimators import DirichletBetaVAE
    >>> X = make_convex_mixture(200, 10, 3, random_state=0).data
    >>> report = DirichletBetaVAE(3, beta_ratio=1.5, random_state=0).fit(X).explain()
    >>> report.verdict
    'collapsed'
    """

    beta: float
    beta_c: float
    beta_ratio: float
    rho: float
    thresholds: np.ndarray
    predicted_active: int
    kl_mean: float
    kl_quantiles: np.ndarray
    kl_per_component: np.ndarray
    kl_stick: np.ndarray
    active_directions: np.ndarray
    n_active: int
    component_usage: np.ndarray
    mutual_information: float
    objective_gap: float
    r2: float
    certificate_ratio: float
    verdict: str

    def __post_init__(self) -> None:
        vectors = {
            "thresholds": self.thresholds,
            "kl_quantiles": self.kl_quantiles,
            "kl_per_component": self.kl_per_component,
            "kl_stick": self.kl_stick,
            "active_directions": self.active_directions,
            "component_usage": self.component_usage,
        }
        scalars = [
            "beta",
            "beta_c",
            "beta_ratio",
            "rho",
            "predicted_active",
            "n_active",
            "kl_mean",
            "mutual_information",
            "objective_gap",
            "r2",
            "certificate_ratio",
        ]
        rows = [(name, 0, float(getattr(self, name))) for name in scalars]
        rows += [
            (name, i, float(v)) for name, values in vectors.items() for i, v in enumerate(values)
        ]
        better = "the better" if self.objective_gap < 0 else "not the better"
        summary = [
            f"verdict: {self.verdict}",
            f"beta = {self.beta:.4g} is {self.beta_ratio:.3g} times the threshold "
            f"{self.beta_c:.4g}",
            f"active directions: {self.n_active} of {len(self.active_directions)}, "
            f"predicted {self.predicted_active}",
            f"the code carries {self.kl_mean:.3g} nats a row (mutual information about "
            f"{self.mutual_information:.3g}) and explains {self.r2:.1%} of the variance",
            f"objective less the collapsed state's: {self.objective_gap:.3g} nats a row; "
            f"the found state is {better} one",
            f"beta is {self.certificate_ratio:.3g} times the certificate of global collapse",
        ]
        plots = {
            "thresholds": partial(plot_thresholds, self.thresholds, self.beta),
            "kl": partial(
                plot_components, self.kl_per_component, "divergence from the prior (nats)"
            ),
            "usage": partial(plot_components, self.component_usage, "largest posterior mean"),
        }
        frame = pd.DataFrame(rows, columns=["quantity", "index", "value"])
        super().__init__("Has the code collapsed?", summary, frame, plots)


@dataclass
class RowFacts:
    """What is known of each row: the input of a report."""

    mean: np.ndarray  #: E z (n, K)
    kl: np.ndarray  #: (n,)
    component_kl: np.ndarray  #: divergence of each component's law (n, K)
    chain_kl: np.ndarray  #: parts of the divergence that sum to it
    squared_error: np.ndarray  #: E||y - f(z)||^2 (n,)
    residual: np.ndarray  #: ||y - f(m)||^2 (n,)
    squared_norm: np.ndarray  #: ||y||^2 (n,)
    weight: np.ndarray  #: sums to one
    information: float  #: estimate of I(x; z)


def verdict_of(kl: float, beta: float, ceiling: float, n_active: int, n_possible: int) -> str:
    """The verdict; `ceiling` is the threshold above which an active state is metastable."""
    if kl < COLLAPSED_KL:
        return "collapsed"
    if beta > ceiling:
        return "metastable"
    return "partially collapsed" if n_active < n_possible else "active"


def weighted_quantiles(values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Smallest values at which the cumulative weight reaches each level."""
    order = np.argsort(values)
    cumulative = np.cumsum(weight[order])
    places = np.searchsorted(cumulative, np.array(QUANTILES) * cumulative[-1] * (1 - 1e-12))
    return values[order][np.minimum(places, len(values) - 1)]


def collapse_report(
    rows: RowFacts,
    family: FamilyFacts,
    *,
    beta: float,
    beta_c: float,
    ceiling: float,
    thresholds: np.ndarray,
    certificate: float,
    noise_variance: float,
    collapsed_noise: float,
    n_features: int,
) -> CollapseReport:
    """Build the report from the rows' facts and the model's thresholds.

    Parameters
    ----------
    rows : RowFacts
        Posteriors, errors and weights.
    family : FamilyFacts
        The posterior's family at its collapsed state.
    beta, beta_c, ceiling, certificate : float
        Beta, local threshold, threshold above which an active state is metastable, and the beta
        from which on collapse is globally optimal (NaN where there is none).
    thresholds : ndarray
        Thresholds of the directions.
    noise_variance, collapsed_noise : float
        sigma^2 of the model, and the collapsed state's (they differ where it is learned).
    n_features : int
        D.

    Returns
    -------
    CollapseReport
        The report.
    """
    w, M = rows.weight, rows.mean
    K = M.shape[1]
    kl_mean = float(w @ rows.kl)
    centred = M - w @ M
    activity = np.linalg.eigvalsh(centred.T @ (w[:, None] * centred))[::-1][: K - 1]
    activity = np.maximum(activity, 0.0) / family.code_variance
    n_active = int((activity > ACTIVE_SHARE).sum())
    total = float(w @ rows.squared_norm)
    fitted = float(w @ rows.squared_error) / (2 * noise_variance) + beta * kl_mean
    collapsed = total / (2 * collapsed_noise) + beta * family.floor
    gap = fitted - collapsed + n_features / 2 * np.log(noise_variance / collapsed_noise)
    possible = int(min(K - 1, n_features, (thresholds > 0).sum()))
    return CollapseReport(
        beta=beta,
        beta_c=beta_c,
        beta_ratio=ratio_of(beta, beta_c),
        rho=float(family.efficiencies[0]),
        thresholds=thresholds,
        predicted_active=int((beta < thresholds).sum()),
        kl_mean=kl_mean,
        kl_quantiles=weighted_quantiles(rows.kl, w),
        kl_per_component=w @ rows.component_kl,
        kl_stick=w @ rows.chain_kl,
        active_directions=activity,
        n_active=n_active,
        component_usage=M[w > 0].max(axis=0),
        mutual_information=rows.information,
        objective_gap=float(gap),
        r2=1 - float(w @ rows.residual) / total if total > 0 else 0.0,
        certificate_ratio=ratio_of(beta, certificate),
        verdict=verdict_of(kl_mean - family.floor, beta, ceiling, n_active, possible),
    )


def ratio_of(beta: float, threshold: float) -> float:
    """beta / threshold; infinite where only the threshold is zero, 0 where beta is."""
    if threshold > 0 or np.isnan(threshold):
        return beta / threshold
    return np.inf if beta > 0 else 0.0
