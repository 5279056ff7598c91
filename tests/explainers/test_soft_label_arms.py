"""Arms: target matrices that differ in one thing only."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import entropy, multivariate_hypergeom

from equipoise.explainers import entropy_matched_labels, make_label_arms
from equipoise.explainers.soft_labels.arms import matching_eps

COUNTS = np.array([[8, 1, 1], [4, 5, 1], [3, 3, 4], [0, 10, 0], [2, 2, 6]])
Y = np.array([0, 0, 1, 1, 2])
EVERYTHING = [
    "hard_orig", "hard_mode", "soft_human", "soft_orig_mode", "label_smooth", "entropy_matched",
    "shuffled", "class_mean", "offmode_shuffled", "teacher", "teacher_matched", "sampled",
    "crowd_3",
]  # fmt: skip


@st.composite
def voted(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int]:
    n, K, seed = draw(st.integers(2, 30)), draw(st.integers(2, 5)), draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(draw(st.integers(3, 11)), rng.dirichlet(np.full(K, 0.7), n))
    return counts, rng.integers(K, size=n), seed


def test_reference_arms() -> None:
    arms = make_label_arms(COUNTS, Y)
    expected = [[0.8, 0.1, 0.1], [0.5, 0.4, 0.1], [0.3, 0.4, 0.3], [0, 1, 0], [0.2, 0.2, 0.6]]
    np.testing.assert_allclose(arms["soft_orig_mode"], expected, atol=1e-15)
    eps = [0.3, 0.5906592818652863, 0.9, 0, 0.6]
    found = 1 - (arms["entropy_matched"].max(axis=1) - arms["entropy_matched"].min(axis=1))
    np.testing.assert_allclose(found, eps, atol=1e-12)
    smooth = arms["label_smooth"]
    np.testing.assert_allclose(
        1 - smooth.max(axis=1) + smooth.min(axis=1), 0.3656179857417411, atol=1e-12
    )


@pytest.mark.parametrize(
    ("H", "K", "eps"),
    [
        (0.5, 10, 0.09992905757897999),
        (0.5, 3, 0.20880317370522888),
        (1.0, 10, 0.24114865971681904),
        (0.0, 4, 0.0),
        (np.log(4), 4, 1.0),
        (9.0, 4, 1.0),
    ],
)
def test_reference_eps(H: float, K: int, eps: float) -> None:
    assert matching_eps(np.array([H]), K)[0] == pytest.approx(eps, abs=1e-14)


@settings(deadline=None, max_examples=40)
@given(st.floats(0.001, 0.999), st.integers(2, 12))
def test_eps_agrees_with_a_root_finder(share: float, K: int) -> None:
    H = share * np.log(K)

    def gap(eps: float) -> float:
        row = np.full(K, eps / K)
        row[0] += 1 - eps
        return entropy(row) - H

    row = entropy_matched_labels([1], [H], K)[0]
    assert entropy(row) == pytest.approx(H, abs=1e-10)
    assert row.argmax() == 1
    assert K * row[0] == pytest.approx(brentq(gap, 0, 1, xtol=1e-14), abs=1e-6)


@settings(deadline=None, max_examples=40)
@given(voted())
def test_what_each_arm_keeps(case: tuple[np.ndarray, np.ndarray, int]) -> None:
    counts, y, seed = case
    P = counts / counts.sum(axis=1, keepdims=True)
    n, K = P.shape
    teacher = np.random.default_rng(seed).dirichlet(np.ones(K), n)
    arms = make_label_arms(counts, y, EVERYTHING, random_state=seed, teacher=teacher)
    for T in arms.values():
        assert (T >= 0).all()
        np.testing.assert_allclose(T.sum(axis=1), 1, atol=1e-12)
    rows, m = np.arange(n), arms["hard_mode"].argmax(axis=1)
    np.testing.assert_array_equal(P[rows, m], P.max(axis=1))
    tied_with_y = P[rows, y] == P.max(axis=1)
    np.testing.assert_array_equal(m[tied_with_y], y[tied_with_y])
    np.testing.assert_array_equal(arms["hard_orig"].argmax(axis=1), y)
    np.testing.assert_array_equal(arms["soft_human"], P)

    swapped = arms["soft_orig_mode"]
    np.testing.assert_array_equal(np.sort(swapped, axis=1), np.sort(P, axis=1))
    np.testing.assert_array_equal(swapped[rows, y], P.max(axis=1))
    H = entropy(P, axis=1)
    np.testing.assert_allclose(entropy(swapped, axis=1), H, atol=1e-12)
    np.testing.assert_allclose(entropy(arms["entropy_matched"], axis=1), H, atol=1e-8)
    assert entropy(arms["label_smooth"], axis=1).mean() == pytest.approx(H.mean(), abs=1e-8)
    for k in np.unique(m):
        group = m == k
        np.testing.assert_allclose(
            arms["shuffled"][group].mean(axis=0), P[group].mean(axis=0), atol=1e-12
        )
        np.testing.assert_array_equal(
            arms["shuffled"][group][np.lexsort(arms["shuffled"][group].T)],
            P[group][np.lexsort(P[group].T)],
        )
        np.testing.assert_allclose(
            arms["class_mean"][group], np.tile(P[group].mean(axis=0), (group.sum(), 1)), atol=1e-12
        )
    off = arms["offmode_shuffled"]
    np.testing.assert_allclose(off[rows, m], P[rows, m], atol=1e-15)
    for name in ("teacher", "teacher_matched"):
        np.testing.assert_array_equal(arms[name][rows, m], arms[name].max(axis=1))
    np.testing.assert_allclose(
        np.sort(arms["teacher"], axis=1), np.sort(teacher, axis=1), atol=1e-14
    )
    if 0.05 * np.log(K) < H.mean() < 0.9 * np.log(K):
        matched = entropy(arms["teacher_matched"], axis=1).mean()
        assert matched == pytest.approx(H.mean(), abs=1e-6)
    drawn = arms["crowd_3"] * 3
    np.testing.assert_allclose(drawn, np.rint(drawn), atol=1e-9)
    assert (np.rint(drawn) <= counts).all()
    assert (P[arms["sampled"] == 1] > 0).all()


@settings(deadline=None, max_examples=20)
@given(voted())
def test_no_shift_makes_pairs_of_arms_equal(case: tuple[np.ndarray, np.ndarray, int]) -> None:
    counts, _, _ = case
    arms = make_label_arms(counts, counts.argmax(axis=1))
    np.testing.assert_array_equal(arms["hard_orig"], arms["hard_mode"])
    np.testing.assert_array_equal(arms["soft_human"], arms["soft_orig_mode"])


def test_original_mode_moves_synthetic_arms() -> None:
    human = make_label_arms(COUNTS, Y, random_state=0)
    original = make_label_arms(COUNTS, Y, random_state=0, mode="original")
    for name in ("hard_orig", "hard_mode", "soft_human", "soft_orig_mode"):
        np.testing.assert_array_equal(human[name], original[name])
    for name in ("label_smooth", "entropy_matched"):
        np.testing.assert_array_equal(original[name].argmax(axis=1), Y)
        np.testing.assert_allclose(
            np.sort(original[name], axis=1), np.sort(human[name], axis=1), atol=1e-15
        )


def test_each_random_arm_has_its_own_stream() -> None:
    rng = np.random.default_rng(0)
    counts = rng.multinomial(9, rng.dirichlet(np.ones(4), 50))
    y = counts.argmax(axis=1)
    alone = make_label_arms(counts, y, ["shuffled"], random_state=5)["shuffled"]
    among = make_label_arms(counts, y, ["sampled", "crowd_2", "shuffled"], random_state=5)
    np.testing.assert_array_equal(alone, among["shuffled"])
    other = make_label_arms(counts, y, ["shuffled"], random_state=6)["shuffled"]
    assert not np.array_equal(alone, other)


def test_crowds_are_hypergeometric() -> None:
    counts = np.tile([5, 3, 1], (20_000, 1))
    drawn = np.rint(4 * make_label_arms(counts, np.zeros(20_000, int), ["crowd_4"], 0)["crowd_4"])
    law = multivariate_hypergeom([5, 3, 1], 4)
    np.testing.assert_allclose(drawn.mean(axis=0), law.mean(), atol=0.03)
    np.testing.assert_allclose(np.cov(drawn.T), law.cov(), atol=0.03)
    share = (drawn == [2, 1, 1]).all(axis=1).mean()
    assert share == pytest.approx(law.pmf([2, 1, 1]), abs=0.015)
    with pytest.raises(ValueError, match="10 votes an item were asked for, but item 0 has 9"):
        make_label_arms(counts[:3], [0, 0, 0], ["crowd_10"])


def test_own_arms() -> None:
    def half(P: np.ndarray, modes: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        return (P + np.eye(3)[modes]) / 2

    given = np.full((5, 3), 1 / 3)
    arms = make_label_arms(COUNTS, Y, {"half": half, "flat": given, "soft_human": None})
    assert list(arms) == ["half", "flat", "soft_human"]
    np.testing.assert_allclose(arms["half"][0], [0.9, 0.05, 0.05])
    np.testing.assert_array_equal(arms["flat"], given)


def test_named_classes() -> None:
    names = np.array(["cat", "ant", "bee"])
    arms = make_label_arms(COUNTS, names[Y], classes=names)
    np.testing.assert_array_equal(
        arms["soft_orig_mode"], make_label_arms(COUNTS, Y)["soft_orig_mode"]
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"arms": "all"}, "arms='all'"),
        ({"arms": ["mixup"]}, "arm 'mixup' is not known"),
        ({"arms": ["teacher"]}, "need `teacher`"),
        ({"arms": ["teacher"], "teacher": np.full((4, 3), 1 / 3)}, r"shape \(4, 3\)"),
        ({"arms": {"own": np.ones((5, 3))}}, "arm 'own' must have non-negative rows"),
        ({"arms": {"own": np.ones((5, 2))}}, r"arm 'own' has shape \(5, 2\)"),
        ({"counts_or_P": COUNTS / 10, "arms": ["crowd_2"]}, "needs vote counts"),
        ({"mode": "model"}, "mode='model'"),
        ({"y": [0, 1]}, "y has 2 labels"),
        ({"y": [0, 1, 2, 3, 4]}, "3 is not among the classes"),
    ],
)
def test_errors_say_what_is_wrong(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_label_arms(**{"counts_or_P": COUNTS, "y": Y, **arguments})


def test_entropy_matched_labels_checks_its_arguments() -> None:
    with pytest.raises(ValueError, match="K=1"):
        entropy_matched_labels([0], [0.1], 1)
    with pytest.raises(ValueError, match="from 0 to 2"):
        entropy_matched_labels([3], [0.1], 3)
    with pytest.raises(ValueError, match="H must be finite"):
        entropy_matched_labels([0], [np.nan], 3)
