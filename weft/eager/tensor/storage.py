"""The memory that a tensor and its views share, as programs ask for it."""

from __future__ import annotations

from typing import Any

from weft.eager.tensor.handle import Handle
from weft.eager.tensor.view.view_transform import placed


class Storage:
    """The memory of a tensor; `x.untyped_storage()` counts bytes, `x.storage()` elements."""

    __slots__ = ("_root", "_unit", "device", "dtype")

    def __init__(self, x: Any, unit: int) -> None:
        self._root: Handle = placed(x)[0]
        self._unit, self.device, self.dtype = unit, x.device, x.dtype

    def data_ptr(self) -> int:
        """The address; the tensor is computed first."""
        array = self._root.array
        return array.ctypes.data if array.size else 0

    def nbytes(self) -> int:
        """How many bytes it has."""
        return self._root.array.nbytes

    def size(self) -> int:
        """How many bytes or elements it has."""
        return self.nbytes() // self._unit

    __len__ = size

    def tolist(self) -> list[Any]:
        """The bytes or elements."""
        array = self._root.array.reshape(-1)
        return (array.view("u1") if self._unit == 1 else array).tolist()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Storage) and other.data_ptr() == self.data_ptr()

    def __hash__(self) -> int:
        return hash(self.data_ptr())
