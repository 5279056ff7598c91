"""Worlds whose losses are made against the learner: they see the arms it played.

The hiding adversary separates what is possible here from what is possible against losses fixed in
advance: whoever looks for the hidden arm pays for the search and never earns it back.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .environments import BanditEnvironment
from .kernels import hide_levels
from .regret import check_segments
from .streams import stream_of

__all__ = ["AdaptiveHideEnv", "CallableAdversary"]

Array = np.ndarray


class AdaptiveHideEnv(BanditEnvironment):
    """An adversary who hides a good arm, and takes it away the round after it is found.

    Arm 0 keeps its loss. At the start of each of ``n_switches // 2`` blocks one other arm, drawn at
    random, drops from `high` to `low`; it goes back the round after it is played. A learner who
    looks for it never earns what the search costs.

    Parameters
    ----------
    n_arms : int
        Number of arms, at least 2.
    horizon : int
        Number of rounds.
    n_switches : int
        Most segments S that can arise, at least 2.
    fixed, high, low : float, default=0.5, 0.75, 0.25
        Loss of arm 0, of the others, and of the one that dropped.
    random_state : int or None, default=0
        Seed of the arms that drop, for `fit`; `simulate` draws one a run.

    Attributes
    ----------
    losses_ : ndarray of shape (horizon, n_arms)
        Losses of the latest `fit` against this adversary; set by it.
    n_switches_ : int
        Segments that arose in that run.

    Examples
    --------
    >>> from equipoise.games import AdaptiveHideEnv, StaticDynamicBandit
    >>> env = AdaptiveHideEnv(n_arms=4, horizon=2000, n_switches=8)
    >>> learner = StaticDynamicBandit(4, horizon=2000, random_state=0).fit(env)
    >>> env.losses_.shape, env.n_switches_ <= 8
    ((2000, 4), True)
    """

    is_adaptive = True
    is_random = True

    def __init__(
        self,
        n_arms: int,
        horizon: int,
        n_switches: int,
        fixed: float = 0.5,
        high: float = 0.75,
        low: float = 0.25,
        random_state: int | None = 0,
    ) -> None:
        if check_segments(n_arms, 2**15, "n_arms") < 2:
            raise ValueError(f"n_arms={n_arms}; allowed: at least 2, one fixed and one to hide")
        check_segments(horizon, 2**62, "horizon")
        if check_segments(n_switches, 2**62, "n_switches") < 2 or n_switches > horizon:
            raise ValueError(f"n_switches={n_switches}; allowed: 2 to horizon={horizon}")
        if not low < fixed < high:
            raise ValueError(f"allowed: low < fixed < high, got {low}, {fixed}, {high}")
        self.n_arms, self.horizon, self.n_switches = int(n_arms), int(horizon), int(n_switches)
        self.fixed, self.high, self.low = float(fixed), float(high), float(low)
        self.random_state = random_state
        n_blocks = self.n_switches // 2
        self.starts = np.linspace(0, self.horizon, n_blocks + 1).astype(np.int64)[:-1]

    def session(self, random_state: Any = None) -> "HideSession":
        """The adversary's side of one run, for learners in Python.

        Parameters
        ----------
        random_state : int or None
            Seed of the arms that drop.

        Returns
        -------
        HideSession
            Its `losses(t, arms)` gives the row of round t.
        """
        return HideSession(self, random_state)


class HideSession:
    """One run of the hiding adversary, round by round."""

    def __init__(self, env: AdaptiveHideEnv, random_state: Any) -> None:
        self.env, self.stream = env, stream_of(random_state)
        self.levels = np.array([env.fixed, env.high, env.low])
        self.row, self.block = np.empty(env.n_arms), 0

    def losses(self, t: int, arms: Array) -> Array:
        """Losses of round t, after the arms of the rounds before."""
        if t > 0 and self.row[arms[-1]] == self.env.low:
            self.row[arms[-1]] = self.env.high
        self.block = hide_levels(self.levels, self.row, t, self.env.starts, self.block, self.stream)
        return self.row.copy()


class CallableAdversary(BanditEnvironment):
    """An adversary given as a function, who may look at the arms played so far.

    Parameters
    ----------
    fn : callable
        ``fn(t, history)`` returns the losses of round t, of shape (n_arms,); `history` is the
        array of the t arms played before.
    n_arms : int
        Number of arms.
    horizon : int
        Number of rounds.

    Attributes
    ----------
    losses_ : ndarray of shape (horizon, n_arms)
        Losses of the latest `fit` against this adversary; set by it.
    n_switches_ : int
        Segments that arose in that run.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games import CallableAdversary, Exp3
    >>> def punish_repeats(t, history):
    ...     losses = np.full(3, 0.5)
    ...     if t:
    ...         losses[history[-1]] = 1.0
    ...     return losses
    >>> env = CallableAdversary(punish_repeats, n_arms=3, horizon=200)
    >>> learner = Exp3(3, horizon=200, random_state=0).fit(env)
    >>> bool(learner.dynamic_regret_ > 0)
    True
    """

    is_adaptive = True

    def __init__(self, fn: Callable[[int, Array], ArrayLike], n_arms: int, horizon: int) -> None:
        if not callable(fn):
            raise TypeError(f"fn must be callable as fn(t, history), got {type(fn).__name__}")
        self.fn = fn
        self.n_arms = check_segments(n_arms, 2**15, "n_arms")
        self.horizon = check_segments(horizon, 2**62, "horizon")

    def session(self, random_state: Any = None) -> "CallableAdversary":
        """The adversary's side of one run: the function has no memory but the history.

        Parameters
        ----------
        random_state : None
            Not used: the function draws for itself.

        Returns
        -------
        CallableAdversary
            The environment itself.
        """
        return self

    def losses(self, t: int, arms: Array) -> Array:
        """Losses of round t, checked."""
        history = arms.view()
        history.setflags(write=False)
        row = np.array(self.fn(t, history), dtype=float)
        if row.shape != (self.n_arms,):
            raise ValueError(
                f"fn returned shape {row.shape} in round {t}; allowed: ({self.n_arms},)"
            )
        return row
