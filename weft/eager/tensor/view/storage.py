"""The memory behind a tensor, which its views share."""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np

from weft.eager.tensor.dispatch import leaf, wrap


class UntypedStorage:
    """The memory of a tensor as bytes: where it begins, and how much there is.

    Args:
        x: the tensor whose memory it is, all of it; `Tensor.untyped_storage` finds that of a view.

    Example:
        >>> import weft as wf
        >>> x = wf.zeros(2, 3)
        >>> x[1].untyped_storage().nbytes(), x[1].untyped_storage() == x.untyped_storage()
        (24, True)
    """

    def __init__(self, x: Any) -> None:
        self._root = x

    @classmethod
    def from_file(
        cls, filename: str | os.PathLike[str], shared: bool = False, nbytes: int = 0
    ) -> Self:
        """The first bytes of a file, mapped; what is written stays in memory.

        Raises:
            NotImplementedError: writes would go to the file.
        """
        if shared:
            raise NotImplementedError("UntypedStorage.from_file: expected shared=False, got True")
        return cls(wrap(leaf(np.memmap(filename, np.uint8, "c", shape=(nbytes,)))))

    def untyped(self) -> UntypedStorage:
        """The same as bytes."""
        return UntypedStorage(self._root)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        found = self._root.detach().numpy().reshape(-1).view(np.uint8)
        return np.array(found, dtype, copy=copy)

    def __getitem__(self, place: slice) -> UntypedStorage:
        return UntypedStorage(wrap(leaf(np.asarray(self)[place])))

    @property
    def device(self) -> Any:
        """Where it lies."""
        return self._root.device

    def data_ptr(self) -> int:
        """The address of the first byte; 0 if there is none. What is pending is computed first."""
        return self._root.data_ptr()

    def nbytes(self) -> int:
        """The number of bytes."""
        return self._root.numel() * self._root.dtype.size

    size = __len__ = nbytes

    def tolist(self) -> list[Any]:
        """The bytes."""
        return np.asarray(self).tolist()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and self._root is other._root

    def __hash__(self) -> int:
        return id(self._root)


class TypedStorage(UntypedStorage):
    """The same, as elements of the tensor's type."""

    @property
    def dtype(self) -> Any:
        """The type of the elements."""
        return self._root.dtype

    def size(self) -> int:
        """The number of elements."""
        return self._root.numel()

    __len__ = size

    def tolist(self) -> list[Any]:
        """The elements."""
        return self._root.reshape(-1).tolist()
