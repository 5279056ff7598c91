"""Figures of a population's opinions: polarisation, disagreement, gaps (Musco et al., 2018)."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.stats import kurtosis, skew, wasserstein_distance
from sklearn.utils import check_array

from .kernels import edge_sums
from .network import OpinionNetwork, check_adjacency

__all__ = [
    "amplification_factor",
    "edge_immediate",
    "friedkin_johnsen",
    "opinion_metrics",
    "ratio_of_means",
]

Array = np.ndarray
#: A change of the mean that is smaller gives no ratio.
NOTHING = 1e-12


def check_opinions(z: Any, name: str = "z") -> Array:
    array = check_array(z, ensure_2d=False, dtype=np.float64, input_name=name)
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}; one opinion a user, shape (n,)")
    return array


def ratio_of_means(moved: Array, immediate: Array) -> Any:
    """Return long-run over immediate change of the mean; NaN, and a warning, without the latter."""
    small = np.abs(immediate) < NOTHING
    if np.any(small):
        long_run = np.ravel(moved)[np.argmax(np.ravel(small))]
        warnings.warn(
            "the edits don't change the mean of what is said at the start: amplification_ is nan "
            f"(long-run change {long_run:.3g})",
            UserWarning,
            stacklevel=4,
        )
    ratio = np.where(small, np.nan, moved / np.where(small, 1.0, immediate))
    return float(ratio) if ratio.ndim == 0 else ratio


def edge_immediate(network: OpinionNetwork, shrink: Array, bias: Array, innate: Array) -> Array:
    """Return the mean change, over users, of what is heard at the start, for edits on edges."""
    W = network.weights
    changed = sparse.csr_array((W.data * (shrink - 1), W.indices, W.indptr), shape=W.shape)
    return (changed @ innate).mean(axis=0) + edge_sums(W.indptr, W.data * bias).mean()


def opinion_metrics(
    z: ArrayLike, A: Any = None, s: ArrayLike | None = None, groups: ArrayLike | None = None
) -> dict[str, float]:
    """Return figures that describe opinions.

    Parameters
    ----------
    z : array-like of shape (n,)
        Opinions.
    A : array-like or sparse matrix of shape (n, n), or OpinionNetwork, optional
        Weights; gives "disagreement" and "index".
    s : array-like of shape (n,), optional
        Innate opinions; gives "mean_shift", "conflict" and "wasserstein".
    groups : array-like of shape (n,), optional
        Labels of groups; gives "group_gap", the largest difference of two groups' means.

    Returns
    -------
    dict of str to float
        "mean"; "polarization", the sum of squared deviations from the mean; "bimodality",
        (skewness^2 + 1) / kurtosis, 5/9 for uniform opinions and 1 for two points (NaN where all
        agree); "disagreement", half the sum over (i, j) of ``A_ij (z_i - z_j)^2``; "index", the
        sum of polarization and disagreement; "conflict", the sum of ``(z - s)^2``; "wasserstein",
        the distance between the distributions of z and s.

    Raises
    ------
    ValueError
        For NaN, or lengths that differ.

    References
    ----------
    .. [1] C. Musco, C. Musco, C. Tsourakakis, "Minimizing polarization and disagreement in social
       networks", WWW 2018.

    Examples
    --------
    >>> from equipoise.games import opinion_metrics
    >>> found = opinion_metrics([0.0, 1.0], A=[[0, 1], [1, 0]])
    >>> found["polarization"], found["disagreement"], found["index"]
    (0.5, 1.0, 1.5)
    """
    z = check_opinions(z)
    n = len(z)
    centred = z - z.mean()
    found = {"mean": float(z.mean()), "polarization": float(centred @ centred)}
    spread = float(np.ptp(z))
    found["bimodality"] = (
        float((skew(z) ** 2 + 1) / kurtosis(z, fisher=False)) if spread > 0 else float("nan")
    )
    if A is not None:
        if isinstance(A, OpinionNetwork):
            matrix = A.weights.multiply(A.strengths[:, None]).tocsr()
        else:
            matrix = check_adjacency(A)
        if matrix.shape[0] != n:
            raise ValueError(f"A has {matrix.shape[0]} users; z has {n}")
        edges = matrix.tocoo()
        gaps = z[edges.coords[0]] - z[edges.coords[1]]
        found["disagreement"] = float(0.5 * (edges.data * gaps**2).sum())
        found["index"] = found["polarization"] + found["disagreement"]
    if s is not None:
        s = check_opinions(s, "s")
        if len(s) != n:
            raise ValueError(f"s has {len(s)} opinions; z has {n}")
        found["mean_shift"] = float(z.mean() - s.mean())
        found["conflict"] = float(((z - s) ** 2).sum())
        found["wasserstein"] = float(wasserstein_distance(z, s))
    if groups is not None:
        labels = np.asarray(groups)
        if labels.shape != (n,):
            raise ValueError(f"groups has shape {labels.shape}; z has {n} opinions")
        means = [z[labels == label].mean() for label in np.unique(labels)]
        found["group_gap"] = float(max(means) - min(means))
    return found


def friedkin_johnsen(A: Any, s: ArrayLike, stubbornness: ArrayLike) -> Array:
    """Return the equilibrium of Friedkin and Johnsen's model, without an AI.

    Parameters
    ----------
    A : array-like, sparse matrix, graph or OpinionNetwork
        Network; ``A[i, j] > 0`` means that i listens to j.
    s : array-like of shape (n,) or (n, k)
        Innate opinions.
    stubbornness : float or array-like of shape (n,)
        lambda, in [0, 1].

    Returns
    -------
    ndarray of shape (n,) or (n, k)
        ``(I - (1 - lambda) W)^-1 lambda s``.

    Raises
    ------
    ValueError
        As `MediatedOpinionDynamics.fit`.

    References
    ----------
    .. [1] N. Friedkin, E. Johnsen, "Social influence and opinions", J. Math. Sociology 15, 1990.

    Examples
    --------
    >>> from equipoise.games import friedkin_johnsen
    >>> friedkin_johnsen([[0, 1], [1, 0]], [0.0, 1.0], 0.5).round(4).tolist()
    [0.3333, 0.6667]
    """
    from .dynamics import MediatedOpinionDynamics

    s = np.asarray(s, dtype=float)
    bounds = (min(0.0, float(s.min(initial=0.0))), max(1.0, float(s.max(initial=1.0))))
    dynamics = MediatedOpinionDynamics(bounds=bounds)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the edits don't change the mean")  # there are none
        return dynamics.fit(A, s, stubbornness=stubbornness).equilibrium_


def amplification_factor(stubbornness: float, shrink: float = 1.0) -> float:
    """Return the long-run shift of everybody for each unit of bias in every message.

    Parameters
    ----------
    stubbornness : float
        lambda in (0, 1], the same for all.
    shrink : float, default=1.0
        Slope a of the mediator, with ``0 <= (1 - lambda) a < 1``.

    Returns
    -------
    float
        ``(1 - lambda) / (1 - (1 - lambda) a)``; ``(1 - lambda) / lambda`` for pure bias, on any
        network where everybody listens to somebody.

    Raises
    ------
    ValueError
        Outside these ranges.

    Examples
    --------
    >>> from equipoise.games import amplification_factor
    >>> round(amplification_factor(0.3), 4), round(amplification_factor(0.3, shrink=0.8), 4)
    (2.3333, 1.5909)
    """
    if not 0 < stubbornness <= 1:
        raise ValueError(f"stubbornness={stubbornness!r}; allowed: above 0 and at most 1")
    passed = (1 - stubbornness) * shrink
    if not 0 <= passed < 1:
        raise ValueError(f"shrink={shrink!r}; allowed: 0 <= (1 - stubbornness) * shrink < 1")
    return (1 - stubbornness) / (1 - passed)
