"""Parts of a graph that are found by a pattern, and replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from weft.mirror.supplied.fx.graph import Graph
from weft.mirror.supplied.fx.graph_module import GraphModule
from weft.mirror.supplied.fx.node import INPUT, Node, map_arg
from weft.mirror.supplied.fx.tracer import symbolic_trace

__all__ = ["Match", "replace_pattern"]


class Match(NamedTuple):
    """A part of a graph that a pattern describes.

    Attributes:
        anchor: the node that gave its result.
        nodes_map: for each node of the pattern that of the graph.
    """

    anchor: Node
    nodes_map: dict[Node, Any]


def replace_pattern(
    gm: GraphModule, pattern: Callable[..., Any] | GraphModule,
    replacement: Callable[..., Any] | GraphModule,
) -> list[Match]:  # fmt: skip
    """Replace all parts of a module's graph that do what `pattern` does; they do not overlap.

    Args:
        pattern: a function or a module with one result; its inputs stand for any values.
        replacement: what takes its place, with the same inputs in order.
    """
    form, made = _graph_of(pattern), _graph_of(replacement)
    root = _result(form)
    inputs = [node for node in form.nodes if node.op == INPUT]
    found: list[Match] = []
    for node in gm.graph.nodes:
        known: dict[Node, Any] = {}
        if not (_matches(root, node, known) and _is_closed(root, known)):
            continue
        found.append(Match(node, known))
        with gm.graph.inserting_before(node):
            new = _inserted(gm.graph, made, [known.get(x) for x in inputs])
        node.replace_all_uses_with(new)
        for own in reversed([x for x in form.nodes if x.op not in (INPUT, "output")]):
            if own in known and not known[own].users:
                gm.graph.erase_node(known[own])
    return found


def _graph_of(code: Any) -> Graph:
    return code.graph if isinstance(code, GraphModule) else symbolic_trace(code).graph


def _result(graph: Graph) -> Node:
    """The node whose value a graph gives."""
    *_, output = graph.nodes
    return output.args[0]


def _matches(form: Any, node: Any, known: dict[Node, Any]) -> bool:
    """Whether a value of the graph is one of the pattern; which nodes are equal is noted."""
    if not isinstance(form, Node):
        if isinstance(form, tuple | list) and isinstance(node, tuple | list):
            pairs = zip(form, node, strict=False)
            return len(form) == len(node) and all([_matches(a, b, known) for a, b in pairs])
        return type(form) is type(node) and form == node
    if form in known:
        return known[form] is node
    if form.op == INPUT:
        known[form] = node
        return True
    if not isinstance(node, Node) or (form.op, form.target) != (node.op, node.target):
        return False
    known[form] = node
    return (
        form.kwargs.keys() == node.kwargs.keys()
        and _matches(form.args, node.args, known)
        and all([_matches(x, node.kwargs[name], known) for name, x in form.kwargs.items()])
    )


def _is_closed(root: Node, known: dict[Node, Any]) -> bool:
    """Whether nothing else uses the values inside the part."""
    inside = {id(node) for node in known.values()}
    inner = [node for form, node in known.items() if form.op != INPUT and form is not root]
    return all([id(user) in inside for node in inner for user in node.users])


def _inserted(graph: Graph, made: Graph, given: list[Any]) -> Node:
    """The result of the copies of a graph's nodes, for these inputs."""
    new: dict[Node, Any] = {}
    values = iter(given)
    for node in made.nodes:
        if node.op == INPUT:
            new[node] = next(values)
        elif node.op != "output":
            new[node] = graph.node_copy(node, lambda x: new[x])
    return map_arg(_result(made), lambda x: new[x])
