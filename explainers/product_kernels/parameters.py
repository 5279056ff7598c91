"""What the explainers' shared parameters may be, in scikit-learn's tables of constraints."""

from numbers import Integral, Real

from sklearn.utils._param_validation import Interval, StrOptions

from .kernels import ProductKernel

__all__ = ["COMPUTATION", "ESTIMATION", "KERNEL", "WIDTH"]

KERNEL: list = [StrOptions({"rbf", "laplacian"}), ProductKernel]
WIDTH: list = [StrOptions({"median", "scale"}), Interval(Real, 0, None, closed="neither")]

#: How the integrals are computed.
COMPUTATION: dict = {
    "groups": [list, tuple, dict, None],
    "tol": [Interval(Real, 0.0, 1e-2, closed="right")],
    "backend": [StrOptions({"auto", "numba", "numpy", "torch"})],
    "device": [str],
    "dtype": [StrOptions({"float64", "float32"})],
    "n_jobs": [Integral, None],
    "random_state": ["random_state"],
}

#: How MMD and HSIC are estimated and tested.
ESTIMATION: dict = {
    "removal": [StrOptions({"identity", "mean"})],
    "estimator": [StrOptions({"full", "block", "incomplete", "spectral"})],
    "n_draws": [Interval(Integral, 2, None, closed="left")],
    "n_pairs": [Interval(Integral, 2, None, closed="left"), None],
    "n_blocks": [Interval(Integral, 2, None, closed="left"), None],
    "n_permutations": [Interval(Integral, 0, None, closed="left")],
    "max_t": ["boolean"],
    **COMPUTATION,
}
