"""Loops and branches: their bodies are simplified, planned and expanded in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from weft.ir.function import map_functions
from weft.ir.graph import Graph, rewrite
from weft.ir.node import Node, Value
from weft.ops.call import Subgraph
from weft.ops.control.switch import switch
from weft.ops.declaration import is_region, op_of
from weft.passes.composite import expand_composites
from weft.passes.control.body import Planner
from weft.passes.control.branch import flat_switch
from weft.passes.control.hoist import hoisted
from weft.passes.control.loop import flat_loop
from weft.passes.group import Group
from weft.passes.launch import Kernel, Launch
from weft.passes.step import Step


def within(step: Step, run: Callable[[Step], Step]) -> Step:
    """The step with `run` applied to all bodies and branches, as steps of their own."""
    if not any(map(is_region, step.graph.nodes)):
        return step

    def rule(node: Node, out: Graph) -> tuple[Value, ...] | None:
        if not is_region(node):
            return None
        return out.append(map_functions(node, lambda f: _changed(f, run))).outputs

    return step.with_graph(rewrite(step.graph, rule))


def moved_out(step: Step) -> Step:
    """The step with loop-invariant work hoisted out of its loops."""

    def rule(node: Node, _: Graph) -> Sequence[Value] | None:
        return hoisted(node) if is_region(node) else None

    return expand_composites(step.with_graph(rewrite(step.graph, rule)))


def _changed(function: Subgraph, run: Callable[[Step], Step]) -> Subgraph:
    names = tuple([v.node.name for v in function.inputs])
    graph = Graph([*[v.node for v in function.inputs], *function.nodes], function.outputs)
    found = run(Step(graph, names, ())).graph
    inputs = tuple([found.find(name).outputs[0] for name in names])
    given = {v.node for v in inputs}
    nodes = tuple([node for node in found.nodes if node not in given])
    return replace(function, inputs=inputs, outputs=found.outputs, nodes=nodes)


def lower_region(group: Group, planner: Planner) -> tuple[Launch, ...]:
    """A loop or branch as one launch that contains its launches."""
    node = group.nodes[0]
    flat = flat_switch(node, planner) if op_of(node) is switch else flat_loop(node, planner)
    args = (*node.inputs, *node.outputs)
    writes = tuple(range(len(node.inputs), len(args)))
    check = any([launch.check for launch, _ in flat.launches])
    return (Launch(Kernel(node.op, ""), args, writes, check=check, inside=flat),)
