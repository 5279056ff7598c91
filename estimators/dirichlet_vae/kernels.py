"""Per-row kernels: the Dirichlet divergence and the exact modified Newton step on log g.

All is written in l = log g and m = g / u with u = sum_k g_k, so that concentrations from 1e-160 to
1e7 neither over- nor underflow. With B(a, g) = lnGamma(a) - lnGamma(g) - (a - g) psi(g), the
Bregman divergence of lnGamma, KL(Dir(g) || Dir(a)) = sum_k B(a_k, g_k) - B(a_0, u): every term is
positive and is computed without cancellation. In l its derivatives need only x^2 psi'(x) and x^3
psi''(x), which are bounded as x goes to 0.
"""

import math

import numpy as np
from numba import njit

__all__ = ["bregman", "kl_rows", "newton_rows", "posterior_moments"]

#: Arguments below are shifted up by this many unit steps before the asymptotic series is used.
SHIFT = 8


@njit(cache=True, nogil=True)
def stirling(x: float) -> float:
    """Remainder of Stirling's series of lnGamma, x >= 8."""
    y = 1.0 / (x * x)
    tail = 1 / 1680 - y * (1 / 1188 - y * (691 / 360360 - y / 156))
    return (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * tail))) / x


@njit(cache=True, nogil=True)
def stirling_slope(x: float) -> float:
    """Derivative of the remainder, x >= 8."""
    y = 1.0 / (x * x)
    tail = 1 / 240 - y * (1 / 132 - y * (691 / 32760 - y / 12))
    return -y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * tail)))


@njit(cache=True, nogil=True)
def bregman(a: float, g: float) -> float:
    """lnGamma(a) - lnGamma(g) - (a - g) psi(g) >= 0, to rounding of the result itself."""
    difference = a - g
    total = 0.0
    shift = 0.0
    if a < SHIFT or g < SHIFT:
        # lnGamma(x) = lnGamma(x + 8) - sum ln(x + i) turns into sum_i (t_i - ln(1 + t_i)).
        t = difference / g
        total = t - (math.log(a) - math.log(g) if t < -0.5 else math.log1p(t))
        ratio, excess = 1.0, 0.0  # prod (1 + t_i), and the same less 1 without cancellation
        for i in range(1, SHIFT):
            t = difference / (g + i)
            total += t
            ratio *= (a + i) / (g + i)
            excess += t + excess * t
        total -= math.log(ratio) if abs(excess) > 0.5 else math.log1p(excess)
        shift = float(SHIFT)
    x = g + shift
    t = difference / x
    log_ratio = math.log1p(t)
    total += x * ((1.0 + t) * log_ratio - t) + 0.5 * (t - log_ratio)
    return total + stirling(a + shift) - stirling(x) - difference * stirling_slope(x)


@njit(cache=True, nogil=True)
def scaled_polygammas(x: float) -> tuple[float, float]:
    """x^2 psi'(x) and x^3 psi''(x), finite for every x > 0."""
    first, second = 0.0, 0.0
    y = x
    if x < SHIFT + 1:
        for i in range(1, SHIFT + 1):
            r = 1.0 / (x + i)
            first += r * r
            second -= 2.0 * r * r * r
        y = x + SHIFT + 1
    r = 1.0 / y
    s = r * r
    tail = 1 / 30 - s * (5 / 66 - s * (691 / 2730 - s * 7 / 6))
    first += r + s * (0.5 + r * (1 / 6 - s * (1 / 30 - s * (1 / 42 - s * tail))))
    tail = 3 / 10 - s * (5 / 6 - s * (691 / 210 - s * 35 / 2))
    second -= s * (1.0 + r + s * (0.5 - s * (1 / 6 - s * (1 / 6 - s * tail))))
    if x < SHIFT + 1:
        return 1.0 + x * x * first, -2.0 + x * x * x * second
    return x * x * first, x * x * x * second


@njit(cache=True, nogil=True)
def kl_rows(g: np.ndarray, a: np.ndarray) -> np.ndarray:
    """KL(Dir(g_i) || Dir(a_i)) for each row of two (n, K) arrays."""
    n, K = g.shape
    kl = np.empty(n)
    for i in range(n):
        total, u, a0 = 0.0, 0.0, 0.0
        for k in range(K):
            total += bregman(a[i, k], g[i, k])
            u += g[i, k]
            a0 += a[i, k]
        kl[i] = max(total - bregman(a0, u), 0.0)
    return kl


@njit(cache=True, nogil=True)
def row_terms(
    log_g: np.ndarray,
    h: np.ndarray,
    G: np.ndarray,
    a: np.ndarray,
    a0: float,
    g: np.ndarray,
    m: np.ndarray,
) -> tuple[float, float, float]:
    """Fill g and m; return u, E||Vz||^2 - 2 h.m and the divergence."""
    K = len(a)
    u = 0.0
    for k in range(K):
        g[k] = math.exp(log_g[k])
        u += g[k]
    kl = -bregman(a0, u)
    spread, square, linear = 0.0, 0.0, 0.0
    for k in range(K):
        m[k] = g[k] / u
        kl += bregman(a[k], g[k])
    for k in range(K):
        spread += G[k, k] * m[k]
        linear += h[k] * m[k]
        for j in range(K):
            square += m[k] * G[k, j] * m[j]
    v = 1.0 / (u + 1.0)
    return u, v * spread + u * v * square - 2.0 * linear, kl


@njit(cache=True, nogil=True)
def row_derivatives(
    g: np.ndarray,
    m: np.ndarray,
    u: float,
    h: np.ndarray,
    G: np.ndarray,
    a: np.ndarray,
    a0: float,
    rate: float,
    kl_weight: float,
    gradient: np.ndarray,
    hessian: np.ndarray,
    Gm: np.ndarray,
) -> None:
    """Fill gradient and Hessian in l of rate * E||y - Vz||^2 + kl_weight * KL."""
    K = len(a)
    v = 1.0 / (u + 1.0)
    p = u * v
    A, B, s = 0.0, 0.0, 0.0
    for k in range(K):
        Gm[k] = 0.0
        for j in range(K):
            Gm[k] += G[k, j] * m[j]
        A += G[k, k] * m[k]
        B += Gm[k] * m[k]
        s += h[k] * m[k]
    c = v * p * (A - B)
    E = -2.0 * s + v * A + 2.0 * p * B
    first_u, second_u = scaled_polygammas(u)
    pull_u = 1.0 - a0 / u
    curvature_u = first_u + pull_u * second_u
    shared = 2.0 * E + c - v * p * (2.0 * B - A) + 2.0 * p * B - (v - p) * c
    shared -= v * p * (2.0 * B - A)
    for j in range(K):
        e = -2.0 * h[j] + v * G[j, j] + 2.0 * p * Gm[j]
        first, second = scaled_polygammas(g[j])
        pull = 1.0 - a[j] / g[j]
        slope_R = m[j] * (e - E - c)
        slope_kl = pull * first - m[j] * pull_u * first_u
        gradient[j] = rate * slope_R + kl_weight * slope_kl
        own_j = -e + v * p * (2.0 * Gm[j] - G[j, j]) - 2.0 * p * Gm[j]
        for k in range(j + 1):
            own_k = -(-2.0 * h[k] + v * G[k, k] + 2.0 * p * Gm[k])
            own_k += v * p * (2.0 * Gm[k] - G[k, k]) - 2.0 * p * Gm[k]
            cross = own_j + own_k + 2.0 * p * G[j, k] + shared
            entry = m[j] * m[k] * (rate * cross - kl_weight * curvature_u)
            hessian[j, k] = entry
            hessian[k, j] = entry
        hessian[j, j] += gradient[j] + kl_weight * (first + pull * second)


@njit(cache=True, nogil=True)
def cholesky_step(
    hessian: np.ndarray, gradient: np.ndarray, L: np.ndarray, step: np.ndarray
) -> bool:
    """Newton step where the Hessian is safely positive definite; False where it isn't."""
    K = len(gradient)
    largest = 0.0
    for k in range(K):
        largest = max(largest, abs(hessian[k, k]))
    for j in range(K):
        pivot = hessian[j, j]
        for i in range(j):
            pivot -= L[j, i] * L[j, i]
        if not pivot > 1e-8 * largest + 1e-14:
            return False
        L[j, j] = math.sqrt(pivot)
        for k in range(j + 1, K):
            entry = hessian[k, j]
            for i in range(j):
                entry -= L[k, i] * L[j, i]
            L[k, j] = entry / L[j, j]
    for j in range(K):
        entry = -gradient[j]
        for i in range(j):
            entry -= L[j, i] * step[i]
        step[j] = entry / L[j, j]
    for j in range(K - 1, -1, -1):
        entry = step[j]
        for i in range(j + 1, K):
            entry -= L[i, j] * step[i]
        step[j] = entry / L[j, j]
    return True


@njit(cache=True, nogil=True)
def modified_step(hessian: np.ndarray, gradient: np.ndarray, step: np.ndarray) -> None:
    """Step with the eigenvalues' absolute values, found by Jacobi rotations."""
    K = len(gradient)
    S = hessian.copy()
    Q = np.eye(K)
    for _ in range(50):
        off, diagonal = 0.0, 0.0
        for i in range(K):
            diagonal += S[i, i] * S[i, i]
            for j in range(i):
                off += S[i, j] * S[i, j]
        if off <= 1e-28 * diagonal:
            break
        for i in range(K - 1):
            for j in range(i + 1, K):
                if S[i, j] == 0.0:
                    continue
                theta = (S[j, j] - S[i, i]) / (2.0 * S[i, j])
                t = 1.0 / (abs(theta) + math.sqrt(theta * theta + 1.0))
                if theta < 0.0:
                    t = -t
                cos = 1.0 / math.sqrt(t * t + 1.0)
                sin = t * cos
                for k in range(K):
                    x, y = S[k, i], S[k, j]
                    S[k, i], S[k, j] = cos * x - sin * y, sin * x + cos * y
                for k in range(K):
                    x, y = S[i, k], S[j, k]
                    S[i, k], S[j, k] = cos * x - sin * y, sin * x + cos * y
                for k in range(K):
                    x, y = Q[k, i], Q[k, j]
                    Q[k, i], Q[k, j] = cos * x - sin * y, sin * x + cos * y
    largest = 0.0
    for k in range(K):
        largest = max(largest, abs(S[k, k]))
    step[:] = 0.0
    for k in range(K):
        along = 0.0
        for i in range(K):
            along += Q[i, k] * gradient[i]
        along /= max(abs(S[k, k]), 1e-8 * largest + 1e-14)
        for i in range(K):
            step[i] -= Q[i, k] * along


@njit(cache=True, nogil=True)
def newton_rows(
    H: np.ndarray,
    x2: np.ndarray,
    G: np.ndarray,
    a: np.ndarray,
    log_g: np.ndarray,
    rate: float,
    kl_weight: float,
    lower: float,
    upper: float,
    max_steps: int,
    tol: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Minimise rate * E||y_i - Vz||^2 + kl_weight * KL over each row of log g, in place.

    Parameters
    ----------
    H : (n, K)
        Rows V^T y_i.
    x2 : (n,)
        Squared norms of the rows y_i.
    G : (K, K)
        V^T V.
    a : (K,)
        Prior concentrations.
    log_g : (n, K)
        Where the rows start; changed in place.
    rate, kl_weight : float
        Weights of the two terms.
    lower, upper : float
        Bounds of log g.
    max_steps : int
        Newton steps a row at most.
    tol : float
        A row is done when its largest gradient is below ``tol * (1 + |objective|)``.

    Returns
    -------
    reconstruction, kl, n_steps : (n,)
        Expected squared error, divergence and steps taken by each row.
    """
    n, K = H.shape
    a0 = a.sum()
    reconstruction, divergence = np.empty(n), np.empty(n)
    n_steps = np.zeros(n, dtype=np.int64)
    g, m, Gm, gradient, step = (
        np.empty(K),
        np.empty(K),
        np.empty(K),
        np.empty(K),
        np.empty(K),
    )
    hessian, L = np.empty((K, K)), np.zeros((K, K))
    trial = np.empty(K)
    for i in range(n):
        row, h = log_g[i], H[i]
        u, error, kl = row_terms(row, h, G, a, a0, g, m)
        value = rate * (x2[i] + error) + kl_weight * kl
        for _ in range(max_steps):
            row_derivatives(g, m, u, h, G, a, a0, rate, kl_weight, gradient, hessian, Gm)
            # Coordinates at a bound that would leave it stay there.
            worst = 0.0
            for k in range(K):
                if (row[k] <= lower and gradient[k] > 0) or (row[k] >= upper and gradient[k] < 0):
                    gradient[k] = 0.0
                    for j in range(K):
                        hessian[k, j] = 0.0
                        hessian[j, k] = 0.0
                    hessian[k, k] = 1.0
                worst = max(worst, abs(gradient[k]))
            if worst <= tol * (1.0 + abs(value)):
                break
            if not cholesky_step(hessian, gradient, L, step):
                modified_step(hessian, gradient, step)
            longest = 0.0
            for k in range(K):
                longest = max(longest, abs(step[k]))
            scale = min(1.0, 3.0 / longest)
            accepted = False
            for _halving in range(40):
                slope = 0.0
                for k in range(K):
                    trial[k] = min(max(row[k] + scale * step[k], lower), upper)
                    slope += (trial[k] - row[k]) * gradient[k]
                u_new, error_new, kl_new = row_terms(trial, h, G, a, a0, g, m)
                new = rate * (x2[i] + error_new) + kl_weight * kl_new
                if new <= value + 1e-4 * slope + 1e-14 * abs(value):
                    accepted = True
                    break
                scale *= 0.5
            if not accepted:
                break
            for k in range(K):
                row[k] = trial[k]
            u, error, kl, value = u_new, error_new, kl_new, new
            n_steps[i] += 1
        reconstruction[i] = max(x2[i] + error, 0.0)
        divergence[i] = max(kl, 0.0)
    return reconstruction, divergence, n_steps


@njit(cache=True, nogil=True)
def posterior_moments(log_g: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Posterior means (n, K), and sum_i w_i E[z_i z_i^T] (K, K)."""
    n, K = log_g.shape
    M = np.empty((n, K))
    C = np.zeros((K, K))
    for i in range(n):
        u = 0.0
        for k in range(K):
            M[i, k] = math.exp(log_g[i, k])
            u += M[i, k]
        v = 1.0 / (u + 1.0)
        for k in range(K):
            M[i, k] /= u
            C[k, k] += weight[i] * v * M[i, k]
            for j in range(k + 1):
                C[k, j] += weight[i] * u * v * M[i, k] * M[i, j]
    for k in range(K):
        for j in range(k):
            C[j, k] = C[k, j]
    return M, C
