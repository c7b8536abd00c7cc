"""Loops over the same arrays become one, and lose what nobody reads.

A gradient runs the loop forward once more to keep what it needs on the way back: merged, both are
one loop, which computes everything once.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

from weft.ir.graph import Graph, rewrite
from weft.ir.node import Node, Value
from weft.ops.base import op_of
from weft.ops.call import Subgraph
from weft.ops.control.scan import scan
from weft.passes.control.parts import Scan, needed, rebuilt, taken
from weft.passes.step import Step


def merged(step: Step) -> Step:
    """Join scans of the same inputs whose bodies hand on the same carry."""
    first: dict[Any, Node] = {}
    joined: dict[str, Node] = {}
    for node in step.graph.nodes:
        if op_of(node) is scan:
            attrs = {k: v for k, v in node.attrs.items() if k not in ("body", "rematerialize")}
            key = node.inputs, tuple(sorted(attrs.items()))
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
    """Whether the carries are the same at all turns."""
    carried: int = a.attrs["carried"]
    _, places = _union(a.attrs["body"], b.attrs["body"], carried)
    return places[:carried] == list(range(carried))


def _union(a: Subgraph, b: Subgraph, carried: int) -> tuple[Subgraph, list[int]]:
    """One function of the inputs that computes both; where the outputs of `b` are among its own.

    What is carried and stacked as well is an output twice: they are not the same result of a loop.
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


# what nobody reads


def trimmed(step: Step) -> Step:
    """Take from scans what they compute for nobody, and from their inputs what they do not read."""
    if not any([op_of(node) is scan for node in step.graph.nodes]):
        return step
    read = {v for node in step.graph.nodes for v in node.inputs} | set(step.graph.outputs)
    used = {n.name: [v in read for v in n.outputs] for n in step.graph.nodes if op_of(n) is scan}

    def rule(node: Node, _: Graph) -> Sequence[Value] | None:
        return _trimmed(taken(node), used[node.name]) if op_of(node) is scan else None

    return step.with_graph(rewrite(step.graph, rule))


def _trimmed(loop: Scan, used: Sequence[bool]) -> Sequence[Value] | None:
    body, count = loop.body, len(loop.inits)
    alive = _alive(loop, used)
    same = {i for i in alive if i < count and body.outputs[i] is body.inputs[i]}
    read = {v for n in body.nodes for v in n.inputs} | {body.outputs[i] for i in alive - same}
    carried = [i for i in sorted(alive - same) if i < count]
    stacked = [i for i in sorted(alive) if i >= count]
    rows = [i for i, v in enumerate(loop.rows) if v in read]
    fixed = [i for i, v in enumerate(loop.fixed) if v in read]
    constant = [i for i in sorted(same) if body.inputs[i] in read]  # as if captured
    parts = (carried, rows, fixed)
    whole = [len(loop.inits), len(loop.mapped), len(loop.captured)]
    if [*map(len, parts)] == whole and len(carried) + len(stacked) == len(body.outputs):
        return None
    inputs = [
        *[body.inputs[i] for i in carried], *[loop.rows[i] for i in rows],
        *[loop.fixed[i] for i in fixed], *[body.inputs[i] for i in constant],
    ]  # fmt: skip
    outputs = [body.outputs[i] for i in (*carried, *stacked)]
    captured = (*[loop.captured[i] for i in fixed], *[loop.inits[i] for i in constant])
    found = replace(
        loop, inits=tuple([loop.inits[i] for i in carried]),
        mapped=tuple([loop.mapped[i] for i in rows]), captured=captured,
        body=rebuilt(body, inputs, outputs),
    ).made() if outputs else ()  # fmt: skip
    results = dict(zip((*carried, *stacked), found, strict=True))
    results |= {i: loop.inits[i] for i in same}
    return [results.get(i, loop.node.inputs[0]) for i in range(len(body.outputs))]


def _alive(loop: Scan, used: Sequence[bool]) -> AbstractSet[int]:
    """Outputs of the body that lead to something that is read."""
    body, count = loop.body, len(loop.inits)
    alive = {i for i, u in enumerate(used) if u}
    while True:
        nodes = needed(body.nodes, [body.outputs[i] for i in alive])
        more = {i for i in range(count) if body.inputs[i].node in nodes} - alive
        if not more:
            return alive
        alive |= more
