"""In-place methods: `x.add_(y)`, `x += y`, `x.zero_()`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from weft.documentation import named
from weft.eager.functions.elementwise import operator, selection
from weft.eager.record.call.placed_type import device_of
from weft.eager.record.pending.state import computing
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.device import moved
from weft.eager.tensor.dispatch import cast, converted, lazy_of
from weft.eager.tensor.dispatch import wrap as wrap_tensor
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.scalar import element
from weft.eager.tensor.view.inplace import filled, undisturbed, write
from weft.errors import DTypeError, ShapeError
from weft.ir.shape import show

T = TypeVar("T", bound=Handle)


def changing(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The in-place method for `function(tensor, ...)`."""

    @named(name, f"`{name.strip('_=')}` in place; returns the tensor itself.")
    def method(self: T, *args: Any, **options: Any) -> T:
        with computing:  # other threads may change other elements
            result = function(self, *args, **options)
            return result if result is NotImplemented else write(self, result.lazy, name)

    method.__wrapped__ = function  # type: ignore[attr-defined]  # whose parameters it has
    return method


class Methods(Handle):
    """In-place changes.

    All raise `GradientError` for a leaf that requires grad outside `no_grad()`, `DTypeError` if the
    result's dtype does not fit, and `ShapeError` if it is larger.
    """

    def fill_(self, value: Any) -> Any:
        """Fill with `value`."""
        lazy = self.lazy
        filler = (
            value.lazy if isinstance(value, Handle) else element(value, lazy.type.dtype, self.rules)
        )
        if filler.type.shape != ():
            raise DTypeError.here(
                f"fill_: expected a number, got a tensor of shape {show(filler.type.shape)}; use "
                f"copy_()"
            )
        return write(self, filled.record((self, cast(filler, lazy.type.dtype)), {})[0], "fill_")

    def zero_(self) -> Any:
        """Fill with 0."""
        return self.fill_(0)

    def copy_(self, src: Any, non_blocking: bool = False) -> Any:
        """Copy the elements of another tensor, which may have another dtype and broadcasts.

        Args:
            non_blocking: no effect.
        """
        source = converted(lazy_of(src), self.lazy.type.dtype)
        source = moved(source, device_of(self.lazy.type))
        return write(self, filled.record((self, source), {})[0], "copy_")

    @undisturbed
    def fill_diagonal_(self, fill_value: Any, wrap: bool = False) -> Any:
        """Fill the main diagonal with `fill_value`.

        Args:
            wrap: in a tall matrix, start the diagonal again below its end.

        Raises:
            ShapeError: a rank below 2, or above 2 with different sizes.
        """
        dims = dims_of(self)
        if len(dims) < 2 or (len(dims) > 2 and len(set(dims)) > 1):
            raise ShapeError.here(
                f"fill_diagonal_: expected a matrix, or more axes of one size, got {show(dims)}"
            )
        step = sum([dims[-1] ** k for k in range(len(dims))])
        end = dims[1] ** 2 if len(dims) == 2 and not wrap else math.prod(dims)
        places = np.arange(0, min(end, math.prod(dims)), step)
        tensor: Any = self
        if isinstance(fill_value, Handle):
            fill_value = wrap_tensor(converted(fill_value.lazy, self.lazy.type.dtype))
        tensor[np.unravel_index(places, dims)] = fill_value
        return tensor

    @undisturbed
    def masked_fill_(self, mask: Any, value: Any) -> Any:
        """Fill with `value` where the mask is true."""
        return write(self, selection.masked_fill(self, mask, value).lazy, "masked_fill_")

    __iadd__ = changing(operator.PLUS, "+=")
    __isub__ = changing(operator.MINUS, "-=")
    __imul__ = changing(operator.TIMES, "*=")
    __itruediv__ = changing(operator.OVER, "/=")
    __ifloordiv__ = changing(operator.OVER_WHOLE, "//=")
    __imod__ = changing(operator.MODULO, "%=")
    __ipow__ = changing(operator.power_of, "**=")
    __iand__ = changing(operator.AND, "&=")
    __ior__ = changing(operator.OR, "|=")
    __ixor__ = changing(operator.XOR, "^=")
    __ilshift__ = changing(operator.LEFT, "<<=")
    __irshift__ = changing(operator.RIGHT, ">>=")
