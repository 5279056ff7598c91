"""Divergence and threshold: reference values, and oracles by other routes."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.linalg import eigh
from scipy.special import polygamma

from equipoise.estimators import (
    DirichletBetaVAE,
    collapse_threshold,
    dirichlet_efficiency,
    dirichlet_kl,
)
from equipoise.estimators.dirichlet_vae.divergence import (
    expected_squared_error,
    marginal_kl,
    stick_breaking_kl,
)
from equipoise.estimators.dirichlet_vae.efficiency import prior_efficiencies
from equipoise.estimators.dirichlet_vae.spectrum import randomised_eigenvalues, squared_diameter
from equipoise.testing import concentration_arrays, mixture_arrays

X6 = np.array([[0, 0], [2, 0], [0, 1], [2, 1], [4, 3], [1, 5]], dtype=float)


def exact_kl(g, a):
    """The textbook formula in 50 digits."""
    with mp.workdps(50):
        g, a = [mp.mpf(float(v)) for v in g], [mp.mpf(float(v)) for v in a]
        g0, a0 = sum(g), sum(a)
        value = mp.loggamma(g0) - sum(map(mp.loggamma, g))
        value -= mp.loggamma(a0) - sum(map(mp.loggamma, a))
        terms = zip(g, a, strict=True)
        return float(value + sum((x - y) * (mp.psi(0, x) - mp.psi(0, g0)) for x, y in terms))


@pytest.mark.parametrize(
    ("g", "a", "expected"),
    [
        ([2, 1, 0.5], [1, 1, 1], 0.7884225066489863),
        ([5, 1], [0.5, 0.5], 0.7125011316168326),
        ([10] * 4, [1] * 4, 2.3479986122371272),
        ([1] * 3, [0.3] * 3, 0.7641649252794296),
        ([2, 0.7, 1.3, 4], [0.6] * 4, 1.29145545231966),
    ],
)
def test_divergence_reference(g, a, expected):
    # The reference holds about 14 digits.
    assert dirichlet_kl(g, a) == pytest.approx(expected, rel=1e-11)


def test_marginal_divergences_reference():
    parts = marginal_kl(np.array([[2, 0.7, 1.3, 4]]), np.full(4, 0.6))
    expected = [0.31796028, 0.36510947, 0.25874609, 0.79859975]
    np.testing.assert_allclose(parts[0], expected, atol=5e-9)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_divergence_against_many_digits(data):
    a = data.draw(concentration_arrays(2, 5, 1e-6, 1e6))
    g = data.draw(concentration_arrays(len(a), len(a), 1e-6, 1e6))
    expected = exact_kl(g, a)
    # Rounding inputs and sums alone moves the value by about this much, which is nothing at g = a.
    moved = (np.abs(g - a) * (1 + np.abs(np.log(g / a)))).sum()
    conditioning = 5 * np.finfo(float).eps * moved
    assert dirichlet_kl(g, a) == pytest.approx(expected, rel=1e-10, abs=1e-12 + conditioning)


@settings(max_examples=60, deadline=None)
@given(concentration_arrays(2, 5), st.floats(1e-7, 1e-2))
def test_divergence_near_equality_keeps_its_digits(a, step):
    g = a * (1 + step * np.resize([1.0, -0.5], len(a)))
    assert dirichlet_kl(g, a) == pytest.approx(exact_kl(g, a), rel=1e-5, abs=1e-17)
    assert dirichlet_kl(a, a) == 0


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_divergence_parts_and_permutations(data):
    a = data.draw(concentration_arrays(3, 5))
    g = data.draw(concentration_arrays(len(a), len(a)))
    assume(np.abs(np.log(g / a)).max() > 1e-3)
    kl = dirichlet_kl(g, a)
    assert kl > 0
    sticks = stick_breaking_kl(g[None], a)
    assert sticks.shape == (1, len(a) - 1)
    assert sticks.sum() == pytest.approx(kl, rel=1e-10)
    assert (marginal_kl(g[None], a) <= kl * (1 + 1e-10)).all()  # data processing
    order = np.argsort(g)
    assert dirichlet_kl(g[order], a[order]) == pytest.approx(kl, rel=1e-10)


def test_divergence_broadcasts_and_stays_finite():
    g = np.random.default_rng(0).gamma(1.0, size=(2, 3, 4))
    kl = dirichlet_kl(g, np.ones(4))
    assert kl.shape == (2, 3)
    assert kl[1, 2] == pytest.approx(exact_kl(g[1, 2], np.ones(4)))
    tiny = np.array([1e-160, 2e-160, 1e-160])
    assert np.isfinite(dirichlet_kl(tiny, np.full(3, 1e-160)))
    assert np.isfinite(dirichlet_kl([1.0, 2.0, 3.0], np.full(3, 1e-160)))
    assert np.isfinite(dirichlet_kl(np.full(3, 1.1e6), np.full(3, 1e6)))


@pytest.mark.parametrize(
    ("g", "a"), [([1, 0], [1, 1]), ([1, np.nan], [1, 1]), ([1], [1]), ([1, 1, 1], [1, 1])]
)
def test_divergence_refuses(g, a):
    with pytest.raises(ValueError, match=r"allowed|broadcast"):
        dirichlet_kl(g, a)


def test_expected_error_reference_and_monte_carlo():
    W, g, x = np.array([[1, 0, 2], [0, 3, 1.0]]), np.array([[2, 1, 0.5]]), np.array([[1, 1.0]])
    value = expected_squared_error(x, W, g)[0]
    assert value == pytest.approx(0.49206349206349204, rel=1e-13)
    draws = np.random.default_rng(0).dirichlet(g[0], size=200_000)
    errors = ((x - draws @ W.T) ** 2).sum(axis=1)
    standard_error = errors.std() / np.sqrt(len(errors))
    assert abs(errors.mean() - value) < 4 * standard_error


@pytest.mark.parametrize(
    ("K", "alpha", "expected"),
    [
        (2, 1, 0.9118906527810399),
        (3, 1, 0.8105694691387021),
        (3, 0.3, 0.5746694604754584),
        (4, 0.5, 0.6079271018540265),
        (5, 2, 0.8528003532017365),
        (10, 0.1, 0.19717390805032972),
        (10, 1, 0.6687198120394293),
        (2, 100, 0.9999834168587292),
        (50, 0.02, 0.03997444644397121),
    ],
)
def test_efficiency_reference(K, alpha, expected):
    assert dirichlet_efficiency(K, alpha) == pytest.approx(expected, rel=1e-14)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 30), st.floats(np.log(1e-6), np.log(1e4)))
def test_efficiency_bounds_and_monotony(K, log_alpha):
    alpha = float(np.exp(log_alpha))
    rho = dirichlet_efficiency(K, alpha)
    assert 1 / K < rho < 1
    assert dirichlet_efficiency(K, alpha * 1.1) > rho
    assert dirichlet_efficiency(K + 1, alpha) < rho


def test_efficiency_limits_and_meaning():
    for K in (2, 5, 10):
        assert dirichlet_efficiency(K, 1e-6) == pytest.approx(1 / K, abs=1e-5)
        assert dirichlet_efficiency(K, 1e3) == pytest.approx(1, abs=1e-3)
        assert dirichlet_efficiency(K, 1e-160) == pytest.approx(1 / K, rel=1e-12)
    # Squared correlation of a contrast of z with that of log z: 3 standard errors of 4e5 draws.
    Z = np.random.default_rng(0).dirichlet(np.full(3, 0.5), size=400_000)
    Z = Z[(Z > 0).all(axis=1)]
    correlation = np.corrcoef(Z[:, 0] - Z[:, 1], np.log(Z[:, 0] / Z[:, 1]))[0, 1]
    assert correlation**2 == pytest.approx(dirichlet_efficiency(3, 0.5), abs=3e-3)


@pytest.mark.parametrize(
    ("a", "expected"),
    [
        ([2, 0.5, 1], [0.92215765, 0.62771446]),
        ([1, 1, 2, 4], [0.95470625, 0.79959954, 0.68391799]),
    ],
)
def test_asymmetric_efficiencies_reference(a, expected):
    np.testing.assert_allclose(prior_efficiencies(np.array(a, dtype=float)), expected, atol=5e-9)


@settings(max_examples=30, deadline=None)
@given(concentration_arrays(2, 5, 0.05, 20))
def test_asymmetric_efficiencies_against_the_definition(a):
    """kappa by the definition with J, F and C_0 written out in g, on an explicit basis."""
    K, a0 = len(a), a.sum()
    m = a / a0
    C0 = (np.diag(m) - np.outer(m, m)) / (a0 + 1)
    J = (np.eye(K) - np.outer(m, np.ones(K))) / a0
    F = np.diag(polygamma(1, a)) - polygamma(1, a0)
    T = np.vstack([np.eye(K - 1), -np.ones(K - 1)])  # a basis of the tangent space
    Q = np.linalg.qr(T)[0]
    explained = Q.T @ J @ np.linalg.inv(F) @ J.T @ Q
    expected = eigh(explained, Q.T @ C0 @ Q, eigvals_only=True)[::-1]
    np.testing.assert_allclose(prior_efficiencies(a), expected, rtol=1e-6)
    assert prior_efficiencies(a).max() <= 1 + 1e-9  # Cramer-Rao


def exact_efficiencies(a):
    """The definition in 60 digits, in the coordinates without the last one."""
    with mp.workdps(60):
        a = [mp.mpf(float(v)) for v in a]
        K, a0 = len(a), sum(a)
        J = mp.matrix(K, K)
        F, C0 = J.copy(), J.copy()
        for i in range(K):
            for j in range(K):
                J[i, j] = ((i == j) - a[i] / a0) / a0
                F[i, j] = (i == j) * mp.psi(1, a[i]) - mp.psi(1, a0)
                C0[i, j] = ((i == j) * a[i] / a0 - a[i] * a[j] / a0**2) / (a0 + 1)
        explained = J * F**-1 * J.T
        root = mp.cholesky(C0[: K - 1, : K - 1]) ** -1
        kappa = mp.eigsy(root * explained[: K - 1, : K - 1] * root.T, eigvals_only=True)
        return sorted(map(float, kappa), reverse=True)


@pytest.mark.parametrize(
    "a",
    [[1e-8, 1, 1], [1e-20, 2e-20, 1], [1e6, 1e6, 1e-3], [1e-3, 1, 1e3], [0.3, 0.5, 0.7, 20, 50]],
)
def test_asymmetric_efficiencies_against_many_digits(a):
    expected = exact_efficiencies(a)
    np.testing.assert_allclose(prior_efficiencies(np.array(a)), expected, rtol=1e-9, atol=1e-15)


def test_asymmetric_efficiencies_stay_finite():
    for a in ([1e-160, 1, 1e6], [1e-160, 1e-160, 1], [1e-200, 2e-200, 3e-200], [1e300, 2e300, 1]):
        kappa = prior_efficiencies(np.array(a, dtype=float))
        assert np.isfinite(kappa).all() and 0.3 < kappa[0] <= 1 + 1e-12 and kappa[-1] >= 0
    # The limit of tiny concentrations depends on their proportions alone.
    np.testing.assert_allclose(
        prior_efficiencies(np.array([1e-200, 2e-200, 3e-200])),
        prior_efficiencies(np.array([1e-12, 2e-12, 3e-12])),
        rtol=1e-9,
    )
    assert dirichlet_efficiency(3, 1e300) == 1.0


def test_marginal_divergences_of_unequal_concentrations():
    """The others' sum 2e-160 must not vanish in 1 + 2e-160."""
    a = np.array([[1e-160, 1e-160, 1.0]])
    g = 2 * a
    expected = dirichlet_kl([2.0, 4e-160], [1.0, 2e-160])
    assert marginal_kl(g, a)[0, 2] == pytest.approx(float(expected), rel=1e-12)


def test_threshold_reference():
    spectrum = collapse_threshold(X6, 3, noise_variance=0.5, kind="spectrum")
    np.testing.assert_allclose(spectrum, [5.678013592170127, 2.652839285088755], rtol=1e-12)
    spectrum = collapse_threshold(X6, 3, concentration=0.3, noise_variance=0.5, kind="spectrum")
    np.testing.assert_allclose(spectrum, [4.025541464141151, 1.88078354630106], rtol=1e-12)
    spectrum = collapse_threshold(X6, 2, concentration=0.5, kind="spectrum")
    np.testing.assert_allclose(spectrum, [2.8390067960850636], rtol=1e-12)
    learned = collapse_threshold(X6, 3, noise_variance="learned")
    assert learned == pytest.approx(1.1049107530709437, rel=1e-12)
    assert collapse_threshold(X6, 3, kind="certificate") == pytest.approx(6.5, rel=1e-12)
    assert collapse_threshold(X6, 3, kind="flexible") == pytest.approx(3.50248425, abs=5e-9)
    # The estimator says the same before any fit.
    model = DirichletBetaVAE(3, noise_variance=0.5)
    np.testing.assert_array_equal(
        model.collapse_threshold(X6, "spectrum"),
        collapse_threshold(X6, 3, noise_variance=0.5, kind="spectrum"),
    )
    weight = [0, 1, 2, 1, 3, 1]
    for noise in (0.5, "auto", "learned"):
        weighted = DirichletBetaVAE(2, noise_variance=noise)
        assert weighted.collapse_threshold(X6, sample_weight=weight) == pytest.approx(
            weighted.collapse_threshold(np.repeat(X6, weight, axis=0)), rel=1e-12
        )


@settings(max_examples=30, deadline=None)
@given(mixture_arrays(), st.floats(0.1, 10), st.integers(0, 1000))
def test_threshold_scalings(mixture, factor, seed):
    X, K = mixture
    beta_c = collapse_threshold(X, K)
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((X.shape[1],) * 2))[0]
    shift = X.std() * rng.standard_normal(X.shape[1])
    for same in (X @ Q, X + shift, np.repeat(X, 2, axis=0), X[::-1]):
        assert collapse_threshold(same, K) == pytest.approx(beta_c, rel=1e-8)
    assert collapse_threshold(factor * X, K) == pytest.approx(factor**2 * beta_c, rel=1e-8)
    scaled = collapse_threshold(X, K, noise_variance=factor)
    assert scaled == pytest.approx(beta_c / factor, rel=1e-12)
    weight = rng.integers(0, 4, size=len(X))
    assume((weight > 0).sum() >= 2)
    repeated = collapse_threshold(np.repeat(X, weight, axis=0), K)
    weighted = collapse_threshold(X, K, sample_weight=weight)
    assert weighted == pytest.approx(repeated, rel=1e-7)


@settings(max_examples=30, deadline=None)
@given(mixture_arrays(), concentration_arrays(2, 4, 0.05, 20))
def test_thresholds_are_ordered(mixture, a):
    X, _ = mixture
    K = len(a)
    local, flexible, certificate = (
        collapse_threshold(X, K, concentration=a, kind=kind)
        for kind in ("local", "flexible", "certificate")
    )
    assert local <= flexible * (1 + 1e-9) <= certificate * (1 + 1e-8)
    spectrum = collapse_threshold(X, K, concentration=a, kind="spectrum")
    assert spectrum.shape == (min(K - 1, X.shape[1]),)
    assert (np.diff(spectrum) <= 1e-12 * local).all()
    assert spectrum[0] == pytest.approx(local)


def objective(theta, Y, a, tau, K):
    """Joint objective in (W, log g) around the mean, by its definition."""
    n, D = Y.shape
    V, log_g = theta[: D * K].reshape(D, K), theta[D * K :].reshape(n, K)
    g = np.exp(log_g)
    return float(np.mean(expected_squared_error(Y, V, g) / 2 + tau * dirichlet_kl(g, a)))


@settings(max_examples=8, deadline=None)
@given(st.integers(2, 4), st.integers(1, 3), st.integers(0, 10_000), st.booleans())
def test_joint_hessian_changes_sign_at_the_threshold(K, D, seed, symmetric):
    """By automatic differentiation of the objective in float64."""
    import torch

    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 9))
    Y = rng.standard_normal((n, D))
    Y -= Y.mean(axis=0)
    a = np.full(K, rng.uniform(0.2, 5)) if symmetric else rng.uniform(0.2, 5, size=K)
    beta_c = collapse_threshold(Y, K, concentration=a)
    rows, prior = torch.tensor(Y), torch.tensor(a)

    def value(theta, tau):
        V, g = theta[: D * K].reshape(D, K), theta[D * K :].reshape(n, K).exp()
        g0 = g.sum(1)
        m = g / g0[:, None]
        mean = m @ V.T
        spread = (m @ (V**2).sum(0) - (mean**2).sum(1)) / (g0 + 1)
        error = ((rows - mean) ** 2).sum(1) + spread
        law = torch.distributions.Dirichlet
        kl = torch.distributions.kl_divergence(law(g), law(prior.expand(n, K)))
        return (error / 2 + tau * kl).mean()

    start = torch.cat([torch.zeros(D * K), prior.log().repeat(n)]).double()
    smallest = []
    for ratio in (0.99, 1.01):
        hessian = torch.autograd.functional.hessian(
            lambda theta, tau=ratio * beta_c: value(theta, tau), start
        )
        smallest.append(float(torch.linalg.eigvalsh(hessian)[0]))
    assert smallest[0] < -1e-8
    assert smallest[1] >= -1e-10


def test_randomised_eigenvalues_agree():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 40)) * np.linspace(3, 0.2, 40) + 5
    expected = np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1][:4]
    found = randomised_eigenvalues(X, X.mean(axis=0), None, 4)
    assert found[0] == pytest.approx(expected[0], rel=1e-4)
    np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_large_matrices_take_the_randomised_route():
    X = np.random.default_rng(0).standard_normal((2100, 2050))
    X[:, 0] *= 10
    expected = np.var(X[:, 0]) * dirichlet_efficiency(3, 1.0)
    assert collapse_threshold(X, 3) == pytest.approx(expected, rel=0.02)


@settings(max_examples=30, deadline=None)
@given(mixture_arrays())
def test_diameter_against_all_pairs(mixture):
    X, _ = mixture
    pairs = ((X[:, None] - X[None]) ** 2).sum(axis=2).max()
    assert squared_diameter(X, X.mean(axis=0)) == pytest.approx(pairs, rel=1e-6)


def test_diameter_of_many_equal_radii_is_bounded_above():
    angle = np.linspace(0, 2 * np.pi, 5001)[:-1]
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    assert 4 <= squared_diameter(X, X.mean(axis=0)) <= 4.0001


@pytest.mark.parametrize(
    "change",
    [
        {"n_components": 1},
        {"n_components": 2.5},
        {"concentration": 0},
        {"concentration": [1, 2]},
        {"concentration": np.nan},
        {"noise_variance": 0},
        {"noise_variance": "auto"},
        {"kind": "global"},
        {"sample_weight": -np.ones(6)},
        {"sample_weight": np.zeros(6)},
        {"sample_weight": np.ones(5)},
        {"X": X6[:1]},
        {"X": np.where(X6 == 5, np.nan, X6)},
    ],
)
def test_threshold_refuses(change):
    arguments = {"X": X6, "n_components": 3, **change}
    with pytest.raises(ValueError, match=r".") as refusal:
        collapse_threshold(**arguments)
    assert "X" in change or any(str(name) in str(refusal.value) for name in change)


def test_numbers_whose_squares_leave_the_range_are_refused():
    for scale, words in ((1e200, "overflow"), (1e-200, "underflow")):
        with np.errstate(over="ignore"), pytest.raises(ValueError, match=words):
            collapse_threshold(scale * X6, 3)
    for scale in (1e140, 1e-140):
        assert collapse_threshold(scale * X6, 3) == pytest.approx(
            scale**2 * collapse_threshold(X6, 3), rel=1e-12
        )


def test_constant_data_have_threshold_zero():
    X = np.full((5, 2), 3.7)
    assert collapse_threshold(X, 3) == 0
    np.testing.assert_array_equal(collapse_threshold(X, 3, kind="spectrum"), [0, 0])
    assert collapse_threshold(X, 3, kind="certificate") == 0
