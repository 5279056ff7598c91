"""How sure a statement about estimated payoffs is: Welch bounds, bootstrap, next matches."""

from collections.abc import Iterator

import numpy as np
from scipy import stats
from sklearn.utils import check_random_state

from equipoise.blocks import iter_blocks

from .cells import Cells
from .deviations import own_line, player_rows

__all__ = ["bootstrap_tables", "difference_bounds", "match_values", "welch_margins"]

Array = np.ndarray

NO_ERRORS = (
    "standard errors are needed in every cell that is compared; a cell with one match, or payoffs "
    "given without stderr, has none"
)


def welch_halfwidth(s: Array, t: Array, c: Array, k: Array, alpha: float) -> Array:
    """How far a difference of two means may lie above its estimate, at level alpha (Welch).

    Parameters
    ----------
    s, t : ndarray
        Standard errors of the two means; zero for a known number.
    c, k : ndarray
        Matches behind them.
    alpha : float
        Probability that the true difference is larger.

    Returns
    -------
    ndarray
        The halfwidths; zero where both errors are.
    """
    squares = s**2 + t**2
    with np.errstate(divide="ignore", invalid="ignore"):
        degrees = squares**2 / (s**4 / (c - 1) + t**4 / (k - 1))
    degrees = np.where(squares > 0, degrees, 1.0)
    return np.where(squares > 0, stats.t.ppf(1 - alpha, degrees) * np.sqrt(squares), 0.0)


def difference_bounds(
    payoffs: Array,
    stderr: Array,
    counts: Array,
    profile: tuple[int, ...],
    alpha: float,
    ends: Array | None = None,
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
    ends : ndarray of shape (2, n, d_0, ..., d_{n-1}), optional
        Least and largest payoffs; where they differ, a cell has no estimate, and the worse counts.

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
    low, high = (payoffs, payoffs) if ends is None else ends
    comparisons = max(sum(d - 1 for d in shape), 1)
    bounds = []
    for i in range(n):
        line, own = own_line(profile, i), profile[i]
        s, c = np.where(high[i][line] > low[i][line], 0.0, stderr[i][line]), counts[line]
        if shape[i] > 1 and np.isnan(s).any():
            raise ValueError(f"{NO_ERRORS} (stakeholder {i}, design {int(np.isnan(s).argmax())})")
        width = welch_halfwidth(s, s[own], c, c[own], alpha / comparisons)
        bound = high[i][line] - low[i][profile] + width
        bound[own] = 0.0
        bounds.append(bound)
    return bounds


def welch_margins(stderr: Array, counts: Array, alpha: float) -> list[Array]:
    """Halfwidths for all differences u_i(b, a_{-i}) - u_i(r, a_{-i}) at once, Bonferroni.

    Returns
    -------
    list of ndarray of shape (d_i, d_i, M / d_i)
        By r, b and the others' designs; zero where r = b.

    Raises
    ------
    ValueError
        If a cell has no standard error.
    """
    if np.isnan(stderr).any():
        raise ValueError(NO_ERRORS)
    shape = counts.shape
    comparisons = max(sum((d - 1) * counts.size for d in shape), 1)
    margins = []
    for i, s in enumerate(stderr):
        S, C = player_rows(s, i), player_rows(counts, i)
        width = welch_halfwidth(S[:, None], S[None], C[:, None], C[None], alpha / comparisons)
        width[np.arange(shape[i]), np.arange(shape[i])] = 0.0
        margins.append(width)
    return margins


def pooled_residuals(cells: Cells) -> Array:
    """Deviations from the mean in all cells with two or more matches, scaled to their variance."""
    size = np.repeat(cells.sizes, cells.sizes)
    if not (size > 1).any():
        raise ValueError("single='pooled' needs a cell with two or more matches")
    mean = np.repeat(cells.mean, cells.sizes, axis=0)
    grown = np.sqrt(size / np.maximum(size - 1, 1))[:, None]
    return ((cells.values - mean) * grown)[size > 1]


def bootstrap_tables(
    cells: Cells, n_bootstrap: int, random_state: object, pooled: bool = False
) -> Iterator[Array]:
    """Means of matches drawn anew within each cell.

    A match of weight w stands for w matches: a cell of total weight W is drawn from round(W) times.

    Parameters
    ----------
    cells : Cells
        The matches.
    n_bootstrap : int
        Number of replicates.
    random_state : int, RandomState or None
        Where the draws come from.
    pooled : bool, default=False
        Whether a cell with a single match varies by residuals drawn from all other cells.

    Yields
    ------
    ndarray of shape (n_replicates, n_cells, n)
        Replicates, as many at a time as fit in scikit-learn's working memory.
    """
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
    weighted = not (cells.weights == 1.0).all()
    draws = np.maximum(np.rint(cells.counts), 1).astype(np.int64) if weighted else cells.sizes
    starts = np.r_[0, np.cumsum(draws)[:-1]]
    first = np.repeat(cells.starts, draws)
    size = np.repeat(cells.sizes, draws)
    reach = np.cumsum(cells.weights)
    below = np.repeat(np.r_[0.0, reach[cells.starts[1:] - 1]], draws)
    whole = np.repeat(cells.counts, draws)
    columns = [np.ascontiguousarray(y) for y in cells.values.T]
    single = np.flatnonzero(cells.sizes == 1)
    residuals = pooled_residuals(cells) if pooled and single.size else None
    for block in iter_blocks(n_bootstrap, bytes_per_item=len(first) * 8.0 * 4):
        k = block.stop - block.start
        if weighted:
            place = below + rng.random((k, len(first))) * whole
            index = np.clip(np.searchsorted(reach, place, side="right"), first, first + size - 1)
        else:
            drawn = rng.random((k, len(first)), dtype=np.float32)
            drawn *= size.astype(np.float32)
            # float32 can round up to the size itself
            index = np.minimum(drawn.astype(np.int32), (size - 1).astype(np.int32))
            index += first.astype(np.int32)
        sums = [np.add.reduceat(y[index], starts, axis=1) / draws for y in columns]
        table = np.stack(sums, axis=-1)
        if residuals is not None:
            more = residuals[rng.integers(len(residuals), size=(k, single.size))]
            # Roles with one design hold the mean of their roles: so does what is added.
            table[:, single] += np.einsum("ksj,sij->ksi", more, cells.ties[single])
        yield table


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
    s = np.where(np.isnan(stderr), float(np.ptp(payoffs)) or 1.0, stderr)
    weight = s / np.sqrt(counts)
    value = np.zeros(payoffs.shape[1:])
    for z in map(tuple, profiles):
        for i, u in enumerate(payoffs):
            line = own_line(z, i)
            error = np.hypot(s[i][z], s[i][line])
            error[z[i]] = 0.0
            t = np.divide(u[line] - u[z], error, out=np.zeros_like(error), where=error > 0)
            density = np.where(error > 0, np.exp(-(t**2) / 2), 0.0)
            value[line] += weight[i][line] * density
            value[z] += weight[i][z] * density.sum()
    return value
