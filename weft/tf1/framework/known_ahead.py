"""Values known before a run: those that follow from feeds, constants and shapes."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.dtype import DType, bool_
from weft.ir.function import functions
from weft.ir.node import Node, Value
from weft.ops.boundary.state import CONSTANT, placeholder
from weft.ops.declaration import op_of

_SHAPES = frozenset({"shape_of", "size_of", "rank_of"})


def is_integral(dtype: DType) -> bool:
    """Whether an element type is integers or booleans."""
    return dtype.is_integer or dtype is bool_


def follows_from_feeds(values: Sequence[Value]) -> bool:
    """Whether values follow from constants, shapes and integer feeds."""
    rest, seen = [v.node for v in values], set[Node]()
    while rest:
        node = rest.pop()
        if node in seen or node.op in _SHAPES or op_of(node) is CONSTANT:
            continue
        seen.add(node)
        fed = op_of(node) is placeholder
        if not all([is_integral(v.dtype) for v in node.outputs]):
            return False
        if not fed and (not node.inputs or op_of(node).stateful or functions(node)):
            return False
        rest += [v.node for v in node.inputs]
    return True
