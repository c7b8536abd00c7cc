"""Shared by the kernels for few rows: their operand x, and how results are stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Final

from weft.codegen.builder import Builder, Reg, integer, kernel_builder, memory_type
from weft.codegen.chunk import Items
from weft.codegen.contraction.emit import divide, scaled, smaller, subtract
from weft.codegen.contraction.matrices import offsets
from weft.codegen.contraction.order import chains_of
from weft.codegen.contraction.product import Product
from weft.codegen.contraction.sink import Sink, launch_into
from weft.codegen.contraction.transpose import transpose
from weft.codegen.microkernel import first_lanes
from weft.codegen.target import Target
from weft.ir.extent import pinned, same
from weft.ir.node import Value
from weft.passes.launch import Argument, Kernel, Launch, Scratch


class Narrow(ABC):
    """A matmul of few rows: `product` is transposed if `swapped`, and its results are stored so.

    Attributes:
        rows: how many.
        chains: the sums of a result.
        own: the address of this thread's `used` bytes of scratch.
        name: for kernel names.
    """

    name: ClassVar[str]

    def __init__(self, product: Product, target: Target, sink: Sink, swapped: bool) -> None:
        self.product: Final = product
        self.target: Final = target
        self.sink: Final = sink
        self.swapped: Final = swapped
        self.dtype: Final = product.accumulator
        self.lanes: Final = target.lanes(self.dtype.size)
        self.type: Final = memory_type(self.dtype, self.lanes)
        self.bytes: Final = self.lanes * self.dtype.size  # of a vector
        self.rows: Final = pinned(product.m)
        self.chains: Final = chains_of(self.lanes)
        self.used = 0
        self.b: Builder
        self.x: Reg
        self.y: Reg
        self.own: Reg

    def launch(self, x: Value, y: Value) -> Launch:
        """The launch; `x` has the few rows."""
        args: list[Argument] = [x, y]
        uses = not same(self.used, 0)
        if uses:
            args.append(Scratch(self.used, per_thread=True))
        b = self.b = kernel_builder()
        self.x, self.y = b.argument(0), b.argument(1)
        if uses:
            self.own = b.offset(b.argument(2), b.mul(b.params[3], self.used))
        # A transposed tile, or the sums of a vector's columns.
        lines = self.lanes * self.bytes
        self.spill = b.emit("ptr", f"alloca [{lines} x i8], align 64")
        self.begin()
        self.sink.bind(b, len(args))
        items = self.items()
        parts = items.count // self.product.count if self.product.count != 1 else items.count
        with items.loop(b) as number:
            matrix, part = divide(b, number, integer(parts))
            if self.product.count == 1:
                matrix, part = integer(0), number
            self._at(matrix, part)
        product = self.product
        kernel = Kernel(f"matmul_{self.name}_{product.label}", b.module())
        writes = [2] if uses else []
        return launch_into(
            self.sink, kernel, args, writes, items.chunks, product.flops, product.bytes
        )

    def _at(self, matrix: Reg, part: Reg) -> None:
        b, product, size = self.b, self.product, self.product.dtype.size
        x, y = offsets(b, product, matrix)
        x, y = scaled(b, self.x, x, 1, size), scaled(b, self.y, y, 1, size)
        self.item(matrix, part, x, y)

    @abstractmethod
    def items(self) -> Items:
        """The items, equally many for each matrix."""

    @abstractmethod
    def begin(self) -> None:
        """Writes code before the loop over items."""

    @abstractmethod
    def item(self, matrix: Reg, part: Reg, x: Reg, y: Reg) -> None:
        """Writes the code of an item, part `part` of a matrix; `x` and `y` are its operands."""

    def store(self, values: list[Reg], matrix: Reg, column: Reg, end: Reg, whole: bool) -> None:
        """Gives a vector of each row from `column` on to the sink, without lanes from `end` on.

        Args:
            whole: whether all lanes are before `end`.
        """
        b, n = self.b, integer(self.product.n)
        mask = None if whole else first_lanes(b, subtract(b, end, column), self.lanes)
        if not self.swapped:
            for row, value in enumerate(values):
                self.sink.reset()
                at = b.add(b.mul(matrix, self.rows), row), column, n
                self.sink.store(value, at, self.lanes, mask)
            return
        line = b.add(b.mul(matrix, n), column)
        if self.rows == 1:
            self.sink.reset()
            self.sink.store(values[0], (line, integer(0), integer(1)), self.lanes, mask)
            return
        for first in range(0, self.rows, self.lanes):
            self._store_turned(values[first : first + self.lanes], (line, first), column, end)

    def _store_turned(self, values: list[Reg], to: tuple[Reg, int], column: Reg, end: Reg) -> None:
        """Stores rows as columns of the result, from row and column `to` on."""
        b, (line, first) = self.b, to
        padding = [Reg(self.type, "poison")] * (self.lanes - len(values))
        for i, value in enumerate(transpose(b, values + padding, self.lanes)):
            b.store(value, b.offset(self.spill, i * self.bytes), self.dtype.size)
        mask = first_lanes(b, integer(len(values)), self.lanes)
        with b.loop(0, smaller(b, subtract(b, end, column), self.lanes)) as loop:
            place = b.offset(self.spill, b.mul(loop.index, self.bytes))
            value = b.load(self.type, place, self.dtype.size)
            self.sink.reset()
            at = b.add(line, loop.index), integer(first), integer(self.rows)
            self.sink.store(value, at, self.lanes, mask)
