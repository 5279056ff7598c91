"""PKeX-Shapley: exact Shapley values of models with product kernels.

A kernel machine f(x) = c + sum_i alpha_i prod_j k_j(x_j, x_ij) is a sum of product games, one a
support point, and their Shapley values are one-dimensional integrals of polynomials. All features'
values of one row take O(d m) operations a support point, where m, the number of quadrature nodes,
is 7 to 9 at bandwidths scaled to the dimension and never above d / 2.
"""

from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, TransformerMixin, _fit_context
from sklearn.kernel_ridge import KernelRidge
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from .attribution_methods import AttributionMethods
from .background import background_rows, warn_about_base
from .components import ComponentMethods
from .engine_choice import refuse_engine, resolve_engine
from .extraction import check_reproduction, extract
from .feature_maps import feature_map
from .fourier import FourierExpansion
from .kernels import ProductKernel
from .nodes import parse_index
from .opening import column_count, fitted_model, is_fitted, open_model
from .parameters import COMPUTATION
from .player_game import game_of
from .players import feature_names_of, player_groups
from .quantities import QuadraticMethods

__all__ = ["PKeXShapleyExplainer"]


class PKeXShapleyExplainer(
    AttributionMethods,
    ComponentMethods,
    QuadraticMethods,
    MetaEstimatorMixin,
    TransformerMixin,
    BaseEstimator,
):
    """Exact Shapley values of support vector machines, kernel ridge and Gaussian processes.

    Every prediction of a model with a product kernel (RBF, Laplacian, chi2, categorical, products
    and sums of these) is split among the features exactly: no sampling, no surrogate, in time
    linear in the number of features at usual bandwidths.

    Parameters
    ----------
    estimator : estimator, default=None
        The model. A fitted one is explained as it is; an unfitted one is cloned and fitted by
        `fit`; None is ``KernelRidge(kernel="rbf")``. It may be a Pipeline of steps that act
        feature by feature and a kernel machine, or a search for hyperparameters
        (``GridSearchCV``, ``RandomizedSearchCV``), of which the best model is explained. Wrap a
        fitted model in `sklearn.frozen.FrozenEstimator` to keep it through `clone`.
    removal : {"identity", "baseline", "marginal", "interventional"}, default="identity"
        What the absence of a feature means: its factor becomes 1 (the paper's operator, without
        background data), its value at a reference point, its mean over background rows, or the
        background rows' joint values, averaged outside (what shap's explainers target).
    reference : array-like or int, default=None
        The reference point of shape (n_features,) for "baseline"; the background of shape
        (n_background, n_features) for "marginal" and "interventional". An int draws as many rows
        from the X passed to `fit`; None takes all of it (its mean row for "baseline"), or the
        support points where `fit` got no X.
    kernel : "auto" or ProductKernel, default="auto"
        The model's kernel, where it can't be read off the model.
    output : {"auto", "ovo", "margin", "score_samples", "latent"}, default="auto"
        Which output of the model: "ovo" (all pairs of classes) and "margin" (their mean for each
        class) for support vector machines with several classes, "score_samples" for OneClassSVM,
        "latent" for Gaussian-process classifiers.
    groups : list of lists or dict, default=None
        Features that act as one player, by position or name; they must be a partition.
    index : str, default="SV"
        "SV" (Shapley), "BV" (Banzhaf), "WB:p" (weighted Banzhaf), "Beta:alpha,beta".
    n_nodes : {"auto", "exact"} or int, default="auto"
        Quadrature nodes: as many as `tol` needs, as many as are exact, or a number. Variance,
        loss, norm and covariance always take as many as `tol` needs.
    tol : float, default=1e-12
        Error allowed by "auto", relative to the total of the coefficients; in (0, 1e-2].
    method : {"quadrature", "esp"}, default="quadrature"
        Algorithm; "esp" is the paper's recursion, of cost O(d^2) a support point.
    backend : {"auto", "numba", "numpy", "torch"}, default="auto"
        Engine of the attributions; "auto" is "numba", or "torch" where `device` or `dtype` ask it.
        Interactions and quadratic quantities are always computed in double precision on the CPU.
    device : str, default="cpu"
        Torch device; "auto" takes an accelerator where there is one.
    dtype : {"float64", "float32"}, default="float64"
        Precision of the torch engine. With "float32" values are good to 1e-6 of the coefficients'
        total, and `tol` counts as at least that.
    empty_value : float, default=None
        Replaces the value of the empty coalition; the difference is shared equally. For
        attributions and `value_function`; all else is refused then.
    explain_transformed : bool, default=False
        Explain the columns that the kernel machine sees, also where steps mix features.
    prefit : {"auto"} or bool, default="auto"
        Whether `estimator` must be fitted already (True), is always fitted anew (False), or is
        used if fitted.
    check_additivity : bool, default=True
        Raise if base value and attributions don't add up to the model's output.
    working_memory : float, default=None
        Memory for temporaries in MiB; None takes scikit-learn's configuration.
    n_jobs : int, default=None
        Threads over blocks of rows, or over tiles of pairs of support points. Torch has its own.
    random_state : int, RandomState or None, default=None
        Draws the background rows where `reference` is an int.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model.
    expansion_ : ProductKernelExpansion
        The model as a kernel expansion of the columns it sees.
    expected_value : float or ndarray of shape (n_outputs,)
        Value of the empty coalition: the base value of all explanations.
    groups_ : dict of str to list of int
        Features of each player.
    output_names_ : list of str
        Names of the outputs; empty for a single one.
    support_size_ : int
        Number of support points.
    feature_names_out_ : ndarray of shape (n_players * n_outputs,)
        Names of the columns of `transform`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where they are all strings.

    See Also
    --------
    shap.KernelExplainer : Sampled values for any model.

    Notes
    -----
    The identity removal has no data-driven base value: it is the total of the coefficients plus
    the intercept, which may lie far from any prediction. `fit` warns then; "interventional" has
    the mean prediction as its base value.

    References
    ----------
    .. [1] Mohammadi, Chau, Muandet, "Amortized Linear-time Exact Shapley Value for Product-Kernel
           Methods", arXiv:2505.16516.
    .. [2] Mohammadi, Reznikov, Sinitcyn, Muandet, Chau, "QuadraSHAP: Stable and Scalable Shapley
           Values for Product Games via Gauss-Legendre Quadrature", arXiv:2605.05870.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.svm import SVR
    >>> from equipoise.explainers import PKeXShapleyExplainer
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = SVR(C=100).fit(X, y)
    >>> explainer = PKeXShapleyExplainer(
    ...     model, removal="interventional", reference=50, random_state=0
    ... ).fit(X)
    >>> explanation = explainer.explain(X[:3])
    >>> explanation.values.shape
    (3, 10)
    >>> total = explanation.base_values + explanation.values.sum(axis=1)
    >>> bool(abs(total - model.predict(X[:3])).max() < 1e-9)
    True
    """

    _parameter_constraints: dict = {
        "estimator": [HasMethods(["fit"]), None],
        "removal": [StrOptions({"identity", "baseline", "marginal", "interventional"})],
        "reference": [
            "array-like",
            "sparse matrix",
            Interval(Integral, 1, None, closed="left"),
            None,
        ],
        "kernel": [StrOptions({"auto"}), ProductKernel],
        "output": [StrOptions({"auto", "ovo", "margin", "score_samples", "latent"})],
        "index": [str],
        "n_nodes": [StrOptions({"auto", "exact"}), Interval(Integral, 1, None, closed="left")],
        "method": [StrOptions({"quadrature", "esp"})],
        "empty_value": [Interval(Real, None, None, closed="neither"), None],
        "explain_transformed": ["boolean"],
        "prefit": [StrOptions({"auto"}), "boolean"],
        "check_additivity": ["boolean"],
        "working_memory": [Interval(Real, 0.0, None, closed="neither"), None],
        **COMPUTATION,
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        removal: str = "identity",
        reference: Any = None,
        kernel: str | ProductKernel = "auto",
        output: str = "auto",
        groups: Any = None,
        index: str = "SV",
        n_nodes: str | int = "auto",
        tol: float = 1e-12,
        method: str = "quadrature",
        backend: str = "auto",
        device: str = "cpu",
        dtype: str = "float64",
        empty_value: float | None = None,
        explain_transformed: bool = False,
        prefit: str | bool = "auto",
        check_additivity: bool = True,
        working_memory: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.removal = removal
        self.reference = reference
        self.kernel = kernel
        self.output = output
        self.groups = groups
        self.index = index
        self.n_nodes = n_nodes
        self.tol = tol
        self.method = method
        self.backend = backend
        self.device = device
        self.dtype = dtype
        self.empty_value = empty_value
        self.explain_transformed = explain_transformed
        self.prefit = prefit
        self.check_additivity = check_additivity
        self.working_memory = working_memory
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _model(self) -> Any:
        return KernelRidge(kernel="rbf") if self.estimator is None else self.estimator

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self, X: Any = None, y: Any = None, sample_weight: Any = None
    ) -> "PKeXShapleyExplainer":
        """Fit the model if it must be, and rewrite it as a kernel expansion.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            Training rows, or background rows for a fitted model, which needs none.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Targets, for a model that must be fitted.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights handed to the model's `fit`.

        Returns
        -------
        PKeXShapleyExplainer
            The fitted explainer.

        Raises
        ------
        ValueError
            If the kernel is no product over features (the message names the part), a step of the
            Pipeline mixes features, or a parameter doesn't fit the data.
        TypeError
            If the model is no supported kernel machine.
        """
        parse_index(self.index)
        if self.method == "esp" and (self.removal != "identity" or self.index != "SV"):
            raise ValueError(
                "method='esp' is for removal='identity' and index='SV'; got "
                f"removal={self.removal!r}, index={self.index!r}"
            )
        resolve_engine(self.backend, self.device, self.dtype, self.method)
        estimator = fitted_model(self._model(), self.prefit, X, y, sample_weight, self)
        steps, model = open_model(estimator)
        n_columns = column_count(model)
        n_features = getattr(estimator, "n_features_in_", n_columns)
        columns = feature_map(
            steps, n_features, n_columns, explain_transformed=self.explain_transformed
        )
        to_columns = partial(columns.checked_columns, n_features_in=n_features, owner=self)
        rows = None if X is None else to_columns(X)
        kernel = None if isinstance(self.kernel, str) else self.kernel
        expansion = extract(model, output=self.output, kernel=kernel, X_train=rows)
        check_reproduction(
            model, expansion, self.output, (expansion.support if rows is None else rows)[:50]
        )
        if columns.steps and self.explain_transformed:
            names = columns.names_out()
        elif not hasattr(X, "columns") and hasattr(estimator, "feature_names_in_"):
            names = [str(name) for name in estimator.feature_names_in_]
        else:
            names = feature_names_of(X, columns.n_features)
        if isinstance(expansion, FourierExpansion):
            what = "A model on random Fourier features"
            refuse_engine(what, self.backend, self.device, self.dtype)
        player, player_names = player_groups(self.groups, columns.n_features, names)
        game = game_of(
            expansion,
            player[columns.source],
            len(player_names),
            self.removal,
            *background_rows(
                self.removal,
                self.reference,
                rows,
                expansion.support,
                sample_weight=sample_weight,
                to_columns=to_columns,
                random_state=self.random_state,
                working_memory=self.working_memory,
            ),
        )
        empty = game.empty_value(self.working_memory)
        if self.removal == "identity" and self.empty_value is None:
            warn_about_base(empty, expansion)
        if X is None:
            self.n_features_in_ = n_features
            if hasattr(estimator, "feature_names_in_"):
                self.feature_names_in_ = estimator.feature_names_in_
        else:
            validate_data(self, X, skip_check_array=True)
        self.estimator_ = estimator
        self.expansion_ = expansion
        self.groups_ = {
            name: np.flatnonzero(player == g).tolist() for g, name in enumerate(player_names)
        }
        self.output_names_ = list(expansion.output_names)
        if not self.output_names_ and expansion.n_outputs > 1:
            self.output_names_ = [f"y{o}" for o in range(expansion.n_outputs)]
        self.support_size_ = expansion.support.shape[0]
        self.feature_names_out_ = names_of_columns(player_names, self.output_names_)
        self._game = game
        self._feature_map = columns
        self._template = _safe_indexing(X, [0]) if columns.steps and X is not None else None
        self._empty = empty if self.empty_value is None else np.full_like(empty, self.empty_value)
        self._empty_shift = empty - self._empty
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Replace each row by its attributions, for clustering or modelling explanations.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to explain.

        Returns
        -------
        ndarray of shape (n_samples, n_players * n_outputs)
            Attributions; the outputs of one player stand side by side.
        """
        values = self.shap_values(X)
        return values.reshape(len(values), -1)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Name the columns of `transform`.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Checked against the names or number of features seen in `fit`.

        Returns
        -------
        ndarray of str
            Players' names, with the output's name where there are several.
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        if self.groups is None and not self.explain_transformed:
            return names_of_columns(names, self.output_names_)
        return self.feature_names_out_.copy()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        needs_fit = self.prefit is False or not is_fitted(self._model())
        tags.target_tags.required = needs_fit and get_tags(self._model()).target_tags.required
        tags.input_tags.sparse = get_tags(self._model()).input_tags.sparse
        tags.input_tags.allow_nan = False
        return tags


def names_of_columns(players: Any, outputs: list[str]) -> np.ndarray:
    """Name the columns of `transform`: players, with the output's name where there are several."""
    names = [f"{name}_{output}" for name in players for output in outputs] if outputs else players
    return np.array(names, dtype=object)
