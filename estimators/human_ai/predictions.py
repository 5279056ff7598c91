"""Log-odds of a decision under a fitted team model, for workers known or not."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit
from sklearn.utils.validation import check_is_fitted, validate_data

from .estimation import Estimates
from .fitting import Trials
from .inputs import check_finite, relative_capability_rows
from .likelihood import choice_probability

__all__ = ["log_odds_of"]

Array = NDArray[np.float64]


def decision_odds(
    found: Estimates, X: Array, r: Array, columns: tuple[int, int, list[int]]
) -> Array:
    """Log-odds of deciding for the second class, averaged over workers with random effects."""
    lh, la = (c.transform(X[:, j]) for c, j in zip(found.columns, columns[:2], strict=True))
    q = found.trials.V.shape[1]
    theta, b = found.fit.theta, found.value("overlap_belief")
    log_trust = theta[2] + (X[:, columns[2]] - found.moderator_mean) @ theta[3 : 2 + q]
    beta, bias, lapse = (found.value(name) for name in ("noise_scale", "bias", "lapse"))
    trust_sd = found.value("trust_sd") if "trust_sd" in found.names else 0.0
    bias_sd = found.value("bias_sd") if "bias_sd" in found.names else 0.0
    empty = np.zeros(0)
    a = None if found.trials.a is None else r * found.trials.h
    trials = Trials(lh, la, r, empty, empty, empty, a=a, h=found.trials.h)
    human, ai = trials.arrays(b, False)[:2]
    if trust_sd == 0 and lapse == 0:
        return bias + beta * (human + np.exp(np.clip(log_trust, -30, 30)) * ai)

    def nodes(sd: float) -> tuple[Array, Array]:
        """Deviations of a worker who isn't known, and their weights."""
        if sd == 0:
            return np.zeros(1), np.ones(1)
        x, weight = np.polynomial.hermite.hermgauss(31)
        return sd * np.sqrt(2) * x, weight / np.sqrt(np.pi)

    p = np.zeros(len(X))
    for u, weight_u in zip(*nodes(trust_sd), strict=True):
        for v, weight_v in zip(*nodes(bias_sd), strict=True):
            p += (weight_u * weight_v) * choice_probability(
                human,
                ai,
                log_trust=np.clip(log_trust + u, -30, 30),
                noise_scale=beta,
                bias=bias + v,
                lapse=lapse,
            )
    return logit(np.clip(p, 1e-300, 1 - 1e-16))


def log_odds_of(model: Any, X: ArrayLike, relative_capability: float | ArrayLike | None) -> Array:
    """Log-odds of deciding for the second class."""
    check_is_fitted(model)
    data = validate_data(model, X, dtype=np.float64, reset=False, ensure_all_finite=False)
    human_col, ai_col, _ = model._columns
    roles = {human_col: "human_col", ai_col: "ai_col"}
    check_finite(data, roles, getattr(model, "feature_names_in_", None))
    if model._found is None:
        # Without the human's evidence all that is known is how often advice is followed.
        return np.sign(data[:, ai_col]) * logit(model._follow)
    default = model.relative_capability
    if default is None:
        fitted_r = np.unique(model._found.trials.r)
        default = float(fitted_r[0])
        reads_r = model.overlap_belief_ != 0 or model._found.trials.a is not None
        if relative_capability is None and reads_r and len(fitted_r) > 1:
            raise ValueError(
                "relative_capability: got None; the model was fitted to several, and the "
                "weight of the advice depends on them: give one per sample"
            )
    r = relative_capability_rows(relative_capability, default, len(data))
    assert r is not None  # there is a default
    return decision_odds(model._found, data, r, model._columns)
