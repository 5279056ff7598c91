"""Product games: nodes, engines and values against exact rationals, enumeration and each other."""

from fractions import Fraction
from itertools import combinations
from math import comb, factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import beta as beta_distribution

from equipoise.explainers import gauss_legendre_01, n_quadrature_nodes, product_game_values
from equipoise.explainers.product_kernels import ProductGame
from equipoise.explainers.product_kernels.engines import (
    identity_values,
    lane_blocks,
    lane_coefficients,
    numpy_values,
    two_sided_values,
)
from equipoise.explainers.product_kernels.esp import esp_values
from equipoise.explainers.product_kernels.log_factors import expm1_nonpositive
from equipoise.explainers.product_kernels.nodes import (
    parse_index,
    quadrature_error_bound,
    quadrature_rules,
)
from equipoise.testing import product_game_arrays, shapley_values

GAMES = settings(max_examples=60, deadline=None)
WEIGHTS = [2, -3]
PRESENCE = [[1 / 2, 1 / 4, 1, 0], [9 / 10, 3 / 5, 1 / 3, 1 / 8]]
ABSENCE = [[3 / 4, 1 / 2, 1 / 2, 1 / 10], [1 / 2, 2 / 5, 1 / 2, 3 / 8]]


def coalition_values(weights, presence, absence):
    """Values of all coalitions, row k for the members that are the bits of k."""
    d = presence.shape[1]
    masks = (np.arange(2**d)[:, None] >> np.arange(d) & 1).astype(bool)
    factors = np.where(masks[:, None, :], presence, absence)
    return factors.prod(axis=2) @ weights


def rational_shapley(weights, presence, absence):
    """Shapley values in exact arithmetic, by the definition."""
    d = len(presence[0])
    phi = [Fraction(0)] * d
    for j in range(d):
        others = [k for k in range(d) if k != j]
        for size in range(d):
            weight = Fraction(factorial(size) * factorial(d - 1 - size), factorial(d))
            for inside in combinations(others, size):
                for w, a, b in zip(weights, presence, absence, strict=True):
                    term = Fraction(w) * (Fraction(a[j]) - Fraction(b[j]))
                    for k in others:
                        term *= Fraction(a[k]) if k in inside else Fraction(b[k])
                    phi[j] += weight * term
    return [float(value) for value in phi]


# Nodes


def test_nodes_agree_with_forty_digits():
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(40):
        for m in (1, 2, 3, 10, 64):
            t, w = gauss_legendre_01(m)
            for k in {0, m // 2, m - 1}:
                x = mpmath.findroot(lambda z, m=m: mpmath.legendre(m, z), 1 - 2 * mpmath.mpf(t[k]))
                slope = mpmath.diff(lambda z, m=m: mpmath.legendre(m, z), x)
                weight = 1 / ((1 - x**2) * slope**2)
                assert abs(t[k] - (1 - x) / 2) < 2e-16
                assert abs(w[k] - weight) < 2e-16


@pytest.mark.parametrize("m", [1, 2, 5, 33, 250])
def test_nodes_integrate_polynomials_exactly(m):
    t, w = gauss_legendre_01(m)
    assert abs(w.sum() - 1) < 1e-14
    assert np.all(np.diff(t) > 0)
    assert_allclose(t + t[::-1], 1, atol=1e-15)
    for degree in (1, m, 2 * m - 1):
        assert_allclose(w @ t**degree, 1 / (degree + 1), rtol=1e-13)
    # One degree more is not integrated exactly: the rule has m nodes, no more.
    if m <= 5:
        assert abs(w @ t ** (2 * m) * (2 * m + 1) - 1) > 1e-7


def test_nodes_refuse_zero_and_cannot_be_changed():
    with pytest.raises(ValueError, match="m=0"):
        gauss_legendre_01(0)
    with pytest.raises(ValueError, match="read-only"):
        gauss_legendre_01(3)[0][0] = 1.0


@pytest.mark.parametrize(
    ("z", "d", "tol", "expected"),
    [(2.0, 10**6, 1e-12, 7), (100, 10**6, 1e-12, 29), (1000, 10**6, 1e-15, 97), (5.0, 6, 1e-15, 3)],
)
def test_node_rule_has_the_published_counts(z, d, tol, expected):
    assert abs(n_quadrature_nodes(z, d, tol) - expected) <= (0 if d == 6 else 1)


@pytest.mark.parametrize("tol", [1e-6, 1e-12, 1e-15])
def test_node_rule_is_the_first_count_whose_bound_holds(tol):
    for z in (0.0, 0.5, 3.0, 40.0, 700.0):
        m = n_quadrature_nodes(z, 10**6, tol)
        assert quadrature_error_bound(m, z, 10**6) <= tol * (1 + 1e-9)
        if m > 1:
            assert quadrature_error_bound(m - 1, z, 10**6) > tol


@pytest.mark.parametrize(
    ("arguments", "name"),
    [((-1.0, 3, 1e-6), "z_sum"), ((np.nan, 3, 1e-6), "z_sum"), ((1.0, 0, 1e-6), "n_players"),
     ((1.0, 3, 0.0), "tol")],
)  # fmt: skip
def test_node_rule_refuses_bad_numbers(arguments, name):
    with pytest.raises(ValueError, match=name):
        n_quadrature_nodes(*arguments)


@given(st.data())
@GAMES
def test_error_bound_covers_the_quadrature_error(data):
    d = data.draw(st.integers(2, 60))
    generator = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    a, b = generator.uniform(size=(2, d))
    if data.draw(st.booleans()):
        b = np.ones(d)
    m = data.draw(st.integers(1, 8))
    t, w = gauss_legendre_01(d)
    exact = w @ np.prod(b + np.outer(t, a - b), axis=1)
    t, w = gauss_legendre_01(m)
    error = abs(w @ np.prod(b + np.outer(t, a - b), axis=1) - exact)
    assert error <= quadrature_error_bound(m, np.abs(a - b).sum(), d + 1) + 1e-14


# Values


def test_one_term():
    phi = product_game_values([1], [[1 / 2, 1 / 5, 4 / 5]])
    assert_allclose(phi, [-83 / 300, -41 / 75, -29 / 300], rtol=1e-14)


def test_two_terms():
    phi = product_game_values(WEIGHTS, PRESENCE)
    assert_allclose(phi, [-211 / 800, -53 / 400, 1111 / 1200, 967 / 2400], rtol=1e-14)


def test_two_sided_terms():
    phi = product_game_values(WEIGHTS, PRESENCE, ABSENCE)
    assert_allclose(phi, [-219 / 3200, -511 / 9600, 529 / 9600, 237 / 3200], rtol=1e-13)


def test_banzhaf_values():
    phi = product_game_values(WEIGHTS, PRESENCE, index="BV")
    assert_allclose(phi[1:3], [-0.135, 0.855], rtol=1e-14)


@given(product_game_arrays(max_players=6, max_terms=4, largest_factor=1.5))
@GAMES
def test_values_agree_with_exact_rationals(game):
    weights, presence, absence = game
    phi = product_game_values(weights, presence, absence)
    scale = np.abs(weights).sum() * 1.5 ** presence.shape[1]
    expected = rational_shapley(weights, presence, absence)
    assert_allclose(phi, expected, rtol=0, atol=1e-14 * scale + 1e-300)


@given(product_game_arrays(max_players=10, max_terms=20), st.sampled_from(["auto", "exact"]))
@GAMES
def test_values_agree_with_enumeration(game, n_nodes):
    weights, presence, absence = game
    scale = np.abs(weights).sum()
    for b in (absence, np.ones_like(absence)):
        phi = product_game_values(weights, presence, b, n_nodes=n_nodes)
        v = coalition_values(weights, presence, b)
        assert_allclose(phi, shapley_values(v), rtol=0, atol=3e-12 * scale + 1e-300)
        assert abs(phi.sum() - (v[-1] - v[0])) <= 3e-12 * scale + 1e-300


@given(product_game_arrays(max_players=7))
@GAMES
def test_null_player_gets_exactly_zero(game):
    weights, presence, absence = game
    absence = absence.copy()
    absence[:, 0] = presence[:, 0]
    assert product_game_values(weights, presence, absence)[0] == 0.0


@given(product_game_arrays(max_players=7), st.randoms(use_true_random=False))
@GAMES
def test_symmetry_and_permutation(game, shuffler):
    weights, presence, absence = game
    scale = np.abs(weights).sum()
    twice = [np.column_stack([a, a[:, -1]]) for a in (presence, absence)]
    phi = product_game_values(weights, *twice)
    assert abs(phi[-1] - phi[-2]) <= 1e-14 * scale
    order = list(range(presence.shape[1]))
    shuffler.shuffle(order)
    phi = product_game_values(weights, presence, absence)
    moved = product_game_values(weights, presence[:, order], absence[:, order])
    assert_allclose(moved, phi[order], rtol=0, atol=1e-13 * scale + 1e-300)


@given(product_game_arrays(max_players=7), st.floats(-3, 3))
@GAMES
def test_linearity_and_several_outputs(game, factor):
    weights, presence, absence = game
    scale = np.abs(weights).sum() * (1 + abs(factor))
    columns = np.column_stack([weights, factor * weights, weights[::-1]])
    both = product_game_values(columns, presence, absence)
    first = product_game_values(weights, presence, absence)
    last = product_game_values(weights[::-1], presence, absence)
    assert_allclose(both[:, 0], first, rtol=0, atol=1e-14 * scale + 1e-300)
    assert_allclose(both[:, 1], factor * first, rtol=0, atol=1e-13 * scale + 1e-300)
    assert_allclose(both[:, 2], last, rtol=0, atol=1e-14 * scale + 1e-300)
    halves = product_game_values(
        np.concatenate([weights / 2, weights / 2]),
        np.tile(presence, (2, 1)),
        np.tile(absence, (2, 1)),
    )
    assert_allclose(halves, first, rtol=0, atol=1e-13 * scale + 1e-300)


@pytest.mark.parametrize("d", [1, 2, 7, 100, 5000])
@pytest.mark.parametrize("kappa", [0.0, 0.3, 0.99, 1.0])
def test_equal_factors_share_equally(d, kappa):
    phi = product_game_values([2.0], np.full((1, d), kappa))
    assert_allclose(phi, 2.0 * (kappa**d - 1) / d, rtol=1e-12, atol=0)


@pytest.mark.parametrize(("d", "zeros"), [(3, 1), (50, 50), (2000, 777), (3000, 1)])
def test_zero_factors_share_the_loss(d, zeros):
    presence = np.ones((1, d))
    presence[0, :zeros] = 0.0
    phi = product_game_values([1.0], presence, n_nodes="exact")
    assert_allclose(phi[:zeros], -1 / zeros, rtol=1e-12)
    assert np.all(phi[zeros:] == 0.0)


def test_accurate_nodes_matter():
    """With numpy's nodes the error is 1e-11 here."""
    presence = np.ones((1, 2000))
    presence[0, :777] = 0.0
    assert_allclose(product_game_values([1.0], presence)[:777], -1 / 777, rtol=1e-12)
    t, w = (np.array(a) for a in np.polynomial.legendre.leggauss(400))
    library = -(w / 2) @ ((1 - t) / 2) ** 776
    assert abs(library * 777 + 1) > 1e-12


def test_thousand_players_close_to_one():
    phi = product_game_values([1.0], np.full((1, 1000), 0.99))
    assert_allclose(phi, -9.999568287525893e-4, rtol=1e-13)


@given(st.integers(1, 200), st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_recursion_and_both_engines_agree(d, seed):
    generator = np.random.default_rng(seed)
    K = generator.uniform(size=(2, 5, d)) ** generator.choice([0.01, 0.3, 3.0])
    coef = generator.normal(size=(5, 2))
    scale = np.abs(coef).sum()
    recursion = esp_values(K - 1, coef)
    for n_nodes in ("auto", "exact"):
        rules = quadrature_rules(d, "SV", n_nodes, 1e-12)
        plain, error, most, z = numpy_values(K - 1, 1.0, coef, rules)
        fast = identity_values(lane_blocks(K - 1), lane_coefficients(coef), *rules)
        assert_allclose(plain, recursion, rtol=0, atol=2e-12 * scale)
        assert_allclose(fast[0], recursion, rtol=0, atol=2e-12 * scale)
        assert_allclose(fast[0], plain, rtol=0, atol=2e-12 * scale)
        assert_allclose(z, fast[3])
        for values, bound in ((plain, error), (fast[0], fast[1])):
            assert np.all(np.abs(values - recursion) <= bound + 1e-13 * scale)
        assert most == fast[2]


@given(st.integers(1, 60), st.integers(1, 3), st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_two_sided_engines_agree(d, n_rows, seed):
    generator = np.random.default_rng(seed)
    A, B = generator.uniform(size=(3, 20, d)), generator.uniform(size=(n_rows, 20, d))
    A[0], B[0, :, 0] = 0.0, 0.0
    coef = generator.normal(size=(20, 1))
    scale = np.abs(coef).sum() * n_rows
    rules = quadrature_rules(d, "SV", "exact", 1e-12)
    w = generator.uniform(size=n_rows)
    blocks = (lane_blocks(A), lane_blocks(B), w, lane_coefficients(coef))
    fast = two_sided_values(*blocks, *rules)[0]
    plain = sum(
        w_r * numpy_values(A - row, row, coef, rules)[0] for row, w_r in zip(B, w, strict=True)
    )
    assert_allclose(fast, plain, rtol=0, atol=1e-13 * scale)


def test_recursion_and_quadrature_are_stable_where_other_forms_are_not():
    """The Moebius form loses all digits at d = 100, dividing out of the full polynomial too."""
    generator = np.random.default_rng(0)
    K = generator.uniform(size=(1, 1, 100))
    phi = esp_values(K - 1, np.ones((1, 1)))[0, :, 0]
    fast = product_game_values([1.0], K[0], n_nodes="exact")
    assert_allclose(fast, phi, rtol=1e-13)
    e = np.zeros(101)
    e[0] = 1.0
    for z in K[0, 0, 1:] - 1:
        e[1:] += z * e[:-1].copy()
    moebius = (K[0, 0, 0] - 1) * sum(e[q] / (q + 1) for q in range(100))
    assert abs(moebius / phi[0] - 1) > 1e-3


# Other semivalues


@given(product_game_arrays(max_players=7, max_terms=3), st.floats(0, 1, width=32))
@GAMES
def test_weighted_banzhaf_agrees_with_enumeration(game, p):
    weights, presence, absence = game
    d = presence.shape[1]
    v = coalition_values(weights, presence, absence)
    phi = product_game_values(weights, presence, absence, index=f"WB:{p!r}")
    rows = np.arange(2**d)
    size = np.array([bin(k).count("1") for k in rows])
    for j in range(d):
        without = rows[(rows >> j & 1) == 0]
        chance = float(p) ** size[without] * (1 - float(p)) ** (d - 1 - size[without])
        expected = chance @ (v[without | 1 << j] - v[without])
        assert abs(phi[j] - expected) <= 1e-13 * np.abs(weights).sum()


@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (2, 3.5), (16, 1), (0.5, 4)])
def test_beta_semivalue_agrees_with_its_weights(alpha, beta):
    generator = np.random.default_rng(1)
    d = 6
    weights, (presence, absence) = generator.normal(size=3), generator.uniform(size=(2, 3, d))
    v = coalition_values(weights, presence, absence)
    phi = product_game_values(weights, presence, absence, index=f"Beta:{alpha},{beta}")
    density = beta_distribution(beta, alpha).pdf
    by_size = [
        quad(lambda t, s=s: density(t) * t**s * (1 - t) ** (d - 1 - s), 0, 1, epsabs=1e-12)[0]
        for s in range(d)
    ]
    assert sum(comb(d - 1, s) * w for s, w in enumerate(by_size)) == pytest.approx(1, abs=1e-8)
    rows = np.arange(2**d)
    for j in range(d):
        without = rows[(rows >> j & 1) == 0]
        chance = np.array([by_size[bin(k).count("1")] for k in without])
        assert phi[j] == pytest.approx(chance @ (v[without | 1 << j] - v[without]), abs=1e-8)


def test_shapley_is_the_mean_of_weighted_banzhaf():
    t, w = gauss_legendre_01(20)
    mean = sum(
        weight * product_game_values(WEIGHTS, PRESENCE, ABSENCE, index=f"WB:{p!r}")
        for p, weight in zip(t.tolist(), w, strict=True)
    )
    assert_allclose(mean, product_game_values(WEIGHTS, PRESENCE, ABSENCE), rtol=1e-13)
    one = product_game_values([3.0], [[0.2]], 0.7, index="BV")
    assert_allclose(one, product_game_values([3.0], [[0.2]], 0.7))


@pytest.mark.parametrize(
    "index",
    ["", "sv", "SV:1", "WB", "WB:1.5", "WB:x", "BV:0.5", "Beta:1", "Beta:0,1", "Beta:1,nan"],
)
def test_unknown_index_is_refused(index):
    with pytest.raises(ValueError, match="index="):
        product_game_values([1.0], [[0.5]], index=index)
    with pytest.raises(ValueError, match="allowed"):
        parse_index(index)


# Input


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (([1.0], [0.5, 0.5]), "presence"),
        (([1.0], [[]]), "presence"),
        (([1.0, 2.0], [[0.5]]), "weights"),
        (([[[1.0]]], [[0.5]]), "weights"),
        (([1.0], [[0.5]], [[1.0, 2.0]]), "absence"),
        (([np.nan], [[0.5]]), "weights"),
        (([1.0], [[np.inf]]), "presence"),
        (([1.0], [[0.5]], np.nan), "absence"),
    ],
)
def test_bad_arrays_are_refused(arguments, name):
    with pytest.raises(ValueError, match=name):
        product_game_values(*arguments)


@pytest.mark.parametrize("options", [{"tol": 0}, {"tol": 0.1}, {"n_nodes": 0}, {"n_nodes": "all"}])
def test_bad_accuracy_is_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        product_game_values([1.0], [[0.5]], **options)


def test_no_terms_give_zeros():
    assert_allclose(product_game_values(np.empty(0), np.empty((0, 3))), np.zeros(3))
    assert product_game_values(np.empty((0, 2)), np.empty((0, 3))).shape == (3, 2)


def test_game_is_an_immutable_value():
    presence = np.array(PRESENCE)
    game = ProductGame(WEIGHTS, presence, constant=0.5)
    presence[:] = 0
    assert game.value([]) == pytest.approx(-0.5)
    assert game.value([0, 1, 2, 3]) == pytest.approx(-27 / 400 + 0.5)
    assert game.value(np.array([True, False, True, False])) == game.value([0, 2])
    assert game.n_players == 4
    with pytest.raises(ValueError, match="read-only"):
        game.presence[0, 0] = 1.0
    with pytest.raises(AttributeError):
        game.constant = 1.0
    with pytest.raises(ValueError, match="constant"):
        ProductGame([1.0], [[0.5]], constant=np.nan)
    with pytest.raises(ValueError, match="weights"):
        ProductGame([[1.0, 2.0]], [[0.5]])


def test_given_number_of_nodes_is_used():
    generator = np.random.default_rng(0)
    presence = generator.uniform(size=(1, 40))
    exact = product_game_values([1.0], presence, n_nodes="exact")
    coarse = product_game_values([1.0], presence, n_nodes=2)
    fine = product_game_values([1.0], presence, n_nodes=12)
    assert np.abs(coarse - exact).max() > 1e-4
    assert np.abs(fine - exact).max() < 1e-9
    assert_allclose(product_game_values([1.0], presence, n_nodes=500), exact, rtol=1e-14)


def test_exponential_minus_one_keeps_its_digits():
    """The compiled series against the library's function, from the smallest to minus infinity."""
    generator = np.random.default_rng(0)
    size = generator.uniform(-300, 7, size=(500, 32))
    size[::2] = size[::2, :1]  # rows of one magnitude: their smallest entries aren't halved often
    x = -np.exp(size)
    x[0, :3] = [0.0, -np.inf, -0.125]
    expected = np.expm1(x)
    expm1_nonpositive(x)
    assert_allclose(x, expected, rtol=3e-15, atol=0)
