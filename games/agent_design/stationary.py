"""Alpha-rank: how often each profile is seen when finite populations copy what earns more.

From profile s stakeholder i's population moves to s', which differs in i's design alone, at rate
eta rho with eta = 1 / sum_i (d_i - 1), rho = (1 - exp(-x)) / (1 - exp(-m x)), x = alpha (u_i(s') -
u_i(s)). The stationary distribution comes from elimination without subtraction [2].
"""

import numpy as np
from numba import njit
from scipy.sparse.csgraph import connected_components

__all__ = ["alpha_rank", "fixation_log_probability", "stationary_distribution"]

Array = np.ndarray
#: Weight of the uniform jumps that decide between closed classes.
JUMPS = 1e-9


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
                P[r, :k] += share * P[k, :k]
    pi[0] = 1.0
    for k in range(1, M):
        for r in range(k):
            pi[k] += pi[r] * P[r, k]
        if pi[k] > 1e150:
            pi[: k + 1] /= pi[k]
    return pi / pi.sum(), True


def stationary_distribution(log_rates: Array) -> tuple[Array, bool]:
    """The stationary distribution of a chain given the logs of its off-diagonal rates.

    Parameters
    ----------
    log_rates : ndarray of shape (M, M)
        -inf where there is no transition; the diagonal isn't read.

    Returns
    -------
    distribution : ndarray of shape (M,)
        Not negative, sums to 1.
    reducible : bool
        True where, in floating point, the rates leave several closed classes. Then rare uniform
        jumps decide between them.
    """
    M = len(log_rates)
    L = log_rates.copy()
    np.fill_diagonal(L, -np.inf)
    top = L.max()
    rates = np.exp(L - top) if np.isfinite(top) else np.zeros((M, M))
    n_classes, label = connected_components(rates > 0, connection="strong")
    leaves = np.zeros(n_classes, dtype=bool)
    start, stop = np.nonzero(rates)
    leaves[label[start[label[start] != label[stop]]]] = True
    if (~leaves).sum() == 1:  # one closed class: the others are left for good
        inside = np.flatnonzero(~leaves[label])
        found = np.zeros(M)
        found[inside], ok = eliminate(rates[np.ix_(inside, inside)])
        if ok and np.isfinite(found).all():
            return found, False
    # Scaled to stochastic rows, so that the jumps are equally rare everywhere.
    P = rates / max(rates.sum(axis=1).max(), 1.0)
    found, _ = eliminate((1 - JUMPS) * P + JUMPS / M)
    return found, True


def alpha_rank(payoffs: Array, alpha: float, population: int) -> tuple[Array, bool]:
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
    reducible : bool
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
    n, *shape = payoffs.shape
    M = int(np.prod(shape))
    profile = np.arange(M).reshape(shape)
    log_rates = np.full((M, M), -np.inf)
    for i in range(n):
        u = np.moveaxis(payoffs[i], i, -1).reshape(-1, shape[i])
        code = np.moveaxis(profile, i, -1).reshape(-1, shape[i])
        difference = u[:, None, :] - u[:, :, None]  # [rest, from, to]
        if np.isinf(alpha):
            with np.errstate(divide="ignore"):
                rates = np.log(np.where(difference > 0, 1.0, (difference == 0) / population))
        else:
            rates = fixation_log_probability(alpha * difference, population)
        start, stop = np.nonzero(~np.eye(shape[i], dtype=bool))
        log_rates[code[:, start], code[:, stop]] = rates[:, start, stop]
    found, reducible = stationary_distribution(log_rates)
    return found.reshape(shape), reducible
