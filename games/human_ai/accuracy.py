r"""Accuracy of a human, an AI and the two together, in closed form.

The truth y is +1 or -1 with P(y = +1) = prior, l0 = logit(prior). The human sees x_H = y h + e_H
and the AI x_A = y a + e_A; the standard normal errors have correlation rho (the overlap). As
log-odds these are l_H = 2 h x_H and l_A = 2 a x_A. A worker who believes in an overlap rho_hat and
trusts the AI by the factor tau decides by the sign of

    L = l0 + [ (1 - rho_hat r) l_H + tau (1 - rho_hat / r) l_A ] / (1 - rho_hat^2),   r = a / h,

when the AI shows its log-odds, and by L = l0 + l_H + tau LLR(advice | x_H; rho_hat) when it shows
only the side it takes. L is normal given y, so each accuracy is a value of Phi or Phi2. A side
without capability shows nothing: there is nothing to overlap with, and the other decides alone.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from equipoise.blocks import iter_blocks

from .binary import believing_team, binary_team
from .checks import choice, within
from .choices import option_accuracy, option_cells

__all__ = ["ai_accuracy", "human_accuracy", "team_accuracy"]

Array = NDArray[np.float64]

#: Accuracies are exact to about 1e-15: smaller differences have no sign.
NOISE = 1e-14


def odds_of(prior: ArrayLike) -> Array:
    """Log-odds of the prior."""
    pi = within(prior, "prior", 0.0, 1.0, open_ends=True)
    return np.log(pi) - np.log1p(-pi)


def correlation(h: Array, a: Array, overlap: ArrayLike, kind: str, name: str = "overlap") -> Array:
    """The correlation that an overlap means: itself, or min(r, 1/r) times the share of cues."""
    if choice(kind, "overlap_kind", ("correlation", "cue")) == "correlation":
        return within(overlap, name, -1.0, 1.0, open_ends=True)
    share = within(overlap, name, 0.0, 1.0)
    small, large = np.minimum(h, a), np.maximum(h, a)
    return share * np.where(small == 0, 0.0, small / np.where(large == 0, 1.0, large))


def single_accuracy(d: Array, l0: Array) -> Array:
    """pi Phi(d + l0 / 2d) + (1 - pi) Phi(d - l0 / 2d)."""
    pi = 1 / (1 + np.exp(-l0))
    certain = np.where(l0 == 0, 0.0, np.where(l0 > 0, np.inf, -np.inf))
    shift = np.where(d == 0, certain, l0 / np.where(d == 0, 1.0, 2 * d))
    return pi * ndtr(d + shift) + (1 - pi) * ndtr(d - shift)


def evidence_weights(h: Array, a: Array, trust: Array, belief: Array) -> tuple[Array, Array]:
    """Weights of x_H and x_A in L / 2."""
    one = belief == 1  # believes both to be one signal (h = a): both weights tend to h / 2
    scale = np.where(one, 1.0, (1 - belief) * (1 + belief))
    w_h = np.where(one, h / 2, (h - belief * a) / scale)
    w_a = np.where(one, a / 2, (a - belief * h) / scale)
    return w_h, trust * w_a


def team_scores(h: Array, a: Array, rho: Array, trust: Array, belief: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of L - l0 given y = +1, the AI showing its log-odds."""
    w_h, w_a = evidence_weights(h, a, trust, belief)
    variance = (w_h + w_a) ** 2 - 2 * (1 - rho) * w_h * w_a
    return 2 * (w_h * h + w_a * a), 2 * np.sqrt(np.maximum(variance, 0.0))


def probabilistic_team(
    h: Array, a: Array, rho: Array, trust: Array, belief: Array, l0: Array
) -> Array:
    """pi Phi((m + l0) / sd) + (1 - pi) Phi((m - l0) / sd); without evidence the prior decides."""
    mean, deviation = team_scores(h, a, rho, trust, belief)
    sd = np.where(deviation == 0, 1.0, deviation)
    if not np.any(l0):
        return np.where(deviation == 0, 0.5, ndtr(mean / sd))
    pi = 1 / (1 + np.exp(-l0))
    team = pi * ndtr((mean + l0) / sd) + (1 - pi) * ndtr((mean - l0) / sd)
    return np.where(deviation == 0, np.maximum(pi, 1 - pi), team)


def team_of(
    h: Array, a: Array, rho: Array, trust: Array, belief: Array, l0: Array, recommendation: str
) -> Array:
    """Team accuracy for checked arrays that broadcast, in blocks that fit in memory."""
    arrays = (h, a, rho, trust, np.where((h == 0) | (a == 0), 0.0, belief), l0)
    shape = np.broadcast_shapes(*(v.shape for v in arrays))
    team = np.empty(shape or (1,))
    # Arrays are split, not broadcast: what only depends on one axis is computed once.
    full = [v.reshape((1,) * (team.ndim - v.ndim) + v.shape) for v in arrays]
    for block in iter_blocks(len(team), bytes_per_item=200 * (team.size / len(team))):
        parts = [v if len(v) == 1 else v[block] for v in full]
        if recommendation == "probabilistic":
            team[block] = probabilistic_team(*parts)
        else:
            H, A, R, T, _, L = parts
            team[block] = binary_team(H, A, R, T, L)
    if recommendation == "binary" and np.any(full[4]):
        flat = [np.broadcast_to(v, team.shape).ravel() for v in full]
        where = np.flatnonzero(flat[4])
        values = team.reshape(-1)
        for block in iter_blocks(len(where), bytes_per_item=401 * 8 * 12):
            H, A, R, T, B, L = (v[where[block]] for v in flat)
            # Believing in one and the same signal is a limit: its log-odds aren't finite.
            values[where[block]] = believing_team(H, A, R, T, np.minimum(B, 1 - 1e-12), L)
    return team.reshape(shape)


def team_and_margins(
    h: Array, a: Array, rho: Array, trust: Array, belief: Array, l0: Array, recommendation: str
) -> tuple[Array, Array, Array]:
    """T, T - H and T - A for checked arrays; exact to about 1e-16."""
    team = team_of(h, a, rho, trust, belief, l0, recommendation)
    return team, team - single_accuracy(h, l0), team - single_accuracy(a, l0)


def checked(
    h: ArrayLike,
    a: ArrayLike,
    overlap: ArrayLike,
    trust: ArrayLike,
    overlap_belief: ArrayLike,
    overlap_kind: str,
    prior: ArrayLike,
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """h, a, rho, tau, rho_hat and l0, checked; they broadcast."""
    h, a = within(h, "h", 0.0), within(a, "a", 0.0)
    rho = correlation(h, a, overlap, overlap_kind)
    belief = correlation(h, a, overlap_belief, overlap_kind, "overlap_belief")
    return h, a, rho, within(trust, "trust", 0.0), belief, odds_of(prior)


def checked_options(
    h: ArrayLike,
    a: ArrayLike,
    overlap: ArrayLike,
    trust: ArrayLike,
    overlap_belief: ArrayLike,
    recommendation: str,
    overlap_kind: str,
    prior: ArrayLike,
    n_choices: int,
) -> tuple[Array, Array, Array, Array]:
    """d_H, d_A, rho and tau for K > 2, with what that case doesn't have refused."""
    refusals = (
        (recommendation != "binary", "recommendation", recommendation, "'binary'"),
        (overlap_kind != "correlation", "overlap_kind", overlap_kind, "'correlation'"),
        (np.any(np.asarray(overlap_belief) != 0), "overlap_belief", overlap_belief, "0"),
        (np.any(np.asarray(prior) != 0.5), "prior", prior, "0.5"),
    )
    for refused, name, got, allowed in refusals:
        if refused:
            raise ValueError(f"{name}: got {got!r}; allowed with n_choices={n_choices}: {allowed}")
    d, d_ai = within(h, "h", 0.0), within(a, "a", 0.0)
    rho = correlation(d, d_ai, overlap, "correlation")
    d, d_ai, rho, tau = np.broadcast_arrays(d, d_ai, rho, within(trust, "trust", 0.0))
    return d, d_ai, rho, tau


def number_of_choices(n_choices: int) -> int:
    """K as an integer of at least two."""
    if not isinstance(n_choices, int | np.integer) or n_choices < 2:
        raise ValueError(f"n_choices: got {n_choices!r}; allowed: integers of at least 2")
    return int(n_choices)


def human_accuracy(h: ArrayLike, prior: ArrayLike = 0.5, n_choices: int = 2) -> float | Array:
    r"""Accuracy of the human alone.

    Parameters
    ----------
    h : array-like
        Capability, at least 0: half of d' for two alternatives, d for more.
    prior : array-like, default=0.5
        P(y = +1), in (0, 1); only 0.5 with more than two alternatives.
    n_choices : int, default=2
        Number K of alternatives.

    Returns
    -------
    float or ndarray
        :math:`\pi \Phi(h + l_0 / 2h) + (1 - \pi) \Phi(h - l_0 / 2h)`; :math:`\Phi(h)` for an even
        prior.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    Examples
    --------
    >>> from equipoise.games import human_accuracy
    >>> human_accuracy([0.0, 0.5], prior=0.7).round(6)
    array([0.7     , 0.746996])
    >>> print(round(human_accuracy(0.899324501553, n_choices=4), 9))
    0.52
    """
    return accuracy_alone(h, "h", prior, n_choices)


def ai_accuracy(a: ArrayLike, prior: ArrayLike = 0.5, n_choices: int = 2) -> float | Array:
    """Accuracy of the AI alone: the human's formula with the AI's capability.

    Parameters
    ----------
    a : array-like
        Capability, at least 0.
    prior : array-like, default=0.5
        P(y = +1), in (0, 1); only 0.5 with more than two alternatives.
    n_choices : int, default=2
        Number K of alternatives.

    Returns
    -------
    float or ndarray
        The accuracy.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    Examples
    --------
    >>> from equipoise.games import ai_accuracy
    >>> print(round(ai_accuracy(0.8), 6))
    0.788145
    """
    return accuracy_alone(a, "a", prior, n_choices)


def accuracy_alone(d: ArrayLike, name: str, prior: ArrayLike, n_choices: int) -> float | Array:
    """What both sides alone have in common."""
    capability = within(d, name, 0.0)
    if number_of_choices(n_choices) == 2:
        return single_accuracy(*np.broadcast_arrays(capability, odds_of(prior)))[()]
    if np.any(np.asarray(prior) != 0.5):
        raise ValueError(f"prior: got {prior!r}; allowed with n_choices={n_choices}: 0.5")
    return option_accuracy(capability, n_choices)[()]


def team_accuracy(
    h: ArrayLike,
    a: ArrayLike,
    overlap: ArrayLike,
    *,
    trust: ArrayLike = 1.0,
    overlap_belief: ArrayLike = 0.0,
    recommendation: str = "probabilistic",
    overlap_kind: str = "correlation",
    prior: ArrayLike = 0.5,
    n_choices: int = 2,
) -> float | Array:
    r"""Accuracy of a human who decides with the AI's advice.

    Parameters
    ----------
    h, a : array-like
        Capabilities of human and AI, at least 0. Numeric arguments broadcast.
    overlap : array-like
        Correlation of the errors in (-1, 1), or with ``overlap_kind="cue"`` the share of the
        weaker side's information that the other has too, in [0, 1].
    trust : array-like, default=1.0
        Factor tau >= 0 on the AI's log-odds: 1 is calibrated, 0 ignores.
    overlap_belief : array-like, default=0.0
        The overlap that the worker believes in, of the same kind; 0 is correlation neglect.
    recommendation : {"probabilistic", "binary"}, default="probabilistic"
        Whether the AI shows its log-odds or only the side it takes.
    overlap_kind : {"correlation", "cue"}, default="correlation"
        What `overlap` and `overlap_belief` mean.
    prior : array-like, default=0.5
        P(y = +1), in (0, 1); human, AI and worker know it.
    n_choices : int, default=2
        Number K of alternatives. With more than two, `h` and `a` are the d of each side,
        `overlap` is the correlation of the noise of each option, and only binary advice (one
        recommended option) without overlap belief exists; a non-zero overlap is integrated by
        quasi-Monte Carlo, to about 1e-4.

    Returns
    -------
    float or ndarray
        P(the decision is right). For log-odds, an even prior and neglect it is
        :math:`\Phi\left((h^2 + \tau a^2) / \sqrt{h^2 + \tau^2 a^2 + 2 \rho \tau h a}\right)`.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    Notes
    -----
    A side without capability shows nothing, so overlap and belief mean nothing there.

    Unequal costs of the two errors are a prior: with costs c1 of missing y = +1 and c0 of a false
    alarm, the expected cost is :math:`(\pi c_1 + (1 - \pi) c_0) (1 - T)`, T at the prior
    :math:`\pi c_1 / (\pi c_1 + (1 - \pi) c_0)`, where all sides know the costs.

    References
    ----------
    .. [1] S. Amin, A. Bennouna, D. Huttenlocher, D. Kong, L. Lyu, A. Ozdaglar (2026). "A Bayesian
       Framework for Human-AI Collaboration: Complementarity and Correlation Neglect".
       arXiv:2602.14331.

    Examples
    --------
    >>> from equipoise.games import team_accuracy
    >>> print(round(team_accuracy(0.5, 0.8, 0.3), 8))
    0.7987716
    >>> print(round(team_accuracy(0.5, 0.8, 0.3, recommendation="binary"), 8))
    0.79036535
    >>> team_accuracy(0.5, [0.3, 0.8], 0.8, trust=[[0.25], [1.0]]).round(4)
    array([[0.6862, 0.7295],
           [0.6724, 0.7641]])
    """
    choice(recommendation, "recommendation", ("probabilistic", "binary"))
    if number_of_choices(n_choices) > 2:
        arrays = checked_options(
            h, a, overlap, trust, overlap_belief, recommendation, overlap_kind, prior, n_choices
        )
        return np.add(*option_cells(*arrays, n_choices))[()]
    cells = checked(h, a, overlap, trust, overlap_belief, overlap_kind, prior)
    return team_of(*cells, recommendation)[()]
