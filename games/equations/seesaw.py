"""Fibonacci seesaw: a search for the sink of a cube that is fast in the worst case.

With two actions a node, and one sign of all determinants, the policies are the corners of a cube
whose edges point to the better action; every face has one sink, and two corners never agree in
all the directions in which they differ (Szabó and Welzl). So two opposite faces with known sinks
can be widened, direction by direction, until they are the whole cube. For d nodes with a choice
at most the Fibonacci number F(d + 2) of policies is evaluated, about 1.62^d, where the other rules
may need 2^d.
"""

from collections.abc import Callable, Sequence

import numpy as np

from .errors import LEMMSingularError
from .problem import LEMM
from .solver import Run
from .switch_one import Callback

__all__ = ["LARGEST", "fibonacci_seesaw"]

Array = np.ndarray
#: Nodes with a choice: 196,418 policies may have to be evaluated for so many.
LARGEST = 25


class NoSinkError(Exception):
    """Two corners leave along the same directions, which cannot be under property W."""


def face_sink(start: Array, span: Sequence[int], leaves: Callable[[Array], Array]) -> Array:
    """The sink of the face of a cube that contains a corner.

    Parameters
    ----------
    start : ndarray of shape (n,), int64
        A corner, of entries 0 and 1.
    span : sequence of int
        Directions in which the face extends.
    leaves : callable
        ``leaves(corner)``: bool (n,), the directions in which a corner isn't the better end.

    Returns
    -------
    ndarray of shape (n,), int64
        The sink; a corner both of whose ends tie counts as the better one.

    Raises
    ------
    NoSinkError
        If the orientation isn't a unique sink orientation.
    """
    near, far = start, start.copy()
    far[list(span)] ^= 1
    out_near = leaves(near)
    if not any(out_near[h] for h in span):
        return near
    out_far = leaves(far)
    inside: list[int] = []  # near and far are the sinks of two opposite faces along these
    rest = list(span)
    while rest:
        # Neither leaves along h: both are sinks of the wider faces too.
        stay = [h for h in rest if not (out_near[h] or out_far[h])]
        if not stay:
            stay = [h for h in rest if out_near[h] != out_far[h]][:1]
            if not stay:
                raise NoSinkError
            h = stay[0]
            if len(rest) == 1:
                return far if out_near[h] else near
            across = (near if out_near[h] else far).copy()
            across[h] ^= 1
            if out_near[h]:
                near = face_sink(across, inside, leaves)
                out_near = leaves(near)
            else:
                far = face_sink(across, inside, leaves)
                out_far = leaves(far)
        inside += stay
        rest = [h for h in rest if h not in stay]
    return near


def fibonacci_seesaw(
    problem: LEMM,
    policy: Array,
    tie_tol: float = 1e-10,
    max_switches: int | None = None,
    callback: Callback = None,
) -> Run:
    """Search for the policy without a violation by the Fibonacci seesaw.

    Parameters
    ----------
    problem : LEMM
        With at most two actions a node, and at most 25 nodes that have two.
    policy : ndarray of shape (n,), int64
        Where to start; the search looks at the opposite policy too.
    tie_tol : float, default=1e-10
        An action is better by more than ``tie_tol * (1 + |x_i|)``, or not better.
    max_switches : int, optional
        Stop after this many further policies.
    callback : callable, optional
        Called as ``callback(n_switches, x, violation)`` after each further policy.

    Returns
    -------
    Run
        Status 'optimal', 'max_iter', 'singular', or 'not_W' if no sink can exist; `n_switches`
        counts the policies after the first.

    Raises
    ------
    ValueError
        If a node has more than two actions, or too many have two.
    """
    sizes = np.diff(problem.indptr)
    if (sizes > 2).any():
        i = int(np.argmax(sizes > 2))
        raise ValueError(
            f"rule='fibonacci_seesaw' takes at most 2 actions a node, and node {i} has {sizes[i]}"
        )
    free = np.flatnonzero(sizes == 2)
    if len(free) > LARGEST:
        raise ValueError(
            f"rule='fibonacci_seesaw' takes at most {LARGEST} nodes with a choice, got {len(free)}"
        )
    run = Run(np.zeros(problem.n), policy.copy(), "max_iter")
    known: dict[bytes, Array] = {}

    class Stop(Exception):
        """The limit or the callback ends the search."""

    def leaves(corner: Array) -> Array:
        key = corner.tobytes()
        if key not in known:
            if max_switches is not None and len(known) > max_switches:
                run.message = f"stopped after {max_switches} switches"
                raise Stop
            x = problem.evaluate(corner)
            run.value, run.policy = x, corner.copy()
            worst = np.maximum.reduceat(problem.violations(x), problem.indptr[:-1])
            known[key] = worst > tie_tol * (1 + np.abs(x))
            switches = len(known) - 1
            if (
                switches
                and callback is not None
                and callback(switches, x.copy(), float(worst.max()))
            ):
                run.message = f"stopped by the callback after {switches} switches"
                raise Stop
        return known[key]

    try:
        sink = face_sink(policy.copy(), free.tolist(), leaves)
        leaves(sink)
        run.policy, run.value, run.status = sink, problem.evaluate(sink), "optimal"
    except Stop:
        pass
    except LEMMSingularError as error:
        run.status, run.message = "singular", str(error)
    except NoSinkError:
        run.status = "not_W"
        run.message = (
            "two policies are violated in every node in which they differ, which cannot happen "
            "where solutions are unique for all offsets"
        )
    run.n_evaluations = len(known)
    run.n_iter = run.n_switches = max(len(known) - 1, 0)
    return run
