"""Regularisers on the simplex: choice maps, their inverses, and the constants of the regret bounds.

The choice map is Q(y) = argmax <y, x> - h(x) over the simplex.

===========  =======================  ==========================================  ===  ====
name         h(x)                     Q(y)                                        K    norm
===========  =======================  ==========================================  ===  ====
entropic     sum x log x              softmax(y)                                  1    L1
euclidean    ``|x|^2 / 2``            projection on the simplex                   1    L2
tsallis      sum (x - x^s) / (1 - s)  ((1 + (1 - s)(nu - y)) / s)^(-1 / (1 - s))  s    L1
log_barrier  -sum log x               1 / (nu - y)                                1    L1
===========  =======================  ==========================================  ===  ====

K is the modulus of strong convexity. Prediction errors are measured in the quotient of the dual
norm by constants, (max - min) / 2 or the Euclidean norm of the centred vector, because a constant
added to a payoff vector changes nothing. The functions take NumPy arrays or torch tensors with any
leading axes; the last is that of the actions.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.externals.array_api_compat import array_namespace

__all__ = ["REGULARIZERS", "Regularizer"]

#: Names of the regularisers; the index is the code that the compiled kernels use.
REGULARIZERS = ("entropic", "euclidean", "tsallis", "log_barrier")


def softmax(y: Any) -> Any:
    xp = array_namespace(y)
    x = xp.exp(y - xp.max(y, axis=-1, keepdims=True))
    return x / xp.sum(x, axis=-1, keepdims=True)


def project_on_simplex(y: Any) -> Any:
    """Return the nearest point of the simplex, by sorting."""
    xp = array_namespace(y)
    y = y - xp.max(y, axis=-1, keepdims=True)  # no digits are lost to a large common constant
    falling = xp.flip(xp.sort(y, axis=-1), axis=-1)
    counts = xp.astype(xp.arange(1, y.shape[-1] + 1, device=y.device), y.dtype)
    thresholds = (xp.cumulative_sum(falling, axis=-1) - 1.0) / counts
    inside = xp.sum(xp.astype(falling > thresholds, xp.int64), axis=-1, keepdims=True)
    x = y - xp.take_along_axis(thresholds, inside - 1, axis=-1)
    return xp.where(x > 0.0, x, xp.zeros_like(x))


def inverse_power(c: Any, power: float) -> Any:
    """Return (t + c)^(-power), t being such that it sums to 1, for c >= 0 with a zero in each row.

    The sum is convex and decreasing in t, and at least 1 at t = 1: Newton's steps from there never
    overshoot.
    """
    xp = array_namespace(c)
    t = xp.ones_like(c[..., :1])
    for _ in range(200):
        x = (t + c) ** -power
        excess = xp.sum(x, axis=-1, keepdims=True) - 1.0
        step = excess / (power * xp.sum(x / (t + c), axis=-1, keepdims=True))
        if bool(xp.all(step <= 4e-16 * t)):
            break
        t = t + xp.where(step > 0.0, step, xp.zeros_like(step))
    x = (t + c) ** -power
    return x / xp.sum(x, axis=-1, keepdims=True)


@dataclass(frozen=True)
class Regularizer:
    """A regulariser h on the simplex, with its choice map and constants.

    Parameters
    ----------
    name : {"entropic", "euclidean", "tsallis", "log_barrier"}
        Which h.
    power : float, default=0.5
        s of the Tsallis entropy, between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games.normal_form.regularizers import Regularizer
    >>> Regularizer("log_barrier").choose(np.array([0.0, 1.0, 2.0])).round(6)
    array([0.237286, 0.311108, 0.451606])
    """

    name: str
    power: float = 0.5

    @property
    def code(self) -> int:
        """Index in `REGULARIZERS`."""
        return REGULARIZERS.index(self.name)

    @property
    def strong_convexity(self) -> float:
        """The modulus K."""
        return self.power if self.name == "tsallis" else 1.0

    @property
    def is_euclidean(self) -> bool:
        """Whether the norm is L2 rather than L1."""
        return self.name == "euclidean"

    @property
    def needs_interior(self) -> bool:
        """Whether play can only start from strategies without zeros."""
        return self.name != "euclidean"

    @property
    def exponent(self) -> float:
        """The power p of x = (t + c)^(-p), for the two regularisers whose map has that form."""
        return 1.0 / (1.0 - self.power) if self.name == "tsallis" else 1.0

    @property
    def slope(self) -> float:
        """What the score differences are multiplied by to give c."""
        return (1.0 - self.power) / self.power if self.name == "tsallis" else 1.0

    def choose(self, y: Any) -> Any:
        """Return Q(y), for scores of shape (..., d)."""
        if self.name == "entropic":
            return softmax(y)
        if self.name == "euclidean":
            return project_on_simplex(y)
        xp = array_namespace(y)
        return inverse_power(self.slope * (xp.max(y, axis=-1, keepdims=True) - y), self.exponent)

    def scores(self, x: np.ndarray) -> np.ndarray:
        """Return a y with Q(y) = x, the gradient of h at x."""
        if self.name == "entropic":
            return np.log(x)
        if self.name == "euclidean":
            return np.array(x, dtype=float)
        if self.name == "log_barrier":
            return -1.0 / x
        return (1.0 - self.power * x ** (self.power - 1.0)) / (1.0 - self.power)

    def value(self, x: np.ndarray) -> np.ndarray:
        """Return h(x), of shape (...); infinite where the log-barrier meets a zero."""
        if self.name == "entropic":
            return (x * np.log(np.where(x > 0, x, 1.0))).sum(axis=-1)
        if self.name == "euclidean":
            return np.square(x).sum(axis=-1) / 2.0
        if self.name == "log_barrier":
            with np.errstate(divide="ignore"):
                return -np.log(x).sum(axis=-1)
        return (x - x**self.power).sum(axis=-1) / (1.0 - self.power)

    def coupling(self, p: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the Fenchel coupling h(p) + h*(y) - <y, p> >= 0, of shape (...)."""
        if self.name == "entropic":  # h* in closed form stays finite where Q(y) has zeros
            top = y.max(axis=-1)
            conjugate = top + np.log(np.exp(y - top[..., None]).sum(axis=-1))
        else:
            x = self.choose(y)
            conjugate = (y * x).sum(axis=-1) - self.value(x)
        return self.value(p) + conjugate - (y * p).sum(axis=-1)

    def dual_norm(self, g: Any) -> Any:
        """Return the quotient dual norm of payoff vectors of shape (..., d)."""
        xp = array_namespace(g)
        if self.is_euclidean:
            centred = g - xp.mean(g, axis=-1, keepdims=True)
            return xp.sqrt(xp.sum(centred * centred, axis=-1))
        return (xp.max(g, axis=-1) - xp.min(g, axis=-1)) / 2.0

    def range_from(self, y0: np.ndarray, n_rounds: int) -> np.ndarray:
        """Return H, how much h - <y0, .> varies between the start Q(y0) and any pure strategy.

        For the log-barrier, which is infinite at pure strategies, they are mixed with the uniform
        one in the proportion 1 / n_rounds.

        Parameters
        ----------
        y0 : ndarray of shape (..., d)
            Scores of the start.
        n_rounds : int
            Number of rounds played.

        Returns
        -------
        ndarray of shape (...)
            H >= 0.
        """
        d = y0.shape[-1]
        share = 1.0 / n_rounds if self.name == "log_barrier" else 0.0
        corners = (1.0 - share) * np.eye(d) + share / d
        x1 = self.choose(y0)
        least = self.value(x1) - (y0 * x1).sum(axis=-1)
        return (self.value(corners) - y0 @ corners).max(axis=-1) - least
