"""Equilibria of channels with curved mediators: iteration, brackets from both ends, Newton.

If the channel is monotone, iterates from below rise and iterates from above fall to the least and
the greatest equilibrium (Tarski, Kleene). Where they meet, the equilibrium is the only one and
attracts every start: a certificate that needs no Lipschitz bound.
"""

from collections.abc import Callable

import numpy as np

from .channel import CurvedChannel
from .solvers import floor_of, solve

__all__ = ["bracket", "iterate", "polish"]

Array = np.ndarray
Step = Callable[[Array], Array]


def iterate(step: Step, start: Array, target: float, max_iter: int) -> tuple[Array, float, int]:
    """Return the limit of x <- step(x), its residual and the number of steps."""
    x = start
    residual = np.inf
    for n_iter in range(1, max_iter + 1):
        image = step(x)
        residual = float(np.abs(image - x).max())
        if residual <= floor_of(image, target) or not np.isfinite(residual):
            return x, residual, n_iter
        x = image
    return x, residual, max_iter


def bracket(
    step: Step, low: Array, high: Array, target: float, max_iter: int
) -> tuple[Array, Array]:
    """Return the least and the greatest fixed point of a monotone step within [low, high].

    `low` must not exceed ``step(low)``, nor ``step(high)`` exceed `high`. The iterates stay on
    their sides, so that they are bounds also where `max_iter` stops them.
    """
    for _ in range(max_iter):
        rise, fall = step(low), step(high)
        moved = max(float(np.max(rise - low)), float(np.max(high - fall)))
        low, high = np.maximum(low, rise), np.minimum(high, fall)
        if moved <= floor_of(high, target):
            break
    return low, high


def polish(
    channel: CurvedChannel, stubborn: Array, x: Array, target: float, n_steps: int = 10
) -> tuple[Array, float]:
    """Improve an equilibrium by Newton's method where it helps; x has one axis."""
    residual_of = lambda point: stubborn + channel.heard(point) - point  # noqa: E731
    r = residual_of(x)
    for _ in range(n_steps):
        size = float(np.abs(r).max())
        if size <= floor_of(x, target):
            break
        dx, _, _ = solve(
            channel.linearised(x), r, np.zeros_like(x), "bicgstab", 0.1 * size, 1000, x
        )
        fresh = residual_of(x + dx)
        if not float(np.abs(fresh).max()) < size:
            break
        x, r = x + dx, fresh
    return x, float(np.abs(r).max())
