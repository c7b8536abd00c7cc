"""Common subexpression elimination."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.ir.graph import Graph, rewrite
from weft.ir.node import Node, Value
from weft.ops.boundary.state import placeholder
from weft.ops.declaration import op_of
from weft.passes.step import Step


def cse(step: Step) -> Step:
    """Merges nodes of one device that compute the same thing from the same inputs."""
    seen: dict[Any, Node] = {}

    def rule(node: Node, _: Graph) -> Sequence[Value] | None:
        if op_of(node).stateful or op_of(node) is placeholder:
            return None
        attrs = tuple(sorted(node.attrs.items()))
        key = (node.op, node.inputs, attrs, node.types, node.regions, node.device)
        first = seen.setdefault(key, node)
        return None if first is node else first.outputs

    return step.with_graph(rewrite(step.graph, rule))
