"""The Blackwell static-dynamic learner: little regret against fixed arms and moving targets.

It keeps unbiased estimates of its regret against each arm and against the best sequence, and steers
the vector of both towards zero, as Blackwell's condition asks. While static regret is negative the
learner explores at the rate that tracking needs: what it gained pays for the search.

After J. Qian, C.-Y. Wei, "Achieving optimal static and dynamic regret simultaneously in bandits
with deterministic losses", 2026. The learner is a reconstruction from the ideas that its abstract
names; the unbiasedness of the estimates is proved, the orders of both regrets are measured.
"""

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .dispatch import BLACKWELL
from .last_losses import LastLossLearner
from .learner import CONSTRAINTS, HORIZON
from .memory import GUESSED_SEGMENTS, constants
from .static_dynamic_rules import (
    BEST_SINCE,
    DYNAMIC_REGRET,
    DYNAMIC_WEIGHT,
    EXPLORATION,
    blackwell_observe,
)

__all__ = ["StaticDynamicBandit"]

Array = np.ndarray


class StaticDynamicBandit(LastLossLearner):
    """Learn against a world that may stand still or jump, without being told which.

    Parameters
    ----------
    n_arms : int
        Number of arms A.
    horizon : int, optional
        Number of rounds T; None guesses 4 A, and doubles the guess whenever it is reached.
    n_switches : int, optional
        Number S of segments in which no loss changes; None guesses 1, and doubles the guess with
        the observed changes.
    cap : float, default=2.0
        Limit of the pull of the dynamic goal, for worlds in which it can't be reached.
    c0, c1 : float, default=1.0
        Factors of the exploration sqrt(A / T) for the static goal, sqrt(S A / T) for the dynamic.
    static_part : {"regret_matching", "exp"}, default="regret_matching"
        Weights of the arms in the static goal; "exp" is safer where losses are noisy.
    change_tol : float, default=0.0
        A loss counts as changed if it differs by more than this from the arm's last one, in units
        of the range; infinity for noisy losses.
    mode : {"loss", "reward"}, default="loss"
        Whether the numbers are losses or rewards.
    loss_range : (float, float), default=(0, 1)
        Least and largest loss or reward.
    clip : bool, default=False
        Whether to clip numbers out of the range, with a warning, instead of refusing them.
    random_state : int, RandomState or None, default=None
        Seed of the draws.

    Attributes
    ----------
    probabilities_ : ndarray of shape (A,)
        The law of the next draw.
    t_ : int
        Rounds so far.
    n_changes_ : int
        1 + changes seen, each arm's counted for itself.
    switch_guess_ : int
        Number of segments that the rates are made for.
    last_losses_ : ndarray of shape (A,)
        Last seen loss (or reward) of each arm; NaN where none was.
    best_arm_ : int
        The arm that is best by what was last seen of each, -1 where none was.
    best_arm_since_ : int
        The round, counted from 1, that made it the best one: while it stands still, no better arm
        has been seen. 0 until each arm was seen.
    static_regret_estimate_ : ndarray of shape (A,)
        Unbiased estimate of the regret against each arm, after the first look at each.
    dynamic_regret_estimate_ : float
        Estimate of the regret against the best sequence, in expectation not below it.
    dynamic_weight_ : float
        Share f_D of the dynamic goal in the next draw.
    exploration_rate_ : float
        Probability gamma that the next draw is uniform.
    arms_, losses_, propensities_ : ndarray of shape (T,)
        Arms, their losses, and the probabilities they were drawn with; only after `fit`.
    static_regret_, dynamic_regret_ : float
        Regrets of the run; only after `fit`.

    References
    ----------
    .. [1] J. Qian, C.-Y. Wei, "Achieving optimal static and dynamic regret simultaneously in
       bandits with deterministic losses", 2026.
    .. [2] C.-Y. Wei, H. Luo, "More adaptive algorithms for adversarial bandits", 2018.
    .. [3] D. Blackwell, "An analog of the minimax theorem for vector payoffs", 1956.

    Examples
    --------
    >>> from equipoise.games import PiecewiseEnv, StaticDynamicBandit
    >>> env = PiecewiseEnv([[0.5, 0.8, 0.8], [0.5, 0.8, 0.2]] * 2, lengths=[2500] * 4)
    >>> learner = StaticDynamicBandit(3, horizon=10_000, random_state=0).fit(env)
    >>> bool(learner.static_regret_ < 0), bool(learner.dynamic_regret_ < (3 * 4 * 10_000) ** 0.5)
    (True, True)
    """

    _kind: ClassVar[int] = BLACKWELL
    _n_vectors: ClassVar[int] = 2
    _see = blackwell_observe
    _parameter_constraints: ClassVar[dict] = {
        **CONSTRAINTS,
        **HORIZON,
        "n_switches": [Interval(Integral, 1, None, closed="left"), None],
        "cap": [Interval(Real, 0, None, closed="left")],
        "c0": [Interval(Real, 0, None, closed="left")],
        "c1": [Interval(Real, 0, None, closed="left")],
        "static_part": [StrOptions({"regret_matching", "exp"})],
        "change_tol": [Interval(Real, 0, None, closed="left"), float],
    }

    def __init__(
        self,
        n_arms: int,
        horizon: int | None = None,
        n_switches: int | None = None,
        cap: float = 2.0,
        c0: float = 1.0,
        c1: float = 1.0,
        static_part: str = "regret_matching",
        change_tol: float = 0.0,
        mode: str = "loss",
        loss_range: tuple[float, float] = (0, 1),
        clip: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_arms = n_arms
        self.horizon = horizon
        self.n_switches = n_switches
        self.cap = cap
        self.c0 = c0
        self.c1 = c1
        self.static_part = static_part
        self.change_tol = change_tol
        self.mode = mode
        self.loss_range = loss_range
        self.clip = clip
        self.random_state = random_state

    def _check_more(self) -> None:
        if not self.change_tol >= 0:
            raise ValueError(f"change_tol={self.change_tol!r}; allowed: 0 or more, or infinity")

    def _params(self) -> Array:
        own = (self.cap, self.c0, self.c1, self.static_part == "exp", self.change_tol)
        return constants(self.horizon, self.n_switches, *own)

    def _head(self, place: int) -> float:
        check_is_fitted(self)
        return float(self._memory[place])

    @property
    def best_arm_(self) -> int:
        v = self._vector(2)
        return -1 if np.isnan(v).all() else int(np.nanargmin(v))

    @property
    def best_arm_since_(self) -> int:
        return int(self._head(BEST_SINCE))

    @property
    def switch_guess_(self) -> int:
        return int(self._head(GUESSED_SEGMENTS))

    @property
    def last_losses_(self) -> Array:
        return self._units.from_unit(self._vector(2))

    @property
    def static_regret_estimate_(self) -> Array:
        return self._units.span * self._vector(3)

    @property
    def dynamic_regret_estimate_(self) -> float:
        return self._units.span * self._head(DYNAMIC_REGRET)

    @property
    def dynamic_weight_(self) -> float:
        _ = self.probabilities_  # writes the weights of the coming round
        return self._head(DYNAMIC_WEIGHT)

    @property
    def exploration_rate_(self) -> float:
        _ = self.probabilities_
        return self._head(EXPLORATION)

    def _remarks(self) -> list[str]:
        return [
            f"estimated without counterfactuals: static regret "
            f"{self.static_regret_estimate_.max():.4g}, "
            f"dynamic regret {self.dynamic_regret_estimate_:.4g}",
            f"{self.n_changes_ - 1} changes seen, each arm's counted for itself; "
            f"rates made for S = {self.switch_guess_}",
            f"arm {self.best_arm_} is the best known since round {self.best_arm_since_}",
            f"the dynamic goal has weight {self.dynamic_weight_:.2f}; "
            f"{self.exploration_rate_:.2%} of the draws are uniform",
        ]
