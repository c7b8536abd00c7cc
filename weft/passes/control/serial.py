"""Loops whose kernels one thread runs, in little time: one kernel has the loop inside.

With launches, an iteration costs some 30 ns, and 15 more for each. One kernel does many iterations
and returns now and then, so that a long loop can be interrupted. What only one iteration needs, and
what it hands to the next, lies on its stack, where LLVM keeps scalars in registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from weft.ir.dtype import int64
from weft.ir.node import Literal, Node, TensorType, Value
from weft.ir.shape import known, size
from weft.ops.boundary.state import CONSTANT
from weft.passes.control.record import Loop
from weft.passes.launch import (
    BYTES_PER_NS,
    ERROR,
    FLOPS_PER_NS,
    Buffer,
    Flat,
    Launch,
    Part,
    Scratch,
    SerialCall,
    SerialLoop,
    Slice,
)

BRIEF: Final = 1000
"""Nanoseconds of an iteration, as estimated; longer ones do not notice how they are launched."""
MOST_CALLS, MOST_BYTES, MOST_TEXT = 24, 16 << 10, 1 << 17
"""Launches of an iteration, bytes that they write, and characters of their kernels, at most."""


def serial_loop(
    loop: Loop,
    flat: Flat,
    test: Sequence[Launch],
    holds: Buffer | None,
    body: Sequence[Launch],
    homes: Sequence[Buffer],
    swapped: Sequence[tuple[Scratch, Scratch]],
) -> SerialLoop | None:
    """The loop as one kernel; `None` if its iterations need several threads, or long.

    Args:
        flat: knows which buffers are parts of others.
        test: launches before each iteration that tell whether there is one, in `holds`.
        homes: where what is carried lies before the first iteration.
        swapped: of what is carried: where an iteration reads it, and where it writes it.
    """
    launches = [*test, *body]
    if loop.tape is not None or loop.counted is not None or not _is_brief(launches):
        return None
    parts = _Parts(loop, flat)
    carried = {parts.base(b): bytes_of(b) for b in homes}
    written = parts.written(launches)
    private = {
        b: bytes_of(b) for b, is_row in written.items() if not (is_row or b in carried)
    }  # fmt: skip
    if sum(private.values()) + sum(carried.values()) > MOST_BYTES:
        return None
    calls = [SerialCall(x.kernel, tuple([parts.of(a) for a in x.args]), x.chunks) for x in launches]
    return SerialLoop(
        tuple(calls[: len(test)]), None if holds is None else parts.part(holds),
        tuple(calls[len(test) :]), carried, private,
        tuple([b for b, is_row in written.items() if is_row]), tuple(swapped),
        -1 if loop.most is None else loop.most, sum(map(_nanoseconds, launches)),
        Scratch(8), Scratch(1),
    )  # fmt: skip


class _Parts:
    """What the kernels of an iteration are given, as parts of the loop's own arguments."""

    def __init__(self, loop: Loop, flat: Flat) -> None:
        self._loop = loop
        self._flat = flat

    def of(self, argument: Buffer | int) -> Part | int:
        """An argument: in iteration t, `start + stride * t` bytes into a buffer."""
        return argument if isinstance(argument, int) else self.part(argument)

    def base(self, buffer: Buffer) -> Buffer:
        """The buffer that another one is a part of."""
        return self.part(buffer).base

    def part(self, buffer: Buffer) -> Part:
        """The part that a buffer is."""
        buffer = self._owned(buffer)
        view = self._flat.views.get(buffer)
        if view is None or view.loop is not self._loop:  # or it moves with a loop around this one
            return Part(buffer)
        if isinstance(view, Slice):
            return Part(self._owned(view.whole), view.start, view.stride)
        return Part(view.even)

    def _owned(self, buffer: Buffer) -> Buffer:
        while isinstance(buffer, Value) and buffer in self._flat.aliases:
            buffer = self._flat.aliases[buffer]
        return buffer

    def written(self, launches: Sequence[Launch]) -> dict[Buffer, bool]:
        """What launches write, and whether it is a row of it."""
        found: dict[Buffer, bool] = {}
        for launch in launches:
            for slot in launch.writes:
                argument = launch.args[slot]
                if isinstance(argument, int) or argument is ERROR or is_per_thread(argument):
                    continue
                part = self.part(argument)
                found[part.base] = bool(part.stride)
        return found


def _is_brief(launches: Sequence[Launch]) -> bool:
    checks = [x for x in launches if x.check]
    return (
        0 < len(launches) <= MOST_CALLS
        and len(checks) <= 1  # the program tells by a call which operation failed
        and all([x.control is None and x.kernel.ir and x.chunks == 1 for x in launches])
        and sum(map(_nanoseconds, launches)) <= BRIEF
        and sum([len(text) for text in {x.kernel.ir for x in launches}]) <= MOST_TEXT
    )


def _nanoseconds(launch: Launch) -> float:
    return 5 + launch.flops / FLOPS_PER_NS + launch.bytes / BYTES_PER_NS


def is_per_thread(buffer: Buffer) -> bool:
    """Whether every thread has memory of its own."""
    return isinstance(buffer, Scratch) and buffer.per_thread


def bytes_of(buffer: Buffer) -> int:
    """The size of a buffer."""
    if isinstance(buffer, Scratch):
        return buffer.size
    return int(size(known(buffer.shape))) * buffer.dtype.size


def nothing_done() -> Node:
    """The number of iterations that are done before the first call."""
    array = np.zeros((), int64.numpy)
    return Node(
        CONSTANT.name, (), {"value": Literal(array)}, (TensorType(int64, ()),), "iterations"
    )
