"""Torch devices, dtypes and seeds, in one place. Importing this module imports torch."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from sklearn.utils import check_random_state

__all__ = ["forked_seed", "resolve_device", "resolve_dtype"]


def resolve_device(device: str | torch.device = "auto") -> torch.device:
    """Turn a `device` parameter into a torch device.

    Parameters
    ----------
    device : str or torch.device, default="auto"
        "auto" takes CUDA where it is available, then Apple's MPS, then the CPU.

    Returns
    -------
    torch.device
        A device that this machine has.

    Raises
    ------
    ValueError
        If torch doesn't know the device, or it isn't available here.

    Examples
    --------
    >>> from equipoise.devices import resolve_device
    >>> resolve_device("cpu")
    device(type='cpu')
    """
    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        found = torch.device(device)
        if found.type != "meta":  # which allocates without holding any values
            torch.empty(0, device=found)
            return found
        reason = "it holds no values"
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).split("\n")[0]
    raise ValueError(f"device={device!r} can't be used here: {reason}")


def resolve_dtype(dtype: str | torch.dtype) -> torch.dtype:
    """Turn a `dtype` parameter into a floating torch dtype.

    Parameters
    ----------
    dtype : str or torch.dtype
        "float32", "float64", or a torch dtype.

    Returns
    -------
    torch.dtype
        The floating dtype.

    Raises
    ------
    ValueError
        If it isn't a floating dtype of torch.

    Examples
    --------
    >>> from equipoise.devices import resolve_dtype
    >>> resolve_dtype("float32")
    torch.float32
    """
    found = getattr(torch, dtype, None) if isinstance(dtype, str) else dtype
    if not isinstance(found, torch.dtype) or not found.is_floating_point:
        raise ValueError(f"dtype={dtype!r} is not a floating dtype; allowed: 'float32', 'float64'")
    return found


@contextmanager
def forked_seed(
    random_state: int | np.random.RandomState | None, device: str | torch.device = "cpu"
) -> Iterator[int]:
    """Seed torch inside a block, and give the caller's generator back afterwards.

    Only the generators of the CPU and of `device` are touched. They are global to the process:
    blocks in several threads disturb each other's draws.

    Parameters
    ----------
    random_state : int, RandomState or None
        As in scikit-learn; the seed for torch is drawn from it.
    device : str or torch.device, default="cpu"
        The generator of this device is forked too.

    Yields
    ------
    int
        The seed that torch was given.

    Examples
    --------
    >>> import torch
    >>> from equipoise.devices import forked_seed
    >>> with forked_seed(0):
    ...     first = torch.rand(1)
    >>> with forked_seed(0):
    ...     again = torch.rand(1)
    >>> bool(first == again)
    True
    """
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    where = torch.device(device)
    accelerators = [] if where.type == "cpu" else [where]
    with torch.random.fork_rng(accelerators, device_type=None if not accelerators else where.type):
        # Not torch.manual_seed: it seeds every GPU, also those that aren't given back.
        torch.default_generator.manual_seed(seed)
        if where.type == "cuda":
            with torch.cuda.device(where):
                torch.cuda.manual_seed(seed)
        elif accelerators:
            torch.get_device_module(where).manual_seed(seed)
        yield seed
