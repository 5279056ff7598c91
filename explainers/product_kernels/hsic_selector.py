"""Feature selection by the exact Shapley values of HSIC."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, _fit_context
from sklearn.feature_selection import SelectorMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from .hsic import HSICShapleyExplainer
from .kernels import ProductKernel
from .parameters import ESTIMATION, KERNEL, WIDTH

__all__ = ["HSICShapleySelector"]


# The parameters of estimation that ranking features has a use for.
ESTIMATION_NAMES = tuple(
    name for name in ESTIMATION if name not in ("groups", "n_permutations", "max_t")
)


class HSICShapleySelector(SelectorMixin, BaseEstimator):
    """Keep the features to which a target's dependence on X is owed.

    Features are ranked by their exact Shapley values of HSIC, which see non-linear dependence and
    features that act together only.

    Parameters
    ----------
    n_features_to_select : int or float, default=None
        How many features to keep, as a number or a fraction. None, with `threshold` None too,
        keeps the better half.
    threshold : float, default=None
        Keep features with scores above this, instead of a number of them.
    kernel_x : {"rbf", "laplacian"} or ProductKernel, default="rbf"
        As in `HSICShapleyExplainer`, like all that follows.
    kernel_y : {"auto", "rbf", "laplacian", "delta"} or ProductKernel, default="auto"
        Kernel of the target.
    gamma_x, gamma_y : {"median", "scale"} or float, default="median"
        Widths.
    statistic : {"biased", "unbiased"}, default="biased"
        Which estimate of HSIC.
    removal : {"identity", "mean"}, default="identity"
        What an absent feature's factor becomes.
    estimator : {"full", "block", "incomplete", "spectral"}, default="full"
        All pairs of rows, or an estimate for large samples.
    n_draws : int, default=2000
        Draws of "spectral".
    n_pairs, n_blocks : int, default=None
        Quadruples of "incomplete", and blocks of "block".
    tol : float, default=1e-12
        Error allowed for the quadrature.
    backend : {"auto", "numba", "numpy", "torch"}, default="auto"
        Engine of the integrals.
    device : str, default="cpu"
        Torch device.
    dtype : {"float64", "float32"}, default="float64"
        Precision of the torch engine.
    n_jobs : int, default=None
        Threads.
    random_state : int, RandomState or None, default=None
        Draws and blocks; the rows for the median of more than 2000.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features_in_,)
        Shapley values of HSIC.
    statistic_ : float
        HSIC, the scores' sum.
    standard_errors_ : ndarray of shape (n_features_in_,) or None
        Standard errors of the scores; None for "full", which is exact.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where they are all strings.

    References
    ----------
    .. [1] Mohammadi, Chau, Muandet, "Amortized Linear-time Exact Shapley Value for Product-Kernel
           Methods", arXiv:2505.16516.
    .. [2] Song et al., "Feature Selection via Dependence Maximization", JMLR 13, 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.explainers import HSICShapleySelector
    >>> X = np.random.default_rng(0).normal(size=(80, 4))
    >>> selector = HSICShapleySelector(n_features_to_select=1).fit(X, X[:, 1] ** 2)
    >>> selector.get_support()
    array([False,  True, False, False])
    """

    _parameter_constraints: dict = {
        "n_features_to_select": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0.0, 1.0, closed="neither"),
            None,
        ],
        "threshold": [Interval(Real, None, None, closed="neither"), None],
        "kernel_x": KERNEL,
        "kernel_y": [StrOptions({"auto", "rbf", "laplacian", "delta"}), ProductKernel],
        "gamma_x": WIDTH,
        "gamma_y": WIDTH,
        "statistic": [StrOptions({"biased", "unbiased"})],
        **{name: ESTIMATION[name] for name in ESTIMATION_NAMES},
    }

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        threshold: float | None = None,
        *,
        kernel_x: str | ProductKernel = "rbf",
        kernel_y: str | ProductKernel = "auto",
        gamma_x: str | float = "median",
        gamma_y: str | float = "median",
        statistic: str = "biased",
        removal: str = "identity",
        estimator: str = "full",
        n_draws: int = 2000,
        n_pairs: int | None = None,
        n_blocks: int | None = None,
        tol: float = 1e-12,
        backend: str = "auto",
        device: str = "cpu",
        dtype: str = "float64",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.threshold = threshold
        self.kernel_x = kernel_x
        self.kernel_y = kernel_y
        self.gamma_x = gamma_x
        self.gamma_y = gamma_y
        self.statistic = statistic
        self.removal = removal
        self.estimator = estimator
        self.n_draws = n_draws
        self.n_pairs = n_pairs
        self.n_blocks = n_blocks
        self.tol = tol
        self.backend = backend
        self.device = device
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> "HSICShapleySelector":
        """Score the features.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Features.
        y : array-like of shape (n,) or (n, n_targets)
            Target.

        Returns
        -------
        HSICShapleySelector
            The fitted selector.

        Raises
        ------
        ValueError
            If both `n_features_to_select` and `threshold` are given, the first exceeds the number
            of features, or parameters don't go together, see `HSICShapleyExplainer`.
        """
        if self.n_features_to_select is not None and self.threshold is not None:
            raise ValueError("n_features_to_select and threshold are both given; give one of them")
        explainer = HSICShapleyExplainer(
            self.kernel_x,
            self.kernel_y,
            self.gamma_x,
            self.gamma_y,
            statistic=self.statistic,
            **{name: getattr(self, name) for name in ESTIMATION_NAMES},
        )
        if y is None:
            raise ValueError(
                "HSICShapleySelector requires y to be passed, but the target y is None"
            )
        explainer.fit(X, y)
        wanted = self.n_features_to_select
        if isinstance(wanted, Integral) and wanted > explainer.n_features_in_:
            raise ValueError(
                f"n_features_to_select={wanted} exceeds X's {explainer.n_features_in_} features"
            )
        validate_data(self, X, skip_check_array=True)
        self.scores_ = explainer.values_
        self.statistic_ = explainer.statistic_
        self.standard_errors_ = explainer.standard_errors_
        return self

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        if self.threshold is not None:
            return self.scores_ > self.threshold
        d = len(self.scores_)
        wanted = d // 2 if self.n_features_to_select is None else self.n_features_to_select
        count = int(wanted) if isinstance(wanted, Integral) else int(wanted * d)
        mask = np.zeros(d, dtype=bool)
        mask[np.argsort(-self.scores_, kind="stable")[: max(1, count)]] = True
        return mask

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
