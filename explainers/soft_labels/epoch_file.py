"""Probabilities of all epochs in a NumPy file that grows as they come.

The header of a .npy file leaves room for a longer first axis. Each epoch is appended, and then the
header is written anew: at any time the file holds whole epochs, also after training was cut short,
and memory never holds more than one.
"""

from pathlib import Path
from typing import BinaryIO

import numpy as np

__all__ = ["STORED", "EpochFile", "check_store"]

#: Precisions of stored probabilities; half keeps about three digits.
STORED = ("float16", "float32", "float64")


def check_store(store: str | Path, store_dtype: str) -> None:
    """A path for the file or "stream", and a precision."""
    if not isinstance(store, str | Path):
        raise TypeError(f"store={store!r} must be 'stream' or a path")
    if store_dtype not in STORED:
        raise ValueError(f"store_dtype={store_dtype!r} is not allowed; allowed: {list(STORED)}")


class EpochFile:
    """An array (n_epochs, n_samples, n_classes) on disk, longer by one epoch with each `write`."""

    def __init__(self, path: str | Path, dtype: str) -> None:
        self.path, self.dtype, self.n_epochs = Path(path), np.dtype(dtype), 0

    def write(self, F: np.ndarray) -> None:
        """Append the probabilities (n, K) after one more epoch; the first starts the file anew."""
        with self.path.open("r+b" if self.n_epochs else "wb") as file:
            self._write_header(file, (self.n_epochs, *F.shape))
            file.seek(0, 2)
            file.write(np.ascontiguousarray(F, dtype=self.dtype).tobytes())
            self.n_epochs += 1
            file.seek(0)
            self._write_header(file, (self.n_epochs, *F.shape))

    def _write_header(self, file: BinaryIO, shape: tuple[int, ...]) -> None:
        described = np.lib.format.dtype_to_descr(self.dtype)
        np.lib.format.write_array_header_1_0(
            file, {"descr": described, "fortran_order": False, "shape": shape}
        )
