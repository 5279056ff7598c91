"""Solvers: reference values, guarantees and their limits, options, errors, certificates."""

import itertools
import pickle
import warnings
from fractions import Fraction

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from equipoise.datasets import (
    make_american_option_lemm,
    make_gridworld_game,
    make_lemm,
    make_murty_lemm,
    make_pi_cycle_lemm,
    make_ssg_newton_cycle,
    make_vi_divergent_lemm,
)
from equipoise.games import (
    LEMM,
    LemkeSolver,
    LEMMNotUniqueError,
    LEMMSingularError,
    LinearProgramLEMM,
    PolicyIteration,
    SimplePolicyIteration,
    ValueIteration,
    certify,
    plot_convergence,
    plot_policy,
    solution_path,
    solve_lemm,
)
from equipoise.games.equations.kernels import gauss_seidel
from equipoise.games.equations.switch_one import parametric_rule, switching_rule
from equipoise.testing import check_equation_solver

E1 = make_pi_cycle_lemm()
E2 = make_vi_divergent_lemm()
E4 = make_ssg_newton_cycle()
E5 = LEMM.from_equations(["x1 = max(1 - 2*x2, 0)", "x2 = min(0.25 + 1.5*x1, 0.5*x2 - 1)"])
E6 = LEMM.from_equations(["x1 = max(2*x2 - 1, 0)", "x2 = x1"])
MIXED = LEMM.from_equations(
    [
        "x1 = max(1 + .5*x2 - .25*x3, 2 + .25*x1, .5 - .5*x3)",
        "x2 = min(1 - .5*x1 + .25*x3, -1 + .75*x3)",
        "x3 = 1 + .5*x1 - .25*x2",
    ]
)
BRANCHING = LEMM.from_equations(
    ["x = max(1 + 4*y, 2 + .5*x)", "y = min(1 + .1*x + .2*y, .5 + .5*y)"]
)
STARTS = list(itertools.product((0, 1), repeat=3))
KINDS = ["mdp", "ssg", "branching", "absolutely_halting", "halting", "w"]


def union(*problems):
    """Independent systems side by side."""
    lines, shift = [], 0
    for problem in problems:
        for i in range(problem.n):
            text = problem.equation(i)
            for j in reversed(range(problem.n)):
                text = text.replace(problem.name(j), f"u{j + shift}")
            lines.append(text)
        shift += problem.n
    return LEMM.from_equations(lines)


E3 = union(E1.problem, E2.problem)


@pytest.mark.parametrize(
    ("problem", "value", "policy"),
    [
        (E1.problem, [Fraction(103, 25), 3, Fraction(-7, 5)], [1, 1, 0]),
        (E4.problem, [Fraction(-19, 10), 0, -1], [1, 0, 0]),
        (E5, [5, -2], [0, 1]),
        (MIXED, [Fraction(8, 3), Fraction(4, 17), Fraction(116, 51)], [1, 0, 0]),
        (BRANCHING, [5, 1], [0, 1]),
    ],
)
def test_reference_solutions_exactly(problem, value, policy):
    answer = solve_lemm(problem, exact=True, random_state=0)
    assert answer.x_exact == value
    assert answer.policy.tolist() == policy
    assert answer.certificate == "exact"
    assert answer.unique is True
    for solver in (
        SimplePolicyIteration(random_state=0),
        SimplePolicyIteration("least_index"),
        LemkeSolver(),
    ):
        np.testing.assert_allclose(solver.fit_predict(problem), np.array(value, float), atol=1e-9)
        assert solver.predict().tolist() == policy


def test_single_nodes_and_ties():
    tie = LEMM.from_equations("x = max(0.5*x + 1, -2*x + 6)")
    small = LEMM.from_equations("x = min(0.5*x + 1, 0.25*x + 3)")
    for problem in (tie, small):
        assert solve_lemm(problem, random_state=0).x[0] == pytest.approx(2)
        for rule in ("parametric", "least_index", "largest_violation"):
            solver = SimplePolicyIteration(rule, random_state=0).fit(problem)
            assert solver.value_[0] == pytest.approx(2)
    for rule in ("parametric", "least_index", "largest_violation"):
        solver = SimplePolicyIteration(rule, random_state=0).fit(E2.problem)
        np.testing.assert_allclose(solver.value_, [1, 0], atol=1e-12)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [("parametric", [2, 3, 1, 2, 1, 2, 0, 1]), ("least_index", [2, 5, 1, 6, 3, 4, 0, 5])],
)
def test_switch_counts_from_every_start(rule, expected):
    counts = []
    for start in STARTS:
        policy = np.array(start)
        if rule == "parametric":
            direction = np.ones(6)
            direction[2 * np.arange(3) + policy] = 0
            run = parametric_rule(E1.problem, policy, direction)
        else:
            run = switching_rule(E1.problem, policy)
            solver = SimplePolicyIteration(rule).fit(E1.problem, policy_init=policy)
            assert solver.n_switches_ == run.n_switches
        assert run.status == "optimal"
        np.testing.assert_allclose(run.value, E1.value)
        counts.append(run.n_switches)
    assert counts == expected


@pytest.mark.parametrize("n", [2, 3, 4, 6, 8, 10])
def test_murty_family(n):
    made = make_murty_lemm(n)
    slow = SimplePolicyIteration("least_index").fit(made.problem)
    assert slow.n_switches_ == 2**n - 1
    quick = SimplePolicyIteration("least_index", order="reverse").fit(made.problem)
    assert quick.n_switches_ == 1
    order = np.arange(n)[::-1]
    assert SimplePolicyIteration("least_index", order=order).fit(made.problem).n_switches_ == 1
    howard = PolicyIteration("howard").fit(made.problem)
    assert howard.n_evaluations_ == n + 1
    for solver in (slow, quick, howard):
        np.testing.assert_array_equal(solver.value_, made.value)
        np.testing.assert_array_equal(solver.policy_, made.policy)
    assert solve_lemm(made.problem).method == "substitution"


def test_policy_iteration_cycles_on_a_signed_system():
    with pytest.warns(ConvergenceWarning, match=r"negative coefficients.*residual"):
        solver = PolicyIteration("howard", on_cycle="return").fit(E1.problem)
    assert solver.status_ == "cycle"
    assert not solver.converged_
    np.testing.assert_array_equal(solver.cycle_, E1.cycle)
    good = []
    for start in STARTS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            solver.fit(E1.problem, policy_init=start)
        if solver.converged_:
            good.append(start)
    assert good == [(0, 0, 1), (1, 1, 0)]
    with pytest.raises(RuntimeError, match="repeated a policy"):
        PolicyIteration("howard", on_cycle="raise").fit(E1.problem)
    rescued = PolicyIteration("howard").fit(E1.problem)
    assert rescued.status_ == "optimal"
    assert len(rescued.cycle_) == 3
    np.testing.assert_allclose(rescued.value_, E1.value)
    # Rescaling the unknowns doesn't help: the policies are the same.
    with pytest.warns(ConvergenceWarning):
        solver.fit(E1.problem.rescale([0.1, 1.0, 7.0]))
    np.testing.assert_array_equal(solver.cycle_, E1.cycle)


def test_simultaneous_switching_cycles_on_a_game_but_hoffman_karp_does_not():
    with pytest.warns(ConvergenceWarning, match="both players"):
        solver = PolicyIteration("simultaneous", on_cycle="return").fit(E4.problem)
    np.testing.assert_array_equal(solver.cycle_, E4.cycle)
    for start in STARTS:
        fine = PolicyIteration("hoffman_karp", on_cycle="raise").fit(E4.problem, policy_init=start)
        np.testing.assert_allclose(fine.value_, E4.value)
    assert PolicyIteration().fit(E4.problem).status_ == "optimal"
    with pytest.raises(ValueError, match="one player"):
        PolicyIteration("howard").fit(E4.problem)
    with pytest.raises(ValueError, match="needs weights"):
        PolicyIteration("safeguarded").fit(E2.problem)


def test_value_iteration_diverges_outside_its_class():
    problem = E2.problem
    for k in (10, 4):
        with pytest.warns(ConvergenceWarning):
            solver = ValueIteration("jacobi", max_iter=3 * k).fit(problem)
        np.testing.assert_allclose(solver.value_, [1 - 1.125**k, 0], atol=1e-12)
    assert solver.lower_ is None
    assert np.isnan(solver.error_bound_)
    for scheme in ("jacobi", "gauss_seidel"):
        with pytest.warns(ConvergenceWarning, match="diverged"):
            assert ValueIteration(scheme).fit(problem).status_ == "diverged"
    for order, sweeps in (([0, 1], 37), ([1, 0], 36)):
        x = np.zeros(2)
        gauss_seidel(*problem.arrays, np.array(order), 1.0, sweeps - 1, x)
        assert np.abs(x).max() <= 1e8
        gauss_seidel(*problem.arrays, np.array(order), 1.0, 1, x)
        assert np.abs(x).max() > 1e8
    for scheme in ("interval", "sor", "modified_policy"):
        with pytest.raises(ValueError, match="weights"):
            ValueIteration(scheme).fit(problem)
    assert PolicyIteration().fit(problem).status_ == "optimal"


def test_gauss_seidel_may_diverge_where_jacobi_converges():
    problem = LEMM.from_equations(["x1 = 1.5*x1 - 3*x2", "x2 = 0.5*x1 - x2"])
    start = [1.0, 1.0]
    assert ValueIteration("jacobi").fit(problem, x_init=start).status_ == "optimal"
    with pytest.warns(ConvergenceWarning):
        assert ValueIteration("gauss_seidel").fit(problem, x_init=start).status_ == "diverged"


def test_neither_classic_method_solves_the_union():
    assert E3.classify().label == "halting"
    with pytest.warns(ConvergenceWarning):
        assert PolicyIteration("howard", on_cycle="return").fit(E3).status_ == "cycle"
    with pytest.warns(ConvergenceWarning):
        assert ValueIteration().fit(E3).status_ == "diverged"
    solver = SimplePolicyIteration("least_index").fit(E3)
    assert solver.n_switches_ == 2
    np.testing.assert_allclose(solver.value_, [*E1.value, *E2.value], atol=1e-12)
    np.testing.assert_allclose(solve_lemm(E3).x, solver.value_, atol=1e-12)


def test_no_uniqueness_is_never_silent():
    with pytest.raises(LEMMNotUniqueError, match="opposite signs") as caught:
        solve_lemm(E6)
    policies = caught.value.policies
    assert [policy.tolist() for policy in policies] == [[0, 0], [1, 0]]
    assert pickle.loads(pickle.dumps(caught.value)).policies[1].tolist() == [1, 0]
    for start, value in (([0, 0], [1, 1]), ([1, 0], [0, 0])):
        solver = SimplePolicyIteration("least_index").fit(E6, policy_init=start)
        np.testing.assert_allclose(solver.value_, value, atol=1e-12)
        assert solver.class_.w_property is None
        assert "uniqueness is unproved" in str(solver.explain())
    forced = solve_lemm(E6, method="least_index")
    assert forced.unique is None
    assert "unproved" in forced.message
    # A switch across a sign change ends with the two policies as a witness.
    turning = LEMM.from_equations("x = max(2*x + 1, 3)")
    with pytest.warns(ConvergenceWarning, match="ratio"):
        solver = SimplePolicyIteration("least_index").fit(turning)
    assert solver.status_ == "not_W"
    assert [policy.tolist() for policy in solver.witness_] == [[0], [1]]
    with pytest.warns(ConvergenceWarning):
        assert LemkeSolver().fit(turning).status_ == "not_W"


def test_singular_policies():
    loop = LEMM.from_equations("x = max(x + 1, 2)")
    for solver in (SimplePolicyIteration(random_state=0), SimplePolicyIteration("least_index")):
        with pytest.warns(ConvergenceWarning):
            assert solver.fit(loop).status_ == "singular"
    with pytest.warns(ConvergenceWarning):
        assert PolicyIteration().fit(loop).status_ == "singular"
    with pytest.raises(LEMMNotUniqueError, match="singular"):
        solve_lemm(loop)
    with pytest.raises(LEMMSingularError):
        LemkeSolver().fit(LEMM.from_equations("x = max(2, x + 1)"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 9, 60])
def test_every_class_is_solved(kind, n):
    if n == 1 and kind in ("halting", "w"):
        return
    made = make_lemm(n, 3, kind=kind, random_state=n)
    scale = 1 + np.abs(made.value).max()
    solvers = [
        SimplePolicyIteration(random_state=0),
        SimplePolicyIteration("least_index", order="random", random_state=1),
        LemkeSolver(),
    ]
    if kind not in ("halting", "w"):
        solvers += [PolicyIteration(), PolicyIteration("safeguarded")]
        tol = 1e-9 * scale * made.weights.max()
        solvers += [ValueIteration(s, tol=tol) for s in ("gauss_seidel", "jacobi", "interval")]
        solvers += [ValueIteration("sor", omega=0.9, tol=tol)]
        solvers += [ValueIteration(anderson=4, tol=tol)]
    if kind == "mdp":
        solvers += [LinearProgramLEMM(), ValueIteration("modified_policy", check_every="auto")]
    for solver in solvers:
        check_equation_solver(solver, made.problem)
        np.testing.assert_allclose(solver.value_, made.value, atol=1e-6 * scale)
        if solver.lower_ is not None:
            slack = 1e-11 * scale * made.weights.max()
            assert (solver.lower_ - slack <= made.value).all()
            assert (made.value <= solver.upper_ + slack).all()
            assert np.abs(solver.value_ - made.value).max() <= solver.error_bound_ + slack
    answer = solve_lemm(made.problem, random_state=0)
    assert answer.success
    np.testing.assert_allclose(answer.x, made.value, atol=1e-8 * scale)
    assert answer.unique is True


@pytest.mark.parametrize("kind", ["mdp", "ssg", "absolutely_halting", "branching"])
def test_larger_systems(kind):
    made = make_lemm(3000, 3, kind=kind, random_state=0)
    answer = solve_lemm(made.problem)
    assert answer.success
    scale = 1 + np.abs(made.value).max()
    np.testing.assert_allclose(answer.x, made.value, atol=1e-8 * scale)
    assert (answer.lower - 1e-9 * scale <= made.value).all()
    assert (answer.upper + 1e-9 * scale >= made.value).all()
    for variant in ("howard", "safeguarded") if kind == "mdp" else ("auto", "safeguarded"):
        solver = PolicyIteration(variant).fit(made.problem)
        np.testing.assert_allclose(solver.value_, made.value, atol=1e-8 * scale)


def test_sparse_simple_policy_iteration():
    made = make_lemm(1700, 2, kind="absolutely_halting", structure="banded", random_state=0)
    start = made.policy.copy()
    start[:120] = 1 - start[:120]
    for refactor in (7, 50):
        for rule in ("parametric", "least_index"):
            solver = SimplePolicyIteration(rule, refactor_every=refactor, random_state=0)
            solver.fit(made.problem, policy_init=start)
            np.testing.assert_allclose(solver.value_, made.value, atol=1e-8)
            np.testing.assert_array_equal(solver.policy_, made.policy)
            assert solver.n_switches_ >= 60


def test_largest_violation_may_cycle_and_says_so():
    """A P-matrix complementarity problem: the greedy one-switch rule runs around six policies."""
    problem = LEMM.from_equations(
        [f"z{i} = max(0, 0.1 + 0.9*z{i} - 0.2*z{j})" for i, j in ((1, 2), (2, 3), (3, 1))]
    )
    assert problem.classify().w_property is True
    with pytest.warns(ConvergenceWarning, match="largest-violation rule repeated"):
        solver = SimplePolicyIteration("largest_violation").fit(problem, policy_init=[1, 0, 0])
    assert solver.status_ == "cycle"
    assert [policy.tolist() for policy in solver.cycle_] == [
        [1, 0, 0],
        [1, 1, 0],
        [0, 1, 0],
        [0, 1, 1],
        [0, 0, 1],
        [1, 0, 1],
    ]
    for rule in ("parametric", "least_index"):
        solver = SimplePolicyIteration(rule, random_state=0).fit(problem, policy_init=[1, 0, 0])
        np.testing.assert_allclose(solver.value_, [1 / 3] * 3)


def test_histories_callbacks_and_short_runs():
    made = make_lemm(50, kind="ssg", random_state=0)
    calls = []
    solver = ValueIteration(
        check_every=3, store_history=True, callback=lambda k, x, gap: calls.append((k, gap))
    ).fit(made.problem)
    assert [row["n_iter"] for row in solver.history_] == [k for k, _ in calls]
    assert [row["error_bound"] for row in solver.history_] == [gap for _, gap in calls]
    assert calls[-1][1] <= 1e-8
    with pytest.warns(ConvergenceWarning, match=r"callback after 3.*error bound"):
        short = ValueIteration(check_every=3, callback=lambda *_: True).fit(made.problem)
    assert short.status_ == "max_iter"
    assert short.n_iter_ == 3
    assert np.abs(short.value_ - made.value).max() <= short.error_bound_
    with pytest.warns(ConvergenceWarning, match="stopped after 4 sweeps"):
        ValueIteration(max_iter=4).fit(made.problem)
    with pytest.warns(ConvergenceWarning, match="stopped after 1 switches at t"):
        SimplePolicyIteration(max_switches=1, random_state=0).fit(made.problem)
    with pytest.warns(ConvergenceWarning, match="stopped after 2 switches"):
        SimplePolicyIteration("least_index", max_switches=2).fit(made.problem)
    with pytest.warns(ConvergenceWarning, match="stopped after 1 iterations"):
        PolicyIteration(max_iter=1).fit(made.problem)
    with pytest.warns(ConvergenceWarning, match="callback"):
        PolicyIteration(callback=lambda *_: True).fit(made.problem)
    with pytest.warns(ConvergenceWarning, match="callback"):
        SimplePolicyIteration(callback=lambda *_: True, random_state=0).fit(made.problem)
    with pytest.warns(ConvergenceWarning):
        assert LemkeSolver(max_iter=1).fit(made.problem).status_ == "max_iter"
    with pytest.warns(ConvergenceWarning, match="no progress"):
        ValueIteration(tol=1e-300, check_every=1).fit(made.problem)


def test_a_short_run_foresees_the_sweeps_it_lacks():
    """x = q x + 1 with q = 0.999: from x, the error shrinks by exactly q a sweep."""
    problem = LEMM.from_dense([[[0.999, 0.0]], [[0.0, -0.999]]], [[1.0], [1.0]], [0, 0])
    with pytest.warns(ConvergenceWarning, match=r"at most 0\.999, so about 13[0-9]{3} more"):
        solver = ValueIteration("jacobi", tol=1e-3, max_iter=10).fit(problem)
    needed = int(np.ceil(np.log(solver.error_bound_ / 1e-3) / -np.log(0.999)))
    solver = ValueIteration("jacobi", tol=1e-3, max_iter=needed + 20).fit(problem)
    assert solver.converged_ and solver.n_iter_ >= needed - 10


def test_interrupt_returns_what_there_is():
    made = make_lemm(50, kind="ssg", random_state=0)

    def interrupt(n_iter, x, gap):
        if n_iter >= 20:
            raise KeyboardInterrupt

    for scheme in ("gauss_seidel", "jacobi"):
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            solver = ValueIteration(scheme, callback=interrupt).fit(made.problem)
        assert np.abs(solver.value_ - made.value).max() <= solver.error_bound_
        assert solver.error_bound_ < 10


def test_interval_brackets_shrink():
    made = make_lemm(40, 3, kind="absolutely_halting", random_state=0)
    widths, x = [], made.value
    for sweeps in (1, 2, 4, 8, 400):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            solver = ValueIteration(
                "interval", max_iter=sweeps, check_every=min(sweeps, 50), tol=1e-13
            ).fit(made.problem)
        assert (solver.lower_ <= x + 1e-12).all()
        assert (x <= solver.upper_ + 1e-12).all()
        widths.append((solver.upper_ - solver.lower_).max())
    assert all(a > b for a, b in itertools.pairwise(widths))
    assert widths[-1] < 1e-6


def test_rescaling_does_not_change_relative_sweeps():
    counts = []
    for sigma in (0.0, 3.0):
        made = make_lemm(60, kind="absolutely_halting", rescale_sigma=sigma, random_state=2)
        solver = ValueIteration(weights=made.weights, relative=True, check_every=1, tol=1e-9).fit(
            made.problem
        )
        assert (np.abs(solver.value_ - made.value) / made.weights).max() <= 1e-8
        counts.append(solver.n_iter_)
    assert abs(counts[0] - counts[1]) <= 25


def test_threads_and_orders_give_the_same_answer():
    made = make_lemm(2000, kind="ssg", random_state=0)
    one = ValueIteration("jacobi").fit(made.problem)
    two = ValueIteration("jacobi", n_jobs=2).fit(made.problem)
    np.testing.assert_array_equal(one.value_, two.value_)
    assert one.n_iter_ == two.n_iter_
    random = ValueIteration(random_state=3).fit(made.problem)
    np.testing.assert_allclose(random.value_, one.value_, atol=2e-8)
    many = union(*[E2.problem] * 3, E5, E1.problem)
    np.testing.assert_array_equal(
        solve_lemm(many, n_jobs=2, random_state=0).x, solve_lemm(many, random_state=0).x
    )


@pytest.mark.parametrize(
    ("solver", "problem", "message"),
    [
        (ValueIteration(omega=1.2), MIXED, "omega=1.2 needs scheme='sor'"),
        (ValueIteration("sor", omega=1.9), MIXED, "too large: allowed 0 < omega < 1.14"),
        (ValueIteration(n_jobs=2), MIXED, "needs scheme='jacobi'"),
        (ValueIteration("jacobi", random_state=0), MIXED, "random_state orders"),
        (ValueIteration("interval", anderson=2), MIXED, "anderson"),
        (ValueIteration("modified_policy"), MIXED, "one player, no negative"),
        (ValueIteration(weights=[1, 1]), MIXED, "weights must have shape"),
        (ValueIteration(weights=[1, -1, 1]), MIXED, "positive"),
        (ValueIteration(weights=[1, 1000, 1]), MIXED, "don't prove a contraction"),
        (SimplePolicyIteration(order="reverse"), MIXED, "needs rule='least_index'"),
        (SimplePolicyIteration(pick="first"), MIXED, "needs rule='least_index'"),
        (SimplePolicyIteration("least_index", order=[0, 0, 1]), MIXED, "permutation"),
        (LinearProgramLEMM(), MIXED, "nonnegative=False"),
        (LinearProgramLEMM(), E4.problem, "one_player=False"),
        (LinearProgramLEMM(), LEMM.from_equations("x = max(x, 1)"), "halting=False"),
    ],
)
def test_options_that_do_not_fit(solver, problem, message):
    with pytest.raises(ValueError, match=message):
        solver.fit(problem)
    assert not hasattr(solver, "value_")


@pytest.mark.parametrize("cls", [ValueIteration, PolicyIteration, SimplePolicyIteration])
def test_starts_are_checked(cls):
    with pytest.raises(ValueError, match=r"x_init must have shape \(3,\)"):
        cls().fit(MIXED, x_init=[0])
    with pytest.raises(ValueError, match="policy_init"):
        cls().fit(MIXED, policy_init=[5, 0, 0])
    with pytest.raises(ValueError, match="one start is enough"):
        cls().fit(MIXED, policy_init=[0, 0, 0], x_init=[0, 0, 0])
    with pytest.raises(TypeError, match="must be a LEMM"):
        cls().fit(np.eye(3))
    solver = cls().fit(MIXED, x_init=[2, 0, 2])
    np.testing.assert_allclose(solver.value_, solve_lemm(MIXED).x, atol=1e-7)
    failed = clone(solver)
    failed.fit(MIXED)
    before = failed.value_
    with pytest.raises(ValueError, match="policy_init"):
        failed.fit(E1.problem, policy_init=[9, 9, 9])
    assert failed.value_ is before


def test_solve_options():
    with pytest.raises(ValueError, match="method='magic'"):
        solve_lemm(MIXED, "magic")
    with pytest.raises(ValueError, match="no further parameters"):
        solve_lemm(MIXED, scheme="jacobi")
    with pytest.raises(ValueError, match="needs exact=True"):
        solve_lemm(MIXED, limit_denominator=10)
    with pytest.raises(ValueError, match="needs method='auto'"):
        solve_lemm(MIXED, "lemke", n_jobs=2)
    with pytest.raises(ValueError, match="tol=0"):
        solve_lemm(MIXED, tol=0)
    with pytest.raises(TypeError, match="LEMM"):
        solve_lemm([1])
    for method in ("value_iteration", "policy_iteration", "parametric", "least_index", "lemke"):
        np.testing.assert_allclose(
            solve_lemm(MIXED, method, random_state=0).x, [8 / 3, 4 / 17, 116 / 51], atol=1e-8
        )
    mdp = make_lemm(20, random_state=0)
    np.testing.assert_allclose(solve_lemm(mdp.problem, "linear_program").x, mdp.value)
    jacobi = solve_lemm(MIXED, "value_iteration", scheme="jacobi", tol=1e-4)
    assert jacobi.error_bound <= 1e-4


def test_exact_floats_are_dyadic_unless_told_otherwise():
    problem = LEMM([[0.0], [0.8]], [0.0, 1.0], [0, 2], ["max"])
    dyadic = solve_lemm(problem, exact=True).x_exact[0]
    assert dyadic == 1 / (1 - Fraction(0.8))
    assert dyadic != 5
    assert solve_lemm(problem, exact=True, limit_denominator=100).x_exact == [5]
    large = make_lemm(2500, random_state=0).problem
    with pytest.raises(ValueError, match="at most 2000 nodes"):
        solve_lemm(large, exact=True)


@pytest.mark.parametrize("kind", KINDS)
def test_exact_answers_solve_the_equations_exactly(kind):
    made = make_lemm(24, 2, kind=kind, random_state=1)
    x = solve_lemm(made.problem, exact=True, random_state=0).x_exact
    problem = made.problem
    for i in range(problem.n):
        images = []
        for a in range(problem.indptr[i], problem.indptr[i + 1]):
            part = range(problem.A.indptr[a], problem.A.indptr[a + 1])
            terms = (Fraction(problem.A.data[k]) * x[problem.A.indices[k]] for k in part)
            images.append(sum(terms, Fraction(problem.b[a])))
        assert x[i] == (min(images) if problem.op[i] < 0 else max(images))


def test_exact_arithmetic_mends_a_wrong_float_policy():
    """The two actions differ by less than any float tolerance."""
    tiny = Fraction(1, 10**30)
    problem = LEMM.from_nodes([("max", [({}, 1), ({}, 1 + tiny)])])
    solver = SimplePolicyIteration(exact=True, random_state=0).fit(problem)
    assert solver.exact_value_ == [1 + tiny]
    assert solver.policy_.tolist() == [1]


def test_certificates():
    exact = certify(E1.problem, E1.value, E1.policy)
    assert exact.kind == "exact"
    assert exact.ok
    assert exact.x_exact == [Fraction(103, 25), 3, Fraction(-7, 5)]
    assert not certify(E1.problem, E1.value + 1, E1.policy).ok
    wrong = certify(E1.problem, E1.problem.evaluate([0, 0, 0]), [0, 0, 0])
    assert not wrong.ok
    assert wrong.max_violation > 0
    assert np.isnan(wrong.error_bound)
    bound = certify(E1.problem, E1.value, E1.policy, exact=False)
    assert (bound.kind, bound.ok) == ("bound", True)
    assert bound.error_bound < 1e-12
    residual = certify(E2.problem, E2.value, E2.policy, exact=False)
    assert (residual.kind, residual.ok) == ("residual", True)
    assert np.isnan(residual.error_bound)
    singular = certify(LEMM.from_equations("x = max(x + 1, 2)"), [2.0], [0])
    assert not singular.ok
    with pytest.raises(ValueError, match="policy"):
        certify(E1.problem, E1.value, [7, 0, 0])


@pytest.mark.parametrize("min_fraction", [0.0, 0.4])
def test_sweeps_on_games_that_end(min_fraction):
    """Goals and pits end the play at once, other cells discount: gaps differ between nodes."""
    made = make_gridworld_game((12, 12), min_fraction=min_fraction, random_state=0)
    expected = PolicyIteration().fit(made.problem).value_
    schemes = ["gauss_seidel", "jacobi", "interval", "sor"]
    for scheme in [*schemes, "modified_policy"] if min_fraction == 0 else schemes:
        solver = ValueIteration(scheme, check_every="auto").fit(made.problem)
        assert solver.status_ == "optimal"
        assert np.abs(solver.value_ - expected).max() <= solver.error_bound_ + 1e-12 <= 2e-8
    large = make_gridworld_game((40, 40), min_fraction=min_fraction, random_state=0)
    answer = solve_lemm(large.problem)
    assert answer.method.startswith("value_iteration")
    np.testing.assert_allclose(
        answer.x, PolicyIteration().fit(large.problem).value_, atol=answer.error_bound + 1e-12
    )


def test_scores():
    solver = ValueIteration().fit(MIXED)
    assert solver.score(MIXED) == -solver.error_bound_
    other = LEMM.from_equations(["x1 = 1", "x2 = 1", "x3 = max(1, 0)"])
    assert solver.score(other) < -0.5
    unproved = PolicyIteration().fit(E2.problem)
    assert unproved.score(E2.problem) == -unproved.residual_


def test_solution_path_is_piecewise_affine_and_optimal():
    rng = np.random.RandomState(0)
    for kind in ("absolutely_halting", "w", "ssg"):
        made = make_lemm(10, 3, kind=kind, random_state=1)
        p = made.problem
        b_new = p.b + rng.normal(scale=2, size=p.m)
        path = solution_path(p, b_new)
        assert path.t[0] == 0
        assert path.t[-1] == 1
        assert (np.diff(path.t) > 0).all()
        assert len(path.t) == len(path.policies) + 1
        assert len(path.t) > 2
        for k in range(len(path.policies)):
            middle = (path.t[k] + path.t[k + 1]) / 2
            moved = LEMM(p.A, (1 - middle) * p.b + middle * b_new, p.indptr, p.op)
            expected = solve_lemm(moved, random_state=0).x
            np.testing.assert_allclose((path.x[k] + path.x[k + 1]) / 2, expected, atol=1e-7)
            np.testing.assert_allclose(moved.evaluate(path.policies[k]), expected, atol=1e-7)
    with pytest.raises(ValueError, match="b_new"):
        solution_path(p, [1.0])


def test_explanations_and_plots():
    solver = ValueIteration("jacobi", store_history=True, check_every=2).fit(MIXED)
    answer = solver.explain()
    assert "within" in str(answer)
    assert "unique" in str(answer)
    frame = answer.to_frame()
    assert frame["node"].tolist() == ["x1", "x2", "x3"]
    assert frame["margin"][0] == pytest.approx(8 / 3 - (1 + 2 / 17 - 29 / 51), abs=1e-6)
    for kind in ("values", "policy", "convergence"):
        answer.plot(kind)
    pickle.loads(pickle.dumps(answer)).plot()
    plot_convergence({"jacobi": solver, "again": solver})
    with pytest.raises(ValueError, match="store_history"):
        plot_convergence([PolicyIteration().fit(MIXED)])
    made = make_gridworld_game((4, 5), random_state=0)
    grid = PolicyIteration(store_history=True).fit(made.problem)
    assert plot_policy(grid, (4, 5)).get_title() == "Policy"
    plot_policy(grid)
    with pytest.raises(ValueError, match="30 cells"):
        plot_policy(grid, (6, 5))
    plt.close("all")


def test_american_put_against_closed_form_and_projected_sor():
    made = make_american_option_lemm(120)
    x = solve_lemm(made.problem).x
    np.testing.assert_allclose(x, made.closed_form, atol=0.3)
    exercised = solve_lemm(made.problem).policy[1:-1] == 0
    edge = made.price[1:-1][exercised].max()
    assert edge == pytest.approx(made.boundary, rel=0.06)
    # Projected Gauss-Seidel, the textbook method for obstacle problems.
    y = made.payoff.copy()
    up = made.problem.A.toarray()[2 * 1, [0, 2]]
    for _ in range(20000):
        before = y.copy()
        for i in range(1, 119):
            y[i] = max(made.payoff[i], up[0] * y[i - 1] + up[1] * y[i + 1])
        y[-1] = 0
        if np.abs(y - before).max() < 1e-10:
            break
    np.testing.assert_allclose(x, y, atol=1e-5)


def test_quantecon_agrees():
    qe = pytest.importorskip("quantecon", reason="quantecon is not installed")
    rng = np.random.RandomState(0)
    n, k = 30, 3
    P, R = rng.dirichlet(np.ones(n), size=(n, k)), rng.normal(size=(n, k))
    reference = qe.markov.DiscreteDP(R, P, 0.95).solve(method="policy_iteration")
    answer = solve_lemm(LEMM.from_mdp(P.transpose(1, 0, 2), R, 0.95))
    np.testing.assert_allclose(answer.x, reference.v, atol=1e-8)
    np.testing.assert_array_equal(answer.policy, reference.sigma)
    M = rng.normal(size=(8, 8))
    M = M @ M.T + np.eye(8)
    q = rng.normal(size=8)
    z = qe.optimize.lcp_lemke(M, q).z
    np.testing.assert_allclose(LemkeSolver().fit(LEMM.from_lcp(M, q)).value_, z, atol=1e-8)
