"""BiCGSTAB for the linear system of one policy, ``(I - Q) x = b``, compiled."""

import numpy as np
from numba import njit

__all__ = ["bicgstab"]

Array = np.ndarray


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def bicgstab(
    ptr: Array,
    cols: Array,
    coef: Array,
    b: Array,
    target: float,
    max_iter: int,
    x: Array,
    work: Array,
) -> tuple[int, float]:
    """Improve x until the largest residual is at most `target`.

    Returns the iterations made, each of two products with Q, and the residual over the first
    one. It ends early, with what there is, where the method breaks down. ``work`` is scratch of
    shape (5, n).
    """
    n = b.shape[0]
    r, shadow, p, v, t = work[0], work[1], work[2], work[3], work[4]
    rho = 0.0
    worst = 0.0
    for i in range(n):
        total = b[i] - x[i]
        for k in range(ptr[i], ptr[i + 1]):
            total += coef[k] * x[cols[k]]
        r[i] = total
        shadow[i] = total
        p[i] = total
        rho += total * total
        worst = max(worst, abs(total))
    first = worst if worst > 0.0 else 1.0
    for iteration in range(max_iter):
        if worst <= target or rho == 0.0:
            return iteration, worst / first
        along = 0.0
        for i in range(n):
            total = p[i]
            for k in range(ptr[i], ptr[i + 1]):
                total -= coef[k] * p[cols[k]]
            v[i] = total
            along += shadow[i] * total
        if along == 0.0:
            return iteration, worst / first
        alpha = rho / along
        for i in range(n):
            r[i] -= alpha * v[i]
        square = 0.0
        cross = 0.0
        for i in range(n):
            total = r[i]
            for k in range(ptr[i], ptr[i + 1]):
                total -= coef[k] * r[cols[k]]
            t[i] = total
            square += total * total
            cross += total * r[i]
        omega = cross / square if square > 0.0 else 0.0
        fresh = 0.0
        worst = 0.0
        for i in range(n):
            x[i] += alpha * p[i] + omega * r[i]
            r[i] -= omega * t[i]
            fresh += shadow[i] * r[i]
            worst = max(worst, abs(r[i]))
        if omega == 0.0:
            return iteration + 1, worst / first
        beta = fresh / rho * alpha / omega
        rho = fresh
        for i in range(n):
            p[i] = r[i] + beta * (p[i] - omega * v[i])
    return max_iter, worst / first
