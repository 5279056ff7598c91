"""Checking what a mediator promises, from payoffs and policy alone, in plain NumPy.

Nothing here sees a solver's answer but the policy itself. A violation is what a stakeholder gains
by disobeying; a certificate is in order while the largest is at most the tolerance, 1e-6 of the
range of payoffs.

Where payoffs are known within bounds only, `payoffs` are the least ones, with which obeying is
valued, and `tempting` the largest, with which disobeying is: no payoffs in between gain more.
"""

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from .deviations import own_line, player_rows

__all__ = [
    "Certificate",
    "certify_delegation",
    "certify_dominance",
    "certify_obedience",
    "certify_profile",
    "certify_strong",
    "tolerance_of",
]

Array = np.ndarray


@dataclass(frozen=True)
class Certificate:
    """What was found when a guarantee was checked.

    Attributes
    ----------
    ok : bool
        Whether the largest violation is at most the tolerance.
    max_violation : float
        The most that anyone gains by disobeying; negative where everyone loses.
    worst_deviation : tuple
        Who, and how: indices of the stakeholder and of his designs (told, played), or of a
        coalition and its joint design. Empty where nobody has a choice.
    tolerance : float
        How large a gain counts as none.
    """

    ok: bool
    max_violation: float
    worst_deviation: tuple[Any, ...]
    tolerance: float


def tolerance_of(payoffs: Array) -> float:
    """1e-6 of the range of payoffs."""
    return 1e-6 * (float(np.ptp(payoffs)) or 1.0)


def judge(found: list[tuple[float, tuple[Any, ...]]], payoffs: Array) -> Certificate:
    """The certificate for a list of (gain, deviation)."""
    tolerance = tolerance_of(payoffs)
    worst, deviation = max(found, key=lambda pair: pair[0], default=(0.0, ()))
    return Certificate(bool(worst <= tolerance), float(worst), deviation, tolerance)


def alluring(payoffs: Array, tempting: Array | None) -> Array:
    return payoffs if tempting is None else tempting


def certify_obedience(
    payoffs: Array,
    policy: Array,
    kind: str = "ce",
    bonuses: list[Array] | None = None,
    tempting: Array | None = None,
) -> Certificate:
    """Check a (coarse) correlated equilibrium.

    Parameters
    ----------
    payoffs : ndarray of shape (n, d_0, ..., d_{n-1})
        Payoffs.
    policy : ndarray of shape (d_0, ..., d_{n-1})
        Joint distribution.
    kind : {"ce", "cce"}, default="ce"
        Whether a stakeholder deviates after he was told his design, or before.
    bonuses : list of ndarray of shape (d_i,), optional
        Expected payment sum_{a: a_i = r} pi(a) p_i(a) for obeying each design.
    tempting : ndarray of shape (n, d_0, ..., d_{n-1}), optional
        Payoffs of who disobeys; None is `payoffs`.

    Returns
    -------
    Certificate
        The deviation is (i, told, played), or (i, played) for "cce".
    """
    found: list[tuple[float, tuple[Any, ...]]] = []
    for i, (u, v) in enumerate(zip(payoffs, alluring(payoffs, tempting), strict=True)):
        P = player_rows(policy, i)
        obeying = (P * player_rows(u, i)).sum(axis=1)
        earned = P @ player_rows(v, i).T  # [told, played]
        if kind == "cce":
            gain = earned.sum(axis=0) - obeying.sum()
            found.append((float(gain.max()), (i, int(gain.argmax()))))
            continue
        gain = earned - obeying[:, None]
        if bonuses is not None:
            gain = gain - bonuses[i][:, None]
        np.fill_diagonal(gain, -np.inf)
        if len(gain) > 1:
            told, played = np.unravel_index(gain.argmax(), gain.shape)
            found.append((float(gain.max()), (i, int(told), int(played))))
    return judge(found, payoffs)


def certify_profile(
    payoffs: Array,
    profile: tuple[int, ...],
    payments: Array | None = None,
    tempting: Array | None = None,
) -> Certificate:
    """Check that a pure profile is a Nash equilibrium of the game with payments.

    Parameters
    ----------
    payoffs, payments : ndarray of shape (n, d_0, ..., d_{n-1})
        Payoffs, and what is paid on top (None: nothing).
    profile : tuple of int
        One design a stakeholder.
    tempting : ndarray of shape (n, d_0, ..., d_{n-1}), optional
        Payoffs of who disobeys; None is `payoffs`.

    Returns
    -------
    Certificate
        The deviation is (i, played).
    """
    more: Array | float = 0.0 if payments is None else payments
    kept, left = payoffs + more, alluring(payoffs, tempting) + more
    found: list[tuple[float, tuple[Any, ...]]] = []
    for i, (u, v) in enumerate(zip(kept, left, strict=True)):
        line = v[own_line(profile, i)]
        gain = np.delete(line, profile[i]) - u[profile]
        if gain.size:
            others = np.delete(np.arange(len(line)), profile[i])
            found.append((float(gain.max()), (i, int(others[gain.argmax()]))))
    return judge(found, payoffs)


def certify_dominance(
    payoffs: Array, profile: tuple[int, ...], payments: Array, tempting: Array | None = None
) -> Certificate:
    """Check that each stakeholder's design is weakly dominant in the game with payments."""
    found: list[tuple[float, tuple[Any, ...]]] = []
    kept, left = payoffs + payments, alluring(payoffs, tempting) + payments
    for i, (u, v) in enumerate(zip(kept, left, strict=True)):
        target, A = player_rows(u, i)[profile[i]], player_rows(v, i)
        gain = (np.delete(A, profile[i], axis=0) - target).max(axis=1)
        if gain.size:
            others = np.delete(np.arange(len(A)), profile[i])
            found.append((float(gain.max()), (i, int(others[gain.argmax()]))))
    return judge(found, payoffs)


def certify_delegation(
    payoffs: Array, policy: Array, responses: list[Array], tempting: Array | None = None
) -> Certificate:
    """Check that everyone delegates, if a lone deviator i meets the joint design responses[i].

    Parameters
    ----------
    payoffs : ndarray of shape (n, d_0, ..., d_{n-1})
        Payoffs.
    policy : ndarray of shape (d_0, ..., d_{n-1})
        What is played when all delegate.
    responses : list of ndarray
        For each stakeholder the others' joint distribution if he doesn't delegate.
    tempting : ndarray of shape (n, d_0, ..., d_{n-1}), optional
        Payoffs of who disobeys; None is `payoffs`.

    Returns
    -------
    Certificate
        The deviation is (i, played).
    """
    found: list[tuple[float, tuple[Any, ...]]] = []
    for i, (u, v) in enumerate(zip(payoffs, alluring(payoffs, tempting), strict=True)):
        gain = player_rows(v, i) @ responses[i].ravel() - float((u * policy).sum())
        found.append((float(gain.max()), (i, int(gain.argmax()))))
    return judge(found, payoffs)


def certify_strong(
    payoffs: Array,
    policy: Array,
    responses: dict[tuple[int, ...], Array],
    max_coalition: int,
    tempting: Array | None = None,
) -> Certificate:
    """Check that no coalition gains, all its members strictly, by leaving together.

    Parameters
    ----------
    payoffs : ndarray of shape (n, d_0, ..., d_{n-1})
        Payoffs.
    policy : ndarray of shape (d_0, ..., d_{n-1})
        What is played when all delegate.
    responses : dict of tuple of int to ndarray
        For each set of remaining delegators their joint distribution.
    max_coalition : int
        Largest coalition that is looked at.
    tempting : ndarray of shape (n, d_0, ..., d_{n-1}), optional
        Payoffs of who leaves; None is `payoffs`.

    Returns
    -------
    Certificate
        The violation is the gain of the coalition's member who gains least; the deviation is
        (coalition, joint design).
    """
    n, *shape = payoffs.shape
    value = payoffs.reshape(n, -1) @ policy.ravel()
    left = alluring(payoffs, tempting)
    found: list[tuple[float, tuple[Any, ...]]] = []
    for mask in product([False, True], repeat=n):
        T = tuple(i for i in range(n) if mask[i])
        if not 0 < len(T) <= max_coalition:
            continue
        rest = tuple(i for i in range(n) if not mask[i])
        played = np.stack([np.transpose(left[i], (*T, *rest)) for i in T])
        size = int(np.prod([shape[i] for i in T]))
        played = played.reshape(len(T), size, -1)
        chance = responses[rest].ravel() if rest else np.ones(1)
        least = (played @ chance - value[list(T), None]).min(axis=0)
        joint = np.unravel_index(int(least.argmax()), [shape[i] for i in T])
        found.append((float(least.max()), (T, tuple(int(a) for a in joint))))
    return judge(found, payoffs)
