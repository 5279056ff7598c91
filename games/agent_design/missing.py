"""Profiles that were never played: the largest complete sub-game, an additive model, or bounds."""

from dataclasses import replace
from typing import Any

import numpy as np

from .cells import Cells
from .deviations import across

__all__ = ["additive_payoffs", "complete_designs", "complete_tables", "filled_payoffs"]

Array = np.ndarray


def complete_designs(absent: Array) -> list[Array]:
    """Drop the design with most missing profiles until none is missing.

    Parameters
    ----------
    absent : ndarray of bool of shape (d_0, ..., d_{n-1})
        Which profiles are missing.

    Returns
    -------
    list of ndarray of int
        Each stakeholder's remaining designs.

    Raises
    ------
    ValueError
        If a stakeholder would be left without a design.
    """
    kept = [np.arange(d) for d in absent.shape]
    while absent[np.ix_(*kept)].any():
        sub = absent[np.ix_(*kept)]
        shares = [
            np.moveaxis(sub, i, 0).reshape(len(k), -1).mean(axis=1) for i, k in enumerate(kept)
        ]
        i = int(np.argmax([share.max() if len(share) > 1 else -1.0 for share in shares]))
        if len(kept[i]) == 1:
            raise ValueError("missing='restrict': no complete sub-game is left")
        kept[i] = np.delete(kept[i], shares[i].argmax())
    return kept


def additive_payoffs(payoffs: Array) -> Array:
    """Fill NaN by least squares of u_i(a) = sum over players j of an effect of (i, j, a_j).

    Parameters
    ----------
    payoffs : ndarray of shape (n, d_0, ..., d_{n-1})
        With NaN where a profile is missing.

    Returns
    -------
    ndarray
        The same, without NaN.

    Raises
    ------
    ValueError
        If a design was never played: its effect is unknown.
    """
    n, *shape = payoffs.shape
    profiles = np.stack(np.unravel_index(np.arange(int(np.prod(shape))), shape), axis=1)
    design = np.concatenate([np.eye(d)[profiles[:, j]] for j, d in enumerate(shape)], axis=1)
    filled = payoffs.reshape(n, -1).copy()
    known = ~np.isnan(filled[0])
    if not design[known].any(axis=0).all():
        raise ValueError("missing='additive': a design was never played")
    effects = np.linalg.lstsq(design[known], filled[:, known].T, rcond=None)[0]
    filled[:, ~known] = (design @ effects).T[:, ~known]
    return filled.reshape(payoffs.shape)


def filled_payoffs(missing: str, by_state: Array, bounds: tuple[float, float] | None) -> Array:
    """Fill NaN in each state's table (..., n, d_0, ..., d_{n-1}) as `missing` says."""
    if missing == "bounds":
        assert bounds is not None
        return np.where(np.isnan(by_state), np.mean(bounds), by_state)
    return np.stack([additive_payoffs(u) for u in by_state])


def complete_tables(
    missing: str,
    bounds: tuple[float, float] | None,
    by_state: Array,
    errors: Array,
    counts: Array,
    designs: tuple[tuple[Any, ...], ...],
    cells: Cells,
) -> tuple[Array, Array, Array, tuple[tuple[Any, ...], ...], Array, Cells, Array | None]:
    """Deal with profiles that were never played, as `missing` says: the same tables, complete.

    The mask of missing profiles comes too, and with "bounds" the least and the largest payoffs,
    an array (2, S, n, d_0, ..., d_{n-1}).
    """
    absent = (counts == 0).any(axis=0)
    if not absent.any():
        return by_state, errors, counts, designs, absent, cells, None
    if missing == "raise":
        places = np.argwhere(absent)[:10]
        examples = [tuple(own[k] for own, k in zip(designs, p, strict=True)) for p in places]
        raise ValueError(
            f"{int(absent.sum())} profiles have no match, such as {examples}; "
            "missing='restrict', 'additive' or 'bounds' goes on without them"
        )
    if missing in ("additive", "bounds"):
        ends = None
        if missing == "bounds":
            assert bounds is not None
            ends = np.stack([np.where(np.isnan(by_state), end, by_state) for end in bounds])
        filled = filled_payoffs(missing, by_state, bounds)
        return filled, errors, counts, designs, absent, cells, ends
    kept = complete_designs(absent)
    place: Any = np.ix_(*kept)
    profile = np.ravel_multi_index(np.meshgrid(*kept, indexing="ij"), absent.shape).ravel()
    cells = replace(cells, cell=cells.cell[..., profile], slot=cells.slot[..., profile])
    names = tuple(tuple(own[k] for k in k_i) for own, k_i in zip(designs, kept, strict=True))
    take: Any = (slice(None), slice(None), *place)
    return (
        by_state[take],
        errors[take],
        counts[across(place)],
        names,
        absent[place],
        cells,
        None,
    )
