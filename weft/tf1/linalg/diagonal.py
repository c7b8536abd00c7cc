"""Diagonals, bands and transposes of matrices."""

from __future__ import annotations

import builtins
from typing import Any

from weft import ops
from weft.errors import GraphError, ShapeError
from weft.ir.node import Value
from weft.tf1.framework import dtypes
from weft.tf1.framework.convert import convert_to_tensor, same_type, static_value, unary
from weft.tf1.framework.graph import emit, fail, name_scope
from weft.tf1.framework.option import only
from weft.tf1.framework.tensor import Tensor
from weft.tf1.shaping.arrangement import transpose

__all__ = [
    "diag", "diag_part", "matrix_band_part", "matrix_diag", "matrix_diag_part", "matrix_set_diag",
    "matrix_transpose", "trace",
]  # fmt: skip


def matrix_transpose(a: Any, name: str = "matrix_transpose", conjugate: bool = False) -> Tensor:
    """The last two axes swapped."""
    with name_scope(name, "matrix_transpose", [a]):
        tensor = convert_to_tensor(a, name="a")
        count = len(tensor.shape)
        order = [*builtins.range(count - 2), count - 1, count - 2]
        return transpose(tensor, order, conjugate=conjugate)


def matrix_diag(diagonal: Any, name: str = "diag", **others: Any) -> Tensor:
    """Matrices with these diagonals."""
    only("matrix_diag", others, k=0, num_rows=-1, num_cols=-1, padding_value=0)

    def build(d: Value) -> Value:
        count = d.shape[-1] if d.shape is not None else None
        if count is None:
            count = ops.shape_of(d)[-1]
        mask = ops.eye(count, count, d.dtype)
        return ops.expand_dims(d, axis=-1) * mask

    return unary("MatrixDiagV3", build, diagonal, name, "diag")


def diag(diagonal: Any, name: str | None = None) -> Tensor:
    """The matrix with this diagonal."""
    tensor = convert_to_tensor(diagonal)
    if tensor.shape.ndims not in (None, 1):
        raise fail(ShapeError, f"diag: expected a vector, got shape {tensor.shape}")

    def build(d: Value) -> Value:
        count = (d.shape or (None,))[0]
        if count is None:
            count = ops.shape_of(d)[0]
        return ops.expand_dims(d, axis=-1) * ops.eye(count, count, d.dtype)

    return unary("Diag", build, tensor, name)


def _diagonal(x: Value) -> Value:
    assert x.shape is not None
    rows, columns = x.shape[-2:]
    if rows is None or columns is None:
        raise fail(ShapeError, "diag_part: expected a matrix of known shape")
    count = min(rows, columns)
    square = ops.subscript(x, (..., builtins.slice(0, count), builtins.slice(0, count)))
    return ops.sum(square * ops.eye(count, count, x.dtype), axes=(-1,))


def diag_part(input: Any, name: str | None = None) -> Tensor:
    """The diagonal of a square matrix."""
    return unary("DiagPart", _diagonal, input, name)


def matrix_diag_part(input: Any, name: str = "diag_part", **others: Any) -> Tensor:
    """The diagonals of matrices."""
    only("matrix_diag_part", others, k=0, padding_value=0)
    return unary("MatrixDiagPartV3", _diagonal, input, name)


def matrix_set_diag(input: Any, diagonal: Any, name: str = "set_diag", **others: Any) -> Tensor:
    """Square matrices with their diagonals replaced."""
    only("matrix_set_diag", others, k=0)
    with name_scope(name, "set_diag", [input, diagonal]) as scope:
        x, d = same_type("matrix_set_diag", input, diagonal)

        def build(m: Value, v: Value) -> Value:
            assert m.shape is not None
            rows, columns = m.shape[-2:]
            mask = ops.eye(rows, columns, dtypes.bool_.ir)
            return ops.select(mask, ops.expand_dims(v, axis=-1), m)

        return emit("MatrixSetDiagV3", [x, d], build, name=scope)


def matrix_band_part(input: Any, num_lower: Any, num_upper: Any, name: str | None = None) -> Tensor:
    """Matrices with zeros outside a band of diagonals around the main one; -1 keeps all."""
    bounds = [static_value(v) for v in (num_lower, num_upper)]
    if None in [None if b is None else 0 for b in bounds]:
        raise fail(GraphError, "matrix_band_part: expected bounds that are known now")
    lower, upper = (None if int(b) < 0 else int(b) for b in bounds)  # pyright: ignore[reportArgumentType]
    return unary("MatrixBandPart", "band_part", input, name, lower=lower, upper=upper)


def trace(x: Any, name: str | None = None) -> Tensor:
    """The sum of the diagonal of each matrix."""
    return unary("Sum", lambda v: ops.sum(_diagonal(v), axes=(-1,)), x, name, "Trace")
