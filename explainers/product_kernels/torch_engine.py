"""The same attributions in torch, for float32 and for accelerators.

Factors, products and sums stay on the device; blocks of rows and support points bound the memory.
Where no factor is nearly 0 the product without one factor is the product divided by it; otherwise
it is a prefix times a suffix.
"""

from typing import Any

import numpy as np
import torch

from equipoise.blocks import iter_blocks
from equipoise.devices import resolve_device, resolve_dtype

from .expansion import dense_rows
from .factors import Chi2Factor
from .kernels import ProductKernel
from .nodes import QuadratureRules

__all__ = ["torch_integrals", "torch_pair_integrals", "torch_values"]

Tensor = torch.Tensor


def log_columns(codes: np.ndarray, parameters: Tensor, X: Tensor, S: Tensor) -> Tensor:
    """Compute all log factors of the compiled formulas, of shape (n, m, d)."""
    x, y = X[:, None], S[None]
    difference = x - y
    kinds = set(codes.tolist())
    chosen = torch.as_tensor(codes, device=X.device)
    logs = torch.zeros_like(difference)
    if 0 in kinds:
        logs = torch.where(chosen == 0, -parameters * difference**2, logs)
    if 1 in kinds:
        logs = torch.where(chosen == 1, -parameters * difference.abs(), logs)
    if 2 in kinds:
        mismatch = (chosen == 2) & (difference != 0)
        logs = torch.where(mismatch, parameters.expand_as(difference), logs)
    if 3 in kinds:
        total = x + y
        ratio = torch.where(total > 0, difference**2 / total.clamp_min(1e-300), 0.0)
        logs = torch.where(chosen == 3, -parameters * ratio, logs)
    return logs


def player_tensor(
    kernel: ProductKernel, X: Tensor, S: Tensor, player: Tensor, n_players: int, minus_one: bool
) -> Tensor:
    """Multiply factors over each player's columns, of shape (n, m, n_players)."""
    shape = (len(X), len(S), n_players)
    codes, parameters = kernel.formulas
    if (codes >= 0).all():
        columns = log_columns(codes, torch.as_tensor(parameters).to(X), X, S)
        logs = torch.zeros(shape, dtype=X.dtype, device=X.device).index_add_(2, player, columns)
        return torch.expm1(logs) if minus_one else torch.exp(logs)
    F = kernel.factors_matrix(X.cpu().double().numpy(), S.cpu().double().numpy())
    factors = torch.as_tensor(F).to(X)
    product = torch.ones(shape, dtype=X.dtype, device=X.device)
    for j, g in enumerate(player.tolist()):
        product[..., g] *= factors[..., j]
    return product - 1 if minus_one else product


def products_without_one(F: Tensor) -> Tensor:
    """Multiply all factors but one along the last axis."""
    if F.abs().min() > torch.finfo(F.dtype).tiny ** 0.5:
        return F.prod(-1, keepdim=True) / F
    one = torch.ones_like(F[..., :1])
    before = torch.cat([one, F[..., :-1].cumprod(-1)], -1)
    after = torch.cat([one, F[..., 1:].flip(-1).cumprod(-1)], -1).flip(-1)
    return before * after


def integrate(
    D: Tensor, B: Tensor | float, rules: QuadratureRules
) -> tuple[Tensor, float, int, float]:
    """Compute D_j int prod_{l != j} (b_l + t D_l) dt, the bound, nodes and the largest Z."""
    largest = float(D.abs().sum(-1).max())
    rule = min(int(np.searchsorted(rules.limits, largest)), len(rules.limits) - 1)
    chosen = slice(rules.starts[rule], rules.starts[rule + 1])
    exact = rules.last_exact and rule == len(rules.limits) - 1
    acc = torch.zeros_like(D)
    for t, w in zip(rules.nodes[chosen].tolist(), rules.weights[chosen].tolist(), strict=True):
        acc += w * products_without_one(B + t * D)
    bound = 0.0 if exact else rules.tol / max(1.0, largest)
    return D * acc, bound, chosen.stop - chosen.start, largest


def torch_values(
    game: Any,
    X: np.ndarray,
    rules: QuadratureRules,
    *,
    device: str,
    dtype: str,
    working_memory: float | None,
) -> tuple[np.ndarray, np.ndarray, int, float]:
    """Compute the players' values of each row.

    Parameters
    ----------
    game : PlayerGame
        What is attributed.
    X : ndarray of shape (n, n_columns)
        Rows explained.
    rules : QuadratureRules
        Nodes; one rule for each block of rows and support points.
    device : str
        Torch device, or "auto".
    dtype : {"float32", "float64"}
        Precision of the factors and products.
    working_memory : float or None
        Budget in MiB for one block's tensors.

    Returns
    -------
    values, error : ndarray of shape (n, n_players, n_outputs)
        Values, and a bound on the quadrature's absolute error.
    most_nodes : int
        Most nodes used.
    largest : float
        The largest Z met.
    """
    where, precision = resolve_device(device), resolve_dtype(dtype)

    def tensor(array: np.ndarray) -> Tensor:
        return torch.as_tensor(np.ascontiguousarray(array)).to(where, precision)

    d, n_outputs = game.n_players, game.expansion.n_outputs
    values, error = np.zeros((2, len(X), d, n_outputs))
    player = torch.as_tensor(game.player, device=where)
    rows_of_x = tensor(X)
    most_nodes, most_z = 0, 0.0
    bytes_each = 6.0 * max(d, X.shape[1]) * rows_of_x.element_size()
    for kernel, points, weights in game.expansion.weighted_terms():
        refuse_negative(kernel, X)
        support = dense_rows(points)
        for some in iter_blocks(len(support), 8 * bytes_each, working_memory):
            S, coef = tensor(support[some]), tensor(weights[some])
            absences: list[tuple[Tensor | None, float]] = [(None, 1.0)]
            if game.removal != "identity":
                B = player_tensor(kernel, tensor(game.background), S, player, d, False)
                shares = tensor(game.row_weights)
                if game.removal == "marginal":
                    absences = [(torch.einsum("r,rmd->md", shares, B), 1.0)]
                else:
                    absences = list(zip(B, shares.tolist(), strict=True))
            for block in iter_blocks(len(X), len(S) * bytes_each, working_memory):
                A = player_tensor(
                    kernel, rows_of_x[block], S, player, d, game.removal == "identity"
                )
                for absent, share in absences:
                    D = A if absent is None else A - absent
                    term, bound, nodes, z = integrate(D, 1.0 if absent is None else absent, rules)
                    phi = torch.einsum("nmd,mo->ndo", term, share * coef)
                    size = torch.einsum("nmd,mo->ndo", D.abs(), (share * coef).abs())
                    values[block] += phi.double().cpu().numpy()
                    error[block] += bound * size.double().cpu().numpy()
                    most_nodes, most_z = max(most_nodes, nodes), max(most_z, z)
    return values, error, most_nodes, most_z


def refuse_negative(kernel: ProductKernel, X: np.ndarray) -> None:
    """Raise where a chi2 factor meets negative values."""
    if X.min(initial=0.0) < 0 and any(isinstance(factor, Chi2Factor) for factor in kernel.factors):
        raise ValueError("The chi2 kernel takes values of at least 0; X holds negative ones")


def torch_pair_integrals(
    kernel: ProductKernel,
    U: np.ndarray,
    player: np.ndarray,
    n_players: int,
    absence: np.ndarray,
    rules: QuadratureRules,
    device: str,
    dtype: str,
    rows: slice,
    columns: slice,
) -> tuple[np.ndarray, float, int]:
    """Compute a tile of the matrices A_j of a quadratic form.

    Parameters
    ----------
    kernel : ProductKernel
        Kernel of the form.
    U : ndarray of shape (N, d)
        Pool of rows.
    player : ndarray of shape (d,)
        Which player a column belongs to.
    n_players : int
        Number of players.
    absence : ndarray of shape (n_players,)
        Absence factors.
    rules : QuadratureRules
        Nodes.
    device, dtype : str
        Where, and in which precision.
    rows, columns : slice
        The pairs.

    Returns
    -------
    A : ndarray of shape (n_players, n_rows, n_columns)
        float64 values of the pairs.
    worst : float
        Error bound of the integrals.
    n_nodes : int
        Nodes used.
    """
    refuse_negative(kernel, U)
    where, precision = resolve_device(device), resolve_dtype(dtype)
    X, S, b = (
        torch.as_tensor(np.ascontiguousarray(a)).to(where, precision)
        for a in (U[rows], U[columns], absence)
    )
    one_sided = bool((absence == 1).all())
    D = player_tensor(kernel, X, S, torch.as_tensor(player, device=where), n_players, one_sided)
    if not one_sided:
        D = D - b
    A, worst, nodes, _ = integrate(D, b, rules)
    return A.permute(2, 0, 1).double().cpu().numpy(), worst, nodes


def torch_integrals(
    D: np.ndarray, rules: QuadratureRules, device: str, dtype: str
) -> tuple[np.ndarray, float]:
    """Integrate given factors minus 1, of shape (n, n_players); return A and its error bound."""
    where, precision = resolve_device(device), resolve_dtype(dtype)
    A, worst, _, _ = integrate(torch.as_tensor(D).to(where, precision), 1.0, rules)
    return A.double().cpu().numpy(), worst
