"""The problem: ``x_i = max or min over the actions a of (q_a.x + b_a)``, as an immutable value.

Each node owns the rows ``indptr[i]:indptr[i + 1]`` of a sparse matrix A with offsets b. A policy
picks one action a node; fixing it leaves the linear system ``x = Q x + b`` (K. Chatterjee,
R. Luo, R. Saona, J. Svoboda, AAAI 2025, call these linear equations with min and max operators).
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp

from equipoise.imports import optional_import

from .evaluation import Evaluation, solve_fixed_point
from .graph import strong_components
from .kernels import bellman, row_values
from .markov import compress_branching, compress_mdp, compress_ssg
from .nodes import CompressedSystem, compress_dense, compress_nodes, sign_of
from .text import format_expression, parse_equations

if TYPE_CHECKING:
    from .classes import LEMMClass
    from .complementarity import ComplementarityForm
    from .conversions import GameForm

__all__ = ["LEMM"]

Array = np.ndarray
SHOWN = 8


def compact_rows(A: Any, n: int) -> sp.csr_array:
    """A private float64 copy: sorted, duplicates summed, zeros dropped, small indices."""
    try:
        matrix = sp.csr_array(A, dtype=np.float64, copy=True)
    except (TypeError, ValueError) as error:
        raise ValueError(f"A must be a matrix of real numbers: {error}") from error
    if matrix.ndim != 2 or matrix.shape[1] != n:
        raise ValueError(f"A must have one column for each of {n} nodes, got shape {matrix.shape}")
    if matrix.nnz and (matrix.indices.max() >= n or matrix.indices.min() < 0):
        wrong = matrix.indices[(matrix.indices >= n) | (matrix.indices < 0)][0]
        raise ValueError(f"A has column index {wrong}; allowed: 0 to {n - 1}")
    if not np.isfinite(matrix.data).all():
        raise ValueError("A must be finite, got NaN or infinity")
    matrix.sum_duplicates()
    if (matrix.data == 0).any():
        matrix.eliminate_zeros()
    size = np.int64 if max(matrix.nnz, *matrix.shape) >= 2**31 else np.int32
    matrix.indices = matrix.indices.astype(size, copy=False)
    matrix.indptr = matrix.indptr.astype(size, copy=False)
    return matrix


def check_names(names: Any, n: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    names = tuple(names)
    if len(names) != n:
        raise ValueError(f"names must hold one name for each of {n} nodes, got {len(names)}")
    for name in names:
        if not isinstance(name, str) or not name.isidentifier() or name in ("max", "min"):
            raise ValueError(f"names: {name!r} is not an identifier (letters, digits, _)")
    if len(set(names)) < n:
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"names: {twice!r} occurs more than once")
    return names


class LEMM:
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
        offsets = np.array(b, dtype=np.float64)
        m = matrix.shape[0]
        if offsets.shape != (m,):
            raise ValueError(
                f"b must have one offset for each of A's {m} rows, got {offsets.shape}"
            )
        if not np.isfinite(offsets).all():
            raise ValueError("b must be finite, got NaN or infinity")
        sizes = np.diff(starts)
        if (sizes == 0).any():
            raise ValueError(f"node {int(np.argmin(sizes))} has no action; each needs at least one")
        if starts[0] != 0 or starts[-1] != m or (sizes < 0).any():
            raise ValueError(f"indptr must rise from 0 to A's number of rows, {m}")
        if len(op) != n:
            raise ValueError(f"op must have one entry for each of {n} nodes, got {len(op)}")
        given = np.asarray(op)
        if given.dtype.kind in "iu":
            if not np.isin(given, (-1, 0, 1)).all():
                raise ValueError("op holds a number other than 1 (max), -1 (min), 0 (affine)")
            ops = given.astype(np.int8)
        else:
            ops = np.array([sign_of(word) for word in op], dtype=np.int8)
        wrong = np.flatnonzero((ops == 0) & (sizes > 1))
        if wrong.size:
            raise ValueError(
                f"node {wrong[0]} is affine but has {sizes[wrong[0]]} actions; allowed: 1"
            )
        ops[sizes == 1] = 0
        if (A_exact is None) != (b_exact is None):
            raise ValueError("A_exact and b_exact must be given together")
        if A_exact is not None and b_exact is not None:
            same = np.array_equal([float(value) for value in A_exact], matrix.data)
            if not same or not np.array_equal([float(value) for value in b_exact], offsets):
                raise ValueError("A_exact and b_exact must be the exact values of A.data and b")
        self.__dict__.update(
            A=matrix,
            b=offsets,
            indptr=starts,
            op=ops,
            names=check_names(names, n),
            A_exact=None if A_exact is None else tuple(A_exact),
            b_exact=None if b_exact is None else tuple(b_exact),
        )
        self._freeze()

    def _freeze(self) -> None:
        for array in (self.A.data, self.A.indices, self.A.indptr, self.b, self.indptr, self.op):
            array.flags.writeable = False

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"LEMM is immutable: {name!r} cannot be set")

    def __getstate__(self) -> dict[str, Any]:
        kept = ("A", "b", "indptr", "op", "names", "A_exact", "b_exact")
        return {name: self.__dict__[name] for name in kept}

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

    # ---------------------------------------------------------------- ways in

    @classmethod
    def _of(cls, system: CompressedSystem, names: Sequence[str] | None = None) -> Self:
        A, b, indptr, op, A_exact, b_exact = system
        return cls(A, b, indptr, op, names=names, A_exact=A_exact, b_exact=b_exact)

    @classmethod
    def from_nodes(
        cls,
        nodes: Sequence[tuple[Any, Sequence[tuple[Any, Any]]]],
        *,
        names: Sequence[str] | None = None,
    ) -> Self:
        """Build from a list of nodes, each ``(op, [(row, offset), ...])``.

        Parameters
        ----------
        nodes : list
            A row is a mapping column -> coefficient, or an array of length n. Numbers are
            floats, or exact: ints, Fractions, decimal strings ("0.8").
        names : sequence of str, optional
            Names of the nodes.

        Returns
        -------
        LEMM
            With exact values kept if every number is exact.

        Examples
        --------
        >>> from equipoise.games import LEMM
        >>> print(LEMM.from_nodes([("max", [({0: "0.5"}, 1), ({0: -2}, 6)])]))
        x1 = max(1 + 1/2*x1, 6 - 2*x1)
        """
        return cls._of(compress_nodes(nodes), names)

    @classmethod
    def from_dense(
        cls, Q: Any, b: Any, op: Sequence[Any], *, names: Sequence[str] | None = None
    ) -> Self:
        """Build from dense arrays.

        Parameters
        ----------
        Q : array-like of shape (n, k, n)
            Coefficients of action k of each node.
        b : array-like of shape (n, k)
            Offsets; NaN (or None) where a node has fewer than k actions.
        op : sequence of length n
            'max', 'min' or 'affine'.
        names : sequence of str, optional
            Names of the nodes.

        Returns
        -------
        LEMM
            With exact values kept if both arrays are integer, or hold exact objects.

        Examples
        --------
        >>> import numpy as np
        >>> from equipoise.games import LEMM
        >>> LEMM.from_dense([[[0.5], [0.25]]], [[1.0, 3.0]], ["min"]).evaluate([0])
        array([2.])
        """
        return cls._of(compress_dense(Q, b, op), names)

    @classmethod
    def from_equations(cls, equations: str | Sequence[str]) -> Self:
        """Build from text, one equation a line; numbers are read exactly.

        Parameters
        ----------
        equations : str or list of str
            ``name = expression``, ``name = max(expression, ...)`` or ``min``. An expression is
            linear: ``3 - 0.8*x3 + 1/4*x2``.

        Returns
        -------
        LEMM
            Nodes in the order of the lines.

        Raises
        ------
        ValueError
            With line and column, where the text isn't such an equation.

        Examples
        --------
        >>> from equipoise.games import LEMM
        >>> LEMM.from_equations("price = max(10, 0.9*price + 2)").T([30.0])
        array([29.])
        """
        parsed = parse_equations(equations)
        place = {equation.name: i for i, equation in enumerate(parsed)}
        nodes = [
            (
                equation.op,
                [
                    ({place[name]: value for name, value in row.items()}, offset)
                    for row, offset in equation.expressions
                ],
            )
            for equation in parsed
        ]
        return cls._of(compress_nodes(nodes), [equation.name for equation in parsed])

    @classmethod
    def from_mdp(
        cls,
        P: Any,
        R: Any,
        discount: float = 1.0,
        sense: str | Sequence[str] = "max",
        terminal: Any = None,
        *,
        mask: Any = None,
        s_indices: Any = None,
    ) -> Self:
        """Build the optimality equations ``x_s = max_a (R[s, a] + discount P[a, s].x)``.

        Parameters
        ----------
        P : array-like of shape (A, S, S), list of sparse (S, S), or sparse (L, S)
            Transition probabilities. The last form, one row a state-action pair, needs
            `s_indices`.
        R : array-like of shape (S,), (S, A), (S, A, S) or (L,)
            Rewards.
        discount : float, default=1.0
            Between 0 and 1.
        sense : {'max', 'min'} or sequence of them, default='max'
            Rewards or costs; one a state makes a turn-based game.
        terminal : array-like or mapping, optional
            States that end the process: a mask, indices (value 0), or state -> value.
        mask : array-like of bool of shape (S, A), optional
            Which actions a state has.
        s_indices : array-like of int of shape (L,), optional
            State of each row of a sparse P.

        Returns
        -------
        LEMM
            One node a state.

        Examples
        --------
        >>> import numpy as np
        >>> from equipoise.games import LEMM, solve_lemm
        >>> stay, leave = np.eye(2), np.array([[0.0, 1.0], [0.0, 1.0]])
        >>> problem = LEMM.from_mdp([stay, leave], [[1.0, 5.0], [0.0, 0.0]], discount=0.9)
        >>> print(solve_lemm(problem).x.round(6).tolist())
        [10.0, 0.0]
        """
        return cls._of(compress_mdp(P, R, discount, sense, terminal, mask, s_indices))

    @classmethod
    def from_stochastic_game(
        cls,
        P: Any,
        R: Any,
        player: Sequence[Any] | Array,
        discount: float = 1.0,
        terminal: Any = None,
        *,
        mask: Any = None,
        s_indices: Any = None,
    ) -> Self:
        """Build a turn-based zero-sum stochastic game.

        Parameters
        ----------
        P, R, discount, terminal, mask, s_indices
            As in `from_mdp`; R is what the maximiser gets from the minimiser.
        player : sequence of length S
            Who moves in each state: 'max' or 'min' (or 1, -1).

        Returns
        -------
        LEMM
            One node a state.

        Examples
        --------
        >>> import numpy as np
        >>> from equipoise.games import LEMM, solve_lemm
        >>> stay, swap = np.eye(2), np.array([[0.0, 1.0], [1.0, 0.0]])
        >>> R = [[1.0, 0.0], [3.0, 2.0]]
        >>> game = LEMM.from_stochastic_game([stay, swap], R, ["max", "min"], discount=0.5)
        >>> print(solve_lemm(game).x.round(6).tolist())
        [2.0, 3.0]
        """
        return cls._of(compress_mdp(P, R, discount, list(player), terminal, mask, s_indices))

    @classmethod
    def from_ssg(
        cls, kind: Sequence[str], succ: Sequence[Sequence[int]], prob: Sequence[Any]
    ) -> Self:
        """Build a simple stochastic game: reach the 1-sink (maximiser) or avoid it.

        Parameters
        ----------
        kind : sequence of length n
            'max', 'min', 'avg', 'sink0' or 'sink1' for each node.
        succ : sequence of sequences of int
            Successors of each node (none for sinks).
        prob : sequence
            Probabilities of an 'avg' node's successors, None for equal ones.

        Returns
        -------
        LEMM
            Node i's value is the probability of reaching a 1-sink.

        Examples
        --------
        >>> from equipoise.games import LEMM, solve_lemm
        >>> kind = ["max", "avg", "sink0", "sink1"]
        >>> game = LEMM.from_ssg(kind, [[1, 2], [0, 2, 3], [], []], [None] * 4)
        >>> print(solve_lemm(game).x.round(6).tolist())
        [0.5, 0.5, 0.0, 1.0]
        """
        return cls._of(compress_ssg(kind, succ, prob))

    @classmethod
    def from_branching(
        cls, offspring: Sequence[Any], reward: Sequence[Any], player: Sequence[str]
    ) -> Self:
        """Build a controlled branching process: expected total reward of a population.

        Parameters
        ----------
        offspring : sequence of length n
            For each type, one row an action: expected numbers of children of each type, as a
            mapping or an array. Rows may sum to more than 1.
        reward : sequence of length n
            For each type, the reward of each action.
        player : sequence of length n
            'max' or 'min'.

        Returns
        -------
        LEMM
            Node i's value is the expected total reward from one individual of type i.

        Examples
        --------
        >>> from equipoise.games import LEMM, solve_lemm
        >>> rows = [[{1: 4}, {0: 0.5}], [{0: 0.1, 1: 0.2}, {1: 0.5}]]
        >>> process = LEMM.from_branching(rows, [[1, 2], [1, 0.5]], ["max", "min"])
        >>> print(solve_lemm(process).x.round(6).tolist())
        [5.0, 1.0]
        """
        return cls._of(compress_branching(offspring, reward, player))

    @classmethod
    def from_lcp(cls, M: Any, q: Any) -> Self:
        """Build the equations whose solution z solves ``min(z, M z + q) = 0``.

        Parameters
        ----------
        M : array-like or sparse matrix of shape (n, n)
            A P-matrix for a unique solution.
        q : array-like of shape (n,)
            Right-hand side.

        Returns
        -------
        LEMM
            ``z_i = max(0, z_i - d_i (M z + q)_i)``, d_i one over the larger of 1 and the
            absolute row sum.

        Examples
        --------
        >>> from equipoise.games import LEMM, solve_lemm
        >>> print(solve_lemm(LEMM.from_lcp([[2, 1], [1, 2]], [-5, -6])).x.round(6).tolist())
        [1.333333, 2.333333]
        """
        from .complementarity import compress_lcp

        return cls._of(compress_lcp(M, q))

    # ---------------------------------------------------------------- shape and values

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
        values = np.array(x, dtype=np.float64)
        if values.shape != (self.n,):
            raise ValueError(f"{name} must have shape ({self.n},), got {values.shape}")
        if not np.isfinite(values).all():
            raise ValueError(f"{name} must be finite, got NaN or infinity")
        return values

    def check_policy(self, pi: Any, name: str = "pi") -> Array:
        """Return pi as int64 actions, one a node and each within its node, or raise ValueError."""
        policy = np.array(pi)
        if policy.shape != (self.n,) or policy.dtype.kind not in "iu":
            raise ValueError(
                f"{name} must hold one action (int) for each of {self.n} nodes, got shape "
                f"{policy.shape} of {policy.dtype}"
            )
        wrong = np.flatnonzero((policy < 0) | (policy >= np.diff(self.indptr)))
        if wrong.size:
            i = int(wrong[0])
            raise ValueError(
                f"{name}[{i}]={policy[i]} is out of range; allowed: 0 to "
                f"{self.indptr[i + 1] - self.indptr[i] - 1}"
            )
        return policy.astype(np.int64)

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

    # ---------------------------------------------------------------- other forms

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
        nx = optional_import("networkx", "graphs")
        names = [self.name(i) for i in range(self.n)]
        words = {1: "max", -1: "min", 0: "affine"}
        start, cols = self.edges
        graph = nx.DiGraph()
        graph.add_nodes_from((names[i], {"op": words[int(self.op[i])]}) for i in range(self.n))
        owner = np.repeat(np.arange(self.n), np.diff(start))
        graph.add_edges_from((names[i], names[j]) for i, j in zip(owner, cols, strict=True))
        return graph

    def save(self, path: str | PathLike[str]) -> None:
        """Write the system to an ``.npz`` file, exact values included."""
        extra: dict[str, Any] = {}
        if self.names is not None:
            extra["names"] = np.array(self.names)
        if self.A_exact is not None and self.b_exact is not None:
            extra["A_exact"] = np.array([str(value) for value in self.A_exact], dtype=str)
            extra["b_exact"] = np.array([str(value) for value in self.b_exact], dtype=str)
        np.savez_compressed(
            path,
            data=self.A.data,
            indices=self.A.indices,
            rows=self.A.indptr,
            b=self.b,
            indptr=self.indptr,
            op=self.op,
            **extra,
        )

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote."""
        with np.load(path, allow_pickle=False) as file:
            shape = (len(file["b"]), len(file["op"]))
            A = sp.csr_array((file["data"], file["indices"], file["rows"]), shape=shape)
            exact = {
                key: [Fraction(str(value)) for value in file[key]]
                for key in ("A_exact", "b_exact")
                if key in file
            }
            names = [str(name) for name in file["names"]] if "names" in file else None
            return cls(A, file["b"], file["indptr"], file["op"], names=names, **exact)

    # ---------------------------------------------------------------- text

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
            rows.append(format_expression(coefficients, offsets[row]))
        if len(rows) == 1:
            return f"{self.name(i)} = {rows[0]}"
        return f"{self.name(i)} = {'max' if self.op[i] > 0 else 'min'}({', '.join(rows)})"

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
