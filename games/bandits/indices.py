"""Learners for noisy losses by bounds of the means: the UCB family, epsilon-greedy."""

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from .dispatch import DISCOUNTED, GREEDY, UCB, WINDOW
from .learner import CONSTRAINTS, HORIZON, BanditLearner
from .memory import constants, new_memory

__all__ = ["UCB1", "DiscountedUCB", "EpsilonGreedy", "SlidingWindowUCB"]

Array = np.ndarray


class UCB1(BanditLearner):
    """Play the arm whose mean loss may be least: for noise that doesn't change.

    Parameters
    ----------
    n_arms : int
        Number of arms A.
    confidence : float, default=2.0
        c in the radius sqrt(c ln t / n).
    mode : {"loss", "reward"}, default="loss"
        Whether the numbers are losses or rewards.
    loss_range : (float, float), default=(0, 1)
        Least and largest loss or reward.
    clip : bool, default=False
        Whether to clip numbers out of the range, with a warning, instead of refusing them.

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
    .. [1] P. Auer, N. Cesa-Bianchi, P. Fischer, "Finite-time analysis of the multiarmed bandit
       problem", 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games import UCB1
    >>> losses = np.random.RandomState(0).uniform(size=(1000, 2)) < [0.2, 0.8]
    >>> UCB1(2).fit(losses).predict()
    0
    """

    _kind: ClassVar[int] = UCB
    _parameter_constraints: ClassVar[dict] = {
        **CONSTRAINTS,
        "confidence": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_arms: int,
        confidence: float = 2.0,
        mode: str = "loss",
        loss_range: tuple[float, float] = (0, 1),
        clip: bool = False,
    ) -> None:
        self.n_arms = n_arms
        self.confidence = confidence
        self.mode = mode
        self.loss_range = loss_range
        self.clip = clip

    def _params(self) -> Array:
        return constants(None, None, self.confidence)


class SlidingWindowUCB(BanditLearner):
    """UCB on the newest rounds only: for noise whose means jump.

    Parameters
    ----------
    n_arms : int
        Number of arms A.
    horizon : int, optional
        Number of rounds T; needed where `window` is None.
    n_switches : int, optional
        Number S of segments in which no loss changes; None takes 1.
    window : int, optional
        Number of newest rounds; None takes 2 sqrt(T ln T / S).
    xi : float, default=0.6
        Factor of the logarithm in the radii.
    mode : {"loss", "reward"}, default="loss"
        Whether the numbers are losses or rewards.
    loss_range : (float, float), default=(0, 1)
        Least and largest loss or reward.
    clip : bool, default=False
        Whether to clip numbers out of the range, with a warning, instead of refusing them.

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
    .. [1] A. Garivier, E. Moulines, "On upper-confidence bound policies for switching bandit
       problems", 2011.

    Examples
    --------
    >>> from equipoise.games import SlidingWindowUCB
    >>> losses = [[0.2, 0.8]] * 500 + [[0.8, 0.2]] * 500
    >>> learner = SlidingWindowUCB(2, horizon=1000, n_switches=2).fit(losses)
    >>> bool(learner.dynamic_regret_ < 500), learner.predict()
    (True, 1)
    """

    _kind: ClassVar[int] = WINDOW
    _n_vectors: ClassVar[int] = 2
    _parameter_constraints: ClassVar[dict] = {
        **CONSTRAINTS,
        **HORIZON,
        "n_switches": [Interval(Integral, 1, None, closed="left"), None],
        "window": [Interval(Integral, 1, None, closed="left"), None],
        "xi": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_arms: int,
        horizon: int | None = None,
        n_switches: int | None = None,
        window: int | None = None,
        xi: float = 0.6,
        mode: str = "loss",
        loss_range: tuple[float, float] = (0, 1),
        clip: bool = False,
    ) -> None:
        self.n_arms = n_arms
        self.horizon = horizon
        self.n_switches = n_switches
        self.window = window
        self.xi = xi
        self.mode = mode
        self.loss_range = loss_range
        self.clip = clip

    def _check_more(self) -> None:
        if self.window is None and self.horizon is None:
            raise ValueError("SlidingWindowUCB needs window or horizon; both are None")

    def _window(self) -> int:
        if self.window is not None:
            return self.window
        T = float(self.horizon or 1)
        return int(np.ceil(2 * np.sqrt(T * np.log(max(T, 2)) / (self.n_switches or 1))))

    def _params(self) -> Array:
        return constants(self.horizon, None, self._window(), self.xi)

    def _new_memory(self, params: Array) -> Array:
        return new_memory(params, self.n_arms, self._n_vectors, 2 * self._window())


class DiscountedUCB(BanditLearner):
    """UCB with discounted samples: for noise whose means jump.

    Parameters
    ----------
    n_arms : int
        Number of arms A.
    horizon : int, optional
        Number of rounds T; None guesses 4 A, and doubles the guess whenever it is reached.
    n_switches : int, optional
        Number S of segments in which no loss changes; None takes 1.
    discount : float, optional
        Factor of older samples in each round; None takes 1 - sqrt(S / T) / 4.
    xi : float, default=0.6
        Factor of the logarithm in the radii.
    mode : {"loss", "reward"}, default="loss"
        Whether the numbers are losses or rewards.
    loss_range : (float, float), default=(0, 1)
        Least and largest loss or reward.
    clip : bool, default=False
        Whether to clip numbers out of the range, with a warning, instead of refusing them.

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
    .. [1] A. Garivier, E. Moulines, "On upper-confidence bound policies for switching bandit
       problems", 2011.

    Examples
    --------
    >>> from equipoise.games import DiscountedUCB
    >>> losses = [[0.2, 0.8]] * 500 + [[0.8, 0.2]] * 500
    >>> learner = DiscountedUCB(2, horizon=1000, n_switches=2).fit(losses)
    >>> bool(learner.dynamic_regret_ < 500), learner.predict()
    (True, 1)
    """

    _kind: ClassVar[int] = DISCOUNTED
    _n_vectors: ClassVar[int] = 2
    _parameter_constraints: ClassVar[dict] = {
        **CONSTRAINTS,
        **HORIZON,
        "n_switches": [Interval(Integral, 1, None, closed="left"), None],
        "discount": [Interval(Real, 0, 1, closed="neither"), None],
        "xi": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_arms: int,
        horizon: int | None = None,
        n_switches: int | None = None,
        discount: float | None = None,
        xi: float = 0.6,
        mode: str = "loss",
        loss_range: tuple[float, float] = (0, 1),
        clip: bool = False,
    ) -> None:
        self.n_arms = n_arms
        self.horizon = horizon
        self.n_switches = n_switches
        self.discount = discount
        self.xi = xi
        self.mode = mode
        self.loss_range = loss_range
        self.clip = clip

    def _params(self) -> Array:
        return constants(self.horizon, self.n_switches, self.discount, self.xi)


class EpsilonGreedy(BanditLearner):
    """Play the arm of least mean loss, and any arm with a fixed probability.

    Parameters
    ----------
    n_arms : int
        Number of arms A.
    epsilon : float, default=0.1
        Probability of a uniform draw.
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
    .. [1] R. Sutton, A. Barto, "Reinforcement learning: an introduction", 2018, chapter 2.

    Examples
    --------
    >>> from equipoise.games import EpsilonGreedy
    >>> losses = [[0.2, 0.8]] * 500 + [[0.8, 0.2]] * 500
    >>> learner = EpsilonGreedy(2, random_state=0).fit(losses)
    >>> bool(learner.dynamic_regret_ < 500), learner.predict()
    (True, 1)
    """

    _kind: ClassVar[int] = GREEDY
    _parameter_constraints: ClassVar[dict] = {
        **CONSTRAINTS,
        "epsilon": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(
        self,
        n_arms: int,
        epsilon: float = 0.1,
        mode: str = "loss",
        loss_range: tuple[float, float] = (0, 1),
        clip: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_arms = n_arms
        self.epsilon = epsilon
        self.mode = mode
        self.loss_range = loss_range
        self.clip = clip
        self.random_state = random_state

    def _params(self) -> Array:
        return constants(None, None, self.epsilon)
