"""Expands composites into primitives, in a step and in the bodies of its loops and branches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from weft.ir.function import functions, map_functions
from weft.ir.graph import Graph, rewrite, toposort
from weft.ir.node import Node, Value
from weft.ops.call import Subgraph
from weft.ops.declaration import Composite, op_of
from weft.passes.step import Step


def expand_composites(step: Step) -> Step:
    """Expands every composite into primitives, also composites of composites."""

    def rule(node: Node, out: Graph) -> Sequence[Value]:
        return _primitive(node, out)

    return step.with_graph(rewrite(step.graph, rule))


def _in_primitives(function: Subgraph) -> Subgraph:
    """A body or a branch without composites."""
    if not any([isinstance(op_of(n).lower, Composite) or functions(n) for n in function.nodes]):
        return function
    graph = Graph([v.node for v in function.inputs])
    mapped = {v: v for v in function.inputs}
    with graph.as_default():
        for node in function.nodes:
            new = node.with_inputs(tuple([mapped[v] for v in node.inputs]))
            mapped.update(zip(node.outputs, _primitive(new, graph), strict=True))
    outputs = tuple([mapped[v] for v in function.outputs])
    order = toposort(graph, [v.node for v in outputs])
    inputs = {v.node for v in function.inputs}
    nodes = tuple([node for node in order if node not in inputs])
    return replace(function, outputs=outputs, nodes=nodes)


def _primitive(node: Node, out: Graph) -> Sequence[Value]:
    """Adds a node to `out` in primitives, with everything inside it; returns the outputs."""
    if isinstance(op_of(node).lower, Composite):
        return _expanded(node, out)
    return out.append(map_functions(node, _in_primitives)).outputs


def _expanded(node: Node, out: Graph) -> Sequence[Value]:
    """Adds the expansion of a composite to `out`, in primitives."""
    lower = op_of(node).lower
    assert isinstance(lower, Composite)
    before = len(out.nodes)
    with out.on_behalf_of(node):
        found = lower.expand(*node.inputs, **node.attrs)
    results: tuple[Value, ...] = found if isinstance(found, tuple) else (found,)
    added = out.nodes[before:]
    if not any([isinstance(op_of(n).lower, Composite) or functions(n) for n in added]):
        return results
    # Taken back and added again, expanding composites among them.
    mapped: dict[Value, Value] = {}
    for inner in out.truncate(before):
        new = inner.with_inputs(tuple([mapped.get(v, v) for v in inner.inputs]))
        mapped.update(zip(inner.outputs, _primitive(new, out), strict=True))
    return [mapped.get(v, v) for v in results]
