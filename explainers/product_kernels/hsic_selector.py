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
from .parameters import COMPUTATION, KERNEL, WIDTH

__all__ = ["HSICShapleySelector"]


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
        As in `HSICShapleyExplainer`, like the next four.
    kernel_y : {"auto", "rbf", "laplacian", "delta"} or ProductKernel, default="auto"
        Kernel of the target.
    gamma_x, gamma_y : {"median", "scale"} or float, default="median"
        Widths.
    statistic : {"biased", "unbiased"}, default="biased"
        Which estimate of HSIC.
    tol : float, default=1e-12
        Error allowed for the quadrature.
    n_jobs : int, default=None
        Threads.
    random_state : int, RandomState or None, default=None
        Draws the rows for the median of more than 2000.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features_in_,)
        Shapley values of HSIC.
    statistic_ : float
        HSIC, the scores' sum.
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
        **{name: COMPUTATION[name] for name in ("tol", "n_jobs", "random_state")},
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
        tol: float = 1e-12,
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
        self.tol = tol
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
            If both `n_features_to_select` and `threshold` are given, or the first exceeds the
            number of features.
        """
        if self.n_features_to_select is not None and self.threshold is not None:
            raise ValueError("n_features_to_select and threshold are both given; give one of them")
        explainer = HSICShapleyExplainer(
            self.kernel_x,
            self.kernel_y,
            self.gamma_x,
            self.gamma_y,
            statistic=self.statistic,
            tol=self.tol,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
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
