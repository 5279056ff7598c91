r"""Log-likelihood of decisions under the worker's rule, its score and its information.

z = bias + beta (E_H + tau E_A), P(decide +) = eps / 2 + (1 - eps) sigmoid(z),
log tau = V gamma (+ omega u), bias (+ omega_b v), with the evidence E_H and E_A as a worker who
believes in the overlap rho_hat weighs it (see `evidence`).

The parameters are (bias, log beta, gamma, atanh rho_hat, logit eps, log omega, log omega_b).
`pooled_sums` adds up rows. `worker_integrals` integrates the worker's standard normal u (and v) by
adaptive Gauss-Hermite quadrature around the mode; its score is the nodes' posterior mean of the
conditional score (Fisher's identity).
"""

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import expit

__all__ = ["choice_probability", "pooled_sums", "worker_integrals"]

Array = NDArray[np.float64]


def choice_probability(
    human: Array, ai: Array, *, log_trust: Array, noise_scale: float, bias: float, lapse: float
) -> Array:
    """P(decide +) for each trial, from the evidence as the worker weighs it."""
    odds = human + np.exp(log_trust) * ai
    return lapse / 2 + (1 - lapse) * expit(bias + noise_scale * odds)


@njit(cache=True, nogil=True)
def pooled_sums(
    human: Array,
    ai: Array,
    lean_h: Array,
    lean_a: Array,
    V: Array,
    y: Array,
    w: Array,
    bias: float,
    beta: float,
    gamma: Array,
    eps: float,
) -> tuple[float, Array, Array]:  # pragma: no cover - compiled
    """Weighted log-likelihood, score and expected information of rows; y is 0 or 1.

    `lean_h` and `lean_a` are the derivatives of the evidence in atanh rho_hat, or empty.
    """
    q = gamma.size
    d = q + 4
    score, information = np.zeros(d), np.zeros((d, d))
    loglik = 0.0
    J = np.zeros(d)  # dz / d parameter; the last one is of eps
    for i in range(human.size):
        eta = 0.0
        for j in range(q):
            eta += V[i, j] * gamma[j]
        tau = math.exp(min(max(eta, -30.0), 30.0))
        z = bias + beta * (human[i] + tau * ai[i])
        side = 1.0 if y[i] > 0.5 else -1.0
        e = math.exp(-abs(z))
        sigma = 1 / (1 + e) if side * z >= 0 else e / (1 + e)  # of the decision taken
        other = e / (1 + e) if side * z >= 0 else 1 / (1 + e)
        p = eps / 2 + (1 - eps) * sigma
        if eps == 0:
            loglik += w[i] * (min(side * z, 0.0) - math.log1p(e))
            slope, curvature = side * other, sigma * other
        else:
            loglik += w[i] * math.log(p)
            rise = (1 - eps) * sigma * other
            slope, curvature = side * rise / p, rise * rise / (p * (1 - p))
        J[0] = 1.0
        J[1] = beta * (human[i] + tau * ai[i])
        for j in range(q):
            J[2 + j] = beta * tau * ai[i] * V[i, j]
        if lean_h.size > 0:
            J[2 + q] = beta * (lean_h[i] + tau * lean_a[i])
        slope_eps, lift = 0.0, 0.0
        if eps > 0:
            lift = side * eps * (1 - eps) * (0.5 - sigma)  # dP(+) / d logit eps
            slope_eps = side * lift / p
        wi = w[i]
        for j in range(3 + q):
            score[j] += wi * slope * J[j]
            for k in range(j + 1):
                information[j, k] += wi * curvature * J[j] * J[k]
        if eps > 0:
            rise = (1 - eps) * sigma * other
            score[3 + q] += wi * slope_eps
            for k in range(3 + q):
                information[3 + q, k] += wi * lift * rise * J[k] / (p * (1 - p))
            information[3 + q, 3 + q] += wi * lift * lift / (p * (1 - p))
    for j in range(d):
        for k in range(j):
            information[k, j] = information[j, k]
    return loglik, score, information


@njit(cache=True, nogil=True)
def conditional_slopes(
    start: int,
    stop: int,
    human: Array,
    ai: Array,
    y: Array,
    w: Array,
    bias: float,
    beta: float,
    eps: float,
    lift: float,
    shift: float,
    omega: float,
    omega_b: float,
) -> tuple[float, float, float, float, float, float]:  # pragma: no cover - compiled
    """Log-likelihood of a worker's trials given u, v, its gradient and Fisher curvature in them."""
    ll, gu, gv, huu, huv, hvv = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for t in range(start, stop):
        z = bias + shift + beta * (human[t] + lift * ai[t])
        side = 1.0 if y[t] > 0.5 else -1.0
        e = math.exp(-abs(z))
        sigma = 1 / (1 + e) if side * z >= 0 else e / (1 + e)
        other = e / (1 + e) if side * z >= 0 else 1 / (1 + e)
        if eps == 0:
            ll += w[t] * (min(side * z, 0.0) - math.log1p(e))
            slope, curvature = side * other, sigma * other
        else:
            p = eps / 2 + (1 - eps) * sigma
            ll += w[t] * math.log(p)
            rise = (1 - eps) * sigma * other
            slope, curvature = side * rise / p, rise * rise / (p * (1 - p))
        du = omega * beta * lift * ai[t]
        gu += w[t] * slope * du
        gv += w[t] * slope * omega_b
        huu += w[t] * curvature * du * du
        huv += w[t] * curvature * du * omega_b
        hvv += w[t] * curvature * omega_b * omega_b
    return ll, gu, gv, huu, huv, hvv


@njit(cache=True, nogil=True)
def worker_integrals(
    starts: NDArray[np.int64],
    human: Array,
    ai: Array,
    lean_h: Array,
    lean_a: Array,
    V: Array,
    y: Array,
    w: Array,
    bias: float,
    beta: float,
    gamma: Array,
    eps: float,
    omega: float,
    omega_b: float,
    nodes: Array,
    log_weights: Array,
    n_effects: int,
    modes: Array,
) -> tuple[Array, Array, Array, Array]:  # pragma: no cover - compiled
    """Marginal log-likelihood and score of each worker, and mean and variance of (u, v).

    Rows are sorted by worker, worker k from starts[k] to starts[k + 1]. Nodes of shape
    (n_nodes, 2) are standard; log_weights holds log w + |x|^2. `modes` of shape (n_workers, 2) is
    the start of each search for the mode, and is overwritten by what is found.
    """
    n_workers, q, Q = starts.size - 1, gamma.size, log_weights.size
    d = q + 6
    loglik, score = np.zeros(n_workers), np.zeros((n_workers, d))
    mean, variance = np.zeros((n_workers, 2)), np.zeros((n_workers, 2))
    n_rows, leaning = human.size, lean_h.size > 0
    # The AI's evidence and its slope in the belief, times trust.
    weighed, leaned = np.empty(n_rows), np.empty(n_rows)
    for t in range(n_rows):
        eta = 0.0
        for j in range(q):
            eta += V[t, j] * gamma[j]
        tau = math.exp(min(max(eta, -30.0), 30.0))
        weighed[t] = tau * ai[t]
        if leaning:
            leaned[t] = tau * lean_a[t]
    sums = np.zeros((Q, q + 5))
    logsum, lifts, shifts = np.zeros(Q), np.zeros(Q), np.zeros(Q)
    for k in range(n_workers):
        start, stop = starts[k], starts[k + 1]
        u, v = modes[k, 0], modes[k, 1]
        f, gu, gv, huu, huv, hvv = conditional_slopes(
            start,
            stop,
            human,
            weighed,
            y,
            w,
            bias,
            beta,
            eps,
            math.exp(omega * u),
            omega_b * v,
            omega,
            omega_b,
        )
        f -= (u * u + v * v) / 2
        for _ in range(30):
            a, b, c = 1 + huu, huv, 1 + hvv
            det = a * c - b * b
            du = (c * (gu - u) - b * (gv - v)) / det
            dv = (a * (gv - v) - b * (gu - u)) / det
            size = max(abs(du), abs(dv))
            if size > 2.0:
                du, dv = du * 2.0 / size, dv * 2.0 / size
            step = 1.0
            for _ in range(12):
                un, vn = u + step * du, v + step * dv
                fn, gun, gvn, huun, huvn, hvvn = conditional_slopes(
                    start,
                    stop,
                    human,
                    weighed,
                    y,
                    w,
                    bias,
                    beta,
                    eps,
                    math.exp(omega * un),
                    omega_b * vn,
                    omega,
                    omega_b,
                )
                fn -= (un * un + vn * vn) / 2
                if fn >= f - 1e-12:
                    break
                step /= 2
            u, v, f, gu, gv, huu, huv, hvv = un, vn, fn, gun, gvn, huun, huvn, hvvn
            if max(abs(du), abs(dv)) * step < 1e-4:
                break
        modes[k, 0], modes[k, 1] = u, v
        # Cholesky factor of the inverse curvature: nodes follow the integrand.
        a, b, c = 1 + huu, huv, 1 + hvv
        det = a * c - b * b
        l11 = math.sqrt(c / det)
        l21 = -b / det / l11
        l22 = math.sqrt(1 / c)
        for m in range(Q):
            x1, x2 = nodes[m, 0] * math.sqrt(2.0), nodes[m, 1] * math.sqrt(2.0)
            un, vn = u + l11 * x1, v + l21 * x1 + l22 * x2
            lifts[m], shifts[m] = un, vn
            logsum[m] = -(un * un + vn * vn) / 2 + log_weights[m]
            for j in range(q + 5):
                sums[m, j] = 0.0
        for m in range(Q):
            lift, shift = math.exp(omega * lifts[m]), bias + omega_b * shifts[m]
            grow, total = 1.0, 0.0
            for t in range(start, stop):
                z = shift + beta * (human[t] + lift * weighed[t])
                side = 1.0 if y[t] > 0.5 else -1.0
                e = math.exp(-abs(z))
                sigma = 1 / (1 + e) if side * z >= 0 else e / (1 + e)
                p = eps / 2 + (1 - eps) * sigma
                if eps == 0:
                    slope = side * (1 - sigma)
                    slope_eps = 0.0
                else:
                    slope = side * (1 - eps) * sigma * (1 - sigma) / p
                    slope_eps = eps * (1 - eps) * (0.5 - sigma) / p
                if w[t] != 1.0:
                    total += w[t] * (math.log(p) if p > 1e-100 else side * z)
                elif p > 1e-100:
                    grow *= p  # one logarithm for many factors
                    if grow < 1e-200:
                        total += math.log(grow)
                        grow = 1.0
                else:
                    total += side * z
                g = w[t] * slope
                ga = g * lift * weighed[t]
                sums[m, 0] += g
                sums[m, 1] += g * human[t] + ga
                if leaning:
                    sums[m, 2] += g * lean_h[t] + g * lift * leaned[t]
                sums[m, 3] += w[t] * slope_eps
                sums[m, 4] += ga
                for j in range(q):
                    sums[m, 5 + j] += ga * V[t, j]
            logsum[m] += total + math.log(grow)
        top = logsum.max()
        weight = 0.0
        for m in range(Q):
            weight += math.exp(logsum[m] - top)
        loglik[k] = top + math.log(weight) + math.log(l11) - 0.5 * math.log(math.pi)
        if n_effects == 2:
            loglik[k] += math.log(l22) - 0.5 * math.log(math.pi)
        for m in range(Q):
            posterior = math.exp(logsum[m] - top) / weight
            score[k, 0] += posterior * sums[m, 0]
            score[k, 1] += posterior * beta * sums[m, 1]
            for j in range(q):
                score[k, 2 + j] += posterior * beta * sums[m, 5 + j]
            score[k, 2 + q] += posterior * beta * sums[m, 2]
            score[k, 3 + q] += posterior * sums[m, 3]
            score[k, 4 + q] += posterior * beta * sums[m, 4] * omega * lifts[m]
            score[k, 5 + q] += posterior * sums[m, 0] * omega_b * shifts[m]
            mean[k, 0] += posterior * lifts[m]
            mean[k, 1] += posterior * shifts[m]
            variance[k, 0] += posterior * lifts[m] * lifts[m]
            variance[k, 1] += posterior * shifts[m] * shifts[m]
    return loglik, score, mean, variance - mean * mean
