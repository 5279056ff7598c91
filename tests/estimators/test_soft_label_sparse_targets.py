"""Soft labels on many classes: sparse targets train networks as dense ones do, in less memory."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_matrix, csr_array, csr_matrix
from skorch import NeuralNet
from torch import nn

from equipoise.estimators import SoftLabelClassifier
from equipoise.estimators.soft_labels.sparse_targets import few_a_row, sparse_targets


def many_classes(n: int = 60, K: int = 12, votes: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    counts = np.zeros((n, K), dtype=int)
    for row in counts:
        np.add.at(row, rng.choice(rng.choice(K, 3, replace=False), votes), 1)
    return rng.normal(size=(n, 4)), counts


def network(**parameters: object) -> SoftLabelClassifier:
    settings = {"hidden_layer_sizes": (8,), "max_epochs": 4, "random_state": 0, "lr": 0.01}
    return SoftLabelClassifier(**{**settings, **parameters})


@settings(deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_rows_are_those_of_the_matrix(seed: int, votes: bool) -> None:
    rng = np.random.default_rng(seed)
    n, K = int(rng.integers(1, 9)), int(rng.integers(2, 20))
    counts = rng.integers(0, 4, (n, K)) * (rng.uniform(size=(n, K)) < 0.3)
    counts[:, 0] += 2
    P = counts / counts.sum(axis=1, keepdims=True)
    found = sparse_targets(csr_array(counts if votes else P), None, "y")
    spread = np.zeros((n, K))
    np.add.at(spread, (np.arange(n)[:, None], found.columns), found.P)
    np.testing.assert_allclose(spread, P, atol=1e-15)
    assert found.P.shape[1] == (P > 0).sum(axis=1).max()
    if votes:
        assert found.counts is not None
        np.testing.assert_array_equal(found.counts.sum(axis=1), counts.sum(axis=1))
    else:
        assert found.counts is None


@pytest.mark.parametrize("loss", ["cross_entropy", "reverse_kl", "js", "brier"])
def test_sparse_targets_train_as_dense_ones(loss: str) -> None:
    X, counts = many_classes()
    assert few_a_row(csr_matrix(counts))
    dense = network(loss=loss, early_stopping=True).fit(X, counts)
    y = counts.argmax(axis=1)
    weight = np.arange(1.0, 61)
    for given_y, rest in (
        (csr_matrix(counts), {}),
        (coo_matrix(counts / 4), {}),
        (counts, {"soft_labels": csr_array(counts)}),
    ):
        sparse = network(loss=loss, early_stopping=True).fit(X, given_y, **rest)
        np.testing.assert_allclose(sparse.predict_proba(X), dense.predict_proba(X), atol=1e-6)
        np.testing.assert_allclose(sparse.target_entropy_, dense.target_entropy_, atol=1e-12)
    # Hard labels beside, weights, drawn votes, full batches, partial_fit after a dense start.
    for more in ({}, {"method": "sampled"}, {"solver": "lbfgs"}):
        pair = [
            network(loss=loss, classes=range(12), **more).fit(
                X, y, soft_labels=targets, sample_weight=weight
            )
            for targets in (counts, csr_array(counts))
        ]
        np.testing.assert_allclose(*(m.predict_proba(X) for m in pair), atol=1e-5)
    went_on = [
        network(loss=loss).partial_fit(X, counts).partial_fit(X, targets)
        for targets in (counts, csr_array(counts))
    ]
    np.testing.assert_allclose(*(m.predict_proba(X) for m in went_on), atol=1e-6)
    assert went_on[1].vote_counts_.tolist() == [4] * 60


def test_own_nets_and_modules_take_sparse_targets() -> None:
    X, counts = many_classes()
    net = NeuralNet(
        nn.Linear, criterion=nn.CrossEntropyLoss, module__in_features=4, module__out_features=12
    )
    for estimator in (net, nn.Linear):
        made = SoftLabelClassifier(
            estimator if estimator is net else nn.Linear(4, 12), max_epochs=2, random_state=0
        )
        proba = made.fit(X.astype(np.float32), csr_array(counts)).predict_proba(
            X.astype(np.float32)
        )
        assert proba.shape == (60, 12)


def test_what_needs_all_classes_still_works() -> None:
    X, counts = many_classes()
    for more in ({"track_dynamics": True}, {"vote_smoothing": 1.0}):
        pair = [network(**more).fit(X, targets) for targets in (counts, csr_array(counts))]
        np.testing.assert_allclose(*(m.predict_proba(X) for m in pair), atol=1e-6)


def test_many_classes_take_memory_for_the_votes_only() -> None:
    n, K = 1000, 20_000
    rng = np.random.default_rng(0)
    rows, columns = np.repeat(np.arange(n), 5), rng.integers(K, size=5 * n)
    votes = csr_array((np.ones(5 * n), (rows, columns)), shape=(n, K))
    model = network(hidden_layer_sizes=(2,), max_epochs=1, batch_size=32)
    tracemalloc.start()
    model.fit(rng.normal(size=(n, 3)).astype(np.float32), votes)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < n * K  # bytes: an eighth of the dense matrix in double precision
    assert len(model.classes_) == K


@pytest.mark.parametrize(
    ("entries", "match"),
    [
        ([-1.0, 2.0, 3.0], "y has a negative entry in row 0"),
        ([1.0, np.nan, 3.0], r"y has no label \(NaN\) in row 1"),
        ([1.0, 2.0, np.inf], "y has an infinite entry in row 2"),
        ([1.0, 0.0, 1.0], "y has no label in row 1"),
        ([1.0, 0.7, 2.0], r"y row 1 sums to 0\.7"),
        ([0.5, 0.5, 0.5], "y row 0 sums to"),
    ],
)
def test_errors_say_what_is_wrong(entries: list[float], match: str) -> None:
    y = csr_array((entries, ([0, 1, 2], [3, 4, 5])), shape=(3, 8))
    with pytest.raises(ValueError, match=match):
        network().fit(np.eye(3), y)


def test_lengths_and_classes_are_checked() -> None:
    X, counts = many_classes()
    with pytest.raises(ValueError, match="soft_labels have 59 rows, but y has 60"):
        network(classes=range(12)).fit(X, counts.argmax(axis=1), soft_labels=csr_array(counts[1:]))
    with pytest.raises(ValueError, match="12 columns, but there are 11 classes"):
        network(classes=range(11)).fit(X, csr_array(counts))
