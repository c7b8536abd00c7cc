"""Sorting, permutations, and space to depth."""

from __future__ import annotations

import builtins
from typing import Any

from weft import ops
from weft.documentation import named
from weft.errors import GraphError, nameless
from weft.ir import dtype as types
from weft.ir.node import Value
from weft.ops.indexing.permutation import inverse_permutation
from weft.ops.metric.decision import confusion
from weft.ops.refusal import shown
from weft.tf1.framework import dtypes
from weft.tf1.framework.convert import convert_to_tensor, unary
from weft.tf1.framework.dtypes import as_dtype
from weft.tf1.framework.dynamic_shape import dimension
from weft.tf1.framework.graph import emit, fail, name_scope
from weft.tf1.framework.tensor import Tensor

__all__ = [
    "argsort", "confusion_matrix", "depth_to_space", "invert_permutation", "sort", "space_to_depth",
]  # fmt: skip


def invert_permutation(x: Any, name: str | None = None) -> Tensor:
    """The inverse of a permutation."""
    return unary("InvertPermutation", inverse_permutation, x, name)


def sort(
    values: Any, axis: int = -1, direction: str = "ASCENDING", name: str | None = None
) -> Tensor:
    """The elements sorted along `axis`."""
    descending = _descending(direction)
    with name_scope(name, "sort", [values]):
        return unary(
            "Sort", lambda x: ops.sort.all(x, axis=axis, descending=descending)[0], values, None
        )


def argsort(
    values: Any, axis: int = -1, direction: str = "ASCENDING", stable: bool = False,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The indices that sort the elements along `axis`; the sort is stable."""
    del stable
    descending = _descending(direction)

    def build(x: Value) -> Value:
        found = ops.argsort(x, axis=axis, descending=descending)
        return found if found.dtype is dtypes.int32.ir else ops.cast(found, dtype=dtypes.int32.ir)

    with name_scope(name, "argsort", [values]):
        return unary("TopKV2", build, values, None)


def _descending(direction: str) -> bool:
    if direction not in ("ASCENDING", "DESCENDING"):
        text = f"direction: expected ASCENDING or DESCENDING, got {shown(direction)}"
        raise nameless(fail(GraphError, text))
    return direction == "DESCENDING"


def confusion_matrix(
    labels: Any, predictions: Any, num_classes: int | None = None, dtype: Any = dtypes.int32,
    name: str | None = None, weights: Any = None,
) -> Tensor:  # fmt: skip
    """Counts of pairs of label (row) and predicted class (column)."""
    if num_classes is None:
        raise fail(GraphError, "confusion_matrix: expected num_classes")
    kind = as_dtype(dtype)
    with name_scope(name, "confusion_matrix", [labels, predictions]):
        classes = [convert_to_tensor(x) for x in (labels, predictions)]
        scale = [] if weights is None else [convert_to_tensor(weights, kind)]

        def build(y: Value, p: Value, *scales: Value) -> Value:
            ones = ops.ones_like(ops.cast(y, dtype=kind.ir))
            weight = scales[0] * ones if scales else ones
            y, p = (ops.cast(x, dtype=types.int64) for x in (y, p))
            total = confusion(y, p, weight, classes=num_classes)[:-1]
            for what, numbers in (("labels", y), ("predictions", p)):
                text = f"confusion_matrix: expected {what} from 0 to {num_classes - 1}"
                wrong = ops.count_outside(numbers, 0, num_classes - 1)
                total = ops.check(total, wrong, text=text)
            return ops.reshape(total, shape=(num_classes, num_classes))

        return emit("Sum", [*classes, *scale], build, name="Sum")


# images
def _of_blocks(title: str, kind: str, into_depth: bool, doc: str):
    @named(title, doc)
    def rearranged(
        input: Any, block_size: int, name: str | None = None, data_format: str = "NHWC"
    ) -> Tensor:
        _require_nhwc(title, data_format)

        def build(x: Value) -> Value:
            n, h, w, c = [dimension(x, i) for i in builtins.range(4)]
            b = block_size
            if into_depth:
                blocks, dims = [n, h // b, b, w // b, b, c], [n, h // b, w // b, b * b * c]
            else:
                blocks, dims = [n, h, w, b, b, c // (b * b)], [n, h * b, w * b, c // (b * b)]
            x = ops.transpose(ops.reshape(x, shape=blocks), perm=(0, 1, 3, 2, 4, 5))
            return ops.reshape(x, shape=dims)

        return unary(kind, build, input, name)

    return rearranged


space_to_depth = _of_blocks(
    "space_to_depth", "SpaceToDepth", True, "Moves blocks of pixels into channels."
)
depth_to_space = _of_blocks(
    "depth_to_space", "DepthToSpace", False, "Moves channels into blocks of pixels."
)


def _require_nhwc(kind: str, data_format: str) -> None:
    if data_format != "NHWC":
        raise fail(GraphError, f"{kind}: expected data_format NHWC, got {data_format!r}")
