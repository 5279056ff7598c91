"""Finding the equilibrium of a channel, and what can be proved about it."""

from dataclasses import dataclass

import numpy as np

from .certificates import collatz_bound, leaks_everywhere, spectral_radius
from .channel import AffineChannel, CurvedChannel
from .fixed_points import bracket, iterate, polish
from .network import OpinionNetwork
from .solvers import choose_solver, floor_of, solve

__all__ = ["Equilibrium", "affine_equilibrium", "curved_equilibrium", "residual_target"]

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """A fixed point x = F(x) and how well it is known.

    `certificate` names the proof that it is the only one: "contraction" (absolute row sums below
    1), "leaks" (substochastic, and every node reaches a row below 1), "collatz" (a positive vector
    bounds rho(|M|) below 1), "bracket" (monotone iterations from both ends meet), or "none".
    """

    x: Array
    residual: float
    target: float
    n_iter: int
    solver: str
    contraction: float
    certificate: str
    bounds: tuple[Array, Array] | None = None
    n_found: int = 1

    @property
    def converged(self) -> bool:
        return self.residual <= floor_of(self.x, self.target)

    @property
    def error_bound(self) -> float:
        """Largest possible error of x in the maximum norm; NaN without a contraction."""
        return self.residual / (1 - self.contraction) if self.contraction < 1 else float("nan")


def residual_target(tol: float, contraction: float) -> float:
    """Return the residual that keeps the error at most tol; tol itself without contraction."""
    return tol * (1 - contraction) if contraction < 1 else tol


def prove_unique(channel: AffineChannel, row_sums: Array) -> str:
    """Return the certificate of a unique, attracting equilibrium, or refuse with rho(M)."""
    if row_sums.max() < 1:
        return "contraction"
    if leaks_everywhere(channel, row_sums):
        return "leaks"
    if collatz_bound(channel) < 1:
        return "collatz"
    radius = spectral_radius(channel)
    # At rho = 1 the numerical radius falls on either side by rounding.
    if radius < 1 - 1e-9:
        return "none"
    raise ValueError(
        f"no unique equilibrium: the spectral radius of M is {radius:.6g}, and below 1 it would "
        "attract every start; raise stubbornness or lower the mediators' shrink"
    )


def affine_equilibrium(
    network: OpinionNetwork,
    channel: AffineChannel,
    stubborn: Array,
    start: Array,
    *,
    solver: str,
    tol: float,
    max_iter: int,
    on_edges: bool,
) -> Equilibrium:
    """Solve ``x = stubborn + c + M x``; stubborn is lambda s, of shape (n,) or (n, k)."""
    row_sums = channel.absolute_row_sums()
    contraction = float(row_sums.max())
    certificate = prove_unique(channel, row_sums)
    chosen = choose_solver(solver, network, channel, contraction, on_edges)
    target = residual_target(tol, contraction)
    rhs = stubborn + (channel.constant[:, None] if stubborn.ndim == 2 else channel.constant)
    x, residual, n_iter = solve(channel, rhs, start, chosen, target, max_iter, network.strengths)
    return Equilibrium(x, residual, target, n_iter, chosen, contraction, certificate)


def curved_equilibrium(
    channel: CurvedChannel,
    stubborn: Array,
    start: Array,
    bounds: tuple[float, float],
    *,
    tol: float,
    max_iter: int,
) -> Equilibrium:
    """Iterate ``x <- stubborn + heard(x)``, and bracket the fixed points where that is possible."""
    contraction = channel.lipschitz()
    target = residual_target(tol, contraction)

    def step(x: Array) -> Array:
        return stubborn + channel.heard(x)

    x, residual, n_iter = iterate(step, start, target, max_iter)
    if residual > floor_of(x, target) and x.ndim == 1 and np.isfinite(residual):
        x, residual = polish(channel, stubborn, x, target)
    certificate = "contraction" if contraction < 1 else "none"
    low, high = (np.full_like(start, end) for end in bounds)
    found = [x] + [
        iterate(step, end, target, max_iter)[0] for end in (low, high) if contraction >= 1
    ]
    box = None
    if channel.monotone and (step(low) >= low).all() and (step(high) <= high).all():
        least, greatest = bracket(step, low, high, target, max_iter)
        box = (least, greatest)
        if certificate == "none" and float(np.max(greatest - least)) <= 10 * tol:
            certificate = "bracket"
    distinct: list[Array] = []
    for limit in found:
        if all(np.abs(limit - other).max() > 1e-6 for other in distinct):
            distinct.append(limit)
    return Equilibrium(
        x,
        residual,
        target,
        n_iter,
        "iteration",
        contraction,
        certificate,
        bounds=box,
        n_found=len(distinct),
    )
