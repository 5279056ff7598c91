"""How a model's probabilities f_i agree with the annotators' distribution p_i, item by item.

    CE(p, f) = -sum_k p_k log f_k = H(p) + KL(p || f),   TV = (1/2) ||f - p||_1,
    Brier to the population, debiased for n_i votes: ||f - p||^2 - (1 - ||p||^2) / (n_i - 1).

With finite votes KL has a floor of about (K_i - 1) / (2 n_i), K_i the classes observed.
Baan et al. (2022) compare class frequencies (TV), rankings and entropies. All in nats.
"""

import warnings

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import xlogy
from sklearn.utils.validation import check_consistent_length

from .calibration import calibration_error, read_proba, read_weight
from .targets import SoftTargets, entropy, human_modes, miller_madow_entropy, soft_targets

__all__ = [
    "entropy_error",
    "expected_brier",
    "human_alignment_report",
    "kl_to_humans",
    "ranking_agreement",
    "soft_brier",
    "soft_cross_entropy",
    "total_variation",
]

#: Model probabilities below this are raised to it inside logarithms.
CLIP = 1e-12


def read_pair(P: npt.ArrayLike, proba: npt.ArrayLike) -> tuple[SoftTargets, np.ndarray]:
    """Human targets and model probabilities of the same shape."""
    F = read_proba(proba)[0]
    classes = np.arange(F.shape[1]) if np.ndim(P) == 1 else None
    humans = soft_targets(P, classes, name="P")
    check_consistent_length(humans.P, F)
    if humans.P.shape[1] != F.shape[1]:
        raise ValueError(f"P has {humans.P.shape[1]} columns, but proba has {F.shape[1]}")
    return humans, F


def finish(
    values: np.ndarray, sample_weight: npt.ArrayLike | None, per_item: bool
) -> float | np.ndarray:
    """The values themselves, or their weighted mean."""
    if per_item:
        return values
    return float(np.average(values, weights=read_weight(sample_weight, len(values))))


def cross_entropies(P: np.ndarray, F: np.ndarray) -> np.ndarray:
    return -xlogy(P, np.maximum(F, CLIP)).sum(axis=1)


def soft_cross_entropy(
    P: npt.ArrayLike,
    proba: npt.ArrayLike,
    *,
    sample_weight: npt.ArrayLike | None = None,
    per_item: bool = False,
) -> float | np.ndarray:
    """Cross-entropy -sum_k p_k log f_k of the model under the annotators, in nats.

    Parameters
    ----------
    P : array-like of shape (n_samples, n_classes) or (n_samples,)
        Soft labels, votes, or columns of hard labels (then the negative log-likelihood).
    proba : array-like of shape (n_samples, n_classes)
        Model probabilities; raised to at least 1e-12 inside the logarithm.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the mean.
    per_item : bool, default=False
        Return the value of each item instead of the mean.

    Returns
    -------
    float or ndarray of shape (n_samples,)
        At least the entropy of `P`.

    Examples
    --------
    >>> from equipoise.explainers import soft_cross_entropy
    >>> round(soft_cross_entropy([[0.5, 0.5]], [[0.5, 0.5]]), 6)
    0.693147
    """
    humans, F = read_pair(P, proba)
    return finish(cross_entropies(humans.P, F), sample_weight, per_item)


def kl_to_humans(
    P: npt.ArrayLike,
    proba: npt.ArrayLike,
    *,
    sample_weight: npt.ArrayLike | None = None,
    per_item: bool = False,
) -> float | np.ndarray:
    """Kullback-Leibler divergence KL(p || f) from the annotators to the model, in nats.

    Parameters
    ----------
    P, proba, sample_weight, per_item
        As for `soft_cross_entropy`.

    Returns
    -------
    float or ndarray of shape (n_samples,)
        Zero where the model repeats the votes.

    Notes
    -----
    A perfect model of the population is still about (K_i - 1) / (2 n_i) away from n_i votes that
    show K_i classes: `human_alignment_report` gives this floor beside the divergence.

    Examples
    --------
    >>> from equipoise.explainers import kl_to_humans
    >>> round(kl_to_humans([[8, 1, 1]], [[0.7, 0.2, 0.1]]), 6)
    0.03751
    """
    humans, F = read_pair(P, proba)
    return finish(cross_entropies(humans.P, F) - entropy(humans.P), sample_weight, per_item)


def total_variation(
    P: npt.ArrayLike,
    proba: npt.ArrayLike,
    *,
    sample_weight: npt.ArrayLike | None = None,
    per_item: bool = False,
) -> float | np.ndarray:
    """Total variation distance (1/2) ||f - p||_1, Baan et al.'s class-frequency distance.

    Parameters
    ----------
    P, proba, sample_weight, per_item
        As for `soft_cross_entropy`.

    Returns
    -------
    float or ndarray of shape (n_samples,)
        In [0, 1].

    References
    ----------
    .. [1] J. Baan, W. Aziz, B. Plank, R. Fernandez, "Stop measuring calibration when humans
           disagree", EMNLP 2022.

    Examples
    --------
    >>> from equipoise.explainers import total_variation
    >>> round(total_variation([[8, 1, 1]], [[0.7, 0.2, 0.1]]), 6)
    0.1
    """
    humans, F = read_pair(P, proba)
    return finish(np.abs(F - humans.P).sum(axis=1) / 2, sample_weight, per_item)


def entropy_error(
    P: npt.ArrayLike,
    proba: npt.ArrayLike,
    *,
    absolute: bool = False,
    sample_weight: npt.ArrayLike | None = None,
    per_item: bool = False,
) -> float | np.ndarray:
    """Model entropy minus human entropy, in nats: negative where the model is too sure.

    Parameters
    ----------
    P, proba, sample_weight, per_item
        As for `soft_cross_entropy`.
    absolute : bool, default=False
        Take the absolute value of each item's error.

    Returns
    -------
    float or ndarray of shape (n_samples,)
        Mean (or each) entropy error.

    Examples
    --------
    >>> from equipoise.explainers import entropy_error
    >>> round(entropy_error([[0.5, 0.5]], [[0.9, 0.1]]), 6)
    -0.368064
    """
    humans, F = read_pair(P, proba)
    errors = entropy(F) - entropy(humans.P)
    return finish(np.abs(errors) if absolute else errors, sample_weight, per_item)


def same_ranking(P: np.ndarray, F: np.ndarray) -> np.ndarray:
    """Whether f orders the classes as p does; classes tied in p may come in any order."""
    order = np.lexsort((-F, -P), axis=1)
    p, f = np.take_along_axis(P, order, axis=1), np.take_along_axis(F, order, axis=1)
    # Where p falls, the smallest f of the group before must be above the largest of the next.
    return ((p[:, :-1] == p[:, 1:]) | (f[:, :-1] > f[:, 1:])).all(axis=1)


def kendall_tau_b(P: np.ndarray, F: np.ndarray) -> np.ndarray:
    """Kendall's tau-b of each row; NaN where either row is constant."""
    first, second = np.triu_indices(P.shape[1], k=1)
    concordance, strict_p, strict_f = np.zeros((3, len(P)))
    for a, b in zip(first, second, strict=True):
        dp, df = np.sign(P[:, a] - P[:, b]), np.sign(F[:, a] - F[:, b])
        concordance += dp * df
        strict_p += dp != 0
        strict_f += df != 0
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(strict_p * strict_f > 0, concordance / np.sqrt(strict_p * strict_f), np.nan)


def ranking_agreement(
    P: npt.ArrayLike,
    proba: npt.ArrayLike,
    *,
    measure: str = "exact",
    sample_weight: npt.ArrayLike | None = None,
    per_item: bool = False,
) -> float | np.ndarray:
    """Agreement of the order in which annotators and model rank the classes.

    Parameters
    ----------
    P, proba, sample_weight, per_item
        As for `soft_cross_entropy`.
    measure : {"exact", "kendall"}, default="exact"
        Whether the whole ranking is the same (classes tied in `P` may come in any order), or
        Kendall's tau-b; items with a constant row have none and are left out of the mean.

    Returns
    -------
    float or ndarray of shape (n_samples,)
        Fraction of items with the same ranking, or mean tau; NaN if no item has a tau.

    References
    ----------
    .. [1] J. Baan et al., "Stop measuring calibration when humans disagree", EMNLP 2022.

    Examples
    --------
    >>> from equipoise.explainers import ranking_agreement
    >>> ranking_agreement([[8, 1, 1], [3, 5, 2]], [[0.7, 0.2, 0.1], [0.5, 0.4, 0.1]])
    0.5
    """
    if measure not in ("exact", "kendall"):
        raise ValueError(f"measure={measure!r} is not allowed; allowed: 'exact', 'kendall'")
    humans, F = read_pair(P, proba)
    if measure == "exact":
        same = same_ranking(humans.P, F)
        return finish(same.astype(float), sample_weight, per_item)
    tau = kendall_tau_b(humans.P, F)
    if per_item:
        return tau
    defined = ~np.isnan(tau)
    weight = read_weight(sample_weight, len(tau)) * defined
    return float(weight[defined] @ tau[defined] / weight.sum()) if weight.sum() else float("nan")


def soft_brier(
    P: npt.ArrayLike,
    proba: npt.ArrayLike,
    *,
    debias: bool = False,
    sample_weight: npt.ArrayLike | None = None,
    per_item: bool = False,
) -> float | np.ndarray:
    """Squared distance ||f - p||^2 of the model to the annotators.

    Parameters
    ----------
    P, proba, sample_weight, per_item
        As for `soft_cross_entropy`.
    debias : bool, default=False
        Subtract (1 - ||p||^2) / (n_i - 1): unbiased for the distance to the population from which
        the n_i votes were drawn, and so possibly negative. `P` must then be votes; with an
        item of one vote the result is NaN, with a warning.

    Returns
    -------
    float or ndarray of shape (n_samples,)
        In [0, 2] where not debiased.

    Raises
    ------
    ValueError
        If `debias` is asked for and `P` isn't votes.

    Examples
    --------
    >>> from equipoise.explainers import soft_brier
    >>> round(soft_brier([[8, 1, 1]], [[0.7, 0.2, 0.1]]), 6)
    0.02
    >>> round(soft_brier([[8, 1, 1]], [[0.7, 0.2, 0.1]], debias=True), 6)
    -0.017778
    """
    humans, F = read_pair(P, proba)
    values = ((F - humans.P) ** 2).sum(axis=1)
    if debias:
        if humans.counts is None:
            raise ValueError("debias=True needs vote counts in P; got probabilities or labels")
        n = humans.counts.sum(axis=1).astype(float)
        if (n < 2).any():
            warnings.warn(
                f"{int((n < 2).sum())} items have one vote: the debiased Brier score is NaN there",
                UserWarning,
                stacklevel=2,
            )
        n[n < 2] = np.nan
        values = values - (1 - (humans.P**2).sum(axis=1)) / (n - 1)
    return finish(values, sample_weight, per_item)


def expected_brier(
    P: npt.ArrayLike,
    proba: npt.ArrayLike,
    *,
    sample_weight: npt.ArrayLike | None = None,
    per_item: bool = False,
) -> float | np.ndarray:
    """Multi-class Brier score expected when the label is drawn from the votes.

    ``||f - p||^2 + 1 - ||p||^2``: the soft Brier score plus the votes' own variance.

    Parameters
    ----------
    P, proba, sample_weight, per_item
        As for `soft_cross_entropy`.

    Returns
    -------
    float or ndarray of shape (n_samples,)
        In [0, 2].

    Examples
    --------
    >>> from equipoise.explainers import expected_brier
    >>> round(expected_brier([[8, 1, 1]], [[0.7, 0.2, 0.1]]), 6)
    0.36
    """
    humans, F = read_pair(P, proba)
    values = ((F - humans.P) ** 2).sum(axis=1) + 1 - (humans.P**2).sum(axis=1)
    return finish(values, sample_weight, per_item)


def correlation(a: np.ndarray, b: np.ndarray, ranks: bool) -> float:
    """Pearson or Spearman correlation; NaN where either side is constant."""
    from scipy.stats import rankdata

    if len(a) < 2 or np.ptp(a) <= 1e-12 or np.ptp(b) <= 1e-12:
        return float("nan")
    # Entropies that differ by rounding alone are ties.
    a, b = (rankdata(v.round(12)) if ranks else v for v in (a, b))
    return float(np.corrcoef(a, b)[0, 1])


def kl_floor(counts: np.ndarray) -> float:
    """Mean of (observed classes - 1) / (2 n_i)."""
    return float(np.mean(((counts > 0).sum(axis=1) - 1) / (2 * counts.sum(axis=1))))


def human_alignment_report(
    P: npt.ArrayLike, proba: npt.ArrayLike, *, n_bins: int = 15
) -> pd.Series:
    """All measures of agreement between annotators and model.

    Parameters
    ----------
    P : array-like of shape (n_samples, n_classes)
        Soft labels or, better, votes: these add the KL floor, the debiased Brier score and the
        Miller-Madow corrected human entropy.
    proba : array-like of shape (n_samples, n_classes)
        Model probabilities.
    n_bins : int, default=15
        Bins of the calibration errors.

    Returns
    -------
    pandas.Series
        Name of the measure to its value; NaN where it isn't defined (correlations with a constant
        entropy, measures that need votes). ``n_clipped`` counts the model probabilities below
        1e-12 that meet a vote, and were raised to it in the logarithms.

    References
    ----------
    .. [1] J. Baan et al., "Stop measuring calibration when humans disagree", EMNLP 2022.

    Examples
    --------
    >>> from equipoise.explainers import human_alignment_report
    >>> report = human_alignment_report([[8, 1, 1], [3, 5, 2]], [[0.7, 0.2, 0.1], [0.5, 0.4, 0.1]])
    >>> print(report[["total_variation", "kl_floor"]].round(4).to_dict())
    {'total_variation': 0.15, 'kl_floor': 0.1}
    """
    humans, F = read_pair(P, proba)
    rows = np.arange(len(F))
    H_p, H_f = entropy(humans.P), entropy(F)
    kl = cross_entropies(humans.P, F) - H_p
    pred = F.argmax(axis=1)
    votes = humans.counts
    if votes is not None and (votes.sum(axis=1) >= 2).all():
        debiased = float(soft_brier(votes, F, debias=True))
    else:
        debiased = float("nan")
    return pd.Series(
        {
            "n_items": len(F),
            "soft_accuracy": humans.P[rows, pred].mean(),
            "mode_accuracy": float((humans.P[rows, pred] == humans.P.max(axis=1)).mean()),
            "cross_entropy": (kl + H_p).mean(),
            "kl": kl.mean(),
            "kl_floor": float("nan") if votes is None else kl_floor(votes),
            "n_clipped": int(((humans.P > 0) & (F < CLIP)).sum()),
            "soft_ece": calibration_error(humans.P, F, n_bins=n_bins),
            "mode_ece": calibration_error(human_modes(humans.P), F, n_bins=n_bins),
            "soft_brier": ((F - humans.P) ** 2).sum(axis=1).mean(),
            "soft_brier_debiased": debiased,
            "expected_brier": float(expected_brier(humans.P, F)),
            "total_variation": float(total_variation(humans.P, F)),
            "human_entropy": H_p.mean(),
            "human_entropy_miller_madow": (
                float("nan") if votes is None else miller_madow_entropy(votes).mean()
            ),
            "model_entropy": H_f.mean(),
            "entropy_error": (H_f - H_p).mean(),
            "entropy_error_absolute": np.abs(H_f - H_p).mean(),
            "entropy_spearman": correlation(H_f, H_p, ranks=True),
            "entropy_pearson": correlation(H_f, H_p, ranks=False),
            "ranking_exact": float(ranking_agreement(humans.P, F)),
            "ranking_kendall": float(ranking_agreement(humans.P, F, measure="kendall")),
        },
        name="value",
        dtype=float,
    )
