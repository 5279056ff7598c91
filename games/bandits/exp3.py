"""Learners with exponential weights against fixed arms: Exp3, Exp3-IX, Exp3.P."""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from .dispatch import EXP3, EXP3IX, EXP3P
from .learner import CONSTRAINTS, HORIZON, BanditLearner
from .memory import constants

__all__ = ["Exp3", "Exp3IX", "Exp3P"]

Array = np.ndarray


class Exp3(BanditLearner):
    """Exponential weights on estimated losses: little regret against fixed arms.

    At the horizon its expected static regret is at most sqrt(2 A T ln A) [2]_.

    Parameters
    ----------
    n_arms : int
        Number of arms A.
    horizon : int, optional
        Number of rounds T; None guesses 4 A, and doubles the guess whenever it is reached.
    learning_rate : float, optional
        Rate eta; None takes sqrt(2 ln A / (A T)).
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
    .. [1] P. Auer, N. Cesa-Bianchi, Y. Freund, R. Schapire, "The nonstochastic multiarmed bandit
       problem", 2002.
    .. [2] S. Bubeck, N. Cesa-Bianchi, "Regret analysis of stochastic and nonstochastic multi-armed
       bandit problems", 2012, theorem 3.1.

    Examples
    --------
    >>> from equipoise.games import Exp3
    >>> losses = [[0.2, 0.8]] * 500 + [[0.8, 0.2]] * 500
    >>> learner = Exp3(2, horizon=1000, random_state=0).fit(losses)
    >>> bool(learner.dynamic_regret_ < 500), learner.predict()
    (True, 1)
    """

    _kind: ClassVar[int] = EXP3
    _parameter_constraints: ClassVar[dict] = {
        **CONSTRAINTS,
        **HORIZON,
        "learning_rate": [Interval(Real, 0, None, closed="neither"), None],
    }

    def __init__(
        self,
        n_arms: int,
        horizon: int | None = None,
        learning_rate: float | None = None,
        mode: str = "loss",
        loss_range: tuple[float, float] = (0, 1),
        clip: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_arms = n_arms
        self.horizon = horizon
        self.learning_rate = learning_rate
        self.mode = mode
        self.loss_range = loss_range
        self.clip = clip
        self.random_state = random_state

    def _params(self) -> Array:
        return constants(self.horizon, None, self.learning_rate)

    def _bounds(self, horizon: int, n_segments: int) -> dict[str, float]:
        # The known bound holds for the default rate at this horizon.
        if self.learning_rate is not None or self.horizon != horizon:
            return {}
        return {"static": float(np.sqrt(2 * horizon * self.n_arms * np.log(self.n_arms)))}


class Exp3IX(BanditLearner):
    """Exp3 with implicit exploration: regret is small with high probability too.

    Parameters
    ----------
    n_arms : int
        Number of arms A.
    horizon : int, optional
        Number of rounds T; None guesses 4 A, and doubles the guess whenever it is reached.
    learning_rate : float, optional
        Rate eta; None takes sqrt(2 ln A / (A T)).
    gamma : float, optional
        Added to the probability that an estimate is divided by; None takes eta / 2.
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
    .. [1] G. Neu, "Explore no more: improved high-probability regret bounds for non-stochastic
       bandits", 2015.

    Examples
    --------
    >>> from equipoise.games import Exp3IX
    >>> losses = [[0.2, 0.8]] * 500 + [[0.8, 0.2]] * 500
    >>> learner = Exp3IX(2, horizon=1000, random_state=0).fit(losses)
    >>> bool(learner.dynamic_regret_ < 500), learner.predict()
    (True, 1)
    """

    _kind: ClassVar[int] = EXP3IX
    _parameter_constraints: ClassVar[dict] = {
        **CONSTRAINTS,
        **HORIZON,
        "learning_rate": [Interval(Real, 0, None, closed="neither"), None],
        "gamma": [Interval(Real, 0, None, closed="left"), None],
    }

    def __init__(
        self,
        n_arms: int,
        horizon: int | None = None,
        learning_rate: float | None = None,
        gamma: float | None = None,
        mode: str = "loss",
        loss_range: tuple[float, float] = (0, 1),
        clip: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_arms = n_arms
        self.horizon = horizon
        self.learning_rate = learning_rate
        self.gamma = gamma
        self.mode = mode
        self.loss_range = loss_range
        self.clip = clip
        self.random_state = random_state

    def _params(self) -> Array:
        return constants(self.horizon, None, self.learning_rate, self.gamma)


class Exp3P(BanditLearner):
    """Exp3 with an optimistic bias: regret is small with probability 1 - delta.

    At the horizon its static regret is at most 5.15 sqrt(A T ln(A / delta)) [2]_.

    Parameters
    ----------
    n_arms : int
        Number of arms A.
    horizon : int, optional
        Number of rounds T; None guesses 4 A, and doubles the guess whenever it is reached.
    delta : float, default=0.05
        Probability with which the bound may fail.
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
    .. [1] P. Auer, N. Cesa-Bianchi, Y. Freund, R. Schapire, "The nonstochastic multiarmed bandit
       problem", 2002.
    .. [2] S. Bubeck, N. Cesa-Bianchi, "Regret analysis of stochastic and nonstochastic multi-armed
       bandit problems", 2012, theorem 3.2.

    Examples
    --------
    >>> from equipoise.games import Exp3P
    >>> losses = [[0.2, 0.8]] * 500 + [[0.8, 0.2]] * 500
    >>> learner = Exp3P(2, horizon=1000, random_state=0).fit(losses)
    >>> bool(learner.dynamic_regret_ < 500), learner.predict()
    (True, 1)
    """

    _kind: ClassVar[int] = EXP3P
    _parameter_constraints: ClassVar[dict] = {
        **CONSTRAINTS,
        **HORIZON,
        "delta": [Interval(Real, 0, 1, closed="neither")],
    }

    def __init__(
        self,
        n_arms: int,
        horizon: int | None = None,
        delta: float = 0.05,
        mode: str = "loss",
        loss_range: tuple[float, float] = (0, 1),
        clip: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_arms = n_arms
        self.horizon = horizon
        self.delta = delta
        self.mode = mode
        self.loss_range = loss_range
        self.clip = clip
        self.random_state = random_state

    def _params(self) -> Array:
        return constants(self.horizon, None, self.delta)

    def _bounds(self, horizon: int, n_segments: int) -> dict[str, float]:
        if self.horizon != horizon:
            return {}
        A = self.n_arms
        return {"static": float(5.15 * np.sqrt(horizon * A * np.log(A / self.delta)))}

    def _what_is_bounded(self) -> str:
        return f"with probability {1 - self.delta:g} it is at most"
