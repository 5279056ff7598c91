"""Decomposition, learning and equilibria of normal-form games, against dense operators and solvers.

The peer of the decomposition is the textbook's method, also HarmonicLab's: the gradient of the
response graph as a dense matrix, its pseudo-inverse applied to a game's deviation flow. Solvers of
pygambit, nashpy and quantecon find an equilibrium of the same harmonic game; both answers' Nash
gaps are compared with zero. OpenSpiel's dynamics play as many rounds as ours.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from equipoise.datasets import make_harmonic_game
from equipoise.games import EquilibriumVariety, FTRLPlus, NormalFormGame, decompose


def random_game(shape: tuple[int, ...]) -> NormalFormGame:
    return NormalFormGame(np.random.RandomState(0).normal(size=(len(shape), *shape)))


def gradient(shape: tuple[int, ...]) -> tuple[np.ndarray, list[tuple[int, int, int]]]:
    """The response graph's gradient matrix (edges, profiles), and its edges (player, from, to)."""
    index = np.arange(np.prod(shape)).reshape(shape)
    edges = []
    for i, d in enumerate(shape):
        lines = np.moveaxis(index, i, -1).reshape(-1, d)
        edges += [(i, line[a], line[b]) for line in lines for a in range(d) for b in range(a)]
    D = np.zeros((len(edges), index.size))
    rows = np.arange(len(edges))
    D[rows, [e[1] for e in edges]] = -1.0
    D[rows, [e[2] for e in edges]] = 1.0
    return D, edges


@lru_cache(maxsize=1)
def dense_operator(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    D, edges = gradient(shape)
    return np.linalg.pinv(D), np.array(edges)


def dense_potential(game: NormalFormGame, operator: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """The potential phi by the pseudo-inverse of the gradient."""
    inverse, edges = operator
    u = game.payoffs.reshape(game.n_players, -1)
    i, start, stop = edges.T
    phi = inverse @ (u[i, stop] - u[i, start])
    return (phi - phi.mean()).reshape(game.shape)


def one_shot(game: NormalFormGame) -> np.ndarray:
    D, edges = gradient(game.shape)
    return dense_potential(game, (np.linalg.pinv(D), np.array(edges)))


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
        profile = found.equilibria[0]
        x = [np.array([float(profile[s]) for s in player.strategies]) for player in theirs.players]
        return game.nash_gap([x_i / x_i.sum() for x_i in x])

    return solve


def nashpy_enumeration(game: NormalFormGame) -> Callable[[], float]:
    theirs = game.to_nashpy()
    return lambda: game.nash_gap(next(iter(theirs.support_enumeration())))


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


def dynamics_case() -> dict[str, Any]:
    """Rounds of dynamics in one 3x3x3 game."""
    game = make_harmonic_game((3, 3, 3), random_state=0)
    solver = FTRLPlus(init="random", random_state=0, tol=0, max_iter=2000, record=None)
    case = {
        "name": "2000 rounds, 3x3x3 (OpenSpiel projected replicator dynamics)",
        "ours": lambda: solver.fit(game).n_iter_,
        "repeats": 3,
    }
    if not find_spec("pyspiel"):
        return {**case, "name": f"{case['name']}: peer not installed"}
    from open_spiel.python.algorithms import projected_replicator_dynamics as dynamics

    tensors = list(game.payoffs)

    def peer() -> int:
        dynamics.projected_replicator_dynamics(tensors, prd_iterations=2000)
        return 2000

    return {**case, "peer": peer}


def cases() -> Iterator[dict[str, Any]]:
    square = random_game((32, 32))
    yield {
        "name": "decompose 32x32, operator kept (dense pseudo-inverse)",
        "ours": lambda: decompose(square).potential_function,
        "peer": lambda: dense_potential(square, dense_operator((32, 32))),
    }
    yield {
        "name": "decompose 32x32, one shot (dense pseudo-inverse)",
        "ours": lambda: decompose(square).potential_function,
        "peer": lambda: one_shot(square),
        "repeats": 1,
    }
    dense_operator.cache_clear()
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
    yield dynamics_case()
    small = make_harmonic_game((3, 3, 3), random_state=0)
    long = FTRLPlus(init="random", random_state=0, tol=0, max_iter=200_000, record=None)
    yield {"name": "200,000 rounds, 3x3x3", "ours": lambda: long.fit(small).n_iter_, "repeats": 3}
    many = [make_harmonic_game((3, 3), random_state=k) for k in range(10_000)]
    batch = FTRLPlus(init="random", random_state=0, tol=0, max_iter=1000, record=None, n_jobs=2)
    yield {
        "name": "10,000 games 3x3, 1000 rounds each, 2 threads",
        "ours": lambda: batch.fit(many).n_iter_.sum(),
        "repeats": 1,
    }
    yield from solver_cases()
    cube = make_harmonic_game((2, 2, 2), random_state=0)
    yield {"name": "all equilibria of a 2x2x2 game", "ours": lambda: EquilibriumVariety().fit(cube)}
