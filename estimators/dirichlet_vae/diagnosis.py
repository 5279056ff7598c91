"""How far a model is from collapse: thresholds, information, the report."""

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .choices import resolve_noise
from .inference import infer, information_of, report_on, spectrum_of
from .report import CollapseReport
from .spectrum import data_spectrum
from .threshold import KINDS, check_rows, check_weights, collapse_threshold, threshold_of

__all__ = ["DiagnosisMixin"]


class DiagnosisMixin:
    """Methods that tell of the collapse."""

    n_components: int
    concentration: Any
    noise_variance: Any
    posterior: str
    report_: CollapseReport
    _family: Any
    _collapsed_noise: Any
    _diameter2: Any
    _check_X: Callable[..., np.ndarray]

    def collapse_threshold(
        self,
        X: npt.ArrayLike | None = None,
        kind: str = "local",
        *,
        sample_weight: npt.ArrayLike | None = None,
    ) -> float | np.ndarray:
        """The beta at which the code collapses; with X also before any fit.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), optional
            Data to take it from; None takes the training data.
        kind : {"local", "flexible", "certificate", "spectrum"}, default="local"
            As for `equipoise.estimators.collapse_threshold`.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows of X.

        Returns
        -------
        float or ndarray of shape (min(n_components - 1, n_features),)
            The threshold, or those of all directions.

        Raises
        ------
        ValueError
            As the function; or if there are weights without X.
        """
        if kind not in KINDS:
            raise ValueError(f"kind={kind!r} is not allowed; allowed: {list(KINDS)}")
        if X is None:
            check_is_fitted(self)
            if sample_weight is not None:
                raise ValueError("sample_weight is for rows X, but X=None takes the training data")
            return threshold_of(
                spectrum_of(self),
                self._family,
                self._collapsed_noise,
                kind,
                self._diameter2,
            )
        noise: Any = self.noise_variance
        if noise == "auto":
            rows = check_rows(X)
            weight = check_weights(sample_weight, rows)
            spectrum = data_spectrum(rows, self.n_components, weight)
            noise = resolve_noise(noise, self.n_components, spectrum)
        return collapse_threshold(
            X,
            self.n_components,
            concentration=self.concentration,
            noise_variance=noise,
            kind=kind,
            sample_weight=sample_weight,
            posterior=self.posterior,
        )

    def mutual_information(
        self,
        X: npt.ArrayLike,
        n_samples: int = 16,
        max_rows: int = 2000,
        random_state: int | np.random.RandomState | None = 0,
    ) -> float:
        """Estimate of the information between rows and codes, biased downward.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        n_samples : int, default=16
            Codes drawn a row.
        max_rows : int, default=2000
            Rows used at most; the estimate can't exceed the logarithm of their number.
        random_state : int, RandomState or None, default=0
            Seed of the rows and codes drawn.

        Returns
        -------
        float
            Nats.

        Raises
        ------
        ValueError
            If a number is below 1.
        """
        for name, value in (("n_samples", n_samples), ("max_rows", max_rows)):
            if not (isinstance(value, Integral) and value >= 1):
                raise ValueError(f"{name}={value!r} is not allowed; allowed: at least 1")
        check_is_fitted(self)
        theta = infer(self, self._check_X(X, reset=False)).theta
        rng = check_random_state(random_state)
        return information_of(self, theta, int(n_samples), int(max_rows), rng)

    def explain(self, X: npt.ArrayLike | None = None) -> CollapseReport:
        """How far the model is from collapse, and what its code carries.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), optional
            Rows to judge; None takes the training data.

        Returns
        -------
        CollapseReport
            Thresholds and beta are those of the training data.
        """
        check_is_fitted(self)
        if X is None:
            return self.report_
        rows = self._check_X(X, reset=False)
        return report_on(self, rows, np.full(len(rows), 1 / len(rows)))
