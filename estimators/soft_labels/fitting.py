"""How a `SoftLabelClassifier` is fitted: targets, parameters that exclude each other, both paths.

The functions take the (copied) classifier, read its parameters and set what it learned.
"""

import copy
import sys
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import _num_samples

from ...explainers.soft_labels.dynamics import DynamicsRecorder
from ...explainers.soft_labels.targets import (
    SoftTargets,
    human_modes,
    is_matrix,
    one_hot,
    read_hard,
    soft_targets,
)
from . import replication
from .sparse_targets import SparseTargets, few_a_row, sparse_targets

if TYPE_CHECKING:
    from .classifier import SoftLabelClassifier

__all__ = ["check_combination", "fit_base", "fit_network", "kind_of", "read_targets"]


def kind_of(estimator: Any) -> str:
    """What is to be trained: the built-in "mlp", a torch "module", a "skorch" net, "sklearn"."""
    if estimator is None:
        return "mlp"
    # Neither can be an instance of a library that nobody imported.
    torch, skorch = sys.modules.get("torch"), sys.modules.get("skorch")
    if torch is not None:
        is_class = isinstance(estimator, type) and issubclass(estimator, torch.nn.Module)
        if is_class or isinstance(estimator, torch.nn.Module):
            return "module"
    if skorch is not None and isinstance(estimator, skorch.NeuralNet):
        return "skorch"
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        raise TypeError(
            f"estimator={estimator!r} is not supported; allowed: None, a torch.nn.Module class or "
            "instance that emits logits, a skorch NeuralNet, or a scikit-learn classifier"
        )
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"estimator={estimator!r} has no predict_proba; a probabilistic classifier is needed"
        )
    return "sklearn"


def check_base(model: "SoftLabelClassifier", partial: bool) -> None:
    """Parameters that a scikit-learn classifier can't honour."""
    base = replication.last_step(model.estimator)
    name = type(base).__name__
    if model.loss != "cross_entropy":
        raise ValueError(
            f"loss={model.loss!r} needs a torch network; {name} takes 'cross_entropy' only"
        )
    if model.callbacks:
        raise ValueError(f"callbacks are for torch networks; estimator is {name}")
    if model.method == "replicate" and not replication.takes_weights(base):
        raise ValueError(
            f'method="replicate" needs a classifier whose fit takes sample_weight; {name} '
            'doesn\'t: use method="resample"'
        )
    if model.method == "sampled" and not hasattr(model.estimator, "partial_fit"):
        raise ValueError(
            'method="sampled" needs a classifier with partial_fit; '
            f"{type(model.estimator).__name__} has none"
        )
    has_epochs = (
        partial or model.method == "sampled" or hasattr(model.estimator, "staged_predict_proba")
    )
    if model.track_dynamics and not has_epochs:
        raise TypeError(
            'track_dynamics needs epochs: a torch network, method="sampled", or a classifier '
            f"with staged_predict_proba; {type(model.estimator).__name__} has none of them"
        )


def check_combination(model: "SoftLabelClassifier", kind: str, partial: bool) -> None:
    """Parameters that exclude each other."""
    if kind == "sklearn":
        check_base(model, partial)
    elif model.method in ("replicate", "resample"):
        raise ValueError(
            f"method={model.method!r} is for scikit-learn classifiers; a network takes 'auto', "
            "or 'sampled' for a new vote a row and epoch"
        )
    elif model.method == "sampled" and model.solver == "lbfgs" and kind == "mlp":
        raise ValueError("method='sampled' draws votes anew; solver='lbfgs' needs fixed targets")
    elif model.solver == "lbfgs" and kind == "module":
        raise ValueError("solver='lbfgs' is for the built-in network; estimator is a torch module")
    elif model.solver == "lbfgs" and kind == "mlp" and model.dropout > 0:
        raise ValueError(f"solver='lbfgs' needs dropout=0; got dropout={model.dropout!r}")


def stays_sparse(model: "SoftLabelClassifier", kind: str, values: Any) -> bool:
    """Whether targets can be kept sparse: for networks, where nothing else asks for all classes."""
    return (
        issparse(values)
        and kind != "sklearn"
        and not (model.label_smoothing or model.vote_smoothing or model.track_dynamics)
        and few_a_row(values)
    )


def read_matrix_targets(
    model: "SoftLabelClassifier", kind: str, values: Any, classes: Any, name: str
) -> SoftTargets | SparseTargets:
    """Targets (n, K), sparse or dense."""
    if stays_sparse(model, kind, values):
        return sparse_targets(values, classes, name)
    return soft_targets(values, classes, model.vote_smoothing, name)


def read_targets(
    model: "SoftLabelClassifier", kind: str, y: Any, soft_labels: Any, classes: Any
) -> tuple[SoftTargets | SparseTargets, np.ndarray | None]:
    """The targets to train on, and the column of each hard label where `y` is hard."""
    hard = None
    if is_matrix(y):
        found = read_matrix_targets(model, kind, y, classes, "y")
        labels = found.classes
    else:
        hard, labels = read_hard(y, classes)
    if soft_labels is not None:
        if not is_matrix(soft_labels):
            raise ValueError(
                "soft_labels must be a matrix (n_samples, n_classes); got shape "
                f"{np.shape(soft_labels)}"
            )
        found = read_matrix_targets(model, kind, soft_labels, labels, "soft_labels")
        if len(found.P) != _num_samples(y):
            raise ValueError(
                f"soft_labels have {len(found.P)} rows, but y has {_num_samples(y)} samples"
            )
    elif hard is not None:
        found = SoftTargets(one_hot(hard, len(labels)), None, labels)
    eps = model.label_smoothing
    if eps:
        if soft_labels is not None or hard is None:
            warnings.warn(
                f"label_smoothing={eps} on top of human soft labels softens them twice",
                UserWarning,
                stacklevel=5,
            )
        found = found._replace(P=(1 - eps) * found.P + eps / len(found.classes))
    return found, hard


def fit_base(
    model: "SoftLabelClassifier",
    X: Any,
    P: np.ndarray,
    weight: np.ndarray | None,
    hard: np.ndarray | None,
    epochs: int | None,
    goes_on: bool,
) -> None:
    """Fit a scikit-learn classifier by replication, resampling or sampling."""
    if epochs is None and (P > 0).any(axis=0).sum() < 2:
        raise ValueError("the targets hold a single class; at least two classes are needed")
    rng = model._random
    seed = int(rng.randint(2**31 - 1))
    if goes_on:
        base = copy.deepcopy(model.estimator_)
    else:
        base = replication.own_copy(model.estimator, seed)
    has_weights = replication.takes_weights(base)
    if weight is not None and not has_weights:
        raise ValueError(
            f"sample_weight was given, but {type(base).__name__}.fit takes no sample_weight"
        )
    recorder = None
    if model.track_dynamics:
        recorder = DynamicsRecorder(human_modes(P) if hard is None else hard, P)
    P = replication.prune_tail(P, model.prune_mass)
    labels = model.classes_

    def record(proba: np.ndarray) -> None:
        if recorder is not None:
            recorder.update(replication.spread_columns(proba, base.classes_, labels))

    if model.method == "sampled":
        for _ in range(model.max_epochs if epochs is None else epochs):
            replication.sampled_epoch(base, X, P, weight, labels, rng)
            record(base.predict_proba(X))
    else:
        copies = replication.expand(
            P, weight, has_weights and model.method != "resample", model.n_resamples, rng
        )
        if epochs is not None:
            replication.partial_fit_copies(base, X, copies, labels, rng)
            record(base.predict_proba(X))
        else:
            base = replication.fit_copies(base, X, P, weight, copies, labels)
            if recorder is not None:
                for proba in base.staged_predict_proba(X):
                    record(proba)
    model.estimator_ = base
    if recorder is not None:
        model.dynamics_ = recorder.result()
    model.history_ = pd.DataFrame(columns=["epoch", "train_loss"])
    model.n_iter_ = int(np.max(getattr(replication.last_step(base), "n_iter_", 1)))


def split_rows(
    n: int, fraction: float, hard: np.ndarray | None, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on and rows to validate on.

    Stratified by the hard labels where there are any, never by the soft targets: two fits with the
    same seed and other targets must see the same rows.
    """
    if n < 2:
        raise ValueError(f"early_stopping needs at least 2 samples; got n_samples = {n}")
    rows = np.arange(n)
    try:
        train, valid = train_test_split(rows, test_size=fraction, stratify=hard, random_state=seed)
    except ValueError:  # a class with one item, or fewer places than classes
        train, valid = train_test_split(rows, test_size=fraction, random_state=seed)
    return train, valid


def fit_network(
    model: "SoftLabelClassifier",
    kind: str,
    X: np.ndarray,
    targets: SoftTargets | SparseTargets,
    weight: np.ndarray | None,
    hard: np.ndarray | None,
    epochs: int | None,
    goes_on: bool,
) -> None:
    """Train a torch network through skorch."""
    from equipoise.devices import forked_seed, resolve_device
    from equipoise.training import EpochProgress

    from ...explainers.soft_labels.callback import CartographyCallback
    from . import training

    P, n, K = targets.P, len(targets.P), len(targets.classes)
    columns = targets.columns if isinstance(targets, SparseTargets) else None
    rng = model._random
    batch_seed, split_seed = (int(s) for s in rng.randint(2**31 - 1, size=2))
    device = resolve_device(model.device)
    weight = np.ones(n) if weight is None else weight
    size = int(np.clip(n // 20, 8, 128)) if model.batch_size == "auto" else int(model.batch_size)
    full_batch = model.solver == "lbfgs" and kind == "mlp"
    if full_batch:
        X = X.astype(np.float64)
    # The votes have a stream of their own: batches and dropout are those of the other targets.
    votes = np.random.RandomState([batch_seed, 1]) if model.method == "sampled" else None
    criterion = training.SoftTargetLoss(model.loss, votes)
    plan = training.TrainingPlan(
        criterion, model.solver, model.lr, model.weight_decay, size, model.max_epochs, device
    )
    with forked_seed(rng, device):
        if goes_on and (kind == "skorch" or epochs is not None):
            net = copy.deepcopy(model.net_)
        elif kind == "skorch":
            net = training.adopt_net(model.estimator, criterion)
        elif goes_on:
            net = training.make_net(copy.deepcopy(model.net_.module_), plan, batch_seed)
        else:
            if kind == "mlp":
                module = training.make_mlp(
                    X.shape[1],
                    K,
                    tuple(model.hidden_layer_sizes),
                    model.activation,
                    model.dropout,
                    X.dtype,
                )
            else:
                module = training.make_module(model.estimator, X.shape[1], K)
            if model.standardize:
                model.mean_, model.scale_ = training.moments(X, weight)
                module = training.standardized(module, model.mean_, model.scale_)
            net = training.make_net(module, plan, batch_seed)
        if not net.initialized_:
            net.initialize()
        dtype = training.module_dtype(net.module_)
        training.check_logits(net, X[:2], K)
        train_rows, valid = np.arange(n), None
        if model.early_stopping:
            train_rows, held = split_rows(n, model.validation_fraction, hard, split_seed)
            valid = training.tensors(X, P, weight, dtype, held, columns)
        data = training.tensors(X, P, weight, dtype, train_rows, columns)
        callbacks = list(model.callbacks or [])
        if full_batch:
            callbacks.append(("flat", training.StopWhenFlat()))
        if model.verbose:
            callbacks.append(("progress", EpochProgress()))
        if model.track_dynamics:
            reference = human_modes(P) if hard is None else hard
            cartography = CartographyCallback(X, reference, soft_labels=P)
            callbacks.append(("cartography", cartography))
        training.train(net, data, valid, model.n_iter_no_change, callbacks, epochs)
    history = training.history_frame(net)
    if not np.isfinite(history["train_loss"].to_numpy(dtype=float)).all():
        raise ValueError(
            f"training diverged: the loss became infinite or NaN with lr={model.lr}; lower lr"
        )
    model.net_ = net
    model.history_ = history
    model.n_iter_ = len(history)
    if model.track_dynamics:
        model.dynamics_ = cartography.dynamics_
