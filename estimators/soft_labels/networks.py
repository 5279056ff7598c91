"""The multilayer perceptron that emits logits, and losses between logits and soft targets.

With f = softmax(z) and target p: cross-entropy -sum_k p_k log f_k, reverse KL(f || p),
Jensen-Shannon divergence, and Brier sum_k (f_k - p_k)^2; averaged with the items' weights.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

__all__ = ["SoftLabelMLP", "SoftTargetLoss"]

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "logistic": nn.Sigmoid,
    "gelu": nn.GELU,
    "identity": nn.Identity,
}

#: The annotators' zero shares are raised to this in the reverse divergence, else it is infinite.
REVERSE_FLOOR = 1e-6


class SoftLabelMLP(nn.Module):
    """Multilayer perceptron from features to class logits.

    Parameters
    ----------
    n_features : int
        Width of the input.
    n_classes : int
        Number of logits.
    hidden_layer_sizes : sequence of int, default=(128,)
        Width of each hidden layer; empty for a linear model.
    activation : {"relu", "tanh", "logistic", "gelu", "identity"}, default="relu"
        After each hidden layer.
    dropout : float, default=0.0
        Probability of dropping a hidden unit in training.

    Examples
    --------
    >>> import torch
    >>> from equipoise.estimators import SoftLabelMLP
    >>> SoftLabelMLP(4, 3)(torch.zeros(2, 4)).shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        hidden_layer_sizes: Sequence[int] = (128,),
        activation: str = "relu",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation={activation!r}; allowed: {sorted(ACTIVATIONS)}")
        layers: list[nn.Module] = []
        width = n_features
        for size in hidden_layer_sizes:
            layers += [nn.Linear(width, size), ACTIVATIONS[activation]()]
            if dropout:
                layers.append(nn.Dropout(dropout))
            width = size
        self.layers = nn.Sequential(*layers, nn.Linear(width, n_classes))

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        """Return the logits.

        Parameters
        ----------
        X : Tensor of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        Tensor of shape (n_samples, n_classes)
            Logits.
        """
        return self.layers(X)


class Standardized(nn.Module):
    """A network behind fixed centring and scaling of its inputs, so that it takes them raw."""

    mean: torch.Tensor
    scale: torch.Tensor

    def __init__(self, network: nn.Module, mean: torch.Tensor, scale: torch.Tensor) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("mean", mean)
        self.register_buffer("scale", scale)

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        return self.network((X - self.mean) / self.scale)


def cross_entropy(logits: torch.Tensor, P: torch.Tensor) -> torch.Tensor:
    return -(P * torch.log_softmax(logits, dim=1)).sum(dim=1)


def reverse_kl(logits: torch.Tensor, P: torch.Tensor) -> torch.Tensor:
    log_f = torch.log_softmax(logits, dim=1)
    return (log_f.exp() * (log_f - P.clamp_min(REVERSE_FLOOR).log())).sum(dim=1)


def jensen_shannon(logits: torch.Tensor, P: torch.Tensor) -> torch.Tensor:
    log_f = torch.log_softmax(logits, dim=1)
    log_m = ((log_f.exp() + P) / 2).clamp_min(torch.finfo(P.dtype).tiny).log()
    forward = torch.special.xlogy(P, P) - P * log_m
    return (forward + log_f.exp() * (log_f - log_m)).sum(dim=1) / 2


def brier(logits: torch.Tensor, P: torch.Tensor) -> torch.Tensor:
    return ((torch.softmax(logits, dim=1) - P) ** 2).sum(dim=1)


LOSSES = {
    "cross_entropy": cross_entropy,
    "reverse_kl": reverse_kl,
    "js": jensen_shannon,
    "brier": brier,
}


def drawn_votes(P: torch.Tensor, rng: np.random.RandomState) -> torch.Tensor:
    """One unit row a distribution, drawn from it."""
    cumulative = P.cumsum(dim=1)
    u = torch.as_tensor(rng.uniform(size=(len(P), 1)), dtype=P.dtype, device=P.device)
    columns = (u * cumulative[:, -1:] >= cumulative[:, :-1]).sum(dim=1)
    return nn.functional.one_hot(columns, P.shape[1]).to(P.dtype)


def dense_rows(target: torch.Tensor, n_classes: int) -> torch.Tensor:
    """Distributions over all classes, from shares and the columns that they belong to."""
    m = (target.shape[1] - 1) // 2
    shares, columns = target[:, :m], target[:, m:-1].long()
    return shares.new_zeros(len(target), n_classes).scatter_add_(1, columns, shares)


class SoftTargetLoss(nn.Module):
    """Weighted mean loss between logits and soft targets; a criterion for skorch nets.

    Parameters
    ----------
    loss : {"cross_entropy", "reverse_kl", "js", "brier"}, default="cross_entropy"
        The loss of one item. In "reverse_kl" the targets are raised to at least 1e-6.
    votes : RandomState, optional
        Draws one vote from each target whenever it is seen in training; outside training the
        targets themselves count. None trains on the targets.

    Examples
    --------
    >>> import torch
    >>> from equipoise.estimators import SoftTargetLoss
    >>> logits = torch.zeros(1, 2)
    >>> round(float(SoftTargetLoss()(logits, torch.tensor([[0.3, 0.7, 1.0]]))), 4)
    0.6931
    """

    def __init__(
        self, loss: str = "cross_entropy", votes: np.random.RandomState | None = None
    ) -> None:
        super().__init__()
        if loss not in LOSSES:
            raise ValueError(f"loss={loss!r} is not allowed; allowed: {sorted(LOSSES)}")
        self.loss = loss
        self.votes = votes

    def forward(self, logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the mean loss over the batch.

        Parameters
        ----------
        logits : Tensor of shape (n_samples, n_classes)
            What the network emits.
        target : Tensor of shape (n_samples, n_classes + 1) or (n_samples, 2 m + 1)
            The soft labels, and the items' weights in the last column. With 2 m < n_classes: m
            shares, the m columns they belong to, and the weights.

        Returns
        -------
        Tensor
            A scalar.
        """
        K = logits.shape[1]
        P = target[:, :-1] if target.shape[1] == K + 1 else dense_rows(target, K)
        P, weight = P.to(logits.dtype), target[:, -1].to(logits.dtype)
        if self.training and self.votes is not None:
            P = drawn_votes(P, self.votes)
        items = LOSSES[self.loss](logits, P)
        # A batch of weightless items has loss 0, not 0 / 0.
        return (weight * items).sum() / weight.sum().clamp_min(torch.finfo(items.dtype).tiny)
