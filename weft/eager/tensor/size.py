"""Shapes as users see them."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any, Final, SupportsIndex, overload

_item: Final = tuple.__getitem__
_sum: Final = tuple.__add__
_of: Final = tuple.__new__


class Size(tuple[int, ...]):
    """The shape of a tensor: a tuple that knows its number of elements.

    >>> import weft as wf
    >>> wf.zeros(2, 3).shape.numel(), wf.zeros(2, 3).size() == (2, 3)
    (6, True)
    """

    __slots__ = ()

    def __new__(cls, dims: Iterable[SupportsIndex] = ()) -> Size:
        """The dimensions, each an integer; anything else raises TypeError."""
        return super().__new__(cls, map(operator.index, dims))

    def numel(self) -> int:
        """Number of elements."""
        return math.prod(self)

    @overload
    def __getitem__(self, key: SupportsIndex) -> int: ...

    @overload
    def __getitem__(self, key: slice[Any, Any, Any]) -> Size: ...

    def __getitem__(self, key: Any) -> Any:
        found = _item(self, key)
        return _of(Size, found) if isinstance(key, slice) else found

    def __add__(self, other: Any) -> Size:
        return Size(_sum(self, other))

    def __mul__(self, times: Any) -> Size:
        return Size(super().__mul__(times))

    __rmul__ = __mul__
