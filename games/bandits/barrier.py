"""Follow the regularised leader: Tsallis-INF, and the log barrier."""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from .dispatch import BARRIER, TSALLIS
from .learner import CONSTRAINTS, HORIZON, BanditLearner
from .memory import HEAD, constants

__all__ = ["LogBarrierFTRL", "TsallisINF"]

Array = np.ndarray


class TsallisINF(BanditLearner):
    """Follow the regularised leader with Tsallis entropy: optimal in two worlds, any horizon.

    Optimal up to constants against fixed arms, for adversarial and for noisy losses alike. With
    plain importance weights its expected static regret is at most 4 sqrt(A T) + 1 ([1]_,
    theorem 1).

    Parameters
    ----------
    n_arms : int
        Number of arms A.
    estimator : {"rv", "iw"}, default="rv"
        Loss estimates with reduced variance, or plain importance weights.
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
    .. [1] J. Zimmert, Y. Seldin, "Tsallis-INF: an optimal algorithm for stochastic and adversarial
       bandits", 2021.

    Examples
    --------
    >>> from equipoise.games import TsallisINF
    >>> losses = [[0.2, 0.8]] * 500 + [[0.8, 0.2]] * 500
    >>> learner = TsallisINF(2, random_state=0).fit(losses)
    >>> bool(learner.dynamic_regret_ < 500), learner.predict()
    (True, 1)
    """

    _kind: ClassVar[int] = TSALLIS
    _parameter_constraints: ClassVar[dict] = {
        **CONSTRAINTS,
        "estimator": [StrOptions({"rv", "iw"})],
    }

    def __init__(
        self,
        n_arms: int,
        estimator: str = "rv",
        mode: str = "loss",
        loss_range: tuple[float, float] = (0, 1),
        clip: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_arms = n_arms
        self.estimator = estimator
        self.mode = mode
        self.loss_range = loss_range
        self.clip = clip
        self.random_state = random_state

    def _params(self) -> Array:
        return constants(None, None, self.estimator == "rv")

    def _bounds(self, horizon: int, n_segments: int) -> dict[str, float]:
        if self.estimator == "rv":
            return {}
        return {"static": float(4 * np.sqrt(horizon * self.n_arms) + 1)}


class LogBarrierFTRL(BanditLearner):
    """Follow the regularised leader with a log barrier, optionally with predictions.

    Parameters
    ----------
    n_arms : int
        Number of arms A.
    horizon : int, optional
        Number of rounds T; None guesses 4 A, and doubles the guess whenever it is reached.
    learning_rate : float, optional
        Rate eta; None takes sqrt(A ln T / T).
    optimistic : bool, default=True
        Whether the last seen loss of an arm predicts its next one, 1/2 where none was seen.
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
    .. [1] C.-Y. Wei, H. Luo, "More adaptive algorithms for adversarial bandits", 2018.

    Examples
    --------
    >>> from equipoise.games import LogBarrierFTRL
    >>> losses = [[0.2, 0.8]] * 500 + [[0.8, 0.2]] * 500
    >>> learner = LogBarrierFTRL(2, horizon=1000, random_state=0).fit(losses)
    >>> bool(learner.dynamic_regret_ < 500), learner.predict()
    (True, 1)
    """

    _kind: ClassVar[int] = BARRIER
    _n_vectors: ClassVar[int] = 2
    _parameter_constraints: ClassVar[dict] = {
        **CONSTRAINTS,
        **HORIZON,
        "learning_rate": [Interval(Real, 0, None, closed="neither"), None],
        "optimistic": ["boolean"],
    }

    def __init__(
        self,
        n_arms: int,
        horizon: int | None = None,
        learning_rate: float | None = None,
        optimistic: bool = True,
        mode: str = "loss",
        loss_range: tuple[float, float] = (0, 1),
        clip: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_arms = n_arms
        self.horizon = horizon
        self.learning_rate = learning_rate
        self.optimistic = optimistic
        self.mode = mode
        self.loss_range = loss_range
        self.clip = clip
        self.random_state = random_state

    def _params(self) -> Array:
        return constants(self.horizon, None, self.learning_rate, self.optimistic)

    def _new_memory(self, params: Array) -> Array:
        memory = super()._new_memory(params)
        memory[HEAD + 3 * self.n_arms : HEAD + 4 * self.n_arms] = 0.5
        return memory
