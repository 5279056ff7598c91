"""Which signal a backward pass carries, and the weights of the samples in the consensus.

Both belong to the thread, and are read when a layer's forward pass runs: what a backward pass does
is settled by then, in whichever thread it runs.
"""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import torch

__all__ = [
    "consensus_weights",
    "current_weights",
    "gradient_mode",
    "is_projecting",
    "projection_mode",
]


class Mode(threading.local):
    """The mode of a thread."""

    projecting: bool = True
    weights: torch.Tensor | None = None


MODE = Mode()


def is_projecting() -> bool:
    """Whether layers run now carry displacements in their backward pass."""
    return MODE.projecting


def current_weights() -> torch.Tensor | None:
    """The weights of the samples that `consensus_weights` has set."""
    return MODE.weights


@contextmanager
def carrying(projecting: bool) -> Iterator[None]:
    """Set the thread's mode inside a block."""
    before = MODE.projecting
    MODE.projecting = projecting
    try:
        yield
    finally:
        MODE.projecting = before


def gradient_mode() -> AbstractContextManager[None]:
    """Let the projection layers and losses run inside a block carry ordinary gradients.

    Returns
    -------
    context manager
        The mode is the thread's own, is read in the forward pass, and may be nested.

    Examples
    --------
    >>> import torch
    >>> from equipoise.estimators import ProjReLU, gradient_mode
    >>> x = torch.tensor([2.0], requires_grad=True)
    >>> with gradient_mode():
    ...     y = ProjReLU()(x)
    >>> y.backward()
    >>> x.grad
    tensor([1.])
    """
    return carrying(False)


def projection_mode() -> AbstractContextManager[None]:
    """Let the projection layers and losses run inside a block carry displacements: the default.

    Returns
    -------
    context manager
        The mode is the thread's own, is read in the forward pass, and may be nested.

    Examples
    --------
    >>> import torch
    >>> from equipoise.estimators import ProjReLU, gradient_mode, projection_mode
    >>> x = torch.tensor([2.0], requires_grad=True)
    >>> with gradient_mode(), projection_mode():
    ...     y = ProjReLU()(x)
    >>> y.backward()  # a displacement of 1, halved between x and y
    >>> x.grad
    tensor([0.5000])
    """
    return carrying(True)


@contextmanager
def consensus_weights(weights: torch.Tensor | None) -> Iterator[None]:
    """Weight the samples in the mean over the batch that every layer takes of its weights.

    A sample of weight 0 counts as removed, one of weight 2 as given twice; what a layer hands down
    isn't weighted. Layers read the weights in their forward pass.

    Parameters
    ----------
    weights : tensor of shape (B,) or None
        One for each sample, >= 0; None: all alike.

    Yields
    ------
    None
        The weights hold inside the block, in this thread.

    Raises
    ------
    ValueError
        If a weight is negative or not finite.

    Examples
    --------
    >>> import torch
    >>> from equipoise.estimators import ProjLinear, ProxMSELoss, consensus_weights
    >>> layer = ProjLinear(1, 1, bias=False)
    >>> x, y = torch.tensor([[1.0], [1.0]]), torch.tensor([[9.0], [5.0]])
    >>> with consensus_weights(torch.tensor([0.0, 0.0])):
    ...     ProxMSELoss()(layer(x), y).backward()
    >>> float(abs(layer.weight.grad))
    0.0
    """
    if weights is not None:
        weights = torch.as_tensor(weights)
        if weights.ndim != 1 or not bool(((weights >= 0) & torch.isfinite(weights)).all()):
            raise ValueError(
                f"weights of shape {tuple(weights.shape)} are not allowed; allowed: a vector of "
                "finite numbers of at least 0"
            )
    before = MODE.weights
    MODE.weights = weights
    try:
        yield
    finally:
        MODE.weights = before
