"""Training a torch module on soft targets through skorch.

Seeds: initial weights and dropout come from torch's generator, forked and seeded for the fit; the
batch order from a generator of its own. Neither depends on the targets, so that two fits with
the same seed and different targets start from the same weights and see the same batches.
"""

import copy
import inspect
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from skorch import NeuralNet, NeuralNetBinaryClassifier, NeuralNetClassifier
from skorch.callbacks import Callback, EarlyStopping
from skorch.dataset import Dataset
from skorch.helper import predefined_split
from torch import nn

from equipoise.training import TensorBatches

from .networks import SoftLabelMLP, SoftTargetLoss, Standardized

__all__ = ["TrainingPlan", "make_module", "make_net", "train"]

#: Rows of one forward pass outside training.
EVALUATION_ROWS = 4096


class TrainingPlan(NamedTuple):
    """How the built-in loop trains a module."""

    criterion: SoftTargetLoss
    solver: str
    lr: float
    weight_decay: float
    batch_size: int
    max_epochs: int
    device: torch.device


class L2Net(NeuralNet):
    """A net whose training loss includes (l2 / 2) ||W||^2 over the weight matrices."""

    def __init__(self, *args: Any, l2: float = 0.0, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.l2 = l2

    def get_loss(
        self, y_pred: torch.Tensor, y_true: torch.Tensor, X: Any = None, training: bool = False
    ) -> torch.Tensor:
        loss = super().get_loss(y_pred, y_true, X, training)
        if training and self.l2:
            weights = (p for p in self.module_.parameters() if p.ndim > 1)
            loss = loss + self.l2 / 2 * sum((W**2).sum() for W in weights)
        return loss


class StopWhenFlat(Callback):
    """End full-batch training once the training loss no longer changes."""

    def __init__(self, tol: float = 1e-9) -> None:
        self.tol = tol

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        losses = net.history[-2:, "train_loss"]
        if len(losses) == 2 and abs(losses[0] - losses[1]) <= self.tol * max(1, abs(losses[1])):
            raise KeyboardInterrupt  # how skorch's callbacks end training


def to_probabilities(logits: torch.Tensor) -> torch.Tensor:
    """What turns the module's output into `predict_proba`."""
    return torch.softmax(logits, dim=-1)


def make_module(estimator: Any, n_features: int, n_classes: int) -> nn.Module:
    """An own copy of a module instance, or an instance of a module class."""
    if isinstance(estimator, nn.Module):
        return copy.deepcopy(estimator)
    offered = {"n_features": n_features, "n_classes": n_classes}
    signature = inspect.signature(estimator).parameters
    wants_all = any(p.kind is p.VAR_KEYWORD for p in signature.values())
    return estimator(**{k: v for k, v in offered.items() if wants_all or k in signature})


def make_mlp(
    n_features: int,
    n_classes: int,
    hidden_layer_sizes: Sequence[int],
    activation: str,
    dropout: float,
    dtype: np.dtype,
) -> nn.Module:
    """The built-in network in the precision of the data."""
    mlp = SoftLabelMLP(n_features, n_classes, hidden_layer_sizes, activation, dropout)
    return mlp.to(torch.float64 if dtype == np.float64 else torch.float32)


def moments(X: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and standard deviation of each feature; 1 for one that is constant."""
    mean = np.average(X, axis=0, weights=weight)
    scale = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    # Constant up to rounding counts as constant: dividing by it would blow up the rounding.
    constant = scale <= 10 * np.finfo(X.dtype).eps * np.abs(mean)
    return mean, np.where(constant, 1.0, scale)


def standardized(module: nn.Module, mean: np.ndarray, scale: np.ndarray) -> nn.Module:
    """The module behind the centring and scaling, in its own precision."""
    dtype = module_dtype(module)
    return Standardized(
        module, torch.as_tensor(mean, dtype=dtype), torch.as_tensor(scale, dtype=dtype)
    )


def module_dtype(module: nn.Module) -> torch.dtype:
    """Precision of the module's parameters."""
    return next((p.dtype for p in module.parameters() if p.is_floating_point()), torch.float32)


def tensors(
    X: np.ndarray,
    P: np.ndarray,
    weight: np.ndarray,
    dtype: torch.dtype,
    rows: np.ndarray,
    columns: np.ndarray | None = None,
) -> Dataset:
    """Inputs and targets of some rows as skorch's data set, as `SoftTargetLoss` takes targets."""
    parts = [P[rows], weight[rows]] if columns is None else [P[rows], columns[rows], weight[rows]]
    # Half precision doesn't hold the numbers of many columns.
    target_dtype = torch.float64 if dtype == torch.float64 else torch.float32
    target = torch.as_tensor(np.column_stack(parts), dtype=target_dtype)
    return Dataset(torch.as_tensor(np.require(X[rows], requirements="W"), dtype=dtype), target)


def make_net(module: nn.Module, plan: TrainingPlan, batch_seed: int) -> NeuralNet:
    """The skorch net that trains a module by the plan."""
    common: dict[str, Any] = {
        "module": module,
        "criterion": plan.criterion,
        "max_epochs": plan.max_epochs,
        "iterator_train": TensorBatches,
        "iterator_valid": TensorBatches,
        "iterator_valid__batch_size": EVALUATION_ROWS,
        "train_split": None,
        "predict_nonlinearity": to_probabilities,
        "callbacks__print_log": None,
        "verbose": 0,
        "device": plan.device,
        "warm_start": True,
    }
    if plan.solver == "lbfgs":
        # One iteration an epoch, so that history and callbacks see each; the state is kept.
        return L2Net(
            l2=plan.weight_decay,
            optimizer=torch.optim.LBFGS,
            lr=1.0,
            optimizer__max_iter=1,
            optimizer__max_eval=25,
            optimizer__history_size=20,
            optimizer__line_search_fn="strong_wolfe",
            batch_size=-1,
            **common,
        )
    momentum = {"optimizer__momentum": 0.9} if plan.solver == "sgd" else {}
    return NeuralNet(
        optimizer=torch.optim.SGD if plan.solver == "sgd" else torch.optim.AdamW,
        lr=plan.lr,
        optimizer__weight_decay=plan.weight_decay,
        batch_size=plan.batch_size,
        iterator_train__rng=np.random.RandomState(batch_seed),
        **momentum,
        **common,
    )


def adopt_net(net: NeuralNet, criterion: SoftTargetLoss) -> NeuralNet:
    """A user's net, with the criterion and the split that soft targets need."""
    from sklearn.base import clone

    if isinstance(net, NeuralNetBinaryClassifier):
        raise TypeError(
            "estimator is a skorch NeuralNetBinaryClassifier, which has one output; "
            "give a NeuralNet whose module emits n_classes logits"
        )
    own = clone(net).get_params(deep=False)
    kept = {name: value for name, value in own.items() if not name.startswith("criterion")}
    kept |= {
        "criterion": criterion,
        "train_split": None,
        "predict_nonlinearity": to_probabilities,
    }
    if isinstance(net, NeuralNetClassifier):
        kept["callbacks__valid_acc"] = None  # it compares with one label an item
    return type(net)(**kept)


def forget_curvature(net: NeuralNet) -> None:
    """Start L-BFGS anew: its memory is large, and torch's doesn't survive copying or pickling."""
    if isinstance(net.optimizer_, torch.optim.LBFGS):
        net.initialize_optimizer()


def train(
    net: NeuralNet,
    data: Dataset,
    valid: Dataset | None,
    n_iter_no_change: int,
    callbacks: Sequence[Any],
    epochs: int | None = None,
) -> NeuralNet:
    """Run the loop on an initialised net, from the weights it has.

    What belongs to this run alone (validation rows, callbacks that hold data) is taken off the net
    again, so that it pickles small.
    """
    forget_curvature(net)
    lasting = list(net.callbacks or [])
    passing = list(callbacks)
    if valid is not None:
        stop = EarlyStopping(monitor="valid_loss", patience=n_iter_no_change, load_best=True)
        passing.append(("early_stopping", stop))
        net.set_params(train_split=predefined_split(valid))
    if passing:
        net.set_params(callbacks=lasting + passing).initialize_callbacks()
    net.partial_fit(data, epochs=net.max_epochs if epochs is None else epochs)
    net.set_params(train_split=None)
    if passing:
        net.set_params(callbacks=lasting).initialize_callbacks()
    forget_curvature(net)
    return net


def logits_of(net: NeuralNet, X: np.ndarray) -> np.ndarray:
    """The network's outputs in evaluation mode, float64 (n, K)."""
    inputs = torch.as_tensor(np.require(X, requirements="W"), dtype=module_dtype(net.module_))
    outputs = net.forward(Dataset(inputs))
    outputs = outputs[0] if isinstance(outputs, tuple) else outputs
    return outputs.to(torch.float64).numpy()


def check_logits(net: NeuralNet, X: np.ndarray, n_classes: int) -> None:
    """One logit a class is what the network must emit."""
    shape = logits_of(net, X).shape
    if shape != (len(X), n_classes):
        raise ValueError(
            f"the network emits an array of shape {shape} for {len(X)} items; "
            f"expected ({len(X)}, {n_classes}): one logit a class"
        )


def history_frame(net: NeuralNet) -> pd.DataFrame:
    """Losses of each epoch; times are left out, so that equal runs have equal histories."""
    kept = ("epoch", "train_loss", "valid_loss")
    return pd.DataFrame([{k: row[k] for k in kept if k in row} for row in net.history.to_list()])
