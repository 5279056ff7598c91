"""The pieces of value iteration: blocks of sweeps, their pace, and Anderson's extrapolation."""

from functools import cached_property
from itertools import pairwise

import numpy as np
from joblib import effective_n_jobs

from equipoise.blocks import map_blocks

from .kernels import best_rows, gauss_seidel, row_values, select_rows
from .krylov import bicgstab
from .problem import LEMM
from .solver import BoundedGap

__all__ = ["Blocks", "Pace", "anderson_candidate", "extrapolate"]

Array = np.ndarray
#: Iterations of the Krylov method, after which T is applied again.
LARGEST = 100
#: Share of nodes that may change their action in a policy that counts as settled.
UNSETTLED = 1e-3
#: The same for a policy whose equations may be worth solving.
MOVING = 1e-2
Block = tuple[Array, Array, tuple[float, float, float]]


def anderson_candidate(xs: list[Array], images: list[Array]) -> Array:
    """Anderson's extrapolation: the affine combination of images with the least residual.

    Parameters
    ----------
    xs, images : list of ndarray of shape (n,)
        Recent points and their images, newest last; at least two.

    Returns
    -------
    ndarray of shape (n,)
        The combination of the images.
    """
    residuals = [image - x for x, image in zip(xs, images, strict=True)]
    steps = np.stack([residuals[-1] - r for r in residuals[:-1]], axis=1)  # (n, k)
    moves = np.stack([images[-1] - g for g in images[:-1]], axis=1)
    mix = np.linalg.lstsq(steps, residuals[-1], rcond=1e-10)[0]
    return images[-1] - moves @ mix


def node_ranges(problem: LEMM, n_jobs: int) -> list[slice]:
    """Consecutive nodes with about equally many coefficients for each thread."""
    start, _ = problem.edges
    cuts = np.searchsorted(start, np.linspace(0, start[-1], n_jobs + 1)[1:-1])
    edges = np.unique(np.concatenate([[0], cuts, [problem.n]]))
    return [slice(int(a), int(b)) for a, b in pairwise(edges)]


class Pace:
    """How many sweeps until the next check: a fixed number, or what the rate so far foresees."""

    SHORTEST, LONGEST = 4, 40
    #: Sweeps above which a Krylov method gets there with less work.
    SLOW = 60

    def __init__(self, check_every: int | str, tol: float) -> None:
        self.fixed = None if isinstance(check_every, str) else check_every
        self.tol = tol
        self.step = self.SHORTEST
        self.needed = self.before = self.rate = 0.0
        self.last = np.inf
        self.checks = 0

    def next(self, left: int) -> int:
        return min(self.step if self.fixed is None else self.fixed, left)

    @property
    def slow(self) -> bool:
        """Whether two checks foresee many sweeps (only where blocks may be of any length)."""
        return self.fixed is None and min(self.needed, self.before) > self.SLOW

    def record(self, gap: float, k: int, changed: float = 0.0) -> None:
        """Note the gap after a block of k sweeps, and the share of nodes that changed their action.

        While policies still change, sweeps with one held are wasted: blocks stay short.
        """
        self.checks += 1
        self.before, self.needed = self.needed, 0.0
        self.step = self.SHORTEST
        if changed <= MOVING and 0 < gap < self.last < np.inf:
            rate = float(np.log1p((self.last - gap) / gap)) / k
            left = float(np.log(gap / self.tol))
            self.needed = left / rate
            # A block in which some actions changed looks slow; the one before may know better.
            foreseen = left / max(rate, self.rate)
            self.rate = rate
            # Early rates say little: blocks grow with the number of checks.
            longest = min(self.LONGEST, self.SHORTEST * self.checks**2)
            if changed <= UNSETTLED:
                self.step = int(np.clip(np.ceil(foreseen), self.SHORTEST, longest))
        self.last = gap


class Blocks:
    """Blocks of k sweeps; each returns (point, where to go on, bracket at the point).

    In a Jacobi block the last sweep measures: its image is both T(point) and the k-th result.
    """

    def __init__(
        self, problem: LEMM, bound: BoundedGap, order: Array, omega: float, n_jobs: int | None
    ) -> None:
        self.problem, self.bound, self.order, self.omega = problem, bound, order, omega
        self.ranges = node_ranges(problem, effective_n_jobs(n_jobs))
        self.values = np.empty(problem.m)
        self.policy = np.zeros(problem.n, dtype=np.int64)
        self.changed = 0.0
        self.krylov = True
        self.spent = 0

    def image(self, x: Array, out: Array) -> None:
        """``out = T(x)`` with its policy, each range of nodes in a thread of its own."""
        nodes, ptr, cols, coef, b, sign = self.problem.arrays
        indptr = self.problem.indptr

        def part(span: slice) -> None:
            rows = int(indptr[span.start]), int(indptr[span.stop])
            row_values(ptr, cols, coef, b, x, *rows, self.values)
            best_rows(nodes, self.values, sign, span.start, span.stop, out, self.policy)

        if len(self.ranges) == 1:
            part(self.ranges[0])
        else:
            map_blocks(part, self.ranges, n_jobs=len(self.ranges))

    @cached_property
    def chosen(self) -> tuple[Array, Array, Array, Array]:
        """Room for the rows of a policy: pointers, columns, coefficients, offsets."""
        problem = self.problem
        first = problem.indptr[:-1]
        longest = np.maximum.reduceat(np.diff(problem.A.indptr), first)
        room = int(longest.sum(dtype=np.int64))
        cols = problem.arrays[2]
        pointer = np.uint32 if room < 2**32 else np.uint64
        return (
            np.empty(problem.n + 1, dtype=pointer),
            np.empty(room, dtype=cols.dtype),
            np.empty(room),
            np.empty(problem.n),
        )

    def jacobi(self, x: Array, k: int) -> Block:
        out = np.empty_like(x)
        for _ in range(k - 1):
            self.image(x, out)
            x, out = out, x
        self.image(x, out)
        return x, out, self.bound.measure(x, out)

    def held_policy(self, x: Array, k: int) -> Block:
        """k - 1 sweeps with the last policy held, then one of T (modified policy iteration)."""
        out = np.empty_like(x)
        before = self.policy.copy()
        if k > 1:
            select_rows(*self.problem.arrays[:5], self.policy, *self.chosen)
        for _ in range(k - 1):
            row_values(*self.chosen, x, 0, self.problem.n, out)
            x, out = out, x
        self.image(x, out)
        self.changed = np.count_nonzero(before != self.policy) / len(x)
        return x, out, self.bound.measure(x, out)

    def solved_policy(self, x: Array, error: float) -> Block:
        """The last policy's equations solved to about an error, then one sweep of T.

        Where the Krylov method doesn't halve the residual, it is given up for good.
        """
        problem = self.problem
        select_rows(*problem.arrays[:5], self.policy, *self.chosen)
        held = self.policy.copy()
        point, out = x.copy(), np.empty_like(x)
        target = error * float(np.min(self.bound.gap))
        made, left = bicgstab(*self.chosen, target, LARGEST, point, np.empty((5, len(x))))
        if not (left <= 0.5 and np.isfinite(point).all()):
            self.krylov = False
            point = x
        self.image(point, out)
        self.spent = 2 * made + 2
        self.changed = np.count_nonzero(held != self.policy) / len(x)
        return point, out, self.bound.measure(point, out)

    def in_place(self, x: Array, k: int) -> Block:
        """k sweeps, then a measurement on top."""
        gauss_seidel(*self.problem.arrays, self.order, self.omega, k, x)
        return x, x, self.bound(x)


def extrapolate(x: Array, xs: list[Array], images: list[Array], bound: BoundedGap) -> Array:
    """Anderson's candidate where its bound is smaller than the plain sweep's, else x."""
    if len(xs) < 2:
        return x
    candidate = anderson_candidate(xs, images)
    if not np.isfinite(candidate).all():
        return x

    def size(point: Array) -> float:
        low, high, residual = bound(point)
        return residual if bound.v is None else high - low

    return candidate if size(candidate) < size(x) else x
