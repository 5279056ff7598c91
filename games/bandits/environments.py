"""Worlds that hand out losses fixed or drawn in advance, and what all worlds have in common.

An environment is a value: it holds no learner's run, with one exception, the table that the latest
`fit` against an adversary produced (`losses_`).
"""

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .regret import check_table, count_switches

__all__ = [
    "BanditEnvironment",
    "ObliviousEnv",
    "PiecewiseEnv",
    "StochasticSwitchingEnv",
]

Array = np.ndarray


class BanditEnvironment:
    """What all environments have: `n_arms`, `horizon`, `is_adaptive` and `is_random`."""

    n_arms: int
    horizon: int
    #: Whether losses depend on the arms played.
    is_adaptive = False
    #: Whether `realise` gives another table for another seed.
    is_random = False
    _table: Array | None = None

    def realise(self, random_state: Any = None) -> Array:
        """The losses of one run, of shape (horizon, n_arms)."""
        raise NotImplementedError

    @property
    def losses_(self) -> Array:
        if self._table is None:
            raise AttributeError(
                f"{type(self).__name__} has no losses_ before a learner's fit: they depend on it"
            )
        return self._table

    @property
    def n_switches_(self) -> int:
        return count_switches(self.losses_)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_arms} arms, {self.horizon} rounds)"


def frozen(table: Array) -> Array:
    """A read-only copy."""
    table = table.copy()
    table.setflags(write=False)
    return table


class ObliviousEnv(BanditEnvironment):
    """Losses that are fixed in advance.

    Parameters
    ----------
    losses : array-like of shape (n_rounds, n_arms)
        Loss of each arm in each round (rewards, for learners with ``mode="reward"``).

    Attributes
    ----------
    n_arms, horizon : int
        Shape of the table.
    losses_ : ndarray of shape (n_rounds, n_arms)
        The table, read-only.
    n_switches_ : int
        Number of segments S in which no loss changes.

    Examples
    --------
    >>> from equipoise.games import ObliviousEnv
    >>> ObliviousEnv([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]).n_switches_
    2
    """

    def __init__(self, losses: ArrayLike) -> None:
        self._table = frozen(check_table(losses))
        self.horizon, self.n_arms = self._table.shape

    def realise(self, random_state: Any = None) -> Array:
        return self.losses_


class PiecewiseEnv(ObliviousEnv):
    """Losses that stand still, jump, and stand still again.

    Parameters
    ----------
    levels : array-like of shape (n_segments, n_arms)
        Loss of each arm in each segment.
    lengths : array-like of int of shape (n_segments,)
        Rounds of each segment, at least 1.

    Attributes
    ----------
    n_arms, horizon : int
        Number of arms, and sum of the lengths.
    losses_ : ndarray of shape (horizon, n_arms)
        The table, read-only.
    n_switches_ : int
        Number of segments S in which no loss changes: equal neighbours count as one.

    Examples
    --------
    >>> from equipoise.games import PiecewiseEnv
    >>> env = PiecewiseEnv([[0.2, 0.8], [0.9, 0.1]], lengths=[100, 50])
    >>> env.horizon, env.n_switches_
    (150, 2)
    """

    def __init__(self, levels: ArrayLike, lengths: Sequence[int]) -> None:
        table = check_table(levels, "levels")
        super().__init__(np.repeat(table, check_lengths(lengths, len(table)), axis=0))


def check_lengths(lengths: Any, n_segments: int) -> Array:
    """Lengths of the segments as int64."""
    found = np.asarray(lengths)
    if (
        found.shape != (n_segments,)
        or not np.issubdtype(found.dtype, np.integer)
        or found.min() < 1
    ):
        raise ValueError(f"lengths={lengths!r}; allowed: {n_segments} positive integers, one a row")
    return found.astype(np.int64)


class StochasticSwitchingEnv(BanditEnvironment):
    """Noisy losses whose means jump; each run draws its own table, common to all learners.

    Parameters
    ----------
    means : array-like of shape (n_segments, n_arms)
        Mean loss of each arm in each segment, in [0, 1].
    lengths : array-like of int of shape (n_segments,)
        Rounds of each segment.
    dist : {"bernoulli", "beta", "gaussian"}, default="bernoulli"
        Law of the losses: 0 or 1; Beta with `concentration`; normal with `scale`, clipped to
        [0, 1].
    concentration : float, default=10.0
        Sum of the Beta parameters.
    scale : float, default=0.1
        Standard deviation of the normal noise before clipping.
    random_state : int, default=0
        Seed of the table that `losses_` and `fit` show; `simulate` draws one a run.

    Attributes
    ----------
    n_arms, horizon : int
        Number of arms, and sum of the lengths.
    losses_ : ndarray of shape (horizon, n_arms)
        The table of `random_state`.
    n_switches_ : int
        Number of segments of the means: noise doesn't count.

    Examples
    --------
    >>> from equipoise.games import StochasticSwitchingEnv
    >>> env = StochasticSwitchingEnv([[0.4, 0.5], [0.6, 0.5]], lengths=[500, 500])
    >>> env.losses_.shape, env.n_switches_
    ((1000, 2), 2)
    """

    is_random = True

    def __init__(
        self,
        means: ArrayLike,
        lengths: Sequence[int],
        dist: str = "bernoulli",
        concentration: float = 10.0,
        scale: float = 0.1,
        random_state: int = 0,
    ) -> None:
        levels = check_table(means, "means")
        if levels.min() < 0 or levels.max() > 1:
            raise ValueError(f"means must lie in [0, 1], got {levels.min()} to {levels.max()}")
        if dist not in ("bernoulli", "beta", "gaussian"):
            raise ValueError(f"dist={dist!r}; allowed: 'bernoulli', 'beta', 'gaussian'")
        for name, value in (("concentration", concentration), ("scale", scale)):
            if not isinstance(value, Real) or not 0 < float(value) < np.inf:
                raise ValueError(f"{name}={value!r}; allowed: a positive number")
        self.means = frozen(levels)
        self.lengths = frozen(check_lengths(lengths, len(levels)))
        self.dist = dist
        self.concentration = float(concentration)
        self.scale = float(scale)
        self.random_state = random_state
        self.horizon, self.n_arms = int(self.lengths.sum()), levels.shape[1]

    def realise(self, random_state: Any = None) -> Array:
        """Draw the losses of one run.

        Parameters
        ----------
        random_state : int or None, default=None
            Seed; None takes the environment's own.

        Returns
        -------
        ndarray of shape (horizon, n_arms)
            Losses in [0, 1].
        """
        rng = np.random.default_rng(self.random_state if random_state is None else random_state)
        mean = np.repeat(self.means, self.lengths, axis=0)
        if self.dist == "bernoulli":
            return (rng.random(mean.shape) < mean).astype(float)
        if self.dist == "beta":
            a, b = self.concentration * mean, self.concentration * (1 - mean)
            inner = (a > 0) & (b > 0)  # a mean of 0 or 1 leaves no room for noise
            drawn = rng.beta(np.where(inner, a, 1.0), np.where(inner, b, 1.0))
            return np.where(inner, drawn, mean)
        return np.clip(mean + self.scale * rng.standard_normal(mean.shape), 0.0, 1.0)

    @property
    def losses_(self) -> Array:
        return self.realise()

    @property
    def n_switches_(self) -> int:
        return count_switches(self.means)
