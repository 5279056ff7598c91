"""The generators for product kernels: their formulas, their truth, their seeds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import kstest, kurtosis

from equipoise.datasets import (
    make_heavy_tail_shift,
    make_polynomial_regression,
    make_squared_exponential,
)


def test_polynomial_target_follows_its_formula():
    bunch = make_polynomial_regression(50, 10, degree=3, random_state=0)
    X = bunch.data[:, :3]
    assert_allclose(bunch.target, (X + X**2 + X**3).sum(axis=1))
    assert bunch.relevant.tolist() == [True] * 3 + [False] * 7
    noisy = make_polynomial_regression(5000, 10, degree=3, noise=0.5, random_state=0)
    clean = make_polynomial_regression(5000, 10, degree=3, random_state=0)
    assert np.std(noisy.target - clean.target) == pytest.approx(0.5, rel=0.05)


def test_squared_exponential_target_follows_its_formula():
    bunch = make_squared_exponential(50, 11, random_state=0)
    assert_allclose(bunch.target, np.exp((bunch.data[:, :3] ** 2).sum(axis=1) - 4))
    assert bunch.relevant.sum() == 3


def test_heavy_tails_are_where_they_should_be():
    bunch = make_heavy_tail_shift(4000, 6, 2, random_state=0)
    assert bunch.shifted.tolist() == [False] * 4 + [True] * 2
    for j in range(6):
        assert kstest(bunch.first[:, j], "norm").pvalue > 1e-3
        law = ("t", (3,)) if bunch.shifted[j] else ("norm", ())
        assert kstest(bunch.second[:, j], law[0], args=law[1]).pvalue > 1e-3
    assert np.abs(np.corrcoef(bunch.second.T) - np.eye(6)).max() < 0.1


def test_wishart_correlations_are_shared_by_both_samples():
    bunch = make_heavy_tail_shift(6000, 6, 3, df=30, covariance="wishart", random_state=0)
    first, second = np.corrcoef(bunch.first.T), np.corrcoef(bunch.second.T)
    assert_allclose(first, second, atol=0.08)
    assert np.abs(first - np.eye(6)).max() > 0.2
    assert_allclose(bunch.first.std(axis=0), 1, atol=0.05)
    assert np.abs(first[:3, 3:]).max() < 0.08
    heavy = make_heavy_tail_shift(6000, 6, 3, covariance="wishart", random_state=0)
    assert np.all(kurtosis(heavy.second[:, 3:]) > 1)
    assert np.all(np.abs(kurtosis(heavy.second[:, :3])) < 0.5)


def test_nothing_or_everything_may_shift():
    assert not make_heavy_tail_shift(5, 3, 0, random_state=0).shifted.any()
    assert make_heavy_tail_shift(5, 3, 3, covariance="wishart", random_state=0).shifted.all()


@pytest.mark.parametrize(
    "make", [make_polynomial_regression, make_squared_exponential, make_heavy_tail_shift]
)
def test_seeds_repeat(make):
    first, again, other = make(random_state=1), make(random_state=1), make(random_state=2)
    for key in first:
        assert_array_equal(first[key], again[key])
    key = "first" if "first" in first else "target"
    assert np.any(first[key] != other[key])


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (make_polynomial_regression, {"n_features": 2}, "n_features"),
        (make_polynomial_regression, {"degree": 0}, "degree"),
        (make_squared_exponential, {"noise": -1.0}, "noise"),
        (make_heavy_tail_shift, {"df": 0}, "df"),
        (make_heavy_tail_shift, {"n_shifted": 21}, "n_shifted"),
        (make_heavy_tail_shift, {"covariance": "toeplitz"}, "covariance"),
    ],
)
def test_bad_parameters_are_refused(make, options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)
