"""Which features make two samples differ: exact Shapley values of the maximum mean discrepancy.

    MMD^2(S) = sum_ab W_ab prod_{j in S} k_j(U_aj, U_bj),    U the pooled sample,

is a sum of product games over pairs of rows; without features it is 0.
"""

from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from .attribution import attribute
from .expansion import ProductKernelExpansion
from .kernels import ProductKernel
from .nodes import quadrature_rules
from .pair_engine import kernel_tile, mean_factors, pair_values, sum_over_tiles
from .permutation import attribution_pvalues, label_forms, permuted_labels, two_sample_values
from .player_game import PlayerGame
from .players import feature_names_of, player_groups
from .sample_kernels import sample_kernel
from .sampled_statistics import block_estimate, incomplete_mmd, spectral_mmd

__all__ = ["MMDShapleyExplainer"]


def mmd_weights(h: np.ndarray, statistic: str, rows: slice, columns: slice) -> np.ndarray:
    """Compute a tile of the weights of MMD^2, from labels 1 (first sample) and 0."""
    n, m = h.sum(), (1 - h).sum()
    if statistic == "v":
        u = h / n - (1 - h) / m
        return np.outer(u[rows], u[columns])
    first = np.outer(h[rows], h[columns]) / (n * (n - 1))
    second = np.outer(1 - h[rows], 1 - h[columns]) / (m * (m - 1))
    across = (np.outer(h[rows], 1 - h[columns]) + np.outer(1 - h[rows], h[columns])) / (n * m)
    W = first + second - across
    if rows == columns:
        np.fill_diagonal(W, 0.0)
    return W


class MMDShapleyExplainer(BaseEstimator):
    """Exact Shapley values of the squared maximum mean discrepancy between two samples.

    The statistic is split among the features: how much does each contribute to the difference
    between the two distributions, alone and together with others? With `n_permutations` every
    feature gets a p-value, also adjusted for all of them.

    Parameters
    ----------
    kernel : {"rbf", "laplacian"} or ProductKernel, default="rbf"
        Product kernel of the features.
    gamma : {"median", "scale"} or float, default="median"
        Its width: by the median heuristic on the pooled sample, 1 / (n_features * variance), or a
        number. Unused with a ProductKernel.
    statistic : {"u", "v"}, default="u"
        Unbiased (can be negative) or biased.
    removal : {"identity", "mean"}, default="identity"
        What an absent feature's factor becomes: 1, or its mean over all pairs of the pooled sample.
    estimator : {"full", "block", "incomplete", "spectral"}, default="full"
        All pairs, exactly; or, for large samples, the mean over blocks of rows, over drawn pairs,
        or over drawn frequencies (linear in the sample size, RBF and Laplacian factors). The last
        three have standard errors.
    n_draws : int, default=2000
        Draws of "spectral", each with its mirror order.
    n_pairs : int, default=None
        Pairs a block of "incomplete": within each sample and across. None is 16 times the larger
        sample.
    n_blocks : int, default=None
        Blocks of "block"; None is the square root of the smaller sample.
    groups : list of lists or dict, default=None
        Features that act as one player.
    n_permutations : int, default=0
        Permutations of the labels for p-values, with "full".
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
        MMD^2; the sum of `values_`.
    values_ : ndarray of shape (n_players,)
        Shapley values.
    gamma_ : float or None
        Width used; None for a given ProductKernel.
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
    groups_ : dict of str to list of int
        Features of each player.
    kernel_ : ProductKernel
        Kernel used.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where they are all strings.

    References
    ----------
    .. [1] Mohammadi, Chau, Muandet, "Amortized Linear-time Exact Shapley Value for Product-Kernel
           Methods", arXiv:2505.16516.
    .. [2] Gretton et al., "A Kernel Two-Sample Test", JMLR 13, 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.explainers import MMDShapleyExplainer
    >>> generator = np.random.default_rng(0)
    >>> X, Y = generator.normal(size=(2, 60, 3))
    >>> Y[:, 1] += 1.0
    >>> explainer = MMDShapleyExplainer(n_permutations=99, random_state=0).fit(X, Y)
    >>> int(explainer.values_.argmax())
    1
    >>> (explainer.pvalues_adjusted_ < 0.05).tolist()
    [False, True, False]
    """

    _parameter_constraints: dict = {
        "kernel": [StrOptions({"rbf", "laplacian"}), ProductKernel],
        "gamma": [StrOptions({"median", "scale"}), Interval(Real, 0, None, closed="neither")],
        "statistic": [StrOptions({"u", "v"})],
        "removal": [StrOptions({"identity", "mean"})],
        "estimator": [StrOptions({"full", "block", "incomplete", "spectral"})],
        "n_draws": [Interval(Integral, 2, None, closed="left")],
        "n_pairs": [Interval(Integral, 2, None, closed="left"), None],
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
        kernel: str | ProductKernel = "rbf",
        gamma: str | float = "median",
        *,
        statistic: str = "u",
        removal: str = "identity",
        estimator: str = "full",
        n_draws: int = 2000,
        n_pairs: int | None = None,
        n_blocks: int | None = None,
        groups: Any = None,
        n_permutations: int = 0,
        max_t: bool = True,
        tol: float = 1e-12,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.statistic = statistic
        self.removal = removal
        self.estimator = estimator
        self.n_draws = n_draws
        self.n_pairs = n_pairs
        self.n_blocks = n_blocks
        self.groups = groups
        self.n_permutations = n_permutations
        self.max_t = max_t
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, Y: Any = None, *, labels: Any = None) -> "MMDShapleyExplainer":
        """Compute the statistic, its Shapley values, and p-values if they are asked for.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            First sample, or both with `labels`.
        Y : array-like of shape (m, n_features), default=None
            Second sample.
        labels : array-like of shape (n,), default=None
            Two different values instead of `Y`; rows with the first one, in sorted order, are the
            first sample.

        Returns
        -------
        MMDShapleyExplainer
            The fitted explainer.

        Raises
        ------
        ValueError
            If the samples don't match, hold too few rows, or a parameter doesn't fit them.
        """
        self._validate_params()
        first, second = two_samples(X, Y, labels)
        need = 2 if self.statistic == "u" or self.estimator != "full" else 1
        if min(len(first), len(second)) < need:
            raise ValueError(
                f"statistic={self.statistic!r} with estimator={self.estimator!r} needs {need} rows "
                f"in each sample, got {len(first)} and {len(second)}"
            )
        if self.n_permutations and self.estimator != "full":
            raise ValueError(
                f"n_permutations={self.n_permutations} is for estimator='full', got "
                f"{self.estimator!r}"
            )
        if self.removal == "mean" and self.estimator in ("incomplete", "spectral"):
            raise ValueError(f"removal='mean' isn't available with estimator={self.estimator!r}")
        if self.statistic == "v" and self.estimator == "incomplete":
            raise ValueError("estimator='incomplete' estimates the U-statistic: statistic='u'")
        generator = check_random_state(self.random_state)
        U = np.vstack([first, second])
        h = np.repeat([1.0, 0.0], [len(first), len(second)])
        kernel, gamma = sample_kernel(self.kernel, self.gamma, U, generator)
        player, names = player_groups(self.groups, U.shape[1], feature_names_of(X, U.shape[1]))
        fields = self._values(kernel, U, h, player, len(names), generator)
        validate_data(self, X, skip_check_array=True)
        self.kernel_ = kernel
        self.gamma_ = gamma
        self.groups_ = {name: np.flatnonzero(player == g).tolist() for g, name in enumerate(names)}
        for name, value in fields.items():
            setattr(self, name, value)
        self.statistic_ = float(self.values_.sum())
        self._game = witness_game(kernel, U, h, player, len(names))
        return self

    def _values(
        self,
        kernel: ProductKernel,
        U: np.ndarray,
        h: np.ndarray,
        player: np.ndarray,
        d: int,
        generator: np.random.RandomState,
    ) -> dict[str, Any]:
        """Compute the fitted attributes that depend on the estimator."""
        none = dict.fromkeys(("standard_errors_", "pvalue_", "pvalues_", "pvalues_adjusted_"), None)
        absence = np.ones(d)
        if self.removal == "mean":
            absence = mean_factors(kernel, U, player, d) if self.estimator == "full" else absence
        n, m = int(h.sum()), int((1 - h).sum())
        if self.estimator == "spectral":
            values, errors = spectral_mmd(
                kernel, U[:n], U[n:], player, d, self.statistic, self.n_draws, generator
            )
            return {**none, "values_": values, "standard_errors_": errors, "error_bound_": 0.0}
        if self.estimator == "incomplete":
            n_pairs = 16 * max(n, m) if self.n_pairs is None else self.n_pairs
            values, errors, bound = incomplete_mmd(
                kernel, U[:n], U[n:], player, d, n_pairs, self.tol, generator
            )
            return {**none, "values_": values, "standard_errors_": errors, "error_bound_": bound}
        if self.estimator == "block":
            n_blocks = max(2, int(np.sqrt(min(n, m)))) if self.n_blocks is None else self.n_blocks
            if min(n, m) // n_blocks < 2:
                raise ValueError(
                    f"n_blocks={n_blocks} leaves fewer than 2 rows a block and sample ({n}, {m})"
                )
            first, second = generator.permutation(n), n + generator.permutation(m)
            parts = []
            for one, two in zip(
                np.array_split(first, n_blocks), np.array_split(second, n_blocks), strict=True
            ):
                chosen = np.concatenate([one, two])
                parts.append(self._full(kernel, U[chosen], h[chosen], player, d)[:3:2])
            values, errors = block_estimate(np.array([part[0] for part in parts]))
            bound = float(np.mean([part[1] for part in parts]))
            return {**none, "values_": values, "standard_errors_": errors, "error_bound_": bound}
        if not self.n_permutations:
            values, _, bound = self._full(kernel, U, h, player, d)
            return {**none, "values_": values, "error_bound_": bound}
        H = permuted_labels(h, self.n_permutations, generator)
        found = sum_over_tiles(
            len(U),
            partial(kernel_tile, kernel, U, player, d, absence),
            partial(label_forms, H, self.statistic == "u"),
            quadrature_rules(d, "SV", "auto", self.tol, kernel.unit),
            absence,
            self.n_jobs,
        )
        values = kernel.scale * two_sample_values(found.total, n, m, self.statistic)
        raw, adjusted, total = attribution_pvalues(values, self.max_t)
        return {
            **none,
            "values_": values[:, 0],
            "error_bound_": 4 * kernel.scale * found.worst,
            "pvalue_": total,
            "pvalues_": raw,
            "pvalues_adjusted_": adjusted,
        }

    def _full(
        self, kernel: ProductKernel, U: np.ndarray, h: np.ndarray, player: np.ndarray, d: int
    ) -> tuple[np.ndarray, int, float]:
        """Compute the values over all pairs."""
        absence = mean_factors(kernel, U, player, d) if self.removal == "mean" else np.ones(d)
        values, nodes, bound = pair_values(
            len(U),
            d,
            partial(kernel_tile, kernel, U, player, d, absence),
            partial(mmd_weights, h, self.statistic),
            unit=kernel.unit,
            absence=absence,
            tol=self.tol,
            n_jobs=self.n_jobs,
        )
        return kernel.scale * values, nodes, kernel.scale * bound

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
            self.values_, base_values=0.0, feature_names=list(self.groups_)
        )
        explanation.error_bound = self.error_bound_
        return explanation

    def explain_witness(self, X: Any) -> Any:
        """Attribute the witness function at some points to the players.

        The witness function is the mean kernel with the first sample minus that with the second:
        large where the first sample has more mass.

        Parameters
        ----------
        X : array-like of shape (n_points, n_features)
            Points.

        Returns
        -------
        shap.Explanation
            ``values`` of shape (n_points, n_players); ``base_values`` 0.
        """
        import shap

        check_is_fitted(self)
        rows = validate_data(self, X, reset=False, dtype=np.float64)
        found = attribute(self._game, rows, tol=self.tol, n_jobs=self.n_jobs)
        explanation = shap.Explanation(
            found.values[:, :, 0],
            base_values=np.zeros(len(rows)),
            data=rows if self.groups is None else None,
            feature_names=list(self.groups_),
        )
        explanation.n_nodes = found.n_nodes
        explanation.error_bound = found.error_bound
        return explanation


def two_samples(X: Any, Y: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    """Check the samples, given as two arrays or as one with labels."""
    if (Y is None) == (labels is None):
        raise ValueError(
            "fit takes two samples X and Y, or X with labels; give one of Y and labels"
        )
    first = check_array(X, dtype=np.float64, input_name="X")
    if labels is None:
        second = check_array(Y, dtype=np.float64, input_name="Y")
        if first.shape[1] != second.shape[1]:
            raise ValueError(f"X has {first.shape[1]} features, but Y has {second.shape[1]}")
        names, others = getattr(X, "columns", None), getattr(Y, "columns", None)
        if names is not None and others is not None and list(names) != list(others):
            raise ValueError("The feature names of X and Y must agree, in the same order")
        return first, second
    labels = check_array(labels, ensure_2d=False, dtype=None, input_name="labels")
    found = np.unique(labels)
    if labels.ndim != 1 or len(labels) != len(first) or len(found) != 2:
        raise ValueError(
            f"labels must have shape ({len(first)},) and hold two different values, got shape "
            f"{labels.shape} with {len(found)} values"
        )
    return first[labels == found[0]], first[labels == found[1]]


def witness_game(
    kernel: ProductKernel, U: np.ndarray, h: np.ndarray, player: np.ndarray, d: int
) -> PlayerGame:
    """Write the witness function as a kernel expansion at the pooled sample."""
    coef = h / h.sum() - (1 - h) / (1 - h).sum()
    expansion = ProductKernelExpansion(U, coef[:, None], np.zeros(1), (kernel,))
    return PlayerGame(expansion, player, d)
