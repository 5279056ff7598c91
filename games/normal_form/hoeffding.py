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
    "split_payoffs",
    "subtract_average",
]

Measure = Sequence[ArrayLike] | None


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def update_along_axis(
    f: np.ndarray,
    before: int,
    d: int,
    after: int,
    scale: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write ``scale[b] f[p, b, q] - left[b] sum_c right[c] f[p, c, q]`` to `out`, maybe `f`.

    Both are flat; their shape is (before, d, after).
    """
    if after == 1:
        for p in range(before):
            total = 0.0
            for c in range(d):
                total += right[c] * f[p * d + c]
            for b in range(d):
                out[p * d + b] = scale[b] * f[p * d + b] - left[b] * total
        return
    chunk = 128  # columns at a time: the running sums stay in the first-level cache
    sums = np.empty(chunk)
    for p in range(before):
        for start in range(0, after, chunk):
            width = min(chunk, after - start)
            first = p * d * after + start
            for q in range(width):
                sums[q] = 0.0
            for c in range(d):
                for q in range(width):
                    sums[q] += right[c] * f[first + c * after + q]
            for b in range(d):
                for q in range(width):
                    k = first + b * after + q
                    out[k] = scale[b] * f[k] - left[b] * sums[q]


@njit(cache=True, nogil=True)
def keep_own_choice(
    f: np.ndarray, before: int, d: int, after: int, mu: np.ndarray, out: np.ndarray
) -> None:
    """Write Pi f to `out`, maybe `f`; flat, of shape (before, d, after)."""
    if d == 1:
        out[:] = 0.0
    else:
        ones = np.ones(d)
        update_along_axis(f, before, d, after, ones, ones, mu / mu.sum(), out)


@njit(cache=True, nogil=True)
def solve_for_potential(g: np.ndarray, n_actions: np.ndarray, measure: np.ndarray) -> None:
    """Replace g (M,) by the phi with sum_i m_i Pi_i phi = g; all measures in one array.

    With r = sqrt(mu_i / m_i), w = r + e_0 and the reflector H_i = I - w w^T / w_0, which takes r to
    -e_0, the coefficients of a tensor f are H_i (r f) along each axis.
    """
    n = len(n_actions)
    masses = np.zeros(n)
    r, w = np.empty(len(measure)), np.empty(len(measure))
    start = 0
    for i in range(n):
        stop = start + n_actions[i]
        masses[i] = measure[start:stop].sum()
        r[start:stop] = np.sqrt(measure[start:stop] / masses[i])
        w[start:stop] = r[start:stop]
        w[start] += 1.0  # the sum never cancels, as a difference would; |w|^2 = 2 w_0
        start = stop
    before, after, start = 1, g.size, 0
    for i in range(n):
        d = n_actions[i]
        after //= d
        r_i, w_i = r[start : start + d], w[start : start + d]
        update_along_axis(g, before, d, after, r_i, w_i / w_i[0], w_i * r_i, g)
        before *= d
        start += d
    # Divide by the eigenvalues m(S(k)) = sum_i m_i [k_i > 0], the last index running fastest.
    d = n_actions[n - 1]
    k = np.zeros(n, dtype=np.int64)
    eigenvalue = 0.0
    for first in range(0, g.size, d):
        g[first] = g[first] / eigenvalue if eigenvalue > 0.0 else 0.0
        for a in range(1, d):
            g[first + a] /= eigenvalue + masses[n - 1]
        for i in range(n - 2, -1, -1):
            k[i] += 1
            if k[i] < n_actions[i]:
                break
            k[i] = 0
        eigenvalue = 0.0
        for i in range(n - 1):
            if k[i] > 0:
                eigenvalue += masses[i]
    before, after, start = 1, g.size, 0
    for i in range(n):
        d = n_actions[i]
        after //= d
        r_i, w_i = r[start : start + d], w[start : start + d]
        update_along_axis(g, before, d, after, 1.0 / r_i, w_i / (w_i[0] * r_i), w_i, g)
        before *= d
        start += d


@njit(cache=True, nogil=True)
def split_payoffs(
    u: np.ndarray,
    n_actions: np.ndarray,
    measure: np.ndarray,
    strategic: np.ndarray,
    nonstrategic: np.ndarray,
    potential: np.ndarray,
    harmonic: np.ndarray,
    phi: np.ndarray,
) -> None:
    """Split a game's payoffs; each part that is wanted has an array, the others have no rows.

    Parameters
    ----------
    u : ndarray of shape (n, M)
        Payoff tensors with their profiles flattened in C order.
    n_actions : ndarray of shape (n,), int64
        The d_i.
    measure : ndarray of shape (sum d_i,)
        The mu_i, concatenated.
    strategic : ndarray of shape (n, M)
        Work space; may be the harmonic part's array, or another wanted part's if that isn't wanted.
    nonstrategic, potential, harmonic : ndarray of shape (n, M) or (0, M)
        Written to.
    phi : ndarray of shape (M,)
        The potential is written to it if the potential or the harmonic part is wanted.

    Returns
    -------
    None
        The answers are in the last four.
    """
    n, M = u.shape
    phi[:] = 0.0
    before, after, start = 1, M, 0
    for i in range(n):
        d = n_actions[i]
        after //= d
        mu = measure[start : start + d]
        keep_own_choice(u[i], before, d, after, mu, strategic[i])
        mass = mu.sum()
        for a in range(M):
            phi[a] += mass * strategic[i, a]
        if len(nonstrategic):
            for a in range(M):
                nonstrategic[i, a] = u[i, a] - strategic[i, a]
        before *= d
        start += d
    if not len(potential) and not len(harmonic):
        return
    solve_for_potential(phi, n_actions, measure)
    scratch = np.empty(0 if len(potential) else M)
    before, after, start = 1, M, 0
    for i in range(n):
        d = n_actions[i]
        after //= d
        explained = potential[i] if len(potential) else scratch
        keep_own_choice(phi, before, d, after, measure[start : start + d], explained)
        if len(harmonic):
            for a in range(M):
                harmonic[i, a] = strategic[i, a] - explained[a]
        before *= d
        start += d


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
    keep_own_choice(f.reshape(-1), *along(f.shape, axis), mu, out.reshape(-1))
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
    flat = residual.reshape(-1)
    solve_for_potential(flat, np.array(residual.shape, dtype=np.int64), np.concatenate(measure))
    return residual


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
    flat = coefficients.reshape(-1)
    for axis, mu in enumerate(measure):  # as in solve_for_potential
        r = np.sqrt(mu / mu.sum())
        w = r.copy()
        w[0] += 1.0
        update_along_axis(flat, *along(f.shape, axis), r, w / w[0], w * r, flat)
    mask = np.zeros(f.shape, dtype=np.int64)
    for axis, d in enumerate(f.shape):
        bit = (np.arange(d) > 0) * 2**axis
        mask += bit.reshape([-1 if j == axis else 1 for j in range(f.ndim)])
    mass = prod(float(mu.sum()) for mu in measure)
    np.square(coefficients, out=coefficients)
    return mass * np.bincount(mask.ravel(), coefficients.ravel(), minlength=2**f.ndim)
