"""Loop-invariant code motion, and matmuls of all iterations at once.

A matmul of a slice with weights, `x[t] @ w`, becomes one matmul of the whole array before the loop;
the loop reads slices of its result. A matmul that the loop only stacks becomes one matmul of the
stack after the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, Final

from weft.ir.node import Node, Value
from weft.ir.shape import known, size
from weft.ops.call import Subgraph, inline
from weft.ops.control.scan import STACKED, scan
from weft.ops.control.while_loop import while_loop
from weft.ops.declaration import Alias, Boundary, op_of
from weft.ops.linalg.matmul import matmul
from weft.passes.control.parts import (
    Parts,
    following,
    input_like,
    needed,
    rebuilt,
    taken,
    written_down,
)
from weft.transform.vmap import batch

MOST_BYTES: Final = 1 << 28
"""Limit for matmuls of all iterations at once: beyond it, memory matters more than time."""


def hoisted(node: Node) -> Sequence[Value] | None:
    """The outputs of a loop with its work hoisted; `None` if nothing moves."""
    if op_of(node) is while_loop:
        return _while(node)
    if op_of(node) is not scan or not node.attrs["length"]:
        return None
    loop = _constant(taken(node))
    if loop.length != STACKED:
        return _products_behind(_products_before(loop))
    return None if loop.body is node.attrs["body"] else loop.made()


# loop-invariant values


def _constant(loop: Parts) -> Parts:
    body, more = _without_constant(loop.body, loop.fixed, loop.captured)
    return loop.with_body(more, body)


def _while(node: Node) -> Sequence[Value] | None:
    carried: int = node.attrs["carried"]
    captured = node.inputs[carried:]
    condition, body = node.attrs["condition"], node.attrs["body"]
    new_body, more = _without_constant(body, body.inputs[carried:], captured)
    own = condition.inputs[carried:]
    new_condition, others = _without_constant(condition, own, captured)
    if not more and not others:
        return None
    extra = [input_like(v, "condition") for v in others]
    new_body = rebuilt(new_body, (*new_body.inputs, *extra), new_body.outputs)
    inputs = list(new_condition.inputs)
    cut = len(inputs) - len(others)
    unused = [input_like(v, "body") for v in more]
    inputs[cut:cut] = unused
    new_condition = rebuilt(new_condition, inputs, new_condition.outputs)
    attrs: dict[str, Any] = {**node.attrs, "condition": new_condition, "body": new_body}
    return while_loop.all(*node.inputs, *more, *others, **attrs)


def _without_constant(
    body: Subgraph, fixed: Sequence[Value], captured: Sequence[Value]
) -> tuple[Subgraph, list[Value]]:
    """A body with its loop-invariant values as further inputs; those values, computed outside."""
    same = following(body.nodes, set(fixed))
    moved = _border(body, same)
    if not moved:
        return body, []
    nodes = [n for n in body.nodes if n in needed(body.nodes, moved)]
    outside = written_down(nodes, dict(zip(fixed, captured, strict=True)))
    inputs = {v: input_like(v, "outside") for v in moved}
    found = rebuilt(body, (*body.inputs, *inputs.values()), body.outputs, inputs)
    return found, [outside[v] for v in moved]


def _border(body: Subgraph, same: AbstractSet[Value]) -> list[Value]:
    """Loop-invariant values worth keeping that other values read."""
    varying = [n for n in body.nodes if not all([v in same for v in n.outputs])]
    stack = [v for n in varying for v in n.inputs if v in same]
    found: dict[Value, None] = {}
    while stack:
        value = stack.pop()
        if value in body.inputs or value in found:
            continue
        if _is_free(value):
            stack.extend(value.node.inputs)
        else:
            found[value] = None
    place = {node: i for i, node in enumerate(body.nodes)}
    return sorted(found, key=lambda v: (place[v.node], v.index))


def _is_free(value: Value) -> bool:
    """Whether a value is free: a view, a constant, or a broadcast of few elements."""
    node = value.node
    if isinstance(op_of(node).lower, Alias | Boundary) or not node.inputs:
        return True
    return sum([int(size(v.shape)) for v in node.inputs]) < int(size(value.shape))


# matmuls


def _products_before(loop: Parts) -> Parts:
    """Matmuls of slices with weights, done for all slices at once."""
    body, length = loop.body, loop.length
    same = following(body.nodes, set(loop.fixed))
    rows = following(body.nodes, {*loop.fixed, *loop.rows}) - same
    moved = [
        n.outputs[0]
        for n in body.nodes
        if op_of(n) is matmul and n.inputs[0] in rows and n.inputs[1] in same and _fits(n, length)
    ]
    if not moved:
        return loop
    nodes = tuple([n for n in body.nodes if n in needed(body.nodes, moved)])
    given = (*loop.rows, *loop.fixed)
    inner = Subgraph(given, tuple(moved), nodes)
    flags = [True] * len(loop.rows) + [False] * len(loop.fixed)
    wholes = inline(batch(inner, flags, length), (*loop.mapped, *loop.captured))
    inputs = {v: input_like(v, "before") for v in moved}
    first = len(loop.inits) + len(loop.mapped)
    names = (*body.inputs[:first], *inputs.values(), *body.inputs[first:])
    found = rebuilt(body, names, body.outputs, inputs)
    return replace(loop, mapped=(*loop.mapped, *wholes), body=found)


def _fits(node: Node, length: int) -> bool:
    value = node.outputs[0]
    bytes_ = int(size(value.shape)) * value.dtype.size * length
    plain = all([len(known(v.shape)) == 2 for v in node.inputs])
    return plain and not node.attrs["transpose_x"] and bytes_ <= MOST_BYTES


def _products_behind(loop: Parts) -> Sequence[Value] | None:
    """The outputs, with matmuls that are only stacked done on the stacked factors."""
    body, carried = loop.body, len(loop.inits)
    same = following(body.nodes, set(loop.fixed))
    reads: dict[Value, int] = {}
    for value in (*[v for n in body.nodes for v in n.inputs], *body.outputs):
        reads[value] = reads.get(value, 0) + 1
    moved: dict[int, Node] = {}
    outputs = list(body.outputs)
    for i, value in enumerate(body.outputs[carried:], carried):
        node = value.node
        if op_of(node) is not matmul or reads[value] > 1 or value in same:
            continue
        if node.inputs[1] in loop.fixed and _fits(node, loop.length):
            moved[i], outputs[i] = node, node.inputs[0]
    if not moved and loop.body is loop.node.attrs["body"]:
        return None
    found = replace(loop, body=rebuilt(body, body.inputs, outputs)).made()
    outside = dict(zip(loop.fixed, loop.captured, strict=True))
    return [
        matmul(y, outside[moved[i].inputs[1]], **moved[i].attrs) if i in moved else y
        for i, y in enumerate(found)
    ]
