"""Background rows: what stands in for absent players, and a warning where nothing does."""

import warnings
from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight

from .expansion import ProductKernelExpansion, densified

__all__ = ["background_rows", "warn_about_base"]


def background_rows(
    removal: str,
    reference: Any,
    rows: Any,
    support: Any,
    *,
    sample_weight: Any,
    to_columns: Callable[[Any], Any],
    random_state: Any,
    working_memory: float | None,
) -> tuple[np.ndarray, np.ndarray] | tuple[None, None]:
    """Return the background rows and their weights, which sum to 1.

    Parameters
    ----------
    removal : {"identity", "baseline", "marginal", "interventional"}
        What absence means; "identity" has no background.
    reference : array-like, int or None
        The rows, how many to draw, or None for all.
    rows : ndarray or sparse array of shape (n, n_columns), or None
        The rows passed to `fit`, as the machine sees them.
    support : ndarray or sparse array of shape (n_support, n_columns)
        Support points, the pool where there are no rows.
    sample_weight : array-like of shape (n,) or None
        Weights of `rows`.
    to_columns : callable
        From rows in the features' own units to what the machine sees.
    random_state : int, RandomState or None
        Draws rows.
    working_memory : float or None
        Budget in MiB for making sparse rows dense.

    Returns
    -------
    background : ndarray of shape (n_background, n_columns), or None
        Rows; their mean alone for "baseline".
    weights : ndarray of shape (n_background,), or None
        Weights.

    Raises
    ------
    ValueError
        If `reference` doesn't fit `removal`, or there are no rows to take.
    """
    if removal == "identity":
        if reference is not None:
            raise ValueError("reference is given, but removal='identity' uses none")
        return None, None
    given = not (reference is None or isinstance(reference, Integral))
    if given:
        points = np.asarray(reference).reshape(1, -1) if np.ndim(reference) == 1 else reference
        pool = densified(to_columns(points), working_memory)
        weights = np.ones(len(pool))
    else:
        pool = densified(support if rows is None else rows, working_memory)
        if not len(pool):
            raise ValueError(
                f"removal={removal!r} needs background rows: the model has no support points, so "
                "pass X or reference"
            )
        weights = _check_sample_weight(sample_weight, pool, dtype=np.float64)
    if removal == "baseline":
        if isinstance(reference, Integral):
            raise ValueError(f"removal='baseline' needs a point, got {reference=}")
        if given and len(pool) != 1:
            raise ValueError(
                f"removal='baseline' needs one point, got reference of {len(pool)} rows"
            )
        return np.average(pool, axis=0, weights=weights, keepdims=True), np.ones(1)
    if isinstance(reference, Integral):
        size = min(int(reference), len(pool))
        chosen = check_random_state(random_state).choice(len(pool), size=size, replace=False)
        pool, weights = pool[chosen], weights[chosen]
    return pool, weights / weights.sum()


def warn_about_base(empty: np.ndarray, expansion: ProductKernelExpansion) -> None:
    """Warn if the base value of the identity removal lies far from the predictions.

    Parameters
    ----------
    empty : ndarray of shape (n_outputs,)
        The base value.
    expansion : ProductKernelExpansion
        The model, which is evaluated at up to 200 support points.
    """
    n_support = expansion.support.shape[0]
    if n_support < 2:
        return
    some = expansion.support[np.unique(np.linspace(0, n_support - 1, 200, dtype=int))]
    predictions = expansion(some)
    distance = np.abs(empty - predictions.mean(axis=0))
    if np.any(distance > 3 * predictions.std(axis=0)):
        warnings.warn(
            "The base value of removal='identity' lies more than 3 standard deviations from the "
            "mean prediction at the support points: attributions are then mostly of one sign. "
            "removal='interventional' has the mean prediction as its base value.",
            UserWarning,
            stacklevel=4,
        )
