"""How the estimators fit: rows, network, loop, and what is learned.

The function takes the (copied) estimator, reads its parameters and sets what it learned.
"""

import copy
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import _check_sample_weight
from skorch.dataset import Dataset
from torch import nn

from equipoise.devices import forked_seed, resolve_device, resolve_dtype

from ..soft_labels.training import moments, standardized
from .layers import LayerOptions
from .networks import linear_layers, make_network, signal_bounds
from .optimizer import DEFAULT_LR
from .training import Plan, Training, ValidationScore, make_net, train

if TYPE_CHECKING:
    from .mlp import ProjectionMLP

__all__ = ["check_sizes", "check_weight", "fit_network", "split_rows"]

#: From this many samples on Muon takes half its usual learning rate.
MANY = 50_000


def check_weight(sample_weight: Any, n: int) -> np.ndarray:
    """Weights of the samples, non-negative and not all zero; ones if there are none."""
    return _check_sample_weight(
        sample_weight, np.empty((n, 1)), dtype=np.float64, ensure_non_negative=True
    )


def check_sizes(sizes: Any) -> tuple[int, ...]:
    """Widths of the hidden layers; none for a linear model."""
    values = tuple(np.atleast_1d(np.asarray(sizes, dtype=object)))
    if any(isinstance(v, bool | np.bool_) or v != v // 1 or v < 1 for v in values):
        raise ValueError(
            f"hidden_layer_sizes={sizes!r} is not allowed; allowed: integers of at least 1"
        )
    return tuple(int(v) for v in values)


def learning_rate(model: "ProjectionMLP", n: int) -> float:
    """The learning rate given, or the optimiser's default."""
    if model.lr is not None:
        return float(model.lr)
    if callable(model.optimizer):
        raise ValueError(
            "lr=None is not allowed with a callable optimizer; allowed: numbers above 0"
        )
    return DEFAULT_LR[model.optimizer] / (2 if model.optimizer == "muon" and n >= MANY else 1)


def split_rows(
    n: int, fraction: float, classes: np.ndarray | None, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on and to validate on, with the share of every class where there are any."""
    if n < 2:
        raise ValueError(f"early_stopping needs at least 2 samples; got n_samples = {n}")
    rows = np.arange(n)
    try:
        parts = train_test_split(rows, test_size=fraction, stratify=classes, random_state=seed)
    except ValueError:  # a class with one item, or fewer places than classes
        parts = train_test_split(rows, test_size=fraction, random_state=seed)
    return parts[0], parts[1]


def build(model: "ProjectionMLP", n_inputs: int, n_outputs: int) -> nn.Module:
    """The network that the parameters describe, behind its standardisation."""
    options = LayerOptions(
        model.alpha, model.gamma, model.norm, model.reduction, model.solver
    ).checked()
    network: nn.Module = make_network(
        n_inputs, n_outputs, check_sizes(model.hidden_layer_sizes), model.activation,
        model.activation_weight, options, resolve_dtype(model.dtype),
    )  # fmt: skip
    if model.standardize:
        network = standardized(network, np.zeros(n_inputs), np.ones(n_inputs))
    return network


def take_over(new: nn.Module, old: nn.Module) -> None:
    """Give a new network the weights of the one that is continued."""
    try:
        new.load_state_dict(old.state_dict())
    except RuntimeError as error:
        raise ValueError(
            "the network to continue has other layers: hidden_layer_sizes, standardize and the "
            f"numbers of inputs and outputs must stay ({str(error).splitlines()[-1].strip()})"
        ) from error


def fit_network(
    model: "ProjectionMLP",
    X: np.ndarray,
    targets: np.ndarray,
    weight: np.ndarray,
    criterion: nn.Module,
    score: Callable[[np.ndarray, np.ndarray, np.ndarray], float],
    n_outputs: int,
    classes: np.ndarray | None,
    epochs: int | None,
    goes_on: bool,
) -> Training:
    """Train the estimator's net; `targets` are labels (n,) or (n, n_outputs) numbers.

    `score` takes rows of outputs, targets and weights. `classes` are what rows are stratified by.
    `epochs` is 1 in `partial_fit`, else None.
    """
    kept = weight > 0  # so that a weight of zero is the same as no row
    X, targets, weight = X[kept], targets[kept], weight[kept]
    classes = None if classes is None else classes[kept]
    batch_seed, split_seed = (int(s) for s in model._random.randint(2**31 - 1, size=2))
    plan = Plan(
        criterion, targets.ndim == 1, model.optimizer, learning_rate(model, len(X)),
        model.batch_size, model.max_epochs if epochs is None else epochs,
        resolve_device(model.device),
    )  # fmt: skip
    settings = {**model.get_params(deep=False), "random_state": None, "verbose": None}
    with forked_seed(model._random, plan.device):
        if goes_on and epochs is not None and repr(settings) == model._settings:
            net = copy.deepcopy(model.net_)
        else:
            module = build(model, X.shape[1], n_outputs)
            if goes_on:
                take_over(module, model.net_.module_)
            elif model.standardize:
                mean, scale = moments(X.astype(np.float64), weight)
                module.get_buffer("mean").copy_(torch.as_tensor(mean))
                module.get_buffer("scale").copy_(torch.as_tensor(scale))
            net = make_net(module, plan, batch_seed)
        rows, validation = np.arange(len(X)), None
        if model.early_stopping:
            rows, held = split_rows(len(X), model.validation_fraction, classes, split_seed)
            validation = ValidationScore(
                torch.as_tensor(X[held]),
                lambda outputs: score(outputs, targets[held], weight[held]),
            )
        net.weighted = bool(np.ptp(weight[rows]) > 0)
        dtype = next(net.module_.parameters()).dtype
        columns = targets[rows, None] if targets.ndim == 1 else targets[rows]
        data = Dataset(
            torch.as_tensor(X[rows]).to(dtype),
            torch.as_tensor(np.column_stack([columns, weight[rows]])).to(dtype),
        )
        run = train(
            net, data, validation, model.n_iter_no_change, plan.max_epochs, int(model.verbose)
        )
    if run.diverged:
        finished = len(run.losses)
        warnings.warn(
            f"the loss left the finite range in epoch {finished + 1}; training stopped there and "
            f"the weights are those after {finished} epochs: lower lr={plan.lr:g}",
            ConvergenceWarning,
            stacklevel=6,
        )
    model.net_ = net
    model._settings = repr(settings)
    old = goes_on
    width = len(linear_layers(net.module_))
    before = model.signal_curve_ if old else np.empty((0, width))
    model.loss_curve_ = [*(model.loss_curve_ if old else []), *run.losses]
    model.validation_scores_ = [*(model.validation_scores_ if old else []), *run.scores]
    model.signal_curve_ = np.vstack([before, run.signals])
    model.signal_bound_ = np.array(signal_bounds(net.module_))
    model.n_iter_ = len(model.loss_curve_)
    model.t_ = (model.t_ if old else 0) + len(run.losses) * len(rows)
    return run
