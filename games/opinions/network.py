"""Who listens to whom: a validated, immutable network of influence.

W is the row-normalised matrix of weights: W[i, j] is the share of i's attention that j gets. Rows
without any weight (dangling: users who follow nobody) are resolved once, here.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse

from .kernels import edge_sums, first_asymmetric_row

__all__ = ["OpinionNetwork"]

Array = np.ndarray
ORIENTATIONS = ("listener", "speaker")
DANGLING = ("self", "zero", "uniform", "error")


def check_choice(name: str, value: Any, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise ValueError(f"{name}={value!r}; allowed: {list(allowed)}")


def check_adjacency(matrix: Any) -> sparse.csr_array:
    """Return a square, non-negative, finite matrix as canonical CSR of float64."""
    A = sparse.csr_array(matrix)
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"X has shape {A.shape}; an adjacency matrix is square")
    if A.shape[0] == 0:
        raise ValueError("X has no node")
    if A.dtype.kind not in "biuf":
        raise ValueError(f"X has dtype {A.dtype}; allowed: bool, integers, floats")
    if not A.has_canonical_format:
        A = A.copy()
        A.sum_duplicates()
    A = A.astype(np.float64, copy=False)
    wrong = ~np.isfinite(A.data) | (A.data < 0)
    if wrong.any():
        k = int(np.argmax(wrong))
        i = int(np.searchsorted(A.indptr, k, side="right")) - 1
        raise ValueError(
            f"X[{i}, {A.indices[k]}] = {A.data[k]}; weights are finite and not negative"
        )
    if not A.data.all():
        A = A.copy()
        A.eliminate_zeros()
    return A


class OpinionNetwork:
    """A network of influence between n users.

    Parameters
    ----------
    adjacency : array-like or sparse matrix of shape (n, n)
        Non-negative weights; duplicates are summed, rows are normalised, self-loops kept.
    orientation : str, default="listener"
        "listener": ``adjacency[i, j] > 0`` means that i listens to j (an edge follower to
        followee); "speaker": the transpose.
    dangling : str, default="self"
        What users do who listen to nobody: "self" (they keep their innate opinion), "zero" (they
        hear silence, which counts as opinion 0), "uniform" (they hear everybody, themselves too),
        "error" (refused).
    nodes : sequence of length n, optional
        Names; default 0..n-1.

    Attributes
    ----------
    weights : scipy.sparse.csr_array of shape (n, n), float64
        W, with rows that sum to one, or to zero where dangling. Not to be written to.
    strengths : ndarray of shape (n,)
        Row sums before normalisation.
    dangling_nodes : ndarray of int
        The users who listen to nobody.
    dangling, orientation : str
        As given.
    nodes : list
        Names.

    Raises
    ------
    ValueError
        For a matrix that isn't square, a negative or non-finite weight (the first is named), an
        unknown option, or dangling users with ``dangling="error"``.

    Examples
    --------
    >>> from equipoise.games import OpinionNetwork
    >>> network = OpinionNetwork([[0, 1, 3], [1, 0, 0], [0, 0, 0]])
    >>> network
    OpinionNetwork(3 nodes, 3 edges, 1 dangling: 'self')
    >>> network.weights.toarray()[0].tolist()
    [0.0, 0.25, 0.75]
    """

    def __init__(
        self,
        adjacency: Any,
        *,
        orientation: str = "listener",
        dangling: str = "self",
        nodes: Sequence[Any] | None = None,
    ) -> None:
        check_choice("orientation", orientation, ORIENTATIONS)
        check_choice("dangling", dangling, DANGLING)
        A = check_adjacency(adjacency)
        if orientation == "speaker":
            A = check_adjacency(A.T)
        n = A.shape[0]
        if nodes is not None and len(nodes) != n:
            raise ValueError(f"nodes names {len(nodes)} users; the matrix has {n}")
        self.orientation, self.dangling = orientation, dangling
        self.nodes = list(range(n)) if nodes is None else list(nodes)
        self.strengths = edge_sums(A.indptr, A.data)
        self.dangling_nodes = np.flatnonzero(self.strengths == 0)
        if dangling == "error" and len(self.dangling_nodes):
            first = self.nodes[self.dangling_nodes[0]]
            raise ValueError(
                f"user {first!r} (of {len(self.dangling_nodes)}) listens to nobody, and "
                "dangling='error'; allowed besides: 'self', 'zero', 'uniform'"
            )
        data = A.data / np.repeat(self.strengths, np.diff(A.indptr))
        self.weights = sparse.csr_array((data, A.indices, A.indptr), shape=A.shape)
        self.weights.has_canonical_format = True
        for array in (data, self.strengths, self.dangling_nodes):
            array.flags.writeable = False

    @classmethod
    def from_graph(cls, X: Any, orientation: str = "listener", dangling: str = "self") -> Self:
        """Take whatever holds a network.

        Parameters
        ----------
        X : array-like, sparse matrix, networkx graph, igraph graph, list of tuples
            A square array or sparse matrix is an adjacency matrix; an array of shape (m, 2) or
            (m, 3), and any list of tuples, is a list of edges (from, to[, weight]). Nodes of a
            graph keep its order; an undirected edge goes both ways.
        orientation, dangling : str
            As in the constructor.

        Returns
        -------
        OpinionNetwork
            The network.

        Raises
        ------
        ValueError, TypeError
            If it isn't a network.

        Examples
        --------
        >>> from equipoise.games import OpinionNetwork
        >>> OpinionNetwork.from_graph([(0, 1), (1, 2)])
        OpinionNetwork(3 nodes, 2 edges, 1 dangling: 'self')
        """
        if isinstance(X, cls):
            return X
        if sparse.issparse(X):
            return cls(X, orientation=orientation, dangling=dangling)
        if hasattr(X, "adj") and hasattr(X, "is_directed"):  # networkx
            import networkx as nx

            names = list(X)
            if not names:
                raise ValueError("X has no node")
            A = nx.to_scipy_sparse_array(X, nodelist=names, format="csr", dtype=float)
            return cls(A, nodes=names, orientation=orientation, dangling=dangling)
        if hasattr(X, "get_edgelist") and hasattr(X, "vcount"):  # igraph
            pairs = np.array(X.get_edgelist(), dtype=np.int64).reshape(-1, 2)
            w = np.array(X.es["weight"]) if "weight" in X.es.attributes() else np.ones(len(pairs))
            if not X.is_directed():
                loop = pairs[:, 0] == pairs[:, 1]
                pairs, w = np.vstack([pairs, pairs[~loop, ::-1]]), np.concatenate([w, w[~loop]])
            n = X.vcount()
            named = X.vs["name"] if "name" in X.vs.attributes() else None
            A = sparse.coo_array((w, (pairs[:, 0], pairs[:, 1])), shape=(n, n))
            return cls(A, nodes=named, orientation=orientation, dangling=dangling)
        if isinstance(X, (list, tuple)) and X and all(isinstance(edge, tuple) for edge in X):
            return cls.from_edges(X, None, orientation, dangling)
        try:
            array = np.asarray(X)
        except ValueError as error:
            raise ValueError("X is neither a matrix nor a list of edges") from error
        if array.ndim != 2 or array.dtype.kind not in "biuf":
            raise TypeError(
                f"X is a {type(X).__name__}; allowed: a square matrix, a networkx or igraph graph, "
                "a list of edges, an OpinionNetwork"
            )
        if array.shape[0] != array.shape[1] and array.shape[1] in (2, 3):
            return cls.from_edges(array, None, orientation, dangling)
        return cls(array, orientation=orientation, dangling=dangling)

    @classmethod
    def from_edges(
        cls,
        edges: Any,
        n_nodes: int | None = None,
        orientation: str = "listener",
        dangling: str = "self",
    ) -> Self:
        """Build a network from a list of edges.

        Parameters
        ----------
        edges : array-like of shape (m, 2) or (m, 3), or list of tuples
            (from, to) or (from, to, weight). Numbers are indices of users; other names are
            numbered in the order in which they appear.
        n_nodes : int, optional
            Number of users; default: the largest index and one.
        orientation, dangling : str
            As in the constructor.

        Returns
        -------
        OpinionNetwork
            The network.

        Raises
        ------
        ValueError
            For edges of another length, or an index that is negative, broken or too large.

        Examples
        --------
        >>> from equipoise.games import OpinionNetwork
        >>> OpinionNetwork.from_edges([("ann", "bob"), ("bob", "ann", 2.0)]).nodes
        ['ann', 'bob']
        """
        if isinstance(edges, np.ndarray):
            if edges.ndim != 2 or edges.shape[1] not in (2, 3):
                raise ValueError(f"edges has shape {edges.shape}; allowed: (m, 2) or (m, 3)")
            ends = edges[:, :2]
            w = edges[:, 2].astype(float) if edges.shape[1] == 3 else np.ones(len(edges))
        else:
            rows = [tuple(edge) for edge in edges]
            for k, row in enumerate(rows):
                if len(row) not in (2, 3):
                    raise ValueError(f"edge {k} is {row!r}; allowed: (from, to[, weight])")
            w = np.array([row[2] if len(row) == 3 else 1.0 for row in rows], dtype=float)
            found = [end for row in rows for end in row[:2]]
            if not all(isinstance(end, (int, np.integer)) for end in found):
                names = list(dict.fromkeys(found))
                if n_nodes not in (None, len(names)):
                    raise ValueError(f"n_nodes={n_nodes}, but the edges name {len(names)} users")
                number = {name: k for k, name in enumerate(names)}
                pairs = np.array([number[end] for end in found], dtype=np.int64).reshape(-1, 2)
                A = sparse.coo_array((w, (pairs[:, 0], pairs[:, 1])), shape=(len(names),) * 2)
                return cls(A, orientation=orientation, dangling=dangling, nodes=names)
            ends = np.array(found, dtype=np.int64).reshape(-1, 2)
        pairs = ends.astype(np.int64)
        wrong = (ends != pairs) | (pairs < 0) | (n_nodes is not None and pairs >= n_nodes)
        if wrong.any():
            k = int(np.argmax(wrong.any(axis=1)))
            top = "" if n_nodes is None else f" below n_nodes={n_nodes}"
            raise ValueError(
                f"edge {k} joins {ends[k].tolist()}; users are whole numbers from 0 on{top}"
            )
        n = n_nodes if n_nodes is not None else int(pairs.max(initial=-1)) + 1
        A = sparse.coo_array((w, (pairs[:, 0], pairs[:, 1])), shape=(n, n))
        return cls(A, orientation=orientation, dangling=dangling)

    @property
    def n_nodes(self) -> int:
        """Number of users."""
        return len(self.nodes)

    @cached_property
    def is_symmetric(self) -> bool:
        """Whether the weights before normalisation are symmetric."""
        W = self.weights
        A = W.data * np.repeat(self.strengths, np.diff(W.indptr))
        # The division by the row sum and back leaves a rounding error.
        return first_asymmetric_row(W.indptr, W.indices, A.astype(np.float32)) < 0

    def __repr__(self) -> str:
        lost = len(self.dangling_nodes)
        tail = f", {lost} dangling: {self.dangling!r}" if lost else ""
        return f"OpinionNetwork({self.n_nodes} nodes, {self.weights.nnz} edges{tail})"
