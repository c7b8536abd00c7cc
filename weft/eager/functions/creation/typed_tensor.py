"""PyTorch's legacy tensor types: `wf.LongTensor([1, 2])`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.eager.functions.creation.constructor import of_type
from weft.eager.tensor.handle import Handle
from weft.ir import dtype as types
from weft.ir.dtype import DType

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = [
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor",
    "HalfTensor", "IntTensor", "LongTensor", "ShortTensor",
]  # fmt: skip


class _Typed(type):
    """A tensor type: constructs tensors of one dtype, and recognizes them in `isinstance`."""

    dtype: DType

    def __call__(cls, *given: Any, size: Any = None, device: Any = None) -> Tensor:
        """A tensor from a list, or an uninitialized one with a shape."""
        return of_type(cls.dtype, given, size, device)

    def __new__(mcs, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> _Typed:
        if bases:
            raise TypeError(f"{bases[0].__name__} is no class to inherit from; take Tensor")
        return super().__new__(mcs, name, bases, members)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Handle) and instance.lazy.type.dtype is cls.dtype


class FloatTensor(metaclass=_Typed):
    """Tensors of float32.

    >>> import weft as wf
    >>> x = wf.FloatTensor([1, 2])
    >>> x.tolist(), isinstance(x, wf.FloatTensor), tuple(wf.FloatTensor(2, 3).shape)
    ([1.0, 2.0], True, (2, 3))
    """

    dtype = types.float32


class DoubleTensor(metaclass=_Typed):
    """Tensors of float64."""

    dtype = types.float64


class HalfTensor(metaclass=_Typed):
    """Tensors of float16."""

    dtype = types.float16


class BFloat16Tensor(metaclass=_Typed):
    """Tensors of bfloat16."""

    dtype = types.bfloat16


class LongTensor(metaclass=_Typed):
    """Tensors of int64."""

    dtype = types.int64


class IntTensor(metaclass=_Typed):
    """Tensors of int32."""

    dtype = types.int32


class ShortTensor(metaclass=_Typed):
    """Tensors of int16."""

    dtype = types.int16


class CharTensor(metaclass=_Typed):
    """Tensors of int8."""

    dtype = types.int8


class ByteTensor(metaclass=_Typed):
    """Tensors of uint8."""

    dtype = types.uint8


class BoolTensor(metaclass=_Typed):
    """Tensors of bool."""

    dtype = types.bool_
