"""How far opinions on single items scatter around a model: the Dirichlet-multinomial likelihood.

Given a model's f_i, item i has opinions q_i ~ Dirichlet(s f_i) and n_i votes c_i drawn from q_i:

    log L(s) = sum_i [ log n_i! + log Gamma(s) - log Gamma(s + n_i)
                       + sum_k (log Gamma(s f_ik + c_ik) - log Gamma(s f_ik) - log c_ik!) ].

s tends to infinity where the votes are draws from f_i itself, and to 0 where all people agree on
each item and the model doesn't know on what. Two votes on an item agree by chance plus 1 / (1 + s):
the correlation of opinions that the model leaves unexplained.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, xlogy
from scipy.stats import chi2

from .alignment import CLIP
from .pairs import read_pair

__all__ = ["OpinionConcentration", "opinion_concentration"]

#: Range of log s that is searched; beyond its end the correlation is below 1e-6, and differences of
#: log Gamma lose their digits.
LOG_RANGE = (np.log(1e-4), np.log(1e6))

N_GRID = 60


class OpinionConcentration(NamedTuple):
    """Concentration of opinions around a model, and its test against no scatter at all.

    Parameters
    ----------
    concentration : float
        s of most likelihood; infinite where the votes scatter no more than draws from the model.
    correlation : float
        1 / (1 + s), of two people's votes on the same item beyond what the model predicts.
    log_likelihood : float
        Of the votes at s, in nats.
    multinomial_log_likelihood : float
        Without scatter, s infinite.
    p_value : float
        Likelihood-ratio test of infinite s, which is at the border of the range: half of chi-square
        with one degree of freedom.

    Examples
    --------
    >>> from equipoise.explainers import OpinionConcentration
    >>> OpinionConcentration(4.0, 0.2, -10.0, -12.0, 0.02).correlation
    0.2
    """

    concentration: float
    correlation: float
    log_likelihood: float
    multinomial_log_likelihood: float
    p_value: float


def opinion_concentration(counts: npt.ArrayLike, proba: npt.ArrayLike) -> OpinionConcentration:
    """Estimate how far opinions on single items scatter around a model's probabilities.

    Parameters
    ----------
    counts : array-like of shape (n_samples, n_classes)
        Votes, at least two on some item.
    proba : array-like of shape (n_samples, n_classes)
        Probabilities of a model that wasn't trained on these items; raised to at least 1e-12.

    Returns
    -------
    OpinionConcentration
        Estimate by maximum likelihood, the correlation it means, and both likelihoods.

    Raises
    ------
    ValueError
        If `counts` aren't votes: single votes say nothing of the scatter.

    References
    ----------
    .. [1] J. E. Mosimann, "On the compound multinomial distribution, the multivariate beta
           distribution, and correlations among proportions", Biometrika, 1962.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.explainers import opinion_concentration
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet(np.ones(3), size=2000)
    >>> opinions = np.array([rng.dirichlet(4 * row) for row in proba])
    >>> found = opinion_concentration(rng.multinomial(20, opinions), proba)
    >>> round(found.correlation, 1)
    0.2
    """
    humans, F = read_pair(counts, proba)
    votes = humans.counts
    if votes is None:
        raise ValueError(
            "counts must be vote counts, at least two votes on some item; got probabilities, "
            "labels or one vote an item"
        )
    F = np.maximum(F, CLIP)
    F = F / F.sum(axis=1, keepdims=True)
    n = votes.sum(axis=1)
    c, f = votes[votes > 0], F[votes > 0]  # classes without a vote have a factor of 1
    constant = float(gammaln(n + 1).sum() - gammaln(c + 1).sum())
    sizes, n_items = np.unique(n, return_counts=True)

    def log_likelihood(log_s: float) -> float:
        s = np.exp(log_s)
        whole = float(n_items @ (gammaln(s) - gammaln(s + sizes)))
        return constant + whole + float((gammaln(s * f + c) - gammaln(s * f)).sum())

    multinomial = constant + float(xlogy(c, f).sum())
    grid = np.linspace(*LOG_RANGE, N_GRID)
    best = int(np.argmax([log_likelihood(log_s) for log_s in grid]))
    step = grid[1] - grid[0]
    found = minimize_scalar(
        lambda log_s: -log_likelihood(log_s),
        bounds=(grid[best] - step, grid[best] + step),
        method="bounded",
        options={"xatol": 1e-10},
    )
    reached = -float(found.fun)
    if best == N_GRID - 1 or reached <= multinomial:
        return OpinionConcentration(float("inf"), 0.0, multinomial, multinomial, 1.0)
    s = float(np.exp(found.x))
    p = float(chi2.sf(2 * (reached - multinomial), df=1) / 2)
    return OpinionConcentration(s, 1 / (1 + s), reached, multinomial, p)
