"""Which features does a target depend on: exact Shapley values of HSIC."""

from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from .hsic_engine import Side, centred_weights, joint_values
from .kernels import ProductKernel
from .nodes import quadrature_rules
from .pair_engine import kernel_tile, mean_factors, pair_values, sum_over_tiles
from .permutation import attribution_pvalues, permuted_weights
from .players import feature_names_of, player_groups
from .sample_kernels import delta_kernel, sample_kernel
from .sampled_statistics import block_estimate, spectral_hsic

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
    estimator : {"full", "block", "spectral"}, default="full"
        All pairs, exactly; or, for large samples, the mean over blocks of rows, or over drawn
        frequencies (linear in the sample size; RBF and Laplacian factors, biased, `sides="x"`).
        The last two have standard errors.
    n_draws : int, default=2000
        Draws of "spectral", each with its mirror order.
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
    n_jobs : int, default=None
        Threads.
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
        "kernel_x": [StrOptions({"rbf", "laplacian"}), ProductKernel],
        "kernel_y": [StrOptions({"auto", "rbf", "laplacian", "delta"}), ProductKernel],
        "gamma_x": [StrOptions({"median", "scale"}), Interval(Real, 0, None, closed="neither")],
        "gamma_y": [StrOptions({"median", "scale"}), Interval(Real, 0, None, closed="neither")],
        "statistic": [StrOptions({"biased", "unbiased"})],
        "sides": [StrOptions({"x", "y", "joint"})],
        "scaling": [StrOptions({"n", "n-1"})],
        "removal": [StrOptions({"identity", "mean"})],
        "estimator": [StrOptions({"full", "block", "spectral"})],
        "n_draws": [Interval(Integral, 2, None, closed="left")],
        "n_blocks": [Interval(Integral, 2, None, closed="left"), None],
        "groups": [list, tuple, dict, None],
        "n_permutations": [Interval(Integral, 0, None, closed="left")],
        "max_t": ["boolean"],
        "tol": [Interval(Real, 0.0, 1e-2, closed="right")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
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
        n_blocks: int | None = None,
        groups: Any = None,
        n_permutations: int = 0,
        max_t: bool = True,
        tol: float = 1e-12,
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
        self.n_blocks = n_blocks
        self.groups = groups
        self.n_permutations = n_permutations
        self.max_t = max_t
        self.tol = tol
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
        fields = self._values(x_side, y_side, generator)
        validate_data(self, X, skip_check_array=True)
        self.kernel_x_, self.kernel_y_ = kernel_x, kernel_y
        self.gamma_x_, self.gamma_y_ = gamma_x, gamma_y
        self.player_names_ = {
            "x": names,
            "y": y_names,
            "joint": [f"X: {name}" for name in names] + [f"Y: {name}" for name in y_names],
        }[self.sides]
        for name, value in fields.items():
            setattr(self, name, value)
        self.statistic_ = float(self.values_.sum())
        return self

    def _check_combination(self) -> None:
        """Refuse parameters that don't go together."""
        if self.n_permutations and (self.estimator != "full" or self.sides == "joint"):
            raise ValueError(
                f"n_permutations={self.n_permutations} is for estimator='full' and one side, got "
                f"estimator={self.estimator!r}, sides={self.sides!r}"
            )
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

    def _values(self, x: Side, y: Side, generator: np.random.RandomState) -> dict[str, Any]:
        """Compute the fitted attributes that depend on the estimator."""
        found: dict[str, Any] = dict.fromkeys(
            ("standard_errors_", "pvalue_", "pvalues_", "pvalues_adjusted_"), None
        )
        n = len(x.sample)
        if self.estimator == "spectral":
            credits = spectral_hsic(x, y, self.scaling, self.n_draws, generator)
            found["values_"], found["standard_errors_"] = block_estimate(credits)
        elif self.estimator == "block":
            n_blocks = max(2, int(np.sqrt(n))) if self.n_blocks is None else self.n_blocks
            need = 4 if self.statistic == "unbiased" else 2
            if n // n_blocks < need:
                raise ValueError(
                    f"n_blocks={n_blocks} leaves fewer than {need} of {n} rows a block"
                )
            parts = np.array_split(generator.permutation(n), n_blocks)
            values = [
                self._full(x._replace(sample=x.sample[rows]), y._replace(sample=y.sample[rows]))
                for rows in parts
            ]
            found["values_"], found["standard_errors_"] = block_estimate(np.array(values))
        elif self.n_permutations:
            players, other = (y, x) if self.sides == "y" else (x, y)
            W = centred_weights(other.matrix, n, self.statistic, self.scaling)(
                slice(0, n), slice(0, n)
            )
            orders = [np.arange(n), *(generator.permutation(n) for _ in range(self.n_permutations))]
            total = sum_over_tiles(
                n,
                partial(
                    kernel_tile, players.kernel, players.sample, players.player,
                    players.n_players, players.absence,
                ),
                permuted_weights(W, np.array(orders)),
                quadrature_rules(players.n_players, "SV", "auto", self.tol, players.kernel.unit),
                players.absence,
                self.n_jobs,
            ).total * (x.kernel.scale * y.kernel.scale)  # fmt: skip
            raw, adjusted, whole = attribution_pvalues(total, self.max_t)
            found |= {"values_": total[:, 0], "pvalue_": whole, "pvalues_": raw}
            found["pvalues_adjusted_"] = adjusted
        else:
            found["values_"] = self._full(x, y)
        return found

    def _full(self, x: Side, y: Side) -> np.ndarray:
        """Compute the values over all pairs."""
        n = len(x.sample)
        if self.sides == "joint":
            return np.concatenate(joint_values(x, y, self.statistic, self.scaling, self.tol)[:2])
        players, other = (y, x) if self.sides == "y" else (x, y)
        values, _, _ = pair_values(
            n,
            players.n_players,
            partial(
                kernel_tile, players.kernel, players.sample, players.player, players.n_players,
                players.absence,
            ),
            centred_weights(other.matrix, n, self.statistic, self.scaling),
            unit=players.kernel.unit,
            absence=players.absence,
            tol=self.tol,
            n_jobs=self.n_jobs,
        )  # fmt: skip
        return values * (x.kernel.scale * y.kernel.scale)

    def explain(self) -> Any:
        """Return the values as an explanation of the statistic.

        Returns
        -------
        shap.Explanation
            ``values`` of shape (n_players,), ``base_values`` 0; for the bar and waterfall plots.
        """
        import shap

        check_is_fitted(self)
        return shap.Explanation(self.values_, base_values=0.0, feature_names=self.player_names_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
