"""The kernel of a scalar loop, whose values stay in registers and on the stack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.codegen.builder import Reg, integer, kernel_builder
from weft.codegen.loop.convert import loaded, storage_type, stored
from weft.codegen.loop.emit import Writer
from weft.codegen.loop.expression import Expr
from weft.codegen.loop.index import ZERO, Symbol
from weft.codegen.loop.trace import Buffers, Trace
from weft.ir.function import Function
from weft.ir.node import Value
from weft.ir.shape import known
from weft.passes.launch import Argument, Kernel, Launch, ScalarLoop

SLICE: Final = 1 << 22
"""Iterations after which the kernel returns: some 10 ms."""


def scalar_kernel(loop: ScalarLoop) -> Launch:
    """The launch that does up to `SLICE` iterations, continuing after those that are done."""
    args: tuple[Argument, ...] = (*loop.node.outputs, *loop.arrays, loop.done, loop.going)
    outputs = len(loop.node.outputs)
    writes = (*range(outputs), len(args) - 2, len(args) - 1)
    name = f"{loop.node.op}_of_numbers"
    iterations = loop.most if loop.most >= 0 else 1
    flops = float(len(loop.body.nodes) * iterations)
    return Launch(Kernel(name, _Kernel(loop).text()), args, writes, flops=flops)


class _Kernel:
    """Carried numbers are on the stack; captured ones are loaded once."""

    def __init__(self, loop: ScalarLoop) -> None:
        self.loop = loop
        self.f = kernel_builder()
        outputs = len(loop.node.outputs)
        count = outputs + len(loop.arrays)
        pointers = [self.f.argument(i) for i in range(count + 2)]
        self.homes, self.stacks = pointers[: loop.carried], pointers[loop.carried : outputs]
        self.rows = pointers[outputs : outputs + loop.mapped]
        self.fixed = pointers[outputs + loop.mapped : count]
        self.done, self.going = pointers[count:]
        self.writer = Writer(self.f, {})

    def text(self) -> str:
        """The module."""
        f, loop = self.f, self.loop
        inputs = loop.body.inputs
        places = [self._stacked(v, p) for v, p in zip(inputs, self.homes, strict=False)]
        first = f.load("i64", self.done)
        iteration = f.emit("ptr", "alloca i64")
        f.store(first, iteration)
        last = f.add(first, SLICE)
        captured = inputs[loop.carried + loop.mapped :]
        fixed = [self._load(v, p) for v, p in zip(captured, self.fixed, strict=True)]
        head, body, left, over, out = map(f.label, ("head", "body", "left", "over", "out"))
        f.jump(head)
        f.start(head)
        now = f.load("i64", iteration)
        f.branch(f.compare("icmp ult", now, integer(loop.most)), left, over)
        f.start(left)
        carried = [self._load(v, p) for v, p in zip(inputs, places, strict=False)]
        if loop.condition is not None:
            (holds,) = self._values(loop.condition, [*carried, *fixed])
            more = f.label("more")
            f.branch(holds, more, over)
            f.start(more)
        f.branch(f.compare("icmp ult", now, last), body, out)
        f.start(body)
        self._turn(now, carried, fixed, places)
        f.store(f.add(now, 1), iteration)
        f.jump(head)
        end = f.label("end")
        for label, going in ((over, 0), (out, 1)):
            f.start(label)
            f.store(Reg("i8", str(going)), self.going)
            f.jump(end)
        f.start(end)
        self._leave(iteration, places)
        return f.module()

    def _stacked(self, value: Value, pointer: Reg) -> Reg:
        """A stack slot for a carried number, holding its initial value."""
        type_ = storage_type(value.dtype)
        place = self.f.emit("ptr", f"alloca {type_}")
        self.f.store(self.f.load(type_, pointer), place)
        return place

    def _load(self, value: Value, pointer: Reg) -> Reg:
        return loaded(self.f, self.f.load(storage_type(value.dtype), pointer), value.dtype)

    def _turn(
        self, now: Reg, carried: Sequence[Reg], fixed: Sequence[Reg], places: Sequence[Reg]
    ) -> None:
        f, loop = self.f, self.loop
        body = loop.body
        index = f.binary("sub", integer(loop.most - 1), now) if loop.reverse else now
        rows = [
            self._load(v, f.offset(p, index, storage_type(v.dtype)))
            for v, p in zip(body.inputs[loop.carried :], self.rows, strict=False)
        ]
        found = self._values(body, [*carried, *rows, *fixed])
        targets = [*places, *[
            f.offset(p, index, storage_type(v.dtype))
            for v, p in zip(body.outputs[loop.carried :], self.stacks, strict=True)
        ]]  # fmt: skip
        for value, register, target in zip(body.outputs, found, targets, strict=True):
            f.store(stored(f, register, value.dtype), target)

    def _values(self, function: Function, registers: Sequence[Reg]) -> list[Reg]:
        """The results of a function on registers."""
        trace = Trace(function.nodes, Buffers())
        with self.writer.scope():
            for i, (value, register) in enumerate(zip(function.inputs, registers, strict=True)):
                symbol = Symbol(f"x{i}")
                local = trace.b.local(symbol, value.dtype)
                trace.given[value] = lambda _, local=local: local
                self.writer.bound[symbol] = register
            roots: list[Expr] = [
                trace.at(v, (ZERO,) * len(known(v.shape))) for v in function.outputs
            ]
            return [self.writer.wide(x, self.writer.uniform) for x in roots]

    def _leave(self, iteration: Reg, places: Sequence[Reg]) -> None:
        f = self.f
        f.store(f.load("i64", iteration), self.done)
        for value, place, home in zip(self.loop.body.inputs, places, self.homes, strict=False):
            f.store(f.load(storage_type(value.dtype), place), home)
