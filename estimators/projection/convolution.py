"""Convolution and pooling that carry displacements.

A convolution is a linear layer whose batch is made of all positions of all samples, followed by the
consensus over the patches that share a pixel. In the l2 norm no patch is stored: with the
multipliers S, R of each position and unit (see `linear`) and * for correlation, patches' squared
norms are x^2 * 1, a pixel's displacement is x times the transposed convolution of rowsum(S) with
ones plus that of R with W, and the weights' is W colsum(S) plus the correlation of x with R.
"""

from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.grad import conv2d_input, conv2d_weight

from .arrays import require_option, require_positive
from .carrying import projected
from .graphs import max_displacement
from .layers import LayerOptions, rows_weight
from .linear import balanced_alpha, linf_displacements, reduced_multipliers
from .modes import current_weights

__all__ = ["ProjAvgPool2d", "ProjConv2d", "ProjMaxPool2d"]


def as_rows(t: torch.Tensor) -> torch.Tensor:
    """(B, N, *positions) as rows (B * positions, N)."""
    return t.flatten(2).transpose(1, 2).reshape(-1, t.shape[1])


def as_maps(rows: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Rows (B * positions, N) as maps (B, N, *positions) of a tensor's positions."""
    B, positions = len(like), like.shape[2:]
    return rows.reshape(B, positions.numel(), -1).transpose(1, 2).reshape(B, -1, *positions)


def spread_back(
    y: torch.Tensor, x: torch.Tensor, kernel: torch.Size | tuple[int, int], settings: dict[str, Any]
) -> torch.Tensor:
    """Sum of y (B, 1, *positions) over the windows that hold a pixel, (B, 1, *pixels)."""
    ones = y.new_ones(1, 1, *kernel)
    return conv2d_input((len(y), 1, *x.shape[2:]), ones, y, **settings)


def overlaps(
    y: torch.Tensor, x: torch.Tensor, kernel: torch.Size | tuple[int, int], settings: dict[str, Any]
) -> torch.Tensor:
    """Number of windows that hold a pixel, at least 1, (1, 1, *pixels)."""
    return spread_back(y.new_ones(1, 1, *y.shape[2:]), x, kernel, settings).clamp(min=1)


def conv_back(
    d: torch.Tensor,
    y: torch.Tensor,
    x: torch.Tensor,
    W: torch.Tensor,
    bias: torch.Tensor | None,
    *,
    needs: tuple[bool, ...],
    options: LayerOptions,
    settings: dict[str, Any],
    groups: int,
    omega: torch.Tensor | None,
) -> tuple[torch.Tensor | None, ...]:
    """What inputs, weights and biases give up, in the l2 norm."""
    N, kernel = len(W), W.shape[2:]
    size = W[0].numel()
    units = groups / N if options.reduction == "mean" else 1.0
    rows = rows_weight(omega, len(x), len(x) * y[0, 0].numel())
    weight = y.new_ones(len(x) * y[0, 0].numel()) if rows is None else rows.to(y)
    total = float(weight.sum())
    share = 1 / total if total > 0 else 0.0
    squares = x.square().reshape(len(x) * groups, -1, *x.shape[2:]).sum(1, keepdim=True)
    h2 = F.conv2d(squares, x.new_ones(1, 1, *kernel), **settings)
    h2 = (
        h2.reshape(len(x), groups, -1).transpose(1, 2).reshape(-1, groups)
    )  # (B * positions, groups)
    w2 = W.square().flatten(1).sum(1)
    if bias is not None:
        h2, w2 = h2 + 1, w2 + bias.square()
    alpha = balanced_alpha(h2, w2) if isinstance(options.alpha, str) else options.alpha
    root = alpha**0.5
    P, D = as_rows(y), as_rows(d)
    parts = [
        reduced_multipliers(
            P[:, g], D[:, g], h2[:, k].contiguous(), w2[g], weight, alpha, options.gamma,
            options.solver,
        )
        for k, g in enumerate(slice(k * N // groups, (k + 1) * N // groups) for k in range(groups))
    ]  # fmt: skip
    mixes, grows_h, grows_w, spreads_h, spreads_w = zip(*parts, strict=True)
    mix = as_maps(torch.cat(mixes, 1), y)
    dx = dW = db = None
    if needs[0]:
        grow = as_maps(torch.stack(grows_h, 1), y).reshape(len(x) * groups, 1, *y.shape[2:])
        along = as_maps(torch.stack(spreads_h, 1), y).reshape(len(x) * groups, 1, *y.shape[2:])
        grow, along = (spread_back(t, x, kernel, settings) for t in (grow, along * size**-0.5))
        pixels = x.reshape(len(x) * groups, -1, *x.shape[2:])
        dx = torch.addcmul(along, pixels, grow).reshape(x.shape)
        dx += root * conv2d_input(x.shape, W, mix, groups=groups, **settings)
        dx *= -units
        if options.reduction == "mean":
            dx /= overlaps(y, x, kernel, settings)
    if needs[1] or needs[2]:
        by_sample = None if omega is None else omega.to(y)[:, None, None, None]
        side = mix if by_sample is None else mix * by_sample
        grow_w, spread_w = torch.cat(grows_w), torch.cat(spreads_w)
        dW = torch.addcmul(
            (spread_w * size**-0.5)[:, None, None, None], W, grow_w[:, None, None, None]
        )
        dW += conv2d_weight(x, W.shape, side, groups=groups, **settings) / root
        dW *= -share
        if bias is not None:
            db = -share * (grow_w * bias + side.sum((0, 2, 3)) / root)
    return dx, dW, db


def conv_back_linf(
    d: torch.Tensor,
    y: torch.Tensor,
    x: torch.Tensor,
    W: torch.Tensor,
    bias: torch.Tensor | None,
    *,
    needs: tuple[bool, ...],
    options: LayerOptions,
    settings: dict[str, Any],
    groups: int,
    omega: torch.Tensor | None,
) -> tuple[torch.Tensor | None, ...]:
    """The same in the maximum norm, from the patches themselves."""
    N, kernel = len(W), W.shape[2:]
    positions = y[0, 0].numel()
    rows = rows_weight(omega, len(x), len(x) * positions)
    weight = y.new_ones(len(x) * positions) if rows is None else rows.to(y)
    total = float(weight.sum())
    share = 1 / total if total > 0 else 0.0
    units = groups / N if options.reduction == "mean" else 1.0
    patches = F.unfold(x, kernel, **settings).reshape(len(x), groups, -1, positions)
    folded, dWs, dbs = [], [], []
    for k in range(groups):
        g = slice(k * N // groups, (k + 1) * N // groups)
        moved = linf_displacements(
            as_rows(patches[:, k]).contiguous(), W[g].flatten(1), None if bias is None else bias[g],
            as_rows(d[:, g]), options.gamma, weight, share, units, (True, True),
        )  # fmt: skip
        assert moved.H is not None and moved.W is not None
        folded.append(moved.H.reshape(len(x), positions, -1).transpose(1, 2))
        dWs.append(moved.W)
        if moved.bias is not None:
            dbs.append(moved.bias)
    dx = F.fold(torch.cat(folded, 1), x.shape[2:], kernel, **settings)
    if options.reduction == "mean":
        dx = dx / overlaps(y, x, kernel, settings)
    return dx, torch.cat(dWs).reshape(W.shape), torch.cat(dbs) if dbs else None


class ProjConv2d(nn.Conv2d):
    """Convolution whose backward pass projects, as that of `ProjLinear` does at each position.

    The copies of a pixel, one for each patch that holds it, are averaged, and those of the weights
    over all positions and samples. Memory grows as in `torch.nn.Conv2d` with norm="l2"; "linf"
    stores the patches.

    Parameters
    ----------
    in_channels, out_channels : int
        Numbers of channels.
    kernel_size, stride, padding, dilation : int or tuple, default=1, 0 and 1
        As in `torch.nn.Conv2d`; padding is with zeros and in pixels.
    groups : int, default=1
        As in `torch.nn.Conv2d`.
    bias : bool, default=True
        Whether there is a bias.
    alpha, gamma, norm, solver : object
        As in `ProjLinear`.
    reduction : {"mean", "sum"}, default="mean"
        Whether the displacements of the copies of a pixel, over units and patches, are averaged or
        added.
    device, dtype : object, optional
        As in `torch.nn.Conv2d`.

    Raises
    ------
    ValueError
        If an option isn't allowed.

    Examples
    --------
    >>> import torch
    >>> from equipoise.estimators import ProjConv2d
    >>> ProjConv2d(1, 4, kernel_size=3)(torch.zeros(2, 1, 8, 8)).shape
    torch.Size([2, 4, 6, 6])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        padding: int | tuple[int, int] = 0,
        dilation: int | tuple[int, int] = 1,
        groups: int = 1,
        bias: bool = True,
        alpha: float | str = 1.0,
        gamma: float = 1.0,
        norm: str = "l2",
        reduction: str = "mean",
        solver: str = "exact",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        self.options = LayerOptions(alpha, gamma, norm, reduction, solver).checked()
        if isinstance(padding, str):
            raise ValueError(f"padding={padding!r} is not available; allowed: numbers of pixels")
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
            device=device, dtype=dtype,
        )  # fmt: skip

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Maps (B, out_channels, ...) for maps (B, in_channels, height, width)."""
        if input.ndim != 4:
            raise ValueError(
                f"input has shape {tuple(input.shape)}; expected (B, channels, height, width)"
            )
        settings = {"stride": self.stride, "padding": self.padding, "dilation": self.dilation}
        back = partial(
            conv_back_linf if self.options.norm == "linf" else conv_back,
            options=self.options, settings=settings, groups=self.groups, omega=current_weights(),
        )  # fmt: skip
        value = partial(F.conv2d, groups=self.groups, **settings)
        return projected(value, back, input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """What `repr` shows."""
        return f"{super().extra_repr()}, {self.options}"


def pair(value: Any) -> tuple[int, int]:
    """One number for both directions, or two."""
    return (value, value) if isinstance(value, int) else (value[0], value[1])


def max_back(
    d: torch.Tensor,
    y: torch.Tensor,
    x: torch.Tensor,
    *,
    needs: Any,
    kernel: tuple[int, int],
    settings: dict[str, Any],
    reduction: str,
    weight: float,
) -> tuple[torch.Tensor]:
    """What pixels give up for the target y - d of the maxima."""
    (top, left), spacing = settings["padding"], {**settings, "padding": 0}
    padded = F.pad(x, (left, left, top, top), value=-torch.inf)
    B, C = x.shape[:2]
    windows = F.unfold(padded, kernel, **spacing).reshape(B, C, -1, y[0, 0].numel())
    moved = max_displacement(windows.transpose(2, 3), d.flatten(2), weight)
    moved = moved.transpose(2, 3).reshape(B, -1, y[0, 0].numel())
    dx = F.fold(moved, padded.shape[2:], kernel, **spacing)
    dx = dx[:, :, top : top + x.shape[2], left : left + x.shape[3]]
    return (dx / overlaps(y, x, kernel, settings) if reduction == "mean" else dx,)


class ProjMaxPool2d(nn.Module):
    """Maximum over windows; a displacement goes to the largest pixels of a window.

    A target above the maximum raises the largest pixel. One below lowers the largest pixels until
    they meet: more than one may learn.

    Parameters
    ----------
    kernel_size, stride, padding, dilation : int or tuple
        As in `torch.nn.MaxPool2d`; stride=None takes the kernel's size.
    weight : float, default=1.0
        Weight of the output in the distance, > 0.
    reduction : {"mean", "sum"}, default="mean"
        Whether displacements of a pixel in several windows are averaged or added.

    Examples
    --------
    >>> import torch
    >>> from equipoise.estimators import ProjMaxPool2d
    >>> ProjMaxPool2d(2)(torch.arange(4.0).reshape(1, 1, 2, 2))
    tensor([[[[3.]]]])
    """

    def __init__(
        self,
        kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] | None = None,
        padding: int | tuple[int, int] = 0,
        dilation: int | tuple[int, int] = 1,
        weight: float = 1.0,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        self.kernel_size = pair(kernel_size)
        self.stride = pair(kernel_size if stride is None else stride)
        self.padding, self.dilation = pair(padding), pair(dilation)
        self.weight = require_positive("weight", weight)
        self.reduction = require_option("reduction", reduction, ("mean", "sum"))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Maps (B, C, ...) for maps (B, C, height, width)."""
        settings = {"stride": self.stride, "padding": self.padding, "dilation": self.dilation}
        back = partial(
            max_back, kernel=self.kernel_size, settings=settings, reduction=self.reduction,
            weight=self.weight,
        )  # fmt: skip
        return projected(partial(F.max_pool2d, kernel_size=self.kernel_size, **settings), back, x)

    def extra_repr(self) -> str:
        """What `repr` shows."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


def average_back(
    d: torch.Tensor,
    y: torch.Tensor,
    x: torch.Tensor,
    *,
    needs: Any,
    kernel: tuple[int, int],
    settings: dict[str, Any],
    reduction: str,
    weight: float,
) -> tuple[torch.Tensor]:
    """What pixels give up for the target y - d of the means."""
    B, C = x.shape[:2]
    shift = (d * (weight / (kernel[0] * kernel[1] + weight))).reshape(B * C, 1, *d.shape[2:])
    dx = spread_back(shift, x, kernel, settings).reshape(x.shape)
    return (dx / overlaps(y, x, kernel, settings) if reduction == "mean" else dx,)


class ProjAvgPool2d(nn.Module):
    """Mean over windows; a displacement shifts all pixels of a window alike.

    Parameters
    ----------
    kernel_size, stride, padding : int or tuple
        As in `torch.nn.AvgPool2d`; stride=None takes the kernel's size; padding zeros count.
    weight : float, default=1.0
        Weight of the output in the distance, > 0.
    reduction : {"mean", "sum"}, default="mean"
        Whether displacements of a pixel in several windows are averaged or added.

    Examples
    --------
    >>> import torch
    >>> from equipoise.estimators import ProjAvgPool2d
    >>> ProjAvgPool2d(2)(torch.arange(4.0).reshape(1, 1, 2, 2))
    tensor([[[[1.5000]]]])
    """

    def __init__(
        self,
        kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] | None = None,
        padding: int | tuple[int, int] = 0,
        weight: float = 1.0,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        self.kernel_size = pair(kernel_size)
        self.stride = pair(kernel_size if stride is None else stride)
        self.padding = pair(padding)
        self.weight = require_positive("weight", weight)
        self.reduction = require_option("reduction", reduction, ("mean", "sum"))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Maps (B, C, ...) for maps (B, C, height, width)."""
        settings = {"stride": self.stride, "padding": self.padding}
        back = partial(
            average_back, kernel=self.kernel_size, settings=settings, reduction=self.reduction,
            weight=self.weight,
        )  # fmt: skip
        value = partial(
            F.avg_pool2d,
            kernel_size=self.kernel_size,
            stride=self.stride,
            padding=self.padding,
        )
        return projected(value, back, x)

    def extra_repr(self) -> str:
        """What `repr` shows."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"
