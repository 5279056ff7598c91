"""FTRL+ for one player, online: he sees his own payoff vectors and knows nothing of the game.

With bandit feedback he sees no more than the payoff p of the action a that he drew from his
strategy x. What the others would have earned is estimated from the payoffs m last seen of each,

    g = m + (p - m_a) / x_a e_a,

whose expectation is the true payoff vector, and the rule learns from g. Weights 1 / x_a stay
bounded because a share gamma of the uniform strategy is mixed into play. With bounded payoffs the
expected S grows by at most a multiple of d^2 / gamma a round, so gamma = (d^2 / t)^(1/3) keeps the
expected regret O((d T)^(2/3)).
"""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import (
    Interval,
    StrOptions,
    validate_parameter_constraints,
)

from .ftrl_setup import RULE_CONSTRAINTS, SCHEDULES, check_steps, make_rule, start_strategies
from .game import NormalFormGame
from .rule import PlayerState, regret_bound

__all__ = ["FTRLPlusLearner"]


def estimated_payoffs(
    seen: np.ndarray, action: int, payoff: float, probability: float
) -> np.ndarray:
    """Return the estimate of a payoff vector of which one entry was seen.

    Parameters
    ----------
    seen : ndarray of shape (d,)
        A guess that doesn't depend on the action drawn: the payoffs last seen.
    action : int
        The action drawn.
    payoff : float
        Its payoff.
    probability : float
        That of having drawn it.

    Returns
    -------
    ndarray of shape (d,)
        Its mean over the draw is the true payoff vector.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games.normal_form.learner import estimated_payoffs
    >>> estimated_payoffs(np.array([1.0, 2.0]), action=1, payoff=3.0, probability=0.25)
    array([1., 6.])
    """
    g = seen.copy()
    g[action] += (payoff - seen[action]) / probability
    return g


class FTRLPlusLearner:
    """One player of FTRL+.

    In each round `act` gives the strategy to play and `observe` takes the payoff vector that came
    of it: what each action would have earned. With a mirror-prox share, `query` and `observe_query`
    come before `act`.

    Parameters
    ----------
    n_actions : int
        Number of actions d.
    regularizer : {"entropic", "euclidean", "tsallis", "log_barrier"}, default="entropic"
        The regulariser.
    step_size : {"adaptive", "scale_free"} or float, default="adaptive"
        As for `FTRLPlus`; "theory" isn't allowed, since it needs the whole game.
    extrapolation : {"optimistic", "mirror-prox", "none"} or float in [0, 1], default="optimistic"
        As for `FTRLPlus`.
    tau : float, default=1.0
        Of the adaptive step.
    tsallis_power : float, default=0.5
        Power of the Tsallis entropy.
    init : {"uniform", "random"} or array-like of shape (d,), default="uniform"
        First base state.
    exploration : float, optional
        Share of the uniform strategy that is mixed into play once `observe_bandit` was used,
        positive and at most 1; None is min(1/2, (d^2 / t)^(1/3)) in round t. It changes nothing for
        a learner who sees whole payoff vectors.
    random_state : int, RandomState or None, default=None
        For a random start.

    Attributes
    ----------
    n_rounds : int
        Rounds observed so far.
    regret : float
        What the best single action would have earned more. With bandit feedback it is that of the
        estimated payoffs, whose expectation is true for each action.
    regret_bound : float
        A bound on `regret` that holds against any opponent.

    References
    ----------
    .. [1] Y.-G. Hsieh, K. Antonakopoulos, P. Mertikopoulos, "Adaptive learning in continuous
       games", 2021.

    Examples
    --------
    >>> from equipoise.games import FTRLPlusLearner
    >>> learner = FTRLPlusLearner(3)
    >>> for _ in range(100):
    ...     strategy = learner.act()
    ...     learner.observe([1.0, 0.0, 0.0])
    >>> bool(learner.act()[0] > 0.99), learner.regret < learner.regret_bound
    (True, True)

    A player who sees only what the action he drew has earned:

    >>> bandit = FTRLPlusLearner(2)
    >>> for t in range(2000):
    ...     action = bandit.sample(t)
    ...     bandit.observe_bandit(action, payoff=1.0 if action == 1 else 0.0)
    >>> bool(bandit.act()[1] > 0.9)
    True
    """

    _constraints: dict = {
        **RULE_CONSTRAINTS,
        "init": [StrOptions({"uniform", "random"}), "array-like"],
        "exploration": [Interval(Real, 0, 1, closed="right"), None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_actions: int,
        regularizer: str = "entropic",
        *,
        step_size: Any = "adaptive",
        extrapolation: str | float = "optimistic",
        tau: float = 1.0,
        tsallis_power: float = 0.5,
        init: Any = "uniform",
        exploration: float | None = None,
        random_state: Any = None,
    ) -> None:
        if not isinstance(n_actions, int | np.integer) or n_actions < 1:
            raise ValueError(f"n_actions must be a positive integer, got {n_actions!r}")
        parameters = {
            "regularizer": regularizer,
            "extrapolation": extrapolation,
            "tau": tau,
            "tsallis_power": tsallis_power,
            "init": init,
            "exploration": exploration,
            "random_state": random_state,
        }
        validate_parameter_constraints(self._constraints, parameters, type(self).__name__)
        if isinstance(step_size, str) and step_size not in SCHEDULES:
            raise ValueError(
                f"step_size={step_size!r} is not known to one player; allowed: "
                f"{sorted(SCHEDULES)} or a positive number"
            )
        self.n_actions = int(n_actions)
        self._rule = make_rule(regularizer, step_size, extrapolation, tau, tsallis_power)
        self._exploration = exploration
        self._step = 1.0 if isinstance(step_size, str) else float(check_steps(step_size, 1)[0])
        seat = NormalFormGame(np.zeros((1, self.n_actions)))
        start = init if isinstance(init, str) else [init]
        rng = check_random_state(random_state)
        self._y0 = self._rule.regularizer.scores(
            start_strategies(start, seat, self._rule.regularizer, rng)[0]
        )
        self.reset()

    def reset(self) -> None:
        """Forget everything, and go back to the start."""
        self._state = PlayerState.start(self._y0.copy(), self._step)
        self.n_rounds = 0
        self._explores = False
        self._explored = 0.0  # what mixing the uniform strategy into play has cost
        self._end_round()

    def _end_round(self) -> None:
        self._eta = self._state.step_size(self._rule)
        self._queried: np.ndarray | None = None
        self._played: Any = None
        self._chosen: Any = None
        self._prediction: np.ndarray | None = None

    @property
    def needs_query(self) -> bool:
        """Whether `act` waits for a payoff vector at the base state (mirror-prox)."""
        return self._rule.queries and self._queried is None

    @property
    def regret(self) -> float:
        return float(self._state.Y.max())

    @property
    def regret_bound(self) -> float:
        s = self._state
        bound = regret_bound(
            self._rule, s.y0, s.S, s.largest, s.spread, s.constant_step, self.n_rounds
        )
        return float(bound) + self._explored

    def _payoffs(self, payoff_vector: ArrayLike) -> np.ndarray:
        g = np.array(payoff_vector, dtype=float)
        if g.shape != (self.n_actions,) or not np.isfinite(g).all():
            raise ValueError(
                f"payoff_vector must hold {self.n_actions} finite numbers, got "
                f"{np.asarray(payoff_vector).tolist()}"
            )
        return g

    def query(self) -> np.ndarray:
        """Return the base state, at which mirror-prox asks for a payoff vector.

        Returns
        -------
        ndarray of shape (d,)
            A strategy that isn't played.
        """
        return self._state.base(self._rule, self._eta)

    def observe_query(self, payoff_vector: ArrayLike) -> None:
        """Take the payoff vector at the base state, before `act`.

        Parameters
        ----------
        payoff_vector : array-like of shape (d,)
            Finite numbers.
        """
        if not self._rule.queries:
            raise RuntimeError(
                "this learner makes no queries: its extrapolation has no mirror-prox share"
            )
        if self._played is not None:
            raise RuntimeError("observe_query comes before act in a round")
        self._queried = self._payoffs(payoff_vector)

    def act(self) -> np.ndarray:
        """Return the strategy to play in this round; the same one until `observe`.

        Returns
        -------
        ndarray of shape (d,)
            A probability vector.
        """
        if self._played is None:
            if self.needs_query:
                raise RuntimeError(
                    "mirror-prox needs observe_query (a payoff vector at query()) before act"
                )
            self._prediction = self._state.prediction(self._rule, self._queried)
            self._chosen = self._played = self._state.play(self._rule, self._eta, self._prediction)
            if self._explores:
                share = self._exploration_share()
                self._played = (1.0 - share) * self._chosen + share / self.n_actions
        return self._played.copy()

    def _exploration_share(self) -> float:
        if self._exploration is not None:
            return float(self._exploration)
        return min(0.5, (self.n_actions**2 / (self.n_rounds + 1)) ** (1.0 / 3.0))

    def sample(self, rng: Any = None) -> int:
        """Draw an action from this round's strategy.

        Parameters
        ----------
        rng : int, RandomState or None
            Source of randomness.

        Returns
        -------
        int
            The action.
        """
        return int(check_random_state(rng).choice(self.n_actions, p=self.act()))

    def observe(self, payoff_vector: ArrayLike) -> None:
        """Take what each action would have earned in this round, and learn.

        Parameters
        ----------
        payoff_vector : array-like of shape (d,)
            Finite numbers.
        """
        g = self._payoffs(payoff_vector)
        self.act()
        self._learn(g)

    def observe_bandit(self, action: int, payoff: float) -> None:
        """Take what the action drawn in this round has earned, and learn from that alone.

        The first payoff sets the level that others are compared with. From then on the strategy of
        `act` holds a share of the uniform one: see `exploration`.

        Parameters
        ----------
        action : int
            An action drawn from the strategy of `act`, as `sample` does.
        payoff : float
            What it has earned; finite.

        Raises
        ------
        ValueError
            If the action isn't one that could be drawn, or the payoff isn't finite.
        RuntimeError
            If the learner's extrapolation asks for payoff vectors at its base state.
        """
        if self._rule.queries:
            raise RuntimeError(
                "bandit feedback can't answer a mirror-prox query; use extrapolation='optimistic' "
                "or 'none'"
            )
        x = self.act()
        if not isinstance(action, int | np.integer) or not 0 <= action < self.n_actions:
            raise ValueError(
                f"action must be an integer from 0 to {self.n_actions - 1}, got {action!r}"
            )
        if not isinstance(payoff, Real) or not np.isfinite(payoff):
            raise ValueError(f"payoff must be a finite number, got {payoff!r}")
        if x[action] <= 0.0:
            raise ValueError(f"action {action} has probability 0 in this round's strategy")
        seen = self._state.last if self.n_rounds else np.full(self.n_actions, float(payoff))
        self._learn(estimated_payoffs(seen, action, float(payoff), x[action]))
        self._state.last = seen.copy()
        self._state.last[action] = payoff
        self._explores = True

    def _learn(self, g: np.ndarray) -> None:
        self._explored += float(g @ (self._chosen - self._played))
        self._state.absorb(self._rule, self._played, g, self._prediction)
        self.n_rounds += 1
        self._end_round()

    def __repr__(self) -> str:
        name = self._rule.regularizer.name
        return f"FTRLPlusLearner({self.n_actions} actions, {name}, {self.n_rounds} rounds)"
