"""Subsidies: the mediator pays for designs, as little as makes a profile an equilibrium.

k(z) = sum_i max_b [u_i(b, z_{-i}) - u_i(z)] implements a pure profile z; promises at profiles that
aren't played cost nothing but liability [1]. Paid recommendations buy obedience: with w_ir the
expected bonus for obeying r, a program linear in (pi, w) gives the best welfare a budget buys,
which is concave and piecewise linear in the budget.
"""

from collections.abc import Sequence
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval, StrOptions

from .certificates import certify_dominance, certify_obedience, certify_profile
from .deviations import across, implementation_costs, obedience_rows, own_line, player_rows
from .mediator import BaseMediator, Outcome
from .meta_game import AgentDesignGame
from .programs import as_distribution, ones_row, payoff_range, solve_program
from .uncertainty import difference_bounds

__all__ = ["SubsidyMediator", "budgeted_policy", "dominance_payments", "subsidy_liability"]

Array = np.ndarray


def others_best(u: Array, i: int, own: int) -> Array:
    """max_{b != own} u_i(b, .), of shape (M / d_i,); -inf where there is no other design."""
    rest = np.delete(player_rows(u, i), own, axis=0)
    return rest.max(axis=0) if len(rest) else np.full(rest.shape[1], -np.inf)


def dominance_payments(payoffs: Array, z: Sequence[int], margin: float) -> Array:
    """The least payments, everywhere at once, that make z_i better by `margin` against everything.

    Each payment has a lower bound of its own, so these minimise the realised cost and every
    liability together.

    Returns
    -------
    ndarray of shape (n, d_0, ..., d_{n-1})
        Zero where stakeholder i doesn't deploy z_i.
    """
    payments = np.zeros_like(payoffs)
    for i, u in enumerate(payoffs):
        need = others_best(u, i, z[i]) - player_rows(u, i)[z[i]] + margin
        at = np.moveaxis(payments[i], i, 0)
        at[z[i]] = np.maximum(need, 0.0).reshape(at.shape[1:])
    return payments


def subsidy_liability(payoffs: Array, z: Sequence[int], margin: float) -> float:
    """The largest total payment that `dominance_payments` could ever owe."""
    return float(dominance_payments(payoffs, z, margin).sum(axis=0).max())


def needed_payments(payoffs: Array, z: tuple[int, ...], margin: float) -> Array:
    """What each stakeholder must be paid at z so that it is an equilibrium: shape (n,)."""
    at = np.zeros(len(payoffs))
    for i, u in enumerate(payoffs):
        line = np.delete(u[own_line(z, i)], z[i])
        if line.size:
            at[i] = max(0.0, float(line.max() - u[z]) + margin)
    return at


def budgeted_policy(
    payoffs: Array, weights: Array, budget: float | None, tradeoff: float
) -> tuple[Array, list[Array], float, Array]:
    """The paid recommendations of largest welfare, and among these the cheapest.

    Parameters
    ----------
    payoffs : ndarray of shape (n, d_0, ..., d_{n-1})
        Payoffs.
    weights : ndarray of shape (n,)
        Weights of the welfare.
    budget : float or None
        Largest expected payment.
    tradeoff : float
        Welfare that a unit of payment must at least bring.

    Returns
    -------
    policy : ndarray of shape (d_0, ..., d_{n-1})
        Joint distribution.
    bonuses : list of ndarray of shape (d_i,)
        Expected payment for obeying each design.
    price : float
        Welfare that one more unit of budget would bring.
    conditions : ndarray of shape (n_rows,)
        Shadow prices of the obedience conditions.
    """
    shape = payoffs.shape[1:]
    M, total = int(np.prod(shape)), sum(shape)
    scale = payoff_range(payoffs)
    rows = obedience_rows(payoffs / scale, "ce")
    owner = np.concatenate(
        [
            np.repeat(np.arange(d), d - 1) + start
            for d, start in zip(shape, offsets(shape), strict=True)
        ]
    ).astype(int)
    bonus = sp.csr_array(
        (-np.ones(len(owner)), (np.arange(len(owner)), owner)), shape=(len(owner), total)
    )
    A = sp.hstack([rows, bonus], format="csr")
    b = np.zeros(A.shape[0])
    paid = np.r_[np.zeros(M), np.ones(total)]
    if budget is not None:
        A = sp.csr_array(sp.vstack([A, sp.csr_array(paid[None])]))
        b = np.r_[b, budget / scale]
    W = np.tensordot(weights, payoffs, axes=1).ravel() / scale
    gain = np.r_[W, np.zeros(total)] - tradeoff * paid
    answer = solve_program(-gain, A, b, ones_row(M, total), np.ones(1))
    prices = answer.ineqlin.marginals
    price = -float(prices[-1]) if budget is not None else 0.0
    # Of all optima take the cheapest; the small allowance keeps the program feasible.
    floor = sp.csr_array(np.vstack([-gain]))
    second = solve_program(
        paid,
        sp.csr_array(sp.vstack([A, floor])),
        np.r_[b, answer.fun + 1e-9 * max(1.0, abs(answer.fun))],
        ones_row(M, total),
        np.ones(1),
    )
    x = (answer if second is None else second).x
    policy = as_distribution(x[:M], tuple(shape))
    # The least bonuses that the rounded policy needs.
    bonuses = []
    for i, u in enumerate(payoffs):
        earned = player_rows(policy, i) @ player_rows(u, i).T
        bonuses.append(np.maximum(earned.max(axis=1) - np.diag(earned), 0.0))
    return policy, bonuses, price, -prices[: rows.shape[0]] * scale


def offsets(shape: Sequence[int]) -> list[int]:
    return [int(k) for k in np.r_[0, np.cumsum(shape)[:-1]]]


class SubsidyMediator(BaseMediator):
    """Pay stakeholders so that a good profile of designs becomes an equilibrium.

    Parameters
    ----------
    target : "optimal", "correlated" or sequence of length n, default="optimal"
        A profile (designs or indices); the affordable one that maximises welfare minus `tradeoff`
        times cost minus `liability_weight` times liability; or paid private recommendations.
    mode : {"nash", "dominant"}, default="nash"
        Whether the design must be best against the others' target designs, or against everything.
        "correlated" knows only the first.
    budget : float, default=None
        Largest expected realised payment; None is no limit.
    tradeoff : float, default=0.0
        Welfare that a unit of payment must at least bring.
    liability_weight : float, default=0.0
        Weight of the largest total promise in the choice of an optimal target; "dominant" only.
    margin : float, default=0.0
        By how much the target designs must be better. Pure targets only.
    robust : bool, default=False
        Pay for the upper Welch bounds of the gains (at the game's confidence) instead of their
        estimates: the target is then an equilibrium of the true game with that confidence. Pure
        targets with mode="nash".

    Attributes
    ----------
    policy_ : ndarray of shape (d_0, ..., d_{n-1}) or None
        Joint distribution that is brought about; None if the budget doesn't reach.
    target_ : tuple or None
        The profile of designs; None with "correlated" or if the budget doesn't reach.
    payments_ : ndarray of shape (n, d_0, ..., d_{n-1}) or None
        What is promised at each profile; None with "correlated".
    bonuses_ : list of ndarray of shape (d_i,) or None
        With "correlated": payment whenever a recommendation is obeyed.
    payoffs_ : ndarray of shape (n,)
        Expected payoffs without the payments.
    welfare_, status_quo_welfare_, gain_ : float
        Welfare of the policy, of the worst equilibrium without a mediator, and their difference.
    cost_, liability_ : float
        Expected payment, and the largest total that is promised.
    feasible_, exact_ : bool
        Whether there is a policy, and whether it is proved best.
    certificate_ : Certificate
        The largest gain from disobeying in the paid game.
    mediated_game_ : AgentDesignGame or None
        The game with payments; None with "correlated" or if the budget doesn't reach.
    duals_ : dict
        With "correlated": "budget", the welfare one more unit of budget brings, and "conditions".
    game_ : AgentDesignGame
        What was fitted.

    References
    ----------
    .. [1] D. Monderer, M. Tennenholtz, "K-implementation", Journal of Artificial Intelligence
       Research 21, 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games import SubsidyMediator
    >>> prisoners = np.array([[[3.0, 0.0], [5.0, 1.0]], [[3.0, 5.0], [0.0, 1.0]]])
    >>> mediator = SubsidyMediator().fit(prisoners)
    >>> mediator.target_, mediator.cost_, mediator.welfare_
    (('0', '0'), 4.0, 6.0)
    >>> round(SubsidyMediator("correlated", budget=1.0).fit(prisoners).welfare_, 6)
    5.0
    """

    _parameter_constraints: ClassVar[dict] = {
        "target": [StrOptions({"optimal", "correlated"}), "array-like", tuple],
        "mode": [StrOptions({"nash", "dominant"})],
        "budget": [Interval(Real, 0, None, closed="left"), None],
        "tradeoff": [Interval(Real, 0, None, closed="left")],
        "liability_weight": [Interval(Real, 0, None, closed="left")],
        "margin": [Interval(Real, 0, None, closed="left")],
        "robust": ["boolean"],
    }

    def __init__(
        self,
        target: Any = "optimal",
        mode: str = "nash",
        budget: float | None = None,
        tradeoff: float = 0.0,
        liability_weight: float = 0.0,
        margin: float = 0.0,
        robust: bool = False,
    ) -> None:
        self.target = target
        self.mode = mode
        self.budget = budget
        self.tradeoff = tradeoff
        self.liability_weight = liability_weight
        self.margin = margin
        self.robust = robust

    def _mediate(self, game: AgentDesignGame) -> Outcome:
        if self.robust and self.mode == "dominant":
            raise ValueError("robust=True takes mode='nash' only")
        if self.liability_weight and (self.mode == "nash" or self.target != "optimal"):
            raise ValueError("liability_weight takes mode='dominant' and target='optimal' only")
        if isinstance(self.target, str) and self.target == "correlated":
            return self._correlated(game)
        if not isinstance(self.target, str):
            if self.tradeoff:
                raise ValueError("tradeoff needs a choice: target 'optimal' or 'correlated'")
            return self._pay(game, game.profile_index(self.target))
        return self._pay(game, self._best_target(game))

    def _payments(self, game: AgentDesignGame, z: tuple[int, ...]) -> Array:
        """Promises at every profile."""
        u = game.payoffs_
        if self.mode == "dominant":
            return dominance_payments(u, z, self.margin)
        if self.robust:
            bounds = difference_bounds(
                u, game.stderr_, game.counts_, z, 1 - game.confidence, game.payoff_ends_
            )
            need = np.array(
                [
                    max(0.0, max(np.delete(k, z[i]), default=0.0) + self.margin)
                    for i, k in enumerate(bounds)
                ]
            )
        else:
            need = needed_payments(u, z, self.margin)
        payments = np.zeros_like(u)
        payments[across(z)] = need
        return payments

    def _best_target(self, game: AgentDesignGame) -> tuple[int, ...]:
        """The affordable profile of the largest value; of least cost if none is affordable."""
        u = game.payoffs_
        if self.mode == "nash" and not self.robust and not self.margin:
            k = implementation_costs(u)
        else:
            k = np.array(
                [self._payments(game, z)[across(z)].sum() for z in np.ndindex(u.shape[1:])]
            ).reshape(u.shape[1:])
        slack = 1e-9 * payoff_range(u)
        value = game.welfare() - self.tradeoff * k
        if self.liability_weight:
            owed = [subsidy_liability(u, z, self.margin) for z in np.ndindex(k.shape)]
            value = value - self.liability_weight * np.array(owed).reshape(k.shape)
        affordable = k <= (np.inf if self.budget is None else self.budget + slack)
        if not affordable.any():
            return tuple(int(a) for a in np.unravel_index(int(k.argmin()), k.shape))
        top = value[affordable].max()
        best = affordable & (value >= top - slack)
        cheapest = np.where(best, k, np.inf)
        return tuple(int(a) for a in np.unravel_index(int(cheapest.argmin()), k.shape))

    def _pay(self, game: AgentDesignGame, z: tuple[int, ...]) -> Outcome:
        u = game.payoffs_
        payments = self._payments(game, z)
        cost = float(payments[across(z)].sum())
        check = certify_dominance if self.mode == "dominant" else certify_profile
        slack = 1e-9 * payoff_range(u)
        if self.budget is not None and cost > self.budget + slack:
            unpaid = np.zeros_like(u)
            gains = np.argsort(-payments[across(z)])
            who = game.stakeholders_[int(gains[0])]
            return Outcome(
                None,
                partial(check, profile=z, payments=unpaid),
                reason=(
                    f"the cheapest way to {game.profile_names(z)} costs {cost:.6g}, the budget is "
                    f"{self.budget:.6g}; {who} asks for most"
                ),
                extra={
                    "target_": None,
                    "payments_": None,
                    "bonuses_": None,
                    "mediated_game_": None,
                },
            )
        policy = np.zeros(u.shape[1:])
        policy[z] = 1.0
        return Outcome(
            policy,
            partial(check, profile=z, payments=payments),
            cost=cost,
            liability=float(payments.sum(axis=0).max()),
            extra={
                "target_": game.profile_names(z),
                "payments_": payments,
                "bonuses_": None,
                "mediated_game_": paid_game(game, payments),
            },
        )

    def _correlated(self, game: AgentDesignGame) -> Outcome:
        if self.mode == "dominant" or self.robust or self.margin:
            raise ValueError(
                "target='correlated' takes mode='nash', margin=0 and robust=False only"
            )
        u = game.payoffs_
        policy, expected, price, conditions = budgeted_policy(
            u, game.weights_, self.budget, self.tradeoff
        )
        told = [player_rows(policy, i).sum(axis=1) for i in range(len(u))]
        bonuses = [
            np.divide(w, p, out=np.zeros_like(w), where=p > 0)
            for w, p in zip(expected, told, strict=True)
        ]
        owed = sum(
            np.moveaxis(np.broadcast_to(p, (*np.delete(policy.shape, i), len(p))), -1, i)
            for i, p in enumerate(bonuses)
        )
        return Outcome(
            policy,
            partial(certify_obedience, policy=policy, bonuses=expected),
            cost=float(sum(w.sum() for w in expected)),
            liability=float(np.where(policy > 0, owed, 0.0).max()),
            duals={"budget": price, "conditions": conditions},
            extra={
                "target_": None,
                "payments_": None,
                "bonuses_": bonuses,
                "mediated_game_": None,
            },
        )


def paid_game(game: AgentDesignGame, payments: Array) -> AgentDesignGame:
    """The game in which payoffs include the payments."""
    paid = AgentDesignGame.from_payoffs(
        game.payoffs_ + payments,
        designs=game.designs_,
        stakeholders=game.stakeholders_,
        weights=game.weights_,
    )
    return paid
