"""What one more vote is worth: the expected reduction of KL(p || estimate), item by item.

With the posterior Dir(alpha), alpha = c + a / K and alpha_0 = sum_k alpha_k, the estimate of an
item's opinions p is its mean m = alpha / alpha_0, and E KL(p || m) = H(m) - E H(p). The next vote
is j with probability m_j and leads to the mean m^(j) = (alpha + e_j) / (alpha_0 + 1). E H(p) stays
the same on average, so that the vote is worth H(m) - sum_j m_j H(m^(j)): no integral is left.
"""

from numbers import Real

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy
from sklearn.utils._param_validation import Interval, validate_params

from .targets import entropy, soft_targets

__all__ = ["expected_vote_gain"]


@validate_params(
    {"counts": ["array-like"], "smoothing": [Interval(Real, 0, None, closed="neither")]},
    prefer_skip_nested_validation=True,
)
def expected_vote_gain(counts: npt.ArrayLike, *, smoothing: float = 1.0) -> np.ndarray:
    """Compute by how much one more vote on each item is expected to improve its soft label.

    Parameters
    ----------
    counts : array-like of shape (n_samples, n_classes)
        Votes.
    smoothing : float, default=1.0
        Strength a of the uniform Dirichlet prior, as for `VoteShare`: how many votes the prior is
        worth.

    Returns
    -------
    ndarray of shape (n_samples,)
        Expected fall of the KL divergence from the population's opinions to their estimate, in
        nats; positive. Ask next for votes on the items where it is largest.

    Raises
    ------
    ValueError
        If `counts` aren't votes, or an item has none.

    Examples
    --------
    >>> from equipoise.explainers import expected_vote_gain
    >>> gain = expected_vote_gain([[1, 1], [3, 0], [10, 10], [30, 0]])
    >>> gain.argsort()[::-1]
    array([0, 1, 2, 3])
    """
    votes = soft_targets(counts, name="counts").counts
    if votes is None:
        raise ValueError(
            "counts must be vote counts, at least two votes on some item; got probabilities, "
            "labels or one vote an item"
        )
    K = votes.shape[1]
    alpha = votes + smoothing / K  # (n, K)
    total = alpha.sum(axis=1, keepdims=True)
    mean = alpha / total
    # Entropy after a vote for j: only the j-th term of sum_k alpha_k log alpha_k changes.
    terms = xlogy(alpha, alpha)
    changed = terms.sum(axis=1, keepdims=True) - terms + xlogy(alpha + 1, alpha + 1)
    after = np.log(total + 1) - changed / (total + 1)
    return entropy(mean) - (mean * after).sum(axis=1)
