"""Compiled sweeps against a few lines of NumPy, and the graph against SciPy and networkx."""

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest

from equipoise.datasets import make_lemm
from equipoise.games import LEMM, ValueIteration
from equipoise.games.equations import graph, kernels, sweeps
from equipoise.games.equations.determinants import enumerate_radii, enumerate_signs
from equipoise.games.equations.krylov import bicgstab
from equipoise.games.equations.rational import solve_rational
from equipoise.games.equations.solver import BoundedGap
from equipoise.games.equations.sweeps import anderson_candidate
from equipoise.games.equations.weights import contraction_gap, find_weights, wide_gap


def operator(problem, x):
    values = problem.A @ x + problem.b
    nodes = range(problem.n)
    rows = [values[problem.indptr[i] : problem.indptr[i + 1]] for i in nodes]
    return np.array(
        [r.min() if op < 0 else r.max() for r, op in zip(rows, problem.op, strict=True)]
    )


@pytest.fixture(params=["ssg", "absolutely_halting", "branching"])
def made(request):
    return make_lemm(30, 3, kind=request.param, random_state=4)


def test_bellman_and_two_pass_image(made):
    problem = made.problem
    x = np.random.RandomState(0).normal(size=30)
    out, policy = np.empty(30), np.empty(30, dtype=np.int64)
    kernels.bellman(*problem.arrays, x, 0, 30, out, policy)
    np.testing.assert_allclose(out, operator(problem, x), atol=1e-13)
    values, again, other = np.empty(problem.m), np.empty(30), np.empty(30, dtype=np.int64)
    kernels.row_values(*problem.arrays[1:5], x, 0, problem.m, values)
    kernels.best_rows(problem.arrays[0], values, problem.sign, 0, 30, again, other)
    np.testing.assert_array_equal(out, again)
    np.testing.assert_array_equal(policy, other)


def test_gauss_seidel(made):
    problem = made.problem
    rng = np.random.RandomState(0)
    x, order = rng.normal(size=30), rng.permutation(30)
    expected = x.copy()
    for i in order:
        expected[i] += 1.1 * (operator(problem, expected)[i] - expected[i])
    kernels.gauss_seidel(*problem.arrays, order, 1.1, 1, x)
    np.testing.assert_allclose(x, expected, atol=1e-12)


def test_improve_switches_only_above_the_tolerance():
    problem = LEMM.from_equations(["x = max(1, 1.05, 0)", "y = min(3, 2)"])
    policy, movable = np.zeros(2, dtype=np.int64), np.ones(2, dtype=bool)
    assert kernels.improve(*problem.arrays, np.zeros(2), 0.1, movable, policy) == 1
    assert policy.tolist() == [0, 1]
    movable[0] = False
    assert kernels.improve(*problem.arrays, np.zeros(2), 0.0, movable, policy) == 0
    movable[0] = True
    assert kernels.improve(*problem.arrays, np.zeros(2), 0.0, movable, policy) == 1
    assert policy.tolist() == [1, 1]


def test_select_rows(made):
    problem = made.problem
    Q, b = problem.policy_matrix(made.policy)
    pointer, cols = np.empty(31, dtype=np.uint32), np.empty(Q.nnz, dtype=np.uint32)
    coef, offsets = np.empty(Q.nnz), np.empty(30)
    kernels.select_rows(*problem.arrays[:5], made.policy, pointer, cols, coef, offsets)
    np.testing.assert_array_equal(pointer, Q.indptr)
    np.testing.assert_array_equal(cols, Q.indices)
    np.testing.assert_array_equal(coef, Q.data)
    np.testing.assert_array_equal(offsets, b)


def test_images_of_weights(made):
    problem, v = made.problem, made.weights
    first = problem.indptr[:-1]
    largest = np.maximum.reduceat(abs(problem.A) @ v, first)
    np.testing.assert_allclose(contraction_gap(problem, v), v - largest, atol=1e-12)
    smallest = np.minimum.reduceat(problem.A @ v, first)
    np.testing.assert_allclose(wide_gap(problem, v), v - smallest, atol=1e-12)


def test_interval_sweep(made):
    problem = made.problem
    rng = np.random.RandomState(0)
    low = made.value - rng.uniform(1, 2, size=30)
    high = made.value + rng.uniform(1, 2, size=30)
    up, down = problem.A.maximum(0), problem.A.minimum(0)
    expected_low, expected_high = low.copy(), high.copy()
    for i in range(30):
        rows = slice(problem.indptr[i], problem.indptr[i + 1])
        best = np.min if problem.op[i] < 0 else np.max
        lows = (up @ expected_low + down @ expected_high + problem.b)[rows]
        highs = (up @ expected_high + down @ expected_low + problem.b)[rows]
        expected_low[i] = max(expected_low[i], best(lows))
        expected_high[i] = min(expected_high[i], best(highs))
    kernels.interval_sweep(*problem.arrays, np.arange(30), low, high)
    np.testing.assert_allclose(low, expected_low, atol=1e-12)
    np.testing.assert_allclose(high, expected_high, atol=1e-12)


def test_bracket_by_hand_and_nan():
    x, image = np.array([1.0, 2.0]), np.array([1.5, 1.9])
    gap, wide, rounding = np.array([0.5, 0.2]), np.array([1.0, 0.4]), np.zeros(2)
    low, high, residual = kernels.bracket(x, image, gap, wide, rounding, True)
    np.testing.assert_allclose([low, high, residual], [-0.5, 1.0, 0.5])
    low, high, residual = kernels.bracket(x, image, gap, wide, rounding, False)
    np.testing.assert_allclose([low, high, residual], [-1.0, 1.0, 0.5])
    assert kernels.bracket(x, image * np.nan, gap, wide, rounding, True)[2] == np.inf


def test_bound_is_reached():
    """One node: the bound is the error, up to rounding."""
    problem = LEMM.from_equations("x = 0.9*x + 1")
    low, high, _ = BoundedGap(problem, np.ones(1), True)(np.array([4.0]))
    assert low == pytest.approx(6.0)
    assert high == pytest.approx(6.0)


@pytest.mark.parametrize("seed", range(8))
def test_components_against_networkx(seed):
    rng = np.random.RandomState(seed)
    n = 40
    counts = rng.randint(0, 3, size=n)
    start = np.concatenate([[0], np.cumsum(counts)])
    cols = rng.randint(0, n, size=start[-1])
    edges = list(zip(np.repeat(np.arange(n), counts).tolist(), cols.tolist(), strict=True))
    reference = nx.DiGraph(edges)
    reference.add_nodes_from(range(n))
    label, order, bounds = graph.strong_components(start, cols)
    ours = {frozenset(order[a:b].tolist()) for a, b in pairwise(bounds)}
    assert ours == {frozenset(c) for c in nx.strongly_connected_components(reference)}
    assert all(label[i] >= label[j] for i, j in edges)
    assert graph.is_acyclic(start, cols) == nx.is_directed_acyclic_graph(reference)
    swept = graph.sweep_order(label, order, bounds, start, cols)
    assert sorted(swept.tolist()) == list(range(n))
    assert (np.diff(label[swept]) >= 0).all()
    level = graph.component_levels(label, start, cols, len(bounds) - 1)
    for i, j in edges:
        assert label[i] == label[j] or level[label[i]] > level[label[j]]


def test_gray_walk_against_all_determinants():
    rng = np.random.RandomState(3)
    outcomes = []
    for _ in range(80):
        n = rng.randint(1, 5)
        sizes = rng.randint(1, 4, size=n)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        owner = np.repeat(np.arange(n), sizes)
        rows = np.eye(n)[owner] - rng.normal(scale=0.6, size=(starts[-1], n))
        codes = np.stack(np.unravel_index(np.arange(np.prod(sizes)), sizes), axis=1)
        matrices = rows[starts[:-1] + codes]
        signs = np.sign(np.linalg.det(matrices))
        one_sign, policies = enumerate_signs(rows, starts)
        assert one_sign == (abs(signs.sum()) == len(signs))
        if not one_sign:
            found = [np.sign(np.linalg.det(rows[starts[:-1] + p])) for p in policies]
            assert sorted(found) == [-1, 1]
        radius, policy = enumerate_radii(rows, starts)
        radii = np.abs(np.linalg.eigvals(np.eye(n) - matrices)).max(axis=1)
        assert radius == pytest.approx(radii.max())
        Q = np.eye(n) - rows[starts[:-1] + policy]
        assert np.abs(np.linalg.eigvals(Q)).max() == pytest.approx(radius)
        outcomes.append(one_sign)
    assert {True, False} == set(outcomes)


def test_singular_policy_is_found():
    rows = np.array([[1.0, 0], [0, 1], [2, -1], [1.0, -0.5], [0, 1]])
    one_sign, policies = enumerate_signs(rows, np.array([0, 1, 5]))
    assert not one_sign
    assert len(policies) in (1, 2)
    zero = np.array([[0.0]])
    assert enumerate_signs(zero, np.array([0, 1]))[1][0].tolist() == [0]


def test_rational_solve_against_fractions_and_floats():
    from fractions import Fraction

    rng = np.random.RandomState(0)
    for n in (1, 6, 25):
        Q = rng.randint(-5, 6, size=(n, n)) / 16
        b = rng.randint(-9, 9, size=n)
        rows = [{j: Fraction(Q[i, j]) for j in range(n) if Q[i, j]} for i in range(n)]
        x = solve_rational(rows, [Fraction(int(v)) for v in b])
        for i in range(n):
            assert x[i] == sum((c * x[j] for j, c in rows[i].items()), Fraction(int(b[i])))
        expected = np.linalg.solve(np.eye(n) - Q, b)
        np.testing.assert_allclose([float(v) for v in x], expected, rtol=1e-9)
    # Thirds, in a component large enough for p-adic lifting.
    n = 15
    rows = [{(i + 1) % n: Fraction(1, 3), i: Fraction(1, 7)} for i in range(n)]
    x = solve_rational(rows, [Fraction(1, 11)] * n)
    assert x == [Fraction(1, 11) / (1 - Fraction(1, 3) - Fraction(1, 7))] * n


def test_anderson_solves_affine_maps_exactly():
    rng = np.random.RandomState(0)
    Q, b = 0.3 * rng.normal(size=(3, 3)), rng.normal(size=3)
    xs = [rng.normal(size=3) for _ in range(4)]
    images = [Q @ x + b for x in xs]
    np.testing.assert_allclose(
        anderson_candidate(xs, images), np.linalg.solve(np.eye(3) - Q, b), atol=1e-8
    )


def test_overflowing_weights_prove_nothing():
    A = np.random.RandomState(0).normal(size=(60, 30))
    problem = LEMM(A, np.zeros(60), np.arange(0, 61, 2), [1] * 30)
    assert find_weights(problem).weights is None


@pytest.mark.parametrize("kind", ["mdp", "absolutely_halting"])
def test_bicgstab_solves_for_a_policy(kind):
    made = make_lemm(200, 2, kind=kind, structure="banded", random_state=0)
    Q, b = made.problem.policy_matrix(made.policy)
    expected = np.linalg.solve(np.eye(200) - Q.toarray(), b)
    x, work = np.zeros(200), np.empty((5, 200))
    iterations, left = bicgstab(Q.indptr, Q.indices, Q.data, b, 1e-11, 500, x, work)
    assert 0 < iterations < 200
    assert left < 1e-9
    assert np.abs(b + Q @ x - x).max() < 1e-10
    np.testing.assert_allclose(x, expected, atol=1e-9)
    assert bicgstab(Q.indptr, Q.indices, Q.data, b, 1e-9, 500, x, work)[0] == 0
    y = np.zeros(200)
    assert bicgstab(Q.indptr, Q.indices, Q.data, b, 1e-11, 3, y, work)[0] == 3
    assert np.abs(y - expected).max() < np.abs(expected).max()


def test_slow_sweeps_give_way_to_krylov_steps():
    """A long chain: local moves, so that sweeps gain little and the bracket is wide."""
    made = make_lemm(3000, 2, kind="mdp", structure="banded", contraction=0.995, random_state=0)
    plain = ValueIteration("modified_policy", tol=1e-8, check_every=20).fit(made.problem)
    quick = ValueIteration("modified_policy", tol=1e-8, check_every="auto").fit(made.problem)
    assert quick.n_iter_ < plain.n_iter_ / 2
    for solver in (plain, quick):
        assert solver.status_ == "optimal"
        assert np.abs(solver.value_ - made.value).max() <= solver.error_bound_ + 1e-12


def test_failing_krylov_steps_are_given_up(monkeypatch):
    def broken(*args):
        args[-2][:] = np.nan
        return 1, np.nan

    monkeypatch.setattr(sweeps, "bicgstab", broken)
    made = make_lemm(3000, 2, kind="mdp", structure="banded", contraction=0.995, random_state=0)
    solver = ValueIteration("modified_policy", tol=1e-8, check_every="auto").fit(made.problem)
    assert solver.status_ == "optimal"
    assert np.abs(solver.value_ - made.value).max() <= 2e-8
