"""Variational EM: kernels against NumPy, updates against optimisers, the objective's descent."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear, minimize, nnls
from scipy.special import polygamma
from sklearn.base import clone

from equipoise.datasets import make_convex_mixture
from equipoise.estimators import dirichlet_kl
from equipoise.estimators.dirichlet_vae.decoders import (
    HullDecoder,
    bounded_update,
    hull_candidates,
    least_squares_update,
)
from equipoise.estimators.dirichlet_vae.divergence import expected_squared_error
from equipoise.estimators.dirichlet_vae.initialization import initial_endmembers
from equipoise.estimators.dirichlet_vae.kernels import (
    modified_step,
    newton_rows,
    posterior_moments,
    row_derivatives,
    row_terms,
    scaled_polygammas,
)
from equipoise.estimators.dirichlet_vae.vem import Penalty, infer_rows, variational_em


def row_problem(seed, K=4, D=6):
    rng = np.random.default_rng(seed)
    V, y = rng.standard_normal((D, K)), rng.standard_normal(D)
    a = rng.uniform(0.1, 3, size=K)
    return V, y, a, rng


def row_objective(log_g, V, y, a, rate, kl_weight):
    """rate E||y - Vz||^2 + kl_weight KL, by the definitions."""
    g = np.exp(log_g)[None]
    return float(
        rate * expected_squared_error(y[None], V, g)[0] + kl_weight * dirichlet_kl(g[0], a)
    )


def kernel_derivatives(log_g, V, y, a, rate, kl_weight):
    K = len(a)
    g, m, gradient, hessian = np.empty(K), np.empty(K), np.empty(K), np.empty((K, K))
    h, G = V.T @ y, V.T @ V
    u, error, kl = row_terms(log_g, h, G, a, a.sum(), g, m)
    row_derivatives(g, m, u, h, G, a, a.sum(), rate, kl_weight, gradient, hessian, np.empty(K))
    return rate * (y @ y + error) + kl_weight * kl, gradient, hessian


@pytest.mark.parametrize("x", [1e-160, 1e-8, 0.3, 2.0, 8.9, 9.1, 50.0, 1e6])
def test_scaled_polygammas(x):
    first = 1 + x**2 * float(polygamma(1, x + 1))
    second = -2 + x**3 * float(polygamma(2, x + 1))
    np.testing.assert_allclose(scaled_polygammas(x), (first, second), rtol=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 5), st.floats(-3, 3))
def test_row_derivatives_against_differences(seed, K, level):
    V, y, a, rng = row_problem(seed, K)
    log_g = level + rng.standard_normal(K)
    value, gradient, hessian = kernel_derivatives(log_g, V, y, a, 1.7, 0.6)
    assert value == pytest.approx(row_objective(log_g, V, y, a, 1.7, 0.6), rel=1e-10)
    e = 1e-5
    steps = e * np.eye(K)
    numeric = [
        (row_objective(log_g + s, V, y, a, 1.7, 0.6) - row_objective(log_g - s, V, y, a, 1.7, 0.6))
        / (2 * e)
        for s in steps
    ]
    size = 1 + np.abs(numeric).max()
    np.testing.assert_allclose(gradient, numeric, atol=1e-5 * size)
    numeric = [
        (
            kernel_derivatives(log_g + s, V, y, a, 1.7, 0.6)[1]
            - kernel_derivatives(log_g - s, V, y, a, 1.7, 0.6)[1]
        )
        / (2 * e)
        for s in steps
    ]
    np.testing.assert_allclose(hessian, numeric, atol=1e-5 * (1 + np.abs(hessian).max()))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 7))
def test_modified_step_against_eigh(seed, K):
    rng = np.random.default_rng(seed)
    S = rng.standard_normal((K, K))
    S, r, step = S + S.T, rng.standard_normal(K), np.empty(K)
    modified_step(S, r, step)
    values, vectors = np.linalg.eigh(S)
    size = np.maximum(np.abs(values), 1e-8 * np.abs(values).max() + 1e-14)
    np.testing.assert_allclose(step, -vectors @ ((vectors.T @ r) / size), rtol=1e-7, atol=1e-9)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.05, 1.0, 20.0]))
def test_newton_against_lbfgs(seed, rate):
    V, y, a, _ = row_problem(seed)
    log_g = np.log(a)[None].copy()
    G = V.T @ V
    R, kl, _ = newton_rows(
        (V.T @ y)[None], np.array([y @ y]), G, a, log_g, rate, 1.0, -14.0, 14.0, 50, 1e-8
    )
    found = rate * R[0] + kl[0]
    assert found == pytest.approx(row_objective(log_g[0], V, y, a, rate, 1.0), rel=1e-9)
    peer = minimize(
        row_objective, np.log(a), args=(V, y, a, rate, 1.0), method="L-BFGS-B", tol=1e-12
    )
    assert found <= peer.fun + 1e-6 * (1 + abs(peer.fun))
    _, gradient, _ = kernel_derivatives(log_g[0], V, y, a, rate, 1.0)
    assert np.abs(gradient).max() <= 1e-7 * (1 + abs(found))


@pytest.mark.parametrize(
    ("ratio", "alpha", "median", "most"),
    [(0.001, 0.3, 14, 26), (0.01, 0.3, 13, 22), (0.1, 3.0, 7, 9), (0.9, 3.0, 5, 6)],
)
def test_newton_takes_few_steps(ratio, alpha, median, most):
    """Section 4.8's measurement, with room for other data."""
    rng = np.random.default_rng(0)
    W = rng.uniform(size=(4, 20))
    X = rng.dirichlet(np.ones(4), 300) @ W + 0.05 * rng.standard_normal((300, 20))
    Y, V = X - X.mean(axis=0), (W - X.mean(axis=0)).T
    a = np.full(4, alpha)
    from equipoise.estimators import collapse_threshold

    tau = ratio * collapse_threshold(X, 4, concentration=alpha)
    log_g = np.tile(np.log(a), (300, 1))
    _, _, steps = newton_rows(
        Y @ V, (Y**2).sum(1), V.T @ V, a, log_g, 0.5 / tau, 1.0, -14.0, 14.0, 50, 1e-8
    )
    assert np.median(steps) <= median and steps.max() <= most
    assert np.abs(log_g).max() < 14


def test_rows_are_independent():
    mixture = make_convex_mixture(50, 6, 3, random_state=0)
    Y, V = mixture.data - 0.5, (mixture.components - 0.5).T
    a, penalty = np.ones(3), Penalty.of(0.1, 1.0)
    whole = np.zeros((50, 3))
    infer_rows(Y, V, a, penalty, whole)
    alone = np.zeros((50, 3))
    for i in range(50)[::-1]:
        infer_rows(Y[i : i + 1], V, a, penalty, alone[i : i + 1])
    np.testing.assert_allclose(alone, whole, atol=1e-9)


def test_moments():
    rng = np.random.default_rng(0)
    log_g, w = rng.standard_normal((5, 3)), rng.dirichlet(np.ones(5))
    M, C = posterior_moments(log_g, w)
    g = np.exp(log_g)
    u = g.sum(1)
    expected = np.zeros((3, 3))
    for i in range(5):
        m = g[i] / u[i]
        expected += w[i] * (np.outer(m, m) + (np.diag(m) - np.outer(m, m)) / (u[i] + 1))
    np.testing.assert_allclose(M, g / u[:, None], rtol=1e-14)
    np.testing.assert_allclose(C, expected, rtol=1e-13)


def update_problem(seed, K=3, D=5):
    rng = np.random.default_rng(seed)
    L = rng.standard_normal((K, K))
    return rng.standard_normal((D, K)), rng.standard_normal((D, K)), L @ L.T + 0.1 * np.eye(K)


def quadratic(V, B, C):
    return float(np.trace(V @ C @ V.T) - 2 * np.trace(V.T @ B))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_updates_against_scipy(seed):
    V, B, C = update_problem(seed)
    free = least_squares_update(V, B, C)
    np.testing.assert_allclose(free, np.linalg.solve(C, B.T).T, rtol=1e-6, atol=1e-8)
    L = np.linalg.cholesky(C)
    target = np.linalg.solve(L, B.T)  # min ||L^T v - target||
    lower, upper = np.full(5, -0.3), np.full(5, 0.4)
    boxed = bounded_update(lower, upper)(np.clip(V, -0.3, 0.4), B, C)
    for d in range(5):
        expected = lsq_linear(L.T, target[:, d], (-0.3, 0.4), tol=1e-14).x
        np.testing.assert_allclose(boxed[d], expected, atol=1e-5)
    positive = bounded_update(np.zeros(5), np.full(5, np.inf))(np.abs(V), B, C)
    for d in range(5):
        np.testing.assert_allclose(positive[d], nnls(L.T, target[:, d])[0], atol=1e-5)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_hull_update_descends_inside_the_hull(seed):
    rng = np.random.default_rng(seed)
    candidates = rng.standard_normal((12, 5))
    _, B, C = update_problem(seed)
    hull = HullDecoder(candidates)
    V = hull.project(rng.standard_normal((5, 3)))
    for _ in range(4):
        new = hull.update(V, B, C)
        assert quadratic(new, B, C) <= quadratic(V, B, C) + 1e-9 * (1 + abs(quadratic(V, B, C)))
        V = new
    weights = hull.weights(V)
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-12)
    assert weights.min() >= 0
    np.testing.assert_allclose(weights @ candidates, V.T, atol=1e-7)


def test_hull_candidates_span_the_hull():
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((2000, 2)) @ rng.standard_normal((2, 6))
    rows = hull_candidates(Y, 3)
    assert len(rows) < 100
    inside = HullDecoder(Y[rows]).project(Y[:200].T).T
    np.testing.assert_allclose(inside, Y[:200], atol=1e-6)
    assert len(hull_candidates(rng.standard_normal((800, 30)), 10)) == 500  # furthest rows
    wide = rng.standard_normal((600, 2)) @ rng.standard_normal((2, 900))
    assert len(hull_candidates(wide, 3)) < 60
    flat = np.outer(rng.standard_normal(800), np.ones(3))
    assert 0 < len(hull_candidates(flat, 3)) <= 500


@settings(max_examples=20, deadline=None)
@given(
    st.integers(0, 1000),
    st.sampled_from([0.05, 0.9, 1.3]),
    st.sampled_from([0.2, 1.0, 4.0]),
    st.sampled_from(["free", "box", "hull"]),
    st.booleans(),
)
def test_objective_never_increases(seed, ratio, alpha, decoder, learn):
    from equipoise.estimators import collapse_threshold

    mixture = make_convex_mixture(40, 5, 3, noise=0.1, random_state=seed)
    X = mixture.data
    mean = X.mean(axis=0)
    Y, a = X - mean, np.full(3, alpha)
    beta = ratio * collapse_threshold(X, 3, concentration=alpha, noise_variance=0.01)
    V = initial_endmembers(Y, np.ones(40), 3, "data", 0.1, np.random.RandomState(seed))
    update, restrict = least_squares_update, None
    if decoder == "box":
        lower, upper = -mean, 1 - mean
        update = bounded_update(lower, upper)

        def restrict(V):
            return np.clip(V, lower[:, None], upper[:, None])
    elif decoder == "hull":
        hull = HullDecoder(Y)
        update, restrict = hull.update, hull.project
    fit = variational_em(
        Y,
        np.full(40, 1 / 40),
        a,
        V if restrict is None else restrict(V),
        update,
        beta=beta,
        noise_variance=0.01,
        noise_floor=1e-8 if learn else None,
        total_variance=float((Y**2).sum() / 40),
        max_iter=60,
        tol=1e-6,
        restrict=restrict,
    )
    curve = np.array(fit.loss_curve)
    assert np.isfinite(curve).all()
    assert (np.diff(curve) <= 1e-9 * np.abs(curve).max()).all()
    # The last value is the objective of what is returned.
    g = np.exp(fit.log_g)
    s2 = fit.noise_variance
    value = expected_squared_error(Y, fit.V, g).mean() / (2 * s2) + beta * dirichlet_kl(g, a).mean()
    value += 2.5 * np.log(2 * np.pi * s2)
    assert value <= curve[-1] + 1e-9 * np.abs(curve).max()


def test_extrapolation_reaches_the_same_optimum_sooner(monkeypatch):
    import equipoise.estimators.dirichlet_vae.vem as vem
    from equipoise.estimators import DirichletBetaVAE

    X = make_convex_mixture(400, 10, 3, random_state=0).data
    model = DirichletBetaVAE(3, beta_ratio=1.1, random_state=0)
    fast = clone(model).fit(X)
    monkeypatch.setattr(vem.Extrapolation, "next", lambda self, V, image: image)
    plain = clone(model).fit(X)
    assert fast.loss_curve_[-1] == pytest.approx(plain.loss_curve_[-1], abs=1e-8)
    assert fast.n_iter_ < plain.n_iter_ / 3


@pytest.mark.parametrize("init", ["data", "vca", "kmeans", "furthest"])
def test_starts_ignore_the_order_of_rows(init):
    mixture = make_convex_mixture(60, 5, 3, random_state=0)
    Y = mixture.data - mixture.data.mean(axis=0)
    w = np.ones(60)
    V = initial_endmembers(Y, w, 3, init, 0.1, np.random.RandomState(0))
    assert V.shape == (5, 3)
    assert np.linalg.matrix_rank(V - V[:, :1]) == 2
    if init == "data":
        order = np.random.RandomState(1).permutation(60)
        again = initial_endmembers(Y[order], w, 3, init, 0.1, np.random.RandomState(0))
        np.testing.assert_array_equal(again, V)


def test_start_with_too_few_different_rows():
    Y = np.repeat(np.array([[1.0, 0], [-1.0, 0]]), 4, axis=0)
    V = initial_endmembers(Y, np.ones(8), 4, "data", 0.5, np.random.RandomState(0))
    distances = np.linalg.norm(V[:, :, None] - V[:, None], axis=0)
    assert distances[~np.eye(4, dtype=bool)].min() > 0
