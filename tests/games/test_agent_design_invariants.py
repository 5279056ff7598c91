"""What holds in every game, against oracles computed another way."""

import pickle
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.base import clone

from equipoise.games import (
    AgentDesignGame,
    CertificationMediator,
    CorrelatedMediator,
    DelegationMediator,
    DisclosureMediator,
    MetaGameSolver,
    NormalFormGame,
    ParetoMediator,
    SubsidyMediator,
    TransferMediator,
)
from equipoise.games.agent_design.certificates import certify_obedience, certify_profile
from equipoise.games.agent_design.certification import profitable_designs
from equipoise.games.agent_design.deviations import implementation_costs, pure_equilibria
from equipoise.games.agent_design.pareto import augmented_payoffs
from equipoise.games.agent_design.stationary import alpha_rank
from equipoise.testing import payoff_tensors

pytestmark = pytest.mark.filterwarnings("ignore:the stakeholders:UserWarning")
few = settings(max_examples=15, deadline=None)
TOL = 1e-6


def games(max_players=3, max_actions=3, min_players=2):
    """Payoffs rounded to 1/16, so that ties are exact and differences never tiny."""
    tensors = payoff_tensors(max_players, max_actions, 5.0)
    return tensors.filter(lambda u: len(u) >= min_players).map(lambda u: np.round(u * 16) / 16)


def value(solver, u):
    return solver.fit(u).welfare_


def brute_force_nash(u):
    """Masks and costs by looking at each deviation in turn."""
    shape = u.shape[1:]
    mask, cost = np.ones(shape, dtype=bool), np.zeros(shape)
    for a in np.ndindex(shape):
        for i in range(len(u)):
            best = max(u[(i, *a[:i], b, *a[i + 1 :])] for b in range(shape[i]))
            mask[a] &= u[(i, *a)] >= best
            cost[a] += best - u[(i, *a)]
    return mask, cost


def textbook_ce(u, coarse, sign):
    """Extreme welfare of (coarse) correlated equilibria, row by row, with dense matrices."""
    shape, rows = u.shape[1:], []
    profiles = list(np.ndindex(shape))
    for i in range(len(u)):
        for r, b in product(range(shape[i]), repeat=2):
            if r == b or (coarse and r > 0):
                continue
            row = [
                u[(i, *a[:i], b, *a[i + 1 :])] - u[(i, *a)] if coarse or a[i] == r else 0.0
                for a in profiles
            ]
            rows.append(row)
        if coarse:
            rows.append([u[(i, *a[:i], 0, *a[i + 1 :])] - u[(i, *a)] for a in profiles])
    W = u.sum(axis=0).ravel()
    A = np.array(rows) if rows else None
    b = np.zeros(len(rows)) if rows else None
    found = linprog(-sign * W, A, b, np.ones((1, len(W))), [1.0], method="highs")
    return -sign * found.fun


@few
@given(games())
def test_pure_equilibria_and_costs_by_brute_force(u):
    mask, cost = brute_force_nash(u)
    np.testing.assert_array_equal(pure_equilibria(u), mask)
    np.testing.assert_allclose(implementation_costs(u), cost, atol=1e-12)
    assert (cost >= 0).all()
    np.testing.assert_array_equal(cost == 0, mask)


@few
@given(games())
def test_chain_of_welfare(u):
    mixed = MetaGameSolver("mixed" if len(u) == 2 else "pure").fit(u).welfare_
    ce, cce = value(MetaGameSolver("ce"), u), value(MetaGameSolver("cce"), u)
    mediated = DelegationMediator().fit(u)
    assert ce[0] <= cce[0] + TOL
    assert cce[0] <= mediated.welfare_ + TOL
    assert mediated.welfare_ <= u.sum(axis=0).max() + TOL
    assert cce[1] <= ce[1] + TOL
    if len(mixed):
        assert mixed.max() <= ce[0] + TOL
        assert ce[1] <= mixed.min() + TOL
    assert mediated.certificate_.ok
    for kind, ends in [(False, ce), (True, cce)]:
        for sign, end in zip((1, -1), ends, strict=True):
            assert end == pytest.approx(textbook_ce(u, kind, sign), abs=1e-5)


@few
@given(games(max_players=2, max_actions=3))
def test_mixed_equilibria_by_support_enumeration(u):
    nashpy = pytest.importorskip("nashpy", reason="nashpy isn't installed")
    # No ties: support enumeration finds all equilibria of generic games only.
    u = u + np.random.RandomState(0).uniform(0, 0.01, u.shape)
    found = MetaGameSolver("mixed").fit(u)
    for pi in found.distributions_:
        x, y = pi.sum(axis=1), pi.sum(axis=0)
        assert NormalFormGame(u).nash_gap([x, y]) <= 1e-6
    known = list(nashpy.Game(u[0], u[1]).support_enumeration(tol=1e-12))
    welfare = [x @ (u[0] + u[1]) @ y for x, y in known]
    # The peer may miss some, even all; what it finds lies between the extremes.
    assume(welfare)
    assert found.welfare_[0] >= max(welfare) - 1e-5
    assert found.welfare_[1] <= min(welfare) + 1e-5


@few
@given(games(), st.integers(0, 2**31 - 1))
def test_nonstrategic_games_change_no_incentive(u, seed):
    rng = np.random.RandomState(seed)
    shape = u.shape[1:]
    extra = np.stack(
        [
            np.broadcast_to(
                rng.randint(-3, 4, [1 if j == i else d for j, d in enumerate(shape)]), shape
            )
            for i in range(len(u))
        ]
    )
    np.testing.assert_allclose(implementation_costs(u + extra), implementation_costs(u), atol=1e-9)
    np.testing.assert_array_equal(pure_equilibria(u + extra), pure_equilibria(u))
    policy = CorrelatedMediator().fit(u).policy_
    assert certify_obedience(u + extra, policy).max_violation <= TOL * 10


@few
@given(games(), st.data())
def test_subsidies(u, data):
    z = tuple(data.draw(st.integers(0, d - 1)) for d in u.shape[1:])
    k = implementation_costs(u)[z]
    paid = SubsidyMediator(z).fit(u)
    assert paid.cost_ == pytest.approx(k)
    assert certify_profile(paid.mediated_game_.payoffs_, z).max_violation <= 1e-9
    dominant = SubsidyMediator(z, mode="dominant").fit(u)
    assert dominant.cost_ >= k - 1e-12
    v = dominant.mediated_game_.payoffs_
    for i in range(len(u)):
        rows = np.moveaxis(v[i], i, 0)
        assert (rows[z[i]] >= rows - 1e-9).all()
    assert dominant.liability_ == pytest.approx(dominant.payments_.sum(axis=0).max())
    strict = SubsidyMediator(z, margin=0.5).fit(u)
    needed = 0.0
    for i in range(len(u)):
        others = [u[(i, *z[:i], b, *z[i + 1 :])] for b in range(u.shape[1 + i]) if b != z[i]]
        needed += max(0.0, max(others) - u[(i, *z)] + 0.5) if others else 0.0
    assert strict.cost_ == pytest.approx(needed)
    assert strict.certificate_.max_violation <= -0.5 + 1e-9 or max(u.shape[1:]) == 1


@settings(max_examples=8, deadline=None)
@given(games(max_actions=2))
def test_value_of_a_budget_is_concave(u):
    best = u.sum(axis=0).max()
    k = implementation_costs(u)[u.sum(axis=0) >= best - 1e-12].min()
    budgets = np.linspace(0, k, 5)
    W = []
    for budget in budgets:
        mediator = SubsidyMediator("correlated", budget=float(budget)).fit(u)
        assert mediator.certificate_.ok
        assert mediator.cost_ <= budget + 1e-5
        W.append(mediator.welfare_)
    assert W[0] == pytest.approx(value(MetaGameSolver("ce"), u)[0], abs=1e-5)
    assert W[-1] == pytest.approx(best, abs=1e-5)
    assert (np.diff(W) >= -1e-5).all()
    assert (np.diff(W, 2) <= 1e-5).all()


@few
@given(games())
def test_delegation_without_threats_is_coarse_correlation(u):
    mediator = DelegationMediator(punishment="none").fit(u)
    assert mediator.welfare_ == pytest.approx(value(MetaGameSolver("cce"), u)[0], abs=1e-5)
    assert mediator.certificate_.ok
    nash = DelegationMediator(punishment="nash").fit(u)
    assert not nash.feasible_ or nash.certificate_.ok


@settings(max_examples=8, deadline=None)
@given(games(max_actions=2))
def test_strong_delegation_resists_every_coalition(u):
    mediator = DelegationMediator(stability="strong").fit(u)
    assert mediator.feasible_ or not mediator.certificate_.ok
    if not mediator.feasible_:
        return
    assert mediator.welfare_ <= DelegationMediator().fit(u).welfare_ + 1e-5
    n, value_ = len(u), u.reshape(len(u), -1) @ mediator.policy_.ravel()
    for ticks in list(product([0, 1], repeat=n))[1:]:
        T = [i for i in range(n) if ticks[i]]
        R = tuple(i for i in range(n) if not ticks[i])
        for joint in product(*[range(u.shape[1 + i]) for i in T]):
            at = [slice(None)] * n
            for i, a in zip(T, joint, strict=True):
                at[i] = a
            weights = mediator.responses_[R] if R else np.ones(())
            gains = [float((u[i][tuple(at)] * weights).sum()) - value_[i] for i in T]
            assert min(gains) <= 1e-5


@few
@given(games(), st.data())
def test_transfers(u, data):
    z = tuple(data.draw(st.integers(0, d - 1)) for d in u.shape[1:])
    for mode in ("nash", "dominant"):
        mediator = TransferMediator(z, mode=mode).fit(u)
        assert mediator.certificate_.ok
        t = mediator.transfers_
        assert (t.sum(axis=0) == 0).all()
        assert np.abs(t).max() <= mediator.least_cap_ + 1e-6
        tripled = TransferMediator(z, mode=mode).fit(3 * u)
        assert tripled.least_cap_ == pytest.approx(3 * mediator.least_cap_, abs=1e-5)
        taxed = TransferMediator(z, mode=mode, balanced=False).fit(u)
        assert taxed.least_cap_ <= mediator.least_cap_ + 1e-6
        assert (taxed.transfers_.sum(axis=0) <= 1e-6).all()
        if mediator.least_cap_ > 0.1:
            short = TransferMediator(z, mode=mode, cap=mediator.least_cap_ / 2).fit(u)
            assert not short.feasible_
            assert not short.certificate_.ok


@few
@given(games(max_players=2), st.integers(0, 2**31 - 1))
def test_disclosure_is_at_least_as_good_as_any_information(u, seed):
    other = np.random.RandomState(seed).randint(-5, 6, u.shape).astype(float)
    mediator = DisclosureMediator().fit({"a": u, "b": other})
    best = max(mediator.no_information_, mediator.full_information_)
    assert mediator.welfare_ >= best - 1e-5
    assert mediator.certificate_.ok


@few
@given(games(), st.data())
def test_bans(u, data):
    z = tuple(data.draw(st.integers(0, d - 1)) for d in u.shape[1:])
    bans = profitable_designs(u, z)
    deviations = [
        (i, b)
        for i in range(len(u))
        for b in range(u.shape[1 + i])
        if u[(i, *z[:i], b, *z[i + 1 :])] > u[(i, *z)]
    ]
    assert [(i, int(b)) for i in range(len(u)) for b in np.flatnonzero(bans[i])] == deviations
    kept = [np.flatnonzero(~own) for own in bans]
    sub = u[(slice(None), *np.ix_(*kept))]
    assert pure_equilibria(sub)[
        tuple(int(np.searchsorted(k, a)) for k, a in zip(kept, z, strict=True))
    ]


@few
@given(games(max_players=2), st.integers(0, 3))
def test_certification_by_brute_force(u, limit):
    shape = u.shape[1:]
    W = u.sum(axis=0)
    sets = [[s for s in product([False, True], repeat=d) if any(s)] for d in shape]
    found = {"worst": [], "best": []}
    for own in product(*sets):
        if sum(len(s) - sum(s) for s in own) > limit:
            continue
        place = np.ix_(*[np.flatnonzero(s) for s in own])
        mask = brute_force_nash(u[(slice(None), *place)])[0]
        if mask.any():
            found["worst"].append(W[place][mask].min())
            found["best"].append(W[place][mask].max())
    for selection, values in found.items():
        mediator = CertificationMediator(limit, selection=selection).fit(u)
        assert mediator.feasible_ == bool(values)
        if values:
            assert mediator.welfare_ == pytest.approx(max(values))
            assert mediator.certificate_.ok
            assert mediator.ban_cost_ <= limit


@few
@given(games(max_actions=3))
def test_a_sole_delegator_loses_nothing(u):
    shape = u.shape[1:]
    payoffs, _ = augmented_payoffs(u)
    for i in range(len(u)):
        for a in np.ndindex(shape):
            delegated = (*a[:i], a[i] + shape[i], *a[i + 1 :])
            assert payoffs[(i, *delegated)] >= payoffs[(i, *a)]
    mediator = ParetoMediator().fit(u)
    mask = brute_force_nash(payoffs)[0]
    np.testing.assert_array_equal(mediator.equilibria_, np.argwhere(mask))


def power_method(u, alpha, m):
    """The stationary distribution of the literal transition matrix, by eigenvectors."""
    shape = u.shape[1:]
    profiles = list(np.ndindex(shape))
    eta = 1 / sum(d - 1 for d in shape)
    P = np.zeros((len(profiles),) * 2)
    for s, a in enumerate(profiles):
        for t, b in enumerate(profiles):
            changed = [i for i in range(len(shape)) if a[i] != b[i]]
            if len(changed) == 1:
                x = alpha * (u[(changed[0], *b)] - u[(changed[0], *a)])
                rho = 1 / m if x == 0 else np.expm1(-x) / np.expm1(-m * x)
                P[s, t] = eta * rho
        P[s, s] = 1 - P[s].sum()
    values, vectors = np.linalg.eig(P.T)
    pi = np.real(vectors[:, np.argmax(np.real(values))])
    return (pi / pi.sum()).reshape(shape)


@few
@given(games(max_actions=3))
def test_alpha_rank(u):
    assume(u[0].size > 1)
    pi, reducible, _ = alpha_rank(u, 0.3, 10)
    assert not reducible
    assert (pi >= 0).all()
    assert pi.sum() == pytest.approx(1)
    np.testing.assert_allclose(pi, power_method(u, 0.3, 10), atol=1e-7)
    shifted = u + np.arange(1, len(u) + 1).reshape(-1, *[1] * (u.ndim - 1))
    np.testing.assert_allclose(alpha_rank(shifted, 0.3, 10)[0], pi, atol=1e-9)


@few
@given(games(max_players=2, max_actions=3))
def test_alpha_rank_of_a_symmetric_game_is_symmetric(u):
    assume(u.shape[1] == u.shape[2])
    pi = alpha_rank(np.array([u[0], u[0].T]), 2.0, 50)[0]
    np.testing.assert_allclose(pi, pi.T, atol=1e-9)


@few
@given(games(), st.randoms(use_true_random=False))
def test_relabelling_permutes_the_answers(u, random):
    order = [random.sample(range(d), d) for d in u.shape[1:]]
    v = u[(slice(None), *np.ix_(*order))]
    np.testing.assert_array_equal(pure_equilibria(v), pure_equilibria(u)[np.ix_(*order)])
    for concept in ("ce", "cce"):
        np.testing.assert_allclose(
            value(MetaGameSolver(concept), v), value(MetaGameSolver(concept), u), atol=1e-5
        )
    players = random.sample(range(len(u)), len(u))
    w = u[players].transpose(0, *[1 + i for i in players])
    for mediator in (DelegationMediator(), CertificationMediator(1), SubsidyMediator(budget=1.0)):
        first, second = clone(mediator).fit(u), clone(mediator).fit(w)
        assert first.welfare_ == pytest.approx(second.welfare_, abs=1e-5)


@few
@given(games())
def test_affine_transformations_keep_equilibria(u):
    n = len(u)
    ones = [1] * (u.ndim - 1)
    v = u * (1 + np.arange(n)).reshape(-1, *ones) + np.arange(n).reshape(-1, *ones)
    for concept in ("pure", "strong"):
        a, b = (MetaGameSolver(concept).fit(x).solutions_ for x in (u, v))
        assert a == b
    policy = CorrelatedMediator().fit(u).policy_
    assert certify_obedience(v, policy).ok


@few
@given(games())
def test_strong_equilibria_by_brute_force(u):
    n, shape = len(u), u.shape[1:]
    expected = []
    for a in np.ndindex(shape):
        stable = True
        for b in np.ndindex(shape):
            moved = [i for i in range(n) if a[i] != b[i]]
            if moved and all(u[(i, *b)] > u[(i, *a)] for i in moved):
                stable = False
        # A member may keep his design: then too he must gain.
        if stable:
            expected.append(a)
    found = MetaGameSolver("strong").fit(u)
    assert [tuple(map(int, next(iter(s)))) for s in found.solutions_] == expected


@few
@given(games(max_players=2, max_actions=3))
def test_stable_strategies_resist_mutants(u):
    assume(u.shape[1] == u.shape[2])
    M = u[0] + np.random.RandomState(1).uniform(0, 0.01, u[0].shape)
    found = MetaGameSolver("ess").fit(np.array([M, M.T]))
    rng = np.random.RandomState(0)
    for pi in found.distributions_:
        x = pi.sum(axis=1)
        for y in rng.dirichlet(np.ones(len(x)), size=50):
            mixed = 1e-4 * y + (1 - 1e-4) * x
            assert x @ M @ mixed >= y @ M @ mixed - 1e-12
    for k in range(len(M)):
        others = [j for j in range(len(M)) if j != k]
        if all(M[k, k] > M[j, k] for j in others):
            assert any(pi[k, k] == pytest.approx(1) for pi in found.distributions_)


def test_hawks_and_doves_mix():
    M = np.array([[-1.0, 4.0], [0.0, 2.0]])
    game = np.array([M, M.T])
    for concept in ("ess", "replicator"):
        x = MetaGameSolver(concept).fit(game).distributions_[0].sum(axis=1)
        np.testing.assert_allclose(x, [2 / 3, 1 / 3], atol=1e-4)
    rps = np.array([[0.0, -1, 1], [1, 0, -1], [-1, 1, 0]])
    assert MetaGameSolver("ess").fit(np.array([rps, rps.T])).solutions_ == []


@few
@given(games())
def test_a_perturbed_policy_loses_its_certificate(u):
    mediator = CorrelatedMediator().fit(u)
    assert mediator.certificate_.ok
    for i in range(len(u)):
        for a in np.ndindex(u.shape[1:]):
            point = np.zeros(u.shape[1:])
            point[a] = 1.0
            gain = max(u[(i, *a[:i], b, *a[i + 1 :])] for b in range(u.shape[1 + i])) - u[(i, *a)]
            if gain > 0.1:
                assert not certify_obedience(u, point).ok
                return


@few
@given(games())
def test_round_trips(u):
    mediator = CorrelatedMediator("cce", margin=0.0).fit(u)
    again = pickle.loads(pickle.dumps(mediator))
    np.testing.assert_array_equal(again.predict(), mediator.predict())
    assert clone(mediator).get_params() == mediator.get_params()
    assert AgentDesignGame.from_payoffs(u).game_ == NormalFormGame(u)
