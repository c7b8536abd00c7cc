"""Vector loops to LLVM IR: blocks of vectors, and what is left after the last whole one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final

from weft.codegen.builder import Reg, constant, integer, vector
from weft.codegen.loop.accumulator import Accumulators, has_order, is_known
from weft.codegen.loop.arithmetic import lane_numbers
from weft.codegen.loop.convert import intrinsic
from weft.codegen.loop.index import Symbol
from weft.codegen.loop.lanes import Copy
from weft.codegen.loop.tree import Tree, Vector, accumulations, leaves

FEW: Final = 4
"""Vectors up to which they are all masked if their code is long, such as that of random numbers."""
ONCE: Final = 1 << 62
"""The step of a loop that makes one iteration at most."""


class VectorLoops(Accumulators, ABC):
    """Writes vector loops."""

    @abstractmethod
    def run(self, body: Sequence[Tree]) -> None:
        """Writes a tree."""

    def _vector(self, part: Vector) -> None:
        self.writer.hoist([leaf.value for leaf in leaves(part.body)], part.lanes)
        if part.around is not None:
            self._rows(part, part.around)
            return
        if is_known(part):
            self._known_vector(part)
            return
        at, stop = self._range(part.symbol, part.segment)
        end = self._last_whole(at, stop, part.lanes * part.unroll)
        self._block_loop(part, at, end, part.lanes * part.unroll)
        if has_order(part):
            self._last_block(part, end, stop)
            return
        if part.unroll > 1 and not self.masks:
            at, end = end, self._last_whole(end, stop, part.lanes)
            self._block_loop(part, at, end, part.lanes)
        self._remainder(part, end, stop)

    def _rows(self, part: Vector, around: Symbol) -> None:
        """Rows whose vectors go on where those of the row before have ended."""
        f, block = self.f, part.lanes * part.unroll
        extent = integer(part.symbol.extent)
        whole = Symbol("", around.extent * part.symbol.extent)
        first, last = self._range(whole, part.segment)
        rows = f.binary("udiv", first, extent), f.binary("udiv", last, extent)
        more = f.compare("icmp ne", f.mul(rows[1], extent), last)
        after = f.add(rows[1], f.emit("i64", f"zext {more} to i64"))
        with self._open(rows[0], after, 1) as row:
            self.writer.bound[around] = row
            self.writer.hoist([leaf.value for leaf in leaves(part.body)], part.lanes)
            base = f.mul(row, extent)
            start = intrinsic(f, "llvm.smax", f.binary("sub", first, base), integer(0))
            stop = intrinsic(f, "llvm.smin", f.binary("sub", last, base), extent)
            skipped = f.binary("and", f.add(base, start), integer(block - 1))
            at = self._first_block(part, (start, stop), skipped)
            end = intrinsic(f, "llvm.smax", at, self._last_whole(at, stop, block))
            self._block_loop(part, at, end, block)
            self._last_block(part, end, stop)

    def _first_block(self, part: Vector, ends: tuple[Reg, Reg], skipped: Reg) -> Reg:
        """The rest of a block whose first elements are skipped; returns where the next begins."""
        f, (start, stop) = self.f, ends
        first = f.binary("sub", start, skipped)
        numbers = lane_numbers(vector("i64", part.lanes))
        some = f.compare("icmp ne", skipped, integer(0))
        for n in range(part.unroll):
            at = f.add(first, n * part.lanes)
            here = f.compare("icmp sgt", f.add(at, part.lanes), start)
            here = f.binary("and", some, here)
            end = f.emit("i64", f"select {here}, {stop}, {at}")
            with self._open(at, end, ONCE) as index:
                bounds = [f.splat(f.binary("sub", x, index), part.lanes) for x in (start, stop)]
                low = f.compare("icmp sge", numbers, bounds[0])
                mask = f.binary("and", low, f.compare("icmp slt", numbers, bounds[1]))
                self._block(part, index, [Copy(part.lanes, 0, mask, n)])
        after = f.add(first, part.lanes * part.unroll)
        return f.emit("i64", f"select {some}, {after}, {first}")

    def _last_block(self, part: Vector, at: Reg, stop: Reg) -> None:
        """Less than a block, each of its vectors added to what it is added to in a block."""
        end = stop if self.masks else self._last_whole(at, stop, self._whole(part))
        for n in range(part.unroll):
            with self._open(self.f.add(at, n * part.lanes), end, ONCE) as index:
                copy = Copy(part.lanes, slot=n)
                if self.masks:
                    copy = self._tail(part, self.f.binary("sub", stop, index), n, 0)
                self._block(part, index, [copy])
        if not self.masks:
            self._scalar_loop(part, end, stop)

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
        if end and self._is_long(part):
            self._remainder(part, integer(0), integer(extent))
            return
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
        if tail and not self.masks:
            self._scalar_loop(part, integer(extent - tail), integer(extent))

    def _is_long(self, part: Vector) -> bool:
        """Whether a second copy of the code, for what is left, costs more than masking it all."""
        few = part.symbol.extent % part.lanes and part.symbol.extent <= FEW * part.lanes
        return bool(few and self.masks and part.unroll == 1) and not any(accumulations(part.body))

    def _whole(self, part: Vector) -> int:
        """Elements in multiples of which vectors are added on targets without masks."""
        return max(part.lanes, self.lanes_of(4)) if has_order(part) else part.lanes

    def _tail(self, part: Vector, left: Reg, slot: int = 0, shift: int | None = None) -> Copy:
        type_ = vector("i32", part.lanes)
        if left.text.isdigit():
            limit = constant(int(left.text), type_)
        else:
            limit = self.f.splat(self.f.emit("i32", f"trunc {left} to i32"), part.lanes)
        mask = self.f.compare("icmp ult", lane_numbers(type_), limit)
        return Copy(part.lanes, slot * part.lanes if shift is None else shift, mask, slot)

    def _block_loop(self, part: Vector, start: Reg, stop: Reg, step: int) -> None:
        if start.text == stop.text:
            return
        with self._open(start, stop, step) as index:
            count = step // part.lanes
            self._block(
                part, index, [Copy(part.lanes, n * part.lanes, slot=n) for n in range(count)]
            )

    def _scalar_loop(self, part: Vector, start: Reg, stop: Reg) -> None:
        with self._open(start, stop, 1) as index:
            self._block(part, index, [Copy(1, slot=-1)])

    def _block(self, part: Vector, first: Reg, copies: list[Copy]) -> None:
        with self.writer.vectors(part.symbol, first, copies):
            self.run(part.body)

    def _last_whole(self, start: Reg, stop: Reg, step: int) -> Reg:
        f = self.f
        whole = f.binary("sub", stop, start)
        whole = f.binary("sub", whole, f.binary("srem", whole, integer(step)))
        return f.add(start, whole)
