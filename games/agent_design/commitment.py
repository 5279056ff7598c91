"""Commitment: one of two stakeholders publishes a (mixed) design first; the other replies.

For each reply b one linear program: max_x sum_r x_r u_L(r, b) with b a best reply to x.
"""

from functools import partial
from numbers import Integral
from typing import ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from .certificates import Certificate, judge
from .mediator import BaseMediator, Outcome
from .meta_game import AgentDesignGame
from .programs import as_distribution, ones_row, payoff_range, solve_program

__all__ = ["CommitmentMediator"]

Array = np.ndarray


def certify_reply(
    payoffs: Array, policy: Array, leader: int, tempting: Array | None = None
) -> Certificate:
    """Check that the follower's design is a best reply to the leader's strategy."""
    own = np.moveaxis(policy, leader, 0)  # (leader, follower)
    u, v = (
        np.moveaxis(table[1 - leader], leader, 0)
        for table in (payoffs, payoffs if tempting is None else tempting)
    )
    x, reply = own.sum(axis=1), int(own.sum(axis=0).argmax())
    gain = x @ v - x @ u[:, reply]
    others = [(float(gain[b]), (1 - leader, b)) for b in range(len(gain)) if b != reply]
    return judge(others, payoffs)


class CommitmentMediator(BaseMediator):
    """Let one of two stakeholders commit to a design, or to a lottery over designs, in public.

    Among equally good replies the follower takes the leader's favourite (strong Stackelberg).

    Parameters
    ----------
    leader : int, default=0
        Index of the stakeholder who commits.

    Attributes
    ----------
    commitment_ : ndarray of shape (d_leader,)
        The leader's strategy.
    reply_ : object
        The follower's design.
    leader_payoff_ : float
        What the leader gets.
    policy_ : ndarray of shape (d_0, d_1)
        Joint distribution.
    payoffs_ : ndarray of shape (2,)
        Expected payoffs.
    welfare_, status_quo_welfare_, gain_ : float
        Welfare of the policy, of the worst equilibrium without a mediator, and their difference.
    cost_, liability_ : float
        Zero: nothing is paid.
    feasible_, exact_ : bool
        True.
    certificate_ : Certificate
        What the follower gains by another reply; the leader is bound.
    duals_ : dict
        Empty.
    game_ : AgentDesignGame
        What was fitted.

    References
    ----------
    .. [1] V. Conitzer, T. Sandholm, "Computing the optimal strategy to commit to", EC 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games import CommitmentMediator
    >>> chicken = np.array([[[6.0, 2.0], [7.0, 0.0]], [[6.0, 7.0], [2.0, 0.0]]])
    >>> mediator = CommitmentMediator().fit(chicken)
    >>> mediator.leader_payoff_, mediator.reply_
    (7.0, '0')
    """

    _parameter_constraints: ClassVar[dict] = {
        "leader": [Interval(Integral, 0, 1, closed="both")],
    }

    def __init__(self, leader: int = 0) -> None:
        self.leader = leader

    def _mediate(self, game: AgentDesignGame) -> Outcome:
        u, leader = game.payoffs_, int(self.leader)
        if len(u) != 2:
            raise ValueError(f"commitment is for two stakeholders, got {len(u)}")
        scale = payoff_range(u)
        own, theirs = np.moveaxis(u[[leader, 1 - leader]], 1 + leader, 1) / scale
        best: tuple[float, int, Array] | None = None
        for b in range(own.shape[1]):
            rows = np.delete(theirs - theirs[:, [b]], b, axis=1).T
            answer = solve_program(
                -own[:, b], rows, np.zeros(len(rows)), ones_row(len(own)), np.ones(1)
            )
            if answer is not None and (best is None or -answer.fun > best[0] + 1e-9):
                best = (-answer.fun, b, as_distribution(answer.x, (len(own),)))
        if best is None:
            raise RuntimeError("HiGHS found no reply, though some design always is the best one")
        _, reply, x = best
        policy = np.zeros((len(x), own.shape[1]))
        policy[:, reply] = x
        policy = np.ascontiguousarray(np.moveaxis(policy, 0, leader))
        return Outcome(
            policy,
            partial(certify_reply, policy=policy, leader=leader),
            extra={
                "commitment_": x,
                "reply_": game.designs_[1 - leader][reply],
                "leader_payoff_": float((u[leader] * policy).sum()),
            },
        )
