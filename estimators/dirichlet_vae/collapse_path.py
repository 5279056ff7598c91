"""Fits along a grid of beta / beta_c: where the code collapses, upwards and downwards.

Upwards each fit starts from the endmembers of the one before. Downwards it starts from the
collapsed state (or what has grown from it), moved apart by 1e-3 standard deviations along the
leading directions, because exactly at the saddle nothing ever moves. Where the transition is of
first order the two branches differ (hysteresis), and r_global, where the active branch's objective
equals the collapsed one's, lies above 1.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.interpolate import CubicHermiteSpline
from scipy.optimize import brentq
from sklearn.base import clone

from equipoise.plotting import COLORS, new_axes

from .choices import LINEAR_DECODERS
from .pure_pixels import principal_axes
from .report import COLLAPSED_KL

if TYPE_CHECKING:
    from .dirichlet_vae import DirichletBetaVAE

__all__ = ["collapse_path", "plot_collapse_path"]

#: What moves equal endmembers apart on the way down, in standard deviations of a feature.
PERTURBATION = 1e-3


def check_ratios(ratios: npt.ArrayLike) -> np.ndarray:
    """Different positive ratios, ascending."""
    grid = np.unique(np.asarray(ratios, dtype=np.float64))
    if grid.ndim != 1 or len(grid) == 0 or not np.isfinite(grid).all() or grid[0] <= 0:
        raise ValueError(f"ratios={ratios!r} is not allowed; allowed: finite numbers above 0")
    return grid


def perturbation(X: np.ndarray, K: int) -> np.ndarray:
    """What moves K endmembers apart (K, D): along the leading directions of the rows X."""
    _, axes, _ = principal_axes(X, np.ones(len(X)))
    axes = axes[: min(K - 1, len(axes))]
    tangent = np.linalg.qr(np.column_stack([np.ones(K), np.eye(K)]))[0][:, 1 : 1 + len(axes)]
    deviation = np.sqrt(X.var(axis=0).mean())
    return PERTURBATION * np.sqrt(K) * deviation * tangent @ axes


def moved_apart(W: np.ndarray, push: np.ndarray, decoder: str) -> np.ndarray:
    """Endmembers (K, D) after the push, inside the decoder's bounds."""
    moved = W + push
    if decoder in ("nonnegative", "box"):
        return np.clip(moved, 0.0, 1.0 if decoder == "box" else np.inf)
    return moved


def record(model: "DirichletBetaVAE", ratio: float, direction: str) -> dict[str, Any]:
    """One row of the path."""
    report = model.report_
    return {
        "ratio": ratio,
        "direction": direction,
        "kl": report.kl_mean,
        "gap": report.objective_gap / report.beta,
        "verdict": report.verdict,
    }


def zero_of_gap(frame: pd.DataFrame) -> float:
    """Ratio at which the upward branch's gap rises through zero, else NaN.

    Along a branch of optima d gap / d r = (kl - gap) / r (envelope theorem), so that a cubic with
    the right slopes interpolates a coarse grid well.
    """
    up = frame[(frame["direction"] == "up") & (frame["kl"] > COLLAPSED_KL)].sort_values("ratio")
    ratio, gap, kl = (up[name].to_numpy() for name in ("ratio", "gap", "kl"))
    for i in range(len(gap) - 1):
        if gap[i] < 0 <= gap[i + 1]:
            ends = slice(i, i + 2)
            slopes = (kl[ends] - gap[ends]) / ratio[ends]
            cubic = CubicHermiteSpline(ratio[ends], gap[ends], slopes)
            return float(brentq(cubic, ratio[i], ratio[i + 1]))
    return float("nan")


def collapse_path(
    est: "DirichletBetaVAE", X: npt.ArrayLike, ratios: npt.ArrayLike, *, direction: str = "up"
) -> pd.DataFrame:
    """Fit at each beta / beta_c with warm starts.

    Parameters
    ----------
    est : DirichletBetaVAE
        With beta="auto", one of the decoders linear in the code and variational EM; it isn't
        changed.
    X : array-like of shape (n_samples, n_features)
        Rows.
    ratios : array-like of shape (n_ratios,)
        The grid of beta / beta_c.
    direction : {"up", "down", "both"}, default="up"
        "up": ascending, from a trained model; "down": descending, from the collapsed state.

    Returns
    -------
    pandas.DataFrame
        Columns ratio, direction, kl (mean, nats), gap (objective less the collapsed one's, over
        beta: negative where the found state is the better one) and verdict; one row a fit.
        ``attrs["r_global"]`` is where the upward branch's gap crosses zero, NaN where it doesn't on
        the grid.

    Raises
    ------
    ValueError
        If the direction or a ratio isn't allowed, or the estimator needs a network or a fixed beta.

    Examples
    --------
    >>> from equipoise.datasets import make_convex_mixture
    >>> from equipoise.estimators import DirichletBetaVAE, collapse_path
    >>> X = make_convex_mixture(200, 10, 3, random_state=0).data
    >>> frame = collapse_path(DirichletBetaVAE(3, random_state=0), X, [0.25, 0.75, 1.25])
    >>> frame["verdict"].tolist()
    ['active', 'active', 'collapsed']
    """
    if direction not in ("up", "down", "both"):
        raise ValueError(f"direction={direction!r} is not allowed; allowed: ['up', 'down', 'both']")
    if est.beta != "auto":
        raise ValueError(f"est has beta={est.beta!r}; allowed: 'auto', a multiple of the threshold")
    if not isinstance(est.decoder, str) or est.decoder not in LINEAR_DECODERS:
        raise ValueError(
            f"est has decoder={est.decoder!r}; allowed: {list(LINEAR_DECODERS)}, whose threshold "
            "is exact"
        )
    grid = check_ratios(ratios)
    rows = []
    if direction in ("up", "both"):
        model = clone(est).set_params(solver="vem", warm_start=True)
        for ratio in grid:
            model.set_params(beta_ratio=float(ratio)).fit(X)
            rows.append(record(model, float(ratio), "up"))
    if direction in ("down", "both"):
        dense = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
        W = np.tile(dense.mean(axis=0), (est.n_components, 1))
        push = perturbation(dense, est.n_components)
        for ratio in grid[::-1]:
            start = moved_apart(W, push, est.decoder)
            model = clone(est).set_params(
                solver="vem", warm_start=False, init=start, beta_ratio=float(ratio)
            )
            W = model.fit(X).components_
            rows.append(record(model, float(ratio), "down"))
    frame = pd.DataFrame(rows, columns=["ratio", "direction", "kl", "gap", "verdict"])
    frame.attrs["r_global"] = zero_of_gap(frame)
    return frame


def plot_collapse_path(frame: pd.DataFrame, ax: Any = None) -> Any:
    """Draw the code's divergence along a path.

    Parameters
    ----------
    frame : pandas.DataFrame
        What `collapse_path` returns.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Mean divergence over beta / beta_c, a line a direction; dashed lines at the threshold and,
        where known, at the crossing of the objectives.

    Raises
    ------
    ValueError
        If a column is missing.

    Examples
    --------
    >>> import pandas as pd
    >>> from equipoise.estimators import plot_collapse_path
    >>> frame = pd.DataFrame({"ratio": [0.5, 1.5], "direction": "up", "kl": [1.0, 0.0]})
    >>> plot_collapse_path(frame).get_ylabel()
    'mean divergence (nats)'
    """
    missing = {"ratio", "direction", "kl"} - set(frame.columns)
    if missing:
        raise ValueError(
            f"frame lacks the columns {sorted(missing)}; give what collapse_path returns"
        )
    ax = new_axes() if ax is None else ax
    labels = {"up": "upwards, from a trained model", "down": "downwards, from collapse"}
    for (name, branch), color, marker in zip(
        frame.groupby("direction", sort=False), COLORS, "ovs", strict=False
    ):
        branch = branch.sort_values("ratio")
        label = labels.get(str(name), str(name))
        ax.plot(branch["ratio"], branch["kl"], marker=marker, ms=4, color=color, label=label)
    ax.axvline(1, color="0.4", ls="--", lw=1, label="threshold")
    r_global = frame.attrs.get("r_global", np.nan)
    if np.isfinite(r_global):
        ax.axvline(r_global, color=COLORS[2], ls=":", lw=1.5, label="objectives equal")
    ax.set_xlabel("beta / beta_c")
    ax.set_ylabel("mean divergence (nats)")
    # Axes may share their scale with another path: the top only grows.
    ax.set_ylim(0, max(ax.get_ylim()[1], 1.05 * float(frame["kl"].max())))
    ax.legend(frameon=False)
    return ax
