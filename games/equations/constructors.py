"""Ways into a system: nodes, arrays, text, decision processes, games, complementarity problems."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .markov import compress_branching, compress_mdp, compress_ssg
from .nodes import CompressedSystem, compress_dense, compress_nodes
from .text import parse_equations

__all__ = ["Constructors"]

Array = np.ndarray


class Constructors:
    """The alternative constructors of `LEMM`."""

    if TYPE_CHECKING:

        def __init__(self, A: Any, b: Any, indptr: Any, op: Any, **kwargs: Any) -> None: ...

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
