"""Invariants under hypothesis, against brute force over all policies."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from equipoise.datasets import make_lemm
from equipoise.games import (
    LEMM,
    LemkeSolver,
    LEMMSingularError,
    PolicyIteration,
    SimplePolicyIteration,
    ValueIteration,
    solve_lemm,
)
from equipoise.games.equations.solver import BoundedGap
from equipoise.games.equations.weights import contraction_gap, find_weights
from equipoise.testing import check_equation_solver, equation_systems

few = settings(max_examples=25, deadline=None)
vectors = st.lists(st.integers(-40, 40), min_size=5, max_size=5)


def brute_force(problem):
    """The value of the policy that no action violates, by trying all."""
    sizes = np.diff(problem.indptr)
    for policy in itertools.product(*map(range, sizes)):
        Q, b = problem.policy_matrix(policy)
        M = np.eye(problem.n) - Q.toarray()
        if abs(np.linalg.det(M)) > 1e-12:
            x = np.linalg.solve(M, b)
            if problem.violations(x).max() <= 1e-9 * (1 + np.abs(x).max()):
                return x
    raise AssertionError("no policy is optimal")


def with_b(problem, b):
    return LEMM(problem.A, b, problem.indptr, problem.op)


@few
@given(equation_systems(max_nodes=4))
def test_all_routes_agree_with_brute_force(system):
    problem = LEMM(**system)
    expected = brute_force(problem)
    for solver in (
        SimplePolicyIteration(random_state=0),
        SimplePolicyIteration("least_index"),
        SimplePolicyIteration("least_index", pick="random", random_state=0),
        LemkeSolver(),
        PolicyIteration(),
        ValueIteration(),
        ValueIteration("interval"),
    ):
        check_equation_solver(solver, problem)
        np.testing.assert_allclose(solver.value_, expected, atol=1e-7)
    np.testing.assert_allclose(solve_lemm(problem).x, expected, atol=1e-8)


@few
@given(st.integers(0, 10**6), st.integers(1, 4), st.sampled_from(["halting", "w"]))
def test_simple_rules_outside_absolute_halting(seed, n_actions, kind):
    made = make_lemm(4, n_actions, kind=kind, random_state=seed)
    expected = brute_force(made.problem)
    np.testing.assert_allclose(expected, made.value, atol=1e-7)
    for solver in (
        SimplePolicyIteration(random_state=seed),
        SimplePolicyIteration("least_index", order="random", random_state=seed),
        LemkeSolver(),
    ):
        check_equation_solver(solver, made.problem)
        np.testing.assert_allclose(solver.value_, expected, atol=1e-7)


@few
@given(equation_systems(), st.lists(st.integers(-6, 6), min_size=5, max_size=5))
def test_diagonal_covariance(system, exponents):
    problem = LEMM(**system)
    v = 2.0 ** np.array(exponents[: problem.n])
    scaled = solve_lemm(problem.rescale(v)).x * v
    np.testing.assert_allclose(scaled, solve_lemm(problem).x, rtol=1e-9, atol=1e-9)


@few
@given(
    equation_systems(nonnegative=True, two_players=False),
    st.lists(st.integers(-6, 6), min_size=5, max_size=5),
)
def test_policy_sequence_ignores_units(system, exponents):
    problem = LEMM(**system)
    v = 2.0 ** np.array(exponents[: problem.n])
    plain = PolicyIteration(tol=0.0, max_iter=50).fit(problem)
    scaled = PolicyIteration(tol=0.0, max_iter=50).fit(problem.rescale(v))
    np.testing.assert_array_equal(plain.policy_, scaled.policy_)
    assert plain.n_iter_ == scaled.n_iter_


@few
@given(equation_systems())
def test_negation_duality(system):
    problem = LEMM(**system)
    mirrored = LEMM(problem.A, -problem.b, problem.indptr, -problem.op)
    np.testing.assert_allclose(solve_lemm(mirrored).x, -solve_lemm(problem).x, atol=1e-9)


@few
@given(equation_systems(), st.sampled_from([0.125, 0.5, 4.0, 64.0]))
def test_offset_homogeneity(system, factor):
    problem = LEMM(**system)
    scaled = solve_lemm(with_b(problem, factor * problem.b))
    np.testing.assert_allclose(scaled.x, factor * solve_lemm(problem).x, atol=1e-8 * factor)


@few
@given(equation_systems(), vectors, vectors)
def test_bound_and_contraction(system, first, second):
    problem = LEMM(**system)
    v = find_weights(problem).weights
    gap = contraction_gap(problem, v)
    gamma = 1 - (gap / v).min()
    x, y = np.array(first[: problem.n], float), np.array(second[: problem.n], float)
    moved = np.abs(problem.T(x) - problem.T(y)) / v
    assert moved.max() <= gamma * (np.abs(x - y) / v).max() + 1e-9
    solution = brute_force(problem)
    for nonnegative in {False, bool((problem.A.data >= 0).all())}:
        low, high, _ = BoundedGap(problem, v, nonnegative)(x)
        assert (x + low * v <= solution + 1e-9).all()
        assert (solution <= x + high * v + 1e-9).all()


@few
@given(equation_systems(nonnegative=True), st.lists(st.integers(0, 9), min_size=15, max_size=15))
def test_monotone_in_offsets(system, increments):
    problem = LEMM(**system)
    more = with_b(problem, problem.b + np.array(increments[: problem.m]) / 3)
    assert (solve_lemm(more).x >= solve_lemm(problem).x - 1e-9).all()


@few
@given(equation_systems(), st.randoms(use_true_random=False))
def test_permutations_and_redundant_actions(system, random):
    problem = LEMM(**system)
    expected = solve_lemm(problem).x
    place = list(range(problem.n))
    random.shuffle(place)  # old node -> new node
    nodes = [None] * problem.n
    dense = problem.A.toarray()
    for i in range(problem.n):
        rows = list(range(problem.indptr[i], problem.indptr[i + 1]))
        random.shuffle(rows)
        rows.append(rows[0])  # a copy
        actions = [({place[j]: dense[a, j] for j in range(problem.n)}, problem.b[a]) for a in rows]
        s = -1 if problem.op[i] < 0 else 1
        actions.append((actions[0][0], actions[0][1] - s))  # worse than the first
        nodes[place[i]] = ("min" if s < 0 else "max", actions)
    changed = solve_lemm(LEMM.from_nodes(nodes)).x
    np.testing.assert_allclose(changed[place], expected, atol=1e-8)


@few
@given(st.integers(0, 10**6), st.sampled_from(["absolutely_halting", "halting", "w"]))
def test_an_edge_improves_in_one_direction(seed, kind):
    made = make_lemm(4, 3, kind=kind, random_state=seed)
    problem = made.problem
    rng = np.random.RandomState(seed)
    policy = rng.randint(0, 3, size=4)
    x = problem.evaluate(policy)
    i, a = rng.randint(4), rng.randint(3)
    forward = problem.violations(x)[3 * i + a]
    assume(a != policy[i] and abs(forward) > 1e-9)
    other = policy.copy()
    other[i] = a
    backward = problem.violations(problem.evaluate(other))[3 * i + policy[i]]
    assert forward * backward < 0


@few
@given(st.integers(0, 10**6))
def test_components_and_whole_agree(seed):
    made = make_lemm(9, 2, kind="halting", random_state=seed)
    whole = SimplePolicyIteration(random_state=seed).fit(made.problem)
    np.testing.assert_allclose(
        solve_lemm(made.problem, random_state=seed).x, whole.value_, atol=1e-7
    )


@few
@given(equation_systems())
def test_text_and_normal_form_round_trip(system):
    problem = LEMM(**system)
    assert LEMM.from_equations(str(problem)) == problem
    form = solve_lemm(problem.to_normal_form(), random_state=0)
    np.testing.assert_allclose(form.x[: problem.n], solve_lemm(problem).x, atol=1e-7)


@few
@given(equation_systems(max_actions=2))
def test_complementarity_holds(system):
    problem = LEMM(**system)
    solver = LemkeSolver().fit(problem)
    assert solver.z_.min() >= -1e-9
    assert solver.w_.min() >= -1e-9
    assert abs(solver.z_ @ solver.w_) <= 1e-8


def test_value_of_a_singular_policy_is_refused():
    with pytest.raises(LEMMSingularError):
        LEMM.from_equations(["x = y + 1", "y = x"]).evaluate([0, 0])
