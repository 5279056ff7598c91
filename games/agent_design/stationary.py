"""Alpha-rank: how often each profile is seen when finite populations copy what earns more.

From profile s stakeholder i's population moves to s', which differs in i's design alone, at rate
eta rho with eta = 1 / sum_i (d_i - 1), rho = (1 - exp(-x)) / (1 - exp(-m x)), x = alpha (u_i(s') -
u_i(s)). The stationary distribution comes from elimination without subtraction [2], and for many
profiles from Gauss and Seidel's iteration on the sparse chain of moves.

Where several sets of profiles can't be left, jumps to a uniform profile at a rate eps -> 0 decide:
they are equally rare everywhere, so a set weighs as the chance to end there from a uniform start.
"""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from numba import njit
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import spsolve

__all__ = ["alpha_rank", "fixation_log_probability", "stationary_distribution"]

Array = np.ndarray
#: Up to so many profiles the elimination takes seconds; above, the chain is iterated.
LARGEST_DENSE = 3000
SWEEPS = 20_000
SETTLED = 1e-11
ROUNDING = 1e-14
#: Moves less likely than this among a profile's moves don't connect sets of profiles in practice.
RARE = 1e-9


def fixation_log_probability(x: Array, population: int) -> Array:
    """Log of rho for selection strengths x = alpha (payoff difference); m is `population`."""
    m = population
    size = np.abs(x)
    safe = np.where(size > 0, size, 1.0)
    # rho(x) = (1 - e^-x) / (1 - e^-mx) for x > 0, and rho(-x) = rho(x) e^{-(m-1) x}.
    log_rho = np.log(-np.expm1(-safe)) - np.log(-np.expm1(-m * safe))
    log_rho = np.where(size > 0, log_rho, -np.log(m))
    return np.where(x < 0, log_rho - (m - 1) * size, log_rho)


@njit(cache=True, nogil=True)
def eliminate(P: Array) -> tuple[Array, bool]:
    """Grassmann, Taksar and Heyman's elimination on off-diagonal rates; P is overwritten."""
    M = len(P)
    pi = np.zeros(M)
    for k in range(M - 1, 0, -1):
        total = P[k, :k].sum()
        if not total > 0.0:
            return pi, False
        for r in range(k):
            share = P[r, k] / total
            P[r, k] = share
            if share > 0.0:
                for c in range(k):
                    P[r, c] += share * P[k, c]
    pi[0] = 1.0
    for k in range(1, M):
        for r in range(k):
            pi[k] += pi[r] * P[r, k]
        if pi[k] > 1e150:
            pi[: k + 1] /= pi[k]
    return pi / pi.sum(), True


@njit(cache=True, nogil=True)
def sweep(starts: Array, origin: Array, rate: Array, out: Array, pi: Array) -> float:
    """pi_j <- inflow_j / out_j in place, then sum 1; the largest relative change of an entry.

    Column j's moves come from origin[starts[j]:starts[j + 1]] at those rates.
    """
    before = pi.copy()
    for j in range(len(pi)):
        inflow = 0.0
        for k in range(starts[j], starts[j + 1]):
            inflow += pi[origin[k]] * rate[k]
        pi[j] = inflow / out[j]
    total = pi.sum()
    change = 0.0
    for j in range(len(pi)):
        pi[j] /= total
        change = max(change, abs(pi[j] - before[j]) / max(pi[j], 1e-300))
    return change


def eliminated(rates: sp.csr_array) -> tuple[Array, bool]:
    found, ok = eliminate(rates.toarray())
    return found, ok and bool(np.isfinite(found).all())


def closed_classes(rates: sp.csr_array) -> tuple[Array, Array]:
    """The class of each state, and the classes that can't be left."""
    n_classes, label = connected_components(rates, connection="strong")
    start, stop = rates.nonzero()
    left = np.zeros(n_classes, dtype=bool)
    left[label[start[label[start] != label[stop]]]] = True
    return label, np.flatnonzero(~left)


def nearly_reducible(rates: sp.csr_array, out: Array) -> bool:
    """Whether sets of profiles are left so rarely that an iteration can't see it."""
    likely = sp.csr_array(sp.diags_array(1.0 / out) @ rates)
    likely.data[likely.data < RARE] = 0.0
    likely.eliminate_zeros()
    return len(closed_classes(likely)[1]) > 1


def iterated(rates: sp.csr_array) -> tuple[Array, bool]:
    """The stationary distribution of an irreducible sparse chain, and whether it settled."""
    M = rates.shape[0]
    if M == 1:
        return np.ones(1), True
    columns, out = sp.csc_array(rates), np.asarray(rates.sum(axis=1)).ravel()
    sure = not nearly_reducible(rates, out)
    pi, before, calm = np.full(M, 1.0 / M), np.inf, 0
    for _ in range(SWEEPS):
        change = sweep(columns.indptr, columns.indices, columns.data, out, pi)
        # If changes go on to shrink by change / before a sweep, so much is still to come.
        small = change < before < 1e-3 and change * change / (before - change) <= SETTLED
        # Three times in a row: fast modes that die may hide a slow one for a sweep.
        calm = calm + 1 if small or change <= ROUNDING else 0
        if calm == 3:
            return pi, sure
        before = change
    return pi, False


def absorption(rates: sp.csr_array, label: Array, closed: Array) -> Array:
    """Chance of ending in each closed class from a uniform start: shape (n_closed,)."""
    M = rates.shape[0]
    place = np.full(label.max() + 1, -1)
    place[closed] = np.arange(len(closed))
    ends = place[label]  # class of each state, -1 where it is left for good
    chance = np.bincount(ends[ends >= 0], minlength=len(closed)).astype(float)
    passing = np.flatnonzero(ends < 0)
    if passing.size:
        moves = rates[passing]
        moves = sp.diags_array(1.0 / np.asarray(moves.sum(axis=1)).ravel()) @ moves
        inside = sp.csr_array(moves)[:, passing]
        stays = sp.eye_array(passing.size) - inside
        # Visits of each passing state: v (I - P) = uniform start, so chances are v P_to_closed.
        visits = spsolve(sp.csc_array(stays.T), np.ones(passing.size))
        arrivals = np.asarray(visits @ moves).ravel()
        chance += np.bincount(ends[ends >= 0], arrivals[ends >= 0], minlength=len(closed))
    return chance / M


def stationary_distribution(log_rates: sp.csr_array) -> tuple[Array, bool, bool]:
    """The stationary distribution of a chain given the logs of its off-diagonal rates.

    Parameters
    ----------
    log_rates : sparse array of shape (M, M)
        Stored entries are moves, -inf ones too; what isn't stored is none.

    Returns
    -------
    distribution : ndarray of shape (M,)
        Not negative, sums to 1.
    reducible : bool
        True where, in floating point, the rates leave several closed classes. Then rare uniform
        jumps decide between them.
    exact : bool
        False where an iteration hadn't settled.
    """
    M = log_rates.shape[0]
    top = log_rates.data.max(initial=-np.inf)
    rates = sp.csr_array(log_rates, copy=True)
    rates.data = np.exp(rates.data - top) if np.isfinite(top) else np.zeros_like(rates.data)
    rates.eliminate_zeros()
    label, closed = closed_classes(rates)
    weights = absorption(rates, label, closed) if len(closed) > 1 else np.ones(1)
    solve: Callable[[sp.csr_array], tuple[Array, bool]]
    found, exact = np.zeros(M), True
    for k, weight in zip(closed, weights, strict=True):
        inside = np.flatnonzero(label == k)
        solve = eliminated if inside.size <= LARGEST_DENSE else iterated
        own, settled = solve(sp.csr_array(rates[inside][:, inside]))
        found[inside] = weight * own
        exact &= settled
    return found, len(closed) > 1, bool(exact)


def move_log_rates(payoffs: Array, alpha: float, population: int) -> sp.csr_array:
    """Logs of the rates at which one stakeholder's population moves: shape (M, M), sparse."""
    n, *shape = payoffs.shape
    M = int(np.prod(shape))
    profile = np.arange(M).reshape(shape)
    rows, columns, values = [], [], []
    for i in range(n):
        u = np.moveaxis(payoffs[i], i, -1).reshape(-1, shape[i])
        code = np.moveaxis(profile, i, -1).reshape(-1, shape[i])
        start, stop = np.nonzero(~np.eye(shape[i], dtype=bool))
        difference = u[:, stop] - u[:, start]
        if np.isinf(alpha):
            with np.errstate(divide="ignore"):
                rates = np.log(np.where(difference > 0, 1.0, (difference == 0) / population))
        else:
            rates = fixation_log_probability(alpha * difference, population)
        rows.append(code[:, start].ravel())
        columns.append(code[:, stop].ravel())
        values.append(rates.ravel())
    place = (np.concatenate(rows), np.concatenate(columns))
    return sp.csr_array((np.concatenate(values), place), shape=(M, M))


def alpha_rank(payoffs: Array, alpha: float, population: int) -> tuple[Array, bool, bool]:
    """The alpha-rank distribution over profiles.

    Parameters
    ----------
    payoffs : ndarray of shape (n, d_0, ..., d_{n-1})
        Payoffs.
    alpha : float
        Strength of selection; infinity lets only improving moves, and ties at rate 1/m, happen.
    population : int
        Size m of each population.

    Returns
    -------
    distribution : ndarray of shape (d_0, ..., d_{n-1})
        Long-run shares.
    reducible, exact : bool
        See `stationary_distribution`.

    References
    ----------
    .. [1] S. Omidshafiei et al., "alpha-Rank: multi-agent evaluation by evolution", Scientific
       Reports 9, 2019.
    .. [2] W. Grassmann, M. Taksar, D. Heyman, "Regenerative analysis and steady state distributions
       for Markov chains", Operations Research 33, 1985.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games.agent_design.stationary import alpha_rank
    >>> chicken = np.array([[[6.0, 2.0], [7.0, 0.0]], [[6.0, 7.0], [2.0, 0.0]]])
    >>> alpha_rank(chicken, 1.0, 50)[0].round(3).tolist()
    [[0.0, 0.5], [0.5, 0.0]]
    """
    found, reducible, exact = stationary_distribution(move_log_rates(payoffs, alpha, population))
    return found.reshape(payoffs.shape[1:]), reducible, exact
