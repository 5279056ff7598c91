"""FTRL+ for one player, online: he sees his own payoff vectors and knows nothing of the game."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch, check_random_state
from sklearn.utils._param_validation import StrOptions, validate_parameter_constraints

from .contraction import contract_payoffs
from .ftrl_setup import RULE_CONSTRAINTS, SCHEDULES, check_steps, make_rule, start_strategies
from .game import NormalFormGame, as_game
from .profiles import check_strategies
from .rule import PlayerState, regret_bound

__all__ = ["FTRLPlusLearner", "play_against", "self_play"]


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
    random_state : int, RandomState or None, default=None
        For a random start.

    Attributes
    ----------
    n_rounds : int
        Rounds observed so far.
    regret : float
        What the best single action would have earned more.
    regret_bound : float
        A bound on the regret that holds against any opponent.

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
    """

    _constraints: dict = {
        **RULE_CONSTRAINTS,
        "init": [StrOptions({"uniform", "random"}), "array-like"],
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
        self._end_round()

    def _end_round(self) -> None:
        self._eta = self._state.step_size(self._rule)
        self._queried: np.ndarray | None = None
        self._played: np.ndarray | None = None
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
        return float(
            regret_bound(self._rule, s.y0, s.S, s.largest, s.spread, s.constant_step, self.n_rounds)
        )

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
            self._played = self._state.play(self._rule, self._eta, self._prediction)
        return self._played.copy()

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
        if self._played is None:
            self.act()
        self._state.absorb(self._rule, self._played, g, self._prediction)
        self.n_rounds += 1
        self._end_round()

    def __repr__(self) -> str:
        name = self._rule.regularizer.name
        return f"FTRLPlusLearner({self.n_actions} actions, {name}, {self.n_rounds} rounds)"


def joint_round(
    learners: Sequence[FTRLPlusLearner], payoffs: np.ndarray, shape: tuple[int, ...]
) -> tuple[list, list]:
    """Play one round between learners, and return strategies and payoff vectors."""
    if any(learner.needs_query for learner in learners):
        queried = contract_payoffs(payoffs, [learner.query() for learner in learners], shape)
        for learner, v in zip(learners, queried, strict=True):
            if learner.needs_query:
                learner.observe_query(v)
    x = [learner.act() for learner in learners]
    g = contract_payoffs(payoffs, x, shape)
    for learner, v in zip(learners, g, strict=True):
        learner.observe(v)
    return x, g


def self_play(
    learners: Sequence[FTRLPlusLearner], game: NormalFormGame | np.ndarray, n_rounds: int
) -> Bunch:
    """Let learners, which may all be different, play a game against each other.

    Parameters
    ----------
    learners : sequence of FTRLPlusLearner
        One for each player.
    game : NormalFormGame or ndarray
        The game.
    n_rounds : int
        Rounds to play.

    Returns
    -------
    Bunch
        "strategies" (list of (n_rounds, d_i)), "payoffs" (n_rounds, n), "regret" and "regret_bound"
        (n,) at the end.

    Examples
    --------
    >>> from equipoise.games import FTRLPlusLearner, NormalFormGame, self_play
    >>> pennies = NormalFormGame.from_bimatrix([[1, -1], [-1, 1]])
    >>> players = [FTRLPlusLearner(2, init=[0.7, 0.3]), FTRLPlusLearner(2, "euclidean")]
    >>> result = self_play(players, pennies, 500)
    >>> bool(pennies.nash_gap([x[-1] for x in result.strategies]) < 1e-6)
    True
    """
    game = as_game(game)
    if tuple(learner.n_actions for learner in learners) != game.shape:
        raise ValueError(
            f"learners must have {game.shape} actions, got "
            f"{tuple(learner.n_actions for learner in learners)}"
        )
    payoffs = game.payoffs.reshape(game.n_players, -1)
    strategies = [np.empty((n_rounds, d)) for d in game.shape]
    earned = np.empty((n_rounds, game.n_players))
    for t in range(n_rounds):
        x, g = joint_round(learners, payoffs, game.shape)
        for i, (x_i, g_i) in enumerate(zip(x, g, strict=True)):
            strategies[i][t] = x_i
            earned[t, i] = x_i @ g_i
    return Bunch(
        strategies=strategies,
        payoffs=earned,
        regret=np.array([learner.regret for learner in learners]),
        regret_bound=np.array([learner.regret_bound for learner in learners]),
    )


def play_against(
    learner: FTRLPlusLearner,
    opponent: Callable[[Bunch], ArrayLike] | FTRLPlusLearner,
    game: NormalFormGame | np.ndarray,
    n_rounds: int,
) -> Bunch:
    """Let a learner play as player 0 of a two-player game against anyone.

    Parameters
    ----------
    learner : FTRLPlusLearner
        Player 0.
    opponent : callable or FTRLPlusLearner
        Player 1. A callable takes a Bunch of "learner" and "opponent", the lists of both players'
        past strategies, and returns its strategy. A mirror-prox learner's query is answered with
        the callable's last strategy (the uniform one at first), so that nothing of the coming round
        is given away.
    game : NormalFormGame or ndarray
        A two-player game.
    n_rounds : int
        Rounds to play.

    Returns
    -------
    Bunch
        "strategies" (list of two (n_rounds, d_i)), "payoffs" (n_rounds,) of the learner, "regret"
        (n_rounds,) after each round and "regret_bound" at the end.

    Examples
    --------
    >>> from equipoise.games import FTRLPlusLearner, NormalFormGame, play_against
    >>> pennies = NormalFormGame.from_bimatrix([[1, -1], [-1, 1]])
    >>> def contrary(history):
    ...     heads = len(history.learner) > 0 and history.learner[-1][0] > 0.5
    ...     return [0.0, 1.0] if heads else [1.0, 0.0]
    >>> result = play_against(FTRLPlusLearner(2), contrary, pennies, 1000)
    >>> bool(result.regret[-1] < result.regret_bound)
    True
    """
    game = as_game(game)
    if game.n_players != 2:
        raise ValueError(f"play_against needs a game of two players, got {game.n_players}")
    if isinstance(opponent, FTRLPlusLearner):
        seats = (learner.n_actions, opponent.n_actions)
    else:
        seats = (learner.n_actions, game.shape[1])
    if seats != game.shape:
        raise ValueError(f"the players must have {game.shape} actions, got {seats}")
    payoffs = game.payoffs.reshape(2, -1)
    history = Bunch(learner=[], opponent=[])
    earned, regret = np.empty(n_rounds), np.empty(n_rounds)
    for t in range(n_rounds):
        if isinstance(opponent, FTRLPlusLearner):
            (mine, theirs), (v, _) = joint_round([learner, opponent], payoffs, game.shape)
        else:
            if learner.needs_query:
                last = history.opponent[-1] if t else np.full(game.shape[1], 1.0 / game.shape[1])
                learner.observe_query(game.payoffs[0] @ last)
            mine = learner.act()
            theirs = check_strategies([mine, opponent(history)], game.shape)[1]
            v = game.payoffs[0] @ theirs
            learner.observe(v)
        history.learner.append(mine)
        history.opponent.append(theirs)
        earned[t], regret[t] = mine @ v, learner.regret
    return Bunch(
        strategies=[np.array(history.learner), np.array(history.opponent)],
        payoffs=earned,
        regret=regret,
        regret_bound=learner.regret_bound,
    )
