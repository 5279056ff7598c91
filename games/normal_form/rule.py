"""The rule of FTRL+ for one player, who sees nothing but his own payoff vectors.

With the payoff sum Y, the start's scores y0 and the sum S of squared prediction errors,

    eta = 1 / sqrt(tau + S)             from past rounds only
    x = Q(y0 + eta Y)                   base state
    vhat = lam v(x) + (1 - lam) last    prediction; "last" is the last payoff vector,
                                        lam = 0 is optimistic, lam = 1 mirror-prox
    x' = Q(y0 + eta (Y + vhat))         the strategy that is played
    Y += g,  S += |g - vhat|_*^2        after g = v(x') is seen

Q doesn't change when a constant is added to all scores, so Y keeps g - <g, x'>: its largest entry
is the regret.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.externals.array_api_compat import array_namespace

from .regularizers import Regularizer

__all__ = ["ADAPTIVE", "CONSTANT", "SCALE_FREE", "PlayerState", "Rule", "regret_bound"]

CONSTANT, ADAPTIVE, SCALE_FREE = 0, 1, 2


@dataclass(frozen=True)
class Rule:
    """The choices that define one player's rule.

    Parameters
    ----------
    regularizer : Regularizer
        Its choice map is Q.
    schedule : {CONSTANT, ADAPTIVE, SCALE_FREE}
        How the step size is set.
    tau : float
        Of the adaptive schedule.
    lam : float or None
        Share of the mirror-prox prediction; None predicts zero (plain FTRL).
    """

    regularizer: Regularizer
    schedule: int
    tau: float
    lam: float | None

    @property
    def queries(self) -> bool:
        """Whether a payoff vector at the base state is needed in each round."""
        return self.lam is not None and self.lam > 0.0


@dataclass
class PlayerState:
    """What a player remembers: y0, Y, last (..., d) and S, largest, spread (...)."""

    y0: Any
    Y: Any
    last: Any
    S: Any
    largest: Any
    spread: Any
    constant_step: Any

    @classmethod
    def start(cls, y0: np.ndarray, constant_step: float = 1.0) -> "PlayerState":
        """Return the state before the first round."""
        zero = np.zeros(y0.shape[:-1])
        return cls(
            y0,
            np.zeros_like(y0),
            np.zeros_like(y0),
            zero,
            zero.copy(),
            zero.copy(),
            zero + constant_step,
        )

    def step_size(self, rule: Rule) -> Any:
        """Return eta (...)."""
        xp = array_namespace(self.S)
        if rule.schedule == CONSTANT:
            return self.constant_step
        if rule.schedule == ADAPTIVE:
            return 1.0 / xp.sqrt(rule.tau + self.S)
        positive = xp.where(self.S > 0, self.S, xp.ones_like(self.S))
        return xp.where(self.S > 0, 1.0 / xp.sqrt(positive), 0.0 * self.S)

    def base(self, rule: Rule, eta: Any) -> Any:
        """Return the base state x (..., d)."""
        return rule.regularizer.choose(self.y0 + eta[..., None] * self.Y)

    def prediction(self, rule: Rule, queried: Any = None) -> Any:
        """Return vhat (..., d); `queried` is the payoff vector at the base state."""
        if rule.lam is None:
            return 0.0 * self.last
        if not rule.queries:
            return self.last
        return rule.lam * queried + (1.0 - rule.lam) * self.last

    def play(self, rule: Rule, eta: Any, prediction: Any) -> Any:
        """Return the played strategy x' (..., d)."""
        return rule.regularizer.choose(self.y0 + eta[..., None] * (self.Y + prediction))

    def absorb(self, rule: Rule, x: Any, g: Any, prediction: Any) -> None:
        """Update the state with the payoff vector g seen at the played strategy x."""
        xp = array_namespace(g)
        delta = rule.regularizer.dual_norm(g - prediction) ** 2
        self.S = self.S + delta
        self.largest = xp.maximum(self.largest, delta)
        self.spread = self.spread + (xp.max(g, axis=-1) - xp.min(g, axis=-1))
        self.Y = self.Y + (g - xp.sum(g * x, axis=-1, keepdims=True))
        self.last = g


def regret_bound(
    rule: Rule,
    y0: np.ndarray,
    S: np.ndarray,
    largest: np.ndarray,
    spread: np.ndarray,
    constant_step: np.ndarray,
    n_rounds: int,
) -> np.ndarray:
    """Return a bound on the regret that holds whatever the opponents did.

    With the range H and modulus K of the regulariser and the largest squared prediction error D,
    (H + 1/K) sqrt(tau + S) + D / (2 K sqrt(tau)) for adaptive steps, (H + sqrt(2)/K + c) sqrt(S)
    for scale-free ones (c = 6.83, euclidean 4.83), H / eta + eta S / (2 K) for constant ones. For
    the log-barrier the mean range of the payoff vectors is added.

    Parameters
    ----------
    rule : Rule
        The player's rule.
    y0 : ndarray of shape (..., d)
        Scores of his start.
    S, largest, spread, constant_step : ndarray of shape (...)
        As in `PlayerState`.
    n_rounds : int
        Rounds played.

    Returns
    -------
    ndarray of shape (...)
        The bound; 0 before the first round.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games.normal_form.regularizers import Regularizer
    >>> from equipoise.games.normal_form.rule import ADAPTIVE, Rule, regret_bound
    >>> rule = Rule(Regularizer("entropic"), ADAPTIVE, 1.0, 0.0)
    >>> zero = np.zeros(())
    >>> float(regret_bound(rule, np.zeros(3), zero + 99.0, zero + 4.0, zero, zero, 100).round(4))
    22.9861
    """
    if n_rounds == 0:
        return np.zeros(S.shape)
    h = rule.regularizer
    H, K = h.range_from(y0, n_rounds), h.strong_convexity
    if rule.schedule == ADAPTIVE:
        bound = (H + 1.0 / K) * np.sqrt(rule.tau + S) + largest / (2.0 * K * np.sqrt(rule.tau))
    elif rule.schedule == SCALE_FREE:
        bound = (H + np.sqrt(2.0) / K + (4.83 if h.is_euclidean else 6.83)) * np.sqrt(S)
    else:
        bound = H / constant_step + constant_step * S / (2.0 * K)
    return bound + spread / n_rounds if h.name == "log_barrier" else bound
