"""Sweeps over a system of min and max equations, compiled.

A system has n nodes; node i owns the rows ``nodes[i]:nodes[i + 1]``; row a holds coefficients
``coef[ptr[a]:ptr[a + 1]]`` in the columns ``cols[...]`` and an offset ``b[a]``. With sign s_i = +1
for max and -1 for min, the operator is ``T(x)_i = s_i max_a s_i (q_a.x + b_a)``. Every sweep is
O(coefficients + rows), allocates nothing and releases the GIL.
"""

import numpy as np
from numba import njit

__all__ = [
    "absolute_image",
    "bellman",
    "best_rows",
    "bracket",
    "gauss_seidel",
    "improve",
    "interval_sweep",
    "row_values",
    "select_rows",
    "smallest_image",
]

Array = np.ndarray
EPS = np.finfo(np.float64).eps


@njit(cache=True, nogil=True)
def row_values(
    ptr: Array, cols: Array, coef: Array, b: Array, x: Array, start: int, stop: int, out: Array
) -> None:
    """``out[a] = q_a.x + b_a`` for the rows in ``start:stop``."""
    for row in range(start, stop):
        total = b[row]
        for k in range(ptr[row], ptr[row + 1]):
            total += coef[k] * x[cols[k]]
        out[row] = total


@njit(cache=True, nogil=True)
def best_rows(
    nodes: Array, values: Array, sign: Array, start: int, stop: int, out: Array, policy: Array
) -> None:
    """Best of each node's row values, and the smallest action that attains it.

    Together with `row_values` this is `bellman` in two passes, whose first has no branch that
    waits for memory: faster where x doesn't fit in the cache.
    """
    for i in range(start, stop):
        s = sign[i]
        best = -np.inf
        best_row = nodes[i]
        for row in range(nodes[i], nodes[i + 1]):
            total = s * values[row]
            if total > best:
                best = total
                best_row = row
        out[i] = s * best
        policy[i] = best_row - nodes[i]


@njit(cache=True, nogil=True)
def select_rows(
    nodes: Array,
    ptr: Array,
    cols: Array,
    coef: Array,
    b: Array,
    policy: Array,
    new_ptr: Array,
    new_cols: Array,
    new_coef: Array,
    new_b: Array,
) -> None:
    """Copy the rows that a policy picks, one a node, to compressed arrays."""
    end = 0
    for i in range(policy.shape[0]):
        row = nodes[i] + np.uint64(policy[i])
        new_ptr[i] = end
        new_b[i] = b[row]
        for k in range(ptr[row], ptr[row + 1]):
            new_cols[end] = cols[k]
            new_coef[end] = coef[k]
            end += 1
    new_ptr[policy.shape[0]] = end


@njit(cache=True, nogil=True)
def bellman(
    nodes: Array,
    ptr: Array,
    cols: Array,
    coef: Array,
    b: Array,
    sign: Array,
    x: Array,
    start: int,
    stop: int,
    out: Array,
    policy: Array,
) -> None:
    """``out = T(x)`` and the smallest best action, for the nodes in ``start:stop``."""
    for i in range(start, stop):
        s = sign[i]
        best = -np.inf
        best_row = nodes[i]
        for row in range(nodes[i], nodes[i + 1]):
            total = b[row]
            for k in range(ptr[row], ptr[row + 1]):
                total += coef[k] * x[cols[k]]
            total *= s
            if total > best:
                best = total
                best_row = row
        out[i] = s * best
        policy[i] = best_row - nodes[i]


@njit(cache=True, nogil=True)
def improve(
    nodes: Array,
    ptr: Array,
    cols: Array,
    coef: Array,
    b: Array,
    sign: Array,
    x: Array,
    tie_tol: float,
    movable: Array,
    policy: Array,
) -> int:
    """Switch every movable node whose violation exceeds ``tie_tol * (1 + |x_i|)`` to its best
    action, in place; return how many nodes switched."""
    switched = 0
    for i in range(nodes.shape[0] - 1):
        if not movable[i] or nodes[i + 1] - nodes[i] == 1:
            continue
        s = sign[i]
        best = -np.inf
        best_row = nodes[i]
        held = nodes[i] + np.uint64(policy[i])
        current = 0.0
        for row in range(nodes[i], nodes[i + 1]):
            total = b[row]
            for k in range(ptr[row], ptr[row + 1]):
                total += coef[k] * x[cols[k]]
            total *= s
            if row == held:
                current = total
            if total > best:
                best = total
                best_row = row
        if best - current > tie_tol * (1.0 + abs(x[i])):
            policy[i] = best_row - nodes[i]
            switched += 1
    return switched


@njit(cache=True, nogil=True)
def gauss_seidel(
    nodes: Array,
    ptr: Array,
    cols: Array,
    coef: Array,
    b: Array,
    sign: Array,
    order: Array,
    omega: float,
    sweeps: int,
    x: Array,
) -> None:
    """Sweep in place in the given order: ``x_i += omega (T(x)_i - x_i)``."""
    for _ in range(sweeps):
        for position in range(order.shape[0]):
            i = order[position]
            s = sign[i]
            best = -np.inf
            for row in range(nodes[i], nodes[i + 1]):
                total = b[row]
                for k in range(ptr[row], ptr[row + 1]):
                    total += coef[k] * x[cols[k]]
                total *= s
                if total > best:
                    best = total
            x[i] += omega * (s * best - x[i])


@njit(cache=True, nogil=True)
def absolute_image(
    nodes: Array, ptr: Array, cols: Array, coef: Array, w: Array, out: Array
) -> None:
    """``out_i = max_a |q_a|.w``, the operator whose contraction proves class II."""
    for i in range(nodes.shape[0] - 1):
        best = 0.0
        for row in range(nodes[i], nodes[i + 1]):
            total = 0.0
            for k in range(ptr[row], ptr[row + 1]):
                total += abs(coef[k]) * w[cols[k]]
            if total > best:
                best = total
        out[i] = best


@njit(cache=True, nogil=True)
def smallest_image(
    nodes: Array, ptr: Array, cols: Array, coef: Array, w: Array, out: Array
) -> None:
    """``out_i = min_a q_a.w``, needed for the two-sided bracket of monotone systems."""
    for i in range(nodes.shape[0] - 1):
        best = np.inf
        for row in range(nodes[i], nodes[i + 1]):
            total = 0.0
            for k in range(ptr[row], ptr[row + 1]):
                total += coef[k] * w[cols[k]]
            if total < best:
                best = total
        out[i] = best


@njit(cache=True, nogil=True)
def bracket(
    x: Array, image: Array, gap: Array, wide_gap: Array, rounding: Array, monotone: bool
) -> tuple[float, float, float]:
    """Return (low, high, residual) with ``x + low v <= x* <= x + high v``, given ``image = T(x)``.

    ``gap = v - max_a |q_a|.v``, ``wide_gap = v - min_a q_a.v`` (used when `monotone`), and
    `rounding` bounds how far the computed image may be from the exact one.
    """
    low = np.inf
    high = -np.inf
    residual = 0.0
    for i in range(x.shape[0]):
        r = image[i] - x[i]
        # Written so that a NaN makes the residual infinite, never small.
        if not abs(r) <= residual:
            residual = abs(r) if abs(r) == abs(r) else np.inf
        down = r - rounding[i]
        up = r + rounding[i]
        if monotone:
            down = down / gap[i] if down < 0 else down / wide_gap[i]
            up = up / gap[i] if up > 0 else up / wide_gap[i]
        else:
            up = max(abs(down), abs(up)) / gap[i]
            down = -up
        if not down >= low:
            low = down
        if not up <= high:
            high = up
    return low, high, residual


@njit(cache=True, nogil=True)
def interval_sweep(
    nodes: Array,
    ptr: Array,
    cols: Array,
    coef: Array,
    b: Array,
    sign: Array,
    order: Array,
    low: Array,
    high: Array,
) -> None:
    """One sweep of the mixed-monotone pair (eq. 4) in place; the boxes only shrink.

    Bounds already renewed in this sweep are used at once, which keeps the enclosure. Rounding
    is added outwards.
    """
    for position in range(order.shape[0]):
        i = order[position]
        s = sign[i]
        best_low = -np.inf
        best_high = -np.inf
        for row in range(nodes[i], nodes[i + 1]):
            down = b[row]
            up = b[row]
            size = abs(b[row])
            for k in range(ptr[row], ptr[row + 1]):
                q = coef[k]
                a = q * low[cols[k]]
                c = q * high[cols[k]]
                size += max(abs(a), abs(c))
                down += min(a, c)
                up += max(a, c)
            slack = (ptr[row + 1] - ptr[row] + 2) * EPS * size
            down -= slack
            up += slack
            if s > 0:
                best_low = max(best_low, down)
                best_high = max(best_high, up)
            else:
                best_low = max(best_low, -up)
                best_high = max(best_high, -down)
        new_low = best_low if s > 0 else -best_high
        new_high = best_high if s > 0 else -best_low
        low[i] = max(low[i], new_low)
        high[i] = min(high[i], new_high)
