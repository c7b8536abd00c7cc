"""Column statistics of what a kernel stores, computed while its results are in registers.

Every chunk accumulates its own rows in its own memory, so that results do not depend on threads; a
launch after it combines the chunks in order.

    partials = partials_of(group)
    partials.cut(chunks)                    # then `partials.scratch` is an argument of the launch
    partials.bind(builder, pointer)
    partials.begin(chunk)                   # at the start of a chunk
    partials.add(n, column, value, mask)    # a row's vector of values for the n-th statistic
    partials.flush()                        # before each basic block ends that has added something
    partials.launch(target)                 # what follows
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final

from weft.codegen.builder import Builder, Reg, constant, element, integer, kernel_builder
from weft.codegen.loop.convert import choose, register_type, stored
from weft.codegen.loop.reduction import sum_type
from weft.codegen.microkernel import first_lanes, fma, load_masked, store_masked
from weft.codegen.target import Target
from weft.host.memory import LINE
from weft.ir.extent import largest, multiple
from weft.ir.node import Node, Value
from weft.ir.shape import known
from weft.ops.declaration import op_of
from weft.ops.layer.normalization import column_moments
from weft.passes.group import Group, gathers
from weft.passes.launch import Kernel, Launch, Scratch

SHARE: Final = 8
"""Vectors of columns that a chunk of the last launch combines."""
Load = Callable[[Reg, int], Reg]
"""Address of a chunk's vector: the chunk, and the number within the statistic."""


@dataclass(frozen=True)
class _Place:
    """A chunk's memory for a vector of columns: vectors, `pitch` apart."""

    b: Builder
    pointer: Reg
    pitch: Reg
    type: str
    align: int
    mask: Reg | None

    def load(self, n: int) -> Reg:
        place = self.b.offset(self.pointer, self.b.mul(self.pitch, n))
        if self.mask is None:
            return self.b.load(self.type, place, self.align)
        return load_masked(self.b, self.type, place, self.mask)

    def store(self, n: int, value: Reg) -> None:
        place = self.b.offset(self.pointer, self.b.mul(self.pitch, n))
        if self.mask is None:
            self.b.store(value, place, self.align)
        else:
            store_masked(self.b, value, place, self.mask)

    def increase(self, n: int, value: Reg) -> None:
        self.store(n, self.b.binary("fadd", self.load(n), value))


class _Sum:
    """A sum: one vector."""

    vectors: Final = 1

    def __init__(self, node: Node) -> None:
        self.source: Final = node.inputs[0]
        self.outputs: Final = node.outputs

    def first(self, place: _Place, value: Reg) -> list[Reg]:
        """Initial registers, from a first value."""
        return [value]

    def following(self, b: Builder, state: list[Reg], value: Reg) -> list[Reg]:
        """Registers updated with another value."""
        return [b.binary("fadd", state[0], value)]

    def write(self, place: _Place, state: list[Reg], count: int) -> None:
        """Combines registers of `count` values with the memory of the chunk."""
        place.increase(0, state[0])

    def totals(self, b: Builder, load: Load, chunks: Reg, number: Reg) -> list[Reg]:
        """The outputs, from all chunks."""
        with b.loop(0, chunks, 1, [constant(0, number.type)]) as loop:
            loop.next = [b.binary("fadd", loop.carried[0], load(loop.index, 0))]
        return loop.results


class _Moments:
    """Mean and variance: an offset, sums of deviations from it and of their squares, a count.

    Each chunk uses the mean of the first rows that were in registers together as offset. If they
    are k of its n rows, then its sum of squares is off by at most n / k roundings relative to its
    variance, however far the values lie from zero.
    """

    vectors: Final = 4

    def __init__(self, node: Node) -> None:
        self.source: Final = node.inputs[0]
        self.outputs: Final = node.outputs

    def first(self, place: _Place, value: Reg) -> list[Reg]:
        """Initial registers, from a first value."""
        zero = constant(0, value.type)
        fresh = place.b.compare("fcmp oeq", place.load(3), zero)
        origin = choose(place.b, fresh, value, place.load(0))
        return self.following(place.b, [origin, zero, zero, fresh], value)

    def following(self, b: Builder, state: list[Reg], value: Reg) -> list[Reg]:
        """Registers updated with another value."""
        origin, distances, squares, fresh = state
        distance = b.binary("fsub", value, origin)
        total = b.binary("fadd", distances, distance)
        return [origin, total, fma(b, distance, distance, squares), fresh]

    def write(self, place: _Place, state: list[Reg], count: int) -> None:
        """Combines registers of `count` values with the memory of the chunk."""
        b, (origin, distances, squares, fresh) = place.b, state
        zero = constant(0, place.type)
        mean = b.binary("fmul", distances, constant(1 / count, place.type))
        shift = choose(b, fresh, mean, zero)
        moved = b.binary("fmul", shift, constant(-count, place.type))
        place.store(0, b.binary("fadd", origin, shift))
        place.increase(1, b.binary("fadd", distances, moved))
        place.increase(2, fma(b, shift, moved, squares))
        place.increase(3, constant(count, place.type))

    def totals(self, b: Builder, load: Load, chunks: Reg, number: Reg) -> list[Reg]:
        """The outputs, from all chunks: the mean, then the sum of squared deviations."""
        zero = constant(0, number.type)
        start = load(integer(0), 0)
        with b.loop(0, chunks, 1, [zero]) as loop:
            origin, distances, _, count = (load(loop.index, n) for n in range(4))
            far = fma(b, count, b.binary("fsub", origin, start), distances)
            loop.next = [b.binary("fadd", loop.carried[0], far)]
        mean = b.binary("fadd", start, b.binary("fdiv", loop.results[0], number))
        with b.loop(0, chunks, 1, [zero]) as loop:
            origin, distances, squares, count = (load(loop.index, n) for n in range(4))
            away = b.binary("fsub", origin, mean)
            twice = fma(b, count, away, b.binary("fadd", distances, distances))
            loop.next = [b.binary("fadd", loop.carried[0], fma(b, away, twice, squares))]
        variance = b.binary("fdiv", loop.results[0], number)
        negative = b.compare("fcmp olt", variance, zero)
        return [mean, choose(b, negative, zero, variance)]


def partials_of(group: Group) -> Partials | None:
    """The column statistics in a group that begins with a matmul or convolution."""
    found = [node for node in group.nodes if gathers(node)]
    if not found:
        return None
    kinds = [_Moments(n) if op_of(n) is column_moments else _Sum(n) for n in found]
    return Partials(kinds, known(group.nodes[0].outputs[0].shape)[-1])


class Partials:
    """The statistics of a kernel, chunk by chunk; all of one type."""

    def __init__(self, kinds: Sequence[_Sum | _Moments], columns: int) -> None:
        self._kinds = kinds
        self.sources = [kind.source for kind in kinds]
        self.outputs: tuple[Value, ...] = tuple([v for kind in kinds for v in kind.outputs])
        self.columns = columns
        self._rows = prod(known(kinds[0].source.shape)[:-1])
        self._dtype = sum_type(kinds[0].source.dtype)
        self._pitch = -(-columns * self._dtype.size // LINE) * LINE
        # Where the vectors of each statistic begin.
        self._before = [sum(kind.vectors for kind in kinds[:n]) for n in range(len(kinds) + 1)]
        self._bytes = self._before[-1] * self._pitch  # of a chunk
        self._chunks = 0
        self.scratch: Scratch
        self._b: Builder
        self._base: Reg
        self._own: Reg
        # By statistic and columns: registers, the number of values in them, and their memory.
        self._kept: dict[tuple[int, Reg], tuple[list[Reg], int, _Place]] = {}

    def cut(self, chunks: int) -> None:
        """Sets how many chunks the kernel has."""
        self._chunks = chunks
        self.scratch = Scratch(largest(chunks, 1) * self._bytes)

    def bind(self, b: Builder, pointer: Reg) -> None:
        """Sets the address of the scratch memory."""
        self._b, self._base, self._kept = b, pointer, {}

    def begin(self, chunk: Reg) -> None:
        """Begins a chunk with empty statistics."""
        b = self._b
        self._own = b.offset(self._base, b.mul(chunk, self._bytes))
        with b.loop(0, self._bytes, LINE) as loop:
            b.store(constant(0, "<16 x float>"), b.offset(self._own, loop.index), LINE)

    def add(self, n: int, column: Reg, value: Reg, mask: Reg | None) -> None:
        """Adds a row's values, a vector or one, from `column` on, to the n-th statistic."""
        key, kind = (n, column), self._kinds[n]
        if key in self._kept:
            state, count, place = self._kept[key]
            self._kept[key] = kind.following(self._b, state, value), count + 1, place
        else:
            place = self._place(n, column, mask, value.type)
            self._kept[key] = kind.first(place, value), 1, place

    def flush(self) -> None:
        """Writes the registers to memory."""
        for (n, _), (state, count, place) in self._kept.items():
            self._kinds[n].write(place, state, count)
        self._kept = {}

    def _place(self, n: int, column: Reg, mask: Reg | None, type_: str) -> _Place:
        b, size = self._b, self._dtype.size
        start = self._before[n] * self._pitch
        pointer = b.offset(b.offset(self._own, b.mul(column, size)), start)
        return _Place(b, pointer, integer(self._pitch), type_, size, mask)

    def launch(self, target: Target) -> Launch:
        """The launch that combines the chunks, in order: one kernel for all extents."""
        lanes = target.lanes(self._dtype.size)
        vectors = -(-self.columns // lanes)
        what = "_".join("moments" if kind.vectors > 1 else "sum" for kind in self._kinds)
        numbers = self.columns, self._pitch, self._chunks, self._rows
        return Launch(
            Kernel(f"join_{what}_{self.columns}_{self._chunks}", self._ir(lanes)),
            (self.scratch, *self.outputs, *numbers), tuple(range(1, 1 + len(self.outputs))),
            -(-vectors // SHARE), bytes=float(self.scratch.size),
        )  # fmt: skip

    def _ir(self, lanes: int) -> str:
        b = kernel_builder()
        source = b.argument(0)
        outs = [b.argument(1 + n) for n in range(len(self.outputs))]
        columns, pitch, chunks, rows = (b.argument(1 + len(outs) + n, "i64") for n in range(4))
        type_ = register_type(self._dtype, lanes)
        number = b.splat(b.emit(element(type_), f"sitofp {rows} to {element(type_)}"), lanes)
        first = b.mul(b.params[1], SHARE * lanes)
        last = b.call("i64", "llvm.smin.i64", (b.mul(b.params[2], SHARE * lanes), columns))
        with b.loop(first, last, lanes) as loop:
            column = loop.index
            mask = None
            if not multiple(self.columns, lanes):
                mask = first_lanes(b, b.binary("sub", columns, column), lanes)
            place = b.offset(source, b.mul(column, self._dtype.size))
            totals = self._totals(
                _Place(b, place, pitch, type_, self._dtype.size, mask), chunks, number
            )
            for out, value, total in zip(outs, self.outputs, totals, strict=True):
                size = value.dtype.size
                at = b.offset(out, b.mul(column, size))
                to = _Place(b, at, pitch, total.type, size, mask)
                to.store(0, stored(b, total, value.dtype))
        return b.module()

    def _totals(self, start: _Place, chunks: Reg, number: Reg) -> list[Reg]:
        b, found = start.b, list[Reg]()
        chunk_bytes = b.mul(start.pitch, self._before[-1])
        for kind, before in zip(self._kinds, self._before, strict=False):

            def load(chunk: Reg, n: int, before: int = before) -> Reg:
                at = b.offset(start.pointer, b.mul(chunk, chunk_bytes))
                return replace(start, pointer=at).load(before + n)

            found += kind.totals(b, load, chunks, number)
        return found
