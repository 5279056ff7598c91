r"""What assistance adds: T - H = (T* - H) - (T* - T), information value less behavioural penalty.

T* is the best use of what the AI shows. The penalty is shared between the two distortions, the
belief rho_hat about the overlap and the trust tau, by their Shapley values over the accuracies
T(rho_hat, tau), T(rho_hat, 1), T(rho, tau) and T(rho, 1) = T*.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch

from .accuracy import checked, single_accuracy, team_of
from .checks import choice
from .fusion import fused_capability

__all__ = ["decompose_effect"]

Array = NDArray[np.float64]


def decompose_effect(
    h: ArrayLike,
    a: ArrayLike,
    overlap: ArrayLike,
    *,
    trust: ArrayLike = 1.0,
    overlap_belief: ArrayLike = 0.0,
    recommendation: str = "probabilistic",
    overlap_kind: str = "correlation",
    prior: ArrayLike = 0.5,
) -> Bunch:
    """Split the effect of assistance into information value and behavioural penalty.

    Parameters
    ----------
    h, a, overlap, trust, overlap_belief, recommendation, overlap_kind, prior
        As in `team_accuracy`.

    Returns
    -------
    Bunch
        Floats or arrays: ``human``, ``ai``, ``team``; ``optimal``, the best use of what the AI
        shows (log-odds: the optimal fusion; a side: Bayes' rule given the side); ``pooled_cues``,
        what both could reach by pooling their cues rather than their summaries (NaN where no cues
        have this overlap, that is for rho < 0 or rho > min(r, 1/r)); ``information_value`` =
        optimal - human; ``penalty`` = optimal - team; and its Shapley shares ``penalty_trust`` and
        ``penalty_overlap``, which add up to it. A share is negative where one error repairs the
        other.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    References
    ----------
    .. [1] S. Amin, A. Bennouna, D. Huttenlocher, D. Kong, L. Lyu, A. Ozdaglar (2026). "A Bayesian
       Framework for Human-AI Collaboration: Complementarity and Correlation Neglect".
       arXiv:2602.14331.

    Examples
    --------
    >>> from equipoise.games import decompose_effect
    >>> effect = decompose_effect(0.5, 0.8, 0.3, trust=0.25)
    >>> print(round(effect.team - effect.human, 6))
    0.064391
    >>> print(round(effect.information_value, 6), round(effect.penalty, 6))
    0.109525 0.045134
    """
    choice(recommendation, "recommendation", ("probabilistic", "binary"))
    H, A, rho, tau, belief, l0 = checked(h, a, overlap, trust, overlap_belief, overlap_kind, prior)

    def team(believed: Array, trusted: Array) -> Array:
        return team_of(H, A, rho, trusted, believed, l0, recommendation)

    one = np.ones_like(tau)
    human, ai = single_accuracy(H, l0), single_accuracy(A, l0)
    as_it_is, trust_repaired = team(belief, tau), team(belief, one)
    belief_repaired = team(rho, tau)
    if recommendation == "probabilistic":
        optimal = single_accuracy(fused_capability(H, A, rho), l0)
    else:
        optimal = team(rho, one)
    penalty_trust = ((optimal - belief_repaired) + (trust_repaired - as_it_is)) / 2
    penalty_overlap = ((optimal - trust_repaired) + (belief_repaired - as_it_is)) / 2
    small, large = np.minimum(H, A), np.maximum(H, A)
    have_cues = (rho >= 0) & (rho * large <= small * (1 + 1e-12))
    pooled = np.sqrt(np.maximum(H**2 + A**2 - rho * H * A, 0.0))
    parts = {
        "human": human,
        "ai": ai,
        "team": as_it_is,
        "optimal": optimal,
        "pooled_cues": np.where(have_cues, single_accuracy(pooled, l0), np.nan),
        "information_value": optimal - human,
        "penalty": optimal - as_it_is,
        "penalty_trust": penalty_trust,
        "penalty_overlap": penalty_overlap,
    }
    return Bunch(**{name: value[()] for name, value in parts.items()})
