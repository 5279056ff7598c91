"""Mixed equilibria of three or more stakeholders, as far as a search finds them.

FTRL+ from random starts finds some; pygambit, where it is installed, solves the polynomial system
of every support of a small game. What is found is an equilibrium by its gap; others may exist.
"""

import warnings
from functools import reduce
from importlib.util import find_spec

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..normal_form import FTRLPlus, NormalFormGame
from .deviations import pure_equilibria
from .programs import payoff_range

__all__ = ["product_policy", "searched_equilibria"]

Array = np.ndarray
STARTS = 20
#: Above so many profiles the supports are too many to solve one by one.
LARGEST_SUPPORTS = 64


def product_policy(x: list[Array]) -> Array:
    """The joint distribution of independent strategies."""
    return reduce(np.multiply.outer, x)


def learned(game: NormalFormGame) -> list[list[Array]]:
    """Where FTRL+ ends from random starts."""
    ends = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for seed in range(STARTS):
            run = FTRLPlus(init="random", random_state=seed, tol=1e-8, max_iter=3000, record=None)
            ends.append([np.asarray(x_i) for x_i in run.fit(game).strategies_])
    return ends


def enumerated(game: NormalFormGame) -> list[list[Array]]:
    """What pygambit finds support by support; nothing without it, or if the game is large."""
    if find_spec("pygambit") is None or int(np.prod(game.shape)) > LARGEST_SUPPORTS:
        return []
    import pygambit

    tree = game.to_pygambit()
    found = pygambit.nash.enumpoly_solve(tree).equilibria
    return [
        [np.array([float(profile[s]) for s in player.strategies]) for player in tree.players]
        for profile in found
    ]


def searched_equilibria(payoffs: Array, tol: float) -> tuple[list[Array], float]:
    """Mixed equilibria that a search finds, and the largest gap among them.

    Parameters
    ----------
    payoffs : ndarray of shape (n, d_0, ..., d_{n-1})
        Payoffs.
    tol : float
        What counts as a tie between pure strategies.

    Returns
    -------
    policies : list of ndarray of shape (d_0, ..., d_{n-1})
        Distinct ones: pure equilibria first, then those of pygambit, then those learned.
    gap : float
        The most anyone gains by deviating from one of them.
    """
    scale = payoff_range(payoffs)
    game = NormalFormGame(payoffs / scale)
    pure = [
        [np.eye(d)[a] for d, a in zip(game.shape, z, strict=True)]
        for z in np.argwhere(pure_equilibria(payoffs, tol))
    ]
    ends: list[list[Array]] = []
    gaps: list[float] = []
    for x in [*pure, *enumerated(game), *learned(game)]:
        far = [max(np.abs(a - b).max() for a, b in zip(x, y, strict=True)) for y in ends]
        if min(far, default=1.0) > 1e-3:
            ends.append(x)
            gaps.append(float(game.nash_gap(x, "max")) * scale)
    keep = [k for k, gap in enumerate(gaps) if gap <= 1e-5 * scale]
    if not keep:
        keep = [int(np.argmin(gaps))]
    return [product_policy(ends[k]) for k in keep], max(gaps[k] for k in keep)
