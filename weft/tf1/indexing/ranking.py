"""The k largest elements."""

from __future__ import annotations

from typing import Any, NamedTuple

from weft import ops
from weft.errors import GraphError, ShapeError
from weft.ir.node import Value
from weft.ops.metric.decision import in_top_k as ranked
from weft.tf1.framework import dtypes
from weft.tf1.framework.convert import convert_to_tensor, static_value
from weft.tf1.framework.graph import emit, fail, get_default_graph, name_scope
from weft.tf1.framework.tensor import Tensor

__all__ = ["in_top_k", "top_k"]


def top_k(input: Any, k: Any = 1, sorted: bool = True, name: str | None = None) -> Any:
    """The k largest elements of the last axis, in descending order, and their indices."""
    del sorted
    known = static_value(k)
    if known is None:
        raise fail(GraphError, "top_k: expected a k that is known now")
    with name_scope(name, "TopKV2", [input]) as scope:
        tensor = convert_to_tensor(input, name="input")
        last = tensor.shape.as_list()[-1] if tensor.shape.ndims else None
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
