"""`IndexedSlices`: a row-sparse gradient."""

from __future__ import annotations

from typing import Any, NamedTuple

from weft.documentation import Reads
from weft.errors import DTypeError
from weft.ir.node import Value
from weft.ops.indexing.row_sparse import RowSparse
from weft.tf1.framework.dtypes import DType
from weft.tf1.framework.graph import emit, fail, name_scope
from weft.tf1.framework.tensor import Operation, Tensor

__all__ = ["IndexedSlices", "IndexedSlicesValue"]


class IndexedSlicesValue(NamedTuple):
    """The value of `IndexedSlices` returned by a session."""

    values: Any
    indices: Any
    dense_shape: Any


class IndexedSlices:
    """Rows `values[i]` at indices `indices[i]` of a tensor; rows with equal indices add up."""

    def __init__(self, values: Tensor, indices: Tensor, dense_shape: Tensor | None = None) -> None:
        self._values = values
        self._indices = indices
        self._dense_shape = dense_shape

    values = Reads[Tensor]("_values", "The rows.")
    indices = Reads[Tensor]("_indices", "The indices of the rows along the first axis.")
    dense_shape = Reads[Tensor | None]("_dense_shape", "The dense shape, if known.")
    name = Reads[str]("_values.name", "The name of `values`.")
    op = Reads[Operation]("_values.op", "The operation of `values`.")
    dtype = Reads[DType]("_values.dtype", "The element type.")
    graph = Reads[Any]("_values.graph", "The graph of `values`.")
    device = Reads[str]("_values.device", "The device of `values`.")

    def dense(self, name: str | None = None) -> Tensor:
        """The whole tensor.

        Raises:
            DTypeError: `dense_shape` is not known.
        """
        if self._dense_shape is None:
            raise fail(DTypeError, f"expected IndexedSlices with a dense_shape, got {self}")
        given = [self._values, self._indices, self._dense_shape]

        def build(values: Value, indices: Value, shape: Value) -> Value:
            return RowSparse(indices, values, shape).dense()

        with name_scope(name, "IndexedSlices", given) as scope:
            return emit("UnsortedSegmentSum", given, build, name=scope)

    def __repr__(self) -> str:
        return f"IndexedSlices(indices={self._indices}, values={self._values})"
