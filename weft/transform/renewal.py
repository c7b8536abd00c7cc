"""Values that gradient rules read, computed again in the backward pass rather than kept for it."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.node import Node, Value
from weft.ops.base import Alias, Elementwise, Op, Pull, op_of
from weft.ops.call import barrier
from weft.ops.declaration.fact import Cost
from weft.ops.indexing.row_sparse import Cotangent, RowSparse


class Renewal:
    """What stands for values in the rules of one backward pass.

    An operation whose facts say so (`again`) is done once more when the first rule reads what it
    gives, and so is whatever follows from that alone at little cost, such as a transpose or a cast.
    """

    def __init__(self, order: Sequence[Node]) -> None:
        self._wanted = any([op_of(node).facts.again is not None for node in order])
        self._values: dict[Value, Value] = {}

    def seen(self, node: Node, outputs: Sequence[Cotangent | None]) -> Node:
        """The node as its rule is to see it; nothing is done before its cotangents are there."""
        if not self._wanted:
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
            late = g.values if isinstance(g, RowSparse) else g
            held = barrier.all(*node.data_inputs, late)[:-1]
            found = op.facts.again(node.outputs, held, **{**op.attrs, **node.attrs})
            return node.outputs if found is None else found
        if len(node.inputs) == 1 and _is_light(op):
            x = self._of(node.inputs[0], g)
            if x is not node.inputs[0]:
                return op.node((x,), node.attrs).outputs
        return node.outputs


def _is_light(op: Op) -> bool:
    movable = isinstance(op.lower, Elementwise | Pull | Alias)
    return movable and not op.stateful and op.facts.cost is not Cost.EXPENSIVE
