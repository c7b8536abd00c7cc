"""Splits the gradient of a loop body: what the forward loop saves, what the backward loop does.

Gradient rules read values of the forward body, and cotangents. The forward loop saves the values
that they read (the residuals), unless they are inputs or cheap to recompute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from weft.ir.graph import Graph, toposort
from weft.ir.node import Node, TensorType, Value
from weft.ir.shape import is_stack, is_static, size
from weft.ops.call import Subgraph, inline, trace
from weft.ops.declaration import Alias, catalogue, op_of
from weft.ops.indexing.row_sparse import Cotangent

Gradients = Callable[..., list[Cotangent | None]]
"""`weft.transform.gradient.gradients`, passed to the rules of bodies."""


@dataclass(frozen=True)
class Split:
    """A body and its gradient in one graph.

    Attributes:
        inputs: of the body.
        outputs: of the body.
        cotangents: placeholders for cotangents of the outputs, `None` where there is none.
        found: cotangents of the inputs; `None` where there is none, or none is wanted.
        forward: the body's own nodes.
    """

    graph: Graph
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    cotangents: tuple[Value | None, ...]
    found: tuple[Cotangent | None, ...]
    forward: AbstractSet[Node]

    def residuals(self, roots: Sequence[Value], again: bool) -> tuple[Value, ...]:
        """Values of the forward body that `roots` read; inputs may be among them.

        Args:
            again: save inputs only; recompute everything else.
        """
        found: dict[Value, None] = {}
        stack, seen = [v for v in roots], set[Value]()
        fixed = {*self.inputs, *[c for c in self.cotangents if c is not None]}
        while stack:
            value = stack.pop()
            if value in seen:
                continue
            seen.add(value)
            if value in fixed:
                found.update({value: None} if value in self.inputs else {})
            elif value.node in self.forward and not (again or _is_cheap(value)):
                found[value] = None
            else:
                stack.extend(value.node.inputs)
        order = {v: i for i, v in enumerate(self.inputs)}
        place = {node: i for i, node in enumerate(self.graph.nodes)}
        return tuple(
            sorted(found, key=lambda v: (order.get(v, len(order)), place[v.node], v.index))
        )

    def part(self, inputs: Sequence[Value], outputs: Sequence[Value]) -> Subgraph:
        """The nodes between some values and others, as a function."""
        known = set(inputs)

        def before(node: Node) -> list[Node]:
            return [v.node for v in node.inputs if v not in known]

        roots = [v.node for v in outputs if v not in known]
        nodes = toposort(self.graph, roots, before)
        part = Subgraph(tuple(inputs), tuple(outputs), tuple(nodes))
        return trace(lambda *xs: inline(part, xs), part.input_types)

    def depending(self, on: Sequence[Value]) -> set[Value]:
        """All values that depend on some."""
        found = set(on)
        for node in self.graph.nodes:
            if any([v in found for v in node.inputs]):
                found.update(node.outputs)
        return found


def _is_cheap(value: Value) -> bool:
    """Whether recomputing a value is cheaper than saving it: views, copies of little.

    Stacks are always recomputed: a stack of stacks is never saved.
    """
    node = value.node
    if is_stack(value.shape):
        return True
    if not node.inputs or isinstance(op_of(node).lower, Alias):
        return True
    shapes = [v.shape for v in node.inputs]
    if not all(map(is_static, [value.shape, *shapes])):
        return False
    return 4 * sum(map(size, shapes)) <= size(value.shape)


def split(
    function: Subgraph,
    given: Sequence[bool],
    wanted: Sequence[bool],
    gradients: Gradients,
) -> Split:
    """Differentiates a body.

    Args:
        given: which outputs have a cotangent.
        wanted: which inputs need one.
    """
    graph = Graph()
    with graph.as_default():
        xs = [placeholder(t) for t in function.input_types]
        first = len(graph.nodes)
        ys = applied(function, xs)
        forward = set(graph.nodes[first:])
        # Copies, so that an input that is returned is not taken for an independent variable.
        ends = [catalogue.identity(y) if y in xs else y for y in ys]
        gs = [placeholder(y.type) if g else None for y, g in zip(ys, given, strict=True)]
        pairs = [(y, g) for y, g in zip(ends, gs, strict=True) if g is not None]
        targets = [x for x, w in zip(xs, wanted, strict=True) if w]
        found = iter(gradients([y for y, _ in pairs], targets, [g for _, g in pairs], stop=targets))
        slopes = [next(found) if w else None for w in wanted]
    return Split(graph, tuple(xs), tuple(ys), tuple(gs), tuple(slopes), forward)


def placeholder(kind: TensorType) -> Value:
    """A placeholder for a value of this type."""
    return catalogue.placeholder(dtype=kind.dtype, shape=kind.shape)


def applied(function: Subgraph, xs: Sequence[Value]) -> Sequence[Any]:
    """A function inlined; a call of it if it has a gradient of its own."""
    if function.backward is None:
        return inline(function, xs)
    return catalogue.call.all(*xs, function=function)
