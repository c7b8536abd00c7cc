"""Runs kernels for one size or for many, without the runtime, and compares bits."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from harness import Array, Memory, function

from weft.codegen.lower import lower
from weft.codegen.target import Target
from weft.ir.extent import Extent, Extents
from weft.ir.shape import known, size
from weft.passes.group import Group
from weft.passes.launch import Launch, Scratch

Sizes = Sequence[int]
Making = Callable[[Sizes], Group]
"""Makes a group for sizes, which may be extents."""


class Kernels:
    """The kernels of a group: for one size, or `planned` with it for all that it admits."""

    def __init__(self, make: Making, sizes: Sizes, target: Target, many: bool) -> None:
        self.target = target
        self.extents = Extents() if many else None
        if self.extents is not None:
            self.extents.planning = True
            sizes = [self.extents.base(n) for n in sizes]
        self.group = make(sizes)
        self.launches: tuple[Launch, ...] = lower(self.group, target)

    def admits(self, sizes: Sizes) -> bool:
        """Whether the kernels may run for these sizes."""
        if self.extents is None:
            return True
        try:
            return self.extents.admits(self.extents.values(sizes))
        except ZeroDivisionError:
            return False

    def run(self, arrays: Sequence[Array], sizes: Sizes, threads: int = 1) -> list[Array]:
        """The outputs; several threads have single chunks each, the last ones first."""
        values = [] if self.extents is None else self.extents.values(sizes)
        memory: dict[Any, Memory] = {
            v: Memory(a) for v, a in zip(self.group.inputs, arrays, strict=True)
        }
        for launch in self.launches:
            self._place(launch, memory, values, threads)
            slots = (ctypes.c_int64 * max(1, len(launch.args)))(
                *[
                    _number(a, values) if isinstance(a, int) else memory[a].address
                    for a in launch.args
                ]
            )
            run, chunks = function(launch.kernel.ir, self.target), _number(launch.chunks, values)
            if threads == 1:
                run(ctypes.addressof(slots), 0, chunks, 0)
            else:
                for chunk in reversed(range(chunks)):
                    run(ctypes.addressof(slots), chunk, chunk + 1, chunk % threads)
            for one in memory.values():
                one.check(launch.kernel.name)
        return [memory[v].array for v in self.group.outputs]

    def _place(
        self, launch: Launch, memory: dict[Any, Memory], values: Sizes, threads: int
    ) -> None:
        for a in launch.args:
            if isinstance(a, int) or a in memory:
                continue
            if isinstance(a, Scratch):
                count = _number(a.size, values) * (threads if a.per_thread else 1)
                memory[a] = Memory(np.full(count, 0xCD, np.uint8))
                continue
            shape = tuple([_number(n, values) for n in known(a.shape)])
            noise = np.full(size(shape) * a.dtype.size, 77, np.uint8)
            memory[a] = Memory(noise.view(a.dtype.numpy).reshape(shape))


def _number(n: int, values: Sizes) -> int:
    return values[n.index] if isinstance(n, Extent) else n


def same_bits(
    make: Making, arrays: Sequence[Array], sizes: Sizes, others: Sequence[Sizes], target: Target
) -> list[Array]:
    """The result for these sizes, the same on two threads, and by kernels for many sizes.

    Args:
        others: sizes that kernels for many are planned with, beside `sizes`.
    """
    fixed = Kernels(make, sizes, target, many=False)
    expected = fixed.run(arrays, sizes)
    found = [fixed.run(arrays, sizes, threads=2)]
    for planned in (sizes, *others):
        kernels = Kernels(make, planned, target, many=True)
        assert kernels.admits(sizes) or planned is not sizes
        if kernels.admits(sizes):
            found += [kernels.run(arrays, sizes), kernels.run(arrays, sizes, threads=2)]
    for arrays_ in found:
        assert [a.tobytes() for a in arrays_] == [a.tobytes() for a in expected]
    return expected


def variants(make: Making, family: Sequence[Sizes], target: Target) -> int:
    """How many kernels for many sizes a family of sizes takes, each planned when needed."""
    found: list[Kernels] = []
    for sizes in family:
        if not any([kernels.admits(sizes) for kernels in found]):
            found.append(Kernels(make, sizes, target, many=True))
            assert found[-1].admits(sizes)
    return len(found)
