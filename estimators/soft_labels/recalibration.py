"""Recalibration of logits to human soft labels.

Temperature: minimise over v = 1 / T the mean of CE(p, softmax(v z)), convex in v, with derivative
mean(E_f z - E_p z) and second derivative mean Var_f z. Vector scaling: softmax(a * z + b).
Dirichlet (Kull et al. 2019): softmax(W log f + b) with W off the diagonal and b penalised.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

__all__ = ["dirichlet_map", "temperature_of", "vector_map"]

#: Bracket of the inverse temperature.
BRACKET = (1e-3, 1e3)


def slope_and_curvature(
    v: float, Z: np.ndarray, P: np.ndarray, weight: np.ndarray
) -> tuple[float, float]:
    """First and second derivative of the mean soft cross-entropy in the inverse temperature."""
    F = softmax(v * Z, axis=1)
    mean = (F * Z).sum(axis=1)
    slope = mean - (P * Z).sum(axis=1)
    curvature = (F * Z**2).sum(axis=1) - mean**2
    return float(np.average(slope, weights=weight)), float(np.average(curvature, weights=weight))


def temperature_of(Z: np.ndarray, P: np.ndarray, weight: np.ndarray) -> float:
    """The temperature of least soft cross-entropy, in [1e-3, 1e3]: Newton inside a bracket."""
    Z = Z - Z.max(axis=1, keepdims=True)
    low, high = BRACKET
    if slope_and_curvature(low, Z, P, weight)[0] >= 0:
        return 1 / low
    if slope_and_curvature(high, Z, P, weight)[0] <= 0:
        return 1 / high
    v = 1.0
    for _ in range(200):
        slope, curvature = slope_and_curvature(v, Z, P, weight)
        low, high = (v, high) if slope < 0 else (low, v)
        step = v - slope / curvature if curvature > 0 else np.inf
        new = step if low < step < high else float(np.sqrt(low * high))
        if abs(new - v) <= 1e-13 * v:
            break
        v = new
    return 1 / v


def fit_affine(
    Z: np.ndarray, P: np.ndarray, weight: np.ndarray, diagonal: bool, penalty: float
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients W (K, K) and b (K,) of the affine map of least penalised cross-entropy."""
    K = Z.shape[1]
    share = weight / weight.sum()
    off = ~np.eye(K, dtype=bool)

    def unpack(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        W = np.diag(theta[:K]) if diagonal else theta[: K * K].reshape(K, K)
        return W, theta[-K:]

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        W, b = unpack(theta)
        log_f = log_softmax(Z @ W.T + b, axis=1)
        loss = -float(share @ (P * log_f).sum(axis=1))
        residual = share[:, None] * (np.exp(log_f) - P)
        dW, db = residual.T @ Z, residual.sum(axis=0)
        if penalty:
            loss += penalty * float((W[off] ** 2).mean() + (b**2).mean())
            dW = dW + penalty * 2 * np.where(off, W, 0) / off.sum()
            db = db + penalty * 2 * b / K
        return loss, np.concatenate([np.diag(dW) if diagonal else dW.ravel(), db])

    start = np.concatenate([np.ones(K) if diagonal else np.eye(K).ravel(), np.zeros(K)])
    found = minimize(
        objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 1000, "gtol": 1e-8}
    )
    return unpack(found.x)


def vector_map(Z: np.ndarray, P: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Vector scaling: one factor and one shift a class."""
    return fit_affine(Z, P, weight, diagonal=True, penalty=0.0)


def dirichlet_map(
    Z: np.ndarray, P: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Dirichlet calibration on log-probabilities, with the off-diagonal and intercept penalty."""
    return fit_affine(log_softmax(Z, axis=1), P, weight, diagonal=False, penalty=1e-3)
