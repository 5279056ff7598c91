"""DirichletBetaVAE: collapse where it is predicted, the estimator's contract, and bad input."""

import pickle
import warnings

import joblib
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, StandardScaler

from equipoise.datasets import make_convex_mixture
from equipoise.estimators import (
    DirichletBetaVAE,
    abundance_rmse,
    collapse_path,
    collapse_threshold,
    dirichlet_kl,
    match_endmembers,
    plot_abundance_maps,
    plot_collapse_path,
    plot_endmembers,
    plot_simplex,
)
from equipoise.estimators.dirichlet_vae.divergence import expected_squared_error
from equipoise.testing import check_explains, check_simplex_code, mixture_arrays

MIXTURE = make_convex_mixture(200, 8, 3, random_state=0)
X, Z, W = MIXTURE.data, MIXTURE.weights, MIXTURE.components
LINEAR = ["linear", "nonnegative", "box", "archetypal"]


def fitted(**parameters):
    return DirichletBetaVAE(3, **{"random_state": 0, **parameters}).fit(X)


def quick(**parameters):
    """A network trained briefly."""
    settings = {"solver": "adam", "max_iter": 15, "hidden_layer_sizes": (16,), "lr": 1e-2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return fitted(**{**settings, **parameters})


# --- collapse where it is predicted ------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:variational EM stopped")
@pytest.mark.parametrize(
    ("K", "alpha", "expected"),
    [
        (3, 1.0, [1.360, 0.782, 0.441, 0.252, 0.0405, 0, 0, 0]),
        (5, 1.0, [2.346, 1.324, 0.731, 0.308, 0.0498, 0, 0, 0]),
        (5, 3.0, [2.059, 0.948, 0.254, 0.049, 0.0013, 0, 0, 0]),
        (3, 0.3, [1.621, 1.025, 0.749, 0.623, 0.543, 0, 0, 0]),
    ],
)
def test_divergence_against_trained_networks(K, alpha, expected):
    """A table from amortised training; at the threshold itself that is unfinished."""
    data = make_convex_mixture(400, 10, K, random_state=0).data
    ratios = (0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5)
    model = DirichletBetaVAE(K, concentration=alpha, random_state=0)
    found = [clone(model).set_params(beta_ratio=r).fit(data).kl_ for r in ratios]
    np.testing.assert_allclose(found, expected, atol=0.01)


@pytest.mark.filterwarnings("ignore:variational EM stopped")
def test_hysteresis_against_reference():
    data = make_convex_mixture(150, 10, 5, random_state=0).data
    model = DirichletBetaVAE(5, concentration=0.3, random_state=0)
    grid = [0.25, 0.5, 0.75, 1, 1.25, 1.4, 1.5, 1.6]
    frame = collapse_path(model, data, grid, direction="both")
    up = frame[frame["direction"] == "up"]
    kl, gap = up["kl"].to_numpy(), up["gap"].to_numpy()
    np.testing.assert_allclose(kl[:6], [3.123, 1.992, 1.460, 1.111, 0.813, 0.595], atol=1.5e-3)
    np.testing.assert_allclose(
        gap[:6], [-6.86, -2.19, -0.896, -0.352, -0.0893, -0.0034], rtol=6e-3, atol=1e-4
    )
    assert kl[6] > 0.2 and gap[6] > 0  # the branch lives on where it is no longer the better state
    assert up["verdict"].tolist() == ["active"] * 4 + ["metastable"] * 3 + ["collapsed"]
    assert frame.attrs["r_global"] == pytest.approx(1.41, abs=0.01)
    down = frame[frame["direction"] == "down"].set_index("ratio")
    assert (down.loc[[1.6, 1.5, 1.4, 1.25], "verdict"] == "collapsed").all()
    np.testing.assert_allclose(down.loc[[0.75, 0.5], "kl"], kl[[2, 1]], atol=1e-3)
    with pytest.raises(ValueError, match="direction"):
        collapse_path(model, data, grid, direction="sideways")
    with pytest.raises(ValueError, match="ratios"):
        collapse_path(model, data, [0.0, 1.0])
    with pytest.raises(ValueError, match="beta"):
        collapse_path(clone(model).set_params(beta=1.0), data, grid)
    with pytest.raises(ValueError, match="decoder"):
        collapse_path(clone(model).set_params(decoder="mlp"), data, grid)


@pytest.mark.parametrize("decoder", ["nonnegative", "box", "archetypal"])
def test_constraints_leave_the_threshold(decoder):
    """Down from the collapsed state, a bounded decoder is active below the threshold alone."""
    model = DirichletBetaVAE(3, decoder=decoder, random_state=0)
    frame = collapse_path(model, X, [0.9, 1.1], direction="down").set_index("ratio")
    assert frame.loc[0.9, "verdict"] == "active" and frame.loc[0.9, "gap"] < 0
    assert frame.loc[1.1, "verdict"] == "collapsed"
    free = collapse_path(DirichletBetaVAE(3, random_state=0), X, [0.9], direction="down")
    if decoder != "archetypal":  # near collapse no bound is touched
        assert frame.loc[0.9, "kl"] == pytest.approx(float(free["kl"].iloc[0]), rel=1e-2)


@settings(max_examples=12, deadline=None)
@given(mixture_arrays(), st.sampled_from([0.3, 1.0, 3.0]), st.sampled_from(["data", "furthest"]))
def test_certificate_of_global_collapse(mixture, alpha, init):
    """At beta >= (diameter / 2)^2 / sigma^2 every fit ends at the collapsed objective."""
    data, K = mixture
    s2 = float(data.var())
    model = DirichletBetaVAE(
        K,
        concentration=alpha,
        noise_variance=s2,
        beta=1.0001 * collapse_threshold(data, K, noise_variance=s2, kind="certificate"),
        init=init,
        max_iter=5000,
        tol=1e-7,
        random_state=0,
    ).fit(data)
    assert model.report_.objective_gap >= -1e-8
    assert model.kl_ < 1e-6
    assert model.collapsed_ and model.report_.verdict == "collapsed"
    assert model.report_.certificate_ratio == pytest.approx(1.0001)


def test_only_the_ratio_matters():
    """Scaling rows or sigma^2 changes nothing at a fixed beta / beta_c."""
    model = fitted(beta_ratio=0.4, noise_variance=0.01)
    for data, s2 in ((X, 0.1), (1000 * X, 1e4), (1e-3 * X + 7, 1e-8)):
        other = DirichletBetaVAE(3, beta_ratio=0.4, noise_variance=s2, random_state=0).fit(data)
        assert other.kl_ == pytest.approx(model.kl_, rel=1e-3)


def test_plateau_beside_the_saddle_is_left():
    """Started 1e-3 from collapse at r = 0.95, the solver doesn't stop at the saddle."""
    mean = X.mean(axis=0)
    start = mean + 1e-3 * (W - W.mean(axis=0))
    escaped = fitted(init=start, beta_ratio=0.95)
    usual = fitted(beta_ratio=0.95)
    assert escaped.kl_ == pytest.approx(usual.kl_, rel=1e-2)
    # Exactly at the saddle nothing moves, at any beta.
    stuck = fitted(init=np.tile(mean, (3, 1)), beta_ratio=0.5)
    assert stuck.collapsed_ and np.isnan(match_endmembers(stuck.components_, W).distance).all()


@pytest.mark.parametrize("decoder", LINEAR)
def test_mixture_is_recovered(decoder):
    model = fitted(decoder=decoder, beta_ratio=0.02)
    assert model.converged_ and model.report_.verdict == "active"
    assert abundance_rmse(model.transform(X), Z) < 0.08
    # Archetypes stay inside the data, which have no pure rows.
    worst = 0.15 if decoder == "archetypal" else 0.05
    assert match_endmembers(model.components_, W).distance.max() < worst
    assert model.report_.r2 > 0.8


# --- the numbers it reports ---------------------------------------------------------------------


def test_learned_noise():
    model = fitted(noise_variance="learned", beta=1.0, max_iter=3000, tol=1e-7)
    assert model.noise_variance_ == pytest.approx(0.05**2, rel=0.3)
    assert model.beta_c_ == pytest.approx(
        collapse_threshold(X, 3, noise_variance="learned"), rel=1e-12
    )
    # At the optimum sigma^2 is the mean expected error.
    error = expected_squared_error(X, model.components_.T, model.predict_concentration(X))
    assert model.noise_variance_ == pytest.approx(error.mean() / 8, rel=1e-3)
    collapsed = fitted(noise_variance="learned", beta_ratio=1.2, max_iter=3000)
    assert collapsed.collapsed_
    assert collapsed.noise_variance_ == pytest.approx(X.var(axis=0).mean(), rel=1e-6)
    assert abs(collapsed.report_.objective_gap) < 1e-6


def test_scores_are_the_objective():
    model = fitted(beta_ratio=0.3)
    g = model.predict_concentration(X)
    error = expected_squared_error(X, model.components_.T, g)
    s2, kl = model.noise_variance_, dirichlet_kl(g, model.concentration_)
    rows = -(error / (2 * s2) + 4 * np.log(2 * np.pi * s2))
    np.testing.assert_allclose(model.elbo(X, beta=2.0, reduce=False), rows - 2 * kl, rtol=1e-9)
    assert model.score(X) == pytest.approx(float(np.mean(rows - kl)))
    assert -model.elbo(X) == pytest.approx(model.loss_curve_[-1], abs=1e-6)
    values = [model.elbo(X, beta=b) for b in (0, 0.5, 1, 4)]
    assert values == sorted(values, reverse=True)
    order = [2, 0, 1]
    model.components_ = model.components_[order]
    assert model.score(X) == pytest.approx(float(np.mean(rows - kl)), abs=1e-8)
    with pytest.raises(ValueError, match="beta"):
        model.elbo(X, beta=-1)


def test_bound_is_below_the_likelihood():
    """The ELBO at beta = 1 against log p(x) by quadrature over the prior, K = 2."""
    data = make_convex_mixture(40, 3, 2, noise=0.2, random_state=0).data
    model = DirichletBetaVAE(2, beta=1.0, noise_variance=0.04, random_state=0).fit(data)
    t = (np.arange(20_000) + 0.5) / 20_000
    means = t[:, None] * model.components_[0] + (1 - t)[:, None] * model.components_[1]
    square = ((data[:, None] - means[None]) ** 2).sum(axis=2)
    log_p = np.log(np.mean(np.exp(-square / 0.08), axis=1)) - 1.5 * np.log(2 * np.pi * 0.04)
    gap = log_p - model.elbo(data, reduce=False)
    assert gap.min() > -1e-6
    assert gap.mean() < 0.2  # and not far below


def test_report_of_training_data_and_of_others():
    model = fitted(beta_ratio=0.3)
    report = model.explain()
    check_explains(model)
    again = model.explain(X)
    assert again.kl_mean == pytest.approx(report.kl_mean, rel=1e-9)
    assert again.objective_gap == pytest.approx(report.objective_gap, rel=1e-9)
    g = model.predict_concentration(X)
    assert report.kl_mean == pytest.approx(float(np.mean(dirichlet_kl(g, 1.0 + 0 * g))))
    assert report.kl_stick.sum() == pytest.approx(report.kl_mean)
    M = model.transform(X)
    np.testing.assert_allclose(report.component_usage, M.max(axis=0))
    activity = np.linalg.eigvalsh(np.cov(M.T, bias=True))[::-1][:2] * 3 * 4
    np.testing.assert_allclose(report.active_directions, activity, rtol=1e-8)
    residual = ((X - model.reconstruct(X)) ** 2).sum() / ((X - X.mean(axis=0)) ** 2).sum()
    assert report.r2 == pytest.approx(1 - residual)
    assert 0 < report.mutual_information < report.kl_mean * 1.05
    assert report.beta_ratio == pytest.approx(0.3)
    np.testing.assert_allclose(report.thresholds, model.collapse_threshold(kind="spectrum"))
    assert report.beta_c == pytest.approx(model.collapse_threshold())
    assert model.collapse_threshold(X) == pytest.approx(report.beta_c)
    frame = report.to_frame()
    assert set(frame["quantity"]) >= {"beta", "thresholds", "kl_stick"}
    for kind in ("thresholds", "kl", "usage"):
        assert report.plot(kind).get_xlabel()
    assert "verdict: active" in str(report)
    with pytest.raises(ValueError, match="features"):
        model.explain(X[:, :3])


def test_verdicts():
    assert fitted(beta_ratio=1.3).report_.verdict == "collapsed"
    assert fitted(beta_ratio=0.1).report_.verdict == "active"
    # One strong and one weak direction: between their thresholds one is active.
    rng = np.random.default_rng(0)
    strong = rng.uniform(-1, 1, size=(300, 2)) * [1.0, 0.2]
    model = DirichletBetaVAE(3, beta_ratio=0.8, noise_variance=0.1, random_state=0).fit(strong)
    assert model.report_.verdict == "partially collapsed"
    assert model.report_.predicted_active == model.n_active_directions_ == 1


def test_mutual_information_against_known_cases():
    model = fitted(beta_ratio=0.2)
    information = model.mutual_information(X)
    assert information == model.mutual_information(X)
    assert 0.5 * model.kl_ < information <= model.kl_ * 1.02
    assert model.mutual_information(X, max_rows=4) <= np.log(4) + 1e-12
    assert fitted(beta_ratio=1.5).mutual_information(X) < 1e-6
    with pytest.raises(ValueError, match="max_rows"):
        model.mutual_information(X, max_rows=0)


# --- the estimator's contract, with two or three components -------------------------------------


@pytest.mark.parametrize("decoder", LINEAR)
def test_codes_and_bounds(decoder):
    model = fitted(decoder=decoder, beta_ratio=0.1)
    check_simplex_code(model, X[:40])
    if decoder == "nonnegative":
        assert model.components_.min() >= 0
    if decoder == "box":
        assert model.components_.min() >= 0 and model.components_.max() <= 1
    if decoder == "archetypal":
        weights = model.archetype_weights_
        assert weights.shape == (3, 200) and weights.nnz < 60
        np.testing.assert_allclose(weights @ X, model.components_, atol=1e-6)
        np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-12)


def test_order_subset_and_single_rows():
    model = fitted()
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_allclose(model.transform(X[order]), model.transform(X)[order], atol=1e-9)
    np.testing.assert_allclose(model.transform(X[:7]), model.transform(X)[:7], atol=1e-9)
    np.testing.assert_array_equal(model.fit_transform(X), model.fit(X).transform(X))
    with pytest.raises(ValueError, match=r"1 sample"):
        DirichletBetaVAE(2).fit(X[:1])
    with pytest.raises(ValueError, match="Reshape your data"):
        model.transform(X[0])
    before = pickle.dumps(model)
    model.transform(X), model.score(X), model.explain(X), model.elbo(X)
    assert pickle.dumps(model) == before


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 1000), st.sampled_from(["linear", "nonnegative", "archetypal"]))
def test_weights_are_repetitions(seed, decoder):
    rng = np.random.default_rng(seed)
    data = make_convex_mixture(60, 5, 3, random_state=seed).data
    weight = rng.integers(0, 4, size=60)
    model = DirichletBetaVAE(
        3, decoder=decoder, beta_ratio=0.3, random_state=0, max_iter=3000, tol=1e-9, init="data"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        weighted = clone(model).fit(data, sample_weight=weight)
        repeated = clone(model).fit(np.repeat(data, weight, axis=0))
    assert weighted.beta_c_ == pytest.approx(repeated.beta_c_, rel=1e-9)
    assert weighted.loss_curve_[-1] == pytest.approx(repeated.loss_curve_[-1], abs=1e-6)
    assert weighted.kl_ == pytest.approx(repeated.kl_, rel=1e-4)
    np.testing.assert_allclose(weighted.components_, repeated.components_, atol=1e-3)


def test_float32_sparse_and_one_feature():
    exact = fitted().transform(X)
    single = fitted(dtype="float32")
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(single.transform(X.astype(np.float32)), exact, atol=1e-3)
    sparse = scipy.sparse.csr_array(np.where(X > 0.4, X, 0))
    model = DirichletBetaVAE(3, random_state=0)
    np.testing.assert_array_equal(
        clone(model).fit(sparse).transform(sparse),
        clone(model).fit(sparse.toarray()).transform(sparse.toarray()),
    )
    with pytest.warns(UserWarning, match="noise_variance='auto'"):
        narrow = clone(model).fit(X[:, :1])
    assert narrow.transform(X[:, :1]).shape == (200, 3)
    assert narrow.report_.thresholds.shape == (1,)
    few = DirichletBetaVAE(4, noise_variance=0.01, random_state=0).fit(X[:3])
    assert np.isfinite(few.transform(X[:3])).all()
    negative = DirichletBetaVAE(3, random_state=0).fit(X - 5)
    np.testing.assert_allclose(negative.components_ + 5, fitted().components_, atol=1e-6)
    constant_column = np.column_stack([X, np.full(200, 3.0)])
    fixed = DirichletBetaVAE(3, noise_variance=0.01, random_state=0).fit(constant_column)
    np.testing.assert_allclose(fixed.components_[:, -1], 3)


@pytest.mark.parametrize("alpha", [1e-160, 1e-12, 1e6, [1e-160, 1, 1e6], [1e-160, 1e-160, 1]])
def test_extreme_concentrations_stay_finite(alpha):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = fitted(concentration=alpha, max_iter=100)
    for values in (model.transform(X), model.components_, model.elbo(X, reduce=False)):
        assert np.isfinite(values).all()
    rows, codes = model.sample(20, random_state=0)
    assert np.isfinite(rows).all()
    np.testing.assert_allclose(codes.sum(axis=1), 1)
    if np.ndim(alpha) == 0 and alpha < 1e-6:
        assert codes.max(axis=1).min() > 1 - 1e-6  # vertices, all of them seen
        assert len(np.unique(codes.argmax(axis=1))) == 3
    assert np.isfinite(model.report_.to_frame()["value"]).all()


@pytest.mark.parametrize("posterior", ["dirichlet", "softmax_normal", "weibull"])
@pytest.mark.parametrize("decoder", ["linear", "logratio"])
@pytest.mark.parametrize("alpha", [1e-160, 1e6])
def test_networks_stay_finite_at_extreme_concentrations(posterior, decoder, alpha):
    parameters = {"posterior": posterior, "decoder": decoder, "concentration": alpha}
    if decoder == "logratio" and alpha < 1 and posterior != "softmax_normal":
        with pytest.raises(ValueError, match="variance overflows"):  # it is 1e320
            quick(**parameters, max_iter=2)
        return
    model = quick(**parameters, max_iter=2)
    rows = model.sample(5, random_state=0)[0]
    for values in (model.transform(X), model.elbo(X, reduce=False), rows, model.loss_curve_):
        assert np.isfinite(values).all()


def test_large_sparse_rows_warn_before_they_are_made_dense():
    from equipoise.estimators.dirichlet_vae.threshold import densify

    class Sparse:
        shape = (20_000, 10_000)

        def toarray(self):
            return np.zeros((1, 1))

    with pytest.warns(UserWarning, match=r"made dense: 1\.6 GB"):
        densify(Sparse())


@pytest.mark.filterwarnings("ignore:variational EM stopped")
def test_beta_zero_and_constant_data():
    model = fitted(beta=0.0, noise_variance=0.01, max_iter=50, tol=1e-3)
    assert np.isfinite(model.loss_curve_).all() and model.beta_ratio_ == 0
    flat = np.full((5, 3), 2.0)
    with pytest.raises(ValueError, match="no variance"):
        DirichletBetaVAE(2, noise_variance=1.0).fit(flat)
    with pytest.raises(ValueError, match="no variance"):
        DirichletBetaVAE(2, beta=1.0).fit(flat)
    still = DirichletBetaVAE(2, beta=1.0, noise_variance=1.0, random_state=0).fit(flat)
    assert still.collapsed_
    np.testing.assert_allclose(still.components_, 2.0, atol=1e-12)


def test_frames_and_names():
    import pandas as pd
    import polars as pl

    names = [f"band{d}" for d in range(8)]
    expected = fitted().transform(X)
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(dict(zip(names, X.T, strict=True)))):
        model = DirichletBetaVAE(3, random_state=0).fit(frame)
        assert model.feature_names_in_.tolist() == names
        np.testing.assert_allclose(np.asarray(model.transform(frame)), expected, atol=1e-12)
    model.set_output(transform="pandas")
    assert list(model.transform(frame).columns) == [f"dirichletbetavae{k}" for k in range(3)]


def test_pipeline_and_grid_search():
    pipeline = make_pipeline(
        StandardScaler(), DirichletBetaVAE(3, noise_variance=0.1, random_state=0)
    )
    search = GridSearchCV(pipeline, {"dirichletbetavae__beta_ratio": [0.05, 0.3, 2.0]}, cv=3)
    search.fit(X)
    # The threshold is that of the scaled rows the loss sees.
    inner = search.best_estimator_[-1]
    scaled = search.best_estimator_[0].transform(X)
    assert inner.beta_c_ == pytest.approx(collapse_threshold(scaled, 3, noise_variance=0.1))
    assert search.best_params_["dirichletbetavae__beta_ratio"] < 1
    boxed = make_pipeline(MinMaxScaler(), DirichletBetaVAE(3, decoder="box", random_state=0))
    assert boxed.fit_transform(X).shape == (200, 3)


def test_brightness_cancels_in_normalised_rows():
    """x = s W z over its sum is a mixture of w / |w|_1 with proportions z |w|_1, normalised."""
    pure = make_convex_mixture(150, 8, 3, noise=0.01, pure_fraction=0.2, random_state=0)
    rows = np.abs(pure.data)
    bright = rows * np.random.default_rng(0).uniform(0.3, 3, size=(150, 1))
    pipeline = make_pipeline(
        Normalizer("l1"), DirichletBetaVAE(3, beta_ratio=0.01, init="vca", random_state=0)
    )
    codes = pipeline.fit_transform(bright)
    np.testing.assert_allclose(codes, clone(pipeline).fit_transform(rows), atol=1e-6)
    share = pure.weights * pure.components.sum(axis=1)
    assert abundance_rmse(codes, share / share.sum(axis=1, keepdims=True)) < 0.06


@pytest.mark.slow
def test_restarts_on_processes():
    threads = fitted(concentration=0.3, n_init=2, max_iter=40, tol=1e-3)
    with joblib.parallel_config("loky", n_jobs=2):
        processes = fitted(concentration=0.3, n_init=2, n_jobs=2, max_iter=40, tol=1e-3)
    np.testing.assert_array_equal(threads.components_, processes.components_)


def test_decoding_and_sampling():
    model = fitted()
    np.testing.assert_allclose(model.inverse_transform(np.eye(3)), model.components_)
    np.testing.assert_allclose(
        model.reconstruct(X), model.inverse_transform(model.transform(X)), atol=1e-12
    )
    rows, codes = model.sample(30_000, random_state=0)
    # Moments of the prior, to four standard errors.
    np.testing.assert_allclose(codes.mean(axis=0), 1 / 3, atol=4 * np.sqrt(1 / 18 / 30_000))
    noise = rows - codes @ model.components_
    assert noise.var() == pytest.approx(model.noise_variance_, rel=0.02)
    path, line = model.latent_traversal(1, n_steps=5)
    np.testing.assert_allclose(line[0], 1 / 3)
    np.testing.assert_allclose(path[-1], model.components_[1])
    with pytest.raises(ValueError, match="simplex"):
        model.inverse_transform([[0.5, 0.5, 0.1]])
    with pytest.raises(ValueError, match="columns"):
        model.inverse_transform([[0.5, 0.5]])
    with pytest.raises(ValueError, match="component"):
        model.latent_traversal(3)
    with pytest.raises(ValueError, match="n_samples"):
        model.sample(0)


def test_warm_start_and_restarts():
    model = fitted(beta_ratio=0.3)
    warm = clone(model).set_params(warm_start=True).fit(X)
    first = warm.n_iter_
    assert warm.fit(X).n_iter_ < first / 2
    with pytest.raises(ValueError, match="n_components"):
        warm.set_params(n_components=4).fit(X)
    best = fitted(concentration=0.3, n_init=6)
    threads = fitted(concentration=0.3, n_init=6, n_jobs=2)
    assert best.loss_curve_ == threads.loss_curve_
    assert best.loss_curve_[-1] <= fitted(concentration=0.3).loss_curve_[-1] + 1e-9


# --- networks -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"decoder": "box"},
        {"decoder": "archetypal"},
        {"decoder": "logratio"},
        {"decoder": "mlp", "n_mc": 2},
        {"decoder": "mlp", "sampler": "gamma_icdf"},
        {"encoder": "linear"},
        {"objective": "sampled"},
        {"noise_variance": "learned"},
        {"concentration": [0.5, 1.0, 2.0], "beta_warmup": 0.5, "early_stopping": True},
    ],
)
def test_networks_learn(parameters):
    model = quick(**parameters, max_iter=40)
    assert model.solver_ == "adam" and model.n_iter_ <= 40
    assert model.loss_curve_[-1] < model.loss_curve_[0]
    check_simplex_code(model, X[:10])
    assert np.isfinite(model.elbo(X, reduce=False)).all()
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(twin.transform(X), model.transform(X))
    np.testing.assert_array_equal(quick(**parameters, max_iter=40).transform(X), model.transform(X))
    if parameters.get("decoder") == "archetypal":
        np.testing.assert_allclose(model.archetype_weights_ @ X, model.components_, atol=1e-6)
    if not {"objective", "early_stopping"} & set(parameters) and parameters.get("decoder") != "mlp":
        # The reported loss is the objective of the last epoch: near that of the final model.
        assert -model.elbo(X) == pytest.approx(model.loss_curve_[-1], rel=0.05, abs=1.0)


def test_network_reaches_variational_optimum():
    """An amortised fit can't beat per-row posteriors, and comes near them."""
    exact = fitted(beta_ratio=0.3)
    settings = {"solver": "adam", "max_iter": 250, "lr": 1e-2, "batch_size": 100}
    model = fitted(beta_ratio=0.3, init=exact.components_, **settings)
    assert -model.elbo(X) >= exact.loss_curve_[-1] - 1e-6
    assert model.explain().objective_gap == pytest.approx(exact.explain().objective_gap, rel=0.1)
    assert fitted(beta_ratio=2.5, **settings).kl_ < 0.01


def test_restarts_of_networks():
    runs = quick(n_init=3, concentration=0.3, max_iter=8)
    one = quick(concentration=0.3, max_iter=8)
    assert runs.loss_curve_[-1] < one.loss_curve_[-1]


def test_warming_up_leaves_held_out_rows_alone():
    """Early stopping compares epochs at the whole beta, else it would keep the first ones."""
    import torch

    model = quick(beta=3.0, beta_warmup=1.0, early_stopping=True, max_iter=20, n_iter_no_change=20)
    net = model.net_
    module, Y = net.module_, torch.as_tensor((X - model.mean_) / X.std(axis=0).mean())
    error, kl = module(Y)
    module.warmth = 0.25
    weight = torch.ones(len(Y))
    judged = module.loss(error, kl, weight, 8)
    module.train()
    warming = module.loss(error, kl, weight, 8)
    assert float((judged - warming).detach()) == pytest.approx(0.75 * 3 * float(kl.detach().mean()))
    valid = net.history[:, "valid_loss"]
    assert valid[-1] < valid[0]


def test_learned_noise_keeps_above_its_floor():
    model = quick(noise_variance="learned")
    module = model.net_.module_
    module.log_noise.data.fill_(-100.0)
    module.project()
    assert float(module.log_noise.detach().exp()) == pytest.approx(1e-6)


def test_logratio_decoder_has_the_flexible_threshold():
    model = quick(decoder="logratio", beta_ratio=0.9, noise_variance=0.01)
    flexible = collapse_threshold(X, 3, noise_variance=0.01, kind="flexible")
    assert model.beta_c_ == pytest.approx(flexible)
    # Active between the linear decoder's threshold and its own; collapsed above.
    settings = {"max_iter": 250, "batch_size": 200, "encoder": "linear", "solver": "adam"}
    settings |= {"decoder": "logratio", "lr": 1e-2, "concentration": 3.0}
    assert not fitted(beta_ratio=0.7, **settings).collapsed_
    assert fitted(beta_ratio=1.4, **settings).collapsed_


def test_own_modules():
    import torch
    from torch import nn

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.map = nn.Linear(8, 3)

        def forward(self, x):
            return 0.1 * self.map(x)

    encoder, decoder = Encoder(), nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5))
    before = [p.clone() for p in encoder.parameters()]
    model = quick(encoder=encoder, decoder=decoder, max_iter=3)
    assert all(torch.equal(p, q) for p, q in zip(encoder.parameters(), before, strict=True))
    assert not hasattr(model, "components_")
    decoded = model.inverse_transform(np.eye(3))
    assert decoded.shape == (3, 8)
    np.testing.assert_array_equal(decoded, model.inverse_transform(np.eye(3)))  # no dropout
    with pytest.raises(ValueError, match="encoder returns shape"):
        quick(encoder=nn.Linear(8, 5))
    with pytest.raises(ValueError, match="decoder returns shape"):
        quick(decoder=nn.Linear(3, 5))
    with pytest.warns(UserWarning, match="threshold of a linear decoder"):
        fitted(decoder="mlp", max_iter=1)


def test_network_terms_against_numpy():
    import torch

    from equipoise.estimators.dirichlet_vae.networks import LogRatioDecoder
    from equipoise.estimators.dirichlet_vae.posteriors import DirichletPosterior, sample_codes

    rng = np.random.default_rng(0)
    log_g, V, Y = rng.standard_normal((6, 3)), rng.standard_normal((8, 3)), X[:6]
    a = np.array([0.3, 1.0, 2.0])
    to = torch.as_tensor
    law = DirichletPosterior(a)
    kl = law.divergence(to(log_g)).numpy()
    np.testing.assert_allclose(kl, dirichlet_kl(np.exp(log_g), a), rtol=1e-9)
    error = law.linear_squared_error(to(Y), to(V), to(log_g)).numpy()
    np.testing.assert_allclose(error, expected_squared_error(Y, V, np.exp(log_g)), rtol=1e-10)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        draws = sample_codes(to(log_g), 100_000, "implicit")
        decoder = LogRatioDecoder(to(V), torch.zeros(3).double())
        moments = law.log_moments(to(log_g))
        exact = decoder.expected_squared_error(to(Y), *moments).detach().numpy()
        squares = ((to(Y) - decoder(draws)) ** 2).sum(dim=2).detach().numpy()
    bound = 5 * squares.std(axis=0) / np.sqrt(100_000)
    assert (np.abs(squares.mean(axis=0) - exact) < bound).all()
    m = np.exp(log_g) / np.exp(log_g).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(draws.mean(dim=0).numpy(), m, atol=0.01)


@pytest.mark.parametrize("sampler", ["implicit", "gamma_icdf"])
def test_tiny_concentrations_keep_gradients_finite(sampler):
    """Other samplers return NaN gradients, or the uniform point, for such concentrations."""
    import torch

    from equipoise.estimators.dirichlet_vae.posteriors import dirichlet_divergence, sample_codes

    for level in (1e-160, 1e-3):
        log_g = torch.full((4, 3), float(np.log(level)), dtype=torch.float64, requires_grad=True)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            codes = sample_codes(log_g, 50, sampler)
        assert codes.max(dim=2).values.mean() > 0.95
        log_a = torch.zeros(3, dtype=torch.float64)
        (codes.square().sum() + dirichlet_divergence(log_g, log_a - 368).sum()).backward()
        assert torch.isfinite(log_g.grad).all()


def test_streaming():
    model = DirichletBetaVAE(3, solver="adam", batch_size=50, random_state=0, lr=1e-2)
    for _ in range(15):
        model.partial_fit(X)
    assert model.n_iter_ == 15
    first = DirichletBetaVAE(3, solver="adam", batch_size=50, random_state=0, lr=1e-2)
    assert model.loss_curve_[-1] < first.partial_fit(X).loss_curve_[0]
    assert model.beta_c_ == first.beta_c_
    assert model.partial_fit(X[:1]).n_iter_ == 16
    model.set_params(concentration=0.3).partial_fit(X)  # the net's prior stays
    np.testing.assert_array_equal(model.concentration_, 1.0)
    assert model.rho_ == first.rho_
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :3])
    assert not hasattr(DirichletBetaVAE(solver="vem"), "partial_fit")
    with pytest.raises(ValueError, match="archetypal"):
        DirichletBetaVAE(3, decoder="archetypal").partial_fit(X)


def test_callbacks_and_solver_choice():
    from skorch.callbacks import Callback

    class Count(Callback):
        def on_epoch_end(self, net, **kwargs):
            net.counted_ = getattr(net, "counted_", 0) + 1

    model = fitted(callbacks=[Count()], max_iter=4)  # "auto" sees that this needs a network
    assert model.solver_ == "adam" and model.net_.counted_ == 4
    assert fitted().solver_ == "vem" and not hasattr(fitted(), "net_")
    back = clone(model).set_params(callbacks=None, max_iter=500).fit(X)
    assert back.solver_ == "vem"


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"n_components": 1}, "n_components"),
        ({"concentration": 0.0}, "concentration"),
        ({"concentration": [1.0, 1.0]}, "concentration"),
        ({"concentration": [1.0, -1.0, 1.0]}, "concentration"),
        ({"beta": -1.0}, "beta"),
        ({"beta_ratio": 0.0}, "beta_ratio"),
        ({"noise_variance": 0.0}, "noise_variance"),
        ({"decoder": "convolutional"}, "decoder"),
        ({"encoder": 3}, "encoder"),
        ({"posterior": "gaussian"}, "posterior"),
        ({"solver": "vem", "encoder": "mlp"}, "solver='vem'"),
        ({"solver": "vem", "decoder": "mlp"}, "solver='vem'"),
        ({"solver": "vem", "early_stopping": True}, "early_stopping"),
        ({"solver": "adam", "encoder": "none"}, "encoder='none'"),
        ({"objective": "analytic", "decoder": "mlp"}, "objective='analytic'"),
        ({"init": np.ones((2, 8))}, "init"),
        ({"init": np.full((3, 8), np.nan)}, "init"),
        ({"solver": "adam", "device": "quantum"}, "device"),
    ],
)
def test_parameters_are_refused(parameters, words):
    model = fitted()
    before = {k: v for k, v in vars(model).items() if k.endswith("_")}
    with pytest.raises(ValueError, match=words):
        model.set_params(**parameters).fit(X)
    assert {k: v for k, v in vars(model).items() if k.endswith("_")} == before or all(
        vars(model)[k] is v for k, v in before.items()
    )


@pytest.mark.parametrize(
    ("data", "parameters", "words"),
    [
        (X - 5, {"decoder": "nonnegative"}, "mean"),
        (X * 10, {"decoder": "box"}, "mean"),
        (X[:2], {"decoder": "archetypal"}, "rows"),
        (np.where(X == X[0, 0], np.inf, X), {}, "infinity"),
    ],
)
def test_data_are_refused(data, parameters, words):
    with pytest.raises(ValueError, match=words):
        DirichletBetaVAE(3, noise_variance=0.1, **parameters).fit(data)


@pytest.mark.parametrize("weight", [np.zeros(200), -np.ones(200), np.full(200, np.nan), np.ones(3)])
def test_weights_are_refused(weight):
    with pytest.raises(ValueError, match=r"(?i)sample.?weight"):
        fitted().fit(X, sample_weight=weight)


def test_unfitted_and_unfinished():
    for method in ("transform", "score", "predict_concentration", "reconstruct"):
        with pytest.raises(NotFittedError):
            getattr(DirichletBetaVAE(), method)(X)
    with pytest.raises(NotFittedError):
        DirichletBetaVAE().collapse_threshold()
    with pytest.raises(ValueError, match="kind"):
        DirichletBetaVAE().collapse_threshold(X, kind="global")
    with pytest.raises(ValueError, match="sample_weight"):
        fitted().collapse_threshold(sample_weight=np.ones(200))
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        fitted(max_iter=2)
    with pytest.warns(UserWarning, match="floor"):
        fitted().fit(make_convex_mixture(50, 6, 3, noise=0, random_state=0).data)


def test_pictures():
    model = fitted()
    codes = model.transform(X)
    frame = collapse_path(DirichletBetaVAE(3, random_state=0), X, [0.5, 1.5], direction="both")
    ax = plot_collapse_path(frame)
    assert len(ax.lines) == 3
    assert len(plot_abundance_maps(codes, (10, 20))) == 3
    assert len(plot_endmembers(model.components_, true=W, bands=np.arange(8)).lines) == 6
    assert len(plot_simplex(codes, c=codes).collections) == 1
    for call in (
        lambda: plot_abundance_maps(codes, (7, 7)),
        lambda: plot_abundance_maps(codes, (10, 20), names=["a"]),
        lambda: plot_endmembers(W, true=W[:2]),
        lambda: plot_simplex(codes[:, :2]),
        lambda: plot_collapse_path(frame.drop(columns="kl")),
    ):
        with pytest.raises(ValueError, match=r"allowed|collapse_path"):
            call()
