"""Which classes a system belongs to, with a certificate or a refutation for each answer.

I halting branching processes < II absolutely halting < III halting < W (one solution for every
offset). Class II has weights as its proof (polynomial); III and W are decided component by
component, by enumeration where a component has few policies, else searched for a refutation.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit
from sklearn.utils import check_random_state

from .determinants import enumerate_radii, enumerate_signs, search_sign_change
from .graph import is_acyclic
from .kernels import absolute_image
from .problem import LEMM
from .weights import (
    SWEEPS,
    THETA,
    component_weights,
    contraction_gap,
    find_weights,
    row_sums,
)

__all__ = ["LEMMClass", "classify_lemm", "classify_quickly"]

Array = np.ndarray
POWER_STEPS = 50
DAMPING = 0.05
#: Relative width of the bracket of a spectral radius that ends its search.
CLOSED = 1e-9
#: Eigenvalues cost more than determinants: fewer policies are enumerated for them.
RADIUS_SHARE = 64
#: Components larger than this aren't searched for refutations (dense inverses).
SEARCHED = 300


@dataclass(frozen=True)
class LEMMClass:
    """What `classify_lemm` found; True and False are proved, None is undecided.

    Attributes
    ----------
    nonnegative : bool
        No negative coefficient.
    substochastic : bool
        Every row sums to at most 1 (to within 1e-12).
    one_player : bool
        Not both max and min nodes.
    acyclic : bool
        No node depends on itself, directly or around a cycle.
    absolutely_halting : bool or None
        Every policy has spectral radius below 1 in absolute values.
    halting : bool or None
        Every policy has spectral radius below 1.
    w_property : bool or None
        det(I - Q) has one non-zero sign over all policies: exactly one solution, for any b.
    weights : ndarray of shape (n,) or None
        v > 0 with ``max_a |q_a|.v < v``, the proof of `absolutely_halting`.
    contraction : float or None
        ``max_i max_a |q_a|.v / v_i``, the factor by which each sweep shrinks the error.
    rho_abs_bracket : tuple of float
        Lower and upper bound of the largest spectral radius in absolute values.
    refuting_policy : tuple of ndarray or None
        Refutes the largest class that is refuted: one singular policy or two with opposite
        determinants (W), else a policy of spectral radius at least 1 (halting, else absolute).
    label : str
        The first proved of 'mdp', 'ssg', 'halting_branching', 'absolutely_halting', 'halting',
        'w', 'not_w'; 'unknown' if none is. 'mdp' and 'ssg' are halting too.

    Examples
    --------
    >>> from equipoise.games import LEMM
    >>> LEMM.from_equations("x = max(1 + 0.5*x, 2)").classify().label
    'mdp'
    """

    nonnegative: bool
    substochastic: bool
    one_player: bool
    acyclic: bool
    absolutely_halting: bool | None
    halting: bool | None
    w_property: bool | None
    weights: Array | None
    contraction: float | None
    rho_abs_bracket: tuple[float, float]
    refuting_policy: tuple[Array, ...] | None
    label: str


def label_of(found: LEMMClass) -> str:
    """The first proved class, in the order of the documentation."""
    halting_game = found.halting and found.nonnegative and found.substochastic
    answers = {
        "mdp": halting_game and found.one_player,
        "ssg": halting_game,
        "halting_branching": found.halting and found.nonnegative,
        "absolutely_halting": found.absolutely_halting,
        "halting": found.halting,
        "w": found.w_property,
        "not_w": found.w_property is False,
    }
    return next((name for name, proved in answers.items() if proved), "unknown")


@njit(cache=True, nogil=True)
def component_radii(
    nodes: Array,
    ptr: Array,
    cols: Array,
    inner: Array,
    order: Array,
    bounds: Array,
    steps: int,
    delta: float,
    u: Array,
    scratch: Array,
) -> float:
    """Lower bound of the absolute spectral radius (Collatz-Wielandt, component by component).

    `inner` holds the coefficients, 0 where they lead out of the component. A component is left
    when its bracket has closed.
    """
    lower = 0.0
    for c in range(bounds.shape[0] - 1):
        for _ in range(steps if bounds[c + 1] - bounds[c] > 1 else 1):
            smallest = np.inf
            largest = 0.0
            top = 0.0
            for position in range(bounds[c], bounds[c + 1]):
                i = order[position]
                best = 0.0
                for row in range(nodes[i], nodes[i + 1]):
                    total = 0.0
                    for k in range(ptr[row], ptr[row + 1]):
                        total += abs(inner[k]) * u[cols[k]]
                    best = max(best, total)
                ratio = best / u[i]
                smallest = min(smallest, ratio)
                largest = max(largest, ratio)
                scratch[i] = best + delta * u[i]
                top = max(top, scratch[i])
            lower = max(lower, smallest)
            if largest - smallest <= CLOSED * largest or largest <= lower:
                break
            for position in range(bounds[c], bounds[c + 1]):
                u[order[position]] = scratch[order[position]] / top
    return lower


def tighten(problem: LEMM, v: Array, lower: float) -> tuple[Array, float]:
    """Damped power steps towards the weights with the smallest contraction factor.

    No factor is below `lower`; the steps end there.
    """
    nodes, ptr, cols, coef, _, _ = problem.arrays
    best, best_factor = v, np.inf
    image = np.empty(problem.n)
    for _ in range(POWER_STEPS):
        absolute_image(nodes, ptr, cols, coef, v, image)
        factor = float(np.max(image / v))
        if factor < best_factor:
            best, best_factor = v, factor
        if best_factor <= lower * (1 + CLOSED):
            break
        v = image + DAMPING * v
        if not (v > 0).all() or factor == 0:
            break
        v /= v.max()
        if v.min() < 1e-200:
            break
    best = best / best.min()
    return best, 1 - float(np.min(contraction_gap(problem, best) / best))


def inner_coefficients(problem: LEMM) -> Array:
    """The coefficients in the order of ``A.data``, 0 where they lead out of a component."""
    label, _, bounds = problem.components
    if len(bounds) == 2:
        return problem.A.data
    starts, cols = problem.edges
    return np.where(label[cols] == np.repeat(label, np.diff(starts)), problem.A.data, 0.0)


def classify_quickly(problem: LEMM) -> LEMMClass:
    """Everything that takes polynomial time: signs, sums, players, cycles, absolute halting."""
    nonnegative = bool((problem.A.data >= 0).all())
    one_player = not ((problem.op > 0).any() and (problem.op < 0).any())
    search = find_weights(problem)
    plain = search.weights is not None and search.weights.min() == search.weights.max()
    # Equal weights prove row sums below 1.
    substochastic = nonnegative and (plain or bool((row_sums(problem) <= 1 + 1e-12).all()))
    proved = search.weights is not None
    absolutely = True if proved else (None if search.refuting_policy is None else False)
    halting = True if proved else (absolutely if nonnegative else None)
    contraction = None
    if search.weights is not None and search.gap is not None:
        contraction = 1 - float(np.min(search.gap / search.weights))
    found = LEMMClass(
        nonnegative=nonnegative,
        substochastic=substochastic,
        one_player=one_player,
        acyclic=is_acyclic(*problem.edges),
        absolutely_halting=absolutely,
        halting=halting,
        w_property=True if proved else None,
        weights=search.weights,
        contraction=contraction,
        rho_abs_bracket=(0.0, contraction) if contraction is not None else (0.0, np.inf),
        refuting_policy=None if search.refuting_policy is None else (search.refuting_policy,),
        label="",
    )
    return replace(found, label=label_of(found))


def component_rows(problem: LEMM, members: Array) -> tuple[Array, Array]:
    """Dense ``e_i - q_a`` of one component's actions, and each node's first row."""
    sizes = np.diff(problem.indptr)[members]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    rows = np.arange(starts[-1]) + np.repeat(problem.indptr[members] - starts[:-1], sizes)
    inner = sp.csr_array(problem.A[rows])[:, members].toarray()
    owner = np.repeat(np.arange(len(members)), sizes)
    return np.eye(len(members))[owner] - inner, starts


def unsettled_components(problem: LEMM) -> list[int]:
    """Components that a few sweeps, each component for itself, don't prove absolutely halting."""
    nodes, ptr, cols, _, _, _ = problem.arrays
    label, order, bounds = problem.components
    inner = inner_coefficients(problem)
    w = np.ones(problem.n)
    left: list[int] = []
    c = 0
    while True:
        c = component_weights(*(nodes, ptr, cols, inner, order, bounds, label), c, SWEEPS, THETA, w)
        if c == len(bounds) - 1:
            return left
        left.append(c)
        c += 1


def in_full(problem: LEMM, members: Array, policies: tuple[Array, ...]) -> tuple[Array, ...]:
    """Policies of a component as policies of the whole system, 0 elsewhere."""
    full = np.zeros((len(policies), problem.n), dtype=np.int64)
    for k, policy in enumerate(policies):
        full[k, members] = policy
    return tuple(full)


def classify_lemm(problem: LEMM, exact_limit: int = 2**20, random_state: Any = None) -> LEMMClass:
    """Say which classes a system belongs to, with proofs.

    Parameters
    ----------
    problem : LEMM
        Any system.
    exact_limit : int, default=2**20
        A component with at most this many policies has all its determinants compared (and with
        at most a 64th of it, all its eigenvalues). Larger ones are searched for a refutation.
    random_state : int, RandomState or None, default=None
        Seeds that search.

    Returns
    -------
    LEMMClass
        True, False or None for each class, the weights, the refuting policies and a label.

    Raises
    ------
    TypeError
        If `problem` isn't a `LEMM`.
    ValueError
        If `exact_limit` isn't a positive integer.

    References
    ----------
    .. [1] R. Sznajder, M. S. Gowda, "Generalizations of P0- and P-properties; extended vertical
       and horizontal linear complementarity problems", 1995 (property W).

    Examples
    --------
    >>> from equipoise.games import LEMM, classify_lemm
    >>> twisted = LEMM.from_equations(["x1 = max(2*x2 - 1, 0)", "x2 = x1"])
    >>> found = classify_lemm(twisted)
    >>> found.label, [policy.tolist() for policy in found.refuting_policy]
    ('not_w', [[0, 0], [1, 0]])
    """
    if not isinstance(problem, LEMM):
        raise TypeError(f"problem must be a LEMM, got {type(problem).__name__}")
    if not isinstance(exact_limit, (int, np.integer)) or exact_limit < 1:
        raise ValueError(f"exact_limit={exact_limit!r} must be a positive integer")
    rng = check_random_state(random_state)
    found = classify_quickly(problem)
    _, order, bounds = problem.components
    nodes, ptr, cols, _, _, _ = problem.arrays
    lower = component_radii(
        *(nodes, ptr, cols, inner_coefficients(problem), order, bounds, POWER_STEPS, DAMPING),
        np.ones(problem.n),
        np.empty(problem.n),
    )
    if found.weights is not None:
        weights, contraction = tighten(problem, found.weights, lower)
        bracket = (min(lower, contraction), contraction)
        found = replace(found, weights=weights, contraction=contraction, rho_abs_bracket=bracket)
        return replace(found, label=label_of(found))
    found = replace(found, rho_abs_bracket=(lower, np.inf))
    halting: bool | None = found.halting if found.halting is False else True
    w_property: bool | None = True
    refuting = found.refuting_policy
    for c in unsettled_components(problem):
        members = np.sort(order[bounds[c] : bounds[c + 1]])
        alone = problem.restrict(members, np.zeros(problem.n))
        if find_weights(alone).weights is not None:
            continue
        sizes = np.diff(problem.indptr)[members].astype(float)
        n_policies = float(np.exp(np.log(sizes).sum()))
        if len(members) > SEARCHED:
            halting, w_property = halting and None, w_property and None
            continue
        rows, starts = component_rows(problem, members)
        witness: tuple[Array, ...] | None = None
        if n_policies <= exact_limit * (1 + 1e-9):
            one_sign, policies = enumerate_signs(rows, starts)
            witness = None if one_sign else policies
        else:
            witness = search_sign_change(rows, starts, rng)
            if witness is None:
                w_property = w_property and None
        if witness is not None:
            refuting = in_full(problem, members, witness)
            halting = w_property = False
            break
        if halting is False:
            continue
        if n_policies <= max(1, exact_limit // RADIUS_SHARE):
            radius, policy = enumerate_radii(rows, starts)
            if radius >= 1 - 1e-12:
                halting, refuting = False, in_full(problem, members, (policy,))
        else:
            halting = None
    found = replace(found, halting=halting, w_property=w_property, refuting_policy=refuting)
    return replace(found, label=label_of(found))
