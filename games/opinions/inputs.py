"""Checks of what `MediatedOpinionDynamics` is given; each error names the first bad index."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import check_array

from .channel import Side
from .mediators import ClippedMediator, Mediator
from .network import OpinionNetwork

__all__ = [
    "check_bounds",
    "check_innate",
    "check_network",
    "check_side",
    "check_stubbornness",
    "check_vector",
    "draw_users",
    "edge_values",
]

Array = np.ndarray


def check_bounds(bounds: Sequence[float]) -> tuple[float, float]:
    """Return (lo, hi)."""
    if len(bounds) != 2 or not float(bounds[0]) < float(bounds[1]):
        raise ValueError(f"bounds={bounds!r}; allowed: (lo, hi) with lo < hi")
    return float(bounds[0]), float(bounds[1])


def check_network(X: Any, orientation: str, dangling: str) -> OpinionNetwork:
    """Return the network that X holds."""
    if X is None or isinstance(X, str):
        raise TypeError(f"X={X!r} is no network")
    return OpinionNetwork.from_graph(X, orientation, dangling)


def check_innate(y: ArrayLike, n: int, bounds: tuple[float, float]) -> Array:
    """Return innate opinions within bounds, shape (n,) or (n, k)."""
    innate = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y", copy=True)
    if innate.ndim > 2 or len(innate) != n:
        raise ValueError(f"y has shape {innate.shape}; the network has {n} users")
    lo, hi = bounds
    wrong = (innate < lo) | (innate > hi)
    if wrong.any():
        at = tuple(int(k) for k in np.argwhere(wrong)[0])
        raise ValueError(
            f"y[{', '.join(map(str, at))}] = {innate[at]} lies outside bounds=({lo:g}, {hi:g})"
        )
    return innate


def check_vector(value: Any, n: int, name: str) -> Array:
    """Return finite floats of shape (n,)."""
    v = check_array(value, ensure_2d=False, dtype=np.float64, input_name=name)
    if v.shape != (n,):
        raise ValueError(f"{name} has shape {v.shape}; allowed: ({n},)")
    return v


def check_stubbornness(value: Any, network: OpinionNetwork) -> Array:
    """Return lambda of each user; 1 for users who listen to nobody and keep their opinion."""
    n = network.n_nodes
    given = np.asarray(value, dtype=float)
    if given.shape not in ((), (n,)):
        raise ValueError(f"stubbornness has shape {given.shape}; the network has {n} users")
    lam = np.array(np.broadcast_to(given, (n,)))
    wrong = ~((lam >= 0) & (lam <= 1))
    if wrong.any():
        i = int(np.argmax(wrong))
        raise ValueError(f"stubbornness[{i}] = {lam[i]}; allowed: 0 to 1")
    if network.dangling == "self":
        lam[network.dangling_nodes] = 1.0
    return lam


def draw_users(rng: np.random.RandomState, given: Any, share: float, n: int, name: str) -> Array:
    """Return a mask: as given, or each user drawn with probability `share`."""
    draws = rng.uniform(size=n)  # drawn also where not used: both masks keep their numbers
    if given is None:
        return draws < share
    mask = np.asarray(given)
    if mask.shape != (n,) or mask.dtype != bool:
        raise ValueError(
            f"{name} has shape {mask.shape} and dtype {mask.dtype}; allowed: bool of ({n},)"
        )
    return mask.copy()


def check_side(
    mediator: Any, mask: Array, clip: bool, bounds: tuple[float, float], name: str
) -> Side:
    """Return a mediator with its users; clipped to the bounds where that is asked for."""
    if mediator is None:
        return Side(None, mask)
    if not isinstance(mediator, Mediator):
        raise TypeError(
            f"{name}={mediator!r:.60} isn't a mediator: it lacks __call__, derivative, "
            "lipschitz_, monotone_, affine_ or inverse"
        )
    sizes = {np.size(v) for v in mediator.affine_ or ()} - {1}
    if sizes - {len(mask)}:
        raise ValueError(
            f"{name} has parameters for {sorted(sizes)} users; the network has {len(mask)}"
        )
    return Side(ClippedMediator(mediator, *bounds) if clip else mediator, mask)


def edge_values(given: Any, network: OpinionNetwork, default: float, name: str) -> Array:
    """Return a value for each entry of W, in its order; `default` where none is given."""
    W = network.weights
    if given is None:
        return np.full(W.nnz, default)
    if np.ndim(given) == 0 and not sparse.issparse(given):
        if not np.isfinite(given):
            raise ValueError(f"{name}={given!r} isn't finite")
        return np.full(W.nnz, float(given))
    if not sparse.issparse(given) or given.shape != W.shape:
        raise ValueError(f"{name} must be a number or a sparse matrix of shape {W.shape}")
    M = sparse.csr_array(given.T if network.orientation == "speaker" else given)
    M.sum_duplicates()
    if not np.isfinite(M.data).all():
        raise ValueError(f"{name} holds a value that isn't finite")
    # Number the entries of W; an entry of M without a number lies on no edge.
    number = sparse.csr_array((np.arange(1, W.nnz + 1), W.indices, W.indptr), shape=W.shape)
    rows = np.repeat(np.arange(W.shape[0]), np.diff(M.indptr))
    place = np.asarray(number[rows, M.indices]).ravel()
    if not place.all():
        k = int(np.argmin(place))
        raise ValueError(f"{name}[{rows[k]}, {M.indices[k]}] lies on no edge of X")
    values = np.full(W.nnz, default)
    values[place - 1] = M.data
    return values
