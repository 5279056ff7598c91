"""Averages along a player's own axis, and the spectrum of harmonicity, in linear time.

A measure gives each player positive weights mu_i with mass m_i = sum(mu_i). Lam_i averages a tensor
over player i's actions with the weights mu_i / m_i, and Pi_i = I - Lam_i keeps what the player's
own choice changes. All these projections commute, so T = sum_i m_i Pi_i is diagonal in the
Hoeffding (ANOVA) basis: on the component of the subset S of players its eigenvalue is m(S) = sum_{i
in S} m_i. Householder reflectors lay that basis along the axes, index 0 for the average and the
rest for Pi_i, and a division solves T phi = g. A game is harmonic when the tensor sum_i m_i Pi_i
u_i vanishes [1]_.

.. [1] D. Legacci, P. Mertikopoulos, C. Papadimitriou, G. Piliouras, B. Pradelski, "No-regret
   learning in harmonic games", 2024; O. Candogan et al., "Flows and decompositions of games", 2011.
"""

from collections.abc import Sequence
from math import prod

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

__all__ = [
    "check_measure",
    "divergence",
    "hoeffding_energies",
    "potential_of",
    "subtract_average",
]

Measure = Sequence[ArrayLike] | None


@njit(cache=True, nogil=True)
def update_along_axis(
    f: np.ndarray, scale: np.ndarray, left: np.ndarray, right: np.ndarray, out: np.ndarray
) -> None:
    """Write ``scale[b] f[p, b, q] - left[b] sum_c right[c] f[p, c, q]`` to `out`, maybe `f`."""
    before, d, after = f.shape
    chunk = 128  # columns at a time: the running sums stay in the first-level cache
    sums = np.empty(chunk)
    for p in range(before):
        for start in range(0, after, chunk):
            width = min(chunk, after - start)
            for q in range(width):
                sums[q] = 0.0
            for c in range(d):
                for q in range(width):
                    sums[q] += right[c] * f[p, c, start + q]
            for b in range(d):
                for q in range(width):
                    out[p, b, start + q] = scale[b] * f[p, b, start + q] - left[b] * sums[q]


def along(shape: Sequence[int], axis: int) -> tuple[int, int, int]:
    """Return (before, d, after): the tensor of that shape seen from one of its axes."""
    return prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])


def check_measure(measure: Measure, n_actions: Sequence[int]) -> list[np.ndarray]:
    """Validate a measure; None means all ones.

    Parameters
    ----------
    measure : list of array-like, or None
        For each player, positive weights of shape ``(n_actions[i],)``.
    n_actions : sequence of int
        Number of actions of each player.

    Returns
    -------
    list of ndarray
        Copies in float64.

    Raises
    ------
    ValueError
        If there isn't one vector a player, of the right length, finite and positive.

    Examples
    --------
    >>> from equipoise.games.normal_form.hoeffding import check_measure
    >>> check_measure(None, (2, 1))
    [array([1., 1.]), array([1.])]
    """
    if measure is None:
        return [np.ones(d) for d in n_actions]
    if len(measure) != len(n_actions):
        raise ValueError(
            f"measure must hold one vector for each of the {len(n_actions)} players, got "
            f"{len(measure)}"
        )
    checked = []
    for i, (weights, d) in enumerate(zip(measure, n_actions, strict=True)):
        mu = np.array(weights, dtype=float)
        if mu.shape != (d,):
            raise ValueError(f"measure[{i}] must have shape ({d},), got {mu.shape}")
        if not (np.isfinite(mu).all() and (mu > 0).all()):
            raise ValueError(f"measure[{i}] must be finite and positive, got {mu.tolist()}")
        checked.append(mu)
    return checked


def subtract_average(
    f: np.ndarray, mu: np.ndarray, axis: int, out: np.ndarray | None = None
) -> np.ndarray:
    """Return Pi f = f - Lam f along an axis.

    Parameters
    ----------
    f : ndarray
        C-contiguous float64 tensor.
    mu : ndarray of shape (f.shape[axis],)
        Positive weights of the average.
    axis : int
        Non-negative axis to average over.
    out : ndarray, optional
        C-contiguous array to write to; may be `f` itself.

    Returns
    -------
    ndarray
        `out`, of the shape of `f`.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games.normal_form.hoeffding import subtract_average
    >>> subtract_average(np.array([[1.0, 4.0]]), np.array([2.0, 1.0]), axis=1)
    array([[-1.,  2.]])
    """
    if out is None:
        out = np.empty_like(f)
    if f.shape[axis] == 1:
        out.fill(0.0)
        return out
    view = along(f.shape, axis)
    ones = np.ones(f.shape[axis])
    update_along_axis(f.reshape(view), ones, ones, mu / mu.sum(), out.reshape(view))
    return out


def divergence(payoffs: np.ndarray, measure: Sequence[np.ndarray]) -> np.ndarray:
    """Return R = sum_i m_i Pi_i u_i, which is zero exactly for the harmonic games of the measure.

    Parameters
    ----------
    payoffs : ndarray of shape (n, d_0, ..., d_{n-1})
        C-contiguous.
    measure : list of ndarray
        As `check_measure` returns it.

    Returns
    -------
    ndarray of shape (d_0, ..., d_{n-1})
        The residual of each pure profile.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games.normal_form.hoeffding import check_measure, divergence
    >>> pennies = np.array([[[1.0, -1.0], [-1.0, 1.0]], [[-1.0, 1.0], [1.0, -1.0]]])
    >>> float(np.abs(divergence(pennies, check_measure(None, (2, 2)))).max())
    0.0
    """
    total = np.zeros(payoffs.shape[1:])
    strategic = np.empty_like(total)
    for i, mu in enumerate(measure):
        subtract_average(payoffs[i], mu, i, out=strategic)
        strategic *= mu.sum()
        total += strategic
    return total


def reflectors(measure: Sequence[np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return for each axis r = sqrt(mu_i / m_i) and the w = r + e_0 of the reflector that takes r
    to -e_0, I - w w^T / w_0."""
    pairs = []
    for mu in measure:
        r = np.sqrt(mu / mu.sum())
        w = r.copy()
        w[0] += 1.0  # the sum never cancels, as a difference would; |w|^2 = 2 w_0
        pairs.append((r, w))
    return pairs


def to_hoeffding(f: np.ndarray, pairs: list[tuple[np.ndarray, np.ndarray]]) -> None:
    """Replace a tensor, in place, by its coefficients in the orthonormal Hoeffding basis."""
    for axis, (r, w) in enumerate(pairs):
        view = f.reshape(along(f.shape, axis))
        update_along_axis(view, r, w / w[0], w * r, view)


def from_hoeffding(f: np.ndarray, pairs: list[tuple[np.ndarray, np.ndarray]]) -> None:
    """Replace coefficients, in place, by the tensor they are those of."""
    for axis, (r, w) in enumerate(pairs):
        view = f.reshape(along(f.shape, axis))
        update_along_axis(view, 1.0 / r, w / (w[0] * r), w, view)


def eigenvalues(measure: Sequence[np.ndarray]) -> np.ndarray:
    """Return m(S(k)) = sum_i m_i [k_i > 0] for each multi-index k."""
    values = np.zeros(())
    for mu in measure:
        step = np.full(len(mu), mu.sum())
        step[0] = 0.0
        values = np.add.outer(values, step)
    return values


def potential_of(residual: np.ndarray, measure: Sequence[np.ndarray]) -> np.ndarray:
    """Solve sum_i m_i Pi_i phi = residual for the phi whose weighted mean is zero.

    Parameters
    ----------
    residual : ndarray of shape (d_0, ..., d_{n-1})
        A tensor of weighted mean zero, as `divergence` returns; overwritten with the answer.
    measure : list of ndarray
        As `check_measure` returns it.

    Returns
    -------
    ndarray of shape (d_0, ..., d_{n-1})
        The potential.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games.normal_form.hoeffding import check_measure, divergence, potential_of
    >>> dilemma = np.array([[[3.0, 0.0], [5.0, 1.0]], [[3.0, 5.0], [0.0, 1.0]]])
    >>> uniform = check_measure(None, (2, 2))
    >>> potential_of(divergence(dilemma, uniform), uniform).round(12)
    array([[-1.75,  0.25],
           [ 0.25,  1.25]])
    """
    phi = residual
    pairs = reflectors(measure)
    to_hoeffding(phi, pairs)
    spectrum = eigenvalues(measure)
    spectrum.flat[0] = 1.0
    phi /= spectrum
    phi.flat[0] = 0.0
    from_hoeffding(phi, pairs)
    return phi


def hoeffding_energies(f: np.ndarray, measure: Sequence[np.ndarray]) -> np.ndarray:
    """Return the weighted squared norm of a tensor's component for each subset of players.

    Parameters
    ----------
    f : ndarray of shape (d_0, ..., d_{n-1})
        Any tensor.
    measure : list of ndarray
        As `check_measure` returns it.

    Returns
    -------
    ndarray of shape (2**n,)
        Entry ``sum_{i in S} 2**i`` is ``|f_S|^2`` in the inner product weighted by the product of
        the mu_i.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games.normal_form.hoeffding import check_measure, hoeffding_energies
    >>> hoeffding_energies(np.array([[1.0, -1.0], [-1.0, 1.0]]), check_measure(None, (2, 2))).round(
    ...     12
    ... )
    array([0., 0., 0., 4.])
    """
    coefficients = f.copy()
    to_hoeffding(coefficients, reflectors(measure))
    mask = np.zeros(f.shape, dtype=np.int64)
    for axis, d in enumerate(f.shape):
        bit = (np.arange(d) > 0) * 2**axis
        mask += bit.reshape([-1 if j == axis else 1 for j in range(f.ndim)])
    mass = prod(float(mu.sum()) for mu in measure)
    np.square(coefficients, out=coefficients)
    return mass * np.bincount(mask.ravel(), coefficients.ravel(), minlength=2**f.ndim)
