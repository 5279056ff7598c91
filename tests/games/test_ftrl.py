"""FTRL+: reference runs, bounds, invariances, backends, the one-player learner, the flow."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV

from equipoise.datasets import load_classic_game, make_harmonic_game, make_potential_game
from equipoise.games import (
    FTRLFlow,
    FTRLPlus,
    FTRLPlusLearner,
    HarmonicGame,
    NormalFormGame,
    play_against,
    self_play,
)
from equipoise.games.normal_form.ftrl_kernels import choose_flat
from equipoise.games.normal_form.learner import estimated_payoffs
from equipoise.games.normal_form.regularizers import REGULARIZERS, Regularizer
from equipoise.games.normal_form.step_sizes import lipschitz_moduli, theory_steps
from equipoise.testing import check_explains, check_no_regret, payoff_tensors

few = settings(max_examples=40, deadline=None)
START = [[0.7, 0.3], [0.4, 0.6]]
PENNIES = HarmonicGame(load_classic_game("matching_pennies").payoffs)
each_regularizer = pytest.mark.parametrize("name", REGULARIZERS)


# Choice maps


@pytest.mark.parametrize(
    ("name", "y", "x"),
    [
        ("tsallis", [0, 1, 2], [0.0977121061, 0.2067834945, 0.6955043994]),
        ("log_barrier", [0, 1, 2], [0.2372862196, 0.3111078175, 0.451605963]),
        ("euclidean", [0, 0.4, 0.7], [0, 0.35, 0.65]),
    ],
)
def test_reference_choices(name, y, x):
    np.testing.assert_allclose(Regularizer(name).choose(np.array(y, dtype=float)), x, atol=1e-10)


@each_regularizer
@given(seed=st.integers(0, 2**31 - 1), d=st.integers(1, 6), power=st.floats(0.1, 0.9))
@few
def test_choice_maps(name, seed, d, power):
    h = Regularizer(name, power)
    rng = np.random.RandomState(seed)
    y, other = rng.normal(scale=3, size=(2, d))
    x, x_other = h.choose(y), h.choose(other)
    assert (x >= 0).all()
    assert abs(x.sum() - 1) < 1e-12
    # half a million ulps at 1e6: the shift itself rounds the scores to 1e-10
    np.testing.assert_allclose(h.choose(y + 1e6), x, atol=2e-9)
    np.testing.assert_allclose(h.choose(y - 3.5), x, atol=1e-12)
    norm = np.abs(x - x_other).sum() if name != "euclidean" else np.linalg.norm(x - x_other)
    assert (y - other) @ (x - x_other) >= h.strong_convexity * norm**2 - 1e-10
    equal = h.choose(np.full(d, y[0]))
    np.testing.assert_allclose(equal, 1 / d, atol=1e-12)
    # it maximises <y, x> - h(x)
    for _ in range(10):
        p = rng.dirichlet(np.ones(d))
        assert y @ p - h.value(p) <= y @ x - h.value(x) + 1e-9
    interior = 0.9 * rng.dirichlet(np.ones(d)) + 0.1 / d
    np.testing.assert_allclose(h.choose(h.scores(interior)), interior, atol=1e-9)
    assert h.coupling(interior, y) >= -1e-9
    assert h.coupling(interior, h.scores(interior)) == pytest.approx(0.0, abs=1e-8)
    compiled = np.empty(d)
    choose_flat(h.code, h.exponent, h.slope, y, compiled)
    np.testing.assert_allclose(compiled, x, atol=1e-13)
    batch = h.choose(np.stack([y, other]))
    np.testing.assert_allclose(batch, [x, x_other], atol=1e-13)


def test_extreme_scores_stay_finite():
    for name in REGULARIZERS:
        x = Regularizer(name).choose(np.array([0.0, -1e8, 2000.0]))
        assert np.isfinite(x).all()
        assert x[2] > 0.99
    assert Regularizer("entropic").choose(np.array([0.0, -800.0]))[1] == 0.0
    assert np.isfinite(
        Regularizer("entropic").coupling(np.array([0.5, 0.5]), np.array([0, -800.0]))
    )


@each_regularizer
def test_range_against_optimisation(name):
    """H by brute force: the spread of h - <y0, .> between the start and the (mixed) corners."""
    rng = np.random.RandomState(0)
    h, d, T = Regularizer(name), 4, 50
    y0 = h.scores((rng.dirichlet(np.ones(d)) + 1 / d) / 2)

    def value(z):
        x = np.exp(z - z.max())
        x /= x.sum()
        return h.value(x) - y0 @ x

    least = minimize(value, np.zeros(d), tol=1e-12).fun
    share = 1 / T if name == "log_barrier" else 0.0
    corners = [(1 - share) * e + share / d for e in np.eye(d)]
    most = max(h.value(c) - y0 @ c for c in corners)
    assert h.range_from(y0, T) == pytest.approx(most - least, abs=1e-6)


# Reference runs


REFERENCE = [
    (
        "entropic",
        "optimistic",
        [(0.7, 0.4), (0.515703164, 0.131127323), (0.113118188, 0.228185106)],
        {2: (0.980580676, 0.928476691), 3: (0.867380639, 0.878457471)},
        (0.80350572, 0.41934958),
    ),
    (
        "entropic",
        "mirror-prox",
        [(0.609996584, 0.230504431), (0.284092134, 0.338934471), (0.312198032, 0.664016136)],
        {3: (0.944736053, 0.93186426)},
        (0.55230889, 0.18938101),
    ),
    (
        "euclidean",
        "optimistic",
        [(0.7, 0.4), (0.315099821, 0.0), (0.0, 0.614559961)],
        {2: (0.962250449, 0.87038828)},
        (0.58298415, 0.66845729),
    ),
    (
        "tsallis",
        "optimistic",
        [(0.7, 0.4), (0.445968022, 0.123641507), (0.088706708, 0.308212368)],
        {},
        None,
    ),
    (
        "log_barrier",
        "optimistic",
        [(0.7, 0.4), (0.630497992, 0.270961209), (0.472916954, 0.25781686)],
        {},
        None,
    ),
]


@pytest.mark.parametrize("backend", ["numpy", "numba", "torch"])
@pytest.mark.parametrize(("name", "extrapolation", "played", "steps", "regret"), REFERENCE)
def test_reference_runs(name, extrapolation, played, steps, regret, backend):
    options = {"extrapolation": extrapolation, "init": START, "tol": 0, "backend": backend}
    solver = FTRLPlus(name, max_iter=5, record="all", **options).fit(PENNIES)
    first = np.stack([x[:3, 0] for x in solver.trajectory_], axis=1)
    np.testing.assert_allclose(first, played, atol=1e-9)
    for t, eta in steps.items():
        np.testing.assert_allclose(solver.step_sizes_[t - 1], eta, atol=1e-9)
    np.testing.assert_allclose(solver.step_sizes_[0], 1.0)
    assert solver.n_oracle_calls_ == solver.n_iter_ * (2 if extrapolation == "mirror-prox" else 1)
    if regret is not None and backend == "numba":
        solver = FTRLPlus(name, max_iter=2000, record=None, **options).fit(PENNIES)
        np.testing.assert_allclose(solver.regret_[-1], regret, atol=1e-8)
        assert solver.nash_gap_[-1] < 1e-14


def alternating(t):
    return np.array([1.0, -1.0, 0.0]) * (1 if t % 2 == 0 else -1)


@pytest.mark.parametrize(
    ("name", "regrets", "bounds", "constant"),
    [
        ("entropic", (9.505996, 31.148758), (43.8672, 134.6947), 1.1284),
        ("euclidean", (19.73216, 65.670707), (41.5943, 123.2197), 0.6667),
        ("tsallis", (10.76966, 35.75069), None, 1.5750),
    ],
)
def test_reference_single_learner(name, regrets, bounds, constant):
    learner = FTRLPlusLearner(3, name)
    for t in range(1000):
        learner.observe(alternating(t))
        if t + 1 in (100, 1000):
            k = (t + 1) // 1000
            assert learner.regret == pytest.approx(regrets[k], abs=1e-5)
            if bounds:
                assert learner.regret_bound == pytest.approx(bounds[k], abs=1e-3)
    learner.reset()
    for _ in range(2000):
        learner.observe([1.0, 0.0, 0.0])
    assert learner.regret == pytest.approx(constant, abs=1e-4)


# Bounds and identities


@few
@given(
    st.sampled_from(REGULARIZERS),
    st.sampled_from([0.1, 1.0, 10.0, "scale_free", 0.3]),
    st.sampled_from(["optimistic", "none"]),
    st.integers(1, 5),
    st.integers(0, 2**31 - 1),
)
def test_regret_is_below_its_bound(name, step, extrapolation, d, seed):
    rng = np.random.RandomState(seed)
    options = {"tau": step} if step in (0.1, 1.0, 10.0) else {"step_size": step}
    learner = FTRLPlusLearner(
        d, name, extrapolation=extrapolation, init="random", random_state=seed, **options
    )
    kind = rng.randint(4)
    sums, earned = np.zeros(d), 0.0
    for t in range(120):
        x = learner.act()
        if kind == 0:
            g = rng.normal(size=d)
        elif kind == 1:
            g = -10.0 * (np.arange(d) == x.argmax())
        elif kind == 2:
            g = 1.3 ** min(t, 60) * rng.choice([-1.0, 1.0], size=d)
        else:
            g = rng.normal(size=d) + 3.0
        learner.observe(g)
        sums += g
        earned += g @ x
        bound = learner.regret_bound
        assert learner.regret <= bound + 1e-9 * (1 + abs(bound))
    assert learner.regret == pytest.approx(sums.max() - earned, rel=1e-6, abs=1e-9)


@each_regularizer
@pytest.mark.parametrize("extrapolation", ["optimistic", "mirror-prox", "none", 0.5])
def test_no_regret_against_anyone(name, extrapolation):
    factor = 6.0 if name != "log_barrier" else 12.0  # its range grows with log(n_rounds)
    check_no_regret(
        lambda: FTRLPlusLearner(3, name, extrapolation=extrapolation), n_rounds=400, factor=factor
    )


def test_check_no_regret_can_fail():
    class Stubborn:
        def act(self):
            return np.array([0.0, 0.0, 1.0])

        def observe(self, payoffs):
            pass

    with pytest.raises(AssertionError, match="regret"):
        check_no_regret(Stubborn)

    class Liar(FTRLPlusLearner):
        regret = 0.0

    with pytest.raises(AssertionError, match="truly"):
        check_no_regret(lambda: Liar(3))


@few
@given(st.integers(0, 2**31 - 1), st.sampled_from([(2, 2), (3, 2), (2, 2, 2), (1, 3, 2)]))
def test_weighted_regrets_add_up_to_no_less_than_zero(seed, shape):
    rng = np.random.RandomState(seed)
    measure = [rng.uniform(0.2, 5, d) for d in shape]
    game = make_harmonic_game(shape, measure=measure, random_state=rng)
    solver = FTRLPlus("euclidean", step_size=2.0, extrapolation="none", tol=0, max_iter=300)
    solver.set_params(init="random", random_state=rng).fit(game)
    assert (solver.regret_ @ game.masses).min() >= -1e-8


@pytest.mark.parametrize("extrapolation", ["optimistic", "mirror-prox"])
@each_regularizer
def test_strategic_equivalence_changes_nothing(name, extrapolation):
    game = make_harmonic_game((2, 3, 2), nonstrategic=False, random_state=0)
    shifted = game + make_potential_game((2, 3, 2), random_state=1).decompose().nonstrategic * 7.0
    options = {"extrapolation": extrapolation, "tol": 0, "max_iter": 500, "record": 50}
    runs = [
        FTRLPlus(name, init="random", random_state=0, **options).fit(g) for g in (game, shifted)
    ]
    for a, b in zip(runs[0].trajectory_, runs[1].trajectory_, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)
    np.testing.assert_allclose(runs[0].regret_, runs[1].regret_, atol=1e-8)


@pytest.mark.parametrize("c", [1e-3, 17.0, 1e3])
@each_regularizer
def test_scale_free_steps(name, c):
    rng = np.random.RandomState(0)
    payoffs = rng.normal(size=(200, 3))
    learners = [FTRLPlusLearner(3, name, step_size="scale_free") for _ in range(2)]
    for g in payoffs:
        np.testing.assert_allclose(learners[0].act(), learners[1].act(), atol=1e-8)
        learners[0].observe(g)
        learners[1].observe(c * g)
    still = FTRLPlusLearner(2, name, step_size="scale_free", init=[0.3, 0.7])
    still.observe([5.0, 5.0])
    np.testing.assert_allclose(still.act(), [0.3, 0.7], atol=1e-12)


def test_energy_is_the_weighted_divergence():
    game = make_harmonic_game((2, 3), measure=[[1, 2], [1, 1, 3]], random_state=0)
    solver = FTRLPlus(init="random", random_state=0, max_iter=50, tol=0, record="all").fit(game)
    base = FTRLPlus(  # the base state of round t is what plain FTRL would play
        init="random", random_state=0, max_iter=1, tol=0, record="all"
    ).fit(game)
    kl = sum(
        m * (q @ np.log(q / x[0]))
        for m, q, x in zip(game.masses, game.center, base.trajectory_, strict=True)
    )
    # before any step the base state is the start, which the first round plays
    assert base.energy_[0] == pytest.approx(energy_after_one(game, base), abs=1e-9)
    assert solver.energy_[-1] < 5 * kl + 5
    assert FTRLPlus(tol=0, max_iter=5).fit(NormalFormGame(game.payoffs)).energy_ is None


def energy_after_one(game, solver):
    """sum_i m_i KL(q_i || Q(log x_1 + eta Y_1)) by hand."""
    x = [path[0] for path in solver.trajectory_]
    total = 0.0
    for m, q, x_i, v, eta in zip(
        game.masses, game.center, x, game.payoff_vectors(x), solver.step_sizes_[0], strict=True
    ):
        y = np.log(x_i) + eta * v
        base = np.exp(y - y.max())
        base /= base.sum()
        total += m * (q @ np.log(q / base))
    return total


# Convergence


@pytest.mark.parametrize("shape", [(2, 2), (3, 3), (2, 2, 2), (2, 3, 2)])
def test_self_play_converges_with_constant_regret(shape):
    """30 games a shape: thresholds from 100 seeds a shape, with room."""
    rng = np.random.RandomState(0)
    games = [
        make_harmonic_game(shape, measure=[rng.uniform(0.5, 2, d) for d in shape], random_state=rng)
        for _ in range(30)
    ]
    solver = FTRLPlus(init="random", random_state=0, tol=0, record=9, max_iter=10_000).fit(games)
    at = {int(t): k for k, t in enumerate(solver.rounds_)}
    largest = solver.regret_.max(axis=2)
    increment = largest[at[10_000]] - largest[at[1000]]
    assert np.median(increment) < 0.01
    assert np.quantile(increment, 0.9) < 0.5
    assert np.median(solver.nash_gap_[-1]) < 1e-6
    plain = clone(solver).set_params(extrapolation="none").fit(games)
    grown = plain.regret_.max(axis=2)
    assert np.median(grown[at[10_000]] / grown[at[1000]]) > 1.5
    assert np.median(plain.nash_gap_[-1]) > 0.01


def test_uniform_start_of_a_uniform_game_is_an_equilibrium():
    solver = FTRLPlus().fit(PENNIES)
    assert solver.n_iter_ == 1
    assert solver.converged_
    assert solver.best_nash_gap_ == 0.0


def test_flat_game_and_single_actions():
    solver = FTRLPlus(init="random", random_state=0).fit(np.ones((2, 3, 1)))
    assert solver.converged_
    assert solver.n_iter_ == 1
    alone = FTRLPlus(max_iter=2000, tol=1e-3).fit(np.array([[1.0, 3.0, 2.0]]))
    assert alone.converged_
    assert alone.strategies_[0].argmax() == 1
    theory = FTRLPlus(step_size="theory", tol=0, max_iter=3).fit(np.array([[2.0, 2.0]]))
    np.testing.assert_allclose(theory.step_sizes_, 1.0)


def test_theory_steps():
    G = lipschitz_moduli(PENNIES)
    np.testing.assert_allclose(G, [1.0, 1.0])
    np.testing.assert_allclose(lipschitz_moduli(PENNIES, euclidean=True), [2.0, 2.0])
    rng = np.random.RandomState(0)
    game = NormalFormGame(rng.normal(size=(3, 2, 3, 2)))
    brute = np.zeros(3)
    for i, j in itertools.permutations(range(3), 2):
        k = 3 - i - j
        u = game.payoffs[i].transpose(i, j, k)
        for a, a2 in itertools.combinations(range(u.shape[0]), 2):
            for b, b2 in itertools.combinations(range(u.shape[1]), 2):
                second = u[a, b] - u[a2, b] - u[a, b2] + u[a2, b2]
                brute[i] = max(brute[i], 0.25 * np.abs(second).max())
    np.testing.assert_allclose(lipschitz_moduli(game), brute)
    steps = theory_steps(PENNIES, PENNIES.masses, Regularizer("tsallis"))
    np.testing.assert_allclose(steps, 0.0625)
    harmonic = make_harmonic_game((2, 2, 2), random_state=0)
    solver = FTRLPlus(step_size="theory", init="random", random_state=0, max_iter=20_000)
    assert solver.fit(harmonic).converged_
    plain = NormalFormGame(harmonic.payoffs)  # the measure is found
    np.testing.assert_allclose(
        clone(solver).fit(plain).step_sizes_[0], solver.step_sizes_[0], rtol=1e-8
    )


# Backends, batches, continuing


@pytest.mark.parametrize("extrapolation", ["optimistic", "mirror-prox", 0.3, "none"])
@each_regularizer
def test_backends_agree(name, extrapolation):
    game = make_harmonic_game((2, 3, 2), random_state=0)
    options = {"extrapolation": extrapolation, "init": "random", "random_state": 0, "tol": 0}
    runs = [
        FTRLPlus(name, backend=backend, max_iter=60, record="all", **options).fit(game)
        for backend in ("numpy", "numba", "torch")
    ]
    for other in runs[1:]:
        for a, b in zip(runs[0].trajectory_, other.trajectory_, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-11)
        for attribute in ("regret_", "regret_bound_", "step_sizes_", "nash_gap_", "energy_"):
            np.testing.assert_allclose(
                getattr(runs[0], attribute), getattr(other, attribute), atol=1e-9
            )


@pytest.mark.parametrize("extrapolation", ["optimistic", "mirror-prox"])
@each_regularizer
def test_learners_play_what_the_solver_plays(name, extrapolation):
    game = make_harmonic_game((2, 3, 2), random_state=0)
    x1 = [[0.3, 0.7], [0.2, 0.5, 0.3], [0.6, 0.4]]
    solver = FTRLPlus(
        name,
        extrapolation=extrapolation,
        init=x1,
        tol=0,
        max_iter=40,
        record="all",
        backend="numpy",
    ).fit(game)
    learners = [FTRLPlusLearner(len(x), name, extrapolation=extrapolation, init=x) for x in x1]
    result = self_play(learners, game, 40)
    for a, b in zip(result.strategies, solver.trajectory_, strict=True):
        assert np.array_equal(a, b)
    np.testing.assert_allclose(result.regret, solver.regret_[-1], atol=1e-12)
    np.testing.assert_allclose(result.regret_bound, solver.regret_bound_[-1], atol=1e-12)


@pytest.mark.parametrize("backend", ["numpy", "numba", "torch"])
def test_batches_are_single_games(backend):
    games = [make_harmonic_game((2, 3), random_state=k) for k in range(5)]
    x1 = [[0.3, 0.7], [0.2, 0.5, 0.3]]
    options = {"init": x1, "backend": backend, "max_iter": 45, "tol": 1e-3, "record": 20}
    batch = FTRLPlus(n_jobs=2, **options)
    with pytest.warns(ConvergenceWarning, match="games after"):
        batch.fit(games)
    for k, game in enumerate(games):
        single = FTRLPlus(**options)
        if batch.converged_[k]:
            single.fit(game)
        else:
            with pytest.warns(ConvergenceWarning, match="Nash gap of"):
                single.fit(game)
        assert single.n_iter_ == batch.n_iter_[k]
        for a, b in zip(single.strategies_, batch.strategies_, strict=True):
            np.testing.assert_allclose(a, b[k], atol=1e-12)
        np.testing.assert_allclose(single.regret_bound_[-1], batch.regret_bound_[-1, k], atol=1e-9)
        assert single.best_nash_gap_ == pytest.approx(batch.best_nash_gap_[k], abs=1e-13)
    check_explains(batch)
    assert set(batch.explain().to_frame()["game"]) == set(range(5))


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_partial_fit_goes_on(backend):
    game = make_harmonic_game((2, 2, 2), random_state=0)
    options = {"init": "random", "random_state": 0, "tol": 0, "backend": backend}
    whole = FTRLPlus(max_iter=90, **options).fit(game)
    parts = FTRLPlus(max_iter=30, **options).fit(game)
    before = pickle.dumps(parts)
    parts.partial_fit(game, 25).partial_fit(game, 35)
    assert parts.n_iter_ == 90
    for a, b in zip(whole.strategies_, parts.strategies_, strict=True):
        assert np.array_equal(a, b)
    np.testing.assert_array_equal(whole.regret_[-1], parts.regret_[-1])
    assert (np.diff(parts.rounds_) > 0).all()
    old = pickle.loads(before)
    with pytest.raises(ValueError, match="fit starts anew"):
        old.partial_fit(PENNIES, 5)
    assert old.n_iter_ == 30
    with pytest.raises(ValueError, match="positive integer"):
        old.partial_fit(game, 0)
    fresh = FTRLPlus(**options).partial_fit(game, 90)
    np.testing.assert_array_equal(fresh.regret_[-1], whole.regret_[-1])


def test_large_games_take_blas():
    game = make_harmonic_game((2,) * 17, random_state=0)
    solver = FTRLPlus(init="random", random_state=0, max_iter=3, tol=0).fit(game)
    assert solver.diagnostics_["backend"] == "numpy"
    assert game.nash_gap(solver.strategies_) == pytest.approx(solver.nash_gap_[-1], abs=1e-9)


# The estimator's contract


def test_records_and_certificates():
    game = make_harmonic_game((2, 3), random_state=0)
    solver = FTRLPlus(init="random", random_state=0, max_iter=1000, tol=0, record=25).fit(game)
    assert solver.rounds_[0] == 1
    assert solver.rounds_[-1] == 1000
    assert solver.regret_.shape == (len(solver.rounds_), 2)
    assert (solver.regret_ <= solver.regret_bound_ + 1e-9).all()
    assert solver.nash_gap_[-1] == pytest.approx(game.nash_gap(solver.strategies_), abs=1e-14)
    assert solver.score(game) == pytest.approx(-solver.nash_gap_[-1], abs=1e-14)
    assert solver.predict() is solver.strategies_
    assert solver.best_nash_gap_ <= solver.nash_gap_.min()
    every = clone(solver).set_params(record="all").fit(game)
    mean = [path.mean(axis=0) for path in every.trajectory_]
    for a, b in zip(mean, solver.averaged_strategies_, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)
    last = clone(solver).set_params(record=None).fit(game)
    assert last.rounds_.tolist() == [1000]
    assert clone(solver).set_params(record=1).fit(game).rounds_.tolist() == [1000]
    moved = max(np.abs(path[-1] - path[-2]).max() for path in every.trajectory_)
    assert every.diagnostics_["movement"] == pytest.approx(moved, abs=1e-15)
    check_explains(solver)


def test_grid_search_over_games():
    games = [make_harmonic_game((2, 2), random_state=k) for k in range(6)]
    base = FTRLPlus(init="random", random_state=0, max_iter=100, tol=0)
    search = GridSearchCV(base, {"extrapolation": ["none", "optimistic"]}, cv=3).fit(games)
    assert search.best_params_ == {"extrapolation": "optimistic"}
    assert search.best_score_ <= 0


def test_callback_and_progress(capsys):
    seen = []

    def stop_at_third(progress):
        seen.append(progress)
        return len(seen) == 3

    solver = FTRLPlus(init=START, tol=0, callback=stop_at_third, verbose=True).fit(PENNIES)
    assert solver.n_iter_ == seen[-1]["n_iter"] == solver.rounds_[-1]
    assert len(solver.rounds_) == 3
    assert PENNIES.nash_gap(seen[-1]["strategies"]) == pytest.approx(seen[-1]["nash_gap"])
    assert "FTRLPlus" in capsys.readouterr().err

    def interrupt(progress):
        raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted"):
        kept = FTRLPlus(init=START, tol=0, callback=interrupt).fit(PENNIES)
    assert kept.n_iter_ == 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"regularizer": "quadratic"}, "log_barrier"),
        ({"extrapolation": "extra"}, "mirror-prox"),
        ({"extrapolation": 1.5}, "extrapolation"),
        ({"step_size": "large"}, "scale_free"),
        ({"step_size": -1.0}, "positive number"),
        ({"step_size": [1.0, 1.0, 1.0]}, "2 players"),
        ({"tau": 0.0}, "tau"),
        ({"tsallis_power": 1.0}, "tsallis_power"),
        ({"max_iter": 0}, "max_iter"),
        ({"init": [[1.0, 0.0], [0.5, 0.5]]}, r"init\[0\] must have only positive entries"),
        ({"init": [[0.5, 0.5]]}, "2 players, got 1"),
        ({"init": [[0.5, 0.6], [0.5, 0.5]]}, "sum to 1"),
        ({"init": "middle"}, "uniform"),
        ({"record": "some"}, "record"),
        ({"backend": "jax"}, "numba"),
        ({"device": "cpu", "backend": "numpy"}, "backend='torch'"),
        ({"device": "tpu"}, "device"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        FTRLPlus(**parameters).fit(PENNIES)


def test_bad_games():
    dilemma = load_classic_game("prisoners_dilemma")
    with pytest.raises(ValueError, match="step_size='theory' needs a game that is harmonic"):
        FTRLPlus(step_size="theory").fit(dilemma)
    with pytest.raises(ValueError, match="init='center' needs"):
        FTRLPlus(init="center").fit(dilemma)
    with pytest.raises(TypeError, match="NormalFormGame"):
        FTRLPlus().fit("game")
    with pytest.raises(ValueError, match="one shape"):
        FTRLPlus().fit([PENNIES, make_harmonic_game((2, 3), random_state=0)])
    with pytest.raises(ValueError, match="empty list"):
        FTRLPlus().fit([])
    with pytest.raises(NotFittedError):
        FTRLPlus().score(PENNIES)
    boundary = FTRLPlus("euclidean", init=[[1.0, 0.0], [0.5, 0.5]], max_iter=5000)
    assert boundary.fit(PENNIES).converged_


def test_learner_protocol():
    with pytest.raises(ValueError, match="n_actions"):
        FTRLPlusLearner(0)
    with pytest.raises(ValueError, match="allowed"):
        FTRLPlusLearner(2, step_size="theory")
    with pytest.raises(ValueError, match="regularizer"):
        FTRLPlusLearner(2, "cubic")
    prox = FTRLPlusLearner(2, extrapolation="mirror-prox")
    with pytest.raises(RuntimeError, match="observe_query"):
        prox.act()
    prox.observe_query([1.0, 0.0])
    assert prox.act()[0] > 0.5
    with pytest.raises(RuntimeError, match="before act"):
        prox.observe_query([1.0, 0.0])
    learner = FTRLPlusLearner(2)
    with pytest.raises(RuntimeError, match="no queries"):
        learner.observe_query([1.0, 0.0])
    with pytest.raises(ValueError, match="2 finite numbers"):
        learner.observe([1.0, np.nan])
    with pytest.raises(ValueError, match="2 finite numbers"):
        learner.observe([1.0])
    assert learner.n_rounds == 0
    learner.observe([1.0, 0.0])
    np.testing.assert_array_equal(learner.act(), learner.act())
    counts = np.bincount([learner.sample(k) for k in range(500)], minlength=2) / 500
    np.testing.assert_allclose(counts, learner.act(), atol=0.08)
    assert "1 rounds" in repr(learner)
    learner.reset()
    assert learner.regret == 0.0
    assert learner.regret_bound == 0.0
    with pytest.raises(ValueError, match="learners must have"):
        self_play([learner], PENNIES, 3)
    with pytest.raises(ValueError, match="two players"):
        play_against(learner, learner, make_harmonic_game((2, 2, 2), random_state=0), 3)


@pytest.mark.parametrize("extrapolation", ["optimistic", "mirror-prox"])
def test_play_against(extrapolation):
    game = load_classic_game("rock_paper_scissors")

    def counter(history):
        if not history.learner:
            return np.ones(3) / 3
        return np.eye(3)[(history.learner[-1].argmax() + 1) % 3]

    result = play_against(FTRLPlusLearner(3, extrapolation=extrapolation), counter, game, 300)
    v = game.payoffs[0] @ result.strategies[1].T  # (3, T)
    regret = v.sum(axis=1).max() - (v.T * result.strategies[0]).sum()
    assert result.regret[-1] == pytest.approx(regret, abs=1e-9)
    assert regret <= result.regret_bound
    pair = [FTRLPlusLearner(3, init=[0.5, 0.3, 0.2], extrapolation=extrapolation) for _ in range(2)]
    both = play_against(*pair, game, 50)
    again = [
        FTRLPlusLearner(3, init=[0.5, 0.3, 0.2], extrapolation=extrapolation) for _ in range(2)
    ]
    np.testing.assert_array_equal(both.strategies[1], self_play(again, game, 50).strategies[1])


# Bandit feedback


def draw(x, rng):
    return int(rng.choice(len(x), p=x / x.sum()))


def test_estimated_payoffs_are_unbiased():
    """The mean over all draws, action by action, is the payoff vector."""
    rng = np.random.RandomState(0)
    seen, g = rng.normal(size=(2, 4))
    x = rng.dirichlet(np.ones(4))
    mean = sum(x[a] * estimated_payoffs(seen, a, g[a], x[a]) for a in range(4))
    np.testing.assert_allclose(mean, g, atol=1e-12)


@each_regularizer
@pytest.mark.parametrize("extrapolation", ["optimistic", "none"])
@pytest.mark.parametrize("step", ["adaptive", "scale_free", 0.1])
def test_bandit_regret_is_below_its_bound(name, extrapolation, step):
    rng = np.random.RandomState(0)
    learner = FTRLPlusLearner(4, name, step_size=step, extrapolation=extrapolation)
    shifted = FTRLPlusLearner(4, name, step_size=step, extrapolation=extrapolation)
    sums, earned, seen = np.zeros(4), 0.0, None
    for t in range(150):
        x = learner.act()
        # a level that all payoffs have changes nothing
        np.testing.assert_allclose(shifted.act(), x, atol=1e-7)
        a = draw(x, rng)
        g = np.where(np.arange(4) == x.argmax(), -1.0, 1.0) if t % 2 else rng.normal(size=4)
        learner.observe_bandit(a, g[a])
        shifted.observe_bandit(a, g[a] + 50.0)
        estimate = np.full(4, g[a]) if t == 0 else estimated_payoffs(seen, a, g[a], x[a])
        seen = np.full(4, g[a]) if t == 0 else seen
        seen[a] = g[a]
        sums += estimate
        earned += estimate @ x
        assert learner.regret == pytest.approx(sums.max() - earned, abs=1e-8)
        assert learner.regret <= learner.regret_bound + 1e-9
        if t:
            assert x.min() >= 0.5 / 4 * min(1.0, 2 * (16 / (t + 1)) ** (1 / 3)) - 1e-12


@pytest.mark.parametrize("name", ["entropic", "tsallis"])
def test_bandits_find_the_best_action(name):
    """Arms 0.2 and 0.8: uniform play has a regret of 0.3 a round; T^(2/3) is 165."""
    rng = np.random.RandomState(0)
    learner = FTRLPlusLearner(2, name)
    true = 0.0
    for _ in range(2000):
        x = learner.act()
        true += 0.6 * x[0]
        a = draw(x, rng)
        learner.observe_bandit(a, float(rng.rand() < (0.2, 0.8)[a]))
    assert true < 165.0
    assert learner.act()[1] > 0.85


def test_exploration_is_for_bandits_only():
    rng = np.random.RandomState(0)
    plain, exploring = FTRLPlusLearner(3), FTRLPlusLearner(3, exploration=0.3)
    for g in rng.normal(size=(20, 3)):
        np.testing.assert_array_equal(plain.act(), exploring.act())
        plain.observe(g)
        exploring.observe(g)
    exploring.observe_bandit(0, 5.0)
    assert exploring.act().min() >= 0.1
    exploring.reset()
    np.testing.assert_allclose(exploring.act(), 1 / 3)
    with pytest.raises(ValueError, match="exploration"):
        FTRLPlusLearner(2, exploration=0.0)


def test_bad_bandit_feedback():
    learner = FTRLPlusLearner(2, "euclidean", init=[1.0, 0.0])
    for action, payoff, message in [
        (2, 0.0, "integer from 0 to 1, got 2"),
        (0.5, 0.0, "integer from 0 to 1"),
        (0, np.nan, "payoff must be a finite number, got nan"),
        (0, "high", "payoff must be a finite number"),
        (1, 1.0, "probability 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            learner.observe_bandit(action, payoff)
    assert learner.n_rounds == 0
    with pytest.raises(RuntimeError, match="mirror-prox"):
        FTRLPlusLearner(2, extrapolation="mirror-prox").observe_bandit(0, 1.0)


# Continuous time


@pytest.mark.parametrize("name", ["entropic", "tsallis", "log_barrier"])
@pytest.mark.parametrize("shape", [(2, 2), (2, 2, 2), (3, 3)])
def test_flow_keeps_its_energy(name, shape):
    rng = np.random.RandomState(0)
    measure = [rng.uniform(0.5, 2, d) for d in shape]
    game = make_harmonic_game(shape, measure=measure, random_state=1)
    flow = FTRLFlow(name, t_max=50, random_state=0).fit(game)
    assert flow.energy_drift_ < 1e-6
    assert flow.energy_[0] > 1e-6
    check_explains(flow)


def test_flow_returns_and_averages():
    flow = FTRLFlow(t_max=200, init=START, n_points=20_000).fit(PENNIES)
    times = flow.return_times(0.01)
    assert len(times) > 20
    period = np.diff(times)
    assert period.std() < 0.02  # a closed orbit
    for mean in flow.time_average_:
        np.testing.assert_allclose(mean, 0.5, atol=0.02)
    assert flow.predict()[0].shape == (2,)
    with pytest.raises(ValueError, match="eps"):
        flow.return_times(0.0)
    with pytest.raises(NotFittedError):
        FTRLFlow().explain()
    plain = FTRLFlow(t_max=2, random_state=0).fit(load_classic_game("prisoners_dilemma"))
    assert plain.energy_ is None
    assert plain.energy_drift_ is None


def test_flow_is_the_limit_of_small_steps():
    """Plain FTRL with a small constant step follows the orbit."""
    eta = 1e-3
    solver = FTRLPlus(
        step_size=eta, extrapolation="none", init=START, tol=0, max_iter=2001, record=None
    ).fit(PENNIES)
    flow = FTRLFlow(t_max=2.0, init=START).fit(PENNIES)
    for a, b in zip(solver.strategies_, flow.predict(), strict=True):
        np.testing.assert_allclose(a, b, atol=5e-3)


@given(payoff_tensors(max_players=3, max_actions=3))
@settings(max_examples=15, deadline=None)
def test_any_game_can_be_learned_in(game):
    solver = FTRLPlus(init="random", random_state=0, max_iter=50, tol=0).fit(game)
    assert (solver.regret_ <= solver.regret_bound_ + 1e-9).all()
    assert all(np.isfinite(x).all() for x in solver.strategies_)
