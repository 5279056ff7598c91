"""The estimators that learn by projections: state, weights, limits, and what they say."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits, make_friedman1, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equipoise.estimators import (
    ProjectionMLPClassifier,
    ProjectionMLPRegressor,
    ProjectionOptimizer,
    ProjLinear,
    ProjQuantize,
    ProjReLU,
)
from equipoise.estimators.projection.fitting import split_rows
from equipoise.estimators.projection.optimizer import DEFAULT_LR


def moons(n=120):
    X, y = make_moons(n, noise=0.1, random_state=0)
    return X, np.array(["left", "right"])[y]


def small(**options):
    return ProjectionMLPClassifier((8,), max_epochs=3, random_state=0, **options)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X / 16, y, test_size=0.3, stratify=y, random_state=0)


def test_digits_as_well_as_adam_with_gradients(digits):
    """Measured .976 to .983 over seeds; the same network with gradients and Adam: .970."""
    X, X_test, y, y_test = digits
    model = ProjectionMLPClassifier((128,), max_epochs=12, random_state=0).fit(X, y)
    assert model.score(X_test, y_test) > 0.95
    assert model.loss_curve_[-1] < 0.1 * model.loss_curve_[0]
    assert model.n_iter_ == 12
    assert model.t_ == 12 * len(X)


@pytest.mark.parametrize(
    "options",
    [
        {"loss": "squared"},
        {"loss": "hinge"},
        {"loss": "margin"},
        {"solver": "one_step"},
        {"reduction": "sum"},
        {"alpha": "auto"},
        {"alpha": 10.0, "gamma": 2.0, "lam": 0.5},
        {"optimizer": "adam", "lr": 0.01},
        {"optimizer": "sgd"},
        {"activation": "leaky_relu"},
        {"activation": "hardtanh"},
        {"activation": "sign"},
        {"activation": "step"},
        {"activation": "quantize"},
        {"activation": ProjQuantize(9)},
        {"norm": "linf"},
        {"dtype": "float64"},
        {"activation_weight": 5.0},
        {"hidden_layer_sizes": ()},
        {"hidden_layer_sizes": 16},
        {"standardize": False},
    ],
    ids=str,
)
def test_every_option_learns_and_matters(options):
    X, y = moons()
    base = {"hidden_layer_sizes": (16,), "max_epochs": 20, "batch_size": 16, "random_state": 0}
    model = ProjectionMLPClassifier(**{**base, **options}).fit(X, y)
    assert model.score(X, y) > 0.8
    plain = ProjectionMLPClassifier(**base).fit(X, y)
    same = "hidden_layer_sizes" in options and options["hidden_layer_sizes"] == 16
    difference = np.abs(model.decision_function(X) - plain.decision_function(X)).max()
    assert (difference == 0) == same


@pytest.mark.parametrize("loss", ["squared", "absolute", "huber"])
def test_regression_in_the_units_of_the_targets(loss):
    X, y = make_friedman1(250, noise=0.5, random_state=0)
    model = ProjectionMLPRegressor((32,), loss=loss, random_state=0).fit(
        X[:200], 1000 * y[:200] - 7
    )
    assert model.score(X[200:], 1000 * y[200:] - 7) > 0.7
    assert model.y_mean_[0] == pytest.approx(np.mean(1000 * y[:200] - 7))


def test_many_outputs():
    X, y = make_friedman1(200, random_state=0)
    Y = np.column_stack([y, -3 * X[:, 0], np.full(len(y), 5.0)])
    model = ProjectionMLPRegressor((32,), random_state=0).fit(X, Y)
    predicted = model.predict(X)
    assert predicted.shape == Y.shape
    assert np.corrcoef(predicted[:, 0], y)[0, 1] > 0.9
    assert np.corrcoef(predicted[:, 1], Y[:, 1])[0, 1] > 0.95
    np.testing.assert_allclose(predicted[:, 2], 5, atol=0.5)
    assert ProjectionMLPRegressor((4,), max_epochs=1).fit(X, y[:, None]).predict(X).shape == (
        200,
        1,
    )


# Weights


def full_batch(cls, **options):
    """One batch and float64: repeated rows and integer weights then differ by rounding only."""
    return cls((6,), batch_size=10_000, max_epochs=5, dtype="float64", random_state=0, **options)


@pytest.mark.parametrize("optimizer", ["muon", "adam", "sgd"])
@pytest.mark.parametrize("cls", [ProjectionMLPClassifier, ProjectionMLPRegressor])
def test_weights_are_removal_and_repetition(cls, optimizer):
    X, y = moons(40)
    y = y if cls is ProjectionMLPClassifier else X[:, 0] ** 2
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    rows = np.repeat(np.arange(len(X)), weight)
    weighted = full_batch(cls, optimizer=optimizer).fit(X, y, sample_weight=weight)
    repeated = full_batch(cls, optimizer=optimizer).fit(X[rows], y[rows])
    name = "decision_function" if cls is ProjectionMLPClassifier else "predict"
    np.testing.assert_allclose(getattr(weighted, name)(X), getattr(repeated, name)(X), atol=1e-8)
    np.testing.assert_allclose(weighted.loss_curve_, repeated.loss_curve_, atol=1e-10)
    plain = full_batch(cls, optimizer=optimizer).fit(X, y)
    assert np.abs(getattr(weighted, name)(X) - getattr(plain, name)(X)).max() > 1e-3


def test_rows_of_weight_zero_are_as_good_as_gone():
    """Also in small batches: they are dropped before rows are shuffled."""
    X, y = moons()
    weight = np.ones(len(X))
    weight[::3] = 0
    weighted = small().fit(X, y, sample_weight=weight)
    removed = small().fit(X[weight > 0], y[weight > 0])
    assert np.array_equal(weighted.decision_function(X), removed.decision_function(X))


# Going on


def test_partial_fit_is_fit_epoch_by_epoch():
    X, y = moons()
    whole = small().fit(X, y)
    parts = small()
    for _ in range(3):
        parts.partial_fit(X, y, classes=["left", "right"])
    assert np.array_equal(whole.decision_function(X), parts.decision_function(X))
    assert parts.loss_curve_ == whole.loss_curve_
    assert parts.signal_curve_.shape == (3, 2)
    assert parts.t_ == whole.t_


def test_partial_fit_takes_new_parameters_and_refuses_other_classes():
    X, y = moons()
    model = small().partial_fit(X[:40], np.repeat("left", 40), classes=["left", "right"])
    twin = copy.deepcopy(model)
    model.set_params(lr=1e-9).partial_fit(X, y)
    twin.partial_fit(X, y)
    assert np.abs(model.decision_function(X) - twin.decision_function(X)).max() > 1e-4
    with pytest.raises(ValueError, match="differ from those of earlier calls"):
        model.partial_fit(X, y, classes=["left", "middle"])
    with pytest.raises(ValueError, match="middle"):
        model.partial_fit(X, np.repeat("middle", len(X)))
    with pytest.raises(ValueError, match="early_stopping=True is not available"):
        small(early_stopping=True).partial_fit(X, y)
    regressor = ProjectionMLPRegressor((4,), max_epochs=1).partial_fit(X, X[:, 0])
    with pytest.raises(ValueError, match="2 outputs"):
        regressor.partial_fit(X, X)


def test_warm_start_continues_from_the_weights():
    X, y = moons()
    model = small(warm_start=True).fit(X, y)
    first, losses = copy.deepcopy(model), list(model.loss_curve_)
    model.set_params(lr=1e-12).fit(X, y)
    # Next to nothing moved; a cold start would begin anew.
    np.testing.assert_allclose(model.decision_function(X), first.decision_function(X), atol=1e-5)
    assert model.loss_curve_[:3] == losses
    assert model.n_iter_ == 6
    with pytest.raises(ValueError, match="hidden_layer_sizes"):
        model.set_params(hidden_layer_sizes=(9,)).fit(X, y)
    cold = small().fit(X, y).fit(X, y)
    assert cold.n_iter_ == 3
    assert np.array_equal(cold.decision_function(X), first.decision_function(X))


# Early stopping and divergence


def test_early_stopping_keeps_the_best_epoch():
    X, y = moons(200)
    model = ProjectionMLPClassifier(
        (32,), max_epochs=60, early_stopping=True, n_iter_no_change=3, lr=0.05, random_state=0
    ).fit(X, y)
    scores = model.validation_scores_
    assert model.n_iter_ == len(scores) < 60
    assert max(scores[-3:]) <= max(scores) + 1e-4
    # The rows kept apart, found again: the weights are those of the best epoch.
    _, split_seed = np.random.RandomState(0).randint(2**31 - 1, size=2)
    labels = np.searchsorted(model.classes_, y)
    _, held = split_rows(len(X), 0.1, labels, int(split_seed))
    assert model.score(X[held], y[held]) == pytest.approx(max(scores))
    with pytest.raises(ValueError, match="at least 2 samples"):
        ProjectionMLPRegressor(early_stopping=True).fit(X[:1], [1.0])
    assert (
        ProjectionMLPRegressor((4,), early_stopping=True, random_state=0)
        .fit(X, X[:, 0])
        .validation_scores_
    )  # no classes to stratify by


def test_divergence_stops_warns_and_keeps_finite_weights():
    X, y = moons()
    model = ProjectionMLPClassifier(
        (8, 8), loss="squared", lr=1e30, max_epochs=5, batch_size=8, random_state=0
    )
    with pytest.warns(ConvergenceWarning, match="left the finite range in epoch 1"):
        model.fit(X, y)
    assert model.loss_curve_ == []
    assert model.signal_curve_.shape == (0, 3)
    assert np.isfinite(model.predict_proba(X)).all()
    assert "diverged" in str(model.explain())
    # The initial weights: what a run with nearly no learning rate ends with.
    still = clone(model).set_params(lr=1e-12, max_epochs=1).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), still.decision_function(X), atol=1e-6)


def test_divergence_later_keeps_the_last_finite_epoch():
    X, y = moons()

    def bomb(groups, lr):
        optimizer = torch.optim.SGD(groups, lr)
        optimizer.register_step_pre_hook(count)
        return optimizer

    steps = []

    def count(optimizer, args, kwargs):
        steps.append(1)
        if len(steps) > 20:  # in the third epoch of eight steps
            optimizer.param_groups[0]["lr"] = float("inf")

    model = ProjectionMLPClassifier(
        (8,), optimizer=bomb, lr=1.0, max_epochs=5, batch_size=16, random_state=0
    )
    with pytest.warns(ConvergenceWarning, match="in epoch 3; .* after 2 epochs"):
        model.fit(X, y)
    assert model.n_iter_ == len(model.loss_curve_) == 2
    two = ProjectionMLPClassifier(
        (8,), optimizer="sgd", lr=1.0, max_epochs=2, batch_size=16, random_state=0
    ).fit(X, y)
    assert np.array_equal(model.decision_function(X), two.decision_function(X))


def test_two_hidden_layers_learn_digits(digits):
    """Measured .966 after 5 epochs."""
    X, X_test, y, y_test = digits
    model = ProjectionMLPClassifier((128, 128), max_epochs=5, random_state=0).fit(X, y)
    assert model.score(X_test, y_test) > 0.92


def test_a_failed_fit_leaves_the_model_as_it_was():
    X, y = moons()
    model = small().fit(X, y)
    before = model.decision_function(X)

    def broken(groups, lr):
        raise RuntimeError("no optimiser")

    with pytest.raises(RuntimeError, match="no optimiser"):
        model.set_params(optimizer=broken, lr=1.0).fit(X, y)
    assert np.array_equal(model.decision_function(X), before)


# State


def test_repeatable_picklable_and_clonable():
    X, y = moons()
    model = small().fit(X, y)
    again = clone(model).fit(X, y)
    assert np.array_equal(model.decision_function(X), again.decision_function(X))
    other = clone(model).set_params(random_state=1).fit(X, y)
    assert not np.array_equal(model.decision_function(X), other.decision_function(X))
    loaded = pickle.loads(pickle.dumps(model))
    assert np.array_equal(model.decision_function(X), loaded.decision_function(X))
    model.partial_fit(X, y)
    loaded.partial_fit(X, y)  # the optimiser's state came along
    assert np.array_equal(model.decision_function(X), loaded.decision_function(X))
    state = torch.random.get_rng_state()
    clone(model).fit(X, y)
    assert torch.equal(state, torch.random.get_rng_state())


def test_fitted_attributes():
    X, y = moons()
    model = small().fit(X, y)
    assert isinstance(model.optimizer_, ProjectionOptimizer)
    kinds = [type(m) for m in model.module_.network]
    assert kinds == [ProjLinear, ProjReLU, ProjLinear]
    with torch.no_grad():
        direct = model.module_(torch.as_tensor(X, dtype=torch.float32)).numpy()
    assert np.array_equal(
        model.decision_function(X), (direct[:, 1] - direct[:, 0]).astype(float)
    ) or (np.abs(model.decision_function(X) - (direct[:, 1] - direct[:, 0])).max() < 1e-6)
    assert not model.module_._forward_pre_hooks  # the monitor is gone
    np.testing.assert_allclose(model.signal_bound_, [1 / np.sqrt(2), 1.0])
    assert (model.signal_curve_[:, 0] < model.signal_curve_[:, 1]).all()


def test_balanced_weights_let_narrow_layers_learn():
    """The same net with alpha = 1 gets 0.72 here, and 0.98 with one layer of 64."""
    X, y = make_moons(400, noise=0.15, random_state=0)
    model = ProjectionMLPClassifier((16, 16), alpha="auto", max_epochs=80, random_state=0)
    assert model.fit(X, y).score(X, y) > 0.94


def test_explanation_names_the_signal_of_each_layer(digits):
    X, _, y, _ = digits
    report = ProjectionMLPClassifier((16,) * 5, max_epochs=2, random_state=0).fit(X, y).explain()
    frame = report.to_frame()
    assert frame["layer"].tolist() == [1, 2, 3, 4, 5, 6]
    assert (frame["share"] <= frame["bound"] * (1 + 1e-6)).all()
    assert frame["share"].is_monotonic_increasing
    assert "hardly learned" in str(report)  # six layers fade in the mean
    summed = ProjectionMLPClassifier((16,) * 5, max_epochs=2, reduction="sum", random_state=0).fit(
        X, y
    )
    assert summed.explain().to_frame()["share"][0] > 100 * frame["share"][0]


def test_default_learning_rates():
    from equipoise.estimators.projection.fitting import learning_rate

    assert [learning_rate(small(optimizer=name), 100) for name in ("muon", "adam", "sgd")] == [
        DEFAULT_LR[name] for name in ("muon", "adam", "sgd")
    ]
    assert learning_rate(small(), 50_000) == 5e-3
    assert learning_rate(small(optimizer="adam"), 50_000) == 1e-3


def test_in_a_pipeline_and_a_grid_search(digits):
    X, X_test, y, y_test = digits
    pipeline = make_pipeline(StandardScaler(), ProjectionMLPClassifier((32,), random_state=0))
    grid = {
        "projectionmlpclassifier__max_epochs": [1, 15],
        "projectionmlpclassifier__optimizer": ["muon", "adam"],
    }
    search = GridSearchCV(pipeline, grid, cv=3).fit(X[:300], y[:300])
    assert search.best_params_["projectionmlpclassifier__max_epochs"] == 15
    assert search.score(X_test, y_test) > 0.8


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"alpha": 0}, "alpha"),
        ({"alpha": -1.0}, "alpha"),
        ({"gamma": 0}, "gamma"),
        ({"lam": 0}, "lam"),
        ({"lr": 0}, "lr"),
        ({"lr": -1}, "lr"),
        ({"norm": "l1"}, "norm"),
        ({"loss": "log"}, "loss"),
        ({"optimizer": "lbfgs"}, "optimizer"),
        ({"optimizer": torch.optim.SGD}, "lr=None"),
        ({"activation": "tanh"}, "activation"),
        ({"hidden_layer_sizes": (0,)}, "hidden_layer_sizes"),
        ({"hidden_layer_sizes": (2.5,)}, "hidden_layer_sizes"),
        ({"norm": "linf", "alpha": 2.0}, "norm='linf'"),
        ({"norm": "linf", "solver": "one_step"}, "norm='linf'"),
        ({"dtype": "float16"}, "dtype"),
        ({"device": "nowhere"}, "device"),
        ({"validation_fraction": 1.0}, "validation_fraction"),
        ({"batch_size": 0}, "batch_size"),
    ],
)
def test_bad_parameters_are_named(options, words):
    X, y = moons()
    with pytest.raises(ValueError, match=words):
        ProjectionMLPClassifier(**options).fit(X, y)


def test_bad_data_are_named():
    X, y = moons()
    with pytest.raises(ValueError, match="one class"):
        small().fit(X, np.repeat("left", len(X)))
    with pytest.raises(ValueError, match="NaN"):
        small().fit(np.where(X > 1.5, np.nan, X), y)
    with pytest.raises(ValueError, match="non-zero"):
        small().fit(X, y, sample_weight=np.zeros(len(X)))
    with pytest.raises(ValueError, match="egative"):
        small().fit(X, y, sample_weight=-np.ones(len(X)))
    with pytest.raises(ValueError, match="continuous"):
        small().fit(X, X[:, 0])
    whole = small().fit(X, (y == "left").astype(float))  # labels as floats
    assert set(whole.predict(X)) <= {0.0, 1.0}


def test_no_warning_in_an_ordinary_fit():
    X, y = moons()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small(verbose=0).fit(X, y).predict(X)


def test_progress_bar(capsys):
    X, y = moons()
    small(verbose=1).fit(X, y)
    assert "3/3" in capsys.readouterr().err
