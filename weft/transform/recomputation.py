"""Recomputes values that gradient rules read, instead of keeping them for the backward pass."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.node import Node, Value
from weft.ops.call import barrier
from weft.ops.declaration import Alias, Elementwise, Op, Pull, op_of
from weft.ops.declaration.fact import Cost
from weft.ops.indexing.row_sparse import Cotangent, RowSparse


class Recomputation:
    """Replaces values in the rules of one backward pass by recomputed ones.

    An operation that declares it (`again`) is run once more when the first rule reads its result,
    and so are cheap operations that depend on that result alone, such as a transpose or a cast.
    When one has ended, the next begins, so that what it waits for goes on behind other work.
    """

    def __init__(self, order: Sequence[Node]) -> None:
        self._again = [node for node in reversed(order) if op_of(node).facts.again is not None]
        self._begun: dict[Node, Sequence[Value] | None] = {}
        self._values: dict[Value, Value] = {}

    def for_rule(self, node: Node, outputs: Sequence[Cotangent | None]) -> Node:
        """The node as its rule sees it; nothing is recomputed before its cotangents exist."""
        if not self._again:
            return node
        g = next(g for g in outputs if g is not None)
        return node.with_inputs(tuple([self._of(x, g) for x in node.inputs]))

    def _of(self, value: Value, g: Cotangent) -> Value:
        if value not in self._values:
            found = self._made(value.node, g)
            self._values.update(zip(value.node.outputs, found, strict=True))
        return self._values[value]

    def _made(self, node: Node, g: Cotangent) -> Sequence[Value]:
        op = op_of(node)
        if op.facts.again is not None:
            return self._done_again(node, g.values if isinstance(g, RowSparse) else g)
        if len(node.inputs) == 1 and _is_light(op):
            x = self._of(node.inputs[0], g)
            if x is not node.inputs[0]:
                return op.node((x,), node.attrs).outputs
        return node.outputs

    def _done_again(self, node: Node, g: Value) -> Sequence[Value]:
        again, attrs = op_of(node).facts.again, _attrs(node)
        assert again is not None
        begun = self._begin(node, g)
        if begun is None:
            return node.outputs
        found = again.end(node.outputs, begun, **attrs)
        ahead = again.ahead(**attrs)
        for following in self._again[self._again.index(node) + 1 :]:
            if ahead <= 0:
                break
            ahead -= self._begin(following, g) is not None
        return found

    def _begin(self, node: Node, g: Value) -> Sequence[Value] | None:
        """Begin with a node after `g` is there, unless that was done; what it takes to end it."""
        if node not in self._begun:
            again = op_of(node).facts.again
            assert again is not None
            held = barrier.all(*node.data_inputs, g)[:-1]
            self._begun[node] = again.begin(node.outputs, held, **_attrs(node))
        return self._begun[node]


def _attrs(node: Node) -> dict[str, object]:
    return {**op_of(node).attrs, **node.attrs}


def _is_light(op: Op) -> bool:
    movable = isinstance(op.lower, Elementwise | Pull | Alias)
    return movable and not op.stateful and op.facts.cost is not Cost.EXPENSIVE
