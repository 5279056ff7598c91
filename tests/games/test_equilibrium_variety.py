"""The equilibrium variety: closed form, parity of the dimension, polytopes, sampling."""

import pickle

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from equipoise.datasets import load_classic_game, make_harmonic_game
from equipoise.games import EquilibriumVariety, FTRLPlus, HarmonicGame, NormalFormGame
from equipoise.games.normal_form.continuation import field_and_jacobian
from equipoise.games.normal_form.coordinates import Coordinates
from equipoise.testing import check_explains


def cube_game(a, b, c, B):
    """The normalised harmonic 2x2x2 games: five parameters, sum(B) = 0."""
    s = np.array([1.0, -1.0])
    s0, s1, s2 = s[:, None, None], s[None, :, None], s[None, None, :]
    ones = np.ones((2, 2, 2))
    u0 = s0 * (a * s1 + b * s2 + B[0] * s1 * s2) * ones
    u1 = s1 * (-a * s0 + c * s2 + B[1] * s0 * s2) * ones
    u2 = s2 * (-b * s0 - c * s1 + B[2] * s0 * s1) * ones
    return HarmonicGame(np.stack([u0, u1, u2]))


def weighted_game(shape, seed):
    rng = np.random.RandomState(seed)
    return make_harmonic_game(
        shape, measure=[rng.uniform(0.5, 2, d) for d in shape], random_state=rng
    )


def test_reference_curve():
    game = cube_game(1, 1, 1, (0.5, 0.25, -0.75))
    expected = 4.0 * np.array([[0, 1, 1], [-1, 0, 1], [-1, -1, 0]])
    np.testing.assert_allclose(game.jacobian(game.center), expected, atol=1e-12)
    variety = EquilibriumVariety().fit(game)
    assert variety.dimension_ == 1
    assert variety.jacobian_rank_ == 2
    assert not variety.is_convex_
    assert variety.ends_ == [("boundary", "boundary")]
    X = np.stack([2 * x[:, 0] - 1 for x in variety.branches_[0]], axis=1)
    t = X[:, 2]
    curve = np.stack([t / (1 - 0.25 * t), -t / (1 + 0.5 * t), t], axis=1)
    np.testing.assert_allclose(X, curve, atol=1e-12)
    ends = np.stack([2 * x[:, 0] - 1 for x in variety.boundary_points_], axis=1)
    ends = ends[ends[:, 2].argsort()]
    reference = [[-4 / 7, 1, -2 / 3], [1, -4 / 7, 0.8]]
    np.testing.assert_allclose(ends, reference, atol=1e-10)
    at = np.abs(np.diff(t))
    assert at.max() < 0.03
    assert variety.nash_gap_ < 1e-12
    check_explains(variety)


@pytest.mark.parametrize("seed", range(5))
def test_closed_form_of_random_cube_games(seed):
    rng = np.random.RandomState(seed)
    a, b, c, B0, B1 = rng.normal(size=5)
    game = cube_game(a, b, c, (B0, B1, -B0 - B1))
    branch = EquilibriumVariety().fit(game).branches_[0]
    X = [2 * x[:, 0] - 1 for x in branch]
    np.testing.assert_allclose(X[0] * (a - B1 * X[2]), c * X[2], atol=1e-9)
    np.testing.assert_allclose(X[1] * (a + B0 * X[2]), -b * X[2], atol=1e-9)


def test_kernel_against_the_games_own_field():
    game = weighted_game((2, 3, 2), 0)
    coordinates = Coordinates(game, game.measure)
    z = 0.1 * np.random.RandomState(0).normal(size=4)
    x, F, J = np.empty(7), np.empty(4), np.empty((4, 4))
    field_and_jacobian(*coordinates.arrays, z, x, F, J)
    strategies = np.split(x, [2, 5])
    np.testing.assert_allclose(J, game.jacobian(strategies, game.measure), atol=1e-12)
    v = np.concatenate(
        [m * v_i for m, v_i in zip(game.masses, game.payoff_vectors(strategies), strict=True)]
    )
    np.testing.assert_allclose(F, coordinates.bases.T @ v, atol=1e-12)
    assert abs(F @ z) < 1e-12  # the identity that makes the sphere's field tangent


@pytest.mark.parametrize("shape", [(2, 2, 2), (2, 3), (2, 2, 2, 3), (3, 3, 2), (3, 4)])
@pytest.mark.parametrize("seed", range(4))
def test_odd_dimension_gives_a_curve_to_the_boundary(shape, seed):
    game = weighted_game(shape, seed)
    assert game.is_odd_dimensional
    variety = EquilibriumVariety().fit(game)
    assert variety.dimension_ == 1
    assert variety.jacobian_rank_ == game.dimension - 1
    assert variety.is_convex_ == (len(shape) == 2)
    for branch, ends in zip(variety.branches_, variety.ends_, strict=True):
        assert game.nash_gap(branch).max() < 1e-9
        assert ends == ("boundary", "boundary")
        for side in (0, -1):
            assert min(x[side].min() for x in branch) < 1e-9
    centred = np.concatenate(variety.branches_[0], axis=1)
    centred = centred - centred.mean(axis=0)
    singular = np.linalg.svd(centred, compute_uv=False)
    assert (singular[1] < 1e-9 * singular[0]) == (len(shape) == 2)


@pytest.mark.parametrize("shape", [(2, 2), (3, 3), (2, 3, 2), (2, 2, 2, 2), (3, 3, 3)])
@pytest.mark.parametrize("seed", range(4))
def test_even_dimension_isolates_the_center(shape, seed):
    game = weighted_game(shape, seed)
    variety = EquilibriumVariety().fit(game)
    assert variety.dimension_ == 0
    assert variety.jacobian_rank_ == game.dimension
    assert variety.branches_ == []
    for x, q in zip(variety.predict(), game.center, strict=True):
        np.testing.assert_allclose(x, q, atol=1e-12)
    for x in variety.sample(3):
        assert x.shape[0] == 3
    check_explains(variety)


def test_two_players_polytope():
    """2x4: a two-dimensional polygon; each vertex is Nash and on two faces of the simplices."""
    game = weighted_game((2, 4), 0)
    variety = EquilibriumVariety(random_state=0).fit(game)
    assert variety.dimension_ == 2
    assert variety.is_convex_
    vertices = variety.boundary_points_
    assert len(vertices[0]) >= 3
    assert game.nash_gap(vertices).max() < 1e-9
    zeros = sum((x < 1e-9).sum(axis=1) for x in vertices)
    assert (zeros >= 2).all()
    points = variety.sample(200)
    assert game.nash_gap(points).max() < 1e-9
    spread = points[1] - points[1].mean(axis=0)
    assert np.linalg.svd(spread, compute_uv=False)[1] > 0.1
    check_explains(variety)


def test_flat_game_is_all_equilibria():
    variety = EquilibriumVariety(random_state=0).fit(np.zeros((3, 2, 2, 2)))
    assert variety.dimension_ == 3
    assert variety.is_convex_
    assert variety.sample(10)[0].shape == (10, 2)
    point = EquilibriumVariety().fit(np.zeros((2, 1, 1)))
    assert point.dimension_ == 0


def test_three_players_with_a_larger_kernel():
    """A player apart from two who play matching pennies: his strategy is free."""
    u = np.zeros((3, 2, 2, 2))
    pennies = load_classic_game("matching_pennies").payoffs
    u[:2] = pennies[:, :, :, None]
    variety = EquilibriumVariety(random_state=0).fit(HarmonicGame(u))
    assert variety.dimension_ == 1
    assert variety.is_convex_
    both = np.zeros((3, 2, 3, 2))
    A = np.array([[1.0, -1, 0], [-1, 1, 0]])
    both[0], both[1] = A[:, :, None], -A[:, :, None]
    game = NormalFormGame(both)
    wide = EquilibriumVariety(random_state=0).fit(game, [[1.5, 1.5], [1, 1, 1], [1, 1]])
    assert wide.dimension_ == 2
    assert game.nash_gap(wide.sample(20)).max() < 1e-8


@pytest.mark.parametrize("s", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("shape", [(2, 2, 2), (2, 3)])
def test_at_radius(shape, s):
    game = weighted_game(shape, 1)
    points = EquilibriumVariety(random_state=0).fit(game).at_radius(s)
    assert len(points[0]) >= 2  # on both sides of the centre
    assert game.nash_gap(points).max() < 1e-9
    pairs = list(zip(points, game.center, strict=True))
    gauge = np.max([((q - x) / q).max(axis=1) for x, q in pairs], axis=0)
    np.testing.assert_allclose(gauge, s, atol=1e-8)


def test_learning_ends_on_the_curve():
    game = cube_game(1, 1, 1, (0.5, 0.25, -0.75))
    for seed in range(10):
        x = FTRLPlus(init="random", random_state=seed, tol=1e-12).fit(game).strategies_
        X = np.array([2 * x_i[0] - 1 for x_i in x])
        t = X[2]
        assert abs(X[0] - t / (1 - 0.25 * t)) < 1e-6
        assert abs(X[1] + t / (1 + 0.5 * t)) < 1e-6


def test_sampling_is_by_length_and_repeatable():
    game = cube_game(1, 1, 1, (0.5, 0.25, -0.75))
    variety = EquilibriumVariety(random_state=0).fit(game)
    points = variety.sample(400)
    assert game.nash_gap(points).max() < 1e-9
    t = 2 * points[2][:, 0] - 1
    assert t.min() < -0.6
    assert t.max() > 0.7
    again = pickle.loads(pickle.dumps(variety)).sample(400)
    for a, b in zip(points, again, strict=True):
        assert np.array_equal(a, b)


def test_short_traces_warn():
    game = cube_game(1, 1, 1, (0.5, 0.25, -0.75))
    with pytest.warns(ConvergenceWarning, match="max_steps"):
        variety = EquilibriumVariety(max_steps=5).fit(game)
    assert variety.ends_ == [("max_steps", "max_steps")]
    assert len(variety.boundary_points_[0]) == 0


def test_pictures():
    cube = EquilibriumVariety().fit(cube_game(1, 1, 1, (0.5, 0.25, -0.75)))
    assert cube.plot().name == "3d"
    assert len(cube.plot(players=(0, 2)).lines) == 3
    rps = EquilibriumVariety().fit(load_classic_game("rock_paper_scissors"))
    assert len(rps.plot(players=(0,)).lines) == 2
    with pytest.raises(ValueError, match="one to three"):
        cube.plot(players=(0, 1, 2, 3))


def test_errors():
    with pytest.raises(ValueError, match="EquilibriumVariety needs a game that is harmonic"):
        EquilibriumVariety().fit(load_classic_game("prisoners_dilemma"))
    with pytest.raises(ValueError, match="not harmonic for the measure"):
        EquilibriumVariety().fit(load_classic_game("matching_pennies"), [[1, 2], [1, 1]])
    with pytest.raises(ValueError, match="step"):
        EquilibriumVariety(step=0.0).fit(load_classic_game("matching_pennies"))
    with pytest.raises(NotFittedError):
        EquilibriumVariety().at_radius(0.5)
    fitted = EquilibriumVariety().fit(load_classic_game("matching_pennies"))
    with pytest.raises(ValueError, match=r"\(0, 1\]"):
        fitted.at_radius(2.0)
    with pytest.raises(ValueError, match="positive integer"):
        fitted.sample(0)


def test_curves_that_cross_on_the_way():
    """X_0 = X_1 = 0 is one line of equilibria; X_1 = 0, X_2 = 1/2 is another."""
    variety = EquilibriumVariety(random_state=0).fit(cube_game(1, 0, 0, (0.5, 2.0, -2.5)))
    assert variety.dimension_ == 1
    assert not variety.is_convex_
    crossing = [2 * x[:, 0] - 1 for x in variety.branch_points_]
    np.testing.assert_allclose(np.ravel(crossing), [0, 0, 0.5], atol=1e-3)
    assert len(variety.branches_) == 2
    spans = [[np.ptp(2 * x[:, 0] - 1) for x in branch] for branch in variety.branches_]
    np.testing.assert_allclose(spans, [[0, 0, 2], [2, 0, 0]], atol=1e-8)
    assert variety.nash_gap_ < 1e-9


def test_curves_that_cross_at_the_center():
    """Without pairwise terms the three axes of the cube are equilibria."""
    variety = EquilibriumVariety(random_state=0).fit(cube_game(0, 0, 0, (1.0, 0.5, -1.5)))
    assert variety.dimension_ == 1
    assert variety.jacobian_rank_ == 0
    assert len(variety.branches_) == 3
    assert not variety.is_convex_
    assert variety.nash_gap_ < 1e-9
