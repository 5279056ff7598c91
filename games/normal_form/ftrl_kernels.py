"""Self-play of FTRL+ as compiled loops over rounds, for games small enough to live in the cache.

The arrays are those of `ftrl_state.SelfPlay`; strategies and payoff vectors of all players are
concatenated. The rule is that of `rule`, step by step.
"""

import numpy as np
from numba import njit

from .contraction import contract_payoffs_flat

__all__ = ["choose_flat", "play_rounds"]


@njit(cache=True, nogil=True)
def choose_flat(code: int, exponent: float, slope: float, y: np.ndarray, x: np.ndarray) -> None:
    """Write Q(y) to `x`; code, exponent and slope are those of `Regularizer`."""
    d = y.shape[0]
    top = y[0]
    for a in range(1, d):
        top = max(top, y[a])
    total = 0.0
    if code == 0:
        for a in range(d):
            x[a] = np.exp(y[a] - top)
            total += x[a]
    elif code == 1:
        # The threshold grows as actions below it are dropped, and stops after at most d passes.
        count = -1
        threshold = -np.inf
        while True:
            total = 0.0
            kept = 0
            for a in range(d):
                if y[a] - top > threshold:
                    total += y[a] - top
                    kept += 1
            threshold = (total - 1.0) / kept
            if kept == count:
                break
            count = kept
        for a in range(d):
            x[a] = max(y[a] - top - threshold, 0.0)
        return
    else:
        t = 1.0
        for _ in range(200):
            total = 0.0
            derivative = 0.0
            for a in range(d):
                base = t + slope * (top - y[a])
                if exponent == 1.0:
                    p = 1.0 / base
                elif exponent == 2.0:
                    p = 1.0 / (base * base)
                else:
                    p = base**-exponent
                x[a] = p
                total += p
                derivative += p / base
            step = (total - 1.0) / (exponent * derivative)
            if step <= 4e-16 * t:
                break
            t += step
    for a in range(d):
        x[a] /= total


@njit(cache=True, nogil=True)
def play_rounds(
    payoffs: np.ndarray,
    n_actions: np.ndarray,
    code: int,
    exponent: float,
    slope: float,
    schedule: int,
    tau: float,
    lam: float,
    y0: np.ndarray,
    Y: np.ndarray,
    last: np.ndarray,
    x: np.ndarray,
    total: np.ndarray,
    S: np.ndarray,
    largest: np.ndarray,
    spread: np.ndarray,
    constant_step: np.ndarray,
    eta: np.ndarray,
    movement: np.ndarray,
    gap: np.ndarray,
    best_gap: np.ndarray,
    rounds: np.ndarray,
    stopped: np.ndarray,
    until: int,
    tol: float,
    check_every: int,
) -> None:
    """Play each game of a batch up to a round, in place; a game whose gap is at most `tol` stops at
    a check.

    Parameters
    ----------
    payoffs : ndarray of shape (B, n, M)
        The games.
    n_actions : ndarray of shape (n,), int64
        The d_i, with sum s.
    code, exponent, slope : int, float, float
        The regulariser.
    schedule, tau : int, float
        The step size.
    lam : float
        Share of the mirror-prox prediction; negative predicts zero.
    y0, Y, last, x, total : ndarray of shape (B, s)
        Start's scores, regret vectors, last payoffs, played strategies, their sums.
    S, largest, spread, constant_step, eta : ndarray of shape (B, n)
        As in `rule.PlayerState`, and the last step sizes.
    movement, gap, best_gap : ndarray of shape (B,)
        Largest change of a probability in the last round; NashConv at the played strategies, now
        and least.
    rounds : ndarray of shape (B,), int64
        Rounds played so far.
    stopped : ndarray of shape (B,), bool
        Games that don't play on.
    until : int
        Round to stop after.
    tol : float
        Gap that ends a game; 0 never does.
    check_every : int
        Rounds between two checks; the first round is one too.

    Returns
    -------
    None
        The arrays hold the state after the last round.
    """
    n_games, n, M = payoffs.shape
    s = y0.shape[1]
    left, right, sums = np.empty(M), np.empty(M), np.empty(M)
    scores, base, queried, predicted, g, before = (
        np.empty(s),
        np.empty(s),
        np.empty(s),
        np.zeros(s),
        np.empty(s),
        np.empty(s),
    )
    for k in range(n_games):
        if stopped[k]:
            continue
        u = payoffs[k]
        while rounds[k] < until:
            rounds[k] += 1
            t = rounds[k]
            start = 0
            for i in range(n):
                if schedule == 0:
                    eta[k, i] = constant_step[k, i]
                elif schedule == 1:
                    eta[k, i] = 1.0 / np.sqrt(tau + S[k, i])
                else:
                    eta[k, i] = 1.0 / np.sqrt(S[k, i]) if S[k, i] > 0.0 else 0.0
            if lam > 0.0:
                for i in range(n):
                    stop = start + n_actions[i]
                    for a in range(start, stop):
                        scores[a] = y0[k, a] + eta[k, i] * Y[k, a]
                    choose_flat(code, exponent, slope, scores[start:stop], base[start:stop])
                    start = stop
                contract_payoffs_flat(u, base, n_actions, left, right, sums, queried)
                for a in range(s):
                    predicted[a] = lam * queried[a] + (1.0 - lam) * last[k, a]
            elif lam == 0.0:
                predicted[:] = last[k]
            before[:] = x[k]
            start = 0
            for i in range(n):
                stop = start + n_actions[i]
                for a in range(start, stop):
                    scores[a] = y0[k, a] + eta[k, i] * (Y[k, a] + predicted[a])
                choose_flat(code, exponent, slope, scores[start:stop], x[k, start:stop])
                start = stop
            contract_payoffs_flat(u, x[k], n_actions, left, right, sums, g)
            nash_conv = 0.0
            start = 0
            for i in range(n):
                stop = start + n_actions[i]
                mean = 0.0
                highest = g[start]
                lowest = g[start]
                error_high = g[start] - predicted[start]
                error_low = error_high
                error_sum = 0.0
                for a in range(start, stop):
                    mean += g[a] * x[k, a]
                    highest = max(highest, g[a])
                    lowest = min(lowest, g[a])
                    error = g[a] - predicted[a]
                    error_high = max(error_high, error)
                    error_low = min(error_low, error)
                    error_sum += error
                if code == 1:
                    delta = 0.0
                    for a in range(start, stop):
                        delta += (g[a] - predicted[a] - error_sum / n_actions[i]) ** 2
                else:
                    delta = (0.5 * (error_high - error_low)) ** 2
                S[k, i] += delta
                largest[k, i] = max(largest[k, i], delta)
                spread[k, i] += highest - lowest
                nash_conv += max(highest - mean, 0.0)
                for a in range(start, stop):
                    Y[k, a] += g[a] - mean
                start = stop
            moved = 0.0
            for a in range(s):
                last[k, a] = g[a]
                total[k, a] += x[k, a]
                moved = max(moved, abs(x[k, a] - before[a]))
            movement[k] = moved
            gap[k] = nash_conv
            best_gap[k] = min(best_gap[k], nash_conv)
            if tol > 0.0 and nash_conv <= tol and (t % check_every == 0 or t == 1):
                stopped[k] = True
                break
