"""The verifier: what must hold of every graph, after each pass."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from weft.errors import GraphError
from weft.ir.function import Function, functions
from weft.ir.graph import toposort
from weft.ir.node import Node, Region


def verify(graph: Region) -> None:
    """Check names, order, edges, outputs and regions of a graph.

    Raises:
        GraphError: the first fault found, with the node's name and the user's line.
    """
    seen: set[Node] = set()
    names: set[str] = set()
    for node in graph.nodes:
        if node.name in names:
            raise GraphError(f"verify: the name {node.name!r} is used twice")
        names.add(node.name)
        _verify_edges(node, seen)
        seen.add(node)
        for region in node.regions:
            verify(region)
        for function in functions(node):
            verify_function(function)
    for value in graph.outputs:
        if value.node not in seen:
            raise GraphError(f"verify: the output {value.name} is not in the graph")
    if graph.edges:
        toposort(graph, graph.nodes)


def verify_function(function: Function) -> None:
    """Check names, order and edges of a function, and that it reads nothing but its inputs.

    Raises:
        GraphError: the first fault found.
    """
    inputs = [v.node for v in function.inputs]
    seen = set(inputs)
    names = {node.name for node in inputs}
    if len(names) < len(inputs):
        raise GraphError("verify: two inputs of a function have the same name")
    for node in function.nodes:
        if node.name in names:
            raise GraphError(f"verify: the name {node.name!r} is used twice in a function")
        names.add(node.name)
        _verify_edges(node, seen)
        seen.add(node)
        for inner in functions(node):
            verify_function(inner)
    for value in function.outputs:
        if value.node not in seen:
            raise GraphError(f"verify: the output {value.name} is not in its function")


def _verify_edges(node: Node, seen: AbstractSet[Node]) -> None:
    """Check that everything that a node reads or waits for comes before it."""
    for value in node.inputs:
        if value.node not in seen:
            raise GraphError(
                f"verify: {node.describe()} reads {value.name}, which does not come before it"
            )
        if value.node.outputs[value.index] is not value:
            raise GraphError(f"verify: {node.describe()} reads an invalid edge {value.name}")
    for before in node.control:
        if before not in seen:
            raise GraphError(
                f"verify: {node.describe()} waits for {before.name}, which is not before it"
            )
