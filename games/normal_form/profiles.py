"""What goes into games and mixed profiles: checks, names, and directions of the simplex."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["check_names", "check_payoffs", "check_strategies", "simplex_basis"]


def check_payoffs(payoffs: ArrayLike) -> np.ndarray:
    """Validate a payoff tensor and return a read-only float64 copy."""
    u = np.asarray(payoffs)
    if u.dtype.kind not in "biuf":
        raise ValueError(f"payoffs must be real numbers, got dtype {u.dtype}")
    if u.ndim < 2 or u.shape[0] != u.ndim - 1:
        raise ValueError(
            "payoffs must have shape (n, d_0, ..., d_(n-1)) with one axis for each of the n "
            f"players, got {u.shape}"
        )
    if 0 in u.shape:
        player = u.shape.index(0) - 1
        raise ValueError(f"payoffs has shape {u.shape}: player {player} has no action")
    u = np.array(u, dtype=np.float64, order="C")
    if not np.isfinite(u).all():
        where = tuple(int(k) for k in np.argwhere(~np.isfinite(u))[0])
        raise ValueError(f"payoffs{list(where)} is {u[where]}; all payoffs must be finite")
    u.flags.writeable = False
    return u


def check_names(
    names: Sequence[Any] | None, count: int, what: str, default: str
) -> tuple[str, ...]:
    """Return `count` distinct names; None makes them from a prefix."""
    if names is None:
        return tuple(f"{default}{k}" for k in range(count))
    found = tuple(str(name) for name in names)
    if len(found) != count or len(set(found)) != count:
        raise ValueError(f"{what} must hold {count} distinct names, got {list(found)}")
    return found


def check_strategies(x: Sequence[ArrayLike], n_actions: Sequence[int]) -> list[np.ndarray]:
    """Validate a mixed profile.

    Parameters
    ----------
    x : list of array-like of shape (..., d_i)
        A probability vector for each player; leading axes, the same for all, hold many profiles.
    n_actions : sequence of int
        The d_i.

    Returns
    -------
    list of ndarray
        In float64.

    Raises
    ------
    ValueError
        If a vector is missing, has another length, a negative or non-finite entry, or doesn't sum
        to 1 (to 1e-6).

    Examples
    --------
    >>> from equipoise.games.normal_form.profiles import check_strategies
    >>> check_strategies([[0.5, 0.5], [1.0]], (2, 1))
    [array([0.5, 0.5]), array([1.])]
    """
    if len(x) != len(n_actions):
        raise ValueError(
            f"x must hold one strategy for each of {len(n_actions)} players, got {len(x)}"
        )
    checked = [np.asarray(x_i, dtype=np.float64) for x_i in x]
    for i, (x_i, d) in enumerate(zip(checked, n_actions, strict=True)):
        if x_i.shape[-1:] != (d,) or x_i.shape[:-1] != checked[0].shape[:-1]:
            raise ValueError(
                f"x[{i}] must have shape {(*checked[0].shape[:-1], d)}, got {x_i.shape}"
            )
        # `not >=` also catches NaN
        if not (x_i >= -1e-12).all() or not (np.abs(x_i.sum(axis=-1) - 1.0) <= 1e-6).all():
            raise ValueError(f"x[{i}] must be non-negative and sum to 1, got {x_i.tolist()}")
    return checked


def simplex_basis(d: int) -> np.ndarray:
    """Return the Helmert basis of the vectors that sum to zero.

    Parameters
    ----------
    d : int
        Number of actions.

    Returns
    -------
    ndarray of shape (d, d - 1)
        Orthonormal columns, the k-th ``(1, ..., 1, -k, 0, ..., 0) / sqrt(k (k + 1))``.

    Examples
    --------
    >>> from equipoise.games.normal_form.profiles import simplex_basis
    >>> simplex_basis(2).round(4).tolist()
    [[0.7071], [-0.7071]]
    """
    B = np.zeros((d, d - 1))
    for k in range(1, d):
        B[:k, k - 1] = 1.0
        B[k, k - 1] = -k
        B[:, k - 1] /= np.sqrt(k * (k + 1))
    return B
