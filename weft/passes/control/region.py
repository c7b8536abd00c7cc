"""Loops and branches: their bodies are simplified, planned and expanded in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from weft.ir.function import map_functions
from weft.ir.graph import Graph, rewrite
from weft.ir.node import Node, Value
from weft.ir.shape import known, size
from weft.ops.call import Subgraph
from weft.ops.control.switch import switch
from weft.ops.declaration import is_region, op_of
from weft.passes.composite import expand_composites
from weft.passes.control.body import Body, Planner, plan_body
from weft.passes.control.hoist import hoisted
from weft.passes.control.loop import flat_loop, record
from weft.passes.control.record import Control, Kind
from weft.passes.group import Group
from weft.passes.launch import Flat, Kernel, Launch
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


def flat_switch(node: Node, planner: Planner) -> Flat:
    """The launches of a `switch`."""
    branches = [plan_body(branch, planner) for branch in node.attrs["branches"]]
    last = Control(Kind.JUMP)
    jumps = [*[Control(Kind.JUMP, None, (last,)) for _ in branches[1:]], last]
    flat = Flat()
    args = (node.inputs[0], *node.outputs)
    choose = Control(Kind.CHOOSE, None, tuple(jumps[:-1]))
    flat.add(record(choose, args, range(1, len(args))))
    for branch, jump in zip(branches, jumps, strict=True):
        _add(flat, node, branch, planner)
        flat.add(record(jump))
    return flat


def _add(flat: Flat, node: Node, branch: Body, planner: Planner) -> None:
    flat.include(branch.flat)
    flat.aliases.update(zip(branch.inputs, node.inputs[1:], strict=True))
    flat.launches.extend(branch.flat.launches)
    claimed: set[Value] = set()
    for value, result in zip(branch.outputs, node.outputs, strict=True):
        if value in branch.written and value not in claimed:
            claimed.add(value)
            flat.aliases[value] = result
        else:
            count = int(size(known(value.shape))) * value.dtype.size
            flat.add(planner.copy(value, result, count))
