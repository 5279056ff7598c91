"""Learners that follow the arm with the least known loss: track-and-explore, restarts."""

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from .dispatch import RESTART, SCALES, TRACK
from .last_losses import LastLossLearner
from .learner import CONSTRAINTS, HORIZON
from .memory import constants, new_memory
from .tracking_rules import EXPLORATION, restart_see, track_see

__all__ = ["RestartOnDetect", "TrackAndExplore"]

Array = np.ndarray


class TrackAndExplore(LastLossLearner):
    """Play the arm of least last seen loss, and explore now and then.

    For losses without noise its expected dynamic regret is at most eps T + S A / eps + S A: uniform
    draws cost eps T, the best arm of a segment is found after A / eps rounds in the mean, and a
    stale loss misleads once an arm and segment.

    Parameters
    ----------
    n_arms : int
        Number of arms A.
    horizon : int, optional
        Number of rounds T; None guesses 4 A, and doubles the guess whenever it is reached.
    n_switches : int, optional
        Number S of segments in which no loss changes; None takes 1.
    exploration : float, optional
        Probability eps of a uniform draw; None takes min(1, sqrt(S A / T)).
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
        1 + changes seen.
    arms_, losses_, propensities_ : ndarray of shape (T,)
        Arms, their losses, and the probabilities they were drawn with; only after `fit`.
    static_regret_, dynamic_regret_ : float
        Regrets of the run; only after `fit`.

    References
    ----------
    .. [1] J. Qian, C.-Y. Wei, "Achieving optimal static and dynamic regret simultaneously in
       bandits with deterministic losses", 2026.

    Examples
    --------
    >>> from equipoise.games import TrackAndExplore
    >>> losses = [[0.2, 0.8]] * 500 + [[0.8, 0.2]] * 500
    >>> learner = TrackAndExplore(2, horizon=1000, n_switches=2, random_state=0).fit(losses)
    >>> bool(learner.dynamic_regret_ < 500), learner.predict()
    (True, 1)
    """

    _kind: ClassVar[int] = TRACK
    _see = track_see
    _parameter_constraints: ClassVar[dict] = {
        **CONSTRAINTS,
        **HORIZON,
        "n_switches": [Interval(Integral, 1, None, closed="left"), None],
        "exploration": [Interval(Real, 0, 1, closed="both"), None],
    }

    def __init__(
        self,
        n_arms: int,
        horizon: int | None = None,
        n_switches: int | None = None,
        exploration: float | None = None,
        mode: str = "loss",
        loss_range: tuple[float, float] = (0, 1),
        clip: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_arms = n_arms
        self.horizon = horizon
        self.n_switches = n_switches
        self.exploration = exploration
        self.mode = mode
        self.loss_range = loss_range
        self.clip = clip
        self.random_state = random_state

    def _params(self) -> Array:
        return constants(self.horizon, self.n_switches, self.exploration)

    def _bounds(self, horizon: int, n_segments: int) -> dict[str, float]:
        eps = float(self._memory[EXPLORATION])
        if eps == 0 or (self.exploration is None and self.horizon is None):
            return {}
        jumps = n_segments * self.n_arms
        return {"dynamic": eps * horizon + jumps / eps + jumps}


class RestartOnDetect(LastLossLearner):
    """Play the best known arm, probe now and then, and start anew when something changed.

    Parameters
    ----------
    n_arms : int
        Number of arms A.
    horizon : int, optional
        Number of rounds T; None guesses 4 A, and doubles the guess whenever it is reached.
    detection : {"exact", "means"}, default="exact"
        What counts as a change: a loss other than the arm's last one; or, for noisy losses, a
        mean of the newest `window` samples that differs from the mean of those before by more than
        the sum of the radii sqrt(2 ln T / n).
    change_tol : float, default=0.0
        With "exact", changes up to this size don't count, in units of the range.
    window : int, optional
        With "means", number of newest samples; None takes 32 ln T, at which their radius is 1/4.
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
        1 + changes seen.
    arms_, losses_, propensities_ : ndarray of shape (T,)
        Arms, their losses, and the probabilities they were drawn with; only after `fit`.
    static_regret_, dynamic_regret_ : float
        Regrets of the run; only after `fit`.

    References
    ----------
    .. [1] P. Auer, P. Gajane, R. Ortner, "Adaptively tracking the best bandit arm with an unknown
       number of distribution changes", 2019.

    Examples
    --------
    >>> from equipoise.games import RestartOnDetect
    >>> losses = [[0.2, 0.8]] * 500 + [[0.8, 0.2]] * 500
    >>> learner = RestartOnDetect(2, horizon=1000, random_state=0).fit(losses)
    >>> bool(learner.dynamic_regret_ < 500), learner.predict()
    (True, 1)
    """

    _kind: ClassVar[int] = RESTART
    _see = restart_see
    _parameter_constraints: ClassVar[dict] = {
        **CONSTRAINTS,
        **HORIZON,
        "detection": [StrOptions({"exact", "means"})],
        "change_tol": [Interval(Real, 0, None, closed="left")],
        "window": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        n_arms: int,
        horizon: int | None = None,
        detection: str = "exact",
        change_tol: float = 0.0,
        window: int | None = None,
        mode: str = "loss",
        loss_range: tuple[float, float] = (0, 1),
        clip: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_arms = n_arms
        self.horizon = horizon
        self.detection = detection
        self.change_tol = change_tol
        self.window = window
        self.mode = mode
        self.loss_range = loss_range
        self.clip = clip
        self.random_state = random_state

    def _params(self) -> Array:
        return constants(
            self.horizon, None, self.detection == "means", self.change_tol, self._window()
        )

    def _check_more(self) -> None:
        if self.detection == "exact" and self.window is not None:
            raise ValueError(f"window={self.window} needs detection='means'")
        if self.detection == "means" and self.change_tol != 0:
            raise ValueError(f"change_tol={self.change_tol} needs detection='exact'")

    def _window(self) -> int:
        """Samples of the newer mean; an unknown horizon counts as a million rounds."""
        return self.window or int(np.ceil(32 * np.log(max(self.horizon or 10**6, 2))))

    def _new_memory(self, params: Array) -> Array:
        n_vectors, rings = (4, self.n_arms * self._window()) if params[2] else (1, 0)
        memory = new_memory(params, self.n_arms, n_vectors, rings, unseen=True)
        SCALES[self._kind](params, memory, self.n_arms)
        return memory
