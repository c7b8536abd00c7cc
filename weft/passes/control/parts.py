"""Loops taken apart and put together again, for the passes that move work out of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

from weft.ir.graph import current_graph
from weft.ir.node import Node, TensorType, Value
from weft.ops.base import fault_of, is_hosted, op_of
from weft.ops.call import Subgraph
from weft.ops.control.scan import parts, scan


@dataclass(frozen=True)
class Scan:
    """A scan: what it reads outside, and its body, whose inputs and outputs are in that order."""

    node: Node
    inits: tuple[Value, ...]
    mapped: tuple[Value, ...]
    captured: tuple[Value, ...]
    body: Subgraph

    @property
    def rows(self) -> tuple[Value, ...]:
        """The body's inputs that are slices."""
        first = len(self.inits)
        return self.body.inputs[first : first + len(self.mapped)]

    @property
    def fixed(self) -> tuple[Value, ...]:
        """The body's inputs that are the same at all turns."""
        return self.body.inputs[len(self.inits) + len(self.mapped) :]

    @property
    def length(self) -> int:
        """How many turns it takes."""
        return self.node.attrs["length"]

    def with_body(self, inputs: Sequence[Value], body: Subgraph) -> Scan:
        """The same loop of another body, where only captured inputs are added."""
        return replace(self, captured=(*self.captured, *inputs), body=body)

    def made(self) -> tuple[Value, ...]:
        """Its outputs, added to the current graph."""
        attrs: dict[str, Any] = {**self.node.attrs, "body": self.body}
        attrs["carried"], attrs["mapped"] = len(self.inits), len(self.mapped)
        return scan.all(*self.inits, *self.mapped, *self.captured, **attrs)


def taken(node: Node) -> Scan:
    """The parts of a scan."""
    p = parts(node.inputs, node.attrs["carried"], node.attrs["mapped"])
    return Scan(node, tuple(p.inits), tuple(p.mapped), tuple(p.captured), node.attrs["body"])


def rebuilt(
    function: Subgraph,
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    instead: Mapping[Value, Value] | None = None,
) -> Subgraph:
    """The function with other inputs and outputs; some values are taken for others."""
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
    """What is computed from some values and from nothing else, without an effect or a fault."""
    found = set(values)
    for node in nodes:
        op = op_of(node)
        pure = not (op.stateful or is_hosted(node) or fault_of(node))
        if pure and all([v in found for v in node.inputs]):
            found.update(node.outputs)
    return found


def input_like(value: Value, mark: str, kind: TensorType | None = None) -> Value:
    """A new input of a body, in place of a value of it."""
    kind = kind or value.type
    attrs = {"dtype": kind.dtype, "shape": kind.shape}
    name = f"{value.node.name}/{value.index}/{mark}"
    return Node("placeholder", (), attrs, (kind,), name, source=value.node.source).outputs[0]


def written_down(nodes: Iterable[Node], known: Mapping[Value, Value]) -> dict[Value, Value]:
    """Nodes of a body once more in the current graph; their values, by those of the body."""
    found = dict(known)
    graph = current_graph()
    for node in nodes:
        inputs = tuple([found[v] for v in node.inputs])
        new = graph.add(
            node.op, inputs, node.attrs, node.types, node.name, source=node.source
        )  # fmt: skip
        found.update(zip(node.outputs, new.outputs, strict=True))
    return found
