r"""Ways to deploy an AI, and what each is worth, for an even prior.

With log-odds advice the worker decides by V = w_H x_H + w_A x_A > 0, and (V, x_A) is bivariate
normal; with binary advice by x_H > t(advice), or, believing in an overlap, by which stretch of
x_H it is in. A policy that asks whether |l_A| > c splits x_A at
c / 2a and its mirror image. So every policy's accuracy is a sum of orthants Phi2.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

from equipoise.blocks import iter_blocks

from .accuracy import checked, evidence_weights
from .binary import believing_part, thresholds
from .bivariate import orthant
from .checks import choice, within
from .fusion import fused_capability

__all__ = ["POLICIES", "best_threshold", "policy_accuracy"]

Array = NDArray[np.float64]

#: Name of each policy to what it does; the last three of the first six have a threshold on |l_A|.
POLICIES = {
    "human": "the human decides alone",
    "ai": "the AI decides alone",
    "assist": "the human decides and always sees the advice",
    "assist_confident": "the human decides and sees the advice only where |l_A| > c",
    "defer": "the AI decides where |l_A| > c, the human alone elsewhere",
    "defer_assist": "the AI decides where |l_A| > c, the human with advice elsewhere",
    "fusion": "a machine fuses the log-odds of both optimally",
}
WITH_THRESHOLD = ("assist_confident", "defer", "defer_assist")


def below(x: Array, low: Array, high: Array, rho: Array) -> Array:
    """P(X <= x, low < Y <= high) for correlation rho."""
    x, low, high, rho = np.broadcast_arrays(x, low, high, rho)
    return orthant(x, high, rho) - orthant(x, low, rho)


def assisted(
    h: Array, a: Array, rho: Array, trust: Array, belief: Array, binary: bool
) -> Callable[[Array, Array], Array]:
    """P(right with advice, low < x_A <= high | y = +1) as a function of the two ends."""
    if binary and np.any(belief):
        believed = np.where((h == 0) | (a == 0), 0.0, belief)

        def believing(low: Array, high: Array) -> Array:
            parts = np.broadcast_arrays(h, a, rho, trust, believed, low, high)
            shape, flat = parts[0].shape, [np.ascontiguousarray(v).ravel() for v in parts]
            value = np.empty(flat[0].size)
            for block in iter_blocks(value.size, bytes_per_item=401 * 8 * 12):
                value[block] = believing_part(*(v[block] for v in flat))
            return value.reshape(shape)

        return believing
    if binary:
        _, t_plus, t_minus = thresholds(h, a, trust, np.zeros(()))

        def right(low: Array, high: Array) -> Array:
            minus = below(h - t_minus, np.minimum(low, 0) - a, np.minimum(high, 0) - a, -rho)
            plus = below(h - t_plus, np.maximum(low, 0) - a, np.maximum(high, 0) - a, -rho)
            return minus + plus

        return right
    w_h, w_a = evidence_weights(h, a, trust, np.where((h == 0) | (a == 0), 0.0, belief))
    variance = (w_h + w_a) ** 2 - 2 * (1 - rho) * w_h * w_a
    sd = np.sqrt(np.maximum(variance, 0.0))
    z = np.where(sd == 0, 0.0, (w_h * h + w_a * a) / np.where(sd == 0, 1.0, sd))
    r = np.where(sd == 0, 0.0, (w_h * rho + w_a) / np.where(sd == 0, 1.0, sd))
    r = np.clip(r, -1.0, 1.0)
    return lambda low, high: below(z, low - a, high - a, -r)


def policy_accuracy(
    policy: str,
    h: float | Array,
    a: float | Array,
    overlap: float | Array,
    *,
    threshold: float | Array = 0.0,
    trust: float | Array = 1.0,
    overlap_belief: float | Array = 0.0,
    recommendation: str = "probabilistic",
) -> float | Array:
    """Accuracy of one way to deploy an AI, for an even prior.

    Parameters
    ----------
    policy : str
        "human", "ai", "assist", "assist_confident" (the advice is shown only where the AI's
        log-odds exceed the threshold in size), "defer" (the AI decides there, the human elsewhere),
        "defer_assist" (the AI decides there, the human with advice elsewhere), or "fusion".
    h, a, overlap : float or ndarray
        As in `team_accuracy`, the overlap as a correlation.
    threshold : float or ndarray, default=0.0
        c in |l_A| > c, at least 0; read by the policies that have one.
    trust, overlap_belief, recommendation
        As in `team_accuracy`.

    Returns
    -------
    float or ndarray
        P(the decision is right).

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    Examples
    --------
    >>> from equipoise.games import policy_accuracy
    >>> policy_accuracy("assist_confident", 0.6, 0.4, 0.5, threshold=[0.0, 1.0, 2.0]).round(6)
    array([0.724573, 0.726205, 0.725842])
    """
    choice(policy, "policy", tuple(POLICIES))
    binary = choice(recommendation, "recommendation", ("probabilistic", "binary")) == "binary"
    H, A, rho, tau, belief, _ = checked(h, a, overlap, trust, overlap_belief, "correlation", 0.5)
    c = within(threshold, "threshold", 0.0)
    H, A, rho, tau, belief, c = np.broadcast_arrays(H, A, rho, tau, belief, c)
    everything = np.full(A.shape, np.inf)
    with np.errstate(divide="ignore"):
        cut = np.where(c == 0, 0.0, c / (2 * A))  # on x_A; a = 0 is never confident
    seen = assisted(H, A, rho, tau, belief, binary)
    if policy == "human":
        value = ndtr(H)
    elif policy == "ai":
        value = ndtr(A)
    elif policy == "assist":
        value = seen(-everything, everything)
    elif policy == "fusion":
        value = ndtr(fused_capability(H, A, rho))
    else:
        alone = below(H, -cut - A, cut - A, -rho)
        ai_confident = ndtr(A - cut)
        if policy == "assist_confident":
            value = seen(-everything, -cut) + alone + seen(cut, everything)
        elif policy == "defer":
            value = ai_confident + alone
        else:
            value = ai_confident + seen(-cut, cut)
    return value[()]


def confident_share(a: Array, threshold: Array) -> Array:
    """P(|l_A| > c)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        cut = np.where(threshold == 0, 0.0, threshold / (2 * np.asarray(a)))
    return ndtr(a - cut) + ndtr(-a - cut)


def best_threshold(utility: Callable[[Array], Array], a: float) -> float:
    """The c that maximises a utility: best of a grid in x_A, then a bounded search around it."""
    grid = 2 * a * np.linspace(0.0, a + 6.0, 129)
    best = int(np.argmax(utility(grid)))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    if low == high:
        return float(grid[best])
    found = minimize_scalar(
        lambda c: -float(utility(np.array(c))),
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-8},
    )
    return float(found.x if -found.fun > utility(grid[best]) else grid[best])


def policy_cost(policy: str, a: Array, threshold: Array, costs: Mapping[str, float]) -> Array:
    """Cost of a decision: of the human's time and of the AI's call, where each is used."""
    human, ai = costs.get("human", 0.0), costs.get("ai", 0.0)
    confident = confident_share(a, threshold) if policy in WITH_THRESHOLD else np.zeros(np.shape(a))
    if policy == "human":
        return human + 0.0 * confident
    if policy == "ai":
        return ai + 0.0 * confident
    if policy in ("defer", "defer_assist"):
        return ai + human * (1 - confident)
    return human + ai + 0.0 * confident
