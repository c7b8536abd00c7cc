"""Row-sparse arrays: gradients of lookups, kept as rows until needed dense."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from weft.ir.dtype import DType, int64
from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.ops.shape.creation import full

__all__ = ["RowSparse"]


@dataclass(frozen=True, eq=False)
class RowSparse:
    """An array with few nonzero rows: row `indices[i]` is the sum of its `values[i]`.

    Args:
        indices: shape (n,), integers; a row may occur several times.
        values: shape (n, ...), the rows.
        shape: of the dense array: dimensions, or a value that computes them.
    """

    indices: Value
    values: Value
    shape: Any

    @property
    def dtype(self) -> DType:
        """The dtype of the rows."""
        return self.values.dtype

    def dense(self) -> Value:
        """The dense array."""
        return self.added_to(full(self.shape, 0, self.dtype))

    def added_to(self, x: Value) -> Value:
        """The sum with a dense array."""
        return catalogue.scatter_add(x, self.indices, self.values)


Cotangent = Value | RowSparse
"""A gradient, dense or row-sparse."""


def dense(g: Cotangent) -> Value:
    """A cotangent as one value."""
    return g.dense() if isinstance(g, RowSparse) else g


def sum_rows(parts: Sequence[RowSparse]) -> RowSparse:
    """The sum of row-sparse arrays of one shape: their rows concatenated."""
    if len(parts) == 1:
        return parts[0]
    kinds = {p.indices.dtype for p in parts}
    indices = [p.indices for p in parts]
    if len(kinds) > 1:
        indices = [catalogue.cast(i, dtype=int64) for i in indices]
    rows = catalogue.concatenate(*[p.values for p in parts], axis=0)
    return RowSparse(catalogue.concatenate(*indices, axis=0), rows, parts[0].shape)
