"""Exponential weights that adapt: Exp3.S forgets, Exp3++ explores by the gaps."""

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from .dispatch import EXP3S, EXP3XX
from .learner import CONSTRAINTS, HORIZON, BanditLearner
from .memory import HEAD, constants

__all__ = ["Exp3PlusPlus", "Exp3S"]

Array = np.ndarray


class Exp3S(BanditLearner):
    """Exp3 that forgets: little regret against sequences with a known number of switches.

    Parameters
    ----------
    n_arms : int
        Number of arms A.
    horizon : int, optional
        Number of rounds T; None guesses 4 A, and doubles the guess whenever it is reached.
    n_switches : int, optional
        Number S of segments in which no loss changes; None takes 1.
    learning_rate : float, optional
        Rate eta; None takes sqrt(S ln(A T) / (A T)).
    gamma : float, optional
        Share of uniform draws; None takes min(1, sqrt(S A / T)).
    alpha : float, optional
        Share of the weight that is spread evenly in each round; None takes 1 / T.
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

    Examples
    --------
    >>> from equipoise.games import Exp3S
    >>> losses = [[0.2, 0.8]] * 500 + [[0.8, 0.2]] * 500
    >>> learner = Exp3S(2, horizon=1000, n_switches=2, random_state=0).fit(losses)
    >>> bool(learner.dynamic_regret_ < 500), learner.predict()
    (True, 1)
    """

    _kind: ClassVar[int] = EXP3S
    _parameter_constraints: ClassVar[dict] = {
        **CONSTRAINTS,
        **HORIZON,
        "n_switches": [Interval(Integral, 1, None, closed="left"), None],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), None],
        "gamma": [Interval(Real, 0, 1, closed="both"), None],
        "alpha": [Interval(Real, 0, 1, closed="both"), None],
    }

    def __init__(
        self,
        n_arms: int,
        horizon: int | None = None,
        n_switches: int | None = None,
        learning_rate: float | None = None,
        gamma: float | None = None,
        alpha: float | None = None,
        mode: str = "loss",
        loss_range: tuple[float, float] = (0, 1),
        clip: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_arms = n_arms
        self.horizon = horizon
        self.n_switches = n_switches
        self.learning_rate = learning_rate
        self.gamma = gamma
        self.alpha = alpha
        self.mode = mode
        self.loss_range = loss_range
        self.clip = clip
        self.random_state = random_state

    def _params(self) -> Array:
        return constants(self.horizon, self.n_switches, self.learning_rate, self.gamma, self.alpha)

    def _new_memory(self, params: Array) -> Array:
        memory = super()._new_memory(params)
        memory[HEAD + 2 * self.n_arms : HEAD + 3 * self.n_arms] = 1 / self.n_arms
        return memory


class Exp3PlusPlus(BanditLearner):
    """Exp3 whose exploration follows the gaps: good in noisy and in adversarial worlds.

    Parameters
    ----------
    n_arms : int
        Number of arms A.
    alpha : float, default=3.0
        Factor of the logarithm in the confidence radii.
    beta : float, default=256.0
        Factor of the exploration.
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
    .. [1] Y. Seldin, G. Lugosi, "An improved parametrization and analysis of the EXP3++ algorithm
       for stochastic and adversarial bandits", 2017.

    Examples
    --------
    >>> from equipoise.games import Exp3PlusPlus
    >>> losses = [[0.2, 0.8]] * 500 + [[0.8, 0.2]] * 500
    >>> learner = Exp3PlusPlus(2, random_state=0).fit(losses)
    >>> bool(learner.dynamic_regret_ < 500), learner.predict()
    (True, 0)
    """

    _kind: ClassVar[int] = EXP3XX
    _n_vectors: ClassVar[int] = 2
    _parameter_constraints: ClassVar[dict] = {
        **CONSTRAINTS,
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "beta": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        n_arms: int,
        alpha: float = 3.0,
        beta: float = 256.0,
        mode: str = "loss",
        loss_range: tuple[float, float] = (0, 1),
        clip: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_arms = n_arms
        self.alpha = alpha
        self.beta = beta
        self.mode = mode
        self.loss_range = loss_range
        self.clip = clip
        self.random_state = random_state

    def _params(self) -> Array:
        return constants(None, None, self.alpha, self.beta)
