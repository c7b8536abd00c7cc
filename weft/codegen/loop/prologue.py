"""Prologues: an operand of a group's opaque node, computed as it is read.

A kernel that packs its operand, a vector of adjacent channels at a time, also computes the
elementwise steps that lead to it, so that the operand itself is never in memory:

    prologue = Prologue(group, operand)
    prologue.array                              # the array in memory instead of the operand:
                                                # of several arrays, the first one
    prologue.values                             # further arguments
    prologue.bind(builder, first_slot)
    ...
    prologue.read(pointer, column, 16, float32, None)   # `pointer` into the array; a channel

Without such steps the operand is loaded as it is. An NCHW image, `planes`, is interleaved by the
kernel itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from weft.codegen.builder import Builder, Reg, integer
from weft.codegen.contraction.emit import Load, read, subtract
from weft.codegen.loop.emit import Writer
from weft.codegen.loop.expression import Expr
from weft.codegen.loop.index import ZERO, Index, Symbol, variable
from weft.codegen.loop.lanes import Copy
from weft.codegen.loop.trace import Buffers, Trace
from weft.ir.dtype import DType
from weft.ir.node import Node, Value
from weft.ir.shape import known
from weft.ops.declaration import op_of
from weft.ops.shape.reshape import transpose
from weft.passes.group import Group
from weft.passes.launch import Argument, Scratch


class Prologue:
    """How a kernel reads one operand; `stored` is its place if a launch has computed it."""

    def __init__(self, group: Group, operand: Value, stored: Scratch | None = None) -> None:
        self.steps: Final = operand.node in group.before and stored is None
        self.planes: Final = self.steps and op_of(operand.node) is transpose
        self.dtype: Final = operand.dtype
        shape = known(operand.shape)
        self._column = Symbol("column", shape[-1])
        self._buffers = Buffers()
        steps = leading_to(operand, group.before)
        self._trace = Trace(steps, self._buffers)
        same = operand.node.inputs[0].shape if self.planes else shape
        whole = [v for n in steps for v in n.inputs if v.shape == same]
        arrays = [v for v in dict.fromkeys(whole) if v.node not in steps]
        self.array: Final[Argument] = arrays[0] if self.steps else stored or operand
        self._reads = [Symbol(f"read{n}") for n in range(len(arrays))]
        for value, symbol in zip(arrays, self._reads, strict=True):
            self._trace.given[value] = self._local(symbol, value.dtype)
        index = (*(ZERO for _ in shape[:-1]), variable(self._column))
        self._result = None if self.planes or not self.steps else self._trace.at(operand, index)
        found = [b.source for b in self._buffers.all.values() if isinstance(b.source, Value)]
        # Further arrays are addressed by their distance from the first one.
        self._arrays = arrays if len(arrays) > 1 else []
        self.values: Final = (*found, *self._arrays)

    def _local(self, symbol: Symbol, dtype: DType) -> Callable[[tuple[Index, ...]], Expr]:
        local = self._trace.b.local(symbol, dtype, (self._column,))
        return lambda _: local

    def bind(self, b: Builder, slot: int) -> None:
        """Loads the addresses of `values`, which start in argument slot `slot`."""
        self._b = b
        slots = [b.argument(slot + n) for n in range(len(self.values))]
        own = len(slots) - len(self._arrays)
        pointers = zip(self._buffers.all.values(), slots[:own], strict=True)
        self._pointers = dict(pointers)
        self._bases = slots[own:]

    def whole(self) -> tuple[Reg | None, Load | None]:
        """How many channels to copy of each position and how to load them, if there are steps."""
        if not self.steps:
            return None, None

        def load(place: Reg, index: Reg, lanes: int, to: DType, mask: Reg | None) -> Reg:
            return self.read(place, index, lanes, to, mask)

        return integer(self._column.extent), load

    def read(self, pointer: Reg, column: Reg, lanes: int, to: DType, mask: Reg | None) -> Reg:
        """Reads the operand's elements from `pointer` on: `lanes` channels from `column` on.

        Lanes that are not in `mask` are undefined, or zero if there are no steps.
        """
        b = self._b
        if self._result is None:
            return read(b, pointer, lanes, self.dtype, to, mask)
        places = [pointer]
        if self._bases:
            here, first = (b.emit("i64", f"ptrtoint {p} to i64") for p in (pointer, self._bases[0]))
            places += [b.offset(base, subtract(b, here, first)) for base in self._bases[1:]]
        writer, copy = Writer(b, self._pointers), Copy(lanes, mask=mask)
        writer.bound[self._column] = column
        for symbol, place in zip(self._reads, places, strict=True):
            loaded = read(b, place, lanes, self.dtype, to, mask)
            copy.locals[symbol] = writer.uniform.locals[symbol] = loaded
        if lanes > 1:
            writer.axis = self._column
            writer.lanewise.update((self._column, *self._reads))
        return writer.wide(self._result, copy)


def leading_to(operand: Value, nodes: Sequence[Node]) -> dict[Node, None]:
    """The nodes that compute an operand, in order."""
    wanted = {operand.node}
    for node in reversed(nodes):
        if node in wanted:
            wanted.update(v.node for v in node.inputs)
    return {node: None for node in nodes if node in wanted}
