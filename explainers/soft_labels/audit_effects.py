"""Contrasts between the arms of an audit, with a two-level bootstrap over seeds and items.

With Q the mean of a metric over the seeds, in the 2 x 2 design A1 hard_orig, A2 hard_mode,
A3 soft_human, A4 soft_orig_mode:

    soft at human mode d1 = A3 - A2      soft at original mode d2 = A4 - A1
    soft main (d1 + d2) / 2              mode main ((A2 - A1) + (A3 - A4)) / 2
    interaction d1 - d2                  conflated A3 - A1 = soft main + mode main, exactly
    item information A3 - shuffled       class structure shuffled - label_smooth
    amount of entropy label_smooth - A2

Each resample draws the seeds and, with one multinomial weight vector for all arms and seeds, the
test items: contrasts stay paired.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy.stats import levene, t

from equipoise.inference import holm

from .audit_metrics import AuditMetric, Predictions, UserMetric

__all__ = ["CONTRASTS", "effects_frame", "metric_values", "stability_frame", "summary_frame"]

CONTRASTS: dict[str, dict[str, float]] = {
    "soft main": {"soft_human": 0.5, "hard_mode": -0.5, "soft_orig_mode": 0.5, "hard_orig": -0.5},
    "mode main": {"hard_mode": 0.5, "hard_orig": -0.5, "soft_human": 0.5, "soft_orig_mode": -0.5},
    "interaction": {"soft_human": 1, "hard_mode": -1, "soft_orig_mode": -1, "hard_orig": 1},
    "soft at human mode": {"soft_human": 1, "hard_mode": -1},
    "soft at original mode": {"soft_orig_mode": 1, "hard_orig": -1},
    "conflated": {"soft_human": 1, "hard_orig": -1},
    "item information": {"soft_human": 1, "shuffled": -1},
    "class structure": {"shuffled": 1, "label_smooth": -1},
    "amount of entropy": {"label_smooth": 1, "hard_mode": -1},
}

#: Strata with fewer items get no figures: binned errors of so few are mostly bias.
SMALLEST_STRATUM = 30

#: Resamples whose weights are held in memory at once.
CHUNK = 250

Key = tuple[str, str, str]  # stratum, reference, metric


def item_weights(n: int, n_bootstrap: int, rng: np.random.RandomState) -> np.ndarray:
    """Multinomial counts of the items in each resample, (n_bootstrap, n) in single precision."""
    weights = np.empty((n_bootstrap, n), dtype=np.float32)
    for row in weights:
        row[:] = np.bincount(rng.randint(n, size=n), minlength=n)
    return weights


def metric_values(
    F: np.ndarray,
    targets: Mapping[str, np.ndarray],
    counts: np.ndarray | None,
    strata: Mapping[str, np.ndarray],
    metrics: Mapping[str, Mapping[str, AuditMetric | UserMetric]],
    n_bootstrap: int,
    rng: np.random.RandomState,
) -> tuple[dict[Key, np.ndarray], dict[Key, np.ndarray]]:
    """Each metric of each arm and seed, and its resamples over the test items.

    Parameters
    ----------
    F : ndarray of shape (n_arms, n_seeds, n, K)
        Test probabilities.
    targets : mapping of str to ndarray of shape (n, K)
        Reference to its targets.
    counts : ndarray of shape (n, K) or None
        Votes of the test items.
    strata : mapping of str to ndarray of shape (n,), bool
        Items of each stratum.
    metrics : mapping of str to mapping
        For each reference, its metrics.
    n_bootstrap : int
        Number of resamples.
    rng : RandomState
        For the resamples.

    Returns
    -------
    values, resamples : dict
        From (stratum, reference, metric) to arrays (n_arms, n_seeds) and (n_bootstrap, n_arms,
        n_seeds). A user's metric isn't a sum over items: its resamples repeat the value.
    """
    n_arms, n_seeds, n, _ = F.shape
    keys = [(s, r, m) for s in strata for r in targets for m in metrics[r]]
    values = {key: np.full((n_arms, n_seeds), np.nan) for key in keys}
    resamples = {key: np.full((n_bootstrap, n_arms, n_seeds), np.nan) for key in keys}
    used = {name: rows for name, rows in strata.items() if rows.sum() >= SMALLEST_STRATUM}
    chunks = [slice(b, min(b + CHUNK, n_bootstrap)) for b in range(0, n_bootstrap, CHUNK)]
    states = rng.randint(2**31 - 1, size=len(chunks))
    # The statistics of one arm and seed at a time; weights are drawn again from their seeds.
    for c, chunk in enumerate([None, *chunks]):
        if chunk is None:
            W = None
        else:
            size = chunk.stop - chunk.start
            W = item_weights(n, size, np.random.RandomState(states[c - 1]))
        for stratum, rows in used.items():
            W_rows = W if W is None or rows.all() else W[:, rows]
            for a in range(n_arms):
                for s in range(n_seeds):
                    for reference, target in targets.items():
                        votes = counts[rows] if reference == "soft" and counts is not None else None
                        p = Predictions(F[a, s][rows], target[rows], votes)
                        for name, metric in metrics[reference].items():
                            key = (stratum, reference, name)
                            if not isinstance(metric, AuditMetric):
                                if W_rows is None:
                                    values[key][a, s] = metric(p.target, p.F)
                                    resamples[key][:, a, s] = values[key][a, s]
                                continue
                            S = metric.statistics(p)
                            if W_rows is None:
                                total = np.asarray(float(len(S)))
                                values[key][a, s] = metric.finish(S.sum(axis=0), total)
                            else:
                                sums = (W_rows @ S.astype(np.float32)).astype(float)
                                total = W_rows.sum(axis=1, dtype=float)
                                resamples[key][chunk, a, s] = metric.finish(sums, total)
    return values, resamples


def seed_weights(n_seeds: int, n_bootstrap: int, rng: np.random.RandomState) -> np.ndarray:
    """Share of each seed in each resample, (n_bootstrap, n_seeds)."""
    return rng.multinomial(n_seeds, np.full(n_seeds, 1 / n_seeds), size=n_bootstrap) / n_seeds


def interval(draws: np.ndarray, level: float) -> tuple[float, float]:
    """Percentile interval; NaN without resamples, or where one isn't defined."""
    if len(draws) == 0 or np.isnan(draws).any():
        return float("nan"), float("nan")
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def bootstrap_p(draws: np.ndarray) -> float:
    """Two-sided share of resamples on the other side of 0."""
    if len(draws) == 0 or np.isnan(draws).any():
        return float("nan")
    tail = min((draws <= 0).sum(), (draws >= 0).sum())
    return float(min(1.0, 2 * (1 + tail) / (len(draws) + 1)))


def t_interval(values: np.ndarray, level: float) -> tuple[float, float, float]:
    """Mean's t interval over the seeds, and the p-value of a mean of 0."""
    n = len(values)
    if n < 2 or np.isnan(values).any():
        return float("nan"), float("nan"), float("nan")
    mean, error = float(values.mean()), float(values.std(ddof=1) / np.sqrt(n))
    half = float(t.ppf((1 + level) / 2, n - 1)) * error
    if error == 0:
        p = 1.0 if mean == 0 else 0.0
    else:
        p = float(2 * t.sf(abs(mean) / error, n - 1))
    return mean - half, mean + half, p


def sd_of(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else float("nan")


def summary_frame(
    arms: list[str],
    values: Mapping[Key, np.ndarray],
    resamples: Mapping[Key, np.ndarray],
    shares: np.ndarray,
    level: float,
) -> pd.DataFrame:
    """Mean, deviation over the seeds and interval of each metric of each arm."""
    rows = []
    for (stratum, reference, metric), value in values.items():
        draws = np.einsum("bas,bs->ba", resamples[stratum, reference, metric], shares)
        for a, arm in enumerate(arms):
            low, high = interval(draws[:, a], level)
            mean, sd = float(value[a].mean()), sd_of(value[a])
            rows.append((arm, stratum, reference, metric, mean, sd, low, high))
    columns = ["arm", "stratum", "reference", "metric", "mean", "sd", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def effects_frame(
    arms: list[str],
    values: Mapping[Key, np.ndarray],
    resamples: Mapping[Key, np.ndarray],
    shares: np.ndarray,
    level: float,
) -> pd.DataFrame:
    """All contrasts whose arms are there; Holm over the metrics of an effect in a stratum."""
    rows = []
    possible = {name: c for name, c in CONTRASTS.items() if set(c) <= set(arms)}
    for (stratum, reference, metric), value in values.items():
        draws = np.einsum("bas,bs->ba", resamples[stratum, reference, metric], shares)
        for effect, contrast in possible.items():
            c = np.array([contrast.get(arm, 0.0) for arm in arms])
            by_seed, draw = c @ value, draws @ c
            low, high = interval(draw, level)
            t_low, t_high, t_p = t_interval(by_seed, level)
            p = bootstrap_p(draw) if len(draw) else t_p
            rows.append(
                {
                    "effect": effect,
                    "stratum": stratum,
                    "reference": reference,
                    "metric": metric,
                    "estimate": float(by_seed.mean()),
                    "low": low,
                    "high": high,
                    "p": p,
                    "sd": sd_of(by_seed),
                    "t_low": t_low,
                    "t_high": t_high,
                    "t_p": t_p,
                }
            )
    columns = "effect stratum reference metric estimate low high p p_holm sd t_low t_high t_p"
    frame = pd.DataFrame(rows, columns=[c for c in columns.split() if c != "p_holm"])
    adjusted = pd.Series(np.nan, index=frame.index)
    for _, group in frame[frame["p"].notna()].groupby(["effect", "stratum"]):
        adjusted[group.index] = holm(group["p"].to_numpy())
    frame["p_holm"] = adjusted
    return frame[columns.split()]


def jensen_shannon(F: np.ndarray, G: np.ndarray) -> float:
    """Mean Jensen-Shannon divergence between the rows, in nats."""
    M = (F + G) / 2
    terms = [Q * (np.log(np.maximum(Q, 1e-300)) - np.log(np.maximum(M, 1e-300))) for Q in (F, G)]
    return float(np.mean((terms[0] + terms[1]).sum(axis=1)) / 2)


def curve_measures(curves: np.ndarray, references: list[str]) -> dict[str, float]:
    """Volatility, epochs to converge and overfit gap from cross-entropies (seeds, epochs, refs)."""
    found = {}
    n_epochs = curves.shape[1]
    for r, reference in enumerate(references):
        Q = curves[:, :, r]
        last = Q[:, n_epochs // 2 :]
        steps = np.abs(np.diff(last, axis=1))
        found[f"volatility ({reference})"] = float(steps.mean()) if steps.size else float("nan")
        within = np.abs(Q - Q[:, -1:]) <= 0.01 * np.abs(Q[:, -1:])
        found[f"epochs to within 1% ({reference})"] = float(within.argmax(axis=1).mean() + 1)
        found[f"overfit gap ({reference})"] = float((Q[:, -1] - Q.min(axis=1)).mean())
    return found


def stability_frame(
    arms: list[str],
    F: np.ndarray,
    values: Mapping[Key, np.ndarray],
    curves: Mapping[str, np.ndarray],
    references: list[str],
    baseline: str = "hard_mode",
) -> pd.DataFrame:
    """How much an arm's models differ between seeds, and how quietly they train.

    For deviations over the seeds, ``ratio`` is the baseline's over the arm's and ``p`` is Levene's
    test (median) of equal spread.
    """
    rows = []
    n_seeds = F.shape[1]
    pairs = [(s, u) for s in range(n_seeds) for u in range(s + 1, n_seeds)]
    for a, arm in enumerate(arms):
        for (stratum, reference, metric), value in values.items():
            if stratum != "all" or n_seeds < 2:
                continue
            ratio = p = float("nan")
            if baseline in arms and arm != baseline:
                other = value[arms.index(baseline)]
                if value[a].std() > 0:
                    ratio = float(other.std(ddof=1) / value[a].std(ddof=1))
                if n_seeds >= 3 and value[a].std() > 0 and other.std() > 0:
                    p = float(levene(value[a], other, center="median").pvalue)
            rows.append((arm, f"sd of {metric} ({reference})", sd_of(value[a]), ratio, p))
        if pairs:
            predicted = F[a].argmax(axis=2)
            churn = np.mean([(predicted[s] != predicted[u]).mean() for s, u in pairs])
            divergence = np.mean([jensen_shannon(F[a, s], F[a, u]) for s, u in pairs])
            rows.append((arm, "churn", float(churn), np.nan, np.nan))
            rows.append((arm, "Jensen-Shannon", float(divergence), np.nan, np.nan))
        if arm in curves:
            for measure, number in curve_measures(curves[arm], references).items():
                rows.append((arm, measure, number, np.nan, np.nan))
    return pd.DataFrame(rows, columns=["arm", "measure", "value", "ratio", "p"])
