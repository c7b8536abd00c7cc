"""Fuses loops over the same arrays; removes carried values that are never read or never change.

The backward pass runs a loop forward once more to save its residuals. Fused with the original, one
loop computes everything once.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

from weft.ir.graph import Graph, rewrite
from weft.ir.node import Node, Value
from weft.ops.boundary.state import CONSTANT
from weft.ops.call import Subgraph
from weft.ops.control.scan import STACKED, scan
from weft.ops.declaration import op_of
from weft.passes.control.parts import Parts, is_loop, needed, rebuilt, taken
from weft.passes.step import Step


def merged(step: Step) -> Step:
    """Fuses loops of one device and the same inputs whose bodies compute the same carry."""
    first: dict[Any, Node] = {}
    joined: dict[str, Node] = {}
    for node in step.graph.nodes:
        if is_loop(node):
            attrs = {k: v for k, v in node.attrs.items() if k not in ("body", "rematerialize")}
            key = node.op, node.inputs, tuple(sorted(attrs.items())), node.device
            before = first.setdefault(key, node)
            if before is not node and _alike(before, node):
                joined[node.name] = before
    if not joined:
        return step
    bodies: dict[str, Subgraph] = {}
    places: dict[str, list[int]] = {}
    for name, before in joined.items():
        body: Subgraph = bodies.get(before.name) or before.attrs["body"]
        other: Subgraph = step.graph.find(name).attrs["body"]
        both, outputs = _union(body, other, before.attrs["carried"])
        bodies[before.name] = both
        places[name] = outputs
    return step.with_graph(_rewritten(step.graph, joined, bodies, places))


def _rewritten(
    graph: Graph, joined: dict[str, Node], bodies: dict[str, Subgraph],
    places: dict[str, list[int]],
) -> Graph:  # fmt: skip
    made: dict[str, Sequence[Value]] = {}

    def rule(node: Node, _: Graph) -> Sequence[Value] | None:
        if node.name in bodies:
            found = replace(taken(node), body=bodies[node.name]).made()
            made[node.name] = found
            return found[: len(node.outputs)]
        if node.name in joined:
            found = made[joined[node.name].name]
            return [found[i] for i in places[node.name]]
        return None

    return rewrite(graph, rule)


def _alike(a: Node, b: Node) -> bool:
    """Whether the carries are equal in all iterations."""
    carried: int = a.attrs["carried"]
    _, places = _union(a.attrs["body"], b.attrs["body"], carried)
    return places[:carried] == list(range(carried))


def _union(a: Subgraph, b: Subgraph, carried: int) -> tuple[Subgraph, list[int]]:
    """One function of the inputs that computes both; where outputs of `b` are among its own.

    A value that is carried and also stacked is an output twice, because the loop's results differ.
    """
    mapped: dict[Value, Value] = dict(zip(b.inputs, a.inputs, strict=True))
    seen: dict[Any, Node] = {_key(node, node.inputs): node for node in a.nodes}
    nodes = list(a.nodes)
    for node in b.nodes:
        inputs = tuple([mapped[v] for v in node.inputs])
        new = None if op_of(node).stateful else seen.get(_key(node, inputs))
        if new is None:
            new = Node(
                node.op, inputs, node.attrs, node.types, f"{node.name}/again/{len(nodes)}",
                device=node.device, source=node.source,
            )  # fmt: skip
            seen[_key(node, inputs)] = new
            nodes.append(new)
        mapped.update(zip(node.outputs, new.outputs, strict=True))
    carries, stacked = a.outputs[:carried], list(a.outputs[carried:])
    wanted = [mapped[v] for v in b.outputs]
    stacked += [v for v in dict.fromkeys(wanted[carried:]) if v not in stacked]
    places = [i if carries[i] is v else -1 for i, v in enumerate(wanted[:carried])]
    places += [carried + stacked.index(v) for v in wanted[carried:]]
    return Subgraph(a.inputs, (*carries, *stacked), tuple(nodes)), places


def _key(node: Node, inputs: tuple[Value, ...]) -> Any:
    return node.op, inputs, tuple(sorted(node.attrs.items())), node.types


# loop-invariant values


def unstacked(step: Step) -> Step:
    """Replaces inputs of bodies by constants that an earlier loop has stacked."""

    def rule(node: Node, _: Graph) -> Sequence[Value] | None:
        return _with_constants(taken(node)) if op_of(node) is scan else None

    return step.with_graph(rewrite(step.graph, rule))


def _with_constants(loop: Parts) -> Sequence[Value] | None:
    read = {v for n in loop.body.nodes for v in n.inputs}
    pairs = [(row, _stacked_constant(x)) for row, x in zip(loop.rows, loop.mapped, strict=True)]
    constants = {row: node for row, node in pairs if node is not None and row in read}
    if not constants:
        return None
    body = loop.body
    copies = {row: _copy(node, row) for row, node in constants.items()}
    rest = rebuilt(body, body.inputs, body.outputs, {r: n.outputs[0] for r, n in copies.items()})
    nodes = (*copies.values(), *rest.nodes)
    return replace(loop, body=Subgraph(rest.inputs, rest.outputs, nodes)).made()


def _stacked_constant(x: Value) -> Node | None:
    """The constant that each row of an array equals, if a loop stacked it."""
    if not is_loop(x.node) or x.index < x.node.attrs["carried"]:
        return None
    row: Value = x.node.attrs["body"].outputs[x.index]
    return row.node if op_of(row.node) is CONSTANT else None


def _copy(node: Node, row: Value) -> Node:
    return Node(node.op, (), node.attrs, node.types, f"{row.node.name}/constant")


# dead outputs


def trimmed(step: Step) -> Step:
    """Removes dead outputs of loops, and inputs that they do not read."""
    loops = list(filter(is_loop, step.graph.nodes))
    if not loops:
        return step
    read = {v for node in step.graph.nodes for v in node.inputs} | set(step.graph.outputs)
    used = {n.name: [v in read for v in n.outputs] for n in loops}

    def rule(node: Node, _: Graph) -> Sequence[Value] | None:
        return _trimmed(taken(node), used[node.name]) if is_loop(node) else None

    return step.with_graph(rewrite(step.graph, rule))


def _trimmed(loop: Parts, used: Sequence[bool]) -> Sequence[Value] | None:
    body, count = loop.body, len(loop.inits)
    told = _told(loop)
    alive = _alive(loop, used, told)
    same = {i for i in alive if i < count and body.outputs[i] is body.inputs[i]}
    read = {v for n in body.nodes for v in n.inputs} | {body.outputs[i] for i in alive - same}
    carried = [i for i in sorted(alive - same) if i < count]
    first = {body.outputs[i]: i for i in sorted(alive, reverse=True) if i >= count}
    stacked = sorted(first.values())  # each once, even if requested twice
    rows = [i for i, v in enumerate(loop.rows) if v in read] or _any_stack(loop)
    fixed = [i for i, v in enumerate(loop.fixed) if v in read or count + i in told]
    constant = [i for i in sorted(same) if body.inputs[i] in read or i in told]  # as if captured
    parts = (carried, rows, fixed)
    whole = [len(loop.inits), len(loop.mapped), len(loop.captured)]
    if [*map(len, parts)] == whole and len(carried) + len(stacked) == len(body.outputs):
        return None
    behind = count + len(loop.rows)
    kept = [*carried, *[count + i for i in rows], *[behind + i for i in fixed], *constant]
    outputs = [body.outputs[i] for i in (*carried, *stacked)]
    captured = (*[loop.captured[i] for i in fixed], *[loop.inits[i] for i in constant])
    found = replace(
        loop, inits=tuple([loop.inits[i] for i in carried]),
        mapped=tuple([loop.mapped[i] for i in rows]), captured=captured,
        body=rebuilt(body, [body.inputs[i] for i in kept], outputs),
        condition=_cut_condition(loop.condition, kept),
    ).made() if outputs else ()  # fmt: skip
    results = dict(zip((*carried, *stacked), found, strict=True))
    results |= {i: results[first[body.outputs[i]]] for i in alive if i >= count}
    results |= {i: loop.inits[i] for i in same}
    return [results.get(i, loop.node.inputs[0]) for i in range(len(body.outputs))]


def _told(loop: Parts) -> AbstractSet[int]:
    """The inputs that the condition reads."""
    if loop.condition is None:
        return set()
    read = {*loop.condition.outputs, *[v for n in loop.condition.nodes for v in n.inputs]}
    return {i for i, v in enumerate(loop.condition.inputs) if v in read}


def _cut_condition(condition: Subgraph | None, kept: Sequence[int]) -> Subgraph | None:
    if condition is None:
        return None
    return rebuilt(condition, [condition.inputs[i] for i in kept], condition.outputs)


def _any_stack(loop: Parts) -> list[int]:
    """One of the dead stacks, which tells the number of iterations."""
    stacks = op_of(loop.node) is scan and loop.length == STACKED
    return [0] if stacks else []


def _alive(loop: Parts, used: Sequence[bool], told: AbstractSet[int]) -> AbstractSet[int]:
    """Outputs of the body on which live results depend."""
    body, count = loop.body, len(loop.inits)
    alive = {i for i, u in enumerate(used) if u} | {i for i in told if i < count}
    while True:
        nodes = needed(body.nodes, [body.outputs[i] for i in alive])
        more = {i for i in range(count) if body.inputs[i].node in nodes} - alive
        if not more:
            return alive
        alive |= more
