"""How many components: a table of fits over their number and beta / beta_c.

Scores at different noise variances can't be compared, so each fit is judged at the variance that
suits it best, s^2 = E||x - W z||^2 / D: its bound of the log likelihood is then
-n (D / 2 (ln(2 pi s^2) + 1) + KL), and BIC charges ln n for each of K D + 1 numbers.
"""

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import clone

from equipoise.blocks import map_blocks

from .choices import LINEAR_DECODERS, is_named
from .collapse_path import check_ratios
from .efficiency import check_n_components
from .inference import infer

if TYPE_CHECKING:
    from .dirichlet_vae import DirichletBetaVAE

__all__ = ["component_table"]


def component_table(
    est: "DirichletBetaVAE",
    X: npt.ArrayLike,
    n_components: npt.ArrayLike,
    ratios: npt.ArrayLike,
    *,
    n_jobs: int | None = None,
) -> pd.DataFrame:
    """Fit each number of components at each beta / beta_c, and compare.

    Parameters
    ----------
    est : DirichletBetaVAE
        With beta="auto", a decoder linear in the code, and one concentration for all components;
        it isn't changed.
    X : array-like of shape (n_samples, n_features)
        Rows.
    n_components : array-like of int
        Numbers of components, at least 2.
    ratios : array-like
        Values of beta / beta_c.
    n_jobs : int, optional
        Threads over the fits.

    Returns
    -------
    pandas.DataFrame
        A row a fit: n_components, ratio, bic (lower is better), bound (nats a row, at the noise
        variance that suits the fit best), kl, n_active (directions of the code in use; fewer than
        n_components - 1 says that there are too many components for this beta), r2, verdict.

    Raises
    ------
    ValueError
        If a number or ratio isn't allowed, or the estimator has a fixed beta or another decoder.

    Examples
    --------
    >>> from equipoise.datasets import make_convex_mixture
    >>> from equipoise.estimators import DirichletBetaVAE, component_table
    >>> X = make_convex_mixture(400, 10, 3, noise=0.02, random_state=0).data
    >>> table = component_table(DirichletBetaVAE(random_state=0), X, [2, 3, 4], [0.01])
    >>> int(table.loc[table["bic"].idxmin(), "n_components"])
    3
    """
    if est.beta != "auto":
        raise ValueError(f"est has beta={est.beta!r}; allowed: 'auto', a multiple of the threshold")
    if not is_named(est.decoder, *LINEAR_DECODERS):
        raise ValueError(f"est has decoder={est.decoder!r}; allowed: {list(LINEAR_DECODERS)}")
    if np.ndim(est.concentration):
        raise ValueError("est has a concentration for each component; allowed: one for all")
    numbers = [check_n_components(K) for K in np.atleast_1d(np.asarray(n_components)).tolist()]
    grid = check_ratios(ratios)

    def fit(case: tuple[int, float]) -> dict[str, Any]:
        K, ratio = case
        model = clone(est).set_params(n_components=K, beta_ratio=float(ratio)).fit(X)
        rows = infer(model, model._check_X(X, reset=False))
        n, D = len(rows.kl), len(model.mean_)
        s2 = max(float(rows.error.mean()) / D, np.finfo(float).tiny)
        kl = float(rows.kl.mean())
        bound = -D / 2 * (np.log(2 * np.pi * s2) + 1) - kl
        return {
            "n_components": K,
            "ratio": float(ratio),
            "bic": -2 * n * bound + (K * D + 1) * np.log(n),
            "bound": bound,
            "kl": kl,
            "n_active": model.n_active_directions_,
            "r2": model.report_.r2,
            "verdict": model.report_.verdict,
        }

    return pd.DataFrame(map_blocks(fit, list(product(numbers, grid)), n_jobs))
