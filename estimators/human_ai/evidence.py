r"""Evidence as a worker who believes in an overlap rho_hat weighs it, and its slopes in rho_hat.

Log-odds advice: E_H = (1 - rho_hat r) l_H / (1 - rho_hat^2), E_A = (1 - rho_hat / r) l_A /
(1 - rho_hat^2). Binary advice: E_H = l_H and E_A = LLR(advice | x_H; rho_hat), the log-likelihood
ratio of the advice in the light of x_H = l_H / 2h,

    log Phi(s (a + rho_hat (x_H - h)) / c) - log Phi(s (-a + rho_hat (x_H + h)) / c),

s = +1 or -1 being the side and c = sqrt(1 - rho_hat^2). Slopes are taken in atanh rho_hat.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

__all__ = ["binary_evidence", "log_odds_evidence"]

Array = NDArray[np.float64]

NOTHING = np.zeros(0)


def log_odds_evidence(
    lh: Array, la: Array, r: Array, belief: float, slopes: bool
) -> tuple[Array, Array, Array, Array]:
    """E_H, E_A and their slopes (empty unless `slopes`)."""
    if belief == 0:
        return (lh, la, -r * lh, -la / r) if slopes else (lh, la, NOTHING, NOTHING)
    scale = (1 - belief) * (1 + belief)
    human, ai = (1 - belief * r) * lh / scale, (1 - belief / r) * la / scale
    if not slopes:
        return human, ai, NOTHING, NOTHING
    return human, ai, -r * lh + 2 * belief * human, -la / r + 2 * belief * ai


def mills(u: Array) -> Array:
    """phi / Phi, without underflow."""
    return np.exp(-0.5 * u * u - 0.5 * np.log(2 * np.pi) - log_ndtr(u))


def binary_evidence(
    lh: Array, side: Array, h: float, a: Array, belief: float, slopes: bool
) -> tuple[Array, Array, Array, Array]:
    """E_H, E_A and their slopes (empty unless `slopes`); `side` 0 is no advice."""
    c = np.sqrt((1 - belief) * (1 + belief))
    x = lh / (2 * h)
    plus, minus = a + belief * (x - h), -a + belief * (x + h)
    u, v = side * plus / c, side * minus / c
    ai = np.where(side == 0, 0.0, log_ndtr(u) - log_ndtr(v))
    if not slopes:
        return lh, ai, NOTHING, NOTHING
    # d/d rho_hat of (a + rho_hat t) / c is t / c + rho_hat (a + rho_hat t) / c^3; d rho_hat is c^2.
    rise = side * ((x - h) * c + belief * plus / c)
    fall = side * ((x + h) * c + belief * minus / c)
    lean = np.where(side == 0, 0.0, mills(u) * rise - mills(v) * fall)
    return lh, ai, np.zeros_like(lh), lean
