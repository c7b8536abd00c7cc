"""Shared by forward and backward kernels: packing, matmul tiles, rows of scores."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from weft.codegen import vecmath
from weft.codegen.attention.problem import Attention, Place, in_pairs
from weft.codegen.builder import Builder, Reg, constant, integer, kernel_builder, vector
from weft.codegen.chunk import even_chunks
from weft.codegen.contraction.emit import copy_run, fixed, scaled, smaller, subtract, write
from weft.codegen.contraction.panel import RightPanel, right_bytes
from weft.codegen.contraction.product import Product
from weft.codegen.contraction.tile import ceil_div
from weft.codegen.loop.arithmetic import lane_numbers
from weft.codegen.loop.convert import choose
from weft.codegen.microkernel import Accumulators, Left, Right, Tile, microkernel, prefetch, strided
from weft.codegen.target import Target
from weft.host.memory import LINE
from weft.ir.dtype import DType
from weft.ir.extent import assume, multiple


def lines(size: int) -> int:
    """Bytes, rounded up to whole cache lines."""
    return ceil_div(size, LINE) * LINE


def placed(sizes: Sequence[int]) -> tuple[list[int], int]:
    """Where the parts of a thread's scratch begin, and the bytes of all."""
    ends = list(itertools.accumulate(map(lines, sizes)))
    return [0, *ends[:-1]], ends[-1]


@dataclass(frozen=True)
class Panels:
    """An operand packed into panels of a tile's columns, each of `steps` runs.

    `turned`: the columns are rows in memory, as for a matmul with a transposed matrix. For a tile
    of pairs the steps are pairs as well, and adjacent, so it is transposed.
    """

    stored: DType
    tile: Tile
    steps: int
    columns: int
    turned: bool = False

    @cached_property
    def count(self) -> int:
        """How many panels there are."""
        return ceil_div(self.columns, self.tile.columns)

    @cached_property
    def each(self) -> int:
        """Bytes of a panel."""
        return lines(right_bytes(self.tile, self.steps))

    @cached_property
    def bytes(self) -> int:
        """Bytes of all panels."""
        return self.each * self.count


class Packed(NamedTuple):
    """Panels, and where they are."""

    panels: Panels
    base: Reg

    def copy(self, b: Builder, source: Reg, row: int, target: Target) -> None:
        """Packs from `source`, whose rows are `row` elements apart."""
        panels, tile = self.panels, self.panels.tile
        dtype = tile.dtype if tile.pairs else panels.stored
        row = row // 2 if tile.pairs else row
        step, column = (1, row) if panels.turned else (row, 1)
        product = Product(1, 1, 1, 1, 1, step, column, dtype, pairs=tile.pairs)
        narrow = not multiple(panels.columns, tile.columns)
        panel = RightPanel(b, tile, product, narrow, target)
        with b.loop(0, panels.count) as loop:
            first = b.mul(loop.index, tile.columns)
            panel.copy(
                scaled(b, source, first, column, dtype.size),
                self.at(b, loop.index, integer(0)),
                integer(panels.steps),
                (integer(step), integer(column)),
                subtract(b, integer(panels.columns), first),
            )

    def at(self, b: Builder, panel: Reg, step: Reg) -> Reg:
        """The address of a panel's run number `step`."""
        tile = self.panels.tile
        start = scaled(b, self.base, panel, self.panels.each, 1)
        return scaled(b, start, step, tile.columns, tile.dtype.size)

    def right(self, b: Builder, panel: Reg, step: Reg) -> Right:
        """The panel from run `step` on, as the microkernel's operand."""
        tile = self.panels.tile
        return Right(self.at(b, panel, step), tile.columns * tile.dtype.size)


class Layout:
    """What is known before a kernel is written; subclasses add tiles, panels and scratch."""

    def __init__(self, problem: Attention, target: Target) -> None:
        self.problem: Final = problem
        self.target: Final = target
        self.stored: Final = problem.dtype
        self.dtype: Final = problem.accumulator
        self.size: Final = self.dtype.size
        self.pairs: Final = in_pairs(problem, target)
        self.widens: Final = self.stored is not self.dtype and not self.pairs
        self.lanes: Final = target.lanes(self.size)
        self.heads: Final = even_chunks(problem.heads)

    def steps(self, columns: int) -> int:
        """Steps of a sum over columns of two arguments."""
        return columns // 2 if self.pairs else columns


Coming = Sequence[tuple[Reg, Place, int]]
"""Matrices of the next head, their places and columns."""


class Nest:
    """Writes a kernel; a work item is a head.

    Args:
        scratch: the scratch's argument slot.
        used: bytes of scratch of a thread.
    """

    def __init__(self, layout: Layout, scratch: int, used: int) -> None:
        self.problem: Final = layout.problem
        self.target: Final = layout.target
        self.stored: Final = layout.stored
        self.dtype: Final = layout.dtype
        self.size: Final = layout.size
        self.pairs: Final = layout.pairs
        self.widens: Final = layout.widens
        self.lanes: Final = layout.lanes
        self.scalar: Final = "float" if self.size == 4 else "double"
        self.type: Final = vector(self.scalar, self.lanes)
        self.b: Final = kernel_builder()
        self.own: Final = self.b.offset(
            self.b.argument(scratch), self.b.mul(self.b.params[3], used)
        )

    def matrix(self, slot: int, head: Reg, place: Place) -> Reg:
        """The address of a head's matrix in an argument."""
        b, size = self.b, self.stored.size
        base, number = b.offset(b.argument(slot), place.first * size), head
        if place.beside > 1:
            batch = b.binary("udiv", head, integer(place.beside))
            number = subtract(b, head, b.mul(batch, place.beside))
            base = scaled(b, base, batch, place.batch, size)
            return scaled(b, base, number, place.width, size)
        return scaled(b, base, head, place.batch, size)

    def coming(self, head: Reg, operands: Sequence[tuple[int, Place, int]]) -> Coming:
        """The next head's matrices, given their argument slots, places and columns."""
        last = self.problem.heads - 1
        head = smaller(self.b, self.b.add(head, 1), last)
        return [(self.matrix(slot, head, at), at, n) for slot, at, n in operands]

    def ask(self, coming: Coming, row: Reg) -> None:
        """Prefetches a row of everything that the next head reads: rows of adjacent heads are short
        runs, which the hardware prefetcher does not recognize.
        """
        for matrix, place, columns in coming:
            self.ask_row(self.line(matrix, row, place.row), columns)

    def ask_row(self, line: Reg, columns: int, write: bool = False) -> None:
        """Prefetches a row of an argument."""
        for at in range(0, columns * self.stored.size, LINE):
            prefetch(self.b, self.b.offset(line, at), 2, write)

    def vector(self, slot: int, head: Reg, size: int) -> Reg:
        """The address in an argument of a head's `size` numbers, one per query."""
        return scaled(self.b, self.b.argument(slot), head, size, self.size)

    def line(self, matrix: Reg, row: Reg, pitch: int) -> Reg:
        """The address of a row of an argument."""
        return scaled(self.b, matrix, row, pitch, self.stored.size)

    def at(self, pointer: Reg, row: Reg, pitch: int) -> Reg:
        """The address of a row in scratch."""
        return scaled(self.b, pointer, row, pitch, self.size)

    def band_of(
        self, matrix: Reg, row: Reg, shape: tuple[int, int], pitch: int, place: int
    ) -> tuple[Reg, int]:
        """`shape` rows of an argument from `row` on, and their pitch.

        They are copied if they must be widened.
        """
        b, (rows, columns) = self.b, shape
        source = self.line(matrix, row, pitch)
        if not self.widens:
            return source, pitch
        to, types = b.offset(self.own, place), (self.stored, self.dtype)
        if pitch == columns:
            copy_run(b, self.target, source, to, integer(rows * columns), types)
            return to, columns
        with b.loop(0, rows) as loop:
            line = self.line(source, loop.index, pitch)
            goal = self.at(to, loop.index, columns)
            copy_run(b, self.target, line, goal, integer(columns), types)
        return to, columns

    def left(self, band: tuple[Reg, int], row: Reg) -> tuple[Reg, int, int]:
        """A row of what `band_of` returned, and the bytes between rows and between steps."""
        start, pitch = band
        size = self.stored.size if self.pairs else self.size
        step = 2 * size if self.pairs else size
        return scaled(self.b, start, row, pitch, size), pitch * size, step

    def rows(self, tile: Tile, count: int, body: Callable[[Reg, Reg], None]) -> None:
        """Tiles that cover `count` rows, as first row and number; the last one starts early."""
        b = self.b
        assume(count >= tile.rows)
        with b.loop(0, ceil_div(count, tile.rows)) as loop:
            body(smaller(b, b.mul(loop.index, tile.rows), count - tile.rows), loop.index)

    def product(
        self, tile: Tile, left: tuple[Reg, int, int], right: Right, depth: Reg | int,
        start: Accumulators | None = None,
    ) -> Accumulators:  # fmt: skip
        """A tile of a matmul; `left` is an address and its bytes between rows and steps."""
        base, row, step = left
        if isinstance(depth, Reg):
            known = fixed(depth)
            depth = depth if known is None else known
        operand: Left = strided(self.b, base, row, tile.rows, step)
        return microkernel(self.b, tile, operand, right, depth, start)

    def store(
        self, sums: Accumulators, to: Reg, pitch: int, dtype: DType, scales: Reg | None = None
    ) -> None:
        """Stores a tile as `dtype`, scaled by row factors at the address `scales` if given."""
        b = self.b
        for r, line in enumerate(sums):
            place = b.offset(to, r * pitch * dtype.size)
            factor = None
            if scales is not None:
                number = b.load(self.scalar, b.offset(scales, r * self.size), self.size)
                factor = b.splat(number, self.lanes)
            for v, value in enumerate(line):
                out = value if factor is None else b.binary("fmul", value, factor)
                write(b, out, b.offset(place, v * self.lanes * dtype.size), dtype, None)

    def visible(self, row: Reg) -> Reg:
        """How many keys the query at `row` attends to."""
        keys = self.problem.keys
        return smaller(self.b, self.b.add(row, 1), keys) if self.problem.causal else integer(keys)

    def vectors(self, columns: Reg) -> Reg:
        """How many vectors cover so many columns."""
        b = self.b
        if columns.text.isdigit():
            return integer(ceil_div(int(columns.text), self.lanes))
        return b.binary("udiv", b.add(columns, self.lanes - 1), integer(self.lanes))

    def scaled_scores(self, line: Reg, number: Reg, seen: Reg) -> Reg:
        """Vector `number` of a line of scores, scaled; minus infinity from column `seen` on."""
        b = self.b
        value = b.load(self.type, scaled(b, line, number, self.lanes, self.size), self.size)
        value = b.binary("fmul", value, constant(self.problem.scale, self.type))
        left = subtract(b, seen, b.mul(number, self.lanes))
        words = vector("i32", self.lanes)
        limit = b.splat(self._narrow(left), self.lanes)
        inside = b.compare("icmp slt", lane_numbers(words), limit)
        return choose(b, inside, value, constant(float("-inf"), self.type))

    def _narrow(self, value: Reg) -> Reg:
        if value.text.lstrip("-").isdigit():
            return integer(int(value.text), "i32")
        return self.b.emit("i32", f"trunc {value} to i32")

    def clear(self, line: Reg, first: Reg, last: Reg) -> None:
        """Zeros the vectors from `first` to before `last` of a line."""
        b = self.b
        with b.loop(first, last) as loop:
            place = scaled(b, line, loop.index, self.lanes, self.size)
            b.store(Reg(self.type, "zeroinitializer"), place, self.size)

    def exp(self, x: Reg) -> Reg:
        """The exponential of a vector."""
        return vecmath.exp(self.b, x)
