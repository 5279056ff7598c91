"""The reader of Fashion-MNIST, on files of its format that the test writes."""

import gzip
import struct

import numpy as np
import pytest

from equipoise.datasets import fetch_fashion_mnist


def write(path, array):
    header = struct.pack(">BBBB", 0, 0, 8, array.ndim) + struct.pack(
        f">{array.ndim}I", *array.shape
    )
    path.write_bytes(gzip.compress(header + array.astype(np.uint8).tobytes()))


def copy_of(folder, sizes):
    rng = np.random.default_rng(0)
    arrays = {}
    for prefix, n in sizes.items():
        arrays[prefix] = rng.integers(256, size=(n, 28, 28)), rng.integers(10, size=n)
        write(folder / f"{prefix}-images-idx3-ubyte.gz", arrays[prefix][0])
        write(folder / f"{prefix}-labels-idx1-ubyte.gz", arrays[prefix][1])
    return arrays


def test_reads_both_parts(tmp_path):
    arrays = copy_of(tmp_path, {"train": 7, "t10k": 3})
    data = fetch_fashion_mnist(tmp_path)
    assert np.array_equal(data.data, arrays["train"][0].reshape(7, 784))
    assert np.array_equal(data.target, arrays["train"][1])
    assert np.array_equal(data.data_test, arrays["t10k"][0].reshape(3, 784))
    assert np.array_equal(data.target_test, arrays["t10k"][1])
    assert data.data.dtype == np.uint8
    assert len(data.target_names) == 10


def test_missing_and_wrong_files_are_named(tmp_path):
    copy_of(tmp_path, {"train": 2})
    with pytest.raises(FileNotFoundError, match=r"t10k-images-idx3-ubyte\.gz is missing"):
        fetch_fashion_mnist(tmp_path)
    copy_of(tmp_path, {"t10k": 2})
    write(tmp_path / "t10k-labels-idx1-ubyte.gz", np.zeros(3))
    with pytest.raises(ValueError, match=r"labels \(3,\)"):
        fetch_fashion_mnist(tmp_path)
