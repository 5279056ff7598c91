"""Training the amortised model through skorch.

Rows are standardised as (x - mu) sqrt(D / tr S), so that learning rates mean the same for every
scale of the data. Seeds: weights, samples and batches follow one seed, in torch's generator forked
for the call.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from skorch import NeuralNet
from skorch.callbacks import Callback, EarlyStopping, GradientNormClipping, LRScheduler
from skorch.dataset import Dataset
from skorch.helper import predefined_split
from torch import nn

from equipoise.training import EpochProgress, TensorBatches

from .networks import DirichletVAE

__all__ = ["TrainingPlan", "VAENet", "make_net", "train"]

#: Rows of one forward pass outside training; fewer where means of codes need quadrature.
EVALUATION_ROWS, QUADRATURE_ROWS = 4096, 512
#: Samples a row with which decoders that need samples are evaluated.
EVALUATION_SAMPLES = 32


class TrainingPlan(NamedTuple):
    """How the network is trained."""

    max_epochs: int
    batch_size: int
    lr: float
    decoder_lr: float
    weight_decay: float
    warmup_epochs: int
    device: torch.device
    verbose: int


class VAENet(NeuralNet):
    """A skorch net whose target is the rows' weights, and whose loss is the module's own."""

    def get_loss(
        self, y_pred: Any, y_true: torch.Tensor, X: Any = None, training: bool = False
    ) -> torch.Tensor:
        error, kl = y_pred
        return self.module_.loss(error, kl, y_true.to(error.device), X.shape[1])

    def train_step(self, batch: Any, **fit_params: Any) -> Any:
        step = super().train_step(batch, **fit_params)
        self.module_.project()
        return step


class BetaWarmup(Callback):
    """Raise the training loss's beta linearly from 0 over the first epochs.

    Held-out rows are judged at the whole beta, else early stopping would prefer the first epochs.
    """

    def __init__(self, n_epochs: int) -> None:
        self.n_epochs = n_epochs

    def on_epoch_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        net.module_.warmth = min(1.0, (len(net.history) - 1) / self.n_epochs)

    def on_train_end(self, net: NeuralNet, **kwargs: Any) -> None:
        net.module_.warmth = 1.0


def tensors(Y: np.ndarray, weight: np.ndarray, dtype: torch.dtype) -> Dataset:
    """Standardised rows and their weights as skorch's data set."""
    return Dataset(torch.as_tensor(Y, dtype=dtype), torch.as_tensor(weight, dtype=dtype))


def make_net(
    module: DirichletVAE, plan: TrainingPlan, batch_seed: int, callbacks: Sequence[Any]
) -> VAENet:
    """The net that trains a module by the plan."""
    standing: list[tuple[str, Callback]] = [
        ("clipping", GradientNormClipping(gradient_clip_value=10.0))
    ]
    if plan.max_epochs > 1:
        schedule = LRScheduler(torch.optim.lr_scheduler.CosineAnnealingLR, T_max=plan.max_epochs)
        standing.append(("schedule", schedule))
    if plan.warmup_epochs:
        standing.append(("warmup", BetaWarmup(plan.warmup_epochs)))
    own = [c if isinstance(c, tuple) else (f"callback{i}", c) for i, c in enumerate(callbacks)]
    slow = {"lr": plan.decoder_lr, "weight_decay": 0.0}
    return VAENet(
        module=module,
        criterion=nn.Identity,
        optimizer=torch.optim.AdamW,
        optimizer__param_groups=[("decoder*", slow), ("log_noise", slow)],
        optimizer__weight_decay=plan.weight_decay,
        lr=plan.lr,
        max_epochs=plan.max_epochs,
        batch_size=plan.batch_size,
        iterator_train=TensorBatches,
        iterator_train__rng=np.random.RandomState(batch_seed),
        iterator_valid=TensorBatches,
        iterator_valid__batch_size=EVALUATION_ROWS,
        train_split=None,
        callbacks=[*standing, *own],
        callbacks__print_log=None,
        verbose=0,
        device=plan.device,
        warm_start=True,
    )


def train(
    net: VAENet,
    data: Dataset,
    valid: Dataset | None,
    epochs: int,
    patience: int,
    verbose: int,
) -> VAENet:
    """Run the loop; callbacks that belong to this run alone are taken off the net again."""
    lasting = list(net.callbacks)
    passing: list[tuple[str, Callback]] = [("progress", EpochProgress())] if verbose else []
    if valid is not None:
        stop = EarlyStopping(monitor="valid_loss", patience=patience, load_best=True, sink=quiet)
        passing.append(("early_stopping", stop))
        net.set_params(train_split=predefined_split(valid))
    if passing:
        net.set_params(callbacks=lasting + passing)
    if not net.initialized_:
        net.initialize()
    net.partial_fit(data, epochs=epochs)
    net.set_params(train_split=None)
    if passing:
        net.set_params(callbacks=lasting)
    net.module_.eval()  # dropout and batch norm of a user's modules are for training alone
    return net


def quiet(*args: Any) -> None:
    """A sink for callbacks that print."""


def working_dtype(module: DirichletVAE) -> torch.dtype:
    """Precision of the networks' parameters; float64 where they have none."""
    return next((p.dtype for p in module.encoder.parameters()), torch.float64)


def forward_rows(
    module: DirichletVAE, Y: np.ndarray, device: torch.device
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Parameters (n, p), means (n, K), divergence and expected error (n,) in standardised units."""
    dtype = working_dtype(module)
    step = EVALUATION_ROWS if module.posterior.n_parameters == 1 else QUADRATURE_ROWS
    parts = []
    with torch.no_grad():
        for start in range(0, len(Y), step):
            rows = torch.as_tensor(Y[start : start + step], dtype=dtype).to(device)
            theta = module.posterior_parameters(rows)
            error = module.exact_error(rows, theta)
            if error is None:
                error = module.sampled_error(rows, theta, EVALUATION_SAMPLES)
            law = module.posterior
            found = (theta, law.mean(theta), law.divergence(theta), error)
            parts.append([part.cpu().double().numpy() for part in found])
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return columns[0], columns[1], columns[2], columns[3]


def decode_rows(module: DirichletVAE, Z: np.ndarray, device: torch.device) -> np.ndarray:
    """Standardised rows (n, D) of codes (n, K)."""
    dtype = working_dtype(module)
    with torch.no_grad():
        codes = torch.as_tensor(Z, dtype=dtype).to(device)
        return module.decoder(codes).cpu().numpy().astype(np.float64)
