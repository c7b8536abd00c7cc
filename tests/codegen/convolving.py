"""Runs the launches of a group on guarded memory, its chunks in any order and division."""

from __future__ import annotations

import ctypes
import functools
import mmap
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from weft.codegen import llvm
from weft.codegen.kernel import SYMBOL, Launch, Scratch
from weft.codegen.target import Target
from weft.ir.graph import Graph
from weft.ir.node import Node, Value
from weft.ops.base import Array, op_of
from weft.passes.group import Group

Lower = Callable[[Group, Target], tuple[Launch, ...]]
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_PAGE = mmap.PAGESIZE
_GUARD = 0xA5
_kept: list[Any] = []


class Guarded:
    """Memory that ends at a page that nobody may touch, with known bytes before it."""

    def __init__(self, size: int) -> None:
        pages = -(-size // _PAGE) + 1
        self._map = mmap.mmap(-1, (pages + 1) * _PAGE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        self._whole = np.frombuffer(self._map, np.uint8)
        assert _libc.mprotect(start + pages * _PAGE, _PAGE, mmap.PROT_NONE if hasattr(mmap, "PROT_NONE") else 0) == 0
        self.before = self._whole[: pages * _PAGE - size]
        self.before[:] = _GUARD
        self.bytes = self._whole[pages * _PAGE - size : pages * _PAGE]
        self.bytes[:] = 0xFF  # NaN in every floating type
        self.address = start + pages * _PAGE - size

    def check(self) -> None:
        assert (self.before == _GUARD).all(), "a kernel wrote before its buffer"

    def close(self) -> None:
        pass


@functools.cache
def compiled(ir: str, target: Target) -> Any:
    """The kernel as a Python function of (slots, begin, end, thread)."""
    library = llvm.Library()
    address = library.link({SYMBOL: llvm.to_object(ir, target.cpu, target.features)})[SYMBOL]
    _kept.append(library)
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    return kind(address)


def node_of(op: Any, arrays: tuple[Array, ...], attrs: dict[str, Any]) -> Node:
    """A node of an operation on placeholders shaped like `arrays`."""
    from weft import ops

    graph = Graph()
    with graph.as_default():
        inputs = [ops.placeholder(dtype=a.dtype, shape=a.shape) for a in arrays]
        return op(*inputs, **attrs).node


def group_of(node: Node) -> Group:
    """A group of one node."""
    return Group((node,), node.data_inputs, node.outputs)


def run(
    launches: tuple[Launch, ...],
    feeds: dict[Value, Array],
    out: Value,
    target: Target,
    seed: int | None = None,
) -> Array:
    """Do the launches; `seed` shuffles the chunks and gives them to three threads at random."""
    buffers: dict[Any, Guarded] = {}
    for value, array in feeds.items():
        buffers[value] = Guarded(array.nbytes)
        buffers[value].bytes[:] = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
    shape = tuple(d or 0 for d in out.shape or ())
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
            buffers[arg] = Guarded(arg.size * (3 if arg.per_thread else 1))
        slots[i] = buffers[arg].address
    function = compiled(launch.kernel.ir, target)
    if seed is None:
        function(slots, 0, launch.chunks, 0)
        return
    chooser = random.Random(seed)
    cuts = sorted({0, launch.chunks, *(chooser.randint(0, launch.chunks) for _ in range(5))})
    pieces = list(zip(cuts, cuts[1:], strict=False))
    chooser.shuffle(pieces)
    for begin, end in pieces:
        function(slots, begin, end, chooser.randrange(3))


def reference(node: Node, arrays: tuple[Array, ...]) -> Array:
    """The operation's NumPy meaning."""
    return op_of(node).reference(*arrays, **node.attrs)
