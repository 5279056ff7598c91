"""Generators keep what they promise: class, planted solution, weights, seeds."""

import numpy as np
import pytest

from equipoise.datasets import (
    make_american_option_lemm,
    make_gridworld_game,
    make_lemm,
    make_murty_lemm,
    make_pi_cycle_lemm,
    make_ssg_newton_cycle,
    make_vi_divergent_lemm,
)
from equipoise.games import solve_lemm

LABELS = {
    "mdp": "mdp",
    "ssg": "ssg",
    "branching": "halting_branching",
    "absolutely_halting": "absolutely_halting",
    "halting": "halting",
    "w": "w",
}


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("seed", range(3))
def test_class_and_planted_solution(kind, seed):
    made = make_lemm(9, 3, kind=kind, random_state=seed)
    problem = made.problem
    assert problem.classify(random_state=0).label == LABELS[kind]
    np.testing.assert_allclose(problem.T(made.value), made.value, atol=1e-11)
    np.testing.assert_array_equal(problem.greedy(made.value), made.policy)
    np.testing.assert_allclose(problem.evaluate(made.policy), made.value, atol=1e-9)
    if made.weights is not None:
        image = np.maximum.reduceat(abs(problem.A) @ made.weights, problem.indptr[:-1])
        assert (image / made.weights).max() <= 0.95 + 1e-12
    assert make_lemm(9, 3, kind=kind, random_state=seed).problem == problem
    assert make_lemm(9, 3, kind=kind, random_state=seed + 100).problem != problem
    assert (problem.op < 0).any() == (kind != "mdp")


@pytest.mark.parametrize("structure", ["random", "banded", "grid", "layered"])
def test_structures(structure):
    made = make_lemm(100, 2, kind="ssg", structure=structure, random_state=0)
    A = made.problem.A.tocoo()
    owner, column = A.row // 2, A.col
    if structure == "banded":
        distance = np.abs(owner - column)
        assert np.minimum(distance, 100 - distance).max() <= 6
    if structure == "grid":
        steps = np.abs(owner // 10 - column // 10) + np.abs(owner % 10 - column % 10)
        assert steps.max() <= 1
    if structure == "layered":
        assert (column > owner).all()
        assert made.problem.classify().acyclic
    np.testing.assert_allclose(solve_lemm(made.problem).x, made.value, atol=1e-8)


def test_density_and_sizes():
    dense = make_lemm(20, density=1.0, random_state=0).problem
    assert dense.nnz > 8 * dense.m
    assert make_lemm(50, 4, random_state=0).problem.m == 200
    assert make_lemm(5, 1, kind="halting", random_state=0).problem.op.tolist() == [0] * 5
    odd = make_lemm(7, 2, kind="w", random_state=0)
    np.testing.assert_allclose(solve_lemm(odd.problem, random_state=0).x, odd.value, atol=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "easy"}, "kind='easy'"),
        ({"structure": "ring"}, "structure='ring'"),
        ({"n": 0}, "n=0"),
        ({"n_actions": 0}, "n_actions=0"),
        ({"contraction": 1.0}, "contraction=1.0"),
        ({"min_fraction": 2}, "min_fraction=2"),
        ({"density": 0}, "density=0"),
        ({"rescale_sigma": -1}, "rescale_sigma=-1"),
        ({"structure": "grid", "n": 10}, "square number"),
        ({"kind": "halting", "density": 0.5}, "made of blocks"),
        ({"kind": "w", "n": 1}, "n >= 2"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        make_lemm(**{"n": 9, **options})


def test_named_examples_hold_their_solutions():
    examples = (make_pi_cycle_lemm(), make_vi_divergent_lemm(), make_ssg_newton_cycle())
    for made in (*examples, make_murty_lemm(5)):
        assert made.problem.is_solution(made.value)
        np.testing.assert_allclose(made.problem.evaluate(made.policy), made.value, atol=1e-12)
        assert made.problem.A_exact is not None
    with pytest.raises(ValueError, match="n=0"):
        make_murty_lemm(0)


def test_gridworld():
    made = make_gridworld_game((6, 7), 0.1, random_state=1)
    x = solve_lemm(made.problem).x.reshape(6, 7)
    assert x[5, 6] == pytest.approx(1)
    np.testing.assert_allclose(x[made.pits], -1)
    assert np.abs(x).max() <= 1 + 1e-9
    alone = make_gridworld_game((3, 3), 0.0, min_fraction=0, pit_fraction=0, discount=0.5)
    # Without slips and opponents the value is the discount to the power of the distance.
    r, c = np.divmod(np.arange(9), 3)
    np.testing.assert_allclose(solve_lemm(alone.problem).x, 0.5 ** (4 - r - c), atol=1e-9)
    for options in ({"shape": (1, 1)}, {"slip": 0.6}, {"discount": 1.0}):
        with pytest.raises(ValueError, match=next(iter(options))):
            make_gridworld_game(**options)


def test_american_option():
    errors = []
    for n in (100, 400):
        made = make_american_option_lemm(n)
        errors.append(np.abs(solve_lemm(made.problem).x - made.closed_form).max())
    assert errors[1] < errors[0] / 4
    for options in ({"strike": 0}, {"rate": -1}, {"volatility": 0}, {"n": 2}, {"range_factor": 1}):
        with pytest.raises(ValueError, match=next(iter(options))):
            make_american_option_lemm(**options)
    with pytest.raises(ValueError, match="too coarse"):
        make_american_option_lemm(10, volatility=0.01)
