"""Loop trees to LLVM IR."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.codegen.builder import Reg, integer, kernel_builder
from weft.codegen.loop.convert import loaded, storage_type
from weft.codegen.loop.expression import Buffer, Expr, needed
from weft.codegen.loop.index import turns
from weft.codegen.loop.lanes import Copy, transposed
from weft.codegen.loop.tree import (
    Accumulate,
    Aligned,
    Loop,
    Reduce,
    Store,
    Tree,
    Turned,
    Vector,
    find_vector,
    leaves,
    vector_of,
)
from weft.codegen.loop.vector_loop import VectorLoops
from weft.host.memory import LINE


def write_kernel(
    body: Sequence[Tree], buffers: Sequence[Buffer], masks: bool, lanes_of: Callable[[int], int]
) -> str:
    """The LLVM module of a kernel whose first arguments are `buffers`.

    For `masks` and `lanes_of` see `Accumulators`.
    """
    f = kernel_builder()
    pointers: dict[Buffer, Reg] = {}
    for slot, buffer in enumerate(buffers):
        pointers[buffer] = f.argument(slot)
        if buffer.stride:
            pointers[buffer] = f.offset(pointers[buffer], f.mul(f.params[3], buffer.stride))
    _Nest(f, pointers, masks, lanes_of).run(body)
    return f.module()


class _Nest(VectorLoops):
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

    # loops
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
        for a in part.results:
            self._begin(a, outer or self._slots(vector_of(part.body, a.result), a))
        self.run(part.body)
        for a in part.results:
            sums = self.sums.pop(a.result)
            if outer:
                self.writer.lanewise.add(a.result)
                for copy, register in zip(self.writer.copies, sums, strict=True):
                    copy.locals[a.result] = register
            else:
                self.writer.bound[a.result] = self._total(a, sums)
