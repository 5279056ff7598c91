"""Published human votes on images: Fashion-MNIST-H and CIFAR-10H."""

import gzip
from hashlib import sha256
from pathlib import Path
from urllib.request import urlopen

import numpy as np
from sklearn.datasets import get_data_home
from sklearn.utils import Bunch

__all__ = ["fetch_fashion_mnist_h", "load_cifar10h_counts"]

VOTES_URL = "https://raw.githubusercontent.com/takashiishida/irreducible/HEAD/data/fmh_counts.csv"
#: Of the counts as little-endian 64-bit integers, whatever the numbers look like in the file.
VOTES_SHA256 = "f882513782cf6dff5d2e2be99123f86b11874d71acabe9337732d1b57ea9b73c"
#: Where Debian's package dataset-fashion-mnist puts the images.
DEBIAN_FOLDER = Path("/usr/share/datasets/fashion-mnist")
GARMENTS = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
CIFAR_CLASSES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)


def read_idx(path: Path) -> np.ndarray:
    """Array of bytes from a gzipped IDX file."""
    raw = gzip.decompress(path.read_bytes())
    n_dimensions = raw[3]
    if raw[:3] != b"\x00\x00\x08" or not 1 <= n_dimensions <= 4:
        raise ValueError(f"{path} is not an IDX file of bytes")
    shape = np.frombuffer(raw, ">u4", n_dimensions, offset=4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * n_dimensions).reshape(shape)


def read_votes(path: Path, n_items: int) -> np.ndarray:
    """Vote counts (n_items, 10) from a CSV file without header, or a NumPy file."""
    counts = np.load(path) if path.suffix == ".npy" else np.loadtxt(path, delimiter=",")
    if counts.shape != (n_items, 10) or (counts < 0).any() or (counts != np.rint(counts)).any():
        raise ValueError(f"{path} holds {counts.shape}; expected whole numbers ({n_items}, 10)")
    return counts.astype(np.int64)


def download_votes(url: str, target: Path) -> None:
    """Fetch the votes once; nothing is kept unless they are the known ones."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.stem}.partial{target.suffix}")
    with urlopen(url, timeout=60) as answer:
        partial.write_bytes(answer.read())
    found = sha256(read_votes(partial, 10_000).astype("<i8").tobytes()).hexdigest()
    if found != VOTES_SHA256:
        partial.unlink()
        raise OSError(f"{url} holds other votes (SHA-256 {found}, expected {VOTES_SHA256})")
    partial.replace(target)


def fetch_fashion_mnist_h(
    data_home: str | Path | None = None,
    image_source: str | Path | None = None,
    *,
    path: str | Path | None = None,
) -> Bunch:
    """Load human votes on the 10,000 test images of Fashion-MNIST, with the images.

    Parameters
    ----------
    data_home : path, default=None
        Folder in which the votes are kept after the first download; None takes
        `sklearn.datasets.get_data_home`.
    image_source : path, default=None
        Folder with ``t10k-images-idx3-ubyte.gz`` and ``t10k-labels-idx1-ubyte.gz``; None takes that
        of Debian's package dataset-fashion-mnist.
    path : path, default=None
        A copy of the votes (CSV, one row an image, one column a class), instead of the download.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (10000, 784) uint8 pixels, ``target`` (10000,) original labels, ``counts``
        (10000, 10) votes, ``target_names`` (10,).

    Raises
    ------
    FileNotFoundError
        If the images or the given votes aren't there.
    OSError
        If the download fails, or isn't the file that it should be.

    Notes
    -----
    The votes come from a repository under the GPL-3; they are not part of this package.

    References
    ----------
    .. [1] T. Ishida et al., "Is the performance of my deep network too good to be true? A direct
           approach to estimating the Bayes error in binary classification", ICLR 2023.
    .. [2] H. Xiao, K. Rasul, R. Vollgraf, "Fashion-MNIST", arXiv 1708.07747.

    Examples
    --------
    >>> from equipoise.datasets import fetch_fashion_mnist_h
    >>> fetch_fashion_mnist_h(image_source="nowhere")
    Traceback (most recent call last):
        ...
    FileNotFoundError: no images in nowhere: t10k-images-idx3-ubyte.gz is missing
    """
    folder = DEBIAN_FOLDER if image_source is None else Path(image_source)
    names = ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz")
    for name in names:
        if not (folder / name).exists():
            hint = (
                ""
                if image_source
                else "; install Debian's dataset-fashion-mnist or give image_source"
            )
            raise FileNotFoundError(f"no images in {folder}: {name} is missing{hint}")
    images, labels = (read_idx(folder / name) for name in names)
    if path is None:
        votes = Path(get_data_home(data_home)) / "fashion_mnist_h_counts.csv"
        if not votes.exists():
            download_votes(VOTES_URL, votes)
    else:
        votes = Path(path)
    return Bunch(
        data=images.reshape(len(images), -1),
        target=labels.astype(np.int64),
        counts=read_votes(votes, len(images)),
        target_names=np.array(GARMENTS),
    )


def load_cifar10h_counts(path: str | Path) -> Bunch:
    """Load human votes on the 10,000 test images of CIFAR-10 from a local copy.

    Parameters
    ----------
    path : path
        The file ``cifar10h-counts.npy`` of the CIFAR-10H release (CC BY-NC-SA 4.0, not part of this
        package).

    Returns
    -------
    sklearn.utils.Bunch
        ``counts`` (10000, 10) votes in the order of the test images, ``target_names`` (10,).

    References
    ----------
    .. [1] J. C. Peterson et al., "Human uncertainty makes classification more robust", ICCV 2019.

    Examples
    --------
    >>> from equipoise.datasets import load_cifar10h_counts
    >>> load_cifar10h_counts("nowhere.npy")
    Traceback (most recent call last):
        ...
    FileNotFoundError: no votes at nowhere.npy
    """
    if not Path(path).exists():
        raise FileNotFoundError(f"no votes at {path}")
    return Bunch(counts=read_votes(Path(path), 10_000), target_names=np.array(CIFAR_CLASSES))
