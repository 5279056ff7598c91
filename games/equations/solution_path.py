"""The solution as the offsets move from b to another b, piece by piece."""

from typing import Any, NamedTuple

import numpy as np

from .decomposition import TIE
from .inverse import PolicyInverse, SignChangeError
from .problem import LEMM
from .solve import solve_lemm
from .switch_one import owners

__all__ = ["SolutionPath", "solution_path"]

Array = np.ndarray


class SolutionPath(NamedTuple):
    """The piecewise affine solution x(t) of the offsets ``(1 - t) b + t b_new``.

    ``t`` (k,) are the breakpoints from 0 to 1, ``x`` (k, n) the solutions there, and ``policies``
    (k - 1, n) the policy that is optimal between one and the next.
    """

    t: Array
    x: Array
    policies: Array


def solution_path(p: LEMM, b_new: Any, *, max_pieces: int = 100000) -> SolutionPath:
    """Follow the solution while the offsets move on a line.

    Parameters
    ----------
    p : LEMM
        A system with property W, so that x(t) is single valued.
    b_new : array-like of shape (m,)
        Offsets at t = 1.
    max_pieces : int, default=100000
        Largest number of pieces.

    Returns
    -------
    SolutionPath
        Breakpoints, solutions and policies.

    Raises
    ------
    ValueError
        If `b_new` doesn't fit.
    ArithmeticError
        If the path turns back (the system isn't W), or has too many pieces.

    Examples
    --------
    >>> from equipoise.games import LEMM, solution_path
    >>> path = solution_path(LEMM.from_equations("x = max(0, 0.5*x - 1)"), [0.0, 1.0])
    >>> path.t.tolist(), path.x.ravel().tolist(), path.policies.ravel().tolist()
    ([0.0, 0.5, 1.0], [0.0, 0.0, 2.0], [0, 1])
    """
    target = np.array(b_new, dtype=float)
    if target.shape != (p.m,) or not np.isfinite(target).all():
        raise ValueError(f"b_new must hold {p.m} finite offsets, got shape {target.shape}")
    owner = owners(p)
    s = p.sign[owner].astype(float)
    step = target - p.b
    start = solve_lemm(p, random_state=0)
    inverse = PolicyInverse(p, start.policy, 50)
    t, ts, xs = 0.0, [0.0], [start.x]
    policies: list[Array] = []
    for _ in range(max_pieces):
        x0, x1 = inverse.solve(p.b), inverse.solve(step)
        c0 = s * (x0[owner] - p.A @ x0 - p.b)
        c1 = s * (x1[owner] - p.A @ x1 - step)
        c0[inverse.rows] = c1[inverse.rows] = 0.0
        small = TIE * (1 + np.abs(x1[owner]))
        # A slack that is 0 now and falls must be switched at once.
        falling = np.flatnonzero(c1 < -small)
        crossing = np.maximum(-c0[falling] / c1[falling], t)
        if crossing.size == 0 or crossing.min() >= 1:
            return SolutionPath(
                np.array([*ts, 1.0]),
                np.array([*xs, x0 + x1]),
                np.array([*policies, inverse.policy.copy()]),
            )
        k = int(np.argmin(crossing))
        if crossing[k] > t:
            t = float(crossing[k])
            ts.append(t)
            xs.append(x0 + t * x1)
            policies.append(inverse.policy.copy())
        try:
            inverse.switch(int(owner[falling[k]]), int(falling[k]))
        except SignChangeError as error:
            raise ArithmeticError(f"the path can't go on: {error}") from error
    raise ArithmeticError(f"the path has more than {max_pieces} pieces")
