"""How sure a statement about estimated payoffs is: Welch bounds, bootstrap, next matches."""

from collections.abc import Iterator

import numpy as np
from scipy import stats
from sklearn.utils import check_random_state

from equipoise.blocks import iter_blocks

from .cells import Cells
from .deviations import own_line

__all__ = ["bootstrap_tables", "difference_bounds", "match_values"]

Array = np.ndarray


def difference_bounds(
    payoffs: Array, stderr: Array, counts: Array, profile: tuple[int, ...], alpha: float
) -> list[Array]:
    """Upper bounds of u_i(b, z_{-i}) - u_i(z), together valid with probability 1 - alpha.

    Welch's bounds at level alpha / sum_i (d_i - 1) each.

    Parameters
    ----------
    payoffs, stderr : ndarray of shape (n, d_0, ..., d_{n-1})
        Means and standard errors.
    counts : ndarray of shape (d_0, ..., d_{n-1})
        Matches behind each mean.
    profile : tuple of int
        z.
    alpha : float
        Probability that one of the bounds fails.

    Returns
    -------
    list of ndarray of shape (d_i,)
        Zero at the own design.

    Raises
    ------
    ValueError
        If a cell that is needed has no standard error.
    """
    n, *shape = payoffs.shape
    comparisons = max(sum(d - 1 for d in shape), 1)
    bounds = []
    for i in range(n):
        line = own_line(profile, i)
        u, s, c = payoffs[i][line], stderr[i][line], counts[line]
        if shape[i] > 1 and np.isnan(s).any():
            raise ValueError(
                "standard errors are needed in every cell that is compared; a cell with one "
                f"match, or payoffs given without stderr, has none (stakeholder {i}, "
                f"design {int(np.isnan(s).argmax())})"
            )
        own = profile[i]
        squares = s**2 + s[own] ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            degrees = squares**2 / (s**4 / (c - 1) + s[own] ** 4 / (c[own] - 1))
        degrees = np.where(squares > 0, degrees, 1.0)
        quantile = stats.t.ppf(1 - alpha / comparisons, degrees)
        bound = u - u[own] + np.where(squares > 0, quantile * np.sqrt(squares), 0.0)
        bound[own] = 0.0
        bounds.append(bound)
    return bounds


def bootstrap_tables(cells: Cells, n_bootstrap: int, random_state: object) -> Iterator[Array]:
    """Means of matches drawn anew within each cell.

    Yields
    ------
    ndarray of shape (n_replicates, n_cells, n)
        Replicates, as many at a time as fit in scikit-learn's working memory.
    """
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
    G = len(cells.values)
    first = np.repeat(cells.starts, cells.sizes)
    size = np.repeat(cells.sizes, cells.sizes)
    weighted = not (cells.weights == 1.0).all()
    columns = [np.ascontiguousarray(y * cells.weights) for y in cells.values.T]
    for block in iter_blocks(n_bootstrap, bytes_per_item=G * 8.0 * 4):
        k = block.stop - block.start
        drawn = rng.random((k, G), dtype=np.float32)
        drawn *= size.astype(np.float32)
        # float32 can round up to the size itself
        index = np.minimum(drawn.astype(np.int32), (size - 1).astype(np.int32))
        index += first.astype(np.int32)
        total: Array | float = cells.sizes.astype(float)
        if weighted:
            total = np.add.reduceat(cells.weights[index], cells.starts, axis=1)
        sums = [np.add.reduceat(y[index], cells.starts, axis=1) / total for y in columns]
        yield np.stack(sums, axis=-1)


def match_values(payoffs: Array, stderr: Array, counts: Array, profiles: Array) -> Array:
    """How much one more match in each cell would tell about reported equilibria.

    A comparison of u_i(b, z_{-i}) with u_i(z), |t| standard errors from the tie, is wrong with a
    probability whose density at the tie is phi(t); a cell counts with its standard error, divided
    by the root of its count, times that.

    Parameters
    ----------
    payoffs, stderr : ndarray of shape (n, d_0, ..., d_{n-1})
        Means, and standard errors (NaN after one match: taken as the range of payoffs).
    counts : ndarray of shape (d_0, ..., d_{n-1})
        Matches so far.
    profiles : ndarray of shape (n_profiles, n)
        The equilibria.

    Returns
    -------
    ndarray of shape (d_0, ..., d_{n-1})
        Not negative; only their order means something.
    """
    n, *shape = payoffs.shape
    s = np.where(np.isnan(stderr), float(np.ptp(payoffs)) or 1.0, stderr)
    value = np.zeros(shape)
    for z in map(tuple, profiles):
        for i in range(n):
            for b in range(shape[i]):
                other = (*z[:i], b, *z[i + 1 :])
                if b == z[i]:
                    continue
                error = np.hypot(s[i][z], s[i][other])
                if error == 0:
                    continue
                t = (payoffs[i][other] - payoffs[i][z]) / error
                for cell in (z, other):
                    value[cell] += s[i][cell] / np.sqrt(counts[cell]) * stats.norm.pdf(t)
    return value
