"""Training a network of projection layers through skorch.

Seeds: initial weights come from torch's generator, forked and seeded for the fit; the batch order
from a generator of its own.
"""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from skorch import NeuralNet
from skorch.callbacks import Callback, EarlyStopping
from skorch.dataset import Dataset, unpack_data
from torch import nn

from equipoise.training import EpochProgress, TensorBatches

from .modes import consensus_weights
from .monitor import TargetSignalMonitor
from .networks import linear_layers
from .optimizer import ProjectionOptimizer

__all__ = ["Plan", "Training", "make_net", "outputs_of", "train"]

#: Rows of one forward pass outside training.
EVALUATION_ROWS = 4096


class Plan(NamedTuple):
    """How the loop trains a network."""

    criterion: nn.Module
    labels: bool
    optimizer: str | Callable[..., Any]
    lr: float
    batch_size: int
    max_epochs: int
    device: torch.device


class ProjectionNet(NeuralNet):
    """A net whose targets carry the samples' weights as their last column.

    Parameters
    ----------
    labels : bool, default=False
        Whether the targets are labels: whole numbers.
    weighted : bool, default=False
        Whether the weights differ.
    """

    def __init__(
        self, *args: Any, labels: bool = False, weighted: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.labels = labels
        self.weighted = weighted

    def get_loss(
        self, y_pred: torch.Tensor, y_true: torch.Tensor, X: Any = None, training: bool = False
    ) -> torch.Tensor:
        target = y_true[:, 0].long() if self.labels else y_true[:, :-1]
        return super().get_loss(y_pred, target.to(y_pred.device), X, training)

    def train_step_single(self, batch: Any, **fit_params: Any) -> dict[str, Any]:
        _, y = unpack_data(batch)
        with consensus_weights(y[:, -1].to(self.device) if self.weighted else None):
            return super().train_step_single(batch, **fit_params)


class SignalRecorder(Callback):
    """Mean over an epoch's steps of the signal that reaches each layer, in ``signals_``."""

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        self.monitor_ = TargetSignalMonitor(net.module_)
        self.signals_: list[np.ndarray] = []

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        by_step = self.monitor_.to_frame().pivot(index="step", columns="layer", values="signal")
        self.signals_.append(by_step[list(self.monitor_.layers)].mean().to_numpy())
        self.monitor_.clear()

    def on_train_end(self, net: NeuralNet, **kwargs: Any) -> None:
        self.monitor_.close()


class FiniteWeights(Callback):
    """End training once loss or weights leave the finite range, at the last finite epoch's weights.

    Attributes
    ----------
    diverged_ : bool
        Whether they did.
    """

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        self.diverged_ = False
        self._keep(net)

    def _keep(self, net: NeuralNet) -> None:
        self.kept_ = copy.deepcopy(net.module_.state_dict())

    def _restore(self, net: NeuralNet) -> None:
        self.diverged_ = True
        net.module_.load_state_dict(self.kept_)
        net.initialize_optimizer()  # its momentum isn't finite either
        raise KeyboardInterrupt  # how skorch's callbacks end training

    def on_batch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        if kwargs["training"] and not np.isfinite(net.history[-1, "batches", -1, "train_loss"]):
            self._restore(net)

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        if all(bool(torch.isfinite(p).all()) for p in net.module_.parameters()):
            self._keep(net)
        else:
            self._restore(net)

    def on_train_end(self, net: NeuralNet, **kwargs: Any) -> None:
        del self.kept_


class ValidationScore(Callback):
    """The score of rows kept apart, after each epoch, in the history."""

    def __init__(self, X: torch.Tensor, score: Callable[[np.ndarray], float]) -> None:
        self.X = X
        self.score = score

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        net.history.record("valid_score", float(self.score(outputs_of(net, self.X))))


class Training(NamedTuple):
    """What a run of the loop left behind, one entry a finished epoch."""

    losses: list[float]
    scores: list[float]
    signals: np.ndarray
    diverged: bool


def make_net(module: nn.Module, plan: Plan, batch_seed: int) -> ProjectionNet:
    """The skorch net that trains a module by the plan."""
    return ProjectionNet(
        module=module,
        criterion=plan.criterion,
        labels=plan.labels,
        optimizer=ProjectionOptimizer,
        optimizer__base=plan.optimizer,
        lr=plan.lr,
        max_epochs=plan.max_epochs,
        batch_size=plan.batch_size,
        iterator_train=TensorBatches,
        iterator_train__rng=np.random.RandomState(batch_seed),
        iterator_valid=TensorBatches,
        iterator_valid__batch_size=EVALUATION_ROWS,
        train_split=None,
        callbacks__print_log=None,
        verbose=0,
        device=plan.device,
        warm_start=True,
    ).initialize()


def outputs_of(net: NeuralNet, X: torch.Tensor | np.ndarray) -> np.ndarray:
    """The network's outputs in evaluation mode, float64 (n, K)."""
    dtype = next(net.module_.parameters()).dtype
    X = torch.as_tensor(np.require(X, requirements="W") if isinstance(X, np.ndarray) else X)
    return net.forward(Dataset(X.to(dtype))).to(torch.float64).cpu().numpy()


def train(
    net: ProjectionNet,
    data: Dataset,
    validation: ValidationScore | None,
    patience: int,
    epochs: int,
    verbose: int,
) -> Training:
    """Run the loop from the weights the net has; what belongs to this run leaves the net again."""
    signals, finite = SignalRecorder(), FiniteWeights()
    passing: list[tuple[str, Callback]] = [("finite", finite), ("signals", signals)]
    if validation is not None:
        stop = EarlyStopping(
            "valid_score", patience, threshold_mode="abs", lower_is_better=False, load_best=True
        )
        passing += [("validation", validation), ("early_stopping", stop)]
    if verbose:
        passing.append(("progress", EpochProgress()))
    before = len(net.history)
    net.set_params(callbacks=passing).initialize_callbacks()
    net.partial_fit(data, epochs=epochs)
    net.set_params(callbacks=[]).initialize_callbacks()
    # A run that was stopped inside an epoch leaves that epoch without a signal.
    finished = len(signals.signals_)
    rows = net.history.to_list()[before : before + finished]
    width = len(linear_layers(net.module_))
    return Training(
        [float(row["train_loss"]) for row in rows],
        [float(row["valid_score"]) for row in rows if "valid_score" in row],
        np.array(signals.signals_).reshape(finished, width),
        finite.diverged_,
    )
