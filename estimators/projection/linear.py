"""Projection of a linear layer for a batch, without a copy of the weights for each sample.

Each pair of a sample and a unit is projected by itself (`bilinear`); the copies of a sample's h are
averaged over the units, those of a unit's w over the samples. With S = u^2 / (1 - u^2) and R = u /
(1 - u^2), both (B, N), for inputs H (B, n) and weights W (N, n),

    H' - H = (H * rowsum(S) + sqrt(alpha) R W) / N,  W' - W = (W * colsum(S) + R^T H / sqrt(alpha))
    / B:

two matrix products, memory O(Bn + BN + Nn). A bias is the weight of a constant input 1.
"""

from typing import Any, NamedTuple

import torch

from .arrays import as_tensors, require_option, require_positive
from .bilinear import multiplier
from .kernels import layer_multipliers
from .maximum_norm import layer_displacements_linf

__all__ = ["LinearProjection", "balanced_alpha", "layer_displacements", "project_linear_batch"]


class LinearProjection(NamedTuple):
    """A projected layer.

    Attributes
    ----------
    H : array or tensor of shape (B, n)
        Inputs.
    W : array or tensor of shape (N, n)
        Weights.
    bias : array or tensor of shape (N,) or None
        Biases.
    Z : array or tensor of shape (B, N)
        Outputs of the projected copies, before averaging.
    multiplier : array or tensor of shape (B, N)
        The multipliers u in [-1, 1]; for the maximum norm the signed radii.

    Examples
    --------
    >>> from equipoise.estimators import project_linear_batch
    >>> layer = project_linear_batch([[1.0]], [[1.0]], [[1.0]])
    >>> float(layer.W[0, 0]), layer.bias is None
    (1.0, True)
    """

    H: Any
    W: Any
    bias: Any
    Z: Any
    multiplier: Any


class Displacements(NamedTuple):
    """Current minus projected; None where it wasn't wanted.

    ``mix`` (B, N) is u / (1 - u^2), for the maximum norm the signed radius.
    """

    H: torch.Tensor | None
    W: torch.Tensor | None
    bias: torch.Tensor | None
    mix: torch.Tensor


def squared_norms(
    H: torch.Tensor, W: torch.Tensor, bias: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """|h_b|^2 (B,) and |w_j|^2 (N,), with the constant input and the bias."""
    h2, w2 = torch.linalg.vecdot(H, H), torch.linalg.vecdot(W, W)
    return (h2, w2) if bias is None else (h2 + 1, w2 + bias**2)


def balanced_alpha(h2: torch.Tensor, w2: torch.Tensor) -> float:
    """The mean squared norm of the inputs over that of the weights; 1 where either is 0."""
    inputs, weights = float(h2.mean()), float(w2.mean())
    return inputs / weights if inputs > 0 and weights > 0 else 1.0


def reduced_multipliers(
    P: torch.Tensor,
    d: torch.Tensor,
    h2: torch.Tensor,
    w2: torch.Tensor,
    omega: torch.Tensor,
    alpha: float,
    gamma: float,
    solver: str,
) -> tuple[torch.Tensor, ...]:
    """``mix`` (B, N), and the sums of `bilinear.Multiplier`'s other parts that the layer needs."""
    if P.device.type == "cpu":
        mix = torch.empty_like(P, memory_format=torch.contiguous_format)
        sums = [torch.zeros_like(v) for v in (h2, w2, h2, w2)]
        a, b, c, e, f = (t.contiguous().numpy() for t in (P, d, h2, w2, omega))
        filled = (mix.numpy(), *(t.numpy() for t in sums))
        layer_multipliers(a, b, c, e, f, alpha, gamma, solver == "one_step", *filled)
        return mix, *sums
    m = multiplier(P, d, h2[:, None], w2[None], alpha, gamma, solver)
    weighted = omega[:, None]
    lengths = m.sign * m.spread / alpha**0.5
    return (
        m.mix,
        m.grow_h.sum(1),
        (weighted * m.grow_w).sum(0),
        m.spread.sum(1),
        (weighted * lengths).sum(0),
    )


def layer_displacements(
    H: torch.Tensor,
    W: torch.Tensor,
    bias: torch.Tensor | None,
    P: torch.Tensor,
    d: torch.Tensor,
    *,
    alpha: float | str = 1.0,
    gamma: float = 1.0,
    norm: str = "l2",
    reduction: str = "mean",
    solver: str = "exact",
    omega: torch.Tensor | None = None,
    wants: tuple[bool, bool] = (True, True),
) -> Displacements:
    """What a layer's inputs, weights and biases give up for displacements d = P - Z from above.

    Parameters
    ----------
    H, W, bias : tensor
        Inputs (B, n), weights (N, n), biases (N,) or None.
    P, d : tensor of shape (B, N)
        The layer's outputs, bias included, and what is to be taken off them.
    omega : tensor of shape (B,), optional
        Weights of the samples in the consensus; None: all 1.
    wants : (bool, bool)
        Whether the displacement of H, and that of W and the bias, is needed.
    """
    (B, n), N = H.shape, len(W)
    weight = H.new_ones(B) if omega is None else omega.to(H)
    total = float(weight.sum())
    share = 1 / total if total > 0 else 0.0
    units = 1 / N if reduction == "mean" else 1.0
    if norm == "linf":
        return linf_displacements(H, W, bias, d, gamma, weight, share, units, wants)
    h2, w2 = squared_norms(H, W, bias)
    alpha = balanced_alpha(h2, w2) if isinstance(alpha, str) else alpha
    root = alpha**0.5
    mix, grow_h, grow_w, spread_h, spread_w = reduced_multipliers(
        P, d, h2, w2, weight, alpha, gamma, solver
    )
    dH = dW = db = None
    if wants[0]:
        dH = torch.addcmul(spread_h[:, None] * n**-0.5, H, grow_h[:, None])
        dH.addmm_(mix, W, beta=-units, alpha=-units * root)
    if wants[1]:
        side = mix if omega is None else mix * weight[:, None]
        dW = torch.addcmul(spread_w[:, None] * n**-0.5, W, grow_w[:, None])
        dW.addmm_(side.T, H, beta=-share, alpha=-share / root)
        if bias is not None:
            db = -share * (grow_w * bias + side.sum(0) / root)
    return Displacements(dH, dW, db, mix)


def linf_displacements(
    H: torch.Tensor,
    W: torch.Tensor,
    bias: torch.Tensor | None,
    d: torch.Tensor,
    gamma: float,
    weight: torch.Tensor,
    share: float,
    units: float,
    wants: tuple[bool, bool],
) -> Displacements:
    """The same in the maximum norm, on the CPU, pair by pair."""
    if H.device.type != "cpu":
        raise NotImplementedError(
            f"norm='linf' runs on the CPU only; got tensors on {H.device}: use norm='l2' there"
        )
    if bias is not None:
        H = torch.cat([H, H.new_ones(len(H), 1)], dim=1)
        W = torch.cat([W, bias[:, None]], dim=1)
    dH, dW, radius = torch.zeros_like(H), torch.zeros_like(W), torch.zeros_like(d)
    radius = radius.contiguous()
    h, w, gap, omega = (t.contiguous().numpy() for t in (H, W, d, weight))
    layer_displacements_linf(h, w, gap, omega, gamma, dH.numpy(), dW.numpy(), radius.numpy())
    dH, dW, db = -units * dH, -share * dW, None
    if bias is not None:
        dH, dW, db = dH[:, :-1], dW[:, :-1], dW[:, -1]
    return Displacements(
        dH if wants[0] else None, dW if wants[1] else None, db if wants[1] else None, radius
    )


def project_linear_batch(
    H: Any,
    W: Any,
    Z: Any,
    bias: Any = None,
    alpha: float = 1.0,
    gamma: float = 1.0,
    reduction: str = "mean",
    norm: str = "l2",
    solver: str = "exact",
    sample_weight: Any = None,
) -> LinearProjection:
    """Project a linear layer and a batch onto H W^T + bias = Z, and average the copies.

    Parameters
    ----------
    H : array-like or tensor of shape (B, n)
        Inputs.
    W : array-like or tensor of shape (N, n)
        Weights.
    Z : array-like or tensor of shape (B, N)
        Outputs wanted.
    bias : array-like or tensor of shape (N,), optional
        Biases.
    alpha, gamma : float, default=1.0
        Weights of the weights and outputs in the distance, > 0; alpha=1 for norm="linf".
    reduction : {"mean", "sum"}, default="mean"
        Whether the displacements of a sample's copies, one for each unit, are averaged or added.
    norm : {"l2", "linf"}, default="l2"
        The distance.
    solver : {"exact", "one_step"}, default="exact"
        As for `project_bilinear`.
    sample_weight : array-like of shape (B,), optional
        Weights of the samples in the mean over the batch, >= 0.

    Returns
    -------
    LinearProjection
        Tensors if a tensor was given, else arrays.

    Raises
    ------
    ValueError
        If shapes don't fit, alpha or gamma isn't positive, or an option is unknown.

    Examples
    --------
    >>> from equipoise.estimators import project_linear_batch
    >>> H, W = [[1.0, 2.0], [0.0, -1.0]], [[1.0, 0.0], [0.5, -0.5]]
    >>> project_linear_batch(H, W, [[2.0, 0.0], [1.0, 1.0]]).W.round(4)
    array([[ 1.123 , -0.0276],
           [ 0.5483, -0.5212]])
    """
    alpha, gamma = require_positive("alpha", alpha), require_positive("gamma", gamma)
    require_option("reduction", reduction, ("mean", "sum"))
    require_option("norm", norm, ("l2", "linf"))
    require_option("solver", solver, ("exact", "one_step"))
    if norm == "linf" and alpha != 1:
        raise ValueError(f"alpha={alpha} is not available with norm='linf'; allowed: 1")
    arrays = {"H": H, "W": W, "Z": Z, "bias": bias, "sample_weight": sample_weight}
    given = {name: array for name, array in arrays.items() if array is not None}
    tensors, back = as_tensors(**given)
    named = dict(zip(given, tensors, strict=True))
    H, W, Z = named["H"], named["W"], named["Z"]
    b, omega = named.get("bias"), named.get("sample_weight")
    expected = {"H": (Z.shape[0], W.shape[-1]), "W": (Z.shape[-1], W.shape[-1]), "Z": Z.shape}
    for name, array in (("H", H), ("W", W), ("Z", Z)):
        if array.ndim != 2 or tuple(array.shape) != tuple(expected[name]):
            raise ValueError(
                f"{name} has shape {tuple(array.shape)}; expected H (B, n), W (N, n) and Z (B, N), "
                f"got {tuple(H.shape)}, {tuple(W.shape)} and {tuple(Z.shape)}"
            )
    if b is not None and b.shape != (len(W),):
        raise ValueError(f"bias has shape {tuple(b.shape)}; expected ({len(W)},)")
    if omega is not None and (omega.shape != (len(H),) or bool((omega < 0).any())):
        raise ValueError(f"sample_weight must hold {len(H)} numbers of at least 0")
    P = torch.nn.functional.linear(H, W, b)
    moved = layer_displacements(
        H, W, b, P, P - Z, alpha=alpha, gamma=gamma, norm=norm, reduction=reduction,
        solver=solver, omega=omega,
    )  # fmt: skip
    assert moved.H is not None and moved.W is not None
    if norm == "linf":
        u, step = moved.mix, moved.mix / gamma**2
    else:
        h2, w2 = squared_norms(H, W, b)
        u = multiplier(P, P - Z, h2[:, None], w2[None], alpha, gamma, solver).u
        step = alpha**0.5 / gamma**2 * u
    return LinearProjection(
        back(H - moved.H),
        back(W - moved.W),
        None if b is None or moved.bias is None else back(b - moved.bias),
        back(Z - step),
        back(u),
    )
