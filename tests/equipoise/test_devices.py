"""Devices that exist, floating dtypes, and seeds that leave the caller's generators alone."""

import numpy as np
import pytest
import torch

from equipoise.devices import forked_seed, resolve_device, resolve_dtype

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")


def test_auto_takes_the_best_there_is(monkeypatch):
    for cuda, mps, expected in [(1, 1, "cuda"), (0, 1, "mps"), (0, 0, "cpu"), (1, 0, "cuda")]:
        monkeypatch.setattr(torch.cuda, "is_available", lambda cuda=cuda: bool(cuda))
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda mps=mps: bool(mps))
        assert resolve_device("auto").type == expected
    assert resolve_device() == resolve_device("auto")


def test_devices_pass_through():
    assert resolve_device("cpu") == torch.device("cpu")
    assert resolve_device(torch.device("cpu")) == torch.device("cpu")


@pytest.mark.parametrize("wrong", ["quantum", "cuda:99", "", None, "meta", "cpu:-7x"])
def test_what_cannot_be_used_is_named(wrong):
    with pytest.raises(ValueError, match="device=") as caught:
        resolve_device(wrong)
    assert repr(wrong) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device is here")
def test_missing_cuda_is_an_error():
    with pytest.raises(ValueError, match="device='cuda'"):
        resolve_device("cuda")


def test_dtypes():
    assert resolve_dtype("float32") is torch.float32
    assert resolve_dtype("float64") is torch.float64
    assert resolve_dtype(torch.bfloat16) is torch.bfloat16


@pytest.mark.parametrize(
    "wrong", ["int64", torch.int32, "complex64", "Tensor", "nonsense", None, 3]
)
def test_dtypes_that_are_not_floating_are_named(wrong):
    with pytest.raises(ValueError, match="dtype="):
        resolve_dtype(wrong)


def test_seed_repeats_and_the_generator_comes_back():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    with forked_seed(0) as seed:
        first = torch.rand(4)
    assert torch.equal(before, torch.get_rng_state())
    with forked_seed(0) as again:
        assert torch.equal(first, torch.rand(4))
    with forked_seed(1):
        assert not torch.equal(first, torch.rand(4))
    assert seed == again == int(np.random.RandomState(0).randint(2**31 - 1))


def test_generator_comes_back_after_an_error():
    before = torch.get_rng_state()
    with pytest.raises(ZeroDivisionError), forked_seed(0):
        _ = torch.rand(1) and 1 / 0
    assert torch.equal(before, torch.get_rng_state())


def test_a_random_state_moves_on():
    state = np.random.RandomState(3)
    with forked_seed(state) as first, forked_seed(state) as second:
        assert first != second


def test_no_other_device_is_seeded(monkeypatch):
    """torch.manual_seed would seed, or on first use reseed, GPUs that the block doesn't use."""
    touched = []
    monkeypatch.setattr(torch, "manual_seed", lambda seed: touched.append("all"))
    monkeypatch.setattr(torch.cuda, "manual_seed_all", lambda seed: touched.append("cuda"))
    with forked_seed(0), forked_seed(1, "cpu"):
        torch.rand(1)
    assert touched == []


@needs_cuda
@pytest.mark.parametrize("device", ["cuda", "cuda:0"])
def test_cuda_generator_is_forked(device):
    torch.cuda.manual_seed(5)
    before, cpu_before = torch.cuda.get_rng_state(), torch.get_rng_state()
    with forked_seed(0, device):
        first, first_cpu = torch.rand(4, device=device), torch.rand(4)
    assert torch.equal(before, torch.cuda.get_rng_state())
    assert torch.equal(cpu_before, torch.get_rng_state())
    with forked_seed(0, device):
        assert torch.equal(first, torch.rand(4, device=device))
        assert torch.equal(first_cpu, torch.rand(4))


@needs_cuda
def test_cuda_is_left_alone_by_a_block_on_the_cpu():
    torch.cuda.manual_seed(5)
    before = torch.cuda.get_rng_state()
    with forked_seed(0, "cpu"):
        torch.rand(1)
        assert torch.equal(before, torch.cuda.get_rng_state())


@needs_cuda
def test_cuda_is_found():
    assert resolve_device("auto").type == "cuda"
    assert resolve_device("cuda:0") == torch.device("cuda:0")
