"""Logged choices, of which only the chosen arm's loss is known: replay and value of a law.

A log holds arms, losses and the probabilities (propensities) with which its logger chose. Rejection
sampling replays it to a learner: an event counts if the learner draws the same arm, thinned so that
every arm counts at the logger's least probability; what counts is a true run of the learner (L. Li
et al., 2011). A fixed law needs no replay: importance weights estimate its value from all events.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import Bunch, check_random_state

from .environments import BanditEnvironment, frozen
from .regret import check_arms, check_table

__all__ = ["ReplayEnv"]

Array = np.ndarray


def mean_interval(values: Array) -> tuple[float, float, float]:
    """Mean, and ends of its normal 95 % interval; infinite ends for a single value."""
    mean = float(values.mean())
    if len(values) < 2:
        return mean, -np.inf, np.inf
    half = float(1.96 * values.std(ddof=1) / np.sqrt(len(values)))
    return mean, mean - half, mean + half


class ReplayEnv(BanditEnvironment):
    """A log of choices, to be replayed to learners.

    Parameters
    ----------
    log : array-like of shape (n_rounds, n_arms), or tuple of three array-likes
        All arms' losses, as for `ObliviousEnv`; or (arms, losses, propensities), each of shape
        (n_rounds,): what was chosen, what it lost, how probable the choice was.
    n_arms : int, optional
        Number of arms of a triple; None takes the largest logged arm + 1.

    Attributes
    ----------
    n_arms, horizon : int
        Number of arms, and of logged rounds.
    losses_ : ndarray of shape (n_rounds, n_arms)
        The table; only where all losses are known.
    n_switches_ : int
        Segments of the table; only where all losses are known.

    References
    ----------
    .. [1] L. Li, W. Chu, J. Langford, X. Wang, "Unbiased offline evaluation of contextual-bandit-
       based news article recommendation algorithms", 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games import ReplayEnv, TsallisINF
    >>> rng = np.random.RandomState(0)
    >>> arms = rng.randint(2, size=4000)
    >>> losses = (rng.uniform(size=4000) < np.where(arms == 0, 0.2, 0.6)).astype(float)
    >>> env = ReplayEnv((arms, losses, np.full(4000, 0.5)))
    >>> bool(0.15 < env.value([1.0, 0.0]).mean < 0.25)
    True
    >>> found = env.replay(TsallisINF(2, random_state=0))
    >>> bool(found.mean < 0.35), found.learner.predict()
    (True, 0)
    """

    def __init__(self, log: Any, n_arms: int | None = None) -> None:
        if not (isinstance(log, tuple) and len(log) == 3):
            if n_arms is not None:
                raise ValueError(f"n_arms={n_arms} is for a triple; a table has its own")
            self._table = frozen(check_table(log, "log"))
            self.horizon, self.n_arms = self._table.shape
            self.logged = None
            return
        losses, propensities = (np.asarray(part, dtype=float) for part in log[1:])
        self.horizon = len(losses)
        if losses.ndim != 1 or propensities.shape != losses.shape or not self.horizon:
            raise ValueError("log: arms, losses and propensities must have one length, at least 1")
        played = np.asarray(log[0])
        self.n_arms = int(played.max()) + 1 if n_arms is None else int(n_arms)
        played = check_arms(played, self.horizon, self.n_arms)
        if not np.isfinite(losses).all():
            raise ValueError("log: losses must be finite")
        if not ((propensities > 0) & (propensities <= 1)).all():
            raise ValueError("log: propensities must be above 0 and at most 1")
        self.logged = (frozen(played), frozen(losses), frozen(propensities))

    def realise(self, random_state: Any = None) -> Array:
        if self._table is None:
            raise ValueError(
                "this log knows only the chosen arm's loss: use env.replay(learner) instead of fit"
            )
        return self._table

    def _triple(self) -> tuple[Array, Array, Array]:
        if self.logged is None:
            raise ValueError("this log is a table of all losses: use learner.fit(env)")
        return self.logged

    def replay(self, learner: Any, random_state: Any = 0) -> Bunch:
        """Let a copy of a learner go through the log; events it would have chosen too count.

        Parameters
        ----------
        learner : learner
            Stays as it is; its copy starts afresh.
        random_state : int, RandomState or None, default=0
            Seed of the thinning.

        Returns
        -------
        Bunch
            "mean" loss of the events that count (in the log's units, rewards stay rewards), "low"
            and "high" of its 95 % interval, "n_events", "arms" and "losses" of these, "learner".

        Raises
        ------
        ValueError
            If the numbers of arms differ, or no event counts.
        """
        arms, losses, propensities = self._triple()
        if learner.n_arms != self.n_arms:
            raise ValueError(f"learner has {learner.n_arms} arms, and the log {self.n_arms}")
        player = clone(learner)
        keep = propensities.min() / propensities
        # A generator of another kind: the log may have been drawn from the same seed.
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        thinned = rng.random(self.horizon) < keep
        events = []
        for t in range(self.horizon):
            if player.select_arm() == arms[t] and thinned[t]:
                player.update(int(arms[t]), float(losses[t]))
                events.append(t)
        if not events:
            raise ValueError("no event of the log counts: the learner never drew a logged arm")
        mean, low, high = mean_interval(losses[events])
        return Bunch(
            mean=mean,
            low=low,
            high=high,
            n_events=len(events),
            arms=arms[events],
            losses=losses[events],
            learner=player,
        )

    def value(self, probabilities: ArrayLike, normalize: bool = True) -> Bunch:
        """Estimate what a fixed law would have lost in the mean, by importance weights.

        Parameters
        ----------
        probabilities : array-like of shape (n_arms,)
            The law, for example `probabilities_` of a learner.
        normalize : bool, default=True
            Whether weights are divided by their mean: a little bias, less variance.

        Returns
        -------
        Bunch
            "mean", "low" and "high" of its 95 % interval, "effective_n", the number of events that
            the weights are worth.
        """
        arms, losses, propensities = self._triple()
        p = np.asarray(probabilities, dtype=float)
        if p.shape != (self.n_arms,) or p.min() < 0 or abs(p.sum() - 1) > 1e-6:
            raise ValueError(f"probabilities must be {self.n_arms} probabilities that sum to 1")
        weights = p[arms] / propensities
        if not weights.any():
            raise ValueError("probabilities: the log never chose an arm that this law plays")
        if normalize:
            weights = weights / weights.mean()
            centre = float((weights * losses).mean())
            _, low, high = mean_interval(weights * (losses - centre))
            low, high = centre + low, centre + high
        else:
            centre, low, high = mean_interval(weights * losses)
        effective = float(weights.sum() ** 2 / np.square(weights).sum())
        return Bunch(mean=centre, low=low, high=high, effective_n=effective)
