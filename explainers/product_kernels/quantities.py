"""Quadratic quantities of an explained model: variance, attributions' covariance, loss, norm."""

from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.utils.validation import check_array, check_consistent_length

from .attribution_covariance import attribution_covariance
from .opening import open_model
from .player_game import PlayerGame
from .quadratic_forms import QuadraticAttribution, loss_values, norm_values, variance_values

__all__ = ["QuadraticMethods"]


class QuadraticMethods:
    """Methods of `PKeXShapleyExplainer` on quadratic forms; a file of their own for length."""

    _dense: Any
    _product_game: Any
    _rows: Any
    groups_: dict[str, list[int]]
    estimator_: Any
    index: str
    tol: float
    n_jobs: int | None

    def _identity_game(self, what: str) -> PlayerGame:
        game = self._product_game(what)
        if game.removal != "identity":
            raise ValueError(f"{what} is for removal='identity', got {game.removal!r}")
        if self.index != "SV":
            raise ValueError(f"{what} is for index='SV', got {self.index!r}")
        return game

    def explain_variance(self, X: Any, include_noise: bool = False) -> Any:
        """Split the predictive variance of a Gaussian process among the players.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        include_noise : bool, default=False
            Add the white kernel's noise to the base value, as `predict(return_std=True)` has it.

        Returns
        -------
        shap.Explanation
            ``values`` of shape (n_samples, n_players). The base value, the variance formula with
            all players absent, isn't itself a variance: it can be negative.

        Raises
        ------
        TypeError
            If the model is no Gaussian-process regression.
        ValueError
            If the removal isn't the identity or the index not "SV", the kernel is a sum, or there
            are several targets.
        """
        rows = self._dense(X)
        model = self._gaussian_process("The variance")
        game = self._identity_game("The variance")
        found = variance_values(
            game, model, rows, include_noise=include_noise, tol=self.tol, n_jobs=self.n_jobs
        )
        data = None if len(self.groups_) != rows.shape[1] else self._rows(X)[0]
        return self._quadratic_explanation(found, data)

    def attribution_covariance(self, X: Any) -> np.ndarray:
        """Compute the posterior covariance of a Gaussian process's attributions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_players, n_players)
            The attributions of one row are jointly Gaussian with `explain`'s values as means.

        Raises
        ------
        TypeError
            If the model is no Gaussian-process regression.
        ValueError
            If the removal isn't "baseline" or "interventional" (for the others the attributions
            aren't a functional of the function), the kernel is a sum, or there are several targets.
        """
        rows = self._dense(X)
        model = self._gaussian_process("The covariance of attributions")
        game = self._product_game("The covariance of attributions")
        if game.removal not in ("baseline", "interventional"):
            raise ValueError(
                "The covariance of attributions is for removal='baseline' or 'interventional', got "
                f"{game.removal!r}"
            )
        if self.index != "SV":
            raise ValueError(
                f"The covariance of attributions is for index='SV', got {self.index!r}"
            )
        return attribution_covariance(game, model, rows, tol=self.tol, n_jobs=self.n_jobs)

    def _gaussian_process(self, what: str) -> GaussianProcessRegressor:
        _, model = open_model(self.estimator_)
        if not isinstance(model, GaussianProcessRegressor):
            raise TypeError(f"{what} is for GaussianProcessRegressor, got {type(model).__name__}")
        return model

    def explain_loss(self, X: Any, y: Any) -> Any:
        """Split the mean squared error on some rows among the players.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their targets.

        Returns
        -------
        shap.Explanation
            ``values`` of shape (n_players,); players with negative values lower the error.

        Raises
        ------
        ValueError
            If the removal isn't the identity or the index not "SV", the kernel is a sum, or there
            are several outputs.
        """
        rows = self._dense(X)
        target = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        check_consistent_length(rows, target)
        if target.ndim != 1:
            raise ValueError(f"y must have shape (n_samples,), got {target.shape}")
        game = self._identity_game("The loss")
        found = loss_values(game, rows, target, tol=self.tol, n_jobs=self.n_jobs)
        return self._quadratic_explanation(found, None)

    def explain_norm(self) -> Any:
        """Split the squared norm of the function in its kernel's space among the players.

        Returns
        -------
        shap.Explanation
            ``values`` of shape (n_players,).

        Raises
        ------
        ValueError
            If the removal isn't the identity or the index not "SV", the kernel is a sum, or there
            are several outputs.
        """
        found = norm_values(self._identity_game("The norm"), tol=self.tol, n_jobs=self.n_jobs)
        return self._quadratic_explanation(found, None)

    def _quadratic_explanation(self, found: QuadraticAttribution, data: Any) -> Any:
        import shap

        explanation = shap.Explanation(
            found.values,
            base_values=found.base,
            data=data,
            feature_names=list(self.groups_),
        )
        explanation.n_nodes = found.n_nodes
        explanation.error_bound = found.error_bound
        return explanation
