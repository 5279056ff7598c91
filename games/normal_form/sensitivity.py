"""How sure the potentialness of a game is whose payoffs were estimated from samples.

The decomposition is linear, so the squared norms of a mean's parts are quadratic forms in the
samples' weights: with the Gram matrix G_kl = <u^P_k, u^P_l>_g of K samples and their shares w_k,
|u^P|^2 = w^T G w. Noise adds to both parts. Without the products of a sample with itself, the sum
over k != l has the true squared norm as its expectation.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch

from equipoise.inference import cluster_bootstrap

from .decomposition import decompose
from .game import NormalFormGame
from .hoeffding import Measure, check_measure

__all__ = ["estimate_potentialness"]


def gram_matrices(samples: np.ndarray, measure: list[np.ndarray]) -> list[np.ndarray]:
    """Return the Gram matrices (K, K) of the potential and of the harmonic parts."""
    weights = np.ones(())
    for mu in measure:
        weights = np.multiply.outer(weights, mu)
    root = np.sqrt(np.stack([mu.sum() * weights for mu in measure]))
    potential, harmonic = np.empty((2, len(samples), root.size))
    for k, payoffs in enumerate(samples):
        parts = decompose(NormalFormGame(payoffs), measure, components=("potential", "harmonic"))
        potential[k] = (root * parts.potential.payoffs).ravel()
        harmonic[k] = (root * parts.harmonic.payoffs).ravel()
    return [potential @ potential.T, harmonic @ harmonic.T]


def estimate_potentialness(
    samples: ArrayLike,
    measure: Measure = None,
    *,
    groups: ArrayLike | None = None,
    n_resamples: int = 2000,
    confidence_level: float = 0.95,
    random_state: Any = None,
) -> Bunch:
    """Return how potential a game is whose payoffs were measured several times, with intervals.

    Parameters
    ----------
    samples : array-like of shape (n_samples, n, d_0, ..., d_{n-1})
        Independent estimates of the payoff tensor, for instance one a simulation run; at least two.
    measure : list of array-like, optional
        As for `decompose`.
    groups : array-like of shape (n_samples,), optional
        Samples that belong together and are resampled together; None takes each alone.
    n_resamples : int, default=2000
        Bootstrap resamples.
    confidence_level : float, default=0.95
        Of the percentile intervals.
    random_state : int, RandomState or None, default=None
        Of the resampling.

    Returns
    -------
    Bunch
        "game" (the mean payoffs), "potentialness" (a `BootstrapEstimate` of
        ``game.decompose(measure).potentialness``, which noise draws towards that of noise) and
        "potential_share" (a `BootstrapEstimate` of the true game's share of squared norms, from
        products of different samples, or of different groups, only; kept within 0 and 1).

    Raises
    ------
    ValueError
        If the samples don't hold games, there are fewer than two of them, or the mean is
        nonstrategic.

    References
    ----------
    .. [1] O. Candogan, I. Menache, A. Ozdaglar, P. Parrilo, "Flows and decompositions of games",
       2011.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.datasets import make_mixture_game
    >>> from equipoise.games import estimate_potentialness
    >>> game = make_mixture_game((3, 3), 0.5, random_state=0)
    >>> noise = np.random.RandomState(0).normal(size=(50, 2, 3, 3))
    >>> found = estimate_potentialness(game.payoffs + noise, random_state=0)
    >>> bool(found.potential_share.low < game.decompose().potential_share)
    True
    >>> bool(found.potential_share.high > game.decompose().potential_share)
    True
    """
    tensors = np.asarray(samples, dtype=float)
    if tensors.ndim < 3 or len(tensors) < 2:
        raise ValueError(
            "samples must have shape (n_samples, n, d_0, ..., d_(n-1)) with at least two samples, "
            f"got {tensors.shape}"
        )
    game = NormalFormGame(tensors.mean(axis=0))
    mu = check_measure(measure, game.shape)
    grams = gram_matrices(tensors, mu)
    K = len(tensors)
    code = np.arange(K) if groups is None else np.unique(groups, return_inverse=True)[1]
    if len(code) != K:
        raise ValueError(f"groups must have one entry for each of {K} samples, got {len(code)}")
    apart = code[:, None] != code

    def ratios(rows: np.ndarray) -> np.ndarray:
        w = np.bincount(rows, minlength=K) / len(rows)
        potential, harmonic = (np.sqrt(max(w @ G @ w, 0.0)) for G in grams)
        signal = [w @ (G * apart) @ w for G in grams]
        total, kept = potential + harmonic, sum(max(part, 0.0) for part in signal)
        return np.array(
            [
                potential / total if total > 0 else np.nan,
                # Where noise is all there is, the extreme share nearer to what was seen widens the
                # interval.
                max(signal[0], 0.0) / kept if kept > 0 else float(signal[0] >= signal[1]),
            ]
        )

    found = cluster_bootstrap(
        ratios,
        np.arange(K),
        groups=groups,
        n_resamples=n_resamples,
        confidence_level=confidence_level,
        random_state=random_state,
    )
    columns = [
        type(found)(
            float(found.estimate[k]),
            float(found.low[k]),
            float(found.high[k]),
            float(found.standard_error[k]),
            found.resamples[:, k],
        )
        for k in range(2)
    ]
    return Bunch(game=game, potentialness=columns[0], potential_share=columns[1])
