"""Learners of FTRL+ at one table: self-play, and play against anyone."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch

from .contraction import contract_payoffs
from .game import NormalFormGame, as_game
from .learner import FTRLPlusLearner
from .profiles import check_strategies

__all__ = ["play_against", "self_play"]


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
