"""The problem of a recurrent kernel: its sizes, and how it is tiled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from weft.codegen.contraction.tile import ceil_div
from weft.codegen.microkernel import Tile, max_rows
from weft.codegen.target import Target
from weft.ir.dtype import DType
from weft.ir.extent import Extent
from weft.ir.node import Node
from weft.ir.shape import known


@dataclass(frozen=True)
class Sequence:
    """`rows` sequences of `steps` steps through a layer of `width` units with `gates` gates each.

    Element `unit` of sequence `row` at a step lies at `(place(step) + row * row_pitch) * width +
    unit` of a stacked array.
    """

    steps: int
    rows: int
    width: int
    gates: int
    dtype: DType
    reverse: bool
    batch_first: bool

    @property
    def row_pitch(self) -> int:
        """Lines of a stacked array between two sequences."""
        return self.steps if self.batch_first else 1

    @property
    def size(self) -> int:
        """Numbers in a stacked array of states."""
        return self.steps * self.rows * self.width

    @property
    def label(self) -> str:
        """For kernel names."""
        return f"{self.dtype}_{self.rows}x{self.width}x{self.gates}"

    @property
    def flops(self) -> float:
        """Arithmetic of the recurrent matmul of one step."""
        return 2.0 * self.rows * self.width * self.width * self.gates

    def place(self, step: int) -> int:
        """The line of a step of the first sequence."""
        return step if self.batch_first else step * self.rows

    def order(self) -> Iterator[tuple[int, int | None]]:
        """Each step with the one before it in time; the first has none."""
        before = None
        for number in range(self.steps):
            step = self.steps - 1 - number if self.reverse else number
            yield step, before
            before = step


def sequence_of(node: Node, gates: int) -> Sequence:
    """The problem of a node whose last output or input `gates` has all gates of all steps."""
    batch_first, reverse = bool(node.attrs["batch_first"]), bool(node.attrs["reverse"])
    stacked = node.outputs[0] if node.op.endswith("_grad") else node.data_inputs[0]
    first, second, wide = known(stacked.shape)
    steps, rows = (second, first) if batch_first else (first, second)
    return Sequence(steps, rows, wide // gates, gates, stacked.dtype, reverse, batch_first)


PASS: Final = 0.1
"""The cost of reading a panel again, from L2, relative to the first reading."""


ROWS: Final = (16, 8, 4, 2, 1)
"""Rows from which on a kernel for many sizes has tiles for so many."""
VECTORS: Final = (8, 4, 2, 1)
"""Vectors of units from which on a kernel for many sizes has tiles for so many."""


def most_of(most: int, needed: int) -> int:
    """`needed`, but at most `most`; just `most` in a kernel for many sizes."""
    return most if isinstance(needed, Extent) else min(most, needed)


def step_tile(rows: int, columns: int, dtype: DType, target: Target) -> Tile:
    """The tile for few rows and weights from memory: no extra row, few passes over a panel."""
    lanes = target.lanes(dtype.size)
    limit = rows
    if isinstance(rows, Extent):
        limit, rows = next(n for n in ROWS if rows >= n), int(rows)
    if isinstance(columns, Extent):
        most = next(n for n in VECTORS if columns > (n - 1) * lanes)
        columns = int(columns) if most == VECTORS[0] else min(most * lanes, int(columns))
    options: list[tuple[float, Tile]] = []
    for vectors in range(1, min(ceil_div(columns, lanes), target.registers // 4) + 1):
        most = min(limit, max_rows(target, vectors))
        passes = ceil_div(rows, most)
        tile = Tile(ceil_div(rows, passes), vectors, lanes, dtype)
        sums = tile.rows * vectors
        loads = vectors + (sums if vectors == 1 else tile.rows)
        waste = passes * tile.rows * ceil_div(columns, tile.columns) * tile.columns
        cost = waste * max(sums, loads, 8) / sums * (1 + PASS * (passes - 1))
        options.append((cost, tile))
    return min(options, key=lambda option: option[0])[1]
