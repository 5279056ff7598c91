"""Interactions of an explained model: computed row by row, and handed out as an explanation."""

from collections.abc import Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from equipoise.blocks import map_blocks
from equipoise.explanation import Explanation

from .engines import term_rows
from .interactions import interaction_rule, pair_interactions, subset_interactions
from .kernels import player_factors
from .player_game import PlayerGame

__all__ = ["InteractionExplanation", "interaction_values"]


class InteractionExplanation(Explanation):
    """How players act together, for each explained row.

    Parameters
    ----------
    values : ndarray of shape (n, n_players, n_players) or (n, n_players, n_players, n_outputs)
        All pairs; or a dict from subsets to arrays of shape (n,) or (n, n_outputs).
    base_values : ndarray of shape (n,) or (n, n_outputs)
        Value of the empty coalition.
    index : str
        Interaction index.
    feature_names : list of str
        Names of the players.
    output_names : list of str
        Names of the outputs; empty for a single one.
    main_values : ndarray of shape (n, n_players) or (n, n_players, n_outputs), optional
        Shapley values, from which `to_shap_matrix` takes its diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.svm import SVR
    >>> from equipoise.explainers import PKeXShapleyExplainer
    >>> X = np.random.default_rng(0).normal(size=(30, 3))
    >>> explainer = PKeXShapleyExplainer(SVR()).fit(X, X[:, 0] * X[:, 1])
    >>> pairs = explainer.interactions(X)
    >>> pairs.values.shape
    (30, 3, 3)
    >>> pairs.to_frame().columns.tolist()
    ['players', 'mean', 'mean_abs']
    """

    def __init__(
        self,
        values: Any,
        base_values: np.ndarray,
        *,
        index: str,
        feature_names: Sequence[str],
        output_names: Sequence[str] = (),
        main_values: np.ndarray | None = None,
    ) -> None:
        self.values = values
        self.base_values = base_values
        self.index = index
        self.feature_names = list(feature_names)
        self.output_names = list(output_names)
        self.main_values = main_values
        frame = interaction_frame(values, self.feature_names, self.output_names)
        strongest = [
            f"{row.players}: {row.mean:+.4g} on average, {row.mean_abs:.4g} in size"
            for row in frame.head(3).itertuples()
        ]
        plots = {"bar": partial(draw_bars, frame)}
        if not isinstance(values, dict):
            plots = {"heatmap": partial(draw_heatmap, values, self.feature_names), **plots}
        super().__init__(f"Which players act together ({index})?", strongest, frame, plots)

    def to_shap_matrix(self) -> np.ndarray:
        """Lay out pairs as shap does: halves off the diagonal, the rest of each value on it.

        Returns
        -------
        ndarray of the shape of `values`
            Rows sum to the Shapley values.

        Raises
        ------
        ValueError
            Unless the index is "SII" of order 2.
        """
        if self.index != "SII" or isinstance(self.values, dict) or self.main_values is None:
            raise ValueError(f"to_shap_matrix needs all pairs of index='SII', got {self.index!r}")
        matrix = self.values / 2
        diagonal = np.arange(matrix.shape[1])
        matrix[:, diagonal, diagonal] = self.main_values - matrix.sum(axis=2)
        return matrix


def interaction_frame(
    values: Any, feature_names: list[str], output_names: list[str]
) -> pd.DataFrame:
    """Average over rows: one line a subset and output, the strongest first."""
    if isinstance(values, dict):
        subsets = list(values)
        stacked = np.stack([values[subset] for subset in subsets], axis=1)
    else:
        first, second = np.triu_indices(values.shape[1], 1)
        subsets = list(zip(first.tolist(), second.tolist(), strict=True))
        stacked = values[:, first, second]
    names = [" & ".join(feature_names[j] for j in subset) for subset in subsets]
    stacked = stacked.reshape(len(stacked), len(subsets), -1)
    columns: dict[str, Any] = {"players": np.repeat(names, stacked.shape[2]).tolist()}
    if output_names:
        columns["output"] = output_names * len(names)
    columns["mean"] = stacked.mean(axis=0).ravel()
    columns["mean_abs"] = np.abs(stacked).mean(axis=0).ravel()
    return pd.DataFrame(columns).sort_values("mean_abs", ascending=False, ignore_index=True)


def draw_bars(frame: pd.DataFrame, ax: Any) -> Any:
    """Draw the ten strongest subsets."""
    top = frame.head(10)[::-1]
    labels = top["players"]
    if "output" in top:
        labels = labels + " (" + top["output"].astype(str) + ")"
    ax.barh(labels, top["mean_abs"])
    ax.set(xlabel="mean |interaction|")
    return ax


def draw_heatmap(values: np.ndarray, feature_names: list[str], ax: Any) -> Any:
    """Draw the mean interaction of all pairs (of the first output)."""
    mean = values.reshape(*values.shape[:3], -1)[..., 0].mean(axis=0)
    size = np.abs(mean).max() or 1.0
    image = ax.imshow(mean, cmap="RdBu_r", vmin=-size, vmax=size)
    places = np.arange(len(feature_names))
    ax.set_xticks(places, feature_names, rotation=60, ha="right")
    ax.set_yticks(places, feature_names)
    ax.figure.colorbar(image, ax=ax, label="mean interaction")
    return ax


def interaction_values(
    game: PlayerGame,
    X: np.ndarray,
    *,
    index: str,
    order: int,
    subsets: list[tuple[int, ...]] | None,
    n_nodes: str | int,
    tol: float,
    working_memory: float | None,
    n_jobs: int | None,
) -> np.ndarray:
    """Compute interactions of each row, for all pairs or for some subsets.

    Parameters
    ----------
    game : PlayerGame
        What is explained.
    X : ndarray of shape (n, n_columns)
        Rows explained.
    index : str
        Interaction index, see `interaction_rule`.
    order : int
        Size of the subsets.
    subsets : list of tuple of int, or None
        None takes all pairs.
    n_nodes : "auto", "exact" or int
        "auto" takes as many nodes as `tol` needs; anything else the exact number.
    tol : float
        Tolerance of "auto".
    working_memory : float or None
        Budget in MiB.
    n_jobs : int or None
        Threads over rows.

    Returns
    -------
    ndarray of shape (n, n_players, n_players, n_outputs) or (n, n_subsets, n_outputs)
        Values.
    """
    d = game.n_players
    unit = all(kernel.unit for kernel in game.expansion.terms)

    def row_values(i: int) -> np.ndarray:
        shape = (d, d) if subsets is None else (len(subsets),)
        total = np.zeros((*shape, game.expansion.n_outputs))
        for kernel, support, coef in game.pieces(working_memory):
            for absence, row_weights in game.absence_rows(kernel, support, working_memory):
                A = term_rows(
                    player_factors(
                        kernel, X[i : i + 1], support, game.player, d, minus_one=absence is None
                    )
                )[0]
                weights = coef.reshape(len(A), -1)
                rows = [1.0] if absence is None else term_rows(absence)
                for B, row_weight in zip(rows, row_weights, strict=True):
                    D = A if absence is None else A - B
                    z = np.abs(D).sum(axis=1).max() if unit and n_nodes == "auto" else None
                    t, w = interaction_rule(index, order, d, z, tol)
                    if subsets is None:
                        total += pair_interactions(D, B, row_weight * weights, t, w)
                    else:
                        total += subset_interactions(D, B, row_weight * weights, subsets, t, w)
        return total

    return np.stack(map_blocks(row_values, range(len(X)), n_jobs))


def top_subsets(size: np.ndarray, top_k: int, order: int) -> list[tuple[int, ...]]:
    """Return all subsets of `order` of the `top_k` largest players, in their own order."""
    chosen = sorted(np.argsort(-size, kind="stable")[:top_k].tolist())
    return list(combinations(chosen, order))
