"""What the estimators of MMD and HSIC attributions return, and how it is put together."""

from typing import NamedTuple

import numpy as np

from equipoise.inference import max_t_pvalues

__all__ = ["Estimate", "averaged", "over_draws", "tested"]


class Estimate(NamedTuple):
    """Values of a statistic's players, with whatever says how sure they are."""

    values: np.ndarray  # (n_players,)
    error_bound: float = 0.0
    standard_errors: np.ndarray | None = None  # (n_players,)
    pvalue: float | None = None
    pvalues: np.ndarray | None = None  # (n_players,)
    pvalues_adjusted: np.ndarray | None = None  # (n_players,)


def over_draws(values: np.ndarray, error_bound: float = 0.0) -> Estimate:
    """Average independent draws.

    Parameters
    ----------
    values : ndarray of shape (n_draws, n_players)
        Unbiased values, at least two of them.
    error_bound : float, default=0.0
        Bound on the quadrature's error of their mean.

    Returns
    -------
    Estimate
        Means and standard errors.
    """
    errors = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return Estimate(values.mean(axis=0), error_bound, errors)


def averaged(blocks: list[Estimate]) -> Estimate:
    """Average exact values over blocks of rows."""
    bound = float(np.mean([block.error_bound for block in blocks]))
    return over_draws(np.array([block.values for block in blocks]), bound)


def tested(values: np.ndarray, error_bound: float, max_t: bool) -> Estimate:
    """Turn observed and permuted attributions into p-values.

    Parameters
    ----------
    values : ndarray of shape (n_players, 1 + n_permutations)
        The first column is observed.
    error_bound : float
        Bound on the quadrature's error.
    max_t : bool
        Whether to adjust for all players by single-step max-T.

    Returns
    -------
    Estimate
        Observed values, one-sided p-values of each player and of the whole statistic.
    """
    raw, adjusted = max_t_pvalues(values[:, 0], values[:, 1:].T)
    whole = values.sum(axis=0)
    total, _ = max_t_pvalues(whole[:1], whole[1:, None])
    return Estimate(
        values[:, 0], error_bound, None, float(total[0]), raw, adjusted if max_t else None
    )
