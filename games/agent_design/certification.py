"""Certification: only some designs may be deployed.

A pure profile z becomes an equilibrium exactly when the designs {(i, b): u_i(b, z_{-i}) > u_i(z)}
are banned. That gives the best equilibrium a number of bans can reach at once; the worst of each
sub-game is found by enumeration.
"""

import warnings
from collections.abc import Iterator
from functools import partial
from itertools import product
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from .certificates import Certificate, certify_obedience, certify_profile
from .deviations import across, obedience_rows, own_line, pure_equilibria
from .mediator import BaseMediator, Outcome
from .meta_game import AgentDesignGame
from .objectives import extreme_distribution
from .programs import payoff_range

__all__ = ["CertificationMediator", "banning_costs", "profitable_designs"]

Array = np.ndarray
LARGEST = {"pure": 2**20, "ce": 2000}
LARGEST_MASKS = 2**28


def profitable_designs(payoffs: Array, z: tuple[int, ...]) -> list[Array]:
    """For each stakeholder a mask of the designs that beat z_i: the least bans that make z Nash."""
    return [u[own_line(z, i)] > u[z] + 1e-12 * payoff_range(payoffs) for i, u in enumerate(payoffs)]


def banning_costs(payoffs: Array, costs: list[Array]) -> Array:
    """Cost of banning what is profitable at each profile: shape (d_0, ..., d_{n-1})."""
    total = np.zeros(payoffs.shape[1:])
    slack = 1e-12 * payoff_range(payoffs)
    for i, u in enumerate(payoffs):
        for b, cost in enumerate(costs[i]):
            total += cost * (np.take(u, [b], axis=i) > u + slack)
    return total


def allowed_sets(d: int) -> Array:
    """All non-empty sets of d designs as rows of a mask, all designs first, in counting order."""
    codes = np.arange(2**d - 1, 0, -1)
    return (codes[:, None] >> np.arange(d)[::-1]) & 1 == 1


def restricted_certificate(
    payoffs: Array,
    allowed: list[Array],
    profile: tuple[int, ...] | None,
    policy: Array | None,
    tempting: Array | None = None,
) -> Certificate:
    """Check a profile, or a distribution, in the game with the allowed designs alone."""
    kept = [np.flatnonzero(own) for own in allowed]
    sub = payoffs[across(np.ix_(*kept))]
    lured = None if tempting is None else tempting[across(np.ix_(*kept))]
    if profile is not None:
        place = tuple(int(np.searchsorted(k, a)) for k, a in zip(kept, profile, strict=True))
        found = certify_profile(sub, place, tempting=lured)
    else:
        assert policy is not None
        found = certify_obedience(sub, policy[np.ix_(*kept)], tempting=lured)
    if not found.worst_deviation:
        return found
    i, *designs = found.worst_deviation
    named = (i, *(int(kept[i][a]) for a in designs))
    return Certificate(found.ok, found.max_violation, named, found.tolerance)


class CertificationMediator(BaseMediator):
    """Ban designs so that the equilibrium among the rest is good.

    Parameters
    ----------
    max_bans : float, default=None
        Largest total cost of bans; None is no limit.
    ban_costs : list of array-like of shape (d_i,), default=None
        Cost of banning each design of each stakeholder; None is 1 each.
    selection : {"worst", "best"}, default="worst"
        Whether the worst or the best equilibrium of a sub-game counts.
    concept : {"pure", "ce"}, default="pure"
        Equilibrium concept. Sub-games without a pure equilibrium are skipped.
    symmetric : bool, default=False
        Whether all stakeholders must be banned the same designs.

    Attributes
    ----------
    bans_ : list of tuple
        (stakeholder, design) pairs.
    allowed_ : list of ndarray of bool of shape (d_i,)
        What each may still deploy.
    n_skipped_ : int
        Sub-games without a pure equilibrium.
    policy_ : ndarray of shape (d_0, ..., d_{n-1}) or None
        The selected equilibrium of the sub-game; None if no sub-game has one.
    payoffs_ : ndarray of shape (n,)
        Expected payoffs.
    welfare_, status_quo_welfare_, gain_ : float
        Welfare of the policy, of the worst equilibrium without a mediator, and their difference.
    cost_, liability_ : float
        Zero: nothing is paid; bans have costs of their own.
    ban_cost_ : float
        Total cost of the bans.
    feasible_, exact_ : bool
        Whether there is a policy, and whether all sub-games were looked at.
    certificate_ : Certificate
        The largest gain from another allowed design.
    mediated_game_ : AgentDesignGame or None
        The game of the allowed designs; None without a policy.
    duals_ : dict
        Empty.
    game_ : AgentDesignGame
        What was fitted.

    References
    ----------
    .. [1] E. Shapira, M. Tennenholtz, R. Reichart, "The Poisoned Apple effect", 2026.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games import CertificationMediator
    >>> prisoners = np.array([[[3.0, 0.0], [5.0, 1.0]], [[3.0, 5.0], [0.0, 1.0]]])
    >>> mediator = CertificationMediator().fit(prisoners)
    >>> mediator.bans_, mediator.welfare_
    ([('player 0', '1'), ('player 1', '1')], 6.0)
    """

    _parameter_constraints: ClassVar[dict] = {
        "max_bans": [Interval(Real, 0, None, closed="left"), None],
        "ban_costs": ["array-like", None],
        "selection": [StrOptions({"worst", "best"})],
        "concept": [StrOptions({"pure", "ce"})],
        "symmetric": ["boolean"],
    }

    def __init__(
        self,
        max_bans: float | None = None,
        ban_costs: Any = None,
        selection: str = "worst",
        concept: str = "pure",
        symmetric: bool = False,
    ) -> None:
        self.max_bans = max_bans
        self.ban_costs = ban_costs
        self.selection = selection
        self.concept = concept
        self.symmetric = symmetric

    def _mediate(self, game: AgentDesignGame) -> Outcome:
        u, shape = game.payoffs_, game.counts_.shape
        if self.symmetric and len(set(game.designs_)) != 1:
            raise ValueError("symmetric=True needs one design list for all stakeholders")
        costs = self._costs(shape)
        limit = np.inf if self.max_bans is None else self.max_bans + 1e-9
        exact, skipped = True, 0
        if self.concept == "pure" and self.selection == "best" and not self.symmetric:
            total = banning_costs(u, costs)
            W = np.where(total <= limit, game.welfare(), -np.inf)
            found = None
            if np.isfinite(W.max()):
                ties = W >= W.max() - 1e-12 * payoff_range(u)
                k = int(np.where(ties, total, np.inf).argmin())
                z = tuple(int(a) for a in np.unravel_index(k, shape))
                found = ([~bad for bad in profitable_designs(u, z)], z, None)
        else:
            n_games = (
                2.0 ** shape[0] - 1
                if self.symmetric
                else float(np.prod([2.0**d - 1 for d in shape]))
            )
            cells = sum(2.0**d for d in shape) * game.counts_.size  # of the masks it keeps
            exact = n_games <= LARGEST[self.concept] and cells <= LARGEST_MASKS
            search = self._enumerate if exact else self._greedy
            found, skipped = search(game, costs, limit)
        if not exact:
            warnings.warn(
                f"the game has {n_games:.3g} sub-games, too many to look at all: "
                "a greedy search bans one design at a time, and may miss the best set",
                ConvergenceWarning,
                stacklevel=4,
            )
        if found is None:
            full = [np.ones(d, dtype=bool) for d in shape]
            return Outcome(
                None,
                partial(
                    restricted_certificate,
                    allowed=full,
                    profile=None,
                    policy=np.full(shape, 1.0 / game.counts_.size),
                ),
                exact=exact,
                reason="no sub-game within the limit has a pure equilibrium",
                extra={
                    "bans_": [],
                    "allowed_": full,
                    "n_skipped_": skipped,
                    "ban_cost_": 0.0,
                    "mediated_game_": None,
                },
            )
        allowed, z, policy = found
        if policy is None:
            policy = np.zeros(shape)
            policy[z] = 1.0
        place = np.ix_(*[np.flatnonzero(own) for own in allowed])
        restricted = AgentDesignGame.from_payoffs(
            u[across(place)],
            designs=[
                [a for a, ok in zip(own, keep, strict=True) if ok]
                for own, keep in zip(game.designs_, allowed, strict=True)
            ],
            stakeholders=game.stakeholders_,
            weights=game.weights_,
        )
        return Outcome(
            policy,
            partial(restricted_certificate, allowed=allowed, profile=z, policy=policy),
            exact=exact,
            extra={
                "bans_": [
                    (who, a)
                    for who, own, keep in zip(
                        game.stakeholders_, game.designs_, allowed, strict=True
                    )
                    for a, ok in zip(own, keep, strict=True)
                    if not ok
                ],
                "allowed_": allowed,
                "n_skipped_": skipped,
                "ban_cost_": float(sum(c[~k].sum() for c, k in zip(costs, allowed, strict=True))),
                "mediated_game_": restricted,
            },
        )

    def _costs(self, shape: tuple[int, ...]) -> list[Array]:
        if self.ban_costs is None:
            return [np.ones(d) for d in shape]
        costs = [np.asarray(own, dtype=float) for own in self.ban_costs]
        if tuple(c.shape for c in costs) != tuple((d,) for d in shape):
            raise ValueError(
                f"ban_costs must hold arrays of lengths {list(shape)}, "
                f"got shapes {[c.shape for c in costs]}"
            )
        if any(not np.isfinite(c).all() or (c < 0).any() for c in costs):
            raise ValueError("ban_costs must be finite and not negative")
        return costs

    def _value(
        self, game: AgentDesignGame, allowed: list[Array]
    ) -> tuple[float, tuple[int, ...] | None, Array | None] | None:
        """Welfare, profile and distribution of the selected equilibrium of one sub-game."""
        kept = [np.flatnonzero(own) for own in allowed]
        place = np.ix_(*kept)
        sub, W = game.payoffs_[across(place)], game.welfare()[place]
        if self.concept == "pure":
            mask = pure_equilibria(sub)
            if not mask.any():
                return None
            best = self.selection == "best"
            W = np.where(mask, W, -np.inf if best else np.inf)
            k = np.unravel_index(int(W.argmax() if best else W.argmin()), W.shape)
            profile = tuple(int(own[a]) for own, a in zip(kept, k, strict=True))
            return float(W[k]), profile, None
        rows = obedience_rows(sub / payoff_range(sub), "ce")
        found = extreme_distribution(
            sub,
            game.weights_,
            "utilitarian",
            rows,
            np.zeros(rows.shape[0]),
            self.selection == "best",
        )
        if found is None:
            return None
        policy = np.zeros(game.counts_.shape)
        policy[place] = found[0]
        return float((W * found[0]).sum()), None, policy

    def _enumerate(
        self, game: AgentDesignGame, costs: list[Array], limit: float
    ) -> tuple[Any, int]:
        """The best sub-game; ties go to fewer bans, then to the first in enumeration."""
        sets = [allowed_sets(d) for d in game.counts_.shape]
        prices = [(~s) @ c for s, c in zip(sets, costs, strict=True)]
        n = len(sets)
        if self.symmetric:
            combos = np.repeat(np.arange(len(sets[0]))[:, None], n, axis=1)
        else:
            counts = [len(s) for s in sets]
            every = np.arange(int(np.prod(counts)))
            combos = np.stack(np.unravel_index(every, counts, order="F"), axis=1)
        price = np.sum([p[k] for p, k in zip(prices, combos.T, strict=True)], axis=0)
        combos = combos[price <= limit]
        if self.concept == "pure":
            values, skipped = self._pure_values(game, sets, combos)
        else:
            found = [
                self._value(game, [s[k] for s, k in zip(sets, combo, strict=True)])
                for combo in combos
            ]
            values, skipped = np.array([-np.inf if f is None else f[0] for f in found]), 0
        if not np.isfinite(values).any():
            return None, skipped
        bans = np.sum([(~s).sum(axis=1)[k] for s, k in zip(sets, combos.T, strict=True)], axis=0)
        slack = 1e-9 * payoff_range(game.payoffs_)
        ties = np.flatnonzero(values >= values.max() - slack)
        chosen = combos[ties[bans[ties].argmin()]]
        allowed = [s[k] for s, k in zip(sets, chosen, strict=True)]
        selected = self._value(game, allowed)
        assert selected is not None
        return (allowed, selected[1], selected[2]), skipped

    def _pure_values(
        self, game: AgentDesignGame, sets: list[Array], combos: Array
    ) -> tuple[Array, int]:
        """Selected welfare of each sub-game, -inf where it has no pure equilibrium."""
        u, shape = game.payoffs_, game.counts_.shape
        stable = []  # for each player and set: his design is allowed and a best allowed reply
        for i, own in enumerate(sets):
            A = np.moveaxis(u[i], i, 0)
            masks = np.empty((len(own), *shape), dtype=bool)
            for k, keep in enumerate(own):
                good = (A[keep].max(axis=0) <= A) & keep.reshape(-1, *[1] * (A.ndim - 1))
                masks[k] = np.moveaxis(good, 0, i)
            stable.append(masks.reshape(len(own), -1))
        W = game.welfare().ravel()
        values = np.empty(len(combos))
        step = max(1, 2**24 // W.size)
        best = self.selection == "best"
        for start in range(0, len(combos), step):
            part = combos[start : start + step]
            mask = stable[0][part[:, 0]]
            for i in range(1, len(sets)):
                mask &= stable[i][part[:, i]]
            if best:
                chosen = np.where(mask, W, -np.inf).max(axis=1)
            else:
                chosen = np.where(mask, W, np.inf).min(axis=1)
                chosen[np.isinf(chosen)] = -np.inf
            values[start : start + step] = chosen
        return values, int(np.isinf(values).sum())

    def _greedy(self, game: AgentDesignGame, costs: list[Array], limit: float) -> tuple[Any, int]:
        """Ban one design at a time (for all stakeholders if symmetric) while welfare rises."""
        shape = game.counts_.shape
        allowed = [np.ones(d, dtype=bool) for d in shape]
        best, skipped = self._value(game, allowed), 0
        improved = True
        while improved:
            improved, step = False, None
            for trial in self._smaller(allowed):
                if sum(c[~k].sum() for c, k in zip(costs, trial, strict=True)) > limit:
                    continue
                found = self._value(game, trial)
                skipped += found is None
                if found is not None and (best is None or found[0] > best[0] + 1e-12):
                    best, step = found, trial
            if step is not None:
                allowed, improved = step, True
        return (None if best is None else (allowed, best[1], best[2])), skipped

    def _smaller(self, allowed: list[Array]) -> Iterator[list[Array]]:
        roles = [range(len(allowed))] if self.symmetric else [[i] for i in range(len(allowed))]
        for who, a in product(roles, range(max(len(own) for own in allowed))):
            trial = [own.copy() for own in allowed]
            if any(a >= len(trial[i]) or not trial[i][a] or trial[i].sum() == 1 for i in who):
                continue
            for i in who:
                trial[i][a] = False
            yield trial
