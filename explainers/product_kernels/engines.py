"""Two passes over the players for every node: the hot kernels behind all product games.

For one term with presence factors a and absence factors b, D = a - b, and the nodes t_q, w_q,

    phi_j = D_j * sum_q w_q prod_{l < j} (b_l + t_q D_l) prod_{l > j} (b_l + t_q D_l):

prefix products on the way up, suffix products on the way down, no division, hence no trouble where
a factor is 0. The innermost loop runs over LANES terms side by side, so that it compiles to vector
instructions; arrays of terms are laid out as (..., n_blocks, n_players, LANES). The passes read the
number of lanes from the array: a loop of constant length is unrolled before it is vectorised, and
then it isn't.
"""

import numpy as np
from numba import njit

from .nodes import QuadratureRules

__all__ = [
    "LANES",
    "identity_values",
    "lane_blocks",
    "lane_coefficients",
    "numpy_integrals",
    "numpy_values",
    "term_rows",
    "two_sided_values",
]

LANES = 32
_FASTMATH = {"reassoc", "contract", "nsz", "arcp"}  # keeps the meaning of NaN and infinity


def lane_blocks(array: np.ndarray) -> np.ndarray:
    """Lay out (..., n_terms, n_columns) as (..., n_blocks, n_columns, LANES).

    Parameters
    ----------
    array : ndarray of shape (..., n_terms, n_columns)
        One row a term, at least one; the last is repeated as padding.

    Returns
    -------
    ndarray of shape (..., n_blocks, n_columns, LANES)
        Contiguous float64.
    """
    *lead, n, columns = array.shape
    full, rest = divmod(n, LANES)
    blocks = np.empty((*lead, full + (rest > 0), columns, LANES))
    whole = array[..., : n - rest, :].reshape(*lead, full, LANES, columns)
    blocks[..., :full, :, :] = np.swapaxes(whole, -1, -2)
    if rest:
        last = blocks[..., -1, :, :]
        last[..., :rest] = np.swapaxes(array[..., n - rest :, :], -1, -2)
        last[..., rest:] = array[..., -1, :, None]
    return blocks


def term_rows(A: np.ndarray) -> np.ndarray:
    """Undo the layout in lanes: (n, n_terms, n_players)."""
    n, n_blocks, d, lanes = A.shape
    return np.ascontiguousarray(np.swapaxes(A, 2, 3)).reshape(n, n_blocks * lanes, d)


def lane_coefficients(coef: np.ndarray) -> np.ndarray:
    """Lay out (n_terms, n_outputs) as (n_blocks, LANES, n_outputs), padded with zeros.

    Parameters
    ----------
    coef : ndarray of shape (n_terms, n_outputs)
        Weights of the terms.

    Returns
    -------
    ndarray of shape (n_blocks, LANES, n_outputs)
        Contiguous float64.
    """
    n, n_outputs = coef.shape
    padded = np.zeros((-(-n // LANES) * LANES, n_outputs))
    padded[:n] = coef
    return padded.reshape(-1, LANES, n_outputs)


@njit(nogil=True, fastmath=_FASTMATH)
def one_sided_passes(D, t, w, pre, run, acc):  # type: ignore[no-untyped-def]
    """Add to acc[j] the integral of prod_{l != j} (1 + t D_l), for LANES terms."""
    n_players, lanes = D.shape
    for q in range(t.size):
        t_q = t[q]
        for lane in range(lanes):
            pre[0, lane] = 1.0
            run[lane] = w[q]
        for j in range(n_players - 1):
            for lane in range(lanes):
                pre[j + 1, lane] = pre[j, lane] + pre[j, lane] * (t_q * D[j, lane])
        for j in range(n_players - 1, -1, -1):
            for lane in range(lanes):
                acc[j, lane] += pre[j, lane] * run[lane]
                run[lane] += run[lane] * (t_q * D[j, lane])


@njit(nogil=True, fastmath=_FASTMATH)
def two_sided_passes(D, b, t, w, pre, run, acc):  # type: ignore[no-untyped-def]
    """Add to acc[j] the integral of prod_{l != j} (b_l + t D_l), for LANES terms."""
    n_players, lanes = D.shape
    for q in range(t.size):
        t_q = t[q]
        for lane in range(lanes):
            pre[0, lane] = 1.0
            run[lane] = w[q]
        for j in range(n_players - 1):
            for lane in range(lanes):
                pre[j + 1, lane] = pre[j, lane] * (b[j, lane] + t_q * D[j, lane])
        for j in range(n_players - 1, -1, -1):
            for lane in range(lanes):
                acc[j, lane] += pre[j, lane] * run[lane]
                run[lane] *= b[j, lane] + t_q * D[j, lane]


@njit(nogil=True)
def choose_rule(D, limits, z):  # type: ignore[no-untyped-def]
    """Return the first rule whose limit covers the largest Z = sum_j |D_j|, and that Z."""
    for lane in range(LANES):
        z[lane] = 0.0
    for j in range(D.shape[0]):
        for lane in range(LANES):
            z[lane] += abs(D[j, lane])
    largest = z.max()
    return min(np.searchsorted(limits, largest), limits.size - 1), largest


@njit(nogil=True, fastmath=_FASTMATH)
def contract(D, acc, coef, bound, phi, error):  # type: ignore[no-untyped-def]
    """Add D * acc summed over the lanes with their coefficients; add the error bound likewise."""
    for j in range(D.shape[0]):
        for o in range(coef.shape[1]):
            total = 0.0
            size = 0.0
            for lane in range(LANES):
                total += D[j, lane] * acc[j, lane] * coef[lane, o]
                size += abs(D[j, lane] * coef[lane, o])
            phi[j, o] += total
            error[j, o] += bound * size


@njit(cache=True, nogil=True)
def identity_values(  # type: ignore[no-untyped-def]
    D, coef, limits, starts, nodes, weights, tol, last_exact
):
    """Sum the values of one-sided product games (absence factors 1) over their terms.

    Parameters
    ----------
    D : ndarray of shape (n_games, n_blocks, n_players, LANES)
        a - 1.
    coef : ndarray of shape (n_blocks, LANES, n_outputs)
        Weights of the terms; 0 for padding.
    limits, starts, nodes, weights, tol, last_exact
        The fields of `QuadratureRules`.

    Returns
    -------
    phi : ndarray of shape (n_games, n_players, n_outputs)
        Values.
    error : ndarray of shape (n_games, n_players, n_outputs)
        Bound on their absolute error.
    most_nodes : int
        The largest rule used.
    largest : float
        The largest Z met.
    """
    n_games, n_blocks, n_players, _ = D.shape
    n_outputs = coef.shape[2]
    phi = np.zeros((n_games, n_players, n_outputs))
    error = np.zeros((n_games, n_players, n_outputs))
    pre = np.empty((n_players, LANES))
    acc = np.empty((n_players, LANES))
    run = np.empty(LANES)
    most_nodes = 0
    largest = 0.0
    for i in range(n_games):
        for k in range(n_blocks):
            rule, z = choose_rule(D[i, k], limits, run)
            t = nodes[starts[rule] : starts[rule + 1]]
            w = weights[starts[rule] : starts[rule + 1]]
            bound = 0.0 if last_exact and rule == limits.size - 1 else tol / max(1.0, z)
            acc[:] = 0.0
            one_sided_passes(D[i, k], t, w, pre, run, acc)
            contract(D[i, k], acc, coef[k], bound, phi[i], error[i])
            most_nodes = max(most_nodes, t.size)
            largest = max(largest, z)
    return phi, error, most_nodes, largest


@njit(cache=True, nogil=True)
def two_sided_values(  # type: ignore[no-untyped-def]
    A, B, row_weights, coef, limits, starts, nodes, weights, tol, last_exact
):
    """Sum the values of two-sided product games over terms and over rows of absence factors.

    Parameters
    ----------
    A : ndarray of shape (n_games, n_blocks, n_players, LANES)
        Presence factors.
    B : ndarray of shape (n_rows, n_blocks, n_players, LANES)
        Absence factors; the games of all rows are added up.
    row_weights : ndarray of shape (n_rows,)
        Weights of the rows, at least 0.
    coef, limits, starts, nodes, weights, tol, last_exact
        As in `identity_values`.

    Returns
    -------
    phi, error, most_nodes, largest
        As in `identity_values`.
    """
    n_games, n_blocks, n_players, _ = A.shape
    n_outputs = coef.shape[2]
    phi = np.zeros((n_games, n_players, n_outputs))
    error = np.zeros((n_games, n_players, n_outputs))
    D = np.empty((n_players, LANES))
    pre = np.empty((n_players, LANES))
    acc = np.empty((n_players, LANES))
    run = np.empty(LANES)
    most_nodes = 0
    largest = 0.0
    for i in range(n_games):
        for k in range(n_blocks):
            for r in range(B.shape[0]):
                for j in range(n_players):
                    for lane in range(LANES):
                        D[j, lane] = A[i, k, j, lane] - B[r, k, j, lane]
                rule, z = choose_rule(D, limits, run)
                t = nodes[starts[rule] : starts[rule + 1]]
                w = weights[starts[rule] : starts[rule + 1]]
                bound = 0.0 if last_exact and rule == limits.size - 1 else tol / max(1.0, z)
                acc[:] = 0.0
                two_sided_passes(D, B[r, k], t, w, pre, run, acc)
                for j in range(n_players):
                    for lane in range(LANES):
                        D[j, lane] *= row_weights[r]
                contract(D, acc, coef[k], bound, phi[i], error[i])
                most_nodes = max(most_nodes, t.size)
                largest = max(largest, z)
    return phi, error, most_nodes, largest


def exclusive_products(F: np.ndarray) -> np.ndarray:
    """Multiply all factors but one along the last axis, without division."""
    product = np.ones_like(F)
    np.cumprod(F[..., :-1], axis=-1, out=product[..., 1:])
    product[..., :-1] *= np.cumprod(F[..., :0:-1], axis=-1)[..., ::-1]
    return product


def numpy_integrals(
    D: np.ndarray, B: np.ndarray | float, rules: QuadratureRules
) -> tuple[np.ndarray, float, int, float]:
    """Integrate in NumPy, with one rule for all terms.

    Parameters
    ----------
    D : ndarray of shape (..., n_players)
        a - b of each term; may be complex.
    B : ndarray broadcastable to `D`, or 1.0
        Absence factors b.
    rules : QuadratureRules
        The rule that covers the term with the largest Z is used for all.

    Returns
    -------
    A : ndarray of shape (..., n_players)
        D_j int prod_{l != j} (b_l + t D_l) dt.
    bound : float
        Bound on the integrals' error.
    n_nodes : int
        Nodes used.
    largest : float
        The largest Z met.
    """
    largest = float(np.abs(D).sum(axis=-1).max(initial=0.0))
    rule = min(int(np.searchsorted(rules.limits, largest)), len(rules.limits) - 1)
    chosen = slice(rules.starts[rule], rules.starts[rule + 1])
    exact = rules.last_exact and rule == len(rules.limits) - 1
    acc = np.zeros_like(D)
    for t, w in zip(rules.nodes[chosen], rules.weights[chosen], strict=True):
        acc += w * exclusive_products(B + t * D)
    bound = 0.0 if exact else rules.tol / max(1.0, largest)
    return D * acc, bound, int(chosen.stop - chosen.start), largest


def numpy_values(
    D: np.ndarray, B: np.ndarray | float, coef: np.ndarray, rules: QuadratureRules
) -> tuple[np.ndarray, np.ndarray, int, float]:
    """Sum the integrals over terms with their coefficients.

    Parameters
    ----------
    D : ndarray of shape (..., n_terms, n_players)
        a - b.
    B : ndarray broadcastable to `D`, or 1.0
        Absence factors b.
    coef : ndarray of shape (n_terms, n_outputs)
        Weights of the terms.
    rules : QuadratureRules
        Nodes.

    Returns
    -------
    phi : ndarray of shape (..., n_players, n_outputs)
        Values.
    error : ndarray of shape (..., n_players, n_outputs)
        Bound on their absolute error.
    n_nodes, largest
        As in `numpy_integrals`.
    """
    A, bound, n_nodes, largest = numpy_integrals(D, B, rules)
    phi = np.einsum("...ij,io->...jo", A, coef)
    error = bound * np.einsum("...ij,io->...jo", np.abs(D), np.abs(coef))
    return phi, error, n_nodes, largest
