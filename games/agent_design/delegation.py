"""Delegation: stakeholders hand the choice of design over to a mediator.

If all delegate, c_N is played; if only i doesn't, the others' designs are drawn from c_{N-i}. All
delegate in equilibrium iff E_{c_N} u_i >= E_{c_{N-i}} u_i(b, .) for all i, b. With the harshest
responses the right side is the minimax value v_i = min_c max_b E_c u_i(b, .), and exactly the c_N
with E u_i >= v_i can be had. Strong stability asks the same of every coalition [2], by a MILP.
"""

import warnings
from collections.abc import Mapping
from functools import partial
from itertools import combinations, product
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from .certificates import certify_delegation, certify_strong
from .deviations import obedience_rows, player_rows
from .fairness import POLICY_OBJECTIVES, best_policy
from .mediator import BaseMediator, Outcome
from .meta_game import AgentDesignGame
from .objectives import profile_welfare
from .programs import as_distribution, payoff_range
from .punishments import given_response, independent_response, minimax_response
from .solver import status_quo

__all__ = ["DelegationMediator"]

Array = np.ndarray
LARGEST_STRONG = 500


def strong_delegation(
    payoffs: Array, welfare: Array, max_coalition: int
) -> tuple[Array, dict[tuple[int, ...], Array]] | None:
    """The best c_N, and responses c_R for each set R of remaining delegators; None if infeasible.

    For every coalition T and joint design a_T some member i in T has z = 1, which forces
    E_{c_N} u_i >= E_{c_{N-T}} u_i(a_T, .).
    """
    n, *shape = payoffs.shape
    scale = payoff_range(payoffs)
    u = (payoffs - payoffs.min()) / scale
    M = int(np.prod(shape))
    remaining = [
        tuple(i for i in range(n) if i not in T)
        for size in range(1, max_coalition + 1)
        for T in combinations(range(n), size)
    ]
    place, offset = {}, M
    for R in remaining:
        if R and R not in place:
            length = int(np.prod([shape[i] for i in R]))
            place[R] = slice(offset, offset + length)
            offset += length
    first_binary, rows, columns, values, low = offset, [], [], [], []
    n_rows = 0

    def add_row(entries: list[tuple[Array, Array]], bound: float) -> None:
        nonlocal n_rows
        for column, value in entries:
            rows.append(np.full(len(column), n_rows))
            columns.append(column)
            values.append(value)
        low.append(bound)
        n_rows += 1

    everything = np.arange(M)
    for size in range(1, max_coalition + 1):
        for T in combinations(range(n), size):
            R = tuple(i for i in range(n) if i not in T)
            for joint in product(*[range(shape[i]) for i in T]):
                z = np.arange(offset, offset + size)
                offset += size
                add_row([(z, np.ones(size))], 1.0)
                for k, i in enumerate(T):
                    at = [slice(None)] * n
                    for j, a in zip(T, joint, strict=True):
                        at[j] = a  # type: ignore[call-overload]
                    met = u[i][tuple(at)]
                    entries = [(everything, u[i].ravel()), (z[k : k + 1], np.array([-1.0]))]
                    bound = -1.0
                    if R:
                        entries.append((np.arange(place[R].start, place[R].stop), -met.ravel()))
                    else:
                        bound += float(met)
                    add_row(entries, bound)
    for block in [slice(0, M), *place.values()]:
        add_row([(np.arange(block.start, block.stop), np.ones(block.stop - block.start))], 1.0)
    n_simplex = 1 + len(place)
    matrix = sp.csr_array(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))),
        shape=(n_rows, offset),
    )
    upper = np.full(n_rows, np.inf)
    upper[-n_simplex:] = 1.0
    objective = np.zeros(offset)
    objective[:M] = -welfare.ravel() / payoff_range(welfare)
    integrality = np.zeros(offset)
    integrality[first_binary:] = 1
    answer: Any = milp(
        objective,
        constraints=LinearConstraint(matrix, np.array(low), upper),
        integrality=integrality,
        bounds=Bounds(0.0, 1.0),
        options={"mip_rel_gap": 1e-9},
    )
    if answer.x is None:
        return None
    policy = as_distribution(answer.x[:M], tuple(shape))
    responses = {
        R: as_distribution(answer.x[block], tuple(shape[i] for i in R))
        for R, block in place.items()
    }
    return policy, responses


class DelegationMediator(BaseMediator):
    """Choose designs for all who delegate, so that delegating is an equilibrium.

    Parameters
    ----------
    punishment : {"minimax", "independent", "none", "nash"} or dict, default="minimax"
        What the others deploy when stakeholder i doesn't delegate: what hurts him most, drawn
        jointly, or each for himself (for three or more a search finds it: `exact_` may be False);
        their part of the policy, as if nothing had happened (coarse correlated equilibrium); the
        status quo; or for each i (index) an array over the others' designs.
    stability : {"unilateral", "strong"}, default="unilateral"
        Whether single stakeholders, or coalitions too, must have no reason to leave. "strong"
        chooses all responses itself, so it takes punishment="minimax" only; up to 4 stakeholders
        and 500 profiles.
    objective : str or callable, default="utilitarian"
        What is maximised, as for `CorrelatedMediator`; "strong" takes "utilitarian" and callables.
    max_coalition : int, default=None
        Largest coalition of "strong"; None is everybody.

    Attributes
    ----------
    policy_ : ndarray of shape (d_0, ..., d_{n-1}) or None
        Joint distribution if all delegate; None if nothing keeps everyone in.
    responses_ : list of ndarray or dict
        For each stakeholder the others' joint distribution when he stays out; with "strong" a dict
        from remaining delegators.
    security_ : ndarray of shape (n,)
        What each gets at best by staying out; only with "unilateral".
    punishment_welfare_ : ndarray of shape (n,)
        Welfare when i stays out and does his best: the price of the threat, if it is carried out;
        only with "unilateral".
    payoffs_ : ndarray of shape (n,)
        Expected payoffs.
    welfare_, status_quo_welfare_, gain_ : float
        Welfare of the policy, of the worst equilibrium without a mediator, and their difference.
    cost_, liability_ : float
        Zero: nothing is paid.
    feasible_, exact_ : bool
        Whether there is a policy, and whether it is proved best.
    certificate_ : Certificate
        The largest gain from staying out.
    duals_ : dict
        "conditions": welfare gained per unit by which each participation condition is loosened;
        empty with "strong".
    game_ : AgentDesignGame
        What was fitted.

    References
    ----------
    .. [1] D. Monderer, M. Tennenholtz, "Strong mediated equilibrium", Artificial Intelligence 173,
       2009.
    .. [2] O. Rozenfeld, M. Tennenholtz, "Routing mediators", IJCAI 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games import DelegationMediator
    >>> prisoners = np.array([[[3.0, 0.0], [5.0, 1.0]], [[3.0, 5.0], [0.0, 1.0]]])
    >>> mediator = DelegationMediator().fit(prisoners)
    >>> mediator.welfare_, mediator.recommend(), mediator.security_.round(6).tolist()
    (6.0, ('0', '0'), [1.0, 1.0])
    """

    _parameter_constraints: ClassVar[dict] = {
        "punishment": [StrOptions({"minimax", "independent", "none", "nash"}), dict],
        "stability": [StrOptions({"unilateral", "strong"})],
        "objective": [StrOptions(set(POLICY_OBJECTIVES)), callable],
        "max_coalition": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        punishment: Any = "minimax",
        stability: str = "unilateral",
        objective: Any = "utilitarian",
        max_coalition: int | None = None,
    ) -> None:
        self.punishment = punishment
        self.stability = stability
        self.objective = objective
        self.max_coalition = max_coalition

    def _mediate(self, game: AgentDesignGame) -> Outcome:
        if self.stability == "strong":
            return self._strong(game)
        if self.max_coalition is not None:
            raise ValueError("max_coalition is for stability='strong' only")
        u = game.payoffs_
        n, shape = len(u), u.shape[1:]
        scale = payoff_range(u)
        exact = True
        if self.punishment == "none":
            rows = obedience_rows(u / scale, "cce")
            bounds = np.zeros(rows.shape[0])
            responses: list[Array] = []
        else:
            responses, exact = self._responses(game)
            best = np.array([(player_rows(u[i], i) @ responses[i]).max() for i in range(n)])
            rows = sp.csr_array((u.min() - u.reshape(n, -1)) / scale)
            bounds = (u.min() - best) / scale
        found, reason = best_policy(game, self.objective, rows, bounds)
        policy = np.full(shape, 1.0 / game.counts_.size) if found is None else found[0]
        if self.punishment == "none":
            responses = [player_rows(policy, i).sum(axis=0) for i in range(n)]
        met = [player_rows(u[i], i) @ responses[i] for i in range(n)]
        W = game.welfare()
        price = [float(player_rows(W, i)[met[i].argmax()] @ responses[i]) for i in range(n)]
        others = [tuple(d for j, d in enumerate(shape) if j != i) for i in range(n)]
        shaped = [r.reshape(s) for r, s in zip(responses, others, strict=True)]
        return Outcome(
            None if found is None else policy,
            partial(certify_delegation, policy=policy, responses=shaped),
            exact=exact,
            reason=reason
            or "the responses are too mild: no policy gives everyone what staying out does",
            duals={} if found is None else found[1],
            extra={
                "responses_": shaped,
                "security_": np.array([float(v.max()) for v in met]),
                "punishment_welfare_": np.array(price),
            },
        )

    def _responses(self, game: AgentDesignGame) -> tuple[list[Array], bool]:
        """The others' joint distribution against each, flat; and whether it is the hardest."""
        u = game.payoffs_
        n, shape = len(u), u.shape[1:]
        if isinstance(self.punishment, Mapping):
            if set(self.punishment) != set(range(n)):
                raise ValueError(
                    f"punishment must have the keys 0 to {n - 1}, got {list(self.punishment)}"
                )
            return [given_response(self.punishment[i], i, shape) for i in range(n)], True
        if self.punishment == "nash":
            before = status_quo(game)[0]
            return [player_rows(before, i).sum(axis=0) for i in range(n)], True
        if self.punishment == "minimax":
            return [minimax_response(u, i)[1] for i in range(n)], True
        found = [independent_response(u, i) for i in range(n)]
        exact = all(proved for _, _, proved in found)
        if not exact:
            warnings.warn(
                "punishment='independent' is a program that isn't convex for three or more: a "
                "search found the responses, and harder ones may exist",
                ConvergenceWarning,
                stacklevel=5,
            )
        return [response for _, response, _ in found], exact

    def _strong(self, game: AgentDesignGame) -> Outcome:
        u = game.payoffs_
        n, M = len(u), game.counts_.size
        if self.punishment != "minimax":
            raise ValueError(
                "stability='strong' chooses its responses itself: punishment must be 'minimax'"
            )
        if isinstance(self.objective, str) and self.objective != "utilitarian":
            raise ValueError(
                f"objective={self.objective!r}: stability='strong' takes 'utilitarian' or callables"
            )
        if n > 4 or M > LARGEST_STRONG:
            raise ValueError(
                f"stability='strong' takes up to 4 stakeholders and {LARGEST_STRONG} profiles, "
                f"got {n} and {M}"
            )
        top = n if self.max_coalition is None else min(int(self.max_coalition), n)
        welfare = profile_welfare(u, game.weights_, self.objective)
        found = strong_delegation(u, welfare, top)
        if found is None:
            remaining = [
                tuple(i for i in range(n) if i not in T)
                for size in range(1, top + 1)
                for T in combinations(range(n), size)
            ]
            even = {
                R: np.full(s := tuple(u.shape[1 + i] for i in R), 1 / np.prod(s)) for R in remaining
            }
            policy = np.full(u.shape[1:], 1.0 / M)
            certify = partial(certify_strong, policy=policy, responses=even, max_coalition=top)
            reason = f"no policy keeps every coalition of up to {top} in"
            return Outcome(None, certify, reason=reason, extra={"responses_": even})
        policy, responses = found
        return Outcome(
            policy,
            partial(certify_strong, policy=policy, responses=responses, max_coalition=top),
            extra={"responses_": responses},
        )
