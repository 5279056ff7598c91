"""How a model's probabilities f_i agree with the annotators' distribution p_i, item by item.

    CE(p, f) = -sum_k p_k log f_k = H(p) + KL(p || f),   TV = (1/2) ||f - p||_1.

With finite votes KL has a floor of about (K_i - 1) / (2 n_i), K_i the classes observed.
Baan et al. (2022) compare class frequencies (TV), rankings and entropies. All in nats.
"""

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import xlogy

from .brier import expected_brier, soft_brier
from .calibration import calibration_error
from .pairs import finish, read_pair
from .rankings import ranking_agreement
from .targets import entropy, human_modes, miller_madow_entropy

__all__ = [
    "entropy_error",
    "human_alignment_report",
    "kl_to_humans",
    "soft_cross_entropy",
    "total_variation",
]

#: Model probabilities below this are raised to it inside logarithms.
CLIP = 1e-12


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
