"""Loss tables for bandits, with the truth about their segments, and a replay of classifiers.

Kinds of tables differ in which regret is hard. Segments are cut at floor(linspace(0, T, S + 1)).
"""

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import Bunch, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions, validate_params

from ..games.bandits.regret import count_switches

__all__ = ["load_digits_bandit", "make_bandit_losses"]

Array = np.ndarray
KINDS = ("random", "rotate", "hidden", "shorthid", "phase", "decoy", "alternating", "bernoulli")
#: Loss of the fixed arm, of the others, and of the one that dropped.
FIXED, HIGH, LOW = 0.5, 0.75, 0.25


def drop_length(kind: str, k: int, n_arms: int, horizon: int, n_segments: int) -> int:
    """Rounds for which the arm of segment k stays low; the whole segment where it is longer."""
    scale = np.sqrt(n_arms * horizon / n_segments)
    if kind == "shorthid":
        return max(1, int(0.25 * scale))
    if kind == "phase" and k <= n_segments // 2:
        return max(1, int(0.1 * scale))
    return horizon


def segment_table(
    kind: str, n_arms: int, cuts: Array, n_segments: int, rng: np.random.RandomState
) -> Array:
    """Fill the segments one by one."""
    losses = np.empty((cuts[-1], n_arms))
    for k in range(n_segments):
        part = losses[cuts[k] : cuts[k + 1]]
        if kind == "random":
            part[:] = rng.uniform(size=n_arms)
        elif kind == "rotate":
            part[:] = HIGH
            part[:, rng.randint(n_arms)] = LOW
        elif kind == "decoy":
            part[:] = 0.6 + 0.4 * rng.uniform(size=n_arms)
            part[:, 0] = FIXED
        else:  # hidden, shorthid, phase: in odd segments one of the other arms drops
            part[:], part[:, 0] = HIGH, FIXED
            if k % 2:
                length = drop_length(kind, k, n_arms, int(cuts[-1]), n_segments)
                part[:length, 1 + rng.randint(n_arms - 1)] = LOW
    return losses


@validate_params(
    {
        "kind": [StrOptions(set(KINDS))],
        "n_arms": [Interval(Integral, 2, None, closed="left")],
        "horizon": [Interval(Integral, 1, None, closed="left")],
        "n_switches": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def make_bandit_losses(
    kind: str = "hidden",
    n_arms: int = 4,
    horizon: int = 10_000,
    n_switches: int = 16,
    random_state: Any = None,
) -> Bunch:
    """Make a table of losses with a known number of segments.

    Parameters
    ----------
    kind : str, default="hidden"
        - "random": levels uniform in [0, 1] in each segment.
        - "rotate": 0.75, one random arm 0.25.
        - "hidden": arm 0 at 0.5, the others at 0.75; in odd segments one of them at 0.25.
        - "shorthid": as "hidden", but the drop lasts 0.25 sqrt(A T / S) rounds only.
        - "phase": as "hidden", with drops of 0.1 sqrt(A T / S) rounds in the first half.
        - "decoy": arm 0 is always best at 0.5, the others jump between 0.6 and 1.
        - "alternating": arm 0 at 0.9 and 0 in turn, arm 1 at 0 and 1, the rest at 0.8; `n_switches`
          must be 1, and isn't the number of segments here.
        - "bernoulli": noise of mean 0.4 for arm 0, 0.5 for the rest; `n_switches` must be 1.
    n_arms : int, default=4
        Number of arms A, at least 2.
    horizon : int, default=10000
        Number of rounds T.
    n_switches : int, default=16
        Number of segments S.
    random_state : int, RandomState or None, default=None
        Source of randomness.

    Returns
    -------
    Bunch
        "losses" (T, A); "cuts" (S + 1,), where the segments begin and end; "best_arms" (T,), the
        best arm of each round; "n_switches", the segments that one can see in the table.

    Raises
    ------
    ValueError
        If there are more segments than rounds, or the kind has no segments and S isn't 1.

    Examples
    --------
    >>> from equipoise.datasets import make_bandit_losses
    >>> world = make_bandit_losses("hidden", n_arms=4, horizon=1000, n_switches=8, random_state=0)
    >>> world.losses.shape, world.n_switches
    ((1000, 4), 8)
    """
    if n_switches > horizon:
        raise ValueError(f"n_switches={n_switches} segments don't fit into horizon={horizon}")
    rng = check_random_state(random_state)
    cuts = np.linspace(0, horizon, n_switches + 1).astype(np.int64)
    if kind in ("alternating", "bernoulli"):
        if n_switches != 1:
            raise ValueError(f"kind={kind!r} has no segments: n_switches must be 1")
        if kind == "alternating":
            losses = np.full((horizon, n_arms), 0.8)
            losses[:, 0] = np.where(np.arange(horizon) % 2, 0.0, 0.9)
            losses[:, 1] = np.where(np.arange(horizon) % 2, 1.0, 0.0)
        else:
            means = np.r_[0.4, np.full(n_arms - 1, 0.5)]
            losses = (rng.uniform(size=(horizon, n_arms)) < means).astype(float)
    else:
        losses = segment_table(kind, n_arms, cuts, n_switches, rng)
    return Bunch(
        losses=losses,
        cuts=cuts,
        best_arms=losses.argmin(axis=1),
        n_switches=count_switches(losses),
        kind=kind,
    )


def hide_part(images: Array, part: str) -> Array:
    """Digits of shape (n, 64) with one half of each image set to 0."""
    seen = images.reshape(-1, 8, 8).copy()
    if part == "top":
        seen[:, :4] = 0
    elif part == "bottom":
        seen[:, 4:] = 0
    elif part == "left":
        seen[:, :, :4] = 0
    elif part == "right":
        seen[:, :, 4:] = 0
    return seen.reshape(len(images), -1)


#: What is hidden of the images; the classifier of the same name was trained on such images.
PARTS = ("nothing", "top", "bottom", "left", "right")


@validate_params(
    {
        "horizon": [Interval(Integral, 1, None, closed="left")],
        "n_switches": [Interval(Integral, 1, None, closed="left")],
        "kind": [StrOptions({"error_rate", "zero_one"})],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def load_digits_bandit(
    horizon: int = 20_000, n_switches: int = 10, kind: str = "error_rate", random_state: Any = 0
) -> Bunch:
    """Make a choice among five classifiers of digits, of whose images a half may be hidden.

    Each arm is a ridge classifier that was trained on 898 of scikit-learn's digits with another
    part of the image hidden. What is hidden in the stream jumps from segment to segment, and with
    it the best arm.

    Parameters
    ----------
    horizon : int, default=20000
        Number of rounds T.
    n_switches : int, default=10
        Number of segments S; neighbours hide different parts.
    kind : {"error_rate", "zero_one"}, default="error_rate"
        A round's loss: the classifier's error rate on the 899 other digits, which stands still in a
        segment; or 0 or 1 for one of them, drawn anew in each round.
    random_state : int, RandomState or None, default=0
        Source of randomness of the stream; the split of the digits is always the same.

    Returns
    -------
    Bunch
        "losses" (T, 5), "cuts" (S + 1,), "hidden" (list of S parts), "arm_names" (list of 5),
        "error_rates" (5, 5) with a row for each hidden part, "n_arms" and "n_switches".

    Raises
    ------
    ValueError
        If there are more segments than rounds.

    References
    ----------
    .. [1] E. Alpaydin, C. Kaynak, "Optical recognition of handwritten digits", 1998.

    Examples
    --------
    >>> from equipoise.datasets import load_digits_bandit
    >>> stream = load_digits_bandit(horizon=1000, n_switches=4)
    >>> stream.losses.shape, stream.n_switches
    ((1000, 5), 4)
    >>> bool((stream.error_rates.argmin(axis=1) == range(5)).all())
    True
    """
    from sklearn.datasets import load_digits
    from sklearn.linear_model import RidgeClassifier
    from sklearn.model_selection import train_test_split

    if n_switches > horizon:
        raise ValueError(f"n_switches={n_switches} segments don't fit into horizon={horizon}")
    images, digits = load_digits(return_X_y=True)
    split = train_test_split(images, digits, test_size=0.5, random_state=0, stratify=digits)
    train, test, y_train, y_test = split
    arms = [RidgeClassifier(alpha=10.0).fit(hide_part(train, part), y_train) for part in PARTS]
    wrong = np.array(  # (hidden part, arm, digit)
        [[arm.predict(hide_part(test, part)) != y_test for arm in arms] for part in PARTS]
    )
    rng = check_random_state(random_state)
    cuts = np.linspace(0, horizon, n_switches + 1).astype(np.int64)
    hidden = [int(rng.randint(len(PARTS)))]
    for _ in range(n_switches - 1):
        hidden.append(int((hidden[-1] + 1 + rng.randint(len(PARTS) - 1)) % len(PARTS)))
    parts = np.repeat(hidden, np.diff(cuts))
    error_rates = wrong.mean(axis=2)
    if kind == "error_rate":
        losses = error_rates[parts]
    else:
        losses = wrong[parts, :, rng.randint(len(y_test), size=horizon)].astype(float)
    return Bunch(
        losses=losses,
        cuts=cuts,
        hidden=[PARTS[k] for k in hidden],
        arm_names=[f"trained with {part} hidden" for part in PARTS],
        error_rates=error_rates,
        n_arms=len(PARTS),
        n_switches=n_switches,
    )
