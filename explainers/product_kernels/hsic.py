"""Which features does a target depend on: exact Shapley values of HSIC."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from .engine_choice import refuse_engine, resolve_engine
from .estimates import Estimate
from .hsic_engine import Side
from .hsic_estimates import block_hsic, full_hsic, joint_hsic, permuted_hsic
from .incomplete_statistics import incomplete_hsic
from .kernels import ProductKernel
from .pair_factors import mean_factors
from .parameters import ESTIMATION, KERNEL, WIDTH
from .players import feature_names_of, player_groups
from .sample_kernels import delta_kernel, sample_kernel
from .spectral_statistics import spectral_hsic

__all__ = ["HSICShapleyExplainer"]


def target_columns(Y: Any) -> tuple[np.ndarray, bool]:
    """Check a target; return it as float columns, and whether it holds classes.

    One column counts as classes if it isn't numeric, if it has two values, or if it holds integers
    of at most 20 values. Classes are numbered.
    """
    Y = check_array(Y, ensure_2d=False, dtype=None, input_name="Y")
    columns = Y.reshape(len(Y), -1)
    numeric = columns.dtype.kind in "iufb"
    n_values = len(np.unique(columns)) if columns.shape[1] == 1 else np.inf
    if not numeric and columns.shape[1] > 1:
        raise ValueError("Y with several columns must be numeric")
    classes = not numeric or n_values <= (20 if columns.dtype.kind in "iub" else 2)
    if classes:
        return np.unique(columns, return_inverse=True)[1].reshape(-1, 1).astype(np.float64), True
    return columns.astype(np.float64), False


class HSICShapleyExplainer(BaseEstimator):
    """Exact Shapley values of the dependence between features and a target, measured by HSIC.

    The Hilbert-Schmidt independence criterion is split among the features of X, those of Y, or
    both. With `n_permutations` every feature gets a p-value, also adjusted for all of them.

    Parameters
    ----------
    kernel_x : {"rbf", "laplacian"} or ProductKernel, default="rbf"
        Product kernel of the features.
    kernel_y : {"auto", "rbf", "laplacian", "delta"} or ProductKernel, default="auto"
        Kernel of the target. "auto" is "delta" (equal or not) for classes: a single column that
        isn't numeric, has two values, or holds integers of at most 20 values; "rbf" otherwise.
    gamma_x, gamma_y : {"median", "scale"} or float, default="median"
        Widths: by the median heuristic, 1 / (n_features * variance), or a number.
    statistic : {"biased", "unbiased"}, default="biased"
        Which estimate; "unbiased" needs 4 rows and can be negative.
    sides : {"x", "y", "joint"}, default="x"
        Whose features are the players; the other side is taken whole.
    scaling : {"n", "n-1"}, default="n"
        Whether "biased" divides by n^2 or (n - 1)^2.
    removal : {"identity", "mean"}, default="identity"
        What an absent feature's factor becomes: 1, or its mean over all pairs.
    estimator : {"full", "block", "incomplete", "spectral"}, default="full"
        All pairs, exactly; or, for large samples, the mean over blocks of rows, over drawn
        quadruples of rows (unbiased, one side), or over drawn frequencies (linear in the sample
        size; RBF and Laplacian factors, biased, `sides="x"`). The last three have standard errors.
    n_draws : int, default=2000
        Draws of "spectral", each with its mirror order.
    n_pairs : int, default=None
        Quadruples of "incomplete"; None is 16 times the number of rows.
    n_blocks : int, default=None
        Blocks of "block"; None is the square root of the number of rows.
    groups : list of lists or dict, default=None
        Features of X that act as one player.
    n_permutations : int, default=0
        Permutations of the rows of Y for p-values, with "full" and one side.
    max_t : bool, default=True
        Whether to adjust the p-values for all players by max-T.
    tol : float, default=1e-12
        Error allowed for the quadrature, relative to the weights' total; in (0, 1e-2].
    backend : {"auto", "numba", "numpy", "torch"}, default="auto"
        Engine of the integrals; "auto" is "numba", or "torch" where `device` or `dtype` ask it.
        "spectral" and `sides="joint"` have none: they work in NumPy.
    device : str, default="cpu"
        Torch device; "auto" takes an accelerator where there is one.
    dtype : {"float64", "float32"}, default="float64"
        Precision of the torch engine. With "float32" values are good to 1e-6 of the weights'
        total, and `tol` counts as at least that.
    n_jobs : int, default=None
        Threads over tiles of pairs, or over the draws of "spectral"; "incomplete" takes one.
    random_state : int, RandomState or None, default=None
        Draws, blocks, permutations; rows for the median of more than 2000.

    Attributes
    ----------
    statistic_ : float
        HSIC; the sum of `values_`.
    values_ : ndarray of shape (n_players,)
        Shapley values; for "joint" those of X's players before those of Y's.
    gamma_x_, gamma_y_ : float or None
        Widths used; None where there is none.
    standard_errors_ : ndarray of shape (n_players,) or None
        Standard errors of the values; None for "full", which is exact.
    pvalue_ : float or None
        P-value of the whole statistic; None without permutations, as the next two.
    pvalues_ : ndarray of shape (n_players,) or None
        One-sided p-value of each player.
    pvalues_adjusted_ : ndarray of shape (n_players,) or None
        Max-T p-values, adjusted for all players; None without `max_t`.
    error_bound_ : float
        Bound on the quadrature's absolute error of any value; 0 for "spectral", which has none.
    player_names_ : list of str
        Names of the players.
    kernel_x_, kernel_y_ : ProductKernel
        Kernels used.
    n_features_in_ : int
        Number of features of X.
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
    >>> from equipoise.explainers import HSICShapleyExplainer
    >>> X = np.random.default_rng(0).normal(size=(80, 3))
    >>> explainer = HSICShapleyExplainer().fit(X, np.sin(2 * X[:, 2]))
    >>> int(explainer.values_.argmax())
    2
    """

    _parameter_constraints: dict = {
        "kernel_x": KERNEL,
        "kernel_y": [StrOptions({"auto", "rbf", "laplacian", "delta"}), ProductKernel],
        "gamma_x": WIDTH,
        "gamma_y": WIDTH,
        "statistic": [StrOptions({"biased", "unbiased"})],
        "sides": [StrOptions({"x", "y", "joint"})],
        "scaling": [StrOptions({"n", "n-1"})],
        **ESTIMATION,
    }

    def __init__(
        self,
        kernel_x: str | ProductKernel = "rbf",
        kernel_y: str | ProductKernel = "auto",
        gamma_x: str | float = "median",
        gamma_y: str | float = "median",
        *,
        statistic: str = "biased",
        sides: str = "x",
        scaling: str = "n",
        removal: str = "identity",
        estimator: str = "full",
        n_draws: int = 2000,
        n_pairs: int | None = None,
        n_blocks: int | None = None,
        groups: Any = None,
        n_permutations: int = 0,
        max_t: bool = True,
        tol: float = 1e-12,
        backend: str = "auto",
        device: str = "cpu",
        dtype: str = "float64",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel_x = kernel_x
        self.kernel_y = kernel_y
        self.gamma_x = gamma_x
        self.gamma_y = gamma_y
        self.statistic = statistic
        self.sides = sides
        self.scaling = scaling
        self.removal = removal
        self.estimator = estimator
        self.n_draws = n_draws
        self.n_pairs = n_pairs
        self.n_blocks = n_blocks
        self.groups = groups
        self.n_permutations = n_permutations
        self.max_t = max_t
        self.tol = tol
        self.backend = backend
        self.device = device
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, Y: Any) -> "HSICShapleyExplainer":
        """Compute the statistic, its Shapley values, and p-values if they are asked for.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Features.
        Y : array-like of shape (n,) or (n, n_targets)
            Target.

        Returns
        -------
        HSICShapleyExplainer
            The fitted explainer.

        Raises
        ------
        ValueError
            If the samples don't match, hold too few rows, or a parameter doesn't fit them.
        """
        self._validate_params()
        self._check_combination()
        rows = check_array(X, dtype=np.float64, estimator=self, input_name="X")
        if Y is None:
            raise ValueError(
                "HSICShapleyExplainer requires y to be passed, but the target y is None"
            )
        target, classes = target_columns(Y)
        check_consistent_length(rows, target)
        need = 4 if self.statistic == "unbiased" else 2
        if len(rows) < need:
            raise ValueError(
                f"statistic={self.statistic!r} needs {need} rows, got n_samples={len(rows)}"
            )
        generator = check_random_state(self.random_state)
        kernel_x, gamma_x = sample_kernel(self.kernel_x, self.gamma_x, rows, generator, "gamma_x")
        kind = self.kernel_y
        if isinstance(kind, str) and kind == "auto":
            kind = "delta" if classes else "rbf"
        if isinstance(kind, str) and kind == "delta":
            kernel_y, gamma_y = delta_kernel(target.shape[1]), None
        else:
            kernel_y, gamma_y = sample_kernel(kind, self.gamma_y, target, generator, "gamma_y")
        player, names = player_groups(
            self.groups, rows.shape[1], feature_names_of(X, rows.shape[1])
        )
        y_names = feature_names_of(Y, target.shape[1])
        x_side = self._side(kernel_x, rows, player, len(names))
        y_side = self._side(kernel_y, target, np.arange(target.shape[1]), target.shape[1])
        found = self._estimate(x_side, y_side, generator)
        validate_data(self, X, skip_check_array=True)
        self.kernel_x_, self.kernel_y_ = kernel_x, kernel_y
        self.gamma_x_, self.gamma_y_ = gamma_x, gamma_y
        self.player_names_ = {
            "x": names,
            "y": y_names,
            "joint": [f"X: {name}" for name in names] + [f"Y: {name}" for name in y_names],
        }[self.sides]
        for name, value in found._asdict().items():
            setattr(self, f"{name}_", value)
        self.statistic_ = float(self.values_.sum())
        return self

    def _check_combination(self) -> None:
        """Refuse parameters that don't go together."""
        resolve_engine(self.backend, self.device, self.dtype)
        if self.n_permutations and (self.estimator != "full" or self.sides == "joint"):
            raise ValueError(
                f"n_permutations={self.n_permutations} is for estimator='full' and one side, got "
                f"estimator={self.estimator!r}, sides={self.sides!r}"
            )
        if self.estimator == "incomplete" and (
            self.statistic != "unbiased" or self.sides == "joint" or self.removal != "identity"
        ):
            raise ValueError(
                "estimator='incomplete' is for statistic='unbiased', one side and "
                f"removal='identity', got {self.statistic!r}, {self.sides!r} and {self.removal!r}"
            )
        if self.estimator == "spectral" or self.sides == "joint":
            what = "estimator='spectral'" if self.estimator == "spectral" else "sides='joint'"
            refuse_engine(what, self.backend, self.device, self.dtype)
        if self.estimator == "spectral" and (
            self.statistic != "biased" or self.sides != "x" or self.removal != "identity"
        ):
            raise ValueError(
                "estimator='spectral' is for statistic='biased', sides='x' and removal='identity', "
                f"got {self.statistic!r}, {self.sides!r} and {self.removal!r}"
            )

    def _side(self, kernel: ProductKernel, sample: np.ndarray, player: np.ndarray, d: int) -> Side:
        """Bundle one side; its absence factors are means over all its pairs, or ones."""
        absence = np.ones(d)
        if self.removal == "mean":
            absence = mean_factors(kernel, sample, player, d)
        return Side(kernel, sample, player, d, absence)

    def _estimate(self, x: Side, y: Side, generator: np.random.RandomState) -> Estimate:
        """Compute the values by the estimator that was asked for."""
        options: dict[str, Any] = {
            "tol": self.tol,
            "engine": resolve_engine(self.backend, self.device, self.dtype),
        }
        if self.estimator == "spectral":
            return spectral_hsic(x, y, self.scaling, self.n_draws, generator, self.n_jobs)
        if self.estimator == "incomplete":
            n_pairs = 16 * len(x.sample) if self.n_pairs is None else self.n_pairs
            sides = (y, x) if self.sides == "y" else (x, y)
            return incomplete_hsic(*sides, n_pairs, generator=generator, **options)
        if self.estimator == "block":
            least = 4 if self.statistic == "unbiased" else 2
            return block_hsic(x, y, self._full, self.n_blocks, least, generator)
        if not self.n_permutations:
            return self._full(x, y)
        sides = (y, x) if self.sides == "y" else (x, y)
        return permuted_hsic(
            *sides, self.statistic, self.scaling, self.n_permutations, self.max_t, generator,
            n_jobs=self.n_jobs, **options,
        )  # fmt: skip

    def _full(self, x: Side, y: Side) -> Estimate:
        """Compute the values over all pairs."""
        if self.sides == "joint":
            return joint_hsic(x, y, self.statistic, self.scaling, tol=self.tol, n_jobs=self.n_jobs)
        sides = (y, x) if self.sides == "y" else (x, y)
        engine = resolve_engine(self.backend, self.device, self.dtype)
        return full_hsic(
            *sides, self.statistic, self.scaling, tol=self.tol, engine=engine, n_jobs=self.n_jobs
        )

    def explain(self) -> Any:
        """Return the values as an explanation of the statistic.

        Returns
        -------
        shap.Explanation
            ``values`` of shape (n_players,), ``base_values`` 0; for the bar and waterfall plots.
        """
        import shap

        check_is_fitted(self)
        explanation = shap.Explanation(
            self.values_, base_values=0.0, feature_names=self.player_names_
        )
        explanation.error_bound = self.error_bound_
        return explanation

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
