"""How many votes an item are enough: models trained on r votes, drawn from those that are there.

For r = 1, 2, 3, 5, 8, ... each item keeps r votes drawn without replacement, the model is trained
on their shares, and is held against all votes of the test items. A curve a + b r^(-c) says where
the measure would end with votes without limit, and which r reaches 90 % of the way from one vote:
r^(-c) = 0.1. Entropy correlation and KL divergence saturate at different r (Kohli 2026).
"""

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import least_squares

from equipoise.explanation import Explanation
from equipoise.plotting import COLORS

from .audit import SoftLabelAudit
from .targets import soft_targets

__all__ = ["annotation_budget_curve"]

FIBONACCI = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144)
MEASURES = {"kl": "KL from annotators to model", "entropy_spearman": "entropy correlation"}

#: Range of the exponent c: below, 90 % would need 10**10 votes; above, two votes are all.
EXPONENTS = (0.1, 4.0)


def fit_power(r: np.ndarray, values: np.ndarray) -> tuple[float, float, float]:
    """Least-squares a, b, c of a + b r^(-c); a and b are linear, c is searched."""

    def solve(c: float) -> tuple[np.ndarray, np.ndarray]:
        design = np.column_stack([np.ones(len(r)), r**-c])
        ab = np.linalg.lstsq(design, values, rcond=None)[0]
        return ab, design @ ab - values

    starts = np.linspace(*EXPONENTS, 20)
    best = starts[np.argmin([(solve(c)[1] ** 2).sum() for c in starts])]
    found = least_squares(lambda x: solve(x[0])[1], [best], bounds=EXPONENTS, xtol=1e-12)
    c = float(found.x[0])
    (a, b), _ = solve(c)
    return float(a), float(b), c


def draw_budget(ax: Any, frame: pd.DataFrame, curves: pd.DataFrame, metric: str) -> Any:
    """A measure against the votes an item, with its fitted curve."""
    rows = frame[frame["metric"] == metric]
    a, b, c = (float(v) for v in curves.loc[curves["metric"] == metric, ["a", "b", "c"]].iloc[0])
    r = np.geomspace(rows["votes"].min(), rows["votes"].max(), 100)
    ax.plot(r, a + b * r**-c, color=COLORS[1], label="a + b r$^{-c}$")
    ax.errorbar(rows["votes"], rows["mean"], rows["sd"], fmt="o", color=COLORS[0], capsize=3)
    ax.axhline(a, color="0.6", linewidth=1, linestyle="--", label="without limit")
    ax.set_xscale("log")
    ax.set_xticks(rows["votes"], [str(v) for v in rows["votes"]], minor=False)
    ax.minorticks_off()
    ax.set(xlabel="votes an item", ylabel=MEASURES[metric], title="annotation budget")
    ax.legend(frameon=False)
    return ax


def annotation_budget_curve(
    estimator: Any,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    counts: npt.ArrayLike,
    X_test: npt.ArrayLike | None = None,
    y_test: npt.ArrayLike | None = None,
    counts_test: npt.ArrayLike | None = None,
    *,
    budgets: Sequence[int] | None = None,
    seeds: int | Sequence[int] = 3,
    memory: Any = None,
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = None,
    verbose: int = 0,
) -> Explanation:
    """Measure how the agreement with annotators grows with the number of votes an item.

    Parameters
    ----------
    estimator : object
        A classifier whose ``fit`` takes ``soft_labels``, as `SoftLabelClassifier`.
    X, y, counts : array-like
        Inputs, original hard labels and vote counts to train on.
    X_test, y_test, counts_test : array-like, optional
        Test items; None splits 30 % off.
    budgets : sequence of int, optional
        Numbers of votes an item, at least four; None takes 1, 2, 3, 5, 8, 13 and so on up to the
        fewest votes of an item.
    seeds : int or sequence of int, default=3
        Training seeds for each budget.
    memory, n_jobs, random_state, verbose
        As for `SoftLabelAudit`.

    Returns
    -------
    equipoise.explanation.Explanation
        One row a budget and measure: ``votes``, ``metric`` ("kl" or "entropy_spearman"), ``mean``
        and ``sd`` over the seeds, ``fitted``, and the curve's ``a``, ``b``, ``c`` and ``votes_90``,
        the number of votes at 90 % of the way from one vote to no limit. Plots "kl" and
        "entropy_spearman".

    Raises
    ------
    ValueError
        If `counts` aren't votes, or there are fewer than four budgets.

    References
    ----------
    .. [1] Kohli, arXiv 2605.29797, 2026.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from equipoise.datasets import make_ambiguous_digits, simulate_annotators
    >>> from equipoise.estimators import SoftLabelClassifier
    >>> from equipoise.explainers import annotation_budget_curve
    >>> digits = make_ambiguous_digits(400, ambiguity=0.5, random_state=0)
    >>> votes = simulate_annotators(digits.posterior, skill=(1, 1), random_state=0).counts
    >>> model = SoftLabelClassifier(LogisticRegression(max_iter=500))
    >>> curve = annotation_budget_curve(
    ...     model, digits.data / 16, digits.target, votes, seeds=1, random_state=0
    ... )
    >>> kl = curve.to_frame().query("metric == 'kl'")
    >>> kl["votes"].tolist()
    [1, 2, 3, 5, 8]
    >>> bool(kl["mean"].iloc[-1] < kl["mean"].iloc[0])
    True
    """
    humans = soft_targets(counts, name="counts")
    if humans.counts is None:
        raise ValueError("counts must be vote counts: the curve draws votes from them")
    fewest = int(humans.counts.sum(axis=1).min())
    chosen = [r for r in FIBONACCI if r <= fewest] if budgets is None else sorted(set(budgets))
    if len(chosen) < 4 or chosen[0] < 1:
        raise ValueError(
            f"budgets={chosen} must be at least four numbers of votes; an item has {fewest} votes"
        )
    audit = SoftLabelAudit(
        estimator,
        arms=[f"crowd_{r}" for r in chosen],
        seeds=seeds,
        metrics=list(MEASURES),
        strata=(0, 1),
        reference=["soft"],
        n_bootstrap=0,
        track_dynamics=False,
        memory=memory,
        n_jobs=n_jobs,
        random_state=random_state,
        verbose=verbose,
    )
    with warnings.catch_warnings():
        # Only the figures over all items are used here.
        warnings.filterwarnings("ignore", message="strata with fewer", category=UserWarning)
        audit.fit(X, y, counts, X_test, y_test, counts_test)
    summary = audit.summary_[audit.summary_["stratum"] == "all"]
    frames, curves, lines = [], [], []
    r = np.array(chosen, dtype=float)
    for metric, name in MEASURES.items():
        rows = summary[summary["metric"] == metric].set_index("arm")
        rows = rows.loc[[f"crowd_{k}" for k in chosen]]
        a, b, c = fit_power(r, rows["mean"].to_numpy())
        votes_90 = float(10 ** (1 / c))
        curves.append({"metric": metric, "a": a, "b": b, "c": c})
        frames.append(
            pd.DataFrame(
                {
                    "votes": chosen,
                    "metric": metric,
                    "mean": rows["mean"].to_numpy(),
                    "sd": rows["sd"].to_numpy(),
                    "fitted": a + b * r**-c,
                    "a": a,
                    "b": b,
                    "c": c,
                    "votes_90": votes_90,
                }
            )
        )
        beyond = ", an extrapolation beyond what was measured" if votes_90 > chosen[-1] else ""
        lines.append(
            f"{name}: {rows['mean'].iloc[0]:.3f} with {chosen[0]} votes an item, "
            f"{rows['mean'].iloc[-1]:.3f} with {chosen[-1]}, about {a:.3f} without limit; "
            f"90% of the way from one vote takes about {votes_90:.0f} votes{beyond}"
        )
    frame = pd.concat(frames, ignore_index=True)
    fitted = pd.DataFrame(curves)
    plots = {m: partial(draw_budget, frame=frame, curves=fitted, metric=m) for m in MEASURES}
    return Explanation("How many votes an item are enough?", lines, frame, plots)
