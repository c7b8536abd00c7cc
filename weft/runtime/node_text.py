"""A node that Python computes in a program, as text: a graph of it and its inputs."""

from __future__ import annotations

from weft.ir.graph import Graph
from weft.ir.node import Node, Value
from weft.ir.parser import parse_graph
from weft.ir.printer import format_graph, without_text
from weft.ops.declaration import op_of
from weft.ops.declaration.family import HOST_CALL, inner_nodes


def node_text(node: Node) -> str | None:
    """The text, without names and the user's line.

    `None` for what belongs to one process: functions of the user's, exchanges with other ranks.
    """
    if without_text(node) is not None or _has_effects(node):
        return None
    graph = Graph()
    inputs = tuple([_placeholder(graph, i, value) for i, value in enumerate(node.inputs)])
    graph.append(Node(node.op, inputs, node.attrs, node.types, "y", node.operands))
    return format_graph(graph)


def node_of(text: str) -> Node:
    """The node of a text."""
    return parse_graph(text).nodes[-1]


def _placeholder(graph: Graph, number: int, value: Value) -> Value:
    attrs = {"dtype": value.type.dtype, "shape": value.type.shape}
    return graph.append(Node("placeholder", (), attrs, (value.type,), f"x{number}")).outputs[0]


def _has_effects(node: Node) -> bool:
    own = op_of(node).stateful and node.op != HOST_CALL
    return own or any(map(_has_effects, inner_nodes(node)))
