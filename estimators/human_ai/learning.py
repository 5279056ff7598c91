"""From what `HumanAITeamModel.fit` is given to what it learns."""

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import _check_sample_weight, validate_data

from .attributes import latent_attributes, two_stage_attributes
from .estimation import Options, Raw
from .inputs import (
    check_configuration,
    check_finite,
    column_index,
    item_codes,
    relative_capability_rows,
    truth_signs,
    two_classes,
    worker_codes,
)

__all__ = ["learned_attributes"]


def learned_attributes(
    model: Any,
    X: ArrayLike,
    y: ArrayLike,
    y_true: ArrayLike | None,
    groups: ArrayLike | None,
    items: ArrayLike | None,
    relative_capability: float | ArrayLike | None,
    sample_weight: ArrayLike | None,
) -> dict[str, Any]:
    """Check everything, estimate, and return what is to be learned."""
    data, target = validate_data(
        model, X, y, dtype=np.float64, ensure_min_features=2, ensure_all_finite=False
    )
    names = getattr(model, "feature_names_in_", None) if hasattr(data, "dtype") else None
    human_col = column_index(model.human_col, "human_col", names, data.shape[1])
    ai_col = column_index(model.ai_col, "ai_col", names, data.shape[1])
    if human_col == ai_col:
        raise ValueError(f"ai_col: got {model.ai_col!r}, the same column as human_col")
    check_finite(data, {human_col: "human_col", ai_col: "ai_col"}, names)
    classes, second = two_classes(target)
    w = _check_sample_weight(sample_weight, data, dtype=np.float64, ensure_non_negative=True)
    truth = truth_signs(y_true, target, classes)
    r = relative_capability_rows(relative_capability, model.relative_capability, len(target))
    codes, workers = worker_codes(groups, target)
    keep = w > 0
    if len(np.unique(second if keep.all() else second[keep])) < 2:
        raise ValueError("sample_weight: only one class of y has positive weight")
    if codes is not None and not keep.all():
        kept, fresh = np.unique(codes[keep], return_inverse=True)
        workers, codes = workers[kept], np.full(len(codes), -1)
        codes[keep] = fresh
    others = [j for j in range(data.shape[1]) if j not in (human_col, ai_col)]
    raw = Raw(
        data[:, human_col],
        data[:, ai_col],
        data[:, others],
        second.astype(float),
        w,
        truth,
        r,
        codes,
        item_codes(items, target),
    ).part(slice(None) if keep.all() else np.flatnonzero(keep))
    check_configuration(model, raw)
    options = Options(
        **{f.name: getattr(model, f.name) for f in fields(Options)}  # same names
    )
    if model.mode == "latent":
        learned = latent_attributes(raw, options, model.random_state)
    else:
        learned = two_stage_attributes(raw, workers, options, model.random_state)
    return {"classes_": classes, "_columns": (human_col, ai_col, others), **learned}
