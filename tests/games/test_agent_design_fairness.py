"""Nash's product, leximin, entropy; punishments drawn independently; robust advice; large games."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from equipoise.datasets import make_agent_design_matches
from equipoise.games import (
    AgentDesignGame,
    CorrelatedMediator,
    DelegationMediator,
    MetaGameSolver,
    compare_mediators,
)
from equipoise.games.agent_design import stationary
from equipoise.games.agent_design.certificates import certify_obedience
from equipoise.games.agent_design.deviations import obedience_rows
from equipoise.games.agent_design.fairness import leximin_distribution, nash_distribution
from equipoise.games.agent_design.punishments import independent_response, minimax_response
from equipoise.games.agent_design.stationary import alpha_rank, stationary_distribution

pytestmark = pytest.mark.filterwarnings("ignore:the stakeholders:UserWarning")
few = settings(max_examples=10, deadline=None)
seeds = st.integers(0, 2**31 - 1)
CHICKEN = np.array([[[6.0, 2.0], [7.0, 0.0]], [[6.0, 7.0], [2.0, 0.0]]])
PRISONERS = np.array([[[3.0, 0.0], [5.0, 1.0]], [[3.0, 5.0], [0.0, 1.0]]])


def draw(seed, n=3, d=2):
    return np.random.RandomState(seed).normal(size=(n, *(d,) * n))


def random_coarse_equilibria(u, seed, n_directions=20):
    """Extreme points of the coarse correlated equilibria, in random directions."""
    rng = np.random.RandomState(seed)
    A = obedience_rows(u, "cce")
    M = u[0].size
    for _ in range(n_directions):
        c = rng.normal(size=M)
        found = linprog(c, A, np.zeros(A.shape[0]), np.ones((1, M)), [1.0], method="highs")
        yield found.x.reshape(u.shape[1:])


@few
@given(seeds)
def test_nash_product_agrees_with_a_cone_program(seed):
    cp = pytest.importorskip("cvxpy", reason="cvxpy isn't installed")
    u = draw(seed)
    A = obedience_rows(u, "cce")
    w = np.array([1.0, 2.0, 0.5])
    d = u.reshape(3, -1).min(axis=1) - 0.1
    ours = nash_distribution(u, w, d, A, np.zeros(A.shape[0]))
    pi = cp.Variable(8, nonneg=True)
    gains = u.reshape(3, -1) @ pi - d
    problem = cp.Problem(cp.Maximize(w @ cp.log(gains)), [cp.sum(pi) == 1, A.toarray() @ pi <= 0])
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    value = w @ np.log(u.reshape(3, -1) @ ours.ravel() - d)
    assert value == pytest.approx(problem.value, abs=1e-6)
    assert certify_obedience(u, ours, "cce").ok


def test_nash_product_in_chicken_and_prisoners():
    # The security levels are alike, so the symmetric game is split evenly.
    mediator = CorrelatedMediator(objective="nash").fit(CHICKEN)
    np.testing.assert_allclose(mediator.payoffs_, [5.25, 5.25], atol=1e-4)
    # In the dilemma nobody gets more than he can secure, unless he delegates.
    stuck = CorrelatedMediator(objective="nash").fit(PRISONERS)
    assert not stuck.feasible_
    with pytest.raises(ValueError, match="more than he can secure"):
        stuck.predict()
    found = DelegationMediator(objective="nash").fit(PRISONERS)
    np.testing.assert_allclose(found.payoffs_, [3, 3], atol=1e-4)
    game = AgentDesignGame.from_payoffs(PRISONERS, weights=[1.0, -1.0])
    with pytest.raises(ValueError, match="positive weights"):
        DelegationMediator(objective="nash").fit(game)


@few
@given(seeds)
def test_leximin_beats_every_other(seed):
    u = draw(seed)
    A = obedience_rows(u, "cce")
    ours = np.sort(u.reshape(3, -1) @ leximin_distribution(u, A, np.zeros(A.shape[0])).ravel())
    least = CorrelatedMediator("cce", objective="egalitarian").fit(u).payoffs_.min()
    assert ours[0] == pytest.approx(least, abs=1e-6)
    for pi in random_coarse_equilibria(u, seed):
        other = np.sort(u.reshape(3, -1) @ pi.ravel())
        first = next((k for k in range(3) if abs(ours[k] - other[k]) > 1e-5), None)
        assert first is None or ours[first] > other[first]


def test_leximin_goes_on_after_the_least():
    # The first gets 0 whatever happens; the second and third share 3, or waste it.
    u = np.zeros((3, 1, 1, 3))
    u[1, 0, 0], u[2, 0, 0] = [3, 1, 0], [0, 2, 0]
    A, b = obedience_rows(u, "cce")[:0], np.zeros(0)
    pi = leximin_distribution(u, A, b).ravel()
    np.testing.assert_allclose(u.reshape(3, -1) @ pi, [0, 1.5, 1.5], atol=1e-6)


@few
@given(seeds)
def test_largest_entropy(seed):
    pytest.importorskip("cvxpy", reason="cvxpy isn't installed")

    def entropy(pi):
        return -(pi[pi > 0] * np.log(pi[pi > 0])).sum()

    u = draw(seed)
    mediator = CorrelatedMediator("cce", objective="entropy").fit(u)
    assert mediator.certificate_.ok
    ends = list(random_coarse_equilibria(u, seed, 8))
    rng = np.random.RandomState(seed)
    for share in [*np.eye(8), np.full(8, 1 / 8), *rng.dirichlet(np.ones(8), size=10)]:
        mixed = np.tensordot(share, ends, axes=1)
        assert entropy(mediator.policy_) >= entropy(mixed) - 1e-6
    free = CorrelatedMediator(objective="entropy").fit(np.zeros((2, 2, 3)))
    # The entropy is flat at its top: a gap of 1e-9 moves a probability by about its root.
    np.testing.assert_allclose(free.policy_, 1 / 6, atol=1e-4)


@few
@given(seeds)
def test_independent_punishment_by_grid(seed):
    u = draw(seed)
    value, response, _ = independent_response(u, 0)
    p = np.linspace(0, 1, 201)
    grid = np.stack([p, 1 - p])
    met = np.einsum("bjk,jp,kq->bpq", u[0], grid, grid).max(axis=0)
    span = np.ptp(u[0])
    assert value <= met.min() + 1e-9
    assert value >= met.min() - span * 2 * 0.0025  # no point is farther from the grid
    assert value >= minimax_response(u, 0)[0] - 1e-9
    joint = response.reshape(2, 2)
    np.testing.assert_allclose(joint, np.outer(joint.sum(axis=1), joint.sum(axis=0)), atol=1e-9)


def test_independent_punishments_say_what_they_know():
    # Two others hurt the first only if they miscoordinate in secret: correlation helps them.
    u = np.zeros((3, 2, 2, 2))
    u[0, 0] = [[1, 0], [0, 0]]
    u[0, 1] = [[0, 0], [0, 1]]
    # Jointly they can play (0, 1): value 0. So can they independently: proved.
    mediator = DelegationMediator(punishment="independent").fit(u)
    assert mediator.exact_
    assert mediator.security_[0] == pytest.approx(0, abs=1e-9)
    # To match pennies with one's equal: (0,0) or (1,1) at random hurts, independent draws less.
    u[0, 0] = [[0, 1], [1, 1]]
    u[0, 1] = [[1, 1], [1, 0]]
    with pytest.warns(ConvergenceWarning, match="independent"):
        mediator = DelegationMediator(punishment="independent").fit(u)
    assert not mediator.exact_
    assert mediator.security_[0] == pytest.approx(0.75)
    assert DelegationMediator().fit(u).security_[0] == pytest.approx(0.5)
    assert mediator.certificate_.ok
    two = DelegationMediator(punishment="independent").fit(CHICKEN)
    assert two.exact_
    assert two.welfare_ == pytest.approx(DelegationMediator().fit(CHICKEN).welfare_)


def test_robust_advice_is_obeyed_in_the_true_game():
    failures = fits = 0
    for seed in range(60):
        matches = make_agent_design_matches("coordination", n_designs=2, random_state=seed)
        truth = np.array(matches.attrs["payoffs"])
        game = AgentDesignGame(symmetric=False).fit(matches)
        mediator = CorrelatedMediator(margin="robust").fit(game)
        assert mediator.certificate_.max_violation <= 0
        fits += mediator.feasible_
        failures += mediator.feasible_ and not certify_obedience(truth, mediator.policy_).ok
    assert fits >= 50  # an equilibrium worth 2 against 0 is clear after 30 matches
    assert failures <= 7  # 5% of 60 is 3; 7 is the 98% quantile
    tight = CorrelatedMediator(margin="robust").fit(game).welfare_
    assert tight <= CorrelatedMediator().fit(game).welfare_ + 1e-9
    coarse = CorrelatedMediator("cce", margin="robust").fit(game)
    assert coarse.welfare_ >= tight - 1e-6
    with pytest.raises(ValueError, match="standard errors"):
        CorrelatedMediator(margin="robust").fit(CHICKEN)


def test_rows_with_margins_of_their_own():
    rng = np.random.RandomState(0)
    u = rng.normal(size=(3, 2, 3, 2))
    margins = [rng.uniform(size=(d, d, 12 // d)) for d in (2, 3, 2)]
    for i, margin in enumerate(margins):
        margin[range(u.shape[1 + i]), range(u.shape[1 + i])] = 0.0
    pi = rng.dirichlet(np.ones(12)).reshape(2, 3, 2)
    ce, cce = [], []
    for i, d in enumerate((2, 3, 2)):
        moved = [np.moveaxis(x, i, 0).reshape(d, -1) for x in (u[i], pi)]
        table = np.array(
            [
                [(moved[1][r] * (moved[0][b] - moved[0][r] + margins[i][r, b])).sum()
                 for b in range(d)]
                for r in range(d)
            ]
        )  # fmt: skip
        ce += [table[r, b] for r, b in product(range(d), repeat=2) if r != b]
        cce += list(table.sum(axis=0))
    np.testing.assert_allclose(obedience_rows(u, "ce", margins) @ pi.ravel(), ce)
    np.testing.assert_allclose(obedience_rows(u, "cce", margins) @ pi.ravel(), cce)


@few
@given(seeds, st.sampled_from([0.0, 0.5, 2.0]))
def test_iterated_ranks_are_the_eliminated_ones(seed, alpha):
    u = draw(seed, 2, 5)
    dense = alpha_rank(u, alpha, 20)[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stationary, "LARGEST_DENSE", 0)
        sparse, _, exact = alpha_rank(u, alpha, 20)
    assert exact
    np.testing.assert_allclose(sparse, dense, atol=1e-9)


@few
@given(seeds)
def test_rare_jumps_decide_between_closed_classes(seed):
    rng = np.random.RandomState(seed)
    # Two classes that can't be left, and four states on the way to them.
    rates = np.zeros((8, 8))
    rates[:2, :2] = rates[2:4, 2:4] = 1.0
    rates[4:] = rng.uniform(size=(4, 8))
    np.fill_diagonal(rates, 0.0)
    import scipy.sparse as sp

    place = np.nonzero(rates)
    logs = sp.csr_array((np.log(rates[place]), place), shape=(8, 8))
    found, reducible, exact = stationary_distribution(logs)
    assert reducible
    assert exact
    eps = 1e-7
    Q = rates + eps / 8
    Q -= np.diag(Q.sum(axis=1))
    oracle = np.linalg.lstsq(np.vstack([Q.T, np.ones(8)]), np.r_[np.zeros(8), 1.0], rcond=None)[0]
    np.testing.assert_allclose(found, oracle, atol=1e-5)


def test_rare_exits_do_not_fool_the_iteration(monkeypatch):
    monkeypatch.setattr(stationary, "LARGEST_DENSE", 0)
    # Chicken's equilibria are left at rates of 5e-22; the start is far from even.
    u = np.array([[[6.0, 2.0], [7.0, 0.0]], [[6.0, 7.0], [2.5, 0.0]]])
    sparse = alpha_rank(u, 1.0, 50)[0]
    monkeypatch.undo()
    np.testing.assert_allclose(sparse, alpha_rank(u, 1.0, 50)[0], atol=1e-9)


def test_many_equilibria_far_apart(monkeypatch):
    monkeypatch.setattr(stationary, "LARGEST_DENSE", 0)
    # All five are left at rates of e^-147; in truth (400 digits) each has a fifth.
    place = np.arange(5)
    M = -3.0 * np.abs(place[:, None] - place[None, :]) + np.where(place == 4, 1.0, 0.0)
    found, _, exact = alpha_rank(np.array([M, M.T]), 1.0, 50)
    assert exact
    np.testing.assert_allclose(np.diag(found), 0.2, atol=1e-8)


def test_nearly_closed_sets_of_profiles_are_noticed():
    import scipy.sparse as sp

    # Two pairs of states, with a way from one to the other that is hardly ever taken.
    rates = np.array([[0, 1, 1e-14, 0], [1, 0, 0, 0], [2e-14, 0, 0, 1], [0, 0, 1, 0]], dtype=float)
    found, exact = stationary.iterated(sp.csr_array(rates))
    assert not exact
    found, exact = stationary.eliminated(sp.csr_array(rates))
    assert exact
    np.testing.assert_allclose(found, [1 / 3, 1 / 3, 1 / 6, 1 / 6], rtol=1e-9)


def test_a_rank_that_does_not_settle_says_so(monkeypatch):
    monkeypatch.setattr(stationary, "LARGEST_DENSE", 0)
    monkeypatch.setattr(stationary, "SWEEPS", 2)
    with pytest.warns(ConvergenceWarning, match="settle"):
        found = MetaGameSolver("alpharank", alpha=1.0).fit(draw(0, 2, 4))
    assert not found.exact_


def test_stable_strategies_of_many_designs():
    d = 14
    M = np.full((d, d), -1.0)
    M[0, 0] = 1.0  # strict
    M[1, 1], M[1, 2], M[2, 1], M[2, 2] = 0.0, 3.0, 3.0, 0.0  # a stable mixture of two
    with pytest.warns(ConvergenceWarning, match="at most 3"):
        found = MetaGameSolver("ess").fit(np.array([M, M.T]))
    assert not found.exact_
    ends = [pi.sum(axis=1) for pi in found.distributions_]
    assert len(ends) == 2
    np.testing.assert_allclose(ends[0], np.eye(d)[0])
    np.testing.assert_allclose(ends[1], np.r_[0, 0.5, 0.5, np.zeros(d - 3)])
    np.testing.assert_allclose(found.regrets_, 0, atol=1e-12)


def test_three_stakeholders_by_supports():
    pytest.importorskip("pygambit", reason="pygambit isn't installed")
    # The first two play chicken if the third looks on; learning rarely stays at the mixture.
    u = np.zeros((3, 2, 2, 2))
    u[:2] = CHICKEN[..., None]
    u[2, :, :, 0] = 1.0
    with pytest.warns(ConvergenceWarning, match="search"):
        found = MetaGameSolver("mixed").fit(u)
    x = np.array([2, 1]) / 3
    expected = np.multiply.outer(np.outer(x, x), [1.0, 0.0])
    assert min(np.abs(pi - expected).max() for pi in found.distributions_) < 1e-9
    assert len(found.solutions_) == 3
    np.testing.assert_allclose(found.regrets_, 0, atol=1e-5)


def test_regrets_are_recomputed():
    assert MetaGameSolver("pure").fit(CHICKEN).regrets_.tolist() == [0, 0]
    ranked = MetaGameSolver("alpharank").fit(PRISONERS)
    pi = ranked.distributions_[0]
    gain = max((pi.sum(axis=0) @ PRISONERS[0, b]) for b in range(2)) - (pi * PRISONERS[0]).sum()
    assert ranked.regrets_[0] == pytest.approx(gain)
    for concept in ("ce", "cce", "mixed"):
        np.testing.assert_allclose(MetaGameSolver(concept).fit(CHICKEN).regrets_, 0, atol=1e-7)


def test_participation_is_measured_from_what_one_can_secure():
    table = compare_mediators(CHICKEN, [DelegationMediator()])
    # Each secures 2: the other dares.
    assert table["participation"][0] == pytest.approx(4)
