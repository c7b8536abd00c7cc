"""Row-sparse gradients of graphs: ranks exchange the rows that they looked up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import ops
from weft.collectives.reduce_op import ReduceOp
from weft.horovod.process_set import ProcessSet
from weft.horovod.reduction import Reduction
from weft.horovod.tensorflow.collective import reduced
from weft.ir.node import Value
from weft.ops.communication.shard import gather_parts
from weft.tf1.framework.graph import get_default_graph, name_scope
from weft.tf1.framework.indexed_slices import IndexedSlices


def reduced_gradients(
    gradients: Sequence[Any], shapes: Sequence[Any], how: Reduction, process_set: ProcessSet,
    sparse_as_dense: bool,
) -> list[Any]:  # fmt: skip
    """Reduce gradients over ranks; `IndexedSlices` stay rows if ranks exchange rows.

    Args:
        shapes: shapes of the variables.
    """
    pairs = zip(gradients, shapes, strict=True)
    by_rows = [
        not sparse_as_dense and _travels_as_rows(g, shape, how, process_set.size())
        for g, shape in pairs
    ]
    dense = [g for g, rows in zip(gradients, by_rows, strict=True) if not rows]
    summed = iter(reduced(dense, how, None, process_set) if dense else ())
    return [
        _gathered(g, how, process_set) if rows else next(summed)
        for g, rows in zip(gradients, by_rows, strict=True)
    ]


def _travels_as_rows(g: Any, shape: Any, how: Reduction, ranks: int) -> bool:
    """Whether ranks exchange rows: if their total number is known and at most the variable's."""
    if not isinstance(g, IndexedSlices) or how != Reduction(how.op):
        return False  # scaled or compressed
    if how.op not in (ReduceOp.AVG, ReduceOp.SUM):
        return False
    if not (g.values.shape.is_fully_defined() and g.indices.shape.is_fully_defined()):
        return False
    return (g.indices.shape.num_elements() or 0) * ranks <= (shape.as_list()[0] or 0)


def _gathered(g: IndexedSlices, how: Reduction, process_set: ProcessSet) -> IndexedSlices:
    """All ranks' rows in rank order; divided by the number of ranks for an average."""
    size, number = process_set.size(), process_set.group.number
    rows, *rest = [int(d or 0) for d in g.values.shape.as_list()]
    shapes = ((rows * size,), (rows * size, *rest))

    def build(indices: Value, values: Value) -> tuple[Value, ...]:
        places, summed, _ = gather_parts.all(indices, values, shapes=shapes, group=number)
        mean = how.op is ReduceOp.AVG
        return places, summed / ops.declaration.constant_of(size, summed.dtype) if mean else summed

    inputs = [g.indices, g.values]
    with name_scope(None, "HorovodAllgather", inputs) as scope:
        op = get_default_graph().emit("HorovodAllgather", inputs, build, name=scope)
    return IndexedSlices(op.outputs[1], op.outputs[0], g.dense_shape)
