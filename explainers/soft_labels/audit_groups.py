"""Whether soft labels change one group of items more than the others.

The gap of a group in an effect is the contrast on its items minus the contrast on all items. Both
come from the same resamples of seeds and items, so that the interval of the gap is paired.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from equipoise.inference import holm

from .audit_effects import CONTRASTS, Key, bootstrap_p, interval, t_interval

__all__ = ["group_gaps_frame"]

COLUMNS = ["effect", "group", "reference", "metric", "estimate", "low", "high", "p", "p_holm"]

PREFIX = "group "


def group_gaps_frame(
    arms: list[str],
    values: Mapping[Key, np.ndarray],
    resamples: Mapping[Key, np.ndarray],
    shares: np.ndarray,
    level: float,
) -> pd.DataFrame:
    """All contrasts of all groups; Holm over the groups and metrics of an effect."""
    rows = []
    for (stratum, reference, metric), value in values.items():
        if not stratum.startswith(PREFIX):
            continue
        whole = ("all", reference, metric)
        gap = value - values[whole]  # (n_arms, n_seeds)
        difference = resamples[stratum, reference, metric] - resamples[whole]
        draws = np.einsum("bas,bs->ba", difference, shares)
        for effect, contrast in CONTRASTS.items():
            if not set(contrast) <= set(arms):
                continue
            c = np.array([contrast.get(arm, 0.0) for arm in arms])
            by_seed, draw = c @ gap, draws @ c
            if len(draw):
                (low, high), p = interval(draw, level), bootstrap_p(draw)
            else:
                low, high, p = t_interval(by_seed, level)
            group = stratum.removeprefix(PREFIX)
            rows.append((effect, group, reference, metric, by_seed.mean(), low, high, p, np.nan))
    frame = pd.DataFrame(rows, columns=COLUMNS)
    for _, part in frame[frame["p"].notna()].groupby("effect"):
        frame.loc[part.index, "p_holm"] = holm(part["p"].to_numpy())
    return frame
