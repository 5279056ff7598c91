"""The Pareto mediator: name a design and allow the mediator to do better for all who allow it.

Given the named profile a and the set S of those who delegate, the mediator plays for S the joint
designs of the largest sum over S of payoffs, among those that give nobody in S less than u_i(a);
the others play what they named. There are no threats.
"""

from functools import partial
from itertools import product
from typing import Any, ClassVar

import numpy as np

from .certificates import Certificate, certify_profile
from .deviations import pure_equilibria
from .mediator import BaseMediator, Outcome
from .meta_game import AgentDesignGame
from .programs import payoff_range

__all__ = ["ParetoMediator", "improved_profiles"]

Array = np.ndarray


def improved_profiles(payoffs: Array, S: tuple[int, ...]) -> Array:
    """The profile (flat index) the mediator plays for delegators S at each named profile.

    Returns
    -------
    ndarray of int of shape (d_0, ..., d_{n-1})
        The named profile where it attains the largest sum, else the first in C order that does.
    """
    n, *shape = payoffs.shape
    index = np.arange(int(np.prod(shape))).reshape(shape)
    if not S:
        return index
    rest = tuple(i for i in range(n) if i not in S)
    size = int(np.prod([shape[i] for i in S]))

    def grouped(tensor: Array) -> Array:
        return np.transpose(tensor, (*rest, *S)).reshape(-1, size)  # (others, S's profiles)

    code, total = grouped(index), np.sum([grouped(payoffs[i]) for i in S], axis=0)
    slack = 1e-12 * payoff_range(payoffs)
    good = np.ones((len(code), size, size), dtype=bool)  # [others, named, candidate]
    for i in S:
        v = grouped(payoffs[i])
        good &= v[:, None, :] >= v[:, :, None] - slack
    value = np.where(good, total[:, None, :], -np.inf)
    best = value.max(axis=2)
    chosen = (value >= best[:, :, None] - slack).argmax(axis=2)
    named = np.arange(size)[None, :]
    chosen = np.where(total >= best - slack, named, chosen)
    played = np.take_along_axis(code, chosen, axis=1)
    order = (*rest, *S)
    return np.transpose(played.reshape([shape[i] for i in order]), np.argsort(order))


def augmented_payoffs(payoffs: Array) -> tuple[Array, Array]:
    """Payoffs and played profiles when each message is (delegate or not, named design).

    Returns
    -------
    payoffs : ndarray of shape (n, 2 d_0, ..., 2 d_{n-1})
        Message m of stakeholder i names design m mod d_i; he delegates iff m >= d_i.
    played : ndarray of int of shape (2 d_0, ..., 2 d_{n-1})
        Flat index of the profile that is played.
    """
    n, *shape = payoffs.shape
    played = np.empty([2 * d for d in shape], dtype=np.int64)
    for ticks in product([0, 1], repeat=n):
        S = tuple(i for i in range(n) if ticks[i])
        block = tuple(slice(t * d, (t + 1) * d) for t, d in zip(ticks, shape, strict=True))
        played[block] = improved_profiles(payoffs, S)
    return payoffs.reshape(n, -1)[:, played], played


def certify_messages(
    payoffs: Array, messages: tuple[int, ...], played: Array, tempting: Array | None = None
) -> Certificate:
    """Check that messages are an equilibrium, if `played` is what the mediator makes of them."""
    n = len(payoffs)
    lured = None if tempting is None else tempting.reshape(n, -1)[:, played]
    return certify_profile(payoffs.reshape(n, -1)[:, played], messages, tempting=lured)


class ParetoMediator(BaseMediator):
    """Improve on the named designs for all who delegate, without threats.

    The best pure equilibrium of the game of messages is selected; `equilibria_` lists all.

    Attributes
    ----------
    policy_ : ndarray of shape (d_0, ..., d_{n-1}) or None
        The profile that is played in the best equilibrium; None if there is no pure one.
    messages_ : list of tuple or None
        (design named, whether he delegates) of each stakeholder there; None without equilibrium.
    equilibria_ : ndarray of int of shape (n_equilibria, n)
        All pure equilibria of `mediated_game_`.
    equilibria_welfare_ : ndarray of shape (n_equilibria,)
        Their welfare.
    payoffs_ : ndarray of shape (n,)
        Payoffs.
    welfare_, status_quo_welfare_, gain_ : float
        Welfare of the policy, of the worst equilibrium without a mediator, and their difference.
    cost_, liability_ : float
        Zero: nothing is paid.
    feasible_, exact_ : bool
        Whether there is a pure equilibrium; all are found.
    certificate_ : Certificate
        The largest gain from another message.
    mediated_game_ : AgentDesignGame
        The game of messages.
    duals_ : dict
        Empty.
    game_ : AgentDesignGame
        What was fitted.

    References
    ----------
    .. [1] S. McAleer et al., "Improving social welfare while preserving autonomy via a Pareto
       mediator", 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games import ParetoMediator
    >>> prisoners = np.array([[[3.0, 0.0], [5.0, 1.0]], [[3.0, 5.0], [0.0, 1.0]]])
    >>> mediator = ParetoMediator().fit(prisoners)
    >>> mediator.welfare_, mediator.messages_
    (6.0, [('1', True), ('1', True)])
    """

    _parameter_constraints: ClassVar[dict] = {}

    def __init__(self) -> None:
        super().__init__()

    def _mediate(self, game: AgentDesignGame) -> Outcome:
        u, shape = game.payoffs_, game.counts_.shape
        if len(shape) > 4 or max(shape) > 12:
            raise ValueError(
                "the Pareto mediator takes up to 4 stakeholders with 12 designs each, got "
                f"{len(shape)} with {list(shape)}"
            )
        payoffs, played = augmented_payoffs(u)
        stable = np.argwhere(pure_equilibria(payoffs, 1e-12 * payoff_range(u)))
        messages = [
            [f"{a}" for a in own] + [f"{a}, delegated" for a in own] for own in game.designs_
        ]
        mediated = AgentDesignGame.from_payoffs(
            payoffs, designs=messages, stakeholders=game.stakeholders_, weights=game.weights_
        )
        ends = played[tuple(stable.T)]
        welfare = game.welfare().ravel()[ends]
        extra: dict[str, Any] = {
            "equilibria_": stable,
            "equilibria_welfare_": welfare,
            "mediated_game_": mediated,
            "messages_": None,
        }
        if not len(stable):
            return Outcome(
                None,
                partial(certify_messages, messages=(0,) * len(shape), played=played),
                reason="the game of messages has no pure equilibrium",
                extra=extra,
            )
        best = welfare >= welfare.max() - 1e-12 * payoff_range(u)
        # Of the best equilibria the one in which most delegate.
        ticks = (stable >= np.array(shape)).sum(axis=1)
        chosen = stable[int(np.where(best, ticks, -1).argmax())]
        policy = np.zeros(shape)
        policy.ravel()[played[tuple(chosen)]] = 1.0
        extra["messages_"] = [
            (own[int(m) % d], bool(m >= d))
            for own, m, d in zip(game.designs_, chosen, shape, strict=True)
        ]
        return Outcome(
            policy,
            partial(certify_messages, messages=tuple(int(m) for m in chosen), played=played),
            extra=extra,
        )
