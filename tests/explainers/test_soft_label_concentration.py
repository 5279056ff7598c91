"""The Dirichlet-multinomial likelihood of votes around a model, against scipy and simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import dirichlet_multinomial, multinomial

from equipoise.explainers import opinion_concentration


def votes_around(s: float, n: int, votes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    F = rng.dirichlet(np.ones(3), n)
    q = F if np.isinf(s) else np.array([rng.dirichlet(s * row) for row in F])
    return rng.multinomial(votes, q / q.sum(axis=1, keepdims=True)), F


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from([0.3, 3.0, 30.0]), st.integers(2, 9))
def test_no_concentration_has_more_likelihood_in_scipy(seed: int, s: float, votes: int) -> None:
    counts, F = votes_around(s, 25, votes, seed)

    def scipy_likelihood(s: float) -> float:
        return float(
            sum(
                dirichlet_multinomial.logpmf(c, s * f, c.sum())
                for c, f in zip(counts, F, strict=True)
            )
        )

    found = opinion_concentration(counts, F)
    plain = sum(multinomial.logpmf(c, c.sum(), f) for c, f in zip(counts, F, strict=True))
    assert found.multinomial_log_likelihood == pytest.approx(plain, rel=1e-9)
    best = max(scipy_likelihood(t) for t in np.geomspace(1e-3, 1e5, 120))
    assert found.log_likelihood >= best - 1e-6
    if np.isfinite(found.concentration):
        at = scipy_likelihood(found.concentration)
        assert found.log_likelihood == pytest.approx(at, rel=1e-9)
        assert found.correlation == pytest.approx(1 / (1 + found.concentration))
    else:
        assert (found.correlation, found.p_value) == (0.0, 1.0)


@pytest.mark.parametrize("s", [0.5, 4.0, 20.0])
def test_the_truth_is_found(s: float) -> None:
    # 4000 items give log s a standard error below 0.04 in all three cases.
    found = opinion_concentration(*votes_around(s, 4000, 12, seed=1))
    assert np.log(found.concentration) == pytest.approx(np.log(s), abs=0.12)
    assert found.p_value < 1e-6


def test_votes_drawn_from_the_model_show_no_scatter() -> None:
    p_values = [
        opinion_concentration(*votes_around(np.inf, 200, 8, seed)).p_value for seed in range(200)
    ]
    # Half of the tests end at the border; 5 % are below 0.05, of 200 at most 21 at 3 deviations.
    assert np.mean(np.array(p_values) < 0.05) < 0.105
    assert 0.35 < np.mean(np.array(p_values) == 1) < 0.75


def test_impossible_votes_are_clipped_not_infinite() -> None:
    found = opinion_concentration([[1, 3], [4, 0]], [[1.0, 0.0], [1.0, 0.0]])
    assert np.isfinite(found).all()


def test_errors_say_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="must be vote counts"):
        opinion_concentration([[1, 0], [0, 1]], [[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(ValueError, match="2 columns, but proba has 3"):
        opinion_concentration([[1, 3]], [[0.5, 0.25, 0.25]])
