"""Mixtures with known components and proportions: generators, and two published scenes by path.

Linear mixing: x = sum_k z_k w_k + noise, z on the simplex. `make_hyperspectral` makes smooth
spectra and smooth abundance maps; its bilinear terms follow Fan et al. (2009): x + nonlinearity
sum_{j<k} z_j z_k w_j * w_k.
"""

from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.ndimage import gaussian_filter
from scipy.special import softmax
from sklearn.utils import Bunch

from equipoise.imports import optional_import

__all__ = [
    "load_samson_unmixing",
    "load_sugar_raman",
    "make_convex_mixture",
    "make_hyperspectral",
]

RandomState = int | np.random.RandomState | np.random.Generator | None


def generator_of(random_state: RandomState) -> np.random.Generator:
    """A NumPy Generator; from a RandomState it takes the seed."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    return np.random.default_rng(random_state)


def check_count(name: str, value: int, least: int) -> None:
    """An integer that is large enough."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(
            f"{name}={value!r} is not allowed; allowed: an integer of at least {least}"
        )


def check_number(name: str, value: Any, low: float, high: float = np.inf) -> None:
    """A finite number in [low, high]."""
    if not (isinstance(value, Real) and low <= float(value) <= high and np.isfinite(float(value))):
        allowed = f"at least {low}" if high == np.inf else f"between {low} and {high}"
        raise ValueError(f"{name}={value!r} is not allowed; allowed: a finite number {allowed}")


def make_convex_mixture(
    n_samples: int = 400,
    n_features: int = 10,
    n_components: int = 3,
    *,
    concentration: float | npt.ArrayLike = 1.0,
    noise: float = 0.05,
    pure_fraction: float = 0.0,
    nonnegative: bool = True,
    random_state: RandomState = None,
) -> Bunch:
    """Draw convex mixtures of random components.

    Parameters
    ----------
    n_samples, n_features, n_components : int, default=400, 10 and 3
        Sizes; at least 1, 1 and 2.
    concentration : float or array-like of shape (n_components,), default=1.0
        Of the Dirichlet law of the weights.
    noise : float, default=0.05
        Standard deviation of the Gaussian noise.
    pure_fraction : float, default=0.0
        Share of the rows, from the first on, that are made of one component alone.
    nonnegative : bool, default=True
        Components uniform on [0, 1]; standard normal where False.
    random_state : int, Generator, RandomState or None, default=None
        Seed. Drawn in this order: components, weights, vertices of pure rows, noise.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (n_samples, n_features), ``weights`` (n_samples, n_components), ``components``
        (n_components, n_features).

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Examples
    --------
    >>> from equipoise.datasets import make_convex_mixture
    >>> mixture = make_convex_mixture(100, 5, 3, random_state=0)
    >>> mixture.data.shape, mixture.weights.shape, mixture.components.shape
    ((100, 5), (100, 3), (3, 5))
    """
    check_count("n_samples", n_samples, 1)
    check_count("n_features", n_features, 1)
    check_count("n_components", n_components, 2)
    check_number("noise", noise, 0)
    check_number("pure_fraction", pure_fraction, 0, 1)
    a = np.broadcast_to(np.asarray(concentration, dtype=np.float64), (n_components,))
    if not np.isfinite(a).all() or (a <= 0).any():
        raise ValueError(
            f"concentration={concentration!r} is not allowed; allowed: above 0, finite"
        )
    rng = generator_of(random_state)
    shape = (n_components, n_features)
    W = rng.uniform(size=shape) if nonnegative else rng.standard_normal(shape)
    Z = rng.dirichlet(a, size=n_samples)
    n_pure = int(np.floor(pure_fraction * n_samples))
    if n_pure:
        Z[:n_pure] = np.eye(n_components)[rng.integers(n_components, size=n_pure)]
    X = Z @ W + noise * rng.standard_normal((n_samples, n_features))
    return Bunch(data=X, weights=Z, components=W)


def smooth_spectrum(n_bands: int, rng: np.random.Generator) -> np.ndarray:
    """A slowly varying baseline with three to six Gaussian absorption features, in [0.02, 0.9]."""
    x = np.linspace(0, 1, n_bands)
    knots = rng.uniform(0.3, 0.9, size=5)
    smooth = np.interp(x, np.linspace(0, 1, 5), knots)
    baseline = gaussian_filter(smooth, sigma=max(n_bands / 12, 1e-3), mode="nearest")
    spectrum = baseline
    for _ in range(rng.integers(3, 7)):
        centre, width = rng.uniform(0, 1), rng.uniform(0.015, 0.12)
        depth = rng.uniform(0.1, 0.7)
        spectrum = spectrum * (1 - depth * np.exp(-0.5 * ((x - centre) / width) ** 2))
    return np.clip(spectrum, 0.02, 0.9)


def make_hyperspectral(
    shape: tuple[int, int] = (50, 50),
    n_bands: int = 156,
    n_endmembers: int = 3,
    *,
    snr_db: float = 30.0,
    spatial: str = "gaussian_field",
    nonlinearity: float = 0.0,
    random_state: RandomState = None,
) -> Bunch:
    """Draw an image of mixed spectra.

    Parameters
    ----------
    shape : tuple of (height, width), default=(50, 50)
        Of the image, at least one pixel a side.
    n_bands : int, default=156
        Bands, at least 2.
    n_endmembers : int, default=3
        Pure spectra, at least 2.
    snr_db : float, default=30.0
        Signal power over noise power, in dB; infinity for no noise.
    spatial : {"gaussian_field", "independent"}, default="gaussian_field"
        Abundances as the softmax of smoothed Gaussian fields, or flat Dirichlet draws for each
        pixel.
    nonlinearity : float, default=0.0
        Weight of the bilinear terms.
    random_state : int, Generator, RandomState or None, default=None
        Seed.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (n_pixels, n_bands) in row-major order, ``abundances`` (n_pixels, n_endmembers),
        ``endmembers`` (n_endmembers, n_bands), ``shape``, ``wavelengths`` (n_bands,) in
        micrometres, ``noise_std``.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Examples
    --------
    >>> from equipoise.datasets import make_hyperspectral
    >>> image = make_hyperspectral((8, 9), n_bands=20, random_state=0)
    >>> image.data.shape, image.abundances.shape
    ((72, 20), (72, 3))
    """
    if len(shape) != 2:
        raise ValueError(f"shape={shape!r} is not allowed; allowed: (height, width)")
    check_count("shape[0]", shape[0], 1)
    check_count("shape[1]", shape[1], 1)
    check_count("n_bands", n_bands, 2)
    check_count("n_endmembers", n_endmembers, 2)
    check_number("nonlinearity", nonlinearity, 0)
    if snr_db != np.inf:
        check_number("snr_db", snr_db, -np.inf)
    if spatial not in ("gaussian_field", "independent"):
        raise ValueError(
            f"spatial={spatial!r} is not allowed; allowed: ['gaussian_field', 'independent']"
        )
    rng = generator_of(random_state)
    K, n = n_endmembers, shape[0] * shape[1]
    W = np.array([smooth_spectrum(n_bands, rng) for _ in range(K)])
    if spatial == "independent":
        Z = rng.dirichlet(np.ones(K), size=n)
    else:
        fields = rng.standard_normal((K, *shape))
        sigma = max(min(shape) / 10, 0.5)
        fields = np.array([gaussian_filter(field, sigma, mode="reflect") for field in fields])
        spread = fields.std(axis=(1, 2), keepdims=True)
        fields = fields / np.where(spread > 0, spread, 1.0)
        Z = softmax(3 * fields, axis=0).reshape(K, n).T
    X = Z @ W
    if nonlinearity:
        for j in range(K):
            for k in range(j + 1, K):
                X = X + nonlinearity * np.outer(Z[:, j] * Z[:, k], W[j] * W[k])
    noise_std = float(np.sqrt((X**2).mean() / 10 ** (snr_db / 10)))
    X = X + noise_std * rng.standard_normal(X.shape)
    return Bunch(
        data=X,
        abundances=Z,
        endmembers=W,
        shape=tuple(shape),
        wavelengths=np.linspace(0.4, 2.5, n_bands),
        noise_std=noise_std,
    )


def existing(path: str | Path) -> Path:
    """The path, if there is a file."""
    found = Path(path)
    if not found.is_file():
        raise FileNotFoundError(f"no file at {found}")
    return found


def load_samson_unmixing(path: str | Path) -> Bunch:
    """Read the Samson scene with its published unmixing from a local MAT file.

    Parameters
    ----------
    path : path
        A MAT file with the arrays Y (bands, pixels), GT (endmembers, bands) and S_GT (rows,
        columns, endmembers). Not part of this package.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (9025, 156), ``abundances`` (9025, 3), ``endmembers`` (3, 156), ``shape`` (95, 95),
        ``names`` (3,). The third endmember, water, is dark: its angle from a global least-squares
        fit says little.

    Raises
    ------
    FileNotFoundError
        If there is no file.
    ValueError
        If the file lacks an array, or their shapes don't fit.

    Notes
    -----
    The abundance cube stands transposed to the pixels' order; it is turned here, and the turn that
    leaves the smaller residual of X = Z W is taken.

    Examples
    --------
    >>> from equipoise.datasets import load_samson_unmixing
    >>> load_samson_unmixing("nowhere.mat")
    Traceback (most recent call last):
        ...
    FileNotFoundError: no file at nowhere.mat
    """
    from scipy.io import loadmat

    content = loadmat(existing(path))
    missing = {"Y", "GT", "S_GT"} - set(content)
    if missing:
        raise ValueError(f"{path} lacks the arrays {sorted(missing)}")
    X, W = content["Y"].T.astype(np.float64), content["GT"].astype(np.float64)
    cube = content["S_GT"].astype(np.float64)
    height, width, K = cube.shape
    if X.shape != (height * width, W.shape[1]) or len(W) != K:
        raise ValueError(
            f"{path} holds Y {content['Y'].shape}, GT {W.shape} and S_GT {cube.shape}, "
            "which don't fit"
        )
    turns = [cube.reshape(-1, K), cube.transpose(1, 0, 2).reshape(-1, K)]
    residuals = [np.linalg.norm(X - Z @ np.linalg.lstsq(Z, X, rcond=None)[0]) for Z in turns]
    names = np.array(["soil", "tree", "water"])
    return Bunch(
        data=X,
        abundances=turns[int(np.argmin(residuals))],
        endmembers=W,
        shape=(width, height) if np.argmin(residuals) else (height, width),
        names=names,
    )


def load_sugar_raman(path: str | Path) -> Bunch:
    """Read Raman spectra of sugar mixtures from a local R data file.

    Parameters
    ----------
    path : path
        The file ``carbs.RData`` of the R package mdatools. Not part of this package; reading it
        needs the package rdata.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (21, 1401) spectra, ``abundances`` (21, 3) concentrations that sum to one,
        ``endmembers`` (3, 1401) pure spectra, ``wavenumbers`` (1401,) per centimetre, ``names``
        (3,).

    Raises
    ------
    FileNotFoundError
        If there is no file.
    ValueError
        If the file has no list `carbs` with D, C and S.

    References
    ----------
    Kucheryavskiy (2020), mdatools: R package for chemometrics, Chemometrics and Intelligent
    Laboratory Systems 198.

    Examples
    --------
    >>> from equipoise.datasets import load_sugar_raman
    >>> load_sugar_raman("nowhere.RData")
    Traceback (most recent call last):
        ...
    FileNotFoundError: no file at nowhere.RData
    """
    found = existing(path)
    carbs = optional_import("rdata", "data").read_rda(found).get("carbs", {})
    missing = {"D", "C", "S"} - set(carbs)
    if missing:
        raise ValueError(f"{path} lacks {sorted(missing)} in the list carbs")
    S = carbs["S"]
    return Bunch(
        data=np.asarray(carbs["D"], dtype=np.float64),
        abundances=np.asarray(carbs["C"], dtype=np.float64),
        endmembers=np.asarray(S, dtype=np.float64).T,
        wavenumbers=np.asarray(S.coords["dim_0"], dtype=np.float64),
        names=np.asarray(S.coords["dim_1"], dtype=str),
    )
