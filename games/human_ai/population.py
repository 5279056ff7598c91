r"""A deployment to workers who trust differently: log tau ~ N(log trust, trust_sd^2).

The accuracy of all is the mean of T over trust, and each region's share is the share of workers
whose own trust puts them there. Both are means over equally likely quantiles of trust.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from sklearn.utils import Bunch

from .accuracy import ai_accuracy, human_accuracy, team_accuracy
from .checks import within
from .regimes import REGIME_NAMES, regime

__all__ = ["population_effect"]

Array = NDArray[np.float64]

N_QUANTILES = 1000
DEVIATES = ndtri((np.arange(N_QUANTILES) + 0.5) / N_QUANTILES)


def population_effect(
    h: ArrayLike,
    a: ArrayLike,
    overlap: ArrayLike,
    *,
    trust: ArrayLike = 1.0,
    trust_sd: ArrayLike = 0.0,
    overlap_belief: ArrayLike = 0.0,
    recommendation: str = "probabilistic",
    overlap_kind: str = "correlation",
    prior: ArrayLike = 0.5,
) -> Bunch:
    """Say what assistance does to a population of workers.

    Parameters
    ----------
    h, a, overlap, overlap_belief, recommendation, overlap_kind, prior
        As in `team_accuracy`; the same for all workers.
    trust : array-like, default=1.0
        Median trust of the workers, at least 0.
    trust_sd : array-like, default=0.0
        Standard deviation of log trust over workers, at least 0.

    Returns
    -------
    Bunch
        Floats or arrays: ``human``, ``ai``, ``team`` (accuracies, the last averaged over workers),
        and the shares of workers in each region, ``complementarity``, ``impairment``,
        ``automation`` and ``indifferent``, which add up to 1.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    Examples
    --------
    >>> from equipoise.games import population_effect
    >>> effect = population_effect(0.5, 0.8, 0.3, trust=0.25, trust_sd=0.8)
    >>> print(round(effect.team, 4), round(effect.automation, 3))
    0.756 0.856
    """
    tau, sd = within(trust, "trust", 0.0), within(trust_sd, "trust_sd", 0.0)
    capability, machine, rho, belief, pi = (
        np.asarray(v, dtype=float)[..., None] for v in (h, a, overlap, overlap_belief, prior)
    )
    options = {
        "trust": tau[..., None] * np.exp(sd[..., None] * DEVIATES),
        "overlap_belief": belief,
        "recommendation": recommendation,
        "overlap_kind": overlap_kind,
        "prior": pi,
    }
    team = np.asarray(team_accuracy(capability, machine, rho, **options))
    codes = np.asarray(regime(capability, machine, rho, **options))
    shares = {name: (codes == code).mean(axis=-1)[()] for code, name in REGIME_NAMES.items()}
    return Bunch(
        human=human_accuracy(h, prior),
        ai=ai_accuracy(a, prior),
        team=team.mean(axis=-1)[()],
        **shares,
    )
