"""Batches hold every row once, in the order the seed gives; the progress bar counts epochs."""

import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from skorch import NeuralNetRegressor
from skorch.dataset import Dataset

from equipoise.training import EpochProgress, TensorBatches


@given(n=st.integers(1, 40), size=st.integers(1, 45), seed=st.none() | st.integers(0, 9))
def test_each_row_comes_once_beside_its_target(n, size, seed):
    X = torch.arange(n)
    rng = None if seed is None else np.random.RandomState(seed)
    batches = list(TensorBatches(Dataset(X, X + 100), size, rng))
    assert len(batches) == len(TensorBatches(Dataset(X, X), size))
    assert all(len(part) == size for part, _ in batches[:-1])
    seen = torch.cat([part for part, _ in batches])
    assert torch.equal(torch.cat([target for _, target in batches]), seen + 100)
    order = np.arange(n) if seed is None else np.random.RandomState(seed).permutation(n)
    assert seen.tolist() == order.tolist()


def test_each_epoch_has_a_new_order():
    batches = TensorBatches(
        Dataset(torch.arange(50), torch.arange(50)), 50, np.random.RandomState(0)
    )
    (first, _), (second, _) = next(iter(batches)), next(iter(batches))
    assert not torch.equal(first, second)
    assert torch.equal(first.sort().values, second.sort().values)


def test_minus_one_takes_all_rows_and_prediction_has_no_target():
    ((X, y),) = TensorBatches(Dataset(torch.ones(7, 2)), -1)
    assert X.shape == (7, 2) and y.shape == (7,)


def test_progress_counts_epochs_and_pickles(capsys):
    bar = EpochProgress()
    net = NeuralNetRegressor(
        torch.nn.Linear,
        module__in_features=2,
        module__out_features=1,
        max_epochs=3,
        train_split=None,
        verbose=0,
        callbacks=[("progress", bar)],
    )
    net.fit(np.ones((8, 2), np.float32), np.ones((8, 1), np.float32))
    shown = capsys.readouterr().err
    assert "3/3" in shown and "loss=" in shown
    fitted = dict(net.callbacks_)["progress"]
    assert fitted.bar_.n == 3
    assert not hasattr(pickle.loads(pickle.dumps(fitted)), "bar_")


def test_net_trains_alike_with_torch_loader_and_with_batches():
    X = np.random.RandomState(0).randn(20, 2).astype(np.float32)
    y = X.sum(1, keepdims=True)
    weights = []
    for iterator in (TensorBatches, torch.utils.data.DataLoader):
        torch.manual_seed(0)
        net = NeuralNetRegressor(
            torch.nn.Linear,
            module__in_features=2,
            module__out_features=1,
            max_epochs=2,
            batch_size=8,
            train_split=None,
            verbose=0,
            iterator_train=iterator,
        )
        net.fit(torch.as_tensor(X), torch.as_tensor(y))
        weights.append(net.module_.weight.detach())
    assert weights[0].numpy() == pytest.approx(weights[1].numpy(), rel=1e-6)
