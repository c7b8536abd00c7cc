"""A group's nodes as scalar expressions: each value at a given index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from weft.codegen.loop.expression import Buffer, Expr, Expressions
from weft.codegen.loop.index import ZERO, Index, Symbol, clamped, fixed, flat, unflat, variable
from weft.errors import CompileError
from weft.ir.dtype import DType
from weft.ir.extent import Extent, same
from weft.ir.node import Node, Value
from weft.ir.shape import known
from weft.ops.boundary.state import CONSTANT
from weft.ops.declaration import Alias, Elementwise, Pull, Reduce, op_of
from weft.passes.launch import Scratch

At = Callable[[tuple[Index, ...]], Expr]


class Buffers:
    """The memory that one kernel accesses; argument order is the order of first use."""

    def __init__(self) -> None:
        self.all: dict[Any, Buffer] = {}

    def of(self, source: Value | Scratch, dtype: DType) -> Buffer:
        """The buffer of a value, or a typed view of scratch memory."""
        found = self.all.get(source)
        if found is None:
            stride = source.size if isinstance(source, Scratch) and source.per_thread else 0
            found = Buffer(source, dtype, f"m{len(self.all)}", stride)
            self.all[source] = found
        return found


class Operand:
    """An input for shape operations' rules: call it with an index. Indices are clamped."""

    def __init__(self, trace: Trace, value: Value) -> None:
        self._trace = trace
        self._value = value
        self.shape: Final = known(value.shape)
        self.dtype: Final = value.dtype

    def __call__(self, index: Sequence[Index | int]) -> Expr:
        """The element at `index`."""
        if 0 in self.shape:
            return self._trace.b.const(0, self.dtype)
        indices = [i if isinstance(i, Index) else fixed(i) for i in index]
        safe = [clamped(i, 0, d - 1) for i, d in zip(indices, self.shape, strict=True)]
        return self._trace.at(self._value, tuple(safe))


class Trace:
    """Evaluates values of a group at indices, symbolically.

    `given` overrides values: reductions and the results of opaque nodes. Every other value is
    computed from its node if that is in the group, else loaded.
    """

    def __init__(
        self, nodes: Iterable[Node], buffers: Buffers, given: Mapping[Value, At] | None = None
    ) -> None:
        self.b: Final = Expressions()
        self.buffers: Final = buffers
        self.given: Final = dict(given or {})
        self._nodes = set(nodes)
        self._seen: dict[tuple[Value, tuple[Index, ...]], Expr] = {}

    def at(self, value: Value, index: tuple[Index, ...]) -> Expr:
        """The value's element at `index`; iterative for long chains of operations."""
        stack = [(value, index)]
        while stack:
            place = stack[-1]
            missing = [o for o in self._operands(*place) if o not in self._seen]
            if missing and place not in self._seen:
                stack.extend(reversed(missing))
                continue
            stack.pop()
            if place not in self._seen:
                self._seen[place] = self._at(*place)
        return self._seen[value, index]

    def _operands(
        self, value: Value, index: tuple[Index, ...]
    ) -> list[tuple[Value, tuple[Index, ...]]]:
        """The operands that an elementwise operation of the group reads, with their indices."""
        node = value.node
        if value in self.given or node not in self._nodes or op_of(node) is CONSTANT:
            return []
        if not isinstance(op_of(node).lower, Elementwise):
            return []
        return [(x, broadcast_index(index, known(x.shape))) for x in node.data_inputs]

    def _at(self, value: Value, index: tuple[Index, ...]) -> Expr:
        given = self.given.get(value)
        if given is not None:
            return given(index)
        if op_of(value.node) is CONSTANT:
            array: np.ndarray[Any, Any] = value.node.attrs["value"].array
            if array.size and (array.size == 1 or bool(np.all(array == array.flat[0]))):
                return self.b.const(array.flat[0], value.dtype)
        elif value.node in self._nodes:
            return self._compute(value, index)
        return self.b.load(self.buffers.of(value, value.dtype), flat(index, known(value.shape)))

    def _compute(self, value: Value, index: tuple[Index, ...]) -> Expr:
        node = value.node
        lowering = op_of(node).lower
        if isinstance(lowering, Elementwise):
            xs = [self.at(x, broadcast_index(index, known(x.shape))) for x in node.data_inputs]
            result = lowering.rule(self.b, *xs, **node.attrs)
        elif isinstance(lowering, Pull):
            operands = [Operand(self, x) for x in node.data_inputs]
            result = lowering.rule(self.b, index, *operands, **node.attrs)
        elif isinstance(lowering, Alias):
            x = node.inputs[0]
            result = self.at(x, reshaped_index(index, known(value.shape), known(x.shape)))
        else:
            kind = type(lowering).__name__
            raise CompileError(f"{node.describe()}: {kind} cannot be fused into a loop")
        if isinstance(result, tuple):
            result = result[value.index]
        if not isinstance(result, Expr) or result.dtype is not value.dtype:
            got = result.dtype if isinstance(result, Expr) else result
            raise CompileError(f"{node.describe()}: its rule gave {got}, expected {value.dtype}")
        return result


def broadcast_index(index: tuple[Index, ...], shape: tuple[int, ...]) -> tuple[Index, ...]:
    """The index of an operand of `shape` for the output element at `index`."""
    last = index[len(index) - len(shape) :]
    return tuple(ZERO if _is_spread(d, i) else i for i, d in zip(last, shape, strict=True))


def _is_spread(extent: int, index: Index) -> bool:
    """Whether an axis has one element, which is read at any index."""
    if not isinstance(extent, Extent):
        return extent == 1
    return extent.value == 1 and not same(index.high + 1, extent) and extent == 1


def reshaped_index(
    index: tuple[Index, ...], shape: tuple[int, ...], other: tuple[int, ...]
) -> tuple[Index, ...]:
    """The index in `other` of the element that has `index` in `shape`; both have one size."""
    kept = iter([i for i, d in zip(index, shape, strict=True) if not same(d, 1)])
    some, others = ([d for d in dims if not same(d, 1)] for dims in (shape, other))
    if len(some) == len(others) and all(map(same, some, others)):
        return tuple(ZERO if same(d, 1) else next(kept) for d in other)
    return unflat(flat(index, shape), other)


def axes_of(shape: Sequence[int]) -> tuple[tuple[Symbol, ...], tuple[Index, ...]]:
    """A loop variable for every axis, and the index that they form."""
    symbols = tuple(Symbol(f"i{n}", d) for n, d in enumerate(shape))
    return symbols, tuple(variable(s) for s in symbols)


def reduces(node: Node) -> bool:
    """Whether the node is a reduction."""
    return isinstance(op_of(node).lower, Reduce)


def safe_pairs(
    outputs: Iterable[Value], expressions: Iterable[Expr], at: Index
) -> tuple[tuple[Value, Value], ...]:
    """(output, input) pairs of one element size where the input is only read at index `at`."""
    same: dict[Value, bool] = {}
    for x in expressions:
        if x.op == "load" and isinstance(x.data[0].source, Value):
            source = x.data[0].source
            same[source] = same.get(source, True) and x.data[1] == at
    return tuple(
        (out, value)
        for out in outputs
        for value, fits in same.items()
        if fits and value.dtype.size == out.dtype.size and known(value.shape) == known(out.shape)
    )
