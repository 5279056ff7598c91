"""From the parameters of FTRL+ to its rule, its step sizes and the start of play."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from .game import NormalFormGame, as_game
from .harmonic import HarmonicGame
from .profiles import check_strategies
from .regularizers import REGULARIZERS, Regularizer
from .rule import ADAPTIVE, CONSTANT, SCALE_FREE, Rule
from .step_sizes import theory_steps

__all__ = [
    "RULE_CONSTRAINTS",
    "SCHEDULES",
    "check_games",
    "check_steps",
    "constant_steps",
    "known_measure",
    "make_rule",
    "start_strategies",
]

EXTRAPOLATIONS = {"optimistic": 0.0, "mirror-prox": 1.0, "none": None}
SCHEDULES = {"adaptive": ADAPTIVE, "scale_free": SCALE_FREE}

#: Constraints shared with the one-player learner.
RULE_CONSTRAINTS: dict[str, Any] = {
    "regularizer": [StrOptions(set(REGULARIZERS))],
    "extrapolation": [StrOptions(set(EXTRAPOLATIONS)), Interval(Real, 0, 1, closed="both")],
    "tau": [Interval(Real, 0, None, closed="neither")],
    "tsallis_power": [Interval(Real, 0, 1, closed="neither")],
}


def make_rule(
    regularizer: str, step_size: Any, extrapolation: str | float, tau: float, tsallis_power: float
) -> Rule:
    """Return the rule that the parameters of `FTRLPlus` describe."""
    lam = EXTRAPOLATIONS[extrapolation] if isinstance(extrapolation, str) else float(extrapolation)
    schedule = SCHEDULES.get(step_size, CONSTANT) if isinstance(step_size, str) else CONSTANT
    return Rule(Regularizer(regularizer, float(tsallis_power)), schedule, float(tau), lam)


def check_steps(step_size: Any, n_players: int) -> np.ndarray:
    """Return constant step sizes (n,) from a number or one for each player."""
    steps = np.asarray(step_size, dtype=float)
    if steps.shape not in ((), (n_players,)) or not (
        np.isfinite(steps).all() and (steps > 0).all()
    ):
        raise ValueError(
            "step_size must be 'adaptive', 'scale_free', 'theory', a positive number or one for "
            "each of the "
            f"{n_players} players, got {step_size!r}"
        )
    return np.broadcast_to(steps, (n_players,))


def constant_steps(step_size: Any, games: Sequence[NormalFormGame], rule: Rule) -> np.ndarray:
    """Return the constant steps (n,) or (B, n) of a batch; ones where they adapt."""
    n = games[0].n_players
    if isinstance(step_size, str) and step_size == "theory":
        masses = [[mu.sum() for mu in known_measure(g, "step_size='theory'")] for g in games]
        pairs = zip(games, masses, strict=True)
        return np.stack([theory_steps(g, np.array(m), rule.regularizer) for g, m in pairs])
    return check_steps(step_size, n) if rule.schedule == CONSTANT else np.ones(n)


def check_games(game: Any) -> list[NormalFormGame]:
    """Return the games to play, all of one shape; a single one makes a list of one."""
    if not isinstance(game, list | tuple):
        return [as_game(game)]
    games = [as_game(g) for g in game]
    if not games:
        raise ValueError("game is an empty list; at least one game is needed")
    shapes = sorted({g.shape for g in games})
    if len(shapes) > 1:
        raise ValueError(f"the games of a batch must have one shape, got {shapes}")
    return games


def known_measure(game: NormalFormGame, wanted_by: str) -> list[np.ndarray]:
    """Return a game's harmonic measure, or say who needs one."""
    if isinstance(game, HarmonicGame):
        return game.measure
    found = game.find_harmonic_measure()
    if not found.is_harmonic:
        raise ValueError(
            f"{wanted_by} needs a game that is harmonic for some measure; this one is not (least "
            "relative residual "
            f"{found.residual:.3g})"
        )
    return found.measure


def start_strategies(
    init: Any, game: NormalFormGame, regularizer: Regularizer, rng: np.random.RandomState
) -> list[np.ndarray]:
    """Return where play starts.

    Parameters
    ----------
    init : {"uniform", "center", "random"} or list of array-like of shape (d_i,)
        "random" is the mean of a Dirichlet(1) draw and the uniform strategy.
    game : NormalFormGame
        The game.
    regularizer : Regularizer
        Says whether the boundary is allowed.
    rng : RandomState
        For the random start.

    Returns
    -------
    list of ndarray
        A mixed profile.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games import NormalFormGame
    >>> from equipoise.games.normal_form.ftrl_setup import start_strategies
    >>> from equipoise.games.normal_form.regularizers import Regularizer
    >>> game = NormalFormGame(np.zeros((2, 2, 2)))
    >>> start_strategies("uniform", game, Regularizer("entropic"), np.random.RandomState(0))
    [array([0.5, 0.5]), array([0.5, 0.5])]
    """
    if isinstance(init, str):
        if init == "center":
            return [mu / mu.sum() for mu in known_measure(game, "init='center'")]
        if init == "random":
            return [(rng.dirichlet(np.ones(d)) + 1.0 / d) / 2.0 for d in game.shape]
        return [np.full(d, 1.0 / d) for d in game.shape]
    x1 = check_strategies(init, game.shape)
    for i, x_i in enumerate(x1):
        if x_i.ndim != 1:
            raise ValueError(f"init[{i}] must have shape ({game.shape[i]},), got {x_i.shape}")
        if regularizer.needs_interior and (x_i <= 0).any():
            raise ValueError(
                f"init[{i}] must have only positive entries for the {regularizer.name} "
                f"regularizer, got {x_i.tolist()}"
            )
    return [np.maximum(x_i, 0.0) / np.maximum(x_i, 0.0).sum() for x_i in x1]
