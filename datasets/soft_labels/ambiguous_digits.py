"""Digits that are hard to tell apart, with known class probabilities.

kind="gaussian": y uniform, x ~ N(mu_y(lambda), C) with the digits' class means mu_k shrunk to their
average, mu_k(lambda) = (1 - lambda) mu_k + lambda mean_l mu_l, and C = 0.9 S_w + 0.1 tr(S_w) / 64 I
from the pooled covariance S_w within classes; P = softmax of the exact log-densities. kind="mix":
two real digits of classes a != b blended by t, with label law (1 - s(t)) e_a + s(t) e_b.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from scipy.special import expit, softmax
from sklearn.datasets import load_digits
from sklearn.utils import Bunch, check_random_state

__all__ = ["make_ambiguous_digits"]

RandomState = int | np.random.RandomState | None

#: Width of the transition from one class to the other along a blend.
BLEND_WIDTH = 0.1


@lru_cache(maxsize=1)
def digit_moments() -> tuple[np.ndarray, np.ndarray]:
    """Class means (10, 64) and shrunk pooled covariance (64, 64) of the 8 x 8 digits."""
    X, y = load_digits(return_X_y=True)
    means = np.array([X[y == k].mean(axis=0) for k in range(10)])
    within = X - means[y]
    pooled = within.T @ within / len(X)
    return means, 0.9 * pooled + 0.1 * np.trace(pooled) / 64 * np.eye(64)


def log_densities(X: np.ndarray, means: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Log-density of each row under each class, up to a constant shared by the classes."""
    whiten = np.linalg.inv(np.linalg.cholesky(covariance))
    Z, M = X @ whiten.T, means @ whiten.T
    return -0.5 * ((Z**2).sum(axis=1)[:, None] - 2 * Z @ M.T + (M**2).sum(axis=1))


def gaussian_digits(
    n: int, ambiguity: float, noise: float, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, labels and exact posterior of the Gaussian model."""
    means, covariance = digit_moments()
    means = (1 - ambiguity) * means + ambiguity * means.mean(axis=0)
    covariance = covariance + noise**2 * np.eye(64)
    y = rng.randint(10, size=n)
    X = means[y] + rng.normal(size=(n, 64)) @ np.linalg.cholesky(covariance).T
    return X, y, softmax(log_densities(X, means, covariance), axis=1)


def blended_digits(
    n: int,
    ambiguity: float,
    pairs: Sequence[tuple[int, int]] | None,
    noise: float,
    rng: np.random.RandomState,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, drawn labels and label laws of blends of two digits."""
    digits, classes = load_digits(return_X_y=True)
    allowed = (
        [(a, b) for a in range(10) for b in range(10) if a != b]
        if pairs is None
        else [tuple(pair) for pair in pairs]
    )
    for pair in allowed:
        if len(pair) != 2 or pair[0] == pair[1] or not set(pair) <= set(range(10)):
            raise ValueError(f"pairs holds {pair!r}; allowed: two different digits from 0 to 9")
    ends = np.array(allowed)[rng.randint(len(allowed), size=n)]  # (n, 2)
    rows = [np.flatnonzero(classes == k) for k in range(10)]
    first, second = (
        digits[
            [
                rows[k][int(u * len(rows[k]))]
                for k, u in zip(ends[:, j], rng.uniform(size=n), strict=True)
            ]
        ]
        for j in range(2)
    )
    # Beta(c, c): all at the ends for ambiguity 0, uniform for 1/2, in the middle towards 1.
    t = (
        rng.randint(2, size=n).astype(float)
        if ambiguity == 0
        else rng.beta(ambiguity / (1 - ambiguity), ambiguity / (1 - ambiguity), size=n)
    )
    X = (1 - t)[:, None] * first + t[:, None] * second
    X = X + noise * rng.normal(size=X.shape)
    s = expit((t - 0.5) / BLEND_WIDTH)
    P = np.zeros((n, 10))
    P[np.arange(n), ends[:, 0]] = 1 - s
    P[np.arange(n), ends[:, 1]] = s
    y = np.where(rng.uniform(size=n) < s, ends[:, 1], ends[:, 0])
    return X, y, P


def make_ambiguous_digits(
    n_samples: int = 2000,
    kind: str = "gaussian",
    ambiguity: float = 0.3,
    pairs: Sequence[tuple[int, int]] | None = None,
    noise: float = 0.0,
    return_posterior: bool = True,
    random_state: RandomState = None,
) -> Bunch:
    """Make 8 x 8 digits that are hard to tell apart, with their true class probabilities.

    Parameters
    ----------
    n_samples : int, default=2000
        Number of items.
    kind : {"gaussian", "mix"}, default="gaussian"
        "gaussian" draws from one Gaussian a class, fitted to scikit-learn's digits, so that the
        posterior given the image is exact. "mix" blends two real digits; its label law is exact
        given the two digits and the blend, by construction.
    ambiguity : float, default=0.3
        In [0, 1). "gaussian": how far the class means are shrunk to their average (Bayes accuracy
        about 0.99, 0.94, 0.80 and 0.51 at 0, 0.3, 0.5 and 0.7). "mix": 0 leaves the digits whole,
        1/2 blends uniformly, towards 1 half and half.
    pairs : sequence of (int, int), default=None
        For "mix": the pairs of digits to blend; None takes all.
    noise : float, default=0.0
        Standard deviation of noise added to each pixel (pixels lie within 0 and 16); the Gaussian
        posterior takes it into account.
    return_posterior : bool, default=True
        Whether to give the class probabilities.
    random_state : int, RandomState or None, default=None
        Seed.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (n_samples, 64), ``target`` (n_samples,) drawn from the class probabilities,
        ``posterior`` (n_samples, 10) if asked for, ``target_names`` (10,).

    References
    ----------
    .. [1] M. Weiss, A. Gomez, P. Tonella, "Generating and detecting true ambiguity",
           arXiv 2207.10495, 2022.

    Examples
    --------
    >>> from equipoise.datasets import make_ambiguous_digits
    >>> digits = make_ambiguous_digits(500, ambiguity=0.5, random_state=0)
    >>> digits.data.shape, digits.posterior.shape
    ((500, 64), (500, 10))
    >>> round(float(digits.posterior.max(axis=1).mean()), 1)
    0.8
    """
    if kind not in ("gaussian", "mix"):
        raise ValueError(f"kind={kind!r} is not allowed; allowed: 'gaussian', 'mix'")
    if int(n_samples) != n_samples or n_samples < 1:
        raise ValueError(f"n_samples={n_samples!r} must be a whole number >= 1")
    if not 0 <= ambiguity < 1:
        raise ValueError(f"ambiguity={ambiguity!r} must be in [0, 1)")
    if not (np.isfinite(noise) and noise >= 0):
        raise ValueError(f"noise={noise!r} must be a finite number >= 0")
    if pairs is not None and kind != "mix":
        raise ValueError("pairs is for kind='mix'; the Gaussian model draws all ten classes")
    rng = check_random_state(random_state)
    if kind == "gaussian":
        X, y, P = gaussian_digits(int(n_samples), ambiguity, noise, rng)
    else:
        X, y, P = blended_digits(int(n_samples), ambiguity, pairs, noise, rng)
    made = Bunch(data=X, target=y, target_names=np.arange(10))
    if return_posterior:
        made["posterior"] = P
    return made
