"""Do all policies of a system have determinants of one sign? Enumeration and search.

A system has exactly one solution for every offset vector if and only if det(I - Q) has the same
non-zero sign for every policy (property W). Determinants factor over strongly connected
components, so each component is examined alone, as the dense rows ``e_i - q_a``.
"""

import numpy as np
from numba import njit

__all__ = ["enumerate_radii", "enumerate_signs", "search_sign_change"]

Array = np.ndarray
#: Ratios of neighbouring determinants below this are taken for zero.
ZERO = 1e-12
REFRESH = 64
CHUNK = 4096


@njit(cache=True, nogil=True)
def gray_walk(rows: Array, starts: Array, policy: Array, witness: Array) -> int:
    """Walk all policies in mixed-radix Gray order, one row changing at a time.

    Returns 0 if all determinants have one sign, 1 if `policy` is singular, 2 if the
    determinants of `witness` (the first policy) and `policy` have opposite signs.
    """
    n = starts.shape[0] - 1
    M = np.empty((n, n))
    for i in range(n):
        policy[i] = 0
        M[i] = rows[starts[i]]
    witness[:] = policy
    if not nonsingular(M):
        return 1
    inverse = np.linalg.inv(M)
    direction = np.ones(n, np.int64)
    focus = np.arange(n + 1)
    since = 0
    while True:
        # Knuth's loopless mixed-radix reflected Gray code.
        i = focus[0]
        focus[0] = 0
        if i == n:
            return 0
        if starts[i + 1] - starts[i] > 1:
            policy[i] += direction[i]
            new = rows[starts[i] + policy[i]]
            ratio = 0.0
            for j in range(n):
                ratio += new[j] * inverse[j, i]
            M[i] = new
            if abs(ratio) <= 1e-6:
                # Close to zero the running inverse isn't to be trusted: decide afresh.
                if not nonsingular(M):
                    return 1
                sign_before = 1.0
                inverse_now = np.linalg.inv(M)
                ratio_back = 0.0
                old = rows[starts[i] + policy[i] - direction[i]]
                for j in range(n):
                    ratio_back += old[j] * inverse_now[j, i]
                if ratio_back < 0:
                    sign_before = -1.0
                if sign_before < 0:
                    return 2
                inverse = inverse_now
                since = 0
            else:
                if ratio < 0:
                    return 2
                since += 1
                if since == REFRESH:
                    inverse = np.linalg.inv(M)
                    since = 0
                else:
                    column = inverse[:, i] / ratio
                    change = new @ inverse
                    change[i] -= 1.0
                    for p in range(n):
                        for q in range(n):
                            inverse[p, q] -= column[p] * change[q]
        last = policy[i] == 0 or policy[i] == starts[i + 1] - starts[i] - 1
        if last:
            direction[i] = -direction[i]
            focus[i] = focus[i + 1]
            focus[i + 1] = i + 1


@njit(cache=True, nogil=True)
def nonsingular(M: Array) -> bool:
    """Whether elimination with partial pivoting meets no pivot at rounding level."""
    n = M.shape[0]
    U = M.copy()
    scale = 1.0
    for p in range(n):
        for q in range(n):
            scale = max(scale, abs(U[p, q]))
    for p in range(n):
        best = p
        for q in range(p + 1, n):
            if abs(U[q, p]) > abs(U[best, p]):
                best = q
        if abs(U[best, p]) <= 1e-14 * scale:
            return False
        if best != p:
            for q in range(n):
                U[p, q], U[best, q] = U[best, q], U[p, q]
        for q in range(p + 1, n):
            factor = U[q, p] / U[p, p]
            for r in range(p, n):
                U[q, r] -= factor * U[p, r]
    return True


def enumerate_signs(rows: Array, starts: Array) -> tuple[bool, tuple[Array, ...]]:
    """Compare the determinants of all policies of one component.

    Parameters
    ----------
    rows : ndarray of shape (m, n)
        ``e_i - q_a`` of each action.
    starts : ndarray of shape (n + 1,)
        Rows of each node.

    Returns
    -------
    one_sign : bool
        Whether all determinants have the same non-zero sign.
    policies : tuple of ndarray
        A singular policy, or two with opposite signs; empty if `one_sign`.
    """
    policy = np.zeros(len(starts) - 1, dtype=np.int64)
    witness = policy.copy()
    outcome = gray_walk(np.ascontiguousarray(rows), starts, policy, witness)
    if outcome == 0:
        return True, ()
    return False, (policy,) if outcome == 1 else (witness, policy)


def enumerate_radii(rows: Array, starts: Array) -> tuple[float, Array]:
    """The largest spectral radius of Q over all policies of one component, and its policy."""
    n = len(starts) - 1
    sizes = np.diff(starts)
    total = int(np.prod(sizes))
    chunk = max(1, min(CHUNK, 2**24 // n**2))
    worst, worst_policy = -1.0, np.zeros(n, dtype=np.int64)
    for first in range(0, total, chunk):
        codes = np.arange(first, min(first + chunk, total))
        policies = np.stack(np.unravel_index(codes, sizes), axis=1)  # (chunk, n)
        Q = np.eye(n) - rows[starts[:-1] + policies]
        radii = np.abs(np.linalg.eigvals(Q)).max(axis=1)
        k = int(np.argmax(radii))
        if radii[k] > worst:
            worst, worst_policy = float(radii[k]), policies[k].astype(np.int64)
    return worst, worst_policy


def search_sign_change(
    rows: Array, starts: Array, rng: np.random.RandomState
) -> tuple[Array, ...] | None:
    """Look for policies with opposite determinants by descent on the determinant.

    From random policies, switch the one action that shrinks |det| most; a neighbour whose ratio
    isn't positive is a refutation.

    Returns
    -------
    tuple of ndarray or None
        A singular policy or two neighbouring policies with opposite signs; None if none was met,
        which proves nothing.
    """
    n = len(starts) - 1
    sizes = np.diff(starts)
    owner = np.repeat(np.arange(n), sizes)
    # A step costs O(n^3) and a descent O(n) of them: large components get fewer restarts.
    for _ in range(int(np.clip(600 // n, 2, 20))):
        policy = rng.randint(0, sizes)
        for _ in range(10 * n):
            M = np.ascontiguousarray(rows[starts[:-1] + policy])
            if not nonsingular(M):
                return (policy,)
            inverse = np.linalg.inv(M)
            ratios = np.einsum("aj,ja->a", rows, inverse[:, owner])
            a = int(np.argmin(ratios))
            if ratios[a] <= -ZERO:
                other = policy.copy()
                other[owner[a]] = a - starts[owner[a]]
                return policy, other
            if ratios[a] >= 1 - 1e-9:
                break
            policy[owner[a]] = a - starts[owner[a]]
    return None
