"""`IndexedSlices`: a row-sparse gradient."""

from __future__ import annotations

from typing import Any, NamedTuple

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

    @property
    def values(self) -> Tensor:
        """The rows."""
        return self._values

    @property
    def indices(self) -> Tensor:
        """The indices of the rows along the first axis."""
        return self._indices

    @property
    def dense_shape(self) -> Tensor | None:
        """The dense shape, if known."""
        return self._dense_shape

    @property
    def name(self) -> str:
        """The name of `values`."""
        return self._values.name

    @property
    def op(self) -> Operation:
        """The operation of `values`."""
        return self._values.op

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._values.dtype

    @property
    def graph(self) -> Any:
        """The graph of `values`."""
        return self._values.graph

    @property
    def device(self) -> str:
        """The device of `values`."""
        return self._values.device

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
