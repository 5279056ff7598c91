"""Distilled encoders, and the table over numbers of components."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from equipoise.datasets import make_convex_mixture
from equipoise.estimators import (
    DirichletBetaVAE,
    component_table,
    dirichlet_kl,
    distill_encoder,
)
from equipoise.estimators.dirichlet_vae.divergence import expected_squared_error
from equipoise.testing import check_simplex_code

MIXTURE = make_convex_mixture(300, 10, 3, random_state=0)
X = MIXTURE.data


@pytest.fixture(scope="module")
def teacher():
    return DirichletBetaVAE(3, beta_ratio=0.1, lr=1e-2, batch_size=100, random_state=0).fit(X)


@pytest.mark.parametrize("encoder", ["mlp", "linear"])
def test_distilled_encoder_follows_newton(teacher, encoder):
    before = pickle.dumps(teacher)
    fast = distill_encoder(teacher, X, encoder=encoder, max_iter=50)
    assert pickle.dumps(teacher) == before
    np.testing.assert_array_equal(fast.components_, teacher.components_)
    for name in ("beta_", "beta_c_", "noise_variance_", "rho_"):
        assert getattr(fast, name) == getattr(teacher, name)
    # Newton's posterior is each row's best: no row can be better, and the gap is small.
    gap = teacher.elbo(X, reduce=False) - fast.elbo(X, reduce=False)
    assert gap.min() > -1e-6
    begun = distill_encoder(teacher, X, encoder=encoder, max_iter=1)
    start = teacher.elbo(X) - begun.elbo(X)
    assert gap.mean() < (0.3 if encoder == "mlp" else start / 3)
    assert np.abs(fast.transform(X) - teacher.transform(X)).mean() < 0.05
    check_simplex_code(fast, X[:10])
    again = distill_encoder(teacher, X, encoder=encoder, max_iter=50)
    np.testing.assert_array_equal(again.transform(X), fast.transform(X))
    np.testing.assert_array_equal(pickle.loads(before).transform(X), teacher.transform(X))


def test_distilled_model_is_whole(teacher):
    fresh = make_convex_mixture(300, 10, 3, random_state=0).data[:50] + 0.01
    fast = distill_encoder(teacher, X, max_iter=40, sample_weight=np.ones(300))
    assert fast.solver_ == "adam" and fast.n_iter_ == 40
    assert fast.report_.kl_mean == pytest.approx(fast.kl_)
    g = fast.predict_concentration(fresh)
    error = expected_squared_error(fresh, fast.components_.T, g)
    s2 = fast.noise_variance_
    rows = error / (2 * s2) + 5 * np.log(2 * np.pi * s2) + fast.beta_ * dirichlet_kl(g, 1 + 0 * g)
    np.testing.assert_allclose(fast.elbo(fresh, reduce=False), -rows, rtol=1e-9)
    assert fast.partial_fit(X).n_iter_ == 41
    np.testing.assert_allclose(fast.components_, teacher.components_, rtol=1e-13)  # still frozen
    assert clone(fast).get_params()["encoder"] == "mlp"


@pytest.mark.parametrize("decoder", ["box", "archetypal"])
def test_constrained_endmembers_are_kept(decoder):
    model = DirichletBetaVAE(3, decoder=decoder, beta_ratio=0.1, lr=1e-2, random_state=0).fit(X)
    fast = distill_encoder(model, X, max_iter=5)
    np.testing.assert_array_equal(fast.components_, model.components_)
    if decoder == "archetypal":
        np.testing.assert_allclose(fast.archetype_weights_ @ X, fast.components_, atol=1e-6)


def test_distillation_refuses(teacher):
    network = DirichletBetaVAE(3, solver="adam", max_iter=1, random_state=0).fit(X)
    with pytest.raises(ValueError, match="network already"):
        distill_encoder(network, X)
    for parameters, words in (
        ({"encoder": "none"}, "encoder"),
        ({"encoder": "convolutional"}, "encoder"),
        ({"max_iter": 0}, "max_iter"),
        ({"sample_weight": np.zeros(300)}, "sample_weight"),
    ):
        with pytest.raises(ValueError, match=words):
            distill_encoder(teacher, X, **parameters)
    with pytest.raises(ValueError, match="features"):
        distill_encoder(teacher, X[:, :4])


@pytest.mark.parametrize("K", [3, pytest.param(4, marks=pytest.mark.slow)])
def test_table_finds_the_number_of_components(K):
    data = make_convex_mixture(300, 10, K, noise=0.03, random_state=1).data
    est = DirichletBetaVAE(random_state=0)
    table = component_table(est, data, [2, 3, 4, 5], [0.05, 0.1], n_jobs=2)
    assert len(table) == 8
    assert table.loc[table["bic"].idxmin(), "n_components"] == K
    # Another order, one thread.
    part = component_table(est, data, [3, 2], 0.1)
    assert part["bic"].tolist() == table["bic"].iloc[[3, 1]].tolist()
    # One row by its definition.
    row = table.iloc[3]
    model = DirichletBetaVAE(3, beta_ratio=0.1, random_state=0).fit(data)
    g = model.predict_concentration(data)
    s2 = expected_squared_error(data, model.components_.T, g).mean() / 10
    likelihood = -5 * (np.log(2 * np.pi * s2) + 1) - dirichlet_kl(g, 1 + 0 * g).mean()
    assert row["bound"] == pytest.approx(likelihood)
    assert row["bic"] == pytest.approx(-600 * likelihood + 31 * np.log(300))


def test_table_shows_idle_directions():
    """At a larger beta the weaker directions fall silent, whatever the number of components."""
    data = make_convex_mixture(300, 10, 3, noise=0.02, random_state=0).data
    est = DirichletBetaVAE(concentration=3.0, random_state=0)
    table = component_table(est, data, [6], [0.05, 0.9])
    assert table["n_active"].iloc[1] < table["n_active"].iloc[0]


@pytest.mark.parametrize(
    ("parameters", "numbers", "ratios", "words"),
    [
        ({}, [1, 2], [0.1], "n_components"),
        ({}, [2.5], [0.1], "n_components"),
        ({}, [2], [-0.1], "ratios"),
        ({"beta": 1.0}, [2], [0.1], "beta"),
        ({"decoder": "mlp"}, [2], [0.1], "decoder"),
        ({"concentration": [1.0, 2.0, 3.0]}, [3], [0.1], "concentration"),
    ],
)
def test_table_refuses(parameters, numbers, ratios, words):
    with pytest.raises(ValueError, match=words):
        component_table(DirichletBetaVAE(**parameters), X, numbers, ratios)
