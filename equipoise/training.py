"""What the torch estimators share when they train through skorch: batches and a progress bar.

Importing this module imports torch and skorch.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from skorch import NeuralNet
from skorch.callbacks import Callback
from skorch.dataset import Dataset

__all__ = ["EpochProgress", "TensorBatches"]


class TensorBatches:
    """Batches cut from whole tensors: what skorch calls instead of `torch.utils.data.DataLoader`.

    Indexing a tensor once a batch is several times faster than collating rows one by one, which
    is what bounds the training of small networks.

    Parameters
    ----------
    dataset : skorch.dataset.Dataset
        Holds ``X`` (n, ...) and ``y`` (n, ...) as tensors; ``y`` may be None.
    batch_size : int
        Rows a batch; -1 for all.
    rng : numpy.random.RandomState, optional
        Shuffles the rows anew in each epoch; None keeps their order.

    Examples
    --------
    >>> import torch
    >>> from skorch.dataset import Dataset
    >>> from equipoise.training import TensorBatches
    >>> data = Dataset(torch.arange(5.0), torch.arange(5.0))
    >>> [X.tolist() for X, y in TensorBatches(data, batch_size=2)]
    [[0.0, 1.0], [2.0, 3.0], [4.0]]
    """

    def __init__(
        self, dataset: Dataset, batch_size: int, rng: np.random.RandomState | None = None
    ) -> None:
        self.dataset = dataset
        self.batch_size = len(dataset) if batch_size == -1 else batch_size
        self.rng = rng

    def __len__(self) -> int:
        return -(-len(self.dataset) // self.batch_size)

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        X, y = self.dataset.X, self.dataset.y
        n = len(X)
        if y is None:  # prediction: skorch drops the second part
            y = torch.zeros(n)
        order = None if self.rng is None else torch.from_numpy(self.rng.permutation(n))
        for start in range(0, n, self.batch_size):
            rows = slice(start, start + self.batch_size)
            if order is None:
                yield X[rows], y[rows]
            else:
                yield X[order[rows]], y[order[rows]]


class EpochProgress(Callback):
    """A progress bar over the epochs of a skorch net, with the last training loss.

    Attributes
    ----------
    bar_ : tqdm.tqdm
        The bar, from the start of training on; it isn't pickled.

    Examples
    --------
    >>> from skorch import NeuralNetRegressor
    >>> from torch import nn
    >>> from equipoise.training import EpochProgress
    >>> net = NeuralNetRegressor(nn.Linear, callbacks=[("progress", EpochProgress())])
    """

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        from tqdm.auto import tqdm

        self.bar_ = tqdm(total=net.max_epochs, unit="epoch")

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        self.bar_.update()
        self.bar_.set_postfix(loss=f"{net.history[-1, 'train_loss']:.4f}")

    def on_train_end(self, net: NeuralNet, **kwargs: Any) -> None:
        self.bar_.close()

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "bar_"}
