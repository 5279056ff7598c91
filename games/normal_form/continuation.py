"""Curves of zeros of F(z) = (m_i B_i^T v_i(q + B z))_i, followed by pseudo-arclength continuation.

In a harmonic game <F(z), z> = 0 for all z, so the D equations have one dependency too many for a
curve and one too few for a point: at a smooth point of a curve the Jacobian J has rank D - 1, its
kernel is the tangent, and Gauss-Newton steps (least squares, D + 1 equations) bring a predicted
point back to the curve.
"""

import numpy as np
from numba import njit

__all__ = ["field_and_jacobian", "follow_branch", "project_to_zero"]


@njit(cache=True, nogil=True)
def field_and_jacobian(
    payoffs: np.ndarray,
    n_actions: np.ndarray,
    bases: np.ndarray,
    center: np.ndarray,
    masses: np.ndarray,
    z: np.ndarray,
    x: np.ndarray,
    F: np.ndarray,
    J: np.ndarray,
) -> None:
    """Write the strategies, the field and its Jacobian at z.

    Parameters
    ----------
    payoffs : ndarray of shape (n, M)
        Payoff tensors with their profiles flattened.
    n_actions : ndarray of shape (n,), int64
        The d_i; s is their sum, D = s - n.
    bases : ndarray of shape (s, D)
        Block diagonal of the B_i.
    center : ndarray of shape (s,)
        q, concatenated.
    masses : ndarray of shape (n,)
        The m_i.
    z : ndarray of shape (D,)
        Coordinates.
    x, F, J : ndarray of shape (s,), (D,), (D, D)
        Written to.

    Returns
    -------
    None
        The answers are in `x`, `F` and `J`.
    """
    n, M = payoffs.shape
    s, D = bases.shape
    for k in range(s):
        total = center[k]
        for c in range(D):
            total += bases[k, c] * z[c]
        x[k] = total
    starts = np.zeros(n + 1, dtype=np.int64)
    for i in range(n):
        starts[i + 1] = starts[i] + n_actions[i]
    v = np.zeros(s)
    dv = np.zeros((s, s))  # derivative of v_i[a] with respect to x_j[b]
    own = np.zeros(n, dtype=np.int64)
    for profile in range(M):
        rest = profile
        for i in range(n - 1, -1, -1):
            own[i] = starts[i] + rest % n_actions[i]
            rest //= n_actions[i]
        for i in range(n):
            u = payoffs[i, profile]
            weight = 1.0
            for k in range(n):
                if k != i:
                    weight *= x[own[k]]
            v[own[i]] += u * weight
            for j in range(n):
                if j == i:
                    continue
                weight = 1.0
                for k in range(n):
                    if k not in (i, j):
                        weight *= x[own[k]]
                dv[own[i], own[j]] += u * weight
    for i in range(n):
        for a in range(starts[i], starts[i + 1]):
            v[a] *= masses[i]
            for b in range(s):
                dv[a, b] *= masses[i]
    F[:] = bases.T @ v
    J[:] = bases.T @ (dv @ bases)


@njit(cache=True, nogil=True)
def correct(
    payoffs: np.ndarray,
    n_actions: np.ndarray,
    bases: np.ndarray,
    center: np.ndarray,
    masses: np.ndarray,
    predicted: np.ndarray,
    normal: np.ndarray,
    level: float,
    scale: float,
    tol: float,
    z: np.ndarray,
    x: np.ndarray,
    J: np.ndarray,
) -> int:
    """Solve F(z) = 0, normal . z = level by Gauss-Newton; return its steps, or -1."""
    D = len(z)
    F = np.empty(D)
    A = np.empty((D + 1, D))
    b = np.empty(D + 1)
    z[:] = predicted
    for step in range(12):
        field_and_jacobian(payoffs, n_actions, bases, center, masses, z, x, F, J)
        # Divided by the size of the payoffs, F weighs as much as the plane.
        A[:D] = J / scale
        b[:D] = -F / scale
        A[D] = normal
        b[D] = level - normal @ z
        dz = np.linalg.lstsq(A, b, 1e-13)[0]
        z += dz
        if not np.isfinite(z).all():
            return -1
        if np.abs(dz).max() < tol:
            field_and_jacobian(payoffs, n_actions, bases, center, masses, z, x, F, J)
            return step + 1 if np.abs(F).max() < 1e-9 * scale else -1
    return -1


@njit(cache=True, nogil=True)
def follow_branch(
    payoffs: np.ndarray,
    n_actions: np.ndarray,
    bases: np.ndarray,
    center: np.ndarray,
    masses: np.ndarray,
    start: np.ndarray,
    tangent: np.ndarray,
    step: float,
    max_steps: int,
    scale: float,
    tol: float,
) -> tuple[np.ndarray, int, int, int]:
    """Follow a curve of zeros from a point in one direction until it leaves the strategy space.

    Parameters
    ----------
    payoffs, n_actions, bases, center, masses
        As for `field_and_jacobian`.
    start : ndarray of shape (D,)
        A zero of F with positive strategies.
    tangent : ndarray of shape (D,)
        Unit vector in the kernel of J there: the direction to go.
    step : float
        Largest step of arclength.
    max_steps : int
        Largest number of steps.
    scale : float
        Size of J, by which residuals are measured.
    tol : float
        Largest last correction.

    Returns
    -------
    points : ndarray of shape (n_points, D)
        Zeros in order, the start first; the last one is on the boundary if the end says so.
    end : int
        0 boundary reached, 1 loop closed, 2 max_steps over, 3 the corrector failed.
    coordinate : int
        Concatenated index of the probability that vanishes at the boundary, else -1.
    crossed : int
        Index of the first point after which J had rank below D - 1, else -1.
    """
    s, D = bases.shape
    points = np.empty((max_steps + 2, D))
    points[0] = start
    n_points = 1
    t = tangent.copy()
    z, x, J = np.empty(D), np.empty(s), np.empty((D, D))
    previous = start.copy()
    h = step
    crossed = -1
    for _ in range(max_steps):
        accepted = False
        turned = t
        while h > 1e-7 * step:
            predicted = previous + h * t
            level = float(t @ predicted)
            used = correct(
                payoffs,
                n_actions,
                bases,
                center,
                masses,
                predicted,
                t,
                level,
                scale,
                tol,
                z,
                x,
                J,
            )
            if 0 < used <= 6:
                _, singular, Vt = np.linalg.svd(J)
                turned = Vt[D - 1].copy()
                if turned @ t < 0.0:
                    turned = -turned
                if turned @ t > 0.94:  # 20 degrees
                    accepted = True
                    if crossed < 0 and D > 1 and singular[D - 2] < 1e-6 * scale:
                        crossed = n_points
                    break
            h *= 0.5
        if not accepted:
            return points[:n_points], 3, -1, crossed
        if x.min() < 0.0:
            # The curve left the simplices in this step: bisect its length, then let the last point
            # go.
            low, high = 0.0, h
            for _ in range(60):
                middle = 0.5 * (low + high)
                predicted = previous + middle * t
                level = float(t @ predicted)
                correct(
                    payoffs,
                    n_actions,
                    bases,
                    center,
                    masses,
                    predicted,
                    t,
                    level,
                    scale,
                    tol,
                    z,
                    x,
                    J,
                )
                if x.min() < 0.0:
                    high = middle
                else:
                    low = middle
                if high - low < 1e-15:
                    break
            coordinate = int(np.argmin(x))
            # One solve with the vanishing probability in place of the plane makes the end exact.
            normal = bases[coordinate].copy()
            size = np.sqrt(normal @ normal)
            predicted = z.copy()
            end = z.copy()
            level = float(-center[coordinate] / size)
            used = correct(
                payoffs,
                n_actions,
                bases,
                center,
                masses,
                predicted,
                normal / size,
                level,
                scale,
                tol,
                end,
                x,
                J,
            )
            if used > 0 and np.abs(end - predicted).max() < 1e-6:
                points[n_points] = end
            else:
                points[n_points] = predicted
            return points[: n_points + 1], 0, coordinate, crossed
        points[n_points] = z
        n_points += 1
        previous = z.copy()
        t = turned
        if n_points > 10 and np.sqrt(((z - start) ** 2).sum()) < 0.5 * h:
            return points[:n_points], 1, -1, crossed
        if used < 3:
            h = min(2.0 * h, step)
    return points[:n_points], 2, -1, crossed


@njit(cache=True, nogil=True)
def project_to_zero(
    payoffs: np.ndarray,
    n_actions: np.ndarray,
    bases: np.ndarray,
    center: np.ndarray,
    masses: np.ndarray,
    start: np.ndarray,
    normal: np.ndarray,
    level: float,
    scale: float,
) -> tuple[np.ndarray, bool]:
    """Return a zero of F near a start, and whether it was found; minimum-norm Gauss-Newton steps.

    Parameters
    ----------
    payoffs, n_actions, bases, center, masses
        As for `field_and_jacobian`.
    start : ndarray of shape (D,)
        Coordinates to begin at.
    normal : ndarray of shape (D,)
        If not zero, the zero is sought in the plane ``normal . z = level``.
    level : float
        Of the plane.
    scale : float
        Size of J, by which residuals are measured.

    Returns
    -------
    z : ndarray of shape (D,)
        The last iterate.
    found : bool
        Whether F vanishes there to 1e-11 times the scale.
    """
    s, D = bases.shape
    z, x, F, J = start.copy(), np.empty(s), np.empty(D), np.empty((D, D))
    A, b = np.empty((D + 1, D)), np.empty(D + 1)
    for _ in range(60):
        field_and_jacobian(payoffs, n_actions, bases, center, masses, z, x, F, J)
        A[:D] = J / scale
        b[:D] = -F / scale
        A[D] = normal
        b[D] = level - normal @ z if np.abs(normal).max() > 0.0 else 0.0
        if np.abs(b).max() < 1e-13:
            break
        dz = np.linalg.lstsq(A, b, 1e-9)[0]
        size = np.abs(dz).max()
        z += dz * min(1.0, 0.5 / max(size, 1e-300))
        if not np.isfinite(z).all() or np.abs(z).max() > 10.0:
            return z, False
        if size < 1e-15:
            break
    field_and_jacobian(payoffs, n_actions, bases, center, masses, z, x, F, J)
    on_plane = np.abs(normal).max() == 0.0 or abs(level - normal @ z) < 1e-12
    return z, on_plane and np.abs(F).max() < 1e-11 * scale
