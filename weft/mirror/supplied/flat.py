"""`torch._utils`: tensors that are joined into one, and parts of one as tensors again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.eager.functions.shape.joining import cat
from weft.eager.tensor.tensor import Tensor

__all__ = ["flatten_dense_tensors", "unflatten_dense_tensors"]


def flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """All elements of tensors of one type, in order, as a vector."""
    return cat([x.reshape(-1) for x in tensors])


def unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Any, ...]:
    """The parts of a vector in the shapes of these tensors: views of it."""
    parts = flat.split([x.numel() for x in tensors])
    return tuple([part.view(x.shape) for part, x in zip(parts, tensors, strict=True)])
