"""Any learner for a still world, made fit for jumps by a change detector."""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from .bases import check_base
from .detection_rules import EXPLORATION, LATEST, SUMS_PER_ARM, detection_scales
from .dispatch import DETECTION
from .indices import UCB1
from .learner import CONSTRAINTS, HORIZON, BanditLearner
from .memory import CHANGES, constants, new_memory

__all__ = ["DetectionAugmented"]

Array = np.ndarray


class DetectionAugmented(BanditLearner):
    """Give a learner a change detector: it starts anew whenever an arm's mean has changed.

    For noise with jumps. Each arm's losses since the latest restart pass a likelihood ratio test;
    a share of uniform draws keeps every arm under watch.

    Parameters
    ----------
    n_arms : int
        Number of arms A.
    horizon : int, optional
        Number of rounds T; None guesses 4 A, and doubles the guess whenever it is reached.
    base : learner, optional
        A learner with the same arms and losses in [0, 1], no ThompsonBeta and none that holds
        learners; None takes `UCB1` with ``confidence=0.5``.
    delta : float, optional
        Tolerated chance of a false alarm; None takes 1 / sqrt(T). The threshold
        ln(n^(3/2) / delta) is the one that the test's authors use; the one that they prove
        false alarms for is larger.
    exploration : float, optional
        Share of uniform draws; None takes min(1/2, sqrt(k A ln T / T)) after k - 1 restarts.
    mode : {"loss", "reward"}, default="loss"
        Whether the numbers are losses or rewards.
    loss_range : (float, float), default=(0, 1)
        Least and largest loss or reward.
    clip : bool, default=False
        Whether to clip numbers out of the range, with a warning, instead of refusing them.
    random_state : int, RandomState or None, default=None
        Seed of the draws; the base's own isn't used.

    Attributes
    ----------
    probabilities_ : ndarray of shape (A,)
        The law of the next draw.
    t_ : int
        Rounds so far.
    n_changes_ : int
        1 + restarts.
    latest_change_ : int
        The round, counted from 1, of the latest restart; 0 where there was none.
    arms_, losses_, propensities_ : ndarray of shape (T,)
        Arms, their losses, and the probabilities they were drawn with; only after `fit`.
    static_regret_, dynamic_regret_ : float
        Regrets of the run; only after `fit`.

    References
    ----------
    .. [1] L. Besson, E. Kaufmann, O.-A. Maillard, J. Seznec, "Efficient change-point detection for
       tackling piecewise-stationary bandits", 2022.
    .. [2] A. Gerogiannis, Y.-H. Huang, S. Bose, V. Veeravalli, "DAL: a practical prior-free
       black-box framework for piecewise stationary bandits", 2025.

    Examples
    --------
    >>> from equipoise.games import DetectionAugmented, StochasticSwitchingEnv
    >>> env = StochasticSwitchingEnv([[0.2, 0.8], [0.9, 0.3]], lengths=[2000, 2000])
    >>> learner = DetectionAugmented(2, horizon=4000, random_state=0).fit(env)
    >>> learner.n_changes_, 2000 < learner.latest_change_ < 2100, learner.predict()
    (2, True, 1)
    """

    _kind: ClassVar[int] = DETECTION
    _parameter_constraints: ClassVar[dict] = {
        **CONSTRAINTS,
        **HORIZON,
        "base": [BanditLearner, None],
        "delta": [Interval(Real, 0, 1, closed="neither"), None],
        "exploration": [Interval(Real, 0, 1, closed="both"), None],
    }

    def __init__(
        self,
        n_arms: int,
        horizon: int | None = None,
        base: BanditLearner | None = None,
        delta: float | None = None,
        exploration: float | None = None,
        mode: str = "loss",
        loss_range: tuple[float, float] = (0, 1),
        clip: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_arms = n_arms
        self.horizon = horizon
        self.base = base
        self.delta = delta
        self.exploration = exploration
        self.mode = mode
        self.loss_range = loss_range
        self.clip = clip
        self.random_state = random_state

    def _check_more(self) -> None:
        if self.base is not None:
            check_base(self.base, self.n_arms, "base")

    def _fresh_base(self) -> BanditLearner:
        base = UCB1(self.n_arms, confidence=0.5) if self.base is None else clone(self.base)
        return base.reset()

    def _params(self) -> Array:
        base = self._fresh_base()
        own = (self.delta, self.exploration, base._kind, len(base._memory))
        return constants(self.horizon, None, *own, *base._constants)

    def _new_memory(self, params: Array) -> Array:
        base = self._fresh_base()._memory
        n_sums = SUMS_PER_ARM * self.n_arms
        memory = new_memory(params, self.n_arms, 2, n_sums + 2 * len(base))
        memory[-2 * len(base) :] = np.concatenate([base, base])
        detection_scales(params, memory, self.n_arms)
        return memory

    @property
    def n_changes_(self) -> int:
        check_is_fitted(self)
        return int(self._memory[CHANGES])

    @property
    def latest_change_(self) -> int:
        check_is_fitted(self)
        return int(self._memory[LATEST])

    def _remarks(self) -> list[str]:
        restarts = self.n_changes_ - 1
        latest = f", the latest in round {self.latest_change_}" if restarts else ""
        return [
            f"{restarts} restarts{latest}; {self._memory[EXPLORATION]:.2%} of the draws are uniform"
        ]
