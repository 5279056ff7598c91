r"""K alternatives: the evidence for option j is d 1[j = y] + e_j, with independent e_j ~ N(0, 1).

A side alone picks its largest evidence, H = int phi(x - d) Phi(x)^(K-1) dx. The AI recommends one
option and is right with probability p_A, its errors being uniform; its advice is worth
l = log(p_A (K - 1) / (1 - p_A)) of log-odds, and the worker picks the largest
d x_j + tau l 1[j = advice], x_j being the evidence: the advice moves it by k = tau l / d. K = 2 is
the binary case with h = d / sqrt(2).

Evidence of human and AI for the same option may be correlated ("overlap"). Then both noises for the
correct option are integrated exactly, as an orthant, and the 2K - 2 for the wrong ones by 2^14
scrambled Sobol points, the same for every call, to about 1e-4.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr, ndtri
from scipy.stats.qmc import Sobol

from .bivariate import orthant

__all__ = ["capability_of", "option_accuracy", "option_cells"]

Array = NDArray[np.float64]

NODES, WEIGHTS = np.polynomial.legendre.leggauss(120)
#: Standard normal deviates and their quadrature weights: beyond 9 nothing is left.
DEVIATES = 9.0 * NODES
DENSITY = 9.0 * WEIGHTS * np.exp(-0.5 * DEVIATES**2) / np.sqrt(2 * np.pi)
LOG2_POINTS = 14


def option_accuracy(d: Array, n_choices: int) -> Array:
    """P(the correct one of K options has the largest evidence)."""
    return ndtr(d[..., None] + DEVIATES) ** (n_choices - 1) @ DENSITY


def option_error(d: Array, n_choices: int) -> Array:
    """One minus that, without cancellation near one."""
    others = -np.expm1((n_choices - 1) * log_ndtr(d[..., None] + DEVIATES))
    return others @ DENSITY


def capability_of(accuracy: Array, n_choices: int) -> Array:
    """The d at which `option_accuracy` has a value in [1/K, 1); bisected to the last bit."""
    low, high = np.zeros(accuracy.shape), np.full(accuracy.shape, 20.0)
    for _ in range(70):
        middle = (low + high) / 2
        below = option_accuracy(middle, n_choices) < accuracy
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.where(accuracy <= 1 / n_choices, 0.0, (low + high) / 2)


def advice_shift(d: Array, d_ai: Array, trust: Array, n_choices: int) -> Array:
    """k = tau l / d: what the advice is worth on the scale of the worker's evidence."""
    right, wrong = option_accuracy(d_ai, n_choices), option_error(d_ai, n_choices)
    with np.errstate(divide="ignore"):
        odds = np.log(right) + np.log(n_choices - 1) - np.log(wrong)
    odds = np.where(d_ai == 0, 0.0, odds)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((trust == 0) | (odds == 0), 0.0, trust * odds / d)


def option_cells(
    d: Array, d_ai: Array, rho: Array, trust: Array, n_choices: int
) -> tuple[Array, Array]:
    """P(team right, AI right) and P(team right, AI wrong) for broadcast arrays."""
    k = np.minimum(advice_shift(d, d_ai, trust, n_choices), 60.0)  # more decides nothing more
    p_ai = option_accuracy(d_ai, n_choices)
    x = d[..., None] + DEVIATES  # evidence for the correct option
    K = n_choices
    after_right = ndtr(x + k[..., None]) ** (K - 1) @ DENSITY
    after_wrong = (ndtr(x - k[..., None]) * ndtr(x) ** (K - 2)) @ DENSITY
    right = np.array(p_ai * after_right)
    wrong = np.array(option_error(d_ai, K) * after_wrong)
    for index in np.ndindex(rho.shape) if np.any(rho) else ():
        if rho[index]:
            own, ai, r, shift = (float(v[index]) for v in (d, d_ai, rho, k))
            right[index], wrong[index] = correlated_cells(own, ai, r, shift, n_choices)
    return right, wrong


@lru_cache(maxsize=8)
def normal_points(n_wrong: int) -> tuple[Array, Array]:
    """Sobol normals (2^14, n_wrong) for the noise of the wrong options: the AI's, and another."""
    uniform = Sobol(2 * n_wrong, scramble=True, rng=20_260_214).random_base2(LOG2_POINTS)
    normal = ndtri(np.clip(uniform, 1e-12, 1 - 1e-12))
    return normal[:, :n_wrong], normal[:, n_wrong:]


def correlated_cells(
    d: float, d_ai: float, rho: float, k: float, n_choices: int
) -> tuple[float, float]:
    """The two cells with correlated noise: an orthant for each point of the others' noise."""
    ai, other = normal_points(n_choices - 1)
    human = rho * ai + np.sqrt((1 - rho) * (1 + rho)) * other
    rival = ai.max(axis=1) - d_ai  # the AI is right where its noise for the right option is above
    right = orthant(-rival, d + k - human.max(axis=1), np.array(rho))
    human[np.arange(len(ai)), ai.argmax(axis=1)] += k  # else it recommends its best wrong option
    wrong = orthant(rival, d - human.max(axis=1), np.array(-rho))
    return float(right.mean()), float(wrong.mean())
