"""`TensorSpec`: the shape and type of a tensor that is given later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from weft.tf1.framework.dtypes import as_dtype
from weft.tf1.framework.tensor_shape import as_shape

__all__ = ["TensorSpec"]


@dataclass(frozen=True)
class TensorSpec:
    """The shape and type of a tensor, for `input_signature`, or of a dataset's elements.

    Attributes:
        shape: with `None` for sizes that vary.
        dtype: the element type.
        name: accepted.

    >>> TensorSpec([None, 3])
    TensorSpec(shape=(?, 3), dtype=tf.float32, name=None)
    """

    shape: Any
    dtype: Any = "float32"
    name: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", as_shape(self.shape))
        object.__setattr__(self, "dtype", as_dtype(self.dtype))

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype!r}, name={self.name!r})"
