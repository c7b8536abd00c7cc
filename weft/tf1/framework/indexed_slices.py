"""`IndexedSlices`: a gradient of which only some rows are given."""

from __future__ import annotations

from typing import Any, NamedTuple

from weft.tf1.framework.dtypes import DType
from weft.tf1.framework.tensor import Operation, Tensor


class IndexedSlicesValue(NamedTuple):
    """What a session returns for `IndexedSlices`."""

    values: Any
    indices: Any
    dense_shape: Any


class IndexedSlices:
    """Rows `values[i]` at positions `indices[i]` of a tensor; equal positions add up."""

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
        """The positions of the rows along the first axis."""
        return self._indices

    @property
    def dense_shape(self) -> Tensor | None:
        """The shape of the whole tensor, if it is known."""
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

    def __repr__(self) -> str:
        return f"IndexedSlices(indices={self._indices}, values={self._values})"
