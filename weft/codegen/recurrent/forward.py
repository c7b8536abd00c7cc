"""LSTM forward: an item is a block of units, with their four gates."""

from __future__ import annotations

from collections.abc import Iterator

from weft.codegen import vecmath
from weft.codegen.builder import Builder, Reg, integer, kernel_builder
from weft.codegen.contraction.emit import scaled
from weft.codegen.recurrent.nest import Nest
from weft.codegen.recurrent.problem import sequence_of
from weft.codegen.target import Target
from weft.passes.group import Group
from weft.passes.launch import Argument, Launch

GATES = 4


def lstm_sequence(group: Group, target: Target) -> tuple[Launch, ...]:
    """The launches of an `lstm_sequence` node."""
    node = group.nodes[0]
    problem = sequence_of(node, GATES)
    if not problem.size:
        return ()
    nest = Nest(problem, target, problem.width, GATES)
    z, w, h, c = node.data_inputs
    y, cells, gates = node.outputs
    launches = [
        nest.pack(w, 1, problem.width),
        nest.copy_rows(h, nest.rows, nest.pitch, problem.width),
    ]
    ir = _ir(nest)
    moved = 11.0 * problem.rows * problem.width * problem.dtype.size
    for number, (step, before) in enumerate(problem.order()):
        past = (c, 0, 1) if before is None else (cells, problem.place(before), problem.row_pitch)
        args: tuple[Argument, ...] = (
            z, nest.weights, nest.rows, past[0], y, cells, gates,
            problem.place(step), past[1], past[2], number % 2,
        )  # fmt: skip
        launches.append(nest.step("lstm", args, (2, 4, 5, 6), ir, moved))
    return tuple(launches)


def _ir(nest: Nest) -> str:
    """The kernel of a step.

    Arguments: z, weights, rows, c before, y, cells, gates; the lines of this step and of the one
    before, the lines between its rows, and which copy of the rows is read.
    """
    b = kernel_builder()
    sums = nest.space(b)
    z, weights, rows, past, y, cells, gates = (b.argument(slot) for slot in range(7))
    now, before, pitch, half = (b.argument(slot, "i64") for slot in range(7, 11))
    left = scaled(b, rows, half, nest.copy_bytes, 1)
    other = b.binary("xor", half, integer(1))
    to = scaled(b, rows, other, nest.copy_bytes, 1)

    def places(row: Reg, unit: Reg) -> Iterator[Reg]:
        line = b.add(now, b.mul(row, nest.problem.row_pitch))
        old = b.add(before, b.mul(row, pitch))
        for gate in range(GATES):
            column = b.add(unit, gate * nest.problem.width)
            yield nest.line(b, z, line, GATES, column)
            yield nest.line(b, gates, line, GATES, column)
        yield nest.line(b, past, old, 1, unit)
        yield nest.line(b, cells, line, 1, unit)
        yield nest.line(b, y, line, 1, unit)

    def item(across: Reg, tile: Reg, count: Reg) -> None:
        at = (across, tile, count)
        nest.expect(b, at, places)
        nest.multiply(b, sums, left, weights, at, integer(nest.rounds))

        def row(row: Reg, number: Reg, inside: Reg) -> None:
            line = b.add(now, b.mul(row, nest.problem.row_pitch))
            old = b.add(before, b.mul(row, pitch))
            for v in range(nest.tile.vectors):
                unit = b.add(b.mul(across, nest.tile.columns), v * nest.lanes)
                mask = nest.mask(b, unit)
                totals: list[Reg] = []
                for gate in range(GATES):
                    place = nest.sum_at(b, sums, number, gate)
                    place = scaled(b, place, inside, nest.tile.columns, nest.size)
                    total = b.load(
                        nest.type, b.offset(place, v * nest.lanes * nest.size), nest.size
                    )
                    column = b.add(unit, gate * nest.problem.width)
                    given = nest.read(b, nest.line(b, z, line, GATES, column), mask)
                    totals.append(b.binary("fadd", total, given))
                was = nest.read(b, nest.line(b, past, old, 1, unit), mask)
                opened, cell, state = _cell(b, totals, was)
                for gate, value in enumerate(opened):
                    column = b.add(unit, gate * nest.problem.width)
                    nest.write(b, value, nest.line(b, gates, line, GATES, column), mask)
                nest.write(b, cell, nest.line(b, cells, line, 1, unit), mask)
                nest.write(b, state, nest.line(b, y, line, 1, unit), mask)
                place = scaled(b, scaled(b, to, row, nest.pitch, 1), unit, 1, nest.size)
                nest.write(b, state, place, mask)

        nest.rows_loop(b, at, row)

    nest.item_loop(b, item)
    return b.module()


def _cell(b: Builder, totals: list[Reg], was: Reg) -> tuple[list[Reg], Reg, Reg]:
    """Computes the gates, the cell and the state."""
    opened: list[Reg] = []
    with b.interleaved() as next_run:
        for gate, x in enumerate(totals):
            next_run()
            opened.append(vecmath.tanh(b, x) if gate == 2 else vecmath.sigmoid(b, x))
    i, f, n, o = opened
    cell = b.binary("fadd", b.binary("fmul", f, was), b.binary("fmul", i, n))
    return opened, cell, b.binary("fmul", o, vecmath.tanh(b, cell))
