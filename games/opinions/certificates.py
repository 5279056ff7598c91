"""Why an equilibrium is unique: bounds of the spectral radius of M, cheapest first."""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order
from scipy.sparse.linalg import LinearOperator, eigs

from .channel import AffineChannel

__all__ = ["collatz_bound", "leaks_everywhere", "spectral_radius"]

Array = np.ndarray
#: A row of |M| leaks where its sum is below 1 by more than rounding.
LEAK = 1e-12
#: Nodes up to which the spectrum is computed densely.
DENSE_NODES = 400


def leaks_everywhere(channel: AffineChannel, row_sums: Array) -> bool:
    """Say whether |M| is substochastic and each user's influence reaches a row with sum below 1.

    Then rho(M) <= rho(|M|) < 1; for M >= 0 with row sums of at most 1 it is also necessary.
    """
    if row_sums.max() > 1 + LEAK:
        return False
    leaky = np.flatnonzero(row_sums < 1 - LEAK)
    if len(leaky) == 0:
        return False
    n = channel.n
    M = channel.absolute().matrix()
    M.eliminate_zeros()
    # One more node, from which every leaky row is reached; edges turned round.
    reverse = M.T.tocoo()
    rows = np.concatenate([reverse.coords[0], np.full(len(leaky), n)])
    columns = np.concatenate([reverse.coords[1], leaky])
    pattern = csr_array((np.ones(len(rows), dtype=np.int8), (rows, columns)), shape=(n + 1, n + 1))
    return len(breadth_first_order(pattern, n, return_predecessors=False)) == n + 1


def collatz_bound(channel: AffineChannel, n_products: int = 100) -> float:
    """Return an upper bound of rho(|M|): the least ``max_i (|M| v)_i / v_i`` over positive v.

    v comes from power iteration on ``|M|`` with a shift, which damps what cycles and keeps v
    positive: the bound is rigorous (Collatz and Wielandt).
    """
    absolute = channel.absolute()
    v = np.ones(channel.n)
    best = np.inf
    for _ in range(n_products):
        image = absolute.product(v)
        best = min(best, float(np.max(image / v)))
        if best < 1:
            return best
        v = image + 0.5 * best * v
        v /= v.max()
        v = np.maximum(v, 1e-12)
    return best


def spectral_radius(channel: AffineChannel) -> float:
    """Return an estimate of rho(M): exact for small n, else by Arnoldi's method."""
    n = channel.n
    if n <= DENSE_NODES:
        return float(np.abs(np.linalg.eigvals(channel.matrix().toarray())).max())
    operator = LinearOperator((n, n), matvec=channel.product, dtype=float)
    start = np.ones(n)
    largest = eigs(operator, k=1, which="LM", v0=start, return_eigenvectors=False, tol=1e-6)
    return float(np.abs(largest).max())
