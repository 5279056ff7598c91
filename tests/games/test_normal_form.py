"""Normal-form games: decomposition, harmonic measures, conversions, generators."""

import itertools
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.datasets import (
    load_classic_game,
    make_harmonic_game,
    make_mixture_game,
    make_potential_game,
    make_zero_sum_game,
)
from equipoise.games import (
    HarmonicGame,
    NormalFormGame,
    decompose,
    estimate_potentialness,
    find_harmonic_measure,
    harmonic_dimension,
)
from equipoise.testing import measures, mixed_profiles, payoff_tensors

few = settings(max_examples=40, deadline=None)


def dense_decomposition(u, measure):
    """The definition, by dense matrices: weighted least squares of payoff differences."""
    n, shape = u.shape[0], u.shape[1:]
    M = int(np.prod(shape))
    masses = [mu.sum() for mu in measure]
    averages = []
    for i, mu in enumerate(measure):
        factors = [np.eye(d) for d in shape]
        factors[i] = np.tile(mu / mu.sum(), (shape[i], 1))
        operator = np.ones((1, 1))
        for factor in factors:
            operator = np.kron(operator, factor)
        averages.append(operator)
    weights = np.ones(1)
    for mu in measure:
        weights = np.kron(weights, mu)
    strategic = [(np.eye(M) - L) @ u_i.ravel() for L, u_i in zip(averages, u, strict=True)]
    # phi minimises sum_i m_i |Pi_i phi - Pi_i u_i|^2 weighted by p
    rows = [
        np.sqrt(m * weights)[:, None] * (np.eye(M) - L)
        for m, L in zip(masses, averages, strict=True)
    ]
    targets = [np.sqrt(m * weights) * w for m, w in zip(masses, strategic, strict=True)]
    phi = np.linalg.lstsq(np.vstack(rows), np.concatenate(targets), rcond=None)[0]
    phi -= weights @ phi / weights.sum()
    potential = [(np.eye(M) - L) @ phi for L in averages]
    harmonic = [w - p for w, p in zip(strategic, potential, strict=True)]
    fold = lambda parts: np.array(parts).reshape(n, *shape)  # noqa: E731
    return u - fold(strategic), fold(potential), fold(harmonic), phi.reshape(shape)


def residual_by_definition(u, measure):
    """R(a) = sum_i sum_b mu_i(b) [u_i(a) - u_i(b, a_{-i})], profile by profile."""
    R = np.zeros(u.shape[1:])
    for a in itertools.product(*map(range, u.shape[1:])):
        for i, mu in enumerate(measure):
            for b, weight in enumerate(mu):
                other = (*a[:i], b, *a[i + 1 :])
                R[a] += weight * (u[(i, *a)] - u[(i, *other)])
    return R


def inner(u, w, measure):
    p = np.ones(())
    for mu in measure:
        p = np.multiply.outer(p, mu)
    return sum(mu.sum() * (p * a * b).sum() for mu, a, b in zip(measure, u, w, strict=True))


# Reference values


def test_reference_weighted_decomposition():
    u = np.array([[[3.0, 0, 1], [2, 4, -1]], [[1, 2, 0], [5, -2, 3]]])
    parts = decompose(u, [[1, 2], [1, 3, 2]])
    np.testing.assert_allclose(
        parts.nonstrategic.payoffs[0], [[7 / 3, 8 / 3, -1 / 3]] * 2, atol=1e-12
    )
    np.testing.assert_allclose(
        parts.nonstrategic.payoffs[1], [[7 / 6] * 3, [5 / 6] * 3], atol=1e-12
    )
    h = 26 / 9
    np.testing.assert_allclose(
        parts.harmonic.payoffs[0], [[h, -h, h], [-h / 2, h / 2, -h / 2]], atol=1e-12
    )
    np.testing.assert_allclose(
        parts.harmonic.payoffs[1], [[-h / 2, h / 2, -h / 2], [h / 4, -h / 4, h / 4]], atol=1e-12
    )
    phi = [[0.5, -1.3888889, -0.5], [3.8333333, -1.7222222, 1.8333333]]
    np.testing.assert_allclose(parts.potential_function, phi, atol=1e-7)
    assert parts.norms["potential"] == pytest.approx(20.37154879, abs=1e-8)
    assert parts.norms["harmonic"] == pytest.approx(18.38477631, abs=1e-8)
    assert parts.potentialness == pytest.approx(0.52563159, abs=1e-8)


def test_reference_classics():
    dilemma = load_classic_game("prisoners_dilemma").decompose()
    np.testing.assert_allclose(
        dilemma.potential_function, [[-1.75, 0.25], [0.25, 1.25]], atol=1e-14
    )
    sexes = load_classic_game("battle_of_the_sexes").decompose()
    np.testing.assert_allclose(sexes.potential_function, [[0.75, -0.25], [-1.25, 0.75]], atol=1e-14)
    for parts in (dilemma, sexes):
        assert parts.potentialness == 1.0
        assert parts.game.is_potential()
    pennies = load_classic_game("matching_pennies")
    assert np.abs(pennies.decompose().potential.payoffs).max() == 0.0
    assert pennies.is_harmonic()
    assert not pennies.is_potential()


@pytest.mark.parametrize(
    ("shape", "dimension"),
    [((2, 2), 1), ((2, 3), 2), ((3, 3), 4), ((2, 2, 2), 5), ((3, 3, 3), 28), ((2, 2, 2, 2), 17)],
)
def test_reference_dimensions(shape, dimension):
    dimensions = harmonic_dimension(shape)
    assert dimensions["harmonic"] == dimension
    assert sum(dimensions.values()) == len(shape) * np.prod(shape)
    if len(shape) < 4:
        rng = np.random.RandomState(0)
        measure = [rng.uniform(0.5, 2, d) for d in shape]
        drawn = [
            make_harmonic_game(shape, measure=measure, nonstrategic=False, random_state=rng)
            for _ in range(2 * dimension)
        ]
        assert np.linalg.matrix_rank([g.payoffs.ravel() for g in drawn], tol=1e-9) == dimension


@pytest.mark.parametrize(
    ("A", "factor", "measure"),
    [
        ([[2, -1], [-1, 1]], 1, ([2, 3], [2, 3])),
        ([[2, -1], [-1, 1]], 3, ([2, 3], [6, 9])),
        ([[0, -1, 2], [1, 0, -1], [-1, 1, 0]], 1, ([3, 5, 4], [4, 5, 3])),
    ],
)
def test_reference_measures(A, factor, measure):
    A = np.array(A, dtype=float)
    rng = np.random.RandomState(0)
    own_free = [rng.normal(size=(1, len(A))), rng.normal(size=(len(A), 1))]
    u = np.stack([factor * A + own_free[0], -A + own_free[1]])
    found = find_harmonic_measure(u)
    total = sum(map(sum, measure))
    for got, expected in zip(found.measure, measure, strict=True):
        np.testing.assert_allclose(got, np.array(expected) / total, atol=1e-10)
    assert found.nullity == 1
    assert found.margin == pytest.approx(min(map(min, measure)) / total)
    assert found.residual < 1e-12


def test_no_measure_for_the_dilemma():
    found = find_harmonic_measure(load_classic_game("prisoners_dilemma"))
    assert not found.is_harmonic
    assert found.margin == 0.0
    assert found.residual > 0.1
    assert all((mu > 0).all() for mu in found.measure)


# Invariants


@few
@given(st.data())
def test_decomposition_against_dense_matrices(data):
    game = NormalFormGame(data.draw(payoff_tensors()))
    measure = data.draw(measures(game.shape))
    parts = game.decompose(measure)
    scale = 1.0 + np.abs(game.payoffs).max()
    nonstrategic, potential, harmonic, phi = dense_decomposition(game.payoffs, measure)
    np.testing.assert_allclose(parts.nonstrategic.payoffs, nonstrategic, atol=1e-9 * scale)
    np.testing.assert_allclose(parts.potential.payoffs, potential, atol=1e-9 * scale)
    np.testing.assert_allclose(parts.harmonic.payoffs, harmonic, atol=1e-9 * scale)
    np.testing.assert_allclose(parts.potential_function, phi, atol=1e-8 * scale)


@few
@given(st.data())
def test_decomposition_invariants(data):
    game = NormalFormGame(data.draw(payoff_tensors()))
    measure = data.draw(measures(game.shape))
    scale = 1.0 + np.abs(game.payoffs).max()
    parts = game.decompose(measure)
    components = [g.payoffs for g in (parts.nonstrategic, parts.potential, parts.harmonic)]
    np.testing.assert_allclose(sum(components), game.payoffs, atol=1e-11 * scale)
    size = inner(game.payoffs, game.payoffs, measure)
    for first, second in itertools.combinations(components, 2):
        assert abs(inner(first, second, measure)) <= 1e-9 * size + 1e-20
    mass = sum(mu.sum() for mu in measure)
    R = residual_by_definition(components[2], measure)
    assert np.abs(R).max() <= 1e-12 * scale * mass * 10
    np.testing.assert_allclose(
        game.harmonic_residual(measure),
        residual_by_definition(game.payoffs, measure),
        atol=1e-11 * scale * mass,
    )
    again = parts.harmonic.decompose(measure, components="harmonic").harmonic
    np.testing.assert_allclose(again.payoffs, components[2], atol=1e-10 * scale)
    larger = game.decompose([3.7 * mu for mu in measure]).harmonic
    np.testing.assert_allclose(larger.payoffs, components[2], atol=1e-10 * scale)
    energy = parts.subset_energy()
    assert energy["potential"].sum() == pytest.approx(
        parts.norms["potential"] ** 2, abs=1e-9 * size
    )
    assert energy["harmonic"].sum() == pytest.approx(parts.norms["harmonic"] ** 2, abs=1e-9 * size)
    singles = energy["size"] == 1
    assert energy.loc[singles, "harmonic"].max() <= 1e-18 * (size + 1.0)


@few
@given(st.data())
def test_decomposition_is_linear(data):
    game = NormalFormGame(data.draw(payoff_tensors()))
    measure = data.draw(measures(game.shape))
    other = NormalFormGame(np.random.RandomState(1).normal(size=game.payoffs.shape))
    mixed = (2.5 * game + (-0.75) * other).decompose(measure)
    scale = 1.0 + np.abs(game.payoffs).max()
    for name in ("nonstrategic", "potential", "harmonic"):
        a, b = (getattr(g.decompose(measure), name).payoffs for g in (game, other))
        got = getattr(mixed, name).payoffs
        np.testing.assert_allclose(got, 2.5 * a - 0.75 * b, atol=1e-10 * scale)


@few
@given(st.data())
def test_decomposition_moves_with_players_and_actions(data):
    game = NormalFormGame(data.draw(payoff_tensors()))
    measure = data.draw(measures(game.shape))
    n = game.n_players
    order = data.draw(st.permutations(range(n)))
    shuffles = [data.draw(st.permutations(range(d))) for d in game.shape]
    u = game.payoffs[np.ix_(range(n), *shuffles)]
    u = u.transpose(0, *(1 + k for k in order))[list(order)]
    moved = [measure[k][shuffles[k]] for k in order]
    expected = game.decompose(measure).harmonic.payoffs[np.ix_(range(n), *shuffles)]
    expected = expected.transpose(0, *(1 + k for k in order))[list(order)]
    got = decompose(u, moved).harmonic.payoffs
    np.testing.assert_allclose(got, expected, atol=1e-10 * (1 + np.abs(u).max()))


@few
@given(st.data())
def test_nonstrategic_games_change_nothing_else(data):
    game = NormalFormGame(data.draw(payoff_tensors()))
    measure = data.draw(measures(game.shape))
    free = game.decompose(measure, components="nonstrategic").nonstrategic * 5.0
    parts, other = game.decompose(measure), (game + free).decompose(measure)
    scale = 1.0 + np.abs(game.payoffs).max()
    for name in ("potential", "harmonic"):
        np.testing.assert_allclose(
            getattr(parts, name).payoffs, getattr(other, name).payoffs, atol=1e-10 * scale
        )
    assert game.is_strategically_equivalent(game + free)
    assert (game * 2.0).is_strategically_equivalent(game + free, rescaling=True)


@few
@given(st.data())
def test_harmonic_identity_and_center(data):
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    measure = data.draw(measures(shape))
    seed = data.draw(st.integers(0, 2**31 - 1))
    game = make_harmonic_game(shape, measure=measure, random_state=seed)
    x = data.draw(mixed_profiles(shape))
    terms = [
        m * (v @ (x_i - q))
        for m, v, x_i, q in zip(game.masses, game.payoff_vectors(x), x, game.center, strict=True)
    ]
    assert abs(sum(terms)) < 1e-9
    assert game.nash_gap(game.center) < 1e-10
    J = game.jacobian(game.center, game.measure)
    np.testing.assert_allclose(J, -J.T, atol=1e-9)
    if game.is_odd_dimensional:
        assert np.linalg.svd(J, compute_uv=False)[-1] < 1e-8
    weighted = game.to_weighted_zero_sum()
    assert weighted.is_zero_sum(game.masses, tol=1e-8) or np.abs(weighted.payoffs).max() < 1e-9
    found = game.find_harmonic_measure()
    assert found.is_harmonic
    assert found.residual < 1e-8


@few
@given(st.data())
def test_payoff_vectors_by_enumeration(data):
    game = NormalFormGame(data.draw(payoff_tensors()))
    x = data.draw(mixed_profiles(game.shape))
    expected = [np.zeros(d) for d in game.shape]
    for a in itertools.product(*map(range, game.shape)):
        for i in range(game.n_players):
            weight = np.prod([x[j][a[j]] for j in range(game.n_players) if j != i])
            expected[i][a[i]] += weight * game.payoffs[(i, *a)]
    for got, v in zip(game.payoff_vectors(x), expected, strict=True):
        np.testing.assert_allclose(got, v, atol=1e-12 * (1 + np.abs(game.payoffs).max()))
    many = [np.stack([x_i, np.full(len(x_i), 1 / len(x_i))]) for x_i in x]
    gaps = game.nash_gap(many)
    assert gaps.shape == (2,)
    assert gaps[0] == pytest.approx(game.nash_gap(x), abs=1e-12)
    each = game.nash_gap(x, aggregate=None)
    assert each.sum() == pytest.approx(gaps[0], abs=1e-12)
    assert game.nash_gap(x, "mean") == pytest.approx(gaps[0] / game.n_players, abs=1e-12)


def test_jacobian_by_differences():
    game = make_harmonic_game((2, 3, 2), measure=[[1, 2], [1, 1, 3], [2, 1]], random_state=0)
    rng = np.random.RandomState(1)
    x = [rng.dirichlet(np.ones(d)) for d in game.shape]
    from equipoise.games.normal_form.profiles import simplex_basis

    B = [simplex_basis(d) for d in game.shape]

    def field(z):
        parts = np.split(z, np.cumsum([d - 1 for d in game.shape])[:-1])
        at = [x_i + b @ p for x_i, b, p in zip(x, B, parts, strict=True)]
        v = game.payoff_vectors(at)
        return np.concatenate([m * b.T @ v_i for m, b, v_i in zip(game.masses, B, v, strict=True)])

    h = 1e-6
    numeric = np.stack([(field(h * e) - field(-h * e)) / (2 * h) for e in np.eye(4)], axis=1)
    np.testing.assert_allclose(game.jacobian(x, game.measure), numeric, atol=1e-7)


def test_pure_nash_by_enumeration():
    rng = np.random.RandomState(0)
    game = NormalFormGame(rng.randint(0, 3, size=(3, 2, 3, 2)))
    expected = []
    for a in itertools.product(range(2), range(3), range(2)):
        x = [np.eye(d)[k] for d, k in zip(game.shape, a, strict=True)]
        if game.is_nash(x, tol=0.0):
            expected.append(a)
    assert [tuple(a) for a in game.pure_nash()] == expected
    best = game.best_responses([np.eye(d)[0] for d in game.shape])
    assert (
        best[1].tolist()
        == np.flatnonzero(game.payoffs[1, 0, :, 0] == game.payoffs[1, 0, :, 0].max()).tolist()
    )


def test_decomposition_with_exact_fractions():
    """A 2x3 game in rationals: the harmonic part of the uniform measure is exact to rounding."""
    u = [
        [[Fraction(k * k % 7) for k in range(j, j + 3)] for j in range(2)],
        [[Fraction(j - k, 3) for k in range(3)] for j in range(2)],
    ]
    own = [
        [[u[0][a][b] - (u[0][0][b] + u[0][1][b]) / 2 for b in range(3)] for a in range(2)],
        [[u[1][a][b] - sum(u[1][a]) / 3 for b in range(3)] for a in range(2)],
    ]
    div = [[2 * own[0][a][b] + 3 * own[1][a][b] for b in range(3)] for a in range(2)]
    # eigenvalues 2, 3 and 5 of the three components
    mean_a = [sum(row) / 3 for row in div]
    mean_b = [(div[0][b] + div[1][b]) / 2 for b in range(3)]
    phi = [
        [mean_a[a] / 2 + mean_b[b] / 3 + (div[a][b] - mean_a[a] - mean_b[b]) / 5 for b in range(3)]
        for a in range(2)
    ]
    got = decompose(np.array(u, dtype=float)).potential_function
    np.testing.assert_allclose(got, np.array(phi, dtype=float), atol=1e-15)


# Traps


def test_large_games_and_large_payoffs():
    rng = np.random.RandomState(0)
    game = NormalFormGame(rng.normal(size=(10, *[2] * 10)))
    parts = game.decompose()
    total = parts.nonstrategic + parts.potential + parts.harmonic
    np.testing.assert_allclose(total.payoffs, game.payoffs, atol=1e-12)
    assert parts.harmonic.is_harmonic(tol=1e-8)
    huge = NormalFormGame(1e160 * np.array([[[1.0, -1], [-1, 1]], [[-1, 1], [1, -1]]]))
    assert huge.decompose().norms["harmonic"] == pytest.approx(4e160)
    assert huge.decompose().potentialness == 0.0


def test_potentialness_of_a_nonstrategic_game_is_nan():
    u = np.random.RandomState(0).normal(size=(2, 1, 3)).repeat(3, axis=1)
    u[1] = u[0].T
    parts = decompose(u)
    assert np.isnan(parts.potentialness)
    assert np.isnan(parts.potential_share)
    assert NormalFormGame(u).is_harmonic()
    assert NormalFormGame(u).is_potential()


def test_one_player_and_single_actions():
    alone = decompose(np.array([[1.0, 4.0, 1.0]]))
    np.testing.assert_allclose(alone.potential_function, [-1, 2, -1])
    assert np.abs(alone.harmonic.payoffs).max() < 1e-15
    assert not NormalFormGame([[1.0, 2.0]]).is_harmonic()
    assert NormalFormGame([[2.0, 2.0]]).is_harmonic()
    dummy = make_harmonic_game((1, 2, 2), random_state=0)
    assert dummy.find_harmonic_measure().measure[0] == 1.0
    assert dummy.find_harmonic_measure().nullity == 2


def test_badly_scaled_player_does_not_hide():
    game = make_harmonic_game((2, 3, 2), random_state=0) * np.array([1.0, 1e9, 1e-6])
    found = game.find_harmonic_measure()
    assert found.is_harmonic
    ratio = found.measure[0].sum() / found.measure[1].sum()
    assert ratio == pytest.approx(2 / 3 * 1e9, rel=1e-6)
    spoiled = game.payoffs.copy()
    spoiled[2, 0, 0, 0] += 1e-5
    assert not find_harmonic_measure(spoiled).is_harmonic


def test_streamed_measure_agrees(monkeypatch):
    from equipoise.games.normal_form import measure as module

    game = make_harmonic_game((3, 2, 4), measure=[[1, 2, 3], [1, 1], [2, 1, 1, 3]], random_state=0)
    expected = game.find_harmonic_measure()
    monkeypatch.setattr(module, "LARGEST_SYSTEM", 0)
    streamed = game.find_harmonic_measure()
    assert streamed.nullity == expected.nullity == 1
    for a, b in zip(streamed.measure, expected.measure, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-7)


def test_null_space_of_two_dimensions_takes_the_largest_margin():
    """2x4 games leave free directions: the program spreads the weights as evenly as it can."""
    game = make_harmonic_game((2, 4), random_state=0)
    found = game.find_harmonic_measure()
    assert found.nullity > 1
    assert found.is_harmonic
    assert found.margin >= 1 / 6 - 1e-9


def test_components_on_demand():
    game = load_classic_game("jordan")
    parts = game.decompose(components=("harmonic",))
    assert set(parts.norms) == {"harmonic"}
    with pytest.raises(ValueError, match="potential part was not computed"):
        parts.potentialness  # noqa: B018
    with pytest.raises(ValueError, match="allowed"):
        game.decompose(components=("harmony",))


# Values


def test_games_are_immutable_values():
    u = np.arange(8.0).reshape(2, 2, 2)
    game = NormalFormGame(u, player_names=["a", "b"], action_names=[["l", "r"], ["u", "d"]])
    u[:] = 0
    assert game.payoffs[1, 1, 1] == 7.0
    with pytest.raises(ValueError, match="read-only"):
        game.payoffs[0, 0, 0] = 1.0
    with pytest.raises(AttributeError):
        game.payoffs = u
    twin = pickle.loads(pickle.dumps(game))
    assert twin == game
    assert hash(twin) == hash(game)
    assert not twin.payoffs.flags.writeable
    assert (game + game) == 2.0 * game
    assert (game - game) == 0.0 * game
    assert (-game).payoffs[1, 1, 1] == -7.0
    assert (np.array([1.0, 2.0]) * game).payoffs[1, 1, 1] == 14.0
    assert game != NormalFormGame(game.payoffs)
    assert "NormalFormGame(2 players, 2x2 actions)" in game._repr_html_()
    harmonic = make_harmonic_game((2, 2), random_state=0)
    again = pickle.loads(pickle.dumps(harmonic))
    assert again == harmonic
    assert not again.measure[0].flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        harmonic.measure[0][0] = 2.0


@pytest.mark.parametrize(
    ("payoffs", "message"),
    [
        (np.zeros(3), "shape"),
        (np.zeros((3, 2, 2)), r"one axis for each of the n players, got \(3, 2, 2\)"),
        (np.zeros((2, 2, 0)), "player 1 has no action"),
        (np.array([[[1.0, np.nan], [0, 0]], [[0, 0], [0, 0]]]), r"payoffs\[0, 0, 1\] is nan"),
        (np.array([[[1.0, 2], [0, 0]], [[0, 0], [np.inf, 0]]]), r"payoffs\[1, 1, 0\] is inf"),
        (np.array([[["a", "b"]] * 2] * 2), "real numbers"),
        (np.zeros((2, 2, 2), dtype=complex), "real numbers"),
    ],
)
def test_bad_payoffs(payoffs, message):
    with pytest.raises(ValueError, match=message):
        NormalFormGame(payoffs)


def test_bad_arguments():
    game = load_classic_game("matching_pennies")
    for measure, message in [
        ([[1, 1]], "one vector for each of the 2 players, got 1"),
        ([[1, 1], [1, 1, 1]], r"measure\[1\] must have shape \(2,\), got \(3,\)"),
        ([[1, 1], [1, 0]], r"measure\[1\] must be finite and positive"),
        ([[1, np.nan], [1, 1]], r"measure\[0\]"),
    ]:
        with pytest.raises(ValueError, match=message):
            game.decompose(measure)
    for x, message in [
        ([[1, 0]], "2 players, got 1"),
        ([[1, 0], [1, 0, 0]], r"x\[1\] must have shape"),
        ([[1, 0], [0.7, 0.7]], "sum to 1"),
        ([[1, 0], [np.nan, 1]], "sum to 1"),
        ([[1, 0], [-0.5, 1.5]], "non-negative"),
    ]:
        with pytest.raises(ValueError, match=message):
            game.nash_gap(x)
    with pytest.raises(ValueError, match="'sum', 'max', 'mean', None"):
        game.nash_gap([[1, 0], [1, 0]], aggregate="median")
    with pytest.raises(ValueError, match="distinct names"):
        NormalFormGame(game.payoffs, player_names=["a", "a"])
    with pytest.raises(ValueError, match="one shape"):
        game + load_classic_game("jordan")
    with pytest.raises(ValueError, match=r"residual at profile") as refusal:
        HarmonicGame([[[3, 0], [5, 1]], [[3, 5], [0, 1]]])
    assert "(0, 0)" in str(refusal.value) or "(1, 1)" in str(refusal.value)
    with pytest.raises(ValueError, match=r"known; allowed.*jordan"):
        load_classic_game("tic_tac_toe")
    with pytest.raises(ValueError, match="'unit', None"):
        make_harmonic_game((2, 2), scale="large")
    with pytest.raises(ValueError, match="'gaussian', 'integer'"):
        make_harmonic_game((2, 2), entries="uniform")
    with pytest.raises(ValueError, match="positive integer"):
        make_harmonic_game((2, 0))


def test_exact_gap():
    """In rationals the centre of an integer game is an equilibrium exactly, and near it isn't."""
    game = make_harmonic_game((2, 3, 2), entries="integer", random_state=1)
    center = [[Fraction(1, d)] * d for d in game.shape]
    assert game.exact_nash_gap(center) == 0
    rng = np.random.RandomState(0)
    for _ in range(5):
        x = [rng.dirichlet(np.ones(d)) for d in game.shape]
        assert float(game.exact_nash_gap(x)) == pytest.approx(game.nash_gap(x), rel=1e-12)
    with pytest.raises(ValueError, match="sum to 1"):
        game.exact_nash_gap([[1, 1], [1, 0, 0], [1, 0]])


def test_potentialness_of_samples():
    """The Gram matrices give what decomposing each resample's mean would, and the share without a
    sample's products with itself isn't biased by noise."""
    measure = [[1.0, 2.0], [1.0, 1.0, 3.0]]
    game = make_mixture_game((2, 3), 0.3, measure=measure, random_state=0)
    truth = game.decompose(measure).potential_share
    rng = np.random.RandomState(0)
    covered, shares, naive = 0, [], []
    for seed in range(60):
        samples = game.payoffs + 2.0 * rng.normal(size=(20, 2, 2, 3))
        found = estimate_potentialness(samples, measure, n_resamples=200, random_state=seed)
        naive.append(found.game.decompose(measure).potential_share)
        assert found.potentialness.estimate == pytest.approx(
            found.game.decompose(measure).potentialness, abs=1e-12
        )
        shares.append(found.potential_share.estimate)
        covered += found.potential_share.low <= truth <= found.potential_share.high
    rows = np.random.RandomState(5).randint(20, size=20)
    direct = NormalFormGame(samples[rows].mean(axis=0)).decompose(measure).potentialness
    again = estimate_potentialness(samples[rows], measure, n_resamples=10, random_state=0)
    assert again.potentialness.estimate == pytest.approx(direct, abs=1e-12)
    # 60 draws of coverage 0.95: four standard errors below are 0.84
    assert covered >= 0.84 * 60
    error = np.std(shares) / np.sqrt(60)
    assert abs(np.mean(shares) - truth) < 4 * error
    assert abs(np.mean(naive) - truth) > 4 * error  # noise draws the plain share away
    with pytest.raises(ValueError, match="at least two samples"):
        estimate_potentialness(samples[:1])
    with pytest.raises(ValueError, match="one entry for each of 20 samples, got 3"):
        estimate_potentialness(samples, groups=[0, 1, 2])


def test_potentialness_of_grouped_samples():
    """Copies of a sample in its group add nothing."""
    game = make_mixture_game((2, 2), 0.5, random_state=0)
    samples = game.payoffs + np.random.RandomState(0).normal(size=(12, 2, 2, 2))
    once = estimate_potentialness(samples, n_resamples=100, random_state=0)
    twice = estimate_potentialness(
        np.repeat(samples, 2, axis=0),
        groups=np.repeat(range(12), 2),
        n_resamples=100,
        random_state=0,
    )
    for name in ("potentialness", "potential_share"):
        for end in ("estimate", "low", "high"):
            a, b = getattr(once[name], end), getattr(twice[name], end)
            assert a == pytest.approx(b, abs=1e-12)


# Other representations


@few
@given(st.data())
def test_nfg_round_trip_is_exact(data):
    game = NormalFormGame(data.draw(payoff_tensors()))
    again = NormalFormGame.from_nfg(game.to_nfg(title='a "title"'))
    assert again == game


def test_nfg_files_are_utf8(tmp_path):
    game = NormalFormGame(np.zeros((2, 1, 2)), player_names=["Zoë", "Jürgen"])
    game.to_nfg(tmp_path / "game.nfg")
    assert "Zoë" in (tmp_path / "game.nfg").read_bytes().decode("utf-8")
    assert NormalFormGame.from_nfg(tmp_path / "game.nfg") == game
    with pytest.raises(FileNotFoundError):
        NormalFormGame.from_nfg("there is no such file.nfg")


def test_nfg_order_and_forms(tmp_path):
    """The first player's strategy varies fastest: only a non-square game shows it."""
    u = np.arange(36.0).reshape(3, 2, 3, 2)
    listed = [u[:, a, b, c] for c in range(2) for b in range(3) for a in range(2)]
    body = "\n".join(f"{p[0]} {p[1]} {p[2]}" for p in listed)
    text = 'NFG 1 R "title" { "A" "B" "C" } { 2 3 2 }\n' + body
    assert np.array_equal(NormalFormGame.from_nfg(text).payoffs, u)
    outcomes = "\n".join(f'{{ "o{k}" {p[0]}, {p[1]}, {p[2]} }}' for k, p in enumerate(listed[1:]))
    numbers = " ".join(str(k) for k in range(12))
    text = (
        'NFG 1 R "title" { "A" "B" "C" }\n{ { "1" "2" } { "x" "y" "z" } { "1" "2" } }\n""\n'
        f"{{\n{outcomes}\n}}\n{numbers}"
    )
    path = tmp_path / "game.nfg"
    path.write_text(text)
    game = NormalFormGame.from_nfg(path)
    u[:, 0, 0, 0] = 0.0  # outcome 0 is the null outcome
    assert np.array_equal(game.payoffs, u)
    assert game.action_names[1] == ("x", "y", "z")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('NFG 2 R "" { "A" } { 1 } 0', "line 1: expected version 1, got 2"),
        (
            'NFG 1 R "" { "A" "B" }\n{ 2 }\n0',
            "line 2: expected at least one strategy for each of 2",
        ),
        ('NFG 1 R "" { "A" "B" }\n{ 1 2 }\n0 0\n1 x', "line 4: expected a number, got x"),
        ('NFG 1 R "" { "A" "B" }\n{ 1 2 }\n0 0\n1', "line 4: expected a number, got end of text"),
        (
            'NFG 1 R "" { "A" "B" }\n{ 1 1 }\n0 0\n1',
            "line 4: expected nothing after the 1 profiles",
        ),
        ('NFG 1 R "" { "A" "B\n', "line 1: a quotation mark isn't closed"),
        ('NFG 1 R "" { "A" }\n{ 2 }\n{ { "" 1 } }\n1 2', "line 4: expected a whole number up to 1"),
        ('NFG 1 R "" { "A" }\n{ 1 }\n1/0', "line 3: expected a number, got 1/0"),
        ('EFG 2 R "" { "A" }', "line 1: expected 'NFG', got EFG"),
    ],
)
def test_unreadable_nfg_names_the_line(text, message):
    with pytest.raises(ValueError, match=message):
        NormalFormGame.from_nfg(text)


def test_dataframes_round_trip():
    game = NormalFormGame(
        np.random.RandomState(0).normal(size=(2, 2, 3)),
        player_names=["row", "column"],
        action_names=[["up", "down"], ["left", "mid", "right"]],
    )
    table = game.to_dataframe()
    columns = (["row", "column"], ["payoff of row", "payoff of column"])
    assert NormalFormGame.from_dataframe(table, *columns) == game
    assert NormalFormGame.from_dataframe(pl.from_pandas(table), *columns) == game
    with pytest.raises(ValueError, match="stands in 0 rows"):
        NormalFormGame.from_dataframe(table[1:], *columns)
    with pytest.raises(ValueError, match="stands in 2 rows"):
        NormalFormGame.from_dataframe(pd.concat([table, table[:1]]), *columns)


@pytest.mark.parametrize("package", ["pygambit", "quantecon", "openspiel", "nashpy"])
@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 2)])
def test_packages_round_trip(package, shape):
    pytest.importorskip("pyspiel" if package == "openspiel" else package)
    game = NormalFormGame(np.random.RandomState(0).normal(size=(len(shape), *shape)))
    if package == "nashpy" and len(shape) > 2:
        with pytest.raises(ValueError, match="two players, this one has 3"):
            game.to_nashpy()
        return
    foreign = getattr(game, f"to_{package}")()
    again = getattr(NormalFormGame, f"from_{package}")(foreign)
    np.testing.assert_allclose(again.payoffs, game.payoffs, atol=1e-12)


def test_pygambit_reads_and_writes_our_text():
    gambit = pytest.importorskip("pygambit")
    game = NormalFormGame(np.round(np.random.RandomState(0).normal(size=(3, 2, 3, 2)), 3))
    theirs = gambit.read_nfg(__import__("io").StringIO(game.to_nfg()))
    np.testing.assert_allclose(NormalFormGame.from_pygambit(theirs).payoffs, game.payoffs)
    assert NormalFormGame.from_nfg(theirs.to_nfg()) == game
    tenth = NormalFormGame([[[0.1, 0.2]], [[0.3, 0.4]]])
    short = tenth.to_pygambit(max_denominator=1000).to_nfg()
    assert "1/10" in short


def test_openspiel_by_name_and_equilibria_of_peers():
    pytest.importorskip("pyspiel")
    rps = NormalFormGame.from_openspiel("matrix_rps")
    assert rps.is_harmonic()
    assert rps.action_names[0] == ("Rock", "Paper", "Scissors")
    assert NormalFormGame.from_openspiel("blotto(players=2,coins=3,fields=2)").n_players == 2
    with pytest.raises(ValueError, match="one-shot"):
        NormalFormGame.from_openspiel("tic_tac_toe")


def test_gambit_finds_the_center():
    gambit = pytest.importorskip("pygambit")
    game = make_zero_sum_game((3, 3), random_state=0)
    theirs = game.to_pygambit()
    profile = gambit.nash.lcp_solve(theirs, rational=False).equilibria[0]
    for player, q in zip(theirs.players, game.center, strict=True):
        np.testing.assert_allclose([profile[s] for s in player.strategies], q, atol=1e-8)


def test_quantecon_solves_our_games():
    theory = pytest.importorskip("quantecon.game_theory")
    game = make_zero_sum_game((3, 4), random_state=0)
    found = [np.asarray(x) for x in theory.lemke_howson(game.to_quantecon())]
    assert game.is_nash(found, tol=1e-10)


def test_missing_package_names_the_extra(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "nashpy", None)
    with pytest.raises(ImportError, match=r"equipoise\[games\]"):
        load_classic_game("matching_pennies").to_nashpy()


# Generators


def test_generators():
    game = make_harmonic_game((2, 3, 2), random_state=0, nonstrategic=False)
    assert np.sqrt(np.square(game.payoffs).mean()) == pytest.approx(1.0)
    assert make_harmonic_game((2, 3), random_state=3) == make_harmonic_game((2, 3), random_state=3)
    integer = make_harmonic_game((2, 3, 2), entries="integer", random_state=0)
    assert np.array_equal(integer.payoffs, integer.payoffs.round())
    assert np.abs(residual_by_definition(integer.payoffs, integer.measure)).max() == 0.0
    assert integer.decompose().norms["harmonic"] > 1.0
    measure = [[1.0, 2.0], [3.0, 1.0, 1.0]]
    potential = make_potential_game((2, 3), measure=measure, random_state=0)
    assert potential.decompose(measure).potentialness == 1.0
    mixed = make_mixture_game((2, 3), 0.3, measure=measure, random_state=0)
    assert mixed.decompose(measure).potentialness == pytest.approx(0.3)
    zero_sum = make_zero_sum_game((3, 4), random_state=0)
    assert zero_sum.is_zero_sum()
    assert zero_sum.is_nash(zero_sum.center, tol=1e-12)
    assert not isinstance(make_zero_sum_game((2, 2), interior=False, random_state=0), HarmonicGame)
    projected = HarmonicGame.from_game(load_classic_game("jordan"))
    assert projected.is_harmonic()


def test_isotropic_draws_reach_every_direction():
    """The share of a random game's energy in a subspace is its share of the dimensions."""
    rng = np.random.RandomState(0)
    from equipoise.datasets.normal_form import isotropic_game

    measure = [np.array([1.0, 3.0]), np.array([2.0, 1.0, 0.5])]
    shares = []
    for _ in range(400):
        norms = isotropic_game((2, 3), measure, rng).decompose(measure).norms
        squares = np.array([norms[k] ** 2 for k in ("nonstrategic", "potential", "harmonic")])
        shares.append(squares)
    mean = np.mean(shares, axis=0)
    expected = np.array(list(harmonic_dimension((2, 3)).values()), dtype=float)
    # a chi-square mean over 400 draws: standard error sqrt(2 k / 400) of k
    assert (np.abs(mean - expected) < 5 * np.sqrt(2 * expected / 400)).all()
