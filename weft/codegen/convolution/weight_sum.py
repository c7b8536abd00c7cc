"""The last launch of a gradient by weights: the sum of the parts' gradients, in order."""

from __future__ import annotations

from weft.codegen.builder import Builder, Reg, constant, integer, kernel_builder
from weft.codegen.contraction.emit import read, scaled, smaller
from weft.codegen.contraction.plan import ceil_div
from weft.codegen.contraction.sink import Sink
from weft.codegen.convolution.weight_problem import WeightGradient
from weft.codegen.kernel import Kernel, Launch, Scratch
from weft.codegen.microkernel import Tile, first_lanes

CHUNK = 16 * 1024
"""Elements of the gradient in a chunk: some 10 us."""


def launch_sum(
    problem: WeightGradient, parts: int, tile: Tile, partial: Scratch, sink: Sink
) -> Launch:
    """Add `parts` gradients, one after the other in memory, and finish the result."""
    rows = max(1, ceil_div(CHUNK, problem.width))
    own = problem.rows * problem.width * tile.dtype.size
    kernel = Kernel(f"sum_{parts}_{problem.label}", _ir(problem, parts, tile, rows, sink))
    return Launch(
        kernel, (partial, *sink.values), tuple(1 + i for i in sink.writes),
        ceil_div(problem.rows, rows), tuple((1 + i, 1 + j) for i, j in sink.inplace),
        bytes=(parts + 1.0) * own,
    )  # fmt: skip


def _ir(problem: WeightGradient, parts: int, tile: Tile, rows: int, sink: Sink) -> str:
    b, lanes, width, size = kernel_builder(), tile.lanes, problem.width, tile.dtype.size
    start = b.argument(0)
    sink.bind(b, 1)
    whole = width - width % lanes
    first = b.mul(b.params[1], rows)
    last = smaller(b, b.mul(b.params[2], rows), integer(problem.rows))
    with b.loop(first, last) as row:
        here = scaled(b, start, row.index, width * size, 1)
        for begin, stop in ((0, whole), (whole, width)):
            if begin == stop:
                continue
            mask = first_lanes(b, integer(width - whole), lanes) if begin == whole else None
            with b.loop(begin, stop, lanes) as column:
                place = b.offset(here, b.mul(column.index, size))
                total = _added(b, tile, place, mask, parts, problem.rows * width * size)
                sink.reset()
                sink.store(total, (row.index, column.index, integer(width)), lanes, mask)
    return b.module()


def _added(b: Builder, tile: Tile, place: Reg, mask: Reg | None, parts: int, own: int) -> Reg:
    with b.loop(0, parts, 1, [constant(0, tile.type)]) as loop:
        at = b.offset(place, b.mul(loop.index, own))
        value = read(b, at, tile.lanes, tile.dtype, tile.dtype, mask)
        loop.next = [b.binary("fadd", loop.carried[0], value)]
    return loop.results[0]
