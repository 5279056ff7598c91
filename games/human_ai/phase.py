"""Phase diagrams: the region of every combination of AI capability and overlap, for one human.

Regions are filled from the accuracies on the grid; the boundary curves on top are the closed forms
(or the bisected sign changes, for binary advice), so the two check each other in the picture.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from equipoise.blocks import iter_blocks

from .accuracy import (
    checked,
    checked_options,
    number_of_choices,
    odds_of,
    single_accuracy,
    team_and_margins,
)
from .boundaries import regime_boundaries
from .checks import choice, within
from .choices import capability_of, option_accuracy, option_cells
from .regimes import REGIME_NAMES, codes_of

__all__ = ["PhaseDiagram", "phase_diagram"]

Array = NDArray[np.float64]

#: Fill of each region, light enough for curves and points on top.
FILLS = {-1: "#f2b8a0", 0: "#eceff3", 1: "#a9dcc3", 2: "#b5cff0"}


@dataclass(frozen=True, eq=False)
class PhaseDiagram:
    """Regions over a grid of overlap (rows) and AI capability (columns).

    Parameters
    ----------
    codes : ndarray of int8, shape (n_overlap, n_ai)
        Region of each cell, as in `regime`.
    team : ndarray of shape (n_overlap, n_ai)
        Accuracy of the team.
    human : float
        Accuracy of the human alone.
    ai : ndarray of shape (n_ai,)
        Accuracy of the AI alone.
    h : float
        The human's capability.
    ai_grid : ndarray of shape (n_ai,)
        The AI's capability.
    overlap_grid : ndarray of shape (n_overlap,)
        The overlap.
    settings : dict
        Trust, overlap belief and the other options that the grid shares.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games import phase_diagram
    >>> diagram = phase_diagram(0.5, ai_grid=np.linspace(0, 2, 41), overlap_grid=[0.2, 0.8])
    >>> diagram.codes.shape
    (2, 41)
    >>> diagram.boundaries["automation"].round(3)  # none at 20 % overlap
    array([  inf, 0.645])
    """

    codes: NDArray[np.int8]
    team: Array
    human: float
    ai: Array
    h: float
    ai_grid: Array
    overlap_grid: Array
    settings: dict[str, Any]

    @cached_property
    def boundaries(self) -> dict[str, Array]:
        """For each overlap, the AI capability where impairment ends and where automation begins.

        Returns
        -------
        dict of str to ndarray of shape (n_overlap,)
            Keys "impairment" and "automation"; NaN for an uneven prior, more than two
            alternatives, or h = 0, where `regime_boundaries` doesn't apply.
        """
        options = {k: v for k, v in self.settings.items() if k not in ("prior", "n_choices", "tol")}
        if self.settings["prior"] != 0.5 or self.settings["n_choices"] > 2 or self.h == 0:
            nothing = np.full(len(self.overlap_grid), np.nan)
            return {"impairment": nothing, "automation": nothing.copy()}
        ends = regime_boundaries(self.overlap_grid, h=self.h, **options)
        unit = 1.0 if options["recommendation"] == "binary" else self.h
        return {"impairment": ends[0] * unit, "automation": ends[1] * unit}

    def area(self) -> dict[str, float]:
        """Measure the share of each region in the rectangle of the grid.

        Returns
        -------
        dict of str to float
            Name of the region to its share; each cell counts with the area nearest to it.
        """

        def widths(grid: Array) -> Array:
            edges = np.concatenate([grid[:1], (grid[1:] + grid[:-1]) / 2, grid[-1:]])
            return np.diff(edges) if len(grid) > 1 else np.ones(1)

        share = np.outer(widths(self.overlap_grid), widths(self.ai_grid))
        share /= share.sum()
        return {name: float(share[self.codes == k].sum()) for k, name in REGIME_NAMES.items()}

    def to_frame(self) -> pd.DataFrame:
        """Return the diagram as a tidy table.

        Returns
        -------
        pandas.DataFrame
            One row a cell: overlap, ai_capability, human, ai, team, regime.
        """
        overlap, capability = np.meshgrid(self.overlap_grid, self.ai_grid, indexing="ij")
        return pd.DataFrame(
            {
                "overlap": overlap.ravel(),
                "ai_capability": capability.ravel(),
                "human": self.human,
                "ai": np.broadcast_to(self.ai, self.team.shape).ravel(),
                "team": self.team.ravel(),
                "regime": [REGIME_NAMES[code] for code in self.codes.ravel().tolist()],
            }
        )

    def plot(
        self,
        ax: Any = None,
        point: tuple[float, float] | None = None,
        covariance: ArrayLike | None = None,
    ) -> Any:
        """Draw the regions with their boundary curves.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; None makes a new figure.
        point : tuple of float, optional
            AI capability and overlap of a deployment to mark.
        covariance : array-like of shape (2, 2), optional
            Covariance of the point: draws its 95 % ellipse.

        Returns
        -------
        matplotlib.axes.Axes
            The axes drawn on.
        """
        from matplotlib.colors import BoundaryNorm, ListedColormap

        from equipoise.plotting import new_axes

        ax = new_axes() if ax is None else ax
        ax.pcolormesh(
            self.ai_grid,
            self.overlap_grid,
            self.codes,
            cmap=ListedColormap([FILLS[k] for k in sorted(FILLS)]),
            norm=BoundaryNorm([-1.5, -0.5, 0.5, 1.5, 2.5], 4),
            shading="nearest",
            rasterized=True,
        )
        for values in self.boundaries.values():
            shown = np.where(np.isfinite(values) & (values > 0), values, np.nan)
            ax.plot(shown, self.overlap_grid, color="#1d2433", lw=1.5)
        label_regions(ax, self)
        if point is not None:
            ax.plot(*point, "o", color="#D55E00", mec="white", ms=9, zorder=5)
            if covariance is not None:
                x, y = ellipse(point, np.asarray(covariance, dtype=float))
                ax.plot(x, y, color="#D55E00", lw=1.2, zorder=5)
        ax.axvline(self.h, color="#5b6475", lw=0.8, ls=":")
        ax.set_xlim(self.ai_grid[0], self.ai_grid[-1])
        ax.set_ylim(self.overlap_grid[0], self.overlap_grid[-1])
        ax.set_xlabel("AI capability $a$ (dotted: as capable as the human)")
        cue = self.settings["overlap_kind"] == "cue"
        ax.set_ylabel("overlap: share of cues" if cue else "overlap: correlation of errors")
        return ax


def label_regions(ax: Any, diagram: PhaseDiagram) -> None:
    """Write each region's name where its longest stretch is."""
    n_rows = len(diagram.overlap_grid)
    for code, name in REGIME_NAMES.items():
        inside = diagram.codes == code
        if inside.mean() < 0.02:
            continue
        row = int(np.clip(inside.sum(axis=1).argmax(), n_rows // 12, n_rows - 1 - n_rows // 12))
        columns = np.flatnonzero(inside[row])
        if len(columns):
            narrow = len(columns) < 0.3 * len(diagram.ai_grid)
            x = diagram.ai_grid[columns[0] if narrow else int(np.median(columns))]
            if narrow:  # from its left end, so that the word doesn't leave the axes
                x += 0.01 * (diagram.ai_grid[-1] - diagram.ai_grid[0])
            side, size = ("left", 8) if narrow else ("center", 9)
            ax.text(x, diagram.overlap_grid[row], name, ha=side, va="center", fontsize=size)


def ellipse(point: tuple[float, float], covariance: Array) -> tuple[Array, Array]:
    """The 95 % ellipse of a bivariate normal."""
    angle = np.linspace(0, 2 * np.pi, 181)
    values, vectors = np.linalg.eigh(covariance)
    radius = np.sqrt(5.991 * np.maximum(values, 0.0))  # chi-squared quantile, two degrees
    x, y = vectors @ (radius[:, None] * np.array([np.cos(angle), np.sin(angle)]))
    return point[0] + x, point[1] + y


def phase_diagram(
    h: float | None = None,
    *,
    p_human: float | None = None,
    ai_grid: ArrayLike | None = None,
    overlap_grid: ArrayLike | None = None,
    trust: float = 1.0,
    overlap_belief: float = 0.0,
    recommendation: str = "probabilistic",
    overlap_kind: str = "cue",
    prior: float = 0.5,
    n_choices: int = 2,
    tol: float = 1e-9,
) -> PhaseDiagram:
    """Compute the regions on a grid of AI capability and overlap.

    Parameters
    ----------
    h : float, optional
        Capability of the human, at least 0.
    p_human : float, optional
        Accuracy of the human alone, instead of `h`.
    ai_grid : array-like of shape (n_ai,), optional
        Increasing capabilities of the AI; None takes 201 values from 0 to max(3, 2 h).
    overlap_grid : array-like of shape (n_overlap,), optional
        Increasing overlaps; None takes 201 values from 0 to 1 (0 to 0.99 for correlations).
    trust, overlap_belief, recommendation, overlap_kind, prior, n_choices
        As in `team_accuracy`; one value for the whole diagram. The default kind is "cue".
    tol : float, default=1e-9
        As in `regime`.

    Returns
    -------
    PhaseDiagram
        Codes, accuracies and boundaries.

    Raises
    ------
    ValueError
        If an argument lies outside its range, or not exactly one of `h` and `p_human` is given.

    Examples
    --------
    >>> from equipoise.games import phase_diagram
    >>> few, many = (phase_diagram(p_human=0.7, trust=trust).area() for trust in (0.25, 1.5))
    >>> few["impairment"] < many["impairment"], few["automation"] > many["automation"]
    (True, True)
    """
    choice(recommendation, "recommendation", ("probabilistic", "binary"))
    K = number_of_choices(n_choices)
    if (h is None) == (p_human is None):
        raise ValueError(f"h, p_human: got {h} and {p_human}; allowed: exactly one of the two")
    if p_human is not None:
        p = within(p_human, "p_human", 1 / K, 1 - 1e-15)
        h = float(ndtri(p)) if K == 2 else float(capability_of(p, K))
    H = float(within(h, "h", 0.0))  # type: ignore[arg-type]
    cue = overlap_kind == "cue" and K == 2
    top = 1.0 if cue else 0.99
    a = grid_of(np.linspace(0, max(3.0, 2 * H), 201) if ai_grid is None else ai_grid, "ai_grid")
    o = grid_of(np.linspace(0, top, 201) if overlap_grid is None else overlap_grid, "overlap_grid")
    tol = float(within(tol, "tol", 0.0))
    settings = {
        "trust": float(trust),
        "overlap_belief": float(overlap_belief),
        "recommendation": recommendation,
        "overlap_kind": overlap_kind,
        "prior": float(prior),
        "n_choices": K,
        "tol": tol,
    }
    team = np.empty((len(o), len(a)))
    codes = np.empty(team.shape, dtype=np.int8)
    if K > 2:
        arrays = checked_options(
            H, a, o[:, None], trust, overlap_belief, recommendation, overlap_kind, prior, K
        )
        team[:] = np.add(*option_cells(*arrays, K))
        human, ai = option_accuracy(np.array(H), K), option_accuracy(a, K)
        codes[:] = codes_of(team - human, team - ai, tol)
    else:
        for rows in iter_blocks(len(o), bytes_per_item=400 * len(a)):
            cells = checked(H, a, o[rows, None], trust, overlap_belief, overlap_kind, prior)
            team[rows], over_human, over_ai = team_and_margins(*cells, recommendation)
            codes[rows] = codes_of(over_human, over_ai, tol)
        l0 = odds_of(prior)
        human, ai = single_accuracy(np.array(H), l0), single_accuracy(a, l0)
    return PhaseDiagram(codes, team, float(human), ai, H, a, o, settings)


def grid_of(values: ArrayLike, name: str) -> Array:
    """A strictly increasing grid of finite numbers."""
    grid = np.array(values, dtype=float)
    if grid.ndim != 1 or not len(grid) or not np.isfinite(grid).all() or (np.diff(grid) <= 0).any():
        raise ValueError(f"{name}: allowed: one-dimensional, finite, strictly increasing")
    return grid
