"""Readers of PRISM's explicit files and of DRN files: models, targets, errors, and the peer."""

import numpy as np
import pytest

from equipoise.games import (
    LEMM,
    LEMMNotUniqueError,
    PolicyIteration,
    halting_transform,
    solve_lemm,
)
from equipoise.games.equations.reachability import end_components, hopeless_states

# Two dice states, a trap, and a choice: from 0 gamble (0.5 goal, 0.5 trap) or go to 1, which
# returns to 0 or pays 0.25; 2 is the goal, 3 the trap.
TRA = """4 6 8
0 0 2 0.5 gamble
0 0 3 0.5 gamble
0 1 1 1 walk
1 0 0 1
1 1 2 0.25
1 1 3 0.75
2 0 2 1
3 0 3 1
"""
LAB = '0="init" 1="goal" 2="bad end"\n0: 0\n2: 1\n3: 2\n'
STA = "(s,high)\n0:(0,false)\n1:(1,true)\n2:(-2,false)\n3:(3,false)\n"
SREW = "# Reward structure\n4 2\n0 2\n1 1/2\n"
TREW = "4 6 2\n0 0 2 10\n1 1 3 4\n"
DRN = """// exported
@type: MDP
@parameters

@reward_models
cost gain
@nr_states
4
@nr_choices
6
@model
state 0 [2, 0] init
//[s=0]
\taction gamble [5, 1]
\t\t2 : 0.5
\t\t3 : 1/2
\taction walk [0, 0]
\t\t1 : 1
state 1 [0.5, 0]
\taction 0 [0, 0]
\t\t0 : 1
\taction 1 [3, 0]
\t\t2 : 0.25
\t\t3 : 0.75
state 2 [0, 0] goal
\taction 0 [0, 0]
\t\t2 : 1
state 3 [0, 0] "bad end"
\taction 0 [0, 0]
\t\t3 : 1
"""


@pytest.fixture
def files(tmp_path):
    texts = {"tra": TRA, "lab": LAB, "sta": STA, "srew": SREW, "trew": TREW, "drn": DRN}
    paths = {}
    for name, text in texts.items():
        paths[name] = tmp_path / f"model.{name}"
        paths[name].write_text(text)
    return paths


def test_chances_of_a_decision_process(files):
    for problem in (
        LEMM.from_prism_explicit(files["tra"], files["lab"], target="goal"),
        LEMM.from_drn(files["drn"], target="goal"),
        LEMM.from_prism_explicit(files["tra"], target=[2]),
        LEMM.from_drn(files["drn"], target=np.array([0, 0, 1, 0], dtype=bool)),
    ):
        # 0 and 1 form an end component: the first holds both ways out.
        assert problem.classify().label == "mdp"
        np.testing.assert_allclose(solve_lemm(problem).x, [0.5, 0.5, 1, 0])
        assert np.diff(problem.indptr).tolist() == [2, 1, 1, 1]
    # The minimiser walks to and fro for ever.
    least = LEMM.from_drn(files["drn"], target="goal", sense="min")
    np.testing.assert_allclose(solve_lemm(least).x, [0, 0, 1, 0])
    # Two players could agree to walk for ever, which isn't halting; they don't want to.
    game = LEMM.from_drn(files["drn"], target="goal", players=["max", "min", "max", "max"])
    with pytest.raises(LEMMNotUniqueError, match="may never end"):
        solve_lemm(game)
    x = solve_lemm(halting_transform(game, 1e-9)).x
    np.testing.assert_allclose(x, [0.5, 0.25, 1, 0], atol=1e-8)
    named = LEMM.from_prism_explicit(files["tra"], target=[2], sta=files["sta"])
    assert named.names == ("s0_highfalse", "s1_hightrue", "sm2_highfalse", "s3_highfalse")
    either = LEMM.from_drn(files["drn"], target=[2, 3], sense="max")
    np.testing.assert_allclose(solve_lemm(either).x, [1, 1, 1, 1])


def test_rewards_until_the_target(files):
    problem = LEMM.from_prism_explicit(
        files["tra"], files["lab"], files["srew"], files["trew"], target=[2, 3], sense="min"
    )
    # 0: 2 + 0.5 * 10 by gambling, 2 + x1; 1: 0.5 + x0, or 0.5 + 0.75 * 4.
    np.testing.assert_allclose(problem.T([1.0, 1.0, 9, 9]), [3, 1.5, 0, 0])
    # Walking for ever is singular, so no class covers it; but it costs, and is left for good.
    solver = PolicyIteration().fit(problem, policy_init=[0, 1, 0, 0])
    np.testing.assert_allclose(solver.value_, [5.5, 3.5, 0, 0])
    states = LEMM.from_prism_explicit(files["tra"], None, files["srew"], target=[2, 3], sense="min")
    np.testing.assert_allclose(states.T([0, 0, 0, 0]), [2, 0.5, 0, 0])
    stored = LEMM.from_drn(files["drn"], target=[2, 3], reward="cost", sense="min")
    assert stored == problem
    gain = LEMM.from_drn(files["drn"], target=[2, 3], reward="gain", sense="min")
    np.testing.assert_allclose(gain.T([0.0, 1, 0, 0]), [1, 0, 0, 0])


def test_chains(tmp_path):
    """Gambler's ruin: with a fair coin the chance of winning is linear."""
    n = 7
    lines = ["0 0 1", f"{n - 1} {n - 1} 1"]
    lines += [f"{i} {j} 0.5" for i in range(1, n - 1) for j in (i - 1, i + 1)]
    tra, trew = tmp_path / "ruin.tra", tmp_path / "ruin.trew"
    tra.write_text(f"{n} {len(lines)}\n" + "\n".join(lines) + "\n")
    chain = LEMM.from_prism_explicit(tra, target=[n - 1])
    np.testing.assert_allclose(solve_lemm(chain).x, np.arange(n) / (n - 1))
    steps = [f"{i} {j} 1" for i in range(1, n - 1) for j in (i - 1, i + 1)]
    trew.write_text(f"{n} {len(steps)}\n" + "\n".join(steps) + "\n")
    duration = LEMM.from_prism_explicit(tra, trew=trew, target=[0, n - 1])
    i = np.arange(n)
    np.testing.assert_allclose(solve_lemm(duration).x, i * (n - 1 - i), atol=1e-9)
    drn = tmp_path / "bare.drn"
    drn.write_text("@type: DTMC\n@nr_states\n2\n@model\nstate 0\n 1 : 1\nstate 1 end\n 1 : 1\n")
    np.testing.assert_allclose(solve_lemm(LEMM.from_drn(drn, target="end")).x, [1, 1])


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("tra", "4 6 8", "4 6 8 1", r"model.tra: line 1, column 7: expected a header"),
        ("tra", "4 6 8", "4 six 8", r"line 1, column 3: count 'six'"),
        ("tra", "4 6 8", "4 5 8", "announces 5 choices, the file has 6"),
        ("tra", "4 6 8", "4 6 9", "announces 9 transitions, the file has 8"),
        ("tra", "0 1 1 1 walk", "0 1 7 1 walk", r"line 4, column 5: state '7' .* 0 to 3"),
        ("tra", "0 1 1 1 walk", "0 1 1 1.5 walk", r"line 4, column 7: probability '1.5'"),
        ("tra", "0 1 1 1 walk", "0 1 1 one walk", r"line 4, column 7: .*not a number"),
        ("tra", "0 1 1 1 walk", "0 1 1", r"line 4, column 6: expected 'source choice"),
        ("tra", "0 1 1 1 walk", "0 1 1 0.5 walk", r"row 1 \(state 0\) sum to 0.5"),
        ("tra", "3 0 3 1\n", "2 1 2 1\n", "state 3 has no choice"),
        ("tra", TRA, "", "the file is empty"),
        ("lab", '1="goal"', "1=goal", r"model.lab: line 1, column 10: expected labels"),
        ("lab", "2: 1", "2: 8", r"line 3, column 4: label '8'"),
        ("lab", "2: 1", "2 1", "expected 'state: label"),
        ("lab", "2: 1", "9: 1", r"line 3, column 1: state '9'"),
        ("sta", "(s,high)", "s,high", "expected the variables"),
        ("sta", "1:(1,true)", "1:(1)", r"model.sta: line 3, column 1: 1 values for 2"),
        ("sta", "3:(3,false)\n", "", "state 3 is missing"),
        ("srew", "1 1/2", "1 1/0", r"model.srew: line 4, column 3: reward '1/0'"),
        ("srew", "1 1/2", "1 inf", r"line 4, column 3: reward 'inf' must be finite"),
        ("srew", "4 2", "3 2", "announces"),
        ("trew", "0 0 2 10", "0 0 1 10", r"model.trew: line 2, column 1: .*no such transition"),
        ("drn", "@type: MDP", "@type: POMDP", "@type is 'POMDP'; allowed"),
        ("drn", "@type: MDP\n", "", "@type is none"),
        ("drn", "@parameters\n", "@parameters\np q\n", "line 4, column 1: models with parameters"),
        ("drn", "@model", "@body", "no line '@model'"),
        ("drn", "@nr_states\n4", "@nr_states\n-4", r"model.drn: line 8, column 1: count '-4'"),
        ("drn", "@nr_states\n4\n", "", "no entry '@nr_states'"),
        ("drn", "@nr_choices\n6", "@nr_choices\n7", "line 10, column 1: the file has 6 choices"),
        ("drn", "[5, 1]", "[5]", r"line 14, column 16: 1 rewards for 2 reward models"),
        ("drn", "[5, 1]", "[5, x]", r"line 14, column 20: reward 'x'"),
        ("drn", "\t\t3 : 1/2", "\t\t3 1/2", r"line 16, column 3: expected 'state'"),
        ("drn", "\t\t3 : 1/2", "\t\t3 : 7", r"line 16, column 7: probability '7'"),
        ("drn", "\t\t3 : 1/2", "\t\t5 : 1/2", r"line 16, column 3: state '5'"),
        ("drn", "state 1 ", "state 2 ", r"line 19, column 7: expected state 1, got 2"),
        ("drn", "state 0 [2, 0] init\n", "", "an action before the first state"),
    ],
)
def test_errors_name_line_and_column(files, name, old, new, message):
    text = files[name].read_text()
    assert old in text
    files[name].write_text(text.replace(old, new, 1))
    explicit = [files[key] for key in ("tra", "lab", "srew", "trew")]

    def read():
        if name == "drn":
            return LEMM.from_drn(files["drn"], target="goal", reward="cost")
        return LEMM.from_prism_explicit(*explicit, target="goal", sta=files["sta"])

    with pytest.raises(ValueError, match=message):
        read()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "nowhere"}, "target='nowhere' is not a label"),
        ({"target": [9]}, "states from 0 to 3"),
        ({"target": []}, "target"),
        ({"target": "goal", "reward": "fame"}, "no reward model 'fame'"),
        ({"target": "goal", "sense": "most"}, "op='most'"),
        ({"target": "goal", "players": ["max"]}, "one for each of 4 states"),
    ],
)
def test_targets_and_players_are_checked(files, options, message):
    with pytest.raises(ValueError, match=message):
        LEMM.from_drn(files["drn"], **options)


def random_model(rng, n):
    """Choices with few successors, some of probability 1, so that end components abound."""
    choices = []
    for _ in range(n):
        rows = []
        for _ in range(rng.randint(1, 4)):
            successors = rng.choice(n, size=rng.randint(1, 3), replace=False)
            chances = rng.dirichlet(np.ones(len(successors)))
            rows.append(dict(zip(successors.tolist(), chances.tolist(), strict=True)))
        choices.append(rows)
    return choices


def write_drn(path, choices, goal):
    count = sum(map(len, choices))
    lines = ["@type: MDP", "@parameters", "", "@reward_models", "", "@nr_states"]
    lines += [str(len(choices)), "@nr_choices", str(count), "@model"]
    for i, rows in enumerate(choices):
        lines.append(f"state {i}{' init' if i == 0 else ''}{' goal' if i in goal else ''}")
        for a, row in enumerate(rows):
            lines.append(f"\taction {a}")
            lines += [f"\t\t{j} : {p!r}" for j, p in sorted(row.items())]
    path.write_text("\n".join(lines) + "\n")


def best_chances(choices, goal, best):
    """The least fixed point, by sweeps from 0."""
    x = np.zeros(len(choices))
    x[list(goal)] = 1
    for _ in range(20000):
        new = [best(sum(p * x[j] for j, p in row.items()) for row in rows) for rows in choices]
        new = np.array(new)
        new[list(goal)] = 1
        if np.abs(new - x).max() < 1e-14:
            break
        x = new
    return x


@pytest.mark.parametrize("seed", range(15))
def test_least_solutions_against_sweeps_from_below(tmp_path, seed):
    rng = np.random.RandomState(seed)
    choices, goal = random_model(rng, 8), {7}
    write_drn(tmp_path / "model.drn", choices, goal)
    for sense, best in (("max", max), ("min", min)):
        problem = LEMM.from_drn(tmp_path / "model.drn", target="goal", sense=sense)
        expected = best_chances(choices, goal, best)
        np.testing.assert_allclose(solve_lemm(problem).x, expected, atol=1e-7)


def test_end_components_and_hopeless_states_by_hand():
    # 0 <-> 1 by free choice; 2 leaves to 3; 3 absorbs. 4 may stay or leave to 2.
    choices = [[{1: 1.0}, {2: 1.0}], [{0: 1.0}], [{3: 0.5, 2: 0.5}], [{3: 1.0}], [{4: 1.0}, {2: 1}]]
    problem = LEMM.from_nodes(
        [("max" if len(rows) > 1 else "affine", [(row, 0) for row in rows]) for rows in choices]
    )
    P, indptr = problem.A, problem.indptr
    component, staying = end_components(P, indptr, np.ones(problem.m, dtype=bool))
    groups = [sorted(np.flatnonzero(component == c).tolist()) for c in set(component) - {-1}]
    assert sorted(groups) == [[0, 1], [3], [4]]
    assert staying.tolist() == [True, False, True, False, True, True, False]
    target = np.arange(5) == 2
    sign = np.where(problem.op == 0, 1, problem.op)
    assert hopeless_states(P, indptr, sign, target).tolist() == [False] * 3 + [True, False]
    assert hopeless_states(P, indptr, -np.ones(5), target).tolist() == [
        True,
        True,
        False,
        True,
        True,
    ]


@pytest.mark.parametrize("seed", range(4))
def test_stormpy_agrees(tmp_path, seed):
    stormpy = pytest.importorskip("stormpy", reason="stormpy is not installed")
    rng = np.random.RandomState(seed)
    path = tmp_path / "model.drn"
    write_drn(path, random_model(rng, 12), {10, 11})
    model = stormpy.build_model_from_drn(str(path))
    for sense in ("max", "min"):
        formula = stormpy.parse_properties(f'P{sense}=? [F "goal"]')[0]
        checked = stormpy.model_checking(model, formula, only_initial_states=False)
        reference = checked.get_value_vector()
        problem = LEMM.from_drn(path, target="goal", sense=sense)
        np.testing.assert_allclose(solve_lemm(problem).x, reference, atol=1e-5)


def test_stormpy_agrees_on_explicit_files(files, tmp_path):
    """Storm reads the same rows under headers of its own."""
    stormpy = pytest.importorskip("stormpy", reason="stormpy is not installed")
    rows = TRA.splitlines()[1:]
    (tmp_path / "storm.tra").write_text("\n".join(["mdp", *rows]) + "\n")
    (tmp_path / "storm.srew").write_text("0 2\n1 0.5\n")
    # Chances of 2; rewards until 2 or 3, at least (at most they are infinite).
    for kind, sense, goal in (("P", "max", [2]), ("P", "min", [2]), ("R", "min", [2, 3])):
        marks = "".join(f"{state} goal\n" for state in goal)
        lab = f"#DECLARATION\ninit goal\n#END\n0 init\n{marks}"
        (tmp_path / "storm.lab").write_text(lab)
        model = stormpy.build_model_from_explicit(
            tmp_path / "storm.tra", tmp_path / "storm.lab", state_rewards=tmp_path / "storm.srew"
        )
        formula = stormpy.parse_properties(f'{kind}{sense}=? [F "goal"]')[0]
        checked = stormpy.model_checking(model, formula, only_initial_states=False)
        srew = files["srew"] if kind == "R" else None
        problem = LEMM.from_prism_explicit(files["tra"], srew=srew, target=goal, sense=sense)
        # With rewards, walking for ever isn't excluded by the classes but costs too much.
        start = [0, int(kind == "R"), 0, 0]
        x = PolicyIteration().fit(problem, policy_init=start).value_
        np.testing.assert_allclose(x, checked.get_value_vector(), atol=1e-5)
