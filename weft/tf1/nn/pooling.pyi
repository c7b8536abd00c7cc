"""Made by `python -m tools.stubs`."""

from collections.abc import Sequence
from typing import Any
from weft.tf1.framework.tensor import Tensor

def max_pool(value: Any = ..., ksize: Any = ..., strides: Any = ..., padding: Any = ..., data_format: str = ..., name: str | None = ..., input: Any = ...) -> Tensor:
    """Max pooling of images."""

def avg_pool(value: Any = ..., ksize: Any = ..., strides: Any = ..., padding: Any = ..., data_format: str = ..., name: str | None = ..., input: Any = ...) -> Tensor:
    """Average pooling of images; padding is not counted."""

def max_pool3d(input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = ..., name: str | None = ...) -> Tensor:
    """Max pooling of volumes."""

def avg_pool3d(input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = ..., name: str | None = ...) -> Tensor:
    """Average pooling of volumes."""

def pool(input: Any, window_shape: Sequence[int], pooling_type: str, padding: Any, dilation_rate: Any = ..., strides: Any = ..., name: str | None = ..., data_format: str | None = ..., dilations: Any = ...) -> Tensor:
    """Pooling in one, two or three dimensions; strides are 1 by default."""

__all__ = [
    "avg_pool",
    "avg_pool3d",
    "max_pool",
    "max_pool3d",
    "pool",
]
