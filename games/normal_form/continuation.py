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
    for r in range(D):
        F[r] = 0.0
        for c in range(D):
            J[r, c] = 0.0
        for a in range(s):
            F[r] += bases[a, r] * v[a]
            if bases[a, r] == 0.0:
                continue
            for b in range(s):
                for c in range(D):
                    J[r, c] += bases[a, r] * dv[a, b] * bases[b, c]


@njit(cache=True, nogil=True)
def solve_normal_equations(
    J: np.ndarray, normal: np.ndarray, damping: float, b: np.ndarray, answer: np.ndarray
) -> None:
    """Solve (J^T J + normal normal^T + damping I) answer = b by Cholesky's factors."""
    D = len(b)
    L = np.empty((D, D))
    for r in range(D):
        for c in range(r + 1):
            total = normal[r] * normal[c]
            if r == c:
                total += damping
            for k in range(D):
                total += J[k, r] * J[k, c]
            for k in range(c):
                total -= L[r, k] * L[c, k]
            L[r, c] = np.sqrt(max(total, 1e-300)) if r == c else total / L[c, c]
    for r in range(D):
        total = b[r]
        for k in range(r):
            total -= L[r, k] * answer[k]
        answer[r] = total / L[r, r]
    for r in range(D - 1, -1, -1):
        total = answer[r]
        for k in range(r + 1, D):
            total -= L[k, r] * answer[k]
        answer[r] = total / L[r, r]


@njit(cache=True, nogil=True)
def correct(
    payoffs: np.ndarray,
    n_actions: np.ndarray,
    bases: np.ndarray,
    center: np.ndarray,
    masses: np.ndarray,
    normal: np.ndarray,
    level: float,
    scale: float,
    tol: float,
    z: np.ndarray,
    x: np.ndarray,
    tangent: np.ndarray,
) -> int:
    """Move z to F(z) = 0, normal . z = level; return the number of Gauss-Newton steps, or -1.

    The D + 1 equations in D unknowns are solved by least squares. Where the Jacobian has rank
    D - 1, `tangent` becomes the unit vector of its kernel with normal . tangent > 0.
    """
    D = len(z)
    F, J = np.empty(D), np.empty((D, D))
    b, dz = np.empty(D), np.empty(D)
    for step in range(12):
        field_and_jacobian(payoffs, n_actions, bases, center, masses, z, x, F, J)
        J /= scale  # so that F weighs as much as the plane
        F /= scale
        plane = level - (normal * z).sum()
        for k in range(D):
            b[k] = plane * normal[k] - (J[:, k] * F).sum()
        solve_normal_equations(J, normal, 1e-15, b, dz)
        z += dz
        if not np.isfinite(z).all():
            return -1
        if np.abs(dz).max() < tol:
            if np.abs(F).max() > 1e-9:
                return -1
            # J tau = 0 and normal . tau = 1, in the least-squares sense
            solve_normal_equations(J, normal, 1e-15, normal, dz)
            tangent[:] = dz / np.sqrt((dz**2).sum())
            return step + 1
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
) -> tuple[np.ndarray, int]:
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
    """
    s, D = bases.shape
    points = np.empty((max_steps + 2, D))
    points[0] = start
    n_points = 1
    t, turned = tangent.copy(), tangent.copy()
    z, x = start.copy(), np.empty(s)
    h = step
    for _ in range(max_steps):
        previous = points[n_points - 1]
        used = -1
        while h > 1e-7 * step:
            z[:] = previous + h * t
            used = correct(
                payoffs,
                n_actions,
                bases,
                center,
                masses,
                t,
                (t * z).sum(),
                scale,
                tol,
                z,
                x,
                turned,
            )
            if 0 < used <= 6 and (turned * t).sum() > 0.94:  # 20 degrees
                break
            used = -1
            h *= 0.5
        if used < 0:
            return points[:n_points], 3
        if x.min() < 0.0:
            # The curve left the simplices in this step: bisect its length, then solve once with
            # the probability that vanishes in place of the plane.
            low, high = 0.0, h
            while high - low > 1e-13:
                middle = 0.5 * (low + high)
                z[:] = previous + middle * t
                correct(
                    payoffs,
                    n_actions,
                    bases,
                    center,
                    masses,
                    t,
                    (t * z).sum(),
                    scale,
                    tol,
                    z,
                    x,
                    turned,
                )
                if x.min() < 0.0:
                    high = middle
                else:
                    low = middle
            coordinate = int(np.argmin(x))
            size = np.sqrt((bases[coordinate] ** 2).sum())
            normal = bases[coordinate] / size
            level = -center[coordinate] / size
            points[n_points] = z
            used = correct(
                payoffs, n_actions, bases, center, masses, normal, level, scale, tol, z, x, turned
            )
            if used > 0 and np.abs(z - points[n_points]).max() < 1e-6:
                points[n_points] = z
            return points[: n_points + 1], 0
        points[n_points] = z
        n_points += 1
        t[:] = turned
        if n_points > 10 and np.sqrt(((z - start) ** 2).sum()) < 0.5 * h:
            return points[:n_points], 1
        if used < 3:
            h = min(2.0 * h, step)
    return points[:n_points], 2


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
    """Return a zero of F near a start, and whether it was found.

    The Gauss-Newton steps are damped so little that they are those of minimum norm.

    Parameters
    ----------
    payoffs, n_actions, bases, center, masses
        As for `field_and_jacobian`.
    start : ndarray of shape (D,)
        Coordinates to begin at.
    normal : ndarray of shape (D,)
        If not zero, the zero is sought in the plane ``normal . z = level``.
    level : float
        Of the plane; 0 without one.
    scale : float
        Size of J, by which residuals are measured.

    Returns
    -------
    z : ndarray of shape (D,)
        The last iterate.
    found : bool
        Whether F vanishes there to 1e-11 times the scale, on the plane.
    """
    s, D = bases.shape
    z, x, F, J = start.copy(), np.empty(s), np.empty(D), np.empty((D, D))
    b, dz, plane = np.empty(D), np.empty(D), 0.0
    for _ in range(80):
        field_and_jacobian(payoffs, n_actions, bases, center, masses, z, x, F, J)
        J /= scale
        F /= scale
        plane = level - (normal * z).sum()
        if np.abs(F).max() < 1e-12 and abs(plane) < 1e-13:
            return z, True
        for k in range(D):
            b[k] = plane * normal[k] - (J[:, k] * F).sum()
        solve_normal_equations(J, normal, 1e-11, b, dz)
        z += dz * min(1.0, 0.5 / max(np.abs(dz).max(), 1e-300))
        if not np.isfinite(z).all() or np.abs(z).max() > 10.0:
            return z, False
    return z, np.abs(F).max() < 1e-11 and abs(plane) < 1e-12
