"""Generators of mixtures, and the published scenes where the files are at hand."""

import os
from pathlib import Path

import numpy as np
import pytest

from equipoise.datasets import (
    load_samson_unmixing,
    load_sugar_raman,
    make_convex_mixture,
    make_hyperspectral,
)

DATA = Path(os.environ.get("EQUIPOISE_STUDY_DATA", Path(__file__).parents[3] / "shared" / "data"))


def test_convex_mixture_is_drawn_in_the_documented_order():
    mixture = make_convex_mixture(
        50, 4, 3, concentration=0.5, noise=0.1, pure_fraction=0.2, random_state=7
    )
    rng = np.random.default_rng(7)
    W = rng.uniform(size=(3, 4))
    Z = rng.dirichlet(np.full(3, 0.5), size=50)
    Z[:10] = np.eye(3)[rng.integers(3, size=10)]
    np.testing.assert_array_equal(mixture.components, W)
    np.testing.assert_array_equal(mixture.weights, Z)
    np.testing.assert_array_equal(mixture.data, Z @ W + 0.1 * rng.standard_normal((50, 4)))
    assert make_convex_mixture(nonnegative=False, random_state=0).components.min() < 0
    repeat = [make_convex_mixture(random_state=np.random.RandomState(3)).data for _ in range(2)]
    np.testing.assert_array_equal(*repeat)


def test_hyperspectral_image():
    image = make_hyperspectral((20, 30), n_bands=40, n_endmembers=4, snr_db=20, random_state=0)
    assert image.data.shape == (600, 40) and image.shape == (20, 30)
    np.testing.assert_allclose(image.abundances.sum(axis=1), 1)
    assert image.endmembers.min() >= 0.02 and image.endmembers.max() <= 0.9
    noise = image.data - image.abundances @ image.endmembers
    signal = (image.data**2).mean() - (noise**2).mean()
    assert 10 * np.log10(signal / (noise**2).mean()) == pytest.approx(20, abs=0.5)
    # Smooth: neighbours are alike, and unlike pixels far away.
    maps = image.abundances.reshape(20, 30, 4)
    assert np.abs(np.diff(maps, axis=1)).mean() < 0.5 * np.abs(maps[:, 15:] - maps[:, :15]).mean()
    again = make_hyperspectral((20, 30), n_bands=40, n_endmembers=4, snr_db=20, random_state=0)
    np.testing.assert_array_equal(again.data, image.data)


def test_hyperspectral_options():
    clean = make_hyperspectral((6, 6), 20, snr_db=np.inf, random_state=1)
    np.testing.assert_allclose(clean.data, clean.abundances @ clean.endmembers)
    bent = make_hyperspectral((6, 6), 20, snr_db=np.inf, nonlinearity=0.5, random_state=1)
    expected = clean.data.copy()
    for j in range(3):
        for k in range(j):
            product = clean.endmembers[j] * clean.endmembers[k]
            expected += 0.5 * np.outer(clean.abundances[:, j] * clean.abundances[:, k], product)
    np.testing.assert_allclose(bent.data, expected)
    loose = make_hyperspectral((40, 40), 20, spatial="independent", random_state=1)
    np.testing.assert_allclose(loose.abundances.mean(axis=0), 1 / 3, atol=0.03)
    assert np.isfinite(make_hyperspectral((1, 1), 2, 2, random_state=0).data).all()


@pytest.mark.parametrize(
    ("make", "parameters", "name"),
    [
        (make_convex_mixture, {"n_samples": 0}, "n_samples"),
        (make_convex_mixture, {"n_components": 1}, "n_components"),
        (make_convex_mixture, {"noise": -1}, "noise"),
        (make_convex_mixture, {"pure_fraction": 2}, "pure_fraction"),
        (make_convex_mixture, {"concentration": 0}, "concentration"),
        (make_hyperspectral, {"shape": (0, 3)}, "shape"),
        (make_hyperspectral, {"shape": (3, 3, 3)}, "shape"),
        (make_hyperspectral, {"n_bands": 1}, "n_bands"),
        (make_hyperspectral, {"n_endmembers": 1}, "n_endmembers"),
        (make_hyperspectral, {"snr_db": np.nan}, "snr_db"),
        (make_hyperspectral, {"spatial": "random"}, "spatial"),
        (make_hyperspectral, {"nonlinearity": -1}, "nonlinearity"),
    ],
)
def test_generators_refuse(make, parameters, name):
    with pytest.raises(ValueError, match=name):
        make(**parameters)


@pytest.mark.skipif(not (DATA / "samson.mat").exists(), reason="samson.mat isn't at hand")
def test_samson():
    scene = load_samson_unmixing(DATA / "samson.mat")
    assert scene.data.shape == (9025, 156) and scene.shape == (95, 95)
    np.testing.assert_allclose(scene.abundances.sum(axis=1), 1, atol=1e-6)
    fitted = scene.abundances @ np.linalg.lstsq(scene.abundances, scene.data, rcond=None)[0]
    # The wrong turn of the cube leaves 0.129.
    assert np.sqrt(((scene.data - fitted) ** 2).mean()) == pytest.approx(0.075, abs=1e-3)


@pytest.mark.skipif(not (DATA / "carbs.RData").exists(), reason="carbs.RData isn't at hand")
def test_sugars():
    pytest.importorskip("rdata", reason="rdata isn't installed")
    sugars = load_sugar_raman(DATA / "carbs.RData")
    assert sugars.data.shape == (21, 1401) and sugars.endmembers.shape == (3, 1401)
    assert sugars.names.tolist() == ["fructose", "lactose", "ribose"]
    np.testing.assert_allclose(sugars.abundances.sum(axis=1), 1)
    residual = sugars.data - sugars.abundances @ sugars.endmembers
    # The mixtures carry noise and a baseline; another order of the sugars leaves more than 0.3.
    assert np.linalg.norm(residual) < 0.15 * np.linalg.norm(sugars.data)


def test_loaders_refuse_other_files(tmp_path):
    from scipy.io import savemat

    path = tmp_path / "other.mat"
    savemat(path, {"Y": np.eye(3)})
    with pytest.raises(ValueError, match="GT"):
        load_samson_unmixing(path)
    savemat(path, {"Y": np.eye(3), "GT": np.eye(3), "S_GT": np.ones((2, 2, 3))})
    with pytest.raises(ValueError, match="fit"):
        load_samson_unmixing(path)
