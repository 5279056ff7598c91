"""Decomposition, learning and equilibria of normal-form games, against dense operators and solvers.

The peer of the decomposition is the dense method of the research code HarmonicLab: the gradient of
the response graph as a matrix, the pseudo-inverse of its Laplacian, and both applied to a game's
deviation flow. Ours is one compiled pass per player and axis; of the time for one 32x32 game about half
is spent in Python, on checks and on the three games that are returned. In one shot the peer has just
emptied the caches. Solvers of pygambit, nashpy and quantecon find an equilibrium of the same harmonic
game; the larger of both answers' Nash gaps is printed. OpenSpiel's dynamics play as many rounds as
ours, and the larger gap at the end is printed.
"""

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

from equipoise.datasets import make_harmonic_game, make_zero_sum_game
from equipoise.games import EquilibriumVariety, FTRLPlus, NormalFormGame, decompose


def random_game(shape: tuple[int, ...], seed: int = 0) -> NormalFormGame:
    return NormalFormGame(np.random.RandomState(seed).normal(size=(len(shape), *shape)))


class DenseGeometry:
    """The response graph of a shape: edges, gradient matrix, Laplacian's pseudo-inverse."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        index = np.arange(np.prod(shape)).reshape(shape)
        players, tails, heads = [], [], []
        for i, d in enumerate(shape):
            lines = np.moveaxis(index, i, -1).reshape(-1, d)
            for a in range(d):
                for b in range(a):
                    players.append(np.full(len(lines), i))
                    tails.append(lines[:, b])
                    heads.append(lines[:, a])
        self.players, self.tails, self.heads = map(np.concatenate, (players, tails, heads))
        self.gradient = np.zeros((len(self.tails), index.size))
        rows = np.arange(len(self.tails))
        self.gradient[rows, self.tails] = -1.0
        self.gradient[rows, self.heads] = 1.0
        self.inverse = np.linalg.pinv(self.gradient.T @ self.gradient, 1e-10, hermitian=True)

    def decompose(self, game: NormalFormGame) -> list[np.ndarray]:
        """The nonstrategic, potential and harmonic payoffs, for equal weights."""
        n = game.n_players
        own_mean = [u.mean(axis=i, keepdims=True) for i, u in enumerate(game.payoffs)]
        strategic = np.stack([u - m for u, m in zip(game.payoffs, own_mean, strict=True)])
        flat = strategic.reshape(n, -1)
        flow = flat[self.players, self.heads] - flat[self.players, self.tails]
        phi = (self.inverse @ (self.gradient.T @ flow)).reshape(game.shape)
        potential = np.stack([phi - phi.mean(axis=i, keepdims=True) for i in range(n)])
        return [game.payoffs - strategic, potential, strategic - potential]


def our_parts(game: NormalFormGame) -> list[np.ndarray]:
    parts = decompose(game)
    return [part.payoffs for part in (parts.nonstrategic, parts.potential, parts.harmonic)]


def learn(game: NormalFormGame) -> float:
    solver = FTRLPlus(init="random", random_state=0, tol=1e-6, max_iter=100_000, record=None)
    return game.nash_gap(solver.fit(game).strategies_)


def largest(ours: float, peer: float) -> float:
    return float(max(ours, peer))


def gambit(game: NormalFormGame, solver: str) -> Callable[[], float]:
    import pygambit

    theirs = game.to_pygambit(max_denominator=10**6)

    def solve() -> float:
        if solver == "simpdiv_solve":
            start = theirs.mixed_strategy_profile(rational=True)
            found = pygambit.nash.simpdiv_solve(start, maxregret=pygambit.Rational(1, 10**6))
        else:
            found = getattr(pygambit.nash, solver)(theirs)
        if not found.equilibria:
            return float("inf")  # the solver found none
        profile = found.equilibria[0]
        x = [np.array([float(profile[s]) for s in player.strategies]) for player in theirs.players]
        return game.nash_gap([x_i / x_i.sum() for x_i in x])

    return solve


def nashpy_enumeration(game: NormalFormGame) -> Callable[[], float]:
    theirs = game.to_nashpy()
    return lambda: game.nash_gap(next(iter(theirs.support_enumeration())))


def quantecon_lemke(game: NormalFormGame) -> Callable[[], float]:
    from quantecon.game_theory import lemke_howson

    theirs = game.to_quantecon()
    return lambda: game.nash_gap([np.asarray(x) for x in lemke_howson(theirs)])


def quantecon_tourky(game: NormalFormGame) -> Callable[[], float]:
    from quantecon.game_theory import mclennan_tourky

    theirs = game.to_quantecon()
    return lambda: game.nash_gap([np.asarray(x) for x in mclennan_tourky(theirs, epsilon=1e-6)])


def solver_cases() -> Iterator[dict[str, Any]]:
    """One equilibrium of gap 1e-6."""
    rng = np.random.RandomState(0)
    two, three = (  # with the uniform measure homotopies would start at the equilibrium
        make_harmonic_game(s, measure=[rng.uniform(0.5, 2, d) for d in s], random_state=0)
        for s in ((6, 6), (3, 3, 3))
    )
    peers = [
        ("pygambit", "pygambit logit_solve", three, lambda: gambit(three, "logit_solve")),
        ("pygambit", "pygambit ipa_solve", three, lambda: gambit(three, "ipa_solve")),
        ("pygambit", "pygambit simpdiv_solve", three, lambda: gambit(three, "simpdiv_solve")),
        ("quantecon", "quantecon mclennan_tourky", three, lambda: quantecon_tourky(three)),
        ("pygambit", "pygambit gnm_solve", three, lambda: gambit(three, "gnm_solve")),
        ("quantecon", "quantecon lemke_howson", two, lambda: quantecon_lemke(two)),
        ("nashpy", "nashpy support_enumeration", two, lambda: nashpy_enumeration(two)),
    ]
    for package, name, game, peer in peers:
        size = "x".join(map(str, game.shape))
        case = {"name": f"gap 1e-6 in a {size} harmonic game ({name})", "repeats": 1}
        case["ours"] = lambda game=game: learn(game)
        if find_spec(package):
            yield {**case, "peer": peer(), "distance": largest, "exact": False}
        else:
            yield {**case, "name": f"{case['name']}: peer not installed"}


def dynamics_cases() -> Iterator[dict[str, Any]]:
    """As many rounds as OpenSpiel's dynamics play, in the same game."""
    cube = make_harmonic_game((3, 3, 3), random_state=0)
    square = make_zero_sum_game((3, 3), random_state=0)

    def ours(game: NormalFormGame, rounds: int) -> float:
        solver = FTRLPlus(init="random", random_state=0, tol=0, max_iter=rounds, record=None)
        return float(solver.fit(game).nash_gap_[-1])

    if not find_spec("pyspiel"):
        yield {"name": "10,000 rounds, 3x3x3: no OpenSpiel", "ours": lambda: ours(cube, 10_000)}
        return
    import pyspiel
    from open_spiel.python.algorithms import (
        mmd_dilated,
        projected_replicator_dynamics,
        regret_matching,
    )

    def replicator() -> float:
        found = projected_replicator_dynamics.projected_replicator_dynamics(
            list(cube.payoffs), prd_iterations=10_000
        )
        return cube.nash_gap([np.asarray(x) / np.sum(x) for x in found])

    def matching() -> float:
        found = regret_matching.regret_matching(list(cube.payoffs), iterations=10_000)
        return cube.nash_gap([np.asarray(x) / np.sum(x) for x in found])

    def mirror_descent() -> float:
        turns = pyspiel.convert_to_turn_based(square.to_openspiel())
        learner = mmd_dilated.MMDDilatedEnt(turns, alpha=0.05)  # its step vanishes with alpha
        for _ in range(200):
            learner.update_sequences()
        return square.nash_gap(list(learner.get_policies().action_probability_array))

    for name, game, rounds, peer in [
        ("projected replicator dynamics", cube, 10_000, replicator),
        ("regret matching", cube, 10_000, matching),
        ("magnetic mirror descent", square, 200, mirror_descent),
    ]:
        size = "x".join(map(str, game.shape))
        yield {
            "name": f"{rounds:,} rounds, {size} (OpenSpiel {name})",
            "ours": lambda game=game, rounds=rounds: ours(game, rounds),
            "peer": peer,
            "distance": largest,
            "exact": False,
            "repeats": 3,
        }


def cases() -> Iterator[dict[str, Any]]:
    squares = [random_game((32, 32), seed) for seed in range(20)]
    square = squares[0]
    geometry = DenseGeometry(square.shape)
    yield {
        "name": "decompose 20 games 32x32, operators kept (HarmonicLab's dense method)",
        "ours": lambda: [our_parts(game) for game in squares],
        "peer": lambda: [geometry.decompose(game) for game in squares],
    }
    yield {
        "name": "decompose 32x32, one shot (HarmonicLab's dense method)",
        "ours": lambda: our_parts(square),
        "peer": lambda: DenseGeometry(square.shape).decompose(square),
        "repeats": 1,
    }
    for shape in [(10,) * 3, (10,) * 4, (10,) * 5, (10,) * 6, (2,) * 20]:
        game = random_game(shape)
        name = f"decompose {shape[0]}^{len(shape)}"
        yield {"name": name, "ours": lambda game=game: decompose(game), "repeats": 3}
    for shape in [(10,) * 5, (10,) * 6, (1000, 1000)]:
        game = random_game(shape)
        x = [np.full(d, 1.0 / d) for d in shape]
        yield {
            "name": f"payoff vectors {shape[0]}^{len(shape)} (one np.sum of the payoffs)",
            "ours": lambda game=game, x=x: game.payoff_vectors(x),
            "peer": lambda game=game: game.payoffs.sum(),
            "distance": lambda ours, peer: 0.0,
            "exact": False,
        }
    yield from dynamics_cases()
    small = make_harmonic_game((3, 3, 3), random_state=0)
    long = FTRLPlus(init="random", random_state=0, tol=0, max_iter=200_000, record=None)
    yield {"name": "200,000 rounds, 3x3x3", "ours": lambda: long.fit(small).n_iter_, "repeats": 3}
    many = [make_harmonic_game((3, 3), random_state=k) for k in range(500)] * 20
    batch = FTRLPlus(init="random", random_state=0, tol=0, max_iter=1000, record=None, n_jobs=2)
    yield {
        "name": "10,000 games 3x3, 1000 rounds each, 2 threads",
        "ours": lambda: batch.fit(many).n_iter_.sum(),
        "repeats": 1,
    }
    yield from solver_cases()
    cube = make_harmonic_game((2, 2, 2), random_state=0)
    yield {"name": "all equilibria of a 2x2x2 game", "ours": lambda: EquilibriumVariety().fit(cube)}
