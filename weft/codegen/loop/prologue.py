"""Prologues: an operand of a group's opaque node, computed as it is read.

A kernel that copies its operand, a vector of neighbouring channels at a time, takes the elementwise
steps that lead to it on the way, so that the operand itself is never in memory:

    prologue = Prologue(group, operand)
    prologue.array                              # what stands in memory in place of the operand
    prologue.values                             # further arguments
    prologue.bind(builder, first_slot)
    ...
    prologue.read(pointer, column, 16, float32, None)   # `pointer` into the array; a channel

Where nothing leads to the operand it is loaded as it is. Or it is moved: an image that lies NCHW,
`planes`, is put side by side by the kernel itself.
"""

from __future__ import annotations

from typing import Final

from weft.codegen.builder import Builder, Reg, integer
from weft.codegen.contraction.emit import Load, read
from weft.codegen.kernel import Argument, Scratch
from weft.codegen.loop.emit import Copy, Writer
from weft.codegen.loop.index import ZERO, Symbol, variable
from weft.codegen.loop.trace import Buffers, Trace
from weft.ir.dtype import DType
from weft.ir.node import Value
from weft.ir.shape import known
from weft.passes.group import Group


class Prologue:
    """How a kernel reads one operand; `stored` is where it lies if a pass has computed it."""

    def __init__(self, group: Group, operand: Value, stored: Scratch | None = None) -> None:
        self.steps: Final = operand.node in group.before and stored is None
        self.planes: Final = self.steps and operand.node.op == "transpose"
        self.dtype: Final = operand.dtype
        shape = known(operand.shape)
        self._column = Symbol("column", shape[-1])
        self._buffers = Buffers()
        self._trace = Trace(group.before, self._buffers)
        same = operand.node.inputs[0].shape if self.planes else shape
        whole = [v for n in group.before for v in n.inputs if v.shape == same]
        arrays = [v for v in dict.fromkeys(whole) if v.node not in group.before]
        self.array: Final[Argument] = arrays[0] if self.steps else stored or operand
        self._read = Symbol("read")
        local = self._trace.b.local(self._read, operand.dtype, (self._column,))
        for value in arrays[:1]:
            self._trace.given[value] = lambda _: local
        index = (*(ZERO for _ in shape[:-1]), variable(self._column))
        self._result = None if self.planes or not self.steps else self._trace.at(operand, index)
        found = [b.source for b in self._buffers.all.values() if isinstance(b.source, Value)]
        self.values: Final = tuple(found)

    def bind(self, b: Builder, slot: int) -> None:
        """Load the addresses of `values`, which start in argument slot `slot`."""
        self._b = b
        slots = {v: b.argument(slot + n) for n, v in enumerate(self.values)}
        self._pointers = {x: slots[v] for v, x in self._buffers.all.items()}

    def whole(self) -> tuple[Reg | None, Load | None]:
        """How many channels to copy of each position and what loads them, if there are steps."""
        if not self.steps:
            return None, None

        def load(place: Reg, index: Reg, lanes: int, to: DType, mask: Reg | None) -> Reg:
            return self.read(place, index, lanes, to, mask)

        return integer(self._column.extent), load

    def read(self, pointer: Reg, column: Reg, lanes: int, to: DType, mask: Reg | None) -> Reg:
        """The operand's elements from `pointer` on: `lanes` channels from `column` on.

        Those that are not in `mask` are anything, zero where there are no steps.
        """
        b = self._b
        loaded = read(b, pointer, lanes, self.dtype, to, mask)
        if self._result is None:
            return loaded
        writer, copy = Writer(b, self._pointers), Copy(lanes, mask=mask)
        writer.bound[self._column] = column
        copy.locals[self._read] = writer.uniform.locals[self._read] = loaded
        if lanes > 1:
            writer.axis = self._column
            writer.lanewise.update((self._column, self._read))
        return writer.wide(self._result, copy)
