"""Checking what a mediator promises, from payoffs and policy alone, in plain NumPy.

Nothing here sees a solver's answer but the policy itself. A violation is what a stakeholder gains
by disobeying; a certificate is in order while the largest is at most the tolerance, 1e-6 of the
range of payoffs.
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


def certify_obedience(
    payoffs: Array, policy: Array, kind: str = "ce", bonuses: list[Array] | None = None
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

    Returns
    -------
    Certificate
        The deviation is (i, told, played), or (i, played) for "cce".
    """
    found: list[tuple[float, tuple[Any, ...]]] = []
    for i, u in enumerate(payoffs):
        A, P = player_rows(u, i), player_rows(policy, i)
        earned = P @ A.T  # [told, played]
        if kind == "cce":
            gain = earned.sum(axis=0) - np.trace(earned)
            found.append((float(gain.max()), (i, int(gain.argmax()))))
            continue
        gain = earned - np.diag(earned)[:, None]
        if bonuses is not None:
            gain = gain - bonuses[i][:, None]
        np.fill_diagonal(gain, -np.inf)
        if len(gain) > 1:
            told, played = np.unravel_index(gain.argmax(), gain.shape)
            found.append((float(gain.max()), (i, int(told), int(played))))
    return judge(found, payoffs)


def certify_profile(
    payoffs: Array, profile: tuple[int, ...], payments: Array | None = None
) -> Certificate:
    """Check that a pure profile is a Nash equilibrium of the game with payments.

    Parameters
    ----------
    payoffs, payments : ndarray of shape (n, d_0, ..., d_{n-1})
        Payoffs, and what is paid on top (None: nothing).
    profile : tuple of int
        One design a stakeholder.

    Returns
    -------
    Certificate
        The deviation is (i, played).
    """
    paid = payoffs if payments is None else payoffs + payments
    found: list[tuple[float, tuple[Any, ...]]] = []
    for i, u in enumerate(paid):
        line = u[own_line(profile, i)]
        gain = np.delete(line, profile[i]) - line[profile[i]]
        if gain.size:
            others = np.delete(np.arange(len(line)), profile[i])
            found.append((float(gain.max()), (i, int(others[gain.argmax()]))))
    return judge(found, payoffs)


def certify_dominance(payoffs: Array, profile: tuple[int, ...], payments: Array) -> Certificate:
    """Check that each stakeholder's design is weakly dominant in the game with payments."""
    found: list[tuple[float, tuple[Any, ...]]] = []
    for i, u in enumerate(payoffs + payments):
        A = player_rows(u, i)
        gain = (np.delete(A, profile[i], axis=0) - A[profile[i]]).max(axis=1)
        if gain.size:
            others = np.delete(np.arange(len(A)), profile[i])
            found.append((float(gain.max()), (i, int(others[gain.argmax()]))))
    return judge(found, payoffs)


def certify_delegation(payoffs: Array, policy: Array, responses: list[Array]) -> Certificate:
    """Check that everyone delegates, if a lone deviator i meets the joint design responses[i].

    Parameters
    ----------
    payoffs : ndarray of shape (n, d_0, ..., d_{n-1})
        Payoffs.
    policy : ndarray of shape (d_0, ..., d_{n-1})
        What is played when all delegate.
    responses : list of ndarray
        For each stakeholder the others' joint distribution if he doesn't delegate.

    Returns
    -------
    Certificate
        The deviation is (i, played).
    """
    found: list[tuple[float, tuple[Any, ...]]] = []
    for i, u in enumerate(payoffs):
        gain = player_rows(u, i) @ responses[i].ravel() - float((u * policy).sum())
        found.append((float(gain.max()), (i, int(gain.argmax()))))
    return judge(found, payoffs)


def certify_strong(
    payoffs: Array, policy: Array, responses: dict[tuple[int, ...], Array], max_coalition: int
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

    Returns
    -------
    Certificate
        The violation is the gain of the coalition's member who gains least; the deviation is
        (coalition, joint design).
    """
    n, *shape = payoffs.shape
    value = payoffs.reshape(n, -1) @ policy.ravel()
    found: list[tuple[float, tuple[Any, ...]]] = []
    for mask in product([False, True], repeat=n):
        T = tuple(i for i in range(n) if mask[i])
        if not 0 < len(T) <= max_coalition:
            continue
        rest = tuple(i for i in range(n) if not mask[i])
        played = np.stack([np.transpose(payoffs[i], (*T, *rest)) for i in T])
        size = int(np.prod([shape[i] for i in T]))
        played = played.reshape(len(T), size, -1)
        chance = responses[rest].ravel() if rest else np.ones(1)
        least = (played @ chance - value[list(T), None]).min(axis=0)
        joint = np.unravel_index(int(least.argmax()), [shape[i] for i in T])
        found.append((float(least.max()), (T, tuple(int(a) for a in joint))))
    return judge(found, payoffs)
