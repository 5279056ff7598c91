"""Cells: the matches of one profile, their mean and standard error, and how roles are pooled.

In a symmetric meta-game a match of designs (a, b) tells of (b, a) too. Its designs are sorted, its
payoffs with them; roles with one design share their mean, so a match counts once. Each profile's
payoffs are then read off the sorted cell.
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from .matches import recoded

__all__ = ["Cells", "collect_cells", "is_symmetric"]

Array = np.ndarray


@dataclass(frozen=True)
class Cells:
    """Observations sorted by cell, and where each profile finds its payoffs.

    Attributes
    ----------
    values : ndarray of shape (n_matches, n)
        Payoffs, sorted by cell.
    weights : ndarray of shape (n_matches,)
        Frequency weights in the same order.
    starts, sizes : ndarray of shape (n_cells,), int64
        First match and number of matches of each cell.
    mean, stderr : ndarray of shape (n_cells, n)
        Weighted mean; standard error, NaN where one match can't tell.
    counts : ndarray of shape (n_cells,)
        Sum of the weights.
    cell, slot : ndarray of shape (S, n, M), int64
        Cell (-1: never played) and column of u_i at each state and profile.
    ties : ndarray of shape (n_cells, n, n)
        Averages over the pooled roles that share a design: the identity without pooling.
    """

    values: Array
    weights: Array
    starts: Array
    sizes: Array
    mean: Array
    stderr: Array
    counts: Array
    cell: Array
    slot: Array
    ties: Array

    def tensor(self, table: Array, shape: tuple[int, ...]) -> Array:
        """Spread (..., n_cells, n) over the profiles: (..., S, n, d_0, ...); NaN if missing."""
        picked = table[..., np.maximum(self.cell, 0), self.slot]
        if (self.cell < 0).any():
            picked = np.where(self.cell < 0, np.nan, picked)
        return picked.reshape(*table.shape[:-2], *self.cell.shape[:2], *shape)


def cell_statistics(
    values: Array, weights: Array, cell: Array, n_cells: int
) -> tuple[Array, Array, Array]:
    """Weighted mean, standard error and total weight of each cell."""
    counts = np.bincount(cell, weights, n_cells)
    centre = values.mean(axis=0)  # subtracted first: squares then lose no digits
    mean, variance = np.empty((n_cells, values.shape[1])), np.empty((n_cells, values.shape[1]))
    for i, y in enumerate((values - centre).T):
        mean[:, i] = np.bincount(cell, weights * y, n_cells) / counts
        variance[:, i] = np.bincount(cell, weights * np.square(y - mean[cell, i]), n_cells)
    with np.errstate(divide="ignore", invalid="ignore"):
        stderr = np.sqrt(variance / (counts[:, None] - 1) / counts[:, None])
    stderr[counts <= 1] = np.nan
    return mean + centre, stderr, counts


def collect_cells(
    choices: Array,
    payoffs: Array,
    weights: Array,
    states: Array,
    shape: tuple[int, ...],
    n_states: int,
    symmetric: bool,
) -> Cells:
    """Sort the matches into cells.

    Parameters
    ----------
    choices, payoffs : ndarray of shape (n_matches, n)
        Designs and payoffs.
    weights, states : ndarray of shape (n_matches,)
        Frequency weights and states.
    shape : tuple of int
        Numbers of designs.
    n_states : int
        Number of states.
    symmetric : bool
        Whether the roles are pooled.

    Returns
    -------
    Cells
        The observations by cell.
    """
    n, M = len(shape), int(np.prod(shape))
    profiles = np.stack(np.unravel_index(np.arange(M), shape), axis=1)  # (M, n)
    slot = np.repeat(np.arange(n)[:, None], M, axis=1)
    target: Array = np.arange(M)
    same = np.broadcast_to(np.eye(n, dtype=bool), (len(choices), n, n))
    if symmetric:
        order = np.argsort(choices, axis=1, kind="stable")
        choices = np.take_along_axis(choices, order, axis=1)
        payoffs = np.take_along_axis(payoffs, order, axis=1)
        same = choices[:, :, None] == choices[:, None, :]
        payoffs = (same * payoffs[:, None, :]).sum(axis=2) / same.sum(axis=2)
        order = np.argsort(profiles, axis=1, kind="stable")
        swapped = np.take_along_axis(profiles, order, axis=1)
        target = np.asarray(np.ravel_multi_index(tuple(swapped.T), shape))
        slot = np.argsort(order, axis=1, kind="stable").T
    code = states * M + np.ravel_multi_index(choices.T, shape)
    used, cell = recoded(code, n_states * M)
    mean, stderr, counts = cell_statistics(payoffs, weights, cell, len(used))
    sizes = np.bincount(cell, minlength=len(used))
    place = np.full(n_states * M, -1)
    place[used] = np.arange(len(used))
    where = place.reshape(n_states, M)[:, target]  # (S, M)
    by_cell = np.argsort(cell, kind="stable")
    starts = np.r_[0, np.cumsum(sizes)[:-1]]
    alike = same[by_cell[starts]]
    return Cells(
        payoffs[by_cell],
        weights[by_cell],
        starts,
        sizes,
        mean,
        stderr,
        counts,
        np.repeat(where[:, None, :], n, axis=1),
        np.repeat(slot[None], n_states, axis=0),
        alike / alike.sum(axis=2, keepdims=True),
    )


def is_symmetric(choices: Array, payoffs: Array, weights: Array, level: float = 0.01) -> bool:
    """Whether two roles with one design list look exchangeable.

    For each pair of designs the row's payoff in (a, b) is compared with the column's in (b, a), by
    Welch's test, and on the diagonal the two roles of a match by a paired test; Bonferroni over
    all. A comparison without variance rejects iff the means differ.
    """
    d = int(choices.max()) + 1
    code = choices[:, 0] * d + choices[:, 1]
    mean, stderr, counts = np.zeros((d * d, 2)), np.full((d * d, 2), np.nan), np.zeros(d * d)
    used, cell = np.unique(code, return_inverse=True)
    found = cell_statistics(payoffs, weights, cell, len(used))
    mean[used], stderr[used], counts[used] = found
    paired = cell_statistics(payoffs[:, :1] - payoffs[:, 1:], weights, cell, len(used))
    tests = []
    for k, own in enumerate(used):
        a, b = divmod(int(own), d)
        other = b * d + a
        if a == b:
            tests.append((paired[0][k, 0], paired[1][k, 0], counts[own] - 1))
        elif counts[other]:
            squares = np.array([stderr[own, 0], stderr[other, 1]]) ** 2
            if (squares == 0).all():
                degrees = 1.0
            else:
                free = np.array([counts[own], counts[other]]) - 1
                with np.errstate(divide="ignore", invalid="ignore"):
                    degrees = squares.sum() ** 2 / np.sum(squares**2 / free)
            tests.append((mean[own, 0] - mean[other, 1], np.sqrt(squares.sum()), degrees))
    scale = 1e-12 * (float(np.abs(payoffs).max()) or 1.0)
    for difference, error, degrees in tests:
        if np.isnan(error) or abs(difference) <= scale:
            continue
        if error <= scale or stats.t.sf(abs(difference) / error, degrees) * 2 < level / len(tests):
            return False
    return True
