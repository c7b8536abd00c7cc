"""Takes loops apart and rebuilds them, for passes that move work out of loops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

from weft.ir.graph import current_graph
from weft.ir.node import Node, TensorType, Value
from weft.ir.shape import is_stack
from weft.ops.call import Subgraph
from weft.ops.control.scan import parts, scan
from weft.ops.control.while_loop import while_loop
from weft.ops.declaration import calls_python, fault_of, is_region, op_of


@dataclass(frozen=True)
class Parts:
    """A loop: its outside values, and its body, whose inputs and outputs have the same order.

    Attributes:
        condition: of a `while_loop`; takes the same inputs as the body.
    """

    node: Node
    inits: tuple[Value, ...]
    mapped: tuple[Value, ...]
    captured: tuple[Value, ...]
    body: Subgraph
    condition: Subgraph | None = None

    @property
    def rows(self) -> tuple[Value, ...]:
        """The body's inputs that are slices."""
        first = len(self.inits)
        return self.body.inputs[first : first + len(self.mapped)]

    @property
    def fixed(self) -> tuple[Value, ...]:
        """The body's loop-invariant inputs."""
        return self.body.inputs[len(self.inits) + len(self.mapped) :]

    @property
    def length(self) -> int:
        """The number of iterations of a scan; `STACKED` if only known at run time."""
        return self.node.attrs["length"]

    def with_body(self, inputs: Sequence[Value], body: Subgraph) -> Parts:
        """The same loop with another body, which may have more captured inputs."""
        return replace(self, captured=(*self.captured, *inputs), body=body)

    def made(self) -> tuple[Value, ...]:
        """Its outputs, added to the current graph."""
        attrs: dict[str, Any] = {**self.node.attrs, "body": self.body, "carried": len(self.inits)}
        if self.condition is None:
            attrs["mapped"] = len(self.mapped)
        else:
            attrs["condition"] = self.condition
        op = op_of(self.node)
        return op.all(*self.inits, *self.mapped, *self.captured, **attrs)


def taken(node: Node) -> Parts:
    """The parts of a loop."""
    attrs = node.attrs
    p = parts(node.inputs, attrs["carried"], attrs.get("mapped", 0))
    inputs = tuple(p.inits), tuple(p.mapped), tuple(p.captured)
    return Parts(node, *inputs, attrs["body"], attrs.get("condition"))


def is_loop(node: Node) -> bool:
    """Whether a node is a loop that is compiled."""
    return op_of(node) in (scan, while_loop) and is_region(node)


def rebuilt(
    function: Subgraph,
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    instead: Mapping[Value, Value] | None = None,
) -> Subgraph:
    """The function with other inputs and outputs, and some values replaced."""
    mapped = dict(instead or {})
    nodes: list[Node] = []
    for node in function.nodes:
        if all([v in mapped for v in node.outputs]):
            continue
        new = node.with_inputs(tuple([mapped.get(v, v) for v in node.inputs]))
        nodes.append(new)
        for old, value in zip(node.outputs, new.outputs, strict=True):
            mapped.setdefault(old, value)
    results = tuple([mapped.get(v, v) for v in outputs])
    kept = tuple([n for n in nodes if n in needed(nodes, results)])
    return Subgraph(tuple(inputs), results, kept)


def needed(nodes: Iterable[Node], outputs: Iterable[Value]) -> set[Node]:
    """The nodes among some, in order, that the outputs need."""
    found = {v.node for v in outputs}
    for node in reversed(list(nodes)):
        if node in found:
            found.update([v.node for v in node.inputs])
    return found


def following(nodes: Iterable[Node], values: AbstractSet[Value]) -> set[Value]:
    """Values that depend on `known` values alone, without side effects or errors.

    Stacks are excluded: they stay within the body that makes them.
    """
    found = set(values)
    for node in nodes:
        op = op_of(node)
        stacks = any([is_stack(t.shape) for t in node.types])
        pure = not (stacks or op.stateful or calls_python(node) or fault_of(node))
        if pure and all([v in found for v in node.inputs]):
            found.update(node.outputs)
    return found


def input_like(value: Value, mark: str, kind: TensorType | None = None) -> Value:
    """A new input of a body that replaces one of its values."""
    kind = kind or value.type
    attrs = {"dtype": kind.dtype, "shape": kind.shape}
    name = f"{value.node.name}/{value.index}/{mark}"
    return Node("placeholder", (), attrs, (kind,), name, source=value.node.source).outputs[0]


def written_down(nodes: Iterable[Node], known: Mapping[Value, Value]) -> dict[Value, Value]:
    """Copies nodes of a body to the current graph; returns their values by those of the body."""
    found = dict(known)
    graph = current_graph()
    for node in nodes:
        inputs = tuple([found[v] for v in node.inputs])
        new = graph.add(
            node.op, inputs, node.attrs, node.types, node.name, source=node.source
        )  # fmt: skip
        found.update(zip(node.outputs, new.outputs, strict=True))
    return found
