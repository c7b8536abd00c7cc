"""`tf.nn.embedding_lookup_sparse`: rows of a table, combined by the rows of a sparse tensor."""

from __future__ import annotations

import math
from typing import Any

from weft import ops
from weft.documentation import arguments_of
from weft.errors import ArgumentError, DTypeError
from weft.ir.node import Value
from weft.ops.sparse.combination import (
    combined_rows,
    row_of,
    rows_in,
    segments_of,
    valid_ids,
    with_default,
)
from weft.tf1.elementwise.arithmetic import cast
from weft.tf1.framework.convert import convert_to_tensor, static_value
from weft.tf1.framework.dynamic_shape import dimension
from weft.tf1.framework.graph import emit, fail, get_default_graph, name_scope
from weft.tf1.framework.sparse_tensor import SparseTensor
from weft.tf1.framework.tensor import Tensor
from weft.tf1.indexing.lookup import looked_up, tables_of

__all__ = ["embedding_lookup_sparse", "safe_embedding_lookup_sparse"]

_KINDS = {"sum": "SegmentSum", "mean": "SegmentMean", "sqrtn": "SegmentSqrtN"}


def embedding_lookup_sparse(
    params: Any, sp_ids: SparseTensor, sp_weights: SparseTensor | None,
    partition_strategy: str = "mod", name: str | None = None, combiner: str | None = None,
    max_norm: float | None = None,
) -> Tensor:  # fmt: skip
    """For each row of a sparse matrix of ids, the table's rows at these ids, combined.

    Each row of the matrix has an id, and their order is that of rows. Of a table in parts, a row
    that occurs several times travels once.

    Args:
        params: the table, or a list of its parts along the first axis, or a `PartitionedVariable`.
        sp_ids: the ids, int64.
        sp_weights: a weight for each id, at the same indices; 1 by default.
        partition_strategy: as in `embedding_lookup`.
        name: the scope of the operations.
        combiner: `"sum"` of the weighted rows; `"mean"`: divided by the sum of weights; `"sqrtn"`:
            divided by the root of the sum of their squares.
        max_norm: longer rows of the table are scaled down to this norm.

    Example:
        >>> import weft.tf1 as tf
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     table = tf.constant([[0.0], [1.0], [2.0]])
        ...     ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1, 2, 2], [2, 2])
        ...     found = tf.nn.embedding_lookup_sparse(table, ids, None, combiner="sum")
        ...     session.run(found).tolist()
        [[3.0], [2.0]]
    """
    combiner = _checked(combiner or "mean", sp_ids, sp_weights)
    tables = tables_of(params)
    with name_scope(name, "embedding_lookup_sparse", [*tables, *sp_ids.parts]) as scope:
        rows = looked_up(tables, sp_ids.values, partition_strategy, "embedding_lookup", max_norm,
                         unique=True)  # fmt: skip
        given = [] if sp_weights is None else [cast(sp_weights.values, rows.dtype)]

        def build(x: Value, indices: Value, *weights: Value) -> Value:
            places = indices[:, 0]
            return combined_rows(
                x, weights[0] if weights else None, places, segments_of(places),
                combiner=combiner, is_sorted=True,
            )  # fmt: skip

        return emit(_KINDS[combiner], [rows, sp_ids.indices, *given], build, name=scope)


@arguments_of(embedding_lookup_sparse)
def safe_embedding_lookup_sparse(
    embedding_weights: Any, sparse_ids: SparseTensor, sparse_weights: SparseTensor | None = None,
    combiner: str = "mean", default_id: int | None = None, name: str | None = None,
    partition_strategy: str = "div", max_norm: float | None = None,
) -> Tensor:  # fmt: skip
    """`embedding_lookup_sparse` that leaves out negative ids, and has a result for empty rows.

    Args:
        embedding_weights: the table or its parts.
        sparse_ids: the ids; of a higher rank, its last axis is combined.
        sparse_weights: a weight for each id; ids whose weight is not positive are left out of a
            mean.
        default_id: whose row empty rows get; they are zeros by default.
    """
    combiner = _checked(combiner, sparse_ids, sparse_weights)
    tables = tables_of(embedding_weights)
    with name_scope(name, "embedding_lookup", [*tables, *sparse_ids.parts]) as scope:
        parts = [convert_to_tensor(table, name="params") for table in tables]
        for part in parts:
            _check_type(part, parts[0], sparse_weights)
        kind = parts[0].dtype.base_dtype.ir
        ids, dims = sparse_ids.values, _leading(sparse_ids)
        given = [] if sparse_weights is None else [sparse_weights.values]

        def valid(x: Value, *weights: Value) -> Any:
            return valid_ids(x, weights[0] if weights else None, combiner=combiner, dtype=kind)

        op = get_default_graph().emit("Where", [ids, *given], valid, name="Valid")
        known, weights, there = op.outputs
        rows = looked_up(tables, known, partition_strategy, "lookup", max_norm, unique=True)
        more: list[Tensor] = []
        if default_id is not None:
            first = convert_to_tensor([default_id], ids.dtype)
            more = [looked_up(tables, first, partition_strategy, "default", max_norm)]

        def build(
            x: Value, w: Value, there: Value, indices: Value, shape: Value, *default: Value
        ) -> Value:
            leading: Any = dims if isinstance(dims, list) else [shape[a] for a in range(dims)]
            count = math.prod(dims) if isinstance(dims, list) else rows_in(shape)
            places = row_of(indices, leading)
            y = combined_rows(x, w, places, count, combiner=combiner, guarded=True)
            if default:
                y = with_default(y, default[0], there, places, count)
            if len(leading) == 1:
                return y
            width = [dimension(y, axis) for axis in range(1, y.rank or 1)]
            return ops.reshape(y, shape=[*leading, *width])

        shape = sparse_ids.dense_shape
        inputs = [rows, weights, there, sparse_ids.indices, shape, *more]
        return emit(_KINDS[combiner], inputs, build, name=scope)


def _check_type(part: Tensor, first: Tensor, weights: SparseTensor | None) -> None:
    if part.dtype.base_dtype is not first.dtype.base_dtype:
        text = f"expected parts of one type, got {first} and {part}"
        raise fail(DTypeError, f"safe_embedding_lookup_sparse: {text}")
    if weights is not None and weights.dtype.base_dtype is not first.dtype.base_dtype:
        text = f"expected weights of the table's type, got {weights.values} for {first}"
        raise fail(ArgumentError, f"safe_embedding_lookup_sparse: {text}")


def _leading(ids: SparseTensor) -> list[int] | int:
    """The sizes of all axes but the last, or how many these are."""
    dims = static_value(ids.dense_shape)
    if dims is not None:
        return [int(d) for d in dims[:-1]]
    rank = ids.dense_shape.shape.as_list()[0]
    if rank is None:
        text = f"safe_embedding_lookup_sparse: expected ids of known rank, got {ids}"
        raise fail(ArgumentError, text)
    return rank - 1


def _checked(combiner: str, ids: Any, weights: Any) -> str:
    if combiner not in ("mean", "sqrtn", "sum"):
        text = f"embedding_lookup_sparse: expected combiner mean, sqrtn or sum, got {combiner!r}"
        raise fail(ArgumentError, text)
    for what, given in (("ids", ids), ("weights", weights)):
        if not isinstance(given, SparseTensor) and not (what == "weights" and given is None):
            text = f"embedding_lookup_sparse: expected a SparseTensor of {what}, got {given!r}"
            raise fail(DTypeError, text)
    return combiner
