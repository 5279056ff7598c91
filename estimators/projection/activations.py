"""Activations that carry displacements, also those without a derivative."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from .arrays import require_positive
from .carrying import projected
from .graphs import check_pieces, piecewise_displacement, piecewise_value, relu_displacement

__all__ = [
    "ProjDropout",
    "ProjHardtanh",
    "ProjLeakyReLU",
    "ProjQuantize",
    "ProjReLU",
    "ProjSign",
    "ProjStep",
]


#: Knots, slopes and intercepts.
Pieces = tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]


def relu_back(
    d: torch.Tensor, y: torch.Tensor, x: torch.Tensor, *, needs: Any, weight: float
) -> tuple[torch.Tensor]:
    """What x gives up for the target y - d of the rectifier."""
    return (relu_displacement(x, d, weight),)


class ProjReLU(nn.Module):
    """Rectifier max(x, 0).

    Its backward pass projects onto the graph: an open unit takes the share weight / (1 + weight) of
    the displacement, down to 0; a closed one takes nothing, unless its target lies so high that the
    open branch is nearer. So units that are dead for a whole batch can come back.

    Parameters
    ----------
    weight : float, default=1.0
        Weight of the output in the distance, > 0. Large ones pass on nearly all of a displacement.

    Examples
    --------
    >>> import torch
    >>> from equipoise.estimators import ProjReLU
    >>> ProjReLU()(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def __init__(self, weight: float = 1.0) -> None:
        super().__init__()
        self.weight = require_positive("weight", weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The activation of x, of any shape."""
        return projected(F.relu, partial(relu_back, weight=self.weight), x)

    def extra_repr(self) -> str:
        """What `repr` shows."""
        return f"weight={self.weight:g}"


def pieces_back(
    d: torch.Tensor,
    y: torch.Tensor,
    x: torch.Tensor,
    *,
    needs: Any,
    pieces: Pieces,
    weight: float,
) -> tuple[torch.Tensor]:
    """What x gives up for the target y - d of a piecewise linear function."""
    x = x.contiguous()
    return (piecewise_displacement(x, d, *check_pieces(*pieces, like=x), weight)[0],)


def piecewise(
    x: torch.Tensor, knots: Sequence[float], slopes: Sequence[float], intercepts: Sequence[float]
) -> torch.Tensor:
    """Value of a piecewise linear function."""
    return piecewise_value(x.contiguous(), *check_pieces(knots, slopes, intercepts, like=x))


class PiecewiseLinear(nn.Module):
    """What the piecewise linear activations share: their pieces, and the projection onto them."""

    def __init__(
        self,
        knots: Sequence[float],
        slopes: Sequence[float],
        intercepts: Sequence[float],
        weight: float,
    ) -> None:
        super().__init__()
        self.weight = require_positive("weight", weight)
        self.pieces: Pieces = (tuple(knots), tuple(slopes), tuple(intercepts))
        check_pieces(*self.pieces, like=torch.empty(0, dtype=torch.float64))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        """The activation alone."""
        return piecewise(x, *self.pieces)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The activation of x, of any shape."""
        return projected(
            self.value, partial(pieces_back, pieces=self.pieces, weight=self.weight), x
        )

    def extra_repr(self) -> str:
        """What `repr` shows."""
        return f"weight={self.weight:g}"


class ProjLeakyReLU(PiecewiseLinear):
    """Leaky rectifier: x above 0, negative_slope x below.

    Parameters
    ----------
    negative_slope : float, default=0.01
        Slope below 0.
    weight : float, default=1.0
        Weight of the output in the distance, > 0.

    Examples
    --------
    >>> import torch
    >>> from equipoise.estimators import ProjLeakyReLU
    >>> ProjLeakyReLU(0.5)(torch.tensor([-1.0, 2.0]))
    tensor([-0.5000,  2.0000])
    """

    def __init__(self, negative_slope: float = 0.01, weight: float = 1.0) -> None:
        super().__init__([0.0], [float(negative_slope), 1.0], [0.0, 0.0], weight)
        self.negative_slope = float(negative_slope)

    def value(self, x: torch.Tensor) -> torch.Tensor:
        """The activation alone."""
        return F.leaky_relu(x, self.negative_slope)


class ProjHardtanh(PiecewiseLinear):
    """x, cut off below and above.

    Parameters
    ----------
    min_val, max_val : float, default=-1.0, 1.0
        The bounds, ``min_val < max_val``.
    weight : float, default=1.0
        Weight of the output in the distance, > 0.

    Examples
    --------
    >>> import torch
    >>> from equipoise.estimators import ProjHardtanh
    >>> ProjHardtanh()(torch.tensor([-3.0, 0.5]))
    tensor([-1.0000,  0.5000])
    """

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, weight: float = 1.0) -> None:
        if not min_val < max_val:
            raise ValueError(f"min_val={min_val!r} must be below max_val={max_val!r}")
        super().__init__([min_val, max_val], [0.0, 1.0, 0.0], [min_val, 0.0, max_val], weight)
        self.min_val, self.max_val = float(min_val), float(max_val)

    def value(self, x: torch.Tensor) -> torch.Tensor:
        """The activation alone."""
        return F.hardtanh(x, self.min_val, self.max_val)


class ProjSign(PiecewiseLinear):
    """Sign: -1 below 0, 1 from 0 on.

    A unit changes sides only where that is nearer than missing its target: where the target is
    beyond the middle and the input near 0.

    Parameters
    ----------
    weight : float, default=1.0
        Weight of the output in the distance, > 0.

    Examples
    --------
    >>> import torch
    >>> from equipoise.estimators import ProjSign
    >>> ProjSign()(torch.tensor([-3.0, 0.0]))
    tensor([-1.,  1.])
    """

    def __init__(self, weight: float = 1.0) -> None:
        super().__init__([0.0], [0.0, 0.0], [-1.0, 1.0], weight)


class ProjStep(PiecewiseLinear):
    """Step: 0 below 0, 1 from 0 on.

    Parameters
    ----------
    weight : float, default=1.0
        Weight of the output in the distance, > 0.

    Examples
    --------
    >>> import torch
    >>> from equipoise.estimators import ProjStep
    >>> ProjStep()(torch.tensor([-3.0, 0.0]))
    tensor([0., 1.])
    """

    def __init__(self, weight: float = 1.0) -> None:
        super().__init__([0.0], [0.0, 0.0], [0.0, 1.0], weight)


class ProjQuantize(PiecewiseLinear):
    """The nearest of a few levels.

    Parameters
    ----------
    levels : int or sequence of float, default=5
        The levels, rising; a number of them, at least 2, spreads them evenly over [-1, 1].
    weight : float, default=1.0
        Weight of the output in the distance, > 0.

    Examples
    --------
    >>> import torch
    >>> from equipoise.estimators import ProjQuantize
    >>> ProjQuantize(3)(torch.tensor([-3.0, 0.4, 0.6]))
    tensor([-1.,  0.,  1.])
    """

    def __init__(self, levels: int | Sequence[float] = 5, weight: float = 1.0) -> None:
        values = levels_of(levels)
        middles = [(a + b) / 2 for a, b in pairwise(values)]
        super().__init__(middles, [0.0] * len(values), values, weight)
        self.levels = tuple(values)


def levels_of(levels: Any) -> list[float]:
    """The levels of a quantiser."""
    if isinstance(levels, Integral) and not isinstance(levels, bool) and int(levels) >= 2:
        return torch.linspace(-1, 1, int(levels), dtype=torch.float64).tolist()
    if isinstance(levels, Sequence) and not isinstance(levels, str) and len(levels) >= 2:
        values = [float(v) for v in levels if isinstance(v, Real)]
        if len(values) == len(levels) and all(a < b for a, b in pairwise(values)):
            return values
    raise ValueError(
        f"levels={levels!r} is not allowed; allowed: an integer of at least 2, or rising numbers"
    )


def dropout_back(
    d: torch.Tensor, y: torch.Tensor, x: torch.Tensor, mask: torch.Tensor, *, needs: Any
) -> tuple[torch.Tensor, None]:
    """The displacement of the units kept."""
    return (torch.where(mask > 0, d, 0.0), None)


class ProjDropout(nn.Module):
    """Dropout: a displacement passes to the units that were kept as it is.

    Parameters
    ----------
    p : float, default=0.5
        Probability that a unit is dropped in training, in [0, 1).

    Examples
    --------
    >>> import torch
    >>> from equipoise.estimators import ProjDropout
    >>> ProjDropout().eval()(torch.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"p={p!r} is not allowed; allowed: numbers in [0, 1)")
        self.p = float(p)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The units kept over 1 - p in training; x in evaluation."""
        if not self.training or self.p == 0:
            return x
        # Dropping ones gives the mask of torch's own dropout for the same seed.
        mask = F.dropout(torch.ones_like(x), self.p)
        return projected(torch.mul, dropout_back, x, mask)

    def extra_repr(self) -> str:
        """What `repr` shows."""
        return f"p={self.p:g}"
