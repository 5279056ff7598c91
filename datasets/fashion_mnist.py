"""Fashion-MNIST: 70,000 images of garments, read from a local copy."""

from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

from .soft_labels.human_votes import DEBIAN_FOLDER, GARMENTS, read_idx

__all__ = ["fetch_fashion_mnist"]

PARTS = {"train": "train", "test": "t10k"}


def fetch_fashion_mnist(data_home: str | Path | None = None) -> Bunch:
    """Load the images and labels of Fashion-MNIST from a folder with its four files.

    Parameters
    ----------
    data_home : path, default=None
        Folder with ``train-images-idx3-ubyte.gz``, ``train-labels-idx1-ubyte.gz``,
        ``t10k-images-idx3-ubyte.gz`` and ``t10k-labels-idx1-ubyte.gz``; None takes that of Debian's
        package dataset-fashion-mnist.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (60000, 784) uint8 pixels and ``target`` (60000,) labels to train on, ``data_test``
        (10000, 784) and ``target_test`` (10000,), ``target_names`` (10,).

    Raises
    ------
    FileNotFoundError
        If a file isn't there; nothing is downloaded.
    ValueError
        If a file isn't what it should be.

    Notes
    -----
    The images are under the MIT licence; they are not part of this package.

    References
    ----------
    .. [1] H. Xiao, K. Rasul, R. Vollgraf, "Fashion-MNIST", arXiv 1708.07747.

    Examples
    --------
    >>> from equipoise.datasets import fetch_fashion_mnist
    >>> fetch_fashion_mnist("nowhere")
    Traceback (most recent call last):
        ...
    FileNotFoundError: no images in nowhere: train-images-idx3-ubyte.gz is missing
    """
    folder = DEBIAN_FOLDER if data_home is None else Path(data_home)
    found = {}
    for part, prefix in PARTS.items():
        names = f"{prefix}-images-idx3-ubyte.gz", f"{prefix}-labels-idx1-ubyte.gz"
        for name in names:
            if not (folder / name).exists():
                hint = (
                    ""
                    if data_home
                    else "; install Debian's dataset-fashion-mnist or give data_home"
                )
                raise FileNotFoundError(f"no images in {folder}: {name} is missing{hint}")
        images, labels = (read_idx(folder / name) for name in names)
        if images.ndim != 3 or labels.shape != (len(images),):
            raise ValueError(
                f"{folder} holds {part} images {images.shape} and labels {labels.shape}; expected "
                "(n, height, width) and (n,)"
            )
        found[part] = images.reshape(len(images), -1), labels.astype(np.int64)
    return Bunch(
        data=found["train"][0],
        target=found["train"][1],
        data_test=found["test"][0],
        target_test=found["test"][1],
        target_names=np.array(GARMENTS),
    )
