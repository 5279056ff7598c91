"""Updates of the endmembers: minimise tr(V C V^T) - 2 tr(V^T B) over a decoder's set.

V (D, K) are the endmembers less the data's mean, C = sum_i w_i E[z_i z_i^T], B = sum_i w_i y_i
m_i^T. Because the code sums to one, centring changes nothing but the bounds. Every update starts
from the V it is given and never increases the objective.
"""

from collections.abc import Callable

import numpy as np
from numba import njit
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial import ConvexHull, QhullError

from .abundances import fcls_rows
from .pure_pixels import principal_axes

__all__ = ["HullDecoder", "bounded_update", "hull_candidates", "least_squares_update"]

#: V, B, C -> V
Update = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]

#: Sweeps over the coordinates, and over the archetypes, in one update.
SWEEPS = 2000
HULL_SWEEPS = 2
#: Rows that may carry archetypes where the hull's vertices aren't found exactly.
N_CANDIDATES = 500


def least_squares_update(V: np.ndarray, B: np.ndarray, C: np.ndarray) -> np.ndarray:
    """V <- V + (B - V C)(C + eps I)^{-1}: the minimiser, approached from V where C is singular."""
    K = len(C)
    factor = cho_factor(C + 1e-10 * np.trace(C) / K * np.eye(K))
    return V + cho_solve(factor, (B - V @ C).T).T


@njit(cache=True, nogil=True)
def coordinate_descent(
    V: np.ndarray,
    B: np.ndarray,
    C: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    max_sweeps: int,
    tol: float,
) -> np.ndarray:
    """Minimise each band's quadratic over lower_d <= V_dk <= upper_d, one coordinate at a time."""
    D, K = B.shape
    V = V.copy()
    for d in range(D):
        for _ in range(max_sweeps):
            largest_move, largest_value = 0.0, 0.0
            for k in range(K):
                slope = -B[d, k]
                for j in range(K):
                    slope += C[k, j] * V[d, j]
                old = V[d, k]
                V[d, k] = min(max(old - slope / C[k, k], lower[d]), upper[d])
                largest_move = max(largest_move, abs(V[d, k] - old))
                largest_value = max(largest_value, abs(V[d, k]))
            if largest_move <= tol * largest_value:
                break
    return V


def bounded_update(lower: np.ndarray, upper: np.ndarray) -> Update:
    """The update under bounds (D,) on the centred endmembers."""

    def update(V: np.ndarray, B: np.ndarray, C: np.ndarray) -> np.ndarray:
        free = least_squares_update(V, B, C)
        if (free >= lower[:, None]).all() and (free <= upper[:, None]).all():
            return free
        return coordinate_descent(V, B, C, lower, upper, SWEEPS, 1e-12)

    return update


def furthest_rows(Y: np.ndarray, n_rows: int, start: int) -> np.ndarray:
    """Rows chosen one by one, each of largest summed distance to those chosen before it."""
    chosen = [start]
    total = np.zeros(len(Y))
    while len(chosen) < min(n_rows, len(Y)):
        total += np.linalg.norm(Y - Y[chosen[-1]], axis=1)
        total[chosen] = -1.0
        chosen.append(int(np.argmax(total)))
    return np.array(chosen)


def hull_candidates(Y: np.ndarray, n_components: int) -> np.ndarray:
    """Rows that can carry archetypes: hull vertices of the leading scores, else furthest rows."""
    n = len(Y)
    if n <= N_CANDIDATES:
        return np.arange(n)
    width = min(n_components - 1, Y.shape[1])
    rows = np.arange(n)
    if width <= 5:
        scores = Y @ principal_axes(Y, np.ones(n))[1][:width].T
        if width == 1:
            return np.array([scores.argmin(), scores.argmax()])
        try:
            rows = np.sort(ConvexHull(scores).vertices)
        except QhullError:  # the scores are flat
            rows = np.arange(n)
    if len(rows) > N_CANDIDATES:
        start = int(np.argmax((Y[rows] ** 2).sum(axis=1)))
        rows = np.sort(rows[furthest_rows(Y[rows], N_CANDIDATES, start)])
    return rows


class HullDecoder:
    """Endmembers in the data's convex hull: V^T = A Y_c, rows of A on the simplex.

    With the other endmembers fixed, the best place of one is the hull's point nearest to its
    unconstrained optimum (B_k - sum_{j != k} C_kj V_j) / C_kk: fully constrained least squares over
    the candidates, solved exactly.
    """

    def __init__(self, candidates: np.ndarray) -> None:
        self.candidates = candidates  # (n_candidates, D)
        self.gram = candidates @ candidates.T
        trace = float(np.trace(self.gram)) / len(candidates)
        self.ridge = 1e-12 * max(trace, np.finfo(float).tiny)

    def weights(self, V: np.ndarray) -> np.ndarray:
        """A (K, n_candidates) of the hull's points nearest to the columns of V (D, K)."""
        return fcls_rows(V.T @ self.candidates.T, self.gram, self.ridge)

    def project(self, V: np.ndarray) -> np.ndarray:
        """The nearest endmembers in the hull."""
        return (self.weights(V) @ self.candidates).T

    def update(self, V: np.ndarray, B: np.ndarray, C: np.ndarray) -> np.ndarray:
        """Move one endmember after the other to its best place, twice round."""
        V = V.copy()
        for _ in range(HULL_SWEEPS):
            for k in range(len(C)):
                optimum = V[:, k] + (B[:, k] - V @ C[:, k]) / C[k, k]
                V[:, k] = self.project(optimum[:, None])[:, 0]
        return V
