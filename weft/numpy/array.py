"""The array: a tensor with NumPy's rules.

The class is defined here; `weft.numpy.method` adds the methods that compute.
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


class ndarray(Tensor):
    """An array whose operations are recorded, and computed when a value is read.

    Operators promote dtypes as in NumPy 2. Methods are NumPy's, plus tensor methods that NumPy
    lacks. Results of operations are arrays, too.
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
        """Strides of the axes in bytes."""
        return tuple([s * self.itemsize for s in self.stride()])

    def to_device(self, device: Any, /, *, stream: Any = None) -> ndarray:
        """The array itself: the only device is the CPU."""
        check_device(device)
        if stream is not None:
            raise DTypeError.here(f"to_device: expected no stream, got {stream!r}")
        return self

    # -- conversions

    def copy(self) -> ndarray:
        """A copy of the array."""
        return self.clone()  # pyright: ignore[reportReturnType]

    def item(self, *index: int) -> Any:
        """The only element, or the one at an index, as a Python number."""
        place = np.unravel_index(index[0], self.shape) if len(index) == 1 else index
        return Tensor.item(self[tuple([int(i) for i in place])] if index else self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return Tensor.__array__(self, dtype, copy)

    # -- others

    def fill(self, value: Any) -> None:
        """Fill with a number."""
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
