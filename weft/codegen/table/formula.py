"""Formulas of graph values on registers: the rules of optimizers, the first content of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from weft.codegen.builder import Reg
from weft.codegen.loop.emit import Writer
from weft.codegen.loop.expression import Expr
from weft.codegen.loop.index import Index, Symbol
from weft.codegen.loop.lanes import Copy
from weft.codegen.loop.trace import Buffers, Trace
from weft.codegen.procedure import Procedure
from weft.ir.dtype import DType
from weft.ir.function import Function
from weft.ir.node import Value


class Formula:
    """A function of numbers, written for as many lanes as its inputs have.

    Args:
        given: values that are not computed but inputs, such as random bits.
        fixed: the registers of inputs that are the same in all lanes; the others follow by lane.
    """

    def __init__(
        self, f: Procedure, function: Function, given: Sequence[Value], fixed: Mapping[Value, Reg]
    ) -> None:
        self._writer = Writer(f, {})
        trace = Trace(function.nodes, Buffers())
        self._symbols: list[Symbol] = []
        for number, value in enumerate(given):
            symbol = Symbol(f"x{number}")
            self._symbols.append(symbol)
            trace.given[value] = _constantly(trace.b.local(symbol, value.dtype))
        self._writer.lanewise |= set(self._symbols)
        for number, (value, register) in enumerate(fixed.items()):
            symbol = Symbol(f"r{number}")
            trace.given[value] = _constantly(trace.b.local(symbol, value.dtype))
            self._writer.bound[symbol] = register
        self._roots = [trace.at(value, ()) for value in function.outputs]

    def hoist(self, lanes: int) -> None:
        """Writes what is the same in all lanes, here, for all that follows."""
        self._writer.hoist(self._roots, lanes)

    def __call__(self, registers: Sequence[Reg], lanes: int) -> list[Reg]:
        """The results, for inputs in the order of `given`."""
        writer, copy = self._writer, Copy(lanes)
        copy.locals.update(zip(self._symbols, registers, strict=True))
        writer.copies = [copy]
        with writer.scope():
            return [writer.wide(root, copy) for root in self._roots]


def _constantly(x: Expr) -> Callable[[tuple[Index, ...]], Expr]:
    return lambda _: x


def pieces(width: int, lanes: int) -> list[tuple[int, int]]:
    """Vectors that cover a row: where each begins, and its lanes; shorter ones at the end."""
    found: list[tuple[int, int]] = []
    at = 0
    while at < width:
        while lanes > width - at:
            lanes //= 2
        found.append((at, lanes))
        at += lanes
    return found


def lanes_for(vector_bits: int, dtype: DType) -> int:
    """Elements in a vector."""
    return max(1, vector_bits // (8 * dtype.size))
