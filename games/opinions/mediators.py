"""What an AI in the channel does to a message: maps from a stance to the stance that is heard.

A mediator is any object with these members, so a user's own class will do::

    __call__(u)        the mediated stance, elementwise
    derivative(u)      its slope, elementwise (at a kink: of the right-hand piece)
    lipschitz_         largest |slope|
    monotone_          whether it never falls
    affine_            (shrink, bias) where it is ``shrink * u + bias``, else None
    inverse()          the mediator that undoes it
"""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike
from sklearn.isotonic import isotonic_regression

__all__ = [
    "AffineMediator",
    "AnchoredMediator",
    "ClippedMediator",
    "ComposeMediator",
    "CurveMediator",
    "Mediator",
]

Array = np.ndarray


@runtime_checkable
class Mediator(Protocol):
    """What a mediator can be asked; any object with these members is one.

    ``lipschitz_`` is the largest |slope|, ``monotone_`` whether it never falls, ``affine_`` the
    pair (shrink, bias) or None.

    Examples
    --------
    >>> from equipoise.games import AffineMediator, Mediator
    >>> isinstance(AffineMediator(0.9), Mediator), isinstance(abs, Mediator)
    (True, False)
    """

    @property
    def lipschitz_(self) -> float: ...
    @property
    def monotone_(self) -> bool: ...
    @property
    def affine_(self) -> tuple[Any, Any] | None: ...
    def __call__(self, u: Array) -> Array: ...
    def derivative(self, u: Array) -> Array: ...
    def inverse(self) -> "Mediator": ...


def check_finite(name: str, value: Any) -> Array:
    array = np.asarray(value, dtype=float)
    if not np.isfinite(array).all():
        raise ValueError(f"{name}={value!r:.60} isn't finite")
    return array


def along(parameter: Any, u: Array) -> Array:
    """A parameter per user, laid along the first axis of u."""
    array = np.asarray(parameter, dtype=float)
    return array[:, None] if array.ndim == 1 and u.ndim == 2 else array


@dataclass(frozen=True, eq=False)
class AffineMediator:
    """Shrinks a stance and adds a bias: ``f(u) = shrink * u + bias``.

    Parameters
    ----------
    shrink : float or array-like of shape (n,), default=1.0
        Slope; below one it draws opinions together. An array gives one a user.
    bias : float or array-like of shape (n,), default=0.0
        Shift.

    Raises
    ------
    ValueError
        If a parameter isn't finite, or has two axes.

    Examples
    --------
    >>> from equipoise.games import AffineMediator
    >>> AffineMediator(0.8, 0.15)(0.5).round(3).item()
    0.55
    """

    shrink: Any = 1.0
    bias: Any = 0.0

    def __post_init__(self) -> None:
        for name in ("shrink", "bias"):
            if check_finite(name, getattr(self, name)).ndim > 1:
                raise ValueError(f"{name} must be a number or one a user")

    def __call__(self, u: ArrayLike) -> Array:
        u = np.asarray(u, dtype=float)
        return along(self.shrink, u) * u + along(self.bias, u)

    def derivative(self, u: ArrayLike) -> Array:
        """Return the slope at u, of u's shape."""
        u = np.asarray(u, dtype=float)
        return np.broadcast_to(along(self.shrink, u), u.shape).copy()

    @property
    def lipschitz_(self) -> float:
        """Largest |shrink|."""
        return float(np.max(np.abs(self.shrink)))

    @property
    def monotone_(self) -> bool:
        """Whether no shrink is negative."""
        return bool(np.min(self.shrink) >= 0)

    @property
    def affine_(self) -> tuple[Any, Any] | None:
        """``(shrink, bias)``."""
        return self.shrink, self.bias

    def inverse(self) -> "AffineMediator":
        """Return h with ``h(f(u)) = u``; ValueError where shrink is zero."""
        a = np.asarray(self.shrink, dtype=float)
        if not a.all():
            raise ValueError("a mediator with shrink=0 forgets what was said; it has no inverse")
        return AffineMediator(1 / a, -np.asarray(self.bias) / a)


@dataclass(frozen=True, eq=False)
class AnchoredMediator:
    """Pulls a stance toward an anchor: ``f(u) = u + strength * (anchor - u)``.

    Parameters
    ----------
    strength : float or array-like of shape (n,)
        Pull; 0 leaves the message alone, 1 replaces it by the anchor.
    anchor : float or array-like of shape (n,)
        Where it pulls.

    Raises
    ------
    ValueError
        If a parameter isn't finite, or has two axes.

    Examples
    --------
    >>> from equipoise.games import AnchoredMediator
    >>> AnchoredMediator(0.5, 1.0)(0.2).item()
    0.6
    """

    strength: Any
    anchor: Any

    def __post_init__(self) -> None:
        for name in ("strength", "anchor"):
            if check_finite(name, getattr(self, name)).ndim > 1:
                raise ValueError(f"{name} must be a number or one a user")

    @property
    def affine_(self) -> tuple[Any, Any] | None:
        """``(1 - strength, strength * anchor)``."""
        k = np.asarray(self.strength, dtype=float)
        return 1 - k, k * np.asarray(self.anchor)

    def as_affine(self) -> AffineMediator:
        """Return the same map, written with shrink and bias."""
        k = np.asarray(self.strength, dtype=float)
        return AffineMediator(1 - k, k * np.asarray(self.anchor))

    def __call__(self, u: ArrayLike) -> Array:
        return self.as_affine()(u)

    def derivative(self, u: ArrayLike) -> Array:
        """Return the slope at u, of u's shape."""
        return self.as_affine().derivative(u)

    @property
    def lipschitz_(self) -> float:
        """Largest ``|1 - strength|``."""
        return self.as_affine().lipschitz_

    @property
    def monotone_(self) -> bool:
        """Whether no strength exceeds one."""
        return self.as_affine().monotone_

    def inverse(self) -> AffineMediator:
        """Return h with ``h(f(u)) = u``; ValueError where strength is one."""
        return self.as_affine().inverse()


@dataclass(frozen=True, eq=False)
class CurveMediator:
    """A curve through given points, linear between them and constant beyond the ends.

    Parameters
    ----------
    x : array-like of shape (m,)
        Stances before mediation, increasing, at least two.
    y : array-like of shape (m,)
        Stances after it.
    monotone : str, default="none"
        "isotonic" replaces `y` by the closest curve that never falls (least squares).

    Raises
    ------
    ValueError
        For points that aren't finite or increasing, or an unknown `monotone`.

    Examples
    --------
    >>> from equipoise.games import CurveMediator
    >>> curve = CurveMediator([0.0, 0.5, 1.0], [0.1, 0.6, 1.0])
    >>> curve(0.25).round(3).item(), curve.monotone_, round(curve.inverse()(0.35).item(), 3)
    (0.35, True, 0.25)
    """

    x: Any
    y: Any
    monotone: str = "none"

    def __post_init__(self) -> None:
        x, y = check_finite("x", self.x), check_finite("y", self.y)
        if x.ndim != 1 or x.shape != y.shape or len(x) < 2:
            raise ValueError(
                f"x and y have shapes {x.shape} and {y.shape}; a curve has two points or more"
            )
        if not (np.diff(x) > 0).all():
            k = int(np.argmin(np.diff(x)))
            raise ValueError(f"x falls from {x[k]} to {x[k + 1]} at point {k}; it must increase")
        if self.monotone not in ("none", "isotonic"):
            raise ValueError(f"monotone={self.monotone!r}; allowed: ['isotonic', 'none']")
        object.__setattr__(self, "knots_", x)
        values = isotonic_regression(y) if self.monotone == "isotonic" else y
        object.__setattr__(self, "values_", values)

    @property
    def slopes(self) -> Array:
        """Slope of each piece, shape (m - 1,)."""
        return np.diff(self.values_) / np.diff(self.knots_)  # type: ignore[attr-defined]

    def __call__(self, u: ArrayLike) -> Array:
        return np.asarray(np.interp(np.asarray(u, dtype=float), self.knots_, self.values_))  # type: ignore[attr-defined]

    def derivative(self, u: ArrayLike) -> Array:
        """Return the slope at u, of u's shape; 0 beyond the ends."""
        piece = np.searchsorted(self.knots_, u, side="right")  # type: ignore[attr-defined]
        return np.concatenate([[0.0], self.slopes, [0.0]])[piece]

    @property
    def lipschitz_(self) -> float:
        """Steepest slope."""
        return float(np.max(np.abs(self.slopes)))

    @property
    def monotone_(self) -> bool:
        """Whether no piece falls."""
        return bool((self.slopes >= 0).all())

    @property
    def affine_(self) -> tuple[Any, Any] | None:
        """None: the curve is constant beyond its ends."""
        return None

    def inverse(self) -> "CurveMediator":
        """Return h with ``h(f(u)) = u`` between the ends; ValueError unless strictly monotone."""
        slopes = self.slopes
        if (slopes > 0).all():
            return CurveMediator(self.values_, self.knots_)  # type: ignore[attr-defined]
        if (slopes < 0).all():
            return CurveMediator(self.values_[::-1], self.knots_[::-1])  # type: ignore[attr-defined]
        raise ValueError("only a curve that rises everywhere, or falls everywhere, has an inverse")


@dataclass(frozen=True, eq=False)
class ClippedMediator:
    """A mediator whose outcome is kept within bounds.

    Parameters
    ----------
    base : mediator
        What is clipped.
    lo, hi : float, default=0.0, 1.0
        Bounds.

    Raises
    ------
    ValueError
        If ``lo < hi`` doesn't hold.

    Examples
    --------
    >>> from equipoise.games import AffineMediator, ClippedMediator
    >>> ClippedMediator(AffineMediator(bias=0.3), 0, 1)([0.5, 0.9]).tolist()
    [0.8, 1.0]
    """

    base: Any
    lo: float = 0.0
    hi: float = 1.0

    def __post_init__(self) -> None:
        if not self.lo < self.hi:
            raise ValueError(f"lo={self.lo}, hi={self.hi}; lo must be below hi")

    def __call__(self, u: ArrayLike) -> Array:
        return np.clip(self.base(u), self.lo, self.hi)

    def derivative(self, u: ArrayLike) -> Array:
        """Return the slope at u, of u's shape; 0 where the outcome is clipped."""
        value = self.base(u)
        return np.where((value < self.lo) | (value >= self.hi), 0.0, self.base.derivative(u))

    @property
    def lipschitz_(self) -> float:
        """That of `base`."""
        return float(self.base.lipschitz_)

    @property
    def monotone_(self) -> bool:
        """That of `base`."""
        return bool(self.base.monotone_)

    @property
    def affine_(self) -> tuple[Any, Any] | None:
        """None: clipping bends the map."""
        return None

    def inverse(self) -> Mediator:
        """Refuse: what is clipped is lost."""
        raise ValueError("a clipped mediator loses what it clips; invert its base instead")


class ComposeMediator:
    """Mediators one after the other.

    Parameters
    ----------
    *parts : mediators
        The first is applied first.

    Raises
    ------
    ValueError
        If there is none.

    Examples
    --------
    >>> from equipoise.games import AffineMediator, ComposeMediator
    >>> ComposeMediator(AffineMediator(0.9, 0.1), AffineMediator(0.5, 0.3)).affine_
    (0.45, 0.35)
    """

    def __init__(self, *parts: Any) -> None:
        if not parts:
            raise ValueError("ComposeMediator needs at least one part")
        self.parts = parts

    def __repr__(self) -> str:
        return f"ComposeMediator{self.parts!r}"

    def __call__(self, u: ArrayLike) -> Array:
        value = np.asarray(u, dtype=float)
        for part in self.parts:
            value = part(value)
        return value

    def derivative(self, u: ArrayLike) -> Array:
        """Return the slope at u by the chain rule, of u's shape."""
        value = np.asarray(u, dtype=float)
        slope = np.ones_like(value)
        for part in self.parts:
            slope = slope * part.derivative(value)
            value = part(value)
        return slope

    @property
    def lipschitz_(self) -> float:
        """Product of the parts' constants: an upper bound of the steepest slope."""
        return float(np.prod([part.lipschitz_ for part in self.parts]))

    @property
    def monotone_(self) -> bool:
        """Whether all parts never fall."""
        return all(part.monotone_ for part in self.parts)

    @property
    def affine_(self) -> tuple[Any, Any] | None:
        """The composed (shrink, bias) where all parts are affine."""
        shrink, bias = 1.0, 0.0
        for part in self.parts:
            if part.affine_ is None:
                return None
            a, b = part.affine_
            shrink, bias = a * shrink, a * bias + b
        return shrink, bias

    def inverse(self) -> "ComposeMediator":
        """Return the inverses in reverse order."""
        return ComposeMediator(*(part.inverse() for part in reversed(self.parts)))
