"""SoftLabelClassifier: targets, both training paths, calibration, scikit-learn's tooling."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.sparse import csr_array, csr_matrix
from scipy.special import log_softmax, softmax
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, SGDClassifier
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from skorch import NeuralNet, NeuralNetBinaryClassifier, NeuralNetClassifier
from skorch.callbacks import EpochScoring
from torch import nn

from equipoise.estimators import (
    SoftLabelClassifier,
    SoftLabelMLP,
    SoftStratifiedKFold,
    SoftTargetLoss,
    get_soft_scorer,
)
from equipoise.estimators.soft_labels.networks import drawn_votes
from equipoise.explainers import kl_to_humans, soft_cross_entropy

X6 = np.array([[0, 0], [1, 0], [0, 1], [1, 1], [2, 1], [1, 2]], dtype=float)
P6 = np.array(
    [
        [0.9, 0.1, 0],
        [0.6, 0.3, 0.1],
        [0.5, 0.25, 0.25],
        [0.1, 0.8, 0.1],
        [0, 0.9, 0.1],
        [0.1, 0.2, 0.7],
    ]
)


def problem(n: int = 60, K: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, votes from a known posterior, and one vote as the hard label."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    P = softmax(2 * X @ rng.normal(size=(4, K)), axis=1)
    counts = rng.multinomial(10, P)
    y = counts.argmax(axis=1)
    y[:K] = np.arange(K)
    return X, counts, y


def logistic(**parameters: object) -> LogisticRegression:
    """Converged, so that equal objectives have equal solutions."""
    return LogisticRegression(**{"tol": 1e-12, "max_iter": 5000, **parameters})


def direct_logistic(X: np.ndarray, P: np.ndarray, w: np.ndarray, C: float = 1.0) -> np.ndarray:
    """Probabilities of the soft logistic regression, minimised directly."""
    D, K = X.shape[1], P.shape[1]

    def objective(theta: np.ndarray) -> float:
        W = theta.reshape(D + 1, K)
        log_f = log_softmax(X @ W[:D] + W[D], axis=1)
        return -C * float(w @ (P * log_f).sum(axis=1)) + 0.5 * float((W[:D] ** 2).sum())

    found = minimize(objective, np.zeros((D + 1) * K), method="BFGS", options={"gtol": 1e-8})
    W = found.x.reshape(D + 1, K)
    return softmax(X @ W[:D] + W[D], axis=1)


# --- scikit-learn's checks


def soft_checks() -> list[SoftLabelClassifier]:
    return [
        SoftLabelClassifier(LogisticRegression()),
        SoftLabelClassifier(solver="lbfgs", max_epochs=20),
    ]


@parametrize_with_checks(soft_checks())
def test_passes_every_scikit_learn_check(estimator, check) -> None:
    """Convex base and full batch: no expected failure. The default is in the contract table."""
    check(estimator)


# --- reference values and invariants of the replication path


def test_reference_logistic_regression() -> None:
    model = SoftLabelClassifier(logistic(C=1)).fit(X6, P6)
    proba = model.predict_proba(X6)
    np.testing.assert_allclose(proba[0], [0.638552, 0.245792, 0.115656], atol=1e-6)
    np.testing.assert_allclose(proba[5], [0.178208, 0.463659, 0.358133], atol=1e-6)
    loss = soft_cross_entropy(P6, proba, per_item=True).sum()
    penalty = (model.estimator_.coef_**2).sum() / 2
    assert loss + penalty == pytest.approx(5.457241170781133, abs=1e-8)


@settings(deadline=None, max_examples=8)
@given(st.integers(0, 10**6), st.sampled_from([0.3, 1.0, 10.0]), st.booleans())
def test_replication_is_the_soft_objective(seed: int, C: float, weighted: bool) -> None:
    X, counts, _ = problem(25, seed=seed)
    w = np.random.default_rng(seed).uniform(0.2, 3, 25) if weighted else np.ones(25)
    model = SoftLabelClassifier(logistic(C=C)).fit(X, counts, sample_weight=w if weighted else None)
    expected = direct_logistic(X, counts / 10, w, C)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=2e-6)


def test_one_hot_targets_are_the_hard_fit() -> None:
    X, _, y = problem()
    hard = LogisticRegression().fit(X, y)
    for targets in (y, np.eye(3)[y], np.eye(3, dtype=int)[y]):
        soft = SoftLabelClassifier(LogisticRegression()).fit(X, targets)
        np.testing.assert_array_equal(soft.estimator_.coef_, hard.coef_)
    networks = [
        SoftLabelClassifier(max_epochs=5, random_state=0).fit(X, t).predict_proba(X)
        for t in (y, np.eye(3)[y])
    ]
    np.testing.assert_array_equal(*networks)


@pytest.mark.parametrize(
    "model", [SoftLabelClassifier(logistic()), SoftLabelClassifier(solver="lbfgs", max_epochs=30)]
)
def test_split_rows_and_scaled_counts_change_nothing(model: SoftLabelClassifier) -> None:
    X, counts, _ = problem()
    plain = clone(model).set_params(random_state=0).fit(X, counts).predict_proba(X)
    w = np.where(np.arange(60) < 20, 0.5, 1.0)
    X2, C2 = np.vstack([X, X[:20]]), np.vstack([counts, counts[:20]])
    split = clone(model).set_params(random_state=0).fit(X2, C2, sample_weight=np.r_[w, w[:20]])
    np.testing.assert_allclose(split.predict_proba(X), plain, atol=2e-6)
    scaled = clone(model).set_params(random_state=0).fit(X, counts * (1 + np.arange(60))[:, None])
    np.testing.assert_allclose(scaled.predict_proba(X), plain, atol=2e-6)


def test_permuted_columns_permute_probabilities() -> None:
    X, counts, _ = problem()
    order = np.array([2, 0, 1])
    plain = SoftLabelClassifier(logistic()).fit(X, counts)
    other = SoftLabelClassifier(logistic()).fit(X, counts[:, order])
    np.testing.assert_allclose(other.predict_proba(X), plain.predict_proba(X)[:, order], atol=1e-6)
    named = SoftLabelClassifier(logistic(), classes=["c", "a", "b"]).fit(X, counts)
    np.testing.assert_allclose(named.predict_proba(X), plain.predict_proba(X), atol=1e-6)
    np.testing.assert_array_equal(named.classes_, ["c", "a", "b"])
    np.testing.assert_array_equal(
        named.predict(X), np.array(["c", "a", "b"])[plain.predict_proba(X).argmax(axis=1)]
    )


# --- how targets are read


def test_kinds_of_targets() -> None:
    X, counts, y = problem()
    model = SoftLabelClassifier(LogisticRegression())
    by_counts = clone(model).fit(X, counts)
    np.testing.assert_array_equal(by_counts.vote_counts_, 10)
    by_shares = clone(model).fit(X, counts / 10)
    assert by_shares.vote_counts_ is None
    beside = clone(model).fit(X, y, soft_labels=counts)
    np.testing.assert_array_equal(beside.vote_counts_, 10)
    for other in (by_shares, beside):
        np.testing.assert_allclose(other.predict_proba(X), by_counts.predict_proba(X), atol=1e-12)
    with pytest.warns(DataConversionWarning):
        column = clone(model).fit(X, y[:, None])
    np.testing.assert_array_equal(column.predict(X), clone(model).fit(X, y).predict(X))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames(frame: type) -> None:
    X, counts, y = problem()
    names = np.array(["c", "a", "b"])
    table = frame(dict(zip(["f0", "f1", "f2", "f3"], X.T, strict=True)))
    votes = frame(dict(zip(names, counts.T, strict=True)))
    for base in (LogisticRegression(), None):
        model = SoftLabelClassifier(base, max_epochs=2, random_state=0)
        found = clone(model).fit(table, votes)
        np.testing.assert_array_equal(found.classes_, names)
        np.testing.assert_array_equal(found.feature_names_in_, ["f0", "f1", "f2", "f3"])
        # Beside hard labels the named columns are brought into the order of the classes.
        beside = clone(model).fit(table, names[y], soft_labels=votes)
        np.testing.assert_array_equal(beside.classes_, ["a", "b", "c"])
        assert (
            beside.score(
                table,
                votes.select(["a", "b", "c"]) if frame is pl.DataFrame else votes[["a", "b", "c"]],
            )
            > 0.3
        )
        with pytest.raises(ValueError, match="feature names"):
            found.predict(frame(dict(zip(["f1", "f0", "f2", "f3"], X.T, strict=True))))


def test_smoothing_of_votes_and_labels() -> None:
    X, counts, y = problem()
    votes = SoftLabelClassifier(logistic(), vote_smoothing=3).fit(X, counts)
    expected = SoftLabelClassifier(logistic()).fit(X, (counts + 1) / 13)
    np.testing.assert_allclose(votes.predict_proba(X), expected.predict_proba(X), atol=1e-7)
    smooth = SoftLabelClassifier(logistic(), label_smoothing=0.3).fit(X, y)
    expected = SoftLabelClassifier(logistic()).fit(X, 0.7 * np.eye(3)[y] + 0.1)
    np.testing.assert_allclose(smooth.predict_proba(X), expected.predict_proba(X), atol=1e-7)
    with pytest.warns(UserWarning, match="softens them twice"):
        SoftLabelClassifier(logistic(), label_smoothing=0.3).fit(X, counts)


def test_a_class_that_no_label_shows() -> None:
    X, counts, y = problem()
    some = y < 2
    model = SoftLabelClassifier(LogisticRegression(), classes=[0, 1, 2]).fit(X[some], y[some])
    assert model.predict_proba(X).shape == (60, 3)
    np.testing.assert_array_equal(model.predict_proba(X)[:, 2], 0)
    assert np.isfinite(model.predict_log_proba(X)).all()
    with pytest.raises(ValueError, match="3 columns, but there are 2 classes"):
        SoftLabelClassifier(LogisticRegression()).fit(X[some], y[some], soft_labels=counts[some])


X60, C60, Y60 = problem()


@pytest.mark.parametrize(
    ("arguments", "fit", "error", "message"),
    [
        ({}, {"y": -C60}, ValueError, "negative entry in row 0"),
        ({}, {"y": C60 / 9}, ValueError, "row 0 sums to"),
        ({}, {"y": C60 * [1, 1, 0] * (np.arange(60) != 7)[:, None]}, ValueError, "no label in row"),
        ({"classes": [0, 1]}, {"y": C60}, ValueError, "3 columns, but there are 2 classes"),
        ({}, {"y": Y60, "soft_labels": C60[:-1]}, ValueError, "soft_labels have 59 rows"),
        ({}, {"y": Y60, "soft_labels": Y60}, ValueError, "soft_labels must be a matrix"),
        ({}, {"y": np.zeros(60)}, ValueError, "at least two classes"),
        ({}, {"y": C60 * [1, 0, 0] + [1, 0, 0]}, ValueError, "single class"),
        ({}, {"y": X60[:, 0]}, ValueError, "Unknown label type.*two columns"),
        ({}, {"X": np.where(X60 > 1, np.nan, X60)}, ValueError, "NaN"),
        ({}, {"sample_weight": np.zeros(60)}, ValueError, "sample_weight is zero|non-zero"),
        ({}, {"sample_weight": -np.ones(60)}, ValueError, "Negative values"),
        ({"loss": "js"}, {}, ValueError, "loss='js' needs a torch network"),
        ({"callbacks": [EpochScoring("accuracy")]}, {}, ValueError, "callbacks are for torch"),
        ({"track_dynamics": True}, {}, TypeError, "track_dynamics needs epochs"),
        ({"method": "sampled"}, {}, ValueError, "needs a classifier with partial_fit"),
        (
            {"estimator": KNeighborsClassifier(), "method": "replicate"},
            {},
            ValueError,
            "takes sample_weight",
        ),
        (
            {"estimator": KNeighborsClassifier()},
            {"sample_weight": np.ones(60)},
            ValueError,
            "no sample_weight",
        ),
        ({"estimator": SVC()}, {}, TypeError, "has no predict_proba"),
        ({"estimator": LogisticRegression}, {}, TypeError, "is not supported"),
        ({"estimator": "mlp"}, {}, TypeError, "is not supported"),
        ({"estimator": None, "solver": "lbfgs", "dropout": 0.5}, {}, ValueError, "needs dropout=0"),
        ({"estimator": None, "method": "resample"}, {}, ValueError, "for scikit-learn classifiers"),
        (
            {"estimator": None, "method": "sampled", "solver": "lbfgs"},
            {},
            ValueError,
            "needs fixed targets",
        ),
        ({"estimator": nn.Linear(4, 3), "solver": "lbfgs"}, {}, ValueError, "built-in network"),
        ({"estimator": nn.Linear(4, 2)}, {}, ValueError, "one logit a class"),
        ({"estimator": None, "lr": 1e30, "solver": "sgd"}, {}, ValueError, "training diverged"),
        ({"estimator": None, "device": "abacus"}, {}, ValueError, "device='abacus'"),
        ({"estimator": NeuralNetBinaryClassifier(nn.Linear(4, 1))}, {}, TypeError, "one output"),
        ({"lr": 0}, {}, ValueError, "lr"),
    ],
)
def test_errors_say_what_is_wrong_and_change_nothing(
    arguments: dict, fit: dict, error: type, message: str
) -> None:
    model = SoftLabelClassifier(LogisticRegression()).fit(X60, C60)
    before = model.predict_proba(X60)
    with pytest.raises(error, match=message):
        clone(model).set_params(**arguments).fit(**{"X": X60, "y": C60, **fit})
    fitted = SoftLabelClassifier(LogisticRegression()).fit(X60, C60)
    fitted.set_params(**arguments)
    with pytest.raises(error, match=message):
        fitted.fit(**{"X": X60, "y": C60, **fit})
    fitted.set_params(**model.get_params(deep=False))
    np.testing.assert_array_equal(fitted.predict_proba(X60), before)


# --- scikit-learn classifiers of many kinds


def test_pipeline_scales_items_not_copies() -> None:
    X, counts, _ = problem()
    one_sided = counts.copy()
    one_sided[:30] = [10, 0, 0]  # rows with one copy beside rows with three
    model = SoftLabelClassifier(make_pipeline(StandardScaler(), logistic())).fit(X, one_sided)
    np.testing.assert_allclose(model.estimator_[0].mean_, X.mean(axis=0), atol=1e-12)
    expected = SoftLabelClassifier(logistic()).fit(StandardScaler().fit_transform(X), one_sided)
    np.testing.assert_allclose(
        model.predict_proba(X), expected.predict_proba(StandardScaler().fit_transform(X)), atol=1e-9
    )
    with config_context(enable_metadata_routing=True):
        routed = clone(model).fit(X, one_sided)
    np.testing.assert_array_equal(routed.predict_proba(X), model.predict_proba(X))


def test_strings_in_a_frame_reach_the_pipeline() -> None:
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder

    table = pd.DataFrame({"colour": ["red", "blue", "red", "green"], "size": [1.0, 2, 3, 4]})
    votes = [[9, 1], [5, 5], [8, 2], [1, 9]]
    encode = make_column_transformer((OneHotEncoder(), ["colour"]), remainder="passthrough")
    model = SoftLabelClassifier(make_pipeline(encode, LogisticRegression())).fit(table, votes)
    assert model.score(table, votes) == 1.0


def test_sparse_inputs() -> None:
    X, counts, _ = problem()
    dense = SoftLabelClassifier(logistic()).fit(X, counts)
    sparse = SoftLabelClassifier(logistic()).fit(csr_array(X), counts)
    np.testing.assert_allclose(
        sparse.predict_proba(csr_array(X)), dense.predict_proba(X), atol=1e-7
    )


def test_resampling_where_weights_are_not_taken() -> None:
    X, counts, _ = problem()
    model = SoftLabelClassifier(KNeighborsClassifier(30), n_resamples=20, random_state=0)
    model.fit(X, counts)
    assert model.estimator_.n_samples_fit_ == 60 * 20
    again = clone(model).fit(X, counts)
    np.testing.assert_array_equal(model.predict_proba(X), again.predict_proba(X))
    # Nearly the replicated fit, with enough draws.
    many = SoftLabelClassifier(logistic(C=0.01), method="resample", n_resamples=400, random_state=0)
    weights = np.full(60, 400.0)
    scaled = SoftLabelClassifier(logistic(C=0.01)).fit(X, counts, sample_weight=weights)
    np.testing.assert_allclose(
        many.fit(X, counts).predict_proba(X), scaled.predict_proba(X), atol=0.05
    )


@pytest.mark.parametrize(
    "base",
    [GaussianNB(), MLPClassifier((8,), learning_rate_init=0.05), SGDClassifier(loss="log_loss")],
)
def test_a_new_vote_each_epoch(base: object) -> None:
    X, counts, _ = problem(200)
    model = SoftLabelClassifier(
        base, method="sampled", max_epochs=15, track_dynamics=True, random_state=0
    )
    model.fit(X, counts)
    assert model.dynamics_.n_epochs == 15
    assert model.score(X, counts) > 0.6
    again = clone(model).fit(X, counts)
    np.testing.assert_array_equal(model.predict_proba(X), again.predict_proba(X))


def test_networks_draw_a_new_vote_each_epoch() -> None:
    X, counts, _ = problem(200)
    fixed = SoftLabelClassifier(
        hidden_layer_sizes=(), max_epochs=40, batch_size=40, lr=0.05, random_state=0
    )
    model = clone(fixed).set_params(method="sampled")
    soft, drawn = fixed.fit(X, counts).predict_proba(X), model.fit(X, counts).predict_proba(X)
    np.testing.assert_array_equal(clone(model).fit(X, counts).predict_proba(X), drawn)
    # One draw for all epochs is noise that stays; new draws average out.
    once = np.eye(3)[
        [np.random.RandomState(i).choice(3, p=c / c.sum()) for i, c in enumerate(counts)]
    ]
    stuck = clone(fixed).fit(X, once).predict_proba(X)
    assert 0 < np.abs(drawn - soft).mean() < 0.6 * np.abs(stuck - soft).mean()
    # Of one-hot targets every draw is the target: same weights, same batches, same model.
    hard = np.eye(3)[counts.argmax(axis=1)]
    np.testing.assert_array_equal(
        clone(model).fit(X, hard).predict_proba(X), clone(fixed).fit(X, hard).predict_proba(X)
    )
    net = NeuralNetClassifier(nn.Linear(X.shape[1], 3), max_epochs=2, verbose=0)
    adopted = SoftLabelClassifier(net, method="sampled", random_state=0).fit(X, counts)
    plain = SoftLabelClassifier(net, random_state=0).fit(X, counts)
    assert (adopted.predict_proba(X) != plain.predict_proba(X)).any()


def test_votes_are_drawn_in_training_only() -> None:
    P = torch.tensor([[0.2, 0.5, 0.3], [1.0, 0, 0]]).repeat(20_000, 1)
    drawn = drawn_votes(P, np.random.RandomState(0)).reshape(20_000, 2, 3).mean(dim=0)
    # Four standard errors of a share from 20,000 draws.
    np.testing.assert_allclose(drawn, P[:2], atol=4 * 0.5 / np.sqrt(20_000))
    loss = SoftTargetLoss(votes=np.random.RandomState(0)).eval()
    logits, target = torch.randn(5, 3), torch.cat([P[:5], torch.ones(5, 1)], dim=1)
    assert loss(logits, target) == SoftTargetLoss()(logits, target)
    assert loss.train()(logits, target) != SoftTargetLoss()(logits, target)


def test_sampled_votes_follow_the_distribution() -> None:
    from equipoise.estimators.soft_labels.replication import draw_labels

    P = np.array([[0.2, 0.5, 0.3], [1.0, 0, 0], [0, 0, 1.0]])
    drawn = draw_labels(P, 20_000, np.random.RandomState(0))
    shares = np.array([np.bincount(row, minlength=3) / 20_000 for row in drawn])
    # Four standard errors of a share from 20,000 draws.
    np.testing.assert_allclose(shares, P, atol=4 * 0.5 / np.sqrt(20_000))
    np.testing.assert_array_equal(shares[1:], P[1:])


@pytest.mark.parametrize("kind", ["array", "frame", "sparse"])
def test_copies_beyond_the_working_memory_come_in_parts(kind: str) -> None:
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(3000, 200))
    X = {"array": dense, "frame": pd.DataFrame(dense), "sparse": csr_matrix(dense)}[kind]
    votes = rng.integers(0, 3, size=(3000, 4)) + 1
    base = GaussianNB() if kind != "sparse" else MultinomialNB()
    X = abs(X) if kind == "sparse" else X

    class Counting(type(base)):  # type: ignore[misc]
        longest = calls = 0

        def partial_fit(self, X, y, classes=None, sample_weight=None):  # type: ignore[no-untyped-def]
            type(self).longest = max(type(self).longest, X.shape[0])
            type(self).calls += 1
            return super().partial_fit(X, y, classes=classes, sample_weight=sample_weight)

    whole = SoftLabelClassifier(clone(base), random_state=0).partial_fit(X, votes)
    with config_context(working_memory=1):
        parts = SoftLabelClassifier(Counting(), random_state=0).partial_fit(X, votes)
    # A row takes 1600 bytes, or 12 a stored entry: at most 1 MiB of copies at a time.
    assert Counting.calls > 12000 * 1600 / 2**20
    assert Counting.longest * 1600 <= 2**20
    # Counts and moments add up, whatever the parts: the same model.
    np.testing.assert_allclose(parts.predict_proba(X), whole.predict_proba(X), atol=1e-8)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.floats(0, 0.5))
def test_pruning_drops_the_smallest_tail(seed: int, mass: float) -> None:
    from equipoise.estimators.soft_labels.replication import prune_tail

    P = np.random.default_rng(seed).dirichlet(np.full(6, 0.5), 10)
    pruned = prune_tail(P, mass)
    np.testing.assert_allclose(pruned.sum(axis=1), 1, atol=1e-12)
    for p, q in zip(P, pruned, strict=True):
        kept = q > 0
        assert p[~kept].sum() <= mass + 1e-12
        smallest = p[kept].min()
        assert p[~kept].sum() + smallest > mass  # one more would be too much
        np.testing.assert_allclose(q[kept], p[kept] / p[kept].sum(), atol=1e-12)


def test_balanced_class_weight_counts_mass() -> None:
    X, counts, _ = problem()
    P = counts / 10
    mass = P.sum(axis=0)
    expected = direct_logistic_weighted(X, P, 60 / (3 * mass))
    model = SoftLabelClassifier(logistic(class_weight="balanced")).fit(X, counts)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=5e-6)


def direct_logistic_weighted(X: np.ndarray, P: np.ndarray, class_weight: np.ndarray) -> np.ndarray:
    """Soft logistic regression whose terms p_k log f_k are weighted by class."""
    Q = P * class_weight
    return direct_logistic(X, Q / Q.sum(axis=1, keepdims=True), Q.sum(axis=1))


def test_splits_inside_a_fit_are_switched_off_or_warned_of() -> None:
    X, counts, _ = problem()
    boost = HistGradientBoostingClassifier(early_stopping=True, max_iter=3)
    with pytest.warns(UserWarning, match="early_stopping is switched off"):
        model = SoftLabelClassifier(boost).fit(X, counts)
    assert model.estimator_.early_stopping is False
    assert boost.early_stopping is True
    with pytest.warns(UserWarning, match="n_iter_no_change is set to None"):
        SoftLabelClassifier(GradientBoostingClassifier(n_iter_no_change=2, n_estimators=3)).fit(
            X, counts
        )
    with pytest.warns(UserWarning, match="draws rows with replacement"):
        SoftLabelClassifier(RandomForestClassifier(5)).fit(X, counts)
    with pytest.warns(UserWarning, match="cross-validates inside its fit"):
        SoftLabelClassifier(
            LogisticRegressionCV(
                cv=2, Cs=2, scoring="neg_log_loss", use_legacy_attributes=False, l1_ratios=(0,)
            )
        ).fit(X, counts)


def test_hard_labels_leave_the_classifier_alone() -> None:
    X, _, y = problem()
    boost = HistGradientBoostingClassifier(early_stopping=True, max_iter=3, random_state=0)
    model = SoftLabelClassifier(boost).fit(X, y)
    assert model.estimator_.early_stopping is True


def test_staged_dynamics_of_boosting() -> None:
    X, counts, y = problem()
    model = SoftLabelClassifier(GradientBoostingClassifier(n_estimators=7), track_dynamics=True)
    model.fit(X, y, soft_labels=counts)
    assert model.dynamics_.n_epochs == 7
    np.testing.assert_allclose(model.dynamics_.last_proba, model.predict_proba(X), atol=1e-12)


# --- torch


def test_training_equals_a_loop_written_by_hand() -> None:
    X, counts, _ = problem(100)
    model = SoftLabelClassifier(
        nn.Linear(4, 3),
        standardize=False,
        batch_size=16,
        max_epochs=3,
        lr=0.01,
        weight_decay=0.02,
        random_state=0,
    )
    module = nn.Linear(4, 3)
    with torch.no_grad():
        module.weight.fill_(0.1)
        module.bias.fill_(0.0)
    model.set_params(estimator=module).fit(X, counts)
    assert float(module.weight.detach().max()) == pytest.approx(
        0.1
    )  # the user's module is left alone
    rng = np.random.RandomState(0)
    orders = np.random.RandomState(rng.randint(2**31 - 1, size=2)[0])
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.01, weight_decay=0.02)
    inputs, targets = (
        torch.tensor(X, dtype=torch.float32),
        torch.tensor(counts / 10, dtype=torch.float32),
    )
    for _ in range(3):
        order = orders.permutation(100)
        for start in range(0, 100, 16):
            rows = order[start : start + 16]
            optimizer.zero_grad()
            nn.functional.cross_entropy(module(inputs[rows]), targets[rows]).backward()
            optimizer.step()
    expected = torch.softmax(module(inputs), dim=1).detach().numpy()
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-6)


def test_full_batch_solver_finds_the_minimum() -> None:
    X, counts, _ = problem(40)
    model = SoftLabelClassifier(
        hidden_layer_sizes=(),
        solver="lbfgs",
        weight_decay=0.01,
        max_epochs=500,
        standardize=False,
        random_state=0,
    )
    model.fit(X, counts)
    assert model.n_iter_ < 500
    expected = direct_logistic(X, counts / 10, np.ones(40), C=1 / (40 * 0.01))
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=2e-4)


def test_same_seed_other_targets_same_start_and_batches() -> None:
    X, counts, y = problem()
    seen: list[list[torch.Tensor]] = []

    class Watch(nn.Module):
        def __init__(self, n_features: int, n_classes: int) -> None:
            super().__init__()
            self.layer = nn.Linear(n_features, n_classes)
            self.drop = nn.Dropout(0.5)
            seen.append([self.layer.weight.detach().clone()])

        def forward(self, X: torch.Tensor) -> torch.Tensor:
            if self.training:
                dropped = self.drop(X)
                seen[-1].append(dropped.clone())
                return self.layer(dropped)
            return self.layer(X)

    for targets in (counts, y):
        SoftLabelClassifier(Watch, max_epochs=2, early_stopping=True, random_state=3).fit(
            X, y, soft_labels=counts if targets is counts else np.eye(3)[y]
        )
    assert len(seen[0]) == len(seen[1]) > 5
    for a, b in zip(*seen, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)


def test_the_callers_generators_are_left_alone() -> None:
    X, counts, _ = problem()
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    SoftLabelClassifier(max_epochs=1, dropout=0.2, random_state=0).fit(X, counts)
    assert torch.rand(1) == expected


@pytest.mark.parametrize("loss", ["cross_entropy", "reverse_kl", "js", "brier"])
def test_losses_have_their_minimum_at_the_targets(loss: str) -> None:
    rng = np.random.default_rng(0)
    P = torch.tensor(rng.dirichlet(np.ones(4), 6))
    weighted = torch.column_stack([P, torch.ones(6, dtype=torch.float64)])
    criterion = SoftTargetLoss(loss)
    at_target = criterion(P.log(), weighted)
    for _ in range(10):
        other = torch.tensor(rng.dirichlet(np.ones(4), 6)).log()
        assert criterion(other, weighted) > at_target
    divergence = {"cross_entropy": float(-(P * P.log()).sum(dim=1).mean())}.get(loss, 0.0)
    assert float(at_target) == pytest.approx(divergence, abs=1e-12)
    logits = torch.tensor(rng.normal(size=(6, 4)), requires_grad=True)
    hard = torch.column_stack(
        [torch.eye(4, dtype=torch.float64)[[0, 1, 2, 3, 0, 1]], torch.ones(6)]
    )
    criterion(logits, hard).backward()
    assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize("loss", ["reverse_kl", "js", "brier"])
def test_other_losses_train(loss: str) -> None:
    X, counts, _ = problem(200)
    model = SoftLabelClassifier(loss=loss, max_epochs=25, lr=0.01, batch_size=50, random_state=0)
    model.fit(X, counts)
    assert kl_to_humans(counts, model.predict_proba(X)) < 0.25
    losses = model.history_["train_loss"]
    assert losses.iloc[-1] < losses.iloc[0] / 2


def test_early_stopping_keeps_the_best() -> None:
    X, _, y = problem(80)
    model = SoftLabelClassifier(
        early_stopping=True,
        n_iter_no_change=3,
        max_epochs=300,
        lr=0.02,
        validation_fraction=0.25,
        weight_decay=0,
        random_state=0,
    )
    model.fit(X, y)
    assert model.n_iter_ < 300
    losses = model.history_["valid_loss"]
    assert losses.idxmin() == len(losses) - 4
    assert {"epoch", "train_loss", "valid_loss"} == set(model.history_.columns)


def test_three_dimensional_inputs_for_a_module() -> None:
    X, counts, _ = problem()
    network = nn.Sequential(
        nn.Unflatten(1, (1, 2)), nn.Conv2d(1, 4, (2, 2)), nn.Flatten(), nn.Linear(4, 3)
    )
    model = SoftLabelClassifier(network, max_epochs=2, random_state=0).fit(
        X.reshape(60, 2, 2), counts
    )
    assert model.predict_proba(X.reshape(60, 2, 2)).shape == (60, 3)


@pytest.mark.parametrize("kind", [NeuralNet, NeuralNetClassifier])
@pytest.mark.parametrize("early_stopping", [False, True])
def test_skorch_nets(kind: type, early_stopping: bool) -> None:
    X, counts, _ = problem()
    net = kind(
        SoftLabelMLP,
        module__n_features=4,
        module__n_classes=3,
        max_epochs=4,
        lr=0.1,
        verbose=0,
        **({"criterion": nn.CrossEntropyLoss} if kind is NeuralNet else {}),
    )
    model = SoftLabelClassifier(net, early_stopping=early_stopping, random_state=0)
    model.fit(X.astype(np.float32), counts)
    again = clone(model).fit(X.astype(np.float32), counts)
    np.testing.assert_array_equal(model.predict_proba(X), again.predict_proba(X))
    assert len(model.history_) == 4
    np.testing.assert_allclose(
        model.net_.predict_proba(X.astype(np.float32)), model.predict_proba(X), atol=1e-6
    )


def test_user_callbacks_run_and_stay() -> None:
    from skorch.callbacks import Callback

    class Count(Callback):
        epochs = 0

        def on_epoch_end(self, net: NeuralNet, **kwargs: object) -> None:
            Count.epochs += 1

    X, counts, _ = problem()
    SoftLabelClassifier(callbacks=[Count()], max_epochs=6).fit(X, counts)
    assert Count.epochs == 6


def test_dynamics_follow_the_epochs() -> None:
    X, counts, y = problem()
    model = SoftLabelClassifier(track_dynamics=True, max_epochs=5, random_state=0).fit(
        X, y, soft_labels=counts
    )
    dynamics = model.dynamics_
    assert dynamics.n_epochs == 5
    np.testing.assert_array_equal(dynamics.reference, y)
    np.testing.assert_allclose(dynamics.last_proba, model.predict_proba(X), atol=1e-12)
    shorter = [
        SoftLabelClassifier(max_epochs=e, random_state=0).fit(X, counts).predict_proba(X)
        for e in range(1, 6)
    ]
    np.testing.assert_allclose(dynamics.mean_proba, np.mean(shorter, axis=0), atol=1e-12)
    at_reference = np.array([proba[np.arange(60), y] for proba in shorter])
    np.testing.assert_allclose(dynamics.variability, at_reference.std(axis=0), atol=1e-12)


def test_partial_fit_goes_on() -> None:
    X, counts, y = problem(300)
    for base in (None, SGDClassifier(loss="log_loss"), GaussianNB()):
        model = SoftLabelClassifier(base, random_state=0)
        for rows in np.array_split(np.arange(300), 6) * 5:
            model.partial_fit(X[rows], y[rows], classes=[0, 1, 2], soft_labels=counts[rows])
        assert model.score(X, counts) > 0.6
        with pytest.raises(ValueError, match="differ from those of earlier calls"):
            model.partial_fit(X, y, classes=[0, 1])
    assert not hasattr(SoftLabelClassifier(LogisticRegression()), "partial_fit")


@pytest.mark.parametrize("solver", ["adamw", "lbfgs"])
def test_warm_start_goes_on(solver: str) -> None:
    X, counts, _ = problem()
    model = SoftLabelClassifier(max_epochs=10, warm_start=True, solver=solver, random_state=0)
    first = model.fit(X, counts).history_["train_loss"]
    second = pickle.loads(pickle.dumps(model)).fit(X, counts).history_["train_loss"]
    assert second.iloc[0] < first.iloc[0]
    assert second.iloc[-1] < first.iloc[-1]
    with pytest.raises(ValueError, match="differ from those of the fit that is continued"):
        model.fit(X, counts[:, :2] + 1)


# --- predictions, scores, calibration, explanation


@pytest.mark.parametrize("base", [None, LogisticRegression(), GaussianNB()])
@pytest.mark.parametrize("K", [2, 3])
def test_predictions_are_consistent(base: object, K: int) -> None:
    X, counts, _ = problem(K=K)
    model = SoftLabelClassifier(base, max_epochs=5, temperature=2.0, random_state=0).fit(X, counts)
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-12)
    assert (proba >= 0).all()
    np.testing.assert_array_equal(model.predict(X), model.classes_[proba.argmax(axis=1)])
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), proba, atol=1e-12)
    decision = model.decision_function(X)
    if K == 2:
        np.testing.assert_allclose(1 / (1 + np.exp(-decision / 2)), proba[:, 1], atol=1e-12)
    else:
        np.testing.assert_allclose(softmax(decision / 2, axis=1), proba, atol=1e-12)


def test_score_of_tied_modes() -> None:
    model = SoftLabelClassifier(LogisticRegression()).fit(X6, P6)
    pred = model.predict(X6)
    ties = np.full((6, 3), 2)
    assert model.score(X6, ties) == 1.0
    assert model.score(X6, pred) == 1.0
    wrong = np.eye(3)[(pred + 1) % 3]
    assert model.score(X6, wrong) == 0.0
    assert model.score(
        X6, np.where(np.arange(6)[:, None] < 3, wrong, ties), sample_weight=[2, 2, 2, 1, 1, 1]
    ) == pytest.approx(1 / 3)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.floats(0.05, 20))
def test_temperature_minimises_the_soft_loss(seed: int, scale: float) -> None:
    from equipoise.estimators.soft_labels.recalibration import temperature_of

    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(30, 4)) * scale
    P = rng.dirichlet(np.ones(4), 30)
    w = rng.uniform(0, 2, 30)

    def loss(T: float) -> float:
        return float(np.average(-(P * log_softmax(Z / T, axis=1)).sum(axis=1), weights=w))

    T = temperature_of(Z, P, w)
    assert 0 < T <= 1000
    around = [loss(T * c) for c in (0.5, 0.9, 0.999, 1.001, 1.1, 2) if 1e-3 <= T * c <= 1e3]
    assert loss(T) <= min([loss(1.0), *around]) + 1e-12


@pytest.mark.parametrize("method", ["temperature", "vector", "dirichlet"])
@pytest.mark.parametrize("base", [None, GaussianNB()])
def test_calibration_lowers_the_soft_loss(method: str, base: object) -> None:
    X, counts, _ = problem(200)
    model = SoftLabelClassifier(base, solver="lbfgs", max_epochs=30, random_state=0)
    model.fit(X[:100], counts[:100].argmax(axis=1))
    before, labels = model.soft_score(X[100:], counts[100:]), model.predict(X)
    assert model.calibrate(X[100:], counts[100:], method=method) is model
    assert model.soft_score(X[100:], counts[100:]) > before
    if method == "temperature":
        assert model.temperature_ > 0
        np.testing.assert_array_equal(model.predict(X), labels)
    else:
        assert model.temperature_ == 1
        decision = model.decision_function(X)
        np.testing.assert_array_equal(model.predict(X), decision.argmax(axis=1))
    assert model.fit(X, counts).temperature_ == 1


def test_vector_and_dirichlet_are_stationary() -> None:
    from equipoise.estimators.soft_labels.recalibration import dirichlet_map, vector_map

    rng = np.random.default_rng(0)
    Z, P = rng.normal(size=(80, 3)), rng.dirichlet(np.ones(3), 80)

    def vector_loss(W: np.ndarray, b: np.ndarray) -> float:
        return -float(np.mean((P * log_softmax(Z @ W.T + b, axis=1)).sum(axis=1)))

    def dirichlet_loss(W: np.ndarray, b: np.ndarray) -> float:
        log_f = log_softmax(Z, axis=1)
        loss = -float(np.mean((P * log_softmax(log_f @ W.T + b, axis=1)).sum(axis=1)))
        off = W[~np.eye(3, dtype=bool)]
        return loss + 1e-3 * (np.mean(off**2) + np.mean(b**2))

    w = np.ones(80)
    for learn, loss, free in (
        (vector_map, vector_loss, np.eye(3, dtype=bool)),
        (dirichlet_map, dirichlet_loss, np.ones((3, 3), dtype=bool)),
    ):
        W, b = learn(Z, P, w)
        assert not W[~free].any()
        for i, j in zip(*np.nonzero(free), strict=True):
            step = np.zeros((3, 3))
            step[i, j] = 1e-4
            assert loss(W + step, b) >= loss(W, b) - 1e-9
            assert loss(W - step, b) >= loss(W, b) - 1e-9


def test_calibrate_checks_its_arguments() -> None:
    X, counts, _ = problem()
    with pytest.raises(NotFittedError):
        SoftLabelClassifier().calibrate(X, counts)
    model = SoftLabelClassifier(LogisticRegression()).fit(X, counts)
    with pytest.raises(ValueError, match="method='isotonic'"):
        model.calibrate(X, counts, method="isotonic")
    with pytest.raises(ValueError, match="inconsistent"):
        model.calibrate(X, counts[:-1])
    assert model.temperature_ == 1


def test_explanation() -> None:
    X, counts, _ = problem()
    model = SoftLabelClassifier(LogisticRegression()).fit(X, counts)
    answer = model.explain(X, counts)
    frame = answer.to_frame()
    np.testing.assert_allclose(
        frame["kl"], kl_to_humans(counts, model.predict_proba(X), per_item=True)
    )
    assert "finite votes alone give" in str(answer)
    assert "finite votes" not in str(model.explain(X, counts / 10))
    assert "undefined" in str(model.explain(X, counts.argmax(axis=1)))
    for kind in ("reliability", "entropy"):
        assert answer.plot(kind).get_title()
    pickle.loads(pickle.dumps(answer)).plot()


# --- searches, pipelines, metadata routing


def test_grid_search_with_soft_labels_beside_hard() -> None:
    X, counts, y = problem()
    search = GridSearchCV(
        SoftLabelClassifier(LogisticRegression()),
        {"estimator__C": [0.01, 1]},
        cv=StratifiedKFold(3),
        scoring="neg_log_loss",
    ).fit(X, y, soft_labels=counts)
    by_hand = []
    for train, test in StratifiedKFold(3).split(X, y):
        model = SoftLabelClassifier(LogisticRegression(C=1)).fit(
            X[train], y[train], soft_labels=counts[train]
        )
        by_hand.append(-soft_cross_entropy(y[test], model.predict_proba(X[test])))
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"][1], np.mean(by_hand), atol=1e-9
    )


def test_grid_search_with_two_dimensional_targets() -> None:
    X, counts, _ = problem()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), SoftLabelClassifier(LogisticRegression())),
        {"softlabelclassifier__estimator__C": [0.001, 1]},
        cv=SoftStratifiedKFold(3, random_state=0),
        scoring=get_soft_scorer("neg_soft_cross_entropy"),
    ).fit(X, counts)
    assert search.best_params_["softlabelclassifier__estimator__C"] == 1
    scores = cross_val_score(
        SoftLabelClassifier(LogisticRegression()),
        X,
        counts,
        cv=SoftStratifiedKFold(3),
        scoring=get_soft_scorer("neg_kl"),
        error_score="raise",
    )
    assert (scores < 0).all()


def test_pipeline_passes_soft_labels_on() -> None:
    X, counts, y = problem()
    pipe = make_pipeline(StandardScaler(), SoftLabelClassifier(LogisticRegression()))
    stepwise = clone(pipe).fit(X, y, softlabelclassifier__soft_labels=counts)
    with config_context(enable_metadata_routing=True):
        routed = Pipeline(
            [
                ("scale", StandardScaler()),
                (
                    "fit",
                    SoftLabelClassifier(LogisticRegression()).set_fit_request(soft_labels=True),
                ),
            ]
        )
        scorer = get_soft_scorer("neg_kl").set_score_request(soft_labels=True)
        search = GridSearchCV(
            routed,
            {"fit__estimator__C": [1.0]},
            cv=StratifiedKFold(3),
            scoring=scorer,
            error_score="raise",
        )
        search.fit(X, y, soft_labels=counts)
    np.testing.assert_allclose(search.predict_proba(X), stepwise.predict_proba(X), atol=1e-12)
    by_hand = []
    for train, test in StratifiedKFold(3).split(X, y):
        model = clone(pipe).fit(X[train], y[train], softlabelclassifier__soft_labels=counts[train])
        by_hand.append(-kl_to_humans(counts[test], model.predict_proba(X[test])))
    assert search.best_score_ == pytest.approx(np.mean(by_hand))


def test_cross_val_predict() -> None:
    X, counts, y = problem()
    model = SoftLabelClassifier(LogisticRegression())
    proba = cross_val_predict(model, X, y, method="predict_proba", params={"soft_labels": counts})
    assert proba.shape == (60, 3)
    pred = cross_val_predict(model, X, counts, cv=SoftStratifiedKFold(3, random_state=0))
    assert np.mean(pred == counts.argmax(axis=1)) > 0.5


def test_unknown_scorer() -> None:
    with pytest.raises(ValueError, match="name='accuracy' is not a soft scorer"):
        get_soft_scorer("accuracy")
    model = SoftLabelClassifier(LogisticRegression()).fit(X6, P6)
    with pytest.raises(ValueError, match="metric='auc'"):
        model.soft_score(X6, P6, metric="auc")
