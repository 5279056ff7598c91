"""Target matrices that differ in one thing only: the arms of a controlled comparison.

With p_i the human soft label, m_i its mode, y_i the original label and e_k a unit row:

    hard_orig e_y    hard_mode e_m    soft_human p    soft_orig_mode: p with the entries at y and m
    exchanged, so that softness (entropy, sorted profile) is the same and the mode is y
    label_smooth (1 - eps) e_m + eps / K, one eps whose entropy is the mean of H(p_i)
    entropy_matched: the same with eps_i solving H = H(p_i) item by item
    shuffled: rows of p permuted among items of equal m       class_mean: mean p over such items
    offmode_shuffled: p_im kept, the pattern of the other mass permuted among items of equal m
    teacher: given probabilities with the mode moved to m; teacher_matched: tempered first, so that
    their mean entropy is that of the votes     sampled: one vote drawn     crowd_R: R votes drawn

The first four are the 2 x 2 design of hard or soft by original or human mode (after Pavlovic,
Paun and Poesio, arXiv 2605.18648).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state
from sklearn.utils.validation import column_or_1d

from .targets import columns_of, entropy, human_modes, one_hot, soft_targets

__all__ = ["entropy_matched_labels", "make_label_arms"]

DEFAULT_ARMS = (
    "hard_orig",
    "hard_mode",
    "soft_human",
    "soft_orig_mode",
    "label_smooth",
    "entropy_matched",
    "shuffled",
    "class_mean",
)
OTHER_ARMS = ("offmode_shuffled", "teacher", "teacher_matched", "sampled")

#: Halvings of [0, 1]: eps is known to 2**-60.
BISECTIONS = 60

#: From (P, modes, random state) to a target matrix.
ArmFunction = Callable[[np.ndarray, np.ndarray, np.random.RandomState], np.ndarray]


def swap_entries(P: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Each row with the entries of two columns exchanged."""
    rows = np.arange(len(P))
    swapped = P.copy()
    swapped[rows, first], swapped[rows, second] = P[rows, second], P[rows, first]
    return swapped


def smoothed_entropy(eps: np.ndarray, K: int) -> np.ndarray:
    """Entropy of (1 - eps) e_m + eps / K."""
    rest = eps / K
    rows = np.repeat(rest[:, None], 2, axis=1)
    rows[:, 0] = 1 - eps + rest
    terms = -rows * np.log(np.maximum(rows, 1e-300))
    return terms[:, 0] + (K - 1) * terms[:, 1]


def matching_eps(H: np.ndarray, K: int) -> np.ndarray:
    """The eps in [0, 1] whose smoothed row has entropy H: bisection, for all items at once."""
    low, high = np.zeros_like(H), np.ones_like(H)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        below = smoothed_entropy(middle, K) < H
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.where(H <= 0, 0.0, np.where(np.log(K) <= H, 1.0, (low + high) / 2))


def smooth(modes: np.ndarray, eps: np.ndarray, K: int) -> np.ndarray:
    """(1 - eps) e_m + eps / K for each item."""
    return (1 - eps)[:, None] * one_hot(modes, K) + (eps / K)[:, None]


def entropy_matched_labels(mode: npt.ArrayLike, H: npt.ArrayLike, K: int) -> np.ndarray:
    """Make label-smoothed rows (1 - eps_i) e_m + eps_i / K of given entropies.

    Parameters
    ----------
    mode : array-like of shape (n_samples,), int
        Column of each item's mode.
    H : array-like of shape (n_samples,) or float
        Entropy of each row, in nats; 0 and less gives a unit row, log K and more a uniform one.
    K : int
        Number of classes.

    Returns
    -------
    ndarray of shape (n_samples, K)
        Rows sum to one; the mode keeps the largest entry unless the row is uniform.

    Examples
    --------
    >>> from equipoise.explainers import entropy_matched_labels
    >>> entropy_matched_labels([1], [0.5], 3).round(4)
    array([[0.0696, 0.8608, 0.0696]])
    """
    if int(K) != K or K < 2:
        raise ValueError(f"K={K!r} must be a whole number >= 2")
    modes = np.asarray(column_or_1d(mode))
    if modes.dtype.kind not in "iu" or modes.min() < 0 or modes.max() >= K:
        raise ValueError(f"mode must be whole numbers from 0 to {K - 1}")
    levels = np.broadcast_to(np.asarray(H, dtype=float), modes.shape)
    if not np.isfinite(levels).all():
        raise ValueError("H must be finite")
    return smooth(modes, matching_eps(levels, int(K)), int(K))


def permuted_within(groups: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Row numbers permuted among the rows of each group."""
    source = np.arange(len(groups))
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        source[rows] = rng.permutation(rows)
    return source


def label_smooth(P: np.ndarray, modes: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    K = P.shape[1]
    eps = matching_eps(np.array([entropy(P).mean()]), K)
    return smooth(modes, np.repeat(eps, len(P)), K)


def entropy_matched(P: np.ndarray, modes: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    return smooth(modes, matching_eps(entropy(P), P.shape[1]), P.shape[1])


def shuffled(P: np.ndarray, modes: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    return P[permuted_within(modes, rng)]


def class_mean(P: np.ndarray, modes: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    present, place = np.unique(modes, return_inverse=True)
    means = np.array([P[modes == k].mean(axis=0) for k in present])
    return means[place]


def offmode_shuffled(P: np.ndarray, modes: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Items without mass off the mode have no pattern to give, and keep theirs. Where p_im < 1/2 a
    concentrated pattern can outgrow the mode."""
    rows = np.arange(len(P))
    rest = P.copy()
    rest[rows, modes] = 0
    off = rest.sum(axis=1)
    pattern = np.divide(rest, off[:, None], out=np.zeros_like(rest), where=off[:, None] > 0)
    groups = np.where(off > 0, modes, -1)
    source = np.where(groups >= 0, permuted_within(groups, rng), rows)
    mixed = off[:, None] * pattern[source]
    mixed[rows, modes] = P[rows, modes]
    return mixed


def sampled(P: np.ndarray, modes: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    u = rng.uniform(size=len(P))
    cumulative = np.cumsum(P, axis=1)
    columns = (u[:, None] * cumulative[:, -1:] >= cumulative[:, :-1]).sum(axis=1)
    return one_hot(columns, P.shape[1])


SYNTHETIC: dict[str, ArmFunction] = {
    "label_smooth": label_smooth,
    "entropy_matched": entropy_matched,
    "shuffled": shuffled,
    "class_mean": class_mean,
    "offmode_shuffled": offmode_shuffled,
    "sampled": sampled,
}


def temper_to_entropy(F: np.ndarray, target: float) -> np.ndarray:
    """f^(1 / T) / sum with the T whose mean entropy is the target (bisection on log T)."""
    log_f = np.log(np.maximum(F, 1e-300))

    def tempered(log_T: float) -> np.ndarray:
        Z = log_f / np.exp(log_T)
        Z = np.exp(Z - Z.max(axis=1, keepdims=True))
        return Z / Z.sum(axis=1, keepdims=True)

    low, high = -10.0, 10.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if entropy(tempered(middle)).mean() < target:
            low = middle
        else:
            high = middle
    return tempered((low + high) / 2)


def draw_crowd(counts: np.ndarray, r: int | np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """r votes (or r_i) of each item drawn without replacement (multivariate hypergeometric)."""
    few = counts.sum(axis=1) < r
    if few.any():
        row = int(np.argmax(few))
        raise ValueError(
            f"{r} votes an item were asked for, but item {row} has {int(counts[row].sum())}"
        )
    generator = np.random.default_rng(rng.randint(2**31 - 1))
    drawn = np.zeros_like(counts)
    others, remaining = counts.sum(axis=1), np.broadcast_to(r, len(counts))
    for k in range(counts.shape[1]):
        others = others - counts[:, k]
        drawn[:, k] = generator.hypergeometric(counts[:, k], others, remaining)
        remaining = remaining - drawn[:, k]
    return drawn


def child_state(seed: int, name: str) -> np.random.RandomState:
    """A generator that depends on the seed and the arm's name alone, not on the other arms."""
    return np.random.RandomState([seed, crc32(name.encode())])


def known_arm(name: str) -> bool:
    return name in (*DEFAULT_ARMS, *OTHER_ARMS) or (
        name.startswith("crowd_") and name.removeprefix("crowd_").isdigit()
    )


def make_label_arms(
    counts_or_P: npt.ArrayLike,
    y: npt.ArrayLike,
    arms: str | Sequence[str] | Mapping[str, Any] = "default",
    random_state: int | np.random.RandomState | None = None,
    *,
    mode: str = "human",
    teacher: npt.ArrayLike | None = None,
    classes: Sequence[Any] | np.ndarray | None = None,
) -> dict[str, np.ndarray]:
    """Make the target matrices of a controlled comparison of label types.

    Parameters
    ----------
    counts_or_P : array-like of shape (n_samples, n_classes)
        Votes or soft labels. The arms "crowd_R" need votes.
    y : array-like of shape (n_samples,)
        Original hard labels.
    arms : "default", sequence of str, or mapping, default="default"
        Names of arms (see Notes). A mapping gives own arms: from a name to a matrix (n_samples,
        n_classes), to ``function(P, modes, random_state)`` that returns one, or to None for the
        built-in of that name.
    random_state : int, RandomState or None, default=None
        Seed of the random arms. Each has its own stream: other arms don't change it.
    mode : {"human", "original"}, default="human"
        Build the synthetic arms at the human mode, or exchange their entries at `y` and the human
        mode as "soft_orig_mode" does.
    teacher : array-like of shape (n_samples, n_classes), optional
        Out-of-fold probabilities of a model trained on hard labels, for "teacher" and
        "teacher_matched".
    classes : sequence of shape (n_classes,), optional
        Labels of the columns; None takes the data frame's columns or 0 .. n_classes - 1.

    Returns
    -------
    dict of str to ndarray of shape (n_samples, n_classes)
        One target matrix an arm; rows are non-negative and sum to one.

    Notes
    -----
    Default arms: "hard_orig", "hard_mode", "soft_human", "soft_orig_mode", "label_smooth" (one
    strength, same mean entropy), "entropy_matched" (item by item), "shuffled" (rows permuted among
    items of equal mode), "class_mean". Others: "offmode_shuffled", "teacher", "teacher_matched",
    "sampled" (one vote), and "crowd_R" for R votes drawn without replacement, as "crowd_5".

    References
    ----------
    .. [1] M. Pavlovic, S. Paun, M. Poesio, "An assessment of human vs. model uncertainty in
           soft-label learning and calibration", arXiv 2605.18648, 2026.

    Examples
    --------
    >>> from equipoise.explainers import make_label_arms
    >>> arms = make_label_arms([[4, 5, 1], [0, 10, 0]], y=[0, 1])
    >>> arms["soft_orig_mode"]
    array([[0.5, 0.4, 0.1],
           [0. , 1. , 0. ]])
    >>> sorted(arms)[:3]
    ['class_mean', 'entropy_matched', 'hard_mode']
    """
    if mode not in ("human", "original"):
        raise ValueError(f"mode={mode!r} is not allowed; allowed: 'human', 'original'")
    humans = soft_targets(counts_or_P, classes, name="counts_or_P")
    P = humans.P
    original = columns_of(column_or_1d(y), humans.classes)
    if len(original) != len(P):
        raise ValueError(f"y has {len(original)} labels, but counts_or_P has {len(P)} rows")
    modes = human_modes(P, original)
    if isinstance(arms, str):
        if arms != "default":
            raise ValueError(f"arms={arms!r} is not allowed; allowed: 'default', names, a mapping")
        arms = DEFAULT_ARMS
    wanted = dict(arms) if isinstance(arms, Mapping) else dict.fromkeys(arms)
    seed = int(check_random_state(random_state).randint(2**31 - 1))

    def teacher_arm(matched: bool) -> np.ndarray:
        if teacher is None:
            raise ValueError(
                "the arms 'teacher' and 'teacher_matched' need `teacher` probabilities"
            )
        F = soft_targets(teacher, humans.classes, name="teacher").P
        if F.shape != P.shape:
            raise ValueError(f"teacher has shape {F.shape}; expected {P.shape}")
        F = temper_to_entropy(F, float(entropy(P).mean())) if matched else F
        return swap_entries(F, F.argmax(axis=1), modes)

    def build(name: str, given: Any) -> np.ndarray:
        rng = child_state(seed, name)
        if callable(given):
            return np.asarray(given(P, modes, rng), dtype=float)
        if given is not None:
            return np.asarray(given, dtype=float)
        if not known_arm(name):
            raise ValueError(
                f"arm {name!r} is not known; allowed: {[*DEFAULT_ARMS, *OTHER_ARMS, 'crowd_R']}"
            )
        if name == "hard_orig":
            return one_hot(original, P.shape[1])
        if name == "hard_mode":
            return one_hot(modes, P.shape[1])
        if name == "soft_human":
            return P.copy()
        if name == "soft_orig_mode":
            return swap_entries(P, original, modes)
        if name.startswith("crowd_"):
            if humans.counts is None:
                raise ValueError(f"arm {name!r} draws votes: it needs vote counts, not shares")
            drawn = draw_crowd(humans.counts, int(name.removeprefix("crowd_")), rng)
            made = drawn / drawn.sum(axis=1, keepdims=True)
        elif name.startswith("teacher"):
            made = teacher_arm(matched=name == "teacher_matched")
        else:
            made = SYNTHETIC[name](P, modes, rng)
        return swap_entries(made, original, modes) if mode == "original" else made

    built = {}
    for name, given in wanted.items():
        matrix = build(name, given)
        if matrix.shape != P.shape:
            raise ValueError(f"arm {name!r} has shape {matrix.shape}; expected {P.shape}")
        if not ((matrix >= 0).all() and np.allclose(matrix.sum(axis=1), 1, atol=1e-6)):
            raise ValueError(f"arm {name!r} must have non-negative rows that sum to one")
        built[name] = matrix
    return built
