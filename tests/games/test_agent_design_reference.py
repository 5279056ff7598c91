"""Published and hand-computed numbers: each mediator and concept on games with known answers."""

from itertools import product

import numpy as np
import pytest

from equipoise.datasets import load_axelrod_metagame, load_llm_attitudes
from equipoise.games import (
    AgentDesignGame,
    CertificationMediator,
    CommitmentMediator,
    CorrelatedMediator,
    DelegationMediator,
    DisclosureMediator,
    MetaGameSolver,
    ParetoMediator,
    SubsidyMediator,
    TransferMediator,
    subsidy_frontier,
)


def symmetric(M):
    M = np.array(M, dtype=float)
    return np.array([M, M.T])


PRISONERS = symmetric([[3, 0], [5, 1]])
CHICKEN = symmetric([[6, 2], [7, 0]])
NOISY_AXELROD = symmetric(
    [
        [2.952, 0.1865, 2.816, 0.6545, 1.6755],
        [4.6875, 1.104, 1.36, 1.186, 2.9455],
        [3.037, 1.064, 2.331, 1.2775, 2.303],
        [4.304, 1.171, 1.5315, 1.318, 2.892],
        [3.7485, 0.6575, 2.324, 0.9515, 2.7685],
    ]
)
CLEAN_AXELROD = symmetric(
    [
        [3, 0, 3, 3, 3],
        [5, 1, 1.04, 1.04, 3],
        [3, 0.99, 3, 3, 3],
        [3, 0.99, 3, 3, 3],
        [3, 0.5, 3, 3, 3],
    ]
)
COOPEVAL = symmetric(
    np.array(
        [
            [6, 6, 6, 14, 6, 8],
            [6, 6, 5, 10, 6, 5],
            [6, 8, 6, 10, 6, 6],
            [2, 4, 4, 8, 3, 5],
            [6, 6, 6, 12, 6, 6],
            [5, 8, 6, 11, 6, 7],
        ]
    )
    / 6
)


def public_goods():
    u = np.empty((3, 2, 2, 2))
    for a in product(range(2), repeat=3):
        k = 3 - sum(a)  # design 0 contributes
        for i in range(3):
            u[(i, *a)] = 1 + 2 * k / 3 - (a[i] == 0)
    return u


def welfare(mediator, game):
    fitted = mediator.fit(game)
    assert fitted.feasible_
    assert fitted.certificate_.ok, fitted.certificate_
    return fitted.welfare_


def extremes(concept, game):
    return MetaGameSolver(concept).fit(game).welfare_


def profiles(concept, game):
    return {next(iter(s)) for s in MetaGameSolver(concept).fit(game).solutions_}


def test_prisoners():
    assert profiles("pure", PRISONERS) == {("1", "1")}
    np.testing.assert_allclose(extremes("ce", PRISONERS), 2, atol=1e-7)
    np.testing.assert_allclose(extremes("cce", PRISONERS), 2, atol=1e-7)
    mediator = DelegationMediator().fit(PRISONERS)
    assert mediator.welfare_ == pytest.approx(6)
    np.testing.assert_allclose(mediator.security_, 1)
    subsidy = SubsidyMediator(target=(0, 0)).fit(PRISONERS)
    np.testing.assert_allclose(subsidy.payments_[:, 0, 0], [2, 2])
    for mode in ("nash", "dominant"):
        transfer = TransferMediator((0, 0), mode=mode).fit(PRISONERS)
        assert transfer.least_cap_ == pytest.approx(2)
        assert transfer.certificate_.ok
    pareto = ParetoMediator().fit(PRISONERS)
    assert set(np.round(pareto.equilibria_welfare_, 9)) == {2, 6}
    assert welfare(DelegationMediator(stability="strong"), PRISONERS) == pytest.approx(6)


@pytest.mark.parametrize(
    ("budget", "expected"), [(0, 2), (1, 5), (2, 16 / 3), (3, 17 / 3), (4, 6), (9, 6)]
)
def test_budget_in_prisoners(budget, expected):
    mediator = SubsidyMediator("correlated", budget=budget).fit(PRISONERS)
    assert mediator.welfare_ == pytest.approx(expected, abs=1e-6)
    assert mediator.certificate_.ok
    assert mediator.cost_ <= budget + 1e-6


def test_chicken():
    assert profiles("pure", CHICKEN) == {("0", "1"), ("1", "0")}
    np.testing.assert_allclose(extremes("pure", CHICKEN), 9)
    mixed = MetaGameSolver("mixed").fit(CHICKEN)
    np.testing.assert_allclose(mixed.welfare_, [28 / 3, 9], atol=1e-9)
    x = np.array([2, 1]) / 3
    np.testing.assert_allclose(mixed.distributions_[0], np.outer(x, x), atol=1e-9)
    best, worst = extremes("ce", CHICKEN)
    assert best == pytest.approx(10.5)
    assert worst == pytest.approx(7.2)
    assert extremes("cce", CHICKEN)[0] == pytest.approx(10.5)
    policy = CorrelatedMediator().fit(CHICKEN).policy_
    np.testing.assert_allclose(policy, [[0.5, 0.25], [0.25, 0]], atol=1e-7)
    assert welfare(DelegationMediator(), CHICKEN) == pytest.approx(12)
    assert welfare(DelegationMediator(stability="strong"), CHICKEN) == pytest.approx(12)
    for budget, expected in [(0.5, 10.875), (1, 11.25), (2, 12)]:
        found = welfare(SubsidyMediator("correlated", budget=budget), CHICKEN)
        assert found == pytest.approx(expected, abs=1e-6)
    assert CommitmentMediator().fit(CHICKEN).leader_payoff_ == pytest.approx(7)
    ranked = MetaGameSolver("alpharank", alpha=1.0, population=50).fit(CHICKEN)
    np.testing.assert_allclose(ranked.distributions_[0], [[0, 0.5], [0.5, 0]], atol=1e-12)
    assert not ranked.reducible_


def test_public_goods():
    u = public_goods()
    assert profiles("pure", u) == {("1", "1", "1")}
    np.testing.assert_allclose(extremes("pure", u), 3)
    assert welfare(DelegationMediator(), u) == pytest.approx(6)
    subsidy = SubsidyMediator(target=(0, 0, 0)).fit(u)
    np.testing.assert_allclose(subsidy.payments_[:, 0, 0, 0], 1 / 3)
    assert TransferMediator((0, 0, 0)).fit(u).least_cap_ == pytest.approx(1 / 3)
    assert welfare(DelegationMediator(stability="strong"), u) == pytest.approx(6)


def test_disclosure():
    states = {"hard": PRISONERS, "easy": symmetric([[4, 1], [3, 0]])}
    mediator = DisclosureMediator(prior=[1, 1]).fit(states)
    assert mediator.no_information_ == pytest.approx(4.5)
    assert mediator.full_information_ == pytest.approx(5)
    assert mediator.welfare_ == pytest.approx(20 / 3)
    assert mediator.certificate_.ok


def test_rock_paper_scissors_ranks_all_alike():
    game = symmetric([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])
    ranked = MetaGameSolver("alpharank", alpha=1.0).fit(game)
    np.testing.assert_allclose(ranked.distributions_[0], 1 / 9, rtol=1e-9)


def test_axelrod_without_noise():
    found = MetaGameSolver("pure").fit(CLEAN_AXELROD)
    assert sorted(found.welfare_) == pytest.approx([2] + [6] * 9)
    assert found.price_of_anarchy_ == pytest.approx(3)
    assert found.price_of_stability_ == pytest.approx(1)


def test_axelrod_with_noise():
    game = AgentDesignGame.from_payoffs(
        NOISY_AXELROD, designs=[["Coop", "Defector", "TFT", "Grudger", "WSLS"]] * 2
    )
    assert profiles("pure", game) == {("Grudger", "Grudger")}
    np.testing.assert_allclose(extremes("pure", game), 2.636)
    mixed = MetaGameSolver("mixed").fit(game)
    np.testing.assert_allclose(mixed.welfare_, [3.721239, 2.636], atol=1e-6)
    x = mixed.distributions_[0].sum(axis=1)
    np.testing.assert_allclose(x, [0, 0, 0.25108, 0.43824, 0.31068], atol=1e-5)
    assert extremes("ce", game)[0] == pytest.approx(3.89452, abs=1e-5)
    np.testing.assert_allclose(extremes("cce", game), [5.40578, 2.39775], atol=1e-5)
    mediator = DelegationMediator().fit(game)
    assert mediator.welfare_ == pytest.approx(5.904)
    np.testing.assert_allclose(mediator.security_, 1.171, atol=1e-7)
    payments = SubsidyMediator(("Coop", "Coop")).fit(game).payments_[:, 0, 0]
    np.testing.assert_allclose(payments, 1.7355)
    assert TransferMediator(("Coop", "Coop")).fit(game).least_cap_ == pytest.approx(1.7355)
    frontier = subsidy_frontier(game)
    np.testing.assert_allclose(
        frontier[["cost", "welfare"]],
        [[0, 2.636], [0.354, 5.537], [1.6505, 5.853], [3.471, 5.904]],
        atol=1e-9,
    )
    assert set(frontier.iloc[1, 2:]) == {"WSLS"}
    pareto = ParetoMediator().fit(game)
    assert set(np.round(pareto.equilibria_welfare_, 6)) == {2.636, 5.853}
    assert CommitmentMediator().fit(game).leader_payoff_ == pytest.approx(3.624517, abs=1e-6)


@pytest.mark.parametrize(
    ("budget", "expected"),
    [(0.25, 5.42079), (0.354, 5.537), (0.5, 5.5898), (1, 5.77063), (2, 5.8811), (3, 5.89667)],
)
def test_budget_in_noisy_axelrod(budget, expected):
    mediator = SubsidyMediator("correlated", budget=budget)
    assert welfare(mediator, NOISY_AXELROD) == pytest.approx(expected, abs=1e-5)


def test_corners_of_the_frontier():
    found = subsidy_frontier(PRISONERS, "correlated")
    np.testing.assert_allclose(found, [[0, 2], [1, 5], [4, 6]], atol=1e-6)
    found = subsidy_frontier(CHICKEN, "correlated")
    np.testing.assert_allclose(found, [[0, 10.5], [2, 12]], atol=1e-6)


@pytest.mark.parametrize(("bans", "expected"), [(0, 2.636), (1, 2.636), (2, 2.636), (3, 5.853)])
def test_bans_in_noisy_axelrod(bans, expected):
    mediator = CertificationMediator(max_bans=bans).fit(NOISY_AXELROD)
    assert mediator.welfare_ == pytest.approx(expected)
    assert mediator.certificate_.ok
    if bans == 3:
        allowed = [np.flatnonzero(own).tolist() for own in mediator.allowed_]
        assert [0, 2] in allowed
        assert len(mediator.bans_) == 3


@pytest.mark.slow  # importing axelrod takes half a minute
def test_axelrod_tournament():
    pytest.importorskip("axelrod", reason="axelrod isn't installed")
    game = load_axelrod_metagame(repetitions=1)
    np.testing.assert_allclose(game.payoffs_, CLEAN_AXELROD, atol=1e-12)
    assert game.designs_[0] == (
        "Cooperator",
        "Defector",
        "Tit For Tat",
        "Grudger",
        "Win-Stay Lose-Shift",
    )


def test_attitudes_of_openai_by_default():
    game = load_llm_attitudes().games["openai_default"]
    found = MetaGameSolver("pure").fit(game)
    np.testing.assert_allclose(found.welfare_, [3.628826, 5.991808, 5.980912])
    assert found.price_of_anarchy_ == pytest.approx(1.651171, abs=2e-6)
    assert found.price_of_stability_ == pytest.approx(1)
    assert extremes("ce", game)[1] == pytest.approx(3.628826)
    one = CertificationMediator(max_bans=1).fit(game)
    assert one.bans_ == [("row", "Aggressive")]
    assert one.welfare_ == pytest.approx(5.980912)
    assert CertificationMediator(max_bans=2).fit(game).welfare_ == pytest.approx(5.991808)


def test_attitudes_of_anthropic_by_default():
    game = load_llm_attitudes().games["anthropic_default"]
    worst = MetaGameSolver("mixed", select="worst").fit(game)
    assert worst.welfare_[0] == pytest.approx(3.109586, abs=1e-6)
    x = worst.distributions_[0].sum(axis=1)
    np.testing.assert_allclose(x, [0.94396, 0, 0.05604], atol=1e-5)


def test_attitudes_of_anthropic_with_noise():
    game = load_llm_attitudes().games["anthropic_prose_noise"]
    assert profiles("pure", game) == {("Neutral", "Neutral")}
    np.testing.assert_allclose(extremes("pure", game), 4.962952)
    target = SubsidyMediator(("Cooperative", "Cooperative")).fit(game)
    np.testing.assert_allclose(target.payments_[:, 1, 1], 0.020178, atol=1e-9)
    assert welfare(DelegationMediator(), game) == pytest.approx(5.022682)
    ranked = MetaGameSolver("alpharank", alpha=1.0, population=50).fit(game)
    expected = [
        0.000335,
        0.000796,
        0.000957,
        0.000796,
        0.067582,
        0.182813,
        0.000957,
        0.182813,
        0.562952,
    ]
    np.testing.assert_allclose(ranked.distributions_[0].ravel(), expected, atol=6e-7)


def test_attitudes_of_openai_with_noise():
    game = load_llm_attitudes().games["openai_prose_noise"]
    found = MetaGameSolver("pure").fit(game)
    assert list(found.solutions_[0]) == [("Cooperative", "Cooperative")]
    assert found.welfare_.tolist() == pytest.approx([5.474856])
    assert found.price_of_anarchy_ == pytest.approx(1)


def test_coopeval():
    efficient = {("0", "2", "4")[k] for k in range(3)}
    assert profiles("pure", COOPEVAL) == set(product(efficient, repeat=2))
    np.testing.assert_allclose(extremes("pure", COOPEVAL), 2)
    game = AgentDesignGame.from_payoffs(COOPEVAL)
    assert game.welfare().max() == pytest.approx(8 / 3)
    assert game.welfare().mean() == pytest.approx(2.1944, abs=1e-4)
    assert extremes("cce", COOPEVAL)[0] == pytest.approx(13 / 6)
    assert welfare(DelegationMediator(), COOPEVAL) == pytest.approx(8 / 3)
