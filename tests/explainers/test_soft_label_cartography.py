"""Data maps: dynamics, regions, and the ways to follow a model's epochs."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import entropy, spearmanr
from sklearn.datasets import load_iris
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier

from equipoise.estimators import SoftLabelClassifier
from equipoise.explainers import CartographyCallback, DatasetCartography
from equipoise.explainers.soft_labels.data_map import regions
from equipoise.explainers.soft_labels.epoch_file import EpochFile

F = np.array(
    [
        [[0.4, 0.3, 0.3], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]],
        [[0.6, 0.2, 0.2], [0.5, 0.3, 0.2], [0.3, 0.4, 0.3]],
        [[0.8, 0.1, 0.1], [0.3, 0.6, 0.1], [0.2, 0.6, 0.2]],
        [[0.9, 0.05, 0.05], [0.6, 0.3, 0.1], [0.1, 0.7, 0.2]],
    ]
)
P = np.array([[0.9, 0.1, 0], [0.3, 0.6, 0.1], [0.2, 0.4, 0.4]])


@st.composite
def recorded(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities over epochs, reference classes and votes."""
    E, n, K = draw(st.integers(1, 8)), draw(st.integers(1, 10)), draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    probabilities = rng.dirichlet(np.full(K, draw(st.sampled_from([0.2, 1.0]))), (E, n))
    return probabilities, rng.integers(K, size=n), rng.multinomial(7, np.ones(K) / K, n)


def test_reference_values() -> None:
    dynamics = DatasetCartography.from_probabilities(F, [0, 1, 2], P).dynamics_
    np.testing.assert_allclose(dynamics.confidence, [0.675, 0.425, 0.275], atol=1e-12)
    np.testing.assert_allclose(
        dynamics.variability, [0.1920286437, 0.1299038106, 0.0829156198], atol=1e-10
    )
    np.testing.assert_allclose(dynamics.correctness, [1, 0.5, 0.25])
    np.testing.assert_array_equal(dynamics.forgetting, [0, 2, 1])
    np.testing.assert_allclose(dynamics.soft_confidence, [0.62375, 0.3925, 0.355], atol=1e-12)
    soft = DatasetCartography.from_probabilities(F, P)
    np.testing.assert_allclose(soft.dynamics_.confidence, [0.62375, 0.3925, 0.355], atol=1e-12)


@settings(deadline=None, max_examples=50)
@given(recorded())
def test_streamed_sums_agree_with_the_stored_epochs(
    case: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    probabilities, reference, counts = case
    E, n, _ = probabilities.shape
    dynamics = DatasetCartography.from_probabilities(probabilities, reference, counts).dynamics_
    followed = probabilities[:, np.arange(n), reference]
    np.testing.assert_allclose(dynamics.confidence, followed.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(dynamics.variability, followed.std(axis=0), atol=1e-7)
    np.testing.assert_allclose(dynamics.sd_proba, probabilities.std(axis=0), atol=1e-7)
    right = probabilities.argmax(axis=2) == reference
    np.testing.assert_allclose(dynamics.correctness, right.mean(axis=0))
    np.testing.assert_array_equal(dynamics.forgetting, (right[:-1] & ~right[1:]).sum(axis=0))
    np.testing.assert_allclose(
        dynamics.mean_entropy, entropy(probabilities, axis=2).mean(axis=0), atol=1e-12
    )
    votes = counts / counts.sum(axis=1, keepdims=True)
    agreement = (probabilities * votes).sum(axis=2)
    np.testing.assert_allclose(dynamics.soft_confidence, agreement.mean(axis=0), atol=1e-12)
    kl = entropy(votes, np.maximum(probabilities[-1], 1e-300), axis=1)
    close = probabilities[-1].min(axis=1) > 1e-12
    np.testing.assert_allclose(dynamics.last_kl[close], kl[close], atol=1e-9)
    # Bounds: a variable in [0, 1] with mean mu has standard deviation at most sqrt(mu (1 - mu)).
    mu = np.clip(dynamics.confidence, 0, 1)
    assert (dynamics.variability <= np.sqrt(mu * (1 - mu)) + 1e-7).all()
    assert (dynamics.variability <= 0.5 + 1e-12).all()
    np.testing.assert_allclose(dynamics.correctness * E, np.rint(dynamics.correctness * E))
    soft = DatasetCartography.from_probabilities(probabilities, counts).dynamics_
    np.testing.assert_allclose(soft.variability, agreement.std(axis=0), atol=1e-7)
    np.testing.assert_array_equal(soft.reference, votes.argmax(axis=1))


def test_constant_dynamics_do_not_vary() -> None:
    constant = np.tile(F[:1], (5, 1, 1))
    made = DatasetCartography.from_probabilities(constant, [0, 1, 2])
    np.testing.assert_allclose(made.dynamics_.variability, 0, atol=1e-15)


def test_regions_are_thirds() -> None:
    conf = np.array([0.9, 0.8, 0.85, 0.5, 0.5, 0.5, 0.1, 0.2, 0.15])
    var = np.array([0.01, 0.02, 0.03, 0.4, 0.4, 0.4, 0.02, 0.01, 0.2])
    found = regions(conf, var)
    assert found.tolist()[0:2] == ["easy-to-learn"] * 2
    assert found.tolist()[6:8] == ["hard-to-learn"] * 2
    assert (found[3:6] == "mixed").all() or (found[3:6] == "ambiguous").all()
    rng = np.random.default_rng(0)
    found = regions(rng.uniform(size=3000), rng.uniform(size=3000))
    assert abs((found == "ambiguous").mean() - 1 / 3) < 0.001
    assert abs((found == "easy-to-learn").mean() - 1 / 9) < 0.02


@pytest.mark.parametrize(
    ("model", "epochs"),
    [
        (None, 5),
        (MLPClassifier((5,), random_state=0), 5),
        (SGDClassifier(loss="log_loss", random_state=0), 5),
        (GaussianNB(), 5),
        (GradientBoostingClassifier(n_estimators=5, random_state=0), None),
        (HistGradientBoostingClassifier(max_iter=50, random_state=0), 5),
        (RandomForestClassifier(n_estimators=50, random_state=0), 5),
        (LogisticRegression(), 5),
    ],
)
def test_ways_to_follow_epochs(model: object, epochs: int | None) -> None:
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    made = DatasetCartography(model, epochs=epochs).fit(X, names)
    assert made.dynamics_.n_epochs == 5
    np.testing.assert_allclose(
        made.dynamics_.last_proba, made.estimator_.predict_proba(X), atol=1e-12
    )
    again = DatasetCartography(model, epochs=epochs).fit(X, names)
    np.testing.assert_array_equal(made.dynamics_.confidence, again.dynamics_.confidence)
    if isinstance(model, RandomForestClassifier):
        assert len(made.estimator_.estimators_) == 50
        assert (made.dynamics_.variability > 0).any()


def test_iterations_of_a_warm_start_add_up() -> None:
    X, y = load_iris(return_X_y=True)
    full = LogisticRegression(max_iter=1000, tol=1e-10).fit(X, y).predict_proba(X)
    left = [
        np.abs(
            DatasetCartography(LogisticRegression(), epochs=e).fit(X, y).dynamics_.last_proba - full
        ).mean()
        for e in (1, 10, 100)
    ]
    assert left[0] > 1.2 * left[1] > 2 * left[2]


def test_soft_labels_reach_an_estimator_that_takes_them() -> None:
    estimators = pytest.importorskip("equipoise.estimators")
    X, y = load_iris(return_X_y=True)
    votes = 7 * np.eye(3, dtype=int)[y] + 1
    model = estimators.SoftLabelClassifier(random_state=0, batch_size=32, lr=0.02)
    made = DatasetCartography(model, reference="mode", epochs=8).fit(X, y, votes)
    hard = DatasetCartography(model, epochs=8).fit(X, y)
    assert made.dynamics_.last_proba.max() < hard.dynamics_.last_proba.max()
    np.testing.assert_array_equal(made.dynamics_.reference, y)


def test_alignment_and_suspects() -> None:
    rng = np.random.default_rng(0)
    votes = rng.multinomial(9, rng.dirichlet(np.ones(3), 80))
    y = votes.argmax(axis=1)
    y[:8] = (y[:8] + 1) % 3
    probabilities = np.array([rng.dirichlet(1 + c, 1)[0] for c in np.tile(votes, (6, 1))])
    probabilities = probabilities.reshape(6, 80, 3)
    made = DatasetCartography.from_probabilities(probabilities, y, votes)
    H = entropy(votes, axis=1).round(12)
    table = made.alignment_.set_index("axis")
    confidence = probabilities[:, np.arange(80), y].mean(axis=0)
    expected = spearmanr(1 - confidence.round(12), H).statistic
    assert table.loc["1 - confidence", "spearman"] == pytest.approx(expected, abs=1e-9)
    shares = votes / votes.sum(axis=1, keepdims=True)
    plain = DatasetCartography.from_probabilities(probabilities, y, shares)
    shifted = votes[np.arange(80), y] < votes.max(axis=1)
    np.testing.assert_allclose(plain.suspicion_, (1 - confidence) * shifted, atol=1e-12)
    # With votes: draws from the posterior of the class shares, for the label against its rival.
    draws = rng.standard_gamma(votes + 1.0, (40_000, 80, 3))
    others = np.where(np.eye(3, dtype=bool)[y], -1, votes)
    rival = others.argmax(axis=1)
    doubt = (draws[:, np.arange(80), rival] > draws[:, np.arange(80), y]).mean(axis=0)
    # Five standard errors of a share of 40,000 draws.
    np.testing.assert_allclose(made.suspicion_, (1 - confidence) * doubt, atol=0.0125)
    frame = made.explain().to_frame()
    assert {"human_entropy", "suspicion", "soft_confidence", "region"} <= set(frame.columns)
    assert "labels to look at first" in str(made.explain())


def test_few_votes_leave_doubt_of_a_label() -> None:
    """Of unanimous items that the model learns alike, the one with fewest votes is looked at
    first; and a clear majority against the label comes before both."""
    votes = np.array([[1, 0], [4, 0], [40, 0], [2, 30]])
    F = np.tile([[0.6, 0.4]], (2, 4, 1))
    made = DatasetCartography.from_probabilities(F, [0, 0, 0, 0], votes)
    np.testing.assert_allclose(made.suspicion_[:2], 0.4 * np.array([1 / 4, 1 / 32]), atol=1e-12)
    assert made.suspicion_.argsort()[::-1].tolist() == [3, 0, 1, 2]


def test_correlation_within_classes_ignores_differences_between_them() -> None:
    # Human entropy differs between the classes only: within each it is unrelated to the model.
    rng = np.random.default_rng(1)
    n = 4000
    y = np.arange(n) % 2
    votes = np.where(y[:, None] == 0, [[10, 1]], [[4, 6]]) + rng.integers(0, 2, (n, 2))
    share = np.where(y == 0, 0.9, 0.6) + rng.uniform(-0.05, 0.05, n)
    one = np.where(y == 0, share, 1 - share)
    probabilities = np.stack([np.column_stack([one, 1 - one])] * 2)
    table = DatasetCartography.from_probabilities(probabilities, y, votes).alignment_
    table = table.set_index("axis")
    assert table.loc["1 - confidence", "spearman"] > 0.7
    assert abs(table.loc["1 - confidence", "within_class"]) < 0.06
    assert np.isnan(table.loc["variability", "spearman"])


def test_stored_epochs(tmp_path: Path) -> None:
    X, y = load_iris(return_X_y=True)
    path = tmp_path / "epochs.npy"
    made = DatasetCartography(GaussianNB(), epochs=4, store=path).fit(X, y)
    stored = np.load(path, mmap_mode="r")
    assert stored.shape == (4, 150, 3)
    again = DatasetCartography.from_probabilities(stored, y)
    np.testing.assert_allclose(again.dynamics_.confidence, made.dynamics_.confidence, atol=1e-6)
    early = HistGradientBoostingClassifier(
        max_iter=30, early_stopping=True, n_iter_no_change=1, tol=1, random_state=0
    )
    made = DatasetCartography(early, store=path).fit(X, y)
    assert np.load(path).shape[0] == made.dynamics_.n_epochs < 30


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_precision_of_stored_epochs(dtype: str, tmp_path: Path) -> None:
    X, y = load_iris(return_X_y=True)
    path = tmp_path / "epochs.npy"
    votes = np.eye(3, dtype=int)[y] * 5 + 1
    watched = CartographyCallback(X, y, votes, store=path, store_dtype=dtype)
    model = SoftLabelClassifier(max_epochs=12, callbacks=[watched], random_state=0).fit(X, votes)
    stored = np.load(path, mmap_mode="r")
    assert stored.dtype == dtype and stored.shape == (12, 150, 3)
    # Twelve epochs need a longer first axis in the header than nine did.
    np.testing.assert_allclose(stored[-1], model.predict_proba(X), atol=np.finfo(dtype).eps)
    again = DatasetCartography.from_probabilities(stored, y, votes)
    tolerance = 4 * np.finfo(dtype).eps
    for name in ("confidence", "variability", "soft_confidence"):
        streamed = getattr(watched.dynamics_, name)
        np.testing.assert_allclose(getattr(again.dynamics_, name), streamed, atol=tolerance)
    # Training anew starts the file anew.
    SoftLabelClassifier(max_epochs=2, callbacks=[watched], random_state=0).fit(X, votes)
    assert np.load(path).shape == (2, 150, 3)


def test_a_file_of_epochs_is_whole_after_each_of_them(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    F = rng.dirichlet(np.ones(4), size=(11, 5))
    file = EpochFile(tmp_path / "F.npy", "float64")
    for e, epoch in enumerate(F):
        file.write(epoch)
        np.testing.assert_array_equal(np.load(tmp_path / "F.npy"), F[: e + 1])
    assert (tmp_path / "F.npy").stat().st_size < F.nbytes + 256


def test_bad_stores() -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="store_dtype='int8'"):
        DatasetCartography(GaussianNB(), store_dtype="int8").fit(X, y)
    with pytest.raises(TypeError, match="store=3"):
        DatasetCartography(GaussianNB(), store=3).fit(X, y)
    watched = CartographyCallback(X, y, store_dtype="int8")
    with pytest.raises(ValueError, match="store_dtype='int8'"):
        SoftLabelClassifier(max_epochs=1, callbacks=[watched]).fit(X, y)


def test_callback_for_skorch() -> None:
    import torch
    from skorch import NeuralNetClassifier

    X, y = load_iris(return_X_y=True)
    X = X.astype(np.float32)
    watch = [CartographyCallback(X, y), CartographyCallback(X, np.eye(3)[y])]
    beside = CartographyCallback(X[:9], y[:9], soft_labels=np.eye(3)[y][:9])
    torch.manual_seed(0)
    net = NeuralNetClassifier(
        torch.nn.Linear(4, 3),
        criterion=torch.nn.CrossEntropyLoss,
        max_epochs=4,
        lr=0.05,
        train_split=None,
        verbose=0,
        callbacks=[*watch, beside],
    ).fit(X, y)
    label, soft = (callback.dynamics_ for callback in watch)
    assert label.n_epochs == 4
    np.testing.assert_allclose(label.last_proba, net.predict_proba(X), atol=1e-7)
    np.testing.assert_allclose(label.confidence, soft.confidence, atol=1e-12)
    assert beside.dynamics_.soft_confidence.shape == (9,)


def test_explanation_is_complete() -> None:
    X, y = load_iris(return_X_y=True)
    made = DatasetCartography(GaussianNB(), epochs=3).fit(X, y)
    answer = pickle.loads(pickle.dumps(made)).explain()
    assert list(answer.to_frame()) == [
        "index", "reference", "confidence", "variability", "correctness", "forgetting", "entropy",
        "region",
    ]  # fmt: skip
    assert "least confidence" in str(answer)
    assert answer.plot().get_xlabel() == "variability over the epochs"
    with pytest.raises(ValueError, match="kind='alignment'"):
        answer.plot("alignment")
    with pytest.raises(NotFittedError):
        DatasetCartography().explain()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"estimator": KNeighborsClassifier()},
            TypeError,
            "staged_predict_proba.*partial_fit.*warm",
        ),
        ({"reference": "teacher"}, ValueError, "reference='teacher'"),
        ({"reference": "mode"}, ValueError, "needs soft_labels"),
        ({"epochs": 0}, ValueError, "epochs=0"),
    ],
)
def test_fit_errors(arguments: dict, error: type, message: str) -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(error, match=message):
        DatasetCartography(**arguments).fit(X, y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"F": F[0]}, "F has shape"),
        ({"F": 2 * F}, r"F\[0\] must have non-negative rows"),
        ({"reference": [0, 1]}, "reference must be 3 whole numbers"),
        ({"reference": [0, 1, 5]}, "reference must be columns"),
        ({"soft_labels": P[:, :2] / P[:, :2].sum(axis=1, keepdims=True)}, "soft labels have shape"),
    ],
)
def test_probability_errors(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DatasetCartography.from_probabilities(**{"F": F, "reference": [0, 1, 2], **arguments})
