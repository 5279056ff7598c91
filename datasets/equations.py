"""Random systems of min and max equations of every class, with a planted solution.

A solution and a policy are drawn first and the offsets follow, so the truth is known without
solving. The named systems are in `equation_examples`.
"""

from collections.abc import Callable
from itertools import product
from math import exp
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch, check_random_state

from ..games.equations import LEMM

__all__ = ["make_lemm"]

Array = np.ndarray
KINDS = ("mdp", "ssg", "branching", "absolutely_halting", "halting", "w")
STRUCTURES = ("random", "banded", "grid", "layered")
PER_ROW = 3
POOL = 12  # different blocks that 'halting' and 'w' are made of


def row_columns(n: int, m: int, per_row: int, structure: str, rng: Any) -> tuple[Array, Array]:
    """Columns of each row, shape (m, per_row), and which of them exist."""
    owner = np.repeat(np.arange(n), m // n)[:, None]
    exists = np.ones((m, per_row), dtype=bool)
    if structure == "random":
        return rng.randint(0, n, size=(m, per_row)), exists
    if structure == "banded":
        return (owner + rng.randint(-2 * per_row, 2 * per_row + 1, size=(m, per_row))) % n, exists
    if structure == "grid":
        side = round(n**0.5)
        if side * side != n:
            raise ValueError(f"structure='grid' needs a square number of nodes, got n={n}")
        moves = rng.randint(0, 4, size=(m, per_row))
        r = np.clip(owner // side + np.array([0, 1, 0, -1])[moves], 0, side - 1)
        c = np.clip(owner % side + np.array([1, 0, -1, 0])[moves], 0, side - 1)
        return r * side + c, exists
    width = -(-n // 10)
    layer = owner // width + 1
    columns = layer * width + rng.randint(0, width, size=(m, per_row))
    return np.minimum(columns, n - 1), exists & (layer * width < n)


def spread_rows(
    n: int, k: int, per_row: int, structure: str, signed: bool, c: float, rng: Any
) -> sp.csr_array:
    """Random rows whose absolute sums are at most c (equal to it where not signed)."""
    m = n * k
    columns, exists = row_columns(n, m, per_row, structure, rng)
    size = rng.exponential(size=columns.shape) * exists
    size /= np.maximum(size.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    size *= rng.uniform(0.3, c, size=(m, 1)) if signed else c
    if signed:
        size *= rng.choice([-1.0, 1.0], size=size.shape)
    owner = np.repeat(np.arange(m), per_row)[exists.ravel()]
    return sp.csr_array((size[exists], (owner, columns[exists])), shape=(m, n))


def block_pool(k: int, accept: Callable[[Array], bool], draw: Callable[[], Array]) -> list[Array]:
    """Blocks (2, k, 2) all of whose policies pass a joint test, by rejection."""
    pool: list[Array] = []
    for _ in range(100000):
        block = draw()
        matrices = np.array([block[[0, 1], [a, b]] for a, b in product(range(k), repeat=2)])
        if accept(matrices):
            pool.append(block)
            if len(pool) == POOL:
                return pool
    raise ValueError(f"n_actions={k} is too large: no block was found in 100000 draws")


def chained_blocks(n: int, k: int, kind: str, c: float, rng: Any) -> sp.csr_array:
    """2x2 blocks on the diagonal, each also depending on an earlier node."""

    def twist() -> Array:
        angle = rng.uniform(0.6, 2.5)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        return rng.uniform(0.8, 1.0) * c * turn[:, None, :] * rng.uniform(0.85, 1, size=(2, k, 2))

    def halting(Q: Array) -> bool:
        radii = np.abs(np.linalg.eigvals(Q)).max(axis=1)
        absolute = np.abs(np.linalg.eigvals(np.abs(Q))).max(axis=1)
        return bool(radii.max() < c and absolute.max() >= 1.02)

    def one_sign(Q: Array) -> bool:
        determinants = np.linalg.det(np.eye(2) - Q)
        radii = np.abs(np.linalg.eigvals(Q)).max(axis=1)
        return bool(determinants.min() > 0.05 and radii.max() >= 1.02)

    if kind == "halting":
        pool = block_pool(k, halting, twist)
    else:
        pool = block_pool(k, one_sign, lambda: rng.normal(size=(2, k, 2)))
    rows: list[int] = []
    columns: list[int] = []
    values: list[float] = []
    for i in range(0, n - 1, 2):
        block = pool[rng.randint(len(pool))]
        stretch = exp(0.5 * rng.normal())
        for p, a, q in product(range(2), range(k), range(2)):
            rows.append((i + p) * k + a)
            columns.append(i + q)
            values.append(block[p, a, q] * stretch ** (p - q))
        if i > 0:
            for p, a in product(range(2), range(k)):
                rows.append((i + p) * k + a)
                columns.append(rng.randint(i))
                values.append(0.5 * rng.normal())
    return sp.csr_array((values, (rows, columns)), shape=(n * k, n))


def plant(A: sp.csr_array, n: int, k: int, op: Array, scale: Array, rng: Any) -> Bunch:
    """Offsets under which a drawn policy and values are the solution."""
    value = scale * rng.normal(size=n)
    policy = rng.randint(0, k, size=n)
    owner = np.repeat(np.arange(n), k)
    lead = rng.uniform(0.05, 1, size=n * k) * scale[owner]
    lead[np.arange(n) * k + policy] = 0.0
    sign = np.where(op < 0, -1.0, 1.0)[owner]
    b = value[owner] - A @ value - sign * lead
    problem = LEMM(A, b, np.arange(0, n * k + 1, k), op)
    return Bunch(problem=problem, value=value, policy=policy.astype(np.int64))


def make_lemm(
    n: int,
    n_actions: int = 2,
    density: float | None = None,
    kind: str = "mdp",
    min_fraction: float = 0.5,
    contraction: float = 0.95,
    rescale_sigma: float = 0.0,
    structure: str = "random",
    random_state: Any = None,
) -> Bunch:
    """Draw a random system of a given class, with a planted solution.

    Parameters
    ----------
    n : int
        Number of nodes.
    n_actions : int, default=2
        Actions of each node.
    density : float, optional
        Share of non-zero coefficients in a row; default three coefficients a row. Not for kinds
        "halting" and "w", which are made of blocks.
    kind : str, default="mdp"
        "mdp" (discounted, max only), "ssg" (discounted, two players), "branching"
        (non-negative, rows sum to more than 1), "absolutely_halting" (signed), "halting" (not
        absolutely: value iteration may diverge), "w" (not even halting).
    min_fraction : float, default=0.5
        Probability that a node is the minimiser's (for "mdp": none is).
    contraction : float, default=0.95
        Factor of the weighted norm; for "halting" the largest spectral radius; not used for "w".
    rescale_sigma : float, default=0.0
        Unknowns are measured in units ``exp(rescale_sigma * N(0, 1))``; "branching" takes 1
        where this is 0. Not for "halting" and "w".
    structure : {"random", "banded", "grid", "layered"}, default="random"
        Where coefficients lie; "halting" and "w" take "random" only.
    random_state : int, RandomState or None, default=None
        Seed.

    Returns
    -------
    Bunch
        problem (LEMM), value (n,), policy (n,), kind, and weights (n,) that prove the contraction
        (None for "halting" and "w").

    Raises
    ------
    ValueError
        If a parameter is out of range or doesn't fit the kind.

    Examples
    --------
    >>> from equipoise.datasets import make_lemm
    >>> from equipoise.games import solve_lemm
    >>> made = make_lemm(30, kind="absolutely_halting", random_state=0)
    >>> bool(abs(solve_lemm(made.problem).x - made.value).max() < 1e-8)
    True
    """
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r} is not known; allowed: {KINDS}")
    if structure not in STRUCTURES:
        raise ValueError(f"structure={structure!r} is not known; allowed: {STRUCTURES}")
    if n < 1 or n_actions < 1:
        raise ValueError(f"n={n} and n_actions={n_actions} must be at least 1")
    if not 0 < contraction < 1:
        raise ValueError(f"contraction={contraction!r} must lie strictly between 0 and 1")
    if not 0 <= min_fraction <= 1:
        raise ValueError(f"min_fraction={min_fraction!r} must lie between 0 and 1")
    if density is not None and not 0 < density <= 1:
        raise ValueError(f"density={density!r} must lie in (0, 1]")
    if not 0 <= rescale_sigma < 100:
        raise ValueError(f"rescale_sigma={rescale_sigma!r} must be at least 0 (and below 100)")
    rng = check_random_state(random_state)
    op = np.where(rng.uniform(size=n) < (0 if kind == "mdp" else min_fraction), -1, 1)
    if n_actions == 1:
        op = np.zeros(n, dtype=int)
    if kind in ("halting", "w"):
        if density is not None or rescale_sigma or structure != "random":
            raise ValueError(
                f"kind={kind!r} is made of blocks: density, rescale_sigma and structure are fixed"
            )
        if n < 2:
            raise ValueError(f"kind={kind!r} needs n >= 2, got {n}")
        A = chained_blocks(n, n_actions, kind, contraction, rng)
        return Bunch(**plant(A, n, n_actions, op, np.ones(n), rng), weights=None, kind=kind)
    per_row = PER_ROW if density is None else max(1, round(density * n))
    signed = kind == "absolutely_halting"
    A = spread_rows(n, n_actions, per_row, structure, signed, contraction, rng)
    sigma = rescale_sigma or (1.0 if kind == "branching" else 0.0)
    weights = np.exp(sigma * rng.normal(size=n))
    if sigma:
        owner = np.repeat(weights, n_actions)
        A = sp.csr_array(sp.diags_array(owner) @ A @ sp.diags_array(1 / weights))
    return Bunch(**plant(A, n, n_actions, op, weights, rng), weights=weights, kind=kind)
