"""The Dirichlet beta-VAE as a transformer: rows to mixture proportions, collapse foreseen.

x | z ~ N(W z, sigma^2 I) with z on the simplex, prior Dir(a), posterior Dir(g(x)), and the
objective E||x - W z||^2 / (2 sigma^2) + (D / 2) ln(2 pi sigma^2) + beta KL(Dir(g) || Dir(a)) per
row. Because only tau = beta sigma^2 matters to W and q, beta = r beta_c needs no estimate of the
noise: tau = r rho lambda_1.
"""

import copy
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from .coding import CodingMixin
from .diagnosis import DiagnosisMixin
from .families import FAMILIES
from .fitting import fit_model
from .threshold import densify

__all__ = ["DirichletBetaVAE"]


def can_stream(model: "DirichletBetaVAE") -> bool:
    """Whether `partial_fit` exists: variational EM needs all rows at once."""
    if model.solver == "vem":
        raise AttributeError("solver='vem' needs all rows at once; partial_fit needs solver='adam'")
    return True


class DirichletBetaVAE(CodingMixin, DiagnosisMixin, BaseEstimator):
    """Dirichlet beta-VAE: explains rows as mixtures, with beta given relative to its collapse.

    Parameters
    ----------
    n_components : int, default=3
        Number of components (endmembers, archetypes), at least 2.
    concentration : float or array-like of shape (n_components,), default=1.0
        The prior's concentrations; below 1 the code is sparse.
    beta : "auto" or float, default="auto"
        Weight of the divergence; "auto" is `beta_ratio` times the threshold beta_c of the data.
    beta_ratio : float, default=0.25
        beta / beta_c where beta is "auto"; above 1 the code is expected to collapse.
    noise_variance : "auto", "learned" or float, default="auto"
        sigma^2: the mean of the covariance's eigenvalues beyond the first n_components - 1, or
        found in training.
    decoder : str or nn.Module, default="linear"
        Endmembers free, at least 0, in [0, 1], or in the data's convex hull; a decoder linear in
        log-ratios of the code; a perceptron; a module from (batch, n_components) to standardised
        rows (x - mean) sqrt(D / tr S).
    encoder : {"auto", "linear", "mlp", "none"} or nn.Module, default="auto"
        "none": each row's posterior is found by Newton's method (variational EM). A module returns
        offsets of log g from log alpha, (batch, n_components). "auto": "none" under variational EM,
        else "mlp". Posteriors other than "dirichlet" have two offsets a component.
    hidden_layer_sizes : sequence of int, default=(64,)
        Hidden widths of the perceptrons.
    activation : {"relu", "tanh", "gelu", "elu"}, default="relu"
        Their activation.
    posterior : {"dirichlet", "softmax_normal", "weibull"}, default="dirichlet"
        Family of q(z|x). "softmax_normal": softmax of independent normal variables, with the
        Laplace approximation of the Dirichlet law as prior. "weibull": normalised Weibull
        variables, with the divergence from Gamma variables. Both need solver="adam", sample
        unless decoder="logratio", and have thresholds of their own.
    sampler : {"implicit", "gamma_icdf"}, default="implicit"
        How Dirichlet codes are drawn where they must be.
    n_mc : int, default=1
        Samples a row in training, where the decoder needs them.
    objective : {"auto", "analytic", "sampled"}, default="auto"
        Expected reconstruction in closed form (decoders linear in log z, or in z with Dirichlet
        posteriors), or by samples.
    solver : {"auto", "vem", "adam"}, default="auto"
        Variational EM, or amortised training of an encoder; "auto" takes the first for up to 100
        000 rows unless a parameter needs a network.
    init : {"auto", "vca", "data", "kmeans", "furthest"} or array-like, default="auto"
        Where endmembers start; "auto": "vca" for "nonnegative" and "box", else "data". An array has
        shape (n_components, n_features).
    n_init : int, default=1
        Starts, each with its own seed; the lowest objective wins. `warm_start`, `partial_fit`, and
        variational EM from an array have one.
    max_iter : int, default=500
        Iterations of variational EM, or epochs.
    batch_size : int, default=256
        Rows of a training step; adam only, as are the next parameters up to `n_iter_no_change`.
    lr, decoder_lr : float, default=1e-3 and 1e-2
        Learning rates of encoder and decoder, in standardised units; cosine decay.
    weight_decay : float, default=0.0
        Of the encoder.
    beta_warmup : float, default=0.0
        Share of the epochs over which beta rises from 0.
    early_stopping : bool, default=False
        Stop when the loss of held-out rows no longer falls. Near the threshold it rests first, on
        the plateau around the collapsed state: have patience there (`n_iter_no_change`), or none of
        this.
    validation_fraction : float, default=0.1
        Share of the rows held out.
    n_iter_no_change : int, default=20
        Epochs without improvement before stopping; also the window that judges `converged_`.
    tol : float, default=1e-5
        Variational EM ends when an update moves the endmembers by less, relative to their distance
        from the mean.
    dtype : {"float64", "float32"}, default="float64"
        Precision of the data and the networks; Dirichlet quantities are always float64.
    device : str, default="cpu"
        Of the networks.
    warm_start : bool, default=False
        Start from the last fit's endmembers (and networks).
    callbacks : list, optional
        Additional skorch callbacks; adam only.
    n_jobs : int, optional
        Threads: over starts where there are several, else over blocks of rows.
    random_state : int, RandomState or None, default=None
        Seed of the starts, weights, batches and samples.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Endmembers; only for decoders linear in the code.
    archetype_weights_ : sparse array of shape (n_components, n_samples)
        Weights of the rows in each archetype; only for decoder="archetypal".
    concentration_ : ndarray of shape (n_components,)
        The prior.
    beta_, beta_c_, beta_ratio_ : float
        Beta used, its threshold, and their ratio.
    rho_ : float
        Efficiency of the prior in its first direction: beta_c = lambda_1 rho / sigma^2.
    noise_variance_ : float
        sigma^2.
    mean_ : ndarray of shape (n_features,)
        Weighted mean of the rows.
    eigenvalues_ : ndarray of shape (min(n_components, n_features, n_samples),)
        Largest eigenvalues of the rows' covariance.
    total_variance_ : float
        Trace of the covariance.
    solver_ : str
        "vem" or "adam".
    n_iter_ : int
        Iterations or epochs.
    loss_curve_ : list of float
        Objective in nats per row; never increasing under variational EM.
    converged_ : bool
        Whether training settled.
    report_ : CollapseReport
        What `explain` says of the training data.
    kl_ : float
        Mean divergence of the training rows' posteriors from the prior.
    collapsed_ : bool
        Whether that is within 1e-3 of what the collapsed state has.
    n_active_directions_ : int
        Directions of the code with more than 1% of the prior's variance.
    net_ : skorch.NeuralNet
        The trained network; only for solver="adam".
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features; only where X has string names.

    See Also
    --------
    collapse_threshold : The threshold alone, before any fit.
    collapse_path : Fits along a grid of beta / beta_c.

    References
    ----------
    Joo et al. (2019), Dirichlet variational autoencoder, arXiv:1901.02739. Lucas et al. (2019),
    Don't blame the ELBO! A linear VAE perspective on posterior collapse, NeurIPS.

    Examples
    --------
    >>> from equipoise.datasets import make_convex_mixture
    >>> from equipoise.estimators import DirichletBetaVAE, abundance_rmse
    >>> mixture = make_convex_mixture(300, 20, 3, random_state=0)
    >>> model = DirichletBetaVAE(3, beta_ratio=0.05, random_state=0).fit(mixture.data)
    >>> abundance_rmse(model.transform(mixture.data), mixture.weights) < 0.1
    True
    >>> model.explain().verdict
    'active'
    """

    components_: np.ndarray
    net_: Any
    _random: np.random.RandomState

    _parameter_constraints: dict = {
        "n_components": [Interval(Integral, 2, None, closed="left")],
        "concentration": [Interval(Real, 0, None, closed="neither"), "array-like"],
        "beta": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "beta_ratio": [Interval(Real, 0, None, closed="neither")],
        "noise_variance": [
            StrOptions({"auto", "learned"}),
            Interval(Real, 0, None, closed="neither"),
        ],
        "decoder": "no_validation",
        "encoder": "no_validation",
        "hidden_layer_sizes": ["array-like"],
        "activation": [StrOptions({"relu", "tanh", "gelu", "elu"})],
        "posterior": [StrOptions(set(FAMILIES))],
        "sampler": [StrOptions({"implicit", "gamma_icdf"})],
        "n_mc": [Interval(Integral, 1, None, closed="left")],
        "objective": [StrOptions({"auto", "analytic", "sampled"})],
        "solver": [StrOptions({"auto", "vem", "adam"})],
        "init": [StrOptions({"auto", "vca", "data", "kmeans", "furthest"}), "array-like"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "lr": [Interval(Real, 0, None, closed="neither")],
        "decoder_lr": [Interval(Real, 0, None, closed="neither")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "beta_warmup": [Interval(Real, 0, 1, closed="both")],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "dtype": [StrOptions({"float32", "float64"})],
        "device": "no_validation",
        "warm_start": ["boolean"],
        "callbacks": [list, tuple, None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_components: int = 3,
        *,
        concentration: float | npt.ArrayLike = 1.0,
        beta: str | float = "auto",
        beta_ratio: float = 0.25,
        noise_variance: str | float = "auto",
        decoder: Any = "linear",
        encoder: Any = "auto",
        hidden_layer_sizes: Sequence[int] = (64,),
        activation: str = "relu",
        posterior: str = "dirichlet",
        sampler: str = "implicit",
        n_mc: int = 1,
        objective: str = "auto",
        solver: str = "auto",
        init: str | npt.ArrayLike = "auto",
        n_init: int = 1,
        max_iter: int = 500,
        batch_size: int = 256,
        lr: float = 1e-3,
        decoder_lr: float = 1e-2,
        weight_decay: float = 0.0,
        beta_warmup: float = 0.0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 20,
        tol: float = 1e-5,
        dtype: str = "float64",
        device: str = "cpu",
        warm_start: bool = False,
        callbacks: Sequence[Any] | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.concentration = concentration
        self.beta = beta
        self.beta_ratio = beta_ratio
        self.noise_variance = noise_variance
        self.decoder = decoder
        self.encoder = encoder
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.posterior = posterior
        self.sampler = sampler
        self.n_mc = n_mc
        self.objective = objective
        self.solver = solver
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.lr = lr
        self.decoder_lr = decoder_lr
        self.weight_decay = weight_decay
        self.beta_warmup = beta_warmup
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.dtype = dtype
        self.device = device
        self.warm_start = warm_start
        self.callbacks = callbacks
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: npt.ArrayLike, y: Any = None, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Fit endmembers and posteriors.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows, at least two.
        y : object
            Not used.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, at least 0; under variational EM a whole number is the same as repeating the
            row.

        Returns
        -------
        self : DirichletBetaVAE
            Fitted. A failed fit leaves the object as it was.

        Raises
        ------
        ValueError
            If a parameter or input is out of its range; if the data have no variance and something
            must be found from it; if their mean is outside the decoder's set; if there are fewer
            rows than archetypes; if parameters need a network and solver="vem".
        """
        # All work is done on a copy, so that a failure leaves this object as it was.
        fresh = copy.copy(self)
        fit_model(fresh, X, sample_weight, epochs=None)
        self.__dict__ = fresh.__dict__
        return self

    @available_if(can_stream)
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self, X: npt.ArrayLike, y: Any = None, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Train one epoch on a batch of a stream, with the amortised model.

        Mean, scale and threshold are those of the first batch: it should be typical of the stream.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; at least two in the first call.
        y : object
            Not used.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, at least 0.

        Returns
        -------
        self : DirichletBetaVAE
            Trained one epoch further.

        Raises
        ------
        ValueError
            As for `fit`; and for decoder="archetypal", whose archetypes are rows of the whole data.
        """
        fresh = copy.copy(self)
        fit_model(fresh, X, sample_weight, epochs=1)
        self.__dict__ = fresh.__dict__
        return self

    def _check_X(self, X: Any, reset: bool, min_samples: int = 1) -> np.ndarray:
        """Dense, finite rows; with `reset` their width and names are learned."""
        X = validate_data(
            self,
            X,
            reset=reset,
            accept_sparse=True,
            dtype=[np.float64, np.float32],
            ensure_min_samples=min_samples,
        )
        return densify(X)

    @property
    def _n_features_out(self) -> int:
        return len(self.concentration_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
