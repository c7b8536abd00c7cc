"""Sums down the columns of what a kernel stores, taken while its results are in registers.

Every chunk of the kernel adds up its own rows in memory of its own, a vector of columns for every
sum, so that results do not depend on threads; a launch after it adds up the chunks in order.

    partial = partials_of(group)
    partial.cut(chunks)                     # then `partial.scratch` is an argument of the launch
    partial.bind(builder, pointer)
    partial.begin(chunk)                    # at the start of a chunk
    partial.add(n, column, value, mask)     # a vector of values of the n-th sum
    partial.flush()                         # before each basic block ends that has added something
    partial.launch(target)                  # what follows
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.codegen.builder import Builder, Reg, constant, integer, kernel_builder
from weft.codegen.kernel import Kernel, Launch, Scratch
from weft.codegen.loop.convert import stored
from weft.codegen.loop.reduction import sum_type
from weft.codegen.loop.trace import reduces
from weft.codegen.microkernel import first_lanes, load_masked, store_masked
from weft.codegen.target import Target
from weft.ir.dtype import DType
from weft.ir.node import Value
from weft.ir.shape import known
from weft.passes.group import Group

LINE = 64
SHARE = 8
"""Vectors of columns that a chunk of the last launch adds up."""


def partials_of(group: Group) -> Partials | None:
    """The sums among the outputs of a group that begins with a product."""
    sums = [value for value in group.outputs if reduces(value.node)]
    if not sums:
        return None
    return Partials(sums, known(group.nodes[0].outputs[0].shape)[-1])


class Partials:
    """The sums of a kernel, chunk by chunk; all of one type."""

    def __init__(self, sums: Sequence[Value], columns: int) -> None:
        self.sums = tuple(sums)
        self.dtype: DType = sum_type(sums[0].dtype)
        self.columns = columns
        self.pitch = -(-columns * self.dtype.size // LINE) * LINE
        self.chunk_bytes = self.pitch * len(self.sums)
        self.chunks = 0
        self.scratch: Scratch
        self._b: Builder
        self._base: Reg
        self._own: Reg
        self._waiting: dict[tuple[int, Reg, Reg | None], list[Reg]] = {}

    def cut(self, chunks: int) -> None:
        """Say how many chunks the kernel has."""
        self.chunks = chunks
        self.scratch = Scratch(max(chunks, 1) * self.chunk_bytes)

    def bind(self, b: Builder, pointer: Reg) -> None:
        """Tell where the scratch memory lies."""
        self._b, self._base = b, pointer
        self._waiting = {}

    def begin(self, chunk: Reg) -> None:
        """A chunk begins: its sums are zero."""
        b = self._b
        self._own = b.offset(self._base, b.mul(chunk, self.chunk_bytes))
        with b.loop(0, self.chunk_bytes, LINE) as loop:
            b.store(constant(0, "<16 x float>"), b.offset(self._own, loop.index), LINE)

    def add(self, n: int, column: Reg, value: Reg, mask: Reg | None) -> None:
        """Add a vector, or one element, from `column` on to the n-th sum."""
        self._waiting.setdefault((n, column, mask), []).append(value)

    def flush(self) -> None:
        """Write what is in registers."""
        b = self._b
        for (n, column, mask), values in self._waiting.items():
            total = _added(b, values)
            place = b.offset(self._own, b.mul(column, self.dtype.size))
            place = b.offset(place, n * self.pitch)
            if mask is None:
                before = b.load(total.type, place, self.dtype.size)
                b.store(b.binary("fadd", before, total), place, self.dtype.size)
            else:
                before = load_masked(b, total.type, place, mask)
                store_masked(b, b.binary("fadd", before, total), place, mask)
        self._waiting = {}

    def launch(self, target: Target) -> Launch:
        """The launch that adds up the chunks, in order."""
        lanes = target.lanes(self.dtype.size)
        vectors = -(-self.columns // lanes)
        outs = tuple(range(1, 1 + len(self.sums)))
        name = f"sum_{self.chunks}_{len(self.sums)}x{self.columns}"
        return Launch(
            Kernel(name, self._ir(lanes, vectors)), (self.scratch, *self.sums), outs,
            -(-vectors // SHARE), bytes=float(self.scratch.size),
        )  # fmt: skip

    def _ir(self, lanes: int, vectors: int) -> str:
        b = kernel_builder()
        source = b.argument(0)
        outs = [b.argument(1 + n) for n in range(len(self.sums))]
        first = b.mul(b.params[1], SHARE)
        last = b.call("i64", "llvm.smin.i64", (b.mul(b.params[2], SHARE), integer(vectors)))
        with b.loop(first, last) as loop:
            column = b.mul(loop.index, lanes)
            place = b.offset(source, b.mul(column, self.dtype.size))
            mask = None
            if self.columns % lanes:
                mask = first_lanes(b, b.binary("sub", integer(self.columns), column), lanes)
            totals = self._totals(b, place, lanes, mask)
            for out, value, total in zip(outs, self.sums, totals, strict=True):
                at = b.offset(out, b.mul(column, value.dtype.size))
                if mask is None:
                    b.store(stored(b, total, value.dtype), at, value.dtype.size)
                else:
                    store_masked(b, stored(b, total, value.dtype), at, mask)
        return b.module()

    def _totals(self, b: Builder, place: Reg, lanes: int, mask: Reg | None) -> list[Reg]:
        type_ = f"<{lanes} x {'double' if self.dtype.size == 8 else 'float'}>"
        zeros = [constant(0, type_)] * len(self.sums)
        with b.loop(0, self.chunks, 1, zeros) as chunk:
            here = b.offset(place, b.mul(chunk.index, self.chunk_bytes))
            for n, total in enumerate(chunk.carried):
                at = b.offset(here, n * self.pitch)
                if mask is None:
                    value = b.load(type_, at, self.dtype.size)
                else:
                    value = load_masked(b, type_, at, mask)
                chunk.next[n] = b.binary("fadd", total, value)
        return chunk.results


def _added(b: Builder, values: list[Reg]) -> Reg:
    """Their sum, in pairs."""
    while len(values) > 1:
        pairs = [b.binary("fadd", x, y) for x, y in zip(values[::2], values[1::2], strict=False)]
        values = [*pairs, *values[len(pairs) * 2 :]]
    return values[0]
