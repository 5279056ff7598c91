"""The problem: construction, validation, text, other forms, classes."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from equipoise.datasets import (
    make_lemm,
    make_murty_lemm,
    make_pi_cycle_lemm,
    make_ssg_newton_cycle,
    make_vi_divergent_lemm,
)
from equipoise.games import (
    LEMM,
    LEMMNotUniqueError,
    LEMMSingularError,
    classify_lemm,
    halting_transform,
    solve_lemm,
)

MIXED = LEMM.from_equations(
    """
    x1 = max(1 + .5*x2 - .25*x3, 2 + .25*x1, .5 - .5*x3)
    x2 = min(1 - .5*x1 + .25*x3, -1 + .75*x3)   # the minimiser
    x3 = 1 + .5*x1 - .25*x2
    """
)
BRANCHING = LEMM.from_branching(
    [[{1: 4}, {0: 0.5}], [{0: 0.1, 1: 0.2}, {1: 0.5}]], [[1, 2], [1, 0.5]], ["max", "min"]
)
ONE_SIGN = LEMM.from_equations(["x1 = max(1 - 2*x2, 0)", "x2 = min(0.25 + 1.5*x1, 0.5*x2 - 1)"])
TWISTED = LEMM.from_equations(["x1 = max(2*x2 - 1, 0)", "x2 = x1"])


def test_operator_by_hand():
    x = np.array([1.0, 2.0, 4.0])
    image, policy = MIXED.T(x, return_policy=True)
    # max(1, 2.25, -1.5); min(1.5, 2); 1 + 0.5 - 0.5
    np.testing.assert_allclose(image, [2.25, 1.5, 1.0])
    np.testing.assert_array_equal(policy, [1, 0, 0])
    assert MIXED.residual(x) == 3.0
    np.testing.assert_allclose(MIXED.row_values(x), [1, 2.25, -1.5, 1.5, 2, 1])
    np.testing.assert_allclose(MIXED.violations(x), [0, 1.25, -2.5, 0.5, 0, -3])


def test_arrays_are_read_only_and_private():
    A, b = np.array([[0.5]]), np.array([1.0])
    problem = LEMM(A, b, [0, 1], ["affine"])
    A[0, 0] = b[0] = 9.0
    assert problem.evaluate([0]) == 2.0
    with pytest.raises(ValueError, match="read-only"):
        problem.b[0] = 3
    with pytest.raises(AttributeError, match="immutable"):
        problem.b = b
    again = pickle.loads(pickle.dumps(problem))
    assert again == problem
    assert hash(again) == hash(problem)
    with pytest.raises(ValueError, match="read-only"):
        again.A.data[0] = 3


def test_duplicates_are_summed_and_zeros_dropped():
    A = sp.csr_array(([0.25, 0.25, 0.0], ([0, 0, 0], [0, 0, 1])), shape=(2, 2))
    A = sp.csr_array(
        (np.array([0.25, 0.25, 0.0]), np.array([0, 0, 1]), np.array([0, 3, 3])), shape=(2, 2)
    )
    problem = LEMM(A, [1, 0], [0, 1, 2], ["affine", "affine"])
    assert problem.nnz == 1
    np.testing.assert_allclose(problem.evaluate([0, 0]), [2, 0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"indptr": [0, 2, 2]}, "node 1 has no action"),
        ({"indptr": [0, 1, 1]}, "node 1 has no action"),
        ({"indptr": [0]}, "n >= 1"),
        ({"indptr": [0, 1, 3]}, "rise from 0"),
        ({"b": [1, np.nan]}, "b must be finite"),
        ({"b": [1]}, "b must have one offset"),
        ({"A": [[0, np.inf], [0, 0]]}, "A must be finite"),
        ({"A": [[0, 0, 0], [0, 0, 0]]}, "one column for each of 2 nodes"),
        ({"op": ["max"]}, "op must have one entry"),
        ({"op": ["max", "best"]}, "op='best' is not allowed"),
        ({"op": [1, 7]}, "other than 1"),
        ({"names": ["a", "a"]}, "occurs more than once"),
        ({"names": ["a", "2b"]}, "not an identifier"),
        ({"names": ["a"]}, "one name for each"),
        ({"A_exact": []}, "together"),
        ({"A_exact": [Fraction(1)], "b_exact": [Fraction(1), Fraction(2)]}, "exact values"),
    ],
)
def test_malformed_problems_are_refused(change, message):
    good = {"A": np.zeros((2, 2)), "b": [1, 2], "indptr": [0, 1, 2], "op": ["affine", "max"]}
    assert LEMM(**good).n == 2
    with pytest.raises(ValueError, match=message):
        LEMM(**{**good, **change})


def test_affine_with_two_actions_and_column_out_of_range():
    with pytest.raises(ValueError, match="affine but has 2 actions"):
        LEMM(np.zeros((2, 1)), [0, 1], [0, 2], ["affine"])
    far = sp.csr_array((2, 2))
    far = sp.csr_array((np.ones(1), np.array([0]), np.array([0, 1, 1])), shape=(2, 2))
    far.indices = np.array([5])
    with pytest.raises(ValueError, match="column index 5; allowed: 0 to 1"):
        LEMM(far, [0, 1], [0, 1, 2], [0, 0])
    with pytest.raises(ValueError, match="column 3 is out of range"):
        LEMM.from_nodes([("affine", [({3: 1}, 0)])])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x1 = max(0, 2*x1", "line 1, column 17: expected"),
        ("x = y", "line 1, column 5: 'y' is never defined"),
        ("a = 1\nx = max(1, min(x,2))", "line 2, column 12: 'min' may only be the whole"),
        ("x = x*x", "line 1, column 6: x\\*x is not linear"),
        ("x=1\nx=2", "line 2, column 1: 'x' is defined a second time"),
        ("x = 3 $ 4", r"line 1, column 7: '\$'"),
        ("max = 1", "cannot name a variable"),
        ("x = 2/0", "only a non-zero number may divide"),
        ("x = 1/x", "only a non-zero number may divide"),
        ("x = 1 2", "expected 'end', got '2'"),
        ("x + 1 = 2", "line 1, column 3: expected '='"),
        ("x = ", "line 1, column 4: expected 'number' or 'name'"),
        ("# nothing", "no equation"),
    ],
)
def test_text_errors_name_line_and_column(text, message):
    with pytest.raises(ValueError, match=message):
        LEMM.from_equations(text)


def test_text_is_read_exactly_and_printed_back():
    problem = LEMM.from_equations(
        ["up = max(3/4*down - .1, down*1e-1 + 2 - down)", "down = -up/3 + 2*0.25*up"]
    )
    assert problem.A_exact == (Fraction(3, 4), Fraction(-9, 10), Fraction(1, 6))
    assert problem.b_exact == (Fraction(-1, 10), Fraction(2), Fraction(0))
    assert problem.names == ("up", "down")
    again = LEMM.from_equations(str(problem))
    assert again == problem
    assert again.A_exact == problem.A_exact
    floats = make_lemm(12, kind="absolutely_halting", random_state=3).problem
    assert LEMM.from_equations(str(floats)) == floats
    assert "and 4 more" in repr(floats)
    assert "<pre>" in floats._repr_html_()


def test_nodes_and_dense_agree_with_text():
    nodes = LEMM.from_nodes(
        [
            ("max", [({}, 0), ({2: "-0.8"}, 3)]),
            ("max", [([0, 0, Fraction(-4, 5)], -2), ({}, 3)]),
            (1, [({1: "-4/5"}, 1), ({0: "-0.8"}, 0)]),
        ]
    )
    expected = make_pi_cycle_lemm().problem
    assert nodes == expected
    assert nodes.A_exact == expected.A_exact
    Q = np.zeros((3, 2, 3))
    Q[0, 1, 2] = Q[1, 0, 2] = Q[2, 0, 1] = Q[2, 1, 0] = -0.8
    dense = LEMM.from_dense(Q, [[0, 3], [-2, 3], [1, 0]], ["max"] * 3)
    assert dense == expected
    assert dense.A_exact is None
    ragged = LEMM.from_dense([[[0.5], [9.0]]], [[1.0, np.nan]], ["max"])
    assert ragged.m == 1
    whole = LEMM.from_dense(np.zeros((1, 2, 1), dtype=int), np.array([[1, 2]]), ["min"])
    assert whole.b_exact == (Fraction(1), Fraction(2))
    with pytest.raises(ValueError, match="NaN in a row"):
        LEMM.from_dense([[[np.nan]]], [[1.0]], ["max"])
    with pytest.raises(ValueError, match="shape \\(n, k, n\\)"):
        LEMM.from_dense([[1.0]], [[1.0]], ["max"])
    with pytest.raises(ValueError, match="must be finite"):
        LEMM.from_nodes([("affine", [({0: np.nan}, 0)])])
    with pytest.raises(ValueError, match="not a decimal"):
        LEMM.from_nodes([("affine", [({0: "one"}, 0)])])


def test_mdp_inputs_agree():
    rng = np.random.RandomState(0)
    n, k = 5, 3
    P = rng.dirichlet(np.ones(n), size=(k, n))
    R = rng.normal(size=(n, k))
    problem = LEMM.from_mdp(P, R, 0.9)
    # One Bellman image by hand.
    x = rng.normal(size=n)
    expected = (R + 0.9 * np.einsum("ast,t->sa", P, x)).max(axis=1)
    np.testing.assert_allclose(problem.T(x), expected)
    assert LEMM.from_mdp([sp.csr_array(Pa) for Pa in P], R, 0.9) == problem
    stacked = P.transpose(1, 0, 2).reshape(n * k, n)
    states = np.repeat(np.arange(n), k)
    long = LEMM.from_mdp(sp.csr_array(stacked), R.ravel(), 0.9, s_indices=states)
    assert long == problem
    shuffled = rng.permutation(n * k)
    mixed = LEMM.from_mdp(
        sp.csr_array(stacked[shuffled]), R.ravel()[shuffled], 0.9, s_indices=states[shuffled]
    )
    np.testing.assert_allclose(mixed.T(x), expected)
    R3 = np.repeat(R[:, :, None], n, axis=2)
    np.testing.assert_allclose(LEMM.from_mdp(P, R3, 0.9).T(x), expected)
    costs = LEMM.from_mdp(P, -R, 0.9, sense="min")
    np.testing.assert_allclose(costs.T(-x), -expected)
    game = LEMM.from_stochastic_game(P, R, ["max", "min", "max", "min", "min"], 0.9)
    best = R + 0.9 * np.einsum("ast,t->sa", P, x)
    hands = np.where([1, 0, 1, 0, 0], best.max(axis=1), best.min(axis=1))
    np.testing.assert_allclose(game.T(x), hands)
    masked = LEMM.from_mdp(P, R, 0.9, mask=np.tril(np.ones((n, k), dtype=bool), 0))
    assert np.diff(masked.indptr).tolist() == [1, 2, 3, 3, 3]


def test_mdp_terminal_states():
    P = np.array([[[0, 1.0], [0, 1.0]], [[1.0, 0], [0, 1.0]]])
    for terminal in ([1], np.array([False, True]), {1: 0.0}):
        problem = LEMM.from_mdp(P, [[1.0, -1.0], [5.0, 5.0]], terminal=terminal)
        np.testing.assert_allclose(problem.T([3.0, 9.0]), [10.0, 0.0])
    worth = LEMM.from_mdp(P, np.zeros(2), 0.5, terminal={1: 8.0})
    np.testing.assert_allclose(solve_lemm(worth).x, [4.0, 8.0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"discount": 1.5}, "discount=1.5"),
        ({"P": np.full((1, 2, 2), 0.4)}, "sum to 0.8"),
        ({"P": np.zeros((0, 2, 2))}, "holds no action"),
        ({"R": np.zeros(3)}, "R must have shape"),
        ({"terminal": [5]}, "names state 5"),
        ({"terminal": np.array([True])}, "one flag a state"),
        ({"sense": "best"}, "op='best'"),
        ({"sense": ["max"]}, "one for each of 2 states"),
        ({"mask": np.zeros((2, 1), dtype=bool)}, "node 0 has no action"),
        ({"mask": np.ones((3, 3), dtype=bool)}, "mask must have shape"),
        ({"P": sp.csr_array(np.eye(2))}, "give s_indices too"),
        ({"P": sp.csr_array(np.eye(2)), "s_indices": [0]}, "s_indices must hold one state"),
        ({"P": np.array([[[2.0, -1.0], [0, 1.0]]])}, "non-negative"),
    ],
)
def test_malformed_mdps_are_refused(change, message):
    good = {"P": np.eye(2)[None], "R": np.zeros((2, 1)), "discount": 0.9}
    assert LEMM.from_mdp(**good).n == 2
    with pytest.raises(ValueError, match=message):
        LEMM.from_mdp(**{**good, **change})


def test_undiscounted_process_without_end_is_not_halting():
    endless = LEMM.from_mdp([np.eye(2), np.eye(2)[::-1]], np.zeros((2, 2)))
    found = classify_lemm(endless)
    assert found.halting is False
    (policy,) = found.refuting_policy[:1]
    Q, _ = endless.policy_matrix(policy)
    assert np.abs(np.linalg.eigvals(Q.toarray())).max() >= 1 - 1e-9
    with pytest.raises(LEMMNotUniqueError, match="terminal="):
        solve_lemm(endless)


def test_simple_stochastic_game_and_its_errors():
    kind = ["max", "min", "avg", "sink0", "sink1"]
    game = LEMM.from_ssg(
        kind, [[1, 2], [2, 3], [0, 3, 4], [], []], [None, None, [0.5, 0.25, 0.25], None, None]
    )
    # min takes the 0-sink; avg: y = 0.5 max(0, y) + 0.25.
    np.testing.assert_allclose(solve_lemm(game).x, [0.5, 0, 0.5, 0, 1])
    assert game.classify().label == "ssg"
    with pytest.raises(ValueError, match="allowed: 'max', 'min', 'avg'"):
        LEMM.from_ssg(["coin"], [[0]], [None])
    with pytest.raises(ValueError, match="sum to 1"):
        LEMM.from_ssg(["avg", "sink1"], [[0, 1], []], [[0.5, 0.4], None])
    with pytest.raises(ValueError, match="as long"):
        LEMM.from_ssg(["max"], [], [None])


def test_branching_errors():
    with pytest.raises(ValueError, match="non-negative expected numbers"):
        LEMM.from_branching([[{0: -0.5}]], [[1]], ["max"])
    with pytest.raises(ValueError, match=r"reward\[0\]"):
        LEMM.from_branching([[{0: 0.5}]], [[1, 2]], ["max"])


def test_values_and_policies_are_checked():
    with pytest.raises(ValueError, match=r"x must have shape \(3,\)"):
        MIXED.T([1, 2])
    with pytest.raises(ValueError, match="finite"):
        MIXED.T([1, 2, np.nan])
    with pytest.raises(ValueError, match=r"pi\[0\]=3 is out of range; allowed: 0 to 2"):
        MIXED.evaluate([3, 0, 0])
    with pytest.raises(ValueError, match="one action"):
        MIXED.evaluate([0.5, 0, 0])
    with pytest.raises(LEMMSingularError, match="nodes 0"):
        LEMM.from_equations("x = x + 1").evaluate([0])
    # Inside a larger component a coefficient of 1 on itself may be regular.
    regular = LEMM.from_equations(["x = x + y + 1", "y = -x"])
    np.testing.assert_allclose(regular.evaluate([0, 0]), [1, -1])


@pytest.mark.parametrize("evaluation", ["auto", "dense", "sparse", "krylov"])
@pytest.mark.parametrize("structure", ["random", "banded", "grid", "layered"])
def test_evaluation_routes_agree(evaluation, structure):
    made = make_lemm(900, kind="absolutely_halting", structure=structure, random_state=0)
    Q, b = made.problem.policy_matrix(made.policy)
    expected = np.linalg.solve(np.eye(900) - Q.toarray(), b)
    np.testing.assert_allclose(
        made.problem.evaluate(made.policy, evaluation), expected, rtol=1e-9, atol=1e-9
    )


def test_components_and_restriction():
    problem = LEMM.from_equations(["a = 0.5*b", "b = 0.5*a + c", "c = max(1, 0.5*c + d)", "d = 2"])
    assert [part.tolist() for part in problem.sccs()] == [[3], [2], [0, 1]]
    part = problem.restrict(np.array([0, 1]), np.array([9.0, 9.0, 4.0, 2.0]))
    np.testing.assert_allclose(part.evaluate([0, 0]), [8 / 3, 16 / 3])
    graph = problem.to_networkx()
    assert set(graph.edges) == {("a", "b"), ("b", "a"), ("b", "c"), ("c", "c"), ("c", "d")}
    assert graph.nodes["c"]["op"] == "max"


def test_save_and_load(tmp_path):
    for problem in (MIXED, make_lemm(20, random_state=0).problem):
        problem.save(tmp_path / "problem.npz")
        again = LEMM.load(tmp_path / "problem.npz")
        assert again == problem
        assert again.A_exact == problem.A_exact


def test_normal_form_keeps_halting_and_the_solution():
    for made in (make_vi_divergent_lemm(), make_lemm(6, 3, kind="halting", random_state=1)):
        form = made.problem.to_normal_form()
        assert form.n == made.problem.n + made.problem.m
        assert form.classify().halting is True
        np.testing.assert_allclose(
            solve_lemm(form, random_state=0).x[: made.problem.n], made.value, atol=1e-8
        )


def test_stochastic_game_form_is_a_game_of_probabilities():
    for seed in range(5):
        made = make_lemm(8, 3, kind="branching", random_state=seed)
        form = made.problem.to_stochastic_game()
        sums = form.game.A @ np.ones(form.game.n)
        np.testing.assert_allclose(sums[:-2], 1, atol=1e-12)
        u = solve_lemm(form.game).x
        assert u.min() >= -1e-12
        assert u.max() <= 1 + 1e-12
        np.testing.assert_allclose(form.back(u), made.value, rtol=1e-7, atol=1e-7)
        game, back = form
        assert game is form.game
        np.testing.assert_array_equal(back(u), form.back(u))
    with pytest.raises(ValueError, match="negative"):
        MIXED.to_stochastic_game()
    with pytest.raises(ValueError, match="halting"):
        TWISTED.to_stochastic_game()


def test_complementarity_form():
    made = make_pi_cycle_lemm()
    form = made.problem.to_lcp()
    x = made.value
    z = form.first @ x - form.offsets
    w = form.M @ z + form.q
    assert z.min() >= -1e-12
    assert w.min() >= -1e-12
    assert abs(z @ w) < 1e-12
    np.testing.assert_allclose(form.back(z), x)
    with pytest.raises(ValueError, match="3 actions"):
        MIXED.to_lcp()
    rng = np.random.RandomState(0)
    M = rng.normal(size=(6, 6))
    M = M @ M.T + np.eye(6)
    q = rng.normal(size=6)
    z = solve_lemm(LEMM.from_lcp(M, q), random_state=0).x
    np.testing.assert_allclose(np.minimum(z, M @ z + q), 0, atol=1e-9)
    with pytest.raises(ValueError, match="M must have shape"):
        LEMM.from_lcp(np.eye(2), [1])


def test_rescaling_and_halting_transform():
    v = np.array([0.1, 2.0, 30.0])
    np.testing.assert_allclose(solve_lemm(MIXED.rescale(v)).x * v, solve_lemm(MIXED).x)
    with pytest.raises(ValueError, match="positive"):
        MIXED.rescale([1, 1, 0])
    loop = LEMM.from_equations(["x = max(y, 0.5)", "y = x"])
    assert loop.classify().halting is False
    np.testing.assert_allclose(solve_lemm(halting_transform(loop, 1e-3)).x, [0.5, 0.4995])
    with pytest.raises(ValueError, match="eps"):
        halting_transform(loop, 1.0)


@pytest.mark.parametrize(
    ("problem", "label", "absolutely", "halting", "w"),
    [
        (make_pi_cycle_lemm().problem, "absolutely_halting", True, True, True),
        (make_vi_divergent_lemm().problem, "halting", False, True, True),
        (make_ssg_newton_cycle().problem, "ssg", True, True, True),
        (BRANCHING, "halting_branching", True, True, True),
        (ONE_SIGN, "w", False, False, True),
        (TWISTED, "not_w", False, False, False),
        (make_murty_lemm(6).problem, "absolutely_halting", True, True, True),
    ],
)
def test_classes_of_the_named_examples(problem, label, absolutely, halting, w):
    found = classify_lemm(problem)
    assert found.label == label
    assert found.absolutely_halting is absolutely
    assert found.halting is halting
    assert found.w_property is w
    assert found.acyclic is (label == "absolutely_halting" and problem.n == 6)
    if absolutely:
        image = np.maximum.reduceat(abs(problem.A) @ found.weights, problem.indptr[:-1])
        assert (image < found.weights).all()
        np.testing.assert_allclose(found.contraction, (image / found.weights).max(), atol=1e-9)


def test_class_details():
    assert make_pi_cycle_lemm().problem.classify().contraction == pytest.approx(0.8)
    found = BRANCHING.classify()
    assert found.rho_abs_bracket[0] <= 0.740312423743285 <= found.rho_abs_bracket[1]
    assert found.rho_abs_bracket[1] - found.rho_abs_bracket[0] < 1e-6
    witness = TWISTED.classify().refuting_policy
    assert [policy.tolist() for policy in witness] == [[0, 0], [1, 0]]
    undecided = make_lemm(40, 2, kind="w", random_state=0).problem
    assert undecided.classify().w_property is True  # component by component
    assert classify_lemm(undecided, exact_limit=1, random_state=0).w_property is None
    with pytest.raises(TypeError, match="must be a LEMM"):
        classify_lemm("x = 1")
    with pytest.raises(ValueError, match="exact_limit"):
        classify_lemm(MIXED, exact_limit=0)


def test_classes_against_enumeration():
    """W and halting as their definitions say, over all policies."""
    rng = np.random.RandomState(1)
    seen = set()
    for _ in range(60):
        n, k = rng.randint(1, 4), rng.randint(1, 4)
        A = rng.normal(scale=rng.choice([0.3, 0.7, 1.5]), size=(n * k, n))
        A *= rng.uniform(size=A.shape) < 0.7
        problem = LEMM(A, np.zeros(n * k), np.arange(0, n * k + 1, k), [1 if k > 1 else 0] * n)
        policies = np.stack(np.meshgrid(*[range(k)] * n), axis=-1).reshape(-1, n)
        Q = A.reshape(n, k, n)[np.arange(n), policies]
        signs = np.sign(np.linalg.det(np.eye(n) - Q))
        radius = np.abs(np.linalg.eigvals(Q)).max()
        absolute = np.abs(np.linalg.eigvals(np.abs(Q))).max()
        found = classify_lemm(problem)
        assert found.w_property is bool(abs(signs.sum()) == len(signs))
        assert found.halting is bool(radius < 1)
        assert found.absolutely_halting is bool(absolute < 1)
        seen.add(found.label)
    assert {"w", "not_w", "halting", "absolutely_halting"} <= seen


def test_refutation_of_large_components():
    """Too many policies to enumerate: the descent still finds a sign change."""
    rng = np.random.RandomState(0)
    A = rng.normal(size=(60, 30))
    problem = LEMM(A, np.zeros(60), np.arange(0, 61, 2), [1] * 30)
    found = classify_lemm(problem, exact_limit=100, random_state=0)
    assert found.label == "not_w"
    signs = [
        np.linalg.slogdet(np.eye(30) - problem.policy_matrix(policy)[0].toarray())[0]
        for policy in found.refuting_policy
    ]
    assert sorted(signs) == [-1, 1]


def test_minimal_weights():
    np.testing.assert_allclose(make_ssg_newton_cycle().problem.weights(), [10, 9, 10])
    np.testing.assert_allclose(MIXED.weights(), [4, 4, 4])
    np.testing.assert_allclose(BRANCHING.weights(), [12, 2.75])
    with pytest.raises(ValueError, match="not absolutely halting"):
        make_vi_divergent_lemm().problem.weights()
    # Slow contraction and coefficients of very different sizes.
    slow = LEMM.from_equations(["a = 0.99999*b", "b = 1 + a"])
    np.testing.assert_allclose(slow.weights(), [199999, 200000], rtol=1e-6)
    made = make_lemm(300, kind="branching", rescale_sigma=3, random_state=0)
    v = made.problem.weights()
    image = np.maximum.reduceat(abs(made.problem.A) @ v, made.problem.indptr[:-1])
    np.testing.assert_allclose(v, 1 + image, rtol=1e-8)
