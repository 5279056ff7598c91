"""Opinions with an AI in the channel: dense algebra, finite differences, brute force."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from equipoise.games import (
    AffineMediator,
    AnchoredMediator,
    ClippedMediator,
    CurveMediator,
    MediatedOpinionDynamics,
    OpinionNetwork,
    amplification_factor,
    friedkin_johnsen,
    opinion_metrics,
)

nx = pytest.importorskip("networkx")
KARATE = nx.karate_club_graph()
CLUB = nx.to_scipy_sparse_array(KARATE, weight=None, dtype=float)
FACTION = np.array([float(KARATE.nodes[i]["club"] == "Mr. Hi") for i in KARATE])
RISING = 0.1 + 0.8 * np.arange(34) / 33
EVEN = np.arange(34) % 2 == 0
QUIET = pytest.mark.filterwarnings("ignore:the edits don't change", "ignore:.*leave bounds")


class Bump:
    """u + 0.1 u (1 - u), a user's own mediator."""

    affine_, lipschitz_, monotone_ = None, 1.1, True

    def __call__(self, u):
        return u + 0.1 * np.asarray(u) * (1 - np.asarray(u))

    def derivative(self, u):
        return 1.1 - 0.2 * np.asarray(u)

    def inverse(self):
        raise ValueError("not needed")


class Sigmoid(Bump):
    lipschitz_ = 3.0

    def __call__(self, u):
        return 1 / (1 + np.exp(-12 * (np.asarray(u) - 0.5)))

    def derivative(self, u):
        return 12 * self(u) * (1 - self(u))


@st.composite
def systems(draw, max_nodes=12, symmetric=False):
    """A network without dangling users, innate opinions, stubbornness."""
    n = draw(st.integers(2, max_nodes))
    rng = np.random.RandomState(draw(st.integers(0, 2**31 - 1)))
    A = rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < 0.4)
    A[np.arange(n), (np.arange(n) + 1) % n] += 0.5
    if symmetric:
        A = A + A.T
    return A, rng.uniform(size=n), rng.uniform(0.05, 1, size=n), rng


def dense(A, lam, s, aE=1.0, bE=0.0, aP=1.0, bP=0.0):
    """The equilibrium by a dense solve of the written-out system."""
    n = len(s)
    W = A / A.sum(axis=1, keepdims=True)
    aE, bE, aP, bP = (np.broadcast_to(v, (n,)) for v in (aE, bE, aP, bP))
    shrink = aP[:, None] * aE[None, :]
    bias = aP[:, None] * bE[None, :] + bP[:, None]
    M = (1 - lam)[:, None] * W * shrink
    c = (1 - lam) * (W * bias).sum(axis=1)
    return np.linalg.solve(np.eye(n) - M, lam * s + c)


def fit(A, s, lam=None, adopters=None, perceivers=None, **options):
    dynamics = MediatedOpinionDynamics(**{"bounds": (-50, 50), **options})
    return dynamics.fit(A, s, stubbornness=lam, adopters=adopters, perceivers=perceivers)


# Reference values


@QUIET
def test_three_users():
    A = np.array([[0, 1, 1], [1, 0, 0], [1, 1, 0.0]])
    lam, s = (0.2, 0.5, 0.4), (0.1, 0.9, 0.5)
    plain = fit(A, s, lam)
    np.testing.assert_allclose(
        plain.equilibrium_, [0.538709677419, 0.719354838710, 0.577419354839], atol=1e-12
    )
    moved = plain.influence()
    np.testing.assert_allclose(
        moved.adjoint, [1.048387096774, 0.978494623656, 0.752688172043], atol=1e-12
    )
    np.testing.assert_allclose(
        moved.author, [0.715053763441, 0.645161290323, 0.419354838710], atol=1e-12
    )
    assert plain.total_gain_ == pytest.approx(1.779569892473, abs=1e-12)
    assert plain.spectral_radius_ == pytest.approx(0.6429046832, abs=1e-9)
    assert plain.contraction_ == pytest.approx(0.8)
    nudged = fit(A, s, lam, np.array([False, True, False]), expression=AffineMediator(0.8, 0.15))
    np.testing.assert_allclose(
        nudged.equilibrium_, [0.543452380952, 0.721726190476, 0.58125], atol=1e-12
    )
    np.testing.assert_allclose(
        nudged.influence().adjoint, [0.952380952381, 0.809523809524, 0.714285714286], atol=1e-12
    )
    assert nudged.spectral_radius_ == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("stubbornness", "mean"),
    [(0.3, 0.418235773358), (0.1, 0.337368164532), (0.5, 0.456934478030), (0.9, 0.494501732421)],
)
@pytest.mark.parametrize("solver", ["auto", "direct", "richardson", "cg", "bicgstab", "gmres"])
def test_karate_club(stubbornness, mean, solver):
    found = MediatedOpinionDynamics(
        stubbornness=stubbornness, expression=AffineMediator(0.8, 0.05), solver=solver, tol=1e-12
    ).fit(CLUB, np.linspace(0, 1, 34))
    assert found.equilibrium_.mean() == pytest.approx(mean, abs=2e-12)
    assert found.converged_
    assert found.error_bound_ <= 1e-12


@QUIET
def test_karate_club_with_rising_stubbornness():
    found = fit(CLUB, FACTION, RISING, EVEN, expression=AffineMediator(bias=0.1), bounds=(0, 1))
    before, after = found.metrics(found.baseline_equilibrium_), found.metrics()
    assert before["mean"] == pytest.approx(0.416422664079, abs=1e-12)
    assert before["polarization"] == pytest.approx(5.520768942991, abs=1e-11)
    assert before["disagreement"] == pytest.approx(4.285561029102, abs=1e-11)
    assert after["mean"] == pytest.approx(0.489254290451, abs=1e-12)
    assert after["polarization"] == pytest.approx(7.142393019336, abs=1e-11)
    assert after["disagreement"] == pytest.approx(5.505581350822, abs=1e-11)
    assert found.total_gain_ == pytest.approx(1.368952425720, abs=1e-11)
    np.testing.assert_allclose(found.gain_bounds_, (1 / 9, 9))
    leverage = found.influence().author
    assert leverage.argmax() == 0
    assert leverage[0] == pytest.approx(0.232551811353, abs=1e-10)


@QUIET
def test_musco_indices():
    degree = np.asarray(CLUB.sum(axis=1)).ravel()
    found = fit(CLUB, FACTION, 1 / (1 + degree))
    indices = found.metrics()
    assert indices["polarization"] == pytest.approx(3.047907533806, abs=1e-11)
    assert indices["disagreement"] == pytest.approx(1.809584524111, abs=1e-11)
    assert indices["index"] == pytest.approx(4.857492057917, abs=1e-11)
    assert indices["mean"] == pytest.approx(0.5, abs=1e-12)


def test_curved_mediator():
    found = fit(CLUB, 0.25 + 0.5 * FACTION, None, EVEN, expression=Bump(), tol=1e-13, bounds=(0, 1))
    assert found.equilibrium_.mean() == pytest.approx(0.532343733929, abs=1e-12)
    np.testing.assert_allclose(
        found.equilibrium_[[0, 33]], [0.710243138775, 0.368531893788], atol=1e-12
    )
    assert found.baseline_equilibrium_.mean() == pytest.approx(0.507076949790, abs=1e-12)
    assert found.amplification_ == pytest.approx(2.695123641499, abs=1e-9)
    assert found.certified_unique_
    least, greatest = found.equilibrium_bounds_
    np.testing.assert_allclose(least, greatest, atol=1e-11)


@QUIET
def test_two_stable_equilibria_are_said():
    found = fit(CLUB, np.full(34, 0.5), 0.05 * np.ones(34), expression=Sigmoid(), bounds=(0, 1))
    least, greatest = found.equilibrium_bounds_
    assert least.mean() == pytest.approx(0.028295414890, abs=1e-9)
    assert greatest.mean() == pytest.approx(0.971704585110, abs=1e-9)
    assert found.equilibrium_.mean() == pytest.approx(0.5)
    assert not found.certified_unique_
    assert found.n_equilibria_found_ == 3


@QUIET
@pytest.mark.parametrize(
    ("dangling", "expected"),
    [
        ("self", (0.486813186813, 0.7, 0.656043956044, 0.9)),
        ("zero", (0.326593406593, 0.376, 0.445978021978, 0.36)),
        ("uniform", (0.428762541806, 0.582608695652, 0.579933110368, 0.704347826087)),
    ],
)
@pytest.mark.parametrize("solver", ["direct", "richardson", "bicgstab", "gmres"])
def test_user_who_listens_to_nobody(dangling, expected, solver):
    edges = [(0, 1), (0, 2), (1, 3), (2, 0), (2, 3)]
    found = MediatedOpinionDynamics(stubbornness=0.4, dangling=dangling, solver=solver, tol=1e-13)
    found.fit(edges, (0.2, 0.4, 0.6, 0.9))
    np.testing.assert_allclose(found.equilibrium_, expected, atol=1e-12)


def test_authors_come_before_readers():
    path = [(0, 1), (1, 0), (1, 2), (2, 1)]
    found = fit(
        path,
        (0, 0.5, 1),
        (0.5, 0.2, 0.3),
        np.arange(3) == 1,
        np.arange(3) == 0,
        expression=AffineMediator(0.9, 0.1),
        perception=AffineMediator(0.5, 0.3),
    )
    np.testing.assert_allclose(
        found.equilibrium_, [0.283738601824, 0.483282674772, 0.674468085106], atol=1e-12
    )


@QUIET
@pytest.mark.parametrize(
    ("orientation", "expected"), [("listener", (0.525, 0.7, 1)), ("speaker", (0, 0.2, 0.44))]
)
def test_orientation(orientation, expected):
    found = fit([(0, 1), (1, 2)], (0, 0.4, 1), (0.25, 0.5, 0.3), orientation=orientation)
    np.testing.assert_allclose(found.equilibrium_, expected, atol=1e-12)


@QUIET
def test_control_references():
    found = fit(CLUB, FACTION, RISING, EVEN, expression=AffineMediator(bias=0.1), bounds=(0, 1))
    everybody = np.ones(34, dtype=bool)
    correction = found.control(bound=0.15, candidates=everybody)
    assert correction.shift_before == pytest.approx(0.072831626372, abs=1e-12)
    assert correction.cost == pytest.approx(0.535118390769, abs=1e-9)
    assert set(np.flatnonzero(correction.d)) == {0, 1, 2, 33}
    assert abs(correction.shift_after) < 1e-9
    assert found.control(bound=0.15).cost == pytest.approx(0.647676740581, abs=1e-9)
    assert found.control(norm="l2", candidates=everybody).cost == pytest.approx(
        0.206838198462, abs=1e-9
    )
    exempt = found.select_exemptions(5)
    assert set(exempt.indices) == {0, 2, 6, 32, 10}
    assert exempt.exact == pytest.approx(0.020441579744, abs=1e-11)
    assert exempt.predicted == pytest.approx(exempt.exact, abs=1e-12)


# Invariants


@QUIET
@settings(deadline=None, max_examples=40)
@given(systems())
def test_equilibrium_is_that_of_the_written_out_system(system):
    A, s, lam, rng = system
    n = len(s)
    adopters, perceivers = rng.uniform(size=(2, n)) < 0.6
    a, b, c, d = rng.uniform(-1, 1, size=n), rng.uniform(-0.3, 0.3), 0.7, -0.1
    found = fit(
        A,
        s,
        lam,
        adopters,
        perceivers,
        expression=AffineMediator(a, b),
        perception=AnchoredMediator(1 - c, d / (1 - c)),
    )
    expected = dense(
        A,
        lam,
        s,
        np.where(adopters, a, 1),
        np.where(adopters, b, 0),
        np.where(perceivers, c, 1),
        np.where(perceivers, d, 0),
    )
    np.testing.assert_allclose(found.equilibrium_, expected, atol=1e-9)
    np.testing.assert_allclose(found.baseline_equilibrium_, dense(A, lam, s), atol=1e-9)
    np.testing.assert_allclose(found.predict(s), found.equilibrium_, atol=1e-12)


@QUIET
@settings(deadline=None, max_examples=20)
@given(systems(symmetric=True), st.sampled_from([0.02, 0.3]))
def test_solvers_agree(system, least):
    A, s, lam, rng = system
    lam = least + (1 - least) * lam
    lam[0] = 1.0  # a known opinion, which the symmetric form leaves out
    mediator = AffineMediator(rng.uniform(0.5, 1, size=len(s)), 0.05)
    answers = [
        fit(A, s, lam, expression=mediator, solver=solver).equilibrium_
        for solver in ("direct", "richardson", "cg", "bicgstab", "gmres")
    ]
    for answer in answers[1:]:
        np.testing.assert_allclose(answer, answers[0], atol=1e-8)


@QUIET
@settings(deadline=None, max_examples=30)
@given(systems(), st.floats(0.02, 0.98))
def test_uniform_bias_is_amplified_alike_everywhere(system, stubbornness):
    A, s, _, _ = system
    found = fit(A, s, np.full(len(s), stubbornness), expression=AffineMediator(bias=0.01))
    np.testing.assert_allclose(found.shift_ / 0.01, amplification_factor(stubbornness), rtol=1e-7)
    assert found.amplification_ == pytest.approx(amplification_factor(stubbornness), rel=1e-7)


@QUIET
@settings(deadline=None, max_examples=30)
@given(systems(), st.floats(0.3, 1.0))
def test_gain_bounds_hold_for_each_user(system, shrink):
    A, s, lam, _ = system
    found = fit(A, s, lam, expression=AffineMediator(shrink, 0.01))
    response = fit(A, s, lam, expression=AffineMediator(shrink, 1.01)).equilibrium_
    response = response - found.equilibrium_
    low, high = found.gain_bounds_
    assert (response >= low - 1e-8).all()
    assert (response <= high + 1e-8).all()
    assert found.total_gain_ == pytest.approx(response.mean(), rel=1e-7)


@QUIET
@settings(deadline=None, max_examples=30)
@given(systems())
def test_sums_of_influence(system):
    A, s, lam, _ = system
    moved = fit(A, s, lam).influence()
    assert moved.innate.sum() == pytest.approx(1, abs=1e-9)
    assert moved.author.sum() == pytest.approx(moved.adjoint.sum() - 1, abs=1e-9)


@QUIET
@settings(deadline=None, max_examples=15)
@given(systems(max_nodes=6))
def test_influence_against_finite_differences(system):
    A, s, lam, rng = system
    n, step = len(s), 1e-5
    lam = np.clip(lam, 0.1, 0.9)
    g = rng.normal(size=n)
    mediators = {
        "expression": AffineMediator(0.8, rng.uniform(-0.2, 0.2, size=n)),
        "perception": AffineMediator(rng.uniform(0.5, 1, size=n), 0.05),
    }

    def value(s=s, lam=lam, author=0.0, reader=0.0):
        first, second = mediators["expression"], mediators["perception"]
        return (
            g
            @ fit(
                A,
                s,
                lam,
                expression=AffineMediator(first.shrink, first.bias + author),
                perception=AffineMediator(second.shrink, second.bias + reader),
                tol=1e-14,
            ).equilibrium_
        )

    moved = fit(A, s, lam, **mediators).influence(g)
    for i in range(n):
        e = step * (np.arange(n) == i)
        for name, ahead, behind in (
            ("innate", value(s=s + e), value(s=s - e)),
            ("stubbornness", value(lam=lam + e), value(lam=lam - e)),
            ("author", value(author=e), value(author=-e)),
            ("reader", value(reader=e), value(reader=-e)),
        ):
            assert moved[name][i] == pytest.approx(
                (ahead - behind) / (2 * step), rel=1e-5, abs=1e-7
            ), name
    # A bias on all of an author's edges is a bias of the author; the reader's shrink comes after.
    shares = moved.edges.multiply(np.asarray(mediators["perception"].shrink)[:, None])
    np.testing.assert_allclose(shares.sum(axis=0), moved.author, atol=1e-9)


@QUIET
@settings(deadline=None, max_examples=20)
@given(systems())
def test_order_of_users_doesnt_matter(system):
    A, s, lam, rng = system
    order = rng.permutation(len(s))
    mediator = AffineMediator(0.9, 0.02)
    found = fit(A, s, lam, expression=mediator).equilibrium_
    turned = fit(A[np.ix_(order, order)], s[order], lam[order], expression=mediator).equilibrium_
    np.testing.assert_allclose(turned, found[order], atol=1e-10)
    scaled = fit(A * rng.uniform(0.1, 9, size=(len(s), 1)), s, lam, expression=mediator)
    np.testing.assert_allclose(scaled.equilibrium_, found, atol=1e-10)


@QUIET
@settings(deadline=None, max_examples=20)
@given(systems())
def test_edges_carry_what_mediators_do(system):
    A, s, lam, rng = system
    W = sparse.csr_array(A)
    bias = W.copy()
    bias.data = rng.uniform(-0.1, 0.1, size=W.nnz)
    dynamics = MediatedOpinionDynamics(bounds=(-50, 50))
    found = dynamics.fit(A, s, stubbornness=lam, edge_shrink=0.9, edge_bias=bias)
    n = len(s)
    rows = A / A.sum(axis=1, keepdims=True)
    M = (1 - lam)[:, None] * rows * 0.9
    c = (1 - lam) * (rows * bias.toarray()).sum(axis=1)
    np.testing.assert_allclose(
        found.equilibrium_, np.linalg.solve(np.eye(n) - M, lam * s + c), atol=1e-9
    )


@QUIET
@settings(deadline=None, max_examples=20)
@given(systems(), st.sampled_from(["curve", "clipped"]))
def test_curved_channels_agree_with_plain_iteration(system, kind):
    A, s, lam, rng = system
    lam = np.clip(lam, 0.2, 1)
    curve = CurveMediator([0, 0.4, 1], np.sort(rng.uniform(size=3)), monotone="isotonic")
    mediator = curve if kind == "curve" else ClippedMediator(AffineMediator(0.9, 0.2), 0, 1)
    adopters, perceivers = rng.uniform(size=(2, len(s))) < 0.6
    found = fit(
        A,
        s,
        lam,
        adopters,
        perceivers,
        expression=mediator,
        perception=mediator,
        bounds=(0, 1),
        max_iter=100_000,
    )
    W = A / A.sum(axis=1, keepdims=True)
    x = s.copy()
    for _ in range(2000):
        said = np.where(adopters, mediator(x), x)
        heard = np.array(
            [row @ (mediator(said) if p else said) for row, p in zip(W, perceivers, strict=True)]
        )
        x = lam * s + (1 - lam) * heard
    np.testing.assert_allclose(found.equilibrium_, x, atol=1e-8)
    assert ((found.equilibrium_ >= -1e-12) & (found.equilibrium_ <= 1 + 1e-12)).all()


@QUIET
@settings(deadline=None, max_examples=20)
@given(systems())
def test_stubborn_users_and_topics(system):
    A, s, lam, rng = system
    lam[0] = 1.0
    S = np.column_stack([s, rng.uniform(size=len(s))])
    mediator = AffineMediator(0.9, 0.05)
    both = fit(A, S, lam, expression=mediator)
    assert both.equilibrium_[0, 0] == s[0]
    for k in range(2):
        np.testing.assert_allclose(
            both.equilibrium_[:, k],
            fit(A, S[:, k], lam, expression=mediator).equilibrium_,
            atol=1e-9,
        )
    assert both.amplification_.shape == (2,)


@QUIET
@settings(deadline=None, max_examples=15)
@given(systems(max_nodes=6), st.booleans())
def test_cheapest_correction_against_a_linear_program(system, tight):
    A, s, lam, rng = system
    n = len(s)
    lam = np.clip(lam, 0.1, 0.9)
    found = fit(A, s, lam, expression=AffineMediator(0.9, 0.1))
    v = found.influence().author
    cost = rng.uniform(0.5, 2, size=n)
    bound = np.full(n, 0.6 * found.shift_.mean() / v.sum() * (1 if tight else 4) + 0.05)
    correction = found.control(cost=cost, bound=bound)
    program = linprog(
        np.tile(cost, 2),
        A_eq=np.concatenate([v, -v])[None, :],
        b_eq=[-found.shift_.mean()],
        bounds=[(0, b) for b in np.tile(bound, 2)],
    )
    if program.status == 0:
        assert correction.status == "optimal"
        assert correction.cost == pytest.approx(program.fun, rel=1e-6, abs=1e-9)
    else:
        assert correction.status == "bounded"
    assert (np.abs(correction.d) <= bound + 1e-12).all()
    least = found.control(norm="l2", cost=cost)
    np.testing.assert_allclose(
        least.d, -found.shift_.mean() * (v / cost) / (v**2 / cost).sum(), atol=1e-8
    )


def test_exemptions_against_all_subsets():
    rng = np.random.RandomState(3)
    A = rng.uniform(size=(7, 7))
    lam, s = rng.uniform(0.1, 0.6, size=7), rng.uniform(size=7)
    bias = rng.uniform(0.01, 0.2, size=7)
    found = fit(A, s, lam, expression=AffineMediator(bias=bias))
    chosen = found.select_exemptions(3)
    left = min(
        fit(
            A, s, lam, ~np.isin(np.arange(7), subset), expression=AffineMediator(bias=bias)
        ).shift_.mean()
        for subset in itertools.combinations(range(7), 3)
    )
    assert chosen.exact == pytest.approx(left, abs=1e-9)
    shrinking = fit(A, s, lam, expression=AffineMediator(0.8, bias)).select_exemptions(2)
    again = fit(
        A,
        s,
        lam,
        ~np.isin(np.arange(7), shrinking.indices),
        expression=AffineMediator(0.8, bias),
    )
    assert shrinking.exact == pytest.approx(again.shift_.mean(), abs=1e-9)


# Certificates


@QUIET
def test_chain_to_one_stubborn_user_is_proved_by_the_leak():
    n = 50
    A = sparse.diags_array(np.ones(n - 1), offsets=-1).tocsr() + sparse.csr_array(
        ([1.0], ([0], [1])), shape=(n, n)
    )
    lam = np.zeros(n)
    lam[0] = 0.5
    found = fit(A, np.linspace(0, 1, n), lam)
    assert found.contraction_ == 1
    assert found.certificate_ == "leaks"
    np.testing.assert_allclose(found.equilibrium_, 0, atol=1e-8)  # all hear user 0 in the end
    assert np.isnan(found.error_bound_)


@QUIET
def test_row_sum_above_one_is_proved_by_a_positive_vector():
    A = [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    shrink = np.array([1.5, 0.5, 0.5])
    found = fit(A, [0.1, 0.5, 0.9], np.full(3, 0.1), expression=AffineMediator(shrink))
    assert found.contraction_ > 1
    assert found.certificate_ == "collatz"


def test_no_unique_equilibrium_is_refused():
    with pytest.raises(ValueError, match="no unique equilibrium: the spectral radius of M is 1"):
        fit([[0, 1], [1, 0]], [0.2, 0.8], np.zeros(2))
    with pytest.raises(ValueError, match=r"spectral radius of M is 1\.8"):
        fit([[0, 1], [1, 0]], [0.2, 0.8], np.full(2, 0.1), expression=AffineMediator(2.0))


def test_large_sparse_network_in_each_way():
    rng = np.random.RandomState(0)
    n, m = 2000, 12_000
    ends = rng.randint(n, size=(m, 2))
    A = sparse.coo_array((np.ones(m), (ends[:, 0], ends[:, 1])), shape=(n, n)).tocsr()
    A = A + A.T
    s = rng.uniform(size=n)
    for stubbornness, expected in ((0.3, "richardson"), (0.01, "cg")):
        options = {"stubbornness": stubbornness, "expression": AffineMediator(bias=0.001)}
        found = MediatedOpinionDynamics(**options).fit(A, s)
        assert found.solver_ == expected
        exact = MediatedOpinionDynamics(**options, solver="direct").fit(A, s)
        assert np.abs(found.equilibrium_ - exact.equilibrium_).max() <= 2e-10


def test_multigrid_on_a_grid_with_little_stubbornness():
    pytest.importorskip("pyamg")
    grid = nx.to_scipy_sparse_array(nx.grid_2d_graph(30, 30), format="csr", dtype=float)
    s = np.random.RandomState(0).uniform(size=900)
    options = {"stubbornness": 1e-4, "expression": AffineMediator(bias=1e-5), "bounds": (-1, 2)}
    plain = MediatedOpinionDynamics(**options, solver="cg").fit(grid, s)
    found = MediatedOpinionDynamics(**options, solver="amg").fit(grid, s)
    np.testing.assert_allclose(found.equilibrium_, plain.equilibrium_, atol=2e-10)
    assert found.n_iter_ < plain.n_iter_ / 5


# Simulation


@QUIET
@settings(deadline=None, max_examples=15)
@given(systems(max_nodes=8))
def test_simulation_is_the_recursion(system):
    A, s, lam, _ = system
    found = fit(A, s, lam, expression=AffineMediator(0.9, 0.05))
    run = found.simulate(4, record="full")
    W = A / A.sum(axis=1, keepdims=True)
    x = s
    for t in range(4):
        x = lam * s + (1 - lam) * (W @ (0.9 * x + 0.05))
        np.testing.assert_allclose(run.trajectory[t + 1, :, 0], x, atol=1e-12)
    assert run.to_frame().shape == (5, 6)
    np.testing.assert_allclose(found.simulate(3000).final[:, 0], found.equilibrium_, atol=1e-8)


def test_runs_have_their_own_adopters():
    found = MediatedOpinionDynamics(
        expression=AffineMediator(bias=0.02), adoption=0.5, random_state=0
    ).fit(CLUB, np.full(34, 0.4))
    runs = found.simulate(300, n_seeds=4)
    assert len({tuple(column) for column in runs.adopters.T}) == 4
    np.testing.assert_array_equal(runs.adopters[:, 0], found.adopters_)
    for k in range(4):
        alone = clone(found).fit(CLUB, np.full(34, 0.4), adopters=runs.adopters[:, k])
        np.testing.assert_allclose(runs.final[:, k], alone.equilibrium_, atol=1e-9)
    fixed = clone(found).fit(CLUB, np.full(34, 0.4), adopters=EVEN).simulate(5, n_seeds=3)
    assert (fixed.adopters == EVEN[:, None]).all()


def test_noise_has_its_standard_deviation():
    found = MediatedOpinionDynamics(
        stubbornness=1.0, expression=AffineMediator(bias=0.1), random_state=1
    ).fit(CLUB, np.full(34, 0.5))
    run = found.simulate(400, record="full", noise=0.02)
    assert run.trajectory[1:].std() == pytest.approx(0.02, rel=0.05)


# Mediators


@pytest.mark.parametrize(
    "mediator",
    [
        AffineMediator(-0.4, 0.3),
        AnchoredMediator(0.3, 0.8),
        CurveMediator([0, 0.3, 0.7, 1], [0.1, 0.3, 0.35, 0.9]),
        CurveMediator([0, 0.5, 1], [0.9, 0.4, 0.2]),
    ],
)
def test_inverse_and_slope(mediator):
    u = np.linspace(0.02, 0.98, 24)  # no knot
    np.testing.assert_allclose(mediator.inverse()(mediator(u)), u, atol=1e-12)
    slope = (mediator(u + 1e-6) - mediator(u - 1e-6)) / 2e-6
    np.testing.assert_allclose(mediator.derivative(u), slope, atol=1e-6)
    assert np.abs(slope).max() <= mediator.lipschitz_ + 1e-6
    assert mediator.monotone_ == bool((slope >= 0).all())


def test_what_has_no_inverse():
    for mediator in (
        AffineMediator(0.0, 1.0),
        CurveMediator([0, 0.5, 1], [0, 1, 0]),
        ClippedMediator(AffineMediator()),
    ):
        with pytest.raises(ValueError, match=r"inverse|clips"):
            mediator.inverse()


# Networks


def test_same_network_from_everything():
    edges = [(0, 1, 2.0), (1, 2, 1.0), (2, 0, 1.0), (0, 2, 2.0)]
    A = np.zeros((3, 3))
    for i, j, w in edges:
        A[i, j] = w
    graph = nx.DiGraph()
    graph.add_nodes_from(range(3))
    graph.add_weighted_edges_from(edges)
    for X in (
        edges,
        np.array([*edges, (0, 1, 0.0)]),
        A,
        A.tolist(),
        sparse.coo_matrix(A),
        graph,
        OpinionNetwork(A),
    ):
        np.testing.assert_array_equal(
            OpinionNetwork.from_graph(X).weights.toarray(), A / A.sum(axis=1, keepdims=True)
        )
    doubled = OpinionNetwork.from_edges([(0, 1), (0, 1), (0, 2), (1, 0), (2, 0)])
    np.testing.assert_allclose(doubled.weights.toarray()[0], [0, 2 / 3, 1 / 3])
    assert OpinionNetwork.from_graph(KARATE).nodes == list(KARATE)
    assert OpinionNetwork(CLUB).is_symmetric
    assert not OpinionNetwork(A).is_symmetric
    assert OpinionNetwork.from_graph([("ann", 0.5)]).nodes == ["ann", 0.5]  # any name will do


def test_igraph():
    igraph = pytest.importorskip("igraph")
    rows = [(u, v, w) for u, v, w in KARATE.edges(data="weight")]
    graph = igraph.Graph.TupleList(rows, weights=True)
    network = OpinionNetwork.from_graph(graph)
    order = [network.nodes.index(i) for i in KARATE]
    expected = OpinionNetwork.from_graph(KARATE).weights.toarray()
    np.testing.assert_allclose(network.weights.toarray()[np.ix_(order, order)], expected)
    one_way = igraph.Graph(n=3, edges=[(0, 1), (1, 2), (2, 2)], directed=True)
    np.testing.assert_array_equal(
        OpinionNetwork.from_graph(one_way).weights.toarray(), [[0, 1, 0], [0, 0, 1], [0, 0, 1]]
    )


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ([[0, -1], [1, 0]], r"X\[0, 1\] = -1"),
        ([[0, np.nan], [1, 0]], r"X\[0, 1\] = nan"),
        (np.ones((2, 4)), "square"),
        ([(0, 1), (-1, 0)], "edge 1 joins"),
        ([(0, 1, 2, 3)], "edge 0"),
    ],
)
def test_bad_networks(X, words):
    with pytest.raises(ValueError, match=words):
        OpinionNetwork.from_graph(X)


def test_bad_input_is_named():
    s = np.full(34, 0.5)
    with pytest.raises(ValueError, match=r"stubbornness\[2\] = 1.5"):
        fit(CLUB, s, np.where(np.arange(34) == 2, 1.5, 0.5))
    with pytest.raises(ValueError, match=r"y\[3\] = 1.2 lies outside"):
        MediatedOpinionDynamics().fit(CLUB, np.where(np.arange(34) == 3, 1.2, 0.5))
    with pytest.raises(ValueError, match="NaN"):
        fit(CLUB, np.full(34, np.nan))
    with pytest.raises(ValueError, match="34 users"):
        fit(CLUB, np.ones(3))
    with pytest.raises(TypeError, match="expression"):
        fit(CLUB, s, expression=np.tanh)
    with pytest.raises(ValueError, match="parameters for"):
        fit(CLUB, s, expression=AffineMediator(bias=np.ones(5)))
    with pytest.raises(ValueError, match="adopters"):
        fit(CLUB, s, adopters=np.ones(34))
    with pytest.raises(ValueError, match="edge_bias"):
        MediatedOpinionDynamics(expression=AffineMediator()).fit(CLUB, s, edge_bias=0.1)
    with pytest.raises(ValueError, match="lies on no edge"):
        MediatedOpinionDynamics().fit(
            CLUB, s, edge_bias=sparse.csr_array(([1.0], ([0], [0])), shape=(34, 34))
        )
    with pytest.raises(ValueError, match="dangling='error'"):
        MediatedOpinionDynamics(dangling="error").fit([(0, 1)], [0.1, 0.2])
    with pytest.raises(ValueError, match="solver='cg' needs symmetric"):
        fit([(0, 1), (1, 2), (2, 0)], [0.1, 0.2, 0.3], solver="cg")


@QUIET
def test_short_iterations_and_bounds_are_warned_of():
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        short = MediatedOpinionDynamics(
            expression=AffineMediator(bias=0.01), solver="richardson", max_iter=3
        ).fit(CLUB, FACTION)
    assert not short.converged_
    with pytest.warns(UserWarning, match="leave bounds"):
        MediatedOpinionDynamics(expression=AffineMediator(bias=0.3)).fit(CLUB, np.full(34, 0.9))
    clipped = MediatedOpinionDynamics(expression=AffineMediator(bias=0.3), clip=True)
    assert clipped.fit(CLUB, np.full(34, 0.9)).equilibrium_.max() <= 1
    with pytest.warns(UserWarning, match="amplification_ is nan"):
        assert np.isnan(MediatedOpinionDynamics().fit(CLUB, FACTION).amplification_)


@QUIET
def test_indices():
    z = np.array([0.1, 0.9, 0.4])
    A = np.array([[0, 1, 2], [0, 0, 0], [1, 0, 0.0]])
    found = opinion_metrics(z, A, s=z[::-1].copy(), groups=["a", "b", "a"])
    by_hand = 0.5 * sum(A[i, j] * (z[i] - z[j]) ** 2 for i in range(3) for j in range(3))
    assert found["disagreement"] == pytest.approx(by_hand)
    assert found["group_gap"] == pytest.approx(0.65)
    assert found["wasserstein"] == pytest.approx(0)
    assert opinion_metrics([0.0, 0.0, 1.0, 1.0])["bimodality"] == pytest.approx(1)
    np.testing.assert_allclose(
        friedkin_johnsen(CLUB, FACTION, 0.4),
        dense(CLUB.toarray(), np.full(34, 0.4), FACTION),
        atol=1e-10,
    )
    for bad in ((0.0, 1.0), (0.5, -1.0), (0.1, 2.0)):
        with pytest.raises(ValueError, match="allowed"):
            amplification_factor(*bad)
