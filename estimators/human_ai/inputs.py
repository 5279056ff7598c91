"""Checks of what `HumanAITeamModel.fit` is given: each error says what is missing or wrong."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from .estimation import Raw

__all__ = [
    "check_configuration",
    "check_finite",
    "column_index",
    "item_codes",
    "relative_capability_rows",
    "truth_signs",
    "two_classes",
    "worker_codes",
]

Array = NDArray[np.float64]


def column_index(column: int | str, name: str, names: NDArray | None, n: int) -> int:
    """Position of a column given by position or name."""
    if isinstance(column, str):
        if names is None or column not in names:
            have = "X has no column names" if names is None else f"columns: {list(names)}"
            raise ValueError(f"{name}: got {column!r}; {have}")
        return int(np.flatnonzero(names == column)[0])
    if column >= n:
        raise ValueError(f"{name}: got {column}; X has {n} features")
    return int(column)


def check_finite(X: Array, roles: Mapping[int, str], names: NDArray | None) -> None:
    """Refuse NaN and infinity, naming the column."""
    for j in np.flatnonzero(~np.isfinite(X).all(axis=0)).tolist():
        label = f"column {j}" if names is None else f"column {names[j]!r}"
        role = f" ({roles[j]})" if j in roles else ""
        what = "NaN" if np.isnan(X[:, j]).any() else "infinity"
        raise ValueError(f"Input X contains {what} in {label}{role}; allowed: finite numbers")


def worker_codes(groups: ArrayLike | None, y: Array) -> tuple[NDArray[np.intp] | None, NDArray]:
    """Code of each row's worker, and the workers."""
    if groups is None:
        return None, np.zeros(0)
    labels = column_or_1d(groups)
    check_consistent_length(y, labels)
    if pd.isna(labels).any():
        raise ValueError("groups: missing values; each trial needs its worker")
    workers, codes = np.unique(labels, return_inverse=True)
    return codes.astype(np.intp), workers


def item_codes(items: ArrayLike | None, y: Array) -> NDArray[np.intp] | None:
    """Code of each row's case."""
    if items is None:
        return None
    labels = column_or_1d(items)
    check_consistent_length(y, labels)
    if pd.isna(labels).any():
        raise ValueError("items: missing values; each trial needs its case")
    return np.unique(labels, return_inverse=True)[1].astype(np.intp)


def two_classes(y: Array) -> tuple[NDArray, NDArray[np.bool_]]:
    """The two decisions, and whether each row is the second."""
    check_classification_targets(y)
    y_type = type_of_target(y, input_name="y")
    if y_type != "binary":
        raise ValueError(
            f"Only binary classification is supported. The type of the target is {y_type}."
        )
    classes = np.unique(y)
    if len(classes) < 2:
        raise ValueError(f"y: got one class, {classes[0]!r}; allowed: two classes of decisions")
    return classes, y == classes[1]


def truth_signs(y_true: ArrayLike | None, y: Array, classes: Array) -> Array | None:
    """The truth as +1 and -1."""
    if y_true is None:
        return None
    truth = column_or_1d(y_true)
    check_consistent_length(y, truth)
    if unknown := set(np.unique(truth).tolist()) - set(classes.tolist()):
        raise ValueError(
            f"y_true: got {sorted(unknown)}; allowed: the classes of y, {classes.tolist()}"
        )
    if len(np.unique(truth)) < 2:
        raise ValueError("y_true: got one class; both are needed to tell evidence from bias")
    return np.where(truth == classes[1], 1.0, -1.0)


def relative_capability_rows(
    given: float | ArrayLike | None, default: float | None, n: int
) -> Array | None:
    """r of each row, from fit or from the constructor."""
    value = default if given is None else given
    if value is None:
        return None
    r = np.asarray(value, dtype=float)
    r = np.full(n, float(r)) if r.ndim == 0 else column_or_1d(r)
    if len(r) != n:
        raise ValueError(
            f"relative_capability: got {len(r)} values for {n} samples; inconsistent length"
        )
    if not (np.isfinite(r) & (r > 0)).all():
        raise ValueError("relative_capability: allowed: positive finite numbers")
    return r


def check_workers(model: Any, raw: Raw) -> None:
    """Refuse to do without workers, or with one, where they are asked for."""
    by_worker = model.random_effects in ("trust", "trust+bias")
    if raw.codes is None and (by_worker or model.cov == "cluster"):
        asks = "random_effects" if by_worker else "cov='cluster'"
        raise ValueError(f"groups: got None; {asks} needs the worker of each trial")
    if raw.codes is not None and raw.codes.max() < 1:
        raise ValueError("groups: got one worker; at least two are needed")


def check_configuration(model: Any, raw: Raw) -> None:
    """Refuse combinations that need what isn't there."""
    belief = model.overlap_belief not in ("neglect", 0)
    if model.n_choices > 2:
        raise ValueError(
            f"n_choices: got {model.n_choices}; decisions have two classes here. Use "
            "fit_from_counts(human_alone, team_by_ai, n_choices=...)"
        )
    if model.mode == "latent":
        if raw.truth is None:
            raise ValueError("y_true: got None; mode='latent' needs the truth")
        for name, default in (("lapse", 0), ("penalty", "ridge")):
            if getattr(model, name) != default:
                raise ValueError(
                    f"{name}: got {getattr(model, name)!r}; allowed with mode='latent': {default!r}"
                )
        if model.random_effects not in (None, "item"):
            raise ValueError(
                f"random_effects: got {model.random_effects!r}; allowed with mode='latent': None, "
                "'item'"
            )
        if model.random_effects == "item" and model.cov != "information":
            raise ValueError(
                f"cov: got {model.cov!r}; allowed with random_effects='item': 'information' (the "
                "trials of a case belong together, whoever decided them)"
            )
        check_workers(model, raw)
        if model.random_effects == "item" and raw.items is None:
            raise ValueError("items: got None; random_effects='item' needs the case of each trial")
        if belief:
            raise ValueError(
                f"overlap_belief: got {model.overlap_belief!r}; latent data identify one "
                "threshold, not trust and belief apart; allowed: 'neglect'"
            )
        if raw.Z.shape[1]:
            raise ValueError("X: mode='latent' has no moderators; give exactly two columns")
        return
    if model.random_effects == "item":
        raise ValueError(
            "random_effects: got 'item'; allowed with mode='two_stage': None, 'trust', 'trust+bias'"
        )
    if belief and model.recommendation == "binary" and raw.truth is None:
        raise ValueError(
            f"overlap_belief: got {model.overlap_belief!r}; with recommendation='binary' it reads "
            "both capabilities: give y_true, or use 'neglect'"
        )
    if belief and raw.r is None and raw.truth is None:
        raise ValueError(
            f"overlap_belief={model.overlap_belief!r} reads the relative capability: give "
            "relative_capability, or y_true to estimate it"
        )
    check_workers(model, raw)
    if model.penalty == "firth":
        for refused, name, allowed in (
            (model.alpha != 0, "alpha", "0"),
            (model.random_effects is not None, "random_effects", "None"),
            (model.lapse != 0, "lapse", "0"),
            (model.overlap_belief == "fit", "overlap_belief", "'neglect' or a number"),
        ):
            if refused:
                raise ValueError(
                    f"{name}: got {getattr(model, name)!r}; allowed with penalty='firth': {allowed}"
                )
