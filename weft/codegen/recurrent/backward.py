"""LSTM backward: an item is some blocks of units, whose cotangents come first.

    dh = g + dz of the step after @ w        dz = slopes of the gates by dh and dc

The carry from step to step is dz (the rows that are multiplied) and dc, both beside the stacked
arrays. The weight gradient is one matmul over all steps, outside.
"""

from __future__ import annotations

from collections.abc import Iterator

from weft.codegen import vecmath
from weft.codegen.builder import Builder, Reg, integer, kernel_builder
from weft.codegen.contraction.emit import scaled
from weft.codegen.recurrent.nest import Nest
from weft.codegen.recurrent.problem import Sequence, sequence_of
from weft.codegen.target import Target
from weft.ir.node import Value
from weft.passes.group import Group
from weft.passes.launch import Argument, Kernel, Launch, Scratch

GATES = 4


def lstm_sequence_grad(group: Group, target: Target) -> tuple[Launch, ...]:
    """The launches of an `lstm_sequence_grad` node."""
    node = group.nodes[0]
    problem = sequence_of(node, GATES)
    if not problem.rows * problem.width:
        return ()
    nest = _Backward(problem, target)
    g, g_cells, w, c, cells, gates, *more = node.data_inputs
    by_z, by_h, by_c = node.outputs
    launches = [nest.pack(w, problem.width, 1), nest.clear()]
    ir = nest.ir(bool(more))
    moved = 13.0 * problem.rows * problem.width * problem.dtype.size
    order = list(problem.order())[::-1]
    for number, (step, before) in enumerate(order):
        past = (c, 0, 1) if before is None else (cells, problem.place(before), problem.row_pitch)
        args: tuple[Argument, ...] = (
            g, g_cells, nest.weights, nest.rows, past[0], cells, gates, nest.carried, by_z,
            problem.place(step), past[1], past[2], number % 2, nest.rounds if number else 0, *more,
        )  # fmt: skip
        launches.append(nest.step("lstm_grad", args, (3, 7, 8), ir, moved, number > 0))
    launches.append(nest.last((by_h, by_c), len(order)))
    return tuple(launches)


class _Backward(Nest):
    def __init__(self, problem: Sequence, target: Target) -> None:
        super().__init__(problem, target, GATES * problem.width, 1)
        self.carried = Scratch(max(1, problem.rows * problem.width) * self.size)

    def clear(self) -> Launch:
        """Zeroes the cotangents of the cells."""
        b = kernel_builder()
        to = b.argument(0)
        with b.loop(0, self.problem.rows * self.problem.width) as loop:
            zero = Reg(self.scalar, "0.0")
            b.store(zero, scaled(b, to, loop.index, 1, self.size), self.size)
        kernel = Kernel(f"recurrent_clear_{self.problem.label}", b.module())
        return Launch(kernel, (self.carried,), (0,), bytes=float(self.carried.size))

    def ir(self, more: bool) -> str:
        """The kernel of a step.

        Arguments: g, g_cells, weights, rows, c before, cells, gates, carried dc, dz; the lines of
        this step and of the one before in time, the lines between its rows, which copy of the rows
        is read, blocks of k to multiply; and the cotangents of the gates if there are `more`.
        """
        b = kernel_builder()
        sums = self.space(b)
        arrays = [b.argument(slot) for slot in range(9)]
        now, before, pitch, half, rounds = (b.argument(slot, "i64") for slot in range(9, 14))
        extra = b.argument(14) if more else None
        left = scaled(b, arrays[3], half, self.copy_bytes, 1)
        other = b.binary("xor", half, integer(1))
        to = scaled(b, arrays[3], other, self.copy_bytes, 1)

        def places(row: Reg, unit: Reg) -> Iterator[Reg]:
            line = b.add(now, b.mul(row, self.problem.row_pitch))
            for gate in range(GATES):
                column = b.add(unit, gate * self.problem.width)
                yield self.line(b, arrays[6], line, GATES, column)
                yield self.line(b, arrays[8], line, GATES, column)
            yield self.line(b, arrays[4], b.add(before, b.mul(row, pitch)), 1, unit)
            for array in (arrays[0], arrays[1], arrays[5]):
                yield self.line(b, array, line, 1, unit)

        def item(across: Reg, tile: Reg, count: Reg) -> None:
            at = (across, tile, count)
            self.expect(b, at, places)
            self.multiply(b, sums, left, arrays[2], at, rounds)

            def row(row: Reg, number: Reg, inside: Reg) -> None:
                line = b.add(now, b.mul(row, self.problem.row_pitch))
                old = b.add(before, b.mul(row, pitch))
                lines = (row, line, old)
                for unit, from_next in self.vectors(b, sums, across, number, inside):
                    self._units(b, arrays, extra, lines, unit, from_next, to)

            self.rows_loop(b, at, row)

        self.item_loop(b, item)
        return b.module()

    def _units(
        self, b: Builder, arrays: list[Reg], extra: Reg | None, lines: tuple[Reg, Reg, Reg],
        unit: Reg, from_next: Reg, to: Reg,
    ) -> None:  # fmt: skip
        """The gate cotangents of one vector of units of one row."""
        (row, line, old), mask, width = lines, self.mask(b, unit), self.problem.width
        g, g_cells, _, _, past, cells, gates, carried, by_z = arrays
        places = [b.add(unit, gate * width) for gate in range(GATES)]
        opened = [self.read(b, self.line(b, gates, line, GATES, at), mask) for at in places]
        g_state, g_cell, was, cell = (
            self.read(b, self.line(b, x, at, 1, unit), mask)
            for x, at in ((g, line), (g_cells, line), (past, old), (cells, line))
        )
        by_h = b.binary("fadd", g_state, b.load(self.type, from_next, self.size))
        kept = self.line(b, carried, row, 1, unit)
        by_c = b.binary("fadd", g_cell, self.read(b, kept, mask))
        slopes, by_c = self._slopes(b, opened, (was, cell), (by_h, by_c))
        self.write(b, by_c, kept, mask)
        target = scaled(b, to, row, self.pitch, 1)
        for at, slope, value in zip(places, slopes, opened, strict=True):
            if extra is not None:
                more = self.read(b, self.line(b, extra, line, GATES, at), mask)
                slope = b.binary("fadd", slope, more)
            slope = b.binary("fmul", slope, self._steepness(b, value, at is places[2]))
            self.write(b, slope, self.line(b, by_z, line, GATES, at), mask)
            self.write(b, slope, scaled(b, target, at, 1, self.size), mask)

    def _slopes(
        self, b: Builder, opened: list[Reg], cells: tuple[Reg, Reg], found: tuple[Reg, Reg]
    ) -> tuple[list[Reg], Reg]:
        """Cotangents of the gates, and what goes on to the cell before."""
        (i, f, n, o), (was, cell), (by_h, by_c) = opened, cells, found
        top = vecmath.tanh(b, cell)
        rest = b.binary("fsub", self.one(), b.binary("fmul", top, top))
        by_c = b.binary("fadd", by_c, b.binary("fmul", b.binary("fmul", by_h, o), rest))
        pairs = (by_c, n), (by_c, was), (by_c, i), (by_h, top)
        slopes = [b.binary("fmul", x, y) for x, y in pairs]
        return slopes, b.binary("fmul", by_c, f)

    def _steepness(self, b: Builder, y: Reg, is_tanh: bool) -> Reg:
        """The derivative of a gate's activation where its value is `y`."""
        if is_tanh:
            return b.binary("fsub", self.one(), b.binary("fmul", y, y))
        return b.binary("fmul", y, b.binary("fsub", self.one(), y))

    def last(self, outputs: tuple[Value, Value], steps: int) -> Launch:
        """Cotangents of the initial states."""
        b = kernel_builder()
        sums = self.space(b)
        weights, rows, carried, by_h, by_c = (b.argument(slot) for slot in range(5))
        half, rounds = (b.argument(slot, "i64") for slot in (5, 6))
        left = scaled(b, rows, half, self.copy_bytes, 1)

        def item(across: Reg, tile: Reg, count: Reg) -> None:
            at = (across, tile, count)
            self.multiply(b, sums, left, weights, at, rounds)

            def row(row: Reg, number: Reg, inside: Reg) -> None:
                for unit, source in self.vectors(b, sums, across, number, inside):
                    mask = self.mask(b, unit)
                    value = b.load(self.type, source, self.size)
                    self.write(b, value, self.line(b, by_h, row, 1, unit), mask)
                    value = self.read(b, self.line(b, carried, row, 1, unit), mask)
                    self.write(b, value, self.line(b, by_c, row, 1, unit), mask)

            self.rows_loop(b, at, row)

        self.item_loop(b, item)
        args = (
            self.weights, self.rows, self.carried, *outputs, steps % 2, self.rounds if steps else 0
        )  # fmt: skip
        return self.step("lstm_grad_last", args, (3, 4), b.module(), 0.0, steps > 0)
