"""`SparseTensor`: values at some indices of a tensor that is 0 elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from weft.documentation import Reads
from weft.errors import FeedError
from weft.tf1.framework import dtypes
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.tensor import OPERATORS, Tensor

__all__ = ["SparseTensor", "SparseTensorValue"]


class SparseTensorValue(NamedTuple):
    """The value of a `SparseTensor` returned by a session or fed."""

    indices: Any
    values: Any
    dense_shape: Any


class SparseTensor:
    """Values at indices, in the indices' order.

    Args:
        indices: int64, [number, rank].
        values: [number].
        dense_shape: int64, [rank].
    """

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        self._indices = convert_to_tensor(indices, name="indices", dtype=dtypes.int64)
        self._values = convert_to_tensor(values, name="values")
        self._values.set_shape([None])
        self._dense_shape = convert_to_tensor(dense_shape, name="dense_shape", dtype=dtypes.int64)

    indices = Reads[Tensor]("_indices", "The indices.")
    values = Reads[Tensor]("_values", "The values.")
    dense_shape = Reads[Tensor]("_dense_shape", "The dense shape.")
    dtype = Reads[dtypes.DType]("_values.dtype", "The element type.")
    graph = Reads[Any]("_values.graph", "The graph of its parts.")

    @property
    def parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """Indices, values and shape."""
        return self._indices, self._values, self._dense_shape

    def __mul__(self, other: Any) -> SparseTensor:
        """Values times those of a dense tensor, which is broadcast, at their indices."""
        return self._with("mul", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> SparseTensor:
        """Values divided by those of a dense tensor, which is broadcast, at their indices."""
        return self._with("truediv", other)

    def _with(self, operator: str, other: Any) -> SparseTensor:
        dense = convert_to_tensor(other, dtype=self.dtype.base_dtype)
        found = OPERATORS[operator](self._values, OPERATORS["broadcast_at"](dense, self._indices))
        return SparseTensor(self._indices, found, self._dense_shape)

    def __repr__(self) -> str:
        return f"SparseTensor(indices={self.indices}, values={self.values})"


def spread_feeds(feeds: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Feeds with those of sparse tensors and of tuples replaced by feeds of their parts.

    Raises:
        FeedError: a sparse tensor's feed does not have three parts.
    """
    if not any([isinstance(key, SparseTensor | tuple) for key in feeds]):
        return feeds
    found: dict[Any, Any] = {}
    for key, value in feeds.items():
        if isinstance(key, tuple):
            if len(key) != len(value):
                text = f"expected {len(key)} values for a tuple of tensors, got {len(value)}"
                raise FeedError(f"feed_dict: {text}")
            found.update(spread_feeds(dict(zip(key, value, strict=True))))
        elif not isinstance(key, SparseTensor):
            found[key] = value
        elif isinstance(value, tuple | list) and len(value) == 3:
            shapes = [(-1, np.size(value[2])), (-1,), (-1,)]
            for part, given, shape in zip(key.parts, value, shapes, strict=True):
                found[part] = np.asarray(given).reshape(shape)
        else:
            raise FeedError(
                "feed_dict: expected (indices, values, dense_shape) for a SparseTensor, got "
                f"{value!r:.80}"
            )
    return found
