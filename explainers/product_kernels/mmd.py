"""Which features make two samples differ: exact Shapley values of the maximum mean discrepancy.

    MMD^2(S) = sum_ab W_ab prod_{j in S} k_j(U_aj, U_bj),    U the pooled sample,

is a sum of product games over pairs of rows; without features it is 0.
"""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from .attribution import attribute
from .engine_choice import refuse_engine, resolve_engine
from .estimates import Estimate
from .incomplete_statistics import incomplete_mmd
from .kernels import ProductKernel
from .mmd_estimates import PooledSample, block_mmd, full_mmd, permuted_mmd, two_samples
from .parameters import ESTIMATION, KERNEL, WIDTH
from .players import feature_names_of, player_groups
from .sample_kernels import sample_kernel
from .spectral_statistics import spectral_mmd

__all__ = ["MMDShapleyExplainer"]


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
    backend : {"auto", "numba", "numpy", "torch"}, default="auto"
        Engine of the integrals; "auto" is "numba", or "torch" where `device` or `dtype` ask it.
        "spectral" has none: it works in NumPy.
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
        "kernel": KERNEL,
        "gamma": WIDTH,
        "statistic": [StrOptions({"u", "v"})],
        **ESTIMATION,
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
        backend: str = "auto",
        device: str = "cpu",
        dtype: str = "float64",
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
        self.backend = backend
        self.device = device
        self.dtype = dtype
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
        self._check_combination()
        generator = check_random_state(self.random_state)
        U = np.vstack([first, second])
        h = np.repeat([1.0, 0.0], [len(first), len(second)])
        kernel, gamma = sample_kernel(self.kernel, self.gamma, U, generator)
        player, names = player_groups(self.groups, U.shape[1], feature_names_of(X, U.shape[1]))
        pool = PooledSample(kernel, U, h, player, len(names), self.removal)
        found = self._estimate(pool, generator)
        validate_data(self, X, skip_check_array=True)
        self.kernel_ = kernel
        self.gamma_ = gamma
        self.groups_ = {name: np.flatnonzero(player == g).tolist() for g, name in enumerate(names)}
        for name, value in found._asdict().items():
            setattr(self, f"{name}_", value)
        self.statistic_ = float(self.values_.sum())
        self._game = pool.witness_game()
        return self

    def _check_combination(self) -> None:
        """Refuse parameters that don't go together."""
        resolve_engine(self.backend, self.device, self.dtype)
        if self.n_permutations and self.estimator != "full":
            raise ValueError(
                f"n_permutations={self.n_permutations} is for estimator='full', got "
                f"{self.estimator!r}"
            )
        if self.removal == "mean" and self.estimator in ("incomplete", "spectral"):
            raise ValueError(f"removal='mean' isn't available with estimator={self.estimator!r}")
        if self.statistic == "v" and self.estimator == "incomplete":
            raise ValueError("estimator='incomplete' estimates the U-statistic: statistic='u'")
        if self.estimator == "spectral":
            refuse_engine("estimator='spectral'", self.backend, self.device, self.dtype)

    def _estimate(self, pool: PooledSample, generator: np.random.RandomState) -> Estimate:
        """Compute the values by the estimator that was asked for."""
        d = pool.n_players
        options: dict[str, Any] = {
            "tol": self.tol,
            "engine": resolve_engine(self.backend, self.device, self.dtype),
        }
        if self.estimator == "spectral":
            return spectral_mmd(
                pool.kernel, *pool.samples, pool.player, d, self.statistic, self.n_draws, generator,
                self.n_jobs,
            )  # fmt: skip
        if self.estimator == "incomplete":
            n_pairs = 16 * max(pool.sizes) if self.n_pairs is None else self.n_pairs
            return incomplete_mmd(
                pool.kernel, *pool.samples, pool.player, d, n_pairs, generator=generator, **options
            )
        options["n_jobs"] = self.n_jobs
        if self.estimator == "block":
            return block_mmd(pool, self.statistic, self.n_blocks, generator, **options)
        if self.n_permutations:
            return permuted_mmd(
                pool, self.statistic, self.n_permutations, self.max_t, generator, **options
            )
        return full_mmd(pool, self.statistic, **options)

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
        engine = resolve_engine(self.backend, self.device, self.dtype)
        found = attribute(self._game, rows, tol=self.tol, engine=engine, n_jobs=self.n_jobs)
        explanation = shap.Explanation(
            found.values[:, :, 0],
            base_values=np.zeros(len(rows)),
            data=rows if self.groups is None else None,
            feature_names=list(self.groups_),
        )
        explanation.n_nodes = found.n_nodes
        explanation.error_bound = found.error_bound
        return explanation
