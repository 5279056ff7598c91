"""A game split into a nonstrategic, a potential and a harmonic game.

u = u^N + u^P + u^H, orthogonal in <u, w>_g = sum_i m_i sum_a p(a) u_i(a) w_i(a) with p(a) = prod_i
mu_i(a_i): u^N_i = Lam_i u_i doesn't depend on player i's own action, u^P_i = Pi_i phi is what a
common potential phi explains, and u^H is the conflict that is left. `hoeffding.split_payoffs`
solves for phi in time linear in the payoff tensor.
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import compress
from math import prod
from typing import Any

import numpy as np
import pandas as pd

from .game import NormalFormGame, as_game
from .hoeffding import (
    Measure,
    check_measure,
    hoeffding_energies,
    split_payoffs,
)

__all__ = ["GameDecomposition", "decompose", "harmonic_dimension"]

COMPONENTS = ("nonstrategic", "potential", "harmonic")


def weighted_norm(payoffs: np.ndarray, measure: Sequence[np.ndarray]) -> float:
    """Return |u|_g, rescaled on the way so that payoffs near the largest float don't overflow."""
    size = float(np.abs(payoffs).max())
    if size == 0.0:
        return 0.0
    total = 0.0
    for u, mu_own in zip(payoffs, measure, strict=True):
        square = np.square(u / size)
        for mu in reversed(measure):
            square = square @ mu
        total += mu_own.sum() * float(square)
    return size * float(np.sqrt(total))


def harmonic_dimension(n_actions: Sequence[int]) -> dict[str, int]:
    """Return the dimensions of the three spaces that games of a shape split into.

    Parameters
    ----------
    n_actions : sequence of int
        Number of actions d_i of each player.

    Returns
    -------
    dict
        With M = prod d_i: "nonstrategic" sum_i M / d_i, "potential" M - 1, "harmonic" (normalised
        harmonic games) (n - 1) M - sum_i M / d_i + 1. They don't depend on the measure.

    Examples
    --------
    >>> from equipoise.games import harmonic_dimension
    >>> harmonic_dimension((3, 3))
    {'nonstrategic': 6, 'potential': 8, 'harmonic': 4}
    """
    shape = tuple(n_actions)
    if not shape or any(int(d) != d or d < 1 for d in shape):
        raise ValueError(f"n_actions must hold positive integers, got {list(shape)}")
    M = prod(shape)
    nonstrategic = sum(M // d for d in shape)
    return {
        "nonstrategic": nonstrategic,
        "potential": M - 1,
        "harmonic": (len(shape) - 1) * M - nonstrategic + 1,
    }


class GameDecomposition:
    """The parts of a game, and how large they are; `decompose` makes it.

    Parameters
    ----------
    game : NormalFormGame
        What was decomposed.
    measure : list of ndarray
        The weights mu_i.
    parts : dict of str to NormalFormGame
        Those of "nonstrategic", "potential" and "harmonic" that were asked for.
    potential_function : ndarray of shape (d_0, ..., d_{n-1}) or None
        phi, of weighted mean zero; None if neither potential nor harmonic part was asked for.

    Attributes
    ----------
    game, measure, potential_function
        As given.
    nonstrategic, potential, harmonic : NormalFormGame
        The three parts; ValueError where one wasn't asked for.

    References
    ----------
    .. [1] O. Candogan, I. Menache, A. Ozdaglar, P. Parrilo, "Flows and decompositions of games:
       harmonic and potential games", Mathematics of Operations Research, 2011.
    .. [2] J. Abdou, N. Pnevmatikos, M. Scarsini, X. Venel, "Decomposition of games: some strategic
       considerations", Mathematics of Operations Research, 2022 (the weighted inner products).

    Examples
    --------
    >>> from equipoise.games import NormalFormGame
    >>> parts = NormalFormGame.from_bimatrix([[3, 0], [5, 1]], [[3, 5], [0, 1]]).decompose()
    >>> parts.potentialness
    1.0
    """

    def __init__(
        self,
        game: NormalFormGame,
        measure: list[np.ndarray],
        parts: dict[str, NormalFormGame],
        potential_function: np.ndarray | None,
    ) -> None:
        self.game = game
        self.measure = measure
        self.potential_function = potential_function
        self._parts = parts

    def _part(self, name: str) -> NormalFormGame:
        if name not in self._parts:
            raise ValueError(
                f"the {name} part was not computed; decompose with components='all', or with it"
            )
        return self._parts[name]

    @property
    def nonstrategic(self) -> NormalFormGame:
        return self._part("nonstrategic")

    @property
    def potential(self) -> NormalFormGame:
        return self._part("potential")

    @property
    def harmonic(self) -> NormalFormGame:
        return self._part("harmonic")

    @cached_property
    def norms(self) -> dict[str, float]:
        """The weighted norm |.|_g of each part that was asked for."""
        return {
            name: weighted_norm(part.payoffs, self.measure) for name, part in self._parts.items()
        }

    @property
    def potentialness(self) -> float:
        """|u^P| / (|u^P| + |u^H|), from 0 (harmonic) to 1 (potential); NaN if nonstrategic."""
        potential, harmonic = self._strategic_norms()
        return potential / (potential + harmonic) if potential + harmonic > 0 else float("nan")

    @property
    def potential_share(self) -> float:
        """|u^P|^2 / (|u^P|^2 + |u^H|^2), a share of variance; NaN for a nonstrategic game."""
        potential, harmonic = self._strategic_norms()
        total = np.hypot(potential, harmonic)
        return (potential / total) ** 2 if total > 0 else float("nan")

    def _strategic_norms(self) -> tuple[float, float]:
        """Return |u^P| and |u^H| with what is only rounding of the payoffs set to zero."""
        n = self.game.n_players
        mass = sum(float(mu.sum()) for mu in self.measure)
        mass *= prod(float(mu.sum()) for mu in self.measure)
        rounding = 16 * n * np.finfo(float).eps * float(np.abs(self.game.payoffs).max()) * mass**0.5
        potential = weighted_norm(self.potential.payoffs, self.measure)
        harmonic = weighted_norm(self.harmonic.payoffs, self.measure)
        return (
            0.0 if potential <= rounding else potential,
            0.0 if harmonic <= rounding else harmonic,
        )

    def subset_energy(self) -> pd.DataFrame:
        """Return how much of the potential and of the harmonic part lies with each coalition of
        players.

        The component of u_i for a subset S of players is what needs exactly the actions in S to be
        said. Cost O(n^2 M) for M pure profiles.

        Returns
        -------
        pandas.DataFrame
            One row for each non-empty subset: "subset" (tuple of player names), "size", "potential"
            and "harmonic" (weighted squared norms), "share" of the strategic total (NaN for a
            nonstrategic game).

        Examples
        --------
        >>> from equipoise.games import NormalFormGame
        >>> energy = NormalFormGame.from_bimatrix([[1, -1], [-1, 1]]).decompose().subset_energy()
        >>> energy[["size", "share"]].round(12)
           size  share
        0     1    0.0
        1     1    0.0
        2     2    1.0
        """
        potential, harmonic = self.potential, self.harmonic
        n = self.game.n_players
        energy = {"potential": np.zeros(2**n), "harmonic": np.zeros(2**n)}
        for i, mu in enumerate(self.measure):
            for name, part in (("potential", potential), ("harmonic", harmonic)):
                energy[name] += mu.sum() * hoeffding_energies(part.payoffs[i], self.measure)
        masks = np.arange(1, 2**n)
        names = self.game.player_names
        members = [[bool(mask >> i & 1) for i in range(n)] for mask in masks]
        table = pd.DataFrame(
            {
                "subset": [tuple(compress(names, chosen)) for chosen in members],
                "size": [sum(chosen) for chosen in members],
                "potential": energy["potential"][masks],
                "harmonic": energy["harmonic"][masks],
            }
        )
        total = float(table["potential"].sum() + table["harmonic"].sum())
        share = table["potential"] + table["harmonic"]
        table["share"] = share / total if total > 0 else np.nan
        return table

    def plot(self, ax: Any = None) -> Any:
        """Draw the energy of each coalition size as a stacked bar; see `plot_decomposition`."""
        from .plots import plot_decomposition

        return plot_decomposition(self, ax=ax)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={norm:.4g}" for name, norm in self.norms.items())
        return f"GameDecomposition({sizes})"


def check_components(components: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of the parts to compute."""
    if isinstance(components, str):
        components = COMPONENTS if components == "all" else (components,)
    unknown = [name for name in components if name not in COMPONENTS]
    if unknown or not components:
        raise ValueError(
            f"components={unknown or components!r} is not known; allowed: 'all' or names among "
            f"{COMPONENTS}"
        )
    return tuple(components)


def decompose(
    game: NormalFormGame | np.ndarray,
    measure: Measure = None,
    *,
    components: str | Sequence[str] = "all",
) -> GameDecomposition:
    """Split a game into its nonstrategic, potential and harmonic parts, in linear time and memory.

    Parameters
    ----------
    game : NormalFormGame or ndarray of shape (n, d_0, ..., d_{n-1})
        The game or its payoff tensor.
    measure : list of array-like, optional
        Positive weights mu_i of each player's actions; None is all ones. Their total mass per
        player matters: scaling one player's weights alone gives another decomposition.
    components : "all" or sequence of {"nonstrategic", "potential", "harmonic"}, default="all"
        Which parts to compute and hold.

    Returns
    -------
    GameDecomposition
        The parts and their sizes.

    Raises
    ------
    ValueError
        If the measure or a component's name isn't valid.

    References
    ----------
    .. [1] O. Candogan et al., "Flows and decompositions of games", 2011, section 4.
    .. [2] J. Abdou et al., "Decomposition of games: some strategic considerations", 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games import decompose
    >>> u = np.array([[[3.0, 0, 1], [2, 4, -1]], [[1, 2, 0], [5, -2, 3]]])
    >>> parts = decompose(u, measure=[[1, 2], [1, 3, 2]])
    >>> round(parts.potentialness, 8)
    0.52563159
    >>> bool(
    ...     np.allclose(
    ...         parts.nonstrategic.payoffs + parts.potential.payoffs + parts.harmonic.payoffs, u
    ...     )
    ... )
    True
    """
    game = as_game(game)
    names = check_components(components)
    mu = check_measure(measure, game.shape)
    n, M = game.n_players, game.n_profiles
    tensors = {name: np.empty((n, M)) for name in names}
    parts = [tensors.get(name, np.empty((0, M))) for name in COMPONENTS]
    # Pi_i u_i is laid where it is needed last, so that it takes no memory of its own.
    strategic = next(part for part in reversed(parts) if len(part))
    flat, phi = np.empty(M), None
    shape = np.array(game.shape, dtype=np.int64)
    arrays = [game.payoffs.reshape(n, M), shape, np.concatenate(mu), strategic, *parts, flat]
    split_payoffs(*arrays)
    if names != ("nonstrategic",):
        phi = flat.reshape(game.shape)
        phi.flags.writeable = False
    return GameDecomposition(
        game,
        mu,
        {name: game._like(part.reshape(game.payoffs.shape)) for name, part in tensors.items()},
        phi,
    )
