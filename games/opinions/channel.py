"""The mediated channel between users: messages pass the author's mediator, then the reader's.

x(t+1) = lambda s + heard(x(t)),   heard_i(x) = (1 - lambda_i) sum_j W_ij P_i(E_j(x_j)).

For affine mediators heard is ``M x + c``, and one pass over the network does a step.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from .kernels import affine_step, edge_sums
from .network import OpinionNetwork

__all__ = [
    "AffineChannel",
    "CurvedChannel",
    "Side",
    "build_channel",
    "column",
    "edge_channel",
    "first_topic",
]

Array = np.ndarray
#: Edges below which two threads cost more than they bring.
THREADED_EDGES = 1_000_000


@lru_cache(maxsize=4)
def threads(n_jobs: int) -> ThreadPoolExecutor:
    """Return the pool of a number of threads; starting one anew costs more than a step."""
    return ThreadPoolExecutor(n_jobs)


@dataclass(frozen=True, eq=False)
class Side:
    """One mediator, used by the users of a mask.

    `mediator` None means that nobody uses one. A mask with two axes serves as many runs at once.
    """

    mediator: Any
    mask: Array  # (n,) or (n, n_runs) bool

    @property
    def is_affine(self) -> bool:
        return self.mediator is None or self.mediator.affine_ is not None

    def coefficients(self) -> tuple[Array, Array]:
        """Return (shrink, bias) of each user; (1, 0) where the mediator isn't used."""
        if self.mediator is None:
            return np.ones(len(self.mask)), np.zeros(len(self.mask))
        a, b = (column(np.asarray(v, dtype=float), self.mask) for v in self.mediator.affine_)
        return np.where(self.mask, a, 1.0), np.where(self.mask, b, 0.0)

    def __call__(self, u: Array, users: Array | None = None) -> Array:
        """Mediate what each user (row of u; or the users given, one a row) says or hears."""
        if self.mediator is None:
            return u
        mask = self.mask if users is None else self.mask[users]
        return np.where(column(mask, u), self.mediator(u), u)

    def derivative(self, u: Array, users: Array | None = None) -> Array:
        if self.mediator is None:
            return np.ones_like(u)
        mask = self.mask if users is None else self.mask[users]
        return np.where(column(mask, u), self.mediator.derivative(u), 1.0)


def column(v: Array, like: Array) -> Array:
    """A vector per user, laid beside an array of one or two axes."""
    return v[:, None] if v.ndim == 1 and like.ndim == 2 else v


def first_topic(z: Array) -> Array:
    """Return the first column of opinions on several topics."""
    return z if z.ndim == 1 else z[:, 0]


@dataclass(frozen=True, eq=False)
class AffineChannel:
    """``heard(x) = M x + c`` with ``M = diag(scale) (W diag(author) + uniform rows)``.

    `weights` is W, or W times a shrink per edge. `uniform` lists the dangling users who hear
    everybody: their row of W is empty here, and stands for 1/n everywhere.
    """

    weights: sparse.csr_array
    author: Array | None  # (n,) or None for ones
    scale: Array  # (n,): (1 - lambda) times the reader's shrink
    constant: Array  # (n,): c
    uniform: Array  # (u,) int
    n_jobs: int = 1

    is_affine = True

    @property
    def n(self) -> int:
        return len(self.scale)

    def said(self, x: Array) -> Array:
        return x if self.author is None else column(self.author, x) * x

    def product(self, x: Array) -> Array:
        """Return ``M x`` for x of shape (n,) or (n, k)."""
        u = self.said(x)
        total = self.weights @ u
        if len(self.uniform):
            total[self.uniform] += u.mean(axis=0)
        return column(self.scale, x) * total

    def adjoint(self, p: Array) -> Array:
        """Return ``M^T p`` for p of shape (n,) or (n, k)."""
        w = column(self.scale, p) * p
        total = self.weights.T @ w
        if len(self.uniform):
            total = total + w[self.uniform].sum(axis=0) / self.n
        return self.said(total)

    def heard(self, x: Array) -> Array:
        return self.product(x) + column(self.constant, x)

    def linearised(self, x: Array) -> "AffineChannel":
        """Return the channel's linear response, which is the same everywhere."""
        return self

    def absolute_row_sums(self) -> Array:
        """Return ``sum_j |M_ij|``, shape (n,)."""
        W = self.weights if self.author is None and np.all(self.weights.data >= 0) else None
        data = self.weights.data if W is not None else np.abs(self.weights.data)
        if self.author is not None:
            data = data * np.abs(self.author)[self.weights.indices]
        total = edge_sums(self.weights.indptr, data)
        if len(self.uniform):
            total[self.uniform] += 1.0 if self.author is None else np.abs(self.author).mean()
        return np.abs(self.scale) * total

    def absolute(self) -> "AffineChannel":
        """Return the channel of |M|."""
        data = np.abs(self.weights.data)
        weights = sparse.csr_array(
            (data, self.weights.indices, self.weights.indptr), shape=self.weights.shape
        )
        author = None if self.author is None else np.abs(self.author)
        return replace(self, weights=weights, author=author, scale=np.abs(self.scale))

    def step(self, x: Array, offset: Array, out: Array) -> float:
        """Write ``offset + M x`` to out; return the largest ``|out - x|``. x has one axis."""
        W, u = self.weights, self.said(x)
        arguments = (W.indptr, W.indices, W.data, u, self.scale, offset, x, out)
        if self.n_jobs > 1 and W.nnz >= THREADED_EDGES:
            share = np.linspace(0, W.nnz, self.n_jobs + 1)
            cuts = np.searchsorted(W.indptr, share).tolist()
            cuts[0], cuts[-1] = 0, self.n
            tasks = [
                threads(self.n_jobs).submit(affine_step, *arguments, start, stop)
                for start, stop in pairwise(cuts)
            ]
            largest = max(task.result() for task in tasks)
        else:
            largest = affine_step(*arguments, 0, self.n)
        if len(self.uniform):
            out[self.uniform] = offset[self.uniform] + self.scale[self.uniform] * u.mean()
            gap = np.abs(out[self.uniform] - x[self.uniform]).max()
            # The rows just overwritten may have held the largest gap: count the others again.
            largest = max(gap, _largest_gap(out, x, self.uniform))
        return float(largest)

    def matrix(self) -> sparse.csr_array:
        """Return M; with uniform rows, these are dense."""
        M = sparse.csr_array(self.weights.multiply(self.scale[:, None]))
        if self.author is not None:
            M = sparse.csr_array(M.multiply(self.author[None, :]))
        if len(self.uniform):
            author = np.ones(self.n) if self.author is None else self.author
            rows = np.outer(self.scale[self.uniform], author / self.n)
            at = (np.repeat(self.uniform, self.n), np.tile(np.arange(self.n), len(self.uniform)))
            M = sparse.csr_array(M + sparse.coo_array((rows.ravel(), at), shape=M.shape))
        return M


def _largest_gap(out: Array, x: Array, without: Array) -> float:
    gap = np.abs(out - x)
    gap[without] = 0.0
    return float(gap.max())


@dataclass(frozen=True, eq=False)
class CurvedChannel:
    """A channel with a mediator that isn't affine."""

    network: OpinionNetwork
    expression: Side
    perception: Side
    listening: Array  # (n,): 1 - lambda
    uniform: Array
    n_jobs: int = 1

    is_affine = False

    @property
    def n(self) -> int:
        return len(self.listening)

    def _readers(self) -> Array:
        return np.repeat(np.arange(self.n), np.diff(self.network.weights.indptr))

    def heard(self, x: Array) -> Array:
        """Return what is heard of x, times 1 - lambda; x of shape (n,) or (n, k)."""
        W, said = self.network.weights, self.expression(x)
        if self.perception.is_affine:
            a, b = self.perception.coefficients()
            mixed = W @ said
            some = np.diff(W.indptr) > 0
            if len(self.uniform):
                mixed[self.uniform] = said.mean(axis=0)
                some[self.uniform] = True
            mixed = column(a, x) * mixed + column(b, x) * column(some, x)
        else:
            mixed = np.stack(
                [self._perceived(said, k) for k in range(x.shape[1] if x.ndim == 2 else 1)], axis=1
            ).reshape(x.shape)
        return column(self.listening, x) * mixed

    def _perceived(self, said: Array, run: int) -> Array:
        """Return each reader's mean of what they make of the messages of one run."""
        W = self.network.weights
        if said.ndim == 2:
            said = said[:, run]
        mask = self.perception.mask
        side = Side(self.perception.mediator, mask if mask.ndim == 1 else mask[:, run])
        mixed = edge_sums(W.indptr, W.data * side(said[W.indices], self._readers()))
        for i in self.uniform:
            mixed[i] = side(said, np.full(self.n, i)).mean()
        return mixed

    def linearised(self, x: Array) -> AffineChannel:
        """Return ``M' x`` with the slopes at x (one axis), as a channel without constant."""
        W, zero = self.network.weights, np.zeros(self.n)
        slope = self.expression.derivative(x)
        if self.perception.is_affine:
            a, _ = self.perception.coefficients()
            return AffineChannel(W, slope, self.listening * a, zero, self.uniform, self.n_jobs)
        if len(self.uniform):
            raise ValueError(
                "dangling='uniform' with a perception that isn't affine has no sparse "
                "linearisation; use dangling='self' or an affine perception"
            )
        said = self.expression(x)
        steep = self.perception.derivative(said[W.indices], self._readers())
        weights = sparse.csr_array((W.data * steep, W.indices, W.indptr), shape=W.shape)
        return AffineChannel(weights, slope, self.listening, zero, self.uniform, self.n_jobs)

    def lipschitz(self) -> float:
        """Return an upper bound of the sup-norm Lipschitz constant of heard."""
        bounds = []
        for side in (self.expression, self.perception):
            if side.is_affine:
                bounds.append(np.abs(side.coefficients()[0]))
            else:
                bounds.append(np.where(side.mask, side.mediator.lipschitz_, 1.0))
        steep, readers = bounds
        total = self.network.weights @ steep
        if len(self.uniform):
            total[self.uniform] = steep.mean()
        return float(np.max(self.listening * readers * total))

    @property
    def monotone(self) -> bool:
        """Whether heard never falls in any opinion."""
        return all(
            side.mediator is None or side.mediator.monotone_
            for side in (self.expression, self.perception)
        )


def build_channel(
    network: OpinionNetwork,
    expression: Side,
    perception: Side,
    stubbornness: Array,
    n_jobs: int = 1,
) -> AffineChannel | CurvedChannel:
    """Return the channel of a network with mediators on authors and readers."""
    listening = 1.0 - stubbornness
    uniform = (
        network.dangling_nodes if network.dangling == "uniform" else np.empty(0, dtype=np.intp)
    )
    if not (expression.is_affine and perception.is_affine):
        return CurvedChannel(network, expression, perception, listening, uniform, n_jobs)
    W = network.weights
    (aE, bE), (aP, bP) = expression.coefficients(), perception.coefficients()
    heard_bias = W @ bE
    some = np.diff(W.indptr) > 0
    if len(uniform):
        heard_bias[uniform] = bE.mean()
        some[uniform] = True
    constant = listening * (aP * heard_bias + bP * some)
    author = None if np.all(aE == 1) else aE
    return AffineChannel(W, author, listening * aP, constant, uniform, n_jobs)


def edge_channel(
    network: OpinionNetwork, shrink: Array, bias: Array, stubbornness: Array, n_jobs: int = 1
) -> AffineChannel:
    """Return the channel with a shrink and a bias for each edge, in the order of W's entries.

    Users who hear everybody (``dangling="uniform"``) have no edges: they hear what is said.
    """
    W, listening = network.weights, 1.0 - stubbornness
    weights = sparse.csr_array((W.data * shrink, W.indices, W.indptr), shape=W.shape)
    constant = listening * edge_sums(W.indptr, W.data * bias)
    uniform = (
        network.dangling_nodes if network.dangling == "uniform" else np.empty(0, dtype=np.intp)
    )
    return AffineChannel(weights, None, listening, constant, uniform, n_jobs)
