"""In which region a deployment lies: better than both, worse than the human, worse than the AI.

Complementarity is T > max(H, A), impairment T < H, automation T < A; `boundaries` has their
edges in closed form.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .accuracy import (
    NOISE,
    accuracy_alone,
    checked,
    checked_options,
    number_of_choices,
    team_accuracy,
    team_and_margins,
)
from .boundaries import regime_boundaries
from .checks import choice, within
from .choices import option_accuracy, option_cells

__all__ = ["REGIME_NAMES", "Regime", "locate", "regime"]

Array = NDArray[np.float64]

#: What the codes of `regime` mean.
REGIME_NAMES = {-1: "impairment", 0: "indifferent", 1: "complementarity", 2: "automation"}


def codes_of(over_human: Array, over_ai: Array, tol: float) -> NDArray[np.int8]:
    """The region of each cell."""
    tol = max(tol, NOISE)
    codes = np.where(np.minimum(over_human, over_ai) > tol, 1, 0)
    codes = np.where(over_ai < -tol, 2, codes)
    return np.where(over_human < -tol, -1, codes).astype(np.int8)


def regime(
    h: ArrayLike,
    a: ArrayLike,
    overlap: ArrayLike,
    *,
    trust: ArrayLike = 1.0,
    overlap_belief: ArrayLike = 0.0,
    recommendation: str = "probabilistic",
    overlap_kind: str = "correlation",
    prior: ArrayLike = 0.5,
    n_choices: int = 2,
    tol: float = 1e-9,
) -> int | NDArray[np.int8]:
    """Say in which region a deployment lies.

    Parameters
    ----------
    h, a, overlap, trust, overlap_belief, recommendation, overlap_kind, prior, n_choices
        As in `team_accuracy`.
    tol : float, default=1e-9
        Differences of accuracy up to this size are indifferent; below 1e-14 it acts as 1e-14,
        because smaller differences are rounding.

    Returns
    -------
    int or ndarray of int8
        1 for complementarity (better than both alone), -1 for impairment (worse than the human),
        2 for automation (worse than the AI), 0 for indifferent. `REGIME_NAMES` has the names.
        Where an overlap belief or a prior makes a team worse than both, the code is -1.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    Examples
    --------
    >>> from equipoise.games import REGIME_NAMES, regime
    >>> [REGIME_NAMES[code] for code in regime(0.5, [0.2, 0.5, 0.9], 0.5)]
    ['impairment', 'complementarity', 'automation']
    """
    tol = float(within(tol, "tol", 0.0))
    choice(recommendation, "recommendation", ("probabilistic", "binary"))
    if number_of_choices(n_choices) > 2:
        d, d_ai, rho, tau = checked_options(
            h, a, overlap, trust, overlap_belief, recommendation, overlap_kind, prior, n_choices
        )
        team = np.add(*option_cells(d, d_ai, rho, tau, n_choices))
        alone = option_accuracy(d, n_choices), option_accuracy(d_ai, n_choices)
        return codes_of(team - alone[0], team - alone[1], tol)[()]
    arrays = checked(h, a, overlap, trust, overlap_belief, overlap_kind, prior)
    return codes_of(*team_and_margins(*arrays, recommendation)[1:], tol)[()]


@dataclass(frozen=True)
class Regime:
    """Where one deployment lies, and how far from the boundaries.

    Parameters
    ----------
    code : int
        1 complementarity, -1 impairment, 2 automation, 0 indifferent.
    human, ai, team : float
        The three accuracies.
    relative_capability : float
        r = a / h.
    overlap, trust, overlap_belief : float
        The point's other coordinates; overlap and belief as correlations.
    above_impairment : float
        r minus the upper end of impairment: negative inside it. NaN where h = 0.
    below_automation : float
        The lower end of automation minus r: negative inside it. NaN where h = 0.
    recommendation : str
        "probabilistic" or "binary".

    Examples
    --------
    >>> from equipoise.games import locate
    >>> point = locate(0.5, 0.3, 0.8)
    >>> point.name, round(point.above_impairment, 3)
    ('impairment', -0.291)
    """

    code: int
    human: float
    ai: float
    team: float
    relative_capability: float
    overlap: float
    trust: float
    overlap_belief: float
    above_impairment: float
    below_automation: float
    recommendation: str

    @property
    def name(self) -> str:
        """The region in a word."""
        return REGIME_NAMES[self.code]


def locate(
    h: float,
    a: float,
    overlap: float,
    *,
    trust: float = 1.0,
    overlap_belief: float = 0.0,
    recommendation: str = "probabilistic",
    overlap_kind: str = "correlation",
    tol: float = 1e-9,
) -> Regime:
    """Place one deployment in the phase diagram, for an even prior.

    Parameters
    ----------
    h, a, overlap, trust, overlap_belief : float
        One point, as in `team_accuracy`.
    recommendation, overlap_kind : str
        As in `team_accuracy`.
    tol : float, default=1e-9
        As in `regime`.

    Returns
    -------
    Regime
        Region, accuracies, and the distances to both boundaries along the AI's capability at
        the given overlap.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    Examples
    --------
    >>> from equipoise.games import locate
    >>> locate(0.5, 0.8, 0.3, trust=0.25).name
    'automation'
    """
    options: dict[str, Any] = {
        "trust": trust,
        "overlap_belief": overlap_belief,
        "recommendation": recommendation,
        "overlap_kind": overlap_kind,
    }
    code = regime(h, a, overlap, tol=tol, **options)
    H, A, rho, _, belief, _ = checked(h, a, overlap, trust, overlap_belief, overlap_kind, 0.5)
    r_i, r_a = np.nan, np.nan
    if h > 0:
        r_i, r_a = regime_boundaries(overlap, h=h, **options)
        if recommendation == "binary":
            r_i, r_a = r_i / h, r_a / h
    r = a / h if h > 0 else np.inf
    return Regime(
        code=int(code),
        human=float(accuracy_alone(H, "h", 0.5, 2)),
        ai=float(accuracy_alone(A, "a", 0.5, 2)),
        team=float(team_accuracy(h, a, overlap, **options)),
        relative_capability=float(r),
        overlap=float(rho),
        trust=float(trust),
        overlap_belief=float(belief),
        above_impairment=float(r - r_i),
        below_automation=float(r_a - r),
        recommendation=recommendation,
    )
