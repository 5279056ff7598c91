"""Checks of the arguments that the closed forms share: each error names parameter and range."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["choice", "finite", "within"]

Array = NDArray[np.float64]


def finite(value: ArrayLike, name: str, infinite: bool = False) -> Array:
    """Numbers as float64; NaN is refused, infinity too unless `infinite`."""
    array = np.asarray(value, dtype=float)
    bad = np.isnan(array) if infinite else ~np.isfinite(array)
    if bad.any():
        allowed = "numbers, infinite ones included" if infinite else "finite numbers"
        raise ValueError(f"{name}: got {array[bad].flat[0]}; allowed: {allowed}")
    return array


def within(
    value: ArrayLike, name: str, low: float, high: float = np.inf, open_ends: bool = False
) -> Array:
    """Finite numbers inside [low, high], or inside (low, high) with `open_ends`."""
    array = finite(value, name)
    bad = (array <= low) | (array >= high) if open_ends else (array < low) | (array > high)
    if bad.any():
        left, right = ("(", ")") if open_ends else ("[", "]" if np.isfinite(high) else ")")
        raise ValueError(
            f"{name}: got {array[bad].flat[0]}; allowed: {left}{low:g}, {high:g}{right}"
        )
    return array


def choice(value: str, name: str, allowed: tuple[str, ...]) -> str:
    """One of a few words."""
    if value not in allowed:
        raise ValueError(f"{name}: got {value!r}; allowed: {', '.join(map(repr, allowed))}")
    return value
