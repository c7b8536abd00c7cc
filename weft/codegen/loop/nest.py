"""Loop trees to LLVM IR: loops, unrolling, loop remainders, and accumulators."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from weft.codegen.builder import Builder, Reg, constant, integer, kernel_builder, vector
from weft.codegen.loop.arithmetic import EXTREMES, across, combine, identity, lane_numbers, literal
from weft.codegen.loop.convert import intrinsic, loaded, storage_type
from weft.codegen.loop.emit import Writer
from weft.codegen.loop.expression import Buffer, Expr, needed
from weft.codegen.loop.index import Symbol, turns
from weft.codegen.loop.lanes import Copy, masked, transposed
from weft.codegen.loop.tree import (
    Accumulate,
    Aligned,
    Loop,
    Reduce,
    Segment,
    Store,
    Tree,
    Turned,
    Vector,
    find_vector,
    leaves,
)
from weft.host.memory import LINE
from weft.ir.extent import Extent, same

ACCUMULATORS: Final = 4
"""Of a row's sum: they hide the latency of an addition, two vectors of which start in a cycle."""


def write_kernel(
    body: Sequence[Tree], buffers: Sequence[Buffer], masks: bool, lanes_of: Callable[[int], int]
) -> str:
    """The LLVM module of a kernel whose first arguments are `buffers`.

    `lanes_of`: how many numbers of so many bytes a register holds.

    `masks`: whether masked loads and stores are cheap; else the remainder after the last whole
    vector is done one element at a time.
    """
    f = kernel_builder()
    pointers: dict[Buffer, Reg] = {}
    for slot, buffer in enumerate(buffers):
        pointers[buffer] = f.argument(slot)
        if buffer.stride:
            pointers[buffer] = f.offset(pointers[buffer], f.mul(f.params[3], buffer.stride))
    _Nest(f, pointers, masks, lanes_of).run(body)
    return f.module()


class _Nest:
    def __init__(
        self, f: Builder, pointers: dict[Buffer, Reg], masks: bool, lanes_of: Callable[[int], int]
    ) -> None:
        self.f: Final = f
        self.masks: Final = masks
        self.lanes_of: Final = lanes_of
        self.writer: Final = Writer(f, pointers)
        self.sums: dict[Symbol, list[Reg]] = {}  # accumulators by slot
        self.wide: dict[Symbol, int] = {}  # how many of them hold vectors
        self.saved: dict[Symbol, list[Copy]] = {}  # copies that are unrolled

    def run(self, body: Sequence[Tree]) -> None:
        simple: list[Store | Accumulate] = []
        for part in (*body, None):
            if isinstance(part, Store | Accumulate):
                simple.append(part)
                continue
            if simple:
                self._leaves(simple)
                simple = []
            if isinstance(part, Loop):
                self._loop(part)
            elif isinstance(part, Vector):
                self._vector(part)
            elif isinstance(part, Reduce):
                self._reduce(part)
            elif isinstance(part, Aligned):
                self._aligned(part)
            elif isinstance(part, Turned):
                self._turned(part)

    def _leaves(self, parts: list[Store | Accumulate]) -> None:
        """Computes all values first: a store may overwrite what another one reads."""
        for copy in self.writer.copies or [self.writer.uniform]:
            for part in parts:
                self.writer.wide(part.value, copy)
            for part in parts:
                if isinstance(part, Store):
                    at = (part.buffer, part.offset)
                    self.writer.store(*at, part.value, copy, part.stream)
                else:
                    self._accumulate(part, copy)

    def _accumulate(self, part: Accumulate, copy: Copy) -> None:
        sums = self.sums[part.result]
        value = self.writer.wide(part.value, copy)
        slot = copy.slot if copy.slot < 0 else copy.slot % self.wide[part.result]
        old = sums[slot]
        new = combine(self.f, part.op, part.dtype, old, value)
        sums[slot] = masked(self.f, copy, new, old)

    # loops
    @contextlib.contextmanager
    def _open(self, start: Reg | int, stop: Reg | int, step: int) -> Iterator[Reg]:
        """A loop that carries all accumulators; yields its index."""
        slots = [(symbol, n) for symbol, regs in self.sums.items() for n in range(len(regs))]
        before = [self.sums[symbol][n] for symbol, n in slots]
        saved = dict(self.saved)
        with self.writer.scope(), self.f.loop(start, stop, step, before) as loop:
            for (symbol, n), register in zip(slots, loop.carried, strict=True):
                self.sums[symbol][n] = register
            yield loop.index
            loop.next = [self.sums[symbol][n] for symbol, n in slots]
        self.saved = saved
        for (symbol, n), register in zip(slots, loop.results, strict=True):
            self.sums[symbol][n] = register

    def _range(self, symbol: Symbol, segment: Segment | None) -> tuple[Reg, Reg]:
        if segment is None:
            return integer(0), integer(symbol.extent)
        f = self.f
        extent, size = integer(symbol.extent), integer(segment.size)
        if segment.slot is not None:
            extent = f.argument(segment.slot, "i64")
            size = f.argument(segment.slot + 1, "i64")
        if segment.part is None:
            first, last = f.params[1], f.params[2]
        else:
            first = self.writer.scalar_index(segment.part, self.writer.uniform)
            last = f.add(first, 1)
        stop = f.mul(last, size)
        if segment.part is None or not same((segment.part.high + 1) * segment.size, symbol.extent):
            stop = intrinsic(f, "llvm.smin", stop, extent)
        return f.mul(first, size), stop

    def _loop(self, part: Loop) -> None:
        roots = [leaf.value for leaf in leaves(part.body)]
        inner = find_vector(part.body)
        start, stop = self._range(part.symbol, part.segment)
        if stop.text == "1" and start.text == "0":
            self.writer.bound[part.symbol] = start
            self.run(part.body)
            return
        lanes = inner.lanes if inner else max([c.lanes for c in self.writer.copies], default=1)
        self.writer.hoist(roots, lanes)
        with self._open(start, stop, 1) as at:
            self.writer.bound[part.symbol] = at
            self.run(part.body)

    def _aligned(self, part: Aligned) -> None:
        f = self.f
        bits = integer(0)
        for buffer in part.buffers:
            address = f.emit("i64", f"ptrtoint {self.writer.pointers[buffer]} to i64")
            bits = f.binary("or", bits, address)
        low = f.binary("and", bits, integer(LINE - 1))
        labels = f.label("aligned"), f.label("other"), f.label("after")
        f.branch(f.compare("icmp eq", low, integer(0)), labels[0], labels[1])
        saved = self.saved
        for label, body in zip(labels, (part.body, part.other), strict=False):
            f.start(label)
            self.saved = dict(saved)  # registers of one branch do not dominate the other
            with self.writer.scope():
                self.run(body)
            if body is part.body:
                f.line("fence seq_cst")  # such stores are ordered only after this
            f.jump(labels[2])
        self.saved = saved
        f.start(labels[2])

    # vector loops
    def _vector(self, part: Vector) -> None:
        self.writer.hoist([leaf.value for leaf in leaves(part.body)], part.lanes)
        if _is_known(part):
            self._known_vector(part)
            return
        start, stop = self._range(part.symbol, part.segment)
        at = start
        for step in (part.lanes * part.unroll, part.lanes):
            end = self._last_whole(at, stop, step)
            self._block_loop(part, at, end, step)
            at = end
            if part.unroll == 1:
                break
        self._remainder(part, at, stop)

    def _remainder(self, part: Vector, at: Reg, stop: Reg) -> None:
        """The remainder: less than a vector."""
        if self.masks and part.lanes > 1:
            with self._open(at, stop, part.lanes) as index:
                left = self.f.binary("sub", stop, index)
                self._block(part, index, [self._tail(part, left)])
        elif part.lanes > 1:
            self._scalar_loop(part, at, stop)

    def _known_vector(self, part: Vector) -> None:
        extent, block = part.symbol.extent, part.lanes * part.unroll
        end = extent // block * block if extent >= 2 * block else 0
        turned = end // part.lanes
        if end:
            self._block_loop(part, integer(0), integer(end), block)
        tail = (extent - end) % (part.lanes if self.masks else self._whole(part))
        rest = (extent - end - tail) // part.lanes
        copies = [Copy(part.lanes, n * part.lanes, slot=n) for n in range(rest)]
        if tail and self.masks:
            copies.append(self._tail(part, integer(tail), rest))
        straight = not end and (not tail or self.masks)
        if straight and copies:
            copies = self.saved.setdefault(part.symbol, copies)
        if copies:
            with self.writer.scope():  # addresses here must not be cached as those of a loop
                self._block(part, integer(end), copies)
        self._turn(part, -turned)
        if tail and not self.masks:
            self._scalar_loop(part, integer(extent - tail), integer(extent))

    def _whole(self, part: Vector) -> int:
        """Elements that make a vector of the sums' width: what is left is added one by one."""
        sums = [leaf for leaf in leaves(part.body) if isinstance(leaf, Accumulate)]
        return part.lanes * max([self._share(part, a) for a in sums], default=1)

    def _turn(self, part: Vector, count: int) -> None:
        """Renumbers accumulators, so that what the next vector is added to is the first."""
        for leaf in leaves(part.body):
            if isinstance(leaf, Accumulate) and leaf.result in self.sums:
                sums, wide = self.sums[leaf.result], self.wide[leaf.result]
                sums[:wide] = [sums[(n + count) % wide] for n in range(wide)]

    def _tail(self, part: Vector, left: Reg, slot: int = 0) -> Copy:
        type_ = vector("i32", part.lanes)
        if left.text.isdigit():
            limit = constant(int(left.text), type_)
        else:
            limit = self.f.splat(self.f.emit("i32", f"trunc {left} to i32"), part.lanes)
        mask = self.f.compare("icmp ult", lane_numbers(type_), limit)
        return Copy(part.lanes, slot * part.lanes, mask, slot)

    def _block_loop(self, part: Vector, start: Reg, stop: Reg, step: int) -> None:
        if start.text == stop.text:
            return
        with self._open(start, stop, step) as index:
            count = step // part.lanes
            self._block(
                part, index, [Copy(part.lanes, n * part.lanes, slot=n) for n in range(count)]
            )
            if _is_known(part):
                self._turn(part, count)

    def _scalar_loop(self, part: Vector, start: Reg, stop: Reg) -> None:
        with self._open(start, stop, 1) as index:
            self._block(part, index, [Copy(1, slot=-1)])

    def _block(self, part: Vector, first: Reg, copies: list[Copy]) -> None:
        with self.writer.vectors(part.symbol, first, copies):
            self.run(part.body)

    # tiles
    def _turned(self, part: Turned) -> None:
        """Whole tiles transposed in registers, remainders on either side by gathers."""
        lanes = part.lanes
        down = self._range(part.across, part.segments[0])
        start, stop = self._range(part.symbol, part.segments[1])
        ends = [self._last_whole(a, b, lanes) for a, b in (down, (start, stop))]
        with self._open(start, ends[1], lanes) as first:
            with self._open(down[0], ends[0], lanes) as top:
                self._tile(part, top, first)
            with self._open(ends[0], down[1], 1) as at:
                self.writer.bound[part.across] = at
                with self.writer.vectors(part.symbol, first, [Copy(lanes)]):
                    self._leaves(list(part.body))
        with self._open(*down, 1) as at:
            self.writer.bound[part.across] = at
            rest = Vector(part.symbol, lanes, 1, part.body)
            self._remainder(rest, ends[1], stop)

    def _last_whole(self, start: Reg, stop: Reg, step: int) -> Reg:
        f = self.f
        whole = f.binary("sub", stop, start)
        whole = f.binary("sub", whole, f.binary("srem", whole, integer(step)))
        return f.add(start, whole)

    def _tile(self, part: Turned, top: Reg, first: Reg) -> None:
        writer, lanes = self.writer, part.lanes
        loads = [
            x
            for x in needed([leaf.value for leaf in part.body])
            if x.op == "load" and turns(x.data[1], part.across, part.symbol)
        ]
        columns = {x: self._turned_load(x, part, top, first) for x in loads}
        for n in range(lanes):
            copy = Copy(lanes)
            with writer.scope():
                writer.bound[part.across] = self.f.add(top, n)
                with writer.vectors(part.symbol, first, [copy]):
                    for x, registers in columns.items():
                        copy.keep(x.serial, registers[n])
                    self._leaves(list(part.body))

    def _turned_load(self, x: Expr, part: Turned, top: Reg, first: Reg) -> list[Reg]:
        """The loads for each of the tile's rows: contiguous vectors, transposed."""
        writer, rows = self.writer, list[Reg]()
        buffer, offset = x.data
        type_ = storage_type(buffer.dtype, part.lanes)
        with writer.scope():
            writer.bound[part.across] = top
            for n in range(part.lanes):
                with writer.scope():
                    writer.bound[part.symbol] = self.f.add(first, n)
                    address = writer.pointer(buffer, offset - offset.const)
                    address = self.f.offset(address, offset.const, storage_type(buffer.dtype))
                    rows.append(self.f.load(type_, address))
        return [loaded(self.f, r, buffer.dtype) for r in transposed(self.f, rows)]

    # reductions
    def _reduce(self, part: Reduce) -> None:
        """Accumulators for every copy, or for the copies of the vector loop inside."""
        outer = [copy.lanes for copy in self.writer.copies]
        inner = None if outer else find_vector(part.body)
        for a in part.results:
            lanes = outer or self._slots(inner, a)
            start = identity(a.op, a.dtype)
            self.sums[a.result] = [literal(start, a.dtype, n) for n in lanes]
            self.wide[a.result] = len([n for n in lanes if n == lanes[0]])
        self.run(part.body)
        for a in part.results:
            sums = self.sums.pop(a.result)
            if outer:
                self.writer.lanewise.add(a.result)
                for copy, register in zip(self.writer.copies, sums, strict=True):
                    copy.locals[a.result] = register
            else:
                self.writer.bound[a.result] = self._total(a, sums, self._share(inner, a))

    def _share(self, inner: Vector | None, a: Accumulate) -> int:
        """How many of a loop's vectors make one of the sum's own width.

        The loop's are as wide as the widest type in the kernel allows.
        """
        exact = not a.dtype.is_floating or a.op in EXTREMES
        if inner is None or not _is_known(inner) or inner.lanes == 1 or exact:
            return 1
        return max(1, self.lanes_of(a.dtype.size) // inner.lanes)

    def _slots(self, inner: Vector | None, a: Accumulate) -> list[int]:
        """Lanes of a vector loop's accumulators; the last accumulator is for single elements.

        Of a loop of known length their number, and what is added to which, follow from the length
        alone, so that a sum does not depend on what else the kernel computes.
        """
        if inner is None:
            return [1]
        count = inner.unroll
        if _is_known(inner):
            share = self._share(inner, a)
            own = -(-inner.symbol.extent // (inner.lanes * share))
            count = min(max(ACCUMULATORS, inner.unroll), own) * share
        lanes = [inner.lanes] * count
        return lanes if self.masks or inner.lanes == 1 else [*lanes, 1]

    def _total(self, a: Accumulate, sums: list[Reg], share: int) -> Reg:
        """The sum of all accumulators, in an order that depends only on their number."""
        count = self.wide.pop(a.result)
        wide, single = sums[:count], sums[count:]
        parts = [self._joined(a, wide[n::share]) for n in range(share)]
        while len(parts) > 1:  # as `across` goes on within a register
            half = len(parts) // 2
            halves = zip(parts[:half], parts[half:], strict=True)
            parts = [combine(self.f, a.op, a.dtype, x, y) for x, y in halves]
        total = across(self.f, a.op, a.dtype, parts[0])
        for s in single:
            total = combine(self.f, a.op, a.dtype, total, s)
        return total

    def _joined(self, a: Accumulate, wide: list[Reg]) -> Reg:
        """The sum of accumulators, in pairs."""
        while len(wide) > 1:
            pairs = [
                combine(self.f, a.op, a.dtype, x, y)
                for x, y in zip(wide[::2], wide[1::2], strict=False)
            ]
            wide = [*pairs, *wide[len(pairs) * 2 :]]
        return wide[0]


def _is_known(part: Vector) -> bool:
    """Whether the iterations are the same in every run, so that they can be unrolled."""
    return part.segment is None and not isinstance(part.symbol.extent, Extent)
