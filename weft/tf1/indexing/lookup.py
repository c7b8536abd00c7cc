"""Table lookups, top k."""

from __future__ import annotations

from typing import Any, NamedTuple

from weft import ops
from weft.errors import GraphError, ShapeError
from weft.ir.node import Value
from weft.ops.metric.decision import in_top_k as ranked
from weft.tf1 import reduction
from weft.tf1.elementwise import arithmetic
from weft.tf1.framework import dtypes
from weft.tf1.framework.convert import convert_to_tensor, require_kind, static_value
from weft.tf1.framework.graph import emit, fail, get_default_graph, name_scope
from weft.tf1.framework.tensor import Tensor

__all__ = ["embedding_lookup", "in_top_k", "top_k"]


# lookups
def embedding_lookup(
    params: Any, ids: Any, partition_strategy: str = "mod", name: str | None = None,
    validate_indices: bool = True, max_norm: float | None = None,
) -> Tensor:  # fmt: skip
    """The rows of `params` at `ids`; the gradient stays row-sparse."""
    del partition_strategy, validate_indices
    tables = list(params) if isinstance(params, list | tuple) else [params]
    if len(tables) != 1:
        raise fail(GraphError, f"embedding_lookup: expected one table, got {len(tables)}")
    with name_scope(name, "embedding_lookup", [tables[0], ids]):
        table = convert_to_tensor(tables[0], name="params")
        where = convert_to_tensor(ids, name="ids")
        require_kind("embedding_lookup", where, lambda d: d.is_integer, "integer ids")
        found = emit("Identity", [table, where], "gather", name="Identity")
        if max_norm is None:
            return found
        axes = list(range(where.shape.ndims or 0, table.shape.ndims or 1))
        norms = arithmetic.sqrt(reduction.reduce_sum(found * found, axes, keepdims=True))
        return found * (max_norm / arithmetic.maximum(norms, max_norm))


def top_k(input: Any, k: Any = 1, sorted: bool = True, name: str | None = None) -> Any:
    """The k largest elements of the last axis, in descending order, and their indices."""
    del sorted
    known = static_value(k)
    if known is None:
        raise fail(GraphError, "top_k: expected a k that is known now")
    with name_scope(name, "TopKV2", [input]) as scope:
        tensor = convert_to_tensor(input, name="input")
        last = tensor.shape[-1].value if tensor.shape.ndims else None
        if last is not None and int(known) > last:
            raise fail(ShapeError, f"top_k: expected k <= {last}, got {int(known)}")

        def build(x: Value) -> tuple[Value, Value]:
            values, indices = ops.top_k.all(x, k=int(known))
            kind = dtypes.int32.ir
            return values, indices if indices.dtype is kind else ops.cast(indices, dtype=kind)

        op = get_default_graph().emit("TopKV2", [tensor], build, name=scope)
    return TopKV2(op.outputs[0], op.outputs[1])


class TopKV2(NamedTuple):
    """The result of `top_k`."""

    values: Tensor
    indices: Tensor


def in_top_k(predictions: Any, targets: Any, k: int, name: str | None = None) -> Tensor:
    """Whether each row's class in `targets` has one of the k largest predictions.

    A target that is not a class never has.
    """
    with name_scope(name, "in_top_k", [predictions, targets]):
        scores = convert_to_tensor(predictions, dtypes.float32)
        where = convert_to_tensor(targets)

        return emit("InTopKV2", [scores, where], ranked, name="InTopKV2", k=k)
