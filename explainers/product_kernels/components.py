"""The game behind an explainer's attributions: values, components, main effects, interactions."""

from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from .attribution import attribute
from .engines import term_rows
from .expansion import densified
from .interaction_explanation import InteractionExplanation, interaction_values, top_subsets
from .interactions import INTERACTION_INDICES, checked_subsets
from .kernels import player_factors
from .player_game import PlayerGame
from .product_games import ProductGame

__all__ = ["ComponentMethods"]


class ComponentMethods:
    """Methods of `PKeXShapleyExplainer` about its game; a file of their own for length."""

    _game: Any
    _empty: np.ndarray
    _template: Any
    _rows: Any
    groups_: dict[str, list[int]]
    output_names_: list[str]
    expansion_: Any
    empty_value: float | None
    tol: float
    n_nodes: str | int
    n_jobs: int | None
    working_memory: float | None

    def _product_game(self, what: str) -> PlayerGame:
        check_is_fitted(self)
        if not isinstance(self._game, PlayerGame):
            raise TypeError(f"{what} isn't available for a model on RBFSampler's features")
        if self.empty_value is not None:
            raise ValueError(
                f"{what} is for empty_value=None: another value of the empty coalition changes the "
                f"game; got {self.empty_value!r}"
            )
        return self._game

    def _dense(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return densified(self._rows(X)[1], self.working_memory)

    def _player_number(self, player: int | str) -> int:
        names = list(self.groups_)
        if isinstance(player, str):
            if player not in names:
                raise ValueError(f"{player!r} is none of the players {names}")
            return names.index(player)
        if not 0 <= player < len(names):
            raise ValueError(f"player {player!r} is not a number from 0 to {len(names) - 1}")
        return int(player)

    def predict_output(self, X: Any) -> np.ndarray:
        """Compute the explained output of the model from its expansion.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_outputs)
            The value when all players are present.
        """
        rows = self._rows(X)[1]
        return self.expansion_(rows)

    def value_function(self, X: Any, coalitions: Any) -> np.ndarray:
        """Compute the game's value for some coalitions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        coalitions : array-like of bool of shape (n_coalitions, n_players)
            Which players are present.

        Returns
        -------
        ndarray of shape (n_samples, n_coalitions) or (n_samples, n_coalitions, n_outputs)
            Values.
        """
        rows = self._rows(X)[1]
        present = np.asarray(coalitions, dtype=bool)
        if present.ndim != 2 or present.shape[1] != self._game.n_players:
            raise ValueError(
                f"coalitions must have shape (n_coalitions, {self._game.n_players}), "
                f"got {present.shape}"
            )
        dense = densified(rows, self.working_memory)
        values = self._game.coalition_values(dense, present, self.working_memory)
        values[:, ~present.any(axis=1)] = self._empty
        return values[..., 0] if values.shape[2] == 1 else values

    def game(self, x: Any, output: int = 0) -> ProductGame:
        """Return the game that one row's attributions are the values of.

        Parameters
        ----------
        x : array-like of shape (n_features,) or (1, n_features)
            The row.
        output : int, default=0
            Which output.

        Returns
        -------
        ProductGame
            Weights, presence and absence factors of all terms.
        """
        product = self._product_game("The game")
        rows = self._dense(np.reshape(x, (1, -1)) if np.ndim(x) == 1 else x)
        if len(rows) != 1:
            raise ValueError(f"x must be one row, got {len(rows)}")
        if not 0 <= output < product.expansion.n_outputs:
            raise ValueError(
                f"output={output!r} is not a number from 0 to {product.expansion.n_outputs - 1}"
            )
        d = product.n_players
        parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        for kernel, support, coef in product.pieces(self.working_memory):
            A = term_rows(player_factors(kernel, rows, support, product.player, d))[0]
            weights = coef.reshape(len(A), -1)[:, output]
            used = weights != 0
            for B, w in product.absence_rows(kernel, support, self.working_memory):
                absent = np.ones((1, *A.shape)) if B is None else term_rows(B)
                parts += [
                    (weight * weights[used], A[used], b[used])
                    for b, weight in zip(absent, w, strict=True)
                ]
        empty = (np.empty(0), np.empty((0, d)), np.empty((0, d)))
        weights, presence, absence = (
            np.concatenate(arrays) for arrays in zip(*(parts or [empty]), strict=True)
        )
        constant = float(product.expansion.intercept[output])
        return ProductGame(weights, presence, absence, constant)

    def interactions(
        self,
        X: Any,
        index: str = "SII",
        order: int = 2,
        pairs: Any = None,
        top_k: int | None = None,
    ) -> InteractionExplanation:
        """Compute exact interactions of the players for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to explain.
        index : {"SII", "STI", "FSII", "CHII", "BII", "Moebius", "k-SII"}, default="SII"
            Interaction index. "k-SII" (order 2) and "STI" (order 2) have the players' own values
            on the diagonal, so that all entries together, each pair once, sum to the output minus
            the base value.
        order : int, default=2
            Size of the subsets; above 2 only with `pairs` or `top_k`.
        pairs : list of tuple, default=None
            Subsets of `order` players, by position or name; None takes all pairs.
        top_k : int, default=None
            Take the subsets of the `top_k` players of the largest mean absolute Shapley value.

        Returns
        -------
        InteractionExplanation
            ``values`` of shape (n_samples, n_players, n_players), or
            (n_samples, n_players, n_players, n_outputs) with several outputs; with `pairs` or
            `top_k` a dict from subsets to arrays of shape (n_samples,) or (n_samples, n_outputs).

        Raises
        ------
        ValueError
            If the index isn't available at this order, or a subset is malformed.
        """
        game = self._product_game("The interaction index")
        rows = self._dense(X)
        allowed = (*INTERACTION_INDICES, "k-SII")
        if index not in allowed:
            raise ValueError(f"index={index!r} is not available; allowed: {list(allowed)}")
        if pairs is not None and top_k is not None:
            raise ValueError("pairs and top_k are both given; give one of them")
        chosen = pairs is not None or top_k is not None
        if order < 2 or (order > 2 and not chosen):
            raise ValueError(f"order={order}: give pairs or top_k for orders above 2")
        if index == "k-SII" and (order != 2 or chosen):
            raise ValueError("index='k-SII' is for all pairs: order=2 without pairs and top_k")
        d = game.n_players
        subsets = None
        if pairs is not None:
            numbered = [[self._player_number(j) for j in subset] for subset in pairs]
            subsets = checked_subsets(numbered, d, order)
        elif top_k is not None:
            if not order <= top_k <= d:
                raise ValueError(f"top_k={top_k!r} must lie between order={order} and {d}")
            size = np.abs(self._shapley(rows)).mean(axis=(0, 2))
            subsets = top_subsets(size, top_k, order)
        options: dict[str, Any] = {
            "n_nodes": self.n_nodes, "tol": self.tol,
            "working_memory": self.working_memory, "n_jobs": self.n_jobs,
        }  # fmt: skip
        values: Any = interaction_values(
            game, rows, index="SII" if index == "k-SII" else index,
            order=order, subsets=subsets, **options,
        )  # fmt: skip
        main = None
        if subsets is None and index in ("SII", "k-SII"):
            main = self._shapley(rows)
        if subsets is None and index in ("STI", "k-SII"):
            if main is None:
                singles: list[tuple[int, ...]] = [(j,) for j in range(d)]
                own = interaction_values(
                    game, rows, index="Moebius", order=1, subsets=singles, **options
                )
            else:
                own = main - values.sum(axis=2) / 2
            values[:, np.arange(d), np.arange(d)] = own
        single = values.shape[-1] == 1
        base = np.tile(self._empty, (len(rows), 1))
        if single:
            values, base = values[..., 0], base[:, 0]
            main = None if main is None else main[..., 0]
        if subsets is not None:
            values = {subset: values[:, s] for s, subset in enumerate(subsets)}
        return InteractionExplanation(
            values,
            base,
            index=index,
            feature_names=list(self.groups_),
            output_names=self.output_names_,
            main_values=main,
        )

    def _shapley(self, rows: np.ndarray) -> np.ndarray:
        return attribute(
            self._game, rows, n_nodes=self.n_nodes, tol=self.tol,
            working_memory=self.working_memory, n_jobs=self.n_jobs,
        ).values  # fmt: skip

    def component(self, subset: Any, X: Any) -> np.ndarray:
        """Compute one component f_S of the functional decomposition f = sum_S f_S.

        Parameters
        ----------
        subset : iterable of int or str
            The players S, by position or name; the empty one is the base value.
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Values of the component, which depend on the features in S alone.
        """
        game = self._product_game("The component")
        rows = self._dense(X)
        players = tuple(self._player_number(j) for j in subset)
        if not players:
            values = np.tile(self._empty, (len(rows), 1))
        else:
            checked = checked_subsets([players], game.n_players)
            values = interaction_values(
                game, rows, index="Moebius", order=len(players), subsets=checked,
                n_nodes="exact", tol=self.tol, working_memory=self.working_memory,
                n_jobs=self.n_jobs,
            )[:, 0]  # fmt: skip
        return values[:, 0] if values.shape[1] == 1 else values

    def main_effect(self, feature: int | str, grid: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Compute the curve of one feature's main effect.

        Parameters
        ----------
        feature : int or str
            A feature that is a player by itself.
        grid : array-like of shape (n_points,), default=None
            Values of the feature; None takes 50 points between the smallest and the largest value
            among the support points, for models without preprocessing.

        Returns
        -------
        grid : ndarray of shape (n_points,)
            Values of the feature.
        values : ndarray of shape (n_points,) or (n_points, n_outputs)
            The component of this feature alone.

        Raises
        ------
        ValueError
            If the feature shares its player with others, or if `grid` or the rows that `fit` needs
            for preprocessing are missing.
        """
        check_is_fitted(self)
        g = self._player_number(feature)
        columns = list(self.groups_.values())[g]
        if len(columns) != 1:
            raise ValueError(f"player {feature!r} holds {len(columns)} features, not one")
        support = self._game.expansion.support
        if self._template is None:
            if grid is None:
                column = np.ravel(densified(support[:, columns], None))
                grid = np.linspace(column.min(), column.max(), 50) if len(column) else np.zeros(1)
            rows: Any = np.zeros((len(grid), support.shape[1]))
            rows[:, columns[0]] = grid
        else:
            if grid is None:
                raise ValueError("grid=None is for models without preprocessing; give the values")
            rows = _safe_indexing(self._template, np.zeros(len(grid), dtype=int))
            rows = with_column(rows, columns[0], np.asarray(grid))
        return np.asarray(grid), self.component([g], rows)

    def plot_main_effects(self, features: Any = None, ax: Any = None) -> Any:
        """Draw the curves of several features' main effects.

        Parameters
        ----------
        features : iterable of int or str, default=None
            Which features; None takes all.
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes drawn on; each curve over its own feature's range, mapped to [0, 1].
        """
        from equipoise.plotting import new_axes

        check_is_fitted(self)
        ax = new_axes() if ax is None else ax
        for feature in range(self._game.n_players) if features is None else features:
            grid, values = self.main_effect(feature)
            place = (grid - grid[0]) / (grid[-1] - grid[0] or 1.0)
            name = list(self.groups_)[self._player_number(feature)]
            ax.plot(place, values if values.ndim == 1 else values[:, 0], label=name)
        ax.set(xlabel="feature, from its smallest to its largest value", ylabel="main effect")
        ax.legend()
        return ax


def with_column(rows: Any, column: int, values: np.ndarray) -> Any:
    """Replace one column of an array or frame."""
    if hasattr(rows, "isetitem"):  # pandas
        rows = rows.copy()
        rows.isetitem(column, values)
        return rows
    if hasattr(rows, "with_columns"):  # polars
        import polars as pl

        return rows.with_columns(pl.Series(rows.columns[column], values))
    rows = np.array(rows)
    rows[:, column] = values
    return rows
