"""Work in blocks that fit in memory, run through joblib on threads, processes or a cluster."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from sklearn import get_config
from sklearn.utils.parallel import Parallel, delayed

__all__ = ["iter_blocks", "map_blocks"]


def iter_blocks(
    n_items: int, bytes_per_item: float, working_memory: float | None = None
) -> Iterator[slice]:
    """Split a range into slices whose temporaries fit into a memory budget.

    Parameters
    ----------
    n_items : int
        Length of the range to split.
    bytes_per_item : float
        Memory that one item's temporaries take, in bytes.
    working_memory : float, optional
        Budget in MiB; None takes `sklearn.get_config()["working_memory"]`.
        One item is always allowed, also where it is over the budget.

    Yields
    ------
    slice
        Consecutive, non-empty, of nearly equal length, covering ``range(n_items)``.

    Raises
    ------
    ValueError
        If `working_memory` isn't positive.

    Examples
    --------
    >>> from equipoise.blocks import iter_blocks
    >>> list(iter_blocks(5, bytes_per_item=2**19, working_memory=1))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    if working_memory is None:
        working_memory = get_config()["working_memory"]
    if not working_memory > 0:
        raise ValueError(f"working_memory={working_memory!r} must be a positive number of MiB")
    longest = max(1, int(min(n_items, working_memory * 2**20 / max(bytes_per_item, 1))))
    n_blocks = -(-n_items // longest)
    for k in range(n_blocks):
        yield slice(-(-k * n_items // n_blocks), -(-(k + 1) * n_items // n_blocks))


def map_blocks(
    function: Callable[..., Any], blocks: Iterable[Any], n_jobs: int | None = None
) -> list[Any]:
    """Apply a function to each block, through joblib.

    Parameters
    ----------
    function : callable
        Called with one block. It should release the GIL (BLAS, numba with ``nogil``): threads
        are preferred unless `joblib.parallel_config` says otherwise.
    blocks : iterable
        What is handed to `function`, one at a time.
    n_jobs : int, optional
        As everywhere in scikit-learn, whose configuration the blocks see too.

    Returns
    -------
    list
        The results, in the order of the blocks.

    Examples
    --------
    >>> from equipoise.blocks import map_blocks
    >>> map_blocks(lambda block: block.stop, [slice(0, 2), slice(2, 5)], n_jobs=2)
    [2, 5]
    """
    return Parallel(n_jobs=n_jobs, prefer="threads")(delayed(function)(block) for block in blocks)
