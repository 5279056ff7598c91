"""Inputs and weights as the trained object takes them."""

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight, validate_data

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["check_inputs", "check_weight"]


def check_inputs(model: "BaseEstimator", X: Any, kind: str, reset: bool) -> Any:
    """Inputs as the trained object takes them; a scikit-learn classifier checks its own."""
    if kind == "sklearn":
        if len(getattr(X, "shape", np.asarray(X).shape)) == 1:
            raise ValueError(
                "Expected 2D array, got 1D array instead. Reshape your data: X.reshape(-1, 1) "
                "for one feature, X.reshape(1, -1) for one sample."
            )
        validate_data(model, X, skip_check_array=True, reset=reset)
        return X
    return validate_data(
        model, X, reset=reset, dtype=[np.float64, np.float32], allow_nd=kind != "mlp"
    )


def check_weight(sample_weight: Any, n: int) -> np.ndarray | None:
    """Weights of the items, non-negative and not all zero; None stays None."""
    if sample_weight is None:
        return None
    weight = _check_sample_weight(
        sample_weight, np.empty((n, 1)), dtype=np.float64, ensure_non_negative=True
    )
    if not weight.sum() > 0:
        raise ValueError("sample_weight is zero for all samples")
    return weight
