"""Compiled logarithms of factors, and the exponential that turns them into factors minus 1.

Vector instructions have no exponential, and calling the library's for every factor would cost more
than all nodes together. For x <= 0 the doubling expm1(2x) = expm1(x) (2 + expm1(x)) loses
nothing, since it never enlarges a relative error: so x is halved until a short series is exact to
double precision, and the series' value is doubled back.
"""

from numba import njit

__all__ = ["expm1_nonpositive", "fill_log_factors"]

_FASTMATH = {"contract", "nsz"}  # keeps the meaning of NaN and infinity


@njit(cache=True, nogil=True)
def fill_log_factors(  # type: ignore[no-untyped-def]
    X, support, codes, parameters, player, out
):
    """Add up the log factors of each player's columns.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Points.
    support : ndarray of shape (n_blocks, d, lanes)
        Support points, side by side.
    codes, parameters : ndarray of shape (d,)
        Formula and parameter of each column's factor.
    player : ndarray of shape (d,)
        Which player a column belongs to.
    out : ndarray of shape (n, n_blocks, n_players, lanes)
        Zeros on entry, log factors on return.
    """
    n_blocks, d, lanes = support.shape
    for i in range(X.shape[0]):
        for k in range(n_blocks):
            for j in range(d):
                x = X[i, j]
                p = parameters[j]
                g = player[j]
                if codes[j] == 0:
                    for lane in range(lanes):
                        difference = x - support[k, j, lane]
                        out[i, k, g, lane] -= p * difference * difference
                elif codes[j] == 1:
                    for lane in range(lanes):
                        out[i, k, g, lane] -= p * abs(x - support[k, j, lane])
                elif codes[j] == 2:
                    for lane in range(lanes):
                        if x != support[k, j, lane]:
                            out[i, k, g, lane] += p
                else:
                    for lane in range(lanes):
                        total = x + support[k, j, lane]
                        difference = x - support[k, j, lane]
                        if total > 0:
                            out[i, k, g, lane] -= p * difference * difference / total


@njit(cache=True, nogil=True, fastmath=_FASTMATH)
def expm1_nonpositive(x):  # type: ignore[no-untyped-def]
    """Replace x <= 0 by exp(x) - 1, with a relative error of a few units in the last place.

    Parameters
    ----------
    x : ndarray of shape (n_rows, lanes)
        Logarithms, -inf allowed; each row is halved as often as its smallest entry needs.
    """
    lanes = x.shape[1]
    for k in range(x.shape[0]):
        low = 0.0
        for lane in range(lanes):
            low = x[k, lane] if x[k, lane] < low else low
        low = low if low > -40.0 else -40.0  # exp(-40) is below half an ulp of 1
        doublings = 0
        scale = 1.0
        while low < -0.125:
            low *= 0.5
            scale *= 0.5
            doublings += 1
        for lane in range(lanes):
            r = (x[k, lane] if x[k, lane] > -40.0 else -40.0) * scale
            p = 1 / 3628800 + r * (1 / 39916800)
            p = 1 / 362880 + r * p
            p = 1 / 40320 + r * p
            p = 1 / 5040 + r * p
            p = 1 / 720 + r * p
            p = 1 / 120 + r * p
            p = 1 / 24 + r * p
            p = 1 / 6 + r * p
            p = 1 / 2 + r * p
            x[k, lane] = r + r * r * p
        for _ in range(doublings):
            for lane in range(lanes):
                x[k, lane] = x[k, lane] * (2.0 + x[k, lane])
