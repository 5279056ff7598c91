"""Bounds for what was never played, single matches, weights, audits of every mediator, reports."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from equipoise.datasets import make_agent_design_matches
from equipoise.games import (
    AgentDesignGame,
    CertificationMediator,
    CommitmentMediator,
    CorrelatedMediator,
    DelegationMediator,
    DisclosureMediator,
    MarketChoiceMediator,
    MatchSplitter,
    ParetoMediator,
    SubsidyMediator,
    TransferMediator,
)
from equipoise.games.agent_design.deviations import pure_equilibria


def wide(rows, **columns):
    frame = pd.DataFrame(rows, columns=["design_a", "design_b", "payoff_a", "payoff_b"])
    return frame.assign(**columns)


def log(kind="prisoners", **kw):
    return make_agent_design_matches(kind, random_state=0, **{"n_designs": 2, **kw})


def partly_played():
    """Two stakeholders, 2 x 3 designs, two profiles never played, payoffs between 0 and 9."""
    rng = np.random.RandomState(0)
    rows = [
        (a, b, *rng.uniform(2, 6, 2))
        for a, b in product("xy", "pqr")
        if (a, b) not in [("x", "q"), ("y", "r")]
        for _ in range(6)
    ]
    return AgentDesignGame(missing="bounds", payoff_bounds=(0.0, 9.0), random_state=0).fit(
        wide(rows)
    )


def corners(game):
    """All payoffs with each unknown one at either end."""
    low, high = game.payoff_ends_
    unknown = np.argwhere(high > low)
    for ends in product((0, 1), repeat=len(unknown)):
        u = low.copy()
        for place, end in zip(unknown, ends, strict=True):
            u[tuple(place)] = (low, high)[end][tuple(place)]
        yield u


def test_certificates_take_the_worst_of_what_was_never_played():
    game = partly_played()
    assert game.imputed_.sum() == 2
    np.testing.assert_allclose(game.payoffs_[:, game.imputed_], 4.5)
    for mediator in (
        CorrelatedMediator(),
        SubsidyMediator(("x", "p")),
        SubsidyMediator(("x", "p"), mode="dominant"),
        TransferMediator(("x", "p")),
        CommitmentMediator(),
        CertificationMediator(max_bans=1),
    ):
        mediator.fit(game)
        worst = max(mediator._certify(u).max_violation for u in corners(game))
        assert mediator.certificate_.max_violation == pytest.approx(worst), mediator
    # These use a payoff on both sides, so their bound may be wider, never narrower.
    for mediator in (CorrelatedMediator("cce"), DelegationMediator(), ParetoMediator()):
        mediator.fit(game)
        worst = max(mediator._certify(u).max_violation for u in corners(game))
        assert mediator.certificate_.max_violation >= worst - 1e-9
    assert "payoff_bounds" in str(game.explain())


def test_nash_certificates_with_bounds():
    game = partly_played()
    found = game.certify_nash(("x", "p"))
    i = game.designs_[1].index("q")
    at = game.profile_index(("x", "p"))
    # Column's deviation to q was never played: it may bring 9, the target's error counts alone.
    c = 6
    own = game.payoffs_[1][at], game.stderr_[1][at]
    bound = 9.0 - own[0] + stats.t.ppf(1 - 0.05 / 3, c - 1) * own[1]
    assert found.max_violation == pytest.approx(bound)
    assert found.worst_deviation == (1, i)
    assert not found.ok
    robust = SubsidyMediator(("x", "p"), robust=True).fit(game)
    assert robust.payments_[(1, *at)] == pytest.approx(bound)
    draws = np.concatenate(list(game.bootstrap(20)))
    np.testing.assert_allclose(draws[:, :, game.imputed_], 4.5)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"missing": "bounds"}, "needs payoff_bounds"),
        ({"missing": "bounds", "payoff_bounds": (1.0, 0.0)}, "needs payoff_bounds"),
        ({"missing": "bounds", "payoff_bounds": (0.0, 1.0)}, "must hold all payoffs"),
        ({"payoff_bounds": (0.0, 1.0)}, "for missing='bounds' only"),
    ],
)
def test_bad_bounds(parameters, message):
    with pytest.raises(ValueError, match=message):
        AgentDesignGame(**parameters).fit(log())


def test_states_refuse_bounds():
    game = partly_played()
    with pytest.raises(ValueError, match="missing='bounds'"):
        DisclosureMediator().fit({"a": game, "b": game})


def test_states_with_a_missing_profile_are_filled_state_by_state():
    parts = [
        wide([("x", "p", 1, 1), ("x", "q", 2, 2), ("y", "p", 3, 3)], state="s"),
        wide([(a, b, 5, 5) for a, b in product("xy", "pq")], state="t"),
    ]
    game = AgentDesignGame(missing="additive", symmetric=False).fit(pd.concat(parts))
    np.testing.assert_allclose(game.payoffs_by_state_[0, 0], [[1, 2], [3, 4]])
    with pytest.warns(UserWarning, match="one match"):
        draws = np.concatenate(list(game.bootstrap(2, by_state=True)))
    np.testing.assert_allclose(draws[0], game.payoffs_by_state_)


def test_frequency_weights_draw_like_repeated_matches():
    rng = np.random.RandomState(0)
    rows = [(a, "p", *rng.normal(size=2)) for a in "xy" for _ in range(6)]
    times = rng.randint(1, 9, len(rows))
    weighted = AgentDesignGame(random_state=0).fit(wide(rows, weight=times))
    repeated = AgentDesignGame(random_state=1).fit(
        wide([row for row, k in zip(rows, times, strict=True) for _ in range(k)])
    )
    first, second = (np.concatenate(list(g.bootstrap(4000))) for g in (weighted, repeated))
    np.testing.assert_allclose(first.mean(axis=0), weighted.payoffs_, atol=0.02)
    np.testing.assert_allclose(first.std(axis=0), second.std(axis=0), rtol=0.06)


@pytest.mark.filterwarnings("error:.*one match:UserWarning")
@pytest.mark.parametrize("symmetric", [False, True])
def test_single_matches_borrow_residuals(symmetric):
    matches = log("random", n_matches=40, noise=2.0) if not symmetric else log(noise=2.0)
    table = matches.pivot(index="match_id", columns="stakeholder", values="design")
    first = table.iloc[:, 0].iloc[0], table.iloc[:, 1].iloc[0]  # a diagonal cell
    alike = (table.iloc[:, 0] == first[0]) & (table.iloc[:, 1] == first[1])
    dropped = set(table.index[alike][1:])
    kept = matches[~matches["match_id"].isin(dropped)]
    game = AgentDesignGame(symmetric=symmetric, random_state=0).fit(kept)
    at = game.profile_index(first)
    draws = np.concatenate(list(game.bootstrap(3000, single="pooled")))[
        (slice(None), slice(None), *at)
    ]
    # Pooled diagonal: the mean of two roles, which are independent here.
    spread = 2.0 / np.sqrt(2) if symmetric else 2.0
    np.testing.assert_allclose(draws.std(axis=0), spread, rtol=0.12)
    np.testing.assert_allclose(draws.mean(axis=0), game.payoffs_[(slice(None), *at)], atol=0.4)
    if symmetric:
        np.testing.assert_array_equal(draws[:, 0], draws[:, 1])


def test_pooling_needs_residuals():
    game = AgentDesignGame(symmetric=False).fit(log(n_matches=1))
    with pytest.raises(ValueError, match="two or more matches"):
        list(game.bootstrap(3, single="pooled"))
    for bad in ({"n": 0}, {"n": 1.5}, {"single": "drop"}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            AgentDesignGame().fit(log()).bootstrap(**bad)


def test_summary_and_probabilities_are_those_of_the_replicates():
    game = AgentDesignGame(random_state=0).fit(log("chicken", n_matches=6, noise=3.0))
    summary = game.bootstrap_summary(150).set_index("quantity")
    masks, prices = [], []
    for block in game.bootstrap(150):
        for u in block:
            mask, W = pure_equilibria(u), u.sum(axis=0)
            masks.append(mask)
            if mask.any() and W[mask].min() > 0:
                prices.append(W.max() / W[mask].min())
    np.testing.assert_allclose(game.equilibrium_probabilities(150), np.mean(masks, axis=0))
    row = summary.loc["price of anarchy"]
    assert row["share"] == pytest.approx(len(prices) / 150)
    np.testing.assert_allclose(row[["lower", "upper"]], np.percentile(prices, [2.5, 97.5]))
    same = np.mean([(m == pure_equilibria(game.payoffs_)).all() for m in masks])
    assert summary.loc["same equilibria", "lower"] == pytest.approx(same)
    exact = AgentDesignGame(random_state=0).fit(log(noise=0.0))
    table = exact.bootstrap_summary(20)
    np.testing.assert_allclose(table["lower"], table["upper"])
    assert table.set_index("quantity").loc["price of anarchy", "estimate"] == pytest.approx(3)


def test_uniform_error_is_hoeffdings():
    game = AgentDesignGame(symmetric=False).fit(log(n_matches=50, noise=0.0))
    expected = 5 * np.sqrt(np.log(2 * 2 * 4 / 0.1) / (2 * 50))
    assert game.uniform_error(5.0, alpha=0.1) == pytest.approx(expected)
    assert AgentDesignGame.from_payoffs(game.payoffs_).uniform_error(1.0) == np.inf
    with pytest.raises(ValueError, match="payoff_range"):
        game.uniform_error(0.0)
    misses = 0
    rng = np.random.RandomState(0)
    for _ in range(50):
        cells = {(a, b): rng.randint(0, 2, (20, 2)) for a, b in product("xy", "pq")}
        found = AgentDesignGame(symmetric=False).fit(cells)
        misses += np.abs(found.payoffs_ - 0.5).max() > found.uniform_error(1.0, alpha=0.2)
    assert misses <= 10


def test_rounds_of_a_match_count_once():
    rows = [
        (m, who, "xy"[m % 2], t, 10 * m + t + i)
        for m in range(4)
        for i, who in enumerate("ab")
        for t in range(3)
    ]
    frame = pd.DataFrame(rows, columns=["match_id", "stakeholder", "design", "time", "payoff"])
    game = AgentDesignGame(symmetric=True, missing="additive").fit(
        frame.sample(frac=1, random_state=0)
    )
    assert game.n_matches_ == 4
    mean = frame.groupby(["match_id", "stakeholder", "design"], as_index=False)["payoff"].mean()
    again = AgentDesignGame(symmetric=True, missing="additive").fit(mean)
    order = [again.designs_[0].index(a) for a in game.designs_[0]]
    np.testing.assert_allclose(game.payoffs_, again.payoffs_[:, order][:, :, order])
    for change, message in [
        (lambda f: f.assign(time=0), "twice at one time"),
        (lambda f: f.assign(time=np.nan), "time holds missing"),
        (lambda f: f.iloc[1:], "same times"),
        (lambda f: f.assign(design=np.resize(list("xyz"), len(f))), "design differs"),
    ]:
        with pytest.raises(ValueError, match=message):
            AgentDesignGame().fit(change(frame))
    with pytest.raises(ValueError, match="long layout"):
        AgentDesignGame().fit(wide([("x", "p", 1, 2)], time=0))
    folds = list(MatchSplitter(2, random_state=0).split(frame))
    for train, test in folds:
        ids = frame["match_id"].to_numpy()
        assert not set(ids[train]) & set(ids[test])


def by_state():
    parts = [
        make_agent_design_matches("prisoners", n_designs=2, random_state=0).assign(state="hard"),
        make_agent_design_matches("chicken", n_designs=2, random_state=1).assign(
            state="easy",
            design=lambda f: f["design"].map({"swerve": "cooperate", "dare": "defect"}),
        ),
    ]
    parts[1]["match_id"] += 1000
    for part in parts:
        part.attrs = {}
    return parts


@pytest.mark.parametrize("mediator", [DisclosureMediator(), MarketChoiceMediator()], ids=str)
def test_audits_of_several_tables(mediator):
    parts = by_state()
    game = AgentDesignGame(random_state=0).fit(pd.concat(parts))
    apart = {
        name: AgentDesignGame(random_state=0, symmetric=game.symmetric_).fit(part)
        for name, part in zip(("hard", "easy"), parts, strict=True)
    }
    for source in (game, apart):
        fitted = mediator.fit(source)
        table = fitted.audit(80, n_refit=20).set_index("quantity")
        assert table.loc["welfare", "lower"] < fitted.welfare_ < table.loc["welfare", "upper"]
        assert table.loc["welfare", "estimate"] == pytest.approx(fitted.welfare_)
        assert 0 < table.loc["same choice", "lower"] + (mediator.__class__ is DisclosureMediator)
        refitted = table.loc["welfare, refitted"]
        assert refitted["lower"] <= fitted.welfare_ <= refitted["upper"]
        pd.testing.assert_frame_equal(
            fitted.audit(80, n_refit=20), fitted.audit(80, n_jobs=2, n_refit=20)
        )
        assert "replicates" in str(fitted.explain())
    # Draws of different states are independent, though the games share a seed.
    hard, easy = (np.array([t[k][0, 0, 0] for t in fitted._draw(400, "keep")]) for k in (0, 1))
    assert abs(np.corrcoef(hard, easy)[0, 1]) < 0.2


def test_audit_of_a_mediator_fitted_anew():
    game = AgentDesignGame(random_state=0).fit(log("prisoners", noise=2.0))
    fitted = SubsidyMediator(budget=4.0).fit(game)
    table = fitted.audit(60, n_refit=60).set_index("quantity")
    welfare, cost = [], []
    for u in np.concatenate(list(game.bootstrap(60))):
        other = SubsidyMediator(budget=4.0).fit(u)
        welfare.append(other.welfare_)
        cost.append(other.cost_)
    ends = np.percentile(welfare, [2.5, 97.5]), np.percentile(cost, [2.5, 97.5])
    np.testing.assert_allclose(table.loc["welfare, refitted", ["lower", "upper"]], ends[0])
    np.testing.assert_allclose(table.loc["cost, refitted", ["lower", "upper"]], ends[1])
    for bad in ({"n_bootstrap": 0}, {"n_refit": -1}, {"slack": -1.0}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            fitted.audit(**bad)


def test_results_of_an_earlier_fit_are_gone():
    u = np.array([[[3.0, 0], [5, 1]], [[3, 5], [0, 1]]])
    mediator = DelegationMediator().fit(u)
    assert hasattr(mediator, "security_")
    mediator.set_params(stability="strong").fit(u)
    assert not hasattr(mediator, "security_")


def test_a_bounded_status_quo_is_not_blamed_on_the_policy():
    u = np.random.RandomState(3).normal(size=(3, 3, 3, 3))
    assert not pure_equilibria(u).any()
    mediator = CorrelatedMediator().fit(u)
    assert mediator.exact_
    assert not mediator.status_quo_exact_
    assert "lower bound" in str(mediator.explain())


def test_reports():
    game = AgentDesignGame(random_state=0).fit(log())
    answer = game.explain()
    text, html = str(answer), answer._repr_html_()
    for words in ("bootstrap", "delegate: welfare", "ban one design", "price of anarchy"):
        assert words in text
    assert html.count("<img") == 2
    assert html.count("<table") == 4
    assert answer.to_frame()["equilibrium_share"].between(0, 1).all()
    unseeded = AgentDesignGame().fit(log())
    pd.testing.assert_frame_equal(unseeded.explain().to_frame(), unseeded.explain().to_frame())
    unsure = SubsidyMediator().fit(unseeded)
    assert str(unsure.explain()) == str(unsure.explain())
    known = AgentDesignGame.from_payoffs(game.payoffs_)
    assert "equilibrium_share" not in known.explain().to_frame()
    mediator = SubsidyMediator(margin=0.5).fit(game)
    assert "replicates" in str(mediator.explain())
    assert mediator.explain()._repr_html_().count("<img") == 2
