"""Evolution in a symmetric meta-game: stable strategies and the replicator's rest points.

x is evolutionarily stable iff (x, x) is Nash and every other best reply y has x'My > y'My.
"""

from itertools import combinations

import numpy as np
from sklearn.utils import check_random_state

__all__ = ["replicate", "stable_strategies", "symmetric_matrix"]

Array = np.ndarray
#: Up to so many designs all supports are looked at; strict copositivity takes 2^d eigenproblems.
LARGEST_STABLE = 12
LARGEST_MIX = 3


def symmetric_matrix(payoffs: Array) -> Array:
    """The row's matrix M of a symmetric two-player game.

    Raises
    ------
    ValueError
        If there aren't two players, or the column's payoffs aren't the transpose of the row's.
    """
    if len(payoffs) != 2 or payoffs.shape[1] != payoffs.shape[2]:
        raise ValueError(
            f"this concept needs two stakeholders with one design list, got shape {payoffs.shape}"
        )
    if not np.allclose(payoffs[1], payoffs[0].T, atol=1e-9 * (np.ptp(payoffs) or 1.0)):
        raise ValueError("this concept needs a symmetric game: u_1(a, b) = u_0(b, a)")
    return payoffs[0]


def strictly_copositive(Q: Array, tol: float) -> bool:
    """Whether z'Qz > 0 for all z >= 0, z != 0.

    The form is strictly copositive iff no principal submatrix has an eigenvector v > 0 with an
    eigenvalue <= 0 (Kaplan 2000).
    """
    for size in range(1, len(Q) + 1):
        for chosen in combinations(range(len(Q)), size):
            values, vectors = np.linalg.eigh(Q[np.ix_(chosen, chosen)])
            for value, v in zip(values, vectors.T, strict=True):
                v = v if v.sum() >= 0 else -v
                if value <= tol and (v > 1e-12).all():
                    return False
    return True


def is_stable(M: Array, x: Array, tol: float) -> bool:
    """Whether a symmetric equilibrium is evolutionarily stable (Haigh 1975; Abakuks 1980)."""
    earned = M @ x
    reply = np.flatnonzero(earned >= earned.max() - tol)
    support = np.flatnonzero(x > 1e-9)
    k, others = support[0], np.array([j for j in reply if j != support[0]], dtype=int)
    if others.size == 0:
        return True
    if others.size > LARGEST_STABLE:
        return False  # undecided: too many best replies for the copositivity test
    # Q = -(M + M') on z = sum_j z_j (e_j - e_k), with z_j >= 0 for j outside the support.
    S = M + M.T
    Q = -(S[np.ix_(others, others)] - S[np.ix_(others, [k])] - S[np.ix_([k], others)] + S[k, k])
    inside = np.isin(others, support)
    if inside.any():
        # Free directions must be strictly convex; what is left of Q is their Schur complement.
        F = Q[np.ix_(inside, inside)]
        if np.linalg.eigvalsh(F).min() <= tol:
            return False
        C = Q[np.ix_(~inside, inside)]
        Q = Q[np.ix_(~inside, ~inside)] - C @ np.linalg.solve(F, C.T)
    return strictly_copositive(Q, tol) if len(Q) else True


def stable_on(M: Array, support: tuple[int, ...], tol: float) -> Array | None:
    """The evolutionarily stable strategy with just this support, if there is one."""
    size = len(support)
    sub = M[np.ix_(support, support)]
    system = np.block([[sub, -np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
    if np.linalg.matrix_rank(system) <= size:
        return None  # a continuum on this support: none of its points is stable
    weights = np.linalg.solve(system, np.r_[np.zeros(size), 1.0])[:-1]
    x = np.zeros(len(M))
    x[list(support)] = weights
    earned = M @ x
    if not (weights > 1e-9).all() or earned.max() > x @ earned + tol:
        return None
    return x if is_stable(M, x, tol) else None


def stable_strategies(M: Array, tol: float) -> tuple[list[Array], bool]:
    """Evolutionarily stable strategies of a symmetric game.

    No support of a stable strategy lies in another's best replies, so each support has at most one.

    Returns
    -------
    strategies : list of ndarray of shape (d,)
        All of them with at most 12 designs; with more, all that mix at most 3 designs and have at
        most 12 best replies.
    exact : bool
        Whether all supports were looked at.
    """
    d = len(M)
    exact = d <= LARGEST_STABLE
    largest = d if exact else LARGEST_MIX
    found = []
    for size in range(1, largest + 1):
        for support in combinations(range(d), size):
            x = stable_on(M, support, tol)
            if x is not None:
                found.append(x)
    return found, exact


def replicate(
    M: Array, n_starts: int, random_state: int, tol: float, max_iter: int = 20_000
) -> tuple[list[Array], Array, bool]:
    """Where the discrete replicator goes from random starts, and how often.

    Payoffs are shifted so that x_i <- x_i (Mx)_i / x'Mx is defined; that is the replicator equation
    in slow time.

    Returns
    -------
    rests : list of ndarray of shape (d,)
        Distinct ends, the most frequent first.
    shares : ndarray
        Share of the starts that ended at each.
    converged : bool
        Whether every start came to rest.
    """
    rng = check_random_state(random_state)
    A = (M - M.min()) / (float(np.ptp(M)) or 1.0) + 0.1
    X = rng.dirichlet(np.ones(len(M)), size=n_starts)
    converged = False
    for _ in range(max_iter):
        earned = X @ A.T
        new = X * earned / (X * earned).sum(axis=1, keepdims=True)
        moved = np.abs(new - X).max()
        X = new
        if moved <= tol:
            converged = True
            break
    rests: list[Array] = []
    hits: list[int] = []
    for x in X:
        for k, rest in enumerate(rests):
            if np.abs(rest - x).max() < 1e-3:
                hits[k] += 1
                break
        else:
            rests.append(x)
            hits.append(1)
    order = np.argsort(hits, kind="stable")[::-1]
    return [rests[k] for k in order], np.array(hits)[order] / n_starts, converged
