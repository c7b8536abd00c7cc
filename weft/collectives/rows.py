"""Row-sparse gradients of embedding tables: ranks exchange the rows that they looked up."""

from __future__ import annotations

from collections.abc import Sequence

from weft.collectives.recorded import await_result
from weft.eager.record.call.plan import Plan, function_plan, plan_of, recall, remember
from weft.eager.record.memory.result import rows_of
from weft.eager.record.pending.lazy import Lazy
from weft.eager.record.pending.state import trace
from weft.errors import DistributedError
from weft.ir.dtype import int64
from weft.ir.node import TensorType, Value
from weft.ir.shape import known
from weft.ops.communication.shard import gather_parts
from weft.ops.declaration import catalogue, constant_of
from weft.ops.indexing.row_sparse import Cotangent, RowSparse
from weft.transport.group import Group


def reduce_rows(
    gs: Sequence[Lazy], counts: Sequence[int], group: Group, reduction: str = "mean"
) -> list[Lazy]:  # fmt: skip
    """Record the mean, or the sum, over ranks of row-sparse gradients; the results are row-sparse.

    All ranks add the same rows in rank order, so they get the same bits.

    Args:
        counts: the number of rows of each gradient that a rank sends; missing ones are padded with
            zeros.
        reduction: `mean` or `sum`.
    """
    plan = _plan([g.type for g in gs], tuple(counts), group, reduction)
    reduced = trace.now.record(plan, tuple(gs))
    await_result(reduced[0])
    results: list[Lazy] = []
    for g, indices, rows in zip(gs, reduced[::2], reduced[1::2], strict=True):
        types, static = (indices.type, rows.type), {"shape": known(g.type.shape)}
        whole = function_plan(rows_of, types, static, differentiable=False)
        results.append(trace.now.record(whole, (indices, rows))[0])
    return results


def _plan(
    types: Sequence[TensorType], counts: tuple[int, ...], group: Group, reduction: str
) -> Plan:  # fmt: skip
    key = ("reduced rows", tuple(map(id, types)), counts, group.number, reduction)
    plan = recall(key)
    if plan is not None:
        return plan
    results: list[TensorType] = []
    for of, shape in zip(types, _shapes(types, counts, group), strict=True):
        results += [TensorType(int64, shape[:1]), TensorType(of.dtype, shape)]

    def expand(*gs: Cotangent) -> list[Value]:
        rows = _gathered(gs, counts, _shapes(types, counts, group), group)
        if reduction == "sum":
            return rows
        ranks = constant_of(group.size, rows[1].dtype)
        return [x / ranks if i % 2 else x for i, x in enumerate(rows)]

    found = remember(key, plan_of("reduce_rows", types, results, expand, False))
    found.pattern.takes_rows = found.pattern.needs_rows = True
    return found


def _shapes(
    types: Sequence[TensorType], counts: Sequence[int], group: Group
) -> list[tuple[int, ...]]:
    """The shape of all ranks' rows, for each gradient."""
    return [
        (count * group.size, *known(of.shape)[1:]) for of, count in zip(types, counts, strict=True)
    ]


def _gathered(
    gs: Sequence[Cotangent], counts: Sequence[int], shapes: Sequence[tuple[int, ...]], group: Group
) -> list[Value]:
    parts: list[Value] = []
    for g, count in zip(gs, counts, strict=True):
        if not isinstance(g, RowSparse):
            raise DistributedError("expected a row-sparse gradient, got a dense one")
        parts += _padded(g, count)
    whole = [shape for rows in shapes for shape in (rows[:1], rows)]
    return list(gather_parts.all(*parts, shapes=tuple(whole), group=group.number)[: len(whole)])


def _padded(g: RowSparse, count: int) -> tuple[Value, Value]:
    """Indices and rows of a gradient, padded by rows of zeros for its first index."""
    indices = catalogue.cast(g.indices, dtype=int64)
    missing = count - known(indices.shape)[0]
    if not missing:
        return indices, g.values
    first = catalogue.broadcast_to(catalogue.slice(indices, begin=(0,), end=(1,)), shape=(missing,))
    ends = ((0, missing), *((0, 0),) * (len(known(g.values.shape)) - 1))
    rows = catalogue.pad(g.values, paddings=ends)
    return catalogue.concatenate(indices, first, axis=0), rows
