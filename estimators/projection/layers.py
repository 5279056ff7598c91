"""Linear layers and sums that carry displacements."""

from functools import partial
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

from .arrays import require_option, require_positive
from .carrying import projected
from .linear import layer_displacements
from .modes import current_weights

__all__ = ["LayerOptions", "ProjAdd", "ProjLinear", "branch", "rows_weight"]


class LayerOptions(NamedTuple):
    """How a layer with weights projects."""

    alpha: float | str = 1.0
    gamma: float = 1.0
    norm: str = "l2"
    reduction: str = "mean"
    solver: str = "exact"

    def checked(self) -> "LayerOptions":
        """The options, or a ValueError that names the one that isn't allowed."""
        alpha = self.alpha
        if isinstance(alpha, str):
            require_option("alpha", alpha, ("auto",))
        else:
            alpha = require_positive("alpha", alpha)
        require_option("norm", self.norm, ("l2", "linf"))
        require_option("reduction", self.reduction, ("mean", "sum"))
        require_option("solver", self.solver, ("exact", "one_step"))
        if self.norm == "linf" and (alpha != 1 or self.solver != "exact"):
            raise ValueError(
                f"alpha={alpha!r}, solver={self.solver!r} are not available with norm='linf'; "
                "allowed: alpha=1, solver='exact'"
            )
        return self._replace(alpha=alpha, gamma=require_positive("gamma", self.gamma))

    def __str__(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self._asdict().items())


def rows_weight(omega: torch.Tensor | None, samples: int, rows: int) -> torch.Tensor | None:
    """The weight of each row where a sample has several, one a position."""
    if omega is None:
        return None
    if len(omega) != samples:
        raise ValueError(
            f"consensus_weights holds {len(omega)} weights, but the batch has {samples} samples"
        )
    return omega.repeat_interleave(rows // samples) if samples else omega


def linear_back(
    d: torch.Tensor,
    y: torch.Tensor,
    x: torch.Tensor,
    W: torch.Tensor,
    bias: torch.Tensor | None,
    *,
    needs: tuple[bool, ...],
    options: LayerOptions,
    omega: torch.Tensor | None,
) -> tuple[torch.Tensor | None, ...]:
    """What inputs, weights and biases give up."""
    N, n = W.shape
    H = x.reshape(-1, n)
    samples = len(x) if x.ndim > 1 else 1
    moved = layer_displacements(
        H, W, bias, y.reshape(-1, N), d.reshape(-1, N), **options._asdict(),
        omega=rows_weight(omega, samples, len(H)), wants=(needs[0], needs[1] or needs[2]),
    )  # fmt: skip
    return None if moved.H is None else moved.H.reshape(x.shape), moved.W, moved.bias


class ProjLinear(nn.Linear):
    """Linear layer x W^T + b whose backward pass projects onto its graph.

    For each pair of a sample and a unit (h, w, z) moves to the nearest point with w.h = z; the
    copies of a sample's h are averaged over the units, those of a unit's w over the samples.

    Parameters
    ----------
    in_features, out_features : int
        Sizes n and N.
    bias : bool, default=True
        Whether there is a bias: the weight of a constant input 1.
    alpha : float or "auto", default=1.0
        Weight of |w' - w|^2 in the distance, > 0: large ones move inputs more than weights. "auto"
        takes mean |h|^2 / mean |w|^2 in each batch.
    gamma : float, default=1.0
        gamma^2 is the weight of (z' - z)^2, > 0.
    norm : {"l2", "linf"}, default="l2"
        The distance; "linf" takes alpha=1, solver="exact" and the CPU only.
    reduction : {"mean", "sum"}, default="mean"
        Whether the displacements of a sample's copies are averaged or added. The mean shrinks the
        signal with every layer.
    solver : {"exact", "one_step"}, default="exact"
        The projection, or its first Newton step: cheaper, and close to it for small displacements.
    device, dtype : object, optional
        As in `torch.nn.Linear`.

    Raises
    ------
    ValueError
        If an option isn't allowed.

    Notes
    -----
    With mean reduction |h - h'| <= gamma |d| / sqrt(N) for each sample: the point of the forward
    pass is itself feasible, at the cost gamma^2 d^2.

    References
    ----------
    .. [1] V. Elser, "Learning without loss", arXiv 1911.00493.
    .. [2] A. Bergmeister et al., "A projection-based framework for gradient-free and parallel
           learning", arXiv 2506.05878.

    Examples
    --------
    >>> import torch
    >>> from equipoise.estimators import ProjLinear, ProxMSELoss
    >>> layer = ProjLinear(2, 1, bias=False)
    >>> _ = layer.weight.data.copy_(torch.tensor([[3.0, -1.0]]))
    >>> x = torch.tensor([[1.0, 2.0]], requires_grad=True)
    >>> ProxMSELoss(lam=1.0)(layer(x), torch.tensor([[7.0]])).backward()  # the target is 4
    >>> [round(v, 4) for v in (x - x.grad)[0].tolist()]
    [1.5613, 1.8838]
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
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
        super().__init__(in_features, out_features, bias, device=device, dtype=dtype)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Outputs (..., N) for inputs (..., n)."""
        back = partial(linear_back, options=self.options, omega=current_weights())
        return projected(F.linear, back, input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """What `repr` shows."""
        return f"{super().extra_repr()}, {self.options}"


def add_back(
    d: torch.Tensor, y: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, needs: Any, weight: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """What two terms give up for the target y - d of their sum."""
    shift = weight * d / (1 + 2 * weight)
    return shift, shift


class ProjAdd(nn.Module):
    """Sum of two branches of one shape.

    Both terms take weight / (1 + 2 weight) of the displacement. (`a + b` would hand all of it to
    both, as gradients do.)

    Parameters
    ----------
    weight : float, default=1.0
        Weight of the output in the distance, > 0.

    Examples
    --------
    >>> import torch
    >>> from equipoise.estimators import ProjAdd
    >>> ProjAdd()(torch.ones(2), torch.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, weight: float = 1.0) -> None:
        super().__init__()
        self.weight = require_positive("weight", weight)

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """a + b."""
        if a.shape != b.shape:
            raise ValueError(
                f"a and b have shapes {tuple(a.shape)} and {tuple(b.shape)}; allowed: the same"
            )
        return projected(torch.add, partial(add_back, weight=self.weight), a, b)

    def extra_repr(self) -> str:
        """What `repr` shows."""
        return f"weight={self.weight:g}"


def branch_back(
    d: torch.Tensor, y: torch.Tensor, x: torch.Tensor, *, needs: Any, n: int
) -> tuple[torch.Tensor]:
    """A copy's share in the consensus."""
    return (d / n,)


def branch(x: torch.Tensor, n: int) -> tuple[torch.Tensor, ...]:
    """Copies of a tensor that is used n times, for exact consensus: their displacements are
    averaged.

    Without it autograd adds them, as it does gradients.

    Parameters
    ----------
    x : tensor
        Any shape.
    n : int
        Number of copies, at least 1.

    Returns
    -------
    tuple of tensor
        n tensors equal to x.

    Raises
    ------
    ValueError
        If n isn't a positive whole number.

    Examples
    --------
    >>> import torch
    >>> from equipoise.estimators import branch
    >>> x = torch.tensor(1.0, requires_grad=True)
    >>> a, b = branch(x, 2)
    >>> (3 * a + b).backward()
    >>> x.grad
    tensor(2.)
    """
    if isinstance(n, bool) or int(n) != n or n < 1:
        raise ValueError(f"n={n!r} is not allowed; allowed: whole numbers of at least 1")
    copies = (projected(torch.clone, partial(branch_back, n=int(n)), x) for _ in range(int(n)))
    return tuple(copies)
