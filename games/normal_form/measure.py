"""The search for a measure that makes a game harmonic.

For fixed payoffs the harmonic condition R(a) = sum_i sum_b mu_i(b) c_{i,b}(a) = 0 with
c_{i,b}(a) = u_i(a) - u_i(b, a_{-i}) is linear in mu: C mu = 0 with a row for each of the M profiles
and a column for each of the s = sum d_i actions. A positive solution exists iff the linear program
max t, C mu = 0, mu >= t, sum(mu) = 1 has a positive value. C^T C is summed over blocks of profiles,
so C is never held for large games.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import svd
from scipy.optimize import linprog, nnls

from equipoise.blocks import iter_blocks

from .game import NormalFormGame, as_game
from .hoeffding import divergence

__all__ = ["HarmonicMeasure", "find_harmonic_measure"]

#: Up to this many entries C is formed and its singular values are computed; above, the eigenvalues
# of C^T C.
LARGEST_SYSTEM = 2e7


@dataclass(frozen=True)
class HarmonicMeasure:
    """What the search for a harmonic measure found.

    Attributes
    ----------
    measure : list of ndarray of shape (d_i,)
        The best measure, its entries summing to 1 over all players whose payoffs depend on their
        own action (the others' weights are free, and set to 1).
    margin : float
        The smallest entry of the measure, 0.0 where no positive measure makes the game harmonic.
    nullity : int
        Dimension of the space of solutions of C mu = 0; with 1 the measure is unique up to a
        factor.
    residual : float
        Root mean square of R over that of the payoff differences sum_i m_i Pi_i u_i is made of.

    Examples
    --------
    >>> from equipoise.games import NormalFormGame, find_harmonic_measure
    >>> found = find_harmonic_measure(NormalFormGame.from_bimatrix([[1, -1], [-1, 1]]))
    >>> found.is_harmonic, found.nullity, round(found.margin, 6)
    (True, 1, 0.25)
    """

    measure: list[np.ndarray]
    margin: float
    nullity: int
    residual: float

    @property
    def is_harmonic(self) -> bool:
        """Whether the game is harmonic for `measure`."""
        return self.margin > 0.0


def condition_rows(
    payoffs: np.ndarray, players: list[int], rows: slice, shape: tuple[int, ...]
) -> np.ndarray:
    """Return rows of C: for each profile a of the block, u_i(a) - u_i(b, a_{-i}) for each i, b."""
    profiles = np.arange(rows.start, rows.stop)
    blocks = []
    for i in players:
        after = int(np.prod(shape[i + 1 :], dtype=np.int64))
        own = profiles // after % shape[i]
        others = profiles - own * after
        u = payoffs[i].reshape(-1)
        deviations = u[others[:, None] + after * np.arange(shape[i])]
        blocks.append(u[profiles][:, None] - deviations)
    return np.concatenate(blocks, axis=1)


def null_space(
    payoffs: np.ndarray, players: list[int], shape: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Return an orthonormal basis (s, nullity) of the null space of C, and C^T C (s, s)."""
    M = payoffs[0].size
    s = sum(shape[i] for i in players)
    gram = np.zeros((s, s))
    if M * s <= LARGEST_SYSTEM:
        C = condition_rows(payoffs, players, slice(0, M), shape)
        gram = C.T @ C
        _, singular, Vt = svd(C, full_matrices=M < s, check_finite=False)
        singular = np.pad(singular, (0, s - len(singular)))
        return Vt[singular <= 1e-10 * singular[0]].T, gram
    for rows in iter_blocks(M, bytes_per_item=8.0 * 4 * s):
        C = condition_rows(payoffs, players, rows, shape)
        gram += C.T @ C
    values, vectors = np.linalg.eigh(gram)
    return vectors[:, values <= 1e-14 * values[-1]], gram


def largest_margin(basis: np.ndarray) -> np.ndarray | None:
    """Return the mu = basis c of sum 1 with the largest smallest entry; None if there is none."""
    s, k = basis.shape
    if k == 1:
        mu = basis[:, 0] * np.sign(basis[:, 0].sum())
        return mu / mu.sum() if mu.sum() > 0 else None
    # unknowns (c, t): maximise t with t - (basis c)_a <= 0 and sum(basis c) = 1; t <= 1 / s always
    answer = linprog(
        np.r_[np.zeros(k), -1.0],
        A_ub=np.c_[-basis, np.ones(s)],
        b_ub=np.zeros(s),
        A_eq=np.r_[basis.sum(axis=0), 0.0][None],
        b_eq=[1.0],
        bounds=[(None, None)] * (k + 1),
        method="highs",
    )
    return basis @ answer.x[:k] if answer.status == 0 else None


def most_even_solution(N: np.ndarray, scale: np.ndarray, tol: float) -> np.ndarray | None:
    """Return a positive solution mu = scale * (N c) of sum 1, or None.

    Whether it is positive is judged by mu / scale, the weights for payoffs of equal size.
    """
    if N.shape[1] == 0:
        return None
    basis = scale[:, None] * N
    for candidate, factor in ((basis / np.abs(basis).max(), 1.0), (N, scale)):
        mu = largest_margin(candidate)
        if mu is not None:
            mu = mu * factor
            weights = mu / scale
            if weights.min() > tol * np.abs(weights).max():
                return mu / mu.sum()
    return None


def least_residual(gram: np.ndarray, floor: float = 1e-3) -> np.ndarray:
    """Return the mu that minimises mu^T gram mu over sum(mu) = 1 and mu >= floor / s.

    mu = B nu with nu >= 0 spans the cone of the vectors whose entries are at least floor / s of
    their sum, and on a cone the constrained problem has the minimiser of nu^T (B^T gram B) nu / 2 -
    1^T B nu, up to a factor.
    """
    s = len(gram)
    B = np.eye(s) + floor / (s * (1.0 - floor))
    H = B.T @ gram @ B
    H += 1e-12 * np.trace(H) / s * np.eye(s)
    A = np.linalg.cholesky(H).T
    nu, _ = nnls(A, np.linalg.solve(A.T, B.sum(axis=0)))
    mu = B @ nu
    return mu / mu.sum()


def find_harmonic_measure(game: NormalFormGame | np.ndarray, tol: float = 1e-9) -> HarmonicMeasure:
    """Search for positive weights for which a game is harmonic.

    Parameters
    ----------
    game : NormalFormGame or ndarray of shape (n, d_0, ..., d_{n-1})
        The game or its payoff tensor.
    tol : float, default=1e-9
        Smallest margin that counts as positive, and largest relative residual of a harmonic game.

    Returns
    -------
    HarmonicMeasure
        A measure of the largest margin if the game is harmonic for any; otherwise the measure of
        least residual among those whose entries are at least a thousandth of the mean.

    References
    ----------
    .. [1] D. Legacci et al., "No-regret learning in harmonic games", 2024, definition 1.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.games import NormalFormGame, find_harmonic_measure
    >>> found = find_harmonic_measure(NormalFormGame.from_bimatrix([[2, -1], [-1, 1]]))
    >>> [(10 * mu).round(6).tolist() for mu in found.measure]
    [[2.0, 3.0], [2.0, 3.0]]
    >>> find_harmonic_measure(
    ...     NormalFormGame.from_bimatrix([[3, 0], [5, 1]], [[3, 5], [0, 1]])
    ... ).is_harmonic
    False
    """
    game = as_game(game)
    shape = game.shape
    strategic = game.normalize().payoffs
    rms = np.array(
        [
            np.sqrt(np.square(w / (np.abs(w).max() or 1.0)).mean()) * np.abs(w).max()
            for w in strategic
        ]
    )
    largest = np.abs(game.payoffs).max(axis=tuple(range(1, game.n_players + 1)))
    players = [i for i in range(game.n_players) if rms[i] > 64 * np.finfo(float).eps * largest[i]]
    measure = [np.ones(d) for d in shape]
    free = sum(shape[i] for i in range(game.n_players) if i not in players)
    if not players:
        return HarmonicMeasure(measure, 1.0, free, 0.0)

    # Each player's payoffs are divided by their size, so that none hides behind another; mu_i grows
    # by as much.
    scaled = strategic / np.where(rms > 0, rms, 1.0).reshape(-1, *[1] * game.n_players)
    N, gram = null_space(scaled, players, shape)
    scale = np.concatenate([np.full(shape[i], 1.0 / rms[i]) for i in players])
    scale /= scale.max()  # mu is free up to a factor
    mu = most_even_solution(N, scale, tol)
    margin = 0.0 if mu is None else float(mu.min())
    if mu is None:
        mu = least_residual(gram / np.outer(scale, scale))
    stops = np.cumsum([shape[i] for i in players])
    for i, part in zip(players, np.split(mu, stops[:-1]), strict=True):
        measure[i] = part
    residual = relative_residual(strategic, measure)
    if residual > max(tol, 1e-7 if game.n_profiles * len(mu) > LARGEST_SYSTEM else tol):
        margin = 0.0
    return HarmonicMeasure(measure, margin, N.shape[1] + free, residual)


def relative_residual(strategic: np.ndarray, measure: list[np.ndarray]) -> float:
    """Return rms(sum_i m_i Pi_i u_i) over the root of the sum of the mean squares of its terms."""
    size = float(np.abs(strategic).max())
    R = divergence(strategic / size, measure)
    terms = sum(
        float(mu.sum()) ** 2 * float(np.square(w / size).mean())
        for mu, w in zip(measure, strategic, strict=True)
    )
    return float(np.sqrt(np.square(R).mean() / terms))
