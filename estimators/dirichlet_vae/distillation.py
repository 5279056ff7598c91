"""A fast encoder for a model that variational EM has fitted.

The decoder stays as it is; a network learns to give each row the posterior that Newton's method
finds for it, by minimising the same objective. The objective's excess over the rows' own optima is
the amortisation gap.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from . import choices
from .inference import report_on, scale_of
from .threshold import check_weights

if TYPE_CHECKING:
    from .dirichlet_vae import DirichletBetaVAE

__all__ = ["distill_encoder"]


def distill_encoder(
    est: "DirichletBetaVAE",
    X: npt.ArrayLike,
    *,
    encoder: Any = "mlp",
    max_iter: int = 200,
    sample_weight: npt.ArrayLike | None = None,
) -> "DirichletBetaVAE":
    """Train an encoder for a model that variational EM has fitted.

    Parameters
    ----------
    est : DirichletBetaVAE
        Fitted by variational EM; it isn't changed. Its `hidden_layer_sizes`, `activation`, `lr`,
        `batch_size`, `weight_decay`, `callbacks`, `device` and `random_state` hold for the network.
    X : array-like of shape (n_samples, n_features)
        Rows to learn from, such as the training data.
    encoder : {"mlp", "linear"} or nn.Module, default="mlp"
        The network, as for `DirichletBetaVAE`.
    max_iter : int, default=200
        Epochs.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows.

    Returns
    -------
    DirichletBetaVAE
        With the endmembers, noise and beta of `est`, and a network (`net_`) in place of Newton's
        method; its `report_` is about X. It can go on learning with `partial_fit`.

    Raises
    ------
    ValueError
        If `est` has a network already, or a parameter is out of its range.

    Examples
    --------
    >>> from equipoise.datasets import make_convex_mixture
    >>> from equipoise.estimators import DirichletBetaVAE, distill_encoder
    >>> X = make_convex_mixture(300, 10, 3, random_state=0).data
    >>> model = DirichletBetaVAE(3, random_state=0, lr=1e-2).fit(X)
    >>> fast = distill_encoder(model, X, max_iter=100)
    >>> bool(0 <= model.elbo(X) - fast.elbo(X) < 0.2)
    True
    """
    check_is_fitted(est)
    if est.solver_ != "vem":
        raise ValueError("est has a network already; allowed: a model fitted by variational EM")
    if choices.is_named(encoder, "auto", "none"):
        raise ValueError(
            f"encoder={encoder!r} is not allowed; allowed: 'mlp', 'linear' or a torch nn.Module"
        )
    if isinstance(max_iter, bool) or not isinstance(max_iter, int | np.integer) or max_iter < 1:
        raise ValueError(f"max_iter={max_iter!r} is not allowed; allowed: at least 1")
    rows = est._check_X(X, reset=False)
    weight = check_weights(sample_weight, rows)
    share = np.ones(len(rows)) if weight is None else weight
    share = share / share.sum()
    fast = clone(est).set_params(solver="adam", encoder=encoder, max_iter=int(max_iter))
    choices.check_modules(fast)
    learned = {k: v for k, v in vars(est).items() if k not in est.get_params(deep=False)}
    fast.__dict__.update(learned)
    fast._random = check_random_state(est.random_state)

    from .amortised import train_encoder

    fast.__dict__.update(train_encoder(fast, rows, share, scale_of(est)))
    fast.solver_ = "adam"
    fast.report_ = report_on(fast, rows, share)
    fast.kl_ = fast.report_.kl_mean
    fast.collapsed_ = fast.report_.verdict == "collapsed"
    fast.n_active_directions_ = fast.report_.n_active
    return fast
