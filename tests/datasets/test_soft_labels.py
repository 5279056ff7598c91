"""Generators with known posteriors, simulated annotators, and loaders of published votes."""

import gzip
import os
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import entropy, multivariate_normal

from equipoise.datasets import (
    fetch_fashion_mnist_h,
    inject_mode_shift,
    load_cifar10h_counts,
    make_ambiguous_digits,
    simulate_annotators,
)
from equipoise.datasets.soft_labels import human_votes as module
from equipoise.datasets.soft_labels.ambiguous_digits import digit_moments

DATA = Path(
    os.environ.get("EQUIPOISE_STUDY_DATA", Path(__file__).parents[2].parent / "shared" / "data")
)
GARMENTS = Path("/usr/share/datasets/fashion-mnist")


@pytest.mark.parametrize("noise", [0.0, 2.0])
def test_gaussian_posterior_is_bayes_rule(noise: float) -> None:
    made = make_ambiguous_digits(30, ambiguity=0.5, noise=noise, random_state=0)
    means, covariance = digit_moments()
    means = 0.5 * means + 0.5 * means.mean(axis=0)
    densities = np.array(
        [
            multivariate_normal(mean, covariance + noise**2 * np.eye(64)).logpdf(made.data)
            for mean in means
        ]
    ).T
    weights = np.exp(densities - densities.max(axis=1, keepdims=True))
    np.testing.assert_allclose(
        made.posterior, weights / weights.sum(axis=1, keepdims=True), atol=1e-9
    )


@pytest.mark.parametrize(
    ("ambiguity", "accuracy", "mean_entropy"),
    [(0.0, 0.992, 0.023), (0.3, 0.937, 0.179), (0.5, 0.795, 0.588), (0.7, 0.512, 1.40)],
)
def test_reference_bayes_accuracies(ambiguity: float, accuracy: float, mean_entropy: float) -> None:
    made = make_ambiguous_digits(20_000, ambiguity=ambiguity, random_state=0)
    # Four standard errors of a share from 20,000 draws, for the reference and for ours.
    tolerance = 4 * np.sqrt(2 * accuracy * (1 - accuracy) / 20_000)
    assert abs(made.posterior.max(axis=1).mean() - accuracy) < tolerance
    assert abs((made.posterior.argmax(axis=1) == made.target).mean() - accuracy) < tolerance
    assert abs(entropy(made.posterior, axis=1).mean() - mean_entropy) < 0.015


@pytest.mark.parametrize("kind", ["gaussian", "mix"])
def test_labels_follow_their_law(kind: str) -> None:
    made = make_ambiguous_digits(20_000, kind=kind, ambiguity=0.5, random_state=1)
    hit = made.posterior[np.arange(20_000), made.target]
    expected = (made.posterior**2).sum(axis=1)
    # The mean of P at the drawn label is the mean of sum P^2; four standard errors.
    assert abs(hit.mean() - expected.mean()) < 4 * hit.std() / np.sqrt(20_000)
    np.testing.assert_allclose(made.posterior.sum(axis=1), 1, atol=1e-12)


def test_blends_stay_between_their_pairs() -> None:
    made = make_ambiguous_digits(300, kind="mix", pairs=[(3, 8), (1, 7)], random_state=0)
    possible = made.posterior > 0
    assert all(set(np.flatnonzero(row)) in ({3, 8}, {1, 7}) for row in possible)
    assert made.data.min() >= 0
    assert made.data.max() <= 16
    whole = make_ambiguous_digits(50, kind="mix", ambiguity=0, random_state=0)
    assert (whole.posterior.max(axis=1) > 0.99).all()


def test_seeds_and_posterior_on_request() -> None:
    a, b = (make_ambiguous_digits(20, kind="mix", random_state=3) for _ in range(2))
    np.testing.assert_array_equal(a.data, b.data)
    assert "posterior" not in make_ambiguous_digits(5, return_posterior=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "blur"}, "kind='blur'"),
        ({"ambiguity": 1}, "ambiguity=1"),
        ({"n_samples": 0}, "n_samples=0"),
        ({"noise": -1}, "noise=-1"),
        ({"pairs": [(1, 2)]}, "pairs is for kind='mix'"),
        ({"kind": "mix", "pairs": [(1, 1)]}, "two different digits"),
    ],
)
def test_generator_errors(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_ambiguous_digits(**arguments)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 9), st.sampled_from(["random", "balanced"]))
def test_votes_are_consistent(seed: int, votes_per_item: int, missing: str) -> None:
    P = np.random.default_rng(seed).dirichlet(np.ones(3), 12)
    made = simulate_annotators(P, 9, votes_per_item, missing=missing, random_state=seed)
    table = made.annotations
    assert not table.duplicated(["task", "worker"]).any()
    np.testing.assert_array_equal(made.counts.sum(axis=1), votes_per_item)
    rebuilt = np.zeros((12, 3), dtype=int)
    for task, label in zip(table["task"], table["label"], strict=True):
        rebuilt[task, label] += 1
    np.testing.assert_array_equal(rebuilt, made.counts)
    np.testing.assert_allclose(made.worker_confusion.sum(axis=2), 1, atol=1e-12)
    if missing == "balanced":
        loads = table.groupby("worker").size()
        assert loads.max() - loads.min() <= 1


def test_annotators_follow_their_confusion() -> None:
    truth = np.random.default_rng(0).integers(3, size=30_000)
    made = simulate_annotators(
        np.eye(3)[truth], 4, 4, bias=[3, 1, 1], spammer_fraction=0.25, random_state=0
    )
    table = made.annotations
    for j in range(4):
        for k in range(3):
            rows = table[(table["worker"] == j) & (truth[table["task"]] == k)]
            shares = np.bincount(rows["label"], minlength=3) / len(rows)
            # Four standard errors of a share from about 10,000 votes.
            np.testing.assert_allclose(shares, made.worker_confusion[j, k], atol=0.02)
    spammer = int(np.argmin(made.worker_skill))
    np.testing.assert_allclose(made.worker_confusion[spammer], 1 / 3, atol=1e-12)


def test_difficulty_leads_to_chance() -> None:
    P = np.eye(2)[np.zeros(20_000, dtype=int)]
    hard = np.r_[np.zeros(10_000), np.ones(10_000)]
    made = simulate_annotators(P, 1, 1, skill=(0.9, 0.9), difficulty=hard, random_state=0)
    shares = made.counts[:10_000, 0].mean(), made.counts[10_000:, 0].mean()
    np.testing.assert_allclose(shares, [0.9, 0.5], atol=0.02)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"P": [[0.5, 0.7]]}, "P must hold one distribution"),
        ({"P": [[1.0]]}, "at least 2 columns"),
        ({"skill": (0.9, 0.5)}, r"skill=\(0.9, 0.5\)"),
        ({"votes_per_item": 21}, "votes_per_item=21"),
        ({"spammer_fraction": 2}, "spammer_fraction=2"),
        ({"missing": "never"}, "missing='never'"),
        ({"difficulty": [2]}, "difficulty must be 1 numbers"),
        ({"bias": [1, 0]}, "at least two of them positive"),
    ],
)
def test_annotator_errors(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        simulate_annotators(**{"P": [[0.5, 0.5]], **arguments})


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.floats(0, 0.5))
def test_mode_shift_takes_the_runner_up(seed: int, rate: float) -> None:
    rng = np.random.default_rng(seed)
    P = np.vstack([rng.dirichlet(np.ones(4), 40), np.eye(4)[rng.integers(4, size=10)]])
    y = P.argmax(axis=1)
    shifted = inject_mode_shift(y, P, rate, random_state=seed)
    changed = np.flatnonzero(shifted != y)
    assert len(changed) == round(rate * 50)
    assert (changed < 40).all()
    for i in changed:
        assert shifted[i] == np.argsort(P[i])[-2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rate": 1.0}, "only 1 items have another possible class"),
        ({"rate": 2}, "rate=2"),
        ({"y": [0, 5]}, "whole numbers from 0 to 2"),
        ({"y": [0.5, 1]}, "whole numbers"),
    ],
)
def test_mode_shift_errors(arguments: dict, message: str) -> None:
    P = [[0.7, 0.1, 0.2], [1.0, 0, 0]]
    with pytest.raises(ValueError, match=message):
        inject_mode_shift(**{"y": [0, 0], "P": P, "rate": 0.5, **arguments})


def write_idx(path: Path, values: np.ndarray) -> None:
    header = bytes([0, 0, 8, values.ndim]) + np.array(values.shape, ">u4").tobytes()
    path.write_bytes(gzip.compress(header + values.astype(np.uint8).tobytes()))


def test_fetched_votes_are_checked_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    images, labels = rng.integers(256, size=(10_000, 2, 2)), rng.integers(10, size=10_000)
    counts = rng.integers(9, size=(10_000, 10))
    write_idx(tmp_path / "t10k-images-idx3-ubyte.gz", images)
    write_idx(tmp_path / "t10k-labels-idx1-ubyte.gz", labels)
    source = tmp_path / "votes.csv"
    np.savetxt(source, counts, fmt="%d", delimiter=",")
    monkeypatch.setattr(module, "VOTES_URL", source.as_uri())
    home = tmp_path / "home"
    with pytest.raises(OSError, match="holds other votes"):
        fetch_fashion_mnist_h(home, tmp_path)
    assert not list(home.glob("*.csv"))
    known = sha256(counts.astype("<i8").tobytes()).hexdigest()
    monkeypatch.setattr(module, "VOTES_SHA256", known)
    for _ in range(2):
        made = fetch_fashion_mnist_h(home, tmp_path)
        np.testing.assert_array_equal(made.counts, counts)
        np.testing.assert_array_equal(made.data, images.reshape(10_000, 4))
        np.testing.assert_array_equal(made.target, labels)
        source.unlink(missing_ok=True)  # the second time it is read from the data home
    short = tmp_path / "short.csv"
    np.savetxt(short, counts[:5], fmt="%d", delimiter=",")
    with pytest.raises(ValueError, match=r"expected whole numbers \(10000, 10\)"):
        fetch_fashion_mnist_h(image_source=tmp_path, path=short)
    (tmp_path / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(b"\x00\x00\x0d\x03" * 9))
    with pytest.raises(ValueError, match="not an IDX file"):
        fetch_fashion_mnist_h(home, tmp_path)


def test_published_fashion_votes() -> None:
    path = DATA / "fashion_mnist_h_counts.csv"
    if not path.exists() or not GARMENTS.exists():
        pytest.skip("needs the study data and Debian's dataset-fashion-mnist")
    made = fetch_fashion_mnist_h(path=path)
    known = sha256(made.counts.astype("<i8").tobytes()).hexdigest()
    assert known == module.VOTES_SHA256
    assert made.data.shape == (10_000, 784)
    assert (made.counts.argmax(axis=1) != made.target).mean() == pytest.approx(0.1798)
    P = made.counts / made.counts.sum(axis=1, keepdims=True)
    assert P.max(axis=1).mean() == pytest.approx(0.7175, abs=5e-4)
    assert entropy(P, axis=1).mean() == pytest.approx(0.819, abs=5e-4)


def test_published_cifar_votes() -> None:
    path = DATA / "cifar10h_counts.npy"
    if not path.exists():
        pytest.skip("needs the study data")
    counts = load_cifar10h_counts(path).counts
    assert counts.sum(axis=1).mean() == pytest.approx(51.1, abs=0.05)
    P = counts / counts.sum(axis=1, keepdims=True)
    assert entropy(P, axis=1).mean() == pytest.approx(0.154, abs=5e-4)
