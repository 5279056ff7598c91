"""The best accuracy that any model can have on votes: bounds from the votes themselves.

Against a label drawn from the population's opinions q_i no model is right more often than
mean max_k q_ik. With vote shares p_i for q_i, mean max_k p_ik is biased up: the largest of noisy
shares is picked and read off at once. Half of the votes to pick the mode and the other half to read
off its share is biased down: the picked mode need not be the true one, and its share is read off
without bias. The truth lies between the two means.
"""

from numbers import Integral
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, validate_params

from .arms import draw_crowd
from .targets import soft_targets

__all__ = ["BayesAccuracy", "bayes_accuracy"]


class BayesAccuracy(NamedTuple):
    """Bounds of the best accuracy that a model can have on annotators' labels.

    Parameters
    ----------
    split_half : float
        Lower bound on average: share, in one half of the votes, of the mode of the other half.
    plug_in : float
        Upper bound on average: mean of the largest share.
    standard_error : float
        Of `split_half`, over the items.

    Examples
    --------
    >>> from equipoise.explainers import BayesAccuracy
    >>> BayesAccuracy(0.6, 0.7, 0.01).plug_in
    0.7
    """

    split_half: float
    plug_in: float
    standard_error: float


def agreement_of_halves(counts: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """For each item, the share in one half of the votes of the other half's mode, both ways.

    Tied modes count alike, as if one of them were drawn.
    """
    n = counts.sum(axis=1)
    first = draw_crowd(counts, n // 2, rng)
    second = counts - first
    found = []
    for chosen, judged in ((first, second), (second, first)):
        mode = chosen == chosen.max(axis=1, keepdims=True)
        share = judged / judged.sum(axis=1, keepdims=True)
        found.append((mode * share).sum(axis=1) / mode.sum(axis=1))
    return (found[0] + found[1]) / 2


@validate_params(
    {
        "counts": ["array-like"],
        "n_splits": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def bayes_accuracy(
    counts: npt.ArrayLike,
    *,
    n_splits: int = 20,
    random_state: int | np.random.RandomState | None = None,
) -> BayesAccuracy:
    """Bound the accuracy that the best model could have against one annotator's label.

    Parameters
    ----------
    counts : array-like of shape (n_samples, n_classes)
        Votes, at least two on each item.
    n_splits : int, default=20
        Random halvings of the votes, averaged.
    random_state : int, RandomState or None, default=None
        Seed of the halvings.

    Returns
    -------
    BayesAccuracy
        ``split_half`` (biased down), ``plug_in`` (biased up) and ``standard_error``.

    Raises
    ------
    ValueError
        If `counts` aren't votes, or an item has one vote.

    References
    ----------
    .. [1] T. Ishida et al., "Is the performance of my deep network too good to be true? A direct
           approach to estimating the Bayes error in binary classification", ICLR 2023.

    Examples
    --------
    >>> from equipoise.explainers import bayes_accuracy
    >>> bound = bayes_accuracy([[9, 1], [3, 7], [5, 5]], random_state=0)
    >>> round(bound.plug_in, 6)
    0.7
    >>> bound.split_half < bound.plug_in
    True
    """
    votes = soft_targets(counts, name="counts").counts
    if votes is None:
        raise ValueError("counts must be vote counts; got probabilities, labels or single votes")
    n = votes.sum(axis=1)
    if (n < 2).any():
        raise ValueError(
            f"item {int(np.argmax(n < 2))} has one vote: halves need at least two votes an item"
        )
    rng = check_random_state(random_state)
    halves = np.mean([agreement_of_halves(votes, rng) for _ in range(n_splits)], axis=0)
    return BayesAccuracy(
        split_half=float(halves.mean()),
        plug_in=float((votes.max(axis=1) / n).mean()),
        standard_error=float(halves.std(ddof=1) / np.sqrt(len(n))) if len(n) > 1 else float("nan"),
    )
