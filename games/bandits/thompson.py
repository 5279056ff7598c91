"""Thompson sampling for noisy losses."""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import betainc, betaincinv, betaln, xlog1py, xlogy
from sklearn.utils._param_validation import Interval

from .dispatch import THOMPSON
from .learner import CONSTRAINTS, BanditLearner
from .memory import HEAD, constants, new_memory

__all__ = ["ThompsonBeta"]

Array = np.ndarray


def least_probabilities(a: Array, b: Array) -> Array:
    """Probability that each of independent Beta(a, b) numbers is the least, by quadrature.

    The integral of f_i(x) prod_j (1 - F_j(x)) is taken over panels that end at quantiles of all
    arms, so that no panel holds a jump.
    """
    levels = [1e-9, 1e-4, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1 - 1e-4, 1 - 1e-9]
    quantiles = betaincinv(a[:, None], b[:, None], levels)
    ends = np.unique(np.append(quantiles, [0.0, 1.0]))
    nodes, weights = np.polynomial.legendre.leggauss(16)
    half = np.diff(ends) / 2
    x = (ends[:-1] + half)[:, None] + half[:, None] * nodes  # (n_panels, n_nodes)
    above = betainc(b[:, None, None], a[:, None, None], 1 - x)  # P(arm's number > x)
    logs = xlogy(a[:, None, None] - 1, x) + xlog1py(b[:, None, None] - 1, -x)
    density = np.exp(logs - betaln(a, b)[:, None, None])
    others = np.stack([np.delete(above, i, axis=0).prod(axis=0) for i in range(len(a))])
    p = (density * others * (half[:, None] * weights)).sum(axis=(1, 2))
    return p / p.sum()


class ThompsonBeta(BanditLearner):
    """Thompson sampling with a Beta posterior of each arm's mean loss.

    Losses between 0 and 1 count as that share of a failure.

    Parameters
    ----------
    n_arms : int
        Number of arms A.
    prior : float, default=1.0
        Both parameters of the prior, at least 1; 1 is the uniform one.
    mode : {"loss", "reward"}, default="loss"
        Whether the numbers are losses or rewards.
    loss_range : (float, float), default=(0, 1)
        Least and largest loss or reward.
    clip : bool, default=False
        Whether to clip numbers out of the range, with a warning, instead of refusing them.
    random_state : int, RandomState or None, default=None
        Seed of the draws.

    Attributes
    ----------
    probabilities_ : ndarray of shape (A,)
        The law of the next draw.
    t_ : int
        Rounds so far.
    arms_, losses_ : ndarray of shape (T,)
        Arms and their losses; only after `fit`.
    static_regret_, dynamic_regret_ : float
        Regrets of the run; only after `fit`.

    Notes
    -----
    A draw takes many random numbers and computes no law: there are no `propensities_` after `fit`,
    and `probabilities_` costs about a millisecond.

    References
    ----------
    .. [1] S. Agrawal, N. Goyal, "Near-optimal regret bounds for Thompson sampling", 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games import ThompsonBeta
    >>> losses = np.random.RandomState(0).uniform(size=(1000, 2)) < [0.2, 0.8]
    >>> ThompsonBeta(2, random_state=0).fit(losses).predict()
    0
    """

    _kind: ClassVar[int] = THOMPSON
    _n_vectors: ClassVar[int] = 2
    _parameter_constraints: ClassVar[dict] = {
        **CONSTRAINTS,
        "prior": [Interval(Real, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_arms: int,
        prior: float = 1.0,
        mode: str = "loss",
        loss_range: tuple[float, float] = (0, 1),
        clip: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_arms = n_arms
        self.prior = prior
        self.mode = mode
        self.loss_range = loss_range
        self.clip = clip
        self.random_state = random_state

    def _params(self) -> Array:
        return constants(None, None, self.prior)

    def _new_memory(self, params: Array) -> Array:
        memory = new_memory(params, self.n_arms, self._n_vectors)
        memory[HEAD + 2 * self.n_arms :] = self.prior
        return memory

    @property
    def probabilities_(self) -> Array:
        losses, gains = self._vector(2), self._vector(3)
        return least_probabilities(losses, gains)
