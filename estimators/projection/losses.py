"""Losses whose backward pass hands down the displacement to a proximal point or a set.

The value is the ordinary loss, for logging: the mean over samples of what each sample loses. The
displacement of a sample, u - prox(u), isn't divided by the number of samples: that is the mean
over the batch inside each layer. In gradient mode both are the ordinary ones.
"""

from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from .arrays import labels_of, require_option, require_positive
from .carrying import projected
from .modes import current_weights
from .proximal import cross_entropy_displacement
from .sets import margin_displacement

__all__ = [
    "MarginLoss",
    "ProxAbsoluteLoss",
    "ProxCrossEntropyLoss",
    "ProxHingeLoss",
    "ProxHuberLoss",
    "ProxMSELoss",
]


def check_scale(scale: float) -> None:
    """Displacements don't shrink with a loss, so a scaled loss must not be unscaled afterwards."""
    if not 0 <= scale <= 1:
        raise RuntimeError(
            f"the loss was multiplied by {scale:g} before backward(); displacements ignore the "
            "size of a loss, and a GradScaler that divides them again would make them vanish: call "
            "backward() on the loss itself"
        )


def loss_back(
    scale: torch.Tensor, value: torch.Tensor, u: torch.Tensor, *, needs: Any, loss: "ProximalLoss",
    y: torch.Tensor,
) -> tuple[torch.Tensor]:  # fmt: skip
    """The displacement of the outputs, whatever the size of the loss; none if that is 0."""
    check_scale(float(scale))
    return (loss.displacement(u, y) if float(scale) else torch.zeros_like(u),)


class ProximalLoss(nn.Module):
    """What the losses share: the mean over samples, and the way back."""

    def checked(self, u: torch.Tensor, y: Any) -> torch.Tensor:
        """Targets of the outputs' shape."""
        y = torch.as_tensor(y, device=u.device)
        if y.shape != u.shape:
            raise ValueError(
                f"target has shape {tuple(y.shape)}; expected that of the outputs, {tuple(u.shape)}"
            )
        return y.to(u.dtype)

    def losses(self, u: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The loss of each entry or sample; the first dimension counts samples."""
        raise NotImplementedError

    def displacement(self, u: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """u - prox(u)."""
        raise NotImplementedError

    def value(
        self, u: torch.Tensor, *, y: torch.Tensor, omega: torch.Tensor | None
    ) -> torch.Tensor:
        """The (weighted) mean over samples."""
        each = self.losses(u, y)
        each = each.reshape(len(each), -1).sum(1) if each.ndim else each[None]
        if omega is None:
            return each.mean()
        omega = omega.to(each)
        return (each * omega).sum() / omega.sum().clamp(min=torch.finfo(each.dtype).tiny)

    def forward(self, input: torch.Tensor, target: Any) -> torch.Tensor:
        """The mean loss of outputs (B, ...) against targets."""
        y = self.checked(input, target)
        value = partial(self.value, y=y, omega=current_weights())
        return projected(value, partial(loss_back, loss=self, y=y), input)


class ProxCrossEntropyLoss(ProximalLoss):
    """Cross-entropy of softmax(u) to a label; displacement (softmax(u') - e_y) / lam.

    Parameters
    ----------
    lam : float, default=1.0
        Weight of |u' - u|^2 / 2 in the proximal map, > 0: large ones make small steps.

    Examples
    --------
    >>> import torch
    >>> from equipoise.estimators import ProxCrossEntropyLoss
    >>> u = torch.zeros(1, 3, requires_grad=True)
    >>> ProxCrossEntropyLoss()(u, torch.tensor([0])).backward()
    >>> [round(v, 4) for v in (u - u.grad)[0].tolist()]
    [0.4897, -0.2448, -0.2448]
    """

    def __init__(self, lam: float = 1.0) -> None:
        super().__init__()
        self.lam = require_positive("lam", lam)

    def checked(self, u: torch.Tensor, y: Any) -> torch.Tensor:
        """Labels 0 to K - 1, one for each row of outputs (..., K)."""
        return labels_of(y, u)

    def losses(self, u: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The cross-entropy of each row."""
        return -F.log_softmax(u, -1).gather(-1, y[..., None])[..., 0]

    def displacement(self, u: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """u - prox(u)."""
        return cross_entropy_displacement(u, y, self.lam)


class ProxMSELoss(ProximalLoss):
    """Half the squared error of a sample; displacement (u - y) / (1 + lam).

    Parameters
    ----------
    lam : float, default=1.0
        Weight of |u' - u|^2 / 2 in the proximal map, > 0.

    Examples
    --------
    >>> import torch
    >>> from equipoise.estimators import ProxMSELoss
    >>> u = torch.tensor([[4.0]], requires_grad=True)
    >>> ProxMSELoss()(u, torch.tensor([[2.0]])).backward()
    >>> u.grad
    tensor([[1.]])
    """

    def __init__(self, lam: float = 1.0) -> None:
        super().__init__()
        self.lam = require_positive("lam", lam)

    def losses(self, u: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Half the squared error of each entry."""
        return (u - y) ** 2 / 2

    def displacement(self, u: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """u - prox(u)."""
        return (u - y) / (1 + self.lam)


class ProxAbsoluteLoss(ProximalLoss):
    """Absolute error; displacement u - y, cut off at 1 / lam.

    Parameters
    ----------
    lam : float, default=1.0
        Weight of |u' - u|^2 / 2 in the proximal map, > 0.

    Examples
    --------
    >>> import torch
    >>> from equipoise.estimators import ProxAbsoluteLoss
    >>> u = torch.tensor([[4.0, 0.5]], requires_grad=True)
    >>> ProxAbsoluteLoss()(u, torch.zeros(1, 2)).backward()
    >>> u.grad
    tensor([[1.0000, 0.5000]])
    """

    def __init__(self, lam: float = 1.0) -> None:
        super().__init__()
        self.lam = require_positive("lam", lam)

    def losses(self, u: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The absolute error of each entry."""
        return (u - y).abs()

    def displacement(self, u: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """u - prox(u)."""
        return (u - y).clamp(-1 / self.lam, 1 / self.lam)


class ProxHuberLoss(ProximalLoss):
    """Huber's loss: squared near the target, linear from delta on.

    Parameters
    ----------
    lam : float, default=1.0
        Weight of |u' - u|^2 / 2 in the proximal map, > 0.
    delta : float, default=1.0
        Where the loss becomes linear, > 0.

    Examples
    --------
    >>> import torch
    >>> from equipoise.estimators import ProxHuberLoss
    >>> u = torch.tensor([[4.0, 0.5]], requires_grad=True)
    >>> ProxHuberLoss()(u, torch.zeros(1, 2)).backward()
    >>> u.grad
    tensor([[1.0000, 0.2500]])
    """

    def __init__(self, lam: float = 1.0, delta: float = 1.0) -> None:
        super().__init__()
        self.lam, self.delta = require_positive("lam", lam), require_positive("delta", delta)

    def losses(self, u: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Huber's loss of each entry."""
        return F.huber_loss(u, y, reduction="none", delta=self.delta)

    def displacement(self, u: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """u - prox(u)."""
        most = self.delta / self.lam
        return ((u - y) / (1 + self.lam)).clamp(-most, most)


class ProxHingeLoss(ProximalLoss):
    """Hinge loss of each class against the others, max(0, 1 - s_k u_k), s_k = 1 for the label else
    -1.

    Parameters
    ----------
    lam : float, default=1.0
        Weight of |u' - u|^2 / 2 in the proximal map, > 0.

    Examples
    --------
    >>> import torch
    >>> from equipoise.estimators import ProxHingeLoss
    >>> u = torch.tensor([[0.5, 2.0, -3.0]], requires_grad=True)
    >>> ProxHingeLoss()(u, torch.tensor([0])).backward()
    >>> u - u.grad
    tensor([[ 1.,  1., -3.]], grad_fn=<SubBackward0>)
    """

    def __init__(self, lam: float = 1.0) -> None:
        super().__init__()
        self.lam = require_positive("lam", lam)

    def checked(self, u: torch.Tensor, y: Any) -> torch.Tensor:
        """Labels 0 to K - 1, one for each row of outputs (..., K)."""
        return labels_of(y, u)

    def signs(self, u: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """1 for the label, -1 for the other classes."""
        return 2 * F.one_hot(y, u.shape[-1]).to(u) - 1

    def losses(self, u: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The hinge loss of each entry."""
        return (1 - self.signs(u, y) * u).clamp(min=0)

    def displacement(self, u: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """u - prox(u)."""
        s = self.signs(u, y)
        return -s * (1 - s * u).clamp(0, 1 / self.lam)


class MarginLoss(ProximalLoss):
    """Half the squared distance to the logits that decide for the label with a margin.

    The target is the nearest such point: there is no proximal weight.

    Parameters
    ----------
    delta : float, default=1.0
        The margin, > 0.
    kind : {"multiclass", "one_vs_rest"}, default="multiclass"
        "multiclass": u_y - u_k >= delta for all k != y. "one_vs_rest": u_y >= delta, u_k <= 0.

    Examples
    --------
    >>> import torch
    >>> from equipoise.estimators import MarginLoss
    >>> u = torch.tensor([[1.0, 0.5, 0.0, 2.0, -1.0]], requires_grad=True)
    >>> MarginLoss()(u, torch.tensor([2])).backward()
    >>> [round(v, 3) for v in (u - u.grad)[0].tolist()]
    [0.667, 0.5, 1.667, 0.667, -1.0]
    """

    def __init__(self, delta: float = 1.0, kind: str = "multiclass") -> None:
        super().__init__()
        self.delta = require_positive("delta", delta)
        self.kind = require_option("kind", kind, ("multiclass", "one_vs_rest"))

    def checked(self, u: torch.Tensor, y: Any) -> torch.Tensor:
        """Labels 0 to K - 1, one for each row of outputs (B, K)."""
        if u.ndim != 2:
            raise ValueError(f"outputs have shape {tuple(u.shape)}; expected (B, K)")
        return labels_of(y, u)

    def losses(self, u: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Half the squared displacement of each entry."""
        nearest = (u - self.displacement(u, y)).detach()
        return (u - nearest) ** 2 / 2

    def displacement(self, u: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """u - its projection."""
        return margin_displacement(u, y, self.delta, self.kind)
