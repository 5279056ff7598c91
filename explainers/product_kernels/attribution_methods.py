"""Attributions of a fitted explainer, in the forms that shap's users know."""

import time
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted, validate_data

from .attribution import Attribution, attribute
from .engine_choice import resolve_engine
from .shap_adapter import shap_explainer

__all__ = ["AttributionMethods"]


class AttributionMethods:
    """Methods of `PKeXShapleyExplainer` on rows to explain; a file of their own for length."""

    attribution_covariance: Any
    _game: Any
    _feature_map: Any
    _empty: np.ndarray
    _empty_shift: np.ndarray
    n_features_in_: int
    expansion_: Any
    groups_: dict[str, list[int]]
    output_names_: list[str]
    groups: Any
    index: str
    n_nodes: str | int
    tol: float
    method: str
    backend: str
    device: str
    dtype: str
    explain_transformed: bool
    check_additivity: bool
    working_memory: float | None
    n_jobs: int | None

    @property
    def expected_value(self) -> float | np.ndarray:
        """Value of the empty coalition, a float or of shape (n_outputs,)."""
        check_is_fitted(self)
        return float(self._empty[0]) if len(self._empty) == 1 else self._empty.copy()

    def _rows(self, X: Any) -> tuple[Any, Any]:
        """Check rows to explain; return them in the features' own units and as columns."""
        check_is_fitted(self)
        columns = self._feature_map
        if not columns.steps:
            X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
            return X, X
        validate_data(self, X, reset=False, skip_check_array=True)
        rows = columns.checked_columns(X, self.n_features_in_, self)
        if self.explain_transformed:
            return rows, rows
        return X if sparse.issparse(X) else np.asarray(X), rows

    def explain(self, X: Any, *, with_std: bool = False) -> Any:
        """Split the model's outputs for each row among the players.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to explain.
        with_std : bool, default=False
            Also fill ``error_std`` with the standard deviations of a Gaussian process's
            attributions, see `attribution_covariance`.

        Returns
        -------
        shap.Explanation
            ``values`` of shape (n_samples, n_players), or (n_samples, n_players, n_outputs) with
            several outputs; ``base_values``; ``data`` in the features' own units. Its attributes
            ``n_nodes`` and ``error_bound`` hold the most quadrature nodes used, and a bound on
            the quadrature's absolute error of any value.

        Raises
        ------
        RuntimeError
            If `check_additivity` and the values don't add up to the model's output.
        """
        import shap

        start = time.perf_counter()
        data, rows = self._rows(X)
        values, n_nodes, error_bound = self._attributions(rows)
        base = np.tile(self._empty, (len(values), 1))
        single = values.shape[2] == 1
        grouped = self.groups is not None
        explanation = shap.Explanation(
            values[..., 0] if single else values,
            base_values=base[:, 0] if single else base,
            data=None if grouped else data,
            feature_names=list(self.groups_),
            output_names=None if single else list(self.output_names_),
            error_std=self._standard_deviations(X) if with_std else None,
            compute_time=time.perf_counter() - start,
        )
        explanation.n_nodes = n_nodes
        explanation.error_bound = error_bound
        return explanation

    def _attributions(self, rows: Any) -> Attribution:
        """Compute the attributions of rows as the machine sees them, and check that they add up."""
        found = attribute(
            self._game,
            rows,
            index=self.index,
            n_nodes=self.n_nodes,
            tol=self.tol,
            method=self.method,
            engine=resolve_engine(self.backend, self.device, self.dtype, self.method),
            working_memory=self.working_memory,
            n_jobs=self.n_jobs,
        )
        if np.any(self._empty_shift):
            found = found._replace(values=found.values + self._empty_shift / found.values.shape[1])
        if self.check_additivity and self.index == "SV":
            self._check_additivity(rows, found.values)
        return found

    def _standard_deviations(self, X: Any) -> np.ndarray:
        variances = np.diagonal(self.attribution_covariance(X), axis1=1, axis2=2)
        return np.sqrt(np.maximum(variances, 0.0))

    def _check_additivity(self, rows: Any, values: np.ndarray) -> None:
        expansion = self.expansion_
        allowed = 1e-6 * (1 + expansion.scale)
        gap = np.abs(self._empty + values.sum(axis=1) - expansion(rows))
        if np.any(gap > allowed):
            raise RuntimeError(
                f"Base value and attributions miss the model's output by {gap.max():.2e}. With "
                f"n_nodes={self.n_nodes!r} the quadrature may be too coarse: use n_nodes='auto', "
                "or check_additivity=False"
            )

    def __call__(self, X: Any) -> Any:
        """Explain rows, as `explain` does.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to explain.

        Returns
        -------
        shap.Explanation
            See `explain`.
        """
        return self.explain(X)

    def shap_values(self, X: Any) -> np.ndarray:
        """Return the attributions as a plain array, laid out as shap's explainers do.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to explain.

        Returns
        -------
        ndarray of shape (n_samples, n_players) or (n_samples, n_players, n_outputs)
            Attributions.

        Raises
        ------
        RuntimeError
            As `explain`.
        """
        values = self._attributions(self._rows(X)[1]).values
        return values[..., 0] if values.shape[2] == 1 else values

    def as_shap_explainer(self) -> Any:
        """Wrap this explainer in a `shap.Explainer`, for code that asks for one.

        Returns
        -------
        shap.Explainer
            Called with rows it returns what `explain` returns.
        """
        check_is_fitted(self)
        return shap_explainer(self)
