"""The arena: resident, aligned, freed with its last view; errors if it does not fit."""

from __future__ import annotations

import gc
import mmap
import resource
import weakref

import numpy as np
import pytest
from handmade import block_of

from weft.errors import OutOfMemoryError, WeftError
from weft.runtime.memory.arena import HUGE, Arena


@pytest.mark.parametrize("size", [0, 1, 4096, 100_001, HUGE - 1, HUGE, 3 * HUGE + 5])
def test_aligned_and_zero(size):
    arena = Arena(size)
    assert arena.size == arena.bytes.size == size
    assert arena.address % (HUGE if size >= HUGE else 4096) == 0
    assert not arena.bytes.any()
    if size:
        assert arena.address == arena.bytes.ctypes.data


def test_every_page_is_there_at_once():
    arena = Arena(8 << 20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    arena.bytes[::512] = 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 20


def test_the_count_of_page_faults_can_fail():
    fresh = np.frombuffer(mmap.mmap(-1, 8 << 20), np.uint8)  # what the allocator kept has pages
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    fresh[::512] = 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before > 2


def test_a_view_keeps_the_memory():
    arena = Arena(1 << 20)
    view = arena.view(64, np.dtype(np.float32), (3, 5))
    view[...] = 7
    watch = weakref.ref(block_of(view))
    del arena
    gc.collect()
    assert watch() is not None and (view == 7).all()
    del view
    gc.collect()
    assert watch() is None


def test_views_beyond_the_end_raise():
    with pytest.raises(TypeError):
        Arena(64).view(32, np.dtype(np.float32), (16,))


@pytest.mark.parametrize("size", [1 << 46, 1 << 62, 1 << 70])
def test_too_much_is_a_clean_error(size):
    with pytest.raises(OutOfMemoryError, match=r"cannot map .* bytes") as caught:
        Arena(size)
    assert isinstance(caught.value, MemoryError) and isinstance(caught.value, WeftError)
