"""Weighted sums of product games, and their values.

    v(S) = c + sum_r w_r prod_{j in S} a_rj prod_{j not in S} b_rj

has the Shapley values

    phi_j = sum_r w_r (a_rj - b_rj) int_0^1 prod_{l != j} [b_rl + t (a_rl - b_rl)] dt,

because |S|! (d - |S| - 1)! / d! = int t^|S| (1 - t)^(d - 1 - |S|) dt. The integrand is a polynomial
of degree d - 1. Other semivalues have another weight in t: Banzhaf's has t = 1/2 alone.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .engines import identity_values, lane_blocks, lane_coefficients, two_sided_values
from .nodes import parse_index, quadrature_rules

__all__ = ["ProductGame", "product_game_values"]


def checked_game(weights: Any, presence: Any, absence: Any) -> tuple[np.ndarray, ...]:
    """Check the arrays of a product game and give them their full shapes."""
    weights = np.asarray(weights, dtype=np.float64)
    presence = np.asarray(presence, dtype=np.float64)
    if presence.ndim != 2 or presence.shape[1] < 1:
        raise ValueError(
            f"presence must have shape (n_terms, n_players) with a player at least, got "
            f"{presence.shape}"
        )
    if weights.ndim not in (1, 2) or len(weights) != len(presence):
        raise ValueError(
            f"weights must have shape (n_terms,) or (n_terms, n_outputs) with n_terms="
            f"{len(presence)}, got {weights.shape}"
        )
    try:
        absence = np.broadcast_to(np.asarray(absence, dtype=np.float64), presence.shape)
    except ValueError:
        raise ValueError(
            f"absence must be broadcastable to presence's shape {presence.shape}, got "
            f"{np.shape(absence)}"
        ) from None
    for name, array in (("weights", weights), ("presence", presence), ("absence", absence)):
        if not np.isfinite(array).all():
            raise ValueError(f"{name} holds NaN or infinity; all entries must be finite")
    return weights, presence, absence


def product_game_values(
    weights: Any,
    presence: Any,
    absence: Any = 1.0,
    *,
    index: str = "SV",
    n_nodes: str | int = "auto",
    tol: float = 1e-12,
) -> np.ndarray:
    """Compute the Shapley or another semivalue of a weighted sum of product games.

    Parameters
    ----------
    weights : array-like of shape (n_terms,) or (n_terms, n_outputs)
        Weights w of the terms.
    presence : array-like of shape (n_terms, n_players)
        Factors a of players who are present.
    absence : array-like broadcastable to (n_terms, n_players), default=1.0
        Factors b of players who are absent.
    index : str, default="SV"
        "SV" (Shapley), "BV" (Banzhaf), "WB:p" (weighted Banzhaf), "Beta:alpha,beta".
    n_nodes : {"auto", "exact"} or int, default="auto"
        Quadrature nodes for "SV". "auto" meets `tol` if all factors lie in [0, 1], and is exact
        otherwise.
    tol : float, default=1e-12
        Error allowed by "auto", relative to the weights' total.

    Returns
    -------
    ndarray of shape (n_players,) or (n_players, n_outputs)
        Values.

    Raises
    ------
    ValueError
        If shapes don't match, an entry isn't finite, or a parameter is out of range.

    References
    ----------
    .. [1] Mohammadi, Chau, Muandet, "Amortized Linear-time Exact Shapley Value for Product-Kernel
           Methods", arXiv:2505.16516.

    Examples
    --------
    >>> from equipoise.explainers import product_game_values
    >>> product_game_values([1.0], [[0.5, 0.2, 0.8]]).round(6)
    array([-0.276667, -0.546667, -0.096667])
    """
    weights, presence, absence = checked_game(weights, presence, absence)
    parse_index(index)
    check_accuracy(n_nodes, tol)
    d = presence.shape[1]
    if not weights.size:
        return np.zeros((d, *weights.shape[1:]))
    columns = weights.reshape(len(weights), -1)
    unit = all(a.min() >= 0 and a.max() <= 1 for a in (presence, absence))
    rules = quadrature_rules(d, index, n_nodes, tol, bool(unit))
    coef = lane_coefficients(columns)
    if (absence == 1).all():
        values = identity_values(lane_blocks((presence - 1)[None]), coef, *rules)[0][0]
    else:
        A, B = lane_blocks(presence[None]), lane_blocks(absence[None])
        values = two_sided_values(A, B, np.ones(1), coef, *rules)[0][0]
    return values.reshape(d, *weights.shape[1:])


def check_accuracy(n_nodes: str | int, tol: float) -> None:
    """Raise unless the quadrature's parameters are in range."""
    if n_nodes not in ("auto", "exact") and not (
        isinstance(n_nodes, int | np.integer) and n_nodes >= 1
    ):
        raise ValueError(f"n_nodes={n_nodes!r} is not allowed; 'auto', 'exact' or an int >= 1 is")
    if not 0 < tol <= 1e-2:
        raise ValueError(f"tol={tol!r} must lie in (0, 1e-2]")


@dataclass(frozen=True, eq=False)
class ProductGame:
    """A weighted sum of product games, as an immutable value.

    Parameters
    ----------
    weights : array-like of shape (n_terms,)
        Weights of the terms.
    presence : array-like of shape (n_terms, n_players)
        Factors of players who are present.
    absence : array-like broadcastable to (n_terms, n_players), default=1.0
        Factors of players who are absent.
    constant : float, default=0.0
        Added to every coalition's value.

    Examples
    --------
    >>> from equipoise.explainers.product_kernels import ProductGame
    >>> game = ProductGame([2.0], [[0.5, 0.25]], constant=1.0)
    >>> game.value([0]), game.value([0, 1]), game.value([])
    (2.0, 1.25, 3.0)
    """

    weights: np.ndarray
    presence: np.ndarray
    absence: np.ndarray | float = 1.0
    constant: float = 0.0

    def __post_init__(self) -> None:
        arrays = checked_game(self.weights, self.presence, self.absence)
        if arrays[0].ndim != 1:
            raise ValueError(f"weights must have shape (n_terms,), got {arrays[0].shape}")
        if not np.isfinite(self.constant):
            raise ValueError(f"constant={self.constant!r} must be finite")
        for name, array in zip(("weights", "presence", "absence"), arrays, strict=True):
            array = array.copy()
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @property
    def n_players(self) -> int:
        """Number of players."""
        return self.presence.shape[1]

    def value(self, coalition: Any) -> float:
        """Compute v(S).

        Parameters
        ----------
        coalition : array-like of int, or of bool of shape (n_players,)
            Who is present: their numbers, or a mask.

        Returns
        -------
        float
            Value of the coalition.
        """
        present = np.zeros(self.n_players, dtype=bool)
        chosen = np.asarray(coalition)
        present[chosen if chosen.size else []] = True
        factors = np.where(present, self.presence, self.absence)
        return float(self.constant + self.weights @ factors.prod(axis=1))
