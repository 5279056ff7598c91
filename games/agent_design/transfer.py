"""Transfers: a contract moves payoffs between stakeholders, and the mediator pays nothing.

t_i(a) with sum_i t_i(a) = 0 (or <= 0: taxes) and |t_i(a)| <= cap, such that a target profile is an
equilibrium, or dominant, in u + t. The least cap is a linear program.
"""

from collections.abc import Sequence
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval, StrOptions

from .certificates import certify_dominance, certify_profile
from .mediator import BaseMediator, Outcome
from .meta_game import AgentDesignGame
from .programs import payoff_range, solve_program
from .subsidy import paid_game

__all__ = ["TransferMediator", "least_transfers"]

Array = np.ndarray


def least_transfers(
    payoffs: Array, z: Sequence[int], dominant: bool, balanced: bool
) -> tuple[float, Array] | None:
    """The transfers of least cap; None where none make the target an equilibrium.

    Parameters
    ----------
    payoffs : ndarray of shape (n, d_0, ..., d_{n-1})
        Payoffs.
    z : sequence of int
        Target profile.
    dominant : bool
        Whether z_i must be best against everything.
    balanced : bool
        Whether transfers sum to zero in every profile, or to at most zero.

    Returns
    -------
    (cap, transfers) or None
        The cap, and an ndarray of shape (n, d_0, ..., d_{n-1}).
    """
    n, *shape = payoffs.shape
    M = int(np.prod(shape))
    scale = payoff_range(payoffs)
    column = np.arange(n * M).reshape(payoffs.shape)
    kept, other, gain = [], [], []
    for i in range(n):
        u, place = np.moveaxis(payoffs[i], i, 0), np.moveaxis(column[i], i, 0)
        rest = (slice(None),) * (n - 1) if dominant else tuple(np.delete(z, i))
        for b in range(shape[i]):
            if b != z[i]:
                kept.append(np.ravel(place[(z[i], *rest)]))
                other.append(np.ravel(place[(b, *rest)]))
                gain.append(np.ravel(u[(b, *rest)] - u[(z[i], *rest)]) / scale)
    if not kept:
        return 0.0, np.zeros_like(payoffs)
    keep, leave, right = map(np.concatenate, (kept, other, gain))
    k, N = len(keep), n * M
    row = np.arange(k)
    # t_i(b, .) - t_i(z_i, .) <= u_i(z_i, .) - u_i(b, .);  +-t <= cap
    incentives = sp.csr_array(
        (np.r_[np.ones(k), -np.ones(k)], (np.r_[row, row], np.r_[leave, keep])), shape=(k, N + 1)
    )
    eye, cap = sp.eye_array(N), sp.csr_array(-np.ones((N, 1)))
    A = sp.vstack([incentives, sp.hstack([eye, cap]), sp.hstack([-eye, cap])], format="csr")
    b = np.r_[-right, np.zeros(2 * N)]
    sums = sp.hstack([sp.hstack([sp.eye_array(M)] * n), sp.csr_array((M, 1))], format="csr")
    free = [(None, None)] * N + [(0, None)]
    objective = np.r_[np.zeros(N), 1.0]
    if balanced:
        answer = solve_program(objective, A, b, sums, np.zeros(M), free)
    else:
        A = sp.csr_array(sp.vstack([A, sums]))
        answer = solve_program(objective, A, np.r_[b, np.zeros(M)], bounds=free)
    if answer is None:
        return None
    t = answer.x[:N].reshape(payoffs.shape) * scale
    t[np.abs(t) < 1e-12 * scale] = 0.0
    if balanced:
        t[-1] = -t[:-1].sum(axis=0)  # zero to the last bit
    return float(answer.x[-1] * scale), t


class TransferMediator(BaseMediator):
    """Make a profile of designs an equilibrium by a budget-balanced contract.

    Parameters
    ----------
    target : sequence of length n
        One design (or its index) for each stakeholder.
    mode : {"nash", "dominant"}, default="nash"
        Whether a target design must be best against the others' target designs, or everything.
    cap : float, default=None
        Largest transfer that is allowed; None takes as large as needed.
    balanced : bool, default=True
        Whether transfers sum to zero in each profile; False allows taxes, sums of at most zero.

    Attributes
    ----------
    policy_ : ndarray of shape (d_0, ..., d_{n-1}) or None
        The target; None if the cap doesn't reach.
    transfers_ : ndarray of shape (n, d_0, ..., d_{n-1}) or None
        What each gets on top at each profile; None if the cap doesn't reach.
    least_cap_ : float or None
        The smallest cap that reaches; None if none does (a single stakeholder).
    payoffs_ : ndarray of shape (n,)
        Payoffs at the target without transfers.
    welfare_, status_quo_welfare_, gain_ : float
        Welfare of the policy, of the worst equilibrium without a mediator, and their difference.
    cost_, liability_ : float
        Zero: the mediator pays nothing.
    feasible_, exact_ : bool
        Whether there is a policy, and whether its cap is proved least.
    certificate_ : Certificate
        The largest gain from leaving the target.
    mediated_game_ : AgentDesignGame or None
        The game with transfers; None if the cap doesn't reach.
    duals_ : dict
        Empty.
    game_ : AgentDesignGame
        What was fitted.

    References
    ----------
    .. [1] D. Monderer, M. Tennenholtz, "K-implementation", Journal of Artificial Intelligence
       Research 21, 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games import TransferMediator
    >>> prisoners = np.array([[[3.0, 0.0], [5.0, 1.0]], [[3.0, 5.0], [0.0, 1.0]]])
    >>> mediator = TransferMediator((0, 0)).fit(prisoners)
    >>> round(mediator.least_cap_, 6), mediator.welfare_
    (2.0, 6.0)
    """

    _parameter_constraints: ClassVar[dict] = {
        "target": ["array-like", tuple],
        "mode": [StrOptions({"nash", "dominant"})],
        "cap": [Interval(Real, 0, None, closed="left"), None],
        "balanced": ["boolean"],
    }

    def __init__(
        self, target: Any, mode: str = "nash", cap: float | None = None, balanced: bool = True
    ) -> None:
        self.target = target
        self.mode = mode
        self.cap = cap
        self.balanced = balanced

    def _mediate(self, game: AgentDesignGame) -> Outcome:
        u = game.payoffs_
        z = game.profile_index(self.target)
        check = certify_dominance if self.mode == "dominant" else certify_profile
        found = least_transfers(u, z, self.mode == "dominant", self.balanced)
        if found is None or (self.cap is not None and found[0] > self.cap + 1e-9 * payoff_range(u)):
            unmoved = partial(check, profile=z, payments=np.zeros_like(u))
            worst = unmoved(u).worst_deviation
            who, design = game.stakeholders_[worst[0]], game.designs_[worst[0]][worst[1]]
            need = "no transfers at all" if found is None else f"a cap of {found[0]:.6g}"
            return Outcome(
                None,
                unmoved,
                reason=f"the target takes {need}; {who} gains most, by deploying {design!r}",
                extra={
                    "transfers_": None,
                    "least_cap_": None if found is None else found[0],
                    "mediated_game_": None,
                },
            )
        cap, transfers = found
        policy = np.zeros(u.shape[1:])
        policy[z] = 1.0
        return Outcome(
            policy,
            partial(check, profile=z, payments=transfers),
            extra={
                "transfers_": transfers,
                "least_cap_": cap,
                "mediated_game_": paid_game(game, transfers),
            },
        )
