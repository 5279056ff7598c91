"""Calibration errors and the Brier decomposition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.explainers import brier_decomposition, calibration_error, reliability_curve

F = np.array(
    [[0.7, 0.2, 0.1], [0.5, 0.4, 0.1], [0.2, 0.5, 0.3], [0.1, 0.85, 0.05], [0.3, 0.3, 0.4]]
)
COUNTS = np.array([[8, 1, 1], [4, 5, 1], [3, 3, 4], [0, 10, 0], [2, 2, 6]])
Y, MODE = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 2, 1, 2])

CONF = np.array([0.95, 0.91, 0.85, 0.72, 0.66, 0.58, 0.55, 0.41])
CORRECT = np.array([1, 1, 0, 1, 1, 0, 1, 0])


def three_classes(conf: np.ndarray) -> np.ndarray:
    """Probabilities of three classes whose largest is the first column."""
    return np.column_stack([conf, (1 - conf) / 2, (1 - conf) / 2])


PROBA, TARGET = three_classes(CONF), np.where(CORRECT == 1, 0, 1)


@st.composite
def predictions(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Soft labels and probabilities of the same shape."""
    n, K, seed = draw(st.integers(1, 40)), draw(st.integers(2, 5)), draw(st.integers(0, 2**31))
    rng = np.random.default_rng(seed)
    grain = draw(st.sampled_from([0.1, 1.0]))
    return rng.dirichlet(np.full(K, grain), n), rng.dirichlet(np.full(K, grain), n)


def reference_error(
    conf: np.ndarray, a: np.ndarray, n_bins: int, norm: str, closed: str = "left"
) -> float:
    """Equal-width error with a loop over the bins and masks from the edges."""
    gaps, shares = [], []
    for b in range(n_bins):
        if closed == "left":
            inside = (np.floor(conf * n_bins) == b) | ((b == n_bins - 1) & (conf == 1))
        else:
            inside = (np.ceil(conf * n_bins) == b + 1) | ((b == 0) & (conf == 0))
        if inside.any():
            gaps.append(abs(conf[inside].mean() - a[inside].mean()))
            shares.append(inside.mean())
    gaps, shares = np.array(gaps), np.array(shares)
    return {"l1": shares @ gaps, "l2": np.sqrt(shares @ gaps**2), "max": gaps.max()}[norm]


def test_reference_values_on_vote_counts() -> None:
    assert calibration_error(Y, F, n_bins=5) == pytest.approx(0.41, abs=1e-12)
    assert calibration_error(MODE, F, n_bins=5) == pytest.approx(0.17, abs=1e-12)
    assert calibration_error(COUNTS, F, n_bins=5) == pytest.approx(0.07, abs=1e-12)
    soft = calibration_error(COUNTS, F, n_bins=5, classwise=True)
    assert soft == pytest.approx(0.07333333333333335, abs=1e-12)
    assert calibration_error(Y, F, n_bins=5, classwise=True) == pytest.approx(0.22, abs=1e-12)


def test_reference_values_on_eight_scores() -> None:
    assert calibration_error(TARGET, PROBA, n_bins=5) == pytest.approx(0.23375, abs=1e-12)
    equal_mass = calibration_error(TARGET, PROBA, n_bins=4, strategy="quantile")
    assert equal_mass == pytest.approx(0.12375, abs=1e-12)
    rms = calibration_error(TARGET, PROBA, n_bins=5, norm="l2")
    assert rms == pytest.approx(0.23912165662412654, abs=1e-12)
    parts = brier_decomposition(CORRECT, CONF, n_bins=5)
    expected = {
        "brier": 0.2042625,
        "reliability": 0.05717916667,
        "resolution": 0.06770833333,
        "uncertainty": 0.234375,
        "within_bin_variance": 0.00291666667,
        "within_bin_covariance": 0.0225,
    }
    assert parts.keys() == expected.keys()
    for name, value in expected.items():
        assert parts[name] == pytest.approx(value, abs=1e-10)


@settings(deadline=None, max_examples=60)
@given(
    predictions(),
    st.integers(1, 20),
    st.sampled_from(["l1", "l2", "max"]),
    st.sampled_from(["left", "right"]),
)
def test_equal_width_agrees_with_a_loop_over_bins(
    pair: tuple[np.ndarray, np.ndarray], n_bins: int, norm: str, closed: str
) -> None:
    P, proba = pair
    pred, conf = proba.argmax(axis=1), proba.max(axis=1)
    hard = np.random.default_rng(len(P)).integers(proba.shape[1], size=len(P))
    for target, a in ((P, P[np.arange(len(P)), pred]), (hard, (pred == hard).astype(float))):
        ours = calibration_error(target, proba, n_bins=n_bins, norm=norm, closed=closed)
        assert ours == pytest.approx(reference_error(conf, a, n_bins, norm, closed), abs=1e-12)


@settings(deadline=None, max_examples=60)
@given(predictions(), st.integers(1, 12))
def test_equal_mass_agrees_with_array_split(
    pair: tuple[np.ndarray, np.ndarray], n_bins: int
) -> None:
    P, proba = pair
    conf = proba.max(axis=1)
    a = P[np.arange(len(P)), proba.argmax(axis=1)]
    order = np.argsort(conf, kind="stable")
    parts = [rows for rows in np.array_split(order, n_bins) if len(rows)]
    expected = sum(len(r) / len(P) * abs(conf[r].mean() - a[r].mean()) for r in parts)
    ours = calibration_error(P, proba, n_bins=n_bins, strategy="quantile")
    assert ours == pytest.approx(expected, abs=1e-12)


@settings(deadline=None, max_examples=60)
@given(predictions(), st.integers(1, 9), st.integers(2, 3))
def test_inequalities_between_errors(
    pair: tuple[np.ndarray, np.ndarray], n_bins: int, merge: int
) -> None:
    P, proba = pair
    ece, rms, mce = (
        calibration_error(P, proba, n_bins=n_bins, norm=n) for n in ("l1", "l2", "max")
    )
    assert -1e-12 <= ece <= rms + 1e-12 <= mce + 2e-12 <= 1 + 2e-12
    finer = calibration_error(P, proba, n_bins=n_bins * merge)
    assert ece <= finer + 1e-12
    order = np.random.default_rng(0).permutation(len(P))
    assert calibration_error(P[order], proba[order], n_bins=n_bins) == pytest.approx(ece, abs=1e-12)
    one = calibration_error(P, proba, n_bins=1)
    a = P[np.arange(len(P)), proba.argmax(axis=1)]
    assert one == pytest.approx(abs(proba.max(axis=1).mean() - a.mean()), abs=1e-12)


@settings(deadline=None, max_examples=60)
@given(predictions(), st.integers(1, 20), st.sampled_from(["uniform", "quantile", "sweep"]))
def test_brier_identity_is_exact(
    pair: tuple[np.ndarray, np.ndarray], n_bins: int, strategy: str
) -> None:
    P, proba = pair
    for classwise in (False, True):
        parts = brier_decomposition(P, proba, n_bins=n_bins, strategy=strategy, classwise=classwise)
        rebuilt = (
            parts["reliability"]
            - parts["resolution"]
            + parts["uncertainty"]
            + parts["within_bin_variance"]
            - parts["within_bin_covariance"]
        )
        assert rebuilt == pytest.approx(parts["brier"], abs=1e-12)
    assert parts["brier"] == pytest.approx(np.mean(((proba - P) ** 2).sum(axis=1)), abs=1e-12)


def test_scores_at_the_ends_stay_in_the_outer_bins() -> None:
    proba = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    for closed in ("left", "right"):
        curve = reliability_curve([0, 0, 0], proba, n_bins=10, closed=closed)
        assert curve["bin"].max() == 9
        assert curve["count"].sum() == 3
    classwise = calibration_error([0, 1, 0], proba, n_bins=10, classwise=True, closed="right")
    assert classwise == pytest.approx((0.5 / 3 + 0.5 / 3) / 2)


def test_ties_can_be_kept_together() -> None:
    conf = np.array([0.5, 0.6, 0.6, 0.6, 0.6, 0.9])
    proba = np.column_stack([conf, 1 - conf])
    target = np.array([0, 0, 1, 0, 1, 0])
    apart = reliability_curve(target, proba, n_bins=3, strategy="quantile")
    together = reliability_curve(target, proba, n_bins=3, strategy="quantile", merge_ties=True)
    assert apart["count"].tolist() == [2, 2, 2]
    assert together["count"].tolist() == [5, 1]


def test_sweep_takes_the_most_bins_that_stay_monotone() -> None:
    rng = np.random.default_rng(3)
    proba = rng.dirichlet(np.ones(4), 300)
    a = (rng.uniform(size=300) < proba.max(axis=1)).astype(int)
    target = np.where(a == 1, proba.argmax(axis=1), proba.argmin(axis=1))
    order = np.argsort(proba.max(axis=1), kind="stable")
    n_bins = 1
    while (np.diff([part.mean() for part in np.array_split(a[order], n_bins + 1)]) >= 0).all():
        n_bins += 1
    assert n_bins > 1
    expected = calibration_error(target, proba, n_bins=n_bins, strategy="quantile")
    assert calibration_error(target, proba, strategy="sweep") == pytest.approx(expected, abs=1e-12)


def test_sweep_of_perfectly_sorted_outcomes_has_one_item_a_bin() -> None:
    conf = np.linspace(0.5, 1, 2000)
    proba = np.column_stack([conf, 1 - conf])
    expected = np.mean(np.abs(conf - (conf > 0.7)))
    found = calibration_error(np.where(conf > 0.7, 0, 1), proba, strategy="sweep")
    assert found == pytest.approx(expected, abs=1e-12)


def test_debiased_error_is_unbiased_where_the_plain_one_is_not() -> None:
    # Calibrated scores, each in a bin of its own: the true error of the 400 simulated sets is 0.
    rng = np.random.default_rng(0)
    squares = {True: [], False: []}
    for _ in range(400):
        conf = rng.choice([0.55, 0.65, 0.75, 0.85, 0.95], size=200)
        target = (rng.uniform(size=200) > conf).astype(int)
        proba = np.column_stack([conf, 1 - conf])
        for debias in (True, False):
            e = calibration_error(target, proba, n_bins=10, norm="l2", debias=debias)
            squares[debias].append(e**2)
    assert np.mean(squares[False]) > 0.003
    assert np.mean(squares[True]) < 0.5 * np.mean(squares[False])


def test_debiased_error_by_hand() -> None:
    conf = np.array([0.6, 0.7, 0.9, 0.95])
    a = np.array([1.0, 0.0, 1.0, 1.0])
    target = np.where(a == 1, 0, 1)
    gap = conf[:2].mean() - a[:2].mean(), conf[2:].mean() - 1
    expected = 0.5 * (gap[0] ** 2 - 0.5 * 0.5 / 1) + 0.5 * gap[1] ** 2
    proba = np.column_stack([conf, 1 - conf])
    found = calibration_error(target, proba, n_bins=5, norm="l2", debias=True)
    assert found == pytest.approx(np.sqrt(max(expected, 0)), abs=1e-12)
    soft = np.array([[0.9, 0.1], [0.5, 0.5], [0.8, 0.2], [1.0, 0.0]])
    gaps = conf[:2].mean() - 0.7, conf[2:].mean() - 0.9
    variances = np.var([0.9, 0.5], ddof=1) / 2, np.var([0.8, 1.0], ddof=1) / 2
    expected = sum(0.5 * (g**2 - v) for g, v in zip(gaps, variances, strict=True))
    found = calibration_error(soft, proba, n_bins=5, norm="l2", debias=True)
    assert found == pytest.approx(np.sqrt(max(expected, 0)), abs=1e-12)
    assert np.isnan(calibration_error([0], [[0.6, 0.4]], norm="l2", debias=True))


def test_integer_weights_are_repetitions() -> None:
    rng = np.random.default_rng(1)
    P, proba = rng.dirichlet(np.ones(3), 30), rng.dirichlet(np.ones(3), 30)
    w = rng.integers(0, 4, 30)
    for classwise in (False, True):
        weighted = calibration_error(P, proba, sample_weight=w, classwise=classwise)
        repeated = calibration_error(
            np.repeat(P, w, axis=0), np.repeat(proba, w, axis=0), classwise=classwise
        )
        assert weighted == pytest.approx(repeated, abs=1e-12)


def test_named_classes() -> None:
    labels = ["ant", "bee", "cow"]
    named = calibration_error(np.array(labels)[Y], F, n_bins=5, labels=labels)
    assert named == pytest.approx(0.41, abs=1e-12)


def test_reliability_curve_adds_up_to_the_error() -> None:
    curve = reliability_curve(COUNTS, F, n_bins=5)
    assert curve["weight"].sum() == pytest.approx(1)
    assert (curve["weight"] * curve["gap"].abs()).sum() == pytest.approx(0.07, abs=1e-12)


def test_agrees_with_netcal_on_hard_labels() -> None:
    metrics = pytest.importorskip("netcal.metrics", reason="netcal isn't installed")
    rng = np.random.default_rng(0)
    proba, y = rng.dirichlet(np.ones(10), 5000), rng.integers(10, size=5000)
    theirs = metrics.ECE(15).measure(proba, y)
    assert calibration_error(y, proba, n_bins=15) == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize(
    ("target", "proba", "arguments", "message"),
    [
        ([0], [[0.5, 0.5]], {"n_bins": 0}, "n_bins=0"),
        ([0], [[0.5, 0.5]], {"strategy": "even"}, "strategy='even'"),
        ([0], [[0.5, 0.5]], {"norm": "l3"}, "norm='l3'"),
        ([0], [[0.5, 0.5]], {"closed": "both"}, "closed='both'"),
        ([0], [[0.5, 0.5]], {"debias": True}, "norm='l2' only"),
        ([0], [[0.5, 0.7]], {}, "proba row 0"),
        ([0, 1], [[0.5, 0.5], [np.nan, 1]], {}, "proba row 1"),
        ([0], [0.5], {}, "allowed: .n_samples, n_classes"),
        ([2], [[0.5, 0.5]], {}, "columns of proba"),
        (["a"], [[0.5, 0.5]], {}, "name the columns with `labels`"),
        ([0, 1], [[0.5, 0.5]], {}, "inconsistent"),
        ([[0.5, 0.25, 0.25]], [[0.5, 0.5]], {}, "3 columns, but proba has 2"),
        ([0], [[0.5, 0.5]], {"sample_weight": [-1]}, "sample_weight"),
        ([0], [[0.5, 0.5]], {"norm": "l2", "debias": True, "sample_weight": [1]}, "equal weight"),
    ],
)
def test_errors_say_what_is_wrong(target: list, proba: list, arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        calibration_error(target, proba, **arguments)


def test_brier_decomposition_checks_scores() -> None:
    with pytest.raises(ValueError, match="proba must be one number"):
        brier_decomposition([1, 0], [0.5, 1.5])
    with pytest.raises(ValueError, match="target must be one number"):
        brier_decomposition([2, 0], [0.5, 0.5])
