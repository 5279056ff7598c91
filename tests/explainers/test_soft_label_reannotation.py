"""What one more vote is worth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import digamma, rel_entr

from equipoise.explainers import expected_vote_gain
from equipoise.testing import vote_counts


def expected_kl(alpha: np.ndarray) -> np.ndarray:
    """E KL(p || mean) under Dir(alpha), by E p log p = mean (psi(alpha + 1) - psi(alpha_0 + 1))."""
    total = alpha.sum(axis=-1, keepdims=True)
    mean = alpha / total
    return (mean * (digamma(alpha + 1) - digamma(total + 1) - np.log(mean))).sum(axis=-1)


@settings(deadline=None, max_examples=40)
@given(vote_counts(), st.sampled_from([0.3, 1.0, 7.0]))
def test_gain_is_the_expected_fall_of_the_divergence(counts: np.ndarray, a: float) -> None:
    K = counts.shape[1]
    alpha = counts + a / K
    mean = alpha / alpha.sum(axis=1, keepdims=True)
    after = expected_kl(alpha[:, None, :] + np.eye(K))  # (n, K) by next vote
    gain = expected_vote_gain(counts, smoothing=a)
    np.testing.assert_allclose(gain, expected_kl(alpha) - (mean * after).sum(axis=1), atol=1e-12)
    assert (gain > 0).all()


def test_gain_in_a_simulation() -> None:
    """Opinions from the posterior of three votes; estimates before and after one vote more."""
    rng = np.random.default_rng(0)
    alpha = np.array([2.0, 1.0, 0.0]) + 1 / 3
    P = rng.dirichlet(alpha, 200_000)
    vote = (rng.uniform(size=(len(P), 1)) > P.cumsum(axis=1)).sum(axis=1)
    before = alpha / alpha.sum()
    after = (alpha + np.eye(3)[vote]) / (alpha.sum() + 1)
    fall = rel_entr(P, before).sum(axis=1) - rel_entr(P, after).sum(axis=1)
    error = fall.std() / np.sqrt(len(P))
    assert abs(fall.mean() - expected_vote_gain([[2, 1, 0]])[0]) < 4 * error


def test_errors_say_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="must be vote counts"):
        expected_vote_gain([[0.5, 0.5]])
    with pytest.raises(ValueError, match="no label in row 1"):
        expected_vote_gain([[3, 1], [0, 0]])
    with pytest.raises(ValueError, match="smoothing"):
        expected_vote_gain([[3, 1]], smoothing=0)
