"""Runs launches on memory that ends at a protected page, so that any overrun faults.

The common harness sees writes beside a buffer; here reads beyond its end crash as well, which for
convolutions is the likelier mistake: tiles hang over edges, vectors over channels.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
import random
from typing import Any

import numpy as np
from harness import Array, function

from weft.codegen.target import Target
from weft.ir.node import Value
from weft.ir.shape import known
from weft.passes.launch import Launch, Scratch

THREADS = 3
_PAGE = mmap.PAGESIZE
_BEFORE = 0xA5
_NAN = 0xFF  # in every byte: not a number in every floating type
_NO_ACCESS = 0
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class Guarded:
    """`size` bytes that end at a page without access, with known bytes before them."""

    def __init__(self, size: int) -> None:
        end = (-(-size // _PAGE) + 1) * _PAGE
        self._map = mmap.mmap(-1, end + _PAGE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        if _libc.mprotect(start + end, _PAGE, _NO_ACCESS):
            raise OSError(ctypes.get_errno(), "mprotect")
        whole = np.frombuffer(self._map, np.uint8)
        self.address = start + end - size
        self.before = whole[: end - size]
        self.before[:] = _BEFORE
        self.bytes = whole[end - size : end]
        self.bytes[:] = _NAN

    def fill(self, array: Array) -> None:
        """Put an array's elements in."""
        self.bytes[:] = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)

    def check(self) -> None:
        """Nothing was written in front."""
        assert (self.before == _BEFORE).all(), "a kernel wrote before its buffer"


def run(
    launches: tuple[Launch, ...],
    feeds: dict[Value, Array],
    out: Value,
    target: Target,
    seed: int | None = None,
) -> Array:
    """The value `out` after the launches.

    Args:
        seed: with one, the chunks of each launch are cut in runs at random, done in random order
            by random threads.
    """
    buffers: dict[Any, Guarded] = {}
    for value, array in feeds.items():
        buffers[value] = Guarded(array.nbytes)
        buffers[value].fill(array)
    shape = known(out.shape)
    result = buffers[out] = Guarded(int(np.prod(shape)) * out.dtype.size)
    for launch in launches:
        _launch(launch, buffers, target, seed)
    for buffer in buffers.values():
        buffer.check()
    for value, array in feeds.items():
        assert buffers[value].bytes.tobytes() == np.ascontiguousarray(array).tobytes()
    return result.bytes.view(out.dtype.numpy).reshape(shape).copy()


def _launch(launch: Launch, buffers: dict[Any, Guarded], target: Target, seed: int | None) -> None:
    slots = (ctypes.c_int64 * max(1, len(launch.args)))()
    for i, arg in enumerate(launch.args):
        if isinstance(arg, int):
            slots[i] = arg
            continue
        if isinstance(arg, Scratch) and arg not in buffers:
            buffers[arg] = Guarded(arg.size * (THREADS if arg.per_thread else 1))
        slots[i] = buffers[arg].address
    kernel = function(launch.kernel.ir, target)
    chooser = random.Random(seed)
    cuts = [0, launch.chunks]
    if seed is not None:
        cuts = sorted({*cuts, *(chooser.randint(0, launch.chunks) for _ in range(5))})
    pieces = list(itertools.pairwise(cuts))
    chooser.shuffle(pieces)
    for begin, end in pieces:
        kernel(ctypes.addressof(slots), begin, end, chooser.randrange(THREADS))
