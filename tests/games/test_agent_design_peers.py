"""Agreement with OpenSpiel, pygambit and quantecon where they do the same; limits of alpha-rank."""

import numpy as np
import pytest

from equipoise.datasets import load_llm_attitudes
from equipoise.games import MetaGameSolver, NormalFormGame
from equipoise.games.agent_design.stationary import alpha_rank

TABLES = list(load_llm_attitudes().payoffs.items())
CHICKEN = np.array([[[6.0, 2.0], [7.0, 0.0]], [[6.0, 7.0], [2.0, 0.0]]])
PRISONERS = np.array([[[3.0, 0.0], [5.0, 1.0]], [[3.0, 5.0], [0.0, 1.0]]])


@pytest.mark.parametrize(("name", "M"), TABLES, ids=[name for name, _ in TABLES])
def test_alpha_rank_of_open_spiel(name, M):
    alpharank = pytest.importorskip(
        "open_spiel.python.egt.alpharank", reason="open_spiel isn't installed"
    )
    theirs = alpharank.compute([M, M.T], m=50, alpha=1.0)[2]
    ours = MetaGameSolver("alpharank", alpha=1.0).fit(np.array([M, M.T])).distributions_[0]
    np.testing.assert_allclose(ours.ravel(), theirs, atol=1e-6)


def welfare_of(profiles, u):
    return [float(x @ (u[0] + u[1]) @ y) for x, y in profiles]


@pytest.mark.parametrize(("name", "M"), TABLES, ids=[name for name, _ in TABLES])
def test_extreme_equilibria_of_pygambit(name, M):
    gambit = pytest.importorskip("pygambit", reason="pygambit isn't installed")
    u = np.array([M, M.T])
    game = NormalFormGame(u).to_pygambit()
    found = []
    for profile in gambit.nash.enummixed_solve(game, rational=False).equilibria:
        found.append(
            [np.array([float(profile[s]) for s in player.strategies]) for player in game.players]
        )
    welfare = welfare_of(found, u)
    ours = MetaGameSolver("mixed").fit(u).welfare_
    assert ours[0] == pytest.approx(max(welfare), abs=1e-6)
    assert ours[1] == pytest.approx(min(welfare), abs=1e-6)


@pytest.mark.slow  # quantecon compiles for a minute
@pytest.mark.parametrize(("name", "M"), TABLES, ids=[name for name, _ in TABLES])
def test_extreme_equilibria_of_quantecon(name, M):
    theory = pytest.importorskip("quantecon.game_theory", reason="quantecon isn't installed")
    u = np.array([M, M.T])
    found = theory.support_enumeration(NormalFormGame(u).to_quantecon())
    welfare = welfare_of(found, u)
    ours = MetaGameSolver("mixed").fit(u).welfare_
    assert ours[0] == pytest.approx(max(welfare), abs=1e-6)
    assert ours[1] == pytest.approx(min(welfare), abs=1e-6)


def test_alpha_rank_in_the_limit():
    pi, reducible, _ = alpha_rank(CHICKEN, np.inf, 50)
    np.testing.assert_allclose(pi, [[0, 0.5], [0.5, 0]], atol=1e-6)
    assert reducible
    pi, reducible, _ = alpha_rank(PRISONERS, np.inf, 50)
    np.testing.assert_allclose(pi, [[0, 0], [0, 1]], atol=1e-12)
    assert not reducible
    pi = alpha_rank(CHICKEN, 100.0, 50)[0]
    assert (pi >= 0).all()
    np.testing.assert_allclose(pi, [[0, 0.5], [0.5, 0]], atol=1e-6)


def test_three_stakeholders_learn_mixed_equilibria():
    from sklearn.exceptions import ConvergenceWarning

    # Two play matching pennies; the third prefers his first design.
    u = np.zeros((3, 2, 2, 2))
    u[0] = np.array([[1.0, -1.0], [-1.0, 1.0]])[:, :, None]
    u[1] = -u[0]
    u[2, :, :, 0] = 1.0
    with pytest.warns(ConvergenceWarning, match="search"):
        found = MetaGameSolver("mixed").fit(u)
    assert not found.exact_
    expected = np.zeros((2, 2, 2))
    expected[:, :, 0] = 0.25
    np.testing.assert_allclose(found.distributions_[0], expected, atol=1e-3)
