"""Normal-form games with known structure: harmonic, potential, mixed, zero-sum, and the classics.

Isotropic Gaussian games for the inner product <u, w>_g = sum_i m_i sum_a p(a) u_i(a) w_i(a) are
projected on the harmonic or the potential subspace, so that every direction in it is equally
likely. A generated `HarmonicGame` holds its ground truth: the measure and the centre, which is a
Nash equilibrium.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from ..games.normal_form import HarmonicGame, NormalFormGame
from ..games.normal_form.hoeffding import Measure, check_measure

__all__ = [
    "load_classic_game",
    "make_harmonic_game",
    "make_mixture_game",
    "make_potential_game",
    "make_zero_sum_game",
]


def check_shape(n_actions: Sequence[int]) -> tuple[int, ...]:
    """Return the numbers of actions as a tuple of positive integers."""
    shape = tuple(n_actions)
    if not shape or any(not isinstance(d, int | np.integer) or d < 1 for d in shape):
        raise ValueError(
            f"n_actions must hold a positive integer for each player, got {list(shape)}"
        )
    return tuple(int(d) for d in shape)


def root_mean_square(u: np.ndarray) -> float:
    """Return the root mean square over all players' payoffs."""
    return float(np.sqrt(np.square(u).mean()))


def scaled(u: np.ndarray, scale: Any) -> np.ndarray:
    """Return u as drawn (None), with root mean square 1 ("unit"), or that times a number."""
    if scale is None:
        return u
    if scale != "unit" and not (
        isinstance(scale, int | float | np.number) and np.isfinite(scale) and scale > 0
    ):
        raise ValueError(
            f"scale={scale!r} is not known; allowed: 'unit', None, or a positive number"
        )
    size = root_mean_square(u)
    factor = 1.0 if scale == "unit" else float(scale)
    return u * (factor / size) if size > 0 else u


def isotropic_game(
    shape: tuple[int, ...], measure: list[np.ndarray], rng: np.random.RandomState
) -> NormalFormGame:
    """Draw Z_i(a) ~ N(0, 1 / (m_i p(a)))."""
    deviation = np.ones(())
    for mu in measure:
        deviation = np.multiply.outer(deviation, mu**-0.5)
    masses = np.array([mu.sum() for mu in measure]).reshape(-1, *[1] * len(shape))
    return NormalFormGame(rng.standard_normal((len(shape), *shape)) * deviation / np.sqrt(masses))


def nonstrategic_part(
    shape: tuple[int, ...], size: float, rng: np.random.RandomState
) -> np.ndarray:
    """Draw Gaussian payoffs that don't depend on a player's own action."""
    u = np.empty((len(shape), *shape))
    for i in range(len(shape)):
        u[i] = rng.standard_normal([1 if j == i else d for j, d in enumerate(shape)])
    return u * (size / root_mean_square(u))


def integer_harmonic(shape: tuple[int, ...], rng: np.random.RandomState) -> np.ndarray:
    """Draw integer payoffs that are harmonic for the uniform measure.

    For each pair of players i < j the tensor d_j c is given to i and -d_i c to j, with c an integer
    tensor whose sums along the axes of both vanish: then m_i Pi_i u_i + m_j Pi_j u_j = d_i d_j c -
    d_j d_i c = 0.
    """
    u = np.zeros((len(shape), *shape))
    for i in range(len(shape)):
        for j in range(i + 1, len(shape)):
            c = rng.randint(-2, 3, size=shape).astype(float)
            for axis in (i, j):  # differences of neighbours sum to zero along the axis
                c = c - np.roll(c, 1, axis=axis)
            u[i] += shape[j] * c
            u[j] -= shape[i] * c
    return u


def make_harmonic_game(
    n_actions: Sequence[int],
    *,
    measure: Measure = None,
    nonstrategic: bool = True,
    scale: Any = "unit",
    entries: str = "gaussian",
    random_state: Any = None,
) -> HarmonicGame:
    """Draw a random harmonic game.

    Parameters
    ----------
    n_actions : sequence of int
        Number of actions of each player.
    measure : list of array-like, optional
        Positive weights the game is harmonic for; None is all ones.
    nonstrategic : bool, default=True
        Whether to add a Gaussian nonstrategic part of the same root mean square, which changes no
        incentive.
    scale : "unit", float or None, default="unit"
        Root mean square of the harmonic part over all its entries: 1, a number, or as drawn.
    entries : {"gaussian", "integer"}, default="gaussian"
        "integer" draws whole numbers (uniform measure only, not scaled, no nonstrategic part).
    random_state : int, RandomState or None, default=None
        Source of randomness.

    Returns
    -------
    HarmonicGame
        With its ground truth: `measure` and the equilibrium `center`.

    Raises
    ------
    ValueError
        If a parameter isn't valid.

    References
    ----------
    .. [1] J. Abdou et al., "Decomposition of games: some strategic considerations", 2022.

    Examples
    --------
    >>> from equipoise.datasets import make_harmonic_game
    >>> game = make_harmonic_game((2, 2, 2), random_state=0)
    >>> game.is_nash(game.center)
    True
    """
    shape = check_shape(n_actions)
    mu = check_measure(measure, shape)
    rng = check_random_state(random_state)
    if entries == "integer":
        if measure is not None and any(
            len(set(mu_i.tolist())) > 1 or mu_i[0] != mu[0][0] for mu_i in mu
        ):
            raise ValueError("entries='integer' needs the uniform measure (measure=None)")
        return HarmonicGame(integer_harmonic(shape, rng), measure)
    if entries != "gaussian":
        raise ValueError(f"entries={entries!r} is not known; allowed: 'gaussian', 'integer'")
    drawn = isotropic_game(shape, mu, rng).decompose(mu, components=("harmonic",)).harmonic
    # Where no game but the nonstrategic ones is harmonic, rounding is all there is.
    u = (
        np.zeros((len(shape), *shape))
        if harmonic_is_trivial(shape)
        else scaled(drawn.payoffs, scale)
    )
    if nonstrategic:
        u = u + nonstrategic_part(shape, root_mean_square(u) or 1.0, rng)
    return HarmonicGame(u, measure)


def harmonic_is_trivial(shape: tuple[int, ...]) -> bool:
    """Say whether at most one player has a choice, so that every harmonic game is nonstrategic."""
    return sum(d > 1 for d in shape) < 2


def make_potential_game(
    n_actions: Sequence[int],
    *,
    measure: Measure = None,
    nonstrategic: bool = True,
    scale: Any = "unit",
    random_state: Any = None,
) -> NormalFormGame:
    """Draw a random potential game; parameters as for `make_harmonic_game`.

    Parameters
    ----------
    n_actions : sequence of int
        Number of actions of each player.
    measure : list of array-like, optional
        The weights; with None the potential is exact.
    nonstrategic : bool, default=True
        Whether to add a nonstrategic part of the same root mean square.
    scale : "unit", float or None, default="unit"
        Root mean square of the potential part.
    random_state : int, RandomState or None, default=None
        Source of randomness.

    Returns
    -------
    NormalFormGame
        ``game.decompose(measure).potential_function`` is its potential.

    Examples
    --------
    >>> from equipoise.datasets import make_potential_game
    >>> make_potential_game((2, 3), random_state=0).is_potential()
    True
    """
    shape = check_shape(n_actions)
    mu = check_measure(measure, shape)
    rng = check_random_state(random_state)
    drawn = isotropic_game(shape, mu, rng).decompose(mu, components=("potential",)).potential
    u = scaled(drawn.payoffs, scale)
    if nonstrategic:
        u = u + nonstrategic_part(shape, root_mean_square(u) or 1.0, rng)
    return NormalFormGame(u)


def make_mixture_game(
    n_actions: Sequence[int],
    potentialness: float = 0.5,
    *,
    measure: Measure = None,
    nonstrategic: bool = True,
    scale: Any = "unit",
    random_state: Any = None,
) -> NormalFormGame:
    """Draw a game with a given share of common interest.

    Parameters
    ----------
    n_actions : sequence of int
        Number of actions of each player, two of whom must have a choice.
    potentialness : float, default=0.5
        |u^P| / (|u^P| + |u^H|), between 0 (harmonic) and 1 (potential).
    measure, nonstrategic, scale, random_state
        As for `make_harmonic_game`; the scale is that of the strategic part.

    Returns
    -------
    NormalFormGame
        ``game.decompose(measure).potentialness`` is what was asked for.

    Examples
    --------
    >>> from equipoise.datasets import make_mixture_game
    >>> round(make_mixture_game((3, 3), 0.25, random_state=0).decompose().potentialness, 6)
    0.25
    """
    if not 0.0 <= potentialness <= 1.0:
        raise ValueError(f"potentialness must be between 0 and 1, got {potentialness!r}")
    shape = check_shape(n_actions)
    if harmonic_is_trivial(shape):
        raise ValueError(f"n_actions={list(shape)} must give at least two players a choice")
    mu = check_measure(measure, shape)
    rng = check_random_state(random_state)
    parts = isotropic_game(shape, mu, rng).decompose(mu)
    u = potentialness / parts.norms["potential"] * parts.potential.payoffs
    u = scaled(u + (1.0 - potentialness) / parts.norms["harmonic"] * parts.harmonic.payoffs, scale)
    if nonstrategic:
        u = u + nonstrategic_part(shape, root_mean_square(u), rng)
    return NormalFormGame(u)


def make_zero_sum_game(
    n_actions: Sequence[int],
    *,
    interior: bool = True,
    scale: Any = "unit",
    random_state: Any = None,
) -> NormalFormGame:
    """Draw a two-player zero-sum game.

    Parameters
    ----------
    n_actions : sequence of two int
        Number of actions of each player.
    interior : bool, default=True
        Whether the game has a totally mixed equilibrium; it is then harmonic for the equilibrium
        itself as measure.
    scale : "unit", float or None, default="unit"
        Root mean square of the payoffs.
    random_state : int, RandomState or None, default=None
        Source of randomness.

    Returns
    -------
    HarmonicGame or NormalFormGame
        Harmonic, with the equilibrium as `center`, if `interior`.

    Examples
    --------
    >>> from equipoise.datasets import make_zero_sum_game
    >>> game = make_zero_sum_game((3, 3), random_state=0)
    >>> game.is_zero_sum(), game.is_nash(game.center)
    (True, True)
    """
    shape = check_shape(n_actions)
    if len(shape) != 2:
        raise ValueError(f"n_actions must hold two players' numbers of actions, got {list(shape)}")
    rng = check_random_state(random_state)
    A = rng.standard_normal(shape)
    if not interior:
        A = scaled(A, scale)
        return NormalFormGame.from_bimatrix(A)
    p, q = ((rng.dirichlet(np.ones(d)) + 1.0 / d) / 2.0 for d in shape)
    # Take out what p or q averages to: then every action earns 0 against the other's equilibrium
    # strategy.
    A = A - np.outer(A @ q, np.ones(shape[1]))
    A = A - np.outer(np.ones(shape[0]), p @ A)
    A = scaled(A, scale)
    return HarmonicGame(np.stack([A, -A]), [p, q])


def parity_game(n_players: int) -> NormalFormGame:
    """Return matching pennies in a ring: all want to match the next one, the last to mismatch."""

    def payoffs(profile: tuple[int, ...]) -> list[float]:
        earned = [1.0 if profile[i] == profile[i + 1] else -1.0 for i in range(n_players - 1)]
        return [*earned, 1.0 if profile[-1] != profile[0] else -1.0]

    return NormalFormGame.from_function(payoffs, [2] * n_players)


def classic(A: ArrayLike, B: ArrayLike | None, *actions: str) -> NormalFormGame:
    """Return a two-player game whose players have the same action names."""
    game = NormalFormGame.from_bimatrix(A, B)
    return NormalFormGame(
        game.payoffs, player_names=["row", "column"], action_names=[actions, actions]
    )


def symmetric(A: ArrayLike, *actions: str) -> NormalFormGame:
    """Return a symmetric two-player game from the row player's matrix."""
    return classic(A, np.transpose(A), *actions)


CLASSICS = {
    "matching_pennies": lambda: classic([[1, -1], [-1, 1]], None, "heads", "tails"),
    "rock_paper_scissors": lambda: classic(
        [[0, -1, 1], [1, 0, -1], [-1, 1, 0]], None, "rock", "paper", "scissors"
    ),
    "prisoners_dilemma": lambda: symmetric([[3, 0], [5, 1]], "cooperate", "defect"),
    "battle_of_the_sexes": lambda: classic([[2, 0], [0, 1]], [[1, 0], [0, 2]], "opera", "football"),
    "chicken": lambda: symmetric([[0, -1], [1, -10]], "swerve", "straight"),
    "stag_hunt": lambda: symmetric([[4, 1], [3, 3]], "stag", "hare"),
    "shapley": lambda: classic(
        [[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 1, 0], [0, 0, 1], [1, 0, 0]], "a", "b", "c"
    ),
    "jordan": lambda: parity_game(3),
}


def load_classic_game(name: str) -> NormalFormGame:
    """Return a game from the textbooks.

    Parameters
    ----------
    name : str
        "matching_pennies", "rock_paper_scissors", "prisoners_dilemma", "battle_of_the_sexes",
        "chicken", "stag_hunt", "shapley" (fictitious play cycles in it) or "jordan" (three players'
        matching pennies in a ring).

    Returns
    -------
    NormalFormGame
        The game.

    Raises
    ------
    ValueError
        If the name isn't known; the message lists all.

    References
    ----------
    .. [1] D. Fudenberg, D. Levine, "The theory of learning in games", MIT Press, 1998.
    .. [2] J. Jordan, "Three problems in learning mixed-strategy Nash equilibria", 1993.

    Examples
    --------
    >>> from equipoise.datasets import load_classic_game
    >>> load_classic_game("prisoners_dilemma").pure_nash().tolist()
    [[1, 1]]
    """
    if name not in CLASSICS:
        raise ValueError(f"name={name!r} is not known; allowed: {sorted(CLASSICS)}")
    return CLASSICS[name]()
