"""Auditing a mediator: what becomes of its promise when the matches are drawn anew."""

import warnings
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd

from equipoise.blocks import map_blocks

from .certainty import percentile_row

__all__ = ["audit_mediator"]

Array = np.ndarray
BLOCK = 50


def checked_count(value: Any, name: str, least: int) -> int:
    if not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name}={value!r} must be an integer of at least {least}")
    return int(value)


def kept_promises(mediator: Any, tables: list[Any], slack: float) -> Array:
    """Welfare, status quo, violation and whether the certificate holds, a row a replicate."""
    rows = np.empty((len(tables), 4))
    for row, table in zip(rows, tables, strict=True):
        welfare, before, certificate = mediator._measure(table)
        violation = certificate.max_violation
        row[:] = welfare, before, violation, violation <= max(slack, certificate.tolerance)
    return rows


def fitted_anew(mediator: Any, tables: list[Any]) -> Array:
    """Welfare, gain and cost of the mediator fitted to each replicate, and whether it is the same.

    NaN where it finds no policy.
    """
    rows = np.full((len(tables), 4), np.nan)
    for row, table in zip(rows, tables, strict=True):
        other = mediator._refitted(table)
        row[3] = mediator._same_choice(other)
        if other.feasible_:
            row[:3] = other.welfare_, other.gain_, other.cost_
    return rows


def audit_mediator(
    mediator: Any, n_bootstrap: int, n_jobs: int | None, slack: float, n_refit: int, single: str
) -> pd.DataFrame:
    """The table of `BaseMediator.audit`."""
    n = checked_count(n_bootstrap, "n_bootstrap", 1)
    n_refit = min(checked_count(n_refit, "n_refit", 0), n)
    if not slack >= 0:
        raise ValueError(f"slack={slack!r} must not be negative")
    tables = mediator._draw(n, single)
    blocks = [tables[k : k + BLOCK] for k in range(0, n, BLOCK)]
    table = np.concatenate(
        map_blocks(lambda block: kept_promises(mediator, block, slack), blocks, n_jobs)
    )
    confidence = mediator._confidence()
    certificate = mediator.certificate_
    rows: list[tuple[str, float, float, float, float]] = [
        percentile_row(name, estimate, values, confidence)
        for name, estimate, values in [
            ("welfare", mediator.welfare_, table[:, 0]),
            ("status quo", mediator.status_quo_welfare_, table[:, 1]),
            ("gain", mediator.gain_, table[:, 0] - table[:, 1]),
            ("violation", certificate.max_violation, table[:, 2]),
        ]
    ]
    share = float(table[:, 3].mean())
    holds = certificate.ok or certificate.max_violation <= slack
    rows.append(("certificate holds", float(holds), share, share, 1.0))
    if n_refit:
        blocks = [tables[k : min(k + BLOCK, n_refit)] for k in range(0, n_refit, BLOCK)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # each refit would repeat the fit's own warnings
            again = np.concatenate(
                map_blocks(lambda block: fitted_anew(mediator, block), blocks, n_jobs)
            )
        rows += [
            percentile_row(name, estimate, values, confidence)
            for name, estimate, values in [
                ("welfare, refitted", mediator.welfare_, again[:, 0]),
                ("gain, refitted", mediator.gain_, again[:, 1]),
                ("cost, refitted", mediator.cost_, again[:, 2]),
            ]
        ]
        same = float(again[:, 3].mean())
        rows.append(("same choice", 1.0, same, same, 1.0))
    return pd.DataFrame(rows, columns=["quantity", "estimate", "lower", "upper", "share"])
