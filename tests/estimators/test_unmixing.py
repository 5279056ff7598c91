"""VCA, N-FINDR, fully constrained least squares, and matching."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from equipoise.datasets import make_convex_mixture
from equipoise.estimators import (
    FCLSUnmixer,
    abundance_rmse,
    fcls,
    match_endmembers,
    nfindr,
    spectral_angle,
    vca,
)
from equipoise.testing import check_simplex_code


def nearest_on_faces(x, W):
    """The nearest mixture by trying every face of the simplex."""
    K, best, value = len(W), None, np.inf
    for size in range(1, K + 1):
        for face in combinations(range(K), size):
            E = W[list(face)]
            system = np.block(
                [[E @ E.T, np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]]
            )
            s = np.linalg.lstsq(system, np.append(E @ x, 1.0), rcond=None)[0][:size]
            distance = np.linalg.norm(x - s @ E)
            if (s >= -1e-12).all() and distance < value - 1e-13:
                value, best = distance, np.zeros(K)
                best[list(face)] = s
    return best


def test_fcls_reference():
    Y = [[0.9, 0.4, -0.1], [2, 0, 0], [0, 0, 0]]
    expected = [[0.75, 0.25, 0], [1, 0, 0], [1 / 3] * 3]
    np.testing.assert_allclose(fcls(Y, np.eye(3)), expected, atol=1e-15)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 5), st.integers(0, 10_000), st.sampled_from([1e-3, 1.0, 1e4]))
def test_fcls_against_every_face(K, seed, scale):
    rng = np.random.default_rng(seed)
    W = scale * rng.uniform(size=(K, 6))
    X = rng.dirichlet(np.ones(K), size=4) @ W + 0.3 * scale * rng.standard_normal((4, 6))
    A = fcls(X, W)
    for x, a in zip(X, A, strict=True):
        np.testing.assert_allclose(a, nearest_on_faces(x / scale, W / scale), atol=1e-8)
    slope = (A @ W - X) @ W.T / scale**2
    level = (A * slope).sum(axis=1, keepdims=True)
    assert (slope - level).min() > -1e-8  # multipliers
    assert np.abs(np.where(A > 0, slope - level, 0)).max() < 1e-8
    np.testing.assert_allclose(A.sum(axis=1), 1, atol=1e-14)
    assert A.min() >= 0


def test_fcls_recovers_noiseless_mixtures():
    mixture = make_convex_mixture(300, 12, 6, noise=0, random_state=0)
    np.testing.assert_allclose(fcls(mixture.data, mixture.components), mixture.weights, atol=1e-8)
    many = make_convex_mixture(50, 60, 40, noise=0, random_state=0)  # beyond the full-support start
    np.testing.assert_allclose(fcls(many.data, many.components), many.weights, atol=1e-8)


def test_fcls_with_equal_endmembers_and_an_offset():
    W = np.array([[1.0, 0], [1.0, 0], [0, 1.0]])
    A = fcls([[0.5, 0.5], [2, -1]], W)
    np.testing.assert_allclose(A[:, :2].sum(axis=1), [0.5, 1], atol=1e-6)
    mixture = make_convex_mixture(50, 8, 3, random_state=1)
    shifted = fcls(mixture.data + 1e4, mixture.components + 1e4)
    np.testing.assert_allclose(shifted, fcls(mixture.data, mixture.components), atol=1e-7)


def test_fcls_threads_give_the_same():
    from sklearn import config_context

    mixture = make_convex_mixture(20_000, 30, 3, random_state=0)
    expected = fcls(mixture.data, mixture.components)
    with config_context(working_memory=1):
        found = fcls(mixture.data, mixture.components, n_jobs=2)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_fcls_agrees_with_scipy():
    from scipy.optimize import nnls

    mixture = make_convex_mixture(100, 20, 3, noise=0.3, random_state=0)
    W = mixture.components
    weight = 1e6  # the usual trick: the sum as one more, heavy band
    stacked = np.vstack([W.T, weight * np.ones(3)])
    penalised = np.array([nnls(stacked, np.append(x, weight))[0] for x in mixture.data])
    np.testing.assert_allclose(fcls(mixture.data, W), penalised, atol=1e-5)


def test_unmixer():
    mixture = make_convex_mixture(40, 5, 3, random_state=0)
    unmixer = clone(FCLSUnmixer(mixture.components)).fit(mixture.data)
    Z = unmixer.transform(mixture.data)
    np.testing.assert_array_equal(Z, fcls(mixture.data, mixture.components))
    np.testing.assert_allclose(unmixer.inverse_transform(Z), Z @ mixture.components)
    check_simplex_code(unmixer, mixture.data)
    frame = unmixer.set_output(transform="pandas").transform(mixture.data)
    assert list(frame.columns) == ["fclsunmixer0", "fclsunmixer1", "fclsunmixer2"]
    with pytest.raises(ValueError, match="features"):
        FCLSUnmixer(np.eye(3)).fit(mixture.data)
    with pytest.raises(NotFittedError):
        FCLSUnmixer(np.eye(3)).transform(np.eye(3))
    with pytest.raises(ValueError, match="at least 2"):
        FCLSUnmixer(np.ones((1, 3))).fit(np.eye(3))


@pytest.mark.parametrize("method", [vca, nfindr])
@pytest.mark.parametrize("noise", [0.0, 1e-4])
def test_pure_rows_are_found(method, noise):
    mixture = make_convex_mixture(300, 20, 4, noise=noise, random_state=3)
    X = np.vstack([mixture.data, mixture.components])
    endmembers, indices = method(X, 4, random_state=0)
    np.testing.assert_array_equal(endmembers, X[indices])
    assert set(indices) == {300, 301, 302, 303}


def test_nfindr_finds_the_largest_simplex():
    X = np.random.default_rng(0).standard_normal((14, 3))
    _, indices = nfindr(X, 3, n_init=5, random_state=0)
    scores = (X - X.mean(axis=0)) @ np.linalg.svd(X - X.mean(axis=0))[2][:2].T
    volume = {
        rows: abs(np.linalg.det(np.column_stack([np.ones(3), scores[list(rows)]])))
        for rows in combinations(range(14), 3)
    }
    assert set(indices) == set(max(volume, key=volume.get))


def test_pure_rows_are_repeatable_and_volume_grows():
    X = make_convex_mixture(200, 10, 3, random_state=0).data
    np.testing.assert_array_equal(vca(X, 3, random_state=5)[1], vca(X, 3, random_state=5)[1])

    def volume(rows):
        return np.sqrt(np.linalg.det((rows[1:] - rows[0]) @ (rows[1:] - rows[0]).T))

    once = [volume(vca(X, 3, random_state=s)[0]) for s in range(5)]
    assert volume(vca(X, 3, n_init=20, random_state=0)[0]) >= np.mean(once) - 1e-12


@pytest.mark.parametrize("method", [vca, nfindr])
def test_pure_rows_refuse(method):
    line = np.outer(np.arange(10.0), np.ones(4))
    with pytest.raises(ValueError, match="rank 1"):
        method(line, 3)
    with pytest.raises(ValueError, match="n_components"):
        method(line, 1)
    with pytest.raises(ValueError, match="n_init"):
        method(line, 2, n_init=0)
    with pytest.raises(ValueError, match="NaN"):
        method(np.full((5, 4), np.nan), 3)


def test_angle_reference_and_precision():
    assert spectral_angle([1, 2, 3], [2, 2, 1]) == pytest.approx(0.6405223126794245, rel=1e-14)
    assert spectral_angle([1, 0], [1, 1e-9]) == pytest.approx(1e-9, rel=1e-12)
    assert spectral_angle([1, 0], [-1, 0]) == pytest.approx(np.pi)
    A, B = np.random.default_rng(0).standard_normal((2, 5, 4))
    norms = np.linalg.norm(A, axis=1) * np.linalg.norm(B, axis=1)
    expected = np.arccos((A * B).sum(axis=1) / norms)
    np.testing.assert_allclose(spectral_angle(A, B), expected, rtol=1e-10)
    for bad in ([0, 0], [np.nan, 1]):
        with pytest.raises(ValueError, match=r"zeros|NaN"):
            spectral_angle(bad, [1, 0])


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 5), st.integers(0, 1000), st.sampled_from(["angle", "rmse"]))
def test_matching_against_all_permutations(K, seed, metric):
    rng = np.random.default_rng(seed)
    E, T = rng.uniform(0.1, 1, size=(2, K, 6))
    order, distance = match_endmembers(E, T, metric=metric)

    def total(permuted):
        if metric == "angle":
            return np.sum(spectral_angle(permuted, T))
        return np.sqrt(((permuted - T) ** 2).mean(axis=1)).sum()

    assert distance.sum() == pytest.approx(total(E[order]))
    assert distance.sum() == pytest.approx(min(total(E[list(p)]) for p in permutations(range(K))))
    Z, true = rng.dirichlet(np.ones(K), size=(2, 7))
    expected = min(
        np.sqrt(((Z[:, p] - true) ** 2).mean()) for p in map(list, permutations(range(K)))
    )
    assert abundance_rmse(Z, true) == pytest.approx(expected)


def test_matching_of_collapsed_components_and_bad_input():
    same = np.tile([0.3, 0.5, 0.2], (3, 1))
    assert np.isnan(match_endmembers(same, np.eye(3) + 0.1).distance).all()
    with pytest.raises(ValueError, match="shape"):
        match_endmembers(np.eye(2), np.eye(3))
    with pytest.raises(ValueError, match="metric"):
        match_endmembers(np.eye(2), np.eye(2), metric="cosine")
    with pytest.raises(ValueError, match="shape"):
        abundance_rmse(np.eye(2), np.eye(3))
    with pytest.raises(ValueError, match="NaN"):
        abundance_rmse([[np.nan, 1]], [[0, 1]])


def test_agrees_with_pysptools():
    amaps = pytest.importorskip(
        "pysptools.abundance_maps.amaps", reason="pysptools isn't installed"
    )
    mixture = make_convex_mixture(60, 20, 3, noise=0.1, random_state=0)
    try:
        peer = amaps.FCLS(mixture.data, mixture.components)
    except Exception as error:
        pytest.skip(f"pysptools fails on this NumPy: {error!r}")
    # An interior-point solver stops at about 1e-4.
    np.testing.assert_allclose(fcls(mixture.data, mixture.components), peer, atol=2e-3)
