"""Epilogues: the elementwise tail of a group whose first node is a matmul, convolution, ...

A kernel family that holds results of the opaque node in registers stores them through an
`Epilogue`, which computes the group's other nodes there and then:

    epilogue = Epilogue(group, builder)
    slots = {value: builder.argument(n) for n, value in enumerate(epilogue.values, first_slot)}
    epilogue.bind(slots)                          # addresses of everything that it reads and writes
    ...
    epilogue.reset()                              # at the start of each basic block that stores
    epilogue.store((row, column), accumulator, lanes=16)            # 16 adjacent elements of a row
    epilogue.store((row, column), accumulator, lanes=16, mask=m)    # those with m set

`values` are the group's inputs that the epilogue itself reads (bias, residual, weights, optimizer
state), then all outputs: the arguments of a launch in addition to the opaque node's own inputs. An
index has one scalar `i64` register or `int` per axis of the opaque node's output; the lanes go
along its last axis. The accumulator is `float` for half-precision and float32 results, else the
register type of the result. What does not depend on the element (a bias row, a splat scalar) is
loaded once between two resets. `inplace` lists (output, input) pairs that may share memory,
provided that the kernel stores every element once.

A kernel that indexes the output in another shape, such as matrices with all leading axes collapsed,
passes it as `view`; `index` is then an index into that. If the opaque
node has several outputs, the group has no epilogue: pass `output` and make one for each.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from weft.codegen.builder import Builder, Reg, integer
from weft.codegen.loop.convert import register_type
from weft.codegen.loop.emit import Writer
from weft.codegen.loop.expression import Expr, cost
from weft.codegen.loop.index import Symbol, flat, unflat
from weft.codegen.loop.lanes import Copy
from weft.codegen.loop.trace import Buffers, Trace, axes_of, safe_pairs
from weft.errors import CompileError
from weft.ir.extent import same
from weft.ir.node import Value
from weft.ir.shape import known
from weft.passes.group import Group

Store = dict[tuple[object, ...], Reg]


class _Placed(Copy):
    """A copy whose registers are found again wherever they were made from equal indices."""

    def __init__(
        self, store: Store, nodes: list[Expr], at: dict[Symbol, str], lanes: int, mask: Reg | None
    ) -> None:
        super().__init__(lanes, mask=mask)
        self._store = store
        self._nodes = nodes
        self._at = at
        self._wheres: dict[frozenset[Symbol], tuple[object, ...]] = {}
        self._everywhere = frozenset(at)

    def _key(self, key: int | str) -> tuple[object, ...]:
        of = self._nodes[key].symbols if isinstance(key, int) else self._everywhere
        where = self._wheres.get(of)
        if where is None:
            places = sorted([(s.name, self._at[s]) for s in of])
            where = self._wheres[of] = (self.lanes, self.mask, *places)
        return key, where

    def find(self, key: int | str) -> Reg | None:
        return self._store.get(self._key(key))

    def keep(self, key: int | str, value: Reg) -> Reg:
        self._store[self._key(key)] = value
        return value


class Epilogue:
    """Stores results of a group's opaque node through the group's other nodes."""

    def __init__(
        self,
        group: Group,
        builder: Builder,
        output: int = 0,
        view: tuple[int, ...] | None = None,
    ) -> None:
        result = group.nodes[0].outputs[output]
        several = len(group.nodes[0].outputs) > 1
        outputs = tuple(v for v in group.outputs if not several or v is result)
        shape = known(result.shape)
        for value in outputs:
            if known(value.shape) != shape:
                raise CompileError(
                    f"{value.node.describe()}: expected an epilogue of shape {shape}, "
                    f"got {known(value.shape)}"
                )
        self._builder = builder
        self._dtype = result.dtype
        self._axes, place = axes_of(view or shape)
        index = place if view is None else unflat(flat(place, view), shape)
        self._result = Symbol("result")
        self._buffers = Buffers()
        self._trace = Trace(group.nodes, self._buffers)
        local = self._trace.b.local(self._result, result.dtype, self._axes)
        self._trace.given[result] = lambda _: local
        self._at = flat(place, view or shape)
        self._stores = [(v, self._trace.at(v, index)) for v in outputs]
        reads = [b.source for b in self._buffers.all.values() if isinstance(b.source, Value)]
        self.values: Final = tuple(dict.fromkeys([*reads, *outputs]))
        self.writes: Final = outputs
        self.inplace: Final = safe_pairs(outputs, self._trace.b.nodes, self._at)
        # Estimated cycles per vector.
        self.cost: Final = cost([x for _, x in self._stores])
        self._pointers = {self._buffers.of(v, v.dtype): Reg("ptr", "") for v in self.values}
        self._known: Store = {}

    def bind(self, slots: Mapping[Value, Reg]) -> None:
        """Sets the addresses of all `values`."""
        for buffer in self._pointers:
            assert isinstance(buffer.source, Value)
            self._pointers[buffer] = slots[buffer.source]
        self.reset()

    def reset(self) -> None:
        """Forgets registers; call it in every new basic block before storing."""
        self._known = {}

    def store(
        self,
        index: Sequence[Reg | int],
        value: Reg,
        lanes: int = 1,
        mask: Reg | None = None,
        streamed: Collection[Value] = (),
    ) -> None:
        """Stores the outputs for `lanes` results of the opaque node from `index` on.

        Those in `streamed` are stored non-temporally: their addresses are multiples of a vector's
        size.

        Raises:
            CompileError: the register is not of the type that the result has.
        """
        expected = register_type(self._dtype, lanes)
        if value.type != expected:
            raise CompileError(f"epilogue: expected {expected}, got {value}")
        if lanes > 1 and same(self._axes[-1].extent, 1):  # the only column; masks hold others
            one = register_type(self._dtype)
            value, lanes, mask = self._builder.emit(one, f"extractelement {value}, i64 0"), 1, None
        writer = Writer(self._builder, self._pointers)
        for symbol, i in zip(self._axes, index, strict=True):
            writer.bound[symbol] = integer(i) if isinstance(i, int) else i
        texts = {s: r.text for s, r in writer.bound.items()}
        texts[self._result] = value.text
        nodes = self._trace.b.nodes
        writer.uniform = _Placed(self._known, nodes, texts, 1, None)
        copy = _Placed(self._known, nodes, texts, lanes, mask)
        copy.locals[self._result] = writer.uniform.locals[self._result] = value
        if lanes > 1:
            writer.axis = self._axes[-1]
            writer.lanewise.update((self._axes[-1], self._result))
        for _, x in self._stores:
            writer.wide(x, copy)  # values first: a store may overwrite what another one reads
        for output, x in self._stores:
            past = output in streamed
            writer.store(self._buffers.of(output, output.dtype), self._at, x, copy, past)
