"""Prune: removes dead code."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.graph import Graph, rewrite, toposort
from weft.ir.node import Node, Value
from weft.ops.call import barrier
from weft.ops.declaration import op_of
from weft.passes.step import Step


def prune(step: Step) -> Step:
    """Removes nodes that no output needs, and barrier inputs whose outputs nobody reads."""
    keep = [step.graph.find(name) for name in step.feeds]  # feeds stay, used or not
    graph = _needed(step.graph, keep)
    if any(op_of(node) is barrier for node in graph.nodes):
        graph = _needed(_narrowed(graph), keep)
    return step.with_graph(graph)


def _needed(graph: Graph, keep: Sequence[Node]) -> Graph:
    """What the outputs and the nodes to keep need, in the original order."""
    wanted = set(toposort(graph, [*keep, *(v.node for v in graph.outputs)]))
    if len(wanted) == len(graph.nodes):
        return graph
    return Graph([node for node in graph.nodes if node in wanted], graph.outputs)


def _narrowed(graph: Graph) -> Graph:
    """Barriers of only those inputs whose output is read."""
    live = set(graph.outputs)
    for node in reversed(graph.nodes):
        if op_of(node) is barrier:
            live.update(x for x, y in zip(node.inputs, node.outputs, strict=True) if y in live)
        elif not live.isdisjoint(node.outputs):
            live.update(node.inputs)
    read = {n.name: [y in live for y in n.outputs] for n in graph.nodes if op_of(n) is barrier}

    def rule(node: Node, _: Graph) -> Sequence[Value] | None:
        wanted = read.get(node.name, [True])
        if all(wanted):
            return None
        kept = [x for x, w in zip(node.inputs, wanted, strict=True) if w]
        outputs = iter(barrier.all(*kept))
        return [next(outputs) if w else x for x, w in zip(node.inputs, wanted, strict=True)]

    return rewrite(graph, rule)
