"""What a fitted model says of rows and codes: proportions, decoded rows, bounds, samples."""

from collections.abc import Callable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .abundances import check_simplex
from .families import softmax_normal_prior, softmax_rows
from .inference import decode, infer
from .information import log_codes

if TYPE_CHECKING:
    from .dirichlet_vae import DirichletBetaVAE

__all__ = ["CodingMixin"]


def has_concentrations(model: "DirichletBetaVAE") -> bool:
    """Whether `predict_concentration` exists: only Dirichlet laws have concentrations."""
    if model.posterior != "dirichlet":
        raise AttributeError(
            f"posterior={model.posterior!r} has no concentrations; "
            "predict_concentration needs posterior='dirichlet'"
        )
    return True


class CodingMixin(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Methods that read or write codes."""

    concentration_: np.ndarray
    noise_variance_: float
    beta_: float
    mean_: np.ndarray
    posterior: str
    _check_X: Callable[..., np.ndarray]

    @available_if(has_concentrations)
    def predict_concentration(self, X: npt.ArrayLike) -> np.ndarray:
        """Concentrations of each row's posterior.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            g > 0, in float64.
        """
        check_is_fitted(self)
        return np.exp(infer(self, self._check_X(X, reset=False)).theta)

    def transform(self, X: npt.ArrayLike) -> np.ndarray:
        """Posterior means of the code: proportions of the components.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; each is treated by itself.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Rows on the simplex, in the dtype of X.
        """
        check_is_fitted(self)
        rows = self._check_X(X, reset=False)
        return infer(self, rows).mean.astype(rows.dtype, copy=False)

    def inverse_transform(self, Z: npt.ArrayLike) -> np.ndarray:
        """Decode codes.

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_components)
            Rows on the simplex, to 1e-6.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            The decoder's means.

        Raises
        ------
        ValueError
            If a row isn't on the simplex.
        """
        check_is_fitted(self)
        return decode(self, check_simplex(Z, len(self.concentration_)))

    def reconstruct(self, X: npt.ArrayLike) -> np.ndarray:
        """Decode the posterior means of rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Reconstructions.
        """
        check_is_fitted(self)
        rows = self._check_X(X, reset=False)
        return decode(self, infer(self, rows).mean).astype(rows.dtype, copy=False)

    def elbo(
        self, X: npt.ArrayLike, beta: float | None = None, reduce: bool = True
    ) -> float | np.ndarray:
        """Minus the objective L_beta, in nats; a lower bound of log p(x) where beta is at least 1.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        beta : float, optional
            Weight of the divergence; None takes `beta_`. The posteriors stay those of `beta_`.
        reduce : bool, default=True
            Whether to average over the rows.

        Returns
        -------
        float or ndarray of shape (n_samples,)
            The mean, or one number a row.

        Raises
        ------
        ValueError
            If beta is negative or not finite.
        """
        check_is_fitted(self)
        weight: Any = self.beta_ if beta is None else beta
        if not (isinstance(weight, Real) and 0 <= float(weight) < np.inf):
            raise ValueError(f"beta={beta!r} is not allowed; allowed: a number of at least 0")
        found = infer(self, self._check_X(X, reset=False))
        sigma2 = self.noise_variance_
        constant = len(self.mean_) / 2 * np.log(2 * np.pi * sigma2)
        rows = -(found.error / (2 * sigma2) + constant + float(weight) * found.kl)
        return float(rows.mean()) if reduce else rows

    def score(self, X: npt.ArrayLike, y: Any = None) -> float:
        """Mean evidence lower bound at beta = 1: comparable over beta, not over `noise_variance_`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : object
            Not used.

        Returns
        -------
        float
            Nats per row; higher is better.
        """
        return float(self.elbo(X, beta=1.0))

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw codes from the prior, and rows.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        random_state : int, RandomState or None, default=None
            Seed.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Decoded codes with noise of variance `noise_variance_`.
        Z : ndarray of shape (n_samples, n_components)
            The codes.

        Raises
        ------
        ValueError
            If n_samples isn't a positive integer.
        """
        check_is_fitted(self)
        if isinstance(n_samples, bool) or not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(f"n_samples={n_samples!r} is not allowed; allowed: at least 1")
        rng = check_random_state(random_state)
        if self.posterior == "softmax_normal":
            mean, scale = softmax_normal_prior(self.concentration_)
            Z = softmax_rows(mean + scale * rng.standard_normal((int(n_samples), len(mean))))
        else:
            Z = softmax_rows(log_codes(np.log(self.concentration_)[None], int(n_samples), rng)[0])
        X = decode(self, Z)
        return X + np.sqrt(self.noise_variance_) * rng.standard_normal(X.shape), Z

    def latent_traversal(
        self, component: int, n_steps: int = 11, start: npt.ArrayLike | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Decode codes on the line from a point of the simplex to a vertex.

        Parameters
        ----------
        component : int
            Vertex at the end of the line.
        n_steps : int, default=11
            Points on the line, at least 2.
        start : array-like of shape (n_components,), optional
            Where it begins; None takes the prior's mean.

        Returns
        -------
        X : ndarray of shape (n_steps, n_features)
            Decoded codes.
        Z : ndarray of shape (n_steps, n_components)
            The codes.

        Raises
        ------
        ValueError
            If the component doesn't exist, n_steps < 2, or the start isn't on the simplex.
        """
        check_is_fitted(self)
        K = len(self.concentration_)
        if not (isinstance(component, Integral) and 0 <= component < K):
            raise ValueError(f"component={component!r} is not allowed; allowed: 0 to {K - 1}")
        if not (isinstance(n_steps, Integral) and n_steps >= 2):
            raise ValueError(f"n_steps={n_steps!r} is not allowed; allowed: at least 2")
        a = self.concentration_
        origin = a / a.sum() if start is None else check_simplex(np.atleast_2d(start), K)[0]
        t = np.linspace(0, 1, n_steps)[:, None]
        Z = (1 - t) * origin + t * np.eye(K)[component]
        return decode(self, Z), Z
