"""Mutual information between rows and codes, by the aggregate posterior.

I = E_x E_{q(z|x)} log q(z|x) - log q(z), with q(z) the mean of the posteriors over the rows used.
The estimate is biased downward and can't exceed the logarithm of their number; the mean KL from the
prior bounds I above.
"""

import numpy as np
from scipy.special import gammaln, logsumexp

from equipoise.blocks import iter_blocks

__all__ = ["information_between", "log_codes"]


def log_codes(log_g: np.ndarray, n_samples: int, rng: np.random.RandomState) -> np.ndarray:
    """log z (n, n_samples, K) of Dirichlet codes, without underflow at small concentrations."""
    n, K = log_g.shape
    g = np.exp(log_g)[:, None]
    log_w = np.log(rng.gamma(g + 1, size=(n, n_samples, K)))
    # Below 1e-300 the boost is -infinity: such a coordinate is then cut to the smallest log z.
    log_w += np.maximum(np.log(rng.uniform(1e-300, 1, size=log_w.shape)) / g, -1e300)
    return log_w - logsumexp(log_w, axis=2, keepdims=True)


def information_between(log_g: np.ndarray, n_samples: int, rng: np.random.RandomState) -> float:
    """Estimate of I(x; z) in nats from concentrations log g (n, K) of the rows' posteriors."""
    n, K = log_g.shape
    g = np.exp(log_g)
    normaliser = gammaln(g.sum(axis=1)) - gammaln(g).sum(axis=1)
    codes = log_codes(log_g, n_samples, rng)
    total = 0.0
    for rows in iter_blocks(n, 16.0 * n_samples * n, working_memory=64):
        log_z = codes[rows].reshape(-1, K)
        # Relative to the row's own density: equal terms cancel before anything large is added.
        own = np.repeat(np.arange(n)[rows], n_samples)
        density = log_z @ (g - 1).T + normaliser
        ratio = density - density[np.arange(len(own)), own][:, None]
        total -= float(np.sum(logsumexp(ratio, axis=1) - np.log(n)))
    return max(total / (n * n_samples), 0.0)
