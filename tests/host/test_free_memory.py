"""What is known of free memory, and how fresh blocks are made of it."""

import mmap

import numpy as np
import pytest

from weft.host.memory import available, whole_pages
from weft.runtime.memory import recycled


def base_of(array):
    while isinstance(array, np.ndarray):
        array = array.base
    return array


def test_whole_pages_are_part_of_what_is_free():
    free = available()
    assert whole_pages() % mmap.PAGESIZE == 0 and 0 <= whole_pages() <= (free or 0) * 1.1


@pytest.mark.parametrize("free", [0, 1, 3])
def test_small_pages_are_taken_where_no_whole_ones_are_left(free, monkeypatch):
    size = recycled.MAPPED
    monkeypatch.setattr(recycled, "whole_pages", lambda: free * size)
    made = recycled.allocated(np.zeros, size)
    assert made.nbytes == size and not made.any() and made.flags.writeable
    is_mapped = isinstance(base_of(made), memoryview | mmap.mmap)
    assert is_mapped == (free <= 2)
