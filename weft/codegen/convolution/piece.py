"""Code that all convolution kernels use: loops, parts of axes, tables."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from weft.codegen.builder import Builder, Reg, integer
from weft.codegen.contraction.emit import divide, fixed, subtract
from weft.codegen.microkernel import Accumulators
from weft.ir.extent import multiple


@dataclass
class Part:
    """What a chunk, or a phase of it, covers on one axis; registers or constants."""

    start: Reg  # first position of the block, counted in the phase
    count: Reg
    first: Reg  # the phase's first result position
    offset: Reg  # source position of its first tap, relative to the block's source
    tap: Reg
    taps: Reg


def unflat(registers: list[Reg], vectors: int) -> Accumulators:
    """Splits a flat list of accumulators by row."""
    return [registers[i : i + vectors] for i in range(0, len(registers), vectors)]


@contextlib.contextmanager
def each(b: Builder, start: Reg, stop: Reg) -> Iterator[Reg]:
    """`for index in range(start, stop)`; no loop if it is known to run once."""
    first, last = fixed(start), fixed(stop)
    if first is not None and last is not None and last - first == 1:
        yield start
        return
    with b.loop(start, stop) as loop:
        yield loop.index


def span(b: Builder, i: Reg, extent: int, parts: int) -> tuple[Reg, Reg]:
    """Start and length of part `i` of `parts` nearly equal ones."""
    if multiple(extent, parts):
        return b.mul(i, extent // parts), integer(extent // parts)
    start, _ = divide(b, b.mul(i, extent), integer(parts))
    stop, _ = divide(b, b.mul(b.add(i, 1), extent), integer(parts))
    return start, subtract(b, stop, start)


def look_up(b: Builder, name: str, rows: list[tuple[int, ...]], row: Reg) -> list[Reg]:
    """One row of a constant table in the kernel."""
    width = len(rows[0])
    entries = ", ".join(f"i64 {n}" for numbers in rows for n in numbers)
    count = prod((len(rows), width))
    b.declarations.add(f"@{name} = private constant [{count} x i64] [{entries}]")
    start = b.offset(Reg("ptr", f"@{name}"), b.mul(row, width * 8))
    return [b.load("i64", b.offset(start, i * 8), 8) for i in range(width)]
