"""Conformal sets on votes: thresholds against exact searches, the guarantee, the explanation."""

from fractions import Fraction

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.explainers import VoteConformalSets
from equipoise.explainers.soft_labels.conformal import nonconformity

SCORES = ("probability", "cumulative")


def case(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 5))
    F = rng.dirichlet(np.ones(K), n).round(2)
    F[:, 0] += 1 - F.sum(axis=1)
    F = np.abs(F) / np.abs(F).sum(axis=1, keepdims=True)
    return F, rng.multinomial(int(rng.integers(2, 6)), np.ones(K) / K, n)


@settings(deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 15),
    st.sampled_from(["0.05", "0.2", "0.5", "0.9"]),
    st.sampled_from([None, "0.5", "1"]),
    st.sampled_from(SCORES),
)
def test_threshold_is_the_least_that_does_it(
    seed: int, n: int, alpha: str, share: str | None, score: str
) -> None:
    F, votes = case(seed, n)
    model = VoteConformalSets(
        float(alpha), share=None if share is None else float(share), score=score
    ).fit(F, votes)
    S = nonconformity(F, score)
    total = int(votes[0].sum())

    def enough(t: float) -> bool:
        """In exact fractions: does t do it for the calibration items, without the test item's?"""
        held = [int(v[s <= t].sum()) for v, s in zip(votes, S, strict=True)]
        if share is None:
            return Fraction(sum(held), total * (n + 1)) >= 1 - Fraction(alpha)
        good = sum(Fraction(h, total) >= Fraction(share) for h in held)
        return Fraction(good, n + 1) >= 1 - Fraction(alpha)

    possible = [t for t in np.unique(S) if enough(t)]
    assert model.threshold_ == (possible[0] if possible else np.inf)
    inside = model.predict(F)
    np.testing.assert_array_equal(inside, S <= model.threshold_)


def test_cumulative_scores_by_hand() -> None:
    S = nonconformity(np.array([[0.2, 0.5, 0.3]]), "cumulative")
    np.testing.assert_allclose(S, [[1.0, 0.5, 0.8]])


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("share", [None, 0.7])
def test_coverage_is_kept_by_a_wrong_model(share: float | None, score: str) -> None:
    rng = np.random.default_rng(0)
    alpha, n, reached, sizes = 0.2, 19, [], []
    for _ in range(1500):
        q = rng.dirichlet(np.full(4, 0.5), n + 1)
        votes = rng.multinomial(6, q)
        F = q**3 / (q**3).sum(axis=1, keepdims=True)  # far too sure
        model = VoteConformalSets(alpha, share=share, score=score).fit(F[:n], votes[:n])
        inside = model.predict(F[n:])[0]
        covered = votes[n, inside].sum() / 6
        reached.append(covered if share is None else covered >= share)
        sizes.append(inside.sum())
    error = np.std(reached) / np.sqrt(len(reached))
    assert np.mean(reached) > 1 - alpha - 3 * error
    # Not by taking everything: with 19 items the excess is at most 1 / 20, and that of ties.
    assert np.mean(sizes) < 3.5
    if share is None and score == "probability":
        assert np.mean(reached) < 1 - alpha + 0.05 + 3 * error


def test_hard_labels_are_split_conformal_prediction() -> None:
    rng = np.random.default_rng(1)
    F = rng.dirichlet(np.ones(3), 99)
    y = rng.integers(3, size=99)
    expected = np.sort(1 - F[np.arange(99), y])[89]  # the 90th of 99 for 90 %
    for share in (None, 1.0):
        model = VoteConformalSets(0.1, share=share).fit(F, y)
        assert model.threshold_ == expected


def test_too_few_items_take_in_every_class() -> None:
    model = VoteConformalSets(0.05).fit([[0.9, 0.1]] * 10, [[5, 5]] * 10)
    assert model.threshold_ == np.inf
    assert model.predict([[1.0, 0.0]]).all()


def test_explanation_counts_votes() -> None:
    rng = np.random.default_rng(2)
    F = rng.dirichlet(np.ones(5), 600)
    votes = rng.multinomial(8, F)
    for share in (None, 0.9):
        model = VoteConformalSets(share=share).fit(F[:300], votes[:300])
        answer = model.explain(F[300:], votes[300:])
        frame = answer.to_frame()
        inside = model.predict(F[300:])
        share_held = (votes[300:] * inside).sum(axis=1) / 8
        np.testing.assert_allclose(frame["votes_covered"], share_held, atol=1e-12)
        assert (frame["size"] == inside.sum(axis=1)).all()
        assert frame["tenth"].value_counts().tolist() == [30] * 10
        assert f"{share_held.mean():.1%} of the votes" in str(answer)
        for kind in ("size", "coverage"):
            ax = answer.plot(kind)
            assert len(ax.lines[-1].get_xdata()) == 10
            plt.close(ax.figure)


def test_errors_say_what_is_wrong() -> None:
    F, votes = [[0.5, 0.5]] * 3, [[1, 2]] * 3
    for parameters in ({"alpha": 0}, {"alpha": 1.0}, {"share": 0.0}, {"score": "margin"}):
        with pytest.raises(ValueError, match=f"'{next(iter(parameters))}' parameter"):
            VoteConformalSets(**parameters).fit(F, votes)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        VoteConformalSets().fit(F, votes[:2])
    with pytest.raises(ValueError, match="proba has 3 columns; expected 2"):
        VoteConformalSets().fit(F, votes).predict([[0.2, 0.3, 0.5]])
