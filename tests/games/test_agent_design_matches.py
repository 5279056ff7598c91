"""From logs of matches to meta-games: estimates, pooling, uncertainty, errors, model selection."""

import json
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from equipoise.datasets import load_coopeval, load_glee, make_agent_design_matches
from equipoise.games import (
    AgentDesignGame,
    CertificationMediator,
    CorrelatedMediator,
    DelegationMediator,
    DisclosureMediator,
    MarketChoiceMediator,
    MatchSplitter,
    MetaGameSolver,
    SubsidyMediator,
    TransferMediator,
    compare_mediators,
    technology_audit,
)


def wide(rows, **columns):
    frame = pd.DataFrame(rows, columns=["design_a", "design_b", "payoff_a", "payoff_b"])
    return frame.assign(**columns)


def log(kind="prisoners", **kw):
    return make_agent_design_matches(kind, random_state=0, **{"n_designs": 2, **kw})


def test_means_and_errors_are_those_of_a_groupby():
    matches = make_agent_design_matches("random", n_matches=7, random_state=0)
    game = AgentDesignGame(symmetric=False).fit(matches)
    table = matches.pivot(index="match_id", columns="stakeholder", values=["design", "payoff"])
    keys = [table["design"][f"stakeholder {i}"] for i in range(2)]
    for i in range(2):
        groups = table["payoff"][f"stakeholder {i}"].astype(float).groupby(keys)
        for profile, mean in groups.mean().items():
            at = game.profile_index(profile)
            assert game.payoffs_[(i, *at)] == pytest.approx(mean)
        for profile, error in groups.sem().items():
            assert game.stderr_[(i, *game.profile_index(profile))] == pytest.approx(error)
    assert (game.counts_ == 7).all()
    assert game.n_matches_ == 63


@pytest.mark.parametrize("n", [2, 3])
def test_without_noise_the_truth_comes_back(n):
    matches = log("public_goods", n_stakeholders=n, n_matches=1, noise=0.0)
    game = AgentDesignGame().fit(matches)
    truth = AgentDesignGame.from_payoffs(matches.attrs["payoffs"])
    np.testing.assert_allclose(game.payoffs_, truth.payoffs_, atol=1e-12)
    pooled = AgentDesignGame(symmetric=True).fit(matches)
    np.testing.assert_allclose(pooled.payoffs_, truth.payoffs_, atol=1e-12)


def test_layouts_agree():
    matches = log(n_matches=3)
    game = AgentDesignGame(symmetric=False).fit(matches)
    pairs = matches.pivot(index="match_id", columns="stakeholder", values=["design", "payoff"])
    columns = {f"{a}_{b}": pairs[a][b].to_numpy() for a, b in pairs.columns}
    side = AgentDesignGame(symmetric=False).fit(pd.DataFrame(columns))
    np.testing.assert_allclose(side.payoffs_, game.payoffs_)
    cells = {}
    for _, row in pd.DataFrame(columns).iterrows():
        key = (row["design_stakeholder 0"], row["design_stakeholder 1"])
        cells.setdefault(key, []).append([row["payoff_stakeholder 0"], row["payoff_stakeholder 1"]])
    mapped = AgentDesignGame(symmetric=False).fit({k: np.array(v) for k, v in cells.items()})
    np.testing.assert_allclose(mapped.payoffs_, game.payoffs_)
    shuffled = AgentDesignGame(symmetric=False).fit(matches.sample(frac=1, random_state=1))
    order = [shuffled.designs_[0].index(a) for a in game.designs_[0]]
    who = [shuffled.stakeholders_.index(s) for s in game.stakeholders_]
    back = shuffled.payoffs_[who]
    if who != [0, 1]:
        back = back.transpose(0, 2, 1)
    np.testing.assert_allclose(back[:, order][:, :, order], game.payoffs_)


def test_mediators_stack():
    # A ban first, then a subsidy for what is left: cheaper than the subsidy alone.
    game = AgentDesignGame().fit(log(n_designs=3))
    banned = CertificationMediator(max_bans=1).fit(game)
    both = SubsidyMediator().fit(banned.mediated_game_)
    assert both.welfare_ == pytest.approx(game.welfare().max())
    assert both.cost_ <= SubsidyMediator().fit(game).cost_ + 1e-9


def test_polars_frames():
    pl = pytest.importorskip("polars", reason="polars isn't installed")
    matches = log(n_matches=3)
    game = AgentDesignGame().fit(pl.DataFrame(matches.to_dict(orient="list")))
    np.testing.assert_allclose(game.payoffs_, AgentDesignGame().fit(matches).payoffs_)


def test_pooling_counts_matches_not_rows():
    rows = [
        ("x", "x", 1, 3),
        ("x", "x", 2, 4),
        ("x", "y", 5, 6),
        ("y", "x", 8, 7),
        ("y", "y", 0, 0),
    ]
    game = AgentDesignGame(symmetric=True).fit(wide(rows))
    np.testing.assert_array_equal(game.payoffs_[1], game.payoffs_[0].T)
    np.testing.assert_allclose(game.payoffs_[0], [[2.5, 6], [7, 0]])
    np.testing.assert_array_equal(game.counts_, [[2, 2], [2, 1]])
    assert game.stderr_[0, 0, 0] == pytest.approx(stats.sem([2, 3]))  # of the roles' means
    assert np.isnan(game.stderr_[0, 1, 1])


def test_roles_are_pooled_only_if_they_look_alike():
    assert AgentDesignGame().fit(log()).symmetric_
    assert not AgentDesignGame().fit(log("random")).symmetric_
    biased = log()
    biased.loc[biased["stakeholder"] == "stakeholder 0", "payoff"] += 3.0
    assert not AgentDesignGame().fit(biased).symmetric_
    assert not AgentDesignGame().fit(log(noise=0.0).assign(
        payoff=lambda f: f["payoff"] + (f["stakeholder"] == "stakeholder 0")
    )).symmetric_  # fmt: skip


def test_weights_are_frequencies():
    rows = [("x", "p", 1.0, 0.0), ("x", "p", 4.0, 3.0), ("y", "p", 2.0, 2.0), ("y", "p", 2.5, 1.0)]
    weighted = AgentDesignGame().fit(wide(rows, weight=[3, 1, 2, 1]))
    repeated = AgentDesignGame().fit(wide([rows[0]] * 3 + [rows[1]] + [rows[2]] * 2 + [rows[3]]))
    for name in ("payoffs_", "stderr_", "counts_"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name))


def test_states():
    parts = [
        log(n_matches=10).assign(state="hard"),
        make_agent_design_matches("coordination", n_designs=2, n_matches=30, random_state=1).assign(
            state="easy", design=lambda f: f["design"].map(
                {"standard 0": "defect", "standard 1": "cooperate"}
            )
        ),
    ]  # fmt: skip
    parts[1]["match_id"] += 1000
    for part in parts:
        part.attrs = {}
    game = AgentDesignGame().fit(pd.concat(parts))
    assert game.states_ == ("hard", "easy")
    np.testing.assert_allclose(game.prior_, [0.25, 0.75])
    np.testing.assert_allclose(game.payoffs_, np.tensordot([0.25, 0.75], game.payoffs_by_state_, 1))
    alone = AgentDesignGame(symmetric=game.symmetric_).fit(parts[0])
    np.testing.assert_allclose(game.payoffs_by_state_[0], alone.payoffs_)
    disclosed = DisclosureMediator().fit(game)
    assert disclosed.certificate_.ok
    assert disclosed.score(game) == pytest.approx(disclosed.welfare_)
    assert disclosed.recommend(0, state="easy") == ("cooperate", "cooperate")
    assert MarketChoiceMediator().fit(game).environment_ == "easy"


def test_costs_and_utility():
    matches = log(n_matches=4)
    plain = AgentDesignGame().fit(matches)
    costly = AgentDesignGame(costs={"defect": 2.0}).fit(matches)
    k = plain.designs_[0].index("defect")
    expected = plain.payoffs_.copy()
    expected[0, k], expected[1, :, k] = expected[0, k] - 2, expected[1, :, k] - 2
    np.testing.assert_allclose(costly.payoffs_, expected)
    one = AgentDesignGame(symmetric=False, costs={"stakeholder 1": {"defect": 2.0}}).fit(matches)
    unpooled = AgentDesignGame(symmetric=False).fit(matches)
    np.testing.assert_allclose(one.payoffs_[0], unpooled.payoffs_[0])
    doubled = AgentDesignGame(utility=lambda y: 2 * y).fit(matches)
    np.testing.assert_allclose(doubled.payoffs_, 2 * plain.payoffs_)


def test_missing_profiles():
    rows = [(a, b, i + j, 10 * i) for i, a in enumerate("xyz") for j, b in enumerate("pq")]
    frame = wide(rows[:-1])
    with pytest.raises(ValueError, match=r"\('z', 'q'\)"):
        AgentDesignGame().fit(frame)
    smaller = AgentDesignGame(missing="restrict").fit(frame)
    assert smaller.counts_.all()
    assert smaller.counts_.size == 4
    added = AgentDesignGame(missing="additive").fit(frame)
    assert added.imputed_.sum() == 1
    assert added.payoffs_[:, 2, 1] == pytest.approx([3, 20])  # the truth is additive here


def test_nash_certificates_cover_the_truth():
    failures = 0
    for seed in range(200):
        matches = make_agent_design_matches("random", n_designs=2, n_matches=8, random_state=seed)
        truth = np.array(matches.attrs["payoffs"])
        game = AgentDesignGame(symmetric=False).fit(matches)
        z = (0, 0)
        bound = game.certify_nash(z).max_violation
        gain = max(truth[0, 1, 0] - truth[0, 0, 0], truth[1, 0, 1] - truth[1, 0, 0])
        failures += gain > bound
    assert failures <= 17  # 5% of 200 is 10; 17 is the 99% quantile of Bin(200, 0.05)


def test_robust_subsidies_cost_more_and_certify():
    game = AgentDesignGame().fit(log())
    target = ("cooperate", "cooperate")
    plain, robust = (SubsidyMediator(target, robust=r).fit(game) for r in (False, True))
    assert robust.cost_ > plain.cost_
    bound = game.certify_nash(target)
    largest = robust.payments_[(slice(None), *game.profile_index(target))].max()
    assert largest == pytest.approx(bound.max_violation)


def test_bootstrap():
    same = AgentDesignGame(random_state=0).fit(log(noise=0.0))
    table = SubsidyMediator().fit(same).audit(50)
    np.testing.assert_allclose(table["lower"], table["upper"])
    game = AgentDesignGame(random_state=0).fit(log(n_matches=200))
    draws = np.concatenate(list(game.bootstrap(400)))
    np.testing.assert_allclose(draws.mean(axis=0), game.payoffs_, atol=0.02)
    np.testing.assert_allclose(draws.std(axis=0), game.stderr_, rtol=0.2)
    np.testing.assert_allclose(draws[:, 1], draws[:, 0].transpose(0, 2, 1))  # roles stay pooled
    again = np.concatenate(list(game.bootstrap(400)))
    np.testing.assert_array_equal(draws, again)
    mediator = DelegationMediator().fit(game)
    first, second = mediator.audit(100), mediator.audit(100, n_jobs=2)
    pd.testing.assert_frame_equal(first, second)
    gain = first.set_index("quantity").loc["gain"]
    assert gain["lower"] < 4 < gain["upper"]


def test_single_matches_warn():
    game = AgentDesignGame().fit(log(n_matches=1))
    with pytest.warns(UserWarning, match="one match"):
        list(game.bootstrap(3))
    with pytest.raises(ValueError, match="standard errors"):
        AgentDesignGame(symmetric=False).fit(log(n_matches=1)).certify_nash((0, 0))


def test_suggested_matches_are_the_doubtful_ones():
    u = np.zeros((2, 2, 2))
    u[0] = [[1.0, 5.0], [0.99, 0.0]]
    u[1] = [[1.0, 0.0], [5.0, 0.0]]
    game = AgentDesignGame.from_payoffs(u, counts=np.full((2, 2), 9), stderr=np.full(u.shape, 0.05))
    profiles = game.suggest_matches(2)[["player 0", "player 1"]].to_numpy().tolist()
    assert sorted(profiles) == [["0", "0"], ["1", "0"]]


def test_scores_align_names():
    matches = make_agent_design_matches("prisoners", n_designs=3, random_state=0)
    mediator = DelegationMediator().fit(matches)
    mixed = matches.iloc[::-1]
    assert mediator.score(mixed) == pytest.approx(mediator.score(matches))
    with pytest.raises(ValueError, match="lacks the designs"):
        mediator.score(log())


def test_grid_search_over_matches():
    matches = log("prisoners", n_designs=2)
    cv = MatchSplitter(3, random_state=0)
    search = GridSearchCV(SubsidyMediator(), {"budget": [0.0, 1.0, 10.0]}, cv=cv).fit(matches)
    assert search.best_params_ == {"budget": 10.0}
    for train, test in cv.split(matches):
        ids = matches["match_id"].to_numpy()
        assert not set(ids[train]) & set(ids[test])
        cells = matches.iloc[test].groupby("match_id")["design"].agg(tuple)
        assert cells.value_counts().nunique() == 1
    with pytest.raises(ValueError, match="fewer than n_splits"):
        next(MatchSplitter(31).split(matches))


def test_comparison():
    game = AgentDesignGame(random_state=0).fit(log())
    mediators = {
        "advice": CorrelatedMediator(),
        "pay": SubsidyMediator(),
        "law": CertificationMediator(),
    }
    table = compare_mediators(game, mediators, n_bootstrap=60).set_index("mediator")
    assert table["certified"].all()
    assert table.loc["pay", "welfare"] == pytest.approx(game.welfare().max())
    assert (table["gain_lower"] <= table["gain"] + 1e-9).all()
    assert "welfare" in str(SubsidyMediator().fit(game).explain())
    assert "NOT" not in str(game.explain())


def test_a_design_that_nobody_deploys_decides():
    # In "strict" all is worth 5; in "open" the third design breaks the bad equilibrium's rival.
    calm = np.array([[2.5, 0, 0], [0, 2.4, 0], [0, 0, 0]])
    tempting = np.array([[3, 0, 0], [0, 1, 0], [4, 0.5, 0]])
    games = {"open": np.array([tempting, tempting.T]), "strict": np.array([calm, calm.T])}
    table = technology_audit(games).set_index("design")
    assert table.loc["2", "with"] == "strict"
    assert table.loc["2", "without"] == "open"
    assert table.loc["2", "poisoned"]
    assert table.loc["2", "release brings player 0"] == pytest.approx(-0.5)
    with pytest.raises(ValueError, match="no environment"):
        technology_audit(games, designs=["9"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.iloc[:-1], "every match needs each"),
        (lambda f: pd.concat([f, f.iloc[:1]]), "twice"),
        (lambda f: f.assign(payoff=np.nan), "NaN"),
        (lambda f: f.drop(columns="design"), "lack the columns"),
        (lambda f: f.drop(columns="stakeholder"), "stakeholder"),
        (lambda f: f.assign(weight=0.0), "weight"),
        (lambda f: f.iloc[:0], "empty"),
        (lambda f: f.assign(state=np.arange(len(f))), "state differs"),
    ],
)
def test_bad_logs(change, message):
    with pytest.raises(ValueError, match=message):
        AgentDesignGame().fit(change(log(n_matches=2)))


def test_bad_arguments():
    u = np.array([[[3.0, 0], [5, 1]], [[3, 5], [0, 1]]])
    for mediator, message in [
        (SubsidyMediator(("9", "0")), "not in the game"),
        (SubsidyMediator(budget=-1.0), "budget"),
        (TransferMediator(("0",)), "must hold 2 designs"),
        (DelegationMediator(stability="strong", punishment="none"), "minimax"),
        (DelegationMediator(max_coalition=1), "strong"),
        (DelegationMediator(punishment={0: [0.5, 0.6], 1: [1, 0]}), "distribution"),
        (CertificationMediator(ban_costs=[[1.0], [1.0, 1.0]]), "lengths"),
        (SubsidyMediator("correlated", margin=1.0), "correlated"),
        (SubsidyMediator(robust=True), "standard errors"),
    ]:
        with pytest.raises(ValueError, match=message):
            mediator.fit(u)
    with pytest.raises(ValueError, match="prior"):
        DisclosureMediator(prior=[1, 0]).fit({"a": u, "b": u})
    with pytest.raises(ValueError, match="column 'state'"):
        DisclosureMediator().fit(u)
    with pytest.raises(ValueError, match="symmetric"):
        MetaGameSolver("ess").fit(np.array([u[0], u[0]]))
    with pytest.raises(NotFittedError):
        AgentDesignGame().welfare()
    with pytest.raises(ValueError, match="needs matches"):
        SubsidyMediator().fit(u).audit()


def test_an_infeasible_target_says_what_binds():
    u = np.array([[[3.0, 0], [5, 1]], [[3, 5], [0, 1]]])
    short = SubsidyMediator((0, 0), budget=1.0).fit(u)
    assert not short.feasible_
    assert short.gain_ == 0
    with pytest.raises(ValueError, match="costs 4, the budget is 1"):
        short.predict()
    with pytest.raises(ValueError, match=r"cap of 2.*by deploying '1'"):
        TransferMediator((0, 0), cap=1.0).fit(u).predict()
    assert "no policy" in str(short.explain())


def test_a_failed_fit_changes_nothing():
    game = AgentDesignGame().fit(log())
    before = game.payoffs_.copy()
    with pytest.raises(ValueError, match="NaN"):
        game.fit(log().assign(payoff=np.nan))
    np.testing.assert_array_equal(game.payoffs_, before)
    twin = pickle.loads(pickle.dumps(game))
    np.testing.assert_array_equal(next(twin.bootstrap(3)).shape, (3, 2, 2, 2))
    assert clone(game).get_params() == game.get_params()


def test_welfare_below_zero_has_no_price():
    u = -np.array([[[3.0, 6], [1, 5]], [[3, 1], [6, 5]]])
    found = MetaGameSolver("pure").fit(u)
    assert np.isnan(found.price_of_anarchy_)
    assert found.welfare_gap_[0] == pytest.approx(4)


def test_one_design_each():
    u = np.array([[[1.0]], [[2.0]]])
    for mediator in (CorrelatedMediator(), CorrelatedMediator("cce"), DelegationMediator()):
        assert mediator.fit(u).welfare_ == pytest.approx(3)
        assert mediator.certificate_.ok


def test_ranges_that_differ_warn():
    u = np.array([[[1.0, 0], [0, 1]], [[100, 0], [0, 100]]])
    with pytest.warns(UserWarning, match="tenfold"):
        AgentDesignGame.from_payoffs(u)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        AgentDesignGame.from_payoffs(u / u.max(axis=(1, 2), keepdims=True))


def test_simulator_is_repeatable():
    def simulate(profile, rng):
        return [len(profile[0]) + rng.normal(), len(profile[1]) + rng.normal()]

    designs = [["a", "bb"], ["c", "dd", "eee"]]
    first = AgentDesignGame.from_simulator(simulate, designs, 20, seed=3)
    second = AgentDesignGame.from_simulator(simulate, designs, 20, n_jobs=2, seed=3)
    np.testing.assert_array_equal(first.payoffs_, second.payoffs_)
    assert first.payoffs_[1].mean(axis=0) == pytest.approx([1, 2, 3], abs=0.6)


def test_best_response_graph_ends_at_equilibria():
    nx = pytest.importorskip("networkx", reason="networkx isn't installed")
    game = AgentDesignGame().fit(log("chicken"))
    graph = game.best_response_graph()
    sinks = {node for node in graph if graph.out_degree(node) == 0}
    assert sinks == {next(iter(s)) for s in game.equilibria("pure").solutions_}
    assert nx.is_directed_acyclic_graph(graph)


def test_local_copies(tmp_path):
    for k, (offer, accepted) in enumerate([(60, True), (50, False), (0, None)]):
        folder = tmp_path / "glee" / str(k)
        folder.mkdir(parents=True)
        config = {
            "game_type": "bargaining",
            "player_1_args": {"model_name": "m"},
            "player_2_args": {"model_name": "n"},
            "game_args": {"delta_1": 0.9, "delta_2": 0.8},
        }
        (folder / "config.json").write_text(json.dumps(config))
        if accepted is not None:
            pd.DataFrame(
                {
                    "player": ["alice", "bob", "bob", "alice"],
                    "round": [1, 1, 2, 2],
                    "alice_gain": [90, np.nan, offer, np.nan],
                    "bob_gain": [10, np.nan, 100 - offer, np.nan],
                    "decision": ["", "reject", "", "accept" if accepted else "reject"],
                }
            ).to_csv(folder / "game.csv", index=False)
    found = load_glee(tmp_path / "glee")
    assert found.n_skipped == 1
    np.testing.assert_allclose(found.matches[["payoff_alice", "payoff_bob"]], [[54, 32], [0, 0]])
    content = {
        "profile": [
            {
                "players": [
                    {"llm": {"model": "m"}, "type": "CoT"},
                    {"llm": {"model": "n"}, "type": "IO"},
                ],
                "payoffs": {"match 0": {"round 0": [1, 2], "round 1": [3, 4]}, "match 1": [[5, 6]]},
            }
        ]
    }
    file = tmp_path / "matchup_payoffs.json"
    file.write_text(json.dumps(content))
    matches = load_coopeval(file)
    np.testing.assert_allclose(matches[["payoff_0", "payoff_1"]], [[2, 3], [5, 6]])
    assert set(matches["design_0"]) == {"m CoT"}
