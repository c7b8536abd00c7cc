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
    is_cuda = is_sparse = False

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


def _typed(dtype: DType, name: str) -> _Typed:
    members = {"dtype": dtype, "__doc__": f"Tensors of {dtype}.", "__module__": __name__}
    return _Typed(name, (), members)


DoubleTensor = _typed(types.float64, "DoubleTensor")
HalfTensor = _typed(types.float16, "HalfTensor")
BFloat16Tensor = _typed(types.bfloat16, "BFloat16Tensor")
LongTensor = _typed(types.int64, "LongTensor")
IntTensor = _typed(types.int32, "IntTensor")
ShortTensor = _typed(types.int16, "ShortTensor")
CharTensor = _typed(types.int8, "CharTensor")
ByteTensor = _typed(types.uint8, "ByteTensor")
BoolTensor = _typed(types.bool_, "BoolTensor")
