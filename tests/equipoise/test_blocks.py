"""Blocks cover the range, keep to the memory, and run anywhere in order."""

import math
import os
import threading
from functools import partial

import joblib
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.blocks import iter_blocks, map_blocks


@settings(deadline=None)
@given(st.integers(0, 5000), st.floats(0, 2**22), st.floats(1e-6, 64))
def test_blocks_partition_the_range_within_the_memory(n_items, bytes_per_item, memory):
    blocks = list(iter_blocks(n_items, bytes_per_item, working_memory=memory))
    assert [i for block in blocks for i in range(n_items)[block]] == list(range(n_items))
    lengths = [block.stop - block.start for block in blocks]
    if n_items == 0:
        assert blocks == []
        return
    assert min(lengths) >= 1
    assert max(lengths) - min(lengths) <= 1
    assert all(n == 1 or n * bytes_per_item <= memory * 2**20 for n in lengths)
    # No more blocks than the memory asks for; items below a byte count as one.
    allowed = max(1, math.floor(memory * 2**20 / max(bytes_per_item, 1)))
    assert len(blocks) == math.ceil(n_items / allowed)


def test_budget_is_scikit_learns_unless_given():
    with sklearn.config_context(working_memory=1):
        assert len(list(iter_blocks(8, 2**18))) == 2
        assert len(list(iter_blocks(8, 2**18, working_memory=2))) == 1


def test_unlimited_memory_is_one_block():
    assert list(iter_blocks(7, 1e9, working_memory=math.inf)) == [slice(0, 7)]


@pytest.mark.parametrize("memory", [0, -1, math.nan])
def test_no_memory_is_an_error(memory):
    with pytest.raises(ValueError, match="working_memory"):
        list(iter_blocks(3, 8, working_memory=memory))


@pytest.mark.parametrize("n_jobs", [None, 1, 2, -1])
def test_results_come_in_order(n_jobs):
    blocks = list(iter_blocks(100, 2**20, working_memory=3))
    starts = map_blocks(lambda block: block.start, blocks, n_jobs=n_jobs)
    assert starts == [block.start for block in blocks]


def test_threads_by_default_and_processes_where_asked():
    barrier = threading.Barrier(2, timeout=30)

    def meets_the_other(_):
        barrier.wait()  # passes only if two blocks run at once in this process
        return True

    assert map_blocks(meets_the_other, range(2), n_jobs=2) == [True, True]
    with joblib.parallel_config("multiprocessing", n_jobs=2):
        # Builtins, because workers can't import this file; forked, because that is quick.
        process = partial(eval, "__import__('os').getpid()")
        assert os.getpid() not in map_blocks(process, [{}, {}])


def working_memory(_):
    return sklearn.get_config()["working_memory"]


def test_workers_see_scikit_learns_configuration():
    with sklearn.config_context(working_memory=7):
        assert map_blocks(working_memory, range(4), n_jobs=2) == [7] * 4


def test_an_error_comes_out():
    def fail(block):
        raise ZeroDivisionError(f"block {block}")

    with pytest.raises(ZeroDivisionError, match="block 0"):
        map_blocks(fail, [0], n_jobs=2)
