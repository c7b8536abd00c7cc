"""What a variable begins with."""

from __future__ import annotations

from typing import Any

from weft.errors import ShapeError
from weft.tf1.framework.convert import convert_to_tensor, is_tensor
from weft.tf1.framework.default_graph import device
from weft.tf1.framework.dtypes import DType
from weft.tf1.framework.graph import fail, name_scope
from weft.tf1.framework.tensor import Tensor
from weft.tf1.framework.tensor_shape import TensorShape, as_shape


def initial_tensor(initial: Any, dtype: DType | None) -> Tensor:
    """The tensor of an initial value, or of what a function makes as one."""
    if not callable(initial) or is_tensor(initial):
        return convert_to_tensor(initial, name="initial_value", dtype=dtype)
    with name_scope("Initializer"), device(None):
        return convert_to_tensor(initial(), name="initial_value", dtype=dtype)


def declared_shape(initial: Tensor, shape: Any, validate: bool) -> TensorShape:
    """The shape of a variable: what is given, or that of its initial value.

    Raises:
        ShapeError: neither is known.
    """
    if shape is not None:
        return as_shape(shape)
    if not validate and initial.shape.ndims is not None:
        return TensorShape([None] * initial.shape.ndims)
    if not initial.shape.is_fully_defined():
        what, advice = ("shape", "; or pass validate_shape=False") if validate else ("rank", "")
        raise fail(
            ShapeError,
            f"Variable: expected an initial value of known {what}, got {initial}{advice}",
        )
    return initial.shape
