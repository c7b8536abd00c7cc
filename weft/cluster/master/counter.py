"""Counters of random streams belong to one session, although they are kept beside variables."""

from __future__ import annotations

from dataclasses import replace

from weft.ir.graph import Graph, rewrite
from weft.ir.node import Node, Value
from weft.ops.boundary.state import variable
from weft.ops.declaration import op_of
from weft.passes.step import Step


def with_own_counters(step: Step, prefix: str) -> Step:
    """The step with the keys of its counters after a prefix."""
    keys = {
        str(n.attrs["key"])
        for n in step.graph.nodes
        if op_of(n) is variable and n.attrs.get("counter")
    }
    if not keys:
        return step

    def rule(node: Node, out: Graph) -> tuple[Value, ...] | None:
        if op_of(node) is not variable or node.attrs["key"] not in keys:
            return None
        new = node.with_attrs({**node.attrs, "key": prefix + node.attrs["key"]})
        return out.append(new).outputs

    updates = tuple([prefix + key if key in keys else key for key in step.updates])
    return replace(step, graph=rewrite(step.graph, rule), updates=updates)
