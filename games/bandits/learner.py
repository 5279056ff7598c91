"""What all bandit learners share: the round, the forced history, the run, and the account of it."""

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from equipoise.explanation import Explanation

from .dispatch import SCALES, THOMPSON
from .environments import BanditEnvironment
from .kernels import choose, learn, probabilities, replay, tag_of
from .memory import HEAD, ROUND, new_memory
from .reporting import Curves, curves_of, explain_learner
from .runs import NO_SHARES, as_environment, run_adaptive, run_table, unit_table
from .streams import stream_of
from .units import Units, units_of

__all__ = ["CONSTRAINTS", "HORIZON", "BanditLearner"]

Array = np.ndarray

#: What the parameters that all learners share may be.
CONSTRAINTS: dict[str, list[Any]] = {
    "n_arms": [Interval(Integral, 1, 2**15 - 1, closed="both")],
    "mode": [StrOptions({"loss", "reward"})],
    "loss_range": ["array-like", tuple],
    "clip": ["boolean"],
    "random_state": ["random_state"],
}
HORIZON: dict[str, list[Any]] = {"horizon": [Interval(Integral, 1, None, closed="left"), None]}
#: What only `fit` sets.
RUN_ATTRIBUTES = (
    "arms_",
    "losses_",
    "propensities_",
    "static_regret_",
    "dynamic_regret_",
    "_curves",
)


class BanditLearner(BaseEstimator):
    """A learner whose steps are compiled; each kind says what its memory holds.

    A kind sets `_kind` (its number in `dispatch`), `_n_vectors` (vectors of the memory beyond
    counts and sums) and `_params` (what never changes in a run).
    """

    _kind: ClassVar[int]
    _n_vectors: ClassVar[int] = 1
    _keeps_last_losses: ClassVar[bool] = False

    def _params(self) -> Array:
        """Horizon and segments (0 where unknown), then the kind's own numbers."""
        raise NotImplementedError

    def _new_memory(self, params: Array) -> Array:
        memory = new_memory(params, self.n_arms, self._n_vectors, unseen=self._keeps_last_losses)
        if self._kind in SCALES:
            SCALES[self._kind](params, memory, self.n_arms)
        return memory

    def _check_more(self) -> None:
        """Refuse parameters that contradict each other."""

    def reset(self) -> Self:
        """Forget everything, and go back to the start of the random stream.

        Returns
        -------
        self
            Ready for the first round.
        """
        self._validate_params()
        horizon, segments = getattr(self, "horizon", None), getattr(self, "n_switches", None)
        if horizon is not None and segments is not None and segments > horizon:
            raise ValueError(
                f"n_switches={segments} segments don't fit into horizon={horizon} rounds"
            )
        self._check_more()
        units = units_of(self)
        params = self._params()
        memory = self._new_memory(params)
        stream = stream_of(getattr(self, "random_state", 0))
        self._units, self._constants, self._memory, self._stream = units, params, memory, stream
        self._law = np.empty(self.n_arms)
        self._tag = tag_of(self._kind)
        self._has_law = False
        for name in RUN_ATTRIBUTES:
            self.__dict__.pop(name, None)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_memory")

    def _machine(self) -> tuple[Any, Array, Array, Array, Array]:
        return self._tag, self._constants, self._memory, self._stream, self._law

    def _forget_law(self) -> None:
        self._has_law = False

    def select_arm(self) -> int:
        """Draw the arm to play.

        Returns
        -------
        int
            Between 0 and ``n_arms - 1``.
        """
        if not hasattr(self, "_memory"):
            self.reset()
        arm = choose(self._tag, self._constants, self._memory, self._stream, self._law)
        self._has_law = True
        return arm

    def _checked_loss(self, arm: int, loss: float) -> float:
        """The loss in [0, 1], of an arm that exists; a learner that hadn't begun begins."""
        if not hasattr(self, "_memory"):
            self.reset()
        if not isinstance(arm, int | np.integer):
            raise TypeError(f"arm must be an integer, got {arm!r}")
        if not 0 <= arm < self.n_arms:
            raise IndexError(f"arm={arm}; allowed: 0 to {self.n_arms - 1}")
        return self._units.one_to_unit(loss)

    def _checked_law(self, law: ArrayLike, arm: int) -> Array:
        p = np.array(law, dtype=float)
        if p.shape != (self.n_arms,) or not (p >= 0).all() or abs(p.sum() - 1) > 1e-6:
            raise ValueError(f"law={law!r:.80}; allowed: {self.n_arms} probabilities, of sum 1")
        if p[arm] == 0:
            raise ValueError(f"law: arm {arm} has probability 0, and was drawn")
        return p

    def update(
        self, arm: int, loss: float, weight: float = 1.0, law: ArrayLike | None = None
    ) -> None:
        """Take what the played arm lost (or earned), and learn.

        Parameters
        ----------
        arm : int
            The arm; it may be another than the drawn one.
        loss : float
            Its loss, or its reward with ``mode="reward"``.
        weight : float, default=1.0
            Importance factor of a master; multiplies the estimate of the loss, in learners that
            have one.
        law : array-like of shape (n_arms,), optional
            For a loss that comes late, after other arms were drawn: `probabilities_` as it was when
            this arm was drawn. None takes the law of the latest draw.

        Raises
        ------
        IndexError
            If there is no such arm.
        ValueError
            If the loss isn't finite, or is out of range without `clip`; if `law` isn't one, or
            gives the arm no probability.
        """
        unit = self._checked_loss(arm, loss)
        if not 0 < weight < np.inf:
            raise ValueError(f"weight={weight!r}; allowed: a positive number")
        tag, params, memory, _, latest = self._machine()
        p = latest if law is None else self._checked_law(law, arm)
        if not self._has_law:
            # Also where `law` is given: some kinds note in their memory what they learn by.
            probabilities(tag, params, memory, latest)
        learn(tag, params, memory, p, arm, unit, float(weight))
        self._has_law = False

    def partial_fit(self, arms: ArrayLike, losses: ArrayLike) -> Self:
        """Learn from a forced history, as if each arm had been drawn.

        Parameters
        ----------
        arms : int or array-like of int of shape (n_rounds,)
            The played arms.
        losses : float or array-like of shape (n_rounds,)
            Their losses, or rewards with ``mode="reward"``.

        Returns
        -------
        self
            After these rounds.

        Raises
        ------
        IndexError
            If an arm doesn't exist.
        ValueError
            If lengths differ, or a loss isn't finite or is out of range.
        """
        played, given = np.atleast_1d(np.asarray(arms)), np.atleast_1d(np.asarray(losses, float))
        if played.shape != given.shape or played.ndim != 1:
            raise ValueError(
                f"arms and losses must have one length, got shapes {played.shape}, {given.shape}"
            )
        if played.size and not np.issubdtype(played.dtype, np.integer):
            raise TypeError(f"arms must hold integers, got dtype {played.dtype}")
        if played.size and (played.min() < 0 or played.max() >= self.n_arms):
            outside = played[(played < 0) | (played >= self.n_arms)][0]
            raise IndexError(f"arms holds {outside}; allowed: 0 to {self.n_arms - 1}")
        units = units_of(self).to_unit(given)
        if not hasattr(self, "_memory"):
            self.reset()
        tag, params, memory, _, law = self._machine()
        replay(tag, params, memory, law, played.astype(np.int64), units)
        self._has_law = False
        return self

    def fit(self, env: BanditEnvironment | ArrayLike) -> Self:
        """Play a whole environment from a fresh start.

        Parameters
        ----------
        env : environment or array-like of shape (n_rounds, n_arms)
            Where to play; a table holds the losses (or rewards) of all arms.

        Returns
        -------
        self
            With `arms_`, `losses_`, `propensities_`, `static_regret_` and `dynamic_regret_`.

        Raises
        ------
        ValueError
            If the numbers of arms differ, or losses are out of range.
        """
        env = as_environment(env)
        if env.n_arms != self.n_arms:
            raise ValueError(f"env has {env.n_arms} arms, and n_arms={self.n_arms}")
        fresh = clone(self)
        units = units_of(fresh)
        marks = np.array([env.horizon])
        shares = NO_SHARES if self._kind == THOMPSON else np.empty(env.horizon)
        if env.is_adaptive:
            seed = getattr(env, "random_state", None)
            run = run_adaptive(fresh, env, units, marks, True, seed, shares)
            table, arms = run.table, run.arms
            env._table = units.from_unit(table)
        else:
            table = unit_table(env, units, None)
            _, arms = run_table(fresh, table, units, marks, True, shares)
        self._take_run(fresh, table, arms, shares, units)
        return self

    def _take_run(
        self, fresh: "BanditLearner", table: Array, arms: Array, shares: Array, units: Units
    ) -> None:
        played = table[np.arange(len(table)), arms]
        learned = {k: v for k, v in vars(fresh).items() if k not in self.get_params()}
        self.__dict__.update(learned)
        self.arms_ = arms
        if shares.size:
            self.propensities_ = shares
        self.losses_ = units.from_unit(played)
        self._curves: Curves = curves_of(table, arms, units.span)
        self.static_regret_ = float(self._curves.static[-1])
        self.dynamic_regret_ = float(self._curves.dynamic[-1])

    def predict(self) -> int:
        """Say which arm is most likely drawn next.

        Returns
        -------
        int
            The arm; the first of several.

        Raises
        ------
        NotFittedError
            Before the first round.
        """
        return int(np.argmax(self.probabilities_))

    @property
    def probabilities_(self) -> Array:
        check_is_fitted(self)
        tag, params, memory, _, _ = self._machine()
        p = np.empty(self.n_arms)
        probabilities(tag, params, memory, p)
        return p

    @property
    def t_(self) -> int:
        check_is_fitted(self)
        return int(self._memory[ROUND])

    def score(self, env: BanditEnvironment | ArrayLike) -> float:
        """Play a fresh run of an environment.

        Parameters
        ----------
        env : environment or array-like of shape (n_rounds, n_arms)
            Where to play.

        Returns
        -------
        float
            The mean reward, or minus the mean loss; this learner stays as it is.
        """
        given = float(np.mean(clone(self).fit(env).losses_))
        return given if self.mode == "reward" else -given

    def _vector(self, k: int) -> Array:
        check_is_fitted(self)
        return self._memory[HEAD + k * self.n_arms : HEAD + (k + 1) * self.n_arms].copy()

    def _bounds(self, horizon: int, n_segments: int) -> dict[str, float]:
        """Proved bounds of regrets, in losses between 0 and 1; kinds to values."""
        return {}

    def _what_is_bounded(self) -> str:
        """What of a regret stays below its bound."""
        return "its expectation is at most"

    def _remarks(self) -> list[str]:
        """Lines about the kind's own state."""
        return []

    def explain(self) -> Explanation:
        """Account for what was played: arms, regret, where it came from, and its bound.

        Returns
        -------
        Explanation
            A row an arm: rounds, share, mean loss, probability of the next draw and, after `fit`,
            the parts of both regrets that the rounds with this arm brought. `str()` sums it up;
            kinds of plot: "arms", and after `fit` "regret".

        Raises
        ------
        NotFittedError
            Before the first round.
        """
        check_is_fitted(self)
        return explain_learner(self)
