"""Rules for one switch at a time that jump: the Fibonacci seesaw and least index with blocks."""

from itertools import product

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from equipoise.datasets import (
    make_lemm,
    make_murty_lemm,
    make_pi_cycle_lemm,
    make_vi_divergent_lemm,
)
from equipoise.games import LEMM, SimplePolicyIteration
from equipoise.games.equations.block_rule import eliminate, largest_block

FIBONACCI = [1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377]


@pytest.mark.parametrize("kind", ["ssg", "absolutely_halting", "halting", "w"])
@pytest.mark.parametrize("seed", range(4))
def test_rules_find_the_planted_solution(kind, seed):
    made = make_lemm(6, 2, kind=kind, random_state=seed)
    for rule in ("fibonacci_seesaw", "block_least_index"):
        solver = SimplePolicyIteration(rule=rule).fit(made.problem)
        np.testing.assert_allclose(solver.value_, made.value, rtol=1e-7, atol=1e-7)
        assert solver.status_ == "optimal"


def test_seesaw_evaluates_at_most_a_fibonacci_number_of_policies():
    """From every start, on cubes of every small dimension; least index needs 2^n there."""
    for n in range(2, 8):
        problem = make_murty_lemm(n).problem
        for start in product((0, 1), repeat=n):
            solver = SimplePolicyIteration(rule="fibonacci_seesaw").fit(problem, policy_init=start)
            assert solver.value_.tolist() == [0.0] * (n - 1) + [1.0]
            assert solver.n_evaluations_ <= FIBONACCI[n]
    for seed in range(30):
        problem = make_lemm(8, 2, kind="halting", random_state=seed).problem
        solver = SimplePolicyIteration(rule="fibonacci_seesaw").fit(problem)
        assert solver.n_evaluations_ <= FIBONACCI[(np.diff(problem.indptr) == 2).sum()]


@pytest.mark.parametrize("rule", ["fibonacci_seesaw", "block_least_index"])
def test_ties_and_cycling_systems_are_solved_from_every_start(rule):
    solution = {make_pi_cycle_lemm: [4.12, 3, -1.4], make_vi_divergent_lemm: [1, 0]}
    for make, value in solution.items():
        problem = make().problem
        for start in product(*(range(k) for k in np.diff(problem.indptr))):
            solver = SimplePolicyIteration(rule=rule).fit(problem, policy_init=start)
            np.testing.assert_allclose(solver.value_, value, atol=1e-12)


def test_many_actions_in_blocks():
    made = make_lemm(9, 4, kind="w", random_state=3)
    for pick in ("largest", "first", "random"):
        solver = SimplePolicyIteration(
            rule="block_least_index", order="random", pick=pick, random_state=0
        ).fit(made.problem)
        np.testing.assert_allclose(solver.value_, made.value, rtol=1e-7, atol=1e-7)


def test_a_block_takes_what_is_absolutely_halting():
    """E1 beside E2: only E1's nodes form a block, however E2's policy is held."""
    text = [
        "x1 = max(0, 3 - 0.8*x3)",
        "x2 = max(-2 - 0.8*x3, 3)",
        "x3 = max(1 - 0.8*x2, -0.8*x1)",
        "y1 = max(2.5 - 1.5*y1 + 1.5*y2, 1.5 - 0.5*y1 + 1.5*y2)",
        "y2 = 0.5 - 0.5*y1",
    ]
    problem = LEMM.from_equations(text)
    block = largest_block(problem, np.zeros(5, dtype=np.int64), np.arange(5), 3)
    assert block is not None and block.nodes.tolist() == [0, 1, 2]
    np.testing.assert_allclose(block.problem.A.toarray(), problem.A.toarray()[:6, :3])
    solver = SimplePolicyIteration(rule="block_least_index").fit(problem)
    np.testing.assert_allclose(solver.value_, [4.12, 3, -1.4, 1, 0], atol=1e-12)


def test_elimination_keeps_values_and_determinants():
    made = make_lemm(8, 3, kind="absolutely_halting", random_state=5)
    problem, rng = made.problem, np.random.default_rng(0)
    kept, held = np.array([5, 0, 3]), np.array([1, 2, 4, 6, 7])
    for _ in range(5):
        policy = rng.integers(0, np.diff(problem.indptr))
        part = eliminate(problem, policy, kept, held)
        np.testing.assert_allclose(part.evaluate(policy[kept]), problem.evaluate(policy)[kept])
        Q = problem.policy_matrix(policy)[0].toarray()
        whole = np.linalg.det(np.eye(8) - Q)
        own = np.linalg.det(np.eye(5) - Q[np.ix_(held, held)])
        reduced = np.linalg.det(np.eye(3) - part.policy_matrix(policy[kept])[0].toarray())
        assert reduced * own == pytest.approx(whole)


def test_held_nodes_without_a_value_make_no_block():
    problem = LEMM.from_equations(["x = max(0.5*y, 1)", "y = y - x + 3"])
    assert eliminate(problem, np.zeros(2, dtype=np.int64), np.array([0]), np.array([1])) is None


def test_what_the_seesaw_refuses():
    many = make_lemm(4, 3, kind="ssg", random_state=0).problem
    with pytest.raises(ValueError, match="at most 2 actions a node, and node"):
        SimplePolicyIteration(rule="fibonacci_seesaw").fit(many)
    with pytest.raises(ValueError, match="at most 25 nodes with a choice, got 26"):
        SimplePolicyIteration(rule="fibonacci_seesaw").fit(make_murty_lemm(26).problem)
    with pytest.raises(ValueError, match="order='reverse' needs rule='least_index' or"):
        SimplePolicyIteration(rule="fibonacci_seesaw", order="reverse").fit(
            make_murty_lemm(3).problem
        )


def test_a_cube_without_a_sink_is_seen():
    """x = max(1, 2 x + 1): the values 1 and -1 of its two policies are both violated."""
    problem = LEMM.from_equations("x = max(1, 2*x + 1)")
    with pytest.warns(ConvergenceWarning, match="violated in every node in which they differ"):
        solver = SimplePolicyIteration(rule="fibonacci_seesaw").fit(problem)
    assert solver.status_ == "not_W" and solver.n_evaluations_ == 2


@pytest.mark.parametrize("rule", ["fibonacci_seesaw", "block_least_index"])
def test_limits_and_callbacks_stop_the_search(rule):
    problem = LEMM.from_equations(
        [
            "x = max(1 - 3*y, 0)",
            "y = max(0.25 + 1.5*x, -1 + 0.5*y)",
            "z = max(2*y - x - 9*z, 0.5*z)",
        ]
    )
    start = np.array([0, 1, 1])
    free = SimplePolicyIteration(rule=rule).fit(problem, policy_init=start)
    assert free.n_iter_ > 0
    with pytest.warns(ConvergenceWarning, match="stopped after 0 switches"):
        solver = SimplePolicyIteration(rule=rule, max_switches=0).fit(problem, policy_init=start)
    assert solver.n_iter_ == 0
    seen = []
    stop = SimplePolicyIteration(rule=rule, callback=lambda *step: seen.append(step) or True)
    with pytest.warns(ConvergenceWarning, match="stopped by the callback after 1 switches"):
        stop.fit(problem, policy_init=start)
    (step,) = seen
    assert step[0] == 1 and step[1].shape == (3,)
