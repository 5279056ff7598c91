"""Learners over learners: Corral, and bandit-over-bandit."""

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from .bases import check_base
from .dispatch import BLOCKS, CORRAL
from .exp3 import Exp3
from .learner import CONSTRAINTS, HORIZON, BanditLearner
from .master_rules import blocks_start, corral_start
from .memory import HEAD, constants, new_memory
from .tracking import TrackAndExplore

__all__ = ["BanditOverBandit", "Corral"]

Array = np.ndarray

#: The rounds that grids of guesses cover where the horizon is unknown.
UNKNOWN_HORIZON = 2**20


class Corral(BanditLearner):
    """A master over learners: as good as the best of them, up to what the trust in them costs.

    One learning rate can't serve both regrets: it decides which of them is small.

    Parameters
    ----------
    n_arms : int
        Number of arms A.
    horizon : int, optional
        Number of rounds T; None guesses 4 A, and doubles the guess whenever it is reached.
    n_switches : int, optional
        Number S of segments in which no loss changes; None takes 1.
    bases : list of learners, optional
        Learners with the same arms and losses in [0, 1], no ThompsonBeta and none that holds
        learners; None takes `Exp3`, and `TrackAndExplore` for S = 1, 4, 16, ... up to T / A
        segments.
    learning_rate : float, optional
        Rate eta; None takes 1 / sqrt(S A T).
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
    base_probabilities_ : ndarray of shape (n_bases,)
        How much each base is trusted.
    arms_, losses_, propensities_ : ndarray of shape (T,)
        Arms, their losses, and the probabilities they were drawn with; only after `fit`.
    static_regret_, dynamic_regret_ : float
        Regrets of the run; only after `fit`.

    References
    ----------
    .. [1] A. Agarwal, H. Luo, B. Neyshabur, R. Schapire, "Corralling a band of bandit algorithms",
       2017.

    Examples
    --------
    >>> from equipoise.games import Corral
    >>> losses = [[0.2, 0.8]] * 500 + [[0.8, 0.2]] * 500
    >>> learner = Corral(2, horizon=1000, n_switches=2, random_state=0).fit(losses)
    >>> bool(learner.dynamic_regret_ < 500), learner.predict()
    (True, 1)
    """

    _kind: ClassVar[int] = CORRAL
    _parameter_constraints: ClassVar[dict] = {
        **CONSTRAINTS,
        **HORIZON,
        "n_switches": [Interval(Integral, 1, None, closed="left"), None],
        "bases": [list, None],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), None],
    }

    def __init__(
        self,
        n_arms: int,
        horizon: int | None = None,
        n_switches: int | None = None,
        bases: list | None = None,
        learning_rate: float | None = None,
        mode: str = "loss",
        loss_range: tuple[float, float] = (0, 1),
        clip: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_arms = n_arms
        self.horizon = horizon
        self.n_switches = n_switches
        self.bases = bases
        self.learning_rate = learning_rate
        self.mode = mode
        self.loss_range = loss_range
        self.clip = clip
        self.random_state = random_state

    def _check_more(self) -> None:
        for base in self.bases or []:
            check_base(base, self.n_arms, "bases")
        if self.bases is not None and not self.bases:
            raise ValueError("bases is empty; allowed: at least one learner")

    def _band(self) -> list[BanditLearner]:
        """Fresh copies of the bases."""
        if self.bases is not None:
            return [clone(base) for base in self.bases]
        A, T = self.n_arms, self.horizon or UNKNOWN_HORIZON
        guesses = 4 ** np.arange(1 + int(np.log(max(T / A, 1)) / np.log(4) + 1e-9))
        trackers = [
            TrackAndExplore(A, exploration=float(min(1.0, np.sqrt(S * A / T)))) for S in guesses
        ]
        return [Exp3(A, horizon=self.horizon), *trackers]

    def _params(self) -> Array:
        band = [base.reset() for base in self._band()]
        start = 4 + 5 * len(band)
        place = HEAD + (2 + len(band)) * self.n_arms + 3 * len(band)
        rows: list[float] = []
        numbers: list[float] = []
        for base in band:
            size, length = len(base._memory), len(base._constants)
            rows += [base._kind, start + len(numbers), length, place, size]
            numbers += list(base._constants)
            place += size
        return constants(
            self.horizon, self.n_switches, self.learning_rate, len(band), *rows, *numbers
        )

    def _new_memory(self, params: Array) -> Array:
        band = [base.reset()._memory for base in self._band()]
        more = (self.n_arms + 3) * len(band) + sum(map(len, band))
        memory = new_memory(params, self.n_arms, 0, more)
        memory[len(memory) - sum(map(len, band)) :] = np.concatenate(band)
        corral_start(params, memory, self.n_arms)
        return memory

    @property
    def base_probabilities_(self) -> Array:
        check_is_fitted(self)
        n_bases, start = int(self._constants[3]), HEAD + 2 * self.n_arms
        return self._memory[start : start + n_bases].copy()


class BanditOverBandit(BanditLearner):
    """Exp3 over guesses of the number of switches, each played by Exp3.S for a block.

    Parameters
    ----------
    n_arms : int
        Number of arms A.
    horizon : int, optional
        Number of rounds T; None guesses 4 A, and doubles the guess whenever it is reached.
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
    arms_, losses_, propensities_ : ndarray of shape (T,)
        Arms, their losses, and the probabilities they were drawn with; only after `fit`.
    static_regret_, dynamic_regret_ : float
        Regrets of the run; only after `fit`.

    References
    ----------
    .. [1] W. C. Cheung, D. Simchi-Levi, R. Zhu, "Learning to optimize under
       non-stationarity", 2019.

    Examples
    --------
    >>> from equipoise.games import BanditOverBandit
    >>> losses = [[0.2, 0.8]] * 500 + [[0.8, 0.2]] * 500
    >>> learner = BanditOverBandit(2, horizon=1000, random_state=0).fit(losses)
    >>> bool(learner.dynamic_regret_ < 500), learner.predict()
    (True, 1)
    """

    _kind: ClassVar[int] = BLOCKS
    _n_vectors: ClassVar[int] = 0
    _parameter_constraints: ClassVar[dict] = {
        **CONSTRAINTS,
        **HORIZON,
    }

    def __init__(
        self,
        n_arms: int,
        horizon: int | None = None,
        mode: str = "loss",
        loss_range: tuple[float, float] = (0, 1),
        clip: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_arms = n_arms
        self.horizon = horizon
        self.mode = mode
        self.loss_range = loss_range
        self.clip = clip
        self.random_state = random_state

    def _params(self) -> Array:
        return constants(
            self.horizon, None, 1 + int(np.ceil(np.log2(self.horizon or UNKNOWN_HORIZON)))
        )

    def _new_memory(self, params: Array) -> Array:
        more = int(params[2]) + HEAD + 3 * self.n_arms
        memory = new_memory(params, self.n_arms, self._n_vectors, more)
        blocks_start(params, memory, self.n_arms)
        return memory
