"""The problem: ``x_i = max or min over the actions a of (q_a.x + b_a)``, as an immutable value.

Each node owns the rows ``indptr[i]:indptr[i + 1]`` of a sparse matrix A with offsets b. A policy
picks one action a node; fixing it leaves the linear system ``x = Q x + b`` (K. Chatterjee,
R. Luo, R. Saona, J. Svoboda, AAAI 2025, call these linear equations with min and max operators).
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from .archive import PARTS
from .evaluation import Evaluation, solve_fixed_point
from .files import Files
from .graph import strong_components
from .kernels import bellman, row_values
from .text import format_equation
from .validation import (
    check_actions,
    check_exact,
    check_names,
    check_offsets,
    check_operators,
    check_starts,
    check_vector,
    compact_rows,
)

if TYPE_CHECKING:
    from .classes import LEMMClass
    from .complementarity import ComplementarityForm
    from .conversions import GameForm

__all__ = ["LEMM"]

Array = np.ndarray
SHOWN = 8


class LEMM(Files):
    """A system of linear equations with min and max operators; immutable and validated.

    Parameters
    ----------
    A : array-like or sparse matrix of shape (m, n)
        One row of coefficients for each action of each node.
    b : array-like of shape (m,)
        Offset of each row.
    indptr : array-like of shape (n + 1,)
        Node i owns the rows ``indptr[i]:indptr[i + 1]``; at least one.
    op : sequence of length n
        'max', 'min' or 'affine' (or 1, -1, 0) for each node. A node with one row is affine
        whatever is given.
    names : sequence of str, optional
        Distinct identifiers; default x1, x2, ...
    A_exact, b_exact : list of Fraction, optional
        Exact values of the coefficients, in the order of ``A.data``, and of the offsets. The
        constructors that can know them fill them in.

    Attributes
    ----------
    A : csr_array of shape (m, n), float64
        Coefficients, read-only.
    b : ndarray of shape (m,), float64
        Offsets, read-only.
    indptr : ndarray of shape (n + 1,), int64
        First row of each node.
    op : ndarray of shape (n,), int8
        1 for max, -1 for min, 0 for affine.
    names : tuple of str or None
        As given.
    A_exact, b_exact : tuple of Fraction or None
        Exact values; None where the numbers came as floats.

    Raises
    ------
    ValueError
        If there is no node, a node has no action, an entry isn't finite, a column is out of
        range, a length is wrong, an affine node has several rows, or a name occurs twice.

    References
    ----------
    .. [1] K. Chatterjee, R. Luo, R. Saona, J. Svoboda, "Linear Equations with Min and Max
       Operators: Computational Complexity", AAAI 2025.

    Examples
    --------
    >>> from equipoise.games import LEMM
    >>> problem = LEMM.from_equations('''
    ...     x1 = max(0, 3 - 0.8*x3)
    ...     x2 = max(-2 - 0.8*x3, 3)
    ...     x3 = max(1 - 0.8*x2, -0.8*x1)''')
    >>> problem.T([0, 0, 0])
    array([3., 3., 1.])
    >>> problem.evaluate([1, 1, 0])
    array([ 4.12,  3.  , -1.4 ])
    """

    A: sp.csr_array
    b: Array
    indptr: Array
    op: Array
    names: tuple[str, ...] | None
    A_exact: tuple[Fraction, ...] | None
    b_exact: tuple[Fraction, ...] | None

    def __init__(
        self,
        A: Any,
        b: Any,
        indptr: Any,
        op: Sequence[Any] | Array,
        *,
        names: Sequence[str] | None = None,
        A_exact: Sequence[Fraction] | None = None,
        b_exact: Sequence[Fraction] | None = None,
    ) -> None:
        starts = np.array(indptr, dtype=np.int64)
        n = len(starts) - 1
        if starts.ndim != 1 or n < 1:
            raise ValueError("indptr must hold n + 1 row numbers for n >= 1 nodes")
        matrix = compact_rows(A, n)
        m = matrix.shape[0]
        offsets = check_offsets(b, m)
        ops = check_operators(op, check_starts(starts, m))
        A_fractions, b_fractions = check_exact(A_exact, b_exact, matrix.data, offsets)
        self.__dict__.update(
            A=matrix,
            b=offsets,
            indptr=starts,
            op=ops,
            names=check_names(names, n),
            A_exact=A_fractions,
            b_exact=b_fractions,
        )
        self._freeze()

    def _freeze(self) -> None:
        for array in (self.A.data, self.A.indices, self.A.indptr, self.b, self.indptr, self.op):
            array.flags.writeable = False

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"LEMM is immutable: {name!r} cannot be set")

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in PARTS}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._freeze()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LEMM):
            return NotImplemented
        pairs = zip((*self.arrays, self.op), (*other.arrays, other.op), strict=True)
        if not all(np.array_equal(ours, theirs) for ours, theirs in pairs):
            return False
        if self.names is None and other.names is None:
            return True
        return all(self.name(i) == other.name(i) for i in range(self.n))

    def __hash__(self) -> int:
        return hash((self.n, self.b.tobytes(), self.A.data.tobytes()))

    @property
    def n(self) -> int:
        """Number of nodes (variables)."""
        return len(self.op)

    @property
    def m(self) -> int:
        """Number of rows (actions of all nodes)."""
        return len(self.b)

    @property
    def nnz(self) -> int:
        """Number of stored coefficients."""
        return int(self.A.nnz)

    @cached_property
    def sign(self) -> Array:
        """+1 for max and affine nodes, -1 for min; shape (n,), int8."""
        return np.where(self.op < 0, np.int8(-1), np.int8(1))

    @cached_property
    def arrays(self) -> tuple[Array, Array, Array, Array, Array, Array]:
        """(indptr, row pointers, columns, coefficients, offsets, sign): what kernels take.

        Indices are viewed as unsigned, which spares compiled loops a test for negative ones.
        """
        unsigned = np.uint32 if self.A.indices.dtype == np.int32 else np.uint64
        return (
            self.indptr.view(np.uint64),
            self.A.indptr.view(unsigned),
            self.A.indices.view(unsigned),
            self.A.data,
            self.b,
            self.sign,
        )

    @cached_property
    def edges(self) -> tuple[Array, Array]:
        """The dependency graph: node i points to ``cols[start[i]:start[i + 1]]``."""
        return self.A.indptr[self.indptr].astype(np.int64), self.A.indices

    @cached_property
    def components(self) -> tuple[Array, Array, Array]:
        """Strongly connected components (label, order, bounds), sinks first."""
        return strong_components(*self.edges)

    def check_values(self, x: Any, name: str = "x") -> Array:
        """Return x as a finite float64 vector of length n, or raise ValueError."""
        return check_vector(x, self.n, name)

    def check_policy(self, pi: Any, name: str = "pi") -> Array:
        """Return pi as int64 actions, one a node and each within its node, or raise ValueError."""
        return check_actions(pi, np.diff(self.indptr), name)

    def T(self, x: Any, return_policy: bool = False) -> Any:
        """Apply the operator: ``T(x)_i = max or min over a of (q_a.x + b_a)``.

        Parameters
        ----------
        x : array-like of shape (n,)
            Values.
        return_policy : bool, default=False
            Also return the best actions (ties: the smallest).

        Returns
        -------
        ndarray of shape (n,), or (ndarray, ndarray of int64)
            The image, and the greedy policy.
        """
        out, policy = np.empty(self.n), np.empty(self.n, dtype=np.int64)
        bellman(*self.arrays, self.check_values(x), 0, self.n, out, policy)
        return (out, policy) if return_policy else out

    def greedy(self, x: Any) -> Array:
        """Best action of each node at x, shape (n,), int64; ties: the smallest."""
        return self.T(x, return_policy=True)[1]

    def residual(self, x: Any) -> float:
        """Largest ``|T(x)_i - x_i|``."""
        return float(np.max(np.abs(self.T(x) - x)))

    def is_solution(self, x: Any, tol: float = 1e-8) -> bool:
        """Whether ``|T(x)_i - x_i| <= tol * (1 + |x_i|)`` in every node."""
        x = self.check_values(x)
        return bool((np.abs(self.T(x) - x) <= tol * (1 + np.abs(x))).all())

    def row_values(self, x: Any) -> Array:
        """``q_a.x + b_a`` of every row, shape (m,)."""
        out = np.empty(self.m)
        row_values(*self.arrays[1:5], self.check_values(x), 0, self.m, out)
        return out

    def violations(self, x: Any) -> Array:
        """``s_i (q_a.x + b_a - x_i)`` of every row, shape (m,); positive: the action is better."""
        owner = np.repeat(np.arange(self.n), np.diff(self.indptr))
        x = self.check_values(x)
        return self.sign[owner] * (self.row_values(x) - x[owner])

    def policy_matrix(self, pi: Any) -> tuple[sp.csr_array, Array]:
        """Coefficients (n, n) and offsets (n,) of the rows a policy picks."""
        rows = self.indptr[:-1] + self.check_policy(pi)
        return sp.csr_array(self.A[rows]), self.b[rows]

    def evaluate(self, pi: Any, evaluation: Evaluation = "auto") -> Array:
        """Value of a policy, the solution of ``x = Q x + b``.

        Parameters
        ----------
        pi : array-like of int of shape (n,)
            Action of each node.
        evaluation : {"auto", "dense", "sparse", "krylov"}, default="auto"
            How large components are solved.

        Returns
        -------
        ndarray of shape (n,)
            The value.

        Raises
        ------
        LEMMSingularError
            If the policy has no unique value.
        """
        return solve_fixed_point(*self.policy_matrix(pi), evaluation)

    def classify(self, exact_limit: int = 2**20, random_state: Any = None) -> "LEMMClass":
        """Say which classes the system belongs to; see `classify_lemm`."""
        from .classes import classify_lemm

        return classify_lemm(self, exact_limit=exact_limit, random_state=random_state)

    def weights(self) -> Array:
        """The smallest v with ``v = 1 + max_a |q_a|.v``, which scales T to a contraction.

        Returns
        -------
        ndarray of shape (n,)
            At least 1 everywhere.

        Raises
        ------
        ValueError
            If the system isn't absolutely halting, so that there is none.
        """
        from .weights import minimal_weights

        return minimal_weights(self)

    def rescale(self, v: Any) -> "LEMM":
        """The system of ``y = x / v``, for v > 0 of shape (n,)."""
        v = self.check_values(v, "v")
        if not (v > 0).all():
            raise ValueError("v must be positive in every node")
        owner = np.repeat(v, np.diff(self.indptr))
        A = sp.csr_array(sp.diags_array(1 / owner) @ self.A @ sp.diags_array(v))
        return LEMM(A, self.b / owner, self.indptr, self.op, names=self.names)

    def to_normal_form(self) -> "LEMM":
        """Split every node into a selection and affine nodes; see `normal_form`."""
        from .conversions import normal_form

        return normal_form(self)

    def to_stochastic_game(self) -> "GameForm":
        """The equivalent simple stochastic game of a halting branching process; see `game_form`."""
        from .conversions import game_form

        return game_form(self)

    def to_lcp(self) -> "ComplementarityForm":
        """The linear complementarity problem behind the equations; see `complementarity_form`."""
        from .complementarity import complementarity_form

        return complementarity_form(self)

    def sccs(self) -> list[Array]:
        """Nodes of each strongly connected component, those that need no other first."""
        _, order, bounds = self.components
        return [np.sort(nodes) for nodes in np.split(order, bounds[1:-1])]

    def restrict(self, nodes: Array, x: Array) -> "LEMM":
        """The system of some nodes (sorted), with all others held at x."""
        starts, sizes = self.indptr[nodes], np.diff(self.indptr)[nodes]
        ends = np.cumsum(sizes)
        rows = np.arange(ends[-1]) + np.repeat(starts - (ends - sizes), sizes)
        held = np.array(x, dtype=np.float64)
        held[nodes] = 0.0
        A = sp.csr_array(self.A[rows])
        indptr = np.concatenate([[0], ends])
        return LEMM(A[:, nodes], self.b[rows] + A @ held, indptr, self.op[nodes])

    def to_networkx(self) -> Any:
        """The dependency graph as a `networkx.DiGraph` with node names and operators.

        Returns
        -------
        networkx.DiGraph
            An edge i -> j where node i depends on node j.
        """
        from .conversions import dependency_graph

        return dependency_graph(self)

    def name(self, i: int) -> str:
        """Node i's name."""
        return self.names[i] if self.names else f"x{i + 1}"

    def equation(self, i: int) -> str:
        """Node i's equation as text."""
        values: Any = self.A.data if self.A_exact is None else self.A_exact
        offsets: Any = self.b if self.b_exact is None else self.b_exact
        rows = []
        for row in range(self.indptr[i], self.indptr[i + 1]):
            entries = range(self.A.indptr[row], self.A.indptr[row + 1])
            coefficients = {self.name(self.A.indices[k]): values[k] for k in entries}
            rows.append((coefficients, offsets[row]))
        return format_equation(self.name(i), "max" if self.op[i] > 0 else "min", rows)

    def __str__(self) -> str:
        return "\n".join(self.equation(i) for i in range(self.n))

    def __repr__(self) -> str:
        lines = [f"LEMM with {self.n} nodes, {self.m} actions, {self.nnz} coefficients:"]
        lines += [f"  {self.equation(i)}" for i in range(min(self.n, SHOWN))]
        if self.n > SHOWN:
            lines.append(f"  ... and {self.n - SHOWN} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(repr(self))}</pre>"
