"""Softmax-normal and Weibull posteriors: their numbers by other routes, collapse, and bad input."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import trapezoid
from scipy.linalg import eigh, null_space
from scipy.optimize import minimize
from scipy.special import gammaln
from sklearn.base import clone
from torch.autograd import gradcheck

from equipoise.datasets import make_convex_mixture
from equipoise.estimators import (
    DirichletBetaVAE,
    abundance_rmse,
    collapse_threshold,
    dirichlet_efficiency,
)
from equipoise.estimators.dirichlet_vae.families import (
    family_facts,
    softmax_normal_prior,
    softmax_rows,
    weibull_prior,
)
from equipoise.estimators.dirichlet_vae.posteriors import (
    SoftmaxNormalPosterior,
    WeibullPosterior,
    make_posterior,
)
from equipoise.testing import check_explains, check_simplex_code

MIXTURE = make_convex_mixture(200, 8, 3, random_state=0)
X, Z = MIXTURE.data, MIXTURE.weights
OTHERS = ["softmax_normal", "weibull"]


def fitted(posterior, **parameters):
    settings = {"solver": "adam", "max_iter": 60, "hidden_layer_sizes": (16,), "lr": 1e-2}
    return DirichletBetaVAE(
        3, posterior=posterior, **{"random_state": 0, **settings, **parameters}
    ).fit(X)


def weibull_of(law, theta, k):
    """Component k of the first row as a frozen SciPy law."""
    loc, scale = law.locate(theta)
    return stats.weibull_min(1 / float(scale[0, k]), scale=float(loc[0, k].exp()))


# --- divergences and moments by other routes -----------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.floats(0.2, 20), min_size=2, max_size=4),
    st.floats(-1.5, 1.5),
    st.floats(-1, 0.7),
)
def test_weibull_divergence_by_quadrature(a, o, r):
    """KL(Weibull || Gamma(a, 1)) component by component, by the trapezoidal rule in log w."""
    law = WeibullPosterior(np.array(a))
    K = len(a)
    theta = torch.tensor([[o] * K + [r] * K], dtype=torch.float64)
    found = law.divergence_parts(theta)[0].numpy()
    for k in range(K):
        q, p = weibull_of(law, theta, k), stats.gamma(a[k])
        w = np.exp(np.linspace(np.log(q.ppf(1e-14)), np.log(q.isf(1e-14)), 4001))
        expected = trapezoid(q.pdf(w) * (q.logpdf(w) - p.logpdf(w)) * w, np.log(w))
        assert found[k] == pytest.approx(expected, rel=1e-6, abs=1e-8)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(0.05, 50), min_size=2, max_size=4), st.integers(0, 1000))
def test_softmax_normal_divergence_against_torch(a, seed):
    law = SoftmaxNormalPosterior(np.array(a))
    rng = np.random.default_rng(seed)
    theta = torch.as_tensor(rng.standard_normal((5, 2 * len(a))))
    loc, scale = law.locate(theta)
    mean, prior_scale = (torch.as_tensor(v) for v in softmax_normal_prior(np.array(a)))
    q, p = torch.distributions.Normal(loc, scale), torch.distributions.Normal(mean, prior_scale)
    expected = torch.distributions.kl_divergence(q, p)
    torch.testing.assert_close(law.divergence_parts(theta), expected, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(law.divergence(theta), expected.sum(dim=1), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("a", [0.1, 0.7, 1.0, 4.0, 300.0])
def test_collapsed_weibull_law_is_the_nearest(a):
    """Against a numerical minimum of the divergence over scale and shape."""
    log_t, floor = weibull_prior(np.array([a, a]))

    def divergence(x):  # Zhang et al. (2018), with log scale and log shape
        scale, shape = np.exp(x)
        mean = scale * np.exp(gammaln(1 + 1 / shape))
        e = np.euler_gamma
        return e * a / shape - a * x[0] + x[1] + mean - e - 1 + gammaln(a)

    peer = minimize(divergence, [np.log(a), 0.5 * np.log(a + 0.2)], method="Nelder-Mead",
                    options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 5000})  # fmt: skip
    assert floor[0] == pytest.approx(peer.fun, abs=1e-9)
    assert -log_t[0] == pytest.approx(peer.x[1], abs=1e-5)
    assert floor[0] >= -1e-12
    if a == 1:  # an exponential variable is both
        assert floor[0] == pytest.approx(0, abs=1e-12)


def test_laplace_approximation_is_that_of_the_softmax_basis():
    """Mode and curvature of Dir(a) in h, with the mean of h fixed at zero by a projection."""
    a = np.array([2.0, 5.0, 3.0])
    mean, scale = softmax_normal_prior(a)

    def log_density(h):  # of h under Dir(a), its Jacobian included
        return a @ h - a.sum() * np.log(np.exp(h).sum())

    peak = minimize(lambda h: -log_density(h) + h.mean() ** 2, np.zeros(3), tol=1e-12).x
    np.testing.assert_allclose(peak - peak.mean(), mean, atol=1e-5)
    z = a / a.sum()
    curvature = a.sum() * (np.diag(z) - np.outer(z, z))
    np.testing.assert_allclose(np.diag(np.linalg.pinv(curvature)), scale**2, rtol=1e-9)


@pytest.mark.parametrize("posterior", OTHERS)
def test_moments_against_monte_carlo(posterior):
    """Quadrature means and errors, and the log-ratio moments, within five standard errors."""
    rng = np.random.default_rng(0)
    law = make_posterior(posterior, np.array([0.4, 1.0, 2.5]), "implicit")
    theta = torch.as_tensor(0.7 * rng.standard_normal((4, 6)))
    V, Y = (
        torch.as_tensor(rng.standard_normal((5, 3))),
        torch.as_tensor(rng.standard_normal((4, 5))),
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        log_w = law.log_weights(theta, 200_000)
    codes = torch.softmax(log_w, dim=2)
    # 512 Sobol points are good for about 1e-3.
    np.testing.assert_allclose(law.mean(theta), codes.mean(dim=0), atol=4e-3)
    squares = ((Y - codes @ V.T) ** 2).sum(dim=2)
    np.testing.assert_allclose(
        law.linear_squared_error(Y, V, theta), squares.mean(dim=0), rtol=1e-2
    )
    mean, variance = law.log_moments(theta)
    error = log_w.std(dim=0) / np.sqrt(200_000)
    assert ((log_w.mean(dim=0) - mean).abs() < 5 * error).all()
    np.testing.assert_allclose(log_w.var(dim=0), variance, rtol=0.03)
    if posterior == "weibull":  # w itself against SciPy
        for k in range(3):
            w = log_w[:2000, 0, k].exp().numpy()
            assert stats.kstest(w, weibull_of(law, theta, k).cdf).pvalue > 1e-3


@pytest.mark.parametrize("posterior", ["dirichlet", *OTHERS])
@pytest.mark.parametrize("level", [0.2, 1.0, 30.0])
def test_gradients_against_differences(posterior, level):
    law = make_posterior(posterior, np.array([level, 1.0, 2.0]), "implicit")
    rng = np.random.default_rng(0)
    theta = torch.as_tensor(0.5 * rng.standard_normal((2, law.n_parameters * 3)))
    theta.requires_grad_()
    assert gradcheck(law.divergence, theta, rtol=1e-4)
    assert gradcheck(law.mean, theta, rtol=1e-4)
    V, Y = (
        torch.as_tensor(rng.standard_normal((4, 3))),
        torch.as_tensor(rng.standard_normal((2, 4))),
    )
    assert gradcheck(lambda t: law.linear_squared_error(Y, V, t), theta, rtol=1e-4)


@pytest.mark.parametrize("posterior", OTHERS)
def test_reparameterised_gradient_is_that_of_the_mean(posterior):
    """The average gradient of sampled codes against differences of the quadrature mean."""
    law = make_posterior(posterior, np.array([0.6, 1.0, 2.0]), "implicit")
    theta = torch.tensor([[0.3, -0.2, 0.5, 0.1, -0.4, 0.2]], dtype=torch.float64)
    theta.requires_grad_()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        sampled = law.codes(theta, 200_000)[:, 0, 0].mean()
    (gradient,) = torch.autograd.grad(sampled, theta)
    (exact,) = torch.autograd.grad(law.mean(theta)[0, 0], theta)
    np.testing.assert_allclose(gradient, exact, atol=6e-3)


@pytest.mark.parametrize("posterior", OTHERS)
@pytest.mark.parametrize("alpha", [1e-160, 1e-3, 1e6])
def test_extreme_concentrations_keep_everything_finite(posterior, alpha):
    law = make_posterior(posterior, np.full(3, alpha), "implicit")
    theta = torch.zeros((6, 6), dtype=torch.float64)
    theta[1:] = torch.as_tensor(np.random.default_rng(0).uniform(-14, 14, size=(5, 6)))
    theta = law.parameters_of(theta).requires_grad_()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        codes = law.codes(theta, 20)
    total = (codes**2).sum() + law.divergence(theta).sum()
    total.backward()
    assert torch.isfinite(codes).all()
    assert torch.isfinite(total)
    assert torch.isfinite(theta.grad).all()
    np.testing.assert_allclose(codes.sum(dim=2).detach(), 1)
    facts = family_facts(posterior, np.full(3, alpha))
    assert np.isfinite(facts.efficiencies).all() and np.isfinite(facts.floor)


# --- thresholds -----------------------------------------------------------------------------------


def efficiencies_by_differences(posterior, a, n=400_000):
    """kappa from differences of E z with common random numbers, and of the divergence."""
    K = len(a)
    law = make_posterior(posterior, a, "implicit")
    u = torch.as_tensor(np.random.default_rng(1).uniform(1e-12, 1, size=(n, K)))
    e = law.noise(u)

    def mean(theta):
        loc, scale = law.locate(torch.as_tensor(theta)[None])
        return softmax_rows((loc + scale * e).numpy())

    step = 1e-3
    moves = step * np.eye(2 * K)
    J = np.array([(mean(m).mean(0) - mean(-m).mean(0)) / (2 * step) for m in moves]).T
    codes = mean(np.zeros(2 * K))
    C = np.cov(codes.T, bias=True)

    def divergence(theta):
        return float(law.divergence(torch.as_tensor(theta)[None]))

    base = divergence(np.zeros(2 * K))
    H = np.empty((2 * K, 2 * K))
    for i, x in enumerate(moves):
        for j, y in enumerate(moves):
            mixed = divergence(x + y) - divergence(x - y) - divergence(y - x) + divergence(-x - y)
            H[i, j] = mixed / (4 * step**2)
    assert base <= min(divergence(m) for m in moves)  # zero is the least
    T = null_space(np.ones((1, K)))
    explained = T.T @ J @ np.linalg.inv(H) @ J.T @ T
    return eigh(explained, T.T @ C @ T, eigvals_only=True)[::-1]


@pytest.mark.parametrize("posterior", OTHERS)
@pytest.mark.parametrize("a", [[1.0, 1.0], [0.5, 0.5, 0.5], [2.0, 0.5, 1.0]])
def test_efficiencies_against_differences(posterior, a):
    a = np.array(a)
    # 4e5 draws: three digits.
    np.testing.assert_allclose(
        family_facts(posterior, a).efficiencies,
        efficiencies_by_differences(posterior, a),
        rtol=8e-3,
    )


def test_efficiencies_in_known_cases():
    # Every family is normal in the limit of large concentrations, and exact where it holds the law.
    for K in (2, 4):
        assert family_facts("softmax_normal", np.full(K, 1e4)).efficiencies[0] == pytest.approx(
            1, abs=1e-3
        )
    exponential = family_facts("weibull", np.ones(3))
    assert exponential.floor == pytest.approx(0, abs=1e-12)
    assert exponential.flexible_efficiency == pytest.approx(1, abs=2e-3)
    assert exponential.has_certificate
    # More parameters a component explain at least as much as the Dirichlet's one.
    assert exponential.efficiencies[0] > dirichlet_efficiency(3, 1.0)
    # Without the scales, kappa is s^2 G G^T against Cov z with G = E[diag z - z z^T].
    s = softmax_normal_prior(np.full(3, 0.8))[1]
    codes = softmax_rows(s * np.random.default_rng(0).standard_normal((400_000, 3)))
    second = codes.T @ codes / len(codes)
    G = np.diag(codes.mean(axis=0)) - second
    kappa = np.linalg.eigvalsh(s[0] ** 2 * G @ G)[-1] / np.linalg.eigvalsh(np.cov(codes.T))[-1]
    full = family_facts("softmax_normal", np.full(3, 0.8)).efficiencies[0]
    assert kappa - 2e-3 < full < kappa + 0.05


@pytest.mark.parametrize("posterior", OTHERS)
def test_threshold_before_and_after_a_fit(posterior):
    model = fitted(posterior, noise_variance=0.01, max_iter=2)
    expected = collapse_threshold(X, 3, noise_variance=0.01, posterior=posterior)
    assert model.beta_c_ == pytest.approx(expected)
    assert clone(model).collapse_threshold(X) == pytest.approx(expected)
    kappa = family_facts(posterior, np.ones(3)).efficiencies[0]
    dirichlet = collapse_threshold(X, 3, noise_variance=0.01)
    assert expected == pytest.approx(dirichlet / dirichlet_efficiency(3, 1.0) * kappa)
    assert model.rho_ == pytest.approx(kappa)
    with pytest.raises(ValueError, match="posterior"):
        collapse_threshold(X, 3, posterior="gaussian")


@pytest.mark.parametrize("posterior", OTHERS)
@pytest.mark.parametrize("alpha", [pytest.param(0.6, marks=pytest.mark.slow), 1.0])
def test_collapse_on_the_predicted_side(posterior, alpha):
    """Full-batch training with exact expectations from a small perturbation of collapse.

    Quadrature replaces samples, so that growth or decay of the perturbation is what the second
    variation says; within 10 % of the threshold the rates are too small for a few hundred steps.
    """
    K, D, n = 3, 4, 30
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((n, D)) * [1.5, 1.0, 0.5, 0.3]
    Y = torch.as_tensor(Y - Y.mean(axis=0))
    a = np.full(K, alpha)
    law = make_posterior(posterior, a, "implicit")
    beta_c = collapse_threshold(Y.numpy(), K, concentration=alpha, posterior=posterior)
    start = 1e-3 * torch.as_tensor(rng.standard_normal((D, K)))
    floor = family_facts(posterior, a).floor

    def activity(ratio):
        V = start.clone().requires_grad_()
        theta = torch.zeros((n, 2 * K), dtype=torch.float64, requires_grad=True)
        optimiser = torch.optim.LBFGS(
            [V, theta],
            max_iter=300,
            line_search_fn="strong_wolfe",
            tolerance_grad=1e-12,
            tolerance_change=1e-16,
        )

        def closure():
            optimiser.zero_grad()
            loss = law.linear_squared_error(Y, V, theta) / 2
            loss = (loss + ratio * beta_c * law.divergence(theta)).mean()
            loss.backward()
            return loss

        optimiser.step(closure)
        return float(law.divergence(theta).mean().detach()) - floor

    assert activity(0.85) > 0.02
    assert activity(1.15) < 1e-5


# --- the estimator --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [{}, {"decoder": "box"}, {"decoder": "archetypal"}, {"decoder": "logratio"},
     {"decoder": "mlp"}, {"encoder": "linear", "n_mc": 3}, {"noise_variance": "learned"},
     {"dtype": "float32"}],
)  # fmt: skip
@pytest.mark.parametrize("posterior", OTHERS)
@pytest.mark.filterwarnings("ignore:beta='auto' takes")
def test_networks_learn(posterior, parameters):
    model = fitted(posterior, **parameters, max_iter=8, beta_ratio=0.1)
    assert model.solver_ == "adam"
    assert model.loss_curve_[-1] < model.loss_curve_[0]
    if "dtype" not in parameters:  # single precision rounds rows alone and together differently
        check_simplex_code(model, X[:8])
    assert np.isfinite(model.elbo(X, reduce=False)).all()
    twin = fitted(posterior, **parameters, max_iter=8, beta_ratio=0.1)
    np.testing.assert_array_equal(twin.transform(X), model.transform(X))
    report = model.explain()
    assert report.kl_stick.sum() == pytest.approx(report.kl_mean)
    assert np.isfinite(report.to_frame()["value"]).all()


@pytest.mark.parametrize("posterior", OTHERS)
def test_mixture_is_recovered_and_reported(posterior):
    model = fitted(posterior, beta_ratio=0.05, n_mc=4, max_iter=100, batch_size=50)
    # Per-row Dirichlet posteriors at this ratio reach 0.07.
    assert abundance_rmse(model.transform(X), Z) < 0.2
    report = check_explains(model) or model.explain()
    assert report.verdict == "active"
    assert 0 < report.mutual_information < report.kl_mean
    information = model.mutual_information(X, n_samples=4, max_rows=50)
    assert information == model.mutual_information(X, n_samples=4, max_rows=50)
    assert 0 < information <= np.log(50)
    rows, codes = model.sample(2000, random_state=0)
    assert np.isfinite(rows).all()
    np.testing.assert_allclose(codes.mean(axis=0), 1 / 3, atol=0.03)
    assert not hasattr(model, "predict_concentration")
    assert model.score(X) == pytest.approx(float(model.elbo(X, beta=1.0)))


def test_information_of_normal_codes_in_closed_form():
    """Two far clusters of equal rows carry log 2 nats."""
    law = SoftmaxNormalPosterior(np.ones(2))
    theta = torch.zeros((40, 4), dtype=torch.float64)
    theta[:20, 0], theta[20:, 0], theta[:, 2:] = 30.0, -30.0, -2.0
    with torch.random.fork_rng():
        torch.manual_seed(0)
        assert law.information(theta, 8) == pytest.approx(np.log(2), abs=1e-9)
    assert law.information(0 * theta, 8) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("posterior", "a"),
    [
        ("weibull", [1e-160, 1.0, 1e6]),
        ("weibull", [1e-8, 1.0, 1.0]),
        ("softmax_normal", [1e300] * 3),
    ],
)
def test_efficiencies_that_points_cannot_show_are_refused(posterior, a):
    with pytest.raises(ValueError, match="concentration is too unequal or too large"):
        family_facts(posterior, np.array(a))


def test_weibull_collapse_keeps_its_floor():
    """Collapsed Weibull posteriors still differ from the prior; the verdict allows for it."""
    settings = {"concentration": 0.3, "beta_ratio": 10.0, "max_iter": 200, "encoder": "linear"}
    model = fitted("weibull", **settings, batch_size=200, lr=1e-3)
    floor = family_facts("weibull", np.full(3, 0.3)).floor
    assert floor > 0.05
    assert model.kl_ == pytest.approx(floor, abs=1e-3)
    assert model.collapsed_ and model.report_.verdict == "collapsed"
    s2 = model.noise_variance_
    collapsed = ((X - X.mean(axis=0)) ** 2).sum(axis=1).mean() / (2 * s2)
    collapsed += 4 * np.log(2 * np.pi * s2) + model.beta_ * floor
    assert model.report_.objective_gap == pytest.approx(-model.elbo(X) - collapsed)
    assert np.isnan(model.report_.certificate_ratio)
    with pytest.raises(ValueError, match="certificate"):
        model.collapse_threshold(kind="certificate")


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"solver": "vem"}, "solver='vem'"),
        ({"encoder": "none", "solver": "auto"}, "encoder='none'"),
        ({"objective": "analytic"}, "objective='analytic'"),
        ({"sampler": "gamma_icdf"}, "sampler"),
        ({"encoder": torch.nn.Linear(8, 3).double()}, "encoder returns shape"),
    ],
)
@pytest.mark.parametrize("posterior", OTHERS)
def test_parameters_are_refused(posterior, parameters, words):
    with pytest.raises(ValueError, match=words):
        fitted(posterior, **parameters)
