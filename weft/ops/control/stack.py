"""Stacks: values saved by a loop, with one row for each iteration of the run."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.node import TensorType, Value
from weft.ops.call import trace
from weft.ops.control.scan import STACKED, reads_stacks, scan
from weft.ops.control.while_loop import while_loop
from weft.ops.declaration import catalogue, op_of


def is_on_stack(value: Value) -> bool:
    """Whether a value is a stack, of a `while_loop` or of a scan over stacks."""
    node = value.node
    op = op_of(node)
    return (op is while_loop or reads_stacks(op, node.attrs)) and value.index >= node.attrs[
        "carried"
    ]


def sum_of_stacks(stacks: Sequence[Value]) -> Value:
    """The row-wise sum of stacks of the same loop."""
    rows = [TensorType(v.dtype, (v.shape or ())[1:]) for v in stacks]
    body = trace(lambda *xs: catalogue.add_n(*xs), rows)
    (found,) = scan.all(*stacks, body=body, length=STACKED, carried=0, mapped=len(stacks))
    return found
