"""`Flatten` and `Unflatten`."""

from __future__ import annotations

import math
from typing import Any, Final

from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import recorded
from weft.errors import DTypeError, ShapeError
from weft.ir.node import Value
from weft.ir.shape import show
from weft.nn.layer.base import Layer, options
from weft.ops.declaration import catalogue

__all__ = ["Flatten", "Unflatten"]


def _reshaped(x: Value, *, shape: tuple[int, ...]) -> Value:
    return catalogue.reshape(x, shape=shape)


_reshape: Final = recorded(_reshaped)


def _axis(name: str, dim: int, shape: tuple[int, ...]) -> int:
    rank = max(len(shape), 1)
    if not -rank <= dim < rank:
        raise ShapeError.here(f"{name}: expected a dimension from {-rank} to {rank - 1}, got {dim}")
    return dim % rank


@options
class Flatten(Layer):
    """Flattens several dimensions into one: by default all but the first.

    Args:
        start_dim: the first of them.
        end_dim: the last of them.
    """

    start_dim: int = 1
    end_dim: int = -1

    def forward(self, input: Any) -> Any:
        """The reshaped input."""
        shape = dims_of(input)
        first, last = _axis("Flatten", self.start_dim, shape), _axis("Flatten", self.end_dim, shape)
        if first > last:
            raise ShapeError.here(
                f"Flatten: expected start_dim before end_dim, got {self.start_dim} and "
                f"{self.end_dim} for shape {show(shape)}"
            )
        inner = math.prod(shape[first : last + 1])
        return _reshape(input, shape=(*shape[:first], inner, *shape[last + 1 :]))


@options
class Unflatten(Layer):
    """Unflattens a dimension into several; one size may be -1.

    Args:
        dim: the dimension.
        unflattened_size: the sizes that it is split into.

    Raises:
        DTypeError: a size is not an integer.
    """

    dim: int
    unflattened_size: Any

    def __post_init__(self) -> None:
        sizes, self.unflattened_size = self.unflattened_size, tuple(self.unflattened_size)
        if not all(isinstance(size, int) for size in self.unflattened_size):
            raise DTypeError.here(f"Unflatten: expected integers, got {sizes!r}")

    def forward(self, input: Any) -> Any:
        """The reshaped input."""
        shape = dims_of(input)
        axis, sizes = _axis("Unflatten", self.dim, shape), self.unflattened_size
        rest = -math.prod(sizes) if -1 in sizes else 0
        if rest and shape[axis] % rest == 0:
            sizes = tuple([shape[axis] // rest if d == -1 else d for d in sizes])
        if math.prod(sizes) != shape[axis]:
            raise ShapeError.here(
                f"Unflatten: expected sizes whose product is {shape[axis]}, got "
                f"{show(self.unflattened_size)}"
            )
        return _reshape(input, shape=(*shape[:axis], *sizes, *shape[axis + 1 :]))
