"""The array: a tensor with NumPy's rules.

What it is stands here; `weft.numpy.method` adds the methods that compute.
"""

# pyright: reportIncompatibleMethodOverride=false
# NumPy's methods take other arguments than PyTorch's of the same name.

from __future__ import annotations

from typing import Any

import numpy as np

from weft.eager.tensor.device import check_device
from weft.eager.tensor.tensor import Tensor
from weft.errors import DTypeError
from weft.numpy.promotion import NUMPY
from weft.ops.base import at_user_line


class ndarray(Tensor):
    """An array whose operations are recorded, and computed when someone looks.

    Operators combine element types as NumPy 2 does; methods are NumPy's, and those of tensors that
    NumPy has not. Whatever is computed from one is one.
    """

    __slots__ = ()
    rules = NUMPY
    __array_priority__ = 1001  # above tensors

    # -- what it is

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.numel()

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one index of an axis to the next."""
        return tuple([s * self.itemsize for s in self.stride()])

    def to_device(self, device: Any, /, *, stream: Any = None) -> ndarray:
        """The array itself, which is in this computer's memory, the only place there is."""
        check_device(device)
        if stream is not None:
            raise DTypeError(f"to_device: expected no stream, got {stream!r}{at_user_line()}")
        return self

    # -- conversions

    def copy(self) -> ndarray:
        """An array of its own with the same elements."""
        return self.clone()  # pyright: ignore[reportReturnType]

    def item(self, *index: int) -> Any:
        """The one element, or the one at an index, as a Python number."""
        place = np.unravel_index(index[0], self.shape) if len(index) == 1 else index
        return Tensor.item(self[tuple([int(i) for i in place])] if index else self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return Tensor.__array__(self, dtype, copy)

    # -- others

    def fill(self, value: Any) -> None:
        """Put one number in every place."""
        self.fill_(value)

    def __repr__(self) -> str:
        inner = np.array2string(self.array, separator=", ", prefix="array(")
        usual = self.dtype.name in ("float64", "int64", "bool", "complex128") and self.numel()
        return f"array({inner})" if usual else f"array({inner}, dtype={self.dtype})"

    def __str__(self) -> str:
        return str(self.array)

    def __format__(self, spec: str) -> str:
        return format(Tensor.item(self), spec) if not self.ndim else str(self)


ndarray.kind = ndarray
