"""The memory behind a tensor, which its views share."""

from __future__ import annotations

from typing import Any

from weft.eager.tensor.view.view_transform import placed


class UntypedStorage:
    """The memory of a tensor as bytes: where it begins, and how much there is.

    Args:
        x: the tensor, or a view of it.

    Example:
        >>> import weft as wf
        >>> x = wf.zeros(2, 3)
        >>> x[1].untyped_storage().nbytes(), x[1].untyped_storage() == x.untyped_storage()
        (24, True)
    """

    def __init__(self, x: Any) -> None:
        self._root = placed(x)[0]

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
