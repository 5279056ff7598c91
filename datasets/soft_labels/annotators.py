"""Simulated annotators of items with known class probabilities, and wrong original labels."""

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.utils import Bunch, check_random_state
from sklearn.utils.validation import check_array, column_or_1d

__all__ = ["inject_mode_shift", "simulate_annotators"]

RandomState = int | np.random.RandomState | None


def read_posterior(P: npt.ArrayLike) -> np.ndarray:
    posterior = np.asarray(check_array(P, dtype=np.float64, input_name="P"))
    if (posterior < 0).any() or np.abs(posterior.sum(axis=1) - 1).max() > 1e-3:
        raise ValueError("P must hold one distribution a row: non-negative, summing to 1")
    if posterior.shape[1] < 2:
        raise ValueError("P must have at least 2 columns, one a class")
    return posterior / posterior.sum(axis=1, keepdims=True)


def draw_columns(P: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """One column from each row's distribution."""
    cumulative = np.cumsum(P, axis=1)
    u = rng.uniform(size=(len(P), 1)) * cumulative[:, -1:]
    return (u >= cumulative[:, :-1]).sum(axis=1)


def choose_workers(
    n: int, n_annotators: int, votes_per_item: int, missing: str, rng: np.random.RandomState
) -> np.ndarray:
    """Who votes on which item, (n, votes_per_item)."""
    if missing == "random":
        return rng.uniform(size=(n, n_annotators)).argsort(axis=1)[:, :votes_per_item]
    # A shuffled deck dealt round: loads differ by one at most, no one is dealt an item twice.
    return rng.permutation(n_annotators)[
        (np.arange(n)[:, None] * votes_per_item + np.arange(votes_per_item)) % n_annotators
    ]


def simulate_annotators(
    P: npt.ArrayLike,
    n_annotators: int = 20,
    votes_per_item: int = 10,
    skill: tuple[float, float] = (0.6, 0.98),
    bias: npt.ArrayLike | None = None,
    spammer_fraction: float = 0.0,
    difficulty: npt.ArrayLike | None = None,
    missing: str = "random",
    random_state: RandomState = None,
) -> Bunch:
    """Simulate annotators who vote on items with known class probabilities.

    An annotator sees class k of item i with probability P_ik and reports it with probability equal
    to the annotator's skill, else another class. Skill 1 samples votes from `P` itself.

    Parameters
    ----------
    P : array-like of shape (n_samples, n_classes)
        Class probabilities of each item.
    n_annotators : int, default=20
        Number of annotators.
    votes_per_item : int, default=10
        Annotators who vote on each item.
    skill : (float, float), default=(0.6, 0.98)
        Each annotator's skill is drawn uniformly between these.
    bias : array-like of shape (n_classes,), default=None
        Weights of the classes among the wrong reports; None is uniform.
    spammer_fraction : float, default=0.0
        Share of annotators who answer uniformly whatever they see.
    difficulty : array-like of shape (n_samples,), default=None
        In [0, 1]: shrinks every skill linearly to chance, which it reaches at 1.
    missing : {"random", "balanced"}, default="random"
        Whether an item's annotators are drawn at random, or all annotators have equal loads.
    random_state : int, RandomState or None, default=None
        Seed.

    Returns
    -------
    sklearn.utils.Bunch
        ``annotations`` (DataFrame with ``task``, ``worker``, ``label``, one row a vote),
        ``counts`` (n_samples, n_classes), ``worker_confusion`` (n_annotators, n_classes, n_classes)
        with rows for the class seen (at difficulty 0), ``worker_skill`` (n_annotators,), a
        spammer's being 1 / n_classes.

    References
    ----------
    .. [1] A. P. Dawid, A. M. Skene, "Maximum likelihood estimation of observer error-rates using
           the EM algorithm", Applied Statistics, 1979.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.datasets import simulate_annotators
    >>> votes = simulate_annotators(np.eye(3), 5, 4, skill=(1, 1), random_state=0)
    >>> votes.counts
    array([[4, 0, 0],
           [0, 4, 0],
           [0, 0, 4]])
    >>> list(votes.annotations.columns)
    ['task', 'worker', 'label']
    """
    P = read_posterior(P)
    n, K = P.shape
    low, high = skill
    if not 0 <= low <= high <= 1:
        raise ValueError(f"skill={skill!r} must be (low, high) with 0 <= low <= high <= 1")
    if not 0 <= spammer_fraction <= 1:
        raise ValueError(f"spammer_fraction={spammer_fraction!r} must be in [0, 1]")
    if not 1 <= votes_per_item <= n_annotators:
        raise ValueError(
            f"votes_per_item={votes_per_item!r} must be between 1 and n_annotators={n_annotators!r}"
        )
    if missing not in ("random", "balanced"):
        raise ValueError(f"missing={missing!r} is not allowed; allowed: 'random', 'balanced'")
    hard = np.zeros(n) if difficulty is None else column_or_1d(difficulty).astype(float)
    if hard.shape != (n,) or not ((hard >= 0) & (hard <= 1)).all():
        raise ValueError(f"difficulty must be {n} numbers in [0, 1]")
    liked = np.ones(K) if bias is None else column_or_1d(bias).astype(float)
    if liked.shape != (K,) or (liked < 0).any() or (liked > 0).sum() < 2:
        raise ValueError(f"bias must be {K} non-negative weights, at least two of them positive")
    rng = check_random_state(random_state)
    worker_skill = rng.uniform(low, high, size=n_annotators)
    spams = rng.permutation(n_annotators) < round(spammer_fraction * n_annotators)
    worker_skill[spams] = 1 / K
    wrong = np.where(np.eye(K, dtype=bool), 0, liked)
    wrong = wrong / wrong.sum(axis=1, keepdims=True)  # (K, K) law of the reports that miss
    spam_wrong = (1 - np.eye(K)) / (K - 1)
    miss = np.where(spams[:, None, None], spam_wrong, wrong)  # (J, K, K)
    correct = worker_skill[:, None, None]
    confusion = correct * np.eye(K) + (1 - correct) * miss
    workers = choose_workers(n, n_annotators, votes_per_item, missing, rng)
    task = np.repeat(np.arange(n), votes_per_item)
    worker = workers.ravel()
    seen = draw_columns(P[task], rng)
    chance = 1 / K + (worker_skill[worker] - 1 / K) * (1 - hard[task])
    right = rng.uniform(size=len(task)) < chance
    label = np.where(right, seen, draw_columns(miss[worker, seen], rng))
    counts = np.zeros((n, K), dtype=np.int64)
    np.add.at(counts, (task, label), 1)
    return Bunch(
        annotations=pd.DataFrame({"task": task, "worker": worker, "label": label}),
        counts=counts,
        worker_confusion=confusion,
        worker_skill=worker_skill,
    )


def inject_mode_shift(
    y: npt.ArrayLike, P: npt.ArrayLike, rate: float, random_state: RandomState = None
) -> np.ndarray:
    """Replace the labels of random items by their most probable other class.

    Parameters
    ----------
    y : array-like of shape (n_samples,), int
        Labels, columns of `P`.
    P : array-like of shape (n_samples, n_classes)
        Class probabilities; items with a one-hot row have no other class and keep their label.
    rate : float
        Share of all items that change.
    random_state : int, RandomState or None, default=None
        Seed.

    Returns
    -------
    ndarray of shape (n_samples,)
        The changed labels: exactly ``round(rate * n_samples)`` differ from `y`.

    Raises
    ------
    ValueError
        If there are fewer items with another possible class than are to change.

    Examples
    --------
    >>> from equipoise.datasets import inject_mode_shift
    >>> inject_mode_shift([0, 0], [[0.7, 0.1, 0.2], [1.0, 0.0, 0.0]], rate=0.5, random_state=0)
    array([2, 0])
    """
    P = read_posterior(P)
    labels = np.asarray(column_or_1d(y))
    n, K = P.shape
    whole = labels.shape == (n,) and labels.dtype.kind in "iu"
    if not whole or labels.min() < 0 or labels.max() >= K:
        raise ValueError(f"y must be {n} whole numbers from 0 to {K - 1}, columns of P")
    if not 0 <= rate <= 1:
        raise ValueError(f"rate={rate!r} must be in [0, 1]")
    others = P.copy()
    others[np.arange(n), labels] = 0
    eligible = np.flatnonzero((P.max(axis=1) < 1) & (others.max(axis=1) > 0))
    n_shifts = round(rate * n)
    if n_shifts > len(eligible):
        raise ValueError(
            f"rate={rate!r} asks for {n_shifts} shifts, but only {len(eligible)} items have "
            "another possible class"
        )
    rows = check_random_state(random_state).permutation(eligible)[:n_shifts]
    shifted = labels.copy()
    shifted[rows] = others[rows].argmax(axis=1)
    return shifted
