"""Bodies of branches and loops: built in the graph, then converted to functions.

While a body is built, its operations are added to the graph, with names, scopes and variables as
usual. Those that its results need become a function; the others are never run. Variables that it
assigns are passed in and out as values, so effects keep program order: an assignment happens in
each iteration that runs it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from weft import ops
from weft.documentation import Reads
from weft.errors import GraphError
from weft.ir.dtype import uint64
from weft.ir.graph import current_graph, toposort
from weft.ir.node import Node, TensorType, Value
from weft.ir.shape import Shape, is_static, size
from weft.ops.boundary import state
from weft.ops.call import Subgraph, inline, trace
from weft.ops.declaration import op_of
from weft.ops.effect import is_host
from weft.tf1.framework.graph import Graph
from weft.tf1.framework.tensor import Tensor

SMALL: Final = 64  # a constant of up to this many integers is copied into a body
ITERATION_STRIDE: Final = np.uint64(0x9E3779B97F4A7C15)
"""Distance between the random counters of two iterations: 2**64 over the golden ratio."""


@contextlib.contextmanager
def inside(graph: Graph) -> Iterator[None]:
    """Operations built inside belong to a body, which reads variables anew."""
    with graph.body(), graph.control_dependencies(None):
        yield


def stand_in(graph: Graph, kind: TensorType, name: str) -> Tensor:
    """An argument of a body."""
    return graph.emit(
        "Placeholder", (), "placeholder", name=name, dtype=kind.dtype, shape=kind.shape
    ).outputs[0]


def of_any_shape(value: Value, shape: Shape) -> Value:
    """The value with a less specific static shape, in the graph being built."""
    if value.shape == shape:
        return value
    kind = TensorType(value.dtype, shape)
    return current_graph().add("identity", (value,), {}, (kind,)).outputs[0]


class Region:
    """A finished body with results `outputs`.

    Args:
        first: the number of nodes that the graph had before.
        arguments: the placeholders of the body's arguments.
    """

    def __init__(
        self, graph: Graph, first: int, arguments: Sequence[Value], outputs: Sequence[Value]
    ) -> None:
        self.graph = graph
        self.first = first
        self.arguments = tuple(arguments)
        self.outputs = tuple(outputs)
        own = [n for n in graph.ir.nodes[first:] if op_of(n) not in _OUTSIDE]
        self._span = frozenset(own)
        roots = [v.node for v in outputs if v.node in self._span]
        self._order = toposort(graph.ir, roots, self._before)

    nodes = Reads[Sequence[Node]]("_order", "The nodes that its results need, in order.")

    def part(self, places: Sequence[int], outputs: Sequence[Value]) -> Region:
        """The same body restricted to some arguments and to results that need only these."""
        arguments = [self.arguments[i] for i in places]
        return Region(self.graph, self.first, arguments, outputs)

    def _before(self, node: Node) -> list[Node]:
        return [p for p in self.graph.ir.predecessors(node) if p in self._span]

    @property
    def assigned(self) -> tuple[Value, ...]:
        """Handles of the variables that it assigns."""
        return tuple(dict.fromkeys(n.inputs[0] for n in self._order if op_of(n) is state.assign))

    @property
    def read(self) -> tuple[Value, ...]:
        """Handles of the variables that it reads."""
        return tuple(dict.fromkeys(n.inputs[0] for n in self._order if op_of(n) is state.read))

    @property
    def captured(self) -> tuple[Value, ...]:
        """Other values that it captures."""
        used = [v for n in self._order if op_of(n) not in _STATE for v in n.inputs]
        used += [n.inputs[1] for n in self._order if op_of(n) is state.assign]
        found = dict.fromkeys((*used, *self.outputs))
        return tuple([v for v in found if self._is_outside(v)])

    def _is_outside(self, value: Value) -> bool:
        return (
            value.node not in self._span and not _is_copied(value) and value not in self.arguments
        )

    @property
    def draws(self) -> bool:
        """Whether it draws random numbers."""
        return any([op_of(v.node) is state.counter for v in self.captured])

    def _refuse_host(self) -> None:
        """Raise if it has a queue, a reader, texts, or Python that is called between programs."""
        found = [n for n in self._order if is_host(n)]
        found += [v.node for v in (*self.arguments, *self.outputs) if v.dtype.is_hosted]
        if found:
            title = found[0].attrs.get("title", found[0].op)
            raise GraphError(_REASON.format(title, found[0].describe()))

    def function(
        self, assigned: Sequence[Value], captured: Sequence[Value],
        read: Sequence[tuple[Value, Value]], iteration: bool = False,
    ) -> Subgraph:  # fmt: skip
        """The body as a function of arguments, variables, iteration if any, and captured values.

        It returns its results, then the variables.

        Args:
            assigned: handles of the variables.
            captured: captured values of all bodies of the operation.
            read: handles of variables that no body assigns, with their values outside.
        """
        self._refuse_host()
        handles = [h.type for h in assigned]
        values = [*captured, *[v for _, v in read]]
        counter = [TensorType(uint64, ())] if iteration else []
        types = [*[v.type for v in self.arguments], *handles, *counter, *[v.type for v in values]]

        def run(*xs: Value) -> list[Value]:
            rest = iter(xs)
            env = {v: next(rest) for v in self.arguments}
            now = {h: next(rest) for h in assigned}
            shift = next(rest) if iteration else None
            env |= {v: _shifted(v, next(rest), shift) for v in captured}
            fixed = {h: next(rest) for h, _ in read}
            return _Walk(self._before, env, now, fixed).run(self._order, self.outputs, assigned)

        return trace(run, types)


_REASON: Final = (
    "expected what a program computes in a branch or a loop, got {} ({}), which runs on the host, "
    "between programs; compute it before, and choose among its results"
)
_OUTSIDE: Final = frozenset({state.variable, state.counter, state.placeholder})
_STATE: Final = frozenset({state.read, state.assign})


def _is_copied(value: Value) -> bool:
    """Whether a body copies a constant from outside: a small one that has no gradient."""
    constant = op_of(value.node) is state.CONSTANT and not value.dtype.is_inexact
    return constant and is_static(value.shape) and size(value.shape) <= SMALL


def _shifted(outer: Value, value: Value, shift: Value | None) -> Value:
    """A random counter for this iteration; other values unchanged."""
    drawn = shift is not None and op_of(outer.node) is state.counter
    return value + shift if drawn else value


class _Walk:
    """One traversal of a body, in which variables are values."""

    def __init__(
        self, before: Callable[[Node], list[Node]], env: dict[Value, Value],
        now: dict[Value, Value], fixed: dict[Value, Value],
    ) -> None:  # fmt: skip
        self.before = before
        self.env = env
        self.now = now
        self.fixed = fixed
        self.written: dict[Value, list[tuple[int, Value]]] = {}
        self.count = 0
        self.follows: dict[Node, int] = {}  # a bit for each assignment that a node must follow

    def run(
        self, order: Sequence[Node], outputs: Sequence[Value], assigned: Sequence[Value]
    ) -> list[Value]:
        """The results, then the variables at the end."""
        for node in order:
            self._visit(node)
        last = {h: w[-1][1] for h, w in self.written.items()}
        return [*map(self._of, outputs), *[last.get(h, self.now[h]) for h in assigned]]

    def _of(self, value: Value) -> Value:
        if value not in self.env:  # a small captured constant
            self.env[value] = ops.constant(value.node.attrs["value"].array)
        return self.env[value]

    def _visit(self, node: Node) -> None:
        follows = 0
        for earlier in self.before(node):
            follows |= self.follows[earlier]
        op = op_of(node)
        if op is state.read:
            found: Sequence[Value] = [self._read(node, follows)]
        elif op is state.assign:
            found = [self._of(node.inputs[1])]
            self.written.setdefault(node.inputs[0], []).append((self.count, found[0]))
            follows |= 1 << self.count
            self.count += 1
        elif op is state.group:
            found = []
        else:
            inputs = list(dict.fromkeys(node.inputs))
            single = Subgraph(tuple(inputs), node.outputs, (node,))
            found = inline(single, [self._of(v) for v in inputs])
        self.follows[node] = follows
        self.env.update(zip(node.outputs, found, strict=True))

    def _read(self, node: Node, follows: int) -> Value:
        handle = node.inputs[0]
        if handle in self.fixed:
            return self.fixed[handle]
        seen = -1 if node.attrs["latest"] else follows
        for number, value in reversed(self.written.get(handle, ())):
            if seen >> number & 1:
                return value
        return self.now[handle]


class Join:
    """The captured values and variables of all bodies of an operation."""

    def __init__(self, graph: Graph, regions: Sequence[Region]) -> None:
        self.graph = graph
        self.regions = regions
        self.assigned = tuple(dict.fromkeys(h for r in regions for h in r.assigned))
        read = dict.fromkeys(h for r in regions for h in r.read)
        self.fixed = [(h, _value_of(graph, h)) for h in read if h not in self.assigned]
        self.captured = tuple(dict.fromkeys(v for r in regions for v in r.captured))
        self.draws = any([r.draws for r in regions])

    @property
    def outer(self) -> list[Value]:
        """The captured values."""
        return [*self.captured, *[v for _, v in self.fixed]]

    def now(self) -> list[Value]:
        """The assigned variables' values before the operation."""
        with self.graph.building("", self.graph.control):
            return [ops.read(h, latest=True) for h in self.assigned]

    def function(self, region: Region, iteration: bool = False) -> Subgraph:
        """One of the bodies, as a function of all captured values and variables."""
        return region.function(self.assigned, self.captured, self.fixed, iteration)

    def after_assignments(self, found: Sequence[Value], count: int) -> list[Value] | Node:
        """The results, after assigning the variables' new values."""
        if not self.assigned:
            return list(found[:count])
        after = found[count : count + len(self.assigned)]
        pairs = zip(self.assigned, after, strict=True)
        made = [ops.assign(h, v).node for h, v in pairs]
        with self.graph.ir.control_dependencies(made):
            if count:
                return [ops.identity(v) for v in found[:count]]
            return ops.group.node((), {})


def _value_of(graph: Graph, handle: Value) -> Value:
    """The value of a variable that is not assigned."""
    variable = graph.keys[handle.node.attrs["key"]]
    return variable.value().value
