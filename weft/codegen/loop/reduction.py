"""The computation of a group with reductions, by level, before it is cut into loops.

Level 0 depends on no reduction; a reduction of values of level n is available from level n + 1 on.
Each level is one pass over the data. Half precision accumulates in float32.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, cast

from weft.codegen.loop.arithmetic import identity
from weft.codegen.loop.domain import merged_axes, same_shape, symbols_of
from weft.codegen.loop.expression import Expr, roots_of
from weft.codegen.loop.index import ZERO, Index, Symbol, flat, substituted
from weft.codegen.loop.order import extent_of
from weft.codegen.loop.trace import At, Buffers, Trace, axes_of, reshaped_index
from weft.codegen.loop.tree import Accumulate, Store
from weft.errors import CompileError
from weft.ir import dtype as types
from weft.ir.dtype import DType
from weft.ir.extent import same
from weft.ir.node import Node, Value
from weft.ir.shape import known, normal_axes, show, size
from weft.ops.declaration import Reduce, op_of
from weft.passes.group import Group
from weft.passes.launch import Scratch


def reductions(group: Group) -> list[Node]:
    """The reductions of a group."""
    return [node for node in group.nodes if isinstance(op_of(node).lower, Reduce)]


def sum_type(dtype: DType) -> DType:
    """The type in which a reduction is accumulated."""
    return types.float32 if dtype.is_floating and dtype.size == 2 else dtype


def combiner(node: Node) -> str:
    """The combining operation: `add | multiply | minimum | maximum`."""
    return cast(Reduce, op_of(node).lower).combine


class Reduction:
    """The geometry of a group with reductions: its domain, and which axes are reduced."""

    def __init__(self, group: Group) -> None:
        self.group: Final = group
        self.nodes: Final = reductions(group)
        first = self.nodes[0]
        self.domain: Final = known(first.inputs[0].shape)
        rank = len(self.domain)
        self.axes: Final = normal_axes(first.attrs["axes"], rank)
        self.kept_axes: Final = tuple(a for a in range(rank) if a not in self.axes)
        self.kept: Final = tuple(self.domain[a] for a in self.kept_axes)
        for node in self.nodes:
            alike = normal_axes(node.attrs["axes"], rank) == self.axes
            if not (alike and same_shape(known(node.inputs[0].shape), self.domain)):
                raise CompileError(f"{node.describe()}: reduces other axes than {first.describe()}")
        shapes = [known(v.shape) for v in group.outputs]
        alike = [same_shape(s, self.domain) for s in shapes]
        self.full = [v for v, full in zip(group.outputs, alike, strict=True) if full]
        self.small: Final = [v for v in group.outputs if v not in self.full]
        for v in self.small:
            if size(v.shape) != size(self.kept):
                raise CompileError(
                    f"{v.node.describe()}: expected the shape {show(self.domain)} or what a "
                    f"reduction leaves of it, got {show(v.shape)}"
                )

    def of_kept(self, index: Sequence[Index], shape: Sequence[int]) -> tuple[Index, ...]:
        """The index in `shape` (reduced axes kept as 1 or dropped) for the kept `index`."""
        return reshaped_index(tuple(index), self.kept, tuple(shape))

    def to_kept(self, index: Sequence[Index], shape: Sequence[int]) -> tuple[Index, ...]:
        """The inverse: an index over the kept axes from one in a reduced value's shape."""
        return reshaped_index(tuple(index), tuple(shape), self.kept)

    def given(self, at: Callable[[Node, tuple[Index, ...]], Expr]) -> dict[Value, At]:
        """`at` as overrides for a trace."""

        def rule(node: Node) -> At:
            shape = known(node.types[0].shape)
            return lambda index: at(node, self.to_kept(index, shape))

        return {node.outputs[0]: rule(node) for node in self.nodes}


class Levels:
    """A group's work with loop variables for the domain's axes, collapsed where possible."""

    def __init__(self, reduction: Reduction, done: Mapping[Node, Scratch] | None = None) -> None:
        self.reduction: Final = reduction
        self.done: Final = dict(done or {})
        self.buffers: Final = Buffers()
        symbols, index = axes_of(reduction.domain)
        kept_index = tuple(index[a] for a in reduction.kept_axes)
        kept_symbols = tuple(symbols[a] for a in reduction.kept_axes)
        self.symbol_of: Final = {n: Symbol(f"r{i}") for i, n in enumerate(reduction.nodes)}
        self.trace: Final = Trace(reduction.group.nodes, self.buffers)
        self._kept_index = kept_index
        self._kept_symbols = kept_symbols
        self.trace.given.update(reduction.given(self._local))
        self.sums: list[Accumulate] = [
            self._sum(node, index) for node in reduction.nodes if node not in self.done
        ]
        self.full: list[Store] = [
            Store(
                self.buffers.of(v, v.dtype), flat(index, reduction.domain), self.trace.at(v, index)
            )
            for v in reduction.full
        ]
        self.small: list[Store] = []
        for v in reduction.small:
            shape = known(v.shape)
            place = reduction.of_kept(kept_index, shape)
            value = self.trace.at(v, place)
            self.small.append(Store(self.buffers.of(v, v.dtype), flat(place, shape), value))
        self.kept_stores: dict[int, list[Store]] = {}  # scratch rows, by pass
        self.row: Symbol | None = None
        self.kept: list[Symbol] = []
        self.reduced: list[Symbol] = []
        self.inner: list[Symbol] = []  # the last run of adjacent reduced axes
        self.outer: list[Symbol] = []  # the other reduced axes
        self.order: list[Symbol] = []
        self._joined: dict[tuple[Symbol, ...], Symbol] = {}
        self.kept_flat = flat(kept_index, reduction.kept)
        self._merge(symbols)

    def _local(self, node: Node, index: tuple[Index, ...]) -> Expr:
        if node in self.done:
            return loaded_sum(self.trace, node, self.done[node], flat(index, self.reduction.kept))
        expected = [
            ZERO if same(d, 1) else i
            for i, d in zip(self._kept_index, self.reduction.kept, strict=True)
        ]
        if list(index) != expected:
            raise CompileError(f"{node.describe()}: is read at another row than the one it reduces")
        b = self.trace.b
        dtype = node.types[0].dtype
        local = b.local(self.symbol_of[node], sum_type(dtype), self._kept_symbols)
        return b.cast(local, dtype)

    def _sum(self, node: Node, index: tuple[Index, ...]) -> Accumulate:
        dtype = sum_type(node.types[0].dtype)
        value = self.trace.b.cast(self.trace.at(node.inputs[0], index), dtype)
        return Accumulate(self.symbol_of[node], combiner(node), dtype, value)

    def _merge(self, symbols: Sequence[Symbol]) -> None:
        values = [s.value for s in (*self.sums, *self.full, *self.small)]
        places = [s.offset for s in (*self.full, *self.small)]
        groups = [a in self.reduction.axes for a in range(len(symbols))]
        indices = [*roots_of(values), *places, self.kept_flat]
        new = merged_axes(symbols, groups, indices, _single(symbols, groups))
        self.rename(new)
        self.kept_flat = substituted(self.kept_flat, new, lambda x: x)
        self.order, became = symbols_of(symbols, new)
        reduced = {became[symbols[a]] for a in self.reduction.axes if symbols[a] in became}
        self.reduced = [s for s in self.order if s in reduced]
        self.kept = [s for s in self.order if s not in reduced]
        last = max(self.order.index(s) for s in self.reduced)
        first = last
        while first and self.order[first - 1] in reduced:
            first -= 1
        self.inner = self.order[first : last + 1]
        self.outer = [s for s in self.order[:first] if s in reduced]

    def one_for(self, symbols: Sequence[Symbol]) -> Symbol:
        """One loop variable for several; the same in every pass, as are expressions with it."""
        key = tuple(symbols)
        if key not in self._joined:
            self._joined[key] = Symbol("".join([s.name for s in key]), extent_of(key))
        return self._joined[key]

    @property
    def is_rows(self) -> bool:
        """Whether the last axis is reduced."""
        return self.order[-1] in self.inner

    def rename(self, new: Mapping[Symbol, Index], other: Mapping[Expr, Expr] | None = None) -> None:
        """Replaces loop variables everywhere."""
        parts = (*self.sums, *self.full, *self.small)
        values = iter(self.trace.b.substitute([p.value for p in parts], new, other))

        def store(s: Store) -> Store:
            return Store(s.buffer, substituted(s.offset, new, lambda x: x), next(values))

        self.sums = [Accumulate(s.result, s.op, s.dtype, next(values)) for s in self.sums]
        self.full = [store(s) for s in self.full]
        self.small = [store(s) for s in self.small]
        self.kept_flat = substituted(self.kept_flat, new, lambda x: x)

    @property
    def count(self) -> int:
        """Number of passes."""
        return 1 + max([self.level(p.value) for p in (*self.sums, *self.full)], default=0)

    def at(self, n: int) -> tuple[list[Accumulate], list[Store]]:
        """What pass `n` accumulates and stores."""
        sums = [s for s in self.sums if self.level(s.value) == n]
        full = [s for s in self.full if self.level(s.value) == n]
        return sums, [*full, *self.kept_stores.get(n, [])]

    def keep(self, n: int, x: Expr, store: Store) -> None:
        """Stores `x` in pass `n`, and loads it in the passes after that."""
        parts = [p for m in range(n + 1, self.count) for part in self.at(m) for p in part]
        loaded = self.trace.b.load(store.buffer, store.offset)
        values = self.trace.b.substitute(
            [p.value for p in parts], {}, {x: self.trace.b.cast(loaded, x.dtype)}
        )
        new = dict(zip(parts, values, strict=True))
        self.sums = [replace(s, value=new.get(s, s.value)) for s in self.sums]
        self.full = [replace(s, value=new.get(s, s.value)) for s in self.full]
        self.kept_stores.setdefault(n, []).append(store)

    def level(self, x: Expr) -> int:
        """The first pass in which `x` is available."""
        of = {s.result: s for s in self.sums}
        return max((self.level(of[s].value) + 1 for s in x.symbols if s in of), default=0)


def _single(symbols: Sequence[Symbol], reduced: Sequence[bool]) -> set[Symbol]:
    """Axes of one element that would be between, or after, runs of reduced axes.

    Without them the order is another one, so there is a guard.
    """
    pairs = zip(symbols, reduced, strict=True)
    runs = [[s for s, _ in run] for _, run in itertools.groupby(pairs, lambda pair: pair[1])]
    kinds = [kind for kind, _ in itertools.groupby(reduced)]
    found: set[Symbol] = set()
    for n in range(len(runs) - 1, 0, -1):
        last = not any(kinds[n + 1 :])
        if (not kinds[n] or last) and any(kinds[:n]) and extent_of(runs[n]) == 1:
            found.update(runs[n])
            kinds[n] = False
    return found


def loaded_sum(trace: Trace, node: Node, memory: Scratch, at: Index) -> Expr:
    """A finished reduction, loaded from scratch memory."""
    dtype = node.types[0].dtype
    return trace.b.cast(trace.b.load(trace.buffers.of(memory, sum_type(dtype)), at), dtype)


def empty_given(reduction: Reduction, trace: Trace) -> dict[Value, At]:
    """Empty reductions: their identity elements."""

    def at(node: Node, _: tuple[Index, ...]) -> Expr:
        dtype = node.types[0].dtype
        return trace.b.const(identity(combiner(node), dtype), dtype)

    return reduction.given(at)
