"""The cheapest correction of a collective shift, and whom to exempt from the AI.

A correction adds d_j to the bias of author (or reader) j's messages; a linear target then moves by
``v.d`` with the leverages v of one adjoint solve, so that cancelling a shift is a linear program
with one equation: a fractional knapsack.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog
from sklearn.utils import Bunch, check_array
from sklearn.utils.validation import check_is_fitted

from .channel import AffineChannel, CurvedChannel, Side, build_channel, column, first_topic
from .equilibrium import residual_target
from .influence import leverage
from .network import OpinionNetwork, check_choice
from .solvers import choose_solver, solve, solve_adjoint

__all__ = ["ControlMixin", "Correction", "cheapest_l1", "cheapest_l2", "cheapest_many"]

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Correction:
    """A correction of the mediators' biases; made by `MediatedOpinionDynamics.control`.

    Attributes
    ----------
    d : ndarray of shape (n,)
        What is added to each user's bias.
    shift_before, shift_after : float
        Shift of the target without and with the correction, both solved for.
    cost : float
        Sum of ``cost_j |d_j|``, or the root of the sum of ``cost_j d_j^2``.
    status : str
        "optimal" (the shift is cancelled) or "bounded" (as far as bounds and budget allow).

    Examples
    --------
    >>> from equipoise.games import AffineMediator, MediatedOpinionDynamics
    >>> dynamics = MediatedOpinionDynamics(expression=AffineMediator(bias=0.1))
    >>> correction = dynamics.fit([[0, 1], [1, 0]], [0.2, 0.4]).control()
    >>> correction.status, round(correction.shift_after, 9) + 0.0
    ('optimal', 0.0)
    """

    d: Array
    shift_before: float
    shift_after: float
    cost: float
    status: str


def cheapest_l1(v: Array, shift: float, cost: Array, bound: Array, budget: float | None) -> Array:
    """Return d of least ``sum cost |d|`` with ``v.d = -shift`` and ``|d| <= bound``.

    Where that can't be had within bounds and budget, the d that cancels most. Users are taken in
    order of leverage for their cost: a fractional knapsack, exact for one equation.
    """
    d = np.zeros_like(v)
    left, money = abs(shift), np.inf if budget is None else budget
    worth = np.where(cost > 0, np.abs(v) / np.where(cost > 0, cost, 1.0), np.inf * (v != 0))
    for j in np.argsort(-worth, kind="stable"):
        if left <= 0 or money <= 0 or v[j] == 0:
            break
        size = min(left / abs(v[j]), bound[j])
        if cost[j] > 0:
            size = min(size, money / cost[j])
        d[j] = -np.sign(shift) * np.sign(v[j]) * size
        left -= size * abs(v[j])
        money -= size * cost[j]
    return d


def cheapest_l2(v: Array, shift: float, cost: Array, bound: Array, budget: float | None) -> Array:
    """Return d of least ``sum cost d^2`` with ``v.d = -shift`` and ``|d| <= bound``.

    ``d = clip(-m v / cost, -bound, bound)``, with the multiplier m found exactly: v.d is piecewise
    linear in it. A budget bounds the root of the sum.
    """

    def at(m: float) -> Array:
        return np.clip(-m * v / cost, -bound, bound)

    with np.errstate(divide="ignore", invalid="ignore"):
        kinks = np.where(v != 0, bound * cost / np.abs(v), np.inf)
    kinks = np.sort(kinks[np.isfinite(kinks)])
    sign = np.sign(shift)
    reach = np.array([abs(v @ at(sign * m)) for m in kinks])
    k = int(np.searchsorted(reach, abs(shift)))
    if k == len(kinks) and len(kinks) == np.count_nonzero(v):
        m = kinks[-1] if len(kinks) else 0.0  # all at their bounds
    else:
        start = kinks[k - 1] if k else 0.0
        free = (v != 0) & (bound * cost > start * np.abs(v))
        slope = float((v[free] ** 2 / cost[free]).sum())
        m = start + (abs(shift) - (reach[k - 1] if k else 0.0)) / slope if slope else start
    d = at(sign * m)
    if budget is not None:
        size = float(np.sqrt((cost * d**2).sum()))
        if size > budget:
            low, high = 0.0, m
            for _ in range(200):
                middle = 0.5 * (low + high)
                over = np.sqrt((cost * at(sign * middle) ** 2).sum()) > budget
                low, high = (low, middle) if over else (middle, high)
            d = at(sign * low)
    return d


def cheapest_many(
    V: Array, shifts: Array, cost: Array, bound: Array, budget: float | None
) -> Array | None:
    """Return d of least ``sum cost |d|`` that cancels several targets, or None if there is none.

    V has shape (n, m). A linear program, by HiGHS.
    """
    n = len(V)
    rows = np.hstack([V.T, -V.T])
    limits = np.concatenate([bound, bound])
    extra = {} if budget is None else {"A_ub": np.tile(cost, 2)[None, :], "b_ub": [budget]}
    found = linprog(
        np.tile(cost, 2),
        A_eq=rows,
        b_eq=-shifts,
        bounds=np.column_stack([np.zeros(2 * n), limits]),
        method="highs",
        **extra,
    )
    return found.x[:n] - found.x[n:] if found.status == 0 else None


def per_user(value: Any, n: int, name: str) -> Array:
    """Return a positive number for each user from one number or n."""
    array = np.asarray(value, dtype=float)
    if array.ndim > 1 or (array.ndim == 1 and len(array) != n) or not (array > 0).all():
        raise ValueError(f"{name}={value!r:.60}; allowed: positive, one number or one a user ({n})")
    return np.array(np.broadcast_to(array, (n,)))


class ControlMixin:
    """What can be done about a shift: corrections and exemptions."""

    network_: OpinionNetwork
    _channel: AffineChannel | CurvedChannel
    _on_edges: bool
    _expression: Side
    _perception: Side
    expression: Any
    perception: Any
    solver: str
    tol: float
    max_iter: int
    n_nodes_in_: int
    stubbornness_: Array
    innate_: Array
    shift_: Array
    equilibrium_: Array
    baseline_equilibrium_: Array
    adopters_: Array
    perceivers_: Array

    def control(
        self,
        *,
        level: str = "author",
        norm: str = "l1",
        budget: float | None = None,
        bound: float | ArrayLike | None = None,
        target: str | ArrayLike = "mean",
        cost: float | ArrayLike = 1.0,
        candidates: ArrayLike | None = None,
    ) -> Correction:
        """Find the cheapest correction of biases that cancels a shift.

        Parameters
        ----------
        level : str, default="author"
            "author": d_j is added to what author j's messages say; "reader": to what reader i
            hears, on average.
        norm : str, default="l1"
            "l1" (few users, exact by a knapsack) or "l2" (all a little, in closed form).
        budget : float, optional
            Most that the correction may cost.
        bound : float or array-like of shape (n,), optional
            Largest ``|d_j|``.
        target : "mean" or array-like of shape (n,) or (m, n), default="mean"
            Weights g of the targets g.x* whose shift is cancelled; several need "l1".
        cost : float or array-like of shape (n,), default=1.0
            Weight of ``|d_j|`` or ``d_j^2``.
        candidates : array-like of bool of shape (n,), optional
            Who may be corrected; default: who uses the AI on that side.

        Returns
        -------
        Correction
            d, the shift of the (first) target without and with it, cost and status.

        Raises
        ------
        ValueError
            For unknown options, curved mediators or mediators on edges; if several targets can't
            be cancelled together.
        """
        check_is_fitted(self)
        check_choice("level", level, ("author", "reader"))
        check_choice("norm", norm, ("l1", "l2"))
        channel = self._affine_channel("control")
        n = self.n_nodes_in_
        G = np.full((1, n), 1 / n)
        if not isinstance(target, str):
            G = np.atleast_2d(check_array(target, ensure_2d=False, input_name="target"))
            if G.shape[1] != n:
                raise ValueError(f"target has {G.shape[1]} weights; the network has {n} users")
        elif target != "mean":
            raise ValueError(f"target={target!r}; allowed: 'mean' or weights of shape (m, {n})")
        if budget is not None and not budget > 0:
            raise ValueError(f"budget={budget!r} must be positive")
        weight = per_user(cost, n, "cost")
        limit = np.full(n, np.inf) if bound is None else per_user(bound, n, "bound")
        mask = self.adopters_ if level == "author" else self.perceivers_
        if (self.expression if level == "author" else self.perception) is None:
            mask = np.zeros(n, dtype=bool)
        if candidates is not None:
            mask = np.asarray(candidates)
            if mask.shape != (n,) or mask.dtype != bool:
                raise ValueError(f"candidates must be bool of shape ({n},)")
        limit = np.where(mask, limit, 0.0)
        pi = solve_adjoint(channel, G.T, 1e-3 * self.tol * np.abs(G).max(), self.max_iter)[0]
        shifts = G @ first_topic(self.shift_)
        V = self._responses(channel, pi, level)
        if len(G) > 1:
            if norm == "l2":
                raise ValueError("norm='l2' takes one target; several need norm='l1'")
            d = cheapest_many(V, shifts, weight, limit, budget)
            if d is None:
                raise ValueError(
                    f"no correction cancels all {len(G)} targets within bound and budget; take "
                    "fewer targets, more candidates, or a wider bound"
                )
        else:
            cheapest = cheapest_l1 if norm == "l1" else cheapest_l2
            d = cheapest(V[:, 0], float(shifts[0]), weight, limit, budget)
        moved = self._forced(channel, self._forcing(channel, d, level))
        after = float(shifts[0] + G[0] @ moved)
        spent = weight @ np.abs(d) if norm == "l1" else np.sqrt(weight @ d**2)
        done = abs(after) <= max(1e-6 * abs(shifts[0]), 10 * self.tol)
        status = "optimal" if done else "bounded"
        return Correction(d, float(shifts[0]), after, float(spent), status)

    def select_exemptions(self, k: int) -> Bunch:
        """Choose authors who should do without the AI, so that the mean moves least.

        With pure bias the effects add up and the choice is optimal; else authors are taken one by
        one, by their effect to first order, and the equilibrium is solved anew after each.

        Parameters
        ----------
        k : int
            How many; at most the number of adopters.

        Returns
        -------
        Bunch
            ``indices`` (k,) in the order chosen, ``predicted`` and ``exact`` shift of the mean
            that remains.

        Raises
        ------
        ValueError
            If k is out of range, or mediators are curved or on edges.
        """
        check_is_fitted(self)
        self._affine_channel("select_exemptions")
        users = 0 if self.expression is None else int(self.adopters_.sum())
        if not 1 <= k <= users:
            raise ValueError(f"k={k}; allowed: 1 to {users}, the number of adopters")
        expression = self._expression
        base = first_topic(self.baseline_equilibrium_)
        x, mask = first_topic(self.equilibrium_), self.adopters_.copy()
        predicted = float((x - base).mean())
        a, b = expression.coefficients()
        chosen: list[int] = []
        adding = bool(np.all(a == 1))
        while len(chosen) < k:
            channel = self._with_adopters(mask)
            mean = np.full(len(x), 1 / len(x))
            pi = solve_adjoint(channel, mean, 1e-3 * self.tol / len(x), self.max_iter)[0]
            effect = self._responses(channel, pi, "author") * ((1 - a) * x - b)
            left = np.flatnonzero(mask)
            order = left[np.argsort(effect[left] * np.sign(predicted), kind="stable")]
            for j in order[: k if adding else 1]:
                chosen.append(int(j))
                mask[j] = False
                predicted += float(effect[j])
            channel = self._with_adopters(mask)
            stubborn = self.stubbornness_ * first_topic(self.innate_)
            x = self._forced(channel, stubborn + channel.constant)
            if not adding and len(chosen) < k:
                predicted = float((x - base).mean())
        return Bunch(indices=np.array(chosen), predicted=predicted, exact=float((x - base).mean()))

    def _affine_channel(self, method: str) -> AffineChannel:
        if isinstance(self._channel, CurvedChannel) or self._on_edges:
            raise ValueError(
                f"{method} needs affine mediators on authors and readers; for a curve, fit with "
                "the AffineMediator that is closest to it"
            )
        return self._channel

    def _with_adopters(self, mask: Array) -> AffineChannel:
        """Return the channel of other adopters."""
        side = Side(self._expression.mediator, mask)
        channel = build_channel(self.network_, side, self._perception, self.stubbornness_)
        assert isinstance(channel, AffineChannel)  # both mediators are affine
        return channel

    def _hearing(self, channel: AffineChannel) -> Array:
        """Return (1 - lambda) for who hears somebody, else 0."""
        some = np.diff(self.network_.weights.indptr) > 0
        some[channel.uniform] = True
        return (1 - self.stubbornness_) * some

    def _responses(self, channel: AffineChannel, pi: Array, level: str) -> Array:
        """Return the targets' response to a unit of each user's bias."""
        if level == "reader":
            return column(self._hearing(channel), pi) * pi
        reader = self._perception.coefficients()[0]
        return leverage(self.network_, 1 - self.stubbornness_, reader, pi, channel.uniform)

    def _forcing(self, channel: AffineChannel, d: Array, level: str) -> Array:
        """Return what the biases d add to what each user hears, times 1 - lambda."""
        if level == "reader":
            return self._hearing(channel) * d
        heard = self.network_.weights @ d
        heard[channel.uniform] += d.mean()
        return (1 - self.stubbornness_) * self._perception.coefficients()[0] * heard

    def _forced(self, channel: AffineChannel, rhs: Array) -> Array:
        """Return ``(I - M)^-1 rhs``."""
        contraction = float(channel.absolute_row_sums().max())
        chosen = choose_solver(self.solver, self.network_, channel, contraction, False)
        target = residual_target(self.tol, contraction)
        start = np.zeros_like(rhs)
        return solve(channel, rhs, start, chosen, target, self.max_iter, self.network_.strengths)[0]
