"""Items with several people's labels: generators with a known posterior, and published votes.

`make_ambiguous_digits` draws images whose posterior class probabilities are known. kind="gaussian":
y uniform, x ~ N(mu_y(lambda), C) with the digits' class means mu_k shrunk to their average,
mu_k(lambda) = (1 - lambda) mu_k + lambda mean_l mu_l, and C = 0.9 S_w + 0.1 tr(S_w) / 64 I from the
pooled covariance S_w within classes; P = softmax of the exact log-densities. kind="mix": two real
digits of classes a != b blended by t, with label law (1 - s(t)) e_a + s(t) e_b.
"""

import gzip
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import expit, softmax
from sklearn.datasets import get_data_home, load_digits
from sklearn.utils import Bunch, check_random_state
from sklearn.utils.validation import check_array, column_or_1d

__all__ = [
    "fetch_fashion_mnist_h",
    "inject_mode_shift",
    "load_cifar10h_counts",
    "make_ambiguous_digits",
    "simulate_annotators",
]

RandomState = int | np.random.RandomState | None

#: Width of the transition from one class to the other along a blend.
BLEND_WIDTH = 0.1


@lru_cache(maxsize=1)
def digit_moments() -> tuple[np.ndarray, np.ndarray]:
    """Class means (10, 64) and shrunk pooled covariance (64, 64) of the 8 x 8 digits."""
    X, y = load_digits(return_X_y=True)
    means = np.array([X[y == k].mean(axis=0) for k in range(10)])
    within = X - means[y]
    pooled = within.T @ within / len(X)
    return means, 0.9 * pooled + 0.1 * np.trace(pooled) / 64 * np.eye(64)


def log_densities(X: np.ndarray, means: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Log-density of each row under each class, up to a constant shared by the classes."""
    whiten = np.linalg.inv(np.linalg.cholesky(covariance))
    Z, M = X @ whiten.T, means @ whiten.T
    return -0.5 * ((Z**2).sum(axis=1)[:, None] - 2 * Z @ M.T + (M**2).sum(axis=1))


def gaussian_digits(
    n: int, ambiguity: float, noise: float, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, labels and exact posterior of the Gaussian model."""
    means, covariance = digit_moments()
    means = (1 - ambiguity) * means + ambiguity * means.mean(axis=0)
    covariance = covariance + noise**2 * np.eye(64)
    y = rng.randint(10, size=n)
    X = means[y] + rng.normal(size=(n, 64)) @ np.linalg.cholesky(covariance).T
    return X, y, softmax(log_densities(X, means, covariance), axis=1)


def blended_digits(
    n: int,
    ambiguity: float,
    pairs: Sequence[tuple[int, int]] | None,
    noise: float,
    rng: np.random.RandomState,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, drawn labels and label laws of blends of two digits."""
    digits, classes = load_digits(return_X_y=True)
    allowed = (
        [(a, b) for a in range(10) for b in range(10) if a != b]
        if pairs is None
        else [tuple(pair) for pair in pairs]
    )
    for pair in allowed:
        if len(pair) != 2 or pair[0] == pair[1] or not set(pair) <= set(range(10)):
            raise ValueError(f"pairs holds {pair!r}; allowed: two different digits from 0 to 9")
    ends = np.array(allowed)[rng.randint(len(allowed), size=n)]  # (n, 2)
    rows = [np.flatnonzero(classes == k) for k in range(10)]
    first, second = (
        digits[
            [
                rows[k][int(u * len(rows[k]))]
                for k, u in zip(ends[:, j], rng.uniform(size=n), strict=True)
            ]
        ]
        for j in range(2)
    )
    # Beta(c, c): all at the ends for ambiguity 0, uniform for 1/2, in the middle towards 1.
    t = (
        rng.randint(2, size=n).astype(float)
        if ambiguity == 0
        else rng.beta(ambiguity / (1 - ambiguity), ambiguity / (1 - ambiguity), size=n)
    )
    X = (1 - t)[:, None] * first + t[:, None] * second
    X = X + noise * rng.normal(size=X.shape)
    s = expit((t - 0.5) / BLEND_WIDTH)
    P = np.zeros((n, 10))
    P[np.arange(n), ends[:, 0]] = 1 - s
    P[np.arange(n), ends[:, 1]] = s
    y = np.where(rng.uniform(size=n) < s, ends[:, 1], ends[:, 0])
    return X, y, P


def make_ambiguous_digits(
    n_samples: int = 2000,
    kind: str = "gaussian",
    ambiguity: float = 0.3,
    pairs: Sequence[tuple[int, int]] | None = None,
    noise: float = 0.0,
    return_posterior: bool = True,
    random_state: RandomState = None,
) -> Bunch:
    """Make 8 x 8 digits that are hard to tell apart, with their true class probabilities.

    Parameters
    ----------
    n_samples : int, default=2000
        Number of items.
    kind : {"gaussian", "mix"}, default="gaussian"
        "gaussian" draws from one Gaussian a class, fitted to scikit-learn's digits, so that the
        posterior given the image is exact. "mix" blends two real digits; its label law is exact
        given the two digits and the blend, by construction.
    ambiguity : float, default=0.3
        In [0, 1). "gaussian": how far the class means are shrunk to their average (Bayes accuracy
        about 0.99, 0.94, 0.80 and 0.51 at 0, 0.3, 0.5 and 0.7). "mix": 0 leaves the digits whole,
        1/2 blends uniformly, towards 1 half and half.
    pairs : sequence of (int, int), default=None
        For "mix": the pairs of digits to blend; None takes all.
    noise : float, default=0.0
        Standard deviation of noise added to each pixel (pixels lie within 0 and 16); the Gaussian
        posterior takes it into account.
    return_posterior : bool, default=True
        Whether to give the class probabilities.
    random_state : int, RandomState or None, default=None
        Seed.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (n_samples, 64), ``target`` (n_samples,) drawn from the class probabilities,
        ``posterior`` (n_samples, 10) if asked for, ``target_names`` (10,).

    References
    ----------
    .. [1] M. Weiss, A. Gomez, P. Tonella, "Generating and detecting true ambiguity",
           arXiv 2207.10495, 2022.

    Examples
    --------
    >>> from equipoise.datasets import make_ambiguous_digits
    >>> digits = make_ambiguous_digits(500, ambiguity=0.5, random_state=0)
    >>> digits.data.shape, digits.posterior.shape
    ((500, 64), (500, 10))
    >>> round(float(digits.posterior.max(axis=1).mean()), 1)
    0.8
    """
    if kind not in ("gaussian", "mix"):
        raise ValueError(f"kind={kind!r} is not allowed; allowed: 'gaussian', 'mix'")
    if int(n_samples) != n_samples or n_samples < 1:
        raise ValueError(f"n_samples={n_samples!r} must be a whole number >= 1")
    if not 0 <= ambiguity < 1:
        raise ValueError(f"ambiguity={ambiguity!r} must be in [0, 1)")
    if not (np.isfinite(noise) and noise >= 0):
        raise ValueError(f"noise={noise!r} must be a finite number >= 0")
    if pairs is not None and kind != "mix":
        raise ValueError("pairs is for kind='mix'; the Gaussian model draws all ten classes")
    rng = check_random_state(random_state)
    if kind == "gaussian":
        X, y, P = gaussian_digits(int(n_samples), ambiguity, noise, rng)
    else:
        X, y, P = blended_digits(int(n_samples), ambiguity, pairs, noise, rng)
    made = Bunch(data=X, target=y, target_names=np.arange(10))
    if return_posterior:
        made["posterior"] = P
    return made


def read_posterior(P: npt.ArrayLike) -> np.ndarray:
    posterior = np.asarray(check_array(P, dtype=np.float64, input_name="P"))
    if (posterior < 0).any() or np.abs(posterior.sum(axis=1) - 1).max() > 1e-3:
        raise ValueError("P must hold one distribution a row: non-negative, summing to 1")
    if posterior.shape[1] < 2:
        raise ValueError("P must have at least 2 columns, one a class")
    return posterior / posterior.sum(axis=1, keepdims=True)


def draw_columns(P: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """One column from each row's distribution."""
    cumulative = np.cumsum(P, axis=1)
    u = rng.uniform(size=(len(P), 1)) * cumulative[:, -1:]
    return (u >= cumulative[:, :-1]).sum(axis=1)


def choose_workers(
    n: int, n_annotators: int, votes_per_item: int, missing: str, rng: np.random.RandomState
) -> np.ndarray:
    """Who votes on which item, (n, votes_per_item)."""
    if missing == "random":
        return rng.uniform(size=(n, n_annotators)).argsort(axis=1)[:, :votes_per_item]
    # A shuffled deck dealt round: loads differ by one at most, no one is dealt an item twice.
    return rng.permutation(n_annotators)[
        (np.arange(n)[:, None] * votes_per_item + np.arange(votes_per_item)) % n_annotators
    ]


def simulate_annotators(
    P: npt.ArrayLike,
    n_annotators: int = 20,
    votes_per_item: int = 10,
    skill: tuple[float, float] = (0.6, 0.98),
    bias: npt.ArrayLike | None = None,
    spammer_fraction: float = 0.0,
    difficulty: npt.ArrayLike | None = None,
    missing: str = "random",
    random_state: RandomState = None,
) -> Bunch:
    """Simulate annotators who vote on items with known class probabilities.

    An annotator sees class k of item i with probability P_ik and reports it with probability equal
    to the annotator's skill, else another class. Skill 1 samples votes from `P` itself.

    Parameters
    ----------
    P : array-like of shape (n_samples, n_classes)
        Class probabilities of each item.
    n_annotators : int, default=20
        Number of annotators.
    votes_per_item : int, default=10
        Annotators who vote on each item.
    skill : (float, float), default=(0.6, 0.98)
        Each annotator's skill is drawn uniformly between these.
    bias : array-like of shape (n_classes,), default=None
        Weights of the classes among the wrong reports; None is uniform.
    spammer_fraction : float, default=0.0
        Share of annotators who answer uniformly whatever they see.
    difficulty : array-like of shape (n_samples,), default=None
        In [0, 1]: shrinks every skill linearly to chance, which it reaches at 1.
    missing : {"random", "balanced"}, default="random"
        Whether an item's annotators are drawn at random, or all annotators have equal loads.
    random_state : int, RandomState or None, default=None
        Seed.

    Returns
    -------
    sklearn.utils.Bunch
        ``annotations`` (DataFrame with ``task``, ``worker``, ``label``, one row a vote),
        ``counts`` (n_samples, n_classes), ``worker_confusion`` (n_annotators, n_classes, n_classes)
        with rows for the class seen (at difficulty 0), ``worker_skill`` (n_annotators,), a
        spammer's being 1 / n_classes.

    References
    ----------
    .. [1] A. P. Dawid, A. M. Skene, "Maximum likelihood estimation of observer error-rates using
           the EM algorithm", Applied Statistics, 1979.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.datasets import simulate_annotators
    >>> votes = simulate_annotators(np.eye(3), 5, 4, skill=(1, 1), random_state=0)
    >>> votes.counts
    array([[4, 0, 0],
           [0, 4, 0],
           [0, 0, 4]])
    >>> list(votes.annotations.columns)
    ['task', 'worker', 'label']
    """
    P = read_posterior(P)
    n, K = P.shape
    low, high = skill
    if not 0 <= low <= high <= 1:
        raise ValueError(f"skill={skill!r} must be (low, high) with 0 <= low <= high <= 1")
    if not 0 <= spammer_fraction <= 1:
        raise ValueError(f"spammer_fraction={spammer_fraction!r} must be in [0, 1]")
    if not 1 <= votes_per_item <= n_annotators:
        raise ValueError(
            f"votes_per_item={votes_per_item!r} must be between 1 and n_annotators={n_annotators!r}"
        )
    if missing not in ("random", "balanced"):
        raise ValueError(f"missing={missing!r} is not allowed; allowed: 'random', 'balanced'")
    hard = np.zeros(n) if difficulty is None else column_or_1d(difficulty).astype(float)
    if hard.shape != (n,) or not ((hard >= 0) & (hard <= 1)).all():
        raise ValueError(f"difficulty must be {n} numbers in [0, 1]")
    liked = np.ones(K) if bias is None else column_or_1d(bias).astype(float)
    if liked.shape != (K,) or (liked < 0).any() or (liked > 0).sum() < 2:
        raise ValueError(f"bias must be {K} non-negative weights, at least two of them positive")
    rng = check_random_state(random_state)
    worker_skill = rng.uniform(low, high, size=n_annotators)
    spams = rng.permutation(n_annotators) < round(spammer_fraction * n_annotators)
    worker_skill[spams] = 1 / K
    wrong = np.where(np.eye(K, dtype=bool), 0, liked)
    wrong = wrong / wrong.sum(axis=1, keepdims=True)  # (K, K) law of the reports that miss
    spam_wrong = (1 - np.eye(K)) / (K - 1)
    miss = np.where(spams[:, None, None], spam_wrong, wrong)  # (J, K, K)
    correct = worker_skill[:, None, None]
    confusion = correct * np.eye(K) + (1 - correct) * miss
    workers = choose_workers(n, n_annotators, votes_per_item, missing, rng)
    task = np.repeat(np.arange(n), votes_per_item)
    worker = workers.ravel()
    seen = draw_columns(P[task], rng)
    chance = 1 / K + (worker_skill[worker] - 1 / K) * (1 - hard[task])
    right = rng.uniform(size=len(task)) < chance
    label = np.where(right, seen, draw_columns(miss[worker, seen], rng))
    counts = np.zeros((n, K), dtype=np.int64)
    np.add.at(counts, (task, label), 1)
    return Bunch(
        annotations=pd.DataFrame({"task": task, "worker": worker, "label": label}),
        counts=counts,
        worker_confusion=confusion,
        worker_skill=worker_skill,
    )


def inject_mode_shift(
    y: npt.ArrayLike, P: npt.ArrayLike, rate: float, random_state: RandomState = None
) -> np.ndarray:
    """Replace the labels of random items by their most probable other class.

    Parameters
    ----------
    y : array-like of shape (n_samples,), int
        Labels, columns of `P`.
    P : array-like of shape (n_samples, n_classes)
        Class probabilities; items with a one-hot row have no other class and keep their label.
    rate : float
        Share of all items that change.
    random_state : int, RandomState or None, default=None
        Seed.

    Returns
    -------
    ndarray of shape (n_samples,)
        The changed labels: exactly ``round(rate * n_samples)`` differ from `y`.

    Raises
    ------
    ValueError
        If there are fewer items with another possible class than are to change.

    Examples
    --------
    >>> from equipoise.datasets import inject_mode_shift
    >>> inject_mode_shift([0, 0], [[0.7, 0.1, 0.2], [1.0, 0.0, 0.0]], rate=0.5, random_state=0)
    array([2, 0])
    """
    P = read_posterior(P)
    labels = np.asarray(column_or_1d(y))
    n, K = P.shape
    whole = labels.shape == (n,) and labels.dtype.kind in "iu"
    if not whole or labels.min() < 0 or labels.max() >= K:
        raise ValueError(f"y must be {n} whole numbers from 0 to {K - 1}, columns of P")
    if not 0 <= rate <= 1:
        raise ValueError(f"rate={rate!r} must be in [0, 1]")
    others = P.copy()
    others[np.arange(n), labels] = 0
    eligible = np.flatnonzero((P.max(axis=1) < 1) & (others.max(axis=1) > 0))
    n_shifts = round(rate * n)
    if n_shifts > len(eligible):
        raise ValueError(
            f"rate={rate!r} asks for {n_shifts} shifts, but only {len(eligible)} items have "
            "another possible class"
        )
    rows = check_random_state(random_state).permutation(eligible)[:n_shifts]
    shifted = labels.copy()
    shifted[rows] = others[rows].argmax(axis=1)
    return shifted


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
